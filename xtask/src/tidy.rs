//! House rules as checks: who may depend on whom, where `unsafe` may stand, what a file must and must not have.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Allowed edges of normal dependencies (`docs/adr/0001`). A new one is a decision: write it down there.
const EDGES: [(&str, &[&str]); 11] = [
    ("ltc-build", &[]),
    ("ltc-ir", &[]),
    ("ltc-backend", &["ltc-ir"]),
    ("ltc-core", &["ltc-ir", "ltc-backend"]),
    ("ltc-torch-sys", &["ltc-ir"]),
    ("ltc-ts", &["ltc-ir", "ltc-backend", "ltc-torch-sys"]),
    ("ltc-eager-fallback", &["ltc-backend", "ltc-torch-sys"]),
    ("ltc-torch", &["ltc-ir", "ltc-backend", "ltc-core", "ltc-torch-sys", "ltc-ts", "ltc-eager-fallback"]),
    ("ltc-python", &["ltc-torch"]),
    ("ltc-tests", &["ltc-ir", "ltc-backend", "ltc-core", "ltc-torch-sys", "ltc-ts", "ltc-torch"]),
    ("xtask", &[]),
];

/// Where `unsafe` may stand.
const UNSAFE: [&str; 3] = ["ltc-torch-sys/", "ltc-ts/src/buffer.rs", "ltc-ts/src/kernels/"];

const MAX_LINES: usize = 600;

pub(crate) fn run(root: &Path) -> Result<()> {
    let mut complaints = edges(root)?;
    for file in tracked(root)? {
        let Ok(text) = fs::read_to_string(root.join(&file)) else { continue };
        complaints.extend(check_file(&file, &text));
    }
    if complaints.is_empty() {
        return Ok(());
    }
    for c in &complaints {
        println!("    {c}");
    }
    bail!("{} complaints", complaints.len())
}

fn tracked(root: &Path) -> Result<Vec<String>> {
    let out = Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).current_dir(root).output();
    let out = out.context("git ls-files")?;
    Ok(String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect())
}

fn edges(root: &Path) -> Result<Vec<String>> {
    let out = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output();
    let metadata: Value = serde_json::from_slice(&out.context("cargo metadata")?.stdout).context("cargo metadata")?;
    Ok(check_edges(&metadata))
}

fn check_edges(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let members: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut complaints = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = EDGES.iter().find(|(n, _)| *n == name) else {
            complaints.push(format!("crate {name} is not in the list of edges (xtask/src/tidy.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let (to, kind) = (dependency["name"].as_str().unwrap_or_default(), &dependency["kind"]);
            if kind.is_null() && members.contains(to) && !allowed.contains(&to) {
                complaints.push(format!("edge {name} -> {to} is not allowed (xtask/src/tidy.rs, docs/adr/0001)"));
            }
        }
    }
    complaints
}

fn check_file(file: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut say = |what: String| complaints.push(format!("{file}: {what}"));
    let code = file.ends_with(".rs") || file.ends_with(".cpp") || file.ends_with(".h") || file.ends_with(".py");
    let lines = text.lines().count();
    if code && lines > MAX_LINES && !file.contains("generated") {
        say(format!("{lines} lines, more than {MAX_LINES}"));
    }
    if file.ends_with(".rs") && !text.trim_start().starts_with("//!") {
        say("begins without a module document (//!)".into());
    }
    // Written in two halves so that this very file passes.
    let keyword = concat!("un", "safe ");
    let block = |l: &str| {
        let l = l.trim_start();
        !l.starts_with("//")
            && (l.contains(&format!("{keyword}{{"))
                || l.contains(&format!("{keyword}impl"))
                || l.contains(&format!("{keyword}fn")))
    };
    if file.ends_with(".rs") && !UNSAFE.iter().any(|p| file.starts_with(p)) && text.lines().any(block) {
        say(format!("{keyword}code outside {}", UNSAFE.join(", ")));
    }
    let homes = [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];
    if !file.ends_with(".lock")
        && let Some(path) = homes.iter().find(|p| text.contains(**p))
    {
        say(format!("a path of one machine ({path})"));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(file: &str, text: &str) -> String {
        check_file(file, text).join("\n")
    }

    #[test]
    fn planted_violations_are_found() {
        assert!(complaints("ltc-ir/src/a.rs", "fn f() {}\n").contains("module document"));
        assert!(
            complaints("ltc-ir/src/a.rs", &format!("//! A.\nfn f() {{ {} {{}} }}\n", concat!("un", "safe")))
                .contains("outside")
        );
        assert!(complaints("ltc-ir/src/a.rs", &format!("//! A.\n{}", "\n".repeat(600))).contains("more than 600"));
        assert!(complaints("README.md", concat!("see /ho", "me/me")).contains("machine"));
    }

    #[test]
    fn good_files_pass() {
        assert_eq!(complaints("ltc-ir/src/a.rs", "//! A.\nfn f() {}\n"), "");
        assert_eq!(
            complaints("ltc-torch-sys/src/a.rs", &format!("//! A.\nfn f() {{ {} {{}} }}\n", concat!("un", "safe"))),
            ""
        );
    }

    #[test]
    fn a_forbidden_edge_and_an_unknown_crate_are_found() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "ltc-ir", "dependencies": [{ "name": "ltc-core", "kind": null }] },
            { "name": "ltc-core", "dependencies": [{ "name": "ltc-ir", "kind": null }, { "name": "ltc-ts", "kind": "dev" }] },
            { "name": "ltc-ts", "dependencies": [] },
            { "name": "ltc-new", "dependencies": [] },
        ]});
        let found = check_edges(&metadata);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("ltc-ir -> ltc-core") && found[1].contains("ltc-new"));
    }
}
