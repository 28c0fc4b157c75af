//! Whose memory is written, what is copied, what is let go. Values cannot tell; addresses and counters can.

mod common;

use common::*;
use ltc_backend::{Backend, HostTensor};
use ltc_ir::{DType, Layout, LayoutRef, ValueId};
use ltc_ts::{Fusion, RunStats, TsConfig};
use tch::Tensor;

/// `x + y`, then `+= y` twice.
fn chain(outputs: impl FnOnce([ValueId; 5]) -> Vec<ValueId>) -> (std::sync::Arc<ltc_ir::Graph>, Vec<u64>) {
    let l = f32s(&[8]);
    let mut g = G::default();
    let (x, y) = (g.param(&l), g.param(&l));
    let a = g.add(x, y, &l);
    let b = g.add_in_place(a, y, &l);
    let c = g.add_in_place(b, y, &l);
    g.finish(&outputs([x, y, a, b, c]))
}

fn inputs() -> (Tensor, Tensor) {
    (ramp(&[8]), ramp(&[8]) * 3.0)
}

#[test]
fn temporaries_are_written_in_place() {
    let (x, y) = inputs();
    let rig = Rig::new(chain(|[.., c]| vec![c]));
    assert_same(&rig.run(&[&x, &y]).tensor(0), &(&x + &y + &y + &y));
    assert_eq!(rig.stats(), RunStats { runs: 1, steps: 3, in_place: 2, ..RunStats::default() });
}

#[test]
fn outputs_told_early_are_not_written_afterwards() {
    let (x, y) = inputs();
    let rig = Rig::new(chain(|[_, _, a, b, c]| vec![c, b, a]));
    let told = rig.run(&[&x, &y]);
    assert_eq!(told.order(), [2, 1, 0], "each as soon as its step is done");
    assert_same(&told.tensor(2), &(&x + &y));
    assert_same(&told.tensor(1), &(&x + &y + &y));
    assert_same(&told.tensor(0), &(&x + &y + &y + &y));
    assert_eq!((rig.stats().in_place, rig.stats().copies), (0, 2));
}

#[test]
fn the_switch_turns_writing_in_place_off() {
    let (x, y) = inputs();
    let rig =
        Rig::with(TsConfig { reuse: false, fusion: Fusion::Off, ..TsConfig::default() }, chain(|[.., c]| vec![c]));
    assert_same(&rig.run(&[&x, &y]).tensor(0), &(&x + &y + &y + &y));
    assert_eq!((rig.stats().in_place, rig.stats().copies), (0, 2));
}

/// `x += y` for parameters.
fn update() -> (std::sync::Arc<ltc_ir::Graph>, Vec<u64>) {
    let l = f32s(&[8]);
    let mut g = G::default();
    let (x, y) = (g.param(&l), g.param(&l));
    let z = g.add_in_place(x, y, &l);
    g.finish(&[z])
}

#[test]
fn a_donated_input_becomes_the_output() {
    let (x, y) = inputs();
    let rig = Rig::new(update());
    let (bx, by) = (rig.buffer(&x), rig.buffer(&y));
    let (at, before) = (address(&bx), rig.used());
    let told = rig.execute(vec![donate(bx), keep(by.clone())]);
    let out = told.get(0).as_ref().expect("succeeds");
    assert_eq!(address(out), at, "the very memory");
    assert_same(&tensor(out), &(x + y));
    assert_eq!(rig.stats(), RunStats { runs: 1, steps: 1, in_place: 1, donations_taken: 1, ..RunStats::default() });
    assert_eq!(rig.used(), before, "one value in, one value out");
}

#[test]
fn an_input_somebody_holds_is_copied_however_it_was_given() {
    let (x, y) = inputs();
    let rig = Rig::new(update());
    let (bx, by) = (rig.buffer(&x), rig.buffer(&y));
    let not_donated = rig.execute(vec![keep(bx.clone()), keep(by.clone())]);
    let donated_but_held = rig.execute(vec![donate(bx.clone()), keep(by.clone())]);
    let tensor_held = {
        let handle = tensor(&bx);
        let told = rig.execute(vec![donate(bx), keep(by)]);
        assert_same(&handle, &x);
        told
    };
    for told in [&not_donated, &donated_but_held, &tensor_held] {
        assert_same(&told.tensor(0), &(&x + &y));
    }
    assert_eq!((rig.stats().in_place, rig.stats().copies), (0, 3));
}

