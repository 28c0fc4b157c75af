//! Programs of graphs: found in the cache, respecialised from one for other sizes, or compiled.

use std::{sync::Arc, time::Instant};

use ltc_backend::{Backend, BackendError, DeviceIndex, ExecError};
use ltc_ir::{Canonical, Graph};

use crate::{
    cache::Program, cell::DataCell, event::Event, metrics, outcome::Refused, runtime::Runtime, shape_family::Sizes,
};

/// The program of what was recorded: the one place where a cache miss can happen.
pub(crate) fn program(
    runtime: &Runtime,
    device: DeviceIndex,
    trace: &Canonical<Arc<DataCell>>,
) -> Result<Arc<Program>, BackendError> {
    let found = runtime.cache.lock().get(device, trace);
    if let Some(program) = found {
        metrics::add(&runtime.counters.cache_hits, 1);
        runtime.events.push(|| Event::CacheHit { hash: trace.hash() });
        // A respecialised program keeps decisions of the sizes it was compiled for: its text may differ.
        if runtime.config.check_cache && !program.respecialised {
            let again = runtime.backend.compile(device, &Arc::new(trace.to_graph()))?;
            if again.text() != program.executable.text() {
                return Err(BackendError::Device("cache check: a hit compiles to another program".into()));
            }
        }
        return Ok(program);
    }
    let program = compile(runtime, device, &Arc::new(trace.to_graph()))?;
    runtime.cache.lock().insert(device, program.clone());
    Ok(program)
}

/// A program of this graph: one for other sizes, respecialised, or a new one.
pub(crate) fn compile(
    runtime: &Runtime,
    device: DeviceIndex,
    graph: &Arc<Graph>,
) -> Result<Arc<Program>, BackendError> {
    let Some(sizes) = runtime.config.symbolic.then(|| Sizes::of(device, graph)) else {
        return compile_anew(runtime, device, graph);
    };
    if let Some(program) = respecialise(runtime, &sizes) {
        return Ok(program);
    }
    let program = compile_anew(runtime, device, graph)?;
    runtime.families.lock().insert(&sizes, &program);
    Ok(program)
}

fn compile_anew(runtime: &Runtime, device: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<Program>, BackendError> {
    let start = Instant::now();
    let executable = runtime.backend.compile(device, graph)?;
    runtime.counters.compile.add(start.elapsed());
    metrics::add(&runtime.counters.compiles, 1);
    runtime.events.push(|| Event::Compile { hash: graph.hash(), nodes: graph.nodes().len() });
    tracing::debug!(hash = %graph.hash(), nodes = graph.nodes().len(), "compiled");
    Ok(Arc::new(Program::new(graph.clone(), executable, false)))
}

/// A program for these sizes, made from one for others.
fn respecialise(runtime: &Runtime, sizes: &Sizes<'_>) -> Option<Arc<Program>> {
    let start = Instant::now();
    let (candidates, mut refusals) = runtime.families.lock().candidates(sizes);
    for candidate in candidates {
        let Some(Ok(executable)) = candidate.program().executable.respecialised(sizes.graph()) else {
            refusals.push("the program has no place for these sizes".into());
            continue;
        };
        let program = Arc::new(Program::new(sizes.graph().clone(), executable, true));
        runtime.counters.respecialise.add(start.elapsed());
        metrics::add(&runtime.counters.cache_hits, 1);
        metrics::add(&runtime.counters.respecialised, 1);
        if let Some(symbolic) = candidate.widened() {
            runtime.events.push(|| Event::Symbolic { assumptions: symbolic.summary() });
        }
        runtime.events.push(|| Event::Respecialise { hash: sizes.graph().hash() });
        runtime.families.lock().accept(sizes, candidate, &program);
        return Some(program);
    }
    metrics::add(&runtime.counters.guard_failures, refusals.len() as u64);
    for failed in refusals {
        runtime.events.push(|| Event::Guard { failed });
    }
    None
}

/// A program that fails at the operator that cannot be compiled.
pub(crate) fn refused(
    backend: &dyn Backend,
    device: DeviceIndex,
    graph: &Arc<Graph>,
    error: &BackendError,
) -> Arc<Program> {
    let compiles = |nodes: usize| {
        let values: Vec<_> = graph.nodes()[..nodes].iter().flat_map(|n| n.result_ids()).collect();
        backend.compile(device, &Arc::new(graph.part(&values).0)).is_ok()
    };
    // The first so many nodes compile, so many more do not.
    let (mut fine, mut not) = (0, graph.nodes().len());
    while not > fine + 1 {
        let half = fine.midpoint(not);
        *(if compiles(half) { &mut fine } else { &mut not }) = half;
    }
    let op = graph.nodes().get(fine).map_or("compile", |n| n.op().name());
    let error = ExecError::new(op, ltc_ir::ErrorClass::Runtime, error.to_string()).at(fine);
    Arc::new(Program::new(graph.clone(), Arc::new(Refused::new(graph.clone(), error)), false))
}
