//! Tier 0: a kernel run block by block, with no time to compile.
//!
//! Every value that is not the same for all elements has a *place* for one block: an input's or output's own memory
//! where its elements lie one after the other, else a register, which is a piece of scratch memory small enough that
//! all of them stay in the first-level cache. One loop per operator goes over the block.

mod blocks;
mod compiled;

use std::{
    cell::RefCell,
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use ltc_ir::DType;
use smallvec::SmallVec;

use super::{
    ir::{ComputeType, Inst, KernelIr, Val},
    jit::{Jit, JitInput, Tier, Uncompiled},
    loops::{self, Key, Loop},
    space::{Access, IterationSpace, MAX_BLOCK, Way},
};

/// Scratch memory of a block; about half of a first-level cache.
const BLOCK_BYTES: usize = 20 << 10;
const MIN_BLOCK: usize = 64;
/// Work, in additions of one element, after which a run looks whether its machine code is there by now: some 25 us.
const PIECE: usize = 200_000;

/// An input or output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferArg {
    pub(crate) dtype: DType,
    pub(crate) access: Access,
}

impl BufferArg {
    fn is_half(self) -> bool {
        matches!(self.dtype, DType::F16 | DType::BF16)
    }

    /// Whether blocks of it can be used where they lie.
    fn is_direct(self) -> bool {
        self.access == Access::Dense && !self.is_half()
    }
}

/// A fused kernel, ready to run.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) space: IterationSpace,
    pub(crate) inputs: Vec<BufferArg>,
    pub(crate) outputs: Vec<BufferArg>,
    /// Computes with the numbers that are nearly always one taken for one.
    pub(crate) usual: Arc<Loops>,
    ones: Vec<(u32, DType)>,
    /// For all other numbers; made when they come.
    general: Arc<(KernelIr, OnceLock<Option<Loops>>)>,
    staged: Vec<bool>,
    cost: usize,
    /// The usual IR's way to machine code; `None` if it may not become any.
    tier: Option<Arc<Tier>>,
}

/// An IR as loops over places. Places are numbered: inputs, outputs, uniform values, registers.
#[derive(Debug)]
pub(crate) struct Loops {
    /// Uniform values that are not computed: their slot and what they are.
    pub(crate) numbers: Vec<(u32, Inst, ComputeType)>,
    /// Computations of uniform values, over one element.
    pub(crate) preamble: Vec<Call>,
    pub(crate) calls: Vec<Call>,
    /// Inputs to copy to a register before the calls, and outputs to copy from a place after them.
    pub(crate) loads: Vec<(u32, u32)>,
    pub(crate) stores: Vec<(u32, u32)>,
    pub(crate) uniform_count: usize,
    pub(crate) registers: usize,
    /// Bytes of an element in a register.
    pub(crate) width: usize,
    pub(crate) block: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) run: Loop,
    pub(crate) target: u16,
    pub(crate) operands: [u16; 3],
}

/// What computed a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ran {
    /// Tier 0.
    Loops,
    /// Tier 0, until machine code was there.
    Both,
    /// Machine code.
    Compiled,
}

/// A kernel has more values than it has places for.
#[derive(Clone, Copy, Debug)]
pub struct TooLarge;

/// Scratch memory, aligned for vectors.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[expect(dead_code, reason = "used as raw memory")] [u64; 8]);

