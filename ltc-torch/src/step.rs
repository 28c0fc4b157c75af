//! A step captured once and replayed without recording it again.
//!
//! While a step is captured it is recorded as usual, and libtorch's side notes which storages and generators it uses. What
//! the step leaves changed, and what it returns, is extracted as one computation whose parameters are bound to the
//! storages it reads: a replay takes what they hold then, runs the program, and puts the results where the step would
//! have put them. Numbers (a learning rate) and everything the host program does besides are those of the capture, except
//! numbers that the caller hands over for each call ([`HostNumbers`]: what an optimiser computes from a step count on the
//! host); whoever captures must know that the others do not change, or capture again.

use std::{cell::RefCell, sync::Arc};

use ltc_core::{DataCell, Device, Extracted, Storage, TraceValue};
use ltc_ir::{DType, Dims, Hash128, LayoutRef};
use ltc_torch_sys::{Hold, View};
use tch::Tensor;

use crate::{Error, runtime};

/// Why a step cannot be replayed; recording it each time stays right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the step cannot be replayed: {0}")]
pub struct NotReplayable(pub String);

/// Numbers that the host computed during a step and handed to operators, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostNumbers {
    /// Names what computed them: equal for steps that compute on the host in the same way.
    pub program: String,
    /// As recorded: the bits of doubles.
    pub values: Vec<u64>,
}

/// How the numbers of a step follow from those of the host, as two captures show.
#[derive(Clone, Debug, Default)]
struct Varying {
    /// Number of the step, and which of the host's it can be: they must agree.
    slots: Vec<(usize, Vec<usize>)>,
    /// Numbers of the host that did not change: which of the step's they are cannot be told, so they must not.
    fixed: Vec<usize>,
}

/// What a capture notes on the recording side.
#[derive(Default)]
pub(crate) struct Log {
    /// What each storage held at its first use, in order of first use.
    starts: Vec<Option<TraceValue>>,
    /// What was copied from the host: an obstacle only where it is used.
    uploads: Vec<Arc<DataCell>>,
    obstacle: Option<String>,
}

thread_local! {
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// A storage is used for the first time.
pub(crate) fn touched(storage: &Storage) {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.starts.push(storage.current());
        }
    });
}

/// Something happens that a replay cannot repeat.
pub(crate) fn obstacle(what: impl FnOnce() -> String) {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log
            && log.obstacle.is_none()
        {
            log.obstacle = Some(what());
        }
    });
}

/// Data came from the host.
pub(crate) fn uploaded(value: &TraceValue) {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.uploads.extend(cell_of(value));
        }
    });
}

fn cell_of(value: &TraceValue) -> Option<Arc<DataCell>> {
    value.inspect(|_, _| None, |cell| Some(cell.clone()))
}

fn same_data(a: &Option<TraceValue>, cell: &Arc<DataCell>) -> bool {
    a.as_ref().and_then(cell_of).is_some_and(|c| Arc::ptr_eq(&c, cell))
}

/// What a tensor shows of its storage.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Window {
    dtype: DType,
    sizes: Dims,
    strides: Dims,
    offset: i64,
}

impl Window {
    fn of(view: &View<'_>) -> Self {
        Window { dtype: view.dtype, sizes: view.sizes.into(), strides: view.strides.into(), offset: view.offset }
    }

    fn view(&self) -> View<'_> {
        View { dtype: self.dtype, sizes: &self.sizes, strides: &self.strides, offset: self.offset }
    }
}

/// Where a parameter's data comes from at a replay.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// What this storage holds.
    State(usize),
    /// What the storage of this input tensor holds.
    Input(usize),
}

/// A value at the end of a step.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Output of the program.
    Output(usize),
    /// Parameter of the program, unchanged.
    Param(usize),
}

