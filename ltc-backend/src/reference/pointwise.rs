//! Pointwise operators, by the scalar expressions of the operator table.

use ltc_ir::{Expr, Func, Scalar};
use ndarray::{ArrayD, Zip};

use super::value::{Data, Element};

/// A value of an expression: an array, or a number that broadcasts.
#[derive(Clone, Debug)]
pub(crate) enum V {
    Array(Data),
    Number(Scalar),
    Absent,
}

impl V {
    fn is_int(&self) -> bool {
        matches!(self, V::Array(Data::Int(_)) | V::Number(Scalar::Int(_) | Scalar::Bool(_)))
    }

    fn floats(&self) -> ArrayD<f64> {
        match self {
            V::Array(d) => d.floats(),
            V::Number(n) => ndarray::arr0(f64::number(*n)).into_dyn(),
            V::Absent => ndarray::arr0(f64::NAN).into_dyn(),
        }
    }

    fn ints(&self) -> ArrayD<i64> {
        match self {
            V::Array(d) => d.ints(),
            V::Number(Scalar::Int(i)) => ndarray::arr0(*i).into_dyn(),
            V::Number(n) => ndarray::arr0(f64::number(*n) as i64).into_dyn(),
            V::Absent => ndarray::arr0(0).into_dyn(),
        }
    }

    pub(crate) fn into_data(self) -> Data {
        match self {
            V::Array(d) => d,
            v if v.is_int() => Data::Int(v.ints()),
            v => Data::Float(v.floats()),
        }
    }
}

/// A function of both operands' elements, over the sizes they broadcast to.
pub(super) fn together<A: Clone, B: Clone, R>(
    a: &ArrayD<A>,
    b: &ArrayD<B>,
    f: impl Fn(&A, &B) -> R,
) -> Result<ArrayD<R>, String> {
    let n = a.ndim().max(b.ndim());
    let at = |s: &[usize], d: usize| if d + s.len() < n { 1 } else { s[d + s.len() - n] };
    let sizes: Vec<usize> = (0..n)
        .map(|d| match (at(a.shape(), d), at(b.shape(), d)) {
            (1, y) => y,
            (x, _) => x,
        })
        .collect();
    match (a.broadcast(sizes.clone()), b.broadcast(sizes)) {
        (Some(a), Some(b)) => Ok(Zip::from(a).and(b).map_collect(f)),
        _ => Err(format!("{:?} and {:?} do not broadcast", a.shape(), b.shape())),
    }
}

/// A function of the expression that this backend does not have.
pub(crate) fn missing(e: &Expr) -> Option<Func> {
    match e {
        Expr::Number(..) | Expr::Input(_) => None,
        Expr::Call(f, operands) => {
            let has = comparison(*f).is_some() || unary(*f).is_some() || binary(*f).is_some() || of_ints(*f).is_some();
            let special = matches!(
                f,
                Func::Absent
                    | Func::Fma
                    | Func::Where
                    | Func::And
                    | Func::Or
                    | Func::Not
                    | Func::IsNan
                    | Func::IsInf
                    | Func::SignBit
            ) || f.reduces();
            if has || special { operands.iter().find_map(missing) } else { Some(*f) }
        }
    }
}