thread_local! {
    /// Pieces nobody uses. One call may be within another, so there may be several.
    static SCRATCH: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with so many bytes of this thread's scratch memory.
pub(crate) fn with_scratch<R>(bytes: usize, f: impl FnOnce(*mut u8) -> R) -> R {
    let mut lines = SCRATCH.with_borrow_mut(Vec::pop).unwrap_or_default();
    if lines.len() * size_of::<Line>() < bytes {
        lines.resize(bytes.div_ceil(size_of::<Line>()), Line([0; 8]));
    }
    let result = f(lines.as_mut_ptr().cast());
    SCRATCH.with_borrow_mut(|free| free.push(lines));
    result
}

impl Kernel {
    pub(crate) fn ir(&self) -> &KernelIr {
        &self.general.0
    }

    /// A kernel over `space`, whose operands are the outputs, then the inputs, of these dtypes. `usual` may assume
    /// ones, `general` computes the same assuming nothing. Outputs in `staged` may share their memory with an input.
    ///
    /// `None` if some computation has no loop, or there are too many values.
    pub fn new(
        space: IterationSpace,
        outputs: &[DType],
        inputs: &[DType],
        usual: &KernelIr,
        general: KernelIr,
        staged: Vec<bool>,
    ) -> Option<Kernel> {
        let buffer = |(i, &dtype): (usize, &DType)| BufferArg { dtype, access: space.access(i) };
        let out: Vec<BufferArg> = outputs.iter().enumerate().map(buffer).collect();
        let inp: Vec<BufferArg> = inputs.iter().enumerate().map(|(i, d)| buffer((i + outputs.len(), d))).collect();
        let code = Loops::new(usual, &inp, &out, &staged)?.into();
        let cost = usual.cost() + inp.len() + out.len();
        let general = Arc::new((general, OnceLock::new()));
        let ones = usual.ones.clone();
        let input = JitInput {
            ir: usual.clone(),
            uniform: uniform(usual, &inp),
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            staged: staged.clone(),
        };
        let tier = Some(Tier::new(Jit::default(), Uncompiled::Elements(input)));
        Some(Kernel { space, inputs: inp, outputs: out, usual: code, ones, general, staged, cost, tier })
    }

    /// Says whether the kernel may become machine code. Before its first run.
    pub fn set_jit(&mut self, jit: Jit) {
        if jit == Jit::Off {
            self.tier = None;
        } else if let Some(tier) = self.tier.as_mut().and_then(Arc::get_mut) {
            // Code that is shared with a kernel over another space was told already.
            tier.set(jit);
        }
    }

    /// The same computation over another space; `None` if some operand is reached in another way there.
    pub fn over(&self, space: IterationSpace) -> Option<Kernel> {
        let buffers = self.outputs.iter().chain(&self.inputs);
        buffers
            .enumerate()
            .all(|(i, buffer)| space.access(i) == buffer.access)
            .then(|| Kernel { space, ..self.clone() })
    }

    /// Bytes of an input that is used where it lies; `None` for others.
    #[inline]
    pub fn block_bytes(&self, input: usize) -> Option<usize> {
        let buffer = self.inputs[input];
        buffer.is_direct().then(|| self.element_count() * buffer.dtype.size_of())
    }

    /// Whether an input that is used where it lies may lie at this address.
    #[inline]
    pub fn is_aligned(&self, input: usize, address: usize) -> bool {
        address.is_multiple_of(self.inputs[input].dtype.size_of())
    }

    /// How many elements the kernel goes through.
    #[inline]
    pub fn element_count(&self) -> usize {
        self.space.element_count()
    }

    /// How many loops a block takes.
    pub fn calls(&self) -> usize {
        self.usual.calls.len()
    }

    /// How long a run takes on one thread, roughly.
    pub fn nanoseconds(&self) -> usize {
        if self.is_compiled() { self.cost * self.element_count() / 16 } else { self.calls() * self.element_count() / 4 }
    }

    fn is_compiled(&self) -> bool {
        self.tier.as_ref().is_some_and(|t| t.is_compiled())
    }

    /// Elements that are worth a thread of their own.
    #[inline]
    pub fn grain(&self) -> usize {
        // An addition of two blocks in the cache takes about an eighth of a nanosecond an element, in machine code a
        // third of that; waking a thread takes some microseconds.
        let work = if self.is_compiled() { 600_000 } else { 200_000 };
        (work / self.cost.max(1)).max(MAX_BLOCK)
    }

    /// Runs the kernel; says by what. `parallel(n, f)` must call `f` for ranges that cover `0..n` once, on any threads.
    ///
    /// # Safety
    /// Inputs are readable and outputs writable in all the space's elements, at the layouts the kernel was made for.
    /// Outputs and inputs used where they lie are aligned for their dtypes. Outputs overlap nothing, except that a
    /// staged one may be exactly an input with equal strides. `numbers` has all words the IR speaks of.
    ///
    /// # Errors
    /// Fails if the form for unusual numbers cannot be made.
    pub unsafe fn run(
        &self,
        outputs: &[*mut u8],
        inputs: &[*const u8],
        numbers: &[u64],
        parallel: impl FnOnce(usize, &(dyn Fn(Range<usize>) + Sync)),
    ) -> Result<Ran, TooLarge> {
        let one =
            |&(word, dtype): &(u32, DType)| ComputeType::F64.bits_from(dtype, numbers[word as usize]) == 1f64.to_bits();
        let usual = self.ones.iter().all(one);
        let code = if usual {
            &self.usual
        } else {
            let make = || Loops::new(&self.general.0, &self.inputs, &self.outputs, &self.staged);
            self.general.1.get_or_init(make).as_ref().ok_or(TooLarge)?
        };
        let mut uniforms: SmallVec<[u64; 64]> = SmallVec::from_elem(0, code.uniform_count);
        // SAFETY: uniforms have room for one element each; inputs by this function's contract.
        unsafe { self.fill_uniforms(code, &mut uniforms, inputs, numbers) };
        let n = self.element_count();
        let compiled = self.tier.as_ref().filter(|_| usual && n > 0).and_then(|t| t.code(&uniforms, n * self.cost));
        if let Some(compiled) = compiled {
            compiled.prepare(&mut uniforms);
        }
        let shared = TileArgs { outputs, inputs, uniforms: &uniforms };
        if let Some(compiled) = compiled {
            // SAFETY: by this function's contract; uniforms are prepared; ranges are disjoint.
            parallel(n, &|range: Range<usize>| unsafe { self.compiled(compiled, shared.get(), range) });
            return Ok(Ran::Compiled);
        }
        let tier = self.tier.as_ref().filter(|_| usual);
        let piece = (PIECE / self.cost.max(1)).max(code.block);
        let tiered_up = AtomicBool::new(false);
        let stretch = |range: Range<usize>| {
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min(start + piece);
                // SAFETY: by this function's contract; ranges are disjoint, so no two threads write one element.
                unsafe { self.stretch(code, shared.get(), start..end) };
                start = end;
                // Machine code that becomes ready during a large first run takes over the rest of the range; this is
                // allowed, because the code computes the same bits as the loops.
                if let Some(compiled) = tier.filter(|_| start < range.end).and_then(|t| t.ready(shared.uniforms)) {
                    let mut uniforms: SmallVec<[u64; 64]> = SmallVec::from_slice(shared.uniforms);
                    compiled.prepare(&mut uniforms);
                    // SAFETY: by this function's contract; ranges are disjoint, so no two threads write one element;
                    // `uniforms` were just prepared for this code.
                    unsafe {
                        self.compiled(compiled, TileArgs { uniforms: &uniforms, ..shared.get() }, start..range.end)
                    };
                    tiered_up.store(true, Relaxed);
                    return;
                }
            }
        };
        if n > 0 {
            parallel(n, &stretch);
        }
        Ok(if tiered_up.into_inner() { Ran::Both } else { Ran::Loops })
    }

    /// The uniforms of the usual IR.
    #[cfg(test)]
    pub(crate) fn uniforms(&self, inputs: &[*const u8], numbers: &[u64]) -> Vec<u64> {
        let mut uniforms = vec![0; self.usual.uniform_count];
        // SAFETY: tests pass the inputs and numbers of a `Kernel::run`, and `uniforms` has a slot for each uniform
        // value.
        unsafe { self.fill_uniforms(&self.usual, &mut uniforms, inputs, numbers) };
        uniforms
    }

    /// Fills the uniforms.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    unsafe fn fill_uniforms(&self, code: &Loops, uniforms: &mut [u64], inputs: &[*const u8], numbers: &[u64]) {
        for &(slot, inst, ty) in &code.numbers {
            let slot = &mut uniforms[slot as usize];
            match inst {
                Inst::Number(word, dtype) => *slot = ty.bits_from(dtype, numbers[word as usize]),
                Inst::Const(bits) => *slot = bits,
                // SAFETY: an input has at least one element where there is anything to do; a slot holds one.
                Inst::Input(i) if self.element_count() > 0 => unsafe {
                    let target = std::ptr::from_mut(slot).cast();
                    self.load(i as usize, inputs[i as usize], target, 0, 1);
                },
                Inst::Input(_) | Inst::Op(..) => {}
            }
        }
        let first = (self.inputs.len() + self.outputs.len()) as u16;
        // SAFETY: preambles name uniforms only, each with room for one element of any type, and a target is no operand.
        unsafe { code.run_preamble(uniforms, first) };
    }

    /// Copies elements of an input to a block of its type.
    ///
    /// # Safety
    /// As [`Kernel::run`]; `block` has room for `n` elements.
    unsafe fn load(&self, input: usize, base: *const u8, block: *mut u8, start: usize, n: usize) {
        // SAFETY: by this function's contract.
        unsafe {
            let (operand, dtype) = (self.outputs.len() + input, self.inputs[input].dtype);
            self.space.convert(Way::In, operand, dtype, base.cast_mut(), block, start..start + n);
        }
    }

    /// Copies a block to elements of an output.
    ///
    /// # Safety
    /// As [`Kernel::load`].
    unsafe fn store(&self, output: usize, base: *mut u8, block: *const u8, start: usize, n: usize) {
        // SAFETY: by this function's contract.
        unsafe {
            let dtype = self.outputs[output].dtype;
            self.space.convert(Way::Out, output, dtype, base, block.cast_mut(), start..start + n);
        }
    }

    /// The elements of a range, block by block.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    pub(crate) unsafe fn stretch(&self, code: &Loops, shared: TileArgs<'_>, range: Range<usize>) {
        let register = (code.block * code.width).next_multiple_of(64);
        with_scratch(code.registers * register, |base| {
            let (i, o) = (self.inputs.len(), self.outputs.len());
            let mut places: SmallVec<[*mut u8; 64]> =
                SmallVec::with_capacity(i + o + code.uniform_count + code.registers);
            // SAFETY: offsets stay within the memory each pointer belongs to: the range lies within the space,
            // registers within the scratch memory; calls read places that were filled before and write places that are
            // no operand.
            unsafe {
                let step = |buffer: &BufferArg| if buffer.is_direct() { buffer.dtype.size_of() } else { 0 };
                let at = |buffer: &BufferArg| range.start * step(buffer);
                places.extend(shared.inputs.iter().zip(&self.inputs).map(|(p, buffer)| p.add(at(buffer)).cast_mut()));
                places.extend(shared.outputs.iter().zip(&self.outputs).map(|(p, buffer)| p.add(at(buffer))));
                places.extend(shared.uniforms.iter().map(|c| std::ptr::from_ref(c).cast::<u8>().cast_mut()));
                places.extend((0..code.registers).map(|r| base.add(r * register)));
                let mut start = range.start;
                while start < range.end {
                    let n = code.block.min(range.end - start);
                    for &(input, place) in &code.loads {
                        self.load(input as usize, shared.inputs[input as usize], places[place as usize], start, n);
                    }
                    for call in &code.calls {
                        let [a, b, c] = call.operands.map(|p| *places.get_unchecked(usize::from(p)));
                        (call.run)(*places.get_unchecked(usize::from(call.target)), a, b, c, n);
                    }
                    for &(output, place) in &code.stores {
                        self.store(output as usize, shared.outputs[output as usize], places[place as usize], start, n);
                    }
                    for (place, buffer) in places.iter_mut().zip(self.inputs.iter().chain(&self.outputs)) {
                        *place = place.add(n * step(buffer));
                    }
                    start += n;
                }
            }
        });
    }
}

