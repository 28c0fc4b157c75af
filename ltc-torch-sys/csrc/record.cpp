// The boxed recording kernel: one for every operator.
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <c10/core/AutogradState.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "flat.h"

namespace ltc {
namespace {
uint64_t bits_of(double d) {
  uint64_t w;
  memcpy(&w, &d, 8);
  return w;
}

struct Flattener {
  const OpInfo& o;
  Flat& f;

  // A number that does not fit an integer dtype, or half, is an error of the call. So beside tensors of such dtypes the
  // number's range is part of the cache key: a number of another range is checked, and may be refused, anew.
  void range(const c10::Scalar& s) {
    if (!f.integral || s.isComplex()) return;
    double d = s.toDouble();
    uint64_t bucket = 0;
    for (double limit : {127., 255., 32767., 65504., 65535., 2147483647., 9.2e18}) bucket += !(std::abs(d) <= limit);
    f.shapes.push_back(~(bucket * 4 + (d < 0) * 2 + (d == 0)));
  }

  void number(const c10::Scalar& s, bool header) {
    range(s);
    if (s.isComplex()) {
      auto c = s.toComplexDouble();
      if (header) f.head(LTC_NUMBER, 0, (uint8_t)at::kComplexDouble);
      for (double part : {c.real(), c.imag()}) {
        f.numbers.push_back(bits_of(part));
        if (o.numbers_shape) f.shapes.push_back(bits_of(part));
      }
      return;
    }
    uint64_t w;
    uint8_t dt;
    if (s.isFloatingPoint()) dt = (uint8_t)at::kDouble, w = bits_of(s.toDouble());
    else if (s.isBoolean()) dt = (uint8_t)at::kBool, w = s.toBool();
    else dt = (uint8_t)at::kLong, w = (uint64_t)s.toLong();
    if (header) f.head(LTC_NUMBER, 0, dt);
    f.numbers.push_back(w);
    if (o.numbers_shape) f.shapes.push_back(w);
  }

  // A number or 0-dim host tensor where the schema says tensor: a runtime number of the program.
  void host_scalar(const Tensor& t) {
    auto* ti = t.unsafeGetTensorImpl();
    auto dt = t.scalar_type();
    uint8_t flags = ti->is_wrapped_number() ? LTC_WRAPPED : 0;
    if (C10_UNLIKELY(g_captures.load(std::memory_order_relaxed) > 0) && !flags) note_number(t);
    f.head(LTC_HOST_SCALAR, flags, (uint8_t)dt);
    switch (dt) {
      case at::kDouble: f.numbers.push_back(bits_of(*(const double*)t.const_data_ptr())); return;
      case at::kLong: f.numbers.push_back((uint64_t)*(const int64_t*)t.const_data_ptr()); return;
      case at::kBool: f.numbers.push_back(*(const bool*)t.const_data_ptr()); return;
      default: {
        auto s = at::_local_scalar_dense(t);
        if (s.isComplex()) {
          auto c = s.toComplexDouble();
          f.numbers.push_back(bits_of(c.real()));
          f.numbers.push_back(bits_of(c.imag()));
        } else if (c10::isFloatingType(dt)) f.numbers.push_back(bits_of(s.toDouble()));
        else f.numbers.push_back((uint64_t)s.toLong());
      }
    }
  }

  // As CUDA: indices may live on the host, and so may numbers in lists that are taken element by element.
  bool takes_host_tensor(const c10::TensorImpl* ti) const {
    const auto begins = [&](const char* with) { return o.name.rfind(with, 0) == 0; };
    return begins("aten::index") || begins("aten::_index") || begins("aten::_unsafe_index") ||
        (begins("aten::_foreach_") && ti->dim() == 0);
  }

  void set_device(c10::DeviceIndex d) {
    if (f.device < 0) f.device = d;
    else
      TORCH_CHECK(f.device == d, "Expected all tensors to be on the same device, but found at least two devices, ",
                  c10::Device(kLazy, f.device), " and ", c10::Device(kLazy, d), "! (when checking arguments of ",
                  o.name, ")");
  }

