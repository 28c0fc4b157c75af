//! What a call allocates, and that a step like the last one is recorded into its nodes.

use std::sync::Arc;

use ltc_backend::{
    Backend, BackendError, Buffer, DeviceIndex, Executable, HostTensor, Inputs, OutputSink, ReferenceBackend,
    testing::RecordingBackend,
};
use ltc_core::{Config, Device, Error, LazyTensor, Session};
use ltc_ir::{Graph, LayoutRef};

const CALLS: usize = 90;

fn session(reuse: bool) -> (RecordingBackend, Session) {
    let mut config = Config::default();
    (config.reuse_nodes, config.async_execution) = (reuse, false);
    let backend = RecordingBackend::default();
    let session = Session::new(Arc::new(backend.clone()), config).expect("a session");
    (backend, session)
}

fn tensor(dev: &Device) -> LazyTensor {
    LazyTensor::from_slice(dev, &[1.0f32, -2.0, 3.0, -4.0], &[4]).expect("a tensor")
}

fn step(x: &LazyTensor, calls: usize) -> LazyTensor {
    (0..calls).fold(x.clone(), |y, i| match i % 3 {
        0 => y + x,
        1 => y * 0.5,
        _ => y.relu().expect("a tensor"),
    })
}

/// How many nodes a step of so many calls is recorded into that another left.
fn reused_by_a_step(session: &Session, x: &LazyTensor, calls: usize) -> Result<u64, Error> {
    let before = session.metrics().reused_nodes;
    let y = step(x, calls);
    session.device(0)?.sync()?;
    drop(y);
    Ok(session.metrics().reused_nodes - before)
}

/// Allocations of the recording of a step, after some.
fn allocations(reuse: bool) -> u64 {
    let (_, session) = session(reuse);
    let dev = session.device(0).expect("a device");
    let x = tensor(dev);
    let mut count = 0;
    for _ in 0..5 {
        let mut y = None;
        count = allocation_counter::measure(|| y = Some(step(&x, CALLS))).count_total;
        dev.sync().expect("a sync");
    }
    count
}

#[test]
fn a_call_allocates_its_node_and_a_repeated_step_not_even_that() {
    assert_eq!(allocations(false), CALLS as u64);
    // The result of the last step is held while this one records: that node is its own.
    assert_eq!(allocations(true), 1);
}

/// A backend that does nothing, and allocates nothing doing it.
struct Nothing(Buffer);

impl Backend for Nothing {
    fn name(&self) -> &str {
        "nothing"
    }

    fn device_count(&self) -> usize {
        1
    }

    fn compile(&self, _: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        Ok(Arc::new(Outputs(self.0.clone(), graph.outputs().len())))
    }

    fn upload(&self, _: DeviceIndex, _: &HostTensor) -> Result<Buffer, BackendError> {
        Ok(self.0.clone())
    }

    fn download(&self, _: DeviceIndex, _: &Buffer, _: &LayoutRef) -> Result<HostTensor, BackendError> {
        Err(BackendError::Device("there is nothing".into()))
    }
}

/// Its programs: so many outputs.
struct Outputs(Buffer, usize);

impl Executable for Outputs {
    fn execute(&self, _: Inputs, sink: &mut dyn OutputSink) {
        (0..self.1).for_each(|i| sink.output(i, Ok(self.0.clone())));
    }

    fn text(&self) -> String {
        String::new()
    }
}

#[test]
fn a_repeated_sync_allocates_places_for_its_results_and_nothing_else() -> Result<(), Error> {
    let mut config = Config::default();
    config.async_execution = false;
    let session = Session::new(Arc::new(Nothing(Buffer::new(()))), config)?;
    let dev = session.device(0)?;
    let x = tensor(dev);
    // Samples of timings are kept: 1,024 of each kind.
    for _ in 0..1100 {
        let y = step(&x, 4);
        dev.sync()?;
        drop(y);
    }
    for results in [1, 3] {
        let mut allocations = 0;
        for _ in 0..3 {
            let ys: Vec<LazyTensor> = (0..results).map(|_| step(&x, 2)).collect();
            allocations = allocation_counter::measure(|| dev.sync().expect("a sync")).count_total;
            drop(ys);
        }
        assert_eq!(allocations, results);
    }
    Ok(())
}

