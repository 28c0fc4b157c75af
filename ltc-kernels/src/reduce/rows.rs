//! Kernels with reductions: softmax, norms, sums.
//!
//! Elements are grouped into rows, one for each place that is left when some dimensions are reduced. Stages (see
//! `stages.rs`) go over the elements of some rows at a time, block by block, as tier 0 does. How blocks are cut depends
//! on what lies side by side in memory:
//!
//! | | a block is | values of the row are |
//! |---|---|---|
//! | [`Traversal::PackedRows`] | several short rows | repeated for each element |
//! | [`Traversal::SingleRow`] | a row, or a piece of one | uniform |
//! | [`Traversal::ColumnMajor`] | one element of each of several rows; of all rows, several | beside the elements |

use std::sync::{Arc, OnceLock};

use ltc_ir::DType;

use super::{
    reducers::Reducer,
    row_code::{Numbers, RowCode, RowShape},
    stages::{ReductionStages, Stage, StageInput, StageOutput},
};
use crate::{
    ir::{Inst, KernelIr, Val},
    jit::{Compiled, Jit, JitInput, Tier, Uncompiled, most_rows},
    space::{Access, IterationSpace, MAX_BLOCK},
    tile::Loops,
};

/// Elements of rows that are worth keeping between stages.
const MAX_CACHED: usize = 32 << 10;
/// How much longer than tier 0's blocks are, which fill half of a first-level cache; these may spill to the second.
const LONGER: usize = 4;
/// Shorter rows are gone through several at a time: a block takes longer to begin than the values of so many elements'
/// row take to repeat.
const SHORT_ROW: usize = 320;
/// Elements of longer rows that stay in the first-level cache from one stage to the next.
const ROW_TILE: usize = 4096;
/// Elements of a row that are worth having ready in the form that loops want.
const MAX_REPEATED: usize = 8 << 10;
/// Elements a long reduction is cut into, so that several threads can share it.
const CHUNK: usize = 32 << 10;

/// An input or output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowArg {
    pub(crate) dtype: DType,
    /// It has one element per row.
    pub(crate) of_rows: bool,
    /// All rows have the same elements.
    pub(crate) same_rows: bool,
    pub(crate) access: Access,
}

impl RowArg {
    pub(crate) fn is_half(self) -> bool {
        matches!(self.dtype, DType::F16 | DType::BF16)
    }

    /// How many elements are made ready of an input that all rows have, in blocks of `block` elements, rows of `each`;
    /// none where it is used where it lies.
    fn repeated_elements(self, traversal: Traversal, block: usize, each: usize) -> Option<usize> {
        if !self.same_rows || self.of_rows {
            return None;
        }
        match traversal {
            Traversal::PackedRows if self.access != Access::Dense || self.is_half() => Some(block),
            // Others are found where they lie, row by row.
            Traversal::SingleRow if self.is_half() && each <= MAX_REPEATED => Some(each),
            _ => None,
        }
    }
}

/// How elements are gone through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Traversal {
    PackedRows,
    SingleRow,
    ColumnMajor,
}

impl Traversal {
    /// Elements of a value that is kept from one stage to another: a row tile's, or what the code has side by side.
    fn cached_elements(self, each: usize, row_tile: usize, block: usize) -> usize {
        match self {
            Traversal::PackedRows => block.max(most_rows(each) * each),
            Traversal::SingleRow => row_tile.max(most_rows(each)) * each,
            Traversal::ColumnMajor => row_tile * each,
        }
    }
}

/// The elements of a kernel with reductions, and how operands lie: outputs, then inputs.
#[derive(Clone, Debug)]
pub struct ReductionSpace {
    /// All elements: row by row, or if `columns`, the first of all rows, then the second of all, and so on.
    pub(crate) elements: IterationSpace,
    /// One element per row.
    pub(crate) rows: IterationSpace,
    pub(crate) columns: bool,
    pub(crate) row_count: usize,
    /// Elements of a row.
    pub(crate) each: usize,
    /// Per operand whether it has one element per row, and whether all rows have the same ones.
    pub(crate) of_rows: Vec<bool>,
    pub(crate) same_rows: Vec<bool>,
}

