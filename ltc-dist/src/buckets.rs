//! Tensors that travel together: few large collectives are faster than many small ones.

use ltc_torch_sys::lazy_device_of;
use tch::{Kind, Tensor};

use crate::Error;

/// Tensors of one dtype and one device.
struct Bucket {
    of: (Kind, Option<u16>),
    tensors: Vec<Tensor>,
    bytes: usize,
}

/// Tensors in buckets of at most this many bytes, in their order; larger ones are alone. Which tensors are in a bucket
/// follows from shapes, dtypes and devices.
///
/// # Errors
/// Where a tensor has no dtype that `tch` knows.
pub(crate) fn buckets(tensors: impl IntoIterator<Item = Tensor>, at_most: usize) -> Result<Vec<Vec<Tensor>>, Error> {
    let (mut full, mut open) = (Vec::new(), Vec::<Bucket>::new());
    for tensor in tensors {
        let kind = tensor.f_kind()?;
        let of = (kind, lazy_device_of(&tensor));
        let bytes = tensor.numel() * kind.elt_size_in_bytes();
        let place = open.iter().position(|b| b.of == of).unwrap_or_else(|| {
            open.push(Bucket { of, tensors: Vec::new(), bytes: 0 });
            open.len() - 1
        });
        let bucket = &mut open[place];
        if !bucket.tensors.is_empty() && bucket.bytes + bytes > at_most {
            full.push(std::mem::take(&mut bucket.tensors));
            bucket.bytes = 0;
        }
        bucket.tensors.push(tensor);
        bucket.bytes += bytes;
    }
    full.extend(open.into_iter().map(|bucket| bucket.tensors));
    Ok(full)
}

/// Has a collective change all tensors of a bucket as one.
///
/// # Errors
/// The collective's.
pub(crate) fn change(bucket: &[Tensor], collective: impl FnOnce(&Tensor) -> Result<(), Error>) -> Result<(), Error> {
    if let [only] = bucket {
        return collective(only);
    }
    let rows = bucket.iter().map(|t| t.f_reshape([-1])).collect::<Result<Vec<_>, _>>()?;
    let flat = Tensor::f_cat(&rows, 0)?;
    collective(&flat)?;
    let mut start = 0;
    for tensor in bucket {
        let elements = tensor.numel() as i64;
        tensor.shallow_clone().f_copy_(&flat.f_narrow(0, start, elements)?.f_reshape(tensor.size())?)?;
        start += elements;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;

    #[test]
    fn buckets_are_of_one_dtype_and_of_limited_size() {
        let zeros = |n: i64, kind| Tensor::zeros([n], (kind, Device::Cpu));
        let (float, double) = (Kind::Float, Kind::Double);
        let tensors = [zeros(2, float), zeros(1, double), zeros(2, float), zeros(1, float), zeros(9, float)];
        let sizes: Vec<Vec<i64>> =
            buckets(tensors, 16).unwrap().iter().map(|bucket| bucket.iter().map(|t| t.size()[0]).collect()).collect();
        assert_eq!(sizes, [vec![2, 2], vec![1], vec![9], vec![1]]);
    }

    #[test]
    fn what_a_collective_does_to_a_bucket_happens_to_its_tensors() {
        let first = Tensor::arange(6, (Kind::Float, Device::Cpu)).view([2, 3]);
        let second = Tensor::from(1.0f32);
        let transposed = first.tr();
        change(&[transposed, second.shallow_clone()], |flat| {
            let _ = flat.shallow_clone().f_mul_scalar_(2.0)?;
            Ok(())
        })
        .unwrap();
        assert_eq!(Vec::<f32>::try_from(first.view(-1)).unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(second.double_value(&[]), 2.0);
    }
}
