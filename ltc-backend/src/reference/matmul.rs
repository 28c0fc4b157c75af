//! Products of matrices.

use ltc_ir::OpCode as O;
use ndarray::{Array2, Array3, ArrayD, Axis, Ix1, Ix2, Ix3};

use super::{Answer, Compute, Kernel, value::Data};

pub(super) fn kernel(code: O) -> Option<Compute> {
    Some(match code {
        O::Mm => |k| Ok(vec![Data::Float(matrix(k, 0)?.dot(&matrix(k, 1)?).into_dyn())]),
        O::Addmm => |k| blend(k, matrix(k, 1)?.dot(&matrix(k, 2)?).into_dyn()),
        O::Bmm => |k| Ok(vec![Data::Float(batches(k, 0, 1)?)]),
        O::Baddbmm => |k| blend(k, batches(k, 1, 2)?),
        O::Mv => |k| {
            let v = k.floats(1)?.into_dimensionality::<Ix1>().map_err(|e| e.to_string())?;
            Ok(vec![Data::Float(matrix(k, 0)?.dot(&v).into_dyn())])
        },
        O::Dot => |k| Ok(vec![Data::Float(ndarray::arr0((k.floats(0)? * k.floats(1)?).sum()).into_dyn())]),
        _ => return None,
    })
}

fn matrix(k: &Kernel<'_>, argument: usize) -> Result<Array2<f64>, String> {
    k.floats(argument)?.into_dimensionality::<Ix2>().map_err(|e| e.to_string())
}

fn batches(k: &Kernel<'_>, a: usize, b: usize) -> Result<ArrayD<f64>, String> {
    let three = |i| k.floats(i)?.into_dimensionality::<Ix3>().map_err(|e| e.to_string());
    let (a, b): (Array3<f64>, Array3<f64>) = (three(a)?, three(b)?);
    let mut out = Array3::zeros((a.dim().0, a.dim().1, b.dim().2));
    for (i, mut page) in out.axis_iter_mut(Axis(0)).enumerate() {
        page.assign(&a.index_axis(Axis(0), i).dot(&b.index_axis(Axis(0), i)));
    }
    Ok(out.into_dyn())
}

/// `beta * self + alpha * product`; a `beta` of zero hides what is not finite.
fn blend(k: &Kernel<'_>, product: ArrayD<f64>) -> Answer {
    let (beta, alpha) = (k.float(3, 1.0), k.float(4, 1.0));
    let x = k.floats(0)?;
    let x = x.broadcast(product.raw_dim()).ok_or("the added tensor does not broadcast")?;
    let added = if beta == 0.0 { ArrayD::zeros(product.raw_dim()) } else { &x * beta };
    Ok(vec![Data::Float(added + product * alpha)])
}
