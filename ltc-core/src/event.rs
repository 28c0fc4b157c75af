//! Typed events: the oracle of laziness in tests, the story of a step for people.

use std::{
    collections::VecDeque,
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};

use ltc_ir::{FallbackReason, Hash128};

use crate::lock::{Lock, Locked};

/// Why pending work was sent to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncReason {
    /// The program asked ([`crate::Device::sync`]).
    Explicit,
    /// A value is read.
    Read,
    /// An operator that runs eagerly needs values.
    Fallback,
    /// Too many pending operations.
    NodeLimit,
    /// Pending operations hold too much memory that the program gave up.
    ByteLimit,
    /// Other processes wait for one of them ([`crate::Device::others_wait`]).
    OthersWait,
}

/// Something that happened in a session.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Pending operations were sent.
    Sync {
        /// Why.
        reason: SyncReason,
        /// Operations.
        nodes: usize,
        /// Parameters.
        params: usize,
        /// Parameters whose memory may be reused.
        donated: usize,
        /// Values kept.
        outputs: usize,
    },
    /// The program was there.
    CacheHit {
        /// Structural hash.
        hash: Hash128,
    },
    /// The program had to be compiled.
    Compile {
        /// Structural hash.
        hash: Hash128,
        /// Operations.
        nodes: usize,
    },
    /// A program compiled for other sizes was respecialised to these; counts as a cache hit.
    Respecialise {
        /// Structural hash.
        hash: Hash128,
    },
    /// Programs of a skeleton now serve all sizes that meet these assumptions.
    Symbolic {
        /// Symbols, where they are read, and what must hold ([`ltc_ir::Symbolic::summary`]).
        assumptions: String,
    },
    /// A program for other sizes could not be respecialised: this did not hold. It was compiled.
    Guard {
        /// What.
        failed: String,
    },
    /// A program was handed to the executor.
    Execute {
        /// Structural hash.
        hash: Hash128,
        /// On the caller's thread.
        inline: bool,
    },
    /// Host data became device data.
    Upload {
        /// Size.
        bytes: usize,
    },
    /// Device data was read.
    Download,
    /// An operator ran eagerly.
    Fallback {
        /// Operator.
        op: String,
        /// Why.
        reason: FallbackReason,
    },
    /// An operation failed while a program ran.
    Failed {
        /// Operator.
        op: String,
    },
}

/// One line, without hashes, so that logs of two runs compare equal.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Sync { reason, nodes, params, donated, outputs } => {
                write!(f, "sync ({reason:?}): {nodes} nodes, {params} params, {donated} donated, {outputs} outputs")
            }
            Event::CacheHit { .. } => f.write_str("cache hit"),
            Event::Compile { nodes, .. } => write!(f, "compile: {nodes} nodes"),
            Event::Respecialise { .. } => f.write_str("respecialise"),
            Event::Symbolic { assumptions } => write!(f, "symbolic: {assumptions}"),
            Event::Guard { failed } => write!(f, "guard failed: {failed}"),
            Event::Execute { inline: false, .. } => f.write_str("execute"),
            Event::Execute { inline: true, .. } => f.write_str("execute inline"),
            Event::Upload { bytes } => write!(f, "upload: {bytes} bytes"),
            Event::Download => f.write_str("download"),
            Event::Fallback { op, reason } => write!(f, "fallback: {op} ({})", reason.as_str()),
            Event::Failed { op } => write!(f, "failed: {op}"),
        }
    }
}

/// Keeps the last events while it is switched on.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    on: AtomicBool,
    events: Lock<VecDeque<Event>>,
}

const KEPT: usize = 65_536;

impl EventLog {
    /// Takes what other threads could hold of it.
    pub(crate) fn hold(&self) -> Locked<'_, VecDeque<Event>> {
        self.events.lock()
    }

    pub(crate) fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
        self.events.lock().clear();
    }

    pub(crate) fn push(&self, event: impl FnOnce() -> Event) {
        if self.on.load(Ordering::Relaxed) {
            let mut events = self.events.lock();
            if events.len() == KEPT {
                events.pop_front();
            }
            events.push_back(event());
        }
    }

    pub(crate) fn drain(&self) -> Vec<Event> {
        self.events.lock().drain(..).collect()
    }
}
