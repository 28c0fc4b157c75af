//! What kind of computation an operator is, and what passes and the recorder may count on.

use std::fmt;

/// What kind of computation an operator is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OpClass {
    /// Nothing known beyond the schema.
    #[default]
    Generic,
    /// Each result element depends on the same element of broadcast operands.
    Pointwise,
    /// Folds dimensions away.
    Reduction,
    /// Matrix products.
    Matmul,
    /// Convolutions.
    Convolution,
    /// Pooling and resampling.
    Pooling,
    /// Normalisations (batch, layer, group) and softmax.
    Normalization,
    /// Losses and their gradients.
    Loss,
    /// Draws from a generator.
    Random,
    /// Makes a tensor from sizes and numbers.
    Factory,
    /// Moves elements: gather, scatter, index, cat.
    Movement,
    /// Views of their argument, and our own reads and writes of views.
    View,
    /// Decompositions and solvers.
    Linalg,
}

/// Properties passes and the recorder ask for; a set.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Props(pub u16);

impl Props {
    /// No property.
    pub const NONE: Props = Props(0);
    /// Draws random numbers: consumes and yields a generator state.
    pub const RANDOM: Props = Props(1);
    /// Writes at least one argument.
    pub const MUTATES: Props = Props(2);
    /// The written argument's old contents do not matter (`fill_`, `copy_`, `out=`).
    pub const OVERWRITES: Props = Props(4);
    /// Result shape depends on values; always runs eagerly.
    pub const DATA_DEPENDENT: Props = Props(8);
    /// Operands commute.
    pub const COMMUTATIVE: Props = Props(16);
    /// Images may come channels-last: results have that layout too, and the kernels are not slower.
    pub const CHANNELS_LAST: Props = Props(32);
    /// No values of operands or numbers make it fail: what its arguments' shapes and dtypes allow, it computes. Not
    /// known of an operator, it may fail.
    pub const TOTAL: Props = Props(64);
    /// Meets the same call in other processes: what it computes cannot be computed again, as they would take it for
    /// their next one.
    pub const COLLECTIVE: Props = Props(128);

    /// Whether all of `other` is in this set.
    #[inline]
    pub const fn has(self, other: Props) -> bool {
        self.0 & other.0 == other.0
    }

    /// What both have.
    pub const fn only(self, other: Props) -> Props {
        Props(self.0 & other.0)
    }

    /// Union.
    pub const fn and(self, other: Props) -> Props {
        Props(self.0 | other.0)
    }
}

impl fmt::Debug for Props {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Props, &str); 8] = [
            (Props::RANDOM, "random"),
            (Props::MUTATES, "mutates"),
            (Props::OVERWRITES, "overwrites"),
            (Props::DATA_DEPENDENT, "data-dependent"),
            (Props::COMMUTATIVE, "commutative"),
            (Props::CHANNELS_LAST, "channels-last"),
            (Props::TOTAL, "total"),
            (Props::COLLECTIVE, "collective"),
        ];
        f.debug_set().entries(NAMES.iter().filter(|(p, _)| self.has(*p)).map(|(_, n)| n)).finish()
    }
}
