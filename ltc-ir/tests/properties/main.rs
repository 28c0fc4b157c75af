//! What holds for any graph, blob, layout and trace, on random ones.

mod arguments;
mod calls;
mod graphs;
mod layouts;
mod random;
mod traces;
