// Result layouts of a call: from the thread's cache, a table rule in Rust, the structured meta function, the kernel run
// on stand-ins, or a Meta kernel.
#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "flat.h"

namespace ltc {
namespace {
// Bounded, per thread: four ways per set, the oldest way of a full set is replaced. A program that repeats itself makes
// its calls in the same order: each place remembers which call came next, and that one is compared before anything is
// hashed.
struct Cache {
  static constexpr uint32_t kSets = 1024, kWays = 4, kNone = ~0u;
  std::array<std::unique_ptr<ShapeEntry>, kSets * kWays> places;
  std::array<uint32_t, kSets * kWays> next;
  std::array<uint8_t, kSets> oldest{};
  uint32_t last = kNone;
  LtcCalls calls{};
  Cache() { next.fill(kNone); }

  static bool equal(const ShapeEntry& e, uint64_t id, const Flat& f) {
    const auto& k = e.key;
    return k.size() == 1 + f.words.size() + f.shapes.size() && k[0] == id &&
        !memcmp(k.data() + 1, f.words.data(), f.words.size() * 8) &&
        !memcmp(k.data() + 1 + f.words.size(), f.shapes.data(), f.shapes.size() * 8);
  }
  void made(uint32_t place) {
    if (last != kNone) next[last] = place;
    last = place;
  }
  ShapeEntry* find(uint64_t id, const Flat& f) {
    if (V.expect_calls && last != kNone && next[last] != kNone)
      if (auto* e = places[next[last]].get(); e && equal(*e, id, f)) {
        last = next[last];
        calls.expected++;
        return e;
      }
    const uint64_t hash = f.hash(id);
    for (uint32_t place = hash % kSets * kWays, end = place + kWays; place < end; place++)
      if (auto* e = places[place].get(); e && e->hash == hash && equal(*e, id, f)) {
        made(place);
        calls.looked_up++;
        return e;
      }
    return nullptr;
  }
  ShapeEntry& put(std::unique_ptr<ShapeEntry> e) {
    const uint32_t set = e->hash % kSets, place = set * kWays + oldest[set]++ % kWays;
    next[place] = kNone;
    made(place);
    calls.inferred++;
    places[place] = std::move(e);
    return *places[place];
  }
};

Cache& cache() {
  thread_local std::unique_ptr<Cache> mine;
  if (C10_UNLIKELY(!mine)) mine = std::make_unique<Cache>();
  return *mine;
}

void count_probe() { cache().calls.probed++; }

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
  Tensor m =
      at::detail::make_tensor<TensorImpl>(c10::Storage(it->second), DispatchKeySet(DispatchKey::Meta), t.dtype());
  m.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
  return m;
}

void ask_rule(const OpInfo& o, const Flat& f, ShapeEntry& e, bool& answered) {
  bool new_results = false;
  for (auto& r : o.rets) {
    if (r.view_arg >= 0) return;
    new_results |= r.write_arg < 0;
  }
  // The rules count with libtorch's own default dtype, and are the CPU's.
  if (!new_results || c10::get_default_dtype_as_scalartype() != at::kFloat || !place_of_device(f.device).is_cpu())
    return;
  c10::SmallVector<LtcDims, 8> dims;
  for (auto& x : f.operands)
    if (!(x.flags & LTC_FRESH)) dims.push_back(x.dims);
  std::vector<OutMeta> results;
  LtcRecord call = f.record(o);
  LtcError err;
  int rc = V.infer(V.ctx, o.rust, &call, dims.data(), &results, &err);
  if (rc == 2 || (rc && o.structured)) return;  // its meta function says what is wrong in its own words
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

// Layouts of the results on top of a stack.
void describe_results(const OpInfo& o, const Stack& stack, ShapeEntry& e) {
  auto describe = [&](const Tensor& t, const RetInfo& r) {
    OutMeta m;
    if (r.write_arg >= 0) m.kind = OutKind::Written;
    else if (!t.defined()) m.kind = OutKind::Undefined;
    else {
      check_dense(t);
      m.kind = r.view_arg >= 0 ? OutKind::View : OutKind::New;
      m.layout = Layout(t.scalar_type(), t.sizes(), t.strides());
      m.offset = t.storage_offset();
    }
    e.outs.push_back(std::move(m));
  };
  for (size_t i = 0; i < o.rets.size(); i++) {
    const IValue& v = stack[stack.size() - o.rets.size() + i];
    if (o.rets[i].kind == Kind::TensorList) {
      auto l = v.toTensorVector();
      e.ret_count.push_back(l.size());
      for (auto& t : l) describe(t, o.rets[i]);
    } else {
      e.ret_count.push_back(1);
      describe(v.isNone() ? Tensor() : v.toTensor(), o.rets[i]);
    }
  }
}

// ---- probes: the operator run once, where the call would run, on zeros (integers, valid indices) and ones (floats)
// ---- A full probe has the call's own layouts and tells result layouts where no meta function does. A tiny one has
// every size cut to at most 1 and tells whether there is a kernel for these dtypes, which meta functions often do not
// check.
constexpr size_t kProbeBytes = size_t(64) << 20;
constexpr const char* kTooLarge = "too large to probe";

// Storages that several arguments share are shared by their stand-ins too, so that libtorch's overlap checks work.
struct SharedStorages {
  std::unordered_map<LazyStorage*, std::pair<uint32_t, Tensor>> uses;  // count, memory
  explicit SharedStorages(const Flat& f) {
    c10::SmallVector<TensorImpl*, 8> seen;
    for (auto* t : f.tensors)
      if (t && is_lazy(*t) && std::find(seen.begin(), seen.end(), t->unsafeGetTensorImpl()) == seen.end()) {
        seen.push_back(t->unsafeGetTensorImpl());
        uses[storage_of(seen.back())].first++;
      }
  }
  Tensor* memory(const Tensor& t) {
    auto it = uses.find(storage_of(t.unsafeGetTensorImpl()));
    return it == uses.end() || it->second.first < 2 ? nullptr : &it->second.second;
  }
};

Dims at_most_one(IntArrayRef sizes) {
  Dims tiny(sizes);
  for (auto& s : tiny) s = std::min<int64_t>(s, 1);
  return tiny;
}

Tensor probe_tensor(const Tensor& t, bool tiny, SharedStorages& shared, c10::Device place) {
  auto options = at::TensorOptions().dtype(t.scalar_type()).device(place);
  bool one = at::isFloatingType(t.scalar_type()) || at::isComplexType(t.scalar_type());
  if (!tiny) {
    Tensor* memory = is_lazy(t) ? shared.memory(t) : nullptr;
    if (!memory) return at::empty_strided(t.sizes(), t.strides(), options).fill_(one);
    int64_t n = t.storage().nbytes() / t.itemsize();
    if (!memory->defined()) *memory = at::empty({n}, options).fill_(one);
    Tensor view = at::empty({0}, options);
    return view.set_(memory->storage(), t.storage_offset(), t.sizes(), t.strides());
  }
  return at::empty(at_most_one(t.sizes()), options).fill_(one);
}

struct KeepDefaultGenerator {  // a probe must not use up draws
  std::unique_lock<std::mutex> lock;
  std::optional<at::Generator> generator;
  Tensor state;
  KeepDefaultGenerator(bool random, c10::Device place) {
    if (!random) return;
    lock = std::unique_lock<std::mutex>(default_generator_mutex());
    generator = default_generator_at(place);
    state = generator->get_state();
  }
  ~KeepDefaultGenerator() {
    if (generator) generator->set_state(state);
  }
};

// A call on stand-ins for its lazy tensors, and the stand-ins of written arguments as they were.
struct StandIn {
  struct Written {
    uint32_t operand;
    Tensor tensor;
    Dims sizes, strides;
  };
  Stack stack;
  std::vector<Tensor> stand_ins;
  std::vector<Written> written;

  template <class F> StandIn(const OpInfo& o, const Stack& call, c10::Device device, F make) {
    // A tensor that is several arguments stays one: libtorch's checks of outputs ask for identity.
    std::unordered_map<TensorImpl*, Tensor> made;
    auto stand_in = [&](const Tensor& t) {
      auto& s = made[t.unsafeGetTensorImpl()];
      if (!s.defined()) stand_ins.push_back(s = make(t));
      return s;
    };
    const size_t n = o.args.size(), base = call.size() - n;
    stack.reserve(n + 4);
    uint32_t operand = 0;
    for (size_t i = 0; i < n; i++) {
      const IValue& v = call[base + i];
      const ArgInfo& a = o.args[i];
      if (a.kind == Kind::Device) stack.push_back(v.isNone() ? v : IValue(device));
      else if (a.kind == Kind::Generator) {
        stack.emplace_back();
        operand += o.random;
      } else
        stack.push_back(map_tensors(v, a.kind, [&](const Tensor& t) {
          if (!t.defined() || (!is_lazy(t) && a.kind == Kind::Tensor && t.dim() == 0)) return t;
          Tensor s = stand_in(t);
          if (a.write) written.push_back({operand, s, Dims(s.sizes()), Dims(s.strides())});
          operand++;
          return s;
        }));
    }
  }
  // Writes to `e` what the finished call on stand-ins tells of the real call: result layouts and resized arguments.
  void describe(const OpInfo& o, ShapeEntry& e) {
    e.outs.clear();
    e.ret_count.clear();
    describe_results(o, stack, e);
    e.resizes.clear();
    for (auto& w : written)
      if (w.tensor.sizes() != IntArrayRef(w.sizes) || w.tensor.strides() != IntArrayRef(w.strides))
        e.resizes.push_back({w.operand, Layout(w.tensor.scalar_type(), w.tensor.sizes(), w.tensor.strides())});
  }
};

// Runs the operator on stand-ins; its exceptions pass through. Where no stand-ins can answer for the call, because its
// result layouts depend on values, the operator is not run, and `eager` is set to the reason. `resizes`: if the
// operator throws, the call's own outputs get the sizes that the operator had already given to their stand-ins.
StandIn probe(const OpInfo& o, const Stack& stack, const Flat& f, bool tiny, std::optional<uint8_t>& eager,
              bool resizes = false) {
  Alone alone;
  size_t bytes = 0;
  SharedStorages shared(f);
  const c10::Device place = place_of_device(f.device);
  OnPlace on(place);
  StandIn call(o, stack, place, [&](const Tensor& t) {
    // By elements, not by memory: a kernel walks all elements of an expanded tensor.
    bytes += std::max<size_t>(t.numel() * t.itemsize(), is_lazy(t) ? t.storage().nbytes() : 0);
    TORCH_CHECK_NOT_IMPLEMENTED(tiny || bytes <= kProbeBytes, kTooLarge);
    return probe_tensor(t, tiny, shared, place);
  });
  if (o.stand_in) eager = o.stand_in(o, call.stack, call.stand_ins);
  if (eager) return call;
  KeepDefaultGenerator keep(o.random, place);
  BelowAutograd guard;
  OnPlace below(place);
  try {
    o.handle->callBoxed(&call.stack);
  } catch (...) {
    for (const auto& w : call.written)
      if (resizes && f.tensors[w.operand] && w.tensor.sizes() != IntArrayRef(w.sizes))
        Tensor(*f.tensors[w.operand]).resize_(w.tensor.sizes());
    throw;
  }
  return call;
}

// Just the C++ meta function of a structured operator, by meta() + op.out(): the trailing out call is swallowed by the
// TESTING_ONLY_GenericMode fallback (register.cpp). Errors have eager's own texts.
void call_meta_function(const OpInfo& o, StandIn& call) {
  BelowAutograd guard;
  c10::impl::IncludeDispatchKeyGuard mode(DispatchKey::TESTING_ONLY_GenericMode);
  o.handle->redispatchBoxed(DispatchKeySet(), &call.stack);
}

// Whether a kernel that ran on tiny stand-ins gave results of other dtypes or sizes than its own meta function gives:
// some kernels resize their results.
bool differs_from_meta(const OpInfo& o, const Stack& stack, StandIn& ran) {
  ShapeEntry kernel, meta;
  try {
    StandIn call(o, stack, c10::kMeta,
                 [](const Tensor& t) { return at::empty(at_most_one(t.sizes()), t.options().device(c10::kMeta)); });
    call_meta_function(o, call);
    ran.describe(o, kernel);
    call.describe(o, meta);
  } catch (...) {  // says nothing
    return false;
  }
  if (kernel.outs.size() != meta.outs.size()) return true;
  for (size_t i = 0; i < meta.outs.size(); i++) {
    auto &k = kernel.outs[i], &m = meta.outs[i];
    if (k.kind != m.kind || k.layout.dtype != m.layout.dtype ||
        IntArrayRef(k.layout.sizes) != IntArrayRef(m.layout.sizes))
      return true;
  }
  return false;
}

bool names_dtypes(const c10::Error& e) {
  const std::string what = e.what_without_backtrace();
  for (auto p : {"not implemented for", "expected scalar type", "same dtype", "dtype", "not supported", "only supports",
                 "floating point", "out of bounds for", "deterministic implementation"})
    if (what.find(p) != std::string::npos) return true;
  return false;
}

// Where a size of 1 fits no call, as in `layer_norm`: whether the kernel refuses such stand-ins of full size. Asked
// once for each operator and its dtypes, as that costs what the call costs.
bool refuses(const OpInfo& o, const Stack& stack, const Flat& f) {
  thread_local std::unordered_set<uint64_t> taken;
  uint64_t key = o.id;
  for (auto& x : f.operands) key = (key ^ x.dims.dtype) * 0x9E3779B97F4A7C15ull + 1;
  if (taken.count(key)) return false;
  try {
    std::optional<uint8_t> eager;
    probe(o, stack, f, false, eager);
  } catch (const c10::Error& e) {
    if (names_dtypes(e)) return true;
  } catch (...) {  // says nothing of dtypes
  }
  taken.insert(key);
  return false;
}

bool kernel_disagrees(const OpInfo& o, const Stack& stack, const Flat& f) {
  try {
    std::optional<uint8_t> eager;
    StandIn ran = probe(o, stack, f, true, eager);
    return !eager && o.structured && differs_from_meta(o, stack, ran);
  } catch (const c10::Error& e) {
    if (o.checks_numbers) return true;
    if (names_dtypes(e)) return true;
    return refuses(o, stack, f);         // a size of 1 does not fit this call: the probe says nothing
  } catch (const std::runtime_error&) {  // a number that its elements cannot hold
    return true;
  } catch (...) {
    return false;
  }
}

// A written argument shares memory with another one: whether that is allowed only the kernel knows.
bool writes_shared_memory(const Flat& f) {
  for (size_t i = 0; i < f.operands.size(); i++)
    for (size_t j = 0; j < f.operands.size(); j++)
      if (i != j && (f.operands[i].flags & LTC_MUT) && f.operands[i].slot == f.operands[j].slot) return true;
  return false;
}

// The tensors whose layouts an elementwise call's new results have: the first argument's. Empty unless those of all
// arguments have the same sizes and lie one element after the other.
std::vector<Tensor> all_alike(const OpInfo& o, const Stack& stack) {
  std::vector<Tensor> like;
  for (size_t i = 0, base = stack.size() - o.args.size(); i < o.args.size(); i++) {
    const IValue& v = stack[base + i];
    std::vector<Tensor> these;
    if (v.isTensorList()) these = v.toTensorVector();
    else if (v.isTensor() && v.toTensor().defined()) these = {v.toTensor()};
    if (these.size() == 1 && !is_lazy(these[0]) && these[0].dim() == 0) continue;
    for (auto& t : these)
      if (!is_lazy(t) || t.strides() != IntArrayRef(c10::contiguous_strides(t.sizes()))) return {};
    if (like.empty()) like = std::move(these);
    else if (!these.empty() && !std::equal(like.begin(), like.end(), these.begin(), these.end(), [](auto& a, auto& b) {
               return a.sizes() == b.sizes();
             }))
      return {};
  }
  return like;
}

// Whether the kernel of an elementwise operator answered, run on one element.
bool ask_small(const OpInfo& o, const Stack& stack, const Flat& f, ShapeEntry& e) {
  if (!V.small_probes || !o.elementwise || !o.probe || o.has_view || writes_shared_memory(f)) return false;
  const auto like = all_alike(o, stack);
  if (like.empty()) return false;
  try {
    std::optional<uint8_t> eager;
    StandIn answer = probe(o, stack, f, true, eager);
    if (eager) return false;
    ShapeEntry small;
    answer.describe(o, small);
    if (!small.resizes.empty()) return false;
    size_t out = 0;
    for (size_t r = 0; r < o.rets.size(); r++)
      for (size_t i = 0; i < small.ret_count[r]; i++, out++) {
        auto& m = small.outs[out];
        if (m.kind == OutKind::Written) continue;
        if (m.kind != OutKind::New || i >= like.size()) return false;
        // A result that is not of the arguments' sizes, such as one without elements, says nothing of other sizes.
        if (c10::multiply_integers(m.layout.sizes) != 1) return false;
        m.layout = Layout(m.layout.dtype, like[i].sizes(), like[i].strides());
      }
    e.outs = std::move(small.outs);
    e.ret_count = std::move(small.ret_count);
    return true;
  } catch (...) {  // the kernel at full size says what is wrong
    return false;
  }
}

// Whether a kernel refused stand-ins for the memory they share. It would refuse the call's tensors too, whatever their
// values, but not copies of them, which share none.
bool names_shared_memory(const std::string& what) { return what.find("single memory location") != std::string::npos; }

// Whether the kernel, run on stand-ins, answered; a call that its kernel refuses goes to the host, which has the real
// values: it gives the real error, or succeeds where zeros do not.
bool ask_kernel(const OpInfo& o, const Stack& stack, const Flat& f, ShapeEntry& e) {
  if (!o.probe) return false;
  count_probe();
  try {
    StandIn answer = probe(o, stack, f, false, e.eager);
    if (!e.eager) answer.describe(o, e);
    return true;
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    if (what.find(kTooLarge) != std::string::npos) return false;
    if (names_shared_memory(what)) throw;
  } catch (...) {
  }
  e.eager = LTC_WHY_NO_SHAPE;
  return true;
}

bool reads_nothing(const Flat& f) {  // whether some operand that the call reads has no elements
  for (size_t i = 0; i < f.operands.size(); i++)
    if (f.tensors[i] && !(f.operands[i].flags & LTC_MUT) && f.tensors[i]->numel() == 0) return true;
  return false;
}

// Whether the CPU may give a result other strides than its meta function: the CPU casts such an operand first and reads
// the strides of the cast copy, which is dense, while the meta function reads the strides of the operand itself.
bool lies_otherwise_when_cast(const Flat& f, const ShapeEntry& e) {
  for (size_t i = 0; i < f.operands.size(); i++) {
    const Tensor* t = f.tensors[i];
    if (!t || (f.operands[i].flags & LTC_MUT) || t->is_non_overlapping_and_dense()) continue;
    auto is_cast = [&](const OutMeta& m) {
      return m.kind == OutKind::New && (m.layout.dtype != t->scalar_type() || m.layout.dtype == at::kBool);
    };
    if (std::any_of(e.outs.begin(), e.outs.end(), is_cast)) return true;
  }
  return false;
}

void ask_libtorch(const OpInfo& o, const Stack& stack, const Flat& f, ShapeEntry& e) {
  // Meta kernels that are not the operator's own meta function check less than the kernel and guess strides.
  if (!o.structured && !o.meta_is_kernel && (ask_small(o, stack, f, e) || (!o.has_view && ask_kernel(o, stack, f, e))))
    return;
  StorageMap storages;
  StandIn call(o, stack, c10::kMeta,
               [&](const Tensor& t) { return is_lazy(t) ? meta_of(t, storages) : t.to(c10::kMeta); });
  try {
    if (o.structured) call_meta_function(o, call);
    else {
      BelowAutograd guard;
      o.handle->callBoxed(&call.stack);
    }
  } catch (const c10::NotImplementedError&) {
    if (o.has_view || !ask_kernel(o, stack, f, e)) e.eager = LTC_WHY_NO_SHAPE;
    return;
  } catch (...) {
    // Meta functions refuse some calls that kernels take. A structured one is mostly the kernel's own; else the real
    // kernel gives its own error, or succeeds. No view can come from the host.
    if (o.has_view) throw;
    if (o.structured) {
      if (ask_kernel(o, stack, f, e) && !e.eager) return;
      throw;
    }
    e.eager = LTC_WHY_NO_SHAPE;
    return;
  }
  call.describe(o, e);
  if (!o.structured) return;
  if (lies_otherwise_when_cast(f, e)) ask_kernel(o, stack, f, e);
  else if ((o.kernel_checks_more || writes_shared_memory(f)) && !ask_small(o, stack, f, e)) ask_kernel(o, stack, f, e);
}

// Gives the entry its signature: results are written arguments as they are after the call, new tensors, generators.
void sign(const OpInfo& o, const Flat& f, ShapeEntry& e) {
  c10::SmallVector<LtcDims, 8> results;
  for (uint32_t i = 0; i < f.operands.size(); i++) {
    auto& x = f.operands[i];
    if (!(x.flags & LTC_MUT) || x.generator) continue;
    auto resized = std::find_if(e.resizes.begin(), e.resizes.end(), [i](const Resize& r) { return r.operand == i; });
    results.push_back(resized == e.resizes.end() ? x.dims : dims_of(resized->layout));
  }
  for (auto& m : e.outs)
    if (m.kind == OutKind::New) results.push_back(dims_of(m.layout));
  for (auto& x : f.operands)
    if (x.generator) results.push_back(x.dims);
  e.signature = V.signature_new(o.rust, f.words.data(), f.words.size(), results.data(), results.size());
}

}  // namespace

// Kernel of the mode under which structured kernels run for their meta function only: calls of out variants return
// their out arguments untouched, everything else goes on below the mode.
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

const ShapeEntry* known(const OpInfo& o, const Flat& f) { return cache().find(o.id, f); }

namespace {
void ask(const OpInfo& o, const Stack& stack, const Flat& f, ShapeEntry& e) {
  // Rules and meta functions are least reliable for operands without elements; running the kernel on them is cheap.
  const bool empty = reads_nothing(f) && !o.has_view && ask_kernel(o, stack, f, e);
  bool answered = false;
  if (!empty) ask_rule(o, f, e, answered);
  if (!empty && !answered) ask_libtorch(o, stack, f, e);
  // If a shape rule or the operator's own meta function answered, a tiny probe tells whether the kernel agrees. If some
  // other meta function answered, there is no probe: such kernels may rely on sizes that a tiny probe changes.
  const bool unasked = !empty && (answered || o.structured || o.checks_numbers);
  if (!e.eager && !o.has_view && o.probe && unasked && kernel_disagrees(o, stack, f)) e.eager = LTC_WHY_NO_SHAPE;
}
}  // namespace

const ShapeEntry& infer(const OpInfo& o, const Stack& stack, const Flat& f) {
  if (auto* e = known(o, f)) return *e;
  auto e = std::make_unique<ShapeEntry>();
  try {
    ask(o, stack, f, *e);
  } catch (...) {
    try {  // kernels that resize their outputs before they fail leave them resized
      if (o.outputs) probe(o, stack, f, false, e->eager, true);
    } catch (...) {
    }
    throw;
  }
  e->hash = f.hash(o.id);
  e->key.reserve(1 + f.words.size() + f.shapes.size());
  e->key.push_back(o.id);
  e->key.insert(e->key.end(), f.words.begin(), f.words.end());
  e->key.insert(e->key.end(), f.shapes.begin(), f.shapes.end());
  e->only_views = !e->outs.empty() && !e->eager;
  for (auto& m : e->outs) {
    e->fresh += m.kind == OutKind::New;
    e->only_views &= m.kind == OutKind::View;
  }
  e->plain =
      !e->eager && e->resizes.empty() && e->outs.size() == 1 && (e->fresh == 1 || e->outs[0].kind == OutKind::Written);
  // Such calls may be changed before they are recorded.
  if (e->plain && o.compares) e->plain = c10::get_default_dtype_as_scalartype() == at::kFloat;
  if (!e->eager && !e->only_views) sign(o, f, *e);
  return cache().put(std::move(e));
}
}  // namespace ltc

extern "C" void ltc_calls(LtcCalls* out) { *out = ltc::cache().calls; }

extern "C" void ltc_infer_push(void* results, const LtcDims* d) {
  auto& out = static_cast<std::vector<ltc::OutMeta>*>(results)->emplace_back();
  if (!d) {
    out.kind = ltc::OutKind::Undefined;
    return;
  }
  out.kind = ltc::OutKind::New;
  out.layout = ltc::Layout((ltc::ScalarType)d->dtype, {d->sizes, d->rank}, {d->strides, d->rank});
}
