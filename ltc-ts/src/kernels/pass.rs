//! One thread's part in a run of a kernel with folds: see `rows.rs`.

use std::ops::Range;

use smallvec::SmallVec;

use super::{
    body::Lane,
    jit::Compiled,
    nest::{Feed, Keep, RowKeep},
    rows::{Port, RowKernel, StageLoops, Staged, Walk},
    space::Access,
    tile::{MAX_BLOCK, with_scratch},
};

/// What all threads of a run share.
pub(super) struct Shared<'a> {
    pub(super) outputs: &'a [*mut u8],
    pub(super) inputs: &'a [*const u8],
    /// Per input and output whether its address suits vectors of its dtype.
    pub(super) even: (SmallVec<[bool; 8]>, SmallVec<[bool; 8]>),
    pub(super) numbers: &'a [u64],
    /// Accumulators of the tasks of a long fold.
    pub(super) partials: *mut u64,
}

// SAFETY: threads read inputs and numbers, and write disjoint elements of the outputs and partials.
unsafe impl Sync for Shared<'_> {}

/// One thread's part in a run.
pub(super) struct Pass<'a> {
    pub(super) kernel: &'a RowKernel,
    pub(super) staged: &'a Staged,
    pub(super) shared: &'a Shared<'a>,
    /// Scratch memory of [`Staged::scratch`] bytes.
    pub(super) scratch: *mut u8,
}

