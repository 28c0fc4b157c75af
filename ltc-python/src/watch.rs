//! What the Python code of a captured step read, and whether it still is as it was.
//!
//! Places are named by the survey (`_survey.py`); here they are read and compared, at each call of a compiled step, so
//! with as little work as can be: objects by identity, numbers and strings by type and value. A dict or a class that
//! was not written since it was last compared is as it was, where this Python tells of writes (`convert::unwritten`).
//!
//! Objects that are let go may run any Python code, which may want the same watch: none goes while it is locked.

use std::{collections::HashMap, mem::replace};

use ltc_torch::{Tensor, TensorState};
use parking_lot::Mutex;
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::PyTypeError,
    intern,
    prelude::*,
    types::{PyDict, PyList, PySet, PyType},
};

use crate::{
    convert::{
        self, lookup, numbers,
        unwritten::{Unwritten, class_version},
    },
    same::{each_pair, each_part, is_ordered, same, same_found},
};

/// What was found in a place: an object, or nothing.
type Found = Option<Py<PyAny>>;

/// A place whose values are read one by one.
enum Kind {
    /// Members of a list, deque or set, in order.
    Members,
    Cell,
    Function,
    /// What a weak reference refers to, or another function without arguments gives.
    Referent,
    Variable,
    Class,
    /// The dict with an object's attributes: that it is the same.
    Namespace,
    Slot(Py<PyAny>),
    /// The gradient of a tensor that need not be a leaf, without the warning of Python's attribute.
    Gradient,
    Bytes,
    /// Which thread it is: values that each thread has for itself were read.
    Thread,
    /// The container under a name of a dict, which steps put a new one in place of: its class and members.
    Renewed(Py<PyAny>),
}

struct Other {
    kind: Kind,
    holder: Py<PyAny>,
    index: usize,
    expected: Vec<Found>,
}

/// One name in a dict or a class.
struct Entry {
    name: Py<PyAny>,
    index: usize,
    expected: Found,
    may_be: MayBe,
}

/// What may be in a place besides what was there.
#[derive(Clone, Copy, PartialEq)]
enum MayBe {
    Nothing,
    /// Another float, a tuple of as many, or another whole number, which the replay reads.
    Numbers,
    /// Anything: what it is is an input of the step.
    Anything,
}

/// A key and its value; nothing where that may be anything.
type Pair = (Py<PyAny>, Found);

/// Everything read of one dict or class.
struct Group<T, V> {
    holder: Py<T>,
    /// As it was when it was last compared: what was not written since is as it was.
    compared: Option<V>,
    entries: Vec<Entry>,
    /// All keys and values, where the whole dict was read.
    whole: Option<(usize, Vec<Pair>)>,
    /// Those of a cache: others may come, but these stay.
    kept: Option<(usize, Vec<Pair>)>,
    /// How many results the cache has room for. Once it is full, each that comes takes the place of another, and no key
    /// tells whose result is there.
    room: usize,
}

type DictGroup = Group<PyDict, Unwritten>;
type ClassGroup = Group<PyType, u64>;

struct Watched {
    object: Py<PyAny>,
    tensor: Tensor,
    expected: TensorState,
}

impl Places {
    /// Shows the collector of cycles all objects that are held here: a step that is a method of what it reads is one.
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        fn group<T, V>(group: &Group<T, V>, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
            visit.call(&group.holder)?;
            for entry in &group.entries {
                visit.call(&entry.name)?;
                visit.call(&entry.expected)?;
            }
            for (key, value) in group.whole.iter().chain(&group.kept).flat_map(|(_, pairs)| pairs) {
                visit.call(key)?;
                visit.call(value)?;
            }
            Ok(())
        }
        self.dicts.iter().try_for_each(|g| group(g, visit))?;
        self.classes.iter().try_for_each(|g| group(g, visit))?;
        for other in &self.others {
            visit.call(&other.holder)?;
            if let Kind::Slot(name) | Kind::Renewed(name) = &other.kind {
                visit.call(name)?;
            }
            other.expected.iter().try_for_each(|found| visit.call(found))?;
        }
        self.tensors.iter().try_for_each(|t| visit.call(&t.object))
    }
}

/// What a step reads; see the module.
#[pyclass(frozen, module = "torch_ltc._ltc")]
pub(crate) struct Watch(Mutex<Places>);

