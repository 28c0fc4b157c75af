//! Matrix products.

use super::{Call, NewResults, ShapeError, broadcast, cxx_name, one, wrap_dim};
use crate::{
    dtype::DType,
    layout::Layout,
    promote::{Category, result_type},
};

fn same_dtype(a: &Layout, b: &Layout) -> Result<(), ShapeError> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    Err(ShapeError::runtime(format!(
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        super::c_name(a.dtype()),
        super::c_name(b.dtype())
    )))
}

/// Sizes of the product of two matrices.
fn product(a: &Layout, b: &Layout) -> Result<[i64; 2], ShapeError> {
    let (x, y) = (a.sizes(), b.sizes());
    if x.len() != 2 || y.len() != 2 {
        let which = if x.len() != 2 { "self" } else { "mat2" };
        return Err(ShapeError::runtime(format!("{which} must be a matrix")));
    }
    if x[1] != y[0] {
        return Err(ShapeError::runtime(format!(
            "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
            x[0], x[1], y[0], y[1]
        )));
    }
    Ok([x[0], y[1]])
}

/// `mm(self, mat2)`.
///
/// # Errors
/// Fails where an argument is no matrix, or inner sizes or dtypes differ.
pub fn mm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (a, b) = (call.need(0)?, call.need(1)?);
    let sizes = product(a, b)?;
    same_dtype(a, b)?;
    one(Layout::contiguous(a.dtype(), &sizes))
}

fn expands(x: &Layout, sizes: &[i64]) -> Result<(), ShapeError> {
    let whole = broadcast(&[x.sizes(), sizes]).ok();
    if whole.is_some_and(|w| w[..] == *sizes) {
        return Ok(());
    }
    Err(ShapeError::runtime(format!(
        "The expanded size of the tensor ({sizes:?}) must match the existing size ({:?}) at every non-singleton \
         dimension",
        x.sizes()
    )))
}

/// `addmm(self, mat1, mat2, beta, alpha)`.
///
/// # Errors
/// As [`mm`]; also where `self` does not broadcast to the product, or has another dtype.
pub fn addmm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, a, b) = (call.need(0)?, call.need(1)?, call.need(2)?);
    let sizes = product(a, b)?;
    expands(x, &sizes)?;
    same_dtype(a, b)?;
    if x.dtype() != a.dtype() {
        return Err(ShapeError::runtime(format!(
            "self and mat2 must have the same dtype, but got {} and {}",
            cxx_name(x.dtype()),
            cxx_name(b.dtype())
        )));
    }
    one(Layout::contiguous(x.dtype(), &sizes))
}

fn batched(a: &Layout, b: &Layout) -> Result<[i64; 3], ShapeError> {
    let (x, y) = (a.sizes(), b.sizes());
    for (s, name) in [(x, "batch1"), (y, "batch2")] {
        if s.len() != 3 {
            return Err(ShapeError::runtime(format!("{name} must be a 3D tensor")));
        }
    }
    if x[0] != y[0] || x[2] != y[1] {
        return Err(ShapeError::runtime(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            x[0], x[2], y[0], y[1]
        )));
    }
    Ok([x[0], x[1], y[2]])
}

/// `bmm(self, mat2)`.
///
/// # Errors
/// Fails where an argument is no batch of matrices, where batches or inner sizes differ, and, unless the product is
/// empty, for booleans and where dtypes differ.
pub fn bmm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (a, b) = (call.need(0)?, call.need(1)?);
    let sizes = batched(a, b)?;
    if sizes.contains(&0) {
        return one(Layout::contiguous(b.dtype(), &sizes));
    }
    if a.dtype() == DType::Bool {
        return Err(super::checks::not_implemented("bmm", a.dtype()));
    }
    same_dtype(a, b)?;
    one(Layout::contiguous(a.dtype(), &sizes))
}

/// What kernels ask of the factors before they look at their ranks.
fn asked(a: &Layout, b: &Layout) -> Result<(), ShapeError> {
    wrap_dim(1, a.rank()).and(wrap_dim(2, b.rank())).map(drop)
}

/// `baddbmm(self, batch1, batch2, beta, alpha)`.
///
/// # Errors
/// Fails where a factor is no batch of matrices; where batches, inner sizes or dtypes differ; and where `self` does not
/// broadcast to the product.
pub fn baddbmm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, a, b) = (call.need(0)?, call.need(1)?, call.need(2)?);
    asked(a, b)?;
    let sizes = batched(a, b)?;
    expands(x, &sizes)?;
    if x.dtype() != a.dtype() {
        return Err(ShapeError::runtime(format!(
            "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}",
            super::c_name(x.dtype()),
            super::c_name(a.dtype()),
            super::c_name(b.dtype())
        )));
    }
    same_dtype(a, b)?;
    one(Layout::contiguous(x.dtype(), &sizes))
}

