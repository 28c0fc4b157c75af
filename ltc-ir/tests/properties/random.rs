//! Random layouts, arguments and graphs.

use ltc_ir::{
    ArgFlags, ArgWriter, DType, EncodedArgs, Graph, GraphBuilder, Layout, LayoutRef, Op, Props, Results, Scalar,
    SiteId, ValueId,
};
use proptest::{collection::vec, prelude::*};

pub(crate) fn dtype() -> impl Strategy<Value = DType> {
    // The last one is the generator state.
    proptest::sample::select(&DType::ALL[..DType::ALL.len() - 1])
}

/// Up to 4 dimensions, row-major or any strides.
pub(crate) fn layout() -> impl Strategy<Value = LayoutRef> {
    let dims = vec((0i64..5, 0i64..30), 0..=4);
    (dtype(), dims, any::<bool>()).prop_map(|(dtype, dims, row_major)| {
        let (sizes, strides): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
        if row_major { Layout::contiguous(dtype, &sizes) } else { Layout::strided(dtype, &sizes, &strides) }.into()
    })
}

/// Any bits, with the special floats often.
pub(crate) fn float_bits() -> impl Strategy<Value = u64> {
    let special = [0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, 5e-324];
    prop_oneof![any::<u64>(), proptest::sample::select(special.to_vec()).prop_map(f64::to_bits)]
}

pub(crate) fn scalar() -> impl Strategy<Value = Scalar> {
    let float = || float_bits().prop_map(f64::from_bits);
    prop_oneof![
        any::<bool>().prop_map(Scalar::Bool),
        any::<i64>().prop_map(Scalar::Int),
        float().prop_map(Scalar::Float),
        (float(), float()).prop_map(|(re, im)| Scalar::Complex(re, im)),
    ]
}

/// How a tensor argument is used.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Use {
    Read,
    Mut,
    Fresh,
}

impl Use {
    pub(crate) fn flags(self) -> ArgFlags {
        match self {
            Use::Read => ArgFlags::NONE,
            Use::Mut => ArgFlags::MUT,
            Use::Fresh => ArgFlags::MUT.and(ArgFlags::FRESH),
        }
    }
}

/// An argument; tensors are picked among those there are.
#[derive(Clone, Debug)]
pub(crate) enum AnyArg {
    None,
    Tensor(usize, Use, LayoutRef),
    Host(DType, [u64; 2], bool),
    Int(i64),
    Bool(bool),
    Float(u64),
    Number(Scalar),
    Str(Vec<u8>),
    Ints(Vec<i64>),
    Floats(Vec<u64>),
    Bools(Vec<bool>),
    Tensors(Vec<Option<usize>>, Use, LayoutRef),
    Numbers(Vec<Scalar>),
    Generator(usize),
    Device,
}

pub(crate) fn any_arg() -> impl Strategy<Value = AnyArg> {
    let tensor_use = || prop_oneof![4 => Just(Use::Read), 1 => Just(Use::Mut), 1 => Just(Use::Fresh)];
    let text = prop_oneof![any::<String>().prop_map(String::into_bytes), vec(any::<u8>(), 0..20)];
    prop_oneof![
        1 => Just(AnyArg::None),
        6 => (any::<usize>(), tensor_use(), layout()).prop_map(|(i, u, l)| AnyArg::Tensor(i, u, l)),
        1 => (dtype(), float_bits(), any::<u64>(), any::<bool>()).prop_map(|(d, a, b, w)| AnyArg::Host(d, [a, b], w)),
        1 => any::<i64>().prop_map(AnyArg::Int),
        1 => any::<bool>().prop_map(AnyArg::Bool),
        1 => float_bits().prop_map(AnyArg::Float),
        1 => scalar().prop_map(AnyArg::Number),
        1 => text.prop_map(AnyArg::Str),
        1 => vec(any::<i64>(), 0..5).prop_map(AnyArg::Ints),
        1 => vec(float_bits(), 0..5).prop_map(AnyArg::Floats),
        1 => vec(any::<bool>(), 0..5).prop_map(AnyArg::Bools),
        // Often longer than one word of the mask.
        1 => (vec(any::<Option<usize>>(), 0..80), tensor_use(), layout())
            .prop_map(|(items, u, l)| AnyArg::Tensors(items, u, l)),
        1 => vec(scalar(), 0..4).prop_map(AnyArg::Numbers),
        1 => any::<usize>().prop_map(AnyArg::Generator),
        1 => Just(AnyArg::Device),
    ]
}

