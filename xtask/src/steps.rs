//! Steps of a command: each says what it runs, and how long it took.

use std::{path::Path, process::Command, time::Instant};

use anyhow::{Context, Result, bail};

/// Runs a program in the workspace's folder; an error if it fails.
pub(crate) fn step(root: &Path, name: &str, program: &str, args: &[&str]) -> Result<()> {
    timed(name, || {
        println!("    {program} {}", args.join(" "));
        let status = Command::new(program)
            .args(args)
            .current_dir(root)
            .env("RUSTDOCFLAGS", "-D warnings")
            // What rustc keeps to compile a changed crate again is 15 GB for the workspace, and no step changes any.
            .env("CARGO_INCREMENTAL", "0")
            // Random programs resize `out=` arguments on purpose: no warning for each.
            .env("TORCH_CPP_LOG_LEVEL", "ERROR")
            .status();
        if !status.with_context(|| format!("{program} did not start"))?.success() {
            bail!("step `{name}` failed");
        }
        Ok(())
    })
}

/// Does something under a name.
pub(crate) fn timed(name: &str, f: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("==> {name}");
    let start = Instant::now();
    f()?;
    println!("    {name}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
