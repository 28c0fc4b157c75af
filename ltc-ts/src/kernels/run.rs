//! Tier 1 over a kernel's elements: where they lie one after the other as they are, else block by block.

use std::ops::Range;

use smallvec::SmallVec;

use super::{
    jit::Compiled,
    space::Access,
    tile::{Kernel, MAX_BLOCK, Port, Shared, with_scratch},
};

impl Kernel {
    /// The elements of a range.
    ///
    /// # Safety
    /// As [`Kernel::run`]; cells are prepared for the code.
    pub(super) unsafe fn compiled(&self, code: &Compiled, shared: Shared<'_>, range: Range<usize>) {
        let ports = || self.inputs.iter().chain(&self.outputs);
        let apart = ports().filter(|p| p.access == Access::Strided).count();
        let block = if apart == 0 { range.len() } else { MAX_BLOCK };
        with_scratch(code.scratch() + apart * MAX_BLOCK * 8, |scratch| {
            let bytes = |p: &Port| p.dtype.size_of();
            let mut at: SmallVec<[*mut u8; 16]> = SmallVec::new();
            let mut start = range.start;
            while start < range.end {
                let n = block.min(range.end - start);
                // SAFETY: the range lies within the space, so pointers stay within the memory they belong to; blocks have
                // room for `n` elements of any type. What is not uniform is readable, or writable, for `n` elements.
                unsafe {
                    at.clear();
                    let mut next = scratch.add(code.scratch());
                    let bases = shared.inputs.iter().map(|p| p.cast_mut()).chain(shared.outputs.iter().copied());
                    for (base, port) in bases.zip(ports()) {
                        at.push(match port.access {
                            Access::Dense => base.add(start * bytes(port)),
                            Access::Uniform => std::ptr::null_mut(),
                            Access::Strided => {
                                let block = next;
                                next = next.add(MAX_BLOCK * 8);
                                block
                            }
                        });
                    }
                    let strided = |p: &Port| p.access == Access::Strided;
                    for (i, port) in self.inputs.iter().enumerate().filter(|(_, p)| strided(p)) {
                        self.space.gather_sized(bytes(port), self.outputs.len() + i, shared.inputs[i], at[i], start, n);
                    }
                    code.run(&at, shared.cells, n, scratch);
                    for (o, port) in self.outputs.iter().enumerate().filter(|(_, p)| strided(p)) {
                        let block = at[self.inputs.len() + o];
                        self.space.scatter_sized(bytes(port), o, shared.outputs[o], block, start, n);
                    }
                }
                start += n;
            }
        });
    }
}
