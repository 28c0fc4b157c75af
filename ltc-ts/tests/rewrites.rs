//! Whole-graph rewrites: that they happen, that values stay, that they decline where they would lose.

mod common;

use common::*;
use ltc_ir::{ArgFlags, ArgWriter, DType, Layout, LayoutRef, ValueId, passes::Switches};
use ltc_ts::{Fusion, TsConfig};
use tch::{Kind, Tensor};

fn config(rewrites: Switches) -> TsConfig {
    TsConfig { rewrites, ..TsConfig::default() }
}

fn transposed(sizes: [i64; 2]) -> LayoutRef {
    Layout::strided(DType::F32, &sizes, &[1, sizes[0]]).into()
}

/// How often a rewrite applied.
fn times(rig: &Rig, name: &str) -> usize {
    rig.program.program().rewrites().iter().find(|(n, _)| *n == name).map_or(0, |(_, times)| *times)
}

fn clone_of(g: &mut G, x: ValueId, layout: &LayoutRef) -> ValueId {
    let fresh = ArgFlags::MUT.and(ArgFlags::FRESH);
    g.one("aten::copy_", ArgWriter::new().tensor_with(fresh).tensor().bool(false), &[x], layout)
}

#[test]
fn views_of_views_and_copies_of_nothing_new_are_not_made() {
    let (square, row) = (f32s(&[4, 4]), f32s(&[4]));
    let build = || {
        let mut g = G::default();
        let x = g.param(&square);
        let there = g.read_view(x, 0, &transposed([4, 4]));
        let back = g.read_view(there, 0, &square);
        let same = clone_of(&mut g, back, &square);
        let line = g.read_view(same, 4, &row);
        let sum = g.one("aten::mv", ArgWriter::new().tensor().tensor(), &[same, line], &row);
        g.finish(&[sum])
    };
    let a = ramp(&[4, 4]);
    let expected = a.mv(&a.get(1));
    let on = Rig::with(TsConfig { fusion: Fusion::Off, ..config(Switches::only("views")) }, build());
    assert_same(&on.run(&[&a]).tensor(0), &expected);
    assert_eq!((times(&on, "views"), on.stats().steps), (2, 2), "one view and the product are left");
    let off = Rig::with(TsConfig { fusion: Fusion::Off, ..config(Switches::none()) }, build());
    assert_same(&off.run(&[&a]).tensor(0), &expected);
    assert_eq!((times(&off, "views"), off.stats().steps), (0, 5));
}

#[test]
fn what_was_written_is_read_without_its_surroundings() {
    let (square, row) = (f32s(&[4, 4]), f32s(&[4]));
    let mut g = G::default();
    let (x, v) = (g.param(&square), g.param(&row));
    let y = g.write_view(x, v, 8, &row, &square);
    let again = g.read_view(y, 8, &row);
    let other = g.read_view(y, 4, &row);
    let (a, b) = (g.relu(again, &row), g.relu(other, &row));
    let rig = Rig::with(config(Switches::only("views")), g.finish(&[a, b]));
    let (m, line) = (ramp(&[4, 4]), ramp(&[4]) * -2.0);
    let told = rig.run(&[&m, &line]);
    assert_same(&told.tensor(0), &line.relu());
    assert_same(&told.tensor(1), &m.get(1).relu());
    assert_eq!(times(&rig, "views"), 1);
}

/// `x @ y + x` twice, then their sum.
fn twice() -> (std::sync::Arc<ltc_ir::Graph>, Vec<u64>) {
    let l = f32s(&[8, 8]);
    let mut g = G::default();
    let (x, y) = (g.param(&l), g.param(&l));
    let one = |g: &mut G| {
        let m = g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[x, y], &l);
        g.add(m, x, &l)
    };
    let (a, b) = (one(&mut g), one(&mut g));
    let z = g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[a, b], &l);
    g.finish(&[z])
}

#[test]
fn what_is_computed_twice_is_computed_once() {
    let (x, y) = (ramp(&[8, 8]) * 0.125, ramp(&[8, 8]).sin());
    let m = x.mm(&y) + &x;
    let mut rig = Rig::with(config(Switches::only("common")), twice());
    assert_same(&rig.run(&[&x, &y]).tensor(0), &m.mm(&m));
    assert_eq!((times(&rig, "common"), rig.stats().steps), (2, 3));
    assert_eq!(rig.stats().guard_misses, 0);
    // The rewrite assumed that both additions add once their operand.
    rig.numbers = vec![1, 3];
    let n = x.mm(&y) + &x * 3.0;
    assert_same(&rig.run(&[&x, &y]).tensor(0), &m.mm(&n));
    assert_eq!(rig.stats().guard_misses, 1, "the graph ran as recorded");
}

