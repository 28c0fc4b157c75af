//! Runs a program on eager tensors and on a subject, side by side.

use std::{cell::Cell, fmt, panic, sync::Once};

use tch::{Device, Kind, Tensor};

use crate::{
    compare::{same_meta, same_values},
    program::{self, Program, Slot, Step},
    subject::Subject,
};

/// Where the two runs differ.
#[derive(Debug)]
pub struct Disagreement {
    /// Step, or the number of steps for the comparison at the end.
    pub step: usize,
    /// What differs.
    pub what: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {}", self.step, self.what)
    }
}

/// A tensor of the program's own numbers; floats include NaN, infinities and zeros of both signs.
pub(crate) fn make(kind: Kind, shape: &[i64], fill: u64) -> Tensor {
    let n: i64 = shape.iter().product();
    let mut x = fill | 1;
    let values: Vec<f64> = (0..n)
        .map(|_| {
            x = x.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let k = (x >> 40) % 64;
            match (kind, k) {
                (Kind::Float | Kind::Double | Kind::Half | Kind::BFloat16, 0) => f64::NAN,
                (Kind::Float | Kind::Double | Kind::Half | Kind::BFloat16, 1) => f64::INFINITY,
                (Kind::Float | Kind::Double | Kind::Half | Kind::BFloat16, 2) => f64::NEG_INFINITY,
                (Kind::Float | Kind::Double | Kind::Half | Kind::BFloat16, 3) => -0.0,
                (Kind::Float | Kind::Double | Kind::Half | Kind::BFloat16, _) => k as f64 / 8.0 - 4.0,
                (Kind::Uint8, _) => (k % 8) as f64,
                (Kind::Bool, _) => (k % 2) as f64,
                _ => k as f64 % 9.0 - 4.0,
            }
        })
        .collect();
    Tensor::from_slice(&values).view(shape).to_kind(kind)
}

/// Tensors of a run. Bounded: the oldest is replaced.
pub(crate) struct Slots {
    pub(crate) tensors: Vec<Tensor>,
    next: usize,
}

const SLOTS: usize = 12;

impl Slots {
    pub(crate) fn of(tensors: Vec<Tensor>) -> Self {
        Slots { tensors, next: 0 }
    }

    fn get(&self, slot: u8) -> Tensor {
        self.tensors[slot as usize % self.tensors.len()].shallow_clone()
    }

    pub(crate) fn push(&mut self, t: Tensor) {
        if self.tensors.len() < SLOTS {
            self.tensors.push(t);
        } else {
            self.tensors[self.next % SLOTS] = t;
            self.next += 1;
        }
    }
}

/// Steps that make a tensor; `None` for those that do not.
fn apply(step: &Step, s: &Slots) -> Option<Result<Tensor, tch::TchError>> {
    use Step::*;
    let result = match step {
        Unary(op, a) => program::unary(op, &s.get(*a)),
        UnaryInPlace(op, a) => program::unary_in_place(op, &mut s.get(*a)),
        Binary(op, a, b) => program::binary(op, &s.get(*a), &s.get(*b)),
        BinaryScalar(op, a, x) => program::binary_scalar(op, &s.get(*a), *x),
        BinaryInPlace(op, a, b) => program::binary_in_place(op, &mut s.get(*a), &s.get(*b)),
        ScalarInPlace(op, a, x) => program::scalar_in_place(op, &mut s.get(*a), *x),
        Reduce(op, a, d, k) => program::reduce(op, &s.get(*a), *d, *k),
        View(op, a, x, y, z) => program::view(op, &s.get(*a), *x, *y, *z),
        Ternary(op, a, b, c) => program::ternary(op, &mut s.get(*a), &s.get(*b), &s.get(*c)),
        Out(op, d, a, b) => program::out(op, &s.get(*d), &s.get(*a), &s.get(*b)),
        Join(op, a, b, d) => program::join(op, &s.get(*a), &s.get(*b), *d),
        Index(op, a, d, seed) => program::index(op, &mut s.get(*a), *d, *seed),
        Cast(a, kind) => s.get(*a).f_to_kind(*kind),
        Random(op, a, p) => program::random(op, &mut s.get(*a), *p),
        Leaf(a) => s.get(*a).f_detach().and_then(|t| t.f_clone(&t)).and_then(|t| t.f_set_requires_grad(true)),
        Backward(a) => backward(&s.get(*a)),
        New { .. } | Seed(_) | Read(_) | Mark | Drop(_) => return None,
    };
    Some(result)
}

