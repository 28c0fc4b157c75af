//! A call as its gradient sees it: arguments, operands, results, and the gradients that reached these.

use std::cell::Cell;

use ltc_ir::{
    Arg, OpCode, Scalar,
    rules::Call,
    table::{ArgKind, ArgSpec, shown},
};
use smallvec::SmallVec;

use super::Node;
use crate::{Error, LazyTensor, tensor::SumDimOptions};

/// A call as its gradient sees it. It notes which arguments a rule takes account of, so that [`Saved::check`] can
/// refuse a call that says more than its rule knows.
pub(super) struct Saved<'a> {
    node: &'a Node,
    given: &'a [Option<LazyTensor>],
    args: SmallVec<[Arg<'a>; 12]>,
    /// Arguments that are taken account of, a bit each.
    read: Cell<u64>,
    /// Results whose gradients are, a bit each.
    reached: Cell<u64>,
}

/// A gradient that is recorded where it is wanted.
type Lazily<'f> = &'f dyn Fn() -> Result<LazyTensor, Error>;

/// Gradients by operand.
pub(super) type Gradients = SmallVec<[Option<LazyTensor>; 3]>;

/// Whether an argument only says in which dtype or where a result is: gradients are brought to their operand's dtype
/// and place whatever it was.
pub(super) fn only_places(spec: &ArgSpec) -> bool {
    matches!(spec.kind, ArgKind::DType | ArgKind::Layout | ArgKind::Device | ArgKind::MemoryFormat | ArgKind::Generator)
        || matches!(spec.name, "pin_memory" | "non_blocking")
}

impl<'a> Saved<'a> {
    pub(super) fn new(node: &'a Node, given: &'a [Option<LazyTensor>]) -> Self {
        Saved { node, given, args: node.signature.args().collect(), read: Cell::new(0), reached: Cell::new(0) }
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

    /// Takes account of these arguments, a bit each.
    pub(super) fn takes(&self, arguments: u64) {
        self.read.set(self.read.get() | arguments);
    }

    /// Says that no gradient depends on the values of these arguments.
    pub(super) fn does_not_depend_on(&self, names: &[&str]) {
        for name in names {
            self.arg(name);
        }
    }

    /// An argument, which is taken account of from here on.
    pub(super) fn arg(&self, name: &str) -> Arg<'a> {
        let at = self.code().row().arguments.iter().position(|a| a.name == name);
        let at = at.expect("invariant: rules name arguments of the schema, which a test of theirs holds");
        self.takes(1 << at);
        self.args[at]
    }

    /// Why a call with this argument has no gradient.
    fn refused(&self, name: &str) -> Error {
        Error::NoGradient(format!("{}: its gradient needs a value of the argument `{name}`", self.code().row().name))
    }

    /// Which operand an argument is.
    pub(super) fn operand_of(&self, argument: &Arg<'_>) -> Option<usize> {
        match argument {
            Arg::Tensor { operand, .. } => *operand,
            _ => None,
        }
    }

    /// The gradient of a result; zeros where none reached it.
    pub(super) fn grad(&self, i: usize) -> Result<LazyTensor, Error> {
        self.reached.set(self.reached.get() | 1 << i);
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

    /// A tensor argument, if it is there.
    pub(super) fn x(&self, name: &str) -> Option<&'a LazyTensor> {
        self.operand_of(&self.arg(name)).map(|o| &self.inputs()[o])
    }

