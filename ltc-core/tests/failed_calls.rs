//! A call that fails leaves what eager execution leaves: random programs over native tensors, a failure forced at any
//! of their calls while they run or are compiled, beside the same calls one by one up to the one that fails.

use std::sync::Arc;

use ltc_backend::{
    Backend, BackendError, Buffer, DeviceIndex, ExecError, Executable, HostTensor, Inputs, OutputSink, ReferenceBackend,
};
use ltc_core::{Config, Device, Error, Index, LazyTensor, Session};
use ltc_ir::{DType, ErrorClass, Graph, LayoutRef};
use parking_lot::Mutex;

/// Where the reference backend is made to fail.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// Running an operator with this number.
    Run(u64),
    /// The same, of an operator that cannot fail: there is no memory for it.
    Memory(u64),
    /// Compiling this operator.
    Compile(&'static str),
}

#[derive(Clone)]
struct Faulty(Arc<Mutex<Fault>>);

struct Program {
    backend: Faulty,
    graph: Arc<Graph>,
}

impl Backend for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn device_count(&self) -> usize {
        1
    }

    fn compile(&self, d: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        let refused = |n: &ltc_ir::GraphNode| *self.0.lock() == Fault::Compile(n.op().name());
        if let Some(node) = graph.nodes().iter().find(|n| refused(n)) {
            return Err(BackendError::CannotLower { op: node.op().name().into(), reason: "ordered to fail".into() });
        }
        ReferenceBackend.compile(d, graph)?;
        Ok(Arc::new(Program { backend: self.clone(), graph: graph.clone() }))
    }

    fn upload(&self, d: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError> {
        ReferenceBackend.upload(d, host)
    }

    fn download(&self, d: DeviceIndex, buffer: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        ReferenceBackend.download(d, buffer, layout)
    }
}

/// Tells some outputs under other numbers.
struct Under<'a>(&'a mut dyn OutputSink, Vec<usize>);

impl OutputSink for Under<'_> {
    fn output(&mut self, index: usize, result: Result<Buffer, Arc<ExecError>>) {
        self.0.output(self.1[index], result);
    }
}

impl Executable for Program {
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink) {
        let graph = &self.graph;
        let fault = *self.backend.0.lock();
        let (Fault::Run(marker) | Fault::Memory(marker)) = fault else {
            sink.safe();
            return self.run(graph, inputs, sink);
        };
        let has = |n: &ltc_ir::GraphNode| {
            inputs.numbers[n.first_number as usize..][..n.number_count as usize].contains(&marker)
        };
        let Some(at) = graph.nodes().iter().position(has) else {
            sink.safe();
            return self.run(graph, inputs, sink);
        };
        let outputs = graph.outputs();
        let depends = |o: usize| graph.needs([outputs[o]])[at];
        let made_at = |o: &usize| graph.definition_index(outputs[*o]).unwrap_or(0);
        let (failed, fine): (Vec<usize>, Vec<usize>) = (0..outputs.len()).partition(|&o| depends(o));
        let (before, after): (Vec<usize>, Vec<usize>) = fine.into_iter().partition(|o| made_at(o) < at);
        let op = graph.nodes()[at].op().name();
        let error = Arc::new(ExecError::new(op, ErrorClass::Index, "ordered to fail").at(at));
        let some = |outputs: &[usize], sink: &mut dyn OutputSink| {
            let (part, params) = graph.part(&outputs.iter().map(|&o| graph.outputs()[o]).collect::<Vec<_>>());
            let params = params.iter().map(|&p| {
                let buffer = inputs.params[p].buffer.clone();
                ltc_backend::Input { buffer, donated: false }
            });
            let inputs = Inputs::new(params, inputs.numbers.iter().copied());
            self.run(&Arc::new(part), inputs, &mut Under(sink, outputs.to_vec()));
        };
        let is_safe = matches!(fault, Fault::Memory(_)) && inputs.params.iter().all(|p| p.buffer.is_ok());
        if is_safe {
            sink.safe();
        }
        some(&before, sink);
        if is_safe {
            sink.failed(&error);
            let there = inputs.params.iter().enumerate().filter_map(|(i, p)| Some((i, p.buffer.as_ref().ok()?)));
            there.for_each(|(i, buffer)| sink.still_there(i, buffer));
        }
        failed.iter().for_each(|&o| sink.output(o, Err(error.clone())));
        some(&after, sink);
    }

    fn text(&self) -> String {
        self.graph.to_string()
    }
}

