//! Text, hash, equality and verifier of random graphs.

use ltc_ir::{DType, Graph, Layout, ValueId, dot, print_with, verify};
use proptest::prelude::*;

use crate::random::{self, Parts, op};

/// One structural change; `None` where the graph has nothing of the kind.
fn changed(graph: &Graph, kind: usize, at: usize, bit: u32) -> Option<Graph> {
    let mut parts = Parts::of(graph);
    let other = Layout::contiguous(DType::F32, &[17, 4]).into();
    let node = at.checked_rem(parts.nodes.len());
    match kind {
        0 => parts.params.push(other),
        1 => *parts.params.get_mut(at.checked_rem(graph.params().len())?)? = other,
        2 => parts.outputs.push(ValueId::param(0)),
        3 => *parts.outputs.get_mut(at.checked_rem(graph.outputs().len())?)? = ValueId::result(99),
        4 => drop(parts.outputs.pop()?),
        5 => drop(parts.params.pop()?),
        6 => {
            let (name, ..) = &mut parts.nodes[node?];
            *name = if *name == op(0) { op(1) } else { op(0) };
        }
        7 => {
            let (_, words, ..) = &mut parts.nodes[node?];
            let word = bit as usize;
            let i = word.checked_rem(words.len())?;
            words[i] ^= 1 << (bit % 64);
        }
        8 => parts.nodes[node?].1.push(0),
        9 => {
            let operands = &mut parts.nodes[node?].2;
            let i = (bit as usize).checked_rem(operands.len())?;
            operands[i] = ValueId::result(99);
        }
        10 => drop(parts.nodes[node?].2.pop()?),
        // The value whose id is all zero bits: a hash that leaves out the count would not see it.
        11 => parts.nodes[node?].2.push(ValueId::result(0)),
        12 => parts.nodes[node?].4.push(other),
        13 => drop(parts.nodes[node?].4.pop()?),
        14 => drop(parts.nodes.remove(node?)),
        _ => {
            let node = parts.nodes[node?].clone();
            parts.nodes.push(node);
        }
    }
    Some(parts.build())
}

const KINDS: usize = 16;

/// Whether every value used is defined above; text cannot say anything else.
fn all_defined(graph: &Graph) -> bool {
    let defined = |v: &ValueId, results: usize| match v.as_param() {
        Some(p) => p < graph.params().len(),
        None => v.as_result().is_some_and(|r| r < results),
    };
    graph.nodes().iter().all(|n| n.operands.iter().all(|v| defined(v, n.first_result as usize)))
        && graph.outputs().iter().all(|v| defined(v, graph.result_count()))
}

proptest! {
    #[test]
    fn generated_graphs_verify((graph, numbers) in random::graph()) {
        prop_assert_eq!(verify(&graph), Ok(()));
        prop_assert_eq!(graph.number_count(), numbers.len());
    }

    #[test]
    fn text_reads_back((graph, numbers) in random::graph()) {
        let text = graph.to_string();
        let back = Graph::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(&back, &graph);
        prop_assert_eq!(back.hash(), graph.hash());
        prop_assert_eq!(back.number_count(), graph.number_count());
        prop_assert_eq!(back.to_string(), text);
        let commented = print_with(&graph, &numbers).to_string();
        prop_assert_eq!(Graph::parse(&commented), Ok(graph));
    }

    #[test]
    fn broken_graphs_print_and_read_back((graph, _) in random::graph(), kind in 6..KINDS, at: usize, bit: u32) {
        let Some(broken) = changed(&graph, kind, at, bit) else { return Ok(()) };
        let text = broken.to_string();
        let _ = dot(&broken).to_string();
        let back = Graph::parse(&text);
        prop_assert_eq!(back.is_ok(), all_defined(&broken), "{}", text);
        if let Ok(back) = back {
            prop_assert_eq!(back, broken);
        }
    }

    #[test]
    fn damaged_text_never_panics(
        (graph, _) in random::graph(),
        edits in prop::collection::vec((any::<usize>(), any::<u8>(), 0..4u8), 1..6),
    ) {
        let mut text = graph.to_string().into_bytes();
        for (at, byte, how) in edits {
            let Some(at) = at.checked_rem(text.len()) else { break };
            match how {
                0 => text[at] = byte,
                1 => drop(text.remove(at)),
                2 => text.insert(at, b"%(){}[],:\"\\/*- p0x9n"[byte as usize % 20]),
                _ => text.truncate(at),
            }
        }
        if let Ok(graph) = Graph::parse(&String::from_utf8_lossy(&text)) {
            let again = Graph::parse(&graph.to_string());
            let _ = verify(&graph);
            prop_assert_eq!(again, Ok(graph));
        }
    }

    #[test]
    fn damaged_calls_of_the_table_are_refused_or_accepted_by_their_rules_without_a_panic(
        call in 0..CALLS.len(),
        edits in prop::collection::vec((any::<usize>(), 0..BITS.len(), 0..3u8), 1..8),
    ) {
        const PARAMS: &str = "graph(%p0: f32[4], %p1: f32[2, 2], %p2: i64[3], %p3: f32[2, 3, 8, 8], \
                              %p4: bool[2, 2], %p5: f32[3, 3, 3, 3])";
        let mut text = CALLS[call].to_owned();
        for (at, bit, how) in edits {
            // Words of the text: damage that is still a graph is what the rules see.
            let words: Vec<(usize, &str)> = text
                .split(' ')
                .scan(0, |at, w| {
                    let here = *at;
                    *at += w.len() + 1;
                    Some((here, w))
                })
                .collect();
            let (start, word) = words[at % words.len()];
            let end = start + word.len();
            let new = match how {
                0 => BITS[bit].to_owned(),
                1 => String::new(),
                _ => format!("{word} {}", BITS[bit]),
            };
            text.replace_range(start..end, &new);
        }
        if let Ok(graph) = Graph::parse(&format!("{PARAMS} {{ {text}\n return }}")) {
            let _ = verify(&graph);
        }
    }

    #[test]
    fn any_text_never_panics(text: String, tokens in prop::collection::vec(0..TOKENS.len(), 0..40)) {
        let _ = Graph::parse(&text);
        let text: Vec<&str> = tokens.into_iter().map(|t| TOKENS[t]).collect();
        let _ = Graph::parse(&text.join(" "));
    }

    #[test]
    fn equal_graphs_hash_equal((graph, _) in random::graph()) {
        let again = Parts::of(&graph).build();
        prop_assert_eq!(&again, &graph);
        prop_assert_eq!(again.hash(), graph.hash());
        prop_assert_eq!(dot(&again).to_string(), dot(&graph).to_string());
    }

    #[test]
    fn any_change_shows((graph, _) in random::graph(), kind in 0..KINDS, at: usize, bit: u32) {
        let Some(other) = changed(&graph, kind, at, bit) else { return Ok(()) };
        prop_assert!(other != graph, "change {}", kind);
        prop_assert_ne!(other.hash(), graph.hash(), "change {}", kind);
    }
}

