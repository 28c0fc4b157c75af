//! The whole of CI, cheap steps first.

use std::{path::Path, process::Command, time::Instant};

use anyhow::{Context, Result, bail};

/// Crates that build and pass their tests without libtorch.
const PURE: [&str; 6] = ["-p", "ltc-ir", "-p", "ltc-backend", "-p", "ltc-core"];

/// Runs every step; stops at the first that fails.
pub(crate) fn run(root: &Path, pure_only: bool) -> Result<()> {
    let pure = |front: &[&'static str], back: &[&'static str]| [front, &PURE[..], back].concat();
    step(root, "format", "cargo", &["fmt", "--all", "--check"])?;
    timed("tidy", || crate::tidy::run(root))?;
    step(
        root,
        "lint without libtorch",
        "cargo",
        &pure(&["clippy", "--quiet"], &["--all-targets", "--", "-D", "warnings"]),
    )?;
    step(root, "test without libtorch", "cargo", &pure(&["test"], &[]))?;
    if pure_only {
        return Ok(());
    }
    step(root, "lint", "cargo", &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    step(root, "docs", "cargo", &["doc", "--quiet", "--workspace", "--no-deps"])?;
    step(root, "test", "cargo", &["test", "--workspace"])?;
    step(root, "python", "make", &["python"])?;
    step(root, "test python", ".venv/bin/python", &["-m", "pytest", "-q", "ltc-python/tests"])
}

fn step(root: &Path, name: &str, program: &str, args: &[&str]) -> Result<()> {
    timed(name, || {
        println!("    {program} {}", args.join(" "));
        let mut command = Command::new(program);
        let status = command
            .args(args)
            .current_dir(root)
            .env("RUSTDOCFLAGS", "-D warnings")
            // Random programs resize `out=` arguments on purpose: no warning for each.
            .env("TORCH_CPP_LOG_LEVEL", "ERROR")
            .status();
        if !status.with_context(|| format!("{program} did not start"))?.success() {
            bail!("step `{name}` failed");
        }
        Ok(())
    })
}

fn timed(name: &str, f: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("==> {name}");
    let start = Instant::now();
    f()?;
    println!("    {name}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