/// A captured step; see the module.
#[derive(Debug)]
pub struct Step {
    device: Device,
    extracted: Extracted,
    sources: Vec<Source>,
    /// Other storages that held a parameter's data too when it was captured: the graph takes them for one.
    twins: Vec<(Source, usize)>,
    storages: Vec<Hold<Storage>>,
    /// Storages the step changes.
    targets: Vec<(usize, End)>,
    /// Tensors the step made and left behind.
    fresh: Vec<usize>,
    inputs: Vec<Window>,
    /// Which inputs share a storage: position of the first with the same one.
    sharing: Vec<usize>,
    results: Vec<(End, LayoutRef, Window)>,
    host: HostNumbers,
    varying: Varying,
}

/// A capture in progress on this thread. Dropping it forgets the capture.
#[derive(Debug)]
pub struct Capture {
    device: u16,
}

impl Drop for Capture {
    fn drop(&mut self) {
        LOG.take();
        let _ = ltc_torch_sys::capture_end::<Storage>();
    }
}

fn storage_address(t: &Tensor) -> Result<(usize, Window), Error> {
    Ok(ltc_torch_sys::storage_of::<Storage, _>(t, |s, view| (std::ptr::from_ref(s) as usize, Window::of(&view)))?)
}

fn sharing(addresses: &[usize]) -> Vec<usize> {
    addresses.iter().map(|a| addresses.iter().position(|b| a == b).unwrap_or_default()).collect()
}

impl Capture {
    /// Begins: what is pending is sent to run, so that what the step reads is data.
    pub fn begin(device: u16) -> Result<Capture, Error> {
        crate::sync()?;
        runtime()?.session.device(device)?;
        LOG.set(Some(Log::default()));
        ltc_torch_sys::capture_begin();
        Ok(Capture { device })
    }

