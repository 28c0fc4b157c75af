//! The integers of a graph in one order, and what is left without them.
//!
//! Sizes and strides of the parameters, then for each node those of its results and the integers among its arguments.

use std::{fmt, sync::OnceLock};

use crate::{
    args::{EncodedArgs, Tag},
    graph::{Graph, GraphBuilder, ValueId},
    hash::{Domain, Hash128, Hasher},
    layout::{Dims, Layout, LayoutRef},
    op::Op,
    table,
};

/// Calls `visit(argument, position of the word)` for every word that is an integer argument or part of a list of them.
pub(crate) fn int_positions(words: &[u64], mut visit: impl FnMut(usize, usize)) {
    let (mut at, mut argument) = (0, 0);
    while at < words.len() {
        let (tag, len) = (Tag::from_code(words[at] as u8), (words[at] >> 32) as usize);
        at += 1;
        let payload = match tag {
            Some(Tag::Int) => 1,
            Some(Tag::Ints | Tag::Floats | Tag::Bools | Tag::Numbers) => len,
            Some(Tag::Str) => len.div_ceil(8),
            Some(Tag::Tensors) => len.div_ceil(64),
            Some(_) => 0,
            None => return,
        };
        let end = at.saturating_add(payload).min(words.len());
        if matches!(tag, Some(Tag::Int | Tag::Ints)) {
            (at..end).for_each(|word| visit(argument, word));
        }
        (at, argument) = (end, argument + 1);
    }
}

/// All integers of a graph.
pub fn integers(graph: &Graph) -> Vec<i64> {
    let mut all = Vec::with_capacity(graph.value_count() * 4);
    let layout = |all: &mut Vec<i64>, l: &LayoutRef| {
        all.extend_from_slice(l.sizes());
        all.extend_from_slice(l.strides());
    };
    graph.params().iter().for_each(|l| layout(&mut all, l));
    for node in graph.nodes() {
        node.results().iter().for_each(|l| layout(&mut all, l));
        int_positions(node.words(), |_, at| all.push(node.words()[at] as i64));
    }
    all
}

fn with_dims(l: &LayoutRef, rest: &mut impl Iterator<Item = i64>) -> LayoutRef {
    let sizes: Dims = rest.by_ref().take(l.rank()).collect();
    let strides: Dims = rest.by_ref().take(l.rank()).collect();
    if l.is(l.dtype(), &sizes, &strides) { l.clone() } else { Layout::strided(l.dtype(), &sizes, &strides).into() }
}

/// The graph with other integers, as many as it has.
pub(super) fn with_integers(graph: &Graph, all: &[i64]) -> Graph {
    let mut rest = all.iter().copied();
    let mut b = GraphBuilder::new();
    for l in graph.params() {
        b.param(with_dims(l, &mut rest));
    }
    for node in graph.nodes() {
        let results = node.results().iter().map(|l| with_dims(l, &mut rest)).collect();
        let mut words: EncodedArgs = node.words().into();
        int_positions(node.words(), |_, at| words[at] = rest.next().unwrap_or_default() as u64);
        b.node(node.op(), words, &node.operands, node.number_count as usize, results, node.site);
    }
    b.finish(graph.outputs().to_vec())
}

/// Which integer arguments of an operator may be sizes, one bit each. The schema says `SymInt`; of operators without a
/// row all may.
fn size_arguments(op: Op) -> u64 {
    static ROWS: OnceLock<Vec<u64>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        let of = |row: &table::Row| {
            let is_size = |name: &str| {
                let mut words = row.schema.split([',', '(', ')']).map(str::trim).filter(|w| w.starts_with("SymInt"));
                words.any(|w| w.split_once(' ').is_some_and(|(_, n)| n.split('=').next() == Some(name)))
            };
            row.arguments.iter().take(64).enumerate().fold(0, |m, (i, a)| m | u64::from(is_size(a.name)) << i)
        };
        table::rows().iter().map(of).collect()
    });
    let code = op.row().map(|row| row.code).or_else(|| table::functional(op.name()));
    code.and_then(|c| rows.get(c as usize).copied()).unwrap_or(u64::MAX)
}

