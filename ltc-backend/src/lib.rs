//! The contract between LTC and an accelerator.
//!
//! A backend names its devices, compiles canonical graphs, executes them, and moves host tensors in and out. That is
//! all; laziness, caching, aliasing and scheduling are `ltc-core`'s.
//!
//! # Who owns what
//! - A [`Buffer`] is a counted, opaque handle; the backend defines what is inside. A buffer is immutable while anyone
//!   else holds it: an [`Executable`] may write into an input only if it was *donated* and it proves to be the only
//!   holder.
//! - Graphs are immutable and shared.
//!
//! # Threads
//! - [`Executable::execute`] is called one program at a time, in program order: on the device's executor thread, or on
//!   a recording thread where [`Executable::cost`] tells that handing the program over gains nothing.
//! - [`Backend::compile`], [`Backend::upload`] and [`Backend::download`] may be called from any thread, concurrently.
//! - `execute` may return before the device has computed anything ([`Backend::fence`]); it does so in program order.
//!
//! # Errors
//! - Errors are values, never panics or aborts. A failed operation poisons what depends on it and nothing else: the
//!   executable reports the other outputs as usual.
//! - Where several operands have failed, the failure of the operator that stands first in the graph is passed on: it is
//!   the one that eager execution would have met.
//! - An output is told only when no operator before it in the graph can fail any more, and after the failure if one has
//!   ([`OutputSink::failed`]), since a failed operator undoes what stands behind it.
#![forbid(unsafe_code)]

mod buffer;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod fence;
#[cfg(feature = "reference")]
mod reference;
#[cfg(feature = "testing")]
pub mod testing;
mod trial;

use std::sync::Arc;

pub use buffer::{Buffer, HostTensor};
pub use error::{BackendError, ExecError, LargeValue};
pub use fence::Fence;
use ltc_ir::{Graph, LayoutRef};
#[cfg(feature = "reference")]
pub use reference::ReferenceBackend;
use smallvec::SmallVec;
pub use trial::AbTrial;

/// Index of a device of one backend, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct DeviceIndex(pub u16);

/// Memory of a device, in bytes; 0 where the backend cannot tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryInfo {
    /// Held by live buffers now.
    pub used: usize,
    /// Highest `used` since the last reset.
    pub peak: usize,
    /// Taken since the last reset.
    pub taken: usize,
    /// Given back since the last reset.
    pub freed: usize,
    /// Kept for reuse, not in use. What devices keep together counts for each.
    pub cached: usize,
    /// Highest sum of `used` and `cached` that was seen since the last reset.
    pub reserved_peak: usize,
}

impl MemoryInfo {
    /// In use or kept for reuse.
    pub fn reserved(&self) -> usize {
        self.used + self.cached
    }
}

/// Which numbers of a [`MemoryInfo`] begin anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryReset {
    /// The highest values.
    Peaks,
    /// What was taken and given back.
    Sums,
}

/// How much memory a device has, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capacity {
    /// What may still be taken.
    pub available: usize,
    /// All there is.
    pub total: usize,
}

/// One input of an execution.
#[derive(Debug)]
pub struct Input {
    /// The buffer, or the failure of the program that should have made it: outputs that depend on it fail with it.
    pub buffer: Result<Buffer, Arc<ExecError>>,
    /// The caller gave up its own hold: the memory may be reused if `buffer` is the only handle.
    pub donated: bool,
}

/// What an execution takes besides the program.
#[derive(Debug, Default)]
pub struct Inputs {
    /// One per graph parameter.
    pub params: SmallVec<[Input; 4]>,
    /// Runtime numbers, as many words as the graph's `number_count`.
    pub numbers: SmallVec<[u64; 8]>,
    /// Use one thread: its caller is at work beside it. Only where [`RunCost::single_thread`] allows it.
    pub single_threaded: bool,
}

impl Inputs {
    /// Inputs of these parameters and numbers, for a run on any number of threads.
    pub fn new(params: impl IntoIterator<Item = Input>, numbers: impl IntoIterator<Item = u64>) -> Self {
        Inputs { params: params.into_iter().collect(), numbers: numbers.into_iter().collect(), single_threaded: false }
    }
}

/// Receives the outputs of an execution, each exactly once, as soon as it is known and in any order.
pub trait OutputSink {
    /// Output `index` of the graph is ready, or failed.
    fn output(&mut self, index: usize, result: Result<Buffer, Arc<ExecError>>);

    /// An operator has failed. To be told before any output that stands behind it in the graph, and once is enough: of
    /// several failures, and of those that are passed on, the first in the graph counts.
    fn failed(&mut self, _error: &Arc<ExecError>) {}

    /// Nothing has failed, and nothing that is still to run can. What the caller keeps of donated inputs, to have it
    /// back after a failure, is let go: until then they have another holder. To be called as early as that is so;
    /// without it such inputs are never written in place.
    fn safe(&mut self) {}

    /// This input is there as it came, and nobody writes to it any more. To be told of all of which that is so where an
    /// operator fails that could not (there was no memory for it), behind [`OutputSink::failed`] and before any output:
    /// after [`OutputSink::safe`] nothing else is left to give back.
    fn still_there(&mut self, _input: usize, _buffer: &Buffer) {}
}

