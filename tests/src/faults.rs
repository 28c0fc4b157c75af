//! Calls that fail on values: eager raises at the call; lazily the exception comes later, and then the state is
//! eager's.

use tch::{Kind, Tensor};

use crate::{
    compare::{same_meta, same_values},
    program::{Program, Step, place_like},
    run::{Slots, attempt, fill_what_grew, given_out, make, undefined},
    subject::Subject,
};

/// Calls whose arguments' values make them fail.
pub const BAD: &[&str] = &["index_select", "index_copy_", "index_add_", "gather", "take", "bernoulli", "embedding"];

type Applied = Result<Tensor, tch::TchError>;

fn bad(op: &str, a: &Tensor) -> Applied {
    // The first index is wrong: what eager wrote by then of what it should is not defined.
    let out = place_like(&Tensor::from_slice(&[99i64, 99]), a);
    let mut a = a.shallow_clone();
    match op {
        "index_select" => a.f_index_select(0, &out),
        "index_add_" | "index_copy_" => {
            let row = a.f_narrow(0, 0, 1)?;
            let source = Tensor::f_cat(&[&row, &row], 0)?;
            if op == "index_add_" { a.f_index_add_(0, &out, &source) } else { a.f_index_copy_(0, &out, &source) }
        }
        "gather" => a.f_flatten(0, -1)?.f_gather(0, &out, false),
        "take" => a.f_take(&out),
        "embedding" => Tensor::f_embedding(&a.f_flatten(0, -1)?.f_unsqueeze(1)?, &out, -1, false, false),
        _ => a.f_to_kind(Kind::Float)?.f_full_like(2.0)?.f_bernoulli(),
    }
}

fn put(program: &Program, subject: &dyn Subject, first: &Tensor) -> (Slots, Slots) {
    tch::manual_seed(1);
    subject.seed(1);
    let _ = program;
    (Slots::of(vec![first.copy()]), Slots::of(vec![subject.put(first)]))
}

/// One step on both; errors of both are none. Whether it was done.
fn step(step: &Step, eager: &mut Slots, other: &mut Slots, subject: &dyn Subject) -> Result<(), String> {
    match step {
        Step::New { kind, shape, fill } => {
            let t = make(*kind, shape, *fill);
            other.push(subject.put(&t));
            eager.push(t);
        }
        Step::Seed(seed) => {
            tch::manual_seed(*seed as i64);
            subject.seed(*seed);
        }
        Step::Mark => subject.mark(),
        Step::Read(_) | Step::Drop(_) | Step::Leaf(_) | Step::Backward(_) => {}
        _ if undefined(step, eager) => {}
        _ => {
            let before = given_out(step, eager);
            match (attempt(step, eager), attempt(step, other)) {
                (Ok(a), Ok(b)) => {
                    eager.push(a);
                    other.push(b);
                }
                (Err(_), Err(_)) => fill_what_grew(step, before, [eager, other]),
                (a, b) => return Err(format!("{step:?}: eager {:?}, lazy {:?}", a.map(drop), b.map(drop))),
            }
        }
    }
    Ok(())
}

fn same(what: &str, eager: &Slots, other: &Slots, subject: &dyn Subject) -> Result<(), String> {
    for (i, (a, b)) in eager.tensors.iter().zip(&other.tensors).enumerate() {
        let got = subject.get(b).map_err(|e| format!("{what}, tensor {i}: {e}"))?;
        same_meta(a, b).and_then(|()| same_values(a, &got)).map_err(|e| format!("{what}, tensor {i}: {e}"))?;
    }
    Ok(())
}

/// Steps that change nothing of a tensor but its values.
fn keeps_shapes(step: &Step) -> bool {
    !matches!(step, Step::New { .. } | Step::Out(..) | Step::Seed(_) | Step::Mark | Step::Read(_) | Step::Drop(_))
}

/// Runs the program on both, with a call that fails after step `at`; lazily, the next `behind` steps are recorded
/// before anybody waits. Afterwards tensors and draws are those of the eager run, which did none of these; and the rest
/// of the program runs on both. Whether there was a failure.
///
/// # Errors
/// Says where the two differ, or that nothing failed where eager does.
pub fn agree_after_failure(
    program: &Program,
    subject: &dyn Subject,
    (op, at, slot): (&str, usize, usize),
    behind: usize,
) -> Result<bool, String> {
    let _no_grad = tch::no_grad_guard();
    while ltc_torch::sync().and_then(|()| ltc_torch::wait()).is_err() {}
    let (mut eager, mut other) = put(program, subject, &make(Kind::Float, &[2, 3], 11));
    let at = at % program.len();
    for s in &program[..at] {
        step(s, &mut eager, &mut other, subject)?;
    }
    let target = slot % eager.tensors.len();
    let Err(expected) = bad(op, &eager.tensors[target]) else { return Ok(false) };
    let rest = (at + behind).min(program.len());
    {
        let mut after = Slots::of(other.tensors.iter().map(Tensor::shallow_clone).collect());
        let mut shapes = Slots::of(eager.tensors.iter().map(Tensor::copy).collect());
        let failed = bad(op, &other.tensors[target]);
        let mut waited = failed.is_err();
        let failed = failed.ok();
        // Something of its own, also of booleans: what overwrites the result itself leaves nothing to fail. Never a
        // call that the dtype refuses: it may run eagerly, and then it is what tells of the failure.
        let own = |t: &Tensor| if t.kind() == Kind::Bool { t.f_logical_not() } else { t.f_neg() };
        let lost = failed.as_ref().map(|t| own(t).unwrap_or_else(|_| t.shallow_clone()));
        after.push(lost.as_ref().unwrap_or(&other.tensors[target]).shallow_clone());
        shapes.push(shapes.tensors[target].copy());
        for s in program[at..rest].iter().filter(|s| keeps_shapes(s)) {
            if waited {
                break;
            }
            if matches!(s, Step::Random(..)) || undefined(s, &shapes) {
                continue;
            }
            match attempt(s, &after) {
                Ok(t) => after.push(t),
                // An error of the call, or a wait.
                Err(e) => waited = e.to_string().contains("raised while running"),
            }
        }
        if !waited {
            ltc_torch::sync().map_err(|e| e.to_string())?;
            let told = if behind.is_multiple_of(2) {
                ltc_torch::wait().map_err(|e| e.to_string())
            } else {
                subject.get(lost.as_ref().unwrap_or(&other.tensors[0])).map(drop)
            };
            let Err(told) = told else {
                // What was overwritten before anybody asked for it never ran.
                let overwritten = op.ends_with('_');
                return if overwritten { Ok(false) } else { Err(format!("{op} did not fail: eager says {expected}")) };
            };
            let expected = expected.to_string();
            let words = expected.lines().next().unwrap_or_default();
            if !words.contains(told.lines().next().unwrap_or_default().split(" (raised").next().unwrap_or_default()) {
                return Err(format!("`{told}`, eager says `{words}`"));
            }
        }
    }
    same("after the failure", &eager, &other, subject)?;
    for s in &program[rest..] {
        step(s, &mut eager, &mut other, subject)?;
    }
    let draw = Step::Random("rand_like", 0, 0.0);
    step(&draw, &mut eager, &mut other, subject)?;
    same("at the end", &eager, &other, subject)?;
    ltc_torch::wait().map_err(|e| format!("told again: {e}"))?;
    Ok(true)
}
