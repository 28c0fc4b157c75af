//! The run loop.
//!
//! One pass over the steps. Outputs are told to the sink as soon as their step is done; a value is let go at its last
//! use. A failed step poisons its results, what depends on them fails with it, and all else goes on.

use std::{ops::Range, sync::Arc};

use ltc_backend::{Buffer, ExecError, Input, LargeValue, OutputSink};
use ltc_ir::{ErrorClass, SiteId, ValueId};
use ltc_kernels::Ran;
use ltc_torch_sys::{Held, OneThread, TorchError, empty_at, on_one_thread};
use smallvec::SmallVec;

use super::{
    buffer::{TchBuffer, address, wrap},
    launch::{run_bernoulli, run_fused, run_pool},
    launch_graph::Notes,
    memory_meter::Meter,
};
use crate::{
    fusion::FusedKernelStep,
    program::{Instr, InstrKind, InstrResult, Program, ValueUse, as_usize},
};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What executions did, summed; for tests and reports.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct RunStats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl RunStats {
            /// Each count with its name.
            pub fn counts(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }

        impl std::ops::AddAssign for RunStats {
            fn add_assign(&mut self, other: RunStats) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counts! {
    /// Executions.
    runs,
    /// Steps gone through.
    steps,
    /// Steps that failed or depended on a failure.
    poisoned,
    /// Written operands whose memory became the result's.
    in_place,
    /// Written operands that had to be copied first.
    copies,
    /// Donated inputs taken over with their memory.
    donations_taken,
    /// Fused kernels run.
    kernels,
    /// Those of them run as machine code.
    compiled,
    /// Those that began as loops and ended as machine code, which was there by then.
    tiered_up,
    /// Matrix products that were too small for several threads.
    small_products,
    /// Executions with nothing that gains by several threads.
    single_threaded,
    /// Executions on numbers the rewritten program was not made for: the graph ran as recorded.
    guard_misses,
    /// Executions on a GPU whose kernels had no code yet: the graph ran as recorded.
    cold,
    /// Programs taken down as graphs of a GPU's.
    graphs,
    /// Programs that were watched and get no graph: something in them forbids it, or they are never alike.
    graphs_declined,
    /// Executions by a graph.
    graph_runs,
    /// Executions whose inputs or numbers were not those of the program's graph.
    graph_misses,
    /// Large blocks of memory that had been kept from earlier runs.
    blocks_reused,
    /// Large blocks of memory the system was asked for.
    blocks_new,
    /// Times steps ran on two threads.
    parallel_regions,
}

/// What a slot holds.
#[derive(Default)]
pub(super) enum Slot {
    /// Nothing yet, or nothing any more.
    #[default]
    Empty,
    /// A value nobody outside this run can reach, and the bytes counted for it.
    Own(Held, usize),
    /// A value others hold too: an input, or an output already told.
    Shared { buffer: Buffer, donated: bool },
    /// The failure of what should have made it.
    Poisoned(Arc<ExecError>),
}

/// One execution.
pub(super) struct Run<'a> {
    pub(super) program: &'a Program,
    pub(super) meter: &'a Arc<Meter>,
    pub(super) slots: &'a mut [Slot],
    pub(super) numbers: &'a [u64],
    pub(super) sink: &'a mut dyn OutputSink,
    pub(super) stats: RunStats,
    /// First node that can still fail ([`Program::settled`]).
    pub(super) settled: u32,
    /// Outputs that are not told to the sink yet, because a node before them can still fail and undo them.
    pub(super) deferred: Vec<(u32, Buffer)>,
    /// Something failed, or came in as a failure.
    pub(super) failed: bool,
    /// Slots whose values belong to this run and are shared with the other thread of a parallel region meanwhile.
    pub(super) lent: SmallVec<[u32; 8]>,
    /// The program is being taken down.
    pub(super) notes: Option<&'a Notes>,
}

/// How many values an error names that says there was no memory.
const LARGEST: usize = 5;

pub(super) fn input_failure(message: String) -> ExecError {
    ExecError::new("ltc::data", ErrorClass::Runtime, message)
}

impl<'a> Run<'a> {
    pub(super) fn new(
        program: &'a Program,
        meter: &'a Arc<Meter>,
        slots: &'a mut [Slot],
        numbers: &'a [u64],
        sink: &'a mut dyn OutputSink,
    ) -> Self {
        let (stats, deferred) = (RunStats::default(), Vec::new());
        let (settled, failed, lent, notes) = (u32::MAX, false, SmallVec::new(), None);
        Run { program, meter, slots, numbers, sink, stats, settled, deferred, failed, lent, notes }
    }
}

impl Run<'_> {
    /// Some steps, one after the other.
    pub(super) fn run_instrs(&mut self, range: Range<usize>) {
        let program = self.program;
        for (i, instr) in program.instrs[range.clone()].iter().enumerate() {
            self.run_instr(instr);
            self.settle(range.start + i + 1);
        }
    }

    /// Notes that all steps before `next` are done, and tells the outputs that nothing can undo any more.
    pub(super) fn settle(&mut self, next: usize) {
        let settled = self.program.settled[next];
        if settled != self.settled {
            self.settled = settled;
            self.tell_deferred();
            self.is_safe();
        }
    }

    /// Tells the sink once nothing has failed and nothing can fail any more.
    pub(super) fn is_safe(&mut self) {
        if self.settled == u32::MAX && !self.failed {
            self.sink.safe();
        }
    }

    /// Tells the sink of a failure, and at the first one also which inputs are still there.
    pub(super) fn fails(&mut self, error: &Arc<ExecError>) {
        let is_first = !std::mem::replace(&mut self.failed, true);
        self.sink.failed(error);
        if is_first {
            for (input, slot) in self.slots[..self.program.params.len()].iter().enumerate() {
                match slot {
                    // Only shared inputs still have their old contents: the run may have written to those it owns.
                    Slot::Shared { buffer, .. } if !self.lent.contains(&(input as u32)) => {
                        self.sink.still_there(input, buffer);
                    }
                    _ => {}
                }
            }
        }
    }

    pub(super) fn tell(&mut self, output: u32, buffer: Buffer) {
        if self.program.made_at[output as usize] <= self.settled {
            self.sink.output(output as usize, Ok(buffer));
        } else {
            self.deferred.push((output, buffer));
        }
    }

    pub(super) fn tell_deferred(&mut self) {
        for (output, buffer) in std::mem::take(&mut self.deferred) {
            self.tell(output, buffer);
        }
    }

    pub(super) fn take_input(&mut self, index: usize, input: Input, value_use: &ValueUse) {
        let layout = &self.program.lowered.params()[index];
        let wrong = |got: &str| Arc::new(input_failure(format!("input {index} must be {layout}, got {got}")));
        let value = input.buffer.and_then(|buffer| match buffer.get::<TchBuffer>() {
            Some(inner) if inner.layout() == layout => Ok(buffer),
            Some(inner) => Err(wrong(&inner.layout().to_string())),
            None => Err(wrong("a buffer of another backend")),
        });
        for &output in self.program.outputs(value_use) {
            match &value {
                Ok(buffer) => self.tell(output, buffer.clone()),
                Err(error) => self.sink.output(output as usize, Err(error.clone())),
            }
        }
        if value_use.used {
            self.slots[index] = match value {
                Ok(buffer) => Slot::Shared { buffer, donated: input.donated },
                Err(error) => Slot::Poisoned(error),
            };
        }
    }

    pub(super) fn run_instr(&mut self, instr: &Instr) {
        let program = self.program;
        let operands = program.instr_operands(instr);
        for operand in operands.iter().filter(|o| o.reusable) {
            self.claim(operand.slot as usize);
        }
        if let InstrKind::Fused(fused) = &instr.kind
            && operands.iter().any(|o| matches!(self.slots[o.slot as usize], Slot::Poisoned(_)))
        {
            return self.run_unpoisoned_outputs(instr, fused);
        }
        let before = self.written_addresses(instr);
        let mut outcome = self.call(instr);
        if program.sync_steps {
            outcome = outcome.and_then(|values| match program.place.wait() {
                Ok(()) => Ok(values),
                Err(error) => Err(self.failed(instr, error)),
            });
        }
        self.stats.steps += 1;
        self.stats.kernels +=
            u64::from(matches!(instr.kind, InstrKind::Fused(_) | InstrKind::Bernoulli(_) | InstrKind::MaxPool(_)));
        match outcome {
            Ok(values) => {
                self.account_writes(instr, &before, &values);
                // New values are counted before old ones are let go: that is how high memory really rises.
                for (value, result) in values.into_iter().zip(program.instr_results(instr)) {
                    self.store(value, result);
                }
            }
            Err(error) => {
                self.fails(&error);
                self.stats.poisoned += 1;
                program.instr_results(instr).iter().for_each(|r| self.poison(r, &error));
            }
        }
        operands.iter().filter(|o| o.last).for_each(|o| self.free(o.slot as usize));
    }

    /// Makes a donated input our own if nobody else holds it by now.
    fn claim(&mut self, slot: usize) {
        if !matches!(self.slots[slot], Slot::Shared { donated: true, .. }) {
            return;
        }
        let Slot::Shared { buffer, .. } = std::mem::take(&mut self.slots[slot]) else { return };
        self.slots[slot] = match buffer.into_inner::<TchBuffer>() {
            Ok(inner) => {
                self.stats.donations_taken += 1;
                let (held, charge) = inner.into_parts();
                Slot::Own(held, charge.release_to(self.meter).unwrap_or(0))
            }
            Err(buffer) => Slot::Shared { buffer, donated: false },
        };
    }

    /// The step's own work: values, or the failure of the step or of one of its operands.
    fn call(&mut self, instr: &Instr) -> Result<SmallVec<[Held; 2]>, Arc<ExecError>> {
        let operands = self.program.instr_operands(instr);
        let mut held: SmallVec<[&Held; 8]> = SmallVec::with_capacity(operands.len());
        let mut reusable: SmallVec<[bool; 8]> = SmallVec::with_capacity(operands.len());
        let mut poison: Option<&Arc<ExecError>> = None;
        for operand in operands {
            match &self.slots[operand.slot as usize] {
                Slot::Own(value, _) => {
                    held.push(value);
                    reusable.push(operand.reusable);
                }
                Slot::Shared { buffer, .. } => {
                    held.push(buffer.get::<TchBuffer>().ok_or_else(|| self.missing(instr))?.held());
                    reusable.push(false);
                }
                // Of several failures the first one's is passed on.
                Slot::Poisoned(error) => poison = [poison, Some(error)].into_iter().flatten().min_by_key(|e| e.node),
                Slot::Empty => return Err(self.missing(instr)),
            }
        }
        if let Some(error) = poison {
            return Err(error.clone());
        }
        let numbers = &self.numbers[as_usize(&instr.numbers)];
        let mut by = Ran::Loops;
        let values = match &instr.kind {
            InstrKind::Boxed(plan)
            | InstrKind::Materialize(plan)
            | InstrKind::Alloc(plan)
            | InstrKind::CopySlice(plan) => plan.run(&held, &reusable, numbers),
            InstrKind::Product(plan) => {
                self.stats.small_products += 1;
                on_one_thread(OneThread::Products, || plan.run(&held, &reusable, numbers))
            }
            InstrKind::Bernoulli(plan) => match f64::from_bits(numbers[0]) {
                p @ 0.0..=1.0 => run_bernoulli(p, held[0], self.program.instr_results(instr)),
                // libtorch refuses the probability, in its own words.
                _ => plan.run(&held, &reusable, numbers),
            },
            InstrKind::MaxPool(pool) => run_pool(pool, held[0], self.program.instr_results(instr)),
            InstrKind::Fused(fused) => {
                let layouts = self.program.instr_results(instr).iter().map(|r| &r.layout);
                let notes = self.notes.map(|notes| (notes, as_usize(&instr.numbers)));
                run_fused((fused, self.program.place), &held, &reusable, (numbers, notes), layouts).map(
                    |(values, ran)| {
                        by = ran;
                        values
                    },
                )
            }
        };
        self.stats.compiled += u64::from(by == Ran::Compiled);
        self.stats.tiered_up += u64::from(by == Ran::Both);
        let values = values.map_err(|e| self.failed(instr, e))?;
        let expected = instr.results.len();
        if values.len() != expected {
            let message = format!("gave {} results, recorded were {expected}", values.len());
            return Err(self.failed(instr, TorchError { class: ErrorClass::Runtime, message }));
        }
        Ok(values)
    }

    /// A kernel some of whose operands have failed: the results that do not depend on them are made all the same.
    fn run_unpoisoned_outputs(&mut self, instr: &Instr, fused: &FusedKernelStep) {
        self.failed = true;
        let (program, graph) = (self.program, &self.program.lowered);
        let operands = program.instr_operands(instr);
        let error_of = |i: u32| match &self.slots[operands[i as usize].slot as usize] {
            Slot::Poisoned(error) => Some(error.clone()),
            _ => None,
        };
        let failures: Vec<Option<Arc<ExecError>>> = program
            .instr_results(instr)
            .iter()
            .map(|r| {
                // A value that the kernel writes in several pieces (slots are equal) depends on all of them.
                let copies = (0..fused.results.len()).filter(|&i| program.instr_results(instr)[i].slot == r.slot);
                let needs = |i: u32| copies.clone().any(|p| fused.depends(graph, p, |j| j == i));
                (0..operands.len() as u32).filter(|&i| needs(i)).filter_map(error_of).min_by_key(|e| e.node)
            })
            .collect();
        self.stats.poisoned += 1;
        // If all results depend on failed operands, the kernel is not run and no memory is asked for.
        let made = failures.iter().any(Option::is_none).then(|| {
            self.stats.steps += 1;
            self.run_on_stand_ins(instr, fused).map_err(|e| self.failed(instr, e))
        });
        let (values, error) = match made {
            Some(Ok(values)) => (values, None),
            Some(Err(error)) => (SmallVec::new(), Some(error)),
            None => (SmallVec::new(), None),
        };
        error.iter().for_each(|error| self.fails(error));
        let mut values = values.into_iter();
        for (result, failure) in program.instr_results(instr).iter().zip(failures) {
            match (values.next(), failure.or_else(|| error.clone())) {
                (_, Some(error)) => self.poison(result, &error),
                (Some(value), None) => self.store(value, result),
                (None, None) => {}
            }
        }
        operands.iter().filter(|o| o.last).for_each(|o| self.free(o.slot as usize));
    }

    /// A kernel's results, with zeros in the place of operands that failed.
    fn run_on_stand_ins(&self, instr: &Instr, fused: &FusedKernelStep) -> Result<SmallVec<[Held; 2]>, TorchError> {
        let (program, graph) = (self.program, &self.program.lowered);
        let operands = program.instr_operands(instr);
        let there = |slot: u32| match &self.slots[slot as usize] {
            Slot::Own(value, _) => Some(value),
            Slot::Shared { buffer, .. } => buffer.get::<TchBuffer>().map(TchBuffer::held),
            Slot::Poisoned(_) | Slot::Empty => None,
        };
        let there: Vec<Option<&Held>> = operands.iter().map(|o| there(o.slot)).collect();
        let zeros = |(there, &v): (&Option<&Held>, &ValueId)| match there {
            Some(_) => Ok(None),
            None => {
                let mut zeros = empty_at(program.place, graph.layout(v))?;
                zeros.zero()?;
                Ok(Some(Held::Tensor(zeros)))
            }
        };
        let zeros = there.iter().zip(&fused.operands).map(zeros).collect::<Result<Vec<_>, TorchError>>()?;
        let held: Vec<&Held> = there.iter().zip(&zeros).filter_map(|(there, zeros)| there.or(zeros.as_ref())).collect();
        let layouts = program.instr_results(instr).iter().map(|r| &r.layout);
        run_fused((fused, program.place), &held, &vec![false; held.len()], (self.numbers, None), layouts)
            .map(|(values, _)| values)
    }

    pub(super) fn failed(&self, instr: &Instr, error: TorchError) -> Arc<ExecError> {
        let (node, TorchError { class, message }) = (instr.node as usize, error);
        let op = self.program.lowered.nodes()[node].op().name();
        let mut error = ExecError::new(op, class, message).at(self.recorded_node(node));
        if class == ErrorClass::OutOfMemory {
            error.largest = self.largest_before(instr);
        }
        Arc::new(error)
    }

    fn recorded_node(&self, node: usize) -> usize {
        self.program.provenance.get(node).map_or(node, |&n| n as usize)
    }

    /// The largest values there are before a step: those that later steps use, and outputs, which whoever asked for
    /// them holds.
    fn largest_before(&self, instr: &Instr) -> Vec<LargeValue> {
        let (program, graph) = (self.program, &self.program.lowered);
        let is_there = |slot: u32| matches!(self.slots[slot as usize], Slot::Own(..) | Slot::Shared { .. });
        let inputs = graph.params().iter().enumerate().filter(|(i, _)| is_there(*i as u32)).map(|(_, layout)| {
            let (bytes, what) = (layout.storage_bytes(), format!("an input, {layout}"));
            LargeValue { bytes, what, node: ExecError::ELSEWHERE, site: SiteId::default() }
        });
        let earlier = program.instrs.iter().take_while(|i| !std::ptr::eq(*i, instr));
        let made = earlier.flat_map(|i| program.instr_results(i).iter().map(move |r| (i, r)));
        let made = made.filter(|(_, r)| is_there(r.slot) || !program.outputs(&r.value_use).is_empty()).map(|(i, r)| {
            let what = format!("{}, {}", graph.nodes()[i.node as usize].op().name(), r.layout);
            LargeValue { bytes: r.bytes, what, node: self.recorded_node(i.node as usize), site: SiteId::default() }
        });
        let mut all: Vec<LargeValue> = inputs.chain(made).filter(|v| v.bytes > 0).collect();
        all.sort_by_key(|v| std::cmp::Reverse(v.bytes));
        all.truncate(LARGEST);
        all
    }

    /// An operand slot without a value: a mistake of the lowering, reported instead of aborting.
    fn missing(&self, instr: &Instr) -> Arc<ExecError> {
        let message = "internal error: an operand was freed before its last use".to_string();
        self.failed(instr, TorchError { class: ErrorClass::Runtime, message })
    }

    /// Where the operands lie that a step writes.
    fn written_addresses(&self, instr: &Instr) -> SmallVec<[Option<usize>; 2]> {
        let operands = self.program.instr_operands(instr);
        let lies = |&(operand, _): &(u32, u32)| match &self.slots[operands[operand as usize].slot as usize] {
            Slot::Own(value, _) => address(value),
            Slot::Shared { buffer, .. } => buffer.get::<TchBuffer>().and_then(|b| address(b.held())),
            Slot::Empty | Slot::Poisoned(_) => None,
        };
        self.program.instr_writes(instr).iter().map(lies).collect()
    }

    /// Counts writes in place and copies.
    fn account_writes(&mut self, instr: &Instr, before: &[Option<usize>], values: &[Held]) {
        let operands = self.program.instr_operands(instr);
        for (&(operand, result), &before) in self.program.instr_writes(instr).iter().zip(before) {
            let (Some(before), Some(after)) = (before, address(&values[result as usize])) else { continue };
            if before != after {
                // A kernel that cannot take its operand's memory copies nothing: it writes elsewhere.
                self.stats.copies += u64::from(!matches!(instr.kind, InstrKind::Fused(_)));
                continue;
            }
            self.stats.in_place += 1;
            if let Slot::Own(_, bytes) = &mut self.slots[operands[operand as usize].slot as usize] {
                // The result's bytes are about to be counted, and the memory is one: return the operand's first.
                self.meter.sub(std::mem::take(bytes));
            }
        }
    }

    fn store(&mut self, value: Held, result: &InstrResult) {
        let outputs = self.program.outputs(&result.value_use);
        if outputs.is_empty() {
            if result.value_use.used {
                self.meter.add(result.bytes);
                self.put(result.slot, Slot::Own(value, result.bytes));
            }
            return;
        }
        let buffer = wrap(value, &result.layout, self.meter, result.bytes);
        for &output in outputs {
            self.tell(output, buffer.clone());
        }
        if result.value_use.used {
            self.put(result.slot, Slot::Shared { buffer, donated: false });
        } else {
            self.free(result.slot as usize);
        }
    }

    /// Fills a slot, in which a value may lie that this one takes over.
    fn put(&mut self, slot: u32, content: Slot) {
        self.free(slot as usize);
        self.slots[slot as usize] = content;
    }

    pub(super) fn poison(&mut self, result: &InstrResult, error: &Arc<ExecError>) {
        for &output in self.program.outputs(&result.value_use) {
            self.sink.output(output as usize, Err(error.clone()));
        }
        if result.value_use.used {
            self.put(result.slot, Slot::Poisoned(error.clone()));
        } else {
            self.free(result.slot as usize);
        }
    }

    pub(super) fn free(&mut self, slot: usize) {
        if let Slot::Own(value, bytes) = std::mem::take(&mut self.slots[slot]) {
            drop(value);
            self.meter.sub(bytes);
        }
    }
}
