//! Whether data was there already at some moment of a recording.

use std::sync::Arc;

use ltc_ir::Canonical;

use crate::{
    cell::DataCell,
    undo::{Chain, Version},
};

/// A moment in what a device was sent to run ([`crate::Device::moment`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    syncs: u64,
    sent: u64,
}

impl Moment {
    pub(crate) fn new(syncs: u64, sent: u64) -> Self {
        Moment { syncs, sent }
    }

    /// How often all that was pending had been sent.
    pub(crate) fn syncs(self) -> u64 {
        self.syncs
    }

    /// Whether data comes from a program that was sent later.
    pub fn precedes(self, data: &DataCell) -> bool {
        data.made_by() > self.sent
    }

    /// Whether some of what a computation is made from comes from later.
    pub(crate) fn precedes_part_of(self, trace: &Canonical<Arc<DataCell>>, before: &[Chain]) -> bool {
        let is_later = |v: &Version| matches!(v, Version::Data(data, _) if self.precedes(data));
        trace.params.iter().any(|p| self.precedes(&p.data)) || before.iter().flat_map(|c| &c.versions).any(is_later)
    }
}
