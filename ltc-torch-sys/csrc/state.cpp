// What a tensor is besides its values: what a compiled step has to find as it was, and what it has to leave.
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <typeinfo>

#include "nodes.h"
#include "shim.h"

namespace ltc {
namespace {
const Tensor& tensor(const void* t) { return *static_cast<const Tensor*>(t); }
uint64_t mix(uint64_t h, uint64_t x) {
  h ^= x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}
// Hooks of a tensor and of the node that adds up its gradient: which there are, by address.
uint64_t hooks_of(const torch::autograd::AutogradMeta& meta) {
  uint64_t h = meta.retains_grad_ + 1;
  for (auto& hook : meta.hooks_) h = mix(h, (uint64_t)hook.get());
  if (meta.cpp_hooks_list_) h = mix(h, meta.cpp_hooks_list_->size());
  if (meta.post_acc_grad_hooks_) h = mix(h, (uint64_t)meta.post_acc_grad_hooks_.get());
  // The node is made when it is needed and may be gone, so a missing node counts as one without hooks.
  auto node = meta.grad_accumulator_.lock();
  h = mix(h, node ? node->pre_hooks().size() : 0);
  return mix(h, node ? node->post_hooks().size() : 0);
}
// Whether functions of Python are called where a leaf's gradient is added up. Which functions these are stands in a
// dict that only libtorch's Python half can read. Hooks of C++ (DDP's) do not change, so they do not count.
bool gathers_by_python(const torch::autograd::AutogradMeta& meta) {
  const auto is_python = [](const auto& hook) {
    const auto& h = *hook;
    return std::strstr(typeid(h).name(), "PyFunction") != nullptr;
  };
  const auto node = meta.grad_accumulator_.lock();
  return node &&
      (std::any_of(node->pre_hooks().begin(), node->pre_hooks().end(), is_python) ||
       std::any_of(node->post_hooks().begin(), node->post_hooks().end(), is_python));
}
// The history of one of several results of a replay. Each result gets a node of its own, so that hooks on a result, and
// writes to it, see the same as without a replay.
struct Passed final : torch::autograd::Node {
  std::string name() const override { return "CompiledStepResult"; }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override { return std::move(grads); }
};
// The history of a result of a replay whose graph was freed within the step (by a backward pass). Going back through it
// raises the error that the freed graph would raise.
struct FreedHistory final : torch::autograd::Node {
  std::string called, why;
  FreedHistory(std::string called, std::string why) : called(std::move(called)), why(std::move(why)) {}
  std::string name() const override { return called; }
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { TORCH_CHECK(false, why); }
};
}  // namespace
}  // namespace ltc

using namespace ltc;

extern "C" {
void ltc_tensor_state(const void* t, LtcTensorState* out) {
  auto* impl = tensor(t).unsafeGetTensorImpl();
  *out = {};
  out->keys = impl->key_set().raw_repr();
  if (impl->is_inference()) out->flags |= LTC_INFERENCE;
  else out->version = impl->version_counter().current_version();
  if (impl->has_storage() && !impl->key_set().has_any(c10::sparse_ks)) {
    out->storage = impl->unsafe_storage().unsafeGetStorageImpl();
    uint64_t h = (uint64_t)c10::typeMetaToScalarType(impl->dtype());
    h = mix(h, impl->storage_offset());
    h = mix(h, impl->unsafe_storage().sym_nbytes().maybe_as_int().value_or(-1));
    for (int64_t n : impl->sizes()) h = mix(h, n);
    for (int64_t n : impl->strides()) h = mix(h, n);
    out->layout = h;
  }
  auto* meta = torch::autograd::impl::get_autograd_meta(tensor(t));
  if (!meta) return;
  if (meta->requires_grad_ || meta->grad_fn_) out->flags |= LTC_REQUIRES_GRAD;
  out->history = meta->grad_fn_.get();
  out->grad = meta->grad_.defined() ? meta->grad_.unsafeGetTensorImpl() : nullptr;
  if (gathers_by_python(*meta)) out->flags |= LTC_GATHERS_BY_PYTHON;
  if (meta->fw_grad_ && meta->fw_grad_->contains(0)) out->flags |= LTC_DUAL;
  out->hooks = hooks_of(*meta);
}
void ltc_tensor_bump(const void* t, uint32_t by) {
  auto* impl = tensor(t).unsafeGetTensorImpl();
  if (impl->is_inference()) return;
  while (by--) impl->bump_version();
}
int ltc_inference_mode(bool on, void** out, LtcError* err) {
  return guarded(err, [&] { *out = c10::InferenceMode::is_enabled() == on ? nullptr : new c10::InferenceMode(on); });
}
void ltc_inference_mode_end(void* mode) { delete static_cast<c10::InferenceMode*>(mode); }
void* ltc_tensor_grad(const void* t) {
  auto* meta = torch::autograd::impl::get_autograd_meta(tensor(t));
  return meta && meta->grad_.defined() ? new Tensor(meta->grad_) : nullptr;
}
int ltc_tensor_set_grad(const void* t, const void* grad, LtcError* err) {
  return guarded(err, [&] { tensor(t).mutable_grad() = grad ? tensor(grad) : Tensor(); });
}
int ltc_tensor_pass_to(const void* t, const void* to, LtcError* err) {
  return guarded(err, [&] {
    auto node = new_node<Passed>();
    node->add_input_metadata(tensor(t));
    node->add_next_edge(torch::autograd::impl::gradient_edge(tensor(to)));
    torch::autograd::impl::set_gradient_edge(tensor(t), {std::move(node), 0});
  });
}
bool ltc_tensor_history_is_freed(const void* t) {
  auto* meta = torch::autograd::impl::get_autograd_meta(tensor(t));
  return meta && dynamic_cast<const FreedHistory*>(meta->grad_fn_.get());
}
int ltc_tensor_set_freed_history(const void* t, const char* name, size_t n, const char* why, size_t m, LtcError* err) {
  return guarded(err, [&] {
    auto node = new_node<FreedHistory>(std::string(name, n), std::string(why, m));
    node->add_input_metadata(tensor(t));
    torch::autograd::impl::set_gradient_edge(tensor(t), {std::move(node), 0});
  });
}
}
