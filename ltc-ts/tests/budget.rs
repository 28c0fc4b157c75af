//! A memory budget: that steps move and values are made again, that less memory is really in use, and that no bit
//! changes.

mod common;

use std::sync::Arc;

use common::*;
use ltc_backend::{Backend, MemoryReset};
use ltc_ir::{ArgWriter, Graph, Layout, ValueId};
use ltc_torch_sys::{empty_pool, pool_stats};
use ltc_ts::{Fusion, MemoryPlan, TsConfig};
use parking_lot::{Mutex, MutexGuard};
use proptest::prelude::*;
use tch::Tensor;

const N: i64 = 64 << 10;
const BYTES: usize = 4 * N as usize;

/// The pool is the process's.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
}

type Recorded = (Arc<Graph>, Vec<u64>);

fn unary(g: &mut G, op: &str, x: ValueId) -> ValueId {
    g.one(op, ArgWriter::new().tensor(), &[x], &f32s(&[N]))
}

/// Running sums: no kernel of ours takes part.
fn cumsum(g: &mut G, x: ValueId) -> ValueId {
    g.one("aten::cumsum", ArgWriter::new().tensor().int(0).none(), &[x], &f32s(&[N]))
}

/// Eight large values, then a few numbers of each.
fn wide() -> Recorded {
    let mut g = G::default();
    let x = g.param(&f32s(&[N]));
    let mut large = vec![cumsum(&mut g, x)];
    (0..7).for_each(|i| large.push(cumsum(&mut g, large[i])));
    let number = |g: &mut G, v: ValueId| {
        let end = g.read_view(v, N - 4, &f32s(&[4]));
        g.one("aten::cumsum", ArgWriter::new().tensor().int(0).none(), &[end], &f32s(&[4]))
    };
    let mut numbers: Vec<ValueId> = large.iter().map(|&v| number(&mut g, v)).collect();
    numbers.push(large[7]);
    g.finish(&numbers)
}

/// `y = atan(cumsum(x))`, an activation of each, all read again later: as a training step keeps them.
fn deep(layers: usize, activation: &str) -> Recorded {
    let mut g = G::default();
    let x = g.param(&f32s(&[N]));
    let (mut kept, mut y) = (Vec::new(), x);
    for _ in 0..layers {
        let sum = cumsum(&mut g, y);
        let before = g.one("aten::atan", ArgWriter::new().tensor(), &[sum], &f32s(&[N]));
        y = unary(&mut g, activation, before);
        kept.push((before, y));
    }
    let mut grad = y;
    for (before, y) in kept.into_iter().rev() {
        let a = cumsum(&mut g, grad);
        let b = g.one("aten::dot", ArgWriter::new().tensor().tensor(), &[a, y], &f32s(&[]));
        let c = g.one("aten::mul.Tensor", ArgWriter::new().tensor().tensor(), &[a, b], &f32s(&[N]));
        let d = g.one("aten::minimum", ArgWriter::new().tensor().tensor(), &[c, before], &f32s(&[N]));
        grad = unary(&mut g, "aten::tanh", d);
    }
    g.finish(&[grad])
}

struct Seen {
    outputs: Vec<Tensor>,
    plan: Option<MemoryPlan>,
    /// Most bytes counted beside the input, and most bytes libtorch had from the pool.
    counted: usize,
    allocated: usize,
    text: String,
}

fn run(budget_bytes: usize, fusion: Fusion, recorded: &Recorded) -> Seen {
    let x = (ramp(&[N]) * 1e-3).sin();
    let rig = Rig::with(TsConfig { budget_bytes, fusion, ..TsConfig::default() }, recorded.clone());
    let input = rig.buffer(&x);
    empty_pool();
    let live = pool_stats().live;
    rig.backend.reset_memory(D, MemoryReset::Peaks);
    let told = rig.execute(vec![keep(input.clone())]);
    // The pool was empty, so a block is new if all of its size were in use.
    let now = pool_stats();
    let outputs = (0..recorded.0.outputs().len()).map(|i| told.tensor(i).copy()).collect();
    let program = rig.program.program();
    let counted = rig.backend.memory(D).peak;
    Seen {
        outputs,
        plan: program.memory_plan(),
        counted,
        allocated: now.live + now.cached - live,
        text: program.text(),
    }
}

#[track_caller]
fn assert_equal(a: &Seen, b: &Seen) {
    a.outputs.iter().zip(&b.outputs).for_each(|(a, b)| assert_same(a, b));
}

#[test]
fn steps_run_in_an_order_that_fits() {
    let _turn = turn();
    let recorded = wide();
    for fusion in [Fusion::Off, Fusion::Full] {
        let (free, tight) = (run(0, fusion, &recorded), run(4 * BYTES, fusion, &recorded));
        assert_equal(&tight, &free);
        assert_eq!(free.plan, None);
        let plan = tight.plan.expect("there is a budget");
        assert!(
            plan.recorded >= 9 * BYTES && plan.peak <= 4 * BYTES && plan.moved > 0 && plan.rematerialised == 0,
            "{plan:?}"
        );
        assert!(tight.text.contains("# memory: at most"), "{}", tight.text);
        assert!(free.counted >= 9 * BYTES && tight.counted <= 4 * BYTES, "{} {}", free.counted, tight.counted);
        assert!(free.allocated >= 8 * BYTES && tight.allocated <= 3 * BYTES, "{} {}", free.allocated, tight.allocated);
    }
}

