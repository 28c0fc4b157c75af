// Which kernel `scaled_dot_product_attention` takes: the CPU's choice where that is where it will run. CUDA's fused
// kernels are other operators, which are not recorded: there, it is made of products and a softmax.
#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>

#include "shim.h"

namespace ltc {
namespace {
// Asked by its name and not through the dispatcher, which would go by the device, and would show the call to modes that
// allow no such tensors (FakeTensor). It looks at shapes and dtypes alone, symbolic ones too.
int64_t choice(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, double dropout,
               bool causal, std::optional<double> scale, bool gqa) {
  if (!is_on_cpu(q)) return (int64_t)at::SDPBackend::math;
  return at::native::_fused_sdp_choice_cpp(q, k, v, mask, dropout, causal, scale, gqa);
}
}  // namespace

void register_attention() { at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&choice); }
}  // namespace ltc
