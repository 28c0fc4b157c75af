//! Fused kernels give what libtorch's own kernels give.

mod common;

use common::*;
use ltc_ir::{ArgFlags, ArgWriter, DType, Layout, LayoutRef, Scalar, ValueId, table::ArgKind};
use ltc_ts::{Fusion, Jit, RunStats, TsConfig};
use proptest::prelude::*;
use tch::{Kind, Tensor};

const KINDS: [(DType, Kind); 8] = [
    (DType::F32, Kind::Float),
    (DType::F64, Kind::Double),
    (DType::BF16, Kind::BFloat16),
    (DType::F16, Kind::Half),
    (DType::I64, Kind::Int64),
    (DType::I32, Kind::Int),
    (DType::U8, Kind::Uint8),
    (DType::Bool, Kind::Bool),
];

fn config(fusion: bool) -> TsConfig {
    TsConfig { fusion: if fusion { Fusion::Full } else { Fusion::Off }, ..TsConfig::default() }
}

/// All that arithmetic likes to get wrong, and an odd number of it.
fn special(kind: Kind) -> Tensor {
    #[rustfmt::skip]
    let floats = [
        0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 88.0, -88.0, 120.0, -120.0, 1e-3, 1e-30,
        -1e-42, 1e30, 5.9, -0.1, 0.2, 0.95, -0.95, 4.1, 7.25, f64::INFINITY, f64::NEG_INFINITY, f64::NAN,
    ];
    let integers = [0i64, 1, 2, 3, 5, 7, 100, 127, -1, -2, -3, -128, 1 << 20, -(1 << 20), 77];
    match kind {
        Kind::Bool => Tensor::from_slice(&[true, false, true, true, false]),
        Kind::Uint8 => Tensor::from_slice(&[0u8, 1, 2, 3, 127, 128, 255]),
        Kind::Int | Kind::Int64 => Tensor::from_slice(&integers).to_kind(kind),
        _ => Tensor::from_slice(&floats).to_kind(kind),
    }
}

fn layout(t: &Tensor, dtype: DType) -> LayoutRef {
    Layout::strided(dtype, &t.size(), &t.stride()).into()
}

