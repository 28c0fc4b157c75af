//! Random operators: the draws of eager libtorch, with generator states as values.

mod common;

use common::*;
use ltc_ir::{ArgFlags, ArgWriter, LayoutRef, ValueId};
use ltc_ts::TsConfig;
use parking_lot::{Mutex, MutexGuard};
use tch::Tensor;

/// Fills `x` with normal draws from `generator`; the result and the next state.
fn normal(g: &mut G, x: ValueId, generator: ValueId, l: &LayoutRef) -> (ValueId, ValueId) {
    let args = ArgWriter::new().tensor_with(ArgFlags::MUT).float(0.0).float(1.0).generator().clone();
    let results = g.call("aten::normal_", &args, &[x, generator], &[l.clone(), state()]);
    (results[0], results[1])
}

fn seeded(g: &mut G, seed: i64) -> ValueId {
    g.one("ltc::seed", ArgWriter::new().number(seed.into()), &[], &state())
}

/// The generator of the process, which every test here seeds: one test at a time.
fn process_generator() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock()
}

fn eager(seed: i64, draws: usize, sizes: &[i64]) -> Vec<Tensor> {
    tch::manual_seed(seed);
    (0..draws).map(|_| ramp(sizes).normal_(0.0, 1.0)).collect()
}

#[test]
fn draws_equal_eager_ones_and_states_are_values() {
    let _alone = process_generator();
    let l = f32s(&[33]);
    let mut g = G::default();
    let x = g.param(&l);
    let s0 = seeded(&mut g, 42);
    let (first, s1) = normal(&mut g, x, s0, &l);
    let (second, _) = normal(&mut g, x, s1, &l);
    // Drawn last from the first state: nobody may have moved it on.
    let (first_again, _) = normal(&mut g, x, s0, &l);
    let rig = Rig::new(g.finish(&[first, second, first_again, s1]));
    let told = rig.run(&[&ramp(&[33])]);
    let expected = eager(42, 2, &[33]);
    assert_same(&told.tensor(0), &expected[0]);
    assert_same(&told.tensor(1), &expected[1]);
    assert_same(&told.tensor(2), &expected[0]);

    // The state that came out is an input of the next program.
    let mut g = G::default();
    let (x, s) = (g.param(&l), g.param(&state()));
    let (draw, _) = normal(&mut g, x, s, &l);
    let next = Rig::new(g.finish(&[draw]));
    let s1 = told.get(3).as_ref().expect("a state").clone();
    let both: Vec<Tensor> =
        (0..2).map(|_| next.execute(vec![keep(next.buffer(&ramp(&[33]))), keep(s1.clone())]).tensor(0)).collect();
    both.iter().for_each(|t| assert_same(t, &expected[1]));
}

#[test]
fn the_seed_is_a_parameter_of_the_run() {
    let _alone = process_generator();
    let l = f32s(&[7]);
    let mut g = G::default();
    let x = g.param(&l);
    let s = seeded(&mut g, 1);
    let (draw, _) = normal(&mut g, x, s, &l);
    let mut rig = Rig::new(g.finish(&[draw]));
    assert_same(&rig.run(&[&ramp(&[7])]).tensor(0), &eager(1, 1, &[7])[0]);
    rig.numbers[0] = 2;
    assert_same(&rig.run(&[&ramp(&[7])]).tensor(0), &eager(2, 1, &[7])[0]);
}

#[test]
fn the_default_generator_of_the_process_is_left_alone() {
    let _alone = process_generator();
    let l = f32s(&[64]);
    let mut g = G::default();
    let (x, s) = (g.param(&l), seeded(&mut g, 5));
    // No generator in the schema: the kernel draws from the default one, which is swapped for the call.
    let args = ArgWriter::new().tensor().float(0.5).bool(true).generator().clone();
    let mask = LayoutRef::new(ltc_ir::Layout::contiguous(ltc_ir::DType::Bool, &[64]));
    let dropped = g.call("aten::native_dropout", &args, &[x, s], &[l, mask, state()]);
    let rig = Rig::new(g.finish(&[dropped[0]]));
    let got = rig.run(&[&ramp(&[64])]).tensor(0);
    tch::manual_seed(5);
    assert_same(&got, &ramp(&[64]).native_dropout(0.5, true).0);

    let expected = eager(9, 1, &[8]);
    tch::manual_seed(9);
    rig.run(&[&ramp(&[64])]);
    assert_same(&ramp(&[8]).normal_(0.0, 1.0), &expected[0]);
}

/// Draws of ones and zeros by our kernel, mixed with libtorch's own draws from the same generator, at sizes around the
/// state's.
#[test]
fn bernoulli_draws_equal_eager_ones() {
    let _alone = process_generator();
    let sizes = [1i64, 3, 311, 312, 313, 624, 0, 1000, 5, 20_000];
    let mut g = G::default();
    let mut s = seeded(&mut g, 7);
    let mut outputs = Vec::new();
    for &n in &sizes {
        let args = ArgWriter::new().tensor_with(ArgFlags::MUT.and(ArgFlags::FRESH)).float(0.3).generator().clone();
        let results = g.call("aten::bernoulli_.float", &args, &[s], &[f32s(&[n]), state()]);
        let x = g.param(&f32s(&[5]));
        let (drawn, next) = normal(&mut g, x, results[1], &f32s(&[5]));
        outputs.extend([results[0], drawn]);
        s = next;
    }
    let graph = g.finish(&outputs);
    let rig = Rig::with(TsConfig::default(), graph);
    let zeros = Tensor::zeros([5], tch::kind::FLOAT_CPU);
    let told = rig.run(&vec![&zeros; sizes.len()]);
    assert_eq!(rig.stats().kernels, sizes.len() as u64);
    tch::manual_seed(7);
    for (i, &n) in sizes.iter().enumerate() {
        assert_same(&told.tensor(2 * i), &Tensor::zeros([n], tch::kind::FLOAT_CPU).bernoulli_float_(0.3));
        assert_same(&told.tensor(2 * i + 1), &zeros.copy().normal_(0.0, 1.0));
    }
}
