//! What a failed operator leaves: what eager execution would.
//!
//! Eager execution stops at the call that fails: what was written before is there, what would have come after is not. A
//! program of ours runs when the calls behind the failing one were made already. So storages note what they held before
//! each write ([`Log`]), as far as a failure can ask for it: no value behind which nothing that can fail was recorded
//! before the next. A sync turns the notes into a plan ([`Undo`]) that says, for each output that took a value's place
//! in a storage, which values those were. They are inputs of the program, kept until nothing can fail any more, or
//! values of its own, which are computed again from what is kept: a failure is rare, and a run without one pays for the
//! notes only. What other processes had a part in is not computed again; a storage that held that holds the failure.
//!
//! After a failure the output's placeholder is filled with the last of these values that was there before the failing
//! call. Whoever refers to the placeholder, programs in the queue too, goes on from there.

use std::sync::Arc;

use ltc_backend::Buffer;
use ltc_ir::{Canonical, Graph, Kept, LayoutRef, ValueId, WeakValue};
use smallvec::SmallVec;

use crate::{
    TraceValue,
    argument::Arguments,
    cell::DataCell,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

/// Writes to one storage since the last sync.
#[derive(Debug)]
struct Entry {
    /// No sync has taken these notes yet, so the next write adds to them.
    open: bool,
    /// `before` has every value that the storage held since the oldest one in it.
    whole: bool,
    /// The oldest value in `before`, or `unwritten`, says what the storage held before the first of the writes.
    from_start: bool,
    /// If nobody had written to the memory before: how many operations that can fail were recorded when it was made.
    unwritten: Option<u32>,
    /// The values that the storage held before its present one, oldest first. A value is left out if no operation that
    /// can fail was recorded between its own write and the next one, since no failure can ask for it.
    before: SmallVec<[Kept<Arc<DataCell>>; 1]>,
    /// The values that the storage held after the first of the writes, and holds now.
    first: WeakValue<Arc<DataCell>>,
    now: WeakValue<Arc<DataCell>>,
    /// How many operations that can fail there were at the last write.
    raises: u32,
}

/// How many operations that can fail were recorded.
#[derive(Debug, Default)]
pub(crate) struct Raises {
    since_sync: AtomicU32,
    before: AtomicU32,
}

impl Raises {
    /// Counts an operation, if it `can_fail`; how many there are then since the last sync.
    #[inline]
    pub(crate) fn count(&self, can_fail: bool) -> u32 {
        let before = self.now();
        if !can_fail {
            return before;
        }
        self.since_sync.store(before + 1, Ordering::Relaxed);
        before + 1
    }

    /// A sync takes all that was recorded.
    pub(crate) fn synced(&self) {
        self.before.fetch_add(self.since_sync.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Since the last sync.
    #[inline]
    pub(crate) fn now(&self) -> u32 {
        self.since_sync.load(Ordering::Relaxed)
    }

    /// Since the beginning.
    pub(crate) fn ever(&self) -> u32 {
        self.before.load(Ordering::Relaxed).wrapping_add(self.now())
    }

    /// How many of them came since the last sync: by the time when there were `ever` in all, and by now.
    fn at(&self, ever: u32) -> (u32, u32) {
        let now = self.now();
        (now.saturating_sub(self.ever().wrapping_sub(ever)), now)
    }
}

/// The notes of one storage on what it held. When the storage is dropped, nobody asks for them any more.
#[derive(Debug, Default)]
pub(crate) struct Log(Option<Arc<Mutex<Entry>>>);

/// The notes of a device's storages.
#[derive(Debug, Default)]
pub(crate) struct Journal(Vec<Arc<Mutex<Entry>>>);

impl Log {
    /// Notes that `new` took the place of `old`; gives back what need not be kept. `raises`: how many operations that
    /// can fail were recorded since the last sync.
    pub(crate) fn note(
        &mut self,
        journal: &Mutex<Journal>,
        raises: u32,
        old: TraceValue,
        new: &TraceValue,
    ) -> Option<TraceValue> {
        if let Some(entry) = &self.0 {
            let entry = &mut *entry.lock();
            if entry.open {
                entry.now = new.downgrade();
                if std::mem::replace(&mut entry.raises, raises) == raises {
                    // No operation that can fail came between the two writes, so no failure of this program asks for
                    // `old`. Its operands may still turn out to have failed, so the gap in `before` has to be known.
                    entry.whole = false;
                    return Some(old);
                }
                entry.before.push(old.keep());
                return None;
            }
        }
        let (mut before, mut rest) = (SmallVec::new(), None);
        let whole = !(old.is_pending() && old.age() == raises);
        match whole {
            true => before.push(old.keep()),
            false => rest = Some(old),
        }
        let (first, now) = (new.downgrade(), new.downgrade());
        self.open(journal, Entry { open: true, whole, from_start: whole, unwritten: None, before, first, now, raises });
        rest
    }

    /// Notes that `new` is the first value written to memory that was made when `ever` operations that can fail had
    /// been recorded.
    pub(crate) fn note_first(&mut self, journal: &Mutex<Journal>, counted: &Raises, ever: u32, new: &TraceValue) {
        let (since, raises) = counted.at(ever);
        let (unwritten, before) = (Some(since), SmallVec::new());
        let (first, now) = (new.downgrade(), new.downgrade());
        self.open(journal, Entry { open: true, whole: true, from_start: true, unwritten, before, first, now, raises });
    }

    fn open(&mut self, journal: &Mutex<Journal>, entry: Entry) {
        let entry = Arc::new(Mutex::new(entry));
        journal.lock().0.push(entry.clone());
        self.0 = Some(entry);
    }
}

impl Log {
    /// Nothing that was noted is to be given back any more.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

impl Journal {
    /// Takes out the notes of storages that are gone, and with them what only they keep: to be let go without a lock.
    pub(crate) fn sweep(&mut self) -> Journal {
        let (kept, gone) = std::mem::take(&mut self.0).into_iter().partition(|entry| Arc::strong_count(entry) > 1);
        self.0 = kept;
        Journal(gone)
    }

    /// Takes all notes: storages begin anew.
    pub(crate) fn take(&mut self) -> Journal {
        let taken = std::mem::take(self);
        taken.0.iter().for_each(|entry| entry.lock().open = false);
        taken
    }

    /// Lets go of the values in notes that a sync has taken, once a plan was made of them. Storages may still refer to
    /// these notes, but do not add to them any more.
    pub(crate) fn let_go(self) {
        for entry in self.0 {
            let before = {
                let mut entry = entry.lock();
                if entry.open { SmallVec::new() } else { std::mem::take(&mut entry.before) }
            };
            drop(before);
        }
    }

    /// The notes as they are; storages go on with them.
    pub(crate) fn look(&self) -> Journal {
        Journal(self.0.clone())
    }

    /// The chains of a trace: for each output that took the place of values in a storage, these values. The trace must
    /// not have been released yet.
    pub(crate) fn chains(&self, trace: &Canonical<Arc<DataCell>>) -> Vec<Chain> {
        let outputs = trace.output_ids();
        let sorted = outputs.is_sorted();
        let output_of = |id: ValueId| match sorted {
            true => outputs.binary_search(&id).ok(),
            false => outputs.iter().position(|&o| o == id),
        };
        let chain = |entry: &Arc<Mutex<Entry>>| {
            let entry = entry.lock();
            let output = output_of(trace.id(&entry.now.upgrade()?)?)?;
            let version = |kept: &Kept<Arc<DataCell>>| match trace.id(kept.value()) {
                Some(id) => Some(Version::Value(id)),
                None => kept
                    .value()
                    .inspect(|_, _| None, |cell| Some(Version::Data(cell.clone(), kept.value().layout().clone()))),
            };
            // An operation that can fail raises the count. So the first one above `since` is the first that was
            // recorded after the memory was made.
            let unwritten = entry.unwritten.map(|since| Version::Unwritten(trace.first_node(|n| n.age() > since)));
            let versions = unwritten.into_iter().chain(entry.before.iter().filter_map(version)).collect();
            let first = entry.first.upgrade().and_then(|value| trace.id(&value));
            Some(Chain { output: output as u32, versions, whole: entry.whole, from_start: entry.from_start, first })
        };
        self.0.iter().filter_map(chain).collect()
    }
}

/// A value that a storage held.
#[derive(Clone, Debug)]
pub(crate) enum Version {
    /// A parameter or a result of the program.
    Value(ValueId),
    /// Data the program does not use.
    Data(Arc<DataCell>, LayoutRef),
    /// Memory that nobody had written to; it was there when this node of the program was recorded.
    Unwritten(usize),
    /// Data that was let go, since nothing that was still to run could fail.
    LetGo,
}

/// Values whose place in a storage an output took.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) output: u32,
    /// Oldest first.
    pub(crate) versions: SmallVec<[Version; 1]>,
    /// Nothing between them is left out.
    pub(crate) whole: bool,
    /// The first of them is what there was before the program's first write.
    pub(crate) from_start: bool,
    /// What the storage held after the first write, if the program makes that.
    pub(crate) first: Option<ValueId>,
}

/// What can be given back if a program fails.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undo {
    /// Per output that took the place of values in a storage: these, oldest first.
    pub(crate) chains: Vec<Chain>,
    /// Parameters to be kept.
    pub(crate) params: Vec<u32>,
}

impl Undo {
    /// The plan for a sync.
    pub(crate) fn of(journal: &Journal, trace: &Canonical<Arc<DataCell>>, graph: &Graph) -> Option<Undo> {
        if journal.0.is_empty() { None } else { Undo::new(journal.chains(trace), graph) }
    }

    pub(crate) fn new(chains: Vec<Chain>, graph: &Graph) -> Option<Undo> {
        if chains.is_empty() {
            return None;
        }
        let values = || {
            let versions = chains.iter().flat_map(|c| &c.versions);
            versions.filter_map(|v| if let Version::Value(id) = v { Some(*id) } else { None })
        };
        let mut needed = vec![false; graph.params().len()];
        values().filter_map(ValueId::as_param).for_each(|p| needed[p] = true);
        if values().any(|v| v.as_result().is_some()) {
            let nodes = graph.needs(values());
            let operands = graph.nodes().iter().zip(nodes).filter(|(_, n)| *n).flat_map(|(node, _)| &node.operands);
            operands.filter_map(|o| o.as_param()).for_each(|p| needed[p] = true);
        }
        let params = (0..needed.len() as u32).filter(|&p| needed[p as usize]).collect();
        Some(Undo { chains, params })
    }

    /// The plan for a program that runs nothing: all it is given is kept.
    pub(crate) fn all(chains: Vec<Chain>, params: usize) -> Undo {
        Undo { chains, params: (0..params as u32).collect() }
    }

    /// Lets go what only this plan keeps.
    pub(crate) fn let_go(self: &mut Arc<Self>) {
        let is_data = |v: &Version| matches!(v, Version::Data(..));
        if self.chains.iter().flat_map(|c| &c.versions).any(is_data) {
            let versions = Arc::make_mut(self).chains.iter_mut().flat_map(|c| &mut c.versions);
            versions.filter(|v| is_data(v)).for_each(|v| *v = Version::LetGo);
        }
    }

    pub(crate) fn chain(&self, output: usize) -> Option<&Chain> {
        self.chains.iter().find(|c| c.output as usize == output)
    }
}

/// What an output's storage held when a computation was run once more.
#[derive(Clone, Debug)]
pub struct Before {
    /// The output.
    pub output: usize,
    /// What its storage held.
    pub data: Arc<DataCell>,
    /// Of this layout.
    pub layout: LayoutRef,
}

/// The plan for a computation that is taken out of a recording and run again: per run, some outputs' storages hold
/// other data.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    undo: Option<Arc<Undo>>,
    /// Places in the chains of those that begin with what the storage holds then.
    open: Vec<usize>,
}

impl Repeated {
    pub(crate) fn new(mut chains: Vec<Chain>, graph: &Graph) -> Self {
        // Data that the graph does not use differs from run to run, so it is told at each run ([`Before`]).
        chains.iter_mut().for_each(|c| c.versions.retain(|v| matches!(v, Version::Value(_))));
        let is_param = |v: &Version| matches!(v, Version::Value(id) if id.as_param().is_some());
        let begins = |c: &Chain| c.versions.first().is_some_and(is_param);
        let open = (0..chains.len()).filter(|&i| !begins(&chains[i])).collect();
        Repeated { undo: Undo::new(chains, graph).map(Arc::new), open }
    }

    /// Whether what this output's storage held before a run has to be told ([`Before`]).
    pub(crate) fn asks_for(&self, output: usize) -> bool {
        let chains = self.undo.iter().flat_map(|u| self.open.iter().map(|&i| &u.chains[i]));
        chains.into_iter().any(|c| c.output as usize == output)
    }

    /// The plan for one run on these arguments.
    pub(crate) fn plan(&self, arguments: &Arguments, before: &[Before]) -> Option<Arc<Undo>> {
        let undo = self.undo.as_ref()?;
        if self.open.is_empty() {
            return Some(undo.clone());
        }
        let mut undo = (**undo).clone();
        for &i in &self.open {
            let Chain { output, versions, .. } = &mut undo.chains[i];
            let Some(Before { data, layout, .. }) = before.iter().find(|b| b.output == *output as usize) else {
                continue;
            };
            let param = arguments.iter().position(|a| a.slice_at.is_none() && Arc::ptr_eq(&a.data, data));
            versions.insert(
                0,
                match param {
                    Some(p) => Version::Value(ValueId::param(p)),
                    None => Version::Data(data.clone(), layout.clone()),
                },
            );
            undo.params.extend(param.map(|p| p as u32));
        }
        Some(Arc::new(undo))
    }
}

/// A buffer as one of another layout over the same memory, or over a copy of it: views of other dtypes write to
/// storages, and a backend need not show memory as another dtype.
pub(crate) fn same_bytes(
    backend: &dyn ltc_backend::Backend,
    device: ltc_backend::DeviceIndex,
    buffer: Buffer,
    (is, wanted): (&LayoutRef, &LayoutRef),
) -> Option<Buffer> {
    if is == wanted {
        return Some(buffer);
    }
    backend.slice(device, &buffer, wanted, 0).ok().or_else(|| {
        let mut host = backend.download(device, &buffer, is).ok()?;
        host.bytes.truncate(wanted.storage_bytes());
        host.layout = wanted.clone();
        (host.bytes.len() == wanted.storage_bytes()).then(|| backend.upload(device, &host).ok())?
    })
}

/// The generator native tensors draw from; it is no storage's.
#[derive(Default)]
pub(crate) struct Drawn {
    state: Option<TraceValue>,
    log: Log,
}

impl Drawn {
    /// The state to draw from next; `seeded` where there is none yet.
    pub(crate) fn state(&mut self, seeded: impl FnOnce() -> TraceValue) -> &TraceValue {
        self.state.get_or_insert_with(seeded)
    }

    /// The state after a draw; the one before with its log, to be noted.
    pub(crate) fn go_on(&mut self, next: TraceValue) -> Option<(&mut Log, TraceValue)> {
        let old = self.state.replace(next)?;
        Some((&mut self.log, old))
    }
}
