//! The functions of `math.rs` as text: the same operations in the same order, and so the same bits.

use std::{
    cell::{Cell, RefCell},
    fmt::Write,
};

use super::ops::{function, platform};
use crate::{
    ir::{ComputeType, KernelOp},
    math::{self, Arith},
};

/// A value of a function: a variable of the text with its number, which is a float or its bits, or a constant.
#[derive(Clone, Copy)]
enum Value {
    Float(u32),
    Bits(u32),
    Const(u32),
}

impl Value {
    fn float(self) -> String {
        match self {
            Value::Float(t) => format!("t{t}"),
            Value::Bits(t) => format!("f32_of(t{t})"),
            Value::Const(bits) => format!("f32_of({bits:#x}u)"),
        }
    }

    fn bits(self) -> String {
        match self {
            Value::Float(t) => format!("bits_of(t{t})"),
            Value::Bits(t) => format!("t{t}"),
            Value::Const(bits) => format!("{bits:#x}u"),
        }
    }

    /// Whether the mask is set.
    fn is_set(self) -> String {
        format!("is_set({})", self.bits())
    }
}

/// Writes a function, one statement per operation.
#[derive(Default)]
struct Statements {
    text: RefCell<String>,
    count: Cell<u32>,
    /// Where the function is not right.
    fails: Cell<Option<Value>>,
}

impl Statements {
    fn next(&self) -> u32 {
        self.count.set(self.count.get() + 1);
        self.count.get() - 1
    }

    fn declare(&self, ty: &str, expression: &str) -> u32 {
        let number = self.next();
        _ = writeln!(self.text.borrow_mut(), "  const {ty} t{number} = {expression};");
        number
    }

    fn float_value(&self, expression: &str) -> Value {
        Value::Float(self.declare("f32", expression))
    }

    fn bits_value(&self, expression: &str) -> Value {
        Value::Bits(self.declare("u32", expression))
    }
}

/// Operations as expressions over their operands, seen as floats or bits.
macro_rules! expressions {
    ($($name:ident($($arg:ident),+) $result:ident $expression:literal of $as:ident;)*) => {$(
        fn $name(&self, $($arg: Value),+) -> Value {
            $(let $arg = $arg.$as();)+
            self.$result(&format!($expression))
        }
    )*};
}

impl Arith for Statements {
    type V = Value;

    expressions! {
        add(a, b) float_value "{a} + {b}" of float;
        sub(a, b) float_value "{a} - {b}" of float;
        mul(a, b) float_value "{a} * {b}" of float;
        div(a, b) float_value "{a} / {b}" of float;
        fma(a, b, c) float_value "fma({a}, {b}, {c})" of float;
        min(a, b) float_value "{a} < {b} ? {a} : {b}" of float;
        max(a, b) float_value "{a} > {b} ? {a} : {b}" of float;
        trunc(a) float_value "trunc({a})" of float;
        lt(a, b) bits_value "mask({a} < {b})" of float;
        le(a, b) bits_value "mask({a} <= {b})" of float;
        eq(a, b) bits_value "mask({a} == {b})" of float;
        is_nan(a) bits_value "mask({a} != {a})" of float;
        and(a, b) bits_value "{a} & {b}" of bits;
        andn(a, b) bits_value "~{a} & {b}" of bits;
        or(a, b) bits_value "{a} | {b}" of bits;
        xor(a, b) bits_value "{a} ^ {b}" of bits;
        add_int(a, b) bits_value "{a} + {b}" of bits;
        sub_int(a, b) bits_value "{a} - {b}" of bits;
        float(a) float_value "(f32)(i32){a}" of bits;
    }

    fn bits(&self, bits: u32) -> Value {
        Value::Const(bits)
    }

    fn pick(&self, mask: Value, yes: Value, no: Value) -> Value {
        self.bits_value(&format!("{} ? {} : {}", mask.is_set(), yes.bits(), no.bits()))
    }

    fn shl(&self, a: Value, by: u8) -> Value {
        self.bits_value(&format!("{} << {by}", a.bits()))
    }

    fn shr(&self, a: Value, by: u8) -> Value {
        self.bits_value(&format!("{} >> {by}", a.bits()))
    }

    fn sar(&self, a: Value, by: u8) -> Value {
        self.bits_value(&format!("(u32)((i32){} >> {by})", a.bits()))
    }

    fn check(&self, fails: Value) {
        self.fails.set(Some(fails));
    }
}

/// The text of an operation's function in single precision; `None` if it is none of `math.rs`.
fn text_of(op: KernelOp) -> Option<String> {
    let statements = Statements::default();
    let args: Vec<Value> = (0..op.arity()).map(|_| Value::Float(statements.next())).collect();
    let result = math::function(&statements, op, args[0], args[op.arity() - 1])?.float();
    // The prelude has the short cuts, and calls this for all other exponents.
    let any = matches!(op, KernelOp::Pow).then_some("any_pow");
    let name = any.or_else(|| function(op, ComputeType::F32, ComputeType::F32))?;
    let result = match (statements.fails.get(), platform(op)) {
        (Some(fails), Some(platform)) => {
            let args: Vec<String> = args.iter().map(|a| a.float()).collect();
            format!("{} ? ::{platform}({}) : {result}", fails.is_set(), args.join(", "))
        }
        _ => result,
    };
    let parameters: Vec<String> = args.iter().map(|a| format!("f32 {}", a.float())).collect();
    let body = statements.text.into_inner();
    Some(format!("D f32 {name}({}) {{\n{body}  return {result};\n}}\n", parameters.join(", ")))
}

/// The text of all functions.
pub(super) fn all() -> String {
    const FUNCTIONS: [KernelOp; 17] = [
        KernelOp::RoundBf16,
        KernelOp::Exp,
        KernelOp::Exp2,
        KernelOp::Expm1,
        KernelOp::Log,
        KernelOp::Log2,
        KernelOp::Log10,
        KernelOp::Log1p,
        KernelOp::Sin,
        KernelOp::Cos,
        KernelOp::Tan,
        KernelOp::Sinh,
        KernelOp::Cosh,
        KernelOp::Tanh,
        KernelOp::Erf,
        KernelOp::FMod,
        KernelOp::Pow,
    ];
    FUNCTIONS.into_iter().filter_map(text_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_a_statement_per_operation() {
        insta::assert_snapshot!(text_of(KernelOp::Cosh).expect("a function"));
    }

    #[test]
    fn what_a_function_is_not_made_for_is_the_platforms() {
        let text = text_of(KernelOp::Sin).expect("a function");
        assert!(text.contains("? ::sinf(t0) :"), "{text}");
    }
}
