// Which kernel serves which operator on the lazy device.
#include <ATen/Version.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>
#include <torch/version.h>

#include <memory>
#include <unordered_set>

#include "collectives.h"
#include "sparse.h"

namespace ltc {
void register_composites(torch::Library& autograd);
void register_recurrent(torch::Library& device, torch::Library& autograd);
void register_attention(torch::Library& device);

namespace {
struct RecordingKernel final : c10::OperatorKernel {
  const OpInfo& info;
  explicit RecordingKernel(const OpInfo& i) : info(i) {}
  void operator()(const OperatorHandle&, DispatchKeySet, Stack* stack) { run(info, stack); }
};
// For operators registered after us: custom and third-party ones.
void record_late(const OperatorHandle& op, DispatchKeySet, Stack* stack) { run(op_info(op), stack); }

// Tensors of other layouts on the device, which operators may make though no factory does.
void refuse_layout(const OperatorHandle& op, DispatchKeySet keys, Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "ltc: ", op.schema().name(), " of ", c10::toString(keys.highestPriorityTypeId()),
      " tensors: only dense and sparse tensors are supported; make or convert such tensors on the CPU");
}

bool starts_with(const std::string& s, const char* p) { return s.rfind(p, 0) == 0; }

// Served by kernels.cpp and attention.cpp.
const std::unordered_set<std::string>& explicit_kernels() {
  static const std::unordered_set<std::string> s = {"empty.memory_format",
                                                    "empty_strided",
                                                    "as_strided",
                                                    "view",
                                                    "_reshape_alias",
                                                    "unfold",
                                                    "view_as_real",
                                                    "view_as_complex",
                                                    "copy_",
                                                    "_copy_from",
                                                    "_copy_from_and_resize",
                                                    "_to_copy",
                                                    "_local_scalar_dense",
                                                    "resize_",
                                                    "set_",
                                                    "set_.source_Storage",
                                                    "set_.source_Storage_storage_offset",
                                                    "set_.source_Tensor",
                                                    "record_stream",
                                                    "is_set_to",
                                                    "_foreach_addcmul.Tensor",
                                                    "_foreach_addcmul_.Tensor",
                                                    "_foreach_addcdiv.Tensor",
                                                    "_foreach_addcdiv_.Tensor",
                                                    "_lazy_clone",
                                                    "_has_compatible_shallow_copy_type",
                                                    "_efficientzerotensor",
                                                    "_nested_tensor_from_mask_left_aligned",
                                                    "histc",
                                                    "native_group_norm",
                                                    "_scaled_dot_product_efficient_attention",
                                                    "_scaled_dot_product_efficient_attention_backward",
                                                    "_scaled_dot_product_cudnn_attention",
                                                    "_scaled_dot_product_cudnn_attention_backward",
                                                    "_scaled_dot_product_flash_attention_for_cpu",
                                                    "_scaled_dot_product_flash_attention_for_cpu_backward"};
  return s;
}
// Composites whose own code does the right thing in terms of operators we serve (host logic, metadata, or better
// decomposed); review with each libtorch release.
const std::unordered_set<std::string>& native_composites() {
  static const std::unordered_set<std::string> s = {"clone",
                                                    "empty_like",
                                                    "new_empty",
                                                    "new_empty_strided",
                                                    "lift",
                                                    "lift_fresh",
                                                    "empty_permuted",
                                                    "_pin_memory",
                                                    "is_pinned",
                                                    "pin_memory",
                                                    "_convolution",
                                                    "empty.names",
                                                    "_print",
                                                    "_resize_output",
                                                    "_resize_output_",
                                                    "resize",
                                                    "set.source_Tensor",
                                                    "is_same_size",
                                                    "_has_same_storage_numel",
                                                    "_assert_tensor_metadata",
                                                    "sym_constrain_range",
                                                    "sym_constrain_range_for_size",
                                                    "_fw_primal",
                                                    "_make_dual",
                                                    "resize_as_",
                                                    "block_diag",
                                                    "_reshape_copy",
                                                    "repeat",
                                                    "stack",
                                                    "_foreach_copy_",
                                                    "embedding",
                                                    "_pack_padded_sequence",
                                                    "_unsafe_view",
                                                    "unsafe_split.Tensor",
                                                    "unsafe_split_with_sizes",
                                                    "as_strided_copy",
                                                    "as_strided_copy.out",
                                                    "as_strided_scatter",
                                                    "as_strided_scatter.out"};
  return s;
}

bool should_record(const OperatorHandle& h, const std::string& name) {
  if (explicit_kernels().count(name) || native_composites().count(name)) return false;
  // Composites must decompose for autograd, unless they have derivatives and a CPU kernel of their own (silu_backward).
  if (h.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
      !(h.hasKernelForDispatchKey(DispatchKey::CPU) && h.hasKernelForDispatchKey(DispatchKey::Autograd)))
    return false;
  if (h.hasTag(at::Tag::inplace_view)) return false;
  const bool composite = h.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd);
  const bool structured = h.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
  const auto& s = h.schema();
  bool tensors = false;
  for (auto& r : s.returns()) {
    auto k = kind_of(r.type());
    tensors |= k == Kind::Tensor || k == Kind::TensorList;
  }
  if (s.returns().empty())
    for (auto& a : s.arguments()) tensors |= a.alias_info() && kind_of(a.type()) != Kind::Other;
  if (!tensors) return !composite && !structured;
  if (composite) {
    for (auto& r : s.returns())
      if (r.alias_info() && !r.alias_info()->isWrite() && r.alias_info()->containedTypes().empty())
        return false;  // native views
    for (auto& r : s.returns())
      if (r.alias_info() && !r.alias_info()->containedTypes().empty() &&
          !r.alias_info()->containedTypes()[0].isWrite() && !r.alias_info()->isWrite())
        return false;  // lists of views
    for (auto p : {"rand", "_sparse", "sparse", "_nested", "set.", "normal.float_float"})
      if (starts_with(name, p)) return false;
  }
  return true;
}

