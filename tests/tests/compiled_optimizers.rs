//! Optimisers of `tch` within compiled steps, with another learning rate at each call: what they leave is what they
//! leave on the CPU. Numbers that only the optimiser counts make a step be recorded, and it says so.

use ltc_tests::{alone, subject::Lazy};
use ltc_torch::{to_cpu, to_lazy};
use tch::{
    Device, Kind, Tensor,
    nn::{self, Module, OptimizerConfig},
};

const CALLS: usize = 16;

/// A small network and its optimiser, which begin equal on each device.
struct Training {
    store: nn::VarStore,
    net: nn::Sequential,
    optimizer: nn::Optimizer,
}

impl Training {
    fn new<C: OptimizerConfig>(config: C, lazy: bool) -> Training {
        tch::manual_seed(4);
        let mut store = nn::VarStore::new(Device::Cpu);
        let root = store.root();
        let net = nn::seq()
            .add(nn::linear(&root / "first", 3, 5, nn::LinearConfig::default()))
            .add_fn(Tensor::tanh)
            .add(nn::linear(&root / "last", 5, 1, nn::LinearConfig::default()));
        if lazy {
            ltc_torch::lazify(&mut store).expect("a store on the device");
        }
        let optimizer = config.build(&store, 0.1).expect("an optimizer");
        Training { store, net, optimizer }
    }

    fn step(&mut self, x: &Tensor, rate: f64) -> Tensor {
        self.optimizer.set_lr(rate);
        let loss = self.net.forward(x).square().mean(Kind::Float);
        self.optimizer.backward_step(&loss);
        loss.detach()
    }

    /// All parameters, one after the other.
    fn parameters(&self) -> Vec<f32> {
        let mut variables: Vec<_> = self.store.variables().into_iter().collect();
        variables.sort_by(|a, b| a.0.cmp(&b.0));
        let of = |t: &Tensor| Vec::<f32>::try_from(to_cpu(&t.detach()).expect("a value").flatten(0, -1));
        variables.iter().flat_map(|(_, t)| of(t).expect("numbers")).collect()
    }
}

/// Trains on the device, compiled, and on the CPU; returns how many calls were replayed, and the refusal.
fn agree<C: OptimizerConfig + Copy>(config: C) -> (u64, String) {
    let _alone = alone();
    let _ = Lazy::new();
    let (mut lazy, mut plain) = (Training::new(config, true), Training::new(config, false));
    let mut losses = Vec::new();
    let (replayed, refusal) = {
        let mut step = ltc_torch::compile(|x: &[Tensor], numbers: &[f64]| vec![lazy.step(&x[0], numbers[0])]);
        for k in 0..CALLS {
            let x = Tensor::arange(12, (Kind::Float, Device::Cpu)).view([4, 3]) / (10.0 + k as f64);
            let rate = if k == 9 { 0.0 } else { 0.1 / (k + 1) as f64 };
            let results = step.call(&[to_lazy(&x).expect("to the device")], &[rate]).expect("a step");
            losses
                .push((to_cpu(&results[0]).expect("a loss").double_value(&[]), plain.step(&x, rate).double_value(&[])));
        }
        (step.counts().0, step.refusal().map(ToString::to_string).unwrap_or_default())
    };
    for (k, (a, b)) in losses.iter().enumerate() {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1e-3), "loss {k}: {a}, on the CPU {b}; {refusal}");
    }
    for (a, b) in lazy.parameters().iter().zip(plain.parameters()) {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1e-2), "{a}, on the CPU {b}; {refusal}");
    }
    (replayed, refusal)
}

#[test]
fn sgd_replays_with_another_rate_at_each_call() {
    let (replayed, why) = agree(nn::Sgd::default());
    // The call with the rate 0 is recorded, and so is the next one, which finds other gradients.
    assert!(replayed >= 11, "{replayed} replayed; {why}");
    let (replayed, why) = agree(nn::Sgd { momentum: 0.9, wd: 0.01, ..nn::Sgd::default() });
    assert!(replayed >= 10, "{replayed} replayed; {why}");
}

#[test]
fn rms_prop_replays_with_another_rate_at_each_call() {
    let (replayed, why) = agree(nn::RmsProp::default());
    assert!(replayed >= 10, "{replayed} replayed; {why}");
}

#[test]
fn adam_is_as_on_the_cpu_and_says_why_it_is_recorded() {
    for (replayed, why) in [agree(nn::Adam::default()), agree(nn::AdamW::default())] {
        assert_eq!(replayed, 0, "{why}");
        assert!(why.contains("a step count or a learning rate that the host computes"), "{why}");
    }
}
