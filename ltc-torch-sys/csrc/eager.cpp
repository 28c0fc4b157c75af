// Eager calls: operators that cannot be recorded run at once, where the device's values are. Rust decides and counts
// (LtcVTable.fallback); the mechanics of the stack are here.
#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_strided.h>

#include <unordered_map>
#include <unordered_set>

#include "flat.h"
#include "sparse.h"

using namespace ltc;

struct LtcCall {
  const OpInfo& o;
  Stack* stack;
  int32_t device;
  std::vector<const Tensor*> lazy;  // lazy tensors among the arguments, each argument position once
  std::vector<bool> written;
  std::vector<const Tensor*>
      overlapping;  // per lazy tensor: the argument whose elements lie upon each other, if it is written; null else
  Stack placed;     // the call on the values, then its results
  struct Mutated {
    const Tensor* lazy;
    Tensor value;   // what the kernel writes to
    Tensor before;  // what it held then
    int64_t version() const { return value.is_inference() ? 0 : static_cast<int64_t>(value._version()); }
    int64_t version_before = version();
  };
  std::vector<Mutated> mutated;
  struct MutatedSparse {
    Tensor lazy, value;
    Parts parts, before;  // of the value, as it is given to the kernel, and what they held
  };
  std::vector<MutatedSparse> mutated_sparse;
  bool has_sparse = false;
  std::unordered_set<c10::StorageImpl*> inputs;
  std::optional<at::Generator> generator;
  LtcSlot* generator_state = nullptr;
  std::exception_ptr cause;  // what the operator threw: rethrown as it was (Python's own exceptions too)
  c10::Device place() const { return place_of_device(device); }
};

namespace ltc {
void run_eager(const OpInfo& o, Stack* stack, uint8_t reason) {
  LtcCall call{o, stack, -1};
  const size_t n = o.args.size(), base = stack->size() - n;
  // Arguments that are conjugate or negative views are resolved first, because their storage holds other values.
  for (size_t i = 0; i < n; i++)
    if (!o.args[i].write)
      (*stack)[base + i] = map_tensors((*stack)[base + i], o.args[i].kind, [](const Tensor& t) {
        return is_lazy(t) && (t.is_conj() || t.is_neg()) ? t.resolve_conj().resolve_neg() : t;
      });
  // Lists hand out copies of their tensors: keep those alive for the call.
  std::list<Tensor> held;
  for (size_t i = 0; i < n; i++)
    map_tensors((*stack)[base + i], o.args[i].kind, [&](const Tensor& t) {
      call.has_sparse |= is_sparse(t);
      if (is_lazy(t) && is_sparse(t)) {
        // The values of a sparse tensor's parts are requested, not of the tensor itself.
        for (Tensor& part : parts_of(t)) {
          held.push_back(std::move(part));
          call.lazy.push_back(&held.back());
          call.overlapping.push_back(nullptr);
          call.written.push_back(false);
        }
        if (call.device < 0) call.device = t.device().index();
      } else if (is_lazy(t)) {
        held.push_back(t);
        auto* ti = t.unsafeGetTensorImpl();
        const bool overlaps = o.args[i].write && !ti->is_non_overlapping_and_dense() &&
            at::has_internal_overlap(ti) == at::MemOverlap::Yes;
        call.overlapping.push_back(overlaps ? &held.back() : nullptr);
        // The kernel decides whether it may write to overlapping elements. It is given a tensor that overlaps in the
        // same way; the value requested here is a flat view of all its elements.
        if (overlaps)
          held.push_back(
              alias(t, t.scalar_type(), {storage_elements(t.sizes(), t.strides())}, {1}, t.storage_offset()));
        call.lazy.push_back(&held.back());
        call.written.push_back(o.args[i].write);
        if (call.device < 0) call.device = t.device().index();
      }
      return t;
    });
  if (call.device < 0) call.device = current_device();
  // Kernels refuse outputs that overlap inputs, but the copies that they are given share no memory. So this is checked
  // here.
  if (reason != LTC_WHY_FORCED)
    for (size_t i = 0, at = 0; i < n; i++)
      map_tensors((*stack)[base + i], o.args[i].kind, [&](const Tensor& t) {
        if (!is_lazy(t)) return t;
        if (is_sparse(t)) {
          at += parts_of(t).size();
          return t;
        }
        const size_t mine = at++;
        for (size_t j = 0; o.args[i].out && j < call.lazy.size(); j++)
          if (j != mine && !call.written[j] && !call.lazy[j]->is_same(t) &&
              call.lazy[j]->storage().is_alias_of(t.storage()))
            at::assert_no_overlap(t, *call.lazy[j]);
        return t;
      });
  LtcError err;
  int rc = V.fallback(V.ctx, &call, o.name.data(), o.name.size(), reason, call.device, &err);
  give_warnings();
  if (rc && call.cause) std::rethrow_exception(call.cause);
  check(rc, err);
}
}  // namespace ltc

