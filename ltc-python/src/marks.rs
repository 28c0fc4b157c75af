//! What a replay leaves besides the values of tensors: gradients, histories and versions.

use ltc_torch::Tensor;

use crate::convert::Tensors;

/// A tensor that gradients are for.
pub(crate) enum Leaf {
    /// One the step finds itself.
    Own(Tensor),
    /// An input, by position.
    Input(usize),
}

impl Leaf {
    pub(crate) fn of<'a>(&'a self, inputs: &'a Tensors) -> &'a Tensor {
        match self {
            Leaf::Own(t) => t,
            Leaf::Input(i) => &inputs[*i],
        }
    }
}

/// What a step does to tensors besides their values.
pub(crate) struct Marks {
    /// Leaves whose gradients are inputs, after those of the call.
    pub(crate) with_grad: Vec<Leaf>,
    /// Leaves that get the last results as gradients.
    pub(crate) gets_grad: Vec<Leaf>,
    /// How often the step wrote to each of these gradients in place.
    pub(crate) grad_versions: Vec<u32>,
    /// Leaves whose gradients go.
    pub(crate) loses_grad: Vec<Leaf>,
    /// Results with a history that the step has used up: what it is called, and what it says when somebody goes back.
    pub(crate) freed_histories: Vec<(usize, String, String)>,
    /// Tensors that are written, and how often; inputs by position.
    pub(crate) written: Vec<(Tensor, u32)>,
    pub(crate) written_inputs: Vec<(usize, u32)>,
    /// Inputs, by position, that showed the memory of something older: they have to show it.
    pub(crate) shares: Vec<(usize, Tensor)>,
}

impl Marks {
    /// Leaves gradients, histories and versions as the step would have.
    pub(crate) fn leave(&self, results: &[Tensor], grads: &[Tensor], inputs: &Tensors) -> Result<(), ltc_torch::Error> {
        for ((leaf, grad), &version) in self.gets_grad.iter().zip(grads).zip(&self.grad_versions) {
            ltc_torch::bump_version(grad, version);
            ltc_torch::set_grad(leaf.of(inputs), Some(grad))?;
        }
        for leaf in &self.loses_grad {
            ltc_torch::set_grad(leaf.of(inputs), None)?;
        }
        for (i, name, why) in &self.freed_histories {
            ltc_torch::set_freed_history(&results[*i], name, why)?;
        }
        // Views share a version with what they show: each is brought to where it is to be, not moved by so much.
        let version = |t: &Tensor| ltc_torch::state_of(t).version();
        let own = self.written.iter().map(|(t, by)| (t, *by));
        let given = self.written_inputs.iter().map(|&(i, by)| (&inputs[i], by));
        let ends: Vec<_> = own.chain(given).map(|(t, by)| (t, version(t).wrapping_add(by))).collect();
        ends.iter().for_each(|&(t, end)| ltc_torch::bump_version(t, end.wrapping_sub(version(t))));
        Ok(())
    }
}
