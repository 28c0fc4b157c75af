//! A step captured once and replayed without recording it again.
//!
//! While a step is captured it is recorded as usual, and libtorch's side notes which storages and generators it uses.
//! What the step leaves changed, and what it returns, is extracted as one computation whose parameters are bound to the
//! storages it reads: a replay takes what they hold then, runs the program, and puts the results where the step would
//! have put them. Numbers (a learning rate) and everything the host program does besides are those of the capture,
//! except numbers that the caller hands over for each call ([`HostNumbers`]: what an optimiser computes from a step
//! count on the host); whoever captures must know that the others do not change, or capture again.

use std::sync::Arc;

use ltc_backend::HostTensor;
use ltc_core::{Argument, Before, DataCell, Device, Extracted, Storage, TraceValue};
use ltc_ir::{Hash128, Layout, LayoutRef, OwnedView, View};
use ltc_torch_sys::{AsTensor, Hold, Tensor, TensorKind};
use smallvec::SmallVec;

use crate::{
    Error,
    capture_log::{self, cell_of},
    numbers::{HostNumbers, Varying},
};

/// Why a step cannot be replayed; recording it each time stays right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the step cannot be replayed: {0}")]
pub struct NotReplayable(pub String);

const INTERRUPTED: &str = "programs were sent to run while it was captured: by a barrier in it, or by other threads";

const OTHER_READ: &str = "the host reads another value than when it was captured";

impl NotReplayable {
    pub(crate) fn interrupted() -> Self {
        NotReplayable(INTERRUPTED.into())
    }

    pub(crate) fn of_reads() -> Self {
        NotReplayable(OTHER_READ.into())
    }

    /// Whether a replay was taken back because the host would have read something else: another capture may fit.
    pub fn is_other_read(&self) -> bool {
        self.0 == OTHER_READ
    }

    /// Whether another attempt may go better: nothing is wrong with the step itself.
    pub fn is_interruption(&self) -> bool {
        self.0 == INTERRUPTED
    }
}

pub(crate) fn same_data(a: &Option<TraceValue>, cell: &Arc<DataCell>) -> bool {
    a.as_ref().and_then(cell_of).is_some_and(|c| Arc::ptr_eq(&c, cell))
}

/// What a tensor on the device shows of its memory.
pub(crate) fn view_of(t: &impl AsTensor) -> Result<OwnedView, Error> {
    Ok(ltc_torch_sys::storage_of::<Storage, _>(t, |_, view| view.into())?)
}

/// What calls have in common that may run one captured step: dtypes, sizes and strides of their inputs, and what else
/// of a tensor decides how it is recorded (whether it requires a gradient, is conjugated, has hooks). Where an input
/// begins in its memory does not matter, only whether it is all of it.
#[derive(Clone, Debug)]
pub struct Signature(Vec<(OwnedView, bool, TensorKind, Option<u16>)>);

fn fills_memory(storage: &Storage, view: &View<'_>) -> bool {
    let bytes = view.numel() as usize * view.dtype.size_of();
    view.offset == 0 && bytes == storage.nbytes()
}

/// Whether a tensor is all of its memory.
pub(crate) fn is_all_of_memory(t: &impl AsTensor) -> Result<bool, Error> {
    Ok(ltc_torch_sys::storage_of::<Storage, _>(t, |s, view| fills_memory(s, &view))?)
}

/// A tensor that shows the same memory in the same way, and is neither a view of another one nor has a history.
///
/// # Errors
/// Fails for a tensor that is not on the device.
pub fn without_history(t: &impl AsTensor) -> Result<Tensor, Error> {
    let _mode = ltc_torch_sys::InferenceMode::set(ltc_torch_sys::state_of(t).is_inference())?;
    Ok(ltc_torch_sys::alias(t, view_of(t)?.as_view())?)
}

impl Signature {
    /// Of these inputs, all on the device.
    ///
    /// # Errors
    /// Fails for an input that is not on the device.
    pub fn of(inputs: &[impl AsTensor]) -> Result<Self, Error> {
        fn one(t: &impl AsTensor) -> Result<(OwnedView, bool, TensorKind, Option<u16>), Error> {
            let shown = |s: &Storage, view: View<'_>| (OwnedView::from(view), fills_memory(s, &view));
            let (like, fills) = ltc_torch_sys::storage_of(t, shown)?;
            Ok((like, fills, ltc_torch_sys::state_of(t).kind(), crate::device_of(t)))
        }
        Ok(Signature(inputs.iter().map(one).collect::<Result<_, _>>()?))
    }

