//! Nodes recorded again.

use ltc_ir::{ArgWriter, DType, Layout, Op, Operands, Props, Results, Signature, SignatureRef, SiteId, Value};

fn signature(op: &str) -> SignatureRef {
    let (words, _) = ArgWriter::new().tensor().finish();
    let layout = Layout::contiguous(DType::F32, &[2]).into();
    Signature::new(Op::intern(op, Props::NONE), words, Results::from_iter([layout]))
}

fn leaf(data: u32) -> Value<u32> {
    Value::data(Layout::contiguous(DType::F32, &[2]).into(), data)
}

#[test]
fn a_node_somebody_refers_to_is_not_recycled() {
    let (relu, x) = (signature("aten::relu"), leaf(1));
    let record = || Value::record(relu.clone(), Operands::from_iter([x.clone()]), Default::default(), SiteId(1));
    let held = record();
    assert!(held.clone().into_recycled().is_none());
    let node = record();
    let weak = node.downgrade();
    assert!(node.into_recycled().is_none() && !weak.is_held());
    let data = record();
    data.resolve(2);
    assert!(data.into_recycled().is_some(), "data nobody can ask for");
    assert_eq!(x.holders(), 2, "only `held` still needs it");
}

#[test]
fn a_recycled_node_is_recorded_as_a_new_node_is() {
    let (relu, tanh, x, y) = (signature("aten::relu"), signature("aten::tanh"), leaf(1), leaf(2));
    let node = Value::record(relu.clone(), Operands::from_iter([x.clone()]), [7].into_iter().collect(), SiteId(1));
    let address = node.address();
    let recycled = node.into_recycled().expect("nobody holds it");
    assert_eq!(x.holders(), 1, "operands are let go");
    assert!(recycled.had(&relu) && !recycled.had(&tanh));
    let again =
        recycled.record(&tanh, Operands::from_iter([y.clone(), x.clone()]), [8].into_iter().collect(), SiteId(2));
    assert_eq!(again.address(), address);
    assert_eq!((again.op().name(), again.site(), again.local_hash()), ("aten::tanh", SiteId(2), tanh.hash()));
    let same = |operands: &[Value<u32>], numbers: &[u64]| {
        operands.len() == 2 && operands[0].same(&y) && operands[1].same(&x) && numbers == [8]
    };
    assert!(again.is_pending() && again.inspect(same, |_| false));
    drop(again);
    assert_eq!((x.holders(), y.holders()), (1, 1));
}
