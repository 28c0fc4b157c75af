//! Kernels with folds give what libtorch's own kernels give, up to the order of sums.

mod common;

use common::*;
use ltc_backend::Executable;
use ltc_ir::{ArgFlags, ArgWriter, DType, Layout, LayoutRef};
use ltc_ts::{Fusion, Jit, TsConfig};
use proptest::prelude::*;
use tch::{Kind, Tensor};

fn config(fusion: Fusion, jit: Jit) -> TsConfig {
    TsConfig { fusion, jit, ..TsConfig::default() }
}

fn dtype(t: &Tensor) -> DType {
    match t.kind() {
        Kind::Double => DType::F64,
        Kind::BFloat16 => DType::BF16,
        Kind::Half => DType::F16,
        Kind::Float => DType::F32,
        other => panic!("{other:?}"),
    }
}

fn layout(t: &Tensor) -> LayoutRef {
    Layout::strided(dtype(t), &t.size(), &t.stride()).into()
}

/// A call and tensors of its results' layouts. The first operand is the one around which other operators are put.
struct Case {
    name: &'static str,
    args: ArgWriter,
    operands: Vec<Tensor>,
    expected: Vec<Tensor>,
}

const OPERATORS: usize = 19;

/// Call `which` of a tensor over these dimensions; `None` where libtorch does not take it.
fn case(which: usize, x: &Tensor, dims: &[i64], keep: bool) -> Option<Case> {
    let (dim, rank) = (dims.first().copied().unwrap_or(0), x.dim());
    let (size, kind) = (x.size(), x.kind());
    let one = |name, args: &ArgWriter, expected| {
        Some(Case { name, args: args.clone(), operands: vec![x.shallow_clone()], expected: vec![expected] })
    };
    let (mut some, mut all) = (ArgWriter::new(), ArgWriter::new());
    some.tensor().ints(dims).bool(keep);
    all.tensor();
    let along = |last: bool| ArgWriter::new().tensor().int(dim).bool(last).clone();
    let like = || Tensor::randn(&size, (kind, tch::Device::Cpu));
    let tail: Vec<i64> = size[rank - rank.min(dims.len())..].to_vec();
    // Of very few elements the variance is rounding, magnified by one over the square root of epsilon.
    let each = match which {
        16 | 17 => tail.iter().product(),
        18 if rank >= 2 => x.numel() as i64 / size[1].max(1),
        _ => i64::MAX,
    };
    if each < 4 {
        return None;
    }
    let vector = |n: i64, low: f64| Tensor::rand([n], (kind, tch::Device::Cpu)) + low;
    match which {
        0 => one("aten::_softmax", &along(false), x.f_internal_softmax(dim, false).ok()?),
        1 => one("aten::_log_softmax", &along(false), x.f_internal_log_softmax(dim, false).ok()?),
        2 => one("aten::sum.dim_IntList", some.none(), x.f_sum_dim_intlist(dims, keep, None::<Kind>).ok()?),
        3 => one("aten::mean.dim", some.none(), x.f_mean_dim(dims, keep, None::<Kind>).ok()?),
        4 => one("aten::amax", &some, x.f_amax(dims, keep).ok()?),
        5 => one("aten::amin", &some, x.f_amin(dims, keep).ok()?),
        6 => one("aten::sum", all.none(), x.f_sum(None::<Kind>).ok()?),
        7 => one("aten::mean", all.none(), x.f_mean(None::<Kind>).ok()?),
        8 => one("aten::max", &all, x.f_max().ok()?),
        9 => one("aten::min", &all, x.f_min().ok()?),
        10 => one("aten::logsumexp", &some, x.f_logsumexp(dims, keep).ok()?),
        11 => one(
            "aten::_safe_softmax",
            ArgWriter::new().tensor().int(dim).none(),
            x.f_internal_safe_softmax(dim, None::<Kind>).ok()?,
        ),
        12 | 13 => {
            let output = like().f_softmax(dim, None::<Kind>).ok()?;
            let args = ArgWriter::new().tensor().tensor().int(dim).int(0).clone();
            let (name, expected) = if which == 12 {
                ("aten::_softmax_backward_data", Tensor::f_internal_softmax_backward_data(x, &output, dim, kind).ok()?)
            } else {
                (
                    "aten::_log_softmax_backward_data",
                    Tensor::f_internal_log_softmax_backward_data(x, &output, dim, kind).ok()?,
                )
            };
            Some(Case { name, args, operands: vec![x.shallow_clone(), output], expected: vec![expected] })
        }
        14 | 15 => {
            let y = like();
            let (args, reduction) = if which == 14 { (1, tch::Reduction::Mean) } else { (2, tch::Reduction::Sum) };
            let expected = x.f_mse_loss(&y, reduction).ok()?;
            let args = ArgWriter::new().tensor().tensor().int(args).clone();
            Some(Case { name: "aten::mse_loss", args, operands: vec![x.shallow_clone(), y], expected: vec![expected] })
        }
        16 | 17 => {
            let (weight, bias) =
                (Tensor::rand(&tail, (kind, tch::Device::Cpu)), Tensor::randn(&tail, (kind, tch::Device::Cpu)));
            let mut args = ArgWriter::new();
            args.tensor().ints(&tail);
            let mut operands = vec![x.shallow_clone()];
            let (w, b) = if which == 16 {
                args.tensor().tensor();
                operands.extend([weight.shallow_clone(), bias.shallow_clone()]);
                (Some(&weight), Some(&bias))
            } else {
                args.none().none();
                (None, None)
            };
            args.float(1e-5);
            let (y, mean, rstd) = x.f_native_layer_norm(&tail, w, b, 1e-5).ok()?;
            Some(Case { name: "aten::native_layer_norm", args, operands, expected: vec![y, mean, rstd] })
        }
        18 if rank >= 2 => {
            let c = size[1];
            let (w, b, mean, var) = (vector(c, 0.5), vector(c, -0.5), vector(c, -0.5), vector(c, 0.5));
            let (new_mean, new_var) = (mean.copy(), var.copy());
            let (y, save_mean, save_var) =
                x.f_native_batch_norm(Some(&w), Some(&b), Some(&new_mean), Some(&new_var), true, 0.1, 1e-5).ok()?;
            let mut args = ArgWriter::new();
            args.tensor().tensor().tensor().tensor_with(ArgFlags::MUT).tensor_with(ArgFlags::MUT);
            args.bool(true).float(0.1).float(1e-5);
            let operands = vec![x.shallow_clone(), w, b, mean, var];
            Some(Case {
                name: "aten::native_batch_norm",
                args,
                operands,
                expected: vec![new_mean, new_var, y, save_mean, save_var],
            })
        }
        _ => None,
    }
}

