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
    sync::PyOnceLock,
    types::{PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType},
};

use crate::convert::{
    self, floats, lookup,
    unwritten::{Unwritten, class_version},
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
    /// A float, or a tuple of some, that the replay reads: they may be any.
    any_float: bool,
}

/// A key and its value.
type Pair = (Py<PyAny>, Py<PyAny>);

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

/// Whether two objects are the same, or numbers or strings of one type and value.
fn same(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> bool {
    if a.is(b) {
        return true;
    }
    if !a.get_type().is(b.get_type()) {
        return false;
    }
    if let (Ok(a), Ok(b)) = (a.downcast_exact::<PyFloat>(), b.downcast_exact::<PyFloat>()) {
        return a.value().to_bits() == b.value().to_bits();
    }
    if let (Ok(a), Ok(b)) = (a.downcast_exact::<PyTuple>(), b.downcast_exact::<PyTuple>()) {
        return a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(&a, &b));
    }
    if let (Ok(a), Ok(b)) = (a.downcast_exact::<PyComplex>(), b.downcast_exact::<PyComplex>()) {
        return a.real().to_bits() == b.real().to_bits() && a.imag().to_bits() == b.imag().to_bits();
    }
    let by_value = a.is_exact_instance_of::<PyInt>()
        || a.is_exact_instance_of::<PyString>()
        || a.is_exact_instance_of::<PyBytes>();
    by_value && a.eq(b).unwrap_or(false)
}

fn same_found(py: Python<'_>, a: &Found, b: Option<&Bound<'_, PyAny>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => same(a.bind(py), b),
        _ => false,
    }
}

/// Hands on a container's class and members, and what a `defaultdict` makes its values with.
fn each_part(
    container: Option<&Bound<'_, PyAny>>,
    each: &mut dyn FnMut(Option<&Bound<'_, PyAny>>) -> bool,
) -> PyResult<()> {
    let Some(container) = container else {
        each(None);
        return Ok(());
    };
    each(Some(container.get_type().as_any()));
    let Ok(dict) = container.downcast::<PyDict>() else {
        for member in container.try_iter()? {
            each(Some(&member?));
        }
        return Ok(());
    };
    each(container.getattr(intern!(container.py(), "default_factory")).ok().as_ref());
    each_pair(dict, &mut |key, value| {
        each(Some(key));
        each(Some(value))
    })
}

/// Hands on keys and values in the order in which a program meets them, until somebody has seen enough.
fn each_pair<'py>(
    dict: &Bound<'py, PyDict>,
    each: &mut dyn FnMut(&Bound<'py, PyAny>, &Bound<'py, PyAny>) -> bool,
) -> PyResult<()> {
    if !is_ordered(dict)? {
        let _ = dict.iter().all(|(key, value)| each(&key, &value));
        return Ok(());
    }
    for key in ordered_class(dict.py())?.call_method1(intern!(dict.py(), "__iter__"), (dict,))?.try_iter()? {
        let key = key?;
        if let Some(value) = dict.get_item(&key)?
            && !each(&key, &value)
        {
            break;
        }
    }
    Ok(())
}

/// Whether a dict has an order that changes while it is not written.
fn is_ordered(dict: &Bound<'_, PyDict>) -> PyResult<bool> {
    Ok(!dict.is_exact_instance_of::<PyDict>() && dict.is_instance(ordered_class(dict.py())?)?)
}

fn ordered_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || PyResult::Ok(py.import("collections")?.getattr("OrderedDict")?.unbind());
    Ok(CLASS.get_or_try_init(py, find)?.bind(py))
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
                    for x in holder.try_iter()? {
                        if !each(Some(&x?)) {
                            break;
                        }
                    }
                }
            }
            Kind::Cell => match holder.getattr(intern!(py, "cell_contents")) {
                Ok(x) => one(x),
                Err(_) => {
                    each(None);
                }
            },
            Kind::Function => convert::parts_of_function(holder).iter().for_each(|x| {
                each(x.as_ref());
            }),
            Kind::Referent => one(holder.call0()?),
            Kind::Variable => one(holder.call_method1(intern!(py, "get"), (py.None(),))?),
            Kind::Class => one(holder.get_type().into_any()),
            Kind::Namespace => one(convert::namespace_of(holder)?),
            Kind::Slot(descriptor) => {
                let got = descriptor.bind(py).call_method1(intern!(py, "__get__"), (holder,));
                each(got.ok().as_ref());
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
        same_found(py, &self.expected, now)
            || (self.any_float && floats(expected) > 0 && floats(expected) == floats(now))
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
                let own = |e: &&Entry| e.any_float && e.name.bind(py).is(key);
                self.entries.iter().find(own).is_some_and(|e| e.is(py, Some(value)))
            };
            let mut at = 0;
            each_pair(dict, &mut |key, value| {
                good = good
                    && whole.get(at).is_some_and(|(k, v)| {
                        same(k.bind(py), key) && (same(v.bind(py), value) || is_free(key, value))
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
                good = good && now.is_some_and(|now| same(value.bind(py), &now));
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
            let now = dict.get_item(entry.name.bind(py))?.map(Bound::unbind);
            gone.push(replace(&mut entry.expected, now));
        }
        for (_, whole) in self.whole.iter_mut().chain(&mut self.kept) {
            gone.extend(whole.drain(..).flat_map(|(k, v)| [Some(k), Some(v)]));
            each_pair(dict, &mut |k, v| {
                whole.push((k.clone().unbind(), v.clone().unbind()));
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
            let entry = |name: Bound<'_, PyAny>| Entry { name: name.unbind(), index, expected: None, any_float: false };
            let kind = match kind.as_str() {
                "entry" => {
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
        entries.filter(|e| e.index == index).for_each(|e| e.any_float = true);
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
