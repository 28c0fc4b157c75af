//! Operators: an interned name with its properties.
//!
//! An [`Op`] is a copyable handle to one [`OpSpec`]. Operators with a table row (see [`crate::table`]) carry knowledge;
//! any other ATen operator is interned on first use with what its dispatcher schema says. The interner only grows, and
//! only by distinct operator names, so its memory is bounded by the operator set (decision record 0002).

use std::{
    fmt,
    hash::{Hash, Hasher as StdHasher},
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
    },
};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::{
    hash::{Domain, Hash128},
    table::Row,
};

/// What kind of computation an operator is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OpClass {
    /// Nothing known beyond the schema.
    #[default]
    Generic,
    /// Each result element depends on the same element of broadcast operands.
    Pointwise,
    /// Folds dimensions away.
    Reduction,
    /// Matrix products.
    Matmul,
    /// Convolutions.
    Convolution,
    /// Pooling and resampling.
    Pooling,
    /// Normalisations (batch, layer, group) and softmax.
    Normalization,
    /// Losses and their gradients.
    Loss,
    /// Draws from a generator.
    Random,
    /// Makes a tensor from sizes and numbers.
    Factory,
    /// Moves elements: gather, scatter, index, cat.
    Movement,
    /// Views of their argument, and our own reads and writes of views.
    View,
    /// Decompositions and solvers.
    Linalg,
}

/// Properties passes and the recorder ask for; a set.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Props(pub u16);

impl Props {
    /// No property.
    pub const NONE: Props = Props(0);
    /// Draws random numbers: consumes and yields a generator state.
    pub const RANDOM: Props = Props(1);
    /// Writes at least one argument.
    pub const MUTATES: Props = Props(2);
    /// The written argument's old contents do not matter (`fill_`, `copy_`, `out=`).
    pub const OVERWRITES: Props = Props(4);
    /// Result shape depends on values; always runs eagerly.
    pub const DATA_DEPENDENT: Props = Props(8);
    /// Operands commute.
    pub const COMMUTATIVE: Props = Props(16);
    /// Images may come channels-last: results have that layout too, and the kernels are not slower.
    pub const CHANNELS_LAST: Props = Props(32);
    /// No values of operands or numbers make it fail: what its arguments' shapes and dtypes allow, it computes. Not
    /// known of an operator, it may fail.
    pub const TOTAL: Props = Props(64);

    /// Whether all of `other` is in this set.
    #[inline]
    pub const fn has(self, other: Props) -> bool {
        self.0 & other.0 == other.0
    }

    /// What both have.
    pub const fn only(self, other: Props) -> Props {
        Props(self.0 & other.0)
    }

    /// Union.
    pub const fn and(self, other: Props) -> Props {
        Props(self.0 | other.0)
    }
}

impl fmt::Debug for Props {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Props, &str); 7] = [
            (Props::RANDOM, "random"),
            (Props::MUTATES, "mutates"),
            (Props::OVERWRITES, "overwrites"),
            (Props::DATA_DEPENDENT, "data-dependent"),
            (Props::COMMUTATIVE, "commutative"),
            (Props::CHANNELS_LAST, "channels-last"),
            (Props::TOTAL, "total"),
        ];
        f.debug_set().entries(NAMES.iter().filter(|(p, _)| self.has(*p)).map(|(_, n)| n)).finish()
    }
}

/// Everything the system knows about one operator.
#[derive(Debug)]
pub struct OpSpec {
    /// Qualified name with overload: `aten::add.Tensor`, `ltc::read_view`.
    pub name: Box<str>,
    /// Kind of computation.
    pub class: OpClass,
    /// Only gains bits: a name may be met (in a graph's text) before its schema is.
    props: AtomicU16,
    /// Stable hash of the name.
    pub hash: Hash128,
    /// Row of the operator table.
    pub row: Option<&'static Row>,
}

impl OpSpec {
    /// Properties, as far as anybody has told them.
    #[inline]
    pub fn props(&self) -> Props {
        Props(self.props.load(Ordering::Relaxed))
    }
}

