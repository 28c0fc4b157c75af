//! No import circle between the folders of a crate, nor between the files of a folder: read in the right order, each
//! file needs only what was read before. A module and those inside it may use each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    known::{FILE, Known},
    modules::{Crate, crates},
    source::Tree,
};

/// Uses between modules side by side, and one place of each.
type Arrows = BTreeMap<(String, String), String>;

/// Modules that reach each other.
struct Circle {
    within: String,
    modules: BTreeSet<String>,
    arrows: Arrows,
}

/// Complaints about circles that are not listed, have grown, or are gone.
pub(super) fn check(tree: &Tree, known: &Known) -> Vec<String> {
    let found: Vec<Circle> = crates(tree).iter().flat_map(circles).collect();
    let mut complaints = Vec::new();
    for circle in &found {
        let listed = known.circle.iter().find(|x| x.within == circle.within && circle.modules.is_subset(&x.modules));
        if listed.is_some_and(|listed| circle.arrows.len() <= listed.arrows) {
            continue;
        }
        let modules: Vec<&str> = circle.modules.iter().map(String::as_str).collect();
        let uses = circle.arrows.iter().map(|((from, to), place)| format!("\n        {from} -> {to} ({place})"));
        let uses: String = uses.collect();
        let (within, modules, n) = (&circle.within, modules.join(", "), circle.arrows.len());
        let more = listed.map(|listed| format!(", more than the {} of {FILE}", listed.arrows)).unwrap_or_default();
        complaints.push(format!("{within}: a circle of modules, {n} arrows{more}: {modules}{uses}"));
    }
    for listed in &known.circle {
        let of = found.iter().filter(|x| x.within == listed.within && x.modules.is_subset(&listed.modules));
        let left: BTreeSet<&String> = of.flat_map(|circle| &circle.modules).collect();
        let gone: Vec<&str> =
            listed.modules.iter().filter(|module| !left.contains(module)).map(String::as_str).collect();
        if !gone.is_empty() {
            let gone = gone.join(", ");
            complaints
                .push(format!("{FILE}: {}: in no circle any more, take them off the list: {gone}", listed.within));
        }
    }
    complaints
}

/// The circles of a crate.
fn circles(of: &Crate) -> Vec<Circle> {
    let mut levels: BTreeMap<String, Arrows> = BTreeMap::new();
    for arrow in of.arrows() {
        let (from, to) = (&arrow.from.path, &arrow.to.path);
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        // One is inside the other, or they are the same.
        let (Some(a), Some(b)) = (from.get(common), to.get(common)) else { continue };
        let within = [std::slice::from_ref(&of.name), &from[..common]].concat().join("::");
        let place = || format!("{}:{}", arrow.from.file, arrow.line);
        levels.entry(within).or_default().entry((a.clone(), b.clone())).or_insert_with(place);
    }
    levels.into_iter().flat_map(|(within, arrows)| knots(&within, &arrows)).collect()
}

/// The groups of modules of one level that reach each other.
fn knots(within: &str, arrows: &Arrows) -> Vec<Circle> {
    let mut left: BTreeSet<&String> = arrows.keys().flat_map(|(from, to)| [from, to]).collect();
    let mut found = Vec::new();
    while let Some(first) = left.pop_first() {
        let reached = reach(arrows, first, false);
        let modules: BTreeSet<String> = reach(arrows, first, true).intersection(&reached).cloned().collect();
        left.retain(|module| !modules.contains(*module));
        if !modules.is_empty() {
            let inner = |(from, to): &(String, String)| modules.contains(from) && modules.contains(to);
            let arrows = arrows.iter().filter(|(ends, _)| inner(ends)).map(|(ends, at)| (ends.clone(), at.clone()));
            found.push(Circle { within: within.to_owned(), arrows: arrows.collect(), modules });
        }
    }
    found
}

