//! Plans: one graph node made ready to run on tensors of a place.

use std::ffi::{c_int, c_void};

use ltc_ir::{DType, LayoutRef};
use smallvec::SmallVec;

use crate::{
    error::{ErrorSlot, TorchError},
    ffi,
    handle::{AsTensor, Tensor, raw},
    place::Place,
    tensor,
};

unsafe extern "C" {
    fn ltc_generator_engine(generator: *const c_void, out: *mut Engine, err: *mut ffi::LtcError) -> c_int;
    fn ltc_generator_set_engine(generator: *mut c_void, engine: *const Engine, err: *mut ffi::LtcError) -> c_int;
}

/// State of a random generator of a place (on the CPU, mt19937), owned.
#[derive(Debug)]
pub struct Generator(*mut c_void);

// SAFETY: the handle owns a counted `at::Generator`; the generator itself is only touched by plans, which clone it
// unless they are given the sole handle.
unsafe impl Send for Generator {}
// SAFETY: through `&Generator` only its count and its state (never changed while shared) can be read.
unsafe impl Sync for Generator {}

impl Generator {
    /// A generator seeded as `torch.manual_seed` seeds the place's.
    ///
    /// # Errors
    /// Fails where libtorch has no generators for the place.
    pub fn seeded(seed: u64, place: Place) -> Result<Generator, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: on success `out` is a new generator that is ours.
        unsafe { err.check(ffi::ltc_generator_new(seed, place.code(), &mut out, err.as_ptr()))? };
        Ok(Generator(out))
    }

    /// An independent generator in the state of libtorch's default one on the CPU.
    ///
    /// # Errors
    /// Fails where libtorch cannot copy it.
    pub fn cpu_default() -> Result<Generator, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: on success `out` is a new generator that is ours.
        unsafe { err.check(ffi::ltc_cpu_generator_get(&mut out, err.as_ptr()))? };
        Ok(Generator(out))
    }

    /// Puts libtorch's default generator on the CPU into this one's state.
    ///
    /// # Errors
    /// Fails where this generator is not of the CPU.
    pub fn make_cpu_default(&self) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: `self.0` is live and only read.
        unsafe { err.check(ffi::ltc_cpu_generator_set(self.0, err.as_ptr())) }
    }

    /// # Safety
    /// `p` must be an `at::Generator*` that is ours to free.
    pub(crate) unsafe fn from_raw(p: *mut c_void) -> Self {
        Generator(p)
    }

    pub(crate) fn into_raw(self) -> *mut c_void {
        std::mem::ManuallyDrop::new(self).0
    }

    /// An independent generator in the same state.
    ///
    /// # Errors
    /// Fails where libtorch cannot copy it.
    pub fn deep_clone(&self) -> Result<Generator, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: `self.0` is live; on success `out` is a new generator that is ours.
        unsafe { err.check(ffi::ltc_generator_clone(self.0, &mut out, err.as_ptr()))? };
        Ok(Generator(out))
    }

    /// The engine's state, of a generator of the CPU.
    ///
    /// # Errors
    /// Fails for a generator that is not of the CPU.
    pub fn engine(&self) -> Result<Engine, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::mem::MaybeUninit::uninit());
        // SAFETY: `self.0` is live; on success the engine is filled in.
        unsafe {
            err.check(ltc_generator_engine(self.0, out.as_mut_ptr(), err.as_ptr()))?;
            Ok(out.assume_init())
        }
    }

    /// Puts the engine in this state.
    ///
    /// # Errors
    /// Fails for a generator that is not of the CPU.
    pub fn set_engine(&mut self, engine: &Engine) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: `self.0` is live and, through `&mut`, ours alone among handles of this type.
        unsafe { err.check(ltc_generator_set_engine(self.0, engine, err.as_ptr())) }
    }

    pub(crate) fn as_raw(&self) -> *mut c_void {
        self.0
    }
}

/// State of libtorch's mt19937 engine (`at::mt19937_data_pod`).
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Engine {
    seed: u64,
    /// Draws, plus one, until the state must be stepped.
    pub left: i32,
    seeded: u32,
    /// Word of the next draw.
    pub next: u32,
    /// Words, before tempering.
    pub state: [u32; Engine::WORDS],
}

impl Engine {
    /// Words of state.
    pub const WORDS: usize = 624;
}

impl Drop for Generator {
    fn drop(&mut self) {
        // SAFETY: owned, freed once.
        unsafe { ffi::ltc_generator_free(self.0) }
    }
}

/// What a program's slot holds.
#[derive(Debug)]
pub enum Held {
    /// A tensor.
    Tensor(Tensor),
    /// A generator state.
    Generator(Generator),
}

impl Held {
    fn as_raw(&self) -> *mut c_void {
        match self {
            Held::Tensor(t) => raw(t).cast_mut(),
            Held::Generator(g) => g.as_raw(),
        }
    }
}

