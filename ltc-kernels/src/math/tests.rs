//! How far functions are from the exact value, and what they make of special ones.
#![allow(clippy::excessive_precision, reason = "numbers as they are")]

use super::*;

macro_rules! functions {
    ($($name:ident)*) => {$(
        fn $name<const F: bool>(x: f32) -> f32 {
            f32::from_bits(super::$name(&One::<F>, x.to_bits()))
        }
    )*};
}
functions! { exp exp2 expm1 log log2 log10 log1p tanh sinh cosh erf sin cos tan round_bf16 }

/// Distance in units of the last place of the exact value, over values spread evenly over all floats in the range.
fn worst(f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64, low: f32, high: f32) -> f64 {
    let (from, to) = (low.to_bits(), high.to_bits());
    let step = ((to - from) / 400_000).max(1) as usize;
    let one = |x: f32| {
        let e = exact(f64::from(x));
        let ulp = f64::from(f32::from_bits((e.abs() as f32).to_bits() + 1)) - f64::from(e.abs() as f32);
        (f64::from(f(x)) - e).abs() / ulp
    };
    (from..to).step_by(step).flat_map(|b| [f32::from_bits(b), -f32::from_bits(b)]).map(one).fold(0.0, f64::max)
}

#[test]
fn functions_are_within_two_last_places() {
    let exp = worst(exp::<true>, f64::exp, 1e-30, 87.0);
    let log = worst(|x| log::<true>(x.abs()), |x| x.abs().ln(), 1e-44, 3e38);
    let tanh = worst(tanh::<true>, f64::tanh, 1e-30, 20.0);
    assert!(exp < 1.5 && log < 1.5 && tanh < 2.0, "{exp} {log} {tanh}");
    let all: [(&str, f64); 9] = [
        ("exp2", worst(exp2::<true>, f64::exp2, 1e-30, 127.5)),
        ("expm1", worst(expm1::<true>, f64::exp_m1, 1e-30, 88.7)),
        ("log2", worst(|x| log2::<true>(x.abs()), |x| x.abs().log2(), 1e-44, 3e38)),
        ("log10", worst(|x| log10::<true>(x.abs()), |x| x.abs().log10(), 1e-44, 3e38)),
        (
            "log1p",
            worst(log1p::<true>, f64::ln_1p, 1e-30, 0.999_999).max(worst(
                |x| log1p::<true>(x.abs()),
                |x| x.abs().ln_1p(),
                0.5,
                3e38,
            )),
        ),
        ("sinh", worst(sinh::<true>, f64::sinh, 1e-30, 89.0)),
        ("cosh", worst(cosh::<true>, f64::cosh, 1e-30, 89.0)),
        ("sin", worst(sin::<true>, f64::sin, 1e-30, MOST_RADIANS)),
        ("cos", worst(cos::<true>, f64::cos, 1e-30, MOST_RADIANS)),
    ];
    let tan = worst(tan::<true>, f64::tan, 1e-30, MOST_RADIANS);
    assert!(all.iter().all(|f| f.1 < 2.0) && tan < 3.5, "{all:?} {tan}");
}

/// Over floats of all sizes, not only those near which something is expected to happen.
#[test]
fn functions_are_finite_where_the_exact_value_is() {
    type Function = (&'static str, [fn(f32) -> f32; 2], fn(f64) -> f64);
    let all: [Function; 11] = [
        ("exp", [exp::<true>, exp::<false>], f64::exp),
        ("exp2", [exp2::<true>, exp2::<false>], f64::exp2),
        ("expm1", [expm1::<true>, expm1::<false>], f64::exp_m1),
        ("log", [log::<true>, log::<false>], f64::ln),
        ("log2", [log2::<true>, log2::<false>], f64::log2),
        ("log10", [log10::<true>, log10::<false>], f64::log10),
        ("log1p", [log1p::<true>, log1p::<false>], f64::ln_1p),
        ("tanh", [tanh::<true>, tanh::<false>], f64::tanh),
        ("sinh", [sinh::<true>, sinh::<false>], f64::sinh),
        ("cosh", [cosh::<true>, cosh::<false>], f64::cosh),
        ("erf", [erf::<true>, erf::<false>], |x| if x.is_nan() { x } else { x.clamp(-1.0, 1.0) }),
    ];
    for (name, both, exact) in all {
        for x in (0..=u32::MAX >> 10).flat_map(|b| [b << 10, (b << 10) | 0x3ff]).map(f32::from_bits) {
            let e = exact(f64::from(x));
            let at_the_end = (e.abs() / f64::from(f32::MAX) - 1.0).abs() < 1e-6;
            let kind = |y: f32| (y.is_nan(), y.is_infinite() && !at_the_end);
            for f in both {
                assert_eq!(kind(f(x)), kind(e as f32), "{name}({x:e}) is {}, not {e}", f(x));
            }
        }
    }
}

#[test]
fn remainders_are_exact() {
    let f = |x: f32, y: f32| f32::from_bits(fmod(&One::<true>, x.to_bits(), y.to_bits()));
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    };
    let mut tried = 0;
    for i in 0..2_000_000u32 {
        // Numbers of all sizes, and those whose quotient is nearly whole.
        let (x, y) = (f32::from_bits(next()), f32::from_bits(next()));
        let x = if i % 3 == 0 { (y * (next() >> 12) as f32).next_down() } else { x };
        if x.is_nan() || y.is_nan() || y.is_infinite() || (x / y).is_nan() || (x / y).abs() > MOST_QUOTIENT {
            continue;
        }
        tried += 1;
        assert_eq!(f(x, y).to_bits(), (x % y).to_bits(), "{x:e} % {y:e}");
    }
    assert!(tried > 500_000, "{tried}");
    assert!(f(0.0, 0.0).is_nan() && f(-0.0, 2.0).to_bits() == SIGN && f(6.0, -3.0).to_bits() == 0);
}

