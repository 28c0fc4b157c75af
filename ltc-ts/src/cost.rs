//! How long a program takes, roughly, where it is short.

use std::time::Duration;

use ltc_ir::OpClass;

use crate::lower::{Program, StepKind};

/// More elements than this in any value, and libtorch's kernels may use several threads.
const ELEMENTS: i64 = 8192;
/// Longer programs are handed to the executor thread whatever the caller waits for.
const LIMIT: Duration = Duration::from_micros(300);

/// Estimated time of one run of a program whose kernels are all small enough to stay on one thread; `None` for others.
pub(crate) fn short_run(program: &Program) -> Option<Duration> {
    let graph = &program.lowered;
    let mut nanoseconds = 0u64;
    let small = |n: i64| (n <= ELEMENTS).then_some(n as u64);
    for layout in graph.params() {
        small(layout.numel())?;
    }
    for step in &program.steps {
        let node = &graph.nodes()[step.node as usize];
        let results = program.step_results(step);
        let elements: u64 = results.iter().map(|r| small(r.layout.numel())).sum::<Option<u64>>()?;
        if let StepKind::Fused(fused) = &step.kind {
            nanoseconds += 500 + 200 * results.len() as u64 + fused.kernel.nanoseconds();
            continue;
        }
        nanoseconds += match node.op().spec().class {
            OpClass::Convolution | OpClass::Linalg => return None,
            OpClass::View => 500,
            // Operand by operand: as many products as the smaller operand has columns, at most its elements.
            OpClass::Matmul => 1500 + elements * 64,
            OpClass::Pointwise | OpClass::Factory | OpClass::Movement => 1000 + elements,
            OpClass::Generic if node.op().name().contains("linalg") => return None,
            _ => 2000 + 4 * elements,
        };
    }
    let time = Duration::from_nanos(nanoseconds);
    (time <= LIMIT).then_some(time)
}