    /// Whether these inputs have it.
    ///
    /// # Errors
    /// Fails for an input that is not on the device.
    pub fn matches(&self, inputs: &[impl AsTensor]) -> Result<bool, Error> {
        if self.0.len() != inputs.len() {
            return Ok(false);
        }
        for (t, (like, fills, kind, device)) in inputs.iter().zip(&self.0) {
            let same =
                |s: &Storage, view: View<'_>| view.is_laid_out_as(like.as_view()) && *fills == fills_memory(s, &view);
            let is_there = *device == crate::device_of(t) && *kind == ltc_torch_sys::state_of(t).kind();
            if !is_there || !ltc_torch_sys::storage_of(t, same)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// An input of a call: address of its storage, what that holds, and where the input begins in it.
struct Given {
    address: usize,
    value: Option<TraceValue>,
    offset: i64,
}

/// Where a parameter's data comes from at a replay.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// What this storage holds.
    State(usize),
    /// What the storage of this input tensor holds.
    Input(usize),
}

/// What a parameter stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) source: Source,
    /// If the parameter is a slice, the element that it begins at, counted from the beginning of the input, or of the
    /// storage for a [`Source::State`].
    pub(crate) slice_at: Option<i64>,
}

/// A value at the end of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// Output of the program.
    Output(usize),
    /// The unchanged data of a parameter: one of the program's, or one of [`CompiledStep::held`] after them.
    Param(usize),
}

/// A value that the host program read while the step was captured. What the host did next may depend on it.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) end: End,
    pub(crate) found: HostTensor,
    /// What it is and where it is read, for messages.
    pub(crate) at: String,
}

/// Whose memory a result shows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory {
    /// Its own, which holds this.
    New(End),
    /// That of an earlier result.
    Result(usize),
    /// That of an input.
    Input(usize),
    /// A storage the step keeps.
    State(usize),
}

/// A tensor that the step returns: what it shows of whose memory.
#[derive(Debug)]
pub(crate) struct Returns<M> {
    pub(crate) memory: M,
    pub(crate) view: OwnedView,
    /// It was made in inference mode.
    pub(crate) inference: bool,
}

/// A captured step; see the module.
#[derive(Debug)]
pub struct CompiledStep {
    pub(crate) device: Device,
    pub(crate) extracted: Extracted,
    pub(crate) reads: Vec<Read>,
    /// Layouts of parameters that the program does not take, but a replay reads. They are numbered after the program's.
    pub(crate) held: Vec<LayoutRef>,
    /// Storages besides the one read that also held a parameter's data at the capture, each with that parameter. The
    /// graph has one parameter for all of them, so a replay requires that they still hold the same data.
    pub(crate) aliases: Vec<(Source, usize)>,
    pub(crate) storages: Vec<Hold<Storage>>,
    /// Storages the step changes; those of inputs only where the input is all of its memory.
    pub(crate) targets: Vec<(Source, End)>,
    /// Storages that the step made and that somebody else still held when it ended.
    pub(crate) fresh: Vec<usize>,
    pub(crate) inputs: Vec<OwnedView>,
    /// Which inputs share a storage: position of the first with the same one.
    pub(crate) sharing: Vec<usize>,
    /// Per input whether it may begin elsewhere in its storage than at the capture. This holds where two captures with
    /// different beginnings had equal graphs.
    pub(crate) moves: Vec<bool>,
    pub(crate) results: Vec<Returns<Memory>>,
    /// What the host read, in order.
    pub(crate) expected: Vec<Expected>,
    pub(crate) host: HostNumbers,
    pub(crate) varying: Varying,
}

pub(crate) fn sharing(addresses: &[usize]) -> Vec<usize> {
    addresses.iter().map(|a| addresses.iter().position(|b| a == b).unwrap_or_default()).collect()
}

/// Whether memory of one layout has room for what another shows from an element on.
fn holds_slice(whole: &Layout, part: &Layout, offset: i64) -> bool {
    let size = part.dtype().size_of();
    let end = usize::try_from(offset).ok().map(|at| at * size + part.storage_bytes());
    whole.dtype() == part.dtype() && end.is_some_and(|end| end <= whole.storage_bytes())
}

