//! Whether the crates could be published as they are: what crates.io asks of a package, what is in it, licences and
//! advisories of dependencies, and promises of versions. Nothing is uploaded.

use std::{collections::BTreeSet, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::steps::{step, timed};

/// Published crates that build without libtorch: their packages are compiled as they are.
const PURE: [&str; 5] = ["ltc-build", "ltc-ir", "ltc-backend", "ltc-core", "ltc-kernels"];

/// What every package has to hold beside its manifest.
const NEEDED_BY_ALL: [&str; 4] = ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "src/lib.rs"];

/// What packages of these crates have to hold, too: what is compiled, generated from or read at build time.
const NEEDED: [(&str, &[&str]); 2] = [
    ("ltc-torch-sys", &["build.rs", "csrc/abi.h", "csrc/record.cpp", "csrc/register.cpp", "csrc/shim.h"]),
    ("ltc-ir", &["ops.toml", "src/table/generated.rs"]),
];

/// What crates.io asks for, and shows.
const FIELDS: [&str; 7] = ["description", "license", "repository", "readme", "rust_version", "keywords", "categories"];

/// What to check.
#[derive(clap::Args)]
pub(crate) struct PublishOptions {
    /// Compile the packages that need libtorch, too: its C++ once more, which takes ten minutes.
    #[arg(long)]
    verify_all: bool,
}

/// Runs all checks; stops at the first that fails.
pub(crate) fn run(root: &Path, options: &PublishOptions) -> Result<()> {
    let metadata = metadata(root)?;
    let crates = published(&metadata);
    timed("manifests", || report(&manifests(&metadata)))?;
    timed("contents of the packages", || {
        let mut complaints = Vec::new();
        for name in &crates {
            let list = output(root, "cargo", &["package", "--list", "--allow-dirty", "-p", name])?;
            complaints.extend(contents(name, &list.lines().collect()));
        }
        report(&complaints)
    })?;
    let each = |names: &[&str]| names.iter().flat_map(|name| ["-p".to_owned(), (*name).to_owned()]).collect::<Vec<_>>();
    // Cargo finds the order, and lets a package find those before it.
    let dry_run = |name, crates: &[&str], more: &[&str]| {
        let packages = each(crates);
        let args = ["publish", "--dry-run", "--allow-dirty"].into_iter().chain(more.iter().copied());
        step(root, name, "cargo", &args.chain(packages.iter().map(String::as_str)).collect::<Vec<_>>())
    };
    let all: Vec<&str> = crates.iter().map(String::as_str).collect();
    if options.verify_all {
        dry_run("packages", &all, &[])?;
    } else {
        // Those that need libtorch are not compiled again: what they are made of was compiled by the tests, and what
        // might be missing from a package was looked for above.
        dry_run("packages", &all, &["--no-verify"])?;
        dry_run("packages without libtorch, compiled", &PURE, &[])?;
    }
    deny(root)?;
    promises(root, &all)
}

/// Advisories, licences, doubles and sources of dependencies (`deny.toml`), where there is cargo-deny.
pub(crate) fn deny(root: &Path) -> Result<()> {
    if !is_installed("deny") {
        println!("==> cargo deny: not run, it is not installed (cargo install --locked cargo-deny)");
        return Ok(());
    }
    step(root, "dependencies", "cargo", &["deny", "--all-features", "check"])
}

/// Whether public items changed by more than the version says, since the last release.
fn promises(root: &Path, crates: &[&str]) -> Result<()> {
    if !is_installed("semver-checks") {
        println!("==> cargo semver-checks: not run, it is not installed (cargo install --locked cargo-semver-checks)");
        return Ok(());
    }
    let tags = output(root, "git", &["tag", "--list", "v*", "--sort", "-version:refname"])?;
    let Some(last) = tags.lines().next() else {
        println!("==> cargo semver-checks: not run, no release is tagged to compare with");
        return Ok(());
    };
    let packages = crates.iter().flat_map(|name| ["-p", name]);
    let args: Vec<&str> = ["semver-checks", "--baseline-rev", last].into_iter().chain(packages).collect();
    step(root, "promises of versions", "cargo", &args)
}

fn is_installed(subcommand: &str) -> bool {
    let told = Command::new("cargo").args([subcommand, "--version"]).output();
    told.is_ok_and(|told| told.status.success())
}