fn doubles(t: &Tensor) -> Vec<f64> {
    Vec::<f64>::try_from(t.to_kind(Kind::Double).contiguous().view(-1)).expect("a flat tensor of doubles")
}

/// Equal but for rounding, of values that came from sums of `terms` terms.
#[track_caller]
fn assert_near(what: &str, got: &Tensor, expected: &Tensor, terms: usize) {
    assert_eq!((got.size(), got.kind()), (expected.size(), expected.kind()), "{what}");
    let unit = match got.kind() {
        Kind::Double => 1e-12,
        Kind::Float => 4e-6,
        Kind::Half => 4e-3,
        _ => 3e-2,
    };
    let scale = doubles(expected).into_iter().filter(|v| v.is_finite()).fold(1.0f64, |a, b| a.max(b.abs()));
    for (i, (g, e)) in doubles(got).into_iter().zip(doubles(expected)).enumerate() {
        // Statistics of what is not finite are either kind of it.
        let lost = !g.is_finite() && !e.is_finite() && what.contains("norm");
        let near = lost || (g - e).abs() <= unit * scale * (1.0 + (terms as f64).sqrt() / 8.0);
        assert!(near || g == e || g.is_nan() && e.is_nan(), "{what}: element {i} is {g:e}, libtorch {e:e}");
    }
}

