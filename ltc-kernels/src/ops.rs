//! What operators do to one element, as types, so that loops can be made for each.

use super::math;

/// One operand. `F`: see [`math::fma`].
pub(super) trait Map1<T, U> {
    fn at<const F: bool>(x: T) -> U;

    /// Whether there are operands for which `at` is not right, where `fits` says no and `careful` takes its place.
    const CHECKED: bool = false;

    #[inline(always)]
    fn fits(_: T) -> bool {
        true
    }

    fn careful(x: T) -> U {
        Self::at::<true>(x)
    }
}

/// Two operands; the rest as in [`Map1`].
pub(super) trait Map2<T, U> {
    fn at<const F: bool>(x: T, y: T) -> U;

    const CHECKED: bool = false;

    #[inline(always)]
    fn fits(_: T, _: T) -> bool {
        true
    }

    fn careful(x: T, y: T) -> U {
        Self::at::<true>(x, y)
    }
}

/// Three operands, the first of its own type.
pub(super) trait Map3<A, T> {
    fn at<const F: bool>(a: A, b: T, c: T) -> T;
}

macro_rules! map1 {
    ($($name:ident: $($from:ty => $to:ty),+; |$x:ident| $ir:expr;)*) => {$($(
        impl Map1<$from, $to> for $name {
            #[inline(always)]
            fn at<const F: bool>($x: $from) -> $to { $ir }
        }
    )+)*};
}

macro_rules! map2 {
    ($($name:ident: $($from:ty => $to:ty),+; |$x:ident, $y:ident| $ir:expr;)*) => {$($(
        impl Map2<$from, $to> for $name {
            #[inline(always)]
            fn at<const F: bool>($x: $from, $y: $from) -> $to { $ir }
        }
    )+)*};
}

/// Functions of single precision from [`math`].
macro_rules! functions {
    ($($name:ident $function:ident;)*) => {$(
        impl Map1<f32, f32> for $name {
            #[inline(always)]
            fn at<const F: bool>(x: f32) -> f32 {
                f32::from_bits(math::$function(&math::One::<F>, x.to_bits()))
            }
        }
    )*};
}

/// Those of angles, which are the system's where angles are large, and where products are not fused.
macro_rules! angles {
    ($($name:ident $function:ident;)*) => {$(
        impl Map1<f32, f32> for $name {
            const CHECKED: bool = true;

            #[inline(always)]
            fn at<const F: bool>(x: f32) -> f32 {
                if F { f32::from_bits(math::$function(&math::One::<F>, x.to_bits())) } else { x.$function() }
            }

            #[inline(always)]
            fn fits(x: f32) -> bool {
                x.abs() <= math::MOST_RADIANS
            }

            fn careful(x: f32) -> f32 {
                x.$function()
            }
        }
    )*};
}

functions! {
    Exp exp; Exp2 exp2; Expm1 expm1; Log log; Log2 log2; Log10 log10; Log1p log1p;
    Tanh tanh; Sinh sinh; Cosh cosh; Erf erf; RoundBf16 round_bf16;
}
angles! { Sin sin; Cos cos; Tan tan; }

impl Map2<f32, f32> for FMod {
    const CHECKED: bool = true;

    #[inline(always)]
    fn at<const F: bool>(x: f32, y: f32) -> f32 {
        if F { f32::from_bits(math::fmod(&math::One::<F>, x.to_bits(), y.to_bits())) } else { x % y }
    }

    #[inline(always)]
    fn fits(x: f32, y: f32) -> bool {
        (x / y).abs() < math::MOST_QUOTIENT + 1.0 && y.abs() != f32::INFINITY
    }

    fn careful(x: f32, y: f32) -> f32 {
        x % y
    }
}

impl Map2<f32, f32> for Pow {
    #[inline(always)]
    fn at<const F: bool>(x: f32, y: f32) -> f32 {
        if F { f32::from_bits(math::pow(&math::One::<F>, x.to_bits(), y.to_bits())) } else { x.powf(y) }
    }
}

/// A power, by libtorch's short cuts ([`math::is_short`]) or by `any`.
macro_rules! short_cuts {
    ($x:ident, $y:ident, $any:expr) => {
        match $y {
            0.0 => 1.0,
            1.0 => $x,
            2.0 => $x * $x,
            3.0 => $x * $x * $x,
            0.5 => $x.sqrt(),
            -0.5 => 1.0 / $x.sqrt(),
            -1.0 => 1.0 / $x,
            -2.0 => 1.0 / ($x * $x),
            _ => $any,
        }
    };
}

macro_rules! names {
    ($($name:ident)*) => {$(pub(super) struct $name;)*};
}

names! {
    Copy Neg Abs Not BoolNot Sqrt Floor Ceil Trunc Round Exp Exp2 Expm1 Log Log2 Log10 Log1p Sin Cos Tan Sinh Cosh Tanh
    Erf RoundBf16 RoundF16 FMod CopySign Pow EachPow
    Add Sub Mul Div Max Min And Or Xor Eq Ne Lt Le Fma Select CastTo NonZero
}

