// MPS as another name of the device, for programs that can say only the device types they know (`tch::Device`).
//
// No tensor of the type MPS comes to be: where a call asks for one, it is made again for the current device of ours.
// That is the type to take, and not one as unused, because `tch` answers MPS for a tensor of any type it does not know.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>

#include "shim.h"

namespace ltc {
namespace {
constexpr auto kAlias = c10::DeviceType::MPS;

// A factory, or another operator that was given nothing but the name to tell it where to run.
void call_ours(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
  bool named = false;
  for (size_t i = stack->size() - op.schema().arguments().size(); i < stack->size(); i++) {
    IValue& v = (*stack)[i];
    if (!v.isDevice() || v.toDevice().type() != kAlias) continue;
    const auto d = v.toDevice();
    v = c10::Device(kLazy, d.has_index() ? d.index() : current_device());
    named = true;
  }
  TORCH_CHECK(named, "ltc: ", op.schema().operator_name(), " was called for a tensor of the ", kAlias,
              " device, of which there are none: the type is a name of the ltc device");
  op.callBoxed(stack);
}

bool takes_device(const OperatorHandle& op) {
  for (auto& a : op.schema().arguments())
    if (kind_of(a.type()) == Kind::Device) return true;
  return false;
}

void name() {
  TORCH_CHECK(!ltc_has_mps(), "ltc: this libtorch has ", kAlias, " devices: the type cannot be a name");
  register_guard(kAlias);
  static std::vector<std::unique_ptr<torch::Library>> libraries;
  auto library = [](const char* ns, DispatchKey key) -> torch::Library& {
    libraries.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, ns, key, __FILE__, __LINE__));
    return *libraries.back();
  };
  for (auto key : {DispatchKey::MPS, DispatchKey::SparseMPS, DispatchKey::SparseCsrMPS, DispatchKey::QuantizedMPS,
                   DispatchKey::NestedTensorMPS})
    library("_", key).fallback(torch::CppFunction::makeFromBoxedFunction<&call_ours>());
  // libtorch's own composites would come before the fallback: their parts arrived here one by one.
  auto& m = library("aten", DispatchKey::MPS);
  auto& d = c10::Dispatcher::singleton();
  for (auto& on : d.getAllOpNames()) {
    auto op = on.name.rfind("aten::", 0) == 0 ? d.findSchema(on) : std::nullopt;
    if (!op || !takes_device(*op)) continue;
    const auto overload = on.name.substr(6) + (on.overload_name.empty() ? "" : "." + on.overload_name);
    m.impl(overload.c_str(), torch::CppFunction::makeFromBoxedFunction<&call_ours>());
  }
}
}  // namespace
}  // namespace ltc

extern "C" {
int ltc_has_mps(void) { return c10::impl::hasDeviceGuardImpl(ltc::kAlias); }
int ltc_name_mps(LtcError* err) {
  return ltc::guarded(err, [] { ltc::name(); });
}
}
