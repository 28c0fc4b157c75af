// What the recording kernel needs to know of an operator, read off its schema once.
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "shim.h"

namespace ltc {
namespace {
std::mutex g_mutex;
std::deque<OpInfo> g_ops;
std::unordered_map<std::string, OpInfo*> g_by_name;

const c10::AliasInfo* innermost(const c10::AliasInfo* a) {
  while (a && a->beforeSets().empty() && !a->containedTypes().empty()) a = &a->containedTypes()[0];
  return a;
}
bool is_kind(const c10::TypePtr& t, c10::TypeKind k) {
  if (t->kind() == k) return true;
  auto o = t->cast<c10::OptionalType>();
  return o && o->getElementType()->kind() == k;
}
bool is_list_of(const c10::TypePtr& t0, c10::TypeKind k) {
  c10::TypePtr t = t0;
  if (auto o = t->cast<c10::OptionalType>()) t = o->getElementType();
  auto l = t->cast<c10::ListType>();
  return l && l->getElementType()->kind() == k;
}
bool starts_with(const std::string& s, const char* p) { return s.rfind(p, 0) == 0; }

// Operators whose tag or kernels mislead the general rules; each with its reason.
void correct(OpInfo& o, const std::string& base) {
  // Tagged dynamic for mask indices; static for integer ones. The kernel looks at the index dtypes.
  if (base == "aten::index" || base == "aten::_unsafe_index") {
    o.eager.reset();
    o.mask_index = true;
  }
  // Tagged dynamic for the lengths, which this overload takes as numbers.
  if (o.name == "aten::_ctc_loss") o.eager.reset();
  // Tagged dynamic for some drivers: its stand-ins tell.
  if (base == "aten::linalg_lstsq") o.eager.reset();
  // Data-dependent without the tag: a sparse tensor has as many values as are not zero, or lies where an index says.
  for (auto p :
       {"_unique", "_to_sparse", "_to_sparse_csr", "_to_sparse_csc", "_to_sparse_bsr", "_to_sparse_bsc", "_spdiags"})
    if (base == std::string("aten::") + p) o.eager = LTC_WHY_DATA;
  // Updates the running statistics in training, which its schema does not say.
  if (o.name == "aten::native_batch_norm")
    for (int stat : {3, 4}) {
      o.args[stat].write = true;
      o.args[stat].write_if = 5;
    }
  // Whether the added matrix expands is only checked by the kernel.
  for (auto p : {"aten::addmm", "aten::baddbmm", "aten::addmv", "aten::addbmm", "aten::_addmm_activation"})
    o.kernel_checks_more |= base == p || base == std::string(p) + "_";
  // CPU kernels that are not those their meta functions belong to: other errors, or a result that stays channels-last.
  for (auto p : {"narrow_copy", "pixel_shuffle", "pixel_unshuffle", "replication_pad2d", "replication_pad3d",
                 "reflection_pad3d"})
    if (starts_with(base, "aten::") && base.compare(6, std::string::npos, p) == 0) o.structured = false;
  // Written over `empty`, for any device, where the layout is decided; no number or dtype is refused.
  for (auto p : {"_to_copy", "clone", "empty_like", "ones", "zeros"})
    o.meta_is_kernel |= o.composite && o.name == std::string("aten::") + p;
  // Ours, whose Meta kernels say where their results lie.
  o.meta_is_kernel |= starts_with(base, "ltc_cuda::attention");
  // Tagged random for the dropout that its kernel refuses. A draw that is none would still borrow the process's
  // generator.
  if (o.name == "aten::_scaled_dot_product_flash_attention_for_cpu") o.random = o.implied_generator = false;
  o.over_lists = starts_with(base, "aten::_foreach_") && !o.mutates;
  // Other libraries' kernels may have effects.
  o.probe &= starts_with(base, "aten::");
  o.stand_in = stand_in_rule(base);
  // Ranges of a distribution's parameters are checked by the kernel.
  o.checks_numbers = o.random && o.mutates && o.rets.size() == 1 &&
      std::none_of(o.args.begin(), o.args.end(), [](const ArgInfo& a) { return a.out; });
  // Numbers decide the shape.
  o.numbers_shape = o.checks_numbers || base == "aten::arange" || base == "aten::range" || base == "aten::linspace" ||
      base == "aten::logspace";
}

OpInfo& make(const OperatorHandle& h) {
  OpInfo& o = g_ops.emplace_back();
  o.id = g_ops.size();
  o.handle = h;
  const auto& s = h.schema();
  std::string base = s.operator_name().name;
  o.name = base + (s.overload_name().empty() ? "" : "." + s.overload_name());
  bool generator_arg = false;
  std::vector<const c10::AliasInfo*> alias;
  for (auto& a : s.arguments()) {
    ArgInfo i;
    i.kind = kind_of(a.type());
    i.number = is_kind(a.type(), c10::TypeKind::NumberType);
    i.floating = is_kind(a.type(), c10::TypeKind::FloatType);
    o.kernel_checks_more |= is_kind(a.type(), c10::TypeKind::StringType);  // modes
    i.number_list = is_list_of(a.type(), c10::TypeKind::NumberType);
    const bool tensors = i.kind == Kind::Tensor || i.kind == Kind::TensorList || i.kind == Kind::Generator;
    o.plain_args &= tensors || i.number || i.floating || i.number_list ||
        is_kind(a.type(), c10::TypeKind::StringType) || is_kind(a.type(), c10::TypeKind::BoolType);
    i.out = a.is_out() || (a.kwarg_only() && a.alias_info() && innermost(a.alias_info())->isWrite());
    for (auto name : {"condition", "mask", "index", "indices"}) i.selects |= a.name() == name;
    auto* ai = innermost(a.alias_info());
    i.write = ai && ai->isWrite() && i.kind != Kind::Other;
    o.mutates |= i.write;
    o.outputs |= i.out;
    generator_arg |= i.kind == Kind::Generator;
    if (i.kind == Kind::Storage) o.eager = LTC_WHY_ARGUMENT;
    alias.push_back(ai);
    o.args.push_back(i);
  }
  for (auto& r : s.returns()) {
    RetInfo i;
    i.kind = kind_of(r.type());
    if (i.kind != Kind::Tensor && i.kind != Kind::TensorList) o.eager = LTC_WHY_DATA;
    if (auto* ai = innermost(r.alias_info()))
      for (size_t k = 0; k < alias.size(); k++)
        if (alias[k] && alias[k]->beforeSets() == ai->beforeSets()) {
          if (ai->isWrite()) i.write_arg = (int)k;
          else {
            i.view_arg = (int)k;
            o.has_view = true;
          }
          break;
        }
    o.rets.push_back(i);
  }
  // Generated for the functional and in-place variants of structured operators, written by hand for a few out variants.
  o.structured = h.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) &&
      std::none_of(o.args.begin(), o.args.end(), [](const ArgInfo& a) { return a.out; });
  o.composite = h.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd);
  o.counts_changes = o.mutates && o.composite && !h.hasKernelForDispatchKey(DispatchKey::ADInplaceOrView);
  o.random = h.hasTag(at::Tag::nondeterministic_seeded);
  o.implied_generator = o.random && !generator_arg;
  if (h.hasTag(at::Tag::dynamic_output_shape) || h.hasTag(at::Tag::data_dependent_output)) o.eager = LTC_WHY_DATA;
  correct(o, base);
  g_by_name.emplace(o.name, &o);
  return o;
}

