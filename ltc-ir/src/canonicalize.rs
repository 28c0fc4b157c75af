//! From a trace to its canonical form.
//!
//! The input is a set of pending nodes in an order where operands come first, closed under pending operands: everything
//! alive on a device (in recording order), or what some roots reach ([`reachable`]). The result has the graph's
//! structure in flat arrays, its hash, and the bindings: parameters, runtime numbers, outputs.
//!
//! A steady training loop canonicalises the same structure each step, so a [`Graph`] is only built on a cache miss
//! ([`Canonical::to_graph`]); a hit is confirmed against the trace itself ([`Canonical::matches`]).
//!
//! **Outputs** are the nodes someone outside the set still holds, told by reference counts. Nobody can gain a reference
//! to a node without holding one already, so what is not an output now can never be asked for later.
//! **Donated** parameters are those nobody but this set holds: their buffers may be reused.
//! **Kept** values ([`crate::Kept`]) are asked for only if something fails: who keeps one does not count as a holder.
//! **Slices**: data of which the set reads dense slices only (batches of one data set) gives a parameter for each
//! slice, so that the structure is the same wherever it begins; its offset is in the binding.
//!
//! Parameters are numbered by first use, never by value; two equal buffers are two parameters.

use rustc_hash::FxHashMap;

use crate::{
    args::view_offset,
    graph::{Graph, GraphBuilder, GraphHasher, ValueId},
    hash::Hash128,
    layout::LayoutRef,
    op::Op,
    trace::Value,
};

/// A parameter's binding.
#[derive(Debug)]
pub struct ParamBinding<D> {
    /// The leaf's placeholder.
    pub data: D,
    /// Nobody outside the canonicalised set holds the leaf: its buffer may be reused.
    pub donated: bool,
    /// The parameter is a slice of the data: what its layout shows from this element of the memory on.
    pub slice_at: Option<i64>,
    layout: LayoutRef,
}

/// Data a set uses.
#[derive(Debug)]
struct Leaf<D> {
    value: Value<D>,
    /// How often; not counted for slices.
    uses: u32,
    slice: Option<(LayoutRef, i64)>,
}

/// A canonicalised trace.
///
/// One that is filled again ([`Canonical::fill`]) needs no new memory for a trace of the same size.
#[derive(Debug)]
pub struct Canonical<D> {
    set: Vec<Value<D>>,
    /// Per place in the set: graph value of its (first) result, and how often the set uses it.
    ids: Vec<ValueId>,
    uses: Vec<u32>,
    leaves: Vec<Leaf<D>>,
    /// Places in the set of those that become graph nodes.
    nodes: Vec<u32>,
    operands: Vec<ValueId>,
    /// End of each node's operands and numbers.
    ends: Vec<(u32, u32)>,
    /// Bindings of the parameters.
    pub params: Vec<ParamBinding<D>>,
    /// Runtime numbers.
    pub numbers: Vec<u64>,
    output_ids: Vec<ValueId>,
    /// The trace values the outputs stand for; resolve them to placeholders.
    pub outputs: Vec<Value<D>>,
    hash: Hash128,
    epoch: u32,
}

impl<D> Default for Canonical<D> {
    fn default() -> Self {
        Canonical {
            set: Vec::new(),
            ids: Vec::new(),
            uses: Vec::new(),
            leaves: Vec::new(),
            nodes: Vec::new(),
            operands: Vec::new(),
            ends: Vec::new(),
            params: Vec::new(),
            numbers: Vec::new(),
            output_ids: Vec::new(),
            outputs: Vec::new(),
            hash: Hash128::default(),
            epoch: UNMARKED,
        }
    }
}

/// Pending values reachable from `roots`, operands first. Iterative; deterministic.
pub fn reachable<D>(roots: &[Value<D>], epoch: u32) -> Vec<Value<D>> {
    let mut order = Vec::new();
    let mut stack: Vec<(Value<D>, bool)> = roots.iter().rev().map(|v| (v.clone(), false)).collect();
    while let Some((value, expanded)) = stack.pop() {
        if expanded {
            order.push(value);
            continue;
        }
        if value.marked(epoch).is_some() {
            continue;
        }
        let at = stack.len();
        let pending = value.inspect(
            |operands, _| {
                stack.extend(operands.iter().filter(|o| o.marked(epoch).is_none()).map(|o| (o.clone(), false)));
                true
            },
            |_| false,
        );
        if pending {
            value.set_mark(epoch, 0);
            stack[at..].reverse();
            stack.insert(at, (value, true));
        }
    }
    order
}

