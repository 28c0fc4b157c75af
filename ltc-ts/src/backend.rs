//! The contract, implemented: devices, transfers, compiling, executing.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use ltc_backend::{
    Backend, BackendError, Buffer, DeviceIndex, ExecError, Executable, HostTensor, Inputs, MemoryInfo, Narrows,
    OutputSink, RunCost,
};
use ltc_ir::{DType, ErrorClass, Graph, Layout, LayoutRef, SiteId, passes::Switches};
use ltc_torch_sys::{Generator, Held, Narrow, Pooled, came_along, on_one_thread, pool_stats, set_pool_limit};
use parking_lot::Mutex;
use tch::Tensor;

use crate::{
    buffer::{TchBuffer, tensor_from_bytes, tensor_to_bytes},
    cost::{self, Cost},
    helper::{Helper, Trial},
    interp::{self, Frame, RunStats},
    kernels::{Jit, Paused},
    memory::Meter,
    profile::{Profile, StepTime},
    program::Program,
};

/// Which operators run in fused kernels of ours, instead of libtorch's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fusion {
    /// None.
    Off,
    /// Those whose results equal libtorch's in every bit, such as plain arithmetic.
    Exact,
    /// All there are kernels for. Transcendental functions may differ from libtorch's in the last places.
    #[default]
    Full,
}

impl std::str::FromStr for Fusion {
    type Err = ();

    /// `0` (or `off`), `exact`, `1` (or `on`).
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.trim() {
            "0" | "off" | "false" => Ok(Fusion::Off),
            "exact" => Ok(Fusion::Exact),
            "1" | "on" | "true" => Ok(Fusion::Full),
            _ => Err(()),
        }
    }
}

/// How a [`TsBackend`] is set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TsConfig {
    /// How many devices there are. All of them are the CPU, each with its own executor thread and its own count of
    /// memory.
    pub devices: u16,
    /// Let steps write in place where nobody can tell.
    pub reuse: bool,
    /// Which operators run in fused kernels.
    pub fusion: Fusion,
    /// Whether these become machine code.
    pub jit: Jit,
    /// Which whole-graph rewrites may apply ([`crate::rewrite_names`]); those that are not exact only with
    /// [`Fusion::Full`].
    pub rewrites: Switches,
    /// Bytes of free memory kept for the next run; 0: none, libtorch asks the system each time. The pool is the
    /// process's, and the backend made last says how much it keeps.
    pub pool_bytes: usize,
    /// Bytes a program may have alive at once, as far as the order of its steps and making cheap values again can help;
    /// 0: steps run as recorded ([`crate::MemoryPlan`]).
    pub budget_bytes: usize,
    /// Run on one thread what is too small for several, though libtorch would start them: programs of small kernels,
    /// and small matrix products in others; and programs beside which their caller is at work, if that asks for it
    /// ([`ltc_backend::Inputs::narrow`]). Only with [`Fusion::Full`], as sums may have other bits then; which they have
    /// follows from the program, never from measured times.
    pub narrow: bool,
    /// Threads libtorch's kernels use on an executor thread; `None` takes libtorch's own number.
    pub threads: Option<u16>,
}

impl Default for TsConfig {
    fn default() -> Self {
        TsConfig {
            devices: 1,
            reuse: true,
            fusion: Fusion::Full,
            jit: Jit::On,
            rewrites: Switches::default(),
            pool_bytes: 1 << 30,
            budget_bytes: 0,
            narrow: true,
            threads: None,
        }
    }
}

impl TsConfig {
    pub(crate) fn narrows(&self) -> bool {
        self.narrow && self.fusion == Fusion::Full
    }
}

/// Runs graphs with libtorch.
#[derive(Debug)]
pub struct TsBackend {
    config: TsConfig,
    meters: Vec<Arc<Meter>>,
    stats: Arc<Mutex<RunStats>>,
    profile: Arc<Profile>,
}

impl TsBackend {
    /// A backend with this many devices and the default settings.
    pub fn new(devices: u16) -> Self {
        TsBackend::with_config(TsConfig { devices, ..TsConfig::default() })
    }

    /// A backend with these settings.
    pub fn with_config(config: TsConfig) -> Self {
        // Without a pool everything works as well, with libtorch's allocator.
        let _ = set_pool_limit(config.pool_bytes);
        TsBackend {
            meters: (0..config.devices).map(|_| Arc::default()).collect(),
            config,
            stats: Arc::default(),
            profile: Arc::default(),
        }
    }

    fn meter(&self, device: DeviceIndex) -> Result<&Arc<Meter>, BackendError> {
        self.meters.get(usize::from(device.0)).ok_or_else(|| BackendError::NoSuchDevice {
            index: device.0,
            backend: self.name().into(),
            count: self.meters.len(),
        })
    }

