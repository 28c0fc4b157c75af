//! Calls that write into a given tensor (`out=`) are fused where kernels write what libtorch's write.

mod common;

use common::*;
use ltc_ir::{ArgFlags, ArgWriter, DType, Layout, LayoutRef};
use ltc_ts::{Fusion, Jit, RunStats, TsConfig};
use tch::{Kind, Tensor};

fn config() -> TsConfig {
    TsConfig { fusion: Fusion::Full, jit: Jit::Now, ..TsConfig::default() }
}

/// Of `mul(x, y, out=z)` and what is computed from it, with `z` of another dtype.
#[test]
fn calls_that_write_into_a_given_tensor_are_fused() {
    for (dtype, kind) in [(DType::F32, Kind::Float), (DType::F64, Kind::Double), (DType::F16, Kind::Half)] {
        let mut g = G::default();
        let (shape, out) = (f32s(&[33]), LayoutRef::from(Layout::contiguous(dtype, &[33])));
        let (p, q) = (g.param(&shape), g.param(&shape));
        let fresh = ArgFlags::MUT.and(ArgFlags::FRESH);
        let args = ArgWriter::new().tensor().tensor().tensor_with(fresh).clone();
        let x = g.call("aten::mul.out", &args, &[p, q], std::slice::from_ref(&out))[0];
        let y = g.relu(x, &out);
        let rig = Rig::with(config(), g.finish(&[x, y]));
        let (a, b) = (Tensor::randn([33], tch::kind::FLOAT_CPU), Tensor::randn([33], tch::kind::FLOAT_CPU));
        let written = Tensor::zeros([33], (kind, tch::Device::Cpu));
        let told = rig.run(&[&a, &b]);
        let RunStats { runs, steps, kernels, .. } = rig.stats();
        assert_eq!((runs, steps, kernels), (1, 1, 1));
        let _ = a.f_mul_out(&written, &b).unwrap();
        assert_same(&told.tensor(0), &written);
        assert_same(&told.tensor(1), &written.relu());
    }
}

/// What is computed in halves or in whole numbers is rounded or wrapped before it is written into a wider tensor.
#[test]
fn calls_that_write_into_a_wider_tensor_are_libtorchs() {
    let wider = [
        (DType::F16, Kind::Half, DType::F32, Kind::Float),
        (DType::BF16, Kind::BFloat16, DType::F32, Kind::Float),
        (DType::U8, Kind::Uint8, DType::I64, Kind::Int64),
        (DType::I32, Kind::Int, DType::F32, Kind::Float),
    ];
    for (dtype, kind, out, out_kind) in wider {
        let mut g = G::default();
        let [shape, out] = [dtype, out].map(|dtype| LayoutRef::from(Layout::contiguous(dtype, &[33])));
        let (p, q, given) = (g.param(&shape), g.param(&shape), g.param(&out));
        let args = ArgWriter::new().tensor().tensor().tensor_with(ArgFlags::MUT).clone();
        let x = g.call("aten::mul.out", &args, &[p, q, given], std::slice::from_ref(&out))[0];
        let rig = Rig::with(config(), g.finish(&[x]));
        let some = || (Tensor::rand([33], tch::kind::FLOAT_CPU) * 200 + 55).to_kind(kind);
        let (a, b, written) = (some(), some(), Tensor::zeros([33], (out_kind, tch::Device::Cpu)));
        let told = rig.run(&[&a, &b, &written]);
        assert_eq!(rig.stats().kernels, 0);
        let _ = a.f_mul_out(&written, &b).unwrap();
        assert_same(&told.tensor(0), &written);
    }
}
