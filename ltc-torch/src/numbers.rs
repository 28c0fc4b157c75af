//! Numbers of a step that differ from call to call: how they follow from those that the host hands over, as two
//! captures show, and which operators may take such numbers.

use std::ops::Range;

use ltc_ir::{
    DType, EncodedArgs, Graph, GraphNode, OpClass,
    rules::numbers::{NumberRule, Numbers},
};
use smallvec::SmallVec;

/// Numbers that the host computed during a step and handed to operators, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostNumbers {
    /// Names what computed them: equal for steps that compute on the host in the same way.
    pub program: String,
    /// As recorded: the bits of doubles.
    pub values: Vec<u64>,
}

/// How the numbers of a step follow from those of the host, as two captures show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Varying {
    /// Position of each number of the step that varies, and which of the `sources` it follows from.
    slots: Vec<(usize, usize)>,
    /// Numbers of the host that were equal to each other, each as it is or with its sign turned (an optimiser's `-lr`).
    /// A replay requires that they still are: a number that follows from one of them may follow from any.
    sources: Vec<Vec<(usize, bool)>>,
    /// Numbers of the host that were equal in both captures. It cannot be told which numbers of the step follow from
    /// them, so a replay requires that they have not changed.
    fixed: Vec<usize>,
    /// Positions of varying numbers that random draws take; draws refuse some numbers (a negative deviation).
    drawn: Vec<usize>,
    /// Positions of the lower bounds of uniform draws; each upper bound is the number behind its lower bound.
    bounds: Vec<usize>,
    /// Calls that take varying numbers and may refuse some of them.
    refusing: Vec<Refusing>,
}

/// A call that may refuse numbers.
#[derive(Clone, Debug)]
struct Refusing {
    rule: NumberRule,
    words: EncodedArgs,
    /// The range of this call's numbers among those of the step.
    numbers: Range<usize>,
    dtype: DType,
}

impl Refusing {
    fn of(node: &GraphNode) -> Option<Self> {
        let rule = node.op().spec().numbers?;
        let first = node.first_number as usize;
        let numbers = first..first + node.number_count as usize;
        Some(Refusing { rule, words: node.words().into(), numbers, dtype: node.results().first()?.dtype() })
    }

    fn refuses(&self, numbers: &[u64]) -> bool {
        (self.rule)(&Numbers::new(&self.words, &numbers[self.numbers.clone()], self.dtype)).is_err()
    }
}

/// The numbers of a step, and those of the host, as one capture has them.
type Captured<'a> = (&'a [u64], &'a [u64]);

