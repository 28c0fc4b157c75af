//! A program that was taken down: its graph, where that has its inputs, and where its outputs come from.

use std::{ops::Range, sync::Arc};

use ltc_backend::{Buffer, ExecError, Input, Inputs, OutputSink};
use ltc_ir::{Layout, LayoutRef};
use ltc_kernels::cuda::{Graph, GraphDriver};
use ltc_torch_sys::{Held, Tensor, TorchError, copy_all, empty_at, is_sole_holder, part_of};

use super::{
    buffer::{TchBuffer, wrap},
    interp::{Run, Slot},
    launch_graph::{Notes, Varying, launch_graph, lent, take_down},
    memory_meter::Meter,
};
use crate::program::Program;

/// Where a graph has an input.
#[derive(Debug)]
enum InputAt {
    /// Where it lies. `is_given`: and may be written there.
    At { address: usize, is_given: bool },
    /// In memory of the graph's, to which it is copied.
    Copied(Tensor),
}

/// Where an output comes from.
#[derive(Debug)]
enum Source {
    /// It is an input, or part of its memory from this element on.
    Input { index: usize, layout: LayoutRef, offset: i64 },
    /// Memory of the graph's, from which it is copied.
    Own { tensor: Tensor, layout: LayoutRef },
}

/// A program's graph.
#[derive(Debug)]
pub(super) struct TakenDown {
    graph: Graph,
    inputs: Vec<InputAt>,
    outputs: Vec<Source>,
    varying: Vec<Varying>,
    /// What it was given last, with the program's own.
    pub(super) numbers: Vec<u64>,
}

/// Keeps what a program gives while it is taken down.
#[derive(Default)]
struct Kept {
    outputs: Vec<Option<Buffer>>,
    failure: Option<Arc<ExecError>>,
}

impl InputAt {
    /// The address, and whether the program may have what lies there.
    fn lies(&self) -> (usize, bool) {
        match self {
            InputAt::At { address, is_given } => (*address, *is_given),
            InputAt::Copied(own) => (own.data_ptr() as usize, false),
        }
    }
}

/// Where what was given for an output comes from.
fn source(output: Option<Buffer>, inputs: &[InputAt], layouts: &[LayoutRef]) -> Result<Source, String> {
    let output = output.ok_or("an output was not given")?;
    let output = output.get::<TchBuffer>().ok_or("an output is another backend's")?;
    let (layout, Held::Tensor(tensor)) = (output.layout().clone(), output.held()) else {
        return Err("an output is a generator".into());
    };
    let at = tensor.data_ptr() as usize;
    let within = |(input, layout): (&InputAt, &LayoutRef)| {
        let begin = input.lies().0;
        (begin..begin + layout.storage_bytes()).contains(&at)
    };
    if let Some(index) = inputs.iter().zip(layouts).position(within) {
        let (bytes, size) = (at - inputs[index].lies().0, layout.dtype().size_of());
        if layouts[index].dtype() != layout.dtype() || bytes % size != 0 {
            return Err("an output is an input's memory as another dtype".into());
        }
        return Ok(Source::Input { index, layout, offset: (bytes / size) as i64 });
    }
    if overlaps(&layout) {
        return Err(format!("elements of an output lie on each other: {layout}"));
    }
    Ok(Source::Own { tensor: tensor.shallow_clone(), layout })
}

/// What an output shows of an input: the input itself, if that is all of it.
fn shown(input: &Input, layout: &LayoutRef, offset: i64) -> Result<Buffer, TorchError> {
    let missing = || TorchError::runtime("an input of a graph is gone");
    let buffer = input.buffer.as_ref().map_err(|_| missing())?;
    let inner = buffer.get::<TchBuffer>().ok_or_else(missing)?;
    if inner.layout() == layout && offset == 0 {
        return Ok(buffer.clone());
    }
    let Held::Tensor(tensor) = inner.held() else { return Err(missing()) };
    let part = part_of(tensor, layout, offset)?;
    Ok(wrap(Held::Tensor(part), layout, inner.meter(), layout.storage_bytes()))
}

/// Whether elements lie on each other, so that they cannot be copied to.
fn overlaps(layout: &Layout) -> bool {
    layout.storage_bytes() < layout.numel() as usize * layout.dtype().size_of()
}

impl OutputSink for Kept {
    fn output(&mut self, index: usize, result: Result<Buffer, Arc<ExecError>>) {
        match result {
            Ok(buffer) => self.outputs[index] = Some(buffer),
            Err(error) => self.failure = Some(error),
        }
    }
}

