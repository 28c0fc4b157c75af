//! Compiled steps as Python objects: what was captured, for which inputs and in which state, and replays of it. When to
//! capture is decided in `_step.py`.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread::ThreadId,
};

use ltc_torch::{Ambient, Capture, CompiledStep, HostNumbers, Signature, Tensor};
use parking_lot::Mutex;
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::{PyRuntimeError, PyTypeError},
    intern,
    prelude::*,
    types::{PyList, PyTuple},
};
use smallvec::SmallVec;

use crate::{
    convert::{Tensors, any_tensor, list, tensors},
    marks::{Leaf, Marks},
    raise,
    watch::Watch,
};

/// Kinds of inputs kept per step function; the one that was not used for longest goes first.
const MAX_CLASSES: usize = 128;
/// States of the program kept per kind of inputs.
const MAX_STATES: usize = 8;
/// Calls in a row for which a capture is run and taken back until it is forgotten.
const MAX_MISSES: u32 = 4;

/// A captured step with what has to hold for a replay, and what a replay has to do besides running the program.
struct Ready {
    step: Arc<CompiledStep>,
    watch: Py<Watch>,
    /// The step's host part, a `HostProgram`.
    host: Option<Py<PyAny>>,
    marks: Mutex<Marks>,
    /// What Python keeps of it.
    record: Py<PyAny>,
    /// Inputs, by position, that the step also found elsewhere: they have to be these tensors.
    found_elsewhere: Vec<(usize, Py<PyAny>)>,
    /// Calls in a row for which it was run and taken back.
    misses: AtomicU32,
}

/// What came of running a capture.
enum Ran {
    /// Results, and the numbers of the host among them.
    Done(Vec<Tensor>, Option<Py<PyAny>>),
    /// The host would have read something else, or gone another way: as if nothing was done.
    OtherWay,
    /// It does not fit any more.
    Fell,
}

/// Whether a replay could be made of a capture.
enum Fits {
    Yes,
    /// The host would go another way.
    OtherWay,
    /// It does not fit any more.
    Fell,
}

/// What the host part of a capture computes now.
enum Host {
    /// Numbers, by their bits, and tensors that went to the device: more inputs. And the numbers that the step returns.
    Done(Vec<u64>, Tensors, Option<Py<PyAny>>),
    /// It would go another way than when it was captured: as if nothing was done.
    OtherWay,
    /// It raises, as the step itself may: it is recorded instead.
    Fell,
}

impl Ready {
    /// Whether inputs that the step also finds elsewhere are those it finds there, and show what they showed.
    fn finds(&self, inputs: &Bound<'_, PyTuple>, given: &Tensors) -> bool {
        let state = |t: &Tensor| ltc_torch::state_of(t);
        self.found_elsewhere.iter().all(|(i, x)| inputs.get_item(*i).is_ok_and(|input| input.is(x)))
            && self
                .marks
                .lock()
                .shares
                .iter()
                .all(|(i, t)| given.get(*i).is_some_and(|x| state(x).shares_storage(&state(t))))
    }

    /// The gradients that are inputs, after those of the call; `None` where one is missing.
    fn gradients(&self, inputs: &Tensors) -> Option<Tensors> {
        self.marks.lock().with_grad.iter().map(|leaf| ltc_torch::grad_of(leaf.of(inputs))).collect()
    }
}

/// Calls with one key and inputs of one kind.
struct Class {
    id: u64,
    key: String,
    ambient: Ambient,
    inputs: Signature,
    ready: Vec<Arc<Ready>>,
    /// What was ready and no longer fitted, and its number: the next capture may show why.
    retired: Option<(u64, Py<Watch>)>,
    used: u64,
}

/// Locked for moments only. Python's objects that are taken out of it are let go behind them, since that may run any
/// Python code, which may call the same step.
#[derive(Default)]
struct Store {
    classes: Vec<Class>,
    /// Captures that were not confirmed yet.
    steps: HashMap<u64, Arc<CompiledStep>>,
    last_id: u64,
    clock: u64,
    replays: u64,
}

impl Store {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// A capture is tried first from here on: of two that differ by what the host decides, what is mostly right.
    fn is_first(&mut self, class: u64, ready: &Arc<Ready>) {
        let class = self.classes.iter_mut().find(|c| c.id == class);
        let found = class.and_then(|c| Some((c.ready.iter().position(|r| Arc::ptr_eq(r, ready))?, c)));
        found.into_iter().for_each(|(at, c)| c.ready[..=at].rotate_right(1));
    }