    /// [`Backend::compile`] with its own type, which also tells what its executions did.
    pub fn compile_program(&self, device: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<TsExecutable>, BackendError> {
        let meter = self.meter(device)?.clone();
        let program = Program::lower(graph, &self.config)?;
        let (profile, total) = (self.profile.clone(), self.stats.clone());
        Ok(Arc::new(TsExecutable::new(program, self.config.clone(), meter, profile, total)))
    }

    /// A buffer around a host tensor, without copying it. It may start anywhere in its storage; from now on nobody may
    /// write to it.
    pub fn wrap(&self, device: DeviceIndex, host: Tensor) -> Result<Buffer, BackendError> {
        let meter = self.meter(device)?;
        let (layout, bytes) = ltc_torch_sys::host_bytes(&host)
            .map(|(layout, bytes)| (LayoutRef::new(layout), bytes.len()))
            .ok_or_else(|| BackendError::BufferMismatch("only dense host tensors can become buffers".into()))?;
        Ok(interp::wrap(Held::Tensor(host), &layout, meter, bytes))
    }

    /// A buffer around a generator state.
    pub fn wrap_generator(&self, device: DeviceIndex, state: Generator) -> Result<Buffer, BackendError> {
        let layout = LayoutRef::new(Layout::contiguous(DType::RngState, &[]));
        Ok(interp::wrap(Held::Generator(state), &layout, self.meter(device)?, 0))
    }

    /// What all programs of this backend did.
    pub fn run_stats(&self) -> RunStats {
        *self.stats.lock()
    }

    /// Starts or stops timing the steps of all programs.
    pub fn set_profiling(&self, on: bool) {
        self.profile.switch(on);
    }

    /// The steps timed since the last call, those that took longest first.
    pub fn take_profile(&self) -> Vec<StepTime> {
        self.profile.take()
    }

    /// Forgets the highest memory use so far.
    pub fn reset_peak_memory(&self, device: DeviceIndex) -> Result<(), BackendError> {
        self.meter(device).map(|m| m.reset_peak())
    }
}

impl Backend for TsBackend {
    fn name(&self) -> &str {
        "ts"
    }

    fn device_count(&self) -> usize {
        self.meters.len()
    }

    fn compile(&self, device: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        Ok(self.compile_program(device, graph)?)
    }

    fn upload(&self, device: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError> {
        let meter = self.meter(device)?;
        let tensor = tensor_from_bytes(&host.layout, &host.bytes)?;
        Ok(interp::wrap(Held::Tensor(tensor), &host.layout, meter, host.bytes.len()))
    }

    fn has_slices(&self) -> bool {
        true
    }

    fn slice(
        &self,
        device: DeviceIndex,
        buffer: &Buffer,
        layout: &LayoutRef,
        offset: i64,
    ) -> Result<Buffer, BackendError> {
        let base = buffer.get::<TchBuffer>().map(TchBuffer::held);
        let Some(Held::Tensor(base)) = base else {
            return Err(BackendError::BufferMismatch("not a tensor of this backend".into()));
        };
        let part = ltc_torch_sys::host_part(base, layout, offset);
        let part = part.map_err(|e| BackendError::BufferMismatch(e.message))?;
        // Its memory is counted as the buffer's.
        Ok(interp::wrap(Held::Tensor(part), layout, self.meter(device)?, 0))
    }

    fn download(&self, device: DeviceIndex, buffer: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        self.meter(device)?;
        let tensor = buffer.get::<TchBuffer>().and_then(TchBuffer::tensor);
        let tensor = tensor.ok_or_else(|| BackendError::BufferMismatch("not a tensor of this backend".into()))?;
        Ok(HostTensor { layout: layout.clone(), bytes: tensor_to_bytes(&tensor, layout)? })
    }

    /// libtorch keeps a number of threads per thread, on which bits of results depend.
    fn thread_state(&self) -> u64 {
        self.config.threads.map_or_else(|| tch::get_num_threads().max(1) as u64, u64::from)
    }

    fn attach_executor_thread(&self, _device: DeviceIndex, state: u64) {
        tch::set_num_threads(i32::try_from(state).unwrap_or(1));
    }

    /// CPU kernels are done when they return, so there is nothing to wait for.
    fn synchronize(&self, device: DeviceIndex) -> Result<(), BackendError> {
        self.meter(device).map(drop)
    }

    fn memory(&self, device: DeviceIndex) -> MemoryInfo {
        let info = self.meter(device).map(|m| m.info()).unwrap_or_default();
        MemoryInfo { cached: pool_stats().cached, ..info }
    }
}

/// The threads of this crate, idle, and kept so: for the time of a fork.
pub struct HeldThreads {
    compiler: Paused,
    _branches: Helper,
}

impl HeldThreads {
    /// Waits for what they are doing.
    pub fn take() -> Self {
        // The branches' first: a program holds it and may queue kernels.
        let _branches = Helper::hold();
        HeldThreads { compiler: Paused::take(), _branches }
    }

