//! Attention written by hand becomes libtorch's fused kernel: that it does, what comes out, and where it does not.

mod common;

use common::{
    attention::{Mask, config, difference, times},
    *,
};
use ltc_ir::{ArgWriter, DType, Layout, LayoutRef, Scalar, ValueId, passes::Switches};
use ltc_ts::{Fusion, TsConfig};
use tch::{Kind, Tensor};

#[derive(Clone, Copy, Debug)]
struct Shape {
    heads: i64,
    queries: i64,
    keys: i64,
    scale: Option<&'static str>,
    mask: Mask,
    /// The mask differs between pairs of heads, and not between queries.
    padding: bool,
    /// The weights are an output too.
    shown: bool,
}

const E: i64 = 16;
const LONG: Shape =
    Shape { heads: 4, queries: 200, keys: 300, scale: Some("mul"), mask: Mask::None, padding: false, shown: false };

impl Shape {
    /// As `q @ k.transpose(-2, -1)` of four dimensions is recorded.
    fn rig(self, config: TsConfig) -> Rig {
        let Shape { heads: n, queries: l, keys: s, .. } = self;
        let mut g = G::default();
        let (q, k) = (g.param(&f32s(&[n, l, E])), g.param(&f32s(&[n, s, E])));
        let v = g.param(&f32s(&[n, s, E]));
        let turned: LayoutRef = Layout::strided(DType::F32, &[n, E, s], &[s * E, 1, E]).into();
        let kt = g.read_view(k, 0, &turned);
        let bmm = ArgWriter::new().tensor().tensor().clone();
        let scores = g.one("aten::bmm", &bmm, &[q, kt], &f32s(&[n, l, s]));
        let four = f32s(&[n / 2, 2, l, s]);
        let mut x = g.read_view(scores, 0, &four);
        if let Some(name) = self.scale {
            let args = ArgWriter::new().tensor().wrapped(Scalar::Float(if name == "mul" { 0.25 } else { 4.0 })).clone();
            x = g.one(&format!("aten::{name}.Tensor"), &args, &[x], &four);
        }
        x = self.masked(&mut g, x, &four);
        let softmax = ArgWriter::new().tensor().int(-1).bool(false).clone();
        let weights = g.one("aten::_softmax", &softmax, &[x], &four);
        let three = g.read_view(weights, 0, &f32s(&[n, l, s]));
        let out = g.one("aten::bmm", &bmm, &[three, v], &f32s(&[n, l, E]));
        let outputs: Vec<ValueId> = if self.shown { vec![out, weights] } else { vec![out] };
        Rig::with(config, g.finish(&outputs))
    }

    fn masked(self, g: &mut G, x: ValueId, layout: &LayoutRef) -> ValueId {
        let (pairs, l, s) = (self.heads / 2, self.queries, self.keys);
        match self.mask {
            Mask::None => x,
            Mask::Added => {
                let mask = g.param(&f32s(&if self.padding { [pairs, 1, 1, s] } else { [1, 1, l, s] }));
                g.add(x, mask, layout)
            }
            Mask::Filled => {
                let sizes = if self.padding { vec![pairs, 1, 1, s] } else { vec![l, s] };
                let mask = g.param(&Layout::contiguous(DType::Bool, &sizes).into());
                let args = ArgWriter::new().tensor().tensor().number(Scalar::Float(f64::NEG_INFINITY)).clone();
                g.one("aten::masked_fill.Scalar", &args, &[x, mask], layout)
            }
        }
    }

    /// Queries, keys, values and the mask: the second query sees nothing.
    fn inputs(self) -> Vec<Tensor> {
        let (n, l, s) = (self.heads, self.queries, self.keys);
        let wave = |rows: i64, by: f64| (ramp(&[n, rows, E]) * by).sin() * 2.0;
        let mut inputs = vec![wave(l, 0.7), wave(s, 1.3), wave(s, 0.3)];
        let hidden = Tensor::ones([l, s], (Kind::Bool, tch::Device::Cpu)).triu(1);
        let _ = hidden.get(1).fill_(1);
        // One pair sees half of the keys, the other nothing.
        let hidden = match self.padding {
            true => Tensor::stack(&[hidden.get(l / 2), hidden.get(1)], 0).reshape([2, 1, 1, s]),
            false => hidden,
        };
        match self.mask {
            Mask::None => {}
            Mask::Added => {
                let soft = (ramp(&hidden.size()) * 0.1).cos();
                let mask = soft.masked_fill(&hidden, f64::NEG_INFINITY);
                inputs.push(if self.padding { mask } else { mask.reshape([1, 1, l, s]) });
            }
            Mask::Filled => inputs.push(hidden),
        }
        inputs
    }
}

#[test]
fn it_becomes_one_call() {
    for (mask, padding) in
        [(Mask::None, false), (Mask::Added, false), (Mask::Filled, false), (Mask::Added, true), (Mask::Filled, true)]
    {
        for scale in [None, Some("mul"), Some("div")] {
            let shape = Shape { scale, mask, padding, ..LONG };
            let inputs = shape.inputs();
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            let on = shape.rig(config(Switches::only("attention"), Fusion::Full));
            let off = shape.rig(config(Switches::none(), Fusion::Off));
            let (got, expected) = (on.run(&inputs).tensor(0), off.run(&inputs).tensor(0));
            assert_eq!((times(&on), times(&off)), (1, 0), "{shape:?}");
            let text = on.program.program().text();
            let text = text.split("graph(").next().expect("the listing");
            assert!(text.contains("flash_attention") && !text.contains("bmm("), "{text}");
            assert_eq!(on.stats().guard_misses, 0);
            assert_eq!(expected.isnan().any().int64_value(&[]) == 1, mask != Mask::None, "the test has a row of NaN");
            let off_by = difference(&got, &expected);
            assert!(off_by < 2e-6, "{shape:?}: off by {off_by}");
        }
    }
}

#[test]
fn other_fillings_run_as_recorded() {
    let shape = Shape { mask: Mask::Filled, ..LONG };
    let inputs = shape.inputs();
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let mut on = shape.rig(config(Switches::only("attention"), Fusion::Full));
    let mut off = shape.rig(config(Switches::none(), Fusion::Full));
    for rig in [&mut on, &mut off] {
        let filling = rig.numbers.iter_mut().find(|w| **w == f64::NEG_INFINITY.to_bits());
        *filling.expect("a number") = (-3.0f64).to_bits();
    }
    assert_same(&on.run(&inputs).tensor(0), &off.run(&inputs).tensor(0));
    assert_eq!((times(&on), on.stats().guard_misses), (1, 1));
}

#[test]
fn it_stays_where_bits_count_or_weights_are_wanted_or_nothing_is_gained() {
    let full = || config(Switches::default(), Fusion::Full);
    assert_eq!(times(&LONG.rig(full())), 1);
    assert_eq!(times(&LONG.rig(config(Switches::default(), Fusion::Exact))), 0);
    assert_eq!(times(&LONG.rig(config(Switches::default(), Fusion::Off))), 0);
    assert_eq!(times(&Shape { shown: true, ..LONG }.rig(full())), 0);
    assert_eq!(times(&Shape { keys: 32, ..LONG }.rig(full())), 0);
    assert_eq!(times(&Shape { queries: 1, ..LONG }.rig(full())), 0);
}
