//! The program as TorchScript IR, in the form `torch._C.parse_ir` reads.
//!
//! A second opinion on lowering: real TorchScript runs this text and must give the same values. Runtime numbers are
//! graph inputs after the tensors (`%n0 : float`). Since TorchScript writes in place for good, every written operand is
//! cloned first; which writes really happen in place is in the listing ([`Program::text`]).

use std::{collections::HashMap, fmt::Write};

use ltc_ir::{Arg, ArgFlags, DType, GraphNode, Op, ValueId};
use smallvec::SmallVec;

use super::{Program, print};
use crate::fusion::liveness::{self, Schedule};

/// One value an operator returns, as its schema says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Return {
    /// A new tensor.
    Tensor,
    /// A list of new tensors.
    List,
    /// A written argument.
    Written,
}

impl Program {
    /// The program as TorchScript IR.
    ///
    /// # Errors
    /// Says what of it TorchScript cannot express: views that change the element type, absent results, draws from a
    /// default generator, generator states used twice.
    pub fn torchscript(&self) -> Result<String, String> {
        let mut p = Printer {
            program: self,
            schedule: Schedule::new(&self.graph),
            body: String::new(),
            constants: HashMap::new(),
            next: 0,
            values: vec![Named::default(); self.graph.value_count()],
        };
        for i in 0..self.graph.params().len() {
            p.values[i].name = format!("%p{i}");
        }
        let mut numbers = Vec::new();
        for (index, node) in self.graph.nodes().iter().enumerate() {
            number_inputs(node, &mut numbers)?;
            p.node(index, node).map_err(|reason| format!("{}: {reason}", node.op()))?;
        }
        let inputs = self.graph.params().iter().enumerate().map(|(i, l)| format!("%p{i} : {}", value_type(l.dtype())));
        let numbers = numbers.iter().map(|(at, ty)| format!("%n{at} : {ty}"));
        let inputs: Vec<String> = inputs.chain(numbers).collect();
        let result = p.result();
        Ok(format!("graph({}):\n{}  return ({result})\n", inputs.join(", "), p.body))
    }
}

fn value_type(dtype: DType) -> &'static str {
    if dtype == DType::RngState { "Generator" } else { "Tensor" }
}

fn number_type(dtype: DType) -> Result<&'static str, String> {
    match dtype {
        DType::F64 => Ok("float"),
        DType::I64 => Ok("int"),
        DType::Bool => Ok("bool"),
        DType::C128 => Ok("complex"),
        other => Err(format!("a host number of type {other}")),
    }
}