  // One defined tensor. Returns false when it became a host scalar (not in lists).
  void tensor(const Tensor& t, const ArgInfo& a, bool in_list) {
    auto* ti = t.unsafeGetTensorImpl();
    const Tensor* use = &t;
    if (ti->device_type() != kLazy) {
      TORCH_CHECK(ti->device_type() == c10::DeviceType::CPU, "ltc: unexpected device ", ti->device(), " in ", o.name);
      if (ti->dim() == 0 && !a.write && !in_list) return host_scalar(t);
      TORCH_CHECK(!a.write && takes_host_tensor(ti),
                  "Expected all tensors to be on the same device, but found at least two devices, ",
                  c10::Device(kLazy, f.device < 0 ? current_device() : f.device),
                  " and cpu! (when checking arguments of ", o.name, ")");
      f.keep.push_back(from_value(t.clone(), f.device < 0 ? current_device() : f.device));
      use = &f.keep.back();
      ti = use->unsafeGetTensorImpl();
    }
    if (C10_UNLIKELY(ti->is_conj() || ti->is_neg())) f.bits = true;
    auto* s = storage_of(ti);
    if (C10_UNLIKELY(g_captures.load(std::memory_order_relaxed) > 0)) note_operand(*use);
    set_device(s->device().index());
    auto sz = ti->sizes(), st = ti->strides();
    auto dt = c10::typeMetaToScalarType(ti->dtype());
    f.integral |= c10::isIntegralType(dt, true) || dt == at::kHalf;
    f.shapes.push_back((uint64_t)dt << 32 | sz.size());
    f.shapes.append(sz.begin(), sz.end());
    f.shapes.append(st.begin(), st.end());
    if (o.has_view) f.shapes.push_back(ti->storage_offset());
    if (o.mask_index && in_list && (dt == at::kBool || dt == at::kByte)) f.eager = LTC_WHY_DATA;
    uint8_t flags = 0;
    if (a.write) {
      f.writes++;
      flags = LTC_MUT;
      // Some kernels refuse to write to overlapping elements and some do not. The call runs eagerly, where the kernel
      // itself decides.
      if (!ti->is_non_overlapping_and_dense() && at::has_internal_overlap(ti) == at::MemOverlap::Yes)
        f.eager = LTC_WHY_ARGUMENT;
      if (!in_list && (a.out || o.overwrites) && covers_storage(ti, s)) flags |= LTC_FRESH;
    }
    if (!in_list) f.head(LTC_TENSOR, flags);
    f.operands.push_back(
        {&s->slot, {sz.data(), st.data(), (uint32_t)sz.size(), (uint8_t)dt}, flags, 0, ti->storage_offset()});
    f.tensors.push_back(use);
  }

  void tensor_list(const IValue& v, const ArgInfo& a) {
    if (v.isNone()) return f.head(LTC_NONE);
    auto l = v.toListRef();
    f.head(LTC_TENSORS, a.write ? LTC_MUT : 0, 0, l.size());
    size_t mask = f.words.size();
    f.words.resize(mask + (l.size() + 63) / 64, 0);
    for (size_t j = 0; j < l.size(); j++) {
      if (l[j].isNone() || !l[j].toTensor().defined()) continue;
      f.words[mask + j / 64] |= 1ull << (j % 64);
      tensor(l[j].toTensor(), a, true);
    }
  }

  void generator(const IValue& v) {
    if (!o.random) return f.head(LTC_NONE);
    f.head(LTC_GENERATOR, LTC_MUT);
    LtcSlot* slot;
    if (v.isNone()) {
      if (f.device < 0) f.device = current_device();
      slot = default_generator_slot(f.device);
      touch(at::Generator(), slot);
    } else {
      auto g = v.toGenerator();
      TORCH_CHECK(g.device().type() == kLazy, "Expected a '", c10::DeviceTypeName(kLazy, true),
                  "' device type for generator but found '", g.device().type(), "'");
      if (f.device < 0) f.device = g.device().index();
      slot = generator_slot(g);
      touch(g, slot);
    }
    f.operands.push_back({slot, {nullptr, nullptr, 0, 255}, LTC_MUT, 1, 0});
    f.tensors.push_back(nullptr);
  }

