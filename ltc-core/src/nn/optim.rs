//! Optimisers. A step is recorded like everything else: its numbers are runtime parameters of the program.

use super::Vars;
use crate::{Error, LazyTensor, no_grad};

/// Moves variables against their gradients.
pub trait Optimizer {
    /// One step by the gradients collected so far; variables without one stay.
    ///
    /// # Errors
    /// Fails where a gradient does not fit its variable.
    fn step(&mut self) -> Result<(), Error>;

    /// The variables it moves.
    fn vars(&self) -> &Vars;

    /// Forgets old gradients, differentiates a loss, and steps.
    ///
    /// # Errors
    /// As [`LazyTensor::backward`] and [`Optimizer::step`] do.
    fn backward_step(&mut self, loss: &LazyTensor) -> Result<(), Error> {
        self.vars().zero_grad();
        loss.backward()?;
        self.step()
    }
}

/// Settings of [`Sgd`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SgdConfig {
    /// How much of the last direction stays.
    pub momentum: f64,
    /// Pull towards zero.
    pub weight_decay: f64,
}

/// Stochastic gradient descent.
#[derive(Debug)]
pub struct Sgd {
    vars: Vars,
    rate: f64,
    config: SgdConfig,
    velocities: Vec<Option<LazyTensor>>,
}

impl Sgd {
    /// With this learning rate.
    pub fn new(vars: &Vars, rate: f64, config: SgdConfig) -> Sgd {
        Sgd { vars: vars.clone(), rate, config, velocities: Vec::new() }
    }

    /// Changes the learning rate.
    pub fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }
}

impl Optimizer for Sgd {
    fn vars(&self) -> &Vars {
        &self.vars
    }

    fn step(&mut self) -> Result<(), Error> {
        let _off = no_grad();
        let vars = self.vars.all();
        self.velocities.resize(vars.len(), None);
        for ((_, var), velocity) in vars.iter().zip(&mut self.velocities) {
            let Some(mut direction) = var.grad() else { continue };
            if self.config.weight_decay != 0.0 {
                direction = direction.add(var.mul(self.config.weight_decay)?)?;
            }
            if self.config.momentum != 0.0 {
                if let Some(v) = velocity.as_ref() {
                    direction = v.mul(self.config.momentum)?.add(&direction)?;
                }
                *velocity = Some(direction.clone());
            }
            var.assign(&var.sub(direction.mul(self.rate)?)?)?;
        }
        Ok(())
    }
}

/// Settings of [`Adam`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdamConfig {
    /// How much of the mean and of the mean square of gradients stays.
    pub betas: (f64, f64),
    /// Keeps divisions away from zero.
    pub eps: f64,
    /// Pull towards zero.
    pub weight_decay: f64,
    /// The pull bypasses the gradient's statistics (AdamW).
    pub decoupled: bool,
}

impl Default for AdamConfig {
    fn default() -> Self {
        AdamConfig { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0, decoupled: false }
    }
}

/// Adam, and with [`AdamConfig::decoupled`] AdamW.
#[derive(Debug)]
pub struct Adam {
    vars: Vars,
    rate: f64,
    config: AdamConfig,
    moments: Vec<Option<(LazyTensor, LazyTensor)>>,
    steps: i32,
}

impl Adam {
    /// With this learning rate.
    pub fn new(vars: &Vars, rate: f64, config: AdamConfig) -> Adam {
        Adam { vars: vars.clone(), rate, config, moments: Vec::new(), steps: 0 }
    }

    /// AdamW with libtorch's defaults.
    pub fn adamw(vars: &Vars, rate: f64) -> Adam {
        Adam::new(vars, rate, AdamConfig { weight_decay: 0.01, decoupled: true, ..AdamConfig::default() })
    }

    /// Changes the learning rate.
    pub fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }
}

impl Optimizer for Adam {
    fn vars(&self) -> &Vars {
        &self.vars
    }

    fn step(&mut self) -> Result<(), Error> {
        let _off = no_grad();
        self.steps += 1;
        let AdamConfig { betas: (b1, b2), eps, weight_decay, decoupled } = self.config;
        let (c1, c2) = (1.0 - b1.powi(self.steps), 1.0 - b2.powi(self.steps));
        let vars = self.vars.all();
        self.moments.resize_with(vars.len(), || None);
        for ((_, var), moments) in vars.iter().zip(&mut self.moments) {
            let Some(mut grad) = var.grad() else { continue };
            let mut start = var.detach();
            if weight_decay != 0.0 && decoupled {
                start = start.mul(1.0 - self.rate * weight_decay)?;
            } else if weight_decay != 0.0 {
                grad = grad.add(var.mul(weight_decay)?)?;
            }
            let (mean, square) = match moments.take() {
                Some((mean, square)) => {
                    (mean.mul(b1)?.add(grad.mul(1.0 - b1)?)?, square.mul(b2)?.add(grad.mul(&grad)?.mul(1.0 - b2)?)?)
                }
                None => (grad.mul(1.0 - b1)?, grad.mul(&grad)?.mul(1.0 - b2)?),
            };
            let scale = square.sqrt()?.div(c2.sqrt())?.add(eps)?;
            var.assign(&start.sub(mean.div(&scale)?.mul(self.rate / c1)?)?)?;
            *moments = Some((mean, square));
        }
        Ok(())
    }
}
