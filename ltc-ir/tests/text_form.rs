//! The text form: what it looks like, what it says of a mistake.

use ltc_ir::{
    ArgFlags, ArgWriter, DType, Graph, GraphBuilder, Layout, LayoutRef, Op, Props, Results, Scalar, SiteId, ValueId,
    print_with,
};

fn layout(dtype: DType, sizes: &[i64]) -> LayoutRef {
    Layout::contiguous(dtype, sizes).into()
}

fn op(name: &str) -> Op {
    Op::intern(name, Props::NONE)
}

fn add(b: &mut GraphBuilder, name: &str, args: &mut ArgWriter, operands: &[ValueId], results: &[LayoutRef]) -> ValueId {
    let (words, numbers) = args.finish();
    b.node(op(name), words, operands, numbers.len(), results.iter().cloned().collect(), SiteId(7))
}

/// A graph with every form there is.
fn everything() -> (Graph, Vec<u64>) {
    let mut b = GraphBuilder::new();
    let x = b.param(layout(DType::F32, &[2, 3]));
    let y = b.param(Layout::strided(DType::BF16, &[2, 3], &[1, 2]).into());
    let g = b.param(layout(DType::RngState, &[]));
    let w = &mut ArgWriter::new();
    let f = layout(DType::F32, &[2, 3]);

    w.tensor().tensor().number(Scalar::Int(-1));
    let sum = add(&mut b, "aten::add.Tensor", w, &[x, y], std::slice::from_ref(&f));
    w.tensor().int(1).bool(false);
    add(&mut b, "aten::max.dim", w, &[sum], &[layout(DType::F32, &[2]), layout(DType::I64, &[2])]);
    w.tensor_with(ArgFlags::MUT).float(0.0).float(1.0).generator();
    add(&mut b, "aten::normal_", w, &[x, g], &[f.clone(), layout(DType::RngState, &[])]);
    w.tensor_with(ArgFlags::MUT.and(ArgFlags::FRESH)).wrapped(Scalar::Float(f64::NAN));
    w.host_scalar(DType::C64, [1.5f64.to_bits(), (-0.0f64).to_bits()], ArgFlags::NONE).none().device();
    add(&mut b, "aten::fill_.Tensor", w, &[], std::slice::from_ref(&f));
    w.str("none").str("a \"b\"\\\n\r\t\u{1}\u{e9}\u{85}").bytes(&[0xff, b'x', 0xc3]).str("");
    add(&mut b, "aten::strings", w, &[], &[]);
    w.ints(&[i64::MIN, 0, i64::MAX]).ints(&[]).bools(&[true, false]);
    w.floats(&[-0.0, 0.1, 1e300, 5e-324, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::from_bits(u64::MAX)]);
    add(&mut b, "aten::lists", w, &[], &[layout(DType::Bool, &[])]);
    w.tensors(&[true, false, true], ArgFlags::NONE).tensors(&[], ArgFlags::NONE).tensors(&[true], ArgFlags::MUT);
    w.tensors(&[false, true], ArgFlags::MUT.and(ArgFlags::FRESH));
    w.number_list(&[Scalar::Int(3), Scalar::Complex(1.0, 2.0), Scalar::Bool(true)]);
    add(&mut b, "odd name!", w, &[x, sum, sum], &[f.clone(), f.clone()]);
    w.tensor();
    let (mut words, _) = w.finish();
    words.push(0xff);
    b.node(op("return"), words, &[x, y], 3, Results::new(), SiteId(1));
    let numbers = [
        &[-1i64 as u64, 0, 1f64.to_bits(), f64::NAN.to_bits(), 1.5f64.to_bits(), (-0.0f64).to_bits()][..],
        &[3, 1f64.to_bits(), 2f64.to_bits(), 1],
    ];
    (b.finish(vec![sum, x, ValueId::result(2), sum]), numbers.concat())
}