/// Canonicalises `set` (see the module's contract). Marks nodes with `epoch`, which must be new and used under one
/// lock.
pub fn canonicalize<D: Clone>(set: Vec<Value<D>>, epoch: u32) -> Canonical<D> {
    let mut canonical = Canonical::default();
    canonical.fill(set, epoch, false, false);
    canonical
}

/// Canonicalises `set` with exactly these outputs, in this order; each must be in the set. Nothing is donated.
/// `slices`: whether parameters may be slices of data.
pub fn canonicalize_for<D: Clone>(set: Vec<Value<D>>, outputs: &[Value<D>], epoch: u32, slices: bool) -> Canonical<D> {
    let mut canonical = Canonical::default();
    canonicalize_with(&mut canonical, set, Some(outputs), epoch, Wants { slices, keepers: true });
    canonical
}

/// Data that was taken for one read by slices is needed whole.
struct NeededWhole;

/// How to canonicalise.
#[derive(Clone, Copy)]
struct Wants {
    /// Parameters may be slices of data.
    slices: bool,
    /// Who keeps a value goes on keeping it.
    keepers: bool,
}

fn canonicalize_with<D: Clone>(
    c: &mut Canonical<D>,
    set: Vec<Value<D>>,
    outputs: Option<&[Value<D>]>,
    epoch: u32,
    wants: Wants,
) {
    c.release();
    c.epoch = epoch;
    if walk(c, &set, outputs, epoch, wants).is_err() {
        c.release();
        for value in &set {
            value.inspect(|operands, _| operands.iter().for_each(|o| o.set_mark(UNMARKED, 0)), |_| ());
            value.set_mark(UNMARKED, 0);
        }
        let wants = Wants { slices: false, ..wants };
        assert!(walk(c, &set, outputs, epoch, wants).is_ok(), "invariant: without slices nothing is needed whole");
    }
    c.set = set;
}

/// Numbers what the set computes and reads, in order; then says what comes out of it and what its parameters are.
fn walk<D: Clone>(
    c: &mut Canonical<D>,
    set: &[Value<D>],
    outputs: Option<&[Value<D>]>,
    epoch: u32,
    wants: Wants,
) -> Result<(), NeededWhole> {
    c.ids.reserve(set.len());
    c.uses.resize(set.len(), 0);
    c.operands.reserve(set.len() * 2);
    c.ends.reserve(set.len());
    c.nodes.reserve(set.len());
    let mut hasher = GraphHasher::new();
    let mut next_result = 0usize;
    for (position, value) in set.iter().enumerate() {
        if wants.slices
            && value.op() == Op::read_view()
            && let Some(param) = slice_read(&mut c.leaves, value, epoch)
        {
            c.ids.push(param);
            value.set_mark(epoch, position as u32);
            continue;
        }
        let first_operand = c.operands.len();
        let result_index = value.result_index();
        c.read_operands(value, epoch)?;
        value.set_mark(epoch, position as u32);
        if let Some(index) = result_index {
            let base =
                c.operands.pop().and_then(ValueId::as_result).expect("invariant: a result has one pending operand");
            c.ids.push(ValueId::result(base + index));
            continue;
        }
        c.ids.push(ValueId::result(next_result));
        next_result += value.results().len();
        hasher.node(value.local_hash(), &c.operands[first_operand..]);
        c.ends.push((c.operands.len() as u32, c.numbers.len() as u32));
        c.nodes.push(position as u32);
    }
    match outputs {
        Some(outputs) => c.put_out_these(set, outputs, epoch)?,
        None => c.put_out_held(set, wants)?,
    }
    c.bind_params(outputs.is_none(), wants);
    c.hash = hasher.finish(c.params.iter().map(|p| p.layout.hash()), &c.output_ids);
    Ok(())
}

impl Wants {
    /// How many hold a value only to have it if something fails, and so do not ask for it.
    fn kept<D>(self, value: &Value<D>) -> usize {
        if self.keepers { 0 } else { value.keepers() }
    }
}

/// The stages of [`walk`].
impl<D: Clone> Canonical<D> {
    /// Notes the operands and numbers of a node; data that is met for the first time becomes a parameter.
    #[inline]
    fn read_operands(&mut self, value: &Value<D>, epoch: u32) -> Result<(), NeededWhole> {
        let Canonical { ids, uses, leaves, .. } = self;
        let mut needed_whole = false;
        value.inspect(
            |operands, numbers| {
                for operand in operands {
                    let id = match operand.marked(epoch) {
                        Some(mark) if mark & LEAF != 0 => {
                            needed_whole |= mark & IN_PARTS != 0;
                            let p = (mark & !(LEAF | IN_PARTS)) as usize;
                            leaves[p].uses += 1;
                            ValueId::param(p)
                        }
                        Some(mark) => {
                            uses[mark as usize] += 1;
                            ids[mark as usize]
                        }
                        None => {
                            operand.set_mark(epoch, leaves.len() as u32 | LEAF);
                            leaves.push(Leaf { value: operand.clone(), uses: 1, slice: None });
                            ValueId::param(leaves.len() - 1)
                        }
                    };
                    self.operands.push(id);
                }
                self.numbers.extend_from_slice(numbers);
            },
            |_| unreachable!("invariant: the set holds pending nodes only"),
        );
        if needed_whole { Err(NeededWhole) } else { Ok(()) }
    }

