//! Graphs as Graphviz DOT.

use ltc_ir::{Graph, dot};

#[test]
fn operations_values_and_outputs() {
    let text = r#"graph(%p0: f32[2, 3], %p1: rng[]) {
  %0: f32[2], %1: i64[2] = aten::max.dim(%p0, int 1, bool false)
  %2: f32[2] = "odd \"name\""(%0, %0, "a\\b
c", number i64)
  aten::nothing()
  return %2, %p1, %1
}"#;
    let graph = Graph::parse(text).expect("valid text");
    let expected = r#"digraph graph_ {
  node [fontname=monospace]
  p0 [shape=ellipse, label="%p0: f32[2, 3]"]
  p1 [shape=ellipse, label="%p1: rng[]"]
  n0 [shape=box, label="aten::max.dim(%p0, int 1, bool false)\l%0: f32[2]\l%1: i64[2]\l"]
  p0 -> n0
  n1 [shape=box, label="odd \"name\"(%0, %0, \"a\\\\b\\nc\", number i64)\l%2: f32[2]\l"]
  n0 -> n1 [label="%0"]
  n0 -> n1 [label="%0"]
  n2 [shape=box, label="aten::nothing()"]
  o0 [shape=box, peripheries=2, label="output 0"]
  n1 -> o0
  o1 [shape=box, peripheries=2, label="output 1"]
  p1 -> o1
  o2 [shape=box, peripheries=2, label="output 2"]
  n0 -> o2 [label="%1"]
}
"#;
    assert_eq!(dot(&graph).to_string(), expected);
}
