//! Kernel expressions from the operator table's expressions (`ltc-ir/ops.toml`).
//!
//! What is known when a graph is compiled, the structure of a call, is put in: strings, booleans and what is left out
//! choose branches. What remains is operations that kernels have, or there is none.

use std::sync::LazyLock;

use ltc_ir::{
    Arg, Expr, Func, GraphNode,
    expr::mode,
    table::{self, ArgKind},
};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::emit::KernelExpr;
use ltc_kernels::KernelOp;

/// What is known of an argument when a graph is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Known {
    Nothing,
    Absent,
    Is(u8),
}

/// An operator's expressions, by what is known of its arguments.
type Key = (&'static str, SmallVec<[Known; 8]>);

type KernelExprs = Option<&'static [KernelExpr]>;

/// What is computed of a node whose operator's row, that of its functional form, is this one: of one that reduces, what
/// written arguments become, then the new results.
pub(super) fn exprs(row: &'static table::Row, node: &GraphNode) -> KernelExprs {
    static EXPRS: LazyLock<RwLock<FxHashMap<Key, KernelExprs>>> = LazyLock::new(RwLock::default);
    // Integers are known where an operator reduces: they say what is reduced, and how.
    let integers = row.reduce.is_some_and(|r| r.when.is_some());
    let known = node.args().zip(row.arguments).map(|(arg, spec)| known(&arg, spec.kind, integers));
    let key: Key = (row.name, known.collect::<Option<_>>()?);
    if let Some(exprs) = EXPRS.read().get(&key) {
        return *exprs;
    }
    // As many as there are operators, times the few ways to call one.
    let exprs = parse(row, &key.1).map(|f| &*f.leak());
    *EXPRS.write().entry(key).or_insert(exprs)
}

fn known(arg: &Arg<'_>, kind: ArgKind, integers: bool) -> Option<Known> {
    Some(match arg {
        Arg::None if kind == ArgKind::Str => Known::Is(0),
        Arg::None => Known::Absent,
        Arg::Tensor { operand: None, .. } => Known::Absent,
        Arg::Bool(b) => Known::Is(u8::from(*b)),
        // Which dimension it is need not be known.
        Arg::Int(i) if integers => u8::try_from(*i).map_or(Known::Nothing, Known::Is),
        Arg::Str { words, len } => {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take(*len).collect();
            Known::Is(mode(std::str::from_utf8(&bytes).ok()?)?)
        }
        _ => Known::Nothing,
    })
}

/// Of `aten::clamp` where the running libtorch lets a single bound that is NaN hold. The table has the one of 2.11,
/// where elements pass such a bound.
const CLAMP_WHERE_NAN_HOLDS: &str = "where(absent(max), where(absent(min), self, max(min, self)), \
                                     where(absent(min), min(max, self), min(max, max(min, self))))";

/// The expression of a row that does not reduce, as the running libtorch computes it.
fn expr_of(row: &table::Row) -> Option<&'static str> {
    let is_other = row.name == "aten::clamp" && ltc_torch_sys::nan_bound_holds();
    if is_other { Some(CLAMP_WHERE_NAN_HOLDS) } else { row.expr }
}

fn parse(row: &table::Row, known: &[Known]) -> Option<Vec<KernelExpr>> {
    let names: SmallVec<[&str; 8]> = row.arguments.iter().map(|a| a.name).collect();
    let read = |text: &str| Reader { row, known }.read(&Expr::parse(text, &names).ok()?);
    let Some(reduce) = row.reduce else { return Some(vec![read(expr_of(row)?)?]) };
    if let Some(when) = reduce.when
        && !matches!(read(when)?, KernelExpr::Number(holds) if holds != 0.0)
    {
        return None;
    }
    let absent = |argument: usize| known.get(argument) == Some(&Known::Absent);
    let writes = reduce.writes.iter().filter(|(at, _)| !absent(*at)).map(|(_, text)| *text);
    writes.chain(reduce.results.iter().copied()).map(read).collect()
}

/// Turns one call's expression into a kernel's.
struct Reader<'a> {
    row: &'a table::Row,
    known: &'a [Known],
}