/// `f` of values, elementwise.
pub(crate) fn apply(f: Func, v: &[V]) -> Result<V, String> {
    match (f, v) {
        (Func::Absent, [x]) => return Ok(V::Number(Scalar::Bool(matches!(x, V::Absent)))),
        (Func::Where, [V::Number(c), yes, no]) => {
            return Ok(if f64::number(*c) != 0.0 { yes.clone() } else { no.clone() });
        }
        (Func::Where, [c, yes, no]) => return choose(&c.floats(), yes, no),
        (Func::Or, [V::Number(c), yes]) if f64::number(*c) == 0.0 => return Ok(yes.clone()),
        (Func::Or, [c @ V::Number(_), V::Absent]) => return Ok(c.clone()),
        (Func::And | Func::Or, [_, _]) => {}
        _ if v.iter().any(|x| matches!(x, V::Absent)) => return Ok(V::Absent),
        _ => {}
    }
    let truth = |b: ArrayD<bool>| V::Array(Data::Int(b.mapv(i64::from)));
    if let Some(compare) = comparison(f) {
        return Ok(truth(if v.iter().all(V::is_int) {
            together(&v[0].ints(), &v[1].ints(), |x, y| compare(x.partial_cmp(y)))?
        } else {
            together(&v[0].floats(), &v[1].floats(), |x, y| compare(x.partial_cmp(y)))?
        }));
    }
    match f {
        Func::And => return Ok(truth(together(&v[0].floats(), &v[1].floats(), |x, y| *x != 0.0 && *y != 0.0)?)),
        Func::Or => return Ok(truth(together(&v[0].floats(), &v[1].floats(), |x, y| *x != 0.0 || *y != 0.0)?)),
        Func::Not => return Ok(truth(v[0].floats().mapv(|x| x == 0.0))),
        Func::IsNan => return Ok(truth(v[0].floats().mapv(f64::is_nan))),
        Func::IsInf => return Ok(truth(v[0].floats().mapv(f64::is_infinite))),
        Func::SignBit => return Ok(truth(v[0].floats().mapv(f64::is_sign_negative))),
        // One rounding more in double precision is none in what results are rounded to.
        Func::Fma => return apply(Func::Add, &[apply(Func::Mul, &v[..2])?, v[2].clone()]),
        _ => {}
    }
    if v.iter().all(V::is_int)
        && let Some(int) = of_ints(f)
    {
        let a = v[0].ints();
        let b = v.get(1).map_or_else(|| ndarray::arr0(0).into_dyn(), V::ints);
        return Ok(V::Array(Data::Int(together(&a, &b, |x, y| int(*x, *y))?)));
    }
    if f.arity() == 1 {
        let unary = unary(f).ok_or_else(|| format!("the reference backend has no {}", f.name()))?;
        return Ok(V::Array(Data::Float(v[0].floats().mapv(unary))));
    }
    let binary = binary(f).ok_or_else(|| format!("the reference backend has no {}", f.name()))?;
    Ok(V::Array(Data::Float(together(&v[0].floats(), &v[1].floats(), |x, y| binary(*x, *y))?)))
}

fn choose(c: &ArrayD<f64>, yes: &V, no: &V) -> Result<V, String> {
    if yes.is_int() && no.is_int() {
        let both = together(&yes.ints(), &no.ints(), |x, y| (*x, *y))?;
        return Ok(V::Array(Data::Int(together(c, &both, |c, (x, y)| if *c != 0.0 { *x } else { *y })?)));
    }
    let both = together(&yes.floats(), &no.floats(), |x, y| (*x, *y))?;
    Ok(V::Array(Data::Float(together(c, &both, |c, (x, y)| if *c != 0.0 { *x } else { *y })?)))
}

fn comparison(f: Func) -> Option<fn(Option<std::cmp::Ordering>) -> bool> {
    Some(match f {
        Func::Lt => |o| o.is_some_and(std::cmp::Ordering::is_lt),
        Func::Le => |o| o.is_some_and(std::cmp::Ordering::is_le),
        Func::Gt => |o| o.is_some_and(std::cmp::Ordering::is_gt),
        Func::Ge => |o| o.is_some_and(std::cmp::Ordering::is_ge),
        Func::Eq => |o| o.is_some_and(std::cmp::Ordering::is_eq),
        Func::Ne => |o| o.is_none_or(std::cmp::Ordering::is_ne),
        _ => return None,
    })
}

