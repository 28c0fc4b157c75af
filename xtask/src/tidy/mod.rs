//! The house rules as checks, a file per rule. What broke a rule when the rule was made stands in `xtask/tidy.toml`,
//! each case with its reason: a new case fails, and so does a listed one that is gone, so that the lists only shrink.

mod circles;
mod columns;
mod diffs;
mod edges;
mod files;
mod functions;
mod known;
mod modules;
mod names;
mod paths;
mod settings;
mod source;
mod words;

use std::path::Path;

use anyhow::{Result, bail};

use known::Known;
use source::Tree;

/// Fails when the workspace breaks a rule, after printing every case.
pub(crate) fn run(root: &Path) -> Result<()> {
    let (tree, known) = (Tree::read(root)?, Known::read(root)?);
    let mut complaints = edges::check(root)?;
    complaints.extend(tree.broken());
    for rule in RULES {
        complaints.extend(rule(&tree, &known));
    }
    complaints.extend(front_page(&tree));
    for complaint in &complaints {
        println!("    {complaint}");
    }
    if complaints.is_empty() { Ok(()) } else { bail!("{} complaints", complaints.len()) }
}

/// The figures of the front page are those of the page that has the command which made them.
fn front_page(tree: &Tree) -> Option<String> {
    crate::peers::complaint(&tree.file("README.md")?.text, &tree.file("docs/performance.md")?.text)
}

/// A rule says what breaks it and is not listed, and what is listed and does not break it.
type Rule = fn(&Tree, &Known) -> Vec<String>;

const RULES: [Rule; 9] = [
    files::check,
    circles::check,
    names::check,
    words::check,
    functions::check,
    columns::check,
    settings::check,
    paths::check,
    diffs::check,
];
