//! Kernels over rows by machine code that takes rows through all stages (`jit/rows.rs`): what it reads and writes.
//!
//! What rows have before the first stage over elements comes from the loops, a row tile at a time; all else the code
//! computes, and keeps with the numbers of the run.

use std::sync::Arc;

use ltc_ir::DType;
use smallvec::SmallVec;

use super::{
    reducers::LANES,
    stages::{ReductionStages, RowOutput, Stage, StageInput, StageOutput},
};
use crate::{
    ir::{ComputeType, Inst, KernelIr, KernelOp},
    jit::{Compiled, Jit, JitInput, MOST_ROWS, RowInput, RowPart, RowStage, Target, Tier, Uncompiled},
    space::IterationSpace,
    tile::Loops,
};

/// The code's numbers: values of the row, results of the row, totals, as often as it may take rows side by side; then
/// uniform values of each stage's loops.
pub(super) type Numbers = SmallVec<[u64; 64]>;

/// What a buffer of the code is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowBuffer {
    /// An operand of the kernel's space.
    Operand(usize),
    Cached(u32),
}

/// A kernel's rows as one function.
#[derive(Debug)]
pub(crate) struct RowCode {
    pub(super) tier: Arc<Tier>,
    pub(super) buffers: Vec<RowBuffer>,
    /// Values of the row that loops give, with their types. Each is the number of that place.
    pub(super) given: Vec<(u32, ComputeType)>,
    /// Outputs with one value a row, each with its number and type.
    pub(super) results: Vec<(u32, u32, ComputeType)>,
    /// Per stage where uniform values of its loops over elements begin, and of those over rows.
    uniforms: Vec<[u32; 2]>,
    /// Numbers of a row, and of all.
    pub(super) own: u32,
    numbers: u32,
    /// Where a row tile's results lie in scratch memory.
    pub(super) results_at: usize,
}

/// What a kernel over rows is, and how its loops go through it.
pub(super) struct RowShape<'a> {
    pub(super) elements: &'a IterationSpace,
    pub(super) inputs: &'a [DType],
    pub(super) outputs: &'a [DType],
    /// Elements of a row, and of one line of it.
    pub(super) each: usize,
    pub(super) line: usize,
    pub(super) split: &'a ReductionStages,
    /// Whether values of a row are uniform in the loops over elements.
    pub(super) uniform_rows: bool,
    /// Where scratch memory ends that is for loops.
    pub(super) scratch: usize,
}

/// Builds a [`RowCode`].
struct Builder<'a> {
    shape: &'a RowShape<'a>,
    buffers: Vec<RowBuffer>,
    results: Vec<(u32, u32, ComputeType)>,
    totals: u32,
    uniforms: Vec<[u32; 2]>,
    next: u32,
}

impl Builder<'_> {
    fn buffer(&mut self, buffer: RowBuffer) -> u16 {
        let known = self.buffers.iter().position(|b| *b == buffer);
        known.unwrap_or_else(|| {
            self.buffers.push(buffer);
            self.buffers.len() - 1
        }) as u16
    }

    /// Per value of an IR the number it is, whose inputs may be values of the row; `uniform` as its loops have it.
    fn slots(&mut self, ir: &KernelIr, uniform: &[bool], row: impl Fn(u32) -> Option<u32>) -> Vec<Option<u32>> {
        let first = self.next;
        self.next += uniform.iter().filter(|u| **u).count() as u32;
        let mut next = first;
        let slot = |((inst, _), uniform): (&(Inst, ComputeType), &bool)| {
            let own = uniform.then_some(next);
            next += u32::from(*uniform);
            if let Inst::Input(i) = inst { row(*i) } else { own }
        };
        ir.values.iter().zip(uniform).map(slot).collect()
    }

    fn elements(&mut self, stage: &Stage) -> (RowPart, Vec<(KernelOp, u32, u32)>) {
        let RowShape { inputs: dtypes, outputs, split, uniform_rows, .. } = *self.shape;
        let row = |i: &StageInput| if let StageInput::Row(r) = i { Some(*r) } else { None };
        let of_row: Vec<bool> = stage.inputs.iter().map(|i| uniform_rows && row(i).is_some()).collect();
        let uniform = JitInput::of_blocks(&stage.elements, &of_row).uniform;
        let slots = self.slots(&stage.elements, &uniform, |i| row(&stage.inputs[i as usize]));
        let cached = |c: u32| split.cached[c as usize].dtype();
        let mut inputs = Vec::new();
        for input in &stage.inputs {
            inputs.push(match *input {
                StageInput::Input(i) => {
                    (self.buffer(RowBuffer::Operand(outputs.len() + i as usize)), dtypes[i as usize])
                }
                StageInput::Cached(c) => (self.buffer(RowBuffer::Cached(c)), cached(c)),
                StageInput::Row(_) => (0, DType::F32),
            });
        }
        let (mut targets, mut reduced) = (Vec::new(), Vec::new());
        for output in &stage.outputs {
            targets.push(match *output {
                StageOutput::Output(o) => {
                    let buffer = self.buffer(RowBuffer::Operand(o as usize));
                    Target::Elements { buffer, dtype: outputs[o as usize], staged: false }
                }
                StageOutput::Cached(c) => {
                    Target::Elements { buffer: self.buffer(RowBuffer::Cached(c)), dtype: cached(c), staged: false }
                }
                StageOutput::Reduce(op, row) => {
                    reduced.push((op, row, self.totals));
                    self.totals += 1;
                    Target::Reduced(op)
                }
            });
        }
        (RowPart { ir: stage.elements.clone(), slots, inputs, targets }, reduced)
    }

    fn row(&mut self, stage: &Stage) -> RowPart {
        let uniform = JitInput::of_blocks(&stage.rows, &vec![false; stage.row_inputs.len()]).uniform;
        let slots = self.slots(&stage.rows, &uniform, |i| Some(stage.row_inputs[i as usize]));
        let first = self.shape.split.row_values.len() as u32;
        let mut targets = Vec::new();
        for (output, value) in stage.row_outputs.iter().zip(&stage.rows.outputs) {
            targets.push(Target::Number(match *output {
                RowOutput::Row(row) => row,
                RowOutput::Output(o) => {
                    let slot = first + self.results.len() as u32;
                    self.results.push((o, slot, stage.rows.ty(*value)));
                    slot
                }
            }));
        }
        let inputs = vec![(0, DType::F32); stage.row_inputs.len()];
        RowPart { ir: stage.rows.clone(), slots, inputs, targets }
    }
}

