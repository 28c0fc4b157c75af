//! Kernels as text for GPUs: one text, two compilers.
//!
//! A kernel's IR becomes CUDA C, which NVRTC compiles when the kernel is wanted, and which tests compile for the host
//! (`tests/twin.rs`), where they run it and compare its bits with those of tier 0. What is the same on both sides is
//! written once: the operations (`prelude.cu`), the functions of `math.rs` (`functions.rs` writes them from there), and
//! the arithmetic, which both do in the order it is written in, with `fmaf` only where the IR says so.
//!
//! A text knows an IR, dtypes, and which operands are dense. Sizes, strides and runtime numbers are parameters, so a
//! kernel over other sizes has the same text mostly, and then the same [`Source::name`]: code is looked up by it.
//! Nothing here needs a GPU or a library of NVIDIA's, and nothing is linked: [`Nvrtc`] and [`Driver`] are
//! opened where they are there.
//!
//! ```
//! use ltc_ir::DType;
//! use ltc_kernels::{Builder, ComputeType, FusedKernel, IterationSpace, Kernel, KernelOp, cuda};
//!
//! let mut b = Builder::new(false);
//! let (x, y) = (b.input(0, ComputeType::F32), b.input(1, ComputeType::F32));
//! let sum = b.op(KernelOp::Add, &[x, y]);
//! let ir = b.finish(&[sum]);
//! let space = IterationSpace::new(&[1000], &[&[1], &[1], &[1]]);
//! let kernel = Kernel::new(space, &[DType::F32], &[DType::F32; 2], &ir, ir.clone(), vec![false]).expect("loops");
//!
//! let launches = cuda::Launches::of(&FusedKernel::Flat(Box::new(kernel))).expect("a text");
//! let launch = &launches.each[0];
//! assert_eq!((launch.grid, launch.block), (1, 256));
//! assert!(cuda::program([&launch.source]).contains("v2 = add(v0, v1);"));
//! ```
//!
//! | file | what |
//! |---|---|
//! | `prelude.cu` | operations on one element, halves, loads and stores |
//! | `ops.rs` | which of its functions an operation is |
//! | `functions.rs` | functions of `math.rs` as text |
//! | `launch.rs` | what is launched: text, sizes of the launch, arguments |
//! | `writer.rs` | a kernel's function while it is written: parameters, values, where elements lie |
//! | `pointwise.rs` | kernels without reductions |
//! | `rows.rs`, `rows.cu` | kernels with reductions |
//! | `library.rs`, `nvrtc.rs`, `driver.rs` | NVIDIA's libraries: the compiler, and what launches |
//! | `graph.rs` | launches that are taken down and put on a stream as one |
//! | `cache.rs` | machine code on disk |

mod cache;
mod driver;
mod functions;
mod graph;
mod launch;
mod library;
mod nvrtc;
mod ops;
mod pointwise;
mod rows;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::LazyLock;

use ltc_ir::DType;
use rustc_hash::FxHashSet;

pub use cache::{CodeCache, CodeKey};
pub use driver::{Driver, Function, Module};
pub use graph::{Graph, GraphDriver, Node};
pub use launch::{Launch, Operands, Source};
pub use library::LibraryError;
pub use nvrtc::{Arch, Nvrtc};

use crate::{ComputeType, FusedKernel, KernelOp};

/// Why a kernel has no text. It can be run operator by operator.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// The prelude has no function for an operation in this type.
    #[error("no function for {0:?} of {1:?}")]
    Operation(KernelOp, ComputeType),
    /// Elements of this dtype cannot be read or written.
    #[error("no elements of {0}")]
    Elements(DType),
    /// A launch takes at most [`MAX_PARAMETERS`].
    #[error("{0} parameters")]
    Parameters(usize),
}

/// Parameters a launch takes, of eight bytes each: CUDA has 4 KiB for them.
pub const MAX_PARAMETERS: usize = 512;

/// A kernel for a GPU: functions that are launched one after the other, on one stream.
#[derive(Clone, Debug)]
pub struct Launches {
    /// The functions, with the sizes of their launches.
    pub each: Vec<Launch>,
    /// Bytes of memory on the GPU that they share, for values of eight bytes; its content before does not matter.
    pub scratch_bytes: usize,
}

impl Launches {
    /// The launches that do what a kernel does; none where it has no elements.
    ///
    /// # Errors
    /// If there is no text for the kernel.
    pub fn of(kernel: &FusedKernel) -> Result<Launches, Unsupported> {
        match kernel {
            FusedKernel::Flat(kernel) => pointwise::launches(kernel),
            FusedKernel::Rows(kernel) => rows::launches(kernel),
        }
    }
}

/// What all kernels are made of.
static PRELUDE: LazyLock<String> = LazyLock::new(|| {
    let (operations, reductions) = (include_str!("prelude.cu"), include_str!("rows.cu"));
    format!("{operations}\n{}\n{reductions}", functions::all())
});

/// The text of a program with these functions, each once.
pub fn program<'a>(sources: impl IntoIterator<Item = &'a Source>) -> String {
    let mut text = format!("namespace ltc {{\n{}", *PRELUDE);
    let mut known = FxHashSet::default();
    for source in sources.into_iter().filter(|source| known.insert(source.name.as_str())) {
        text.push('\n');
        text.push_str(&source.text);
    }
    text.push_str("}\n");
    text
}