fn backward(t: &Tensor) -> Result<Tensor, tch::TchError> {
    if t.requires_grad() {
        t.f_sum(t.kind())?.f_backward()?;
    }
    Ok(t.shallow_clone())
}

/// `apply`, with panics as errors: tch 0.24 frees a `Scalar` argument before it reads the error of the call, and the
/// free panics over it.
pub(crate) fn attempt(step: &Step, s: &Slots) -> Result<Tensor, tch::TchError> {
    quiet_panics();
    QUIET.set(true);
    let result = panic::catch_unwind(panic::AssertUnwindSafe(|| apply(step, s).expect("a step that makes a tensor")));
    QUIET.set(false);
    result.unwrap_or_else(|e| {
        let text = e.downcast_ref::<String>().cloned().unwrap_or_else(|| "panic".into());
        Err(tch::TchError::Torch(text.lines().next().unwrap_or_default().to_owned()))
    })
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let show = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                show(info);
            }
        }));
    });
}

/// Where the elements of a tensor lie: from its first byte to the one behind its last.
fn addresses(t: &Tensor) -> (usize, usize) {
    let start = t.data_ptr() as usize;
    let last: i64 = t.size().iter().zip(t.stride()).map(|(n, s)| (n - 1).max(0) * s).sum();
    (start, start + (last as usize + 1) * t.kind().elt_size_in_bytes())
}

/// Whether writing `a` while reading `b` depends on the order of elements: they share memory and are not the same view.
/// libtorch finds most such calls and refuses them; what it does for the others is not defined.
fn clash(a: &Tensor, b: &Tensor) -> bool {
    let ((a0, a1), (b0, b1)) = (addresses(a), addresses(b));
    let same = a0 == b0 && a.size() == b.size() && a.stride() == b.stride() && a.kind() == b.kind();
    a0 < b1 && b0 < a1 && !same
}

/// Whether elements of a view share memory with each other, or might: writing it is not defined.
pub(crate) fn overlaps_itself(t: &Tensor) -> bool {
    let mut dims: Vec<(i64, i64)> = t.stride().into_iter().zip(t.size()).filter(|&(_, n)| n > 1).collect();
    dims.sort_unstable();
    let mut reach = 0;
    dims.into_iter().any(|(stride, n)| {
        let free = stride > reach;
        reach += stride * (n - 1);
        !free
    })
}

pub(crate) fn undefined(step: &Step, s: &Slots) -> bool {
    let written = match step {
        Step::BinaryInPlace(_, a, _)
        | Step::Out(_, a, _, _)
        | Step::UnaryInPlace(_, a)
        | Step::ScalarInPlace(_, a, _) => *a,
        Step::Ternary("addcmul_" | "index_put_mask", a, _, _) | Step::Random(_, a, _) | Step::Index(_, a, _, _) => *a,
        _ => return false,
    };
    let reads = match step {
        Step::BinaryInPlace(_, _, b) => vec![*b],
        Step::Out(_, _, a, b) | Step::Ternary(_, _, a, b) => vec![*a, *b],
        _ => vec![],
    };
    // An empty `out=` grows over whatever shares its storage, and its address says nothing.
    let grows = matches!(step, Step::Out(..)) && s.get(written).numel() == 0;
    // A product reads its operands after it began to write, and an `out=` that changes its shape comes to lie over what
    // follows it in its storage.
    let d = s.get(written);
    let moves = matches!(step, Step::Out("mm_out", ..)) || reads.iter().any(|&r| s.get(r).size() != d.size());
    let elements: usize = reads.iter().map(|&r| s.get(r).numel().max(1)).product();
    let start = d.data_ptr() as usize;
    let end = start + elements.max(d.numel()) * d.kind().elt_size_in_bytes();
    let meets = |&r: &Slot| {
        let (from, to) = addresses(&s.get(r));
        from < end && start < to
    };
    let product = matches!(step, Step::Out(..)) && moves && reads.iter().any(meets);
    grows || product || overlaps_itself(&s.get(written)) || reads.into_iter().any(|r| clash(&s.get(written), &s.get(r)))
}

/// Elements of a call's `out=`; 0 for other calls.
pub(crate) fn given_out(step: &Step, s: &Slots) -> usize {
    if let Step::Out(_, d, ..) = step { s.get(*d).numel() } else { 0 }
}

