//! A compiled program as the contract has it: what is kept between its runs, and what they cost.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use ltc_backend::{AbTrial, BackendError, ExecError, Executable, Inputs, OutputSink, RunCost, SingleThread};
use ltc_ir::{ErrorClass, Graph};
use ltc_torch_sys::{OneThread, Pooled, came_along, on_one_thread};
use parking_lot::Mutex;

use super::{
    gpu::GpuProgram,
    graphs::Graphs,
    interp::RunStats,
    memory_meter::Meter,
    profile::Profile,
    run::{self, Frame},
    worker::WorkerThread,
};
use crate::{
    program::{
        Program,
        cost::{self, Cost},
    },
    target::Target,
};

/// A compiled graph.
pub struct TsExecutable {
    program: Arc<Program>,
    target: Target,
    /// Its kernels, where they are a GPU's.
    gpu: Option<GpuProgram>,
    /// The program on its way to a graph, where it may have one.
    graphs: Option<Graphs>,
    /// A program of the graph as recorded, without rewrites. It runs for runtime numbers that the rewritten program was
    /// not made for, and while kernels of a GPU have no code yet. It is made when it is first needed.
    as_recorded: OnceLock<Result<Arc<Program>, BackendError>>,
    /// Whether parallel regions pay.
    trial: AbTrial<1>,
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
    /// The estimated cost of a run, from the time when `compiled` kernels were machine code.
    cost: Cost,
    compiled: u64,
}

impl TsExecutable {
    pub(crate) fn new(
        program: Program,
        target: Target,
        meter: Arc<Meter>,
        profile: Arc<Profile>,
        total: Arc<Mutex<RunStats>>,
    ) -> Self {
        let (frame, stats) = (Frame::default(), RunStats::default());
        TsExecutable {
            state: Mutex::new(State { frame, stats, cost: cost::of(&program), compiled: 0 }),
            trial: AbTrial::default(),
            gpu: GpuProgram::of(&program, target.place, target.config.jit, &target.config.gpu),
            graphs: Graphs::of(&program, &target),
            program: Arc::new(program),
            target,
            as_recorded: OnceLock::new(),
            meter,
            profile,
            total,
        }
    }

    fn as_recorded(&self) -> Result<&Arc<Program>, Arc<ExecError>> {
        let lower = || Program::lower_for(self.program.graph(), &self.target.plain()).map(Arc::new);
        let failed = |e: &BackendError| Arc::new(ExecError::new("compile", ErrorClass::Runtime, e.to_string()));
        self.as_recorded.get_or_init(lower).as_ref().map_err(failed)
    }

    /// Whether it may run on one thread where libtorch would use several.
    fn may_use_one_thread(&self) -> bool {
        self.target.config.may_use_one_thread() && self.program.parallel_regions() == 0
    }

    /// Keeps the memory of a run, and what it did.
    fn note(&self, frame: Frame, stats: RunStats) {
        let mut state = self.state.lock();
        state.frame = frame;
        state.stats += stats;
        if stats.compiled > state.compiled {
            (state.compiled, state.cost) = (stats.compiled, cost::of(&self.program));
        }
        drop(state);
        *self.total.lock() += stats;
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
        // The frame is taken out, so that no lock is held while libtorch runs. A concurrent run makes its own frame.
        let (mut frame, multi_threaded) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.frame), state.cost.multi_threaded)
        };
        let (guards_hold, single_threaded) = (self.program.guards_hold(&inputs.numbers), inputs.single_threaded);
        // If the place cannot be entered, the first step fails and tells why, so the error is ignored here.
        let _here = self.target.place.enter();
        let is_ready = self.gpu.as_ref().is_none_or(|gpu| gpu.is_ready(&self.program));
        let mut by_graph = RunStats::default();
        if let Some(graphs) = self.graphs.as_ref().filter(|_| guards_hold && is_ready && !self.profile.is_on())
            && graphs.run((&self.program, &self.target), &self.meter, &inputs, sink, &mut by_graph)
        {
            return self.note(frame, by_graph);
        }
        let program = if guards_hold && is_ready { Ok(&self.program) } else { self.as_recorded() };
        let pooled = Pooled::enter();
        let run = || match program {
            Ok(program) => {
                let in_parallel =
                    program.parallel_regions() > 0 && !self.profile.is_on() && ltc_torch_sys::num_threads() > 1;
                let forks = in_parallel && self.trial.next(|[[alone], [forked]]| forked < alone);
                let worker = forks.then(WorkerThread::take).flatten();
                let (with_worker, start) = (worker.is_some(), in_parallel.then(Instant::now));
                let stats = run::run(program, &self.meter, &self.profile, &mut frame, inputs, sink, worker);
                start.into_iter().for_each(|start| self.trial.note(with_worker, 0, start.elapsed()));
                RunStats { guard_misses: u64::from(!guards_hold), cold: u64::from(!is_ready), ..stats }
            }
            Err(error) => {
                (0..self.program.graph().outputs().len()).for_each(|i| sink.output(i, Err(error.clone())));
                RunStats { runs: 1, guard_misses: 1, ..RunStats::default() }
            }
        };
        let single_threaded =
            (single_threaded || guards_hold && !multi_threaded) && self.may_use_one_thread() || came_along();
        let mut stats = if single_threaded { on_one_thread(OneThread::Kernels, run) } else { run() };
        stats.single_threaded += u64::from(single_threaded);
        stats += by_graph;
        let blocks = pooled.leave();
        self.meter.note_cached(blocks.cached);
        (stats.blocks_reused, stats.blocks_new) =
            (stats.blocks_reused + blocks.reused, stats.blocks_new + blocks.fresh);
        self.note(frame, stats);
    }

    fn respecialised(&self, graph: &Arc<Graph>) -> Option<Result<Arc<dyn Executable>, BackendError>> {
        let program = match self.program.respecialised(graph, &self.target)? {
            Ok(program) => program,
            Err(error) => return Some(Err(error)),
        };
        let (meter, profile, total) = (self.meter.clone(), self.profile.clone(), self.total.clone());
        Some(Ok(Arc::new(TsExecutable::new(program, self.target.clone(), meter, profile, total))))
    }

    fn cost(&self) -> Option<RunCost> {
        let cost = self.state.lock().cost;
        if cost.waits || !self.target.place.is_cpu() {
            return None;
        }
        let threads = if cost.multi_threaded { ltc_torch_sys::num_threads() } else { 1 };
        // A configured number of threads holds on the executor thread only, and a thread that a forked child inherited
        // has no kernel threads. Results could differ in these cases, so there is no cost to decide by.
        let is_same =
            threads == 1 || !came_along() && self.target.config.threads.is_none_or(|n| usize::from(n) == threads);
        let single_thread = if self.may_use_one_thread() { cost.single_thread(threads) } else { SingleThread::Never };
        is_same.then_some(RunCost { time: cost.time, threads, single_thread })
    }

    fn text(&self) -> String {
        self.program.text()
    }

    fn heap_bytes(&self) -> usize {
        self.program.heap_bytes()
    }
}
