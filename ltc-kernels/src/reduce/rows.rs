//! Kernels with reductions: softmax, norms, sums.
//!
//! Elements are grouped into rows, one for each place that is left when some dimensions are reduced. Stages (see
//! `nest.rs`) go over the elements of some rows at a time, block by block, as tier 0 does. How blocks are cut depends
//! on what lies side by side in memory:
//!
//! | | a block is | values of the row are |
//! |---|---|---|
//! | [`Walk::Rows`] | several short rows | repeated for each element |
//! | [`Walk::Line`] | a row, or a piece of one | uniform |
//! | [`Walk::Columns`] | one element of each of several rows; of all rows, several | beside the elements |

use std::sync::{Arc, OnceLock};

use ltc_ir::DType;

use super::{
    nest::{Feed, Keep, Nest, Stage},
    reducers::Reducer,
};
use crate::{
    ir::{Body, Def, Val},
    jit::{Jit, JitInput, Tier},
    space::{Access, IterationSpace, MAX_BLOCK},
    tile::Loops,
};

/// Elements of rows that are worth keeping between stages.
const MAX_CARRIED: usize = 32 << 10;
/// How much longer than tier 0's blocks are, which fill half of a first-level cache; these may spill to the second.
const LONGER: usize = 4;
/// Shorter rows are gone through several at a time: a block takes longer to begin than the values of so many elements'
/// row take to repeat.
const SHORT_ROW: usize = 192;
/// Elements of longer rows that stay in the first-level cache from one stage to the next.
const BUNDLE: usize = 4096;
/// Elements a long reduction is cut into, so that several threads can share it.
const CHUNK: usize = 32 << 10;

/// An input or output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) dtype: DType,
    /// It has one element per row.
    pub(crate) of_rows: bool,
    pub(crate) access: Access,
}

impl Port {
    pub(crate) fn is_half(self) -> bool {
        matches!(self.dtype, DType::F16 | DType::BF16)
    }
}

/// How elements are gone through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Walk {
    Rows,
    Line,
    Columns,
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
    /// Per operand whether it has one element per row.
    pub(crate) of_rows: Vec<bool>,
}

impl ReductionSpace {
    /// The space of these sizes with the dimensions in `reduced` gone. Strides are in elements, 0 where an
    /// operand is repeated.
    pub fn new(sizes: &[i64], reduced: &[bool], operands: &[&[i64]]) -> ReductionSpace {
        let of_rows = |o: &&[i64]| (0..sizes.len()).all(|d| !reduced[d] || o[d] == 0 || sizes[d] == 1);
        let of_rows: Vec<bool> = operands.iter().map(of_rows).collect();
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
        }
    }
}

/// A kernel with reductions, ready to run.
#[derive(Debug)]
pub struct RowKernel {
    pub(crate) space: ReductionSpace,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(super) usual: Staged,
    pub(super) ones: Vec<(u32, DType)>,
    pub(super) general: (Body, OnceLock<Option<Staged>>),
    pub(crate) cost: usize,
}

#[derive(Debug)]
pub(crate) struct StageLoops {
    /// The elements' way to machine code.
    pub(crate) tier: Option<Arc<Tier>>,
    pub(crate) stage: Stage,
    pub(crate) elements: Loops,
    pub(crate) rows: Loops,
    /// Bytes of an element of each feed.
    pub(crate) bytes: Vec<usize>,
    /// How many kept values are computed; those after them are reduced as they come, from these feeds.
    pub(crate) made: usize,
    pub(crate) reduced_feeds: Vec<usize>,
    /// Per kept value of the elements, how it is reduced if it is.
    pub(crate) reducers: Vec<Option<Reducer>>,
}

