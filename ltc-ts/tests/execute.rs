//! Programs give what libtorch gives, operator family by operator family.

mod common;

use common::*;
use ltc_ir::{ArgFlags, ArgWriter, DType, Layout, LayoutRef, Scalar};
use tch::{Kind, Tensor};

#[test]
fn pointwise_with_broadcast_and_numbers() {
    let (m, row) = (f32s(&[3, 4]), f32s(&[4]));
    let mut g = G::default();
    let (x, y) = (g.param(&m), g.param(&row));
    let scaled = g.one("aten::mul.Tensor", ArgWriter::new().tensor().wrapped(Scalar::Float(1.25)), &[x], &m);
    let sum = g.add(scaled, y, &m);
    let out = g.relu(sum, &m);
    let (a, b) = (ramp(&[3, 4]), ramp(&[4]));
    assert_same(&Rig::new(g.finish(&[out])).run(&[&a, &b]).tensor(0), &(&a * 1.25 + &b).relu());
}

#[test]
fn numbers_are_parameters_of_the_run() {
    let l = f32s(&[5]);
    let mut g = G::default();
    let x = g.param(&l);
    let clamp = ArgWriter::new().tensor().number(Scalar::Float(-1.0)).number(Scalar::Int(1)).clone();
    let y = g.one("aten::clamp", &clamp, &[x], &l);
    let power = ArgWriter::new().tensor().number(Scalar::Float(2.0)).clone();
    let z = g.one("aten::pow.Tensor_Scalar", &power, &[y], &l);
    let mut rig = Rig::new(g.finish(&[z]));
    let a = ramp(&[5]);
    assert_same(&rig.run(&[&a]).tensor(0), &a.clamp(-1.0, 1.0).pow_tensor_scalar(2.0));
    rig.numbers = vec![(-2.0f64).to_bits(), 0, 3.0f64.to_bits()];
    assert_same(&rig.run(&[&a]).tensor(0), &a.clamp(-2.0, 0.0).pow_tensor_scalar(3.0));
}

#[test]
fn wrapped_numbers_promote_as_numbers() {
    let (ints, floats) = (LayoutRef::new(Layout::contiguous(DType::I64, &[3])), f32s(&[3]));
    let mut g = G::default();
    let x = g.param(&ints);
    let y = g.one("aten::mul.Tensor", ArgWriter::new().tensor().wrapped(Scalar::Float(0.5)), &[x], &floats);
    let a = Tensor::from_slice(&[1i64, 2, 3]);
    assert_same(&Rig::new(g.finish(&[y])).run(&[&a]).tensor(0), &(a * 0.5));
}

#[test]
fn matmul_of_a_transposed_view() {
    let (a, b, bt, out) = (f32s(&[2, 3]), f32s(&[4, 3]), Layout::strided(DType::F32, &[3, 4], &[1, 3]), f32s(&[2, 4]));
    let mut g = G::default();
    let (x, w) = (g.param(&a), g.param(&b));
    let wt = g.read_view(w, 0, &bt.into());
    let y = g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[x, wt], &out);
    let (x, w) = (ramp(&[2, 3]), ramp(&[4, 3]));
    assert_same(&Rig::new(g.finish(&[y])).run(&[&x, &w]).tensor(0), &x.mm(&w.tr()));
}

#[test]
fn views_of_views_are_read_and_written() {
    let (base, column) = (f32s(&[3, 4]), LayoutRef::new(Layout::strided(DType::F32, &[3], &[4])));
    let last_two = LayoutRef::new(Layout::strided(DType::F32, &[2], &[4]));
    let mut g = G::default();
    let (x, v) = (g.param(&base), g.param(&f32s(&[2])));
    let second = g.read_view(x, 1, &column);
    let tail = g.read_view(second, 4, &last_two);
    let doubled = g.add(tail, v, &f32s(&[2]));
    // The tail of column 1 is at offset 1 + 4 of the base.
    let y = g.write_view(x, doubled, 5, &last_two, &base);
    let rig = Rig::new(g.finish(&[y]));
    let (a, b) = (ramp(&[3, 4]), ramp(&[2]));
    let expected = a.copy();
    let _ = expected.select(1, 1).narrow(0, 1, 2).g_add_(&b);
    assert_same(&rig.run(&[&a, &b]).tensor(0), &expected);
}

#[test]
fn operators_with_several_results_and_results_nobody_wants() {
    let (m, row) = (f32s(&[3, 4]), f32s(&[3]));
    let indices = LayoutRef::new(Layout::contiguous(DType::I64, &[3]));
    let mut g = G::default();
    let x = g.param(&m);
    let max = ArgWriter::new().tensor().int(1).bool(false).clone();
    let both = g.call("aten::max.dim", &max, &[x], &[row.clone(), indices.clone()]);
    let only_indices = g.call("aten::min.dim", &max, &[x], &[row, indices]);
    let rig = Rig::new(g.finish(&[both[0], both[1], only_indices[1]]));
    let a = ramp(&[3, 4]).sin();
    let told = rig.run(&[&a]);
    let (values, indices) = a.max_dim(1, false);
    assert_same(&told.tensor(0), &values);
    assert_same(&told.tensor(1), &indices);
    assert_same(&told.tensor(2), &a.min_dim(1, false).1);
    let outputs = 3 * 4 + 2 * 3 * 8;
    drop(values);
    assert_eq!(rig.used(), outputs, "the unwanted minimum is gone");
}

