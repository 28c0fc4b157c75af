//! Who runs a program: the lazy device, or eager tensors with a planted mistake.

use ltc_torch::Fusion;
use tch::{Kind, Tensor};

/// Something that runs tensor programs as eager libtorch does.
pub trait Subject {
    /// Takes an eager tensor over.
    fn put(&self, t: &Tensor) -> Tensor;

    /// The value as an eager tensor.
    ///
    /// # Errors
    /// What was said where it could not be computed.
    fn get(&self, t: &Tensor) -> Result<Tensor, String>;

    /// A step barrier.
    fn mark(&self);

    /// Seeds the generator draws come from.
    fn seed(&self, seed: u64);

    /// Looks at (or tampers with) the result of every step: where mistakes are planted.
    fn after(&self, _step: usize, result: Tensor) -> Tensor {
        result
    }

    /// Whether this step is silently left out: another place for mistakes.
    fn skips(&self, _step: usize) -> bool {
        false
    }
}

/// The `ltc` device.
#[derive(Debug, Clone, Copy)]
pub struct Lazy {
    /// Device index.
    pub device: u16,
}

impl Lazy {
    /// `ltc:0`, initialised.
    pub fn new() -> Self {
        Lazy::at(0)
    }

    /// One of two devices, initialised. Kernels are fused where that changes no bit, unless `LTC_FUSION` says
    /// otherwise.
    pub fn at(device: u16) -> Self {
        let mut options = ltc_torch::Options::from_env().expect("the environment makes sense");
        if std::env::var_os("LTC_FUSION").is_none() {
            options.fusion = Fusion::Exact;
        }
        Lazy::set_up(options, device)
    }

    /// `ltc:0`, initialised with this fusion if this is the first in the process.
    pub fn with_fusion(fusion: Fusion) -> Self {
        let mut options = ltc_torch::Options::from_env().expect("the environment makes sense");
        options.fusion = fusion;
        Lazy::set_up(options, 0)
    }

    fn set_up(mut options: ltc_torch::Options, device: u16) -> Self {
        if options.places.len() < 2 {
            options.places.push(ltc_torch::Place::Cpu);
        }
        ltc_torch::init_with(options).expect("the device registers");
        // Over the stand-in of CUDA, kernels of libtorch's have values under this key (docs/cuda.md).
        if std::env::var_os("DRY_CUDA_ORDER").is_some() {
            ltc_torch::set_place_key("Fake").expect("libtorch has that key");
        }
        Lazy { device }
    }
}

impl Default for Lazy {
    fn default() -> Self {
        Self::new()
    }
}

impl Subject for Lazy {
    fn put(&self, t: &Tensor) -> Tensor {
        ltc_torch::to_device(t, self.device).expect("tensors go to the device")
    }

    fn get(&self, t: &Tensor) -> Result<Tensor, String> {
        ltc_torch::to_cpu(t).map_err(|e| e.to_string())
    }

    fn mark(&self) {
        ltc_torch::sync().expect("a sync does not fail");
    }

    fn seed(&self, seed: u64) {
        ltc_torch::manual_seed(seed).expect("seeding does not fail");
    }
}

/// A mistake for the harness to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// None: eager against eager.
    None,
    /// One element of one result is off by the smallest step.
    Value,
    /// A result has other strides.
    Stride,
    /// A result has another dtype.
    Dtype,
    /// A result is a copy where it should alias.
    LostAlias,
    /// A step is left out.
    Skipped,
}

/// Eager tensors, with a mistake planted at one step.
#[derive(Debug, Clone, Copy)]
pub struct Faulty {
    /// What goes wrong.
    pub mistake: Mistake,
    /// At which step.
    pub at: usize,
}

impl Subject for Faulty {
    fn put(&self, t: &Tensor) -> Tensor {
        t.copy()
    }

    fn get(&self, t: &Tensor) -> Result<Tensor, String> {
        Ok(t.copy())
    }

    fn mark(&self) {}

    fn seed(&self, seed: u64) {
        tch::manual_seed(seed as i64);
    }

    fn after(&self, step: usize, t: Tensor) -> Tensor {
        if step != self.at {
            return t;
        }
        match self.mistake {
            Mistake::None | Mistake::Skipped => t,
            Mistake::Value => {
                let bits = t.copy();
                if bits.numel() > 0 {
                    let mut first = (0..bits.dim()).fold(bits.shallow_clone(), |b, _| b.select(0, 0));
                    let _ = if bits.kind() == Kind::Bool { first.logical_not_() } else { first.g_add_scalar_(1) };
                }
                bits
            }
            Mistake::Stride => {
                if t.dim() < 2 {
                    t
                } else {
                    t.transpose(0, 1).contiguous().transpose(0, 1)
                }
            }
            Mistake::Dtype => t.to_kind(if t.kind() == Kind::Double { Kind::Float } else { Kind::Double }),
            Mistake::LostAlias => t.copy(),
        }
    }

    fn skips(&self, step: usize) -> bool {
        self.mistake == Mistake::Skipped && step == self.at
    }
}