std::vector<std::unique_ptr<torch::Library>> g_libraries;
torch::Library& library(const char* ns, DispatchKey key) {
  g_libraries.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, ns, key, __FILE__, __LINE__));
  return *g_libraries.back();
}

std::string running_version() {
  std::string config = at::show_config();
  auto at = config.find("TORCH_VERSION=");
  if (at == std::string::npos) return "unknown";
  at += strlen("TORCH_VERSION=");
  return config.substr(at, config.find_first_of(", \n", at) - at);
}
}  // namespace

void register_kernels() {
  library("_", DispatchKey::PrivateUse1).fallback(torch::CppFunction::makeFromBoxedFunction<&record_late>());
  for (auto key : {DispatchKey::QuantizedPrivateUse1, DispatchKey::NestedTensorPrivateUse1})
    library("_", key).fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_layout>());
  library("_", DispatchKey::AutocastPrivateUse1).fallback(torch::CppFunction::makeFallthrough());
  library("_", DispatchKey::TESTING_ONLY_GenericMode)
      .fallback(torch::CppFunction::makeFromBoxedFunction<&swallow_out>());
  auto& m = library("aten", DispatchKey::PrivateUse1);
  auto& d = c10::Dispatcher::singleton();
  for (auto& on : d.getAllOpNames()) {
    if (!starts_with(on.name, "aten::")) continue;
    auto h = d.findSchema(on);
    if (!h) continue;
    std::string name = on.name.substr(6) + (on.overload_name.empty() ? "" : "." + on.overload_name);
    if (should_record(*h, name) && !register_plain(m, name.c_str(), op_info(*h)))
      m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RecordingKernel>(op_info(*h))));
  }
  register_explicit(m);
  auto& autograd = library("aten", DispatchKey::AutogradPrivateUse1);
  register_composites(autograd);
  // It asks what tensors are, not what they come from, which may be an error by now (a view whose base was written).
  autograd.impl("_has_compatible_shallow_copy_type", torch::CppFunction::makeFallthrough());
  register_recurrent(m, autograd);
  register_attention(m);
  register_sparse();
}

void register_autocast() {
  using namespace at::autocast;
  torch::Library& m = library("aten", DispatchKey::AutocastPrivateUse1);
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(FP32_SET_OPT_DTYPE)
  AT_FORALL_PROMOTE(PROMOTE)
#undef LOWER
#undef FP32
#undef FP32_SET_OPT_DTYPE
#undef PROMOTE
}
}  // namespace ltc

extern "C" int ltc_init(const LtcVTable* vtable, const char* name, LtcError* err) {
  return ltc::guarded(err, [&] {
    static bool done = false;
    TORCH_CHECK(!done, "the ", name, " device is registered already: it can be initialised once per process");
    std::string running = ltc::running_version(), built = TORCH_VERSION;
    TORCH_CHECK(running.rfind(built.substr(0, built.find('+')), 0) == 0, "this LTC was built for libtorch ", built,
                " but runs with libtorch ", running, ": rebuild it with the libtorch in use, or use torch==", built);
    done = true;
    ltc::V = *vtable;
    ltc::register_device(name);
    ltc::register_kernels();
    ltc::register_autocast();
    ltc::register_interrupted();
    ltc::register_generators();
    ltc::define_collectives();
    ltc::serve_process_groups();
  });
}