  void other(const IValue& v, const ArgInfo& a) {
    if (v.isNone()) return f.head(LTC_NONE);
    if (v.isInt() || v.isSymInt()) {
      int64_t i = v.isInt() ? v.toInt() : v.toSymInt().guard_int(__FILE__, __LINE__);
      if (a.number) return number(i, true);
      if (a.floating) {
        f.head(LTC_FLOAT);
        f.numbers.push_back(bits_of((double)i));
        return;
      }
      f.head(LTC_INT);
      f.words.push_back((uint64_t)i);
    } else if (v.isDouble() || v.isSymFloat()) {
      double d = v.isDouble() ? v.toDouble() : v.toSymFloat().guard_float(__FILE__, __LINE__);
      if (a.number) return number(d, true);
      f.head(LTC_FLOAT);
      f.numbers.push_back(bits_of(d));
      if (o.numbers_shape) f.shapes.push_back(bits_of(d));
    } else if (v.isBool()) {
      if (a.number) return number(v.toBool(), true);
      f.head(LTC_BOOL, 0, 0, v.toBool());
    } else if (v.isComplexDouble()) number(v.toComplexDouble(), true);
    else if (v.isString()) {
      const auto& s = v.toStringRef();
      f.head(LTC_STR, 0, 0, s.size());
      size_t at = f.words.size();
      f.words.resize(at + (s.size() + 7) / 8, 0);
      memcpy(f.words.data() + at, s.data(), s.size());
    } else if (a.number_list && v.isList()) {
      auto l = v.toListRef();
      f.head(LTC_NUMBERS, 0, 0, l.size());
      for (auto& x : l) {
        auto s = x.toScalar();
        f.words.push_back((uint64_t)(s.isComplex()             ? at::kComplexDouble
                                         : s.isFloatingPoint() ? at::kDouble
                                         : s.isBoolean()       ? at::kBool
                                                               : at::kLong));
        number(s, false);
      }
    } else if (v.isIntList() || v.isSymIntList()) {
      auto l = v.toListRef();
      f.head(LTC_INTS, 0, 0, l.size());
      for (auto& x : l)
        f.words.push_back((uint64_t)(x.isInt() ? x.toInt() : x.toSymInt().guard_int(__FILE__, __LINE__)));
    } else if (v.isDoubleList()) {
      auto l = v.toListRef();
      f.head(LTC_FLOATS, 0, 0, l.size());
      for (auto& x : l) f.words.push_back(bits_of(x.toDouble()));
    } else if (v.isBoolList()) {
      auto l = v.toListRef();
      f.head(LTC_BOOLS, 0, 0, l.size());
      for (auto& x : l) f.words.push_back(x.toBool());
    } else f.eager = LTC_WHY_ARGUMENT;  // streams, dictionaries, custom classes
  }

  void all(const Stack& stack) {
    const size_t n = o.args.size(), base = stack.size() - n;
    for (size_t i = 0; i < n; i++) {
      const IValue& v = stack[base + i];
      const ArgInfo& a = o.args[i];
      switch (a.kind) {
        case Kind::Tensor:
          if (v.isTensor() && v.toTensor().defined()) {
            if (C10_UNLIKELY(a.write_if >= 0 && !stack[base + a.write_if].toBool())) {
              ArgInfo read_only = a;
              read_only.write = false;
              tensor(v.toTensor(), read_only, false);
            } else tensor(v.toTensor(), a, false);
          } else f.head(LTC_NONE);
          break;
        case Kind::TensorList:
        case Kind::OptTensorList: tensor_list(v, a); break;
        case Kind::Device:
          if (!v.isNone()) device(v.toDevice());
          f.head(v.isNone() ? LTC_NONE : LTC_DEVICE);
          break;
        case Kind::Generator: generator(v); break;
        default: other(v, a);
      }
    }
    finish();
  }

  void device(c10::Device named) {
    const auto index = named.has_index() ? named.index() : current_device();
    if (f.device < 0) f.device = index;
    else f.elsewhere |= named.type() != kLazy || index != f.device;
  }

  // Overlap between a written argument and another one is an error that the layouts alone do not show.
  void sharing() {
    const size_t n = f.operands.size();
    if (n <= 16) {
      for (size_t i = 1; i < n; i++)
        for (size_t j = 0; j < i; j++)
          if (f.operands[i].slot == f.operands[j].slot) {
            share(i, j);
            break;
          }
      return;
    }
    // The first operand of each slot, by the slot's address: lists are long.
    size_t mask = 63;
    while (mask < 2 * n) mask = mask * 2 + 1;
    c10::SmallVector<uint32_t, 256> first(mask + 1, 0);
    for (size_t i = 0; i < n; i++) {
      size_t at = ((uintptr_t)f.operands[i].slot >> 3) * 0x9E3779B97F4A7C15ull >> 32;
      while (first[at &= mask] && f.operands[first[at] - 1].slot != f.operands[i].slot) at++;
      if (first[at]) share(i, first[at] - 1);
      else first[at] = i + 1;
    }
  }
  void share(size_t i, size_t j) {
    f.shapes.push_back(~(uint64_t)(i << 32 | j));
    bool same = f.tensors[i] && f.tensors[j] && f.tensors[i]->is_same(*f.tensors[j]);
    f.shapes.push_back((f.operands[i].offset - f.operands[j].offset) * 2 + same);
  }

