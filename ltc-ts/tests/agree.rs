//! Random programs of reads, writes and views agree with a reference that copies everything, rewritten or not.

mod common;

use common::*;
use ltc_ir::{ArgFlags, ArgWriter, DType, Layout, LayoutRef, ValueId, passes::Switches};
use ltc_ts::{Fusion, TsConfig};
use proptest::prelude::*;
use tch::Tensor;

const SIDE: i64 = 4;

/// One operation on earlier values, picked by number modulo how many there are.
#[derive(Clone, Debug)]
enum Action {
    Add(usize, usize),
    AddInPlace(usize, usize),
    Relu(usize),
    /// A copy of a view of a view, back where it came from.
    ThereAndBack(usize),
    /// Write the transpose of one value over another.
    WriteTransposed(usize, usize),
    /// Write row `i` of one value into row `j` of another.
    WriteRow(usize, usize, i64, i64),
}

fn action() -> impl Strategy<Value = Action> {
    let (v, row) = (0usize..100, 0..SIDE);
    prop_oneof![
        (v.clone(), v.clone()).prop_map(|(a, b)| Action::Add(a, b)),
        (v.clone(), v.clone()).prop_map(|(a, b)| Action::AddInPlace(a, b)),
        v.clone().prop_map(Action::Relu),
        v.clone().prop_map(Action::ThereAndBack),
        (v.clone(), v.clone()).prop_map(|(a, b)| Action::WriteTransposed(a, b)),
        (v.clone(), v, row.clone(), row).prop_map(|(a, b, i, j)| Action::WriteRow(a, b, i, j)),
    ]
}

/// Records an action, and does it on copies.
fn apply(action: &Action, g: &mut G, ids: &mut Vec<ValueId>, values: &mut Vec<Tensor>) {
    let square = f32s(&[SIDE, SIDE]);
    let transposed = LayoutRef::new(Layout::strided(DType::F32, &[SIDE, SIDE], &[1, SIDE]));
    let row = f32s(&[SIDE]);
    let at = |i: &usize| i % ids.len();
    let (id, value) = match action {
        Action::Add(a, b) => (g.add(ids[at(a)], ids[at(b)], &square), &values[at(a)] + &values[at(b)]),
        Action::AddInPlace(a, b) => (g.add_in_place(ids[at(a)], ids[at(b)], &square), &values[at(a)] + &values[at(b)]),
        Action::Relu(a) => (g.relu(ids[at(a)], &square), values[at(a)].relu()),
        Action::ThereAndBack(a) => {
            let there = g.read_view(ids[at(a)], 0, &transposed);
            let back = g.read_view(there, 0, &square);
            let fresh = ArgFlags::MUT.and(ArgFlags::FRESH);
            let copy = ArgWriter::new().tensor_with(fresh).tensor().bool(false).clone();
            (g.one("aten::copy_", &copy, &[back], &square), values[at(a)].copy())
        }
        Action::WriteTransposed(a, b) => {
            let view = g.read_view(ids[at(b)], 0, &transposed);
            (g.write_view(ids[at(a)], view, 0, &square, &square), values[at(b)].tr().contiguous())
        }
        Action::WriteRow(a, b, i, j) => {
            let view = g.read_view(ids[at(b)], i * SIDE, &row);
            let mut new = values[at(a)].copy();
            new.select(0, *j).copy_(&values[at(b)].select(0, *i));
            new = new.contiguous();
            (g.write_view(ids[at(a)], view, j * SIDE, &row, &square), new)
        }
    };
    ids.push(id);
    values.push(value);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn programs_agree_with_copying_everything(
        actions in prop::collection::vec(action(), 1..25),
        wanted in prop::collection::vec(any::<bool>(), 25),
        donated in any::<[bool; 2]>(),
        held in any::<[bool; 2]>(),
        reuse in any::<bool>(),
        fusion in any::<bool>(),
        rewritten in any::<bool>(),
    ) {
        let square = f32s(&[SIDE, SIDE]);
        let mut g = G::default();
        let mut ids = vec![g.param(&square), g.param(&square)];
        let inputs = [ramp(&[SIDE, SIDE]), ramp(&[SIDE, SIDE]).cos()];
        let mut values: Vec<Tensor> = inputs.iter().map(Tensor::copy).collect();
        for a in &actions {
            apply(a, &mut g, &mut ids, &mut values);
        }
        // The last value always, so that there is something to compare.
        let outputs: Vec<usize> = (2..ids.len()).filter(|&i| wanted[i - 2] || i + 1 == ids.len()).collect();
        let output_ids: Vec<ValueId> = outputs.iter().map(|&i| ids[i]).collect();
        let config = TsConfig {
            reuse,
            fusion: if fusion { Fusion::Full } else { Fusion::Off },
            rewrites: if rewritten { Switches::default() } else { Switches::none() },
            ..TsConfig::default()
        };
        let rig = Rig::with(config, g.finish(&output_ids));
        let buffers = [rig.buffer(&inputs[0]), rig.buffer(&inputs[1])];
        let holders: Vec<_> = buffers.iter().zip(held).filter(|(_, h)| *h).map(|(b, _)| b.clone()).collect();
        let params = buffers.into_iter().zip(donated).map(|(b, d)| if d { donate(b) } else { keep(b) }).collect();
        let told = rig.execute(params);
        for (k, &i) in outputs.iter().enumerate() {
            prop_assert!(told.tensor(k).equal(&values[i]), "value {i} of {actions:?}");
        }
        let still: Vec<&Tensor> = inputs.iter().zip(held).filter(|(_, h)| *h).map(|(t, _)| t).collect();
        for (buffer, original) in holders.iter().zip(still) {
            prop_assert!(tensor(buffer).equal(original), "an input somebody holds was written: {actions:?}");
        }
        if !reuse {
            prop_assert_eq!(rig.stats().in_place, 0);
        }
        drop((told, holders));
        prop_assert_eq!(rig.used(), 0, "all memory is returned");
    }
}