impl Reader<'_> {
    fn read(&self, e: &Expr) -> Option<KernelExpr> {
        match e {
            Expr::Number(x, _) => Some(KernelExpr::Number(*x)),
            Expr::Input(i) => match self.known.get(*i) {
                Some(Known::Absent) => None,
                Some(Known::Is(x)) => Some(KernelExpr::Number(f64::from(*x))),
                Some(Known::Nothing) | None => Some(KernelExpr::Argument(*i)),
            },
            Expr::Call(Func::Absent, x) => {
                let absent = matches!(x[..], [Expr::Input(i)] if self.known.get(i) == Some(&Known::Absent));
                Some(KernelExpr::Number(f64::from(u8::from(absent))))
            }
            Expr::Call(Func::Where, x) => match self.read(&x[0])? {
                KernelExpr::Number(c) => self.read(&x[if c != 0.0 { 1 } else { 2 }]),
                condition => {
                    Some(KernelExpr::Apply(KernelOp::Select, vec![condition, self.read(&x[1])?, self.read(&x[2])?]))
                }
            },
            Expr::Call(f @ (Func::Mul | Func::Fma), x) => {
                let factors = [self.factor(&x[0])?, self.factor(&x[1])?];
                let all = factors.into_iter().map(Some).chain(x[2..].iter().map(|c| self.read(c)));
                Some(KernelExpr::Apply(
                    if *f == Func::Mul { KernelOp::Mul } else { KernelOp::Fma },
                    all.collect::<Option<_>>()?,
                ))
            }
            Expr::Call(f, x) => call(*f, x.iter().map(|o| self.read(o)).collect::<Option<_>>()?),
        }
    }

    /// A factor. Numbers that are one unless somebody says otherwise, such as `alpha`, nearly always are.
    fn factor(&self, e: &Expr) -> Option<KernelExpr> {
        match e {
            Expr::Input(i) => {
                let spec = &self.row.arguments[*i];
                let one = spec.kind == ArgKind::Scalar && spec.default == Some("1");
                if one { Some(KernelExpr::One(*i)) } else { self.read(e) }
            }
            Expr::Call(Func::Neg, x) => Some(negated(self.factor(&x[0])?)),
            e => self.read(e),
        }
    }
}

fn negated(x: KernelExpr) -> KernelExpr {
    match x {
        KernelExpr::Number(n) => KernelExpr::Number(-n),
        x => KernelExpr::Apply(KernelOp::Neg, vec![x]),
    }
}

/// A function of expressions; `None` if kernels lack it.
fn call(f: Func, mut x: Vec<KernelExpr>) -> Option<KernelExpr> {
    let apply = |op: KernelOp, x: Vec<KernelExpr>| Some(KernelExpr::Apply(op, x));
    let number = KernelExpr::Number;
    if let [KernelExpr::Number(a), KernelExpr::Number(b)] = x[..]
        && let Some(truth) = compared(f, a, b)
    {
        return Some(number(f64::from(u8::from(truth))));
    }
    let op = match f {
        Func::Neg => return Some(negated(x.swap_remove(0))),
        Func::Gt | Func::Ge => {
            x.reverse();
            if f == Func::Gt { KernelOp::Lt } else { KernelOp::Le }
        }
        Func::And | Func::Or => {
            let op = if f == Func::And { KernelOp::And } else { KernelOp::Or };
            return apply(op, x.into_iter().map(truth).collect());
        }
        Func::Not => {
            return Some(match x.swap_remove(0) {
                KernelExpr::Number(known) => number(f64::from(u8::from(known == 0.0))),
                x => KernelExpr::Apply(KernelOp::Eq, vec![x, number(0.0)]),
            });
        }
        Func::Count => return Some(KernelExpr::Count),
        f => {
            if let (Func::Div, [KernelExpr::Number(a), KernelExpr::Number(b)]) = (f, &x[..]) {
                return Some(number(a / b));
            }
            match CODES.iter().find(|(known, _)| *known == f) {
                Some((_, op)) => *op,
                None => return composed(f, x),
            }
        }
    };
    apply(op, x)
}

