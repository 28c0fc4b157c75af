//! Methods of native tensors. Written by `cargo xtask codegen` from `ltc-ir/ops.toml`; do not edit.

use ltc_ir::{DType, OpCode, Scalar};

use super::{LazyTensor, Operand, record::Recording};
use crate::Error;

/// Operators of the table, by libtorch's names.
impl LazyTensor {
    /// `_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn adaptive_avg_pool2d(&self, output_size: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UnderscoreAdaptiveAvgPool2d);
        call.tensor(self);
        call.ints(output_size);
        call.one()
    }

    /// `_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn adaptive_avg_pool2d_backward(&self, this: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UnderscoreAdaptiveAvgPool2dBackward);
        call.tensor(self);
        call.tensor(this);
        call.one()
    }

    /// `_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn log_softmax_kernel(&self, dim: i64, half_to_float: bool) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UnderscoreLogSoftmax);
        call.tensor(self);
        call.int(dim);
        call.bool(half_to_float);
        call.one()
    }

    /// `_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn log_softmax_backward_data(&self, output: &LazyTensor, dim: i64, input_dtype: DType) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UnderscoreLogSoftmaxBackwardData);
        call.tensor(self);
        call.tensor(output);
        call.int(dim);
        call.dtype(input_dtype);
        call.one()
    }

    /// `_softmax(Tensor self, int dim, bool half_to_float) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn softmax_kernel(&self, dim: i64, half_to_float: bool) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UnderscoreSoftmax);
        call.tensor(self);
        call.int(dim);
        call.bool(half_to_float);
        call.one()
    }

    /// `_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn softmax_backward_data(&self, output: &LazyTensor, dim: i64, input_dtype: DType) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UnderscoreSoftmaxBackwardData);
        call.tensor(self);
        call.tensor(output);
        call.int(dim);
        call.dtype(input_dtype);
        call.one()
    }

    /// `abs(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn abs(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Abs);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::abs`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::abs`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn abs_(&self) -> Result<(), Error> {
        self.store(&self.abs()?)
    }

    /// `acos(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn acos(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Acos);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::acos`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::acos`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn acos_(&self) -> Result<(), Error> {
        self.store(&self.acos()?)
    }

    /// `acosh(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn acosh(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Acosh);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::acosh`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::acosh`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn acosh_(&self) -> Result<(), Error> {
        self.store(&self.acosh()?)
    }

    /// `adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn adaptive_max_pool2d(&self, output_size: &[i64]) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::AdaptiveMaxPool2d);
        call.tensor(self);
        call.ints(output_size);
        call.tuple()
    }

    /// `adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn adaptive_max_pool2d_backward(&self, this: &LazyTensor, indices: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AdaptiveMaxPool2dBackward);
        call.tensor(self);
        call.tensor(this);
        call.tensor(indices);
        call.one()
    }

    /// `adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn adaptive_max_pool3d(&self, output_size: &[i64]) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::AdaptiveMaxPool3d);
        call.tensor(self);
        call.ints(output_size);
        call.tuple()
    }

    /// `adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn adaptive_max_pool3d_backward(&self, this: &LazyTensor, indices: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AdaptiveMaxPool3dBackward);
        call.tensor(self);
        call.tensor(this);
        call.tensor(indices);
        call.one()
    }

    /// `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::add_with`].
    pub fn add<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        self.add_with(other, AddOptions::default())
    }

    /// `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn add_with<'o>(&self, other: impl Into<Operand<'o>>, options: AddOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AddTensor);
        call.tensor(self);
        call.operand(other.into());
        call.number(options.alpha);
        call.one()
    }

    /// [`LazyTensor::add`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::add`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn add_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.add(other)?)
    }

    /// `addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::addbmm_with`].
    pub fn addbmm(&self, batch1: &LazyTensor, batch2: &LazyTensor) -> Result<LazyTensor, Error> {
        self.addbmm_with(batch1, batch2, AddbmmOptions::default())
    }

    /// `addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn addbmm_with(&self, batch1: &LazyTensor, batch2: &LazyTensor, options: AddbmmOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Addbmm);
        call.tensor(self);
        call.tensor(batch1);
        call.tensor(batch2);
        call.number(options.beta);
        call.number(options.alpha);
        call.one()
    }

    /// [`LazyTensor::addbmm`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::addbmm`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn addbmm_(&self, batch1: &LazyTensor, batch2: &LazyTensor) -> Result<(), Error> {
        self.store(&self.addbmm(batch1, batch2)?)
    }

    /// `addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::addcdiv_with`].
    pub fn addcdiv<'o>(&self, tensor1: impl Into<Operand<'o>>, tensor2: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        self.addcdiv_with(tensor1, tensor2, AddcdivOptions::default())
    }

    /// `addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn addcdiv_with<'o>(&self, tensor1: impl Into<Operand<'o>>, tensor2: impl Into<Operand<'o>>, options: AddcdivOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Addcdiv);
        call.tensor(self);
        call.operand(tensor1.into());
        call.operand(tensor2.into());
        call.number(options.value);
        call.one()
    }

    /// [`LazyTensor::addcdiv`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::addcdiv`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn addcdiv_<'o>(&self, tensor1: impl Into<Operand<'o>>, tensor2: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.addcdiv(tensor1, tensor2)?)
    }

    /// `addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::addcmul_with`].
    pub fn addcmul<'o>(&self, tensor1: impl Into<Operand<'o>>, tensor2: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        self.addcmul_with(tensor1, tensor2, AddcmulOptions::default())
    }

    /// `addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn addcmul_with<'o>(&self, tensor1: impl Into<Operand<'o>>, tensor2: impl Into<Operand<'o>>, options: AddcmulOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Addcmul);
        call.tensor(self);
        call.operand(tensor1.into());
        call.operand(tensor2.into());
        call.number(options.value);
        call.one()
    }

    /// [`LazyTensor::addcmul`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::addcmul`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn addcmul_<'o>(&self, tensor1: impl Into<Operand<'o>>, tensor2: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.addcmul(tensor1, tensor2)?)
    }

    /// `addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::addmm_with`].
    pub fn addmm(&self, mat1: &LazyTensor, mat2: &LazyTensor) -> Result<LazyTensor, Error> {
        self.addmm_with(mat1, mat2, AddmmOptions::default())
    }

    /// `addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn addmm_with(&self, mat1: &LazyTensor, mat2: &LazyTensor, options: AddmmOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Addmm);
        call.tensor(self);
        call.tensor(mat1);
        call.tensor(mat2);
        call.number(options.beta);
        call.number(options.alpha);
        call.one()
    }

    /// [`LazyTensor::addmm`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::addmm`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn addmm_(&self, mat1: &LazyTensor, mat2: &LazyTensor) -> Result<(), Error> {
        self.store(&self.addmm(mat1, mat2)?)
    }

    /// `addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::addmv_with`].
    pub fn addmv(&self, mat: &LazyTensor, vec: &LazyTensor) -> Result<LazyTensor, Error> {
        self.addmv_with(mat, vec, AddmvOptions::default())
    }

    /// `addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn addmv_with(&self, mat: &LazyTensor, vec: &LazyTensor, options: AddmvOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Addmv);
        call.tensor(self);
        call.tensor(mat);
        call.tensor(vec);
        call.number(options.beta);
        call.number(options.alpha);
        call.one()
    }

    /// [`LazyTensor::addmv`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::addmv`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn addmv_(&self, mat: &LazyTensor, vec: &LazyTensor) -> Result<(), Error> {
        self.store(&self.addmv(mat, vec)?)
    }

    /// `addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::addr_with`].
    pub fn addr(&self, vec1: &LazyTensor, vec2: &LazyTensor) -> Result<LazyTensor, Error> {
        self.addr_with(vec1, vec2, AddrOptions::default())
    }

    /// `addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn addr_with(&self, vec1: &LazyTensor, vec2: &LazyTensor, options: AddrOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Addr);
        call.tensor(self);
        call.tensor(vec1);
        call.tensor(vec2);
        call.number(options.beta);
        call.number(options.alpha);
        call.one()
    }

    /// [`LazyTensor::addr`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::addr`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn addr_(&self, vec1: &LazyTensor, vec2: &LazyTensor) -> Result<(), Error> {
        self.store(&self.addr(vec1, vec2)?)
    }

    /// `alias_copy(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn alias_copy(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AliasCopy);
        call.tensor(self);
        call.one()
    }

    /// `all(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn all(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::All);
        call.tensor(self);
        call.one()
    }

    /// `all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::all_dim_with`].
    pub fn all_dim(&self, dim: i64) -> Result<LazyTensor, Error> {
        self.all_dim_with(dim, AllDimOptions::default())
    }

    /// `all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn all_dim_with(&self, dim: i64, options: AllDimOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AllDim);
        call.tensor(self);
        call.int(dim);
        call.bool(options.keepdim);
        call.one()
    }

    /// `all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::all_dims_with`].
    pub fn all_dims(&self) -> Result<LazyTensor, Error> {
        self.all_dims_with(AllDimsOptions::default())
    }

    /// `all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn all_dims_with(&self, options: AllDimsOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AllDims);
        call.tensor(self);
        match options.dim { Some(v) => call.ints(v), None => call.none() };
        call.bool(options.keepdim);
        call.one()
    }

    /// `amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::amax_with`].
    pub fn amax(&self) -> Result<LazyTensor, Error> {
        self.amax_with(AmaxOptions::default())
    }

    /// `amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn amax_with(&self, options: AmaxOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Amax);
        call.tensor(self);
        call.ints(options.dim);
        call.bool(options.keepdim);
        call.one()
    }

    /// `amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::amin_with`].
    pub fn amin(&self) -> Result<LazyTensor, Error> {
        self.amin_with(AminOptions::default())
    }

    /// `amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn amin_with(&self, options: AminOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Amin);
        call.tensor(self);
        call.ints(options.dim);
        call.bool(options.keepdim);
        call.one()
    }

    /// `aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::aminmax_with`].
    pub fn aminmax(&self) -> Result<(LazyTensor, LazyTensor), Error> {
        self.aminmax_with(AminmaxOptions::default())
    }

    /// `aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn aminmax_with(&self, options: AminmaxOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::Aminmax);
        call.tensor(self);
        match options.dim { Some(v) => call.int(v), None => call.none() };
        call.bool(options.keepdim);
        call.tuple()
    }

    /// `any(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn any(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Any);
        call.tensor(self);
        call.one()
    }

    /// `any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::any_dim_with`].
    pub fn any_dim(&self, dim: i64) -> Result<LazyTensor, Error> {
        self.any_dim_with(dim, AnyDimOptions::default())
    }

    /// `any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn any_dim_with(&self, dim: i64, options: AnyDimOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AnyDim);
        call.tensor(self);
        call.int(dim);
        call.bool(options.keepdim);
        call.one()
    }

    /// `any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::any_dims_with`].
    pub fn any_dims(&self) -> Result<LazyTensor, Error> {
        self.any_dims_with(AnyDimsOptions::default())
    }

    /// `any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn any_dims_with(&self, options: AnyDimsOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AnyDims);
        call.tensor(self);
        match options.dim { Some(v) => call.ints(v), None => call.none() };
        call.bool(options.keepdim);
        call.one()
    }

    /// `argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::argmax_with`].
    pub fn argmax(&self) -> Result<LazyTensor, Error> {
        self.argmax_with(ArgmaxOptions::default())
    }

    /// `argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn argmax_with(&self, options: ArgmaxOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Argmax);
        call.tensor(self);
        match options.dim { Some(v) => call.int(v), None => call.none() };
        call.bool(options.keepdim);
        call.one()
    }

    /// `argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::argmin_with`].
    pub fn argmin(&self) -> Result<LazyTensor, Error> {
        self.argmin_with(ArgminOptions::default())
    }

    /// `argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn argmin_with(&self, options: ArgminOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Argmin);
        call.tensor(self);
        match options.dim { Some(v) => call.int(v), None => call.none() };
        call.bool(options.keepdim);
        call.one()
    }

    /// `as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::as_strided_copy_with`].
    pub fn as_strided_copy(&self, size: &[i64], stride: &[i64]) -> Result<LazyTensor, Error> {
        self.as_strided_copy_with(size, stride, AsStridedCopyOptions::default())
    }

    /// `as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn as_strided_copy_with(&self, size: &[i64], stride: &[i64], options: AsStridedCopyOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AsStridedCopy);
        call.tensor(self);
        call.ints(size);
        call.ints(stride);
        match options.storage_offset { Some(v) => call.int(v), None => call.none() };
        call.one()
    }

    /// `as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::as_strided_scatter_with`].
    pub fn as_strided_scatter(&self, src: &LazyTensor, size: &[i64], stride: &[i64]) -> Result<LazyTensor, Error> {
        self.as_strided_scatter_with(src, size, stride, AsStridedScatterOptions::default())
    }

    /// `as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn as_strided_scatter_with(&self, src: &LazyTensor, size: &[i64], stride: &[i64], options: AsStridedScatterOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AsStridedScatter);
        call.tensor(self);
        call.tensor(src);
        call.ints(size);
        call.ints(stride);
        match options.storage_offset { Some(v) => call.int(v), None => call.none() };
        call.one()
    }

    /// `asin(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn asin(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Asin);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::asin`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::asin`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn asin_(&self) -> Result<(), Error> {
        self.store(&self.asin()?)
    }

    /// `asinh(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn asinh(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Asinh);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::asinh`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::asinh`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn asinh_(&self) -> Result<(), Error> {
        self.store(&self.asinh()?)
    }

    /// `atan(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn atan(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Atan);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::atan`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::atan`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn atan_(&self) -> Result<(), Error> {
        self.store(&self.atan()?)
    }

    /// `atan2(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn atan2<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Atan2);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::atan2`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::atan2`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn atan2_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.atan2(other)?)
    }

    /// `atanh(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn atanh(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Atanh);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::atanh`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::atanh`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn atanh_(&self) -> Result<(), Error> {
        self.store(&self.atanh()?)
    }

    /// `avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::avg_pool2d_with`].
    pub fn avg_pool2d(&self, kernel_size: &[i64]) -> Result<LazyTensor, Error> {
        self.avg_pool2d_with(kernel_size, AvgPool2dOptions::default())
    }

    /// `avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn avg_pool2d_with(&self, kernel_size: &[i64], options: AvgPool2dOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AvgPool2d);
        call.tensor(self);
        call.ints(kernel_size);
        call.ints(options.stride);
        call.ints(options.padding);
        call.bool(options.ceil_mode);
        call.bool(options.count_include_pad);
        match options.divisor_override { Some(v) => call.int(v), None => call.none() };
        call.one()
    }

    /// `avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn avg_pool2d_backward(&self, this: &LazyTensor, kernel_size: &[i64], stride: &[i64], padding: &[i64], ceil_mode: bool, count_include_pad: bool, divisor_override: Option<i64>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AvgPool2dBackward);
        call.tensor(self);
        call.tensor(this);
        call.ints(kernel_size);
        call.ints(stride);
        call.ints(padding);
        call.bool(ceil_mode);
        call.bool(count_include_pad);
        match divisor_override { Some(v) => call.int(v), None => call.none() };
        call.one()
    }

    /// `avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::avg_pool3d_with`].
    pub fn avg_pool3d(&self, kernel_size: &[i64]) -> Result<LazyTensor, Error> {
        self.avg_pool3d_with(kernel_size, AvgPool3dOptions::default())
    }

    /// `avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn avg_pool3d_with(&self, kernel_size: &[i64], options: AvgPool3dOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AvgPool3d);
        call.tensor(self);
        call.ints(kernel_size);
        call.ints(options.stride);
        call.ints(options.padding);
        call.bool(options.ceil_mode);
        call.bool(options.count_include_pad);
        match options.divisor_override { Some(v) => call.int(v), None => call.none() };
        call.one()
    }

    /// `avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn avg_pool3d_backward(&self, this: &LazyTensor, kernel_size: &[i64], stride: &[i64], padding: &[i64], ceil_mode: bool, count_include_pad: bool, divisor_override: Option<i64>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::AvgPool3dBackward);
        call.tensor(self);
        call.tensor(this);
        call.ints(kernel_size);
        call.ints(stride);
        call.ints(padding);
        call.bool(ceil_mode);
        call.bool(count_include_pad);
        match divisor_override { Some(v) => call.int(v), None => call.none() };
        call.one()
    }

    /// `baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::baddbmm_with`].
    pub fn baddbmm(&self, batch1: &LazyTensor, batch2: &LazyTensor) -> Result<LazyTensor, Error> {
        self.baddbmm_with(batch1, batch2, BaddbmmOptions::default())
    }

    /// `baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn baddbmm_with(&self, batch1: &LazyTensor, batch2: &LazyTensor, options: BaddbmmOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Baddbmm);
        call.tensor(self);
        call.tensor(batch1);
        call.tensor(batch2);
        call.number(options.beta);
        call.number(options.alpha);
        call.one()
    }

    /// [`LazyTensor::baddbmm`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::baddbmm`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn baddbmm_(&self, batch1: &LazyTensor, batch2: &LazyTensor) -> Result<(), Error> {
        self.store(&self.baddbmm(batch1, batch2)?)
    }

    /// `bernoulli(Tensor self, *, Generator? generator=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn bernoulli(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Bernoulli);
        call.tensor(self);
        call.ours();
        call.one()
    }

    /// `bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn bernoulli_p(&self, p: f64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BernoulliP);
        call.tensor(self);
        call.float(p);
        call.ours();
        call.one()
    }

    /// [`LazyTensor::bernoulli_p`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::bernoulli_p`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn bernoulli_p_(&self, p: f64) -> Result<(), Error> {
        self.store(&self.bernoulli_p(p)?)
    }

    /// `binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::binary_cross_entropy_with`].
    pub fn binary_cross_entropy(&self, target: &LazyTensor) -> Result<LazyTensor, Error> {
        self.binary_cross_entropy_with(target, BinaryCrossEntropyOptions::default())
    }

    /// `binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn binary_cross_entropy_with(&self, target: &LazyTensor, options: BinaryCrossEntropyOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BinaryCrossEntropy);
        call.tensor(self);
        call.tensor(target);
        match options.weight { Some(v) => call.tensor(v), None => call.none() };
        call.int(options.reduction);
        call.one()
    }

    /// `binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::binary_cross_entropy_backward_with`].
    pub fn binary_cross_entropy_backward(&self, this: &LazyTensor, target: &LazyTensor) -> Result<LazyTensor, Error> {
        self.binary_cross_entropy_backward_with(this, target, BinaryCrossEntropyBackwardOptions::default())
    }

    /// `binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn binary_cross_entropy_backward_with(&self, this: &LazyTensor, target: &LazyTensor, options: BinaryCrossEntropyBackwardOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BinaryCrossEntropyBackward);
        call.tensor(self);
        call.tensor(this);
        call.tensor(target);
        match options.weight { Some(v) => call.tensor(v), None => call.none() };
        call.int(options.reduction);
        call.one()
    }

    /// `binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=Mean) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::binary_cross_entropy_with_logits_with`].
    pub fn binary_cross_entropy_with_logits(&self, target: &LazyTensor) -> Result<LazyTensor, Error> {
        self.binary_cross_entropy_with_logits_with(target, BinaryCrossEntropyWithLogitsOptions::default())
    }

    /// `binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=Mean) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn binary_cross_entropy_with_logits_with(&self, target: &LazyTensor, options: BinaryCrossEntropyWithLogitsOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BinaryCrossEntropyWithLogits);
        call.tensor(self);
        call.tensor(target);
        match options.weight { Some(v) => call.tensor(v), None => call.none() };
        match options.pos_weight { Some(v) => call.tensor(v), None => call.none() };
        call.int(options.reduction);
        call.one()
    }

    /// `bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn bitwise_and<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BitwiseAndTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::bitwise_and`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::bitwise_and`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn bitwise_and_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.bitwise_and(other)?)
    }

    /// `bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn bitwise_left_shift<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BitwiseLeftShiftTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::bitwise_left_shift`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::bitwise_left_shift`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn bitwise_left_shift_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.bitwise_left_shift(other)?)
    }

    /// `bitwise_not(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn bitwise_not(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BitwiseNot);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::bitwise_not`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::bitwise_not`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn bitwise_not_(&self) -> Result<(), Error> {
        self.store(&self.bitwise_not()?)
    }

    /// `bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn bitwise_or<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BitwiseOrTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::bitwise_or`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::bitwise_or`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn bitwise_or_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.bitwise_or(other)?)
    }

    /// `bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn bitwise_right_shift<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BitwiseRightShiftTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::bitwise_right_shift`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::bitwise_right_shift`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn bitwise_right_shift_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.bitwise_right_shift(other)?)
    }

    /// `bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn bitwise_xor<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BitwiseXorTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::bitwise_xor`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::bitwise_xor`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn bitwise_xor_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.bitwise_xor(other)?)
    }

    /// `block_diag(Tensor[] tensors) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, for tensors of several devices, and for none.
    pub fn block_diag(tensors: &[&LazyTensor]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BlockDiag);
        call.tensors(tensors);
        call.one()
    }

    /// `bmm(Tensor self, Tensor mat2) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn bmm(&self, mat2: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Bmm);
        call.tensor(self);
        call.tensor(mat2);
        call.one()
    }

    /// `bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::bucketize_with`].
    pub fn bucketize(&self, boundaries: &LazyTensor) -> Result<LazyTensor, Error> {
        self.bucketize_with(boundaries, BucketizeOptions::default())
    }

    /// `bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn bucketize_with(&self, boundaries: &LazyTensor, options: BucketizeOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::BucketizeTensor);
        call.tensor(self);
        call.tensor(boundaries);
        call.bool(options.out_int32);
        call.bool(options.right);
        call.one()
    }

    /// `cat(Tensor[] tensors, int dim=0) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::cat_with`].
    pub fn cat(tensors: &[&LazyTensor]) -> Result<LazyTensor, Error> {
        Self::cat_with(tensors, CatOptions::default())
    }

    /// `cat(Tensor[] tensors, int dim=0) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, for tensors of several devices, and for none.
    pub fn cat_with(tensors: &[&LazyTensor], options: CatOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Cat);
        call.tensors(tensors);
        call.int(options.dim);
        call.one()
    }

    /// `ceil(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn ceil(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Ceil);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::ceil`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::ceil`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn ceil_(&self) -> Result<(), Error> {
        self.store(&self.ceil()?)
    }

    /// `celu(Tensor self, Scalar alpha=1.0) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::celu_with`].
    pub fn celu(&self) -> Result<LazyTensor, Error> {
        self.celu_with(CeluOptions::default())
    }

    /// `celu(Tensor self, Scalar alpha=1.0) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn celu_with(&self, options: CeluOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Celu);
        call.tensor(self);
        call.number(options.alpha);
        call.one()
    }

    /// [`LazyTensor::celu`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::celu`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn celu_(&self) -> Result<(), Error> {
        self.store(&self.celu()?)
    }

    /// `channel_shuffle(Tensor self, SymInt groups) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn channel_shuffle(&self, groups: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ChannelShuffle);
        call.tensor(self);
        call.int(groups);
        call.one()
    }

    /// `cholesky(Tensor self, bool upper=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::cholesky_with`].
    pub fn cholesky(&self) -> Result<LazyTensor, Error> {
        self.cholesky_with(CholeskyOptions::default())
    }

    /// `cholesky(Tensor self, bool upper=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn cholesky_with(&self, options: CholeskyOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Cholesky);
        call.tensor(self);
        call.bool(options.upper);
        call.one()
    }

    /// `clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::clamp_with`].
    pub fn clamp(&self) -> Result<LazyTensor, Error> {
        self.clamp_with(ClampOptions::default())
    }

    /// `clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn clamp_with(&self, options: ClampOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Clamp);
        call.tensor(self);
        match options.min { Some(v) => call.number(v), None => call.none() };
        match options.max { Some(v) => call.number(v), None => call.none() };
        call.one()
    }

    /// [`LazyTensor::clamp`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::clamp`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn clamp_(&self) -> Result<(), Error> {
        self.store(&self.clamp()?)
    }

    /// `clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::clamp_tensor_with`].
    pub fn clamp_tensor(&self) -> Result<LazyTensor, Error> {
        self.clamp_tensor_with(ClampTensorOptions::default())
    }

    /// `clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn clamp_tensor_with(&self, options: ClampTensorOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ClampTensor);
        call.tensor(self);
        match options.min { Some(v) => call.tensor(v), None => call.none() };
        match options.max { Some(v) => call.tensor(v), None => call.none() };
        call.one()
    }

    /// [`LazyTensor::clamp_tensor`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::clamp_tensor`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn clamp_tensor_(&self) -> Result<(), Error> {
        self.store(&self.clamp_tensor()?)
    }

    /// `clamp_max(Tensor self, Scalar max) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn clamp_max(&self, max: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ClampMax);
        call.tensor(self);
        call.number(max.into());
        call.one()
    }

    /// [`LazyTensor::clamp_max`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::clamp_max`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn clamp_max_(&self, max: impl Into<Scalar>) -> Result<(), Error> {
        self.store(&self.clamp_max(max)?)
    }

    /// `clamp_max.Tensor(Tensor self, Tensor max) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn clamp_max_tensor<'o>(&self, max: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ClampMaxTensor);
        call.tensor(self);
        call.operand(max.into());
        call.one()
    }

    /// [`LazyTensor::clamp_max_tensor`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::clamp_max_tensor`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn clamp_max_tensor_<'o>(&self, max: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.clamp_max_tensor(max)?)
    }

    /// `clamp_min(Tensor self, Scalar min) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn clamp_min(&self, min: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ClampMin);
        call.tensor(self);
        call.number(min.into());
        call.one()
    }

    /// [`LazyTensor::clamp_min`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::clamp_min`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn clamp_min_(&self, min: impl Into<Scalar>) -> Result<(), Error> {
        self.store(&self.clamp_min(min)?)
    }

    /// `clamp_min.Tensor(Tensor self, Tensor min) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn clamp_min_tensor<'o>(&self, min: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ClampMinTensor);
        call.tensor(self);
        call.operand(min.into());
        call.one()
    }

    /// [`LazyTensor::clamp_min_tensor`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::clamp_min_tensor`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn clamp_min_tensor_<'o>(&self, min: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.clamp_min_tensor(min)?)
    }

    /// `col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn col2im(&self, output_size: &[i64], kernel_size: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Col2im);
        call.tensor(self);
        call.ints(output_size);
        call.ints(kernel_size);
        call.ints(dilation);
        call.ints(padding);
        call.ints(stride);
        call.one()
    }

    /// `constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::constant_pad_nd_with`].
    pub fn constant_pad_nd(&self, pad: &[i64]) -> Result<LazyTensor, Error> {
        self.constant_pad_nd_with(pad, ConstantPadNdOptions::default())
    }

    /// `constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn constant_pad_nd_with(&self, pad: &[i64], options: ConstantPadNdOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ConstantPadNd);
        call.tensor(self);
        call.ints(pad);
        call.number(options.value);
        call.one()
    }

    /// `convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn convolution(&self, weight: &LazyTensor, bias: Option<&LazyTensor>, stride: &[i64], padding: &[i64], dilation: &[i64], transposed: bool, output_padding: &[i64], groups: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Convolution);
        call.tensor(self);
        call.tensor(weight);
        match bias { Some(v) => call.tensor(v), None => call.none() };
        call.ints(stride);
        call.ints(padding);
        call.ints(dilation);
        call.bool(transposed);
        call.ints(output_padding);
        call.int(groups);
        call.one()
    }

    /// `convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn convolution_backward(&self, input: &LazyTensor, weight: &LazyTensor, bias_sizes: Option<&[i64]>, stride: &[i64], padding: &[i64], dilation: &[i64], transposed: bool, output_padding: &[i64], groups: i64, output_mask: &[bool]) -> Result<Vec<Option<LazyTensor>>, Error> {
        let mut call = Recording::new(OpCode::ConvolutionBackward);
        call.tensor(self);
        call.tensor(input);
        call.tensor(weight);
        match bias_sizes { Some(v) => call.ints(v), None => call.none() };
        call.ints(stride);
        call.ints(padding);
        call.ints(dilation);
        call.bool(transposed);
        call.ints(output_padding);
        call.int(groups);
        call.bools(output_mask);
        call.masked()
    }

    /// `copysign.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn copysign<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::CopysignTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::copysign`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::copysign`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn copysign_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.copysign(other)?)
    }

    /// `cos(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn cos(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Cos);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::cos`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::cos`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn cos_(&self) -> Result<(), Error> {
        self.store(&self.cos()?)
    }

    /// `cosh(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn cosh(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Cosh);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::cosh`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::cosh`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn cosh_(&self) -> Result<(), Error> {
        self.store(&self.cosh()?)
    }

    /// `count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn count_nonzero(&self, dim: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::CountNonzeroDimIntList);
        call.tensor(self);
        call.ints(dim);
        call.one()
    }

    /// `cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn cummax(&self, dim: i64) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::Cummax);
        call.tensor(self);
        call.int(dim);
        call.tuple()
    }

    /// `cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn cummin(&self, dim: i64) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::Cummin);
        call.tensor(self);
        call.int(dim);
        call.tuple()
    }

    /// `cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::cumprod_with`].
    pub fn cumprod(&self, dim: i64) -> Result<LazyTensor, Error> {
        self.cumprod_with(dim, CumprodOptions::default())
    }

    /// `cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn cumprod_with(&self, dim: i64, options: CumprodOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Cumprod);
        call.tensor(self);
        call.int(dim);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.one()
    }

    /// [`LazyTensor::cumprod`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::cumprod`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn cumprod_(&self, dim: i64) -> Result<(), Error> {
        self.store(&self.cumprod(dim)?)
    }

    /// `cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::cumsum_with`].
    pub fn cumsum(&self, dim: i64) -> Result<LazyTensor, Error> {
        self.cumsum_with(dim, CumsumOptions::default())
    }

    /// `cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn cumsum_with(&self, dim: i64, options: CumsumOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Cumsum);
        call.tensor(self);
        call.int(dim);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.one()
    }

    /// [`LazyTensor::cumsum`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::cumsum`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn cumsum_(&self, dim: i64) -> Result<(), Error> {
        self.store(&self.cumsum(dim)?)
    }

    /// `deg2rad(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn deg2rad(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Deg2rad);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::deg2rad`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::deg2rad`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn deg2rad_(&self) -> Result<(), Error> {
        self.store(&self.deg2rad()?)
    }

    /// `detach_copy(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn detach_copy(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::DetachCopy);
        call.tensor(self);
        call.one()
    }

    /// `diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::diag_embed_with`].
    pub fn diag_embed(&self) -> Result<LazyTensor, Error> {
        self.diag_embed_with(DiagEmbedOptions::default())
    }

    /// `diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn diag_embed_with(&self, options: DiagEmbedOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::DiagEmbed);
        call.tensor(self);
        call.int(options.offset);
        call.int(options.dim1);
        call.int(options.dim2);
        call.one()
    }

    /// `diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn diagonal_backward(&self, input_sizes: &[i64], offset: i64, dim1: i64, dim2: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::DiagonalBackward);
        call.tensor(self);
        call.ints(input_sizes);
        call.int(offset);
        call.int(dim1);
        call.int(dim2);
        call.one()
    }

    /// `diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::diagonal_copy_with`].
    pub fn diagonal_copy(&self) -> Result<LazyTensor, Error> {
        self.diagonal_copy_with(DiagonalCopyOptions::default())
    }

    /// `diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn diagonal_copy_with(&self, options: DiagonalCopyOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::DiagonalCopy);
        call.tensor(self);
        call.int(options.offset);
        call.int(options.dim1);
        call.int(options.dim2);
        call.one()
    }

    /// `diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::diagonal_scatter_with`].
    pub fn diagonal_scatter(&self, src: &LazyTensor) -> Result<LazyTensor, Error> {
        self.diagonal_scatter_with(src, DiagonalScatterOptions::default())
    }

    /// `diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn diagonal_scatter_with(&self, src: &LazyTensor, options: DiagonalScatterOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::DiagonalScatter);
        call.tensor(self);
        call.tensor(src);
        call.int(options.offset);
        call.int(options.dim1);
        call.int(options.dim2);
        call.one()
    }

    /// `digamma(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn digamma(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Digamma);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::digamma`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::digamma`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn digamma_(&self) -> Result<(), Error> {
        self.store(&self.digamma()?)
    }

    /// `div.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn div<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::DivTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::div`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::div`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn div_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.div(other)?)
    }

    /// `div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn div_mode<'o>(&self, other: impl Into<Operand<'o>>, rounding_mode: Option<&str>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::DivTensorMode);
        call.tensor(self);
        call.operand(other.into());
        match rounding_mode { Some(v) => call.str(v), None => call.none() };
        call.one()
    }

    /// [`LazyTensor::div_mode`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::div_mode`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn div_mode_<'o>(&self, other: impl Into<Operand<'o>>, rounding_mode: Option<&str>) -> Result<(), Error> {
        self.store(&self.div_mode(other, rounding_mode)?)
    }

    /// `dot(Tensor self, Tensor tensor) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn dot(&self, tensor: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Dot);
        call.tensor(self);
        call.tensor(tensor);
        call.one()
    }

    /// `elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::elu_with`].
    pub fn elu(&self) -> Result<LazyTensor, Error> {
        self.elu_with(EluOptions::default())
    }

    /// `elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn elu_with(&self, options: EluOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Elu);
        call.tensor(self);
        call.number(options.alpha);
        call.number(options.scale);
        call.number(options.input_scale);
        call.one()
    }

    /// [`LazyTensor::elu`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::elu`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn elu_(&self) -> Result<(), Error> {
        self.store(&self.elu()?)
    }

    /// `elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn elu_backward<'o>(&self, alpha: impl Into<Scalar>, scale: impl Into<Scalar>, input_scale: impl Into<Scalar>, is_result: bool, self_or_result: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::EluBackward);
        call.tensor(self);
        call.number(alpha.into());
        call.number(scale.into());
        call.number(input_scale.into());
        call.bool(is_result);
        call.operand(self_or_result.into());
        call.one()
    }

    /// `embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::embedding_with`].
    pub fn embedding(&self, indices: &LazyTensor) -> Result<LazyTensor, Error> {
        self.embedding_with(indices, EmbeddingOptions::default())
    }

    /// `embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn embedding_with(&self, indices: &LazyTensor, options: EmbeddingOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Embedding);
        call.tensor(self);
        call.tensor(indices);
        call.int(options.padding_idx);
        call.bool(options.scale_grad_by_freq);
        call.bool(options.sparse);
        call.one()
    }

    /// `embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn embedding_dense_backward(&self, indices: &LazyTensor, num_weights: i64, padding_idx: i64, scale_grad_by_freq: bool) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::EmbeddingDenseBackward);
        call.tensor(self);
        call.tensor(indices);
        call.int(num_weights);
        call.int(padding_idx);
        call.bool(scale_grad_by_freq);
        call.one()
    }

    /// `empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::empty_like_with`].
    pub fn empty_like(&self) -> Result<LazyTensor, Error> {
        self.empty_like_with(EmptyLikeOptions::default())
    }

    /// `empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn empty_like_with(&self, options: EmptyLikeOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::EmptyLike);
        call.tensor(self);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `eq.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn eq<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::EqTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::eq`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::eq`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn eq_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.eq(other)?)
    }

    /// `erf(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn erf(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Erf);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::erf`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::erf`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn erf_(&self) -> Result<(), Error> {
        self.store(&self.erf()?)
    }

    /// `erfc(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn erfc(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Erfc);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::erfc`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::erfc`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn erfc_(&self) -> Result<(), Error> {
        self.store(&self.erfc()?)
    }

    /// `erfinv(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn erfinv(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Erfinv);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::erfinv`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::erfinv`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn erfinv_(&self) -> Result<(), Error> {
        self.store(&self.erfinv()?)
    }

    /// `exp(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn exp(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Exp);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::exp`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::exp`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn exp_(&self) -> Result<(), Error> {
        self.store(&self.exp()?)
    }

    /// `exp2(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn exp2(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Exp2);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::exp2`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::exp2`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn exp2_(&self) -> Result<(), Error> {
        self.store(&self.exp2()?)
    }

    /// `expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::expand_copy_with`].
    pub fn expand_copy(&self, size: &[i64]) -> Result<LazyTensor, Error> {
        self.expand_copy_with(size, ExpandCopyOptions::default())
    }

    /// `expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn expand_copy_with(&self, size: &[i64], options: ExpandCopyOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ExpandCopy);
        call.tensor(self);
        call.ints(size);
        call.bool(options.implicit);
        call.one()
    }

    /// `expm1(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn expm1(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Expm1);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::expm1`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::expm1`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn expm1_(&self) -> Result<(), Error> {
        self.store(&self.expm1()?)
    }

    /// `flip(Tensor self, int[] dims) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn flip(&self, dims: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Flip);
        call.tensor(self);
        call.ints(dims);
        call.one()
    }

    /// `floor(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn floor(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Floor);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::floor`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::floor`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn floor_(&self) -> Result<(), Error> {
        self.store(&self.floor()?)
    }

    /// `floor_divide(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn floor_divide<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::FloorDivide);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::floor_divide`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::floor_divide`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn floor_divide_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.floor_divide(other)?)
    }

    /// `fmax(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn fmax<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Fmax);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// `fmin(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn fmin<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Fmin);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// `fmod.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn fmod<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::FmodTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::fmod`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::fmod`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn fmod_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.fmod(other)?)
    }

    /// `frac(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn frac(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Frac);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::frac`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::frac`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn frac_(&self) -> Result<(), Error> {
        self.store(&self.frac()?)
    }

    /// `full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::full_like_with`].
    pub fn full_like(&self, fill_value: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        self.full_like_with(fill_value, FullLikeOptions::default())
    }

    /// `full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn full_like_with(&self, fill_value: impl Into<Scalar>, options: FullLikeOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::FullLike);
        call.tensor(self);
        call.number(fill_value.into());
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::gather_with`].
    pub fn gather(&self, dim: i64, index: &LazyTensor) -> Result<LazyTensor, Error> {
        self.gather_with(dim, index, GatherOptions::default())
    }

    /// `gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn gather_with(&self, dim: i64, index: &LazyTensor, options: GatherOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Gather);
        call.tensor(self);
        call.int(dim);
        call.tensor(index);
        call.bool(options.sparse_grad);
        call.one()
    }

    /// `gcd(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn gcd<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Gcd);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::gcd`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::gcd`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn gcd_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.gcd(other)?)
    }

    /// `ge.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn ge<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::GeTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::ge`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::ge`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn ge_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.ge(other)?)
    }

    /// `gelu(Tensor self, *, str approximate='none') -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::gelu_with`].
    pub fn gelu(&self) -> Result<LazyTensor, Error> {
        self.gelu_with(GeluOptions::default())
    }

    /// `gelu(Tensor self, *, str approximate='none') -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn gelu_with(&self, options: GeluOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Gelu);
        call.tensor(self);
        call.str(options.approximate);
        call.one()
    }

    /// [`LazyTensor::gelu`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::gelu`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn gelu_(&self) -> Result<(), Error> {
        self.store(&self.gelu()?)
    }

    /// `gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::gelu_backward_with`].
    pub fn gelu_backward<'o>(&self, this: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        self.gelu_backward_with(this, GeluBackwardOptions::default())
    }

    /// `gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn gelu_backward_with<'o>(&self, this: impl Into<Operand<'o>>, options: GeluBackwardOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::GeluBackward);
        call.tensor(self);
        call.operand(this.into());
        call.str(options.approximate);
        call.one()
    }

    /// `glu(Tensor self, int dim=-1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::glu_with`].
    pub fn glu(&self) -> Result<LazyTensor, Error> {
        self.glu_with(GluOptions::default())
    }

    /// `glu(Tensor self, int dim=-1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn glu_with(&self, options: GluOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Glu);
        call.tensor(self);
        call.int(options.dim);
        call.one()
    }

    /// `glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn glu_backward(&self, this: &LazyTensor, dim: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::GluBackward);
        call.tensor(self);
        call.tensor(this);
        call.int(dim);
        call.one()
    }

    /// `glu_jvp(Tensor glu, Tensor x, Tensor dx, int dim) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn glu_jvp(&self, x: &LazyTensor, dx: &LazyTensor, dim: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::GluJvp);
        call.tensor(self);
        call.tensor(x);
        call.tensor(dx);
        call.int(dim);
        call.one()
    }

    /// `grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn grid_sampler_2d(&self, grid: &LazyTensor, interpolation_mode: i64, padding_mode: i64, align_corners: bool) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::GridSampler2d);
        call.tensor(self);
        call.tensor(grid);
        call.int(interpolation_mode);
        call.int(padding_mode);
        call.bool(align_corners);
        call.one()
    }

    /// `grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn grid_sampler_2d_backward(&self, input: &LazyTensor, grid: &LazyTensor, interpolation_mode: i64, padding_mode: i64, align_corners: bool, output_mask: &[bool]) -> Result<Vec<Option<LazyTensor>>, Error> {
        let mut call = Recording::new(OpCode::GridSampler2dBackward);
        call.tensor(self);
        call.tensor(input);
        call.tensor(grid);
        call.int(interpolation_mode);
        call.int(padding_mode);
        call.bool(align_corners);
        call.bools(output_mask);
        call.masked()
    }

    /// `grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn grid_sampler_3d(&self, grid: &LazyTensor, interpolation_mode: i64, padding_mode: i64, align_corners: bool) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::GridSampler3d);
        call.tensor(self);
        call.tensor(grid);
        call.int(interpolation_mode);
        call.int(padding_mode);
        call.bool(align_corners);
        call.one()
    }

    /// `grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn grid_sampler_3d_backward(&self, input: &LazyTensor, grid: &LazyTensor, interpolation_mode: i64, padding_mode: i64, align_corners: bool, output_mask: &[bool]) -> Result<Vec<Option<LazyTensor>>, Error> {
        let mut call = Recording::new(OpCode::GridSampler3dBackward);
        call.tensor(self);
        call.tensor(input);
        call.tensor(grid);
        call.int(interpolation_mode);
        call.int(padding_mode);
        call.bool(align_corners);
        call.bools(output_mask);
        call.masked()
    }

    /// `gt.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn gt<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::GtTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::gt`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::gt`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn gt_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.gt(other)?)
    }

    /// `hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::hardshrink_with`].
    pub fn hardshrink(&self) -> Result<LazyTensor, Error> {
        self.hardshrink_with(HardshrinkOptions::default())
    }

    /// `hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn hardshrink_with(&self, options: HardshrinkOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Hardshrink);
        call.tensor(self);
        call.number(options.lambd);
        call.one()
    }

    /// `hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn hardshrink_backward<'o>(&self, this: impl Into<Operand<'o>>, lambd: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::HardshrinkBackward);
        call.tensor(self);
        call.operand(this.into());
        call.number(lambd.into());
        call.one()
    }

    /// `hardsigmoid(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn hardsigmoid(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Hardsigmoid);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::hardsigmoid`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::hardsigmoid`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn hardsigmoid_(&self) -> Result<(), Error> {
        self.store(&self.hardsigmoid()?)
    }

    /// `hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn hardsigmoid_backward<'o>(&self, this: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::HardsigmoidBackward);
        call.tensor(self);
        call.operand(this.into());
        call.one()
    }

    /// `hardswish(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn hardswish(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Hardswish);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::hardswish`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::hardswish`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn hardswish_(&self) -> Result<(), Error> {
        self.store(&self.hardswish()?)
    }

    /// `hardswish_backward(Tensor grad_output, Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn hardswish_backward<'o>(&self, this: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::HardswishBackward);
        call.tensor(self);
        call.operand(this.into());
        call.one()
    }

    /// `hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::hardtanh_with`].
    pub fn hardtanh(&self) -> Result<LazyTensor, Error> {
        self.hardtanh_with(HardtanhOptions::default())
    }

    /// `hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn hardtanh_with(&self, options: HardtanhOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Hardtanh);
        call.tensor(self);
        call.number(options.min_val);
        call.number(options.max_val);
        call.one()
    }

    /// [`LazyTensor::hardtanh`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::hardtanh`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn hardtanh_(&self) -> Result<(), Error> {
        self.store(&self.hardtanh()?)
    }

    /// `hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn hardtanh_backward<'o>(&self, this: impl Into<Operand<'o>>, min_val: impl Into<Scalar>, max_val: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::HardtanhBackward);
        call.tensor(self);
        call.operand(this.into());
        call.number(min_val.into());
        call.number(max_val.into());
        call.one()
    }

    /// `heaviside(Tensor self, Tensor values) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn heaviside<'o>(&self, values: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Heaviside);
        call.tensor(self);
        call.operand(values.into());
        call.one()
    }

    /// [`LazyTensor::heaviside`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::heaviside`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn heaviside_<'o>(&self, values: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.heaviside(values)?)
    }

    /// `histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::histc_with`].
    pub fn histc(&self) -> Result<LazyTensor, Error> {
        self.histc_with(HistcOptions::default())
    }

    /// `histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn histc_with(&self, options: HistcOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Histc);
        call.tensor(self);
        call.int(options.bins);
        call.number(options.min);
        call.number(options.max);
        call.one()
    }

    /// `huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::huber_loss_with`].
    pub fn huber_loss(&self, target: &LazyTensor) -> Result<LazyTensor, Error> {
        self.huber_loss_with(target, HuberLossOptions::default())
    }

    /// `huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn huber_loss_with(&self, target: &LazyTensor, options: HuberLossOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::HuberLoss);
        call.tensor(self);
        call.tensor(target);
        call.int(options.reduction);
        call.float(options.delta);
        call.one()
    }

    /// `huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn huber_loss_backward(&self, this: &LazyTensor, target: &LazyTensor, reduction: i64, delta: f64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::HuberLossBackward);
        call.tensor(self);
        call.tensor(this);
        call.tensor(target);
        call.int(reduction);
        call.float(delta);
        call.one()
    }

    /// `hypot(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn hypot<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Hypot);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::hypot`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::hypot`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn hypot_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.hypot(other)?)
    }

    /// `i0(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn i0(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::I0);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::i0`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::i0`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn i0_(&self) -> Result<(), Error> {
        self.store(&self.i0()?)
    }

    /// `im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn im2col(&self, kernel_size: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Im2col);
        call.tensor(self);
        call.ints(kernel_size);
        call.ints(dilation);
        call.ints(padding);
        call.ints(stride);
        call.one()
    }

    /// `index.Tensor(Tensor self, Tensor?[] indices) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn index(&self, indices: &[Option<&LazyTensor>]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::IndexTensor);
        call.tensor(self);
        call.optional_tensors(indices);
        call.one()
    }

    /// `index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::index_add_with`].
    pub fn index_add(&self, dim: i64, index: &LazyTensor, source: &LazyTensor) -> Result<LazyTensor, Error> {
        self.index_add_with(dim, index, source, IndexAddOptions::default())
    }

    /// `index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn index_add_with(&self, dim: i64, index: &LazyTensor, source: &LazyTensor, options: IndexAddOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::IndexAdd);
        call.tensor(self);
        call.int(dim);
        call.tensor(index);
        call.tensor(source);
        call.number(options.alpha);
        call.one()
    }

    /// [`LazyTensor::index_add`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::index_add`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn index_add_(&self, dim: i64, index: &LazyTensor, source: &LazyTensor) -> Result<(), Error> {
        self.store(&self.index_add(dim, index, source)?)
    }

    /// `index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn index_copy(&self, dim: i64, index: &LazyTensor, source: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::IndexCopy);
        call.tensor(self);
        call.int(dim);
        call.tensor(index);
        call.tensor(source);
        call.one()
    }

    /// [`LazyTensor::index_copy`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::index_copy`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn index_copy_(&self, dim: i64, index: &LazyTensor, source: &LazyTensor) -> Result<(), Error> {
        self.store(&self.index_copy(dim, index, source)?)
    }

    /// `index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn index_fill(&self, dim: i64, index: &LazyTensor, value: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::IndexFillIntScalar);
        call.tensor(self);
        call.int(dim);
        call.tensor(index);
        call.number(value.into());
        call.one()
    }

    /// [`LazyTensor::index_fill`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::index_fill`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn index_fill_(&self, dim: i64, index: &LazyTensor, value: impl Into<Scalar>) -> Result<(), Error> {
        self.store(&self.index_fill(dim, index, value)?)
    }

    /// `index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::index_put_with`].
    pub fn index_put(&self, indices: &[Option<&LazyTensor>], values: &LazyTensor) -> Result<LazyTensor, Error> {
        self.index_put_with(indices, values, IndexPutOptions::default())
    }

    /// `index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn index_put_with(&self, indices: &[Option<&LazyTensor>], values: &LazyTensor, options: IndexPutOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::IndexPut);
        call.tensor(self);
        call.optional_tensors(indices);
        call.tensor(values);
        call.bool(options.accumulate);
        call.one()
    }

    /// [`LazyTensor::index_put`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::index_put`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn index_put_(&self, indices: &[Option<&LazyTensor>], values: &LazyTensor) -> Result<(), Error> {
        self.store(&self.index_put(indices, values)?)
    }

    /// `index_select(Tensor self, int dim, Tensor index) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn index_select(&self, dim: i64, index: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::IndexSelect);
        call.tensor(self);
        call.int(dim);
        call.tensor(index);
        call.one()
    }

    /// `inverse(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn inverse(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Inverse);
        call.tensor(self);
        call.one()
    }

    /// `isinf(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn isinf(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Isinf);
        call.tensor(self);
        call.one()
    }

    /// `isnan(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn isnan(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Isnan);
        call.tensor(self);
        call.one()
    }

    /// `isneginf(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn isneginf(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Isneginf);
        call.tensor(self);
        call.one()
    }

    /// `isposinf(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn isposinf(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Isposinf);
        call.tensor(self);
        call.one()
    }

    /// `kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::kthvalue_with`].
    pub fn kthvalue(&self, k: i64) -> Result<(LazyTensor, LazyTensor), Error> {
        self.kthvalue_with(k, KthvalueOptions::default())
    }

    /// `kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn kthvalue_with(&self, k: i64, options: KthvalueOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::Kthvalue);
        call.tensor(self);
        call.int(k);
        call.int(options.dim);
        call.bool(options.keepdim);
        call.tuple()
    }

    /// `lcm(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn lcm<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Lcm);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::lcm`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::lcm`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn lcm_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.lcm(other)?)
    }

    /// `le.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn le<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LeTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::le`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::le`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn le_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.le(other)?)
    }

    /// `leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::leaky_relu_with`].
    pub fn leaky_relu(&self) -> Result<LazyTensor, Error> {
        self.leaky_relu_with(LeakyReluOptions::default())
    }

    /// `leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn leaky_relu_with(&self, options: LeakyReluOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LeakyRelu);
        call.tensor(self);
        call.number(options.negative_slope);
        call.one()
    }

    /// [`LazyTensor::leaky_relu`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::leaky_relu`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn leaky_relu_(&self) -> Result<(), Error> {
        self.store(&self.leaky_relu()?)
    }

    /// `leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn leaky_relu_backward<'o>(&self, this: impl Into<Operand<'o>>, negative_slope: impl Into<Scalar>, self_is_result: bool) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LeakyReluBackward);
        call.tensor(self);
        call.operand(this.into());
        call.number(negative_slope.into());
        call.bool(self_is_result);
        call.one()
    }

    /// `lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn lerp_scalar<'o>(&self, end: impl Into<Operand<'o>>, weight: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LerpScalar);
        call.tensor(self);
        call.operand(end.into());
        call.number(weight.into());
        call.one()
    }

    /// [`LazyTensor::lerp_scalar`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::lerp_scalar`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn lerp_scalar_<'o>(&self, end: impl Into<Operand<'o>>, weight: impl Into<Scalar>) -> Result<(), Error> {
        self.store(&self.lerp_scalar(end, weight)?)
    }

    /// `lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn lerp<'o>(&self, end: impl Into<Operand<'o>>, weight: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LerpTensor);
        call.tensor(self);
        call.operand(end.into());
        call.operand(weight.into());
        call.one()
    }

    /// [`LazyTensor::lerp`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::lerp`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn lerp_<'o>(&self, end: impl Into<Operand<'o>>, weight: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.lerp(end, weight)?)
    }

    /// `lgamma(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn lgamma(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Lgamma);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::lgamma`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::lgamma`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn lgamma_(&self) -> Result<(), Error> {
        self.store(&self.lgamma()?)
    }

    /// `linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::linalg_cholesky_ex_with`].
    pub fn linalg_cholesky_ex(&self) -> Result<(LazyTensor, LazyTensor), Error> {
        self.linalg_cholesky_ex_with(LinalgCholeskyExOptions::default())
    }

    /// `linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn linalg_cholesky_ex_with(&self, options: LinalgCholeskyExOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::LinalgCholeskyEx);
        call.tensor(self);
        call.bool(options.upper);
        call.bool(options.check_errors);
        call.tuple()
    }

    /// `linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::linalg_cross_with`].
    pub fn linalg_cross(&self, other: &LazyTensor) -> Result<LazyTensor, Error> {
        self.linalg_cross_with(other, LinalgCrossOptions::default())
    }

    /// `linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn linalg_cross_with(&self, other: &LazyTensor, options: LinalgCrossOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LinalgCross);
        call.tensor(self);
        call.tensor(other);
        call.int(options.dim);
        call.one()
    }

    /// `linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::linalg_inv_ex_with`].
    pub fn linalg_inv_ex(&self) -> Result<(LazyTensor, LazyTensor), Error> {
        self.linalg_inv_ex_with(LinalgInvExOptions::default())
    }

    /// `linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn linalg_inv_ex_with(&self, options: LinalgInvExOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::LinalgInvEx);
        call.tensor(self);
        call.bool(options.check_errors);
        call.tuple()
    }

    /// `linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::linalg_lu_factor_ex_with`].
    pub fn linalg_lu_factor_ex(&self) -> Result<(LazyTensor, LazyTensor, LazyTensor), Error> {
        self.linalg_lu_factor_ex_with(LinalgLuFactorExOptions::default())
    }

    /// `linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn linalg_lu_factor_ex_with(&self, options: LinalgLuFactorExOptions) -> Result<(LazyTensor, LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::LinalgLuFactorEx);
        call.tensor(self);
        call.bool(options.pivot);
        call.bool(options.check_errors);
        call.tuple()
    }

    /// `linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::linalg_pinv_with`].
    pub fn linalg_pinv(&self) -> Result<LazyTensor, Error> {
        self.linalg_pinv_with(LinalgPinvOptions::default())
    }

    /// `linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn linalg_pinv_with(&self, options: LinalgPinvOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LinalgPinvAtolRtolTensor);
        call.tensor(self);
        match options.atol { Some(v) => call.tensor(v), None => call.none() };
        match options.rtol { Some(v) => call.tensor(v), None => call.none() };
        call.bool(options.hermitian);
        call.one()
    }

    /// `linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::linalg_qr_with`].
    pub fn linalg_qr(&self) -> Result<(LazyTensor, LazyTensor), Error> {
        self.linalg_qr_with(LinalgQrOptions::default())
    }

    /// `linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn linalg_qr_with(&self, options: LinalgQrOptions<'_>) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::LinalgQr);
        call.tensor(self);
        call.str(options.mode);
        call.tuple()
    }

    /// `linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::linalg_solve_triangular_with`].
    pub fn linalg_solve_triangular(&self, b: &LazyTensor, upper: bool) -> Result<LazyTensor, Error> {
        self.linalg_solve_triangular_with(b, upper, LinalgSolveTriangularOptions::default())
    }

    /// `linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn linalg_solve_triangular_with(&self, b: &LazyTensor, upper: bool, options: LinalgSolveTriangularOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LinalgSolveTriangular);
        call.tensor(self);
        call.tensor(b);
        call.bool(upper);
        call.bool(options.left);
        call.bool(options.unitriangular);
        call.one()
    }

    /// `linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::linalg_vector_norm_with`].
    pub fn linalg_vector_norm(&self) -> Result<LazyTensor, Error> {
        self.linalg_vector_norm_with(LinalgVectorNormOptions::default())
    }

    /// `linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn linalg_vector_norm_with(&self, options: LinalgVectorNormOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LinalgVectorNorm);
        call.tensor(self);
        call.number(options.ord);
        match options.dim { Some(v) => call.ints(v), None => call.none() };
        call.bool(options.keepdim);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.one()
    }

    /// `log(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn log(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Log);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::log`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::log`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn log_(&self) -> Result<(), Error> {
        self.store(&self.log()?)
    }

    /// `log10(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn log10(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Log10);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::log10`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::log10`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn log10_(&self) -> Result<(), Error> {
        self.store(&self.log10()?)
    }

    /// `log1p(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn log1p(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Log1p);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::log1p`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::log1p`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn log1p_(&self) -> Result<(), Error> {
        self.store(&self.log1p()?)
    }

    /// `log2(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn log2(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Log2);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::log2`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::log2`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn log2_(&self) -> Result<(), Error> {
        self.store(&self.log2()?)
    }

    /// `log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn log_sigmoid_forward(&self) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::LogSigmoidForward);
        call.tensor(self);
        call.tuple()
    }

    /// `logaddexp(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn logaddexp<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Logaddexp);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// `logaddexp2(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn logaddexp2<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Logaddexp2);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// `logcumsumexp(Tensor self, int dim) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn logcumsumexp(&self, dim: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Logcumsumexp);
        call.tensor(self);
        call.int(dim);
        call.one()
    }

    /// `logdet(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn logdet(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Logdet);
        call.tensor(self);
        call.one()
    }

    /// `logical_and(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn logical_and<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LogicalAnd);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::logical_and`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::logical_and`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn logical_and_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.logical_and(other)?)
    }

    /// `logical_not(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn logical_not(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LogicalNot);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::logical_not`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::logical_not`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn logical_not_(&self) -> Result<(), Error> {
        self.store(&self.logical_not()?)
    }

    /// `logical_or(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn logical_or<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LogicalOr);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::logical_or`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::logical_or`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn logical_or_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.logical_or(other)?)
    }

    /// `logical_xor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn logical_xor<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LogicalXor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::logical_xor`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::logical_xor`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn logical_xor_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.logical_xor(other)?)
    }

    /// `logit(Tensor self, float? eps=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::logit_with`].
    pub fn logit(&self) -> Result<LazyTensor, Error> {
        self.logit_with(LogitOptions::default())
    }

    /// `logit(Tensor self, float? eps=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn logit_with(&self, options: LogitOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Logit);
        call.tensor(self);
        match options.eps { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// [`LazyTensor::logit`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::logit`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn logit_(&self) -> Result<(), Error> {
        self.store(&self.logit()?)
    }

    /// `logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::logit_backward_with`].
    pub fn logit_backward<'o>(&self, this: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        self.logit_backward_with(this, LogitBackwardOptions::default())
    }

    /// `logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn logit_backward_with<'o>(&self, this: impl Into<Operand<'o>>, options: LogitBackwardOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LogitBackward);
        call.tensor(self);
        call.operand(this.into());
        match options.eps { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::logsumexp_with`].
    pub fn logsumexp(&self, dim: &[i64]) -> Result<LazyTensor, Error> {
        self.logsumexp_with(dim, LogsumexpOptions::default())
    }

    /// `logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn logsumexp_with(&self, dim: &[i64], options: LogsumexpOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Logsumexp);
        call.tensor(self);
        call.ints(dim);
        call.bool(options.keepdim);
        call.one()
    }

    /// `lt.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn lt<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::LtTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::lt`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::lt`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn lt_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.lt(other)?)
    }

    /// `masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn masked_fill<'o>(&self, mask: impl Into<Operand<'o>>, value: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::MaskedFillScalar);
        call.tensor(self);
        call.operand(mask.into());
        call.number(value.into());
        call.one()
    }

    /// [`LazyTensor::masked_fill`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::masked_fill`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn masked_fill_<'o>(&self, mask: impl Into<Operand<'o>>, value: impl Into<Scalar>) -> Result<(), Error> {
        self.store(&self.masked_fill(mask, value)?)
    }

    /// `masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn masked_fill_tensor<'o>(&self, mask: impl Into<Operand<'o>>, value: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::MaskedFillTensor);
        call.tensor(self);
        call.operand(mask.into());
        call.operand(value.into());
        call.one()
    }

    /// [`LazyTensor::masked_fill_tensor`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::masked_fill_tensor`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn masked_fill_tensor_<'o>(&self, mask: impl Into<Operand<'o>>, value: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.masked_fill_tensor(mask, value)?)
    }

    /// `masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn masked_scatter(&self, mask: &LazyTensor, source: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::MaskedScatter);
        call.tensor(self);
        call.tensor(mask);
        call.tensor(source);
        call.one()
    }

    /// [`LazyTensor::masked_scatter`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::masked_scatter`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn masked_scatter_(&self, mask: &LazyTensor, source: &LazyTensor) -> Result<(), Error> {
        self.store(&self.masked_scatter(mask, source)?)
    }

    /// `max(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn max(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Max);
        call.tensor(self);
        call.one()
    }

    /// `max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::max_dim_with`].
    pub fn max_dim(&self, dim: i64) -> Result<(LazyTensor, LazyTensor), Error> {
        self.max_dim_with(dim, MaxDimOptions::default())
    }

    /// `max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn max_dim_with(&self, dim: i64, options: MaxDimOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::MaxDim);
        call.tensor(self);
        call.int(dim);
        call.bool(options.keepdim);
        call.tuple()
    }

    /// `max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::max_pool2d_with_indices_with`].
    pub fn max_pool2d_with_indices(&self, kernel_size: &[i64]) -> Result<(LazyTensor, LazyTensor), Error> {
        self.max_pool2d_with_indices_with(kernel_size, MaxPool2dWithIndicesOptions::default())
    }

    /// `max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn max_pool2d_with_indices_with(&self, kernel_size: &[i64], options: MaxPool2dWithIndicesOptions<'_>) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::MaxPool2dWithIndices);
        call.tensor(self);
        call.ints(kernel_size);
        call.ints(options.stride);
        call.ints(options.padding);
        call.ints(options.dilation);
        call.bool(options.ceil_mode);
        call.tuple()
    }

    /// `max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn max_pool2d_with_indices_backward(&self, this: &LazyTensor, kernel_size: &[i64], stride: &[i64], padding: &[i64], dilation: &[i64], ceil_mode: bool, indices: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::MaxPool2dWithIndicesBackward);
        call.tensor(self);
        call.tensor(this);
        call.ints(kernel_size);
        call.ints(stride);
        call.ints(padding);
        call.ints(dilation);
        call.bool(ceil_mode);
        call.tensor(indices);
        call.one()
    }

    /// `max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::max_pool3d_with`].
    pub fn max_pool3d(&self, kernel_size: &[i64]) -> Result<LazyTensor, Error> {
        self.max_pool3d_with(kernel_size, MaxPool3dOptions::default())
    }

    /// `max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn max_pool3d_with(&self, kernel_size: &[i64], options: MaxPool3dOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::MaxPool3d);
        call.tensor(self);
        call.ints(kernel_size);
        call.ints(options.stride);
        call.ints(options.padding);
        call.ints(options.dilation);
        call.bool(options.ceil_mode);
        call.one()
    }

    /// `max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::max_pool3d_with_indices_with`].
    pub fn max_pool3d_with_indices(&self, kernel_size: &[i64]) -> Result<(LazyTensor, LazyTensor), Error> {
        self.max_pool3d_with_indices_with(kernel_size, MaxPool3dWithIndicesOptions::default())
    }

    /// `max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn max_pool3d_with_indices_with(&self, kernel_size: &[i64], options: MaxPool3dWithIndicesOptions<'_>) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::MaxPool3dWithIndices);
        call.tensor(self);
        call.ints(kernel_size);
        call.ints(options.stride);
        call.ints(options.padding);
        call.ints(options.dilation);
        call.bool(options.ceil_mode);
        call.tuple()
    }

    /// `max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn max_pool3d_with_indices_backward(&self, this: &LazyTensor, kernel_size: &[i64], stride: &[i64], padding: &[i64], dilation: &[i64], ceil_mode: bool, indices: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::MaxPool3dWithIndicesBackward);
        call.tensor(self);
        call.tensor(this);
        call.ints(kernel_size);
        call.ints(stride);
        call.ints(padding);
        call.ints(dilation);
        call.bool(ceil_mode);
        call.tensor(indices);
        call.one()
    }

    /// `maximum(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn maximum<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Maximum);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// `mean(Tensor self, *, ScalarType? dtype=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::mean_with`].
    pub fn mean(&self) -> Result<LazyTensor, Error> {
        self.mean_with(MeanOptions::default())
    }

    /// `mean(Tensor self, *, ScalarType? dtype=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn mean_with(&self, options: MeanOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Mean);
        call.tensor(self);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.one()
    }

    /// `mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::mean_dim_with`].
    pub fn mean_dim(&self, dim: Option<&[i64]>) -> Result<LazyTensor, Error> {
        self.mean_dim_with(dim, MeanDimOptions::default())
    }

    /// `mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn mean_dim_with(&self, dim: Option<&[i64]>, options: MeanDimOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::MeanDim);
        call.tensor(self);
        match dim { Some(v) => call.ints(v), None => call.none() };
        call.bool(options.keepdim);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.one()
    }

    /// `median(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn median(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Median);
        call.tensor(self);
        call.one()
    }

    /// `median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::median_dim_with`].
    pub fn median_dim(&self, dim: i64) -> Result<(LazyTensor, LazyTensor), Error> {
        self.median_dim_with(dim, MedianDimOptions::default())
    }

    /// `median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn median_dim_with(&self, dim: i64, options: MedianDimOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::MedianDim);
        call.tensor(self);
        call.int(dim);
        call.bool(options.keepdim);
        call.tuple()
    }

    /// `min(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn min(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Min);
        call.tensor(self);
        call.one()
    }

    /// `min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::min_dim_with`].
    pub fn min_dim(&self, dim: i64) -> Result<(LazyTensor, LazyTensor), Error> {
        self.min_dim_with(dim, MinDimOptions::default())
    }

    /// `min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn min_dim_with(&self, dim: i64, options: MinDimOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::MinDim);
        call.tensor(self);
        call.int(dim);
        call.bool(options.keepdim);
        call.tuple()
    }

    /// `minimum(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn minimum<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Minimum);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// `mish(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn mish(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Mish);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::mish`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::mish`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn mish_(&self) -> Result<(), Error> {
        self.store(&self.mish()?)
    }

    /// `mm(Tensor self, Tensor mat2) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn mm(&self, mat2: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Mm);
        call.tensor(self);
        call.tensor(mat2);
        call.one()
    }

    /// `mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::mode_with`].
    pub fn mode(&self) -> Result<(LazyTensor, LazyTensor), Error> {
        self.mode_with(ModeOptions::default())
    }

    /// `mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn mode_with(&self, options: ModeOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::Mode);
        call.tensor(self);
        call.int(options.dim);
        call.bool(options.keepdim);
        call.tuple()
    }

    /// `mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::mse_loss_with`].
    pub fn mse_loss(&self, target: &LazyTensor) -> Result<LazyTensor, Error> {
        self.mse_loss_with(target, MseLossOptions::default())
    }

    /// `mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn mse_loss_with(&self, target: &LazyTensor, options: MseLossOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::MseLoss);
        call.tensor(self);
        call.tensor(target);
        call.int(options.reduction);
        call.one()
    }

    /// `mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn mse_loss_backward(&self, this: &LazyTensor, target: &LazyTensor, reduction: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::MseLossBackward);
        call.tensor(self);
        call.tensor(this);
        call.tensor(target);
        call.int(reduction);
        call.one()
    }

    /// `mul.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn mul<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::MulTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::mul`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::mul`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn mul_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.mul(other)?)
    }

    /// `multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::multinomial_with`].
    pub fn multinomial(&self, num_samples: i64) -> Result<LazyTensor, Error> {
        self.multinomial_with(num_samples, MultinomialOptions::default())
    }

    /// `multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn multinomial_with(&self, num_samples: i64, options: MultinomialOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Multinomial);
        call.tensor(self);
        call.int(num_samples);
        call.bool(options.replacement);
        call.ours();
        call.one()
    }

    /// `mv(Tensor self, Tensor vec) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn mv(&self, vec: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Mv);
        call.tensor(self);
        call.tensor(vec);
        call.one()
    }

    /// `nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::nansum_with`].
    pub fn nansum(&self) -> Result<LazyTensor, Error> {
        self.nansum_with(NansumOptions::default())
    }

    /// `nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn nansum_with(&self, options: NansumOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Nansum);
        call.tensor(self);
        match options.dim { Some(v) => call.ints(v), None => call.none() };
        call.bool(options.keepdim);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.one()
    }

    /// `narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn narrow_copy(&self, dim: i64, start: i64, length: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NarrowCopy);
        call.tensor(self);
        call.int(dim);
        call.int(start);
        call.int(length);
        call.one()
    }

    /// `native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn native_batch_norm(&self, weight: Option<&LazyTensor>, bias: Option<&LazyTensor>, running_mean: Option<&LazyTensor>, running_var: Option<&LazyTensor>, training: bool, momentum: f64, eps: f64) -> Result<(LazyTensor, LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::NativeBatchNorm);
        call.tensor(self);
        match weight { Some(v) => call.tensor(v), None => call.none() };
        match bias { Some(v) => call.tensor(v), None => call.none() };
        match running_mean { Some(v) => call.tensor(v), None => call.none() };
        match running_var { Some(v) => call.tensor(v), None => call.none() };
        call.bool(training);
        call.float(momentum);
        call.float(eps);
        call.tuple()
    }

    /// `native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn native_batch_norm_backward(&self, input: &LazyTensor, weight: Option<&LazyTensor>, running_mean: Option<&LazyTensor>, running_var: Option<&LazyTensor>, save_mean: Option<&LazyTensor>, save_invstd: Option<&LazyTensor>, train: bool, eps: f64, output_mask: &[bool]) -> Result<Vec<Option<LazyTensor>>, Error> {
        let mut call = Recording::new(OpCode::NativeBatchNormBackward);
        call.tensor(self);
        call.tensor(input);
        match weight { Some(v) => call.tensor(v), None => call.none() };
        match running_mean { Some(v) => call.tensor(v), None => call.none() };
        match running_var { Some(v) => call.tensor(v), None => call.none() };
        match save_mean { Some(v) => call.tensor(v), None => call.none() };
        match save_invstd { Some(v) => call.tensor(v), None => call.none() };
        call.bool(train);
        call.float(eps);
        call.bools(output_mask);
        call.masked()
    }

    /// `native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn native_dropout(&self, p: f64, train: Option<bool>) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::NativeDropout);
        call.tensor(self);
        call.float(p);
        match train { Some(v) => call.bool(v), None => call.none() };
        call.tuple()
    }

    /// `native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn native_dropout_backward<'o>(&self, mask: impl Into<Operand<'o>>, scale: f64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NativeDropoutBackward);
        call.tensor(self);
        call.operand(mask.into());
        call.float(scale);
        call.one()
    }

    /// `native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn native_group_norm(&self, weight: Option<&LazyTensor>, bias: Option<&LazyTensor>, n: i64, c: i64, hxw: i64, group: i64, eps: f64) -> Result<(LazyTensor, LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::NativeGroupNorm);
        call.tensor(self);
        match weight { Some(v) => call.tensor(v), None => call.none() };
        match bias { Some(v) => call.tensor(v), None => call.none() };
        call.int(n);
        call.int(c);
        call.int(hxw);
        call.int(group);
        call.float(eps);
        call.tuple()
    }

    /// `native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn native_group_norm_backward(&self, input: &LazyTensor, mean: &LazyTensor, rstd: &LazyTensor, weight: Option<&LazyTensor>, n: i64, c: i64, hxw: i64, group: i64, output_mask: &[bool]) -> Result<Vec<Option<LazyTensor>>, Error> {
        let mut call = Recording::new(OpCode::NativeGroupNormBackward);
        call.tensor(self);
        call.tensor(input);
        call.tensor(mean);
        call.tensor(rstd);
        match weight { Some(v) => call.tensor(v), None => call.none() };
        call.int(n);
        call.int(c);
        call.int(hxw);
        call.int(group);
        call.bools(output_mask);
        call.masked()
    }

    /// `native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn native_layer_norm(&self, normalized_shape: &[i64], weight: Option<&LazyTensor>, bias: Option<&LazyTensor>, eps: f64) -> Result<(LazyTensor, LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::NativeLayerNorm);
        call.tensor(self);
        call.ints(normalized_shape);
        match weight { Some(v) => call.tensor(v), None => call.none() };
        match bias { Some(v) => call.tensor(v), None => call.none() };
        call.float(eps);
        call.tuple()
    }

    /// `native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn native_layer_norm_backward(&self, input: &LazyTensor, normalized_shape: &[i64], mean: &LazyTensor, rstd: &LazyTensor, weight: Option<&LazyTensor>, bias: Option<&LazyTensor>, output_mask: &[bool]) -> Result<Vec<Option<LazyTensor>>, Error> {
        let mut call = Recording::new(OpCode::NativeLayerNormBackward);
        call.tensor(self);
        call.tensor(input);
        call.ints(normalized_shape);
        call.tensor(mean);
        call.tensor(rstd);
        match weight { Some(v) => call.tensor(v), None => call.none() };
        match bias { Some(v) => call.tensor(v), None => call.none() };
        call.bools(output_mask);
        call.masked()
    }

    /// `ne.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn ne<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NeTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::ne`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::ne`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn ne_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.ne(other)?)
    }

    /// `neg(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn neg(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Neg);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::neg`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::neg`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn neg_(&self) -> Result<(), Error> {
        self.store(&self.neg()?)
    }

    /// `new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::new_empty_with`].
    pub fn new_empty(&self, size: &[i64]) -> Result<LazyTensor, Error> {
        self.new_empty_with(size, NewEmptyOptions::default())
    }

    /// `new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn new_empty_with(&self, size: &[i64], options: NewEmptyOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NewEmpty);
        call.tensor(self);
        call.ints(size);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::new_empty_strided_with`].
    pub fn new_empty_strided(&self, size: &[i64], stride: &[i64]) -> Result<LazyTensor, Error> {
        self.new_empty_strided_with(size, stride, NewEmptyStridedOptions::default())
    }

    /// `new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn new_empty_strided_with(&self, size: &[i64], stride: &[i64], options: NewEmptyStridedOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NewEmptyStrided);
        call.tensor(self);
        call.ints(size);
        call.ints(stride);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::new_full_with`].
    pub fn new_full(&self, size: &[i64], fill_value: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        self.new_full_with(size, fill_value, NewFullOptions::default())
    }

    /// `new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn new_full_with(&self, size: &[i64], fill_value: impl Into<Scalar>, options: NewFullOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NewFull);
        call.tensor(self);
        call.ints(size);
        call.number(fill_value.into());
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::new_ones_with`].
    pub fn new_ones(&self, size: &[i64]) -> Result<LazyTensor, Error> {
        self.new_ones_with(size, NewOnesOptions::default())
    }

    /// `new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn new_ones_with(&self, size: &[i64], options: NewOnesOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NewOnes);
        call.tensor(self);
        call.ints(size);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::new_zeros_with`].
    pub fn new_zeros(&self, size: &[i64]) -> Result<LazyTensor, Error> {
        self.new_zeros_with(size, NewZerosOptions::default())
    }

    /// `new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn new_zeros_with(&self, size: &[i64], options: NewZerosOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NewZeros);
        call.tensor(self);
        call.ints(size);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `nextafter(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn nextafter<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Nextafter);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::nextafter`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::nextafter`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn nextafter_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.nextafter(other)?)
    }

    /// `nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn nll_loss2d_backward(&self, this: &LazyTensor, target: &LazyTensor, weight: Option<&LazyTensor>, reduction: i64, ignore_index: i64, total_weight: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NllLoss2dBackward);
        call.tensor(self);
        call.tensor(this);
        call.tensor(target);
        match weight { Some(v) => call.tensor(v), None => call.none() };
        call.int(reduction);
        call.int(ignore_index);
        call.tensor(total_weight);
        call.one()
    }

    /// `nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn nll_loss2d_forward(&self, target: &LazyTensor, weight: Option<&LazyTensor>, reduction: i64, ignore_index: i64) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::NllLoss2dForward);
        call.tensor(self);
        call.tensor(target);
        match weight { Some(v) => call.tensor(v), None => call.none() };
        call.int(reduction);
        call.int(ignore_index);
        call.tuple()
    }

    /// `nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn nll_loss_backward(&self, this: &LazyTensor, target: &LazyTensor, weight: Option<&LazyTensor>, reduction: i64, ignore_index: i64, total_weight: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NllLossBackward);
        call.tensor(self);
        call.tensor(this);
        call.tensor(target);
        match weight { Some(v) => call.tensor(v), None => call.none() };
        call.int(reduction);
        call.int(ignore_index);
        call.tensor(total_weight);
        call.one()
    }

    /// `nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn nll_loss_forward(&self, target: &LazyTensor, weight: Option<&LazyTensor>, reduction: i64, ignore_index: i64) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::NllLossForward);
        call.tensor(self);
        call.tensor(target);
        match weight { Some(v) => call.tensor(v), None => call.none() };
        call.int(reduction);
        call.int(ignore_index);
        call.tuple()
    }

    /// `norm.Scalar(Tensor self, Scalar p=2) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::norm_with`].
    pub fn norm(&self) -> Result<LazyTensor, Error> {
        self.norm_with(NormOptions::default())
    }

    /// `norm.Scalar(Tensor self, Scalar p=2) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn norm_with(&self, options: NormOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NormScalar);
        call.tensor(self);
        call.number(options.p);
        call.one()
    }

    /// `norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::norm_dim_with`].
    pub fn norm_dim(&self, p: Option<Scalar>, dim: &[i64]) -> Result<LazyTensor, Error> {
        self.norm_dim_with(p, dim, NormDimOptions::default())
    }

    /// `norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn norm_dim_with(&self, p: Option<Scalar>, dim: &[i64], options: NormDimOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::NormScalarOptDim);
        call.tensor(self);
        match p { Some(v) => call.number(v), None => call.none() };
        call.ints(dim);
        call.bool(options.keepdim);
        call.one()
    }

    /// `ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::ones_like_with`].
    pub fn ones_like(&self) -> Result<LazyTensor, Error> {
        self.ones_like_with(OnesLikeOptions::default())
    }

    /// `ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn ones_like_with(&self, options: OnesLikeOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::OnesLike);
        call.tensor(self);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `permute_copy(Tensor self, int[] dims) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn permute_copy(&self, dims: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::PermuteCopy);
        call.tensor(self);
        call.ints(dims);
        call.one()
    }

    /// `pixel_shuffle(Tensor self, int upscale_factor) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn pixel_shuffle(&self, upscale_factor: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::PixelShuffle);
        call.tensor(self);
        call.int(upscale_factor);
        call.one()
    }

    /// `pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn pixel_unshuffle(&self, downscale_factor: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::PixelUnshuffle);
        call.tensor(self);
        call.int(downscale_factor);
        call.one()
    }

    /// `poisson(Tensor self, Generator? generator=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn poisson(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Poisson);
        call.tensor(self);
        call.ours();
        call.one()
    }

    /// `pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn pow<'o>(&self, exponent: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::PowTensorTensor);
        call.tensor(self);
        call.operand(exponent.into());
        call.one()
    }

    /// [`LazyTensor::pow`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::pow`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn pow_<'o>(&self, exponent: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.pow(exponent)?)
    }

    /// `prod(Tensor self, *, ScalarType? dtype=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::prod_with`].
    pub fn prod(&self) -> Result<LazyTensor, Error> {
        self.prod_with(ProdOptions::default())
    }

    /// `prod(Tensor self, *, ScalarType? dtype=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn prod_with(&self, options: ProdOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Prod);
        call.tensor(self);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.one()
    }

    /// `prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::prod_dim_with`].
    pub fn prod_dim(&self, dim: i64) -> Result<LazyTensor, Error> {
        self.prod_dim_with(dim, ProdDimOptions::default())
    }

    /// `prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn prod_dim_with(&self, dim: i64, options: ProdDimOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ProdDimInt);
        call.tensor(self);
        call.int(dim);
        call.bool(options.keepdim);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.one()
    }

    /// `put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::put_with`].
    pub fn put(&self, index: &LazyTensor, source: &LazyTensor) -> Result<LazyTensor, Error> {
        self.put_with(index, source, PutOptions::default())
    }

    /// `put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn put_with(&self, index: &LazyTensor, source: &LazyTensor, options: PutOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Put);
        call.tensor(self);
        call.tensor(index);
        call.tensor(source);
        call.bool(options.accumulate);
        call.one()
    }

    /// [`LazyTensor::put`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::put`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn put_(&self, index: &LazyTensor, source: &LazyTensor) -> Result<(), Error> {
        self.store(&self.put(index, source)?)
    }

    /// `rad2deg(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn rad2deg(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Rad2deg);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::rad2deg`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::rad2deg`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn rad2deg_(&self) -> Result<(), Error> {
        self.store(&self.rad2deg()?)
    }

    /// `rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::rand_like_with`].
    pub fn rand_like(&self) -> Result<LazyTensor, Error> {
        self.rand_like_with(RandLikeOptions::default())
    }

    /// `rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn rand_like_with(&self, options: RandLikeOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::RandLike);
        call.tensor(self);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::randint_like_with`].
    pub fn randint_like(&self, high: i64) -> Result<LazyTensor, Error> {
        self.randint_like_with(high, RandintLikeOptions::default())
    }

    /// `randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn randint_like_with(&self, high: i64, options: RandintLikeOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::RandintLike);
        call.tensor(self);
        call.int(high);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::randint_like_low_with`].
    pub fn randint_like_low(&self, low: i64, high: i64) -> Result<LazyTensor, Error> {
        self.randint_like_low_with(low, high, RandintLikeLowOptions::default())
    }

    /// `randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn randint_like_low_with(&self, low: i64, high: i64, options: RandintLikeLowOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::RandintLikeLowDtype);
        call.tensor(self);
        call.int(low);
        call.int(high);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::randn_like_with`].
    pub fn randn_like(&self) -> Result<LazyTensor, Error> {
        self.randn_like_with(RandnLikeOptions::default())
    }

    /// `randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn randn_like_with(&self, options: RandnLikeOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::RandnLike);
        call.tensor(self);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }

    /// `reciprocal(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn reciprocal(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Reciprocal);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::reciprocal`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::reciprocal`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn reciprocal_(&self) -> Result<(), Error> {
        self.store(&self.reciprocal()?)
    }

    /// `reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn reflection_pad1d(&self, padding: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ReflectionPad1d);
        call.tensor(self);
        call.ints(padding);
        call.one()
    }

    /// `reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn reflection_pad2d(&self, padding: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ReflectionPad2d);
        call.tensor(self);
        call.ints(padding);
        call.one()
    }

    /// `reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn reflection_pad3d(&self, padding: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ReflectionPad3d);
        call.tensor(self);
        call.ints(padding);
        call.one()
    }

    /// `relu(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn relu(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Relu);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::relu`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::relu`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn relu_(&self) -> Result<(), Error> {
        self.store(&self.relu()?)
    }

    /// `remainder.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn remainder<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::RemainderTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::remainder`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::remainder`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn remainder_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.remainder(other)?)
    }

    /// `renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn renorm(&self, p: impl Into<Scalar>, dim: i64, maxnorm: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Renorm);
        call.tensor(self);
        call.number(p.into());
        call.int(dim);
        call.number(maxnorm.into());
        call.one()
    }

    /// [`LazyTensor::renorm`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::renorm`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn renorm_(&self, p: impl Into<Scalar>, dim: i64, maxnorm: impl Into<Scalar>) -> Result<(), Error> {
        self.store(&self.renorm(p, dim, maxnorm)?)
    }

    /// `repeat(Tensor self, SymInt[] repeats) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn repeat(&self, repeats: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Repeat);
        call.tensor(self);
        call.ints(repeats);
        call.one()
    }

    /// `replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn replication_pad1d(&self, padding: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ReplicationPad1d);
        call.tensor(self);
        call.ints(padding);
        call.one()
    }

    /// `replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn replication_pad2d(&self, padding: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ReplicationPad2d);
        call.tensor(self);
        call.ints(padding);
        call.one()
    }

    /// `replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn replication_pad3d(&self, padding: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ReplicationPad3d);
        call.tensor(self);
        call.ints(padding);
        call.one()
    }

    /// `roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::roll_with`].
    pub fn roll(&self, shifts: &[i64]) -> Result<LazyTensor, Error> {
        self.roll_with(shifts, RollOptions::default())
    }

    /// `roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn roll_with(&self, shifts: &[i64], options: RollOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Roll);
        call.tensor(self);
        call.ints(shifts);
        call.ints(options.dims);
        call.one()
    }

    /// `round(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn round(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Round);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::round`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::round`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn round_(&self) -> Result<(), Error> {
        self.store(&self.round()?)
    }

    /// `round.decimals(Tensor self, *, int decimals) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn round_decimals(&self, decimals: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::RoundDecimals);
        call.tensor(self);
        call.int(decimals);
        call.one()
    }

    /// [`LazyTensor::round_decimals`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::round_decimals`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn round_decimals_(&self, decimals: i64) -> Result<(), Error> {
        self.store(&self.round_decimals(decimals)?)
    }

    /// `rsqrt(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn rsqrt(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Rsqrt);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::rsqrt`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::rsqrt`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn rsqrt_(&self) -> Result<(), Error> {
        self.store(&self.rsqrt()?)
    }

    /// `rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::rsub_with`].
    pub fn rsub<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        self.rsub_with(other, RsubOptions::default())
    }

    /// `rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn rsub_with<'o>(&self, other: impl Into<Operand<'o>>, options: RsubOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::RsubTensor);
        call.tensor(self);
        call.operand(other.into());
        call.number(options.alpha);
        call.one()
    }

    /// `scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn scatter(&self, dim: i64, index: &LazyTensor, src: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ScatterSrc);
        call.tensor(self);
        call.int(dim);
        call.tensor(index);
        call.tensor(src);
        call.one()
    }

    /// [`LazyTensor::scatter`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::scatter`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn scatter_(&self, dim: i64, index: &LazyTensor, src: &LazyTensor) -> Result<(), Error> {
        self.store(&self.scatter(dim, index, src)?)
    }

    /// `scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn scatter_value(&self, dim: i64, index: &LazyTensor, value: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ScatterValue);
        call.tensor(self);
        call.int(dim);
        call.tensor(index);
        call.number(value.into());
        call.one()
    }

    /// [`LazyTensor::scatter_value`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::scatter_value`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn scatter_value_(&self, dim: i64, index: &LazyTensor, value: impl Into<Scalar>) -> Result<(), Error> {
        self.store(&self.scatter_value(dim, index, value)?)
    }

    /// `scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn scatter_add(&self, dim: i64, index: &LazyTensor, src: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ScatterAdd);
        call.tensor(self);
        call.int(dim);
        call.tensor(index);
        call.tensor(src);
        call.one()
    }

    /// [`LazyTensor::scatter_add`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::scatter_add`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn scatter_add_(&self, dim: i64, index: &LazyTensor, src: &LazyTensor) -> Result<(), Error> {
        self.store(&self.scatter_add(dim, index, src)?)
    }

    /// `scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::scatter_reduce_with`].
    pub fn scatter_reduce(&self, dim: i64, index: &LazyTensor, src: &LazyTensor, reduce: &str) -> Result<LazyTensor, Error> {
        self.scatter_reduce_with(dim, index, src, reduce, ScatterReduceOptions::default())
    }

    /// `scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn scatter_reduce_with(&self, dim: i64, index: &LazyTensor, src: &LazyTensor, reduce: &str, options: ScatterReduceOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ScatterReduceTwo);
        call.tensor(self);
        call.int(dim);
        call.tensor(index);
        call.tensor(src);
        call.str(reduce);
        call.bool(options.include_self);
        call.one()
    }

    /// [`LazyTensor::scatter_reduce`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::scatter_reduce`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn scatter_reduce_(&self, dim: i64, index: &LazyTensor, src: &LazyTensor, reduce: &str) -> Result<(), Error> {
        self.store(&self.scatter_reduce(dim, index, src, reduce)?)
    }

    /// `select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn select_backward(&self, input_sizes: &[i64], dim: i64, index: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SelectBackward);
        call.tensor(self);
        call.ints(input_sizes);
        call.int(dim);
        call.int(index);
        call.one()
    }

    /// `select_copy.int(Tensor self, int dim, SymInt index) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn select_copy(&self, dim: i64, index: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SelectCopyInt);
        call.tensor(self);
        call.int(dim);
        call.int(index);
        call.one()
    }

    /// `select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn select_scatter(&self, src: &LazyTensor, dim: i64, index: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SelectScatter);
        call.tensor(self);
        call.tensor(src);
        call.int(dim);
        call.int(index);
        call.one()
    }

    /// `selu(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn selu(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Selu);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::selu`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::selu`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn selu_(&self) -> Result<(), Error> {
        self.store(&self.selu()?)
    }

    /// `sgn(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sgn(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Sgn);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::sgn`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::sgn`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn sgn_(&self) -> Result<(), Error> {
        self.store(&self.sgn()?)
    }

    /// `sigmoid(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sigmoid(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Sigmoid);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::sigmoid`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::sigmoid`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn sigmoid_(&self) -> Result<(), Error> {
        self.store(&self.sigmoid()?)
    }

    /// `sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn sigmoid_backward<'o>(&self, output: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SigmoidBackward);
        call.tensor(self);
        call.operand(output.into());
        call.one()
    }

    /// `sign(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sign(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Sign);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::sign`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::sign`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn sign_(&self) -> Result<(), Error> {
        self.store(&self.sign()?)
    }

    /// `signbit(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn signbit(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Signbit);
        call.tensor(self);
        call.one()
    }

    /// `silu(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn silu(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Silu);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::silu`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::silu`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn silu_(&self) -> Result<(), Error> {
        self.store(&self.silu()?)
    }

    /// `silu_backward(Tensor grad_output, Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn silu_backward<'o>(&self, this: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SiluBackward);
        call.tensor(self);
        call.operand(this.into());
        call.one()
    }

    /// `sin(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sin(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Sin);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::sin`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::sin`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn sin_(&self) -> Result<(), Error> {
        self.store(&self.sin()?)
    }

    /// `sinc(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sinc(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Sinc);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::sinc`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::sinc`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn sinc_(&self) -> Result<(), Error> {
        self.store(&self.sinc()?)
    }

    /// `sinh(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sinh(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Sinh);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::sinh`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::sinh`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn sinh_(&self) -> Result<(), Error> {
        self.store(&self.sinh()?)
    }

    /// `slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn slice_backward(&self, input_sizes: &[i64], dim: i64, start: i64, end: i64, step: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SliceBackward);
        call.tensor(self);
        call.ints(input_sizes);
        call.int(dim);
        call.int(start);
        call.int(end);
        call.int(step);
        call.one()
    }

    /// `slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::slice_copy_with`].
    pub fn slice_copy(&self) -> Result<LazyTensor, Error> {
        self.slice_copy_with(SliceCopyOptions::default())
    }

    /// `slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn slice_copy_with(&self, options: SliceCopyOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SliceCopyTensor);
        call.tensor(self);
        call.int(options.dim);
        match options.start { Some(v) => call.int(v), None => call.none() };
        match options.end { Some(v) => call.int(v), None => call.none() };
        call.int(options.step);
        call.one()
    }

    /// `slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::slice_scatter_with`].
    pub fn slice_scatter(&self, src: &LazyTensor) -> Result<LazyTensor, Error> {
        self.slice_scatter_with(src, SliceScatterOptions::default())
    }

    /// `slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn slice_scatter_with(&self, src: &LazyTensor, options: SliceScatterOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SliceScatter);
        call.tensor(self);
        call.tensor(src);
        call.int(options.dim);
        match options.start { Some(v) => call.int(v), None => call.none() };
        match options.end { Some(v) => call.int(v), None => call.none() };
        call.int(options.step);
        call.one()
    }

    /// `slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn slogdet(&self) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::Slogdet);
        call.tensor(self);
        call.tuple()
    }

    /// `smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::smooth_l1_loss_with`].
    pub fn smooth_l1_loss(&self, target: &LazyTensor) -> Result<LazyTensor, Error> {
        self.smooth_l1_loss_with(target, SmoothL1LossOptions::default())
    }

    /// `smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn smooth_l1_loss_with(&self, target: &LazyTensor, options: SmoothL1LossOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SmoothL1Loss);
        call.tensor(self);
        call.tensor(target);
        call.int(options.reduction);
        call.float(options.beta);
        call.one()
    }

    /// `smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn smooth_l1_loss_backward(&self, this: &LazyTensor, target: &LazyTensor, reduction: i64, beta: f64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SmoothL1LossBackward);
        call.tensor(self);
        call.tensor(this);
        call.tensor(target);
        call.int(reduction);
        call.float(beta);
        call.one()
    }

    /// `soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::soft_margin_loss_with`].
    pub fn soft_margin_loss(&self, target: &LazyTensor) -> Result<LazyTensor, Error> {
        self.soft_margin_loss_with(target, SoftMarginLossOptions::default())
    }

    /// `soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn soft_margin_loss_with(&self, target: &LazyTensor, options: SoftMarginLossOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SoftMarginLoss);
        call.tensor(self);
        call.tensor(target);
        call.int(options.reduction);
        call.one()
    }

    /// `softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::softplus_with`].
    pub fn softplus(&self) -> Result<LazyTensor, Error> {
        self.softplus_with(SoftplusOptions::default())
    }

    /// `softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn softplus_with(&self, options: SoftplusOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Softplus);
        call.tensor(self);
        call.number(options.beta);
        call.number(options.threshold);
        call.one()
    }

    /// `softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn softplus_backward<'o>(&self, this: impl Into<Operand<'o>>, beta: impl Into<Scalar>, threshold: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SoftplusBackward);
        call.tensor(self);
        call.operand(this.into());
        call.number(beta.into());
        call.number(threshold.into());
        call.one()
    }

    /// `softshrink(Tensor self, Scalar lambd=0.5) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::softshrink_with`].
    pub fn softshrink(&self) -> Result<LazyTensor, Error> {
        self.softshrink_with(SoftshrinkOptions::default())
    }

    /// `softshrink(Tensor self, Scalar lambd=0.5) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn softshrink_with(&self, options: SoftshrinkOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Softshrink);
        call.tensor(self);
        call.number(options.lambd);
        call.one()
    }

    /// `softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn softshrink_backward<'o>(&self, this: impl Into<Operand<'o>>, lambd: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SoftshrinkBackward);
        call.tensor(self);
        call.operand(this.into());
        call.number(lambd.into());
        call.one()
    }

    /// `sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::sort_with`].
    pub fn sort(&self) -> Result<(LazyTensor, LazyTensor), Error> {
        self.sort_with(SortOptions::default())
    }

    /// `sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sort_with(&self, options: SortOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::Sort);
        call.tensor(self);
        call.int(options.dim);
        call.bool(options.descending);
        call.tuple()
    }

    /// `sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::sort_stable_with`].
    pub fn sort_stable(&self, stable: Option<bool>) -> Result<(LazyTensor, LazyTensor), Error> {
        self.sort_stable_with(stable, SortStableOptions::default())
    }

    /// `sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sort_stable_with(&self, stable: Option<bool>, options: SortStableOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::SortStable);
        call.tensor(self);
        match stable { Some(v) => call.bool(v), None => call.none() };
        call.int(options.dim);
        call.bool(options.descending);
        call.tuple()
    }

    /// `special_entr(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn special_entr(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SpecialEntr);
        call.tensor(self);
        call.one()
    }

    /// `split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::split_copy_with`].
    pub fn split_copy(&self, split_size: i64) -> Result<Vec<LazyTensor>, Error> {
        self.split_copy_with(split_size, SplitCopyOptions::default())
    }

    /// `split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn split_copy_with(&self, split_size: i64, options: SplitCopyOptions) -> Result<Vec<LazyTensor>, Error> {
        let mut call = Recording::new(OpCode::SplitCopyTensor);
        call.tensor(self);
        call.int(split_size);
        call.int(options.dim);
        call.many()
    }

    /// `split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::split_with_sizes_copy_with`].
    pub fn split_with_sizes_copy(&self, split_sizes: &[i64]) -> Result<Vec<LazyTensor>, Error> {
        self.split_with_sizes_copy_with(split_sizes, SplitWithSizesCopyOptions::default())
    }

    /// `split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn split_with_sizes_copy_with(&self, split_sizes: &[i64], options: SplitWithSizesCopyOptions) -> Result<Vec<LazyTensor>, Error> {
        let mut call = Recording::new(OpCode::SplitWithSizesCopy);
        call.tensor(self);
        call.ints(split_sizes);
        call.int(options.dim);
        call.many()
    }

    /// `sqrt(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sqrt(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Sqrt);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::sqrt`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::sqrt`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn sqrt_(&self) -> Result<(), Error> {
        self.store(&self.sqrt()?)
    }

    /// `square(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn square(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Square);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::square`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::square`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn square_(&self) -> Result<(), Error> {
        self.store(&self.square()?)
    }

    /// `squeeze_copy(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn squeeze_copy(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SqueezeCopy);
        call.tensor(self);
        call.one()
    }

    /// `squeeze_copy.dim(Tensor self, int dim) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn squeeze_copy_dim(&self, dim: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SqueezeCopyDim);
        call.tensor(self);
        call.int(dim);
        call.one()
    }

    /// `squeeze_copy.dims(Tensor self, int[] dim) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn squeeze_copy_dims(&self, dim: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SqueezeCopyDims);
        call.tensor(self);
        call.ints(dim);
        call.one()
    }

    /// `stack(Tensor[] tensors, int dim=0) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::stack_with`].
    pub fn stack(tensors: &[&LazyTensor]) -> Result<LazyTensor, Error> {
        Self::stack_with(tensors, StackOptions::default())
    }

    /// `stack(Tensor[] tensors, int dim=0) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, for tensors of several devices, and for none.
    pub fn stack_with(tensors: &[&LazyTensor], options: StackOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Stack);
        call.tensors(tensors);
        call.int(options.dim);
        call.one()
    }

    /// `std(Tensor self, bool unbiased=True) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::std_with`].
    pub fn std(&self) -> Result<LazyTensor, Error> {
        self.std_with(StdOptions::default())
    }

    /// `std(Tensor self, bool unbiased=True) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn std_with(&self, options: StdOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Std);
        call.tensor(self);
        call.bool(options.unbiased);
        call.one()
    }

    /// `std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::std_correction_with`].
    pub fn std_correction(&self) -> Result<LazyTensor, Error> {
        self.std_correction_with(StdCorrectionOptions::default())
    }

    /// `std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn std_correction_with(&self, options: StdCorrectionOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::StdCorrection);
        call.tensor(self);
        match options.dim { Some(v) => call.ints(v), None => call.none() };
        match options.correction { Some(v) => call.number(v), None => call.none() };
        call.bool(options.keepdim);
        call.one()
    }

    /// `std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::std_dim_with`].
    pub fn std_dim(&self, dim: Option<&[i64]>) -> Result<LazyTensor, Error> {
        self.std_dim_with(dim, StdDimOptions::default())
    }

    /// `std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn std_dim_with(&self, dim: Option<&[i64]>, options: StdDimOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::StdDim);
        call.tensor(self);
        match dim { Some(v) => call.ints(v), None => call.none() };
        call.bool(options.unbiased);
        call.bool(options.keepdim);
        call.one()
    }

    /// `std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::std_mean_with`].
    pub fn std_mean(&self) -> Result<(LazyTensor, LazyTensor), Error> {
        self.std_mean_with(StdMeanOptions::default())
    }

    /// `std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn std_mean_with(&self, options: StdMeanOptions<'_>) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::StdMeanCorrection);
        call.tensor(self);
        match options.dim { Some(v) => call.ints(v), None => call.none() };
        match options.correction { Some(v) => call.number(v), None => call.none() };
        call.bool(options.keepdim);
        call.tuple()
    }

    /// `sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::sub_with`].
    pub fn sub<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        self.sub_with(other, SubOptions::default())
    }

    /// `sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn sub_with<'o>(&self, other: impl Into<Operand<'o>>, options: SubOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SubTensor);
        call.tensor(self);
        call.operand(other.into());
        call.number(options.alpha);
        call.one()
    }

    /// [`LazyTensor::sub`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::sub`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn sub_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.sub(other)?)
    }

    /// `sum(Tensor self, *, ScalarType? dtype=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::sum_with`].
    pub fn sum(&self) -> Result<LazyTensor, Error> {
        self.sum_with(SumOptions::default())
    }

    /// `sum(Tensor self, *, ScalarType? dtype=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sum_with(&self, options: SumOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Sum);
        call.tensor(self);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.one()
    }

    /// `sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::sum_dim_with`].
    pub fn sum_dim(&self, dim: Option<&[i64]>) -> Result<LazyTensor, Error> {
        self.sum_dim_with(dim, SumDimOptions::default())
    }

    /// `sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn sum_dim_with(&self, dim: Option<&[i64]>, options: SumDimOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::SumDimIntList);
        call.tensor(self);
        match dim { Some(v) => call.ints(v), None => call.none() };
        call.bool(options.keepdim);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.one()
    }

    /// `svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::svd_with`].
    pub fn svd(&self) -> Result<(LazyTensor, LazyTensor, LazyTensor), Error> {
        self.svd_with(SvdOptions::default())
    }

    /// `svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn svd_with(&self, options: SvdOptions) -> Result<(LazyTensor, LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::Svd);
        call.tensor(self);
        call.bool(options.some);
        call.bool(options.compute_uv);
        call.tuple()
    }

    /// `t_copy(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn t_copy(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::TCopy);
        call.tensor(self);
        call.one()
    }

    /// `take(Tensor self, Tensor index) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn take(&self, index: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Take);
        call.tensor(self);
        call.tensor(index);
        call.one()
    }

    /// `tan(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn tan(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Tan);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::tan`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::tan`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn tan_(&self) -> Result<(), Error> {
        self.store(&self.tan()?)
    }

    /// `tanh(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn tanh(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Tanh);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::tanh`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::tanh`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn tanh_(&self) -> Result<(), Error> {
        self.store(&self.tanh()?)
    }

    /// `tanh_backward(Tensor grad_output, Tensor output) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn tanh_backward<'o>(&self, output: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::TanhBackward);
        call.tensor(self);
        call.operand(output.into());
        call.one()
    }

    /// `threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn threshold(&self, threshold: impl Into<Scalar>, value: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Threshold);
        call.tensor(self);
        call.number(threshold.into());
        call.number(value.into());
        call.one()
    }

    /// [`LazyTensor::threshold`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::threshold`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn threshold_(&self, threshold: impl Into<Scalar>, value: impl Into<Scalar>) -> Result<(), Error> {
        self.store(&self.threshold(threshold, value)?)
    }

    /// `threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn threshold_backward<'o>(&self, this: impl Into<Operand<'o>>, threshold: impl Into<Scalar>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ThresholdBackward);
        call.tensor(self);
        call.operand(this.into());
        call.number(threshold.into());
        call.one()
    }

    /// `topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::topk_with`].
    pub fn topk(&self, k: i64) -> Result<(LazyTensor, LazyTensor), Error> {
        self.topk_with(k, TopkOptions::default())
    }

    /// `topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn topk_with(&self, k: i64, options: TopkOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::Topk);
        call.tensor(self);
        call.int(k);
        call.int(options.dim);
        call.bool(options.largest);
        call.bool(options.sorted);
        call.tuple()
    }

    /// `trace(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn trace(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Trace);
        call.tensor(self);
        call.one()
    }

    /// `transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn transpose_copy(&self, dim0: i64, dim1: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::TransposeCopyInt);
        call.tensor(self);
        call.int(dim0);
        call.int(dim1);
        call.one()
    }

    /// `triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::triangular_solve_with`].
    pub fn triangular_solve(&self, a: &LazyTensor) -> Result<(LazyTensor, LazyTensor), Error> {
        self.triangular_solve_with(a, TriangularSolveOptions::default())
    }

    /// `triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn triangular_solve_with(&self, a: &LazyTensor, options: TriangularSolveOptions) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::TriangularSolve);
        call.tensor(self);
        call.tensor(a);
        call.bool(options.upper);
        call.bool(options.transpose);
        call.bool(options.unitriangular);
        call.tuple()
    }

    /// `tril(Tensor self, SymInt diagonal=0) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::tril_with`].
    pub fn tril(&self) -> Result<LazyTensor, Error> {
        self.tril_with(TrilOptions::default())
    }

    /// `tril(Tensor self, SymInt diagonal=0) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn tril_with(&self, options: TrilOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Tril);
        call.tensor(self);
        call.int(options.diagonal);
        call.one()
    }

    /// [`LazyTensor::tril`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::tril`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn tril_(&self) -> Result<(), Error> {
        self.store(&self.tril()?)
    }

    /// `triu(Tensor self, SymInt diagonal=0) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::triu_with`].
    pub fn triu(&self) -> Result<LazyTensor, Error> {
        self.triu_with(TriuOptions::default())
    }

    /// `triu(Tensor self, SymInt diagonal=0) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn triu_with(&self, options: TriuOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Triu);
        call.tensor(self);
        call.int(options.diagonal);
        call.one()
    }

    /// [`LazyTensor::triu`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::triu`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn triu_(&self) -> Result<(), Error> {
        self.store(&self.triu()?)
    }

    /// `trunc(Tensor self) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn trunc(&self) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Trunc);
        call.tensor(self);
        call.one()
    }

    /// [`LazyTensor::trunc`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::trunc`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn trunc_(&self) -> Result<(), Error> {
        self.store(&self.trunc()?)
    }

    /// `unbind_copy.int(Tensor self, int dim=0) -> Tensor[]`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::unbind_copy_with`].
    pub fn unbind_copy(&self) -> Result<Vec<LazyTensor>, Error> {
        self.unbind_copy_with(UnbindCopyOptions::default())
    }

    /// `unbind_copy.int(Tensor self, int dim=0) -> Tensor[]`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn unbind_copy_with(&self, options: UnbindCopyOptions) -> Result<Vec<LazyTensor>, Error> {
        let mut call = Recording::new(OpCode::UnbindCopyInt);
        call.tensor(self);
        call.int(options.dim);
        call.many()
    }

    /// `unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn unfold_backward(&self, input_sizes: &[i64], dim: i64, size: i64, step: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UnfoldBackward);
        call.tensor(self);
        call.ints(input_sizes);
        call.int(dim);
        call.int(size);
        call.int(step);
        call.one()
    }

    /// `unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn unfold_copy(&self, dimension: i64, size: i64, step: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UnfoldCopy);
        call.tensor(self);
        call.int(dimension);
        call.int(size);
        call.int(step);
        call.one()
    }

    /// `unsqueeze_copy(Tensor self, int dim) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn unsqueeze_copy(&self, dim: i64) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UnsqueezeCopy);
        call.tensor(self);
        call.int(dim);
        call.one()
    }

    /// `upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_bicubic2d_with`].
    pub fn upsample_bicubic2d(&self, output_size: &[i64], align_corners: bool) -> Result<LazyTensor, Error> {
        self.upsample_bicubic2d_with(output_size, align_corners, UpsampleBicubic2dOptions::default())
    }

    /// `upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_bicubic2d_with(&self, output_size: &[i64], align_corners: bool, options: UpsampleBicubic2dOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleBicubic2d);
        call.tensor(self);
        call.ints(output_size);
        call.bool(align_corners);
        match options.scales_h { Some(v) => call.float(v), None => call.none() };
        match options.scales_w { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_bicubic2d_backward_with`].
    pub fn upsample_bicubic2d_backward(&self, output_size: &[i64], input_size: &[i64], align_corners: bool) -> Result<LazyTensor, Error> {
        self.upsample_bicubic2d_backward_with(output_size, input_size, align_corners, UpsampleBicubic2dBackwardOptions::default())
    }

    /// `upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_bicubic2d_backward_with(&self, output_size: &[i64], input_size: &[i64], align_corners: bool, options: UpsampleBicubic2dBackwardOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleBicubic2dBackward);
        call.tensor(self);
        call.ints(output_size);
        call.ints(input_size);
        call.bool(align_corners);
        match options.scales_h { Some(v) => call.float(v), None => call.none() };
        match options.scales_w { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_bilinear2d_with`].
    pub fn upsample_bilinear2d(&self, output_size: &[i64], align_corners: bool) -> Result<LazyTensor, Error> {
        self.upsample_bilinear2d_with(output_size, align_corners, UpsampleBilinear2dOptions::default())
    }

    /// `upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_bilinear2d_with(&self, output_size: &[i64], align_corners: bool, options: UpsampleBilinear2dOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleBilinear2d);
        call.tensor(self);
        call.ints(output_size);
        call.bool(align_corners);
        match options.scales_h { Some(v) => call.float(v), None => call.none() };
        match options.scales_w { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_bilinear2d_backward_with`].
    pub fn upsample_bilinear2d_backward(&self, output_size: &[i64], input_size: &[i64], align_corners: bool) -> Result<LazyTensor, Error> {
        self.upsample_bilinear2d_backward_with(output_size, input_size, align_corners, UpsampleBilinear2dBackwardOptions::default())
    }

    /// `upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_bilinear2d_backward_with(&self, output_size: &[i64], input_size: &[i64], align_corners: bool, options: UpsampleBilinear2dBackwardOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleBilinear2dBackward);
        call.tensor(self);
        call.ints(output_size);
        call.ints(input_size);
        call.bool(align_corners);
        match options.scales_h { Some(v) => call.float(v), None => call.none() };
        match options.scales_w { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_linear1d_with`].
    pub fn upsample_linear1d(&self, output_size: &[i64], align_corners: bool) -> Result<LazyTensor, Error> {
        self.upsample_linear1d_with(output_size, align_corners, UpsampleLinear1dOptions::default())
    }

    /// `upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_linear1d_with(&self, output_size: &[i64], align_corners: bool, options: UpsampleLinear1dOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleLinear1d);
        call.tensor(self);
        call.ints(output_size);
        call.bool(align_corners);
        match options.scales { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, float? scales=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_linear1d_backward_with`].
    pub fn upsample_linear1d_backward(&self, output_size: &[i64], input_size: &[i64], align_corners: bool) -> Result<LazyTensor, Error> {
        self.upsample_linear1d_backward_with(output_size, input_size, align_corners, UpsampleLinear1dBackwardOptions::default())
    }

    /// `upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, float? scales=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_linear1d_backward_with(&self, output_size: &[i64], input_size: &[i64], align_corners: bool, options: UpsampleLinear1dBackwardOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleLinear1dBackward);
        call.tensor(self);
        call.ints(output_size);
        call.ints(input_size);
        call.bool(align_corners);
        match options.scales { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_nearest1d_with`].
    pub fn upsample_nearest1d(&self, output_size: &[i64]) -> Result<LazyTensor, Error> {
        self.upsample_nearest1d_with(output_size, UpsampleNearest1dOptions::default())
    }

    /// `upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_nearest1d_with(&self, output_size: &[i64], options: UpsampleNearest1dOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleNearest1d);
        call.tensor(self);
        call.ints(output_size);
        match options.scales { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_nearest1d_backward_with`].
    pub fn upsample_nearest1d_backward(&self, output_size: &[i64], input_size: &[i64]) -> Result<LazyTensor, Error> {
        self.upsample_nearest1d_backward_with(output_size, input_size, UpsampleNearest1dBackwardOptions::default())
    }

    /// `upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_nearest1d_backward_with(&self, output_size: &[i64], input_size: &[i64], options: UpsampleNearest1dBackwardOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleNearest1dBackward);
        call.tensor(self);
        call.ints(output_size);
        call.ints(input_size);
        match options.scales { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_nearest2d_with`].
    pub fn upsample_nearest2d(&self, output_size: &[i64]) -> Result<LazyTensor, Error> {
        self.upsample_nearest2d_with(output_size, UpsampleNearest2dOptions::default())
    }

    /// `upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_nearest2d_with(&self, output_size: &[i64], options: UpsampleNearest2dOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleNearest2d);
        call.tensor(self);
        call.ints(output_size);
        match options.scales_h { Some(v) => call.float(v), None => call.none() };
        match options.scales_w { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_nearest2d_backward_with`].
    pub fn upsample_nearest2d_backward(&self, output_size: &[i64], input_size: &[i64]) -> Result<LazyTensor, Error> {
        self.upsample_nearest2d_backward_with(output_size, input_size, UpsampleNearest2dBackwardOptions::default())
    }

    /// `upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_nearest2d_backward_with(&self, output_size: &[i64], input_size: &[i64], options: UpsampleNearest2dBackwardOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleNearest2dBackward);
        call.tensor(self);
        call.ints(output_size);
        call.ints(input_size);
        match options.scales_h { Some(v) => call.float(v), None => call.none() };
        match options.scales_w { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_nearest3d_with`].
    pub fn upsample_nearest3d(&self, output_size: &[i64]) -> Result<LazyTensor, Error> {
        self.upsample_nearest3d_with(output_size, UpsampleNearest3dOptions::default())
    }

    /// `upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_nearest3d_with(&self, output_size: &[i64], options: UpsampleNearest3dOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleNearest3d);
        call.tensor(self);
        call.ints(output_size);
        match options.scales_d { Some(v) => call.float(v), None => call.none() };
        match options.scales_h { Some(v) => call.float(v), None => call.none() };
        match options.scales_w { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_nearest3d_backward_with`].
    pub fn upsample_nearest3d_backward(&self, output_size: &[i64], input_size: &[i64]) -> Result<LazyTensor, Error> {
        self.upsample_nearest3d_backward_with(output_size, input_size, UpsampleNearest3dBackwardOptions::default())
    }

    /// `upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_nearest3d_backward_with(&self, output_size: &[i64], input_size: &[i64], options: UpsampleNearest3dBackwardOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleNearest3dBackward);
        call.tensor(self);
        call.ints(output_size);
        call.ints(input_size);
        match options.scales_d { Some(v) => call.float(v), None => call.none() };
        match options.scales_h { Some(v) => call.float(v), None => call.none() };
        match options.scales_w { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_trilinear3d_with`].
    pub fn upsample_trilinear3d(&self, output_size: &[i64], align_corners: bool) -> Result<LazyTensor, Error> {
        self.upsample_trilinear3d_with(output_size, align_corners, UpsampleTrilinear3dOptions::default())
    }

    /// `upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_trilinear3d_with(&self, output_size: &[i64], align_corners: bool, options: UpsampleTrilinear3dOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleTrilinear3d);
        call.tensor(self);
        call.ints(output_size);
        call.bool(align_corners);
        match options.scales_d { Some(v) => call.float(v), None => call.none() };
        match options.scales_h { Some(v) => call.float(v), None => call.none() };
        match options.scales_w { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::upsample_trilinear3d_backward_with`].
    pub fn upsample_trilinear3d_backward(&self, output_size: &[i64], input_size: &[i64], align_corners: bool) -> Result<LazyTensor, Error> {
        self.upsample_trilinear3d_backward_with(output_size, input_size, align_corners, UpsampleTrilinear3dBackwardOptions::default())
    }

    /// `upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn upsample_trilinear3d_backward_with(&self, output_size: &[i64], input_size: &[i64], align_corners: bool, options: UpsampleTrilinear3dBackwardOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::UpsampleTrilinear3dBackward);
        call.tensor(self);
        call.ints(output_size);
        call.ints(input_size);
        call.bool(align_corners);
        match options.scales_d { Some(v) => call.float(v), None => call.none() };
        match options.scales_h { Some(v) => call.float(v), None => call.none() };
        match options.scales_w { Some(v) => call.float(v), None => call.none() };
        call.one()
    }

    /// `var(Tensor self, bool unbiased=True) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::var_with`].
    pub fn var(&self) -> Result<LazyTensor, Error> {
        self.var_with(VarOptions::default())
    }

    /// `var(Tensor self, bool unbiased=True) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn var_with(&self, options: VarOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Var);
        call.tensor(self);
        call.bool(options.unbiased);
        call.one()
    }

    /// `var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::var_correction_with`].
    pub fn var_correction(&self) -> Result<LazyTensor, Error> {
        self.var_correction_with(VarCorrectionOptions::default())
    }

    /// `var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn var_correction_with(&self, options: VarCorrectionOptions<'_>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::VarCorrection);
        call.tensor(self);
        match options.dim { Some(v) => call.ints(v), None => call.none() };
        match options.correction { Some(v) => call.number(v), None => call.none() };
        call.bool(options.keepdim);
        call.one()
    }

    /// `var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::var_dim_with`].
    pub fn var_dim(&self, dim: Option<&[i64]>) -> Result<LazyTensor, Error> {
        self.var_dim_with(dim, VarDimOptions::default())
    }

    /// `var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn var_dim_with(&self, dim: Option<&[i64]>, options: VarDimOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::VarDim);
        call.tensor(self);
        match dim { Some(v) => call.ints(v), None => call.none() };
        call.bool(options.unbiased);
        call.bool(options.keepdim);
        call.one()
    }

    /// `var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::var_mean_with`].
    pub fn var_mean(&self) -> Result<(LazyTensor, LazyTensor), Error> {
        self.var_mean_with(VarMeanOptions::default())
    }

    /// `var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn var_mean_with(&self, options: VarMeanOptions<'_>) -> Result<(LazyTensor, LazyTensor), Error> {
        let mut call = Recording::new(OpCode::VarMeanCorrection);
        call.tensor(self);
        match options.dim { Some(v) => call.ints(v), None => call.none() };
        match options.correction { Some(v) => call.number(v), None => call.none() };
        call.bool(options.keepdim);
        call.tuple()
    }

    /// `vdot(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn vdot(&self, other: &LazyTensor) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::Vdot);
        call.tensor(self);
        call.tensor(other);
        call.one()
    }

    /// `view_copy(Tensor self, SymInt[] size) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn view_copy(&self, size: &[i64]) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ViewCopy);
        call.tensor(self);
        call.ints(size);
        call.one()
    }

    /// `where.self(Tensor condition, Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn where_self<'o>(&self, this: impl Into<Operand<'o>>, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::WhereSelf);
        call.tensor(self);
        call.operand(this.into());
        call.operand(other.into());
        call.one()
    }

    /// `xlogy.Tensor(Tensor self, Tensor other) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.
    pub fn xlogy<'o>(&self, other: impl Into<Operand<'o>>) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::XlogyTensor);
        call.tensor(self);
        call.operand(other.into());
        call.one()
    }

    /// [`LazyTensor::xlogy`], written into this tensor
    ///
    /// # Errors
    /// As [`LazyTensor::xlogy`]; also where the result has other sizes or a higher kind of number,
    /// and as [`LazyTensor::assign`].
    pub fn xlogy_<'o>(&self, other: impl Into<Operand<'o>>) -> Result<(), Error> {
        self.store(&self.xlogy(other)?)
    }

    /// `zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`, with defaults
    ///
    /// # Errors
    /// As [`LazyTensor::zeros_like_with`].
    pub fn zeros_like(&self) -> Result<LazyTensor, Error> {
        self.zeros_like_with(ZerosLikeOptions::default())
    }

    /// `zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor`
    ///
    /// # Errors
    /// Fails for arguments that libtorch refuses, in its words.
    pub fn zeros_like_with(&self, options: ZerosLikeOptions) -> Result<LazyTensor, Error> {
        let mut call = Recording::new(OpCode::ZerosLike);
        call.tensor(self);
        match options.dtype { Some(v) => call.dtype(v), None => call.none() };
        call.ours();
        call.ours();
        call.ours();
        call.ours();
        call.one()
    }
}