#[test]
fn large_values_are_computed_again_rather_than_kept_for_long() {
    let build = |n: i64, between: usize| {
        let l = f32s(&[n]);
        let mut g = G::default();
        let x = g.param(&l);
        let a = g.one("aten::sin", ArgWriter::new().tensor(), &[x], &l);
        let mut y = g.one("aten::cumsum", ArgWriter::new().tensor().int(0).none(), &[a], &l);
        for _ in 0..between {
            y = g.one("aten::cumsum", ArgWriter::new().tensor().int(0).none(), &[y], &l);
        }
        let b = g.one("aten::sin", ArgWriter::new().tensor(), &[x], &l);
        let z = g.add(y, b, &l);
        g.finish(&[z])
    };
    let applied = |n, between| times(&Rig::with(config(Switches::only("common")), build(n, between)), "common");
    assert_eq!([applied(64, 40), applied(1 << 20, 2), applied(1 << 20, 40)], [1, 1, 0]);
}

#[test]
fn gradients_nobody_reads_are_not_computed() {
    let (x, w, y, n) = (f32s(&[2, 3, 8, 8]), f32s(&[4, 3, 3, 3]), f32s(&[2, 4, 8, 8]), f32s(&[4]));
    for wanted in 0..3 {
        let mut g = G::default();
        let (grad, input, weight) = (g.param(&y), g.param(&x), g.param(&w));
        let args = ArgWriter::new()
            .tensor()
            .tensor()
            .tensor()
            .ints(&[4])
            .ints(&[1, 1])
            .ints(&[1, 1])
            .ints(&[1, 1])
            .bool(false)
            .ints(&[0, 0])
            .int(1)
            .bools(&[true, true, true])
            .clone();
        let results = [x.clone(), w.clone(), n.clone()];
        let all = g.call("aten::convolution_backward", &args, &[grad, input, weight], &results);
        let (graph, numbers) = g.finish(&[all[wanted]]);
        let on = Rig::with(config(Switches::only("unused")), (graph.clone(), numbers.clone()));
        let off = Rig::with(config(Switches::none()), (graph, numbers));
        let inputs = [ramp(&[2, 4, 8, 8]).sin(), ramp(&[2, 3, 8, 8]).cos(), ramp(&[4, 3, 3, 3]).sin()];
        let [a, b, c] = &inputs;
        assert_same(&on.run(&[a, b, c]).tensor(0), &off.run(&[a, b, c]).tensor(0));
        assert_eq!((times(&on, "unused"), times(&off, "unused")), (1, 0));
        // libtorch computes the bias's gradient along with the weight's.
        let asked = |i: usize| i == wanted || (i, wanted) == (1, 2);
        let mask: Vec<&str> = (0..3).map(|i| if asked(i) { "true" } else { "false" }).collect();
        assert!(on.program.program().text().contains(&mask.join(", ")), "{}", on.program.program().text());
    }
}

#[test]
fn a_write_under_a_mask_becomes_part_of_a_kernel() {
    let (l, mask, value) = (f32s(&[4, 6]), LayoutRef::new(Layout::contiguous(DType::Bool, &[4, 6])), f32s(&[]));
    let build = |mask: &LayoutRef, value: &LayoutRef| {
        let mut g = G::default();
        let (x, m, v) = (g.param(&l), g.param(mask), g.param(value));
        let args =
            ArgWriter::new().tensor_with(ArgFlags::MUT).tensors(&[true], ArgFlags::NONE).tensor().bool(false).clone();
        let y = g.one("aten::index_put_", &args, &[x, m, v], &l);
        let z = g.add(y, x, &l);
        g.finish(&[z])
    };
    let (a, s) = (ramp(&[4, 6]), Tensor::from(0.5f32));
    let m = a.lt(0.0);
    let rig = Rig::with(config(Switches::only("masked")), build(&mask, &value));
    assert_same(&rig.run(&[&a, &m, &s]).tensor(0), &(s.where_self(&m, &a) + &a));
    assert_eq!((times(&rig, "masked"), rig.stats().steps, rig.stats().kernels), (1, 1, 1));
    // One value per hole is no `where`.
    let holes = m.sum(Kind::Int64).int64_value(&[]);
    let values = ramp(&[holes]);
    let rig = Rig::with(config(Switches::default()), build(&mask, &f32s(&[holes])));
    let expected = a.copy().index_put_(&[Some(&m)], &values, false) + &a;
    assert_same(&rig.run(&[&a, &m, &values]).tensor(0), &expected);
    assert_eq!(times(&rig, "masked"), 0);
}

