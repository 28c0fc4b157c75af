//! A group of processes and its collectives.

use std::{
    env,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use ltc_torch_sys as sys;
use tch::Tensor;

use crate::{
    DEFAULT_TIMEOUT, Error, Op, Store,
    arguments::{check_op, kind_of},
    launch::Launch,
    store::check_rank,
};

/// Processes that combine their tensors: `torch.distributed`'s process group, with an engine of gloo for CPU tensors
/// and one for `ltc` tensors.
///
/// Collectives follow `torch.distributed`'s of their names. They take dense tensors of any strides, of bytes (`Uint8`,
/// `Int8`), `Int`, `Int64`, `Half`, `BFloat16`, `Float`, `Double` and `Bool`, and no gradients flow through them.
/// Shapes and dtypes are the same in all ranks. Each fails as [`Error::Call`] where an argument is wrong, and as
/// [`Error::Collective`] where another rank ended or was silent for the group's timeout; for `ltc` tensors the latter
/// is libtorch's error of the read or wait that finds it.
///
/// Dropping a group waits for collectives that are recorded, as others wait for them, and tells nobody what went wrong;
/// [`Group::close`] does.
#[derive(Debug)]
pub struct Group {
    group: sys::ProcessGroup,
    store: Store,
    rank: usize,
    world: usize,
}

impl Group {
    /// The group of the `world` processes that call this with one store. All ranks make their groups in the same order.
    /// They wait for each other here, and in each collective, at most `timeout` (a year, where that is longer).
    ///
    /// The engines listen on the interfaces that `GLOO_SOCKET_IFNAME` names, or where this machine's name leads to.
    ///
    /// # Errors
    /// [`Error::Call`] where there is no such rank; [`Error::Torch`] where a rank does not come.
    pub fn gloo(store: &Store, rank: usize, world: usize, timeout: Duration) -> Result<Group, Error> {
        check_rank(rank, world)?;
        let group = sys::ProcessGroup::gloo(&store.for_next_group()?, rank, world, timeout)?;
        Ok(Group { group, store: store.clone(), rank, world })
    }

    /// The group of all processes that `torchrun --no-python` started, or somebody did by hand: by the variables
    /// `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`, as `init_process_group("env://")` has it. Once per
    /// process; further groups are made with [`Group::store`].
    ///
    /// # Errors
    /// [`Error::Environment`] where one of them is missing or makes no sense; else as [`Store::tcp`] and
    /// [`Group::gloo`].
    pub fn from_env() -> Result<Group, Error> {
        Group::from_env_within(DEFAULT_TIMEOUT)
    }

    /// As [`Group::from_env`], with a timeout of its own.
    ///
    /// # Errors
    /// As [`Group::from_env`].
    pub fn from_env_within(timeout: Duration) -> Result<Group, Error> {
        static MADE: AtomicBool = AtomicBool::new(false);
        let launch = Launch::read(|name| env::var(name).ok())?;
        // A second one would meet the first one's keys, or its server.
        if MADE.swap(true, Ordering::Relaxed) {
            let how = "a process joins the group of its environment once: make others with Group::gloo and its store()";
            return Err(Error::Call(how.to_owned()));
        }
        let store = Store::open(&launch.host, launch.port, launch.serves, launch.world, timeout)?;
        let store = store.part(&format!("ltc_dist/attempt/{}", launch.attempt))?;
        Group::gloo(&store, launch.rank, launch.world, timeout)
    }

    /// This process's number, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.world
    }

    /// Where they found each other.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Writes over `tensor` what it and those of the other ranks become, element by element; all ranks get the same.
    ///
    /// # Errors
    /// As all collectives ([`Group`]); [`Error::Call`] also for the average of whole numbers, the sum of bools, and
    /// bits of floating point numbers.
    pub fn all_reduce(&self, tensor: &Tensor, op: Op) -> Result<(), Error> {
        check_op("all_reduce", tensor, op)?;
        self.group.all_reduce(tensor, op).map_err(Error::of("c10d::allreduce_"))
    }

    /// Writes over `tensor` what rank `root`'s holds.
    ///
    /// # Errors
    /// As all collectives ([`Group`]); [`Error::Call`] also where there is no rank `root`.
    pub fn broadcast(&self, tensor: &Tensor, root: usize) -> Result<(), Error> {
        check_rank(root, self.world)?;
        kind_of("broadcast", tensor)?;
        self.group.broadcast(tensor, root).map_err(Error::of("c10d::broadcast_"))
    }

    /// The tensors of all ranks, stacked in the order of ranks: for a shape `[a, b]` one of `[size, a, b]`
    /// (`all_gather_into_tensor`).
    ///
    /// # Errors
    /// As all collectives ([`Group`]).
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Tensor, Error> {
        kind_of("all_gather", tensor)?;
        let all = self.group.all_gather(tensor).map_err(Error::of("c10d::_allgather_base_"))?;
        Ok(all.into())
    }

    /// This rank's part of what [`Group::all_reduce`] would give, along the first dimension: for a shape `[a, b]` one
    /// of `[a / size, b]` (`reduce_scatter_tensor`). `tensor` stays as it is.
    ///
    /// # Errors
    /// As [`Group::all_reduce`]; [`Error::Call`] also where the first dimension is not divisible by the number of
    /// ranks.
    pub fn reduce_scatter(&self, tensor: &Tensor, op: Op) -> Result<Tensor, Error> {
        check_op("reduce_scatter", tensor, op)?;
        let size = tensor.size();
        if !size.first().is_some_and(|rows| (*rows as usize).is_multiple_of(self.world)) {
            let why = format!("the first dimension is not divisible by {} ranks", self.world);
            return Err(Error::Call(format!("reduce_scatter of {size:?}: {why}")));
        }
        let part = self.group.reduce_scatter(tensor, op).map_err(Error::of("c10d::_reduce_scatter_base_"))?;
        Ok(part.into())
    }

    /// Sends what is recorded on all `ltc` devices and waits for it, then for all ranks to come here.
    ///
    /// # Errors
    /// As all collectives ([`Group`]); and what a program failed with, where nobody was told yet.
    pub fn barrier(&self) -> Result<(), Error> {
        self.group.barrier().map_err(Error::of("c10d::barrier"))
    }

    /// Ends this rank's part: sends what is recorded on all `ltc` devices and waits for it.
    ///
    /// # Errors
    /// What a program failed with, where nobody was told yet.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.group.wait()?)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Where a thread panics, others learn that this rank ends from the connection that does.
        if !thread::panicking() {
            // Who wants to know how it went closes the group.
            let _ = self.group.wait();
        }
    }
}