/// `addbmm(self, batch1, batch2, beta, alpha)`: products are summed over the batch.
///
/// # Errors
/// As [`baddbmm`]: `self` broadcasts to the sum of the products.
pub fn addbmm(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, a, b) = (call.need(0)?, call.need(1)?, call.need(2)?);
    asked(a, b)?;
    let [_, n, m] = batched(a, b)?;
    super::checks::one_dtype(call, &[0, 1, 2])?;
    expands(x, &[n, m])?;
    one(Layout::contiguous(x.dtype(), &[n, m]))
}

fn matrix_vector(a: &Layout, v: &Layout) -> Result<i64, ShapeError> {
    if a.rank() != 2 || v.rank() != 1 {
        return Err(ShapeError::runtime(format!(
            "vector + matrix @ vector expected, got {}, {}, {}",
            1,
            a.rank(),
            v.rank()
        )));
    }
    if a.sizes()[1] != v.sizes()[0] {
        return Err(ShapeError::runtime(format!(
            "size mismatch, got input ({}), mat ({}x{}), vec ({})",
            a.sizes()[0],
            a.sizes()[0],
            a.sizes()[1],
            v.sizes()[0]
        )));
    }
    Ok(a.sizes()[0])
}

/// Vector, matrix and vector of a product must agree in dtype, also where there is nothing to compute.
fn addmv_dtypes(x: &Layout, a: &Layout, v: &Layout) -> Result<(), ShapeError> {
    let dtypes = [x, a, v].map(Layout::dtype);
    if dtypes.iter().all(|d| *d == dtypes[0]) {
        return Ok(());
    }
    let [x, a, v] = dtypes.map(super::cxx_name);
    Err(ShapeError::runtime(format!("addmv input tensors must have the same dtype, but got {x}, {a}, and {v}")))
}

/// `mv(self, vec)`.
///
/// # Errors
/// Fails where the arguments are no matrix and vector, where inner sizes or dtypes differ, and, unless there are no
/// rows, for booleans.
pub fn mv(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (a, v) = (call.need(0)?, call.need(1)?);
    let n = matrix_vector(a, v)?;
    addmv_dtypes(v, a, v)?;
    if n > 0 {
        super::checks::dispatch(call, "addmv_impl_cpu", super::checks::not_bool, &[0, 1])?;
    }
    one(Layout::contiguous(v.dtype(), &[n]))
}

/// `addmv(self, mat, vec, beta, alpha)`.
///
/// # Errors
/// As [`mv`]; also where `self` does not broadcast to the product, or has another dtype.
pub fn addmv(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, a, v) = (call.need(0)?, call.need(1)?, call.need(2)?);
    let n = matrix_vector(a, v)?;
    expands(x, &[n])?;
    addmv_dtypes(x, a, v)?;
    if n > 0 {
        super::checks::dispatch(call, "addmv_impl_cpu", super::checks::not_bool, &[1, 2])?;
    }
    one(Layout::contiguous(v.dtype(), &[n]))
}

/// `addr(self, vec1, vec2, beta, alpha)`.
///
/// # Errors
/// Fails where a factor is no vector, or `self` does not broadcast to the product.
pub fn addr(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (x, a, b) = (call.need(0)?, call.need(1)?, call.need(2)?);
    if a.rank() != 1 || b.rank() != 1 {
        return Err(ShapeError::runtime(format!(
            "addr: Expected 1-D argument vec{}, but got {}-D",
            if a.rank() == 1 { 2 } else { 1 },
            if a.rank() == 1 { b.rank() } else { a.rank() }
        )));
    }
    let sizes = [a.sizes()[0], b.sizes()[0]];
    expands(x, &sizes)?;
    let kinds = [x, a, b].map(|l| (l.dtype(), Category::Dim));
    let dtype = result_type(kinds, x.dtype()).unwrap_or(x.dtype());
    one(Layout::contiguous(dtype, &sizes))
}

/// `dot(self, tensor)`, `vdot`.
///
/// # Errors
/// Fails where an argument is no vector, or sizes or dtypes differ.
pub fn dot(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (a, b) = (call.need(0)?, call.need(1)?);
    if a.rank() != 1 || b.rank() != 1 {
        return Err(ShapeError::runtime(format!(
            "1D tensors expected, but got {}D and {}D tensors",
            a.rank(),
            b.rank()
        )));
    }
    if a.dtype() != b.dtype() {
        return Err(ShapeError::runtime(format!(
            "dot : expected both vectors to have same dtype, but found {} and {}",
            cxx_name(a.dtype()),
            cxx_name(b.dtype())
        )));
    }
    if a.numel() != b.numel() {
        return Err(ShapeError::runtime(format!(
            "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of elements, but got \
             {} and {} elements respectively",
            a.numel(),
            b.numel(),
            a.numel(),
            b.numel()
        )));
    }
    one(Layout::contiguous(a.dtype(), &[]))
}