    /// In a forked child, where they do not exist: new ones are started when they are wanted.
    pub fn begin_anew(&mut self) {
        self.compiler.begin_anew();
    }
}

/// A compiled graph.
pub struct TsExecutable {
    program: Arc<Program>,
    config: TsConfig,
    /// The program of the graph as recorded, for numbers a rewritten one was not made for. Made when they come.
    as_recorded: OnceLock<Result<Arc<Program>, BackendError>>,
    /// Whether forks pay.
    trial: Trial,
    meter: Arc<Meter>,
    state: Mutex<State>,
    profile: Arc<Profile>,
    /// The backend's sum over all programs.
    total: Arc<Mutex<RunStats>>,
}

/// What changes from run to run.
struct State {
    frame: Frame,
    stats: RunStats,
    /// What a run costs, as estimated when so many kernels were machine code.
    cost: Cost,
    compiled: u64,
}

impl TsExecutable {
    fn new(
        program: Program,
        config: TsConfig,
        meter: Arc<Meter>,
        profile: Arc<Profile>,
        total: Arc<Mutex<RunStats>>,
    ) -> Self {
        let (frame, stats) = (Frame::default(), RunStats::default());
        TsExecutable {
            state: Mutex::new(State { frame, stats, cost: cost::of(&program), compiled: 0 }),
            trial: Trial::default(),
            program: Arc::new(program),
            config,
            as_recorded: OnceLock::new(),
            meter,
            profile,
            total,
        }
    }

    fn as_recorded(&self) -> Result<&Arc<Program>, Arc<ExecError>> {
        let plain = || TsConfig { rewrites: Switches::none(), ..self.config.clone() };
        let lower = || Program::lower(self.program.graph(), &plain()).map(Arc::new);
        self.as_recorded.get_or_init(lower).as_ref().map_err(|e| {
            let (op, class, message) = ("compile".into(), ErrorClass::Runtime, e.to_string());
            Arc::new(ExecError { op, class, message, node: ExecError::ELSEWHERE, site: SiteId::default() })
        })
    }

    /// Whether it may run on one thread where libtorch would use several.
    fn narrows(&self) -> bool {
        self.config.narrows() && self.program.forks() == 0
    }

    /// The lowered graph.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What the executions so far did.
    pub fn run_stats(&self) -> RunStats {
        self.state.lock().stats
    }
}

impl Executable for TsExecutable {
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink) {
        // Taken out for the run: no lock is held while libtorch runs, and a second run at once would make its own.
        let (mut frame, wide) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.frame), state.cost.wide)
        };
        let (suits, narrow) = (self.program.suits(&inputs.numbers), inputs.narrow);
        let program = if suits { Ok(&self.program) } else { self.as_recorded() };
        let pooled = Pooled::enter();
        let run = || match program {
            Ok(program) => {
                let forks = program.forks() > 0 && !self.profile.is_on() && tch::get_num_threads() > 1;
                let helper = (forks && self.trial.next()).then(Helper::take).flatten();
                let (forked, start) = (helper.is_some(), forks.then(Instant::now));
                let stats = interp::run(program, &self.meter, &self.profile, &mut frame, inputs, sink, helper);
                start.into_iter().for_each(|start| self.trial.took(forked, start.elapsed()));
                RunStats { unsuited: u64::from(!suits), ..stats }
            }
            Err(error) => {
                (0..self.program.graph().outputs().len()).for_each(|i| sink.output(i, Err(error.clone())));
                RunStats { runs: 1, unsuited: 1, ..RunStats::default() }
            }
        };
        let narrow = (narrow || suits && !wide) && self.narrows() || came_along();
        let mut stats = if narrow { on_one_thread(Narrow::Kernels, run) } else { run() };
        stats.narrow += u64::from(narrow);
        let blocks = pooled.leave();
        (stats.blocks_reused, stats.blocks_new) =
            (stats.blocks_reused + blocks.reused, stats.blocks_new + blocks.fresh);
        let mut state = self.state.lock();
        state.frame = frame;
        state.stats += stats;
        if stats.compiled > state.compiled {
            (state.compiled, state.cost) = (stats.compiled, cost::of(&self.program));
        }
        drop(state);
        *self.total.lock() += stats;
    }

    fn resized(&self, graph: &Arc<Graph>) -> Option<Result<Arc<dyn Executable>, BackendError>> {
        let program = match self.program.resized(graph, &self.config)? {
            Ok(program) => program,
            Err(error) => return Some(Err(error)),
        };
        let (meter, profile, total) = (self.meter.clone(), self.profile.clone(), self.total.clone());
        Some(Ok(Arc::new(TsExecutable::new(program, self.config.clone(), meter, profile, total))))
    }

    fn cost(&self) -> Option<RunCost> {
        let cost = self.state.lock().cost;
        let threads = if cost.wide { usize::try_from(tch::get_num_threads()).ok()? } else { 1 };
        // A configured number is the executor thread's alone; and a thread that came along into a forked child has no
        // others.
        let is_same = threads == 1 || !came_along() && self.config.threads.is_none_or(|n| usize::from(n) == threads);
        let narrows = if self.narrows() { cost.narrows(threads) } else { Narrows::Never };
        is_same.then_some(RunCost { time: cost.time, threads, narrows })
    }

    fn text(&self) -> String {
        self.program.text()
    }

    fn heap_bytes(&self) -> usize {
        self.program.heap_bytes()
    }
}