#[test]
fn an_input_that_is_not_donated_is_not_written_even_when_nobody_else_holds_it() {
    let (x, y) = inputs();
    let rig = Rig::new(update());
    rig.execute(vec![keep(rig.buffer(&x)), keep(rig.buffer(&y))]);
    assert_eq!((rig.stats().in_place, rig.stats().copies), (0, 1));
}

#[test]
fn a_value_with_a_live_view_is_copied_before_it_is_written() {
    let (l, half) = (f32s(&[8]), f32s(&[4]));
    let mut g = G::default();
    let (x, y) = (g.param(&l), g.param(&l));
    let a = g.add(x, y, &l);
    let view = g.read_view(a, 4, &half);
    let b = g.add_in_place(a, y, &l);
    let c = g.relu(view, &half);
    let rig = Rig::new(g.finish(&[b, c]));
    let (x, y) = inputs();
    let told = rig.run(&[&x, &y]);
    assert_same(&told.tensor(0), &(&x + &y + &y));
    assert_same(&told.tensor(1), &(&x + &y).narrow(0, 4, 4).relu());
    assert_eq!((rig.stats().in_place, rig.stats().copies), (0, 1));
}

#[test]
fn a_view_that_leaves_the_program_does_not_hold_its_base() {
    let (table, row) = (f32s(&[100, 8]), f32s(&[8]));
    let mut g = G::default();
    let x = g.param(&table);
    let doubled = g.add(x, x, &table);
    let r = g.read_view(doubled, 16, &row);
    let s = g.relu(r, &row);
    let rig = Rig::new(g.finish(&[r, s]));
    let x = ramp(&[100, 8]);
    let told = rig.run(&[&x]);
    assert_same(&told.tensor(0), &(&x + &x).select(0, 2));
    assert_same(&told.tensor(1), &(&x + &x).select(0, 2).relu());
    assert_eq!(rig.used(), 2 * 8 * 4);
}

#[test]
fn values_are_let_go_at_their_last_use() {
    let l = f32s(&[1 << 16]);
    let bytes = l.storage_bytes();
    let mut g = G::default();
    let x = g.param(&l);
    let mut y = x;
    for _ in 0..20 {
        y = g.add(y, x, &l);
    }
    let rig = Rig::new(g.finish(&[y]));
    let told = rig.run(&[&ramp(&[1 << 16])]);
    assert_eq!(rig.backend.memory(D).peak, 3 * bytes, "the input, the operand and the result of one step");
    assert_eq!(rig.used(), bytes, "the output");
    drop(told);
    assert_eq!(rig.used(), 0);
}

#[test]
fn memory_is_flat_over_equal_steps() {
    let (x, y) = inputs();
    let rig = Rig::new(update());
    let (mut state, y) = (rig.buffer(&x), rig.buffer(&y));
    let used = rig.used();
    for _ in 0..100 {
        let told = rig.execute(vec![donate(state), keep(y.clone())]);
        state = told.0.into_iter().next().expect("one output").1.expect("succeeds");
        assert_eq!(rig.used(), used);
    }
    assert_eq!(rig.stats().in_place, 100);
}

#[test]
fn host_tensors_go_up_and_down_unchanged() {
    let rig = Rig::new(update());
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::RngState) {
        for (sizes, strides) in [(&[2i64, 3][..], &[3i64, 1][..]), (&[2, 3], &[1, 2]), (&[], &[]), (&[0, 3], &[3, 1])] {
            let layout = LayoutRef::new(Layout::strided(dtype, sizes, strides));
            let bytes: Vec<u8> = (0..layout.storage_bytes() as u32).map(|i| (i % 2) as u8).collect();
            let host = HostTensor { layout: layout.clone(), bytes };
            let buffer = rig.backend.upload(D, &host).expect("uploads");
            assert_eq!(rig.used(), host.bytes.len());
            assert_eq!(rig.backend.download(D, &buffer, &layout).expect("downloads"), host, "{layout}");
        }
    }
    assert_eq!(rig.used(), 0);
}
