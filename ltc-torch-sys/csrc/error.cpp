// Errors across the border: libtorch exception <-> class and text.
#include <c10/util/Exception.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cstring>

#include "shim.h"

namespace ltc {
void raise(LtcError& err) {
  if (err.cause) std::rethrow_exception(err.cause);
  switch (err.cls) {
    case LTC_INDEX: TORCH_CHECK_INDEX(false, err.text);
    case LTC_VALUE: TORCH_CHECK_VALUE(false, err.text);
    case LTC_TYPE: TORCH_CHECK_TYPE(false, err.text);
    case LTC_NOT_IMPLEMENTED: TORCH_CHECK_NOT_IMPLEMENTED(false, err.text);
    case LTC_LINALG: TORCH_CHECK_LINALG(false, err.text);
    case LTC_OUT_OF_MEMORY: TORCH_CHECK_WITH(OutOfMemoryError, false, err.text);
    default: TORCH_CHECK(false, err.text);
  }
}
void capture(LtcError* err) noexcept {
  if (!err) return;
  try {
    err->cause = std::current_exception();
    try {
      throw;
    } catch (const c10::IndexError& e) {
      err->cls = LTC_INDEX;
      err->text = e.what_without_backtrace();
    } catch (const c10::ValueError& e) {
      err->cls = LTC_VALUE;
      err->text = e.what_without_backtrace();
    } catch (const c10::TypeError& e) {
      err->cls = LTC_TYPE;
      err->text = e.what_without_backtrace();
    } catch (const c10::NotImplementedError& e) {
      err->cls = LTC_NOT_IMPLEMENTED;
      err->text = e.what_without_backtrace();
    } catch (const c10::LinAlgError& e) {
      err->cls = LTC_LINALG;
      err->text = e.what_without_backtrace();
    } catch (const c10::OutOfMemoryError& e) {
      err->cls = LTC_OUT_OF_MEMORY;
      err->text = e.what_without_backtrace();
    } catch (const c10::Error& e) {
      err->cls = LTC_RUNTIME;
      err->text = e.what_without_backtrace();
    } catch (const std::out_of_range& e) {
      err->cls = LTC_INDEX;
      err->text = e.what();
    } catch (const std::bad_alloc&) {
      err->cls = LTC_OUT_OF_MEMORY;
      err->text = "out of memory";
    } catch (const std::exception& e) {
      err->cls = LTC_RUNTIME;
      err->text = e.what();
    } catch (...) {
      err->cls = LTC_RUNTIME;
      err->text = "unknown C++ exception";
    }
  } catch (...) {
  }
}
BelowAutograd::BelowAutograd()
    : guard(c10::default_included_set, c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView) {}
}  // namespace ltc

extern "C" {
void ltc_error_set(LtcError* err, int32_t cls, const char* text, size_t len) {
  if (!err) return;
  err->cls = cls;
  err->cause = nullptr;
  try {
    err->text.assign(text, len);
  } catch (...) {
  }
}
LtcError* ltc_error_new(void) { return new (std::nothrow) LtcError; }
void ltc_error_free(LtcError* err) { delete err; }
int32_t ltc_error_get(const LtcError* err, const char** text, size_t* len) {
  *text = err->text.data();
  *len = err->text.size();
  return err->cls;
}
void ltc_free(void* p) { free(p); }
}