#[derive(Default)]
struct Places {
    dicts: Vec<DictGroup>,
    classes: Vec<ClassGroup>,
    others: Vec<Other>,
    tensors: Vec<Watched>,
    /// Whether it matters which tensors have gradients.
    grads: bool,
}

/// An iterator over the members of a container, without code of the program's: subclasses may have their own.
fn members<'py>(holder: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    const HEAP_TYPE: usize = 1 << 9; // `Py_TPFLAGS_HEAPTYPE`: a class of Python code
    let py = holder.py();
    if holder.is_exact_instance_of::<PySet>() {
        return Ok(holder.try_iter()?.into_any());
    }
    for base in holder.get_type().mro() {
        if base.getattr(intern!(py, "__flags__"))?.extract::<usize>()? & HEAP_TYPE == 0 {
            return base.getattr(intern!(py, "__iter__"))?.call1((holder,));
        }
    }
    Ok(holder.try_iter()?.into_any())
}

impl Other {
    /// Hands on what is there now, until somebody has seen enough.
    fn read(&self, py: Python<'_>, each: &mut dyn FnMut(Option<&Bound<'_, PyAny>>) -> bool) -> PyResult<()> {
        let holder = self.holder.bind(py);
        if let Kind::Renewed(name) = &self.kind {
            let container = holder.downcast::<PyDict>()?.get_item(name.bind(py))?;
            return each_part(container.as_ref(), each);
        }
        let mut one = |x: Bound<'_, PyAny>| {
            each(Some(&x));
        };
        match &self.kind {
            Kind::Members => {
                if let Ok(list) = holder.downcast::<PyList>() {
                    let _ = list.iter().all(|x| each(Some(&x)));
                } else {
                    for x in members(holder)?.try_iter()? {
                        if !each(Some(&x?)) {
                            break;
                        }
                    }
                }
            }
            Kind::Cell => {
                each(convert::contents_of_cell(holder).ok().as_ref());
            }
            Kind::Function => convert::parts_of_function(holder).iter().for_each(|x| {
                each(x.as_ref());
            }),
            Kind::Referent => one(holder.call0()?),
            Kind::Variable => one(holder.call_method1(intern!(py, "get"), (py.None(),))?),
            Kind::Class => one(holder.get_type().into_any()),
            Kind::Namespace => one(convert::namespace_of(holder)?),
            Kind::Slot(descriptor) => {
                each(convert::got(descriptor.bind(py), holder).ok().as_ref());
            }
            Kind::Gradient => {
                each(crate::history::grad_of(holder)?.as_ref());
            }
            Kind::Thread => one(py.import("threading")?.call_method0("get_ident")?),
            Kind::Bytes => one(holder.call_method0(intern!(py, "tobytes"))?),
            Kind::Renewed(_) => unreachable!("invariant: read above"),
        }
        Ok(())
    }

    fn holds(&self, py: Python<'_>) -> bool {
        let (mut at, mut good) = (0, true);
        let read = self.read(py, &mut |x| {
            good = good && self.expected.get(at).is_some_and(|e| same_found(py, e, x));
            at += 1;
            good
        });
        read.is_ok() && good && at == self.expected.len()
    }

    fn refresh(&mut self, py: Python<'_>, gone: &mut Vec<Found>) -> PyResult<()> {
        let mut found = Vec::new();
        self.read(py, &mut |x| {
            found.push(x.map(|x| x.clone().unbind()));
            true
        })?;
        gone.append(&mut self.expected);
        self.expected = found;
        Ok(())
    }
}

impl Entry {
    fn is(&self, py: Python<'_>, now: Option<&Bound<'_, PyAny>>) -> bool {
        let expected = self.expected.as_ref().map(|x| x.bind(py));
        let may_be = match self.may_be {
            MayBe::Nothing => false,
            MayBe::Numbers => numbers(expected) > 0 && numbers(expected) == numbers(now),
            MayBe::Anything => true,
        };
        may_be || same_found(py, &self.expected, now)
    }

