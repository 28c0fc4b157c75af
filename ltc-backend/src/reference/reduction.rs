//! Operators that reduce dimensions, by the expressions of the operator table: a row is enough.

use ltc_ir::{
    Arg, Expr, Func, Scalar,
    table::{Over, Row},
};
use ndarray::{ArrayD, Axis};

use super::{
    Answer, Kernel, argument,
    pointwise::{self, V},
    value::{Data, shape},
};

/// What a row's operator computes.
pub(super) struct Reduction {
    over: Over,
    when: Option<Expr>,
    /// Arguments that are written, by position, and what to.
    writes: Vec<(usize, Expr)>,
    results: Vec<Expr>,
}

impl Reduction {
    /// Of this row, if it says that it reduces, by functions that this backend has.
    pub(super) fn of(row: &Row) -> Option<Reduction> {
        let reduce = row.reduce?;
        let names: Vec<&str> = row.arguments.iter().map(|a| a.name).collect();
        let parse = |text: &&str| Expr::parse(text, &names).ok().filter(|e| pointwise::missing(e).is_none());
        Some(Reduction {
            over: reduce.over,
            when: match reduce.when {
                Some(text) => Some(parse(&text)?),
                None => None,
            },
            writes: reduce.writes.iter().map(|(at, text)| Some((*at, parse(text)?))).collect::<Option<_>>()?,
            results: reduce.results.iter().map(parse).collect::<Option<_>>()?,
        })
    }

    /// New values of the arguments that are written and there, then the results; `None` if the row's expressions are
    /// not what this call computes.
    pub(super) fn run(&self, k: &Kernel<'_>) -> Option<Answer> {
        let rank = k.need(0).map(|x| x.data.sizes().len());
        let lanes = match rank.and_then(|rank| self.reduced(k, rank)) {
            Ok(reduced) => Lanes { reduced, channels: matches!(self.over, Over::Channels) },
            Err(e) => return Some(Err(e)),
        };
        if let Some(when) = &self.when {
            match lanes.evaluate(k, when).map(|v| v.into_data().floats().iter().any(|&x| x != 0.0)) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
        let writes = self.writes.iter().filter(|(at, _)| k.operand(*at).is_some()).map(|(_, e)| e);
        let all = writes.chain(&self.results).zip(k.results);
        Some(all.map(|(e, layout)| lanes.result(k, e, layout.sizes())).collect())
    }

    /// Which dimensions are reduced.
    fn reduced(&self, k: &Kernel<'_>, rank: usize) -> Result<Vec<bool>, String> {
        let mut reduced = vec![false; rank];
        let listed = match self.over {
            Over::All => None,
            Over::Channels => Some((0..rank as i64).filter(|&d| d != 1).collect()),
            Over::Dim(at) => Some(vec![k.call.int(at, 0)]),
            Over::Dims(at) => k.call.ints(at).filter(|dims| !dims.is_empty()).map(|dims| dims.to_vec()),
            Over::Last(at) => match k.call.args.get(at) {
                Some(Arg::Ints(sizes)) => Some((-(sizes.len() as i64)..0).collect()),
                _ => return Err(format!("argument {at} must be a list")),
            },
        };
        let Some(listed) = listed else { return Ok(vec![true; rank]) };
        for d in listed {
            let d = ltc_ir::rules::wrap_dim(d, rank).map_err(|e| e.to_string())?;
            // A tensor of no dimensions may be asked to reduce its last one.
            reduced.get_mut(d).into_iter().for_each(|r| *r = true);
        }
        Ok(reduced)
    }
}

/// The elements that are reduced to one, over the first operand.
struct Lanes {
    reduced: Vec<bool>,
    channels: bool,
}

impl Lanes {
    fn evaluate(&self, k: &Kernel<'_>, e: &Expr) -> Result<V, String> {
        let kinds = ltc_ir::table::find(k.call.op).map(|row| row.arguments).unwrap_or_default();
        let number = |x: f64, integer| Ok(V::Number(if integer { Scalar::Int(x as i64) } else { Scalar::Float(x) }));
        let input = |i: usize| Ok(self.placed(k, argument(k, i, kinds[i].kind)));
        let whole = k.need(0)?.data.sizes();
        let apply = |f: Func, operands: Vec<V>| match (f, &operands[..]) {
            (Func::Count, _) => {
                let sizes = whole.iter().zip(&self.reduced).filter(|(_, reduced)| **reduced);
                Ok(V::Number(Scalar::Int(sizes.map(|(size, _)| *size).product())))
            }
            (Func::Sum | Func::AMax | Func::AMin, [x]) => Ok(V::Array(self.reduce(f, x.clone().into_data()))),
            _ => pointwise::apply(f, &operands),
        };
        e.evaluate(&mut { input }, &mut { number }, &mut { apply })
    }