    /// The outputs are these values.
    fn put_out_these(&mut self, set: &[Value<D>], outputs: &[Value<D>], epoch: u32) -> Result<(), NeededWhole> {
        for value in outputs {
            let position = value.marked(epoch).expect("invariant: outputs are in the set");
            self.put_out(set, position as usize)?;
        }
        Ok(())
    }

    /// The outputs are the values that someone holds besides `set`, their users within the set, and those who keep
    /// them. What only these want has to be computed, too.
    fn put_out_held(&mut self, set: &[Value<D>], wants: Wants) -> Result<(), NeededWhole> {
        for (position, value) in set.iter().enumerate() {
            let (uses, kept) = (self.uses[position], wants.kept(value));
            let ours = 1 + uses as usize + kept;
            if value.holders() > ours || (kept > 0 && uses == 0) {
                self.put_out(set, position)?;
            }
        }
        Ok(())
    }

    fn put_out(&mut self, set: &[Value<D>], position: usize) -> Result<(), NeededWhole> {
        let id = self.ids[position];
        // If it is a parameter, somebody holds the slice itself.
        id.as_result().ok_or(NeededWhole)?;
        self.output_ids.push(id);
        self.outputs.push(set[position].clone());
        Ok(())
    }

    /// Says what the parameters are. `may_donate`: those that only the set holds may be written over.
    fn bind_params(&mut self, may_donate: bool, wants: Wants) {
        self.params.extend(self.leaves.drain(..).map(|Leaf { value, uses, slice }| {
            let closed = "invariant: the set is closed under pending operands";
            let data = value.inspect(|_, _| unreachable!("{closed}"), D::clone);
            match slice {
                Some((layout, at)) => ParamBinding { data, donated: false, slice_at: Some(at), layout },
                None => {
                    let donated = may_donate && value.holders() == 1 + uses as usize + wants.kept(&value);
                    ParamBinding { data, donated, slice_at: None, layout: value.layout().clone() }
                }
            }
        }));
    }
}

/// Where a read through a view begins in its base, if it shows one dense block of it, as elements of the same type.
pub fn slice_offset<D>(view: &Value<D>, base: &Value<D>) -> Option<i64> {
    let layout = view.layout();
    let is_block = layout.numel() != 0 && layout.dtype() == base.layout().dtype() && layout.is_dense();
    if is_block && view.op() == Op::read_view() { view_offset(view.words()) } else { None }
}

/// The parameter that this view reads, if it is a dense slice of data that the set has not used whole so far.
fn slice_read<D>(leaves: &mut Vec<Leaf<D>>, view: &Value<D>, epoch: u32) -> Option<ValueId> {
    let layout = view.layout();
    view.inspect(
        |operands, _| {
            let base = operands.first()?;
            let mark = base.marked(epoch);
            if mark.is_some_and(|mark| mark & IN_PARTS == 0) {
                return None;
            }
            if layout.storage_bytes() >= base.layout().storage_bytes() {
                return None;
            }
            let offset = slice_offset(view, base)?;
            let same =
                |l: &Leaf<D>| l.value.same(base) && l.slice.as_ref().is_some_and(|p| p.0 == *layout && p.1 == offset);
            if let Some(known) = mark.and_then(|_| leaves.iter().position(same)) {
                return Some(ValueId::param(known));
            }
            if leaves.iter().filter(|l| l.slice.is_some()).count() >= MAX_SLICES {
                return None;
            }
            base.set_mark(epoch, leaves.len() as u32 | LEAF | IN_PARTS);
            leaves.push(Leaf { value: base.clone(), uses: 0, slice: Some((layout.clone(), offset)) });
            Some(ValueId::param(leaves.len() - 1))
        },
        |_| unreachable!("invariant: the set holds pending nodes only"),
    )
}

/// Bytes of the leaves that only `pending` holds: data the program has dropped but its pending work still needs.
pub fn retained_bytes<D>(pending: &[Value<D>], epoch: u32) -> usize {
    let mut leaves: Vec<(Value<D>, usize)> = Vec::new();
    for value in pending {
        value.inspect(
            |operands, _| {
                for operand in operands {
                    match operand.marked(epoch) {
                        Some(mark) => leaves[mark as usize].1 += 1,
                        None if !operand.is_pending() => {
                            operand.set_mark(epoch, leaves.len() as u32);
                            leaves.push((operand.clone(), 1));
                        }
                        None => {}
                    }
                }
            },
            |_| (),
        );
    }
    let only_ours = leaves.iter().filter(|(leaf, uses)| leaf.holders() == 1 + uses + leaf.keepers());
    only_ours.map(|(leaf, _)| leaf.layout().storage_bytes()).sum()
}