    /// Ends the capture of a step that was given `inputs` and returned `results`, all tensors on the device, and whose
    /// host part handed over `host`. The step itself stays recorded as usual.
    pub fn end(
        self,
        inputs: &[Tensor],
        results: &[Tensor],
        host: HostNumbers,
    ) -> Result<Result<Step, NotReplayable>, Error> {
        let log = LOG.take().unwrap_or_default();
        let holds = ltc_torch_sys::capture_end::<Storage>()?;
        let device = runtime()?.session.device(self.device)?.clone();
        let not = |why: &str| Ok(Err(NotReplayable(why.to_owned())));
        if let Some(obstacle) = log.obstacle {
            return Ok(Err(NotReplayable(obstacle)));
        }
        let uploads = log.uploads;
        let strange = |cell: Option<&Arc<DataCell>>, layout: &LayoutRef, else_why: &str| {
            let uploaded = cell.is_some_and(|cell| uploads.iter().any(|u| Arc::ptr_eq(u, cell)));
            let from_host = || format!("it copies host data ({layout}) to the device: pass that tensor as an argument");
            Ok(Err(NotReplayable(if uploaded { from_host() } else { else_why.to_owned() })))
        };
        let input_storages = inputs.iter().map(storage_address).collect::<Result<Vec<_>, _>>()?;
        let mut storages = Vec::new();
        let mut starts = Vec::new();
        // What only the capture holds was a temporary of the step; but what it was computed from may be looked up below.
        let mut gone = Vec::new();
        for (hold, start) in holds.into_iter().zip(log.starts) {
            if hold.is_shared() {
                storages.push(hold);
                starts.push(start);
            } else {
                gone.push(start);
            }
        }
        let address = |hold: &Hold<Storage>| std::ptr::from_ref::<Storage>(hold) as usize;
        // Values at the end: those to compute, each once.
        let mut wanted: Vec<TraceValue> = Vec::new();
        let mut ends: Vec<(TraceValue, Option<usize>)> = Vec::new();
        let mut end_of = |value: TraceValue| {
            let output = value.is_pending().then(|| {
                wanted.iter().position(|w| w.same(&value)).unwrap_or_else(|| {
                    wanted.push(value.clone());
                    wanted.len() - 1
                })
            });
            ends.push((value, output));
            ends.len() - 1
        };
        let result_storages = results.iter().map(storage_address).collect::<Result<Vec<_>, _>>()?;
        let mut changed = Vec::new();
        let mut fresh = Vec::new();
        for (i, (hold, start)) in storages.iter().zip(&starts).enumerate() {
            let is_new = start.as_ref().is_none_or(TraceValue::is_pending);
            // What is returned is the caller's: each replay returns tensors of its own.
            if is_new && result_storages.iter().any(|(a, _)| *a == address(hold)) {
                continue;
            }
            let Some(now) = hold.current() else { continue };
            if let Some(start) = start.as_ref().filter(|_| !is_new)
                && start.layout().storage_bytes() != now.layout().storage_bytes()
            {
                return not("it resizes a tensor");
            }
            let same = start.as_ref().is_some_and(|s| s.same(&now)) && !now.is_pending();
            if !same {
                changed.push((i, end_of(now)));
                if is_new {
                    fresh.push(i);
                }
            }
        }
        let mut returned = Vec::new();
        for t in results {
            let (value, window) =
                ltc_torch_sys::storage_of::<Storage, _>(t, |s, view| (s.current(), Window::of(&view)))?;
            let Some(value) = value else { return not("it returns a tensor that nothing was written to") };
            let layout = value.layout().clone();
            returned.push((end_of(value), layout, window));
        }
        let (extracted, data) = device.extract(&wanted);
        let source = |at: usize| {
            let input = input_storages.iter().position(|(a, _)| *a == address(&storages[at]));
            input.map_or(Source::State(at), Source::Input)
        };
        let (mut sources, mut twins) = (Vec::new(), Vec::new());
        for (param, cell) in data.iter().enumerate() {
            let at = starts.iter().position(|s| same_data(s, cell));
            let Some(at) = at else {
                let used = gone.iter().any(|s| same_data(s, cell));
                let why = if used {
                    "it reads a tensor that it also gives up"
                } else {
                    "it reads data that was made on the way"
                };
                return strange(Some(cell), &extracted.params()[param], why);
            };
            sources.push(source(at));
            let others = (at + 1..starts.len()).filter(|&i| same_data(&starts[i], cell));
            twins.extend(others.map(|i| (source(i), param)));
        }
        let resolve = |end: usize| -> Option<End> {
            let (value, output) = &ends[end];
            if let Some(output) = output {
                return Some(End::Output(*output));
            }
            let cell = cell_of(value)?;
            data.iter().position(|c| Arc::ptr_eq(c, &cell)).map(End::Param)
        };
        let mut targets = Vec::new();
        for (i, end) in changed {
            if input_storages.iter().any(|(a, _)| *a == address(&storages[i])) {
                return not("it writes to one of its inputs");
            }
            let value = &ends[end].0;
            let Some(end) = resolve(end) else {
                return strange(
                    cell_of(value).as_ref(),
                    value.layout(),
                    "a tensor ends up with data from outside the step",
                );
            };
            targets.push((i, end));
        }
        let mut bound = Vec::new();
        for (end, layout, window) in returned {
            let value = &ends[end].0;
            let Some(end) = resolve(end) else {
                return strange(cell_of(value).as_ref(), value.layout(), "it returns a tensor it did not compute");
            };
            bound.push((end, layout, window));
        }
        let addresses: Vec<usize> = input_storages.iter().map(|(a, _)| *a).collect();
        // Storages of inputs are the caller's: only what the step itself keeps is held on to.
        let used = |i: &usize| {
            let reads = |s: &Source| matches!(s, Source::State(j) if j == i);
            sources.iter().any(reads) || twins.iter().any(|(s, _)| reads(s)) || targets.iter().any(|(j, _)| j == i)
        };
        let kept: Vec<usize> = (0..storages.len()).filter(used).collect();
        let moved = |i: usize| kept.iter().position(|&k| k == i).expect("invariant: used storages are kept");
        sources.iter_mut().chain(twins.iter_mut().map(|(s, _)| s)).for_each(|s| {
            if let Source::State(i) = s {
                *i = moved(*i);
            }
        });
        targets.iter_mut().for_each(|(i, _)| *i = moved(*i));
        fresh.iter_mut().for_each(|i| *i = moved(*i));
        let mut index = 0;
        storages.retain(|_| {
            index += 1;
            kept.contains(&(index - 1))
        });
        Ok(Ok(Step {
            device,
            extracted,
            sources,
            twins,
            storages,
            targets,
            fresh,
            sharing: sharing(&addresses),
            inputs: input_storages.into_iter().map(|(_, w)| w).collect(),
            results: bound,
            host,
            varying: Varying::default(),
        }))
    }
}

