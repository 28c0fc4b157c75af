#include "sparse.h"

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <unordered_set>

namespace ltc {
namespace {
at::SparseTensorImpl* coo(const Tensor& t) { return static_cast<at::SparseTensorImpl*>(t.unsafeGetTensorImpl()); }
at::SparseCsrTensorImpl* compressed(const Tensor& t) {
  return static_cast<at::SparseCsrTensorImpl*>(t.unsafeGetTensorImpl());
}

void (*takes_sparse)(const void*, const char*, size_t, int32_t) = [](auto...) {};

// A replay would not make these tensors anew, so a step that uses any is recorded each time.
void prepare(const OpInfo& o) {
  keep_backward_here();
  if (C10_UNLIKELY(g_captures.load(std::memory_order_relaxed) > 0))
    takes_sparse(V.ctx, o.name.data(), o.name.size(), current_device());
}

// Sparse tensors on the CPU may stand beside tensors on the device, where no more than their values is asked for.
// Everything else has to be there, as for dense tensors.
void check_devices(const OpInfo& o, const Stack& stack) {
  const size_t n = o.args.size(), base = stack.size() - n;
  for (size_t i = 0; i < n; i++)
    map_tensors(stack[base + i], o.args[i].kind, [&](const Tensor& t) {
      if (!t.defined() || is_lazy(t)) return t;
      const bool is_read = !o.args[i].write && t.device().is_cpu();
      TORCH_CHECK(is_read && (is_sparse(t) || t.dim() == 0),
                  "Expected all tensors to be on the same device, but found at least two devices, ",
                  c10::Device(kLazy, current_device()), " and ", t.device(), "! (when checking arguments of ", o.name,
                  ")");
      return t;
    });
}

void run_sparse(const OpInfo& o, Stack* stack) {
  prepare(o);
  check_devices(o, *stack);
  run_eager(o, stack, LTC_WHY_ARGUMENT);
}

// Runs eagerly, on the values.
struct EagerKernel final : c10::OperatorKernel {
  const OpInfo& info;
  explicit EagerKernel(const OpInfo& i) : info(i) {}
  void operator()(const OperatorHandle&, DispatchKeySet, Stack* stack) { run_sparse(info, stack); }
};
void sparse_late(const OperatorHandle& op, DispatchKeySet, Stack* stack) { run_sparse(op_info(op), stack); }

// libtorch's kernel for the CPU, over lazy parts: it only takes a sparse tensor apart or puts one together.
struct PartsKernel final : c10::OperatorKernel {
  const OpInfo& info;
  const DispatchKeySet keys;
  PartsKernel(const OpInfo& i, DispatchKey key) : info(i), keys(key) {}
  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    prepare(info);
    op.redispatchBoxed(keys, stack);
  }
};

// Besides factories and views; review with each libtorch release.
const std::unordered_set<std::string>& kernels_over_parts() {
  static const std::unordered_set<std::string> s = {"_coalesced_",
                                                    "_dimI",
                                                    "_dimV",
                                                    "_nnz",
                                                    "_sparse_coo_tensor_with_dims_and_tensors",
                                                    "clone",
                                                    "copy_",
                                                    "copy_sparse_to_sparse_",
                                                    "dense_dim",
                                                    "empty_like",
                                                    "fill_.Scalar",
                                                    "is_coalesced",
                                                    "is_pinned",
                                                    "resize_",
                                                    "resize_as_sparse_",
                                                    "sparse_dim",
                                                    "sparse_resize_",
                                                    "sparse_resize_and_clear_",
                                                    "zero_"};
  return s;
}
bool works_on_parts(const OpInfo& o, const std::string& name) {
  auto is_tensor = [](const ArgInfo& a) {
    return a.kind == Kind::Tensor || a.kind == Kind::TensorList || a.kind == Kind::OptTensorList;
  };
  return o.has_view || kernels_over_parts().count(name) || std::none_of(o.args.begin(), o.args.end(), is_tensor);
}

// Kernels for what the CPU has kernels for: everything else decomposes as there, or is refused as there.
void register_layout(DispatchKey ours, DispatchKey cpus) {
  static std::vector<std::unique_ptr<torch::Library>> libraries;
  auto library = [ours](const char* ns) -> torch::Library& {
    libraries.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, ns, ours, __FILE__, __LINE__));
    return *libraries.back();
  };
  library("_").fallback(torch::CppFunction::makeFromBoxedFunction<&sparse_late>());
  auto& m = library("aten");
  auto& d = c10::Dispatcher::singleton();
  for (auto& on : d.getAllOpNames()) {
    auto h = d.findSchema(on);
    if (on.name.rfind("aten::", 0) != 0 || !h || !h->hasKernelForDispatchKey(cpus)) continue;
    const std::string name = on.name.substr(6) + (on.overload_name.empty() ? "" : "." + on.overload_name);
    const OpInfo& o = op_info(*h);
    if (works_on_parts(o, name))
      m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<PartsKernel>(o, cpus)));
    else m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<EagerKernel>(o)));
  }
}
}  // namespace

Parts parts_of(const Tensor& t) {
  Parts parts;
  if (t.unsafeGetTensorImpl()->is_sparse()) parts = {coo(t)->indices(), coo(t)->values()};
  else parts = {compressed(t)->compressed_indices(), compressed(t)->plain_indices(), compressed(t)->values()};
  for (Tensor& part : parts) part = part.resolve_conj().resolve_neg();
  return parts;
}
Tensor with_parts(const Tensor& like, const Parts& parts) {
  const auto options = like.options().device(parts.back().device());
  if (like.unsafeGetTensorImpl()->is_sparse())
    return at::_sparse_coo_tensor_with_dims_and_tensors(coo(like)->sparse_dim(), coo(like)->dense_dim(), like.sizes(),
                                                        parts[0], parts[1], options, coo(like)->coalesced());
  return at::_sparse_compressed_tensor_unsafe(parts[0], parts[1], parts[2], like.sizes(), options);
}
void set_parts(const Tensor& self, const Tensor& like, const Parts& parts) {
  if (self.unsafeGetTensorImpl()->is_sparse())
    return self.unsafeGetTensorImpl()->shallow_copy_from(with_parts(like, parts).getIntrusivePtr());
  compressed(self)->set_layout(like.layout());
  compressed(self)->set_member_tensors(parts[0], parts[1], parts[2], like.sizes());
}

void register_sparse() {
  register_layout(DispatchKey::SparsePrivateUse1, DispatchKey::SparseCPU);
  register_layout(DispatchKey::SparseCsrPrivateUse1, DispatchKey::SparseCsrCPU);
}
}  // namespace ltc

extern "C" void ltc_on_sparse(void (*tell)(const void*, const char*, size_t, int32_t)) { ltc::takes_sparse = tell; }