/// Functions that kernels compute by several operations: what libtorch's CPU kernels do
/// (`aten/src/ATen/native/cpu/BinaryOpsKernel.cpp`, `UnaryOpsKernel.cpp`, `c10/util/generic_math.h`), over the names
/// `x` and `y`.
const COMPOSED: &[(Func, &str)] = &[
    (Func::Reciprocal, "1 / x"),
    (Func::Rsqrt, "1 / sqrt(x)"),
    (Func::Sigmoid, "1 / (1 + exp(-x))"),
    (Func::IsNan, "x != x"),
    (Func::IsInf, "abs(x) == 1 / 0.0"),
    (Func::Sign, "where(0 < x, 1, where(x < 0, -1, 0))"),
    (Func::SignBit, "copysign(1, x) < 0"),
    (Func::FMax, "where(y != y, x, where(x != x, y, max(x, y)))"),
    (Func::FMin, "where(y != y, x, where(x != x, y, min(x, y)))"),
    (Func::TruncDiv, "trunc(x / y)"),
    (Func::Remainder, "m = fmod(x, y); where(m != 0 && (y < 0) != (m < 0), m + y, m)"),
    (
        Func::FloorDiv,
        "m = fmod(x, y); q = (x - m) / y; d = where(m != 0 && (y < 0) != (m < 0), q - 1, q); f = floor(d); \
         where(y == 0, x / y, where(d != 0, where(d - f > 0.5, f + 1, f), copysign(0, x / y)))",
    ),
];

/// One of [`COMPOSED`] over these operands. Equal parts become one value in the kernel.
fn composed(f: Func, operands: Vec<KernelExpr>) -> Option<KernelExpr> {
    let (_, text) = COMPOSED.iter().find(|(known, _)| *known == f)?;
    over(text, &["x", "y"][..f.arity()], &operands)
}

/// The expression of a text whose names stand for these.
fn over(text: &str, names: &[&str], operands: &[KernelExpr]) -> Option<KernelExpr> {
    let expr = Expr::parse(text, names).ok()?;
    expr.evaluate(
        &mut |i| operands.get(i).cloned().ok_or(()),
        &mut |x, _| Ok(KernelExpr::Number(x)),
        &mut |f, x| match (f, &x[..]) {
            (Func::Where, [c, a, b]) => Ok(KernelExpr::Apply(KernelOp::Select, vec![c.clone(), a.clone(), b.clone()])),
            _ => call(f, x).ok_or(()),
        },
    )
    .ok()
}

/// Whether kernels have this function.
pub(super) fn is_known(f: Func) -> bool {
    let others = [
        Func::Neg,
        Func::Gt,
        Func::Ge,
        Func::And,
        Func::Or,
        Func::Not,
        Func::Where,
        Func::Fma,
        Func::Mul,
        Func::Absent,
    ];
    others.contains(&f) || CODES.iter().any(|c| c.0 == f) || COMPOSED.iter().any(|c| c.0 == f)
}

/// Functions that are operations of kernels.
const CODES: &[(Func, KernelOp)] = &[
    (Func::AMax, KernelOp::AMax),
    (Func::AMin, KernelOp::AMin),
    (Func::Abs, KernelOp::Abs),
    (Func::Add, KernelOp::Add),
    (Func::Ceil, KernelOp::Ceil),
    (Func::CopySign, KernelOp::CopySign),
    (Func::Cos, KernelOp::Cos),
    (Func::Cosh, KernelOp::Cosh),
    (Func::Div, KernelOp::Div),
    (Func::Eq, KernelOp::Eq),
    (Func::Erf, KernelOp::Erf),
    (Func::Exp, KernelOp::Exp),
    (Func::Exp2, KernelOp::Exp2),
    (Func::Expm1, KernelOp::Expm1),
    (Func::Floor, KernelOp::Floor),
    (Func::Fma, KernelOp::Fma),
    (Func::FMod, KernelOp::FMod),
    (Func::Le, KernelOp::Le),
    (Func::Log, KernelOp::Log),
    (Func::Log10, KernelOp::Log10),
    (Func::Log1p, KernelOp::Log1p),
    (Func::Log2, KernelOp::Log2),
    (Func::Lt, KernelOp::Lt),
    (Func::Max, KernelOp::Max),
    (Func::Min, KernelOp::Min),
    (Func::Mul, KernelOp::Mul),
    (Func::Ne, KernelOp::Ne),
    (Func::Pow, KernelOp::Pow),
    (Func::Round, KernelOp::Round),
    (Func::Sin, KernelOp::Sin),
    (Func::Sinh, KernelOp::Sinh),
    (Func::Sqrt, KernelOp::Sqrt),
    (Func::Sub, KernelOp::Sub),
    (Func::Sum, KernelOp::Sum),
    (Func::Tan, KernelOp::Tan),
    (Func::Tanh, KernelOp::Tanh),
    (Func::Trunc, KernelOp::Trunc),
    (Func::BitAnd, KernelOp::And),
    (Func::BitNot, KernelOp::Not),
    (Func::BitOr, KernelOp::Or),
    (Func::BitXor, KernelOp::Xor),
];

