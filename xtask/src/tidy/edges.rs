//! Who may depend on whom. A new edge is a decision: add it here, and say why in `docs/adr`.

use std::{collections::BTreeSet, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Edges that ship: normal and build dependencies between crates of the workspace.
const EDGES: [(&str, &[&str]); 14] = [
    ("ltc-build", &[]),
    ("ltc-ir", &[]),
    ("ltc-backend", &["ltc-ir"]),
    ("ltc-core", &["ltc-ir", "ltc-backend"]),
    ("ltc-torch-sys", &["ltc-ir"]),
    ("ltc-kernels", &["ltc-ir"]),
    ("ltc-ts", &["ltc-ir", "ltc-backend", "ltc-torch-sys", "ltc-kernels"]),
    ("ltc-eager-fallback", &["ltc-ir", "ltc-torch-sys"]),
    ("ltc-torch", &["ltc-ir", "ltc-backend", "ltc-core", "ltc-torch-sys", "ltc-ts", "ltc-eager-fallback"]),
    ("ltc-dist", &["ltc-torch-sys"]),
    ("ltc-python", &["ltc-torch"]),
    ("ltc-examples", &["ltc-backend", "ltc-core", "ltc-ts"]),
    ("ltc-tests", &["ltc-ir", "ltc-backend", "ltc-core", "ltc-torch-sys", "ltc-ts", "ltc-torch"]),
    ("xtask", &[]),
];

/// Edges that tests, benches and examples of a crate may have besides.
const DEV_EDGES: [(&str, &[&str]); 4] = [
    // Its own features, for its bench.
    ("ltc-backend", &["ltc-backend"]),
    ("ltc-ts", &["ltc-core"]),
    ("ltc-eager-fallback", &["ltc-torch"]),
    // The device: whoever uses it brings it along.
    ("ltc-dist", &["ltc-torch"]),
];

/// Finds libtorch for build scripts: anyone's may use it.
const BUILD_HELPER: &str = "ltc-build";

/// Crates that must build where there is no libtorch.
const PURE: [&str; 6] = ["ltc-build", "ltc-ir", "ltc-backend", "ltc-core", "ltc-kernels", "xtask"];

/// Crates that bring libtorch.
const LIBTORCH: [&str; 2] = ["tch", "torch-sys"];

/// Crates that have `tch`, which takes one version of libtorch only; in others it is the choice of Rust programs.
const WITH_TCH: [&str; 2] = ["ltc-dist", "ltc-tests"];

/// Complaints about the dependencies of the workspace.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let out = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .context("cargo metadata did not start")?;
    if !out.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(complaints(&serde_json::from_slice(&out.stdout).context("output of cargo metadata")?))
}

fn complaints(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let members: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut found = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(allowed) = of(&EDGES, name) else {
            found.push(format!("crate {name} is not in the list of edges (xtask/src/tidy/edges.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().unwrap_or_default();
            let kind = dependency["kind"].as_str().unwrap_or("normal");
            let listed = allowed.contains(&to)
                || kind == "dev" && of(&DEV_EDGES, name).is_some_and(|extra| extra.contains(&to))
                || kind == "build" && to == BUILD_HELPER;
            if members.contains(to) && !listed {
                found.push(format!("{kind} edge {name} -> {to} is not allowed (xtask/src/tidy/edges.rs, docs/adr)"));
            }
            let asks = dependency["features"].as_array().is_some_and(|all| all.iter().any(|f| f == "tch"));
            let brings = LIBTORCH.contains(&to) && dependency["optional"] != true || asks;
            if kind != "dev" && brings && !WITH_TCH.contains(&name) {
                found.push(format!("{name} must build without tch but {kind} edge {name} -> {to} brings it"));
            }
            if PURE.contains(&name) && LIBTORCH.contains(&to) {
                found.push(format!("{name} must build without libtorch but depends on {to}"));
            }
        }
    }
    found
}

fn of(list: &[(&str, &'static [&'static str])], name: &str) -> Option<&'static [&'static str]> {
    list.iter().find(|(from, _)| *from == name).map(|(_, to)| *to)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Complaints about a workspace of all our crates where `from` depends on `to`.
    fn with_edge(from: &str, to: &str, kind: Value) -> String {
        let packages: Vec<Value> = EDGES
            .iter()
            .map(|(name, _)| {
                let edge = json!([{ "name": to, "kind": kind }]);
                json!({ "name": name, "dependencies": if *name == from { edge } else { json!([]) } })
            })
            .collect();
        complaints(&json!({ "packages": packages })).join("\n")
    }

    #[test]
    fn listed_edges_pass() {
        assert_eq!(with_edge("ltc-core", "ltc-ir", Value::Null), "");
        assert_eq!(with_edge("ltc-ts", "ltc-core", json!("dev")), "");
        assert_eq!(with_edge("ltc-tests", "ltc-build", json!("build")), "");
        assert_eq!(with_edge("ltc-core", "smallvec", Value::Null), "");
    }

    #[test]
    fn other_edges_are_found() {
        assert!(with_edge("ltc-ir", "ltc-core", Value::Null).contains("normal edge ltc-ir -> ltc-core"));
        assert!(with_edge("ltc-ts", "ltc-core", Value::Null).contains("normal edge ltc-ts -> ltc-core"));
        assert!(with_edge("ltc-core", "ltc-ts", json!("dev")).contains("dev edge ltc-core -> ltc-ts"));
        assert!(with_edge("ltc-ts", "ltc-core", json!("build")).contains("build edge ltc-ts -> ltc-core"));
        assert!(with_edge("ltc-ts", "ltc-build", Value::Null).contains("normal edge ltc-ts -> ltc-build"));
    }

    #[test]
    fn libtorch_in_a_pure_crate_is_found() {
        assert!(with_edge("ltc-core", "tch", json!("dev")).contains("without libtorch"));
        assert!(with_edge("ltc-kernels", "ltc-torch-sys", Value::Null).contains("normal edge"));
        assert_eq!(with_edge("ltc-ts", "tch", json!("dev")), "");
    }

    #[test]
    fn tch_comes_along_where_it_is_asked_for_only() {
        let asking = |name: &str, dependency: Value| {
            complaints(&json!({ "packages": [{ "name": name, "dependencies": [dependency] }] })).join("\n")
        };
        let tch = |optional: bool| json!({ "name": "tch", "kind": null, "optional": optional, "features": [] });
        assert_eq!(asking("ltc-torch", tch(true)), "");
        assert_eq!(asking("ltc-tests", tch(false)), "");
        assert!(asking("ltc-torch", tch(false)).contains("must build without tch"));
        let through = |features: Value| json!({ "name": "ltc-torch", "kind": null, "features": features });
        assert_eq!(asking("ltc-python", through(json!([]))), "");
        assert!(asking("ltc-python", through(json!(["tch"]))).contains("ltc-python -> ltc-torch brings it"));
    }

    #[test]
    fn an_unknown_crate_is_found() {
        let packages = json!({ "packages": [{ "name": "ltc-new", "dependencies": [] }] });
        assert!(complaints(&packages).join("").contains("ltc-new is not in the list"));
    }
}
