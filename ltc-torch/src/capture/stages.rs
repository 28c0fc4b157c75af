//! From what a capture noted to a step, in stages: collect the storages, classify what they hold in the end, bind that
//! to where replays find it, and keep no storage that a replay does not use.

use std::sync::Arc;

use ltc_core::{Argument, DataCell, Device, Extracted, Moment, Storage, TraceValue};
use ltc_ir::{LayoutRef, OwnedView};
use ltc_torch_sys::{AsTensor, Hold};

use crate::{
    Error,
    capture_log::{self, HostRead, cell_of},
    numbers::{HostNumbers, Varying},
    step::{
        CompiledStep, End, Expected, Memory, NotReplayable, Read, Returns, Source, is_all_of_memory, same_data, sharing,
    },
};

/// Why no step comes of a capture.
pub(super) enum Stop {
    NotReplayable(NotReplayable),
    Failed(Error),
}

impl From<NotReplayable> for Stop {
    fn from(why: NotReplayable) -> Self {
        Stop::NotReplayable(why)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

fn not(why: &str) -> Stop {
    NotReplayable(why.to_owned()).into()
}

const NOT_COMPUTED: &str = "it returns a tensor it did not compute";

/// What both sides noted while the step was recorded.
pub(super) struct Noted {
    pub(super) device: Device,
    /// When the capture began.
    pub(super) since: Moment,
    /// The storages that were used, in order of first use.
    pub(super) holds: Vec<Option<Hold<Storage>>>,
    /// What each of them held at its first use.
    pub(super) starts: Vec<Option<TraceValue>>,
    /// What was copied from the host.
    pub(super) uploads: Vec<Arc<DataCell>>,
    /// What the host read.
    pub(super) reads: Vec<HostRead>,
}

/// The step of a capture that was given `inputs` and returned `results`.
pub(super) fn step(
    noted: Noted,
    inputs: &[impl AsTensor],
    results: &[impl AsTensor],
    host: HostNumbers,
) -> Result<CompiledStep, Stop> {
    let mut noted = noted;
    let (device, since, host_reads) = (noted.device.clone(), noted.since, std::mem::take(&mut noted.reads));
    let collected = Collected::new(noted, inputs, results)?;
    let Classified { mut ends, changed, fresh, returned } = Classified::new(&collected, results)?;
    let host_reads: Vec<(HostRead, usize)> = host_reads
        .into_iter()
        .map(|read| {
            let end = ends.add(read.value.clone());
            (read, end)
        })
        .collect();

    // An end that the step does not compute is a parameter as a whole, so parameters may be slices only if there is
    // none.
    let slices = ends.list.iter().all(|(_, output)| output.is_some());
    let interrupted = || Stop::from(NotReplayable::interrupted());
    let (extracted, data) = device.extract_bound(&ends.wanted, slices, since).ok_or_else(interrupted)?;
    // A replay in which the host would read other values than at the capture is undone.
    if !host_reads.is_empty()
        && let Some(op) = extracted.noticed()
    {
        return Err(NotReplayable(format!("it reads a value, and {op} cannot be taken back")).into());
    }
    // Another thread that read a pending value during the capture has turned it into data that replays do not
    // recompute.
    let is_later = |value: &TraceValue| cell_of(value).is_some_and(|data| since.precedes(&data));
    if ends.list.iter().any(|(value, output)| output.is_none() && is_later(value)) {
        return Err(interrupted());
    }

    let mut binder = Binder::new(&collected, &ends, &extracted, &data)?;
    let targets = binder.targets(changed)?;
    binder.hold_what_is_shared();
    let results = binder.results(returned)?;
    let expected = binder.expected(&device, host_reads)?;
    let Binder { reads, aliases, held, .. } = binder;
    let addresses: Vec<usize> = collected.inputs.iter().map(|shown| shown.address).collect();
    let mut step = CompiledStep {
        device,
        extracted,
        reads,
        aliases,
        held,
        storages: collected.storages,
        targets,
        fresh,
        sharing: sharing(&addresses),
        moves: Vec::new(),
        inputs: collected.inputs.into_iter().map(|shown| shown.view).collect(),
        results,
        expected,
        host,
        varying: Varying::default(),
    };
    keep_used(&mut step);
    Ok(step)
}

/// Where a tensor's memory is, and what the tensor shows of it.
struct Shown {
    /// Of the storage.
    address: usize,
    view: OwnedView,
    /// The tensor was made in inference mode.
    inference: bool,
}

impl Shown {
    fn by(t: &impl AsTensor) -> Result<Self, Error> {
        let inference = ltc_torch_sys::state_of(t).is_inference();
        Ok(ltc_torch_sys::storage_of::<Storage, _>(t, |s, view| Shown {
            address: std::ptr::from_ref(s) as usize,
            view: view.into(),
            inference,
        })?)
    }
}

fn address(hold: &Hold<Storage>) -> usize {
    std::ptr::from_ref::<Storage>(hold) as usize
}

/// The first stage: the memory that the step was given, has used and returned.
struct Collected {
    inputs: Vec<Shown>,
    /// Whether each input is all of its memory.
    fills: Vec<bool>,
    results: Vec<Shown>,
    /// Storages that others hold besides the capture, and what they held at first.
    storages: Vec<Hold<Storage>>,
    starts: Vec<Option<TraceValue>>,
    /// What storages that are gone (temporaries of the step) held at first: it lets an error say that a missing
    /// parameter is the data of a tensor that gave up its memory.
    gone: Vec<Option<TraceValue>>,
    uploads: Vec<Arc<DataCell>>,
}

impl Collected {
    fn new(noted: Noted, inputs: &[impl AsTensor], results: &[impl AsTensor]) -> Result<Self, Error> {
        let inputs_shown = inputs.iter().map(Shown::by).collect::<Result<Vec<_>, _>>()?;
        let fills = inputs.iter().map(|t| is_all_of_memory(t)).collect::<Result<Vec<_>, _>>()?;
        let (mut storages, mut starts, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (hold, start) in noted.holds.into_iter().zip(noted.starts) {
            if let Some(hold) = hold.filter(Hold::is_shared) {
                storages.push(hold);
                starts.push(start);
            } else {
                gone.push(start);
            }
        }
        let results = results.iter().map(Shown::by).collect::<Result<Vec<_>, _>>()?;
        Ok(Collected { inputs: inputs_shown, fills, results, storages, starts, gone, uploads: noted.uploads })
    }

    /// Whether the step made what a storage held at first.
    fn is_new(&self, storage: usize) -> bool {
        self.starts[storage].as_ref().is_none_or(TraceValue::is_pending)
    }

    /// The input whose memory this is.
    fn input_at(&self, address: usize) -> Option<usize> {
        self.inputs.iter().position(|shown| shown.address == address)
    }

    /// Where a replay finds a storage.
    fn source(&self, storage: usize) -> Source {
        self.input_at(address(&self.storages[storage])).map_or(Source::State(storage), Source::Input)
    }

    /// The error for data that a replay cannot find: it came from the host, or `else_why`.
    fn strange(&self, cell: Option<&Arc<DataCell>>, layout: &LayoutRef, else_why: &str) -> Stop {
        let uploaded = cell.is_some_and(|cell| self.uploads.iter().any(|u| Arc::ptr_eq(u, cell)));
        let from_host = || format!("it copies host data ({layout}) to the device: pass that tensor as an argument");
        NotReplayable(if uploaded { from_host() } else { else_why.to_owned() }).into()
    }
}

/// Values at the end of the step.
#[derive(Default)]
struct Ends {
    /// The values that have to be computed, each once.
    wanted: Vec<TraceValue>,
    /// All of them, each with its index in `wanted` if it has to be computed.
    list: Vec<(TraceValue, Option<usize>)>,
}

impl Ends {
    /// Adds a value and says where in the list.
    fn add(&mut self, value: TraceValue) -> usize {
        let mut output = None;
        if value.is_pending() {
            let known = self.wanted.iter().position(|w| w.same(&value));
            output = Some(known.unwrap_or(self.wanted.len()));
            if known.is_none() {
                self.wanted.push(value.clone());
            }
        }
        self.list.push((value, output));
        self.list.len() - 1
    }
}

/// Whose memory a result shows: memory there was before, or its own, which ends with this value.
enum Returned {
    Old(Memory),
    New(usize),
}

/// The second stage: what the step leaves behind.
struct Classified {
    ends: Ends,
    /// Storages that hold something else in the end, and which of the ends that is.
    changed: Vec<(usize, usize)>,
    /// Those of them that the step made.
    fresh: Vec<usize>,
    returned: Vec<Returns<Returned>>,
}

impl Classified {
    fn new(collected: &Collected, results: &[impl AsTensor]) -> Result<Self, Stop> {
        let mut new =
            Classified { ends: Ends::default(), changed: Vec::new(), fresh: Vec::new(), returned: Vec::new() };
        new.changes(collected)?;
        for (i, result) in results.iter().enumerate() {
            let memory = new.memory_of(collected, i, result)?;
            let Shown { view, inference, .. } = &collected.results[i];
            new.returned.push(Returns { memory, view: view.clone(), inference: *inference });
        }
        Ok(new)
    }

    /// Finds the storages that the step changes.
    fn changes(&mut self, collected: &Collected) -> Result<(), Stop> {
        for (i, (hold, start)) in collected.storages.iter().zip(&collected.starts).enumerate() {
            // An input whose memory nobody wrote to before is the caller's all the same.
            let is_new = collected.is_new(i) && collected.input_at(address(hold)).is_none();
            // What is returned is the caller's: each replay returns tensors of its own.
            if is_new && collected.results.iter().any(|shown| shown.address == address(hold)) {
                continue;
            }
            let Some(now) = hold.current() else { continue };
            if let Some(start) = start.as_ref().filter(|_| !is_new)
                && start.layout().storage_bytes() != now.layout().storage_bytes()
            {
                return Err(not("it resizes a tensor"));
            }
            let same = start.as_ref().is_some_and(|s| s.same(&now)) && !now.is_pending();
            if !same {
                self.changed.push((i, self.ends.add(now)));
                if is_new {
                    self.fresh.push(i);
                }
            }
        }
        Ok(())
    }

    /// Tells whose memory a result shows.
    fn memory_of(&mut self, collected: &Collected, i: usize, result: &impl AsTensor) -> Result<Returned, Stop> {
        let at = collected.results[i].address;
        let holds = || collected.storages.iter().map(address);
        if let Some(input) = collected.input_at(at) {
            return Ok(Returned::Old(Memory::Input(input)));
        }
        if let Some((state, _)) = holds().enumerate().find(|(s, a)| *a == at && !collected.is_new(*s)) {
            return Ok(Returned::Old(Memory::State(state)));
        }
        if let Some(earlier) = collected.results[..i].iter().position(|shown| shown.address == at) {
            return Ok(Returned::Old(Memory::Result(earlier)));
        }
        // Memory that the step did not even look at is older than it, whatever other memory holds the same data.
        if holds().all(|a| a != at) {
            return Err(not(NOT_COMPUTED));
        }
        let value = ltc_torch_sys::storage_of::<Storage, _>(result, |s, _| s.current()).map_err(Error::from)?;
        let value = value.ok_or_else(|| not("it returns a tensor that nothing was written to"))?;
        Ok(Returned::New(self.ends.add(value)))
    }
}

/// The third stage: where a replay takes each parameter from, and where it puts each end.
struct Binder<'a> {
    collected: &'a Collected,
    ends: &'a Ends,
    /// The data of the program's parameters.
    data: &'a [Argument],
    reads: Vec<Read>,
    aliases: Vec<(Source, usize)>,
    held: Vec<LayoutRef>,
}

impl<'a> Binder<'a> {
    /// Binds the parameters of the program.
    fn new(
        collected: &'a Collected,
        ends: &'a Ends,
        extracted: &Extracted,
        data: &'a [Argument],
    ) -> Result<Self, Stop> {
        let mut binder = Binder { collected, ends, data, reads: Vec::new(), aliases: Vec::new(), held: Vec::new() };
        for (param, Argument { data: cell, slice_at, .. }) in data.iter().enumerate() {
            let Some(source) = binder.read(cell, param) else {
                let (layout, line) = (&extracted.params()[param], extracted.site_of_param(param));
                let read = line.map_or_else(|| layout.to_string(), |line| format!("{layout}, {line}"));
                let why = if collected.gone.iter().any(|s| same_data(s, cell)) {
                    format!("it reads a tensor ({read}) whose memory it gives up (`x.data = ...`, `x.set_(...)`)")
                } else {
                    format!("it reads data that was made on the way ({read})")
                };
                return Err(collected.strange(Some(cell), layout, &why));
            };
            let begins = if let Source::Input(i) = source { collected.inputs[i].view.offset } else { 0 };
            binder.reads.push(Read { source, slice_at: slice_at.map(|at| at - begins) });
        }
        Ok(binder)
    }

    /// Finds the storage that a replay reads this parameter from: the first one that held `cell`. Other storages that
    /// held it too are noted as aliases.
    fn read(&mut self, cell: &Arc<DataCell>, param: usize) -> Option<Source> {
        let starts = &self.collected.starts;
        let mut holders = (0..starts.len()).filter(|&i| same_data(&starts[i], cell));
        let first = holders.next()?;
        self.aliases.extend(holders.map(|i| (self.collected.source(i), param)));
        Some(self.collected.source(first))
    }

    /// Adds parameters for data that several storages held at first and that no operation reads, so that replays check
    /// that these storages still share it ([`CompiledStep::aliases`]). The reason: if the step wrote the data of one of
    /// them to another, the latter holds the same value as before and does not count as changed, so a replay does not
    /// repeat that write. This is right only as long as both storages hold the same data.
    fn hold_what_is_shared(&mut self) {
        let starts = &self.collected.starts;
        for (i, start) in starts.iter().enumerate() {
            let Some((start, cell)) = start.as_ref().and_then(|start| Some((start, cell_of(start)?))) else { continue };
            let is_first = starts[..i].iter().all(|s| !same_data(s, &cell));
            let is_shared = starts[i + 1..].iter().any(|s| same_data(s, &cell));
            if is_first && is_shared && !self.data.iter().any(|a| Arc::ptr_eq(&a.data, &cell)) {
                self.hold(&cell, start.layout().clone());
            }
        }
    }

    /// What a replay gets one of the ends from.
    fn resolve(&mut self, end: usize) -> Option<End> {
        let (value, output) = &self.ends.list[end];
        if let Some(output) = output {
            return Some(End::Output(*output));
        }
        let cell = cell_of(value)?;
        if let Some(param) = self.data.iter().position(|a| Arc::ptr_eq(&a.data, &cell)) {
            return Some(End::Param(param));
        }
        // No operation reads this data: the step moves it from one tensor to another unchanged.
        self.hold(&cell, value.layout().clone()).map(End::Param)
    }

    /// A parameter of the step that no operation reads.
    fn hold(&mut self, cell: &Arc<DataCell>, layout: LayoutRef) -> Option<usize> {
        let param = self.reads.len();
        let source = self.read(cell, param)?;
        self.reads.push(Read { source, slice_at: None });
        self.held.push(layout);
        Some(param)
    }

    /// As [`Binder::resolve`], with an error where it finds nothing: `else_why`, unless the data came from the host.
    fn resolved(&mut self, end: usize, else_why: &str) -> Result<End, Stop> {
        let value = &self.ends.list[end].0;
        let found = self.resolve(end);
        found.ok_or_else(|| self.collected.strange(cell_of(value).as_ref(), value.layout(), else_why))
    }

    /// Binds what the step changes.
    fn targets(&mut self, changed: Vec<(usize, usize)>) -> Result<Vec<(Source, End)>, Stop> {
        let mut targets = Vec::new();
        for (storage, end) in changed {
            let target = self.collected.source(storage);
            if let Source::Input(i) = target
                && !self.collected.fills[i]
            {
                return Err(not("it writes to a part of one of its inputs"));
            }
            targets.push((target, self.resolved(end, "a tensor ends up with data from outside the step")?));
        }
        Ok(targets)
    }

    /// Binds what the host has read.
    fn expected(&mut self, device: &Device, reads: Vec<(HostRead, usize)>) -> Result<Vec<Expected>, Stop> {
        let bound = reads.into_iter().map(|(HostRead { value, found, site }, end)| {
            let at = capture_log::at(device, &value, site);
            let end = self.resolved(end, "it reads a value from outside the step")?;
            Ok(Expected { end, found, at })
        });
        bound.collect()
    }

    /// Binds what the step returns.
    fn results(&mut self, returned: Vec<Returns<Returned>>) -> Result<Vec<Returns<Memory>>, Stop> {
        let bound = returned.into_iter().map(|Returns { memory, view, inference }| {
            let memory = match memory {
                Returned::Old(shown) => shown,
                Returned::New(end) => Memory::New(self.resolved(end, NOT_COMPUTED)?),
            };
            Ok(Returns { memory, view, inference })
        });
        bound.collect()
    }
}

/// The last stage: storages of inputs are the caller's, and only what replays use is held on to.
fn keep_used(step: &mut CompiledStep) {
    let mut used = vec![false; step.storages.len()];
    each_state(step, |state| used[*state] = true);
    // The new index of each storage is the number of used storages before it.
    let moved: Vec<usize> = (0..used.len()).map(|i| used[..i].iter().filter(|used| **used).count()).collect();
    each_state(step, |state| *state = moved[*state]);
    // Storages that the step made and left behind are among its targets, so they count as used.
    debug_assert!(step.fresh.iter().all(|storage| used[*storage]), "invariant: fresh storages are used");
    step.fresh.iter_mut().for_each(|storage| *storage = moved[*storage]);
    let mut of_storage = used.into_iter();
    step.storages.retain(|_| of_storage.next().unwrap_or_default());
}

/// Visits each mention of a storage that the step keeps.
fn each_state(step: &mut CompiledStep, mut visit: impl FnMut(&mut usize)) {
    let reads = step.reads.iter_mut().map(|read| &mut read.source);
    let aliases = step.aliases.iter_mut().map(|(source, _)| source);
    let targets = step.targets.iter_mut().map(|(source, _)| source);
    for source in reads.chain(aliases).chain(targets) {
        if let Source::State(state) = source {
            visit(state);
        }
    }
    for result in &mut step.results {
        if let Memory::State(state) = &mut result.memory {
            visit(state);
        }
    }
}
