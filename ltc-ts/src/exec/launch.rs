//! Kernels on libtorch's tensors: memory in, memory out, threads.
#![allow(unsafe_code, reason = "kernels take raw memory; where it lies and who holds it is known here")]

use std::ops::Range;

use ltc_ir::{DType, ErrorClass, Layout, LayoutRef};
use ltc_kernels::{FusedKernel, MaxPool, Mt19937, Ran, bernoulli, cuda::Operands};
use ltc_torch_sys::{Held, Place, Tensor, TorchError, empty_at, is_sole_holder, parallel_for};
use smallvec::SmallVec;

use super::{
    gpu,
    launch_graph::{Notes, failed_launch},
};
use crate::{
    fusion::{ConcatSlice, FusedKernelStep, GpuKernel},
    program::InstrResult,
};

fn concat_slice(fused: &FusedKernelStep, result: usize) -> Option<&ConcatSlice> {
    fused.concat_slices.get(result)?.as_ref()
}

fn tensor<'a>(operands: &[&'a Held], operand: u32) -> Result<&'a Tensor, TorchError> {
    match operands[operand as usize] {
        Held::Tensor(t) => Ok(t),
        Held::Generator(_) => {
            Err(TorchError { class: ErrorClass::Runtime, message: "a generator for a tensor".into() })
        }
    }
}

/// Runs a kernel on the operands, and says by what; results come in memory of their own, or in that of an operand that
/// may be written and that nobody else holds.
pub(super) fn run_fused<'a>(
    (fused, place): (&FusedKernelStep, Place),
    operands: &[&Held],
    reusable: &[bool],
    (numbers, notes): (&[u64], Option<(&Notes, Range<usize>)>),
    layouts: impl Iterator<Item = &'a LayoutRef>,
) -> Result<(SmallVec<[Held; 2]>, Ran), TorchError> {
    let results = memory_of_results((fused, place), operands, reusable, layouts)?;
    if let Some(gpu) = &fused.gpu {
        return launch((fused, gpu), place, operands, &results, (numbers, notes)).map(|()| (results, Ran::Compiled));
    }
    let mut inputs: SmallVec<[*const u8; 16]> = SmallVec::new();
    // Inputs at addresses that their dtype is not aligned to are copied: vector instructions would read them, but the
    // compiler relies on alignment.
    let mut copies: Vec<Vec<u64>> = Vec::new();
    for (i, (operand, skip)) in fused.inputs.iter().enumerate() {
        let from = tensor(operands, *operand)?.data_ptr().cast::<u8>().cast_const().wrapping_add(*skip);
        match fused.kernel.misplaced(i, from as usize) {
            None => inputs.push(from),
            Some(bytes) => {
                let mut copy = vec![0u64; bytes.div_ceil(8)];
                // SAFETY: the input's elements lie one after the other in the operand's memory; the copy has room.
                unsafe { std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr().cast(), bytes) };
                inputs.push(copy.as_ptr().cast());
                copies.push(copy);
            }
        }
    }
    let outputs: SmallVec<[*mut u8; 4]> = outputs(fused, &results).collect();
    let mut outcome = Ok(());
    // SAFETY: slots hold tensors of the layouts the graph says, whose memory covers them; views were checked by the
    // recorder to lie within their base, which is the operand. New results overlap nothing; a taken one is an operand
    // nobody else holds, read by the kernel only as it lies, and its result is staged. Results with a slice of a joined
    // value are parts of a tensor that the kernel does not read and nobody else holds, and do not overlap. Numbers are
    // the program's.
    let run = unsafe {
        match &fused.kernel {
            FusedKernel::Flat(kernel) => kernel.run(&outputs, &inputs, numbers, |n, body| {
                outcome = parallel_for(n, kernel.grain(), body);
            }),
            FusedKernel::Rows(kernel) => {
                let parallel = |n, grain, body: &(dyn Fn(Range<usize>) + Sync)| outcome = parallel_for(n, grain, body);
                kernel.run(&outputs, &inputs, numbers, parallel)
            }
        }
    };
    let too_large = |_| TorchError { class: ErrorClass::Runtime, message: "a fused kernel has too many values".into() };
    let ran = run.map_err(too_large)?;
    outcome.map(|()| (results, ran))
}

/// Where results are written.
fn outputs(fused: &FusedKernelStep, results: &[Held]) -> impl Iterator<Item = *mut u8> {
    results.iter().enumerate().map(|(i, r)| match r {
        Held::Tensor(t) => t.data_ptr().cast::<u8>().wrapping_add(concat_slice(fused, i).map_or(0, |p| p.skip)),
        Held::Generator(_) => std::ptr::null_mut(),
    })
}