/// Functions that stay among integers; unary ones ignore the second.
fn of_ints(f: Func) -> Option<fn(i64, i64) -> i64> {
    Some(match f {
        Func::Add => i64::wrapping_add,
        Func::Sub => i64::wrapping_sub,
        Func::Mul => i64::wrapping_mul,
        Func::Neg => |x, _| x.wrapping_neg(),
        Func::Max | Func::FMax => i64::max,
        Func::Min | Func::FMin => i64::min,
        Func::Abs => |x, _| x.wrapping_abs(),
        Func::Sign => |x, _| x.signum(),
        Func::Ceil | Func::Floor | Func::Round | Func::Trunc => |x, _| x,
        Func::BitAnd => |x, y| x & y,
        Func::BitOr => |x, y| x | y,
        Func::BitXor => |x, y| x ^ y,
        Func::BitNot => |x, _| !x,
        Func::Shl => |x, y| x.wrapping_shl(y as u32),
        Func::Shr => |x, y| x.wrapping_shr(y as u32),
        Func::FloorDiv => |x, y| {
            let rest = if y == 0 { 0 } else { x.wrapping_rem_euclid(y) };
            if y == 0 { 0 } else { x.wrapping_div_euclid(y) - i64::from(y < 0 && rest != 0) }
        },
        Func::TruncDiv => |x, y| if y == 0 { 0 } else { x.wrapping_div(y) },
        Func::Remainder => |x, y| {
            if y == 0 {
                return 0;
            }
            let r = x.wrapping_rem(y);
            if r != 0 && (r < 0) != (y < 0) { r + y } else { r }
        },
        Func::FMod => |x, y| if y == 0 { 0 } else { x.wrapping_rem(y) },
        Func::Gcd => gcd,
        Func::Lcm => |x, y| if x == 0 || y == 0 { 0 } else { (x / gcd(x, y)).wrapping_mul(y).wrapping_abs() },
        Func::Pow => |x, y| u32::try_from(y).map_or(0, |y| x.wrapping_pow(y)),
        _ => return None,
    })
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a.wrapping_abs()
}

fn unary(f: Func) -> Option<fn(f64) -> f64> {
    Some(match f {
        Func::Neg => |x| -x,
        Func::Abs => f64::abs,
        Func::Sign => |x| if x == 0.0 { 0.0 } else { x.signum() },
        Func::Ceil => f64::ceil,
        Func::Floor => f64::floor,
        Func::Round => f64::round_ties_even,
        Func::Trunc => f64::trunc,
        Func::Sqrt => f64::sqrt,
        Func::Rsqrt => |x| 1.0 / x.sqrt(),
        Func::Reciprocal => |x| 1.0 / x,
        Func::Exp => f64::exp,
        Func::Exp2 => f64::exp2,
        Func::Expm1 => f64::exp_m1,
        Func::Log => f64::ln,
        Func::Log2 => f64::log2,
        Func::Log10 => f64::log10,
        Func::Log1p => f64::ln_1p,
        Func::Sin => f64::sin,
        Func::Cos => f64::cos,
        Func::Tan => f64::tan,
        Func::Asin => f64::asin,
        Func::Acos => f64::acos,
        Func::Atan => f64::atan,
        Func::Sinh => f64::sinh,
        Func::Cosh => f64::cosh,
        Func::Tanh => f64::tanh,
        Func::Asinh => f64::asinh,
        Func::Acosh => f64::acosh,
        Func::Atanh => f64::atanh,
        Func::Sigmoid => |x| 1.0 / (1.0 + (-x).exp()),
        Func::Erf => erf,
        Func::Erfc => |x| 1.0 - erf(x),
        Func::Erfinv => erfinv,
        Func::Lgamma => lgamma,
        Func::Digamma => digamma,
        Func::I0 => i0,
        _ => return None,
    })
}

