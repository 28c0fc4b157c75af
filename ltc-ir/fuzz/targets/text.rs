//! Any text: it is refused, or it is a graph that reads back, hashes, is drawn and verified (which runs the shape
//! rules).
#![no_main]

use libfuzzer_sys::fuzz_target;
use ltc_ir::{Graph, Symbolic, dot, verify};

fuzz_target!(|text: &str| {
    if let Ok(graph) = Graph::parse(text) {
        let printed = graph.to_string();
        let again = Graph::parse(&printed).expect("what is printed is read");
        let _ = (verify(&graph), dot(&graph).to_string());
        assert_eq!(again.hash(), graph.hash());
        assert_eq!(again.to_string(), printed);
        assert_eq!(again, graph);
    }
    if let Ok(symbolic) = Symbolic::parse(text) {
        let printed = symbolic.to_string();
        assert_eq!(Symbolic::parse(&printed).expect("what is printed is read").to_string(), printed);
    }
});
