//! The walk from results to leaves.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use ltc_ir::ShapeError;
use smallvec::SmallVec;

use super::{
    Edge, Node, Source, expr, no_grad, rules,
    saved::{Gradients, Saved, sum_to},
};
use crate::{Error, LazyTensor};

/// Settings of [`grad`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GradOptions {
    /// Gradients are differentiable themselves.
    pub create_graph: bool,
}

/// Gradients of the sum of `outputs` for `inputs`; `None` for inputs they were not computed from.
///
/// # Errors
/// Fails where an operator between them has no gradient, with its name.
pub fn grad(
    outputs: &[&LazyTensor],
    inputs: &[&LazyTensor],
    options: GradOptions,
) -> Result<Vec<Option<LazyTensor>>, Error> {
    let _off = (!options.create_graph).then(no_grad);
    let mut walk = Walk { wanted: inputs.iter().map(|t| t.edge().clone()).collect(), ..Walk::default() };
    walk.found = vec![None; inputs.len()];
    for output in outputs {
        let seed = output.ones_as()?;
        walk.give(output.edge(), seed)?;
    }
    walk.run()?;
    Ok(walk.found)
}

pub(super) fn run(root: &LazyTensor, gradient: Option<&LazyTensor>) -> Result<(), Error> {
    if !root.requires_grad() {
        return Err(Error::NoGradient("element 0 of tensors does not require grad and does not have a grad_fn".into()));
    }
    let _off = no_grad();
    let seed = match gradient {
        Some(g) if g.sizes() != root.sizes() => {
            let message =
                format!("Mismatch in shape: gradient has a shape of {:?}, the output of {:?}", g.sizes(), root.sizes());
            return Err(ShapeError::runtime(message).into());
        }
        Some(g) => g.detach(),
        None if root.numel() != 1 => {
            return Err(ShapeError::runtime("grad can be implicitly created only for scalar outputs").into());
        }
        None => root.ones_as()?,
    };
    let mut walk = Walk { collects: true, ..Walk::default() };
    walk.give(root.edge(), seed)?;
    walk.run()
}

/// Gradients of an operation's results.
type Given = SmallVec<[Option<LazyTensor>; 2]>;

#[derive(Default)]
struct Walk {
    /// Operations whose results have gradients, by the order they were recorded in.
    pending: BTreeMap<u64, (Arc<Node>, Given)>,
    /// Whether leaves keep what reaches them.
    collects: bool,
    wanted: Vec<Edge>,
    found: Vec<Option<LazyTensor>>,
}

fn add(sum: &mut Option<LazyTensor>, part: LazyTensor) -> Result<(), Error> {
    *sum = Some(match sum.take() {
        None => part,
        Some(sum) => sum.add(&part)?,
    });
    Ok(())
}

impl Walk {
    /// A gradient reaches an edge.
    fn give(&mut self, edge: &Edge, gradient: LazyTensor) -> Result<(), Error> {
        let Some(source) = &edge.0 else { return Ok(()) };
        for (i, wanted) in self.wanted.iter().enumerate() {
            if wanted.0.as_ref().is_some_and(|w| same(w, source)) {
                add(&mut self.found[i], gradient.clone())?;
            }
        }
        match &**source {
            Source::Leaf(leaf) if self.collects => {
                let mut sum = leaf.grad.lock().take();
                add(&mut sum, gradient)?;
                *leaf.grad.lock() = sum;
            }
            Source::Leaf(_) => {}
            Source::Result { node, index } => {
                let (_, given) = match self.pending.entry(node.id) {
                    Entry::Occupied(e) => e.into_mut(),
                    Entry::Vacant(e) => e.insert((node.clone(), Given::new())),
                };
                if given.len() <= *index {
                    given.resize(*index + 1, None);
                }
                add(&mut given[*index], gradient)?;
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), Error> {
        while let Some((_, (node, given))) = self.pending.pop_last() {
            for (input, gradient) in node.inputs.iter().zip(gradients(&node, &given)?) {
                if let Some(gradient) = gradient.filter(|_| input.requires_grad()) {
                    self.give(input.edge(), fitted(gradient, input)?)?;
                }
            }
        }
        Ok(())
    }
}

fn same(a: &Arc<Source>, b: &Arc<Source>) -> bool {
    match (&**a, &**b) {
        (Source::Result { node: a, index: i }, Source::Result { node: b, index: j }) => Arc::ptr_eq(a, b) && i == j,
        _ => Arc::ptr_eq(a, b),
    }
}

/// Gradients of a node's operands.
fn gradients(node: &Node, given: &Given) -> Result<Gradients, Error> {
    // Expressions and rules do not conjugate, as gradients of complex numbers have to be.
    if node.inputs.iter().any(|t| t.requires_grad() && t.dtype().is_complex()) {
        let name = node.code.row().name;
        return Err(Error::NoGradient(format!("{name}: gradients of complex tensors are not implemented")));
    }
    let saved = Saved::new(node, given);
    let by_table = !node.code.row().gradients.is_empty();
    let found = if by_table { expr::gradients(&saved)? } else { rules::gradients(&saved)? };
    saved.check(&found)?;
    Ok(found)
}

/// Summed over the dimensions the operand was broadcast along, in its dtype.
fn fitted(gradient: LazyTensor, input: &LazyTensor) -> Result<LazyTensor, Error> {
    sum_to(&gradient, input.sizes())?.to_dtype(input.dtype())
}
