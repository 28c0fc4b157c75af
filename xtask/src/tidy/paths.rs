//! Paths that prose names are there: one that was renamed sends its reader nowhere.

use std::path::Path;

use super::{
    known::{Known, gone},
    source::{File, Tree},
};

/// Files of these endings are named by their path.
const ENDINGS: [&str; 10] = [".rs", ".cpp", ".h", ".py", ".pyi", ".md", ".toml", ".txt", ".sh", ".dict"];

/// Folders that are not of this repository: build outputs, and those of PyTorch's sources.
const FOREIGN: [&str; 4] = ["target/", "torch/", "aten/", "c10/"];

/// Complaints about paths in backticks and Markdown links that lead nowhere, and about listed ones that nobody names.
pub(super) fn check(tree: &Tree, known: &Known) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut met = Vec::new();
    for file in tree.files.iter().filter(|file| !file.is_of_tidy()) {
        for (line, path) in paths(file) {
            let listed = known.elsewhere.iter().any(|x| x.path == path);
            if listed {
                met.push(path.clone());
            } else if !exists(tree, &file.path, &path) {
                complaints.push(format!("{}:{line}: there is no `{path}`", file.path));
            }
        }
    }
    complaints.extend(gone(known.elsewhere.iter().map(|x| x.path.as_str()), |path| met.iter().any(|x| x == path)));
    complaints
}

/// The paths that the prose of a file names, with their lines.
fn paths(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in file.text.lines().enumerate() {
        let Some(prose) = prose(file, line) else { continue };
        fenced ^= prose.trim_start_matches(['/', '!', ' ']).starts_with("```");
        if fenced {
            continue;
        }
        // Every second piece is between backticks.
        let quoted = prose.split('`').skip(1).step_by(2);
        let of_link = |rest: &str| rest.split(')').next().unwrap_or_default().split('#').next().map(str::to_owned);
        let links = prose.split("](").skip(1).filter(|_| file.is(&["md"])).filter_map(of_link);
        let links = links.filter(|link| !link.is_empty() && !link.contains("://"));
        found.extend(quoted.filter(|text| is_path(text)).map(str::to_owned).chain(links).map(|path| (at + 1, path)));
    }
    found
}

/// The prose of a line: all of it in Markdown, a comment in code.
fn prose<'a>(file: &File, line: &'a str) -> Option<&'a str> {
    let comment = |mark: &str| line.find(mark).map(|at| &line[at..]);
    if file.is(&["md"]) {
        Some(line)
    } else if file.is(&["rs", "cpp", "h"]) {
        comment("//")
    } else if file.is(&["py", "pyi"]) {
        // Also documents, which are strings.
        Some(line)
    } else if file.is(&["toml", "sh"]) || file.path.ends_with("Makefile") {
        comment("#")
    } else {
        None
    }
}

/// Whether a text in backticks means a file or a folder: it has an ending of ours, or ends in a slash.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let ending = |ending: &&str| text.ends_with(*ending) && text.len() > ending.len();
    let folders = text.contains('/') && text.split('/').all(|part| part.len() > 1 && !part.contains('.'));
    !text.starts_with('/')
        && text.chars().all(plain)
        && (ENDINGS.iter().any(ending) || text.ends_with('/') && text.len() > 1 || folders)
}

/// Whether a path exists, seen from the root or the folder of the file that names it, or as the end of a longer one: in
/// the context of a crate its files go by their names.
fn exists(tree: &Tree, file: &str, path: &str) -> bool {
    let folder = Path::new(file).parent().unwrap_or(Path::new("")).to_string_lossy();
    let from_here = normal(&format!("{folder}/{path}"));
    FOREIGN.iter().any(|x| path.starts_with(x)) || tree.has(path) || from_here.is_some_and(|path| tree.has(&path))
}

/// The path without `.` and `..`, if it is inside the root.
fn normal(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str, known: &str) -> Vec<String> {
        let files = [(path, text), ("a/src/x.rs", ""), ("docs/y.md", ""), ("a/fuzz/regressions/z.txt", "")];
        check(&Tree::of(&files), &Known::parse(known).unwrap())
    }

    #[test]
    fn paths_that_exist_pass() {
        for (path, text) in [
            ("README.md", "`a/src/x.rs`, `docs/y.md`, `docs/`, [y](docs/y.md#z), [z](https://z)"),
            ("docs/b.md", "`y.md`, [x](../a/src/x.rs)"),
            ("a/src/b.rs", "// `x.rs`, `fuzz/regressions`, `docs/y.md`\nlet b = \"`c.rs`\";"),
            ("a/b.py", "# `x.rs`"),
        ] {
            assert_eq!(complaints(path, text, ""), [""; 0], "{path} {text}");
        }
    }

    #[test]
    fn other_texts_are_no_paths() {
        for text in ["`a.b`", "`1/2`", "`.rs`", "`cargo test a/b.rs`", "`x*.rs`", "`/`", "```\n`c.rs`\n```"] {
            assert_eq!(complaints("README.md", text, ""), [""; 0], "{text}");
        }
    }

    #[test]
    fn paths_to_nowhere_are_found() {
        for (path, text) in [
            ("README.md", "`a/src/z.rs`"),
            ("README.md", "`a/sources/`"),
            ("README.md", "`fuzz/regression`"),
            ("README.md", "`uzz/regressions`"),
            ("README.md", "[z](docs/z.md)"),
            ("a/src/b.rs", "fn f() {} // See `z.rs`."),
            ("a/b.py", "\"\"\"See `z.rs`.\"\"\""),
            ("Makefile", "# See `z.rs`."),
        ] {
            let found = complaints(path, text, "");
            assert_eq!(found.len(), 1, "{path} {text}: {found:?}");
            assert!(found[0].starts_with(&format!("{path}:1: there is no `")), "{found:?}");
        }
    }

    #[test]
    fn the_list_only_shrinks() {
        let known = "[[elsewhere]]\npath = 'caffe/z.py'\nreason = 'of PyTorch'\n";
        assert_eq!(complaints("README.md", "`caffe/z.py`", known), [""; 0]);
        assert!(complaints("README.md", "", known)[0].contains("caffe/z.py, which breaks the rule no more"));
    }
}
