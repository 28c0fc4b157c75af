//! A small backend on `ndarray`: pure Rust, one device, obviously correct rather than fast.
//!
//! The worked example of `docs/add-a-backend.md`, and a third opinion beside libtorch's kernels. It computes floats in
//! double precision and rounds each result to its dtype. Pointwise operators are computed by their expressions in the
//! operator table, so that adding a pointwise row adds it here; the others have kernels by family. What is missing is
//! refused when a graph is compiled, with the operator's name. Draws are its own: seeded, reproducible, but not
//! libtorch's.

mod factory;
mod loss;
mod matmul;
mod movement;
mod norm;
mod pointwise;
mod pool;
mod reduce;
mod reduction;
mod value;

use std::sync::Arc;

use ltc_ir::{
    Arg, DType, ErrorClass, Expr, Func, Graph, GraphNode, LayoutRef, OpClass, OpCode, Scalar, ValueId, expr,
    rules::Call, table::ArgKind,
};

use self::{
    pointwise::V,
    reduction::Reduction,
    value::{Data, Element, Value},
};
use crate::{Backend, BackendError, Buffer, DeviceIndex, ExecError, Executable, HostTensor, Inputs, OutputSink};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceBackend;

/// A node's arguments, operands and results, for its kernel.
struct Kernel<'a> {
    call: Call<'a>,
    operands: &'a [&'a Value],
    results: &'a [LayoutRef],
}

/// Data of the results, in order; cast to their layouts' dtypes afterwards.
type Answer = Result<Vec<Data>, String>;

/// Computes one operator.
type Compute = fn(&Kernel<'_>) -> Answer;

impl<'a> Kernel<'a> {
    fn operand(&self, argument: usize) -> Option<&'a Value> {
        match self.call.args.get(argument)? {
            Arg::Tensor { operand: Some(o), .. } => self.operands.get(*o).copied(),
            _ => None,
        }
    }

    fn need(&self, argument: usize) -> Result<&'a Value, String> {
        self.operand(argument).ok_or_else(|| format!("argument {argument} must be a tensor"))
    }

    fn array<T: Element>(&self, argument: usize) -> Result<ndarray::ArrayD<T>, String> {
        Ok(T::array(&self.need(argument)?.data))
    }

    fn number<T: Element>(&self, argument: usize, default: T) -> T {
        self.call.number(argument).map_or(default, T::number)
    }

    fn floats(&self, argument: usize) -> Result<ndarray::ArrayD<f64>, String> {
        Ok(self.need(argument)?.data.floats())
    }

    fn float(&self, argument: usize, default: f64) -> f64 {
        self.number(argument, default)
    }

    fn dim(&self, argument: usize, rank: usize) -> Result<usize, String> {
        ltc_ir::rules::wrap_dim(self.call.int(argument, 0), rank).map_err(|e| e.to_string())
    }

    /// The state of the generator among the arguments, and what it becomes.
    fn generator(&self) -> Result<factory::Generator, String> {
        let state = |v: &&&Value| matches!(v.data, Data::State(_));
        match self.operands.iter().find(state).map(|v| &v.data) {
            Some(Data::State(s)) => Ok(factory::Generator(*s)),
            _ => Err("no generator".into()),
        }
    }
}

/// The kernel for doubles or for integers, as the first result is.
macro_rules! by_result {
    ($kernel:ident $(, $argument:expr)*) => {
        |k| {
            if k.results[0].dtype().is_floating() {
                $kernel::<f64>(k $(, $argument)*)
            } else {
                $kernel::<std::num::Wrapping<i64>>(k $(, $argument)*)
            }
        }
    };
}
use by_result;

/// The kernel of an operator of the table.
fn kernel(code: OpCode) -> Option<Compute> {
    let families =
        [factory::kernel, loss::kernel, matmul::kernel, movement::kernel, norm::kernel, pool::kernel, reduce::kernel];
    families.iter().find_map(|family| family(code))
}

/// How a node is computed.
enum RefInstr {
    ReadView,
    WriteView,
    Empty,
    Seed,
    Expression(Expr),
    /// By the row's expressions, or by the kernel for calls of which they do not hold.
    Reduction(Reduction, Option<Compute>),
    Kernel(Compute),
}

