//! One execution: inputs in, steps with a second thread or without, outputs out.

use std::{sync::Arc, time::Instant};

use ltc_backend::{ExecError, Inputs, OutputSink};

use super::{
    interp::{Run, RunStats, Slot, input_failure},
    memory_meter::Meter,
    parallel_branches::Side,
    profile::Profile,
    worker::WorkerThread,
};
use crate::program::Program;

/// Memory of a run, kept between runs so that a step allocates nothing of ours.
#[derive(Default)]
pub(crate) struct Frame {
    slots: Vec<Slot>,
    /// Those of the other thread, between parallel regions.
    worker_slots: Vec<Slot>,
}

/// Runs a program, with its parallel regions if there is a thread for them. Reports every output exactly once.
pub(crate) fn run(
    program: &Arc<Program>,
    meter: &Arc<Meter>,
    profile: &Profile,
    frame: &mut Frame,
    inputs: Inputs,
    sink: &mut dyn OutputSink,
    worker: Option<WorkerThread>,
) -> RunStats {
    let stats = RunStats { runs: 1, ..RunStats::default() };
    if let Err(error) = check(program, &inputs) {
        let error = Arc::new(error);
        (0..program.lowered.outputs().len()).for_each(|i| sink.output(i, Err(error.clone())));
        return stats;
    }
    let Inputs { params, mut numbers, .. } = inputs;
    numbers.extend_from_slice(&program.constants);
    let Frame { slots, worker_slots } = frame;
    slots.resize_with(program.slots, Slot::default);
    let mut run = Run::new(program, meter, slots, &numbers, sink);
    run.stats = stats;
    run.settled = program.settled[0];
    run.failed = params.iter().any(|p| p.buffer.is_err());
    run.is_safe();
    for (index, (input, value_use)) in params.into_iter().zip(&program.params).enumerate() {
        run.take_input(index, input, value_use);
    }
    if profile.is_on() {
        for (i, instr) in program.instrs.iter().enumerate() {
            let start = Instant::now();
            run.run_instr(instr);
            // A step takes as long as its place does; one that is lost is told of by whoever reads.
            drop(program.place.wait());
            let took = start.elapsed();
            profile.add(program.instr_name(instr), took);
            run.settle(i + 1);
        }
    } else if let Some(worker) = worker {
        run.run_with_worker(Side { program, numbers: numbers.as_slice().into(), worker_slots, worker });
    } else {
        run.run_instrs(0..program.instrs.len());
    }
    run.settled = u32::MAX;
    run.tell_deferred();
    run.stats
}

/// Whether the inputs fit the program at all.
fn check(program: &Program, inputs: &Inputs) -> Result<(), ExecError> {
    let expected = (program.graph.params().len(), program.graph.number_count());
    let given = (inputs.params.len(), inputs.numbers.len());
    if expected == given {
        return Ok(());
    }
    Err(input_failure(format!(
        "the program takes {} inputs and {} numbers, got {} and {}",
        expected.0, expected.1, given.0, given.1
    )))
}