/// What an execution takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunCost {
    /// Rough time.
    pub time: std::time::Duration,
    /// Most threads it uses at once; 1 starts none.
    pub threads: usize,
    /// Whether it may be run on one thread instead ([`Inputs::single_threaded`]).
    pub single_thread: SingleThread,
}

/// Whether a program may run on one thread where it would use several, and what to decide that by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SingleThread {
    /// It must not.
    Never,
    /// Its results are the same in every bit: measured times may decide.
    SameBits,
    /// Bits of its results depend on it, so what decides must be the same in every run of a user's program.
    OtherBits {
        /// What several threads take off its time, by a model of its steps and their sizes that no clock is part of.
        saves: std::time::Duration,
    },
}

/// A compiled program.
pub trait Executable: Send + Sync {
    /// Runs the program and reports every output. Never panics on bad data.
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink);

    /// What one execution takes of this machine's processors. The recording thread may then run the program itself
    /// instead of handing it over. `None`: not known, or another device's work; such programs are always handed over.
    fn cost(&self) -> Option<RunCost> {
        None
    }

    /// The same program for another graph of the same [skeleton](ltc_ir::symbolic::skeleton): it differs in sizes,
    /// strides and integer arguments, and sizes are one or zero where they were. All that depends on these integers is
    /// to be made anew; what does not is kept, which is why this is much cheaper than compiling. `None` where too
    /// little can be kept: the graph is compiled then.
    fn respecialised(&self, _graph: &Arc<Graph>) -> Option<Result<Arc<dyn Executable>, BackendError>> {
        None
    }

    /// The lowered program as text, for dumps.
    fn text(&self) -> String;

    /// Rough size in memory, for the cache's bound, in bytes.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// An accelerator.
pub trait Backend: Send + Sync {
    /// Short name for messages: `ts`.
    fn name(&self) -> &str;

    /// How many devices there are.
    fn device_count(&self) -> usize;

    /// Compiles a graph.
    ///
    /// # Errors
    /// [`BackendError::CannotLower`] for what this backend does not run.
    fn compile(&self, device: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError>;

    /// Copies a host tensor to the device.
    ///
    /// # Errors
    /// Fails where bytes and layout do not fit together, or the device has no room.
    fn upload(&self, device: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError>;

    /// Whether [`Backend::slice`] is there. Then a parameter of a graph may stand for a slice of a value, which begins
    /// elsewhere from run to run; otherwise such slices are views in the graph, of which each offset makes another.
    fn has_slices(&self) -> bool {
        false
    }

    /// What this layout, which is dense, shows of a buffer's memory from element `offset` on. It may share that memory;
    /// then a program that is given one of them must not take it for the only handle while the other is there.
    ///
    /// # Errors
    /// Fails where the slice ends outside of the buffer, or this backend makes none.
    fn slice(
        &self,
        _device: DeviceIndex,
        _buffer: &Buffer,
        layout: &LayoutRef,
        offset: i64,
    ) -> Result<Buffer, BackendError> {
        Err(BackendError::BufferMismatch(format!("no slice {layout} from {offset} on: {} makes none", self.name())))
    }

    /// Copies a buffer of this layout to the host.
    ///
    /// # Errors
    /// Fails for a buffer of another backend or layout, or where the device is lost.
    fn download(&self, device: DeviceIndex, buffer: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError>;

    /// What of the calling thread's state its programs run under, such as a number of threads, as a word. Asked where a
    /// program is handed over.
    fn thread_state(&self) -> u64 {
        0
    }

    /// Called on the executor thread before its first program, and before one that is to run under another
    /// [`Backend::thread_state`] than the last.
    fn attach_executor_thread(&self, _device: DeviceIndex, _state: u64) {}

    /// A fence behind all that was put on the device so far. Told of after each program by backends whose `execute`
    /// returns before the device has computed what it was given: an output is then *told* when it is on its way, and
    /// only what leaves the device waits for it ([`Backend::download`]). `None`: all of it is done.
    fn fence(&self, _device: DeviceIndex) -> Option<Arc<dyn Fence>> {
        None
    }

    /// Waits until the device has finished what `execute` started asynchronously.
    ///
    /// # Errors
    /// Fails where the device is lost.
    fn synchronize(&self, _device: DeviceIndex) -> Result<(), BackendError> {
        Ok(())
    }

    /// Memory in use.
    fn memory(&self, _device: DeviceIndex) -> MemoryInfo {
        MemoryInfo::default()
    }

    /// Has numbers of [`Backend::memory`] begin anew.
    fn reset_memory(&self, _device: DeviceIndex, _what: MemoryReset) {}

    /// How much memory the device has; `None` where the backend cannot tell.
    fn capacity(&self, _device: DeviceIndex) -> Option<Capacity> {
        None
    }

    /// What the device is, for people to read.
    fn device_name(&self, _device: DeviceIndex) -> String {
        self.name().into()
    }
}

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