fn refuse(node: &GraphNode, reason: impl Into<String>) -> BackendError {
    BackendError::CannotLower { op: node.op().name().into(), reason: reason.into() }
}

fn lower(graph: &Graph, node: &GraphNode) -> Result<RefInstr, BackendError> {
    let op = node.op();
    if let Some(l) = node.results().iter().find(|l| !value::supports(l.dtype())) {
        return Err(refuse(node, format!("the reference backend has no dtype {}", l.dtype())));
    }
    match op.name() {
        "ltc::read_view" => return Ok(RefInstr::ReadView),
        "ltc::write_view" => return Ok(RefInstr::WriteView),
        "ltc::empty" => return Ok(RefInstr::Empty),
        "ltc::seed" => return Ok(RefInstr::Seed),
        _ => {}
    }
    let row = op.row().ok_or_else(|| refuse(node, "no row in the operator table"))?;
    if let Some(reduction) = Reduction::of(row) {
        return Ok(RefInstr::Reduction(reduction, kernel(row.code)));
    }
    if let Some(compute) = kernel(row.code) {
        let planes = matches!(row.class, OpClass::Convolution | OpClass::Pooling);
        if planes && node.results().iter().any(|l| matches!(l.rank(), 3 | 5)) {
            return Err(refuse(node, "the reference backend takes batches of planes only"));
        }
        if planes && !node.results()[0].dtype().is_floating() {
            return Err(refuse(node, "the reference backend convolves and pools floats only"));
        }
        let masks = matches!(row.code, OpCode::IndexTensor | OpCode::IndexPut);
        if masks && node.operands.iter().any(|&o| graph.layout(o).dtype() == DType::Bool) {
            return Err(refuse(node, "the reference backend takes no mask as index"));
        }
        return Ok(RefInstr::Kernel(compute));
    }
    match row.expr {
        Some(text) if row.class == OpClass::Pointwise => {
            let names: Vec<&str> = row.arguments.iter().map(|a| a.name).collect();
            let e = Expr::parse(text, &names).map_err(|e| refuse(node, e.to_string()))?;
            match pointwise::missing(&e) {
                Some(f) => Err(refuse(node, format!("the reference backend has no {}", f.name()))),
                None => Ok(RefInstr::Expression(e)),
            }
        }
        _ => Err(refuse(node, "the reference backend has no kernel for it")),
    }
}

/// The value of an argument of an expression.
fn argument(k: &Kernel<'_>, i: usize, kind: ArgKind) -> V {
    match &k.call.args[i] {
        Arg::Tensor { .. } => k.operand(i).map_or(V::Absent, |v| V::Array(v.data.clone())),
        Arg::Str { .. } => {
            let mode = k.call.text(i).and_then(|text| expr::mode(&text));
            mode.map_or(V::Absent, |m| V::Number(Scalar::Int(m.into())))
        }
        Arg::None if kind == ArgKind::Str => V::Number(Scalar::Int(0)),
        Arg::None => V::Absent,
        _ => k.call.number(i).map_or(V::Absent, V::Number),
    }
}

