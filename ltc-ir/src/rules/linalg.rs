//! Decompositions and solvers. LAPACK's results are column-major.

use smallvec::SmallVec;

use super::{Call, NewResults, ShapeError, cxx_name, one};
use crate::{
    dtype::DType,
    layout::{Dims, Layout, contiguous_strides},
};

/// Row-major over the batch, column-major within each matrix.
fn column_major(dtype: DType, sizes: &[i64]) -> Layout {
    let mut strides = contiguous_strides(sizes);
    let n = sizes.len();
    strides[n - 2] = 1;
    strides[n - 1] = sizes[n - 2].max(1);
    Layout::strided(dtype, sizes, &strides)
}

fn shaped<'a>(call: &Call<'a>, i: usize, square: bool) -> Result<&'a Layout, ShapeError> {
    let x = call.need(i)?;
    let name = call.short_op().trim_start_matches('_');
    if x.rank() < 2 {
        return Err(ShapeError::runtime(format!("{name}: The input tensor A must have at least 2 dimensions.")));
    }
    let [.., m, n] = *x.sizes() else { return Ok(x) };
    if square && m != n {
        return Err(ShapeError::runtime(format!(
            "{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
        )));
    }
    Ok(x)
}

fn matrices<'a>(call: &Call<'a>, i: usize, square: bool) -> Result<&'a Layout, ShapeError> {
    let x = shaped(call, i, square)?;
    let name = call.short_op().trim_start_matches('_');
    if !x.dtype().is_floating() && !x.dtype().is_complex() {
        let kernel = match name {
            "cholesky" => Some("cholesky_cpu"),
            "linalg_eigh" => Some("linalg_eigh_cpu"),
            "linalg_lu_factor_ex" => Some("lu_cpu"),
            "linalg_solve_triangular" => Some("triangular_solve_cpu"),
            _ => None,
        };
        if let Some(kernel) = kernel {
            return Err(super::checks::not_implemented(kernel, x.dtype()));
        }
        return Err(ShapeError::runtime(format!(
            "{name}: Expected a floating point or complex tensor as input. Got {}",
            cxx_name(x.dtype())
        )));
    }
    Ok(x)
}

fn batch(x: &Layout) -> &[i64] {
    &x.sizes()[..x.rank() - 2]
}

fn vectors(x: &Layout, length: i64) -> Dims {
    batch(x).iter().copied().chain([length]).collect()
}

fn some<const N: usize>(layouts: [Layout; N]) -> Result<NewResults, ShapeError> {
    Ok(layouts.into_iter().map(Some).collect())
}

fn info(x: &Layout) -> Layout {
    Layout::contiguous(DType::I32, batch(x))
}

/// `linalg_cholesky_ex(self, *, upper, check_errors)`: the factor and LAPACK's info.
///
/// # Errors
/// Fails for fewer than two dimensions, for matrices that are not square, and for integers or booleans.
pub fn linalg_cholesky_ex(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, true)?;
    some([column_major(x.dtype(), x.sizes()), info(x)])
}

/// `cholesky(self, upper)`.
///
/// # Errors
/// As [`linalg_cholesky_ex`], unless there are no elements.
pub fn cholesky(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = call.need(0)?;
    if x.numel() == 0 {
        return one(super::empty_like(x, None));
    }
    matrices(call, 0, true)?;
    one(column_major(x.dtype(), x.sizes()))
}

/// `linalg_inv_ex(A, *, check_errors)`.
///
/// # Errors
/// As [`linalg_cholesky_ex`].
pub fn linalg_inv_ex(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, true)?;
    some([column_major(x.dtype(), x.sizes()), info(x)])
}

/// `inverse(self)`, `linalg_inv`.
///
/// # Errors
/// As [`linalg_cholesky_ex`].
pub fn inverse(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, true)?;
    one(column_major(x.dtype(), x.sizes()))
}

/// `logdet(self)`.
///
/// # Errors
/// As [`linalg_cholesky_ex`].
pub fn logdet(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, true)?;
    one(Layout::contiguous(x.dtype(), batch(x)))
}

/// `(sign, logabsdet)` of `slogdet(self)`.
///
/// # Errors
/// As [`linalg_cholesky_ex`].
pub fn slogdet(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, true)?;
    some([Layout::contiguous(x.dtype(), batch(x)), Layout::contiguous(super::real_of(x.dtype()), batch(x))])
}

/// `_linalg_slogdet(A)`: sign, logarithm, and the factors for the gradient.
///
/// # Errors
/// As [`linalg_cholesky_ex`].
pub fn linalg_slogdet(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, true)?;
    let n = x.sizes()[x.rank() - 1];
    some([
        Layout::contiguous(x.dtype(), batch(x)),
        Layout::contiguous(super::real_of(x.dtype()), batch(x)),
        column_major(x.dtype(), x.sizes()),
        Layout::contiguous(DType::I32, &vectors(x, n)),
    ])
}

