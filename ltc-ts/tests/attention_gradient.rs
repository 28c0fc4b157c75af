//! Attention written by hand and its gradient, recorded as by autograd, become libtorch's fused kernels: that they do,
//! what comes out, and where they do not.

mod common;

use common::{
    attention::{Case, LONG, Mask, config, difference, times},
    *,
};
use ltc_backend::Backend;
use ltc_ir::passes::Switches;
use ltc_ts::Fusion;
use proptest::prelude::*;
use tch::{Kind, Tensor};

/// The value, the gradient of the result and the mask; with `blind` one query of the last head sees nothing.
fn inputs(case: Case, blind: bool) -> Vec<Tensor> {
    let Case { b, h, t, e, .. } = case;
    let wave = |sizes: &[i64], by: f64| (ramp(sizes) * by).sin();
    let mut inputs = vec![wave(&[b, t, 3 * h * e], 0.7) * 1.5, wave(&[b, t, h, e], 1.3)];
    let hidden = (ramp(&case.mask_sizes()) * 0.9).cos().lt(-0.3);
    let _ = hidden.select(3, 1).fill_(0);
    if blind {
        let _ = hidden.select(0, -1).select(0, -1).select(0, -1).fill_(1);
    }
    match case.mask {
        Mask::None => {}
        Mask::Added => {
            let soft = (ramp(&case.mask_sizes()) * 0.1).cos();
            inputs.push(soft.masked_fill(&hidden, f64::NEG_INFINITY));
        }
        Mask::Filled => inputs.push(hidden),
    }
    inputs
}

/// Result and gradient, by libtorch's autograd.
fn eager(case: Case, inputs: &[Tensor]) -> [Tensor; 2] {
    let Case { b, h, t, e, .. } = case;
    let x = inputs[0].detach().copy().set_requires_grad(true);
    let heads = x.chunk(3, -1).into_iter().map(|p| p.view([b, t, h, e]).transpose(1, 2)).collect::<Vec<_>>();
    let mut s = heads[0].matmul(&heads[1].transpose(-2, -1));
    s = if case.scale.is_some() { s * 0.5 } else { s };
    s = match case.mask {
        Mask::None => s,
        Mask::Added => s + &inputs[2],
        Mask::Filled => s.masked_fill(&inputs[2], f64::NEG_INFINITY),
    };
    let y = s.softmax(-1, Kind::Float).matmul(&heads[2]).transpose(1, 2).reshape([b, t, h * e]).view([b, t, h, e]);
    let grad = Tensor::run_backward(&[(&y * &inputs[1]).sum(Kind::Float)], &[&x], false, false);
    [y.detach(), grad[0].shallow_clone()]
}

fn agrees(case: Case, switches: Switches, blind: bool) -> Rig {
    let inputs = inputs(case, blind);
    let held: Vec<&Tensor> = inputs.iter().collect();
    let rig = Rig::with(config(switches, Fusion::Full), case.recorded());
    let (told, expected) = (rig.run(&held), eager(case, &inputs));
    for (i, expected) in expected.iter().enumerate() {
        let off_by = difference(&told.tensor(i), expected);
        assert!(off_by < 2e-5, "{case:?}: output {i} is off by {off_by}");
    }
    assert_eq!(rig.stats().guard_misses, 0);
    rig
}

#[test]
fn both_become_one_call_each_and_no_copies_are_left() {
    for (mask, wide) in [
        (Mask::None, [false; 3]),
        (Mask::Added, [false, false, true]),
        (Mask::Filled, [false, false, true]),
        (Mask::Filled, [true, false, false]),
        (Mask::Added, [true, true, true]),
    ] {
        for scale in [None, Some("mul"), Some("div")] {
            let case = Case { scale, mask, wide, ..LONG };
            let blind = mask != Mask::None;
            let rig = agrees(case, Switches::default(), blind);
            assert_eq!(times(&rig), 1, "{case:?}");
            let text = rig.program.program().text();
            let text = text.split("graph(").next().expect("the listing");
            let calls = |what: &str| text.matches(what).count();
            assert_eq!(
                (calls("flash_attention_for_cpu("), calls("flash_attention_for_cpu_backward(")),
                (1, 1),
                "{text}"
            );
            assert_eq!((calls("bmm("), calls("softmax")), (0, 0), "{text}");
            // What is left to do for a plain one: two calls, the join of the gradients, and views.
            if (mask, scale) == (Mask::None, None) {
                assert_eq!((rig.program.program().fused_nodes(), calls("copy_("), calls("cat(")), (0, 0, 1), "{text}");
            }
            agrees(case, Switches::only("attention"), blind);
        }
    }
}

