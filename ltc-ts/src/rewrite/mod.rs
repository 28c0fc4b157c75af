//! Rewrites of whole graphs that pay because of libtorch's kernels, after those that pay anywhere ([`ltc_ir::passes`]).
//!
//! Each is a [`Pass`]: pure graph code that asks the operator table, declines where it would lose, and can be switched
//! off by its name. `docs/add-a-rewrite.md` says how to add one.
//!
//! | file | what |
//! |---|---|
//! | `masked.rs` | `a[mask] = s` is `where`, which can be fused |
//! | `attention/` | attention written by hand, and its gradient, run as libtorch's fused kernels |
//! | `bias.rs` | the bias of a product joins the kernel after it |
//! | `layout.rs` | convolutions and what lies between them run channels-last, where asked for |

mod attention;
mod bias;
mod layout;
mod masked;

use ltc_ir::{
    Graph, Rewritten,
    passes::{GENERAL, Pass, Report, Switches, run},
};

use crate::{config::Fusion, target::Target};

/// The passes of this crate.
const OURS: &[Pass] = &[
    Pass { name: "masked", exact: true, apply: masked::apply },
    Pass { name: "attention", exact: false, apply: attention::apply },
    Pass { name: "bias", exact: false, apply: bias::apply },
    Pass { name: "layout", exact: false, apply: layout::apply },
];

/// Passes that run only when [`Switches`] name them: on the machines at hand they gained nothing beyond noise, or
/// libtorch's kernels give other bits on the other thread.
const ASKED_FOR: &[&str] = &["layout", "branches"];

/// Passes that pay because of the CPU's kernels, or bring some of them in.
const FOR_THE_CPU: &[&str] = &["attention", "bias", "layout"];

/// Names of all passes, in the order they run; last, what happens to steps (`Plan::join_in_place` and
/// `Plan::put_off_waits` of `crate::fusion`, `branches::plan` of `crate::program`).
pub fn rewrite_names() -> impl Iterator<Item = &'static str> {
    GENERAL.iter().chain(OURS).map(|p| p.name).chain(["join", "waits", "branches"])
}

/// Whether the switches allow a pass.
pub(crate) fn is_wanted(name: &str, switches: &Switches) -> bool {
    switches.has(name) && (!ASKED_FOR.contains(&name) || switches.names().iter().any(|n| n == name))
}

/// The better graph, if any pass finds one. Passes that are not exact run where kernels need not be either.
pub(crate) fn rewrite(graph: &Graph, target: &Target) -> Option<(Rewritten, Report)> {
    let (switches, is_full) = (&target.config.rewrites, target.config.fusion == Fusion::Full);
    let pays = |p: &Pass| target.place.is_cpu() || !FOR_THE_CPU.contains(&p.name);
    let allowed = |p: &Pass| is_wanted(p.name, switches) && (p.exact || is_full) && pays(p);
    run(graph, GENERAL.iter().chain(OURS), allowed)
}
