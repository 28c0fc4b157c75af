//! Loops over blocks of elements: one per operator and element type, made for each instruction set.

use std::sync::LazyLock;

use super::{
    ir::{ComputeType, KernelOp},
    math::is_short,
    ops,
    ops::{Map1, Map2, Map3},
};

/// One operator over a block: result, up to three operands, elements. An operand that is the same for all elements is
/// one element, not a block.
///
/// # Safety
/// The result is valid for writing and the operands for reading `n` elements of the loop's types (one element where
/// uniform), aligned, and the result overlaps no operand.
pub(super) type Loop = unsafe fn(*mut u8, *const u8, *const u8, *const u8, usize);

/// What picks a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) op: KernelOp,
    /// Lane of the last operand.
    pub(super) from: ComputeType,
    /// Lane of the result.
    pub(super) to: ComputeType,
    /// Which operands are uniform.
    pub(super) uniform: [bool; 3],
}

/// An operand of a loop.
#[derive(Clone, Copy)]
struct Source<T>(*const T);

impl<T: Copy> Source<T> {
    /// # Safety
    /// As [`Loop`]; `U` says uniform.
    #[inline(always)]
    unsafe fn at<const U: bool>(self, i: usize) -> T {
        // SAFETY: by this function's contract.
        unsafe { if U { *self.0 } else { *self.0.add(i) } }
    }
}

/// The block written: a unique reference, so that the compiler knows that it overlaps no operand.
///
/// # Safety
/// As [`Loop`].
#[inline(always)]
unsafe fn target<'a, T>(d: *mut u8, n: usize) -> &'a mut [T] {
    // SAFETY: by this function's contract.
    unsafe { std::slice::from_raw_parts_mut(d.cast(), n) }
}

#[inline(always)]
unsafe fn map1<O: Map1<T, U>, T: Copy, U, const F: bool>(d: *mut u8, a: *const u8, n: usize) {
    // SAFETY: the caller keeps the contract of `Loop`.
    unsafe {
        let (a, d) = (std::slice::from_raw_parts(a.cast::<T>(), n), target(d, n));
        for (d, x) in d.iter_mut().zip(a) {
            *d = O::at::<F>(*x);
        }
        if O::CHECKED && !a.iter().fold(true, |all, x| all & O::fits(*x)) {
            for (d, x) in d.iter_mut().zip(a).filter(|(_, x)| !O::fits(**x)) {
                *d = O::careful(*x);
            }
        }
    }
}

