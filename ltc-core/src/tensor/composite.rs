//! What libtorch composes from other operators: products of any rank, convolutions, norms, losses.

use ltc_ir::{DType, Scalar, ShapeError};

use super::{LazyTensor, Operand};
use crate::Error;

/// How a loss folds its elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reduction {
    /// Not at all.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    /// libtorch's number.
    pub(crate) fn code(self) -> i64 {
        self as i64
    }
}

/// Parameters of [`LazyTensor::conv2d_with`].
#[derive(Clone, Copy, Debug)]
pub struct Conv2dOptions<'a> {
    /// One for each channel of the result.
    pub bias: Option<&'a LazyTensor>,
    /// Step of the window.
    pub stride: [i64; 2],
    /// Zeros around the input.
    pub padding: [i64; 2],
    /// Step within the window.
    pub dilation: [i64; 2],
    /// Blocks of channels that do not mix.
    pub groups: i64,
}

impl Default for Conv2dOptions<'_> {
    fn default() -> Self {
        Conv2dOptions { bias: None, stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 }
    }
}

impl LazyTensor {
    /// `matmul(other)`: products of vectors, matrices, and batches of matrices, which broadcast.
    ///
    /// # Errors
    /// Fails for a tensor without dimensions, where inner sizes, dtypes or devices differ, and where batches do not
    /// broadcast.
    pub fn matmul(&self, other: &LazyTensor) -> Result<LazyTensor, Error> {
        match (self.dim(), other.dim()) {
            (0, _) | (_, 0) => {
                let message = "both arguments to matmul need to be at least 1D";
                Err(ShapeError::runtime(format!("{message}, but they are {}D and {}D", self.dim(), other.dim())).into())
            }
            (1, 1) => self.dot(other),
            (2, 1) => self.mv(other),
            (1, 2) => self.unsqueeze(0)?.mm(other)?.squeeze_dims(&[0]),
            (2, 2) => self.mm(other),
            (n, 2) if n > 2 => {
                // Batches of rows are rows.
                let (lead, last) = self.sizes().split_at(n - 1);
                let rows = self.reshape(&[lead.iter().product(), last[0]])?;
                let sizes: Vec<i64> = lead.iter().copied().chain([other.sizes()[1]]).collect();
                rows.mm(other)?.reshape(&sizes)
            }
            (_, 1) => self.matmul(&other.unsqueeze(1)?)?.squeeze_dims(&[-1]),
            (1, _) => self.unsqueeze(0)?.matmul(other)?.squeeze_dims(&[-2]),
            (n, m) => {
                let (a, b) = (self.sizes(), other.sizes());
                let lead = ltc_ir::rules::broadcast(&[&a[..n - 2], &b[..m - 2]])?;
                let batch = lead.iter().product();
                let whole = |s: &[i64]| -> Vec<i64> { lead.iter().chain(&s[s.len() - 2..]).copied().collect() };
                let flat =
                    |t: &LazyTensor, s: &[i64]| t.expand(&whole(s))?.reshape(&[batch, s[s.len() - 2], s[s.len() - 1]]);
                let product = flat(self, a)?.bmm(&flat(other, b)?)?;
                let sizes: Vec<i64> = lead.iter().copied().chain([a[n - 2], b[m - 1]]).collect();
                product.reshape(&sizes)
            }
        }
    }

    /// `linear(weight, bias)`: rows times the transposed weight.
    ///
    /// # Errors
    /// As [`LazyTensor::matmul`]; also for a weight of more than two dimensions, and a bias that does not broadcast to
    /// the product.
    pub fn linear(&self, weight: &LazyTensor, bias: Option<&LazyTensor>) -> Result<LazyTensor, Error> {
        match bias {
            Some(bias) if self.dim() == 2 => bias.addmm(self, &weight.t()?),
            Some(bias) => self.matmul(&weight.t()?)?.add(bias),
            None => self.matmul(&weight.t()?),
        }
    }

    /// `conv2d(weight)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::conv2d_with`].
    pub fn conv2d(&self, weight: &LazyTensor) -> Result<LazyTensor, Error> {
        self.conv2d_with(weight, Conv2dOptions::default())
    }

    /// `conv2d(weight, bias, stride, padding, dilation, groups)`
    ///
    /// # Errors
    /// Fails for tensors that do not fit each other or the options, in libtorch's words, and for tensors of several
    /// devices.
    pub fn conv2d_with(&self, weight: &LazyTensor, o: Conv2dOptions<'_>) -> Result<LazyTensor, Error> {
        self.convolution(weight, o.bias, &o.stride, &o.padding, &o.dilation, false, &[0, 0], o.groups)
    }

    /// `max_pool2d(kernel_size)`, by steps of the kernel's size
    ///
    /// # Errors
    /// As [`LazyTensor::max_pool2d_with_indices`].
    pub fn max_pool2d(&self, kernel_size: [i64; 2]) -> Result<LazyTensor, Error> {
        Ok(self.max_pool2d_with_indices(&kernel_size)?.0)
    }

    /// `softmax(dim)`
    ///
    /// # Errors
    /// Fails for a dimension that there is not.
    pub fn softmax(&self, dim: i64) -> Result<LazyTensor, Error> {
        self.to_float()?.softmax_kernel(dim, false)
    }

    /// `log_softmax(dim)`
    ///
    /// # Errors
    /// Fails for a dimension that there is not.
    pub fn log_softmax(&self, dim: i64) -> Result<LazyTensor, Error> {
        self.to_float()?.log_softmax_kernel(dim, false)
    }

