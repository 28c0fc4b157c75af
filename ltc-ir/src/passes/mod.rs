//! Rewrites of whole graphs that pay on any backend.
//!
//! Pure: a graph goes in, a better one comes out, or nothing where there is nothing to gain. A backend runs [`GENERAL`]
//! when it compiles, then its own [`Pass`]es, through [`run`]; [`Switches`] say which. All values stay equal in every
//! bit unless a pass says that it is not exact.
//!
//! | file | what |
//! |---|---|
//! | `views.rs` | views of views become one, copies of what nobody changes none |
//! | `common.rs` | what is computed twice is computed once |
//! | `unused.rs` | gradients nobody asks for are not computed |

mod common;
mod unused;
mod views;

use crate::{
    graph::{Graph, GraphNode, ValueId},
    rewrite::Rewritten,
};

/// One rewrite.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// What it is called in [`Switches`] and reports.
    pub name: &'static str,
    /// Whether every value stays the same in every bit.
    pub exact: bool,
    /// The better graph and how often the rewrite applied; `None` if nowhere.
    pub apply: fn(&Graph) -> Option<(Rewritten, usize)>,
}

/// The passes of this crate, in the order they help each other.
pub const GENERAL: &[Pass] = &[
    Pass { name: "views", exact: true, apply: views::apply },
    Pass { name: "common", exact: true, apply: common::apply },
    Pass { name: "unused", exact: true, apply: unused::apply },
];

/// Which passes run: all but some, or only some.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Switches {
    none: bool,
    /// Exceptions.
    names: Vec<String>,
}

impl Switches {
    /// No pass.
    pub fn none() -> Self {
        Switches { none: true, names: Vec::new() }
    }

    /// Only the pass of this name.
    pub fn only(name: &str) -> Self {
        Switches { none: true, names: vec![name.to_owned()] }
    }

    /// Whether a pass runs.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name) == self.none
    }

    /// Names that are switched, to be compared with those there are.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

impl std::str::FromStr for Switches {
    type Err = String;

    /// `all`, `none`, `-views,-common` (all but these) or `views,common` (only these).
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(',').map(str::trim).filter(|w| !w.is_empty()).collect();
        match words[..] {
            [] | ["all" | "1" | "on"] => return Ok(Switches::default()),
            ["none" | "0" | "off"] => return Ok(Switches::none()),
            _ => {}
        }
        let less: Vec<String> = words.iter().filter_map(|w| w.strip_prefix('-')).map(str::to_owned).collect();
        match less.len() {
            0 => Ok(Switches { none: true, names: words.into_iter().map(str::to_owned).collect() }),
            n if n == words.len() => Ok(Switches { none: false, names: less }),
            _ => Err(format!("`{text}` names passes to run and passes not to run")),
        }
    }
}

/// What a series of passes did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Per pass that did something: its name and how often.
    pub applied: Vec<(&'static str, usize)>,
}

/// Runs the passes that are switched on, in order. `None` if none of them found anything.
pub fn run<'p>(
    graph: &Graph,
    passes: impl IntoIterator<Item = &'p Pass>,
    wanted: impl Fn(&Pass) -> bool,
) -> Option<(Rewritten, Report)> {
    let mut found: Option<Rewritten> = None;
    let mut report = Report::default();
    for pass in passes.into_iter().filter(|p| wanted(p)) {
        let current = found.as_ref().map_or(graph, |f| &f.graph);
        let Some((next, times)) = (pass.apply)(current) else { continue };
        report.applied.push((pass.name, times));
        found = Some(match found {
            None => next,
            Some(before) => compose(before, next),
        });
    }
    found.map(|f| (f, report))
}

/// Two rewritings as one.
fn compose(first: Rewritten, second: Rewritten) -> Rewritten {
    let mut assumed = first.assumed;
    assumed.extend(second.assumed);
    assumed.sort_unstable();
    assumed.dedup();
    let origin = second.origin.into_iter().map(|n| first.origin[n as usize]).collect();
    let constants = [first.constants, second.constants].concat();
    Rewritten { graph: second.graph, origin, assumed, constants }
}

/// Per node whether one of its operands at some position is written by it.
fn writes(node: &GraphNode, value: ValueId) -> bool {
    use crate::args::{Arg, ArgFlags};
    let list = |first: usize, len: usize, mask: &[u64]| {
        let present = (0..len).filter(|i| mask[i / 64] >> (i % 64) & 1 == 1).count();
        node.operands.iter().skip(first).take(present).any(|&o| o == value)
    };
    node.op() == crate::op::Op::write_view() && node.operands.first() == Some(&value)
        || node.args().any(|arg| match arg {
            Arg::Tensor { operand: Some(o), flags } => flags.has(ArgFlags::MUT) && node.operands.get(o) == Some(&value),
            Arg::Tensors { len, mask, first_operand, flags } => {
                flags.has(ArgFlags::MUT) && list(first_operand, len, mask)
            }
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read() {
        let has = |text: &str, name: &str| text.parse::<Switches>().map(|s| s.has(name));
        assert_eq!((has("", "views"), has("all", "views"), has("none", "views")), (Ok(true), Ok(true), Ok(false)));
        assert_eq!((has("-views", "views"), has("-views", "common")), (Ok(false), Ok(true)));
        assert_eq!((has("views, common", "views"), has("views", "common")), (Ok(true), Ok(false)));
        assert!(has("views,-common", "views").is_err());
    }
}
