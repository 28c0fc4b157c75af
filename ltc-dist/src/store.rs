//! Where processes find each other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ltc_torch_sys as sys;

use crate::Error;

/// How long ranks wait for each other where nothing else is said: as long as `torch.distributed` lets them.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// A store of keys and values that all processes reach by TCP: `torch.distributed.TCPStore`. Groups are made with one
/// and keep it; clones are the same store. It is served by one process, and gone with that.
#[derive(Clone, Debug)]
pub struct Store {
    keys: Arc<Keys>,
}

#[derive(Debug)]
struct Keys {
    store: sys::Store,
    /// How many groups were begun with it: each has keys of its own.
    groups: AtomicU64,
}

impl Store {
    /// The store at `address` (`host:port`), which rank 0 serves. It waits for all `world` processes to come, the
    /// others for it, and each at most `timeout` (a year, where that is longer). Port 0 lets the system choose one,
    /// which [`Store::port`] tells.
    ///
    /// # Errors
    /// [`Error::Call`] where the address has no port, or there is no such rank; [`Error::Torch`] where the address is
    /// in use or cannot be reached, and where a process does not come.
    pub fn tcp(address: &str, rank: usize, world: usize, timeout: Duration) -> Result<Store, Error> {
        check_rank(rank, world)?;
        let (host, port) = split(address)?;
        Store::open(host, port, rank == 0, world, timeout)
    }

    pub(crate) fn open(host: &str, port: u16, serves: bool, world: usize, timeout: Duration) -> Result<Store, Error> {
        Ok(Store::of(sys::Store::tcp(host, port, serves, world, timeout)?))
    }

    fn of(store: sys::Store) -> Store {
        Store { keys: Arc::new(Keys { store, groups: AtomicU64::new(0) }) }
    }

    /// The port at which it is served.
    pub fn port(&self) -> u16 {
        self.keys.store.port()
    }

    /// The part of it whose keys begin with this.
    pub(crate) fn part(&self, prefix: &str) -> Result<Store, Error> {
        Ok(Store::of(self.keys.store.part(prefix)?))
    }

    /// Keys that no other group of this store has. All ranks make their groups in the same order.
    pub(crate) fn for_next_group(&self) -> Result<sys::Store, Error> {
        let number = self.keys.groups.fetch_add(1, Ordering::Relaxed);
        Ok(self.keys.store.part(&format!("group/{number}"))?)
    }
}

/// Host and port of an address; an IPv6 address may be in brackets.
fn split(address: &str) -> Result<(&str, u16), Error> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parts.ok_or_else(|| Error::Call(format!("{address:?} is no address: expected host:port")))?;
    Ok((host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port))
}

pub(crate) fn check_rank(rank: usize, world: usize) -> Result<(), Error> {
    if rank < world {
        return Ok(());
    }
    Err(Error::Call(format!("there is no rank {rank} among {world}: ranks count from 0")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        assert_eq!(split("first.example:29500").unwrap(), ("first.example", 29500));
        assert_eq!(split("[::1]:1").unwrap(), ("::1", 1));
        for bad in ["first.example", "first.example:", "first.example:65536", ""] {
            assert!(split(bad).unwrap_err().to_string().contains("expected host:port"), "{bad}");
        }
    }

    #[test]
    fn a_rank_is_one_of_the_world() {
        assert!(check_rank(1, 2).is_ok());
        assert!(check_rank(2, 2).is_err());
        assert!(check_rank(0, 0).is_err());
    }
}