/// A comparison of what is known.
fn compared(f: Func, a: f64, b: f64) -> Option<bool> {
    Some(match f {
        Func::Eq => a == b,
        Func::Ne => a != b,
        Func::Lt => a < b,
        Func::Le => a <= b,
        Func::Gt => a > b,
        Func::Ge => a >= b,
        Func::And => a != 0.0 && b != 0.0,
        Func::Or => a != 0.0 || b != 0.0,
        _ => return None,
    })
}

/// An expression as a condition that bits can be taken of.
fn truth(x: KernelExpr) -> KernelExpr {
    match &x {
        KernelExpr::Apply(
            KernelOp::Eq | KernelOp::Ne | KernelOp::Lt | KernelOp::Le | KernelOp::And | KernelOp::Or,
            _,
        ) => x,
        _ => KernelExpr::Apply(KernelOp::Ne, vec![x, KernelExpr::Number(0.0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Known::*, *};

    fn of(name: &str, known: &[Known]) -> Option<Vec<KernelExpr>> {
        parse(table::find(name).expect(name), known)
    }

    /// `a`, `b` and so on are arguments, in the schema's order.
    fn of_letters(text: &str) -> KernelExpr {
        let operands: Vec<KernelExpr> = (0..5).map(KernelExpr::Argument).collect();
        over(text, &["a", "b", "c", "d", "e"], &operands).expect(text)
    }

    #[test]
    fn what_is_known_is_put_in() {
        for (name, known, text) in [
            ("aten::hardtanh", &[][..], "min(c, max(b, a))"),
            ("aten::clamp", &[], "min(c, max(b, a))"),
            (
                "aten::clamp",
                &[Nothing, Absent, Nothing],
                if ltc_torch_sys::nan_bound_holds() { "min(c, a)" } else { "where(c < a, c, a)" },
            ),
            ("aten::clamp.Tensor", &[Nothing, Nothing, Absent], "max(a, b)"),
            ("aten::gelu", &[Nothing, Is(0)], "a * 0.5 * (1 + erf(a * 0.7071067811865476))"),
            ("aten::sigmoid", &[], "1 / (1 + exp(-a))"),
            ("aten::logical_and", &[], "a != 0 && b != 0"),
            ("aten::ge.Scalar", &[], "a >= b"),
            ("aten::leaky_relu_backward", &[Nothing, Nothing, Nothing, Is(0)], "where(b > 0, a, a * c)"),
            ("aten::mse_loss", &[Nothing, Nothing, Is(2)], "d = a - b; sum(d * d)"),
            ("aten::_softmax", &[Nothing, Nothing, Is(0)], "e = exp(a - amax(a)); e / sum(e)"),
        ] {
            assert_eq!(of(name, known), Some(vec![of_letters(text)]), "{name} {known:?}");
        }
        let product = KernelExpr::Apply(
            KernelOp::Fma,
            vec![KernelExpr::Argument(1), KernelExpr::One(2), KernelExpr::Argument(0)],
        );
        assert_eq!(of("aten::add.Tensor", &[]), Some(vec![product]));
        assert!(of("aten::addcdiv", &[]).is_some_and(|f| f[0].takes_one(3)));
        assert_eq!(of("aten::lgamma", &[]), None);
        // A loss of each element reduces nothing, and nobody computes single precision of halves here.
        assert_eq!(
            (of("aten::mse_loss", &[Nothing, Nothing, Is(0)]), of("aten::_softmax", &[Nothing, Nothing, Is(1)])),
            (None, None)
        );
    }

    #[test]
    fn written_arguments_come_first_where_they_are() {
        let mut known = [Nothing, Absent, Absent, Nothing, Nothing, Is(1)];
        assert_eq!(of("aten::native_batch_norm", &known).map(|f| f.len()), Some(5));
        (known[3], known[4]) = (Absent, Absent);
        assert_eq!(of("aten::native_batch_norm", &known).map(|f| f.len()), Some(3));
        assert_eq!(of("aten::native_batch_norm", &[Nothing, Absent, Absent, Absent, Absent, Is(0)]), None);
    }

    #[test]
    fn functions_of_kernels_are_known() {
        assert!(COMPOSED.iter().all(|(f, text)| {
            over(text, &["x", "y"][..f.arity()], &[KernelExpr::Argument(0), KernelExpr::Argument(1)]).is_some()
        }));
        assert!(is_known(Func::Sin) && is_known(Func::FloorDiv) && !is_known(Func::Lgamma));
    }
}