/// Defaults of [`LazyTensor::add`].
#[derive(Clone, Copy, Debug)]
pub struct AddOptions {
    /// `alpha`
    pub alpha: Scalar,
}

impl Default for AddOptions {
    fn default() -> Self {
        AddOptions {
            alpha: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::addbmm`].
#[derive(Clone, Copy, Debug)]
pub struct AddbmmOptions {
    /// `beta`
    pub beta: Scalar,
    /// `alpha`
    pub alpha: Scalar,
}

impl Default for AddbmmOptions {
    fn default() -> Self {
        AddbmmOptions {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::addcdiv`].
#[derive(Clone, Copy, Debug)]
pub struct AddcdivOptions {
    /// `value`
    pub value: Scalar,
}

impl Default for AddcdivOptions {
    fn default() -> Self {
        AddcdivOptions {
            value: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::addcmul`].
#[derive(Clone, Copy, Debug)]
pub struct AddcmulOptions {
    /// `value`
    pub value: Scalar,
}

impl Default for AddcmulOptions {
    fn default() -> Self {
        AddcmulOptions {
            value: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::addmm`].
#[derive(Clone, Copy, Debug)]
pub struct AddmmOptions {
    /// `beta`
    pub beta: Scalar,
    /// `alpha`
    pub alpha: Scalar,
}

impl Default for AddmmOptions {
    fn default() -> Self {
        AddmmOptions {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::addmv`].
#[derive(Clone, Copy, Debug)]
pub struct AddmvOptions {
    /// `beta`
    pub beta: Scalar,
    /// `alpha`
    pub alpha: Scalar,
}

impl Default for AddmvOptions {
    fn default() -> Self {
        AddmvOptions {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::addr`].
#[derive(Clone, Copy, Debug)]
pub struct AddrOptions {
    /// `beta`
    pub beta: Scalar,
    /// `alpha`
    pub alpha: Scalar,
}

impl Default for AddrOptions {
    fn default() -> Self {
        AddrOptions {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::all_dim`].
#[derive(Clone, Copy, Debug)]
pub struct AllDimOptions {
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for AllDimOptions {
    fn default() -> Self {
        AllDimOptions {
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::all_dims`].
#[derive(Clone, Copy, Debug)]
pub struct AllDimsOptions<'a> {
    /// `dim`
    pub dim: Option<&'a [i64]>,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for AllDimsOptions<'_> {
    fn default() -> Self {
        AllDimsOptions {
            dim: None,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::amax`].
#[derive(Clone, Copy, Debug)]
pub struct AmaxOptions<'a> {
    /// `dim`
    pub dim: &'a [i64],
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for AmaxOptions<'_> {
    fn default() -> Self {
        AmaxOptions {
            dim: &[],
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::amin`].
#[derive(Clone, Copy, Debug)]
pub struct AminOptions<'a> {
    /// `dim`
    pub dim: &'a [i64],
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for AminOptions<'_> {
    fn default() -> Self {
        AminOptions {
            dim: &[],
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::aminmax`].
#[derive(Clone, Copy, Debug)]
pub struct AminmaxOptions {
    /// `dim`
    pub dim: Option<i64>,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for AminmaxOptions {
    fn default() -> Self {
        AminmaxOptions {
            dim: None,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::any_dim`].
#[derive(Clone, Copy, Debug)]
pub struct AnyDimOptions {
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for AnyDimOptions {
    fn default() -> Self {
        AnyDimOptions {
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::any_dims`].
#[derive(Clone, Copy, Debug)]
pub struct AnyDimsOptions<'a> {
    /// `dim`
    pub dim: Option<&'a [i64]>,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for AnyDimsOptions<'_> {
    fn default() -> Self {
        AnyDimsOptions {
            dim: None,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::argmax`].
#[derive(Clone, Copy, Debug)]
pub struct ArgmaxOptions {
    /// `dim`
    pub dim: Option<i64>,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for ArgmaxOptions {
    fn default() -> Self {
        ArgmaxOptions {
            dim: None,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::argmin`].
#[derive(Clone, Copy, Debug)]
pub struct ArgminOptions {
    /// `dim`
    pub dim: Option<i64>,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for ArgminOptions {
    fn default() -> Self {
        ArgminOptions {
            dim: None,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::as_strided_copy`].
#[derive(Clone, Copy, Debug)]
pub struct AsStridedCopyOptions {
    /// `storage_offset`
    pub storage_offset: Option<i64>,
}

impl Default for AsStridedCopyOptions {
    fn default() -> Self {
        AsStridedCopyOptions {
            storage_offset: None,
        }
    }
}

/// Defaults of [`LazyTensor::as_strided_scatter`].
#[derive(Clone, Copy, Debug)]
pub struct AsStridedScatterOptions {
    /// `storage_offset`
    pub storage_offset: Option<i64>,
}

impl Default for AsStridedScatterOptions {
    fn default() -> Self {
        AsStridedScatterOptions {
            storage_offset: None,
        }
    }
}

/// Defaults of [`LazyTensor::avg_pool2d`].
#[derive(Clone, Copy, Debug)]
pub struct AvgPool2dOptions<'a> {
    /// `stride`
    pub stride: &'a [i64],
    /// `padding`
    pub padding: &'a [i64],
    /// `ceil_mode`
    pub ceil_mode: bool,
    /// `count_include_pad`
    pub count_include_pad: bool,
    /// `divisor_override`
    pub divisor_override: Option<i64>,
}

impl Default for AvgPool2dOptions<'_> {
    fn default() -> Self {
        AvgPool2dOptions {
            stride: &[],
            padding: &[0, 0],
            ceil_mode: false,
            count_include_pad: true,
            divisor_override: None,
        }
    }
}

/// Defaults of [`LazyTensor::avg_pool3d`].
#[derive(Clone, Copy, Debug)]
pub struct AvgPool3dOptions<'a> {
    /// `stride`
    pub stride: &'a [i64],
    /// `padding`
    pub padding: &'a [i64],
    /// `ceil_mode`
    pub ceil_mode: bool,
    /// `count_include_pad`
    pub count_include_pad: bool,
    /// `divisor_override`
    pub divisor_override: Option<i64>,
}

impl Default for AvgPool3dOptions<'_> {
    fn default() -> Self {
        AvgPool3dOptions {
            stride: &[],
            padding: &[0, 0, 0],
            ceil_mode: false,
            count_include_pad: true,
            divisor_override: None,
        }
    }
}

/// Defaults of [`LazyTensor::baddbmm`].
#[derive(Clone, Copy, Debug)]
pub struct BaddbmmOptions {
    /// `beta`
    pub beta: Scalar,
    /// `alpha`
    pub alpha: Scalar,
}

impl Default for BaddbmmOptions {
    fn default() -> Self {
        BaddbmmOptions {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::binary_cross_entropy`].
#[derive(Clone, Copy, Debug)]
pub struct BinaryCrossEntropyOptions<'a> {
    /// `weight`
    pub weight: Option<&'a LazyTensor>,
    /// `reduction`
    pub reduction: i64,
}

impl Default for BinaryCrossEntropyOptions<'_> {
    fn default() -> Self {
        BinaryCrossEntropyOptions {
            weight: None,
            reduction: 1,
        }
    }
}

/// Defaults of [`LazyTensor::binary_cross_entropy_backward`].
#[derive(Clone, Copy, Debug)]
pub struct BinaryCrossEntropyBackwardOptions<'a> {
    /// `weight`
    pub weight: Option<&'a LazyTensor>,
    /// `reduction`
    pub reduction: i64,
}

impl Default for BinaryCrossEntropyBackwardOptions<'_> {
    fn default() -> Self {
        BinaryCrossEntropyBackwardOptions {
            weight: None,
            reduction: 1,
        }
    }
}

/// Defaults of [`LazyTensor::binary_cross_entropy_with_logits`].
#[derive(Clone, Copy, Debug)]
pub struct BinaryCrossEntropyWithLogitsOptions<'a> {
    /// `weight`
    pub weight: Option<&'a LazyTensor>,
    /// `pos_weight`
    pub pos_weight: Option<&'a LazyTensor>,
    /// `reduction`
    pub reduction: i64,
}

impl Default for BinaryCrossEntropyWithLogitsOptions<'_> {
    fn default() -> Self {
        BinaryCrossEntropyWithLogitsOptions {
            weight: None,
            pos_weight: None,
            reduction: 1,
        }
    }
}

/// Defaults of [`LazyTensor::bucketize`].
#[derive(Clone, Copy, Debug)]
pub struct BucketizeOptions {
    /// `out_int32`
    pub out_int32: bool,
    /// `right`
    pub right: bool,
}

impl Default for BucketizeOptions {
    fn default() -> Self {
        BucketizeOptions {
            out_int32: false,
            right: false,
        }
    }
}

/// Defaults of [`LazyTensor::cat`].
#[derive(Clone, Copy, Debug)]
pub struct CatOptions {
    /// `dim`
    pub dim: i64,
}

impl Default for CatOptions {
    fn default() -> Self {
        CatOptions {
            dim: 0,
        }
    }
}

/// Defaults of [`LazyTensor::celu`].
#[derive(Clone, Copy, Debug)]
pub struct CeluOptions {
    /// `alpha`
    pub alpha: Scalar,
}

impl Default for CeluOptions {
    fn default() -> Self {
        CeluOptions {
            alpha: Scalar::Float(1.0),
        }
    }
}

/// Defaults of [`LazyTensor::cholesky`].
#[derive(Clone, Copy, Debug)]
pub struct CholeskyOptions {
    /// `upper`
    pub upper: bool,
}

impl Default for CholeskyOptions {
    fn default() -> Self {
        CholeskyOptions {
            upper: false,
        }
    }
}

/// Defaults of [`LazyTensor::clamp`].
#[derive(Clone, Copy, Debug)]
pub struct ClampOptions {
    /// `min`
    pub min: Option<Scalar>,
    /// `max`
    pub max: Option<Scalar>,
}

impl Default for ClampOptions {
    fn default() -> Self {
        ClampOptions {
            min: None,
            max: None,
        }
    }
}

/// Defaults of [`LazyTensor::clamp_tensor`].
#[derive(Clone, Copy, Debug)]
pub struct ClampTensorOptions<'a> {
    /// `min`
    pub min: Option<&'a LazyTensor>,
    /// `max`
    pub max: Option<&'a LazyTensor>,
}

impl Default for ClampTensorOptions<'_> {
    fn default() -> Self {
        ClampTensorOptions {
            min: None,
            max: None,
        }
    }
}

/// Defaults of [`LazyTensor::constant_pad_nd`].
#[derive(Clone, Copy, Debug)]
pub struct ConstantPadNdOptions {
    /// `value`
    pub value: Scalar,
}

impl Default for ConstantPadNdOptions {
    fn default() -> Self {
        ConstantPadNdOptions {
            value: Scalar::Int(0),
        }
    }
}

/// Defaults of [`LazyTensor::cumprod`].
#[derive(Clone, Copy, Debug)]
pub struct CumprodOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for CumprodOptions {
    fn default() -> Self {
        CumprodOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::cumsum`].
#[derive(Clone, Copy, Debug)]
pub struct CumsumOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for CumsumOptions {
    fn default() -> Self {
        CumsumOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::diag_embed`].
#[derive(Clone, Copy, Debug)]
pub struct DiagEmbedOptions {
    /// `offset`
    pub offset: i64,
    /// `dim1`
    pub dim1: i64,
    /// `dim2`
    pub dim2: i64,
}

impl Default for DiagEmbedOptions {
    fn default() -> Self {
        DiagEmbedOptions {
            offset: 0,
            dim1: -2,
            dim2: -1,
        }
    }
}

/// Defaults of [`LazyTensor::diagonal_copy`].
#[derive(Clone, Copy, Debug)]
pub struct DiagonalCopyOptions {
    /// `offset`
    pub offset: i64,
    /// `dim1`
    pub dim1: i64,
    /// `dim2`
    pub dim2: i64,
}

impl Default for DiagonalCopyOptions {
    fn default() -> Self {
        DiagonalCopyOptions {
            offset: 0,
            dim1: 0,
            dim2: 1,
        }
    }
}

/// Defaults of [`LazyTensor::diagonal_scatter`].
#[derive(Clone, Copy, Debug)]
pub struct DiagonalScatterOptions {
    /// `offset`
    pub offset: i64,
    /// `dim1`
    pub dim1: i64,
    /// `dim2`
    pub dim2: i64,
}

impl Default for DiagonalScatterOptions {
    fn default() -> Self {
        DiagonalScatterOptions {
            offset: 0,
            dim1: 0,
            dim2: 1,
        }
    }
}

/// Defaults of [`LazyTensor::elu`].
#[derive(Clone, Copy, Debug)]
pub struct EluOptions {
    /// `alpha`
    pub alpha: Scalar,
    /// `scale`
    pub scale: Scalar,
    /// `input_scale`
    pub input_scale: Scalar,
}

impl Default for EluOptions {
    fn default() -> Self {
        EluOptions {
            alpha: Scalar::Int(1),
            scale: Scalar::Int(1),
            input_scale: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::embedding`].
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingOptions {
    /// `padding_idx`
    pub padding_idx: i64,
    /// `scale_grad_by_freq`
    pub scale_grad_by_freq: bool,
    /// `sparse`
    pub sparse: bool,
}

impl Default for EmbeddingOptions {
    fn default() -> Self {
        EmbeddingOptions {
            padding_idx: -1,
            scale_grad_by_freq: false,
            sparse: false,
        }
    }
}

/// Defaults of [`LazyTensor::empty_like`].
#[derive(Clone, Copy, Debug)]
pub struct EmptyLikeOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for EmptyLikeOptions {
    fn default() -> Self {
        EmptyLikeOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::expand_copy`].
#[derive(Clone, Copy, Debug)]
pub struct ExpandCopyOptions {
    /// `implicit`
    pub implicit: bool,
}

impl Default for ExpandCopyOptions {
    fn default() -> Self {
        ExpandCopyOptions {
            implicit: false,
        }
    }
}

/// Defaults of [`LazyTensor::full_like`].
#[derive(Clone, Copy, Debug)]
pub struct FullLikeOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for FullLikeOptions {
    fn default() -> Self {
        FullLikeOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::gather`].
#[derive(Clone, Copy, Debug)]
pub struct GatherOptions {
    /// `sparse_grad`
    pub sparse_grad: bool,
}

impl Default for GatherOptions {
    fn default() -> Self {
        GatherOptions {
            sparse_grad: false,
        }
    }
}

/// Defaults of [`LazyTensor::gelu`].
#[derive(Clone, Copy, Debug)]
pub struct GeluOptions<'a> {
    /// `approximate`
    pub approximate: &'a str,
}

impl Default for GeluOptions<'_> {
    fn default() -> Self {
        GeluOptions {
            approximate: "none",
        }
    }
}

/// Defaults of [`LazyTensor::gelu_backward`].
#[derive(Clone, Copy, Debug)]
pub struct GeluBackwardOptions<'a> {
    /// `approximate`
    pub approximate: &'a str,
}

impl Default for GeluBackwardOptions<'_> {
    fn default() -> Self {
        GeluBackwardOptions {
            approximate: "none",
        }
    }
}

/// Defaults of [`LazyTensor::glu`].
#[derive(Clone, Copy, Debug)]
pub struct GluOptions {
    /// `dim`
    pub dim: i64,
}

impl Default for GluOptions {
    fn default() -> Self {
        GluOptions {
            dim: -1,
        }
    }
}

/// Defaults of [`LazyTensor::hardshrink`].
#[derive(Clone, Copy, Debug)]
pub struct HardshrinkOptions {
    /// `lambd`
    pub lambd: Scalar,
}

impl Default for HardshrinkOptions {
    fn default() -> Self {
        HardshrinkOptions {
            lambd: Scalar::Float(0.5),
        }
    }
}

/// Defaults of [`LazyTensor::hardtanh`].
#[derive(Clone, Copy, Debug)]
pub struct HardtanhOptions {
    /// `min_val`
    pub min_val: Scalar,
    /// `max_val`
    pub max_val: Scalar,
}

impl Default for HardtanhOptions {
    fn default() -> Self {
        HardtanhOptions {
            min_val: Scalar::Int(-1),
            max_val: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::histc`].
#[derive(Clone, Copy, Debug)]
pub struct HistcOptions {
    /// `bins`
    pub bins: i64,
    /// `min`
    pub min: Scalar,
    /// `max`
    pub max: Scalar,
}

impl Default for HistcOptions {
    fn default() -> Self {
        HistcOptions {
            bins: 100,
            min: Scalar::Int(0),
            max: Scalar::Int(0),
        }
    }
}

/// Defaults of [`LazyTensor::huber_loss`].
#[derive(Clone, Copy, Debug)]
pub struct HuberLossOptions {
    /// `reduction`
    pub reduction: i64,
    /// `delta`
    pub delta: f64,
}

impl Default for HuberLossOptions {
    fn default() -> Self {
        HuberLossOptions {
            reduction: 1,
            delta: 1.0,
        }
    }
}

/// Defaults of [`LazyTensor::index_add`].
#[derive(Clone, Copy, Debug)]
pub struct IndexAddOptions {
    /// `alpha`
    pub alpha: Scalar,
}

impl Default for IndexAddOptions {
    fn default() -> Self {
        IndexAddOptions {
            alpha: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::index_put`].
#[derive(Clone, Copy, Debug)]
pub struct IndexPutOptions {
    /// `accumulate`
    pub accumulate: bool,
}

impl Default for IndexPutOptions {
    fn default() -> Self {
        IndexPutOptions {
            accumulate: false,
        }
    }
}

/// Defaults of [`LazyTensor::kthvalue`].
#[derive(Clone, Copy, Debug)]
pub struct KthvalueOptions {
    /// `dim`
    pub dim: i64,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for KthvalueOptions {
    fn default() -> Self {
        KthvalueOptions {
            dim: -1,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::leaky_relu`].
#[derive(Clone, Copy, Debug)]
pub struct LeakyReluOptions {
    /// `negative_slope`
    pub negative_slope: Scalar,
}

impl Default for LeakyReluOptions {
    fn default() -> Self {
        LeakyReluOptions {
            negative_slope: Scalar::Float(0.01),
        }
    }
}

/// Defaults of [`LazyTensor::linalg_cholesky_ex`].
#[derive(Clone, Copy, Debug)]
pub struct LinalgCholeskyExOptions {
    /// `upper`
    pub upper: bool,
    /// `check_errors`
    pub check_errors: bool,
}

impl Default for LinalgCholeskyExOptions {
    fn default() -> Self {
        LinalgCholeskyExOptions {
            upper: false,
            check_errors: false,
        }
    }
}

/// Defaults of [`LazyTensor::linalg_cross`].
#[derive(Clone, Copy, Debug)]
pub struct LinalgCrossOptions {
    /// `dim`
    pub dim: i64,
}

impl Default for LinalgCrossOptions {
    fn default() -> Self {
        LinalgCrossOptions {
            dim: -1,
        }
    }
}

/// Defaults of [`LazyTensor::linalg_inv_ex`].
#[derive(Clone, Copy, Debug)]
pub struct LinalgInvExOptions {
    /// `check_errors`
    pub check_errors: bool,
}

impl Default for LinalgInvExOptions {
    fn default() -> Self {
        LinalgInvExOptions {
            check_errors: false,
        }
    }
}

/// Defaults of [`LazyTensor::linalg_lu_factor_ex`].
#[derive(Clone, Copy, Debug)]
pub struct LinalgLuFactorExOptions {
    /// `pivot`
    pub pivot: bool,
    /// `check_errors`
    pub check_errors: bool,
}

impl Default for LinalgLuFactorExOptions {
    fn default() -> Self {
        LinalgLuFactorExOptions {
            pivot: true,
            check_errors: false,
        }
    }
}

/// Defaults of [`LazyTensor::linalg_pinv`].
#[derive(Clone, Copy, Debug)]
pub struct LinalgPinvOptions<'a> {
    /// `atol`
    pub atol: Option<&'a LazyTensor>,
    /// `rtol`
    pub rtol: Option<&'a LazyTensor>,
    /// `hermitian`
    pub hermitian: bool,
}

impl Default for LinalgPinvOptions<'_> {
    fn default() -> Self {
        LinalgPinvOptions {
            atol: None,
            rtol: None,
            hermitian: false,
        }
    }
}

/// Defaults of [`LazyTensor::linalg_qr`].
#[derive(Clone, Copy, Debug)]
pub struct LinalgQrOptions<'a> {
    /// `mode`
    pub mode: &'a str,
}

impl Default for LinalgQrOptions<'_> {
    fn default() -> Self {
        LinalgQrOptions {
            mode: "reduced",
        }
    }
}

/// Defaults of [`LazyTensor::linalg_solve_triangular`].
#[derive(Clone, Copy, Debug)]
pub struct LinalgSolveTriangularOptions {
    /// `left`
    pub left: bool,
    /// `unitriangular`
    pub unitriangular: bool,
}

impl Default for LinalgSolveTriangularOptions {
    fn default() -> Self {
        LinalgSolveTriangularOptions {
            left: true,
            unitriangular: false,
        }
    }
}

/// Defaults of [`LazyTensor::linalg_vector_norm`].
#[derive(Clone, Copy, Debug)]
pub struct LinalgVectorNormOptions<'a> {
    /// `ord`
    pub ord: Scalar,
    /// `dim`
    pub dim: Option<&'a [i64]>,
    /// `keepdim`
    pub keepdim: bool,
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for LinalgVectorNormOptions<'_> {
    fn default() -> Self {
        LinalgVectorNormOptions {
            ord: Scalar::Int(2),
            dim: None,
            keepdim: false,
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::logit`].
#[derive(Clone, Copy, Debug)]
pub struct LogitOptions {
    /// `eps`
    pub eps: Option<f64>,
}

impl Default for LogitOptions {
    fn default() -> Self {
        LogitOptions {
            eps: None,
        }
    }
}

/// Defaults of [`LazyTensor::logit_backward`].
#[derive(Clone, Copy, Debug)]
pub struct LogitBackwardOptions {
    /// `eps`
    pub eps: Option<f64>,
}

impl Default for LogitBackwardOptions {
    fn default() -> Self {
        LogitBackwardOptions {
            eps: None,
        }
    }
}

/// Defaults of [`LazyTensor::logsumexp`].
#[derive(Clone, Copy, Debug)]
pub struct LogsumexpOptions {
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for LogsumexpOptions {
    fn default() -> Self {
        LogsumexpOptions {
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::max_dim`].
#[derive(Clone, Copy, Debug)]
pub struct MaxDimOptions {
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for MaxDimOptions {
    fn default() -> Self {
        MaxDimOptions {
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::max_pool2d_with_indices`].
#[derive(Clone, Copy, Debug)]
pub struct MaxPool2dWithIndicesOptions<'a> {
    /// `stride`
    pub stride: &'a [i64],
    /// `padding`
    pub padding: &'a [i64],
    /// `dilation`
    pub dilation: &'a [i64],
    /// `ceil_mode`
    pub ceil_mode: bool,
}

impl Default for MaxPool2dWithIndicesOptions<'_> {
    fn default() -> Self {
        MaxPool2dWithIndicesOptions {
            stride: &[],
            padding: &[0, 0],
            dilation: &[1, 1],
            ceil_mode: false,
        }
    }
}

/// Defaults of [`LazyTensor::max_pool3d`].
#[derive(Clone, Copy, Debug)]
pub struct MaxPool3dOptions<'a> {
    /// `stride`
    pub stride: &'a [i64],
    /// `padding`
    pub padding: &'a [i64],
    /// `dilation`
    pub dilation: &'a [i64],
    /// `ceil_mode`
    pub ceil_mode: bool,
}

impl Default for MaxPool3dOptions<'_> {
    fn default() -> Self {
        MaxPool3dOptions {
            stride: &[],
            padding: &[0, 0, 0],
            dilation: &[1, 1, 1],
            ceil_mode: false,
        }
    }
}

/// Defaults of [`LazyTensor::max_pool3d_with_indices`].
#[derive(Clone, Copy, Debug)]
pub struct MaxPool3dWithIndicesOptions<'a> {
    /// `stride`
    pub stride: &'a [i64],
    /// `padding`
    pub padding: &'a [i64],
    /// `dilation`
    pub dilation: &'a [i64],
    /// `ceil_mode`
    pub ceil_mode: bool,
}

impl Default for MaxPool3dWithIndicesOptions<'_> {
    fn default() -> Self {
        MaxPool3dWithIndicesOptions {
            stride: &[],
            padding: &[0, 0, 0],
            dilation: &[1, 1, 1],
            ceil_mode: false,
        }
    }
}

/// Defaults of [`LazyTensor::mean`].
#[derive(Clone, Copy, Debug)]
pub struct MeanOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for MeanOptions {
    fn default() -> Self {
        MeanOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::mean_dim`].
#[derive(Clone, Copy, Debug)]
pub struct MeanDimOptions {
    /// `keepdim`
    pub keepdim: bool,
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for MeanDimOptions {
    fn default() -> Self {
        MeanDimOptions {
            keepdim: false,
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::median_dim`].
#[derive(Clone, Copy, Debug)]
pub struct MedianDimOptions {
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for MedianDimOptions {
    fn default() -> Self {
        MedianDimOptions {
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::min_dim`].
#[derive(Clone, Copy, Debug)]
pub struct MinDimOptions {
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for MinDimOptions {
    fn default() -> Self {
        MinDimOptions {
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::mode`].
#[derive(Clone, Copy, Debug)]
pub struct ModeOptions {
    /// `dim`
    pub dim: i64,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for ModeOptions {
    fn default() -> Self {
        ModeOptions {
            dim: -1,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::mse_loss`].
#[derive(Clone, Copy, Debug)]
pub struct MseLossOptions {
    /// `reduction`
    pub reduction: i64,
}

impl Default for MseLossOptions {
    fn default() -> Self {
        MseLossOptions {
            reduction: 1,
        }
    }
}

/// Defaults of [`LazyTensor::multinomial`].
#[derive(Clone, Copy, Debug)]
pub struct MultinomialOptions {
    /// `replacement`
    pub replacement: bool,
}

impl Default for MultinomialOptions {
    fn default() -> Self {
        MultinomialOptions {
            replacement: false,
        }
    }
}

/// Defaults of [`LazyTensor::nansum`].
#[derive(Clone, Copy, Debug)]
pub struct NansumOptions<'a> {
    /// `dim`
    pub dim: Option<&'a [i64]>,
    /// `keepdim`
    pub keepdim: bool,
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for NansumOptions<'_> {
    fn default() -> Self {
        NansumOptions {
            dim: None,
            keepdim: false,
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::new_empty`].
#[derive(Clone, Copy, Debug)]
pub struct NewEmptyOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for NewEmptyOptions {
    fn default() -> Self {
        NewEmptyOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::new_empty_strided`].
#[derive(Clone, Copy, Debug)]
pub struct NewEmptyStridedOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for NewEmptyStridedOptions {
    fn default() -> Self {
        NewEmptyStridedOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::new_full`].
#[derive(Clone, Copy, Debug)]
pub struct NewFullOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for NewFullOptions {
    fn default() -> Self {
        NewFullOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::new_ones`].
#[derive(Clone, Copy, Debug)]
pub struct NewOnesOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for NewOnesOptions {
    fn default() -> Self {
        NewOnesOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::new_zeros`].
#[derive(Clone, Copy, Debug)]
pub struct NewZerosOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for NewZerosOptions {
    fn default() -> Self {
        NewZerosOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::norm`].
#[derive(Clone, Copy, Debug)]
pub struct NormOptions {
    /// `p`
    pub p: Scalar,
}

impl Default for NormOptions {
    fn default() -> Self {
        NormOptions {
            p: Scalar::Int(2),
        }
    }
}

/// Defaults of [`LazyTensor::norm_dim`].
#[derive(Clone, Copy, Debug)]
pub struct NormDimOptions {
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for NormDimOptions {
    fn default() -> Self {
        NormDimOptions {
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::ones_like`].
#[derive(Clone, Copy, Debug)]
pub struct OnesLikeOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for OnesLikeOptions {
    fn default() -> Self {
        OnesLikeOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::prod`].
#[derive(Clone, Copy, Debug)]
pub struct ProdOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for ProdOptions {
    fn default() -> Self {
        ProdOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::prod_dim`].
#[derive(Clone, Copy, Debug)]
pub struct ProdDimOptions {
    /// `keepdim`
    pub keepdim: bool,
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for ProdDimOptions {
    fn default() -> Self {
        ProdDimOptions {
            keepdim: false,
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::put`].
#[derive(Clone, Copy, Debug)]
pub struct PutOptions {
    /// `accumulate`
    pub accumulate: bool,
}

impl Default for PutOptions {
    fn default() -> Self {
        PutOptions {
            accumulate: false,
        }
    }
}

/// Defaults of [`LazyTensor::rand_like`].
#[derive(Clone, Copy, Debug)]
pub struct RandLikeOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for RandLikeOptions {
    fn default() -> Self {
        RandLikeOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::randint_like`].
#[derive(Clone, Copy, Debug)]
pub struct RandintLikeOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for RandintLikeOptions {
    fn default() -> Self {
        RandintLikeOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::randint_like_low`].
#[derive(Clone, Copy, Debug)]
pub struct RandintLikeLowOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for RandintLikeLowOptions {
    fn default() -> Self {
        RandintLikeLowOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::randn_like`].
#[derive(Clone, Copy, Debug)]
pub struct RandnLikeOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for RandnLikeOptions {
    fn default() -> Self {
        RandnLikeOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::roll`].
#[derive(Clone, Copy, Debug)]
pub struct RollOptions<'a> {
    /// `dims`
    pub dims: &'a [i64],
}

impl Default for RollOptions<'_> {
    fn default() -> Self {
        RollOptions {
            dims: &[],
        }
    }
}

/// Defaults of [`LazyTensor::rsub`].
#[derive(Clone, Copy, Debug)]
pub struct RsubOptions {
    /// `alpha`
    pub alpha: Scalar,
}

impl Default for RsubOptions {
    fn default() -> Self {
        RsubOptions {
            alpha: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::scatter_reduce`].
#[derive(Clone, Copy, Debug)]
pub struct ScatterReduceOptions {
    /// `include_self`
    pub include_self: bool,
}

impl Default for ScatterReduceOptions {
    fn default() -> Self {
        ScatterReduceOptions {
            include_self: true,
        }
    }
}

/// Defaults of [`LazyTensor::slice_copy`].
#[derive(Clone, Copy, Debug)]
pub struct SliceCopyOptions {
    /// `dim`
    pub dim: i64,
    /// `start`
    pub start: Option<i64>,
    /// `end`
    pub end: Option<i64>,
    /// `step`
    pub step: i64,
}

impl Default for SliceCopyOptions {
    fn default() -> Self {
        SliceCopyOptions {
            dim: 0,
            start: None,
            end: None,
            step: 1,
        }
    }
}

/// Defaults of [`LazyTensor::slice_scatter`].
#[derive(Clone, Copy, Debug)]
pub struct SliceScatterOptions {
    /// `dim`
    pub dim: i64,
    /// `start`
    pub start: Option<i64>,
    /// `end`
    pub end: Option<i64>,
    /// `step`
    pub step: i64,
}

impl Default for SliceScatterOptions {
    fn default() -> Self {
        SliceScatterOptions {
            dim: 0,
            start: None,
            end: None,
            step: 1,
        }
    }
}

/// Defaults of [`LazyTensor::smooth_l1_loss`].
#[derive(Clone, Copy, Debug)]
pub struct SmoothL1LossOptions {
    /// `reduction`
    pub reduction: i64,
    /// `beta`
    pub beta: f64,
}

impl Default for SmoothL1LossOptions {
    fn default() -> Self {
        SmoothL1LossOptions {
            reduction: 1,
            beta: 1.0,
        }
    }
}

/// Defaults of [`LazyTensor::soft_margin_loss`].
#[derive(Clone, Copy, Debug)]
pub struct SoftMarginLossOptions {
    /// `reduction`
    pub reduction: i64,
}

impl Default for SoftMarginLossOptions {
    fn default() -> Self {
        SoftMarginLossOptions {
            reduction: 1,
        }
    }
}

/// Defaults of [`LazyTensor::softplus`].
#[derive(Clone, Copy, Debug)]
pub struct SoftplusOptions {
    /// `beta`
    pub beta: Scalar,
    /// `threshold`
    pub threshold: Scalar,
}

impl Default for SoftplusOptions {
    fn default() -> Self {
        SoftplusOptions {
            beta: Scalar::Int(1),
            threshold: Scalar::Int(20),
        }
    }
}

/// Defaults of [`LazyTensor::softshrink`].
#[derive(Clone, Copy, Debug)]
pub struct SoftshrinkOptions {
    /// `lambd`
    pub lambd: Scalar,
}

impl Default for SoftshrinkOptions {
    fn default() -> Self {
        SoftshrinkOptions {
            lambd: Scalar::Float(0.5),
        }
    }
}

/// Defaults of [`LazyTensor::sort`].
#[derive(Clone, Copy, Debug)]
pub struct SortOptions {
    /// `dim`
    pub dim: i64,
    /// `descending`
    pub descending: bool,
}

impl Default for SortOptions {
    fn default() -> Self {
        SortOptions {
            dim: -1,
            descending: false,
        }
    }
}

/// Defaults of [`LazyTensor::sort_stable`].
#[derive(Clone, Copy, Debug)]
pub struct SortStableOptions {
    /// `dim`
    pub dim: i64,
    /// `descending`
    pub descending: bool,
}

impl Default for SortStableOptions {
    fn default() -> Self {
        SortStableOptions {
            dim: -1,
            descending: false,
        }
    }
}

/// Defaults of [`LazyTensor::split_copy`].
#[derive(Clone, Copy, Debug)]
pub struct SplitCopyOptions {
    /// `dim`
    pub dim: i64,
}

impl Default for SplitCopyOptions {
    fn default() -> Self {
        SplitCopyOptions {
            dim: 0,
        }
    }
}

/// Defaults of [`LazyTensor::split_with_sizes_copy`].
#[derive(Clone, Copy, Debug)]
pub struct SplitWithSizesCopyOptions {
    /// `dim`
    pub dim: i64,
}

impl Default for SplitWithSizesCopyOptions {
    fn default() -> Self {
        SplitWithSizesCopyOptions {
            dim: 0,
        }
    }
}

/// Defaults of [`LazyTensor::stack`].
#[derive(Clone, Copy, Debug)]
pub struct StackOptions {
    /// `dim`
    pub dim: i64,
}

impl Default for StackOptions {
    fn default() -> Self {
        StackOptions {
            dim: 0,
        }
    }
}

/// Defaults of [`LazyTensor::std`].
#[derive(Clone, Copy, Debug)]
pub struct StdOptions {
    /// `unbiased`
    pub unbiased: bool,
}

impl Default for StdOptions {
    fn default() -> Self {
        StdOptions {
            unbiased: true,
        }
    }
}

/// Defaults of [`LazyTensor::std_correction`].
#[derive(Clone, Copy, Debug)]
pub struct StdCorrectionOptions<'a> {
    /// `dim`
    pub dim: Option<&'a [i64]>,
    /// `correction`
    pub correction: Option<Scalar>,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for StdCorrectionOptions<'_> {
    fn default() -> Self {
        StdCorrectionOptions {
            dim: None,
            correction: None,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::std_dim`].
#[derive(Clone, Copy, Debug)]
pub struct StdDimOptions {
    /// `unbiased`
    pub unbiased: bool,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for StdDimOptions {
    fn default() -> Self {
        StdDimOptions {
            unbiased: true,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::std_mean`].
#[derive(Clone, Copy, Debug)]
pub struct StdMeanOptions<'a> {
    /// `dim`
    pub dim: Option<&'a [i64]>,
    /// `correction`
    pub correction: Option<Scalar>,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for StdMeanOptions<'_> {
    fn default() -> Self {
        StdMeanOptions {
            dim: None,
            correction: None,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::sub`].
#[derive(Clone, Copy, Debug)]
pub struct SubOptions {
    /// `alpha`
    pub alpha: Scalar,
}

impl Default for SubOptions {
    fn default() -> Self {
        SubOptions {
            alpha: Scalar::Int(1),
        }
    }
}

/// Defaults of [`LazyTensor::sum`].
#[derive(Clone, Copy, Debug)]
pub struct SumOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for SumOptions {
    fn default() -> Self {
        SumOptions {
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::sum_dim`].
#[derive(Clone, Copy, Debug)]
pub struct SumDimOptions {
    /// `keepdim`
    pub keepdim: bool,
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for SumDimOptions {
    fn default() -> Self {
        SumDimOptions {
            keepdim: false,
            dtype: None,
        }
    }
}

/// Defaults of [`LazyTensor::svd`].
#[derive(Clone, Copy, Debug)]
pub struct SvdOptions {
    /// `some`
    pub some: bool,
    /// `compute_uv`
    pub compute_uv: bool,
}

impl Default for SvdOptions {
    fn default() -> Self {
        SvdOptions {
            some: true,
            compute_uv: true,
        }
    }
}

/// Defaults of [`LazyTensor::topk`].
#[derive(Clone, Copy, Debug)]
pub struct TopkOptions {
    /// `dim`
    pub dim: i64,
    /// `largest`
    pub largest: bool,
    /// `sorted`
    pub sorted: bool,
}

impl Default for TopkOptions {
    fn default() -> Self {
        TopkOptions {
            dim: -1,
            largest: true,
            sorted: true,
        }
    }
}

/// Defaults of [`LazyTensor::triangular_solve`].
#[derive(Clone, Copy, Debug)]
pub struct TriangularSolveOptions {
    /// `upper`
    pub upper: bool,
    /// `transpose`
    pub transpose: bool,
    /// `unitriangular`
    pub unitriangular: bool,
}

impl Default for TriangularSolveOptions {
    fn default() -> Self {
        TriangularSolveOptions {
            upper: true,
            transpose: false,
            unitriangular: false,
        }
    }
}

/// Defaults of [`LazyTensor::tril`].
#[derive(Clone, Copy, Debug)]
pub struct TrilOptions {
    /// `diagonal`
    pub diagonal: i64,
}

impl Default for TrilOptions {
    fn default() -> Self {
        TrilOptions {
            diagonal: 0,
        }
    }
}

/// Defaults of [`LazyTensor::triu`].
#[derive(Clone, Copy, Debug)]
pub struct TriuOptions {
    /// `diagonal`
    pub diagonal: i64,
}

impl Default for TriuOptions {
    fn default() -> Self {
        TriuOptions {
            diagonal: 0,
        }
    }
}

/// Defaults of [`LazyTensor::unbind_copy`].
#[derive(Clone, Copy, Debug)]
pub struct UnbindCopyOptions {
    /// `dim`
    pub dim: i64,
}

impl Default for UnbindCopyOptions {
    fn default() -> Self {
        UnbindCopyOptions {
            dim: 0,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_bicubic2d`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleBicubic2dOptions {
    /// `scales_h`
    pub scales_h: Option<f64>,
    /// `scales_w`
    pub scales_w: Option<f64>,
}

impl Default for UpsampleBicubic2dOptions {
    fn default() -> Self {
        UpsampleBicubic2dOptions {
            scales_h: None,
            scales_w: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_bicubic2d_backward`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleBicubic2dBackwardOptions {
    /// `scales_h`
    pub scales_h: Option<f64>,
    /// `scales_w`
    pub scales_w: Option<f64>,
}

impl Default for UpsampleBicubic2dBackwardOptions {
    fn default() -> Self {
        UpsampleBicubic2dBackwardOptions {
            scales_h: None,
            scales_w: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_bilinear2d`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleBilinear2dOptions {
    /// `scales_h`
    pub scales_h: Option<f64>,
    /// `scales_w`
    pub scales_w: Option<f64>,
}

impl Default for UpsampleBilinear2dOptions {
    fn default() -> Self {
        UpsampleBilinear2dOptions {
            scales_h: None,
            scales_w: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_bilinear2d_backward`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleBilinear2dBackwardOptions {
    /// `scales_h`
    pub scales_h: Option<f64>,
    /// `scales_w`
    pub scales_w: Option<f64>,
}

impl Default for UpsampleBilinear2dBackwardOptions {
    fn default() -> Self {
        UpsampleBilinear2dBackwardOptions {
            scales_h: None,
            scales_w: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_linear1d`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleLinear1dOptions {
    /// `scales`
    pub scales: Option<f64>,
}

impl Default for UpsampleLinear1dOptions {
    fn default() -> Self {
        UpsampleLinear1dOptions {
            scales: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_linear1d_backward`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleLinear1dBackwardOptions {
    /// `scales`
    pub scales: Option<f64>,
}

impl Default for UpsampleLinear1dBackwardOptions {
    fn default() -> Self {
        UpsampleLinear1dBackwardOptions {
            scales: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_nearest1d`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleNearest1dOptions {
    /// `scales`
    pub scales: Option<f64>,
}

impl Default for UpsampleNearest1dOptions {
    fn default() -> Self {
        UpsampleNearest1dOptions {
            scales: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_nearest1d_backward`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleNearest1dBackwardOptions {
    /// `scales`
    pub scales: Option<f64>,
}

impl Default for UpsampleNearest1dBackwardOptions {
    fn default() -> Self {
        UpsampleNearest1dBackwardOptions {
            scales: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_nearest2d`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleNearest2dOptions {
    /// `scales_h`
    pub scales_h: Option<f64>,
    /// `scales_w`
    pub scales_w: Option<f64>,
}

impl Default for UpsampleNearest2dOptions {
    fn default() -> Self {
        UpsampleNearest2dOptions {
            scales_h: None,
            scales_w: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_nearest2d_backward`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleNearest2dBackwardOptions {
    /// `scales_h`
    pub scales_h: Option<f64>,
    /// `scales_w`
    pub scales_w: Option<f64>,
}

impl Default for UpsampleNearest2dBackwardOptions {
    fn default() -> Self {
        UpsampleNearest2dBackwardOptions {
            scales_h: None,
            scales_w: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_nearest3d`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleNearest3dOptions {
    /// `scales_d`
    pub scales_d: Option<f64>,
    /// `scales_h`
    pub scales_h: Option<f64>,
    /// `scales_w`
    pub scales_w: Option<f64>,
}

impl Default for UpsampleNearest3dOptions {
    fn default() -> Self {
        UpsampleNearest3dOptions {
            scales_d: None,
            scales_h: None,
            scales_w: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_nearest3d_backward`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleNearest3dBackwardOptions {
    /// `scales_d`
    pub scales_d: Option<f64>,
    /// `scales_h`
    pub scales_h: Option<f64>,
    /// `scales_w`
    pub scales_w: Option<f64>,
}

impl Default for UpsampleNearest3dBackwardOptions {
    fn default() -> Self {
        UpsampleNearest3dBackwardOptions {
            scales_d: None,
            scales_h: None,
            scales_w: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_trilinear3d`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleTrilinear3dOptions {
    /// `scales_d`
    pub scales_d: Option<f64>,
    /// `scales_h`
    pub scales_h: Option<f64>,
    /// `scales_w`
    pub scales_w: Option<f64>,
}

impl Default for UpsampleTrilinear3dOptions {
    fn default() -> Self {
        UpsampleTrilinear3dOptions {
            scales_d: None,
            scales_h: None,
            scales_w: None,
        }
    }
}

/// Defaults of [`LazyTensor::upsample_trilinear3d_backward`].
#[derive(Clone, Copy, Debug)]
pub struct UpsampleTrilinear3dBackwardOptions {
    /// `scales_d`
    pub scales_d: Option<f64>,
    /// `scales_h`
    pub scales_h: Option<f64>,
    /// `scales_w`
    pub scales_w: Option<f64>,
}

impl Default for UpsampleTrilinear3dBackwardOptions {
    fn default() -> Self {
        UpsampleTrilinear3dBackwardOptions {
            scales_d: None,
            scales_h: None,
            scales_w: None,
        }
    }
}

/// Defaults of [`LazyTensor::var`].
#[derive(Clone, Copy, Debug)]
pub struct VarOptions {
    /// `unbiased`
    pub unbiased: bool,
}

impl Default for VarOptions {
    fn default() -> Self {
        VarOptions {
            unbiased: true,
        }
    }
}

/// Defaults of [`LazyTensor::var_correction`].
#[derive(Clone, Copy, Debug)]
pub struct VarCorrectionOptions<'a> {
    /// `dim`
    pub dim: Option<&'a [i64]>,
    /// `correction`
    pub correction: Option<Scalar>,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for VarCorrectionOptions<'_> {
    fn default() -> Self {
        VarCorrectionOptions {
            dim: None,
            correction: None,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::var_dim`].
#[derive(Clone, Copy, Debug)]
pub struct VarDimOptions {
    /// `unbiased`
    pub unbiased: bool,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for VarDimOptions {
    fn default() -> Self {
        VarDimOptions {
            unbiased: true,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::var_mean`].
#[derive(Clone, Copy, Debug)]
pub struct VarMeanOptions<'a> {
    /// `dim`
    pub dim: Option<&'a [i64]>,
    /// `correction`
    pub correction: Option<Scalar>,
    /// `keepdim`
    pub keepdim: bool,
}

impl Default for VarMeanOptions<'_> {
    fn default() -> Self {
        VarMeanOptions {
            dim: None,
            correction: None,
            keepdim: false,
        }
    }
}

/// Defaults of [`LazyTensor::zeros_like`].
#[derive(Clone, Copy, Debug)]
pub struct ZerosLikeOptions {
    /// `dtype`
    pub dtype: Option<DType>,
}

impl Default for ZerosLikeOptions {
    fn default() -> Self {
        ZerosLikeOptions {
            dtype: None,
        }
    }
}
