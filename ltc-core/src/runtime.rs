//! What the devices of a session share: backend, configuration, programs, counters and events.

use std::sync::{Arc, OnceLock};

use ltc_backend::Backend;
use ltc_ir::SiteId;

use crate::{
    cache::Cache,
    config::Config,
    event::EventLog,
    lock::Lock,
    metrics::Counters,
    shape_family::ShapeFamilies,
    sync::{RwLock, atomic::AtomicBool},
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

/// What the devices of a session share.
pub(crate) struct Runtime {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) config: Config,
    pub(crate) cache: Lock<Cache>,
    pub(crate) families: Lock<ShapeFamilies>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) events: Arc<EventLog>,
    pub(crate) reuse_nodes: AtomicBool,
    pub(crate) resolver: RwLock<Option<Arc<dyn SiteResolver>>>,
    pub(crate) interrupt: OnceLock<Interrupt>,
    pub(crate) failure_hook: OnceLock<FailureHook>,
}

/// Asked about every 50 ms by a thread that waits: whether it shall give up.
pub type Interrupt = fn() -> bool;

/// Called on a thread that is told of a failure, just before it is.
pub type FailureHook = fn();

impl Runtime {
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