impl Step {
    /// Learns from an earlier capture whether this one can be replayed: both must be of the same step, with equal graphs
    /// bound to the same storages in the same way, and numbers that are equal or follow from the host's. Tensors that
    /// the step makes anew each time do not count.
    pub fn confirm(&mut self, other: &Step) -> Result<(), NotReplayable> {
        let not = |why: &str| Err(NotReplayable(why.to_owned()));
        if self.extracted.graph() != other.extracted.graph() {
            return not("two captures recorded different graphs");
        }
        if self.host.program != other.host.program || self.host.values.len() != other.host.values.len() {
            return not("the host computes in another way each time");
        }
        let mut varying = Varying::default();
        let host: Vec<_> = self.host.values.iter().zip(&other.host.values).collect();
        for (slot, numbers) in self.numbers().iter().zip(other.numbers()).enumerate().filter(|(_, (a, b))| a != b) {
            let sources: Vec<usize> = (0..host.len()).filter(|&i| host[i] == numbers).collect();
            if sources.is_empty() {
                return not(
                    "numbers change from step to step (a step count or a learning rate that the host computes)",
                );
            }
            varying.slots.push((slot, sources));
        }
        varying.fixed = (0..host.len()).filter(|&i| host[i].0 == host[i].1).collect();
        let address = |s: &Step, i: usize| std::ptr::from_ref::<Storage>(&s.storages[i]) as usize;
        let same_source = |(a, b): (&Source, &Source)| match (*a, *b) {
            (Source::State(a), Source::State(b)) => address(self, a) == address(other, b),
            (Source::Input(a), Source::Input(b)) => a == b,
            _ => false,
        };
        if !self.sources.iter().zip(&other.sources).all(same_source) {
            return not("it reads other tensors each time");
        }
        self.varying = varying;
        Ok(())
    }

    /// Numbers of the step for these of the host.
    fn numbers_for(&self, host: &[u64]) -> Result<Vec<u64>, NotReplayable> {
        let fixed = |&i: &usize| host[i] == self.host.values[i];
        if host.len() != self.host.values.len() || !self.varying.fixed.iter().all(fixed) {
            return Err(NotReplayable("a number of the host changed that did not while it was captured".into()));
        }
        let mut numbers = self.numbers().to_vec();
        for (slot, sources) in &self.varying.slots {
            if sources.iter().any(|&s| host[s] != host[sources[0]]) {
                return Err(NotReplayable("two numbers of the host that were equal no longer are".into()));
            }
            numbers[*slot] = host[sources[0]];
        }
        Ok(numbers)
    }

    /// Structural hash of the step's graph.
    pub fn hash(&self) -> Hash128 {
        self.extracted.hash()
    }

    /// Runtime numbers of the step, as recorded.
    pub fn numbers(&self) -> &[u64] {
        self.extracted.numbers()
    }

    /// How many tensors that the step made and left behind are still held by somebody: more than none after a further
    /// step means that steps keep what they make (a list of losses), which a replay would overwrite.
    pub fn left_behind(&self) -> usize {
        self.fresh.iter().filter(|&&i| self.storages[i].is_shared()).count()
    }

    /// Compiles the program now rather than at the first replay.
    pub fn compile(&self) -> Result<(), Error> {
        Ok(self.extracted.compile()?)
    }

