//! What a kernel computes, as text: one line per value, numbered from 0, then what is kept.

use std::fmt;

use crate::ir::{ComputeType, Inst, KernelIr, KernelOp, Val};

/// `v2: f32 = mul v0, v1`; `input 0` is an element of the first input, `number 1 (f64)` the runtime number at word 1.
impl fmt::Display for KernelIr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (inst, ty)) in self.values.iter().enumerate() {
            write!(f, "v{i}: {} = ", ty.dtype())?;
            match *inst {
                Inst::Input(index) => write!(f, "input {index}")?,
                Inst::Number(word, dtype) => write!(f, "number {word} ({dtype})")?,
                Inst::Const(bits) => write_const(f, *ty, bits)?,
                Inst::Op(op, args) => write_op(f, op, &args)?,
            }
            f.write_str("\n")?;
        }
        let kept: Vec<String> = self.outputs.iter().map(|v| format!("v{}", v.0)).collect();
        writeln!(f, "return {}", kept.join(", "))
    }
}

fn write_const(f: &mut fmt::Formatter<'_>, ty: ComputeType, bits: u64) -> fmt::Result {
    match ty {
        ComputeType::Bool => write!(f, "{}", bits != 0),
        ComputeType::U8 | ComputeType::I32 | ComputeType::I64 => {
            let shift = 64 - 8 * ty.bytes();
            let number = if ty == ComputeType::U8 { bits as i64 } else { ((bits << shift) as i64) >> shift };
            write!(f, "{number}")
        }
        ComputeType::F32 => write!(f, "{:?}", f32::from_bits(bits as u32)),
        ComputeType::F64 => write!(f, "{:?}", f64::from_bits(bits)),
    }
}

fn write_op(f: &mut fmt::Formatter<'_>, op: KernelOp, args: &[Val; 3]) -> fmt::Result {
    f.write_str(&format!("{op:?}").to_lowercase())?;
    for (i, v) in args[..op.arity()].iter().enumerate() {
        write!(f, "{} v{}", if i == 0 { "" } else { "," }, v.0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ltc_ir::DType;

    use crate::ir::{Builder, ComputeType, KernelOp};

    #[test]
    fn each_value_has_a_line() {
        let mut b = Builder::new(false);
        let x = b.input(0, ComputeType::F32);
        let alpha = b.number(0, DType::F64, ComputeType::F32);
        let (half, three) = (b.constant(0.5, ComputeType::F32), b.constant(-3.0, ComputeType::I32));
        let sum = b.op(KernelOp::Fma, &[x, alpha, half]);
        let ir = b.finish(&[sum, three]);
        let text = "v0: f32 = input 0\nv1: f32 = number 0 (f64)\nv2: f32 = 0.5\nv3: i32 = -3\n\
                    v4: f32 = fma v0, v1, v2\nreturn v4, v3\n";
        assert_eq!(ir.to_string(), text);
    }
}
