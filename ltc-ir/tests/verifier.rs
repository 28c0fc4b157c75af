//! Each mistake a graph can have, planted and found.

use ltc_ir::{
    ArgFlags, ArgWriter, DType, Fault, Graph, GraphBuilder, Layout, LayoutRef, Location, Op, Props, Results, SiteId,
    ValueId, args::Malformed, verify,
};

fn layout(dtype: DType, sizes: &[i64]) -> LayoutRef {
    Layout::contiguous(dtype, sizes).into()
}

/// The fault in a text, and where.
fn fault_in(text: &str) -> (Location, Fault) {
    let graph = Graph::parse(text).expect(text);
    let error = verify(&graph).expect_err(text);
    assert_eq!(error.to_string(), format!("{}: {}", error.location, error.fault));
    (error.location, error.fault)
}

/// The fault of the single node of a graph that has some parameters.
fn node_fault(node: &str) -> Fault {
    let text = format!("graph(%p0: f32[4], %p1: f32[2, 2], %p2: rng[], %p3: f32[4]{{2}}) {{ {node}\n return }}");
    let (place, fault) = fault_in(&text);
    assert!(matches!(place, Location::Node(0, _)), "{place}");
    fault
}

fn accept(node: &str) {
    let text = format!("graph(%p0: f32[4], %p1: f32[2, 2], %p2: rng[], %p3: f32[4]{{2}}) {{ {node}\n return %p0 }}");
    let graph = Graph::parse(&text).expect(node);
    assert_eq!(verify(&graph), Ok(()), "{node}");
}

#[test]
fn what_recording_makes_is_accepted() {
    for node in [
        "%0: f32[4] = aten::add.Tensor(%p0, wrapped f64, number i64)",
        "%0: f32[4], %1: i64[], %2: rng[] = aten::x_(mut %p0, generator %p2, none)",
        "%0: f32[4], %1: f32[2, 2] = aten::foreach_(mut tensors [%p0, none, %p1])",
        "%0: f32[9], %1: f32[4] = aten::out(fresh, fresh tensors [fresh, none], %p0)",
        "aten::no_results(%p0)",
        "%0: f32[2]{2} = ltc::read_view(%p0, int 1)",
        "%0: u8[15] = ltc::read_view(%p0, int 1)",
        "%0: f32[0, 9] = ltc::read_view(%p0, int 99)",
        "%0: f32[4] = ltc::write_view(mut %p0, %p1, ints [2, 2], ints [2, 1], int 0)",
        "%0: f32[3, 0] = ltc::empty()",
        "%0: rng[] = ltc::seed(number i64)",
    ] {
        accept(node);
    }
}

#[test]
fn results_have_the_layouts_of_the_operators_shape_rules() {
    for (node, result, wanted) in [
        ("%0: f32[4] = aten::mm(%p1, %p1)", 0, "f32[2, 2]"),
        ("%0: f32[2, 2]{1, 2} = aten::mm(%p1, %p1)", 0, "f32[2, 2]"),
        ("%0: f64[4] = aten::add.Tensor(%p0, wrapped f64, number i64)", 0, "f32[4]"),
        ("%0: f32[2] = aten::sum(%p1, none)", 0, "f32[]"),
        ("%0: f32[2] = aten::relu(%p0)", 0, "f32[4]"),
        ("%0: f32[2], %1: i32[2] = aten::max.dim(%p1, int 0, bool false)", 1, "i64[2]"),
    ] {
        let Fault::ResultLayout { result: at, wanted: rule, .. } = node_fault(node) else { panic!("{node}") };
        assert_eq!((at, rule.to_string()), (result, wanted.to_owned()), "{node}");
    }
    assert_eq!(node_fault("%0: f32[4], %1: f32[4] = aten::relu(%p0)"), Fault::NewResultCount { wanted: 1, found: 2 });
    let Fault::Refused(why) = node_fault("%0: f32[4] = aten::mm(%p0, %p1)") else { panic!("a vector is no matrix") };
    assert!(why.contains("matrix"), "{why}");
    accept("%0: f32[2, 2] = aten::mm(%p1, %p1)");
    accept("%0: f32[1, 4]{9, 1} = aten::unknown(%p0)");
    // Its size is a number.
    accept("%0: f32[7] = aten::arange(number i64, none, none, none, none)");
}

