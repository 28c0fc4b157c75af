//! How long a program takes, roughly, and whether libtorch would use several threads for it.

use std::time::Duration;

use ltc_ir::{DType, Graph, GraphNode, LayoutRef, OpClass};

use crate::program::{Program, Step, StepKind};

/// More elements than this in any value, and libtorch's kernels may use several threads.
pub(crate) const ELEMENTS: i64 = 8192;
/// The same for the result of a matrix product, where several threads gain something.
const PRODUCTS: u64 = 4096;
/// oneMKL starts threads for any product of matrices with more rows or columns than this, whether they gain or not (counted in
/// `/proc/self/task` before and after a process's first product).
const ROWS: i64 = 16;

/// Multiplications of a product from which on two threads gain something (`MKL_Set_Num_Threads_Local` around products of square
/// matrices: even at this number, a third faster at twice as many, 5 to 20 % slower at half).
const SMALL_PRODUCT: i64 = 1 << 18;

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
    /// It may use several threads, and gain by them.
    pub(crate) wide: bool,
}

/// Estimated cost of one run.
pub(crate) fn of(program: &Program) -> Cost {
    let wide = program.lowered.params().iter().any(|layout| layout.numel() > ELEMENTS);
    let all = program.steps.iter().map(|s| step(program, s));
    let add = |sum: Of, of: Of| Of { nanoseconds: sum.nanoseconds + of.nanoseconds, wide: sum.wide || of.wide };
    let Of { nanoseconds, wide } = all.fold(Of { nanoseconds: 0, wide }, add);
    let wide = wide || program.steps.iter().any(|s| is_threaded_product(program, s));
    Cost { time: Duration::from_nanos(nanoseconds), wide }
}

/// Whether a node is a product of matrices that gains nothing by several threads. Its scalars are of a dtype whose products
/// are oneMKL's.
pub(crate) fn is_small_product(graph: &Graph, node: &GraphNode) -> bool {
    let [.., a, b] = node.operands[..] else { return false };
    let (a, b, result) = (graph.layout(a), graph.layout(b), &node.results()[0]);
    let is_matrix = |l: &LayoutRef| matches!(l.dtype(), DType::F32 | DType::F64) && (2..4).contains(&l.rank());
    node.op().spec().class == OpClass::Matmul
        && [a, b, result].into_iter().all(is_matrix)
        && a.numel() * b.sizes().last().unwrap_or(&1) <= SMALL_PRODUCT
}

/// Products of matrices of some size, and batches of any; products with a vector run on one thread.
fn is_threaded_product(program: &Program, step: &Step) -> bool {
    let class = program.lowered.nodes()[step.node as usize].op().spec().class;
    if class != OpClass::Matmul || !matches!(step.kind, StepKind::Boxed(_)) {
        return false;
    }
    let results = program.step_results(step).iter().map(|r| &r.layout);
    let is_vector = results.clone().all(|l| l.sizes().iter().filter(|&&n| n != 1).count() < 2);
    let operands = program.step_operands(step).iter().filter_map(|o| program.slot_layout(o.slot));
    let is_small = |l: &LayoutRef| l.sizes().iter().all(|&n| n <= ROWS);
    let mut all = operands.chain(results);
    all.clone().any(|l| l.rank() > 2) || !(is_vector || all.all(is_small))
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
        _ if matches!(step.kind, StepKind::Product(_)) => false,
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
