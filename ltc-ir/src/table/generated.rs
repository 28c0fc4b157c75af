//! The operator table. Written by `cargo xtask codegen` from `ltc-ir/ops.toml`; do not edit.

use super::{ArgKind as K, Compute, Over, Reduce, Row, arg as a};
use crate::{
    props::{OpClass as C, Props as P},
    rules as r,
};

/// Operators with a row, for matching.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u16)]
pub enum OpCode {
    /// `_adaptive_avg_pool2d`
    UnderscoreAdaptiveAvgPool2d,
    /// `_adaptive_avg_pool2d_backward`
    UnderscoreAdaptiveAvgPool2dBackward,
    /// `_adaptive_avg_pool3d`
    UnderscoreAdaptiveAvgPool3d,
    /// `_adaptive_avg_pool3d_backward`
    UnderscoreAdaptiveAvgPool3dBackward,
    /// `_cdist_forward`
    UnderscoreCdistForward,
    /// `_copy_from`
    UnderscoreCopyFrom,
    /// `_copy_from_and_resize`
    UnderscoreCopyFromAndResize,
    /// `_linalg_det`
    UnderscoreLinalgDet,
    /// `_linalg_eigh`
    UnderscoreLinalgEigh,
    /// `_linalg_slogdet`
    UnderscoreLinalgSlogdet,
    /// `_linalg_svd`
    UnderscoreLinalgSvd,
    /// `_log_softmax`
    UnderscoreLogSoftmax,
    /// `_log_softmax_backward_data`
    UnderscoreLogSoftmaxBackwardData,
    /// `_reshape_alias`
    UnderscoreReshapeAlias,
    /// `_reshape_alias_copy`
    UnderscoreReshapeAliasCopy,
    /// `_safe_softmax`
    UnderscoreSafeSoftmax,
    /// `_softmax`
    UnderscoreSoftmax,
    /// `_softmax_backward_data`
    UnderscoreSoftmaxBackwardData,
    /// `_to_copy`
    UnderscoreToCopy,
    /// `_trilinear`
    UnderscoreTrilinear,
    /// `_unique2`
    UnderscoreUnique2,
    /// `_unsafe_view`
    UnderscoreUnsafeView,
    /// `abs`
    Abs,
    /// `acos`
    Acos,
    /// `acosh`
    Acosh,
    /// `adaptive_max_pool2d`
    AdaptiveMaxPool2d,
    /// `adaptive_max_pool2d_backward`
    AdaptiveMaxPool2dBackward,
    /// `adaptive_max_pool3d`
    AdaptiveMaxPool3d,
    /// `adaptive_max_pool3d_backward`
    AdaptiveMaxPool3dBackward,
    /// `add.Scalar`
    AddScalar,
    /// `add.Tensor`
    AddTensor,
    /// `add_.Tensor`
    AddTensorInPlace,
    /// `addbmm`
    Addbmm,
    /// `addcdiv`
    Addcdiv,
    /// `addcdiv_`
    AddcdivInPlace,
    /// `addcmul`
    Addcmul,
    /// `addcmul_`
    AddcmulInPlace,
    /// `addmm`
    Addmm,
    /// `addmv`
    Addmv,
    /// `addr`
    Addr,
    /// `alias`
    Alias,
    /// `alias_copy`
    AliasCopy,
    /// `all`
    All,
    /// `all.dim`
    AllDim,
    /// `all.dims`
    AllDims,
    /// `amax`
    Amax,
    /// `amin`
    Amin,
    /// `aminmax`
    Aminmax,
    /// `any`
    Any,
    /// `any.dim`
    AnyDim,
    /// `any.dims`
    AnyDims,
    /// `arange`
    Arange,
    /// `arange.start`
    ArangeStart,
    /// `arange.start_step`
    ArangeStartStep,
    /// `argmax`
    Argmax,
    /// `argmin`
    Argmin,
    /// `as_strided`
    AsStrided,
    /// `as_strided_copy`
    AsStridedCopy,
    /// `as_strided_scatter`
    AsStridedScatter,
    /// `asin`
    Asin,
    /// `asinh`
    Asinh,
    /// `atan`
    Atan,
    /// `atan2`
    Atan2,
    /// `atanh`
    Atanh,
    /// `avg_pool2d`
    AvgPool2d,
    /// `avg_pool2d_backward`
    AvgPool2dBackward,
    /// `avg_pool3d`
    AvgPool3d,
    /// `avg_pool3d_backward`
    AvgPool3dBackward,
    /// `baddbmm`
    Baddbmm,
    /// `bernoulli`
    Bernoulli,
    /// `bernoulli.Tensor`
    BernoulliTensor,
    /// `bernoulli.p`
    BernoulliP,
    /// `bernoulli_.Tensor`
    BernoulliTensorInPlace,
    /// `bernoulli_.float`
    BernoulliFloatInPlace,
    /// `binary_cross_entropy`
    BinaryCrossEntropy,
    /// `binary_cross_entropy_backward`
    BinaryCrossEntropyBackward,
    /// `binary_cross_entropy_with_logits`
    BinaryCrossEntropyWithLogits,
    /// `bincount`
    Bincount,
    /// `bitwise_and.Scalar`
    BitwiseAndScalar,
    /// `bitwise_and.Tensor`
    BitwiseAndTensor,
    /// `bitwise_left_shift.Tensor`
    BitwiseLeftShiftTensor,
    /// `bitwise_not`
    BitwiseNot,
    /// `bitwise_or.Scalar`
    BitwiseOrScalar,
    /// `bitwise_or.Tensor`
    BitwiseOrTensor,
    /// `bitwise_right_shift.Tensor`
    BitwiseRightShiftTensor,
    /// `bitwise_xor.Scalar`
    BitwiseXorScalar,
    /// `bitwise_xor.Tensor`
    BitwiseXorTensor,
    /// `block_diag`
    BlockDiag,
    /// `bmm`
    Bmm,
    /// `bucketize.Tensor`
    BucketizeTensor,
    /// `cat`
    Cat,
    /// `cauchy`
    Cauchy,
    /// `cauchy_`
    CauchyInPlace,
    /// `ceil`
    Ceil,
    /// `celu`
    Celu,
    /// `channel_shuffle`
    ChannelShuffle,
    /// `cholesky`
    Cholesky,
    /// `clamp`
    Clamp,
    /// `clamp.Tensor`
    ClampTensor,
    /// `clamp_max`
    ClampMax,
    /// `clamp_max.Tensor`
    ClampMaxTensor,
    /// `clamp_min`
    ClampMin,
    /// `clamp_min.Tensor`
    ClampMinTensor,
    /// `clone`
    Clone,
    /// `col2im`
    Col2im,
    /// `constant_pad_nd`
    ConstantPadNd,
    /// `contiguous`
    Contiguous,
    /// `convolution`
    Convolution,
    /// `convolution_backward`
    ConvolutionBackward,
    /// `copy`
    Copy,
    /// `copy_`
    CopyInPlace,
    /// `copysign.Tensor`
    CopysignTensor,
    /// `cos`
    Cos,
    /// `cosh`
    Cosh,
    /// `count_nonzero.dim_IntList`
    CountNonzeroDimIntList,
    /// `cummax`
    Cummax,
    /// `cummin`
    Cummin,
    /// `cumprod`
    Cumprod,
    /// `cumsum`
    Cumsum,
    /// `deg2rad`
    Deg2rad,
    /// `detach`
    Detach,
    /// `detach_copy`
    DetachCopy,
    /// `diag_embed`
    DiagEmbed,
    /// `diagonal`
    Diagonal,
    /// `diagonal_backward`
    DiagonalBackward,
    /// `diagonal_copy`
    DiagonalCopy,
    /// `diagonal_scatter`
    DiagonalScatter,
    /// `digamma`
    Digamma,
    /// `div.Scalar`
    DivScalar,
    /// `div.Scalar_mode`
    DivScalarMode,
    /// `div.Tensor`
    DivTensor,
    /// `div.Tensor_mode`
    DivTensorMode,
    /// `dot`
    Dot,
    /// `elu`
    Elu,
    /// `elu_backward`
    EluBackward,
    /// `embedding`
    Embedding,
    /// `embedding_dense_backward`
    EmbeddingDenseBackward,
    /// `empty.memory_format`
    EmptyMemoryFormat,
    /// `empty_like`
    EmptyLike,
    /// `empty_strided`
    EmptyStrided,
    /// `eq.Scalar`
    EqScalar,
    /// `eq.Tensor`
    EqTensor,
    /// `erf`
    Erf,
    /// `erfc`
    Erfc,
    /// `erfinv`
    Erfinv,
    /// `exp`
    Exp,
    /// `exp2`
    Exp2,
    /// `expand`
    Expand,
    /// `expand_copy`
    ExpandCopy,
    /// `expm1`
    Expm1,
    /// `exponential`
    Exponential,
    /// `exponential_`
    ExponentialInPlace,
    /// `eye`
    Eye,
    /// `eye.m`
    EyeM,
    /// `fill.Scalar`
    FillScalar,
    /// `fill.Tensor`
    FillTensor,
    /// `fill_.Scalar`
    FillScalarInPlace,
    /// `fill_.Tensor`
    FillTensorInPlace,
    /// `flip`
    Flip,
    /// `floor`
    Floor,
    /// `floor_divide`
    FloorDivide,
    /// `fmax`
    Fmax,
    /// `fmin`
    Fmin,
    /// `fmod.Scalar`
    FmodScalar,
    /// `fmod.Tensor`
    FmodTensor,
    /// `frac`
    Frac,
    /// `full`
    Full,
    /// `full_like`
    FullLike,
    /// `gather`
    Gather,
    /// `gcd`
    Gcd,
    /// `ge.Scalar`
    GeScalar,
    /// `ge.Tensor`
    GeTensor,
    /// `gelu`
    Gelu,
    /// `gelu_backward`
    GeluBackward,
    /// `geometric`
    Geometric,
    /// `geometric_`
    GeometricInPlace,
    /// `glu`
    Glu,
    /// `glu_backward`
    GluBackward,
    /// `glu_jvp`
    GluJvp,
    /// `grid_sampler_2d`
    GridSampler2d,
    /// `grid_sampler_2d_backward`
    GridSampler2dBackward,
    /// `grid_sampler_3d`
    GridSampler3d,
    /// `grid_sampler_3d_backward`
    GridSampler3dBackward,
    /// `gt.Scalar`
    GtScalar,
    /// `gt.Tensor`
    GtTensor,
    /// `hardshrink`
    Hardshrink,
    /// `hardshrink_backward`
    HardshrinkBackward,
    /// `hardsigmoid`
    Hardsigmoid,
    /// `hardsigmoid_backward`
    HardsigmoidBackward,
    /// `hardswish`
    Hardswish,
    /// `hardswish_backward`
    HardswishBackward,
    /// `hardtanh`
    Hardtanh,
    /// `hardtanh_backward`
    HardtanhBackward,
    /// `heaviside`
    Heaviside,
    /// `histc`
    Histc,
    /// `huber_loss`
    HuberLoss,
    /// `huber_loss_backward`
    HuberLossBackward,
    /// `hypot`
    Hypot,
    /// `i0`
    I0,
    /// `im2col`
    Im2col,
    /// `index.Tensor`
    IndexTensor,
    /// `index_add`
    IndexAdd,
    /// `index_copy`
    IndexCopy,
    /// `index_fill.int_Scalar`
    IndexFillIntScalar,
    /// `index_put`
    IndexPut,
    /// `index_select`
    IndexSelect,
    /// `inverse`
    Inverse,
    /// `isinf`
    Isinf,
    /// `isnan`
    Isnan,
    /// `isneginf`
    Isneginf,
    /// `isposinf`
    Isposinf,
    /// `kthvalue`
    Kthvalue,
    /// `lcm`
    Lcm,
    /// `le.Scalar`
    LeScalar,
    /// `le.Tensor`
    LeTensor,
    /// `leaky_relu`
    LeakyRelu,
    /// `leaky_relu_backward`
    LeakyReluBackward,
    /// `lerp.Scalar`
    LerpScalar,
    /// `lerp.Tensor`
    LerpTensor,
    /// `lgamma`
    Lgamma,
    /// `lift`
    Lift,
    /// `lift_fresh`
    LiftFresh,
    /// `lift_fresh_copy`
    LiftFreshCopy,
    /// `linalg_cholesky_ex`
    LinalgCholeskyEx,
    /// `linalg_cross`
    LinalgCross,
    /// `linalg_inv_ex`
    LinalgInvEx,
    /// `linalg_lu_factor_ex`
    LinalgLuFactorEx,
    /// `linalg_pinv.atol_rtol_tensor`
    LinalgPinvAtolRtolTensor,
    /// `linalg_qr`
    LinalgQr,
    /// `linalg_solve_triangular`
    LinalgSolveTriangular,
    /// `linalg_vector_norm`
    LinalgVectorNorm,
    /// `linspace`
    Linspace,
    /// `log`
    Log,
    /// `log10`
    Log10,
    /// `log1p`
    Log1p,
    /// `log2`
    Log2,
    /// `log_normal`
    LogNormal,
    /// `log_normal_`
    LogNormalInPlace,
    /// `log_sigmoid_backward`
    LogSigmoidBackward,
    /// `log_sigmoid_forward`
    LogSigmoidForward,
    /// `logaddexp`
    Logaddexp,
    /// `logaddexp2`
    Logaddexp2,
    /// `logcumsumexp`
    Logcumsumexp,
    /// `logdet`
    Logdet,
    /// `logical_and`
    LogicalAnd,
    /// `logical_not`
    LogicalNot,
    /// `logical_or`
    LogicalOr,
    /// `logical_xor`
    LogicalXor,
    /// `logit`
    Logit,
    /// `logit_backward`
    LogitBackward,
    /// `logspace`
    Logspace,
    /// `logsumexp`
    Logsumexp,
    /// `lt.Scalar`
    LtScalar,
    /// `lt.Tensor`
    LtTensor,
    /// `masked_fill.Scalar`
    MaskedFillScalar,
    /// `masked_fill.Tensor`
    MaskedFillTensor,
    /// `masked_scatter`
    MaskedScatter,
    /// `masked_select`
    MaskedSelect,
    /// `max`
    Max,
    /// `max.dim`
    MaxDim,
    /// `max_pool2d_with_indices`
    MaxPool2dWithIndices,
    /// `max_pool2d_with_indices_backward`
    MaxPool2dWithIndicesBackward,
    /// `max_pool3d`
    MaxPool3d,
    /// `max_pool3d_with_indices`
    MaxPool3dWithIndices,
    /// `max_pool3d_with_indices_backward`
    MaxPool3dWithIndicesBackward,
    /// `maximum`
    Maximum,
    /// `mean`
    Mean,
    /// `mean.dim`
    MeanDim,
    /// `median`
    Median,
    /// `median.dim`
    MedianDim,
    /// `min`
    Min,
    /// `min.dim`
    MinDim,
    /// `minimum`
    Minimum,
    /// `mish`
    Mish,
    /// `mm`
    Mm,
    /// `mode`
    Mode,
    /// `mse_loss`
    MseLoss,
    /// `mse_loss_backward`
    MseLossBackward,
    /// `mul.Scalar`
    MulScalar,
    /// `mul.Tensor`
    MulTensor,
    /// `multinomial`
    Multinomial,
    /// `mv`
    Mv,
    /// `nansum`
    Nansum,
    /// `narrow`
    Narrow,
    /// `narrow_copy`
    NarrowCopy,
    /// `native_batch_norm`
    NativeBatchNorm,
    /// `native_batch_norm_backward`
    NativeBatchNormBackward,
    /// `native_dropout`
    NativeDropout,
    /// `native_dropout_backward`
    NativeDropoutBackward,
    /// `native_group_norm`
    NativeGroupNorm,
    /// `native_group_norm_backward`
    NativeGroupNormBackward,
    /// `native_layer_norm`
    NativeLayerNorm,
    /// `native_layer_norm_backward`
    NativeLayerNormBackward,
    /// `ne.Scalar`
    NeScalar,
    /// `ne.Tensor`
    NeTensor,
    /// `neg`
    Neg,
    /// `new_empty`
    NewEmpty,
    /// `new_empty_strided`
    NewEmptyStrided,
    /// `new_full`
    NewFull,
    /// `new_ones`
    NewOnes,
    /// `new_zeros`
    NewZeros,
    /// `nextafter`
    Nextafter,
    /// `nll_loss2d_backward`
    NllLoss2dBackward,
    /// `nll_loss2d_forward`
    NllLoss2dForward,
    /// `nll_loss_backward`
    NllLossBackward,
    /// `nll_loss_forward`
    NllLossForward,
    /// `nonzero`
    Nonzero,
    /// `norm.Scalar`
    NormScalar,
    /// `norm.ScalarOpt_dim`
    NormScalarOptDim,
    /// `norm.ScalarOpt_dim_dtype`
    NormScalarOptDimDtype,
    /// `normal.Tensor_Tensor`
    NormalTensorTensor,
    /// `normal.Tensor_float`
    NormalTensorFloat,
    /// `normal.float_Tensor`
    NormalFloatTensor,
    /// `normal_`
    NormalInPlace,
    /// `normal_functional`
    NormalFunctional,
    /// `ones`
    Ones,
    /// `ones_like`
    OnesLike,
    /// `permute`
    Permute,
    /// `permute_copy`
    PermuteCopy,
    /// `pixel_shuffle`
    PixelShuffle,
    /// `pixel_unshuffle`
    PixelUnshuffle,
    /// `poisson`
    Poisson,
    /// `positive`
    Positive,
    /// `pow.Scalar`
    PowScalar,
    /// `pow.Tensor_Scalar`
    PowTensorScalar,
    /// `pow.Tensor_Tensor`
    PowTensorTensor,
    /// `prod`
    Prod,
    /// `prod.dim_int`
    ProdDimInt,
    /// `put`
    Put,
    /// `rad2deg`
    Rad2deg,
    /// `rand`
    Rand,
    /// `rand_like`
    RandLike,
    /// `randint`
    Randint,
    /// `randint.low`
    RandintLow,
    /// `randint_like`
    RandintLike,
    /// `randint_like.low_dtype`
    RandintLikeLowDtype,
    /// `randn`
    Randn,
    /// `randn_like`
    RandnLike,
    /// `random`
    Random,
    /// `random.from`
    RandomFrom,
    /// `random.to`
    RandomTo,
    /// `random_`
    RandomInPlace,
    /// `random_.from`
    RandomFromInPlace,
    /// `random_.to`
    RandomToInPlace,
    /// `randperm`
    Randperm,
    /// `reciprocal`
    Reciprocal,
    /// `reflection_pad1d`
    ReflectionPad1d,
    /// `reflection_pad2d`
    ReflectionPad2d,
    /// `reflection_pad3d`
    ReflectionPad3d,
    /// `relu`
    Relu,
    /// `remainder.Scalar`
    RemainderScalar,
    /// `remainder.Tensor`
    RemainderTensor,
    /// `renorm`
    Renorm,
    /// `repeat`
    Repeat,
    /// `replication_pad1d`
    ReplicationPad1d,
    /// `replication_pad2d`
    ReplicationPad2d,
    /// `replication_pad3d`
    ReplicationPad3d,
    /// `roll`
    Roll,
    /// `round`
    Round,
    /// `round.decimals`
    RoundDecimals,
    /// `rsqrt`
    Rsqrt,
    /// `rsub.Scalar`
    RsubScalar,
    /// `rsub.Tensor`
    RsubTensor,
    /// `scalar_tensor`
    ScalarTensor,
    /// `scatter.reduce`
    ScatterReduce,
    /// `scatter.src`
    ScatterSrc,
    /// `scatter.value`
    ScatterValue,
    /// `scatter_add`
    ScatterAdd,
    /// `scatter_reduce.two`
    ScatterReduceTwo,
    /// `searchsorted.Tensor`
    SearchsortedTensor,
    /// `select.int`
    SelectInt,
    /// `select_backward`
    SelectBackward,
    /// `select_copy.int`
    SelectCopyInt,
    /// `select_scatter`
    SelectScatter,
    /// `selu`
    Selu,
    /// `sgn`
    Sgn,
    /// `sigmoid`
    Sigmoid,
    /// `sigmoid_backward`
    SigmoidBackward,
    /// `sign`
    Sign,
    /// `signbit`
    Signbit,
    /// `silu`
    Silu,
    /// `silu_backward`
    SiluBackward,
    /// `sin`
    Sin,
    /// `sinc`
    Sinc,
    /// `sinh`
    Sinh,
    /// `slice.Tensor`
    SliceTensor,
    /// `slice_backward`
    SliceBackward,
    /// `slice_copy.Tensor`
    SliceCopyTensor,
    /// `slice_scatter`
    SliceScatter,
    /// `slogdet`
    Slogdet,
    /// `smooth_l1_loss`
    SmoothL1Loss,
    /// `smooth_l1_loss_backward`
    SmoothL1LossBackward,
    /// `soft_margin_loss`
    SoftMarginLoss,
    /// `softplus`
    Softplus,
    /// `softplus_backward`
    SoftplusBackward,
    /// `softshrink`
    Softshrink,
    /// `softshrink_backward`
    SoftshrinkBackward,
    /// `sort`
    Sort,
    /// `sort.stable`
    SortStable,
    /// `special_entr`
    SpecialEntr,
    /// `split.Tensor`
    SplitTensor,
    /// `split_copy.Tensor`
    SplitCopyTensor,
    /// `split_with_sizes`
    SplitWithSizes,
    /// `split_with_sizes_copy`
    SplitWithSizesCopy,
    /// `sqrt`
    Sqrt,
    /// `square`
    Square,
    /// `squeeze`
    Squeeze,
    /// `squeeze.dim`
    SqueezeDim,
    /// `squeeze.dims`
    SqueezeDims,
    /// `squeeze_copy`
    SqueezeCopy,
    /// `squeeze_copy.dim`
    SqueezeCopyDim,
    /// `squeeze_copy.dims`
    SqueezeCopyDims,
    /// `stack`
    Stack,
    /// `std`
    Std,
    /// `std.correction`
    StdCorrection,
    /// `std.dim`
    StdDim,
    /// `std_mean.correction`
    StdMeanCorrection,
    /// `sub.Scalar`
    SubScalar,
    /// `sub.Tensor`
    SubTensor,
    /// `sum`
    Sum,
    /// `sum.dim_IntList`
    SumDimIntList,
    /// `svd`
    Svd,
    /// `t`
    T,
    /// `t_copy`
    TCopy,
    /// `take`
    Take,
    /// `tan`
    Tan,
    /// `tanh`
    Tanh,
    /// `tanh_backward`
    TanhBackward,
    /// `threshold`
    Threshold,
    /// `threshold_backward`
    ThresholdBackward,
    /// `topk`
    Topk,
    /// `trace`
    Trace,
    /// `transpose.int`
    TransposeInt,
    /// `transpose_copy.int`
    TransposeCopyInt,
    /// `triangular_solve`
    TriangularSolve,
    /// `tril`
    Tril,
    /// `tril_indices`
    TrilIndices,
    /// `triu`
    Triu,
    /// `triu_indices`
    TriuIndices,
    /// `trunc`
    Trunc,
    /// `unbind.int`
    UnbindInt,
    /// `unbind_copy.int`
    UnbindCopyInt,
    /// `unfold`
    Unfold,
    /// `unfold_backward`
    UnfoldBackward,
    /// `unfold_copy`
    UnfoldCopy,
    /// `uniform`
    Uniform,
    /// `uniform_`
    UniformInPlace,
    /// `unsqueeze`
    Unsqueeze,
    /// `unsqueeze_copy`
    UnsqueezeCopy,
    /// `upsample_bicubic2d`
    UpsampleBicubic2d,
    /// `upsample_bicubic2d_backward`
    UpsampleBicubic2dBackward,
    /// `upsample_bilinear2d`
    UpsampleBilinear2d,
    /// `upsample_bilinear2d_backward`
    UpsampleBilinear2dBackward,
    /// `upsample_linear1d`
    UpsampleLinear1d,
    /// `upsample_linear1d_backward`
    UpsampleLinear1dBackward,
    /// `upsample_nearest1d`
    UpsampleNearest1d,
    /// `upsample_nearest1d_backward`
    UpsampleNearest1dBackward,
    /// `upsample_nearest2d`
    UpsampleNearest2d,
    /// `upsample_nearest2d_backward`
    UpsampleNearest2dBackward,
    /// `upsample_nearest3d`
    UpsampleNearest3d,
    /// `upsample_nearest3d_backward`
    UpsampleNearest3dBackward,
    /// `upsample_trilinear3d`
    UpsampleTrilinear3d,
    /// `upsample_trilinear3d_backward`
    UpsampleTrilinear3dBackward,
    /// `var`
    Var,
    /// `var.correction`
    VarCorrection,
    /// `var.dim`
    VarDim,
    /// `var_mean.correction`
    VarMeanCorrection,
    /// `vdot`
    Vdot,
    /// `view`
    View,
    /// `view_copy`
    ViewCopy,
    /// `where.self`
    WhereSelf,
    /// `xlogy.Tensor`
    XlogyTensor,
    /// `zero`
    Zero,
    /// `zero_`
    ZeroInPlace,
    /// `zeros`
    Zeros,
    /// `zeros_like`
    ZerosLike,
}

