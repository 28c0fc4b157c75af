//! Host numbers in and out.

use std::sync::Arc;

use ltc_backend::HostTensor;
use ltc_ir::{DType, Layout, ShapeError};

use super::LazyTensor;
use crate::{Device, Error};

/// A Rust number that tensors can hold.
pub trait Element: Copy + PartialEq + Default + Send + Sync + std::fmt::Debug + 'static {
    /// Its element type.
    const DTYPE: DType;

    /// Appends its bytes, in native order.
    fn write(self, bytes: &mut Vec<u8>);

    /// Reads it from as many bytes as its dtype has.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($number:ty => $dtype:ident),*) => {$(
        impl Element for $number {
            const DTYPE: DType = DType::$dtype;

            #[inline]
            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_ne_bytes());
            }

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                <$number>::from_ne_bytes(bytes.try_into().unwrap_or_default())
            }
        }
    )*};
}

elements!(f32 => F32, f64 => F64, i64 => I64, i32 => I32, i16 => I16, i8 => I8, u8 => U8);

impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }

    fn read(bytes: &[u8]) -> Self {
        bytes.first().is_some_and(|&b| b != 0)
    }
}

fn count(sizes: &[i64], given: usize) -> Result<(), Error> {
    let wanted = sizes.iter().try_fold(1i64, |n, &s| if s < 0 { None } else { n.checked_mul(s) });
    if wanted == Some(given as i64) {
        return Ok(());
    }
    Err(ShapeError::runtime(format!("shape '{sizes:?}' is invalid for input of size {given}")).into())
}

impl LazyTensor {
    /// A tensor of these numbers, row-major.
    ///
    /// # Errors
    /// Fails where the sizes do not hold as many elements as there are, or the device has no room.
    pub fn from_slice<T: Element>(device: &Device, data: &[T], sizes: &[i64]) -> Result<LazyTensor, Error> {
        count(sizes, data.len())?;
        let mut bytes = Vec::with_capacity(data.len() * T::DTYPE.size_of());
        data.iter().for_each(|x| x.write(&mut bytes));
        LazyTensor::from_host(device, &HostTensor { layout: Layout::contiguous(T::DTYPE, sizes).into(), bytes })
    }

    /// A tensor with no dimensions.
    ///
    /// # Errors
    /// Fails where the device has no room.
    pub fn scalar<T: Element>(device: &Device, value: T) -> Result<LazyTensor, Error> {
        LazyTensor::from_slice(device, &[value], &[])
    }

    /// A tensor of host memory.
    ///
    /// # Errors
    /// Fails where bytes and layout do not fit together, or the device has no room.
    pub fn from_host(device: &Device, host: &HostTensor) -> Result<LazyTensor, Error> {
        Ok(LazyTensor::of(device.clone(), device.upload(host)?))
    }

    /// The values on the host: a sync point, and a wait for this value.
    ///
    /// # Errors
    /// Fails with what the program that makes the value failed with, or where the wait is interrupted.
    pub fn to_host(&self) -> Result<HostTensor, Error> {
        self.device().download(&self.detach().contiguous()?.value())
    }

    /// The values in row-major order: a sync point, and a wait for this value.
    ///
    /// # Errors
    /// Fails for another element type, and with what the program that makes the value failed with.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        if T::DTYPE != self.dtype() {
            let message = format!("expected a tensor of {}, but it holds {}", T::DTYPE, self.dtype());
            return Err(ShapeError::runtime(message).into());
        }
        Ok(self.to_host()?.bytes.chunks_exact(T::DTYPE.size_of()).map(T::read).collect())
    }

    /// The values as `f64`, whatever real dtype they have.
    ///
    /// # Errors
    /// Fails for complex tensors, and with what the program that makes the value failed with.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>, Error> {
        let host = self.to_host()?;
        read_f64(self.dtype(), &host.bytes)
            .ok_or_else(|| ShapeError::runtime(format!("{} has no real values", self.dtype())).into())
    }

    /// The value of a tensor with one element, as `f64`.
    ///
    /// # Errors
    /// Fails for a tensor of more or fewer elements than one, and with what the program that makes the value failed
    /// with.
    pub fn item(&self) -> Result<f64, Error> {
        match self.to_f64_vec()?[..] {
            [x] => Ok(x),
            _ => {
                let message = format!("a Tensor with {} elements cannot be converted to Scalar", self.numel());
                Err(ShapeError::runtime(message).into())
            }
        }
    }
}

