//! An IR, compiled.

use smallvec::SmallVec;

use super::{
    super::{
        ir::{ComputeType, Inst, KernelOp},
        loops::instruction_set,
    },
    JitInput,
    emit::{self, Machine},
    lower::{Shape, form, lower},
    memory::Executable,
    vector::{Vectors, Width},
};

/// Buffers, numbers, how many elements, scratch memory; gives how many elements it computed.
type Function = unsafe extern "sysv64" fn(*const *mut u8, *const u64, usize, *mut u8) -> usize;

/// An IR as machine code, over elements that lie one after the other.
#[derive(Debug)]
pub(crate) struct Compiled {
    code: Executable,
    entry: usize,
    width: Width,
    /// Bytes of an element, inputs then outputs.
    sizes: Vec<usize>,
    inputs: usize,
    spills: usize,
    /// Uniforms of truth values, which the code wants as masks.
    masks: Vec<u32>,
    /// Exponents the code was made for: slot and bits.
    exponents: Vec<(u32, u64)>,
}

/// The vectors this machine has, and may use.
pub(crate) fn width() -> Option<Width> {
    match instruction_set() {
        "avx512" => Some(Width::Zmm),
        "avx2" => Some(Width::Ymm),
        _ => None,
    }
}

/// Exponents that have short cuts.
const SHORT: [f64; 6] = [2.0, 3.0, 0.5, -0.5, -1.0, -2.0];

/// Slots of uniform exponents of computed powers, with their types.
fn exponents(input: &JitInput) -> Vec<(u32, ComputeType)> {
    let ir = &input.ir;
    let slot = |v: usize| input.uniform[..v].iter().filter(|u| **u).count() as u32;
    let power = |i: usize| match ir.values[i] {
        (Inst::Op(KernelOp::Pow, [_, y, _]), ty) if !input.uniform[i] && input.uniform[y.0 as usize] => {
            Some((slot(y.0 as usize), ty))
        }
        _ => None,
    };
    (0..ir.values.len()).filter_map(power).collect()
}

impl JitInput {
    /// The vector program of a group, with powers as these numbers have them.
    pub(super) fn program(&self, width: Width, uniforms: &[u64]) -> Option<Vectors> {
        let mut known = Vec::new();
        for (slot, ty) in exponents(self) {
            let bits = *uniforms.get(slot as usize)?;
            let number =
                if ty == ComputeType::F32 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) };
            known.push((slot, Some(number).filter(|n| SHORT.contains(n))?));
        }
        let shape = Shape {
            ir: &self.ir,
            uniform: &self.uniform,
            inputs: &self.inputs,
            outputs: &self.outputs,
            staged: &self.staged,
            exponents: &known,
        };
        lower(&shape, width)
    }

    /// Machine code for vectors of this width.
    pub(super) fn assemble(&self, width: Width, uniforms: &[u64]) -> Option<Machine> {
        emit::emit(&self.program(width, uniforms)?, self.inputs.len() + self.outputs.len(), width)
    }

    /// The IR, compiled for this machine. `None` if it is better run by tier 0.
    pub(super) fn compile(&self, uniforms: &[u64]) -> Option<Compiled> {
        let width = width()?;
        let machine = self.assemble(width, uniforms)?;
        let sizes = self.inputs.iter().chain(&self.outputs).map(|&d| form(d).map(|f| f.bytes()));
        let uniform = (0..self.uniform.len()).filter(|&v| self.uniform[v]);
        let masks =
            uniform.enumerate().filter(|(_, v)| self.ir.values[*v].1 == ComputeType::Bool).map(|(c, _)| c as u32);
        Some(Compiled {
            entry: machine.entry,
            code: Executable::new(&machine.bytes)?,
            width,
            sizes: sizes.collect::<Option<_>>()?,
            inputs: self.inputs.len(),
            spills: machine.scratch,
            masks: masks.collect(),
            exponents: exponents(self).into_iter().map(|(c, _)| (c, uniforms[c as usize])).collect(),
        })
    }
}