/// Runs a call, with its first operand read through a view of `base` if there is one, and with `relu` before it and a
/// sum with the first operand after it where sizes allow; returns how many kernels ran, and how many as machine code
/// where there is any; bits are the same.
fn compare(case: &Case, base: Option<&Tensor>, around: bool) -> (u64, u64) {
    let mut g = G::default();
    let x = &case.operands[0];
    let mut operands: Vec<_> = case.operands[1..].iter().map(|t| g.param(&layout(t))).collect();
    let stored = base.unwrap_or(x);
    let param = g.param(&layout(stored));
    // The first element of a row is left out.
    let first = if base.is_some() { g.read_view(param, 1, &layout(x)) } else { param };
    operands.insert(0, first);
    if around {
        operands[0] = g.relu(first, &layout(x));
        operands[0] = g.relu(operands[0], &layout(x));
    }
    let results: Vec<LayoutRef> = case.expected.iter().map(layout).collect();
    let mut outputs = g.call(case.name, &case.args, &operands, &results);
    let same = results.iter().position(|r| r.sizes() == x.size());
    if let (true, Some(same)) = (around, same) {
        outputs.push(g.add(outputs[same], first, &results[same]));
    }
    let graph = g.finish(&outputs);
    let rig = |fusion, jit| Rig::with(config(fusion, jit), graph.clone());
    let (fused, compiled, plain) =
        (rig(Fusion::Full, Jit::Off), rig(Fusion::Full, Jit::Now), rig(Fusion::Off, Jit::Off));
    let mut inputs: Vec<&Tensor> = case.operands[1..].iter().collect();
    inputs.push(stored);
    let (got, again, expected) = (fused.run(&inputs), compiled.run(&inputs), plain.run(&inputs));
    for i in 0..outputs.len() {
        let what = format!("{} of {:?} {:?}, result {i}, around: {around}", case.name, x, x.stride());
        assert_near(&what, &got.tensor(i), &expected.tensor(i), x.numel());
        let pairs = doubles(&got.tensor(i)).into_iter().zip(doubles(&again.tensor(i)));
        pairs.for_each(|(g, a)| {
            assert!(g.to_bits() == a.to_bits() || g.is_nan() && a.is_nan(), "{what}: {a:e} in machine code")
        });
    }
    assert_eq!(fused.stats().compiled, 0);
    (fused.stats().kernels, compiled.stats().compiled)
}

/// A tensor of these sizes whose dimensions lie in memory in another order; with gaps, it is part of a larger one.
fn tensor_of(sizes: &[i64], kind: Kind, rotate: usize, gaps: bool) -> (Tensor, Option<Tensor>) {
    let rank = sizes.len();
    let order: Vec<i64> = (0..rank).map(|d| ((d + rotate) % rank) as i64).collect();
    let mut stored: Vec<i64> = order.iter().map(|&d| sizes[d as usize]).collect();
    if gaps && let Some(last) = stored.last_mut() {
        *last += 1;
    }
    let base = Tensor::randn(&stored, (Kind::Float, tch::Device::Cpu)).to_kind(kind);
    let t = if gaps { base.narrow(rank as i64 - 1, 1, stored[rank - 1] - 1) } else { base.shallow_clone() };
    let mut back = vec![0i64; rank];
    order.iter().enumerate().for_each(|(i, &d)| back[d as usize] = i as i64);
    (t.permute(&back), gaps.then_some(base))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn folds_are_libtorch_s(
        which in 0..OPERATORS,
        sizes in prop::collection::vec(prop::sample::select(vec![1i64, 2, 3, 5, 8, 10, 33, 64]), 1..5),
        long in prop::sample::select(vec![0i64, 0, 0, 257, 1030, 5000]),
        at in 0usize..4,
        kind in prop::sample::select(vec![Kind::Float, Kind::Float, Kind::Double, Kind::BFloat16, Kind::Half]),
        rotate in 0usize..4,
        gaps: bool,
        chosen in prop::collection::vec(any::<bool>(), 4),
        keep: bool,
        around: bool,
    ) {
        let mut sizes = sizes;
        if long > 0 {
            let rank = sizes.len();
            sizes.truncate(3);
            let at = at % rank.min(3);
            sizes[at] = long;
        }
        let dims: Vec<i64> = (0..sizes.len()).filter(|&d| chosen[d]).map(|d| d as i64).collect();
        tch::manual_seed(1);
        let (x, base) = tensor_of(&sizes, kind, rotate, gaps);
        let Some(case) = case(which, &x, &dims, keep) else { return Ok(()) };
        compare(&case, base.as_ref(), around);
    }
}

