//! Native tensors over libtorch's kernels beside eager libtorch: values, printing, and gradients beside autograd's.

use std::sync::{Arc, OnceLock};

use ltc_core::{
    Config, Device, LazyTensor, Session,
    tensor::{self, Reduction},
};
use ltc_ts::TsBackend;
use tch::{Kind, Tensor};

fn device() -> &'static Device {
    static SESSION: OnceLock<Session> = OnceLock::new();
    let session =
        SESSION.get_or_init(|| Session::new(Arc::new(TsBackend::new(1)), Config::default()).expect("a session"));
    session.device(0).expect("a device")
}

/// Numbers away from kinks, all different.
fn points(sizes: &[i64], low: f64, high: f64) -> Tensor {
    let n: i64 = sizes.iter().product();
    let at = |i: i64| low + (high - low) * ((i * 7 + 3) % (n * 2 + 5)) as f64 / (n * 2 + 5) as f64 + 0.0137;
    Tensor::from_slice(&(0..n).map(at).collect::<Vec<f64>>()).reshape(sizes)
}

fn numbers(t: &Tensor) -> Vec<f64> {
    Vec::<f64>::try_from(t.to_kind(Kind::Double).contiguous().view([-1])).expect("numbers")
}

fn native(t: &Tensor) -> LazyTensor {
    let sizes = t.size();
    match t.kind() {
        Kind::Int64 => {
            let values: Vec<i64> = Vec::try_from(t.contiguous().view([-1])).expect("integers");
            LazyTensor::from_slice(device(), &values, &sizes).expect("a tensor")
        }
        _ => LazyTensor::from_slice(device(), &numbers(t), &sizes).expect("a tensor"),
    }
}

fn close(what: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (a, b)) in got.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()) || a == b, "{what}, element {i}: {a} instead of {b}");
    }
}

type Ours<'f> = &'f dyn Fn(&[LazyTensor]) -> Result<LazyTensor, ltc_core::Error>;
type Theirs<'f> = &'f dyn Fn(&[Tensor]) -> Tensor;

/// Values are equal; gradients of a weighted sum agree.
fn check(what: &str, inputs: &[Tensor], ours: Ours<'_>, theirs: Theirs<'_>) {
    let run = || -> Result<(), ltc_core::Error> {
        let floats = |t: &Tensor| t.kind() == Kind::Double;
        let leaf = |t: &Tensor| if floats(t) { t.copy().set_requires_grad(true) } else { t.copy() };
        let eager: Vec<Tensor> = inputs.iter().map(leaf).collect();
        let leaf = |t: &Tensor| if floats(t) { native(t).requiring_grad() } else { native(t) };
        let lazy: Vec<LazyTensor> = inputs.iter().map(leaf).collect();
        let (expected, got) = (theirs(&eager), ours(&lazy)?);
        assert_eq!(got.sizes(), expected.size(), "{what}");
        // The same kernels: equal to the last bit, apart from what is composed of other operators.
        close(what, &got.to_f64_vec()?, &numbers(&expected), 1e-14);
        let w = points(&expected.size(), 0.5, 1.5);
        (expected * &w).sum(Kind::Double).backward();
        got.mul(native(&w))?.sum()?.backward()?;
        for (i, (e, l)) in eager.iter().zip(&lazy).enumerate().filter(|(_, (e, _))| e.requires_grad()) {
            let expected = e.grad();
            let zeros = || Tensor::zeros(e.size(), (Kind::Double, tch::Device::Cpu));
            // Autograd's zeros may have no memory.
            let expected = if expected.defined() { zeros() + expected } else { zeros() };
            let got = l.grad().map_or_else(|| Ok(numbers(&zeros())), |g| g.to_f64_vec())?;
            close(&format!("{what}: gradient {i}"), &got, &numbers(&expected), 1e-7);
        }
        Ok(())
    };
    run().unwrap_or_else(|e| panic!("{what}: {e}"));
}

