//! `cargo xtask outside`: a crate that is no part of this workspace, made of what `ltc-torch/README.md` shows, builds
//! and starts.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
    time::Instant,
};

use anyhow::{Context, Result, bail};

/// Where the crate is described.
const DOCUMENT: &str = "ltc-torch/README.md";

const FILES: [&str; 3] = ["Cargo.toml", "build.rs", "src/main.rs"];

/// Removed when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes the crate to a temporary folder, builds it, and runs its program with no help to find libtorch.
pub(crate) fn run(root: &Path) -> Result<()> {
    let start = Instant::now();
    println!("==> a crate outside of the workspace, as {DOCUMENT} has it");
    let folder = Folder(env::temp_dir().join(format!("ltc-outside-{}", process::id())));
    write(root, &folder.0)?;
    // That of the workspace, for `tch` and others that are built there already.
    let target = root.join("target");
    let built = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet"])
        .current_dir(&folder.0)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_INCREMENTAL", "0")
        .env("LIBTORCH", root.join(".venv/libtorch"))
        .status()
        .context("cargo did not start")?;
    if !built.success() {
        bail!("the crate of {DOCUMENT} does not build");
    }
    // Not by `cargo run`, which says where libraries are.
    let program = target.join("debug/outside");
    let told = Command::new(&program).env_remove("LD_LIBRARY_PATH").env_remove("DYLD_LIBRARY_PATH").output();
    let told = told.with_context(|| program.display().to_string())?;
    let (out, err) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    if !told.status.success() || out.trim().parse::<f64>().is_err() {
        bail!("the program of {DOCUMENT} ended with {}, and said: {out}{err}", told.status);
    }
    println!("    outside: it says {}, {:.0} s", out.trim(), start.elapsed().as_secs_f64());
    Ok(())
}

fn write(root: &Path, folder: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    fs::create_dir_all(folder.join("src")).with_context(|| folder.display().to_string())?;
    for file in FILES {
        let block = block(&text, file).with_context(|| format!("{DOCUMENT} shows no {file}"))?;
        let block = block.replace("../ltc/", &format!("{}/", root.display()));
        let text = if file == "Cargo.toml" { manifest(root, &block)? } else { block };
        fs::write(folder.join(file), text).with_context(|| file.to_owned())?;
    }
    // The versions that were tested.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).context("Cargo.lock")?;
    Ok(())
}

/// The manifest with what the document leaves out, and the profiles of the workspace: other ones build `tch` anew.
fn manifest(root: &Path, shown: &str) -> Result<String> {
    let workspace = fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
    let mut workspace: toml::Table = workspace.parse().context("Cargo.toml")?;
    let profiles: toml::Table = workspace.remove("profile").map(|p| ("profile".to_owned(), p)).into_iter().collect();
    let package = "[package]\nname = \"outside\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    Ok(format!("{package}\n{shown}\n{profiles}"))
}

/// The block of code after `<!-- file: NAME -->`.
fn block(document: &str, file: &str) -> Option<String> {
    let (_, after) = document.split_once(&format!("<!-- file: {file} -->\n```"))?;
    let (_, code) = after.split_once('\n')?;
    let (code, _) = code.split_once("```\n")?;
    Some(code.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_by_name() {
        let document = "<!-- file: a -->\n```toml\nx = 1\n```\n\n<!-- file: b/c -->\n```rust,ignore\nfn f() {}\n```\n";
        assert_eq!(block(document, "a").as_deref(), Some("x = 1\n"));
        assert_eq!(block(document, "b/c").as_deref(), Some("fn f() {}\n"));
        assert_eq!(block(document, "c"), None);
    }

    #[test]
    fn the_document_shows_every_file() {
        let root = crate::root();
        let document = fs::read_to_string(root.join(DOCUMENT)).unwrap();
        for file in FILES {
            assert!(block(&document, file).is_some(), "{file}");
        }
        let manifest: toml::Table = manifest(&root, &block(&document, "Cargo.toml").unwrap()).unwrap().parse().unwrap();
        assert!(manifest["profile"].get("dev").is_some() && manifest["build-dependencies"].get("ltc-build").is_some());
    }
}
