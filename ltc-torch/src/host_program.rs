//! Programs over host tensors: what a compiler of graphs on the CPU calls (`torch.compile(backend="ltc")`).
//!
//! A graph is recorded once, on tensors of the device that show the host tensors' memory ([`HostRecording::lend`]). The
//! computation is then run on other host tensors of the same layouts, on the calling thread, without copies of inputs
//! or results.

use std::sync::Arc;

use ltc_backend::{Buffer, DeviceIndex};
use ltc_core::{DataCell, Device, Extracted, Moment, Storage, TraceValue};
use ltc_ir::{LayoutRef, SiteId, View};
use ltc_torch_sys::{Generator, Place, Tensor};
use ltc_ts::TchBuffer;

use crate::{
    Error,
    capture_log::{self, Log, Turn, cell_of},
    draws::GENERATOR,
    inspect::value_of,
    runtime,
    step::NotReplayable,
};

/// Why there is no program: it would compute with data that is no input and may be different the next time.
const HOST_DATA: &str = "it computes with data that it was not given";

/// The device that stands for the CPU while a graph is recorded: the first one that computes there.
fn device() -> Result<Device, Error> {
    let rt = runtime()?;
    let on_cpu = |d: &&Device| rt.backend.place(DeviceIndex(d.index())).is_ok_and(Place::is_cpu);
    let device = rt.session.devices().iter().find(on_cpu).cloned();
    device.ok_or_else(|| Error::Call("programs over CPU tensors need a device there: set LTC_DEVICES=cpu,...".into()))
}

fn layout_of(host: &Tensor) -> Result<LayoutRef, Error> {
    let dense = ltc_torch_sys::host_bytes(host).filter(|_| ltc_torch_sys::is_plain_host(host));
    let dense = dense.map(|(layout, _)| LayoutRef::new(layout));
    dense.ok_or_else(|| Error::Call("expected a dense CPU tensor".into()))
}

/// A tensor of the same layout and elements, in memory of its own.
fn own_copy(host: &Tensor) -> Result<Tensor, Error> {
    let mut own = ltc_torch_sys::empty_at(Place::Cpu, &*layout_of(host)?)?;
    own.copy_from(host)?;
    Ok(own)
}

fn buffer_of(host: &Tensor, layout: &LayoutRef) -> Result<Buffer, Error> {
    let buffer = runtime()?.backend.lend(DeviceIndex(device()?.index()), host.shallow_clone(), layout);
    Ok(buffer.map_err(ltc_core::Error::from)?)
}

/// Where the device's generator holds its state.
fn generator() -> Result<&'static Storage, Error> {
    Ok(ltc_torch_sys::default_generator_storage::<Storage>(device()?.index())?)
}

/// A recording in progress on this thread. Dropping it gives it up; what was recorded does not run.
#[derive(Debug)]
pub struct HostRecording {
    since: Moment,
    /// The lent tensors, and what they show.
    lent: Vec<(Tensor, TraceValue)>,
    /// The generator's state when it began.
    state: TraceValue,
    _turn: Turn,
}

impl Drop for HostRecording {
    fn drop(&mut self) {
        drop(capture_log::close());
        // Draws of the graph are the CPU generator's, not this one's.
        if let (Ok(device), Ok(generator)) = (device(), generator())
            && generator.current().is_some_and(|now| !now.same(&self.state))
        {
            generator.set(&device, self.state.clone());
        }
    }
}

impl HostRecording {
    /// Begins; `None` while another thread captures.
    ///
    /// # Errors
    /// Fails where what is pending cannot be sent.
    pub fn begin() -> Result<Option<HostRecording>, Error> {
        let Some(turn) = Turn::take() else { return Ok(None) };
        let device = device()?;
        let state = generator()?.read(&device, GENERATOR, SiteId::default());
        crate::sync_all()?;
        let since = device.moment();
        capture_log::open();
        Ok(Some(HostRecording { since, lent: Vec::new(), state, _turn: turn }))
    }

    /// A tensor on the device that shows a dense host tensor's memory, for the time of the recording.
    ///
    /// # Errors
    /// Fails for tensors that are not dense, or not on the CPU.
    pub fn lend(&mut self, host: &Tensor) -> Result<Tensor, Error> {
        let layout = layout_of(host)?;
        let device = device()?;
        let value = device.import(layout.clone(), buffer_of(host, &layout)?);
        let view = View::of(&layout, 0);
        let storage = Storage::with_value(value.clone());
        let tensor = ltc_torch_sys::wrap(storage, layout.storage_bytes(), view, device.index())?;
        self.lent.push((tensor.shallow_clone(), value));
        Ok(tensor)
    }

