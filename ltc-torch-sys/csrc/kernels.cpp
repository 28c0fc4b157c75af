// The few operators that are not recorded like the others: factories, metadata, copies between storages and devices.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/_foreach_addcdiv_native.h>
#include <ATen/ops/_foreach_addcmul_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/nanquantile_native.h>
#include <ATen/ops/quantile_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "shim.h"

namespace ltc {
namespace {
using OptDevice = std::optional<c10::Device>;
using OptFormat = std::optional<c10::MemoryFormat>;

c10::DeviceIndex index_of(const OptDevice& d) {
  auto i = d && d->has_index() ? d->index() : current_device();
  TORCH_CHECK(i < V.device_count, "ltc: invalid device index ", (int)i, ": there ", V.device_count == 1 ? "is" : "are",
              " ", V.device_count, " ltc device", V.device_count == 1 ? "" : "s");
  return i;
}
std::optional<int64_t> concrete(const std::optional<c10::SymInt>& i) {
  return i ? std::optional<int64_t>(i->guard_int(__FILE__, __LINE__)) : std::nullopt;
}
Dims row_major_strides(IntArrayRef sz) {
  Dims st(sz.size());
  int64_t step = 1;
  for (int64_t i = (int64_t)sz.size() - 1; i >= 0; i--) {
    st[i] = step;
    step *= std::max<int64_t>(sz[i], 1);
  }
  return st;
}
void check_sizes(IntArrayRef sz, ScalarType dt) {
  int64_t bytes = c10::elementSize(dt);
  for (auto x : sz) {
    TORCH_CHECK(x >= 0, "Trying to create tensor with negative dimension ", x, ": ", sz);
    TORCH_CHECK(!__builtin_mul_overflow(bytes, x, &bytes), "Storage size calculation overflowed with sizes=", sz);
  }
}
void check_layout(const std::optional<c10::Layout>& l) {
  TORCH_CHECK_NOT_IMPLEMENTED(!l || *l == c10::kStrided, "ltc: only dense strided tensors are supported, not layout ",
                              *l);
}

// New memory that nobody wrote has a value to tell it by where the user wants to have the same bits in each run.
Tensor filled(Tensor t) {
  auto& c = at::globalContext();
  if (C10_UNLIKELY(c.deterministicAlgorithms() && c.deterministicFillUninitializedMemory()))
    at::native::fill_empty_deterministic_(t);
  return t;
}

Tensor empty(c10::SymIntArrayRef size, std::optional<ScalarType> dt, std::optional<c10::Layout> layout,
             OptDevice device, std::optional<bool>, OptFormat mf) {
  check_layout(layout);
  auto sz = C10_AS_INTARRAYREF_SLOW(size);
  auto d = dt.value_or(c10::get_default_dtype_as_scalartype());
  check_sizes(sz, d);
  auto format = mf.value_or(c10::MemoryFormat::Contiguous);
  if (format == c10::MemoryFormat::ChannelsLast)
    return filled(new_uninit(d, sz, c10::get_channels_last_strides_2d(sz), index_of(device)));
  if (format == c10::MemoryFormat::ChannelsLast3d)
    return filled(new_uninit(d, sz, c10::get_channels_last_strides_3d(sz), index_of(device)));
  TORCH_CHECK(format == c10::MemoryFormat::Contiguous, "unsupported memory format option ", format);
  return filled(new_uninit(d, sz, row_major_strides(sz), index_of(device)));
}
Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<ScalarType> dt,
                     std::optional<c10::Layout> layout, OptDevice device, std::optional<bool>) {
  check_layout(layout);
  auto sz = C10_AS_INTARRAYREF_SLOW(size);
  auto d = dt.value_or(c10::get_default_dtype_as_scalartype());
  check_sizes(sz, d);
  TORCH_CHECK(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
              ") must match dimensionality of strides (", stride.size(), ")");
  at::detail::computeStorageNbytes(sz, C10_AS_INTARRAYREF_SLOW(stride), c10::elementSize(d));  // fails of negative ones
  return filled(new_uninit(d, sz, C10_AS_INTARRAYREF_SLOW(stride), index_of(device)));
}
Tensor as_strided(const Tensor& self, c10::SymIntArrayRef sz, c10::SymIntArrayRef st, std::optional<c10::SymInt> off) {
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(sz), C10_AS_INTARRAYREF_SLOW(st),
                                           concrete(off));
}
Tensor view(const Tensor& self, c10::SymIntArrayRef sz) { return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sz)); }
Tensor reshape_alias(const Tensor& self, c10::SymIntArrayRef sz, c10::SymIntArrayRef st) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(sz), C10_AS_INTARRAYREF_SLOW(st));
}
// libtorch's own kernels also make views of conjugate and negative views, and keep their bits.
Tensor view_as_real(const Tensor& self) { return at::native::view_as_real(self); }
Tensor view_as_complex(const Tensor& self) { return at::native::view_as_complex(self); }
Tensor unfold(const Tensor& self, int64_t d, int64_t size, int64_t step) {
  return at::native::unfold(self, d, size, step);
}

