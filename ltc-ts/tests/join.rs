//! What `cat` and `stack` join is written where it will lie: that it is, that values and errors stay, where it is not.

mod common;

use std::sync::Arc;

use common::*;
use ltc_backend::{ExecError, Executable, Input, Inputs};
use ltc_ir::{ArgFlags, ArgWriter, ErrorClass, Graph, ValueId, passes::Switches};
use ltc_ts::{Fusion, TsConfig};
use proptest::prelude::*;
use tch::Tensor;

type Recorded = (Arc<Graph>, Vec<u64>);

fn unary(g: &mut G, op: &str, x: ValueId, sizes: &[i64]) -> ValueId {
    g.one(op, ArgWriter::new().tensor(), &[x], &f32s(sizes))
}

fn join(g: &mut G, op: &str, values: &[ValueId], dim: i64, sizes: &[i64]) -> ValueId {
    let args = ArgWriter::new().tensors(&vec![true; values.len()], ArgFlags::NONE).int(dim).clone();
    g.one(&format!("aten::{op}"), &args, values, &f32s(sizes))
}

fn rig(rewrites: Switches, recorded: &Recorded) -> Rig {
    Rig::with(TsConfig { rewrites, fusion: Fusion::Exact, ..TsConfig::default() }, recorded.clone())
}

fn listing(rig: &Rig) -> String {
    rig.program.program().text().split("graph(").next().expect("the listing").to_owned()
}

fn joins(rig: &Rig) -> usize {
    listing(rig).matches("alloc for").count()
}

const A: [i64; 3] = [4, 16, 512];

/// `[-x, relu(x), y]` joined, and something of it.
fn three(op: &str, dim: i64, sizes: &[i64]) -> Recorded {
    let mut g = G::default();
    let (x, y) = (g.param(&f32s(&A)), g.param(&f32s(&A)));
    let (a, b) = (unary(&mut g, "aten::neg", x, &A), unary(&mut g, "aten::relu", x, &A));
    let all = join(&mut g, op, &[a, b, y], dim, sizes);
    let more = g.one("aten::cumsum", ArgWriter::new().tensor().int(0).none(), &[all], &f32s(sizes));
    g.finish(&[all, more])
}

#[test]
fn kernels_write_where_their_results_are_joined() {
    let cases: [(&str, i64, &[i64]); 6] = [
        ("cat", 0, &[12, 16, 512]),
        ("cat", 1, &[4, 48, 512]),
        ("cat", -1, &[4, 16, 1536]),
        ("stack", 0, &[3, 4, 16, 512]),
        ("stack", 1, &[4, 3, 16, 512]),
        ("stack", -2, &[4, 16, 3, 512]),
    ];
    let (x, y) = (ramp(&A).sin(), ramp(&A).cos());
    for (op, dim, sizes) in cases {
        let recorded = three(op, dim, sizes);
        let (on, off) = (rig(Switches::default(), &recorded), rig("-join".parse().expect("a switch"), &recorded));
        let (got, expected) = (on.run(&[&x, &y]), off.run(&[&x, &y]));
        (0..2).for_each(|i| assert_same(&got.tensor(i), &expected.tensor(i)));
        let all = [&-&x, &x.relu(), &y];
        assert_same(&got.tensor(0), &if op == "cat" { Tensor::cat(&all, dim) } else { Tensor::stack(&all, dim) });
        assert_eq!((joins(&on), joins(&off)), (1, 0), "{op} {dim}");
        let text = listing(&on);
        assert!(!text.contains(&format!("aten::{op}(")) && text.matches(" = copy_slice(").count() == 1, "{text}");
        // The kernel writes two slices, the copy one, and nothing is copied but that.
        assert_eq!((on.stats().in_place, on.stats().copies), (3, 0), "{text}");
    }
}

#[test]
fn one_kernel_writes_several_pieces() {
    let (half, whole) = ([32, 512], [32, 1024]);
    let mut g = G::default();
    let (x, y) = (g.param(&f32s(&half)), g.param(&f32s(&half)));
    let (a, b) = (
        g.add(x, y, &f32s(&half)),
        g.one("aten::mul.Tensor", ArgWriter::new().tensor().tensor(), &[x, y], &f32s(&half)),
    );
    let all = join(&mut g, "cat", &[b, a], 1, &whole);
    let rig = rig(Switches::default(), &g.finish(&[all]));
    let (x, y) = (ramp(&half).sin(), ramp(&half).cos());
    assert_same(&rig.run(&[&x, &y]).tensor(0), &Tensor::cat(&[&x * &y, &x + &y], 1));
    assert_eq!((rig.stats().steps, rig.stats().kernels, rig.stats().copies), (2, 1, 0), "{}", listing(&rig));
    assert_eq!(rig.used(), 0);
}

#[test]
fn it_declines() {
    let case = |sizes: [i64; 2], used_twice: bool, kernels: bool| {
        let [rows, columns] = sizes;
        let mut g = G::default();
        let x = g.param(&f32s(&sizes));
        let a = if kernels { unary(&mut g, "aten::neg", x, &sizes) } else { x };
        let b = g.one("aten::cumsum", ArgWriter::new().tensor().int(0).none(), &[x], &f32s(&sizes));
        let all = join(&mut g, "cat", &[a, b], 1, &[rows, 2 * columns]);
        let outputs = if used_twice { vec![all, a] } else { vec![all] };
        joins(&rig(Switches::default(), &g.finish(&outputs)))
    };
    assert_eq!(case([256, 512], false, true), 1);
    assert_eq!(case([256, 512], true, true), 0, "somebody else reads the piece");
    assert_eq!(case([256, 512], false, false), 0, "no kernel takes part");
    assert_eq!(case([4, 512], false, true), 0, "too small");
    assert_eq!(case([8192, 64], false, true), 0, "rows are too short");
}

