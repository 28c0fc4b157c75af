//! Attention written by hand and its gradient, as they are recorded.

use ltc_ir::{ArgFlags, ArgWriter, DType, Graph, Layout, LayoutRef, Scalar, ValueId, passes::Switches};
use ltc_ts::{Fusion, TsConfig};
use tch::{Kind, Tensor};

use super::{G, Rig, f32s};

pub(crate) fn config(rewrites: Switches, fusion: Fusion) -> TsConfig {
    TsConfig { rewrites, fusion, ..TsConfig::default() }
}

/// How often the rewrite happened.
pub(crate) fn times(rig: &Rig) -> usize {
    rig.program.program().rewrites().iter().find(|(n, _)| *n == "attention").map_or(0, |(_, times)| *times)
}

/// Largest difference of numbers; NaN must stand where it stood.
pub(crate) fn difference(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!((a.size(), a.stride(), a.kind()), (b.size(), b.stride(), b.kind()));
    assert!(
        a.isnan().equal(&b.isnan()),
        "NaN elsewhere: {} and {}",
        a.isnan().sum(Kind::Int64),
        b.isnan().sum(Kind::Int64)
    );
    (a.nan_to_num(0.0, 0.0, 0.0) - b.nan_to_num(0.0, 0.0, 0.0)).abs().max().double_value(&[])
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Mask {
    None,
    Added,
    Filled,
}

/// Self-attention of `b` times `h` heads of `e` numbers over `t` places, all three from one value `[b, t, 3 * h * e]`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Case {
    pub(crate) b: i64,
    pub(crate) h: i64,
    pub(crate) t: i64,
    pub(crate) e: i64,
    pub(crate) scale: Option<&'static str>,
    pub(crate) mask: Mask,
    /// Along which of `[b, h, t]` the mask changes.
    pub(crate) wide: [bool; 3],
    /// The gradient of the weights is an output.
    pub(crate) shown: bool,
}

pub(crate) const LONG: Case =
    Case { b: 2, h: 3, t: 260, e: 8, scale: Some("mul"), mask: Mask::None, wide: [false; 3], shown: false };

impl Case {
    pub(crate) fn mask_sizes(self) -> [i64; 4] {
        let [b, h, l] = self.wide;
        [if b { self.b } else { 1 }, if h { self.h } else { 1 }, if l { self.t } else { 1 }, self.t]
    }

