//! Signatures: what two recordings of the same call have in common.
//!
//! Operator, structural arguments and result layouts never change from step to step, so a recorder that sees the same
//! call again shares one [`Signature`] instead of copying and hashing its parts; comparing two steps is then mostly
//! comparing pointers.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use smallvec::SmallVec;

use crate::{
    args::{ArgReader, ArgWriter, EncodedArgs},
    hash::{Domain, Hash128, Hasher},
    layout::LayoutRef,
    op::Op,
    rules::{ShapeError, numbers::Numbers},
};

/// Layouts of a node's results. An absent result (an undefined tensor) has no entry.
pub type Results = SmallVec<[LayoutRef; 1]>;

/// A shared signature.
pub type SignatureRef = Arc<Signature>;

/// Operator, structural arguments and result layouts of a call, with their hash. Immutable.
pub struct Signature {
    op: Op,
    words: EncodedArgs,
    results: Results,
    hash: Hash128,
    parts: OnceLock<Box<[SignatureRef]>>,
}

impl Signature {
    /// `words` must be a well-formed blob (see [`crate::args`]). `results`: written arguments first, in argument order,
    /// then new results, then generator states.
    pub fn new(op: Op, words: EncodedArgs, results: Results) -> SignatureRef {
        let mut h = Hasher::new(Domain::Node);
        h.hash(op.hash128());
        h.words(&words);
        for r in &results {
            h.hash(r.hash());
        }
        Arc::new(Signature { op, words, results, hash: h.finish(), parts: OnceLock::new() })
    }

    /// The signature of a leaf of this layout.
    pub fn data(layout: LayoutRef) -> SignatureRef {
        Signature::new(Op::data(), SmallVec::new(), SmallVec::from_iter([layout]))
    }

    /// The signature of result `index` as a value of its own ([`Op::result`]).
    pub fn part(&self, index: usize) -> SignatureRef {
        let part = |(i, layout): (usize, &LayoutRef)| {
            let words = ArgWriter::new().int(i as i64).finish().0;
            Signature::new(Op::result(), words, SmallVec::from_iter([layout.clone()]))
        };
        self.parts.get_or_init(|| self.results.iter().enumerate().map(part).collect())[index].clone()
    }

    /// Operator.
    #[inline]
    pub fn op(&self) -> Op {
        self.op
    }

    /// Structural argument words.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Decodes the arguments.
    #[inline]
    pub fn args(&self) -> ArgReader<'_> {
        ArgReader::new(&self.words)
    }

    /// Layouts of the results.
    #[inline]
    pub fn results(&self) -> &[LayoutRef] {
        &self.results
    }

    /// Whether the operator takes these numbers, the runtime scalars of a call.
    ///
    /// # Errors
    /// Fails as libtorch does for a number that its kernels cannot convert, or that is outside the operator's range.
    #[inline]
    pub fn check_numbers(&self, values: &[u64]) -> Result<(), ShapeError> {
        match (self.op.spec().numbers, self.results.first()) {
            (Some(rule), Some(result)) => rule(&Numbers::new(&self.words, values, result.dtype())),
            _ => Ok(()),
        }
    }

    /// Structural hash; equal across processes.
    #[inline]
    pub fn hash(&self) -> Hash128 {
        self.hash
    }

    /// Rough size in memory, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + if self.words.spilled() { self.words.len() * 8 } else { 0 } + self.results.len() * 8
    }
}

impl PartialEq for Signature {
    fn eq(&self, o: &Self) -> bool {
        std::ptr::eq(self, o)
            || (self.hash == o.hash && self.op == o.op && self.words == o.words && self.results == o.results)
    }
}

impl Eq for Signature {}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({} -> {:?})", self.op, self.results)
    }
}
