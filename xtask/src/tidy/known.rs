//! `xtask/tidy.toml`: what broke a rule when the rule was made, with the reason why it still does.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use serde::Deserialize;

/// The lists.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Known {
    /// Modules that import each other.
    pub(super) circle: Vec<Circle>,
    /// Type names that a crate defines more than once.
    pub(super) twice: Vec<Twice>,
    /// Functions that are long or nested deeply.
    pub(super) function: Vec<Function>,
    /// Files with lines that are too wide, and how many: may fall, but not rise.
    pub(super) wide: BTreeMap<String, usize>,
    /// `LTC_...` names that are no setting of users.
    pub(super) variable: Vec<Variable>,
    /// Paths in prose that are not in the repository.
    pub(super) elsewhere: Vec<Elsewhere>,
    /// Retired words and those that replaced them.
    pub(super) words: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Circle {
    /// The module above them: a crate, or `crate::module`.
    pub(super) within: String,
    pub(super) modules: BTreeSet<String>,
    /// How many pairs of them there are where one imports the other: may fall, but not rise.
    pub(super) arrows: usize,
    pub(super) reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Twice {
    #[serde(rename = "crate")]
    pub(super) of: String,
    pub(super) name: String,
    /// In how many modules: may fall, but not rise.
    pub(super) times: usize,
    pub(super) reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Function {
    pub(super) file: String,
    /// `function`, or `Type::method`.
    pub(super) name: String,
    /// How long it may be, where that is more than others may.
    pub(super) lines: Option<usize>,
    /// How deep it may go, where that is deeper than others may.
    pub(super) depth: Option<usize>,
    pub(super) reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Elsewhere {
    pub(super) path: String,
    pub(super) reason: String,
}

impl Known {
    /// Reads the lists of the repository.
    pub(super) fn read(root: &Path) -> Result<Known> {
        let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("{FILE} is not there"))?;
        Known::parse(&text).with_context(|| FILE.to_owned())
    }

    pub(super) fn parse(text: &str) -> Result<Known> {
        Ok(toml::from_str(text)?)
    }

    /// Complaints about cases without a reason.
    pub(super) fn without_reason(&self) -> Vec<String> {
        let reasons = (self.circle.iter().map(|x| (&x.within, &x.reason)))
            .chain(self.twice.iter().map(|x| (&x.name, &x.reason)))
            .chain(self.function.iter().map(|x| (&x.name, &x.reason)))
            .chain(self.variable.iter().map(|x| (&x.name, &x.reason)))
            .chain(self.elsewhere.iter().map(|x| (&x.path, &x.reason)));
        reasons
            .filter(|(_, reason)| reason.is_empty())
            .map(|(what, _)| format!("{FILE}: {what} has no reason"))
            .collect()
    }
}

/// Where the lists are.
pub(super) const FILE: &str = "xtask/tidy.toml";

/// Complaints about cases that are listed but no longer there.
pub(super) fn gone<'a>(listed: impl IntoIterator<Item = &'a str>, there: impl Fn(&str) -> bool) -> Vec<String> {
    let gone = listed.into_iter().filter(|case| !there(case));
    gone.map(|case| format!("{FILE} lists {case}, which breaks the rule no more: take it off the list")).collect()
}
