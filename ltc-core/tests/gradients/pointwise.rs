//! Gradients that the operator table writes, and those of pointwise operators that have a rule.

use ltc_core::{
    LazyTensor,
    tensor::{self, Reduction},
};
use ltc_ir::{DType, OpCode as O, Scalar};

use crate::checks::{Checks, points};

pub(crate) fn of_one(c: &mut Checks<'_>) {
    macro_rules! unary {
        ($low:literal..$high:literal: $($name:ident)*) => {
            $(c.like_differences(stringify!($name), &|x| x[0].$name(), &[points(c.dev, &[2, 3], $low, $high)]);)*
        };
    }
    unary!(-2.0..2.0: abs asinh atan cos cosh deg2rad erf erfc exp exp2 expm1 gelu hardshrink hardsigmoid hardswish
        log_sigmoid leaky_relu mish neg relu sigmoid sign silu sin sinc sinh softplus softshrink square tan tanh trunc
        elu selu celu hardtanh frac floor rad2deg ceil round sgn);
    unary!(0.2..0.9: acos asin atanh erfinv log log10 log1p log2 logit reciprocal rsqrt special_entr sqrt);
    unary!(1.2..3.0: acosh lgamma);
    let x = &[points(c.dev, &[3, 3], -2.0, 2.0)];
    let n = |x: f64| Scalar::Float(x);
    c.like_differences("celu", &|x| x[0].celu_with(tensor::CeluOptions { alpha: n(0.7) }), x);
    let elu = tensor::EluOptions { alpha: n(0.7), scale: n(1.3), input_scale: n(0.6) };
    c.like_differences("elu", &|x| x[0].elu_with(elu), x);
    c.like_differences("gelu", &|x| x[0].gelu_with(tensor::GeluOptions { approximate: "tanh" }), x);
    c.like_differences("hardshrink", &|x| x[0].hardshrink_with(tensor::HardshrinkOptions { lambd: n(1.1) }), x);
    let hardtanh = tensor::HardtanhOptions { min_val: n(-0.4), max_val: n(1.4) };
    c.like_differences("hardtanh", &|x| x[0].hardtanh_with(hardtanh), x);
    let leaky = tensor::LeakyReluOptions { negative_slope: n(0.3) };
    c.like_differences("leaky_relu", &|x| x[0].leaky_relu_with(leaky), x);
    let softplus = tensor::SoftplusOptions { beta: n(1.7), threshold: n(1.5) };
    c.like_differences("softplus", &|x| x[0].softplus_with(softplus), x);
    c.like_differences("softshrink", &|x| x[0].softshrink_with(tensor::SoftshrinkOptions { lambd: n(1.1) }), x);
    c.like_differences("round", &|x| x[0].round_decimals(1), x);
    let inside = &[points(c.dev, &[3, 3], 0.05, 0.9)];
    c.like_differences("logit", &|x| x[0].logit_with(tensor::LogitOptions { eps: Some(0.2) }), inside);
    c.like_differences("glu", &|x| x[0].glu_with(tensor::GluOptions { dim: 0 }), &[points(c.dev, &[4, 3], -1.0, 1.0)]);
}