// Methods are unsafe as `RowKernel::run` is, whose contract they rely on; scratch memory is this thread's alone, and its pieces
// do not overlap.
impl Pass<'_> {
    /// Piece `i` of those that begin at `from`.
    fn piece(&self, from: usize, i: usize) -> *mut u8 {
        self.scratch.wrapping_add(from + i * self.staged.piece)
    }

    fn row_value(&self, row: u32) -> *mut u8 {
        self.piece(self.staged.row_values, row as usize)
    }

    fn rows_of(&self, bundle: usize) -> Range<usize> {
        let first = bundle * self.staged.bundle;
        first..(first + self.staged.bundle).min(self.kernel.space.row_count)
    }

    /// The accumulators of fold `i` of a stage.
    ///
    /// # Safety
    /// Only one such slice is alive at a time for each fold.
    unsafe fn totals<'a>(&self, i: usize, rows: usize) -> &'a mut [u64] {
        // SAFETY: a piece has eight bytes for each row of a bundle, and is aligned.
        unsafe { std::slice::from_raw_parts_mut(self.piece(self.staged.totals, i).cast(), rows) }
    }

    /// A bundle, or a chunk of its elements.
    pub(super) unsafe fn task(&self, bundle: usize, chunk: usize, chunks: usize) {
        let rows = self.rows_of(bundle);
        // SAFETY: see above.
        unsafe {
            self.begin(&rows, chunk == 0 || chunks == 1);
            for (i, stage) in self.staged.stages.iter().enumerate().skip(1) {
                for (f, fold) in stage.folds.iter().enumerate() {
                    if let Some(fold) = fold {
                        self.totals(f, rows.len()).fill(fold.start);
                    }
                }
                if chunks == 1 {
                    self.elements(stage, &rows, 0..self.kernel.space.each);
                    self.finish(i, &rows, true);
                } else {
                    let first = chunk * self.staged.chunk;
                    let end = (first + self.staged.chunk).min(self.kernel.space.each);
                    self.elements(stage, &rows, first..end);
                    for f in 0..stage.folds.len() {
                        let at = ((bundle * chunks + chunk) * stage.folds.len() + f) * self.staged.bundle;
                        let partial = std::slice::from_raw_parts_mut(self.shared.partials.add(at), rows.len());
                        partial.copy_from_slice(self.totals(f, rows.len()));
                    }
                }
            }
        }
    }

    /// Ends a bundle whose chunks are done.
    pub(super) unsafe fn join(&self, bundle: usize, chunks: usize) {
        let rows = self.rows_of(bundle);
        let Some(stage) = self.staged.stages.last() else { return };
        // SAFETY: see above.
        unsafe {
            self.begin(&rows, false);
            for (f, fold) in stage.folds.iter().enumerate() {
                let Some(fold) = fold else { continue };
                let totals = self.totals(f, rows.len());
                totals.fill(fold.start);
                for chunk in 0..chunks {
                    let at = ((bundle * chunks + chunk) * stage.folds.len() + f) * self.staged.bundle;
                    (fold.join)(totals, std::slice::from_raw_parts(self.shared.partials.add(at), rows.len()));
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
            for &(input, row) in &self.staged.nest.row_inputs {
                let (i, port) = (input as usize, kernel.inputs[input as usize]);
                let operand = kernel.outputs.len() + i;
                self.load_rows(operand, port, self.shared.inputs[i], self.row_value(row), rows);
            }
            self.finish(0, rows, store);
        }
    }

    unsafe fn load_rows(&self, operand: usize, port: Port, base: *const u8, to: *mut u8, rows: &Range<usize>) {
        // SAFETY: see above; a bundle has at most as many rows as a block has elements.
        unsafe { self.kernel.space.rows.load(operand, port.dtype, base, to, rows.start, rows.len()) }
    }

    /// Turns totals into values of the rows, and computes what follows from them.
    unsafe fn finish(&self, stage: usize, rows: &Range<usize>, store: bool) {
        let (kernel, StageLoops { stage, rows: loops, folds, .. }) = (self.kernel, &self.staged.stages[stage]);
        // SAFETY: see above.
        unsafe {
            for (f, (fold, keep)) in folds.iter().zip(&stage.keeps).enumerate() {
                if let (Some(fold), Keep::Fold(_, row)) = (fold, keep) {
                    (fold.values)(self.totals(f, rows.len()), self.row_value(*row));
                }
            }
            if stage.row_keeps.is_empty() {
                return;
            }
            let inputs: SmallVec<[*const u8; 8]> =
                stage.row_feeds.iter().map(|&r| self.row_value(r).cast_const()).collect();
            let target = |(i, keep): (usize, &RowKeep)| match *keep {
                RowKeep::Row(row) => self.row_value(row),
                RowKeep::Output(_) => self.piece(self.staged.keeps, i),
            };
            let outputs: SmallVec<[*mut u8; 8]> = stage.row_keeps.iter().enumerate().map(target).collect();
            let mut cells: SmallVec<[u64; 32]> = SmallVec::from_elem(0, loops.uniforms());
            loops.fill_cells(&mut cells, (&inputs, outputs.len()), self.shared.numbers);
            loops.run_block(&cells, &inputs, &outputs, (self.scratch, self.staged.piece), rows.len());
            for (keep, block) in stage.row_keeps.iter().zip(outputs).filter(|_| store) {
                if let RowKeep::Output(o) = *keep {
                    let (o, port) = (o as usize, kernel.outputs[o as usize]);
                    if port.of_rows {
                        let base = self.shared.outputs[o];
                        kernel.space.rows.store(o, port.dtype, base, block, rows.start, rows.len());
                    } else {
                        self.spread(o, port, block, rows);
                    }
                }
            }
        }
    }

    /// Writes a value of each row to all elements of an output.
    unsafe fn spread(&self, output: usize, port: Port, values: *const u8, rows: &Range<usize>) {
        let (space, base) = (&self.kernel.space, self.shared.outputs[output]);
        let bytes = Lane::of(port.dtype).map_or(8, Lane::bytes);
        let mut block = [0u64; MAX_BLOCK];
        // SAFETY: see above; a block has room for `MAX_BLOCK` values of any lane.
        unsafe {
            if space.columns {
                for i in 0..space.each {
                    space.elements.store(
                        output,
                        port.dtype,
                        base,
                        values,
                        i * space.row_count + rows.start,
                        rows.len(),
                    );
                }
                return;
            }
            for (r, row) in rows.clone().enumerate() {
                let n = MAX_BLOCK.min(space.each);
                let target = block.as_mut_ptr().cast::<u8>();
                (0..n).for_each(|i| std::ptr::copy_nonoverlapping(values.add(r * bytes), target.add(i * bytes), bytes));
                for start in (0..space.each).step_by(MAX_BLOCK) {
                    let n = MAX_BLOCK.min(space.each - start);
                    space.elements.store(output, port.dtype, base, target, row * space.each + start, n);
                }
            }
        }
    }

    /// A stage's elements `part` of each of these rows.
    unsafe fn elements(&self, stage: &StageLoops, rows: &Range<usize>, part: Range<usize>) {
        let (space, staged) = (&self.kernel.space, self.staged);
        if stage.stage.keeps.is_empty() {
            return;
        }
        let mut cells: SmallVec<[u64; 32]> = SmallVec::from_elem(0, stage.elements.uniforms());
        let values: SmallVec<[*const u8; 16]> = stage
            .stage
            .feeds
            .iter()
            .map(|f| if let Feed::Row(r) = f { self.row_value(*r).cast_const() } else { std::ptr::null() })
            .collect();
        // SAFETY: see above. Uniform inputs are values of the row, of which a line has one.
        unsafe {
            stage.elements.fill_cells(&mut cells, (&values, stage.made), self.shared.numbers);
            let work = rows.len() * part.len() * self.kernel.cost;
            let compiled = stage.tier.as_ref().and_then(|tier| tier.code(&cells, work));
            if let Some(compiled) = compiled {
                compiled.prepare(&mut cells);
            }
            let run = (stage, compiled);
            match staged.walk {
                Walk::Rows => {
                    let n = rows.len() * space.each;
                    for (i, feed) in stage.stage.feeds.iter().enumerate() {
                        if matches!(feed, Feed::Row(_)) {
                            let to = self.piece(staged.feeds, i);
                            repeat(values[i], to, rows.len(), space.each, stage.bytes[i]);
                        }
                    }
                    self.block(run, &cells, rows.start * space.each, 0, (rows.len(), n));
                }
                Walk::Line => {
                    let mut start = part.start;
                    while start < part.end {
                        let n = staged.block.min(part.end - start);
                        self.block(run, &cells, rows.start * space.each + start, start, (1, n));
                        start += n;
                    }
                }
                Walk::Columns => {
                    let (n, lines) = (rows.len(), staged.lines);
                    if lines > 1 {
                        for (i, feed) in stage.stage.feeds.iter().enumerate() {
                            if matches!(feed, Feed::Row(_)) {
                                let (to, bytes) = (self.piece(staged.feeds, i), n * stage.bytes[i]);
                                (0..lines)
                                    .for_each(|l| std::ptr::copy_nonoverlapping(values[i], to.add(l * bytes), bytes));
                            }
                        }
                    }
                    for i in part.clone().step_by(lines) {
                        let n = n * lines.min(part.end - i);
                        self.block(run, &cells, i * space.row_count + rows.start, i * rows.len(), (rows.len(), n));
                    }
                }
            }
        }
    }

    /// One block: `n` elements from `at`, carried ones from `carried`, of `rows` rows.
    unsafe fn block(
        &self,
        (stage, compiled): (&StageLoops, Option<&Compiled>),
        cells: &[u64],
        at: usize,
        carried: usize,
        (rows, n): (usize, usize),
    ) {
        let (kernel, staged, shared) = (self.kernel, self.staged, self.shared);
        let space = &kernel.space.elements;
        let carry = |c: u32| {
            let bytes = staged.nest.carried[c as usize].bytes();
            self.scratch.wrapping_add(staged.carried + c as usize * staged.carry + carried * bytes)
        };
        // Where an operand's elements lie one after the other.
        let lies = |operand: usize, port: Port, even: bool| {
            if port.is_half() || !even {
                return None;
            }
            if port.access == Access::Dense {
                return Some(at * port.dtype.size_of());
            }
            let (offset, stride, left) = space.stretch(operand, at);
            (stride == 1 && left >= n).then(|| offset as usize * port.dtype.size_of())
        };
        let mut inputs: SmallVec<[*const u8; 16]> = SmallVec::new();
        let mut outputs: SmallVec<[*mut u8; 16]> = SmallVec::new();
        // SAFETY: see above.
        unsafe {
            for (k, feed) in stage.stage.feeds.iter().enumerate() {
                let staging = self.piece(staged.feeds, k);
                inputs.push(match *feed {
                    Feed::Carried(c) => carry(c),
                    Feed::Row(r) if staged.walk == Walk::Columns && staged.lines == 1 => self.row_value(r),
                    // Repeated before; or uniform, and not looked at.
                    Feed::Row(_) => staging,
                    Feed::Input(i) => {
                        let (i, port) = (i as usize, kernel.inputs[i as usize]);
                        let (operand, base) = (kernel.outputs.len() + i, shared.inputs[i]);
                        match lies(operand, port, shared.even.0[i]) {
                            Some(skip) => base.add(skip),
                            None => {
                                space.load(operand, port.dtype, base, staging, at, n);
                                staging
                            }
                        }
                    }
                });
            }
            for (k, keep) in stage.stage.keeps[..stage.made].iter().enumerate() {
                outputs.push(match *keep {
                    Keep::Carried(c) => carry(c),
                    Keep::Fold(..) => self.piece(staged.keeps, k),
                    Keep::Output(o) => {
                        let (o, port) = (o as usize, kernel.outputs[o as usize]);
                        match lies(o, port, shared.even.1[o]) {
                            Some(skip) => shared.outputs[o].add(skip),
                            None => self.piece(staged.keeps, k),
                        }
                    }
                });
            }
            if let Some(compiled) = compiled {
                let ports: SmallVec<[*mut u8; 16]> =
                    inputs.iter().map(|p| p.cast_mut()).chain(outputs.iter().copied()).collect();
                with_scratch(compiled.scratch(), |scratch| compiled.run(&ports, cells, n, scratch));
            } else if stage.made > 0 {
                stage.elements.run_block(cells, &inputs, &outputs, (self.scratch, staged.piece), n);
            }
            outputs.extend(stage.folded_feeds.iter().map(|&feed| inputs[feed].cast_mut()));
            for (k, keep) in stage.stage.keeps.iter().enumerate() {
                match (*keep, &stage.folds[k]) {
                    (Keep::Fold(..), Some(fold)) if staged.walk == Walk::Columns => {
                        (fold.columns)(self.totals(k, rows), outputs[k], n / rows);
                    }
                    (Keep::Fold(..), Some(fold)) => (fold.rows)(self.totals(k, rows), outputs[k], n / rows),
                    (Keep::Output(o), _) if outputs[k] == self.piece(staged.keeps, k) => {
                        let (o, port) = (o as usize, kernel.outputs[o as usize]);
                        space.store(o, port.dtype, shared.outputs[o], outputs[k], at, n);
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
