//! Which function of the prelude an operation is, and in which types it is there.

use crate::ir::{ComputeType, KernelOp};

const ALL: &[ComputeType] =
    &[ComputeType::Bool, ComputeType::U8, ComputeType::I32, ComputeType::I64, ComputeType::F32, ComputeType::F64];
/// Booleans are 0 or 1: there is no arithmetic on them.
const NUMBERS: &[ComputeType] = ALL.split_at(1).1;
const WHOLE: &[ComputeType] = ALL.split_at(4).0;
const FLOATS: &[ComputeType] = ALL.split_at(4).1;
const SINGLE: &[ComputeType] = &[ComputeType::F32];
const SUMS: &[ComputeType] = ALL.split_at(3).1;

/// The name of the prelude's function for an operation on values of type `from`, the last operand's, that gives `to`;
/// `None` where there is none in these types.
pub(super) fn function(op: KernelOp, from: ComputeType, to: ComputeType) -> Option<&'static str> {
    let (name, types) = match op {
        KernelOp::Cast => (cast(to), if from == to { &[] } else { ALL }),
        KernelOp::RoundBf16 => ("round_bf16", SINGLE),
        KernelOp::RoundF16 => ("round_f16", SINGLE),
        KernelOp::Neg => ("neg", NUMBERS),
        KernelOp::Abs => ("abs", ALL),
        KernelOp::Not => (if from == ComputeType::Bool { "bool_not" } else { "bit_not" }, WHOLE),
        KernelOp::Sqrt => ("sqrt", FLOATS),
        KernelOp::Floor => ("floor", FLOATS),
        KernelOp::Ceil => ("ceil", FLOATS),
        KernelOp::Trunc => ("trunc", FLOATS),
        KernelOp::Round => ("round", FLOATS),
        KernelOp::Exp => ("exp", FLOATS),
        KernelOp::Exp2 => ("exp2", FLOATS),
        KernelOp::Expm1 => ("expm1", FLOATS),
        KernelOp::Log => ("log", FLOATS),
        KernelOp::Log2 => ("log2", FLOATS),
        KernelOp::Log10 => ("log10", FLOATS),
        KernelOp::Log1p => ("log1p", FLOATS),
        KernelOp::Sin => ("sin", FLOATS),
        KernelOp::Cos => ("cos", FLOATS),
        KernelOp::Tan => ("tan", FLOATS),
        KernelOp::Sinh => ("sinh", FLOATS),
        KernelOp::Cosh => ("cosh", FLOATS),
        KernelOp::Tanh => ("tanh", FLOATS),
        KernelOp::Erf => ("erf", SINGLE),
        KernelOp::Add => ("add", NUMBERS),
        KernelOp::Sub => ("sub", NUMBERS),
        KernelOp::Mul => ("mul", NUMBERS),
        KernelOp::Div => ("div", FLOATS),
        KernelOp::FMod => ("fmod", FLOATS),
        KernelOp::CopySign => ("copysign", FLOATS),
        KernelOp::Max => ("max", ALL),
        KernelOp::Min => ("min", ALL),
        KernelOp::Pow => ("pow", FLOATS),
        KernelOp::And => ("bit_and", WHOLE),
        KernelOp::Or => ("bit_or", WHOLE),
        KernelOp::Xor => ("bit_xor", WHOLE),
        KernelOp::Eq => ("eq", ALL),
        KernelOp::Ne => ("ne", ALL),
        KernelOp::Lt => ("lt", ALL),
        KernelOp::Le => ("le", ALL),
        KernelOp::Fma => ("fma", FLOATS),
        KernelOp::Select => ("select", ALL),
        // Not functions of two elements, but how all of a row are joined.
        KernelOp::Sum => ("Sum", SUMS),
        KernelOp::AMax => ("Largest", FLOATS),
        KernelOp::AMin => ("Smallest", FLOATS),
    };
    types.contains(&from).then_some(name)
}

fn cast(to: ComputeType) -> &'static str {
    match to {
        ComputeType::Bool => "to_bool",
        ComputeType::U8 => "to_u8",
        ComputeType::I32 => "to_i32",
        ComputeType::I64 => "to_i64",
        ComputeType::F32 => "to_f32",
        ComputeType::F64 => "to_f64",
    }
}

/// The platform's function, for arguments that one of `math.rs` is not made for.
pub(super) fn platform(op: KernelOp) -> Option<&'static str> {
    Some(match op {
        KernelOp::Sin => "sinf",
        KernelOp::Cos => "cosf",
        KernelOp::Tan => "tanf",
        KernelOp::FMod => "fmodf",
        _ => return None,
    })
}

/// The name of a type whose values are computed with.
pub(super) fn type_name(ty: ComputeType) -> &'static str {
    match ty {
        ComputeType::Bool | ComputeType::U8 => "u8",
        ComputeType::I32 => "i32",
        ComputeType::I64 => "i64",
        ComputeType::F32 => "f32",
        ComputeType::F64 => "f64",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, cases::CODES, has_loop};

    /// What runs on the CPU has text for GPUs, and nothing else has.
    #[test]
    fn what_has_a_loop_has_a_function() {
        let reductions = [KernelOp::Sum, KernelOp::AMax, KernelOp::AMin];
        for op in CODES.into_iter().chain(reductions) {
            for &from in ALL {
                for &to in if op == KernelOp::Cast { ALL } else { std::slice::from_ref(&from) } {
                    if op == KernelOp::Cast && from == to {
                        continue;
                    }
                    let mut b = Builder::new(false);
                    let first = if op == KernelOp::Select { ComputeType::Bool } else { from };
                    let types = [first, from, from];
                    let args: Vec<_> = (0..op.arity()).map(|i| b.input(i as u32, types[i])).collect();
                    let value = if op == KernelOp::Cast { b.cast(args[0], to) } else { b.op(op, &args) };
                    let ir = b.finish(&[value]);
                    // A product of integers that is added is two operations.
                    let text = function(op, from, to).is_some() || op == KernelOp::Fma && NUMBERS.contains(&from);
                    assert_eq!(has_loop(&ir), text, "{op:?} {from:?} {to:?}");
                }
            }
        }
    }
}
