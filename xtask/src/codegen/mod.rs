//! `cargo xtask codegen`: what follows from the operator table.
//!
//! Reads `ltc-ir/ops.toml` and the `native_functions.yaml` of the installed torch package, checks one against the
//! other, and writes the generated files, which are committed. With `--check` it writes nothing and fails when a file
//! is not what it would write. Where no torch package is installed, `--check` skips: the committed files are enough to
//! build.

mod emit;
mod methods;
mod native;
mod schema;
mod table;
#[cfg(test)]
mod tests;

/// The parser of scalar expressions, shared with the crate that evaluates them.
#[path = "../../../ltc-ir/src/expr.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tool parses expressions and does not evaluate them")]
mod expr;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// Where the operator table is.
const TABLE: &str = "ltc-ir/ops.toml";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail when a generated file is not current.
    #[arg(long)]
    check: bool,
    /// `native_functions.yaml`; by default that of the torch package in .venv or the active environment.
    #[arg(long)]
    native_functions: Option<PathBuf>,
}

impl Options {
    /// What CI runs.
    pub(crate) fn checking() -> Options {
        Options { check: true, native_functions: None }
    }
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let Some(yaml) = options.native_functions.clone().or_else(|| native::find(root)) else {
        if options.check {
            println!("    skipped: no torch package, so no native_functions.yaml (`make setup` installs one)");
            return Ok(());
        }
        bail!("no native_functions.yaml: install torch with `make setup`, or name the file with --native-functions");
    };
    let natives = native::Natives::read(&yaml)?;
    let text = fs::read_to_string(root.join(TABLE)).with_context(|| format!("reading {TABLE}"))?;
    let rules = table::rules(&root.join("ltc-ir/src/rules"))?;
    let rows = match table::resolve(&text, &natives, &rules) {
        Ok(rows) => rows,
        Err(complaints) => {
            for c in &complaints {
                println!("    {TABLE}: {c}");
            }
            bail!("{} mistakes in {TABLE}", complaints.len());
        }
    };
    let mut stale = Vec::new();
    for (path, text) in [
        ("ltc-ir/src/table/generated.rs", emit::rows(&rows)),
        ("ltc-core/src/tensor/generated.rs", methods::emit(&rows)?),
        ("docs/ops.md", emit::docs(&rows)),
    ] {
        let full = root.join(path);
        if fs::read_to_string(&full).is_ok_and(|old| old == text) {
            continue;
        }
        if options.check {
            stale.push(path);
        } else {
            fs::create_dir_all(full.parent().unwrap_or(root))?;
            fs::write(&full, text).with_context(|| format!("writing {path}"))?;
            println!("    wrote {path}");
        }
    }
    if !stale.is_empty() {
        bail!("not what {TABLE} says: {}; run `cargo xtask codegen`", stale.join(", "));
    }
    println!(
        "    {} rows, {} operators with their variants",
        rows.len(),
        rows.iter().map(|r| 1 + r.variants.len()).sum::<usize>()
    );
    Ok(())
}