impl ReductionSpace {
    /// The space of these sizes with the dimensions in `reduced` gone. Strides are in elements, 0 where an
    /// operand is repeated.
    pub fn new(sizes: &[i64], reduced: &[bool], operands: &[&[i64]]) -> ReductionSpace {
        let repeated =
            |o: &[i64], along: bool| (0..sizes.len()).all(|d| reduced[d] != along || o[d] == 0 || sizes[d] == 1);
        let of_rows: Vec<bool> = operands.iter().map(|o| repeated(o, true)).collect();
        // The order of memory of the first operand that has all elements.
        let all = |o: &&&[i64]| (0..sizes.len()).all(|d| sizes[d] == 1 || o[d] != 0);
        let leader = operands
            .iter()
            .find(all)
            .or_else(|| operands.iter().zip(&of_rows).find(|(_, rows)| !**rows).map(|(o, _)| o));
        let stride = |d: usize| leader.map_or(0, |l| l[d]);
        let part = |wanted: bool| {
            let mut dims: Vec<usize> = (0..sizes.len()).filter(|&d| reduced[d] == wanted && sizes[d] != 1).collect();
            dims.sort_by_key(|&d| std::cmp::Reverse(stride(d)));
            dims
        };
        let (kept, inner) = (part(false), part(true));
        let nearest = |dims: &[usize]| dims.last().map(|&d| stride(d)).filter(|&s| s != 0);
        let columns = match (nearest(&kept), nearest(&inner)) {
            (Some(kept), Some(inner)) => kept < inner,
            _ => false,
        };
        let order: Vec<usize> = if columns { [&inner[..], &kept].concat() } else { [&kept[..], &inner].concat() };
        let count = |dims: &[usize]| dims.iter().map(|&d| sizes[d] as usize).product::<usize>();
        ReductionSpace {
            elements: IterationSpace::ordered(&order, sizes, operands),
            rows: IterationSpace::ordered(&kept, sizes, operands),
            columns,
            row_count: count(&kept),
            each: count(&inner),
            of_rows,
            same_rows: operands.iter().map(|o| repeated(o, false)).collect(),
        }
    }
}

/// A kernel with reductions, ready to run.
#[derive(Debug)]
pub struct RowKernel {
    pub(crate) space: ReductionSpace,
    pub(crate) inputs: Vec<RowArg>,
    pub(crate) outputs: Vec<RowArg>,
    pub(super) usual: Staged,
    pub(super) ones: Vec<(u32, DType)>,
    pub(super) general: (KernelIr, OnceLock<Option<Staged>>),
    pub(crate) cost: usize,
}

#[derive(Debug)]
pub(crate) struct StageLoops {
    /// The elements' way to machine code.
    pub(crate) tier: Option<Arc<Tier>>,
    pub(crate) stage: Stage,
    pub(crate) elements: Loops,
    pub(crate) rows: Loops,
    /// Bytes of an element of each input.
    pub(crate) bytes: Vec<usize>,
    /// How many kept values are computed; those after them are reduced as they come, from these inputs.
    pub(crate) made: usize,
    pub(crate) reduced_inputs: Vec<usize>,
    /// Per kept value of the elements, how it is reduced if it is.
    pub(crate) reducers: Vec<Option<Reducer>>,
}

/// An IR's stages as loops, and where scratch memory is for what.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) split: ReductionStages,
    pub(crate) stages: Vec<StageLoops>,
    /// All stages of a row as one function, where rows lie for it.
    pub(super) row_code: Option<RowCode>,
    pub(crate) traversal: Traversal,
    /// Rows gone through at a time, and elements of a block.
    pub(crate) row_tile: usize,
    pub(crate) block: usize,
    /// Elements of each row in a block of columns; more than one only where a row tile has all rows.
    pub(crate) lines: usize,
    /// Elements of each row (for columns: elements of a row's reduction) of a task.
    pub(crate) chunk: usize,
    /// Bytes of a piece of scratch memory that holds a block, or a value of each row of a row tile.
    pub(crate) piece: usize,
    /// Where pieces of each kind begin, in bytes, and how much there is in all.
    pub(crate) inputs_at: usize,
    pub(crate) outputs_at: usize,
    pub(crate) row_values: usize,
    pub(crate) totals: usize,
    pub(crate) cached_at: usize,
    /// Bytes of a cached intermediate.
    pub(crate) cached_bytes: usize,
    /// Where each input lies ready that is the same for all rows and not used where it is: one row of it, or as many
    /// as a block has.
    pub(crate) repeated: Vec<Option<usize>>,
    pub(crate) scratch: usize,
}

