//! Gradients against differences: every expression of the table and every rule, in double precision over the reference
//! backend.

use std::sync::Arc;

use ltc_backend::ReferenceBackend;
use ltc_core::{
    Config, Device, Error, GradOptions, LazyTensor, Session, grad, no_grad,
    tensor::{self, Reduction},
};
use ltc_ir::DType;

fn session() -> Session {
    Session::new(Arc::new(ReferenceBackend), Config::default()).expect("a session")
}

/// Numbers away from kinks: no zeros, no halves, none equal.
fn points(dev: &Device, sizes: &[i64], low: f64, high: f64) -> LazyTensor {
    let n = sizes.iter().product::<i64>() as usize;
    let at = |i: usize| low + (high - low) * ((i * 7 + 3) % (n * 2 + 5)) as f64 / (n * 2 + 5) as f64 + 0.0137;
    LazyTensor::from_slice(dev, &(0..n).map(at).collect::<Vec<f64>>(), sizes).expect("a tensor")
}

type F<'f> = &'f dyn Fn(&[LazyTensor]) -> Result<LazyTensor, Error>;

/// Compares the gradient of `Σ f·w` with differences.
fn check(name: &str, f: F<'_>, inputs: &[LazyTensor]) {
    let run = || -> Result<(), Error> {
        let leaves: Vec<LazyTensor> = inputs.iter().map(|t| t.clone().requiring_grad()).collect();
        let y = f(&leaves)?;
        let w = points(y.device(), y.sizes(), 0.5, 1.5);
        y.mul(&w)?.sum()?.backward()?;
        let value = |inputs: &[LazyTensor]| {
            let leaves: Vec<LazyTensor> = inputs.iter().map(|t| t.clone().requiring_grad()).collect();
            f(&leaves)?.mul(&w)?.sum()?.item()
        };
        for (k, input) in inputs.iter().enumerate().filter(|(_, t)| t.dtype().is_floating()) {
            let at = input.to_vec::<f64>()?;
            let got = leaves[k].grad().map_or_else(|| Ok(vec![0.0; at.len()]), |g| g.to_f64_vec())?;
            for i in 0..at.len() {
                let moved = |by: f64| {
                    let mut at = at.clone();
                    at[i] += by;
                    let mut inputs = inputs.to_vec();
                    inputs[k] = LazyTensor::from_slice(input.device(), &at, input.sizes())?;
                    value(&inputs)
                };
                let expected = (moved(1e-5)? - moved(-1e-5)?) / 2e-5;
                let error = (got[i] - expected).abs() / (1.0 + expected.abs());
                assert!(error < 1e-6, "{name}: input {k}, element {i}: {} instead of {expected}", got[i]);
            }
        }
        Ok(())
    };
    run().unwrap_or_else(|e| panic!("{name}: {e}"));
}

#[test]
fn of_pointwise_operators() {
    let session = session();
    let dev = session.device(0).expect("a device");
    macro_rules! unary {
        ($low:literal..$high:literal: $($name:ident)*) => {
            $(check(stringify!($name), &|x| x[0].$name(), &[points(dev, &[2, 3], $low, $high)]);)*
        };
    }
    unary!(-2.0..2.0: abs asinh atan cos cosh deg2rad erf erfc exp exp2 expm1 gelu hardshrink hardsigmoid hardswish
        log_sigmoid leaky_relu mish neg relu sigmoid sign silu sin sinc sinh softplus softshrink square tan tanh trunc
        elu selu celu hardtanh frac floor rad2deg);
    unary!(0.2..0.9: acos asin atanh erfinv log log10 log1p log2 logit reciprocal rsqrt sqrt);
    unary!(1.2..3.0: acosh);
    let two = [points(dev, &[2, 3], 0.6, 2.0), points(dev, &[3], 0.7, 1.9)];
    macro_rules! binary {
        ($($name:ident)*) => { $(check(stringify!($name), &|x| x[0].$name(&x[1]), &two);)* };
    }
    binary!(add sub mul div rsub atan2 fmax fmin hypot maximum minimum logaddexp logaddexp2 pow xlogy fmod remainder);
    let one = [points(dev, &[2, 3], 0.6, 2.0)];
    check("add a number", &|x| x[0].add_with(2.5, tensor::AddOptions { alpha: 2i64.into() }), &one);
    check("pow a number", &|x| x[0].pow(2.5), &one);
    check("a number to the power", &|x| LazyTensor::full(dev, &[], 2.5, DType::F64)?.pow(&x[0]), &one);
    check("div by a number", &|x| x[0].div(2.5), &one);
    check("clamp", &|x| x[0].clamp_with(tensor::ClampOptions { min: Some(1.0.into()), max: Some(1.5.into()) }), &one);
    check("clamp below", &|x| x[0].clamp_with(tensor::ClampOptions { min: None, max: Some(1.5.into()) }), &one);
    check("clamp_min", &|x| x[0].clamp_min(1.0), &one);
    check("threshold", &|x| x[0].threshold(1.0, 0.25), &one);
    let three = [points(dev, &[2, 3], 0.6, 2.0), points(dev, &[3], 0.7, 1.9), points(dev, &[2, 1], 0.5, 1.0)];
    check("addcmul", &|x| x[0].addcmul(&x[1], &x[2]), &three);
    check("addcdiv", &|x| x[0].addcdiv(&x[1], &x[2]), &three);
    check("lerp", &|x| x[0].lerp(&x[1], &x[2]), &three);
    check("where", &|x| x[0].gt(1.0)?.where_self(&x[1], &x[2]), &three);
    check("masked_fill", &|x| x[0].masked_fill(x[0].detach().gt(1.0)?, 3.0), &one);
}

