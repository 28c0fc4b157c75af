//! Draws from libtorch's CPU generator, in its order, a block at a time.
//!
//! libtorch draws one number after the other through several layers (`at::mt19937`, `at::bernoulli_distribution`). Here
//! the generator's whole state is stepped at once, which vectorises, and its numbers are compared with an integer.

/// Words of the generator's state.
const N: usize = 624;
/// Elements per block; each takes two draws.
const BLOCK: usize = 512;

/// The state of a Mersenne Twister, as libtorch's engine keeps it (`at::mt19937_data_pod`).
#[derive(Debug)]
pub struct Mt19937<'a> {
    /// Words, before tempering.
    pub state: &'a mut [u32; N],
    /// Word of the next draw.
    pub next: &'a mut u32,
    /// Draws, plus one, until the state must be stepped.
    pub left: &'a mut i32,
}

/// Fills `out` with ones of probability `p` and zeros, as `aten::bernoulli_.float` does for a tensor in memory order.
pub fn bernoulli<T: Copy>(mut engine: Mt19937<'_>, p: f64, [zero, one]: [T; 2], out: &mut [T]) {
    // A draw of 53 bits, scaled to below one, is less than `p` exactly when the draw is less than this.
    let below = (p * (1u64 << 53) as f64).ceil() as u64;
    let mut draws = [0u32; 2 * BLOCK];
    for block in out.chunks_mut(BLOCK) {
        let draws = &mut draws[..2 * block.len()];
        draw(&mut engine, draws);
        compare(draws, below, [zero, one], block);
    }
}

super::loops::vectorised! {
    fn compare<T: Copy>(draws: &[u32], below: u64, values: [T; 2], out: &mut [T]) {
        for (to, pair) in out.iter_mut().zip(draws.chunks_exact(2)) {
            let draw = (u64::from(pair[0]) << 32 | u64::from(pair[1])) & ((1 << 53) - 1);
            *to = if draw < below { values[1] } else { values[0] };
        }
    }
}

super::loops::vectorised! {
    /// Tempers words of the state.
    fn temper(state: &[u32], out: &mut [u32]) {
        for (to, &y) in out.iter_mut().zip(state) {
            let y = y ^ y >> 11;
            let y = y ^ y << 7 & 0x9d2c_5680;
            let y = y ^ y << 15 & 0xefc6_0000;
            *to = y ^ y >> 18;
        }
    }
}

super::loops::vectorised! {
    /// Steps the whole state.
    fn refill(s: &mut [u32; N]) {
        const M: usize = 397;
        let twist = |u: u32, v: u32| (u & 0x8000_0000 | v & 0x7fff_ffff) >> 1 ^ (v & 1).wrapping_neg() & 0x9908_b0df;
        for i in 0..N - M {
            s[i] = s[i + M] ^ twist(s[i], s[i + 1]);
        }
        for i in N - M..N - 1 {
            s[i] = s[i + M - N] ^ twist(s[i], s[i + 1]);
        }
        s[N - 1] = s[M - 1] ^ twist(s[N - 1], s[0]);
    }
}

/// The generator's next numbers.
fn draw(engine: &mut Mt19937<'_>, out: &mut [u32]) {
    let mut done = 0;
    while done < out.len() {
        // The engine counts down before it draws, and steps its state at zero.
        if *engine.left <= 1 {
            refill(engine.state);
            (*engine.left, *engine.next) = (N as i32 + 1, 0);
        }
        let count = (*engine.left as usize - 1).min(out.len() - done);
        let from = *engine.next as usize;
        temper(&engine.state[from..from + count], &mut out[done..done + count]);
        *engine.next += count as u32;
        *engine.left -= count as i32;
        done += count;
    }
}
