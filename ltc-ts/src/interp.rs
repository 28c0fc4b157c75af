//! The run loop.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use ltc_backend::{Buffer, ExecError, Executable, Inputs, OutputSink};
use ltc_ir::SiteId;
use ltc_torch_sys::{Held, TorchError};
use smallvec::SmallVec;

use crate::{
    buffer::{TchBuffer, Usage, contents},
    lower::{Program, Step},
};

/// What a program's slot holds while it runs.
enum Slot {
    Empty,
    Value(Held),
    Poisoned(Arc<ExecError>),
}

/// How often mechanisms of the interpreter took effect; for tests and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// Steps run.
    pub steps: u64,
    /// Steps that failed or were skipped because an operand had.
    pub poisoned: u64,
}

/// A program ready to run.
pub(crate) struct TsExecutable {
    program: Program,
    usage: Arc<Usage>,
    steps: Arc<AtomicU64>,
    poisoned: Arc<AtomicU64>,
}

thread_local! {
    /// Slots of the last program of this thread, emptied: a steady loop allocates none.
    static SLOTS: RefCell<Vec<Slot>> = const { RefCell::new(Vec::new()) };
}

impl TsExecutable {
    pub(crate) fn new(program: Program, usage: Arc<Usage>, steps: Arc<AtomicU64>, poisoned: Arc<AtomicU64>) -> Self {
        TsExecutable { program, usage, steps, poisoned }
    }

    fn run_step(&self, step: &Step, slots: &[Slot], numbers: &[u64]) -> Result<SmallVec<[Held; 2]>, StepError> {
        let mut operands: SmallVec<[&Held; 8]> = SmallVec::new();
        for &s in &step.operands {
            match &slots[s as usize] {
                Slot::Value(held) => operands.push(held),
                Slot::Poisoned(error) => return Err(StepError::Inherited(error.clone())),
                Slot::Empty => unreachable!("invariant: operands are defined before use and freed after their last"),
            }
        }
        step.plan.run(&operands, &step.reusable, &numbers[step.numbers.clone()]).map_err(StepError::Own)
    }

    /// Puts a result into its slot and tells the sink if it is an output.
    fn place(&self, slots: &mut [Slot], slot: usize, value: Slot, sink: &mut dyn OutputSink) {
        let Some((output, used_later)) = self.program.outputs[slot] else {
            slots[slot] = value;
            return;
        };
        let (output, buffer) = (output as usize, |held| Buffer::new(TchBuffer::new(held, &self.usage)));
        match value {
            Slot::Value(held) if !used_later => sink.output(output, Ok(buffer(held))),
            Slot::Value(held) => {
                // Both handles count: later steps see that they are not alone and do not write in place.
                let shared = TchBuffer::new(held, &self.usage);
                match shared.share() {
                    Ok(ours) => {
                        slots[slot] = Slot::Value(ours);
                        sink.output(output, Ok(Buffer::new(shared)));
                    }
                    Err(e) => {
                        let error = Arc::new(failure("output", e, ExecError::ELSEWHERE));
                        slots[slot] = Slot::Poisoned(error.clone());
                        sink.output(output, Err(error));
                    }
                }
            }
            Slot::Poisoned(error) => {
                slots[slot] = Slot::Poisoned(error.clone());
                sink.output(output, Err(error));
            }
            Slot::Empty => unreachable!("invariant: every step fills its results"),
        }
    }

    fn run(&self, inputs: Inputs, slots: &mut Vec<Slot>, sink: &mut dyn OutputSink) {
        let program = &self.program;
        slots.clear();
        slots.resize_with(program.slots, || Slot::Empty);
        for (i, input) in inputs.params.into_iter().enumerate() {
            slots[i] = match input.buffer.map(contents) {
                Ok(Ok(held)) => Slot::Value(held),
                Ok(Err(e)) => Slot::Poisoned(Arc::new(failure("input", e, ExecError::ELSEWHERE))),
                Err(error) => Slot::Poisoned(error),
            };
        }
        for &p in &program.unused_params {
            slots[p as usize] = Slot::Empty;
        }
        let mut poisoned = 0;
        for (i, step) in program.steps.iter().enumerate() {
            let first = step.first_result as usize;
            match self.run_step(step, slots, &inputs.numbers) {
                Ok(results) => {
                    // Operands go first, so that a result written in place is the only handle when it is placed.
                    for &s in &step.frees {
                        slots[s as usize] = Slot::Empty;
                    }
                    for (j, held) in results.into_iter().enumerate() {
                        self.place(slots, first + j, Slot::Value(held), sink);
                    }
                }
                Err(e) => {
                    poisoned += 1;
                    let error = match e {
                        StepError::Inherited(error) => error,
                        StepError::Own(e) => Arc::new(failure(step.op.name(), e, i)),
                    };
                    for &s in &step.frees {
                        slots[s as usize] = Slot::Empty;
                    }
                    for j in 0..step.results as usize {
                        self.place(slots, first + j, Slot::Poisoned(error.clone()), sink);
                    }
                }
            }
            // Results nobody uses were placed just now.
            for &s in step.frees.iter().filter(|&&s| s as usize >= first) {
                slots[s as usize] = Slot::Empty;
            }
        }
        slots.clear();
        self.steps.fetch_add(program.steps.len() as u64, Relaxed);
        self.poisoned.fetch_add(poisoned, Relaxed);
    }
}

enum StepError {
    Own(TorchError),
    Inherited(Arc<ExecError>),
}

fn failure(op: &str, e: TorchError, node: usize) -> ExecError {
    ExecError { op: op.to_owned(), class: e.class, message: e.message, node, site: SiteId::default() }
}

impl Executable for TsExecutable {
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink) {
        let mut slots = SLOTS.take();
        self.run(inputs, &mut slots, sink);
        SLOTS.set(slots);
    }

    fn text(&self) -> String {
        self.program.text()
    }

    fn heap_bytes(&self) -> usize {
        // A step with its plan is about a kilobyte of boxed arguments.
        self.program.steps.len() * 1024
    }
}
