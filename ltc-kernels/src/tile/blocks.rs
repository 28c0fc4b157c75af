//! IRs over plain blocks: for kernels that bring elements there themselves (`rows.rs`).

use smallvec::SmallVec;

use super::{
    super::{
        ir::{ComputeType, Inst, KernelIr},
        jit::JitInput,
        space::Access,
    },
    BufferArg, Loops, uniform,
};

/// The buffers of an IR whose inputs and outputs are blocks of their types; `uniform` says which inputs are one
/// element.
fn block_buffers(ir: &KernelIr, uniform: &[bool]) -> (Vec<BufferArg>, Vec<BufferArg>) {
    let mut types = vec![ComputeType::F32; uniform.len()];
    for (inst, ty) in &ir.values {
        if let Inst::Input(i) = inst {
            types[*i as usize] = *ty;
        }
    }
    let buffer = |ty: ComputeType, uniform: bool| BufferArg {
        dtype: ty.dtype(),
        access: if uniform { Access::Uniform } else { Access::Dense },
    };
    let inputs = types.iter().zip(uniform).map(|(l, u)| buffer(*l, *u)).collect();
    (inputs, ir.outputs.iter().map(|o| buffer(ir.ty(*o), false)).collect())
}

impl JitInput {
    /// How loops made by [`Loops::of_blocks`] become machine code.
    pub(crate) fn of_blocks(ir: &KernelIr, of_row: &[bool]) -> JitInput {
        let (inputs, outputs) = block_buffers(ir, of_row);
        JitInput {
            ir: ir.clone(),
            uniform: uniform(ir, &inputs),
            inputs: inputs.iter().map(|p| p.dtype).collect(),
            staged: vec![false; outputs.len()],
            outputs: outputs.iter().map(|p| p.dtype).collect(),
        }
    }
}

impl Loops {
    /// Loops of an IR whose inputs and outputs are blocks of their types; `uniform` says which inputs are one element.
    pub(crate) fn of_blocks(ir: &KernelIr, uniform: &[bool]) -> Option<Loops> {
        let (inputs, outputs) = block_buffers(ir, uniform);
        Loops::new(ir, &inputs, &outputs, &vec![false; outputs.len()])
    }

    /// Elements of a block that keep all registers in the cache.
    pub(crate) fn block(&self) -> usize {
        self.block
    }

    pub(crate) fn registers(&self) -> usize {
        self.registers
    }

    pub(crate) fn uniform_count(&self) -> usize {
        self.uniform_count
    }

    /// How many loops a block takes.
    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Fills the uniforms, of loops made by [`Loops::of_blocks`] for so many buffers.
    ///
    /// # Safety
    /// Uniform inputs have one element; there is a slot for each uniform value. `numbers` has all words the IR speaks
    /// of.
    pub(crate) unsafe fn fill_uniforms(
        &self,
        uniforms: &mut [u64],
        (inputs, buffers): (&[*const u8], usize),
        numbers: &[u64],
    ) {
        self.fill_numbers(uniforms, numbers);
        // SAFETY: by this function's contract.
        unsafe { self.refill_uniforms(uniforms, (inputs, buffers)) };
    }

    /// Fills those that are numbers and constants. `numbers` has all words the IR speaks of.
    pub(crate) fn fill_numbers(&self, uniforms: &mut [u64], numbers: &[u64]) {
        for &(slot, inst, ty) in &self.numbers {
            match inst {
                Inst::Number(word, dtype) => uniforms[slot as usize] = ty.bits_from(dtype, numbers[word as usize]),
                Inst::Const(bits) => uniforms[slot as usize] = bits,
                Inst::Input(_) | Inst::Op(..) => {}
            }
        }
    }

    /// The same as [`Loops::fill_uniforms`] where only inputs are others than before, and no slot was changed since.
    ///
    /// # Safety
    /// As [`Loops::fill_uniforms`].
    pub(crate) unsafe fn refill_uniforms(&self, uniforms: &mut [u64], (inputs, buffers): (&[*const u8], usize)) {
        for &(slot, inst, ty) in &self.numbers {
            if let Inst::Input(i) = inst {
                let (from, to) = (inputs[i as usize], &raw mut uniforms[slot as usize]);
                // SAFETY: a slot holds an element of any type, of four bytes mostly.
                unsafe {
                    match ty.bytes() {
                        4 => to.cast::<u32>().write(from.cast::<u32>().read()),
                        bytes => std::ptr::copy_nonoverlapping(from, to.cast(), bytes),
                    }
                }
            }
        }
        // SAFETY: preambles name uniforms only, each with room for one element of any type, and a target is no operand.
        unsafe { self.run_preamble(uniforms, buffers as u16) };
    }

    /// # Safety
    /// There is a slot for each uniform value; the first is place `first`.
    pub(crate) unsafe fn run_preamble(&self, uniforms: &mut [u64], first: u16) {
        let base = uniforms.as_mut_ptr();
        // SAFETY: by this function's contract.
        unsafe {
            let at = |place: u16| base.add(usize::from(place.saturating_sub(first))).cast::<u8>();
            for call in &self.preamble {
                let [a, b, c] = call.operands;
                (call.run)(at(call.target), at(a), at(b), at(c), 1);
            }
        }
    }

    /// Runs loops made by [`Loops::of_blocks`] on blocks of `n` elements; buffers are inputs, then outputs.
    ///
    /// # Safety
    /// Inputs that are not uniform are readable and outputs writable for `n` elements of their types, aligned; outputs
    /// overlap nothing. `registers` has room for [`Loops::registers`] pieces of `stride` bytes, each for `n` elements
    /// of eight bytes and aligned.
    pub(crate) unsafe fn run_block(
        &self,
        uniforms: &[u64],
        buffers: &[*mut u8],
        (registers, stride): (*mut u8, usize),
        n: usize,
    ) {
        let mut places: SmallVec<[*mut u8; 64]> = SmallVec::new();
        places.extend_from_slice(buffers);
        places.extend(uniforms.iter().map(|c| std::ptr::from_ref(c).cast::<u8>().cast_mut()));
        // SAFETY: places are those the calls were made for.
        unsafe {
            places.extend((0..self.registers).map(|r| registers.add(r * stride)));
            for call in &self.calls {
                let [a, b, c] = call.operands.map(|p| *places.get_unchecked(usize::from(p)));
                (call.run)(*places.get_unchecked(usize::from(call.target)), a, b, c, n);
            }
        }
    }
}
