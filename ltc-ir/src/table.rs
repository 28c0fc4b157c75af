//! The operator table: one row per operator the system knows.
//!
//! A row gives name, class, properties and shape rule. Operators without a row are recorded all the same, from their
//! dispatcher schema, with shapes from libtorch's own meta functions; a rule stands where libtorch has none in C++, or
//! where its answer is not the CPU's.

use crate::{
    op::{OpClass, Props},
    rules::{self, Rule, conv, index, norm, pool},
};

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Qualified name with overload.
    pub name: &'static str,
    /// Class.
    pub class: OpClass,
    /// Properties beyond the schema's.
    pub props: Props,
    /// Result layouts; `None` leaves them to libtorch's meta function.
    pub rule: Option<Rule>,
}

const fn row(name: &'static str, class: OpClass, props: Props, rule: Option<Rule>) -> Row {
    Row { name, class, props, rule }
}

/// Rows, sorted by name.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row("aten::_adaptive_avg_pool2d", OpClass::Pooling, Props::NONE, Some(pool::adaptive_avg_pool2d)),
    row("aten::_adaptive_avg_pool2d_backward", OpClass::Pooling, Props::NONE, Some(pool::adaptive_avg_pool2d_backward)),
    row("aten::_adaptive_avg_pool3d", OpClass::Pooling, Props::NONE, Some(pool::adaptive_avg_pool3d)),
    row("aten::_adaptive_avg_pool3d_backward", OpClass::Pooling, Props::NONE, Some(pool::adaptive_avg_pool3d_backward)),
    row("aten::_log_softmax", OpClass::Normalization, Props::NONE, None),
    row("aten::_log_softmax_backward_data", OpClass::Normalization, Props::NONE, None),
    row("aten::_softmax", OpClass::Normalization, Props::NONE, None),
    row("aten::_softmax_backward_data", OpClass::Normalization, Props::NONE, None),
    row("aten::add.Tensor", OpClass::Pointwise, Props::COMMUTATIVE, None),
    row("aten::add_.Tensor", OpClass::Pointwise, Props::NONE, None),
    row("aten::addcdiv_", OpClass::Pointwise, Props::NONE, None),
    row("aten::addcmul_", OpClass::Pointwise, Props::NONE, None),
    row("aten::addmm", OpClass::Matmul, Props::NONE, None),
    row("aten::baddbmm", OpClass::Matmul, Props::NONE, None),
    row("aten::bernoulli_.Tensor", OpClass::Random, Props::OVERWRITES, None),
    row("aten::bernoulli_.float", OpClass::Random, Props::OVERWRITES, None),
    row("aten::bmm", OpClass::Matmul, Props::NONE, None),
    row("aten::cauchy_", OpClass::Random, Props::OVERWRITES, None),
    row("aten::convolution", OpClass::Convolution, Props::NONE, Some(conv::convolution)),
    row("aten::convolution_backward", OpClass::Convolution, Props::NONE, Some(conv::convolution_backward)),
    row("aten::copy_", OpClass::Movement, Props::OVERWRITES, None),
    row("aten::div.Tensor", OpClass::Pointwise, Props::NONE, None),
    row("aten::embedding_dense_backward", OpClass::Movement, Props::NONE, Some(index::embedding_dense_backward)),
    row("aten::exponential_", OpClass::Random, Props::OVERWRITES, None),
    row("aten::fill_.Scalar", OpClass::Factory, Props::OVERWRITES, None),
    row("aten::fill_.Tensor", OpClass::Factory, Props::OVERWRITES, None),
    row("aten::geometric_", OpClass::Random, Props::OVERWRITES, None),
    row("aten::hardswish", OpClass::Pointwise, Props::NONE, None),
    row("aten::hardtanh", OpClass::Pointwise, Props::NONE, None),
    row("aten::index_select", OpClass::Movement, Props::NONE, Some(index::index_select)),
    row("aten::log_normal_", OpClass::Random, Props::OVERWRITES, None),
    row("aten::max_pool2d_with_indices", OpClass::Pooling, Props::NONE, None),
    row("aten::max_pool2d_with_indices_backward", OpClass::Pooling, Props::NONE, None),
    row("aten::mm", OpClass::Matmul, Props::NONE, None),
    row("aten::mul.Tensor", OpClass::Pointwise, Props::COMMUTATIVE, None),
    row("aten::native_batch_norm", OpClass::Normalization, Props::NONE, Some(norm::batch_norm)),
    row("aten::native_batch_norm_backward", OpClass::Normalization, Props::NONE, Some(norm::batch_norm_backward)),
    row("aten::native_group_norm", OpClass::Normalization, Props::NONE, Some(norm::group_norm)),
    row("aten::native_group_norm_backward", OpClass::Normalization, Props::NONE, Some(norm::group_norm_backward)),
    row("aten::native_layer_norm", OpClass::Normalization, Props::NONE, Some(norm::layer_norm)),
    row("aten::native_layer_norm_backward", OpClass::Normalization, Props::NONE, Some(norm::layer_norm_backward)),
    row("aten::nll_loss_backward", OpClass::Loss, Props::NONE, None),
    row("aten::nll_loss_forward", OpClass::Loss, Props::NONE, None),
    row("aten::normal_", OpClass::Random, Props::OVERWRITES, None),
    row("aten::random_", OpClass::Random, Props::OVERWRITES, None),
    row("aten::random_.from", OpClass::Random, Props::OVERWRITES, None),
    row("aten::random_.to", OpClass::Random, Props::OVERWRITES, None),
    row("aten::relu", OpClass::Pointwise, Props::NONE, Some(rules::like_first)),
    row("aten::sub.Tensor", OpClass::Pointwise, Props::NONE, None),
    row("aten::sum", OpClass::Reduction, Props::NONE, None),
    row("aten::sum.dim_IntList", OpClass::Reduction, Props::NONE, None),
    row("aten::threshold_backward", OpClass::Pointwise, Props::NONE, None),
    row("aten::uniform_", OpClass::Random, Props::OVERWRITES, None),
    row("aten::zero_", OpClass::Factory, Props::OVERWRITES, None),
];

/// The row of an operator.
pub fn find(name: &str) -> Option<&'static Row> {
    ROWS.binary_search_by(|r| r.name.cmp(name)).ok().map(|i| &ROWS[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_unique() {
        assert!(ROWS.windows(2).all(|w| w[0].name < w[1].name));
        assert!(ROWS.iter().all(|r| find(r.name).is_some_and(|f| f.name == r.name)));
    }
}
