//! What is compiled.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "nobody compiles it"))]

use ltc_ir::DType;

use super::super::ir::{KernelIr, KernelOp};

/// What is compiled: an IR, and what its inputs and outputs are.
#[derive(Clone, Debug)]
pub(crate) struct JitInput {
    pub(crate) ir: KernelIr,
    /// Per value: whether it is the same for all elements. These have uniforms, in this order.
    pub(crate) uniform: Vec<bool>,
    pub(crate) inputs: Vec<DType>,
    pub(crate) outputs: Vec<DType>,
    /// Outputs that may share their memory with an input.
    pub(crate) staged: Vec<bool>,
}

/// What becomes of an output of an IR.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// Elements of a buffer, which may be one of an input's if `staged`.
    Elements { buffer: u16, dtype: DType, staged: bool },
    /// Reduced, in an accumulator.
    Reduced(KernelOp),
    /// The same for all elements: a number of the run.
    Number(u32),
}

/// An IR over elements, or over values of the row, as part of a stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowPart {
    pub(crate) ir: KernelIr,
    /// Per value: the number of the run it is, if it is one.
    pub(crate) slots: Vec<Option<u32>>,
    /// Per input its buffer; any where it is a number.
    pub(crate) inputs: Vec<(u16, DType)>,
    pub(crate) targets: Vec<Target>,
}

/// A pass over a row's elements, and what follows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowStage {
    pub(crate) elements: RowPart,
    /// Of the targets that are reduced, in their order: which number they become, and one to keep totals in.
    pub(crate) reduced: Vec<(KernelOp, u32, u32)>,
    pub(crate) row: RowPart,
}

/// Most rows the code takes side by side.
pub(crate) const MOST_ROWS: usize = 8;
/// Elements of rows side by side that stay in the first-level cache.
const NEAR_ELEMENTS: usize = 1024;

/// Most rows of so many elements that the code takes side by side.
pub(crate) fn most_rows(each: usize) -> usize {
    (NEAR_ELEMENTS / each.max(1)).clamp(1, MOST_ROWS)
}

/// What is compiled of a kernel over rows. The code takes some of them side by side, so that each one's instructions
/// stand in the others' waits: it has the buffers of the first, then of the second, and so on; of numbers that are a
/// row's own there are [`MOST_ROWS`] times as many, before all others.
#[derive(Clone, Debug)]
pub(crate) struct RowInput {
    pub(crate) stages: Vec<RowStage>,
    pub(crate) buffers: usize,
    /// Numbers that are a row's own, which parts name as those of the first row.
    pub(crate) own: u32,
    /// Elements of a row, and of a line, which is reduced at once; both are whole numbers of `lanes`.
    pub(crate) each: usize,
    pub(crate) line: usize,
    pub(crate) lanes: usize,
}
