//! Parts of a program that do not depend on each other run on two threads: that they do, and that nothing else changes.

mod common;

use std::sync::Arc;

use common::*;
use ltc_ir::{ArgWriter, DType, Graph, Layout, LayoutRef, ValueId, passes::Switches};
use ltc_ts::{Fusion, TsConfig};
use proptest::prelude::*;
use tch::Tensor;

/// Runs of which half are forked: until it is known what is faster, both ways take turns of some runs.
const RUNS: usize = 16;

fn layer() -> LayoutRef {
    f32s(&[32, 64])
}

fn indices() -> LayoutRef {
    Layout::contiguous(DType::I64, &[32]).into()
}

#[derive(Clone, Copy, Debug)]
enum What {
    Product,
    Tanh,
    Sum,
    InPlace,
    /// The value all towers start with is written in place, if this is its last use.
    Taken,
    Shared,
    Rows,
    Shown,
}

/// What is done in turn in which of three towers; at the end they are added. Parameters: a value, then
/// the towers' weights and row numbers.
fn towers(ops: &[(usize, What)]) -> (Arc<Graph>, Vec<u64>) {
    let l = layer();
    let mut g = G::default();
    let x = g.param(&l);
    let weights: Vec<ValueId> = (0..3).map(|_| g.param(&f32s(&[64, 64]))).collect();
    let rows: Vec<ValueId> = (0..3).map(|_| g.param(&indices())).collect();
    let product = |g: &mut G, t: usize, v| g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[v, weights[t]], &l);
    let start = g.one("aten::sin", ArgWriter::new().tensor(), &[x], &l);
    let mut towers: Vec<[ValueId; 2]> = (0..3).map(|t| [product(&mut g, t, start), start]).collect();
    let mut outputs = Vec::new();
    for &(tower, what) in ops {
        let [v, before] = towers[tower];
        let next = match what {
            What::Product => product(&mut g, tower, v),
            What::Tanh => g.one("aten::tanh", ArgWriter::new().tensor(), &[v], &l),
            What::Sum => g.add(v, before, &l),
            What::InPlace => g.add_in_place(v, before, &l),
            What::Taken => g.add_in_place(start, v, &l),
            What::Shared => g.add(v, start, &l),
            What::Rows => {
                let args = ArgWriter::new().tensor().int(0).tensor().clone();
                g.one("aten::index_select", &args, &[v, rows[tower]], &l)
            }
            What::Shown => {
                outputs.push(v);
                continue;
            }
        };
        // What was written in place is gone.
        towers[tower] = if matches!(what, What::InPlace) { [next, next] } else { [next, v] };
    }
    let ends: Vec<ValueId> = towers.iter().enumerate().map(|(t, v)| product(&mut g, t, v[0])).collect();
    let two = g.add(ends[0], ends[1], &l);
    let all = g.add(two, ends[2], &l);
    outputs.extend([all, ends[1]]);
    g.finish(&outputs)
}

/// With this tower's row numbers out of range.
fn inputs(spoilt: Option<usize>) -> Vec<Tensor> {
    let rows = |i| if spoilt == Some(i) { 99i64 } else { i as i64 * 5 };
    let rows = (0..3).map(|i| Tensor::from_slice(&[rows(i); 32]));
    let weights = (1..4).map(|i| (ramp(&[64, 64]) * f64::from(i)).cos() * 0.1);
    [ramp(&[32, 64]).sin() * 0.3].into_iter().chain(weights).chain(rows).collect()
}

fn rig(switches: &str, fusion: Fusion, recorded: (Arc<Graph>, Vec<u64>)) -> Rig {
    let rewrites = switches.parse::<Switches>().expect("switches");
    Rig::with(TsConfig { rewrites, fusion, ..TsConfig::default() }, recorded)
}

/// The other thread is one for all: who has it runs alone.
static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

