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
    props::{OpClass, Props},
    rules::numbers::NumberRule,
    table::{OpCode, Row},
};

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
    /// Which numbers of a call it refuses: as the row says, or that of what it does out of place, or to each of a list.
    pub numbers: Option<NumberRule>,
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

/// Names of the operators that `torch.distributed` is recorded as.
const COLLECTIVES: &str = "ltc_dist::";

impl Op {
    fn leak(name: &str, class: OpClass, props: Props) -> Op {
        let (props, hash) = (AtomicU16::new(props.0), Hash128::of_str(Domain::Op, name));
        let row = crate::table::find(name);
        let single = crate::table::single_form(name);
        let written = crate::table::functional(single.as_deref().unwrap_or(name)).map(OpCode::row);
        let known = row.or_else(|| crate::table::find(single.as_deref()?)).or(written);
        let numbers = known.and_then(|row| row.numbers);
        Op(Box::leak(Box::new(OpSpec { name: name.into(), class, props, hash, row, numbers })))
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
        let own = if name.starts_with(COLLECTIVES) { Props::COLLECTIVE } else { Props::NONE };
        let (class, props) = crate::table::describe(name).unwrap_or((OpClass::Generic, own));
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

    /// Waiting for what other processes take part in: `(value, handle, source?)` yields the value it was begun for. Put
    /// off until that is used, it costs nothing where the engine was faster.
    pub fn wait() -> Op {
        static OP: OnceLock<Op> = OnceLock::new();
        *OP.get_or_init(|| Op::intern("ltc_dist::wait", Props::MUTATES))
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

    /// Whether others may notice that it runs: other processes take part in it, or it is of another package, whose
    /// kernels do whatever they do.
    pub fn is_noticed(self) -> bool {
        self.has(Props::COLLECTIVE) || !["aten::", "ltc::"].iter().any(|own| self.name().starts_with(own))
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

/// Room for the handles of all rows.
const MAX_ROWS: usize = 1024;

impl OpCode {
    /// The interned operator; interned once, so this is a load.
    #[inline]
    pub fn op(self) -> Op {
        static OPS: [OnceLock<Op>; MAX_ROWS] = [const { OnceLock::new() }; MAX_ROWS];
        *OPS[self as usize].get_or_init(|| Op::intern(self.row().name, Props::NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows;

    #[test]
    fn a_row_and_its_name_are_one_operator() {
        assert!(rows().len() <= MAX_ROWS);
        for row in rows() {
            assert!(std::ptr::eq(row.code.op().spec(), Op::intern(row.name, Props::NONE).spec()), "{}", row.name);
        }
    }

    #[test]
    fn collectives_are_known_by_their_namespace() {
        for (name, is) in [("ltc_dist::all_reduce", true), ("ltc_dist::received", true), ("aten::add_.Tensor", false)] {
            assert_eq!(Op::intern(name, Props::MUTATES).has(Props::COLLECTIVE), is, "{name}");
        }
    }
}