/// A node: operator by number, arguments, new results.
#[derive(Clone, Debug)]
pub(crate) struct AnyNode {
    pub(crate) op: usize,
    pub(crate) args: Vec<AnyArg>,
    pub(crate) results: Vec<LayoutRef>,
}

/// None of the operator table, whose rules these arguments would not satisfy.
const OPS: [&str; 6] = ["aten::y.Tensor", "aten::z", "aten::x_", "return", "odd \"name\"\u{1}", "my::op.overload"];

pub(crate) fn op(i: usize) -> Op {
    Op::intern(OPS[i % OPS.len()], Props::NONE)
}

fn any_node() -> impl Strategy<Value = AnyNode> {
    (0..OPS.len(), vec(any_arg(), 0..5), vec(layout(), 0..3)).prop_map(|(op, args, results)| AnyNode {
        op,
        args,
        results,
    })
}

/// A graph that the verifier accepts, and its runtime numbers.
pub(crate) fn graph() -> impl Strategy<Value = (Graph, Vec<u64>)> {
    let params = vec(prop_oneof![6 => layout().prop_map(Some), 1 => Just(None)], 0..4);
    (params, vec(any_node(), 0..12), vec(any::<usize>(), 0..5)).prop_map(|(params, nodes, outputs)| {
        let mut values = Values::default();
        let mut b = GraphBuilder::new();
        for layout in params {
            let layout = layout.unwrap_or_else(state);
            let id = b.param(layout.clone());
            values.add(id, layout);
        }
        let mut numbers = Vec::new();
        for node in nodes {
            add_node(&mut b, &mut values, &mut numbers, node);
        }
        let all: Vec<ValueId> = values.tensors.iter().chain(&values.states).map(|v| v.0).collect();
        let outputs = outputs.into_iter().filter_map(|i| Some(all[i.checked_rem(all.len())?])).collect();
        (b.finish(outputs), numbers)
    })
}

pub(crate) fn state() -> LayoutRef {
    Layout::contiguous(DType::RngState, &[]).into()
}

/// Values to pick operands from.
#[derive(Default)]
struct Values {
    tensors: Vec<(ValueId, LayoutRef)>,
    states: Vec<(ValueId, LayoutRef)>,
}

impl Values {
    fn add(&mut self, id: ValueId, layout: LayoutRef) {
        let is_state = layout.dtype() == DType::RngState;
        if is_state { &mut self.states } else { &mut self.tensors }.push((id, layout));
    }
}

fn pick(values: &[(ValueId, LayoutRef)], i: usize) -> Option<(ValueId, LayoutRef)> {
    values.get(i.checked_rem(values.len())?).cloned()
}

