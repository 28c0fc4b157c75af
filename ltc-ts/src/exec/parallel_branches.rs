//! Forks: one side of independent steps on another thread, in slots of its own.
//!
//! Slots only the other side touches move there and back; values both read are shared, as outputs are. What the other
//! side tells the sink is told when it is back, so outputs come in another order, but each as before.

use std::sync::Arc;

use ltc_backend::{Buffer, ExecError, OutputSink};
use ltc_ir::{ErrorClass, LayoutRef};
use ltc_torch_sys::{Pooled, TorchError};
use smallvec::SmallVec;

use super::{
    buffer::TchBuffer,
    interp::{Run, RunStats, Slot},
    memory_meter::{Charge, Meter},
    worker::Helper,
};
use crate::program::Program;

/// What a run with forks needs besides.
pub(super) struct Side<'a> {
    pub(super) program: &'a Arc<Program>,
    pub(super) numbers: Arc<[u64]>,
    pub(super) other: &'a mut Vec<Slot>,
    pub(super) helper: Helper,
}

/// Outputs to be told later.
#[derive(Default)]
struct Told {
    outputs: Vec<(usize, Result<Buffer, Arc<ExecError>>)>,
    failures: Vec<Arc<ExecError>>,
}

impl OutputSink for Told {
    fn output(&mut self, index: usize, result: Result<Buffer, Arc<ExecError>>) {
        self.outputs.push((index, result));
    }

    fn failed(&mut self, error: &Arc<ExecError>) {
        self.failures.push(error.clone());
    }
}

/// What the other thread gives back.
struct Done {
    slots: Vec<Slot>,
    told: Told,
    stats: RunStats,
}

/// The other thread's work.
fn there(program: &Program, fork: usize, meter: &Arc<Meter>, numbers: &[u64], mut slots: Vec<Slot>) -> Done {
    let (mut told, pooled) = (Told::default(), Pooled::enter());
    // All is told here; whether it may be told on is known where both sides come together.
    let mut run = Run::new(program, meter, &mut slots, numbers, &mut told);
    program.forks[fork].there.iter().for_each(|&i| run.run_instr(&program.instrs[i]));
    let (mut stats, blocks) = (run.stats, pooled.leave());
    (stats.blocks_reused, stats.blocks_new) = (blocks.reused, blocks.fresh);
    Done { slots, told, stats }
}

impl Run<'_> {
    /// All steps.
    pub(super) fn forked(&mut self, mut side: Side<'_>) {
        let program = side.program;
        let mut at = 0;
        for (f, fork) in program.forks.iter().enumerate() {
            self.run_instrs(at..fork.instrs.start);
            self.fork(f, &mut side);
            at = fork.instrs.end;
            self.settle(at);
        }
        self.run_instrs(at..program.instrs.len());
    }

    fn fork(&mut self, f: usize, side: &mut Side<'_>) {
        let (program, fork) = (side.program, &side.program.forks[f]);
        side.other.resize_with(program.slots, Slot::default);
        for &slot in &fork.lent {
            side.other[slot as usize] = std::mem::take(&mut self.slots[slot as usize]);
        }
        let mut ours: SmallVec<[u32; 8]> = SmallVec::new();
        for (slot, layout) in &fork.shared {
            ours.extend(matches!(self.slots[*slot as usize], Slot::Own(..)).then_some(*slot));
            side.other[*slot as usize] = self.share(*slot as usize, layout);
        }
        let (slots, numbers) = (std::mem::take(side.other), side.numbers.clone());
        let (shared, meter) = (program.clone(), self.meter.clone());
        let back = side.helper.start(move || there(&shared, f, &meter, &numbers, slots));
        // The kernels' own threads would be in the way of the other one.
        let threads = tch::get_num_threads();
        tch::set_num_threads(1);
        fork.here.iter().for_each(|&i| self.run_instr(&program.instrs[i]));
        tch::set_num_threads(threads);
        match back.recv() {
            Ok(Done { mut slots, told, stats }) => {
                told.failures.iter().for_each(|error| self.fails(error));
                for &slot in &fork.lent {
                    self.slots[slot as usize] = std::mem::take(&mut slots[slot as usize]);
                }
                fork.shared.iter().for_each(|(slot, _)| slots[*slot as usize] = Slot::Empty);
                *side.other = slots;
                for (index, result) in told.outputs {
                    match result {
                        Ok(buffer) => self.tell(index as u32, buffer),
                        Err(error) => self.sink.output(index, Err(error)),
                    }
                }
                self.stats += stats;
            }
            Err(_) => {
                for instr in fork.there.iter().map(|&i| &program.instrs[i]) {
                    let message = "internal error: a thread that ran a part of the program is gone".to_string();
                    let error = self.failed(instr, TorchError { class: ErrorClass::Runtime, message });
                    self.fails(&error);
                    program.instr_results(instr).iter().for_each(|r| self.poison(r, &error));
                }
            }
        }
        fork.over.iter().for_each(|&slot| self.free(slot as usize));
        ours.into_iter().for_each(|slot| self.own_again(slot as usize));
        self.stats.forks += 1;
    }

    /// A slot's content for the other thread, which reads it as this one does.
    fn share(&mut self, slot: usize, layout: &LayoutRef) -> Slot {
        let content = std::mem::take(&mut self.slots[slot]);
        let (kept, given) = match content {
            Slot::Own(value, bytes) => {
                let buffer = Buffer::new(TchBuffer::new(value, layout.clone(), Charge::adopt(self.meter, bytes)));
                (Slot::Shared { buffer: buffer.clone(), donated: false }, Slot::Shared { buffer, donated: false })
            }
            Slot::Shared { buffer, donated } => {
                (Slot::Shared { buffer: buffer.clone(), donated }, Slot::Shared { buffer, donated: false })
            }
            Slot::Poisoned(error) => (Slot::Poisoned(error.clone()), Slot::Poisoned(error)),
            Slot::Empty => (Slot::Empty, Slot::Empty),
        };
        self.slots[slot] = kept;
        given
    }

    /// Undoes [`Run::share`] for what was this run's own.
    fn own_again(&mut self, slot: usize) {
        let Slot::Shared { buffer, .. } = std::mem::take(&mut self.slots[slot]) else { return };
        self.slots[slot] = match buffer.into_inner::<TchBuffer>() {
            Ok(inner) => {
                let (held, charge) = inner.into_parts();
                Slot::Own(held, charge.release_to(self.meter).unwrap_or(0))
            }
            Err(buffer) => Slot::Shared { buffer, donated: false },
        };
    }
}
