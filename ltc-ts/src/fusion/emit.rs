//! Kernel expressions: what kernels compute of a node, an expression of the operator table with what is known of the
//! call put in (`expression.rs`).
//!
//! An argument left out (`None`) drops out of the sum or product it stands in.

use ltc_kernels::{Builder, ComputeType, KernelOp, Val};

/// An expression of operations that kernels have.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum KernelExpr {
    /// The argument.
    Argument(usize),
    /// The argument, a number that is nearly always one.
    One(usize),
    /// The number.
    Number(f64),
    /// How many elements a row has.
    Count,
    /// An operation.
    Apply(KernelOp, Vec<KernelExpr>),
}

/// What an argument stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    /// Left out.
    Absent,
    /// A value, in its own type.
    Value(Val),
    /// A runtime number: word and dtype, and how it is rounded before use.
    Number(u32, ltc_ir::DType, Option<KernelOp>),
}

impl KernelExpr {
    /// Whether this argument is a number that is nearly always one.
    pub(super) fn takes_one(&self, argument: usize) -> bool {
        match self {
            KernelExpr::One(i) => *i == argument,
            KernelExpr::Apply(_, arguments) => arguments.iter().any(|f| f.takes_one(argument)),
            KernelExpr::Argument(_) | KernelExpr::Number(_) | KernelExpr::Count => false,
        }
    }

    /// Whether it is a number that is nearly always one, or its opposite.
    fn is_usually_one(&self) -> bool {
        match self {
            KernelExpr::One(_) => true,
            KernelExpr::Apply(KernelOp::Neg, x) => x[0].is_usually_one(),
            _ => false,
        }
    }

    /// How many operations it has; a product and a sum are two, though they may be rounded as one.
    pub(super) fn operations(&self) -> usize {
        match self {
            KernelExpr::Apply(KernelOp::Fma, arguments) => {
                2 + arguments.iter().map(KernelExpr::operations).sum::<usize>()
            }
            KernelExpr::Apply(_, arguments) => 1 + arguments.iter().map(KernelExpr::operations).sum::<usize>(),
            _ => 0,
        }
    }

    /// Whether all operations are what IEEE 754 says, here and in libtorch. Its square roots come from a vector
    /// library.
    pub(super) fn is_exact(&self) -> bool {
        let inexact = |op: &KernelOp| match op {
            KernelOp::FMod => false,
            KernelOp::Pow | KernelOp::Sqrt | KernelOp::Sum => true,
            op => op.is_function(),
        };
        match self {
            KernelExpr::Apply(op, arguments) => !inexact(op) && arguments.iter().all(KernelExpr::is_exact),
            _ => true,
        }
    }

    /// Writes the expression into an IR, computing in `ty`. `None` if it has no meaning for these operands.
    pub(super) fn build(&self, b: &mut Builder, operands: &[Operand], ty: ComputeType) -> Option<Val> {
        match self {
            KernelExpr::Number(n) => Some(b.constant(*n, ty)),
            KernelExpr::Count => Some(b.constant(b.count as f64, ty)),
            KernelExpr::Argument(i) => match *operands.get(*i)? {
                Operand::Absent => None,
                Operand::Value(v) => Some(b.cast(v, ty)),
                Operand::Number(word, dtype, round) => {
                    let number = b.number(word, dtype, ty);
                    Some(round.map_or(number, |op| b.op(op, &[number])))
                }
            },
            // A list form may leave it out.
            KernelExpr::One(i) if operands.get(*i).is_none() => Some(b.constant(1.0, ty)),
            KernelExpr::One(i) => match *operands.get(*i)? {
                Operand::Number(word, dtype, round) => {
                    let number = b.usually_one(word, dtype, ty);
                    Some(round.map_or(number, |op| b.op(op, &[number])))
                }
                _ => None,
            },
            KernelExpr::Apply(op, arguments) => {
                let absent = |f: &KernelExpr| match f {
                    KernelExpr::Argument(i) => matches!(operands.get(*i), Some(Operand::Absent)),
                    _ => false,
                };
                if let (KernelOp::Add | KernelOp::Mul, [x, y]) = (op, &arguments[..])
                    && (absent(x) || absent(y))
                {
                    return if absent(x) { y } else { x }.build(b, operands, ty);
                }
                let mut values = [Val::default(); 3];
                for (i, argument) in arguments.iter().enumerate() {
                    let condition = *op == KernelOp::Select && i == 0;
                    values[i] =
                        argument.build(b, operands, if condition { argument.condition_lane(ty) } else { ty })?;
                    // A condition may be a comparison, which is a Bool already, or an argument, which is made one.
                    if condition {
                        values[i] = b.cast(values[i], ComputeType::Bool);
                    }
                }
                let values = &mut values[..arguments.len()];
                if let (KernelOp::Fma, Some(round)) = (op, b.products)
                    && arguments[..2].iter().any(KernelExpr::is_usually_one)
                {
                    let product = b.op(KernelOp::Mul, &values[..2]);
                    let product = b.op(round, &[product]);
                    return Some(b.op(KernelOp::Add, &[values[2], product]));
                }
                match op {
                    KernelOp::Select => {}
                    _ if op.reduces() => values[0] = b.cast(values[0], ty),
                    // Bits and comparisons of comparisons.
                    _ => {
                        let last = b.ty(values[values.len() - 1]);
                        values.iter_mut().for_each(|v| *v = b.cast(*v, last));
                    }
                }
                Some(b.op(*op, values))
            }
        }
    }

    /// The type a condition is written in.
    fn condition_lane(&self, ty: ComputeType) -> ComputeType {
        if matches!(self, KernelExpr::Argument(_)) { ComputeType::Bool } else { ty }
    }
}