bool has_bits(const Tensor& t) { return t.is_conj() || t.is_neg(); }
Tensor without_bits(const Tensor& t) {
  return has_bits(t) ? alias(t, t.scalar_type(), t.sizes(), t.strides(), t.storage_offset()) : t;
}
Tensor host_value(const Tensor& lazy) {
  Tensor h = to_host(without_bits(lazy));
  if (lazy.is_conj()) h = h.conj();
  if (lazy.is_neg()) h = at::_neg_view(h);
  return h;
}
const OpInfo& op(const char* name) {
  auto* o = find_op(name);
  TORCH_INTERNAL_ASSERT(o, name);
  return *o;
}

Tensor& copy_(Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.is_same(src)) return self;
  if (!is_lazy(self)) return self.copy_(host_value(src), non_blocking);
  auto broadcast = at::infer_size(self.sizes(), src.sizes());
  TORCH_CHECK(IntArrayRef(broadcast) == self.sizes(), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", IntArrayRef(broadcast));
  if (has_bits(self) || (is_lazy(src) && has_bits(src))) {
    bool conj = self.is_conj(), neg = self.is_neg();
    Tensor plain = src;
    if (is_lazy(src)) {
      conj ^= src.is_conj();
      neg ^= src.is_neg();
      plain = without_bits(src);
    }
    if (conj) plain = at::conj_physical(plain);
    if (neg) plain = at::neg(plain);
    Tensor dst = without_bits(self);
    copy_(dst, plain, non_blocking);
    return self;
  }
  at::assert_no_internal_overlap(self);
  if (!is_lazy(src)) {
    write_value(self, src.expand(self.sizes()));
    return self;
  }
  if (src.device() != self.device()) {
    write_value(self, to_host(src).expand(self.sizes()));
    return self;
  }
  at::assert_no_partial_overlap(self, src);
  auto *d = self.unsafeGetTensorImpl(), *s = src.unsafeGetTensorImpl();
  auto *ds = storage_of(d), *ss = storage_of(s);
  if (ds != ss && d->dtype() == s->dtype() && d->sizes() == s->sizes() && d->strides() == s->strides()) {
    auto device = self.device().index();
    auto from = operand_of(src);
    // Whole onto whole: both storages share the value from here on, which is copy-on-write for free.
    if (covers_storage(d, ds) && covers_storage(s, ss)) {
      V.storage_share(V.ctx, &ds->slot, &ss->slot, &from, device);
      return self;
    }
    if (covers_storage(d, ds)) {
      auto to = operand_of(self, LTC_MUT);
      LtcError err;
      check(V.assign(V.ctx, &to, &from, device, &err), err);
      return self;
    }
  }
  static const OpInfo& copy = op("aten::copy_");
  Stack st{IValue(self), IValue(src), IValue(non_blocking)};
  run(copy, &st);
  return self;
}
Tensor copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
  Tensor d = dst;
  copy_(d, self, non_blocking);
  return dst;
}
Tensor copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  Tensor d = dst;
  d.resize_(self.sizes());
  copy_(d, self, false);
  return dst;
}
Tensor to_copy(const Tensor& self, std::optional<ScalarType> dt, std::optional<c10::Layout> l, OptDevice dev,
               std::optional<bool> pin, bool non_blocking, OptFormat mf) {
  bool here =
      is_lazy(self) && (!dev || (dev->type() == kLazy && (!dev->has_index() || dev->index() == self.device().index())));
  if (!here || (l && *l != c10::kStrided)) return at::native::_to_copy(self, dt, l, dev, pin, non_blocking, mf);
  static const OpInfo& copy = op("aten::_to_copy");
  Stack st{IValue(self), IValue(dt), IValue(), IValue(), IValue(), IValue(non_blocking), IValue(mf)};
  run(copy, &st);
  return st.back().toTensor();
}
at::Scalar local_scalar_dense(const Tensor& self) {
  TORCH_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  return at::_local_scalar_dense(host_value(self).resolve_conj().resolve_neg());
}

