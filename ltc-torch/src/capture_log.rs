//! What a capture notes on the recording side, and whose turn it is to capture: one thread's at a time.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ltc_backend::{Buffer, HostTensor};
use ltc_core::{DataCell, Device, Storage, TraceValue};
use ltc_ir::SiteId;

use crate::Error;

/// The cell of a value that is data.
pub(crate) fn cell_of(value: &TraceValue) -> Option<Arc<DataCell>> {
    value.inspect(|_, _| None, |cell| Some(cell.clone()))
}

/// The data of a value; a barrier, too, where no other thread captures.
pub(crate) fn value(device: &Device, value: &TraceValue) -> Result<Buffer, ltc_core::Error> {
    if value.is_pending() && is_open_elsewhere() {
        device.sync_values(std::slice::from_ref(value))?;
    }
    device.value(value)
}

/// A value that the step's host program has read. What the host did next may depend on it.
pub(crate) struct HostRead {
    pub(crate) value: TraceValue,
    pub(crate) found: HostTensor,
    pub(crate) site: SiteId,
}

/// Bytes of a value that the host may read in a captured step: each replay compares them.
const MAX_READ: usize = 1 << 20;

/// What a capture notes on the recording side.
#[derive(Default)]
pub(crate) struct Log {
    /// What each storage held at its first use, in order of first use.
    pub(crate) starts: Vec<Option<TraceValue>>,
    /// Data that was copied from the host during the step. It prevents a replay only if the step uses it.
    pub(crate) uploads: Vec<Arc<DataCell>>,
    /// What the host has read, in order.
    pub(crate) reads: Vec<HostRead>,
    pub(crate) obstacle: Option<String>,
}

thread_local! {
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Begins a log on this thread.
pub(crate) fn open() {
    LOG.set(Some(Log::default()));
}

/// Ends this thread's log.
pub(crate) fn close() -> Option<Log> {
    LOG.take()
}

/// Whether some thread captures a step.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held by the one thread that captures.
#[derive(Debug)]
pub(crate) struct Turn(());

impl Turn {
    pub(crate) fn take() -> Option<Self> {
        if TAKEN.swap(true, Ordering::Acquire) { None } else { Some(Turn(())) }
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

/// Whether no thread captures a step. During a capture a sync would send a part of the step.
pub(crate) fn is_nobodys_turn() -> bool {
    !TAKEN.load(Ordering::Acquire)
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

/// The data of a value that the host reads. Where this thread captures, the value is computed on the side, so that the
/// step goes on being recorded. Replays compute the value again and are right only if it is the same.
pub(crate) fn read(device: &Device, value: &TraceValue, site: SiteId) -> Result<Buffer, ltc_core::Error> {
    let is_small = value.layout().storage_bytes() <= MAX_READ;
    if !is_open() || !is_small {
        obstacle(|| format!("it reads a large value ({})", at(device, value, site)));
        return self::value(device, value);
    }
    let Some(data) = device.computed_aside(value)? else {
        obstacle(|| format!("it reads a value that others take part in ({})", at(device, value, site)));
        return self::value(device, value);
    };
    let Some(found) = device.download_from(&data, &data)? else {
        // The value failed on the side. The read below sends what is pending, and fails as it would without a capture;
        // so the failure on the side is discarded, lest the user's program be told twice.
        device.discard(&data)?;
        obstacle(|| format!("it reads a value that could not be computed ({})", at(device, value, site)));
        return self::value(device, value);
    };
    let buffer = device.value(&data)?;
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.reads.push(HostRead { value: value.clone(), found, site });
        }
    });
    Ok(buffer)
}

/// How many values the host has read in the capture of this thread.
pub fn capture_reads() -> usize {
    LOG.with_borrow(|log| log.as_ref().map_or(0, |log| log.reads.len()))
}

/// Keeps only the first `count` values that the host has read in this capture: these decide how the step goes on, while
/// the host read the others as results of the step.
pub fn capture_keeps_reads(count: usize) {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.reads.truncate(count);
        }
    });
}

/// A value that is read, for messages: what it is, and where the program reads it.
pub(crate) fn at(device: &Device, value: &TraceValue, site: SiteId) -> String {
    match device.describe_site(site) {
        Some(line) => format!("{}, {line}", value.layout()),
        None => value.layout().to_string(),
    }
}

/// Data came from the host.
pub(crate) fn uploaded(value: &TraceValue) {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.uploads.extend(cell_of(value));
        }
    });
}
