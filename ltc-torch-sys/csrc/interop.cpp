// Tensors handed in and out by Rust code.
#include <ATen/ATen.h>

#include "shim.h"

using namespace ltc;

extern "C" {
int ltc_tensor_to_device(const void* t, int32_t device, void** out, LtcError* err) {
  return guarded(err, [&] {
    auto d = device < 0 ? c10::Device(c10::kCPU) : c10::Device(kLazy, device);
    if (device >= 0) at::detail::getPrivateUse1Hooks();
    *out = new Tensor(static_cast<const Tensor*>(t)->to(d));
  });
}
static_assert(sizeof(Tensor) == sizeof(TensorImpl*), "an at::Tensor is a pointer");
void* ltc_tensor_impl(const void* t) { return static_cast<const Tensor*>(t)->unsafeGetTensorImpl(); }
int ltc_tensor_lazy_device(const void* t) {
  auto& x = *static_cast<const Tensor*>(t);
  return is_lazy(x) ? x.unsafeGetTensorImpl()->device().index() : -1;
}
int ltc_tensor_empty(const LtcDims* d, int32_t device, void** out, LtcError* err) {
  return guarded(err, [&] {
    *out = new Tensor(at::empty_strided({d->sizes, d->rank}, {d->strides, d->rank},
                                        at::TensorOptions().dtype((ScalarType)d->dtype).device(kLazy, device)));
  });
}
int ltc_tensor_operand(const void* t, LtcOperand* out, LtcError* err) {
  return guarded(err, [&] {
    auto& x = *static_cast<const Tensor*>(t);
    TORCH_CHECK(is_lazy(x), "expected a tensor on the lazy device");
    *out = operand_of(x);
  });
}
int ltc_tensor_wrap(LtcSlot* slot, size_t nbytes, const LtcDims* d, int64_t offset, int32_t device, void** out,
                    LtcError* err) {
  return guarded(err, [&] {
    auto storage = c10::make_intrusive<LazyStorage>(nbytes, fake_data(nbytes, device), *slot);
    *out = new Tensor(tensor_of(c10::Storage(std::move(storage)), *d, offset));
  });
}
int ltc_tensor_alias(const void* base, const LtcDims* d, int64_t offset, void** out, LtcError* err) {
  return guarded(err, [&] { *out = new Tensor(tensor_of(static_cast<const Tensor*>(base)->storage(), *d, offset)); });
}
const void* ltc_host_dims(const void* t, LtcDims* out) {
  auto& x = *static_cast<const Tensor*>(t);
  *out = dims_of(x.unsafeGetTensorImpl());
  return x.const_data_ptr();
}
int ltc_tensor_part(const void* t, const LtcDims* d, int64_t offset, void** out, LtcError* err) {
  return guarded(err, [&] {
    auto& base = *static_cast<const Tensor*>(t);
    IntArrayRef sizes{d->sizes, d->rank}, strides{d->strides, d->rank};
    auto start = offset + base.storage_offset();
    auto bytes = at::detail::computeStorageNbytes(sizes, strides, base.itemsize(), start);
    TORCH_CHECK(base.scalar_type() == (ScalarType)d->dtype && offset >= 0 && bytes <= base.storage().nbytes(), "sizes ",
                sizes, " from element ", offset, " on are no part of ", base.toString(), base.sizes());
    *out = new Tensor(alias(base, base.scalar_type(), sizes, strides, start));
  });
}
int ltc_tensor_dims(const void* t, LtcDims* out) {
  auto* x = static_cast<const Tensor*>(t)->unsafeGetTensorImpl();
  if (x->layout() != c10::kStrided || !x->has_storage() || x->device_type() == kLazy) return 0;
  *out = dims_of(x);
  return 1;
}
int ltc_host_is_plain(const void* t) {
  auto* x = static_cast<const Tensor*>(t)->unsafeGetTensorImpl();
  const DispatchKeySet others({DispatchKey::Conjugate, DispatchKey::Negative, DispatchKey::Python,
                               DispatchKey::FuncTorchGradWrapper, DispatchKey::FuncTorchBatched});
  return x->device().is_cpu() && x->layout() == c10::kStrided && x->has_storage() && !x->key_set().has_any(others) &&
      x->is_non_overlapping_and_dense();
}
int ltc_host_is_sole_holder(const void* t) {
  auto& x = *static_cast<const Tensor*>(t);
  return x.use_count() == 1 && x.storage().use_count() == 1;
}
}
