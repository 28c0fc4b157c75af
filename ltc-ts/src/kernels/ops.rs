//! What operators do to one element, as types, so that loops can be made for each.

use super::math;

/// One operand. `F`: see [`math::fma`].
pub(super) trait Map1<T, U> {
    fn at<const F: bool>(x: T) -> U;
}

/// Two operands.
pub(super) trait Map2<T, U> {
    fn at<const F: bool>(x: T, y: T) -> U;
}

/// Three operands, the first of its own type.
pub(super) trait Map3<A, T> {
    fn at<const F: bool>(a: A, b: T, c: T) -> T;
}

macro_rules! map1 {
    ($($name:ident: $($from:ty => $to:ty),+; |$x:ident| $body:expr;)*) => {$($(
        impl Map1<$from, $to> for $name {
            #[inline(always)]
            fn at<const F: bool>($x: $from) -> $to { $body }
        }
    )+)*};
}

macro_rules! map2 {
    ($($name:ident: $($from:ty => $to:ty),+; |$x:ident, $y:ident| $body:expr;)*) => {$($(
        impl Map2<$from, $to> for $name {
            #[inline(always)]
            fn at<const F: bool>($x: $from, $y: $from) -> $to { $body }
        }
    )+)*};
}

macro_rules! names {
    ($($name:ident)*) => {$(pub(super) struct $name;)*};
}

names! {
    Copy Neg Abs Not BoolNot Sqrt Floor Ceil Trunc Round Exp Log Tanh Erf RoundBf16 RoundF16
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
    Exp: f32 => f32; |x| math::exp::<F>(x);
    Exp: f64 => f64; |x| x.exp();
    Log: f32 => f32; |x| math::log::<F>(x);
    Log: f64 => f64; |x| x.ln();
    Tanh: f32 => f32; |x| math::tanh::<F>(x);
    Tanh: f64 => f64; |x| x.tanh();
    Erf: f32 => f32; |x| math::erf::<F>(x);
    RoundBf16: f32 => f32; |x| math::round_bf16(x);
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
