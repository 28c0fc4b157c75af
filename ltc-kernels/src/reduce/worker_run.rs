//! One thread's part in a run of a kernel with reductions: see `rows.rs`.

use std::ops::Range;

use ltc_ir::DType;
use smallvec::SmallVec;

use super::{
    rows::{RowArg, RowKernel, StageLoops, Staged, Traversal},
    stages::{RowOutput, StageInput, StageOutput},
};
use crate::{
    ir::ComputeType,
    jit::{Compiled, Jit},
    space::{Access, MAX_BLOCK, Way},
    tile::{Ran, TooLarge, with_scratch},
};

/// Elements that take longer to copy than a block takes to begin.
const LONG_STRETCH: usize = 512;

/// What all threads of a run share.
pub(crate) struct ReduceArgs<'a> {
    pub(crate) outputs: &'a [*mut u8],
    pub(crate) inputs: &'a [*const u8],
    /// Per input and output whether its address suits vectors of its dtype.
    pub(crate) even: (SmallVec<[bool; 8]>, SmallVec<[bool; 8]>),
    pub(crate) numbers: &'a [u64],
    /// Accumulators of the tasks of a long reduction.
    pub(crate) partials: *mut u64,
}

// SAFETY: threads read inputs and numbers, and write disjoint elements of the outputs and partials.
unsafe impl Sync for ReduceArgs<'_> {}

/// Where the elements of a block's buffer begin.
#[derive(Clone, Copy)]
enum Source {
    /// Here, whatever the block.
    Here(*mut u8),
    /// From here, so many bytes for each element of the space before.
    Along(*mut u8, usize),
    /// The same for those of the row tile.
    Cached(*mut u8, usize),
    /// Where the space says, if they lie one after the other; else in staging memory.
    Somewhere { operand: usize, buffer: RowArg, base: *mut u8, staging: *mut u8 },
    /// In staging memory: they are not in the type's form, or at odd addresses.
    Elsewhere { operand: usize, buffer: RowArg, base: *mut u8, staging: *mut u8 },
}

impl Source {
    fn is_along(&self) -> bool {
        matches!(self, Source::Along(..))
    }
}

/// One thread's part in a run.
pub(crate) struct WorkerRun<'a> {
    pub(crate) kernel: &'a RowKernel,
    pub(crate) staged: &'a Staged,
    pub(crate) shared: &'a ReduceArgs<'a>,
    /// Scratch memory of [`Staged::scratch`] bytes.
    pub(crate) scratch: *mut u8,
}