    /// Outputs: the result `[b, t, h, e]`, then the gradient of the value.
    pub(crate) fn recorded(self) -> (std::sync::Arc<Graph>, Vec<u64>) {
        let Case { b, h, t, e, .. } = self;
        let (n, f32s_at) = (b * h, |sizes: &[i64], strides: &[i64]| Layout::strided(DType::F32, sizes, strides).into());
        let (four, three) = (f32s(&[b, h, t, t]), f32s(&[n, t, t]));
        let rows = f32s(&[n, t, e]);
        let mut g = G::default();
        let (x, grad) = (g.param(&f32s(&[b, t, 3 * h * e])), g.param(&f32s(&[b, t, h, e])));
        let mask = match self.mask {
            Mask::None => None,
            Mask::Added => Some(g.param(&f32s(&self.mask_sizes()))),
            Mask::Filled => Some(g.param(&Layout::contiguous(DType::Bool, &self.mask_sizes()).into())),
        };
        let fresh = ArgWriter::new().tensor_with(ArgFlags::MUT.and(ArgFlags::FRESH)).tensor().bool(false).clone();
        let copy = |g: &mut G, base, offset, view: &LayoutRef| {
            let v = g.read_view(base, offset, view);
            g.one("aten::copy_", &fresh, &[v], &f32s(view.sizes()))
        };
        let row = 3 * h * e;
        let turned: LayoutRef = f32s_at(&[b, h, t, e], &[t * row, e, row, 1]);
        let q = copy(&mut g, x, 0, &turned);
        let kt = copy(&mut g, x, h * e, &f32s_at(&[b, h, e, t], &[t * row, e, 1, row]));
        let v = copy(&mut g, x, 2 * h * e, &turned);
        let bmm = ArgWriter::new().tensor().tensor().clone();
        let view = |g: &mut G, v, layout: &LayoutRef| g.read_view(v, 0, layout);
        let (q3, kt3, v3) = (view(&mut g, q, &rows), view(&mut g, kt, &f32s(&[n, e, t])), view(&mut g, v, &rows));
        let scores = g.one("aten::bmm", &bmm, &[q3, kt3], &three);
        let mut s = view(&mut g, scores, &four);
        s = self.scaled(&mut g, s, &four);
        s = match (self.mask, mask) {
            (Mask::Added, Some(mask)) => g.add(s, mask, &four),
            (Mask::Filled, Some(mask)) => {
                let fill = ArgWriter::new().tensor().tensor().number(Scalar::Float(f64::NEG_INFINITY)).clone();
                g.one("aten::masked_fill.Scalar", &fill, &[s, mask], &four)
            }
            _ => s,
        };
        let w = g.one("aten::_softmax", ArgWriter::new().tensor().int(-1).bool(false), &[s], &four);
        let w3 = view(&mut g, w, &three);
        let out = g.one("aten::bmm", &bmm, &[w3, v3], &rows);
        let last_heads = f32s_at(&[b, t, h, e], &[h * t * e, e, t * e, 1]);
        let y = copy(&mut g, out, 0, &last_heads);

        let out_grad = copy(&mut g, grad, 0, &f32s_at(&[b, h, t, e], &[t * h * e, e, h * e, 1]));
        let wt = view(&mut g, w, &f32s_at(&[n, t, t], &[t * t, 1, t]));
        let og = view(&mut g, out_grad, &rows);
        let dv = g.one("aten::bmm", &bmm, &[wt, og], &rows);
        let og = view(&mut g, out_grad, &rows);
        let vt = view(&mut g, v, &f32s_at(&[n, e, t], &[t * e, 1, e]));
        let dw = g.one("aten::bmm", &bmm, &[og, vt], &three);
        let dw = view(&mut g, dw, &four);
        let back = ArgWriter::new().tensor().tensor().int(-1).int(6).clone();
        let mut ds = g.one("aten::_softmax_backward_data", &back, &[dw, w], &four);
        if let (Mask::Filled, Some(mask)) = (self.mask, mask) {
            let fill = ArgWriter::new().tensor().tensor().number(0i64.into()).clone();
            ds = g.one("aten::masked_fill.Scalar", &fill, &[ds, mask], &four);
        }
        ds = self.scaled(&mut g, ds, &four);
        let ds3 = view(&mut g, ds, &three);
        let qt = view(&mut g, q, &f32s_at(&[n, e, t], &[t * e, 1, e]));
        let dkt = g.one("aten::bmm", &bmm, &[qt, ds3], &f32s(&[n, e, t]));
        let (ds3, k3) = (view(&mut g, ds, &three), view(&mut g, kt, &f32s_at(&[n, t, e], &[t * e, 1, t])));
        let dq = g.one("aten::bmm", &bmm, &[ds3, k3], &rows);
        let flat = f32s(&[b, t, h * e]);
        let (dv, dq) = (copy(&mut g, dv, 0, &last_heads), copy(&mut g, dq, 0, &last_heads));
        let (dq, dv) = (view(&mut g, dq, &flat), view(&mut g, dv, &flat));
        let dk = view(&mut g, dkt, &f32s_at(&[b, t, h * e], &[h * t * e, 1, t]));
        let join = ArgWriter::new().tensors(&[true; 3], ArgFlags::NONE).int(2).clone();
        let dx = g.one("aten::cat", &join, &[dq, dk, dv], &f32s(&[b, t, row]));
        let outputs: Vec<ValueId> = if self.shown { vec![y, dx, dw] } else { vec![y, dx] };
        g.finish(&outputs)
    }

    fn scaled(self, g: &mut G, v: ValueId, layout: &LayoutRef) -> ValueId {
        let Some(name) = self.scale else { return v };
        let by = ArgWriter::new().tensor().wrapped(Scalar::Float(if name == "mul" { 0.5 } else { 2.0 })).clone();
        g.one(&format!("aten::{name}.Tensor"), &by, &[v], layout)
    }
}
