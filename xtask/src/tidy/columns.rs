//! Lines that fit a window beside another: at most 120 columns in code and prose.

use std::collections::BTreeMap;

use super::{
    known::{Known, gone},
    source::{File, Tree},
};

const MAX_COLUMNS: usize = 120;

/// Complaints about files with more wide lines than the list allows, and of listed ones that have none.
pub(super) fn check(tree: &Tree, known: &Known) -> Vec<String> {
    let mut found = BTreeMap::new();
    let files = tree.files.iter().filter(|file| file.is(&["rs", "cpp", "h", "py", "pyi", "md"]));
    for file in files.filter(|file| !file.is_generated()) {
        let wide = wide_lines(file);
        if !wide.is_empty() {
            found.insert(file.path.as_str(), wide);
        }
    }
    let mut complaints = Vec::new();
    for (path, lines) in &found {
        let allowed = known.wide.get(*path).copied().unwrap_or(0);
        if lines.len() > allowed {
            let n = lines.len();
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            let lines = lines.join(", ");
            let besides = if allowed > 0 { format!(", where {allowed} are listed") } else { String::new() };
            complaints.push(format!("{path}: {n} lines of more than {MAX_COLUMNS} columns{besides}: {lines}"));
        }
    }
    complaints.extend(gone(known.wide.keys().map(String::as_str), |path| found.contains_key(path)));
    complaints
}

/// The numbers of the lines that are too wide. In Markdown, rows of tables and lines with one long word, such as a
/// link, cannot be wrapped.
fn wide_lines(file: &File) -> Vec<usize> {
    let lines = file.text.lines().enumerate().filter(|(_, line)| line.chars().count() > MAX_COLUMNS);
    let exempt = |line: &str| {
        let line = line.trim_start_matches(['/', '!', '#', '*', ' ']);
        let longest = line.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
        file.is(&["md"]) && line.starts_with('|') || longest > MAX_COLUMNS - 20
    };
    lines.filter(|(_, line)| !exempt(line)).map(|(at, _)| at + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str, known: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)]), &Known::parse(known).unwrap())
    }

    #[test]
    fn lines_that_fit_or_cannot_be_wrapped_pass() {
        assert_eq!(complaints("a.rs", &format!("//{}\n", " é".repeat(59)), ""), [""; 0]);
        assert_eq!(complaints("a.md", &format!("| {}|\n", "a ".repeat(99)), ""), [""; 0]);
        assert_eq!(complaints("a.md", &format!("a [b](https://{})\n", "c".repeat(110)), ""), [""; 0]);
        assert_eq!(complaints("a.toml", &"a ".repeat(99), ""), [""; 0]);
    }

    #[test]
    fn wide_lines_are_found() {
        for path in ["a.rs", "a.cpp", "a.h", "a.py", "a.pyi", "a.md"] {
            let found = complaints(path, &format!("a\n// {}\n", "a ".repeat(60)), "");
            assert_eq!(found, [format!("{path}: 1 lines of more than 120 columns: 2")]);
        }
        assert_eq!(complaints("a.rs", &format!("// | {}\n", "a ".repeat(99)), "").len(), 1);
    }

    #[test]
    fn the_list_only_shrinks() {
        let known = "[wide]\n'a.md' = 1\n";
        let wide = "a ".repeat(61) + "\n";
        assert_eq!(complaints("a.md", &wide, known), [""; 0]);
        assert_eq!(
            complaints("a.md", &wide.repeat(2), known),
            ["a.md: 2 lines of more than 120 columns, where 1 are listed: 1, 2"]
        );
        assert!(complaints("a.md", "a\n", known)[0].contains("a.md, which breaks the rule no more"));
    }
}
