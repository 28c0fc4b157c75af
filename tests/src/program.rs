//! Tensor programs as data.
//!
//! Steps name tensors by position modulo how many there are, so every sequence of steps is a program, and shrinking one
//! leaves programs.

use tch::{Kind, Tensor};

/// A tensor of a program, by position.
pub type Slot = u8;

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// A new tensor of small integers, floats with specials, or booleans.
    New {
        /// Element type.
        kind: Kind,
        /// Sizes.
        shape: Vec<i64>,
        /// Seed of the values.
        fill: u64,
    },
    /// `op(a)`.
    Unary(&'static str, Slot),
    /// `op_(a)`.
    UnaryInPlace(&'static str, Slot),
    /// `op(a, b)`.
    Binary(&'static str, Slot, Slot),
    /// `op(a, number)`.
    BinaryScalar(&'static str, Slot, f64),
    /// `op_(a, b)`.
    BinaryInPlace(&'static str, Slot, Slot),
    /// `op_(a, number)`.
    ScalarInPlace(&'static str, Slot, f64),
    /// `op(a, dim, keepdim)`.
    Reduce(&'static str, Slot, i64, bool),
    /// A view of `a`.
    View(&'static str, Slot, i64, i64, i64),
    /// Three operands.
    Ternary(&'static str, Slot, Slot, Slot),
    /// `op_out(dst, a, b)`.
    Out(&'static str, Slot, Slot, Slot),
    /// Joins two tensors.
    Join(&'static str, Slot, Slot, i64),
    /// Indexing with valid random indices.
    Index(&'static str, Slot, i64, u64),
    /// A cast.
    Cast(Slot, Kind),
    /// A draw.
    Random(&'static str, Slot, f64),
    /// A leaf with a copy of this value that collects gradients.
    Leaf(Slot),
    /// `sum(a).backward()`.
    Backward(Slot),
    /// Seeds the generator.
    Seed(u64),
    /// Compares the value of one tensor.
    Read(Slot),
    /// A step barrier.
    Mark,
    /// Forgets a tensor.
    Drop(Slot),
}

/// A program.
pub type Program = Vec<Step>;

/// Operators of each kind of step; the names are libtorch's.
pub const UNARY: &[&str] = &[
    "abs",
    "neg",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "relu",
    "gelu",
    "silu",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
    "reciprocal",
    "square",
    "isnan",
    "logical_not",
    "erf",
    "softplus",
    "leaky_relu",
    "elu",
    "clone",
    "contiguous",
    "sum_all",
    "mean_all",
    "max_all",
    "zeros_like",
    "ones_like",
    "flip",
    "tril",
    "triu",
    "nonzero",
    "hardtanh",
    "log1p",
];
/// In-place unary operators.
pub const UNARY_IN_PLACE: &[&str] =
    &["abs_", "neg_", "relu_", "zero_", "sigmoid_", "floor_", "sqrt_", "exp_", "tanh_", "logical_not_"];
/// Binary operators.
pub const BINARY: &[&str] = &[
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "eq",
    "lt",
    "ge",
    "atan2",
    "matmul",
    "mm",
    "bmm",
    "pow",
    "logical_and",
    "masked_select",
    "outer",
    "dot",
];
/// Binary operators with a number.
pub const BINARY_SCALAR: &[&str] = &[
    "add",
    "mul",
    "sub",
    "div",
    "pow",
    "gt",
    "le",
    "ne",
    "clamp_min",
    "fmod",
    "remainder",
    "masked_fill",
    "full_like",
];
/// In-place binary operators.
pub const BINARY_IN_PLACE: &[&str] =
    &["add_", "sub_", "mul_", "copy_", "div_", "masked_fill_", "set_data_like", "maximum_via_where"];
/// In-place operators with a number.
pub const SCALAR_IN_PLACE: &[&str] = &["add_", "mul_", "fill_", "clamp_min_", "pow_", "sub_"];
/// Reductions and scans along a dimension.
pub const REDUCE: &[&str] = &[
    "sum",
    "mean",
    "argmax",
    "argmin",
    "amax",
    "amin",
    "prod",
    "any",
    "all",
    "cumsum",
    "softmax",
    "log_softmax",
    "logsumexp",
    "var",
    "norm",
    "sort",
    "max_dim",
    "topk",
    "cumprod",
];
/// Views.
pub const VIEW: &[&str] = &[
    "narrow",
    "select",
    "slice",
    "transpose",
    "t",
    "permute",
    "view_flat",
    "reshape_flat",
    "squeeze",
    "squeeze_dim",
    "unsqueeze",
    "expand",
    "unfold",
    "diagonal",
    "as_strided",
    "chunk",
    "split_last",
    "detach",
    "view_pair",
];
/// Operators with three operands.
pub const TERNARY: &[&str] =
    &["where", "addcmul", "addcdiv", "lerp", "addmm", "baddbmm", "clamp", "addcmul_", "index_put_mask"];
/// `out=` variants.
pub const OUT: &[&str] = &["add_out", "mul_out", "sub_out", "exp_out", "mm_out", "maximum_out"];
/// Joins.
pub const JOIN: &[&str] = &["cat", "stack", "hstack"];
/// Indexing.
pub const INDEX: &[&str] = &[
    "index_select",
    "gather",
    "index",
    "take",
    "index_fill_",
    "scatter_",
    "index_add_",
    "index_put_",
    "repeat",
    "roll",
];
/// Draws.
pub const RANDOM: &[&str] =
    &["uniform_", "normal_", "bernoulli_", "rand_like", "randn_like", "dropout", "random_to_", "exponential_"];

fn random_indices(count: i64, below: i64, seed: u64, like: &Tensor) -> Option<Tensor> {
    if below <= 0 {
        return None;
    }
    let mut x = seed | 1;
    let v: Vec<i64> = (0..count)
        .map(|_| {
            x = x.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (x >> 33) as i64 % below
        })
        .collect();
    Some(place_like(&Tensor::from_slice(&v), like))
}

/// A helper tensor (an index) where `like` is.
pub fn place_like(t: &Tensor, like: &Tensor) -> Tensor {
    match ltc_torch::device_of(like) {
        Some(device) => ltc_torch::to_device(t, device).expect("the device is initialised"),
        None => t.shallow_clone(),
    }
}

type Applied = Result<Tensor, tch::TchError>;

fn dup(a: &Tensor) -> Applied {
    let mut copy = a.f_empty_like()?;
    copy.f_copy_(a)?;
    Ok(copy)
}

/// `op(a)`.
///
/// # Errors
/// Where libtorch refuses the call: its words.
pub fn unary(op: &str, a: &Tensor) -> Applied {
    match op {
        "abs" => a.f_abs(),
        "neg" => a.f_neg(),
        "exp" => a.f_exp(),
        "log" => a.f_log(),
        "sqrt" => a.f_sqrt(),
        "rsqrt" => a.f_rsqrt(),
        "sin" => a.f_sin(),
        "cos" => a.f_cos(),
        "tanh" => a.f_tanh(),
        "sigmoid" => a.f_sigmoid(),
        "relu" => a.f_relu(),
        "gelu" => a.f_gelu("none"),
        "silu" => a.f_silu(),
        "floor" => a.f_floor(),
        "ceil" => a.f_ceil(),
        "round" => a.f_round(),
        "trunc" => a.f_trunc(),
        "sign" => a.f_sign(),
        "reciprocal" => a.f_reciprocal(),
        "square" => a.f_square(),
        "isnan" => a.f_isnan(),
        "logical_not" => a.f_logical_not(),
        "erf" => a.f_erf(),
        "softplus" => a.f_softplus(),
        "leaky_relu" => a.f_leaky_relu(),
        "elu" => a.f_elu(),
        "hardtanh" => a.f_hardtanh(),
        "log1p" => a.f_log1p(),
        "clone" => dup(a),
        "contiguous" => a.f_contiguous(),
        "sum_all" => a.f_sum(None),
        "mean_all" => a.f_mean(None),
        "max_all" => a.f_max().and_then(of_either_sign),
        "zeros_like" => a.f_zeros_like(),
        "ones_like" => a.f_ones_like(),
        "flip" => a.f_flip([0]),
        "tril" => a.f_tril(0),
        "triu" => a.f_triu(1),
        _ => a.f_nonzero(),
    }
}

/// `op_(a)`.
///
/// # Errors
/// As [`unary`].
pub fn unary_in_place(op: &str, a: &mut Tensor) -> Applied {
    match op {
        "abs_" => a.f_abs_(),
        "neg_" => a.f_neg_(),
        "relu_" => a.f_relu_(),
        "zero_" => a.f_zero_(),
        "sigmoid_" => a.f_sigmoid_(),
        "floor_" => a.f_floor_(),
        "sqrt_" => a.f_sqrt_(),
        "exp_" => a.f_exp_(),
        "tanh_" => a.f_tanh_(),
        _ => a.f_logical_not_(),
    }
}

/// `op(a, b)`.
///
/// # Errors
/// As [`unary`].
pub fn binary(op: &str, a: &Tensor, b: &Tensor) -> Applied {
    match op {
        "add" => a.f_add(b),
        "sub" => a.f_sub(b),
        "mul" => a.f_mul(b),
        "div" => a.f_div(b),
        "maximum" => a.f_maximum(b),
        "minimum" => a.f_minimum(b),
        "eq" => a.f_eq_tensor(b),
        "lt" => a.f_lt_tensor(b),
        "ge" => a.f_ge_tensor(b),
        "atan2" => a.f_atan2(b),
        "matmul" => a.f_matmul(b),
        "mm" => a.f_mm(b),
        "bmm" => a.f_bmm(b),
        "pow" => a.f_pow(b),
        "logical_and" => a.f_logical_and(b),
        "outer" => a.f_outer(b),
        "dot" => a.f_dot(b),
        _ => a.f_masked_select(&b.f_gt(0)?),
    }
}

/// `op(a, number)`.
///
/// # Errors
/// As [`unary`].
pub fn binary_scalar(op: &str, a: &Tensor, x: f64) -> Applied {
    // A number is an integer half of the time, as in programs.
    let n: tch::Scalar = if x.fract() == 0.0 { (x as i64).into() } else { x.into() };
    match op {
        "add" => a.f_add_scalar(n),
        "mul" => a.f_mul_scalar(n),
        "sub" => a.f_sub_scalar(n),
        "div" => a.f_div_scalar(n),
        "pow" => a.f_pow_tensor_scalar(n),
        "gt" => a.f_gt(n),
        "le" => a.f_le(n),
        "ne" => a.f_ne(n),
        "clamp_min" => a.f_clamp_min(n),
        "fmod" => a.f_fmod(n),
        "remainder" => a.f_remainder(n),
        "full_like" => a.f_full_like(n),
        _ => a.f_masked_fill(&a.f_lt(0)?, n),
    }
}

/// `op_(a, b)`.
///
/// # Errors
/// As [`unary`].
pub fn binary_in_place(op: &str, a: &mut Tensor, b: &Tensor) -> Applied {
    match op {
        "add_" => a.f_add_(b),
        "sub_" => a.f_sub_(b),
        "mul_" => a.f_mul_(b),
        "div_" => a.f_div_(b),
        "copy_" => a.f_copy_(b).map(|()| a.shallow_clone()),
        "masked_fill_" => {
            let mask = b.f_gt(0)?;
            a.f_masked_fill_(&mask, 3)
        }
        "set_data_like" => {
            let fresh = dup(b)?;
            a.f_copy_(&fresh).map(|()| a.shallow_clone())
        }
        _ => {
            let mask = a.f_lt_tensor(b)?;
            let chosen = b.f_where_self(&mask, a)?;
            a.f_copy_(&chosen).map(|()| a.shallow_clone())
        }
    }
}

/// `op_(a, number)`.
///
/// # Errors
/// As [`unary`].
pub fn scalar_in_place(op: &str, a: &mut Tensor, x: f64) -> Applied {
    let n: tch::Scalar = if x.fract() == 0.0 { (x as i64).into() } else { x.into() };
    match op {
        "add_" => a.f_add_scalar_(n),
        "sub_" => a.f_sub_scalar_(n),
        "mul_" => a.f_mul_scalar_(n),
        "fill_" => a.f_fill_(n),
        "clamp_min_" => a.f_clamp_min_(n),
        _ => a.f_pow_(n),
    }
}

/// With zeros of one sign: which of two zeros is the largest follows in libtorch from where they lie.
fn of_either_sign(t: Tensor) -> Result<Tensor, tch::TchError> {
    t.f_add_scalar(0)
}

/// `op(a, dim, keepdim)`.
///
/// # Errors
/// As [`unary`].
pub fn reduce(op: &str, a: &Tensor, dim: i64, keep: bool) -> Applied {
    match op {
        "sum" => a.f_sum_dim_intlist(dim, keep, None),
        "mean" => a.f_mean_dim(dim, keep, None),
        "argmax" => a.f_argmax(dim, keep),
        "argmin" => a.f_argmin(dim, keep),
        "amax" => a.f_amax(dim, keep).and_then(of_either_sign),
        "amin" => a.f_amin(dim, keep).and_then(of_either_sign),
        "prod" => a.f_prod_dim_int(dim, keep, None),
        "any" => a.f_any_dim(dim, keep),
        "all" => a.f_all_dim(dim, keep),
        "cumsum" => a.f_cumsum(dim, None),
        "cumprod" => a.f_cumprod(dim, None),
        "softmax" => a.f_softmax(dim, None),
        "log_softmax" => a.f_log_softmax(dim, None),
        "logsumexp" => a.f_logsumexp(dim, keep),
        "var" => a.f_var_dim(dim, keep, false),
        "norm" => a.f_norm_scalaropt_dim(2, dim, keep),
        "sort" => a.f_sort(dim, keep).map(|(values, _)| values),
        "max_dim" => a.f_max_dim(dim, keep).map(|(values, _)| values),
        _ => a.f_topk(1, dim, true, true).map(|(values, _)| values),
    }
}

/// A view of `a`; parameters are brought into range where a program would compute them from sizes.
///
/// # Errors
/// As [`unary`].
pub fn view(op: &str, a: &Tensor, x: i64, y: i64, z: i64) -> Applied {
    let rank = a.dim() as i64;
    let size = a.size();
    let dim = x.rem_euclid(rank.max(1));
    let extent = size.get(dim as usize).copied().unwrap_or(1);
    match op {
        "narrow" => {
            let start = y.rem_euclid(extent.max(1)).min(extent);
            a.f_narrow(dim, start, z.rem_euclid(extent - start + 1))
        }
        "select" => a.f_select(dim, y),
        "slice" => a.f_slice(dim, y, None, z.rem_euclid(3) + 1),
        "transpose" => a.f_transpose(x, y),
        "t" => a.f_tr(),
        "permute" => {
            let order: Vec<i64> = (0..rank).map(|i| (i + y.rem_euclid(rank.max(1))) % rank.max(1)).collect();
            a.f_permute(order)
        }
        "view_flat" => a.f_view([-1]),
        "reshape_flat" => a.f_reshape([-1]),
        "view_pair" => a.f_view([2, -1]),
        "squeeze" => a.f_squeeze(),
        "squeeze_dim" => a.f_squeeze_dim(x),
        "unsqueeze" => a.f_unsqueeze(x),
        "expand" => {
            let to: Vec<i64> = size.iter().map(|&s| if s == 1 { y.rem_euclid(3) + 1 } else { s }).collect();
            a.f_expand(to, false)
        }
        "unfold" => a.f_unfold(dim, y.rem_euclid(extent.max(1)) + 1, z.rem_euclid(2) + 1),
        "diagonal" => a.f_diagonal(y.rem_euclid(2), 0, 1),
        "as_strided" => {
            let n = a.numel() as i64;
            if n < 4 || !a.is_contiguous() {
                a.f_detach()
            } else {
                a.f_as_strided([2, 2], [y.rem_euclid(2) + 1, 1], None)
            }
        }
        "chunk" => a.f_chunk(2, dim).map(|mut c| c.swap_remove(0)),
        "split_last" => a.f_split(1, dim).map(|mut c| c.pop().unwrap_or_else(|| a.shallow_clone())),
        _ => a.f_detach(),
    }
}

/// Three operands.
///
/// # Errors
/// As [`unary`].
pub fn ternary(op: &str, a: &mut Tensor, b: &Tensor, c: &Tensor) -> Applied {
    match op {
        "where" => b.f_where_self(&a.f_gt(0)?, c),
        "addcmul" => a.f_addcmul(b, c),
        "addcdiv" => a.f_addcdiv(b, c),
        "lerp" => a.f_lerp_tensor(b, c),
        "addmm" => a.f_addmm(b, c),
        "baddbmm" => a.f_baddbmm(b, c, 1, 1),
        "clamp" => a.f_clamp_tensor(Some(b), Some(c)),
        "addcmul_" => a.f_addcmul_(b, c),
        _ => {
            let mask = b.f_gt(0)?;
            a.f_index_put_(&[Some(mask)], &c.f_mean(None)?.f_to_kind(a.kind())?, false)
        }
    }
}

/// `op_out(dst, a, b)`.
///
/// # Errors
/// As [`unary`].
pub fn out(op: &str, dst: &Tensor, a: &Tensor, b: &Tensor) -> Applied {
    match op {
        "add_out" => a.f_add_out(dst, b),
        "mul_out" => a.f_mul_out(dst, b),
        "sub_out" => a.f_sub_out(dst, b),
        "exp_out" => a.f_exp_out(dst),
        "mm_out" => a.f_mm_out(dst, b),
        _ => a.f_maximum_out(dst, b),
    }
}

/// Joins two tensors.
///
/// # Errors
/// As [`unary`].
pub fn join(op: &str, a: &Tensor, b: &Tensor, dim: i64) -> Applied {
    match op {
        "cat" => Tensor::f_cat(&[a, b], dim),
        "stack" => Tensor::f_stack(&[a, b], dim),
        _ => Tensor::f_hstack(&[a, b]),
    }
}

/// Indexing with valid indices.
///
/// # Errors
/// As [`unary`].
pub fn index(op: &str, a: &mut Tensor, dim: i64, seed: u64) -> Applied {
    let rank = a.dim() as i64;
    let dim = dim.rem_euclid(rank.max(1));
    let extent = a.size().get(dim as usize).copied().unwrap_or(1);
    let Some(three) = random_indices(3, extent, seed, a) else { return dup(a) };
    match op {
        "index_select" => a.f_index_select(dim, &three),
        "take" => {
            let Some(flat) = random_indices(4, a.numel() as i64, seed, a) else { return dup(a) };
            a.f_take(&flat)
        }
        "index" => {
            let rows = a.size().first().copied().unwrap_or(0);
            let Some(rows) = random_indices(3, rows, seed, a) else { return dup(a) };
            a.f_index(&[Some(rows)])
        }
        "gather" | "scatter_" => {
            let Some(all) = random_indices(a.numel() as i64, extent, seed, a) else { return dup(a) };
            let all = all.f_view(a.size().as_slice())?;
            if op == "gather" { a.f_gather(dim, &all, false) } else { a.f_scatter_value_(dim, &all.f_remainder(1)?, 2) }
        }
        "index_fill_" => a.f_index_fill_(dim, &three, 5),
        "index_add_" => {
            let source = a.f_index_select(dim, &three)?;
            a.f_index_add_(dim, &three, &source)
        }
        "index_put_" => {
            if dim != 0 || rank == 0 {
                return dup(a);
            }
            let source = a.f_select(0, 0).and_then(|s| dup(&s))?;
            a.f_index_put_(&[Some(three.f_narrow(0, 0, 1)?)], &source, false)
        }
        "repeat" => a.f_repeat(vec![2; rank.max(1) as usize]),
        _ => a.f_roll([1], [dim]),
    }
}

/// Draws.
///
/// # Errors
/// As [`unary`].
pub fn random(op: &str, a: &mut Tensor, p: f64) -> Applied {
    match op {
        "uniform_" => a.f_uniform_(0.0, 1.0),
        "normal_" => a.f_normal_(0.0, 1.0),
        "bernoulli_" => a.f_bernoulli_float_(p),
        "rand_like" => a.f_rand_like(),
        "randn_like" => a.f_randn_like(),
        "dropout" => a.f_dropout(p, true),
        "random_to_" => a.f_random_to_(7),
        _ => a.f_exponential_(1.0),
    }
}
