//! The trace: what recording builds.
//!
//! A [`Value`] is a counted reference to a [`Node`]. Whoever holds the value keeps the node, and the node keeps what it
//! was computed from; dropping a tensor therefore drops exactly the work only it needed, however deep (the drop does
//! not recurse). An operator with several results is one node, and each result is a [`Op::result`] node over it, so
//! that the reference count of every single result is known: a result nobody else holds needs no buffer outside the
//! program.
//!
//! When a node has been handed to the backend its state turns from *pending* to *data* in place: everyone who holds the
//! value sees the placeholder at once, nothing is executed twice, and the operands are let go. `D` is the placeholder
//! type; this crate does not look into it.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::{
    args::RuntimeScalars,
    hash::Hash128,
    layout::LayoutRef,
    op::Op,
    signature::{Signature, SignatureRef},
};

/// Where in the user's program a node was recorded; meaning belongs to the recorder, 0 is unknown. Not part of
/// structure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct SiteId(pub u32);

/// Operands of a node.
pub type Operands<D> = SmallVec<[Value<D>; 4]>;

/// What a node still has to compute, or the data that stands for it.
enum State<D> {
    Pending { operands: Operands<D>, numbers: RuntimeScalars },
    Data(D),
}

/// One recorded operation (or leaf).
pub struct Node<D> {
    signature: SignatureRef,
    site: SiteId,
    /// How many of those who refer to it only keep it ([`Kept`]).
    kept: AtomicU32,
    /// How many operations that can fail were recorded when it was; what it counts belongs to the recorder.
    age: AtomicU32,
    /// Scratch of the traversal that runs under the session's lock: epoch in the high half, dense index in the low.
    mark: AtomicU64,
    state: Mutex<State<D>>,
}

/// A counted reference to a node with one result (every node but those with several results, which are only reachable
/// through their [`Op::result`] nodes).
pub struct Value<D>(Arc<Node<D>>);

/// A reference that does not keep the node.
pub struct WeakValue<D>(Weak<Node<D>>);

/// A value that is kept for the case that what replaced it in its storage cannot be computed. Who keeps a value does
/// not use it: its memory may be written over once nothing can fail any more, and alone it makes no output.
pub struct Kept<D>(Value<D>);

/// A node nobody refers to any more, kept for the memory it takes and for its signature: a step that repeats the last
/// one records into the nodes of that one.
pub struct RecycledNode<D>(Arc<Node<D>>);

impl<D> Value<D> {
    /// Records an operation that consumes `operands` and `numbers` in the order its arguments name them.
    #[inline]
    pub fn record(signature: SignatureRef, operands: Operands<D>, numbers: RuntimeScalars, site: SiteId) -> Self {
        Value(Arc::new(Node {
            signature,
            site,
            kept: AtomicU32::new(0),
            age: AtomicU32::new(0),
            mark: AtomicU64::new(0),
            state: Mutex::new(State::Pending { operands, numbers }),
        }))
    }

    /// The node without what it computed from, if this is the only reference to it.
    #[inline]
    pub fn into_recycled(self) -> Option<RecycledNode<D>> {
        let mut node = self.0;
        match Arc::get_mut(&mut node)?.state.get_mut() {
            State::Pending { operands, numbers } => {
                operands.clear();
                numbers.clear();
            }
            data => *data = State::Pending { operands: SmallVec::new(), numbers: SmallVec::new() },
        }
        Some(RecycledNode(node))
    }

    /// A leaf that stands for data.
    pub fn data(layout: LayoutRef, data: D) -> Self {
        Self::leaf(Signature::data(layout), data)
    }

    /// A leaf that stands for data; `signature`: [`Signature::data`] of its layout.
    pub fn leaf(signature: SignatureRef, data: D) -> Self {
        Value(Arc::new(Node {
            signature,
            site: SiteId::default(),
            kept: AtomicU32::new(0),
            age: AtomicU32::new(0),
            mark: AtomicU64::new(0),
            state: Mutex::new(State::Data(data)),
        }))
    }

    /// One result of a node with several.
    pub fn result(&self, index: usize) -> Self {
        let operands = SmallVec::from_iter([self.clone()]);
        Value::record(self.0.signature.part(index), operands, SmallVec::new(), self.0.site)
    }

    /// Index of the result this node stands for, if it is an [`Op::result`] node.
    #[inline]
    pub fn result_index(&self) -> Option<usize> {
        (self.op() == Op::result()).then(|| self.words()[1] as usize)
    }

    /// Operator, structural arguments and result layouts.
    #[inline]
    pub fn signature(&self) -> &SignatureRef {
        &self.0.signature
    }

    /// The operator.
    #[inline]
    pub fn op(&self) -> Op {
        self.0.signature.op()
    }

