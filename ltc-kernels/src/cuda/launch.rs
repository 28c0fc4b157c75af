//! What is launched: a function, how many threads run it, and what its parameters are.

use ltc_ir::DType;
use smallvec::SmallVec;

use crate::ComputeType;

/// A function as text, without what [`program`](super::program) puts before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Its name, which comes from the text: equal names mean equal functions.
    pub name: String,
    /// The text of the function alone.
    pub text: String,
}

/// What is passed for a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Param {
    /// Where this output lies.
    Output(u32),
    /// Where this input lies.
    Input(u32),
    /// A runtime number: its word and dtype, and the type it is computed in.
    Number(u32, DType, ComputeType),
    /// A size or a stride, in elements.
    Size(i64),
    /// Where memory lies that the launches of a kernel share.
    Scratch,
}

/// A launch of one function.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The function.
    pub source: Source,
    /// How many blocks there are. They are independent of each other.
    pub grid: u32,
    /// How many threads each has.
    pub block: u32,
    pub(super) params: Vec<Param>,
}

/// What a kernel runs on: addresses on the GPU, and the program's runtime numbers.
#[derive(Clone, Copy, Default, Debug)]
pub struct Operands<'a> {
    /// Where each output lies.
    pub outputs: &'a [u64],
    /// Where each input lies.
    pub inputs: &'a [u64],
    /// All words the kernel's IR speaks of.
    pub numbers: &'a [u64],
    /// Where [`Launches::scratch_bytes`](super::Launches::scratch_bytes) of memory lie.
    pub scratch: u64,
}

impl Launch {
    /// Whether runtime numbers are among its parameters.
    pub fn takes_numbers(&self) -> bool {
        self.params.iter().any(|param| matches!(param, Param::Number(..)))
    }

    /// The arguments, one for each parameter, eight bytes each.
    ///
    /// # Panics
    /// If there are fewer outputs, inputs or numbers than the kernel has.
    pub fn arguments(&self, operands: Operands<'_>) -> SmallVec<[u64; 16]> {
        let argument = |param: &Param| match *param {
            Param::Output(o) => operands.outputs[o as usize],
            Param::Input(i) => operands.inputs[i as usize],
            Param::Number(word, dtype, ty) => ty.bits_from(dtype, operands.numbers[word as usize]),
            Param::Size(size) => size as u64,
            Param::Scratch => operands.scratch,
        };
        self.params.iter().map(argument).collect()
    }
}