    fn find(&mut self, key: &str, ambient: Ambient, inputs: &Tensors) -> PyResult<Option<&mut Class>> {
        self.clock += 1;
        let mut at = None;
        for (i, class) in self.classes.iter().enumerate() {
            if class.key == key && class.ambient == ambient && class.inputs.matches(inputs).map_err(raise)? {
                at = Some(i);
                break;
            }
        }
        let clock = self.clock;
        Ok(at.map(|i| {
            self.classes[i].used = clock;
            &mut self.classes[i]
        }))
    }
}

/// A step function's captures.
#[pyclass(frozen, module = "torch_ltc._ltc")]
#[derive(Default)]
pub(crate) struct Replays {
    store: Mutex<Store>,
    /// Captures in progress. Each belongs to the thread that began it, which alone ends it.
    current: Mutex<HashMap<ThreadId, Capture>>,
}

fn all_lazy(items: &Bound<'_, PyTuple>) -> PyResult<Tensors> {
    tensors(items)?.ok_or_else(|| PyTypeError::new_err("expected tensors on the ltc device"))
}

fn some(py: Python<'_>, items: &Bound<'_, PyList>) -> PyResult<Tensors> {
    let one = |x: Bound<'_, PyAny>| any_tensor(py, &x)?.ok_or_else(|| PyTypeError::new_err("expected tensors"));
    items.iter().map(one).collect()
}

/// Tensors, and positions of inputs.
fn leaves(py: Python<'_>, items: &Bound<'_, PyList>) -> PyResult<Vec<Leaf>> {
    let one = |x: Bound<'_, PyAny>| match any_tensor(py, &x)? {
        Some(t) => Ok(Leaf::Own(t)),
        None => x.extract().map(Leaf::Input),
    };
    items.iter().map(one).collect()
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

