//! Properties of traces: what is canonicalised, what is an output, what is donated; depth without recursion.

use std::sync::Arc;

use ltc_ir::{
    ArgWriter, Canonical, DType, Layout, LayoutRef, Op, Operands, Props, Signature, SiteId, Value, canonicalize,
    text::parse, verify::verify,
};
use proptest::{collection::vec, prelude::*};
use smallvec::SmallVec;

type V = Value<u32>;

fn layout() -> LayoutRef {
    Arc::new(Layout::contiguous(DType::F32, &[2]))
}

#[derive(Clone, Debug)]
enum Step {
    Leaf,
    /// An operation on earlier values with one or two results.
    Op {
        operands: Vec<u8>,
        two: bool,
        number: i64,
    },
    Drop(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = (vec(any::<u8>(), 0..4), any::<bool>(), -2i64..3).prop_map(|(operands, two, number)| Step::Op {
        operands,
        two,
        number,
    });
    vec(prop_oneof![1 => Just(Step::Leaf), 6 => op, 3 => any::<u8>().prop_map(Step::Drop)], 0..25)
}

/// A recorder: the user's values, and weak entries in recording order.
#[derive(Default)]
struct Recorder {
    held: Vec<V>,
    tape: Vec<ltc_ir::WeakValue<u32>>,
    leaves: u32,
}

impl Recorder {
    fn run(steps: &[Step]) -> Recorder {
        let mut r = Recorder::default();
        for step in steps {
            match step {
                Step::Leaf => {
                    r.held.push(V::data(layout(), r.leaves));
                    r.leaves += 1;
                }
                Step::Op { operands, two, number } => {
                    let operands: Operands<u32> = operands
                        .iter()
                        .filter(|_| !r.held.is_empty())
                        .map(|&i| r.held[i as usize % r.held.len()].clone())
                        .collect();
                    let mut w = ArgWriter::new();
                    w.tensors(&vec![true; operands.len()], Default::default());
                    w.number(ltc_ir::Scalar::Int(*number));
                    let (words, numbers) = w.finish();
                    let results = std::iter::repeat_n(layout(), 1 + usize::from(*two)).collect();
                    let signature = Signature::new(Op::intern("test::trace", Props::NONE), words, results);
                    let node = V::record(signature, operands, numbers, SiteId(7));
                    r.tape.push(node.downgrade());
                    if *two {
                        for i in 0..2 {
                            let part = node.result(i);
                            r.tape.push(part.downgrade());
                            r.held.push(part);
                        }
                    } else {
                        r.held.push(node);
                    }
                }
                Step::Drop(i) if !r.held.is_empty() => {
                    let at = *i as usize % r.held.len();
                    drop(r.held.remove(at));
                }
                Step::Drop(_) => {}
            }
        }
        r
    }

    fn canonical(&self, epoch: u32) -> Canonical<u32> {
        canonicalize(self.tape.iter().filter_map(|w| w.upgrade()).filter(V::is_pending).collect(), epoch)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn live_traces_become_valid_graphs(steps in steps()) {
        let r = Recorder::run(&steps);
        let c = r.canonical(1);
        let graph = c.to_graph();
        verify(&graph).map_err(|e| TestCaseError::fail(format!("{e}\n{graph}")))?;
        prop_assert!(c.matches(&graph));
        prop_assert_eq!(c.hash(), graph.hash());
        prop_assert_eq!(c.numbers.len(), graph.number_count());
        prop_assert_eq!(&parse(&graph.to_string()).expect("its text"), &graph);
        // Outputs: exactly the pending values the user holds, each once.
        let mut held: Vec<&V> = Vec::new();
        for v in r.held.iter().filter(|v| v.is_pending()) {
            if !held.iter().any(|h| h.same(v)) {
                held.push(v);
            }
        }
        prop_assert_eq!(c.outputs.len(), held.len());
        prop_assert!(held.iter().all(|h| c.outputs.iter().any(|o| o.same(h))));
        // Donated: leaves the user let go.
        for p in &c.params {
            let by_user = r.held.iter().any(|v| v.inspect(|_, _| false, |leaf| *leaf == p.data));
            prop_assert_eq!(p.donated, !by_user, "leaf {}", p.data);
        }
    }

    #[test]
    fn the_same_program_gives_the_same_graph_and_another_number_does_too(steps in steps(), delta in 1i64..5) {
        let graph = Recorder::run(&steps).canonical(1).to_graph();
        let again = Recorder::run(&steps);
        prop_assert!(again.canonical(1).matches(&graph));
        let changed: Vec<Step> = steps.iter().cloned().map(|s| match s {
            Step::Op { operands, two, number } => Step::Op { operands, two, number: number + delta },
            s => s,
        }).collect();
        prop_assert!(Recorder::run(&changed).canonical(1).matches(&graph), "numbers are no structure");
    }

    #[test]
    fn another_program_does_not_match(steps in steps(), extra in vec(any::<u8>(), 0..3)) {
        let graph = Recorder::run(&steps).canonical(1).to_graph();
        let mut longer = steps.clone();
        longer.push(Step::Op { operands: extra, two: false, number: 0 });
        prop_assert!(!Recorder::run(&longer).canonical(1).matches(&graph));
    }

    #[test]
    fn resolving_outputs_leaves_nothing_pending(steps in steps()) {
        let r = Recorder::run(&steps);
        let c = r.canonical(1);
        for (i, v) in c.outputs.iter().enumerate() {
            v.resolve(1000 + i as u32);
        }
        drop(c);
        prop_assert!(r.held.iter().all(|v| !v.is_pending()));
        prop_assert!(r.canonical(2).to_graph().nodes().is_empty());
    }
}

/// On the 2 MiB stack of a test thread: nothing recurses.
#[test]
fn a_chain_of_a_million_records_hashes_prints_parses_and_drops() {
    const N: usize = 1_000_000;
    let leaf = V::data(layout(), 0);
    let words = ArgWriter::new().tensor().finish().0;
    let signature = Signature::new(Op::intern("test::chain", Props::NONE), words, SmallVec::from_iter([layout()]));
    let mut tape = Vec::with_capacity(N);
    let mut y = leaf.clone();
    for _ in 0..N {
        y = V::record(signature.clone(), SmallVec::from_iter([y]), SmallVec::new(), SiteId::default());
        tape.push(y.downgrade());
    }
    let c = canonicalize(tape.iter().filter_map(|w| w.upgrade()).collect(), 1);
    assert_eq!((c.node_count(), c.outputs.len()), (N, 1));
    let graph = c.to_graph();
    drop(c);
    let text = graph.to_string();
    assert_eq!(text.lines().count(), N + 3);
    assert_eq!(parse(&text).expect("its text").hash(), graph.hash());
    verify(&graph).expect("a valid graph");
    assert!(ltc_ir::dot::dot(&graph).len() > N);
    drop(y);
    assert!(tape.iter().all(|w| !w.is_held()));
}
