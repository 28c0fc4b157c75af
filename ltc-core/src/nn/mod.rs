//! Layers and optimisers for native tensors: enough to train small networks over any backend.
//!
//! A [`Vars`] owns the parameters; layers hold clones, which share memory and gradients with it.

mod layers;
mod optim;

use std::sync::Arc;

use ltc_ir::DType;

pub use layers::{Attention, BatchNorm2d, Conv2d, Conv2dConfig, Embedding, GroupNorm, LayerNorm, Linear};
pub use optim::{Adam, AdamConfig, Optimizer, Sgd, SgdConfig};

use crate::{Device, Error, LazyTensor, sync::Mutex};

/// The trainable tensors of a model, by name. Cheap to clone; clones add to the same list.
#[derive(Clone, Debug)]
pub struct Vars {
    device: Device,
    prefix: String,
    list: Arc<Mutex<Vec<(String, LazyTensor)>>>,
}

impl Vars {
    /// No variables yet.
    pub fn new(device: &Device) -> Vars {
        Vars { device: device.clone(), prefix: String::new(), list: Arc::default() }
    }

    /// The same list, with names below this one: `encoder.weight`.
    pub fn at(&self, name: &str) -> Vars {
        Vars { prefix: format!("{}{name}.", self.prefix), ..self.clone() }
    }

    /// Where variables live.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Adds a variable with these values.
    pub fn var(&self, name: &str, values: &LazyTensor) -> LazyTensor {
        let var = values.detach().requiring_grad();
        self.list.lock().push((format!("{}{name}", self.prefix), var.clone()));
        var
    }

    /// Adds a variable drawn uniformly from `[-bound, bound)`.
    ///
    /// # Errors
    /// Fails for sizes that libtorch refuses, in its words.
    pub fn uniform(&self, name: &str, sizes: &[i64], bound: f64) -> Result<LazyTensor, Error> {
        let values = LazyTensor::rand(&self.device, sizes, DType::F32)?.mul(2.0 * bound)?.sub(bound)?;
        Ok(self.var(name, &values))
    }

    /// Adds a variable drawn from a normal distribution around 0.
    ///
    /// # Errors
    /// Fails for sizes that libtorch refuses, in its words.
    pub fn normal(&self, name: &str, sizes: &[i64], std: f64) -> Result<LazyTensor, Error> {
        Ok(self.var(name, &LazyTensor::randn(&self.device, sizes, DType::F32)?.mul(std)?))
    }

    /// Adds a variable of equal values.
    ///
    /// # Errors
    /// Fails for sizes that libtorch refuses, in its words.
    pub fn full(&self, name: &str, sizes: &[i64], value: f64) -> Result<LazyTensor, Error> {
        Ok(self.var(name, &LazyTensor::full(&self.device, sizes, value, DType::F32)?))
    }

    /// All variables, in the order they were added.
    pub fn all(&self) -> Vec<(String, LazyTensor)> {
        self.list.lock().clone()
    }

    /// Forgets all gradients.
    pub fn zero_grad(&self) {
        self.list.lock().iter().for_each(|(_, v)| v.set_grad(None));
    }
}