    fn to_float(&self) -> Result<LazyTensor, Error> {
        if self.dtype().is_integral(true) { self.to_dtype(DType::F32) } else { Ok(self.clone()) }
    }

    /// `layer_norm(normalized_shape, weight, bias, eps)`
    ///
    /// # Errors
    /// As [`LazyTensor::native_layer_norm`].
    pub fn layer_norm(
        &self,
        normalized_shape: &[i64],
        weight: Option<&LazyTensor>,
        bias: Option<&LazyTensor>,
        eps: f64,
    ) -> Result<LazyTensor, Error> {
        Ok(self.native_layer_norm(normalized_shape, weight, bias, eps)?.0)
    }

    /// `group_norm(num_groups, weight, bias, eps)`
    ///
    /// # Errors
    /// As [`LazyTensor::native_group_norm`]; also for fewer than two dimensions.
    pub fn group_norm(
        &self,
        num_groups: i64,
        weight: Option<&LazyTensor>,
        bias: Option<&LazyTensor>,
        eps: f64,
    ) -> Result<LazyTensor, Error> {
        let [n, c, spatial @ ..] = self.sizes() else {
            return Err(ShapeError::runtime("Expected at least 2 dimensions for input tensor").into());
        };
        let inner = spatial.iter().product();
        Ok(self.contiguous()?.native_group_norm(weight, bias, *n, *c, inner, num_groups, eps)?.0)
    }

    /// `dropout(p, train)`
    ///
    /// # Errors
    /// As [`LazyTensor::native_dropout`].
    pub fn dropout(&self, p: f64, train: bool) -> Result<LazyTensor, Error> {
        if !train || p == 0.0 || self.numel() == 0 {
            return Ok(self.clone());
        }
        Ok(self.native_dropout(p, Some(train))?.0)
    }

    /// `nll_loss(target)`, the mean over rows
    ///
    /// # Errors
    /// As [`LazyTensor::nll_loss_forward`].
    pub fn nll_loss(&self, target: &LazyTensor, reduction: Reduction) -> Result<LazyTensor, Error> {
        Ok(self.nll_loss_forward(target, None, reduction.code(), -100)?.0)
    }

    /// `cross_entropy_loss(target)`: of rows of scores and class numbers
    ///
    /// # Errors
    /// As [`LazyTensor::nll_loss`]; also for a tensor of fewer than two dimensions.
    pub fn cross_entropy(&self, target: &LazyTensor, reduction: Reduction) -> Result<LazyTensor, Error> {
        self.log_softmax(1)?.nll_loss(target, reduction)
    }

    /// `log_sigmoid()`
    ///
    /// # Errors
    /// As [`LazyTensor::log_sigmoid_forward`].
    pub fn log_sigmoid(&self) -> Result<LazyTensor, Error> {
        Ok(self.log_sigmoid_forward()?.0)
    }

    /// `embedding(indices)`: rows of this weight
    ///
    /// # Errors
    /// As [`LazyTensor::embedding`].
    pub fn embed(&self, indices: &LazyTensor) -> Result<LazyTensor, Error> {
        self.embedding(indices)
    }

    /// `scaled_dot_product_attention(key, value)` of `[.., length, width]`; `causal` hides later positions.
    ///
    /// # Errors
    /// As [`LazyTensor::matmul`]; also for fewer than two dimensions.
    pub fn attention(&self, key: &LazyTensor, value: &LazyTensor, causal: bool) -> Result<LazyTensor, Error> {
        let width = self.size(-1)?.max(1) as f64;
        let mut scores = self.mul(1.0 / width.sqrt())?.matmul(&key.transpose(-2, -1)?)?;
        if causal {
            let (rows, columns) = (scores.size(-2)?, scores.size(-1)?);
            let later = LazyTensor::ones(self.device(), &[rows, columns], DType::Bool)?;
            let later = later.triu_with(super::TriuOptions { diagonal: 1 })?;
            scores = scores.masked_fill(&later, f64::NEG_INFINITY)?;
        }
        scores.softmax(-1)?.matmul(value)
    }

    /// `where(condition, self, other)`
    ///
    /// # Errors
    /// As [`LazyTensor::where_self`].
    pub fn where_<'o>(&'o self, condition: &LazyTensor, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        condition.where_self(self, other)
    }

    /// `zeros_like()`, row-major
    ///
    /// # Errors
    /// As [`LazyTensor::zeros`].
    pub fn zeros_as(&self) -> Result<LazyTensor, Error> {
        LazyTensor::zeros(self.device(), self.sizes(), self.dtype())
    }

    /// `ones_like()`, row-major
    ///
    /// # Errors
    /// As [`LazyTensor::ones`].
    pub fn ones_as(&self) -> Result<LazyTensor, Error> {
        LazyTensor::ones(self.device(), self.sizes(), self.dtype())
    }

    /// Every element set to a number.
    ///
    /// # Errors
    /// As [`LazyTensor::assign`].
    pub fn fill_(&self, value: impl Into<Scalar>) -> Result<(), Error> {
        self.assign(&LazyTensor::full(self.device(), self.sizes(), value, self.dtype())?)
    }

    /// Every element set to zero.
    ///
    /// # Errors
    /// As [`LazyTensor::assign`].
    pub fn zero_(&self) -> Result<(), Error> {
        self.fill_(0i64)
    }
}