/// What a replay runs on.
struct Bindings {
    numbers: SmallVec<[u64; 8]>,
    /// The value of each parameter, and the element it begins at if the parameter is a slice.
    data: SmallVec<[(TraceValue, Option<i64>); 4]>,
    /// By how many elements the beginning of each input has moved since the capture.
    moved: SmallVec<[i64; 4]>,
}

impl CompiledStep {
    /// Whether the host read the same values in two captures, as far as both read any.
    pub fn reads_like(&self, other: &CompiledStep) -> bool {
        self.other_read(other).is_none()
    }

    /// Whether two captures also ran the same host program. If not, they may be two branches of one step.
    pub fn same_path(&self, other: &CompiledStep) -> bool {
        self.host.program == other.host.program && self.reads_like(other)
    }

    /// The first value that the host read in both captures and that differs between them.
    fn other_read(&self, other: &CompiledStep) -> Option<&Expected> {
        self.expected.iter().zip(&other.expected).find(|(a, b)| a.found != b.found).map(|(a, _)| a)
    }

    /// Learns from an earlier capture whether this one can be replayed: both must be of the same step, with equal
    /// graphs bound to the same storages in the same way, and numbers that are equal or follow from the host's. Tensors
    /// that the step makes anew each time do not count.
    ///
    /// # Errors
    /// Says what differs between them so that this one cannot be replayed.
    pub fn confirm(&mut self, other: &CompiledStep) -> Result<(), NotReplayable> {
        let not = |why: &str| Err(NotReplayable(why.to_owned()));
        if self.host.program != other.host.program || self.host.values.len() != other.host.values.len() {
            return not("the host computes in another way each time");
        }
        if let Some(kept) = other.kept() {
            return Err(NotReplayable(format!("it keeps a tensor that it makes ({kept})")));
        }
        if let Some(read) = self.other_read(other) {
            let advice =
                "return the tensor and read it after the step, or only add, multiply and divide what .item() gives";
            return Err(NotReplayable(format!(
                "it reads a value that changes from call to call ({}): {advice}",
                read.at
            )));
        }
        if self.extracted.graph() != other.extracted.graph() {
            return Err(NotReplayable(format!("two captures recorded different graphs{}", self.difference(other))));
        }
        let varying =
            Varying::between(self.extracted.graph(), [self, other].map(|s| (s.numbers(), &s.host.values[..])))
                .map_err(NotReplayable)?;
        let address = |s: &CompiledStep, i: usize| std::ptr::from_ref::<Storage>(&s.storages[i]) as usize;
        let same_source = |a: Source, b: Source| match (a, b) {
            (Source::State(a), Source::State(b)) => address(self, a) == address(other, b),
            (Source::Input(a), Source::Input(b)) => a == b,
            _ => false,
        };
        let same_read = |(a, b): (&Read, &Read)| a.slice_at == b.slice_at && same_source(a.source, b.source);
        if !self.reads.iter().zip(&other.reads).all(same_read) {
            return not("it reads other tensors each time, or other parts of them");
        }
        let begins = |s: &CompiledStep, result: &Returns<Memory>| match result.memory {
            Memory::Input(i) => result.view.offset - s.inputs[i].offset,
            _ => result.view.offset,
        };
        if self.results.len() != other.results.len()
            || !self.results.iter().zip(&other.results).all(|(a, b)| begins(self, a) == begins(other, b))
        {
            return not("it returns other parts of tensors each time");
        }
        self.moves = self.inputs.iter().zip(&other.inputs).map(|(a, b)| a.offset != b.offset).collect();
        self.varying = varying;
        Ok(())
    }

    /// The first line in which the graphs of two captures differ, and that of the program, for messages; empty where
    /// they do not.
    fn difference(&self, other: &CompiledStep) -> String {
        let (here, there) = (self.extracted.graph().to_string(), other.extracted.graph().to_string());
        let Some((n, (a, b))) = here.lines().zip(there.lines()).enumerate().find(|(_, (a, b))| a != b) else {
            return String::new();
        };
        // The first line holds the parameters; each operation has one.
        let site = n.checked_sub(1).and_then(|n| self.extracted.sites().into_iter().nth(n).flatten());
        let site = site.map_or_else(String::new, |site| format!(" ({site})"));
        format!(": recorded now `{}`{site}, replayed `{}`", a.trim(), b.trim())
    }

