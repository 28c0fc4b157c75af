//! What a device has recorded since the last sync, in order, without keeping any of it alive.

use std::sync::Arc;

use ltc_ir::{Operands, RecycledNode, RuntimeScalars, SignatureRef, SiteId, WeakValue};

use crate::{Config, DataCell, TraceValue, lock::Lock};

/// Recorded nodes in order. Operands stand before their users, also when several threads record, because a node is
/// listed here before anyone else can hold it.
#[derive(Debug)]
pub(crate) struct PendingOps {
    entries: Vec<WeakValue<Arc<DataCell>>>,
    /// Nodes of the last sync that nobody needed beyond it, each at its position: a step like the last one finds its
    /// own.
    recycled: RecycledNodes,
    /// Nodes recorded in recycled ones of the same signature, since the last sync.
    reused: u64,
    /// Nodes recorded, ever.
    recorded: u64,
    /// Length at which dead entries are swept and the node limit is checked.
    check_at: usize,
    node_limit: usize,
    /// Bytes that came to the device since the last exact count; none of them can be retained more than once.
    potential: usize,
    potential_limit: usize,
    byte_limit: usize,
}

const FIRST_CHECK: usize = 4096;
/// Exact counts of retained bytes until the limit is reached, at most.
const COUNTS: usize = 16;

/// Nodes of a sync as memory for those of the next, each at its position among the recorded ones.
pub(crate) type RecycledNodes = Vec<Option<RecycledNode<Arc<DataCell>>>>;

/// The operations that a sync runs. Kept from sync to sync, for its memory.
#[derive(Debug, Default)]
pub(crate) struct SyncSet {
    /// Live pending nodes, in order.
    pub(crate) nodes: Vec<TraceValue>,
    /// Their positions among the recorded nodes, and how many of these there were.
    positions: Vec<u32>,
    recorded: usize,
    /// Nodes of the last sync that were recorded again.
    pub(crate) reused: u64,
    recycled: RecycledNodes,
}

impl SyncSet {
    /// Whether nothing was recorded: the nodes kept for the next step are still there.
    pub(crate) fn is_empty(&self) -> bool {
        self.recorded == 0
    }

    /// Keeps what is left of the nodes as memory for the next step, users first: nothing of those somebody still holds.
    pub(crate) fn recycle_into(&mut self, pending: &Lock<PendingOps>) {
        self.recycled.resize_with(self.recorded, || None);
        for (value, &position) in self.nodes.drain(..).zip(&self.positions).rev() {
            self.recycled[position as usize] = value.into_recycled();
        }
        std::mem::swap(&mut pending.lock().recycled, &mut self.recycled);
        self.recycled.clear();
    }
}

impl PendingOps {
    pub(crate) fn new(config: &Config) -> Self {
        let (node_limit, byte_limit) = (config.max_pending_nodes, config.max_retained_bytes);
        PendingOps {
            entries: Vec::new(),
            recycled: RecycledNodes::new(),
            reused: 0,
            recorded: 0,
            check_at: FIRST_CHECK.min(node_limit.max(1)),
            node_limit,
            potential: 0,
            potential_limit: byte_limit,
            byte_limit,
        }
    }

    /// Records a node.
    #[inline]
    pub(crate) fn record(
        &mut self,
        signature: &SignatureRef,
        operands: Operands<Arc<DataCell>>,
        numbers: RuntimeScalars,
        site: SiteId,
    ) -> TraceValue {
        let recycled = self.recycled.get_mut(self.entries.len()).and_then(Option::take);
        let value = match recycled {
            Some(recycled) => {
                self.reused += u64::from(recycled.had(signature));
                recycled.record(signature, operands, numbers, site)
            }
            None => TraceValue::record(signature.clone(), operands, numbers, site),
        };
        self.push(&value);
        value
    }

    /// Adds a node.
    #[inline]
    pub(crate) fn push(&mut self, value: &TraceValue) {
        self.recorded += 1;
        self.entries.push(value.downgrade());
    }

    /// How many nodes were recorded so far.
    pub(crate) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Whether it is time to look at the limits ([`PendingOps::over_node_limit`]).
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
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
    /// ([`PendingOps::over_byte_limit`]).
    pub(crate) fn arrived(&mut self, bytes: usize) -> bool {
        self.potential = self.potential.saturating_add(bytes);
        self.potential >= self.potential_limit
    }

    /// Exact bytes of data that only pending operations hold; whether they exceed the limit.
    pub(crate) fn over_byte_limit(&mut self, epoch: u32) -> bool {
        let pending: Vec<TraceValue> = self.live();
        let retained = ltc_ir::canonicalize::retained_bytes(&pending, epoch);
        // Bytes are counted again each time another part of the limit has arrived, for two reasons: data that arrived
        // last is still held by the program and does not count yet, and nothing tells when the program drops data.
        let part = (self.byte_limit / COUNTS).max(1);
        let over = retained.saturating_add(part) > self.byte_limit;
        // Over the limit, the caller syncs, which lets go of all retained data.
        self.potential = if over { 0 } else { retained };
        self.potential_limit = self.potential.saturating_add(part).max(self.byte_limit / 2);
        over
    }

    /// Forgets what is data by now: after a sync of some of it.
    pub(crate) fn forget_resolved(&mut self) {
        self.entries.retain(|e| e.upgrade().is_some_and(|v| v.is_pending()));
    }

    /// Live pending nodes, in order.
    pub(crate) fn live(&self) -> Vec<TraceValue> {
        self.entries.iter().filter_map(WeakValue::upgrade).filter(TraceValue::is_pending).collect()
    }

    /// Takes all live pending nodes, in order, and begins anew.
    pub(crate) fn take_into(&mut self, set: &mut SyncSet) {
        set.recorded = self.entries.len();
        set.reused = std::mem::take(&mut self.reused);
        set.positions.clear();
        // All live entries are pending: a sync of some values has removed the entries that it turned into data.
        for (position, entry) in self.entries.drain(..).enumerate() {
            if let Some(value) = entry.upgrade() {
                set.nodes.push(value);
                set.positions.push(position as u32);
            }
        }
        self.check_at = FIRST_CHECK.min(self.node_limit.max(1));
    }
}
