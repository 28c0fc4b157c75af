//! Whether all ranks mean the same, before they exchange it.

use std::fmt::Write;

use ltc_torch_sys::lazy_device_of;
use tch::Tensor;
use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Group, Op};

/// Which of these numbers are the same in all ranks: one small collective on the CPU.
pub(crate) fn same_everywhere<const N: usize>(group: &Group, numbers: [u64; N]) -> Result<[bool; N], Error> {
    // The greatest number is everybody's where the least is, and that is the greatest of the complements.
    let numbers = numbers.map(|n| n as i64);
    let both: Vec<i64> = numbers.iter().flat_map(|n| [*n, !n]).collect();
    let tensor = Tensor::from_slice(&both);
    group.all_reduce(&tensor, Op::Max)?;
    let greatest = Vec::<i64>::try_from(&tensor)?;
    Ok(std::array::from_fn(|i| greatest[2 * i..2 * i + 2] == both[2 * i..2 * i + 2]))
}

/// Shapes, dtypes and devices, as a number that is the same in every process.
///
/// # Errors
/// Where a tensor has no dtype that `tch` knows.
pub(crate) fn structure_of<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<u64, Error> {
    let mut text = String::new();
    for tensor in tensors {
        let place = if lazy_device_of(tensor).is_some() { "ltc" } else { "cpu" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{:?} {:?} {place};", tensor.f_kind()?, tensor.size());
    }
    Ok(xxh3_64(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;

    #[test]
    fn structures_differ_where_shapes_dtypes_or_numbers_of_tensors_do() {
        let zeros = |size: &[i64], kind| Tensor::zeros(size, (kind, Device::Cpu));
        let of = |tensors: &[Tensor]| structure_of(tensors).unwrap();
        let plain = of(&[zeros(&[2, 3], Kind::Float)]);
        assert_eq!(plain, of(&[zeros(&[2, 3], Kind::Float)]));
        assert_ne!(plain, of(&[zeros(&[3, 2], Kind::Float)]));
        assert_ne!(plain, of(&[zeros(&[2, 3], Kind::Double)]));
        assert_ne!(plain, of(&[zeros(&[2, 3], Kind::Float), zeros(&[], Kind::Float)]));
    }
}
