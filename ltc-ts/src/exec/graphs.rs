//! Programs on a GPU as graphs: a program whose inputs stay at the same addresses is taken down (captured) once, and is
//! one launch from then on (decision record 0025).
//!
//! A program is watched first. Weights that it writes in place lie at the same addresses each time. Inputs that move
//! (batches) are copied to memory of the graph before each launch, and outputs in memory of the graph are copied out of
//! it after the launch. Taking a program down does not run it, and its inputs are lent as tensors over their memory. So
//! a program that cannot be taken down still runs step by step, on inputs that nobody has touched.

use std::{ops::Range, sync::Arc};

use ltc_backend::{Input, Inputs, OutputSink};
use ltc_ir::DType;
use ltc_torch_sys::is_sole_holder;
use parking_lot::Mutex;

use super::{
    gpu,
    interp::RunStats,
    memory_meter::Meter,
    taken_down::{Lies, TakenDown, input_tensor},
};
use crate::{
    program::{InstrKind, Program, as_usize},
    target::Target,
};

/// The first runs of a program are not looked at: values still find their places.
const FIRST: u32 = 2;
/// So many runs in a row have to be alike before a program is taken down.
const ALIKE: u32 = 3;
/// After so many graphs whose inputs moved again, a program is left alone.
const MOST_GRAPHS: u32 = 4;
/// After so many runs that were not alike, it is left alone, too.
const MOST_WATCHED: u32 = 64;
/// Bytes that a graph may copy for each launch that it saves: copying them takes a tenth of the time of a launch.
const COPIED: usize = 256 << 10;
/// A graph may keep this part of a GPU's memory.
const PART_OF_MEMORY: u64 = 8;

/// What has to be the same from run to run.
#[derive(PartialEq, Eq, Debug)]
struct Seen {
    inputs: Vec<Lies>,
    numbers: Vec<u64>,
}

#[derive(Debug)]
enum Phase {
    /// `moves`: inputs that lay elsewhere from one of the runs that were alike to the next.
    Watching {
        last: Option<Seen>,
        alike: u32,
        moves: Vec<bool>,
    },
    Graph(Box<TakenDown>),
    Declined,
}

/// A program on its way to a graph.
#[derive(Debug)]
pub(super) struct Graphs {
    state: Mutex<State>,
    /// Ranges of the numbers of steps that are no kernels of ours. A graph has these numbers built in, because they
    /// cannot be replaced in it, so it fits only runs with the same ones.
    fixed: Vec<Range<usize>>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Inputs that were not where a graph had them.
    moves: Vec<bool>,
    graphs: u32,
    watched: u32,
}

impl Phase {
    fn watching(inputs: usize) -> Phase {
        Phase::Watching { last: None, alike: 0, moves: vec![false; inputs] }
    }
}

/// One thread of a process takes something down at a time.
static TAKING: Mutex<()> = Mutex::new(());

impl Graphs {
    /// `None` for programs that have no graph: elsewhere than on a GPU, with draws, or too large.
    pub(super) fn of(program: &Program, target: &Target) -> Option<Graphs> {
        let wanted = target.config.gpu.graphs && !target.place.is_cpu() && !program.sync_steps;
        if !wanted || program.instrs.len() < 2 {
            return None;
        }
        let layouts = program.lowered.params().iter().chain(program.results.iter().map(|r| &r.layout));
        let draws = layouts.into_iter().any(|layout| layout.dtype() == DType::RngState);
        let total = target.place.memory().ok()?.total;
        if draws || peak(program) as u64 > total / PART_OF_MEMORY {
            return None;
        }
        let is_fixed = |kind: &InstrKind| !matches!(kind, InstrKind::Fused(fused) if fused.gpu.is_some());
        let fixed = program.instrs.iter().filter(|i| is_fixed(&i.kind)).map(|i| as_usize(&i.numbers));
        let fixed = fixed.filter(|range| !range.is_empty()).collect();
        let moves = vec![false; program.lowered.params().len()];
        let phase = Phase::watching(moves.len());
        Some(Graphs { state: Mutex::new(State { phase, moves, graphs: 0, watched: 0 }), fixed })
    }

