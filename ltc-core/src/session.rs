//! A session owns everything: there are no globals.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, OnceLock},
};

use ltc_backend::{Backend, BackendError, DeviceIndex, MemoryInfo};
use ltc_ir::{FallbackReason, Graph, SiteId};

use crate::{
    cache::Cache,
    config::Config,
    device::{self, Device},
    error::Error,
    event::{Event, EventLog},
    lock::{Lock, Locked},
    metrics::{Counters, Metrics},
    shape_family::ShapeFamilies,
    sync::{
        RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Tells people where a site is: file, line, function.
pub trait SiteResolver: Send + Sync {
    /// The site in words; `None` when it is unknown, as the default one is.
    fn describe(&self, site: SiteId) -> Option<String>;

    /// What errors say of where an operation of an unknown site was recorded; nothing if `None`.
    fn unknown(&self) -> Option<String> {
        None
    }
}

/// What devices share.
pub(crate) struct Inner {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) config: Config,
    pub(crate) cache: Lock<Cache>,
    pub(crate) families: Lock<ShapeFamilies>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) events: Arc<EventLog>,
    pub(crate) reuse_nodes: AtomicBool,
    resolver: RwLock<Option<Arc<dyn SiteResolver>>>,
    interrupt: OnceLock<Interrupt>,
}

/// Asked about every 50 ms by a thread that waits: whether it shall give up.
pub type Interrupt = fn() -> bool;

impl Inner {
    /// Whether waits may be given up.
    pub(crate) fn interrupts(&self) -> bool {
        self.interrupt.get().is_some()
    }

    /// Whether the wait in progress is to be given up.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.get().is_some_and(|interrupted| interrupted())
    }

    pub(crate) fn describe_site(&self, site: SiteId) -> Option<String> {
        if site == SiteId::default() {
            return None;
        }
        let resolver = self.resolver.read().clone();
        resolver.and_then(|r| r.describe(site))
    }

    /// What an error says of where its operation was recorded.
    pub(crate) fn describe_origin(&self, site: SiteId) -> Option<String> {
        self.describe_site(site).or_else(|| self.resolver.read().clone()?.unknown())
    }
}

/// A backend with its devices, cache, metrics and events.
pub struct Session {
    inner: Arc<Inner>,
    devices: Vec<Device>,
}

impl Session {
    /// A session over a backend.
    ///
    /// # Errors
    /// Fails where the backend has no device.
    pub fn new(backend: Arc<dyn Backend>, config: Config) -> Result<Session, Error> {
        let count = backend.device_count();
        if count == 0 {
            let backend = backend.name().to_owned();
            return Err(BackendError::NoSuchDevice { index: 0, backend, count }.into());
        }
        let inner = Arc::new(Inner {
            backend,
            cache: Lock::new(Cache::new(config.cache_entries, config.cache_bytes)),
            families: Lock::new(ShapeFamilies::new(config.cache_entries)),
            reuse_nodes: AtomicBool::new(config.reuse_nodes),
            config,
            counters: Arc::default(),
            events: Arc::default(),
            resolver: RwLock::new(None),
            interrupt: OnceLock::new(),
        });
        let devices = (0..count).map(|i| Device::new(inner.clone(), DeviceIndex(i as u16))).collect();
        Ok(Session { inner, devices })
    }

    /// A device by index.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    pub fn device(&self, index: u16) -> Result<&Device, Error> {
        self.devices.get(usize::from(index)).ok_or_else(|| {
            let backend = self.inner.backend.name().to_owned();
            BackendError::NoSuchDevice { index, backend, count: self.devices.len() }.into()
        })
    }

    /// All devices.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// A snapshot of counters and timings.
    pub fn metrics(&self) -> Metrics {
        self.inner.counters.snapshot()
    }

    /// Sets counters and timings to zero.
    pub fn reset_metrics(&self) {
        self.inner.counters.reset();
    }

    /// Whether steps from the next sync on are recorded into the nodes of the one before ([`Config::reuse_nodes`] to
    /// begin with).
    pub fn set_reuse_nodes(&self, on: bool) {
        self.inner.reuse_nodes.store(on, Relaxed);
    }

    /// Starts (with an empty log) or stops keeping events.
    pub fn record_events(&self, on: bool) {
        self.inner.events.switch(on);
    }

    /// Takes the events kept so far, oldest first.
    pub fn take_events(&self) -> Vec<Event> {
        self.inner.events.drain()
    }

    /// Who knows where sites are.
    pub fn set_site_resolver(&self, resolver: Arc<dyn SiteResolver>) {
        *self.inner.resolver.write() = Some(resolver);
    }

    /// Lets waits be given up, with [`Error::Interrupted`]: this is asked while one lasts. Programs that take long then
    /// run beside their caller, who could not be interrupted in them. Once only.
    pub fn set_interrupt(&self, interrupt: Interrupt) {
        let _ = self.inner.interrupt.set(interrupt);
    }

    /// Waits until nothing is in flight, and takes what other threads could hold: for the time of a fork.
    pub fn hold(&self) -> Held<'_> {
        let inner = &self.inner;
        Held {
            devices: self.devices.iter().map(Device::hold).collect(),
            _shared: (inner.cache.lock(), inner.families.lock(), inner.counters.fallbacks.lock(), inner.events.hold()),
        }
    }

    /// How many programs the cache holds.
    pub fn cached_programs(&self) -> usize {
        self.inner.cache.lock().len()
    }

    /// Graphs of the programs in the cache, least recently used first.
    pub fn cached_graphs(&self) -> Vec<Arc<Graph>> {
        self.inner.cache.lock().graphs()
    }

    /// What programs that serve many sizes assume, in their text form ([`ltc_ir::Symbolic`]), most recent skeleton
    /// last.
    pub fn symbolic_graphs(&self) -> Vec<String> {
        self.inner.families.lock().texts()
    }

    /// Forgets all programs.
    pub fn clear_cache(&self) {
        self.inner.cache.lock().clear();
        self.inner.families.lock().clear();
    }

    /// Memory of a device.
    pub fn memory(&self, index: u16) -> MemoryInfo {
        self.inner.backend.memory(DeviceIndex(index))
    }
}

type Guards<'a> = (
    Locked<'a, Cache>,
    Locked<'a, ShapeFamilies>,
    Locked<'a, BTreeMap<(String, FallbackReason), u64>>,
    Locked<'a, VecDeque<Event>>,
);

/// A session that only this thread can use, with nothing in flight.
pub struct Held<'a> {
    devices: Vec<device::Held<'a>>,
    _shared: Guards<'a>,
}

impl Held<'_> {
    /// In a forked child, which has this thread and no other: executors start new ones.
    pub fn begin_anew(&mut self) {
        self.devices.iter_mut().for_each(device::Held::begin_anew);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("backend", &self.inner.backend.name()).field("devices", &self.devices).finish()
    }
}
