//! Symbolic graphs: one graph for many sizes.
//!
//! Recording infers every layout from concrete sizes, so each step's graph says its own. What two graphs of one
//! [`skeleton`] (operators, wiring, dtypes, ranks and all arguments that are no sizes) have in common is a
//! [`Symbolic`] graph: integers that differ become expressions ([`Dim`]) over a few symbols, and what the expressions
//! take for granted is written down:
//!
//! - *equal*: integers that are the same expression are equal;
//! - *not one, not empty*: a size that was more than one stays so, because broadcasting and strides treat one
//!   differently;
//! - *divisible*: quotients are exact;
//! - all other integers are what they were.
//!
//! [`Symbolic::admit`] asks whether a graph meets all of that. A program compiled for one admitted graph can then be
//! respecialised to another (see `Executable::respecialised` in `ltc-backend`).

mod dim;
mod fit;
mod integers;

use std::{fmt, sync::Arc};

pub use dim::Dim;
pub(crate) use dim::contiguous;
use fit::Fit;
pub(crate) use integers::int_positions;
pub use integers::{Spot, has_same_skeleton, integers, skeleton};
use rustc_hash::FxHashMap;

use crate::{
    graph::Graph,
    verify::{self, VerifyError},
};

/// A graph whose integers may depend on symbols, with what it assumes. Immutable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbolic {
    /// The graph at the sizes it was first seen with.
    graph: Arc<Graph>,
    base: Vec<i64>,
    /// Expressions that are no constants, each once, in order of appearance.
    dims: Vec<Dim>,
    /// Integers that are one of them: position and which, ascending.
    places: Vec<(u32, u32)>,
    /// Per symbol the position it is read from.
    sources: Vec<u32>,
    /// Expressions that must be more than one.
    above_one: Vec<u32>,
}

/// Why a symbolic graph does not cover a graph.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// A size is one or zero that was more.
    #[error("{dim} > 1 does not hold: it is {value}")]
    NotAboveOne {
        /// The size.
        dim: Dim,
        /// Its value.
        value: i64,
    },
    /// A quotient is not exact.
    #[error("{dim} is no integer")]
    NotDivisible {
        /// The quotient.
        dim: Dim,
    },
    /// An integer is not what the others say.
    #[error("{spot} is {found}, not {expected}")]
    Differs {
        /// Which.
        spot: Spot,
        /// The expression or constant.
        expected: String,
        /// What it is.
        found: i64,
    },
    /// Not even the skeleton agrees.
    #[error("another skeleton")]
    OtherSkeleton,
}

/// What is wrong with a symbolic graph.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SymbolicFault {
    /// It does not cover the sizes it was first seen with.
    #[error("its own sizes are refused: {0}")]
    Refuses(#[from] Refusal),
    /// The graph at some sizes breaks a rule of graphs.
    #[error("with symbols {symbols:?}: {fault}")]
    Graph {
        /// Values of the symbols.
        symbols: Vec<i64>,
        /// The broken rule.
        fault: VerifyError,
    },
}

impl Symbolic {
    /// What graphs of one skeleton have in common. `seen` holds the [`integers`] of each, those of `graph` first.
    ///
    /// `None` if they agree in all, if a size that differs is one or zero in one of them, or if they have too little in
    /// common.
    pub fn generalize(graph: &Arc<Graph>, seen: &[Vec<i64>]) -> Option<Symbolic> {
        let fitted = Fit::new(seen).graph(graph)?;
        Symbolic::assemble(graph.clone(), fitted.places, fitted.above_one).filter(|s| !s.sources.is_empty())
    }

    /// From its parts: which integers are which expressions, by position. `None` if a symbol stands nowhere alone.
    pub(crate) fn assemble(graph: Arc<Graph>, spots: Vec<(u32, Dim)>, above_one: Vec<Dim>) -> Option<Symbolic> {
        let mut dims: Vec<Dim> = Vec::new();
        let mut known: FxHashMap<Dim, u32> = FxHashMap::default();
        let mut index = |dim: Dim| {
            *known.entry(dim).or_insert_with_key(|dim| {
                dims.push(dim.clone());
                dims.len() as u32 - 1
            })
        };
        let symbols = spots.iter().map(|(_, d)| d.symbol_bound()).max().unwrap_or(0);
        let mut sources: Vec<Option<u32>> = vec![None; symbols];
        let mut places = Vec::with_capacity(spots.len());
        for (at, dim) in spots {
            if let Some(s) = dim.as_symbol() {
                sources[usize::from(s)].get_or_insert(at);
            }
            places.push((at, index(dim)));
        }
        let above_one = above_one.into_iter().filter(|d| d.as_constant().is_none()).map(index).collect();
        let sources: Vec<u32> = sources.into_iter().collect::<Option<_>>()?;
        let fits = dims.iter().all(|d| d.symbol_bound() <= sources.len());
        let base = integers(&graph);
        fits.then_some(Symbolic { graph, base, dims, places, sources, above_one })
    }

