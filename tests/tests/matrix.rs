//! The operator table against eager libtorch: shape rules, dtypes, strides, errors. `make matrix` runs all of it.

use std::collections::BTreeMap;

use ltc_backend::ReferenceBackend;
use ltc_ir::OpClass;
use ltc_tests::matrix::{Tested, call, mutant, table, value};

fn quick() -> bool {
    std::env::var_os("LTC_MATRIX_FULL").is_none()
}

/// Rows of the command line's choice: `LTC_MATRIX_OPS=add,mul`.
fn chosen(t: &Tested) -> bool {
    let Ok(list) = std::env::var("LTC_MATRIX_OPS") else { return true };
    list.split(',').any(|name| t.row.name == format!("aten::{}", name.trim()))
}

fn report(failures: &[String], calls: usize) {
    assert!(failures.is_empty(), "{} of {calls} calls differ:\n{}", failures.len(), failures.join("\n"));
    assert!(calls > 0, "no calls were made");
}

#[test]
fn rules_answer_what_kernels_do() {
    let (mut failures, mut calls) = (Vec::new(), 0);
    for t in table().iter().filter(|t| chosen(t) && t.columns.skip.is_none()) {
        for sample in t.samples() {
            let Ok(values) = t.arguments(&sample).map_err(|e| failures.push(e)) else { continue };
            for dtype in t.dtypes(quick()) {
                calls += 1;
                let made = call::make(t.row, &values, dtype);
                if let Err(e) = call::compare(t.row, &made, false) {
                    failures.push(format!("{} ({sample}) {dtype}: {e}", t.row.name));
                }
            }
        }
    }
    report(&failures, calls);
}

/// How many spoilt calls of an operator end otherwise than in eager, and why: `aten::cauchy 2 reason`. Counts are
/// exact, so that a rule that gets better, or worse, has to say so: `LTC_MATRIX_BLESS=1` writes them. A line without a
/// reason fails.
const KNOWN: &str = include_str!("matrix_known.txt");

fn known() -> BTreeMap<&'static str, (usize, &'static str)> {
    let line = |l: &'static str| {
        let mut words = l.splitn(3, ' ');
        Some((words.next()?, (words.next()?.parse().ok()?, words.next().unwrap_or_default())))
    };
    KNOWN.lines().map(|l| line(l).unwrap_or_else(|| panic!("`{l}` is no known difference"))).collect()
}

#[test]
fn spoilt_calls_raise_what_eager_raises() {
    // Tells which call a kernel dies of.
    let trace = std::env::var_os("LTC_MATRIX_TRACE").is_some();
    let (mut failures, mut calls) = (BTreeMap::<&str, Vec<String>>::new(), 0);
    for t in table().iter().filter(|t| chosen(t) && t.columns.skip.is_none() && t.columns.unchecked.is_none()) {
        for sample in &t.samples() {
            let Ok(values) = t.arguments(sample) else { continue };
            for values in mutant::of(&values) {
                calls += 1;
                if trace {
                    eprintln!("{} {values:?}", t.row.name);
                }
                let made = call::make(t.row, &values, t.dtypes(true)[0]);
                if let Err(e) = call::compare(t.row, &made, true) {
                    failures
                        .entry(t.row.name)
                        .or_default()
                        .push(format!("{} ({sample} -> {values:?}): {e}", t.row.name));
                }
            }
        }
    }
    // All of them, known or not, with `--nocapture`.
    if std::env::var_os("LTC_MATRIX_SHOW").is_some() {
        failures.values().flatten().for_each(|f| eprintln!("{f}"));
    }
    if std::env::var_os("LTC_MATRIX_BLESS").is_some() {
        let reason = |name: &str| known().get(name).map_or("", |k| k.1);
        let line = |(name, f): (&&str, &Vec<String>)| format!("{name} {} {}\n", f.len(), reason(name));
        let lines: String = failures.iter().map(line).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/matrix_known.txt");
        std::fs::write(path, lines).expect("the list is written");
    }
    let known = known();
    let mut wrong = Vec::new();
    for (name, (_, reason)) in &known {
        if reason.is_empty() || !table().iter().any(|t| t.row.name == *name) {
            wrong.push(format!("{name} of matrix_known.txt has no reason, or is no row"));
        }
    }
    for t in table().iter().filter(|t| chosen(t)) {
        let (now, then) = (failures.get(t.row.name), known.get(t.row.name).map_or(0, |k| k.0));
        if now.map_or(0, Vec::len) != then {
            wrong.push(format!("{}: {then} known differences, now {}", t.row.name, now.map_or(0, Vec::len)));
            wrong.extend(now.into_iter().flatten().cloned());
        }
    }
    report(&wrong, calls);
}

/// The reference backend is a third opinion: it computes pointwise rows by the expressions that fusion reads.
#[test]
fn expressions_compute_what_kernels_do() {
    let (mut failures, mut calls, mut compared) = (Vec::new(), 0, std::collections::BTreeSet::new());
    let drawn = |t: &&Tested| t.row.class == OpClass::Random || t.row.name.contains("empty");
    for t in table().iter().filter(|t| chosen(t) && t.columns.skip.is_none() && !drawn(t)) {
        for sample in t.samples() {
            let Ok(values) = t.arguments(&sample) else { continue };
            for dtype in t.dtypes(quick()) {
                calls += 1;
                let made = call::make(t.row, &values, dtype);
                match value::compare(&ReferenceBackend, t.row, &made, t.columns.tolerance) {
                    Ok(value::Outcome::Same) => drop(compared.insert(t.row.name)),
                    Ok(value::Outcome::Lacking) => {}
                    Err(e) => failures.push(format!("{} ({sample}) {dtype}: {e}", t.row.name)),
                }
            }
        }
    }
    // Shown with `--nocapture`.
    eprintln!("{} operators compared by value", compared.len());
    report(&failures, calls);
}

#[test]
fn schemas_are_the_dispatchers() {
    let plain = |text: &str| text.replace("SymInt", "int").replace("aten::", "").replace(' ', "");
    let mut failures = Vec::new();
    for t in table() {
        let Some(dispatcher) = ltc_torch_sys::op_schema(t.row.name) else {
            failures.push(format!("{} is not registered", t.row.name));
            continue;
        };
        let count = |text: &str| plain(text).matches("Tensor").count();
        if count(t.row.schema) != count(&dispatcher) {
            failures.push(format!("{}: table {}, dispatcher {dispatcher}", t.row.name, t.row.schema));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