void grow(LazyStorage* s, size_t need) {
  if (need > s->nbytes()) resize_storage(s, need);
}
const Tensor& resize_(const Tensor& self, c10::SymIntArrayRef size, OptFormat mf) {
  auto sz = C10_AS_INTARRAYREF_SLOW(size);
  auto* ti = self.unsafeGetTensorImpl();
  check_sizes(sz, self.scalar_type());
  if (self.sizes() != sz) {
    ti->set_sizes_contiguous(sz);
    const int64_t before = self.storage().nbytes();
    // Nothing takes no memory, wherever it begins.
    if (ti->numel() > 0) grow(storage_of(ti), (ti->numel() + ti->storage_offset()) * ti->itemsize());
    auto& c = at::globalContext();
    if (C10_UNLIKELY(c.deterministicAlgorithms() && c.deterministicFillUninitializedMemory()))
      at::native::fill_resize_deterministic_(self, before);
  }
  if (mf && *mf != c10::MemoryFormat::Preserve) ti->empty_tensor_restride(*mf);
  return self;
}
Tensor& set_metadata(Tensor& self, const c10::Storage& s, int64_t offset, IntArrayRef sz, IntArrayRef st) {
  TORCH_CHECK(s.device() == self.device(), "Attempted to set the storage of a tensor on device \"", self.device(),
              "\" to a storage on different device \"", s.device(), "\".");
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  auto* ti = self.unsafeGetTensorImpl();
  ti->set_storage_keep_dtype(s);
  ti->set_sizes_and_strides(sz, st, offset);
  if (ti->numel() > 0) grow(storage_of(ti), (storage_elements(sz, st) + offset) * ti->itemsize());
  return self;
}
Tensor& set_storage_offset(Tensor& self, c10::Storage s, c10::SymInt off, c10::SymIntArrayRef size,
                           c10::SymIntArrayRef stride) {
  auto sz = C10_AS_INTARRAYREF_SLOW(size);
  Dims st = stride.empty() && !sz.empty() ? row_major_strides(sz) : Dims(C10_AS_INTARRAYREF_SLOW(stride));
  return set_metadata(self, s, off.guard_int(__FILE__, __LINE__), sz, st);
}
Tensor& set_storage(Tensor& self, c10::Storage s) {
  int64_t n = s.nbytes() / self.itemsize();
  return set_metadata(self, s, 0, {n}, {1});
}
Tensor& set_tensor(Tensor& self, const Tensor& src) {
  if (self.is_same(src)) return self;
  return set_metadata(self, src.storage(), src.storage_offset(), src.sizes(), src.strides());
}
Tensor& set_nothing(Tensor& self) {
  Tensor e = new_uninit(self.scalar_type(), {0}, {1}, self.device().index());
  return set_metadata(self, e.storage(), 0, {0}, {1});
}
void record_stream(Tensor&, c10::Stream) {}
// Copies share their value until one is written anyway.
Tensor lazy_clone(const Tensor& self) { return self.clone(); }

// Both sides are plain TensorImpl, so `param.data = lazy` may turn a CPU parameter into a lazy one in place: moving a
// module keeps parameter identity, tied weights and optimisers built before.
bool has_compatible_shallow_copy_type(const Tensor& self, const Tensor& from) {
  auto dense = [](const Tensor& t) {
    return t.layout() == c10::kStrided && !t.is_quantized() && (is_lazy(t) || t.is_cpu());
  };
  return dense(self) && dense(from);
}

// Forward-mode differentiation's tangents that are zero: the CPU's have no memory, and kernels must not read them.
Tensor efficient_zeros(c10::SymIntArrayRef size, std::optional<ScalarType> dt, std::optional<c10::Layout> layout,
                       OptDevice device, std::optional<bool> pinned) {
  return empty(size, dt, layout, device, pinned, std::nullopt).zero_();
}

// `nn.TransformerEncoder` asks before it makes nested tensors, which there are none of here; without them it masks.
bool mask_left_aligned(const Tensor&, const Tensor&) { return false; }

