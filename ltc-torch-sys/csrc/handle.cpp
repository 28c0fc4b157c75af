// Handles of tensors, for Rust.
#include <ATen/ATen.h>

#include "shim.h"

using namespace ltc;

namespace {
const Tensor& of(const void* t) { return *static_cast<const Tensor*>(t); }
}  // namespace

extern "C" {
void* ltc_tensor_clone(const void* t) { return new Tensor(of(t)); }
void ltc_tensor_free(void* t) {
  if (C10_UNLIKELY(is_device_lost()) && of(t).is_cuda()) return;
  delete static_cast<Tensor*>(t);
}
void* ltc_tensor_data(const void* t) {
  try {
    return of(t).mutable_data_ptr();
  } catch (...) {
    return nullptr;
  }
}
int ltc_tensor_copy(const void* to, const void* from, LtcError* err) {
  return guarded(err, [&] { of(to).copy_(of(from)); });
}
int ltc_tensor_zero(const void* t, LtcError* err) {
  return guarded(err, [&] { of(t).zero_(); });
}
int ltc_tensor_contiguous_copy(const void* t, void** out, LtcError* err) {
  return guarded(err, [&] { *out = new Tensor(of(t).detach().clone(at::MemoryFormat::Contiguous)); });
}
int ltc_tensor_detach(const void* t, void** out, LtcError* err) {
  return guarded(err, [&] { *out = new Tensor(of(t).detach()); });
}
int ltc_host_holds(const void* t) { return of(t).device().is_cpu() && of(t).has_storage(); }
}