#[pymethods]
impl Replays {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // What is locked is in use, and so no garbage.
        let Some(store) = self.store.try_lock() else { return Ok(()) };
        for ready in store.classes.iter().flat_map(|c| &c.ready) {
            visit.call(&ready.watch)?;
            visit.call(&ready.host)?;
            visit.call(&ready.record)?;
            ready.found_elsewhere.iter().try_for_each(|(_, x)| visit.call(x))?;
        }
        store.classes.iter().filter_map(|c| c.retired.as_ref()).try_for_each(|(_, watch)| visit.call(watch))
    }

    /// A replay of what was captured for this key, inputs like these, the thread's state and all that the step reads as
    /// they are: what Python keeps of it, the results, and numbers of the host among them. `None`: there is no such
    /// thing, and nothing was done.
    fn replay<'py>(&self, inputs: &Bound<'py, PyTuple>, key: &str) -> PyResult<Option<Replayed<'py>>> {
        let py = inputs.py();
        let Some(mut given) = tensors(inputs)? else { return Ok(None) };
        for (at, (class, ready)) in self.that_may_fit(key, &given)?.into_iter().enumerate() {
            // Comparing may run Python, which may want the store.
            if !ready.finds(inputs, &given) || !ready.watch.get().holds(py) {
                continue;
            }
            match self.run(py, class, &ready, &mut given)? {
                Ran::Done(results, told) => {
                    let mut store = self.store.lock();
                    store.replays += 1;
                    (at > 0).then(|| store.is_first(class, &ready));
                    drop(store);
                    return Ok(Some((ready.record.clone_ref(py), list(py, &results)?, told)));
                }
                Ran::OtherWay => (),
                Ran::Fell => break,
            }
        }
        Ok(None)
    }

    /// What a replay would be checked against: the captures that fit, each with its watch. Which of them it would be is
    /// known when the host has read what they differ by.
    fn fitting(&self, inputs: &Bound<'_, PyTuple>, key: &str) -> PyResult<Vec<(Py<Watch>, Py<PyAny>)>> {
        let py = inputs.py();
        let Some(given) = tensors(inputs)? else { return Ok(Vec::new()) };
        let mut fitting = Vec::new();
        for (class, ready) in self.that_may_fit(key, &given)? {
            // Comparing may run Python, which may want the store.
            if !ready.finds(inputs, &given) || !ready.watch.get().holds(py) {
                continue;
            }
            match self.fits(py, class, &ready, &given)? {
                Fits::Yes => fitting.push((ready.watch.clone_ref(py), ready.record.clone_ref(py))),
                Fits::OtherWay => (),
                Fits::Fell => break,
            }
        }
        Ok(fitting)
    }

    /// How a capture differs from the one that would have been replayed, and which of these that is; nothing where it
    /// is none of them.
    fn differs(&self, step: u64, watches: Vec<Bound<'_, Watch>>) -> PyResult<Option<(usize, String)>> {
        let mut store = self.store.lock();
        let step = store.steps.remove(&step).and_then(Arc::into_inner);
        let Some(mut step) = step else { return Err(PyRuntimeError::new_err("no such capture")) };
        let captures = || store.classes.iter().flat_map(|c| &c.ready);
        let of = |watch: &Bound<'_, Watch>| captures().find(|r| r.watch.is(watch));
        // Where the host reads something else, no replay would have been made of that one.
        let found = watches.iter().map(of).enumerate().filter_map(|(i, ready)| Some((i, ready?)));
        let Some((which, ready)) = { found }.find(|(_, ready)| step.reads_like(&ready.step)) else { return Ok(None) };
        Ok(Some((which, step.confirm(&ready.step).err().map_or(String::new(), |why| why.0))))
    }

    /// The number of a class of calls: this key, inputs like these, the thread's state as it is. And the number of one
    /// that was forgotten for it, or 0.
    fn classify(&self, inputs: &Bound<'_, PyTuple>, key: &str) -> PyResult<(u64, u64)> {
        let inputs = all_lazy(inputs)?;
        let ambient = ltc_torch::ambient();
        let mut gone = None;
        let mut store = self.store.lock();
        if let Some(class) = store.find(key, ambient, &inputs)? {
            return Ok((class.id, 0));
        }
        if store.classes.len() >= MAX_CLASSES {
            let oldest = store.classes.iter().enumerate().min_by_key(|(_, c)| c.used).map(|(i, _)| i);
            gone = oldest.map(|i| store.classes.swap_remove(i));
        }
        let (id, used) = (store.next_id(), store.clock);
        let inputs = Signature::of(&inputs).map_err(raise)?;
        let class = Class { id, key: key.to_owned(), ambient, inputs, ready: Vec::new(), retired: None, used };
        store.classes.push(class);
        Ok((id, gone.as_ref().map_or(0, |class| class.id)))
    }

    /// Begins the capture of a call on these inputs; false where another thread captures.
    fn begin(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let inputs = all_lazy(inputs)?;
        let device = inputs.iter().find_map(ltc_torch::device_of).unwrap_or_else(|| ltc_torch::ambient().device());
        drop(inputs);
        let capture = py.detach(|| Capture::begin(device)).map_err(raise)?;
        let begun = capture.is_some();
        self.current.lock().extend(capture.map(|capture| (std::thread::current().id(), capture)));
        Ok(begun)
    }

    /// Ends the capture of a call that returned these results, whose host part is `program` and handed over `host`: a
    /// number for it, or 0 and why it cannot be replayed; 0 and nothing where it may be another time.
    fn end(
        &self,
        inputs: &Bound<'_, PyTuple>,
        results: &Bound<'_, PyTuple>,
        program: String,
        host: Vec<f64>,
    ) -> PyResult<(u64, String)> {
        let py = inputs.py();
        let (inputs, results) = (all_lazy(inputs)?, all_lazy(results)?);
        let host = HostNumbers { program, values: bits(&host) };
        let Some(capture) = self.current.lock().remove(&std::thread::current().id()) else {
            return Ok((0, String::new()));
        };
        let end = move || (capture.end(&inputs, &results, host), inputs, results);
        let (step, _inputs, _results) = py.detach(end);
        match step.map_err(raise)? {
            Ok(step) => {
                let mut store = self.store.lock();
                let id = store.next_id();
                store.steps.insert(id, Arc::new(step));
                Ok((id, String::new()))
            }
            Err(why) if why.is_interruption() => Ok((0, String::new())),
            Err(why) => Ok((0, why.0)),
        }
    }

    /// Whether two captures are of the same step: empty, or why not. The earlier one is forgotten.
    fn confirm(&self, step: u64, earlier: u64) -> String {
        let mut store = self.store.lock();
        let earlier = store.steps.remove(&earlier);
        let (Some(earlier), Some(step)) = (earlier, store.steps.get_mut(&step).and_then(Arc::get_mut)) else {
            return "its capture was interrupted".into();
        };
        step.confirm(&earlier).err().map(|why| why.0).unwrap_or_default()
    }

    /// Whether the host did and read the same in two captures.
    fn same_path(&self, step: u64, earlier: u64) -> bool {
        let store = self.store.lock();
        let both = store.steps.get(&step).zip(store.steps.get(&earlier));
        both.is_some_and(|(step, earlier)| step.same_path(earlier))
    }

    /// Whether a capture reads and changes nothing besides its inputs.
    fn is_closed(&self, step: u64) -> bool {
        self.store.lock().steps.get(&step).is_some_and(|step| step.is_closed())
    }

    /// A confirmed capture is replayed from here on.
    #[expect(clippy::too_many_arguments, reason = "what a replay has to do, in one call from Python")]
    fn ready(
        &self,
        py: Python<'_>,
        class: u64,
        step: u64,
        watch: Py<Watch>,
        host: Option<Py<PyAny>>,
        grads: (Bound<'_, PyList>, Bound<'_, PyList>, Bound<'_, PyList>, Vec<u32>),
        written: (Bound<'_, PyList>, Vec<u32>, Vec<(usize, u32)>),
        freed_histories: Vec<(usize, String, String)>,
        record: Py<PyAny>,
        found_elsewhere: Vec<(usize, Py<PyAny>)>,
        shares: (Vec<usize>, Bound<'_, PyList>),
    ) -> PyResult<()> {
        let Some(step) = self.store.lock().steps.remove(&step) else { return Ok(()) };
        let compiled = step.clone();
        py.detach(move || compiled.compile()).map_err(raise)?;
        let (with_grad, gets_grad, loses_grad) = (leaves(py, &grads.0)?, leaves(py, &grads.1)?, leaves(py, &grads.2)?);
        let (tensors, times, written_inputs) = written;
        let written = some(py, &tensors)?.into_iter().zip(times).collect();
        let shares = shares.0.into_iter().zip(some(py, &shares.1)?).collect();
        let marks = Marks {
            with_grad,
            gets_grad,
            grad_versions: grads.3,
            loses_grad,
            freed_histories,
            written,
            written_inputs,
            shares,
        };
        let marks = Mutex::new(marks);
        let misses = AtomicU32::new(0);
        let ready = Arc::new(Ready { step, watch, host, marks, record, found_elsewhere, misses });
        let mut _oldest = None;
        let mut store = self.store.lock();
        if let Some(class) = store.classes.iter_mut().find(|c| c.id == class) {
            class.ready.insert(0, ready.clone());
            _oldest = (class.ready.len() > MAX_STATES).then(|| class.ready.pop());
        }
        Ok(())
    }

    /// A capture that was ready in a class and did not fit the last call, which may show why; its watch.
    fn take_retired(&self, class: u64) -> Option<(u64, Py<Watch>)> {
        self.store.lock().classes.iter_mut().find(|c| c.id == class)?.retired.take()
    }

    /// The watches of all captures that are kept.
    fn watches(&self, py: Python<'_>) -> Vec<Py<Watch>> {
        let store = self.store.lock();
        let each =
            store.classes.iter().flat_map(|c| c.ready.iter().map(|r| &r.watch).chain(c.retired.as_ref().map(|f| &f.1)));
        each.map(|watch| watch.clone_ref(py)).collect()
    }

    /// A capture is not needed any more.
    fn forget(&self, step: u64) {
        self.store.lock().steps.remove(&step);
    }

    /// The call in progress is not captured after all.
    fn abort(&self) {
        let gone = self.current.lock().remove(&std::thread::current().id());
        drop(gone);
    }

    /// Calls replayed so far.
    fn replayed(&self) -> u64 {
        self.store.lock().replays
    }
}

/// What Python keeps of a capture, the results of a replay, and the numbers of the host that are among them.
type Replayed<'py> = (Py<PyAny>, Bound<'py, PyList>, Option<Py<PyAny>>);

/// Captures, each with the number of its class.
type Fitting = SmallVec<[(u64, Arc<Ready>); 2]>;

impl Replays {
    /// The captures for calls like this one.
    fn that_may_fit(&self, key: &str, inputs: &Tensors) -> PyResult<Fitting> {
        let mut store = self.store.lock();
        let class = store.find(key, ltc_torch::ambient(), inputs)?;
        Ok(class.into_iter().flat_map(|class| class.ready.iter().map(|r| (class.id, r.clone()))).collect())
    }

    /// Does what the step of a capture would do.
    fn run(&self, py: Python<'_>, class: u64, ready: &Arc<Ready>, inputs: &mut Tensors) -> PyResult<Ran> {
        let (host, uploaded, told) = match self.run_host(py, class, ready)? {
            Host::Done(numbers, tensors, told) => (numbers, tensors, told),
            Host::OtherWay => {
                self.misses(class, ready);
                return Ok(Ran::OtherWay);
            }
            Host::Fell => return Ok(Ran::Fell),
        };
        let undo = || match &ready.host {
            Some(program) => program.call_method0(py, intern!(py, "undo")).map(drop),
            None => Ok(()),
        };
        // No lock is held while the interpreter's is let go: who has that one may want this one.
        let Some(gradients) = ready.gradients(inputs) else {
            undo()?;
            return Ok(Ran::Fell);
        };
        let count = inputs.len();
        let mut all = std::mem::take(inputs);
        all.extend(gradients.into_iter().chain(uploaded));
        let step = ready.step.clone();
        let (ran, all) = py.detach(move || (step.run(&all, &host), all));
        *inputs = all;
        let mut results = match ran {
            Ok(Ok(results)) => results,
            Ok(Err(why)) => {
                undo()?;
                inputs.truncate(count);
                if !why.is_other_read() {
                    self.falls(class, ready);
                    return Ok(Ran::Fell);
                }
                self.misses(class, ready);
                return Ok(Ran::OtherWay);
            }
            Err(e) => {
                undo()?;
                return Err(raise(e));
            }
        };
        ready.misses.store(0, Ordering::Relaxed);
        let marks = ready.marks.lock();
        let grads = results.split_off(results.len() - marks.gets_grad.len());
        marks.leave(&results, &grads, inputs).map_err(raise)?;
        Ok(Ran::Done(results, told))
    }

    /// Whether a replay would find tensors to hold what the capture takes for granted.
    fn fits(&self, py: Python<'_>, class: u64, ready: &Arc<Ready>, given: &Tensors) -> PyResult<Fits> {
        let (host, uploaded) = match self.run_host(py, class, ready)? {
            Host::Done(numbers, tensors, _) => (numbers, tensors),
            Host::OtherWay => return Ok(Fits::OtherWay),
            Host::Fell => return Ok(Fits::Fell),
        };
        let gradients = ready.gradients(given);
        let step = ready.step.clone();
        let fits = gradients.map(|more| {
            let all: Tensors = given.iter().map(Tensor::shallow_clone).chain(more).chain(uploaded).collect();
            py.detach(move || step.fits(&all, &host))
        });
        if let Some(program) = &ready.host {
            program.call_method0(py, intern!(py, "undo"))?;
        }
        Ok(match fits.transpose().map_err(raise)? {
            Some(true) => Fits::Yes,
            Some(false) => {
                self.falls(class, ready);
                Fits::Fell
            }
            None => Fits::Fell,
        })
    }

    /// Runs the host part of a step.
    fn run_host(&self, py: Python<'_>, class: u64, ready: &Arc<Ready>) -> PyResult<Host> {
        let Some(program) = &ready.host else { return Ok(Host::Done(Vec::new(), Tensors::new(), None)) };
        let ran = program.call_method0(py, intern!(py, "run"));
        let done = ran.and_then(|done| done.extract::<Option<(Vec<f64>, Bound<'_, PyList>, Py<PyAny>)>>(py));
        let done = done.and_then(|done| {
            done.map(|(numbers, tensors, told)| Ok(Host::Done(bits(&numbers), some(py, &tensors)?, Some(told))))
                .transpose()
        });
        if let Ok(Some(done)) = done {
            return Ok(done);
        }
        program.call_method0(py, intern!(py, "undo"))?;
        if done.is_ok() {
            return Ok(Host::OtherWay);
        }
        self.take(class, ready);
        Ok(Host::Fell)
    }

    /// A capture was run and taken back; one that always is is forgotten.
    fn misses(&self, class: u64, ready: &Arc<Ready>) {
        if ready.misses.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_MISSES {
            self.take(class, ready);
        }
    }

    fn take(&self, class: u64, ready: &Arc<Ready>) {
        let mut store = self.store.lock();
        if let Some(class) = store.classes.iter_mut().find(|c| c.id == class) {
            class.ready.retain(|r| !Arc::ptr_eq(r, ready));
        }
    }

    /// Something changed under a step: it is captured anew, and may turn out to be the same.
    fn falls(&self, class: u64, ready: &Arc<Ready>) {
        self.take(class, ready);
        let watch = Python::attach(|py| ready.watch.clone_ref(py));
        let mut _before = None;
        let store = &mut *self.store.lock();
        let id = store.next_id();
        if let Some(class) = store.classes.iter_mut().find(|c| c.id == class) {
            store.steps.insert(id, ready.step.clone());
            _before = class.retired.replace((id, watch));
        }
    }
}
