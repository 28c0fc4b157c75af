// True values for libtorch's CUDA kernels, which the stand-in does not run. A boxed fallback below autograd lets an
// operator's host code run as on CUDA (results allocated, layouts chosen, kernels launched into nothing). Then it puts
// the same operator on the same stream as a work that runs the CPU's kernel over the same memory, which is the host's.
// So values are there when CUDA would have them, and not before.
//
// The fallback's key is `Fake`, which lies below autograd and which no operator has a kernel for in this version of
// libtorch. It stays on while an operator's own kernel runs: operators that are called within have values too, so that
// kernels may read them.
#include "dry_shadow.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <set>

#include "dry_cuda.h"

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

namespace {
constexpr auto key = c10::DispatchKey::Fake;

// Operators that compute nothing, besides views: they allocate, say something about their argument, or are made of
// operators that have values. A name that ends with `*` is a beginning.
const std::set<std::string> without_values = {"aten::empty*",    "aten::new_empty*",          "aten::_empty*",
                                              "aten::resize_",   "aten::resize_as_",          "aten::_resize_output_",
                                              "aten::set_",      "aten::record_stream",       "aten::_pin_memory",
                                              "aten::is_pinned", "aten::_local_scalar_dense", "ltc_dist::*",
                                              "ltc_cuda::*"};

// Operators whose own kernels read on the host what they computed: their results' sizes are values. The CPU's kernel
// runs at once. So it does for cuDNN's, which asks the driver itself.
const std::set<std::string> read_themselves = {"aten::nonzero",
                                               "aten::_unique2",
                                               "aten::unique_dim",
                                               "aten::unique_consecutive",
                                               "aten::unique_dim_consecutive",
                                               "aten::bincount",
                                               "aten::embedding_renorm_",
                                               "aten::repeat_interleave",
                                               "aten::equal",
                                               "aten::_unique",
                                               "aten::_scaled_dot_product_cudnn_attention",
                                               "aten::_scaled_dot_product_cudnn_attention_backward"};

// Arguments that are written though the schema does not say so.
const std::map<std::string, std::vector<size_t>> written_in_secret = {
    {"aten::native_batch_norm", {3, 4}}, {"aten::batch_norm_update_stats", {1, 2}}, {"aten::cudnn_batch_norm", {3, 4}}};

// ---- what happened ----
std::mutex report_mutex;
std::map<std::string, uint64_t> report;
uint64_t shadowed = 0;

void note(const std::string& kind, const c10::OperatorHandle& op, const std::string& words = "") {
  std::lock_guard<std::mutex> lock(report_mutex);
  report[kind + " " + toString(op.operator_name()) + (words.empty() ? "" : ": ") + words.substr(0, words.find('\n'))]++;
}

// ---- what an operator is ----
bool is_cuda(const IValue& v) {
  if (v.isTensor()) return v.toTensor().defined() && v.toTensor().is_cuda();
  if (v.isDevice()) return v.toDevice().is_cuda();
  if (v.isTensorList()) return std::any_of(v.toListRef().begin(), v.toListRef().end(), is_cuda);
  if (v.isOptionalTensorList()) return std::any_of(v.toListRef().begin(), v.toListRef().end(), is_cuda);
  return false;
}

bool is_listed(const std::set<std::string>& names, const std::string& name) {
  if (names.count(name)) return true;
  return std::any_of(names.begin(), names.end(), [&](const std::string& listed) {
    return listed.back() == '*' && name.compare(0, listed.size() - 1, listed, 0, listed.size() - 1) == 0;
  });
}

bool is_view(const c10::OperatorHandle& op) {
  if (op.hasTag(at::Tag::inplace_view)) return true;
  const auto& returns = op.schema().returns();
  return std::any_of(returns.begin(), returns.end(),
                     [](const c10::Argument& r) { return r.alias_info() && !r.alias_info()->isWrite(); });
}

// Whether an operator takes memory over from another device: the copies are real ones, of operators within or of the
// runtime.
bool crosses(const c10::OperatorHandle& op, const Stack& args) {
  const std::string& name = op.schema().name();
  if (name != "aten::copy_" && name != "aten::_to_copy" && name != "aten::_copy_from_and_resize") return false;
  std::set<std::pair<c10::DeviceType, int>> devices;
  for (const IValue& v : args) {
    if (v.isTensor() && v.toTensor().defined())
      devices.emplace(v.toTensor().device().type(), v.toTensor().get_device());
    if (v.isDevice()) devices.emplace(v.toDevice().type(), v.toDevice().has_index() ? v.toDevice().index() : 0);
  }
  return devices.size() > 1;
}

bool has_values(const c10::OperatorHandle& op, const Stack& args) {
  // What has no kernel of its own is made of operators that have values; but for `copy_`, whose one kernel serves all
  // devices.
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) && op.schema().name() != "aten::copy_") return false;
  return !is_view(op) && !is_listed(without_values, op.schema().name()) && !crosses(op, args);
}

