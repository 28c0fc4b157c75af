//! What a stage needs in a run that is the same for all row tiles of a worker: found once, since a row tile takes less
//! than a microsecond a stage.

use smallvec::SmallVec;

use super::{
    row_code::RowRun,
    rows::{RowArg, RowKernel, StageLoops, Staged, Traversal},
    stages::{RowOutput, StageInput, StageOutput},
};
use crate::space::Access;

/// What all threads of a run share.
pub(super) struct ReduceArgs<'a> {
    pub(super) outputs: &'a [*mut u8],
    pub(super) inputs: &'a [*const u8],
    /// Per input and output whether its address suits vectors of its dtype.
    pub(super) even: (SmallVec<[bool; 8]>, SmallVec<[bool; 8]>),
    pub(super) numbers: &'a [u64],
    /// What computes rows, if machine code does.
    pub(super) row_run: Option<RowRun<'a>>,
    /// Accumulators of the tasks of a long reduction.
    pub(super) partials: *mut u64,
}

// SAFETY: threads read inputs and numbers, and write disjoint elements of the outputs and partials.
unsafe impl Sync for ReduceArgs<'_> {}

/// Where the elements of a block's buffer begin.
#[derive(Clone, Copy)]
pub(super) enum BlockSource {
    /// Here, whatever the block.
    Here(*mut u8),
    /// From here, so many bytes for each element of the space before.
    Along(*mut u8, usize),
    /// The same for those of the row tile.
    Cached(*mut u8, usize),
    /// The same for those of any row.
    Repeated(*mut u8, usize),
    /// Where the space says, if they lie one after the other; else in staging memory.
    Somewhere { operand: usize, buffer: RowArg, base: *mut u8, staging: *mut u8 },
    /// In staging memory: they are not in the type's form, or at odd addresses.
    Elsewhere { operand: usize, buffer: RowArg, base: *mut u8, staging: *mut u8 },
}

impl BlockSource {
    pub(super) fn is_along(&self) -> bool {
        matches!(self, BlockSource::Along(..))
    }
}

/// What a stage needs that is the same for all of a worker's row tiles.
pub(super) struct StageRun {
    pub(super) sources: SmallVec<[BlockSource; 8]>,
    /// Uniforms of the elements' loops, but for those that follow from values of a row.
    pub(super) uniforms: SmallVec<[u64; 16]>,
    /// Inputs and outputs of the loops over rows, and their uniforms.
    pub(super) row_buffers: SmallVec<[*mut u8; 8]>,
    pub(super) row_uniforms: SmallVec<[u64; 16]>,
}

/// What a thread's part in a run works on.
pub(super) struct WorkerMemory<'a> {
    pub(super) kernel: &'a RowKernel,
    pub(super) staged: &'a Staged,
    pub(super) shared: &'a ReduceArgs<'a>,
    /// Scratch memory of [`Staged::scratch`] bytes, this thread's alone.
    pub(super) scratch: *mut u8,
}

impl StageRun {
    /// # Safety
    /// As [`RowKernel::run`], whose memory it is.
    pub(super) unsafe fn new(loops: &StageLoops, memory: &WorkerMemory<'_>) -> StageRun {
        let (stage, numbers) = (&loops.stage, memory.shared.numbers);
        let inputs = stage.row_inputs.iter().map(|&r| memory.row_value(r));
        let target = |(i, output): (usize, &RowOutput)| match *output {
            RowOutput::Row(row) => memory.row_value(row),
            RowOutput::Output(_) => memory.piece(memory.staged.outputs_at, i),
        };
        let row_buffers: SmallVec<[*mut u8; 8]> =
            inputs.chain(stage.row_outputs.iter().enumerate().map(target)).collect();
        let zeros = |count: usize| (0..count).map(|_| 0).collect::<SmallVec<[u64; 16]>>();
        let (mut uniforms, mut row_uniforms) =
            (zeros(loops.elements.uniform_count()), zeros(loops.rows.uniform_count()));
        loops.elements.fill_numbers(&mut uniforms, numbers);
        // SAFETY: no input is uniform: there are several rows.
        unsafe { loops.rows.fill_uniforms(&mut row_uniforms, (&[], row_buffers.len()), numbers) };
        StageRun { sources: memory.sources(loops), uniforms, row_buffers, row_uniforms }
    }
}

impl WorkerMemory<'_> {
    /// Piece `i` of those that begin at `from`.
    pub(super) fn piece(&self, from: usize, i: usize) -> *mut u8 {
        self.scratch.wrapping_add(from + i * self.staged.piece)
    }

    pub(super) fn row_value(&self, row: u32) -> *mut u8 {
        self.piece(self.staged.row_values, row as usize)
    }

    /// Where a cached value's elements lie.
    pub(super) fn cached(&self, c: u32) -> *mut u8 {
        self.scratch.wrapping_add(self.staged.cached_at + c as usize * self.staged.cached_bytes)
    }

    /// Where a stage's buffers lie: inputs, then what is made.
    fn sources(&self, stage: &StageLoops) -> SmallVec<[BlockSource; 8]> {
        let (kernel, staged, shared) = (self.kernel, self.staged, self.shared);
        let cached = |c: u32| BlockSource::Cached(self.cached(c), staged.split.cached[c as usize].bytes());
        let operand =
            |operand: usize, buffer: RowArg, (base, even): (*mut u8, bool), staging: *mut u8| match buffer.access {
                _ if buffer.is_half() || !even => BlockSource::Elsewhere { operand, buffer, base, staging },
                Access::Dense => BlockSource::Along(base, buffer.dtype.size_of()),
                _ => BlockSource::Somewhere { operand, buffer, base, staging },
            };
        let input = |(k, input): (usize, &StageInput)| match *input {
            StageInput::Cached(c) => cached(c),
            StageInput::Row(r) if staged.traversal == Traversal::ColumnMajor && staged.lines == 1 => {
                BlockSource::Here(self.row_value(r))
            }
            // Repeated before; or uniform, and not looked at.
            StageInput::Row(_) => BlockSource::Here(self.piece(staged.inputs_at, k)),
            StageInput::Input(i) => {
                let i = i as usize;
                let memory = (shared.inputs[i].cast_mut(), shared.even.0[i]);
                match staged.repeated[i] {
                    Some(at) => BlockSource::Repeated(self.scratch.wrapping_add(at), stage.bytes[k]),
                    None => {
                        operand(kernel.outputs.len() + i, kernel.inputs[i], memory, self.piece(staged.inputs_at, k))
                    }
                }
            }
        };
        let output = |(k, output): (usize, &StageOutput)| match *output {
            StageOutput::Cached(c) => cached(c),
            StageOutput::Reduce(..) => BlockSource::Here(self.piece(staged.outputs_at, k)),
            StageOutput::Output(o) => {
                let o = o as usize;
                let memory = (shared.outputs[o], shared.even.1[o]);
                operand(o, kernel.outputs[o], memory, self.piece(staged.outputs_at, k))
            }
        };
        let inputs = stage.stage.inputs.iter().enumerate().map(input);
        inputs.chain(stage.stage.outputs[..stage.made].iter().enumerate().map(output)).collect()
    }
}
