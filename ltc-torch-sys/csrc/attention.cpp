// Which kernel `scaled_dot_product_attention` takes: the one that libtorch would choose where the values are.
//
// CUDA's fused kernels are operators whose results are not all tensors, or are not all on the GPU. What is recorded
// there is `ltc_cuda::attention` and its gradient, whose kernels call them. Operators of `aten` lead to these, so that
// autograd, autocast and tracing find what they know: cuDNN's and the memory-efficient one under their names, flash
// attention under that of the CPU's, which is what libtorch calls for a device that is not CUDA.
#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>
#include <torch/library.h>

#include <cmath>

#include "shim.h"

namespace ltc {
namespace {
using at::SDPBackend;
using OptTensor = std::optional<Tensor>;
using OptScale = std::optional<double>;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// ---- the choice ----
bool has_plain_layout(const Tensor& t) {
  return !t.is_nested() && t.layout() == c10::kStrided && !t.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

// All that the choice looks at, as a tensor of CUDA's without memory.
Tensor described(const Tensor& t, const c10::Storage& nothing) {
  auto made = at::detail::make_tensor<TensorImpl>(c10::Storage(nothing), DispatchKeySet(DispatchKey::CUDA), t.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides());
  if (t.requires_grad()) made.unsafeGetTensorImpl()->set_requires_grad(true);
  return made;
}

// Chooses the kernel of an attention. The place is asked below Python's modes: some (FakeTensor) refuse the tensors
// without memory that stand in here. The CPU's choice reads only shapes, also symbolic ones, and dtypes.
int64_t choice(const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& mask, double dropout, bool causal,
               OptScale scale, bool gqa) {
  if (is_on_cpu(q)) return at::native::_fused_sdp_choice_cpp(q, k, v, mask, dropout, causal, scale, gqa);
  const bool masked = mask && mask->defined();
  const bool plain = has_plain_layout(q) && has_plain_layout(k) && has_plain_layout(v);
  // The draws of a fused kernel are its own.
  if (dropout != 0 || !plain || (masked && !has_plain_layout(*mask))) return (int64_t)SDPBackend::math;
  const c10::Device place = place_of_device(q.device().index());
  const c10::Storage nothing(c10::Storage::use_byte_size_t(), 0, at::DataPtr(nullptr, place), nullptr, false);
  return at::_ops::_fused_sdp_choice::redispatch(
      DispatchKeySet(DispatchKey::CUDA), described(q, nothing), described(k, nothing), described(v, nothing),
      masked ? OptTensor(described(*mask, nothing)) : std::nullopt, dropout, causal, scale, gqa);
}

// ---- how results lie: as eager CUDA's ----
struct Lies {
  ScalarType dtype;
  Dims sizes, strides;
  Tensor on(c10::Device device) const {
    return at::empty_strided(sizes, strides, at::TensorOptions(dtype).device(device));
  }
};

Lies contiguous(ScalarType dtype, Dims sizes) {
  Dims strides(sizes.size());
  int64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0; next *= std::max<int64_t>(sizes[d], 1)) strides[d] = next;
  return {dtype, std::move(sizes), std::move(strides)};
}
// Heads are next to each other, for each row.
Lies rows_first(const Tensor& like, int64_t last) {
  Lies lies = contiguous(like.scalar_type(), {like.size(0), like.size(2), like.size(1), last});
  std::swap(lies.sizes[1], lies.sizes[2]);
  std::swap(lies.strides[1], lies.strides[2]);
  return lies;
}
// Dimensions are in the order of those of another tensor.
Lies ordered(const Tensor& like, int64_t last) {
  Dims sizes(like.sizes());
  sizes.back() = last;
  if (sizes == Dims(like.sizes()) && like.is_non_overlapping_and_dense())
    return {like.scalar_type(), std::move(sizes), Dims(like.strides())};
  const Dims strides(at::infer_dense_strides(sizes, like.strides()));
  return {like.scalar_type(), std::move(sizes), strides};
}

std::array<Lies, 2> results(const Tensor& q, const Tensor& v, bool logsumexp, SDPBackend kind) {
  const int64_t batch = q.size(0), heads = q.size(1), rows = q.size(2), last = v.size(-1);
  switch (kind) {
    case SDPBackend::efficient_attention:
      return {rows_first(q, last), contiguous(at::kFloat, {batch, heads, logsumexp ? (rows + 31) / 32 * 32 : 0})};
    case SDPBackend::cudnn_attention:
      return {ordered(q, last), contiguous(at::kFloat, {batch, heads, logsumexp ? rows : 0, 1})};
    default: return {ordered(q, last), contiguous(at::kFloat, {batch, heads, rows})};
  }
}
std::array<Lies, 3> gradients(const Tensor& q, const Tensor& k, const Tensor& v, SDPBackend kind) {
  const auto lies = kind == SDPBackend::efficient_attention ? rows_first : ordered;
  return {lies(q, q.size(-1)), lies(k, k.size(-1)), lies(v, v.size(-1))};
}

// Where libtorch has it otherwise, it is put as was said when the call was recorded.
Tensor put(const Tensor& made, const Lies& lies, c10::Device device) {
  if (made.defined() && made.sizes() == IntArrayRef(lies.sizes) && made.strides() == IntArrayRef(lies.strides))
    return made;
  Tensor moved = lies.on(device);
  return made.defined() && moved.numel() ? moved.copy_(made) : moved;
}

Two forward_meta(const Tensor& q, const Tensor&, const Tensor& v, const OptTensor&, bool logsumexp, bool, OptScale,
                 int64_t kind) {
  const auto lies = results(q, v, logsumexp, (SDPBackend)kind);
  return {lies[0].on(c10::kMeta), lies[1].on(c10::kMeta)};
}
Four backward_meta(const Tensor&, const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias,
                   const Tensor&, const Tensor&, bool bias_gradient, bool, OptScale, int64_t kind) {
  const auto lies = gradients(q, k, v, (SDPBackend)kind);
  Tensor of_bias;
  if (bias_gradient) of_bias = contiguous(bias->scalar_type(), Dims(bias->sizes())).on(c10::kMeta);
  return {lies[0].on(c10::kMeta), lies[1].on(c10::kMeta), lies[2].on(c10::kMeta), of_bias};
}

// ---- on CUDA ----
// Flash attention takes heads whose size is a multiple of eight; zeros behind them change nothing.
Tensor padded(const Tensor& t) {
  const int64_t more = (8 - t.size(-1) % 8) % 8;
  return more ? at::constant_pad_nd(t, {0, more}) : t;
}
Tensor cut(const Tensor& t, const Tensor& like) {
  return t.size(-1) == like.size(-1) ? t : t.narrow(-1, 0, like.size(-1));
}
double scale_of(const Tensor& q, OptScale scale) { return scale ? *scale : 1 / std::sqrt((double)q.size(-1)); }

Two forward_cuda(const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias, bool logsumexp, bool causal,
                 OptScale scale, int64_t kind) {
  Tensor out, sum;
  switch ((SDPBackend)kind) {
    case SDPBackend::efficient_attention: {
      auto made = at::_scaled_dot_product_efficient_attention(q, k, v, bias, logsumexp, 0, causal, scale);
      out = std::get<0>(made), sum = std::get<1>(made);
      break;
    }
    case SDPBackend::cudnn_attention: {
      auto made = at::_scaled_dot_product_cudnn_attention(q, k, v, bias, logsumexp, 0, causal, false, scale);
      out = std::get<0>(made), sum = std::get<1>(made);
      break;
    }
    default: {
      auto made = at::_scaled_dot_product_flash_attention(padded(q), padded(k), padded(v), 0, causal, false,
                                                          scale_of(q, scale));
      out = cut(std::get<0>(made), v), sum = std::get<1>(made);
    }
  }
  const auto lies = results(q, v, logsumexp, (SDPBackend)kind);
  return {put(out, lies[0], q.device()), put(sum, lies[1], q.device())};
}

Four backward_cuda(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias,
                   const Tensor& out, const Tensor& logsumexp, bool bias_gradient, bool causal, OptScale scale,
                   int64_t kind) {
  const Tensor none, added = bias.value_or(none);
  Tensor of_q, of_k, of_v, of_bias;
  // A state of a generator that nothing is drawn from.
  const auto state = [&](ScalarType dtype, c10::Device device, IntArrayRef sizes = {}) {
    return at::empty(sizes, at::TensorOptions(dtype).device(device));
  };
  switch ((SDPBackend)kind) {
    case SDPBackend::efficient_attention: {
      const Tensor seed = state(at::kLong, c10::kCPU);
      std::tie(of_q, of_k, of_v, of_bias) = at::_scaled_dot_product_efficient_attention_backward(
          grad, q, k, v, added, out, logsumexp, seed, seed, 0, {true, true, true, bias_gradient}, causal, scale);
      break;
    }
    case SDPBackend::cudnn_attention: {
      const Tensor seed = state(at::kLong, q.device());
      std::tie(of_q, of_k, of_v) = at::_scaled_dot_product_cudnn_attention_backward(
          grad, q, k, v, out, logsumexp, seed, seed, added, none, none, q.size(2), k.size(2), 0, causal, scale);
      break;
    }
    default: {
      std::tie(of_q, of_k, of_v) = at::_scaled_dot_product_flash_attention_backward(
          padded(grad), padded(q), padded(k), padded(v), padded(out), logsumexp, none, none, q.size(2), k.size(2), 0,
          causal, state(at::kUInt64, q.device(), {2}), state(at::kUInt64, q.device()), scale_of(q, scale));
      of_q = cut(of_q, q), of_k = cut(of_k, k), of_v = cut(of_v, v);
    }
  }
  const auto lies = gradients(q, k, v, (SDPBackend)kind);
  if (bias_gradient) of_bias = put(of_bias, contiguous(bias->scalar_type(), Dims(bias->sizes())), q.device());
  return {put(of_q, lies[0], q.device()), put(of_k, lies[1], q.device()), put(of_v, lies[2], q.device()),
          bias_gradient ? of_bias : none};
}

// ---- aten's operators on the lazy device ----
const OpInfo *g_forward, *g_backward;

IValue given(const OptTensor& t) { return t && t->defined() ? IValue(*t) : IValue(); }

void check_served(const Tensor& q, double dropout) {
  TORCH_CHECK_NOT_IMPLEMENTED(!is_on_cpu(q) && dropout == 0,
                              "ltc: CUDA's fused attention is served on a GPU, and without dropout");
}

Two forward(const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias, bool logsumexp, double dropout,
            bool causal, OptScale scale, SDPBackend kind) {
  check_served(q, dropout);
  Stack stack{q, k, v, given(bias), logsumexp, causal, scale, (int64_t)kind};
  run(*g_forward, &stack);
  return {stack[0].toTensor(), stack[1].toTensor()};
}
Four backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias,
              const Tensor& out, const Tensor& logsumexp, bool bias_gradient, double dropout, bool causal,
              OptScale scale, SDPBackend kind) {
  check_served(q, dropout);
  Stack stack{
      grad,         q, k, v, given(bias), out, logsumexp, bias_gradient && given(bias).isTensor(), causal, scale,
      (int64_t)kind};
  run(*g_backward, &stack);
  return {stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor(), stack[3].toTensor()};
}

// The state of a generator that nothing is drawn from: who saves it for the gradient expects a tensor.
Tensor no_state(const Tensor& q) { return new_uninit(at::kLong, {}, {}, q.device().index()); }

Four efficient(const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias, bool logsumexp, double dropout,
               bool causal, OptScale scale) {
  auto [out, sum] = forward(q, k, v, bias, logsumexp, dropout, causal, scale, SDPBackend::efficient_attention);
  return {out, sum, no_state(q), no_state(q)};
}
Four efficient_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
                        const Tensor& out, const Tensor& logsumexp, const Tensor&, const Tensor&, double dropout,
                        std::array<bool, 4> wanted, bool causal, OptScale scale) {
  return backward(grad, q, k, v, bias, out, logsumexp, wanted[3], dropout, causal, scale,
                  SDPBackend::efficient_attention);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> cudnn(
    const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias, bool logsumexp, double dropout,
    bool causal, bool, OptScale scale) {
  auto [out, sum] = forward(q, k, v, bias, logsumexp, dropout, causal, scale, SDPBackend::cudnn_attention);
  return {out, sum, {}, {}, q.size(2), k.size(2), no_state(q), no_state(q), {}};
}
Three cudnn_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                     const Tensor& logsumexp, const Tensor&, const Tensor&, const Tensor& bias, const Tensor&,
                     const Tensor&, c10::SymInt, c10::SymInt, double dropout, bool causal, OptScale scale) {
  auto [of_q, of_k, of_v, _] =
      backward(grad, q, k, v, bias, out, logsumexp, false, dropout, causal, scale, SDPBackend::cudnn_attention);
  return {of_q, of_k, of_v};
}

