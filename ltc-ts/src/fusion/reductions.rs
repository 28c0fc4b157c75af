//! The operators that reduce dimensions: rows of the operator table that say what they reduce
//! ([`ltc_ir::table::Reduce`]).
//!
//! Their expressions follow libtorch's CPU kernels
//! (`aten/src/ATen/native/cpu/{SoftMax,layer_norm,ReduceOps}Kernel.cpp`, `aten/src/ATen/native/Normalization.cpp`), but
//! sums are taken in another order.

use ltc_ir::{Arg, GraphNode, table::Over};
use smallvec::SmallVec;

use super::iteration_space::ReducedDims;

/// Up to which size an operator is worth a kernel of its own, with nothing around it: libtorch's kernels are good.
/// `cargo run --release -p ltc-torch --example kernels` with and without `LTC_FUSION=0` tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alone {
    Never,
    /// Up to so many elements.
    Small,
    Always,
}

impl Alone {
    /// Of an operator that reduces, by its short name.
    pub(super) fn of(name: &str) -> Alone {
        match name {
            "_softmax" | "_log_softmax" | "_softmax_backward_data" | "_log_softmax_backward_data" => Alone::Never,
            "_safe_softmax" | "mse_loss" | "native_batch_norm" => Alone::Always,
            _ => Alone::Small,
        }
    }
}

/// The dimensions a node reduces, of a tensor of this rank. `None` if its arguments do not say.
pub(super) fn dims(over: Over, node: &GraphNode, rank: usize) -> Option<ReducedDims> {
    let mut dims: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
    let at = |d: i64| usize::try_from(if d < 0 { d + rank as i64 } else { d }).ok().filter(|&d| d < rank);
    match over {
        Over::All => dims.fill(true),
        Over::Channels => (0..rank).filter(|&d| d != 1).for_each(|d| dims[d] = true),
        Over::Dim(argument) => match node.args().nth(argument)? {
            Arg::Int(_) if rank == 0 => {}
            Arg::Int(d) => dims[at(d)?] = true,
            _ => return None,
        },
        Over::Dims(argument) => match node.args().nth(argument)? {
            Arg::Ints([]) | Arg::None => dims.fill(true),
            Arg::Ints(_) if rank == 0 => {}
            Arg::Ints(words) => {
                for d in words {
                    dims[at(*d as i64)?] = true;
                }
            }
            _ => return None,
        },
        Over::Last(argument) => match node.args().nth(argument)? {
            Arg::Ints(words) => dims[rank.checked_sub(words.len())?..].fill(true),
            _ => return None,
        },
    }
    (over != Over::Channels || rank > 1).then_some(ReducedDims { dims, channels: over == Over::Channels })
}
