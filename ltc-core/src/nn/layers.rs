//! Layers.

use ltc_ir::DType;

use super::Vars;
use crate::{
    Error, LazyTensor,
    tensor::{Conv2dOptions, VarCorrectionOptions},
};

/// `x · weightᵀ + bias`
#[derive(Clone, Debug)]
pub struct Linear {
    /// `[out, in]`
    pub weight: LazyTensor,
    /// `[out]`
    pub bias: LazyTensor,
}

impl Linear {
    /// Drawn as libtorch draws them: uniformly within one over the root of the width.
    ///
    /// # Errors
    /// Fails for sizes that libtorch refuses, in its words.
    pub fn new(vars: &Vars, inputs: i64, outputs: i64) -> Result<Linear, Error> {
        let bound = 1.0 / (inputs.max(1) as f64).sqrt();
        Ok(Linear {
            weight: vars.uniform("weight", &[outputs, inputs], bound)?,
            bias: vars.uniform("bias", &[outputs], bound)?,
        })
    }

    /// Applies the layer.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn forward(&self, x: &LazyTensor) -> Result<LazyTensor, Error> {
        x.linear(&self.weight, Some(&self.bias))
    }
}

/// How a [`Conv2d`] moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conv2dConfig {
    /// Step of the window.
    pub stride: i64,
    /// Zeros around the input.
    pub padding: i64,
    /// Blocks of channels that do not mix.
    pub groups: i64,
}

impl Default for Conv2dConfig {
    fn default() -> Self {
        Conv2dConfig { stride: 1, padding: 0, groups: 1 }
    }
}

/// A convolution over planes.
#[derive(Clone, Debug)]
pub struct Conv2d {
    /// `[out, in / groups, kernel, kernel]`
    pub weight: LazyTensor,
    /// `[out]`
    pub bias: LazyTensor,
    config: Conv2dConfig,
}

impl Conv2d {
    /// A square kernel.
    ///
    /// # Errors
    /// Fails for sizes that libtorch refuses, in its words.
    pub fn new(vars: &Vars, inputs: i64, outputs: i64, kernel: i64, config: Conv2dConfig) -> Result<Conv2d, Error> {
        let each = inputs / config.groups.max(1);
        let bound = 1.0 / ((each * kernel * kernel).max(1) as f64).sqrt();
        Ok(Conv2d {
            weight: vars.uniform("weight", &[outputs, each, kernel, kernel], bound)?,
            bias: vars.uniform("bias", &[outputs], bound)?,
            config,
        })
    }

    /// Applies the layer.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn forward(&self, x: &LazyTensor) -> Result<LazyTensor, Error> {
        let c = &self.config;
        let options = Conv2dOptions {
            bias: Some(&self.bias),
            stride: [c.stride; 2],
            padding: [c.padding; 2],
            groups: c.groups,
            ..Conv2dOptions::default()
        };
        x.conv2d_with(&self.weight, options)
    }
}

/// Normalises the last dimensions.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    /// Scale.
    pub weight: LazyTensor,
    /// Offset.
    pub bias: LazyTensor,
    shape: Vec<i64>,
}

impl LayerNorm {
    /// Over dimensions of these sizes.
    ///
    /// # Errors
    /// Fails for sizes that libtorch refuses, in its words.
    pub fn new(vars: &Vars, shape: &[i64]) -> Result<LayerNorm, Error> {
        let (weight, bias) = (vars.full("weight", shape, 1.0)?, vars.full("bias", shape, 0.0)?);
        Ok(LayerNorm { weight, bias, shape: shape.into() })
    }

    /// Applies the layer.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn forward(&self, x: &LazyTensor) -> Result<LazyTensor, Error> {
        x.layer_norm(&self.shape, Some(&self.weight), Some(&self.bias), 1e-5)
    }
}

/// Normalises groups of channels.
#[derive(Clone, Debug)]
pub struct GroupNorm {
    /// Scale.
    pub weight: LazyTensor,
    /// Offset.
    pub bias: LazyTensor,
    groups: i64,
}

impl GroupNorm {
    /// Of so many channels.
    ///
    /// # Errors
    /// Fails for sizes that libtorch refuses, in its words.
    pub fn new(vars: &Vars, groups: i64, channels: i64) -> Result<GroupNorm, Error> {
        let (weight, bias) = (vars.full("weight", &[channels], 1.0)?, vars.full("bias", &[channels], 0.0)?);
        Ok(GroupNorm { weight, bias, groups })
    }