/// The tensor of an input, if it fits.
pub(super) fn input_tensor<'a>(program: &Program, index: usize, input: &'a Input) -> Option<&'a Tensor> {
    let buffer = input.buffer.as_ref().ok()?.get::<TchBuffer>()?;
    match buffer.held() {
        Held::Tensor(tensor) if buffer.layout() == &program.lowered.params()[index] => Some(tensor),
        _ => None,
    }
}

/// Where an input lies, and whether the program may have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lies {
    pub(super) address: usize,
    pub(super) is_given: bool,
}

impl TakenDown {
    /// Takes a program down over these inputs, which it neither reads nor writes.
    ///
    /// # Errors
    /// Says what of it cannot be taken down.
    pub(super) fn of(
        program: &Arc<Program>,
        driver: &'static GraphDriver,
        inputs: &Inputs,
        lies: &[Lies],
        moves: &[bool],
    ) -> Result<TakenDown, String> {
        let text = |e: TorchError| e.message;
        let (place, layouts) = (program.place, program.lowered.params());
        if moves.iter().zip(layouts).any(|(&moves, layout)| moves && overlaps(layout)) {
            return Err("elements of an input that moves lie on each other".into());
        }
        let have = |((lies, &moves), layout): ((&Lies, &bool), &LayoutRef)| match moves {
            true => empty_at(place, layout).map(InputAt::Copied),
            false => Ok(InputAt::At { address: lies.address, is_given: lies.is_given }),
        };
        let places: Vec<InputAt> =
            lies.iter().zip(moves).zip(layouts).map(have).collect::<Result<_, _>>().map_err(text)?;
        let numbers: Vec<u64> = inputs.numbers.iter().chain(&program.constants).copied().collect();
        let notes = Notes::new(driver);
        // Not counted: what is allocated from here on is the graph's.
        let meter = Arc::new(Meter::default());
        let mut held = Vec::new();
        let lend = |(index, (at, layout)): (usize, (&InputAt, &LayoutRef))| {
            let tensor = match at {
                InputAt::Copied(own) => Some(own),
                InputAt::At { .. } => input_tensor(program, index, &inputs.params[index]),
            };
            let tensor = tensor.ok_or_else(|| TorchError::runtime("an input does not fit"))?;
            let (tensor, is_given) = (lent(tensor, place, layout)?, at.lies().1);
            // What is not the program's to write has another holder, as in any run: also a view of it is not written.
            held.extend((!is_given).then(|| tensor.shallow_clone()));
            Ok(Input { buffer: Ok(wrap(Held::Tensor(tensor), layout, &meter, 0)), donated: is_given })
        };
        let lent: Vec<Input> =
            places.iter().zip(layouts).enumerate().map(lend).collect::<Result<_, _>>().map_err(text)?;
        let mut kept = Kept { outputs: vec![None; program.graph.outputs().len()], failure: None };
        let taking = place.take_down().map_err(text)?;
        let taken = take_down(driver, place, || {
            let mut slots: Vec<Slot> = (0..program.slots).map(|_| Slot::default()).collect();
            let mut run = Run::new(program, &meter, &mut slots, &numbers, &mut kept);
            run.notes = Some(&notes);
            for (index, (input, value_use)) in lent.into_iter().zip(&program.params).enumerate() {
                run.take_input(index, input, value_use);
            }
            run.run_instrs(0..program.instrs.len());
            run.settled = u32::MAX;
            run.tell_deferred();
        });
        drop((taking, held));
        if let Some(failure) = kept.failure {
            return Err(failure.to_string());
        }
        let (graph, ()) = taken.map_err(|e| e.to_string())?;
        let varying = notes.finish().ok_or("a launch is not where it was put")?;
        let outputs = kept.outputs.into_iter().map(|o| source(o, &places, layouts)).collect::<Result<_, _>>()?;
        Ok(TakenDown { graph, inputs: places, outputs, varying, numbers })
    }

    /// Bytes of inputs and outputs that are copied.
    pub(super) fn copied_bytes(&self, program: &Program) -> usize {
        let copied = |(at, layout): (&InputAt, &LayoutRef)| match at {
            InputAt::Copied(_) => layout.storage_bytes(),
            InputAt::At { .. } => 0,
        };
        let own = |source: &Source| match source {
            Source::Own { layout, .. } => layout.storage_bytes(),
            Source::Input { .. } => 0,
        };
        let inputs: usize = self.inputs.iter().zip(program.lowered.params()).map(copied).sum();
        inputs + self.outputs.iter().map(own).sum::<usize>()
    }

