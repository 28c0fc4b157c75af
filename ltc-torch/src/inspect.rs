//! Looking at what is recorded, without running it.

use std::{fmt::Write, sync::Arc};

use hashlink::LruCache;
use ltc_backend::DeviceIndex;
use ltc_core::{Argument, Arguments, DataCell, Extracted, Storage, TraceValue};
use ltc_ir::SiteId;
use ltc_torch_sys::{AsTensor, Place, Tensor, at_place};
use ltc_ts::TchBuffer;
use parking_lot::Mutex;

use crate::{Error, runtime};

/// Computations kept for [`run_computation`].
const COMPUTATIONS: usize = 256;

/// Computations by hash: those whose hash was asked for last.
pub(crate) struct Computations(Mutex<LruCache<String, Arc<Computation>>>);

impl Default for Computations {
    fn default() -> Self {
        Computations(Mutex::new(LruCache::new(COMPUTATIONS)))
    }
}

/// The value a lazy tensor shows, recorded if it is a view.
pub(crate) fn value_of(t: &impl AsTensor) -> Result<TraceValue, Error> {
    let index = crate::device_of(t).ok_or_else(|| Error::Call("expected a tensor on the ltc device".into()))?;
    let device = runtime()?.session.device(index)?;
    Ok(ltc_torch_sys::storage_of::<Storage, _>(t, |s, view| s.read(device, view, SiteId::default()))?)
}

/// A recorded computation of some tensors.
#[derive(Debug)]
pub struct Computation {
    /// The computation.
    pub extracted: Extracted,
    /// Data its parameters stand for.
    pub(crate) data: Vec<Arc<DataCell>>,
    /// Per tensor asked for: an output of the computation, or data already.
    pub(crate) outputs: Vec<Result<usize, TraceValue>>,
    pub(crate) device: u16,
}

fn host_tensor(cell: &DataCell) -> Result<Tensor, Error> {
    let buffer = cell.wait().map_err(|error| ltc_core::Error::Exec { error, site: None, largest: String::new() })?;
    let tensor = buffer.get::<TchBuffer>().and_then(TchBuffer::tensor);
    let tensor = tensor.ok_or_else(|| Error::Call("a value is not a tensor".into()))?;
    Ok(at_place(&tensor, Place::Cpu)?)
}

impl Computation {
    /// Current data of its parameters, as host tensors that must only be read: a wait for them.
    ///
    /// # Errors
    /// Fails with what the program that was to make the data failed with.
    pub fn data(&self) -> Result<Vec<Tensor>, Error> {
        self.data.iter().map(|cell| host_tensor(cell)).collect()
    }

    /// Numbers that name the data of its parameters ([`value_id`]).
    pub fn data_ids(&self) -> Vec<u64> {
        self.data.iter().map(|cell| Arc::as_ptr(cell) as usize as u64).collect()
    }

    /// Runs it on these host or device tensors in place of its parameters' data; results as host tensors.
    ///
    /// # Errors
    /// Fails where an input has not the layout that the computation takes, and with what its program fails with.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        let rt = runtime()?;
        let device = rt.session.device(self.device)?;
        let (mut cells, mut hosts) = (Arguments::new(), Vec::new());
        for (i, (t, layout)) in inputs.iter().zip(self.extracted.params()).enumerate() {
            let host = ltc_torch_sys::to_cpu(&ltc_torch_sys::Borrowed::of(t).detach()?)?;
            let (given, _) =
                ltc_torch_sys::host_bytes(&host).ok_or_else(|| Error::Call("not a dense tensor".into()))?;
            if given != **layout {
                return Err(Error::Call(format!("input {i} is {given}, the graph takes {layout}")));
            }
            hosts.push(host.shallow_clone());
            let buffer = rt.backend.wrap(DeviceIndex(self.device), host).map_err(ltc_core::Error::from)?;
            let value = device.import(layout.clone(), buffer);
            cells.push(Argument::whole(value.inspect(|_, _| unreachable!("invariant: data"), Arc::clone)));
        }
        let results = self.extracted.placeholders();
        self.extracted.run(cells, &results)?;
        let read = |v: &TraceValue| v.inspect(|_, _| unreachable!("invariant: data"), Arc::clone);
        self.outputs
            .iter()
            .map(|o| match o {
                Ok(i) => host_tensor(&read(&results[*i])),
                // The tensor shows data. If that data is a parameter, the result is the input given in its place.
                Err(value) => match self.data.iter().position(|cell| Arc::ptr_eq(cell, &read(value))) {
                    Some(i) => Ok(hosts[i].shallow_clone()),
                    None => host_tensor(&read(value)),
                },
            })
            .collect()
    }

    /// Its graph as text, with the numbers of this recording.
    pub fn text(&self) -> String {
        ltc_ir::print_with(self.extracted.graph(), self.extracted.numbers()).to_string()
    }

    /// Its graph as text, with the line of the program that recorded each operation.
    pub fn text_with_sites(&self) -> String {
        let mut lines: Vec<String> = self.extracted.graph().to_string().lines().map(str::to_owned).collect();
        // The first line holds the parameters; each operation has one.
        for (line, site) in lines.iter_mut().skip(1).zip(self.extracted.sites()) {
            if let Some(site) = site {
                *line += &format!("  /* {} */", site.replace("*/", "* /"));
            }
        }
        lines.join("\n") + "\n"
    }

    /// Its graph in the DOT language.
    pub fn dot(&self) -> String {
        ltc_ir::dot(self.extracted.graph()).to_string()
    }
}

