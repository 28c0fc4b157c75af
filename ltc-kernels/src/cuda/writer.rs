//! A kernel's function while it is written.

use std::fmt::{Display, Write};

use ltc_ir::DType;
use xxhash_rust::xxh3::xxh3_128;

use super::{
    MAX_PARAMETERS, Unsupported,
    launch::{Launch, Param, Source},
    ops::{function, type_name},
};
use crate::{
    ir::{ComputeType, Inst, KernelIr},
    space::{Access, IterationSpace},
};

/// Offsets and counts below this are computed in 32 bits, with room for a step of all threads.
const NARROW: i64 = 1 << 30;

/// An input or output as the text has it.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    /// `p` and its number for an input, `o` for an output.
    pub(super) name: String,
    /// The type of its elements in memory.
    pub(super) memory: &'static str,
    pub(super) dtype: DType,
    pub(super) access: Access,
    /// Which operand of the space it is.
    pub(super) position: usize,
}

impl Operand {
    pub(super) fn is_strided(&self) -> bool {
        self.access == Access::Strided
    }

    pub(super) fn is_dense(&self) -> bool {
        self.access == Access::Dense
    }

    /// The text of the element that is `element` in order, when [`Writer::locate`] was told of strided ones.
    pub(super) fn at(&self, element: &str) -> String {
        let name = &self.name;
        match self.access {
            Access::Dense => format!("{name}[{element}]"),
            Access::Uniform => format!("{name}[0]"),
            Access::Strided => format!("{name}[at_{name}]"),
        }
    }
}

/// The outputs of a kernel, then its inputs, as operands of a text.
///
/// # Errors
/// If elements of some dtype cannot be read or written.
pub(super) fn operands(
    outputs: impl ExactSizeIterator<Item = (DType, Access)>,
    inputs: impl Iterator<Item = (DType, Access)>,
) -> Result<(Vec<Operand>, Vec<Operand>), Unsupported> {
    let count = outputs.len();
    let operand = |(side, first): (&str, usize), i: usize, (dtype, access): (DType, Access)| {
        let memory = memory_name(dtype).ok_or(Unsupported::Elements(dtype))?;
        Ok(Operand { name: format!("{side}{i}"), memory, dtype, access, position: first + i })
    };
    let outputs = outputs.enumerate().map(|(i, o)| operand(("o", 0), i, o)).collect::<Result<_, _>>()?;
    let inputs = inputs.enumerate().map(|(i, p)| operand(("p", count), i, p)).collect::<Result<_, _>>()?;
    Ok((outputs, inputs))
}

/// The type of elements in memory.
fn memory_name(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::F16 => Some("f16"),
        DType::BF16 => Some("bf16"),
        _ => ComputeType::of(dtype).map(type_name),
    }
}

/// Whether offsets and counts of a space fit into 32 bits.
pub(super) fn is_narrow(space: &IterationSpace, operands: usize) -> bool {
    let extents = (0..operands).map(|operand| space.extent(operand));
    extents.chain([space.element_count() as i64]).all(|extent| extent < NARROW)
}

/// A function while it is written: its parameters, and its lines so far.
#[derive(Default)]
pub(super) struct Writer {
    params: Vec<(String, Param)>,
    declared: Vec<String>,
    body: String,
    depth: usize,
}

impl Writer {
    /// A writer of a function on these operands, whose indices are of type `I`.
    pub(super) fn new(outputs: &[Operand], inputs: &[Operand], narrow: bool) -> Writer {
        let mut w = Writer { depth: 1, ..Writer::default() };
        for (i, o) in outputs.iter().enumerate() {
            w.param(&format!("{}* ", o.memory), &o.name, Param::Output(i as u32));
        }
        for (i, p) in inputs.iter().enumerate() {
            w.param(&format!("const {}* ", p.memory), &p.name, Param::Input(i as u32));
        }
        w.line(format_args!("typedef {} I;", if narrow { "i32" } else { "i64" }));
        w
    }

    pub(super) fn line(&mut self, line: impl Display) {
        _ = writeln!(self.body, "{:1$}{line}", "", 2 * self.depth);
    }

    /// Begins a block.
    pub(super) fn open(&mut self, head: impl Display) {
        let head = head.to_string();
        self.line(format_args!("{head}{}{{", if head.is_empty() { "" } else { " " }));
        self.depth += 1;
    }

    pub(super) fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    fn param(&mut self, ty: &str, name: &str, param: Param) {
        if self.params.iter().all(|(known, _)| known != name) {
            self.declared.push(format!("{ty}{name}"));
            self.params.push((name.to_owned(), param));
        }
    }

    /// The text of a size or stride, which is a parameter of this name.
    pub(super) fn size(&mut self, name: &str, size: i64) -> String {
        self.param("i64 ", name, Param::Size(size));
        format!("(I){name}")
    }

    /// Makes `scratch` the memory that the launches of a kernel share.
    pub(super) fn scratch(&mut self) {
        self.param("u64* ", "scratch", Param::Scratch);
    }