    /// Structural argument words.
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.0.signature.words()
    }

    /// Layouts of all results.
    #[inline]
    pub fn results(&self) -> &[LayoutRef] {
        self.0.signature.results()
    }

    /// Layout of the value (of the first result).
    #[inline]
    pub fn layout(&self) -> &LayoutRef {
        &self.results()[0]
    }

    /// Hash of operator, arguments and result layouts, without operands.
    #[inline]
    pub fn local_hash(&self) -> Hash128 {
        self.0.signature.hash()
    }

    /// Where it was recorded.
    #[inline]
    pub fn site(&self) -> SiteId {
        self.0.site
    }

    /// Whether both are the same node.
    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Names the node among those alive.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// How many values refer to this node, this one included.
    #[inline]
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// How many of these only keep it.
    #[inline]
    pub fn keepers(&self) -> usize {
        self.0.kept.load(Ordering::Relaxed) as usize
    }

    /// What [`Value::set_age`] said last.
    #[inline]
    pub fn age(&self) -> u32 {
        self.0.age.load(Ordering::Relaxed)
    }

    /// Notes when it was recorded, in a measure of the recorder's.
    #[inline]
    pub fn set_age(&self, age: u32) {
        self.0.age.store(age, Ordering::Relaxed);
    }

    /// Keeps the value without using it.
    pub fn keep(self) -> Kept<D> {
        self.0.kept.fetch_add(1, Ordering::Relaxed);
        Kept(self)
    }

    /// A reference that does not keep the node.
    #[inline]
    pub fn downgrade(&self) -> WeakValue<D> {
        WeakValue(Arc::downgrade(&self.0))
    }

    /// Whether the value is still to be computed.
    #[inline]
    pub fn is_pending(&self) -> bool {
        matches!(*self.0.state.lock(), State::Pending { .. })
    }

    /// Runs `f` on operands and numbers while they are pending, on the data otherwise.
    #[inline]
    pub fn inspect<R>(&self, pending: impl FnOnce(&[Value<D>], &[u64]) -> R, data: impl FnOnce(&D) -> R) -> R {
        match &*self.0.state.lock() {
            State::Pending { operands, numbers } => pending(operands, numbers),
            State::Data(d) => data(d),
        }
    }

    /// Turns the node into data; operands are let go (after the node's lock).
    #[inline]
    pub fn resolve(&self, data: D) {
        let old = std::mem::replace(&mut *self.0.state.lock(), State::Data(data));
        drop_state(old);
    }

    /// Reads the traversal mark if it belongs to this epoch.
    #[inline]
    pub(crate) fn marked(&self, epoch: u32) -> Option<u32> {
        let m = self.0.mark.load(Ordering::Relaxed);
        (m >> 32 == epoch as u64).then_some(m as u32)
    }

    /// Whether [`crate::reachable`] with this epoch reached the value, or the operation it is a result of.
    pub fn is_reached(&self, epoch: u32) -> bool {
        let operation =
            || self.inspect(|operands, _| operands.first().is_some_and(|o| o.marked(epoch).is_some()), |_| false);
        self.marked(epoch).is_some() || (self.result_index().is_some() && operation())
    }

    /// Sets the traversal mark.
    #[inline]
    pub(crate) fn set_mark(&self, epoch: u32, index: u32) {
        self.0.mark.store((epoch as u64) << 32 | index as u64, Ordering::Relaxed);
    }
}

impl<D> Kept<D> {
    /// The value.
    pub fn value(&self) -> &Value<D> {
        &self.0
    }
}

impl<D> Drop for Kept<D> {
    fn drop(&mut self) {
        self.0.0.kept.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<D> std::fmt::Debug for Kept<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kept({})", self.0.op())
    }
}

impl<D> RecycledNode<D> {
    /// Whether the node was recorded with this very signature.
    #[inline]
    pub fn had(&self, signature: &SignatureRef) -> bool {
        Arc::ptr_eq(&self.0.signature, signature)
    }

    /// [`Value::record`], without an allocation.
    #[inline]
    pub fn record(
        self,
        signature: &SignatureRef,
        operands: Operands<D>,
        numbers: RuntimeScalars,
        site: SiteId,
    ) -> Value<D> {
        let same = self.had(signature);
        let mut recycled = self.0;
        let node = Arc::get_mut(&mut recycled).expect("invariant: a recycled node has one reference to its node");
        if !same {
            node.signature = signature.clone();
        }
        node.site = site;
        *node.state.get_mut() = State::Pending { operands, numbers };
        Value(recycled)
    }
}

impl<D> std::fmt::Debug for RecycledNode<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecycledNode({})", self.0.signature.op())
    }
}

impl<D> Clone for Value<D> {
    #[inline]
    fn clone(&self) -> Self {
        Value(Arc::clone(&self.0))
    }
}

impl<D> std::fmt::Debug for Value<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Value({} -> {:?})", self.op(), self.results())
    }
}

impl<D> std::fmt::Debug for WeakValue<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WeakValue(..)")
    }
}

impl<D> WeakValue<D> {
    /// The value if somebody still holds it.
    #[inline]
    pub fn upgrade(&self) -> Option<Value<D>> {
        self.0.upgrade().map(Value)
    }

    /// Whether somebody still holds it.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// Drops a state without recursion: nodes nobody else holds give their operands to the worklist first.
fn drop_state<D>(state: State<D>) {
    let State::Pending { operands, .. } = state else { return };
    let mut worklist = operands;
    while let Some(value) = worklist.pop() {
        if let Some(mut node) = Arc::into_inner(value.0)
            && let State::Pending { operands, .. } = node.state.get_mut()
        {
            worklist.append(operands);
        }
    }
}

impl<D> Drop for Node<D> {
    fn drop(&mut self) {
        if let State::Pending { operands, .. } = self.state.get_mut()
            && !operands.is_empty()
        {
            drop_state(State::Pending { operands: std::mem::take(operands), numbers: SmallVec::new() });
        }
    }
}