/// One operator with its constant arguments boxed in advance.
///
/// Runs below autograd on the calling thread. Written operands are written in place when the caller allows it and they
/// are the sole holders of their memory; otherwise they are copied first, so values behave as values.
#[derive(Debug)]
pub struct Plan {
    raw: *mut ffi::LtcPlan,
    generators: SmallVec<[bool; 2]>,
}

// SAFETY: a plan is immutable after it is made; running it copies its constants.
unsafe impl Send for Plan {}
// SAFETY: threads that share a plan only run it, and that copies its constants and writes nothing to it.
unsafe impl Sync for Plan {}

impl Plan {
    /// Prepares `op` with structural arguments `words` (see [`ltc_ir::args`]); results must come out with exactly these
    /// layouts.
    ///
    /// # Errors
    /// Fails with `NotImplemented` for an operator this libtorch does not have, and for words that are no arguments of
    /// its schema.
    pub fn new(op: &str, words: &[u64], results: &[LayoutRef], place: Place) -> Result<Plan, TorchError> {
        let dims: SmallVec<[_; 4]> = results.iter().map(|l| tensor::dims(l)).collect();
        let (err, mut raw) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: all slices are valid for the call; on success `raw` is a new plan that is ours.
        unsafe {
            err.check(ffi::ltc_plan_new(
                op.as_ptr().cast(),
                op.len(),
                words.as_ptr(),
                words.len() as u32,
                dims.as_ptr(),
                dims.len() as u32,
                place.code(),
                &mut raw,
                err.as_ptr(),
            ))?;
        }
        Ok(Plan { raw, generators: results.iter().map(|l| l.dtype() == DType::RngState).collect() })
    }

    /// Runs the operator. `operands` and `reusable` are in order of appearance, `numbers` are this node's. Results:
    /// written arguments, new results, generator states.
    ///
    /// # Errors
    /// Fails as the kernel does, and where its results are not what was promised.
    pub fn run(
        &self,
        operands: &[&Held],
        reusable: &[bool],
        numbers: &[u64],
    ) -> Result<SmallVec<[Held; 2]>, TorchError> {
        assert_eq!(operands.len(), reusable.len(), "invariant: one flag per operand");
        let raw: SmallVec<[_; 8]> = operands.iter().map(|h| h.as_raw()).collect();
        let mut outs: SmallVec<[_; 4]> = SmallVec::from_elem(std::ptr::null_mut(), self.generators.len());
        let err = ErrorSlot::new();
        // SAFETY: operands are live; `reusable` is one byte of 0 or 1 each; the plan knows how many of each there are
        // (the graph's verifier checks that node and blob agree); on success every out is a new object that is ours.
        unsafe {
            err.check(ffi::ltc_plan_run(
                self.raw,
                raw.as_ptr(),
                reusable.as_ptr().cast(),
                numbers.as_ptr(),
                outs.as_mut_ptr(),
                err.as_ptr(),
            ))?;
            Ok(outs
                .into_iter()
                .zip(&self.generators)
                .map(|(p, &generator)| {
                    if generator { Held::Generator(Generator::from_raw(p)) } else { Held::Tensor(Tensor::from_raw(p)) }
                })
                .collect())
        }
    }
}

/// Runs an operator once on host tensors, below autograd, and returns what its kernel made: written arguments (copies
/// of the operands), then defined results. The layouts are the kernel's own, which is how shape rules are checked.
///
/// # Errors
/// Fails for an operator that this libtorch does not have, for words that are no arguments of its schema, for more than
/// 64 results, and as the kernel does.
pub fn probe(op: &str, words: &[u64], operands: &[&impl AsTensor], numbers: &[u64]) -> Result<Vec<Tensor>, TorchError> {
    const ROOM: usize = 64;
    let raw: SmallVec<[_; 8]> = operands.iter().map(|t| raw(t).cast_mut()).collect();
    let reusable: SmallVec<[u8; 8]> = SmallVec::from_elem(0, operands.len());
    let (err, mut outs, mut count) = (ErrorSlot::new(), [std::ptr::null_mut(); ROOM], 0);
    // SAFETY: operands are live; the blob is checked against the operator's schema; on success the first `count` outs
    // are new tensors that are ours.
    unsafe {
        err.check(ffi::ltc_probe(
            op.as_ptr().cast(),
            op.len(),
            words.as_ptr(),
            words.len() as u32,
            raw.as_ptr(),
            reusable.as_ptr(),
            numbers.as_ptr(),
            outs.as_mut_ptr(),
            ROOM as u32,
            &mut count,
            err.as_ptr(),
        ))?;
        Ok(outs[..count as usize].iter().map(|&p| Tensor::from_raw(p)).collect())
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: owned, freed once.
        unsafe { ffi::ltc_plan_free(self.raw) }
    }
}
