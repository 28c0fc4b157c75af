//! A session owns everything: there are no globals.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, OnceLock},
};

use ltc_backend::{Backend, BackendError, Capacity, DeviceIndex, MemoryInfo, MemoryReset};
use ltc_ir::{FallbackReason, Graph};

use crate::{
    cache::Cache,
    config::Config,
    device::{self, Device},
    error::Error,
    event::Event,
    lock::{Lock, Locked},
    metrics::Metrics,
    runtime::{FailureHook, Interrupt, Runtime, SiteResolver},
    shape_family::ShapeFamilies,
    sync::{
        RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// A backend with its devices, cache, metrics and events.
pub struct Session {
    runtime: Arc<Runtime>,
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
        let runtime = Arc::new(Runtime {
            backend,
            cache: Lock::new(Cache::new(config.cache_entries, config.cache_bytes)),
            families: Lock::new(ShapeFamilies::new(config.cache_entries)),
            reuse_nodes: AtomicBool::new(config.reuse_nodes),
            config,
            counters: Arc::default(),
            events: Arc::default(),
            resolver: RwLock::new(None),
            interrupt: OnceLock::new(),
            failure_hook: OnceLock::new(),
        });
        let devices = (0..count).map(|i| Device::new(runtime.clone(), DeviceIndex(i as u16))).collect();
        Ok(Session { runtime, devices })
    }

    /// A device by index.
    ///
    /// # Errors
    /// Fails for a device that there is not.
    pub fn device(&self, index: u16) -> Result<&Device, Error> {
        self.devices.get(usize::from(index)).ok_or_else(|| {
            let backend = self.runtime.backend.name().to_owned();
            BackendError::NoSuchDevice { index, backend, count: self.devices.len() }.into()
        })
    }

    /// All devices.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.runtime.config
    }

    /// A snapshot of counters and timings.
    pub fn metrics(&self) -> Metrics {
        self.runtime.counters.snapshot()
    }

    /// Sets counters and timings to zero.
    pub fn reset_metrics(&self) {
        self.runtime.counters.reset();
    }

    /// Whether steps from the next sync on are recorded into the nodes of the one before ([`Config::reuse_nodes`] to
    /// begin with).
    pub fn set_reuse_nodes(&self, on: bool) {
        self.runtime.reuse_nodes.store(on, Relaxed);
    }

    /// Starts (with an empty log) or stops keeping events.
    pub fn record_events(&self, on: bool) {
        self.runtime.events.switch(on);
    }

    /// Takes the events kept so far, oldest first.
    pub fn take_events(&self) -> Vec<Event> {
        self.runtime.events.drain()
    }

    /// Who knows where sites are.
    pub fn set_site_resolver(&self, resolver: Arc<dyn SiteResolver>) {
        *self.runtime.resolver.write() = Some(resolver);
    }

    /// Lets waits be given up, with [`Error::Interrupted`]: this is asked while one lasts. Programs that take long then
    /// run beside their caller, who could not be interrupted in them. Once only.
    pub fn set_interrupt(&self, interrupt: Interrupt) {
        let _ = self.runtime.interrupt.set(interrupt);
    }

    /// Calls this whenever somebody is told that a program failed: what only the failed call made may be let go then.
    /// Once only.
    pub fn set_failure_hook(&self, hook: FailureHook) {
        let _ = self.runtime.failure_hook.set(hook);
    }

    /// Waits until nothing is in flight, and takes what other threads could hold: for the time of a fork.
    pub fn hold(&self) -> HeldSession<'_> {
        let runtime = &self.runtime;
        HeldSession {
            devices: self.devices.iter().map(Device::hold).collect(),
            _shared: (
                runtime.cache.lock(),
                runtime.families.lock(),
                runtime.counters.fallbacks.lock(),
                runtime.events.hold(),
            ),
        }
    }

    /// How many programs the cache holds.
    pub fn cached_programs(&self) -> usize {
        self.runtime.cache.lock().len()
    }

    /// Graphs of the programs in the cache, least recently used first.
    pub fn cached_graphs(&self) -> Vec<Arc<Graph>> {
        self.runtime.cache.lock().graphs()
    }

    /// What programs that serve many sizes assume, in their text form ([`ltc_ir::Symbolic`]), most recent skeleton
    /// last.
    pub fn symbolic_graphs(&self) -> Vec<String> {
        self.runtime.families.lock().texts()
    }

    /// Forgets all programs.
    pub fn clear_cache(&self) {
        self.runtime.cache.lock().clear();
        self.runtime.families.lock().clear();
    }

    /// Memory of a device.
    pub fn memory(&self, index: u16) -> MemoryInfo {
        self.runtime.backend.memory(DeviceIndex(index))
    }

    /// Has numbers of [`Session::memory`] begin anew.
    pub fn reset_memory(&self, index: u16, what: MemoryReset) {
        self.runtime.backend.reset_memory(DeviceIndex(index), what);
    }

    /// How much memory a device has; `None` where the backend cannot tell.
    pub fn capacity(&self, index: u16) -> Option<Capacity> {
        self.runtime.backend.capacity(DeviceIndex(index))
    }

    /// What a device is, for people to read.
    pub fn device_name(&self, index: u16) -> String {
        self.runtime.backend.device_name(DeviceIndex(index))
    }
}

type Guards<'a> = (
    Locked<'a, Cache>,
    Locked<'a, ShapeFamilies>,
    Locked<'a, BTreeMap<(String, FallbackReason), u64>>,
    Locked<'a, VecDeque<Event>>,
);

/// A session that only this thread can use, with nothing in flight.
pub struct HeldSession<'a> {
    devices: Vec<device::HeldDevice<'a>>,
    _shared: Guards<'a>,
}

impl HeldSession<'_> {
    /// In a forked child, which has this thread and no other: executors start new ones.
    pub fn begin_anew(&mut self) {
        self.devices.iter_mut().for_each(device::HeldDevice::begin_anew);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("backend", &self.runtime.backend.name())
            .field("devices", &self.devices)
            .finish()
    }
}