impl Varying {
    /// What differs between two captures of one graph.
    ///
    /// # Errors
    /// Says which numbers follow from none of the host's, or are taken by an operator for which they decide more than
    /// values.
    pub(crate) fn between(graph: &Graph, [(ours, host), (theirs, before)]: [Captured<'_>; 2]) -> Result<Self, String> {
        let host: Vec<_> = host.iter().zip(before).collect();
        let mut varying = Varying::default();
        for (slot, numbers) in ours.iter().zip(theirs).enumerate().filter(|(_, (a, b))| a != b) {
            let is = |&(i, turned): &(usize, bool)| {
                (signed(*host[i].0, turned), signed(*host[i].1, turned)) == (*numbers.0, *numbers.1)
            };
            let sources: Vec<_> = (0..host.len()).flat_map(|i| [(i, false), (i, true)]).filter(is).collect();
            // At 0, 1 and infinity a number that the step computes from the host's number (its root, its square) has
            // the same bits as that number, so equal bits at these values do not show that one follows the other.
            let shows = |bits: &u64| !matches!(f64::from_bits(*bits).abs(), 0.0 | 1.0 | f64::INFINITY);
            if sources.is_empty() || ![numbers.0, numbers.1].into_iter().any(shows) {
                return Err(
                    "numbers change from step to step (a step count or a learning rate that the host computes)".into(),
                );
            }
            if let Some(node) = graph.nodes().iter().find(|node| takes(node, slot)) {
                if decides_more_than_values(node) {
                    let why = "a number changes from step to step, which may decide more than values in";
                    return Err(format!("{why} {}", node.op().short_name()));
                }
                varying.refusing.extend(Refusing::of(node));
                match (node.op().spec().class, node.op().short_name()) {
                    (OpClass::Random, "uniform" | "uniform_") => varying.bounds.push(node.first_number as usize),
                    (OpClass::Random, _) => varying.drawn.push(slot),
                    _ => (),
                }
            }
            let known = varying.sources.iter().position(|s| *s == sources);
            varying.slots.push((slot, known.unwrap_or(varying.sources.len())));
            varying.sources.extend(known.is_none().then_some(sources));
        }
        varying.fixed = (0..host.len()).filter(|&i| host[i].0 == host[i].1).collect();
        Ok(varying)
    }

    /// Whether some number of the host differed between both captures and no number of the step follows from it: code
    /// may decide by it.
    pub(crate) fn leaves_out(&self, host: usize) -> bool {
        let is_used = |i: usize| self.fixed.contains(&i) || self.sources.iter().flatten().any(|&(from, _)| from == i);
        !(0..host).all(is_used)
    }

    /// Numbers of the step for these of the host; `captured`: those of the capture that is replayed.
    pub(crate) fn numbers_for(
        &self,
        host: &[u64],
        (captured, then): Captured<'_>,
    ) -> Result<SmallVec<[u64; 8]>, String> {
        let fixed = |&i: &usize| host[i] == then[i];
        if host.len() != then.len() || !self.fixed.iter().all(fixed) {
            return Err("a number of the host changed that did not while it was captured".into());
        }
        let mut numbers = SmallVec::from_slice(captured);
        let value = |&(i, turned): &(usize, bool)| signed(host[i], turned);
        if self.sources.iter().any(|equal| equal.iter().any(|s| value(s) != value(&equal[0]))) {
            return Err("two numbers of the host that were equal no longer are".into());
        }
        for &(slot, source) in &self.slots {
            numbers[slot] = value(&self.sources[source][0]);
        }
        if self.drawn.iter().any(|&slot| !may_be_drawn(f64::from_bits(captured[slot]), f64::from_bits(numbers[slot]))) {
            return Err("a draw takes a number of another sign than when it was captured".into());
        }
        if !self
            .bounds
            .iter()
            .all(|&lower| may_bound(f64::from_bits(numbers[lower]), f64::from_bits(numbers[lower + 1])))
        {
            return Err("a draw takes bounds that are none".into());
        }
        if self.refusing.iter().any(|call| call.refuses(&numbers)) {
            return Err("an operator refuses a number".into());
        }
        Ok(numbers)
    }
}

/// Whether a node takes this number of the step.
fn takes(node: &GraphNode, slot: usize) -> bool {
    let first = node.first_number as usize;
    (first..first + node.number_count as usize).contains(&slot)
}

/// Prefixes of operators on lists of tensors. Nothing is known of other generic operators; these are known to use their
/// numbers for computing values only.
const ON_LISTS: [&str; 2] = ["_foreach_", "_fused_"];

/// Whether another number may change more than the values of a node's results: their shapes (sizes that follow from a
/// scale), or whether there is an error (an integer that cannot hold the number).
fn decides_more_than_values(node: &GraphNode) -> bool {
    let op = node.op();
    let is_integral = |dtype: ltc_ir::DType| dtype.is_integral(false);
    match op.spec().class {
        OpClass::Generic => !ON_LISTS.iter().any(|prefix| op.short_name().starts_with(prefix)),
        OpClass::Pooling | OpClass::Linalg | OpClass::View => true,
        OpClass::Factory if op.short_name() == "arange" => true,
        OpClass::Factory | OpClass::Pointwise => node.signature.results().iter().any(|r| is_integral(r.dtype())),
        _ => false,
    }
}

/// Whether a draw that took the number `then` also takes `now`. It is not known whether the number is a deviation,
/// which must not be negative, or a probability, which must be at most 1, so `now` has to keep both bounds where `then`
/// did.
fn may_be_drawn(then: f64, now: f64) -> bool {
    now.is_finite() && (now >= 0.0 || then < 0.0) && (now <= 1.0 || then > 1.0)
}

/// Whether a uniform draw of any floating type takes these bounds. They must be in order and fit half precision, which
/// has the smallest range of these types.
fn may_bound(lower: f64, upper: f64) -> bool {
    const MOST: f64 = 65504.0;
    -MOST <= lower && lower <= upper && upper <= MOST
}

/// The bits of a double, with its sign turned or not.
fn signed(bits: u64, turned: bool) -> u64 {
    bits ^ (u64::from(turned) << 63)
}
