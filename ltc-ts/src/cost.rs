//! How long a program takes, roughly, and whether libtorch would use several threads for it.

use std::time::Duration;

use ltc_ir::OpClass;

use crate::program::{Program, Step, StepKind};

/// More elements than this in any value, and libtorch's kernels may use several threads.
pub(crate) const ELEMENTS: i64 = 8192;
/// The same for the result of a matrix product.
const PRODUCTS: u64 = 4096;

/// What is known of a program before it ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Rough time of one run.
    pub(crate) time: Duration,
    /// Some kernel may use several threads.
    pub(crate) wide: bool,
}

/// What is known of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Of {
    /// Rough time, on one thread.
    pub(crate) nanoseconds: u64,
    /// It may use several threads.
    pub(crate) wide: bool,
}

/// Estimated cost of one run.
pub(crate) fn of(program: &Program) -> Cost {
    let wide = program.lowered.params().iter().any(|layout| layout.numel() > ELEMENTS);
    let all = program.steps.iter().map(|s| step(program, s));
    let add = |sum: Of, of: Of| Of { nanoseconds: sum.nanoseconds + of.nanoseconds, wide: sum.wide || of.wide };
    let Of { nanoseconds, wide } = all.fold(Of { nanoseconds: 0, wide }, add);
    Cost { time: Duration::from_nanos(nanoseconds), wide }
}

/// Estimated cost of a step.
pub(crate) fn step(program: &Program, step: &Step) -> Of {
    let node = &program.lowered.nodes()[step.node as usize];
    let results = program.step_results(step);
    let wide = results.iter().any(|r| r.layout.numel() > ELEMENTS);
    let elements: u64 = results.iter().map(|r| r.layout.numel() as u64).sum();
    if let StepKind::Fused(fused) = &step.kind {
        return Of { nanoseconds: 500 + 200 * results.len() as u64 + fused.kernel.nanoseconds(), wide };
    }
    let class = node.op().spec().class;
    let of_class = match class {
        OpClass::Convolution | OpClass::Linalg => true,
        OpClass::Matmul => elements > PRODUCTS,
        _ => node.op().name().contains("linalg"),
    };
    let nanoseconds = match class {
        OpClass::View => 500,
        // Operand by operand: as many products as the smaller operand has columns, at most its elements.
        OpClass::Convolution | OpClass::Linalg | OpClass::Matmul => 1500 + elements * 64,
        OpClass::Pointwise | OpClass::Factory | OpClass::Movement => 1000 + elements,
        _ => 2000 + 4 * elements,
    };
    Of { nanoseconds, wide: wide || of_class }
}