/// Values of any real dtype, and of booleans.
pub(crate) fn read_f64(dtype: DType, bytes: &[u8]) -> Option<Vec<f64>> {
    fn each<T: Element>(bytes: &[u8], f: impl Fn(T) -> f64) -> Vec<f64> {
        bytes.chunks_exact(T::DTYPE.size_of()).map(|b| f(T::read(b))).collect()
    }
    Some(match dtype {
        DType::F32 => each(bytes, |x: f32| x.into()),
        DType::F64 => each(bytes, |x: f64| x),
        DType::I64 => each(bytes, |x: i64| x as f64),
        DType::I32 => each(bytes, |x: i32| x.into()),
        DType::I16 => each(bytes, |x: i16| x.into()),
        DType::I8 => each(bytes, |x: i8| x.into()),
        DType::U8 => each(bytes, |x: u8| x.into()),
        DType::Bool => each(bytes, |x: bool| f64::from(u8::from(x))),
        // The upper half of a single.
        DType::BF16 => each(bytes, |x: i16| f32::from_bits(u32::from(x as u16) << 16).into()),
        DType::F16 => each(bytes, |x: i16| half_to_f64(x as u16)),
        _ => return None,
    })
}

fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * f64::powi(2.0, -24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1.0 + fraction / 1024.0) * f64::powi(2.0, e - 15),
    }
}

/// Arrays of the `ndarray` crate.
#[cfg(feature = "ndarray")]
impl LazyTensor {
    /// A tensor of an array's elements.
    ///
    /// # Errors
    /// Fails where the device has no room.
    pub fn from_ndarray<T: Element, S, D>(
        device: &Device,
        array: &ndarray::ArrayBase<S, D>,
    ) -> Result<LazyTensor, Error>
    where
        S: ndarray::Data<Elem = T>,
        D: ndarray::Dimension,
    {
        let sizes: Vec<i64> = array.shape().iter().map(|&s| s as i64).collect();
        let values: Vec<T> = array.iter().copied().collect();
        LazyTensor::from_slice(device, &values, &sizes)
    }

    /// The values as an array: a sync point, and a wait for this value.
    ///
    /// # Errors
    /// Fails for another element type, and with what the program that makes the value failed with.
    pub fn to_ndarray<T: Element>(&self) -> Result<ndarray::ArrayD<T>, Error> {
        let shape: Vec<usize> = self.sizes().iter().map(|&s| s as usize).collect();
        ndarray::ArrayD::from_shape_vec(shape, self.to_vec()?).map_err(|e| ShapeError::runtime(e.to_string()).into())
    }
}

/// Tensors go between threads.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<LazyTensor>();
    shared::<Arc<LazyTensor>>();
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_real_dtype_reads_as_f64() {
        assert_eq!(read_f64(DType::F16, &0x3e00u16.to_ne_bytes()), Some(vec![1.5]));
        assert_eq!(read_f64(DType::F16, &0x0001u16.to_ne_bytes()), Some(vec![f64::powi(2.0, -24)]));
        assert_eq!(read_f64(DType::F16, &0xfc00u16.to_ne_bytes()), Some(vec![f64::NEG_INFINITY]));
        assert_eq!(read_f64(DType::BF16, &0xc040u16.to_ne_bytes()), Some(vec![-3.0]));
        assert_eq!(read_f64(DType::Bool, &[0, 1]), Some(vec![0.0, 1.0]));
        assert_eq!(read_f64(DType::C64, &[0; 8]), None);
    }
}
