//! A backend of which every result is known: data is a number, and an operator mixes those of its operands. Between any
//! two things it does another thread may go on.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use ltc_backend::{
    Backend, BackendError, Buffer, DeviceIndex, ExecError, Executable, HostTensor, Inputs, OutputSink, RunCost,
    SingleThread,
};
use ltc_core::{Config, Device, Error, Session, Storage, TraceValue};
use ltc_ir::{
    ArgWriter, DType, ErrorClass, Graph, Layout, LayoutRef, Op, Operands, Props, Scalar, Signature, SiteId, View,
};
use shuttle::{sync::Mutex, thread};
use smallvec::SmallVec;

/// Device memory, and whatever else goes with it.
pub(crate) struct Memory {
    number: AtomicU64,
    _with: Option<Device>,
}

/// Donated memory that somebody still reads would show this.
const OVERWRITTEN: u64 = u64::MAX;

fn memory(number: u64) -> Buffer {
    Buffer::new(Memory { number: number.into(), _with: None })
}

/// Numbers of the operations that ran, in order.
#[derive(Clone, Default)]
pub(crate) struct Model(Arc<Mutex<Vec<f64>>>);

struct Program {
    backend: Model,
    graph: Arc<Graph>,
}

/// What an operation yields.
fn mixed(number: f64, operands: &[u64]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (number.to_bits(), operands).hash(&mut hasher);
    // Copies are what they are copies of.
    hasher.finish() >> 1
}

impl Model {
    pub(crate) fn session(config: Config) -> (Self, Session) {
        let model = Model::default();
        let session = Session::new(Arc::new(model.clone()), config).expect("a session");
        (model, session)
    }

    /// Numbers of the operations that ran so far.
    pub(crate) fn ran(&self) -> Vec<f64> {
        self.0.lock().expect("no panic").clone()
    }
}

impl Backend for Model {
    fn name(&self) -> &str {
        "model"
    }

    fn device_count(&self) -> usize {
        1
    }

    fn compile(&self, _: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        thread::yield_now();
        Ok(Arc::new(Program { backend: self.clone(), graph: graph.clone() }))
    }

    fn upload(&self, _: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError> {
        Ok(memory(u64::from(host.bytes[0])))
    }

    fn has_slices(&self) -> bool {
        true
    }

    /// The same memory: who writes over it shows here, too.
    fn slice(&self, _: DeviceIndex, buffer: &Buffer, _: &LayoutRef, _: i64) -> Result<Buffer, BackendError> {
        thread::yield_now();
        Ok(buffer.clone())
    }

    fn download(&self, _: DeviceIndex, buffer: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        thread::yield_now();
        let number = buffer.get::<Memory>().expect("ours").number.load(Relaxed);
        Ok(HostTensor { layout: layout.clone(), bytes: number.to_le_bytes().to_vec() })
    }
}

impl Executable for Program {
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink) {
        let graph = &self.graph;
        let mut values: Vec<Option<Result<u64, Arc<ExecError>>>> = vec![None; graph.value_count()];
        for (slot, input) in inputs.params.iter().enumerate() {
            let read = |b: &Buffer| {
                let number = &b.get::<Memory>().expect("ours").number;
                let is_ours = input.donated && b.holders() == 1;
                if is_ours { number.swap(OVERWRITTEN, Relaxed) } else { number.load(Relaxed) }
            };
            values[slot] = Some(input.buffer.as_ref().map(read).map_err(Clone::clone));
        }
        for (i, node) in graph.nodes().iter().enumerate() {
            thread::yield_now();
            let operands: Result<Vec<u64>, _> =
                node.operands.iter().map(|&o| values[graph.slot(o)].clone().expect("made before")).collect();
            let number = inputs.numbers.get(node.first_number as usize).copied().map(f64::from_bits);
            let result = match (node.op().name(), operands) {
                (_, Err(error)) => Err(error),
                // As a generator's state is seeded, and memory that nobody wrote.
                ("test::mix", Ok(operands)) => {
                    let number = number.expect("one each");
                    self.backend.0.lock().expect("no panic").push(number);
                    Ok(mixed(number, &operands))
                }
                ("test::fail", Ok(_)) => {
                    Err(Arc::new(ExecError::new("test::fail", ErrorClass::Index, "ordered to fail").at(i)))
                }
                (_, Ok(operands)) => Ok(operands.first().copied().unwrap_or(0)),
            };
            if let Err(error) = &result {
                sink.failed(error);
            }
            node.result_ids().for_each(|r| values[graph.slot(r)] = Some(result.clone()));
        }
        for (i, &output) in graph.outputs().iter().enumerate() {
            thread::yield_now();
            sink.output(i, values[graph.slot(output)].clone().expect("made").map(memory));
        }
    }

    fn cost(&self) -> Option<RunCost> {
        // Those of two operations take every processor, so their callers run them. Times never decide.
        let time = std::time::Duration::from_millis(1);
        (self.graph.nodes().len() == 2).then_some(RunCost {
            time,
            threads: 1 << 20,
            single_thread: SingleThread::Never,
        })
    }

    fn text(&self) -> String {
        self.graph.to_string()
    }
}

pub(crate) fn layout() -> LayoutRef {
    Layout::contiguous(DType::F32, &[2]).into()
}

/// A value, and what is in it.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) value: TraceValue,
    pub(crate) number: u64,
}

impl Known {
    pub(crate) fn upload(dev: &Device, number: u8) -> Known {
        let value = dev.upload(&HostTensor { bytes: vec![number; 8], layout: layout() }).expect("an upload");
        Known { value, number: u64::from(number) }
    }

    /// Data that keeps the device.
    pub(crate) fn keeping(dev: &Device, number: u64) -> Known {
        let buffer = Buffer::new(Memory { number: number.into(), _with: Some(dev.clone()) });
        Known { value: dev.import(layout(), buffer), number }
    }

    /// Records a mixture of values, which has this number.
    pub(crate) fn mix(dev: &Device, of: &[&Known], number: f64) -> Known {
        let operands: Vec<u64> = of.iter().map(|k| k.number).collect();
        Known { value: record(dev, "test::mix", of, number), number: mixed(number, &operands) }
    }

    /// Records a read of all of it, in another shape: it is pending, and its data is there.
    pub(crate) fn reshaped(&self, dev: &Device) -> Known {
        let view = View { dtype: DType::F32, sizes: &[2, 1], strides: &[1, 1], offset: 0 };
        let value = Storage::with_value(self.value.clone()).read(dev, view, SiteId(1));
        Known { value, number: self.number }
    }

    pub(crate) fn check(&self, dev: &Device) {
        assert_eq!(read(dev, &self.value).expect("a value"), self.number);
    }
}

/// Records an operation of these values.
pub(crate) fn record(dev: &Device, op: &str, of: &[&Known], number: f64) -> TraceValue {
    let mut args = ArgWriter::new();
    for _ in of {
        args.tensor();
    }
    let (words, numbers) = args.number(Scalar::Float(number)).finish();
    let signature = Signature::new(Op::intern(op, Props::NONE), words, SmallVec::from_iter([layout()]));
    let operands: Operands<_> = of.iter().map(|k| k.value.clone()).collect();
    dev.record(&signature, operands, numbers, SiteId(1))
}

pub(crate) fn read(dev: &Device, value: &TraceValue) -> Result<u64, Error> {
    let bytes = dev.download(value)?.bytes;
    Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}
