//! Retired words: once the tree says a thing by the field's word, no new name says it by the old one.

use proc_macro2::{TokenStream, TokenTree};

use super::{
    known::{FILE, Known},
    source::{File, Tree},
};

/// Complaints about names with a retired word as one of their parts: `husk` is a part of `Husk`, `reuse_husk` and
/// `HuskPool`, not of `husky`. A word of several parts, such as `went_over`, is one where its parts follow each other.
pub(super) fn check(tree: &Tree, known: &Known) -> Vec<String> {
    let words: Vec<(Vec<String>, &str)> = known.words.iter().map(|(old, new)| (parts(old), new.as_str())).collect();
    let mut complaints = Vec::new();
    for file in tree.files.iter().filter(|file| !file.is_generated()) {
        let mut names = identifiers(file);
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        // One complaint a name: its first line.
        names.dedup_by(|(a, _), (b, _)| a == b);
        for (name, line) in names {
            let parts = parts(&name);
            for (old, new) in &words {
                if parts.windows(old.len()).any(|window| window == old) {
                    let (path, old) = (&file.path, old.join("_"));
                    complaints.push(format!("{path}:{line}: `{name}`: the word is `{new}`, not `{old}` ({FILE})"));
                }
            }
        }
    }
    complaints
}

/// The names in a file of code, with their lines.
fn identifiers(file: &File) -> Vec<(String, usize)> {
    if file.is(&["rs"]) {
        let mut found = Vec::new();
        if let Ok(tokens) = file.text.parse() {
            of_rust(tokens, &mut found);
        }
        found
    } else if file.is(&["cpp", "h"]) {
        of_text(&file.text, &["//", "/*", "\"", "'"])
    } else if file.is(&["py", "pyi"]) {
        of_text(&file.text, &["#", "\"\"\"", "'''", "\"", "'"])
    } else {
        Vec::new()
    }
}

fn of_rust(tokens: TokenStream, found: &mut Vec<(String, usize)>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => found.push((ident.to_string(), ident.span().start().line)),
            TokenTree::Group(group) => of_rust(group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The names in C++ or Python, without comments and strings, which begin with one of `quotes`. There is no need to know
/// more of these languages, and so no need of a parser of theirs.
fn of_text(text: &str, quotes: &[&str]) -> Vec<(String, usize)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        let quote = quotes.iter().find(|quote| rest.starts_with(**quote));
        let length = if let Some(quote) = quote {
            quoted(rest, quote)
        } else if is_name(first) {
            let name = rest.split(|c| !is_name(c)).next().unwrap_or_default();
            found.push((name.to_owned(), line));
            name.len()
        } else {
            first.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found.retain(|(name, _)| !name.starts_with(|c: char| c.is_ascii_digit()));
    found
}

/// The length of a comment or a string at the beginning of a text.
fn quoted(text: &str, quote: &str) -> usize {
    let body = &text[quote.len()..];
    let length = match quote {
        "//" | "#" => body.find('\n').unwrap_or(body.len()),
        "/*" => body.find("*/").map_or(body.len(), |end| end + 2),
        _ => {
            let mut at = 0;
            while let Some(c) = body[at..].chars().next().filter(|_| !body[at..].starts_with(quote)) {
                // What follows a backslash ends nothing.
                let escaped = if c == '\\' { body[at + 1..].chars().next().map_or(0, char::len_utf8) } else { 0 };
                at += c.len_utf8() + escaped;
            }
            (at + quote.len()).min(body.len())
        }
    };
    quote.len() + length
}

/// The words of a name, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let chars: Vec<char> = name.chars().collect();
    let mut new = true;
    for (i, c) in chars.iter().enumerate() {
        let lower = |at: usize| chars.get(at).is_some_and(|c| c.is_lowercase() || c.is_ascii_digit());
        // `A` begins a word in `anA` and in `ABc`, not in `BA`.
        new |= c.is_uppercase() && (i > 0 && lower(i - 1) || lower(i + 1));
        if *c == '_' {
            new = true;
            continue;
        }
        if new {
            found.push(String::new());
        }
        new = false;
        if let Some(word) = found.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = "[words]\nhusk = 'recycled node'\nwent_over = 'tiered_up'\n";

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)]), &Known::parse(KNOWN).unwrap())
    }

    #[test]
    fn names_fall_into_words() {
        for (name, words) in [
            ("reuse_husk", "reuse husk"),
            ("HuskPool", "husk pool"),
            ("MAX_HUSK", "max husk"),
            ("IRHusk", "ir husk"),
            ("_x86Husk2", "x86 husk2"),
        ] {
            assert_eq!(parts(name).join(" "), words);
        }
    }

    #[test]
    fn a_retired_word_in_a_name_is_found() {
        for (path, text) in [
            ("a.rs", "fn reuse_husk() {}"),
            ("a.rs", "fn f() { g!(HuskPool::new()) }"),
            ("a.cpp", "int husk;"),
            ("a.h", "/* \" */ struct Husk {};"),
            ("a.py", "'it\\'s' ; self.husk = 1"),
            ("a.py", "\"\"\"a \" b\"\"\"\nhusk = 1"),
            ("a.rs", "let went_over_there = 1;"),
        ] {
            let found = complaints(path, text);
            assert_eq!(found.len(), 1, "{path} {text}: {found:?}");
        }
        assert_eq!(
            complaints("a.py", "x = 1\nhusk = 2\nhusk = 3"),
            ["a.py:2: `husk`: the word is `recycled node`, not `husk` (xtask/tidy.toml)"]
        );
    }

    #[test]
    fn other_text_passes() {
        for (path, text) in [
            ("a.rs", "//! A husk.\nfn husky() { print(\"husk\") } // husk"),
            ("a.cpp", "// husk\n/* husk */ auto x = \"husk\" + 'h';"),
            ("a.py", "# husk\nx = 'husk' + \"\"\"\nhusk\n\"\"\""),
            ("a.rs", "fn went_far_over() {}"),
            ("a.md", "husk"),
        ] {
            assert_eq!(complaints(path, text), [""; 0], "{path} {text}");
        }
    }
}
