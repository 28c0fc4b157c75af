//! The whole of CI, cheap steps first.

use std::{fs, path::Path, process::Command, time::Instant};

use anyhow::{Context, Result};

use crate::{
    packages,
    steps::{step, timed},
};

/// Where the C++ is.
const CPP: [&str; 2] = ["ltc-torch-sys/csrc", "tests/cuda"];

/// What the clang-format says that `.clang-format` is written for.
const CLANG_FORMAT: &str = "version 23.";

/// What the ruff says that `ltc-python/pyproject.toml` is written for.
const RUFF: &str = "ruff 0.17.";

/// Where the tests in Python are, and what the names of those of compiled steps begin with.
const PYTHON_TESTS: &str = "ltc-python/tests";
const STEP_TESTS: &str = "test_step_";

/// Which steps to run.
#[derive(clap::Args)]
pub(crate) struct Scope {
    /// Only tests: no formatting, lints or docs.
    #[arg(long, conflicts_with = "checks")]
    tests: bool,
    /// Only what reads: formatting, house rules, generated files, lints and docs.
    #[arg(long)]
    checks: bool,
    /// Only what needs neither libtorch nor Python.
    #[arg(long, visible_alias = "pure")]
    quick: bool,
}

/// Runs the steps of the scope; stops at the first that fails.
pub(crate) fn run(root: &Path, scope: &Scope) -> Result<()> {
    let start = Instant::now();
    let pure = packages::pure();
    let cargo = |name, parts: &[&[&str]]| step(root, name, "cargo", &parts.concat());
    if !scope.tests {
        cargo("format", &[&["fmt", "--all", "--check"]])?;
        cpp_format(root)?;
        python_format(root)?;
        timed("tidy", || crate::tidy::run(root))?;
        crate::publish::deny(root)?;
        timed("generated files", || crate::codegen::run(root, &crate::codegen::Options::checking()))?;
        cargo("lint without libtorch", &[&["clippy", "-q", "--all-targets"], &pure, &["--", "-D", "warnings"]])?;
    }
    if scope.quick && !scope.checks {
        cargo("test without libtorch", &[&["test"], &pure])?;
    }
    if !scope.checks {
        cargo(
            "test interleavings",
            &[&["test", "-q", "-p", "ltc-core", "--features", "interleave", "--test", "interleave"]],
        )?;
        cargo("test the tools", &[&["test", "-q", "-p", "xtask", "-p", "ltc-build"]])?;
    }
    if scope.quick {
        return done(start);
    }
    if !scope.tests {
        cargo("lint", &[&["clippy", "-q", "--workspace", "--all-targets", "--", "-D", "warnings"]])?;
        cargo("docs", &[&["doc", "-q", "--workspace", "--no-deps"]])?;
    }
    if scope.checks {
        return done(start);
    }
    let selected = packages::all();
    cargo("test", &[&["test"], &selected])?;
    // cargo builds examples when it tests, but runs their unit tests only when asked.
    cargo("test the examples", &[&["test", "-q", "--examples"], &selected])?;
    step(root, "python", "make", &["python"])?;
    python_tests(root)?;
    timed("dry runs of CUDA", || crate::dry::run(root, &crate::dry::DryOptions::quick()))?;
    done(start)
}

/// Runs the tests in Python, by two processes, whatever the machine: some tests start several of their own. Those of
/// compiled steps are processes apart: other tests bring a million objects, and a capture may search among all.
fn python_tests(root: &Path) -> Result<()> {
    let pytest = ["-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"];
    let steps = format!("--ignore-glob=*/{STEP_TESTS}*");
    step(root, "test python", ".venv/bin/python", &[&pytest[..], &[&steps, PYTHON_TESTS]].concat())?;
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(PYTHON_TESTS)).context(PYTHON_TESTS)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(STEP_TESTS) {
            files.push(format!("{PYTHON_TESTS}/{name}"));
        }
    }
    files.sort_unstable();
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    step(root, "test compiled steps", ".venv/bin/python", &[&pytest[..], &files].concat())
}

/// A formatter of `.venv` or of the path, where it is there in the version that its settings are written for: others
/// format differently.
fn formatter(root: &Path, name: &str, version: &str) -> Option<String> {
    let of_venv = root.join(".venv/bin").join(name);
    let program = if of_venv.is_file() { of_venv.to_string_lossy().into_owned() } else { name.to_owned() };
    let told = Command::new(&program).arg("--version").output();
    if told.is_ok_and(|told| String::from_utf8_lossy(&told.stdout).contains(version)) {
        return Some(program);
    }
    println!("==> {name}: not run, there is none that says `{version}` (`make python` installs it)");
    None
}

/// Checks the formatting of the C++.
fn cpp_format(root: &Path) -> Result<()> {
    let Some(program) = formatter(root, "clang-format", CLANG_FORMAT) else { return Ok(()) };
    let mut args = vec!["--dry-run".to_owned(), "-Werror".to_owned()];
    let mut folders = CPP.map(str::to_owned).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).with_context(|| folder.clone())? {
            let entry = entry?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.ends_with(".cpp") || path.ends_with(".h") {
                args.push(path);
            }
        }
    }
    args[2..].sort_unstable();
    step(root, "format of the C++", &program, &args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Checks the formatting of the Python, and what can be told to be wrong with it without running it.
fn python_format(root: &Path) -> Result<()> {
    let Some(program) = formatter(root, "ruff", RUFF) else { return Ok(()) };
    step(root, "format of the Python", &program, &["format", "--check", "--no-cache", "ltc-python"])?;
    step(root, "lint of the Python", &program, &["check", "--no-cache", "ltc-python"])
}

fn done(start: Instant) -> Result<()> {
    println!("==> all passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