#[inline(always)]
unsafe fn map2<O: Map2<T, U>, T: Copy, U, const F: bool, const A: bool, const B: bool>(
    d: *mut u8,
    a: *const u8,
    b: *const u8,
    n: usize,
) {
    // SAFETY: the caller keeps the contract of `Loop`.
    unsafe {
        let (a, b) = (Source::<T>(a.cast()), Source::<T>(b.cast()));
        let d = target(d, n);
        for (i, d) in d.iter_mut().enumerate() {
            *d = O::at::<F>(a.at::<A>(i), b.at::<B>(i));
        }
        if O::CHECKED && !(0..n).fold(true, |all, i| all & O::fits(a.at::<A>(i), b.at::<B>(i))) {
            for (i, d) in d.iter_mut().enumerate() {
                let (x, y) = (a.at::<A>(i), b.at::<B>(i));
                if !O::fits(x, y) {
                    *d = O::careful(x, y);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn map3<O: Map3<V, T>, V: Copy, T: Copy, const F: bool, const A: bool, const B: bool, const C: bool>(
    d: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
    n: usize,
) {
    // SAFETY: the caller keeps the contract of `Loop`.
    unsafe {
        let (a, b, c) = (Source::<V>(a.cast()), Source::<T>(b.cast()), Source::<T>(c.cast()));
        for (i, d) in target(d, n).iter_mut().enumerate() {
            *d = O::at::<F>(a.at::<A>(i), b.at::<B>(i), c.at::<C>(i));
        }
    }
}

/// A block of one element repeated.
#[inline(always)]
unsafe fn fill<T: Copy>(d: *mut u8, a: *const u8, n: usize) {
    // SAFETY: the caller keeps the contract of `Loop`.
    unsafe { target::<T>(d, n).fill(*a.cast::<T>()) }
}

macro_rules! instruction_set {
    ($name:ident, $fma:literal $(, $features:literal)?) => {
        mod $name {
            use super::{KernelOp, Key, ComputeType, Loop, Map1, Map2, Map3, is_short, ops};

            $(#[target_feature(enable = $features)])?
            unsafe fn map1<O: Map1<T, U>, T: Copy, U>(d: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
                // SAFETY: the caller keeps the contract of `Loop`.
                unsafe { super::map1::<O, T, U, $fma>(d, a, n) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn fill<T: Copy>(d: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
                // SAFETY: the caller keeps the contract of `Loop`.
                unsafe { super::fill::<T>(d, a, n) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn map2<O: Map2<T, U>, T: Copy, U, const A: bool, const B: bool>(
                d: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize,
            ) {
                // SAFETY: the caller keeps the contract of `Loop`.
                unsafe { super::map2::<O, T, U, $fma, A, B>(d, a, b, n) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn map3<O: Map3<V, T>, V: Copy, T: Copy, const A: bool, const B: bool, const C: bool>(
                d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize,
            ) {
                // SAFETY: the caller keeps the contract of `Loop`.
                unsafe { super::map3::<O, V, T, $fma, A, B, C>(d, a, b, c, n) }
            }

            /// Powers of one exponent, which is looked at once.
            unsafe fn power<T: Copy, const A: bool>(
                d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize,
            ) where ops::Pow: Map2<T, T>, ops::EachPow: Map2<T, T> {
                // SAFETY: the caller keeps the contract of `Loop`, by which the uniform exponent is one element. Only
                // `f32` and `f64` have powers, so the size of `T` tells which of them it is.
                unsafe {
                    let exponent = match size_of::<T>() {
                        4 => f64::from(*b.cast::<f32>()),
                        _ => *b.cast::<f64>(),
                    };
                    if is_short(exponent) {
                        map2::<ops::EachPow, T, T, A, true>(d, a, b, c, n);
                    } else {
                        map2::<ops::Pow, T, T, A, true>(d, a, b, c, n);
                    }
                }
            }

            fn powers<T: Copy>(uniform: [bool; 3]) -> Option<Loop>
            where
                ops::Pow: Map2<T, T>,
                ops::EachPow: Map2<T, T>,
            {
                Some(match (uniform[0], uniform[1]) {
                    (false, false) => map2::<ops::EachPow, T, T, false, false>,
                    (true, false) => map2::<ops::EachPow, T, T, true, false>,
                    (false, true) => power::<T, false>,
                    (true, true) => power::<T, true>,
                })
            }

            fn one<O: Map1<T, U>, T: Copy, U>() -> Option<Loop> {
                Some(map1::<O, T, U>)
            }

            fn two<O: Map2<T, U>, T: Copy, U>(uniform: [bool; 3]) -> Option<Loop> {
                Some(match (uniform[0], uniform[1]) {
                    (false, false) => map2::<O, T, U, false, false>,
                    (true, false) => map2::<O, T, U, true, false>,
                    (false, true) => map2::<O, T, U, false, true>,
                    (true, true) => map2::<O, T, U, true, true>,
                })
            }

            fn three<O: Map3<V, T>, V: Copy, T: Copy>(uniform: [bool; 3]) -> Option<Loop> {
                Some(match (uniform[0], uniform[1], uniform[2]) {
                    (false, false, false) => map3::<O, V, T, false, false, false>,
                    (false, false, true) => map3::<O, V, T, false, false, true>,
                    (false, true, false) => map3::<O, V, T, false, true, false>,
                    (false, true, true) => map3::<O, V, T, false, true, true>,
                    (true, false, false) => map3::<O, V, T, true, false, false>,
                    (true, false, true) => map3::<O, V, T, true, false, true>,
                    (true, true, false) => map3::<O, V, T, true, true, false>,
                    (true, true, true) => map3::<O, V, T, true, true, true>,
                })
            }

            /// What all numbers can.
            macro_rules! arithmetic {
                ($key:expr, $t:ty) => {
                    match $key.op {
                        KernelOp::Neg => one::<ops::Neg, $t, $t>(),
                        KernelOp::Abs => one::<ops::Abs, $t, $t>(),
                        KernelOp::Add => two::<ops::Add, $t, $t>($key.uniform),
                        KernelOp::Sub => two::<ops::Sub, $t, $t>($key.uniform),
                        KernelOp::Mul => two::<ops::Mul, $t, $t>($key.uniform),
                        KernelOp::Max => two::<ops::Max, $t, $t>($key.uniform),
                        KernelOp::Min => two::<ops::Min, $t, $t>($key.uniform),
                        KernelOp::Eq => two::<ops::Eq, $t, u8>($key.uniform),
                        KernelOp::Ne => two::<ops::Ne, $t, u8>($key.uniform),
                        KernelOp::Lt => two::<ops::Lt, $t, u8>($key.uniform),
                        KernelOp::Le => two::<ops::Le, $t, u8>($key.uniform),
                        KernelOp::Select => three::<ops::Select, u8, $t>($key.uniform),
                        _ => None,
                    }
                };
            }

            macro_rules! bits {
                ($key:expr, $t:ty) => {
                    match $key.op {
                        KernelOp::Not => one::<ops::Not, $t, $t>(),
                        KernelOp::And => two::<ops::And, $t, $t>($key.uniform),
                        KernelOp::Or => two::<ops::Or, $t, $t>($key.uniform),
                        KernelOp::Xor => two::<ops::Xor, $t, $t>($key.uniform),
                        _ => arithmetic!($key, $t),
                    }
                };
            }

            macro_rules! float {
                ($key:expr, $t:ty) => {
                    match $key.op {
                        KernelOp::Sqrt => one::<ops::Sqrt, $t, $t>(),
                        KernelOp::Floor => one::<ops::Floor, $t, $t>(),
                        KernelOp::Ceil => one::<ops::Ceil, $t, $t>(),
                        KernelOp::Trunc => one::<ops::Trunc, $t, $t>(),
                        KernelOp::Round => one::<ops::Round, $t, $t>(),
                        KernelOp::Exp => one::<ops::Exp, $t, $t>(),
                        KernelOp::Exp2 => one::<ops::Exp2, $t, $t>(),
                        KernelOp::Expm1 => one::<ops::Expm1, $t, $t>(),
                        KernelOp::Log => one::<ops::Log, $t, $t>(),
                        KernelOp::Log2 => one::<ops::Log2, $t, $t>(),
                        KernelOp::Log10 => one::<ops::Log10, $t, $t>(),
                        KernelOp::Log1p => one::<ops::Log1p, $t, $t>(),
                        KernelOp::Sin => one::<ops::Sin, $t, $t>(),
                        KernelOp::Cos => one::<ops::Cos, $t, $t>(),
                        KernelOp::Tan => one::<ops::Tan, $t, $t>(),
                        KernelOp::Sinh => one::<ops::Sinh, $t, $t>(),
                        KernelOp::Cosh => one::<ops::Cosh, $t, $t>(),
                        KernelOp::Tanh => one::<ops::Tanh, $t, $t>(),
                        KernelOp::FMod => two::<ops::FMod, $t, $t>($key.uniform),
                        KernelOp::CopySign => two::<ops::CopySign, $t, $t>($key.uniform),
                        KernelOp::Div => two::<ops::Div, $t, $t>($key.uniform),
                        KernelOp::Fma => three::<ops::Fma, $t, $t>($key.uniform),
                        _ => arithmetic!($key, $t),
                    }
                };
            }

            /// To another type.
            macro_rules! cast {
                ($key:expr, $t:ty) => {
                    match $key.to {
                        ComputeType::Bool => one::<ops::NonZero, $t, u8>(),
                        ComputeType::U8 => one::<ops::CastTo, $t, u8>(),
                        ComputeType::I32 => one::<ops::CastTo, $t, i32>(),
                        ComputeType::I64 => one::<ops::CastTo, $t, i64>(),
                        ComputeType::F32 => one::<ops::CastTo, $t, f32>(),
                        ComputeType::F64 => one::<ops::CastTo, $t, f64>(),
                    }
                };
            }

            pub(super) fn find(key: Key) -> Option<Loop> {
                match (key.op, key.from) {
                    (KernelOp::Cast, from) if from == key.to => None,
                    (KernelOp::Cast, ComputeType::Bool | ComputeType::U8) => cast!(key, u8),
                    (KernelOp::Cast, ComputeType::I32) => cast!(key, i32),
                    (KernelOp::Cast, ComputeType::I64) => cast!(key, i64),
                    (KernelOp::Cast, ComputeType::F32) => cast!(key, f32),
                    (KernelOp::Cast, ComputeType::F64) => cast!(key, f64),
                    (KernelOp::Not, ComputeType::Bool) => one::<ops::BoolNot, u8, u8>(),
                    (KernelOp::Erf, ComputeType::F32) => one::<ops::Erf, f32, f32>(),
                    (KernelOp::RoundBf16, ComputeType::F32) => one::<ops::RoundBf16, f32, f32>(),
                    (KernelOp::RoundF16, ComputeType::F32) => one::<ops::RoundF16, f32, f32>(),
                    (KernelOp::Pow, ComputeType::F32) => powers::<f32>(key.uniform),
                    (KernelOp::Pow, ComputeType::F64) => powers::<f64>(key.uniform),
                    // Booleans are 0 or 1: there is no arithmetic on them.
                    (KernelOp::Neg | KernelOp::Add | KernelOp::Sub | KernelOp::Mul, ComputeType::Bool) => None,
                    (_, ComputeType::Bool | ComputeType::U8) => bits!(key, u8),
                    (_, ComputeType::I32) => bits!(key, i32),
                    (_, ComputeType::I64) => bits!(key, i64),
                    (_, ComputeType::F32) => float!(key, f32),
                    (_, ComputeType::F64) => float!(key, f64),
                }
            }

            /// Copies a block of values of this size; a uniform one is repeated.
            pub(super) fn copy(bytes: usize, uniform: bool) -> Loop {
                match (bytes, uniform) {
                    (1, false) => map1::<ops::Copy, u8, u8>,
                    (2, false) => map1::<ops::Copy, u16, u16>,
                    (4, false) => map1::<ops::Copy, u32, u32>,
                    (_, false) => map1::<ops::Copy, u64, u64>,
                    (1, true) => fill::<u8>,
                    (2, true) => fill::<u16>,
                    (4, true) => fill::<u32>,
                    (_, true) => fill::<u64>,
                }
            }
        }
    };
}

#[cfg(not(target_arch = "aarch64"))]
instruction_set!(portable, false);
#[cfg(target_arch = "aarch64")]
instruction_set!(portable, true);
#[cfg(target_arch = "x86_64")]
instruction_set!(avx2, true, "avx2,fma,f16c");
#[cfg(target_arch = "x86_64")]
instruction_set!(avx512, true, "avx512f,avx512vl,avx512bw,avx512dq,fma,f16c");

/// Defines a function that is compiled once with AVX2 and once without; calling it takes what the machine has.
macro_rules! vectorised {
    ($(#[$doc:meta])* fn $name:ident $(<$t:ident: $bound:path>)? ($($arg:ident: $ty:ty),* $(,)?) $ir:block) => {
        $(#[$doc])*
        fn $name $(<$t: $bound>)? ($($arg: $ty),*) {
            #[inline(always)]
            fn plain $(<$t: $bound>)? ($($arg: $ty),*) $ir

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn wide $(<$t: $bound>)? ($($arg: $ty),*) {
                plain$(::<$t>)?($($arg),*);
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::instruction_set() != "portable" {
                // SAFETY: all sets but the portable one have AVX2.
                return unsafe { wide$(::<$t>)?($($arg),*) };
            }
            plain$(::<$t>)?($($arg),*);
        }
    };
}
pub(super) use vectorised;

/// The loops of an instruction set.
struct Set {
    name: &'static str,
    find: fn(Key) -> Option<Loop>,
    copy: fn(usize, bool) -> Loop,
}

/// The best this machine has; `LTC_ISA` (`portable`, `avx2`, `avx512`) takes a lesser one.
static SET: LazyLock<Set> = LazyLock::new(|| {
    let wanted = std::env::var("LTC_ISA").ok();
    let allowed = |name: &str| wanted.as_deref().is_none_or(|w| w == name);
    #[cfg(target_arch = "x86_64")]
    {
        let fma = is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        let bytes_too = is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512dq");
        if fma && bytes_too && is_x86_feature_detected!("avx512vl") && allowed("avx512") {
            return Set { name: "avx512", find: avx512::find, copy: avx512::copy };
        }
        if fma && is_x86_feature_detected!("avx2") && allowed("avx2") {
            return Set { name: "avx2", find: avx2::find, copy: avx2::copy };
        }
    }
    Set { name: "portable", find: portable::find, copy: portable::copy }
});

/// The loop of an operator; `None` where it does not exist for these types.
pub(super) fn find(key: Key) -> Option<Loop> {
    (SET.find)(key)
}

/// The loop that copies values of this size.
pub(super) fn copy(bytes: usize, uniform: bool) -> Loop {
    (SET.copy)(bytes, uniform)
}

/// Name of the instruction set fused kernels use here: `avx512`, `avx2` or `portable` (what every machine of this
/// architecture has).
pub fn instruction_set() -> &'static str {
    SET.name
}