impl StageLoops {
    /// A stage's loops; `uniform`: values of the row are one for each block, not beside the elements. `None` if some
    /// computation has no loop, or there are too many values.
    fn new(mut stage: Stage, uniform: bool, jit: Jit) -> Option<StageLoops> {
        let of_row: Vec<bool> = stage.inputs.iter().map(|f| uniform && matches!(f, StageInput::Row(_))).collect();
        // What is reduced as it comes need not be copied first; such values stand last.
        let comes = |o: &Val| match stage.elements.values[o.0 as usize].0 {
            Inst::Input(k) if !of_row[k as usize] => Some(k as usize),
            _ => None,
        };
        let kept: Vec<(StageOutput, Val)> = stage.outputs.iter().copied().zip(stage.elements.outputs.clone()).collect();
        let (read, made): (Vec<_>, Vec<_>) =
            kept.into_iter().partition(|(output, o)| matches!(output, StageOutput::Reduce(..)) && comes(o).is_some());
        let reducer = |(output, o): &(StageOutput, Val)| match output {
            StageOutput::Reduce(op, _) => Reducer::of(*op, stage.elements.ty(*o)).map(Some),
            _ => Some(None),
        };
        let reducers = made.iter().chain(&read).map(reducer).collect::<Option<_>>()?;
        let reduced_inputs = read.iter().filter_map(|(_, o)| comes(o)).collect();
        stage.outputs = made.iter().chain(&read).map(|(output, _)| *output).collect();
        stage.elements.outputs = made.iter().map(|(_, o)| *o).collect();
        let mut bytes = vec![0; stage.inputs.len()];
        for (inst, ty) in &stage.elements.values {
            if let Inst::Input(i) = inst {
                bytes[*i as usize] = ty.bytes();
            }
        }
        Some(StageLoops {
            bytes,
            tier: (!made.is_empty())
                .then(|| Tier::new(jit, Uncompiled::Elements(JitInput::of_blocks(&stage.elements, &of_row)))),
            elements: Loops::of_blocks(&stage.elements, &of_row)?,
            rows: Loops::of_blocks(&stage.rows, &vec![false; stage.row_inputs.len()])?,
            reducers,
            reduced_inputs,
            made: made.len(),
            stage,
        })
    }
}

impl Staged {
    pub(super) fn new(
        ir: &KernelIr,
        space: &ReductionSpace,
        (inputs, outputs): (&[RowArg], &[RowArg]),
        jit: Jit,
    ) -> Option<Staged> {
        let of_rows: Vec<bool> = inputs.iter().map(|p| p.of_rows).collect();
        let staged =
            |cache, row_tile| Staged::with(ReductionStages::new(ir, &of_rows, cache), (space, inputs), row_tile, jit);
        let first = staged(true, None)?;
        let long = match first.traversal {
            Traversal::PackedRows => false,
            Traversal::SingleRow => space.each > MAX_CACHED,
            Traversal::ColumnMajor => first.row_tile * space.each > MAX_CACHED * 2,
        };
        let mut staged =
            if long && !first.split.cached.is_empty() { staged(false, Some(first.row_tile))? } else { first };
        staged.add_row_code(space, (inputs, outputs), jit);
        Some(staged)
    }

    /// Whole rows as one function, where no row is shared by threads.
    fn add_row_code(&mut self, space: &ReductionSpace, (inputs, outputs): (&[RowArg], &[RowArg]), jit: Jit) {
        if self.traversal == Traversal::ColumnMajor || space.each > self.chunk {
            return;
        }
        let dtypes = |args: &[RowArg]| args.iter().map(|arg| arg.dtype).collect::<Vec<_>>();
        let is_packed = self.traversal == Traversal::PackedRows;
        let shape = RowShape {
            elements: &space.elements,
            inputs: &dtypes(inputs),
            outputs: &dtypes(outputs),
            each: space.each,
            line: if is_packed { space.each } else { self.block },
            split: &self.split,
            uniform_rows: !is_packed,
            scratch: self.scratch,
        };
        self.row_code = RowCode::new(&shape, jit);
        self.scratch += self.row_code.as_ref().map_or(0, |code| code.scratch(self.piece));
    }