fn binary(f: Func) -> Option<fn(f64, f64) -> f64> {
    Some(match f {
        Func::Add => |x, y| x + y,
        Func::Sub => |x, y| x - y,
        Func::Mul => |x, y| x * y,
        Func::Div => |x, y| x / y,
        Func::Max => |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else { x.max(y) },
        Func::Min => |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else { x.min(y) },
        Func::FMax => f64::max,
        Func::FMin => f64::min,
        Func::Pow => f64::powf,
        Func::Remainder => |x, y| {
            let r = x % y;
            if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
        },
        Func::FMod => |x, y| x % y,
        Func::FloorDiv => |x, y| (x / y).floor(),
        Func::TruncDiv => |x, y| (x / y).trunc(),
        Func::Atan2 => f64::atan2,
        Func::Hypot => f64::hypot,
        Func::CopySign => f64::copysign,
        _ => return None,
    })
}

/// By its series where it converges fast, by the complement's continued fraction elsewhere.
fn erf(x: f64) -> f64 {
    let z = x.abs();
    let value = if z < 3.0 {
        let (mut term, mut sum) = (z, z);
        for n in 1..200 {
            term *= -z * z / f64::from(n);
            let part = term / f64::from(2 * n + 1);
            sum += part;
            if part.abs() < 1e-17 {
                break;
            }
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        let fraction = (1..60).rev().fold(z, |f, k| z + f64::from(k) / 2.0 / f);
        1.0 - (-z * z).exp() / (fraction * std::f64::consts::PI.sqrt())
    };
    if x.is_nan() { x } else { value.copysign(x) }
}

/// By Newton's method on [`erf`].
fn erfinv(y: f64) -> f64 {
    if y.abs() >= 1.0 {
        return if y.abs() == 1.0 { f64::INFINITY.copysign(y) } else { f64::NAN };
    }
    let l = (1.0 - y * y).ln();
    let a = 2.0 / (std::f64::consts::PI * 0.147) + l / 2.0;
    let mut x = ((a * a - l / 0.147).sqrt() - a).sqrt().copysign(y);
    for _ in 0..4 {
        x -= (erf(x) - y) / (std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp());
    }
    x
}

/// By reflection, recurrence and Stirling's series.
fn lgamma(x: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    if x <= 0.0 && x == x.floor() {
        return f64::INFINITY;
    }
    if x < 0.5 {
        return (PI / (PI * x).sin().abs()).ln() - lgamma(1.0 - x);
    }
    let (mut z, mut shift) = (x, 0.0);
    while z < 15.0 {
        shift += z.ln();
        z += 1.0;
    }
    let r = 1.0 / (z * z);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r / 1680.0))) / z;
    (z - 0.5) * z.ln() - z + 0.5 * TAU.ln() + series - shift
}

/// By reflection, recurrence and its asymptotic series.
fn digamma(x: f64) -> f64 {
    use std::f64::consts::PI;
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        return if x == x.floor() { f64::NAN } else { digamma(1.0 - x) - PI / (PI * x.fract()).tan() };
    }
    let (mut z, mut sum) = (x, 0.0);
    while z < 15.0 {
        sum -= 1.0 / z;
        z += 1.0;
    }
    let r = 1.0 / (z * z);
    sum + z.ln() - 0.5 / z - r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r / 240.0)))
}

/// By its power series.
fn i0(x: f64) -> f64 {
    let q = x * x / 4.0;
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..500 {
        term *= q / f64::from(n * n);
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_functions_are_exact_to_many_digits() {
        for (x, y) in [(0.0, 0.0), (0.5, 0.5204998778130465), (1.0, 0.8427007929497149), (4.0, 0.9999999845827421)] {
            assert!((erf(x) - y).abs() < 1e-15 && (erf(-x) + y).abs() < 1e-15, "{x}");
            assert!(x > 3.0 || (erfinv(y) - x).abs() < 1e-12, "{x}");
        }
    }

    #[test]
    fn integer_division_rounds_as_libtorch_does() {
        let floor = of_ints(Func::FloorDiv).expect("an integer function");
        let remainder = of_ints(Func::Remainder).expect("an integer function");
        for (x, y, q, r) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -3, -2, 0)] {
            assert_eq!((floor(x, y), remainder(x, y)), (q, r), "{x} / {y}");
        }
    }
}
