//! An IR with reductions, cut into stages.
//!
//! A reduction needs all elements of its row before anything can use what it gives. So an IR with reductions is run in
//! stages: each goes over the elements once, reduces some values, and ends with what is computed once per row from what
//! was reduced. A stage is made of plain IRs: of the row's values it reads those that earlier stages made, and what
//! one stage computes per element another may find *cached* in scratch memory, if it is dear, or compute again.

use rustc_hash::FxHashMap;

use crate::ir::{ComputeType, Inst, KernelIr, KernelOp, Val};

/// Where an input of a stage's IR comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StageInput {
    /// Elements of this input.
    Input(u32),
    /// A value of the row.
    Row(u32),
    /// Elements an earlier stage left.
    Cached(u32),
}

/// What becomes of an output of a stage's IR over elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StageOutput {
    /// This output's elements.
    Output(u32),
    Cached(u32),
    /// Folded to a value of the row.
    Reduce(KernelOp, u32),
}

/// What becomes of an output of a stage's IR over rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowOutput {
    Output(u32),
    Row(u32),
}

/// One pass over the elements of a row, and what follows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage {
    pub(crate) elements: KernelIr,
    pub(crate) inputs: Vec<StageInput>,
    pub(crate) outputs: Vec<StageOutput>,
    pub(crate) rows: KernelIr,
    /// Values of the row that `rows` reads.
    pub(crate) row_inputs: Vec<u32>,
    pub(crate) row_outputs: Vec<RowOutput>,
}

/// An IR with reductions as stages.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReductionStages {
    /// The first stage has no elements: what rows can compute from their inputs alone.
    pub(crate) stages: Vec<Stage>,
    /// Lane of each value of a row.
    pub(crate) row_values: Vec<ComputeType>,
    /// Inputs that are values of a row: input and value.
    pub(crate) row_inputs: Vec<(u32, u32)>,
    /// Lane of each cached value.
    pub(crate) cached: Vec<ComputeType>,
}

/// How often a value is there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    /// Once.
    Uniform,
    /// Once per row.
    Row,
    Element,
}

/// Computing a value again costs less than keeping it, up to this many additions.
const CHEAP: usize = 4;

struct StageBuilder<'a> {
    ir: &'a KernelIr,
    level: Vec<Level>,
    /// The stage after which a row's value is there, or in which an element is computed.
    stage: Vec<usize>,
    /// Numbers of row values and of cached values.
    row: Vec<Option<u32>>,
    cache: Vec<Option<u32>>,
}

impl ReductionStages {
    /// Cuts an IR; `of_rows` says per input whether it has one element per row, `cache` whether values may be cached.
    pub(crate) fn new(ir: &KernelIr, of_rows: &[bool], cache: bool) -> ReductionStages {
        let count = ir.values.len();
        let mut c = StageBuilder {
            ir,
            level: Vec::with_capacity(count),
            stage: Vec::with_capacity(count),
            row: vec![None; count],
            cache: vec![None; count],
        };
        c.place(of_rows);
        let mut split = ReductionStages::default();
        c.number_rows(&mut split);
        if cache {
            c.number_cached(&mut split);
        }
        let stages = c.stage.iter().copied().max().unwrap_or(0) + 1;
        split.stages = (0..stages).map(|s| c.stage_of(s)).collect();
        split
    }
}

