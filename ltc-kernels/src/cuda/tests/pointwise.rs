//! Kernels without reductions, run by their twins.

use super::{super::program, golden, operations, rounds_once, twin::Twin};
use crate::cases::{Case, Data, Dice, Lie, random};

/// Compares all cases over their data, after making one library of their twins.
fn compare_all(cases: &[(Case, Vec<Data>, [u64; 2])]) {
    let sources: Vec<_> = cases
        .iter()
        .flat_map(|(case, data, _)| data.iter().flat_map(|data| case.launches(*data).each))
        .map(|launch| launch.source)
        .collect();
    let Some(twin) = Twin::of(&sources).filter(|_| rounds_once()) else { return };
    for (i, (case, data, numbers)) in cases.iter().enumerate() {
        for data in data {
            case.compare_twin(&twin, *data, numbers, i as u32 % 3);
        }
    }
}

#[test]
fn every_operation_gives_the_bits_of_tier_0() {
    // All elements of their own; the first, or all but the first, the same.
    let ways: [fn(usize) -> Lie; 3] =
        [|_| Lie::Dense, |i| [Lie::One, Lie::Dense][i.min(1)], |i| [Lie::Dense, Lie::One][i.min(1)]];
    let mut cases = Vec::new();
    for (i, case) in operations(&ways).into_iter().enumerate() {
        let seed = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i as u64 + 1);
        let data = |shift| Data { rows: 1, columns: 1001, shift, seed, in_place: false };
        cases.push((case, vec![data(i % 2)], [0; 2]));
    }
    assert!(cases.len() > 250, "{}", cases.len());
    compare_all(&cases);
}

#[test]
fn random_bodies_give_the_bits_of_tier_0() {
    let mut cases = Vec::new();
    for seed in 1..60u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let size = 1 + dice.below(60);
        let case = random(&mut dice, size);
        let (rows, columns) = (1 + dice.below(5), dice.below(400));
        let numbers = [dice.element(ltc_ir::DType::F64), dice.element(ltc_ir::DType::I64)];
        let data = |shift, in_place| Data { rows, columns, shift, seed: seed * 77, in_place };
        cases.push((case, vec![data(dice.below(4), false), data(0, true)], numbers));
    }
    compare_all(&cases);
}

/// Twins of a text with a mistake differ from tier 0, or write where they should not.
#[test]
fn mistakes_are_found() {
    let case = golden::silu();
    let data = Data { columns: 127, ..golden::ROWS };
    let launch = case.launches(data).each[0].clone();
    let text = program([&launch.source]);
    // Its products are not exact, so that rounding them shows.
    let number = [0.3f64.to_bits()];
    let mistakes = [
        // The last element left out, and one written behind it.
        ("e < (I)count", "e < (I)count - 1"),
        ("store_pack(o1 + e", "store_pack(o1 + e + 1"),
        // The elements of the next column.
        ("p1[at_p1 + j", "p1[at_p1 + 1 + j"),
        // A product that is rounded before it is added.
        ("fma(v0, v2, v1)", "add(mul(v0, v2), v1)"),
        ("exp(v", "exp2(v"),
        // Halves cut off.
        ("round_bf16(v", "(v"),
    ];
    for (right, wrong) in mistakes {
        let wrong_text = text.replace(right, wrong);
        assert!(wrong_text != text, "{right} is not in {text}");
        let Some(twin) = Twin::of_text(&wrong_text, std::slice::from_ref(&launch.source)).filter(|_| rounds_once())
        else {
            return;
        };
        let compared = || case.compare_twin(&twin, data, &number, 0);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(compared)).is_err(), "{wrong}");
    }
}
