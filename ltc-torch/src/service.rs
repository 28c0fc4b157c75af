//! Requests of language bindings that hand in or get back tensors (the operator `ltc::_service`).

use std::sync::Arc;

use hashlink::LruCache;
use ltc_backend::DeviceIndex;
use ltc_core::{Argument, Arguments, DataCell};
use ltc_torch_sys::{Reply, Request};
use ltc_ts::TchBuffer;
use parking_lot::Mutex;
use tch::Tensor;

use crate::{
    Error,
    inspect::{self, Computation},
    runtime,
};

/// Computations kept for `run_cached_graph`.
const COMPUTATIONS: usize = 256;

/// What outlives a request.
pub(crate) struct State {
    computations: Mutex<LruCache<String, Arc<Computation>>>,
}

impl Default for State {
    fn default() -> Self {
        State { computations: Mutex::new(LruCache::new(COMPUTATIONS)) }
    }
}

fn host_tensor(cell: &DataCell) -> Result<Tensor, Error> {
    let buffer = cell.wait().map_err(|error| ltc_core::Error::Exec { error, site: None })?;
    buffer.get::<TchBuffer>().and_then(TchBuffer::tensor).ok_or_else(|| Error::Tch("a value is not a tensor".into()))
}

impl Computation {
    /// Current data of its parameters, as host tensors that must only be read: a wait for them.
    pub fn data(&self) -> Result<Vec<Tensor>, Error> {
        self.data.iter().map(|cell| host_tensor(cell)).collect()
    }

    /// Numbers that name the data of its parameters ([`crate::value_id`]).
    pub fn data_ids(&self) -> Vec<u64> {
        self.data.iter().map(|cell| Arc::as_ptr(cell) as usize as u64).collect()
    }

    /// Runs it on these host or device tensors in place of its parameters' data; results as host tensors.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        let rt = runtime()?;
        let device = rt.session.device(self.device)?;
        let (mut cells, mut hosts) = (Arguments::new(), Vec::new());
        for (i, (t, layout)) in inputs.iter().zip(self.extracted.params()).enumerate() {
            let host = crate::to_cpu(&t.detach())?;
            let (given, _) = ltc_torch_sys::host_bytes(&host).ok_or_else(|| Error::Tch("not a dense tensor".into()))?;
            if given != **layout {
                return Err(Error::Tch(format!("input {i} is {given}, the graph takes {layout}")));
            }
            hosts.push(host.shallow_clone());
            let buffer = rt.backend.wrap(DeviceIndex(self.device), host).map_err(ltc_core::Error::from)?;
            let value = device.import(layout.clone(), buffer);
            cells.push(Argument::whole(value.inspect(|_, _| unreachable!("invariant: data"), Arc::clone)));
        }
        let results = self.extracted.placeholders();
        self.extracted.run(cells, &results)?;
        let read = |v: &ltc_core::TraceValue| v.inspect(|_, _| unreachable!("invariant: data"), Arc::clone);
        self.outputs
            .iter()
            .map(|o| match o {
                Ok(i) => host_tensor(&read(&results[*i])),
                // Data: what was given in its place, if it is a parameter.
                Err(value) => match self.data.iter().position(|cell| Arc::ptr_eq(cell, &read(value))) {
                    Some(i) => Ok(hosts[i].shallow_clone()),
                    None => host_tensor(&read(value)),
                },
            })
            .collect()
    }
}

fn owned(tensors: &[ltc_torch_sys::Borrowed<'_>]) -> Vec<Tensor> {
    tensors.iter().map(|t| t.shallow_clone()).collect()
}

pub(crate) fn answer(request: &Request<'_>) -> Result<Reply, Error> {
    let tensors = owned(&request.tensors);
    let number = |i: usize| request.numbers.get(i).copied().unwrap_or_default();
    let state = &runtime()?.services;
    let text = |text: String| Reply { text, ..Reply::default() };
    Ok(match request.name {
        "value_id" => {
            let ids = tensors.iter().map(|t| Ok(inspect::value_id(t)? as i64)).collect::<Result<_, Error>>()?;
            Reply { numbers: ids, ..Reply::default() }
        }
        "sync" => {
            crate::sync_tensors(&tensors)?;
            Reply::default()
        }
        "rng_state" => Reply { tensors: vec![crate::generator_state(number(0) as u16)?], ..Reply::default() },
        "set_rng_state" => {
            if let Some(state) = tensors.first() {
                crate::set_generator_state(number(0) as u16, state)?;
            }
            Reply::default()
        }
        "graph_hash" => {
            let computation = inspect::computation(&tensors)?;
            let hash = computation.extracted.hash().to_string();
            state.computations.lock().insert(hash.clone(), Arc::new(computation));
            text(hash)
        }
        "graph_data" => {
            let computation = inspect::computation(&tensors)?;
            let ids = computation.data_ids().into_iter().map(|id| id as i64).collect();
            Reply { tensors: computation.data()?, numbers: ids, ..Reply::default() }
        }
        "run_graph" => {
            let found = state.computations.lock().get(request.text).cloned();
            let computation =
                found.ok_or_else(|| Error::Tch(format!("no graph with hash {} was asked for", request.text)))?;
            Reply { tensors: computation.run(&tensors)?, ..Reply::default() }
        }
        "graph_text" => {
            let computation = inspect::computation(&tensors)?;
            let extracted = &computation.extracted;
            text(ltc_ir::print_with(extracted.graph(), extracted.numbers()).to_string())
        }
        "graph_sites" => {
            let extracted = &inspect::computation(&tensors)?.extracted;
            let mut lines: Vec<String> = extracted.graph().to_string().lines().map(str::to_owned).collect();
            // The first line holds the parameters; each operation has one.
            for (line, site) in lines.iter_mut().skip(1).zip(extracted.sites()) {
                if let Some(site) = site {
                    *line += &format!("  /* {} */", site.replace("*/", "* /"));
                }
            }
            text(lines.join("\n") + "\n")
        }
        "graph_dot" => text(ltc_ir::dot(inspect::computation(&tensors)?.extracted.graph()).to_string()),
        "graph_backend" => text(inspect::computation(&tensors)?.extracted.backend_text()?),
        "empty_cache" => {
            crate::empty_cache()?;
            Reply::default()
        }
        "reuse_nodes" => {
            crate::set_reuse_nodes(number(0) != 0)?;
            Reply::default()
        }
        "profile_on" => {
            crate::set_profiling(number(0) != 0)?;
            Reply::default()
        }
        "profile" => {
            let mut table = String::new();
            for step in crate::take_profile()? {
                let ms = step.total.as_secs_f64() * 1e3;
                table += &format!("{ms:>12.3} ms {:>8}x  {}\n", step.count, step.name);
            }
            text(table)
        }
        "cache_dot" => {
            let mut dot = String::from("digraph cache {\n  node [shape=box, fontname=\"monospace\"];\n");
            for (i, graph) in runtime()?.session.cached_graphs().iter().enumerate() {
                let (nodes, params, outputs) = (graph.nodes().len(), graph.params().len(), graph.outputs().len());
                let hash = graph.hash();
                dot +=
                    &format!("  g{i} [label=\"{hash}\\n{nodes} operations, {params} inputs, {outputs} outputs\"];\n");
            }
            text(dot + "}\n")
        }
        other => return Err(Error::Tch(format!("unknown request {other}"))),
    })
}