    /// Whether it is for the value of this key, which may be another.
    fn frees(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> bool {
        self.may_be != MayBe::Nothing && same(self.name.bind(py), key)
    }
}

impl DictGroup {
    fn changes(&self, py: Python<'_>, changed: &mut dyn FnMut(usize)) -> PyResult<()> {
        let dict = self.holder.bind(py);
        for entry in &self.entries {
            if !entry.is(py, dict.get_item(entry.name.bind(py))?.as_ref()) {
                changed(entry.index);
            }
        }
        if let Some((index, whole)) = &self.whole {
            let mut good = dict.len() == whole.len();
            let is_free = |key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>| {
                self.entries.iter().find(|e| e.frees(py, key)).is_some_and(|e| e.is(py, Some(value)))
            };
            let mut at = 0;
            each_pair(dict, &mut |key, value| {
                good = good
                    && whole.get(at).is_some_and(|(k, v)| {
                        same(k.bind(py), key) && (same_found(py, v, Some(value)) || is_free(key, value))
                    });
                at += 1;
                good
            })?;
            if !good {
                changed(*index);
            }
        }
        if let Some((index, kept)) = &self.kept {
            let unwritten = || self.compared.as_ref().is_some_and(|then| then.holds(dict));
            let mut good = dict.len() < self.room || unwritten();
            for (key, value) in kept {
                let now = dict.get_item(key.bind(py))?;
                good = good && same_found(py, value, now.as_ref());
            }
            if !good {
                changed(*index);
            }
        }
        Ok(())
    }

    fn holds(&mut self, py: Python<'_>) -> bool {
        let dict = self.holder.bind(py);
        if self.compared.as_ref().is_some_and(|then| then.holds(dict)) {
            return true;
        }
        // Comparing may run code, which may write.
        let now = self.since_now(dict);
        let mut good = true;
        good &= self.changes(py, &mut |_| good = false).is_ok();
        if good {
            self.compared = now;
        }
        good
    }

    /// As it is now; never for one whose order matters and may change unwritten.
    fn since_now(&self, dict: &Bound<'_, PyDict>) -> Option<Unwritten> {
        let by_order = self.whole.is_some() && dict.len() > 1 && is_ordered(dict).unwrap_or(true);
        if by_order { None } else { Unwritten::since_now(dict) }
    }

    fn refresh(&mut self, py: Python<'_>, gone: &mut Vec<Found>) -> PyResult<()> {
        let dict = self.holder.bind(py);
        let now = self.since_now(dict);
        for entry in &mut self.entries {
            let now = if entry.may_be == MayBe::Anything { None } else { dict.get_item(entry.name.bind(py))? };
            gone.push(replace(&mut entry.expected, now.map(Bound::unbind)));
        }
        let entries = &self.entries;
        let is_any = |k: &Bound<'_, PyAny>| entries.iter().any(|e| e.may_be == MayBe::Anything && e.frees(py, k));
        for (_, whole) in self.whole.iter_mut().chain(&mut self.kept) {
            gone.extend(whole.drain(..).flat_map(|(k, v)| [Some(k), v]));
            each_pair(dict, &mut |k, v| {
                whole.push((k.clone().unbind(), (!is_any(k)).then(|| v.clone().unbind())));
                true
            })?;
        }
        self.compared = now;
        Ok(())
    }
}

impl ClassGroup {
    fn changes(&self, py: Python<'_>, changed: &mut dyn FnMut(usize)) {
        let class = self.holder.bind(py);
        for entry in &self.entries {
            if !entry.is(py, lookup(class, entry.name.bind(py)).as_ref()) {
                changed(entry.index);
            }
        }
    }

    fn holds(&mut self, py: Python<'_>) -> bool {
        let version = class_version(self.holder.bind(py));
        if version.is_some() && version == self.compared {
            return true;
        }
        let mut good = true;
        self.changes(py, &mut |_| good = false);
        if good {
            self.compared = class_version(self.holder.bind(py));
        }
        good
    }