// The CPU's operators are recorded as what they are where they run on the CPU.
void flash(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
  static const OpInfo& info = op_info(op);
  const IValue* a = &(*stack)[stack->size() - 7];
  if (is_on_cpu(a[0].toTensor())) return run(info, stack);
  TORCH_CHECK_NOT_IMPLEMENTED(a[5].isNone(), "ltc: flash attention has no mask on a GPU");
  auto made = forward(a[0].toTensor(), a[1].toTensor(), a[2].toTensor(), {}, true, a[3].toDouble(), a[4].toBool(),
                      a[6].toOptional<double>(), SDPBackend::flash_attention);
  torch::jit::drop(*stack, 7);
  torch::jit::push(*stack, std::get<0>(made), std::get<1>(made));
}
void flash_backward(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
  static const OpInfo& info = op_info(op);
  const IValue* a = &(*stack)[stack->size() - 10];
  if (is_on_cpu(a[1].toTensor())) return run(info, stack);
  auto made =
      backward(a[0].toTensor(), a[1].toTensor(), a[2].toTensor(), a[3].toTensor(), {}, a[4].toTensor(), a[5].toTensor(),
               false, a[6].toDouble(), a[7].toBool(), a[9].toOptional<double>(), SDPBackend::flash_attention);
  torch::jit::drop(*stack, 10);
  torch::jit::push(*stack, std::get<0>(made), std::get<1>(made), std::get<2>(made));
}
}  // namespace

