// Which kernel `scaled_dot_product_attention` takes: the CPU's choice, as the CPU is where it will run.
#include <ATen/ATen.h>
#include <ATen/native/transformers/attention.h>

#include "shim.h"

namespace ltc {
namespace {
// A CPU tensor of the same layout, without memory: choosing looks at nothing else.
Tensor of_layout(const Tensor& t) {
  Tensor like = at::from_blob(nullptr, t.sizes(), t.strides(), t.options().device(at::kCPU));
  if (t.requires_grad()) like.requires_grad_();
  return like;
}

int64_t choice(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, double dropout,
               bool causal, std::optional<double> scale, bool gqa) {
  std::optional<Tensor> m;
  if (mask && mask->defined()) m = of_layout(*mask);
  return at::_fused_sdp_choice(of_layout(q), of_layout(k), of_layout(v), m, dropout, causal, scale, gqa);
}
}  // namespace

void register_attention() { at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&choice); }
}  // namespace ltc