/// Hash of what a graph is without its sizes, strides and integer arguments that may be sizes.
pub fn skeleton(graph: &Graph) -> Hash128 {
    let mut h = Hasher::new(Domain::Skeleton);
    let layout = |h: &mut Hasher, l: &LayoutRef| h.word(l.dtype() as u64 | (l.rank() as u64) << 8);
    graph.params().iter().for_each(|l| layout(&mut h, l));
    let mut words = Vec::new();
    for node in graph.nodes() {
        h.hash(node.signature.op().hash128());
        masked(node.op(), node.words(), &mut words);
        h.words(&words);
        node.results().iter().for_each(|l| layout(&mut h, l));
        h.word((node.operands.len() as u64) << 32 | node.results().len() as u64);
        node.operands.iter().for_each(|o| h.word(o.bits().into()));
    }
    h.word((graph.params().len() as u64) << 32 | graph.nodes().len() as u64);
    graph.outputs().iter().for_each(|o| h.word(o.bits().into()));
    h.finish()
}

/// Argument words with zeros for what may be sizes.
fn masked(op: Op, words: &[u64], into: &mut Vec<u64>) {
    into.clear();
    into.extend_from_slice(words);
    let sizes = size_arguments(op);
    int_positions(words, |argument, at| {
        if sizes >> argument.min(63) & 1 == 1 {
            into[at] = 0;
        }
    });
}

/// Whether two graphs agree in everything but sizes, strides and integer arguments that may be sizes.
pub fn has_same_skeleton(a: &Graph, b: &Graph) -> bool {
    let same = |p: &[LayoutRef], q: &[LayoutRef]| {
        p.len() == q.len() && p.iter().zip(q).all(|(p, q)| p.dtype() == q.dtype() && p.rank() == q.rank())
    };
    let (mut p, mut q) = (Vec::new(), Vec::new());
    same(a.params(), b.params())
        && a.outputs() == b.outputs()
        && a.number_count() == b.number_count()
        && a.nodes().len() == b.nodes().len()
        && a.nodes().iter().zip(b.nodes()).all(|(m, n)| {
            let shared = std::sync::Arc::ptr_eq(&m.signature, &n.signature);
            let mut alike = || {
                masked(m.op(), m.words(), &mut p);
                masked(n.op(), n.words(), &mut q);
                m.op() == n.op() && p == q && same(m.results(), n.results())
            };
            m.operands == n.operands && m.number_count == n.number_count && (shared || alike())
        })
}

/// Where an integer of a graph stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spot {
    /// A dimension of a value.
    Size(ValueId, usize),
    /// A stride of a value.
    Stride(ValueId, usize),
    /// An integer of an argument of a node.
    Argument(usize, usize),
}

impl Spot {
    /// The integer at a position among [`integers`].
    pub(super) fn of(graph: &Graph, position: u32) -> Spot {
        let mut left = position as usize;
        let within = |left: &mut usize, value: ValueId, l: &LayoutRef| {
            let (rank, at) = (l.rank(), *left);
            *left = at.saturating_sub(2 * rank);
            match at {
                d if d < rank => Some(Spot::Size(value, d)),
                d if d < 2 * rank => Some(Spot::Stride(value, d - rank)),
                _ => None,
            }
        };
        for (i, l) in graph.params().iter().enumerate() {
            if let Some(spot) = within(&mut left, ValueId::param(i), l) {
                return spot;
            }
        }
        for (n, node) in graph.nodes().iter().enumerate() {
            if let Some(spot) = node.result_ids().zip(node.results()).find_map(|(v, l)| within(&mut left, v, l)) {
                return spot;
            }
            let mut arguments = Vec::new();
            int_positions(node.words(), |argument, _| arguments.push(argument));
            match arguments.get(left) {
                Some(&argument) => return Spot::Argument(n, argument),
                None => left -= arguments.len(),
            }
        }
        Spot::Argument(graph.nodes().len(), 0)
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spot::Size(v, d) => write!(f, "size {d} of {v}"),
            Spot::Stride(v, d) => write!(f, "stride {d} of {v}"),
            Spot::Argument(n, a) => write!(f, "argument {a} of node {n}"),
        }
    }
}