    /// Whether inputs are where the graph has them; notes those that are not.
    pub(super) fn fits(&self, program: &Program, inputs: &Inputs, moves: &mut [bool]) -> bool {
        let mut fit = inputs.numbers.len() + program.constants.len() == self.numbers.len();
        for (index, (input, place)) in inputs.params.iter().zip(&self.inputs).enumerate() {
            let Some(tensor) = input_tensor(program, index, input) else { return false };
            if let InputAt::At { address, is_given } = place {
                let lies = tensor.data_ptr() as usize == *address;
                let is_there = lies && (!is_given || input.donated && is_sole_holder(tensor));
                moves[index] |= !is_there;
                fit &= is_there;
            }
        }
        fit
    }

    /// Puts the graph on the stream of its place, with these inputs, which fit; or says that it did not, as there is no
    /// memory for the outputs.
    ///
    /// # Errors
    /// If the graph was refused. Nothing has run then.
    pub(super) fn run(
        &mut self,
        program: &Program,
        meter: &Arc<Meter>,
        inputs: &Inputs,
        sink: &mut dyn OutputSink,
    ) -> Result<bool, TorchError> {
        let own = |source: &Source| match source {
            Source::Own { layout, .. } => Some(empty_at(program.place, layout)),
            Source::Input { .. } => None,
        };
        let Ok(results) = self.outputs.iter().filter_map(own).collect::<Result<Vec<Tensor>, _>>() else {
            return Ok(false);
        };
        // No step can fail any more: those that look at numbers and layouts did when it was taken down.
        sink.safe();
        let is_given = |(input, at): (&Input, &InputAt)| match at {
            InputAt::At { is_given: true, .. } => input.buffer.as_ref().is_ok_and(|buffer| buffer.holders() == 1),
            _ => true,
        };
        if !inputs.params.iter().zip(&self.inputs).all(is_given) {
            return Ok(false);
        }
        self.copy_in(program, inputs)?;
        self.renumber(&inputs.numbers)?;
        launch_graph(&self.graph, program.place)?;
        match self.copy_out(program, &results) {
            Ok(()) => self.tell(meter, inputs, results, sink),
            Err(error) => {
                let error = Arc::new(ExecError::new("a graph", error.class, error.message));
                sink.failed(&error);
                (0..self.outputs.len()).for_each(|i| sink.output(i, Err(error.clone())));
            }
        }
        Ok(true)
    }

    /// Copies inputs to where the graph has them.
    fn copy_in(&self, program: &Program, inputs: &Inputs) -> Result<(), TorchError> {
        let (mut to, mut from): (Vec<&Tensor>, Vec<&Tensor>) = (Vec::new(), Vec::new());
        for (index, (input, at)) in inputs.params.iter().zip(&self.inputs).enumerate() {
            if let (InputAt::Copied(own), Some(tensor)) = (at, input_tensor(program, index, input)) {
                to.push(own);
                from.push(tensor);
            }
        }
        copy_all(program.place, &to, &from)
    }

    /// Copies what the graph has made to memory that it does not write again.
    fn copy_out(&self, program: &Program, results: &[Tensor]) -> Result<(), TorchError> {
        let own = self.outputs.iter().filter_map(|source| match source {
            Source::Own { tensor, .. } => Some(tensor),
            Source::Input { .. } => None,
        });
        copy_all(program.place, &results.iter().collect::<Vec<_>>(), &own.collect::<Vec<_>>())
    }

    /// Gives launches of ours the numbers of this run, which are behind them the program's own.
    fn renumber(&mut self, numbers: &[u64]) -> Result<(), TorchError> {
        let given = numbers.len();
        let changed = |range: &Range<usize>| {
            let range = range.start.min(given)..range.end.min(given);
            numbers[range.clone()] != self.numbers[range]
        };
        let changed: Vec<bool> = self.varying.iter().map(|v| changed(&v.numbers)).collect();
        self.numbers[..given].copy_from_slice(numbers);
        for (varying, _) in self.varying.iter().zip(changed).filter(|(_, changed)| *changed) {
            varying.renumber(&mut self.graph, &self.numbers)?;
        }
        Ok(())
    }

    /// Tells the outputs.
    fn tell(&self, meter: &Arc<Meter>, inputs: &Inputs, results: Vec<Tensor>, sink: &mut dyn OutputSink) {
        let mut results = results.into_iter();
        for (i, source) in self.outputs.iter().enumerate() {
            let output = match source {
                Source::Own { layout, .. } => results
                    .next()
                    .map(|tensor| wrap(Held::Tensor(tensor), layout, meter, layout.storage_bytes()))
                    .ok_or_else(|| TorchError::runtime("an output of a graph has no memory")),
                Source::Input { index, layout, offset } => shown(&inputs.params[*index], layout, *offset),
            };
            let failed = |e: TorchError| Arc::new(ExecError::new("a graph", e.class, e.message));
            sink.output(i, output.map_err(failed));
        }
    }
}
