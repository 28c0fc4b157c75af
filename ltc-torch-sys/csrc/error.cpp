// Errors across the border: libtorch exception <-> class and text.
#include <c10/util/Exception.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include <cstring>
#include <utility>

#include "shim.h"

namespace ltc {
// An operator, because libtorch does not know which language its caller waits in: a language binding's kernel raises
// what its signal handler raised.
void interrupted() {
  static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("ltc::_interrupted", "");
  if (!op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd)) return;
  Stack none;
  op.callBoxed(none);
}
void register_interrupted() {
  static torch::Library definition(torch::Library::DEF, "ltc", std::nullopt, __FILE__, __LINE__);
  definition.def("_interrupted() -> ()");
}
void raise(LtcError& err) {
  TORCH_CHECK(err.failure, "out of memory");
  auto& [cls, text, cause] = *err.failure;
  if (cause) std::rethrow_exception(cause);
  switch (cls) {
    case LTC_INDEX: TORCH_CHECK_INDEX(false, text);
    case LTC_VALUE: TORCH_CHECK_VALUE(false, text);
    case LTC_TYPE: TORCH_CHECK_TYPE(false, text);
    case LTC_NOT_IMPLEMENTED: TORCH_CHECK_NOT_IMPLEMENTED(false, text);
    case LTC_LINALG: TORCH_CHECK_LINALG(false, text);
    case LTC_OUT_OF_MEMORY: TORCH_CHECK_WITH(OutOfMemoryError, false, text);
    case LTC_DEVICE_LOST: throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, 0, text);
    case LTC_INTERRUPTED: interrupted(); [[fallthrough]];
    default: TORCH_CHECK(false, text);
  }
}
namespace {
// Whether a GPU does nothing any more for this process after an error of this number of CUDA's: an assertion, an access
// to memory that is not there, a kernel that does not end.
bool is_lost(int32_t code) {
  return code == 214 || code == 700 || code == 702 || code == 710 || (code >= 714 && code <= 719);
}

std::atomic<bool> g_lost{false};

// The words of the first such error; all that is asked of the GPU later fails for the same reason.
std::string lost(const c10::AcceleratorError& e) {
  static std::mutex mutex;
  static auto* first = new std::string;
  std::lock_guard<std::mutex> lock(mutex);
  if (first->empty()) *first = e.what_without_backtrace();
  g_lost = true;
  return *first +
      "\nThe GPU is lost to this process, which has to be started again. Programs run after they are sent: "
      "with LTC_CUDA_SYNC=1 the operator and the line are those of the failure.";
}

// Where a failure is written; null without memory for it.
LtcFailure* room(LtcError* err) noexcept {
  if (err && !err->failure) err->failure = new (std::nothrow) LtcFailure;
  return err ? err->failure : nullptr;
}
}  // namespace
void capture(LtcError* err) noexcept {
  auto* failure = room(err);
  if (!failure) return;
  auto& [cls, text, cause] = *failure;
  try {
    cause = std::current_exception();
    try {
      throw;
    } catch (const c10::IndexError& e) {
      cls = LTC_INDEX;
      text = e.what_without_backtrace();
    } catch (const c10::ValueError& e) {
      cls = LTC_VALUE;
      text = e.what_without_backtrace();
    } catch (const c10::TypeError& e) {
      cls = LTC_TYPE;
      text = e.what_without_backtrace();
    } catch (const c10::NotImplementedError& e) {
      cls = LTC_NOT_IMPLEMENTED;
      text = e.what_without_backtrace();
    } catch (const c10::LinAlgError& e) {
      cls = LTC_LINALG;
      text = e.what_without_backtrace();
    } catch (const c10::OutOfMemoryError& e) {
      cls = LTC_OUT_OF_MEMORY;
      text = e.what_without_backtrace();
    } catch (const c10::AcceleratorError& e) {
      cls = is_lost(e.get_error_code()) ? LTC_DEVICE_LOST : LTC_RUNTIME;
      text = cls == LTC_DEVICE_LOST ? lost(e) : e.what_without_backtrace();
    } catch (const c10::Error& e) {
      cls = LTC_RUNTIME;
      text = e.what_without_backtrace();
    } catch (const std::out_of_range& e) {
      cls = LTC_INDEX;
      text = e.what();
    } catch (const std::bad_alloc&) {
      cls = LTC_OUT_OF_MEMORY;
      text = "out of memory";
    } catch (const std::exception& e) {
      cls = LTC_RUNTIME;
      text = e.what();
    } catch (...) {
      cls = LTC_RUNTIME;
      text = "unknown C++ exception";
    }
  } catch (...) {
  }
}
bool is_device_lost() { return g_lost; }
BelowAutograd::BelowAutograd(bool counts)
    : guard(c10::default_included_set,
            c10::default_excluded_set |
                (counts ? c10::autograd_dispatch_keyset : c10::autograd_dispatch_keyset_with_ADInplaceOrView)) {}
}  // namespace ltc

extern "C" {
void ltc_error_set(LtcError* err, int32_t cls, const char* text, size_t len) {
  auto* failure = ltc::room(err);
  if (!failure) return;
  failure->cls = cls;
  failure->cause = nullptr;
  try {
    failure->text.assign(text, len);
  } catch (...) {
  }
}
void ltc_error_clear(LtcError* err) { delete std::exchange(err->failure, nullptr); }
int32_t ltc_error_get(const LtcError* err, const char** text, size_t* len) {
  static const char none[] = "out of memory";
  *text = err->failure ? err->failure->text.data() : none;
  *len = err->failure ? err->failure->text.size() : sizeof none - 1;
  return err->failure ? err->failure->cls : LTC_OUT_OF_MEMORY;
}
int ltc_error_is_fatal(int32_t code) { return ltc::is_lost(code); }
void ltc_free(void* p) { free(p); }
}
