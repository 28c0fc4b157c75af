//! The diffs that guides show are of code that is there: whoever follows one adds what somebody added before.

use super::{known::Known, source::Tree};

/// Lines of a diff that follow each other in one file.
#[derive(Default)]
struct Hunk {
    /// Where the guide shows it.
    line: usize,
    file: String,
    lines: Vec<String>,
}

/// Complaints about hunks in Markdown, from `+++ path` on, whose lines do not stand in that file as they are shown.
pub(super) fn check(tree: &Tree, _: &Known) -> Vec<String> {
    let mut complaints = Vec::new();
    for guide in tree.files.iter().filter(|file| file.is(&["md"])) {
        for hunk in hunks(&guide.text) {
            let stands = tree.file(&hunk.file).is_some_and(|file| {
                let lines: Vec<&str> = file.text.lines().collect();
                lines.windows(hunk.lines.len()).any(|w| w.iter().zip(&hunk.lines).all(|(a, b)| *a == b))
            });
            if !stands {
                complaints.push(format!("{}:{}: `{}` has no such lines", guide.path, hunk.line, hunk.file));
            }
        }
    }
    complaints
}

/// The hunks of a text: what was added, and what stands around it. `@@` begins another one.
fn hunks(text: &str) -> Vec<Hunk> {
    let (mut hunks, mut open, mut path) = (Vec::new(), false, String::new());
    let mut hunk = Hunk::default();
    let mut end = |hunk: &mut Hunk| {
        let hunk = std::mem::take(hunk);
        if !hunk.lines.is_empty() {
            hunks.push(hunk);
        }
    };
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            end(&mut hunk);
            open = !open && line == "```diff";
        } else if !open {
        } else if let Some(name) = line.strip_prefix("+++ ") {
            end(&mut hunk);
            name.clone_into(&mut path);
        } else if line.starts_with("@@") {
            end(&mut hunk);
        } else if let Some(code) = line.strip_prefix(['+', ' ']) {
            if hunk.lines.is_empty() {
                hunk = Hunk { line: at + 1, file: path.clone(), lines: Vec::new() };
            }
            hunk.lines.push(code.to_owned());
        }
    }
    end(&mut hunk);
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(guide: &str) -> Vec<String> {
        let code = "fn a() {\n    b();\n}\n\nfn c() {}\n";
        check(&Tree::of(&[("docs/add.md", guide), ("src/lib.rs", code)]), &Known::parse("").unwrap())
    }

    #[test]
    fn a_diff_of_what_is_there_passes() {
        let guide = "Text.\n```diff\n+++ src/lib.rs\n fn a() {\n+    b();\n }\n@@\n+fn c() {}\n```\n+ no diff\n";
        assert_eq!(complaints(guide), [""; 0]);
        assert_eq!(complaints("```rust\n+++ src/lib.rs\n+fn d() {}\n```\n"), [""; 0]);
    }

    #[test]
    fn a_diff_of_what_is_not_there_is_found() {
        let there = |lines: &str| complaints(&format!("```diff\n+++ src/lib.rs\n{lines}\n```\n"));
        assert_eq!(there("+fn d() {}"), ["docs/add.md:3: `src/lib.rs` has no such lines"]);
        assert_eq!(there(" fn a() {\n+}").len(), 1, "the lines follow each other");
        assert_eq!(there("+b();").len(), 1, "as they stand there, with their indentation");
        assert_eq!(complaints("```diff\n+++ src/gone.rs\n+fn a() {}\n```\n").len(), 1);
    }
}
