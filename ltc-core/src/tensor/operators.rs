//! `a + b` and friends, for tensors and numbers. They panic where the methods fail; use the methods where that matters.

use std::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, Sub, SubAssign};

use ltc_ir::Scalar;

use super::LazyTensor;

/// The other operand of a pointwise operator: a tensor or a number, which does not decide the dtype.
#[derive(Debug)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a LazyTensor),
    /// A tensor nobody needs any more.
    Owned(LazyTensor),
    /// A number.
    Number(Scalar),
}

impl<'a> From<&'a LazyTensor> for Operand<'a> {
    fn from(t: &'a LazyTensor) -> Self {
        Operand::Tensor(t)
    }
}

impl From<LazyTensor> for Operand<'_> {
    fn from(t: LazyTensor) -> Self {
        Operand::Owned(t)
    }
}

impl From<Scalar> for Operand<'_> {
    fn from(n: Scalar) -> Self {
        Operand::Number(n)
    }
}

macro_rules! numbers {
    ($($number:ty => $variant:ident as $wide:ty),*) => {$(
        impl From<$number> for Operand<'_> {
            fn from(n: $number) -> Self {
                Operand::Number(Scalar::$variant(n as $wide))
            }
        }
    )*};
}

numbers!(f64 => Float as f64, f32 => Float as f64, i64 => Int as i64, i32 => Int as i64);

impl From<bool> for Operand<'_> {
    fn from(b: bool) -> Self {
        Operand::Number(Scalar::Bool(b))
    }
}

/// What the panicking layer does with an error.
#[track_caller]
fn done(op: &str, result: Result<LazyTensor, crate::Error>) -> LazyTensor {
    match result {
        Ok(t) => t,
        Err(e) => panic!("{op}: {e}"),
    }
}

macro_rules! binary {
    ($($operator:ident $function:ident $method:ident),*) => {$(
        impl<'b, T: Into<Operand<'b>>> $operator<T> for &LazyTensor {
            type Output = LazyTensor;

            #[track_caller]
            fn $function(self, other: T) -> LazyTensor {
                done(stringify!($function), LazyTensor::$method(self, other))
            }
        }

        impl<'b, T: Into<Operand<'b>>> $operator<T> for LazyTensor {
            type Output = LazyTensor;

            #[track_caller]
            fn $function(self, other: T) -> LazyTensor {
                done(stringify!($function), LazyTensor::$method(&self, other))
            }
        }
    )*};
}

binary!(
    Add add add,
    Sub sub sub,
    Mul mul mul,
    Div div div,
    Rem rem remainder,
    BitAnd bitand bitwise_and,
    BitOr bitor bitwise_or,
    BitXor bitxor bitwise_xor
);

macro_rules! number_first {
    ($($number:ty),*) => {$(
        impl Add<&LazyTensor> for $number {
            type Output = LazyTensor;

            #[track_caller]
            fn add(self, t: &LazyTensor) -> LazyTensor {
                done("add", LazyTensor::add(t, self))
            }
        }

        impl Mul<&LazyTensor> for $number {
            type Output = LazyTensor;

            #[track_caller]
            fn mul(self, t: &LazyTensor) -> LazyTensor {
                done("mul", LazyTensor::mul(t, self))
            }
        }

        impl Sub<&LazyTensor> for $number {
            type Output = LazyTensor;

            #[track_caller]
            fn sub(self, t: &LazyTensor) -> LazyTensor {
                done("sub", t.rsub(self))
            }
        }

        impl Div<&LazyTensor> for $number {
            type Output = LazyTensor;

            #[track_caller]
            fn div(self, t: &LazyTensor) -> LazyTensor {
                done("div", t.reciprocal().and_then(|r| LazyTensor::mul(&r, self)))
            }
        }

        impl Add<LazyTensor> for $number {
            type Output = LazyTensor;

            #[track_caller]
            fn add(self, t: LazyTensor) -> LazyTensor {
                self + &t
            }
        }

        impl Mul<LazyTensor> for $number {
            type Output = LazyTensor;

            #[track_caller]
            fn mul(self, t: LazyTensor) -> LazyTensor {
                self * &t
            }
        }

        impl Sub<LazyTensor> for $number {
            type Output = LazyTensor;

            #[track_caller]
            fn sub(self, t: LazyTensor) -> LazyTensor {
                self - &t
            }
        }

        impl Div<LazyTensor> for $number {
            type Output = LazyTensor;

            #[track_caller]
            fn div(self, t: LazyTensor) -> LazyTensor {
                self / &t
            }
        }
    )*};
}

// One of each kind: more would leave the type of a literal open.
number_first!(f64, i64);

macro_rules! assigning {
    ($($operator:ident $function:ident $method:ident),*) => {$(
        impl<'b, T: Into<Operand<'b>>> $operator<T> for LazyTensor {
            #[track_caller]
            fn $function(&mut self, other: T) {
                if let Err(e) = self.$method(other) {
                    panic!("{}: {e}", stringify!($method));
                }
            }
        }
    )*};
}

assigning!(AddAssign add_assign add_, SubAssign sub_assign sub_, MulAssign mul_assign mul_, DivAssign div_assign div_);

impl Neg for &LazyTensor {
    type Output = LazyTensor;

    #[track_caller]
    fn neg(self) -> LazyTensor {
        done("neg", LazyTensor::neg(self))
    }
}

impl Neg for LazyTensor {
    type Output = LazyTensor;

    #[track_caller]
    fn neg(self) -> LazyTensor {
        -&self
    }
}

impl Not for &LazyTensor {
    type Output = LazyTensor;

    #[track_caller]
    fn not(self) -> LazyTensor {
        done("bitwise_not", self.bitwise_not())
    }
}