    /// A stage's own machine code, if it is there: where whole rows become code, stages do not.
    pub(super) fn stage_code<'s>(&self, stage: &'s StageLoops, uniforms: &[u64], work: usize) -> Option<&'s Compiled> {
        let waits = self.row_code.as_ref().is_some_and(|code| !code.tier.is_declined());
        stage.tier.as_ref().filter(|_| !waits)?.code(uniforms, work)
    }

    /// The numbers of whole rows' code.
    ///
    /// # Safety
    /// As [`RowCode::fill`].
    pub(super) unsafe fn row_numbers(&self, code: &RowCode, numbers: &[u64]) -> Numbers {
        let loops = self.stages[1..].iter().map(|StageLoops { stage, elements, rows, made, .. }| {
            [(elements, stage.inputs.len() + made), (rows, stage.row_inputs.len() + stage.row_outputs.len())]
        });
        // SAFETY: by this function's contract.
        unsafe { code.fill(loops, numbers) }
    }

    fn with(
        split: ReductionStages,
        (space, inputs): (&ReductionSpace, &[RowArg]),
        row_tile: Option<usize>,
        jit: Jit,
    ) -> Option<Staged> {
        // Blocks of several rows want values of rows beside the elements, as columns do.
        let loops = |uniform: bool| -> Option<Vec<StageLoops>> {
            split.stages.iter().map(|stage| StageLoops::new(stage.clone(), uniform, jit)).collect()
        };
        // Longer than tier 0's, because there is more to do around them.
        let narrowest =
            |stages: &[StageLoops]| stages.iter().map(|s| s.elements.block() * LONGER).min().unwrap_or(MAX_BLOCK);
        let mut stages = loops(false)?;
        let widest = narrowest(&stages);
        let rows = space.row_count.max(1);
        let one_pass = split.stages.len() == 2;
        let (traversal, row_tile, block) = match () {
            () if space.columns => {
                // Threads share a single pass by its length; else there are enough row tiles for several, none too
                // narrow.
                let narrow = || rows.div_ceil(4).next_multiple_of(16).clamp(64, widest / LONGER).min(rows);
                let row_tile = row_tile.unwrap_or_else(|| if one_pass && rows <= widest { rows } else { narrow() });
                let lines = if row_tile == rows { (widest / rows).clamp(1, space.each.max(1)) } else { 1 };
                (Traversal::ColumnMajor, row_tile, row_tile * lines)
            }
            () if space.each < SHORT_ROW => {
                let row_tile = (widest / space.each.max(1)).clamp(1, rows);
                (Traversal::PackedRows, row_tile, row_tile * space.each)
            }
            () => (Traversal::SingleRow, (ROW_TILE / space.each).clamp(1, rows), widest),
        };
        if traversal == Traversal::SingleRow {
            stages = loops(true)?;
        }
        let block = if traversal == Traversal::SingleRow { narrowest(&stages).min(space.each.max(1)) } else { block };
        // A long reduction is cut where that leaves nothing to do twice: one stage only.
        let few = rows.div_ceil(row_tile) <= 4 && one_pass;
        let chunk = match traversal {
            Traversal::SingleRow if few => CHUNK,
            Traversal::ColumnMajor if few => (CHUNK / row_tile).max(1),
            _ => usize::MAX,
        };
        let piece = (block.max(row_tile) * 8).next_multiple_of(64);
        let most = |count: fn(&StageLoops) -> usize| stages.iter().map(count).max().unwrap_or(0) * piece;
        let cached_bytes = (traversal.cached_elements(space.each, row_tile, block) * 8).next_multiple_of(64);
        let inputs_at = most(|s| s.elements.registers().max(s.rows.registers()));
        let outputs_at = inputs_at + most(|s| s.stage.inputs.len());
        let row_values = outputs_at + most(|s| s.stage.outputs.len().max(s.stage.row_outputs.len()));
        let totals = row_values + split.row_values.len() * piece;
        let cached_at = totals + most(|s| s.reducers.len());
        let mut scratch = cached_at + cached_bytes * split.cached.len();
        let repeated = inputs.iter().map(|buffer| {
            let elements = buffer.repeated_elements(traversal, block, space.each)?;
            scratch += (elements * 8).next_multiple_of(64);
            Some(scratch - (elements * 8).next_multiple_of(64))
        });
        Some(Staged {
            split,
            stages,
            row_code: None,
            traversal,
            row_tile,
            block,
            lines: if traversal == Traversal::ColumnMajor { block / row_tile } else { 1 },
            chunk,
            piece,
            inputs_at,
            outputs_at,
            row_values,
            totals,
            cached_at,
            cached_bytes,
            repeated: repeated.collect(),
            scratch,
        })
    }
}

