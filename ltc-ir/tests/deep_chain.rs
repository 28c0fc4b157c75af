//! Depth is limited by memory only: a chain of a million operations on an ordinary 2 MiB stack.

use ltc_ir::{
    ArgWriter, DType, Graph, Layout, LayoutRef, Op, Operands, Props, Results, SiteId, Value, canonicalize, dot,
    reachable, verify,
};

const DEPTH: usize = 1_000_000;

fn on_an_ordinary_stack(f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(f).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn chain(layout: &LayoutRef) -> Value<()> {
    let relu = Op::intern("aten::relu", Props::NONE);
    let (words, _) = ArgWriter::new().tensor().finish();
    let mut value = Value::data(layout.clone(), ());
    for i in 0..DEPTH {
        let results = Results::from_iter([layout.clone()]);
        let operands = Operands::from_iter([value]);
        value = Value::record(
            ltc_ir::Signature::new(relu, words.clone(), results),
            operands,
            Default::default(),
            SiteId(i as u32),
        );
    }
    value
}

#[test]
fn records_canonicalises_prints_parses_and_drops() {
    on_an_ordinary_stack(|| {
        let layout: LayoutRef = Layout::contiguous(DType::F32, &[2, 3]).into();
        let value = chain(&layout);
        let set = reachable(std::slice::from_ref(&value), 1);
        assert_eq!(set.len(), DEPTH);
        let canonical = canonicalize(set, 2);
        let graph = canonical.to_graph();
        assert!(canonical.matches(&graph));
        assert_eq!(canonical.outputs.len(), 1);
        drop(canonical);
        drop(value);

        assert_eq!(verify(&graph), Ok(()));
        let text = graph.to_string();
        assert_eq!(text.lines().count(), DEPTH + 3);
        let back = Graph::parse(&text).expect("printed text is valid");
        assert!(back == graph && back.hash() == graph.hash());
        assert!(dot(&graph).to_string().lines().count() > 2 * DEPTH);
    });
}

#[test]
fn drops_without_having_been_used() {
    on_an_ordinary_stack(|| drop(chain(&Layout::contiguous(DType::F32, &[]).into())));
}

#[test]
fn resolving_the_end_drops_the_rest() {
    on_an_ordinary_stack(|| {
        let value = chain(&Layout::contiguous(DType::F32, &[]).into());
        value.resolve(());
        assert_eq!(value.holders(), 1);
    });
}