pub(crate) fn of_several(c: &mut Checks<'_>) {
    let dev = c.dev;
    let two = [points(dev, &[2, 3], 0.6, 2.0), points(dev, &[3], 0.7, 1.9)];
    macro_rules! binary {
        ($($name:ident)*) => { $(c.like_differences(stringify!($name), &|x| x[0].$name(&x[1]), &two);)* };
    }
    binary!(add sub mul div rsub atan2 fmax fmin hypot maximum minimum logaddexp logaddexp2 pow xlogy fmod remainder);
    let (one, three) = ([two[0].clone()], [two[0].clone(), two[1].clone(), points(dev, &[2, 1], 0.5, 1.0)]);
    let (alpha, value) = (Scalar::Int(2), Scalar::Float(0.7));
    c.like_differences("add a number", &|x| x[0].add_with(2.5, tensor::AddOptions { alpha }), &one);
    c.like_differences("add", &|x| x[0].add_with(&x[1], tensor::AddOptions { alpha }), &two);
    c.like_differences("sub", &|x| x[0].sub_with(&x[1], tensor::SubOptions { alpha }), &two);
    c.like_differences("rsub", &|x| x[0].rsub_with(&x[1], tensor::RsubOptions { alpha }), &two);
    c.like_differences("pow a number", &|x| x[0].pow(2.5), &one);
    c.like_differences("a number to it", &|x| LazyTensor::full(dev, &[], 2.5, DType::F64)?.pow(&x[0]), &one);
    c.like_differences("div by a number", &|x| x[0].div(2.5), &one);
    let clamp = tensor::ClampOptions { min: Some(1.0.into()), max: Some(1.5.into()) };
    c.like_differences("clamp", &|x| x[0].clamp_with(clamp), &one);
    c.like_differences("clamp above", &|x| x[0].clamp_with(tensor::ClampOptions { min: None, ..clamp }), &one);
    c.like_differences("clamp_min", &|x| x[0].clamp_min(1.0), &one);
    c.like_differences("clamp_max", &|x| x[0].clamp_max(1.0), &one);
    c.like_differences("threshold", &|x| x[0].threshold(1.0, 0.25), &one);
    c.like_differences("addcmul", &|x| x[0].addcmul_with(&x[1], &x[2], tensor::AddcmulOptions { value }), &three);
    c.like_differences("addcdiv", &|x| x[0].addcdiv_with(&x[1], &x[2], tensor::AddcdivOptions { value }), &three);
    c.like_differences("lerp", &|x| x[0].lerp(&x[1], &x[2]), &three);
    c.like_differences("lerp by a number", &|x| x[0].lerp_scalar(&x[1], 0.3), &two);
    c.like_differences("where", &|x| x[0].detach().gt(1.0)?.where_self(&x[1], &x[2]), &three);
    let mask = |x: &LazyTensor| x.detach().gt(1.0);
    c.like_differences("masked_fill", &|x| x[0].masked_fill(mask(&x[0])?, 3.0), &one);
    let single = [two[0].clone(), points(dev, &[], 0.7, 1.9)];
    c.like_differences("masked_fill by a tensor", &|x| x[0].masked_fill_tensor(mask(&x[0])?, &x[1]), &single);
    c.like_differences("dropout's gradient", &|x| x[0].native_dropout_backward(mask(&x[0])?, 2.0), &one);
}

pub(crate) fn of_losses(c: &mut Checks<'_>) {
    let dev = c.dev;
    let pair = [points(dev, &[3, 4], -1.0, 1.0), points(dev, &[3, 4], -0.7, 1.5)];
    let spread = [points(dev, &[4], -1.0, 1.0), points(dev, &[3, 4], -0.7, 1.5)];
    let chances = [points(dev, &[2, 3], 0.1, 0.8), points(dev, &[2, 3], 0.2, 0.9)];
    let weight = points(dev, &[2, 3], 0.5, 1.5);
    for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum].map(|r| r as i64) {
        for inputs in [&pair, &spread] {
            let smooth = tensor::SmoothL1LossOptions { reduction, beta: 0.6 };
            c.like_differences("smooth_l1_loss", &|x| x[0].smooth_l1_loss_with(&x[1], smooth), inputs);
            let huber = tensor::HuberLossOptions { reduction, delta: 0.6 };
            c.like_differences("huber_loss", &|x| x[0].huber_loss_with(&x[1], huber), inputs);
        }
        c.like_differences("mse_loss", &|x| x[0].mse_loss_with(&x[1], tensor::MseLossOptions { reduction }), &pair);
        for weight in [None, Some(&weight)] {
            let o = tensor::BinaryCrossEntropyOptions { weight, reduction };
            c.like_differences("binary_cross_entropy", &|x| x[0].binary_cross_entropy_with(&x[1], o), &chances);
        }
    }
    let weighted = |x: &[LazyTensor]| {
        let o = tensor::BinaryCrossEntropyOptions { weight: Some(&x[1]), reduction: 1 };
        x[0].binary_cross_entropy_with(&weight, o)
    };
    c.refused(O::BinaryCrossEntropy, "'weight'", &weighted, &chances);
    let target = LazyTensor::from_slice(dev, &[2i64, 0, 3], &[3]).expect("a target");
    let weight = points(dev, &[4], 0.5, 1.5);
    let rows = [pair[0].clone(), weight.clone()];
    for reduction in 0..3 {
        let nll = |x: &[LazyTensor]| Ok(x[0].nll_loss_forward(&target, Some(&weight), reduction, 0)?.0);
        c.like_differences("nll_loss", &nll, &rows[..1]);
    }
    let weighted = |x: &[LazyTensor]| Ok(x[0].nll_loss_forward(&target, Some(&x[1]), 1, -100)?.0);
    c.refused(O::NllLossForward, "'weight'", &weighted, &rows);
    c.like_differences("cross_entropy", &|x| x[0].cross_entropy(&target, Reduction::Mean), &rows[..1]);
}