namespace {
bool same_bits(const Tensor& a, const Tensor& b) {
  auto bytes = [](const Tensor& t) { return t.contiguous().view({-1}).view(at::kByte); };
  return a.numel() == 0 || at::equal(bytes(a), bytes(b));
}

// The size and strides that a kernel gave its output; whether they are new.
bool resize_like(const Tensor& lazy, const Tensor& value) {
  if (lazy.sizes() == value.sizes()) return false;
  lazy.resize_(value.sizes());
  if (lazy.strides() != value.strides() && value.is_non_overlapping_and_dense())
    lazy.unsafeGetTensorImpl()->set_sizes_and_strides(value.sizes(), value.strides());
  return true;
}

// Some kernels of sparse tensors (`_sparse_mm_reduce_impl`) save what the backward pass needs only if their argument
// requires a gradient, so the value has to require one if the given tensor does.
Tensor with_need(const Tensor& value, const Tensor& given) {
  if (!given.requires_grad()) return value;
  Tensor needed = value.detach();
  needed.unsafeGetTensorImpl()->set_requires_grad(true);
  return needed;
}

// A sparse argument at the place: a lazy one is put together from the values of its parts, another one is copied there.
Tensor placed_sparse(LtcCall& c, const Tensor& t, bool is_written, void* const* values, size_t& next) {
  if (!is_lazy(t)) {
    Tensor value = t.detach().to(c.place());
    for (const Tensor& part : parts_of(value)) c.inputs.insert(part.storage().unsafeGetStorageImpl());
    return with_need(value, t);
  }
  Parts before, parts;
  for (size_t i = parts_of(t).size(); i > 0; i--) {
    before.push_back(*static_cast<const Tensor*>(values[next++]));
    parts.push_back(is_written ? before.back().clone() : before.back());
    c.inputs.insert(parts.back().storage().unsafeGetStorageImpl());
  }
  Tensor value = with_parts(t, parts);
  if (!is_written) return with_need(value, t);
  c.mutated_sparse.push_back({t, value, parts, before});
  return value;
}

Tensor result(const LtcCall& c, const Tensor& t) {
  return from_value(c.inputs.count(t.storage().unsafeGetStorageImpl()) ? t.clone() : t, c.device);
}
Tensor sparse_result(const LtcCall& c, const Tensor& t) {
  Parts parts = parts_of(t);
  for (Tensor& part : parts) part = result(c, part);
  return with_parts(t, parts);
}

// Gives the parts of a sparse tensor the values that the kernel left. Parts that the kernel wrote in place are written
// in place, so that other tensors which show them see it; other parts become new tensors.
void write_sparse(const LtcCall& c, const LtcCall::MutatedSparse& m) {
  Parts now = parts_of(m.value), parts = parts_of(m.lazy);
  for (size_t i = 0; i < parts.size(); i++) {
    const bool in_place = now[i].storage().is_alias_of(m.parts[i].storage()) && now[i].sizes() == m.parts[i].sizes() &&
        now[i].strides() == m.parts[i].strides();
    if (!in_place) parts[i] = result(c, now[i]);
    else if (!same_bits(now[i], m.before[i])) write_value(parts[i], now[i]);
  }
  set_parts(m.lazy, m.value, parts);
}

// Repeats the effects of a failed call: before it failed, it may have resized its output, or written to some of its
// arguments (`_foreach_neg_` of floats and a boolean).
void leave_failed(const LtcCall& c) {
  OnPlace on(c.place());
  for (const auto& m : c.mutated) {
    if (resize_like(*m.lazy, m.value)) continue;
    if (!same_bits(m.value, m.before)) write_value(*m.lazy, m.value);
    // Versions count every write, including one that left the elements as they were.
    for (int64_t v = m.version_before; c.o.counts_changes && v < m.version(); v++) count_change(*m.lazy);
  }
}
}  // namespace

