//! Integers that no double can hold: what computes them by way of doubles rounds them.

use std::sync::Arc;

use ltc_ir::{DType, ErrorClass, Graph, Layout, LayoutRef};

use super::rig::{DEVICE, Told, keep, run};
use crate::{Backend, Buffer, HostTensor};

/// The first integer whose successor is no double.
const BIG: i64 = 1 << 53;

/// `%p0`, `%p1` and `%p2` of each program.
const A: [i64; 4] = [BIG + 1, -BIG - 3, i64::MAX - 2, BIG + 2];
const B: [i64; 4] = [3, BIG + 3, i64::MAX - 1, -7];
const PLACES: [i64; 4] = [2, 0, 3, 1];

/// The runtime number of programs that take one.
const NUMBER: i64 = BIG + 5;

/// A node of the text form of graphs, and its first result's elements.
type Case = (&'static str, Vec<i64>);

/// Elements of `A`, in this order.
fn picked<const N: usize>(places: [usize; N]) -> Vec<i64> {
    places.map(|i| A[i]).to_vec()
}

fn pairs(f: impl Fn(i64, i64) -> i64) -> Vec<i64> {
    A.iter().zip(B).map(|(&a, b)| f(a, b)).collect()
}

fn singles(f: impl Fn(i64) -> i64) -> Vec<i64> {
    A.iter().map(|&a| f(a)).collect()
}

fn arithmetic() -> Vec<Case> {
    vec![
        ("%0: i64[4] = aten::add.Tensor(%p0, %p1, number i64)", pairs(|a, b| a.wrapping_add(b.wrapping_mul(NUMBER)))),
        ("%0: i64[4] = aten::sub.Tensor(%p0, %p1, number i64)", pairs(|a, b| a.wrapping_sub(b.wrapping_mul(NUMBER)))),
        ("%0: i64[4] = aten::mul.Tensor(%p0, %p1)", pairs(i64::wrapping_mul)),
        ("%0: i64[4] = aten::mul.Tensor(%p0, wrapped i64)", singles(|a| a.wrapping_mul(NUMBER))),
        ("%0: i64[4] = aten::neg(%p0)", singles(i64::wrapping_neg)),
        ("%0: i64[4] = aten::abs(%p0)", singles(i64::wrapping_abs)),
        ("%0: i64[4] = aten::maximum(%p0, %p1)", pairs(i64::max)),
        ("%0: i64[4] = aten::minimum(%p0, %p1)", pairs(i64::min)),
        ("%0: i64[4] = aten::bitwise_xor.Tensor(%p0, %p1)", pairs(|a, b| a ^ b)),
        ("%0: i64[4] = aten::div.Tensor_mode(%p0, %p1, \"trunc\")", pairs(|a, b| a / b)),
        ("%0: i64[4] = aten::div.Tensor_mode(%p0, %p1, \"floor\")", pairs(floor_div)),
        ("%0: i64[4] = aten::remainder.Tensor(%p0, %p1)", pairs(|a, b| a - b * floor_div(a, b))),
        ("%0: bool[4] = aten::lt.Tensor(%p0, %p1)", pairs(|a, b| i64::from(a < b))),
        ("%0: bool[4] = aten::eq.Scalar(%p0, number i64)", singles(|a| i64::from(a == NUMBER))),
        ("%0: i64[4] = aten::where.self(%p3, %p0, %p1)", vec![A[0], B[1], A[2], B[3]]),
        ("%0: i64[4] = aten::_to_copy(%p0, int 4, none, none, none, bool false, none)", A.to_vec()),
        ("%0: i64[2] = aten::full(ints [2], number i64, int 4, none, none, none)", vec![NUMBER; 2]),
    ]
}

/// The largest integer not above the quotient.
fn floor_div(a: i64, b: i64) -> i64 {
    a / b - i64::from(a % b != 0 && (a < 0) != (b < 0))
}

fn reductions() -> Vec<Case> {
    let sum = A.iter().fold(0i64, |a, &b| a.wrapping_add(b));
    let product = A.iter().fold(1i64, |a, &b| a.wrapping_mul(b));
    let sums = A.iter().scan(0i64, |sum, &a| {
        *sum = sum.wrapping_add(a);
        Some(*sum)
    });
    let inner = A.iter().zip(B).fold(0i64, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(b)));
    vec![
        ("%0: i64[] = aten::sum(%p0, none)", vec![sum]),
        ("%0: i64[1] = aten::sum.dim_IntList(%p0, ints [0], bool true, none)", vec![sum]),
        ("%0: i64[] = aten::prod(%p0, none)", vec![product]),
        ("%0: i64[4] = aten::cumsum(%p0, int 0, none)", sums.collect()),
        ("%0: i64[] = aten::amax(%p0, ints [0], bool false)", vec![A[2]]),
        ("%0: i64[] = aten::amin(%p0, ints [0], bool false)", vec![A[1]]),
        ("%0: i64[], %1: i64[] = aten::max.dim(%p1, int 0, bool false)", vec![B[2]]),
        ("%0: i64[], %1: i64[] = aten::min.dim(%p0, int 0, bool false)", vec![A[1]]),
        ("%0: i64[] = aten::argmin(%p1, int 0, bool false)", vec![3]),
        ("%0: i64[] = aten::dot(%p0, %p1)", vec![inner]),
    ]
}