    /// The graph at the sizes it was first seen with.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// How many symbols there are.
    pub fn symbols(&self) -> usize {
        self.sources.len()
    }

    /// Where each symbol is read from.
    pub fn sources(&self) -> Vec<Spot> {
        self.sources.iter().map(|&at| Spot::of(&self.graph, at)).collect()
    }

    /// Sizes that must be more than one.
    pub fn above_one(&self) -> impl Iterator<Item = &Dim> {
        self.above_one.iter().map(|&i| &self.dims[i as usize])
    }

    /// The expression of the integer at a position, if it is no constant.
    pub(crate) fn at(&self, position: u32) -> Option<&Dim> {
        let found = self.places.binary_search_by_key(&position, |p| p.0).ok()?;
        Some(&self.dims[self.places[found].1 as usize])
    }

    /// Values the symbols had at first.
    pub fn first_values(&self) -> Vec<i64> {
        self.sources.iter().map(|&at| self.base[at as usize]).collect()
    }

    /// Whether a graph of this skeleton with these [`integers`] meets all assumptions; the symbols' values then.
    ///
    /// # Errors
    /// Fails with the assumption that these integers do not meet.
    pub fn admit(&self, integers: &[i64]) -> Result<Vec<i64>, Refusal> {
        if integers.len() != self.base.len() {
            return Err(Refusal::OtherSkeleton);
        }
        let symbols: Vec<i64> = self.sources.iter().map(|&at| integers[at as usize]).collect();
        let value = |d: &Dim| d.value(&symbols).ok_or_else(|| Refusal::NotDivisible { dim: d.clone() });
        let values = self.dims.iter().map(value).collect::<Result<Vec<i64>, _>>()?;
        for &i in &self.above_one {
            let (dim, value) = (&self.dims[i as usize], values[i as usize]);
            if value <= 1 {
                return Err(Refusal::NotAboveOne { dim: dim.clone(), value });
            }
        }
        let mut places = self.places.iter().peekable();
        for (at, (&found, &first)) in integers.iter().zip(&self.base).enumerate() {
            let dim = places.next_if(|p| p.0 as usize == at).map(|p| p.1 as usize);
            if found != dim.map_or(first, |d| values[d]) {
                let expected = dim.map_or_else(|| first.to_string(), |d| self.dims[d].to_string());
                return Err(Refusal::Differs { spot: Spot::of(&self.graph, at as u32), expected, found });
            }
        }
        Ok(symbols)
    }

    /// The [`integers`] at these values of the symbols; `None` if a quotient is not exact or a number does not fit.
    pub fn integers_at(&self, symbols: &[i64]) -> Option<Vec<i64>> {
        let values: Vec<i64> = self.dims.iter().map(|d| d.value(symbols)).collect::<Option<_>>()?;
        let mut all = self.base.clone();
        self.places.iter().for_each(|&(at, dim)| all[at as usize] = values[dim as usize]);
        Some(all)
    }

    /// The graph at these values of the symbols, if there is one.
    pub fn instantiate(&self, symbols: &[i64]) -> Option<Graph> {
        self.integers_at(symbols).map(|all| integers::with_integers(&self.graph, &all))
    }

    /// Checks that the graph makes sense at its first sizes and at some others that meet the assumptions.
    ///
    /// # Errors
    /// Fails with the first thing that no graph of any sizes could be.
    pub fn verify(&self) -> Result<(), SymbolicFault> {
        self.admit(&self.base)?;
        let first = self.first_values();
        // Multiples keep quotients exact, mostly; sizes that are refused say nothing.
        for factor in [1, 2, 3, 5] {
            let symbols: Vec<i64> = first.iter().map(|v| v.saturating_mul(factor)).collect();
            let Some(graph) = self.instantiate(&symbols) else { continue };
            if self.admit(&integers(&graph)).is_ok() {
                verify::verify(&graph).map_err(|fault| SymbolicFault::Graph { symbols, fault })?;
            }
        }
        Ok(())
    }

    /// Rough size in memory, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.graph.heap_bytes() + (self.base.len() + self.places.len()) * 8 + self.dims.len() * size_of::<Dim>()
    }
}

impl Symbolic {
    /// Symbols and assumptions in words, for events: `s0 = size 0 of %p0; s0 > 1`.
    pub fn summary(&self) -> String {
        Summary(self).to_string()
    }
}

/// What prints as [`Symbolic::summary`].
struct Summary<'a>(&'a Symbolic);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (s, source) in self.0.sources().into_iter().enumerate() {
            write!(f, "{}s{s} = {source}", if s == 0 { "" } else { ", " })?;
        }
        for dim in self.0.above_one() {
            write!(f, "; {dim} > 1")?;
        }
        for dim in self.0.dims.iter().filter(|d| d.divisor() > 1) {
            write!(f, "; {dim} is an integer")?;
        }
        Ok(())
    }
}
