//! A graph as Graphviz DOT, for looking at.
//!
//! Parameters are ellipses, operations boxes, outputs double-edged; an edge says which value flows when its source has
//! several. Deterministic: the same graph gives the same text.

use std::fmt::{self, Write};

use crate::{
    graph::{Graph, ValueId},
    text::{Names, write_args},
};

/// The graph in DOT.
pub fn dot(graph: &Graph) -> impl fmt::Display + '_ {
    Drawing(graph)
}

/// A graph that prints as DOT.
struct Drawing<'a>(&'a Graph);

impl fmt::Display for Drawing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_dot(f, self.0)
    }
}

fn write_dot(f: &mut fmt::Formatter<'_>, graph: &Graph) -> fmt::Result {
    f.write_str("digraph graph_ {\n  node [fontname=monospace]\n")?;
    let mut label = String::new();
    for (i, layout) in graph.params().iter().enumerate() {
        label.clear();
        write!(label, "%p{i}: {layout}")?;
        writeln!(f, "  p{i} [shape=ellipse, label={}]", Quoted(&label))?;
    }
    for (i, node) in graph.nodes().iter().enumerate() {
        label.clear();
        write!(label, "{}", node.op())?;
        write_args(&mut label, node, &[], &mut Names::default())?;
        for (id, layout) in node.result_ids().zip(node.results()) {
            write!(label, "\n{id}: {layout}")?;
        }
        writeln!(f, "  n{i} [shape=box, label={}]", Quoted(&label))?;
        for &operand in &node.operands {
            write_edge(f, graph, operand, format_args!("n{i}"))?;
        }
    }
    for (i, &output) in graph.outputs().iter().enumerate() {
        writeln!(f, "  o{i} [shape=box, peripheries=2, label=\"output {i}\"]")?;
        write_edge(f, graph, output, format_args!("o{i}"))?;
    }
    f.write_str("}\n")
}

fn write_edge(f: &mut impl Write, graph: &Graph, from: ValueId, to: fmt::Arguments<'_>) -> fmt::Result {
    match from.as_param() {
        Some(p) => writeln!(f, "  p{p} -> {to}"),
        None => {
            let Some(index) = graph.definition_index(from) else { return Ok(()) };
            let label =
                if graph.nodes()[index].results().len() > 1 { format!(" [label=\"{from}\"]") } else { String::new() };
            writeln!(f, "  n{index} -> {to}{label}")
        }
    }
}

/// A quoted DOT string: quotes and backslashes escaped, lines left-aligned.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\l")?,
                c => f.write_char(c)?,
            }
        }
        f.write_str(if self.0.contains('\n') { "\\l\"" } else { "\"" })
    }
}