extern "C" {
uint32_t ltc_call_operand_count(const LtcCall* c) { return c->lazy.size(); }
void ltc_call_operand(const LtcCall* c, uint32_t i, LtcOperand* out, int32_t* device) {
  *out = operand_of(*c->lazy[i], c->written[i] ? LTC_MUT : 0);
  *device = c->lazy[i]->device().index();
}
int ltc_call_run(LtcCall* c, void* const* values, LtcError* err) {
  return guarded(err, [&] {
    const OpInfo& o = c->o;
    const size_t n = o.args.size(), base = c->stack->size() - n;
    size_t next = 0;
    OnPlace on(c->place());
    // A tensor that is several arguments, of which one is written, stays one tensor: kernels ask whether it is.
    std::unordered_map<const TensorImpl*, Tensor> writable;
    for (size_t i = 0; i < c->lazy.size(); i++) {
      auto& copy = writable[c->lazy[i]->unsafeGetTensorImpl()];
      if (!c->written[i] || copy.defined()) continue;
      const auto& value = *static_cast<const Tensor*>(values[i]);
      copy = at::empty_strided(value.sizes(),
                               value.is_non_overlapping_and_dense() ? value.strides() : value.contiguous().strides(),
                               value.options())
                 .copy_(value);
      c->mutated.push_back({c->lazy[i], copy, value});
    }
    for (size_t i = 0; i < n; i++) {
      const IValue& v = (*c->stack)[base + i];
      if (o.args[i].kind == Kind::Device) {
        c->placed.push_back(v.isNone() ? v : IValue(c->place()));
        continue;
      }
      if (o.args[i].kind == Kind::Generator) {
        if (!o.random) {
          c->placed.emplace_back();
          continue;
        }
        c->generator_state = v.isNone() ? default_generator_slot(c->device) : generator_slot(v.toGenerator());
        void* g = nullptr;
        LtcError e;
        check(V.generator_state(V.ctx, c->generator_state, c->device, &g, &e), e);
        c->generator = *static_cast<at::Generator*>(g);
        ltc_generator_free(g);
        c->placed.emplace_back(*c->generator);
        continue;
      }
      c->placed.push_back(map_tensors(v, o.args[i].kind, [&](const Tensor& t) {
        if (is_sparse(t)) return placed_sparse(*c, t, o.args[i].write, values, next);
        if (!is_lazy(t)) return t;
        const Tensor *lazy = c->lazy[next], *overlapping = c->overlapping[next];
        Tensor value = *static_cast<const Tensor*>(values[next++]);
        if (auto& copy = writable[lazy->unsafeGetTensorImpl()]; copy.defined()) value = copy;
        c->inputs.insert(value.storage().unsafeGetStorageImpl());
        if (c->has_sparse && !o.args[i].write) value = with_need(value, t);
        if (overlapping) return value.as_strided(overlapping->sizes(), overlapping->strides(), 0);
        return value;
      }));
    }
    try {
      BelowAutograd guard(o.counts_changes);
      OnPlace below(c->place());
      Alone alone;
      o.handle->callBoxed(&c->placed);
    } catch (...) {
      c->cause = std::current_exception();
      leave_failed(*c);
      throw;
    }
  });
}
int ltc_call_finish(LtcCall* c, LtcError* err) {
  return guarded(err, [&] {
    const OpInfo& o = c->o;
    const size_t base = c->stack->size() - o.args.size();
    OnPlace on(c->place());
    if (c->generator) {
      LtcError e;
      check(V.set_generator_state(V.ctx, c->generator_state, c->device, new at::Generator(*c->generator), &e), e);
    }
    for (auto& [lazy, value, before, version] : c->mutated) {
      if (resize_like(*lazy, value)) {
        for (size_t i = 0; i < c->lazy.size(); i++)  // may overlap now that it has grown
          if (!c->written[i] && c->lazy[i]->storage().is_alias_of(lazy->storage()))
            at::assert_no_overlap(*lazy, *c->lazy[i]);
      }
      write_value(*lazy, value);
    }
    for (auto& m : c->mutated_sparse) write_sparse(*c, m);
    if (o.counts_changes)
      for (size_t i = 0; i < c->lazy.size(); i++)
        if (c->written[i]) count_change(c->overlapping[i] ? *c->overlapping[i] : *c->lazy[i]);
    std::vector<IValue> outs;
    for (size_t i = 0; i < o.rets.size(); i++) {
      const RetInfo& r = o.rets[i];
      if (r.write_arg >= 0) {
        outs.push_back((*c->stack)[base + r.write_arg]);
        continue;
      }
      outs.push_back(map_tensors(c->placed[c->placed.size() - o.rets.size() + i], r.kind, [&](const Tensor& t) {
        if (!t.defined()) return t;
        TORCH_CHECK_NOT_IMPLEMENTED(r.view_arg < 0, "ltc: ", o.name, " returns a view and cannot run eagerly");
        if (is_sparse(t)) return sparse_result(*c, t);
        check_dense(t);
        return result(*c, t);
      }));
    }
    c->stack->resize(base);
    for (auto& v : outs) c->stack->push_back(std::move(v));
  });
}
}