bool is_written(const c10::OperatorHandle& op, size_t arg) {
  const auto* alias = op.schema().arguments()[arg].alias_info();
  if (alias && alias->isWrite()) return true;
  auto found = written_in_secret.find(op.schema().name());
  return found != written_in_secret.end() && std::count(found->second.begin(), found->second.end(), arg) > 0;
}

// ---- arguments of the CPU's kernel ----
// The memory of a tensor on the device as a tensor on the CPU. Nothing is read, and nothing is kept alive.
Tensor host_alias(const Tensor& t) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), t.storage().nbytes(),
                       at::DataPtr(t.storage().mutable_data(), c10::Device(c10::kCPU)), nullptr, /*resizable=*/false);
  Tensor alias = at::empty({0}, at::TensorOptions().dtype(t.dtype()));
  alias.set_(std::move(storage), t.storage_offset(), t.sizes(), t.strides());
  if (t.is_conj()) alias._set_conj(true);
  if (t.is_neg()) alias._set_neg(true);
  return alias;
}

Tensor host_tensor(const Tensor& t) {
  if (!t.defined()) return t;
  if (t.is_cuda()) return host_alias(t);
  // Kernels take numbers from the CPU when they are launched.
  Tensor copy = t.clone();
  copy.unsafeGetTensorImpl()->set_wrapped_number(t.unsafeGetTensorImpl()->is_wrapped_number());
  return copy;
}

IValue host_value(const IValue& v) {
  if (v.isTensor()) return host_tensor(v.toTensor());
  if (v.isDevice()) return v.toDevice().is_cuda() ? IValue(c10::Device(c10::kCPU)) : v;
  if (v.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& t : v.toTensorVector()) list.push_back(host_tensor(t));
    return list;
  }
  if (v.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor>& t : v.toOptionalTensorList())
      list.push_back(t ? std::optional<Tensor>(host_tensor(*t)) : std::nullopt);
    return list;
  }
  return v;
}

std::vector<Tensor> tensors_of(const IValue& v) {
  if (v.isTensor()) return {v.toTensor()};
  return v.isTensorList() ? v.toTensorVector() : std::vector<Tensor>();
}

bool is_strided(const Stack& args) {
  for (const IValue& v : args)
    for (const Tensor& t : tensors_of(v))
      if (t.defined() && (t.layout() != c10::kStrided || t.is_quantized() || !t.has_storage())) return false;
  return true;
}

// ---- random numbers ----
// Draws are not CUDA's, but they follow from the generator as CUDA's do: from its seed and its offset when the operator
// is called.
struct Draws {
  bool any = false;
  std::optional<size_t> arg;  // the generator's; none of operators that draw from the default one
  uint64_t seed = 0, replays = 0;
};

uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15 * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

Draws draws_of(const c10::OperatorHandle& op, const Stack& args, c10::Device device) {
  Draws draws;
  draws.any = op.hasTag(at::Tag::nondeterministic_seeded);
  std::optional<at::Generator> given;
  for (size_t i = 0; i < args.size(); i++) {
    if (op.schema().arguments()[i].type()->str().find("Generator") == std::string::npos) continue;
    draws.any = true, draws.arg = i;
    if (!args[i].isNone()) given = args[i].toGenerator();
  }
  if (!draws.any) return draws;
  const at::Generator generator = given ? *given : at::globalContext().defaultGenerator(device);
  try {
    draws.seed = mixed(generator.current_seed(), generator.unsafeGetGeneratorImpl()->get_offset());
  } catch (const c10::Error&) {  // within a capture, where the state is only known to each replay
    static uint64_t captured = 0;
    draws.seed = mixed(0, ++captured);
  }
  return draws;
}

// ---- the work ----
struct Call {
  c10::OperatorHandle op;
  Stack args;                                       // for the CPU's kernel
  std::vector<std::optional<Tensor>> results;       // where they belong; none of those that are written arguments
  std::vector<std::pair<Tensor, Tensor>> restored;  // written arguments, and what was in them
  Draws draws;
};