fn expression(k: &Kernel<'_>, e: &Expr) -> Answer {
    let kinds = ltc_ir::table::find(k.call.op).map(|row| row.arguments).unwrap_or_default();
    let number = |x: f64, integer: bool| -> Result<V, String> {
        Ok(V::Number(if integer { Scalar::Int(x as i64) } else { Scalar::Float(x) }))
    };
    // Among bytes, numbers are bytes.
    let bytes = k.results[0].dtype() == DType::U8;
    let input = |i: usize| -> Result<V, String> {
        Ok(match argument(k, i, kinds[i].kind) {
            V::Number(Scalar::Int(n)) if bytes => V::Number(Scalar::Int(n & 0xFF)),
            v => v,
        })
    };
    // Of a boolean, turning bits is negation.
    let is_bool = k.results[0].dtype() == DType::Bool;
    let apply = |f, operands: Vec<V>| match f {
        Func::BitNot if is_bool => pointwise::apply(Func::Not, &operands),
        f => pointwise::apply(f, &operands),
    };
    let data = e.evaluate(&mut { input }, &mut { number }, &mut { apply })?.into_data();
    // An operand that the expression does not read may still have broadcast the result.
    let wanted = value::shape(k.results[0].sizes());
    let spread = |a: &ndarray::ArrayD<f64>| a.broadcast(wanted.clone()).map(|a| a.to_owned());
    let whole = match &data {
        Data::Float(a) => spread(a).map(Data::Float),
        Data::Int(a) => a.broadcast(wanted.clone()).map(|a| Data::Int(a.to_owned())),
        Data::State(_) => None,
    };
    // Results beyond the first are buffers for gradients that recompute.
    let whole = whole.ok_or_else(|| format!("{:?} does not broadcast to {}", data.sizes(), k.results[0]))?;
    Ok(vec![whole; k.results.len()])
}

/// A compiled graph: one step per node.
struct Program {
    graph: Arc<Graph>,
    instrs: Arc<[RefInstr]>,
}

type Slot = Option<Result<Value, Arc<ExecError>>>;

impl Program {
    fn run(&self, index: usize, slots: &[Slot], numbers: &[u64]) -> Result<Vec<Value>, Arc<ExecError>> {
        let node = &self.graph.nodes()[index];
        let fail = |message: String| Arc::new(ExecError::new(node.op().name(), ErrorClass::Runtime, message).at(index));
        let of_operand = |&o: &ValueId| slots[self.graph.slot(o)].as_ref()?.as_ref().err();
        if let Some(error) = node.operands.iter().filter_map(of_operand).min_by_key(|e| e.node) {
            return Err(error.clone());
        }
        let mut operands = Vec::with_capacity(node.operands.len());
        for &o in &node.operands {
            match &slots[self.graph.slot(o)] {
                Some(Ok(value)) => operands.push(value),
                Some(Err(e)) => return Err(e.clone()),
                None => return Err(fail("an operand is missing".into())),
            }
        }
        let layouts: Vec<_> = operands.iter().map(|v| &*v.layout).collect();
        let own = &numbers[node.first_number as usize..][..node.number_count as usize];
        let call = Call::decode(node.op().name(), node.words(), &layouts, own);
        let call = call.ok_or_else(|| fail("malformed arguments".into()))?;
        let results = node.results();
        let k = Kernel { call, operands: &operands, results };
        let view = |v: Option<Value>| v.map(|v| vec![v]).ok_or_else(|| fail("a view outside of its base".into()));
        let offset = || match node.args().last() {
            Some(Arg::Int(offset)) => usize::try_from(offset).map_err(|e| fail(e.to_string())),
            _ => Err(fail("a view without offset".into())),
        };
        let data = match &self.instrs[index] {
            RefInstr::ReadView => return view(operands[0].read_view(&results[0], offset()?)),
            RefInstr::WriteView => {
                let list = |i| k.call.ints(i).unwrap_or_default();
                let (sizes, strides) = (list(2), list(3));
                let layout = ltc_ir::Layout::strided(operands[1].layout.dtype(), &sizes, &strides);
                return view(operands[0].write_view(operands[1], &layout, offset()?));
            }
            RefInstr::Empty => Ok(vec![factory::filled(&results[0], 0.0)]),
            RefInstr::Seed => Ok(vec![Data::State(own.first().copied().unwrap_or(0))]),
            RefInstr::Expression(e) => expression(&k, e),
            RefInstr::Reduction(reduction, otherwise) => match (reduction.run(&k), otherwise) {
                (Some(answer), _) => answer,
                (None, Some(compute)) => compute(&k),
                (None, None) => Err("the reference backend has no kernel for this call".into()),
            },
            RefInstr::Kernel(compute) => compute(&k),
        };
        let data = data.map_err(fail)?;
        if data.len() != results.len() || data.iter().zip(results).any(|(d, l)| d.sizes() != l.sizes()) {
            let sizes: Vec<_> = data.iter().map(Data::sizes).collect();
            return Err(fail(format!("results of sizes {sizes:?} where {results:?} were recorded")));
        }
        Ok(data.iter().zip(results).map(|(d, l)| Value::new(l, d)).collect())
    }
}

