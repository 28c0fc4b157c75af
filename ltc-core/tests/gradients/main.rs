//! Gradients against differences: every expression of the table and every rule, in double precision over the reference
//! backend, with every argument at some other value than its default.

mod checks;
mod dims;
mod networks;
mod pointwise;

use std::collections::BTreeMap;

use ltc_core::{Error, GradOptions, LazyTensor, grad, no_grad};
use ltc_ir::DType;

use self::checks::{Checks, check, points, session};

/// What is checked.
const FAMILIES: [fn(&mut Checks<'_>); 10] = [
    pointwise::of_one,
    pointwise::of_several,
    pointwise::of_losses,
    dims::of_reductions,
    dims::of_products,
    dims::of_views_and_joins,
    dims::of_indices,
    networks::of_planes,
    networks::of_norms,
    networks::of_dropout,
];

#[test]
fn gradients_are_what_differences_say() {
    let session = session();
    let dev = session.device(0).expect("a device");
    let mut checks = Checks::new(dev, true);
    FAMILIES.iter().for_each(|family| family(&mut checks));
}

/// A gradient that nobody compares with another value of an argument may ignore that argument.
#[test]
fn every_argument_of_an_operator_with_a_gradient_is_checked_or_refused() {
    let session = session();
    let dev = session.device(0).expect("a device");
    let mut checks = Checks::new(dev, false);
    FAMILIES.iter().for_each(|family| family(&mut checks));
    let known = BTreeMap::from([
        // No kernel for the CPU takes it, so its rule refuses it.
        ("aten::_log_softmax", vec!["half_to_float"]),
        ("aten::_softmax", vec!["half_to_float"]),
        // Views of native tensors are never implicit.
        ("aten::expand", vec!["implicit"]),
    ]);
    assert_eq!(checks.uncovered(), known, "add a call to a family in this folder");
}

#[test]
fn of_gradients() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let first = |x: &LazyTensor, y: LazyTensor| -> Result<LazyTensor, Error> {
        let g = grad(&[&y], &[x], GradOptions { create_graph: true })?;
        g.into_iter().next().flatten().ok_or_else(|| Error::NoGradient("none".into()))
    };
    let x = LazyTensor::from_slice(dev, &[0.5f64, 1.5], &[2])?.requiring_grad();
    let third = first(&x, first(&x, first(&x, x.mul(&x)?.mul(&x)?.sum()?)?.sum()?)?.sum()?)?;
    assert_eq!(third.to_vec::<f64>()?, [6.0, 6.0]);
    let m = [points(dev, &[3, 4], -1.0, 1.0)];
    check("softmax twice", &|x| first(&x[0], x[0].softmax(1)?.pow(2.0)?.sum()?), &m);
    check("log_softmax twice", &|x| first(&x[0], x[0].log_softmax(1)?.pow(2.0)?.sum()?), &m);
    check("mm twice", &|x| first(&x[0], x[0].mm(&x[0].t()?)?.tanh()?.sum()?), &m);
    Ok(())
}

#[test]
fn gradients_accumulate_in_leaves_and_nowhere_under_no_grad() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let x = LazyTensor::from_slice(dev, &[1.0f64, 2.0], &[2])?.requiring_grad();
    for _ in 0..2 {
        (&x * &x).sum()?.backward()?;
    }
    assert_eq!(x.grad().expect("a gradient").to_vec::<f64>()?, [4.0, 8.0]);
    x.set_grad(None);
    {
        let _off = no_grad();
        assert!(!(&x * 2.0).requires_grad());
        x.add_(1.0)?;
    }
    assert!(matches!(x.add_(1.0), Err(Error::InPlaceGradient)));
    assert!((&x * 2.0).backward().is_err() && x.detach().sum()?.backward().is_err());
    // What a gradient needs is a value, whatever is written later.
    let y = x.exp()?;
    let _off = no_grad();
    x.zero_()?;
    drop(_off);
    y.sum()?.backward()?;
    assert_eq!(x.grad().expect("a gradient").to_vec::<f64>()?, [2f64.exp(), 3f64.exp()]);
    // A chain of many operations records, differentiates and drops without recursion.
    let mut y = x.clone();
    for _ in 0..20_000 {
        y = y.add(1.0)?;
    }
    y.sum()?.backward()?;
    Ok(())
}

/// The expressions and rules of gradients do not conjugate.
#[test]
fn gradients_of_complex_tensors_are_refused() -> Result<(), Error> {
    let session = session();
    let x = LazyTensor::zeros(session.device(0)?, &[2], DType::C64)?.requiring_grad();
    match x.mul(&x)?.sum()?.backward() {
        Err(Error::NoGradient(why)) => assert!(why.contains("complex"), "{why}"),
        other => panic!("{other:?}"),
    }
    Ok(())
}
