//! Every `LTC_...` name in code and docs is an environment variable of the table in `ltc-core/src/settings.rs`, a
//! constant of the C++ headers, or listed: a misspelt or renamed variable does nothing, and says nothing either.

use std::collections::BTreeSet;

use super::{
    known::{Known, gone},
    source::Tree,
};

/// The table of all settings.
const TABLE: &str = "ltc-core/src/settings.rs";

/// What all names begin with.
const PREFIX: &str = concat!("LT", "C_");

/// Complaints about names that are nothing, and about listed ones that are no longer there.
pub(super) fn check(tree: &Tree, known: &Known) -> Vec<String> {
    let of_table = tree.file(TABLE).map(|file| names(&file.text)).unwrap_or_default();
    let settings = of_table.iter().filter(|name| name.quoted).map(|name| name.text.clone());
    let headers = tree.files.iter().filter(|file| file.is(&["h"])).flat_map(|file| names(&file.text));
    let constants = headers.filter(|name| !name.quoted).map(|name| name.text);
    let defined: BTreeSet<String> = settings.chain(constants).collect();

    let mut complaints = Vec::new();
    let mut met = BTreeSet::new();
    for file in tree.files.iter().filter(|file| !file.is_of_tidy()) {
        for name in names(&file.text) {
            let is_prefix = name.text.ends_with('_') && defined.iter().any(|x| x.starts_with(&name.text));
            let listed = known.variable.iter().any(|x| x.name == name.text);
            if !defined.contains(&name.text) && !is_prefix && !listed {
                let (path, line, text) = (&file.path, name.line, &name.text);
                complaints.push(format!("{path}:{line}: {text} is no setting of {TABLE} and no constant of a header"));
            }
            met.insert(name.text);
        }
    }
    complaints.extend(gone(known.variable.iter().map(|x| x.name.as_str()), |name| met.contains(name)));
    complaints
}

struct Name {
    text: String,
    line: usize,
    /// Is a string of its own.
    quoted: bool,
}

/// The names in a text.
fn names(text: &str) -> Vec<Name> {
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let of_line = |(at, line): (usize, &str)| -> Vec<Name> {
        let found = line.match_indices(PREFIX).filter_map(|(from, _)| {
            let length = line[from..].find(|c| !is_name(c)).unwrap_or(line.len() - from);
            let (before, after) = (&line[..from], &line[from + length..]);
            let goes_on = |c: char| c.is_alphanumeric() || c == '_';
            let whole = !before.ends_with(goes_on) && !after.starts_with(goes_on) && length > PREFIX.len();
            let quoted = before.ends_with('"') && after.starts_with('"');
            whole.then(|| Name { text: line[from..from + length].to_owned(), line: at + 1, quoted })
        });
        found.collect()
    };
    text.lines().enumerate().flat_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In these texts, `$` stands for the prefix.
    fn complaints(path: &str, text: &str, known: &str) -> Vec<String> {
        let [table, header, text, known] =
            ["setting(\"$A_B\", Switch) // $C says", "enum { $MUT };", text, known].map(|x| x.replace('$', PREFIX));
        let files = [(TABLE, &*table), ("a.h", &*header), (path, &*text)];
        let found = check(&Tree::of(&files), &Known::parse(&known).unwrap());
        found.into_iter().filter(|complaint| !complaint.starts_with(TABLE)).collect()
    }

    #[test]
    fn settings_and_constants_pass() {
        for text in ["`$A_B=1`, $A_B.", "all of `$A_*`", "all `$*`", "$MUT", "MY_$X", "$x"] {
            assert_eq!(complaints("a.md", text, ""), [""; 0], "{text}");
        }
    }

    #[test]
    fn other_names_are_found() {
        for path in ["a.md", "a.rs", "a.py", "Makefile"] {
            let found = complaints(path, "//\n// $AB=1, or $C\n", "");
            assert_eq!(found.len(), 2, "{found:?}");
            assert!(found[0].starts_with(&format!("{path}:2: {PREFIX}AB is no setting")), "{found:?}");
        }
    }

    #[test]
    fn the_list_only_shrinks() {
        let known = "[[variable]]\nname = '$AB'\nreason = 'a test misspells it'\n";
        assert_eq!(complaints("a.md", "$AB", known), [""; 0]);
        assert!(complaints("a.md", "", known)[0].contains("AB, which breaks the rule no more"));
    }
}