/// Calls of operators with shape rules, in words.
const CALLS: [&str; 14] = [
    "%0: f32[4] = aten::add.Tensor( %p0 , wrapped f64, number i64)",
    "%0: f32[2, 2] = aten::mm( %p1 , %p1 )",
    "%0: f32[] = aten::sum( %p1 , none )",
    "%0: f32[2] = aten::sum.dim_IntList( %p1 , ints [ 1 ] , bool false , none )",
    "%0: f32[2], %1: i64[2] = aten::max.dim( %p1 , int 0 , bool false )",
    "%0: f32[2, 3, 8, 8] = aten::convolution( %p3 , %p5 , none , ints [ 1 , 1 ] , ints [ 1 , 1 ] , ints [ 1 , 1 ] , \
     bool false , ints [ 0 , 0 ] , int 1 )",
    "%0: f32[2, 3, 4, 4], %1: i64[2, 3, 4, 4] = aten::max_pool2d_with_indices( %p3 , ints [ 2 , 2 ] , ints [ 2 , 2 ] , \
     ints [ 0 , 0 ] , ints [ 1 , 1 ] , bool false )",
    "%0: f32[4, 2] = aten::cat( tensors [ %p1 , %p1 ] , int 0 )",
    "%0: f32[2, 2] = aten::where.self( %p4 , %p1 , %p1 )",
    "%0: f32[3] = aten::index_select( %p0 , int 0 , %p2 )",
    "%0: f32[2, 2] = aten::_softmax( %p1 , int 1 , bool false )",
    "%0: f32[2, 2] = aten::as_strided_copy( %p0 , ints [ 2 , 2 ] , ints [ 2 , 1 ] , none )",
    "%0: f32[7] = aten::arange( number i64 , none , none , none , none )",
    "%0: f32[2, 3, 16, 16] = aten::upsample_nearest2d( %p3 , ints [ 16 , 16 ] , none , none )",
];

/// What words of them may become.
const BITS: [&str; 30] = [
    "%p0",
    "%p1",
    "%p2",
    "%p3",
    "%p4",
    "%p5",
    "mut %p1",
    "none",
    "int 0",
    "int -1",
    "int 9223372036854775807",
    "int -9223372036854775808",
    "0",
    "-1",
    "1",
    "3",
    "9223372036854775807",
    "4611686018427387904",
    "-9223372036854775808",
    "ints [ ]",
    "ints [ 0 , 0 ]",
    "tensors [ ]",
    "tensors [ none ]",
    "bool true",
    "number f64",
    "number c64",
    "wrapped bool",
    "str \"x\"",
    "floats [ ]",
    ",",
];

const TOKENS: [&str; 36] = [
    "graph",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "%p0",
    "%0",
    "%1",
    "f32",
    "rng",
    "0",
    "-1",
    "0x7",
    "return",
    "raw",
    "aten::x",
    "mut",
    "fresh",
    "tensors",
    "none",
    "ints",
    "floats",
    "nan",
    "inf",
    "1e5",
    "\"s\"",
    "number",
    "i64",
    "generator",
    "/*",
    "//",
];
