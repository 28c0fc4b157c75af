//! Parallel regions: one side of independent steps on another thread, in slots of its own.
//!
//! Slots that only the worker's side touches move to its thread and back. Values that both sides read are shared
//! buffers, as outputs are. What the worker tells its sink is collected and told to the real sink when the worker is
//! done, so outputs come in another order than without a worker, but none is different.

use std::sync::Arc;

use ltc_backend::{Buffer, ExecError, OutputSink};
use ltc_ir::{ErrorClass, LayoutRef};
use ltc_torch_sys::{Pooled, TorchError};

use super::{
    buffer::TchBuffer,
    interp::{Run, RunStats, Slot},
    memory_meter::{Charge, Meter},
    worker::WorkerThread,
};
use crate::program::Program;

/// What a run with parallel regions needs besides.
pub(super) struct Side<'a> {
    pub(super) program: &'a Arc<Program>,
    pub(super) numbers: Arc<[u64]>,
    pub(super) worker_slots: &'a mut Vec<Slot>,
    pub(super) worker: WorkerThread,
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
fn run_on_worker(program: &Program, region: usize, meter: &Arc<Meter>, numbers: &[u64], mut slots: Vec<Slot>) -> Done {
    let (mut told, pooled) = (Told::default(), Pooled::enter());
    // This sink collects all outputs; when both sides have joined, it is known which of them may be told to the real
    // one.
    let mut run = Run::new(program, meter, &mut slots, numbers, &mut told);
    program.parallel_regions[region].worker.iter().for_each(|&i| run.run_instr(&program.instrs[i]));
    let (mut stats, blocks) = (run.stats, pooled.leave());
    (stats.blocks_reused, stats.blocks_new) = (blocks.reused, blocks.fresh);
    Done { slots, told, stats }
}

impl Run<'_> {
    /// All steps.
    pub(super) fn run_with_worker(&mut self, mut side: Side<'_>) {
        let program = side.program;
        let mut at = 0;
        for (f, region) in program.parallel_regions.iter().enumerate() {
            self.run_instrs(at..region.instrs.start);
            self.run_region(f, &mut side);
            at = region.instrs.end;
            self.settle(at);
        }
        self.run_instrs(at..program.instrs.len());
    }

    fn run_region(&mut self, f: usize, side: &mut Side<'_>) {
        let (program, region) = (side.program, &side.program.parallel_regions[f]);
        side.worker_slots.resize_with(program.slots, Slot::default);
        for &slot in &region.moved {
            side.worker_slots[slot as usize] = std::mem::take(&mut self.slots[slot as usize]);
        }
        for (slot, layout) in &region.shared {
            self.lent.extend(matches!(self.slots[*slot as usize], Slot::Own(..)).then_some(*slot));
            side.worker_slots[*slot as usize] = self.share(*slot as usize, layout);
        }
        let (slots, numbers) = (std::mem::take(side.worker_slots), side.numbers.clone());
        let (shared, meter) = (program.clone(), self.meter.clone());
        let back = side.worker.start(move || run_on_worker(&shared, f, &meter, &numbers, slots));
        // With several threads, kernels of this side would take processors from the worker.
        let threads = ltc_torch_sys::num_threads();
        ltc_torch_sys::set_num_threads(1);
        region.main.iter().for_each(|&i| self.run_instr(&program.instrs[i]));
        ltc_torch_sys::set_num_threads(threads);
        match back.recv() {
            Ok(Done { mut slots, told, stats }) => {
                for &slot in &region.moved {
                    self.slots[slot as usize] = std::mem::take(&mut slots[slot as usize]);
                }
                told.failures.iter().for_each(|error| self.fails(error));
                region.shared.iter().for_each(|(slot, _)| slots[*slot as usize] = Slot::Empty);
                *side.worker_slots = slots;
                for (index, result) in told.outputs {
                    match result {
                        Ok(buffer) => self.tell(index as u32, buffer),
                        Err(error) => self.sink.output(index, Err(error)),
                    }
                }
                self.stats += stats;
            }
            Err(_) => {
                for instr in region.worker.iter().map(|&i| &program.instrs[i]) {
                    let message = "internal error: a thread that ran a part of the program is gone".to_string();
                    let error = self.failed(instr, TorchError { class: ErrorClass::Runtime, message });
                    self.fails(&error);
                    program.instr_results(instr).iter().for_each(|r| self.poison(r, &error));
                }
            }
        }
        region.released.iter().for_each(|&slot| self.free(slot as usize));
        std::mem::take(&mut self.lent).into_iter().for_each(|slot| self.own_again(slot as usize));
        self.stats.parallel_regions += 1;
    }

    /// Makes a slot's content shared and returns the other thread's hold on it; both threads only read it meanwhile.
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

    /// Undoes [`Run::share`] for a value that belonged to this run.
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