/// What all threads of a run share.
#[derive(Clone, Copy)]
pub(crate) struct TileArgs<'a> {
    pub(crate) outputs: &'a [*mut u8],
    pub(crate) inputs: &'a [*const u8],
    pub(crate) uniforms: &'a [u64],
}

// SAFETY: threads read inputs and uniforms, and write disjoint elements of the outputs.
unsafe impl Sync for TileArgs<'_> {}

impl<'a> TileArgs<'a> {
    /// The whole, so that closures capture it and not its parts.
    fn get(&self) -> TileArgs<'a> {
        *self
    }
}

/// Per value whether it is the same for all elements.
pub(crate) fn uniform(ir: &KernelIr, inputs: &[BufferArg]) -> Vec<bool> {
    let mut uniform = Vec::with_capacity(ir.values.len());
    for (i, (inst, _)) in ir.values.iter().enumerate() {
        uniform.push(match inst {
            Inst::Input(input) => inputs[*input as usize].access == Access::Uniform,
            Inst::Number(..) | Inst::Const(_) => true,
            Inst::Op(..) => ir.operands(Val(i as u32)).iter().all(|o| uniform[o.0 as usize]),
        });
    }
    uniform
}

/// Assigns places.
struct Places<'a> {
    ir: &'a KernelIr,
    inputs: &'a [BufferArg],
    place: Vec<u16>,
    uniform: Vec<bool>,
    last_use: Vec<usize>,
    /// First register.
    first: usize,
    registers: usize,
    free: Vec<u16>,
}

