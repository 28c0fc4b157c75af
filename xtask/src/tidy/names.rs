//! A crate gives a type name that other modules see to one type: what a reader learned of it in one file holds in the
//! next.

use std::collections::BTreeMap;

use super::{
    known::{Known, gone},
    modules::crates,
    source::Tree,
};

/// Complaints about names defined more often than the list allows, and of listed ones that no longer are.
pub(super) fn check(tree: &Tree, known: &Known) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut found = Vec::new();
    for of in crates(tree) {
        let mut places: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for module in &of.modules {
            for (name, line) in &module.types {
                places.entry(name).or_default().push(format!("{}:{line}", module.file));
            }
        }
        for (name, places) in places.into_iter().filter(|(_, places)| places.len() > 1) {
            found.push(format!("{} in {}", name, of.name));
            let listed = known.twice.iter().find(|x| x.of == of.name && x.name == *name);
            if listed.is_none_or(|listed| places.len() > listed.times) {
                let (crate_, n) = (&of.name, places.len());
                complaints.push(format!("{crate_} defines {n} types named {name}: {}", places.join(", ")));
            }
        }
    }
    let listed: Vec<String> = known.twice.iter().map(|x| format!("{} in {}", x.name, x.of)).collect();
    complaints.extend(gone(listed.iter().map(String::as_str), |case| found.iter().any(|x| x == case)));
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(x: &str, y: &str, known: &str) -> Vec<String> {
        let files = [("a/src/lib.rs", "mod x; mod y;"), ("a/src/x.rs", x), ("a/src/y.rs", y)];
        check(&Tree::of(&files), &Known::parse(known).unwrap())
    }

    #[test]
    fn names_that_differ_or_are_private_pass() {
        assert_eq!(complaints("pub struct A;", "pub struct B;", ""), [""; 0]);
        assert_eq!(complaints("pub struct A;", "struct A;", ""), [""; 0]);
        assert_eq!(complaints("pub struct A;", "#[cfg(test)] pub struct A;", ""), [""; 0]);
    }

    #[test]
    fn a_name_of_two_types_is_found() {
        for other in ["pub(crate) enum A {}", "pub trait A {}", "pub type A = u8;", "pub(super) struct A;"] {
            let found = complaints("pub struct A;", other, "");
            assert_eq!(found.len(), 1, "{other}");
            assert!(found[0].starts_with("a defines 2 types named A: a/src/x.rs:1, a/src/y.rs:1"), "{found:?}");
        }
    }

    #[test]
    fn the_list_only_shrinks() {
        let known = "[[twice]]\ncrate = 'a'\nname = 'A'\ntimes = 2\nreason = 'is being renamed'\n";
        assert_eq!(complaints("pub struct A;", "pub struct A;", known), [""; 0]);
        assert_eq!(complaints("pub struct A; mod z { pub struct A; }", "pub struct A;", known).len(), 1);
        assert!(complaints("pub struct A;", "", known)[0].contains("A in a, which breaks the rule no more"));
    }
}
