//! The lowered program as text: one line per step, with frees and in-place marks. Deterministic.

use std::{fmt::Write, ops::Range};

use ltc_ir::{Arg, ArgFlags, DType, GraphNode, args::scalar_words};

use super::{Instr, InstrKind, InstrResult, MemoryPlan, Program};
use crate::fusion::liveness::OperandUse;

impl Program {
    /// The listing, then the TorchScript form (or why there is none).
    ///
    /// `s0` is a slot, `n0` a word of the runtime numbers. `s3!` is written in place if nobody else holds it (for
    /// inputs: if it was donated), `s3^` is written to a copy; `materialize` is a copy of a view with memory of its
    /// own; `alloc` is memory for what later steps join, kernels among them, and `copy_slice` a slice of it that is
    /// copied there.
    pub fn text(&self) -> String {
        let mut out = self.listing();
        match self.torchscript() {
            Ok(text) => out.push_str(&text),
            Err(reason) => {
                // Infallible: a String takes all that is written to it. So below.
                let _ = writeln!(out, "# no TorchScript form: {reason}");
            }
        }
        out
    }

    /// The program without its TorchScript form ([`Program::text`]).
    pub fn listing(&self) -> String {
        let mut out = String::new();
        let graph = &self.lowered;
        let _ = writeln!(
            out,
            "# {} inputs, {} numbers, {} steps, {} slots, {} outputs",
            graph.params().len(),
            graph.number_count(),
            self.instrs.len(),
            self.slots,
            graph.outputs().len()
        );
        for (name, times) in &self.rewrites {
            let _ = writeln!(out, "# rewritten: {name} {times}x");
        }
        if let Some(MemoryPlan { budget, recorded, peak, moved, rematerialised }) = self.memory {
            let _ = writeln!(
                out,
                "# memory: at most {peak} bytes planned, {recorded} as recorded, budget {budget}; {moved} steps moved, \
                 {rematerialised} values rematerialised"
            );
        }
        for region in &self.parallel_regions {
            let (Range { start, end }, there) = (&region.instrs, region.worker.len());
            let _ = writeln!(out, "# branches: of steps {start} to {end}, {there} on another thread");
        }
        for (i, (layout, value_use)) in graph.params().iter().zip(&self.params).enumerate() {
            let _ = write!(out, "s{i}: {layout} = input");
            self.write_outputs(&mut out, self.outputs(value_use));
            out.push('\n');
        }
        for instr in &self.instrs {
            self.write_instr(&mut out, instr);
        }
        out
    }

    /// What each fused kernel computes for one element, in order.
    pub fn kernels(&self) -> String {
        let mut out = String::new();
        for instr in &self.instrs {
            if let InstrKind::Fused(fused) = &instr.kind {
                let _ = write!(out, "# {}\n{}", self.instr_name(instr), fused.kernel.ir());
            }
        }
        out
    }

    /// What a step does, and the sizes of its first result.
    pub(crate) fn instr_name(&self, instr: &Instr) -> String {
        let name = |n: u32| self.lowered.nodes()[n as usize].op().short_name();
        let mut text = match &instr.kind {
            InstrKind::Fused(fused) => {
                format!("fused[{}]", fused.nodes.iter().map(|&n| name(n)).collect::<Vec<_>>().join(" "))
            }
            InstrKind::Materialize(_) => "materialize".into(),
            InstrKind::Alloc(_) => "alloc".into(),
            InstrKind::CopySlice(_) => "copy_slice".into(),
            InstrKind::Boxed(_) | InstrKind::Product(_) | InstrKind::Bernoulli(_) | InstrKind::MaxPool(_) => {
                name(instr.node).into()
            }
        };
        if let Some(result) = self.instr_results(instr).first() {
            let _ = write!(text, " {}", result.layout);
        }
        text
    }

