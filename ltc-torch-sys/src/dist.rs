//! Groups of processes for programs without Python: c10d's TCP store and its process group over gloo (the feature
//! `dist`). `ltc-dist` is their face.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr::NonNull,
    time::Duration,
};

use crate::{
    error::{ErrorSlot, TorchError},
    ffi::LtcError,
    handle::{AsTensor, Tensor, raw},
};

#[repr(C)]
struct LtcStore {
    _private: [u8; 0],
}

#[repr(C)]
struct LtcGroup {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn ltc_store_tcp(
        host: *const c_char,
        port: u16,
        serves: c_int,
        world: i32,
        timeout_ms: i64,
        out: *mut *mut LtcStore,
        err: *mut LtcError,
    ) -> c_int;
    fn ltc_store_part(
        whole: *const LtcStore,
        prefix: *const c_char,
        out: *mut *mut LtcStore,
        err: *mut LtcError,
    ) -> c_int;
    fn ltc_store_port(store: *const LtcStore) -> u16;
    fn ltc_store_free(store: *mut LtcStore);
    fn ltc_group_gloo(
        at: *const LtcStore,
        rank: i32,
        world: i32,
        timeout_ms: i64,
        out: *mut *mut LtcGroup,
        err: *mut LtcError,
    ) -> c_int;
    fn ltc_group_free(group: *mut LtcGroup);
    fn ltc_group_wait(err: *mut LtcError) -> c_int;
    fn ltc_group_all_reduce(group: *const LtcGroup, tensor: *const c_void, op: i32, err: *mut LtcError) -> c_int;
    fn ltc_group_broadcast(group: *const LtcGroup, tensor: *const c_void, root: i32, err: *mut LtcError) -> c_int;
    fn ltc_group_all_gather(
        group: *const LtcGroup,
        tensor: *const c_void,
        out: *mut *mut c_void,
        err: *mut LtcError,
    ) -> c_int;
    fn ltc_group_reduce_scatter(
        group: *const LtcGroup,
        tensor: *const c_void,
        op: i32,
        out: *mut *mut c_void,
        err: *mut LtcError,
    ) -> c_int;
    fn ltc_group_barrier(group: *const LtcGroup, err: *mut LtcError) -> c_int;
}

/// How values of several ranks become one: `c10d::ReduceOp`, with its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i32)]
pub enum ReduceOp {
    /// Their sum.
    Sum = 0,
    /// Their sum, divided by the number of ranks; of floating point numbers only.
    Average = 1,
    /// Their product.
    Product = 2,
    /// The least.
    Min = 3,
    /// The greatest.
    Max = 4,
    /// Bits that are set in all; of integers only, as the next two.
    BitAnd = 5,
    /// Bits that are set in any.
    BitOr = 6,
    /// Bits that are set in an odd number of them.
    BitXor = 7,
}

/// Where processes find each other: a `c10d::TCPStore`, or the part of one whose keys have a prefix.
#[derive(Debug)]
pub struct Store(NonNull<LtcStore>);

// SAFETY: holders of a store are counted atomically, and a store belongs to no thread.
unsafe impl Send for Store {}

// SAFETY: c10d's TCP store takes a lock for each exchange with its server; a part of it is a prefix that stays.
unsafe impl Sync for Store {}

/// The longest time that c10d is given: it reckons in nanoseconds, to which longer ones would be too many.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// At least a millisecond, as none at all would be no limit.
fn milliseconds(timeout: Duration) -> i64 {
    timeout.min(LONGEST).as_millis().max(1) as i64
}

fn c_string(text: &str) -> Result<CString, TorchError> {
    CString::new(text).map_err(|_| TorchError::runtime(format!("{text:?} has a zero byte")))
}

fn count(n: usize) -> Result<i32, TorchError> {
    i32::try_from(n).map_err(|_| TorchError::runtime(format!("{n} processes are more than c10d can count")))
}

impl Store {
    /// The store at `host:port`, which this process serves (at a port of the system's choice for 0) or tries to reach.
    /// Whoever serves it waits for `world` processes, at most `timeout`.
    ///
    /// # Errors
    /// What c10d raises: no connection, an address in use, a process that did not come.
    pub fn tcp(host: &str, port: u16, serves: bool, world: usize, timeout: Duration) -> Result<Store, TorchError> {
        let (host, world) = (c_string(host)?, count(world)?);
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: the host is a C string; on success `out` is new and ours.
        unsafe {
            let (serves, timeout) = (c_int::from(serves), milliseconds(timeout));
            err.check(ltc_store_tcp(host.as_ptr(), port, serves, world, timeout, &mut out, err.as_ptr()))?;
            Ok(Store(NonNull::new_unchecked(out)))
        }
    }