    fn check_inputs(&self, given: &[(usize, Window)]) -> Result<(), NotReplayable> {
        if given.len() != self.inputs.len() {
            return Err(NotReplayable(format!("{} inputs, captured with {}", given.len(), self.inputs.len())));
        }
        for (i, ((_, now), then)) in given.iter().zip(&self.inputs).enumerate() {
            if now != then {
                return Err(NotReplayable(format!(
                    "input {i} is {}{:?} (strides {:?}, offset {}), captured as {}{:?} (strides {:?}, offset {})",
                    now.dtype,
                    &now.sizes[..],
                    &now.strides[..],
                    now.offset,
                    then.dtype,
                    &then.sizes[..],
                    &then.strides[..],
                    then.offset
                )));
            }
        }
        let addresses: Vec<usize> = given.iter().map(|(a, _)| *a).collect();
        if sharing(&addresses) != self.sharing {
            return Err(NotReplayable("other inputs share memory than when it was captured".into()));
        }
        let is_state = |a: &usize| self.storages.iter().any(|h| std::ptr::from_ref::<Storage>(h) as usize == *a);
        if addresses.iter().any(is_state) {
            return Err(NotReplayable("an input is also a tensor the step keeps".into()));
        }
        Ok(())
    }

    /// Replays the step on other inputs, with the host's numbers of now. `Ok(Err(..))`: an assumption of the capture does
    /// not hold, and nothing was done.
    pub fn run(&self, inputs: &[Tensor], host: &[u64]) -> Result<Result<Vec<Tensor>, NotReplayable>, Error> {
        let given = inputs.iter().map(storage_address).collect::<Result<Vec<_>, _>>()?;
        let numbers = match self.check_inputs(&given).and_then(|()| self.numbers_for(host)) {
            Ok(numbers) => numbers,
            Err(no) => return Ok(Err(no)),
        };
        let value_of = |source: &Source| match source {
            Source::State(i) => Ok(self.storages[*i].current()),
            Source::Input(i) => ltc_torch_sys::storage_of::<Storage, _>(&inputs[*i], |s, _| s.current()),
        };
        let pending = |v: &Option<TraceValue>| v.as_ref().is_some_and(TraceValue::is_pending);
        let mut values = self.sources.iter().map(value_of).collect::<Result<Vec<_>, _>>()?;
        if values.iter().any(pending) {
            crate::sync()?;
            values = self.sources.iter().map(value_of).collect::<Result<Vec<_>, _>>()?;
        }
        let mut data = Vec::with_capacity(values.len());
        for (i, (value, layout)) in values.into_iter().zip(self.extracted.params()).enumerate() {
            match value {
                Some(v) if v.layout() == layout => data.push(v),
                other => {
                    let now = other.map_or("nothing".into(), |v| v.layout().to_string());
                    return Ok(Err(NotReplayable(format!("tensor {i} it reads holds {now}, captured as {layout}"))));
                }
            }
        }
        for (twin, param) in &self.twins {
            let cell = cell_of(&data[*param]).expect("invariant: checked above");
            if !same_data(&value_of(twin)?, &cell) {
                return Ok(Err(NotReplayable("two tensors that held the same data no longer do".into())));
            }
        }
        let results = self.extracted.placeholders();
        let end = |e: &End| match e {
            End::Output(i) => results[*i].clone(),
            End::Param(i) => data[*i].clone(),
        };
        let returned: Vec<TraceValue> = self.results.iter().map(|(e, ..)| end(e)).collect();
        let new: Vec<TraceValue> = self.targets.iter().map(|(_, e)| end(e)).collect();
        for ((i, _), value) in self.targets.iter().zip(new) {
            drop(self.storages[*i].replace(value));
        }
        // What nobody else holds any more may be written over.
        let bound = data.into_iter().map(|v| (cell_of(&v).expect("invariant: checked above"), v.holders() == 1));
        self.extracted.run_with(bound.collect(), numbers, &results)?;
        let wrap = |value: TraceValue, window: &Window| {
            let nbytes = value.layout().storage_bytes();
            ltc_torch_sys::wrap(Storage::with_value(value), nbytes, window.view(), self.device.index())
        };
        let tensors = returned.into_iter().zip(&self.results).map(|(v, (_, _, window))| wrap(v, window));
        Ok(Ok(tensors.collect::<Result<_, _>>()?))
    }
}