impl Executable for Program {
    fn execute(&self, inputs: Inputs, sink: &mut dyn OutputSink) {
        let graph = &self.graph;
        let foreign = |what: &str| Arc::new(ExecError::new("inputs", ErrorClass::Runtime, what));
        let counts_fit = inputs.params.len() == graph.params().len() && inputs.numbers.len() == graph.number_count();
        let mut slots: Vec<Slot> = vec![None; graph.value_count()];
        for (slot, (input, layout)) in slots.iter_mut().zip(inputs.params.into_iter().zip(graph.params())) {
            *slot = Some(input.buffer.and_then(|b| match b.get::<Value>() {
                Some(v) if counts_fit && v.layout == *layout => Ok(v.clone()),
                _ => Err(foreign("a buffer of another backend, or of another layout than promised")),
            }));
        }
        let uses = |output: usize| graph.slot(graph.outputs()[output]);
        let mut told = vec![false; graph.outputs().len()];
        for index in 0..=graph.nodes().len() {
            for output in 0..told.len() {
                if let (false, Some(result)) = (told[output], &slots[uses(output)]) {
                    told[output] = true;
                    sink.output(output, result.clone().map(Buffer::new));
                }
            }
            let Some(node) = graph.nodes().get(index) else { break };
            let values =
                if counts_fit { self.run(index, &slots, &inputs.numbers) } else { Err(foreign("wrong input counts")) };
            if let Err(error) = &values {
                sink.failed(error);
            }
            for (i, id) in node.result_ids().enumerate() {
                slots[graph.slot(id)] = Some(values.as_ref().map(|v| v[i].clone()).map_err(Arc::clone));
            }
        }
    }

    /// Steps hold no sizes: kernels read them from the graph.
    fn respecialised(&self, graph: &Arc<Graph>) -> Option<Result<Arc<dyn Executable>, BackendError>> {
        Some(Ok(Arc::new(Program { graph: graph.clone(), instrs: self.instrs.clone() })))
    }

    fn text(&self) -> String {
        self.graph.to_string()
    }
}

impl Backend for ReferenceBackend {
    fn name(&self) -> &str {
        "reference"
    }

    fn device_count(&self) -> usize {
        1
    }

    fn compile(&self, _: DeviceIndex, graph: &Arc<Graph>) -> Result<Arc<dyn Executable>, BackendError> {
        let instrs = graph.nodes().iter().map(|node| lower(graph, node)).collect::<Result<_, _>>()?;
        Ok(Arc::new(Program { graph: graph.clone(), instrs }))
    }

    fn upload(&self, _: DeviceIndex, host: &HostTensor) -> Result<Buffer, BackendError> {
        Value::from_host(host).map(Buffer::new)
    }

    fn has_slices(&self) -> bool {
        true
    }

    fn slice(&self, _: DeviceIndex, buffer: &Buffer, layout: &LayoutRef, offset: i64) -> Result<Buffer, BackendError> {
        let mismatch = |what: &str| BackendError::BufferMismatch(format!("{what}, for {layout} from {offset} on"));
        let base = buffer.get::<Value>().ok_or_else(|| mismatch("a buffer of another backend"))?;
        let shown = usize::try_from(offset).ok().and_then(|at| base.read_view(layout, at));
        shown.map(Buffer::new).ok_or_else(|| mismatch("a buffer of other elements"))
    }

    fn download(&self, _: DeviceIndex, buffer: &Buffer, layout: &LayoutRef) -> Result<HostTensor, BackendError> {
        match buffer.get::<Value>() {
            Some(v) if v.layout == *layout && v.layout.dtype() != DType::RngState => Ok(v.to_host()),
            Some(v) => Err(BackendError::BufferMismatch(format!("a buffer of {}, not of {layout}", v.layout))),
            None => Err(BackendError::BufferMismatch("a buffer of another backend".into())),
        }
    }
}