    /// Numbers of the step for these of the host.
    fn numbers_for(&self, host: &[u64]) -> Result<SmallVec<[u64; 8]>, NotReplayable> {
        self.varying.numbers_for(host, (self.numbers(), &self.host.values)).map_err(NotReplayable)
    }

    /// Structural hash of the step's graph.
    pub fn hash(&self) -> Hash128 {
        self.extracted.hash()
    }

    /// Whether operators take all numbers of the host that differed in the capture with which this one was
    /// [confirmed](CompiledStep::confirm).
    ///
    /// # Errors
    /// Says that the step may decide by one of them.
    pub(crate) fn uses_numbers_of_host(&self) -> Result<(), NotReplayable> {
        if self.varying.leaves_out(self.host.values.len()) {
            let why = "it is given a number that changes and that no operator takes as it is: it may decide by it";
            return Err(NotReplayable(why.into()));
        }
        Ok(())
    }

    /// Whether the host hands over a zero that was none when the step was captured: optimisers do not do then what they
    /// do for other numbers (momentum, weight decay).
    pub(crate) fn may_decide(&self, host: &[u64]) -> bool {
        let is_zero = |bits: u64| f64::from_bits(bits) == 0.0;
        host.iter().zip(&self.host.values).any(|(&now, &then)| is_zero(now) && !is_zero(then))
    }

    /// Runtime numbers of the step, as recorded.
    pub fn numbers(&self) -> &[u64] {
        self.extracted.numbers()
    }

    /// A tensor that the step made and left behind and that somebody still holds, in words: its layout and the line
    /// that made it. If one is still held after a further step, steps keep the tensors they make (a list of losses),
    /// and a replay would overwrite these.
    fn kept(&self) -> Option<String> {
        let kept = self.fresh.iter().find(|&&i| self.storages[i].is_shared())?;
        let (_, end) = self.targets.iter().find(|(target, _)| matches!(target, Source::State(i) if i == kept))?;
        let (layout, line) = match *end {
            End::Output(o) => {
                (self.extracted.graph().layout(self.extracted.graph().outputs()[o]), self.extracted.site_of_output(o))
            }
            End::Param(p) => (self.extracted.params().iter().chain(&self.held).nth(p)?, None),
        };
        Some(line.map_or_else(|| layout.to_string(), |line| format!("{layout}, {line}")))
    }

    /// Whether it reads and changes nothing besides its inputs.
    pub fn is_closed(&self) -> bool {
        self.storages.is_empty() && self.targets.is_empty()
    }

    /// Compiles the program now rather than at the first replay.
    ///
    /// # Errors
    /// Fails where the backend does not compile it.
    pub fn compile(&self) -> Result<(), Error> {
        Ok(self.extracted.compile()?)
    }

    /// The inputs of a call, if they are like those of the capture.
    fn given(&self, inputs: &[impl AsTensor]) -> Result<Result<SmallVec<[Given; 4]>, NotReplayable>, Error> {
        let not = |why: String| Ok(Err(NotReplayable(why)));
        if inputs.len() != self.inputs.len() {
            return not(format!("{} inputs, captured with {}", inputs.len(), self.inputs.len()));
        }
        let mut given = SmallVec::<[Given; 4]>::new();
        for (i, (t, then)) in inputs.iter().zip(&self.inputs).enumerate() {
            let now = ltc_torch_sys::storage_of::<Storage, _>(t, |s, view| {
                let given =
                    || Given { address: std::ptr::from_ref(s) as usize, value: s.current(), offset: view.offset };
                view.is_laid_out_as(then.as_view()).then(given)
            })?;
            let Some(now) = now else {
                return not(format!("input {i} is {}, captured as {}", view_of(t)?.as_view(), then.as_view()));
            };
            given.push(now);
        }
        let first = |a: &Given| given.iter().position(|b| a.address == b.address);
        if !given.iter().zip(&self.sharing).all(|(a, &then)| first(a) == Some(then)) {
            return not("other inputs share memory than when it was captured".into());
        }
        for (i, then) in self.inputs.iter().enumerate() {
            let moved = |i: usize| given[i].offset - self.inputs[i].offset;
            let first = self.sharing[i];
            if moved(i) != moved(first) || (moved(i) != 0 && !self.moves[first]) {
                return not(format!(
                    "input {i} begins at {} in its memory, captured as {}",
                    given[i].offset,
                    then.as_view()
                ));
            }
        }
        let is_state = |a: &Given| self.storages.iter().any(|h| std::ptr::from_ref::<Storage>(h) as usize == a.address);
        if given.iter().any(is_state) {
            return not("an input is also a tensor the step keeps".into());
        }
        Ok(Ok(given))
    }