/// Convolution, batch norm, relu, twice, and the gradient of the last convolution; outputs are the last picture, the
/// gradient of the weight, and that of the picture.
fn block(n: i64, c: i64, side: i64) -> (std::sync::Arc<ltc_ir::Graph>, Vec<u64>) {
    let (image, kernel, channels) = (f32s(&[n, c, side, side]), f32s(&[c, c, 3, 3]), f32s(&[c]));
    let mut g = G::default();
    let (mut x, w, gamma, beta) = (g.param(&image), g.param(&kernel), g.param(&channels), g.param(&channels));
    let mut before = x;
    for _ in 0..2 {
        let conv = ArgWriter::new()
            .tensor()
            .tensor()
            .none()
            .ints(&[1, 1])
            .ints(&[1, 1])
            .ints(&[1, 1])
            .bool(false)
            .ints(&[0, 0])
            .int(1)
            .clone();
        let y = g.one("aten::convolution", &conv, &[x, w], &image);
        let norm = ArgWriter::new().tensor().tensor().tensor().none().none().bool(true).float(0.1).float(1e-5).clone();
        let results = [image.clone(), channels.clone(), channels.clone()];
        let y = g.call("aten::native_batch_norm", &norm, &[y, gamma, beta], &results)[0];
        before = x;
        x = g.relu(y, &image);
    }
    let backward = ArgWriter::new()
        .tensor()
        .tensor()
        .tensor()
        .none()
        .ints(&[1, 1])
        .ints(&[1, 1])
        .ints(&[1, 1])
        .bool(false)
        .ints(&[0, 0])
        .int(1)
        .bools(&[true, true, false])
        .clone();
    let grads = g.call("aten::convolution_backward", &backward, &[x, before, w], &[image, kernel]);
    let total = ArgWriter::new().tensor().none().clone();
    let loss = g.one("aten::sum", &total, &[grads[0]], &f32s(&[]));
    g.finish(&[x, grads[1], loss])
}

fn close(got: &Tensor, expected: &Tensor) {
    assert_eq!((got.size(), got.stride(), got.kind()), (expected.size(), expected.stride(), expected.kind()));
    let scale = expected.abs().max().double_value(&[]).max(1e-3);
    let off = (got - expected).abs().max().double_value(&[]);
    assert!(off <= 1e-4 * scale, "off by {off} of {scale}");
}

#[test]
fn convolutions_and_what_lies_between_run_channels_last() {
    let (n, c, side) = (4, 16, 12);
    let inputs = [ramp(&[n, c, side, side]).sin(), ramp(&[c, c, 3, 3]).cos() * 0.1, ramp(&[c]) * 0.1, ramp(&[c])];
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let off = Rig::with(config(Switches::none()), block(n, c, side));
    let on = Rig::with(config(Switches::only("layout")), block(n, c, side));
    let (expected, got) = (off.run(&inputs), on.run(&inputs));
    (0..3).for_each(|i| close(&got.tensor(i), &expected.tensor(i)));
    // Two convolutions, norms and relus, and the gradient of the picture.
    assert_eq!(times(&on, "layout"), 7);
    assert_eq!(
        on.program.program().text().matches("copy_").count(),
        2,
        "the picture in, the last picture out; sums read any"
    );
    // It is not exact, so it goes with kernels that are not.
    let exact = Rig::with(TsConfig { fusion: Fusion::Exact, ..TsConfig::default() }, block(n, c, side));
    assert_eq!(times(&exact, "layout"), 0);
    let again = exact.run(&inputs);
    (0..3).for_each(|i| close(&again.tensor(i), &expected.tensor(i)));
}

#[test]
fn layouts_stay_where_copies_would_cost_more() {
    let few_channels = Rig::with(config(Switches::only("layout")), block(4, 4, 12));
    assert_eq!(times(&few_channels, "layout"), 0);
    let tiny = Rig::with(config(Switches::only("layout")), block(1, 8, 3));
    let not_asked_for = Rig::with(config(Switches::default()), block(4, 16, 12));
    assert_eq!(times(&not_asked_for, "layout"), 0);
    assert_eq!(times(&tiny, "layout"), 0);
}

/// `relu(addmm(bias, x, w))`, then a product without one.
fn layer(rows: i64, width: i64, bias: &LayoutRef) -> (std::sync::Arc<ltc_ir::Graph>, Vec<u64>) {
    let (l, weight) = (f32s(&[rows, width]), f32s(&[width, width]));
    let mut g = G::default();
    let (x, w, b) = (g.param(&l), g.param(&weight), g.param(bias));
    let addmm = ArgWriter::new().tensor().tensor().tensor().number(1i64.into()).number(1i64.into()).clone();
    let y = g.one("aten::addmm", &addmm, &[b, x, w], &l);
    let z = g.relu(y, &l);
    let end = g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[z, w], &l);
    g.finish(&[end])
}

