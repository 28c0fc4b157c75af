//! What a model learns, as ranks compare and exchange it.

use std::collections::HashMap;

use ltc_torch_sys::impl_of;
use tch::{Tensor, nn::VarStore};

/// Tensors that all ranks have, in an order that is the same in all.
pub trait Parameters {
    /// All of them, trained or not, each with a name for errors.
    fn named(&self) -> Vec<(String, Tensor)>;
}

/// In their order, named by their place.
impl Parameters for [Tensor] {
    fn named(&self) -> Vec<(String, Tensor)> {
        self.iter().enumerate().map(|(i, t)| (format!("tensor {i}"), t.shallow_clone())).collect()
    }
}

/// In their order, named by their place.
impl Parameters for Vec<Tensor> {
    fn named(&self) -> Vec<(String, Tensor)> {
        self.as_slice().named()
    }
}

/// Those that are trained in the order they were made, then the others by name.
impl Parameters for VarStore {
    fn named(&self) -> Vec<(String, Tensor)> {
        let trained = self.trainable_variables();
        let order: HashMap<_, _> = trained.iter().enumerate().map(|(place, t)| (impl_of(t), place)).collect();
        let mut all: Vec<(String, Tensor)> = self.variables().into_iter().collect();
        all.sort_by_cached_key(|(name, t)| (order.get(&impl_of(t)).copied().unwrap_or(usize::MAX), name.clone()));
        all
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, nn};

    use super::*;

    #[test]
    fn variables_come_as_they_were_made_and_statistics_last() {
        let store = VarStore::new(Device::Cpu);
        let root = store.root();
        nn::linear(&root / "z", 2, 2, Default::default());
        nn::batch_norm1d(&root / "norm", 2, Default::default());
        nn::linear(&root / "a", 2, 2, Default::default());
        let names: Vec<String> = store.named().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[names.len() - 2..], ["norm.running_mean", "norm.running_var"]);
        let place = |name: &str| names.iter().position(|n| n == name).unwrap();
        assert!(place("z.weight") < place("norm.weight") && place("norm.weight") < place("a.weight"), "{names:?}");
    }
}
