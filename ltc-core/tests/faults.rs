//! The n-th compile, run, operator (an allocation of it), upload or download of a training run fails or is slow, for
//! every n there is: nothing hangs, the state behind the error is eager's, and training goes on from there as if it
//! began there.
//!
//! `LTC_TEST_CASES` is how many steps the run has (`make faults` takes more).

#![expect(clippy::print_stdout, reason = "the campaign's figures")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

use ltc_backend::{
    Backend, BackendError, Buffer, DeviceIndex, ExecError, Executable, HostTensor, Input, Inputs, OutputSink,
    ReferenceBackend,
};
use ltc_core::{
    Config, Error, LazyTensor, Session,
    nn::{Linear, Optimizer, Sgd, SgdConfig, Vars},
};
use ltc_ir::{ErrorClass, Graph, LayoutRef};

/// What is counted, and can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Compile,
    Run,
    Allocation,
    Upload,
    Download,
}

const KINDS: [Kind; 5] = [Kind::Compile, Kind::Run, Kind::Allocation, Kind::Upload, Kind::Download];

#[derive(Clone, Copy, PartialEq, Debug)]
enum How {
    Fails,
    IsSlow,
}

/// How many there were of each, and which of what kind is struck.
struct Plan {
    counts: [AtomicUsize; 5],
    strike: Option<(Kind, usize, How)>,
}

#[derive(Clone)]
struct Faulty(Arc<Plan>);

impl Faulty {
    fn new(strike: Option<(Kind, usize, How)>) -> Self {
        Faulty(Arc::new(Plan { counts: Default::default(), strike }))
    }

    fn counts(&self) -> [usize; 5] {
        std::array::from_fn(|i| self.0.counts[i].load(SeqCst))
    }

    /// Counts one, or several at once: which of them fails.
    fn strikes(&self, kind: Kind, many: usize) -> Option<usize> {
        let first = self.0.counts[kind as usize].fetch_add(many, SeqCst);
        match self.0.strike {
            Some((k, n, how)) if k == kind && (first..first + many).contains(&n) => match how {
                How::Fails => Some(n - first),
                How::IsSlow => {
                    // Nothing is ever sent: this is what a device that is slow takes.
                    let (_open, never) = mpsc::channel::<()>();
                    let _timeout = never.recv_timeout(Duration::from_millis(20));
                    None
                }
            },
            _ => None,
        }
    }
}

fn refused() -> BackendError {
    BackendError::Device("ordered to fail".into())
}

impl Backend for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn device_count(&self) -> usize {
        1
    }

    fn compile(&self, d: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        if self.strikes(Kind::Compile, 1).is_some() {
            return Err(refused());
        }
        let all = ReferenceBackend.compile(d, graph)?;
        Ok(Arc::new(Program { backend: self.clone(), graph: graph.clone(), all }))
    }

    fn upload(&self, d: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError> {
        if self.strikes(Kind::Upload, 1).is_some() { Err(refused()) } else { ReferenceBackend.upload(d, host) }
    }

    fn download(&self, d: DeviceIndex, buffer: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        if self.strikes(Kind::Download, 1).is_some() {
            return Err(refused());
        }
        ReferenceBackend.download(d, buffer, layout)
    }
}

struct Program {
    backend: Faulty,
    graph: Arc<Graph>,
    all: Arc<dyn Executable>,
}

/// Tells some outputs under other numbers.
struct Under<'a>(&'a mut dyn OutputSink, Vec<usize>);

impl OutputSink for Under<'_> {
    fn output(&mut self, index: usize, result: Result<Buffer, Arc<ExecError>>) {
        self.0.output(self.1[index], result);
    }
}

impl Program {
    /// The outputs with these numbers; nothing else runs.
    fn some(&self, outputs: &[usize], inputs: &Inputs, sink: &mut dyn OutputSink) {
        let (part, params) = self.graph.part(&outputs.iter().map(|&o| self.graph.outputs()[o]).collect::<Vec<_>>());
        let params = params.iter().map(|&p| Input { buffer: inputs.params[p].buffer.clone(), donated: false });
        let inputs = Inputs::new(params, inputs.numbers.iter().copied());
        let part = ReferenceBackend.compile(DeviceIndex(0), &Arc::new(part)).expect("compiled before as a whole");
        part.execute(inputs, &mut Under(sink, outputs.to_vec()));
    }
}

