//! One thread's part in a run of a kernel with reductions: see `rows.rs`.

use std::ops::Range;

use ltc_ir::DType;
use smallvec::SmallVec;

use super::{
    row_code::RowRun,
    rows::{RowArg, RowKernel, StageLoops, Staged, Traversal},
    stage_run::{BlockSource, ReduceArgs, StageRun, WorkerMemory},
    stages::{RowOutput, StageInput, StageOutput},
};
use crate::{
    ir::ComputeType,
    jit::{Compiled, Jit},
    loops::vectorised,
    space::{MAX_BLOCK, Way},
    tile::{Ran, TooLarge, with_scratch},
};

/// Copying this many elements takes longer than starting another block does.
const LONG_STRETCH: usize = 512;

/// One thread's part in a run.
struct WorkerRun<'a> {
    memory: WorkerMemory<'a>,
    /// The part of `memory` that each stage uses.
    stages: SmallVec<[StageRun; 4]>,
}

// The unsafe methods share one contract, which their SAFETY comments call the run's contract:
// * the run that `memory` belongs to keeps the contract of `RowKernel::run`;
// * rows, chunks and elements that a caller passes lie within the kernel's space, and no other thread writes them;
// * only this thread uses the scratch memory. Its pieces (`WorkerMemory::piece`) are aligned to 64 bytes, do not
//   overlap, and have room for a block, and for a value of each row of a row tile.
impl<'a> WorkerRun<'a> {
    unsafe fn new(memory: WorkerMemory<'a>) -> WorkerRun<'a> {
        // Where machine code takes rows through the others, loops have the first stage alone.
        let by_loops = if memory.shared.row_run.is_some() { 1 } else { memory.staged.stages.len() };
        let stages = memory.staged.stages[..by_loops].iter();
        // SAFETY: by the run's contract, and `memory` is the memory of that run.
        let stages = stages.map(|stage| unsafe { StageRun::new(stage, &memory) }).collect();
        WorkerRun { memory, stages }
    }

    fn rows_of(&self, row_tile: usize) -> Range<usize> {
        let first = row_tile * self.memory.staged.row_tile;
        first..(first + self.memory.staged.row_tile).min(self.memory.kernel.space.row_count)
    }

    /// The accumulators of reduction `i` of a stage, of these rows of the row tile.
    ///
    /// # Safety
    /// Only one such slice is alive at a time for each reduction.
    unsafe fn totals<'t>(&self, i: usize, rows: Range<usize>) -> &'t mut [u64] {
        let first = self.memory.piece(self.memory.staged.totals, i).cast::<u64>().wrapping_add(rows.start);
        // SAFETY: a piece has eight bytes for each row of a row tile, and is aligned.
        unsafe { std::slice::from_raw_parts_mut(first, rows.len()) }
    }

    /// Makes what all rows have ready, once for all row tiles.
    unsafe fn repeat_inputs(&self) {
        let (kernel, staged) = (self.memory.kernel, self.memory.staged);
        let rows = if staged.traversal == Traversal::PackedRows { staged.row_tile } else { 1 };
        for (i, (buffer, at)) in kernel.inputs.iter().zip(&staged.repeated).enumerate() {
            let Some(at) = at else { continue };
            let (operand, base, to) =
                (kernel.outputs.len() + i, self.memory.shared.inputs[i], self.memory.scratch.wrapping_add(*at));
            // SAFETY: by the run's contract the input is readable. A packed row tile has at most as many rows as the
            // space, and `Staged::with` reserved room for these elements at `at`.
            unsafe {
                let elements = 0..rows * kernel.space.each;
                kernel.space.elements.convert(Way::In, operand, buffer.dtype, base.cast_mut(), to, elements);
            }
        }
    }

    /// A row tile, or a chunk of its elements.
    unsafe fn task(&self, row_tile: usize, chunk: usize, chunks: usize) {
        let rows = self.rows_of(row_tile);
        if let Some(run) = self.memory.shared.row_run {
            // SAFETY: by the run's contract, as these rows are this task's; `run` is the code of this kernel, and its
            // results have room for a value of each row.
            unsafe {
                self.begin(&rows, true);
                self.memory.run_rows(run, &rows);
                for (i, (output, ..)) in run.of.results.iter().enumerate() {
                    self.store_rows(*output as usize, self.memory.row_result(run.of, i), &rows);
                }
            }
            return;
        }
        // SAFETY: by the run's contract, as these rows, or this chunk of them, are this task's. Each slice of totals
        // ends before the next one begins. Chunks exist only where one stage goes over elements, and each of them has
        // its own `row_tile` places per reducer in the partials.
        unsafe {
            self.begin(&rows, chunk == 0 || chunks == 1);
            for (i, stage) in self.memory.staged.stages.iter().enumerate().skip(1) {
                for (f, reducer) in stage.reducers.iter().enumerate() {
                    if let Some(reducer) = reducer {
                        self.totals(f, 0..rows.len()).fill(reducer.start);
                    }
                }
                if chunks == 1 {
                    self.elements(i, &rows, 0..self.memory.kernel.space.each);
                    self.finish(i, &rows, true);
                } else {
                    let first = chunk * self.memory.staged.chunk;
                    let end = (first + self.memory.staged.chunk).min(self.memory.kernel.space.each);
                    self.elements(i, &rows, first..end);
                    for f in 0..stage.reducers.len() {
                        let at = ((row_tile * chunks + chunk) * stage.reducers.len() + f) * self.memory.staged.row_tile;
                        let partial = std::slice::from_raw_parts_mut(self.memory.shared.partials.add(at), rows.len());
                        partial.copy_from_slice(self.totals(f, 0..rows.len()));
                    }
                }
            }
        }
    }

    /// Ends a row tile whose chunks are done.
    unsafe fn join(&self, row_tile: usize, chunks: usize) {
        let rows = self.rows_of(row_tile);
        let Some(stage) = self.memory.staged.stages.last() else { return };
        // SAFETY: by the run's contract. The tasks of this row tile are done, so its partials are written and nobody
        // writes them any more; each slice of totals ends before the next one begins.
        unsafe {
            self.begin(&rows, false);
            for (f, reducer) in stage.reducers.iter().enumerate() {
                let Some(reducer) = reducer else { continue };
                let totals = self.totals(f, 0..rows.len());
                totals.fill(reducer.start);
                for chunk in 0..chunks {
                    let at = ((row_tile * chunks + chunk) * stage.reducers.len() + f) * self.memory.staged.row_tile;
                    (reducer.join)(totals, std::slice::from_raw_parts(self.memory.shared.partials.add(at), rows.len()));
                }
            }
            self.finish(self.memory.staged.stages.len() - 1, &rows, true);
        }
    }

    /// Reads the rows' inputs, and computes what needs nothing else.
    unsafe fn begin(&self, rows: &Range<usize>, store: bool) {
        let kernel = self.memory.kernel;
        // SAFETY: by the run's contract; each row input has a piece of its own for its values.
        unsafe {
            for &(input, row) in &self.memory.staged.split.row_inputs {
                let (i, buffer) = (input as usize, kernel.inputs[input as usize]);
                let operand = kernel.outputs.len() + i;
                self.load_rows(operand, buffer, self.memory.shared.inputs[i], self.memory.row_value(row), rows);
            }
            self.finish(0, rows, store);
        }
    }

    unsafe fn load_rows(&self, operand: usize, buffer: RowArg, base: *const u8, to: *mut u8, rows: &Range<usize>) {
        // SAFETY: by the run's contract the operand is readable in these rows, and `to` is a piece, which has room for
        // a value of each row of a row tile.
        unsafe {
            self.memory.kernel.space.rows.convert(Way::In, operand, buffer.dtype, base.cast_mut(), to, rows.clone())
        }
    }

    /// Turns totals into values of the rows, and computes what follows from them.
    unsafe fn finish(&self, at: usize, rows: &Range<usize>, store: bool) {
        let StageLoops { stage, rows: loops, reducers, .. } = &self.memory.staged.stages[at];
        // SAFETY: by the run's contract; `row_buffers` are the pieces and row values that `StageRun::new` found for
        // these loops, each with room for a value of each row, and scratch memory begins with the loops' registers.
        unsafe {
            for (f, (reducer, output)) in reducers.iter().zip(&stage.outputs).enumerate() {
                if let (Some(reducer), StageOutput::Reduce(_, row)) = (reducer, output) {
                    (reducer.values)(self.totals(f, 0..rows.len()), self.memory.row_value(*row));
                }
            }
            if stage.row_outputs.is_empty() {
                return;
            }
            let StageRun { row_buffers, row_uniforms, .. } = &self.stages[at];
            loops.run_block(row_uniforms, row_buffers, (self.memory.scratch, self.memory.staged.piece), rows.len());
            let outputs = &row_buffers[stage.row_inputs.len()..];
            for (output, &block) in stage.row_outputs.iter().zip(outputs).filter(|_| store) {
                if let RowOutput::Output(o) = *output {
                    self.store_rows(o as usize, block, rows);
                }
            }
        }
    }

    /// Writes an output that has one value for each row.
    unsafe fn store_rows(&self, output: usize, values: *mut u8, rows: &Range<usize>) {
        let (kernel, base) = (self.memory.kernel, self.memory.shared.outputs[output]);
        let buffer = kernel.outputs[output];
        // SAFETY: by the run's contract the output is writable in these rows; `values` has a value of each of them.
        unsafe {
            if buffer.of_rows {
                kernel.space.rows.convert(Way::Out, output, buffer.dtype, base, values, rows.clone());
            } else {
                self.spread(output, buffer, values, rows);
            }
        }
    }

    /// Writes a value of each row to all elements of an output.
    unsafe fn spread(&self, output: usize, buffer: RowArg, values: *mut u8, rows: &Range<usize>) {
        let (space, base) = (&self.memory.kernel.space, self.memory.shared.outputs[output]);
        let bytes = ComputeType::of(buffer.dtype).map_or(8, ComputeType::bytes);
        let write = |block, elements| {
            // SAFETY: by the run's contract the output is writable in these rows; callers below pass a block that has
            // as many values as `elements` is long.
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
    unsafe fn elements(&self, at: usize, rows: &Range<usize>, part: Range<usize>) {
        let (space, staged) = (&self.memory.kernel.space, self.memory.staged);
        let (stage, StageRun { sources, uniforms, .. }) = (&staged.stages[at], &self.stages[at]);
        if stage.stage.outputs.is_empty() {
            return;
        }
        let value = |f: &StageInput| {
            if let StageInput::Row(r) = f { self.memory.row_value(*r).cast_const() } else { std::ptr::null() }
        };
        let mut values: SmallVec<[*const u8; 16]> = stage.stage.inputs.iter().map(value).collect();
        let mut uniforms: SmallVec<[u64; 16]> = SmallVec::from_slice(uniforms);
        // SAFETY: by the run's contract. Uniform inputs of the loops are values of a row; `values` points at such a
        // value, and one is enough, because a block with uniform inputs lies within one row.
        unsafe {
            let buffers = stage.stage.inputs.len() + stage.made;
            let fill = |values: &[*const u8], uniforms: &mut [u64]| {
                stage.elements.fill_uniforms(uniforms, (values, buffers), self.memory.shared.numbers);
            };
            stage.elements.refill_uniforms(&mut uniforms, (&values, buffers));
            let work = rows.len() * part.len() * self.memory.kernel.cost;
            let at_once = staged.row_tile > 1 && space.each <= staged.block;
            let compiled = staged.stage_code(stage, &uniforms, work);
            if let Some(compiled) = compiled {
                compiled.prepare(&mut uniforms);
            }
            let on = (stage, &sources[..]);
            with_scratch(compiled.map_or(0, Compiled::scratch), |spills| match staged.traversal {
                Traversal::PackedRows => {
                    let n = rows.len() * space.each;
                    self.repeat_values(stage, &values, rows.len());
                    self.block(on, (compiled, spills), &uniforms, (rows.start * space.each, 0), (0..rows.len(), n));
                }
                // Several short rows that are only reduced, from where they lie, are one block.
                Traversal::SingleRow if at_once && stage.made == 0 && sources.iter().all(BlockSource::is_along) => {
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
        on: (&StageLoops, &[BlockSource]),
        code: (Option<&Compiled>, *mut u8),
        uniforms: &[u64],
        rows: &Range<usize>,
        part: Range<usize>,
    ) {
        let (n, lines) = (rows.len(), self.memory.staged.lines);
        for i in part.clone().step_by(lines) {
            let (at, count) = (i * self.memory.kernel.space.row_count + rows.start, n * lines.min(part.end - i));
            // SAFETY: by the run's contract; the block is `count` elements of whole lines within `part`.
            unsafe { self.block(on, code, uniforms, (at, i * n), (0..n, count)) };
        }
    }

    /// Copies each row's values beside its elements, of `rows` whole rows that are one block.
    unsafe fn repeat_values(&self, stage: &StageLoops, values: &[*const u8], rows: usize) {
        for (i, _) in stage.stage.inputs.iter().enumerate().filter(|(_, input)| matches!(input, StageInput::Row(_))) {
            let to = self.memory.piece(self.memory.staged.inputs_at, i);
            // SAFETY: `values[i]` has a value of each of these rows. The rows are one block, and the piece `to` has
            // room for a block and does not overlap the row values.
            unsafe { repeat(values[i], to, rows, self.memory.kernel.space.each, stage.bytes[i]) };
        }
    }

    /// Copies values of `rows` rows beside the elements of a block of several lines.
    unsafe fn repeat_lines(&self, stage: &StageLoops, values: &[*const u8], (rows, lines): (usize, usize)) {
        for (i, _) in stage.stage.inputs.iter().enumerate().filter(|(_, input)| matches!(input, StageInput::Row(_))) {
            let (to, bytes) = (self.memory.piece(self.memory.staged.inputs_at, i), rows * stage.bytes[i]);
            // SAFETY: `values[i]` has a value of each of these rows. The lines are one block, and the piece `to` has
            // room for a block and does not overlap the row values.
            (0..lines).for_each(|l| unsafe { std::ptr::copy_nonoverlapping(values[i], to.add(l * bytes), bytes) });
        }
    }

    /// One block: `n` elements from `at`, cached ones from `cached`, of these rows of the row tile. Machine code, if
    /// there is any, has its own scratch memory.
    unsafe fn block(
        &self,
        (stage, sources): (&StageLoops, &[BlockSource]),
        (code, spills): (Option<&Compiled>, *mut u8),
        uniforms: &[u64],
        (at, cached): (usize, usize),
        (rows, n): (Range<usize>, usize),
    ) {
        let (kernel, staged, shared) = (self.memory.kernel, self.memory.staged, self.memory.shared);
        let space = &kernel.space.elements;
        let inputs = stage.stage.inputs.len();
        let mut buffers: SmallVec<[*mut u8; 16]> = SmallVec::new();
        // SAFETY: by the run's contract the operands have these elements. Each buffer is `n` elements of an operand, a
        // cached value or a piece. `spills` is the scratch memory that the caller made for `code`.
        unsafe {
            for (k, source) in sources.iter().enumerate() {
                let copy = |operand: usize, buffer: RowArg, base: *mut u8, staging: *mut u8| {
                    if k < inputs {
                        space.convert(Way::In, operand, buffer.dtype, base, staging, at..at + n);
                    }
                    staging
                };
                buffers.push(match *source {
                    BlockSource::Here(here) => here,
                    BlockSource::Along(first, bytes) => first.add(at * bytes),
                    BlockSource::Cached(first, bytes) => first.add(cached * bytes),
                    BlockSource::Repeated(first, bytes) => first.add(at % kernel.space.each.max(1) * bytes),
                    BlockSource::Elsewhere { operand, buffer, base, staging } => copy(operand, buffer, base, staging),
                    BlockSource::Somewhere { operand, buffer, base, staging } => match space.stretch(operand, at) {
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
                        stage.elements.run_block(&uniforms, &left, (self.memory.scratch, staged.piece), n - done);
                    }
                }
                None if stage.made > 0 => {
                    stage.elements.run_block(uniforms, &buffers, (self.memory.scratch, staged.piece), n);
                }
                None => {}
            }
            // Values that the loops computed come first; after them come inputs that are reduced as they are.
            let kept = (inputs..buffers.len()).chain(stage.reduced_inputs.iter().copied());
            for (k, (output, buffer)) in stage.stage.outputs.iter().zip(kept).enumerate() {
                match (*output, &stage.reducers[k]) {
                    (StageOutput::Reduce(..), Some(reducer)) if staged.traversal == Traversal::ColumnMajor => {
                        (reducer.columns)(self.totals(k, rows.clone()), buffers[buffer], n / rows.len());
                    }
                    (StageOutput::Reduce(..), Some(reducer)) => {
                        (reducer.rows)(self.totals(k, rows.clone()), buffers[buffer], n / rows.len());
                    }
                    (StageOutput::Output(o), _) if buffers[buffer] == self.memory.piece(staged.outputs_at, k) => {
                        let (o, buffer, block) = (o as usize, kernel.outputs[o as usize], buffers[buffer]);
                        space.convert(Way::Out, o, buffer.dtype, shared.outputs[o], block, at..at + n);
                    }
                    _ => {}
                }
            }
        }
    }
}

vectorised! {
    /// Writes each value as often as there is room for.
    fn repeat_each<T: Copy>(from: &[T], to: &mut [T], times: usize) {
        for (to, from) in to.chunks_exact_mut(times.max(1)).zip(from) {
            to.fill(*from);
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
        repeat_each::<T>(from, to, times);
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
    /// of less than `grain` are not worth a thread. Says by what it ran.
    ///
    /// # Safety
    /// Inputs are readable and outputs writable in all the space's elements, at the layouts the kernel was made for.
    /// Outputs overlap nothing. `numbers` has all words the IR speaks of.
    ///
    /// # Errors
    /// Fails if the form for unusual numbers cannot be made.
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
            let make = || Staged::new(&self.general.0, &self.space, (&self.inputs, &self.outputs), Jit::Off);
            self.general.1.get_or_init(make).as_ref().ok_or(TooLarge)?
        };
        let row_code = staged.row_code.as_ref().filter(|code| usual && !code.tier.is_declined());
        // SAFETY: by this function's contract.
        let mut row_numbers = row_code.map(|of| unsafe { staged.row_numbers(of, numbers) });
        let code = row_code.zip(row_numbers.as_mut()).and_then(|(of, numbers)| {
            let code = of.tier.code(numbers, self.element_count() * self.cost)?;
            code.prepare(numbers);
            Some((code, of))
        });
        let row_run = code.zip(row_numbers.as_ref()).map(|((code, of), numbers)| RowRun { code, of, numbers });
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
            row_run,
            partials: partials.as_mut_ptr(),
        };
        if row_tiles == 0 {
            return Ok(Ran::Loops);
        }
        let elements = staged.row_tile * self.space.each.min(staged.chunk);
        let grain = (200_000 / (elements * self.cost).max(1)).max(1);
        let shared = &shared;
        let worker = |run: &dyn Fn(WorkerRun<'_>)| {
            with_scratch(staged.scratch, |scratch| {
                let memory = WorkerMemory { kernel: self, staged, shared, scratch };
                // SAFETY: by this function's contract; scratch memory is lent to this call alone.
                run(unsafe { WorkerRun::new(memory) });
            });
        };
        parallel(row_tiles * chunks, grain, &|tasks| {
            worker(&|worker| {
                if row_run.is_none() {
                    // SAFETY: by this function's contract.
                    unsafe { worker.repeat_inputs() };
                }
                for task in tasks.clone() {
                    // SAFETY: by this function's contract; each task has its own rows or partials.
                    unsafe { worker.task(task / chunks, task % chunks, chunks) };
                }
            });
        });
        if chunks > 1 {
            // SAFETY: by this function's contract; `parallel` has returned, so all tasks are done.
            worker(&|worker| (0..row_tiles).for_each(|row_tile| unsafe { worker.join(row_tile, chunks) }));
        }
        Ok(if usual && self.is_compiled() { Ran::Compiled } else { Ran::Loops })
    }
}