  // What can be said only of all arguments together.
  void finish() {
    if (f.device < 0) f.device = current_device();
    TORCH_CHECK(f.device < V.device_count, "ltc: invalid device index ", f.device, ": there ",
                V.device_count == 1 ? "is" : "are", " ", V.device_count, " ltc device", V.device_count == 1 ? "" : "s");
    if (o.implied_generator) generator(IValue());
    f.shapes.push_back(layout_ambient(place_of_device(f.device)));
    if (f.writes && f.operands.size() > 1) sharing();
  }
};

// Written list operands that share a storage must be written one after the other: the composite kernel does that.
bool writes_alias(const Flat& f) {
  if (f.writes < 2) return false;
  c10::SmallVector<const LtcSlot*, 16> written;
  for (auto& x : f.operands)
    if ((x.flags & LTC_MUT) && !x.generator) written.push_back(x.slot);
  std::sort(written.begin(), written.end());
  return std::adjacent_find(written.begin(), written.end()) != written.end();
}

void apply_resizes(const ShapeEntry& e, Flat& f) {
  for (auto& r : e.resizes) {
    auto& x = f.operands[r.operand];
    auto* ti = f.tensors[r.operand]->unsafeGetTensorImpl();
    auto* s = storage_of(ti);
    size_t need = r.layout.nbytes > 0 ? r.layout.nbytes + ti->storage_offset() * ti->itemsize() : 0;
    ti->set_sizes_and_strides(r.layout.sizes, r.layout.strides);
    if (s->nbytes() < need) resize_storage(s, need);
    x.dims = dims_of(ti);
  }
}

void push_results(const OpInfo& o, const ShapeEntry& e, const Flat& f, LtcSlot* slots, Stack* stack) {
  const size_t base = stack->size() - o.args.size();
  size_t next_out = 0;
  auto make = [&](const OutMeta& m, const RetInfo& r) -> Tensor {
    switch (m.kind) {
      case OutKind::New: return new_tensor(m.layout, *slots++, f.device);
      case OutKind::View:
        return alias((*stack)[base + r.view_arg].toTensor(), m.layout.dtype, m.layout.sizes, m.layout.strides,
                     m.offset);
      default: return Tensor();
    }
  };
  c10::SmallVector<IValue, 4> results;
  for (size_t i = 0; i < o.rets.size(); i++) {
    const RetInfo& r = o.rets[i];
    const uint32_t count = e.ret_count[i];
    if (r.write_arg >= 0) {
      results.push_back((*stack)[base + r.write_arg]);
      next_out += count;
    } else if (r.kind == Kind::TensorList) {
      c10::List<Tensor> l;
      l.reserve(count);
      for (uint32_t j = 0; j < count; j++) l.push_back(make(e.outs[next_out++], r));
      results.push_back(std::move(l));
    } else results.push_back(make(e.outs[next_out++], r));
  }
  stack->resize(base);
  for (auto& v : results) stack->push_back(std::move(v));
}

// Integers beside a float number compare in the default dtype, which the result does not tell.
bool compares_in_default(const OpInfo& o, const Stack& stack) {
  if (!o.compares) return false;
  const size_t base = stack.size() - o.args.size();
  bool number = false;
  for (size_t i = 0; i < o.args.size(); i++) {
    const IValue& v = stack[base + i];
    number |= v.isDouble() ||
        (v.isTensor() && !is_lazy(v.toTensor()) && v.toTensor().unsafeGetTensorImpl()->is_wrapped_number() &&
         c10::isFloatingType(v.toTensor().scalar_type()));
    if (v.isTensor() && is_lazy(v.toTensor()) && !o.args[i].out &&
        !c10::isIntegralType(v.toTensor().scalar_type(), true))
      return false;
  }
  return number;
}

// Whether floats that are given are to be computed from integers: in which dtype, no result tells.
bool floats_of_integers(const OpInfo& o, const Stack& stack) {
  if (!o.elementwise) return false;
  const size_t base = stack.size() - o.args.size();
  bool floats = false, integers = false;
  for (size_t i = 0; i < o.args.size(); i++) {
    const IValue& v = stack[base + i];
    if (!v.isTensor() || !is_lazy(v.toTensor())) continue;
    const bool is_integer = c10::isIntegralType(v.toTensor().scalar_type(), true);
    if (o.args[i].out) floats |= !is_integer;
    else if (!is_integer) return false;
    else integers = true;
  }
  return floats && integers;
}

// Compares in a default dtype that is not libtorch's own: the integers are converted to it before the call is recorded.
// An argument that the call writes to cannot be converted, so such a call runs eagerly.
void compare_in_default(const OpInfo& o, Stack* stack) {
  if (o.mutates) return run_eager(o, stack, LTC_WHY_ARGUMENT);
  const auto dtype = c10::get_default_dtype_as_scalartype();
  const size_t base = stack->size() - o.args.size();
  for (size_t i = 0; i < o.args.size(); i++) {
    IValue& v = (*stack)[base + i];
    if (v.isTensor() && is_lazy(v.toTensor())) v = v.toTensor().to(dtype);
  }
  run(o, stack);
}

void resolve_bits(const OpInfo& o, Stack* stack) {
  const size_t base = stack->size() - o.args.size();
  for (size_t i = 0; i < o.args.size(); i++) {
    IValue& v = (*stack)[base + i];
    TORCH_CHECK(!o.args[i].write || !v.isTensor() || !(v.toTensor().is_conj() || v.toTensor().is_neg()),
                "ltc: ", o.name, " cannot write to a conjugate or negative view");
    v = map_tensors(v, o.args[i].kind, [](const Tensor& t) { return is_lazy(t) ? t.resolve_conj().resolve_neg() : t; });
  }
}

// The view behind the bit, for `conj_physical_` of a conjugate view and `neg_` of a negative one: the operator does the
// same to the elements behind the bit as to the elements that the view shows.
std::optional<Tensor> behind_bit(const OpInfo& o, const Stack& stack) {
  const bool conj = o.name == "aten::conj_physical_";
  if (!conj && o.name != "aten::neg_") return {};
  const Tensor& self = stack[stack.size() - o.args.size()].toTensor();
  if (self.is_conj() != conj || self.is_neg() == conj) return {};
  return conj ? self.conj() : self._neg_view();
}
}  // namespace

void keep_backward_here() { c10::AutogradState::get_tls_state().set_multithreading_enabled(false); }

void count_change(const Tensor& t) {
  if (c10::impl::tls_is_dispatch_key_excluded(DispatchKey::ADInplaceOrView)) return;
  if (t.key_set().has(DispatchKey::ADInplaceOrView)) t.unsafeGetTensorImpl()->bump_version();
}

void run(const OpInfo& o, Stack* stack) {
  keep_backward_here();
  if (o.eager) return run_eager(o, stack, *o.eager);
  if (C10_UNLIKELY(o.forced.load(std::memory_order_relaxed))) return run_eager(o, stack, LTC_WHY_FORCED);
  Flat f;
  Flattener{o, f}.all(*stack);
  if (C10_UNLIKELY(f.bits)) {
    if (auto behind = behind_bit(o, *stack)) {
      Tensor self = std::exchange((*stack)[stack->size() - o.args.size()], IValue(*behind)).toTensor();
      run(o, stack);
      stack->back() = std::move(self);
      return;
    }
    resolve_bits(o, stack);
    return run(o, stack);
  }
  if (C10_UNLIKELY(f.eager >= 0)) return run_eager(o, stack, f.eager);
  // `zeros_like` of a tensor that is elsewhere makes an empty one there, and fills it.
  if (C10_UNLIKELY(f.elsewhere) && !o.composite) return run_eager(o, stack, LTC_WHY_ARGUMENT);
  if (f.elsewhere || (o.composite && writes_alias(f))) return o.handle->redispatchBoxed(DispatchKeySet(), stack);

  const ShapeEntry& e = infer(o, *stack, f);
  if (C10_UNLIKELY(e.eager.has_value())) return run_eager(o, stack, *e.eager);
  if (C10_UNLIKELY(o.outputs) && floats_of_integers(o, *stack)) return run_eager(o, stack, LTC_WHY_ARGUMENT);
  if (C10_UNLIKELY(c10::get_default_dtype_as_scalartype() != at::kFloat && compares_in_default(o, *stack)))
    return compare_in_default(o, stack);
  if (e.only_views) return push_results(o, e, f, nullptr, stack);
  if (C10_UNLIKELY(!e.resizes.empty())) apply_resizes(e, f);

  LtcRecord call = f.record(o);
  call.signature = e.signature;
  call.nfresh = e.fresh;
  c10::SmallVector<LtcSlot, 4> slots(e.fresh);
  LtcError err;
  check(V.record(V.ctx, &call, slots.data(), &err), err);
  if (o.counts_changes)
    for (size_t i = 0; i < f.operands.size(); i++)
      if ((f.operands[i].flags & LTC_MUT) && f.tensors[i]) count_change(*f.tensors[i]);
  push_results(o, e, f, slots.data(), stack);
}

// ---- plain calls ---- Most calls of most programs: tensors and numbers in, one tensor out, layouts known. They need
// no interpreter stack, whose references make PyTorch take the interpreter's lock for each tensor with a Python object.
// Whatever else a call turns out to be, it is made again the boxed way.
namespace {
void plain(Flattener& fl, const Tensor& t, const ArgInfo& a) {
  if (t.defined()) fl.tensor(t, a, false);
  else fl.f.head(LTC_NONE);
}
void plain(Flattener& fl, const c10::Scalar& s, const ArgInfo&) {
  if (C10_UNLIKELY(s.isSymbolic())) fl.f.bits = true;
  else fl.number(s, true);
}

template <class R, class First, class... A> R record_plain(const OpInfo& o, First first, A... rest) {
  constexpr bool in_place = std::is_reference_v<R>;
  if (C10_LIKELY(!o.forced.load(std::memory_order_relaxed))) {
    Flat f;
    Flattener flattener{o, f};
    size_t i = 1;
    plain(flattener, first, o.args[0]);
    (plain(flattener, rest, o.args[i++]), ...);
    flattener.finish();
    if (C10_LIKELY(!f.bits && f.eager < 0))
      if (auto* e = known(o, f); C10_LIKELY(e && e->plain)) {
        LtcRecord call = f.record(o);
        call.signature = e->signature;
        call.nfresh = !in_place;
        LtcSlot slot;
        LtcError err;
        check(V.record(V.ctx, &call, &slot, &err), err);
        if constexpr (in_place) return first;
        else return new_tensor(e->outs[0].layout, slot, f.device);
      }
  }
  Stack stack;
  stack.reserve(1 + sizeof...(A));
  stack.emplace_back(first);
  (stack.emplace_back(rest), ...);
  run(o, &stack);
  if constexpr (in_place) return first;
  else return std::move(stack.back()).toTensor();
}

// A list of C++ argument types, `Tensor` or `Scalar`.
template <class... A> bool register_as(torch::Library& m, const char* name, const OpInfo& o) {
  constexpr bool is_tensor[] = {true, std::is_same_v<A, Tensor>...};
  if (std::size(is_tensor) != o.args.size()) return false;
  for (size_t i = 0; i < o.args.size(); i++)
    if (is_tensor[i] ? o.args[i].kind != Kind::Tensor : !o.args[i].number) return false;
  if (o.mutates)
    m.impl(name, torch::CppFunction([&o](Tensor& self, const A&... args) -> Tensor& {
             return record_plain<Tensor&, Tensor&, const A&...>(o, self, args...);
           }));
  else
    m.impl(name, torch::CppFunction([&o](const Tensor& self, const A&... args) -> Tensor {
             return record_plain<Tensor, const Tensor&, const A&...>(o, self, args...);
           }));
  return true;
}
}  // namespace

bool register_plain(torch::Library& m, const char* name, const OpInfo& o) {
  using T = Tensor;
  using S = c10::Scalar;
  const auto& schema = o.handle->schema();
  bool exact = schema.returns().size() == 1 && schema.returns()[0].type()->kind() == c10::TypeKind::TensorType;
  for (auto& a : schema.arguments())
    exact &= a.type()->kind() == c10::TypeKind::TensorType || a.type()->kind() == c10::TypeKind::NumberType;
  if (name == std::string_view("resize_as_sparse_"))
    exact = false;  // its C++ signature takes a written tensor by const reference
  if (!exact || o.eager || o.random || o.has_view) return false;
  for (size_t i = 0; i < o.args.size(); i++)
    if (o.args[i].write && (i > 0 || o.args[i].out || o.rets[0].write_arg != 0)) return false;
  return register_as<>(m, name, o) || register_as<T>(m, name, o) || register_as<S>(m, name, o) ||
      register_as<T, T>(m, name, o) || register_as<T, S>(m, name, o) || register_as<S, S>(m, name, o) ||
      register_as<T, T, S>(m, name, o) || register_as<T, T, S, S>(m, name, o);
}
}  // namespace ltc
