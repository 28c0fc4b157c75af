//! Graphviz form of a graph, for people.

use std::fmt::{self, Display, Formatter, Write};

use crate::graph::{Graph, ValueId};

/// Escapes a label.
struct Label<T>(T);

impl<T: Display> Display for Label<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.to_string().chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// The graph in the DOT language: boxes are operations, ellipses parameters and outputs, edges values with their layout.
pub fn dot(graph: &Graph) -> String {
    struct Dot<'a>(&'a Graph);
    impl Display for Dot<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            let graph = self.0;
            // The node that stands for a value.
            let source = |v: ValueId| match v.as_param() {
                Some(p) => format!("p{p}"),
                None => format!("n{}", graph.definition_index(v).unwrap_or_default()),
            };
            f.write_str("digraph ltc {\n  node [fontname=\"monospace\"];\n")?;
            for (i, layout) in graph.params().iter().enumerate() {
                writeln!(f, "  p{i} [label=\"%p{i}: {}\"];", Label(layout))?;
            }
            for (i, node) in graph.nodes().iter().enumerate() {
                writeln!(f, "  n{i} [shape=box, label=\"{}\"];", Label(node.op()))?;
                for &v in &node.operands {
                    writeln!(f, "  {} -> n{i} [label=\"{}\"];", source(v), Label(graph.layout(v)))?;
                }
            }
            for (i, &v) in graph.outputs().iter().enumerate() {
                writeln!(
                    f,
                    "  o{i} [label=\"output {i}\"];\n  {} -> o{i} [label=\"{}\"];",
                    source(v),
                    Label(graph.layout(v))
                )?;
            }
            f.write_str("}\n")
        }
    }
    Dot(graph).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn values_are_edges_from_where_they_are_defined() {
        let graph = crate::text::parse(
            "graph(%p0: f32[2]) { %0: f32[2] = aten::relu(%p0) %1: f32[], %2: i64[] = aten::max.dim(%0, 0, false) return %2 }",
        );
        let dot = super::dot(&graph.expect("a graph"));
        for line in ["p0 -> n0", "n0 -> n1 [label=\"f32[2]\"]", "n1 -> o0 [label=\"i64[]\"]", "label=\"aten::max.dim\""]
        {
            assert!(dot.contains(line), "{line} in {dot}");
        }
    }
}
