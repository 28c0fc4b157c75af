// Call plans: one graph node with its constant arguments boxed in advance, ready to run on tensors of a place.
#include <ATen/ATen.h>

#include <algorithm>

#include "shim.h"

using namespace ltc;

namespace {
enum class Pseudo : uint8_t { No, ReadView, WriteView, Empty, Seed };

struct Fill {  // an argument that changes from run to run
  uint8_t tag, flags, dtype;
  bool optional_list;
  uint32_t arg, operand, number;
  std::vector<bool> present;    // LTC_TENSORS
  std::vector<uint8_t> dtypes;  // LTC_NUMBERS
};
struct Expected {
  ScalarType dtype;
  Dims sizes, strides;
};

struct Reader {  // the blob, as ltc-ir/src/args.rs describes it
  const uint64_t* p;
  const uint64_t* end;
  uint32_t operands = 0, numbers = 0;
  const uint64_t* take(size_t n) {
    TORCH_CHECK((size_t)(end - p) >= n, "malformed argument blob");
    auto* q = p;
    p += n;
    return q;
  }
};
uint32_t scalar_words(uint8_t dtype) { return c10::isComplexType((ScalarType)dtype) ? 2 : 1; }
double to_double(uint64_t w) {
  double d;
  memcpy(&d, &w, 8);
  return d;
}
c10::Scalar scalar_of(uint8_t dtype, const uint64_t* w) {
  auto dt = (ScalarType)dtype;
  if (c10::isComplexType(dt)) return c10::complex<double>(to_double(w[0]), to_double(w[1]));
  if (c10::isFloatingType(dt)) return to_double(w[0]);
  if (dt == at::kBool) return (bool)w[0];
  return (int64_t)w[0];
}
Tensor scalar_tensor_of(uint8_t dtype, bool wrapped, const uint64_t* w) {
  auto dt = (ScalarType)dtype;
  Tensor t = at::detail::empty_cpu({}, dt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  switch (dt) {
    case at::kDouble: *(double*)t.mutable_data_ptr() = to_double(w[0]); break;
    case at::kLong: *(int64_t*)t.mutable_data_ptr() = (int64_t)w[0]; break;
    case at::kBool: *(bool*)t.mutable_data_ptr() = w[0] != 0; break;
    default: t.fill_(scalar_of(dtype, w));
  }
  if (wrapped) t.unsafeGetTensorImpl()->set_wrapped_number(true);
  return t;
}
// The overload that names the generator an operator's schema leaves out (`rand.generator` for `rand`), and where.
std::optional<OperatorHandle> with_generator(const c10::FunctionSchema& schema, size_t& at) {
  auto overload = schema.overload_name().empty() ? "generator" : schema.overload_name() + "_generator";
  auto found = c10::Dispatcher::singleton().findSchema({schema.name(), overload});
  if (!found || found->schema().arguments().size() != schema.arguments().size() + 1) return std::nullopt;
  auto index = found->schema().argumentIndexWithName("generator");
  if (!index) return std::nullopt;
  at = *index;
  return found;
}
bool sole_holder(const Tensor& t) { return t.use_count() == 1 && t.storage().use_count() == 1; }
Tensor copy_of(const Tensor& t) { return at::empty_strided(t.sizes(), t.strides(), t.options()).copy_(t); }
// A view of a value, which may itself be a view of its storage.
Tensor strided(const Tensor& b, ScalarType dt, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  offset += b.storage_offset() * (int64_t)b.itemsize() / (int64_t)c10::elementSize(dt);
  if (b.scalar_type() == dt) return b.as_strided(sizes, strides, offset);
  return at::empty({0}, b.options().dtype(dt)).set_(b.storage(), offset, sizes, strides);
}
}  // namespace

struct LtcPlan {
  const OpInfo* o = nullptr;
  std::string name;
  c10::Device place{c10::kCPU};
  Pseudo pseudo = Pseudo::No;
  Stack constants;
  std::vector<Fill> fills;
  std::vector<Expected> results;
  int64_t offset = 0;  // views
  Dims sizes, strides;
  bool implied_generator = false;
  uint32_t implied_operand = 0;
  std::optional<OperatorHandle> drawing;  // takes the implied generator, as argument `drawing_at`
  size_t drawing_at = 0;