#[test]
fn unary_operators_and_their_gradients() {
    macro_rules! unary {
        ($low:literal..$high:literal: $($name:ident)*) => {
            $(check(stringify!($name), &[points(&[2, 3], $low, $high)], &|x| x[0].$name(), &|x| x[0].$name());)*
        };
    }
    unary!(-2.0..2.0: abs asinh atan ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac hardshrink hardsigmoid
        hardswish hardtanh leaky_relu log_sigmoid mish neg rad2deg relu round selu sgn sigmoid sign silu sin sinc sinh
        softplus softshrink square tan tanh trunc celu elu);
    unary!(0.2..0.9: acos asin atanh erfinv lgamma log log10 log1p log2 reciprocal rsqrt sqrt);
    unary!(1.2..3.0: acosh);
    let x = [points(&[2, 3], -2.0, 2.0)];
    check("gelu", &x, &|x| x[0].gelu(), &|x| x[0].gelu("none"));
    check("clamp_min", &x, &|x| x[0].clamp_min(0.25), &|x| x[0].clamp_min(0.25));
    check("threshold", &x, &|x| x[0].threshold(0.25, 2.0), &|x| x[0].threshold(0.25, 2.0));
}

#[test]
fn binary_operators_and_their_gradients() {
    let two = [points(&[2, 3], 0.6, 2.0), points(&[3], 0.7, 1.9)];
    macro_rules! binary {
        ($($ours:ident = $theirs:ident)*) => {
            $(check(stringify!($ours), &two, &|x| x[0].$ours(&x[1]), &|x| x[0].$theirs(&x[1]));)*
        };
    }
    binary!(add = g_add sub = g_sub mul = g_mul div = g_div atan2 = atan2 fmax = fmax fmin = fmin hypot = hypot
        maximum = maximum minimum = minimum logaddexp = logaddexp logaddexp2 = logaddexp2 pow = pow fmod = fmod_tensor
        remainder = remainder_tensor xlogy = xlogy);
    let three = [points(&[2, 3], 0.6, 2.0), points(&[3], 0.7, 1.9), points(&[2, 1], 0.5, 1.0)];
    check("addcmul", &three, &|x| x[0].addcmul(&x[1], &x[2]), &|x| x[0].addcmul(&x[1], &x[2]));
    check("addcdiv", &three, &|x| x[0].addcdiv(&x[1], &x[2]), &|x| x[0].addcdiv(&x[1], &x[2]));
    check("lerp", &three, &|x| x[0].lerp(&x[1], &x[2]), &|x| x[0].lerp_tensor(&x[1], &x[2]));
}

