//! Tier 1 gives the bits of tier 0, and its code is what it should be for machines that are not this one.

use super::{code, tier::Jit};
use crate::{
    cases::{CODES, Case, DTYPES, Data, Dice, Elements, Lie, random, stored},
    tile::Ran,
};

mod agree;
mod rows;
mod simulate;
mod wide;

impl Case {
    /// Runs both tiers over the same data and compares; whether there was machine code.
    fn compare(&self, rows: usize, columns: usize, shift: usize, numbers: &[u64], seed: u64, in_place: bool) -> bool {
        let data = Data { rows, columns, shift, seed, in_place };
        let run = |jit: Jit| {
            let mut kernel = self.kernel(rows, columns, in_place)?;
            kernel.set_jit(jit);
            let mut ran = Ran::Loops;
            let buffers = self.run(data, |to, from| {
                // SAFETY: elements are there for the space, at addresses even for their type; outputs overlap nothing,
                // or are exactly a dense input.
                let done = unsafe {
                    kernel.run(to, from, numbers, |n, f| {
                        // Two unequal ranges, as threads take them.
                        let half = n / 3;
                        f(0..half);
                        f(half..n);
                    })
                };
                ran = done.expect("few values");
            });
            Some((buffers, ran))
        };
        let (Some((loops, Ran::Loops)), Some((compiled, ran))) = (run(Jit::Off), run(Jit::Now)) else { return false };
        self.assert_equal(data, &loops, &compiled);
        ran == Ran::Compiled
    }
}

fn has_vectors() -> bool {
    code::width().is_some()
}
