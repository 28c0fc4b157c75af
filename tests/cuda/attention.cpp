// What fused attention computes, as kernels of the CPU that the shadow finds: libtorch has them for CUDA alone. By
// products and a softmax, in the gradient too, which needs nothing that is handed over from the forward pass.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>

using at::Tensor;

namespace {
using OptTensor = std::optional<Tensor>;
using OptScale = std::optional<double>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using Nine = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

// Halves are computed in `float`, as the kernels do.
Tensor wide(const Tensor& t) { return t.scalar_type() == at::kDouble ? t : t.to(at::kFloat); }
// Heads of keys and values may serve several of the queries'.
Tensor for_heads(const Tensor& t, const Tensor& q) { return wide(t).repeat_interleave(q.size(1) / t.size(1), 1); }
double scale_of(const Tensor& q, OptScale scale) { return scale ? *scale : 1 / std::sqrt((double)q.size(-1)); }

Tensor scores(const Tensor& q, const Tensor& k, const OptTensor& bias, bool causal, OptScale scale) {
  Tensor made = wide(q).matmul(for_heads(k, q).transpose(-2, -1)) * scale_of(q, scale);
  if (bias && bias->defined()) made = made + wide(*bias);
  return causal ? made.masked_fill(at::ones({q.size(2), k.size(2)}, at::kBool).tril().logical_not(), -INFINITY) : made;
}

std::tuple<Tensor, Tensor> forward(const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias,
                                   bool causal, OptScale scale) {
  const Tensor all = scores(q, k, bias, causal, scale);
  return {all.softmax(-1).matmul(for_heads(v, q)).to(q.scalar_type()), all.logsumexp(-1).to(at::kFloat)};
}
Four backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias, bool causal,
              OptScale scale) {
  const Tensor weights = scores(q, k, bias, causal, scale).softmax(-1), given = wide(grad), keys = for_heads(k, q);
  const Tensor of_weights = given.matmul(for_heads(v, q).transpose(-2, -1));
  const Tensor of_scores = weights * (of_weights - (weights * of_weights).sum(-1, true));
  const auto heads = [&](const Tensor& t, const Tensor& like) {
    return t.unflatten(1, {like.size(1), q.size(1) / like.size(1)}).sum(2).to(like.scalar_type());
  };
  const double factor = scale_of(q, scale);
  return {(of_scores.matmul(keys) * factor).to(q.scalar_type()),
          heads(of_scores.transpose(-2, -1).matmul(wide(q)) * factor, k),
          heads(weights.transpose(-2, -1).matmul(given), v),
          bias && bias->defined() ? of_scores.sum_to_size(bias->sizes()).to(bias->scalar_type()) : Tensor()};
}

Nine flash(const Tensor& q, const Tensor& k, const Tensor& v, double, bool causal, bool, OptScale scale) {
  auto [out, sum] = forward(q, k, v, {}, causal, scale);
  return {out, sum, {}, {}, q.size(2), k.size(2), {}, {}, {}};
}
Three flash_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&,
                     const Tensor&, const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, double, bool causal,
                     const Tensor&, const Tensor&, OptScale scale) {
  auto [of_q, of_k, of_v, _] = backward(grad, q, k, v, {}, causal, scale);
  return {of_q, of_k, of_v};
}
// Rows of its second result are filled up to 32.
Four efficient(const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias, bool logsumexp, double,
               bool causal, OptScale scale) {
  auto [out, sum] = forward(q, k, v, bias, causal, scale);
  const int64_t rows = q.size(2), more = (rows + 31) / 32 * 32 - rows;
  return {
      out, logsumexp ? at::constant_pad_nd(sum, {0, more}) : at::empty({q.size(0), q.size(1), 0}, at::kFloat), {}, {}};
}
Four efficient_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
                        const Tensor&, const Tensor&, const Tensor&, const Tensor&, double, std::array<bool, 4> wanted,
                        bool causal, OptScale scale) {
  auto [of_q, of_k, of_v, of_bias] = backward(grad, q, k, v, bias, causal, scale);
  return {of_q, of_k, of_v, wanted[3] ? of_bias : Tensor()};
}
Nine cudnn(const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& bias, bool logsumexp, double,
           bool causal, bool, OptScale scale) {
  auto [out, sum] = forward(q, k, v, bias, causal, scale);
  return {out, logsumexp ? sum.unsqueeze(-1) : Tensor(), {}, {}, q.size(2), k.size(2), {}, {}, {}};
}
Three cudnn_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&,
                     const Tensor&, const Tensor&, const Tensor&, const Tensor& bias, const Tensor&, const Tensor&,
                     c10::SymInt, c10::SymInt, double, bool causal, OptScale scale) {
  auto [of_q, of_k, of_v, _] = backward(grad, q, k, v, bias, causal, scale);
  return {of_q, of_k, of_v};
}

TORCH_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("_scaled_dot_product_flash_attention", flash);
  m.impl("_scaled_dot_product_flash_attention_backward", flash_backward);
  m.impl("_scaled_dot_product_efficient_attention", efficient);
  m.impl("_scaled_dot_product_efficient_attention_backward", efficient_backward);
  m.impl("_scaled_dot_product_cudnn_attention", cudnn);
  m.impl("_scaled_dot_product_cudnn_attention_backward", cudnn_backward);
}
}  // namespace