#[test]
fn of_reductions_and_products() {
    let session = session();
    let dev = session.device(0).expect("a device");
    let x = [points(dev, &[2, 3, 4], -1.0, 2.0)];
    check("sum", &|x| x[0].sum(), &x);
    check("sum_dim", &|x| x[0].sum_dim(Some(&[0, -1])), &x);
    check("mean", &|x| x[0].mean(), &x);
    check("mean_dim", &|x| x[0].mean_dim(Some(&[1])), &x);
    check("max", &|x| x[0].max(), &x);
    check("amin", &|x| x[0].amin(), &x);
    check("max_dim", &|x| Ok(x[0].max_dim(1)?.0), &x);
    check(
        "var",
        &|x| x[0].var_correction_with(tensor::VarCorrectionOptions { dim: Some(&[1]), ..Default::default() }),
        &x,
    );
    check("std", &|x| x[0].std_correction(), &x);
    check("logsumexp", &|x| x[0].logsumexp(&[1]), &x);
    check("norm", &|x| x[0].norm(), &x);
    check("cumsum", &|x| x[0].cumsum(1), &x);
    check("sort", &|x| Ok(x[0].sort()?.0), &x);
    check("topk", &|x| Ok(x[0].topk(2)?.0), &x);
    let two = [points(dev, &[2, 3], -1.0, 2.0), points(dev, &[3, 4], -1.0, 2.0)];
    check("mm", &|x| x[0].mm(&x[1]), &two);
    check("matmul of batches", &|x| x[0].unsqueeze(0)?.expand(&[2, 2, 3])?.matmul(&x[1]), &two);
    let vectors = [points(dev, &[2, 3], -1.0, 2.0), points(dev, &[3], -1.0, 2.0)];
    check("mv", &|x| x[0].mv(&x[1]), &vectors);
    check("dot", &|x| x[0].i(1)?.dot(&x[1]), &vectors);
    let three = [points(dev, &[4], -1.0, 2.0), two[0].clone(), two[1].clone()];
    let options = tensor::AddmmOptions { beta: 0.5.into(), alpha: 2i64.into() };
    check("addmm", &|x| x[0].addmm_with(&x[1], &x[2], options), &three);
    let batches = [points(dev, &[2, 3, 4], -1.0, 2.0), points(dev, &[2, 4, 2], -1.0, 1.0), points(dev, &[2], 0.0, 1.0)];
    check("bmm", &|x| x[0].bmm(&x[1]), &batches[..2]);
    check("baddbmm", &|x| x[2].baddbmm(&x[0], &x[1]), &batches);
    check("attention", &|x| x[0].attention(&x[0], &x[0], true), &x);
}

#[test]
fn of_networks() {
    let session = session();
    let dev = session.device(0).expect("a device");
    let x = [points(dev, &[2, 4, 5, 5], -1.0, 1.0), points(dev, &[6, 2, 3, 3], -0.5, 0.5), points(dev, &[6], 0.0, 1.0)];
    let conv = |x: &[LazyTensor]| x[0].convolution(&x[1], Some(&x[2]), &[2, 1], &[1, 0], &[1, 1], false, &[0, 0], 2);
    check("convolution", &conv, &x);
    check("max_pool2d", &|x| x[0].max_pool2d([2, 2]), &x[..1]);
    check("avg_pool2d", &|x| x[0].avg_pool2d(&[2, 2]), &x[..1]);
    check("pad", &|x| x[0].constant_pad_nd(&[1, 2, 0, 1]), &x[..1]);
    let m = [points(dev, &[3, 4], -1.0, 1.0), points(dev, &[4], 0.5, 1.5), points(dev, &[4], -0.5, 0.5)];
    check("softmax", &|x| x[0].softmax(1), &m[..1]);
    check("log_softmax", &|x| x[0].log_softmax(0), &m[..1]);
    check("layer_norm", &|x| x[0].layer_norm(&[4], Some(&x[1]), Some(&x[2]), 1e-5), &m);
    let batch_norm = |train: bool| {
        move |x: &[LazyTensor]| {
            let (mean, var) = (x[2].detach(), x[1].detach());
            let (mean, var) = if train { (None, None) } else { (Some(&mean), Some(&var)) };
            Ok(x[0].native_batch_norm(Some(&x[1]), Some(&x[2]), mean, var, train, 0.1, 1e-5)?.0)
        }
    };
    check("batch_norm in training", &batch_norm(true), &m);
    let rows = [points(dev, &[3, 4], -1.0, 1.0)];
    let target = LazyTensor::from_slice(dev, &[2i64, 0, 3], &[3]).expect("a target");
    check("cross_entropy", &|x| x[0].cross_entropy(&target, Reduction::Mean), &rows);
    check("nll_loss", &|x| x[0].nll_loss(&target, Reduction::None), &rows);
    let pair = [rows[0].clone(), points(dev, &[3, 4], 0.0, 1.0)];
    check("mse_loss", &|x| x[0].mse_loss(&x[1]), &pair);
    let table = [points(dev, &[5, 3], -1.0, 1.0)];
    let at = LazyTensor::from_slice(dev, &[4i64, 0, 4], &[3]).expect("indices");
    check("embedding", &|x| x[0].embedding(&at), &table);
    check("index_select", &|x| x[0].index_select(0, &at), &table);
    check("index", &|x| x[0].i(&at), &table);
    check("gather", &|x| x[0].gather(0, &at.unsqueeze(1)?), &table);
}