impl Program {
    fn run(&self, graph: &Arc<Graph>, inputs: Inputs, sink: &mut dyn OutputSink) {
        ReferenceBackend.compile(DeviceIndex(0), graph).expect("compiled before").execute(inputs, sink);
    }
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) as usize % n
    }
}

#[derive(Clone, Copy, Debug)]
enum Call {
    /// `a *= m`.
    Scale(usize),
    /// `a = b * m`.
    Overwrite(usize, usize),
    /// Half of `a` becomes half of `b`, times `m`.
    Half(usize, usize),
    /// `a = b`: both hold one value then.
    Share(usize, usize),
    /// `a = a + rand`, times `m`.
    Draw(usize),
    /// A new tensor, `b * m`.
    New(usize),
    /// The same, written into new memory.
    NewMemory(usize),
    /// All that is recorded is sent.
    Mark,
    /// What one tensor needs is sent.
    Send(usize),
}

const STATE: usize = 5;
const UNWRITTEN: usize = 4;

fn calls(seed: u64, n: usize) -> Vec<Call> {
    let mut r = Random(seed | 1);
    (0..n)
        .map(|_| {
            let (a, b) = (r.below(STATE), r.below(STATE));
            match r.below(13) {
                0 | 1 => Call::Scale(a),
                2 | 3 => Call::Overwrite(a, b),
                4 | 5 => Call::Half(a, b),
                6 | 7 => Call::Share(a, b),
                8 => Call::Draw(a),
                9 => Call::New(a),
                10 => Call::NewMemory(a),
                11 => Call::Mark,
                _ => Call::Send(a),
            }
        })
        .collect()
}

struct World {
    session: Session,
    fault: Faulty,
    state: Vec<LazyTensor>,
    new: Vec<(usize, LazyTensor)>,
}

/// How to call what fails.
#[derive(Clone, Copy, PartialEq, Debug)]
enum How {
    Run,
    Compile,
}

impl World {
    fn new(asynchronous: bool) -> Self {
        Self::with(asynchronous, true)
    }

    /// `assumes`: every operator counts as one that can fail.
    fn with(asynchronous: bool, assumes: bool) -> Self {
        let fault = Faulty(Arc::new(Mutex::new(Fault::None)));
        let mut config = Config::default();
        (config.assume_faults, config.async_execution) = (assumes, asynchronous);
        let session = Session::new(Arc::new(fault.clone()), config).expect("a session");
        let dev = session.device(0).expect("a device");
        dev.manual_seed(3);
        let state = (0..STATE).map(|i| {
            LazyTensor::from_slice(dev, &[1.0f32, 2.0, 3.0, 4.0].map(|x| x + i as f32), &[4]).expect("a tensor")
        });
        let mut state: Vec<_> = state.collect();
        // Memory that nobody wrote to is memory, too; the reference backend's holds zeros.
        state[UNWRITTEN] = LazyTensor::empty(dev, &[4], DType::F32).expect("a tensor");
        World { session, fault, state, new: Vec::new() }
    }

    fn dev(&self) -> &Device {
        self.session.device(0).expect("a device")
    }

    /// `x` times the number of call `i`, by which it is told.
    fn marked(&self, x: &LazyTensor, i: usize, how: Option<How>) -> Result<LazyTensor, Error> {
        match how {
            Some(How::Compile) => x.cosh(),
            _ => Ok(x * (1.0 + (i + 1) as f64 / 1024.0)),
        }
    }

