//! The device has no name in `tch` before it has one, and none where libtorch has a device of that name.

use ltc_torch::{DEVICE, Error};
use tch::{Device, Kind, Tensor};

/// One test, since what it checks is the process's.
#[test]
fn the_name_is_left_to_a_libtorch_that_has_such_devices() {
    let zeros = || Tensor::f_zeros([2], (Kind::Float, DEVICE));
    assert!(zeros().is_err() && !ltc_torch_sys::has_mps(), "a device that is not there");

    // A guard for MPS is what a libtorch with MPS devices has.
    ltc_torch_sys::name_mps().unwrap();
    assert!(ltc_torch_sys::has_mps());
    let refused = ltc_torch::init().unwrap_err();
    assert!(matches!(refused, Error::DeviceTaken), "{refused}");
    assert!(refused.to_string().contains("`tch_device`") && refused.to_string().contains("to_lazy"), "{refused}");
    assert!(ltc_torch_sys::name_mps().unwrap_err().message.contains("has mps devices"));

    // Without the name the device is there.
    ltc_torch::init_telling(|_| (), |options| options.tch_device = false).unwrap();
    let lazy = ltc_torch::to_lazy(&Tensor::ones([2], (Kind::Float, Device::Cpu))).unwrap();
    assert!(ltc_torch::is_lazy(&lazy));
    assert_eq!(lazy.sum(Kind::Float).double_value(&[]), 2.0);
}