#[test]
fn special_values() {
    for f in [exp::<true>, log::<true>, tanh::<true>, erf::<true>, exp::<false>, log::<false>] {
        assert!(f(f32::NAN).is_nan());
    }
    assert_eq!((exp::<true>(f32::INFINITY), exp::<true>(f32::NEG_INFINITY)), (f32::INFINITY, 0.0));
    assert_eq!((exp::<true>(0.0), exp::<true>(-100.0)), (1.0, (-100f64).exp() as f32));
    assert_eq!((log::<true>(0.0), log::<true>(f32::INFINITY)), (f32::NEG_INFINITY, f32::INFINITY));
    assert_eq!((log::<true>(1.0), log::<true>(-1.0).is_nan()), (0.0, true));
    assert_eq!((tanh::<true>(f32::INFINITY), tanh::<true>(-90.0)), (1.0, -1.0));
    for f in [tanh::<true>, expm1::<true>, log1p::<true>, sinh::<true>, sin::<true>, tan::<true>] {
        assert_eq!((f(-0.0).to_bits(), f(0.0).to_bits()), (SIGN, 0));
        assert!(f(f32::NAN).is_nan());
    }
    for f in [sin::<true>, cos::<true>, tan::<true>] {
        assert!(f(f32::INFINITY).is_nan());
    }
    assert_eq!((log1p::<true>(-1.0), log1p::<true>(f32::INFINITY)), (f32::NEG_INFINITY, f32::INFINITY));
    assert!(log1p::<true>(-1.5).is_nan() && log2::<true>(-1.0).is_nan());
    assert_eq!((expm1::<true>(f32::NEG_INFINITY), expm1::<true>(89.0)), (-1.0, f32::INFINITY));
    assert_eq!((exp2::<true>(-149.0), exp2::<true>(128.0), exp2::<true>(3.0)), (1e-45, f32::INFINITY, 8.0));
    assert_eq!((log2::<true>(8.0), log10::<true>(1000.0), cosh::<true>(0.0)), (3.0, 3.0, 1.0));
    assert_eq!((sinh::<true>(90.0), cosh::<true>(-90.0)), (f32::INFINITY, f32::INFINITY));
    assert_eq!((erf::<true>(f32::INFINITY), erf::<true>(-5.0)), (1.0, -1.0));
    assert_eq!((round_bf16::<true>(1.003_906_3), round_bf16::<true>(1.011_718_8)), (1.0, 1.015_625));
    assert!(round_bf16::<true>(f32::from_bits(0x7f80_0001)).is_nan());
}

#[test]
fn powers_are_those_of_c_within_two_last_places() {
    let f = |x: f32, y: f32| f32::from_bits(pow(&One::<true>, x.to_bits(), y.to_bits()));
    let ends = [0.0, 1e-45, 1e-38, 0.5, 1.0, 1.5, 2.0, 3.0, 16_777_215.0, 16_777_217.0, 3e38, f32::INFINITY, f32::NAN];
    let ends: Vec<f32> = ends.into_iter().flat_map(|x| [x, -x]).collect();
    for (&x, &y) in ends.iter().flat_map(|x| ends.iter().map(move |y| (x, y))) {
        let (found, expected) = (f(x, y), f64::from(x).powf(f64::from(y)) as f32);
        let kind = |x: f32| (x.is_nan(), x.is_infinite(), x == 0.0, !x.is_nan() && x.is_sign_negative());
        assert_eq!(kind(found), kind(expected), "{x:e} to the power {y:e} is {found:e}, not {expected:e}");
    }
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    };
    let mut worst = (0f64, 0.0, 0.0);
    for i in 0..2_000_000u32 {
        // Of numbers of all sizes and near one, with results of all sizes.
        let x = if i % 2 == 0 { f32::from_bits(next() >> 1) } else { 1.0 + (next() as i32 as f32) / 4e9 };
        let y = ((next() as i32 as f64) / f64::from(i32::MAX) * 126.0 / f64::from(x).log2()) as f32;
        let exact = f64::from(x).powf(f64::from(y));
        if !exact.is_normal() || exact.abs() > 3e38 || exact.abs() < 2e-38 || !y.is_finite() {
            continue;
        }
        let ulp = f64::from(f32::from_bits((exact as f32).to_bits() + 1)) - f64::from(exact as f32);
        let error = (f64::from(f(x, y)) - exact).abs() / ulp;
        worst = if error > worst.0 { (error, x, y) } else { worst };
    }
    assert!(worst.0 < 2.0, "{worst:?}");
}
