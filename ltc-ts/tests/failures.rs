//! What goes wrong stays a value: named, contained, never a panic.

mod common;

use std::sync::Arc;

use common::*;
use ltc_backend::{
    Backend, BackendError, Buffer, DeviceIndex, ExecError, Executable, HostTensor, Input, Inputs, OutputSink,
};
use ltc_ir::{ArgWriter, DType, ErrorClass, Layout, LayoutRef, SiteId};
use ltc_ts::TsBackend;
use tch::Tensor;

fn indices() -> LayoutRef {
    Layout::contiguous(DType::I64, &[2]).into()
}

fn select() -> ArgWriter {
    ArgWriter::new().tensor().int(0).tensor().clone()
}

#[test]
fn a_failed_step_poisons_what_depends_on_it_and_nothing_else() {
    let (l, two) = (f32s(&[4]), f32s(&[2]));
    let mut g = G::default();
    let (x, i) = (g.param(&l), g.param(&indices()));
    let before = g.relu(x, &l);
    let picked = g.one("aten::index_select", &select(), &[x, i], &two);
    let dependent = g.relu(picked, &two);
    let apart = g.add(before, x, &l);
    let rig = Rig::new(g.finish(&[before, picked, dependent, apart]));
    let x = ramp(&[4]);
    let told = rig.run(&[&x, &Tensor::from_slice(&[0i64, 9])]);
    assert_same(&told.tensor(0), &x.relu());
    assert_same(&told.tensor(3), &(x.relu() + &x));
    let error = told.error(1);
    assert_eq!((error.op.as_str(), error.node), ("aten::index_select", 1));
    assert!(error.message.contains("index out of range"), "{error}");
    assert!(Arc::ptr_eq(&error, &told.error(2)), "the first failure, not a new one");
    assert_eq!(rig.stats().poisoned, 2);
    assert_eq!(told.0.len(), 4);

    let again = rig.run(&[&x, &Tensor::from_slice(&[0i64, 3])]);
    assert_same(&again.tensor(1), &x.index_select(0, &Tensor::from_slice(&[0i64, 3])));
    drop((told, again));
    assert_eq!(rig.used(), 0, "failures hold no memory");
}

#[test]
fn a_poisoned_input_fails_what_depends_on_it() {
    let l = f32s(&[4]);
    let mut g = G::default();
    let (x, y) = (g.param(&l), g.param(&l));
    let (a, b) = (g.relu(x, &l), g.relu(y, &l));
    let rig = Rig::new(g.finish(&[a, b, x]));
    let failure =
        Arc::new(ExecError { site: SiteId(7), ..ExecError::new("aten::somewhere", ErrorClass::Index, "boom") });
    let poisoned = Input { buffer: Err(failure.clone()), donated: false };
    let told = rig.execute(vec![poisoned, keep(rig.buffer(&ramp(&[4])))]);
    assert!(Arc::ptr_eq(&told.error(0), &failure) && Arc::ptr_eq(&told.error(2), &failure));
    assert_same(&told.tensor(1), &ramp(&[4]).relu());
}

#[test]
fn the_class_is_that_of_eager_execution() {
    let l = f32s(&[4]);
    let mut g = G::default();
    let x = g.param(&l);
    let y = g.one("aten::sum.dim_IntList", ArgWriter::new().tensor().ints(&[5]).bool(false).none(), &[x], &f32s(&[]));
    let told = Rig::new(g.finish(&[y])).run(&[&ramp(&[4])]);
    assert_eq!(told.error(0).class, ErrorClass::Index);
}

#[test]
fn a_result_of_another_shape_than_recorded_is_an_error() {
    let mut g = G::default();
    let x = g.param(&f32s(&[4]));
    let y = g.relu(x, &f32s(&[5]));
    let told = Rig::new(g.finish(&[y])).run(&[&ramp(&[4])]);
    assert!(told.error(0).message.contains("recorded"), "{}", told.error(0));
}

#[test]
fn inputs_that_do_not_fit_are_errors() {
    let l = f32s(&[4]);
    let mut g = G::default();
    let x = g.param(&l);
    let y = g.add(x, x, &l);
    let rig = Rig::new(g.finish(&[y, x]));
    let good = rig.buffer(&ramp(&[4]));
    let fails = |params: Vec<Input>, numbers: Vec<u64>, expected: &str| {
        let mut told = Told::default();
        rig.program.execute(Inputs::new(params, numbers), &mut told);
        for output in 0..2 {
            assert!(told.error(output).message.contains(expected), "{}", told.error(output));
        }
    };
    fails(vec![], vec![1], "takes 1 inputs and 1 numbers, got 0 and 1");
    fails(vec![keep(good.clone())], vec![], "got 1 and 0");
    fails(vec![keep(rig.buffer(&ramp(&[5])))], vec![1], "input 0 must be f32[4], got f32[5]");
    fails(vec![keep(Buffer::new("not ours"))], vec![1], "another backend");
    assert_eq!(rig.execute(vec![keep(good)]).0.len(), 2, "and the program still works");
}

