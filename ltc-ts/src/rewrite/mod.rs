//! Rewrites of whole graphs that pay because of libtorch's kernels, after those that pay anywhere ([`ltc_ir::passes`]).
//!
//! Each is a [`Pass`]: pure graph code that asks the operator table, declines where it would lose, and can be switched off
//! by its name. `docs/add-a-rewrite.md` says how to add one.
//!
//! | file | what |
//! |---|---|
//! | `masked.rs` | `a[mask] = s` is `where`, which can be fused |
//! | `layout.rs` | convolutions and what lies between them run channels-last |

mod layout;
mod masked;

use ltc_ir::{
    Graph, Rewritten,
    passes::{GENERAL, Pass, Report, Switches, run},
};

use crate::backend::Fusion;

/// The passes of this crate.
const OURS: &[Pass] = &[
    Pass { name: "masked", exact: true, apply: masked::apply },
    Pass { name: "layout", exact: false, apply: layout::apply },
];

/// Names of all passes, in the order they run.
pub fn rewrite_names() -> impl Iterator<Item = &'static str> {
    GENERAL.iter().chain(OURS).map(|p| p.name)
}

/// The better graph, if any pass finds one. Passes that are not exact run where kernels need not be either.
pub(crate) fn rewrite(graph: &Graph, switches: &Switches, fusion: Fusion) -> Option<(Rewritten, Report)> {
    run(graph, GENERAL.iter().chain(OURS), |p| switches.has(p.name) && (p.exact || fusion == Fusion::Full))
}
