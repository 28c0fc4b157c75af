//! Symbolic graphs: what two sizes of one program have in common, and what is taken for granted.

use std::sync::Arc;

use ltc_ir::{Graph, Refusal, Symbolic, symbolic};

/// A batch `b` through a linear layer, a view of `b` rows as pairs, and a mean over the batch written as a factory's
/// size.
fn step(b: i64, f: i64) -> Arc<Graph> {
    let (half, all) = (b / 2, b * f);
    Graph::parse(&format!(
        "graph(%p0: f32[{b}, {f}], %p1: f32[{f}, 10], %p2: f32[{b}, 10]) {{
           %0: f32[{b}, 10] = aten::mm(%p0, %p1)
           %1: f32[{b}, 10] = aten::sub.Tensor(%0, %p2, number i64)
           %2: f32[{half}, 20] = ltc::read_view(%1, int 0)
           %3: f32[{f}, {b}]{{1, {f}}} = ltc::read_view(%p0, int 0)
           %4: f32[{f}, 10] = aten::mm(%3, %1)
           %5: f32[{all}] = aten::full(ints [{all}], number f64, int 6, none, none, none)
           return %2, %4, %5
         }}"
    ))
    .unwrap_or_else(|e| panic!("{e}"))
    .into()
}

fn seen(graphs: &[&Arc<Graph>]) -> Vec<Vec<i64>> {
    graphs.iter().map(|g| symbolic::integers(g)).collect()
}

fn generalized(graphs: &[&Arc<Graph>]) -> Symbolic {
    Symbolic::generalize(graphs[0], &seen(graphs)).expect("they differ in sizes only")
}

#[test]
fn one_symbol_explains_a_batch() {
    let s = generalized(&[&step(8, 7), &step(12, 7)]);
    assert_eq!(
        s.to_string(),
        "symbols(s0 = 8) where s0 > 1, s0/2 > 1\n\
         graph(%p0: f32[s0, 7], %p1: f32[7, 10], %p2: f32[s0, 10]) {\n  \
           %0: f32[s0, 10] = aten::mm(%p0, %p1)\n  \
           %1: f32[s0, 10] = aten::sub.Tensor(%0, %p2, number i64)\n  \
           %2: f32[s0/2, 20] = ltc::read_view(%1, int 0)\n  \
           %3: f32[7, s0]{1, 7} = ltc::read_view(%p0, int 0)\n  \
           %4: f32[7, 10] = aten::mm(%3, %1)\n  \
           %5: f32[7*s0] = aten::full(ints [7*s0], number f64, int 6, none, none, none)\n  \
           return %2, %4, %5\n}\n"
    );
    assert_eq!(s.verify(), Ok(()));
    assert_eq!(Symbolic::parse(&s.to_string()), Ok(s.clone()));
    assert_eq!(s.summary(), "s0 = size 0 of %p0; s0 > 1; s0/2 > 1; s0/2 is an integer");
    for b in [4, 6, 100] {
        assert_eq!(s.admit(&symbolic::integers(&step(b, 7))), Ok(vec![b]));
        assert_eq!(s.instantiate(&[b]).as_ref(), Some(&*step(b, 7)));
    }
}

#[test]
fn assumptions_are_checked() {
    let s = generalized(&[&step(8, 7), &step(12, 7)]);
    let admit = |g: &Graph| s.admit(&symbolic::integers(g)).unwrap_err().to_string();
    assert_eq!(admit(&step(9, 7)), "s0/2 is no integer");
    assert_eq!(admit(&step(2, 7)), "s0/2 > 1 does not hold: it is 1");
    assert_eq!(admit(&step(0, 7)), "s0 > 1 does not hold: it is 0");
    assert_eq!(admit(&step(8, 9)), "size 1 of %p0 is 9, not 7");
    // Sizes that were equal stop being equal.
    let text = step(8, 7).to_string().replace("%p2: f32[8, 10]", "%p2: f32[6, 10]");
    let unequal = Graph::parse(&text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(admit(&unequal), "size 0 of %p2 is 6, not s0");
}

#[test]
fn sizes_of_one_are_not_generalised() {
    assert_eq!(Symbolic::generalize(&step(2, 7), &seen(&[&step(2, 7), &step(4, 7)])), None, "b/2 is one");
    assert_eq!(Symbolic::generalize(&step(8, 7), &seen(&[&step(8, 7), &step(0, 7)])), None);
    assert_eq!(Symbolic::generalize(&step(8, 7), &seen(&[&step(8, 7), &step(8, 7)])), None, "nothing differs");
}

#[test]
fn a_third_size_corrects_the_expressions() {
    let (a, b, c) = (step(8, 7), step(12, 7), step(12, 9));
    let s = generalized(&[&a, &b, &c]);
    assert_eq!(s.symbols(), 2);
    assert!(s.to_string().contains("aten::full(ints [s0*s1]"), "{s}");
    assert_eq!(s.admit(&symbolic::integers(&step(20, 30))), Ok(vec![20, 30]));
    assert_eq!(Symbolic::parse(&s.to_string()), Ok(s));
}

#[test]
fn squares_and_offsets_are_found() {
    let scores = |n: i64| -> Arc<Graph> {
        let (m, o) = (n + 1, n * n);
        let text = format!(
            "graph(%p0: f32[4, {n}, {n}], %p1: f32[4, {m}]) {{
               %0: f32[4, {n}]{{{o}, 1}} = ltc::read_view(%p0, int {n}) return %0 }}"
        );
        Graph::parse(&text).unwrap_or_else(|e| panic!("{e}")).into()
    };
    let s = generalized(&[&scores(5), &scores(9)]);
    let text = s.to_string();
    assert!(text.contains("%p0: f32[4, s0, s0], %p1: f32[4, s0 + 1]"), "{text}");
    assert!(text.contains("%0: f32[4, s0]{s0*s0, 1} = ltc::read_view(%p0, int s0)"), "{text}");
    assert_eq!(Symbolic::parse(&text), Ok(s));
}