    fn refresh(&mut self, py: Python<'_>, gone: &mut Vec<Found>) {
        let class = self.holder.bind(py);
        for entry in &mut self.entries {
            let now = lookup(class, entry.name.bind(py)).map(Bound::unbind);
            gone.push(replace(&mut entry.expected, now));
        }
        self.compared = class_version(class);
    }
}

impl Watch {
    /// Whether all is as it was. Not known, and so false, while somebody is about to find that out or to refresh it:
    /// members that a class of Python's counts up may run Python code, which may come here again.
    pub(crate) fn holds(&self, py: Python<'_>) -> bool {
        self.0.try_lock().is_some_and(|mut places| places.hold(py))
    }
}

impl Places {
    fn hold(&mut self, py: Python<'_>) -> bool {
        let grads = self.grads;
        self.tensors.iter().all(|t| {
            let now = ltc_torch::state_of(&t.tensor);
            now.is_like(&t.expected) && (!grads || now.has_grad() == t.expected.has_grad())
        }) && self.dicts.iter_mut().all(|g| g.holds(py))
            && self.classes.iter_mut().all(|g| g.holds(py))
            && self.others.iter().all(|o| o.holds(py))
    }

    /// What was expected so far comes back, to be let go.
    fn refresh(&mut self, py: Python<'_>, gone: &mut Vec<Found>) -> PyResult<()> {
        self.dicts.iter_mut().try_for_each(|g| g.refresh(py, gone))?;
        self.classes.iter_mut().for_each(|g| g.refresh(py, gone));
        self.others.iter_mut().try_for_each(|o| o.refresh(py, gone))?;
        self.tensors.iter_mut().for_each(|t| t.expected = ltc_torch::state_of(&t.tensor));
        Ok(())
    }
}

fn group<T, V>(
    groups: &mut Vec<Group<T, V>>,
    places: &mut HashMap<usize, usize>,
    holder: &Bound<'_, PyAny>,
    typed: Py<T>,
) -> usize {
    *places.entry(holder.as_ptr() as usize).or_insert_with(|| {
        groups.push(Group {
            holder: typed,
            compared: None,
            entries: Vec::new(),
            whole: None,
            kept: None,
            room: usize::MAX,
        });
        groups.len() - 1
    })
}

#[pymethods]
impl Watch {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // What is locked is in use, and so no garbage.
        self.0.try_lock().map_or(Ok(()), |places| places.visit(&visit))
    }

    /// Watches `places` (kind, holder, name, ...) and tensors, as they are now.
    #[new]
    fn new(py: Python<'_>, places: &Bound<'_, PyList>, tensors: &Bound<'_, PyList>, grads: bool) -> PyResult<Self> {
        let mut watch = Places { grads, ..Places::default() };
        let (mut dicts, mut classes) = (HashMap::new(), HashMap::new());
        for (index, place) in places.iter().enumerate() {
            let (kind, holder, name) = (place.get_item(0)?, place.get_item(1)?, place.get_item(2)?);
            let kind = kind.extract::<String>()?;
            let may_be = if kind == "left" { MayBe::Anything } else { MayBe::Nothing };
            let entry = |name: Bound<'_, PyAny>| Entry { name: name.unbind(), index, expected: None, may_be };
            let kind = match kind.as_str() {
                "entry" | "left" => {
                    let at =
                        group(&mut watch.dicts, &mut dicts, &holder, holder.downcast::<PyDict>()?.clone().unbind());
                    watch.dicts[at].entries.push(entry(name));
                    continue;
                }
                "dict" => {
                    let at =
                        group(&mut watch.dicts, &mut dicts, &holder, holder.downcast::<PyDict>()?.clone().unbind());
                    watch.dicts[at].whole = Some((index, Vec::new()));
                    continue;
                }
                "kept" => {
                    let at =
                        group(&mut watch.dicts, &mut dicts, &holder, holder.downcast::<PyDict>()?.clone().unbind());
                    watch.dicts[at].kept = Some((index, Vec::new()));
                    watch.dicts[at].room = name.extract::<Option<usize>>()?.unwrap_or(usize::MAX);
                    continue;
                }
                "lookup" => {
                    let typed = holder.downcast::<PyType>()?.clone().unbind();
                    let at = group(&mut watch.classes, &mut classes, &holder, typed);
                    watch.classes[at].entries.push(entry(name));
                    continue;
                }
                "members" => Kind::Members,
                "cell" => Kind::Cell,
                "function" => Kind::Function,
                "referent" => Kind::Referent,
                "variable" => Kind::Variable,
                "class" => Kind::Class,
                "namespace" => Kind::Namespace,
                "slot" => Kind::Slot(name.unbind()),
                "gradient" => Kind::Gradient,
                "bytes" => Kind::Bytes,
                "thread" => Kind::Thread,
                "renewed" => Kind::Renewed(name.unbind()),
                other => return Err(PyTypeError::new_err(format!("no kind of place is called {other}"))),
            };
            watch.others.push(Other { kind, holder: holder.unbind(), index, expected: Vec::new() });
        }
        for object in tensors.iter() {
            let Some(tensor) = convert::any_tensor(py, &object)? else { continue };
            let expected = ltc_torch::state_of(&tensor);
            watch.tensors.push(Watched { object: object.unbind(), tensor, expected });
        }
        watch.refresh(py, &mut Vec::new())?;
        Ok(Watch(Mutex::new(watch)))
    }