    /// Calls `call`, the `i`-th. `stops`: only what comes before the operator that fails.
    fn call(&mut self, call: Call, i: usize, how: Option<How>, stops: bool) -> Result<(), Error> {
        let halves = [Index::from(0..2), Index::from(2..4)];
        match call {
            Call::Scale(a) if !stops => self.state[a].assign(&self.marked(&self.state[a], i, how)?),
            Call::Overwrite(a, b) if !stops => self.state[a].assign(&self.marked(&self.state[b], i, how)?),
            Call::Half(a, b) if !stops => {
                let [to, from] = halves;
                let value = self.marked(&self.state[b].i(from)?, i, how)?;
                self.state[a].i(to)?.assign(&value)
            }
            Call::Share(a, b) => self.state[a].assign(&self.state[b]),
            Call::Draw(a) => {
                let drawn = (&self.state[a] + LazyTensor::rand(self.dev(), &[4], DType::F32)?).detach();
                if stops {
                    return Ok(());
                }
                self.state[a].assign(&self.marked(&drawn, i, how)?)
            }
            Call::New(b) if !stops => {
                let new = self.marked(&self.state[b], i, how)?;
                self.new.push((i, new));
                Ok(())
            }
            Call::NewMemory(b) if !stops => {
                let value = self.marked(&self.state[b], i, how)?;
                let new = LazyTensor::empty(self.dev(), &[4], DType::F32)?;
                new.assign(&value)?;
                self.new.push((i, new));
                Ok(())
            }
            Call::Mark => self.dev().sync(),
            Call::Send(a) => self.state[a].sync(),
            _ => Ok(()),
        }
    }

    fn values(&self) -> Vec<Vec<f32>> {
        self.state.iter().map(|t| t.to_vec::<f32>().expect("a value")).collect()
    }
}

/// What `calls[..at]` leave, and those from the program after the failing one on.
fn expected(calls: &[Call], at: usize, how: How) -> World {
    let mut world = World::new(false);
    for (i, &call) in calls.iter().enumerate().take(at) {
        world.call(call, i, None, false).and_then(|()| world.dev().sync()).expect("it does not fail");
    }
    world.call(calls[at], at, Some(how), true).and_then(|()| world.dev().sync()).expect("nor does this");
    world
}

fn check(seed: u64, at: usize, how: How) -> bool {
    let calls = calls(seed, 14);
    if matches!(calls[at], Call::Share(..) | Call::Mark | Call::Send(_)) {
        return false;
    }
    let what = format!("seed {seed}, call {at} of {calls:?}, {how:?}");
    let mut world = World::new(false);
    *world.fault.0.lock() = match how {
        How::Run => Fault::Run((1.0 + (at + 1) as f64 / 1024.0).to_bits()),
        How::Compile => Fault::Compile("aten::cosh"),
    };
    // To the end of the program that fails.
    let end = (at..calls.len()).find(|&i| matches!(calls[i], Call::Mark | Call::Send(_))).unwrap_or(calls.len());
    for (i, &call) in calls.iter().enumerate().take(end) {
        world.call(call, i, (i == at).then_some(how), false).expect(&what);
    }
    world.dev().sync().expect(&what);
    *world.fault.0.lock() = Fault::None;
    let failed = world.dev().wait();
    // Nothing asks for what it made: then it never runs.
    let mut expected = expected(&calls, at, how);
    match failed {
        Ok(()) => return false,
        Err(e) => assert!(e.to_string().contains("ordered to fail"), "{what}: {e}"),
    }
    assert!(world.dev().wait().is_ok(), "{what}: told once");
    assert_eq!(world.values(), expected.values(), "{what}");
    for (i, new) in &world.new {
        assert_eq!(new.to_vec::<f32>().is_ok(), *i < at, "{what}: made by call {i}");
    }
    let draw = |w: &World| LazyTensor::rand(w.dev(), &[4], DType::F32).and_then(|t| t.to_vec::<f32>());
    assert_eq!(draw(&world).expect("a draw"), draw(&expected).expect("a draw"), "{what}: draws go on");
    for (i, &call) in calls.iter().enumerate().skip(end) {
        world.call(call, i, None, false).expect(&what);
        expected.call(call, i, None, false).expect(&what);
    }
    assert_eq!(world.values(), expected.values(), "{what}: afterwards");
    true
}

