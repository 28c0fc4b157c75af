//! Kernels with reductions. A team of threads goes over a row, once for each stage (`reduce/stages.rs`), and keeps the
//! row's values in registers: nothing else is kept between stages, elements are computed again.
//!
//! | team | rows | of |
//! |---|---|---|
//! | a warp | eight at a time | less than [`LONG`] elements |
//! | a block | one at a time | more |
//! | a lane of each warp | 32 at a time | elements that lie beside those of the next row |
//!
//! Where long rows are few and one pass is all, they are cut into chunks of fixed length: a first launch reduces each
//! to a partial value in scratch memory, a second one joins these. There are no atomics: how values are joined depends
//! on sizes alone.

use super::{
    Launches, Unsupported,
    launch::Launch,
    ops::{function, type_name},
    writer::{Operand, Writer, is_narrow, operands},
};
use crate::{
    ir::{ComputeType, Inst, KernelOp},
    reduce::{ReductionStages, RowKernel, RowOutput, Stage, StageInput, StageOutput},
    space::Access,
};

/// Rows of so many elements have a block each.
const LONG: usize = 256;
/// Elements of rows that have a block with more threads.
const VERY_LONG: usize = 8192;
/// A thread keeps at most so many elements of an input,
const MOST_HELD: usize = 32;
/// in at most so many registers in all.
const REGISTERS: usize = 64;
/// A loop over held elements is written out, up to so many operations.
const WRITTEN_OUT: usize = 640;
/// Most blocks of a launch; where there is more to do, they go round again.
const MAX_BLOCKS: usize = 1 << 16;
/// So many blocks keep a GPU busy: where there are fewer, long rows are cut.
const BUSY: usize = 512;

/// Which threads share rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Team {
    Warp,
    Block,
    Columns,
}

impl Team {
    /// The team for rows of so many elements.
    fn of(each: usize, columns: bool) -> Team {
        match columns {
            true => Team::Columns,
            false if each < LONG => Team::Warp,
            false => Team::Block,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Team::Warp => "Warp",
            Team::Block => "Block",
            Team::Columns => "Columns",
        }
    }

    /// Rows of a block at a time.
    fn rows(self) -> usize {
        match self {
            Team::Warp => 8,
            Team::Block => 1,
            Team::Columns => 32,
        }
    }

    /// Threads of a block.
    fn threads(self, each: usize) -> u32 {
        if self == Team::Block && each >= VERY_LONG { 512 } else { 256 }
    }

    /// Values of eight bytes in a block's shared memory.
    fn shared(self) -> usize {
        match self {
            Team::Warp => 1,
            Team::Block => 32,
            Team::Columns => 256,
        }
    }

    /// Elements of a row's chunk.
    fn chunk(self) -> usize {
        match self {
            Team::Warp => usize::MAX,
            Team::Block => 32 << 10,
            Team::Columns => 512,
        }
    }
}

/// What a launch does of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pass {
    /// All of it.
    Whole,
    /// Reduces chunks to partial values.
    Chunks,
    /// Joins the partial values of a row.
    Join,
}

/// The launches of a kernel with reductions; none where there are no rows.
///
/// # Errors
/// If there is no text for the kernel.
pub(super) fn launches(kernel: &RowKernel) -> Result<Launches, Unsupported> {
    let (rows, each) = (kernel.space.row_count, kernel.space.each);
    if rows == 0 {
        return Ok(Launches { each: Vec::new(), scratch_bytes: 0 });
    }
    let of_rows: Vec<bool> = kernel.inputs.iter().map(|p| p.of_rows).collect();
    let mut stages = ReductionStages::new(kernel.ir(), &of_rows, false);
    let team = Team::of(each, kernel.space.columns);
    let blocks = rows.div_ceil(team.rows());
    let chunks = each.div_ceil(team.chunk());
    if stages.stages.len() != 2 || blocks >= BUSY || chunks < 2 {
        let kept = ReductionStages::new(kernel.ir(), &of_rows, true);
        if held(kernel, &kept, team).is_some() {
            stages = kept;
        }
        let whole = RowWriter::new(kernel, &stages, team, Pass::Whole, 1)?.launch()?;
        return Ok(Launches { each: vec![whole], scratch_bytes: 0 });
    }
    let first = RowWriter::new(kernel, &stages, team, Pass::Chunks, chunks)?.launch()?;
    let second = RowWriter::new(kernel, &stages, Team::of(chunks, false), Pass::Join, chunks)?.launch()?;
    let reductions = stages.stages[1].outputs.iter().filter(|o| matches!(o, StageOutput::Reduce(..))).count();
    Ok(Launches { each: vec![first, second], scratch_bytes: reductions * rows * chunks * 8 })
}

