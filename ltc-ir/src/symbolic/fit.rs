//! Expressions for integers that differ between graphs of one skeleton.
//!
//! Each integer has a *column*: its value in every graph seen. Columns are explained in order of position, by what was
//! explained before: as an equal, a stride as the next size times its stride, a multiple, a quotient, a product, a sum.
//! What nothing explains is a symbol of its own. An explanation that later graphs contradict costs a new fit, never a
//! wrong value: programs are respecialised to the graph at hand.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Dim, int_positions};
use crate::{graph::Graph, layout::LayoutRef};

/// Values of one integer in the graphs seen.
type Column = SmallVec<[i64; 4]>;

/// More symbols than this are no structure.
const MAX_SYMBOLS: usize = 32;
/// How many explained columns are tried as parts of others.
const ATOMS: usize = 48;

/// See the module.
pub(super) struct Fit<'a> {
    seen: &'a [Vec<i64>],
    /// Explained columns, symbols among them.
    known: Vec<(Column, Dim)>,
    index: FxHashMap<Column, usize>,
    symbols: usize,
    at: usize,
    /// Integers that differ, by position.
    pub(super) places: Vec<(u32, Dim)>,
    /// Sizes that must be more than one.
    pub(super) above_one: Vec<Dim>,
}

impl<'a> Fit<'a> {
    /// A fit to these integers of several graphs.
    pub(super) fn new(seen: &'a [Vec<i64>]) -> Self {
        let (known, index) = (Vec::new(), FxHashMap::default());
        Fit { seen, known, index, symbols: 0, at: 0, places: Vec::new(), above_one: Vec::new() }
    }

    /// Explains all integers of the graph. `None` where a size that differs is one or zero, and if there are too many
    /// symbols.
    pub(super) fn graph(mut self, graph: &Graph) -> Option<Self> {
        let count = self.seen.first()?.len();
        if self.seen.iter().any(|s| s.len() != count) {
            return None;
        }
        for l in graph.params() {
            self.layout(l)?;
        }
        for node in graph.nodes() {
            for l in node.results() {
                self.layout(l)?;
            }
            let mut ints = 0;
            int_positions(node.words(), |_, _| ints += 1);
            for _ in 0..ints {
                self.integer(None)?;
            }
        }
        self.places.sort_unstable_by_key(|p| p.0);
        self.keep_needed_guards();
        Some(self)
    }

    fn column(&self, at: usize) -> Column {
        self.seen.iter().map(|s| s[at]).collect()
    }

    fn layout(&mut self, layout: &LayoutRef) -> Option<()> {
        let (rank, first) = (layout.rank(), self.at);
        let mut sizes: SmallVec<[(Column, Dim); 6]> = SmallVec::new();
        for _ in 0..rank {
            let column = self.column(self.at);
            let dim = self.integer(None)?;
            if dim.as_constant().is_none() {
                if column.iter().any(|&v| v <= 1) {
                    return None;
                }
                if !self.above_one.contains(&dim) {
                    self.above_one.push(dim.clone());
                }
            }
            sizes.push((column, dim));
        }
        // Strides from the smallest up: each is a smaller one times the size it steps over, mostly.
        let mut strides: SmallVec<[Option<(Column, Dim)>; 6]> = SmallVec::from_elem(None, rank);
        let mut order: SmallVec<[usize; 6]> = (0..rank).collect();
        order.sort_by_key(|&d| (layout.strides()[d], std::cmp::Reverse(d)));
        for &d in &order {
            self.at = first + rank + d;
            let column = self.column(self.at);
            let steps_over = |j: &usize| {
                let (stride, stride_dim) = strides[*j].as_ref()?;
                let (size, size_dim) = &sizes[*j];
                let fits = column.iter().zip(stride.iter().zip(size)).all(|(c, (a, b))| Some(*c) == a.checked_mul(*b));
                if fits { stride_dim.mul(size_dim) } else { None }
            };
            let next = (d + 1..rank).chain(0..d).find_map(|j| steps_over(&j));
            strides[d] = Some((column, self.integer(next)?));
        }
        self.at = first + 2 * rank;
        Some(())
    }

