//! Gradients of operators that are more than pointwise.

use ltc_ir::{Arg, Layout, OpCode, Scalar, rules::Call};
use smallvec::SmallVec;

use super::{Node, backward::sum_to};
use crate::{Error, LazyTensor, tensor::*};

/// A call as its gradient sees it.
pub(super) struct Saved<'a> {
    node: &'a Node,
    given: &'a [Option<LazyTensor>],
    args: SmallVec<[Arg<'a>; 12]>,
}

type Gradients = SmallVec<[Option<LazyTensor>; 3]>;

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
    fn x(&self, argument: usize) -> Option<&'a LazyTensor> {
        self.operand_of(argument).map(|o| &self.inputs()[o])
    }

    fn need(&self, argument: usize) -> Result<&'a LazyTensor, Error> {
        self.x(argument)
            .ok_or_else(|| Error::NoGradient(format!("{}: argument {argument} is no tensor", self.code().row().name)))
    }

    fn wants(&self, argument: usize) -> bool {
        self.x(argument).is_some_and(LazyTensor::requires_grad)
    }

    fn int(&self, i: usize) -> i64 {
        match self.args.get(i) {
            Some(Arg::Int(v)) => *v,
            Some(Arg::Bool(b)) => i64::from(*b),
            _ => 0,
        }
    }

    fn bool(&self, i: usize) -> bool {
        self.int(i) != 0
    }

    fn ints(&self, i: usize) -> Option<Vec<i64>> {
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

    fn float(&self, i: usize) -> f64 {
        match self.number(i) {
            Some(Scalar::Float(x) | Scalar::Complex(x, _)) => x,
            Some(Scalar::Int(n)) => n as f64,
            Some(Scalar::Bool(b)) => f64::from(u8::from(b)),
            None => f64::NAN,
        }
    }

    /// Gradients by argument, where they are wanted.
    fn by_argument<const N: usize>(&self, list: [(usize, Lazily<'_>); N]) -> Result<Gradients, Error> {
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
    fn only(&self, gradient: Result<LazyTensor, Error>) -> Result<Gradients, Error> {
        let mut out = Gradients::from_elem(None, self.inputs().len());
        out[0] = Some(gradient?);
        Ok(out)
    }

    /// A reduction's gradient with the reduced dimensions back, of size 1.
    fn unreduced(&self, g: &LazyTensor, dims: Option<&[i64]>, kept: bool) -> Result<LazyTensor, Error> {
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
    fn folded(&self, dims: Option<&[i64]>) -> Result<i64, Error> {
        let x = self.need(0)?;
        match dims.filter(|d| !d.is_empty()) {
            Some(dims) => dims.iter().map(|&d| x.size(d)).product(),
            None => Ok(x.numel()),
        }
    }
}

type Lazily<'f> = &'f dyn Fn() -> Result<LazyTensor, Error>;

/// Where the extremes of a reduction are: its gradient spread evenly over equal ones.
fn to_extremes(
    x: &LazyTensor,
    g: &LazyTensor,
    extreme: &LazyTensor,
    dims: Option<&[i64]>,
) -> Result<LazyTensor, Error> {
    let mask = x.eq(extreme)?.to_dtype(x.dtype())?;
    let count = match dims.filter(|d| !d.is_empty()) {
        Some(d) => mask.sum_dim_with(Some(d), SumDimOptions { keepdim: true, dtype: None })?,
        None => mask.sum()?,
    };
    g.mul(&mask)?.div(count)
}

/// Zeros of the argument's sizes with the gradient added where indices say.
fn scattered(x: &LazyTensor, dim: i64, index: &LazyTensor, g: &LazyTensor) -> Result<LazyTensor, Error> {
    LazyTensor::zeros(x.device(), x.sizes(), g.dtype())?.scatter_add(dim, index, g)
}

/// Gradients of a call's operands.
pub(super) fn gradients(s: &Saved<'_>) -> Result<Gradients, Error> {
    use OpCode as O;
    let g = || s.grad(0);
    let dims = s.ints(1);
    let dims = dims.as_deref();
    match s.code() {
        // Reductions.
        O::Sum => s.only(g()?.expand(s.need(0)?.sizes())),
        O::SumDimIntList => s.only(s.unreduced(&g()?, dims, s.bool(2))?.expand(s.need(0)?.sizes())),
        O::Mean => s.only(g()?.div(s.folded(None)?)?.expand(s.need(0)?.sizes())),
        O::MeanDim => {
            let g = s.unreduced(&g()?, dims, s.bool(2))?.div(s.folded(dims)?)?;
            s.only(g.expand(s.need(0)?.sizes()))
        }
        O::Max | O::Min => s.only(to_extremes(s.need(0)?, &g()?, &s.result(0), None)),
        O::Amax | O::Amin => {
            let (g, r) = (s.unreduced(&g()?, dims, s.bool(2))?, s.unreduced(&s.result(0), dims, s.bool(2))?);
            s.only(to_extremes(s.need(0)?, &g, &r, dims))
        }
        O::MaxDim | O::MinDim | O::MedianDim | O::Mode => {
            let (g, index) = (s.unreduced(&g()?, dims, s.bool(2))?, s.unreduced(&s.result(1), dims, s.bool(2))?);
            s.only(scattered(s.need(0)?, s.int(1), &index, &g))
        }
        O::VarCorrection | O::StdCorrection => {
            let x = s.need(0)?;
            let correction = s.number(2).map_or(1.0, |_| s.float(2));
            let n = s.folded(dims)? as f64 - correction;
            let mean = x.mean_dim_with(dims, MeanDimOptions { keepdim: true, dtype: None })?;
            let mut g = s.unreduced(&g()?, dims, s.bool(3))?;
            if s.code() == O::StdCorrection {
                let spread = s.unreduced(&s.result(0), dims, s.bool(3))?;
                g = g.div(&spread.mul(2.0)?)?.masked_fill(spread.eq(0.0)?, 0i64)?;
            }
            s.only(x.sub(mean)?.mul(2.0 / n)?.mul(g))
        }
        O::Logsumexp => {
            let (g, r) = (s.unreduced(&g()?, dims, s.bool(2))?, s.unreduced(&s.result(0), dims, s.bool(2))?);
            s.only(s.need(0)?.sub(r)?.exp()?.mul(g))
        }
        O::NormScalar if s.float(1) == 2.0 => {
            let (x, r) = (s.need(0)?, s.result(0));
            s.only(x.mul(g()?.div(&r)?)?.masked_fill(r.eq(0.0)?, 0i64))
        }
        O::Cumsum => s.only(g()?.flip(&[s.int(1)])?.cumsum(s.int(1))?.flip(&[s.int(1)])),
        // Products.
        O::Mm => s.by_argument([(0, &|| g()?.mm(&s.need(1)?.t()?)), (1, &|| s.need(0)?.t()?.mm(&g()?))]),
        O::Bmm => s.by_argument([
            (0, &|| g()?.bmm(&s.need(1)?.transpose(1, 2)?)),
            (1, &|| s.need(0)?.transpose(1, 2)?.bmm(&g()?)),
        ]),
        O::Addmm => s.by_argument([
            (0, &|| sum_to(&g()?, s.need(0)?.sizes())?.mul(s.float(3))),
            (1, &|| g()?.mm(&s.need(2)?.t()?)?.mul(s.float(4))),
            (2, &|| s.need(1)?.t()?.mm(&g()?)?.mul(s.float(4))),
        ]),
        O::Baddbmm => s.by_argument([
            (0, &|| sum_to(&g()?, s.need(0)?.sizes())?.mul(s.float(3))),
            (1, &|| g()?.bmm(&s.need(2)?.transpose(1, 2)?)?.mul(s.float(4))),
            (2, &|| s.need(1)?.transpose(1, 2)?.bmm(&g()?)?.mul(s.float(4))),
        ]),
        O::Mv => s.by_argument([
            (0, &|| g()?.unsqueeze(1)?.mul(&s.need(1)?.unsqueeze(0)?)),
            (1, &|| s.need(0)?.t()?.mv(&g()?)),
        ]),
        O::Dot => s.by_argument([(0, &|| s.need(1)?.mul(g()?)), (1, &|| s.need(0)?.mul(g()?))]),
        O::Convolution => convolution(s),
        // Pooling and sampling.
        O::MaxPool2dWithIndices => {
            let lists = [1, 2, 3, 4].map(|i| s.ints(i).unwrap_or_default());
            let [kernel, stride, padding, dilation] = &lists;
            let (x, index) = (s.need(0)?, s.result(1));
            s.only(g()?.max_pool2d_with_indices_backward(x, kernel, stride, padding, dilation, s.bool(5), &index))
        }
        O::AvgPool2d => {
            let lists = [1, 2, 3].map(|i| s.ints(i).unwrap_or_default());
            let [kernel, stride, padding] = &lists;
            let divisor = matches!(s.args()[6], Arg::Int(_)).then(|| s.int(6));
            s.only(g()?.avg_pool2d_backward(s.need(0)?, kernel, stride, padding, s.bool(4), s.bool(5), divisor))
        }
        O::UnderscoreAdaptiveAvgPool2d => s.only(g()?.adaptive_avg_pool2d_backward(s.need(0)?)),
        O::ConstantPadNd => {
            let inverse: Vec<i64> = s.ints(1).unwrap_or_default().iter().map(|p| -p).collect();
            s.only(g()?.constant_pad_nd(&inverse))
        }
        O::Glu => s.only(g()?.glu_backward(s.need(0)?, s.int(1))),
        // Normalisations.
        O::UnderscoreSoftmax => s.only(g()?.softmax_backward_data(&s.result(0), s.int(1), s.need(0)?.dtype())),
        O::UnderscoreLogSoftmax => s.only(g()?.log_softmax_backward_data(&s.result(0), s.int(1), s.need(0)?.dtype())),
        O::UnderscoreSoftmaxBackwardData => {
            let (grad, y, dim) = (s.need(0)?, s.need(1)?, [s.int(2)]);
            let g = g()?;
            let keep = SumDimOptions { keepdim: true, dtype: None };
            s.by_argument([
                (0, &|| g.softmax_backward_data(y, s.int(2), grad.dtype())),
                (1, &|| {
                    let inner = grad.mul(y)?.sum_dim_with(Some(&dim), keep)?;
                    let outer = g.mul(y)?.sum_dim_with(Some(&dim), keep)?;
                    grad.sub(inner)?.mul(&g)?.sub(grad.mul(outer)?)
                }),
            ])
        }
        O::UnderscoreLogSoftmaxBackwardData => {
            let (grad, y, dim) = (s.need(0)?, s.need(1)?, [s.int(2)]);
            let g = g()?;
            let keep = SumDimOptions { keepdim: true, dtype: None };
            s.by_argument([
                (0, &|| g.sub(g.mul(y.exp()?)?.sum_dim_with(Some(&dim), keep)?)),
                (1, &|| y.exp()?.mul(&g)?.mul(grad.sum_dim_with(Some(&dim), keep)?)?.neg()),
            ])
        }
        O::NativeBatchNorm => batch_norm(s),
        O::NativeLayerNorm => layer_norm(s),
        O::NativeGroupNorm => group_norm(s),
        O::NativeDropout => {
            let p = s.float(1);
            let scale = if p >= 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
            s.only(g()?.native_dropout_backward(s.result(1), scale))
        }
        // Losses.
        O::NllLossForward => {
            let (x, target) = (s.need(0)?, s.need(1)?);
            s.only(g()?.nll_loss_backward(x, target, s.x(2), s.int(3), s.int(4), &s.result(1)))
        }
        O::MseLoss => {
            let difference = s.need(0)?.sub(s.need(1)?)?;
            let scale = if s.int(2) == 1 { 2.0 / difference.numel() as f64 } else { 2.0 };
            let g = difference.mul(scale)?.mul(g()?)?;
            s.by_argument([(0, &|| Ok(g.clone())), (1, &|| g.neg())])
        }
        O::SmoothL1Loss => s.only(g()?.smooth_l1_loss_backward(s.need(0)?, s.need(1)?, s.int(2), s.float(3))),
        O::HuberLoss => s.only(g()?.huber_loss_backward(s.need(0)?, s.need(1)?, s.int(2), s.float(3))),
        O::BinaryCrossEntropy => {
            let o = BinaryCrossEntropyBackwardOptions { weight: s.x(2), reduction: s.int(3) };
            s.only(g()?.binary_cross_entropy_backward_with(s.need(0)?, s.need(1)?, o))
        }
        O::Gelu => s.only(g()?.gelu_backward(s.need(0)?.clone())),
        O::Mish => {
            let x = s.need(0)?;
            let (t, sigma) = (x.softplus()?.tanh()?, x.sigmoid()?);
            s.only(t.mul(&t)?.rsub(1i64)?.mul(x.mul(sigma)?)?.add(t)?.mul(g()?))
        }
        // Moving elements.
        O::Cat => {
            let list = s.inputs();
            let g = g()?;
            let mut start = 0;
            let part = |t: &LazyTensor| {
                let length = if t.sizes() == [0] { 0 } else { t.size(s.int(1))? };
                start += length;
                g.narrow(s.int(1), start - length, length).map(Some)
            };
            list.iter().map(part).collect()
        }
        O::Stack => {
            let g = g()?;
            (0..s.inputs().len()).map(|i| g.select(s.int(1), i as i64).map(Some)).collect()
        }
        O::Gather => s.only(scattered(s.need(0)?, s.int(1), s.need(2)?, &g()?)),
        O::ScatterAdd => s.by_argument([(0, &g), (3, &|| g()?.gather(s.int(1), s.need(2)?))]),
        O::ScatterSrc => s.by_argument([
            (0, &|| {
                let zeros = LazyTensor::zeros(s.need(2)?.device(), s.need(2)?.sizes(), g()?.dtype())?;
                g()?.scatter(s.int(1), s.need(2)?, &zeros)
            }),
            (3, &|| g()?.gather(s.int(1), s.need(2)?)),
        ]),
        O::IndexSelect => {
            let x = s.need(0)?;
            s.only(LazyTensor::zeros(x.device(), x.sizes(), g()?.dtype())?.index_add(s.int(1), s.need(2)?, &g()?))
        }
        O::IndexTensor => {
            let x = s.need(0)?;
            let Arg::Tensors { len, mask, .. } = s.args()[1] else { return none(s) };
            let mut next = 1;
            let list: Vec<Option<&LazyTensor>> = (0..len)
                .map(|j| {
                    (mask[j / 64] >> (j % 64) & 1 == 1).then(|| {
                        next += 1;
                        &s.inputs()[next - 1]
                    })
                })
                .collect();
            let zeros = LazyTensor::zeros(x.device(), x.sizes(), g()?.dtype())?;
            s.only(zeros.index_put_with(&list, &g()?, IndexPutOptions { accumulate: true }))
        }
        O::Embedding => {
            let rows = s.need(0)?.sizes()[0];
            s.only(g()?.embedding_dense_backward(s.need(1)?, rows, s.int(2), false))
        }
        O::Flip => s.only(g()?.flip(dims.unwrap_or_default())),
        O::Tril => s.only(g()?.tril_with(TrilOptions { diagonal: s.int(1) })),
        O::Triu => s.only(g()?.triu_with(TriuOptions { diagonal: s.int(1) })),
        O::Repeat => {
            let x = s.need(0)?;
            let repeats = dims.unwrap_or_default();
            let lead = repeats.len() - x.dim();
            // Each dimension as (times, size): summed over the times.
            let sizes: Vec<i64> = repeats
                .iter()
                .enumerate()
                .flat_map(|(d, &r)| if d < lead { vec![r] } else { vec![r, x.sizes()[d - lead]] })
                .collect();
            let times: Vec<i64> = (0..lead).chain((0..x.dim()).map(|d| lead + 2 * d)).map(|d| d as i64).collect();
            let g = g()?.reshape(&sizes)?;
            s.only(if times.is_empty() { Ok(g) } else { g.sum_dim(Some(&times)) })
        }
        O::Sort | O::Topk => {
            let dim = if s.code() == O::Sort { s.int(1) } else { s.int(2) };
            s.only(scattered(s.need(0)?, dim, &s.result(1), &g()?))
        }
        O::Clone | O::UnderscoreToCopy => s.only(g()?.to_dtype(s.need(0)?.dtype())),
        // Views.
        O::View | O::Squeeze | O::SqueezeDims | O::Unsqueeze => s.only(g()?.reshape(s.need(0)?.sizes())),
        O::Expand => s.only(sum_to(&g()?, s.need(0)?.sizes())),
        O::TransposeInt => s.only(g()?.transpose(s.int(1), s.int(2))),
        O::T => s.only(g()?.t()),
        O::Permute => {
            let x = s.need(0)?;
            let mut inverse = vec![0; x.dim()];
            for (i, &d) in dims.unwrap_or_default().iter().enumerate() {
                inverse[ltc_ir::rules::wrap_dim(d, x.dim())?] = i as i64;
            }
            s.only(g()?.permute(&inverse))
        }
        O::SelectInt => s.only(g()?.select_backward(s.need(0)?.sizes(), s.int(1), s.int(2))),
        O::SliceTensor => s.only(g()?.slice_backward(s.need(0)?.sizes(), s.int(1), s.int(2), s.int(3), s.int(4))),
        O::Diagonal => s.only(g()?.diagonal_backward(s.need(0)?.sizes(), s.int(1), s.int(2), s.int(3))),
        O::Unfold => s.only(g()?.unfold_backward(s.need(0)?.sizes(), s.int(1), s.int(2), s.int(3))),
        O::SelectBackward => s.only(g()?.select(s.int(2), s.int(3))),
        O::SliceBackward => s.only(g()?.slice(s.int(2), Some(s.int(3)), Some(s.int(4)), s.int(5))),
        _ => none(s),
    }
}

fn none(s: &Saved<'_>) -> Result<Gradients, Error> {
    Err(Error::NoGradient(format!(
        "the derivative for '{}' is not implemented: add `grad` to its row of ltc-ir/ops.toml, or a rule to \
         ltc-core/src/autodiff/rules.rs",
        s.code().row().name
    )))
}

fn convolution(s: &Saved<'_>) -> Result<Gradients, Error> {
    let (x, w) = (s.need(0)?, s.need(1)?);
    let lists = [3, 4, 5, 7].map(|i| s.ints(i).unwrap_or_default());
    let [stride, padding, dilation, output_padding] = &lists;
    let channels = s.x(2).map(|b| b.numel());
    let bias = channels.map(|c| [c]);
    let mask = [s.wants(0), s.wants(1), s.wants(2)];
    let parts = s.grad(0)?.convolution_backward(
        x,
        w,
        bias.as_ref().map(|b| &b[..]),
        stride,
        padding,
        dilation,
        s.bool(6),
        output_padding,
        s.int(8),
        &mask,
    )?;
    Ok(parts.into_iter().take(s.inputs().len()).collect())
}

fn batch_norm(s: &Saved<'_>) -> Result<Gradients, Error> {
    let mask = [s.wants(0), s.wants(1), s.wants(2)];
    let (mean, inverse) = (s.result(1), s.result(2));
    let training = s.bool(5);
    let (mean, inverse) = if training { (Some(&mean), Some(&inverse)) } else { (None, None) };
    let parts = s.grad(0)?.native_batch_norm_backward(
        s.need(0)?,
        s.x(1),
        s.x(3),
        s.x(4),
        mean,
        inverse,
        training,
        s.float(7),
        &mask,
    )?;
    place(s, parts)
}

fn layer_norm(s: &Saved<'_>) -> Result<Gradients, Error> {
    let mask = [s.wants(0), s.wants(2), s.wants(3)];
    let shape = s.ints(1).unwrap_or_default();
    let (mean, inverse) = (s.result(1), s.result(2));
    let parts = s.grad(0)?.contiguous()?.native_layer_norm_backward(
        s.need(0)?,
        &shape,
        &mean,
        &inverse,
        s.x(2),
        s.x(3),
        &mask,
    )?;
    place(s, parts)
}

fn group_norm(s: &Saved<'_>) -> Result<Gradients, Error> {
    let mask = [s.wants(0), s.wants(1), s.wants(2)];
    let (mean, inverse) = (s.result(1), s.result(2));
    let numbers = [3, 4, 5, 6].map(|i| s.int(i));
    let [n, c, inner, groups] = numbers;
    let parts = s.grad(0)?.contiguous()?.native_group_norm_backward(
        s.need(0)?,
        &mean,
        &inverse,
        s.x(1),
        n,
        c,
        inner,
        groups,
        &mask,
    )?;
    place(s, parts)
}

/// Gradients for input, weight and bias of a norm, of which the last two may be absent.
fn place(s: &Saved<'_>, parts: Vec<Option<LazyTensor>>) -> Result<Gradients, Error> {
    let mut out = Gradients::from_elem(None, s.inputs().len());
    let arguments = if s.code() == OpCode::NativeLayerNorm { [0, 2, 3] } else { [0, 1, 2] };
    for (argument, part) in arguments.into_iter().zip(parts) {
        if let Some(operand) = s.operand_of(argument) {
            out[operand] = part;
        }
    }
    Ok(out)
}