    fn write_instr(&self, out: &mut String, instr: &Instr) {
        let node = &self.lowered.nodes()[instr.node as usize];
        let (operands, results) = (self.instr_operands(instr), self.instr_results(instr));
        for (i, result) in results.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            if is_dropped(result) {
                let _ = write!(out, "_: {}", result.layout);
            } else {
                let _ = write!(out, "s{}: {}", result.slot, result.layout);
            }
        }
        let _ = match instr.kind {
            InstrKind::Boxed(_) | InstrKind::Product(_) | InstrKind::Bernoulli(_) => {
                write!(out, " = {}({})", node.op(), arguments(node, operands, instr.numbers.start))
            }
            InstrKind::Materialize(_) => write!(out, " = materialize(s{})", operands[0].slot),
            InstrKind::Alloc(_) => write!(out, " = alloc for {}", node.op()),
            InstrKind::CopySlice(_) => {
                let mark = if operands[0].reusable { "!" } else { "^" };
                write!(out, " = copy_slice(s{}{mark}, s{})", operands[0].slot, operands[1].slot)
            }
            InstrKind::MaxPool(_) => write!(out, " = max_pool(s{})", operands[0].slot),
            InstrKind::Fused(ref fused) => {
                let named = |o: &OperandUse| format!("s{}{}", o.slot, if o.reusable { "!" } else { "" });
                let list: Vec<String> = operands.iter().map(named).collect();
                let (elements, loops) = (fused.kernel.element_count(), fused.kernel.calls());
                let names: Vec<_> =
                    fused.nodes.iter().map(|&n| self.lowered.nodes()[n as usize].op().short_name()).collect();
                write!(out, " = fused({})[{}] {loops} loops, {elements} elements", list.join(", "), names.join(" "))
            }
        };
        for result in results {
            self.write_outputs(out, self.outputs(&result.value_use));
        }
        let freed: Vec<String> = operands.iter().filter(|o| o.last).map(|o| format!("s{}", o.slot)).collect();
        if !freed.is_empty() {
            let _ = write!(out, "  free {}", freed.join(" "));
        }
        out.push('\n');
    }

    fn write_outputs(&self, out: &mut String, outputs: &[u32]) {
        for output in outputs {
            let _ = write!(out, "  output {output}");
        }
    }
}

fn is_dropped(result: &InstrResult) -> bool {
    !result.value_use.used && result.value_use.outputs.is_empty()
}

/// The arguments of a step, in schema order.
fn arguments(node: &GraphNode, operands: &[OperandUse], first_number: u32) -> String {
    let slot = |i: usize, flags: ArgFlags| {
        let operand = &operands[i];
        let mark = match (flags.has(ArgFlags::MUT), operand.reusable) {
            (false, _) => "",
            (true, true) => "!",
            (true, false) => "^",
        };
        format!("s{}{mark}", operand.slot)
    };
    let number = |at: usize, dtype: DType| format!("n{}:{dtype}", first_number as usize + at);
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let write_view = node.op() == ltc_ir::Op::write_view();
    let args = node.args().enumerate().map(|(position, arg)| match arg {
        Arg::None => "none".into(),
        Arg::Tensor { operand: Some(i), flags } => {
            slot(i, if write_view && position == 0 { ArgFlags::MUT } else { flags })
        }
        Arg::Tensor { operand: None, .. } => "fresh".into(),
        Arg::HostScalar { number: at, dtype, wrapped } => {
            format!("{}{}", number(at, dtype), if wrapped { "" } else { "[]" })
        }
        Arg::Int(v) => v.to_string(),
        Arg::Bool(v) => v.to_string(),
        Arg::Float { number: at } => number(at, DType::F64),
        Arg::Number { number: at, dtype } => number(at, dtype),
        Arg::Str { words, len } => format!("{:?}", string(words, len)),
        Arg::Ints(words) => list(words.iter().map(|&w| (w as i64).to_string()).collect()),
        Arg::Floats(words) => list(words.iter().map(|&w| format!("{:?}", f64::from_bits(w))).collect()),
        Arg::Bools(words) => list(words.iter().map(|&w| (w != 0).to_string()).collect()),
        Arg::Tensors { len, mask, first_operand, flags } => {
            let mut next = first_operand;
            let entry = |i: usize| {
                if mask[i / 64] >> (i % 64) & 1 == 0 {
                    return "none".into();
                }
                next += 1;
                slot(next - 1, flags)
            };
            list((0..len).map(entry).collect())
        }
        Arg::Numbers { dtypes, first_number: mut at } => {
            let entry = |&code: &u64| {
                let dtype = DType::from_code(code as u8).unwrap_or(DType::F64);
                at += scalar_words(dtype);
                number(at - scalar_words(dtype), dtype)
            };
            list(dtypes.iter().map(entry).collect())
        }
        Arg::Generator { operand } => slot(operand, ArgFlags::NONE),
        Arg::Device => "device".into(),
    });
    args.collect::<Vec<_>>().join(", ")
}

/// A string argument.
pub(crate) fn string(words: &[u64], len: usize) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take(len).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
