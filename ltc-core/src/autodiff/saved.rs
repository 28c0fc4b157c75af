//! A call as its gradient sees it: arguments, operands, results, and the gradients that reached these.

use ltc_ir::{Arg, Layout, OpCode, Scalar, rules::Call};
use smallvec::SmallVec;

use super::Node;
use crate::{Error, LazyTensor, tensor::SumDimOptions};

/// A call as its gradient sees it.
pub(super) struct Saved<'a> {
    node: &'a Node,
    given: &'a [Option<LazyTensor>],
    args: SmallVec<[Arg<'a>; 12]>,
}

/// A gradient that is recorded where it is wanted.
type Lazily<'f> = &'f dyn Fn() -> Result<LazyTensor, Error>;

/// Gradients by operand.
pub(super) type Gradients = SmallVec<[Option<LazyTensor>; 3]>;

impl<'a> Saved<'a> {
    pub(super) fn new(node: &'a Node, given: &'a [Option<LazyTensor>]) -> Self {
        Saved { node, given, args: node.signature.args().collect() }
    }

    pub(super) fn code(&self) -> OpCode {
        self.node.code
    }

    pub(super) fn inputs(&self) -> &'a [LazyTensor] {
        &self.node.inputs
    }

    pub(super) fn args(&self) -> &[Arg<'a>] {
        &self.args
    }

    /// Which operand an argument is.
    pub(super) fn operand_of(&self, argument: usize) -> Option<usize> {
        match self.args.get(argument)? {
            Arg::Tensor { operand, .. } => *operand,
            _ => None,
        }
    }

    /// The gradient of a result; zeros where none reached it.
    pub(super) fn grad(&self, i: usize) -> Result<LazyTensor, Error> {
        match self.given.get(i).and_then(Option::as_ref) {
            Some(g) => Ok(g.clone()),
            None => {
                let layout = &self.node.signature.results()[i];
                let device = self.inputs()[0].device();
                LazyTensor::zeros(device, layout.sizes(), layout.dtype())
            }
        }
    }

    /// A result's value, differentiable as what it is.
    pub(super) fn result(&self, i: usize) -> LazyTensor {
        let source = super::Source::Result { node: self.shared(), index: i };
        let t = LazyTensor::of(self.inputs()[0].device().clone(), self.node.results[i].clone());
        if super::is_enabled() { t.with_edge(super::Edge(Some(source.into()))) } else { t }
    }

    fn shared(&self) -> std::sync::Arc<Node> {
        self.node.this.upgrade().expect("invariant: the walk holds the node")
    }

    /// A tensor argument.
    pub(super) fn x(&self, argument: usize) -> Option<&'a LazyTensor> {
        self.operand_of(argument).map(|o| &self.inputs()[o])
    }

    pub(super) fn need(&self, argument: usize) -> Result<&'a LazyTensor, Error> {
        self.x(argument)
            .ok_or_else(|| Error::NoGradient(format!("{}: argument {argument} is no tensor", self.code().row().name)))
    }

    pub(super) fn wants(&self, argument: usize) -> bool {
        self.x(argument).is_some_and(LazyTensor::requires_grad)
    }

    pub(super) fn int(&self, i: usize) -> i64 {
        match self.args.get(i) {
            Some(Arg::Int(v)) => *v,
            Some(Arg::Bool(b)) => i64::from(*b),
            _ => 0,
        }
    }

    pub(super) fn bool(&self, i: usize) -> bool {
        self.int(i) != 0
    }

    pub(super) fn ints(&self, i: usize) -> Option<Vec<i64>> {
        match self.args.get(i)? {
            Arg::Ints(w) => Some(w.iter().map(|&x| x as i64).collect()),
            Arg::Int(v) => Some(vec![*v]),
            _ => None,
        }
    }

    pub(super) fn number(&self, i: usize) -> Option<Scalar> {
        let call = Call {
            op: self.code().row().name,
            args: self.args.clone(),
            operands: &[] as &[&Layout],
            numbers: &self.node.numbers,
        };
        call.number(i)
    }

    pub(super) fn float(&self, i: usize) -> f64 {
        match self.number(i) {
            Some(Scalar::Float(x) | Scalar::Complex(x, _)) => x,
            Some(Scalar::Int(n)) => n as f64,
            Some(Scalar::Bool(b)) => f64::from(u8::from(b)),
            None => f64::NAN,
        }
    }

    /// Gradients by argument, where they are wanted.
    pub(super) fn by_argument<const N: usize>(&self, list: [(usize, Lazily<'_>); N]) -> Result<Gradients, Error> {
        let mut out = Gradients::from_elem(None, self.inputs().len());
        for (argument, compute) in list {
            if self.wants(argument)
                && let Some(operand) = self.operand_of(argument)
            {
                out[operand] = Some(compute()?);
            }
        }
        Ok(out)
    }

    /// The gradient of the first argument.
    pub(super) fn only(&self, gradient: Result<LazyTensor, Error>) -> Result<Gradients, Error> {
        let mut out = Gradients::from_elem(None, self.inputs().len());
        out[0] = Some(gradient?);
        Ok(out)
    }

    /// A reduction's gradient with the reduced dimensions back, of size 1.
    pub(super) fn unreduced(&self, g: &LazyTensor, dims: Option<&[i64]>, kept: bool) -> Result<LazyTensor, Error> {
        let x = self.need(0)?;
        if kept || x.dim() == 0 {
            return Ok(g.clone());
        }
        let folded: Vec<usize> = match dims.filter(|d| !d.is_empty()) {
            Some(dims) => dims.iter().map(|&d| ltc_ir::rules::wrap_dim(d, x.dim())).collect::<Result<_, _>>()?,
            None => (0..x.dim()).collect(),
        };
        let size = |(d, &s): (usize, &i64)| if folded.contains(&d) { 1 } else { s };
        let sizes: Vec<i64> = x.sizes().iter().enumerate().map(size).collect();
        g.reshape(&sizes)
    }

    /// How many elements one element of a reduction's result folds.
    pub(super) fn folded(&self, dims: Option<&[i64]>) -> Result<i64, Error> {
        let x = self.need(0)?;
        match dims.filter(|d| !d.is_empty()) {
            Some(dims) => dims.iter().map(|&d| x.size(d)).product(),
            None => Ok(x.numel()),
        }
    }
}

/// The gradient of a broadcast: summed to these sizes.
pub(super) fn sum_to(t: &LazyTensor, sizes: &[i64]) -> Result<LazyTensor, Error> {
    if t.sizes() == sizes {
        return Ok(t.clone());
    }
    let Some(lead) = t.dim().checked_sub(sizes.len()) else { return t.expand(sizes) };
    let spread = |d: &usize| *d < lead || (sizes[d - lead] == 1 && t.sizes()[*d] != 1);
    let dims: Vec<i64> = (0..t.dim()).filter(spread).map(|d| d as i64).collect();
    let summed = if dims.is_empty() {
        t.clone()
    } else {
        t.sum_dim_with(Some(&dims), SumDimOptions { keepdim: true, dtype: None })?
    };
    if summed.dim() == sizes.len() { summed.expand(sizes) } else { summed.reshape(sizes) }
}
