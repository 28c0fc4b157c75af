//! How long a program takes, roughly, and whether libtorch would use several threads for it.

use std::time::Duration;

use ltc_backend::SingleThread;
use ltc_ir::{DType, Graph, GraphNode, LayoutRef, OpClass, Props};

use super::{Instr, InstrKind, Program};

/// If any value has more elements than this, libtorch's kernels may use several threads.
pub(crate) const ELEMENTS: i64 = 8192;
/// The same for the result of a matrix product, where several threads gain something.
const PRODUCTS: u64 = 4096;
/// oneMKL starts threads for any product of matrices with more rows or columns than this, whether they gain or not
/// (counted in `/proc/self/task` before and after a process's first product).
const ROWS: i64 = 16;

/// Multiplications of a product from which on two threads gain something (`MKL_Set_Num_Threads_Local` around products
/// of square matrices: even at this number, a third faster at twice as many, 5 to 20 % slower at half).
const SMALL_PRODUCT: i64 = 1 << 18;

/// What is known of a program before it ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Rough time of one run.
    pub(crate) time: Duration,
    /// Some kernel may use several threads.
    pub(crate) multi_threaded: bool,
    /// The program waits for other processes, for an unknown time.
    pub(crate) waits: bool,
    /// The time that the steps which may use several threads take on one thread, estimated from sizes alone.
    shared: Duration,
    /// No bit depends on how many threads there are.
    same_bits: bool,
}

impl Cost {
    /// Whether the program may run on one thread instead of so many.
    pub(crate) fn single_thread(&self, threads: usize) -> SingleThread {
        if self.same_bits {
            return SingleThread::SameBits;
        }
        let more = EACH_THREAD * (threads.max(1) - 1) as f64;
        SingleThread::OtherBits { saves: self.shared.mul_f64(more / (1.0 + more)) }
    }
}

/// How much each thread beyond the first adds to the speed of one thread. It is little, because kernels are small and
/// threads wait for each other between them (`docs/performance.md`: without overlap, steps of most networks take hardly
/// longer on one of two threads).
const EACH_THREAD: f64 = 0.25;

/// What is known of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Of {
    /// Rough time, on one thread.
    pub(crate) nanoseconds: u64,
    /// It may use several threads, and gain by them.
    pub(crate) multi_threaded: bool,
}

/// Estimated cost of one run.
pub(crate) fn of(program: &Program) -> Cost {
    let multi_threaded = program.lowered.params().iter().any(|layout| layout.numel() > ELEMENTS);
    let all = program.instrs.iter().map(|s| instr(program, s));
    let add = |sum: Of, of: Of| Of {
        nanoseconds: sum.nanoseconds + of.nanoseconds,
        multi_threaded: sum.multi_threaded || of.multi_threaded,
    };
    let Of { nanoseconds, multi_threaded } = all.fold(Of { nanoseconds: 0, multi_threaded }, add);
    let multi_threaded = multi_threaded || program.instrs.iter().any(|s| is_threaded_product(program, s));
    let shared = program.instrs.iter().filter(|s| instr(program, s).multi_threaded || is_threaded_product(program, s));
    let shared = Duration::from_nanos(shared.map(|s| by_sizes(program, s)).sum());
    let same_bits = program.instrs.iter().all(|s| has_same_bits(program, s));
    let waits = program.lowered.nodes().iter().any(|node| node.op().has(Props::COLLECTIVE));
    Cost { time: Duration::from_nanos(nanoseconds), multi_threaded, waits, shared, same_bits }
}

/// Whether the number of threads changes no bit of a step's results: our kernels, and what only moves elements.
/// libtorch's other kernels compute the last elements of each thread's share in another way than the rest, or sum them
/// in another order.
fn has_same_bits(program: &Program, instr: &Instr) -> bool {
    let class = program.lowered.nodes()[instr.node as usize].op().spec().class;
    match &instr.kind {
        InstrKind::Boxed(_) => matches!(class, OpClass::View | OpClass::Movement) && instr.writes.is_empty(),
        _ => true,
    }
}