    /// Applies the layer.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn forward(&self, x: &LazyTensor) -> Result<LazyTensor, Error> {
        x.group_norm(self.groups, Some(&self.weight), Some(&self.bias), 1e-5)
    }
}

/// Normalises channels over the batch.
#[derive(Clone, Debug)]
pub struct BatchNorm2d {
    /// Scale.
    pub weight: LazyTensor,
    /// Offset.
    pub bias: LazyTensor,
    /// Mean of what was seen in training.
    pub running_mean: LazyTensor,
    /// Variance of what was seen in training.
    pub running_var: LazyTensor,
}

/// How much of a batch's statistics goes into the running ones.
const MOMENTUM: f64 = 0.1;

impl BatchNorm2d {
    /// Of so many channels.
    ///
    /// # Errors
    /// Fails for sizes that libtorch refuses, in its words.
    pub fn new(vars: &Vars, channels: i64) -> Result<BatchNorm2d, Error> {
        let (device, sizes) = (vars.device(), [channels]);
        Ok(BatchNorm2d {
            weight: vars.full("weight", &sizes, 1.0)?,
            bias: vars.full("bias", &sizes, 0.0)?,
            running_mean: LazyTensor::zeros(device, &sizes, DType::F32)?,
            running_var: LazyTensor::ones(device, &sizes, DType::F32)?,
        })
    }

    /// Applies the layer; in training, by the batch's own statistics, which the running ones follow.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn forward(&self, x: &LazyTensor, train: bool) -> Result<LazyTensor, Error> {
        let (weight, bias) = (Some(&self.weight), Some(&self.bias));
        if !train {
            let (mean, var) = (Some(&self.running_mean), Some(&self.running_var));
            return Ok(x.native_batch_norm(weight, bias, mean, var, false, MOMENTUM, 1e-5)?.0);
        }
        let (y, mean, _) = x.native_batch_norm(weight, bias, None, None, true, MOMENTUM, 1e-5)?;
        let _off = crate::no_grad();
        let dims: Vec<i64> = (0..x.dim() as i64).filter(|&d| d != 1).collect();
        let spread = VarCorrectionOptions { dim: Some(&dims), ..VarCorrectionOptions::default() };
        let follow = |running: &LazyTensor, now: LazyTensor| {
            running.assign(&running.mul(1.0 - MOMENTUM)?.add(now.mul(MOMENTUM)?)?)
        };
        follow(&self.running_mean, mean)?;
        follow(&self.running_var, x.detach().var_correction_with(spread)?)?;
        Ok(y)
    }
}

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// `[rows, width]`
    pub weight: LazyTensor,
}

impl Embedding {
    /// Drawn from a standard normal distribution.
    ///
    /// # Errors
    /// Fails for sizes that libtorch refuses, in its words.
    pub fn new(vars: &Vars, rows: i64, width: i64) -> Result<Embedding, Error> {
        Ok(Embedding { weight: vars.normal("weight", &[rows, width], 1.0)? })
    }

    /// Rows by number.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn forward(&self, indices: &LazyTensor) -> Result<LazyTensor, Error> {
        self.weight.embedding(indices)
    }
}

/// Multi-head self-attention over `[batch, length, width]`.
#[derive(Clone, Debug)]
pub struct Attention {
    project: Linear,
    combine: Linear,
    heads: i64,
    causal: bool,
}

impl Attention {
    /// `width` must be divisible by `heads`; `causal` hides later positions.
    ///
    /// # Errors
    /// Fails for sizes that libtorch refuses, in its words.
    pub fn new(vars: &Vars, width: i64, heads: i64, causal: bool) -> Result<Attention, Error> {
        Ok(Attention {
            project: Linear::new(&vars.at("project"), width, 3 * width)?,
            combine: Linear::new(&vars.at("combine"), width, width)?,
            heads,
            causal,
        })
    }

    /// Applies the layer.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn forward(&self, x: &LazyTensor) -> Result<LazyTensor, Error> {
        let (batch, length, width) = (x.size(0)?, x.size(1)?, x.size(2)?);
        let split = |t: &LazyTensor| t.reshape(&[batch, length, self.heads, width / self.heads])?.transpose(1, 2);
        let parts = self.project.forward(x)?.chunk(3, -1)?;
        let (q, k, v) = (split(&parts[0])?, split(&parts[1])?, split(&parts[2])?);
        let y = q.attention(&k, &v, self.causal)?;
        self.combine.forward(&y.transpose(1, 2)?.reshape(&[batch, length, width])?)
    }
}