void call_on_host(Call& call, Stack& stack) {
  if (!call.draws.any) return call.op.callBoxed(&stack);
  at::Generator generator = at::detail::createCPUGenerator(mixed(call.draws.seed, call.draws.replays++));
  if (call.draws.arg) {
    stack[*call.draws.arg] = generator;
    return call.op.callBoxed(&stack);
  }
  // It draws from the process's generator, which is put back afterwards.
  at::Generator theirs = at::detail::getDefaultCPUGenerator();
  const Tensor saved = theirs.get_state();
  theirs.set_state(generator.get_state());
  call.op.callBoxed(&stack);
  theirs.set_state(saved);
}

void write_results(const Call& call, const Stack& stack) {
  std::vector<Tensor> made;
  for (const IValue& v : stack)
    for (const Tensor& t : tensors_of(v)) made.push_back(t);
  for (size_t i = 0; i < call.results.size() && i < made.size(); i++) {
    if (!call.results[i] || !made[i].defined()) continue;
    const Tensor& to = *call.results[i];
    if (to.sizes() != made[i].sizes()) note("other sizes on CUDA:", call.op);
    else if (to.mutable_data_ptr() != made[i].mutable_data_ptr()) to.copy_(made[i]);
  }
}

// Runs under whichever thread waits, as if it were a thread of its own.
struct AsOfNoThread {
  c10::impl::ForceDispatchKeyGuard fresh{c10::default_included_set, c10::default_excluded_set};
  at::AutoDispatchBelowADInplaceOrView below_autograd;
};

constexpr int device_assertion = 710;

// Whether a kernel of CUDA's asserts where the CPU's raises this. Not every error about an index has the class for it.
bool is_assertion(const c10::Error& e) {
  if (dynamic_cast<const c10::IndexError*>(&e)) return true;
  const std::string words = e.what_without_backtrace();
  const auto says = [&](const char* text) { return words.find(text) != std::string::npos; };
  return says("out of bounds") || says("out of range");
}

void run(Call& call) {
  AsOfNoThread guard;
  try {
    for (auto& [written, saved] : call.restored) written.copy_(saved);
    Stack stack = call.args;
    call_on_host(call, stack);
    write_results(call, stack);
  } catch (const c10::Error& e) {
    note(is_assertion(e) ? "assertion in" : "failed", call.op, e.what_without_backtrace());
    if (is_assertion(e)) dry_cuda_lose(device_assertion);
  }
}

void save(Call& call) {
  AsOfNoThread guard;
  for (auto& [written, saved] : call.restored) saved = written.clone();
}

void enqueue(const std::shared_ptr<Call>& call, c10::Device device, void (*work)(Call&)) {
  struct Held {
    std::shared_ptr<Call> call;
    void (*work)(Call&);
  };
  void* stream = c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(device).native_handle();
  auto run = [](void* held) { static_cast<Held*>(held)->work(*static_cast<Held*>(held)->call); };
  auto drop = [](void* held) { delete static_cast<Held*>(held); };
  dry_cuda_enqueue(stream, run, new Held{call, work}, drop);
}

std::shared_ptr<Call> call_of(const c10::OperatorHandle& op, const Stack& before, c10::Device device) {
  auto call = std::make_shared<Call>(Call{op, {}, {}, {}, draws_of(op, before, device)});
  for (const IValue& v : before) call->args.push_back(host_value(v));
  return call;
}

// Operators within may have written what is written in place: the CPU's kernel finds what was there before them.
void save_written(const std::shared_ptr<Call>& call, c10::Device device) {
  if (call->op.schema().name() == "aten::copy_") return;
  for (size_t i = 0; i < call->args.size(); i++)
    if (is_written(call->op, i) && !call->op.schema().arguments()[i].is_out())
      for (const Tensor& t : tensors_of(call->args[i]))
        if (t.defined()) call->restored.emplace_back(t, Tensor());
  if (!call->restored.empty()) enqueue(call, device, save);
}

// `before` is what the kernel was called with, `results` end a stack.
void finish(const std::shared_ptr<Call>& call, const Stack& before, const Stack& results, c10::Device device) {
  const auto& schema = call->op.schema();
  // Operators may give `out` arguments memory of their sizes.
  for (size_t i = 0; i < before.size(); i++)
    if (schema.arguments()[i].is_out()) call->args[i] = host_value(before[i]);
  const size_t n = schema.returns().size();
  bool any = !call->restored.empty();
  for (size_t i = 0; i < n; i++) {
    const bool written = schema.returns()[i].alias_info() != nullptr;
    for (const Tensor& t : tensors_of(results[results.size() - n + i])) {
      any |= t.defined() && t.is_cuda();
      const bool wanted = !written && t.defined() && t.is_cuda() && t.layout() == c10::kStrided && t.numel() > 0;
      call->results.push_back(wanted ? std::optional<Tensor>(host_alias(t)) : std::nullopt);
    }
  }
  for (size_t i = 0; i < before.size(); i++) any |= is_written(call->op, i);
  if (!any) return;
  {
    std::lock_guard<std::mutex> lock(report_mutex);
    shadowed++;
  }
  enqueue(call, device, run);
}