/// An argument of a test case: a tensor of the dtype under test, a condition, a number.
#[derive(Clone, Copy)]
enum A {
    T,
    Condition,
    N(f64),
    One,
    /// A number of the tensor's own kind.
    Like(f64),
    Text(&'static str),
    Bool(bool),
    None,
}
use A::{Condition, Like, N, One, T, Text};

/// How to call every row: all that its schema lets an argument be.
fn arguments(name: &str) -> Vec<Vec<A>> {
    let row = ltc_ir::table::find(&format!("aten::{name}")).expect("a row");
    let mut calls = vec![vec![]];
    for spec in row.arguments {
        let mut choices: Vec<A> = match (spec.kind, spec.name) {
            (ArgKind::Tensor, "condition" | "mask") => vec![Condition],
            // A number may take a second tensor's place.
            (ArgKind::Tensor, "other") => vec![T, Like(2.0), N(0.75)],
            (ArgKind::Tensor, "value") => vec![Like(2.0)],
            (ArgKind::Tensor, _) => vec![T],
            (ArgKind::Scalar, "alpha" | "value") if spec.default.is_some() => vec![One, N(-0.37)],
            (ArgKind::Scalar | ArgKind::Float, "exponent") => [2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.7].map(N).to_vec(),
            (ArgKind::Scalar | ArgKind::Float, _) => vec![Like(2.0), N(0.5), N(0.2)],
            (ArgKind::Str, "rounding_mode") => vec![Text("trunc"), Text("floor"), A::None],
            (ArgKind::Str, _) => vec![Text("none"), Text("tanh")],
            (ArgKind::Bool, "non_blocking") => vec![A::Bool(false)],
            (ArgKind::Bool, _) => vec![A::Bool(false), A::Bool(true)],
            _ => vec![A::None],
        };
        if spec.optional && !choices.iter().any(|a| matches!(a, A::None)) {
            choices.push(A::None);
        }
        let one = |call: &Vec<A>| choices.iter().map(|a| [&call[..], &[*a]].concat()).collect::<Vec<_>>();
        calls = calls.iter().flat_map(one).collect();
    }
    calls
}

/// Rows that are not computed bit for bit as libtorch does, with the distance allowed: relative, in last places.
fn last_places(expr: &str, dtype: DType) -> f64 {
    let names = expr.split(|c: char| !c.is_ascii_alphanumeric());
    let inexact = |word: &str| {
        let plain = word.trim_end_matches(|c: char| c.is_ascii_digit());
        ["exp", "expm", "log", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "pow", "sigmoid"]
            .contains(&plain)
            || word == "log1p"
    };
    let arithmetic = [" + ", " - ", " * ", " / ", "fma("].map(|f| expr.matches(f).count());
    match () {
        () if names.into_iter().any(inexact) => 8.0,
        // Square roots are correctly rounded here; libtorch's, from a vector library, are not always.
        () if expr.contains("sqrt(") => 1.0,
        // Of several roundings to half, libtorch does some per operation and some at the end, kernel by kernel.
        () if matches!(dtype, DType::F16 | DType::BF16) && arithmetic.iter().sum::<usize>() > 1 => 2.0,
        () => 0.0,
    }
}

/// A graph with one call and its result of this dtype.
fn call(
    name: &str,
    arguments: &[A],
    tensors: &[Tensor],
    dtype: DType,
    condition: &Tensor,
    result: DType,
) -> (Vec<Tensor>, (std::sync::Arc<ltc_ir::Graph>, Vec<u64>)) {
    let (mut g, mut args) = (G::default(), ArgWriter::new());
    let (mut inputs, mut operands): (Vec<Tensor>, Vec<ValueId>) = (Vec::new(), Vec::new());
    let mut next = tensors.iter();
    let row = ltc_ir::table::find(&format!("aten::{name}")).expect("a row");
    let is_tensor = |i: usize| row.arguments[i].kind == ArgKind::Tensor;
    let number =
        |v: f64| if dtype.is_floating() || v.fract() != 0.0 { Scalar::Float(v) } else { Scalar::Int(v as i64) };
    for (i, a) in arguments.iter().enumerate() {
        match *a {
            T => {
                let t = next.next().expect("three tensors at most");
                operands.push(g.param(&layout(t, dtype)));
                inputs.push(t.shallow_clone());
                args.tensor();
            }
            Condition => {
                operands.push(g.param(&layout(condition, DType::Bool)));
                inputs.push(condition.shallow_clone());
                args.tensor();
            }
            // In a `.Tensor` overload's place of a tensor, a number is wrapped.
            N(v) if i == 1 && is_tensor(i) => {
                args.wrapped(Scalar::Float(v));
            }
            Like(v) if is_tensor(i) => {
                args.wrapped(number(v));
            }
            N(v) => {
                args.number(Scalar::Float(v));
            }
            One => {
                args.number(Scalar::Int(1));
            }
            Like(v) => {
                args.number(number(v));
            }
            Text(t) => {
                args.str(t);
            }
            A::Bool(v) => {
                args.bool(v);
            }
            A::None => {
                args.none();
            }
        }
    }
    let shape = layout(&tensors[0], result);
    let value = g.one(&format!("aten::{name}"), &args, &operands, &shape);
    (inputs, g.finish(&[value]))
}

/// Elements as doubles, in logical order.
fn doubles(t: &Tensor) -> Vec<f64> {
    Vec::<f64>::try_from(t.to_kind(Kind::Double).contiguous().view(-1)).expect("a flat tensor of doubles")
}

/// The distance between neighbouring numbers of a dtype at `x`.
fn last_place(dtype: DType, x: f64) -> f64 {
    let (digits, least) = match dtype {
        DType::F64 => (52, -1022),
        DType::F32 => (23, -126),
        DType::F16 => (10, -14),
        _ => (7, -126),
    };
    let exponent = if x == 0.0 { least } else { (x.abs().log2().floor() as i32).max(least) };
    2f64.powi(exponent - digits)
}

/// How far from libtorch's answer one may be.
struct Near<'a> {
    places: f64,
    /// Where terms cancel, what counts is how large they were.
    operands: &'a [Tensor],
    /// libtorch's answers where an element stands alone and among its like: some kernels compute whole vectors
    /// otherwise than what is left over.
    alone: &'a dyn Fn(i64) -> [f64; 2],
}

#[track_caller]
fn assert_close(what: &str, got: &Tensor, expected: &Tensor, dtype: DType, places: f64, operands: &[Tensor]) {
    assert_near(what, got, expected, dtype, &Near { places, operands, alone: &|_| [f64::INFINITY; 2] });
}