/// `_linalg_det(A)`.
///
/// # Errors
/// As [`linalg_cholesky_ex`].
pub fn linalg_det(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, true)?;
    let n = x.sizes()[x.rank() - 1];
    some([
        Layout::contiguous(x.dtype(), batch(x)),
        column_major(x.dtype(), x.sizes()),
        Layout::contiguous(DType::I32, &vectors(x, n)),
    ])
}

/// `linalg_lu_factor_ex(A, *, pivot, check_errors)`.
///
/// # Errors
/// Fails for fewer than two dimensions, and for integers or booleans.
pub fn linalg_lu_factor_ex(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, false)?;
    let k = x.sizes()[x.rank() - 1].min(x.sizes()[x.rank() - 2]);
    some([column_major(x.dtype(), x.sizes()), Layout::contiguous(DType::I32, &vectors(x, k)), info(x)])
}

/// `linalg_qr(A, mode)`.
///
/// # Errors
/// As [`linalg_lu_factor_ex`].
pub fn linalg_qr(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, false)?;
    let (m, n) = (x.sizes()[x.rank() - 2], x.sizes()[x.rank() - 1]);
    let k = m.min(n);
    let of = |a: i64, b: i64| {
        let sizes: Dims = batch(x).iter().copied().chain([a, b]).collect();
        column_major(x.dtype(), &sizes)
    };
    some([of(m, k), of(k, n)])
}

/// `_linalg_svd(A, full_matrices, compute_uv)`: `U`, `S` and `Vh`.
///
/// # Errors
/// As [`linalg_lu_factor_ex`].
pub fn linalg_svd(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, false)?;
    let (m, n) = (x.sizes()[x.rank() - 2], x.sizes()[x.rank() - 1]);
    let k = m.min(n);
    let of = |a: i64, b: i64| {
        let sizes: Dims = batch(x).iter().copied().chain([a, b]).collect();
        column_major(x.dtype(), &sizes)
    };
    let values = Layout::contiguous(super::real_of(x.dtype()), &vectors(x, k));
    let full = call.bool(1);
    if matches!(call.args.get(2), Some(crate::args::Arg::Bool(false))) {
        let none = Layout::contiguous(x.dtype(), &[0]);
        return some([none.clone(), values, none]);
    }
    some([of(m, if full { m } else { k }), values, of(if full { n } else { k }, n)])
}

/// `svd(self, some, compute_uv)`: `U`, `S` and `V`, which is a transposed view of `Vh`.
///
/// # Errors
/// As [`linalg_lu_factor_ex`].
pub fn svd(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, false)?;
    let (m, n) = (x.sizes()[x.rank() - 2], x.sizes()[x.rank() - 1]);
    let k = m.min(n);
    let reduced = call.args.get(1).is_none_or(|a| !matches!(a, crate::args::Arg::Bool(false)));
    let sizes = |a: i64, b: i64| -> Dims { batch(x).iter().copied().chain([a, b]).collect() };
    let (u, v) = (sizes(m, if reduced { k } else { m }), sizes(n, if reduced { k } else { n }));
    some([
        column_major(x.dtype(), &u),
        Layout::contiguous(super::real_of(x.dtype()), &vectors(x, k)),
        Layout::contiguous(x.dtype(), &v),
    ])
}

/// `linalg_pinv(self, ...)`.
///
/// # Errors
/// As [`linalg_lu_factor_ex`].
pub fn linalg_pinv(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, false)?;
    let (m, n) = (x.sizes()[x.rank() - 2], x.sizes()[x.rank() - 1]);
    let sizes: Dims = batch(x).iter().copied().chain([n, m]).collect();
    one(Layout::contiguous(x.dtype(), &sizes))
}

/// `_linalg_eigh(A, UPLO, compute_v)`.
///
/// # Errors
/// As [`linalg_cholesky_ex`].
pub fn linalg_eigh(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let x = matrices(call, 0, true)?;
    let values = Layout::contiguous(super::real_of(x.dtype()), &vectors(x, x.sizes()[x.rank() - 1]));
    let with = call.args.get(2).is_none_or(|a| !matches!(a, crate::args::Arg::Bool(false)));
    let vectors = if with { column_major(x.dtype(), x.sizes()) } else { Layout::contiguous(x.dtype(), &[0]) };
    some([values, vectors])
}

