//! Noting what a step uses while it is recorded, so that it can be replayed.

use std::{
    borrow::Borrow,
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ltc_backend::Buffer;
use ltc_core::{Argument, DataCell, Device, Moment, Storage, TraceValue};
use ltc_ir::LayoutRef;
use ltc_torch_sys::Hold;
use tch::Tensor;

use crate::{
    Error, runtime,
    step::{
        End, HostNumbers, Memory, NotReplayable, Read, Source, Step, Varying, Window, cell_of, is_all_of_memory,
        same_data, sharing,
    },
};

/// The data of a value; a barrier, too, where no other thread captures.
pub(crate) fn value(device: &Device, value: &TraceValue) -> Result<Buffer, ltc_core::Error> {
    if value.is_pending() && is_open_elsewhere() {
        device.sync_values(std::slice::from_ref(value))?;
    }
    device.value(value)
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

/// Whether some thread captures a step.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held by the one thread that captures.
#[derive(Debug)]
struct Turn(());

impl Turn {
    fn take() -> Option<Self> {
        (!TAKEN.swap(true, Ordering::Acquire)).then(|| Turn(()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Release);
    }
}

/// In a forked child: no other thread captures.
pub(crate) fn begin_anew() {
    TAKEN.store(is_open(), Ordering::Release);
}

/// Whether this thread captures a step: others within it are part of it.
pub fn is_open() -> bool {
    LOG.try_with(|log| log.borrow().is_some()).unwrap_or(false)
}

/// Whether another thread captures a step. A barrier would send what that step has recorded so far, and the capture
/// would have to be made again; so barriers wait for the next one.
pub(crate) fn is_open_elsewhere() -> bool {
    TAKEN.load(Ordering::Acquire) && !is_open()
}

/// Sends what these values need to run, and leaves alone what another thread captures.
pub(crate) fn send(device: &Device, values: &[TraceValue]) -> Result<(), Error> {
    if is_open_elsewhere() { Ok(device.sync_values(values)?) } else { crate::sync() }
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

/// A capture in progress on this thread. Dropping it forgets the capture.
#[derive(Debug)]
pub struct Capture {
    device: u16,
    /// When it began.
    since: Moment,
    _turn: Turn,
}

impl Drop for Capture {
    fn drop(&mut self) {
        LOG.take();
        let _ = ltc_torch_sys::capture_end::<Storage>();
    }
}

const NOT_COMPUTED: &str = "it returns a tensor it did not compute";

fn storage_address(t: &impl Borrow<Tensor>) -> Result<(usize, Window), Error> {
    Ok(ltc_torch_sys::storage_of::<Storage, _>(t.borrow(), |s, view| {
        (std::ptr::from_ref(s) as usize, Window::of(&view))
    })?)
}

impl Capture {
    /// Begins: what is pending is sent to run, so that what the step reads is data. `None` while another capture is
    /// open, on whatever thread.
    pub fn begin(device: u16) -> Result<Option<Capture>, Error> {
        let Some(turn) = Turn::take() else { return Ok(None) };
        crate::sync_all()?;
        let since = runtime()?.session.device(device)?.moment();
        LOG.set(Some(Log::default()));
        ltc_torch_sys::capture_begin();
        Ok(Some(Capture { device, since, _turn: turn }))
    }

    /// Ends the capture of a step that was given `inputs` and returned `results`, all tensors on the device, and whose
    /// host part handed over `host`. The step itself stays recorded as usual.
    pub fn end(
        self,
        inputs: &[impl Borrow<Tensor>],
        results: &[impl Borrow<Tensor>],
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
        let fills = inputs.iter().map(|t| is_all_of_memory(t.borrow())).collect::<Result<Vec<_>, _>>()?;
        let mut storages = Vec::new();
        let mut starts = Vec::new();
        // What only the capture holds was a temporary of the step; but what it was computed from may be looked up
        // below.
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
        let is_new = |start: &Option<TraceValue>| start.as_ref().is_none_or(TraceValue::is_pending);
        for (i, (hold, start)) in storages.iter().zip(&starts).enumerate() {
            // An input whose memory nobody wrote to before is the caller's all the same.
            let is_new = is_new(start) && !input_storages.iter().any(|(a, _)| *a == address(hold));
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
        for (i, (at, window)) in result_storages.iter().enumerate() {
            let of = |others: &[(usize, Window)]| others.iter().position(|(a, _)| a == at);
            let state = || storages.iter().zip(&starts).position(|(h, start)| address(h) == *at && !is_new(start));
            let shown = of(&input_storages).map(Memory::Input).or_else(|| state().map(Memory::State));
            let shown = shown.or_else(|| of(&result_storages[..i]).map(Memory::Result));
            let memory = match shown {
                Some(shown) => Ok(shown),
                // Memory that the step did not even look at is older than it, whatever other memory holds the same
                // data.
                None if storages.iter().all(|h| address(h) != *at) => return not(NOT_COMPUTED),
                None => {
                    let value = ltc_torch_sys::storage_of::<Storage, _>(results[i].borrow(), |s, _| s.current())?;
                    let Some(value) = value else { return not("it returns a tensor that nothing was written to") };
                    Err(end_of(value))
                }
            };
            returned.push((memory, window.clone()));
        }
        // What stays as it is must be a parameter itself, not some part of it.
        let parts = ends.iter().all(|(_, output)| output.is_some());
        let Some((extracted, data)) = device.extract_bound(&wanted, parts, self.since) else {
            return Ok(Err(NotReplayable::interrupted()));
        };
        // What was pending is data by now where another thread read it.
        let is_later = |value: &TraceValue| cell_of(value).is_some_and(|data| self.since.precedes(&data));
        if ends.iter().any(|(value, output)| output.is_none() && is_later(value)) {
            return Ok(Err(NotReplayable::interrupted()));
        }
        let source = |at: usize| {
            let input = input_storages.iter().position(|(a, _)| *a == address(&storages[at]));
            input.map_or(Source::State(at), Source::Input)
        };
        let addresses: Vec<usize> = input_storages.iter().map(|(a, _)| *a).collect();
        let (mut reads, mut twins) = (Vec::new(), Vec::new());
        for (param, Argument { data: cell, part_at, .. }) in data.iter().enumerate() {
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
            let read = source(at);
            let begins = if let Source::Input(i) = read { input_storages[i].1.offset() } else { 0 };
            reads.push(Read { source: read, part_at: part_at.map(|at| at - begins) });
            let others = (at + 1..starts.len()).filter(|&i| same_data(&starts[i], cell));
            twins.extend(others.map(|i| (source(i), param)));
        }
        let mut held = Vec::new();
        let mut resolve = |end: usize| -> Option<End> {
            let (value, output) = &ends[end];
            if let Some(output) = output {
                return Some(End::Output(*output));
            }
            let cell = cell_of(value)?;
            if let Some(param) = data.iter().position(|a| Arc::ptr_eq(&a.data, &cell)) {
                return Some(End::Param(param));
            }
            // No operation reads it: it goes from one tensor to another as it is.
            let at = starts.iter().position(|s| same_data(s, &cell))?;
            let param = reads.len();
            reads.push(Read { source: source(at), part_at: None });
            held.push(value.layout().clone());
            let others = (at + 1..starts.len()).filter(|&i| same_data(&starts[i], &cell));
            twins.extend(others.map(|i| (source(i), param)));
            Some(End::Param(param))
        };
        let mut targets = Vec::new();
        for (i, end) in changed {
            let target = source(i);
            if let Source::Input(i) = target
                && !fills[i]
            {
                return not("it writes to a part of one of its inputs");
            }
            let value = &ends[end].0;
            let Some(end) = resolve(end) else {
                return strange(
                    cell_of(value).as_ref(),
                    value.layout(),
                    "a tensor ends up with data from outside the step",
                );
            };
            targets.push((target, end));
        }
        let mut bound = Vec::new();
        for (memory, window) in returned {
            let memory = match memory {
                Ok(shown) => shown,
                Err(end) => {
                    let value = &ends[end].0;
                    let Some(end) = resolve(end) else {
                        return strange(cell_of(value).as_ref(), value.layout(), NOT_COMPUTED);
                    };
                    Memory::New(end)
                }
            };
            bound.push((memory, window));
        }
        // Storages of inputs are the caller's: only what the step itself keeps is held on to.
        let used = |i: &usize| {
            let shown = |s: &Source| matches!(s, Source::State(j) if j == i);
            let shows = |(memory, _): &(Memory, Window)| matches!(memory, Memory::State(j) if j == i);
            let writes = |(s, _): &(Source, End)| shown(s);
            reads.iter().any(|r| shown(&r.source))
                || twins.iter().any(|(s, _)| shown(s))
                || targets.iter().any(writes)
                || bound.iter().any(shows)
        };
        let kept: Vec<usize> = (0..storages.len()).filter(used).collect();
        let moved = |i: usize| kept.iter().position(|&k| k == i).expect("invariant: used storages are kept");
        let written = targets.iter_mut().map(|(s, _)| s);
        let twin = twins.iter_mut().map(|(s, _)| s);
        reads.iter_mut().map(|r| &mut r.source).chain(twin).chain(written).for_each(|s| {
            if let Source::State(i) = s {
                *i = moved(*i);
            }
        });
        bound.iter_mut().for_each(|(memory, _)| {
            if let Memory::State(i) = memory {
                *i = moved(*i);
            }
        });
        fresh.iter_mut().for_each(|i| *i = moved(*i));
        let mut index = 0;
        storages.retain(|_| {
            index += 1;
            kept.contains(&(index - 1))
        });
        Ok(Ok(Step {
            device,
            extracted,
            reads,
            twins,
            held,
            storages,
            targets,
            fresh,
            sharing: sharing(&addresses),
            moves: Vec::new(),
            inputs: input_storages.into_iter().map(|(_, w)| w).collect(),
            results: bound,
            host,
            varying: Varying::default(),
        }))
    }
}