/// Every operator becomes a kernel, and takes what is around it along.
#[test]
fn folds_are_fused() {
    for which in 0..OPERATORS {
        let x = Tensor::randn([4, 6, 10], tch::kind::FLOAT_CPU);
        let case = case(which, &x, &[2], true).unwrap_or_else(|| panic!("operator {which}"));
        // Alone, libtorch's softmax is good.
        let alone = u64::from(case.name.contains("safe") || !case.name.contains("softmax"));
        assert_eq!(compare(&case, None, false).0, alone, "{}", case.name);
        let compiled = u64::from(ltc_ts::instruction_set() != "portable" && cfg!(target_arch = "x86_64"));
        assert_eq!(compare(&case, None, true), (1, compiled), "{} with others around it", case.name);
    }
}

/// Long sums are cut into pieces that threads share.
#[test]
fn long_folds() {
    for sizes in [vec![1_000_003], vec![3, 200_001], vec![200_001, 3], vec![70_000, 64]] {
        for which in [2, 4, 6, 7, 8, 14] {
            for dims in [vec![0], vec![sizes.len() as i64 - 1]] {
                let x = Tensor::randn(&sizes, tch::kind::FLOAT_CPU);
                let case = case(which, &x, &dims, false).unwrap_or_else(|| panic!("operator {which}"));
                assert!(compare(&case, None, true).0 >= 1, "{}", case.name);
            }
        }
    }
}

/// A row of nothing but -inf, a NaN, an infinite maximum.
#[test]
fn special_values() {
    let inf = f32::INFINITY;
    let x = Tensor::from_slice(&[-inf, -inf, -inf, 1.0, f32::NAN, 2.0, 1.0, inf, 2.0, -inf, 0.0, 1.0]).view([4, 3]);
    for which in 0..OPERATORS {
        let Some(case) = case(which, &x, &[1], false) else { continue };
        compare(&case, None, false);
    }
}

/// Empty rows sum to zero; no rows give nothing.
#[test]
fn empty() {
    for (sizes, dims) in [(vec![3i64, 0], vec![1i64]), (vec![0, 3], vec![1]), (vec![0, 3], vec![0])] {
        let x = Tensor::zeros(&sizes, tch::kind::FLOAT_CPU);
        for which in [0, 1, 2, 6] {
            let Some(case) = case(which, &x, &dims, false) else { continue };
            compare(&case, None, false);
        }
    }
}

