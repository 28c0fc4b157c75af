//! Data parallelism: ranks begin with the same parameters, and keep them the same.

use ltc_torch_sys::{grad_of, set_grad};
use tch::Tensor;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    Error, Group, Op, Parameters,
    agreement::{same_everywhere, structure_of},
    arguments::{check_op, kind_of},
    buckets::{buckets, change},
};

/// How many bytes of gradients travel together: 25 MiB, as `DistributedDataParallel`'s `bucket_cap_mb` has it.
pub const BUCKET_BYTES: usize = 25 << 20;

/// Makes each gradient the average of those of all ranks: called after `backward` and before the optimiser's step. Each
/// rank's loss is the mean over as many examples; then a step is that of one process with the examples of all.
///
/// Gradients of tensors that require them are taken in buckets of [`BUCKET_BYTES`], the last ones first, as `backward`
/// makes those first. Each bucket is summed over all ranks and divided by their number, in the gradients' own dtype. On
/// `ltc` all of that is recorded.
///
/// Ranks first compare, by one collective of 32 bytes on the CPU, whether they have parameters of the same shapes,
/// dtypes and devices, and gradients of the same ones. A tensor that has a gradient in some ranks only counts as zeros
/// in the others, and has one afterwards; one without a gradient in all ranks stays without. So does
/// `DistributedDataParallel` with `find_unused_parameters`.
///
/// # Errors
/// [`Error::Disagreement`], in all ranks, where their parameters differ or one of them failed here. [`Error::Call`],
/// naming it, for a gradient that is sparse or not of floating point numbers that gloo carries. [`Error::Collective`]
/// as [`Group::all_reduce`].
pub fn average_gradients(parameters: &(impl Parameters + ?Sized), group: &Group) -> Result<(), Error> {
    average_gradients_in(parameters, group, BUCKET_BYTES)
}

/// As [`average_gradients`], in buckets of at most this many bytes, the same in all ranks; a larger gradient is alone
/// in its bucket.
///
/// # Errors
/// As [`average_gradients`].
pub fn average_gradients_in(
    parameters: &(impl Parameters + ?Sized),
    group: &Group,
    bucket_bytes: usize,
) -> Result<(), Error> {
    let trained: Vec<(String, Tensor)> = parameters.named().into_iter().filter(|(_, t)| t.requires_grad()).collect();
    let present: Vec<u8> = trained.iter().map(|(_, t)| u8::from(grad_of(t).is_some())).collect();
    let checked = trained.iter().try_for_each(|(name, t)| check_gradient(name, t));
    let [_, gradients_agree] = agree(group, &trained, checked, bucket_bytes as u64, xxh3_64(&present))?;
    tch::no_grad(|| {
        if !gradients_agree {
            fill_in(group, &trained, &present)?;
        }
        let gradients = trained.iter().rev().filter_map(|(_, t)| grad_of(t).map(Tensor::from));
        for bucket in buckets(gradients, bucket_bytes)? {
            change(&bucket, |flat| group.all_reduce(flat, Op::Average))?;
        }
        Ok(())
    })
}

/// Gives all ranks the tensors of rank 0, trained or not: called once before training. In buckets, as gradients are.
///
/// # Errors
/// [`Error::Disagreement`], in all ranks, where their parameters differ in number, shape, dtype or device, or one of
/// them failed here. [`Error::Call`], naming it, for a tensor that gloo does not carry. [`Error::Collective`] as
/// [`Group::broadcast`].
pub fn broadcast_parameters(parameters: &(impl Parameters + ?Sized), group: &Group) -> Result<(), Error> {
    let all = parameters.named();
    let checked = all.iter().try_for_each(|(name, t)| check_dense(name, t).and_then(|()| kind_of(name, t).map(drop)));
    agree(group, &all, checked, 0, 0)?;
    tch::no_grad(|| {
        for bucket in buckets(all.iter().map(|(_, t)| t.shallow_clone()), BUCKET_BYTES)? {
            change(&bucket, |flat| group.broadcast(flat, 0))?;
        }
        Ok(())
    })
}

fn check_dense(name: &str, tensor: &Tensor) -> Result<(), Error> {
    if tensor.defined() && tensor.is_sparse() {
        return Err(Error::Call(format!("{name} is sparse: gloo's collectives here take dense tensors")));
    }
    Ok(())
}

fn check_gradient(name: &str, parameter: &Tensor) -> Result<(), Error> {
    let Some(gradient) = grad_of(parameter).map(Tensor::from) else { return Ok(()) };
    let name = format!("the gradient of {name}");
    check_dense(&name, &gradient)?;
    check_op(&name, &gradient, Op::Average)
}

/// Whether all ranks have tensors of the same structure, which is an error otherwise, and the same `state`. A rank
/// whose own checks failed tells the others, who would wait for it.
fn agree(
    group: &Group,
    tensors: &[(String, Tensor)],
    checked: Result<(), Error>,
    setting: u64,
    state: u64,
) -> Result<[bool; 2], Error> {
    /// No structure has this number, but by a chance that can be neglected.
    const FAILED: u64 = 0;
    let structure = checked.and_then(|()| structure_of(tensors.iter().map(|(_, t)| t)));
    let number = structure.as_ref().map_or(FAILED, |hash| hash ^ setting.rotate_left(32));
    let agreed = same_everywhere(group, [number, state])?;
    structure?;
    if agreed[0] {
        return Ok(agreed);
    }
    let mine: Vec<String> = tensors.iter().map(|(name, t)| format!("{name} {:?}", t.size())).collect();
    Err(Error::Disagreement(format!(
        "the ranks' parameters or bucket sizes differ, or another rank failed; rank {} has {}",
        group.rank(),
        mine.join(", ")
    )))
}

/// Gives a gradient of zeros to what has none here and one in another rank.
fn fill_in(group: &Group, trained: &[(String, Tensor)], present: &[u8]) -> Result<(), Error> {
    let anywhere = Tensor::from_slice(present);
    group.all_reduce(&anywhere, Op::Max)?;
    let anywhere = Vec::<u8>::try_from(&anywhere)?;
    for ((_, parameter), (here, anywhere)) in trained.iter().zip(present.iter().zip(anywhere)) {
        if anywhere > *here {
            set_grad(parameter, Some(&parameter.f_zeros_like()?.into()))?;
        }
    }
    Ok(())
}
