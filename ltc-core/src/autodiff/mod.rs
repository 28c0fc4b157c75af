//! Reverse-mode differentiation of native tensors.
//!
//! Operators on tensors that gradients reach leave a [`Node`] behind: the call, its operands' values and its results'.
//! Values are SSA, so nothing that is written later can spoil what was saved. [`LazyTensor::backward`] walks the nodes
//! from the last recorded to the first and records gradients as ordinary lazy operators: of pointwise operators by the
//! expressions of the operator table ([`expr`]), of the others by [`rules`]. Gradients of gradients are the same thing
//! again, wherever the operators a gradient is made of have gradients themselves.

mod backward;
mod expr;
mod rules;
mod saved;

use std::{
    cell::Cell,
    marker::PhantomData,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use ltc_ir::{OpCode, RuntimeScalars, SignatureRef};
use smallvec::SmallVec;

pub use backward::{GradOptions, grad};

use crate::{Error, LazyTensor, TraceValue, sync::Mutex, tensor::Tensors};

/// Where a tensor's gradient goes: nowhere, to a leaf, or to the operation that made the tensor.
#[derive(Clone, Default)]
pub(crate) struct Edge(Option<Arc<Source>>);

impl Edge {
    /// Whether a gradient goes anywhere.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

enum Source {
    Leaf(Leaf),
    Result { node: Arc<Node>, index: usize },
}

/// A tensor whose gradient somebody asked for.
struct Leaf {
    grad: Mutex<Option<LazyTensor>>,
}

/// Operands of an operation as they were, with their edges.
pub(crate) type Inputs = SmallVec<[LazyTensor; 3]>;

/// A recorded operation that gradients flow through.
struct Node {
    /// In order of recording.
    id: u64,
    code: OpCode,
    signature: SignatureRef,
    numbers: RuntimeScalars,
    inputs: Inputs,
    results: SmallVec<[TraceValue; 2]>,
    /// Itself, for the edges of its results.
    this: Weak<Node>,
}

thread_local! {
    static OFF: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, operators of this thread leave nothing behind for gradients.
#[derive(Debug)]
pub struct NoGradGuard(PhantomData<*const ()>);

/// Stops recording for gradients until the guard is dropped.
pub fn no_grad() -> NoGradGuard {
    OFF.set(OFF.get() + 1);
    NoGradGuard(PhantomData)
}

impl Drop for NoGradGuard {
    fn drop(&mut self) {
        OFF.set(OFF.get() - 1);
    }
}

/// Whether operators of this thread record for gradients.
pub fn is_enabled() -> bool {
    OFF.get() == 0
}

/// Remembers a call; its floating results get edges.
pub(crate) fn attach(
    code: OpCode,
    signature: SignatureRef,
    numbers: RuntimeScalars,
    inputs: Inputs,
    results: Tensors,
) -> Tensors {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // A view's value is read when a gradient needs it, not before: reading records.
    let is_view = code.row().class == ltc_ir::OpClass::View;
    let values = if is_view { SmallVec::new() } else { results.iter().map(LazyTensor::value).collect() };
    let node = Arc::new_cyclic(|this| Node {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        code,
        signature,
        numbers,
        inputs,
        results: values,
        this: this.clone(),
    });
    let flows = |t: &LazyTensor| t.dtype().is_floating() || t.dtype().is_complex();
    let with_edge = |(index, t): (usize, LazyTensor)| {
        if !flows(&t) {
            return t;
        }
        let source = Source::Result { node: node.clone(), index };
        t.with_edge(Edge(Some(Arc::new(source))))
    };
    results.into_iter().enumerate().map(with_edge).collect()
}

/// Long chains of operations go one by one, not by recursion.
impl Drop for Node {
    fn drop(&mut self) {
        let mut work: Vec<LazyTensor> = self.inputs.drain(..).collect();
        while let Some(mut t) = work.pop() {
            let Some(source) = t.take_edge().0.and_then(Arc::into_inner) else { continue };
            if let Source::Result { node, .. } = source
                && let Some(mut node) = Arc::into_inner(node)
            {
                work.extend(node.inputs.drain(..));
            }
        }
    }
}

/// What the gradients' own tests ask.
#[doc(hidden)]
pub mod told {
    use std::collections::BTreeMap;

    use ltc_ir::{Arg, OpCode, table::ArgSpec};

    use super::{LazyTensor, Node, Source, rules, saved};

    /// Arguments that gradients of an operator may depend on; `None` where it has none.
    pub fn arguments_of_gradients(code: OpCode) -> Option<Vec<&'static str>> {
        let row = code.row();
        let has = !row.gradients.is_empty() || rules::has(code);
        has.then(|| row.arguments.iter().filter(|a| !saved::only_places(a)).map(|a| a.name).collect())
    }

    /// Each call that a gradient of this tensor flows through, with its arguments that are not at their defaults. Of
    /// flags without a default, those that are set.
    pub fn calls_behind(t: &LazyTensor) -> Vec<(OpCode, Vec<&'static str>)> {
        let mut found = BTreeMap::new();
        let mut work = vec![t.clone()];
        while let Some(t) = work.pop() {
            let Some(Source::Result { node, .. }) = t.edge().0.as_deref() else { continue };
            if found.insert(node.id, (node.code, given(node))).is_none() {
                work.extend(node.inputs.iter().cloned());
            }
        }
        found.into_values().collect()
    }

    fn given(node: &Node) -> Vec<&'static str> {
        let args: Vec<Arg<'_>> = node.signature.args().collect();
        let pairs = node.code.row().arguments.iter().zip(&args);
        let is_given = |(spec, arg): &(&ArgSpec, &Arg<'_>)| {
            !spec.is_default(arg, &node.numbers) && (spec.default.is_some() || **arg != Arg::Bool(false))
        };
        pairs.filter(is_given).map(|(spec, _)| spec.name).collect()
    }
}

impl LazyTensor {
    /// Whether gradients reach this tensor.
    pub fn requires_grad(&self) -> bool {
        self.edge().0.is_some()
    }

    /// Whether it was made by the user, not by an operation gradients flow through.
    pub fn is_leaf(&self) -> bool {
        !matches!(self.edge().0.as_deref(), Some(Source::Result { .. }))
    }

    /// This tensor as a leaf whose gradient [`LazyTensor::backward`] collects; clones share the gradient.
    pub fn requiring_grad(self) -> LazyTensor {
        let leaf = Leaf { grad: Mutex::new(None) };
        self.with_edge(Edge(Some(Arc::new(Source::Leaf(leaf)))))
    }

    /// The gradient collected so far; for leaves.
    pub fn grad(&self) -> Option<LazyTensor> {
        match self.edge().0.as_deref() {
            Some(Source::Leaf(leaf)) => leaf.grad.lock().clone(),
            _ => None,
        }
    }

    /// Sets or forgets the collected gradient.
    pub fn set_grad(&self, grad: Option<LazyTensor>) {
        if let Some(Source::Leaf(leaf)) = self.edge().0.as_deref() {
            // What is replaced may hold a deep graph: let it go after the lock.
            let _old = std::mem::replace(&mut *leaf.grad.lock(), grad);
        }
    }

    /// Adds the gradients of this tensor, which has one element, to the leaves it was computed from.
    ///
    /// # Errors
    /// Fails for a tensor of more than one element, for one that requires no gradient, and where an operator on the way
    /// has none.
    pub fn backward(&self) -> Result<(), Error> {
        backward::run(self, None)
    }

    /// As [`LazyTensor::backward`], for a tensor of any size and the gradient that comes from outside.
    ///
    /// # Errors
    /// Fails where the gradient has another shape, and as [`LazyTensor::backward`] does.
    pub fn backward_with(&self, gradient: &LazyTensor) -> Result<(), Error> {
        backward::run(self, Some(gradient))
    }
}
