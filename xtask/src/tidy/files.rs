//! What a file must and must not have.

use std::path::Path;

use super::{known::Known, source::Tree};

/// Where `unsafe` may stand.
const UNSAFE: [&str; 5] =
    ["ltc-torch-sys/", "ltc-kernels/", "ltc-ts/src/exec/buffer", "ltc-ts/src/exec/launch", "ltc-python/src/convert"];

/// Split, as are the paths below, so that this very file passes.
const UNSAFE_KEYWORD: &str = concat!("un", "safe");

/// Folders that belong to one machine.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// Where a failing libtorch call must become an error: `tch` methods have a twin `f_...` that does not panic.
const NO_PANICS: [&str; 2] = ["ltc-ts/src/", "ltc-eager-fallback/src/"];

/// The panicking `tch` calls one is most likely to write there.
const PANICKING: [&str; 15] = [
    ".to_device(",
    ".to_kind(",
    ".to_dtype(",
    ".copy_(",
    ".copy(",
    ".contiguous(",
    ".reshape(",
    ".as_strided(",
    ".double_value(",
    ".int64_value(",
    "Tensor::empty(",
    "Tensor::zeros(",
    "Tensor::ones(",
    "Tensor::from_slice(",
    "Tensor::from_data_size(",
];

const MAX_LINES: usize = 600;

/// Complaints about single files.
pub(super) fn check(tree: &Tree, known: &Known) -> Vec<String> {
    let broken = tree
        .files
        .iter()
        .flat_map(|file| check_file(&file.path, &file.text).into_iter().map(|what| format!("{}: {what}", file.path)));
    broken.chain(known.without_reason()).collect()
}

fn check_file(file: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is = |extensions: &[&str]| Path::new(file).extension().is_some_and(|e| extensions.iter().any(|x| e == *x));
    let within = |places: &[&str]| places.iter().any(|place| file.starts_with(place));

    let lines = text.lines().count();
    if is(&["rs", "cpp", "h", "py", "pyi"]) && lines > MAX_LINES && !file.contains("generated") {
        found.push(format!("{lines} lines, more than {MAX_LINES}"));
    }
    if let Some(path) = MACHINE_PATHS.iter().find(|path| text.contains(**path)) {
        found.push(format!("a path of one machine ({path})"));
    }
    if !is(&["rs"]) {
        return found;
    }
    if !text.trim_start().starts_with("//!") {
        found.push("begins without a module document (//!)".into());
    }
    if !within(&UNSAFE) && text.lines().any(has_unsafe) {
        found.push(format!("{UNSAFE_KEYWORD} code outside {}", UNSAFE.join(", ")));
    }
    if within(&NO_PANICS) {
        let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
        let calls = PANICKING.iter().filter(|call| shipped.lines().any(|line| code(line).contains(*call)));
        found.extend(calls.map(|call| format!("`{call}` panics when libtorch fails: call its twin f_...")));
    }
    found
}

/// The line without its comment.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// Whether the keyword opens a block, an item or an attribute; not `unsafe_code`, not a comment.
fn has_unsafe(line: &str) -> bool {
    let line = code(line);
    line.match_indices(UNSAFE_KEYWORD).any(|(at, word)| {
        let (before, after) = (&line[..at], line[at + word.len()..].trim_start());
        let whole_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let opens = ["{", "(", "fn ", "impl", "extern ", "trait "].iter().any(|s| after.starts_with(s));
        whole_word && (opens || after.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(file: &str, text: &str) -> String {
        check_file(file, &text.replace("UNSAFE", UNSAFE_KEYWORD)).join("\n")
    }

    #[test]
    fn good_files_pass() {
        assert_eq!(complaints("ltc-ir/src/a.rs", "//! A.\nfn f() {}\n"), "");
        assert_eq!(
            complaints("ltc-ir/src/a.rs", "//! No `UNSAFE` here.\n#![forbid(UNSAFE_code)]\n// UNSAFE { }\n"),
            ""
        );
        assert_eq!(complaints("ltc-torch-sys/src/a.rs", "//! A.\nfn f() { UNSAFE { } }\n"), "");
        assert_eq!(complaints("ltc-kernels/src/a.rs", "//! A.\nUNSAFE fn f() {}\n"), "");
        assert_eq!(complaints("ltc-ir/src/generated.rs", &format!("//! A.\n{}", "\n".repeat(900))), "");
    }

    #[test]
    fn a_missing_module_document_is_found() {
        assert!(complaints("ltc-ir/src/a.rs", "fn f() {}\n").contains("module document"));
    }

    #[test]
    fn every_form_of_the_keyword_is_found() {
        for text in [
            "UNSAFE { f() }",
            "UNSAFE{}",
            "pub UNSAFE fn f() {}",
            "UNSAFE impl Send for A {}",
            "#[UNSAFE(no_mangle)]",
            "UNSAFE",
        ] {
            let found = complaints("ltc-ir/src/a.rs", &format!("//! A.\n{text}\n"));
            assert!(found.contains("code outside"), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_long_file_is_found() {
        for file in ["ltc-ir/src/a.rs", "ltc-torch-sys/csrc/a.cpp", "ltc-python/python/a.py"] {
            assert!(complaints(file, &format!("//! A.\n{}", "\n".repeat(600))).contains("more than 600"), "{file}");
        }
    }

    #[test]
    fn a_machine_path_is_found() {
        assert!(complaints("README.md", &format!("see {}me", MACHINE_PATHS[0])).contains("one machine"));
    }

    #[test]
    fn a_panicking_call_is_found_where_it_matters() {
        let text = "//! A.\nfn f(t: &Tensor) { t.to_kind(Kind::Float); }\n";
        assert!(complaints("ltc-ts/src/a.rs", text).contains("`.to_kind(` panics"));
        assert_eq!(complaints("ltc-torch/src/a.rs", text), "");
        assert_eq!(complaints("ltc-ts/src/a.rs", &text.replace("to_kind", "f_to_kind")), "");
        assert_eq!(complaints("ltc-ts/src/a.rs", &text.replace("fn f", "#[cfg(test)]\nfn f")), "");
    }
}