impl StageBuilder<'_> {
    fn values(&self) -> std::ops::Range<usize> {
        0..self.ir.values.len()
    }

    fn operands(&self, v: usize) -> impl Iterator<Item = usize> {
        self.ir.operands(Val(v as u32)).iter().map(|o| o.0 as usize)
    }

    /// Levels, and stages: rows' inputs are there after stage 0, elements come in stage 1 and later.
    fn place(&mut self, of_rows: &[bool]) {
        for v in self.values() {
            let (level, stage) = match self.ir.values[v].0 {
                Inst::Number(..) | Inst::Const(_) => (Level::Uniform, 0),
                Inst::Input(i) if of_rows[i as usize] => (Level::Row, 0),
                Inst::Input(_) => (Level::Element, 1),
                Inst::Op(op, _) => {
                    let widest = self.operands(v).map(|o| self.level[o]).max().unwrap_or(Level::Uniform);
                    // Values of a row are there after their stage.
                    let ready = |o: usize| self.stage[o] + usize::from(self.level[o] == Level::Row);
                    let first = self.operands(v).map(ready).max().unwrap_or(0).max(1);
                    match widest {
                        // Of equal elements too: how many there are counts.
                        _ if op.reduces() => (Level::Row, first),
                        Level::Element => (Level::Element, first),
                        other => (other, self.operands(v).map(|o| self.stage[o]).max().unwrap_or(0)),
                    }
                }
            };
            self.level.push(level);
            self.stage.push(stage);
        }
    }

    fn reduces(&self, v: usize) -> bool {
        matches!(self.ir.values[v].0, Inst::Op(op, _) if op.reduces())
    }

    /// Gives a number to all values of the row that something elsewhere needs.
    fn number_rows(&mut self, split: &mut ReductionStages) {
        let mut wanted = vec![false; self.ir.values.len()];
        for v in self.values() {
            for o in self.operands(v).filter(|&o| self.level[o] == Level::Row) {
                let elsewhere = self.level[v] == Level::Element || self.reduces(v) || self.stage[v] != self.stage[o];
                wanted[o] |= elsewhere;
            }
        }
        for v in self.values().filter(|&v| self.level[v] == Level::Row) {
            let input = if let Inst::Input(i) = self.ir.values[v].0 { Some(i) } else { None };
            if wanted[v] || self.reduces(v) || input.is_some() {
                let number = split.row_values.len() as u32;
                self.row[v] = Some(number);
                split.row_values.push(self.ir.values[v].1);
                split.row_inputs.extend(input.map(|i| (i, number)));
            }
        }
    }

    /// Gives a number to all dear elements that a later stage needs.
    fn number_cached(&mut self, split: &mut ReductionStages) {
        let mut cost = vec![0usize; self.ir.values.len()];
        for v in self.values().filter(|&v| self.level[v] == Level::Element) {
            let Inst::Op(op, _) = self.ir.values[v].0 else { continue };
            cost[v] = self.operands(v).map(|o| cost[o]).sum::<usize>() + op.cost();
        }
        for v in self.values() {
            for o in self.operands(v).collect::<Vec<_>>() {
                let elements = self.level[o] == Level::Element && self.level[v] == Level::Element;
                if elements && self.stage[v] > self.stage[o] && cost[o] > CHEAP && self.cache[o].is_none() {
                    self.cache[o] = Some(split.cached.len() as u32);
                    split.cached.push(self.ir.values[o].1);
                }
            }
        }
    }

    fn stage_of(&self, s: usize) -> Stage {
        let mut stage = Stage::default();
        let (mut targets, mut row_targets) = (Vec::new(), Vec::new());
        for v in self.values() {
            match self.level[v] {
                Level::Row if self.stage[v] == s => {
                    if let (true, Inst::Op(op, args)) = (self.reduces(v), self.ir.values[v].0) {
                        targets.push(args[0].0 as usize);
                        stage.outputs.push(StageOutput::Reduce(op, self.row[v].unwrap_or(0)));
                    } else if let (Some(row), Inst::Op(..)) = (self.row[v], self.ir.values[v].0) {
                        row_targets.push(v);
                        stage.row_outputs.push(RowOutput::Row(row));
                    }
                }
                Level::Element if self.stage[v] == s => {
                    if let Some(cached) = self.cache[v] {
                        targets.push(v);
                        stage.outputs.push(StageOutput::Cached(cached));
                    }
                }
                _ => {}
            }
        }
        for (i, o) in self.ir.outputs.iter().enumerate().map(|(i, o)| (i as u32, o.0 as usize)) {
            let of_rows = self.level[o] != Level::Element;
            if self.stage[o] == s && of_rows {
                row_targets.push(o);
                stage.row_outputs.push(RowOutput::Output(i));
            } else if self.stage[o] == s {
                targets.push(o);
                stage.outputs.push(StageOutput::Output(i));
            }
        }
        let (elements, inputs) = self.extract(&targets, |v| match (self.level[v], self.ir.values[v].0) {
            (Level::Row, _) => self.row[v].map(StageInput::Row),
            (Level::Element, Inst::Input(i)) => Some(StageInput::Input(i)),
            (Level::Element, _) if self.stage[v] < s => self.cache[v].map(StageInput::Cached),
            _ => None,
        });
        let made_here =
            |v: usize| self.stage[v] == s && !self.reduces(v) && matches!(self.ir.values[v].0, Inst::Op(..));
        let (rows, row_inputs) =
            self.extract(&row_targets, |v| self.row[v].filter(|_| !made_here(v)).map(StageInput::Row));
        stage.elements = elements;
        stage.inputs = inputs;
        stage.rows = rows;
        stage.row_inputs = row_inputs.into_iter().map(|f| if let StageInput::Row(r) = f { r } else { 0 }).collect();
        stage
    }

    /// What these values need, with some of it as inputs.
    fn extract(&self, targets: &[usize], cut: impl Fn(usize) -> Option<StageInput>) -> (KernelIr, Vec<StageInput>) {
        let mut needed = vec![false; self.ir.values.len()];
        targets.iter().for_each(|&t| needed[t] = true);
        for v in self.values().rev() {
            if needed[v] && cut(v).is_none() {
                self.operands(v).for_each(|o| needed[o] = true);
            }
        }
        let mut ir = KernelIr { ones: self.ir.ones.clone(), ..KernelIr::default() };
        let mut inputs: Vec<StageInput> = Vec::new();
        let mut renamed: FxHashMap<usize, Val> = FxHashMap::default();
        for v in self.values().filter(|&v| needed[v]) {
            let (inst, ty) = self.ir.values[v];
            let inst = match (cut(v), inst) {
                (Some(input), _) => {
                    inputs.push(input);
                    Inst::Input(inputs.len() as u32 - 1)
                }
                (None, Inst::Op(op, args)) => {
                    Inst::Op(op, args.map(|a| renamed.get(&(a.0 as usize)).copied().unwrap_or(Val(0))))
                }
                (None, other) => other,
            };
            renamed.insert(v, Val(ir.values.len() as u32));
            ir.values.push((inst, ty));
        }
        ir.outputs = targets.iter().map(|t| renamed[t]).collect();
        (ir, inputs)
    }
}