#[test]
fn a_call_that_fails_leaves_what_eager_leaves_wherever_it_stands() {
    for how in [How::Run, How::Compile] {
        let mut failed = 0;
        for seed in 0..60 {
            failed += (0..14).filter(|&at| check(seed, at, how)).count();
        }
        assert!(failed > 200, "{failed} failed calls, {how:?}");
    }
}

/// How many tensors are what eager execution leaves, and how many are failures, after a call found no memory: they are
/// nothing else.
fn without_memory(seed: u64, at: usize) -> (usize, usize) {
    let calls = calls(seed, 14);
    if matches!(calls[at], Call::Share(..) | Call::Mark | Call::Send(_) | Call::Draw(_)) {
        return (0, 0);
    }
    // A value that is only shared is computed by nobody: such a write behind the call stays.
    let calls: Vec<Call> =
        calls.into_iter().map(|c| if let Call::Share(a, _) = c { Call::Scale(a) } else { c }).collect();
    let mut world = World::with(false, false);
    *world.fault.0.lock() = Fault::Memory((1.0 + (at + 1) as f64 / 1024.0).to_bits());
    let end = (at..calls.len()).find(|&i| matches!(calls[i], Call::Mark | Call::Send(_))).unwrap_or(calls.len());
    for (i, &call) in calls.iter().enumerate().take(end) {
        world.call(call, i, (i == at).then_some(How::Run), false).expect("a call");
    }
    world.dev().sync().expect("a sync");
    *world.fault.0.lock() = Fault::None;
    if world.dev().wait().is_ok() {
        return (0, 0);
    }
    let (mut restored, mut lost) = (0, 0);
    for (held, expected) in world.state.iter().zip(expected(&calls, at, How::Run).values()) {
        match held.to_vec::<f32>() {
            Ok(values) => {
                assert_eq!(values, expected, "seed {seed}, call {at} of {calls:?}");
                restored += 1;
            }
            Err(_) => lost += 1,
        }
    }
    (restored, lost)
}

#[test]
fn a_call_that_finds_no_memory_leaves_what_eager_leaves_or_a_failure() {
    let (mut restored, mut lost) = (0, 0);
    for seed in 0..60 {
        for at in 0..14 {
            let (r, l) = without_memory(seed, at);
            (restored, lost) = (restored + r, lost + l);
        }
    }
    // Storages that were written several times in a program of 14 calls: most of those of a model are written once.
    assert!(restored > lost, "{restored} are restored, {lost} are lost");
}

#[test]
fn programs_that_wait_behind_the_failed_one_run_on_what_it_left() {
    let world = World::new(true);
    let (dev, s) = (world.dev(), &world.state);
    *world.fault.0.lock() = Fault::Run(7.0f64.to_bits());
    s[0].assign(&(&s[0] * 2.0)).expect("a write");
    let lost = &s[0] * 7.0;
    s[0].assign(&lost).expect("a write");
    s[1].assign(&s[0]).expect("a write");
    dev.sync().expect("a sync");
    s[0].assign(&(&s[0] * 3.0)).expect("a write");
    s[1].assign(&(&s[1] * 3.0)).expect("a write");
    dev.sync().expect("a sync");
    assert!(s[0].to_vec::<f32>().is_err(), "the first wait says so");
    assert_eq!(s[0].to_vec::<f32>().expect("a value"), [6.0, 12.0, 18.0, 24.0]);
    assert_eq!(s[1].to_vec::<f32>().expect("a value"), [6.0, 9.0, 12.0, 15.0]);
    assert!(lost.to_vec::<f32>().is_err(), "what only the failed call made is lost");
    s[2].assign(&lost).expect("a write");
    assert!(s[2].to_vec::<f32>().is_err(), "writing it somewhere fails again");
    assert_eq!(s[2].to_vec::<f32>().expect("a value"), [3.0, 4.0, 5.0, 6.0]);
}
