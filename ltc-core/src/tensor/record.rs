//! From a method call to a trace node.
//!
//! The path of every native operator: arguments become a blob, the blob with the operands' layouts finds the call's
//! [`Signature`] in a cache of this thread, and the node is recorded. Rules run on a miss only, so in a loop no shape is
//! inferred twice, nothing is formatted and no lock is shared between threads.

use std::{cell::RefCell, sync::Arc};

use ltc_ir::{
    ArgFlags, ArgWords, ArgWriter, DType, ErrorClass, Layout, LayoutRef, NumberWords, OpClass, OpCode, Operands,
    Scalar, ShapeError, Signature, SignatureRef, SiteId, rules::Call, table::ArgKind,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{LazyTensor, Operand, Tensors};
use crate::{DataCell, Device, Error, autodiff};

/// Calls a thread remembers before it begins anew.
const REMEMBERED: usize = 1 << 16;

/// A call seen before.
struct Seen {
    code: OpCode,
    words: ArgWords,
    /// Factories' shapes depend on numbers.
    numbers: NumberWords,
    operands: SmallVec<[LayoutRef; 3]>,
    signature: SignatureRef,
    /// Which of the schema's results exist.
    present: SmallVec<[bool; 3]>,
    generators: usize,
}

thread_local! {
    static SEEN: RefCell<FxHashMap<u64, SmallVec<[Arc<Seen>; 1]>>> = RefCell::default();
}

/// A tensor argument; borrowed where the caller keeps it, because cloning one costs as much as recording.
enum Held<'a> {
    Borrowed(&'a LazyTensor),
    Owned(LazyTensor),
}

impl std::ops::Deref for Held<'_> {
    type Target = LazyTensor;

    fn deref(&self) -> &LazyTensor {
        match self {
            Held::Borrowed(t) => t,
            Held::Owned(t) => t,
        }
    }
}

/// A call under construction: arguments in schema order.
pub(crate) struct Recording<'a> {
    code: OpCode,
    args: ArgWriter,
    /// How many arguments there are so far.
    count: usize,
    tensors: SmallVec<[Held<'a>; 4]>,
    device: Option<Device>,
    draws: bool,
    error: Option<Error>,
}

impl<'a> Recording<'a> {
    pub(crate) fn new(code: OpCode) -> Self {
        Recording {
            code,
            args: ArgWriter::new(),
            count: 0,
            tensors: SmallVec::new(),
            device: None,
            draws: false,
            error: None,
        }
    }

    /// A call of an operator without tensor arguments.
    pub(crate) fn on(code: OpCode, device: &Device) -> Self {
        Recording { device: Some(device.clone()), ..Recording::new(code) }
    }

    fn push(&mut self, t: Held<'a>) {
        match &self.device {
            None => self.device = Some(t.device().clone()),
            Some(d) if d.index() != t.device().index() && self.error.is_none() => {
                let op = self.code.row().name.trim_start_matches("aten::").to_owned();
                self.error = Some(Error::DeviceMismatch { op, a: d.index(), b: t.device().index() });
            }
            Some(_) => {}
        }
        self.tensors.push(t);
    }

    pub(crate) fn tensor(&mut self, t: &'a LazyTensor) {
        self.held(Held::Borrowed(t));
    }

    fn held(&mut self, t: Held<'a>) {
        self.push(t);
        self.args.tensor();
        self.count += 1;
    }

    pub(crate) fn operand(&mut self, o: Operand<'a>) {
        match o {
            Operand::Tensor(t) => self.tensor(t),
            Operand::Owned(t) => self.held(Held::Owned(t)),
            Operand::Number(n) => {
                self.args.wrapped(n);
                self.count += 1;
            }
        }
    }