fn output(root: &Path, program: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(program).args(args).current_dir(root).output();
    let out = out.with_context(|| format!("{program} did not start"))?;
    if !out.status.success() {
        bail!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn metadata(root: &Path) -> Result<Value> {
    let text = output(root, "cargo", &["metadata", "--no-deps", "--format-version", "1", "--offline"])?;
    serde_json::from_str(&text).context("output of cargo metadata")
}

fn report(complaints: &[String]) -> Result<()> {
    for complaint in complaints {
        println!("{complaint}");
    }
    if complaints.is_empty() { Ok(()) } else { bail!("{} complaints", complaints.len()) }
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().map_or(&[], Vec::as_slice)
}

fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

/// Names of the crates that are published.
fn published(metadata: &Value) -> Vec<String> {
    let names = packages(metadata).iter().filter(|p| is_published(p)).filter_map(|p| p["name"].as_str());
    names.map(str::to_owned).collect()
}

/// What a manifest lacks; and dependencies on crates of the workspace that no version names, or that are not published.
fn manifests(metadata: &Value) -> Vec<String> {
    let published: BTreeSet<String> = published(metadata).into_iter().collect();
    let mut complaints = Vec::new();
    for package in packages(metadata).iter().filter(|p| is_published(p)) {
        let name = package["name"].as_str().unwrap_or_default();
        for field in FIELDS {
            let value = &package[field];
            if value.as_str().is_none_or(str::is_empty) && value.as_array().is_none_or(Vec::is_empty) {
                complaints.push(format!("{name}: no {field}"));
            }
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let of_workspace = dependency["path"].is_string();
            // What is for tests only, and has no version, is left out of the package.
            let is_left_out = dependency["kind"] == "dev" && dependency["req"] == "*";
            if !of_workspace || is_left_out {
                continue;
            }
            let needed = dependency["name"].as_str().unwrap_or_default();
            let wanted = format!("^{}", package["version"].as_str().unwrap_or_default());
            if dependency["req"] != wanted.as_str() {
                complaints.push(format!("{name}: {needed} is wanted in version {}, not {wanted}", dependency["req"]));
            }
            if !published.contains(needed) {
                complaints.push(format!("{name}: {needed} is not published"));
            }
        }
    }
    complaints
}

/// What a package does not hold.
fn contents(name: &str, files: &BTreeSet<&str>) -> Vec<String> {
    let own = NEEDED.iter().filter(|(of, _)| *of == name).flat_map(|(_, needed)| needed.iter());
    let missing = NEEDED_BY_ALL.iter().chain(own).filter(|file| !files.contains(**file));
    missing.map(|file| format!("{name}: the package lacks {file}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, dependencies: Value) -> Value {
        json!({
            "name": name, "version": "0.1.0", "publish": null, "dependencies": dependencies,
            "description": "d", "license": "MIT", "repository": "r", "readme": "README.md", "rust_version": "1.89",
            "keywords": ["k"], "categories": ["c"],
        })
    }

    #[test]
    fn a_manifest_names_all_that_is_asked_for() {
        let mut broken = package("a", json!([]));
        assert_eq!(manifests(&json!({ "packages": [broken] })), [""; 0]);
        broken["description"] = Value::Null;
        broken["keywords"] = json!([]);
        assert_eq!(manifests(&json!({ "packages": [broken] })), ["a: no description", "a: no keywords"]);
        broken["publish"] = json!([]);
        assert_eq!(manifests(&json!({ "packages": [broken] })), [""; 0], "it is not published");
    }

    #[test]
    fn crates_of_the_workspace_are_named_by_version() {
        let dependency =
            |name: &str, req: &str, kind: Value| json!({ "name": name, "path": "p", "req": req, "kind": kind });
        let told = |dependency: Value| {
            manifests(&json!({ "packages": [package("a", json!([dependency])), package("b", json!([]))] }))
        };
        assert_eq!(told(dependency("b", "^0.1.0", Value::Null)), [""; 0]);
        assert_eq!(told(dependency("b", "*", json!("dev"))), [""; 0], "left out of the package");
        assert_eq!(told(dependency("b", "*", Value::Null)), [r#"a: b is wanted in version "*", not ^0.1.0"#]);
        assert_eq!(told(dependency("c", "^0.1.0", Value::Null)), ["a: c is not published"]);
    }

    #[test]
    fn a_package_holds_its_licences_and_sources() {
        let all = BTreeSet::from(["LICENSE-MIT", "LICENSE-APACHE", "README.md", "src/lib.rs"]);
        assert_eq!(contents("ltc-core", &all), [""; 0]);
        assert_eq!(contents("ltc-ir", &all).len(), 2);
        assert_eq!(contents("ltc-core", &BTreeSet::new())[0], "ltc-core: the package lacks LICENSE-MIT");
    }
}