#[test]
fn layouts() {
    let param = |l: &str| fault_in(&format!("graph(%p0: f32[], %p1: {l}) {{ return }}"));
    let at = Location::Param(1);
    let huge = i64::MAX;
    for (text, expected) in [
        ("f32[2, -1]".to_owned(), Fault::NegativeSize as fn(LayoutRef) -> Fault),
        ("f32[2]{-1}".to_owned(), Fault::NegativeStride),
        ("rng[1]".to_owned(), Fault::StateRank),
        (format!("u8[{huge}, 2, 0]"), Fault::TooLarge),
        (format!("u8[{huge}, 2]{{0, 0}}"), Fault::TooLarge),
        (format!("u8[3]{{{huge}}}"), Fault::TooLarge),
        (format!("f64[{}]", huge / 4), Fault::TooLarge),
    ] {
        let (place, fault) = param(&text);
        assert_eq!(place, at);
        let (Fault::NegativeSize(l) | Fault::NegativeStride(l) | Fault::StateRank(l) | Fault::TooLarge(l)) = &fault
        else {
            panic!("{fault}")
        };
        assert_eq!(fault, expected(l.clone()));
    }
    assert!(matches!(node_fault("%0: f32[-1] = aten::x()"), Fault::NegativeSize(_)));
}

#[test]
fn arguments_operands_and_numbers() {
    let stray = Fault::Arguments(Malformed::Stray { argument: 0 });
    for (node, expected) in [
        ("aten::x raw [0xff]() 0", Fault::Arguments(Malformed::Tag { argument: 0, tag: 255 })),
        ("aten::x raw [0x3]() 0", Fault::Arguments(Malformed::Payload { argument: 0 })),
        ("aten::x raw [0x0, 0x100000008]() 0", Fault::Arguments(Malformed::Payload { argument: 1 })),
        ("aten::x raw [0x630006]() 1", Fault::Arguments(Malformed::Payload { argument: 0 })),
        ("aten::x raw [0x1000000000000]() 0", stray.clone()),
        ("aten::x raw [0x200000004]() 0", stray.clone()),
        ("aten::x raw [0x201]() 0", stray.clone()),
        ("aten::x raw [0x60006]() 1", stray.clone()),
        ("aten::x raw [0x100000007, 0x100]() 0", stray.clone()),
        ("aten::x raw [0x10000000b, 0x2](%p0) 0", stray.clone()),
        ("aten::x raw [0x10000000a, 0x2]() 0", stray.clone()),
        ("aten::x raw [0x10000000c, 0xff]() 1", stray),
        ("aten::x raw [0x1](%p0, %p0) 0", Fault::OperandCount { wanted: 1, found: 2 }),
        ("aten::x raw [0x1, 0x1](%p0) 0", Fault::OperandCount { wanted: 2, found: 1 }),
        ("aten::x raw [0x5]() 0", Fault::NumberCount { wanted: 1, found: 0 }),
    ] {
        assert_eq!(node_fault(node), expected, "{node}");
    }
}

#[test]
fn definitions() {
    let of = |operand: ValueId, output: ValueId| {
        let mut b = GraphBuilder::new();
        b.param(layout(DType::F32, &[]));
        let (words, _) = ArgWriter::new().tensor().finish();
        let results = Results::from_iter([layout(DType::F32, &[])]);
        b.node(Op::intern("aten::x", Props::NONE), words, &[operand], 0, results, SiteId::default());
        verify(&b.finish(vec![output])).map_err(|e| (e.location, e.fault))
    };
    let (p0, p1, r0, r1) = (ValueId::param(0), ValueId::param(1), ValueId::result(0), ValueId::result(1));
    let node = Location::Node(0, Op::intern("aten::x", Props::NONE));
    assert_eq!(of(p0, r0), Ok(()));
    assert_eq!(of(p1, r0), Err((node, Fault::Undefined(p1))));
    assert_eq!(of(r0, r0), Err((node, Fault::Undefined(r0))));
    assert_eq!(of(p0, r1), Err((Location::Output(0), Fault::Undefined(r1))));
    assert_eq!(of(p0, p1), Err((Location::Output(0), Fault::Undefined(p1))));
}

