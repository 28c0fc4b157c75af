//! To the device, from it, and where tensors are.

use ltc_torch::DEVICE;
use tch::{Device, IndexOp, Kind, Tensor, data::Iter2};

use crate::{alone, assert_same};

#[test]
fn tensors_go_to_the_device_and_back() {
    let _alone = alone();
    let host = Tensor::from_slice(&[1.0f32, -2.0, 3.0]);
    let lazy = host.to_device(DEVICE);
    assert_eq!((lazy.device(), ltc_torch::device_of(&lazy)), (DEVICE, Some(0)));
    assert_eq!((host.device(), lazy.to_device(Device::Cpu).device()), (Device::Cpu, Device::Cpu));
    assert_same("a copy", &host, &lazy);
    assert_eq!(Vec::<f32>::try_from(&lazy).unwrap(), [1.0, -2.0, 3.0]);
    let wide = host.to_device_(DEVICE, Kind::Double, false, false);
    assert_eq!((wide.kind(), wide.device()), (Kind::Double, DEVICE));
    assert_same("another kind", &host.to_kind(Kind::Double), &wide);
    let strided = Tensor::arange(6, (Kind::Float, Device::Cpu)).view([2, 3]).tr();
    assert_eq!(strided.to_device(DEVICE).stride(), strided.stride());
}

#[test]
fn a_tensor_that_is_there_stays_what_it_is() {
    let _alone = alone();
    let lazy = Tensor::zeros([3], (Kind::Float, DEVICE));
    let mut same = lazy.to_device(DEVICE);
    let _ = same.fill_(4);
    assert_eq!(Vec::<f32>::try_from(&lazy).unwrap(), [4.0; 3]);
    // The name is that of the first device, so that tensors of another one are copied, as CUDA's are.
    let second = ltc_torch::to_device(&lazy, 1).unwrap();
    assert_eq!((second.device(), ltc_torch::device_of(&second)), (DEVICE, Some(1)));
    let moved = second.to_device(DEVICE);
    assert_eq!(ltc_torch::device_of(&moved), Some(0));
    assert_same("a copy between devices", &Tensor::full([3], 4, (Kind::Float, Device::Cpu)), &moved);
}

#[test]
fn gradients_go_back_the_way_the_tensors_came() {
    let _alone = alone();
    let leaf = Tensor::from_slice(&[1.0f32, 2.0]).set_requires_grad(true);
    leaf.to_device(DEVICE).square().sum(Kind::Float).backward();
    assert_eq!(leaf.grad().device(), Device::Cpu);
    assert_eq!(Vec::<f32>::try_from(leaf.grad()).unwrap(), [2.0, 4.0]);
    let there = Tensor::ones([2], (Kind::Float, DEVICE)).set_requires_grad(true);
    (there.to_device(Device::Cpu) * 3).sum(Kind::Float).backward();
    assert_eq!(there.grad().device(), DEVICE);
    assert_eq!(Vec::<f32>::try_from(there.grad()).unwrap(), [3.0; 2]);
}

#[test]
fn functions_of_tch_that_ask_for_the_device_find_it() {
    let _alone = alone();
    let host = Tensor::arange(12, (Kind::Int64, Device::Cpu)).view([4, 3]);
    let lazy = host.to_device(DEVICE);
    assert_eq!(lazy.onehot(12).device(), DEVICE);
    assert_same("onehot", &host.onehot(12), &lazy.onehot(12));
    let rows = Tensor::from_slice(&[2i64, 0]);
    assert_same("an index on the CPU", &host.i(&rows), &lazy.i(&rows));
    tch::manual_seed(1);
    let (x, y) = Tensor::random_batch2(&host, &host, 3);
    tch::manual_seed(1);
    let (a, b) = Tensor::random_batch2(&lazy, &lazy, 3);
    assert_same("a random batch", &x, &a);
    assert_same("its labels", &y, &b);
    assert_eq!(format!("{host}"), format!("{lazy}"));
}

#[test]
fn iterators_put_their_batches_there() {
    let _alone = alone();
    let xs = Tensor::arange(20, (Kind::Float, Device::Cpu)).view([10, 2]);
    let ys = Tensor::arange(10, (Kind::Int64, Device::Cpu));
    let batches = |iter: &mut Iter2| iter.collect::<Vec<_>>();
    tch::manual_seed(2);
    let eager = batches(Iter2::new(&xs, &ys, 4).shuffle().return_smaller_last_batch());
    // Data of the host, shuffled there, and data of the device, shuffled there.
    tch::manual_seed(2);
    let moved = batches(Iter2::new(&xs, &ys, 4).shuffle().to_device(DEVICE).return_smaller_last_batch());
    tch::manual_seed(2);
    let (there_x, there_y) = (xs.to_device(DEVICE), ys.to_device(DEVICE));
    let there = batches(Iter2::new(&there_x, &there_y, 4).to_device(DEVICE).shuffle().return_smaller_last_batch());
    assert_eq!((eager.len(), moved.len(), there.len()), (3, 3, 3));
    for (name, lazy) in [("moved", &moved), ("there", &there)] {
        for ((x, y), (a, b)) in eager.iter().zip(lazy) {
            assert_eq!((a.device(), b.device()), (DEVICE, DEVICE), "{name}");
            assert_same(name, x, a);
            assert_same(name, y, b);
        }
    }
}