/// Writes over what a call that failed grew its `out=` by, from `before` elements: nobody else did.
pub(crate) fn fill_what_grew(step: &Step, before: usize, both: [&Slots; 2]) {
    if let Step::Out(_, d, ..) = step
        && both[0].get(*d).numel() > before
    {
        for s in both {
            let _ = s.get(*d).f_zero_();
        }
    }
}

fn first_line(e: &tch::TchError) -> String {
    e.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Runs the program on both, without autograd; `Err` says where they differ.
///
/// # Errors
/// Says at which step they differ, and how.
pub fn agree(program: &Program, subject: &dyn Subject) -> Result<(), Disagreement> {
    let _no_grad = tch::no_grad_guard();
    agree_with_gradients(program, subject)
}

/// Values, read without autograd: some views of written tensors may not be used in it any more.
fn same_reading(expected: &Tensor, got: &Tensor, subject: &dyn Subject) -> Result<(), String> {
    let _no_grad = tch::no_grad_guard();
    same_values(expected, &subject.get(got)?)
}

fn same_gradient(expected: &Tensor, got: &Tensor, subject: &dyn Subject) -> Result<(), String> {
    if !expected.requires_grad() || !expected.is_leaf() {
        return Ok(());
    }
    let (a, b) = (expected.grad(), got.grad());
    match (a.defined(), b.defined()) {
        (false, false) => Ok(()),
        (true, true) => same_reading(&a, &b, subject).map_err(|e| format!("gradient: {e}")),
        (a, b) => Err(format!("gradient defined: {b}, expected {a}")),
    }
}

/// Runs the program on both with autograd as it is; gradients of leaves are compared too.
///
/// # Errors
/// As [`agree`].
pub fn agree_with_gradients(program: &Program, subject: &dyn Subject) -> Result<(), Disagreement> {
    let first = make(Kind::Float, &[2, 3], 11);
    let mut eager = Slots::of(vec![first.copy()]);
    let mut other = Slots::of(vec![subject.put(&first)]);
    tch::manual_seed(1);
    subject.seed(1);
    // Subjects that draw from the CPU's own generator must not disturb the eager run's draws.
    let shares_generator = ltc_torch::device_of(&other.tensors[0]).is_none();
    let mut seed = 1;
    for (i, step) in program.iter().enumerate() {
        let differ = |what: String| Disagreement { step: i, what: format!("{step:?}: {what}") };
        match step {
            Step::New { kind, shape, fill } => {
                let t = make(*kind, shape, *fill);
                other.push(subject.put(&t));
                eager.push(t);
            }
            Step::Seed(s) => {
                seed = *s;
                tch::manual_seed(seed as i64);
                subject.seed(seed);
            }
            Step::Mark => subject.mark(),
            Step::Read(slot) => {
                same_reading(&eager.get(*slot), &other.get(*slot), subject).map_err(differ)?;
            }
            Step::Drop(slot) => {
                if eager.tensors.len() > 1 {
                    let at = *slot as usize % eager.tensors.len();
                    drop(eager.tensors.swap_remove(at));
                    drop(other.tensors.swap_remove(at));
                }
            }
            _ if undefined(step, &eager) => {}
            _ => {
                if shares_generator && matches!(step, Step::Random(..)) {
                    seed += 1;
                    tch::manual_seed(seed as i64);
                }
                let before = given_out(step, &eager);
                let expected = attempt(step, &eager);
                if shares_generator && matches!(step, Step::Random(..)) {
                    tch::manual_seed(seed as i64);
                }
                let got = if subject.skips(i) { Ok(other.get(0)) } else { attempt(step, &other) };
                match (expected, got) {
                    (Ok(expected), Ok(got)) => {
                        let got = subject.after(i, got);
                        same_meta(&expected, &got).map_err(differ)?;
                        eager.push(expected);
                        other.push(got);
                    }
                    (Err(_), Err(_)) => fill_what_grew(step, before, [&eager, &other]),
                    (Ok(_), Err(e)) => return Err(differ(format!("raised `{}`, eager does not", first_line(&e)))),
                    (Err(e), Ok(_)) => return Err(differ(format!("no error, eager raises `{}`", first_line(&e)))),
                }
            }
        }
    }
    for (expected, got) in eager.tensors.iter().zip(&other.tensors) {
        let differ = |what| Disagreement { step: program.len(), what };
        same_meta(expected, got).map_err(differ)?;
        same_reading(expected, got, subject).map_err(differ)?;
        same_gradient(expected, got, subject).map_err(differ)?;
    }
    debug_assert_eq!(first.device(), Device::Cpu);
    Ok(())
}