/// Marks of data, the second one of such that is read by slices.
const LEAF: u32 = 1 << 31;
const IN_PARTS: u32 = 1 << 30;
/// An epoch that marks nothing.
const UNMARKED: u32 = 0;
/// Slices that are parameters; further ones are views in the graph, as each is a buffer to make before the program
/// runs.
const MAX_SLICES: usize = 32;

impl<D: Clone> Canonical<D> {
    /// Makes this the canonical form of another set, as [`canonicalize`] does. `slices`: whether parameters may be
    /// slices of data. `keepers`: whether those who keep values ([`crate::Kept`]) go on doing so, and count as holders.
    pub fn fill(&mut self, set: Vec<Value<D>>, epoch: u32, slices: bool, keepers: bool) {
        canonicalize_with(self, set, None, epoch, Wants { slices, keepers });
    }
}

impl<D> Canonical<D> {
    /// Lets go of all but its memory; gives back the values it was made of.
    pub fn release(&mut self) -> Vec<Value<D>> {
        self.ids.clear();
        self.uses.clear();
        self.leaves.clear();
        self.nodes.clear();
        self.operands.clear();
        self.ends.clear();
        self.params.clear();
        self.numbers.clear();
        self.output_ids.clear();
        self.outputs.clear();
        std::mem::take(&mut self.set)
    }

    /// Structural hash, equal to the built graph's.
    pub fn hash(&self) -> Hash128 {
        self.hash
    }

    fn nodes(&self) -> impl ExactSizeIterator<Item = &Value<D>> {
        self.nodes.iter().map(|&i| &self.set[i as usize])
    }

    /// What a value is in the graph: a result, or a parameter that stands for all of it. Until the values it was made
    /// of are marked for another.
    pub fn id(&self, value: &Value<D>) -> Option<ValueId> {
        match value.marked(self.epoch)? {
            mark if mark & IN_PARTS != 0 => None,
            mark if mark & LEAF != 0 => Some(ValueId::param((mark & !LEAF) as usize)),
            position => self.ids.get(position as usize).copied(),
        }
    }

    /// Results the outputs are.
    pub fn output_ids(&self) -> &[ValueId] {
        &self.output_ids
    }

    /// The first operation of which this is so, or how many there are.
    pub fn first_node(&self, is_so: impl Fn(&Value<D>) -> bool) -> usize {
        self.nodes().position(is_so).unwrap_or(self.nodes.len())
    }

    /// How many operations there are.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    fn operands(&self, node: usize) -> &[ValueId] {
        let start = if node == 0 { 0 } else { self.ends[node - 1].0 };
        &self.operands[start as usize..self.ends[node].0 as usize]
    }

    /// Whether this trace has exactly the structure of `graph`.
    pub fn matches(&self, graph: &Graph) -> bool {
        self.hash == graph.hash()
            && self.nodes.len() == graph.nodes().len()
            && self.params.len() == graph.params().len()
            && self.output_ids == graph.outputs()
            && self.params.iter().zip(graph.params()).all(|(a, b)| a.layout == *b)
            && self
                .nodes()
                .zip(graph.nodes())
                .enumerate()
                .all(|(i, (a, b))| **a.signature() == *b.signature && self.operands(i) == &b.operands[..])
    }

    /// Builds the graph.
    pub fn to_graph(&self) -> Graph {
        let mut b = GraphBuilder::new();
        for p in &self.params {
            b.param(p.layout.clone());
        }
        let mut numbers = 0;
        for (i, node) in self.nodes().enumerate() {
            let count = self.ends[i].1 - numbers;
            numbers = self.ends[i].1;
            b.push(node.signature().clone(), self.operands(i), count as usize, node.site());
        }
        b.finish(self.output_ids.clone())
    }

    /// Sites of the nodes in this very trace, for error reports (the cached graph has those of its first recording).
    pub fn sites(&self) -> impl Iterator<Item = crate::trace::SiteId> + '_ {
        self.nodes().map(Value::site)
    }

    /// Operator counts, for events and dumps.
    pub fn op_counts(&self) -> FxHashMap<crate::op::Op, usize> {
        let mut counts = FxHashMap::default();
        for n in self.nodes() {
            *counts.entry(n.op()).or_default() += 1;
        }
        counts
    }
}
