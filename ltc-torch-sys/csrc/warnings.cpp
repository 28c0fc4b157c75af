// Warnings of kernels. Where a program runs nobody listens: they are kept, and given again to who waits for it next,
// where Python has a handler that makes them warnings of its own.
#include <algorithm>

#include "shim.h"

namespace ltc {
namespace {
constexpr size_t kMost = 256;  // of programs nobody waits for
std::mutex g_mutex;
std::vector<c10::Warning> g_kept;
std::atomic<bool> g_any{false};

std::vector<c10::Warning> take() {
  if (C10_LIKELY(!g_any.load(std::memory_order_relaxed))) return {};
  std::lock_guard<std::mutex> lock(g_mutex);
  g_any = false;
  return std::exchange(g_kept, {});
}
}  // namespace

void WarningKeeper::process(const c10::Warning& w) {
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_kept.size() < kMost) g_kept.push_back(w);
  g_any = true;
}
WarningKeeper& warning_keeper() {
  static WarningKeeper keeper;
  return keeper;
}
void give_warnings() {
  for (auto& w : take()) c10::warn(w);
}
}  // namespace ltc

extern "C" void ltc_take_warnings(void* ctx, void (*each)(void* ctx, const char* text, size_t len)) {
  try {
    for (auto& w : ltc::take()) each(ctx, w.msg().data(), w.msg().size());
  } catch (...) {  // no memory for the list
  }
}
