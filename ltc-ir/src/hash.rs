//! Stable 128-bit structural hashes.
//!
//! xxh3 over little-endian words, with a domain tag per kind of thing hashed, so that equal bytes of different meaning
//! do not collide. Hashes are equal across processes and machines; they key the computation cache, and a hit is always
//! confirmed by equality. Replaces `torch/csrc/lazy/core/hash.h`.

use std::fmt;

/// A 128-bit structural hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Hash128(pub u128);

impl Hash128 {
    /// Hash of a string in a domain.
    pub fn of_str(domain: Domain, text: &str) -> Self {
        Hash128(xxhash_rust::xxh3::xxh3_128_with_seed(text.as_bytes(), domain as u64))
    }

    /// Hash of words in a domain.
    #[inline]
    pub fn of_words(domain: Domain, words: &[u64]) -> Self {
        let mut h = Hasher::new(domain);
        h.words(words);
        h.finish()
    }
}

impl fmt::Display for Hash128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Hash128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash128({self})")
    }
}

/// What a hash is about; the seed that keeps domains apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Domain {
    /// Operator names.
    Op = 0x6f70,
    /// Layouts.
    Layout = 0x6c79,
    /// One trace node without its operands.
    Node = 0x6e64,
    /// Whole graphs.
    Graph = 0x6772,
    /// Graphs without their sizes.
    Skeleton = 0x736b,
}

/// Streaming two-lane multiply-fold hasher over words.
///
/// Short inputs dominate (a node is a handful of words), where calling xxh3 on a byte buffer would cost a copy; this
/// folds words as they come. Both lanes see every word with different constants.
#[derive(Clone, Copy, Debug)]
pub struct Hasher {
    a: u64,
    b: u64,
    n: u64,
}

const K0: u64 = 0x9E37_79B9_7F4A_7C15;
const K1: u64 = 0xD6E8_FEB8_6659_FD93;
const K2: u64 = 0xA076_1D64_78BD_642F;

#[inline]
fn fold(x: u64, y: u64) -> u64 {
    let m = (x as u128).wrapping_mul(y as u128);
    (m as u64) ^ ((m >> 64) as u64)
}

impl Hasher {
    /// A hasher for one domain.
    #[inline]
    pub fn new(domain: Domain) -> Self {
        Hasher { a: K0 ^ domain as u64, b: K1 ^ (domain as u64).rotate_left(32), n: 0 }
    }

    /// Adds a word.
    #[inline]
    pub fn word(&mut self, w: u64) {
        self.a = fold(self.a ^ w, K2) ^ self.a.rotate_left(23);
        self.b = (self.b ^ w.rotate_left(29)).wrapping_mul(K0).rotate_left(31) ^ self.a;
        self.n += 1;
    }

    /// Adds words, in order; the length is not implied, add it where it can vary.
    #[inline]
    pub fn words(&mut self, ws: &[u64]) {
        for &w in ws {
            self.word(w);
        }
    }

    /// Adds another hash.
    #[inline]
    pub fn hash(&mut self, h: Hash128) {
        self.word(h.0 as u64);
        self.word((h.0 >> 64) as u64);
    }

    /// The hash of all words added.
    #[inline]
    pub fn finish(self) -> Hash128 {
        let x = fold(self.a ^ self.n, K1) ^ self.b;
        let y = fold(self.b ^ K2, self.a.wrapping_add(K0)) ^ x.rotate_left(32);
        Hash128(((x as u128) << 64) | y as u128)
    }
}