fn add_node(b: &mut GraphBuilder, values: &mut Values, numbers: &mut Vec<u64>, node: AnyNode) {
    let mut w = ArgWriter::new();
    let mut operands = Vec::new();
    let (mut results, mut states) = (Results::new(), Vec::new());
    for arg in &node.args {
        match arg {
            AnyArg::Tensor(_, Use::Fresh, layout) => {
                w.tensor_with(Use::Fresh.flags());
                results.push(layout.clone());
            }
            AnyArg::Tensor(i, how, _) => match pick(&values.tensors, *i) {
                Some((id, layout)) => {
                    w.tensor_with(how.flags());
                    operands.push(id);
                    results.extend((*how == Use::Mut).then_some(layout));
                }
                None => {
                    w.none();
                }
            },
            AnyArg::Tensors(items, Use::Fresh, layout) => {
                let present: Vec<bool> = items.iter().map(Option::is_some).collect();
                results.extend(items.iter().flatten().map(|_| layout.clone()));
                w.tensors(&present, Use::Fresh.flags());
            }
            AnyArg::Tensors(items, how, _) => {
                let picked: Vec<_> = items.iter().map(|i| pick(&values.tensors, (*i)?)).collect();
                w.tensors(&picked.iter().map(Option::is_some).collect::<Vec<_>>(), how.flags());
                for (id, layout) in picked.into_iter().flatten() {
                    operands.push(id);
                    results.extend((*how == Use::Mut).then_some(layout));
                }
            }
            AnyArg::Generator(i) => {
                if let Some((id, _)) = pick(&values.states, *i) {
                    w.generator();
                    operands.push(id);
                    states.push(state());
                }
            }
            other => write_plain(&mut w, other),
        }
    }
    results.extend(node.results);
    results.extend(states);
    let (words, words_of_numbers) = w.finish();
    let layouts = results.clone();
    let count = words_of_numbers.len();
    numbers.extend(words_of_numbers);
    let first = b.node(op(node.op), words, &operands, count, results, SiteId(numbers.len() as u32));
    let first = first.as_result().expect("a node's first result");
    for (i, layout) in layouts.into_iter().enumerate() {
        values.add(ValueId::result(first + i), layout);
    }
}

/// Writes an argument; each of its tensors is an operand.
pub(crate) fn write_plain(w: &mut ArgWriter, arg: &AnyArg) {
    match arg {
        AnyArg::None => w.none(),
        AnyArg::Tensor(_, how, _) => w.tensor_with(how.flags()),
        AnyArg::Host(dtype, bits, wrapped) => {
            w.host_scalar(*dtype, *bits, if *wrapped { ArgFlags::WRAPPED } else { ArgFlags::NONE })
        }
        AnyArg::Int(v) => w.int(*v),
        AnyArg::Bool(v) => w.bool(*v),
        AnyArg::Float(bits) => w.float(f64::from_bits(*bits)),
        AnyArg::Number(n) => w.number(*n),
        AnyArg::Str(bytes) => w.bytes(bytes),
        AnyArg::Ints(v) => w.ints(v),
        AnyArg::Floats(v) => w.floats(&v.iter().map(|&b| f64::from_bits(b)).collect::<Vec<_>>()),
        AnyArg::Bools(v) => w.bools(v),
        AnyArg::Tensors(items, how, _) => {
            w.tensors(&items.iter().map(Option::is_some).collect::<Vec<_>>(), how.flags())
        }
        AnyArg::Numbers(v) => w.number_list(v),
        AnyArg::Generator(_) => w.generator(),
        AnyArg::Device => w.device(),
    };
}

/// A graph taken apart, to be changed and put together again.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) params: Vec<LayoutRef>,
    pub(crate) nodes: Vec<(Op, EncodedArgs, Vec<ValueId>, usize, Results)>,
    pub(crate) outputs: Vec<ValueId>,
}

impl Parts {
    pub(crate) fn of(graph: &Graph) -> Parts {
        let nodes = graph.nodes().iter();
        let nodes =
            nodes.map(|n| (n.op(), n.words().into(), n.operands.to_vec(), n.number_count as usize, n.results().into()));
        Parts { params: graph.params().to_vec(), nodes: nodes.collect(), outputs: graph.outputs().to_vec() }
    }

    pub(crate) fn build(self) -> Graph {
        let mut b = GraphBuilder::new();
        for layout in self.params {
            b.param(layout);
        }
        for (op, words, operands, numbers, results) in self.nodes {
            b.node(op, words, &operands, numbers, results, SiteId::default());
        }
        b.finish(self.outputs)
    }
}
