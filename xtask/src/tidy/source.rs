//! The files of the repository, read once for all rules.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};

/// The text files of the repository, and what else there is.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    /// All files and folders, also those that are not text.
    places: BTreeSet<String>,
}

/// A text file.
pub(super) struct File {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// What the text means, of a Rust file; or why it means nothing.
    rust: Option<syn::Result<syn::File>>,
}

impl Tree {
    /// Reads the files that are committed or could be.
    pub(super) fn read(root: &Path) -> Result<Tree> {
        let out = Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).current_dir(root).output();
        let out = out.context("git did not start")?;
        if !out.status.success() {
            bail!("git ls-files failed: {}", String::from_utf8_lossy(&out.stderr));
        }
        let listed = String::from_utf8_lossy(&out.stdout);
        // A file that is deleted, but whose deletion is not committed, is listed.
        let paths: Vec<&str> = listed.lines().filter(|path| root.join(path).is_file()).collect();
        let texts = paths.iter().filter_map(|path| Some((*path, fs::read_to_string(root.join(path)).ok()?)));
        let files = texts.map(|(path, text)| File::new(path, text)).collect();
        Ok(Tree { files, places: places(&paths) })
    }

    /// A tree of these paths and texts.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
        let files = files.iter().map(|(path, text)| File::new(path, (*text).to_owned())).collect();
        Tree { files, places: places(&paths) }
    }

    /// Complaints about Rust files that are no Rust.
    pub(super) fn broken(&self) -> Vec<String> {
        let error = |file: &File| Some(format!("{}: {}", file.path, file.rust.as_ref()?.as_ref().err()?));
        self.files.iter().filter_map(error).collect()
    }

    /// The file of this path.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether there is a file or a folder of this path, or one whose path ends in it.
    pub(super) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let is_tail = |place: &String| place.strip_suffix(path).is_some_and(|before| before.ends_with('/'));
        self.places.contains(path) || self.places.iter().any(is_tail)
    }
}

impl File {
    fn new(path: &str, text: String) -> File {
        let rust = path.ends_with(".rs").then(|| syn::parse_file(&text));
        File { path: path.to_owned(), text, rust }
    }

    /// The items of a Rust file.
    pub(super) fn rust(&self) -> Option<&syn::File> {
        self.rust.as_ref()?.as_ref().ok()
    }

    /// Whether the file is of these checks: their tests hold texts that break the rules.
    pub(super) fn is_of_tidy(&self) -> bool {
        self.path.starts_with("xtask/src/tidy/") || self.path == super::known::FILE
    }

    /// Whether the file ends in one of these extensions.
    pub(super) fn is(&self, extensions: &[&str]) -> bool {
        Path::new(&self.path).extension().is_some_and(|e| extensions.iter().any(|x| e == *x))
    }

    /// Whether a program wrote the file: nobody reads it line by line.
    pub(super) fn is_generated(&self) -> bool {
        self.path.contains("generated") || self.text.lines().take(5).any(|line| line.contains(WRITTEN))
    }
}

/// What generated files say of themselves.
const WRITTEN: &str = concat!("Written by `", "cargo xtask codegen`");

/// The paths and all folders above them.
fn places(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().flat_map(|path| Path::new(path).ancestors()).map(|place| place.to_string_lossy().into()).collect()
}

/// Whether an item is there only in tests.
pub(super) fn only_in_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| {
                let condition = list.tokens.to_string();
                condition == "test" || condition.starts_with("all (test")
            })
    })
}