    /// An operand as it meets the first one: of the channels, along them.
    fn placed(&self, k: &Kernel<'_>, v: V) -> V {
        let rank = self.reduced.len();
        let along = |a: ArrayD<f64>| {
            let sizes: Vec<usize> = (0..rank).map(|d| if d == 1 { a.len() } else { 1 }).collect();
            a.to_shape(sizes).map(|a| a.to_owned()).unwrap_or(a)
        };
        match v {
            V::Array(data) if self.channels && data.sizes().len() == 1 && rank > 1 => {
                V::Array(Data::Float(along(data.floats())))
            }
            // Sums in another dtype read the operand in it.
            V::Array(Data::Float(a)) if !k.results[0].dtype().is_floating() => {
                V::Array(Data::Int(a.mapv(|x| x as i64)))
            }
            v => v,
        }
    }

    /// One element for each lane; reduced dimensions have size one.
    fn reduce(&self, f: Func, data: Data) -> Data {
        match data {
            Data::Int(a) if f == Func::Sum => Data::Int(self.fold(a, 0, |a, b| a.wrapping_add(b))),
            Data::Int(a) if f == Func::AMax => Data::Int(self.fold(a, i64::MIN, i64::max)),
            Data::Int(a) => Data::Int(self.fold(a, i64::MAX, i64::min)),
            data => {
                let nan_or = |pick: fn(f64, f64) -> f64| {
                    move |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { pick(a, b) }
                };
                Data::Float(match f {
                    Func::Sum => self.fold(data.floats(), 0.0, |a, b| a + b),
                    Func::AMax => self.fold(data.floats(), f64::NEG_INFINITY, nan_or(f64::max)),
                    _ => self.fold(data.floats(), f64::INFINITY, nan_or(f64::min)),
                })
            }
        }
    }

    fn fold<T: Copy>(&self, mut a: ArrayD<T>, start: T, f: impl Fn(T, T) -> T) -> ArrayD<T> {
        for d in (0..a.ndim()).filter(|&d| self.reduced[d]) {
            a = a.fold_axis(Axis(d), start, |&a, &b| f(a, b)).insert_axis(Axis(d));
        }
        // Of no dimensions, one element is all there is.
        if a.ndim() == 0 { a.mapv(|x| f(start, x)) } else { a }
    }

    /// An expression's value with a result's sizes: without the dimensions that were reduced, if they are not kept.
    fn result(&self, k: &Kernel<'_>, e: &Expr, sizes: &[i64]) -> Result<Data, String> {
        let data = self.evaluate(k, e)?.into_data();
        let wanted = shape(sizes);
        let found = data.sizes();
        let fits = |a: &ArrayD<f64>| {
            let reshaped = a.to_shape(wanted.clone()).map(|a| a.to_owned());
            reshaped.ok().or_else(|| a.broadcast(wanted.clone()).map(|a| a.to_owned()))
        };
        let data = match data {
            Data::Int(a) => a.to_shape(wanted.clone()).map(|a| Data::Int(a.to_owned())).ok(),
            data => fits(&data.floats()).map(Data::Float),
        };
        data.ok_or_else(|| format!("a result of sizes {found:?} where {sizes:?} were recorded"))
    }
}