#[test]
fn a_piece_that_fails_fails_the_whole_and_nothing_else() {
    let sizes = [256, 256];
    let mut g = G::default();
    let (x, y) = (g.param(&f32s(&sizes)), g.param(&f32s(&sizes)));
    let (a, b) = (unary(&mut g, "aten::neg", x, &sizes), unary(&mut g, "aten::relu", y, &sizes));
    let c = unary(&mut g, "aten::abs", y, &sizes);
    let all = join(&mut g, "cat", &[a, b], 0, &[512, 256]);
    let rig = rig(Switches::default(), &g.finish(&[all, c]));
    assert_eq!(joins(&rig), 1);
    let good = || keep(rig.buffer(&ramp(&sizes)));
    let error = Arc::new(ExecError::new("test::op", ErrorClass::Runtime, "planted"));
    let bad = || Input { buffer: Err(error.clone()), donated: false };
    let told = rig.execute(vec![bad(), good()]);
    assert_eq!(told.error(0).message, "planted");
    assert_same(&told.tensor(1), &ramp(&sizes).abs());
    let told = rig.execute(vec![good(), bad()]);
    assert_eq!((told.error(0).message.as_str(), told.error(1).message.as_str()), ("planted", "planted"));
    let told = rig.execute(vec![good(), good()]);
    assert_same(&told.tensor(0), &Tensor::cat(&[-ramp(&sizes), ramp(&sizes).relu()], 0));
}

#[test]
fn other_sizes_take_the_program_over() {
    let build = |n: i64| {
        let mut g = G::default();
        let (x, y) = (g.param(&f32s(&[n, 512])), g.param(&f32s(&[n, 512])));
        let (a, b) = (unary(&mut g, "aten::neg", x, &[n, 512]), unary(&mut g, "aten::relu", y, &[n, 512]));
        let all = join(&mut g, "cat", &[a, y, b], 1, &[n, 1536]);
        let sum = g.add(all, all, &f32s(&[n, 1536]));
        g.finish(&[sum])
    };
    let rig = rig(Switches::default(), &build(256));
    assert_eq!(joins(&rig), 1);
    for n in [512, 3] {
        let (graph, numbers) = build(n);
        let respecialised = rig.program.respecialised(&graph).expect("sizes do not matter").expect("it lowers");
        let (x, y) = (ramp(&[n, 512]).sin(), ramp(&[n, 512]).cos());
        let mut told = Told::default();
        respecialised.execute(Inputs::new(vec![keep(rig.buffer(&x)), keep(rig.buffer(&y))], numbers), &mut told);
        let all = Tensor::cat(&[-&x, y.shallow_clone(), y.relu()], 1);
        assert_same(&told.tensor(0), &(&all + &all));
        assert_eq!(respecialised.text().contains("alloc for"), n == 512, "small ones are not worth it");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Several joins of what kernels, calls and joins made.
    #[test]
    fn values_stay(
        shape in prop::collection::vec((0usize..5, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..14),
        dim in 0..2i64,
        budget_bytes in prop::sample::select(vec![0usize, 1]),
    ) {
        let sizes = [128, 512];
        let wide = if dim == 0 { [256, 512] } else { [128, 1024] };
        let half = ltc_ir::Layout::strided(ltc_ir::DType::F32, &sizes, &[wide[1], 1]).into();
        let mut g = G::default();
        let mut values = vec![g.param(&f32s(&sizes)), g.param(&f32s(&sizes))];
        let mut joined = Vec::new();
        for (kind, a, b) in &shape {
            let (a, b) = (*a.get(&values), *b.get(&values));
            let value = match kind {
                0 => unary(&mut g, "aten::neg", a, &sizes),
                1 => g.add(a, b, &f32s(&sizes)),
                2 => g.one("aten::cumsum", ArgWriter::new().tensor().int(0).none(), &[a], &f32s(&sizes)),
                _ => {
                    let c = unary(&mut g, "aten::abs", a, &sizes);
                    let all = join(&mut g, "cat", &[c, if *kind == 3 { b } else { c }], dim, &wide);
                    joined.push(all);
                    let left = g.read_view(all, 0, &half);
                    unary(&mut g, "aten::neg", left, &sizes)
                }
            };
            values.push(value);
        }
        joined.push(values[values.len() - 1]);
        let recorded = g.finish(&joined);
        let (x, y) = (ramp(&sizes).sin(), ramp(&sizes).cos());
        let of = |rewrites: &str| {
            let rewrites = rewrites.parse().expect("a switch");
            let rig = Rig::with(TsConfig { rewrites, budget_bytes, ..TsConfig::default() }, recorded.clone());
            let told = rig.run(&[&x, &y]);
            let tensors: Vec<Tensor> = (0..joined.len()).map(|i| told.tensor(i).copy()).collect();
            drop(told);
            prop_assert_eq!((rig.used(), rig.stats().poisoned), (0, 0));
            Ok(tensors)
        };
        of("all")?.iter().zip(&of("-join")?).for_each(|(a, b)| assert_same(a, b));
    }
}