    /// Launches the program's graph, if it has one for these inputs and numbers; `false` means that nothing has run and
    /// the caller has to run the steps one by one.
    pub(super) fn run(
        &self,
        (program, target): (&Arc<Program>, &Target),
        meter: &Arc<Meter>,
        inputs: &Inputs,
        sink: &mut dyn OutputSink,
        stats: &mut RunStats,
    ) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        let state = &mut *state;
        // A run on failed inputs tells nothing about later runs, so it is neither watched nor counted.
        let are_there = |(index, input)| input_tensor(program, index, input).is_some();
        if inputs.params.len() != state.moves.len() || !inputs.params.iter().enumerate().all(are_there) {
            return false;
        }
        if let Phase::Watching { .. } = state.phase {
            self.watch(state, program, target, inputs, stats);
        }
        let Phase::Graph(graph) = &mut state.phase else { return false };
        let is_same = |range: &Range<usize>| program_numbers(program, inputs, range) == &graph.numbers[range.clone()];
        if self.fixed.iter().all(is_same) && graph.fits(program, inputs, &mut state.moves) {
            let ran = graph.run(program, meter, inputs, sink).unwrap_or_else(|why| {
                tracing::warn!("a graph on {} was refused, its program runs without: {}", program.place, why.message);
                (state.phase, stats.graphs_declined) = (Phase::Declined, 1);
                false
            });
            if ran {
                (stats.runs, stats.graph_runs, stats.steps) = (1, 1, program.instrs.len() as u64);
            }
            return ran;
        }
        let again = state.graphs < MOST_GRAPHS;
        state.phase = if again { Phase::watching(state.moves.len()) } else { Phase::Declined };
        stats.graphs_declined += u64::from(!again);
        stats.graph_misses += 1;
        false
    }

    /// Compares a run with the one before, and takes the program down if they have been alike.
    fn watch(&self, state: &mut State, program: &Arc<Program>, target: &Target, inputs: &Inputs, stats: &mut RunStats) {
        let State { phase, moves: moved_before, graphs, watched } = state;
        let Phase::Watching { last, alike, moves } = phase else { return };
        *watched += 1;
        let seen = self.seen(program, inputs).filter(|_| *watched > FIRST);
        match (&last, &seen) {
            (Some(last), Some(seen)) if last.numbers == seen.numbers => {
                *alike += 1;
                for ((moves, now), before) in moves.iter_mut().zip(&seen.inputs).zip(&last.inputs) {
                    *moves |= now != before;
                }
            }
            _ => {
                *alike = 0;
                moves.clone_from(moved_before);
            }
        }
        *last = seen;
        if *alike < ALIKE {
            if *watched >= MOST_WATCHED {
                (*phase, stats.graphs_declined) = (Phase::Declined, 1);
            }
            return;
        }
        let Some(_alone) = TAKING.try_lock() else { return };
        let lies = last.take().map(|seen| seen.inputs).unwrap_or_default();
        let taken = gpu::graph_driver(&target.config.gpu)
            .ok_or_else(|| "there is no driver with graphs".to_owned())
            .and_then(|driver| TakenDown::of(program, driver, inputs, &lies, moves));
        *phase = match taken {
            // This graph would copy more than it saves. The program is watched again instead of being declined: inputs
            // that moved during these runs, such as weights, may stay at their addresses in later ones.
            Ok(graph) if graph.copied_bytes(program) > program.instrs.len() * COPIED => Phase::watching(moves.len()),
            Ok(graph) => {
                (*graphs, stats.graphs) = (*graphs + 1, 1);
                Phase::Graph(Box::new(graph))
            }
            Err(why) => {
                tracing::debug!("a program on {} has no graph: {why}", program.place);
                stats.graphs_declined = 1;
                Phase::Declined
            }
        };
    }

    /// The addresses of the inputs and the fixed numbers of a run; `None` if an input has failed or does not have the
    /// layout that the program takes.
    fn seen(&self, program: &Program, inputs: &Inputs) -> Option<Seen> {
        let lies = |(index, input): (usize, &Input)| {
            let tensor = input_tensor(program, index, input)?;
            Some(Lies { address: tensor.data_ptr() as usize, is_given: input.donated && is_sole_holder(tensor) })
        };
        let places = inputs.params.iter().enumerate().map(lies).collect::<Option<_>>()?;
        let numbers = self.fixed.iter().flat_map(|range| program_numbers(program, inputs, range).iter().copied());
        Some(Seen { inputs: places, numbers: numbers.collect() })
    }
}

/// The numbers of a step: a range of the run's numbers, or of the program's constants, which are indexed after them.
fn program_numbers<'a>(program: &'a Program, inputs: &'a Inputs, range: &Range<usize>) -> &'a [u64] {
    let given = inputs.numbers.len();
    if range.start >= given {
        return program.constants.get(range.start - given..range.end - given).unwrap_or_default();
    }
    inputs.numbers.get(range.clone()).unwrap_or_default()
}

/// The most bytes of the program's own values that exist at the same time.
fn peak(program: &Program) -> usize {
    let (mut held, mut now, mut most) = (vec![0; program.slots], 0, 0);
    for instr in &program.instrs {
        for result in program.instr_results(instr) {
            now += result.bytes;
            held[result.slot as usize] += result.bytes;
        }
        most = most.max(now);
        for operand in program.instr_operands(instr).iter().filter(|operand| operand.last) {
            now -= std::mem::take(&mut held[operand.slot as usize]);
        }
    }
    most
}