#[test]
fn a_step_like_the_last_one_is_recorded_into_its_nodes() -> Result<(), Error> {
    for reuse in [true, false] {
        let (_, session) = session(reuse);
        let x = tensor(session.device(0)?);
        let mut reused = Vec::new();
        for calls in [CALLS, CALLS, CALLS, 30, CALLS] {
            reused.push(reused_by_a_step(&session, &x, calls)?);
        }
        // All nodes of a step but the last, whose result is read or kept.
        let all = CALLS as u64 - 1;
        let expected = if reuse { [0, all, all, 30, 29] } else { [0; 5] };
        assert_eq!(reused, expected);
    }
    Ok(())
}

#[test]
fn a_sync_of_nothing_keeps_the_nodes_for_the_next_step() -> Result<(), Error> {
    let (_, session) = session(true);
    let dev = session.device(0)?;
    let x = tensor(dev);
    assert_eq!(reused_by_a_step(&session, &x, CALLS)?, 0);
    dev.sync()?;
    assert_eq!(reused_by_a_step(&session, &x, CALLS)?, CALLS as u64 - 1);
    Ok(())
}

#[test]
fn reuse_can_be_switched_while_a_session_runs() -> Result<(), Error> {
    let (_, session) = session(true);
    let x = tensor(session.device(0)?);
    let mut reused = Vec::new();
    for on in [true, true, false, false, true, true] {
        session.set_reuse_nodes(on);
        reused.push(reused_by_a_step(&session, &x, CALLS)?);
    }
    // What one step leaves is for the next one.
    let all = CALLS as u64 - 1;
    assert_eq!(reused, [0, all, all, 0, 0, all]);
    Ok(())
}

#[test]
fn results_that_are_never_used_and_several_results_do_not_shift_the_others() -> Result<(), Error> {
    let (_, session) = session(true);
    let dev = session.device(0)?;
    let x = tensor(dev);
    let mut reused = 0;
    for _ in 0..3 {
        let before = session.metrics().reused_nodes;
        drop(&x + 1.0);
        let (values, indices) = (&x * 2.0).max_dim(0)?;
        let _kept = values + &x;
        dev.sync()?;
        drop(indices);
        reused = session.metrics().reused_nodes - before;
    }
    // Not the unused sum, whose node went at once, nor the kept indices and the kept sum.
    assert_eq!(reused, 3, "the product, `max` and its values");
    Ok(())
}

#[test]
fn the_programs_are_those_of_new_nodes() -> Result<(), Error> {
    let logs = [true, false].map(|reuse| {
        let (backend, session) = session(reuse);
        let dev = session.device(0).expect("a device");
        let x = tensor(dev);
        let mut state = tensor(dev);
        for round in 0..12 {
            let kept = step(&x, 5 + round % 4);
            let unused = step(&state, round % 3);
            state = (&state + &kept).tanh().expect("a tensor");
            drop(unused);
            if round % 2 == 0 {
                let _ = kept.to_host();
            } else if round % 5 == 0 {
                kept.sync().expect("a sync");
            }
            dev.sync().expect("a sync");
        }
        backend.take_log()
    });
    assert!(!logs[0].is_empty());
    assert_eq!(logs[0], logs[1]);
    Ok(())
}

#[test]
fn threads_that_record_and_sync_on_one_device_get_their_own_values() -> Result<(), Error> {
    let session = Session::new(Arc::new(ReferenceBackend), Config::default())?;
    let dev = session.device(0)?;
    let work = |seed: f32| -> Result<(), Error> {
        for round in 0..60 {
            let x = LazyTensor::from_slice(dev, &[seed, round as f32], &[2])?;
            let (mut y, mut expected) = (x.clone(), [seed, round as f32]);
            for i in 0..20 {
                y = &y * 0.5 + &x;
                expected = [expected[0] * 0.5 + seed, expected[1] * 0.5 + round as f32];
                if (i + round) % 7 == 0 {
                    dev.sync()?;
                }
            }
            assert_eq!(y.to_vec::<f32>()?, expected);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|t| scope.spawn(move || work(t as f32))).collect();
        threads.into_iter().try_for_each(|t| t.join().expect("no panic"))
    })?;
    assert!(session.metrics().reused_nodes > 0);
    Ok(())
}