const EVERYTHING: &str = concat!(
    r#"graph(%p0: f32[2, 3], %p1: bf16[2, 3]{1, 2}, %p2: rng[]) {
  %0: f32[2, 3] = aten::add.Tensor(%p0, %p1, number i64)
  %1: f32[2], %2: i64[2] = aten::max.dim(%0, int 1, bool false)
  %3: f32[2, 3], %4: rng[] = aten::normal_(mut %p0, float, float, generator %p2)
  %5: f32[2, 3] = aten::fill_.Tensor(fresh, wrapped f64, host c64, none, device)
  aten::strings("none", "a \"b\"\\\n\r\t\x01é\xc2\x85", "\xffx\xc3", "")
  %6: bool[] = aten::lists(ints [-9223372036854775808, 0, 9223372036854775807], ints [], bools [true, false], "#,
    r#"floats [-0.0, 0.1, 1e300, 5e-324, inf, -inf, nan, nan(0xffffffffffffffff)])
  %7: f32[2, 3], %8: f32[2, 3] = "odd name!"(tensors [%p0, none, %0], tensors [], mut tensors [%0], "#,
    r#"fresh tensors [none, fresh], numbers [i64, c128, bool])
  "return" raw [0x1, 0xff](%p0, %p1) 3
  return %0, %p0, %2, %0
}
"#
);

#[test]
fn every_form_prints_and_reads_back() {
    let (graph, _) = everything();
    assert_eq!(graph.to_string(), EVERYTHING);
    let back = Graph::parse(EVERYTHING).expect("valid text");
    assert_eq!(back, graph);
    assert_eq!(back.hash(), graph.hash());
    assert_eq!(back.number_count(), graph.number_count());
    assert_eq!(back.to_string(), EVERYTHING);
}

#[test]
fn numbers_stand_in_their_holes_as_comments() {
    let (graph, numbers) = everything();
    let text = print_with(&graph, &numbers).to_string();
    for hole in [
        "number i64 /* -1 */",
        "float /* 0.0 */, float /* 1.0 */",
        "wrapped f64 /* NaN */, host c64 /* 1.5-0.0j */",
        "numbers [i64 /* 3 */, c128 /* 1.0+2.0j */, bool /* true */]",
    ] {
        assert!(text.contains(hole), "{hole} in {text}");
    }
    assert_eq!(Graph::parse(&text).expect("comments are skipped"), graph);
    let few = print_with(&graph, &numbers[..2]).to_string();
    assert!(few.contains("float /* 0.0 */, float, generator"), "{few}");
}

#[test]
fn an_empty_graph_and_free_spacing() {
    let empty = GraphBuilder::new().finish(vec![]);
    assert_eq!(empty.to_string(), "graph() {\n  return\n}\n");
    assert_eq!(Graph::parse(&empty.to_string()), Ok(empty.clone()));
    assert_eq!("graph(){return}".parse(), Ok(empty.clone()));
    assert_eq!(Graph::parse("// a\ngraph ( /* b */ ) { return // c\n } // d"), Ok(empty));
}

#[test]
fn sites_are_not_printed_and_layouts_are_shared() {
    let (graph, _) = everything();
    let back = Graph::parse(EVERYTHING).expect("valid text");
    assert_eq!(graph.nodes()[0].site, SiteId(7));
    assert_eq!(back.nodes()[0].site, SiteId::default());
    assert!(std::sync::Arc::ptr_eq(&back.params()[0], &back.nodes()[0].results()[0]));
}

#[test]
fn errors_say_where_and_what() {
    let said = |text: &str| Graph::parse(text).expect_err(text).to_string();
    let in_node = |args: &str| said(&format!("graph(%p0: f32[]) {{\n  a::b({args})\n  return\n}}"));
    let dims = |dims: &str| said(&format!("graph(%p0: f32{dims}) {{ return }}"));
    for (error, expected) in [
        (said(""), "1:1: expected `graph`, found the end"),
        (said("graph {"), "1:7: expected `(`, found '{'"),
        (said("graph() { return } x"), "1:20: expected the end, found `x`"),
        (said("graph() {"), "1:10: expected an operator, a result or `return`, found the end"),
        (said("graph() { 3 }"), "1:11: expected an operator, a result or `return`, found `3`"),
        (said("graph() { return /* }"), "1:18: expected a value, found '/'"),
        (said("graph(%p1: f32[]) { return }"), "1:7: expected %p0, found `%p1`"),
        (said("graph(%p0: f33[]) { return }"), "1:12: expected a dtype, found `f33`"),
        (said("graph(%p0: f32[] %p1"), "1:18: expected `,` or `)`, found `%p1`"),
        (said("graph(é"), "1:7: expected %p0, found 'é'"),
        (said("graph(/* é */ é"), "1:15: expected %p0, found 'é'"),
        (dims("[2, 3]{1}"), "1:22: expected 2 strides, one per dimension, found `1`"),
        (dims("[99999999999999999999]"), "1:16: expected a 64-bit integer, found `99999999999999999999`"),
        (said("graph() { %1: f32[] = a::b() return }"), "1:11: expected %0, found `%1`"),
        (said("graph() { %0: f32[] = a::b(%0) return }"), "1:28: expected a value defined above, found `%0`"),
        (said("graph() { return %p4000000000 }"), "1:18: expected a value, found `%p4000000000`"),
        (said("graph() { a::b return }"), "1:16: expected `(` or `raw`, found `return`"),
        (said("graph() { a::b raw [0xfg]() 0 return }"), "1:21: expected a 64-bit hexadecimal number, found `0xfg`"),
        (said("graph() { \"\\xff\"() return }"), "1:11: expected an operator name in UTF-8, found '\"'"),
        (in_node("%p1"), "2:8: expected a value defined above, found `%p1`"),
        (in_node("integer 3"), "2:8: expected an argument, found `integer`"),
        (in_node("int x"), "2:12: expected a 64-bit integer, found `x`"),
        (in_node("bool 1"), "2:13: expected `true` or `false`, found `1`"),
        (in_node("number f32"), "2:15: expected `i64`, `f64`, `bool` or `c128`, found `f32`"),
        (in_node("wrapped rng"), "2:16: expected the dtype of a number, found `rng`"),
        (in_node("floats [1e999]"), "2:16: expected a 64-bit float, found `1e999`"),
        (in_node("floats [nan(0x1)]"), "2:20: expected bits of a NaN, found `0x1`"),
        (in_node("\"a"), "4:2: expected `\"`, found the end"),
        (
            in_node("\"\\q\""),
            "2:9: expected an escape: `\\\"`, `\\\\`, `\\n`, `\\r`, `\\t` or `\\x` and two digits, found '\\\\'",
        ),
        (in_node("none,"), "2:13: expected an argument, found ')'"),
    ] {
        assert_eq!(error, expected);
    }
}

#[test]
fn too_many_numbers_are_an_error() {
    let line = "a::b raw []() 65535\n";
    let text = format!("graph() {{\n{}return }}", line.repeat(65_538));
    assert!(Graph::parse(&text).is_err_and(|e| e.expected == "fewer runtime numbers"));
}

#[test]
fn an_operator_met_in_a_text_first_has_the_properties_its_schema_tells_later() {
    let mut b = GraphBuilder::new();
    let x = b.param(layout(DType::F32, &[2]));
    let y = add(&mut b, "test::other_", ArgWriter::new().tensor(), &[x], &[layout(DType::F32, &[2])]);
    let text = b.finish(vec![y]).to_string().replace("test::other_", "test::met_in_a_text_");
    let met = Graph::parse(&text).expect("valid text").nodes()[0].op();
    assert!(!met.has(Props::MUTATES));
    let defined = Op::intern("test::met_in_a_text_", Props::MUTATES.and(Props::RANDOM));
    assert!(met == defined && met.has(Props::MUTATES.and(Props::RANDOM)));
    assert!(op("test::met_in_a_text_").has(Props::MUTATES), "asking with less takes nothing away");
}
