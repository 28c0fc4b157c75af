//! Gradients written in the operator table: expressions over the arguments, `grad` and `result`.

use std::{cell::RefCell, sync::Arc};

use ltc_ir::{Arg, Expr, Func, OpCode, Scalar, ShapeError};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::saved::{Gradients, Saved};
use crate::{Error, LazyTensor};

/// Parsed expressions of an operator.
#[derive(Default)]
struct Exprs {
    /// By argument.
    list: Vec<(usize, Expr)>,
    /// Arguments they take account of, a bit each.
    takes: u64,
}

fn exprs(code: OpCode) -> Arc<Exprs> {
    thread_local! {
        static PARSED: RefCell<FxHashMap<OpCode, Arc<Exprs>>> = RefCell::default();
    }
    PARSED.with_borrow_mut(|all| all.entry(code).or_insert_with(|| Arc::new(parse(code))).clone())
}

fn parse(code: OpCode) -> Exprs {
    let row = code.row();
    let names: Vec<&str> = row.arguments.iter().map(|a| a.name).chain(["grad", "result"]).collect();
    let mut parsed = Exprs::default();
    for (argument, text) in row.gradients {
        // Checked when the table was generated.
        let (Some(at), Ok(expr)) = (names.iter().position(|n| n == argument), Expr::parse(text, &names)) else {
            continue;
        };
        parsed.list.push((at, expr));
    }
    for (i, spec) in row.arguments.iter().enumerate() {
        let named = parsed.list.iter().any(|(at, expr)| *at == i || expr.reads(i));
        if named || row.gradients_without.iter().any(|(name, _)| *name == spec.name) {
            parsed.takes |= 1 << i;
        }
    }
    parsed
}

/// A value of an expression.
#[derive(Clone)]
enum V {
    Tensor(LazyTensor),
    Number(Scalar),
    /// An optional argument that is not there.
    Absent,
}

/// Gradients of the operands of a call.
pub(super) fn gradients(saved: &Saved<'_>) -> Result<Gradients, Error> {
    let mut out = SmallVec::from_elem(None, saved.inputs().len());
    let count = saved.args().len();
    let exprs = exprs(saved.code());
    saved.takes(exprs.takes);
    for (argument, expr) in &exprs.list {
        let operand = saved.args().get(*argument).and_then(|arg| saved.operand_of(arg));
        let Some(operand) = operand.filter(|&o| saved.inputs()[o].requires_grad()) else { continue };
        let input = |i: usize| -> Result<V, Error> {
            match i.checked_sub(count) {
                Some(0) => Ok(V::Tensor(saved.grad(0)?)),
                Some(_) => Ok(V::Tensor(saved.result(0))),
                None => argument_value(saved, i),
            }
        };
        let number =
            |x: f64, integer: bool| Ok(V::Number(if integer { Scalar::Int(x as i64) } else { Scalar::Float(x) }));
        let value = expr.evaluate(&mut { input }, &mut { number }, &mut |f, operands| apply(f, operands))?;
        out[operand] = Some(match value {
            V::Tensor(t) => t,
            V::Number(n) => {
                let like = &saved.inputs()[operand];
                LazyTensor::full(like.device(), like.sizes(), n, like.dtype())?
            }
            V::Absent => continue,
        });
    }
    Ok(out)
}

fn argument_value(saved: &Saved<'_>, i: usize) -> Result<V, Error> {
    Ok(match saved.args()[i] {
        Arg::Tensor { operand: Some(o), .. } => V::Tensor(saved.inputs()[o].clone()),
        Arg::None => V::Absent,
        arg => {
            let row = saved.code().row();
            let (op, name) = (row.name, row.arguments[i].name);
            let no_number = || Error::NoGradient(format!("{op}: a gradient reads `{name}`, which is no number"));
            V::Number(saved.number_of(arg).ok_or_else(no_number)?)
        }
    })
}

fn as_f64(n: Scalar) -> f64 {
    match n {
        Scalar::Bool(b) => f64::from(u8::from(b)),
        Scalar::Int(i) => i as f64,
        Scalar::Float(x) | Scalar::Complex(x, _) => x,
    }
}

/// Numbers among themselves.
fn fold(f: Func, v: &[f64]) -> Option<f64> {
    let truth = |b: bool| f64::from(u8::from(b));
    Some(match f {
        Func::Add => v[0] + v[1],
        Func::Sub => v[0] - v[1],
        Func::Mul => v[0] * v[1],
        Func::Div => v[0] / v[1],
        Func::Neg => -v[0],
        Func::Pow => v[0].powf(v[1]),
        Func::Eq => truth(v[0] == v[1]),
        Func::Ne => truth(v[0] != v[1]),
        Func::Lt => truth(v[0] < v[1]),
        Func::Le => truth(v[0] <= v[1]),
        Func::Gt => truth(v[0] > v[1]),
        Func::Ge => truth(v[0] >= v[1]),
        Func::And => truth(v[0] != 0.0 && v[1] != 0.0),
        Func::Or => truth(v[0] != 0.0 || v[1] != 0.0),
        Func::Not => truth(v[0] == 0.0),
        Func::Where => v[if v[0] != 0.0 { 1 } else { 2 }],
        Func::Abs => v[0].abs(),
        Func::Log => v[0].ln(),
        _ => return None,
    })
}

