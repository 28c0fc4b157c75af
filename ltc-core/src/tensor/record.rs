//! From a method call to a trace node.
//!
//! The path of every native operator: arguments become a blob, operands are read as they come, the blob with the
//! operands' layouts finds the call's [`Signature`] in a memory of this thread, and the node is recorded. Rules run on
//! a miss only, so in a loop no shape is inferred twice, nothing is formatted and no lock is shared between threads.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use ltc_ir::{
    ArgFlags, ArgWriter, DType, EncodedArgs, ErrorClass, Layout, LayoutRef, OpClass, OpCode, Operands, RuntimeScalars,
    Scalar, ShapeError, Signature, SignatureRef, SiteId, rules::Call, table::ArgKind,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{LazyTensor, Operand, Tensors};
use crate::{
    DataCell, Device, Error, TraceValue,
    autodiff::{self, Edge},
    sync::MutexGuard,
    undo::Drawn,
};

/// Calls a thread remembers before it begins anew.
const REMEMBERED: usize = 1 << 16;

/// A call seen before.
struct Seen {
    code: OpCode,
    words: EncodedArgs,
    /// Factories' shapes depend on numbers.
    numbers: RuntimeScalars,
    operands: SmallVec<[LayoutRef; 3]>,
    signature: SignatureRef,
    /// Which of the schema's results exist.
    present: SmallVec<[bool; 3]>,
    generators: usize,
}

thread_local! {
    static MEMORY: RefCell<FxHashMap<u64, SmallVec<[Rc<Seen>; 1]>>> = RefCell::default();
}

/// The state calls draw from, held so that nobody else draws from it.
type Generator<'d> = MutexGuard<'d, Drawn>;

/// A call under construction: arguments in schema order.
pub(crate) struct Recording {
    code: OpCode,
    args: ArgWriter,
    /// How many arguments there are so far.
    count: usize,
    operands: Operands<Arc<DataCell>>,
    /// Of the first operands, up to the last that has one.
    edges: SmallVec<[Edge; 4]>,
    device: Option<Device>,
    draws: bool,
    error: Option<Error>,
}

impl Recording {
    #[inline]
    pub(crate) fn new(code: OpCode) -> Self {
        Recording {
            code,
            args: ArgWriter::new(),
            count: 0,
            operands: Operands::new(),
            edges: SmallVec::new(),
            device: None,
            draws: false,
            error: None,
        }
    }

    /// A call of an operator without tensor arguments.
    pub(crate) fn on(code: OpCode, device: &Device) -> Self {
        Recording { device: Some(device.clone()), ..Recording::new(code) }
    }

    fn push(&mut self, t: &LazyTensor) {
        match &self.device {
            None => self.device = Some(t.device().clone()),
            Some(d) if d.index() != t.device().index() && self.error.is_none() => {
                let op = self.code.row().name.trim_start_matches("aten::").to_owned();
                self.error = Some(Error::DeviceMismatch { op, a: d.index(), b: t.device().index() });
            }
            Some(_) => {}
        }
        if t.edge().is_some() {
            self.edges.resize(self.operands.len(), Edge::default());
            self.edges.push(t.edge().clone());
        }
        self.operands.push(t.value());
    }

    pub(crate) fn tensor(&mut self, t: &LazyTensor) {
        self.push(t);
        self.args.tensor();
        self.count += 1;
    }

    pub(crate) fn operand(&mut self, o: Operand<'_>) {
        match o {
            Operand::Tensor(t) => self.tensor(t),
            Operand::Owned(t) => self.tensor(&t),
            Operand::Number(n) => {
                self.args.wrapped(n);
                self.count += 1;
            }
        }
    }

    pub(crate) fn tensors(&mut self, list: &[&LazyTensor]) {
        list.iter().for_each(|t| self.push(t));
        self.args.tensors(&SmallVec::<[bool; 8]>::from_elem(true, list.len()), ArgFlags::NONE);
        self.count += 1;
    }

    pub(crate) fn optional_tensors(&mut self, list: &[Option<&LazyTensor>]) {
        list.iter().flatten().for_each(|t| self.push(t));
        let present: SmallVec<[bool; 8]> = list.iter().map(Option::is_some).collect();
        self.args.tensors(&present, ArgFlags::NONE);
        self.count += 1;
    }

    pub(crate) fn none(&mut self) {
        self.args.none();
        self.count += 1;
    }

    /// An argument native tensors decide themselves: device, memory layout, generator.
    pub(crate) fn ours(&mut self) {
        let spec = &self.code.row().arguments[self.count];
        match spec.kind {
            ArgKind::Generator => {
                self.args.generator();
                self.draws = true;
            }
            ArgKind::Device => drop(self.args.device()),
            // Row-major.
            ArgKind::MemoryFormat if !spec.optional => drop(self.args.int(0)),
            _ => drop(self.args.none()),
        }
        self.count += 1;
    }