fn movement() -> Vec<Case> {
    let both = |first: [i64; 4], then: [i64; 4]| [first, then].concat();
    vec![
        ("%0: i64[4] = aten::clone(%p0, none)", A.to_vec()),
        ("%0: i64[2] = ltc::read_view(%p0, int 1)", A[1..3].to_vec()),
        ("%0: i64[4] = ltc::write_view(mut %p0, %p1, ints [4], ints [1], int 0)", B.to_vec()),
        ("%0: i64[8] = aten::cat(tensors [%p0, %p1], int 0)", both(A, B)),
        ("%0: i64[2, 4] = aten::stack(tensors [%p1, %p0], int 0)", both(B, A)),
        ("%0: i64[8] = aten::repeat(%p0, ints [2])", both(A, A)),
        ("%0: i64[4] = aten::flip(%p0, ints [0])", picked([3, 2, 1, 0])),
        ("%0: i64[4] = aten::index_select(%p0, int 0, %p2)", picked([2, 0, 3, 1])),
        ("%0: i64[4] = aten::gather(%p0, int 0, %p2, bool false)", picked([2, 0, 3, 1])),
        ("%0: i64[4] = aten::index.Tensor(%p0, tensors [%p2])", picked([2, 0, 3, 1])),
        ("%0: i64[4] = aten::scatter.src(%p1, int 0, %p2, %p0)", picked([1, 3, 0, 2])),
        ("%0: i64[4], %1: i64[4] = aten::sort(%p0, int 0, bool false)", picked([1, 0, 3, 2])),
        ("%0: i64[6] = aten::constant_pad_nd(%p0, ints [1, 1], number i64)", [&[NUMBER], &A[..], &[NUMBER]].concat()),
    ]
}

fn buffer(backend: &dyn Backend, dtype: DType, values: &[i64]) -> Buffer {
    let layout = LayoutRef::from(Layout::contiguous(dtype, &[values.len() as i64]));
    let bytes = match dtype {
        DType::Bool => values.iter().map(|&x| x as u8).collect(),
        _ => values.iter().flat_map(|x| x.to_ne_bytes()).collect(),
    };
    backend.upload(DEVICE, &HostTensor { layout, bytes }).unwrap_or_else(|e| panic!("upload of integers: {e}"))
}

fn elements(backend: &dyn Backend, told: &Told, layout: &LayoutRef, case: &str) -> Vec<i64> {
    let buffer = told.get(0).as_ref().unwrap_or_else(|e| panic!("{case}: {e}"));
    let host = backend.download(DEVICE, buffer, layout).unwrap_or_else(|e| panic!("{case}: {e}"));
    match layout.dtype() {
        DType::Bool => host.bytes.iter().map(|&b| b.into()).collect(),
        _ => host.bytes.chunks_exact(8).map(|b| i64::from_ne_bytes(b.try_into().expect("8 bytes"))).collect(),
    }
}

/// Whether an operator is not there for integers, which some backends know when they run it.
fn is_refused(told: &Told) -> bool {
    told.get(0).as_ref().is_err_and(|e| e.class == ErrorClass::NotImplemented)
}

/// Runs what the backend has of these; the operators.
fn check(backend: &dyn Backend, cases: Vec<Case>) -> Vec<String> {
    let mut has = Vec::new();
    for (node, expected) in cases {
        let text =
            format!("graph(%p0: i64[4], %p1: i64[4], %p2: i64[4], %p3: bool[4]) {{\n  {node}\n  return %0\n}}\n");
        let graph = Arc::new(Graph::parse(&text).unwrap_or_else(|e| panic!("{node}: {e}")));
        if backend.compile(DEVICE, &graph).is_err() {
            continue;
        }
        let layout = graph.layout(graph.outputs()[0]).clone();
        let params = [A, B, PLACES].map(|values| keep(buffer(backend, DType::I64, &values)));
        let condition = keep(buffer(backend, DType::Bool, &[1, 0, 1, 0]));
        let numbers = vec![NUMBER as u64; graph.number_count()];
        let told = run(backend, &(graph.clone(), numbers), params.into_iter().chain([condition]).collect());
        if is_refused(&told) {
            continue;
        }
        assert_eq!(elements(backend, &told, &layout, node), expected, "{node}");
        has.push(graph.nodes()[0].op().name().to_owned());
    }
    has
}

fn needs(has: &[String], names: &[&str]) {
    for name in names {
        assert!(has.iter().any(|h| h == name), "a backend has {name} of integers; of these it has {has:?}");
    }
}

/// Pointwise operators of integers above 2^53 lose no bit, nor do numbers that come with a run.
pub fn large_integers_are_computed_exactly(backend: &dyn Backend) {
    needs(&check(backend, arithmetic()), &["aten::add.Tensor", "aten::mul.Tensor", "aten::lt.Tensor"]);
}

/// Reductions of integers above 2^53 lose no bit; sums and products wrap.
pub fn large_integers_are_reduced_exactly(backend: &dyn Backend) {
    needs(&check(backend, reductions()), &["aten::sum"]);
}

/// Integers above 2^53 change their places and nothing else, also in views.
pub fn large_integers_are_moved_whole(backend: &dyn Backend) {
    needs(&check(backend, movement()), &["aten::clone", "ltc::read_view", "ltc::write_view", "aten::cat"]);
}
