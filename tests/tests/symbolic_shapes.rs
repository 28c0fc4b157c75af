//! One compiled program serves many sizes, over libtorch's kernels: models of `tch` and native ones, batches 1 to 16,
//! and random programs at several sizes. Values are eager's, bit for bit.

#[path = "../../ltc-core/tests/models/mod.rs"]
mod models;

use std::sync::Arc;

use ltc_backend::{Backend, DeviceIndex, Executable};
use ltc_core::{Config, Session};
use ltc_ir::{Graph, Symbolic, symbolic};
use ltc_tests::{
    alone, cases,
    compare::same_values,
    program::{Program, Step},
    run::agree,
    seed, strategy,
    subject::Lazy,
    training::{conv, mlp},
};
use ltc_torch::Event;
use ltc_ts::{Fusion, TsBackend, TsConfig};
use models::{Model, train};
use proptest::prelude::*;
use tch::{
    Device, Kind, Tensor,
    nn::{self, ModuleT, OptimizerConfig},
};

/// Embedding, causal attention, layer norm.
fn transformer(p: &nn::Path<'_>) -> nn::SequentialT {
    let table = nn::embedding(p / "e", 20, 16, Default::default());
    let project = nn::linear(p / "p", 16, 48, Default::default());
    let combine = nn::linear(p / "c", 16, 16, Default::default());
    let norm = nn::layer_norm(p / "n", vec![16], Default::default());
    let output = nn::linear(p / "o", 16, 5, Default::default());
    nn::seq_t().add_fn_t(move |x, _| {
        let tokens = x.abs().clamp(0.0, 1.0) * 19.0;
        let x = tokens.to_kind(Kind::Int64).apply(&table);
        let (batch, length) = (x.size()[0], x.size()[1]);
        let split = |t: &Tensor| t.view([batch, length, 2, 8]).transpose(1, 2);
        let parts = x.apply(&project).chunk(3, -1);
        let scores = split(&parts[0]).matmul(&split(&parts[1]).transpose(-2, -1)) / 8f64.sqrt();
        // Made from a tensor, because `tch` cannot name the device.
        let later = scores.ones_like().triu(1).to_kind(Kind::Bool);
        let weights = scores.masked_fill(&later, f64::NEG_INFINITY).softmax(-1, Kind::Float);
        let y = weights.matmul(&split(&parts[2])).transpose(1, 2).reshape([batch, length, 16]);
        (x + y.apply(&combine)).apply(&norm).mean_dim(1, false, Kind::Float).apply(&output)
    })
}

/// Losses and parameters of one step per batch size.
fn steps(model: fn(&nn::Path<'_>) -> nn::SequentialT, lazy: bool) -> Vec<Tensor> {
    tch::manual_seed(5);
    let mut vs = nn::VarStore::new(Device::Cpu);
    let net = model(&vs.root());
    let x = Tensor::randn([16, 20], (Kind::Float, Device::Cpu));
    let y = Tensor::randint(5, [16], (Kind::Int64, Device::Cpu));
    let put = |t: Tensor| if lazy { ltc_torch::to_lazy(&t).expect("to the device") } else { t };
    tch::manual_seed(9);
    if lazy {
        ltc_torch::manual_seed(9).expect("seed");
        ltc_torch::lazify(&mut vs).expect("variables move");
    }
    let mut opt = nn::Adam::default().build(&vs, 1e-2).expect("an optimiser");
    let mut values = Vec::new();
    for size in 1..=16 {
        let (x, y) = (put(x.narrow(0, 0, size).contiguous()), put(y.narrow(0, 0, size).contiguous()));
        let loss = net.forward_t(&x, true).cross_entropy_for_logits(&y);
        opt.backward_step(&loss);
        values.push(ltc_torch::to_cpu(&loss.detach()).expect("a loss"));
    }
    let mut parameters: Vec<_> = vs.variables().into_iter().collect();
    parameters.sort_by(|a, b| a.0.cmp(&b.0));
    values.extend(parameters.iter().map(|(_, t)| ltc_torch::to_cpu(&t.detach()).expect("a value")));
    values
}

#[test]
fn models_of_tch_compile_at_most_twice() {
    let _alone = alone();
    Lazy::new();
    type Build = fn(&nn::Path<'_>) -> nn::SequentialT;
    let models: [(&str, Build); 3] = [("conv", conv), ("mlp", mlp), ("transformer", transformer)];
    for (name, model) in models {
        // Moving the variables is no step.
        ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("nothing pending");
        ltc_torch::record_events(true).expect("events");
        let lazy = steps(model, true);
        let events = ltc_torch::take_events().expect("events");
        ltc_torch::record_events(false).expect("events");
        let eager = steps(model, false);
        for (i, (a, b)) in eager.iter().zip(&lazy).enumerate() {
            same_values(a, b).unwrap_or_else(|e| panic!("{name}: value {i}: {e}"));
        }
        let told: Vec<String> = events.iter().map(Event::to_string).collect();
        let compiles = told.iter().filter(|e| e.starts_with("compile")).count();
        let respecialised = told.iter().filter(|e| *e == "respecialise").count();
        assert!(compiles <= 2 && compiles + respecialised >= 16, "{name}: {told:?}");
    }
}

fn native(symbolic: bool, fusion: Fusion) -> Session {
    let mut config = Config::default();
    config.symbolic = symbolic;
    let backend = TsBackend::with_config(TsConfig { fusion, ..TsConfig::default() });
    Session::new(Arc::new(backend), config).expect("a session")
}

#[test]
fn native_models_compile_at_most_twice() -> Result<(), ltc_core::Error> {
    let sizes: Vec<i64> = (1..=16).collect();
    for model in [Model::Convnet, Model::Transformer, Model::Lengths] {
        for fusion in [Fusion::Off, Fusion::Exact, Fusion::Full] {
            let (on, off) = (native(true, fusion), native(false, fusion));
            let (a, b) = (train(&on, model, &sizes)?, train(&off, model, &sizes)?);
            let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&a), bits(&b), "{model:?} {fusion:?}");
            let (m, plain) = (on.metrics(), off.metrics());
            assert!(m.compiles <= 2, "{model:?} {fusion:?}: {m}");
            assert!(
                m.respecialised >= 14 && plain.respecialised == 0 && plain.compiles >= 16,
                "{model:?} {fusion:?}: {m}{plain}"
            );
        }
    }
    Ok(())
}