c10::Device device_of(const Stack& stack) {
  for (const IValue& v : stack) {
    if (v.isDevice() && v.toDevice().is_cuda() && v.toDevice().has_index()) return v.toDevice();
    for (const Tensor& t : tensors_of(v))
      if (t.defined() && t.is_cuda()) return t.device();
  }
  return c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice();
}

bool has_host_kernel(const c10::OperatorHandle& op) {
  return op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

// The CPU's kernel instead of the operator's own, after a wait as the operator's own has.
void call_at_once(const c10::OperatorHandle& op, Stack* stack, c10::Device device) {
  const c10::impl::VirtualGuardImpl impl(c10::kCUDA);
  impl.synchronizeStream(impl.getStream(device));
  auto call = call_of(op, *stack, device);
  const auto& schema = op.schema();
  const Stack given = std::move(*stack);
  *stack = call->args;
  std::vector<size_t> written;
  for (size_t i = 0; i < given.size(); i++) {
    if (is_written(op, i)) written.push_back(i);
    // What it is to be resized to is not known before.
    if (schema.arguments()[i].is_out()) (*stack)[i] = at::empty({0}, (*stack)[i].toTensor().options());
  }
  AsOfNoThread guard;
  op.callBoxed(stack);
  size_t next = 0;
  for (size_t i = 0; i < schema.returns().size(); i++) {
    IValue& v = (*stack)[stack->size() - schema.returns().size() + i];
    if (!v.isTensor() || !v.toTensor().defined()) continue;
    if (schema.returns()[i].alias_info()) {
      const IValue& to = given[written.at(next)];
      if (schema.arguments()[written[next++]].is_out()) {
        if (to.toTensor().sizes() != v.toTensor().sizes()) to.toTensor().resize_(v.toTensor().sizes());
        to.toTensor().copy_(v.toTensor());
      }
      v = to;
    } else {
      const Tensor t = v.toTensor();
      v = at::empty_strided(t.sizes(), t.strides(), t.options().device(device)).copy_(t);
    }
  }
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key);
  const size_t n = op.schema().arguments().size();
  if (!std::any_of(stack->begin(), stack->end(), is_cuda) || !has_values(op, *stack))
    return op.redispatchBoxed(below, stack);
  TORCH_INTERNAL_ASSERT(stack->size() == n);
  const c10::Device device = device_of(*stack);
  if (!is_strided(*stack) || !has_host_kernel(op)) {
    note(has_host_kernel(op) ? "not strided:" : "no CPU kernel:", op);
    return op.redispatchBoxed(below, stack);
  }
  if (read_themselves.count(op.schema().name())) return call_at_once(op, stack, device);
  const Stack before = *stack;
  std::shared_ptr<Call> call;
  {
    c10::impl::ExcludeDispatchKeyGuard none(key);
    call = call_of(op, before, device);
    save_written(call, device);
  }
  op.redispatchBoxed(below, stack);
  c10::impl::ExcludeDispatchKeyGuard none(key);
  finish(call, before, *stack, device);
}

TORCH_LIBRARY_IMPL(_, Fake, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
}  // namespace

void dry_shadow(const c10::OperatorHandle& op, const Stack& before, const Stack& results) {
  c10::impl::ExcludeDispatchKeyGuard none(key);
  if (!has_values(op, before) || !is_strided(before) || !has_host_kernel(op)) return;
  const c10::Device device = device_of(results);
  finish(call_of(op, before, device), before, results, device);
}

extern "C" {
void dry_shadow_enable(bool on) { c10::impl::tls_set_dispatch_key_included(key, on); }
uint64_t dry_shadow_count() {
  std::lock_guard<std::mutex> lock(report_mutex);
  return shadowed;
}
const char* dry_shadow_report() {
  static std::string text;
  std::lock_guard<std::mutex> lock(report_mutex);
  text.clear();
  for (auto& [line, times] : report) text += line + " (" + std::to_string(times) + ")\n";
  return text.c_str();
}
void dry_shadow_reset() {
  std::lock_guard<std::mutex> lock(report_mutex);
  report.clear();
  shadowed = 0;
}
}