// Tells the recorder of the operator; plans work without a recorder.
void bind(OpInfo& o) {
  if (o.rust || !V.define_op) return;
  uint32_t props = (o.random ? LTC_RANDOM : 0) | (o.mutates ? LTC_MUTATES : 0) | (o.eager ? LTC_DATA_DEPENDENT : 0);
  o.rust = V.define_op(V.ctx, o.name.data(), o.name.size(), &props);
  o.overwrites = props & LTC_OVERWRITES;
  o.elementwise = o.plain_args && (props & LTC_ELEMENTWISE || o.checks_numbers);
  o.compares = props & LTC_COMPARES || o.name.rfind("aten::isin.", 0) == 0;
  o.forced = V.forced_fallback(V.ctx, o.name.data(), o.name.size());
}
}  // namespace

Kind kind_of(const c10::TypePtr& given) {
  c10::TypePtr ty = given;
  if (auto o = ty->cast<c10::OptionalType>()) ty = o->getElementType();
  switch (ty->kind()) {
    case c10::TypeKind::TensorType: return Kind::Tensor;
    case c10::TypeKind::DeviceObjType: return Kind::Device;
    case c10::TypeKind::GeneratorType: return Kind::Generator;
    case c10::TypeKind::StorageType: return Kind::Storage;
    case c10::TypeKind::ListType: {
      auto e = ty->expectRef<c10::ListType>().getElementType();
      if (e->kind() == c10::TypeKind::TensorType) return Kind::TensorList;
      if (auto o = e->cast<c10::OptionalType>(); o && o->getElementType()->kind() == c10::TypeKind::TensorType)
        return Kind::OptTensorList;
      return Kind::Other;
    }
    default: return Kind::Other;
  }
}

std::mutex& op_mutex() { return g_mutex; }

OpInfo& op_info(const OperatorHandle& h) {
  const auto& s = h.schema();
  std::string name = s.operator_name().name + (s.overload_name().empty() ? "" : "." + s.overload_name());
  std::lock_guard<std::mutex> lock(g_mutex);
  auto it = g_by_name.find(name);
  OpInfo& o = it != g_by_name.end() ? *it->second : make(h);
  bind(o);
  return o;
}

OpInfo* find_op(const std::string& full) {
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    if (auto it = g_by_name.find(full); it != g_by_name.end()) return it->second;
  }
  auto dot = full.find('.');
  auto h = c10::Dispatcher::singleton().findSchema(
      {full.substr(0, dot), dot == std::string::npos ? std::string() : full.substr(dot + 1)});
  return h ? &op_info(*h) : nullptr;
}
}  // namespace ltc

extern "C" {
int ltc_op_schema(const char* name, const char* overload, char** text) {
  try {
    auto h = c10::Dispatcher::singleton().findSchema({name, overload});
    if (!h) return 1;
    std::ostringstream s;
    s << h->schema();
    *text = strdup(s.str().c_str());
    return *text == nullptr;
  } catch (...) {
    return 1;
  }
}
void ltc_forced_changed(void) {
  std::lock_guard<std::mutex> lock(ltc::g_mutex);
  for (auto& o : ltc::g_ops)
    if (o.rust) o.forced = ltc::V.forced_fallback(ltc::V.ctx, o.name.data(), o.name.size());
}
int ltc_for_each_op(void (*each)(void*, const char*, size_t, const char*, size_t), void* ctx) {
  return ltc::guarded(nullptr, [&] {
    auto& d = c10::Dispatcher::singleton();
    for (auto& on : d.getAllOpNames()) {
      auto h = d.findSchema(on);
      if (!h) continue;
      std::string name = on.name + (on.overload_name.empty() ? "" : "." + on.overload_name);
      std::ostringstream s;
      s << h->schema();
      std::string text = s.str();
      each(ctx, name.data(), name.size(), text.data(), text.size());
    }
  });
}
}