/// Appends the runtime numbers of a node: position of the first word, type.
fn number_inputs(node: &GraphNode, inputs: &mut Vec<(usize, &'static str)>) -> Result<(), String> {
    let base = node.first_number as usize;
    for arg in node.args() {
        match arg {
            Arg::HostScalar { number, dtype, .. } | Arg::Number { number, dtype } => {
                inputs.push((base + number, number_type(dtype)?));
            }
            Arg::Float { number } => inputs.push((base + number, "float")),
            Arg::Numbers { dtypes, first_number } => {
                let mut at = base + first_number;
                for dtype in dtypes.iter().filter_map(|&d| DType::from_code(d as u8)) {
                    inputs.push((at, number_type(dtype)?));
                    at += ltc_ir::args::scalar_words(dtype);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The returns of a schema: what stands after its arrow.
fn returns(schema: &str) -> Option<SmallVec<[Return; 3]>> {
    let text = schema.rsplit_once("->")?.1.trim();
    let one = |part: &str| {
        let part = part.trim();
        match part.split_whitespace().next()? {
            t if t.contains('!') => Some(Return::Written),
            "Tensor" => Some(Return::Tensor),
            "Tensor[]" => Some(Return::List),
            _ => None,
        }
    };
    match text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        Some("") => Some(SmallVec::new()),
        Some(parts) => parts.split(',').map(one).collect(),
        None => one(text).map(|r| SmallVec::from_iter([r])),
    }
}

/// A value of the graph in the text.
#[derive(Clone, Default)]
struct Named {
    name: String,
    /// Offset of the value in its own storage: views of views add up, all else starts at 0.
    offset: i64,
}

struct Printer<'a> {
    program: &'a Program,
    schedule: Schedule,
    body: String,
    /// Constants already printed, by type and text.
    constants: HashMap<(&'static str, String), String>,
    next: usize,
    values: Vec<Named>,
}

impl Printer<'_> {
    fn slot(&self, v: ValueId) -> usize {
        self.program.graph.slot(v)
    }

    fn name(&self, v: ValueId) -> &str {
        &self.values[self.slot(v)].name
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%t{}", self.next)
    }

    fn line(&mut self, text: &str) {
        // Infallible: a String takes all that is written to it.
        let _ = writeln!(self.body, "  {text}");
    }

    /// The one value the graph returns: its output, or a tuple of them.
    fn result(&mut self) -> String {
        let graph = &self.program.graph;
        let outputs: Vec<&str> = graph.outputs().iter().map(|&o| self.name(o)).collect();
        if let [only] = outputs[..] {
            return only.into();
        }
        let types: Vec<&str> = graph.outputs().iter().map(|&o| value_type(graph.layout(o).dtype())).collect();
        let (types, tuple) = (types.join(", "), format!("prim::TupleConstruct({})", outputs.join(", ")));
        self.define(&format!("({types})"), &tuple)
    }

    /// `name : type = expression`.
    fn define(&mut self, ty: &str, expression: &str) -> String {
        let name = self.fresh();
        self.line(&format!("{name} : {ty} = {expression}"));
        name
    }

    fn constant(&mut self, ty: &'static str, value: String) -> String {
        if let Some(name) = self.constants.get(&(ty, value.clone())) {
            return name.clone();
        }
        let name = match ty {
            "NoneType" => self.define(ty, "prim::Constant()"),
            _ => self.define(ty, &format!("prim::Constant[value={value}]()")),
        };
        self.constants.insert((ty, value), name.clone());
        name
    }

    fn int(&mut self, v: i64) -> String {
        self.constant("int", v.to_string())
    }

    fn none(&mut self) -> String {
        self.constant("NoneType", String::new())
    }

    fn float(&mut self, v: f64) -> Result<String, String> {
        if v.is_finite() { Ok(self.constant("float", format!("{v:?}"))) } else { Err(format!("the constant {v}")) }
    }

    fn list(&mut self, ty: &str, items: &[String]) -> String {
        self.define(ty, &format!("prim::ListConstruct({})", items.join(", ")))
    }

    fn ints(&mut self, values: &[i64]) -> String {
        let items: Vec<String> = values.iter().map(|&v| self.int(v)).collect();
        self.list("int[]", &items)
    }

    fn clone_of(&mut self, name: &str) -> String {
        let none = self.none();
        self.define("Tensor", &format!("aten::clone({name}, {none})"))
    }

    fn node(&mut self, index: usize, node: &GraphNode) -> Result<(), String> {
        let first = self.program.graph.params().len() + node.first_result as usize;
        let named = match node.op() {
            op if op == Op::read_view() => self.read_view(node)?,
            op if op == Op::write_view() => self.write_view(node)?,
            op if op == Op::empty() => Named { name: self.empty(node, 0), offset: 0 },
            op if op == Op::seed() => {
                let device = self.constant("Device", "\"cpu\"".into());
                let seed = format!("aten::Generator({device}, %n{})", node.first_number);
                Named { name: self.define("Generator", &seed), offset: 0 }
            }
            _ => return self.call(index, node, first),
        };
        self.values[first] = named;
        Ok(())
    }

    /// Memory of the layout of result `i`.
    fn empty(&mut self, node: &GraphNode, i: usize) -> String {
        let layout = &node.results()[i];
        let (sizes, strides) = (self.ints(layout.sizes()), self.ints(layout.strides()));
        let dtype = self.int(layout.dtype() as i64);
        let (none, device) = (self.none(), self.constant("Device", "\"cpu\"".into()));
        self.define("Tensor", &format!("aten::empty_strided({sizes}, {strides}, {dtype}, {none}, {device}, {none})"))
    }

    fn read_view(&mut self, node: &GraphNode) -> Result<Named, String> {
        let base = node.operands[0];
        let offset = last_int(node)? + self.values[self.slot(base)].offset;
        if self.program.graph.layout(base).dtype() != node.results()[0].dtype() {
            return Err("a view that changes the element type".into());
        }
        let (sizes, strides) = (self.ints(node.results()[0].sizes()), self.ints(node.results()[0].strides()));
        let (at, base) = (self.int(offset), self.name(base).to_string());
        let name = self.define("Tensor", &format!("aten::as_strided({base}, {sizes}, {strides}, {at})"));
        Ok(Named { name, offset })
    }

    fn write_view(&mut self, node: &GraphNode) -> Result<Named, String> {
        if self.program.graph.layout(node.operands[0]).dtype() != self.program.graph.layout(node.operands[1]).dtype() {
            return Err("a view that changes the element type".into());
        }
        let lists: Vec<Vec<i64>> = node
            .args()
            .filter_map(|a| match a {
                Arg::Ints(w) => Some(w.iter().map(|&x| x as i64).collect()),
                _ => None,
            })
            .collect();
        let [sizes, strides] = &lists[..] else { return Err("malformed view".into()) };
        let (old, new) = (self.name(node.operands[0]).to_string(), self.name(node.operands[1]).to_string());
        let base = self.clone_of(&old);
        let (sizes, strides) = (self.ints(sizes), self.ints(strides));
        let (at, no) = (self.int(last_int(node)?), self.constant("bool", "0".into()));
        let region = self.define("Tensor", &format!("aten::as_strided({base}, {sizes}, {strides}, {at})"));
        self.define("Tensor", &format!("aten::copy_({region}, {new}, {no})"));
        Ok(Named { name: base, offset: 0 })
    }

    fn call(&mut self, index: usize, node: &GraphNode, first: usize) -> Result<(), String> {
        let schema = ltc_torch_sys::op_schema(node.op().name()).ok_or("this libtorch has no such operator")?;
        let returns = returns(&schema).ok_or("a result that is no tensor")?;
        let (args, mut results) = self.arguments(index, node, &schema)?;
        let generators = liveness::generators(node);
        let new = node.results().len() - results.len() - generators.len();
        let plain = returns.iter().filter(|r| **r == Return::Tensor).count();
        let lists = returns.iter().filter(|r| **r == Return::List).count();
        if plain > new || (lists == 0 && plain != new) || lists > 1 {
            return Err("an absent result".into());
        }
        let (mut targets, mut made) = (Vec::new(), Vec::new());
        for r in &returns {
            let name = self.fresh();
            targets.push(format!("{name} : {}", if *r == Return::List { "Tensor[]" } else { "Tensor" }));
            made.push((*r, name));
        }
        let symbol = node.op().name().split('.').next().unwrap_or_default();
        let assign = if targets.is_empty() { String::new() } else { format!("{} = ", targets.join(", ")) };
        self.line(&format!("{assign}{symbol}({})", args.join(", ")));
        self.reread_written_lists(node, &args, &mut results);
        for (r, name) in made {
            match r {
                Return::Written => {}
                Return::Tensor => results.push(name),
                Return::List => results.extend(self.unpack(&name, new - plain)),
            }
        }
        for &g in &generators {
            results.push(self.name(node.operands[g as usize]).to_string());
        }
        for (i, name) in results.into_iter().enumerate() {
            self.values[first + i] = Named { name, offset: 0 };
        }
        Ok(())
    }

    /// Takes the tensors of written lists out of the lists again: TorchScript drops a write to a list nobody reads.
    fn reread_written_lists(&mut self, node: &GraphNode, args: &[String], written: &mut [String]) {
        let mut next = 0;
        for (arg, name) in node.args().zip(args) {
            match arg {
                Arg::Tensor { flags, .. } if flags.has(ArgFlags::MUT) => next += 1,
                Arg::Tensors { len, flags, .. } if flags.has(ArgFlags::MUT) => {
                    for item in self.unpack(name, len) {
                        written[next] = item;
                        next += 1;
                    }
                }
                _ => {}
            }
        }
    }

    fn unpack(&mut self, list: &str, count: usize) -> Vec<String> {
        let items: Vec<String> = (0..count).map(|_| self.fresh()).collect();
        if count > 0 {
            let typed: Vec<String> = items.iter().map(|i| format!("{i} : Tensor")).collect();
            self.line(&format!("{} = prim::ListUnpack({list})", typed.join(", ")));
        }
        items
    }

    /// Names of the arguments, and of the written ones among them.
    fn arguments(
        &mut self,
        index: usize,
        node: &GraphNode,
        schema: &str,
    ) -> Result<(Vec<String>, Vec<String>), String> {
        let (mut args, mut written) = (Vec::new(), Vec::new());
        let number = |at: usize| format!("%n{}", node.first_number as usize + at);
        let has_generator = schema.contains("Generator");
        for arg in node.args() {
            let text = match arg {
                Arg::None => self.none(),
                Arg::Tensor { operand, flags } => match operand {
                    Some(i) => self.operand(node, i, flags, &mut written),
                    None => {
                        let name = self.empty(node, written.len());
                        written.push(name.clone());
                        name
                    }
                },
                // `mul.Scalar` promotes as the wrapped number did; a tensor made of the number would not.
                Arg::HostScalar { number: at, wrapped: true, .. } if has_scalar_twin(node.op()) => number(at),
                Arg::HostScalar { number: at, .. } => {
                    self.define("Tensor", &format!("prim::NumToTensor({})", number(at)))
                }
                Arg::Int(v) => self.int(v),
                Arg::Bool(v) => self.constant("bool", (v as i64).to_string()),
                Arg::Float { number: at } | Arg::Number { number: at, .. } => number(at),
                Arg::Str { words, len } => self.constant("str", format!("{:?}", print::string(words, len))),
                Arg::Ints(words) => self.ints(&words.iter().map(|&w| w as i64).collect::<Vec<_>>()),
                Arg::Floats(words) => {
                    let items: Result<Vec<_>, _> = words.iter().map(|&w| self.float(f64::from_bits(w))).collect();
                    self.list("float[]", &items?)
                }
                Arg::Bools(words) => {
                    let items: Vec<_> =
                        words.iter().map(|&w| self.constant("bool", u64::from(w != 0).to_string())).collect();
                    self.list("bool[]", &items)
                }
                Arg::Tensors { len, mask, first_operand, flags } => {
                    let (mut items, mut next, mut absent) = (Vec::new(), first_operand, false);
                    for i in 0..len {
                        if mask[i / 64] >> (i % 64) & 1 == 1 {
                            items.push(self.operand(node, next, flags, &mut written));
                            next += 1;
                        } else if flags.has(ArgFlags::MUT) {
                            return Err("an absent tensor in a written list".into());
                        } else {
                            items.push(self.none());
                            absent = true;
                        }
                    }
                    self.list(if absent { "Tensor?[]" } else { "Tensor[]" }, &items)
                }
                Arg::Numbers { dtypes, first_number } => {
                    let (mut items, mut at) = (Vec::new(), first_number);
                    for dtype in dtypes.iter().filter_map(|&d| DType::from_code(d as u8)) {
                        items.push(number(at));
                        at += ltc_ir::args::scalar_words(dtype);
                    }
                    self.list("Scalar[]", &items)
                }
                Arg::Generator { .. } if !has_generator => return Err("a draw from the default generator".into()),
                Arg::Generator { operand } => {
                    if !self.schedule.dies(index, operand) {
                        return Err("a generator state that is used twice".into());
                    }
                    self.name(node.operands[operand]).to_string()
                }
                Arg::Device => self.constant("Device", "\"cpu\"".into()),
            };
            args.push(text);
        }
        Ok((args, written))
    }

    fn operand(&mut self, node: &GraphNode, i: usize, flags: ArgFlags, written: &mut Vec<String>) -> String {
        let name = self.name(node.operands[i]).to_string();
        if !flags.has(ArgFlags::MUT) {
            return name;
        }
        let copy = self.clone_of(&name);
        written.push(copy.clone());
        copy
    }
}

/// Whether the operator has an overload that takes a `Scalar` where this one takes its second tensor.
fn has_scalar_twin(op: Op) -> bool {
    op.name().strip_suffix(".Tensor").is_some_and(|base| ltc_torch_sys::op_schema(&format!("{base}.Scalar")).is_some())
}

/// The offset of a view: its last argument.
fn last_int(node: &GraphNode) -> Result<i64, String> {
    match node.args().last() {
        Some(Arg::Int(v)) => Ok(v),
        _ => Err("malformed view".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Return::*, *};

    #[test]
    fn returns_are_read_from_schemas() {
        let check = |schema: &str, expect: &[Return]| assert_eq!(&returns(schema).expect(schema)[..], expect);
        check("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", &[Tensor]);
        check("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)", &[Written]);
        check("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor[]", &[List]);
        check("aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()", &[]);
        check("aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", &[Tensor, Tensor]);
        check("aten::max.dim_max(Tensor self) -> (Tensor(a!) values, Tensor(b!) indices)", &[Written, Written]);
        assert_eq!(returns("aten::item(Tensor self) -> Scalar"), None);
    }
}