/// Runs both ways, and compares all outputs of all runs.
fn same_both_ways(ops: &[(usize, What)], fusion: Fusion, spoilt: Option<usize>) -> Rig {
    let _alone = ALONE.lock();
    tch::set_num_threads(2);
    let (on, off) = (rig("branches", fusion, towers(ops)), rig("-branches", fusion, towers(ops)));
    assert_eq!(off.program.program().parallel_regions(), 0);
    let inputs = inputs(spoilt);
    let held: Vec<&Tensor> = inputs.iter().collect();
    let expected = off.run(&held);
    for _ in 0..RUNS {
        let told = on.run(&held);
        for i in 0..told.0.len() {
            match expected.get(i) {
                Ok(buffer) => assert_same(&told.tensor(i), &tensor(buffer)),
                Err(error) => {
                    let got = told.error(i);
                    assert_eq!((&got.op, got.node, &got.message), (&error.op, error.node, &error.message));
                }
            }
        }
    }
    assert_eq!(on.stats().poisoned, off.stats().poisoned * RUNS as u64);
    assert_eq!(on.stats().steps, off.stats().steps * RUNS as u64, "every step runs once");
    assert_eq!(on.stats().copies, off.stats().copies * RUNS as u64, "what may be written in place still is");
    assert_eq!(on.used(), 0, "nothing is kept or counted twice");
    on
}

/// Three towers, one after the other.
fn plain() -> Vec<(usize, What)> {
    (0..3).flat_map(|t| [(t, What::Tanh), (t, What::Product), (t, What::Shared), (t, What::Rows)]).collect()
}

#[test]
fn towers_run_on_two_threads() {
    for fusion in [Fusion::Off, Fusion::Full] {
        let rig = same_both_ways(&plain(), fusion, None);
        let forks = rig.program.program().parallel_regions() as u64;
        assert!(forks > 0 && rig.program.program().text().contains("# branches: of steps"));
        assert_eq!(
            rig.stats().parallel_regions,
            forks * RUNS as u64 / 2,
            "half of the runs, as both ways are measured"
        );
    }
}

#[test]
fn what_one_tower_writes_in_place_no_other_reads_beside_it() {
    let ops: Vec<(usize, What)> = plain().into_iter().chain([(1, What::Tanh), (1, What::Taken)]).collect();
    assert!(same_both_ways(&ops, Fusion::Off, None).stats().parallel_regions > 0);
}

#[test]
fn an_error_on_either_side_reaches_what_depends_on_it() {
    for spoilt in 0..3 {
        let rig = same_both_ways(&plain(), Fusion::Off, Some(spoilt));
        assert!(rig.stats().parallel_regions > 0 && rig.stats().poisoned > 0);
    }
}

#[test]
fn one_thread_stays_one_and_so_do_programs_with_nothing_to_gain() {
    let inputs = inputs(None);
    let held: Vec<&Tensor> = inputs.iter().collect();
    // The count of threads is a thread's own.
    tch::set_num_threads(1);
    let one = rig("branches", Fusion::Full, towers(&plain()));
    (0..RUNS).for_each(|_| drop(one.run(&held)));
    assert!(one.program.program().parallel_regions() > 0 && one.stats().parallel_regions == 0);
    tch::set_num_threads(2);

    let chain: Vec<(usize, What)> = (0..20).map(|_| (0, What::Product)).collect();
    let build = |rows: i64, budget_bytes| {
        let (l, mut g) = (f32s(&[rows, 64]), G::default());
        let (x, w) = (g.param(&l), g.param(&f32s(&[64, 64])));
        let tower =
            |g: &mut G| (0..3).fold(x, |v, _| g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[v, w], &l));
        let outputs = [tower(&mut g), tower(&mut g)];
        let rewrites = "branches".parse().expect("switches");
        Rig::with(TsConfig { budget_bytes, rewrites, ..TsConfig::default() }, g.finish(&outputs))
            .program
            .program()
            .parallel_regions()
    };
    assert_eq!(build(32, 0), 1);
    assert_eq!([build(1, 0), build(4096, 0), build(32, 1 << 30)], [0; 3], "too short, threads of its own, a budget");
    assert!(
        rig("branches", Fusion::Off, towers(&chain)).program.program().text().contains("branches"),
        "the chain beside the others"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_any_towers_gives_the_same(
        ops in prop::collection::vec((0usize..3, prop::sample::select(vec![
            What::Product, What::Tanh, What::Sum, What::InPlace, What::Taken, What::Shared, What::Rows, What::Shown,
        ])), 4..40),
        full in any::<bool>(),
        spoilt in prop::option::of(0usize..3),
    ) {
        let rig = same_both_ways(&ops, if full { Fusion::Full } else { Fusion::Off }, spoilt);
        prop_assert!(rig.stats().parallel_regions > 0);
    }
}
