//! Tensors from sizes and numbers, and conversions.

use ltc_ir::{DType, Layout, LayoutRef, OpCode, Scalar};

use super::{LazyTensor, record::Recording};
use crate::{Device, Error};

impl LazyTensor {
    /// A tensor of memory nobody wrote yet.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn empty(device: &Device, sizes: &[i64], dtype: DType) -> Result<LazyTensor, Error> {
        let layout: LayoutRef = Layout::contiguous(dtype, sizes).into();
        ltc_ir::rules::factory::check_sizes(sizes)?;
        Ok(LazyTensor::uninit(device.clone(), layout))
    }

    /// `full(size, fill_value, dtype)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn full(device: &Device, sizes: &[i64], value: impl Into<Scalar>, dtype: DType) -> Result<LazyTensor, Error> {
        let mut c = Recording::on(OpCode::Full, device);
        c.ints(sizes);
        c.number(value.into());
        c.dtype(dtype);
        (0..3).for_each(|_| c.ours());
        c.one()
    }

    /// `zeros(size, dtype)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn zeros(device: &Device, sizes: &[i64], dtype: DType) -> Result<LazyTensor, Error> {
        LazyTensor::full(device, sizes, 0i64, dtype)
    }

    /// `ones(size, dtype)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn ones(device: &Device, sizes: &[i64], dtype: DType) -> Result<LazyTensor, Error> {
        LazyTensor::full(device, sizes, 1i64, dtype)
    }

    /// `arange(start, end, step, dtype)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn arange(
        device: &Device,
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<LazyTensor, Error> {
        let mut c = Recording::on(OpCode::ArangeStartStep, device);
        c.number(start.into());
        c.number(end.into());
        c.number(step.into());
        c.dtype(dtype);
        (0..3).for_each(|_| c.ours());
        c.one()
    }

    /// `eye(n, m, dtype)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn eye(device: &Device, n: i64, m: i64, dtype: DType) -> Result<LazyTensor, Error> {
        let mut c = Recording::on(OpCode::EyeM, device);
        c.int(n);
        c.int(m);
        c.dtype(dtype);
        (0..3).for_each(|_| c.ours());
        c.one()
    }

    /// Uniform draws from `[0, 1)`.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn rand(device: &Device, sizes: &[i64], dtype: DType) -> Result<LazyTensor, Error> {
        drawn(OpCode::Rand, device, sizes, dtype)
    }

    /// Standard normal draws.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn randn(device: &Device, sizes: &[i64], dtype: DType) -> Result<LazyTensor, Error> {
        drawn(OpCode::Randn, device, sizes, dtype)
    }

    /// `randint(low, high, size)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn randint(device: &Device, low: i64, high: i64, sizes: &[i64]) -> Result<LazyTensor, Error> {
        let mut c = Recording::on(OpCode::RandintLow, device);
        c.int(low);
        c.int(high);
        c.ints(sizes);
        c.dtype(DType::I64);
        (0..3).for_each(|_| c.ours());
        c.one()
    }

    /// `randperm(n)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn randperm(device: &Device, n: i64) -> Result<LazyTensor, Error> {
        let mut c = Recording::on(OpCode::Randperm, device);
        c.int(n);
        c.dtype(DType::I64);
        (0..3).for_each(|_| c.ours());
        c.one()
    }

    /// The same values in another element type; the tensor itself where it has it.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn to_dtype(&self, dtype: DType) -> Result<LazyTensor, Error> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        self.copied(Some(dtype))
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn copy(&self) -> Result<LazyTensor, Error> {
        self.copied(None)
    }

    fn copied(&self, dtype: Option<DType>) -> Result<LazyTensor, Error> {
        let mut c = Recording::new(OpCode::UnderscoreToCopy);
        c.tensor(self);
        match dtype {
            Some(d) => c.dtype(d),
            None => c.none(),
        }
        (0..3).for_each(|_| c.ours());
        c.bool(false);
        c.ours();
        c.one()
    }

    /// Row-major, at the start of memory of its own where it is not already.
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn contiguous(&self) -> Result<LazyTensor, Error> {
        if self.is_contiguous() {
            return Ok(self.clone());
        }
        let mut c = Recording::new(OpCode::Clone);
        c.tensor(self);
        c.int(0);
        c.one()
    }
}

fn drawn(code: OpCode, device: &Device, sizes: &[i64], dtype: DType) -> Result<LazyTensor, Error> {
    let mut c = Recording::on(code, device);
    c.ints(sizes);
    c.dtype(dtype);
    (0..3).for_each(|_| c.ours());
    c.one()
}