#[test]
fn as_recorded_it_is_what_autograd_does() {
    for mask in [Mask::None, Mask::Added, Mask::Filled] {
        let case = Case { mask, wide: [true, false, true], ..LONG };
        assert_eq!(times(&agrees(case, Switches::none(), true)), 0);
    }
}

#[test]
fn other_numbers_run_as_recorded() {
    let case = Case { mask: Mask::Filled, wide: [false, false, true], ..LONG };
    let (inputs, recorded) = (inputs(case, false), case.recorded());
    let held: Vec<&Tensor> = inputs.iter().collect();
    // Forward and backward scale, filling of both.
    for (at, was, word) in [
        (0, 0.5f64.to_bits(), 0.25f64.to_bits()),
        (1, f64::NEG_INFINITY.to_bits(), (-3.0f64).to_bits()),
        (2, 0, 1),
        (3, 0.5f64.to_bits(), 0.25f64.to_bits()),
    ] {
        let [mut on, mut off] = [Switches::default(), Switches::none()]
            .map(|switches| Rig::with(config(switches, Fusion::Full), recorded.clone()));
        for rig in [&mut on, &mut off] {
            assert_eq!(rig.numbers[at], was);
            rig.numbers[at] = word;
        }
        let (got, expected) = (on.run(&held), off.run(&held));
        assert_eq!((times(&on), on.stats().guard_misses), (1, 1), "number {at}");
        (0..2).for_each(|i| assert_same(&got.tensor(i), &expected.tensor(i)));
    }
    // Another scale in both places is no other program.
    let mut rig = Rig::with(config(Switches::default(), Fusion::Full), recorded);
    (rig.numbers[0], rig.numbers[3]) = (0.25f64.to_bits(), 0.25f64.to_bits());
    let told = rig.run(&held);
    let mut off = Rig::with(config(Switches::none(), Fusion::Off), case.recorded());
    off.numbers.clone_from(&rig.numbers);
    let expected = off.run(&held);
    (0..2).for_each(|i| assert!(difference(&told.tensor(i), &expected.tensor(i)) < 2e-5));
    assert_eq!(rig.stats().guard_misses, 0);
}

#[test]
fn it_stays_where_its_parts_are_wanted_or_nothing_is_gained() {
    let applied = |case: Case, switches| times(&Rig::with(config(switches, Fusion::Full), case.recorded()));
    assert_eq!(applied(LONG, Switches::default()), 1);
    assert_eq!(applied(LONG, "-attention".parse().expect("switches")), 0);
    assert_eq!(applied(Case { shown: true, ..LONG }, Switches::default()), 0);
    let short = |t, e| applied(Case { t, e, ..LONG }, Switches::default());
    assert_eq!([short(24, 8), short(48, 8), short(48, 64), short(128, 64)], [0, 1, 0, 1]);
    assert_eq!(times(&Rig::with(config(Switches::default(), Fusion::Exact), LONG.recorded())), 0);
}

#[test]
fn a_step_holds_no_scores() {
    let case = Case { t: 512, ..LONG };
    let scores = (case.b * case.h * case.t * case.t * 4) as usize;
    let peak = |switches| {
        let rig = agrees(case, switches, false);
        rig.backend.memory(D).peak
    };
    let (with, without) = (peak(Switches::default()), peak(Switches::none()));
    assert!(with < scores && without > 2 * scores, "{with} and {without} bytes, scores take {scores}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn values_are_eagers(
        (b, h, t, e) in (1i64..4, 1i64..4, 256i64..300, 2i64..20),
        scale in prop::sample::select(vec![None, Some("mul"), Some("div")]),
        mask in prop::sample::select(vec![Mask::None, Mask::Added, Mask::Filled]),
        wide in any::<[bool; 3]>(),
        blind in any::<bool>(),
    ) {
        let case = Case { b, h, t, e, scale, mask, wide, shown: false };
        prop_assert_eq!(times(&agrees(case, Switches::default(), blind)), 1);
    }
}
