//! A backend without numerics: buffers are empty, every call is logged, failures can be ordered.

use std::{any::Any, sync::Arc};

use ltc_ir::{ErrorClass, Graph, LayoutRef};
use parking_lot::{Condvar, Mutex};

use crate::{Backend, BackendError, Buffer, DeviceIndex, ExecError, Executable, Fence, HostTensor, Inputs, OutputSink};

/// What happens when a program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// Every output is produced.
    #[default]
    Succeed,
    /// Operators of this name fail; what depends on them fails with them.
    FailOp(String),
    /// The backend panics.
    Panic,
    /// Compiling fails.
    FailCompile,
}

#[derive(Debug, Default)]
struct State {
    log: Vec<String>,
    behaviour: Behaviour,
    closed: bool,
    /// Its devices compute by themselves: so many programs they were given, and so many they have done.
    by_themselves: Option<(usize, usize)>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    gate: Condvar,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct RecordingBackend(Arc<Shared>);

impl RecordingBackend {
    /// Calls so far, in order, and forgets them.
    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.0.state.lock().log)
    }

    /// What programs do from now on.
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        self.0.state.lock().behaviour = behaviour;
    }

    /// Holds executions back until [`RecordingBackend::open_gate`].
    pub fn close_gate(&self) {
        self.0.state.lock().closed = true;
    }

    /// Lets executions go on.
    pub fn open_gate(&self) {
        self.0.state.lock().closed = false;
        self.0.gate.notify_all();
    }

    /// From now on devices compute by themselves, and have done nothing of what they are given yet.
    pub fn compute_by_itself(&self) {
        self.0.state.lock().by_themselves = Some((0, 0));
    }

    /// The devices have done the first `count` of the programs they were given since.
    pub fn pass(&self, count: usize) {
        if let Some((_, done)) = &mut self.0.state.lock().by_themselves {
            *done = count;
        }
        self.0.gate.notify_all();
    }

    fn log(&self, call: String) {
        self.0.state.lock().log.push(call);
    }
}

impl Backend for RecordingBackend {
    fn name(&self) -> &str {
        "recording"
    }

    fn device_count(&self) -> usize {
        2
    }

    fn compile(&self, _: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        if self.0.state.lock().behaviour == Behaviour::FailCompile {
            return Err(BackendError::CannotLower { op: "program".into(), reason: "ordered to fail".into() });
        }
        self.log(format!("compile {} nodes", graph.nodes().len()));
        Ok(Arc::new(Logged { backend: self.clone(), graph: graph.clone() }))
    }

    fn upload(&self, _: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError> {
        self.log(format!("upload {}", host.layout));
        Ok(Buffer::new(()))
    }

    fn has_slices(&self) -> bool {
        true
    }

    fn slice(&self, _: DeviceIndex, _: &Buffer, layout: &LayoutRef, offset: i64) -> Result<Buffer, BackendError> {
        self.log(format!("slice {layout} from {offset}"));
        Ok(Buffer::new(()))
    }

    fn fence(&self, _: DeviceIndex) -> Option<Arc<dyn Fence>> {
        let (given, _) = self.0.state.lock().by_themselves?;
        Some(Arc::new(Behind { backend: self.clone(), number: given }))
    }

    fn download(&self, _: DeviceIndex, _: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        self.log(format!("download {layout}"));
        Ok(HostTensor { layout: layout.clone(), bytes: vec![0; layout.storage_bytes()] })
    }
}

/// Behind the program of this number.
#[derive(Debug)]
struct Behind {
    backend: RecordingBackend,
    number: usize,
}

impl Behind {
    fn is_passed(&self, state: &State) -> bool {
        state.by_themselves.is_none_or(|(_, done)| done >= self.number)
    }
}

impl Fence for Behind {
    fn is_passed(&self) -> bool {
        self.is_passed(&self.backend.0.state.lock())
    }

    fn wait(&self) -> Result<(), BackendError> {
        let mut state = self.backend.0.state.lock();
        while !self.is_passed(&state) {
            self.backend.0.gate.wait(&mut state);
        }
        Ok(())
    }

    /// Each program takes a second.
    fn seconds_since(&self, earlier: &dyn Fence) -> Option<f64> {
        let earlier = (earlier as &dyn Any).downcast_ref::<Behind>()?;
        Fence::is_passed(self).then_some(self.number as f64 - earlier.number as f64)
    }
}

struct Logged {
    backend: RecordingBackend,
    graph: Arc<Graph>,
}

impl Executable for Logged {
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink) {
        let behaviour = {
            let mut state = self.backend.0.state.lock();
            while state.closed {
                self.backend.0.gate.wait(&mut state);
            }
            state.log.push(format!("execute {} nodes, numbers {:?}", self.graph.nodes().len(), inputs.numbers.len()));
            if let Some((given, _)) = &mut state.by_themselves {
                *given += 1;
            }
            state.behaviour.clone()
        };
        assert!(behaviour != Behaviour::Panic, "ordered to panic");
        let mut failed: Vec<Option<Arc<ExecError>>> = vec![None; self.graph.value_count()];
        for (i, input) in inputs.params.iter().enumerate() {
            failed[i] = input.buffer.as_ref().err().cloned();
        }
        for (i, node) in self.graph.nodes().iter().enumerate() {
            let of_operands = node.operands.iter().filter_map(|&o| failed[self.graph.slot(o)].clone());
            let mut error = of_operands.min_by_key(|e| e.node);
            if behaviour == Behaviour::FailOp(node.op().name().into()) {
                error = error.or_else(|| {
                    let error = ExecError::new(node.op().name(), ErrorClass::Runtime, "ordered to fail");
                    Some(Arc::new(error.at(i)))
                });
            }
            error.iter().for_each(|error| sink.failed(error));
            for r in node.result_ids() {
                failed[self.graph.slot(r)] = error.clone();
            }
        }
        for (i, &output) in self.graph.outputs().iter().enumerate() {
            sink.output(i, failed[self.graph.slot(output)].clone().map_or_else(|| Ok(Buffer::new(())), Err));
        }
    }

    fn text(&self) -> String {
        format!("{} nodes", self.graph.nodes().len())
    }
}