impl RowKernel {
    pub(crate) fn ir(&self) -> &KernelIr {
        &self.general.0
    }

    /// A kernel over `space`, whose operands are the outputs, then the inputs, of these dtypes. `usual` may assume
    /// ones, `general` computes the same assuming nothing.
    ///
    /// `None` if some computation has no loop, or there are too many values.
    pub fn new(
        space: ReductionSpace,
        outputs: &[DType],
        inputs: &[DType],
        usual: &KernelIr,
        general: KernelIr,
    ) -> Option<RowKernel> {
        let buffer = |i: usize, dtype: DType| {
            let of_rows = space.of_rows[i];
            let access = if of_rows { space.rows.access(i) } else { space.elements.access(i) };
            RowArg { dtype, of_rows, same_rows: space.same_rows[i], access }
        };
        let out: Vec<RowArg> = outputs.iter().enumerate().map(|(i, d)| buffer(i, *d)).collect();
        let inp: Vec<RowArg> = inputs.iter().enumerate().map(|(i, d)| buffer(i + outputs.len(), *d)).collect();
        let cost = usual.cost() + inp.len() + out.len();
        let staged = Staged::new(usual, &space, (&inp, &out), Jit::default())?;
        let ones = usual.ones.clone();
        Some(RowKernel {
            space,
            inputs: inp,
            outputs: out,
            usual: staged,
            ones,
            general: (general, OnceLock::new()),
            cost,
        })
    }

    /// Says whether the kernel may become machine code. Before its first run.
    pub fn set_jit(&mut self, jit: Jit) {
        if jit == Jit::Off {
            self.usual.row_code = None;
            self.usual.stages.iter_mut().for_each(|stage| stage.tier = None);
            return;
        }
        let stages = self.usual.stages.iter_mut().filter_map(|stage| stage.tier.as_mut());
        let tiers = stages.chain(self.usual.row_code.as_mut().map(|code| &mut code.tier));
        tiers.filter_map(Arc::get_mut).for_each(|tier| tier.set(jit));
    }

    /// Whether a row, or else every stage that computes elements, runs as machine code.
    pub fn is_compiled(&self) -> bool {
        if self.usual.row_code.as_ref().is_some_and(|code| code.tier.is_compiled()) {
            return true;
        }
        let mut computing = self.usual.stages.iter().filter(|s| s.made > 0).peekable();
        computing.peek().is_some() && computing.all(|s| s.tier.as_ref().is_some_and(|t| t.is_compiled()))
    }

    /// Whether whole rows become machine code for these numbers.
    #[cfg(test)]
    pub(crate) fn row_tier_of(&self, numbers: &[u64]) -> bool {
        let Some(code) = &self.usual.row_code else { return false };
        // SAFETY: these are the numbers of a run.
        let numbers = unsafe { self.usual.row_numbers(code, numbers) };
        code.tier.code(&numbers, 0).is_some()
    }

    /// How many elements the kernel goes through.
    pub fn element_count(&self) -> usize {
        self.space.row_count * self.space.each
    }

    /// How many loops an element takes, in all stages.
    pub fn calls(&self) -> usize {
        self.usual.stages.iter().map(|s| s.elements.calls() + s.reducers.len()).sum()
    }
}
