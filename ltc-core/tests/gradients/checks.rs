//! How gradients are checked: against differences, against given numbers, or by how they are refused. What the checked
//! calls said is noted, so that what nobody checks is found.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ltc_backend::ReferenceBackend;
use ltc_core::{Config, Device, Error, LazyTensor, Session, gradients_told};
use ltc_ir::{OpCode, table};

pub(crate) fn session() -> Session {
    Session::new(Arc::new(ReferenceBackend), Config::default()).expect("a session")
}

/// Numbers away from kinks: no zeros, no halves, none equal.
pub(crate) fn points(dev: &Device, sizes: &[i64], low: f64, high: f64) -> LazyTensor {
    let n = sizes.iter().product::<i64>() as usize;
    let at = |i: usize| low + (high - low) * ((i * 7 + 3) % (n * 2 + 5)) as f64 / (n * 2 + 5) as f64 + 0.0137;
    LazyTensor::from_slice(dev, &(0..n).map(at).collect::<Vec<f64>>(), sizes).expect("a tensor")
}

pub(crate) type F<'f> = &'f dyn Fn(&[LazyTensor]) -> Result<LazyTensor, Error>;

fn leaves(inputs: &[LazyTensor]) -> Vec<LazyTensor> {
    let leaf = |t: &LazyTensor| if t.dtype().is_floating() { t.clone().requiring_grad() } else { t.clone() };
    inputs.iter().map(leaf).collect()
}

/// Compares the gradients of `Σ f·w` with differences.
pub(crate) fn check(name: &str, f: F<'_>, inputs: &[LazyTensor]) {
    compare(f, inputs).unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// What is wrong with the gradients of `Σ f·w`, which are compared with differences.
fn compare(f: F<'_>, inputs: &[LazyTensor]) -> Result<(), String> {
    let run = || -> Result<Option<String>, Error> {
        let leaves = leaves(inputs);
        let y = f(&leaves)?;
        let w = points(y.device(), y.sizes(), 0.5, 1.5);
        y.mul(&w)?.sum()?.backward()?;
        let value = |inputs: &[LazyTensor]| f(&self::leaves(inputs))?.mul(&w)?.sum()?.item();
        for (k, input) in inputs.iter().enumerate().filter(|(_, t)| t.dtype().is_floating()) {
            let at = input.to_vec::<f64>()?;
            let got = leaves[k].grad().map_or_else(|| Ok(vec![0.0; at.len()]), |g| g.to_f64_vec())?;
            for i in 0..at.len() {
                let moved = |by: f64| {
                    let mut at = at.clone();
                    at[i] += by;
                    let mut inputs = inputs.to_vec();
                    inputs[k] = LazyTensor::from_slice(input.device(), &at, input.sizes())?;
                    value(&inputs)
                };
                let expected = (moved(1e-5)? - moved(-1e-5)?) / 2e-5;
                let error = (got[i] - expected).abs() / (1.0 + expected.abs());
                // A difference that is no number is none that agrees.
                if error.is_nan() || error >= 1e-6 {
                    return Ok(Some(format!("input {k}, element {i}: {} instead of {expected}", got[i])));
                }
            }
        }
        Ok(None)
    };
    run().map_err(|e| e.to_string())?.map_or(Ok(()), Err)
}

/// Checks of a table's rows, and what they covered.
pub(crate) struct Checks<'d> {
    pub(crate) dev: &'d Device,
    /// Whether gradients are compared, or calls are only noted.
    pub(crate) compares: bool,
    /// Arguments that a checked call had at another value than their default, or was refused for.
    covered: BTreeSet<(OpCode, &'static str)>,
}

impl<'d> Checks<'d> {
    pub(crate) fn new(dev: &'d Device, compares: bool) -> Self {
        Checks { dev, compares, covered: BTreeSet::new() }
    }

    /// Notes what the calls behind a checked tensor said.
    pub(crate) fn note(&mut self, y: &LazyTensor) {
        for (code, names) in gradients_told::calls_behind(y) {
            self.covered.extend(names.into_iter().map(|name| (code, name)));
        }
    }

    /// The gradients of `f` are what differences say.
    pub(crate) fn like_differences(&mut self, name: &str, f: F<'_>, inputs: &[LazyTensor]) {
        if self.compares {
            check(name, f, inputs);
        }
        self.note(&f(&leaves(inputs)).unwrap_or_else(|e| panic!("{name}: {e}")));
    }

    /// The gradient of `Σ f` for the first input is this: for what differences cannot see.
    pub(crate) fn like(&mut self, name: &str, f: F<'_>, inputs: &[LazyTensor], expected: &[f64]) {
        let leaves = leaves(inputs);
        let run = || -> Result<(LazyTensor, Option<Vec<f64>>), Error> {
            let y = f(&leaves)?;
            y.sum()?.backward()?;
            Ok((y, leaves[0].grad().map(|g| g.to_f64_vec()).transpose()?))
        };
        let (y, got) = run().unwrap_or_else(|e| panic!("{name}: {e}"));
        let got = got.unwrap_or_else(|| panic!("{name}: no gradient"));
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(got.len() == expected.len() && got.iter().zip(expected).all(near), "{name}: {got:?}");
        self.note(&y);
    }

    /// `f` has no gradient, for this argument of its operator's, whose name and value the error says.
    pub(crate) fn refused(&mut self, code: OpCode, said: &str, f: F<'_>, inputs: &[LazyTensor]) {
        let name = code.row().name;
        let y = f(&leaves(inputs)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let run = || y.sum()?.backward();
        let error = run().expect_err(name);
        assert!(matches!(error, Error::NoGradient(_)), "{name}: {error}");
        let message = error.to_string();
        assert!(message.contains(name) && message.contains(said), "{name} {said}: {message}");
        let named = code.row().arguments.iter().find(|a| said.trim_matches('\'').split('=').next() == Some(a.name));
        self.covered.insert((code, named.unwrap_or_else(|| panic!("{name} has no {said}")).name));
    }

    /// Rows with gradients, with their arguments that no check covered.
    pub(crate) fn uncovered(&self) -> BTreeMap<&'static str, Vec<&'static str>> {
        let mut missing = BTreeMap::new();
        for row in table::rows() {
            let names = gradients_told::arguments_of_gradients(row.code).unwrap_or_default();
            let missed: Vec<_> = names.into_iter().filter(|name| !self.covered.contains(&(row.code, name))).collect();
            if !missed.is_empty() {
                missing.insert(row.name, missed);
            }
        }
        missing
    }
}