    /// The part of a store whose keys begin with this.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn part(&self, prefix: &str) -> Result<Store, TorchError> {
        let prefix = c_string(prefix)?;
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: the store is live, the prefix a C string; on success `out` is new and ours.
        unsafe {
            err.check(ltc_store_part(self.0.as_ptr(), prefix.as_ptr(), &mut out, err.as_ptr()))?;
            Ok(Store(NonNull::new_unchecked(out)))
        }
    }

    /// The port at which it is served.
    pub fn port(&self) -> u16 {
        // SAFETY: a live store.
        unsafe { ltc_store_port(self.0.as_ptr()) }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: owned, freed once.
        unsafe { ltc_store_free(self.0.as_ptr()) }
    }
}

/// A `c10d::ProcessGroup` with an engine of gloo for CPU tensors and one for tensors of the lazy device. The latter's
/// collectives are recorded and run with the program around them; the former's are done when a call returns. Tensors
/// are dense. No gradients flow through collectives.
#[derive(Debug)]
pub struct ProcessGroup(NonNull<LtcGroup>);

// SAFETY: holders of a group are counted atomically, and a group belongs to no thread. Two must not call it at once
// (gloo counts calls without a lock), so it is not `Sync`.
unsafe impl Send for ProcessGroup {}

impl ProcessGroup {
    /// The group of the `world` processes that call this with parts of one store with the same prefix, each with a
    /// rank of its own below `world`. Waits for them.
    ///
    /// # Errors
    /// What c10d and gloo raise: a rank that did not come within `timeout`, an interface that is not there.
    pub fn gloo(store: &Store, rank: usize, world: usize, timeout: Duration) -> Result<ProcessGroup, TorchError> {
        let (rank, world, timeout) = (count(rank)?, count(world)?, milliseconds(timeout));
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: the store is live; on success `out` is new and ours.
        unsafe {
            err.check(ltc_group_gloo(store.0.as_ptr(), rank, world, timeout, &mut out, err.as_ptr()))?;
            Ok(ProcessGroup(NonNull::new_unchecked(out)))
        }
    }

    /// Reduces the tensors of all ranks element by element, and writes the result over this rank's tensor.
    ///
    /// # Errors
    /// What c10d raises; for the lazy device, what it raises before the collective runs.
    pub fn all_reduce(&self, tensor: &impl AsTensor, op: ReduceOp) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: group and tensor are live.
        unsafe { err.check(ltc_group_all_reduce(self.0.as_ptr(), raw(tensor), op as i32, err.as_ptr())) }
    }

    /// Writes the elements of the tensor of rank `root` over this rank's tensor.
    ///
    /// # Errors
    /// As [`ProcessGroup::all_reduce`].
    pub fn broadcast(&self, tensor: &impl AsTensor, root: usize) -> Result<(), TorchError> {
        let (err, root) = (ErrorSlot::new(), count(root)?);
        // SAFETY: group and tensor are live.
        unsafe { err.check(ltc_group_broadcast(self.0.as_ptr(), raw(tensor), root, err.as_ptr())) }
    }

    /// The tensors of all ranks, stacked in their order: one dimension more, of the number of ranks.
    ///
    /// # Errors
    /// As [`ProcessGroup::all_reduce`].
    pub fn all_gather(&self, tensor: &impl AsTensor) -> Result<Tensor, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: group and tensor are live; on success `out` is new and ours.
        unsafe {
            err.check(ltc_group_all_gather(self.0.as_ptr(), raw(tensor), &mut out, err.as_ptr()))?;
            Ok(Tensor::from_raw(out))
        }
    }

    /// This rank's part, along the first dimension, of what [`ProcessGroup::all_reduce`] would give.
    ///
    /// # Errors
    /// As [`ProcessGroup::all_reduce`]; a first dimension that is not divisible by the number of ranks.
    pub fn reduce_scatter(&self, tensor: &impl AsTensor, op: ReduceOp) -> Result<Tensor, TorchError> {
        let (err, mut out) = (ErrorSlot::new(), std::ptr::null_mut());
        // SAFETY: group and tensor are live; on success `out` is new and ours.
        unsafe {
            err.check(ltc_group_reduce_scatter(self.0.as_ptr(), raw(tensor), op as i32, &mut out, err.as_ptr()))?;
            Ok(Tensor::from_raw(out))
        }
    }

    /// Sends all that is recorded and waits for it, then for all ranks to do the same.
    ///
    /// # Errors
    /// What c10d raises, and what a program failed with that nobody was told yet.
    pub fn barrier(&self) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: the group is live.
        unsafe { err.check(ltc_group_barrier(self.0.as_ptr(), err.as_ptr())) }
    }

    /// Sends all that is recorded and waits for it: collectives of this rank are then done.
    ///
    /// # Errors
    /// What a program failed with that nobody was told yet.
    pub fn wait(&self) -> Result<(), TorchError> {
        let err = ErrorSlot::new();
        // SAFETY: the slot is live.
        unsafe { err.check(ltc_group_wait(err.as_ptr())) }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // SAFETY: owned, freed once.
        unsafe { ltc_group_free(self.0.as_ptr()) }
    }
}
