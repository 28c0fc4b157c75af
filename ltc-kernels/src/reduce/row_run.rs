//! A row tile by machine code.

use std::ops::Range;

use smallvec::SmallVec;

use super::{
    row_code::{Numbers, RowBuffer, RowCode, RowRun},
    rows::RowKernel,
    stage_run::WorkerMemory,
};
use crate::{ir::ComputeType, tile::with_scratch};

/// Where an operand's elements of the next row are, and which buffer of the code it is.
struct Walk {
    operand: usize,
    buffer: usize,
    at: *mut u8,
    /// Bytes from a row to the next, and rows that lie so.
    step: isize,
    left: usize,
}

/// The rows that the code takes side by side.
struct SideBySide<'a> {
    memory: &'a WorkerMemory<'a>,
    of: &'a RowCode,
    walks: SmallVec<[Walk; 8]>,
    /// Those of the first row, then those of the second, and so on.
    buffers: SmallVec<[*mut u8; 32]>,
    numbers: Numbers,
}

impl<'a> SideBySide<'a> {
    fn new(memory: &'a WorkerMemory<'a>, run: RowRun<'a>, row: usize) -> SideBySide<'a> {
        let RowRun { code, of, numbers } = run;
        let (width, together) = (of.buffers.len(), code.rows());
        let mut buffers = SmallVec::from_elem(std::ptr::null_mut(), width * together);
        let mut walks = SmallVec::new();
        for (i, buffer) in of.buffers.iter().enumerate() {
            match *buffer {
                RowBuffer::Operand(operand) => walks.push(memory.walk(operand, i, row)),
                RowBuffer::Cached(c) => {
                    let bytes = memory.staged.split.cached[c as usize].bytes() * memory.kernel.space.each;
                    let at = |row: usize| memory.cached(c).wrapping_add(row * bytes);
                    (0..together).for_each(|row| buffers[row * width + i] = at(row));
                }
            }
        }
        SideBySide { memory, of, walks, buffers, numbers: Numbers::from_slice(numbers) }
    }

    /// The next rows, so many, of a tile that begins with `first`, from `row` of it on.
    ///
    /// # Safety
    /// Values of the tile's rows are there.
    unsafe fn set(&mut self, rows: usize, first: usize, row: usize) {
        let (width, own) = (self.of.buffers.len(), self.of.own as usize);
        let (buffers, numbers) = (self.buffers.as_mut_slice(), self.numbers.as_mut_slice());
        for walk in self.walks.as_mut_slice() {
            let places = buffers[walk.buffer..].iter_mut().step_by(width).take(rows);
            if walk.left >= rows {
                for place in places {
                    *place = walk.at;
                    walk.at = walk.at.wrapping_offset(walk.step);
                }
                walk.left -= rows;
                continue;
            }
            for (i, place) in places.enumerate() {
                if walk.left == 0 {
                    *walk = self.memory.walk(walk.operand, walk.buffer, first + row + i);
                }
                *place = walk.at;
                walk.at = walk.at.wrapping_offset(walk.step);
                walk.left -= 1;
            }
        }
        for &(value, ty) in &self.of.given {
            let places = numbers[value as usize..].iter_mut().step_by(own).take(rows);
            for (i, place) in places.enumerate() {
                // SAFETY: by this function's contract.
                *place = unsafe { read_number(self.memory.row_value(value), row + i, ty) };
            }
        }
    }

    /// The row at this place is the one before once more.
    fn repeat(&mut self, place: usize) {
        let (width, own) = (self.of.buffers.len(), self.of.own as usize);
        for walk in &self.walks {
            self.buffers[place * width + walk.buffer] = self.buffers[(place - 1) * width + walk.buffer];
        }
        self.numbers.copy_within((place - 1) * own..place * own, place * own);
    }
}

impl WorkerMemory<'_> {
    /// Where a result of the code has the values of a row tile.
    pub(super) fn row_result(&self, of: &RowCode, result: usize) -> *mut u8 {
        self.piece(of.results_at, result)
    }

    /// The rows of a row tile, of which the loops computed what they have before the first stage over elements.
    ///
    /// # Safety
    /// As [`RowKernel::run`]; the run's code is this kernel's.
    pub(super) unsafe fn run_rows(&self, run: RowRun<'_>, rows: &Range<usize>) {
        let RowRun { code, of, .. } = run;
        let (own, together) = (of.own as usize, code.rows());
        let mut side = SideBySide::new(self, run, rows.start);
        with_scratch(code.scratch(), |spills| {
            for row in (0..rows.len()).step_by(together) {
                let left = together.min(rows.len() - row);
                // SAFETY: by this function's contract. Results have room for a row tile's values.
                unsafe {
                    side.set(left, rows.start, row);
                    // Where fewer rows are left, the last one is computed more than once.
                    (left..together).for_each(|k| side.repeat(k));
                    code.run_rows(&side.buffers, &mut side.numbers, self.kernel.space.each, spills);
                    for (i, &(_, slot, ty)) in of.results.iter().enumerate() {
                        let number = |k: usize| side.numbers[k * own + slot as usize];
                        (0..left).for_each(|k| write_number(self.row_result(of, i), row + k, ty, number(k)));
                    }
                }
            }
        });
    }

    fn walk(&self, operand: usize, buffer: usize, row: usize) -> Walk {
        let RowKernel { space, inputs, outputs, .. } = self.kernel;
        let (base, dtype) = match operand.checked_sub(outputs.len()) {
            Some(i) => (self.shared.inputs[i].cast_mut(), inputs[i].dtype),
            None => (self.shared.outputs[operand], outputs[operand].dtype),
        };
        let bytes = dtype.size_of() as isize;
        let (offset, step, left) = space.rows.stretch(operand, row);
        Walk { operand, buffer, at: base.wrapping_offset(offset * bytes), step: step * bytes, left }
    }
}

/// A row's value, as the code reads it.
///
/// # Safety
/// `values` has more than `row` values of this type, aligned.
unsafe fn read_number(values: *const u8, row: usize, ty: ComputeType) -> u64 {
    // SAFETY: by this function's contract.
    unsafe {
        match (ty, ty.bytes()) {
            (ComputeType::Bool, _) if *values.add(row) != 0 => u64::MAX,
            (_, 1) => u64::from(*values.add(row)),
            (_, 4) => u64::from(*values.cast::<u32>().add(row)),
            _ => *values.cast::<u64>().add(row),
        }
    }
}

/// A row's value, as the code wrote it.
///
/// # Safety
/// `values` has room for more than `row` values of this type, and is aligned for them.
unsafe fn write_number(values: *mut u8, row: usize, ty: ComputeType, number: u64) {
    // SAFETY: by this function's contract.
    unsafe {
        match (ty, ty.bytes()) {
            (ComputeType::Bool, _) => *values.add(row) = u8::from(number != 0),
            (_, 1) => *values.add(row) = number as u8,
            (_, 4) => *values.cast::<u32>().add(row) = number as u32,
            _ => *values.cast::<u64>().add(row) = number,
        }
    }
}
