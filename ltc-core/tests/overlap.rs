//! A program that could take every processor runs on one, beside a caller that has much to do meanwhile, where that is
//! faster.

use std::{
    sync::Arc,
    thread::{self, ThreadId, available_parallelism},
    time::{Duration, Instant},
};

use ltc_backend::{
    Backend, BackendError, Buffer, DeviceIndex, Executable, HostTensor, Inputs, OutputSink, RunCost, SingleThread,
};
use ltc_core::{Config, Error, LazyTensor, Session};
use ltc_ir::{Graph, LayoutRef};
use parking_lot::Mutex;

/// How each program ran: on one thread, and where.
type Log = Arc<Mutex<Vec<(bool, ThreadId)>>>;

/// A backend without numerics whose programs could take every processor.
struct MultiThreaded {
    log: Log,
    single_thread: SingleThread,
}

struct Program {
    log: Log,
    single_thread: SingleThread,
    outputs: usize,
}

impl Backend for MultiThreaded {
    fn name(&self) -> &str {
        "multi_threaded"
    }

    fn device_count(&self) -> usize {
        1
    }

    fn compile(&self, _: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        let (log, outputs) = (self.log.clone(), graph.outputs().len());
        Ok(Arc::new(Program { log, single_thread: self.single_thread, outputs }))
    }

    fn upload(&self, _: DeviceIndex, _: &HostTensor) -> Result<Buffer, BackendError> {
        Ok(Buffer::new(()))
    }

    fn download(&self, _: DeviceIndex, _: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        Ok(HostTensor { layout: layout.clone(), bytes: vec![0; layout.storage_bytes()] })
    }
}

impl Executable for Program {
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink) {
        work(RUN);
        self.log.lock().push((inputs.single_threaded, thread::current().id()));
        (0..self.outputs).for_each(|i| sink.output(i, Ok(Buffer::new(()))));
    }

    fn cost(&self) -> Option<RunCost> {
        Some(RunCost { time: Duration::from_millis(1), threads: 1 << 20, single_thread: self.single_thread })
    }

    fn text(&self) -> String {
        String::new()
    }
}

/// How long a program runs.
const RUN: Duration = Duration::from_micros(100);

fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn processors() -> u32 {
    available_parallelism().map_or(1, |n| n.get() as u32)
}

/// What a step does after its program was sent.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// The caller is busy for as long as all processors together could take off a program.
    Works,
    /// It records so many operations more than the program needs.
    Records(usize),
    Reads,
}

/// How the programs of 64 equal steps ran, and how many overlapped as the metrics have it.
fn run(single_thread: SingleThread, config: Config, then: Then) -> Result<(Vec<(bool, ThreadId)>, u64), Error> {
    let log = Log::default();
    let session = Session::new(Arc::new(MultiThreaded { log: log.clone(), single_thread }), config)?;
    let dev = session.device(0)?;
    let mut x = LazyTensor::from_slice(dev, &[1.0f32, 2.0], &[2])?;
    for _ in 0..64 {
        x = (&x * 2.0).relu()?;
        dev.sync()?;
        match then {
            Then::Works => work(RUN * processors()),
            Then::Records(operations) => (0..operations).try_for_each(|_| (&x + 1.0).relu().map(drop))?,
            Then::Reads => drop(x.to_host()?),
        }
    }
    dev.wait()?;
    let ran = std::mem::take(&mut *log.lock());
    assert_eq!(ran.len(), 64);
    Ok((ran, session.metrics().overlapped_executions))
}

/// Programs whose bits depend on it, off which several threads take so much.
const fn other_bits(saves: Duration) -> SingleThread {
    SingleThread::OtherBits { saves }
}

#[test]
fn both_ways_are_tried_beside_a_busy_caller_only() -> Result<(), Error> {
    let here = thread::current().id();
    let several = processors() > 1;
    let mut off = Config::default();
    off.overlap = false;
    for (single_thread, config, then) in [
        (SingleThread::SameBits, Config::default(), Then::Works),
        (SingleThread::Never, Config::default(), Then::Works),
        (other_bits(RUN), Config::default(), Then::Works),
        (SingleThread::SameBits, off, Then::Works),
        (SingleThread::SameBits, Config::default(), Then::Reads),
    ] {
        let may = several && single_thread == SingleThread::SameBits && config.overlap && then == Then::Works;
        let (ran, counted) = run(single_thread, config, then)?;
        let overlapped = ran.iter().filter(|(single_threaded, _)| *single_threaded).count();
        assert_eq!(overlapped as u64, counted);
        assert_eq!(overlapped > 0, may, "{overlapped} of {}", ran.len());
        assert!(ran.iter().any(|(single_threaded, _)| !single_threaded), "the first ones are not");
        // On another thread if on one, else here.
        assert!(ran.iter().all(|(single_threaded, at)| *single_threaded == (*at != here)), "{ran:?}");
    }
    Ok(())
}

#[test]
fn where_bits_depend_on_it_what_is_recorded_decides_and_no_clock() -> Result<(), Error> {
    let little = Duration::from_micros(20);
    let much = Duration::from_secs(1);
    let several = processors() > 1;
    for (saves, then, may) in [
        (little, Then::Records(100), true),
        (much, Then::Records(100), false),
        (little, Then::Records(0), false),
        (little, Then::Reads, false),
    ] {
        let how = || {
            Ok::<_, Error>(
                run(other_bits(saves), Config::default(), then)?
                    .0
                    .into_iter()
                    .map(|(single_threaded, _)| single_threaded),
            )
        };
        let ways: Vec<bool> = how()?.collect();
        // What follows a program is known once the next one was sent.
        assert!(ways.iter().skip(2).all(|&single_threaded| single_threaded == (may && several)), "{ways:?}");
        assert_eq!(ways, how()?.collect::<Vec<_>>(), "the same in each run");
    }
    Ok(())
}