/// Rows, sorted by name.
#[rustfmt::skip]
pub(super) static ROWS: &[Row] = &[
    Row { name: "aten::_adaptive_avg_pool2d", code: OpCode::UnderscoreAdaptiveAvgPool2d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::pool_adaptive::adaptive_avg_pool2d, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None)], results: 1, schema: "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor" },
    Row { name: "aten::_adaptive_avg_pool2d_backward", code: OpCode::UnderscoreAdaptiveAvgPool2dBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::pool_adaptive::adaptive_avg_pool2d_backward, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None)], results: 1, schema: "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor" },
    Row { name: "aten::_adaptive_avg_pool3d", code: OpCode::UnderscoreAdaptiveAvgPool3d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::pool_adaptive::adaptive_avg_pool3d, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None)], results: 1, schema: "_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor" },
    Row { name: "aten::_adaptive_avg_pool3d_backward", code: OpCode::UnderscoreAdaptiveAvgPool3dBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::pool_adaptive::adaptive_avg_pool3d_backward, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None)], results: 1, schema: "_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor" },
    Row { name: "aten::_cdist_forward", code: OpCode::UnderscoreCdistForward, class: C::Linalg, props: P::NONE, rule: r::linalg::cdist_forward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("x1", K::Tensor, false, false, None), a("x2", K::Tensor, false, false, None), a("p", K::Float, false, false, None), a("compute_mode", K::Int, true, false, None)], results: 1, schema: "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor" },
    Row { name: "aten::_copy_from", code: OpCode::UnderscoreCopyFrom, class: C::Movement, props: P::NONE, rule: r::movement::copy_from, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dst", K::Tensor, false, false, None), a("non_blocking", K::Bool, false, false, Some("False"))], results: 1, schema: "_copy_from(Tensor self, Tensor dst, bool non_blocking=False) -> Tensor" },
    Row { name: "aten::_copy_from_and_resize", code: OpCode::UnderscoreCopyFromAndResize, class: C::Movement, props: P::NONE, rule: r::movement::copy_from, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dst", K::Tensor, false, false, None)], results: 1, schema: "_copy_from_and_resize(Tensor self, Tensor dst) -> Tensor" },
    Row { name: "aten::_linalg_det", code: OpCode::UnderscoreLinalgDet, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_det, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("A", K::Tensor, false, false, None)], results: 3, schema: "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)" },
    Row { name: "aten::_linalg_eigh", code: OpCode::UnderscoreLinalgEigh, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_eigh, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("A", K::Tensor, false, false, None), a("UPLO", K::Str, false, false, Some("\"L\"")), a("compute_v", K::Bool, false, false, Some("True"))], results: 2, schema: "_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)" },
    Row { name: "aten::_linalg_slogdet", code: OpCode::UnderscoreLinalgSlogdet, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_slogdet, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("A", K::Tensor, false, false, None)], results: 4, schema: "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)" },
    Row { name: "aten::_linalg_svd", code: OpCode::UnderscoreLinalgSvd, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_svd, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("A", K::Tensor, false, false, None), a("full_matrices", K::Bool, false, false, Some("False")), a("compute_uv", K::Bool, false, false, Some("True")), a("driver", K::Str, true, false, Some("None"))], results: 3, schema: "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)" },
    Row { name: "aten::_log_softmax", code: OpCode::UnderscoreLogSoftmax, class: C::Normalization, props: P::NONE.and(P::TOTAL), rule: r::norm::softmax, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::Dim(1), when: Some("!half_to_float"), writes: &[], results: &["x = self - amax(self); x - log(sum(exp(x)))"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("half_to_float", K::Bool, false, false, None)], results: 1, schema: "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor" },
    Row { name: "aten::_log_softmax_backward_data", code: OpCode::UnderscoreLogSoftmaxBackwardData, class: C::Normalization, props: P::NONE.and(P::TOTAL), rule: r::norm::softmax_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::Dim(2), when: None, writes: &[], results: &["grad_output - exp(output) * sum(grad_output)"] }), gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("input_dtype", K::DType, false, false, None)], results: 1, schema: "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor" },
    Row { name: "aten::_reshape_alias", code: OpCode::UnderscoreReshapeAlias, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None)], results: 1, schema: "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)" },
    Row { name: "aten::_reshape_alias_copy", code: OpCode::UnderscoreReshapeAliasCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None)], results: 1, schema: "_reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor" },
    Row { name: "aten::_safe_softmax", code: OpCode::UnderscoreSafeSoftmax, class: C::Normalization, props: P::NONE.and(P::TOTAL), rule: r::norm::safe_softmax, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::Dim(1), when: None, writes: &[], results: &["top = amax(self); e = exp(self - top); where(top == -1 / 0.0, 0, e / sum(e))"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::_softmax", code: OpCode::UnderscoreSoftmax, class: C::Normalization, props: P::NONE.and(P::TOTAL), rule: r::norm::softmax, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::Dim(1), when: Some("!half_to_float"), writes: &[], results: &["e = exp(self - amax(self)); e / sum(e)"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("half_to_float", K::Bool, false, false, None)], results: 1, schema: "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor" },
    Row { name: "aten::_softmax_backward_data", code: OpCode::UnderscoreSoftmaxBackwardData, class: C::Normalization, props: P::NONE.and(P::TOTAL), rule: r::norm::softmax_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::Dim(2), when: None, writes: &[], results: &["p = grad_output * output; p - output * sum(p)"] }), gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("input_dtype", K::DType, false, false, None)], results: 1, schema: "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor" },
    Row { name: "aten::_to_copy", code: OpCode::UnderscoreToCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::to_copy, numbers: None, overrides: false, expr: Some("self"), compute: Some(Compute::Moved), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None")), a("non_blocking", K::Bool, false, false, Some("False")), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor" },
    Row { name: "aten::_trilinear", code: OpCode::UnderscoreTrilinear, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::trilinear, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("i1", K::Tensor, false, false, None), a("i2", K::Tensor, false, false, None), a("i3", K::Tensor, false, false, None), a("expand1", K::Ints, false, false, None), a("expand2", K::Ints, false, false, None), a("expand3", K::Ints, false, false, None), a("sumdim", K::Ints, false, false, None), a("unroll_dim", K::Int, false, false, Some("1"))], results: 1, schema: "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor" },
    Row { name: "aten::_unique2", code: OpCode::UnderscoreUnique2, class: C::Movement, props: P::NONE.and(P::DATA_DEPENDENT), rule: r::movement::dynamic, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("sorted", K::Bool, false, false, Some("True")), a("return_inverse", K::Bool, false, false, Some("False")), a("return_counts", K::Bool, false, false, Some("False"))], results: 3, schema: "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)" },
    Row { name: "aten::_unsafe_view", code: OpCode::UnderscoreUnsafeView, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None)], results: 1, schema: "_unsafe_view(Tensor self, SymInt[] size) -> Tensor" },
    Row { name: "aten::abs", code: OpCode::Abs, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::real, numbers: None, overrides: false, expr: Some("abs(self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * sign(self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "abs(Tensor self) -> Tensor" },
    Row { name: "aten::acos", code: OpCode::Acos, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("acos(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "-grad * rsqrt(1 - self * self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "acos(Tensor self) -> Tensor" },
    Row { name: "aten::acosh", code: OpCode::Acosh, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("acosh(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * rsqrt(self * self - 1)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "acosh(Tensor self) -> Tensor" },
    Row { name: "aten::adaptive_max_pool2d", code: OpCode::AdaptiveMaxPool2d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::pool::adaptive_max_pool2d, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None)], results: 2, schema: "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)" },
    Row { name: "aten::adaptive_max_pool2d_backward", code: OpCode::AdaptiveMaxPool2dBackward, class: C::Pooling, props: P::NONE, rule: r::pool::adaptive_max_pool_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("indices", K::Tensor, false, false, None)], results: 1, schema: "adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor" },
    Row { name: "aten::adaptive_max_pool3d", code: OpCode::AdaptiveMaxPool3d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::pool::adaptive_max_pool3d, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None)], results: 2, schema: "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)" },
    Row { name: "aten::adaptive_max_pool3d_backward", code: OpCode::AdaptiveMaxPool3dBackward, class: C::Pooling, props: P::NONE, rule: r::pool::adaptive_max_pool_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("indices", K::Tensor, false, false, None)], results: 1, schema: "adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor" },
    Row { name: "aten::add.Scalar", code: OpCode::AddScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted_numbers, numbers: Some(r::numbers::alpha), overrides: false, expr: Some("fma(other, alpha, self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::add.Tensor", code: OpCode::AddTensor, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::promoted, numbers: Some(r::numbers::alpha), overrides: false, expr: Some("fma(other, alpha, self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "grad * alpha"), ("self", "grad")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::add_.Tensor", code: OpCode::AddTensorInPlace, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::movement::nothing_new, numbers: Some(r::numbers::alpha), overrides: false, expr: Some("fma(other, alpha, self)"), compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("other", K::Tensor, false, false, None), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)" },
    Row { name: "aten::addbmm", code: OpCode::Addbmm, class: C::Matmul, props: P::NONE.and(P::TOTAL), rule: r::matmul::addbmm, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("batch1", K::Tensor, false, false, None), a("batch2", K::Tensor, false, false, None), a("beta", K::Scalar, false, false, Some("1")), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::addcdiv", code: OpCode::Addcdiv, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: Some(r::numbers::computed), overrides: false, expr: Some("self + value * tensor1 / tensor2"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad"), ("tensor1", "grad * value / tensor2"), ("tensor2", "-grad * value * tensor1 / (tensor2 * tensor2)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("tensor1", K::Tensor, false, false, None), a("tensor2", K::Tensor, false, false, None), a("value", K::Scalar, false, false, Some("1"))], results: 1, schema: "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor" },
    Row { name: "aten::addcdiv_", code: OpCode::AddcdivInPlace, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::movement::nothing_new, numbers: Some(r::numbers::computed), overrides: false, expr: Some("self + value * tensor1 / tensor2"), compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("tensor1", K::Tensor, false, false, None), a("tensor2", K::Tensor, false, false, None), a("value", K::Scalar, false, false, Some("1"))], results: 1, schema: "addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)" },
    Row { name: "aten::addcmul", code: OpCode::Addcmul, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: Some(r::numbers::computed), overrides: false, expr: Some("fma(value * tensor1, tensor2, self)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad"), ("tensor1", "grad * value * tensor2"), ("tensor2", "grad * value * tensor1")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("tensor1", K::Tensor, false, false, None), a("tensor2", K::Tensor, false, false, None), a("value", K::Scalar, false, false, Some("1"))], results: 1, schema: "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor" },
    Row { name: "aten::addcmul_", code: OpCode::AddcmulInPlace, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::movement::nothing_new, numbers: Some(r::numbers::computed), overrides: false, expr: Some("fma(value * tensor1, tensor2, self)"), compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("tensor1", K::Tensor, false, false, None), a("tensor2", K::Tensor, false, false, None), a("value", K::Scalar, false, false, Some("1"))], results: 1, schema: "addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)" },
    Row { name: "aten::addmm", code: OpCode::Addmm, class: C::Matmul, props: P::NONE.and(P::TOTAL), rule: r::matmul::addmm, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("mat1", K::Tensor, false, false, None), a("mat2", K::Tensor, false, false, None), a("beta", K::Scalar, false, false, Some("1")), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::addmv", code: OpCode::Addmv, class: C::Matmul, props: P::NONE.and(P::TOTAL), rule: r::matmul::addmv, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("mat", K::Tensor, false, false, None), a("vec", K::Tensor, false, false, None), a("beta", K::Scalar, false, false, Some("1")), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::addr", code: OpCode::Addr, class: C::Matmul, props: P::NONE.and(P::TOTAL), rule: r::matmul::addr, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("vec1", K::Tensor, false, false, None), a("vec2", K::Tensor, false, false, None), a("beta", K::Scalar, false, false, Some("1")), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::alias", code: OpCode::Alias, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "alias(Tensor(a) self) -> Tensor(a)" },
    Row { name: "aten::alias_copy", code: OpCode::AliasCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "alias_copy(Tensor self) -> Tensor" },
    Row { name: "aten::all", code: OpCode::All, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::any, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "all(Tensor self) -> Tensor" },
    Row { name: "aten::all.dim", code: OpCode::AllDim, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::any_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor" },
    Row { name: "aten::all.dims", code: OpCode::AllDims, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::any_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor" },
    Row { name: "aten::amax", code: OpCode::Amax, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::amax, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: Some("the signs of zeros follow from where elements lie in libtorch"), reduce: Some(Reduce { over: Over::Dims(1), when: None, writes: &[], results: &["amax(self)"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, false, false, Some("[]")), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor" },
    Row { name: "aten::amin", code: OpCode::Amin, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::amax, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: Some("the signs of zeros follow from where elements lie in libtorch"), reduce: Some(Reduce { over: Over::Dims(1), when: None, writes: &[], results: &["amin(self)"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, false, false, Some("[]")), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor" },
    Row { name: "aten::aminmax", code: OpCode::Aminmax, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::aminmax, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False"))], results: 2, schema: "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)" },
    Row { name: "aten::any", code: OpCode::Any, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::any, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "any(Tensor self) -> Tensor" },
    Row { name: "aten::any.dim", code: OpCode::AnyDim, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::any_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor" },
    Row { name: "aten::any.dims", code: OpCode::AnyDims, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::any_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor" },
    Row { name: "aten::arange", code: OpCode::Arange, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::arange, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("end", K::Scalar, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::arange.start", code: OpCode::ArangeStart, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::arange_start, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("start", K::Scalar, false, false, None), a("end", K::Scalar, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::arange.start_step", code: OpCode::ArangeStartStep, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::arange_step, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("start", K::Scalar, false, false, None), a("end", K::Scalar, false, false, None), a("step", K::Scalar, false, false, Some("1")), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::argmax", code: OpCode::Argmax, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::argmax, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor" },
    Row { name: "aten::argmin", code: OpCode::Argmin, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::argmax, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor" },
    Row { name: "aten::as_strided", code: OpCode::AsStrided, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None), a("storage_offset", K::Int, true, false, Some("None"))], results: 1, schema: "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)" },
    Row { name: "aten::as_strided_copy", code: OpCode::AsStridedCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None), a("storage_offset", K::Int, true, false, Some("None"))], results: 1, schema: "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor" },
    Row { name: "aten::as_strided_scatter", code: OpCode::AsStridedScatter, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::scatter, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("src", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None), a("storage_offset", K::Int, true, false, Some("None"))], results: 1, schema: "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor" },
    Row { name: "aten::asin", code: OpCode::Asin, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("asin(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * rsqrt(1 - self * self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "asin(Tensor self) -> Tensor" },
    Row { name: "aten::asinh", code: OpCode::Asinh, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("asinh(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * rsqrt(self * self + 1)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "asinh(Tensor self) -> Tensor" },
    Row { name: "aten::atan", code: OpCode::Atan, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("atan(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad / (self * self + 1)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "atan(Tensor self) -> Tensor" },
    Row { name: "aten::atan2", code: OpCode::Atan2, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("atan2(self, other)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "grad * -self / (self * self + other * other)"), ("self", "grad * other / (self * self + other * other)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "atan2(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::atanh", code: OpCode::Atanh, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("atanh(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad / (1 - self * self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "atanh(Tensor self) -> Tensor" },
    Row { name: "aten::avg_pool2d", code: OpCode::AvgPool2d, class: C::Pooling, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::pool::avg_pool2d, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("kernel_size", K::Ints, false, false, None), a("stride", K::Ints, false, false, Some("[]")), a("padding", K::Ints, false, false, Some("[0,0]")), a("ceil_mode", K::Bool, false, false, Some("False")), a("count_include_pad", K::Bool, false, false, Some("True")), a("divisor_override", K::Int, true, false, Some("None"))], results: 1, schema: "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor" },
    Row { name: "aten::avg_pool2d_backward", code: OpCode::AvgPool2dBackward, class: C::Pooling, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::pool::avg_pool2d_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("kernel_size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None), a("padding", K::Ints, false, false, None), a("ceil_mode", K::Bool, false, false, None), a("count_include_pad", K::Bool, false, false, None), a("divisor_override", K::Int, true, false, None)], results: 1, schema: "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor" },
    Row { name: "aten::avg_pool3d", code: OpCode::AvgPool3d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::pool::avg_pool3d, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("kernel_size", K::Ints, false, false, None), a("stride", K::Ints, false, false, Some("[]")), a("padding", K::Ints, false, false, Some("[0,0,0]")), a("ceil_mode", K::Bool, false, false, Some("False")), a("count_include_pad", K::Bool, false, false, Some("True")), a("divisor_override", K::Int, true, false, Some("None"))], results: 1, schema: "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor" },
    Row { name: "aten::avg_pool3d_backward", code: OpCode::AvgPool3dBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::pool::avg_pool3d_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("kernel_size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None), a("padding", K::Ints, false, false, None), a("ceil_mode", K::Bool, false, false, None), a("count_include_pad", K::Bool, false, false, None), a("divisor_override", K::Int, true, false, None)], results: 1, schema: "avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor" },
    Row { name: "aten::baddbmm", code: OpCode::Baddbmm, class: C::Matmul, props: P::NONE.and(P::TOTAL), rule: r::matmul::baddbmm, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("batch1", K::Tensor, false, false, None), a("batch2", K::Tensor, false, false, None), a("beta", K::Scalar, false, false, Some("1")), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::bernoulli", code: OpCode::Bernoulli, class: C::Random, props: P::NONE, rule: r::random::bernoulli, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::bernoulli.Tensor", code: OpCode::BernoulliTensor, class: C::Random, props: P::NONE, rule: r::random::drawn, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("p", K::Tensor, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::bernoulli.p", code: OpCode::BernoulliP, class: C::Random, props: P::NONE, rule: r::random::bernoulli, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("p", K::Float, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::bernoulli_.Tensor", code: OpCode::BernoulliTensorInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("p", K::Tensor, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::bernoulli_.float", code: OpCode::BernoulliFloatInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("p", K::Float, false, false, Some("0.5")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::binary_cross_entropy", code: OpCode::BinaryCrossEntropy, class: C::Loss, props: P::NONE, rule: r::loss::binary_cross_entropy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, Some("None")), a("reduction", K::Int, false, false, Some("Mean"))], results: 1, schema: "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor" },
    Row { name: "aten::binary_cross_entropy_backward", code: OpCode::BinaryCrossEntropyBackward, class: C::Loss, props: P::NONE, rule: r::loss::binary_cross_entropy_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, Some("None")), a("reduction", K::Int, false, false, Some("Mean"))], results: 1, schema: "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor" },
    Row { name: "aten::binary_cross_entropy_with_logits", code: OpCode::BinaryCrossEntropyWithLogits, class: C::Loss, props: P::NONE.and(P::TOTAL), rule: r::loss::binary_cross_entropy_with_logits, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, Some("None")), a("pos_weight", K::Tensor, true, false, Some("None")), a("reduction", K::Int, false, false, Some("Mean"))], results: 1, schema: "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=Mean) -> Tensor" },
    Row { name: "aten::bincount", code: OpCode::Bincount, class: C::Movement, props: P::NONE.and(P::DATA_DEPENDENT), rule: r::movement::dynamic, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("weights", K::Tensor, true, false, Some("None")), a("minlength", K::Int, false, false, Some("0"))], results: 1, schema: "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor" },
    Row { name: "aten::bitwise_and.Scalar", code: OpCode::BitwiseAndScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::bitwise, numbers: None, overrides: false, expr: Some("bit_and(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::bitwise_and.Tensor", code: OpCode::BitwiseAndTensor, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::bitwise, numbers: None, overrides: false, expr: Some("bit_and(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::bitwise_left_shift.Tensor", code: OpCode::BitwiseLeftShiftTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::integral, numbers: None, overrides: false, expr: Some("shl(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::bitwise_not", code: OpCode::BitwiseNot, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::bitwise, numbers: None, overrides: false, expr: Some("bit_not(self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "bitwise_not(Tensor self) -> Tensor" },
    Row { name: "aten::bitwise_or.Scalar", code: OpCode::BitwiseOrScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::bitwise, numbers: None, overrides: false, expr: Some("bit_or(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::bitwise_or.Tensor", code: OpCode::BitwiseOrTensor, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::bitwise, numbers: None, overrides: false, expr: Some("bit_or(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::bitwise_right_shift.Tensor", code: OpCode::BitwiseRightShiftTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::integral, numbers: None, overrides: false, expr: Some("shr(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::bitwise_xor.Scalar", code: OpCode::BitwiseXorScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::bitwise, numbers: None, overrides: false, expr: Some("bit_xor(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::bitwise_xor.Tensor", code: OpCode::BitwiseXorTensor, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::bitwise, numbers: None, overrides: false, expr: Some("bit_xor(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::block_diag", code: OpCode::BlockDiag, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::block_diag, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("tensors", K::Tensors, false, false, None)], results: 1, schema: "block_diag(Tensor[] tensors) -> Tensor" },
    Row { name: "aten::bmm", code: OpCode::Bmm, class: C::Matmul, props: P::NONE.and(P::TOTAL), rule: r::matmul::bmm, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("mat2", K::Tensor, false, false, None)], results: 1, schema: "bmm(Tensor self, Tensor mat2) -> Tensor" },
    Row { name: "aten::bucketize.Tensor", code: OpCode::BucketizeTensor, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::bucketize, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("boundaries", K::Tensor, false, false, None), a("out_int32", K::Bool, false, false, Some("False")), a("right", K::Bool, false, false, Some("False"))], results: 1, schema: "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor" },
    Row { name: "aten::cat", code: OpCode::Cat, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::cat, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("tensors", K::Tensors, false, false, None), a("dim", K::Int, false, false, Some("0"))], results: 1, schema: "cat(Tensor[] tensors, int dim=0) -> Tensor" },
    Row { name: "aten::cauchy", code: OpCode::Cauchy, class: C::Random, props: P::NONE, rule: r::random::drawn, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("median", K::Float, false, false, Some("0")), a("sigma", K::Float, false, false, Some("1")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::cauchy_", code: OpCode::CauchyInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("median", K::Float, false, false, Some("0")), a("sigma", K::Float, false, false, Some("1")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::ceil", code: OpCode::Ceil, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("ceil(self)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 0")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "ceil(Tensor self) -> Tensor" },
    Row { name: "aten::celu", code: OpCode::Celu, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: Some(r::numbers::celu), overrides: false, expr: Some("where(self < 0, alpha * expm1(self / alpha), self)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * where(self > 0, 1, exp(self / alpha))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("alpha", K::Scalar, false, false, Some("1.0"))], results: 1, schema: "celu(Tensor self, Scalar alpha=1.0) -> Tensor" },
    Row { name: "aten::channel_shuffle", code: OpCode::ChannelShuffle, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::channel_shuffle, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("groups", K::Int, false, false, None)], results: 1, schema: "channel_shuffle(Tensor self, SymInt groups) -> Tensor" },
    Row { name: "aten::cholesky", code: OpCode::Cholesky, class: C::Linalg, props: P::NONE, rule: r::linalg::cholesky, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("upper", K::Bool, false, false, Some("False"))], results: 1, schema: "cholesky(Tensor self, bool upper=False) -> Tensor" },
    Row { name: "aten::clamp", code: OpCode::Clamp, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::clamp, numbers: Some(r::numbers::clamp), overrides: false, expr: Some("where(absent(max), where(absent(min), self, where(min > self, min, self)), where(absent(min), where(max < self, max, self), min(max, max(min, self))))"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where((absent(min) || self >= min) && (absent(max) || self <= max), grad, 0)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("min", K::Scalar, true, false, Some("None")), a("max", K::Scalar, true, false, Some("None"))], results: 1, schema: "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor" },
    Row { name: "aten::clamp.Tensor", code: OpCode::ClampTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::clamp, numbers: None, overrides: false, expr: Some("where(absent(max), where(absent(min), self, max(self, min)), where(absent(min), min(self, max), min(max(self, min), max)))"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("min", K::Tensor, true, false, Some("None")), a("max", K::Tensor, true, false, Some("None"))], results: 1, schema: "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor" },
    Row { name: "aten::clamp_max", code: OpCode::ClampMax, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted_numbers, numbers: Some(r::numbers::own), overrides: false, expr: Some("min(max, self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(self <= max, grad, 0)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("max", K::Scalar, false, false, None)], results: 1, schema: "clamp_max(Tensor self, Scalar max) -> Tensor" },
    Row { name: "aten::clamp_max.Tensor", code: OpCode::ClampMaxTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("min(self, max)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("max", K::Tensor, false, false, None)], results: 1, schema: "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor" },
    Row { name: "aten::clamp_min", code: OpCode::ClampMin, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted_numbers, numbers: Some(r::numbers::own), overrides: false, expr: Some("max(min, self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(self >= min, grad, 0)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("min", K::Scalar, false, false, None)], results: 1, schema: "clamp_min(Tensor self, Scalar min) -> Tensor" },
    Row { name: "aten::clamp_min.Tensor", code: OpCode::ClampMinTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("max(self, min)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("min", K::Tensor, false, false, None)], results: 1, schema: "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor" },
    Row { name: "aten::clone", code: OpCode::Clone, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::clone, numbers: None, overrides: false, expr: Some("self"), compute: Some(Compute::Moved), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor" },
    Row { name: "aten::col2im", code: OpCode::Col2im, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::col2im, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("kernel_size", K::Ints, false, false, None), a("dilation", K::Ints, false, false, None), a("padding", K::Ints, false, false, None), a("stride", K::Ints, false, false, None)], results: 1, schema: "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor" },
    Row { name: "aten::constant_pad_nd", code: OpCode::ConstantPadNd, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::constant_pad_nd, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("pad", K::Ints, false, false, None), a("value", K::Scalar, false, false, Some("0"))], results: 1, schema: "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor" },
    Row { name: "aten::contiguous", code: OpCode::Contiguous, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::contiguous_like_first, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("memory_format", K::MemoryFormat, false, false, Some("contiguous_format"))], results: 1, schema: "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)" },
    Row { name: "aten::convolution", code: OpCode::Convolution, class: C::Convolution, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::conv::convolution, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("input", K::Tensor, false, false, None), a("weight", K::Tensor, false, false, None), a("bias", K::Tensor, true, false, None), a("stride", K::Ints, false, false, None), a("padding", K::Ints, false, false, None), a("dilation", K::Ints, false, false, None), a("transposed", K::Bool, false, false, None), a("output_padding", K::Ints, false, false, None), a("groups", K::Int, false, false, None)], results: 1, schema: "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor" },
    Row { name: "aten::convolution_backward", code: OpCode::ConvolutionBackward, class: C::Convolution, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::conv::convolution_backward, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("input", K::Tensor, false, false, None), a("weight", K::Tensor, false, false, None), a("bias_sizes", K::Ints, true, false, None), a("stride", K::Ints, false, false, None), a("padding", K::Ints, false, false, None), a("dilation", K::Ints, false, false, None), a("transposed", K::Bool, false, false, None), a("output_padding", K::Ints, false, false, None), a("groups", K::Int, false, false, None), a("output_mask", K::Bools, false, false, None)], results: 3, schema: "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)" },
    Row { name: "aten::copy", code: OpCode::Copy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::copy, numbers: None, overrides: false, expr: Some("src"), compute: Some(Compute::Moved), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("src", K::Tensor, false, false, None), a("non_blocking", K::Bool, false, false, Some("False"))], results: 1, schema: "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor" },
    Row { name: "aten::copy_", code: OpCode::CopyInPlace, class: C::Movement, props: P::NONE.and(P::OVERWRITES).and(P::TOTAL), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("src", K::Tensor, false, false, None), a("non_blocking", K::Bool, false, false, Some("False"))], results: 1, schema: "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)" },
    Row { name: "aten::copysign.Tensor", code: OpCode::CopysignTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("copysign(self, other)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "copysign.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::cos", code: OpCode::Cos, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("cos(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * -sin(self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "cos(Tensor self) -> Tensor" },
    Row { name: "aten::cosh", code: OpCode::Cosh, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("cosh(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * sinh(self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "cosh(Tensor self) -> Tensor" },
    Row { name: "aten::count_nonzero.dim_IntList", code: OpCode::CountNonzeroDimIntList, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::count_nonzero, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, false, false, None)], results: 1, schema: "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor" },
    Row { name: "aten::cummax", code: OpCode::Cummax, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::cummax, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None)], results: 2, schema: "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)" },
    Row { name: "aten::cummin", code: OpCode::Cummin, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::cummax, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None)], results: 2, schema: "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)" },
    Row { name: "aten::cumprod", code: OpCode::Cumprod, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::cumsum, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::cumsum", code: OpCode::Cumsum, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::cumsum, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::deg2rad", code: OpCode::Deg2rad, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("self * 0.017453292519943295"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 0.017453292519943295")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "deg2rad(Tensor self) -> Tensor" },
    Row { name: "aten::detach", code: OpCode::Detach, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "detach(Tensor(a) self) -> Tensor(a)" },
    Row { name: "aten::detach_copy", code: OpCode::DetachCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "detach_copy(Tensor self) -> Tensor" },
    Row { name: "aten::diag_embed", code: OpCode::DiagEmbed, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::diag_embed, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("offset", K::Int, false, false, Some("0")), a("dim1", K::Int, false, false, Some("-2")), a("dim2", K::Int, false, false, Some("-1"))], results: 1, schema: "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor" },
    Row { name: "aten::diagonal", code: OpCode::Diagonal, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("offset", K::Int, false, false, Some("0")), a("dim1", K::Int, false, false, Some("0")), a("dim2", K::Int, false, false, Some("1"))], results: 1, schema: "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)" },
    Row { name: "aten::diagonal_backward", code: OpCode::DiagonalBackward, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("input_sizes", K::Ints, false, false, None), a("offset", K::Int, false, false, None), a("dim1", K::Int, false, false, None), a("dim2", K::Int, false, false, None)], results: 1, schema: "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor" },
    Row { name: "aten::diagonal_copy", code: OpCode::DiagonalCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("offset", K::Int, false, false, Some("0")), a("dim1", K::Int, false, false, Some("0")), a("dim2", K::Int, false, false, Some("1"))], results: 1, schema: "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor" },
    Row { name: "aten::diagonal_scatter", code: OpCode::DiagonalScatter, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::scatter, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("src", K::Tensor, false, false, None), a("offset", K::Int, false, false, Some("0")), a("dim1", K::Int, false, false, Some("0")), a("dim2", K::Int, false, false, Some("1"))], results: 1, schema: "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor" },
    Row { name: "aten::digamma", code: OpCode::Digamma, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("digamma(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "digamma(Tensor self) -> Tensor" },
    Row { name: "aten::div.Scalar", code: OpCode::DivScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_numbers, numbers: None, overrides: false, expr: Some("self / other"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "div.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::div.Scalar_mode", code: OpCode::DivScalarMode, class: C::Pointwise, props: P::NONE, rule: r::pointwise::div_mode, numbers: None, overrides: false, expr: Some("where(rounding_mode == 1, trunc_div(self, other), where(rounding_mode == 2, floor_div(self, other), self / other))"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: Some("libtorch's vectors give NaN where a quotient is huge, ours the remainder"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None), a("rounding_mode", K::Str, true, false, None)], results: 1, schema: "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor" },
    Row { name: "aten::div.Tensor", code: OpCode::DivTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("self / other"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "-grad * result / other"), ("self", "grad / other")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "div.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::div.Tensor_mode", code: OpCode::DivTensorMode, class: C::Pointwise, props: P::NONE, rule: r::pointwise::div_mode, numbers: None, overrides: false, expr: Some("where(rounding_mode == 1, trunc_div(self, other), where(rounding_mode == 2, floor_div(self, other), self / other))"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: Some("libtorch's vectors give NaN where a quotient is huge, ours the remainder"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None), a("rounding_mode", K::Str, true, false, None)], results: 1, schema: "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor" },
    Row { name: "aten::dot", code: OpCode::Dot, class: C::Matmul, props: P::NONE.and(P::TOTAL), rule: r::matmul::dot, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("tensor", K::Tensor, false, false, None)], results: 1, schema: "dot(Tensor self, Tensor tensor) -> Tensor" },
    Row { name: "aten::elu", code: OpCode::Elu, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: Some(r::numbers::computed), overrides: false, expr: Some("where(self < 0, expm1(self * input_scale) * alpha * scale, self * scale)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * where(self > 0, scale, input_scale * alpha * scale * exp(self * input_scale))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("alpha", K::Scalar, false, false, Some("1")), a("scale", K::Scalar, false, false, Some("1")), a("input_scale", K::Scalar, false, false, Some("1"))], results: 1, schema: "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor" },
    Row { name: "aten::elu_backward", code: OpCode::EluBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: Some(r::numbers::elu_backward), overrides: false, expr: Some("where(self_or_result > 0, grad_output * scale, where(is_result, grad_output * input_scale * (self_or_result + alpha * scale), grad_output * input_scale * alpha * scale * exp(self_or_result * input_scale)))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: Some("of NaN, libtorch gives a gradient or none by where an element lies"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("alpha", K::Scalar, false, false, None), a("scale", K::Scalar, false, false, None), a("input_scale", K::Scalar, false, false, None), a("is_result", K::Bool, false, false, None), a("self_or_result", K::Tensor, false, false, None)], results: 1, schema: "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor" },
    Row { name: "aten::embedding", code: OpCode::Embedding, class: C::Movement, props: P::NONE, rule: r::movement::embedding, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("weight", K::Tensor, false, false, None), a("indices", K::Tensor, false, false, None), a("padding_idx", K::Int, false, false, Some("-1")), a("scale_grad_by_freq", K::Bool, false, false, Some("False")), a("sparse", K::Bool, false, false, Some("False"))], results: 1, schema: "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor" },
    Row { name: "aten::embedding_dense_backward", code: OpCode::EmbeddingDenseBackward, class: C::Movement, props: P::NONE, rule: r::index::embedding_dense_backward, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("indices", K::Tensor, false, false, None), a("num_weights", K::Int, false, false, None), a("padding_idx", K::Int, false, false, None), a("scale_grad_by_freq", K::Bool, false, false, None)], results: 1, schema: "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor" },
    Row { name: "aten::empty.memory_format", code: OpCode::EmptyMemoryFormat, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::zeros, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("size", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None")), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor" },
    Row { name: "aten::empty_like", code: OpCode::EmptyLike, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::zeros_like, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None")), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor" },
    Row { name: "aten::empty_strided", code: OpCode::EmptyStrided, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::empty_strided, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::eq.Scalar", code: OpCode::EqScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self == other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "eq.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::eq.Tensor", code: OpCode::EqTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self == other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "eq.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::erf", code: OpCode::Erf, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("erf(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 1.1283791670955126 * exp(-(self * self))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "erf(Tensor self) -> Tensor" },
    Row { name: "aten::erfc", code: OpCode::Erfc, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("erfc(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * -1.1283791670955126 * exp(-(self * self))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "erfc(Tensor self) -> Tensor" },
    Row { name: "aten::erfinv", code: OpCode::Erfinv, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("erfinv(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 0.8862269254527579 * exp(result * result)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "erfinv(Tensor self) -> Tensor" },
    Row { name: "aten::exp", code: OpCode::Exp, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("exp(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * result")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "exp(Tensor self) -> Tensor" },
    Row { name: "aten::exp2", code: OpCode::Exp2, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("exp2(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * result * 0.6931471805599453")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "exp2(Tensor self) -> Tensor" },
    Row { name: "aten::expand", code: OpCode::Expand, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("implicit", K::Bool, false, false, Some("False"))], results: 1, schema: "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)" },
    Row { name: "aten::expand_copy", code: OpCode::ExpandCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("implicit", K::Bool, false, false, Some("False"))], results: 1, schema: "expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor" },
    Row { name: "aten::expm1", code: OpCode::Expm1, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("expm1(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * (result + 1)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "expm1(Tensor self) -> Tensor" },
    Row { name: "aten::exponential", code: OpCode::Exponential, class: C::Random, props: P::NONE, rule: r::random::drawn, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("lambd", K::Float, false, false, Some("1")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::exponential_", code: OpCode::ExponentialInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("lambd", K::Float, false, false, Some("1")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::eye", code: OpCode::Eye, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::eye, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("n", K::Int, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::eye.m", code: OpCode::EyeM, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::eye_m, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("n", K::Int, false, false, None), a("m", K::Int, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::fill.Scalar", code: OpCode::FillScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::fill, numbers: Some(r::numbers::stored), overrides: false, expr: Some("value"), compute: Some(Compute::Moved), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("value", K::Scalar, false, false, None)], results: 1, schema: "fill.Scalar(Tensor self, Scalar value) -> Tensor" },
    Row { name: "aten::fill.Tensor", code: OpCode::FillTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::fill, numbers: None, overrides: false, expr: Some("value"), compute: Some(Compute::Moved), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("value", K::Tensor, false, false, None)], results: 1, schema: "fill.Tensor(Tensor self, Tensor value) -> Tensor" },
    Row { name: "aten::fill_.Scalar", code: OpCode::FillScalarInPlace, class: C::Factory, props: P::NONE.and(P::OVERWRITES).and(P::TOTAL), rule: r::movement::nothing_new, numbers: Some(r::numbers::stored), overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("value", K::Scalar, false, false, None)], results: 1, schema: "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)" },
    Row { name: "aten::fill_.Tensor", code: OpCode::FillTensorInPlace, class: C::Factory, props: P::NONE.and(P::OVERWRITES).and(P::TOTAL), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("value", K::Tensor, false, false, None)], results: 1, schema: "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)" },
    Row { name: "aten::flip", code: OpCode::Flip, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::flip, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dims", K::Ints, false, false, None)], results: 1, schema: "flip(Tensor self, int[] dims) -> Tensor" },
    Row { name: "aten::floor", code: OpCode::Floor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("floor(self)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 0")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "floor(Tensor self) -> Tensor" },
    Row { name: "aten::floor_divide", code: OpCode::FloorDivide, class: C::Pointwise, props: P::NONE, rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("floor_div(self, other)"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: Some("libtorch's vectors give NaN where a quotient is huge, ours the remainder"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "floor_divide(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::fmax", code: OpCode::Fmax, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("fmax(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "where(self >= other || isnan(other), 0, grad)"), ("self", "where(self >= other || isnan(other), grad, 0)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "fmax(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::fmin", code: OpCode::Fmin, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("fmin(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "where(self <= other || isnan(other), 0, grad)"), ("self", "where(self <= other || isnan(other), grad, 0)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "fmin(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::fmod.Scalar", code: OpCode::FmodScalar, class: C::Pointwise, props: P::NONE, rule: r::pointwise::promoted_numbers, numbers: None, overrides: false, expr: Some("fmod(self, other)"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: Some("libtorch's vectors give NaN where a quotient is huge, ours the remainder"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "fmod.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::fmod.Tensor", code: OpCode::FmodTensor, class: C::Pointwise, props: P::NONE, rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("fmod(self, other)"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: Some("libtorch's vectors give NaN where a quotient is huge, ours the remainder"), reduce: None, gradients: &[("other", "-grad * trunc_div(self, other)"), ("self", "grad")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "fmod.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::frac", code: OpCode::Frac, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("self - trunc(self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "frac(Tensor self) -> Tensor" },
    Row { name: "aten::full", code: OpCode::Full, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::full, numbers: Some(r::numbers::stored), overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("size", K::Ints, false, false, None), a("fill_value", K::Scalar, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::full_like", code: OpCode::FullLike, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::full_like, numbers: Some(r::numbers::stored), overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("fill_value", K::Scalar, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None")), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor" },
    Row { name: "aten::gather", code: OpCode::Gather, class: C::Movement, props: P::NONE, rule: r::index::gather, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Tensor, false, false, None), a("sparse_grad", K::Bool, false, false, Some("False"))], results: 1, schema: "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor" },
    Row { name: "aten::gcd", code: OpCode::Gcd, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::integral, numbers: None, overrides: false, expr: Some("gcd(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "gcd(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::ge.Scalar", code: OpCode::GeScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self >= other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "ge.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::ge.Tensor", code: OpCode::GeTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self >= other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "ge.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::gelu", code: OpCode::Gelu, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: None, overrides: false, expr: Some("where(approximate == 1, 0.5 * self * (1 + tanh(0.7978845608028654 * (self + 0.044715 * (self * self * self)))), self * 0.5 * (1 + erf(self * 0.7071067811865476)))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("approximate", K::Str, false, false, Some("'none'"))], results: 1, schema: "gelu(Tensor self, *, str approximate='none') -> Tensor" },
    Row { name: "aten::gelu_backward", code: OpCode::GeluBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gelu_backward, numbers: None, overrides: false, expr: Some("grad_output * where(approximate == 1, fma(0.5 * self * (1 - tanh(0.7978845608028654 * (self + 0.044715 * (self * self * self))) * tanh(0.7978845608028654 * (self + 0.044715 * (self * self * self)))), 0.7978845608028654 * (1 + 0.134145 * (self * self)), 0.5 * (1 + tanh(0.7978845608028654 * (self + 0.044715 * (self * self * self))))), fma(self, exp(self * self * -0.5) * 0.3989422804014327, 0.5 * (1 + erf(self * 0.7071067811865476))))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("approximate", K::Str, false, false, Some("'none'"))], results: 1, schema: "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor" },
    Row { name: "aten::geometric", code: OpCode::Geometric, class: C::Random, props: P::NONE, rule: r::random::drawn, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("p", K::Float, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::geometric_", code: OpCode::GeometricInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("p", K::Float, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::glu", code: OpCode::Glu, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::glu, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, Some("-1"))], results: 1, schema: "glu(Tensor self, int dim=-1) -> Tensor" },
    Row { name: "aten::glu_backward", code: OpCode::GluBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::glu_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None)], results: 1, schema: "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor" },
    Row { name: "aten::glu_jvp", code: OpCode::GluJvp, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::glu_jvp, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("glu", K::Tensor, false, false, None), a("x", K::Tensor, false, false, None), a("dx", K::Tensor, false, false, None), a("dim", K::Int, false, false, None)], results: 1, schema: "glu_jvp(Tensor glu, Tensor x, Tensor dx, int dim) -> Tensor" },
    Row { name: "aten::grid_sampler_2d", code: OpCode::GridSampler2d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::grid_sampler, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("input", K::Tensor, false, false, None), a("grid", K::Tensor, false, false, None), a("interpolation_mode", K::Int, false, false, None), a("padding_mode", K::Int, false, false, None), a("align_corners", K::Bool, false, false, None)], results: 1, schema: "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor" },
    Row { name: "aten::grid_sampler_2d_backward", code: OpCode::GridSampler2dBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::grid_sampler_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("input", K::Tensor, false, false, None), a("grid", K::Tensor, false, false, None), a("interpolation_mode", K::Int, false, false, None), a("padding_mode", K::Int, false, false, None), a("align_corners", K::Bool, false, false, None), a("output_mask", K::Bools, false, false, None)], results: 2, schema: "grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)" },
    Row { name: "aten::grid_sampler_3d", code: OpCode::GridSampler3d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::grid_sampler, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("input", K::Tensor, false, false, None), a("grid", K::Tensor, false, false, None), a("interpolation_mode", K::Int, false, false, None), a("padding_mode", K::Int, false, false, None), a("align_corners", K::Bool, false, false, None)], results: 1, schema: "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor" },
    Row { name: "aten::grid_sampler_3d_backward", code: OpCode::GridSampler3dBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::grid_sampler_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("input", K::Tensor, false, false, None), a("grid", K::Tensor, false, false, None), a("interpolation_mode", K::Int, false, false, None), a("padding_mode", K::Int, false, false, None), a("align_corners", K::Bool, false, false, None), a("output_mask", K::Bools, false, false, None)], results: 2, schema: "grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)" },
    Row { name: "aten::gt.Scalar", code: OpCode::GtScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self > other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "gt.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::gt.Tensor", code: OpCode::GtTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self > other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "gt.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::hardshrink", code: OpCode::Hardshrink, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: Some(r::numbers::own), overrides: false, expr: Some("where(self >= -lambd && self <= lambd, 0, self)"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(self >= -lambd && self <= lambd, 0, grad)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("lambd", K::Scalar, false, false, Some("0.5"))], results: 1, schema: "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor" },
    Row { name: "aten::hardshrink_backward", code: OpCode::HardshrinkBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: None, overrides: false, expr: Some("where(self < -lambd || self > lambd, grad_out, 0)"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: Some("of NaN, libtorch gives a gradient or none by where an element lies"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_out", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("lambd", K::Scalar, false, false, None)], results: 1, schema: "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor" },
    Row { name: "aten::hardsigmoid", code: OpCode::Hardsigmoid, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: None, overrides: false, expr: Some("min(max(self + 3, 0), 6) / 6"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(self > -3 && self < 3, grad / 6, 0)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "hardsigmoid(Tensor self) -> Tensor" },
    Row { name: "aten::hardsigmoid_backward", code: OpCode::HardsigmoidBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: None, overrides: false, expr: Some("where(self > -3 && self < 3, grad_output * 0.1666666716337204, 0)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None)], results: 1, schema: "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor" },
    Row { name: "aten::hardswish", code: OpCode::Hardswish, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: None, overrides: false, expr: Some("self * min(max(self + 3, 0), 6) / 6"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(self < -3, 0, where(self <= 3, grad * (self / 3 + 0.5), grad))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "hardswish(Tensor self) -> Tensor" },
    Row { name: "aten::hardswish_backward", code: OpCode::HardswishBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: None, overrides: false, expr: Some("where(self <= -3, 0, where(self >= 3, grad_output, grad_output * (self / 3 + 0.5)))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: Some("of NaN, libtorch gives a gradient or none by where an element lies"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None)], results: 1, schema: "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor" },
    Row { name: "aten::hardtanh", code: OpCode::Hardtanh, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::no_bool, numbers: Some(r::numbers::clamp), overrides: false, expr: Some("min(max_val, max(min_val, self))"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(self > min_val && self < max_val, grad, 0)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("min_val", K::Scalar, false, false, Some("-1")), a("max_val", K::Scalar, false, false, Some("1"))], results: 1, schema: "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor" },
    Row { name: "aten::hardtanh_backward", code: OpCode::HardtanhBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: Some(r::numbers::computed), overrides: false, expr: Some("where(self > min_val && self < max_val, grad_output, 0)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: Some("of NaN, libtorch gives a gradient or none by where an element lies"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("min_val", K::Scalar, false, false, None), a("max_val", K::Scalar, false, false, None)], results: 1, schema: "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor" },
    Row { name: "aten::heaviside", code: OpCode::Heaviside, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::heaviside, numbers: None, overrides: false, expr: Some("where(self == 0, values, where(self > 0, 1, 0))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("values", K::Tensor, false, false, None)], results: 1, schema: "heaviside(Tensor self, Tensor values) -> Tensor" },
    Row { name: "aten::histc", code: OpCode::Histc, class: C::Reduction, props: P::NONE, rule: r::reduction::histc, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("bins", K::Int, false, false, Some("100")), a("min", K::Scalar, false, false, Some("0")), a("max", K::Scalar, false, false, Some("0"))], results: 1, schema: "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor" },
    Row { name: "aten::huber_loss", code: OpCode::HuberLoss, class: C::Loss, props: P::NONE.and(P::TOTAL), rule: r::loss::huber_loss, numbers: Some(r::numbers::huber_loss), overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("reduction", K::Int, false, false, Some("Mean")), a("delta", K::Float, false, false, Some("1.0"))], results: 1, schema: "huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor" },
    Row { name: "aten::huber_loss_backward", code: OpCode::HuberLossBackward, class: C::Loss, props: P::NONE.and(P::TOTAL), rule: r::loss::elementwise_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("reduction", K::Int, false, false, None), a("delta", K::Float, false, false, None)], results: 1, schema: "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor" },
    Row { name: "aten::hypot", code: OpCode::Hypot, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("hypot(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "grad * other / result"), ("self", "grad * self / result")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "hypot(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::i0", code: OpCode::I0, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("i0(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "i0(Tensor self) -> Tensor" },
    Row { name: "aten::im2col", code: OpCode::Im2col, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::im2col, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("kernel_size", K::Ints, false, false, None), a("dilation", K::Ints, false, false, None), a("padding", K::Ints, false, false, None), a("stride", K::Ints, false, false, None)], results: 1, schema: "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor" },
    Row { name: "aten::index.Tensor", code: OpCode::IndexTensor, class: C::Movement, props: P::NONE, rule: r::index::index, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("indices", K::OptionalTensors, false, false, None)], results: 1, schema: "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor" },
    Row { name: "aten::index_add", code: OpCode::IndexAdd, class: C::Movement, props: P::NONE, rule: r::index::index_add, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Tensor, false, false, None), a("source", K::Tensor, false, false, None), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::index_copy", code: OpCode::IndexCopy, class: C::Movement, props: P::NONE, rule: r::index::index_add, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Tensor, false, false, None), a("source", K::Tensor, false, false, None)], results: 1, schema: "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor" },
    Row { name: "aten::index_fill.int_Scalar", code: OpCode::IndexFillIntScalar, class: C::Movement, props: P::NONE, rule: r::index::index_fill, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Tensor, false, false, None), a("value", K::Scalar, false, false, None)], results: 1, schema: "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor" },
    Row { name: "aten::index_put", code: OpCode::IndexPut, class: C::Movement, props: P::NONE, rule: r::index::index_put, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("indices", K::OptionalTensors, false, false, None), a("values", K::Tensor, false, false, None), a("accumulate", K::Bool, false, false, Some("False"))], results: 1, schema: "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor" },
    Row { name: "aten::index_select", code: OpCode::IndexSelect, class: C::Movement, props: P::NONE, rule: r::index::index_select, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Tensor, false, false, None)], results: 1, schema: "index_select(Tensor self, int dim, Tensor index) -> Tensor" },
    Row { name: "aten::inverse", code: OpCode::Inverse, class: C::Linalg, props: P::NONE, rule: r::linalg::inverse, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "inverse(Tensor self) -> Tensor" },
    Row { name: "aten::isinf", code: OpCode::Isinf, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::logical, numbers: None, overrides: false, expr: Some("isinf(self)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "isinf(Tensor self) -> Tensor" },
    Row { name: "aten::isnan", code: OpCode::Isnan, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::logical, numbers: None, overrides: false, expr: Some("isnan(self)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "isnan(Tensor self) -> Tensor" },
    Row { name: "aten::isneginf", code: OpCode::Isneginf, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::logical, numbers: None, overrides: false, expr: Some("isinf(self) && self < 0"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "isneginf(Tensor self) -> Tensor" },
    Row { name: "aten::isposinf", code: OpCode::Isposinf, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::logical, numbers: None, overrides: false, expr: Some("isinf(self) && self > 0"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "isposinf(Tensor self) -> Tensor" },
    Row { name: "aten::kthvalue", code: OpCode::Kthvalue, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::kthvalue, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("k", K::Int, false, false, None), a("dim", K::Int, false, false, Some("-1")), a("keepdim", K::Bool, false, false, Some("False"))], results: 2, schema: "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)" },
    Row { name: "aten::lcm", code: OpCode::Lcm, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::integral, numbers: None, overrides: false, expr: Some("lcm(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "lcm(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::le.Scalar", code: OpCode::LeScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self <= other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "le.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::le.Tensor", code: OpCode::LeTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self <= other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "le.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::leaky_relu", code: OpCode::LeakyRelu, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: Some(r::numbers::computed), overrides: false, expr: Some("where(self > 0, self, self * negative_slope)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(self > 0, grad, grad * negative_slope)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("negative_slope", K::Scalar, false, false, Some("0.01"))], results: 1, schema: "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor" },
    Row { name: "aten::leaky_relu_backward", code: OpCode::LeakyReluBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: Some(r::numbers::leaky_relu_backward), overrides: false, expr: Some("where(self > 0, grad_output, grad_output * negative_slope)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("negative_slope", K::Scalar, false, false, None), a("self_is_result", K::Bool, false, false, None)], results: 1, schema: "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor" },
    Row { name: "aten::lerp.Scalar", code: OpCode::LerpScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::lerp, numbers: Some(r::numbers::computed), overrides: false, expr: Some("fma(where(abs(weight) < 0.5, weight, weight - 1), end - self, where(abs(weight) < 0.5, self, end))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: Some("with a weight of one, the signs of zeros follow from where elements lie in libtorch"), reduce: None, gradients: &[("end", "grad * weight"), ("self", "grad * (1 - weight)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("end", K::Tensor, false, false, None), a("weight", K::Scalar, false, false, None)], results: 1, schema: "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor" },
    Row { name: "aten::lerp.Tensor", code: OpCode::LerpTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::lerp, numbers: None, overrides: false, expr: Some("fma(where(abs(weight) < 0.5, weight, weight - 1), end - self, where(abs(weight) < 0.5, self, end))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: Some("with a weight of one, the signs of zeros follow from where elements lie in libtorch"), reduce: None, gradients: &[("end", "grad * weight"), ("self", "grad * (1 - weight)"), ("weight", "grad * (end - self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("end", K::Tensor, false, false, None), a("weight", K::Tensor, false, false, None)], results: 1, schema: "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor" },
    Row { name: "aten::lgamma", code: OpCode::Lgamma, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("lgamma(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * digamma(self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "lgamma(Tensor self) -> Tensor" },
    Row { name: "aten::lift", code: OpCode::Lift, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "lift(Tensor self) -> Tensor" },
    Row { name: "aten::lift_fresh", code: OpCode::LiftFresh, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "lift_fresh(Tensor(a) self) -> Tensor(a)" },
    Row { name: "aten::lift_fresh_copy", code: OpCode::LiftFreshCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::clone, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "lift_fresh_copy(Tensor self) -> Tensor" },
    Row { name: "aten::linalg_cholesky_ex", code: OpCode::LinalgCholeskyEx, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_cholesky_ex, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("upper", K::Bool, false, false, Some("False")), a("check_errors", K::Bool, false, false, Some("False"))], results: 2, schema: "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)" },
    Row { name: "aten::linalg_cross", code: OpCode::LinalgCross, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_cross, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None), a("dim", K::Int, false, false, Some("-1"))], results: 1, schema: "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor" },
    Row { name: "aten::linalg_inv_ex", code: OpCode::LinalgInvEx, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_inv_ex, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("A", K::Tensor, false, false, None), a("check_errors", K::Bool, false, false, Some("False"))], results: 2, schema: "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)" },
    Row { name: "aten::linalg_lu_factor_ex", code: OpCode::LinalgLuFactorEx, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_lu_factor_ex, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("A", K::Tensor, false, false, None), a("pivot", K::Bool, false, false, Some("True")), a("check_errors", K::Bool, false, false, Some("False"))], results: 3, schema: "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)" },
    Row { name: "aten::linalg_pinv.atol_rtol_tensor", code: OpCode::LinalgPinvAtolRtolTensor, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_pinv, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("atol", K::Tensor, true, false, Some("None")), a("rtol", K::Tensor, true, false, Some("None")), a("hermitian", K::Bool, false, false, Some("False"))], results: 1, schema: "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor" },
    Row { name: "aten::linalg_qr", code: OpCode::LinalgQr, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_qr, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("A", K::Tensor, false, false, None), a("mode", K::Str, false, false, Some("'reduced'"))], results: 2, schema: "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)" },
    Row { name: "aten::linalg_solve_triangular", code: OpCode::LinalgSolveTriangular, class: C::Linalg, props: P::NONE, rule: r::linalg::linalg_solve_triangular, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("B", K::Tensor, false, false, None), a("upper", K::Bool, false, false, None), a("left", K::Bool, false, false, Some("True")), a("unitriangular", K::Bool, false, false, Some("False"))], results: 1, schema: "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor" },
    Row { name: "aten::linalg_vector_norm", code: OpCode::LinalgVectorNorm, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::norm_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("ord", K::Scalar, false, false, Some("2")), a("dim", K::Ints, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False")), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::linspace", code: OpCode::Linspace, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::linspace, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("start", K::Scalar, false, false, None), a("end", K::Scalar, false, false, None), a("steps", K::Int, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::log", code: OpCode::Log, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("log(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad / self")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "log(Tensor self) -> Tensor" },
    Row { name: "aten::log10", code: OpCode::Log10, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("log10(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad / (self * 2.302585092994046)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "log10(Tensor self) -> Tensor" },
    Row { name: "aten::log1p", code: OpCode::Log1p, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("log1p(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad / (self + 1)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "log1p(Tensor self) -> Tensor" },
    Row { name: "aten::log2", code: OpCode::Log2, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("log2(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad / (self * 0.6931471805599453)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "log2(Tensor self) -> Tensor" },
    Row { name: "aten::log_normal", code: OpCode::LogNormal, class: C::Random, props: P::NONE, rule: r::random::drawn, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("mean", K::Float, false, false, Some("1")), a("std", K::Float, false, false, Some("2")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::log_normal_", code: OpCode::LogNormalInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("mean", K::Float, false, false, Some("1")), a("std", K::Float, false, false, Some("2")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::log_sigmoid_backward", code: OpCode::LogSigmoidBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient_of_one_dtype, numbers: None, overrides: false, expr: Some("rest = buffer / (1 + buffer); grad_output * where(self < 0, 1 - rest, 0 + rest)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("buffer", K::Tensor, false, false, None)], results: 1, schema: "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor" },
    Row { name: "aten::log_sigmoid_forward", code: OpCode::LogSigmoidForward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::log_sigmoid_forward, numbers: None, overrides: false, expr: Some("min(self, 0) - log1p(exp(-abs(self)))"), compute: Some(Compute::FloatOnly), no_fuse: Some("it has two results, and an expression is one"), inexact: None, reduce: None, gradients: &[("self", "grad * (1 - sigmoid(self))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 2, schema: "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)" },
    Row { name: "aten::logaddexp", code: OpCode::Logaddexp, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("where(isinf(self) && self == other, self, max(self, other) + log1p(exp(-abs(self - other))))"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "grad * exp(other - result)"), ("self", "grad * exp(self - result)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "logaddexp(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::logaddexp2", code: OpCode::Logaddexp2, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("where(isinf(self) && self == other, self, max(self, other) + log2(1 + exp2(-abs(self - other))))"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "grad * exp2(other - result)"), ("self", "grad * exp2(self - result)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "logaddexp2(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::logcumsumexp", code: OpCode::Logcumsumexp, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::logcumsumexp, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None)], results: 1, schema: "logcumsumexp(Tensor self, int dim) -> Tensor" },
    Row { name: "aten::logdet", code: OpCode::Logdet, class: C::Linalg, props: P::NONE, rule: r::linalg::logdet, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "logdet(Tensor self) -> Tensor" },
    Row { name: "aten::logical_and", code: OpCode::LogicalAnd, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::logical, numbers: None, overrides: false, expr: Some("self && other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "logical_and(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::logical_not", code: OpCode::LogicalNot, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::logical, numbers: None, overrides: false, expr: Some("!self"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "logical_not(Tensor self) -> Tensor" },
    Row { name: "aten::logical_or", code: OpCode::LogicalOr, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::logical, numbers: None, overrides: false, expr: Some("self || other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "logical_or(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::logical_xor", code: OpCode::LogicalXor, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::logical, numbers: None, overrides: false, expr: Some("bit_xor(self != 0, other != 0)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "logical_xor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::logit", code: OpCode::Logit, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: Some(r::numbers::own), overrides: false, expr: Some("where(absent(eps), log(self / (1 - self)), log(where(self < eps, eps, where(self > 1 - eps, 1 - eps, self)) / (1 - where(self < eps, eps, where(self > 1 - eps, 1 - eps, self)))))"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(absent(eps) || (self >= eps && self <= 1 - eps), grad / (self * (1 - self)), 0)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("eps", K::Float, true, false, Some("None"))], results: 1, schema: "logit(Tensor self, float? eps=None) -> Tensor" },
    Row { name: "aten::logit_backward", code: OpCode::LogitBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: Some(r::numbers::own), overrides: false, expr: Some("where(absent(eps) || eps < 0, where(self < 0 || self > 1, 0.0 / 0.0, grad_output / (self * (1 - self))), where(self >= eps && self <= 1 - eps, grad_output / (self * (1 - self)), 0))"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: Some("of NaN, libtorch gives a gradient or none by where an element lies"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("eps", K::Float, true, false, Some("None"))], results: 1, schema: "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor" },
    Row { name: "aten::logspace", code: OpCode::Logspace, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::logspace, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("start", K::Scalar, false, false, None), a("end", K::Scalar, false, false, None), a("steps", K::Int, false, false, None), a("base", K::Float, false, false, Some("10.0")), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::logsumexp", code: OpCode::Logsumexp, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::logsumexp, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::Dims(1), when: None, writes: &[], results: &["top = amax(self); shift = where(abs(top) == 1 / 0.0, 0, top); log(sum(exp(self - shift))) + shift"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, false, false, None), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor" },
    Row { name: "aten::lt.Scalar", code: OpCode::LtScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self < other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "lt.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::lt.Tensor", code: OpCode::LtTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self < other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "lt.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::masked_fill.Scalar", code: OpCode::MaskedFillScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::masked_fill, numbers: Some(r::numbers::stored), overrides: false, expr: Some("where(mask, value, self)"), compute: Some(Compute::Moved), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(mask, 0, grad)")], gradients_without: &[("value", "what replaces an element is a constant")], arguments: &[a("self", K::Tensor, false, false, None), a("mask", K::Tensor, false, false, None), a("value", K::Scalar, false, false, None)], results: 1, schema: "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor" },
    Row { name: "aten::masked_fill.Tensor", code: OpCode::MaskedFillTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::masked_fill, numbers: None, overrides: false, expr: Some("where(mask, value, self)"), compute: Some(Compute::Moved), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(mask, 0, grad)"), ("value", "where(mask, grad, 0)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("mask", K::Tensor, false, false, None), a("value", K::Tensor, false, false, None)], results: 1, schema: "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor" },
    Row { name: "aten::masked_scatter", code: OpCode::MaskedScatter, class: C::Movement, props: P::NONE, rule: r::index::masked_scatter, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("mask", K::Tensor, false, false, None), a("source", K::Tensor, false, false, None)], results: 1, schema: "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor" },
    Row { name: "aten::masked_select", code: OpCode::MaskedSelect, class: C::Movement, props: P::NONE.and(P::DATA_DEPENDENT), rule: r::movement::dynamic, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("mask", K::Tensor, false, false, None)], results: 1, schema: "masked_select(Tensor self, Tensor mask) -> Tensor" },
    Row { name: "aten::max", code: OpCode::Max, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::extremum, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: Some("the signs of zeros follow from where elements lie in libtorch"), reduce: Some(Reduce { over: Over::All, when: None, writes: &[], results: &["amax(self)"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "max(Tensor self) -> Tensor" },
    Row { name: "aten::max.dim", code: OpCode::MaxDim, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::extremum_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("keepdim", K::Bool, false, false, Some("False"))], results: 2, schema: "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)" },
    Row { name: "aten::max_pool2d_with_indices", code: OpCode::MaxPool2dWithIndices, class: C::Pooling, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::pool::max_pool2d_with_indices, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("kernel_size", K::Ints, false, false, None), a("stride", K::Ints, false, false, Some("[]")), a("padding", K::Ints, false, false, Some("[0,0]")), a("dilation", K::Ints, false, false, Some("[1,1]")), a("ceil_mode", K::Bool, false, false, Some("False"))], results: 2, schema: "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)" },
    Row { name: "aten::max_pool2d_with_indices_backward", code: OpCode::MaxPool2dWithIndicesBackward, class: C::Pooling, props: P::NONE.and(P::CHANNELS_LAST), rule: r::pool::max_pool2d_with_indices_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("kernel_size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None), a("padding", K::Ints, false, false, None), a("dilation", K::Ints, false, false, None), a("ceil_mode", K::Bool, false, false, None), a("indices", K::Tensor, false, false, None)], results: 1, schema: "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor" },
    Row { name: "aten::max_pool3d", code: OpCode::MaxPool3d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::pool::max_pool3d, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("kernel_size", K::Ints, false, false, None), a("stride", K::Ints, false, false, Some("[]")), a("padding", K::Ints, false, false, Some("[0,0,0]")), a("dilation", K::Ints, false, false, Some("[1,1,1]")), a("ceil_mode", K::Bool, false, false, Some("False"))], results: 1, schema: "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor" },
    Row { name: "aten::max_pool3d_with_indices", code: OpCode::MaxPool3dWithIndices, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::pool::max_pool3d_with_indices, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("kernel_size", K::Ints, false, false, None), a("stride", K::Ints, false, false, Some("[]")), a("padding", K::Ints, false, false, Some("[0,0,0]")), a("dilation", K::Ints, false, false, Some("[1,1,1]")), a("ceil_mode", K::Bool, false, false, Some("False"))], results: 2, schema: "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)" },
    Row { name: "aten::max_pool3d_with_indices_backward", code: OpCode::MaxPool3dWithIndicesBackward, class: C::Pooling, props: P::NONE, rule: r::pool::max_pool3d_with_indices_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("kernel_size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None), a("padding", K::Ints, false, false, None), a("dilation", K::Ints, false, false, None), a("ceil_mode", K::Bool, false, false, None), a("indices", K::Tensor, false, false, None)], results: 1, schema: "max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor" },
    Row { name: "aten::maximum", code: OpCode::Maximum, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("max(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "where(self == other, grad / 2, where(self < other, grad, 0))"), ("self", "where(self == other, grad / 2, where(self > other, grad, 0))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "maximum(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::mean", code: OpCode::Mean, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::mean, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::All, when: None, writes: &[], results: &["sum(self) / count()"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::mean.dim", code: OpCode::MeanDim, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::mean_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::Dims(1), when: None, writes: &[], results: &["sum(self) / count()"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, None), a("keepdim", K::Bool, false, false, Some("False")), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::median", code: OpCode::Median, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::median, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "median(Tensor self) -> Tensor" },
    Row { name: "aten::median.dim", code: OpCode::MedianDim, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::extremum_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("keepdim", K::Bool, false, false, Some("False"))], results: 2, schema: "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)" },
    Row { name: "aten::min", code: OpCode::Min, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::extremum, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: Some("the signs of zeros follow from where elements lie in libtorch"), reduce: Some(Reduce { over: Over::All, when: None, writes: &[], results: &["amin(self)"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "min(Tensor self) -> Tensor" },
    Row { name: "aten::min.dim", code: OpCode::MinDim, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::extremum_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("keepdim", K::Bool, false, false, Some("False"))], results: 2, schema: "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)" },
    Row { name: "aten::minimum", code: OpCode::Minimum, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("min(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "where(self == other, grad / 2, where(self > other, grad, 0))"), ("self", "where(self == other, grad / 2, where(self < other, grad, 0))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "minimum(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::mish", code: OpCode::Mish, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: None, overrides: false, expr: Some("self * tanh(log1p(exp(self)))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "t = tanh(log1p(exp(self))); grad * (t + self * sigmoid(self) * (1 - t * t))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "mish(Tensor self) -> Tensor" },
    Row { name: "aten::mm", code: OpCode::Mm, class: C::Matmul, props: P::NONE.and(P::TOTAL), rule: r::matmul::mm, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("mat2", K::Tensor, false, false, None)], results: 1, schema: "mm(Tensor self, Tensor mat2) -> Tensor" },
    Row { name: "aten::mode", code: OpCode::Mode, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::mode, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, Some("-1")), a("keepdim", K::Bool, false, false, Some("False"))], results: 2, schema: "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)" },
    Row { name: "aten::mse_loss", code: OpCode::MseLoss, class: C::Loss, props: P::NONE.and(P::TOTAL), rule: r::loss::elementwise, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::All, when: Some("reduction != 0"), writes: &[], results: &["d = self - target; where(reduction == 1, sum(d * d) / count(), sum(d * d))"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("reduction", K::Int, false, false, Some("Mean"))], results: 1, schema: "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor" },
    Row { name: "aten::mse_loss_backward", code: OpCode::MseLossBackward, class: C::Loss, props: P::NONE.and(P::TOTAL), rule: r::loss::elementwise_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("reduction", K::Int, false, false, None)], results: 1, schema: "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor" },
    Row { name: "aten::mul.Scalar", code: OpCode::MulScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted_numbers, numbers: None, overrides: false, expr: Some("self * other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "mul.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::mul.Tensor", code: OpCode::MulTensor, class: C::Pointwise, props: P::NONE.and(P::COMMUTATIVE).and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("self * other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "grad * self"), ("self", "grad * other")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "mul.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::multinomial", code: OpCode::Multinomial, class: C::Random, props: P::NONE, rule: r::random::multinomial, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("num_samples", K::Int, false, false, None), a("replacement", K::Bool, false, false, Some("False")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::mv", code: OpCode::Mv, class: C::Matmul, props: P::NONE.and(P::TOTAL), rule: r::matmul::mv, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("vec", K::Tensor, false, false, None)], results: 1, schema: "mv(Tensor self, Tensor vec) -> Tensor" },
    Row { name: "aten::nansum", code: OpCode::Nansum, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::sum_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False")), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::narrow", code: OpCode::Narrow, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("start", K::Int, false, false, None), a("length", K::Int, false, false, None)], results: 1, schema: "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)" },
    Row { name: "aten::narrow_copy", code: OpCode::NarrowCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("start", K::Int, false, false, None), a("length", K::Int, false, false, None)], results: 1, schema: "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor" },
    Row { name: "aten::native_batch_norm", code: OpCode::NativeBatchNorm, class: C::Normalization, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::norm::batch_norm, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::Channels, when: Some("training"), writes: &[(3, "mean = sum(input) / count(); running_mean * (1 - momentum) + mean * momentum"), (4, "mean = sum(input) / count(); d = input - mean; running_var * (1 - momentum) + sum(d * d) / (count() - 1) * momentum")], results: &["mean = sum(input) / count(); d = input - mean; y = d * (1 / sqrt(sum(d * d) / count() + eps)); z = where(absent(weight), y, y * weight); where(absent(bias), z, z + bias)", "sum(input) / count()", "mean = sum(input) / count(); d = input - mean; 1 / sqrt(sum(d * d) / count() + eps)"] }), gradients: &[], gradients_without: &[], arguments: &[a("input", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, None), a("bias", K::Tensor, true, false, None), a("running_mean", K::Tensor, true, false, None), a("running_var", K::Tensor, true, false, None), a("training", K::Bool, false, false, None), a("momentum", K::Float, false, false, None), a("eps", K::Float, false, false, None)], results: 3, schema: "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)" },
    Row { name: "aten::native_batch_norm_backward", code: OpCode::NativeBatchNormBackward, class: C::Normalization, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::norm::batch_norm_backward, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_out", K::Tensor, false, false, None), a("input", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, None), a("running_mean", K::Tensor, true, false, None), a("running_var", K::Tensor, true, false, None), a("save_mean", K::Tensor, true, false, None), a("save_invstd", K::Tensor, true, false, None), a("train", K::Bool, false, false, None), a("eps", K::Float, false, false, None), a("output_mask", K::Bools, false, false, None)], results: 3, schema: "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)" },
    Row { name: "aten::native_dropout", code: OpCode::NativeDropout, class: C::Random, props: P::NONE, rule: r::random::native_dropout, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("input", K::Tensor, false, false, None), a("p", K::Float, false, false, None), a("train", K::Bool, true, false, None)], results: 2, schema: "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)" },
    Row { name: "aten::native_dropout_backward", code: OpCode::NativeDropoutBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("grad_output * mask * scale"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("grad_output", "grad * mask * scale")], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("mask", K::Tensor, false, false, None), a("scale", K::Float, false, false, None)], results: 1, schema: "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor" },
    Row { name: "aten::native_group_norm", code: OpCode::NativeGroupNorm, class: C::Normalization, props: P::NONE.and(P::TOTAL), rule: r::norm::group_norm, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("input", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, None), a("bias", K::Tensor, true, false, None), a("N", K::Int, false, false, None), a("C", K::Int, false, false, None), a("HxW", K::Int, false, false, None), a("group", K::Int, false, false, None), a("eps", K::Float, false, false, None)], results: 3, schema: "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)" },
    Row { name: "aten::native_group_norm_backward", code: OpCode::NativeGroupNormBackward, class: C::Normalization, props: P::NONE.and(P::TOTAL), rule: r::norm::group_norm_backward, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_out", K::Tensor, false, false, None), a("input", K::Tensor, false, false, None), a("mean", K::Tensor, false, false, None), a("rstd", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, None), a("N", K::Int, false, false, None), a("C", K::Int, false, false, None), a("HxW", K::Int, false, false, None), a("group", K::Int, false, false, None), a("output_mask", K::Bools, false, false, None)], results: 3, schema: "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)" },
    Row { name: "aten::native_layer_norm", code: OpCode::NativeLayerNorm, class: C::Normalization, props: P::NONE.and(P::TOTAL), rule: r::norm::layer_norm, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::Last(1), when: None, writes: &[], results: &["mean = sum(input) / count(); d = input - mean; y = d * (1 / sqrt(sum(d * d) / count() + eps)); z = where(absent(weight), y, y * weight); where(absent(bias), z, z + bias)", "sum(input) / count()", "mean = sum(input) / count(); d = input - mean; 1 / sqrt(sum(d * d) / count() + eps)"] }), gradients: &[], gradients_without: &[], arguments: &[a("input", K::Tensor, false, false, None), a("normalized_shape", K::Ints, false, false, None), a("weight", K::Tensor, true, false, None), a("bias", K::Tensor, true, false, None), a("eps", K::Float, false, false, None)], results: 3, schema: "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)" },
    Row { name: "aten::native_layer_norm_backward", code: OpCode::NativeLayerNormBackward, class: C::Normalization, props: P::NONE.and(P::TOTAL), rule: r::norm::layer_norm_backward, numbers: None, overrides: true, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_out", K::Tensor, false, false, None), a("input", K::Tensor, false, false, None), a("normalized_shape", K::Ints, false, false, None), a("mean", K::Tensor, false, false, None), a("rstd", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, None), a("bias", K::Tensor, true, false, None), a("output_mask", K::Bools, false, false, None)], results: 3, schema: "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)" },
    Row { name: "aten::ne.Scalar", code: OpCode::NeScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self != other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "ne.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::ne.Tensor", code: OpCode::NeTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::boolean, numbers: None, overrides: false, expr: Some("self != other"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "ne.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::neg", code: OpCode::Neg, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::neg, numbers: None, overrides: false, expr: Some("-self"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "-grad")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "neg(Tensor self) -> Tensor" },
    Row { name: "aten::new_empty", code: OpCode::NewEmpty, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::new_zeros, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::new_empty_strided", code: OpCode::NewEmptyStrided, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::new_empty_strided, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("stride", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::new_full", code: OpCode::NewFull, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::new_full, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("fill_value", K::Scalar, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::new_ones", code: OpCode::NewOnes, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::new_zeros, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::new_zeros", code: OpCode::NewZeros, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::new_zeros, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::nextafter", code: OpCode::Nextafter, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("nextafter(self, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "nextafter(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::nll_loss2d_backward", code: OpCode::NllLoss2dBackward, class: C::Loss, props: P::NONE, rule: r::loss::nll_loss2d_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, None), a("reduction", K::Int, false, false, None), a("ignore_index", K::Int, false, false, None), a("total_weight", K::Tensor, false, false, None)], results: 1, schema: "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor" },
    Row { name: "aten::nll_loss2d_forward", code: OpCode::NllLoss2dForward, class: C::Loss, props: P::NONE, rule: r::loss::nll_loss2d_forward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, None), a("reduction", K::Int, false, false, None), a("ignore_index", K::Int, false, false, None)], results: 2, schema: "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)" },
    Row { name: "aten::nll_loss_backward", code: OpCode::NllLossBackward, class: C::Loss, props: P::NONE, rule: r::loss::nll_loss_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, None), a("reduction", K::Int, false, false, None), a("ignore_index", K::Int, false, false, None), a("total_weight", K::Tensor, false, false, None)], results: 1, schema: "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor" },
    Row { name: "aten::nll_loss_forward", code: OpCode::NllLossForward, class: C::Loss, props: P::NONE, rule: r::loss::nll_loss_forward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("weight", K::Tensor, true, false, None), a("reduction", K::Int, false, false, None), a("ignore_index", K::Int, false, false, None)], results: 2, schema: "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)" },
    Row { name: "aten::nonzero", code: OpCode::Nonzero, class: C::Movement, props: P::NONE.and(P::DATA_DEPENDENT), rule: r::movement::dynamic, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "nonzero(Tensor self) -> Tensor" },
    Row { name: "aten::norm.Scalar", code: OpCode::NormScalar, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::norm, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("p", K::Scalar, false, false, Some("2"))], results: 1, schema: "norm.Scalar(Tensor self, Scalar p=2) -> Tensor" },
    Row { name: "aten::norm.ScalarOpt_dim", code: OpCode::NormScalarOptDim, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::norm_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("p", K::Scalar, true, false, None), a("dim", K::Ints, false, false, None), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor" },
    Row { name: "aten::norm.ScalarOpt_dim_dtype", code: OpCode::NormScalarOptDimDtype, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::norm_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("p", K::Scalar, true, false, None), a("dim", K::Ints, false, false, None), a("keepdim", K::Bool, false, false, None), a("dtype", K::DType, false, false, None)], results: 1, schema: "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor" },
    Row { name: "aten::normal.Tensor_Tensor", code: OpCode::NormalTensorTensor, class: C::Random, props: P::NONE, rule: r::random::normal_tensors, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("mean", K::Tensor, false, false, None), a("std", K::Tensor, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::normal.Tensor_float", code: OpCode::NormalTensorFloat, class: C::Random, props: P::NONE, rule: r::random::normal, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("mean", K::Tensor, false, false, None), a("std", K::Float, false, false, Some("1")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::normal.float_Tensor", code: OpCode::NormalFloatTensor, class: C::Random, props: P::NONE, rule: r::random::normal, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("mean", K::Float, false, false, None), a("std", K::Tensor, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::normal_", code: OpCode::NormalInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("mean", K::Float, false, false, Some("0")), a("std", K::Float, false, false, Some("1")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::normal_functional", code: OpCode::NormalFunctional, class: C::Random, props: P::NONE, rule: r::random::drawn, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("mean", K::Float, false, false, Some("0")), a("std", K::Float, false, false, Some("1")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "normal_functional(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::ones", code: OpCode::Ones, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::zeros, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("size", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::ones_like", code: OpCode::OnesLike, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::zeros_like, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None")), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor" },
    Row { name: "aten::permute", code: OpCode::Permute, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dims", K::Ints, false, false, None)], results: 1, schema: "permute(Tensor(a) self, int[] dims) -> Tensor(a)" },
    Row { name: "aten::permute_copy", code: OpCode::PermuteCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dims", K::Ints, false, false, None)], results: 1, schema: "permute_copy(Tensor self, int[] dims) -> Tensor" },
    Row { name: "aten::pixel_shuffle", code: OpCode::PixelShuffle, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::pixel_shuffle, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("upscale_factor", K::Int, false, false, None)], results: 1, schema: "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor" },
    Row { name: "aten::pixel_unshuffle", code: OpCode::PixelUnshuffle, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::pixel_unshuffle, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("downscale_factor", K::Int, false, false, None)], results: 1, schema: "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor" },
    Row { name: "aten::poisson", code: OpCode::Poisson, class: C::Random, props: P::NONE, rule: r::random::poisson, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "poisson(Tensor self, Generator? generator=None) -> Tensor" },
    Row { name: "aten::positive", code: OpCode::Positive, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::view::positive, numbers: None, overrides: false, expr: Some("self"), compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "positive(Tensor(a) self) -> Tensor(a)" },
    Row { name: "aten::pow.Scalar", code: OpCode::PowScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted_numbers, numbers: None, overrides: false, expr: Some("pow(self, exponent)"), compute: Some(Compute::FloatOnly), no_fuse: Some("kernels take the short cuts that libtorch takes for exponents that are numbers"), inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Scalar, false, false, None), a("exponent", K::Tensor, false, false, None)], results: 1, schema: "pow.Scalar(Scalar self, Tensor exponent) -> Tensor" },
    Row { name: "aten::pow.Tensor_Scalar", code: OpCode::PowTensorScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted_numbers, numbers: None, overrides: false, expr: Some("pow(self, exponent)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("exponent", K::Scalar, false, false, None)], results: 1, schema: "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor" },
    Row { name: "aten::pow.Tensor_Tensor", code: OpCode::PowTensorTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("pow(self, exponent)"), compute: Some(Compute::FloatOnly), no_fuse: Some("kernels take the short cuts that libtorch takes for exponents that are numbers"), inexact: None, reduce: None, gradients: &[("exponent", "grad * where(self == 0 && exponent >= 0, 0, result * log(self))"), ("self", "grad * where(exponent == 0, 0, exponent * pow(self, exponent - 1))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("exponent", K::Tensor, false, false, None)], results: 1, schema: "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor" },
    Row { name: "aten::prod", code: OpCode::Prod, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::sum, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::prod.dim_int", code: OpCode::ProdDimInt, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::sum_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("keepdim", K::Bool, false, false, Some("False")), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::put", code: OpCode::Put, class: C::Movement, props: P::NONE, rule: r::index::put, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("index", K::Tensor, false, false, None), a("source", K::Tensor, false, false, None), a("accumulate", K::Bool, false, false, Some("False"))], results: 1, schema: "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor" },
    Row { name: "aten::rad2deg", code: OpCode::Rad2deg, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("self * 57.29577951308232"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 57.29577951308232")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "rad2deg(Tensor self) -> Tensor" },
    Row { name: "aten::rand", code: OpCode::Rand, class: C::Random, props: P::NONE.and(P::TOTAL), rule: r::random::rand, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("size", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::rand_like", code: OpCode::RandLike, class: C::Random, props: P::NONE.and(P::TOTAL), rule: r::random::rand_like, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None")), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor" },
    Row { name: "aten::randint", code: OpCode::Randint, class: C::Random, props: P::NONE, rule: r::random::randint, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("high", K::Int, false, false, None), a("size", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("long")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::randint.low", code: OpCode::RandintLow, class: C::Random, props: P::NONE, rule: r::random::randint_low, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("low", K::Int, false, false, None), a("high", K::Int, false, false, None), a("size", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("long")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::randint_like", code: OpCode::RandintLike, class: C::Random, props: P::NONE, rule: r::random::randint_like, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("high", K::Int, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None")), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor" },
    Row { name: "aten::randint_like.low_dtype", code: OpCode::RandintLikeLowDtype, class: C::Random, props: P::NONE, rule: r::random::randint_like_low, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("low", K::Int, false, false, None), a("high", K::Int, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None")), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor" },
    Row { name: "aten::randn", code: OpCode::Randn, class: C::Random, props: P::NONE.and(P::TOTAL), rule: r::random::rand, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("size", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::randn_like", code: OpCode::RandnLike, class: C::Random, props: P::NONE.and(P::TOTAL), rule: r::random::rand_like, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None")), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor" },
    Row { name: "aten::random", code: OpCode::Random, class: C::Random, props: P::NONE, rule: r::random::drawn, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "random(Tensor self, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::random.from", code: OpCode::RandomFrom, class: C::Random, props: P::NONE, rule: r::random::drawn, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("from", K::Int, false, false, None), a("to", K::Int, true, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::random.to", code: OpCode::RandomTo, class: C::Random, props: P::NONE, rule: r::random::drawn, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("to", K::Int, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::random_", code: OpCode::RandomInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::random_.from", code: OpCode::RandomFromInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("from", K::Int, false, false, None), a("to", K::Int, true, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::random_.to", code: OpCode::RandomToInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("to", K::Int, false, false, None), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::randperm", code: OpCode::Randperm, class: C::Random, props: P::NONE, rule: r::random::randperm, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("n", K::Int, false, false, None), a("dtype", K::DType, true, false, Some("long")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::reciprocal", code: OpCode::Reciprocal, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("reciprocal(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "-grad * result * result")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "reciprocal(Tensor self) -> Tensor" },
    Row { name: "aten::reflection_pad1d", code: OpCode::ReflectionPad1d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::pad, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("padding", K::Ints, false, false, None)], results: 1, schema: "reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor" },
    Row { name: "aten::reflection_pad2d", code: OpCode::ReflectionPad2d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::pad, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("padding", K::Ints, false, false, None)], results: 1, schema: "reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor" },
    Row { name: "aten::reflection_pad3d", code: OpCode::ReflectionPad3d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::pad, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("padding", K::Ints, false, false, None)], results: 1, schema: "reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor" },
    Row { name: "aten::relu", code: OpCode::Relu, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::relu, numbers: None, overrides: true, expr: Some("max(0, self)"), compute: Some(Compute::Tensors), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(result > 0, grad, 0)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "relu(Tensor self) -> Tensor" },
    Row { name: "aten::remainder.Scalar", code: OpCode::RemainderScalar, class: C::Pointwise, props: P::NONE, rule: r::pointwise::promoted_numbers, numbers: None, overrides: false, expr: Some("remainder(self, other)"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: Some("libtorch's vectors give NaN where a quotient is huge, ours the remainder"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None)], results: 1, schema: "remainder.Scalar(Tensor self, Scalar other) -> Tensor" },
    Row { name: "aten::remainder.Tensor", code: OpCode::RemainderTensor, class: C::Pointwise, props: P::NONE, rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("remainder(self, other)"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: Some("libtorch's vectors give NaN where a quotient is huge, ours the remainder"), reduce: None, gradients: &[("other", "-grad * floor_div(self, other)"), ("self", "grad")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "remainder.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::renorm", code: OpCode::Renorm, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::renorm, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("p", K::Scalar, false, false, None), a("dim", K::Int, false, false, None), a("maxnorm", K::Scalar, false, false, None)], results: 1, schema: "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor" },
    Row { name: "aten::repeat", code: OpCode::Repeat, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::repeat, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("repeats", K::Ints, false, false, None)], results: 1, schema: "repeat(Tensor self, SymInt[] repeats) -> Tensor" },
    Row { name: "aten::replication_pad1d", code: OpCode::ReplicationPad1d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::pad, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("padding", K::Ints, false, false, None)], results: 1, schema: "replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor" },
    Row { name: "aten::replication_pad2d", code: OpCode::ReplicationPad2d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::pad, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("padding", K::Ints, false, false, None)], results: 1, schema: "replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor" },
    Row { name: "aten::replication_pad3d", code: OpCode::ReplicationPad3d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::pad, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("padding", K::Ints, false, false, None)], results: 1, schema: "replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor" },
    Row { name: "aten::roll", code: OpCode::Roll, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::roll, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("shifts", K::Ints, false, false, None), a("dims", K::Ints, false, false, Some("[]"))], results: 1, schema: "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor" },
    Row { name: "aten::round", code: OpCode::Round, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("round(self)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 0")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "round(Tensor self) -> Tensor" },
    Row { name: "aten::round.decimals", code: OpCode::RoundDecimals, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("where(decimals >= 0, round(self * pow(10, decimals)) / pow(10, decimals), round(self / pow(10, -decimals)) * pow(10, -decimals))"), compute: Some(Compute::FloatOnly), no_fuse: Some("an expression cannot read how many decimals a call says"), inexact: None, reduce: None, gradients: &[("self", "grad * 0")], gradients_without: &[("decimals", "steps are flat, however fine")], arguments: &[a("self", K::Tensor, false, false, None), a("decimals", K::Int, false, false, None)], results: 1, schema: "round.decimals(Tensor self, *, int decimals) -> Tensor" },
    Row { name: "aten::rsqrt", code: OpCode::Rsqrt, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("rsqrt(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * -0.5 * result * result * result")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "rsqrt(Tensor self) -> Tensor" },
    Row { name: "aten::rsub.Scalar", code: OpCode::RsubScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::rsub, numbers: Some(r::numbers::alpha), overrides: false, expr: Some("fma(self, -alpha, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::rsub.Tensor", code: OpCode::RsubTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::rsub_tensor, numbers: Some(r::numbers::alpha), overrides: false, expr: Some("fma(self, -alpha, other)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "grad"), ("self", "-grad * alpha")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::scalar_tensor", code: OpCode::ScalarTensor, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::scalar_tensor, numbers: Some(r::numbers::scalar_tensor), overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("s", K::Scalar, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::scatter.reduce", code: OpCode::ScatterReduce, class: C::Movement, props: P::NONE, rule: r::index::scatter, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Tensor, false, false, None), a("src", K::Tensor, false, false, None), a("reduce", K::Str, false, false, None)], results: 1, schema: "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor" },
    Row { name: "aten::scatter.src", code: OpCode::ScatterSrc, class: C::Movement, props: P::NONE, rule: r::index::scatter, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Tensor, false, false, None), a("src", K::Tensor, false, false, None)], results: 1, schema: "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor" },
    Row { name: "aten::scatter.value", code: OpCode::ScatterValue, class: C::Movement, props: P::NONE, rule: r::index::scatter, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Tensor, false, false, None), a("value", K::Scalar, false, false, None)], results: 1, schema: "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor" },
    Row { name: "aten::scatter_add", code: OpCode::ScatterAdd, class: C::Movement, props: P::NONE, rule: r::index::scatter, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Tensor, false, false, None), a("src", K::Tensor, false, false, None)], results: 1, schema: "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor" },
    Row { name: "aten::scatter_reduce.two", code: OpCode::ScatterReduceTwo, class: C::Movement, props: P::NONE, rule: r::index::scatter, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Tensor, false, false, None), a("src", K::Tensor, false, false, None), a("reduce", K::Str, false, false, None), a("include_self", K::Bool, false, false, Some("True"))], results: 1, schema: "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor" },
    Row { name: "aten::searchsorted.Tensor", code: OpCode::SearchsortedTensor, class: C::Movement, props: P::NONE, rule: r::movement::searchsorted, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("sorted_sequence", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("out_int32", K::Bool, false, false, Some("False")), a("right", K::Bool, false, false, Some("False")), a("side", K::Str, true, false, Some("None")), a("sorter", K::Tensor, true, false, Some("None"))], results: 1, schema: "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor" },
    Row { name: "aten::select.int", code: OpCode::SelectInt, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Int, false, false, None)], results: 1, schema: "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)" },
    Row { name: "aten::select_backward", code: OpCode::SelectBackward, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("input_sizes", K::Ints, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Int, false, false, None)], results: 1, schema: "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor" },
    Row { name: "aten::select_copy.int", code: OpCode::SelectCopyInt, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Int, false, false, None)], results: 1, schema: "select_copy.int(Tensor self, int dim, SymInt index) -> Tensor" },
    Row { name: "aten::select_scatter", code: OpCode::SelectScatter, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::scatter, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("src", K::Tensor, false, false, None), a("dim", K::Int, false, false, None), a("index", K::Int, false, false, None)], results: 1, schema: "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor" },
    Row { name: "aten::selu", code: OpCode::Selu, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: None, overrides: false, expr: Some("where(self > 0, self * 1.0507009873554805, expm1(self) * 1.7580993408473766)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * where(self > 0, 1.0507009873554805, 1.7580993408473766 * exp(self))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "selu(Tensor self) -> Tensor" },
    Row { name: "aten::sgn", code: OpCode::Sgn, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("sign(self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 0")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "sgn(Tensor self) -> Tensor" },
    Row { name: "aten::sigmoid", code: OpCode::Sigmoid, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("sigmoid(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * (1 - result) * result")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "sigmoid(Tensor self) -> Tensor" },
    Row { name: "aten::sigmoid_backward", code: OpCode::SigmoidBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: None, overrides: false, expr: Some("grad_output * (1 - output) * output"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output", K::Tensor, false, false, None)], results: 1, schema: "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor" },
    Row { name: "aten::sign", code: OpCode::Sign, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("sign(self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 0")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "sign(Tensor self) -> Tensor" },
    Row { name: "aten::signbit", code: OpCode::Signbit, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::logical, numbers: None, overrides: false, expr: Some("signbit(self)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "signbit(Tensor self) -> Tensor" },
    Row { name: "aten::silu", code: OpCode::Silu, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: None, overrides: false, expr: Some("self / (1 + exp(-self))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * (sigmoid(self) * (1 + self * (1 - sigmoid(self))))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "silu(Tensor self) -> Tensor" },
    Row { name: "aten::silu_backward", code: OpCode::SiluBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: None, overrides: false, expr: Some("grad_output * sigmoid(self) * (1 + self * (1 - sigmoid(self)))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None)], results: 1, schema: "silu_backward(Tensor grad_output, Tensor self) -> Tensor" },
    Row { name: "aten::sin", code: OpCode::Sin, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("sin(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * cos(self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "sin(Tensor self) -> Tensor" },
    Row { name: "aten::sinc", code: OpCode::Sinc, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("where(self == 0, 1, sin(self * 3.141592653589793) / (self * 3.141592653589793))"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * where(self == 0, 0, (cos(self * 3.141592653589793) - result) / self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "sinc(Tensor self) -> Tensor" },
    Row { name: "aten::sinh", code: OpCode::Sinh, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("sinh(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * cosh(self)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "sinh(Tensor self) -> Tensor" },
    Row { name: "aten::slice.Tensor", code: OpCode::SliceTensor, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, Some("0")), a("start", K::Int, true, false, Some("None")), a("end", K::Int, true, false, Some("None")), a("step", K::Int, false, false, Some("1"))], results: 1, schema: "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)" },
    Row { name: "aten::slice_backward", code: OpCode::SliceBackward, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("input_sizes", K::Ints, false, false, None), a("dim", K::Int, false, false, None), a("start", K::Int, false, false, None), a("end", K::Int, false, false, None), a("step", K::Int, false, false, None)], results: 1, schema: "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor" },
    Row { name: "aten::slice_copy.Tensor", code: OpCode::SliceCopyTensor, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, Some("0")), a("start", K::Int, true, false, Some("None")), a("end", K::Int, true, false, Some("None")), a("step", K::Int, false, false, Some("1"))], results: 1, schema: "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor" },
    Row { name: "aten::slice_scatter", code: OpCode::SliceScatter, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::scatter, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("src", K::Tensor, false, false, None), a("dim", K::Int, false, false, Some("0")), a("start", K::Int, true, false, Some("None")), a("end", K::Int, true, false, Some("None")), a("step", K::Int, false, false, Some("1"))], results: 1, schema: "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor" },
    Row { name: "aten::slogdet", code: OpCode::Slogdet, class: C::Linalg, props: P::NONE, rule: r::linalg::slogdet, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 2, schema: "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)" },
    Row { name: "aten::smooth_l1_loss", code: OpCode::SmoothL1Loss, class: C::Loss, props: P::NONE.and(P::TOTAL), rule: r::loss::elementwise, numbers: Some(r::numbers::smooth_l1_loss), overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("reduction", K::Int, false, false, Some("Mean")), a("beta", K::Float, false, false, Some("1.0"))], results: 1, schema: "smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor" },
    Row { name: "aten::smooth_l1_loss_backward", code: OpCode::SmoothL1LossBackward, class: C::Loss, props: P::NONE.and(P::TOTAL), rule: r::loss::elementwise_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("reduction", K::Int, false, false, None), a("beta", K::Float, false, false, None)], results: 1, schema: "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor" },
    Row { name: "aten::soft_margin_loss", code: OpCode::SoftMarginLoss, class: C::Loss, props: P::NONE.and(P::TOTAL), rule: r::loss::soft_margin_loss, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("target", K::Tensor, false, false, None), a("reduction", K::Int, false, false, Some("Mean"))], results: 1, schema: "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor" },
    Row { name: "aten::softplus", code: OpCode::Softplus, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: Some(r::numbers::computed), overrides: false, expr: Some("where(self * beta > threshold, self, log1p(exp(self * beta)) / beta)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(self * beta > threshold, grad, grad * sigmoid(self * beta))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("beta", K::Scalar, false, false, Some("1")), a("threshold", K::Scalar, false, false, Some("20"))], results: 1, schema: "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor" },
    Row { name: "aten::softplus_backward", code: OpCode::SoftplusBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: Some(r::numbers::computed), overrides: false, expr: Some("where(self * beta > threshold, grad_output, grad_output * sigmoid(self * beta))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("beta", K::Scalar, false, false, None), a("threshold", K::Scalar, false, false, None)], results: 1, schema: "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor" },
    Row { name: "aten::softshrink", code: OpCode::Softshrink, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float_only, numbers: Some(r::numbers::softshrink), overrides: false, expr: Some("where(self > lambd, self - lambd, where(self < -lambd, self + lambd, where(isnan(self), self, 0)))"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: Some("the signs of zeros follow from where elements lie in libtorch"), reduce: None, gradients: &[("self", "where(self >= -lambd && self <= lambd, 0, grad)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("lambd", K::Scalar, false, false, Some("0.5"))], results: 1, schema: "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor" },
    Row { name: "aten::softshrink_backward", code: OpCode::SoftshrinkBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: None, overrides: false, expr: Some("where(self < -lambd || self > lambd, grad_output, 0)"), compute: Some(Compute::WideFloat), no_fuse: None, inexact: Some("of NaN, libtorch gives a gradient or none by where an element lies"), reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("lambd", K::Scalar, false, false, None)], results: 1, schema: "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor" },
    Row { name: "aten::sort", code: OpCode::Sort, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::sort, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, Some("-1")), a("descending", K::Bool, false, false, Some("False"))], results: 2, schema: "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)" },
    Row { name: "aten::sort.stable", code: OpCode::SortStable, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::sort, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("stable", K::Bool, true, false, None), a("dim", K::Int, false, false, Some("-1")), a("descending", K::Bool, false, false, Some("False"))], results: 2, schema: "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)" },
    Row { name: "aten::special_entr", code: OpCode::SpecialEntr, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("where(isnan(self), self, where(self > 0, -self * log(self), where(self == 0, 0, 0 - 1 / 0.0)))"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * where(self < 0, 0 - 1 / 0.0, -log(self) - 1)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "special_entr(Tensor self) -> Tensor" },
    Row { name: "aten::split.Tensor", code: OpCode::SplitTensor, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::split, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("split_size", K::Int, false, false, None), a("dim", K::Int, false, false, Some("0"))], results: 1, schema: "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]" },
    Row { name: "aten::split_copy.Tensor", code: OpCode::SplitCopyTensor, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::split, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("split_size", K::Int, false, false, None), a("dim", K::Int, false, false, Some("0"))], results: 1, schema: "split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]" },
    Row { name: "aten::split_with_sizes", code: OpCode::SplitWithSizes, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::split_with_sizes, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("split_sizes", K::Ints, false, false, None), a("dim", K::Int, false, false, Some("0"))], results: 1, schema: "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]" },
    Row { name: "aten::split_with_sizes_copy", code: OpCode::SplitWithSizesCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::split_with_sizes, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("split_sizes", K::Ints, false, false, None), a("dim", K::Int, false, false, Some("0"))], results: 1, schema: "split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]" },
    Row { name: "aten::sqrt", code: OpCode::Sqrt, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("sqrt(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad / (2 * result)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "sqrt(Tensor self) -> Tensor" },
    Row { name: "aten::square", code: OpCode::Square, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::square, numbers: None, overrides: false, expr: Some("self * self"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 2 * self")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "square(Tensor self) -> Tensor" },
    Row { name: "aten::squeeze", code: OpCode::Squeeze, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "squeeze(Tensor(a) self) -> Tensor(a)" },
    Row { name: "aten::squeeze.dim", code: OpCode::SqueezeDim, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None)], results: 1, schema: "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)" },
    Row { name: "aten::squeeze.dims", code: OpCode::SqueezeDims, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, false, false, None)], results: 1, schema: "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)" },
    Row { name: "aten::squeeze_copy", code: OpCode::SqueezeCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "squeeze_copy(Tensor self) -> Tensor" },
    Row { name: "aten::squeeze_copy.dim", code: OpCode::SqueezeCopyDim, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None)], results: 1, schema: "squeeze_copy.dim(Tensor self, int dim) -> Tensor" },
    Row { name: "aten::squeeze_copy.dims", code: OpCode::SqueezeCopyDims, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, false, false, None)], results: 1, schema: "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor" },
    Row { name: "aten::stack", code: OpCode::Stack, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::stack, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("tensors", K::Tensors, false, false, None), a("dim", K::Int, false, false, Some("0"))], results: 1, schema: "stack(Tensor[] tensors, int dim=0) -> Tensor" },
    Row { name: "aten::std", code: OpCode::Std, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::std, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("unbiased", K::Bool, false, false, Some("True"))], results: 1, schema: "std(Tensor self, bool unbiased=True) -> Tensor" },
    Row { name: "aten::std.correction", code: OpCode::StdCorrection, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::std_correction, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, Some("None")), a("correction", K::Scalar, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor" },
    Row { name: "aten::std.dim", code: OpCode::StdDim, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::std_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, None), a("unbiased", K::Bool, false, false, Some("True")), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor" },
    Row { name: "aten::std_mean.correction", code: OpCode::StdMeanCorrection, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::std_mean_correction, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, Some("None")), a("correction", K::Scalar, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False"))], results: 2, schema: "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)" },
    Row { name: "aten::sub.Scalar", code: OpCode::SubScalar, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::sub, numbers: Some(r::numbers::alpha), overrides: false, expr: Some("fma(other, -alpha, self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Scalar, false, false, None), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::sub.Tensor", code: OpCode::SubTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::sub, numbers: Some(r::numbers::alpha), overrides: false, expr: Some("fma(other, -alpha, self)"), compute: Some(Compute::Promoted), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "-grad * alpha"), ("self", "grad")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None), a("alpha", K::Scalar, false, false, Some("1"))], results: 1, schema: "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" },
    Row { name: "aten::sum", code: OpCode::Sum, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::sum, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::All, when: None, writes: &[], results: &["sum(self)"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::sum.dim_IntList", code: OpCode::SumDimIntList, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::sum_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: Some(Reduce { over: Over::Dims(1), when: None, writes: &[], results: &["sum(self)"] }), gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, None), a("keepdim", K::Bool, false, false, Some("False")), a("dtype", K::DType, true, false, Some("None"))], results: 1, schema: "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor" },
    Row { name: "aten::svd", code: OpCode::Svd, class: C::Linalg, props: P::NONE, rule: r::linalg::svd, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("some", K::Bool, false, false, Some("True")), a("compute_uv", K::Bool, false, false, Some("True"))], results: 3, schema: "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)" },
    Row { name: "aten::t", code: OpCode::T, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "t(Tensor(a) self) -> Tensor(a)" },
    Row { name: "aten::t_copy", code: OpCode::TCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "t_copy(Tensor self) -> Tensor" },
    Row { name: "aten::take", code: OpCode::Take, class: C::Movement, props: P::NONE, rule: r::index::take, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("index", K::Tensor, false, false, None)], results: 1, schema: "take(Tensor self, Tensor index) -> Tensor" },
    Row { name: "aten::tan", code: OpCode::Tan, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("tan(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * (1 + result * result)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "tan(Tensor self) -> Tensor" },
    Row { name: "aten::tanh", code: OpCode::Tanh, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("tanh(self)"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * (1 - result * result)")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "tanh(Tensor self) -> Tensor" },
    Row { name: "aten::tanh_backward", code: OpCode::TanhBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: None, overrides: false, expr: Some("grad_output * fma(-output, output, 1)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output", K::Tensor, false, false, None)], results: 1, schema: "tanh_backward(Tensor grad_output, Tensor output) -> Tensor" },
    Row { name: "aten::threshold", code: OpCode::Threshold, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::threshold, numbers: Some(r::numbers::threshold), overrides: false, expr: Some("where(self <= threshold, value, self)"), compute: Some(Compute::Tensors), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "where(self <= threshold, 0, grad)")], gradients_without: &[("value", "what replaces an element is a constant")], arguments: &[a("self", K::Tensor, false, false, None), a("threshold", K::Scalar, false, false, None), a("value", K::Scalar, false, false, None)], results: 1, schema: "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor" },
    Row { name: "aten::threshold_backward", code: OpCode::ThresholdBackward, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::gradient, numbers: Some(r::numbers::computed), overrides: false, expr: Some("where(self <= threshold, 0, grad_output)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("threshold", K::Scalar, false, false, None)], results: 1, schema: "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor" },
    Row { name: "aten::topk", code: OpCode::Topk, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::topk, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("k", K::Int, false, false, None), a("dim", K::Int, false, false, Some("-1")), a("largest", K::Bool, false, false, Some("True")), a("sorted", K::Bool, false, false, Some("True"))], results: 2, schema: "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)" },
    Row { name: "aten::trace", code: OpCode::Trace, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::trace, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "trace(Tensor self) -> Tensor" },
    Row { name: "aten::transpose.int", code: OpCode::TransposeInt, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim0", K::Int, false, false, None), a("dim1", K::Int, false, false, None)], results: 1, schema: "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)" },
    Row { name: "aten::transpose_copy.int", code: OpCode::TransposeCopyInt, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim0", K::Int, false, false, None), a("dim1", K::Int, false, false, None)], results: 1, schema: "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor" },
    Row { name: "aten::triangular_solve", code: OpCode::TriangularSolve, class: C::Linalg, props: P::NONE, rule: r::linalg::triangular_solve, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("A", K::Tensor, false, false, None), a("upper", K::Bool, false, false, Some("True")), a("transpose", K::Bool, false, false, Some("False")), a("unitriangular", K::Bool, false, false, Some("False"))], results: 2, schema: "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)" },
    Row { name: "aten::tril", code: OpCode::Tril, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::tril, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("diagonal", K::Int, false, false, Some("0"))], results: 1, schema: "tril(Tensor self, SymInt diagonal=0) -> Tensor" },
    Row { name: "aten::tril_indices", code: OpCode::TrilIndices, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::tril_indices, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("row", K::Int, false, false, None), a("col", K::Int, false, false, None), a("offset", K::Int, false, false, Some("0")), a("dtype", K::DType, true, false, Some("long")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::triu", code: OpCode::Triu, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::movement::tril, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("diagonal", K::Int, false, false, Some("0"))], results: 1, schema: "triu(Tensor self, SymInt diagonal=0) -> Tensor" },
    Row { name: "aten::triu_indices", code: OpCode::TriuIndices, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::triu_indices, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("row", K::Int, false, false, None), a("col", K::Int, false, false, None), a("offset", K::Int, false, false, Some("0")), a("dtype", K::DType, true, false, Some("long")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::trunc", code: OpCode::Trunc, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::promoted, numbers: None, overrides: false, expr: Some("trunc(self)"), compute: Some(Compute::FloatOnly), no_fuse: None, inexact: None, reduce: None, gradients: &[("self", "grad * 0")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "trunc(Tensor self) -> Tensor" },
    Row { name: "aten::unbind.int", code: OpCode::UnbindInt, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::unbind, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, Some("0"))], results: 1, schema: "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]" },
    Row { name: "aten::unbind_copy.int", code: OpCode::UnbindCopyInt, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::unbind, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, Some("0"))], results: 1, schema: "unbind_copy.int(Tensor self, int dim=0) -> Tensor[]" },
    Row { name: "aten::unfold", code: OpCode::Unfold, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dimension", K::Int, false, false, None), a("size", K::Int, false, false, None), a("step", K::Int, false, false, None)], results: 1, schema: "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)" },
    Row { name: "aten::unfold_backward", code: OpCode::UnfoldBackward, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_in", K::Tensor, false, false, None), a("input_sizes", K::Ints, false, false, None), a("dim", K::Int, false, false, None), a("size", K::Int, false, false, None), a("step", K::Int, false, false, None)], results: 1, schema: "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor" },
    Row { name: "aten::unfold_copy", code: OpCode::UnfoldCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dimension", K::Int, false, false, None), a("size", K::Int, false, false, None), a("step", K::Int, false, false, None)], results: 1, schema: "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor" },
    Row { name: "aten::uniform", code: OpCode::Uniform, class: C::Random, props: P::NONE, rule: r::random::drawn, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("from", K::Float, false, false, Some("0")), a("to", K::Float, false, false, Some("1")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor" },
    Row { name: "aten::uniform_", code: OpCode::UniformInPlace, class: C::Random, props: P::NONE.and(P::OVERWRITES), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None), a("from", K::Float, false, false, Some("0")), a("to", K::Float, false, false, Some("1")), a("generator", K::Generator, true, false, Some("None"))], results: 1, schema: "uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)" },
    Row { name: "aten::unsqueeze", code: OpCode::Unsqueeze, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None)], results: 1, schema: "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)" },
    Row { name: "aten::unsqueeze_copy", code: OpCode::UnsqueezeCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Int, false, false, None)], results: 1, schema: "unsqueeze_copy(Tensor self, int dim) -> Tensor" },
    Row { name: "aten::upsample_bicubic2d", code: OpCode::UpsampleBicubic2d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::upsample, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("align_corners", K::Bool, false, false, None), a("scales_h", K::Float, true, false, Some("None")), a("scales_w", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor" },
    Row { name: "aten::upsample_bicubic2d_backward", code: OpCode::UpsampleBicubic2dBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::upsample_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("input_size", K::Ints, false, false, None), a("align_corners", K::Bool, false, false, None), a("scales_h", K::Float, true, false, Some("None")), a("scales_w", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor" },
    Row { name: "aten::upsample_bilinear2d", code: OpCode::UpsampleBilinear2d, class: C::Pooling, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::resample::upsample, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("align_corners", K::Bool, false, false, None), a("scales_h", K::Float, true, false, Some("None")), a("scales_w", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor" },
    Row { name: "aten::upsample_bilinear2d_backward", code: OpCode::UpsampleBilinear2dBackward, class: C::Pooling, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::resample::upsample_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("input_size", K::Ints, false, false, None), a("align_corners", K::Bool, false, false, None), a("scales_h", K::Float, true, false, Some("None")), a("scales_w", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor" },
    Row { name: "aten::upsample_linear1d", code: OpCode::UpsampleLinear1d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::upsample, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("align_corners", K::Bool, false, false, None), a("scales", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor" },
    Row { name: "aten::upsample_linear1d_backward", code: OpCode::UpsampleLinear1dBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::upsample_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("input_size", K::Ints, false, false, None), a("align_corners", K::Bool, false, false, None), a("scales", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, float? scales=None) -> Tensor" },
    Row { name: "aten::upsample_nearest1d", code: OpCode::UpsampleNearest1d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::upsample, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("scales", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor" },
    Row { name: "aten::upsample_nearest1d_backward", code: OpCode::UpsampleNearest1dBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::upsample_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("input_size", K::Ints, false, false, None), a("scales", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor" },
    Row { name: "aten::upsample_nearest2d", code: OpCode::UpsampleNearest2d, class: C::Pooling, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::resample::upsample, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("scales_h", K::Float, true, false, Some("None")), a("scales_w", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor" },
    Row { name: "aten::upsample_nearest2d_backward", code: OpCode::UpsampleNearest2dBackward, class: C::Pooling, props: P::NONE.and(P::CHANNELS_LAST).and(P::TOTAL), rule: r::resample::upsample_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("input_size", K::Ints, false, false, None), a("scales_h", K::Float, true, false, Some("None")), a("scales_w", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor" },
    Row { name: "aten::upsample_nearest3d", code: OpCode::UpsampleNearest3d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::upsample, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("scales_d", K::Float, true, false, Some("None")), a("scales_h", K::Float, true, false, Some("None")), a("scales_w", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor" },
    Row { name: "aten::upsample_nearest3d_backward", code: OpCode::UpsampleNearest3dBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::upsample_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("input_size", K::Ints, false, false, None), a("scales_d", K::Float, true, false, Some("None")), a("scales_h", K::Float, true, false, Some("None")), a("scales_w", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor" },
    Row { name: "aten::upsample_trilinear3d", code: OpCode::UpsampleTrilinear3d, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::upsample, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("align_corners", K::Bool, false, false, None), a("scales_d", K::Float, true, false, Some("None")), a("scales_h", K::Float, true, false, Some("None")), a("scales_w", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor" },
    Row { name: "aten::upsample_trilinear3d_backward", code: OpCode::UpsampleTrilinear3dBackward, class: C::Pooling, props: P::NONE.and(P::TOTAL), rule: r::resample::upsample_backward, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("grad_output", K::Tensor, false, false, None), a("output_size", K::Ints, false, false, None), a("input_size", K::Ints, false, false, None), a("align_corners", K::Bool, false, false, None), a("scales_d", K::Float, true, false, Some("None")), a("scales_h", K::Float, true, false, Some("None")), a("scales_w", K::Float, true, false, Some("None"))], results: 1, schema: "upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor" },
    Row { name: "aten::var", code: OpCode::Var, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::std, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("unbiased", K::Bool, false, false, Some("True"))], results: 1, schema: "var(Tensor self, bool unbiased=True) -> Tensor" },
    Row { name: "aten::var.correction", code: OpCode::VarCorrection, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::std_correction, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, Some("None")), a("correction", K::Scalar, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor" },
    Row { name: "aten::var.dim", code: OpCode::VarDim, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::std_dim, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, None), a("unbiased", K::Bool, false, false, Some("True")), a("keepdim", K::Bool, false, false, Some("False"))], results: 1, schema: "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor" },
    Row { name: "aten::var_mean.correction", code: OpCode::VarMeanCorrection, class: C::Reduction, props: P::NONE.and(P::TOTAL), rule: r::reduction::std_mean_correction, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dim", K::Ints, true, false, Some("None")), a("correction", K::Scalar, true, false, Some("None")), a("keepdim", K::Bool, false, false, Some("False"))], results: 2, schema: "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)" },
    Row { name: "aten::vdot", code: OpCode::Vdot, class: C::Matmul, props: P::NONE.and(P::TOTAL), rule: r::matmul::dot, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "vdot(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::view", code: OpCode::View, class: C::View, props: P::NONE.and(P::TOTAL), rule: r::view::view, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None)], results: 1, schema: "view(Tensor(a) self, SymInt[] size) -> Tensor(a)" },
    Row { name: "aten::view_copy", code: OpCode::ViewCopy, class: C::Movement, props: P::NONE.and(P::TOTAL), rule: r::view::copy, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("size", K::Ints, false, false, None)], results: 1, schema: "view_copy(Tensor self, SymInt[] size) -> Tensor" },
    Row { name: "aten::where.self", code: OpCode::WhereSelf, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::where_self, numbers: None, overrides: false, expr: Some("where(condition, self, other)"), compute: Some(Compute::Moved), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "where(condition, 0, grad)"), ("self", "where(condition, grad, 0)")], gradients_without: &[], arguments: &[a("condition", K::Tensor, false, false, None), a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::xlogy.Tensor", code: OpCode::XlogyTensor, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::float, numbers: None, overrides: false, expr: Some("where(isnan(other), other, where(self == 0, 0, self * log(other)))"), compute: Some(Compute::Float), no_fuse: None, inexact: None, reduce: None, gradients: &[("other", "grad * self / other"), ("self", "grad * where(self == 0 && other <= 0, 0, log(other))")], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("other", K::Tensor, false, false, None)], results: 1, schema: "xlogy.Tensor(Tensor self, Tensor other) -> Tensor" },
    Row { name: "aten::zero", code: OpCode::Zero, class: C::Pointwise, props: P::NONE.and(P::TOTAL), rule: r::pointwise::like_self, numbers: None, overrides: false, expr: Some("0"), compute: Some(Compute::Moved), no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None)], results: 1, schema: "zero(Tensor self) -> Tensor" },
    Row { name: "aten::zero_", code: OpCode::ZeroInPlace, class: C::Factory, props: P::NONE.and(P::OVERWRITES).and(P::TOTAL), rule: r::movement::nothing_new, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, true, None)], results: 1, schema: "zero_(Tensor(a!) self) -> Tensor(a!)" },
    Row { name: "aten::zeros", code: OpCode::Zeros, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::zeros, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("size", K::Ints, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None"))], results: 1, schema: "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor" },
    Row { name: "aten::zeros_like", code: OpCode::ZerosLike, class: C::Factory, props: P::NONE.and(P::TOTAL), rule: r::factory::zeros_like, numbers: None, overrides: false, expr: None, compute: None, no_fuse: None, inexact: None, reduce: None, gradients: &[], gradients_without: &[], arguments: &[a("self", K::Tensor, false, false, None), a("dtype", K::DType, true, false, Some("None")), a("layout", K::Layout, true, false, Some("None")), a("device", K::Device, true, false, Some("None")), a("pin_memory", K::Bool, true, false, Some("None")), a("memory_format", K::MemoryFormat, true, false, Some("None"))], results: 1, schema: "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor" },
];

/// In-place and out variants, sorted by name, with the code of their functional operator.
#[rustfmt::skip]
pub(super) static VARIANTS: &[(&str, OpCode)] = &[
    ("aten::_linalg_det.result", OpCode::UnderscoreLinalgDet),
    ("aten::_linalg_eigh.eigenvalues", OpCode::UnderscoreLinalgEigh),
    ("aten::_linalg_slogdet.sign", OpCode::UnderscoreLinalgSlogdet),
    ("aten::_linalg_svd.U", OpCode::UnderscoreLinalgSvd),
    ("aten::_log_softmax.out", OpCode::UnderscoreLogSoftmax),
    ("aten::_log_softmax_backward_data.out", OpCode::UnderscoreLogSoftmaxBackwardData),
    ("aten::_softmax.out", OpCode::UnderscoreSoftmax),
    ("aten::_softmax_backward_data.out", OpCode::UnderscoreSoftmaxBackwardData),
    ("aten::abs.out", OpCode::Abs),
    ("aten::abs_", OpCode::Abs),
    ("aten::acos.out", OpCode::Acos),
    ("aten::acos_", OpCode::Acos),
    ("aten::acosh.out", OpCode::Acosh),
    ("aten::acosh_", OpCode::Acosh),
    ("aten::adaptive_max_pool2d.out", OpCode::AdaptiveMaxPool2d),
    ("aten::adaptive_max_pool2d_backward.grad_input", OpCode::AdaptiveMaxPool2dBackward),
    ("aten::adaptive_max_pool3d.out", OpCode::AdaptiveMaxPool3d),
    ("aten::adaptive_max_pool3d_backward.grad_input", OpCode::AdaptiveMaxPool3dBackward),
    ("aten::add.out", OpCode::AddTensor),
    ("aten::add_.Scalar", OpCode::AddScalar),
    ("aten::addbmm.out", OpCode::Addbmm),
    ("aten::addbmm_", OpCode::Addbmm),
    ("aten::addcdiv.out", OpCode::Addcdiv),
    ("aten::addcmul.out", OpCode::Addcmul),
    ("aten::addmm.out", OpCode::Addmm),
    ("aten::addmm_", OpCode::Addmm),
    ("aten::addmv.out", OpCode::Addmv),
    ("aten::addmv_", OpCode::Addmv),
    ("aten::addr.out", OpCode::Addr),
    ("aten::addr_", OpCode::Addr),
    ("aten::all.all_out", OpCode::All),
    ("aten::all.dims_out", OpCode::AllDims),
    ("aten::all.out", OpCode::AllDim),
    ("aten::amax.out", OpCode::Amax),
    ("aten::amin.out", OpCode::Amin),
    ("aten::aminmax.out", OpCode::Aminmax),
    ("aten::any.all_out", OpCode::Any),
    ("aten::any.dims_out", OpCode::AnyDims),
    ("aten::any.out", OpCode::AnyDim),
    ("aten::argmax.out", OpCode::Argmax),
    ("aten::argmin.out", OpCode::Argmin),
    ("aten::as_strided_", OpCode::AsStrided),
    ("aten::asin.out", OpCode::Asin),
    ("aten::asin_", OpCode::Asin),
    ("aten::asinh.out", OpCode::Asinh),
    ("aten::asinh_", OpCode::Asinh),
    ("aten::atan.out", OpCode::Atan),
    ("aten::atan2.out", OpCode::Atan2),
    ("aten::atan2_", OpCode::Atan2),
    ("aten::atan_", OpCode::Atan),
    ("aten::atanh.out", OpCode::Atanh),
    ("aten::atanh_", OpCode::Atanh),
    ("aten::avg_pool2d.out", OpCode::AvgPool2d),
    ("aten::avg_pool2d_backward.grad_input", OpCode::AvgPool2dBackward),
    ("aten::avg_pool3d.out", OpCode::AvgPool3d),
    ("aten::avg_pool3d_backward.grad_input", OpCode::AvgPool3dBackward),
    ("aten::baddbmm.out", OpCode::Baddbmm),
    ("aten::baddbmm_", OpCode::Baddbmm),
    ("aten::bernoulli.out", OpCode::Bernoulli),
    ("aten::binary_cross_entropy.out", OpCode::BinaryCrossEntropy),
    ("aten::binary_cross_entropy_backward.grad_input", OpCode::BinaryCrossEntropyBackward),
    ("aten::bitwise_and.Scalar_out", OpCode::BitwiseAndScalar),
    ("aten::bitwise_and.Tensor_out", OpCode::BitwiseAndTensor),
    ("aten::bitwise_and_.Scalar", OpCode::BitwiseAndScalar),
    ("aten::bitwise_and_.Tensor", OpCode::BitwiseAndTensor),
    ("aten::bitwise_left_shift.Tensor_out", OpCode::BitwiseLeftShiftTensor),
    ("aten::bitwise_left_shift_.Tensor", OpCode::BitwiseLeftShiftTensor),
    ("aten::bitwise_not.out", OpCode::BitwiseNot),
    ("aten::bitwise_not_", OpCode::BitwiseNot),
    ("aten::bitwise_or.Scalar_out", OpCode::BitwiseOrScalar),
    ("aten::bitwise_or.Tensor_out", OpCode::BitwiseOrTensor),
    ("aten::bitwise_or_.Scalar", OpCode::BitwiseOrScalar),
    ("aten::bitwise_or_.Tensor", OpCode::BitwiseOrTensor),
    ("aten::bitwise_right_shift.Tensor_out", OpCode::BitwiseRightShiftTensor),
    ("aten::bitwise_right_shift_.Tensor", OpCode::BitwiseRightShiftTensor),
    ("aten::bitwise_xor.Scalar_out", OpCode::BitwiseXorScalar),
    ("aten::bitwise_xor.Tensor_out", OpCode::BitwiseXorTensor),
    ("aten::bitwise_xor_.Scalar", OpCode::BitwiseXorScalar),
    ("aten::bitwise_xor_.Tensor", OpCode::BitwiseXorTensor),
    ("aten::bmm.out", OpCode::Bmm),
    ("aten::bucketize.Tensor_out", OpCode::BucketizeTensor),
    ("aten::cat.out", OpCode::Cat),
    ("aten::ceil.out", OpCode::Ceil),
    ("aten::ceil_", OpCode::Ceil),
    ("aten::celu_", OpCode::Celu),
    ("aten::cholesky.out", OpCode::Cholesky),
    ("aten::clamp.Tensor_out", OpCode::ClampTensor),
    ("aten::clamp.out", OpCode::Clamp),
    ("aten::clamp_", OpCode::Clamp),
    ("aten::clamp_.Tensor", OpCode::ClampTensor),
    ("aten::clamp_max.Tensor_out", OpCode::ClampMaxTensor),
    ("aten::clamp_max.out", OpCode::ClampMax),
    ("aten::clamp_max_", OpCode::ClampMax),
    ("aten::clamp_max_.Tensor", OpCode::ClampMaxTensor),
    ("aten::clamp_min.Tensor_out", OpCode::ClampMinTensor),
    ("aten::clamp_min.out", OpCode::ClampMin),
    ("aten::clamp_min_", OpCode::ClampMin),
    ("aten::clamp_min_.Tensor", OpCode::ClampMinTensor),
    ("aten::col2im.out", OpCode::Col2im),
    ("aten::copysign.out", OpCode::CopysignTensor),
    ("aten::copysign_.Tensor", OpCode::CopysignTensor),
    ("aten::cos.out", OpCode::Cos),
    ("aten::cos_", OpCode::Cos),
    ("aten::cosh.out", OpCode::Cosh),
    ("aten::cosh_", OpCode::Cosh),
    ("aten::cummax.out", OpCode::Cummax),
    ("aten::cummin.out", OpCode::Cummin),
    ("aten::cumprod.out", OpCode::Cumprod),
    ("aten::cumprod_", OpCode::Cumprod),
    ("aten::cumsum.out", OpCode::Cumsum),
    ("aten::cumsum_", OpCode::Cumsum),
    ("aten::deg2rad.out", OpCode::Deg2rad),
    ("aten::deg2rad_", OpCode::Deg2rad),
    ("aten::detach_", OpCode::Detach),
    ("aten::digamma.out", OpCode::Digamma),
    ("aten::digamma_", OpCode::Digamma),
    ("aten::div.out", OpCode::DivTensor),
    ("aten::div.out_mode", OpCode::DivTensorMode),
    ("aten::div_.Scalar", OpCode::DivScalar),
    ("aten::div_.Scalar_mode", OpCode::DivScalarMode),
    ("aten::div_.Tensor", OpCode::DivTensor),
    ("aten::div_.Tensor_mode", OpCode::DivTensorMode),
    ("aten::dot.out", OpCode::Dot),
    ("aten::elu.out", OpCode::Elu),
    ("aten::elu_", OpCode::Elu),
    ("aten::elu_backward.grad_input", OpCode::EluBackward),
    ("aten::eq.Scalar_out", OpCode::EqScalar),
    ("aten::eq.Tensor_out", OpCode::EqTensor),
    ("aten::eq_.Scalar", OpCode::EqScalar),
    ("aten::eq_.Tensor", OpCode::EqTensor),
    ("aten::erf.out", OpCode::Erf),
    ("aten::erf_", OpCode::Erf),
    ("aten::erfc.out", OpCode::Erfc),
    ("aten::erfc_", OpCode::Erfc),
    ("aten::erfinv.out", OpCode::Erfinv),
    ("aten::erfinv_", OpCode::Erfinv),
    ("aten::exp.out", OpCode::Exp),
    ("aten::exp2.out", OpCode::Exp2),
    ("aten::exp2_", OpCode::Exp2),
    ("aten::exp_", OpCode::Exp),
    ("aten::expm1.out", OpCode::Expm1),
    ("aten::expm1_", OpCode::Expm1),
    ("aten::floor.out", OpCode::Floor),
    ("aten::floor_", OpCode::Floor),
    ("aten::floor_divide.out", OpCode::FloorDivide),
    ("aten::floor_divide_.Tensor", OpCode::FloorDivide),
    ("aten::fmax.out", OpCode::Fmax),
    ("aten::fmin.out", OpCode::Fmin),
    ("aten::fmod.Scalar_out", OpCode::FmodScalar),
    ("aten::fmod.Tensor_out", OpCode::FmodTensor),
    ("aten::fmod_.Scalar", OpCode::FmodScalar),
    ("aten::fmod_.Tensor", OpCode::FmodTensor),
    ("aten::frac.out", OpCode::Frac),
    ("aten::frac_", OpCode::Frac),
    ("aten::gather.out", OpCode::Gather),
    ("aten::gcd.out", OpCode::Gcd),
    ("aten::gcd_", OpCode::Gcd),
    ("aten::ge.Scalar_out", OpCode::GeScalar),
    ("aten::ge.Tensor_out", OpCode::GeTensor),
    ("aten::ge_.Scalar", OpCode::GeScalar),
    ("aten::ge_.Tensor", OpCode::GeTensor),
    ("aten::gelu.out", OpCode::Gelu),
    ("aten::gelu_", OpCode::Gelu),
    ("aten::gelu_backward.grad_input", OpCode::GeluBackward),
    ("aten::glu.out", OpCode::Glu),
    ("aten::glu_backward.grad_input", OpCode::GluBackward),
    ("aten::gt.Scalar_out", OpCode::GtScalar),
    ("aten::gt.Tensor_out", OpCode::GtTensor),
    ("aten::gt_.Scalar", OpCode::GtScalar),
    ("aten::gt_.Tensor", OpCode::GtTensor),
    ("aten::hardshrink.out", OpCode::Hardshrink),
    ("aten::hardshrink_backward.grad_input", OpCode::HardshrinkBackward),
    ("aten::hardsigmoid.out", OpCode::Hardsigmoid),
    ("aten::hardsigmoid_", OpCode::Hardsigmoid),
    ("aten::hardsigmoid_backward.grad_input", OpCode::HardsigmoidBackward),
    ("aten::hardswish.out", OpCode::Hardswish),
    ("aten::hardswish_", OpCode::Hardswish),
    ("aten::hardtanh.out", OpCode::Hardtanh),
    ("aten::hardtanh_", OpCode::Hardtanh),
    ("aten::hardtanh_backward.grad_input", OpCode::HardtanhBackward),
    ("aten::heaviside.out", OpCode::Heaviside),
    ("aten::heaviside_", OpCode::Heaviside),
    ("aten::histc.out", OpCode::Histc),
    ("aten::huber_loss.out", OpCode::HuberLoss),
    ("aten::huber_loss_backward.out", OpCode::HuberLossBackward),
    ("aten::hypot.out", OpCode::Hypot),
    ("aten::hypot_", OpCode::Hypot),
    ("aten::i0.out", OpCode::I0),
    ("aten::i0_", OpCode::I0),
    ("aten::im2col.out", OpCode::Im2col),
    ("aten::index.Tensor_out", OpCode::IndexTensor),
    ("aten::index_add.out", OpCode::IndexAdd),
    ("aten::index_add_", OpCode::IndexAdd),
    ("aten::index_copy.out", OpCode::IndexCopy),
    ("aten::index_copy_", OpCode::IndexCopy),
    ("aten::index_fill_.int_Scalar", OpCode::IndexFillIntScalar),
    ("aten::index_put_", OpCode::IndexPut),
    ("aten::index_select.out", OpCode::IndexSelect),
    ("aten::inverse.out", OpCode::Inverse),
    ("aten::isneginf.out", OpCode::Isneginf),
    ("aten::isposinf.out", OpCode::Isposinf),
    ("aten::kthvalue.values", OpCode::Kthvalue),
    ("aten::lcm.out", OpCode::Lcm),
    ("aten::lcm_", OpCode::Lcm),
    ("aten::le.Scalar_out", OpCode::LeScalar),
    ("aten::le.Tensor_out", OpCode::LeTensor),
    ("aten::le_.Scalar", OpCode::LeScalar),
    ("aten::le_.Tensor", OpCode::LeTensor),
    ("aten::leaky_relu.out", OpCode::LeakyRelu),
    ("aten::leaky_relu_", OpCode::LeakyRelu),
    ("aten::leaky_relu_backward.grad_input", OpCode::LeakyReluBackward),
    ("aten::lerp.Scalar_out", OpCode::LerpScalar),
    ("aten::lerp.Tensor_out", OpCode::LerpTensor),
    ("aten::lerp_.Scalar", OpCode::LerpScalar),
    ("aten::lerp_.Tensor", OpCode::LerpTensor),
    ("aten::lgamma.out", OpCode::Lgamma),
    ("aten::lgamma_", OpCode::Lgamma),
    ("aten::linalg_cholesky_ex.L", OpCode::LinalgCholeskyEx),
    ("aten::linalg_cross.out", OpCode::LinalgCross),
    ("aten::linalg_inv_ex.inverse", OpCode::LinalgInvEx),
    ("aten::linalg_lu_factor_ex.out", OpCode::LinalgLuFactorEx),
    ("aten::linalg_pinv.atol_rtol_tensor_out", OpCode::LinalgPinvAtolRtolTensor),
    ("aten::linalg_qr.out", OpCode::LinalgQr),
    ("aten::linalg_solve_triangular.out", OpCode::LinalgSolveTriangular),
    ("aten::linalg_vector_norm.out", OpCode::LinalgVectorNorm),
    ("aten::log.out", OpCode::Log),
    ("aten::log10.out", OpCode::Log10),
    ("aten::log10_", OpCode::Log10),
    ("aten::log1p.out", OpCode::Log1p),
    ("aten::log1p_", OpCode::Log1p),
    ("aten::log2.out", OpCode::Log2),
    ("aten::log2_", OpCode::Log2),
    ("aten::log_", OpCode::Log),
    ("aten::log_sigmoid_backward.grad_input", OpCode::LogSigmoidBackward),
    ("aten::log_sigmoid_forward.output", OpCode::LogSigmoidForward),
    ("aten::logaddexp.out", OpCode::Logaddexp),
    ("aten::logaddexp2.out", OpCode::Logaddexp2),
    ("aten::logcumsumexp.out", OpCode::Logcumsumexp),
    ("aten::logical_and.out", OpCode::LogicalAnd),
    ("aten::logical_and_", OpCode::LogicalAnd),
    ("aten::logical_not.out", OpCode::LogicalNot),
    ("aten::logical_not_", OpCode::LogicalNot),
    ("aten::logical_or.out", OpCode::LogicalOr),
    ("aten::logical_or_", OpCode::LogicalOr),
    ("aten::logical_xor.out", OpCode::LogicalXor),
    ("aten::logical_xor_", OpCode::LogicalXor),
    ("aten::logit.out", OpCode::Logit),
    ("aten::logit_", OpCode::Logit),
    ("aten::logit_backward.grad_input", OpCode::LogitBackward),
    ("aten::logsumexp.out", OpCode::Logsumexp),
    ("aten::lt.Scalar_out", OpCode::LtScalar),
    ("aten::lt.Tensor_out", OpCode::LtTensor),
    ("aten::lt_.Scalar", OpCode::LtScalar),
    ("aten::lt_.Tensor", OpCode::LtTensor),
    ("aten::masked_fill_.Scalar", OpCode::MaskedFillScalar),
    ("aten::masked_fill_.Tensor", OpCode::MaskedFillTensor),
    ("aten::masked_scatter_", OpCode::MaskedScatter),
    ("aten::masked_select.out", OpCode::MaskedSelect),
    ("aten::max.dim_max", OpCode::MaxDim),
    ("aten::max.unary_out", OpCode::Max),
    ("aten::max_pool2d_with_indices.out", OpCode::MaxPool2dWithIndices),
    ("aten::max_pool2d_with_indices_backward.grad_input", OpCode::MaxPool2dWithIndicesBackward),
    ("aten::max_pool3d_with_indices.out", OpCode::MaxPool3dWithIndices),
    ("aten::max_pool3d_with_indices_backward.grad_input", OpCode::MaxPool3dWithIndicesBackward),
    ("aten::maximum.out", OpCode::Maximum),
    ("aten::mean.dtype_out", OpCode::Mean),
    ("aten::mean.out", OpCode::MeanDim),
    ("aten::median.dim_values", OpCode::MedianDim),
    ("aten::min.dim_min", OpCode::MinDim),
    ("aten::min.unary_out", OpCode::Min),
    ("aten::minimum.out", OpCode::Minimum),
    ("aten::mish.out", OpCode::Mish),
    ("aten::mish_", OpCode::Mish),
    ("aten::mm.out", OpCode::Mm),
    ("aten::mode.values", OpCode::Mode),
    ("aten::mse_loss.out", OpCode::MseLoss),
    ("aten::mse_loss_backward.grad_input", OpCode::MseLossBackward),
    ("aten::mul.out", OpCode::MulTensor),
    ("aten::mul_.Scalar", OpCode::MulScalar),
    ("aten::mul_.Tensor", OpCode::MulTensor),
    ("aten::multinomial.out", OpCode::Multinomial),
    ("aten::mv.out", OpCode::Mv),
    ("aten::nansum.out", OpCode::Nansum),
    ("aten::narrow_copy.out", OpCode::NarrowCopy),
    ("aten::native_batch_norm.out", OpCode::NativeBatchNorm),
    ("aten::ne.Scalar_out", OpCode::NeScalar),
    ("aten::ne.Tensor_out", OpCode::NeTensor),
    ("aten::ne_.Scalar", OpCode::NeScalar),
    ("aten::ne_.Tensor", OpCode::NeTensor),
    ("aten::neg.out", OpCode::Neg),
    ("aten::neg_", OpCode::Neg),
    ("aten::nextafter.out", OpCode::Nextafter),
    ("aten::nextafter_", OpCode::Nextafter),
    ("aten::nll_loss2d_backward.grad_input", OpCode::NllLoss2dBackward),
    ("aten::nll_loss2d_forward.output", OpCode::NllLoss2dForward),
    ("aten::nll_loss_backward.grad_input", OpCode::NllLossBackward),
    ("aten::nll_loss_forward.output", OpCode::NllLossForward),
    ("aten::nonzero.out", OpCode::Nonzero),
    ("aten::norm.dtype_out", OpCode::NormScalarOptDimDtype),
    ("aten::norm.out", OpCode::NormScalarOptDim),
    ("aten::normal.Tensor_Tensor_out", OpCode::NormalTensorTensor),
    ("aten::normal.Tensor_float_out", OpCode::NormalTensorFloat),
    ("aten::normal.float_Tensor_out", OpCode::NormalFloatTensor),
    ("aten::pow.Scalar_out", OpCode::PowScalar),
    ("aten::pow.Tensor_Scalar_out", OpCode::PowTensorScalar),
    ("aten::pow.Tensor_Tensor_out", OpCode::PowTensorTensor),
    ("aten::pow_.Scalar", OpCode::PowTensorScalar),
    ("aten::pow_.Tensor", OpCode::PowTensorTensor),
    ("aten::prod.int_out", OpCode::ProdDimInt),
    ("aten::put_", OpCode::Put),
    ("aten::rad2deg.out", OpCode::Rad2deg),
    ("aten::rad2deg_", OpCode::Rad2deg),
    ("aten::reciprocal.out", OpCode::Reciprocal),
    ("aten::reciprocal_", OpCode::Reciprocal),
    ("aten::reflection_pad1d.out", OpCode::ReflectionPad1d),
    ("aten::reflection_pad2d.out", OpCode::ReflectionPad2d),
    ("aten::reflection_pad3d.out", OpCode::ReflectionPad3d),
    ("aten::relu_", OpCode::Relu),
    ("aten::remainder.Scalar_out", OpCode::RemainderScalar),
    ("aten::remainder.Tensor_out", OpCode::RemainderTensor),
    ("aten::remainder_.Scalar", OpCode::RemainderScalar),
    ("aten::remainder_.Tensor", OpCode::RemainderTensor),
    ("aten::renorm.out", OpCode::Renorm),
    ("aten::renorm_", OpCode::Renorm),
    ("aten::replication_pad1d.out", OpCode::ReplicationPad1d),
    ("aten::replication_pad2d.out", OpCode::ReplicationPad2d),
    ("aten::replication_pad3d.out", OpCode::ReplicationPad3d),
    ("aten::round.decimals_out", OpCode::RoundDecimals),
    ("aten::round.out", OpCode::Round),
    ("aten::round_", OpCode::Round),
    ("aten::round_.decimals", OpCode::RoundDecimals),
    ("aten::rsqrt.out", OpCode::Rsqrt),
    ("aten::rsqrt_", OpCode::Rsqrt),
    ("aten::scatter.reduce_out", OpCode::ScatterReduce),
    ("aten::scatter.src_out", OpCode::ScatterSrc),
    ("aten::scatter.value_out", OpCode::ScatterValue),
    ("aten::scatter_.reduce", OpCode::ScatterReduce),
    ("aten::scatter_.src", OpCode::ScatterSrc),
    ("aten::scatter_.value", OpCode::ScatterValue),
    ("aten::scatter_add.out", OpCode::ScatterAdd),
    ("aten::scatter_add_", OpCode::ScatterAdd),
    ("aten::scatter_reduce.two_out", OpCode::ScatterReduceTwo),
    ("aten::scatter_reduce_.two", OpCode::ScatterReduceTwo),
    ("aten::searchsorted.Tensor_out", OpCode::SearchsortedTensor),
    ("aten::selu_", OpCode::Selu),
    ("aten::sgn.out", OpCode::Sgn),
    ("aten::sgn_", OpCode::Sgn),
    ("aten::sigmoid.out", OpCode::Sigmoid),
    ("aten::sigmoid_", OpCode::Sigmoid),
    ("aten::sigmoid_backward.grad_input", OpCode::SigmoidBackward),
    ("aten::sign.out", OpCode::Sign),
    ("aten::sign_", OpCode::Sign),
    ("aten::signbit.out", OpCode::Signbit),
    ("aten::silu.out", OpCode::Silu),
    ("aten::silu_", OpCode::Silu),
    ("aten::silu_backward.grad_input", OpCode::SiluBackward),
    ("aten::sin.out", OpCode::Sin),
    ("aten::sin_", OpCode::Sin),
    ("aten::sinc.out", OpCode::Sinc),
    ("aten::sinc_", OpCode::Sinc),
    ("aten::sinh.out", OpCode::Sinh),
    ("aten::sinh_", OpCode::Sinh),
    ("aten::slogdet.out", OpCode::Slogdet),
    ("aten::smooth_l1_loss.out", OpCode::SmoothL1Loss),
    ("aten::smooth_l1_loss_backward.grad_input", OpCode::SmoothL1LossBackward),
    ("aten::soft_margin_loss.out", OpCode::SoftMarginLoss),
    ("aten::softplus.out", OpCode::Softplus),
    ("aten::softplus_backward.grad_input", OpCode::SoftplusBackward),
    ("aten::softshrink.out", OpCode::Softshrink),
    ("aten::softshrink_backward.grad_input", OpCode::SoftshrinkBackward),
    ("aten::sort.values", OpCode::Sort),
    ("aten::sort.values_stable", OpCode::SortStable),
    ("aten::special_entr.out", OpCode::SpecialEntr),
    ("aten::split_copy.Tensor_out", OpCode::SplitCopyTensor),
    ("aten::split_with_sizes_copy.out", OpCode::SplitWithSizesCopy),
    ("aten::sqrt.out", OpCode::Sqrt),
    ("aten::sqrt_", OpCode::Sqrt),
    ("aten::square.out", OpCode::Square),
    ("aten::square_", OpCode::Square),
    ("aten::squeeze_", OpCode::Squeeze),
    ("aten::squeeze_.dim", OpCode::SqueezeDim),
    ("aten::squeeze_.dims", OpCode::SqueezeDims),
    ("aten::stack.out", OpCode::Stack),
    ("aten::std.correction_out", OpCode::StdCorrection),
    ("aten::std.out", OpCode::StdDim),
    ("aten::sub.out", OpCode::SubTensor),
    ("aten::sub_.Scalar", OpCode::SubScalar),
    ("aten::sub_.Tensor", OpCode::SubTensor),
    ("aten::sum.IntList_out", OpCode::SumDimIntList),
    ("aten::svd.U", OpCode::Svd),
    ("aten::t_", OpCode::T),
    ("aten::take.out", OpCode::Take),
    ("aten::tan.out", OpCode::Tan),
    ("aten::tan_", OpCode::Tan),
    ("aten::tanh.out", OpCode::Tanh),
    ("aten::tanh_", OpCode::Tanh),
    ("aten::tanh_backward.grad_input", OpCode::TanhBackward),
    ("aten::threshold.out", OpCode::Threshold),
    ("aten::threshold_", OpCode::Threshold),
    ("aten::threshold_backward.grad_input", OpCode::ThresholdBackward),
    ("aten::topk.values", OpCode::Topk),
    ("aten::transpose_", OpCode::TransposeInt),
    ("aten::triangular_solve.X", OpCode::TriangularSolve),
    ("aten::tril.out", OpCode::Tril),
    ("aten::tril_", OpCode::Tril),
    ("aten::triu.out", OpCode::Triu),
    ("aten::triu_", OpCode::Triu),
    ("aten::trunc.out", OpCode::Trunc),
    ("aten::trunc_", OpCode::Trunc),
    ("aten::unbind_copy.int_out", OpCode::UnbindCopyInt),
    ("aten::unsqueeze_", OpCode::Unsqueeze),
    ("aten::upsample_bicubic2d.out", OpCode::UpsampleBicubic2d),
    ("aten::upsample_bicubic2d_backward.grad_input", OpCode::UpsampleBicubic2dBackward),
    ("aten::upsample_bilinear2d.out", OpCode::UpsampleBilinear2d),
    ("aten::upsample_bilinear2d_backward.grad_input", OpCode::UpsampleBilinear2dBackward),
    ("aten::upsample_linear1d.out", OpCode::UpsampleLinear1d),
    ("aten::upsample_linear1d_backward.grad_input", OpCode::UpsampleLinear1dBackward),
    ("aten::upsample_nearest1d.out", OpCode::UpsampleNearest1d),
    ("aten::upsample_nearest1d_backward.grad_input", OpCode::UpsampleNearest1dBackward),
    ("aten::upsample_nearest2d.out", OpCode::UpsampleNearest2d),
    ("aten::upsample_nearest2d_backward.grad_input", OpCode::UpsampleNearest2dBackward),
    ("aten::upsample_nearest3d.out", OpCode::UpsampleNearest3d),
    ("aten::upsample_nearest3d_backward.grad_input", OpCode::UpsampleNearest3dBackward),
    ("aten::upsample_trilinear3d.out", OpCode::UpsampleTrilinear3d),
    ("aten::upsample_trilinear3d_backward.grad_input", OpCode::UpsampleTrilinear3dBackward),
    ("aten::var.correction_out", OpCode::VarCorrection),
    ("aten::var.out", OpCode::VarDim),
    ("aten::vdot.out", OpCode::Vdot),
    ("aten::where.self_out", OpCode::WhereSelf),
    ("aten::xlogy.OutTensor", OpCode::XlogyTensor),
    ("aten::xlogy_.Tensor", OpCode::XlogyTensor),
];
