//! The tape: what a device has recorded since the last cut, in order, without keeping any of it alive.

use std::sync::Arc;

use ltc_ir::WeakValue;

use crate::{DataCell, TraceValue};

/// Recorded nodes in order. Operands stand before their users, also when several threads record, because a node is on
/// the tape before anyone else can hold it.
#[derive(Debug)]
pub(crate) struct Tape {
    entries: Vec<WeakValue<Arc<DataCell>>>,
    /// Length at which dead entries are swept and the node limit is checked.
    check_at: usize,
    node_limit: usize,
    /// Bytes that came to the device since the last exact count; none of them can be retained more than once.
    potential: usize,
    potential_limit: usize,
    byte_limit: usize,
}

const FIRST_CHECK: usize = 4096;

impl Tape {
    pub(crate) fn new(node_limit: usize, byte_limit: usize) -> Self {
        let check_at = FIRST_CHECK.min(node_limit.max(1));
        Tape { entries: Vec::new(), check_at, node_limit, potential: 0, potential_limit: byte_limit, byte_limit }
    }

    /// Adds a node; true when it is time to look at the limits ([`Tape::over_node_limit`]).
    #[inline]
    pub(crate) fn push(&mut self, value: &TraceValue) -> bool {
        self.entries.push(value.downgrade());
        self.entries.len() >= self.check_at
    }

    /// Sweeps dead entries; whether more than the limit are alive and pending.
    pub(crate) fn over_node_limit(&mut self) -> bool {
        self.entries.retain(|e| e.upgrade().is_some_and(|v| v.is_pending()));
        let live = self.entries.len();
        self.check_at = (2 * live).clamp(FIRST_CHECK.min(self.node_limit.max(1)), self.node_limit.max(1)).max(live + 1);
        live >= self.node_limit
    }

    /// Notes data that came to the device; true when pending operations might hold too much of it
    /// ([`Tape::retained_bytes`]).
    pub(crate) fn arrived(&mut self, bytes: usize) -> bool {
        self.potential = self.potential.saturating_add(bytes);
        self.potential >= self.potential_limit
    }

    /// Exact bytes of data that only pending operations hold; whether they exceed the limit.
    pub(crate) fn over_byte_limit(&mut self, epoch: u32) -> bool {
        let pending: Vec<TraceValue> = self.pending();
        let retained = ltc_ir::canonicalize::retained_bytes(&pending, epoch);
        self.potential = retained;
        self.potential_limit = retained.saturating_add(self.byte_limit);
        retained >= self.byte_limit
    }

    /// Forgets what is data by now: after a cut of some of it.
    pub(crate) fn forget_resolved(&mut self) {
        self.entries.retain(|e| e.upgrade().is_some_and(|v| v.is_pending()));
    }

    /// Live pending nodes, in order.
    pub(crate) fn pending(&self) -> Vec<TraceValue> {
        self.entries.iter().filter_map(WeakValue::upgrade).filter(TraceValue::is_pending).collect()
    }

    /// Takes all live pending nodes, in order, and begins anew.
    pub(crate) fn take(&mut self) -> Vec<TraceValue> {
        // Pending all of them: a cut of some forgets those it turned into data.
        let pending = self.entries.drain(..).filter_map(|e| e.upgrade()).collect();
        self.check_at = FIRST_CHECK.min(self.node_limit.max(1));
        pending
    }
}
