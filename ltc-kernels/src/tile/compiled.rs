//! Tier 1 over a kernel's elements: all of a range at once where they lie one after the other, else row by row, or in
//! blocks of copies.

use std::ops::Range;

use smallvec::SmallVec;

use super::{
    super::{
        jit::Compiled,
        space::{Access, MAX_BLOCK, Way},
    },
    Kernel, Port, Shared, with_scratch,
};

/// Shorter rows are copied to blocks.
const LONG_ROW: usize = 256;

impl Kernel {
    /// The elements of a range.
    ///
    /// # Safety
    /// As [`Kernel::run`]; cells are prepared for the code.
    pub(crate) unsafe fn compiled(&self, code: &Compiled, shared: Shared<'_>, range: Range<usize>) {
        // As the code has its ports: inputs first. In the space, outputs are.
        let (inputs, outputs) = (self.inputs.len(), self.outputs.len());
        let ports = || self.inputs.iter().chain(&self.outputs);
        let operand = |port: usize| if port < inputs { outputs + port } else { port - inputs };
        let strided = |port: &Port| port.access == Access::Strided;
        let row = self.space.row();
        let by_rows = row >= LONG_ROW;
        let lies = |port: usize| by_rows && self.space.locate(operand(port), 0).1 == 1;
        let copied: SmallVec<[bool; 16]> = ports().enumerate().map(|(i, p)| strided(p) && !lies(i)).collect();
        let blocks = copied.iter().filter(|c| **c).count();
        let most = if blocks > 0 { MAX_BLOCK } else { usize::MAX };
        with_scratch(code.scratch() + blocks * MAX_BLOCK * 8, |scratch| {
            let mut at: SmallVec<[*mut u8; 16]> = SmallVec::new();
            let mut start = range.start;
            while start < range.end {
                let within = if by_rows && ports().any(strided) { row - start % row } else { usize::MAX };
                let n = (range.end - start).min(within).min(most);
                // SAFETY: the range lies within the space, so pointers stay within the memory they belong to; blocks
                // have room for `n` elements of any type. What is not uniform is readable, or writable, for `n`
                // elements.
                unsafe {
                    at.clear();
                    let mut next = scratch.add(code.scratch());
                    let bases = shared.inputs.iter().map(|p| p.cast_mut()).chain(shared.outputs.iter().copied());
                    for (i, (base, port)) in bases.zip(ports()).enumerate() {
                        let bytes = port.dtype.size_of();
                        at.push(match port.access {
                            Access::Dense => base.add(start * bytes),
                            Access::Uniform => std::ptr::null_mut(),
                            Access::Strided if !copied[i] => {
                                base.offset(self.space.locate(operand(i), start).0 * bytes as isize)
                            }
                            Access::Strided => {
                                if i < inputs {
                                    self.space.transfer_sized(Way::In, bytes, operand(i), base, next, start..start + n);
                                }
                                next = next.add(MAX_BLOCK * 8);
                                next.sub(MAX_BLOCK * 8)
                            }
                        });
                    }
                    let done = code.run(&at, shared.cells, n, scratch);
                    for (o, port) in self.outputs.iter().enumerate().filter(|(o, _)| copied[inputs + o]) {
                        let (bytes, block, base) = (port.dtype.size_of(), at[inputs + o], shared.outputs[o]);
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

    /// The first of these elements, which the code leaves to tier 0, and some after it; gives the next one.
    ///
    /// # Safety
    /// As [`Kernel::compiled`].
    unsafe fn leave_to_loops(&self, code: &Compiled, shared: Shared<'_>, left: Range<usize>) -> usize {
        let mut cells: SmallVec<[u64; 64]> = SmallVec::from_slice(shared.cells);
        code.restore(&mut cells);
        let end = left.end.min(left.start + MAX_BLOCK);
        // SAFETY: by this function's contract; the cells are those of the usual IR, as its loops want them.
        unsafe { self.stretch(&self.usual, Shared { cells: &cells, ..shared }, left.start..end) };
        end
    }
}