#[test]
fn a_bias_is_added_by_the_kernel_after_the_product_in_the_products_memory() {
    let (rows, width) = (128, 96);
    let inputs = [ramp(&[rows, width]).sin(), ramp(&[width, width]).cos() * 0.1, ramp(&[width]).sin()];
    let [x, w, b] = &inputs;
    let bias = f32s(&[width]);
    let mut on = Rig::with(config(Switches::only("bias")), layer(rows, width, &bias));
    let off = Rig::with(config(Switches::none()), layer(rows, width, &bias));
    close(&on.run(&[x, w, b]).tensor(0), &(x.mm(w) + b).relu().mm(w));
    close(&off.run(&[x, w, b]).tensor(0), &(x.mm(w) + b).relu().mm(w));
    assert_eq!((times(&on, "bias"), times(&off, "bias")), (1, 0));
    let text = on.program.program().text();
    assert!(text.contains("[add relu]") && text.contains("fused(s3!"), "{text}");
    // Product, kernel, product: and the kernel writes where the product lies.
    let stats = on.stats();
    assert_eq!((stats.steps, stats.kernels, stats.in_place, stats.guard_misses), (3, 1, 1, 0), "{text}");
    // Another factor than one runs as recorded.
    on.numbers = vec![1, 3];
    close(&on.run(&[x, w, b]).tensor(0), &(x.mm(w) * 3.0 + b).relu().mm(w));
    assert_eq!(on.stats().guard_misses, 1);
    // A matrix that is added is no bias, and where bits count all stays.
    let matrix = Rig::with(config(Switches::default()), layer(width, width, &f32s(&[width, width])));
    let exact = Rig::with(TsConfig { fusion: Fusion::Exact, ..TsConfig::default() }, layer(rows, width, &bias));
    let large = Rig::with(config(Switches::default()), layer(8, 256, &f32s(&[256])));
    assert_eq!((times(&matrix, "bias"), times(&exact, "bias"), times(&large, "bias")), (0, 0, 0));
}

/// `relu` of a layer of rows in a batch, whose result is seen in these sizes, and once more as it is in the way back.
fn batched(sizes: [i64; 3], seen: &[&[i64]]) -> (std::sync::Arc<ltc_ir::Graph>, Vec<u64>) {
    let [rows, width] = [sizes[0] * sizes[1], sizes[2]];
    let (l, weight) = (f32s(&[rows, width]), f32s(&[width, width]));
    let mut g = G::default();
    let (x, w, b) = (g.param(&l), g.param(&weight), g.param(&f32s(&[width])));
    let addmm = ArgWriter::new().tensor().tensor().tensor().number(1i64.into()).number(1i64.into()).clone();
    let y = g.one("aten::addmm", &addmm, &[b, x, w], &l);
    let outputs: Vec<_> = seen
        .iter()
        .map(|sizes| {
            let view = g.one("ltc::read_view", ArgWriter::new().tensor().int(0), &[y], &f32s(sizes));
            g.relu(view, &f32s(sizes))
        })
        .collect();
    g.finish(&outputs)
}

#[test]
fn a_bias_is_added_where_the_product_is_seen_in_other_sizes() {
    let sizes = [4, 32, 96];
    let inputs = [ramp(&[128, 96]).sin(), ramp(&[96, 96]).cos() * 0.1, ramp(&[96]).sin()];
    let [x, w, b] = &inputs;
    let expected = (x.mm(w) + b).relu();
    let bias = |seen: &[&[i64]]| Rig::with(config(Switches::only("bias")), batched(sizes, seen));
    let mut once = bias(&[&sizes]);
    close(&once.run(&[x, w, b]).tensor(0), &expected.view(sizes));
    let text = once.program.program().text();
    assert!(text.contains("[add relu]"), "{text}");
    assert_eq!(once.stats().kernels, 1, "{text}");
    once.numbers = vec![1, 3];
    close(&once.run(&[x, w, b]).tensor(0), &(x.mm(w) * 3.0 + b).relu().view(sizes));
    // Twice the same is one kernel; in two sizes, or with other columns, the sum has the product's sizes.
    for (seen, kernels) in [(vec![&sizes[..]; 2], 1), (vec![&sizes[..], &[2, 64, 96]], 2), (vec![&[12_288][..]], 1)] {
        let rig = bias(&seen);
        let run = rig.run(&[x, w, b]);
        seen.iter().enumerate().for_each(|(i, sizes)| close(&run.tensor(i), &expected.view(*sizes)));
        assert_eq!((times(&rig, "bias"), rig.stats().kernels), (1, kernels), "{}", rig.program.program().text());
    }
}