void register_attention(torch::Library& device) {
  at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&choice);

  static torch::Library schema(torch::Library::FRAGMENT, "ltc_cuda", std::nullopt, __FILE__, __LINE__);
  schema.def(
      "attention(Tensor q, Tensor k, Tensor v, Tensor? bias, bool logsumexp, bool causal, float? scale, int kind) -> "
      "(Tensor, Tensor)");
  schema.def(
      "attention_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor? bias, Tensor out, Tensor logsumexp, "
      "bool bias_gradient, bool causal, float? scale, int kind) -> (Tensor, Tensor, Tensor, Tensor)");
  static torch::Library cuda(torch::Library::IMPL, "ltc_cuda", DispatchKey::CUDA, __FILE__, __LINE__);
  cuda.impl("attention", forward_cuda);
  cuda.impl("attention_backward", backward_cuda);
  static torch::Library meta(torch::Library::IMPL, "ltc_cuda", DispatchKey::Meta, __FILE__, __LINE__);
  meta.impl("attention", forward_meta);
  meta.impl("attention_backward", backward_meta);
  g_forward = find_op("ltc_cuda::attention");
  g_backward = find_op("ltc_cuda::attention_backward");

  device.impl("_scaled_dot_product_efficient_attention", efficient);
  device.impl("_scaled_dot_product_efficient_attention_backward", efficient_backward);
  device.impl("_scaled_dot_product_cudnn_attention", cudnn);
  device.impl("_scaled_dot_product_cudnn_attention_backward", cudnn_backward);
  device.impl("_scaled_dot_product_flash_attention_for_cpu", torch::CppFunction::makeFromBoxedFunction<&flash>());
  device.impl("_scaled_dot_product_flash_attention_for_cpu_backward",
              torch::CppFunction::makeFromBoxedFunction<&flash_backward>());
}
}  // namespace ltc
