//! Properties of graphs: text form, verifier, hash, arguments, layouts.

use std::sync::Arc;

use ltc_ir::{
    ArgFlags, ArgReader, ArgWriter, DType, Graph, GraphBuilder, Layout, LayoutRef, Op, Props, Scalar, SiteId, ValueId,
    layout::{is_dense, storage_elements},
    text::parse,
    verify::{Violation, verify},
};
use proptest::{collection::vec, prelude::*, sample::select};

fn dtype() -> impl Strategy<Value = DType> {
    select(DType::ALL.into_iter().filter(|d| *d != DType::RngState).collect::<Vec<_>>())
}

fn layout() -> impl Strategy<Value = LayoutRef> {
    (dtype(), vec((0i64..5, 0i64..40), 0..4), any::<bool>()).prop_map(|(dtype, dims, row_major)| {
        let (sizes, strides): (Vec<i64>, Vec<i64>) = dims.into_iter().unzip();
        let layout =
            if row_major { Layout::contiguous(dtype, &sizes) } else { Layout::strided(dtype, &sizes, &strides) };
        Arc::new(layout)
    })
}

/// One argument, by kind; tensors are picked modulo what is defined.
#[derive(Clone, Debug)]
enum Argument {
    None,
    Tensor(u16),
    Written(u16),
    Fresh,
    Number(u8),
    Float,
    Host(DType, bool),
    Int(i64),
    Bool(bool),
    Str(Vec<u8>),
    Ints(Vec<i64>),
    Floats(Vec<u64>),
    Bools(Vec<bool>),
    Tensors(Vec<Option<u16>>),
    WrittenTensors(Vec<u16>),
    Numbers(Vec<u8>),
    Device,
}

fn argument() -> impl Strategy<Value = Argument> {
    prop_oneof![
        Just(Argument::None),
        any::<u16>().prop_map(Argument::Tensor),
        any::<u16>().prop_map(Argument::Written),
        Just(Argument::Fresh),
        (0u8..4).prop_map(Argument::Number),
        Just(Argument::Float),
        (dtype(), any::<bool>()).prop_map(|(d, w)| Argument::Host(d, w)),
        any::<i64>().prop_map(Argument::Int),
        any::<bool>().prop_map(Argument::Bool),
        vec(any::<u8>(), 0..20).prop_map(Argument::Str),
        vec(any::<i64>(), 0..5).prop_map(Argument::Ints),
        vec(prop_oneof![any::<u64>(), any::<f64>().prop_map(f64::to_bits), Just(0x7ff8_0000_0000_0001)], 0..5)
            .prop_map(Argument::Floats),
        vec(any::<bool>(), 0..5).prop_map(Argument::Bools),
        vec(prop::option::of(any::<u16>()), 0..70).prop_map(Argument::Tensors),
        vec(any::<u16>(), 0..3).prop_map(Argument::WrittenTensors),
        vec(0u8..4, 0..4).prop_map(Argument::Numbers),
        Just(Argument::Device),
    ]
}

fn scalar(k: u8) -> Scalar {
    [Scalar::Bool(true), Scalar::Int(-1), Scalar::Float(0.5), Scalar::Complex(1.0, -0.0)][k as usize]
}

type Node = (u8, Vec<Argument>, Vec<LayoutRef>);

fn nodes() -> impl Strategy<Value = (Vec<LayoutRef>, Vec<Node>, Vec<u16>)> {
    let node = (any::<u8>(), vec(argument(), 0..6), vec(layout(), 0..3));
    (vec(layout(), 1..4), vec(node, 0..8), vec(any::<u16>(), 0..4))
}

