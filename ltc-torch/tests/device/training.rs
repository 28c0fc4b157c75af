//! A whole program that is given its device: layers, optimisers, files.

use std::{env, fs, io::Cursor, path::PathBuf};

use ltc_torch::DEVICE;
use tch::{
    Device, Kind, Tensor,
    nn::{self, ModuleT, Optimizer, OptimizerConfig, RNN},
};

use crate::{alone, assert_same};

type Net = Box<dyn Fn(&Tensor) -> Tensor>;

/// A network of 6 features to 5 classes.
type Model = fn(&nn::Path<'_>) -> Net;

fn layers(seq: nn::SequentialT) -> Net {
    Box::new(move |x| seq.forward_t(x, true))
}

fn mlp(p: &nn::Path<'_>) -> Net {
    layers(
        nn::seq_t()
            .add(nn::linear(p / "a", 6, 16, Default::default()))
            .add(nn::layer_norm(p / "n", vec![16], Default::default()))
            .add_fn(|x| x.relu())
            .add_fn_t(|x, train| x.dropout(0.2, train))
            .add(nn::linear(p / "b", 16, 5, Default::default())),
    )
}

fn conv(p: &nn::Path<'_>) -> Net {
    layers(
        nn::seq_t()
            .add_fn(|x| x.view([-1, 1, 2, 3]))
            // Batch norm takes any bias away, whose gradient is rounding errors only: Adam would make steps of them.
            .add(nn::conv2d(p / "c", 1, 4, 3, nn::ConvConfig { padding: 1, bias: false, ..Default::default() }))
            .add(nn::batch_norm2d(p / "n", 4, Default::default()))
            .add_fn(|x| x.relu().flatten(1, -1))
            .add(nn::linear(p / "f", 24, 5, Default::default())),
    )
}

fn lstm(p: &nn::Path<'_>) -> Net {
    let (lstm, head) = (nn::lstm(p / "l", 2, 8, Default::default()), nn::linear(p / "h", 8, 5, Default::default()));
    Box::new(move |x| lstm.seq(&x.view([-1, 3, 2])).0.select(1, -1).apply(&head))
}

fn gru(p: &nn::Path<'_>) -> Net {
    let (gru, head) = (nn::gru(p / "g", 2, 8, Default::default()), nn::linear(p / "h", 8, 5, Default::default()));
    Box::new(move |x| gru.seq(&x.view([-1, 3, 2])).0.select(1, -1).apply(&head))
}

fn embedding(p: &nn::Path<'_>) -> Net {
    let words = nn::embedding(p / "e", 10, 4, Default::default());
    // Made with the kind and the device of something else, as programs do.
    let scale = p.f_var("scale", &[1], nn::Init::Const(1.5)).unwrap();
    let head = nn::linear(p / "h", 24, 5, nn::LinearConfig { bias: false, ..Default::default() });
    Box::new(move |x| {
        let zeros = Tensor::zeros([1, 24], (x.kind(), x.device()));
        let word = (x.abs() * 3).to_kind(Kind::Int64).clamp(0, 9);
        (word.apply(&words).flatten(1, -1) * &scale + zeros).apply(&head)
    })
}

fn sgd(vs: &nn::VarStore) -> Optimizer {
    nn::Sgd { momentum: 0.9, dampening: 0.0, wd: 1e-4, nesterov: true }.build(vs, 0.05).unwrap()
}

fn adam(vs: &nn::VarStore) -> Optimizer {
    nn::Adam::default().build(vs, 1e-2).unwrap()
}

/// A batch drawn on the CPU.
fn batch(device: Device) -> (Tensor, Tensor) {
    tch::manual_seed(1);
    let x = Tensor::randn([12, 6], (Kind::Float, Device::Cpu));
    let y = Tensor::randint(5, [12], (Kind::Int64, Device::Cpu));
    (x.to_device(device), y.to_device(device))
}

/// Losses, then variables by name. Only the device differs from run to run.
fn train(model: Model, optimizer: fn(&nn::VarStore) -> Optimizer, device: Device) -> Vec<(String, Tensor)> {
    let (x, y) = batch(device);
    tch::manual_seed(2);
    let vs = nn::VarStore::new(device);
    let net = model(&vs.root());
    let mut optimizer = optimizer(&vs);
    let mut told = Vec::new();
    for step in 0..6 {
        let loss = net(&x).cross_entropy_for_logits(&y);
        optimizer.backward_step_clip(&loss, 0.5);
        told.push((format!("loss {step}"), loss.detach()));
    }
    let mut variables: Vec<_> = vs.variables().into_iter().collect();
    variables.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(variables.iter().all(|(_, v)| v.device() == device));
    told.extend(variables.into_iter().map(|(name, v)| (name, v.detach())));
    told
}

#[test]
fn training_on_the_device_gives_what_it_gives_on_the_cpu() {
    let _alone = alone();
    let models: [(&str, Model); 5] =
        [("mlp", mlp), ("conv", conv), ("lstm", lstm), ("gru", gru), ("embedding", embedding)];
    for (name, model) in models {
        for (which, optimizer) in [("sgd", sgd as fn(&nn::VarStore) -> Optimizer), ("adam", adam)] {
            let (eager, lazy) = (train(model, optimizer, Device::Cpu), train(model, optimizer, DEVICE));
            assert_eq!(eager.len(), lazy.len());
            for ((what, a), (_, b)) in eager.iter().zip(&lazy) {
                let b = b.to_device(Device::Cpu);
                assert!(a.allclose(&b, 1e-4, 1e-6, false), "{name}, {which}: {what}: {a} on the CPU, {b}");
            }
            let first = &lazy[0].1;
            assert!(lazy[5].1.double_value(&[]) < first.double_value(&[]), "{name}, {which}: nothing was learnt");
        }
    }
}

/// Every way to begin a variable, which draws on the device.
#[test]
fn variables_begin_as_they_begin_on_the_cpu() {
    use nn::Init;
    let _alone = alone();
    let ways = [
        Init::Const(0.0),
        Init::Const(1.0),
        Init::Const(0.5),
        Init::Uniform { lo: -1.0, up: 2.0 },
        Init::Randn { mean: 1.0, stdev: 2.0 },
        Init::Randn { mean: 0.0, stdev: 1.0 },
        nn::init::DEFAULT_KAIMING_UNIFORM,
        nn::init::DEFAULT_KAIMING_NORMAL,
        Init::Orthogonal { gain: 2.0 },
    ];
    for way in ways {
        let begun = |device| {
            tch::manual_seed(4);
            nn::VarStore::new(device).root().var("v", &[5, 4], way)
        };
        let (eager, lazy) = (begun(Device::Cpu), begun(DEVICE));
        assert!(lazy.requires_grad() && lazy.is_leaf() && lazy.device() == DEVICE);
        assert_same(&format!("{way:?}"), &eager, &lazy);
    }
}

/// Removed when dropped.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        File(env::temp_dir().join(format!("ltc-device-{}-{name}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A store with the variables of the model, drawn from the seed.
fn store(device: Device, seed: i64) -> (nn::VarStore, Net) {
    tch::manual_seed(seed);
    let vs = nn::VarStore::new(device);
    let net = conv(&vs.root());
    (vs, net)
}

fn assert_equal_stores(what: &str, a: &nn::VarStore, b: &nn::VarStore) {
    let b = b.variables();
    for (name, variable) in a.variables() {
        assert_same(&format!("{what}: {name}"), &variable.to_device(Device::Cpu), &b[&name]);
    }
}

#[test]
fn stores_are_saved_and_loaded() {
    let _alone = alone();
    let (saved, _) = store(DEVICE, 1);
    for format in ["store.ot", "store.safetensors"] {
        let file = File::new(format);
        saved.save(&file.0).unwrap();
        for (from, device) in [("the device", DEVICE), ("the CPU", Device::Cpu)] {
            let (mut loaded, _) = store(device, 2);
            loaded.load(&file.0).unwrap();
            assert_eq!(loaded.device(), device);
            assert!(loaded.variables().values().all(|v| v.device() == device && v.is_leaf()));
            assert_equal_stores(&format!("{format} on {from}"), &saved, &loaded);
            let (mut some, _) = store(device, 3);
            assert_eq!(some.load_partial(&file.0).unwrap(), [""; 0]);
            assert_equal_stores(&format!("part of {format} on {from}"), &saved, &some);
        }
    }
    let mut stream = Vec::new();
    saved.save_to_stream(&mut stream).unwrap();
    let (mut loaded, _) = store(DEVICE, 2);
    loaded.load_from_stream(Cursor::new(stream)).unwrap();
    assert_equal_stores("a stream", &saved, &loaded);
}

#[test]
fn a_store_that_was_loaded_goes_on_training() {
    let _alone = alone();
    let file = File::new("resume.ot");
    store(Device::Cpu, 1).0.save(&file.0).unwrap();
    let run = |device| {
        let (x, y) = batch(device);
        let (mut vs, net) = store(device, 2);
        let mut optimizer = adam(&vs);
        optimizer.backward_step(&net(&x).cross_entropy_for_logits(&y));
        vs.load(&file.0).unwrap();
        optimizer.backward_step(&net(&x).cross_entropy_for_logits(&y));
        assert!(vs.trainable_variables().iter().all(|v| v.grad().device() == device));
        vs
    };
    let (eager, lazy) = (run(Device::Cpu), run(DEVICE));
    let lazy = lazy.variables();
    for (name, v) in eager.variables() {
        assert!(v.allclose(&lazy[&name].to_device(Device::Cpu), 1e-4, 1e-6, false), "{name}");
    }
}

#[test]
fn stores_are_copied_moved_and_frozen() {
    let _alone = alone();
    let (source, _) = store(Device::Cpu, 1);
    let (mut there, net) = store(DEVICE, 2);
    there.copy(&source).unwrap();
    assert_equal_stores("a copy", &source, &there);
    let (x, y) = batch(DEVICE);
    there.freeze();
    assert!(!net(&x).requires_grad());
    there.unfreeze();
    net(&x).cross_entropy_for_logits(&y).backward();
    // A store that begins on the CPU, and layers made of it, move as `lazify` moves them.
    let (mut moved, net) = store(Device::Cpu, 1);
    moved.set_device(DEVICE);
    assert!(moved.variables().values().all(ltc_torch::is_lazy));
    assert_equal_stores("a move", &source, &moved);
    let mut optimizer = sgd(&moved);
    optimizer.backward_step(&net(&x).cross_entropy_for_logits(&y));
    moved.set_device(Device::Cpu);
    assert!(moved.variables().values().all(|v| v.device() == Device::Cpu));
    moved.half();
    moved.set_device(DEVICE);
    assert!(moved.variables().values().all(|v| v.device() == DEVICE));
}
