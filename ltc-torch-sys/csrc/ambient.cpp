// Ambient state: what no argument says and what a call, or a step of many calls, may depend on all the same.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <atomic>
#include <cstring>

#include "shim.h"

namespace ltc {
namespace {
std::atomic<uint64_t> registrations{0};

// Small numbers side by side in one word.
struct Packed {
  uint64_t word = 0;
  Packed& operator()(uint64_t value, int bits) {
    word = word << bits | (value & ((1ull << bits) - 1));
    return *this;
  }
};

void mix(uint64_t& h, uint64_t w) {
  h = (h ^ w) * 0x9E3779B97F4A7C15ull;
  h ^= h >> 29;
}
uint64_t object(const c10::SafePyObject& o) { return (uint64_t)o.ptr(&o.pyinterpreter()); }

// How this thread treats results too small for a full mantissa (`torch.set_flush_denormal`).
uint64_t denormals() {
#if defined(__x86_64__)
  return _mm_getcsr() & 0x8040;
#else
  return 0;
#endif
}

// Modes of Python, which see a call before libtorch does, innermost first. A mode is compared by its address: no number
// can tell what its code does.
void modes(LtcAmbient& a) {
  using Functions = at::impl::PythonTorchFunctionTLS;
  using Dispatch = c10::impl::TorchDispatchModeTLS;
  const auto functions = Functions::stack_len(), dispatch = Dispatch::stack_len();
  for (int64_t i = 0; i < functions; i++) mix(a.mode_objects, object(*Functions::get_stack_at(i)));
  for (int64_t i = 0; i < dispatch; i++) mix(a.mode_objects, (uint64_t)Dispatch::get_stack_at(i).get());
  // How deep functorch's transforms are nested stands in no header that comes with libtorch: only whether there are
  // any.
  const DispatchKeySet functorch{DispatchKey::FuncTorchDynamicLayerFrontMode,
                                 DispatchKey::FuncTorchDynamicLayerBackMode};
  const bool transforms = DispatchKeySet(DispatchKeySet::RAW, a.keys_included).has_any(functorch);
  auto& hooks = at::SavedTensorDefaultHooks::get_tls_state();
  if (!hooks.stack.empty()) {
    mix(a.mode_objects, object(hooks.stack.top().first));
    mix(a.mode_objects, object(hooks.stack.top().second));
  }
  a.modes = Packed()(functions, 12)(dispatch, 12)(transforms, 1)(hooks.stack.size(), 12)(
                Functions::get_disabled_state(), 2)(hooks.disabled_error_message.has_value(), 1)(hooks.is_tracing, 1)
                .word;
}
}  // namespace

// Everything that result layouts, and whether there are any, may depend on: inference runs below autograd, autocast and
// all modes, with the kernels of the place.
uint64_t layout_ambient(c10::Device place) {
  auto& c = at::globalContext();
  return Packed()((uint64_t)c10::get_default_dtype_as_scalartype(), 8)(c.deterministicAlgorithms(), 1)(
             c.deterministicAlgorithmsWarnOnly(), 1)(c.userEnabledMkldnn(), 1)(place.is_cuda(), 1)
      .word;
}
}  // namespace ltc

extern "C" int ltc_host_draws(uint64_t* out, LtcError* err) {
  return ltc::guarded(err, [&] {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    at::Tensor state;
    {
      std::lock_guard<std::mutex> lock(generator.mutex());
      state = generator.get_state();
    }
    *out = 0;
    const auto* bytes = state.const_data_ptr<uint8_t>();
    for (int64_t i = 0; i + 8 <= state.numel(); i += 8) {
      uint64_t word;
      std::memcpy(&word, bytes + i, sizeof word);
      ltc::mix(*out, word);
    }
  });
}

extern "C" void ltc_ambient(LtcAmbient* out) {
  using namespace ltc;
  using Backend = at::Float32Backend;
  using Op = at::Float32Op;
  LtcAmbient a{};
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  a.keys_included = keys.included_.raw_repr();
  a.keys_excluded = keys.excluded_.raw_repr();
  // Whether backward takes threads of its own is left out: the first recorded call of a thread changes it, and no
  // value.
  const auto& grad = c10::AutogradState::get_tls_state();
  a.autograd = Packed()(grad.get_grad_mode(), 1)(grad.get_fw_grad_mode(), 1)(grad.get_inference_mode(), 1)(
                   grad.get_view_replay_enabled(), 1)
                   .word;
  using torch::autograd::AnomalyMode;
  a.anomaly = Packed()(AnomalyMode::is_enabled(), 1)(AnomalyMode::should_check_nan(), 1).word;
  using namespace at::autocast;
  a.autocast =
      Packed()(is_autocast_enabled(c10::kCPU), 1)(is_autocast_enabled(kLazy), 1)(is_autocast_cache_enabled(), 1)(
          (uint64_t)get_autocast_dtype(c10::kCPU), 8)((uint64_t)get_autocast_dtype(kLazy), 8)
          .word;
  modes(a);
  a.default_dtype = (uint64_t)c10::get_default_dtype_as_scalartype();
  auto& c = at::globalContext();
  a.determinism = Packed()(c.deterministicAlgorithms(), 1)(c.deterministicAlgorithmsWarnOnly(), 1)(
                      c.deterministicFillUninitializedMemory(), 1)(c.deterministicMkldnn(), 1)
                      .word;
  Packed numerics;
  numerics(c.userEnabledMkldnn(), 1)(c.userEnabledNNPACK(), 1)(c.userEnabledFlashSDP(), 1)(c.userEnabledMathSDP(), 1)(
      c.allowFP16BF16ReductionMathSDP(), 1)(denormals(), 16);
  numerics(c.userEnabledMemEfficientSDP(), 1)(c.userEnabledCuDNNSDP(), 1);
  for (auto op : {Op::MATMUL, Op::CONV, Op::RNN}) numerics((uint64_t)c.float32Precision(Backend::MKLDNN, op), 2);
  a.numerics = numerics.word;
  a.threads = (uint64_t)at::get_num_threads();
  a.registrations = registrations.load(std::memory_order_relaxed);
  a.device = (uint64_t)current_device();
  *out = a;
}

extern "C" void ltc_note_registration(void) { ltc::registrations.fetch_add(1, std::memory_order_relaxed); }
