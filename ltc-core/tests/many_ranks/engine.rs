//! An engine whose ranks are threads: what a process group is to processes.
//!
//! As gloo does, it takes the n-th calls of all ranks for one collective, whatever was meant. How long a collective
//! takes is counted, not waited: each rank has a clock, and a ring of messages moves the clocks on. What is waited, by
//! chance, is how late a rank joins: that makes orders of threads, which the clocks do not see.

use std::{collections::BTreeSet, fmt::Write, time::Duration};

use parking_lot::{Condvar, Mutex};

use crate::model::Network;

/// Values are numbers below this prime: sums of any order are equal, and products fit.
pub(crate) const PRIME: i64 = (1 << 31) - 1;

/// Numbers that follow from a seed (SplitMix64).
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to 1.
    pub(crate) fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.next().is_multiple_of(times)
    }
}

/// Does nothing for a while, on a thread that others may wake for their own reasons.
pub(crate) fn pause(time: Duration) {
    Condvar::new().wait_for(&mut Mutex::new(()).lock(), time);
}

/// A collective.
struct Call {
    sum: i64,
    bytes: f64,
    /// The clocks of the ranks that joined.
    joined: Vec<Option<f64>>,
    /// The clocks of all ranks once they have the sum.
    done: Option<Vec<f64>>,
}

struct State {
    calls: Vec<Call>,
    /// What each rank called its collectives, in order.
    issued: Vec<Vec<i64>>,
    /// When each rank's link is free.
    free: Vec<f64>,
    /// What each rank's main thread does, for people to read.
    doing: Vec<String>,
    /// Which call each rank's executor waits in.
    waits: Vec<Option<usize>>,
    gone: Vec<bool>,
    /// What ranks have told each other without the engine, as through files or a store.
    told: BTreeSet<usize>,
    /// Whatever any rank did since it was last looked at.
    moves: u64,
    stuck: Option<String>,
    chance: Chance,
}

pub(crate) struct Engine {
    state: Mutex<State>,
    changed: Condvar,
    /// A rank left, or nobody will move any more: what the watchdog waits for.
    left: Condvar,
    network: Network,
    /// Up to how many latencies a message is late.
    late: f64,
}

impl Engine {
    pub(crate) fn new(ranks: usize, network: Network, late: f64) -> Self {
        let state = State {
            calls: Vec::new(),
            issued: vec![Vec::new(); ranks],
            free: vec![0.0; ranks],
            doing: vec!["starts".into(); ranks],
            waits: vec![None; ranks],
            gone: vec![false; ranks],
            told: BTreeSet::new(),
            moves: 0,
            stuck: None,
            chance: Chance::new(1),
        };
        Engine { state: Mutex::new(state), changed: Condvar::new(), left: Condvar::new(), network, late }
    }

    pub(crate) fn ranks(&self) -> usize {
        self.state.lock().gone.len()
    }

    /// Joins a rank's next collective at this time of its clock; its number.
    pub(crate) fn join(&self, rank: usize, label: i64, value: i64, bytes: f64, clock: f64) -> Result<usize, String> {
        let mut state = self.state.lock();
        if state.gone[rank] {
            return Err("this rank left".into());
        }
        let (ranks, number) = (state.gone.len(), state.issued[rank].len());
        state.issued[rank].push(label);
        state.moves += 1;
        if number == state.calls.len() {
            state.calls.push(Call { sum: 0, bytes, joined: vec![None; ranks], done: None });
        }
        let call = &mut state.calls[number];
        call.sum = (call.sum + value) % PRIME;
        call.joined[rank] = Some(clock);
        let joined: Option<Vec<f64>> = call.joined.iter().copied().collect();
        if let Some(joined) = joined {
            let bytes = call.bytes;
            let done = self.ring(&mut state, &joined, bytes);
            state.free.clone_from(&done);
            state.calls[number].done = Some(done);
            self.changed.notify_all();
        }
        Ok(number)
    }