/// Structural hash of the pending computation of these tensors, by which [`run_computation`] finds it.
///
/// # Errors
/// Fails where a tensor is not on the device.
pub fn computation_hash(tensors: &[impl AsTensor]) -> Result<String, Error> {
    let computation = computation(tensors)?;
    let hash = computation.extracted.hash().to_string();
    runtime()?.computations.0.lock().insert(hash.clone(), Arc::new(computation));
    Ok(hash)
}

/// Runs the computation of this hash ([`Computation::run`]).
///
/// # Errors
/// Fails where nobody asked for this hash lately, and as [`Computation::run`] does.
pub fn run_computation(hash: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
    let found = runtime()?.computations.0.lock().get(hash).cloned();
    found.ok_or_else(|| Error::Call(format!("no graph with hash {hash} was asked for")))?.run(inputs)
}

/// The cached programs in the DOT language: hash, operations, inputs and outputs of each.
///
/// # Errors
/// Fails before [`crate::init`].
pub fn cache_dot() -> Result<String, Error> {
    let mut dot = String::from("digraph cache {\n  node [shape=box, fontname=\"monospace\"];\n");
    for (i, graph) in runtime()?.session.cached_graphs().iter().enumerate() {
        let (nodes, params, outputs) = (graph.nodes().len(), graph.params().len(), graph.outputs().len());
        let hash = graph.hash();
        let _ = writeln!(dot, "  g{i} [label=\"{hash}\\n{nodes} operations, {params} inputs, {outputs} outputs\"];");
    }
    Ok(dot + "}\n")
}

/// The pending computation of these tensors, all on one device; nothing runs.
///
/// # Errors
/// Fails for a tensor that is not on the device, and, of no tensors, where that is not [initialised](crate::init).
pub fn computation(tensors: &[impl AsTensor]) -> Result<Computation, Error> {
    let device = tensors.iter().find_map(crate::device_of).unwrap_or(0);
    let values = tensors.iter().map(value_of).collect::<Result<Vec<_>, _>>()?;
    let core = runtime()?.session.device(device)?;
    loop {
        let mut wanted: Vec<TraceValue> = Vec::new();
        let outputs = values.iter().map(|v| {
            if !v.is_pending() {
                return Err(v.clone());
            }
            Ok(wanted.iter().position(|w| w.same(v)).unwrap_or_else(|| {
                wanted.push(v.clone());
                wanted.len() - 1
            }))
        });
        let outputs = outputs.collect();
        // If another thread has sent some of these values meanwhile, they are data by now, and the loop looks again.
        if let Some((extracted, data)) = core.extract(&wanted) {
            return Ok(Computation { extracted, data, outputs, device });
        }
    }
}

/// Sends what these tensors need to run, per device.
pub(crate) fn sync(tensors: &[impl AsTensor]) -> Result<(), Error> {
    for device in runtime()?.session.devices() {
        let here = tensors.iter().filter(|t| crate::device_of(t) == Some(device.index()));
        let values = here.map(value_of).collect::<Result<Vec<_>, _>>()?;
        device.sync_values(&values)?;
    }
    Ok(())
}

/// A number that names the value a lazy tensor holds: the same for tensors that show the same value, and, once it is
/// data, for parameters that stand for it ([`Computation`]).
///
/// # Errors
/// Fails for a tensor that is not on the device.
pub fn value_id(t: &impl AsTensor) -> Result<u64, Error> {
    let value = value_of(t)?;
    Ok(value.inspect(|_, _| value.address(), |cell| Arc::as_ptr(cell) as usize) as u64)
}

/// Whether all that a lazy tensor's storage holds is a failure, and it held nothing before: eager execution would not
/// have made it. Waits for it if it was sent.
///
/// # Errors
/// Fails for a tensor that is not on the device.
pub fn never_was(t: &impl AsTensor) -> Result<bool, Error> {
    let value = ltc_torch_sys::storage_of::<Storage, _>(t, |s, _| s.current())?;
    let cell = value.and_then(|value| value.inspect(|_, _| None, |cell| Some(cell.clone())));
    Ok(cell.is_some_and(|cell| cell.never_was()))
}