impl Executable for Program {
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink) {
        let (graph, nodes) = (&self.graph, self.graph.nodes());
        let run = self.backend.strikes(Kind::Run, 1).map(|_| 0);
        let Some(at) = run.or(self.backend.strikes(Kind::Allocation, nodes.len())).filter(|_| !nodes.is_empty()) else {
            sink.safe();
            return self.all.execute(inputs, sink);
        };
        let outputs = graph.outputs();
        let (op, message) = (nodes[at].op().name(), "ordered to fail: out of memory");
        let error = Arc::new(ExecError::new(op, ErrorClass::Runtime, message).at(at));
        let place = |o: &usize| graph.definition_index(outputs[*o]).unwrap_or(0);
        let (before, lost): (Vec<usize>, Vec<usize>) = (0..outputs.len()).partition(|o| place(o) < at);
        self.some(&before, &inputs, sink);
        // A device that is out of memory does nothing of the rest either.
        sink.failed(&error);
        lost.into_iter().for_each(|o| sink.output(o, Err(error.clone())));
    }

    fn text(&self) -> String {
        self.graph.to_string()
    }
}

type State = Vec<Vec<f32>>;

struct Training {
    session: Session,
    layers: [Linear; 2],
    optimiser: Sgd,
}

impl Training {
    fn new(backend: Faulty, asynchronous: bool) -> Result<Self, Error> {
        let mut config = Config::default();
        (config.assume_faults, config.async_execution) = (true, asynchronous);
        let session = Session::new(Arc::new(backend), config)?;
        let vars = Vars::new(session.device(0)?);
        session.device(0)?.manual_seed(4);
        let layers = [Linear::new(&vars.at("a"), 3, 4)?, Linear::new(&vars.at("b"), 4, 1)?];
        let optimiser = Sgd::new(&vars, 0.05, SgdConfig::default());
        Ok(Training { session, layers, optimiser })
    }

    /// One step on a batch whose size changes now and then.
    fn step(&mut self, i: usize) -> Result<f32, Error> {
        let rows = 2 + (i / 3) % 3;
        let device = self.session.device(0)?;
        let numbers: Vec<f32> = (0..rows * 3).map(|k| ((k * 7 + i * 5) % 11) as f32 / 4.0 - 1.0).collect();
        let x = LazyTensor::from_slice(device, &numbers, &[rows as i64, 3])?;
        let hidden = self.layers[0].forward(&x)?.relu()?;
        let loss = self.layers[1].forward(&hidden)?.square()?.mean()?;
        self.optimiser.backward_step(&loss)?;
        self.session.device(0)?.sync()?;
        Ok(loss.detach().to_vec::<f32>()?[0])
    }

    fn state(&self) -> Result<State, Error> {
        self.optimiser.vars().all().iter().map(|(_, v)| v.detach().to_vec::<f32>()).collect()
    }

    fn load(&self, state: &State) -> Result<(), Error> {
        let _off = ltc_core::no_grad();
        for ((_, var), values) in self.optimiser.vars().all().iter().zip(state) {
            var.assign(&LazyTensor::from_slice(var.device(), values, var.sizes())?)?;
        }
        Ok(())
    }
}

/// Steps `from..to` from a state on, without faults: the state after each.
fn clean(start: Option<&State>, from: usize, to: usize) -> Vec<State> {
    let mut training = Training::new(Faulty::new(None), false).expect("it starts");
    start.into_iter().for_each(|s| training.load(s).expect("a state is taken"));
    let mut states = vec![training.state().expect("a state")];
    for i in from..to {
        training.step(i).expect("nothing fails");
        states.push(training.state().expect("a state"));
    }
    states
}

/// Whether every variable is as before the step or as behind it, and those behind it come first.
fn is_between(state: &State, before: &State, after: &State) -> bool {
    let moved = state.iter().zip(after).take_while(|(a, b)| a == b).count();
    state.iter().zip(before).skip(moved).all(|(a, b)| a == b)
}