impl Places<'_> {
    /// A register nobody needs any more.
    fn register(&mut self) -> u16 {
        self.free.pop().unwrap_or_else(|| self.new_register())
    }

    /// A register nobody used before.
    fn new_register(&mut self) -> u16 {
        self.registers += 1;
        (self.first + self.registers - 1) as u16
    }

    /// Gives back the registers of operands that value `v` used last. Only what was computed or loaded before can be
    /// free now; the target is none of the operands.
    fn release_operands(&mut self, v: usize) {
        for operand in self.ir.operands(Val(v as u32)) {
            let o = operand.0 as usize;
            let register = usize::from(self.place[o]) >= self.first && !matches!(self.ir.values[o].0, Inst::Input(_));
            if self.last_use[o] == v && register && !self.free.contains(&self.place[o]) {
                self.free.push(self.place[o]);
            }
        }
    }

    /// Per value the output that is its place, because it may be written where it lies; and which outputs are so.
    fn outputs(&self, outputs: &[BufferArg], staged: &[bool]) -> (Vec<Option<u16>>, Vec<bool>) {
        let mut own: Vec<Option<u16>> = vec![None; self.ir.values.len()];
        let mut placed = vec![false; outputs.len()];
        for (o, (v, buffer)) in self.ir.outputs.iter().zip(outputs).enumerate() {
            let v = v.0 as usize;
            let computed = matches!(self.ir.values[v].0, Inst::Op(..)) && !self.uniform[v];
            if computed && buffer.is_direct() && !staged[o] && own[v].is_none() {
                own[v] = Some((self.inputs.len() + o) as u16);
                placed[o] = true;
            }
        }
        (own, placed)
    }

    /// The loop of a computation.
    fn call(&self, v: usize, target: u16) -> Option<Call> {
        let (Inst::Op(op, args), to) = self.ir.values[v] else { return None };
        let arity = op.arity();
        let from = self.ir.ty(args[arity - 1]);
        let mut uniform = [false; 3];
        let mut operands = [target; 3];
        for (i, a) in args[..arity].iter().enumerate() {
            uniform[i] = self.uniform[a.0 as usize];
            operands[i] = self.place[a.0 as usize];
        }
        let run = loops::find(Key { op, from, to, uniform })?;
        Some(Call { run, target, operands })
    }
}