#[track_caller]
fn assert_near(what: &str, got: &Tensor, expected: &Tensor, dtype: DType, near: &Near<'_>) {
    let Near { places, operands, alone } = *near;
    assert_eq!((got.size(), got.stride(), got.kind()), (expected.size(), expected.stride(), expected.kind()), "{what}");
    let operands: Vec<Vec<f64>> = operands.iter().map(doubles).collect();
    for (i, (g, e)) in doubles(got).into_iter().zip(doubles(expected)).enumerate() {
        let scale = operands.iter().map(|o| o[i].abs()).filter(|o| o.is_finite()).fold(1.0, f64::max);
        let near = (g - e).abs() <= places * last_place(dtype, e) + if places > 2.0 { 3e-7 * scale } else { 0.0 };
        // libtorch's GELU for AVX-512 multiplies infinities by the zero its error function gives; ours is the limit.
        let infinite = operands.first().map(|x| x[i]).filter(|x| x.is_infinite() && what.starts_with("gelu"));
        let limit = e.is_nan() && infinite.is_some_and(|x| g == x.max(0.0));
        let equal = |e: f64| g == e && g.is_sign_negative() == e.is_sign_negative() || g.is_nan() && e.is_nan();
        assert!(
            equal(e) || limit || places > 0.0 && near || alone(i as i64).into_iter().any(equal),
            "{what}: element {i} is {g:e}, libtorch {e:e}"
        );
    }
}