#[test]
fn graphs_that_cannot_be_lowered_say_why() {
    let backend = TsBackend::new(1);
    let reason = |build: &dyn Fn(&mut G)| {
        let mut g = G::default();
        build(&mut g);
        match backend.compile(D, &g.finish(&[]).0).err() {
            Some(BackendError::CannotLower { op, reason }) => format!("{op}: {reason}"),
            other => panic!("expected a refusal, got {other:?}"),
        }
    };
    let unknown = reason(&|g| drop(g.call("aten::no_such_operator", &ArgWriter::new(), &[], &[])));
    assert!(unknown.starts_with("aten::no_such_operator: "), "{unknown}");
    let operands = reason(&|g| drop(g.call("aten::relu", ArgWriter::new().tensor(), &[], &[])));
    assert_eq!(operands, "aten::relu: arguments and operands do not agree");
    let arguments = reason(&|g| drop(g.call("aten::relu", &ArgWriter::new(), &[], &[])));
    assert!(arguments.contains("1 arguments"), "{arguments}");
    let states = reason(&|g| {
        let x = g.param(&state());
        g.relu(x, &f32s(&[]));
    });
    assert!(states.contains("generator state"), "{states}");
    let view = reason(&|g| {
        let x = g.param(&f32s(&[4]));
        g.call("ltc::read_view", ArgWriter::new().tensor().int(0), &[x], &[]);
    });
    assert!(view.starts_with("ltc::read_view"), "{view}");
}

#[test]
fn devices_and_transfers_are_checked() {
    let backend = TsBackend::new(2);
    assert_eq!((backend.name(), backend.device_count()), ("ts", 2));
    let l = f32s(&[4]);
    let host = HostTensor { layout: l.clone(), bytes: vec![0; 16] };
    let message = |e: BackendError| e.to_string();
    let far = DeviceIndex(2);
    assert_eq!(message(backend.upload(far, &host).unwrap_err()), "no device 2: the `ts` backend has 2");
    assert!(backend.synchronize(far).is_err() && backend.memory(far).used == 0);
    let short = HostTensor { layout: l.clone(), bytes: vec![0; 15] };
    assert!(message(backend.upload(D, &short).unwrap_err()).contains("takes 16 bytes, got 15"));
    let huge = HostTensor { layout: f32s(&[1 << 40, 1 << 40]), bytes: vec![] };
    assert!(backend.upload(D, &huge).is_err());
    let buffer = backend.upload(D, &host).unwrap();
    let wrong = backend.download(D, &buffer, &f32s(&[2, 2])).unwrap_err();
    assert!(message(wrong).contains("expected f32[2, 2], found f32[4]"));
    assert!(backend.download(D, &Buffer::new(1u8), &l).is_err());
    assert_eq!(backend.memory(D).used, 16);
    assert_eq!(backend.memory(DeviceIndex(1)).used, 0);
}

/// What a sink is told, in order: outputs, those that failed negative from -1 on, and `None` when nothing can fail any
/// more.
#[derive(Default)]
struct Order(Vec<Option<isize>>);

impl OutputSink for Order {
    fn output(&mut self, index: usize, result: Result<Buffer, Arc<ExecError>>) {
        let index = index as isize;
        self.0.push(Some(if result.is_ok() { index } else { -1 - index }));
    }

    fn safe(&mut self) {
        self.0.push(None);
    }
}

#[test]
fn what_can_fail_comes_before_what_is_told_and_written_in_place() {
    let (l, two) = (f32s(&[4]), f32s(&[2]));
    let mut g = G::default();
    let (x, i) = (g.param(&l), g.param(&indices()));
    let before = g.relu(x, &l);
    let picked = g.one("aten::index_select", &select(), &[x, i], &two);
    let again = g.one("aten::index_select", &select(), &[before, i], &two);
    let both = g.add(again, picked, &two);
    let after = g.add(before, x, &l);
    let rig = Rig::new(g.finish(&[before, picked, both, after]));
    let order = |indices: &[i64]| {
        let mut order = Order::default();
        let params = [keep(rig.buffer(&ramp(&[4]))), keep(rig.buffer(&Tensor::from_slice(indices)))];
        rig.program.execute(Inputs::new(params, [1, 1]), &mut order);
        order.0
    };
    let told = order(&[0, 3]);
    let at = |what: Option<isize>| told.iter().position(|&t| t == what).expect("told");
    assert!(at(None) < at(Some(2)) && at(None) < at(Some(3)) && told.len() == 5, "{told:?}");
    let told = order(&[0, 9]);
    assert!(!told.contains(&None) && told.contains(&Some(0)) && told.contains(&Some(-3)), "{told:?}");
    let told = rig.run(&[&ramp(&[4]), &Tensor::from_slice(&[0i64, 9])]);
    assert_eq!(told.error(2).node, 1, "of two failures the first one's");
}