map1! {
    Neg: f32 => f32, f64 => f64; |x| -x;
    Neg: i32 => i32, i64 => i64, u8 => u8; |x| x.wrapping_neg();
    Abs: f32 => f32, f64 => f64; |x| x.abs();
    Abs: i32 => i32, i64 => i64; |x| x.wrapping_abs();
    Abs: u8 => u8; |x| x;
    Not: i32 => i32, i64 => i64, u8 => u8; |x| !x;
    BoolNot: u8 => u8; |x| x ^ 1;
    Sqrt: f32 => f32, f64 => f64; |x| x.sqrt();
    Floor: f32 => f32, f64 => f64; |x| x.floor();
    Ceil: f32 => f32, f64 => f64; |x| x.ceil();
    Trunc: f32 => f32, f64 => f64; |x| x.trunc();
    Round: f32 => f32, f64 => f64; |x| x.round_ties_even();
    Exp: f64 => f64; |x| x.exp();
    Exp2: f64 => f64; |x| x.exp2();
    Expm1: f64 => f64; |x| x.exp_m1();
    Log: f64 => f64; |x| x.ln();
    Log2: f64 => f64; |x| x.log2();
    Log10: f64 => f64; |x| x.log10();
    Log1p: f64 => f64; |x| x.ln_1p();
    Sin: f64 => f64; |x| x.sin();
    Cos: f64 => f64; |x| x.cos();
    Tan: f64 => f64; |x| x.tan();
    Sinh: f64 => f64; |x| x.sinh();
    Cosh: f64 => f64; |x| x.cosh();
    Tanh: f64 => f64; |x| x.tanh();
    RoundF16: f32 => f32; |x| math::round_f16(x);
    NonZero: f32 => u8, f64 => u8; |x| u8::from(x != 0.0);
    NonZero: i32 => u8, i64 => u8, u8 => u8; |x| u8::from(x != 0);
    CastTo: u8 => i32, u8 => i64, u8 => f32, u8 => f64, u8 => u8; |x| x as _;
    CastTo: i32 => u8, i32 => i64, i32 => f32, i32 => f64; |x| x as _;
    CastTo: i64 => u8, i64 => i32, i64 => f32, i64 => f64; |x| x as _;
    CastTo: f32 => f32, f64 => f64, i32 => i32, i64 => i64; |x| x;
    CastTo: f32 => f64; |x| f64::from(x);
    CastTo: f64 => f32; |x| x as f32;
    // What x86 gives where the integer cannot hold the number: the most negative one.
    CastTo: f32 => i32, f64 => i32; |x| if x > -2_147_483_904.0 && x < 2_147_483_648.0 { x as i32 } else { i32::MIN };
    CastTo: f32 => i64, f64 => i64; |x| if x.abs() < 9_223_372_036_854_775_808.0 { x as i64 } else { i64::MIN };
    CastTo: f32 => u8, f64 => u8; |x| <CastTo as Map1<_, i32>>::at::<F>(x) as u8;
}

map2! {
    Add: f32 => f32, f64 => f64; |x, y| x + y;
    Add: i32 => i32, i64 => i64, u8 => u8; |x, y| x.wrapping_add(y);
    Sub: f32 => f32, f64 => f64; |x, y| x - y;
    Sub: i32 => i32, i64 => i64, u8 => u8; |x, y| x.wrapping_sub(y);
    Mul: f32 => f32, f64 => f64; |x, y| x * y;
    Mul: i32 => i32, i64 => i64, u8 => u8; |x, y| x.wrapping_mul(y);
    Div: f32 => f32, f64 => f64; |x, y| x / y;
    FMod: f64 => f64; |x, y| x % y;
    Pow: f64 => f64; |x, y| x.powf(y);
    EachPow: f32 => f32, f64 => f64; |x, y| short_cuts!(x, y, <Pow as Map2<_, _>>::at::<F>(x, y));
    CopySign: f32 => f32, f64 => f64; |x, y| x.copysign(y);
    Max: f32 => f32, f64 => f64; |x, y| { let m = if x > y { x } else { y }; if x.is_nan() { x } else { m } };
    Max: i32 => i32, i64 => i64, u8 => u8; |x, y| if x > y { x } else { y };
    Min: f32 => f32, f64 => f64; |x, y| { let m = if x < y { x } else { y }; if x.is_nan() { x } else { m } };
    Min: i32 => i32, i64 => i64, u8 => u8; |x, y| if x < y { x } else { y };
    And: i32 => i32, i64 => i64, u8 => u8; |x, y| x & y;
    Or: i32 => i32, i64 => i64, u8 => u8; |x, y| x | y;
    Xor: i32 => i32, i64 => i64, u8 => u8; |x, y| x ^ y;
    Eq: f32 => u8, f64 => u8, i32 => u8, i64 => u8, u8 => u8; |x, y| u8::from(x == y);
    Ne: f32 => u8, f64 => u8, i32 => u8, i64 => u8, u8 => u8; |x, y| u8::from(x != y);
    Lt: f32 => u8, f64 => u8, i32 => u8, i64 => u8, u8 => u8; |x, y| u8::from(x < y);
    Le: f32 => u8, f64 => u8, i32 => u8, i64 => u8, u8 => u8; |x, y| u8::from(x <= y);
}

impl<T> Map1<T, T> for Copy {
    #[inline(always)]
    fn at<const F: bool>(x: T) -> T {
        x
    }
}

impl Map3<f32, f32> for Fma {
    #[inline(always)]
    fn at<const F: bool>(a: f32, b: f32, c: f32) -> f32 {
        math::fma::<F>(a, b, c)
    }
}

impl Map3<f64, f64> for Fma {
    #[inline(always)]
    fn at<const F: bool>(a: f64, b: f64, c: f64) -> f64 {
        if F { a.mul_add(b, c) } else { a * b + c }
    }
}

impl<T> Map3<u8, T> for Select {
    #[inline(always)]
    fn at<const F: bool>(a: u8, b: T, c: T) -> T {
        if a != 0 { b } else { c }
    }
}
