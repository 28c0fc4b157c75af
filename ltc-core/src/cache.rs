//! The computation cache: structure to program, least recently used out first.
//!
//! Keyed by the 128-bit structural hash; a hit is confirmed by comparing the trace with the graph, so a collision costs
//! a comparison and never a wrong program. Bounded by entries and by bytes.

use std::sync::Arc;

use hashlink::LruCache;
use ltc_backend::{DeviceIndex, Executable};
use ltc_ir::{Canonical, Graph, Hash128};
use smallvec::SmallVec;

use crate::run_times::RunTimes;

/// A compiled graph.
pub(crate) struct Program {
    pub(crate) graph: Arc<Graph>,
    pub(crate) executable: Arc<dyn Executable>,
    /// Made from a program for other sizes.
    pub(crate) respecialised: bool,
    pub(crate) times: RunTimes,
    bytes: usize,
}

impl Program {
    pub(crate) fn new(graph: Arc<Graph>, executable: Arc<dyn Executable>, respecialised: bool) -> Self {
        let bytes = graph.heap_bytes() + executable.heap_bytes();
        Program { graph, executable, respecialised, times: RunTimes::default(), bytes }
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({})", self.graph.hash())
    }
}

type Key = (DeviceIndex, Hash128);

pub(crate) struct Cache {
    programs: LruCache<Key, SmallVec<[Arc<Program>; 1]>>,
    max_bytes: usize,
    bytes: usize,
}

impl Cache {
    pub(crate) fn new(max_entries: usize, max_bytes: usize) -> Self {
        Cache { programs: LruCache::new(max_entries.max(1)), max_bytes, bytes: 0 }
    }

    /// The program of exactly this structure.
    pub(crate) fn get<D>(&mut self, device: DeviceIndex, trace: &Canonical<D>) -> Option<Arc<Program>> {
        let same_hash = self.programs.get(&(device, trace.hash()))?;
        same_hash.iter().find(|p| trace.matches(&p.graph)).cloned()
    }

    pub(crate) fn insert(&mut self, device: DeviceIndex, program: Arc<Program>) {
        let key = (device, program.graph.hash());
        self.bytes += program.bytes;
        if let Some(same_hash) = self.programs.get_mut(&key) {
            same_hash.push(program);
        } else {
            if self.programs.len() == self.programs.capacity() {
                self.evict();
            }
            self.programs.insert(key, SmallVec::from_iter([program]));
        }
        while self.bytes > self.max_bytes && self.programs.len() > 1 {
            self.evict();
        }
    }

    fn evict(&mut self) {
        if let Some((_, gone)) = self.programs.remove_lru() {
            self.bytes -= gone.iter().map(|p| p.bytes).sum::<usize>();
        }
    }

    /// Graphs of all programs, least recently used first.
    pub(crate) fn graphs(&self) -> Vec<Arc<Graph>> {
        self.programs.iter().flat_map(|(_, same_hash)| same_hash.iter().map(|p| p.graph.clone())).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.programs.clear();
        self.bytes = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.programs.iter().map(|(_, same_hash)| same_hash.len()).sum()
    }
}