/// `linalg_solve_triangular(self, B, *, upper, left, unitriangular)`: in the matrix's dtype, whatever the other's.
///
/// # Errors
/// As [`linalg_cholesky_ex`] for `self`; also where `B` has fewer than two dimensions, another size on the side that is
/// solved for, or a batch that does not broadcast.
pub fn linalg_solve_triangular(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (a, b) = (matrices(call, 0, true)?, shaped(call, 1, false)?);
    let left = call.args.get(3).is_none_or(|x| !matches!(x, crate::args::Arg::Bool(false)));
    let n = a.sizes()[a.rank() - 1];
    let inner = b.sizes()[b.rank() - if left { 2 } else { 1 }];
    if inner != n {
        return Err(ShapeError::runtime(format!(
            "linalg.solve_triangular: Incompatible shapes of A and B for the equation {} = B",
            if left { "AX" } else { "XA" }
        )));
    }
    let lead = super::broadcast(&[batch(a), batch(b)])?;
    let sizes: Dims = lead.iter().copied().chain(b.sizes()[b.rank() - 2..].iter().copied()).collect();
    one(column_major(a.dtype(), &sizes))
}

/// `triangular_solve(self, A, upper, transpose, unitriangular)`: the solution and a copy of `A`.
///
/// # Errors
/// As [`linalg_lu_factor_ex`] for `self` and [`linalg_cholesky_ex`] for `A`; also where their rows or dtypes differ, or
/// their batches do not broadcast.
pub fn triangular_solve(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (b, a) = (matrices(call, 0, false)?, matrices(call, 1, true)?);
    if b.sizes()[b.rank() - 2] != a.sizes()[a.rank() - 1] {
        return Err(ShapeError::runtime(format!(
            "Incompatible matrix sizes for triangular_solve: each A matrix is {} by {} but each b matrix is {} by {}",
            a.sizes()[a.rank() - 1],
            a.sizes()[a.rank() - 1],
            b.sizes()[b.rank() - 2],
            b.sizes()[b.rank() - 1]
        )));
    }
    super::checks::one_dtype(call, &[0, 1])?;
    let lead = super::broadcast(&[batch(a), batch(b)])?;
    let of = |x: &Layout| -> Dims { lead.iter().copied().chain(x.sizes()[x.rank() - 2..].iter().copied()).collect() };
    let copied = of(a);
    some([column_major(b.dtype(), &of(b)), column_major(a.dtype(), &copied)])
}

/// `linalg_cross(self, other, *, dim)`.
///
/// # Errors
/// Fails where ranks or dtypes differ, for booleans, for a dimension that there is not or whose size is not 3, and
/// where sizes do not broadcast.
pub fn linalg_cross(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (a, b) = (call.need(0)?, call.need(1)?);
    if a.rank() != b.rank() {
        return Err(ShapeError::runtime("linalg.cross: inputs must have the same number of dimensions."));
    }
    let d = super::wrap_dim(call.int(2, -1), a.rank())?;
    super::checks::dispatch(call, "cross", super::checks::not_bool, &[0, 1])?;
    if a.sizes().get(d) != Some(&3) || b.sizes().get(d) != Some(&3) {
        return Err(ShapeError::runtime(format!(
            "linalg.cross: inputs dimension {} must have length 3. Got {:?} and {:?}",
            call.int(2, -1),
            a.sizes().get(d),
            b.sizes().get(d)
        )));
    }
    one(Layout::contiguous(a.dtype(), &super::broadcast(&[a.sizes(), b.sizes()])?))
}

/// `_cdist_forward(x1, x2, p, compute_mode)`.
///
/// # Errors
/// Fails for fewer than two dimensions, for columns or dtypes that differ, for other than floating point numbers, and
/// where batches do not broadcast.
pub fn cdist_forward(call: &Call<'_>) -> Result<NewResults, ShapeError> {
    let (a, b) = (call.need(0)?, call.need(1)?);
    let (Some((&ca, la)), Some((&cb, lb))) = (a.sizes().split_last(), b.sizes().split_last()) else {
        return Err(ShapeError::runtime("cdist only supports at least 2D tensors"));
    };
    if la.is_empty() || lb.is_empty() {
        return Err(ShapeError::runtime("cdist only supports at least 2D tensors"));
    }
    if ca != cb {
        return Err(ShapeError::runtime(format!("X1 and X2 must have the same number of columns. X1: {ca} X2: {cb}")));
    }
    for x in [a, b] {
        if !x.dtype().is_floating() {
            return Err(ShapeError::runtime(format!(
                "cdist only supports floating-point dtypes, got: {}",
                cxx_name(x.dtype())
            )));
        }
    }
    super::checks::one_dtype(call, &[0, 1])?;
    let (ra, rb) = (la[la.len() - 1], lb[lb.len() - 1]);
    let lead = super::broadcast(&[&la[..la.len() - 1], &lb[..lb.len() - 1]])?;
    let sizes: SmallVec<[i64; 6]> = lead.iter().copied().chain([ra, rb]).collect();
    one(Layout::contiguous(a.dtype(), &sizes))
}