    /// Whether all is as it was.
    fn check(&self, py: Python<'_>) -> bool {
        self.holds(py)
    }

    /// What is there now is expected from here on.
    #[pyo3(name = "refresh")]
    fn py_refresh(&self, py: Python<'_>) -> PyResult<()> {
        let mut gone = Vec::new();
        self.0.lock().refresh(py, &mut gone)
    }

    /// Which tensors had gradients when the call began whose reads these are: such calls are like it.
    fn expect_grads(&self, had: Vec<(Bound<'_, PyAny>, bool)>) {
        for watched in &mut self.0.lock().tensors {
            if let Some((_, has)) = had.iter().find(|(t, _)| t.is(&watched.object)) {
                watched.expected = watched.expected.with_grad(*has);
            }
        }
    }

    /// How often tensors were written until now is expected: what other calls wrote is no effect of the next one.
    fn expect_versions(&self) {
        for watched in &mut self.0.lock().tensors {
            watched.expected = watched.expected.with_version(ltc_torch::state_of(&watched.tensor).version());
        }
    }

    /// The float in this place may change: a replay reads it.
    fn free(&self, index: usize) {
        let mut places = self.0.lock();
        let entries = places.dicts.iter_mut().flat_map(|g| g.entries.iter_mut());
        entries.filter(|e| e.index == index).for_each(|e| e.may_be = MayBe::Numbers);
    }

    /// Indices of the places that are not as they were.
    fn changes(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        let (mut found, places) = (Vec::new(), self.0.lock());
        places.dicts.iter().try_for_each(|g| g.changes(py, &mut |i| found.push(i)))?;
        places.classes.iter().for_each(|g| g.changes(py, &mut |i| found.push(i)));
        found.extend(places.others.iter().filter(|o| !o.holds(py)).map(|o| o.index));
        Ok(found)
    }

    /// What is expected in a place of a dict.
    fn expected(&self, py: Python<'_>, index: usize) -> Found {
        let places = self.0.lock();
        let entry = places.dicts.iter().flat_map(|g| &g.entries).find(|e| e.index == index)?;
        entry.expected.as_ref().map(|x| x.clone_ref(py))
    }

    /// What is expected in a dict that is watched as a whole.
    fn expected_pairs(&self, py: Python<'_>, index: usize) -> Vec<(Py<PyAny>, Found)> {
        let places = self.0.lock();
        let found = places.dicts.iter().filter_map(|g| g.whole.as_ref()).find(|(at, _)| *at == index);
        let both = |(k, v): &Pair| (k.clone_ref(py), v.as_ref().map(|v| v.clone_ref(py)));
        found.map_or_else(Vec::new, |(_, pairs)| pairs.iter().map(both).collect())
    }

    /// What became of the tensors: each one that changed, whether it is another tensor now in more than gradient and
    /// version, how often it was written, and whether it had a gradient before.
    fn effects<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyAny>, bool, u32)> {
        let effect = |t: &Watched| {
            let now = ltc_torch::state_of(&t.tensor);
            let written = now.version().wrapping_sub(t.expected.version());
            let other = !now.is_like(&t.expected);
            (other || written > 0).then(|| (t.object.bind(py).clone(), other, written))
        };
        self.0.lock().tensors.iter().filter_map(effect).collect()
    }

    /// The tensors that are watched.
    fn tensors<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        self.0.lock().tensors.iter().map(|t| t.object.bind(py).clone()).collect()
    }

    /// How many places and tensors are watched.
    fn size(&self) -> (usize, usize, usize, usize) {
        let p = self.0.lock();
        (p.dicts.len(), p.classes.len(), p.others.len(), p.tensors.len())
    }
}