    pub(crate) fn tensors(&mut self, list: &[&'a LazyTensor]) {
        list.iter().for_each(|t| self.push(Held::Borrowed(t)));
        self.args.tensors(&SmallVec::<[bool; 8]>::from_elem(true, list.len()), ArgFlags::NONE);
        self.count += 1;
    }

    pub(crate) fn optional_tensors(&mut self, list: &[Option<&'a LazyTensor>]) {
        list.iter().flatten().for_each(|t| self.push(Held::Borrowed(t)));
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

    /// Records the call; one entry per result of the schema.
    fn record(mut self) -> Result<SmallVec<[Option<LazyTensor>; 2]>, Error> {
        if let Some(e) = self.error {
            return Err(e);
        }
        let row = self.code.row();
        // Operators that draw without saying so take the device's generator beyond their schema.
        if row.class == OpClass::Random && !self.draws {
            self.args.generator();
            self.draws = true;
        }
        let Some(device) = self.device.take() else {
            return Err(ShapeError::runtime(format!("{}: expected a non-empty list of tensors", row.name)).into());
        };
        let (words, numbers) = self.args.finish();
        let mut operands: Operands<Arc<DataCell>> = self.tensors.iter().map(|t| t.value()).collect();
        let mut generator = self.draws.then(|| device.generator());
        operands.extend(generator.as_deref().cloned());
        let seen = infer(self.code, words, &numbers, &operands)?;
        let edge_words =
            autodiff::wants(self.tensors.iter().map(|t| &**t)).then(|| (numbers.clone(), seen.signature.clone()));
        let mut values =
            device.record_results(seen.signature.clone(), operands, numbers, SiteId::default()).into_iter();
        let states = seen.generators;
        let count = seen.signature.results().len() - states;
        let new: Tensors = values.by_ref().take(count).map(|v| LazyTensor::of(&device, v)).collect();
        if let (Some(generator), Some(state)) = (&mut generator, values.next()) {
            **generator = state;
        }
        drop(generator);
        let new = match edge_words {
            Some((numbers, signature)) => {
                autodiff::attach(self.code, signature, numbers, self.tensors.iter().map(|t| &**t), new)
            }
            None => new,
        };
        let mut new = new.into_iter();
        Ok(seen.present.iter().map(|&p| p.then(|| new.next()).flatten()).collect())
    }

    pub(crate) fn one(self) -> Result<LazyTensor, Error> {
        let code = self.code;
        self.record()?.pop().flatten().ok_or_else(|| no_result(code))
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

/// The call's signature, from this thread's memory or by its rule.
fn infer(
    code: OpCode,
    words: ArgWords,
    numbers: &NumberWords,
    operands: &Operands<Arc<DataCell>>,
) -> Result<Arc<Seen>, Error> {
    let shaping: &[u64] = if code.row().class == OpClass::Factory { numbers } else { &[] };
    let mut key = mix(0, code as u64);
    for &w in words.iter().chain(shaping) {
        key = mix(key, w);
    }
    for o in operands {
        key = mix(key, o.layout().hash().0 as u64);
    }
    let found = SEEN.with_borrow(|seen| {
        let same = |s: &&Arc<Seen>| {
            s.code == code
                && s.words == words
                && s.numbers[..] == *shaping
                && s.operands.len() == operands.len()
                && s.operands.iter().zip(operands).all(|(a, b)| Arc::ptr_eq(a, b.layout()) || a == b.layout())
        };
        seen.get(&key).and_then(|list| list.iter().find(same)).cloned()
    });
    match found {
        Some(seen) => Ok(seen),
        None => infer_anew(code, words, numbers, shaping, operands, key),
    }
}

#[cold]
fn infer_anew(
    code: OpCode,
    words: ArgWords,
    numbers: &NumberWords,
    shaping: &[u64],
    operands: &Operands<Arc<DataCell>>,
    key: u64,
) -> Result<Arc<Seen>, Error> {
    let row = code.row();
    let layouts: SmallVec<[&Layout; 4]> = operands.iter().map(|o| &**o.layout()).collect();
    let blob = words.clone();
    let call = Call::decode(row.name, &blob, &layouts, numbers);
    let call = call.ok_or_else(|| ShapeError::runtime(format!("{}: malformed arguments", row.name)))?;
    let new = (row.rule)(&call)?;
    let generators = layouts.iter().filter(|l| l.dtype() == DType::RngState).count();
    let present = new.iter().map(Option::is_some).collect();
    let state = || LayoutRef::from(Layout::contiguous(DType::RngState, &[]));
    let results = new.into_iter().flatten().map(LayoutRef::from).chain((0..generators).map(|_| state())).collect();
    let seen = Arc::new(Seen {
        code,
        signature: Signature::new(code.op(), blob.clone(), results),
        words,
        numbers: shaping.into(),
        operands: operands.iter().map(|o| o.layout().clone()).collect(),
        present,
        generators,
    });
    SEEN.with_borrow_mut(|map| {
        if map.len() >= REMEMBERED {
            map.clear();
        }
        map.entry(key).or_default().push(seen.clone());
    });
    Ok(seen)
}
