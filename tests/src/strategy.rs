//! How random programs are drawn.

use proptest::{collection::vec, prelude::*, sample::select};
use tch::Kind;

use crate::program::{self as p, Program, Step};

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        6 => Just(Kind::Float),
        2 => Just(Kind::Double),
        2 => Just(Kind::Int64),
        1 => Just(Kind::Int),
        1 => Just(Kind::Uint8),
        1 => Just(Kind::Bool),
        1 => Just(Kind::BFloat16),
        1 => Just(Kind::Half),
    ]
}

fn shape() -> impl Strategy<Value = Vec<i64>> {
    vec(prop_oneof![1 => Just(0i64), 3 => Just(1), 6 => Just(2), 6 => Just(3), 2 => Just(5)], 0..4)
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-3i32..4).prop_map(f64::from),
        (-30i32..30).prop_map(|n| f64::from(n) / 8.0 + 0.03125),
        Just(f64::NAN),
        Just(f64::INFINITY)
    ]
}

fn slot() -> impl Strategy<Value = u8> {
    any::<u8>()
}

/// A tensor of any dtype and small shape.
pub fn new() -> impl Strategy<Value = Step> {
    (kind(), shape(), any::<u64>()).prop_map(|(kind, shape, fill)| Step::New { kind, shape, fill })
}

fn observe() -> impl Strategy<Value = Step> {
    prop_oneof![slot().prop_map(Step::Read), Just(Step::Mark), slot().prop_map(Step::Drop)]
}

fn views() -> impl Strategy<Value = Step> {
    (select(p::VIEW), slot(), -3i64..4, -3i64..4, -3i64..4).prop_map(|(op, a, x, y, z)| Step::View(op, a, x, y, z))
}

fn writes() -> impl Strategy<Value = Step> {
    prop_oneof![
        (select(p::UNARY_IN_PLACE), slot()).prop_map(|(op, a)| Step::UnaryInPlace(op, a)),
        (select(p::BINARY_IN_PLACE), slot(), slot()).prop_map(|(op, a, b)| Step::BinaryInPlace(op, a, b)),
        (select(p::SCALAR_IN_PLACE), slot(), number()).prop_map(|(op, a, x)| Step::ScalarInPlace(op, a, x)),
        (select(p::OUT), slot(), slot(), slot()).prop_map(|(op, d, a, b)| Step::Out(op, d, a, b)),
        (select(&["index_fill_", "scatter_", "index_add_", "index_put_"][..]), slot(), -3i64..4, any::<u64>())
            .prop_map(|(op, a, d, s)| Step::Index(op, a, d, s)),
    ]
}

fn computes() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (select(p::UNARY), slot()).prop_map(|(op, a)| Step::Unary(op, a)),
        4 => (select(p::BINARY), slot(), slot()).prop_map(|(op, a, b)| Step::Binary(op, a, b)),
        2 => (select(p::BINARY_SCALAR), slot(), number()).prop_map(|(op, a, x)| Step::BinaryScalar(op, a, x)),
        3 => (select(p::REDUCE), slot(), -3i64..4, any::<bool>()).prop_map(|(op, a, d, k)| Step::Reduce(op, a, d, k)),
        1 => (select(p::TERNARY), slot(), slot(), slot()).prop_map(|(op, a, b, c)| Step::Ternary(op, a, b, c)),
        1 => (select(p::JOIN), slot(), slot(), -3i64..4).prop_map(|(op, a, b, d)| Step::Join(op, a, b, d)),
        2 => (select(p::INDEX), slot(), -3i64..4, any::<u64>()).prop_map(|(op, a, d, s)| Step::Index(op, a, d, s)),
        1 => (slot(), kind()).prop_map(|(a, k)| Step::Cast(a, k)),
    ]
}

fn draws() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (select(p::RANDOM), slot(), 0.0f64..1.0).prop_map(|(op, a, x)| Step::Random(op, a, x)),
        1 => (0u64..5).prop_map(Step::Seed),
    ]
}

/// Programs over everything.
pub fn programs(steps: usize) -> impl Strategy<Value = Program> {
    vec(prop_oneof![3 => new(), 8 => computes(), 4 => views(), 4 => writes(), 1 => draws(), 2 => observe()], 1..steps)
}

fn gradients() -> impl Strategy<Value = Step> {
    prop_oneof![3 => slot().prop_map(Step::Leaf), 2 => slot().prop_map(Step::Backward)]
}

/// Programs over everything that collect gradients on the way.
pub fn differentiating(steps: usize) -> impl Strategy<Value = Program> {
    vec(
        prop_oneof![2 => new(), 7 => computes(), 4 => views(), 3 => writes(), 4 => gradients(), 1 => observe()],
        1..steps,
    )
}

/// Programs that mostly view and write.
pub fn aliasing(steps: usize) -> impl Strategy<Value = Program> {
    vec(prop_oneof![1 => new(), 1 => computes(), 6 => views(), 6 => writes(), 1 => observe()], 1..steps)
}

/// Programs that mostly draw.
pub fn drawing(steps: usize) -> impl Strategy<Value = Program> {
    vec(prop_oneof![2 => new(), 1 => computes(), 1 => views(), 6 => draws(), 2 => observe()], 1..steps)
}
