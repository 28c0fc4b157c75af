//! What cannot be done says so.

use ltc_torch::DEVICE;
use tch::{Device, Kind, TchError, Tensor};

use crate::alone;

fn words(result: Result<Tensor, TchError>) -> String {
    match result {
        Ok(t) => panic!("no error, but {t:?}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn unsupported_use_is_an_error() {
    let _alone = alone();
    let host = Tensor::ones([2, 2], (Kind::Float, Device::Cpu));
    let lazy = host.to_device(DEVICE);
    let cases = [
        ("negative", words(Tensor::f_zeros([-1], (Kind::Float, DEVICE)))),
        ("tensors are supported", words(Tensor::f_zeros([2], (Kind::QInt8, DEVICE)))),
        ("same device", words(lazy.f_matmul(&host))),
        ("same dtype", words(lazy.f_matmul(&lazy.to_kind(Kind::Double)))),
    ];
    for (expected, error) in cases {
        assert!(error.contains(expected), "{error}");
    }
    // The device is as usable as before.
    assert_eq!(lazy.sum(Kind::Float).double_value(&[]), 4.0);
}
