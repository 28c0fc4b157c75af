//! Runs a program as a compiled step, again and again, beside eager tensors.

use std::cell::RefCell;

use tch::Tensor;

use crate::{
    compare::{same_meta, same_values},
    program::{Program, Step},
    run::{Disagreement, Slots, attempt, make, overlaps_itself, undefined},
    subject::{Lazy, Subject},
};

/// One operator, and whether it is called and does not fail.
type Outcome = (Step, bool);

fn all_agree(what: &str, expected: &[Tensor], got: &[Tensor]) -> Result<(), String> {
    if expected.len() != got.len() {
        return Err(format!("{what}: {} tensors, expected {}", got.len(), expected.len()));
    }
    for (i, (expected, got)) in expected.iter().zip(got).enumerate() {
        let same = same_meta(expected, got).and_then(|()| same_values(expected, &Lazy::new().get(got)?));
        same.map_err(|e| format!("{what} {i}: {e}"))?;
    }
    Ok(())
}

fn copy<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Vec<Tensor> {
    tensors.map(Tensor::shallow_clone).collect()
}

/// A part of other memory, which holds the same: it begins elsewhere in each call.
fn part_of(memory: &Tensor, like: &Tensor, call: u64) -> Tensor {
    memory.narrow(0, call as i64 + 1, like.numel() as i64).view(&like.size()[..])
}

/// Memory in which a tensor is a part, for every other of those that can be.
fn memory_around(i: usize, t: &Tensor, call: u64) -> Option<Tensor> {
    let edge = |n: u64| Tensor::ones([n as i64], (t.kind(), t.device()));
    if !i.is_multiple_of(2) || t.numel() == 0 {
        return None;
    }
    Some(Tensor::cat(&[edge(call + 1), t.flatten(0, -1), edge(2)], 0))
}

/// Tensors that a program makes, with other values in each call: every other of them, from the first or the second on.
fn news(program: &Program, call: u64, odd: usize) -> Vec<Tensor> {
    let made = program.iter().filter_map(|s| match s {
        Step::New { kind, shape, fill } => Some(make(*kind, shape, fill ^ (call << 8))),
        _ => None,
    });
    let first = make(tch::Kind::Float, &[2, 3], 11 + call);
    std::iter::once(first).chain(made.take(5)).enumerate().filter(|(i, _)| i % 2 == odd).map(|(_, t)| t).collect()
}

/// Runs the operators that are defined for these tensors, and says which worked.
fn run(body: &Program, slots: &mut Slots) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for s in body {
        if undefined(s, slots) {
            continue;
        }
        let result = attempt(s, slots);
        outcomes.push((s.clone(), result.is_ok()));
        result.into_iter().for_each(|t| slots.push(t));
    }
    outcomes
}

/// Whether the same operators ran and worked; numbers that are no numbers are the same, too.
fn same(a: &[Outcome], b: &[Outcome]) -> bool {
    let same = |(a, b): (&Outcome, &Outcome)| format!("{a:?}") == format!("{b:?}");
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// Calls the program's operators as one step that reads and writes every other of its tensors, is given the rest, and
/// returns all it has in the end: so results share memory with state, inputs, and each other. What is returned is
/// written to after the call, and looked at again after the next. Returns how many calls were replayed.
///
/// # Errors
/// Says in which call they differ, and how.
pub fn agree_as_a_step(program: &Program, calls: u64) -> Result<u64, Disagreement> {
    let _no_grad = tch::no_grad_guard();
    let lazy = Lazy::new();
    let state = news(program, 0, 0);
    let lazy_state: Vec<Tensor> = state.iter().map(|t| lazy.put(t)).collect();
    let is_call = |s: &&Step| {
        use Step::*;
        !matches!(s, New { .. } | Read(_) | Mark | Seed(_) | Drop(_) | Leaf(_) | Backward(_) | Random(..))
    };
    let body: Program = program.iter().filter(is_call).cloned().collect();
    let outcomes: RefCell<Vec<Outcome>> = RefCell::default();
    let unexpected = RefCell::new(None);
    let mut step = ltc_torch::compile_frozen(|inputs: &[Tensor]| {
        let mut slots = Slots::of(copy(lazy_state.iter().chain(inputs)));
        for (step, works) in outcomes.borrow().iter() {
            match (attempt(step, &slots), works) {
                (Ok(t), true) => slots.push(t),
                (Err(_), false) => {}
                (other, _) => *unexpected.borrow_mut() = Some(format!("{step:?}: {other:?}")),
            }
        }
        slots.tensors
    });
    let mut last: Option<(Vec<Tensor>, Vec<Tensor>)> = None;
    for call in 0..calls {
        let differ = |what| Disagreement { step: call as usize, what };
        let (mut inputs, mut lazy_inputs) = (Vec::new(), Vec::new());
        for (i, t) in news(program, call + 1, 1).into_iter().enumerate() {
            let memory = memory_around(i, &t, call);
            let show = |m: &Tensor| if memory.is_some() { part_of(m, &t, call) } else { m.shallow_clone() };
            let whole = memory.as_ref().unwrap_or(&t);
            lazy_inputs.push(show(&lazy.put(whole)));
            inputs.push(show(whole));
        }
        let mut slots = Slots::of(copy(state.iter().chain(&inputs)));
        let now = run(&body, &mut slots);
        if call > 0 && !same(&now, &outcomes.borrow()) {
            // Not the same step any more: data or sizes decide what it does.
            return Ok(step.counts().0);
        }
        *outcomes.borrow_mut() = now;
        let expected = slots.tensors;
        let got = step.call(&lazy_inputs, &[]).map_err(|e| differ(e.to_string()))?;
        if let Some(what) = unexpected.take() {
            return Err(differ(what));
        }
        let look = |when: &str| -> Result<(), Disagreement> {
            all_agree(&format!("result {when}"), &expected, &got)
                .and_then(|()| all_agree(&format!("state {when}"), &state, &lazy_state))
                .and_then(|()| all_agree(&format!("input {when}"), &inputs, &lazy_inputs))
                .map_err(|e| differ(format!("call {call}, {} replayed: {e}", step.counts().0)))
        };
        look("of the call")?;
        if let Some((expected, got)) = &last {
            all_agree("result of the call before", expected, got).map_err(differ)?;
        }
        let at = call as usize % expected.len();
        if !overlaps_itself(&expected[at]) {
            let (mut a, mut b) = (expected[at].shallow_clone(), got[at].shallow_clone());
            let written = (a.f_fill_(3).is_ok(), b.f_fill_(3).is_ok());
            if written.0 != written.1 {
                return Err(differ(format!("writing result {at}: {written:?}")));
            }
            look("after a write to a result")?;
        }
        last = Some((expected, got));
    }
    Ok(step.counts().0)
}