#[test]
fn cheap_values_are_made_again_to_fit() {
    let _turn = turn();
    for (fusion, activation) in [(Fusion::Off, "aten::relu"), (Fusion::Exact, "aten::neg"), (Fusion::Full, "aten::exp")]
    {
        let recorded = deep(8, activation);
        let (free, tight) = (run(0, fusion, &recorded), run(13 * BYTES, fusion, &recorded));
        assert_equal(&tight, &free);
        let plan = tight.plan.expect("there is a budget");
        assert!(plan.recorded > 17 * BYTES && plan.peak <= 13 * BYTES && plan.rematerialised >= 5, "{plan:?}");
        assert_eq!((free.counted, tight.counted), (plan.recorded, plan.peak), "as planned");
        assert!(tight.allocated + 4 * BYTES <= free.allocated, "{} {}", tight.allocated, free.allocated);
    }
}

#[test]
fn what_fits_runs_as_recorded() {
    let _turn = turn();
    let recorded = deep(3, "aten::relu");
    let (free, roomy) = (run(0, Fusion::Full, &recorded), run(100 * BYTES, Fusion::Full, &recorded));
    let plan = roomy.plan.expect("there is a budget");
    assert_eq!((plan.moved, plan.rematerialised, plan.peak), (0, 0, plan.recorded));
    let listing = |t: &str| t.lines().filter(|l| !l.starts_with("# memory")).collect::<Vec<_>>().join("\n");
    assert_eq!(listing(&roomy.text), listing(&free.text));
}

#[test]
fn parameters_written_in_place_are_not_counted_twice() {
    let _turn = turn();
    let l = f32s(&[N]);
    let mut g = G::default();
    let (x, y) = (g.param(&l), g.param(&l));
    let z = g.add_in_place(x, y, &l);
    let rig = Rig::with(TsConfig { budget_bytes: 1, ..TsConfig::default() }, g.finish(&[z]));
    assert_eq!(rig.program.program().memory_plan().map(|p| p.peak), Some(2 * BYTES));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Random programs of kernels, calls, views and writes, under a budget nothing fits.
    #[test]
    fn values_stay_whatever_the_budget(
        shape in prop::collection::vec((0usize..7, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..40),
        outputs in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        fusion in prop::sample::select(vec![Fusion::Off, Fusion::Exact, Fusion::Full]),
    ) {
        let _turn = turn();
        let (l, square) = (f32s(&[64]), f32s(&[8, 8]));
        let turned = Layout::strided(ltc_ir::DType::F32, &[8, 8], &[1, 8]).into();
        let mut g = G::default();
        let mut values = vec![g.param(&l), g.param(&l)];
        for (kind, a, b) in &shape {
            let (a, b) = (*a.get(&values), *b.get(&values));
            let value = match kind {
                0 => g.add(a, b, &l),
                1 => g.add_in_place(a, b, &l),
                2 => g.relu(a, &l),
                3 => g.one("aten::cumsum", ArgWriter::new().tensor().int(0).none(), &[a], &l),
                4 => {
                    let v = g.read_view(a, 0, &turned);
                    let w = g.read_view(b, 0, &square);
                    let m = g.one("aten::minimum", ArgWriter::new().tensor().tensor(), &[v, w], &turned);
                    let m = g.one("aten::clone", ArgWriter::new().tensor().none(), &[m], &turned);
                    g.read_view(m, 0, &l)
                }
                5 => {
                    let half = g.read_view(b, 32, &f32s(&[32]));
                    g.write_view(a, half, 0, &f32s(&[32]), &l)
                }
                _ => g.one("aten::neg", ArgWriter::new().tensor(), &[a], &l),
            };
            values.push(value);
        }
        let outputs: Vec<ValueId> = outputs.iter().map(|o| *o.get(&values)).collect();
        let recorded = g.finish(&outputs);
        let inputs = [ramp(&[64]), ramp(&[64]).sin()];
        let of = |budget_bytes| {
            let rig = Rig::with(TsConfig { budget_bytes, fusion, ..TsConfig::default() }, recorded.clone());
            let told = rig.run(&[&inputs[0], &inputs[1]]);
            prop_assert_eq!(rig.stats().poisoned, 0);
            let tensors: Vec<Tensor> = (0..outputs.len()).map(|i| told.tensor(i).copy()).collect();
            drop(told);
            prop_assert_eq!(rig.used(), 0, "all that was counted is returned");
            Ok((tensors, rig.program.program().memory_plan()))
        };
        let ((free, _), (tight, plan)) = (of(0)?, of(1)?);
        let plan = plan.expect("there is a budget");
        prop_assert!(plan.peak <= plan.recorded);
        tight.iter().zip(&free).for_each(|(a, b)| assert!(a.equal(b), "{a} instead of {b}"));
    }
}