/// Writes the function of one pass.
struct RowWriter<'a> {
    kernel: &'a RowKernel,
    stages: &'a ReductionStages,
    team: Team,
    pass: Pass,
    chunks: usize,
    outputs: Vec<Operand>,
    inputs: Vec<Operand>,
    /// Per output and per input whether it has one element per row.
    of_rows: [Vec<bool>; 2],
    w: Writer,
    /// Texts of how many rows there are, how many elements of each, and how many chunks.
    rows: String,
    each: String,
    chunk_count: String,
    /// How many elements of a row a thread has, if it keeps them.
    held: Option<usize>,
    /// Inputs whose elements it has by now.
    loaded: Vec<bool>,
}

impl<'a> RowWriter<'a> {
    fn new(
        kernel: &'a RowKernel,
        stages: &'a ReductionStages,
        team: Team,
        pass: Pass,
        chunks: usize,
    ) -> Result<RowWriter<'a>, Unsupported> {
        let space = &kernel.space;
        let is_row_output = |o: usize| {
            let mut outputs = stages.stages.iter().flat_map(|stage| &stage.row_outputs);
            outputs.any(|output| *output == RowOutput::Output(o as u32))
        };
        let of_rows = [
            (0..kernel.outputs.len()).map(is_row_output).collect::<Vec<_>>(),
            kernel.inputs.iter().map(|p| p.of_rows).collect::<Vec<_>>(),
        ];
        let access = |rows: bool, operand: usize| {
            if rows { space.rows.access(operand) } else { space.elements.access(operand) }
        };
        let count = kernel.outputs.len();
        let outputs = kernel.outputs.iter().zip(&of_rows[0]).enumerate();
        let inputs = kernel.inputs.iter().zip(&of_rows[1]).enumerate();
        let (outputs, inputs) = operands(
            outputs.map(|(o, (arg, rows))| (arg.dtype, access(*rows, o))),
            inputs.map(|(i, (arg, rows))| (arg.dtype, access(*rows, count + i))),
        )?;
        let narrow = is_narrow(&space.elements, count + inputs.len());
        let mut w = Writer::new(&outputs, &inputs, narrow);
        let rows = w.size("rows", space.row_count as i64);
        let each = w.size("each", space.each as i64);
        let chunk_count = if pass == Pass::Whole { String::new() } else { w.size("chunks", chunks as i64) };
        let held = (pass == Pass::Whole).then(|| held(kernel, stages, team)).flatten();
        let loaded = vec![false; inputs.len()];
        Ok(RowWriter {
            kernel,
            stages,
            team,
            pass,
            chunks,
            outputs,
            inputs,
            of_rows,
            w,
            rows,
            each,
            chunk_count,
            held,
            loaded,
        })
    }

    fn launch(mut self) -> Result<Launch, Unsupported> {
        let (team, rows) = (self.team, self.rows.clone());
        if self.pass != Pass::Whole {
            self.w.scratch();
        }
        self.w.line(format_args!("typedef {} Team;", team.name()));
        self.w.line(format_args!("__shared__ u64 shared[{}];", team.shared()));
        let groups = self.kernel.space.row_count.div_ceil(team.rows());
        let tasks = if self.pass == Pass::Chunks { groups * self.chunks } else { groups };
        let count = self.w.size("tasks", tasks as i64);
        self.w.open(format_args!("for (I task = (I)blockIdx.x; task < {count}; task += (I)gridDim.x)"));
        let group = if self.pass == Pass::Chunks { format!("task / {}", self.chunk_count) } else { "task".to_owned() };
        self.w.line(format_args!("const I wanted = {group} * Team::rows() + Team::row();"));
        // Threads without a row go over the last one with the others, and write nothing: all reach every barrier.
        self.w.line(format_args!("const bool live = wanted < {rows};"));
        self.w.line(format_args!("const I row = live ? wanted : {rows} - 1;"));
        self.row_inputs();
        let stages = self.stages;
        for stage in &stages.stages {
            self.elements(stage)?;
            self.row_values(stage)?;
        }
        self.w.close();
        let (pass, each) = (self.pass, self.kernel.space.each);
        let (kind, length) = match pass {
            Pass::Whole => ("rows", each),
            Pass::Chunks => ("row_chunks", self.team.chunk()),
            Pass::Join => ("row_join", self.chunks),
        };
        self.w.finish(kind, tasks.min(MAX_BLOCKS) as u32, team.threads(length))
    }

    /// What rows know before their elements are read.
    fn row_inputs(&mut self) {
        let space = &self.kernel.space;
        let of_rows = |side: &[bool], operands: &[Operand]| -> Vec<Operand> {
            operands.iter().zip(side).filter(|(_, rows)| **rows).map(|(operand, _)| operand.clone()).collect()
        };
        let mut operands = of_rows(&self.of_rows[0], &self.outputs);
        operands.extend(of_rows(&self.of_rows[1], &self.inputs));
        self.w.locate("row_", &space.rows, &operands.iter().collect::<Vec<_>>(), "row");
        for &(input, value) in &self.stages.row_inputs {
            let (ty, at) = (self.stages.row_values[value as usize], self.inputs[input as usize].at("row"));
            self.w.line(format_args!("const {} r{value} = load({at});", type_name(ty)));
        }
    }

    /// A pass over the elements of the row, or what another launch left of it.
    fn elements(&mut self, stage: &Stage) -> Result<(), Unsupported> {
        if stage.outputs.is_empty() {
            return Ok(());
        }
        let reductions = self.reductions(stage)?;
        for (reducer, ty, row) in &reductions {
            let ty = if self.pass == Pass::Join { total(reducer, *ty) } else { type_name(*ty) };
            self.w.line(format_args!("{ty} a{row} = {reducer}::start(({ty})0);"));
        }
        match self.pass {
            Pass::Join => self.join(&reductions),
            _ => self.element_loop(stage, &reductions)?,
        }
        for (k, (reducer, ty, row)) in reductions.iter().enumerate() {
            let reduced = format!("Team::reduce<{reducer}>({reducer}::widen(a{row}), shared)");
            if self.pass == Pass::Chunks {
                self.w.line(format_args!("const {} t{row} = {reduced};", total(reducer, *ty)));
                let at = self.partial(k, &format!("task % {}", self.chunk_count));
                self.w.line(format_args!("if (live && Team::first() == 0) {at} = word_of(t{row});"));
            } else {
                self.w.line(format_args!("const {0} r{row} = ({0}){reduced};", type_name(*ty)));
            }
        }
        Ok(())
    }

    /// A stage's reductions: the prelude's name, the type of what is reduced, and the number of the row's value.
    fn reductions(&self, stage: &Stage) -> Result<Vec<(&'static str, ComputeType, u32)>, Unsupported> {
        let outputs = stage.outputs.iter().zip(&stage.elements.outputs);
        let reduction = |(output, v): (&StageOutput, &_)| match *output {
            StageOutput::Reduce(op, row) => {
                let ty = stage.elements.ty(*v);
                Some(function(op, ty, ty).map(|name| (name, ty, row)).ok_or(Unsupported::Operation(op, ty)))
            }
            _ => None,
        };
        outputs.filter_map(reduction).collect()
    }

    fn element_loop(
        &mut self,
        stage: &Stage,
        reductions: &[(&'static str, ComputeType, u32)],
    ) -> Result<(), Unsupported> {
        let used = |input: &StageInput| matches!(input, StageInput::Input(_));
        if self.held.is_some() && stage.inputs.iter().any(used) {
            self.load_held(stage);
        }
        for output in &stage.outputs {
            if let (StageOutput::Cached(c), Some(held)) = (output, self.held) {
                let ty = type_name(self.stages.cached[*c as usize]);
                self.w.line(format_args!("{ty} cached{c}[{held}];"));
            }
        }
        self.open_elements();
        let mut used: Vec<&Operand> = Vec::new();
        used.extend(stage.inputs.iter().filter_map(|input| match input {
            StageInput::Input(i) if !self.loaded[*i as usize] => Some(&self.inputs[*i as usize]),
            _ => None,
        }));
        used.extend(stage.outputs.iter().filter_map(|output| match output {
            StageOutput::Output(o) => Some(&self.outputs[*o as usize]),
            _ => None,
        }));
        self.w.locate("", &self.kernel.space.elements, &used, "e");
        let (inputs, loaded) = (&self.inputs, &self.loaded);
        self.w.values(
            &stage.elements,
            |_| true,
            |k| match stage.inputs[k as usize] {
                StageInput::Input(i) if loaded[i as usize] => format!("held{i}[k]"),
                StageInput::Input(i) => format!("load({})", inputs[i as usize].at("e")),
                StageInput::Row(r) => format!("r{r}"),
                StageInput::Cached(c) => format!("cached{c}[k]"),
            },
        )?;
        let mut reductions = reductions.iter();
        for (output, v) in stage.outputs.iter().zip(&stage.elements.outputs) {
            match output {
                StageOutput::Output(o) => {
                    let at = self.outputs[*o as usize].at("e");
                    self.w.line(format_args!("if (live) store({at}, v{});", v.0));
                }
                StageOutput::Cached(c) => self.w.line(format_args!("cached{c}[k] = v{};", v.0)),
                StageOutput::Reduce(..) => {
                    if let Some((reducer, _, row)) = reductions.next() {
                        self.w.line(format_args!("a{row} = {reducer}::join(a{row}, v{});", v.0));
                    }
                }
            }
        }
        self.close_elements();
        Ok(())
    }

    /// Begins a loop over the elements that a thread has of its row: `e` is where one is in order.
    fn open_elements(&mut self) {
        let (rows, each) = (self.rows.clone(), self.each.clone());
        if let Some(held) = self.held {
            self.w.line("#pragma unroll");
            self.w.open(format_args!("for (int k = 0; k < {held}; k++)"));
            self.w.line("const I i = Team::first() + k * Team::step();");
            self.w.open(format_args!("if (i < {each})"));
        } else if self.pass == Pass::Chunks {
            let chunk = self.team.chunk();
            self.w.line(format_args!("const I start = task % {} * {chunk};", self.chunk_count));
            self.w.line(format_args!("const I end = min(start + {chunk}, {each});"));
            self.w.open("for (I i = start + Team::first(); i < end; i += Team::step())");
        } else {
            self.w.open(format_args!("for (I i = Team::first(); i < {each}; i += Team::step())"));
        }
        let at = if self.kernel.space.columns { format!("i * {rows} + row") } else { format!("row * {each} + i") };
        self.w.line(format_args!("const I e = {at};"));
    }

    fn close_elements(&mut self) {
        self.w.close();
        if self.held.is_some() {
            self.w.close();
        }
    }

    /// Reads what a stage needs and no stage before it did, all of it before any of it is used.
    fn load_held(&mut self, stage: &Stage) {
        let mut new: Vec<(usize, ComputeType)> = Vec::new();
        for (k, input) in stage.inputs.iter().enumerate() {
            if let (StageInput::Input(i), Some(ty)) = (input, input_type(stage, k))
                && !self.loaded[*i as usize]
                && self.inputs[*i as usize].access != Access::Uniform
            {
                new.push((*i as usize, ty));
            }
        }
        if new.is_empty() {
            return;
        }
        for &(i, ty) in &new {
            self.w.line(format_args!("{} held{i}[{}];", type_name(ty), self.held.unwrap_or_default()));
        }
        self.open_elements();
        let operands: Vec<&Operand> = new.iter().map(|&(i, _)| &self.inputs[i]).collect();
        self.w.locate("", &self.kernel.space.elements, &operands, "e");
        for &(i, _) in &new {
            self.w.line(format_args!("held{i}[k] = load({});", self.inputs[i].at("e")));
            self.loaded[i] = true;
        }
        self.close_elements();
    }

    /// The text of a row's partial value of the reduction with this number, of a chunk.
    fn partial(&self, reduction: usize, chunk: &str) -> String {
        let (rows, chunks) = (&self.rows, &self.chunk_count);
        format!("scratch[({reduction} * {rows} + row) * {chunks} + {chunk}]")
    }

    /// Joins partial values.
    fn join(&mut self, reductions: &[(&'static str, ComputeType, u32)]) {
        let chunks = self.chunk_count.clone();
        self.w.open(format_args!("for (I i = Team::first(); i < {chunks}; i += Team::step())"));
        for (k, (reducer, ty, row)) in reductions.iter().enumerate() {
            let from = match total(reducer, *ty) {
                "f32" => "f32_of((u32)",
                "f64" => "f64_of(",
                _ => "(i64)(",
            };
            let at = self.partial(k, "i");
            self.w.line(format_args!("a{row} = {reducer}::join(a{row}, {from}{at}));"));
        }
        self.w.close();
    }

    /// What is computed once for the row after a stage.
    fn row_values(&mut self, stage: &Stage) -> Result<(), Unsupported> {
        // A row's values are needed before its chunks are reduced, and its outputs once.
        let reduced = !stage.outputs.is_empty();
        if stage.row_outputs.is_empty() || self.pass == Pass::Chunks && reduced {
            return Ok(());
        }
        for output in &stage.row_outputs {
            if let RowOutput::Row(r) = output {
                self.w.line(format_args!("{} r{r};", type_name(self.stages.row_values[*r as usize])));
            }
        }
        self.w.open("");
        self.w.values(&stage.rows, |_| true, |k| format!("r{}", stage.row_inputs[k as usize]))?;
        for (output, v) in stage.row_outputs.iter().zip(&stage.rows.outputs) {
            match *output {
                RowOutput::Row(r) => self.w.line(format_args!("r{r} = v{};", v.0)),
                RowOutput::Output(_) if self.pass == Pass::Chunks => {}
                RowOutput::Output(o) => {
                    let at = self.outputs[o as usize].at("row");
                    self.w.line(format_args!("if (live && Team::first() == 0) store({at}, v{});", v.0));
                }
            }
        }
        self.w.close();
        Ok(())
    }
}

/// The type that a stage has an input in, if it reads it.
fn input_type(stage: &Stage, input: usize) -> Option<ComputeType> {
    let reads = |inst: &Inst| matches!(inst, Inst::Input(i) if *i as usize == input);
    stage.elements.values.iter().find(|(inst, _)| reads(inst)).map(|&(_, ty)| ty)
}

/// How many elements of a row each thread has, if that is few enough to keep what is read and cached of them, and to
/// write out the loops over them.
fn held(kernel: &RowKernel, stages: &ReductionStages, team: Team) -> Option<usize> {
    let each = kernel.space.each;
    let step = match team {
        Team::Warp => 32,
        Team::Block => team.threads(each) as usize,
        Team::Columns => return None,
    };
    let count = each.div_ceil(step);
    let operations: usize = stages.stages.iter().map(|stage| stage.elements.values.len()).sum();
    let is_read = |i: usize| {
        let mut reads = stages.stages.iter().flat_map(|stage| &stage.inputs);
        let is_one = kernel.space.elements.access(kernel.outputs.len() + i) == Access::Uniform;
        !is_one && reads.any(|input| matches!(input, StageInput::Input(r) if *r as usize == i))
    };
    let words = |bytes: usize| bytes.div_ceil(4);
    let read = (0..kernel.inputs.len()).filter(|&i| is_read(i)).map(|i| words(kernel.inputs[i].dtype.size_of()));
    let cached = stages.cached.iter().map(|ty| words(ty.bytes()));
    let registers = (read.sum::<usize>() + cached.sum::<usize>()) * count;
    let fits = count <= MOST_HELD && registers <= REGISTERS && operations * count <= WRITTEN_OUT;
    (fits && count > 0).then_some(count)
}

/// The type in which what threads have is joined: floats are added in double precision, so that long sums lose nothing.
fn total(reducer: &str, ty: ComputeType) -> &'static str {
    let sum = function(KernelOp::Sum, ty, ty) == Some(reducer);
    if sum && ty == ComputeType::F32 { type_name(ComputeType::F64) } else { type_name(ty) }
}