#[test]
fn a_norm_written_out_is_one_kernel() {
    // x * rsqrt(mean(x * x, -1) + eps): rows' own operators are part of the kernel.
    let mut g = G::default();
    let (full, rows) = (f32s(&[6, 64]), f32s(&[6, 1]));
    let x = g.param(&full);
    let two = ArgWriter::new().tensor().tensor().clone();
    let square = g.one("aten::mul.Tensor", &two, &[x, x], &full);
    let mean = ArgWriter::new().tensor().ints(&[-1]).bool(true).none().clone();
    let mean = g.one("aten::mean.dim", &mean, &[square], &rows);
    let add = ArgWriter::new().tensor().number(1e-5.into()).number(1i64.into()).clone();
    let shifted = g.one("aten::add.Scalar", &add, &[mean], &rows);
    let root = g.one("aten::rsqrt", ArgWriter::new().tensor(), &[shifted], &rows);
    let y = g.one("aten::mul.Tensor", &two, &[x, root], &full);
    let rig = Rig::with(config(Fusion::Full, Jit::On), g.finish(&[y]));
    let a = Tensor::randn([6, 64], tch::kind::FLOAT_CPU);
    let got = rig.run(&[&a]).tensor(0);
    let expected = &a * ((&a * &a).mean_dim(&[-1i64][..], true, Kind::Float) + 1e-5).rsqrt();
    assert_near("rms norm", &got, &expected, 64);
    assert_eq!((rig.stats().kernels, rig.stats().steps), (1, 1));
}

/// A program for other sizes is made anew where libtorch's kernel is better than the one it has.
#[test]
fn kernels_that_are_not_worth_it_are_not_respecialised() {
    let sum = |rows| {
        let mut g = G::default();
        let x = g.param(&f32s(&[rows, 64]));
        let sum = g.one("aten::sum", ArgWriter::new().tensor().none(), &[x], &f32s(&[]));
        g.finish(&[sum])
    };
    let rig = Rig::with(config(Fusion::Full, Jit::Off), sum(16));
    assert!(rig.program.respecialised(&sum(32).0).is_some(), "as small");
    assert!(rig.program.respecialised(&sum(4096).0).is_none(), "large");
}

/// Sums over the first and third dimension go from strip to strip of the last one: of few operands in the kernel that
/// computes what is summed, of more on their own.
#[test]
fn sums_among_what_is_kept_read_few_operands() {
    for (sizes, dims, operands, kernels) in [
        ([4, 128, 32, 16], [0, 2], 2, 1),
        ([4, 128, 32, 16], [0, 2], 8, 2),
        // Long strips, rows, and what fits into a cache.
        ([4, 16, 4, 1024], [0, 2], 8, 1),
        ([4, 128, 32, 16], [2, 3], 8, 1),
        ([2, 16, 16, 8], [0, 2], 8, 1),
    ] {
        let (mut g, shape) = (G::default(), f32s(&sizes));
        let params: Vec<_> = (0..operands).map(|_| g.param(&shape)).collect();
        let x = params[1..].iter().fold(params[0], |x, &p| g.add(x, p, &shape));
        let kept: Vec<i64> = (0..4).filter(|d| !dims.contains(d)).map(|d| sizes[d as usize]).collect();
        let args = ArgWriter::new().tensor().ints(&dims).bool(false).none().clone();
        let y = g.call("aten::sum.dim_IntList", &args, &[x], &[f32s(&kept)])[0];
        let rig = Rig::with(config(Fusion::Full, Jit::On), g.finish(&[y, x]));
        let given: Vec<Tensor> = (0..operands).map(|_| Tensor::randn(sizes, tch::kind::FLOAT_CPU)).collect();
        let told = rig.run(&given.iter().collect::<Vec<_>>());
        let wanted = given[1..].iter().fold(given[0].shallow_clone(), |x, t| x + t);
        assert_eq!((rig.stats().steps, rig.stats().kernels), (kernels, 1), "{sizes:?} over {dims:?} of {operands}");
        assert!(told.tensor(1).equal(&wanted));
        assert!(told.tensor(0).allclose(
            &wanted.sum_dim_intlist(dims.as_slice(), false, Kind::Float),
            1e-4,
            1e-4,
            false
        ));
    }
}