    /// Explains the integer at hand; `explained` is what it is known to be.
    fn integer(&mut self, explained: Option<Dim>) -> Option<Dim> {
        let (at, column) = (self.at, self.column(self.at));
        self.at += 1;
        if column.iter().all(|&v| v == column[0]) {
            return Some(Dim::constant(column[0]));
        }
        let dim = match explained {
            Some(dim) => dim,
            None => match self.index.get(&column) {
                Some(&known) => self.known[known].1.clone(),
                None => self.explain(&column).or_else(|| self.symbol())?,
            },
        };
        if !self.index.contains_key(&column) {
            self.index.insert(column.clone(), self.known.len());
            self.known.push((column, dim.clone()));
        }
        self.places.push((at as u32, dim.clone()));
        Some(dim)
    }

    fn symbol(&mut self) -> Option<Dim> {
        self.symbols += 1;
        (self.symbols <= MAX_SYMBOLS).then(|| Dim::symbol(self.symbols as u8 - 1))
    }

    /// A column as an expression of known ones; simple ones first.
    fn explain(&self, column: &Column) -> Option<Dim> {
        let atoms = &self.known[..self.known.len().min(ATOMS)];
        let multiple = |a: &(Column, Dim)| scaled(column, &a.0, &a.1);
        let product = |a: &(Column, Dim), b: &(Column, Dim)| {
            let both: Option<Column> = a.0.iter().zip(&b.0).map(|(x, y)| x.checked_mul(*y)).collect();
            let both = both?;
            ratio(column, &both)?;
            scaled(column, &both, &a.1.mul(&b.1)?)
        };
        let pairs = || atoms.iter().enumerate().flat_map(|(i, a)| atoms[i..].iter().map(move |b| (a, b)));
        atoms
            .iter()
            .find_map(multiple)
            .or_else(|| pairs().find_map(|(a, b)| product(a, b)))
            .or_else(|| atoms.iter().find_map(|(x, dim)| shifted(column, x, dim)))
            .or_else(|| atoms.iter().filter(|a| a.1.as_symbol().is_some()).find_map(|(x, dim)| line(column, x, dim)))
            .or_else(|| {
                pairs().find_map(|(a, b)| {
                    let both: Column = a.0.iter().zip(&b.0).map(|(x, y)| x.saturating_add(*y)).collect();
                    shifted(column, &both, &a.1.add(&b.1)?)
                })
            })
    }

    /// A product of sizes that are more than one is.
    fn keep_needed_guards(&mut self) {
        let bare: Vec<u8> = self.above_one.iter().filter_map(Dim::as_symbol).collect();
        self.above_one.retain(|d| {
            let implied = d.is_plain() && d.symbol_list().all(|s| bare.contains(&s));
            d.as_symbol().is_some() || !implied
        });
    }
}

/// The integer by which a column is a multiple of another.
fn ratio(column: &Column, of: &Column) -> Option<i64> {
    let by = column.first()?.checked_div(*of.first()?)?;
    (by != 0 && column.iter().zip(of).all(|(c, x)| x.checked_mul(by) == Some(*c))).then_some(by)
}

/// A column as a multiple or an integer part of another.
fn scaled(column: &Column, of: &Column, dim: &Dim) -> Option<Dim> {
    match ratio(column, of) {
        Some(by) => dim.mul(&Dim::constant(by)),
        None => dim.div(ratio(of, column).filter(|&by| by > 1)?),
    }
}

/// A column as another plus an integer.
fn shifted(column: &Column, from: &Column, dim: &Dim) -> Option<Dim> {
    let by = column.first()?.checked_sub(*from.first()?)?;
    let all = column.iter().zip(from).all(|(c, x)| x.checked_add(by) == Some(*c));
    if all { dim.add(&Dim::constant(by)) } else { None }
}

/// A column on a line over a symbol: `(a*s + b)/c`.
fn line(column: &Column, x: &Column, symbol: &Dim) -> Option<Dim> {
    let other = x.iter().position(|v| *v != x[0])?;
    let (rise, run) = (column[other].checked_sub(column[0])?, x[other].checked_sub(x[0])?);
    let (rise, run) = if run < 0 { (rise.checked_neg()?, run.checked_neg()?) } else { (rise, run) };
    let offset = column[0].checked_mul(run)?.checked_sub(x[0].checked_mul(rise)?)?;
    let dim = symbol.mul(&Dim::constant(rise))?.add(&Dim::constant(offset))?.div(run)?;
    // A coarse slope through two points explains nothing.
    let fits = |(c, v): (&i64, &i64)| dim.value(&vec![*v; symbol.symbol_bound()]) == Some(*c);
    (rise != 0 && (rise % run == 0 || run % rise == 0) && column.iter().zip(x).all(fits)).then_some(dim)
}