/// Every row, in every dtype libtorch takes, over all pairs of special values.
#[test]
fn every_row_is_libtorch_s() {
    let (mut in_machine_code, mut wrong) = (0, Vec::new());
    for (name, expr) in ltc_ts::fusable_operators() {
        // All that is wrong is told at once.
        match std::panic::catch_unwind(|| every_call_of(name, expr)) {
            Ok(compiled) => in_machine_code += compiled,
            Err(_) => wrong.push(name),
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(in_machine_code > 500, ltc_ts::instruction_set().starts_with("avx"), "{in_machine_code}");
}

/// Compares a row; says how many of its kernels ran as machine code.
fn every_call_of(name: &str, expr: &str) -> u64 {
    let (mut compared, mut in_machine_code) = (0, 0);
    for arguments in arguments(name) {
        for (dtype, kind) in KINDS {
            let values = special(kind);
            let n = values.size()[0];
            let (x, y) = (values.repeat([n]), values.repeat_interleave_self_int(n, 0, n * n));
            let z = y.flip([0]) + if kind == Kind::Bool { Tensor::from(false) } else { Tensor::from(0).to_kind(kind) };
            let condition = x.not_equal(0).logical_xor(&y.not_equal(0));
            let tensors = [x, y, z.to_kind(kind)];
            for result in [dtype, DType::Bool, DType::F32, DType::F64] {
                let (inputs, graph) = call(name, &arguments, &tensors, dtype, &condition, result);
                let inputs: Vec<&Tensor> = inputs.iter().collect();
                let unfused = Rig::with(config(false), graph.clone());
                let told = unfused.run(&inputs);
                // libtorch does not take this dtype, or yields another one.
                let Ok(expected) = told.get(0) else { continue };
                let compiled = Rig::with(TsConfig { jit: Jit::Now, ..config(true) }, graph.clone());
                let fused = Rig::with(config(true), graph);
                let text = format!("{name} of {dtype} to {result}, {:?}", fused.numbers);
                let got = fused.run(&inputs).tensor(0);
                compared += usize::from(fused.stats().kernels == 1);
                let alone = |i: i64| {
                    [1, 256].map(|n| {
                        let one = |t: &Tensor| t.narrow(0, i, 1).repeat([n]);
                        let of = [0, 1, 2].map(|k| one(&tensors[k]));
                        let (inputs, graph) = call(name, &arguments, &of, dtype, &one(&condition), result);
                        let inputs: Vec<&Tensor> = inputs.iter().collect();
                        doubles(&Rig::with(config(false), graph).run(&inputs).tensor(0))[0]
                    })
                };
                let near = Near { places: last_places(expr, result), operands: &tensors, alone: &alone };
                assert_near(&text, &got, &tensor(expected), result, &near);
                assert_close(&text, &compiled.run(&inputs).tensor(0), &got, result, 0.0, &[]);
                in_machine_code += compiled.stats().compiled;
                // What promises libtorch's bits gives them wherever an element lies: in whole vectors, and among what
                // is left over.
                let two_numbers = matches!(arguments[..], [_, N(_) | Like(_), N(_)]);
                for (from, n) in [(0, n * n), (3, 7), (24, 5), (n * n - 6, 6)].into_iter().filter(|_| !two_numbers) {
                    let n = n.min(tensors[0].numel() as i64 - from);
                    if from < 0 || n <= 0 {
                        continue;
                    }
                    let part = |t: &Tensor| t.narrow(0, from, n).copy();
                    let of = [0, 1, 2].map(|k| part(&tensors[k]));
                    let (inputs, graph) = call(name, &arguments, &of, dtype, &part(&condition), result);
                    let inputs: Vec<&Tensor> = inputs.iter().collect();
                    let exact = Rig::with(TsConfig { fusion: Fusion::Exact, ..config(true) }, graph.clone());
                    let got = exact.run(&inputs).tensor(0);
                    let expected = Rig::with(config(false), graph).run(&inputs).tensor(0);
                    assert_close(&format!("exact {text}, {n} from {from}"), &got, &expected, result, 0.0, &[]);
                }
                break;
            }
        }
    }
    assert!(compared > 0, "{name} was never fused, and its row does not say why (no_fuse)");
    in_machine_code
}

/// Sizes around blocks, vectors and threads.
#[test]
fn every_length_is_covered() {
    for n in [0, 1, 3, 7, 8, 15, 63, 64, 65, 255, 1023, 1024, 1025, 4097, 70_001, 1_000_003] {
        let mut g = G::default();
        let shape = f32s(&[n]);
        let (p, q) = (g.param(&shape), g.param(&shape));
        let x = g.add(p, q, &shape);
        let y = g.relu(x, &shape);
        let z = g.add_in_place(y, p, &shape);
        let rig = Rig::with(config(true), g.finish(&[z, x]));
        let (a, b) = (Tensor::randn([n], tch::kind::FLOAT_CPU), Tensor::randn([n], tch::kind::FLOAT_CPU));
        let told = rig.run(&[&a, &b]);
        let RunStats { runs, steps, kernels, .. } = rig.stats();
        assert_eq!((runs, steps, kernels), (1, 1, 1));
        assert_same(&told.tensor(1), &(&a + &b));
        assert_same(&told.tensor(0), &((&a + &b).relu() + &a));
    }
}

#[test]
fn a_donated_operand_gives_its_memory_to_a_result() {
    let mut g = G::default();
    let shape = f32s(&[5000]);
    let (p, q) = (g.param(&shape), g.param(&shape));
    let x = g.add(p, q, &shape);
    let y = g.relu(x, &shape);
    let z = g.add(p, y, &shape);
    let rig = Rig::with(config(true), g.finish(&[z, y]));
    let (a, b) = (Tensor::randn([5000], tch::kind::FLOAT_CPU), Tensor::randn([5000], tch::kind::FLOAT_CPU));
    let (p, q) = (rig.buffer(&a), rig.buffer(&b));
    let (at_p, kept) = (address(&p), q.clone());
    let told = rig.execute(vec![donate(p), donate(q)]);
    let relu = (&a + &b).relu();
    assert_same(&told.tensor(0), &(&a + &relu));
    assert_same(&told.tensor(1), &relu);
    assert_same(&tensor(&kept), &b);
    let lies_at = |i| address(told.get(i).as_ref().expect("a value"));
    assert!(lies_at(0) == at_p || lies_at(1) == at_p);
    assert_eq!((rig.stats().in_place, rig.stats().donations_taken), (1, 1));
}

/// Of halves, `alpha` is one too; vectors round once, what is left over of them is rounded after each operation.
#[test]
fn alpha_is_taken_in_the_tensors_dtype() {
    for ((dtype, kind), n) in [KINDS[2], KINDS[3]].into_iter().flat_map(|k| [(k, 25), (k, 64)]) {
        let [a, b] = [0, 1].map(|_| Tensor::randn([n], tch::kind::FLOAT_CPU).to_kind(kind));
        for name in ["add.Tensor", "sub.Tensor", "rsub.Scalar"] {
            for alpha in [1.0, 0.3, -3.125, 7.3] {
                let second = if name == "rsub.Scalar" { N(0.75) } else { T };
                let tensors = [a.shallow_clone(), b.shallow_clone()];
                let (inputs, graph) = call(name, &[T, second, N(alpha)], &tensors, dtype, &a, dtype);
                let inputs: Vec<&Tensor> = inputs.iter().collect();
                let exact = Rig::with(TsConfig { fusion: Fusion::Exact, ..TsConfig::default() }, graph.clone());
                let (fused, unfused) = (Rig::with(config(true), graph.clone()), Rig::with(config(false), graph));
                let (got, expected) = (fused.run(&inputs).tensor(0), unfused.run(&inputs).tensor(0));
                assert_close(&format!("{name} {dtype} {n} {alpha}"), &got, &expected, dtype, 0.0, &[]);
                assert_same(&exact.run(&inputs).tensor(0), &expected);
                // How often libtorch rounds depends on where an element stands: a kernel of other bounds would not.
                assert_eq!((fused.stats().kernels, exact.stats().kernels), (1, 0));
            }
        }
    }
}

/// The number that is nearly always one may be another one in any run.
#[test]
fn alpha_may_change_from_run_to_run() {
    let mut g = G::default();
    let shape = f32s(&[100]);
    let (p, q) = (g.param(&shape), g.param(&shape));
    let args = ArgWriter::new().tensor().tensor().number(1i64.into()).clone();
    let x = g.one("aten::sub.Tensor", &args, &[p, q], &shape);
    let graph = g.finish(&[x]);
    let (mut rig, mut unfused) = (Rig::with(config(true), graph.clone()), Rig::with(config(false), graph));
    let (a, b) = (Tensor::randn([100], tch::kind::FLOAT_CPU), Tensor::randn([100], tch::kind::FLOAT_CPU));
    for alpha in [1i64, 3, -2, 1] {
        rig.numbers = vec![alpha as u64];
        unfused.numbers = rig.numbers.clone();
        assert_same(&rig.run(&[&a, &b]).tensor(0), &unfused.run(&[&a, &b]).tensor(0));
    }
    assert_eq!(rig.stats().kernels, 4);
}

#[test]
fn a_failed_operand_fails_only_what_depends_on_it() {
    let mut g = G::default();
    let shape = f32s(&[4]);
    let (p, q) = (g.param(&shape), g.param(&shape));
    let (x, y) = (g.relu(p, &shape), g.relu(q, &shape));
    let z = g.add(x, y, &shape);
    let rig = Rig::with(config(true), g.finish(&[x, y, z]));
    let error = ltc_backend::ExecError::new("aten::somewhere", ltc_ir::ErrorClass::Index, "boom");
    let failed = ltc_backend::Input { buffer: Err(error.into()), donated: false };
    let told = rig.execute(vec![failed, donate(rig.buffer(&ramp(&[4])))]);
    assert_eq!(rig.program.program().step_count(), 1);
    assert_same(&told.tensor(1), &ramp(&[4]).relu());
    assert_eq!((told.error(0).message.as_str(), told.error(2).message.as_str()), ("boom", "boom"));
}

/// One operation on earlier values, picked by number modulo how many there are.
#[derive(Clone, Debug)]
enum Action {
    Binary(&'static str, usize, usize),
    Number(&'static str, usize, f64),
    Unary(&'static str, usize),
    Lerp(usize, usize, f64),
    InPlace(usize, usize),
    Transposed(usize),
    Row(usize, i64),
}

fn action() -> impl Strategy<Value = Action> {
    let v = 0usize..100;
    let number = prop_oneof![Just(1.01), Just(-0.5), Just(2.0), Just(0.0), -3.0..3.0f64];
    let unary = prop::sample::select(vec!["relu", "neg", "abs", "clone"]);
    let binary = prop::sample::select(vec!["add", "sub", "mul", "div"]);
    prop_oneof![
        4 => (binary.clone(), v.clone(), v.clone()).prop_map(|(op, a, b)| Action::Binary(op, a, b)),
        3 => (binary, v.clone(), number.clone()).prop_map(|(op, a, n)| Action::Number(op, a, n)),
        2 => (unary, v.clone()).prop_map(|(op, a)| Action::Unary(op, a)),
        1 => (v.clone(), v.clone(), number).prop_map(|(a, b, n)| Action::Lerp(a, b, n)),
        1 => (v.clone(), v.clone()).prop_map(|(a, b)| Action::InPlace(a, b)),
        1 => v.clone().prop_map(Action::Transposed),
        1 => (v, 0i64..SIDE).prop_map(|(a, i)| Action::Row(a, i)),
    ]
}

const SIDE: i64 = 9;

fn record(action: &Action, dtype: DType, g: &mut G, ids: &mut Vec<ValueId>) {
    let square: LayoutRef = Layout::contiguous(dtype, &[SIDE, SIDE]).into();
    let at = |i: &usize| ids[i % ids.len()];
    let alpha = |op: &str, args: &mut ArgWriter| {
        if op == "add" || op == "sub" {
            args.number(1i64.into());
        }
    };
    let id = match action {
        Action::Binary(op, a, b) => {
            let mut args = ArgWriter::new().tensor().tensor().clone();
            alpha(op, &mut args);
            g.one(&format!("aten::{op}.Tensor"), &args, &[at(a), at(b)], &square)
        }
        Action::Number(op, a, n) => {
            let mut args = ArgWriter::new().tensor().wrapped(Scalar::Float(*n)).clone();
            alpha(op, &mut args);
            g.one(&format!("aten::{op}.Tensor"), &args, &[at(a)], &square)
        }
        Action::Unary(op, a) => {
            let mut args = ArgWriter::new().tensor().clone();
            if *op == "clone" {
                args.none();
            }
            g.one(&format!("aten::{op}"), &args, &[at(a)], &square)
        }
        Action::Lerp(a, b, n) => {
            let args = ArgWriter::new().tensor().tensor().number(Scalar::Float(*n)).clone();
            g.one("aten::lerp.Scalar", &args, &[at(a), at(b)], &square)
        }
        Action::InPlace(a, b) => {
            let args = ArgWriter::new().tensor_with(ArgFlags::MUT).tensor().clone();
            g.one("aten::mul_.Tensor", &args, &[at(a), at(b)], &square)
        }
        Action::Transposed(a) => {
            let view = g.read_view(at(a), 0, &Layout::strided(dtype, &[SIDE, SIDE], &[1, SIDE]).into());
            let args = ArgWriter::new().tensor().tensor().number(1i64.into()).clone();
            g.one("aten::add.Tensor", &args, &[at(a), view], &square)
        }
        Action::Row(a, i) => {
            let row = g.read_view(at(a), i * SIDE, &Layout::contiguous(dtype, &[SIDE]).into());
            let args = ArgWriter::new().tensor().tensor().clone();
            g.one("aten::mul.Tensor", &args, &[at(a), row], &square)
        }
    };
    ids.push(id);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn programs_are_equal_in_every_bit(
        actions in prop::collection::vec(action(), 1..30),
        wanted in prop::collection::vec(any::<bool>(), 30),
        which in 0usize..4,
        donated in any::<bool>(),
    ) {
        let (dtype, kind) = KINDS[which];
        let mut g = G::default();
        let square: LayoutRef = Layout::contiguous(dtype, &[SIDE, SIDE]).into();
        let mut ids = vec![g.param(&square), g.param(&square)];
        actions.iter().for_each(|a| record(a, dtype, &mut g, &mut ids));
        let outputs = (2..ids.len()).filter(|&i| wanted[i - 2] || i + 1 == ids.len());
        let outputs: Vec<ValueId> = outputs.map(|i| ids[i]).collect();
        let graph = g.finish(&outputs);
        let inputs = [ramp(&[SIDE, SIDE]).to_kind(kind), (ramp(&[SIDE, SIDE]).cos() * 3.0).to_kind(kind)];
        let run = |fusion: bool| {
            let jit = if wanted[0] { Jit::Now } else { Jit::On };
            let rig = Rig::with(TsConfig { jit, ..config(fusion) }, graph.clone());
            let given = inputs.iter().map(|t| rig.buffer(t)).map(if donated { donate } else { keep }).collect();
            let told = rig.execute(given);
            (rig.stats().kernels, (0..outputs.len()).map(|i| told.tensor(i)).collect::<Vec<_>>())
        };
        let ((kernels, fused), (_, unfused)) = (run(true), run(false));
        prop_assert!(kernels > 0);
        for (i, (got, expected)) in fused.iter().zip(&unfused).enumerate() {
            assert_close(&format!("output {i} of {actions:?}"), got, expected, dtype, 0.0, &[]);
        }
    }
}

proptest! {
    /// Values and positions, ties and NaN included.
    #[test]
    fn max_pooling_is_libtorch_s(
        sizes in (1i64..3, 1i64..4, 1i64..12, 1i64..30),
        window in (1i64..4, 1i64..4),
        stride in (1i64..4, 1i64..4),
        padding in (0i64..2, 0i64..2),
        ceil in any::<bool>(),
        seed in any::<i64>(),
    ) {
        let ((n, c, h, w), (ky, kx), (sy, sx), (py, px)) = (sizes, window, stride, padding);
        prop_assume!(2 * py <= ky && 2 * px <= kx && h + 2 * py >= ky && w + 2 * px >= kx);
        tch::manual_seed(seed);
        let values = Tensor::from_slice(&[0f32, 1.0, 1.0, 2.0, -1.0, f32::NAN, f32::NEG_INFINITY, f32::INFINITY]);
        let x = values.index_select(0, &Tensor::randint(8, [n * c * h * w], tch::kind::INT64_CPU)).view([n, c, h, w]);
        let expected = x.f_max_pool2d_with_indices([ky, kx], [sy, sx], [py, px], [1, 1], ceil);
        prop_assume!(expected.is_ok());
        let (maxima, positions) = expected.expect("checked");
        let mut g = G::default();
        let p = g.param(&f32s(&x.size()));
        let mut args = ArgWriter::new();
        args.tensor().ints(&[ky, kx]).ints(&[sy, sx]).ints(&[py, px]).ints(&[1, 1]).bool(ceil);
        let results = [f32s(&maxima.size()), Layout::contiguous(DType::I64, &maxima.size()).into()];
        let ids = g.call("aten::max_pool2d_with_indices", &args, &[p], &results);
        let rig = Rig::with(config(true), g.finish(&ids));
        let told = rig.run(&[&x]);
        prop_assert_eq!(rig.stats().kernels, 1);
        assert_close("maxima", &told.tensor(0), &maxima, DType::F32, 0.0, &[]);
        assert_same(&told.tensor(1), &positions);
    }
}

/// An optimiser's step over lists: one kernel per parameter, equal to the operators over lists.
#[test]
fn operators_over_lists_are_taken_apart() {
    let mut g = G::default();
    let shapes = [f32s(&[40]), f32s(&[3, 5]), f32s(&[40])];
    let list = [true; 3];
    let (p, q): (Vec<ValueId>, Vec<ValueId>) = shapes.iter().map(|s| (g.param(s), g.param(s))).unzip();
    let both = |x: &[ValueId], y: &[ValueId]| [x, y].concat();
    let args =
        ArgWriter::new().tensors(&list, ArgFlags::MUT).tensors(&list, ArgFlags::NONE).number(2i64.into()).clone();
    let x = g.call("aten::_foreach_add_.List", &args, &both(&p, &q), &shapes);
    let scalars = [0.5, 2.0, -1.0].map(Scalar::Float);
    let args = ArgWriter::new().tensors(&list, ArgFlags::NONE).number_list(&scalars).clone();
    let y = g.call("aten::_foreach_div.ScalarList", &args, &x, &shapes);
    let args = ArgWriter::new().tensors(&list, ArgFlags::NONE).number(0.25.into()).clone();
    let z = g.call("aten::_foreach_sub.Scalar", &args, &y, &shapes);
    let outputs = [&x[..], &z[..]].concat();
    let graph = g.finish(&outputs);
    let inputs: Vec<Tensor> =
        shapes.iter().chain(&shapes).map(|s| Tensor::randn(s.sizes(), tch::kind::FLOAT_CPU)).collect();
    let ordered: Vec<&Tensor> = [0, 3, 1, 4, 2, 5].iter().map(|&i| &inputs[i]).collect();
    let run = |fusion| {
        let rig = Rig::with(config(fusion), graph.clone());
        let told = rig.run(&ordered);
        ((0..outputs.len()).map(|i| told.tensor(i)).collect::<Vec<_>>(), rig)
    };
    let ((fused, rig), (unfused, _)) = (run(true), run(false));
    fused.iter().zip(&unfused).for_each(|(f, u)| assert_same(f, u));
    // Two of the three have equal sizes and are small: they share a kernel.
    assert_eq!((rig.stats().kernels, rig.program.program().fused_nodes()), (2, 9));
}
