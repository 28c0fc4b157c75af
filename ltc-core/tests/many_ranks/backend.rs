//! A rank's device: numbers below a prime, a clock, and collectives on the engine.
//!
//! `sim::all_reduce` begins and ends where it stands, as the collectives of `torch.distributed` do here. `sim::begin`
//! and `sim::finish` are its halves, for what overlap would give.

use std::{sync::Arc, time::Duration};

use ltc_backend::{Backend, BackendError, Buffer, DeviceIndex, ExecError, Executable, HostTensor, Inputs, OutputSink};
use ltc_ir::{ErrorClass, Graph, GraphNode, LayoutRef};
use parking_lot::Mutex;

use crate::engine::{Chance, Engine, PRIME, pause};

struct State {
    /// Seconds this rank has worked and waited.
    clock: f64,
    chance: Chance,
}

struct Rank {
    engine: Arc<Engine>,
    number: usize,
    /// Joins some collectives late, in real time.
    dawdles: bool,
    /// By which part computing takes longer, at most.
    uneven: f64,
    state: Mutex<State>,
}

#[derive(Clone)]
pub(crate) struct RankBackend(Arc<Rank>);

impl RankBackend {
    pub(crate) fn new(engine: &Arc<Engine>, number: usize, dawdles: bool, uneven: f64) -> Self {
        let state = Mutex::new(State { clock: 0.0, chance: Chance::new(1000 + number as u64) });
        RankBackend(Arc::new(Rank { engine: engine.clone(), number, dawdles, uneven, state }))
    }

    pub(crate) fn clock(&self) -> f64 {
        self.0.state.lock().clock
    }
}

impl Rank {
    fn begin(&self, value: i64, label: i64, bytes: f64) -> Result<usize, String> {
        let late = self.dawdles && self.state.lock().chance.once_in(4);
        if late {
            pause(Duration::from_micros(500).mul_f64(self.state.lock().chance.part()));
        }
        self.engine.join(self.number, label, value, bytes, self.state.lock().clock)
    }

    fn finish(&self, number: usize) -> Result<i64, String> {
        let (sum, clock) = self.engine.finish(self.number, number)?;
        let mut state = self.state.lock();
        state.clock = state.clock.max(clock);
        Ok(sum)
    }

    fn compute(&self, seconds: f64) {
        let mut state = self.state.lock();
        state.clock += seconds * (1.0 + self.uneven * state.chance.part());
    }

    /// Results of a node: what it writes, then what it makes.
    fn run(&self, node: &GraphNode, operands: &[i64], numbers: &[u64]) -> Result<Vec<i64>, String> {
        let number = |i: usize| f64::from_bits(numbers[i]);
        Ok(match (node.op().name(), operands) {
            ("ltc::read_view", &[x]) => vec![x],
            ("sim::scale", &[x]) => vec![x * number(0) as i64 % PRIME],
            ("sim::add", &[x, y]) => vec![(x + y) % PRIME],
            ("sim::fail", _) => return Err("ordered to fail".into()),
            ("sim::compute", &[x]) => {
                self.compute(number(0));
                vec![x]
            }
            ("sim::all_reduce", &[x, token]) => {
                vec![token + 1, self.finish(self.begin(x, number(0) as i64, number(1))?)?]
            }
            ("sim::begin", &[x, token]) => vec![token + 1, self.begin(x, number(0) as i64, number(1))? as i64],
            ("sim::finish", &[begun]) => vec![self.finish(begun as usize)?],
            (op, _) => return Err(format!("no kernel for {op} of {operands:?}")),
        })
    }
}

impl Backend for RankBackend {
    fn name(&self) -> &str {
        "rank"
    }

    fn device_count(&self) -> usize {
        1
    }

    fn compile(&self, _: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        Ok(Arc::new(Program { rank: self.0.clone(), graph: graph.clone() }))
    }

    fn upload(&self, _: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError> {
        let bytes = host.bytes.as_slice().try_into();
        let number = bytes.map_err(|e| BackendError::BufferMismatch(format!("{}: {e}", host.layout)))?;
        Ok(Buffer::new(i64::from_ne_bytes(number)))
    }

    fn download(&self, _: DeviceIndex, buffer: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        let number = buffer.get::<i64>().ok_or_else(|| BackendError::BufferMismatch("not a number".into()))?;
        Ok(HostTensor { layout: layout.clone(), bytes: number.to_ne_bytes().into() })
    }
}

struct Program {
    rank: Arc<Rank>,
    graph: Arc<Graph>,
}

impl Executable for Program {
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink) {
        let graph = &self.graph;
        let mut values: Vec<Option<Result<i64, Arc<ExecError>>>> = vec![None; graph.value_count()];
        for (value, input) in values.iter_mut().zip(&inputs.params) {
            *value = Some(input.buffer.clone().map(|buffer| *buffer.get::<i64>().expect("made here")));
        }
        for (index, node) in graph.nodes().iter().enumerate() {
            let operand = |&o| values[graph.slot(o)].clone().expect("made before");
            let operands: Result<Vec<i64>, _> = node.operands.iter().map(operand).collect();
            let numbers = &inputs.numbers[node.first_number as usize..];
            let results = operands.and_then(|operands| {
                self.rank.run(node, &operands, numbers).map_err(|message| {
                    Arc::new(ExecError::new(node.op().name(), ErrorClass::Runtime, message).at(index))
                })
            });
            if let Err(error) = &results {
                sink.failed(error);
            }
            for (i, id) in node.result_ids().enumerate() {
                values[graph.slot(id)] = Some(results.as_ref().map(|all| all[i]).map_err(Arc::clone));
            }
        }
        for (i, &output) in graph.outputs().iter().enumerate() {
            sink.output(i, values[graph.slot(output)].clone().expect("made").map(Buffer::new));
        }
    }

    fn text(&self) -> String {
        self.graph.to_string()
    }
}
