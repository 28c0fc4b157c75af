// Result layouts of a call: from the thread's cache, a table rule in Rust, the structured meta function, or Meta kernels.
#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <array>
#include <memory>
#include <unordered_map>

#include "flat.h"

namespace ltc {
namespace {
// Bounded, per thread: four ways per set, the oldest way of a full set is replaced.
struct Cache {
  static constexpr size_t kSets = 1024, kWays = 4;
  std::array<std::array<std::unique_ptr<ShapeEntry>, kWays>, kSets> sets;
  std::array<uint8_t, kSets> next{};

  static bool equal(const ShapeEntry& e, uint64_t id, const Flat& f) {
    const auto& k = e.key;
    return k.size() == 1 + f.words.size() + f.shapes.size() && k[0] == id &&
        !memcmp(k.data() + 1, f.words.data(), f.words.size() * 8) &&
        !memcmp(k.data() + 1 + f.words.size(), f.shapes.data(), f.shapes.size() * 8);
  }
  ShapeEntry* find(uint64_t hash, uint64_t id, const Flat& f) {
    for (auto& e : sets[hash % kSets])
      if (e && e->hash == hash && equal(*e, id, f)) return e.get();
    return nullptr;
  }
  ShapeEntry& put(std::unique_ptr<ShapeEntry> e) {
    size_t set = e->hash % kSets;
    auto& slot = sets[set][next[set]++ % kWays];
    slot = std::move(e);
    return *slot;
  }
};

using StorageMap = std::unordered_map<LazyStorage*, c10::Storage>;
// A meta tensor of the same layout; lazy tensors that share a storage give meta tensors that do, so that libtorch's
// overlap checks work.
Tensor meta_of(const Tensor& t, StorageMap& map) {
  auto* s = storage_of(t.unsafeGetTensorImpl());
  auto it = map.find(s);
  if (it == map.end()) {
    auto impl = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), (int64_t)s->nbytes(),
                                                      c10::GetAllocator(c10::kMeta), true);
    it = map.emplace(s, c10::Storage(std::move(impl))).first;
  }
  Tensor m = at::detail::make_tensor<TensorImpl>(c10::Storage(it->second), DispatchKeySet(DispatchKey::Meta), t.dtype());
  m.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
  return m;
}

void ask_rule(const OpInfo& o, const Flat& f, ShapeEntry& e, bool& answered) {
  bool new_results = false;
  for (auto& r : o.rets) {
    if (r.view_arg >= 0) return;
    new_results |= r.write_arg < 0;
  }
  if (!new_results) return;
  c10::SmallVector<LtcDims, 8> dims;
  for (auto& x : f.operands)
    if (!(x.flags & LTC_FRESH)) dims.push_back(x.dims);
  std::vector<OutMeta> results;
  LtcRecord call = f.record(o);
  LtcError err;
  int rc = V.infer(V.ctx, o.rust, &call, dims.data(), &results, &err);
  if (rc == 2) return;
  check(rc, err);
  size_t next = 0;
  for (size_t i = 0; i < o.rets.size(); i++) {
    const RetInfo& r = o.rets[i];
    if (r.write_arg >= 0) {
      e.ret_count.push_back(1);
      e.outs.emplace_back().kind = OutKind::Written;
      continue;
    }
    size_t count = r.kind == Kind::TensorList ? results.size() - next : 1;
    TORCH_INTERNAL_ASSERT(next + count <= results.size(), "ltc: the shape rule of ", o.name, " gives too few results");
    e.ret_count.push_back(count);
    for (size_t j = 0; j < count; j++) e.outs.push_back(std::move(results[next++]));
  }
  answered = true;
}

// In-place operators without a meta function: shapes of written arguments cannot change.
bool only_writes_in_place(const OpInfo& o) {
  if (!o.mutates) return false;
  for (auto& r : o.rets)
    if (r.write_arg < 0) return false;
  for (auto& a : o.args)
    if (a.write && a.out) return false;
  return true;
}