    pub(crate) fn number(&mut self, n: Scalar) {
        self.args.number(n);
        self.count += 1;
    }

    pub(crate) fn int(&mut self, v: i64) {
        self.args.int(v);
        self.count += 1;
    }

    pub(crate) fn ints(&mut self, v: &[i64]) {
        self.args.ints(v);
        self.count += 1;
    }

    pub(crate) fn bool(&mut self, v: bool) {
        self.args.bool(v);
        self.count += 1;
    }

    pub(crate) fn bools(&mut self, v: &[bool]) {
        self.args.bools(v);
        self.count += 1;
    }

    pub(crate) fn float(&mut self, v: f64) {
        self.args.float(v);
        self.count += 1;
    }

    pub(crate) fn str(&mut self, v: &str) {
        self.args.str(v);
        self.count += 1;
    }

    pub(crate) fn dtype(&mut self, v: DType) {
        self.int(v as i64);
    }

    /// The device, once everything about the arguments is known that needs no rule.
    fn device(&mut self) -> Result<Device, Error> {
        if let Some(e) = self.error.take() {
            return Err(e);
        }
        let row = self.code.row();
        // Operators that draw without saying so take the device's generator beyond their schema.
        if row.class == OpClass::Random && !self.draws {
            self.args.generator();
            self.draws = true;
        }
        let empty = || ShapeError::runtime(format!("{}: expected a non-empty list of tensors", row.name)).into();
        self.device.take().ok_or_else(empty)
    }

    /// Finds the call's signature; what is wrong with the call is said here. A call that draws holds the generator from
    /// here on.
    #[inline]
    fn find<'d>(&mut self, device: &'d Device) -> Result<(Rc<Seen>, Option<Generator<'d>>), Error> {
        let mut generator = None;
        if self.draws {
            let drawn = generator.insert(device.generator());
            self.operands.push(device.drawn_state(drawn).clone());
        }
        let seen = find(self.code, &self.args, &self.operands)?;
        seen.signature.check_numbers(self.args.numbers())?;
        Ok((seen, generator))
    }

    #[inline]
    fn wants_gradients(&self) -> bool {
        !self.edges.is_empty() && autodiff::is_enabled()
    }

    /// Operands with their edges, where gradients have to know of the call.
    fn inputs(&mut self, device: &Device) -> Option<autodiff::Inputs> {
        let wanted = self.wants_gradients();
        let tensors = self.operands.len() - usize::from(self.draws);
        let edges = std::mem::take(&mut self.edges).into_iter().chain(std::iter::repeat_with(Edge::default));
        let saved = |(v, e): (&TraceValue, Edge)| LazyTensor::of(device.clone(), v.clone()).with_edge(e);
        wanted.then(|| self.operands[..tensors].iter().zip(edges).map(saved).collect())
    }

    /// Records the call; one entry per result of the schema.
    fn record(mut self) -> Result<SmallVec<[Option<LazyTensor>; 2]>, Error> {
        let device = self.device()?;
        let (seen, generator) = self.find(&device)?;
        Ok(self.record_seen(&device, &seen, generator))
    }

    fn record_seen(
        mut self,
        device: &Device,
        seen: &Seen,
        mut generator: Option<Generator<'_>>,
    ) -> SmallVec<[Option<LazyTensor>; 2]> {
        let numbers = self.args.take_numbers();
        let remember = self.inputs(device).map(|inputs| (inputs, numbers.clone(), seen.signature.clone()));
        let count = seen.signature.results().len() - seen.generators;
        let mut values = device.record_results(&seen.signature, self.operands, numbers, SiteId::default()).into_iter();
        let new: Tensors = values.by_ref().take(count).map(|v| LazyTensor::of(device.clone(), v)).collect();
        if let (Some(generator), Some(state)) = (&mut generator, values.next()) {
            device.draw_on(generator, state);
        }
        drop(generator);
        let new = match remember {
            Some((inputs, numbers, signature)) => autodiff::attach(self.code, signature, numbers, inputs, new),
            None => new,
        };
        let mut new = new.into_iter();
        seen.present.iter().map(|&p| p.then(|| new.next()).flatten()).collect()
    }

    pub(crate) fn one(mut self) -> Result<LazyTensor, Error> {
        let code = self.code;
        let device = self.device()?;
        let (seen, generator) = self.find(&device)?;
        if seen.signature.results().len() != 1 || generator.is_some() || self.wants_gradients() {
            let mut results = self.record_seen(&device, &seen, generator);
            return results.pop().flatten().ok_or_else(|| no_result(code));
        }
        drop(generator);
        let numbers = self.args.take_numbers();
        let value = device.record(&seen.signature, self.operands, numbers, SiteId::default());
        Ok(LazyTensor::of(device, value))
    }

    pub(crate) fn many(self) -> Result<Vec<LazyTensor>, Error> {
        Ok(self.record()?.into_iter().flatten().collect())
    }

    pub(crate) fn masked(self) -> Result<Vec<Option<LazyTensor>>, Error> {
        Ok(self.record()?.into_vec())
    }

    pub(crate) fn tuple<T: FromResults>(self) -> Result<T, Error> {
        let code = self.code;
        T::from_results(&mut self.record()?.into_iter().flatten()).ok_or_else(|| no_result(code))
    }
}