/// Rough time of a step on one thread, in nanoseconds. It depends on sizes alone and not on whether kernels are machine
/// code yet, so that decisions made from it are the same in each run.
fn by_sizes(program: &Program, instr: &Instr) -> u64 {
    let node = &program.lowered.nodes()[instr.node as usize];
    if let InstrKind::Fused(fused) = &instr.kind {
        return 500 + (fused.kernel.calls() * fused.kernel.element_count() / 8) as u64;
    }
    let count = |l: &LayoutRef| l.numel().max(0) as u64;
    let results: u64 = program.instr_results(instr).iter().map(|r| count(&r.layout)).sum();
    let operands = || program.instr_operands(instr).iter().filter_map(|o| program.slot_layout(o.slot));
    let largest = operands().map(count).max().unwrap_or(0).max(results);
    match node.op().spec().class {
        OpClass::View => 500,
        OpClass::Matmul => {
            let multiplications = match node.operands[..] {
                [.., a, b] => {
                    let (a, b) = (program.lowered.layout(a), program.lowered.layout(b));
                    count(a) * b.sizes().last().map_or(1, |&n| n.max(0) as u64)
                }
                _ => results,
            };
            1500 + multiplications / PRODUCTS_A_NANOSECOND
        }
        OpClass::Convolution => {
            // Each element of the larger image meets a filter; a gradient is two such convolutions.
            let filter = |l: &LayoutRef| count(l) / l.sizes().first().map_or(1, |&n| n.max(1) as u64);
            let (images, is_gradient) = (operands().count(), node.op().name().contains("backward"));
            let at = usize::from(is_gradient) + 1;
            let filter = operands().nth(at.min(images.saturating_sub(1))).map_or(1, filter);
            let image = operands().next().map_or(results, |first| if is_gradient { count(first) } else { results });
            5000 + image * filter * (1 + u64::from(is_gradient)) / PRODUCTS_A_NANOSECOND
        }
        OpClass::Linalg => 1500 + results * 64,
        OpClass::Pointwise | OpClass::Factory | OpClass::Movement => 1000 + largest / 2,
        _ => 2000 + 2 * largest,
    }
}

/// Multiplications and additions of libtorch's products on one thread.
const PRODUCTS_A_NANOSECOND: u64 = 20;

/// Whether a node is a product of matrices that gains nothing by several threads. Its scalars are of a dtype whose
/// products are oneMKL's.
pub(crate) fn is_small_product(graph: &Graph, node: &GraphNode) -> bool {
    let [.., a, b] = node.operands[..] else { return false };
    let (a, b, result) = (graph.layout(a), graph.layout(b), &node.results()[0]);
    let is_matrix = |l: &LayoutRef| matches!(l.dtype(), DType::F32 | DType::F64) && (2..4).contains(&l.rank());
    node.op().spec().class == OpClass::Matmul
        && [a, b, result].into_iter().all(is_matrix)
        && a.numel() * b.sizes().last().unwrap_or(&1) <= SMALL_PRODUCT
}

/// Products of matrices of some size, and batches of any; products with a vector run on one thread.
fn is_threaded_product(program: &Program, instr: &Instr) -> bool {
    let class = program.lowered.nodes()[instr.node as usize].op().spec().class;
    if class != OpClass::Matmul || !matches!(instr.kind, InstrKind::Boxed(_)) {
        return false;
    }
    let results = program.instr_results(instr).iter().map(|r| &r.layout);
    let is_vector = results.clone().all(|l| l.sizes().iter().filter(|&&n| n != 1).count() < 2);
    let operands = program.instr_operands(instr).iter().filter_map(|o| program.slot_layout(o.slot));
    let is_small = |l: &LayoutRef| l.sizes().iter().all(|&n| n <= ROWS);
    let mut all = operands.chain(results);
    all.clone().any(|l| l.rank() > 2) || !(is_vector || all.all(is_small))
}

/// Estimated cost of a step.
pub(crate) fn instr(program: &Program, instr: &Instr) -> Of {
    let node = &program.lowered.nodes()[instr.node as usize];
    let results = program.instr_results(instr);
    let multi_threaded = results.iter().any(|r| r.layout.numel() > ELEMENTS);
    let elements: u64 = results.iter().map(|r| r.layout.numel() as u64).sum();
    if let InstrKind::Fused(fused) = &instr.kind {
        return Of { nanoseconds: 500 + 200 * results.len() as u64 + fused.kernel.nanoseconds(), multi_threaded };
    }
    let class = node.op().spec().class;
    let of_class = match class {
        _ if matches!(instr.kind, InstrKind::Product(_)) => false,
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
    Of { nanoseconds, multi_threaded: multi_threaded || of_class }
}