#[test]
fn reductions_products_and_networks_and_their_gradients() {
    let x = [points(&[2, 3, 4], -1.0, 2.0)];
    check("sum_dim", &x, &|x| x[0].sum_dim(Some(&[0, -1])), &|x| {
        x[0].sum_dim_intlist([0i64, -1].as_slice(), false, Kind::Double)
    });
    check("mean", &x, &|x| x[0].mean(), &|x| x[0].mean(Kind::Double));
    check("max_dim", &x, &|x| Ok(x[0].max_dim(1)?.0), &|x| x[0].max_dim(1, false).0);
    check("amax", &x, &|x| x[0].amax(), &|x| x[0].amax([0i64, 1, 2], false));
    check("std", &x, &|x| x[0].std_correction(), &|x| x[0].std(true));
    check("logsumexp", &x, &|x| x[0].logsumexp(&[1]), &|x| x[0].logsumexp([1i64], false));
    check("norm", &x, &|x| x[0].norm(), &|x| x[0].norm());
    check("cumsum", &x, &|x| x[0].cumsum(1), &|x| x[0].cumsum(1, Kind::Double));
    check("softmax", &x, &|x| x[0].softmax(1), &|x| x[0].softmax(1, Kind::Double));
    check("views", &x, &|x| x[0].permute(&[2, 0, 1])?.reshape(&[4, 6])?.i((1..3, 2)), &|x| {
        x[0].permute([2, 0, 1]).reshape([4, 6]).slice(0, 1, 3, 1).select(1, 2)
    });
    check("cat", &x, &|x| LazyTensor::cat(&[&x[0], &x[0].exp()?]), &|x| {
        Tensor::cat(&[x[0].shallow_clone(), x[0].exp()], 0)
    });
    let two = [points(&[5, 2, 3], -1.0, 2.0), points(&[3, 4], -1.0, 2.0)];
    check("matmul", &two, &|x| x[0].matmul(&x[1]), &|x| x[0].matmul(&x[1]));
    let conv = [points(&[2, 4, 6, 6], -1.0, 1.0), points(&[6, 2, 3, 3], -0.5, 0.5), points(&[6], 0.0, 1.0)];
    fn options(b: &LazyTensor) -> tensor::Conv2dOptions<'_> {
        tensor::Conv2dOptions { bias: Some(b), stride: [2, 1], padding: [1, 0], groups: 2, ..Default::default() }
    }
    check("conv2d", &conv, &|x| x[0].conv2d_with(&x[1], options(&x[2])), &|x| {
        x[0].conv2d(&x[1], Some(&x[2]), [2i64, 1], [1i64, 0], [1i64, 1], 2)
    });
    check("max_pool2d", &conv[..1], &|x| x[0].max_pool2d([2, 2]), &|x| {
        x[0].max_pool2d([2i64, 2], [2i64, 2], [0i64, 0], [1i64, 1], false)
    });
    check("avg_pool2d", &conv[..1], &|x| x[0].avg_pool2d(&[3, 3]), &|x| {
        x[0].avg_pool2d([3i64, 3], [3i64, 3], [0i64, 0], false, true, None)
    });
    check("adaptive_avg_pool2d", &conv[..1], &|x| x[0].adaptive_avg_pool2d(&[2, 3]), &|x| {
        x[0].adaptive_avg_pool2d([2i64, 3])
    });
    let m = [points(&[3, 4], -1.0, 1.0), points(&[4], 0.5, 1.5), points(&[4], -0.5, 0.5)];
    check("layer_norm", &m, &|x| x[0].layer_norm(&[4], Some(&x[1]), Some(&x[2]), 1e-5), &|x| {
        x[0].layer_norm([4i64], Some(&x[1]), Some(&x[2]), 1e-5, false)
    });
    check("group_norm", &m, &|x| x[0].group_norm(2, Some(&x[1]), Some(&x[2]), 1e-5), &|x| {
        x[0].group_norm(2, Some(&x[1]), Some(&x[2]), 1e-5, false)
    });
    let rows = [points(&[3, 4], -1.0, 1.0), Tensor::from_slice(&[2i64, 0, 3])];
    check("cross_entropy", &rows, &|x| x[0].cross_entropy(&x[1], Reduction::Mean), &|x| {
        x[0].log_softmax(-1, Kind::Double).nll_loss(&x[1])
    });
    let pair = [points(&[3, 4], -1.0, 1.0), points(&[3, 4], 0.1, 0.9)];
    check("mse_loss", &pair, &|x| x[0].mse_loss(&x[1]), &|x| x[0].mse_loss(&x[1], tch::Reduction::Mean));
    check("smooth_l1", &pair[..1], &|x| x[0].smooth_l1_loss(&x[0].detach().mul(0.5)?), &|x| {
        x[0].smooth_l1_loss(&(x[0].detach() * 0.5), tch::Reduction::Mean, 1.0)
    });
    let table = [points(&[5, 3], -1.0, 1.0), Tensor::from_slice(&[4i64, 0, 4])];
    check("embedding", &table, &|x| x[0].embedding(&x[1]), &|x| Tensor::embedding(&x[0], &x[1], -1, false, false));
    check("index_select", &table, &|x| x[0].index_select(0, &x[1]), &|x| x[0].index_select(0, &x[1]));
}

#[test]
fn values_print_as_libtorchs_do() {
    let cases = [
        points(&[2, 3], -2.0, 2.0),
        points(&[3], -2.0, 2.0) * 1e7,
        points(&[2, 2, 3], 0.0, 300.0),
        points(&[3, 30], -1.0, 1.0),
        points(&[4], 0.0, 1.0) * 1e-6,
        Tensor::from_slice(&[1i64, -20, 300]),
        Tensor::from_slice(&[1.5f64, f64::NAN, f64::INFINITY, -2.0]),
        Tensor::from_slice(&[0.25f64]).squeeze(),
        Tensor::from_slice(&[1.0f64, 1e6, 1e-3]),
        points(&[0, 3], 0.0, 1.0),
    ];
    for t in cases {
        let ours = native(&t).to_string().replace("[ Ltc", "[ CPU");
        // libtorch forgets to end the line that says which columns follow; ours ends it.
        let head = |line: &str| if line.starts_with("Columns ") { line.to_owned() } else { format!("{line}\n") };
        let ours: String = ours.lines().map(head).collect();
        let theirs = t.to_string(80).expect("a text");
        assert_eq!(ours.trim_end(), theirs.trim_end(), "{:?}", t.size());
    }
}