/// A body's stages as loops, and where scratch memory is for what.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) nest: Nest,
    pub(crate) stages: Vec<StageLoops>,
    pub(crate) walk: Walk,
    /// Rows gone through at a time, and elements of a block.
    pub(crate) bundle: usize,
    pub(crate) block: usize,
    /// Elements of each row in a block of columns; more than one only where a bundle has all rows.
    pub(crate) lines: usize,
    /// Elements of each row (for columns: elements of a row's reduction) of a task.
    pub(crate) chunk: usize,
    /// Bytes of a piece of scratch memory that holds a block, or a value of each row of a bundle.
    pub(crate) piece: usize,
    /// Where pieces of each kind begin, in bytes, and how much there is in all.
    pub(crate) feeds: usize,
    pub(crate) keeps: usize,
    pub(crate) row_values: usize,
    pub(crate) totals: usize,
    pub(crate) carried: usize,
    pub(crate) carry: usize,
    pub(crate) scratch: usize,
}

impl Staged {
    pub(super) fn new(body: &Body, space: &ReductionSpace, inputs: &[Port], jit: Jit) -> Option<Staged> {
        let of_rows: Vec<bool> = inputs.iter().map(|p| p.of_rows).collect();
        let staged = |carry, bundle| Staged::with(Nest::new(body, &of_rows, carry), space, bundle, jit);
        let first = staged(true, None)?;
        let long = match first.walk {
            Walk::Rows => false,
            Walk::Line => space.each > MAX_CARRIED,
            Walk::Columns => first.bundle * space.each > MAX_CARRIED * 2,
        };
        if long && !first.nest.carried.is_empty() { staged(false, Some(first.bundle)) } else { Some(first) }
    }

    fn with(nest: Nest, space: &ReductionSpace, bundle: Option<usize>, jit: Jit) -> Option<Staged> {
        // Blocks of several rows want values of rows beside the elements, as columns do.
        let loops = |uniform: bool| -> Option<Vec<StageLoops>> {
            let one = |stage: &Stage| {
                let mut stage = stage.clone();
                let of_row: Vec<bool> = stage.feeds.iter().map(|f| uniform && matches!(f, Feed::Row(_))).collect();
                // What is reduced as it comes need not be copied first; such values stand last.
                let comes = |o: &Val| match stage.elements.values[o.0 as usize].0 {
                    Def::Input(k) if !of_row[k as usize] => Some(k as usize),
                    _ => None,
                };
                let kept: Vec<(Keep, Val)> = stage.keeps.iter().copied().zip(stage.elements.outputs.clone()).collect();
                let (read, made): (Vec<_>, Vec<_>) =
                    kept.into_iter().partition(|(keep, o)| matches!(keep, Keep::Reduce(..)) && comes(o).is_some());
                let reducer = |(keep, o): &(Keep, Val)| match keep {
                    Keep::Reduce(code, _) => Reducer::of(*code, stage.elements.lane(*o)).map(Some),
                    _ => Some(None),
                };
                let reducers = made.iter().chain(&read).map(reducer).collect::<Option<_>>()?;
                let reduced_feeds = read.iter().filter_map(|(_, o)| comes(o)).collect();
                stage.keeps = made.iter().chain(&read).map(|(keep, _)| *keep).collect();
                stage.elements.outputs = made.iter().map(|(_, o)| *o).collect();
                let mut bytes = vec![0; stage.feeds.len()];
                for (def, lane) in &stage.elements.values {
                    if let Def::Input(i) = def {
                        bytes[*i as usize] = lane.bytes();
                    }
                }
                Some(StageLoops {
                    bytes,
                    tier: (!made.is_empty()).then(|| Tier::new(jit, JitInput::of_blocks(&stage.elements, &of_row))),
                    elements: Loops::of_blocks(&stage.elements, &of_row)?,
                    rows: Loops::of_blocks(&stage.rows, &vec![false; stage.row_feeds.len()])?,
                    reducers,
                    reduced_feeds,
                    made: made.len(),
                    stage,
                })
            };
            nest.stages.iter().map(one).collect()
        };
        // Longer than tier 0's, because there is more to do around them.
        let narrowest =
            |stages: &[StageLoops]| stages.iter().map(|s| s.elements.block() * LONGER).min().unwrap_or(MAX_BLOCK);
        let mut stages = loops(false)?;
        let widest = narrowest(&stages);
        let rows = space.row_count.max(1);
        let one_pass = nest.stages.len() == 2;
        let (walk, bundle, block) = match () {
            () if space.columns => {
                // Threads share a single pass by its length; else there are enough bundles for several, none too
                // narrow.
                let narrow = || rows.div_ceil(4).next_multiple_of(16).clamp(64, widest / LONGER).min(rows);
                let bundle = bundle.unwrap_or_else(|| if one_pass && rows <= widest { rows } else { narrow() });
                let lines = if bundle == rows { (widest / rows).clamp(1, space.each.max(1)) } else { 1 };
                (Walk::Columns, bundle, bundle * lines)
            }
            () if space.each < SHORT_ROW => {
                let bundle = (widest / space.each.max(1)).clamp(1, rows);
                (Walk::Rows, bundle, bundle * space.each)
            }
            () => (Walk::Line, (BUNDLE / space.each).clamp(1, rows), widest),
        };
        if walk == Walk::Line {
            stages = loops(true)?;
        }
        let block = if walk == Walk::Line { narrowest(&stages).min(space.each.max(1)) } else { block };
        // A long reduction is cut where that leaves nothing to do twice: one stage only.
        let few = rows.div_ceil(bundle) <= 4 && one_pass;
        let chunk = match walk {
            Walk::Line if few => CHUNK,
            Walk::Columns if few => (CHUNK / bundle).max(1),
            _ => usize::MAX,
        };
        let piece = (block.max(bundle) * 8).next_multiple_of(64);
        let most = |count: fn(&StageLoops) -> usize| stages.iter().map(count).max().unwrap_or(0) * piece;
        let carry = match walk {
            Walk::Rows => block,
            Walk::Line | Walk::Columns => bundle * space.each,
        };
        let carry = (carry * 8).next_multiple_of(64);
        let feeds = most(|s| s.elements.registers().max(s.rows.registers()));
        let keeps = feeds + most(|s| s.stage.feeds.len());
        let row_values = keeps + most(|s| s.stage.keeps.len().max(s.stage.row_keeps.len()));
        let totals = row_values + nest.row_values.len() * piece;
        let carried = totals + most(|s| s.reducers.len());
        let scratch = carried + carry * nest.carried.len();
        Some(Staged {
            nest,
            stages,
            walk,
            bundle,
            block,
            lines: if walk == Walk::Columns { block / bundle } else { 1 },
            chunk,
            piece,
            feeds,
            keeps,
            row_values,
            totals,
            carried,
            carry,
            scratch,
        })
    }
}