/// Whether each row of an operand lies in one piece, its elements one after the other.
fn lies_in_rows(space: &IterationSpace, operand: usize, each: usize) -> bool {
    space.row().is_multiple_of(each) && space.stretch(operand, 0).1 == 1
}

impl RowCode {
    /// The function of a kernel's rows; `None` where they do not lie as it wants, or have odd lengths.
    pub(super) fn new(shape: &RowShape<'_>, jit: Jit) -> Option<RowCode> {
        let RowShape { split, each, line, .. } = *shape;
        let odd = |n: usize| n == 0 || !n.is_multiple_of(LANES);
        if odd(each) || odd(line) {
            return None;
        }
        let stages = &split.stages[1..];
        let count = |of: fn(&Stage) -> usize| stages.iter().map(of).sum::<usize>() as u32;
        let of_rows = |output: &&RowOutput| matches!(output, RowOutput::Output(_));
        let results = stages.iter().flat_map(|s| &s.row_outputs).filter(of_rows).count() as u32;
        let reduced = count(|s| s.outputs.iter().filter(|o| matches!(o, StageOutput::Reduce(..))).count());
        let rows = split.row_values.len() as u32;
        let own = rows + results + reduced;
        let mut b = Builder {
            shape,
            buffers: Vec::new(),
            results: Vec::new(),
            totals: rows + results,
            uniforms: Vec::new(),
            next: MOST_ROWS as u32 * own,
        };
        let mut parts = Vec::new();
        for stage in stages {
            let of_elements = b.next;
            let (elements, reduced) = b.elements(stage);
            b.uniforms.push([of_elements, b.next]);
            let row = b.row(stage);
            parts.push(RowStage { elements, reduced, row });
        }
        let operands = b.buffers.iter().filter_map(|b| if let RowBuffer::Operand(o) = b { Some(*o) } else { None });
        if !operands.into_iter().all(|operand| lies_in_rows(shape.elements, operand, each)) {
            return None;
        }
        let before = split.row_inputs.iter().map(|(_, row)| *row);
        let first = split.stages[0].row_outputs.iter();
        let given = before.chain(first.filter_map(|o| if let RowOutput::Row(r) = o { Some(*r) } else { None }));
        let given = given.map(|row| (row, split.row_values[row as usize])).collect();
        let input = RowInput { stages: parts, buffers: b.buffers.len(), own, each, line, lanes: LANES };
        Some(RowCode {
            tier: Tier::new(jit, Uncompiled::Rows(input)),
            buffers: b.buffers,
            given,
            results: b.results,
            uniforms: b.uniforms,
            own,
            numbers: b.next,
            results_at: shape.scratch,
        })
    }

    /// Bytes of scratch memory for a row tile's results.
    pub(super) fn scratch(&self, piece: usize) -> usize {
        self.results.len() * piece
    }

    /// The numbers of a run, but for the rows' own. `loops` are those over elements and rows of each stage that the
    /// code was made of, with how many buffers they have.
    ///
    /// # Safety
    /// `numbers` has all words the IR speaks of.
    pub(super) unsafe fn fill<'l>(
        &self,
        loops: impl Iterator<Item = [(&'l Loops, usize); 2]>,
        numbers: &[u64],
    ) -> Numbers {
        let mut all = Numbers::from_elem(0, self.numbers as usize);
        let stages = loops.zip(&self.uniforms);
        for ((loops, buffers), first) in stages.flat_map(|(loops, first)| loops.into_iter().zip(*first)) {
            let own = &mut all[first as usize..first as usize + loops.uniform_count()];
            loops.fill_numbers(own, numbers);
            // SAFETY: there is a slot for each uniform value of these loops.
            unsafe { loops.run_preamble(own, buffers as u16) };
        }
        all
    }
}

/// The code of a run, and its numbers.
#[derive(Clone, Copy)]
pub(super) struct RowRun<'a> {
    pub(super) code: &'a Compiled,
    pub(super) of: &'a RowCode,
    pub(super) numbers: &'a [u64],
}