    /// A tensor argument that has to be there.
    pub(super) fn need(&self, name: &str) -> Result<&'a LazyTensor, Error> {
        self.x(name).ok_or_else(|| self.refused(name))
    }

    /// Whether a tensor argument wants a gradient.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.x(name).is_some_and(LazyTensor::requires_grad)
    }

    /// The entries of an argument that is a list of tensors, absent ones as `None`.
    pub(super) fn tensors(&self, name: &str) -> Result<Vec<Option<&'a LazyTensor>>, Error> {
        let Arg::Tensors { len, mask, first_operand, .. } = self.arg(name) else { return Err(self.refused(name)) };
        let mut operands = self.inputs()[first_operand..].iter();
        let entry = |i: usize| if mask[i / 64] >> (i % 64) & 1 == 1 { operands.next() } else { None };
        Ok((0..len).map(entry).collect())
    }

    pub(super) fn int(&self, name: &str) -> Result<i64, Error> {
        match self.arg(name) {
            Arg::Int(v) => Ok(v),
            _ => Err(self.refused(name)),
        }
    }

    pub(super) fn bool(&self, name: &str) -> Result<bool, Error> {
        match self.arg(name) {
            Arg::Bool(b) => Ok(b),
            _ => Err(self.refused(name)),
        }
    }

    /// A list of integers, of which an integer is one, if it is there.
    pub(super) fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.arg(name) {
            Arg::Ints(w) => Some(w.iter().map(|&x| x as i64).collect()),
            Arg::Int(v) => Some(vec![v]),
            _ => None,
        }
    }

    /// A string, if it is there.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.as_call(self.arg(name)).text(0)
    }

    /// A number, if it is there.
    pub(super) fn number(&self, name: &str) -> Option<Scalar> {
        self.number_of(self.arg(name))
    }

    /// The value of an argument that is a number.
    pub(super) fn number_of(&self, argument: Arg<'a>) -> Option<Scalar> {
        self.as_call(argument).number(0)
    }

    fn as_call(&self, argument: Arg<'a>) -> Call<'a> {
        Call {
            op: self.code().row().name,
            args: SmallVec::from_slice(&[argument]),
            operands: &[],
            numbers: &self.node.numbers,
        }
    }

    pub(super) fn float(&self, name: &str) -> Result<f64, Error> {
        match self.number(name) {
            Some(Scalar::Float(x)) => Ok(x),
            Some(Scalar::Int(n)) => Ok(n as f64),
            Some(Scalar::Bool(b)) => Ok(f64::from(u8::from(b))),
            Some(Scalar::Complex(..)) | None => Err(self.refused(name)),
        }
    }

    /// Gradients by argument, where they are wanted.
    pub(super) fn by_argument<const N: usize>(&self, list: [(&str, Lazily<'_>); N]) -> Result<Gradients, Error> {
        let mut out = Gradients::from_elem(None, self.inputs().len());
        for (name, compute) in list {
            let operand = self.operand_of(&self.arg(name));
            if let Some(operand) = operand.filter(|&o| self.inputs()[o].requires_grad()) {
                out[operand] = Some(compute()?);
            }
        }
        Ok(out)
    }

    /// The gradient of the first argument, where no other can have one.
    pub(super) fn only(&self, gradient: Result<LazyTensor, Error>) -> Result<Gradients, Error> {
        self.takes(1);
        let mut out = Gradients::from_elem(None, self.inputs().len());
        out[0] = Some(gradient?);
        Ok(out)
    }

    /// What a rule or an expression did not take account of is an error, not a wrong gradient: arguments that are not
    /// at their defaults, operands that want a gradient, and results that gradients reached.
    pub(super) fn check(&self, found: &Gradients) -> Result<(), Error> {
        let row = self.code().row();
        let arguments = || row.arguments.iter().zip(&self.args).enumerate();
        for (i, (spec, arg)) in arguments() {
            let taken = self.read.get() >> i & 1 == 1 || only_places(spec);
            if !taken && !spec.is_default(arg, &self.node.numbers) {
                let (name, value) = (spec.name, shown(arg, &self.node.numbers));
                return Err(Error::NoGradient(format!("{}: no gradient is known for {name}={value}", row.name)));
            }
        }
        for (_, (spec, arg)) in arguments() {
            let operands = match *arg {
                Arg::Tensor { operand: Some(o), .. } => o..o + 1,
                Arg::Tensors { mask, first_operand, .. } => {
                    first_operand..first_operand + mask.iter().map(|m| m.count_ones() as usize).sum::<usize>()
                }
                _ => continue,
            };
            let flows = |t: &LazyTensor| t.dtype().is_floating() || t.dtype().is_complex();
            let dropped = |o: usize| {
                let wanted = self.inputs().get(o).is_some_and(|t| t.requires_grad() && flows(t));
                wanted && found.get(o).is_none_or(Option::is_none)
            };
            if operands.into_iter().any(dropped) {
                let name = spec.name;
                return Err(Error::NoGradient(format!("{}: the derivative for '{name}' is not implemented", row.name)));
            }
        }
        let dropped = |(i, g): &(usize, &Option<LazyTensor>)| g.is_some() && self.reached.get() >> i & 1 == 0;
        match self.given.iter().enumerate().find(dropped) {
            Some((i, _)) => {
                Err(Error::NoGradient(format!("{}: the derivative of result {i} is not implemented", row.name)))
            }
            None => Ok(()),
        }
    }

    /// A reduction's gradient with the reduced dimensions back, of size 1.
    pub(super) fn unreduced(&self, g: &LazyTensor, dims: Option<&[i64]>, kept: bool) -> Result<LazyTensor, Error> {
        let x = self.need("self")?;
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
        let x = self.need("self")?;
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