/// A handle to an interned operator; equality is identity.
#[derive(Clone, Copy)]
pub struct Op(&'static OpSpec);

fn interner() -> &'static RwLock<FxHashMap<&'static str, Op>> {
    static INTERNER: OnceLock<RwLock<FxHashMap<&'static str, Op>>> = OnceLock::new();
    INTERNER.get_or_init(RwLock::default)
}

impl Op {
    fn leak(name: &str, class: OpClass, props: Props) -> Op {
        let (props, hash) = (AtomicU16::new(props.0), Hash128::of_str(Domain::Op, name));
        let row = crate::table::find(name);
        Op(Box::leak(Box::new(OpSpec { name: name.into(), class, props, hash, row })))
    }

    /// The operator of this name, whose properties are those of its table row and of all calls so far. A name without a
    /// row gets [`OpClass::Generic`].
    pub fn intern(name: &str, schema_props: Props) -> Op {
        let known = interner().read().get(name).copied();
        if let Some(op) = known {
            return op.learn(schema_props);
        }
        let mut map = interner().write();
        if let Some(op) = map.get(name) {
            return op.learn(schema_props);
        }
        let (class, props) = crate::table::describe(name).unwrap_or((OpClass::Generic, Props::NONE));
        let op = Op::leak(name, class, props.and(schema_props));
        map.insert(op.name(), op);
        op
    }

    fn learn(self, props: Props) -> Op {
        if !self.has(props) {
            self.0.props.fetch_or(props.0, Ordering::Relaxed);
        }
        self
    }

    /// The operator of this name if the table knows it or it was ever interned.
    pub fn find(name: &str) -> Option<Op> {
        let known = interner().read().get(name).copied();
        known.or_else(|| crate::table::describe(name).map(|_| Op::intern(name, Props::NONE)))
    }

    /// Reading a tensor through a layout other than its value's own: `(value, offset)`, the layout is the result's.
    pub fn read_view() -> Op {
        static OP: OnceLock<Op> = OnceLock::new();
        *OP.get_or_init(|| Op::intern("ltc::read_view", Props::TOTAL))
    }

    /// Writing through a layout: `(base, value, sizes, strides, offset)` yields the base with the region replaced.
    pub fn write_view() -> Op {
        static OP: OnceLock<Op> = OnceLock::new();
        *OP.get_or_init(|| Op::intern("ltc::write_view", Props::TOTAL))
    }

    /// Memory nobody wrote yet.
    pub fn empty() -> Op {
        static OP: OnceLock<Op> = OnceLock::new();
        *OP.get_or_init(|| Op::intern("ltc::empty", Props::TOTAL))
    }

    /// One result of an operator that has several: operand 0 is the operator's node, argument 0 the result index.
    /// Exists in traces only; canonical graphs refer to results directly.
    #[inline]
    pub fn result() -> Op {
        static OP: OnceLock<Op> = OnceLock::new();
        *OP.get_or_init(|| Op::intern("ltc::result", Props::TOTAL))
    }

    /// A leaf of the trace: data that is on the device or on its way there.
    pub fn data() -> Op {
        static OP: OnceLock<Op> = OnceLock::new();
        *OP.get_or_init(|| Op::intern("ltc::data", Props::TOTAL))
    }

    /// A generator seeded by argument 0 (a runtime number): yields a generator state.
    pub fn seed() -> Op {
        static OP: OnceLock<Op> = OnceLock::new();
        *OP.get_or_init(|| Op::intern("ltc::seed", Props::TOTAL))
    }

    /// Qualified name with overload.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// The name users know: without namespace and overload (`add_` for `aten::add_.Tensor`).
    pub fn short_name(self) -> &'static str {
        let name = self.name().rsplit("::").next().unwrap_or_default();
        name.split('.').next().unwrap_or_default()
    }

    /// All that is known.
    #[inline]
    pub fn spec(self) -> &'static OpSpec {
        self.0
    }

    /// Whether the operator has these properties.
    pub fn has(self, p: Props) -> bool {
        self.0.props().has(p)
    }

    /// Stable hash of the name.
    #[inline]
    pub fn hash128(self) -> Hash128 {
        self.0.hash
    }

    /// The operator's row in the table.
    pub fn row(self) -> Option<&'static Row> {
        self.0.row
    }

    /// The interned spec, for foreign callers; see [`Op::from_static`].
    pub fn as_static(self) -> &'static OpSpec {
        self.0
    }

    /// The handle of an interned spec.
    pub fn from_static(spec: &'static OpSpec) -> Op {
        Op(spec)
    }
}

impl PartialEq for Op {
    #[inline]
    fn eq(&self, o: &Op) -> bool {
        std::ptr::eq(self.0, o.0)
    }
}

impl Eq for Op {}

impl Hash for Op {
    fn hash<H: StdHasher>(&self, h: &mut H) {
        h.write_u64(self.0.hash.0 as u64);
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Op({})", self.name())
    }
}
