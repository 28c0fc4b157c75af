//! Kernels with reductions, run by their twins: in every shape, and with threads in other orders.

use ltc_ir::DType;

use super::{
    super::{Arch, Launches, LibraryError, Source, program},
    rounds_once,
    twin::Twin,
};
use crate::{
    Builder, ComputeType, FusedKernel, Jit, KernelIr, KernelOp, Ran, ReductionSpace, RowKernel, Val,
    cases::{Bits, Dice, Elements, stored},
};

/// Rows, elements of each, and the strides of both in memory: a few in each way of going through them.
const SHAPES: [[usize; 4]; 12] = [
    [6, 4, 4, 1],
    [19, 1, 1, 1],
    [3, 0, 0, 1],
    [37, 255, 255, 1],
    [5, 256, 256, 1],
    [2, 700, 1400, 2],
    [3, 9001, 9001, 1],
    [4, 6, 1, 4],
    [70, 33, 1, 70],
    [1, 100_000, 100_000, 1],
    [3, 40_000, 40_001, 1],
    [40, 3000, 1, 40],
];

/// A kernel over rows. Inputs are the elements, a weight for each element of a row, and a value for each row; outputs
/// are elements, and values of rows.
struct RowCase {
    dtype: DType,
    shape: [usize; 4],
    ir: KernelIr,
}

/// Outputs of these dtypes, made of the inputs.
type Body = fn(&mut Builder, [Val; 3]) -> Vec<Val>;

impl RowCase {
    fn of(dtype: DType, shape: [usize; 4], body: Body) -> RowCase {
        let ty = ComputeType::of(dtype).expect("a type kernels compute with");
        let mut b = Builder::new(false);
        let inputs = [0, 1, 2].map(|i| b.input(i, ty));
        let outputs: Vec<Val> = body(&mut b, inputs).into_iter().map(|v| stored(&mut b, v, dtype)).collect();
        RowCase { dtype, shape, ir: b.finish(&outputs) }
    }

    fn kernel(&self) -> RowKernel {
        let [rows, each, outer, inner] = self.shape.map(|n| n as i64);
        let elements = [outer, inner];
        // The first output has all elements, as the first input has; the others one for each row.
        let mut strides: Vec<&[i64]> = vec![&elements];
        strides.extend(self.ir.outputs[1..].iter().map(|_| &[1, 0][..]));
        strides.extend([&elements[..], &[0, 1], &[1, 0]]);
        let space = ReductionSpace::new(&[rows, each], &[false, true], &strides);
        let outputs = vec![self.dtype; self.ir.outputs.len()];
        let kernel = RowKernel::new(space, &outputs, &[self.dtype; 3], &self.ir, self.ir.clone());
        let mut kernel = kernel.expect("all have loops");
        kernel.set_jit(Jit::Off);
        kernel
    }

    fn launches(&self) -> Launches {
        Launches::of(&FusedKernel::Rows(Box::new(self.kernel()))).expect("all have a text")
    }

    /// What is in the outputs after `run`; inputs are what `next` gives.
    fn run(&self, mut next: impl FnMut() -> f64, run: impl FnOnce(&[*mut u8], &[*const u8])) -> Vec<Bits> {
        let [rows, each, outer, inner] = self.shape;
        let span = rows.saturating_sub(1) * outer + each.saturating_sub(1) * inner + 1;
        let mut bits = || match self.dtype {
            DType::BF16 => u64::from(half::bf16::from_f64(next()).to_bits()),
            dtype => ComputeType::of(dtype).expect("one").bits_of(next()),
        };
        let mut inputs = [span, each.max(1), rows].map(|n| Elements::of(self.dtype, n, 0, &mut bits));
        let counts = (0..self.ir.outputs.len()).map(|o| if o == 0 { span } else { rows });
        let mut outputs: Vec<Elements> = counts.map(|n| Elements::of(self.dtype, n, 0, || u64::MAX)).collect();
        let to: Vec<*mut u8> = outputs.iter_mut().map(Elements::at).collect();
        let from: Vec<*const u8> = inputs.iter_mut().map(|i| i.at().cast_const()).collect();
        run(&to, &from);
        outputs.iter_mut().map(Elements::bits).collect()
    }

    fn by_loops(&self, next: impl FnMut() -> f64) -> Vec<Bits> {
        let kernel = self.kernel();
        self.run(next, |to, from| {
            // SAFETY: elements are there for the space, and results are no operands.
            let ran = unsafe { kernel.run(to, from, &[], |n, _, f| f(0..n)) };
            assert!(matches!(ran, Ok(Ran::Loops)));
        })
    }

    fn by_twin(&self, twin: &Twin, next: impl FnMut() -> f64, order: u32) -> Result<Vec<Bits>, LibraryError> {
        let launches = self.launches();
        let mut outcome = Ok(());
        let found = self.run(next, |to, from| {
            // SAFETY: elements are there for the space.
            outcome = unsafe { twin.run(&launches, (to, from), &[], order) };
        });
        outcome.map(|()| found)
    }
}