fn no_result(code: OpCode) -> Error {
    let message = format!("{}: a result is missing", code.row().name);
    ShapeError { class: ErrorClass::Runtime, message }.into()
}

/// Tuples of results.
pub(crate) trait FromResults: Sized {
    fn from_results(results: &mut dyn Iterator<Item = LazyTensor>) -> Option<Self>;
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl FromResults for ($($name,)*) {
            fn from_results(results: &mut dyn Iterator<Item = LazyTensor>) -> Option<Self> {
                Some(($({ let t: $name = results.next()?; t },)*))
            }
        }
    };
}

type T = LazyTensor;
tuples!(T T);
tuples!(T T T);
tuples!(T T T T);
tuples!(T T T T T);

fn mix(h: u64, w: u64) -> u64 {
    (h.rotate_left(5) ^ w).wrapping_mul(0x517c_c1b7_2722_0a95)
}

impl Seen {
    #[inline]
    fn is(&self, code: OpCode, words: &[u64], shaping: &[u64], operands: &Operands<Arc<DataCell>>) -> bool {
        self.code == code
            && self.words[..] == *words
            && self.numbers[..] == *shaping
            && self.operands.len() == operands.len()
            && self.operands.iter().zip(operands).all(|(a, b)| Arc::ptr_eq(a, b.layout()) || a == b.layout())
    }
}

/// What is known of a call, from this thread's memory or by its rule.
#[inline]
fn find(code: OpCode, args: &ArgWriter, operands: &Operands<Arc<DataCell>>) -> Result<Rc<Seen>, Error> {
    let shaping: &[u64] = if code.row().class == OpClass::Factory { args.numbers() } else { &[] };
    let key = key(code, args.words(), shaping, operands);
    let known = MEMORY.with_borrow(|calls| {
        let same_key = calls.get(&key)?;
        same_key.iter().find(|s| s.is(code, args.words(), shaping, operands)).cloned()
    });
    known.map_or_else(|| find_anew(code, args, shaping, operands, key), Ok)
}

#[inline]
fn key(code: OpCode, words: &[u64], shaping: &[u64], operands: &Operands<Arc<DataCell>>) -> u64 {
    let key = words.iter().chain(shaping).fold(mix(0, code as u64), |key, &w| mix(key, w));
    operands.iter().fold(key, |key, o| mix(key, o.layout().hash().0 as u64))
}

#[cold]
fn find_anew(
    code: OpCode,
    args: &ArgWriter,
    shaping: &[u64],
    operands: &Operands<Arc<DataCell>>,
    key: u64,
) -> Result<Rc<Seen>, Error> {
    let row = code.row();
    let words = args.words();
    let layouts: SmallVec<[&Layout; 4]> = operands.iter().map(|o| &**o.layout()).collect();
    let call = Call::decode(row.name, words, &layouts, args.numbers());
    let call = call.ok_or_else(|| ShapeError::runtime(format!("{}: malformed arguments", row.name)))?;
    let new = (row.rule)(&call)?;
    if let Some(huge) = new.iter().flatten().find(|l| l.storage_bytes() > isize::MAX as usize) {
        let message = format!("Storage size calculation overflowed with sizes={:?}", huge.sizes());
        return Err(ShapeError::runtime(format!("{}: {message}", row.name)).into());
    }
    let generators = layouts.iter().filter(|l| l.dtype() == DType::RngState).count();
    let present = new.iter().map(Option::is_some).collect();
    let state = || LayoutRef::from(Layout::contiguous(DType::RngState, &[]));
    // A result that looks like an operand shares its layout: in a chain of calls, layouts are compared by address.
    let shared = |layout: Layout| match operands.iter().find(|o| **o.layout() == layout) {
        Some(operand) => operand.layout().clone(),
        None => layout.into(),
    };
    let results = new.into_iter().flatten().map(shared).chain((0..generators).map(|_| state())).collect();
    let seen = Rc::new(Seen {
        code,
        signature: Signature::new(code.op(), words.into(), results),
        words: words.into(),
        numbers: shaping.into(),
        operands: operands.iter().map(|o| o.layout().clone()).collect(),
        present,
        generators,
    });
    MEMORY.with_borrow_mut(|calls| {
        if calls.len() >= REMEMBERED {
            calls.clear();
        }
        calls.entry(key).or_default().push(seen.clone());
    });
    Ok(seen)
}