#[test]
fn results() {
    let (f4, state) = (layout(DType::F32, &[4]), layout(DType::RngState, &[]));
    for (node, expected) in [
        ("aten::x_(mut %p0)", Fault::ResultCount { written: 1, states: 0, found: 0 }),
        ("%0: f32[4] = aten::x_(mut tensors [%p0, %p0])", Fault::ResultCount { written: 2, states: 0, found: 1 }),
        ("%0: f32[4] = aten::x_(mut %p0, generator %p2)", Fault::ResultCount { written: 1, states: 1, found: 1 }),
        ("aten::x(generator %p2)", Fault::ResultCount { written: 0, states: 1, found: 0 }),
        (
            "%0: i64[4], %1: f32[4] = aten::x_(mut %p0)",
            Fault::WrittenLayout { result: 0, wanted: f4.clone(), found: layout(DType::I64, &[4]) },
        ),
        (
            "%0: f32[4], %1: f32[2, 2] = aten::x_(mut %p1, mut %p0)",
            Fault::WrittenLayout { result: 0, wanted: layout(DType::F32, &[2, 2]), found: f4.clone() },
        ),
        (
            "%0: rng[], %1: f32[4] = aten::x(generator %p2)",
            Fault::ResultKind { result: 0, found: state.clone(), states: 1 },
        ),
        ("%0: f32[4] = aten::x(generator %p2)", Fault::ResultKind { result: 0, found: f4.clone(), states: 1 }),
        ("%0: rng[] = aten::x(%p0)", Fault::ResultKind { result: 0, found: state.clone(), states: 0 }),
        ("aten::x(%p2)", Fault::OperandKind { operand: 0, found: state }),
        ("%0: rng[] = aten::x(%p1, generator %p0)", Fault::OperandKind { operand: 1, found: f4 }),
    ] {
        assert_eq!(node_fault(node), expected, "{node}");
    }
}

#[test]
fn operators_of_our_own() {
    for node in [
        "%0: f32[4] = ltc::read_view(%p0)",
        "%0: f32[4] = ltc::read_view(%p0, int -1)",
        "%0: f32[4] = ltc::read_view(mut %p0, int 0)",
        "ltc::read_view(%p0, int 0)",
        "%0: f32[4] = ltc::write_view(%p0, %p1, ints [2, 2], ints [2, 1], int 0)",
        "%0: f32[4] = ltc::write_view(mut %p0, %p1, ints [2, 2], ints [2], int 0)",
        "%0: f32[4] = ltc::write_view(mut %p0, %p1, ints [2, 1], ints [2, 1], int 0)",
        "%0: f32[4] = ltc::write_view(mut %p0, %p1, ints [2, 2], ints [-2, 1], int 0)",
        "%0: f32[4] = ltc::empty(ints [4])",
        "ltc::empty()",
        "%0: rng[] = ltc::seed(number f64)",
        "%0: f32[], %1: rng[] = ltc::seed(number i64)",
    ] {
        assert!(matches!(node_fault(node), Fault::Signature(_)), "{node}");
    }
    for (node, expected) in [
        ("%0: f32[4] = ltc::result(%p0, int 0)", Fault::TraceOnly),
        ("%0: f32[4] = ltc::data()", Fault::TraceOnly),
        ("%0: f32[4] = ltc::nonsense(%p0)", Fault::UnknownPseudoOp),
        ("%0: f32[2]{2} = ltc::read_view(%p0, int 2)", Fault::ViewBounds { end: 20, bytes: 16 }),
        ("%0: f32[4] = ltc::read_view(%p0, int 9223372036854775807)", Fault::ViewBounds { end: i64::MAX, bytes: 16 }),
        (
            "%0: f32[4] = ltc::write_view(mut %p0, %p1, ints [2, 2], ints [2, 1], int 1)",
            Fault::ViewBounds { end: 20, bytes: 16 },
        ),
    ] {
        assert_eq!(node_fault(node), expected, "{node}");
    }
}

#[test]
fn flags_of_written_and_fresh_lists_reach_the_words() {
    let text = "graph(%p0: f32[]) { a::b(mut tensors [%p0], fresh tensors [fresh]) return }";
    let graph = Graph::parse(text).expect("valid text");
    let flags: Vec<ArgFlags> = graph.nodes()[0]
        .args()
        .filter_map(|a| match a {
            ltc_ir::Arg::Tensors { flags, .. } => Some(flags),
            _ => None,
        })
        .collect();
    assert_eq!(flags, [ArgFlags::MUT, ArgFlags::MUT.and(ArgFlags::FRESH)]);
}