#[test]
fn tensor_lists_as_arguments_and_results() {
    let (l, parts) = (f32s(&[4]), f32s(&[2]));
    let mut g = G::default();
    let (x, y) = (g.param(&l), g.param(&l));
    let both = [true, true];
    let joined = g.one("aten::cat", ArgWriter::new().tensors(&both, ArgFlags::NONE).int(0), &[x, y], &f32s(&[8]));
    let fours = std::array::from_fn::<_, 4, _>(|_| parts.clone());
    let split = g.call("aten::split_copy.Tensor", ArgWriter::new().tensor().int(2).int(0), &[joined], &fours);
    let foreach =
        ArgWriter::new().tensors(&both, ArgFlags::MUT).tensors(&both, ArgFlags::NONE).number(Scalar::Int(2)).clone();
    let updated = g.call("aten::_foreach_add_.List", &foreach, &[x, y, y, x], &[l.clone(), l]);
    let scaled =
        ArgWriter::new().tensors(&both, ArgFlags::NONE).number_list(&[Scalar::Float(0.5), Scalar::Int(3)]).clone();
    let scaled = g.call("aten::_foreach_mul.ScalarList", &scaled, &updated, &[f32s(&[4]), f32s(&[4])]);
    let rig = Rig::new(g.finish(&[split[1], split[2], updated[0], updated[1], scaled[0], scaled[1]]));
    let (a, b) = (ramp(&[4]), ramp(&[4]) * 10.0);
    let told = rig.run(&[&a, &b]);
    assert_same(&told.tensor(0), &a.narrow(0, 2, 2));
    assert_same(&told.tensor(1), &b.narrow(0, 0, 2));
    let (x, y) = (&a + &b * 2.0, &b + &a * 2.0);
    assert_same(&told.tensor(2), &x);
    assert_same(&told.tensor(3), &y);
    assert_same(&told.tensor(4), &(x * 0.5));
    assert_same(&told.tensor(5), &(y * 3.0));
}

#[test]
fn fresh_writes_need_no_operand() {
    let l = LayoutRef::new(Layout::strided(DType::F32, &[2, 3], &[1, 2]));
    let mut g = G::default();
    let (x, y) = (g.param(&f32s(&[2, 3])), g.param(&f32s(&[2, 3])));
    let fresh = ArgFlags::MUT.and(ArgFlags::FRESH);
    let out = ArgWriter::new().tensor().tensor().number(Scalar::Int(1)).tensor_with(fresh).clone();
    let z = g.one("aten::add.out", &out, &[x, y], &l);
    let (a, b) = (ramp(&[2, 3]), ramp(&[2, 3]));
    let got = Rig::new(g.finish(&[z])).run(&[&a, &b]).tensor(0);
    assert_eq!(got.stride(), [1, 2], "the recorded layout, not libtorch's choice");
    assert!(got.equal(&(a + b)));
}

#[test]
fn strings_absent_arguments_and_optional_lists() {
    let m = f32s(&[2, 4]);
    let mut g = G::default();
    let x = g.param(&m);
    let index = g.param(&LayoutRef::new(Layout::contiguous(DType::I64, &[2])));
    let gelu = g.one("aten::gelu", ArgWriter::new().tensor().str("tanh"), &[x], &m);
    let picked = ArgWriter::new().tensor().tensors(&[false, true], ArgFlags::NONE).clone();
    let columns = g.one("aten::index.Tensor", &picked, &[gelu, index], &f32s(&[2, 2]));
    let total = g.one("aten::sum", ArgWriter::new().tensor().none(), &[columns], &f32s(&[]));
    let (a, i) = (ramp(&[2, 4]), Tensor::from_slice(&[3i64, 0]));
    let expected = a.gelu("tanh").index(&[None, Some(i.copy())]).sum(None::<Kind>);
    assert_same(&Rig::new(g.finish(&[total])).run(&[&a, &i]).tensor(0), &expected);
}

#[test]
fn memory_nobody_wrote_has_the_layout_asked_for() {
    let l = LayoutRef::new(Layout::strided(DType::F64, &[3, 2], &[1, 3]));
    let mut g = G::default();
    let e = g.one("ltc::empty", &ArgWriter::new(), &[], &l);
    let z = g.one("aten::zero_", ArgWriter::new().tensor_with(ArgFlags::MUT), &[e], &l);
    let rig = Rig::new(g.finish(&[z]));
    let got = rig.run(&[]).tensor(0);
    assert_eq!((got.size(), got.stride(), got.kind()), (vec![3, 2], vec![1, 3], Kind::Double));
    assert_eq!(got.abs().sum(Kind::Double).double_value(&[]), 0.0);
    assert_eq!((rig.stats().in_place, rig.stats().copies), (1, 0));
}