    /// When each rank has the sum, by every message of the ring: a rank goes on once it has sent its own part, and has
    /// its neighbour's.
    fn ring(&self, state: &mut State, joined: &[f64], bytes: f64) -> Vec<f64> {
        let ranks = joined.len();
        let sending = bytes / ranks as f64 / self.network.bandwidth;
        let mut at: Vec<f64> = joined.iter().zip(&state.free).map(|(joined, free)| joined.max(*free)).collect();
        for _ in 0..2 * (ranks - 1) {
            let sent: Vec<f64> = at.iter().map(|at| at + sending).collect();
            for (rank, at) in at.iter_mut().enumerate() {
                let late = 1.0 + self.late * state.chance.part();
                *at = sent[rank].max(sent[(rank + ranks - 1) % ranks] + late * self.network.latency);
            }
        }
        at
    }

    /// Waits for a collective; its sum, and the rank's clock then.
    pub(crate) fn finish(&self, rank: usize, number: usize) -> Result<(i64, f64), String> {
        let mut state = self.state.lock();
        state.waits[rank] = Some(number);
        let result = loop {
            let call = &state.calls[number];
            if let Some(done) = &call.done {
                break Ok((call.sum, done[rank]));
            }
            let missing = (0..call.joined.len()).find(|&other| call.joined[other].is_none() && state.gone[other]);
            if let Some(other) = missing {
                break Err(format!("rank {other} left"));
            }
            if state.stuck.is_some() || state.gone[rank] {
                break Err("given up".into());
            }
            self.changed.wait(&mut state);
        };
        state.waits[rank] = None;
        result
    }

    /// Says what a rank's main thread does.
    pub(crate) fn says(&self, rank: usize, what: String) {
        let mut state = self.state.lock();
        state.doing[rank] = what;
        state.moves += 1;
    }

    /// Tells all ranks of something, without a collective.
    pub(crate) fn tell(&self, what: usize) {
        self.state.lock().told.insert(what);
        self.changed.notify_all();
    }

    /// Waits until a rank has told it.
    pub(crate) fn await_told(&self, what: usize, teller: usize) -> Result<(), String> {
        let mut state = self.state.lock();
        while !state.told.contains(&what) {
            if state.stuck.is_some() || state.gone[teller] {
                return Err(format!("rank {teller} never told {what}"));
            }
            self.changed.wait(&mut state);
        }
        Ok(())
    }

    /// A rank is gone, as a process that ended.
    pub(crate) fn leave(&self, rank: usize) {
        let mut state = self.state.lock();
        (state.gone[rank], state.doing[rank]) = (true, "left".into());
        state.moves += 1;
        drop(state);
        self.changed.notify_all();
        self.left.notify_all();
    }

    /// What each rank called its collectives, in order.
    pub(crate) fn issued(&self) -> Vec<Vec<i64>> {
        self.state.lock().issued.clone()
    }

    /// Waits until all ranks have left. If none does anything for so long, all are told to give up.
    ///
    /// # Errors
    /// Says who waited for whom.
    pub(crate) fn watch(&self, patience: Duration) -> Result<(), String> {
        let mut state = self.state.lock();
        let mut moves = state.moves;
        while !state.gone.iter().all(|gone| *gone) {
            let timed_out = self.left.wait_for(&mut state, patience).timed_out();
            if timed_out && state.moves == moves {
                let told = format!("nobody moved for {patience:?}:{}", state.who_waits());
                state.stuck = Some(told.clone());
                self.changed.notify_all();
                return Err(told);
            }
            moves = state.moves;
        }
        Ok(())
    }
}

impl State {
    fn who_waits(&self) -> String {
        let mut text = String::new();
        for (rank, doing) in self.doing.iter().enumerate() {
            let issued = self.issued[rank].len();
            // A string takes all that is written to it.
            let _ = write!(text, "\n  rank {rank} {doing}, {issued} collectives issued");
            if let Some(number) = self.waits[rank] {
                let call = &self.calls[number];
                let missing: Vec<usize> = (0..call.joined.len()).filter(|&r| call.joined[r].is_none()).collect();
                let label = self.issued[rank][number];
                let _ = write!(text, ", waits in {number} (its {label}) for ranks {missing:?}");
            }
        }
        text
    }
}
