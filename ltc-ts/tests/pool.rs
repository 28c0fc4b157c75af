//! The pool of memory: a steady program asks the system for nothing, and nobody else notices. Tests take turns, as the
//! pool is the process's.

mod common;

use common::*;
use ltc_backend::Backend;
use ltc_ir::ArgWriter;
use ltc_torch_sys::{empty_pool, pool_stats};
use ltc_ts::{RunStats, TsConfig};
use parking_lot::{Mutex, MutexGuard};
use tch::{Kind, Tensor};

const SIDE: i64 = 300;

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
}

/// A product by libtorch's kernel, then a kernel of ours, twice.
fn program(pool_bytes: usize) -> Rig {
    let l = f32s(&[SIDE, SIDE]);
    let mut g = G::default();
    let (x, y) = (g.param(&l), g.param(&l));
    let mut z = x;
    for _ in 0..2 {
        let m = g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[z, y], &l);
        let sum = g.add(m, x, &l);
        z = g.relu(sum, &l);
    }
    Rig::with(TsConfig { pool_bytes, ..TsConfig::default() }, g.finish(&[z]))
}

fn inputs() -> [Tensor; 2] {
    [ramp(&[SIDE, SIDE]).sin(), ramp(&[SIDE, SIDE]).cos()]
}

#[test]
fn a_steady_program_asks_the_system_for_nothing() {
    let _turn = turn();
    let rig = program(1 << 30);
    let [x, y] = &inputs();
    let mut expected = x.shallow_clone();
    (0..2).for_each(|_| expected = (expected.mm(y) + x).relu());
    (0..3).for_each(|_| assert_same(&rig.run(&[x, y]).tensor(0), &expected));
    let warm = rig.stats();
    assert!(warm.blocks_new > 0, "{warm:?}");
    (0..20).for_each(|_| assert_same(&rig.run(&[x, y]).tensor(0), &expected));
    let RunStats { blocks_new, blocks_reused, .. } = rig.stats();
    assert_eq!(blocks_new, warm.blocks_new, "twenty steps, no new block");
    assert!(blocks_reused >= warm.blocks_reused + 20);
    assert!(rig.backend.memory(D).cached > 0);
    empty_pool();
    assert_eq!(rig.backend.memory(D).cached, 0);
    assert_same(&rig.run(&[x, y]).tensor(0), &expected);
}

#[test]
fn pages_become_huge_when_a_block_proves_to_stay() {
    let _turn = turn();
    let (l, mut g) = (f32s(&[3 << 20]), G::default());
    let x = g.param(&l);
    let y = g.relu(x, &l);
    let rig = Rig::with(TsConfig { pool_bytes: 1 << 30, ..TsConfig::default() }, g.finish(&[y]));
    let x = ramp(&[3 << 20]);
    let settled = |runs: usize| {
        let before = pool_stats().settled;
        (0..runs).for_each(|_| assert_same(&rig.run(&[&x]).tensor(0), &x.relu()));
        pool_stats().settled - before
    };
    assert_eq!(settled(4), 0);
    assert_eq!(settled(12), 1);
    assert_eq!(settled(12), 0, "told once");
}

#[test]
fn the_switch_turns_the_pool_off() {
    let _turn = turn();
    let rig = program(0);
    let [x, y] = &inputs();
    (0..3).for_each(|_| drop(rig.run(&[x, y])));
    assert_eq!((rig.stats().blocks_reused, pool_stats().cached), (0, 0));
}

#[test]
fn no_more_is_kept_than_allowed() {
    let _turn = turn();
    let bytes = (SIDE * SIDE * 4) as usize;
    let rig = program(bytes * 5 / 4);
    let [x, y] = &inputs();
    let told: Vec<_> = (0..4).map(|_| rig.run(&[x, y])).collect();
    drop(told);
    assert!((bytes..=bytes * 5 / 4).contains(&pool_stats().cached), "{:?}", pool_stats());
}

#[test]
fn other_allocations_are_not_touched() {
    let _turn = turn();
    let rig = program(1 << 30);
    let [x, y] = &inputs();
    let told = rig.run(&[x, y]);
    let before = pool_stats();
    let eager = x.mm(y) + Tensor::ones([SIDE, SIDE], (Kind::Float, tch::Device::Cpu));
    assert_eq!(pool_stats(), before);
    drop(eager);
    assert_eq!(pool_stats(), before);
    // A block may be let go anywhere.
    let out = told.tensor(0);
    drop(told);
    std::thread::spawn(move || drop(out)).join().expect("the thread ends");
    assert!(pool_stats().live < before.live && pool_stats().cached > before.cached);
}

#[test]
fn what_nobody_takes_for_long_is_given_back() {
    let _turn = turn();
    let rig = program(1 << 30);
    let [x, y] = &inputs();
    drop(rig.run(&[x, y]));
    assert!(pool_stats().cached > 0);
    let small = {
        let l = f32s(&[4]);
        let mut g = G::default();
        let x = g.param(&l);
        let y = g.relu(x, &l);
        Rig::new(g.finish(&[y]))
    };
    let line = ramp(&[4]);
    (0..600).for_each(|_| drop(small.run(&[&line])));
    assert_eq!(pool_stats().cached, 0);
}
