// Storages without memory, tensors over them, and transfers between host and device.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/copy.h>

#include "shim.h"

namespace ltc {
LtcVTable V;

namespace {
bool is_plain(const Tensor& t) {
  return t.is_non_overlapping_and_dense() && t.storage_offset() == 0 &&
      t.storage().nbytes() == (size_t)t.numel() * t.itemsize();
}
Dims dense_strides(const Tensor& t) {
  if (t.is_non_overlapping_and_dense()) return Dims(t.strides().begin(), t.strides().end());
  Dims st(t.dim());
  int64_t step = 1;
  for (int64_t i = t.dim() - 1; i >= 0; i--) {
    st[i] = step;
    step *= std::max<int64_t>(t.size(i), 1);
  }
  return st;
}
}  // namespace

Layout::Layout(ScalarType dt, IntArrayRef sz, IntArrayRef st)
    : dtype(dt), sizes(sz.begin(), sz.end()), strides(st.begin(), st.end()) {
  nbytes = storage_elements(sz, st) * c10::elementSize(dt);
  auto d = dims_of(*this);
  rust = V.layout_new(&d);
  TORCH_CHECK_NOT_IMPLEMENTED(rust, "ltc: tensors of dtype ", dt, " are not supported on the lazy device");
}
Layout::Layout(Layout&& o) noexcept { *this = std::move(o); }
Layout& Layout::operator=(Layout&& o) noexcept {
  dtype = o.dtype;
  sizes = std::move(o.sizes);
  strides = std::move(o.strides);
  nbytes = o.nbytes;
  std::swap(rust, o.rust);
  return *this;
}
Layout::~Layout() {
  if (rust) V.layout_drop(rust);
}
int64_t storage_elements(IntArrayRef sz, IntArrayRef st) {
  int64_t e = 1;
  for (size_t i = 0; i < sz.size(); i++) {
    if (sz[i] == 0) return 0;
    e += (sz[i] - 1) * st[i];
  }
  return e;
}
LtcDims dims_of(const TensorImpl* t) {
  auto sz = t->sizes(), st = t->strides();
  return {sz.data(), st.data(), (uint32_t)sz.size(), (uint8_t)c10::typeMetaToScalarType(t->dtype())};
}

LazyStorage::LazyStorage(size_t n, c10::DataPtr p, LtcSlot s)
    : c10::StorageImpl(use_byte_size_t(), (int64_t)n, std::move(p), lazy_allocator(), true), slot(s) {}
void LazyStorage::release_resources() {
  if (live) V.storage_drop(V.ctx, &slot);
  live = false;
  c10::StorageImpl::release_resources();
}
LazyStorage::~LazyStorage() {
  if (live) V.storage_drop(V.ctx, &slot);
}
c10::intrusive_ptr<c10::StorageImpl> make_storage(c10::StorageImpl::use_byte_size_t, c10::SymInt n, c10::DataPtr p,
                                                  c10::Allocator*, bool) {
  size_t nbytes = n.guard_int(__FILE__, __LINE__);
  // Who brings an address means memory there is.
  TORCH_CHECK_NOT_IMPLEMENTED(
      !p,
      "ltc: a storage on the lazy device has no memory that a slice of it could share: take a view of a "
      "tensor over it, or copy it to the CPU");
  if (!p) p = fake_data(nbytes, current_device());
  LtcSlot slot;
  V.storage_bytes(V.ctx, nbytes, p.device().index(), &slot);
  return c10::make_intrusive<LazyStorage>(nbytes, std::move(p), slot);
}
LazyStorage* storage_of(const TensorImpl* t) {
  auto* s = t->unsafe_storage().unsafeGetStorageImpl();
  TORCH_CHECK_NOT_IMPLEMENTED(s && s->allocator() == lazy_allocator(),
                              "ltc: only dense strided tensors are supported on the lazy device");
  auto* lazy = static_cast<LazyStorage*>(s);
  touch((c10::StorageImpl*)lazy, &lazy->slot);
  return lazy;
}
LtcOperand operand_of(const Tensor& t, uint8_t flags) {
  auto* ti = t.unsafeGetTensorImpl();
  return {&storage_of(ti)->slot, dims_of(ti), flags, 0, ti->storage_offset()};
}
Tensor new_tensor(const Layout& l, LtcSlot slot, c10::DeviceIndex device) {
  auto storage = c10::make_intrusive<LazyStorage>(l.nbytes, fake_data(l.nbytes, device), slot);
  touch((c10::StorageImpl*)storage.get(), &storage->slot);
  Tensor t = at::detail::make_tensor<TensorImpl>(
      c10::Storage(std::move(storage)), DispatchKeySet(DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(l.dtype));
  if (l.sizes.size() != 1 || l.sizes[0] != 0) t.unsafeGetTensorImpl()->set_sizes_and_strides(l.sizes, l.strides);
  return t;
}
Tensor new_uninit(const Layout& l, c10::DeviceIndex device) {
  LtcSlot slot;
  V.storage_uninit(V.ctx, l.rust, device, &slot);
  return new_tensor(l, slot, device);
}
Tensor new_uninit(ScalarType dt, IntArrayRef sz, IntArrayRef st, c10::DeviceIndex device) {
  // Factories come in runs of equal layouts.
  thread_local Layout last;
  if (!last.rust || !last.is(dt, sz, st)) last = Layout(dt, sz, st);
  return new_uninit(last, device);
}
Tensor tensor_of(c10::Storage storage, const LtcDims& d, int64_t offset) {
  Tensor t = at::detail::make_tensor<TensorImpl>(std::move(storage), DispatchKeySet(DispatchKey::PrivateUse1),
                                                 c10::scalarTypeToTypeMeta((ScalarType)d.dtype));
  t.unsafeGetTensorImpl()->set_sizes_and_strides({d.sizes, d.rank}, {d.strides, d.rank}, offset);
  return t;
}
Tensor alias(const Tensor& base, ScalarType dt, IntArrayRef sz, IntArrayRef st, int64_t offset) {
  auto keys = base.unsafeGetTensorImpl()->key_set() - DispatchKeySet({DispatchKey::Conjugate, DispatchKey::Negative});
  Tensor t = at::detail::make_tensor<TensorImpl>(TensorImpl::VIEW, c10::Storage(base.storage()), keys,
                                                 c10::scalarTypeToTypeMeta(dt));
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sz, st, offset);
  return t;
}
void resize_storage(LazyStorage* s, size_t nbytes) {
  auto device = s->device().index();
  V.storage_resize(V.ctx, &s->slot, nbytes, device);
  s->set_nbytes(nbytes);
  s->set_data_ptr_noswap(fake_data(nbytes, device));
}

Tensor to_host(const Tensor& t) {
  auto view = operand_of(t);
  void* out = nullptr;
  LtcError err;
  const int rc = V.to_host(V.ctx, t.device().index(), &view, 1, &out, &err);
  give_warnings();
  check(rc, err);
  Tensor r = std::move(*static_cast<Tensor*>(out));
  delete static_cast<Tensor*>(out);
  return r;
}
void check_dense(const Tensor& t) {
  TORCH_CHECK_NOT_IMPLEMENTED(t.layout() == c10::kStrided && !t.is_quantized() && !t.is_nested(),
                              "ltc: only dense strided tensors are supported on the lazy device, not ", t.toString());
}
Tensor from_value(const Tensor& given, c10::DeviceIndex device) {
  check_dense(given);
  Tensor value = given;
  if (!is_plain(value)) value = at::empty_strided(value.sizes(), dense_strides(value), value.options()).copy_(value);
  Layout l(value.scalar_type(), value.sizes(), value.strides());
  auto dims = dims_of(l);
  LtcSlot slot;
  LtcError err;
  check(V.import(V.ctx, device, new Tensor(std::move(value)), &dims, &slot, &err), err);
  return new_tensor(l, slot, device);
}
void write_value(const Tensor& self, const Tensor& value) {
  if (self.numel() == 0) return;
  // A fresh copy in self's dtype and strides: the caller may go on writing into its own.
  bool dense = self.is_non_overlapping_and_dense();
  Tensor copy =
      at::empty_strided(self.sizes(), dense_strides(self), self.options().device(value.device())).copy_(value);
  if (dense) {
    auto dst = operand_of(self, LTC_MUT);
    LtcError err;
    check(V.import_into(V.ctx, self.device().index(), &dst, new Tensor(std::move(copy)), &err), err);
  } else {
    self.copy_(from_value(copy, self.device().index()));
  }
}
}  // namespace ltc
