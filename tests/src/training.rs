//! Training with libtorch's own layers and optimisers, eagerly and lazily.

use ltc_torch::Event;
use tch::{
    Device, Kind, Tensor,
    nn::{self, ModuleT, Optimizer, OptimizerConfig},
};

use crate::{alone, subject::Lazy};

/// Linear layers, layer norm, dropout.
pub fn mlp(p: &nn::Path<'_>) -> nn::SequentialT {
    nn::seq_t()
        .add(nn::linear(p / "a", 20, 32, Default::default()))
        .add_fn(|x| x.relu())
        .add(nn::layer_norm(p / "n", vec![32], Default::default()))
        .add_fn_t(|x, train| x.dropout(0.2, train))
        .add(nn::linear(p / "b", 32, 5, Default::default()))
}

/// Convolution, batch norm, pooling, GELU.
pub fn conv(p: &nn::Path<'_>) -> nn::SequentialT {
    nn::seq_t()
        .add_fn(|x| x.view([-1, 1, 4, 5]))
        .add(nn::conv2d(p / "c", 1, 8, 3, nn::ConvConfig { padding: 1, ..Default::default() }))
        .add(nn::batch_norm2d(p / "n", 8, Default::default()))
        .add_fn(|x| x.relu().max_pool2d_default(2).adaptive_avg_pool2d([1, 2]).flatten(1, -1).gelu("none"))
        .add(nn::linear(p / "f", 16, 5, Default::default()))
}

fn optimizer(which: &str, vs: &nn::VarStore) -> Optimizer {
    match which {
        "sgd" => nn::Sgd { momentum: 0.9, dampening: 0.0, wd: 1e-4, nesterov: true }.build(vs, 0.05),
        "adam" => nn::Adam::default().build(vs, 1e-2),
        "adamw" => nn::AdamW::default().build(vs, 1e-2),
        _ => nn::RmsProp::default().build(vs, 1e-3),
    }
    .expect("an optimiser")
}

struct Run {
    losses: Vec<Tensor>,
    parameters: Vec<(String, Tensor)>,
    /// Events of each step.
    events: Vec<Vec<Event>>,
    /// Bytes in device buffers after each step.
    memory: Vec<usize>,
}

const STEPS: usize = 12;

fn train(model: fn(&nn::Path<'_>) -> nn::SequentialT, which: &str, lazy: bool) -> Run {
    tch::manual_seed(5);
    let mut vs = nn::VarStore::new(Device::Cpu);
    let net = model(&vs.root());
    let x = Tensor::randn([16, 20], (Kind::Float, Device::Cpu));
    let y = Tensor::randint(5, [16], (Kind::Int64, Device::Cpu));
    tch::manual_seed(9);
    let put = |t: &Tensor| if lazy { ltc_torch::to_lazy(t).expect("to the device") } else { t.shallow_clone() };
    if lazy {
        ltc_torch::manual_seed(9).expect("seed");
        ltc_torch::lazify(&mut vs).expect("variables move");
    }
    let mut opt = optimizer(which, &vs);
    let (x, y) = (put(&x), put(&y));
    let mut run = Run { losses: vec![], parameters: vec![], events: vec![], memory: vec![] };
    for step in 0..STEPS {
        opt.set_lr(0.01 / (1.0 + step as f64));
        let loss = net.forward_t(&x, true).cross_entropy_for_logits(&y);
        opt.backward_step(&loss);
        let loss = loss.detach();
        if lazy {
            ltc_torch::sync().and_then(|()| ltc_torch::wait()).expect("the step runs");
            run.events.push(ltc_torch::take_events().expect("events"));
            run.memory.push(ltc_torch::memory(0).expect("memory").used);
            run.losses.push(ltc_torch::to_cpu(&loss).expect("a loss"));
            drop(ltc_torch::take_events());
        } else {
            run.losses.push(loss);
        }
    }
    run.parameters =
        vs.variables().into_iter().map(|(n, t)| (n, ltc_torch::to_cpu(&t.detach()).expect("a value"))).collect();
    run.parameters.sort_by(|a, b| a.0.cmp(&b.0));
    run
}

/// Trains both ways and compares losses and parameters with `same`, which gets their names; after the third step a lazy
/// step is one execution, compiles nothing, falls back nowhere and holds as much memory as the one before.
///
/// # Panics
/// Where they differ.
pub fn check(
    model: fn(&nn::Path<'_>) -> nn::SequentialT,
    which: &str,
    same: impl Fn(&str, &Tensor, &Tensor) -> Result<(), String>,
) {
    let _alone = alone();
    Lazy::new();
    ltc_torch::reset_metrics().expect("metrics");
    ltc_torch::record_events(true).expect("events");
    let lazy = train(model, which, true);
    let fallbacks = ltc_torch::metrics().expect("metrics").fallbacks;
    ltc_torch::record_events(false).expect("events");
    let eager = train(model, which, false);
    for (step, (a, b)) in eager.losses.iter().zip(&lazy.losses).enumerate() {
        same("loss", a, b).unwrap_or_else(|e| panic!("{which}: loss of step {step}: {e}"));
    }
    for ((name, a), (_, b)) in eager.parameters.iter().zip(&lazy.parameters) {
        same(name, a, b).unwrap_or_else(|e| panic!("{which}: {name}: {e}"));
    }
    assert!(fallbacks.is_empty(), "{which}: {fallbacks:?}");
    for (step, events) in lazy.events.iter().enumerate().skip(3) {
        let compiles = events.iter().filter(|e| matches!(e, Event::Compile { .. })).count();
        let executions = events.iter().filter(|e| matches!(e, Event::Execute { .. })).count();
        assert_eq!((compiles, executions), (0, 1), "{which}: step {step}: {events:?}");
    }
    assert!(lazy.memory[4..].windows(2).all(|w| w[0] == w[1]), "{which}: {:?}", lazy.memory);
}