void ask_meta(const OpInfo& o, const Stack& stack, ShapeEntry& e) {
  const size_t n = o.args.size(), base = stack.size() - n;
  StorageMap storages;
  Stack meta;
  meta.reserve(n + 4);
  struct Written {
    uint32_t operand;
    Tensor tensor;
    Dims sizes, strides;
  };
  std::vector<Written> written;
  uint32_t operand = 0;
  for (size_t i = 0; i < n; i++) {
    const IValue& v = stack[base + i];
    switch (o.args[i].kind) {
      case Kind::Device: meta.push_back(v.isNone() ? v : IValue(c10::Device(c10::kMeta))); break;
      case Kind::Generator:
        meta.push_back(IValue());
        operand += o.random;
        break;
      default:
        meta.push_back(map_tensors(v, o.args[i].kind, [&](const Tensor& t) {
          if (!t.defined()) return t;
          bool host_scalar = !is_lazy(t) && o.args[i].kind == Kind::Tensor && t.dim() == 0;
          if (host_scalar) return t;
          Tensor m = is_lazy(t) ? meta_of(t, storages) : t.to(c10::kMeta);
          if (o.args[i].write) written.push_back({operand, m, Dims(m.sizes()), Dims(m.strides())});
          operand++;
          return m;
        }));
    }
  }
  try {
    BelowAutograd guard;
    if (o.structured) {
      // meta() + op.out(): the trailing out call is swallowed by the TESTING_ONLY_GenericMode fallback (register.cpp), so
      // that just the C++ meta function runs, with eager's own error texts.
      c10::impl::IncludeDispatchKeyGuard mode(DispatchKey::TESTING_ONLY_GenericMode);
      o.handle->redispatchBoxed(DispatchKeySet(), &meta);
    } else o.handle->callBoxed(&meta);
  } catch (const c10::NotImplementedError&) {
    if (!only_writes_in_place(o)) {
      e.eager = LTC_WHY_NO_SHAPE;
      return;
    }
    for (size_t i = 0; i < o.rets.size(); i++) {
      e.ret_count.push_back(1);
      e.outs.emplace_back().kind = OutKind::Written;
    }
    return;
  }
  auto describe = [&](const Tensor& t, const RetInfo& r) {
    OutMeta m;
    if (r.write_arg >= 0) m.kind = OutKind::Written;
    else if (!t.defined()) m.kind = OutKind::Undefined;
    else {
      m.kind = r.view_arg >= 0 ? OutKind::View : OutKind::New;
      m.layout = Layout(t.scalar_type(), t.sizes(), t.strides());
      m.offset = t.storage_offset();
    }
    e.outs.push_back(std::move(m));
  };
  for (size_t i = 0; i < o.rets.size(); i++) {
    const IValue& v = meta[meta.size() - o.rets.size() + i];
    if (o.rets[i].kind == Kind::TensorList) {
      auto l = v.toTensorVector();
      e.ret_count.push_back(l.size());
      for (auto& t : l) describe(t, o.rets[i]);
    } else {
      e.ret_count.push_back(1);
      describe(v.isNone() ? Tensor() : v.toTensor(), o.rets[i]);
    }
  }
  for (auto& w : written)
    if (w.tensor.sizes() != IntArrayRef(w.sizes) || w.tensor.strides() != IntArrayRef(w.strides))
      e.resizes.push_back({w.operand, Layout(w.tensor.scalar_type(), w.tensor.sizes(), w.tensor.strides())});
}
}  // namespace

// Kernel of the mode under which structured kernels run for their meta function only: calls of out variants return their
// out arguments untouched, everything else goes on below the mode.
void swallow_out(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
  const auto& s = op.schema();
  const size_t n = s.arguments().size();
  std::vector<IValue> outs;
  for (size_t i = 0; i < n; i++) {
    const auto& a = s.arguments()[i];
    if (a.kwarg_only() && a.alias_info() && a.alias_info()->isWrite()) outs.push_back((*stack)[stack->size() - n + i]);
  }
  if (!s.returns().empty() && outs.size() == s.returns().size()) {
    stack->resize(stack->size() - n);
    for (auto& v : outs) stack->push_back(std::move(v));
    return;
  }
  c10::impl::ExcludeDispatchKeyGuard guard(DispatchKey::TESTING_ONLY_GenericMode);
  op.callBoxed(stack);
}

const ShapeEntry& infer(const OpInfo& o, const Stack& stack, const Flat& f) {
  thread_local Cache cache;
  const uint64_t hash = f.hash(o.id);
  if (auto* e = cache.find(hash, o.id, f)) return *e;
  auto e = std::make_unique<ShapeEntry>();
  bool answered = false;
  ask_rule(o, f, *e, answered);
  if (!answered) ask_meta(o, stack, *e);
  e->hash = hash;
  e->key.reserve(1 + f.words.size() + f.shapes.size());
  e->key.push_back(o.id);
  e->key.insert(e->key.end(), f.words.begin(), f.words.end());
  e->key.insert(e->key.end(), f.shapes.begin(), f.shapes.end());
  e->only_views = !e->outs.empty() && !e->eager;
  for (auto& m : e->outs) {
    if (m.kind == OutKind::New) e->fresh.push_back(m.layout.rust);
    e->only_views &= m.kind == OutKind::View;
  }
  return cache.put(std::move(e));
}
}  // namespace ltc

extern "C" void ltc_infer_push(void* results, const LtcDims* d) {
  auto& out = static_cast<std::vector<ltc::OutMeta>*>(results)->emplace_back();
  if (!d) {
    out.kind = ltc::OutKind::Undefined;
    return;
  }
  out.kind = ltc::OutKind::New;
  out.layout = ltc::Layout((ltc::ScalarType)d->dtype, {d->sizes, d->rank}, {d->strides, d->rank});
}