// Methods are unsafe as `RowKernel::run` is, whose contract they rely on; scratch memory is this thread's alone, and
// its pieces do not overlap.
impl WorkerRun<'_> {
    /// Piece `i` of those that begin at `from`.
    fn piece(&self, from: usize, i: usize) -> *mut u8 {
        self.scratch.wrapping_add(from + i * self.staged.piece)
    }

    fn row_value(&self, row: u32) -> *mut u8 {
        self.piece(self.staged.row_values, row as usize)
    }

    fn rows_of(&self, row_tile: usize) -> Range<usize> {
        let first = row_tile * self.staged.row_tile;
        first..(first + self.staged.row_tile).min(self.kernel.space.row_count)
    }

    /// The accumulators of reduction `i` of a stage, of these rows of the row tile.
    ///
    /// # Safety
    /// Only one such slice is alive at a time for each reduction.
    unsafe fn totals<'a>(&self, i: usize, rows: Range<usize>) -> &'a mut [u64] {
        let first = self.piece(self.staged.totals, i).cast::<u64>().wrapping_add(rows.start);
        // SAFETY: a piece has eight bytes for each row of a row tile, and is aligned.
        unsafe { std::slice::from_raw_parts_mut(first, rows.len()) }
    }

    /// A row tile, or a chunk of its elements.
    pub(crate) unsafe fn task(&self, row_tile: usize, chunk: usize, chunks: usize) {
        let rows = self.rows_of(row_tile);
        // SAFETY: see above.
        unsafe {
            self.begin(&rows, chunk == 0 || chunks == 1);
            for (i, stage) in self.staged.stages.iter().enumerate().skip(1) {
                for (f, reducer) in stage.reducers.iter().enumerate() {
                    if let Some(reducer) = reducer {
                        self.totals(f, 0..rows.len()).fill(reducer.start);
                    }
                }
                if chunks == 1 {
                    self.elements(stage, &rows, 0..self.kernel.space.each);
                    self.finish(i, &rows, true);
                } else {
                    let first = chunk * self.staged.chunk;
                    let end = (first + self.staged.chunk).min(self.kernel.space.each);
                    self.elements(stage, &rows, first..end);
                    for f in 0..stage.reducers.len() {
                        let at = ((row_tile * chunks + chunk) * stage.reducers.len() + f) * self.staged.row_tile;
                        let partial = std::slice::from_raw_parts_mut(self.shared.partials.add(at), rows.len());
                        partial.copy_from_slice(self.totals(f, 0..rows.len()));
                    }
                }
            }
        }
    }

    /// Ends a row tile whose chunks are done.
    pub(crate) unsafe fn join(&self, row_tile: usize, chunks: usize) {
        let rows = self.rows_of(row_tile);
        let Some(stage) = self.staged.stages.last() else { return };
        // SAFETY: see above.
        unsafe {
            self.begin(&rows, false);
            for (f, reducer) in stage.reducers.iter().enumerate() {
                let Some(reducer) = reducer else { continue };
                let totals = self.totals(f, 0..rows.len());
                totals.fill(reducer.start);
                for chunk in 0..chunks {
                    let at = ((row_tile * chunks + chunk) * stage.reducers.len() + f) * self.staged.row_tile;
                    (reducer.join)(totals, std::slice::from_raw_parts(self.shared.partials.add(at), rows.len()));
                }
            }
            self.finish(self.staged.stages.len() - 1, &rows, true);
        }
    }

    /// Reads the rows' inputs, and computes what needs nothing else.
    unsafe fn begin(&self, rows: &Range<usize>, store: bool) {
        let kernel = self.kernel;
        // SAFETY: see above.
        unsafe {
            for &(input, row) in &self.staged.split.row_inputs {
                let (i, buffer) = (input as usize, kernel.inputs[input as usize]);
                let operand = kernel.outputs.len() + i;
                self.load_rows(operand, buffer, self.shared.inputs[i], self.row_value(row), rows);
            }
            self.finish(0, rows, store);
        }
    }

    unsafe fn load_rows(&self, operand: usize, buffer: RowArg, base: *const u8, to: *mut u8, rows: &Range<usize>) {
        // SAFETY: see above; a row tile has at most as many rows as a block has elements.
        unsafe { self.kernel.space.rows.convert(Way::In, operand, buffer.dtype, base.cast_mut(), to, rows.clone()) }
    }

    /// Turns totals into values of the rows, and computes what follows from them.
    unsafe fn finish(&self, stage: usize, rows: &Range<usize>, store: bool) {
        let (kernel, StageLoops { stage, rows: loops, reducers, .. }) = (self.kernel, &self.staged.stages[stage]);
        // SAFETY: see above.
        unsafe {
            for (f, (reducer, output)) in reducers.iter().zip(&stage.outputs).enumerate() {
                if let (Some(reducer), StageOutput::Reduce(_, row)) = (reducer, output) {
                    (reducer.values)(self.totals(f, 0..rows.len()), self.row_value(*row));
                }
            }
            if stage.row_outputs.is_empty() {
                return;
            }
            let inputs = stage.row_inputs.iter().map(|&r| self.row_value(r));
            let target = |(i, output): (usize, &RowOutput)| match *output {
                RowOutput::Row(row) => self.row_value(row),
                RowOutput::Output(_) => self.piece(self.staged.outputs_at, i),
            };
            let outputs = stage.row_outputs.iter().enumerate().map(target);
            let buffers: SmallVec<[*mut u8; 16]> = inputs.chain(outputs).collect();
            let mut uniforms: SmallVec<[u64; 32]> = SmallVec::from_elem(0, loops.uniform_count());
            // No input is uniform: there are several rows.
            loops.fill_uniforms(&mut uniforms, (&[], buffers.len()), self.shared.numbers);
            loops.run_block(&uniforms, &buffers, (self.scratch, self.staged.piece), rows.len());
            let outputs = &buffers[stage.row_inputs.len()..];
            for (output, &block) in stage.row_outputs.iter().zip(outputs).filter(|_| store) {
                if let RowOutput::Output(o) = *output {
                    let (o, buffer) = (o as usize, kernel.outputs[o as usize]);
                    if buffer.of_rows {
                        let base = self.shared.outputs[o];
                        kernel.space.rows.convert(Way::Out, o, buffer.dtype, base, block, rows.clone());
                    } else {
                        self.spread(o, buffer, block, rows);
                    }
                }
            }
        }
    }

    /// Writes a value of each row to all elements of an output.
    unsafe fn spread(&self, output: usize, buffer: RowArg, values: *mut u8, rows: &Range<usize>) {
        let (space, base) = (&self.kernel.space, self.shared.outputs[output]);
        let bytes = ComputeType::of(buffer.dtype).map_or(8, ComputeType::bytes);
        let write = |block, elements| {
            // SAFETY: see above; blocks have as many elements.
            unsafe { space.elements.convert(Way::Out, output, buffer.dtype, base, block, elements) }
        };
        if space.columns {
            for first in (0..space.each).map(|i| i * space.row_count + rows.start) {
                write(values, first..first + rows.len());
            }
            return;
        }
        let mut block = [0u64; MAX_BLOCK];
        let block = block.as_mut_ptr().cast::<u8>();
        for (r, row) in rows.clone().enumerate() {
            // SAFETY: a block has room for `MAX_BLOCK` values of any type.
            unsafe { repeat(values.add(r * bytes), block, 1, MAX_BLOCK.min(space.each), bytes) };
            for start in (0..space.each).step_by(MAX_BLOCK) {
                let n = MAX_BLOCK.min(space.each - start);
                write(block, row * space.each + start..row * space.each + start + n);
            }
        }
    }

    /// A stage's elements `part` of each of these rows.
    unsafe fn elements(&self, stage: &StageLoops, rows: &Range<usize>, part: Range<usize>) {
        let (space, staged) = (&self.kernel.space, self.staged);
        if stage.stage.outputs.is_empty() {
            return;
        }
        let mut uniforms: SmallVec<[u64; 32]> = SmallVec::from_elem(0, stage.elements.uniform_count());
        let value = |f: &StageInput| {
            if let StageInput::Row(r) = f { self.row_value(*r).cast_const() } else { std::ptr::null() }
        };
        let mut values: SmallVec<[*const u8; 16]> = stage.stage.inputs.iter().map(value).collect();
        // SAFETY: see above. Uniform inputs are values of the row, of which a line has one.
        unsafe {
            let buffers = stage.stage.inputs.len() + stage.made;
            let fill = |values: &[*const u8], uniforms: &mut [u64]| {
                stage.elements.fill_uniforms(uniforms, (values, buffers), self.shared.numbers);
            };
            fill(&values, &mut uniforms);
            let work = rows.len() * part.len() * self.kernel.cost;
            let compiled = stage.tier.as_ref().and_then(|tier| tier.code(&uniforms, work));
            if let Some(compiled) = compiled {
                compiled.prepare(&mut uniforms);
            }
            let sources = self.sources(stage);
            let on = (stage, &sources[..]);
            with_scratch(compiled.map_or(0, Compiled::scratch), |spills| match staged.traversal {
                Traversal::PackedRows => {
                    let n = rows.len() * space.each;
                    self.repeat_values(stage, &values, rows.len());
                    self.block(on, (compiled, spills), &uniforms, (rows.start * space.each, 0), (0..rows.len(), n));
                }
                // Several rows that are only reduced, from where they lie, are one block.
                Traversal::SingleRow
                    if staged.row_tile > 1 && stage.made == 0 && sources.iter().all(Source::is_along) =>
                {
                    let n = rows.len() * space.each;
                    self.block(on, (compiled, spills), &uniforms, (rows.start * space.each, 0), (0..rows.len(), n));
                }
                Traversal::SingleRow => {
                    // Where a row lies in several long stretches, blocks end with them, so that nothing is copied.
                    let stretch = space.elements.row();
                    let cut = (LONG_STRETCH..space.each).contains(&stretch);
                    let by_row = values.iter().any(|v| !v.is_null());
                    for r in 0..rows.len() {
                        let mut code = compiled;
                        if r > 0 && by_row {
                            let step = values.iter_mut().zip(&stage.bytes).filter(|(v, _)| !v.is_null());
                            step.for_each(|(v, bytes)| *v = v.add(*bytes));
                            if compiled.is_none_or(Compiled::reads_uniforms_as_they_are) {
                                stage.elements.refill_uniforms(&mut uniforms, (&values, buffers));
                            } else {
                                fill(&values, &mut uniforms);
                            }
                            code = compiled.filter(|code| code.guards_hold(&uniforms));
                            if let Some(code) = code {
                                code.prepare(&mut uniforms);
                            }
                        }
                        let (first, mut start) = ((rows.start + r) * space.each, part.start);
                        while start < part.end {
                            let mut n = staged.block.min(part.end - start);
                            if cut {
                                n = n.min(stretch - (first + start) % stretch);
                            }
                            let cached = r * space.each + start;
                            self.block(on, (code, spills), &uniforms, (first + start, cached), (r..r + 1, n));
                            start += n;
                        }
                    }
                }
                Traversal::ColumnMajor => {
                    if staged.lines > 1 {
                        self.repeat_lines(stage, &values, (rows.len(), staged.lines));
                    }
                    self.columns(on, (compiled, spills), &uniforms, rows, part);
                }
            });
        }
    }

    /// The blocks of stages whose rows lie side by side, some lines each.
    unsafe fn columns(
        &self,
        on: (&StageLoops, &[Source]),
        code: (Option<&Compiled>, *mut u8),
        uniforms: &[u64],
        rows: &Range<usize>,
        part: Range<usize>,
    ) {
        let (n, lines) = (rows.len(), self.staged.lines);
        for i in part.clone().step_by(lines) {
            let (at, count) = (i * self.kernel.space.row_count + rows.start, n * lines.min(part.end - i));
            // SAFETY: see above.
            unsafe { self.block(on, code, uniforms, (at, i * n), (0..n, count)) };
        }
    }

    /// Copies each row's values beside its elements, of `rows` whole rows that are one block.
    unsafe fn repeat_values(&self, stage: &StageLoops, values: &[*const u8], rows: usize) {
        for (i, _) in stage.stage.inputs.iter().enumerate().filter(|(_, input)| matches!(input, StageInput::Row(_))) {
            let to = self.piece(self.staged.inputs_at, i);
            // SAFETY: see above; a piece has room for a block, which these rows are.
            unsafe { repeat(values[i], to, rows, self.kernel.space.each, stage.bytes[i]) };
        }
    }

    /// Copies values of `rows` rows beside the elements of a block of several lines.
    unsafe fn repeat_lines(&self, stage: &StageLoops, values: &[*const u8], (rows, lines): (usize, usize)) {
        for (i, _) in stage.stage.inputs.iter().enumerate().filter(|(_, input)| matches!(input, StageInput::Row(_))) {
            let (to, bytes) = (self.piece(self.staged.inputs_at, i), rows * stage.bytes[i]);
            // SAFETY: see above; a piece has room for a block, which these lines are.
            (0..lines).for_each(|l| unsafe { std::ptr::copy_nonoverlapping(values[i], to.add(l * bytes), bytes) });
        }
    }

    /// Where a stage's buffers lie: inputs, then what is made.
    fn sources(&self, stage: &StageLoops) -> SmallVec<[Source; 16]> {
        let (kernel, staged, shared) = (self.kernel, self.staged, self.shared);
        let cached = |c: u32| {
            let first = self.scratch.wrapping_add(staged.cached_at + c as usize * staged.cached_bytes);
            Source::Cached(first, staged.split.cached[c as usize].bytes())
        };
        let operand =
            |operand: usize, buffer: RowArg, (base, even): (*mut u8, bool), staging: *mut u8| match buffer.access {
                _ if buffer.is_half() || !even => Source::Elsewhere { operand, buffer, base, staging },
                Access::Dense => Source::Along(base, buffer.dtype.size_of()),
                _ => Source::Somewhere { operand, buffer, base, staging },
            };
        let input = |(k, input): (usize, &StageInput)| match *input {
            StageInput::Cached(c) => cached(c),
            StageInput::Row(r) if staged.traversal == Traversal::ColumnMajor && staged.lines == 1 => {
                Source::Here(self.row_value(r))
            }
            // Repeated before; or uniform, and not looked at.
            StageInput::Row(_) => Source::Here(self.piece(staged.inputs_at, k)),
            StageInput::Input(i) => {
                let i = i as usize;
                let memory = (shared.inputs[i].cast_mut(), shared.even.0[i]);
                operand(kernel.outputs.len() + i, kernel.inputs[i], memory, self.piece(staged.inputs_at, k))
            }
        };
        let output = |(k, output): (usize, &StageOutput)| match *output {
            StageOutput::Cached(c) => cached(c),
            StageOutput::Reduce(..) => Source::Here(self.piece(staged.outputs_at, k)),
            StageOutput::Output(o) => {
                let o = o as usize;
                let memory = (shared.outputs[o], shared.even.1[o]);
                operand(o, kernel.outputs[o], memory, self.piece(staged.outputs_at, k))
            }
        };
        let inputs = stage.stage.inputs.iter().enumerate().map(input);
        inputs.chain(stage.stage.outputs[..stage.made].iter().enumerate().map(output)).collect()
    }

    /// One block: `n` elements from `at`, cached ones from `cached`, of these rows of the row tile. Machine code, if
    /// there is any, has its own scratch memory.
    unsafe fn block(
        &self,
        (stage, sources): (&StageLoops, &[Source]),
        (code, spills): (Option<&Compiled>, *mut u8),
        uniforms: &[u64],
        (at, cached): (usize, usize),
        (rows, n): (Range<usize>, usize),
    ) {
        let (kernel, staged, shared) = (self.kernel, self.staged, self.shared);
        let space = &kernel.space.elements;
        let inputs = stage.stage.inputs.len();
        let mut buffers: SmallVec<[*mut u8; 16]> = SmallVec::new();
        // SAFETY: see above.
        unsafe {
            for (k, source) in sources.iter().enumerate() {
                let copy = |operand: usize, buffer: RowArg, base: *mut u8, staging: *mut u8| {
                    if k < inputs {
                        space.convert(Way::In, operand, buffer.dtype, base, staging, at..at + n);
                    }
                    staging
                };
                buffers.push(match *source {
                    Source::Here(here) => here,
                    Source::Along(first, bytes) => first.add(at * bytes),
                    Source::Cached(first, bytes) => first.add(cached * bytes),
                    Source::Elsewhere { operand, buffer, base, staging } => copy(operand, buffer, base, staging),
                    Source::Somewhere { operand, buffer, base, staging } => match space.stretch(operand, at) {
                        (offset, 1, left) if left >= n => base.offset(offset * buffer.dtype.size_of() as isize),
                        _ => copy(operand, buffer, base, staging),
                    },
                });
            }
            match code {
                Some(code) => {
                    let done = code.run(&buffers, uniforms, n, spills);
                    if done < n {
                        let mut uniforms: SmallVec<[u64; 32]> = SmallVec::from_slice(uniforms);
                        code.restore(&mut uniforms);
                        let left = code.after(&buffers, done);
                        stage.elements.run_block(&uniforms, &left, (self.scratch, staged.piece), n - done);
                    }
                }
                None if stage.made > 0 => {
                    stage.elements.run_block(uniforms, &buffers, (self.scratch, staged.piece), n);
                }
                None => {}
            }
            // Made first, then read as they come.
            let kept = (inputs..buffers.len()).chain(stage.reduced_inputs.iter().copied());
            for (k, (output, buffer)) in stage.stage.outputs.iter().zip(kept).enumerate() {
                match (*output, &stage.reducers[k]) {
                    (StageOutput::Reduce(..), Some(reducer)) if staged.traversal == Traversal::ColumnMajor => {
                        (reducer.columns)(self.totals(k, rows.clone()), buffers[buffer], n / rows.len());
                    }
                    (StageOutput::Reduce(..), Some(reducer)) => {
                        (reducer.rows)(self.totals(k, rows.clone()), buffers[buffer], n / rows.len());
                    }
                    (StageOutput::Output(o), _) if buffers[buffer] == self.piece(staged.outputs_at, k) => {
                        let (o, buffer, block) = (o as usize, kernel.outputs[o as usize], buffers[buffer]);
                        space.convert(Way::Out, o, buffer.dtype, shared.outputs[o], block, at..at + n);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Writes each of `count` values `times` times.
///
/// # Safety
/// `from` has `count` values of so many bytes, `to` room for all copies; both are aligned for them and do not overlap.
unsafe fn repeat(from: *const u8, to: *mut u8, count: usize, times: usize, bytes: usize) {
    /// # Safety
    /// As [`repeat`].
    unsafe fn typed<T: Copy>(from: *const u8, to: *mut u8, count: usize, times: usize) {
        // SAFETY: by this function's contract.
        let (from, to) = unsafe {
            (
                std::slice::from_raw_parts(from.cast::<T>(), count),
                std::slice::from_raw_parts_mut(to.cast::<T>(), count * times),
            )
        };
        to.chunks_exact_mut(times.max(1)).zip(from).for_each(|(to, from)| to.fill(*from));
    }
    // SAFETY: by this function's contract.
    unsafe {
        match bytes {
            1 => typed::<u8>(from, to, count, times),
            4 => typed::<u32>(from, to, count, times),
            _ => typed::<u64>(from, to, count, times),
        }
    }
}

impl RowKernel {
    fn tasks(&self, staged: &Staged) -> (usize, usize) {
        let chunks = self.space.each.div_ceil(staged.chunk).max(1);
        (self.space.row_count.div_ceil(staged.row_tile), chunks)
    }

    /// Runs the kernel. `parallel(n, grain, f)` must call `f` for ranges that cover `0..n` once, on any threads; ranges
    /// of less than `grain` are not worth a thread. Says by what it ran; fails if the form for unusual numbers cannot
    /// be made.
    ///
    /// # Safety
    /// Inputs are readable and outputs writable in all the space's elements, at the layouts the kernel was made for.
    /// Outputs overlap nothing. `numbers` has all words the IR speaks of.
    pub unsafe fn run(
        &self,
        outputs: &[*mut u8],
        inputs: &[*const u8],
        numbers: &[u64],
        parallel: impl FnOnce(usize, usize, &(dyn Fn(Range<usize>) + Sync)),
    ) -> Result<Ran, TooLarge> {
        let one =
            |&(word, dtype): &(u32, DType)| ComputeType::F64.bits_from(dtype, numbers[word as usize]) == 1f64.to_bits();
        let usual = self.ones.iter().all(one);
        let staged = if usual {
            &self.usual
        } else {
            let make = || Staged::new(&self.general.0, &self.space, &self.inputs, Jit::Off);
            self.general.1.get_or_init(make).as_ref().ok_or(TooLarge)?
        };
        let (row_tiles, chunks) = self.tasks(staged);
        let reducers = staged.stages.last().map_or(0, |s| s.reducers.len());
        let mut partials = vec![0u64; if chunks > 1 { row_tiles * chunks * reducers * staged.row_tile } else { 0 }];
        let even = |address: usize, buffer: &RowArg| address.is_multiple_of(buffer.dtype.size_of());
        let shared = ReduceArgs {
            outputs,
            inputs,
            even: (
                inputs.iter().zip(&self.inputs).map(|(p, buffer)| even(*p as usize, buffer)).collect(),
                outputs.iter().zip(&self.outputs).map(|(p, buffer)| even(*p as usize, buffer)).collect(),
            ),
            numbers,
            partials: partials.as_mut_ptr(),
        };
        if row_tiles == 0 {
            return Ok(Ran::Loops);
        }
        let elements = staged.row_tile * self.space.each.min(staged.chunk);
        let grain = (200_000 / (elements * self.cost).max(1)).max(1);
        let shared = &shared;
        let worker = |run: &dyn Fn(WorkerRun<'_>)| {
            with_scratch(staged.scratch, |scratch| run(WorkerRun { kernel: self, staged, shared, scratch }));
        };
        parallel(row_tiles * chunks, grain, &|tasks| {
            worker(&|worker| {
                for task in tasks.clone() {
                    // SAFETY: by this function's contract; each task has its own rows or partials.
                    unsafe { worker.task(task / chunks, task % chunks, chunks) };
                }
            });
        });
        if chunks > 1 {
            // SAFETY: as above; all tasks are done.
            worker(&|worker| (0..row_tiles).for_each(|row_tile| unsafe { worker.join(row_tile, chunks) }));
        }
        Ok(if usual && self.is_compiled() { Ran::Compiled } else { Ran::Loops })
    }
}