/// Bytes of a buffer's share of the last, incomplete group.
const TAIL: usize = 128;

impl Compiled {
    /// Whether the code computes what these numbers ask for.
    pub(crate) fn guards_hold(&self, uniforms: &[u64]) -> bool {
        self.exponents.iter().all(|&(slot, bits)| uniforms[slot as usize] == bits)
    }

    /// Makes uniform values what the code reads: truth values become masks.
    pub(crate) fn prepare(&self, uniforms: &mut [u64]) {
        for &slot in &self.masks {
            let slot = &mut uniforms[slot as usize];
            *slot = if *slot == 0 { 0 } else { u64::MAX };
        }
    }

    /// Makes prepared values what they were.
    pub(crate) fn restore(&self, uniforms: &mut [u64]) {
        for &slot in &self.masks {
            uniforms[slot as usize] &= 1;
        }
    }

    /// Whether there is nothing to prepare.
    pub(crate) fn reads_uniforms_as_they_are(&self) -> bool {
        self.masks.is_empty()
    }

    /// The buffers behind so many elements; those of uniform inputs, which nobody reads, point nowhere.
    pub(crate) fn after(&self, buffers: &[*mut u8], elements: usize) -> SmallVec<[*mut u8; 16]> {
        buffers.iter().zip(&self.sizes).map(|(buffer, size)| buffer.wrapping_add(elements * size)).collect()
    }

    /// Bytes of scratch memory a run needs.
    pub(crate) fn scratch(&self) -> usize {
        self.spills + self.sizes.len() * TAIL
    }

    /// Computes `n` elements, which lie one after the other from where the buffers point: inputs, then outputs. Gives
    /// how many it computed: fewer where a function is not good for some argument
    /// ([`Arith::check`](super::super::math::Arith::check)). Of the others, outputs that share their memory with an
    /// input are not written yet.
    ///
    /// # Safety
    /// Buffers of inputs that are not uniform are readable, those of outputs writable for `n` elements, at any address.
    /// Outputs overlap nothing, except that one which was said to may be exactly an input. `uniforms` are those of the
    /// IR, prepared; `scratch` has [`Compiled::scratch`] bytes.
    pub(crate) unsafe fn run(&self, buffers: &[*mut u8], uniforms: &[u64], n: usize, scratch: *mut u8) -> usize {
        let group = self.width.group();
        let whole = n / group * group;
        // SAFETY: the code at the entry is a function of this type that reads and writes `whole` elements of the
        // buffers, the IR's uniforms, and as many bytes of scratch memory as it said. The incomplete group goes through
        // scratch memory.
        unsafe {
            let function = std::mem::transmute::<*const u8, Function>(self.code.at(self.entry));
            let done = if whole > 0 { function(buffers.as_ptr(), uniforms.as_ptr(), whole, scratch) } else { 0 };
            if done < whole || whole == n {
                return done;
            }
            let mut tails: SmallVec<[*mut u8; 16]> = SmallVec::with_capacity(buffers.len());
            for (buffer, (&base, &size)) in buffers.iter().zip(&self.sizes).enumerate() {
                let tail = scratch.add(self.spills + buffer * TAIL);
                if buffer < self.inputs && !base.is_null() {
                    // What a run before left here might fail a check.
                    std::ptr::write_bytes(tail, 0, TAIL);
                    std::ptr::copy_nonoverlapping(base.add(whole * size), tail, (n - whole) * size);
                }
                tails.push(tail);
            }
            if function(tails.as_ptr(), uniforms.as_ptr(), group, scratch) < group {
                return whole;
            }
            for (buffer, (&base, &size)) in buffers.iter().zip(&self.sizes).enumerate().skip(self.inputs) {
                std::ptr::copy_nonoverlapping(tails[buffer], base.add(whole * size), (n - whole) * size);
            }
            n
        }
    }
}