/// What can be reached from a module along the arrows, or against them.
fn reach(arrows: &Arrows, first: &str, against: bool) -> BTreeSet<String> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![first]);
    while let Some(at) = next.pop() {
        for (from, to) in arrows.keys() {
            let (here, there) = if against { (to, from) } else { (from, to) };
            if here == at && reached.insert(there.clone()) {
                next.push(there);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first lines of the complaints about these files, where `known` is listed.
    fn complaints(files: &[(&str, &str)], known: &str) -> Vec<String> {
        let found = check(&Tree::of(files), &Known::parse(known).unwrap());
        found.iter().map(|text| text.lines().next().unwrap().to_owned()).collect()
    }

    const ROOT: (&str, &str) = ("a/src/lib.rs", "mod x; mod y; pub use y::Y;");

    #[test]
    fn modules_in_an_order_pass() {
        let y = ("a/src/y.rs", "pub struct Y;");
        assert_eq!(complaints(&[ROOT, ("a/src/x.rs", "use crate::y::Y;"), y], ""), [""; 0]);
        // A module and its parts may use each other.
        let parts = [ROOT, ("a/src/x.rs", "mod z; use z::Z; pub struct X;"), ("a/src/x/z.rs", "use super::X;"), y];
        assert_eq!(complaints(&parts, ""), [""; 0]);
        // As may tests.
        let tests = ("a/src/y.rs", "pub struct Y; #[cfg(test)] mod tests { use crate::x::X; }");
        assert_eq!(complaints(&[ROOT, ("a/src/x.rs", "use crate::y::Y;"), tests], ""), [""; 0]);
        // Other crates have modules of the same names.
        let other = ("a/src/y.rs", "use other::x::X; pub struct Y;");
        assert_eq!(complaints(&[ROOT, ("a/src/x.rs", "use crate::y::Y;"), other], ""), [""; 0]);
    }

    #[test]
    fn a_circle_is_found_however_it_is_written() {
        for (x, y) in [
            ("use crate::y::Y;", "use crate::x::X;"),
            ("use super::y::Y;", "use crate::{x::{X, Z}};"),
            ("use crate::Y;", "pub struct Y; fn f() -> crate::x::X { }"),
            ("use crate::y;", "fn f() { vec![1, super::x::g()]; }"),
            ("fn f() { let _: crate::y::Y; }", "fn f() { crate::x::g(|a: u8| a); }"),
            ("use super::y::*;", "pub use super::x::X as Z;"),
        ] {
            let found = complaints(&[ROOT, ("a/src/x.rs", x), ("a/src/y.rs", y)], "");
            assert_eq!(found, ["a: a circle of modules, 2 arrows: x, y"], "{x} {y}");
        }
    }

    #[test]
    fn folders_count_as_one() {
        let files = [
            ("a/src/lib.rs", "mod x; mod y;"),
            ("a/src/x/mod.rs", "mod p; mod q;"),
            ("a/src/x/p.rs", "use crate::y::Y;"),
            ("a/src/x/q.rs", "pub struct Q;"),
            ("a/src/y.rs", "use crate::x::q::Q; pub struct Y;"),
        ];
        assert_eq!(complaints(&files, ""), ["a: a circle of modules, 2 arrows: x, y"]);
    }

    #[test]
    fn lists_only_shrink() {
        let list = |modules: &str, arrows: usize| {
            format!("[[circle]]\nwithin = 'a'\nmodules = {modules}\narrows = {arrows}\nreason = 'is being untied'\n")
        };
        let files = [ROOT, ("a/src/x.rs", "use crate::Y;"), ("a/src/y.rs", "use crate::x::X; pub struct Y;")];
        assert_eq!(complaints(&files, &list("['x', 'y']", 2)), [""; 0]);
        assert!(complaints(&files, &list("['x', 'y']", 1))[0].contains("2 arrows, more than the 1 of"));
        assert!(complaints(&files, &list("['x', 'y', 'z']", 2))[0].contains("take them off the list: z"));
        assert!(complaints(&[ROOT], &list("['x', 'y']", 2))[0].contains("take them off the list: x, y"));
    }
}