// Programs that ask whether they are on the CPU give integers to accelerators, as CUDA counts them too.
Tensor histc(const Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max) {
  if (is_on_cpu(self) && at::isIntegralType(self.scalar_type(), false))
    return at::histc(self.to(at::kDouble), bins, min, max).to(self.scalar_type());
  Stack s{self, bins, min, max};
  run(op("aten::histc"), &s);
  return s.back().toTensor();
}

// `group_norm` keeps the layout of its input for all devices but those of others' kernels, which want it contiguous.
std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& x, const std::optional<Tensor>& weight,
                                                     const std::optional<Tensor>& bias, c10::SymInt n, c10::SymInt c,
                                                     c10::SymInt hxw, int64_t group, double eps) {
  Stack s{is_on_cpu(x) ? x : x.contiguous(), weight, bias, n, c, hxw, group, eps};
  run(op("aten::native_group_norm"), &s);
  return {s[s.size() - 3].toTensor(), s[s.size() - 2].toTensor(), s.back().toTensor()};
}

// Of lists, with a number for each tensor; libtorch wants these numbers on the host.
template <auto kernel>
auto with_numbers(at::TensorList self, at::TensorList a, at::TensorList b, const Tensor& numbers) {
  return kernel(self, a, b, is_lazy(numbers) ? numbers.cpu() : numbers);
}

// libtorch looks at the values of `q` on the CPU alone; what lies outside would be taken from beyond the rows.
void check_quantiles(const Tensor& self, const Tensor& q) {
  if (q.unsafeGetTensorImpl()->is_python_dispatch() || !is_lazy(q) || q.scalar_type() != self.scalar_type()) return;
  TORCH_CHECK(q.ge(0).logical_and_(q.le(1)).all().item<bool>(), "quantile() q values must be in the range [0, 1]");
}
Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                c10::string_view interpolation) {
  check_quantiles(self, q);
  return at::native::quantile(self, q, dim, keepdim, interpolation);
}
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   c10::string_view interpolation) {
  check_quantiles(self, q);
  return at::native::nanquantile(self, q, dim, keepdim, interpolation);
}

// libtorch takes another formula on accelerators (native_dropout): this is the CPU's, draw for draw and bit for bit,
// where the CPU computes.
Tensor dropout(const Tensor& input, double p, bool train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 0 || !train || input.sym_numel() == 0) return input;
  if (!is_on_cpu(input) && p < 1) return std::get<0>(at::native_dropout(input, p, train));
  if (p == 1) return input.mul(at::zeros({}, input.options()));
  return input * at::empty_like(input).bernoulli_(1 - p).div_(1 - p);
}
}  // namespace

void register_composites(torch::Library& m);
void register_explicit(torch::Library& m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", unfold);
  m.impl("view_as_real", view_as_real);
  m.impl("view_as_complex", view_as_complex);
  m.impl("copy_", copy_);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_to_copy", to_copy);
  m.impl("_local_scalar_dense", local_scalar_dense);
  m.impl("resize_", resize_);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Storage_storage_offset", set_storage_offset);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_", set_nothing);
  m.impl("record_stream", record_stream);
  m.impl("_lazy_clone", lazy_clone);
  m.impl("_efficientzerotensor", efficient_zeros);
  m.impl("_nested_tensor_from_mask_left_aligned", mask_left_aligned);
  m.impl("histc", histc);
  m.impl("native_group_norm", native_group_norm);
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
  // Compares the storages that programs see. Values on the host would not do, since copies may share one.
  m.impl("is_set_to", at::native::is_set_to);
  m.impl("_foreach_addcmul.Tensor", with_numbers<&at::native::foreach_tensor_addcmul_tensor_slow>);
  m.impl("_foreach_addcmul_.Tensor", with_numbers<&at::native::foreach_tensor_addcmul_tensor_slow_>);
  m.impl("_foreach_addcdiv.Tensor", with_numbers<&at::native::foreach_tensor_addcdiv_tensor_slow>);
  m.impl("_foreach_addcdiv_.Tensor", with_numbers<&at::native::foreach_tensor_addcdiv_tensor_slow_>);
  register_composites(m);
}
void register_composites(torch::Library& m) {
  m.impl("dropout", dropout);
  m.impl("quantile", quantile);
  m.impl("nanquantile", nanquantile);
}
}  // namespace ltc
