//! Runs a test in several processes: each is this test binary, asked for that one test.
#![allow(dead_code, reason = "each test binary uses some of it")]

use std::{
    env,
    io::Read,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use ltc_dist::{Group, Store};
use tch::Tensor;

/// Which test this process is a rank of.
pub(crate) const TEST: &str = "TEST_OF_RANKS";

/// How long a test may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long ranks wait for each other.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);

/// What became of a rank.
pub(crate) struct Ended {
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// What it said.
    pub(crate) said: String,
}

/// Runs `body` in two processes, which must both end well. `test` is the name of the calling test.
pub(crate) fn two_ranks(test: &str, body: impl FnOnce(Group)) {
    for (rank, ended) in run(test, body).into_iter().enumerate() {
        assert!(ended.status.success(), "rank {rank}: {}\n{}", ended.status, ended.said);
    }
}

/// Runs `body` in two processes; tells what became of them. It is nothing in these processes themselves.
pub(crate) fn run(test: &str, body: impl FnOnce(Group)) -> Vec<Ended> {
    if env::var(TEST).is_ok_and(|name| name == test) {
        body(Group::from_env_within(TIMEOUT).expect("a group of two"));
        return Vec::new();
    }
    // This process serves their store, as torchrun's agent does: a port that is only found free here may be taken by
    // another test before rank 0 listens at it.
    let store = Store::tcp("127.0.0.1:0", 0, 1, TIMEOUT).expect("a store at a port that the system chooses");
    start(test, store.port(), true)
}

/// Runs the test of this name in two processes, whose store is at `port`: `served`, or to be served by rank 0.
pub(crate) fn start(test: &str, port: u16, served: bool) -> Vec<Ended> {
    let agent = if served { "True" } else { "False" };
    let started: Vec<Child> = (0..2)
        .map(|rank: usize| {
            Command::new(env::current_exe().expect("this binary"))
                .args(["--exact", test, "--nocapture", "--test-threads=1"])
                .envs([(TEST, test), ("RANK", &rank.to_string()), ("WORLD_SIZE", "2"), ("OMP_NUM_THREADS", "1")])
                .envs([("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port.to_string())])
                .env("TORCHELASTIC_USE_AGENT_STORE", agent)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("this binary starts")
        })
        .collect();
    let start = Instant::now();
    started.into_iter().map(|child| end_of(child, start)).collect()
}

fn end_of(mut child: Child, start: Instant) -> Ended {
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be asked") {
            break status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().expect("a child can be ended");
            break child.wait().expect("a child that was ended ends");
        }
        thread::park_timeout(Duration::from_millis(10));
    };
    let mut said = String::new();
    let streams: [Option<Box<dyn Read>>; 2] =
        [child.stdout.take().map(|s| Box::new(s) as _), child.stderr.take().map(|s| Box::new(s) as _)];
    for mut stream in streams.into_iter().flatten() {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("what a child said can be read");
        said.push_str(&String::from_utf8_lossy(&bytes));
    }
    Ended { status, said }
}

/// Where tensors are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Place {
    Cpu,
    Ltc,
}

pub(crate) const PLACES: [Place; 2] = [Place::Cpu, Place::Ltc];

impl Place {
    pub(crate) fn put(self, tensor: &Tensor) -> Tensor {
        match self {
            Place::Cpu => tensor.copy(),
            Place::Ltc => {
                ltc_torch::init().expect("the device registers");
                ltc_torch::to_lazy(tensor).expect("a copy")
            }
        }
    }
}

/// The elements of a tensor, wherever it is.
pub(crate) fn values(tensor: &Tensor) -> Vec<f64> {
    let host = ltc_torch::to_cpu(tensor).expect("its value").to_kind(tch::Kind::Double).reshape([-1]);
    Vec::<f64>::try_from(&host).expect("numbers")
}
