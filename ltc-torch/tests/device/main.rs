//! A program of `tch` that is given `ltc_torch::DEVICE` where it was given another device.

mod errors;
mod moves;
mod training;

use std::sync::OnceLock;

use ltc_torch::{DEVICE, Place};
use parking_lot::{Mutex, MutexGuard};
use tch::{Device, Kind, Tensor};

/// Seeds are the process's, so that tests which draw take turns. There are two devices, of which `DEVICE` is the first.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    static INIT: OnceLock<()> = OnceLock::new();
    let guard = ONE.lock();
    INIT.get_or_init(|| {
        ltc_torch::init_telling(|_| (), |options| options.places = vec![Place::Cpu; 2]).expect("the device registers")
    });
    guard
}

/// Same kind, shape and bits, once both are on the CPU.
fn assert_same(what: &str, eager: &Tensor, lazy: &Tensor) {
    let lazy = lazy.to_device(Device::Cpu);
    assert_eq!((eager.kind(), eager.size()), (lazy.kind(), lazy.size()), "{what}");
    assert!(eager.allclose(&lazy, 0.0, 0.0, true), "{what}: {eager} on the CPU, {lazy} on the device");
}

type Factory = fn((Kind, Device)) -> Tensor;

const FACTORIES: &[(&str, Kind, Factory)] = &[
    ("zeros", Kind::Float, |o| Tensor::zeros([2, 3], o)),
    ("zeros of numbers", Kind::Int64, |o| Tensor::zeros([2, 3], o)),
    ("ones", Kind::Double, |o| Tensor::ones([2, 3], o)),
    ("full", Kind::Half, |o| Tensor::full([2, 3], 1.5, o)),
    ("empty", Kind::Float, |o| Tensor::empty([2, 3], o).fill_(2)),
    ("empty_strided", Kind::Float, |o| Tensor::empty_strided([2, 3], [1, 2], o).fill_(2)),
    ("empty of none", Kind::Float, |o| Tensor::empty([0], o)),
    ("scalar_tensor", Kind::Float, |o| Tensor::scalar_tensor(3, o)),
    ("eye", Kind::Float, |o| Tensor::eye(3, o)),
    ("arange", Kind::Int64, |o| Tensor::arange(7, o)),
    ("arange_start_step", Kind::Float, |o| Tensor::arange_start_step(1.0, 3.0, 0.5, o)),
    ("linspace", Kind::Float, |o| Tensor::linspace(0, 1, 5, o)),
    ("logspace", Kind::Double, |o| Tensor::logspace(0, 1, 5, 2.0, o)),
    ("tril_indices", Kind::Int64, |o| Tensor::tril_indices(3, 4, 0, o)),
    ("triu_indices", Kind::Int64, |o| Tensor::triu_indices(3, 4, 1, o)),
    ("hann_window", Kind::Float, |o| Tensor::hann_window(6, o)),
    ("kaiser_window", Kind::Float, |o| Tensor::kaiser_window(6, o)),
    ("fft_fftfreq", Kind::Float, |o| Tensor::fft_fftfreq(6, 0.5, o)),
    ("rand", Kind::Float, |o| Tensor::rand([40], o)),
    ("randn", Kind::Double, |o| Tensor::randn([40], o)),
    ("randint", Kind::Int64, |o| Tensor::randint(9, [40], o)),
    ("randint_low", Kind::Int64, |o| Tensor::randint_low(-9, 9, [40], o)),
    ("randperm", Kind::Int64, |o| Tensor::randperm(40, o)),
];

#[test]
fn every_factory_makes_what_it_makes_on_the_cpu() {
    let _alone = alone();
    for (name, kind, make) in FACTORIES {
        tch::manual_seed(3);
        let eager = make((*kind, Device::Cpu));
        tch::manual_seed(3);
        let lazy = make((*kind, DEVICE));
        assert_eq!((lazy.device(), ltc_torch::device_of(&lazy)), (DEVICE, Some(0)), "{name}");
        assert_eq!(eager.stride(), lazy.stride(), "{name}");
        assert_same(name, &eager, &lazy);
    }
}

#[test]
fn what_factories_make_is_recorded() {
    let _alone = alone();
    ltc_torch::sync().unwrap();
    let before = ltc_torch::pending_count().unwrap();
    let made: Vec<Tensor> = (0..3).map(|_| Tensor::ones([4], (Kind::Float, DEVICE)) + 1).collect();
    assert!(ltc_torch::pending_count().unwrap() >= before + 3);
    assert_eq!(Vec::<f32>::try_from(&made[2]).unwrap(), [2.0; 4]);
}

#[test]
fn factories_that_follow_a_tensor_take_the_device_too() {
    let _alone = alone();
    let cpu = Tensor::arange(6, (Kind::Float, Device::Cpu)).view([2, 3]);
    let lazy = cpu.to_device(DEVICE);
    for x in [&cpu, &lazy] {
        for y in [
            x.new_zeros([3], (Kind::Float, DEVICE)),
            x.new_ones([3], (Kind::Int64, DEVICE)),
            x.new_full([3], 2, (Kind::Float, DEVICE)),
            x.new_empty([3], (Kind::Float, DEVICE)).fill_(1),
            x.new_empty_strided([3], [1], (Kind::Float, DEVICE)).fill_(1),
        ] {
            assert_eq!((y.device(), ltc_torch::device_of(&y)), (DEVICE, Some(0)));
            assert_eq!(y.size(), [3]);
        }
    }
    for y in [lazy.zeros_like(), lazy.ones_like(), lazy.rand_like(), lazy.empty_like()] {
        assert_eq!((y.device(), ltc_torch::device_of(&y), y.size()), (DEVICE, Some(0), vec![2, 3]));
    }
}
