//! An IR, compiled.

use ltc_ir::DType;
use smallvec::SmallVec;

use super::{
    super::{
        ir::{ComputeType, Inst, KernelIr, KernelOp, Val},
        loops::instruction_set,
        math::is_short,
    },
    JitInput, Target,
    emit::{self, Machine},
    lower::{Shape, form, lower},
    memory::Executable,
    vector::{Vectors, Width},
};

/// Buffers, numbers, how many elements, scratch memory; gives how many elements it computed.
type Function = unsafe extern "sysv64" fn(*const *mut u8, *mut u64, usize, *mut u8) -> usize;

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
    pub(super) rows: usize,
    /// Uniforms of truth values, which the code wants as masks.
    masks: Vec<u32>,
    /// Exponents with their types: the code was made for these bits, or for any that have no short cut.
    exponents: Vec<(u32, ComputeType, Option<u64>)>,
}

/// The vectors this machine has, and may use.
pub(crate) fn width() -> Option<Width> {
    match instruction_set() {
        "avx512" => Some(Width::Zmm),
        "avx2" => Some(Width::Ymm),
        _ => None,
    }
}

/// The number these bits are, if it is an exponent that has a short cut.
fn short(bits: u64, ty: ComputeType) -> Option<f64> {
    let number = if ty == ComputeType::F32 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) };
    Some(number).filter(|n| is_short(*n))
}

/// Slots of exponents that are the same for all elements, with their types. `slots`: per value its own, if it is.
pub(super) fn exponents<'a>(
    ir: &'a KernelIr,
    slots: &'a [Option<u32>],
) -> impl Iterator<Item = (u32, ComputeType)> + 'a {
    ir.values.iter().zip(slots).filter_map(|(value, slot)| match *value {
        (Inst::Op(KernelOp::Pow, [_, y, _]), ty) if slot.is_none() => Some((slots[y.0 as usize]?, ty)),
        _ => None,
    })
}

/// Those of these exponents that have short cuts, and the numbers they are; `None` if one of double precision has none.
pub(super) fn short_exponents(
    exponents: impl Iterator<Item = (u32, ComputeType)>,
    uniforms: &[u64],
) -> Option<Vec<(u32, f64)>> {
    let mut known = Vec::new();
    for (slot, ty) in exponents {
        match short(*uniforms.get(slot as usize)?, ty) {
            Some(number) => known.push((slot, number)),
            None if ty == ComputeType::F32 => {}
            None => return None,
        }
    }
    Some(known)
}

impl JitInput {
    /// Per value its uniform slot.
    fn slots(&self) -> Vec<Option<u32>> {
        let mut next = 0..;
        self.uniform.iter().map(|uniform| if *uniform { next.next() } else { None }).collect()
    }

    /// Whether blocks of bytes, of which a loop takes four times as many at once, are all there is.
    fn is_of_bytes(&self) -> bool {
        let ir = &self.ir;
        let computed = |i: &usize| matches!(ir.values[*i].0, Inst::Op(..)) && !self.uniform[*i];
        (0..ir.values.len()).filter(computed).all(|i| {
            let of = |v: &Val| ir.ty(*v).bytes() == 1;
            ir.values[i].1.bytes() == 1 && ir.operands(Val(i as u32)).iter().all(of)
        })
    }

    /// The vector program of a group, with powers as these numbers have them. Buffers are inputs, then outputs.
    pub(super) fn program(&self, width: Width, uniforms: &[u64]) -> Option<Vectors> {
        if self.is_of_bytes() {
            return None;
        }
        let slots = self.slots();
        let known = short_exponents(exponents(&self.ir, &slots), uniforms)?;
        let inputs: Vec<(u16, DType)> = self.inputs.iter().enumerate().map(|(i, d)| (i as u16, *d)).collect();
        let target = |(o, (&dtype, &staged)): (usize, (&DType, &bool))| {
            let buffer = (inputs.len() + o) as u16;
            Target::Elements { buffer, dtype, staged }
        };
        let targets: Vec<Target> = self.outputs.iter().zip(&self.staged).enumerate().map(target).collect();
        let shape = Shape { ir: &self.ir, slots: &slots, inputs: &inputs, targets: &targets, exponents: &known };
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
        let (sizes, slots) = (sizes.collect::<Option<_>>()?, self.slots());
        let mut code = Compiled::new(&machine, width)?;
        (code.sizes, code.inputs) = (sizes, self.inputs.len());
        code.expect(&self.ir, &slots, uniforms);
        Some(code)
    }
}

impl Compiled {
    /// Code that expects nothing of its numbers yet, and has no buffers.
    pub(super) fn new(machine: &Machine, width: Width) -> Option<Compiled> {
        Some(Compiled {
            entry: machine.entry,
            code: Executable::new(&machine.bytes)?,
            width,
            sizes: Vec::new(),
            inputs: 0,
            spills: machine.scratch,
            rows: 1,
            masks: Vec::new(),
            exponents: Vec::new(),
        })
    }

    /// Says what the code of an IR expects of the numbers in its slots.
    pub(super) fn expect(&mut self, ir: &KernelIr, slots: &[Option<u32>], uniforms: &[u64]) {
        let is_mask =
            |(value, slot): (&(Inst, ComputeType), &Option<u32>)| (value.1 == ComputeType::Bool).then_some(*slot)?;
        self.masks.extend(ir.values.iter().zip(slots).filter_map(is_mask));
        let expected = |(slot, ty): (u32, ComputeType)| {
            let bits = uniforms[slot as usize];
            (slot, ty, short(bits, ty).map(|_| bits))
        };
        self.exponents.extend(exponents(ir, slots).map(expected));
    }
}

/// Bytes of a buffer's share of the last, incomplete group.
const TAIL: usize = 128;

impl Compiled {
    /// Whether the code computes what these numbers ask for.
    pub(crate) fn guards_hold(&self, uniforms: &[u64]) -> bool {
        self.exponents.iter().all(|&(slot, ty, expected)| match (uniforms[slot as usize], expected) {
            (bits, Some(expected)) => bits == expected,
            (bits, None) => short(bits, ty).is_none(),
        })
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

    /// How many rows the code takes side by side.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Computes rows of `n` elements, if that is what the code is for ([`RowInput`](super::RowInput)).
    ///
    /// # Safety
    /// Buffers have the rows' elements, readable or writable, at any address; outputs overlap nothing but those of the
    /// same row given twice. `uniforms` are
    /// those the code was made for, prepared; `scratch` has [`Compiled::scratch`] bytes.
    pub(crate) unsafe fn run_rows(&self, buffers: &[*mut u8], uniforms: &mut [u64], n: usize, scratch: *mut u8) {
        // SAFETY: the code at the entry is a function of this type that reads and writes the rows' elements, numbers of
        // its slots, and as many bytes of scratch memory as it said.
        unsafe {
            let function = std::mem::transmute::<*const u8, Function>(self.code.at(self.entry));
            function(buffers.as_ptr(), uniforms.as_mut_ptr(), n, scratch);
        }
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
            let done =
                if whole > 0 { function(buffers.as_ptr(), uniforms.as_ptr().cast_mut(), whole, scratch) } else { 0 };
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
            if function(tails.as_ptr(), uniforms.as_ptr().cast_mut(), group, scratch) < group {
                return whole;
            }
            for (buffer, (&base, &size)) in buffers.iter().zip(&self.sizes).enumerate().skip(self.inputs) {
                std::ptr::copy_nonoverlapping(tails[buffer], base.add(whole * size), (n - whole) * size);
            }
            n
        }
    }
}
