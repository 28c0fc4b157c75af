//! Placeholders: data on its way to the device's memory.

use std::sync::Arc;

use ltc_backend::{Buffer, ExecError};

use crate::{
    sync::{
        Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    wait::{GiveUp, wait_while},
};

/// The data behind a trace value that needs no more computing: in flight, ready, or failed.
#[derive(Debug)]
pub struct DataCell {
    state: Mutex<State>,
    changed: Condvar,
    /// Number of the program that makes it, by order of sending; 0: none.
    made_by: AtomicU64,
}

#[derive(Debug)]
enum State {
    InFlight,
    Ready(Buffer),
    Failed(Arc<ExecError>, Past),
}

/// What was in the place of data that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Past {
    /// Nothing: only the failed call made it.
    Nothing,
    /// Something that could not be given back, or nobody knows.
    Lost,
}

impl DataCell {
    pub(crate) fn in_flight() -> Arc<Self> {
        Self::with(State::InFlight)
    }

    pub(crate) fn ready(buffer: Buffer) -> Arc<Self> {
        Self::with(State::Ready(buffer))
    }

    fn with(state: State) -> Arc<Self> {
        Arc::new(DataCell { state: Mutex::new(state), changed: Condvar::new(), made_by: AtomicU64::new(0) })
    }

    /// Number of the program that makes the data; 0 for data that no program made, such as uploads.
    pub(crate) fn made_by(&self) -> u64 {
        self.made_by.load(Ordering::Relaxed)
    }

    pub(crate) fn set_made_by(&self, program: u64) {
        self.made_by.store(program, Ordering::Relaxed);
    }

    /// Whether a wait would return at once.
    pub fn is_ready(&self) -> bool {
        !matches!(*self.state.lock(), State::InFlight)
    }

    /// Waits for the data; `None` if the wait was given up.
    pub(crate) fn wait_unless(&self, give_up: GiveUp<'_>) -> Option<Result<Buffer, Arc<ExecError>>> {
        let is_in_flight = |state: &mut State| matches!(*state, State::InFlight);
        let done = wait_while(&self.changed, &mut self.state.lock(), is_in_flight, give_up);
        if done { Some(self.wait()) } else { None }
    }

    /// Whether the data is there, and no failure.
    pub(crate) fn is_good(&self) -> bool {
        matches!(*self.state.lock(), State::Ready(_))
    }

    /// The data, if it is there.
    pub(crate) fn data(&self) -> Option<Buffer> {
        if let State::Ready(buffer) = &*self.state.lock() { Some(buffer.clone()) } else { None }
    }

    /// Waits for the data.
    ///
    /// # Errors
    /// Fails with what the program that makes the data failed with.
    pub fn wait(&self) -> Result<Buffer, Arc<ExecError>> {
        let mut state = self.state.lock();
        loop {
            match &*state {
                State::InFlight => self.changed.wait(&mut state),
                State::Ready(buffer) => return Ok(buffer.clone()),
                State::Failed(error, _) => return Err(error.clone()),
            }
        }
    }

    /// Publishes the result; later calls change nothing. A failure comes with what was in its place before.
    pub(crate) fn set(&self, result: Result<Buffer, (Arc<ExecError>, Past)>) {
        let mut state = self.state.lock();
        if matches!(*state, State::InFlight) {
            *state = match result {
                Ok(buffer) => State::Ready(buffer),
                Err((error, past)) => State::Failed(error, past),
            };
            self.changed.notify_all();
        }
    }

    /// Whether the computation of the data failed and there were no earlier contents to put in its place. Waits until
    /// the cell has settled.
    pub fn never_was(&self) -> bool {
        self.settle();
        self.past() == Some(Past::Nothing)
    }

    /// What was there before, if it failed.
    pub(crate) fn past(&self) -> Option<Past> {
        if let State::Failed(_, past) = *self.state.lock() { Some(past) } else { None }
    }

    /// Waits until it is in flight no more.
    pub(crate) fn settle(&self) {
        let mut state = self.state.lock();
        while matches!(*state, State::InFlight) {
            self.changed.wait(&mut state);
        }
    }

    /// Takes the data out of a settled cell; also says whether `this` was the only reference to the cell. If there are
    /// others, the cell keeps its data and the caller gets a second hold on it, because the other holders may read the
    /// cell at any time. So no thread ever finds a cell whose data was taken.
    pub(crate) fn take(this: Arc<Self>) -> (Result<Buffer, (Arc<ExecError>, Past)>, bool) {
        match Arc::try_unwrap(this).map(|cell| cell.state.into_inner()) {
            Ok(State::Ready(buffer)) => (Ok(buffer), true),
            Ok(State::Failed(error, past)) => (Err((error, past)), true),
            Ok(State::InFlight) => unreachable!("invariant: it has settled"),
            Err(shared) => (shared.read(), false),
        }
    }

    /// Waits for the data, or for the failure and what was there before.
    pub(crate) fn read(&self) -> Result<Buffer, (Arc<ExecError>, Past)> {
        self.wait().map_err(|error| (error, self.past().unwrap_or(Past::Lost)))
    }
}
