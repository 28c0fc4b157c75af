//! Programs of a device run in the order in which they were sent, wherever they run.

use std::{
    sync::Arc,
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use ltc_backend::{
    Backend, BackendError, Buffer, DeviceIndex, Executable, HostTensor, Inputs, OutputSink, RunCost, SingleThread,
};
use ltc_core::{Config, Error, LazyTensor, Session};
use ltc_ir::{Graph, LayoutRef};
use parking_lot::Mutex;

type Log = Arc<Mutex<Vec<(usize, ThreadId)>>>;

/// A backend without numerics whose programs of one node take a while on the executor thread, and others every
/// processor.
struct Waiting(Log);

struct Program {
    log: Log,
    nodes: usize,
    outputs: usize,
}

impl Backend for Waiting {
    fn name(&self) -> &str {
        "waiting"
    }

    fn device_count(&self) -> usize {
        1
    }

    fn compile(&self, _: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        Ok(Arc::new(Program { log: self.0.clone(), nodes: graph.nodes().len(), outputs: graph.outputs().len() }))
    }

    fn upload(&self, _: DeviceIndex, _: &HostTensor) -> Result<Buffer, BackendError> {
        Ok(Buffer::new(()))
    }

    fn download(&self, _: DeviceIndex, _: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        Ok(HostTensor { layout: layout.clone(), bytes: vec![0; layout.storage_bytes()] })
    }
}

impl Executable for Program {
    fn execute(&self, _: Inputs, sink: &mut dyn OutputSink) {
        let start = Instant::now();
        while self.nodes == 1 && start.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        self.log.lock().push((self.nodes, thread::current().id()));
        (0..self.outputs).for_each(|i| sink.output(i, Ok(Buffer::new(()))));
    }

    fn cost(&self) -> Option<RunCost> {
        (self.nodes > 1).then_some(RunCost {
            time: Duration::from_millis(1),
            threads: 1 << 20,
            single_thread: SingleThread::Never,
        })
    }

    fn text(&self) -> String {
        String::new()
    }
}

#[test]
fn a_program_on_its_callers_thread_waits_for_those_that_were_handed_over() -> Result<(), Error> {
    let log = Log::default();
    let session = Session::new(Arc::new(Waiting(log.clone())), Config::default())?;
    let dev = session.device(0)?;
    let x = LazyTensor::from_slice(dev, &[1.0f32, 2.0], &[2])?;
    // Several times: which of them would overtake others is chance.
    for _ in 0..8 {
        for _ in 0..10 {
            let _y = &x * 2.0;
            dev.sync()?;
        }
        let _y = (&x * 2.0).relu()?;
        dev.sync()?;
        let ran = std::mem::take(&mut *log.lock());
        let (handed, here) = (ran[0].1, thread::current().id());
        assert_ne!(handed, here);
        let expected: Vec<_> = (0..10).map(|_| (1, handed)).chain([(2, here)]).collect();
        assert_eq!(ran, expected);
    }
    Ok(())
}