/// The program with its sizes replaced; equal sizes stay equal.
fn sized(program: &Program, sizes: [i64; 3]) -> Program {
    let size = |&d: &i64| match d {
        2 => sizes[0],
        3 => sizes[1],
        5 => sizes[2],
        other => other,
    };
    let step = |s: &Step| match s {
        Step::New { kind, shape, fill } => {
            Step::New { kind: *kind, shape: shape.iter().map(size).collect(), fill: *fill }
        }
        other => other.clone(),
    };
    program.iter().map(step).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(20),
        failure_persistence: None,
        rng_seed: seed(),
        max_shrink_iters: 2000,
        ..Default::default()
    })]

    /// Each program at many sizes, each of which finds the programs of those before.
    #[test]
    fn random_programs_of_any_size_agree_with_eager(program in strategy::programs(24)) {
        let _alone = alone();
        let lazy = Lazy::new();
        for sizes in [
            [2, 3, 5], [4, 3, 5], [4, 6, 7], [3, 3, 3], [9, 2, 4], [1, 3, 5], [3, 1, 2], [2, 0, 5], [8, 12, 20],
        ] {
            let program = sized(&program, sizes);
            agree(&program, &lazy).map_err(|d| TestCaseError::fail(format!("{sizes:?}: {d}\n{program:?}")))?;
        }
    }
}

#[test]
fn random_programs_are_respecialised_at_all() {
    let _alone = alone();
    let lazy = Lazy::new();
    ltc_torch::reset_metrics().expect("metrics");
    let program = |n: i64| {
        let shape = |n| vec![n, 3];
        vec![
            Step::New { kind: Kind::Float, shape: shape(n), fill: 1 },
            Step::New { kind: Kind::Float, shape: shape(n), fill: 2 },
            Step::Binary("add", 0, 1),
            Step::Reduce("sum", 2, 0, false),
            Step::Mark,
        ]
    };
    for n in 2..9 {
        agree(&program(n), &lazy).unwrap_or_else(|d| panic!("{n}: {d}"));
    }
    let m = ltc_torch::metrics().expect("metrics");
    assert!(m.respecialised > 0 && m.respecialised > m.compiles, "{m}");
}

/// A respecialised program is the one a compiler would have made, where no decision depends on how large things are.
#[test]
fn a_respecialised_program_is_the_compiled_one() {
    let graph = |n: i64| -> Arc<Graph> {
        let text = format!(
            "graph(%p0: f32[{n}, 3], %p1: f32[3], %p2: f32[3, 4]) {{
               %0: f32[{n}, 3] = aten::add.Tensor(%p0, %p1, number i64)
               %1: f32[{n}, 3] = aten::mul.Tensor(%0, %p0)
               %2: f32[{n}, 4] = aten::mm(%1, %p2)
               %3: f32[4, {n}]{{1, 4}} = ltc::read_view(%2, int 0)
               %4: f32[4, {n}]{{1, 4}} = aten::neg(%3)
               return %1, %4 }}"
        );
        Graph::parse(&text).unwrap_or_else(|e| panic!("{e}")).into()
    };
    let backend = TsBackend::with_config(TsConfig { fusion: Fusion::Full, ..TsConfig::default() });
    let compile = |g: &Arc<Graph>| backend.compile(DeviceIndex(0), g).unwrap_or_else(|e| panic!("{e}"));
    let small = compile(&graph(4));
    let pair = [symbolic::integers(&graph(4)), symbolic::integers(&graph(6))];
    let s = Symbolic::generalize(&graph(4), &pair).expect("one symbol");
    let mut last: Arc<dyn Executable> = small;
    for n in [6, 17, 100, 2] {
        assert_eq!(s.instantiate(&[n]).as_ref(), Some(&*graph(n)));
        last = last.respecialised(&graph(n)).expect("the same steps").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(last.text(), compile(&graph(n)).text(), "{n}");
    }
}