#[test]
fn of_views_and_joins() {
    let session = session();
    let dev = session.device(0).expect("a device");
    let x = [points(dev, &[2, 3, 4], -1.0, 2.0)];
    check("view", &|x| x[0].view(&[6, 4])?.exp(), &x);
    check("permute", &|x| x[0].permute(&[2, 0, 1])?.exp(), &x);
    check("transpose", &|x| x[0].transpose(0, 2)?.reshape(&[-1])?.exp(), &x);
    check("expand", &|x| x[0].unsqueeze(0)?.expand(&[3, 2, 3, 4]), &x);
    check("select", &|x| x[0].i((1, .., -1)), &x);
    check("slice", &|x| x[0].slice(2, Some(-3), None, 2), &x);
    check("diagonal", &|x| x[0].diagonal(1, 1, 2), &x);
    check("squeeze", &|x| Ok(x[0].unsqueeze(1)?.squeeze()), &x);
    check("repeat", &|x| x[0].repeat(&[2, 1, 3, 1]), &x);
    check("flip", &|x| x[0].flip(&[0, 2]), &x);
    check("tril", &|x| x[0].tril(), &x);
    check("cat", &|x| LazyTensor::cat(&[&x[0], &x[0].exp()?]), &x);
    check("stack", &|x| LazyTensor::stack_with(&[&x[0], &x[0].exp()?], tensor::StackOptions { dim: 1 }), &x);
    check("chunk", &|x| x[0].chunk(2, -1)?[1].exp(), &x);
}

#[test]
fn of_gradients() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let first = |x: &LazyTensor, y: LazyTensor| -> Result<LazyTensor, Error> {
        let g = grad(&[&y], &[x], GradOptions { create_graph: true })?;
        g.into_iter().next().flatten().ok_or_else(|| Error::NoGradient("none".into()))
    };
    let x = LazyTensor::from_slice(dev, &[0.5f64, 1.5], &[2])?.requiring_grad();
    let third = first(&x, first(&x, first(&x, x.mul(&x)?.mul(&x)?.sum()?)?.sum()?)?.sum()?)?;
    assert_eq!(third.to_vec::<f64>()?, [6.0, 6.0]);
    let m = [points(dev, &[3, 4], -1.0, 1.0)];
    check("softmax twice", &|x| first(&x[0], x[0].softmax(1)?.pow(2.0)?.sum()?), &m);
    check("log_softmax twice", &|x| first(&x[0], x[0].log_softmax(1)?.pow(2.0)?.sum()?), &m);
    check("mm twice", &|x| first(&x[0], x[0].mm(&x[0].t()?)?.tanh()?.sum()?), &m);
    Ok(())
}

#[test]
fn gradients_accumulate_in_leaves_and_nowhere_under_no_grad() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let x = LazyTensor::from_slice(dev, &[1.0f64, 2.0], &[2])?.requiring_grad();
    for _ in 0..2 {
        (&x * &x).sum()?.backward()?;
    }
    assert_eq!(x.grad().expect("a gradient").to_vec::<f64>()?, [4.0, 8.0]);
    x.set_grad(None);
    {
        let _off = no_grad();
        assert!(!(&x * 2.0).requires_grad());
        x.add_(1.0)?;
    }
    assert!(matches!(x.add_(1.0), Err(Error::InPlaceGradient)));
    assert!((&x * 2.0).backward().is_err() && x.detach().sum()?.backward().is_err());
    // What a gradient needs is a value, whatever is written later.
    let y = x.exp()?;
    let _off = no_grad();
    x.zero_()?;
    drop(_off);
    y.sum()?.backward()?;
    assert_eq!(x.grad().expect("a gradient").to_vec::<f64>()?, [2f64.exp(), 3f64.exp()]);
    // A chain of many operations records, differentiates and drops without recursion.
    let mut y = x.clone();
    for _ in 0..20_000 {
        y = y.add(1.0)?;
    }
    y.sum()?.backward()?;
    Ok(())
}