fn sources(cases: &[RowCase]) -> Vec<Source> {
    cases.iter().flat_map(|case| case.launches().each).map(|launch| launch.source).collect()
}

/// Texts of each team, and of long rows.
pub(super) fn samples() -> Vec<Source> {
    let softmaxes = [SHAPES[3], SHAPES[6], SHAPES[8]].map(|shape| RowCase::of(DType::F32, shape, softmax));
    let chunks = [SHAPES[9], SHAPES[11]].map(|shape| RowCase::of(DType::BF16, shape, one_pass_of_floats));
    [sources(&softmaxes), sources(&chunks)].concat()
}

/// Whole numbers, whose sums are exact in any order.
fn whole(seed: u64) -> impl FnMut() -> f64 {
    let mut dice = Dice(seed | 1);
    move || dice.below(17) as f64 - 8.0
}

/// Numbers whose sums are rounded.
fn any(seed: u64) -> impl FnMut() -> f64 {
    let mut dice = Dice(seed | 1);
    move || (dice.next() >> 40) as f64 / f64::from(1 << 21) - 4.0
}

/// A sum, and elements on the way: one pass.
fn one_pass(b: &mut Builder, [x, weight, shift]: [Val; 3]) -> Vec<Val> {
    let product = b.op(KernelOp::Mul, &[x, weight]);
    let element = b.op(KernelOp::Add, &[product, shift]);
    let sum = b.op(KernelOp::Sum, &[product]);
    let shifted = b.op(KernelOp::Add, &[sum, shift]);
    vec![element, sum, shifted]
}

/// The same with the largest and the smallest, which exist for floats only.
fn one_pass_of_floats(b: &mut Builder, [x, weight, shift]: [Val; 3]) -> Vec<Val> {
    let mut outputs = one_pass(b, [x, weight, shift]);
    outputs.push(b.op(KernelOp::AMax, &[x]));
    outputs.push(b.op(KernelOp::AMin, &[x]));
    outputs
}

/// Elements less the largest, times their sum.
fn three_passes(b: &mut Builder, [x, weight, shift]: [Val; 3]) -> Vec<Val> {
    let largest = b.op(KernelOp::AMax, &[x]);
    let largest = b.op(KernelOp::Add, &[largest, shift]);
    let rest = b.op(KernelOp::Sub, &[x, largest]);
    let sum = b.op(KernelOp::Sum, &[rest]);
    let product = b.op(KernelOp::Mul, &[rest, weight]);
    let element = b.op(KernelOp::Add, &[product, sum]);
    vec![element, sum, largest]
}

fn softmax(b: &mut Builder, [x, ..]: [Val; 3]) -> Vec<Val> {
    let largest = b.op(KernelOp::AMax, &[x]);
    let rest = b.op(KernelOp::Sub, &[x, largest]);
    let e = b.op(KernelOp::Exp, &[rest]);
    let sum = b.op(KernelOp::Sum, &[e]);
    vec![b.op(KernelOp::Div, &[e, sum]), sum]
}

#[test]
fn reductions_of_whole_numbers_give_the_bits_of_tier_0() {
    let kinds: [(DType, Body); 6] = [
        (DType::F32, one_pass_of_floats),
        (DType::F64, one_pass_of_floats),
        (DType::I64, one_pass),
        (DType::F32, three_passes),
        (DType::F64, three_passes),
        (DType::BF16, three_passes),
    ];
    let each = |(dtype, body): (DType, Body)| SHAPES.map(|shape| RowCase::of(dtype, shape, body));
    let cases: Vec<RowCase> = kinds.into_iter().flat_map(each).collect();
    let Some(twin) = Twin::of(&sources(&cases)).filter(|_| rounds_once()) else { return };
    for (i, case) in cases.iter().enumerate() {
        let found = case.by_twin(&twin, whole(7), i as u32 % 3).expect("threads meet");
        let expected = case.by_loops(whole(7));
        for (o, (expected, found)) in expected.iter().zip(&found).enumerate() {
            assert!(expected == found, "output {o} of {:?} {:?}:\n{}", case.dtype, case.shape, case.ir);
        }
    }
}

/// The bits do not depend on which thread comes first, and are near those of tier 0.
#[test]
fn softmax_is_the_same_in_every_order() {
    let cases = SHAPES.map(|shape| RowCase::of(DType::F32, shape, softmax));
    let Some(twin) = Twin::of(&sources(&cases)).filter(|_| rounds_once()) else { return };
    for case in cases {
        let first = case.by_twin(&twin, any(3), 0).expect("threads meet");
        for order in 1..4 {
            assert!(case.by_twin(&twin, any(3), order).expect("threads meet") == first, "{:?}", case.shape);
        }
        for (expected, found) in case.by_loops(any(3)).iter().zip(&first) {
            for (a, b) in expected.0.iter().zip(&found.0) {
                let [a, b] = [a, b].map(|bits| f32::from_bits(*bits as u32));
                assert!((a - b).abs() <= 1e-6 * a.abs() || a.is_nan() && b.is_nan(), "{:?}: {a} {b}", case.shape);
            }
        }
    }
}