  void parse(Reader r);
  void parse_view(Reader r);
  void call(void* const* operands, const uint8_t* reusable, const uint64_t* numbers, c10::SmallVector<Tensor, 4>& made,
            c10::SmallVector<at::Generator, 1>& generators) const;
  void run(void* const* operands, const uint8_t* reusable, const uint64_t* numbers, void** outs) const;
  void run_pseudo(void* const* operands, const uint8_t* reusable, const uint64_t* numbers, void** outs) const;
  Tensor new_of(const Expected& e) const;
  Tensor fit(Tensor t, size_t i) const;
  void in_recorded_dtype(Stack& stack) const;
  void each_in_recorded_dtype(Stack& stack) const;
  void say_dtype();
};

namespace {
// `native_dropout` is the one operator of libtorch that draws but takes no generator. This computes what its CPU kernel
// does, drawing from the given generator.
void dropout(const OpInfo& o, Stack& stack, at::Generator generator) {
  const Tensor input = stack[stack.size() - 3].toTensor();
  const double keep = 1 - stack[stack.size() - 2].toDouble();
  const IValue& train = stack.back();
  // In these cases the operator draws nothing.
  if (input.numel() == 0 || (!train.isNone() && !train.toBool())) return o.handle->callBoxed(&stack);
  Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  mask.bernoulli_(keep, std::move(generator));
  Tensor kept = input.mul(mask).mul_(keep == 0 ? 0.0 : 1 / keep);
  stack.clear();
  stack.emplace_back(std::move(kept));
  stack.emplace_back(std::move(mask));
}
}  // namespace

std::mutex& ltc::default_generator_mutex() {
  static std::mutex mutex;
  return mutex;
}

void LtcPlan::parse_view(Reader r) {
  auto int_list = [&](Dims& d) {
    uint64_t h = *r.take(1);
    TORCH_CHECK((uint8_t)h == LTC_INTS, "malformed view blob");
    auto* p = r.take(h >> 32);
    d.assign((const int64_t*)p, (const int64_t*)p + (h >> 32));
  };
  r.take(pseudo == Pseudo::WriteView ? 2 : 1);
  if (pseudo == Pseudo::WriteView) {
    int_list(sizes);
    int_list(strides);
  }
  TORCH_CHECK((uint8_t)*r.take(1) == LTC_INT, "malformed view blob");
  offset = (int64_t)*r.take(1);
}

void LtcPlan::parse(Reader r) {
  const auto& schema = o->handle->schema();
  for (uint32_t arg = 0; r.p < r.end; arg++) {
    uint64_t h = *r.take(1);
    uint8_t tag = h, flags = h >> 8, dtype = h >> 16;
    uint32_t len = h >> 32;
    if (arg >= o->args.size()) {  // a generator beyond the schema
      TORCH_CHECK(tag == LTC_GENERATOR && arg == o->args.size(), "too many arguments for ", name);
      implied_generator = true;
      drawing = with_generator(schema, drawing_at);
      implied_operand = r.operands++;
      continue;
    }
    Fill f{tag, flags, dtype, o->args[arg].kind == Kind::OptTensorList, arg, r.operands, r.numbers, {}, {}};
    IValue constant;
    bool fill = false;
    switch (tag) {
      case LTC_NONE:
        if (schema.arguments()[arg].type()->kind() == c10::TypeKind::TensorType) constant = Tensor();
        break;
      case LTC_TENSOR:
        fill = true;
        r.operands += !(flags & LTC_FRESH);
        break;
      case LTC_HOST_SCALAR:
      case LTC_NUMBER:
        fill = true;
        r.numbers += scalar_words(dtype);
        break;
      case LTC_FLOAT:
        fill = true;
        r.numbers++;
        break;
      case LTC_INT: constant = (int64_t)*r.take(1); break;
      case LTC_BOOL: constant = len != 0; break;
      case LTC_STR: constant = std::string((const char*)r.take((len + 7) / 8), len); break;
      case LTC_INTS: {
        auto* p = (const int64_t*)r.take(len);
        constant = std::vector<int64_t>(p, p + len);
        break;
      }
      case LTC_FLOATS: {
        auto* p = r.take(len);
        std::vector<double> v(len);
        for (uint32_t i = 0; i < len; i++) v[i] = to_double(p[i]);
        constant = v;
        break;
      }
      case LTC_BOOLS: {
        auto* p = r.take(len);
        c10::List<bool> l;
        for (uint32_t i = 0; i < len; i++) l.push_back(p[i] != 0);
        constant = l;
        break;
      }
      case LTC_TENSORS: {
        fill = true;
        auto* mask = r.take((len + 63) / 64);
        for (uint32_t i = 0; i < len; i++) {
          f.present.push_back(mask[i / 64] >> (i % 64) & 1);
          r.operands += f.present.back();
        }
        break;
      }
      case LTC_NUMBERS: {
        fill = true;
        auto* p = r.take(len);
        for (uint32_t i = 0; i < len; i++) {
          f.dtypes.push_back((uint8_t)p[i]);
          r.numbers += scalar_words(f.dtypes.back());
        }
        break;
      }
      case LTC_GENERATOR:
        fill = true;
        r.operands++;
        break;
      case LTC_DEVICE: constant = place; break;
      default: TORCH_CHECK(false, "unknown argument tag ", (int)tag, " for ", name);
    }
    constants.push_back(std::move(constant));
    if (fill) fills.push_back(std::move(f));
  }
  TORCH_CHECK(constants.size() == o->args.size(), name, " takes ", o->args.size(), " arguments, got ",
              constants.size());
}

Tensor LtcPlan::new_of(const Expected& e) const {
  return at::empty_strided(e.sizes, e.strides, at::TensorOptions().dtype(e.dtype).device(place));
}

// A result with exactly the layout the graph promised.
Tensor LtcPlan::fit(Tensor t, size_t i) const {
  const Expected& e = results[i];
  TORCH_CHECK(t.scalar_type() == e.dtype && t.sizes() == IntArrayRef(e.sizes), name, ": result ", i, " is ",
              t.scalar_type(), t.sizes(), " but was recorded as ", e.dtype, IntArrayRef(e.sizes));
  if (t.strides() != IntArrayRef(e.strides) || t.is_conj() || t.is_neg()) {
    Tensor r = new_of(e);
    r.copy_(t);
    return r;
  }
  return t;
}

void LtcPlan::run_pseudo(void* const* operands, const uint8_t* reusable, const uint64_t* numbers, void** outs) const {
  auto operand = [&](int i) -> Tensor& { return *static_cast<Tensor*>(operands[i]); };
  switch (pseudo) {
    case Pseudo::Empty: outs[0] = new Tensor(new_of(results[0])); return;
    case Pseudo::ReadView:
      outs[0] = new Tensor(strided(operand(0), results[0].dtype, results[0].sizes, results[0].strides, offset));
      return;
    case Pseudo::WriteView: {
      Tensor base = reusable[0] && sole_holder(operand(0)) ? operand(0) : copy_of(operand(0));
      strided(base, operand(1).scalar_type(), sizes, strides, offset).copy_(operand(1));
      outs[0] = new Tensor(std::move(base));
      return;
    }
    default: outs[0] = new at::Generator(generator_at(place, numbers[0]));
  }
}

// A factory's result has the dtype it was recorded with, whatever another thread sets as default while it runs.
void LtcPlan::say_dtype() {
  if (results.empty() || (!c10::isFloatingType(results[0].dtype) && !c10::isComplexType(results[0].dtype))) return;
  const auto& args = o->handle->schema().arguments();
  for (auto& arg : o->args)
    if (arg.kind == Kind::Tensor || arg.kind == Kind::TensorList || arg.kind == Kind::OptTensorList) return;
  for (size_t i = 0; i < args.size(); i++)
    if (args[i].name() == "dtype" && constants[i].isNone()) constants[i] = (int64_t)results[0].dtype;
}

// As `in_recorded_dtype`, for operators over lists of tensors.
void LtcPlan::each_in_recorded_dtype(Stack& stack) const {
  const auto now = c10::get_default_dtype_as_scalartype();
  auto other = [&](const Expected& e) { return c10::isFloatingType(e.dtype) && e.dtype != now; };
  if (C10_LIKELY(std::none_of(results.begin(), results.end(), other))) return;
  for (size_t i = 0; i < o->args.size(); i++) {
    if (!stack[i].isTensorList() || o->args[i].write) continue;
    auto list = stack[i].toTensorVector();
    for (size_t j = 0; j < list.size() && j < results.size(); j++)
      if (other(results[j]) && c10::isIntegralType(list[j].scalar_type(), true)) list[j] = list[j].to(results[j].dtype);
    stack[i] = list;
  }
}

// If no argument decides in which floating dtype to compute, libtorch takes its default dtype, which may have changed
// since the call was recorded. The recorded results have the default of that time, so an argument is converted to
// decide for it.
void LtcPlan::in_recorded_dtype(Stack& stack) const {
  if (o->over_lists) return each_in_recorded_dtype(stack);
  if (results[0].dtype == at::kBool && !o->compares) return;
  // Comparisons in another default dtype than libtorch's own are recorded so that it is of no account (record.cpp).
  const auto value = results[0].dtype == at::kBool ? at::kFloat : c10::toRealValueType(results[0].dtype);
  if (C10_LIKELY(!c10::isFloatingType(value) || value == c10::get_default_dtype_as_scalartype())) return;
  const auto& args = o->handle->schema().arguments();
  auto is_float = [](const Tensor& t) {
    return c10::isFloatingType(t.scalar_type()) || c10::isComplexType(t.scalar_type());
  };
  bool wrapped = false, number = results[0].dtype != at::kBool;
  for (size_t i = 0; i < o->args.size(); i++) {
    const IValue& v = stack[i];
    if (v.isTensorList() || v.isOptionalTensorList()) return;
    if (v.isTensor() && v.toTensor().defined() && is_float(v.toTensor())) {
      if (!v.toTensor().unsafeGetTensorImpl()->is_wrapped_number()) return;
      wrapped = number = true;
    }
    number |= v.isDouble();
    if (args[i].name() == "dtype") {
      if (v.isNone()) stack[i] = (int64_t)results[0].dtype;
      return;
    }
  }
  if (!number) return;
  for (size_t i = 0; i < o->args.size(); i++) {
    if (!stack[i].isTensor() || !stack[i].toTensor().defined() || o->args[i].write || o->args[i].selects) continue;
    Tensor t = stack[i].toTensor();
    if (is_float(t) == wrapped)
      stack[i] = t.to(c10::isComplexType(t.scalar_type()) ? results[0].dtype : value, false, /*copy=*/true);
  }
}

// Written arguments, new results and generators as the kernel leaves them.
void LtcPlan::call(void* const* operands, const uint8_t* reusable, const uint64_t* numbers,
                   c10::SmallVector<Tensor, 4>& made, c10::SmallVector<at::Generator, 1>& generators) const {
  auto writable = [&](uint32_t i) {
    Tensor& t = *static_cast<Tensor*>(operands[i]);
    return reusable[i] && sole_holder(t) ? t : copy_of(t);
  };
  Stack stack = constants;
  auto next_generator = [&](uint32_t i) {
    auto& g = *static_cast<at::Generator*>(operands[i]);
    bool take = reusable[i] && c10::raw::intrusive_ptr::use_count(g.unsafeGetGeneratorImpl()) == 1;
    generators.push_back(take ? g : g.clone());
    return generators.back();
  };
  for (const Fill& f : fills) {
    IValue& v = stack[f.arg];
    switch (f.tag) {
      case LTC_TENSOR:
        if (f.flags & LTC_MUT) {
          made.push_back(f.flags & LTC_FRESH ? new_of(results[made.size()]) : writable(f.operand));
          v = made.back();
        } else v = *static_cast<Tensor*>(operands[f.operand]);
        break;
      case LTC_HOST_SCALAR: v = scalar_tensor_of(f.dtype, f.flags & LTC_WRAPPED, numbers + f.number); break;
      case LTC_NUMBER: v = scalar_of(f.dtype, numbers + f.number); break;
      case LTC_FLOAT: v = to_double(numbers[f.number]); break;
      case LTC_NUMBERS: {
        c10::List<at::Scalar> l;
        auto* w = numbers + f.number;
        for (uint8_t d : f.dtypes) {
          l.push_back(scalar_of(d, w));
          w += scalar_words(d);
        }
        v = l;
        break;
      }
      case LTC_TENSORS: {
        uint32_t next = f.operand;
        auto each = [&](bool present) -> Tensor {
          if (!present) return Tensor();
          uint32_t i = next++;
          if (!(f.flags & LTC_MUT)) return *static_cast<Tensor*>(operands[i]);
          made.push_back(writable(i));
          return made.back();
        };
        if (f.optional_list) {
          c10::List<std::optional<Tensor>> l;
          for (bool p : f.present) l.push_back(p ? std::optional<Tensor>(each(p)) : std::nullopt);
          v = l;
        } else {
          c10::List<Tensor> l;
          for (bool p : f.present) l.push_back(each(p));
          v = l;
        }
        break;
      }
      default: v = next_generator(f.operand);
    }
  }
  if (!results.empty()) in_recorded_dtype(stack);
  if (drawing) {
    stack.insert(stack.begin() + drawing_at, IValue(next_generator(implied_operand)));
    drawing->callBoxed(&stack);
  } else if (implied_generator && place.is_cpu() && o->name == "aten::native_dropout") {
    dropout(*o, stack, next_generator(implied_operand));
  } else if (implied_generator) {
    // The kernel, of an extension or of CUDA's, draws from the process's default generator. Eager draws of other
    // threads meanwhile are not kept apart.
    std::lock_guard<std::mutex> lock(default_generator_mutex());
    at::Generator ours = next_generator(implied_operand), theirs = default_generator_at(place);
    auto saved = theirs.get_state();
    theirs.set_state(ours.get_state());
    o->handle->callBoxed(&stack);
    ours.set_state(theirs.get_state());
    theirs.set_state(saved);
  } else o->handle->callBoxed(&stack);
  for (size_t i = 0; i < o->rets.size(); i++) {
    if (o->rets[i].write_arg >= 0) continue;
    const IValue& v = stack[stack.size() - o->rets.size() + i];
    if (o->rets[i].kind == Kind::TensorList) {
      for (auto& t : v.toTensorVector())
        if (t.defined()) made.push_back(t);
    } else if (v.isTensor() && v.toTensor().defined()) made.push_back(v.toTensor());
  }
}

void LtcPlan::run(void* const* operands, const uint8_t* reusable, const uint64_t* numbers, void** outs) const {
  BelowAutograd guard;
  OnPlace on(place);
  c10::WarningUtils::WarningHandlerGuard warnings(&warning_keeper());
  if (pseudo != Pseudo::No) return run_pseudo(operands, reusable, numbers, outs);
  c10::SmallVector<Tensor, 4> made;
  c10::SmallVector<at::Generator, 1> generators;
  try {
    call(operands, reusable, numbers, made, generators);
  } catch (const c10::AcceleratorError&) {
    // It may be lost, and could not take the memory back.
    if (!place.is_cpu()) new c10::SmallVector<Tensor, 4>(std::move(made));
    throw;
  }
  TORCH_CHECK(made.size() + generators.size() == results.size(), name, " gave ", made.size(),
              " results, recorded were ", results.size() - generators.size());
  for (size_t i = 0; i < made.size(); i++) made[i] = fit(std::move(made[i]), i);
  for (size_t i = 0; i < made.size(); i++) outs[i] = new Tensor(std::move(made[i]));
  for (size_t i = 0; i < generators.size(); i++) outs[made.size() + i] = new at::Generator(std::move(generators[i]));
}

extern "C" {
int ltc_plan_new(const char* op, size_t len, const uint64_t* words, uint32_t nwords, const LtcDims* results,
                 uint32_t nresults, int32_t place, LtcPlan** out, LtcError* err) {
  return guarded(err, [&] {
    auto plan = std::make_unique<LtcPlan>();
    plan->name.assign(op, len);
    plan->place = place_of(place);
    for (uint32_t i = 0; i < nresults; i++) {
      const LtcDims& d = results[i];
      plan->results.push_back(
          {(ScalarType)d.dtype, Dims(d.sizes, d.sizes + d.rank), Dims(d.strides, d.strides + d.rank)});
    }
    Reader r{words, words + nwords};
    if (plan->name == "ltc::read_view") plan->pseudo = Pseudo::ReadView;
    else if (plan->name == "ltc::write_view") plan->pseudo = Pseudo::WriteView;
    else if (plan->name == "ltc::empty") plan->pseudo = Pseudo::Empty;
    else if (plan->name == "ltc::seed") plan->pseudo = Pseudo::Seed;
    else {
      plan->o = find_op(plan->name);
      TORCH_CHECK_NOT_IMPLEMENTED(plan->o, "this libtorch has no operator ", plan->name);
      plan->parse(r);
      plan->say_dtype();
    }
    if (plan->pseudo == Pseudo::ReadView || plan->pseudo == Pseudo::WriteView) plan->parse_view(r);
    *out = plan.release();
  });
}
void ltc_plan_free(LtcPlan* plan) { delete plan; }
int ltc_plan_run(const LtcPlan* plan, void* const* operands, const uint8_t* reusable, const uint64_t* numbers,
                 void** outs, LtcError* err) {
  return guarded(err, [&] { plan->run(operands, reusable, numbers, outs); });
}
int ltc_probe(const char* op, size_t len, const uint64_t* words, uint32_t nwords, void* const* operands,
              const uint8_t* reusable, const uint64_t* numbers, void** outs, uint32_t room, uint32_t* count,
              LtcError* err) {
  return guarded(err, [&] {
    LtcPlan plan;
    plan.name.assign(op, len);
    plan.o = find_op(plan.name);
    TORCH_CHECK_NOT_IMPLEMENTED(plan.o, "this libtorch has no operator ", plan.name);
    plan.parse({words, words + nwords});
    c10::SmallVector<Tensor, 4> made;
    c10::SmallVector<at::Generator, 1> generators;
    BelowAutograd guard;
    plan.call(operands, reusable, numbers, made, generators);
    TORCH_CHECK(made.size() <= room, plan.name, " gave ", made.size(), " results, more than ", room);
    for (size_t i = 0; i < made.size(); i++) outs[i] = new Tensor(std::move(made[i]));
    *count = (uint32_t)made.size();
  });
}
}