/// The graph these parts make: valid by construction.
fn build(params: &[LayoutRef], nodes: &[Node], outputs: &[u16]) -> Graph {
    let mut b = GraphBuilder::new();
    let mut values: Vec<(ValueId, LayoutRef)> = params.iter().map(|l| (b.param(l.clone()), l.clone())).collect();
    for (name, arguments, new) in nodes {
        let mut w = ArgWriter::new();
        let (mut operands, mut results) = (Vec::new(), Vec::new());
        let pick = |i: u16| values[i as usize % values.len()].clone();
        for a in arguments {
            match a {
                Argument::None => _ = w.none(),
                Argument::Tensor(i) => {
                    operands.push(pick(*i).0);
                    w.tensor();
                }
                Argument::Written(i) => {
                    let (id, layout) = pick(*i);
                    operands.push(id);
                    results.push(layout);
                    w.tensor_with(ArgFlags::MUT);
                }
                Argument::Fresh => {
                    results.push(params[0].clone());
                    w.tensor_with(ArgFlags::MUT.and(ArgFlags::FRESH));
                }
                Argument::Number(k) => _ = w.number(scalar(*k)),
                Argument::Float => _ = w.float(1.5),
                Argument::Host(d, wrapped) => _ = w.host_scalar(*d, *wrapped),
                Argument::Int(i) => _ = w.int(*i),
                Argument::Bool(x) => _ = w.bool(*x),
                Argument::Str(s) => _ = w.bytes(s),
                Argument::Ints(v) => _ = w.ints(v),
                Argument::Floats(v) => _ = w.floats(&v.iter().map(|&x| f64::from_bits(x)).collect::<Vec<_>>()),
                Argument::Bools(v) => _ = w.bools(v),
                Argument::Tensors(v) => {
                    operands.extend(v.iter().flatten().map(|&i| pick(i).0));
                    w.tensors(&v.iter().map(Option::is_some).collect::<Vec<_>>(), ArgFlags::NONE);
                }
                Argument::WrittenTensors(v) => {
                    operands.extend(v.iter().map(|&i| pick(i).0));
                    results.extend(v.iter().map(|&i| pick(i).1));
                    w.tensors(&vec![true; v.len()], ArgFlags::MUT);
                }
                Argument::Numbers(v) => _ = w.number_list(&v.iter().map(|&k| scalar(k)).collect::<Vec<_>>()),
                Argument::Device => _ = w.device(),
            }
        }
        results.extend(new.iter().cloned());
        let (words, numbers) = w.finish();
        let op = Op::intern(["aten::add.Tensor", "test::op_a", "test::op_b.out"][*name as usize % 3], Props::NONE);
        let first = b.node(op, words, &operands, numbers.len(), results.iter().cloned().collect(), SiteId::default());
        let first = first.as_result().expect("a result");
        values.extend(results.into_iter().enumerate().map(|(i, l)| (ValueId::result(first + i), l)));
    }
    let outputs = outputs.iter().map(|&i| values[i as usize % values.len()].0).collect();
    b.finish(outputs)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn graphs_verify_and_their_text_reads_back((params, nodes, outputs) in nodes()) {
        let graph = build(&params, &nodes, &outputs);
        verify(&graph).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let text = graph.to_string();
        let again = parse(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(&again, &graph, "{}", text);
        prop_assert_eq!(again.hash(), graph.hash());
        prop_assert_eq!(again.number_count(), graph.number_count());
        prop_assert_eq!(again.to_string(), text);
    }

    /// Whatever the text, the parser answers; what it accepts prints and reads back.
    #[test]
    fn damaged_texts_are_errors_or_graphs((params, nodes, outputs) in nodes(), at in any::<prop::sample::Index>(), with in "[ -~\n]{0,3}", cut in 0usize..4) {
        let text = build(&params, &nodes, &outputs).to_string();
        let start = at.index(text.len() + 1);
        let end = (start + cut).min(text.len());
        prop_assume!(text.is_char_boundary(start) && text.is_char_boundary(end));
        let damaged = format!("{}{with}{}", &text[..start], &text[end..]);
        match parse(&damaged) {
            Ok(graph) => prop_assert_eq!(&parse(&graph.to_string()).expect("what is printed"), &graph),
            Err(e) => prop_assert!(e.line >= 1 && e.column >= 1 && !e.message.is_empty()),
        }
    }

    #[test]
    fn a_structural_change_changes_hash_and_equality((params, mut nodes, outputs) in nodes(), which in any::<prop::sample::Index>(), change in argument()) {
        prop_assume!(!nodes.is_empty());
        let before = build(&params, &nodes, &outputs);
        let i = which.index(nodes.len());
        nodes[i].1.push(change);
        let after = build(&params, &nodes, &outputs);
        prop_assert_ne!(before.hash(), after.hash());
        prop_assert!(before != after);
    }

    #[test]
    fn malformed_arguments_end_the_reader(words in vec(prop_oneof![any::<u64>(), (0u64..16, 0u64..8, 0u64..32, 0u64..9).prop_map(|(t, f, d, n)| t | f << 8 | d << 16 | n << 32)], 0..12)) {
        let mut reader = ArgReader::new(&words);
        let count = reader.by_ref().count();
        prop_assert!(count <= words.len());
    }

    #[test]
    fn layouts_tell_what_enumeration_tells(layout in layout()) {
        let mut offsets = vec![0i64];
        for (&n, &s) in layout.sizes().iter().zip(layout.strides()) {
            offsets = (0..n).flat_map(|i| offsets.iter().map(move |o| o + i * s)).collect();
        }
        prop_assert_eq!(layout.numel() as usize, offsets.len());
        prop_assert_eq!(storage_elements(layout.sizes(), layout.strides()), offsets.iter().max().map_or(0, |m| m + 1));
        let mut sorted = offsets.clone();
        sorted.sort_unstable();
        prop_assert_eq!(is_dense(layout.sizes(), layout.strides()), sorted.iter().copied().eq(0..sorted.len() as i64), "{}", layout);
        let row_major = Layout::contiguous(layout.dtype(), layout.sizes());
        let mut expected = vec![0i64];
        for (&n, &s) in row_major.sizes().iter().zip(row_major.strides()) {
            expected = expected.iter().flat_map(|o| (0..n).map(move |i| o + i * s)).collect();
        }
        let mut in_order = vec![0i64];
        for (&n, &s) in layout.sizes().iter().zip(layout.strides()) {
            in_order = in_order.iter().flat_map(|o| (0..n).map(move |i| o + i * s)).collect();
        }
        prop_assert_eq!(layout.is_contiguous(), in_order == expected, "{}", layout);
    }
}

fn graph(text: &str) -> Graph {
    parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn the_text_form_is_what_its_documentation_shows() {
    let text = "graph(%p0: f32[2, 3], %p1: f32[3, 2]{1, 3}) {\n  %0: f32[2, 3] = aten::add.Tensor(%p0, %p0, number(i64))\n  \
                %1: f32[2], %2: i64[2] = aten::max.dim(%0, 1, false)\n  return %1, %2\n}\n";
    assert_eq!(graph(text).to_string(), text);
    assert_eq!(graph(text).number_count(), 1);
}

#[test]
fn parse_errors_say_where() {
    for (text, line, what) in [
        ("graf() { return }", 1, "expected `graph`"),
        ("graph(%p1: f32[]) { return }", 1, "expected %p0"),
        ("graph() {\n  %0: f33[] = aten::a()\n return }", 2, "`f33` is no dtype"),
        ("graph() {\n  %0: f32[] = aten::a(%1)\n return }", 2, "%1 is not defined"),
        ("graph() {\n  %1: f32[] = aten::a()\n return }", 2, "expected %0"),
        ("graph() {\n  aten::a(\"x)\n return }", 3, "does not end"),
        ("graph() { return } x", 1, "end of the text"),
        ("graph() { aten::a(99999999999999999999) return }", 1, "integer"),
        ("graph(%p0: f32[2]{1, 2}) { return }", 1, "2 strides for 1 sizes"),
    ] {
        let e = parse(text).expect_err(text);
        assert!(e.line == line && e.message.contains(what), "{text}: {e}");
    }
}

/// Each rule of the verifier, broken once.
#[test]
fn planted_mistakes_are_found() {
    let layout = || Arc::new(Layout::contiguous(DType::F32, &[2]));
    let op = Op::intern("test::op_a", Props::NONE);
    let one = |words: ltc_ir::ArgWords, operands: &[ValueId], numbers: usize, results: Vec<LayoutRef>, op: Op| {
        let mut b = GraphBuilder::new();
        b.param(layout());
        b.node(op, words, operands, numbers, results.into_iter().collect(), SiteId::default());
        verify(&b.finish(vec![])).expect_err("a violation").what
    };
    let p = ValueId::param(0);
    let tensor = || ArgWriter::new().tensor().finish().0;
    assert_eq!(one([99u64].into_iter().collect(), &[], 0, vec![], op), Violation::MalformedArguments);
    assert_eq!(one(tensor(), &[], 0, vec![], op), Violation::OperandCount { given: 0, taken: 1 });
    assert_eq!(one(tensor(), &[p], 2, vec![], op), Violation::NumberCount { given: 2, taken: 0 });
    assert_eq!(one(tensor(), &[ValueId::result(0)], 0, vec![layout()], op), Violation::Undefined(ValueId::result(0)));
    assert_eq!(one(tensor(), &[ValueId::param(1)], 0, vec![], op), Violation::Undefined(ValueId::param(1)));
    let written = || ArgWriter::new().tensor_with(ArgFlags::MUT).finish().0;
    assert_eq!(one(written(), &[p], 0, vec![], op), Violation::WrittenResult { argument: 0 });
    let other = Arc::new(Layout::contiguous(DType::F64, &[2]));
    assert_eq!(one(written(), &[p], 0, vec![other], op), Violation::WrittenResult { argument: 0 });
    let negative = Arc::new(Layout::strided(DType::F32, &[2], &[-1]));
    assert_eq!(one(tensor(), &[p], 0, vec![negative.clone()], op), Violation::Layout(negative.to_string()));
    let generator = || ArgWriter::new().generator().finish().0;
    assert_eq!(one(generator(), &[p], 0, vec![], op), Violation::GeneratorState);
    assert!(matches!(one(tensor(), &[p], 0, vec![], Op::read_view()), Violation::Signature(_)));
    let mut b = GraphBuilder::new();
    b.param(layout());
    let e = verify(&b.finish(vec![ValueId::result(7)])).expect_err("an output nobody defines");
    assert_eq!((e.node, e.what), (0, Violation::Undefined(ValueId::result(7))));
}
