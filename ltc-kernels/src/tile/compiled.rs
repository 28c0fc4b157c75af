//! Tier 1 over a kernel's elements: all of a range at once where they lie one after the other, else row by row, or in
//! blocks of copies.

use std::ops::Range;

use smallvec::SmallVec;

use super::{
    super::{
        jit::Compiled,
        space::{Access, MAX_BLOCK, Way},
    },
    BufferArg, Kernel, TileArgs, with_scratch,
};

/// Shorter rows are copied to blocks.
const LONG_ROW: usize = 256;

impl Kernel {
    /// The elements of a range.
    ///
    /// # Safety
    /// As [`Kernel::run`]; uniforms are prepared for the code.
    pub(crate) unsafe fn compiled(&self, code: &Compiled, shared: TileArgs<'_>, range: Range<usize>) {
        // As the code has its buffers: inputs first. In the space, outputs are.
        let (inputs, outputs) = (self.inputs.len(), self.outputs.len());
        let buffers = || self.inputs.iter().chain(&self.outputs);
        let operand = |buffer: usize| if buffer < inputs { outputs + buffer } else { buffer - inputs };
        let strided = |buffer: &BufferArg| buffer.access == Access::Strided;
        let row = self.space.row();
        let by_rows = row >= LONG_ROW;
        let lies = |buffer: usize| by_rows && self.space.locate(operand(buffer), 0).1 == 1;
        let copied: SmallVec<[bool; 16]> = buffers().enumerate().map(|(i, p)| strided(p) && !lies(i)).collect();
        let blocks = copied.iter().filter(|c| **c).count();
        let most = if blocks > 0 { MAX_BLOCK } else { usize::MAX };
        with_scratch(code.scratch() + blocks * MAX_BLOCK * 8, |scratch| {
            let mut at: SmallVec<[*mut u8; 16]> = SmallVec::new();
            let mut start = range.start;
            while start < range.end {
                let within = if by_rows && buffers().any(strided) { row - start % row } else { usize::MAX };
                let n = (range.end - start).min(within).min(most);
                // SAFETY: the range lies within the space, so pointers stay within the memory they belong to; blocks
                // have room for `n` elements of any type. What is not uniform is readable, or writable, for `n`
                // elements.
                unsafe {
                    at.clear();
                    let mut block = scratch.add(code.scratch());
                    let bases = shared.inputs.iter().map(|p| p.cast_mut()).chain(shared.outputs.iter().copied());
                    for (i, (base, buffer)) in bases.zip(buffers()).enumerate() {
                        if !copied[i] {
                            at.push(self.place_of(operand(i), buffer, base, start));
                            continue;
                        }
                        if i < inputs {
                            let bytes = buffer.dtype.size_of();
                            self.space.transfer_sized(Way::In, bytes, operand(i), base, block, start..start + n);
                        }
                        at.push(block);
                        block = block.add(MAX_BLOCK * 8);
                    }
                    let done = code.run(&at, shared.uniforms, n, scratch);
                    for (o, buffer) in self.outputs.iter().enumerate().filter(|(o, _)| copied[inputs + o]) {
                        let (bytes, block, base) = (buffer.dtype.size_of(), at[inputs + o], shared.outputs[o]);
                        self.space.transfer_sized(Way::Out, bytes, o, base, block, start..start + done);
                    }
                    start += done;
                    if done < n {
                        start = self.leave_to_loops(code, shared, start..range.end);
                    }
                }
            }
        });
    }

    /// Where element `start` of an operand that is used where it lies is; null for one with the same for all.
    ///
    /// # Safety
    /// The element lies within the memory that begins at `base`.
    unsafe fn place_of(&self, operand: usize, buffer: &BufferArg, base: *mut u8, start: usize) -> *mut u8 {
        let bytes = buffer.dtype.size_of();
        // SAFETY: by this function's contract.
        unsafe {
            match buffer.access {
                Access::Dense => base.add(start * bytes),
                Access::Uniform => std::ptr::null_mut(),
                Access::Strided => base.offset(self.space.locate(operand, start).0 * bytes as isize),
            }
        }
    }

    /// The first of these elements, which the code leaves to tier 0, and some after it; gives the next one.
    ///
    /// # Safety
    /// As [`Kernel::compiled`].
    unsafe fn leave_to_loops(&self, code: &Compiled, shared: TileArgs<'_>, left: Range<usize>) -> usize {
        let mut uniforms: SmallVec<[u64; 64]> = SmallVec::from_slice(shared.uniforms);
        code.restore(&mut uniforms);
        let end = left.end.min(left.start + MAX_BLOCK);
        // SAFETY: by this function's contract; the uniforms are those of the usual IR, as its loops want them.
        unsafe { self.stretch(&self.usual, TileArgs { uniforms: &uniforms, ..shared }, left.start..end) };
        end
    }
}
