//! Tensors from numbers and draws.

use ltc_ir::{Layout, OpCode as O, Scalar};
use ndarray::ArrayD;

use super::{
    Answer, Compute, Kernel, by_result,
    value::{Data, Element, shape},
};

pub(super) fn kernel(code: O) -> Option<Compute> {
    Some(match code {
        O::Full | O::FullLike => by_result!(full, 1),
        O::NewFull => by_result!(full, 2),
        O::Zeros | O::ZerosLike | O::NewZeros | O::EmptyMemoryFormat | O::EmptyLike => {
            |k| Ok(vec![filled(&k.results[0], 0.0)])
        }
        O::Ones | O::OnesLike | O::NewOnes => |k| Ok(vec![filled(&k.results[0], 1.0)]),
        O::ArangeStartStep => by_result!(arange),
        O::Eye | O::EyeM => |k| from_places(k, |p| f64::from(u8::from(p[0] == p[1]))),
        O::Rand => |k| draw(k, |g| g.uniform()),
        O::Randn => |k| draw(k, |g| g.normal()),
        O::RandintLow => randint,
        O::Randperm => randperm,
        O::NativeDropout => dropout,
        _ => return None,
    })
}

pub(super) fn filled(layout: &Layout, x: f64) -> Data {
    Data::Float(ArrayD::from_elem(shape(layout.sizes()), x))
}

fn full<T: Element>(k: &Kernel<'_>, value: usize) -> Answer {
    let value = k.number(value, T::zero());
    Ok(vec![T::data(ArrayD::from_elem(shape(k.results[0].sizes()), value))])
}

fn from_places(k: &Kernel<'_>, f: impl Fn(&[usize]) -> f64) -> Answer {
    let array = ArrayD::from_shape_fn(shape(k.results[0].sizes()), |p| f(ndarray::Dimension::slice(&p)));
    Ok(vec![Data::Float(array)])
}

fn arange<T: Element>(k: &Kernel<'_>) -> Answer {
    let (start, step) = (k.number(0, T::zero()), k.number(2, T::one()));
    let at = |p: ndarray::IxDyn| start + T::number(Scalar::Int(p[0] as i64)) * step;
    Ok(vec![T::data(ArrayD::from_shape_fn(shape(k.results[0].sizes()), at))])
}

/// SplitMix64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Generator(pub(super) u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In `[0, 1)`, exact in single precision too.
    fn uniform(&mut self) -> f64 {
        (self.next() >> 40) as f64 / f64::from(1u32 << 24)
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

fn draw(k: &Kernel<'_>, mut f: impl FnMut(&mut Generator) -> f64) -> Answer {
    let mut g = k.generator()?;
    let array = ArrayD::from_shape_simple_fn(shape(k.results[0].sizes()), || f(&mut g));
    Ok(vec![Data::Float(array), Data::State(g.0)])
}

fn randint(k: &Kernel<'_>) -> Answer {
    let (low, high) = (k.call.int(0, 0), k.call.int(1, 1));
    let mut g = k.generator()?;
    let range = high.wrapping_sub(low).max(1) as u64;
    let mut at = || low.wrapping_add((g.next() % range) as i64);
    let array = ArrayD::from_shape_simple_fn(shape(k.results[0].sizes()), &mut at);
    Ok(vec![Data::Int(array), Data::State(g.0)])
}

fn randperm(k: &Kernel<'_>) -> Answer {
    let mut g = k.generator()?;
    let mut order: Vec<i64> = (0..k.call.int(0, 0)).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, (g.next() % (i as u64 + 1)) as usize);
    }
    Ok(vec![Data::Int(ndarray::Array1::from_vec(order).into_dyn()), Data::State(g.0)])
}

fn dropout(k: &Kernel<'_>) -> Answer {
    let (x, p) = (k.floats(0)?, k.float(1, 0.5));
    let mut g = k.generator()?;
    if k.call.args.get(2) == Some(&ltc_ir::Arg::Bool(false)) {
        let all = x.mapv(|_| 1.0);
        return Ok(vec![Data::Float(x), Data::Float(all), Data::State(g.0)]);
    }
    let keep = x.mapv(|_| f64::from(u8::from(g.uniform() >= p)));
    let scale = if p >= 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    Ok(vec![Data::Float(x * &keep * scale), Data::Float(keep), Data::State(g.0)])
}
