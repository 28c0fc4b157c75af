//! Products of matrices.

use ltc_ir::OpCode as O;
use ndarray::{Array2, Array3, ArrayD, Axis, Ix1, Ix2, Ix3};

use super::{Answer, Compute, Kernel, by_result, value::Element};

pub(super) fn kernel(code: O) -> Option<Compute> {
    Some(match code {
        O::Mm => by_result!(product),
        O::Addmm => by_result!(added_product),
        O::Bmm => by_result!(products),
        O::Baddbmm => by_result!(added_products),
        O::Mv => by_result!(of_vector),
        O::Dot => by_result!(dot),
        _ => return None,
    })
}

fn product<T: Element>(k: &Kernel<'_>) -> Answer {
    Ok(vec![T::data(matrix::<T>(k, 0)?.dot(&matrix(k, 1)?).into_dyn())])
}

fn added_product<T: Element>(k: &Kernel<'_>) -> Answer {
    blend(k, matrix::<T>(k, 1)?.dot(&matrix(k, 2)?).into_dyn())
}

fn products<T: Element>(k: &Kernel<'_>) -> Answer {
    Ok(vec![T::data(batches(k, 0, 1)?)])
}

fn added_products<T: Element>(k: &Kernel<'_>) -> Answer {
    blend::<T>(k, batches(k, 1, 2)?)
}

fn of_vector<T: Element>(k: &Kernel<'_>) -> Answer {
    let v = k.array::<T>(1)?.into_dimensionality::<Ix1>().map_err(|e| e.to_string())?;
    Ok(vec![T::data(matrix::<T>(k, 0)?.dot(&v).into_dyn())])
}

fn dot<T: Element>(k: &Kernel<'_>) -> Answer {
    let sum = (k.array::<T>(0)? * k.array::<T>(1)?).sum();
    Ok(vec![T::data(ndarray::arr0(sum).into_dyn())])
}

fn matrix<T: Element>(k: &Kernel<'_>, argument: usize) -> Result<Array2<T>, String> {
    k.array(argument)?.into_dimensionality::<Ix2>().map_err(|e| e.to_string())
}

fn batches<T: Element>(k: &Kernel<'_>, a: usize, b: usize) -> Result<ArrayD<T>, String> {
    let three = |i| k.array(i)?.into_dimensionality::<Ix3>().map_err(|e| e.to_string());
    let (a, b): (Array3<T>, Array3<T>) = (three(a)?, three(b)?);
    let mut out = Array3::zeros((a.dim().0, a.dim().1, b.dim().2));
    for (i, mut page) in out.axis_iter_mut(Axis(0)).enumerate() {
        page.assign(&a.index_axis(Axis(0), i).dot(&b.index_axis(Axis(0), i)));
    }
    Ok(out.into_dyn())
}

/// `beta * self + alpha * product`; a `beta` of zero hides what is not finite.
fn blend<T: Element>(k: &Kernel<'_>, product: ArrayD<T>) -> Answer {
    let (beta, alpha) = (k.number(3, T::one()), k.number(4, T::one()));
    let x = k.array::<T>(0)?;
    let x = x.broadcast(product.raw_dim()).ok_or("the added tensor does not broadcast")?;
    let added = if beta == T::zero() { ArrayD::zeros(product.raw_dim()) } else { x.mapv(|x| x * beta) };
    Ok(vec![T::data(added + product.mapv(|x| x * alpha))])
}