/// Decisions that an absent argument or a number makes without looking at the other operands.
fn known(f: Func, v: &[V]) -> Option<V> {
    match (f, v) {
        (Func::Where, [V::Number(c), yes, no]) => Some(if as_f64(*c) != 0.0 { yes.clone() } else { no.clone() }),
        (Func::Or, [V::Number(c), other]) if as_f64(*c) == 0.0 => Some(other.clone()),
        (Func::Or, [yes @ V::Number(_), _]) => Some(yes.clone()),
        (Func::And, [V::Number(c), other]) if as_f64(*c) != 0.0 => Some(other.clone()),
        (Func::And, [no @ V::Number(_), _]) => Some(no.clone()),
        (Func::Where, _) => None,
        _ if v.iter().any(|x| matches!(x, V::Absent)) => Some(V::Absent),
        _ => None,
    }
}

fn apply(f: Func, v: Vec<V>) -> Result<V, Error> {
    if f == Func::Absent {
        return Ok(V::Number(Scalar::Int(i64::from(matches!(v[0], V::Absent)))));
    }
    if let Some(known) = known(f, &v) {
        return Ok(known);
    }
    let numbers: Option<Vec<f64>> =
        v.iter().map(|x| if let V::Number(n) = x { Some(as_f64(*n)) } else { None }).collect();
    if let Some(numbers) = numbers {
        let folded = fold(f, &numbers).map(|x| V::Number(Scalar::Float(x)));
        return folded
            .ok_or_else(|| ShapeError::runtime(format!("a gradient computes {} of numbers", f.name())).into());
    }
    apply_tensors(f, &v).map(V::Tensor)
}

/// `f` of operands of which at least one is a tensor.
fn apply_tensors(f: Func, v: &[V]) -> Result<LazyTensor, Error> {
    // The first operand as a tensor, the others as they are.
    let device = v.iter().find_map(|x| if let V::Tensor(t) = x { Some(t.device().clone()) } else { None });
    let device = device.ok_or_else(|| Error::NoGradient("an expression without tensors".into()))?;
    let dtype = v.iter().find_map(|x| if let V::Tensor(t) = x { Some(t.dtype()) } else { None });
    let first = match &v[0] {
        V::Tensor(t) => t.clone(),
        // A number in front of a tensor: most operators have a form that takes it second.
        V::Number(n) => match (f, &v[1]) {
            (Func::Add, V::Tensor(t)) => return t.add(*n),
            (Func::Mul, V::Tensor(t)) => return t.mul(*n),
            (Func::Sub, V::Tensor(t)) => return t.rsub(*n),
            (Func::Max, V::Tensor(t)) => return t.maximum(*n),
            (Func::Min, V::Tensor(t)) => return t.minimum(*n),
            _ => LazyTensor::full(&device, &[], *n, dtype.unwrap_or(ltc_ir::DType::F32))?,
        },
        V::Absent => return Err(Error::NoGradient("an expression reads an absent argument".into())),
    };
    let t = &first;
    let other = |i: usize| match &v[i] {
        V::Tensor(t) => crate::Operand::Tensor(t),
        V::Number(n) => crate::Operand::Number(*n),
        V::Absent => crate::Operand::Number(Scalar::Float(f64::NAN)),
    };
    match f {
        Func::Add => t.add(other(1)),
        Func::Sub => t.sub(other(1)),
        Func::Mul => t.mul(other(1)),
        Func::Div => t.div(other(1)),
        Func::Neg => t.neg(),
        Func::Lt => t.lt(other(1)),
        Func::Le => t.le(other(1)),
        Func::Gt => t.gt(other(1)),
        Func::Ge => t.ge(other(1)),
        Func::Eq => t.eq(other(1)),
        Func::Ne => t.ne(other(1)),
        Func::And => t.logical_and(other(1)),
        Func::Or => t.logical_or(other(1)),
        Func::Not => t.logical_not(),
        Func::Where => t.where_self(other(1), other(2)),
        Func::Max => t.maximum(other(1)),
        Func::Min => t.minimum(other(1)),
        Func::Pow => t.pow(other(1)),
        Func::FloorDiv => t.floor_divide(other(1)),
        Func::TruncDiv => t.div(other(1))?.trunc(),
        Func::Abs => t.abs(),
        Func::Sign => t.sgn(),
        Func::IsNan => t.isnan(),
        Func::Sqrt => t.sqrt(),
        Func::Rsqrt => t.rsqrt(),
        Func::Reciprocal => t.reciprocal(),
        Func::Exp => t.exp(),
        Func::Exp2 => t.exp2(),
        Func::Log => t.log(),
        Func::Log1p => t.log1p(),
        Func::Sin => t.sin(),
        Func::Cos => t.cos(),
        Func::Sinh => t.sinh(),
        Func::Cosh => t.cosh(),
        Func::Tanh => t.tanh(),
        Func::Sigmoid => t.sigmoid(),
        Func::Erf => t.erf(),
        Func::Digamma => t.digamma(),
        _ => Err(Error::NoGradient(format!("an expression uses {}, which has no native operator here", f.name()))),
    }
}