/// Threads add their elements in single precision, then what they have pairwise in double precision.
#[test]
fn sums_are_added_in_one_order() {
    let case = RowCase::of(DType::F32, [2, 700, 700, 1], one_pass);
    let Some(twin) = Twin::of(&sources(std::slice::from_ref(&case))) else { return };
    let found = case.by_twin(&twin, any(5), 1).expect("threads meet");
    let mut next = any(5);
    let [x, weight] = [1400, 700].map(|n| (0..n).map(|_| next() as f32).collect::<Vec<_>>());
    for (row, sum) in x.chunks(700).zip(&found[1].0) {
        let products: Vec<f32> = row.iter().zip(&weight).map(|(x, w)| x * w).collect();
        let of_thread = |t: usize| f64::from(products.iter().skip(t).step_by(256).fold(0f32, |sum, x| sum + x));
        let pairwise = |mut values: Vec<f64>| {
            while values.len() > 1 {
                values = values.chunks(2).map(|pair| pair[0] + pair[1]).collect();
            }
            values[0]
        };
        let threads: Vec<f64> = (0..256).map(of_thread).collect();
        let mut warps: Vec<f64> = threads.chunks(32).map(|warp| pairwise(warp.to_vec())).collect();
        warps.resize(32, 0.0);
        assert_eq!(f32::from_bits(*sum as u32), pairwise(warps) as f32);
    }
}

/// Each barrier that is left out, and other mistakes, give other bits in some order, or threads that never meet.
#[test]
fn mistakes_are_found() {
    let cases = [[3, 700, 700, 1], [40, 70, 1, 40]].map(|shape| RowCase::of(DType::F32, shape, softmax));
    let text = program(&sources(&cases));
    let Some(right) = Twin::of_text(&text, &sources(&cases)) else { return };
    let barriers: Vec<usize> = text.match_indices("__syncthreads();").map(|(at, _)| at).collect();
    assert_eq!(barriers.len(), 4);
    let mut mistakes: Vec<String> =
        barriers.into_iter().map(|at| format!("{}{}", &text[..at], &text[at + "__syncthreads();".len()..])).collect();
    let others = [
        // An element of the next row, elements left out, and a thread that is gone before the others come.
        ("i < (I)each", "i <= (I)each"),
        ("i += Team::step()", "i += Team::step() + 1"),
        ("if (lane == 0) warps", "if (lane == 0) return x; warps"),
        // What the lanes of a warp have, joined with what those of another have.
        ("lanes < 32", "lanes < 16"),
    ];
    for (right, wrong) in others {
        assert!(text.contains(right), "{right}");
        mistakes.push(text.replace(right, wrong));
    }
    let orders = 0..6u32;
    for (m, wrong) in mistakes.iter().enumerate() {
        let wrong = Twin::of_text(wrong, &sources(&cases)).expect("the same compiler");
        let differs = |case: &RowCase| {
            let expected = case.by_twin(&right, any(3), 0).ok();
            orders.clone().any(|order| case.by_twin(&wrong, any(3), order).ok() != expected)
        };
        assert!(cases.iter().any(differs), "mistake {m}");
    }
}

/// What goes wrong at a launch comes as an error with the driver's words.
#[test]
fn a_driver_says_what_it_does_not_do() {
    let case = RowCase::of(DType::F32, [5, 1000, 1000, 1], softmax);
    let text = program(&sources(std::slice::from_ref(&case)));
    let wrong = text.replace("if (lane == 0) warps", "if (lane == 0) return x; warps");
    let Some(twin) = Twin::of_text(&wrong, &sources(std::slice::from_ref(&case))) else { return };
    assert_eq!(twin.arch(), Arch { major: 8, minor: 0 });
    let other = RowCase::of(DType::F64, [5, 1000, 1000, 1], softmax);
    for (case, expected) in [
        (&case, "cuLaunchKernel: threads wait for others that never come (719)"),
        (&other, "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)"),
    ] {
        let error = case.by_twin(&twin, any(3), 0).expect_err("a mistake").to_string();
        assert_eq!(error, expected);
    }
}

/// Machines without a GPU have no driver: that is an error, not the end.
#[test]
fn a_missing_driver_is_an_error() {
    // SAFETY: there is no such file.
    let opened = unsafe { crate::cuda::Driver::open_at("no-driver.so".as_ref()) };
    assert!(matches!(opened, Err(LibraryError::Missing(_))));
}

#[test]
fn a_block_a_row() {
    let case = RowCase::of(DType::F32, [5, 1000, 1000, 1], softmax);
    insta::assert_snapshot!(case.launches().each[0].source.text);
}

#[test]
fn chunks_of_long_rows() {
    let case = RowCase::of(DType::BF16, [3, 40_000, 40_000, 1], one_pass);
    let launches = case.launches();
    assert_eq!(launches.scratch_bytes, 3 * 2 * 8);
    let texts: Vec<&str> = launches.each.iter().map(|launch| launch.source.text.as_str()).collect();
    insta::assert_snapshot!(texts.join("\n"));
}