    /// The program that computes `results` from what was lent, in the order in which it was lent.
    ///
    /// # Errors
    /// Fails where a result is not on the device. What cannot be a program says why.
    pub fn end(self, results: &[Tensor]) -> Result<Result<HostProgram, NotReplayable>, Error> {
        let not = |why: &str| Ok(Err(NotReplayable(why.into())));
        let device = device()?;
        let log = capture_log::close();
        // The graph may depend on a value that the host read, and a run does not compare such values, as replays do.
        let read = |log: &Log| log.reads.first().map(|r| capture_log::at(&device, &r.value, r.site));
        let read = log.as_ref().and_then(read).map(|at| format!("it reads a value ({at})"));
        if let Some(obstacle) = log.and_then(|log| log.obstacle).or(read) {
            return Ok(Err(NotReplayable(obstacle)));
        }
        for (tensor, value) in &self.lent {
            if !value_of(tensor)?.same(value) {
                return not("it writes to what it was given");
            }
        }
        let after = generator()?.read(&device, GENERATOR, SiteId::default());
        let draws = !after.same(&self.state);
        let mut wanted: Vec<TraceValue> = Vec::new();
        let mut place = |value: TraceValue| match wanted.iter().position(|w| w.same(&value)) {
            Some(at) => at,
            None => {
                wanted.push(value);
                wanted.len() - 1
            }
        };
        let mut outputs = Vec::with_capacity(results.len());
        for result in results {
            let value = value_of(result)?;
            outputs.push(match cell_of(&value) {
                Some(data) => match self.source_of(&data) {
                    Some(Source::Input(input)) => Output::Input(input),
                    _ => return not(HOST_DATA),
                },
                None => Output::Computed(place(value)),
            });
        }
        let state = draws.then(|| place(after));
        let Some((extracted, arguments)) = device.extract_bound(&wanted, false, self.since) else {
            return Ok(Err(NotReplayable::interrupted()));
        };
        let Some(params) = arguments.into_iter().map(|a| self.source_of(&a.data)).collect() else {
            return not(HOST_DATA);
        };
        let inputs = self.lent.iter().map(|(_, value)| value.layout().clone()).collect();
        Ok(Ok(HostProgram { extracted, inputs, params, outputs, state }))
    }

    fn source_of(&self, data: &Arc<DataCell>) -> Option<Source> {
        let shows = |value: &TraceValue| cell_of(value).is_some_and(|cell| Arc::ptr_eq(&cell, data));
        let input = self.lent.iter().position(|(_, value)| shows(value)).map(Source::Input);
        input.or_else(|| shows(&self.state).then_some(Source::Generator))
    }
}

/// Where a run takes the data of a parameter from.
#[derive(Debug)]
enum Source {
    /// The input at this position.
    Input(usize),
    /// The state of the CPU's generator.
    Generator,
}

#[derive(Debug)]
enum Output {
    /// A computed value, by its position among them.
    Computed(usize),
    /// The input at this position, as it is.
    Input(usize),
}

/// A computation over host tensors. Running it does not change it.
#[derive(Debug)]
pub struct HostProgram {
    extracted: Extracted,
    /// Layouts of the inputs.
    inputs: Vec<LayoutRef>,
    /// Where the data of each parameter comes from.
    params: Vec<Source>,
    outputs: Vec<Output>,
    /// Position of the generator's next state among the computed values, if the program draws.
    state: Option<usize>,
}

impl HostProgram {
    /// Whether these host tensors have the layouts it was recorded with.
    pub fn takes(&self, inputs: &[Tensor]) -> bool {
        let fits = |(t, layout): (&Tensor, &LayoutRef)| {
            ltc_torch_sys::is_plain_host(t) && ltc_torch_sys::host_bytes(t).is_some_and(|(given, _)| given == **layout)
        };
        inputs.len() == self.inputs.len() && inputs.iter().zip(&self.inputs).all(fits)
    }

    /// Its graph as text.
    pub fn text(&self) -> String {
        ltc_ir::print_with(self.extracted.graph(), self.extracted.numbers()).to_string()
    }

    /// Runs it on host tensors that it [takes](HostProgram::takes), which nobody may write meanwhile. Draws are the
    /// CPU's default generator's. Results share no memory with inputs or with each other.
    ///
    /// # Errors
    /// Fails with what its program fails with.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        // If a capture is open on this thread, a replay of its step would not run this program.
        capture_log::obstacle(|| "it runs a program over CPU tensors".into());
        let state = self.state.map(|_| Generator::cpu_default()).transpose()?;
        let buffer = |source: &Source| match source {
            Source::Input(i) => buffer_of(&inputs[*i], &self.inputs[*i]),
            Source::Generator => match &state {
                Some(state) => {
                    let wrapped =
                        runtime()?.backend.wrap_generator(DeviceIndex(device()?.index()), state.deep_clone()?);
                    Ok(wrapped.map_err(ltc_core::Error::from)?)
                }
                None => Err(Error::Call("a program reads a generator and does not draw".into())),
            },
        };
        let given: Vec<Buffer> = self.params.iter().map(buffer).collect::<Result<_, _>>()?;
        let computed = self.extracted.run_here(given)?;
        if let Some(at) = self.state {
            let next = computed.get(at).and_then(|b| b.get::<TchBuffer>()).and_then(TchBuffer::generator);
            let next = next.ok_or_else(|| Error::Call("a program gave no generator state".into()))??;
            next.make_cpu_default()?;
        }
        let tensor = |buffer: &Buffer| {
            let tensor = buffer.get::<TchBuffer>().and_then(TchBuffer::tensor);
            tensor.ok_or_else(|| Error::Call("a result is not a tensor".into()))
        };
        let tensors = self.outputs.iter().map(|output| match output {
            Output::Computed(at) => tensor(&computed[*at]),
            Output::Input(at) => Ok(inputs[*at].shallow_clone()),
        });
        let mut results = tensors.collect::<Result<Vec<_>, _>>()?;
        drop(computed);
        // On the device values may share memory with inputs or each other, since nobody there writes to a value in
        // place. Callers may write to results in place, so each result gets memory of its own.
        for result in &mut results {
            if !ltc_torch_sys::is_sole_holder(result) {
                *result = own_copy(result)?;
            }
        }
        Ok(results)
    }
}