/// Per value the one that uses it last; their number for outputs.
fn last_uses(ir: &KernelIr) -> Vec<usize> {
    let count = ir.values.len();
    let mut last_use = vec![0; count];
    for i in 0..count {
        ir.operands(Val(i as u32)).iter().for_each(|o| last_use[o.0 as usize] = i);
    }
    ir.outputs.iter().for_each(|o| last_use[o.0 as usize] = count);
    last_use
}

impl Loops {
    pub(crate) fn new(ir: &KernelIr, inputs: &[BufferArg], outputs: &[BufferArg], staged: &[bool]) -> Option<Loops> {
        let count = ir.values.len();
        let uniform = uniform(ir, inputs);
        let uniform_count = uniform.iter().filter(|u| **u).count();
        let first_uniform = inputs.len() + outputs.len();
        if first_uniform + count + outputs.len() > usize::from(u16::MAX) {
            return None;
        }
        let mut p = Places {
            ir,
            inputs,
            place: vec![0; count],
            uniform,
            last_use: last_uses(ir),
            first: first_uniform + uniform_count,
            registers: 0,
            free: Vec::new(),
        };
        let (mut numbers, mut preamble, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        let (mut loads, mut stores) = (Vec::new(), Vec::new());
        let mut next_uniform = first_uniform as u16;
        let (own, placed) = p.outputs(outputs, staged);
        let widest = ir.values.iter().map(|(_, ty)| ty.bytes()).max().unwrap_or(1);
        for (v, &(inst, ty)) in ir.values.iter().enumerate() {
            if p.uniform[v] {
                p.place[v] = next_uniform;
                next_uniform += 1;
                match inst {
                    Inst::Op(..) => preamble.push(p.call(v, p.place[v])?),
                    _ => numbers.push(((p.place[v] as usize - first_uniform) as u32, inst, ty)),
                }
                continue;
            }
            match inst {
                Inst::Input(i) if p.inputs[i as usize].is_direct() => p.place[v] = i as u16,
                Inst::Input(i) => {
                    // Loads come before all calls, so their registers are theirs for the whole block.
                    p.place[v] = p.new_register();
                    loads.push((i, u32::from(p.place[v])));
                }
                _ => {
                    p.place[v] = own[v].unwrap_or_else(|| p.register());
                    calls.push(p.call(v, p.place[v])?);
                }
            }
            p.release_operands(v);
        }
        for (o, (v, buffer)) in ir.outputs.iter().zip(outputs).enumerate().filter(|(o, _)| !placed[*o]) {
            let (place, bytes) = (p.place[v.0 as usize], ir.ty(*v).bytes());
            let uniform = p.uniform[v.0 as usize];
            if buffer.is_direct() && !staged[o] {
                let target = (inputs.len() + o) as u16;
                calls.push(Call { run: loops::copy(bytes, uniform), target, operands: [place; 3] });
            } else if uniform || usize::from(place) < inputs.len() {
                // An input's own memory may be an output's too, written before this output is.
                let register = p.register();
                calls.push(Call { run: loops::copy(bytes, uniform), target: register, operands: [place; 3] });
                stores.push((o as u32, u32::from(register)));
            } else {
                stores.push((o as u32, u32::from(place)));
            }
        }
        let blocks = p.registers + inputs.len() + outputs.len();
        let block = (BLOCK_BYTES / (blocks * widest).max(1)).clamp(MIN_BLOCK, MAX_BLOCK) & !63;
        let (registers, width) = (p.registers, widest);
        Some(Loops { numbers, preamble, calls, loads, stores, uniform_count, registers, width, block })
    }
}