/// Whether a state is what eager leaves of step `i`: the loss is known before the variables are moved, so an error in
/// moving them may come in the step behind, which has then run from what was left.
fn is_left_by(i: usize, state: &State, expected: &[State]) -> bool {
    if is_between(state, &expected[i], &expected[i + 1]) {
        return true;
    }
    let mixed = |moved: usize| -> State {
        let pick = |k: usize| if k < moved { &expected[i][k] } else { &expected[i - 1][k] };
        (0..state.len()).map(|k| pick(k).clone()).collect()
    };
    i > 0 && (0..=state.len()).map(mixed).any(|left| is_between(state, &left, &clean(Some(&left), i, i + 1)[1]))
}

/// One run with a strike; whether it was an error to somebody.
fn struck(strike: (Kind, usize, How), steps: usize, asynchronous: bool, expected: &[State]) -> bool {
    let mut failures = 0;
    let Ok(mut training) = Training::new(Faulty::new(Some(strike)), asynchronous) else { return true };
    for i in 0..steps {
        let Err(error) = training.step(i) else { continue };
        assert!(error.to_string().contains("ordered to fail"), "step {i}: {error}");
        failures += 1;
        // The first variable may be what failed: it was drawn in the program of the first step.
        let state = match training.state() {
            Ok(state) => state,
            Err(_) if i == 0 => return true,
            Err(e) => panic!("step {i}: the state is lost: {e}"),
        };
        assert!(is_left_by(i, &state, expected), "step {i}: {state:?} of {expected:?}");
        let rest = clean(Some(&state), i + 1, steps);
        for k in i + 1..steps {
            training.step(k).expect("it fails once");
        }
        assert_eq!(training.state().expect("a state"), rest[steps - i - 1], "the rest of the run");
        break;
    }
    if failures == 0 {
        match training.state() {
            Ok(state) => assert_eq!(state, expected[steps]),
            Err(e) => {
                assert!(e.to_string().contains("ordered to fail"), "{e}");
                let state = training.state().expect("told once");
                assert!(is_between(&state, &expected[steps - 1], &expected[steps]), "{state:?}");
                return true;
            }
        }
    }
    assert!(failures == 0 || strike.2 == How::Fails, "what is slow does not fail");
    failures > 0
}

/// Runs it on a thread of its own: a hang is a failure of the test, not of who waits for it.
fn watched(what: &str, run: impl FnOnce() -> bool + Send + 'static) -> bool {
    let (done, told) = mpsc::channel();
    let thread = thread::spawn(move || done.send(run()));
    match told.recv_timeout(Duration::from_secs(60)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(why) => panic!("{what}: {:?}", why.downcast_ref::<String>()),
            Ok(_) => unreachable!("it sends before it ends"),
        },
    }
}

#[test]
fn whatever_fails_or_is_slow_in_a_training_run_costs_one_step_and_nothing_hangs() {
    let steps = std::env::var("LTC_TEST_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(5);
    let expected = Arc::new(clean(None, 0, steps));
    let counted = Faulty::new(None);
    let mut training = Training::new(counted.clone(), false).expect("it starts");
    for i in 0..steps {
        training.step(i).expect("nothing fails");
    }
    let counts = counted.counts();
    let mut runs = 0;
    for (kind, count) in KINDS.into_iter().zip(counts) {
        assert!(count > 0, "{kind:?}: none in {steps} steps");
        let mut failed = 0;
        for (how, asynchronous) in [(How::Fails, false), (How::Fails, true), (How::IsSlow, true)] {
            // What is slow is so for others in the same way: the short form tries some.
            let by = if how == How::IsSlow { (count / 12).max(1) } else { 1 };
            for n in (0..count).step_by(by) {
                let expected = expected.clone();
                let what = format!("{kind:?} {n} of {count} {how:?}, asynchronous: {asynchronous}");
                failed += usize::from(watched(&what, move || struck((kind, n, how), steps, asynchronous, &expected)));
                runs += 1;
            }
        }
        println!("{kind:?}: {count} in {steps} steps, each failed and was slow; {failed} runs saw an error");
        assert!(failed >= count, "{kind:?}: {failed} failures of {count} were seen");
    }
    println!("{runs} runs");
}