impl RowKernel {
    /// A kernel over `space`, whose operands are the outputs, then the inputs, of these dtypes. `usual` may assume
    /// ones, `general` computes the same assuming nothing.
    ///
    /// `None` if some computation has no loop, or there are too many values.
    pub fn new(
        space: ReductionSpace,
        outputs: &[DType],
        inputs: &[DType],
        usual: &Body,
        general: Body,
    ) -> Option<RowKernel> {
        let port = |i: usize, dtype: DType| {
            let of_rows = space.of_rows[i];
            let access = if of_rows { space.rows.access(i) } else { space.elements.access(i) };
            Port { dtype, of_rows, access }
        };
        let out: Vec<Port> = outputs.iter().enumerate().map(|(i, d)| port(i, *d)).collect();
        let inp: Vec<Port> = inputs.iter().enumerate().map(|(i, d)| port(i + outputs.len(), *d)).collect();
        let cost = usual.cost() + inp.len() + out.len();
        let staged = Staged::new(usual, &space, &inp, Jit::default())?;
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
        for stage in &mut self.usual.stages {
            if jit == Jit::Off {
                stage.tier = None;
            } else if let Some(tier) = stage.tier.as_mut().and_then(Arc::get_mut) {
                tier.set(jit);
            }
        }
    }

    /// Whether every stage that computes elements runs as machine code.
    pub fn is_compiled(&self) -> bool {
        let mut computing = self.usual.stages.iter().filter(|s| s.made > 0).peekable();
        computing.peek().is_some() && computing.all(|s| s.tier.as_ref().is_some_and(|t| t.is_compiled()))
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