    /// Says where element `element` of the strided ones of these operands lies, in variables that [`Operand::at`]
    /// reads. Names of sizes begin with `prefix`.
    pub(super) fn locate(&mut self, prefix: &str, space: &IterationSpace, operands: &[&Operand], element: &str) {
        let strided: Vec<&&Operand> = operands.iter().filter(|operand| operand.is_strided()).collect();
        let Some(inner) = space.dims().len().checked_sub(1).filter(|_| !strided.is_empty()) else { return };
        let mut rest = element.to_owned();
        let mut index = vec![String::new(); inner + 1];
        for d in (1..=inner).rev() {
            let size = self.size(&format!("{prefix}size{d}"), space.dims()[d] as i64);
            index[d] = format!("{prefix}x{d}");
            self.line(format_args!("const I {} = {rest} % {size};", index[d]));
            self.line(format_args!("const I {prefix}rest{d} = {rest} / {size};"));
            rest = format!("{prefix}rest{d}");
        }
        index[0] = rest;
        for operand in strided {
            let part = |(d, x): (usize, &String)| format!("{x} * {}", self.stride(space, operand, d));
            let sum: Vec<String> = index.iter().enumerate().map(part).collect();
            self.line(format_args!("const I at_{} = {};", operand.name, sum.join(" + ")));
        }
    }

    /// The text of an operand's stride.
    pub(super) fn stride(&mut self, space: &IterationSpace, operand: &Operand, d: usize) -> String {
        let stride = space.strides(operand.position)[d] as i64;
        self.size(&format!("{}_stride{d}", operand.name), stride)
    }

    /// Writes those values of an IR that `wanted` names, each as a variable `v` and its number; `read` is the text of
    /// an input.
    ///
    /// # Errors
    /// If the prelude has no function for an operation.
    pub(super) fn values(
        &mut self,
        ir: &KernelIr,
        wanted: impl Fn(usize) -> bool,
        read: impl Fn(u32) -> String,
    ) -> Result<(), Unsupported> {
        for (v, &(inst, ty)) in ir.values.iter().enumerate().filter(|(v, _)| wanted(*v)) {
            let value = match inst {
                Inst::Input(i) => read(i),
                Inst::Number(word, dtype) => self.number(word, dtype, ty),
                Inst::Const(bits) => constant(ty, bits),
                Inst::Op(op, args) => {
                    let args = &args[..op.arity()];
                    let from = ir.ty(args[args.len() - 1]);
                    let name = function(op, from, ty).ok_or(Unsupported::Operation(op, from))?;
                    let args: Vec<String> = args.iter().map(|a| format!("v{}", a.0)).collect();
                    format!("{name}({})", args.join(", "))
                }
            };
            self.line(format_args!("const {} v{v} = {value};", type_name(ty)));
        }
        Ok(())
    }

    /// The text of a runtime number, whose parameter has the bits of its type.
    fn number(&mut self, word: u32, dtype: DType, ty: ComputeType) -> String {
        let param = Param::Number(word, dtype, ty);
        let name = match self.params.iter().find(|(_, known)| *known == param) {
            Some((name, _)) => name.clone(),
            None => {
                let numbers = self.params.iter().filter(|(_, known)| matches!(known, Param::Number(..))).count();
                format!("n{numbers}")
            }
        };
        self.param("u64 ", &name, param);
        match ty {
            ComputeType::Bool | ComputeType::U8 => format!("(u8){name}"),
            ComputeType::I32 => format!("(i32){name}"),
            ComputeType::I64 => format!("(i64){name}"),
            ComputeType::F32 => format!("f32_of((u32){name})"),
            ComputeType::F64 => format!("f64_of({name})"),
        }
    }

    /// The function, launched with so many blocks of so many threads; its name begins with `kind`.
    ///
    /// # Errors
    /// If it has too many parameters.
    pub(super) fn finish(self, kind: &str, grid: u32, block: u32) -> Result<Launch, Unsupported> {
        if self.params.len() > MAX_PARAMETERS {
            return Err(Unsupported::Parameters(self.params.len()));
        }
        let params = self.declared.join(",\n    ");
        let after = format!("(\n    {params}) {{\n{}}}\n", self.body);
        let name = format!("{kind}_{:032x}", xxh3_128(format!("{block} {after}").as_bytes()));
        let text = format!("extern \"C\" __global__ void __launch_bounds__({block})\n{name}{after}");
        let params = self.params.into_iter().map(|(_, param)| param).collect();
        Ok(Launch { source: Source { name, text }, grid, block, params })
    }
}

/// The text of a constant.
fn constant(ty: ComputeType, bits: u64) -> String {
    match ty {
        ComputeType::Bool | ComputeType::U8 => format!("(u8){bits}"),
        ComputeType::I32 => format!("(i32){bits:#x}u"),
        ComputeType::I64 => format!("(i64){bits:#x}ull"),
        ComputeType::F32 => format!("f32_of({bits:#x}u)"),
        ComputeType::F64 => format!("f64_of({bits:#x}ull)"),
    }
}