#[test]
fn skeletons_ignore_sizes_and_nothing_else() {
    let same = |a: &Graph, b: &Graph| {
        let hashes = symbolic::skeleton(a) == symbolic::skeleton(b);
        assert_eq!(hashes, symbolic::has_same_skeleton(a, b));
        hashes
    };
    let g = step(8, 7);
    assert!(same(&g, &step(30, 2)));
    let changed = |from: &str, to: &str| {
        let text = g.to_string().replacen(from, to, 1);
        assert_ne!(text, g.to_string());
        Graph::parse(&text).unwrap_or_else(|e| panic!("{e}"))
    };
    assert!(!same(&g, &changed("aten::sub.Tensor", "aten::add.Tensor")));
    assert!(!same(&g, &changed("%p2, number", "%0, number")));
    assert!(!same(&g, &changed("%p1: f32", "%p1: f64")));
    assert!(!same(&g, &changed("number f64, int 6", "number f64, int 7")), "a dtype is no size");
    assert!(!same(&g, &changed("return %2, %4", "return %4, %2")));
    assert!(same(&g, &changed("ints [56]", "ints [57]")));
}

#[test]
fn text_that_makes_no_sense_is_refused() {
    let error = |text: &str| Symbolic::parse(text).unwrap_err().to_string();
    let missing = "symbols(s0 = 8) graph(%p0: f32[2*s0]) { return %p0 }";
    assert!(error(missing).contains("an integer that is just the symbol"), "{}", error(missing));
    let unknown = "symbols(s0 = 8) graph(%p0: f32[s1]) { return %p0 }";
    assert_eq!(error(unknown), "1:32: expected an integer or a symbol, found `s1`");
    let uneven = "symbols(s0 = 7) graph(%p0: f32[s0], %p1: f32[s0/2]) { return %p0 }";
    assert!(error(uneven).contains("an integer at these symbols"), "{}", error(uneven));
}

#[test]
fn the_verifier_looks_at_other_sizes_too() {
    // Right at 8, outside of its base beyond.
    let text = "symbols(s0 = 8) where s0 > 1
        graph(%p0: f32[s0]) { %0: f32[4] = ltc::read_view(%p0, int (s0 - 4)) %1: f32[s0] = ltc::read_view(%0, int 0)
        return %1 }";
    let small = "symbols(s0 = 4) where s0 > 1
        graph(%p0: f32[s0]) { %0: f32[4] = ltc::read_view(%p0, int 0) %1: f32[s0] = ltc::read_view(%0, int 0)
        return %1 }";
    let parse = |t: &str| Symbolic::parse(t).unwrap_or_else(|e| panic!("{e}"));
    assert!(parse(text).verify().is_err());
    let fault = parse(small).verify().unwrap_err().to_string();
    assert_eq!(fault, "with symbols [8]: node 1 (ltc::read_view): the view ends at byte 32 of a base of 16");
    let refused = "symbols(s0 = 1) where s0 > 1 graph(%p0: f32[s0]) { return %p0 }";
    let refused = parse(refused).verify().unwrap_err();
    assert!(matches!(refused, ltc_ir::symbolic::SymbolicFault::Refuses(Refusal::NotAboveOne { .. })));
}