    /// What a replay on these inputs, with the host's numbers of now, would run on. `Ok(Err(..))`: an assumption of the
    /// capture does not hold.
    fn bind(&self, inputs: &[impl AsTensor], host: &[u64]) -> Result<Result<Bindings, NotReplayable>, Error> {
        if !self.fresh.iter().all(|&i| self.storages[i].is_shared()) {
            return Ok(Err(NotReplayable(
                "tensors that it left behind are gone (gradients that were dropped outside)".into(),
            )));
        }
        let given = match self.given(inputs)? {
            Ok(given) => given,
            Err(no) => return Ok(Err(no)),
        };
        let numbers = match self.numbers_for(host) {
            Ok(numbers) => numbers,
            Err(no) => return Ok(Err(no)),
        };
        let mut data = SmallVec::<[(TraceValue, Option<i64>); 4]>::new();
        let layouts = self.extracted.params().iter().chain(&self.held);
        for (i, (read, layout)) in self.reads.iter().zip(layouts).enumerate() {
            let (value, begins) = match read.source {
                Source::State(i) => (self.storages[i].current(), 0),
                Source::Input(i) => (given[i].value.clone(), given[i].offset),
            };
            let fits = |v: &TraceValue| match read.slice_at {
                Some(at) => holds_slice(v.layout(), layout, begins + at),
                None => v.layout() == layout,
            };
            match value {
                Some(v) if fits(&v) => data.push((v, read.slice_at.map(|at| begins + at))),
                other => {
                    let now = other.map_or("nothing".into(), |v| v.layout().to_string());
                    return Ok(Err(NotReplayable(format!("tensor {i} it reads holds {now}, captured as {layout}"))));
                }
            }
        }
        let pending = || data.iter().map(|(v, _)| v).filter(|v| v.is_pending());
        if pending().next().is_some() {
            // Sending pending values turns them into data, under the same handles.
            capture_log::send(&self.device, &pending().cloned().collect::<Vec<_>>())?;
        }
        for &(alias, param) in &self.aliases {
            let value = match alias {
                Source::State(i) => self.storages[i].current(),
                Source::Input(i) => given[i].value.clone(),
            };
            let cell = cell_of(&data[param].0).expect("invariant: synced above");
            if !same_data(&value, &cell) {
                return Ok(Err(NotReplayable("two tensors that held the same data no longer do".into())));
            }
        }
        let moved: SmallVec<[i64; 4]> =
            given.iter().zip(&self.inputs).map(|(now, then)| now.offset - then.offset).collect();
        Ok(Ok(Bindings { numbers, data, moved }))
    }