/// Puts a kernel's launches on the stream of its GPU, which is current on this thread.
fn launch(
    (fused, gpu): (&FusedKernelStep, &GpuKernel),
    place: Place,
    operands: &[&Held],
    results: &[Held],
    (numbers, notes): (&[u64], Option<(&Notes, Range<usize>)>),
) -> Result<(), TorchError> {
    // Without elements there is nothing to launch, and may be no driver yet.
    if gpu.launches.each.is_empty() {
        return Ok(());
    }
    let missing = || TorchError::runtime("a kernel was to be launched before it had code");
    let (driver, functions) = gpu::driver().zip(gpu.functions.get()).ok_or_else(missing)?;
    let outputs: SmallVec<[u64; 4]> = outputs(fused, results).map(|p| p as u64).collect();
    let input = |(operand, skip): &(u32, usize)| Ok(tensor(operands, *operand)?.data_ptr() as u64 + *skip as u64);
    let inputs: SmallVec<[u64; 16]> = fused.inputs.iter().map(input).collect::<Result<_, TorchError>>()?;
    // The scratch memory may be freed when this function returns: later users of it come behind the launches on the
    // stream.
    let scratch = match gpu.launches.scratch_bytes {
        0 => None,
        bytes => Some(empty_at(place, &Layout::contiguous(DType::U8, &[bytes as i64]))?),
    };
    let scratch = scratch.as_ref().map_or(0, |memory| memory.data_ptr() as u64);
    let memory = Operands { outputs: &outputs, inputs: &inputs, numbers, scratch };
    let stream = place.stream();
    for (launch, function) in gpu.launches.each.iter().zip(functions) {
        // SAFETY: the function is the launch's, in the context of the place, as is its stream. Operands are as for
        // kernels on the host, and lie on this GPU: they are values of a program that runs there. libtorch gives memory
        // to others in the order of the stream, so it stays until the launch has run.
        let launched = unsafe { driver.launch(*function, launch, memory, stream) };
        launched.map_err(failed_launch)?;
        if let Some((notes, numbers)) = &notes {
            notes.launched((*function, launch), memory, stream, numbers.clone());
        }
    }
    Ok(())
}

/// The tensors a kernel writes: new ones, or operands whose memory it takes.
fn memory_of_results<'a>(
    (fused, place): (&FusedKernelStep, Place),
    operands: &[&Held],
    reusable: &[bool],
    layouts: impl Iterator<Item = &'a LayoutRef>,
) -> Result<SmallVec<[Held; 2]>, TorchError> {
    let mut results: SmallVec<[Held; 2]> = SmallVec::new();
    for (r, (layout, reuse)) in layouts.zip(&fused.reuse).enumerate() {
        if let Some(at) = concat_slice(fused, r) {
            let earlier = (0..r).find(|&e| concat_slice(fused, e).is_some_and(|p| p.operand == at.operand));
            let base = tensor(operands, at.operand)?;
            results.push(match earlier.and_then(|e| results.get(e)) {
                Some(Held::Tensor(t)) => Held::Tensor(t.shallow_clone()),
                _ if reusable[at.operand as usize] && is_sole_holder(base) => Held::Tensor(base.shallow_clone()),
                _ => Held::Tensor(copy_of(place, base, layout)?),
            });
            continue;
        }
        let taken = match reuse {
            Some(i) if reusable[*i as usize] => {
                let even = |t: &&Tensor| (t.data_ptr() as usize).is_multiple_of(layout.dtype().size_of());
                Some(tensor(operands, *i)?).filter(is_sole_holder).filter(even).map(Tensor::shallow_clone)
            }
            _ => None,
        };
        let result = taken.map_or_else(|| empty_at(place, layout), Ok)?;
        results.push(Held::Tensor(result));
    }
    Ok(results)
}

/// A copy of a tensor with this layout.
fn copy_of(place: Place, base: &Tensor, layout: &LayoutRef) -> Result<Tensor, TorchError> {
    let mut copy = empty_at(place, layout)?;
    copy.copy_from(base)?;
    Ok(copy)
}

/// Draws ones of probability `p` and zeros; results are the numbers and the generator's next state.
pub(crate) fn run_bernoulli(
    p: f64,
    generator: &Held,
    results: &[InstrResult],
) -> Result<SmallVec<[Held; 2]>, TorchError> {
    let wrong = || TorchError { class: ErrorClass::Runtime, message: "a draw takes a generator and yields two".into() };
    let (Held::Generator(generator), [numbers, _]) = (generator, results) else { return Err(wrong()) };
    let (tensor, mut next) = (empty_at(Place::Cpu, &numbers.layout)?, generator.deep_clone()?);
    let mut engine = next.engine()?;
    let count = numbers.layout.numel() as usize;
    if count > 0 {
        // SAFETY: the tensor is new and contiguous, of this many single-precision numbers.
        let out = unsafe { std::slice::from_raw_parts_mut(tensor.data_ptr().cast::<f32>(), count) };
        let (state, next, left) = (&mut engine.state, &mut engine.next, &mut engine.left);
        bernoulli(Mt19937 { state, next, left }, p, [0.0, 1.0], out);
    }
    next.set_engine(&engine)?;
    Ok(SmallVec::from_iter([Held::Tensor(tensor), Held::Generator(next)]))
}

/// Runs a max pooling on its operand; results are maxima and positions.
pub(crate) fn run_pool(
    pool: &MaxPool,
    operand: &Held,
    results: &[InstrResult],
) -> Result<SmallVec<[Held; 2]>, TorchError> {
    let wrong = || TorchError { class: ErrorClass::Runtime, message: "a pooling takes a tensor and yields two".into() };
    let (Held::Tensor(input), [values, positions]) = (operand, results) else { return Err(wrong()) };
    let (values, positions) = (empty_at(Place::Cpu, &values.layout)?, empty_at(Place::Cpu, &positions.layout)?);
    // The kernel reads aligned numbers only.
    let even = (input.data_ptr() as usize).is_multiple_of(4);
    let input = if even { input.shallow_clone() } else { input.contiguous_copy()? };
    let mut outcome = Ok(());
    // SAFETY: the pooling was made for the operand's and results' layouts, which are contiguous; the results are new.
    unsafe {
        let out = (values.data_ptr().cast(), positions.data_ptr().cast());
        pool.run(input.data_ptr().cast::<f32>(), out.0, out.1, |n, body| outcome = parallel_for(n, pool.grain(), body));
    }
    outcome.map(|()| SmallVec::from_iter([Held::Tensor(values), Held::Tensor(positions)]))
}
