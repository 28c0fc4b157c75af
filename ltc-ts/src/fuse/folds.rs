//! The operators that fold dimensions away, each with its formulas.
//!
//! Arguments are letters ([`super::formula`]). Formulas follow libtorch's CPU kernels (`aten/src/ATen/native/cpu/{SoftMax,
//! layer_norm,ReduceOps}Kernel.cpp`, `native/Normalization.cpp`), but sums are taken in another order.

use ltc_ir::{Arg, GraphNode};
use smallvec::SmallVec;

use super::domain::Fold;

/// Which dimensions are folded away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Over {
    All,
    /// The dimension this argument names.
    Dim(usize),
    /// The dimensions this argument lists; all if it lists none.
    Dims(usize),
    /// As many of the last dimensions as this argument lists.
    Last(usize),
    /// All but dimension 1, to which vectors belong.
    Channels,
}

/// Up to which size an operator is worth a kernel of its own, with nothing around it: libtorch's kernels are good.
/// `cargo run --release -p ltc-torch --example kernels` with and without `LTC_FUSION=0` tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alone {
    Never,
    /// Up to so many elements.
    Small,
    Always,
}
use Alone::{Always, Never, Small};

/// One operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) over: Over,
    pub(super) alone: Alone,
    /// What integer and boolean arguments must be. A list of booleans must be all true.
    needs: &'static [(usize, i64)],
    /// Per result, written arguments first: the argument written, and the formula.
    pub(super) results: &'static [(Option<usize>, &'static str)],
}

const fn row(
    name: &'static str,
    over: Over,
    alone: Alone,
    needs: &'static [(usize, i64)],
    results: &'static [(Option<usize>, &'static str)],
) -> Row {
    Row { name, over, alone, needs, results }
}

/// All rows, sorted by name. The gradient of batch norm is not among them: at the sizes of the residual network in
/// `ltc-python/examples` libtorch's kernel and that of the ReLU before it are faster than one of ours.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("_log_softmax", Over::Dim(1), Never, &[(2, 0)], &[(None, "moved = a - amax(a); moved - log(sum(exp(moved)))")]),
    row("_log_softmax_backward_data", Over::Dim(2), Never, &[], &[(None, "a - exp(b) * sum(a)")]),
    row("_safe_softmax", Over::Dim(1), Always, &[], &[(None,
        "top = amax(a); e1 = exp(a - top); select(top == -1 / 0, 0, e1 / sum(e1))")]),
    row("_softmax", Over::Dim(1), Never, &[(2, 0)], &[(None, "e1 = exp(a - amax(a)); e1 / sum(e1)")]),
    row("_softmax_backward_data", Over::Dim(2), Never, &[], &[(None, "ab = a * b; ab - b * sum(ab)")]),
    row("amax", Over::Dims(1), Small, &[], &[(None, "amax(a)")]),
    row("amin", Over::Dims(1), Small, &[], &[(None, "amin(a)")]),
    row("logsumexp", Over::Dims(1), Small, &[], &[(None,
        "top = amax(a); shift = select(abs(top) == 1 / 0, 0, top); log(sum(exp(a - shift))) + shift")]),
    row("max", Over::All, Small, &[], &[(None, "amax(a)")]),
    row("mean", Over::All, Small, &[], &[(None, "sum(a) / count")]),
    row("mean.dim", Over::Dims(1), Small, &[], &[(None, "sum(a) / count")]),
    row("min", Over::All, Small, &[], &[(None, "amin(a)")]),
    row("mse_loss", Over::All, Always, &[(2, 1)], &[(None, "d1 = a - b; sum(d1 * d1) / count")]),
    row("mse_loss", Over::All, Always, &[(2, 2)], &[(None, "d1 = a - b; sum(d1 * d1)")]),
    row("native_batch_norm", Over::Channels, Always, &[(5, 1)], &[
        (Some(3), "mean = sum(a) / count; d * (1 - g) + mean * g"),
        (Some(4), "mean = sum(a) / count; d1 = a - mean; e * (1 - g) + sum(d1 * d1) / (count - 1) * g"),
        (None, "mean = sum(a) / count; d1 = a - mean; d1 * (1 / sqrt(sum(d1 * d1) / count + h)) * b + c"),
        (None, "sum(a) / count"),
        (None, "mean = sum(a) / count; d1 = a - mean; 1 / sqrt(sum(d1 * d1) / count + h)"),
    ]),
    row("native_layer_norm", Over::Last(1), Small, &[], &[
        (None, "mean = sum(a) / count; d1 = a - mean; d1 * (1 / sqrt(sum(d1 * d1) / count + e)) * c + d"),
        (None, "sum(a) / count"),
        (None, "mean = sum(a) / count; d1 = a - mean; 1 / sqrt(sum(d1 * d1) / count + e)"),
    ]),
    row("sum", Over::All, Small, &[], &[(None, "sum(a)")]),
    row("sum.dim_IntList", Over::Dims(1), Small, &[], &[(None, "sum(a)")]),
];

/// The row of a node, by its operator's short name (without `aten::`) and what its arguments are.
pub(super) fn find(name: &str, node: &GraphNode) -> Option<&'static Row> {
    let first = ROWS.partition_point(|r| r.name < name);
    ROWS[first..].iter().take_while(|r| r.name == name).find(|row| {
        let holds = |(at, value): &(usize, i64)| match node.args().nth(*at) {
            Some(Arg::Int(i)) => i == *value,
            Some(Arg::Bool(b)) => i64::from(b) == *value,
            Some(Arg::Bools(all)) => all.iter().all(|b| *b == *value as u64),
            _ => false,
        };
        row.needs.iter().all(holds)
    })
}

/// The dimensions a node folds away, of a tensor of this rank. `None` if its arguments do not say.
pub(super) fn dims(row: &Row, node: &GraphNode, rank: usize) -> Option<Fold> {
    let mut dims: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
    let at = |d: i64| usize::try_from(if d < 0 { d + rank as i64 } else { d }).ok().filter(|&d| d < rank);
    match row.over {
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
    (row.over != Over::Channels || rank > 1).then_some(Fold { dims, channels: row.over == Over::Channels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_parse() {
        assert!(ROWS.is_sorted_by(|x, y| x.name <= y.name));
        for (row, (_, formula)) in ROWS.iter().flat_map(|row| row.results.iter().map(move |r| (row, r))) {
            super::super::formula::parse(formula).unwrap_or_else(|e| panic!("{}: {e}", row.name));
        }
    }
}