    /// Whether the host would read what it read when the step was captured; it does not where the step failed before.
    /// Waits for what has to be computed for it, by the program with this result.
    fn reads_as_expected(&self, of: Option<&TraceValue>, value: impl Fn(&End) -> TraceValue) -> Result<bool, Error> {
        for expected in &self.expected {
            let value = value(&expected.end);
            let found = match of {
                Some(of) => self.device.download_from(&value, of)?,
                None => Some(self.device.download(&value)?),
            };
            if found.as_ref() != Some(&expected.found) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the step can be replayed on these inputs, with these numbers of the host.
    ///
    /// # Errors
    /// Fails for an input that is not on the device, and where what it still waits for does not compile.
    pub fn fits(&self, inputs: &[impl AsTensor], host: &[u64]) -> Result<bool, Error> {
        Ok(self.bind(inputs, host)?.is_ok())
    }

    /// Replays the step on other inputs, with the host's numbers of now. `Ok(Err(..))`: an assumption of the capture
    /// does not hold, and nothing was done.
    ///
    /// # Errors
    /// As [`CompiledStep::fits`] and [`CompiledStep::compile`]; also where the wait for what the host reads is
    /// interrupted, or is told of an earlier failure.
    pub fn run(&self, inputs: &[impl AsTensor], host: &[u64]) -> Result<Result<Vec<Tensor>, NotReplayable>, Error> {
        // The program may write over a value that nobody else holds, so this function must not keep the inputs' values.
        let Bindings { numbers, data, moved } = match self.bind(inputs, host)? {
            Ok(bindings) => bindings,
            Err(no) => return Ok(Err(no)),
        };
        let results = self.extracted.placeholders();
        let end = |e: &End| match e {
            End::Output(i) => results[*i].clone(),
            End::Param(i) => data[*i].0.clone(),
        };
        let own = |result: &Returns<Memory>| if let Memory::New(e) = &result.memory { Some(end(e)) } else { None };
        let own: SmallVec<[_; 4]> = self.results.iter().map(own).collect();
        let new: SmallVec<[TraceValue; 4]> = self.targets.iter().map(|(_, e)| end(e)).collect();
        let mut before = SmallVec::<[Before; 2]>::new();
        let replace = |target: Source, value: TraceValue| -> Result<Option<TraceValue>, Error> {
            Ok(match target {
                Source::State(i) => self.storages[i].replace(value),
                Source::Input(i) => ltc_torch_sys::storage_of::<Storage, _>(&inputs[i], |s, _| s.replace(value))?,
            })
        };
        // If the step may have to be undone, the old values are held here, so that the program does not write over
        // them.
        let mut kept = SmallVec::<[(Source, TraceValue); 4]>::new();
        for ((target, e), value) in self.targets.iter().zip(new) {
            let old = replace(*target, value)?;
            if !self.expected.is_empty() {
                kept.extend(old.clone().map(|old| (*target, old)));
            }
            if let (&End::Output(output), Some(old)) = (e, old)
                && self.extracted.asks_for(output)
                && let Some(data) = cell_of(&old)
            {
                before.push(Before { output, data, layout: old.layout().clone() });
            }
        }
        let known: SmallVec<[TraceValue; 4]> =
            if self.expected.is_empty() { SmallVec::new() } else { data.iter().map(|(v, _)| v.clone()).collect() };
        // A value that nobody else holds any more is donated: the program may write over it.
        let bound = data.into_iter().take(self.extracted.params().len()).map(|(v, slice_at)| Argument {
            data: cell_of(&v).expect("invariant: synced above"),
            donated: slice_at.is_none() && v.holders() == 1,
            slice_at,
        });
        self.extracted.run_with(bound.collect(), numbers, &results, Some(before))?;
        let read = |e: &End| match e {
            End::Output(i) => results[*i].clone(),
            End::Param(i) => known[*i].clone(),
        };
        match self.reads_as_expected(results.first(), read) {
            Ok(true) => (),
            outcome => {
                for (target, old) in kept {
                    replace(target, old)?;
                }
                // Nobody is told if this run failed. The step is recorded instead: then it need not fail, and if it
                // does, it fails at the call that is to blame.
                results.first().map_or(Ok(()), |of| self.device.discard(of))?;
                return outcome.map(|_| Err(NotReplayable::of_reads()));
            }
        }
        let mut tensors: Vec<Tensor> = Vec::with_capacity(own.len());
        for (value, Returns { memory, view: shown, inference }) in own.into_iter().zip(&self.results) {
            let moved = if let Memory::Input(i) = *memory { moved[i] } else { 0 };
            let _mode = ltc_torch_sys::InferenceMode::set(*inference)?;
            let view = View { offset: shown.offset + moved, ..shown.as_view() };
            tensors.push(match (value, *memory) {
                (Some(value), _) => {
                    let nbytes = value.layout().storage_bytes();
                    ltc_torch_sys::wrap(Storage::with_value(value), nbytes, view, self.device.index())?
                }
                (None, Memory::Result(i)) => ltc_torch_sys::alias(&tensors[i], view)?,
                (None, Memory::Input(i)) => ltc_torch_sys::alias(&inputs[i], view)?,
                (None, Memory::State(i)) => self.storages[i].alias(view)?,
                (None, Memory::New(_)) => unreachable!("invariant: made above"),
            });
        }
        Ok(Ok(tensors))
    }
}
