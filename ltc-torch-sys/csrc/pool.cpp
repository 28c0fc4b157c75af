// Memory of programs, kept from run to run. An allocator in front of libtorch's own: large blocks that a thread asks
// for while it runs a program come from here and return here, wherever they are let go; all else goes through
// untouched.
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <bit>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "shim.h"

namespace ltc {
namespace {
constexpr size_t kSmall = 64 << 10;  // below, the system's allocator keeps memory itself
constexpr size_t kHuge = 2 << 20;    // a huge page
constexpr uint64_t kIdle = 256;      // runs after which a block nobody took is given back
// Times a block is taken before its pages shall become huge. Then the kernel makes them so in the background; who
// touches a huge page first waits until all of it is cleared, which a program that runs a few times does not earn back.
constexpr uint32_t kSettled = 8;

thread_local uint32_t t_depth = 0;
thread_local uint64_t t_reused = 0, t_fresh = 0;

// Four sizes per doubling: at most a fifth is wasted.
size_t rounded(size_t n) {
  size_t step = std::bit_floor(n) / 4;
  return (n + step - 1) / step * step;
}

struct Free {
  void* p;
  uint64_t since;
  uint32_t taken;
};
struct Live {
  size_t size;
  uint32_t taken;
};

class Pool final : public at::Allocator {
 public:
  explicit Pool(at::Allocator* system) : system_(system), raw_(system->raw_deleter()) {}

  at::DataPtr allocate(size_t n) override {
    if (t_depth == 0 || n < kSmall) return system_->allocate(n);
    size_t size = rounded(n);
    void* p = take(size);
    return {p, p, &give, at::Device(at::kCPU)};
  }
  // For those who ask without a DataPtr, such as oneDNN: the blocks may be of either kind.
  at::DeleterFnPtr raw_deleter() const override { return raw_ ? &give : nullptr; }
  void copy_data(void* to, const void* from, size_t n) const override { default_copy_data(to, from, n); }

  void set_limit(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    limit_ = bytes;
    shrink(limit_);
  }
  void lock(bool lock) { lock ? mutex_.lock() : mutex_.unlock(); }
  // After a run: gives back what nobody took for long. Returns the bytes that are kept.
  size_t tick() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (++now_ % kIdle == 0)
      for (auto& [size, blocks] : free_) {
        // Blocks are taken from the end: the first are the longest unused.
        size_t idle = 0;
        while (idle < blocks.size() && blocks[idle].since + kIdle < now_) release(blocks[idle++].p, size);
        blocks.erase(blocks.begin(), blocks.begin() + idle);
      }
    return cached_;
  }
  void empty() {
    std::lock_guard<std::mutex> lock(mutex_);
    shrink(0);
  }
  void stats(LtcPoolStats* out) {
    std::lock_guard<std::mutex> lock(mutex_);
    *out = {cached_, live_bytes_, reused_, fresh_, settled_};
  }

 private:
  void* take(size_t size) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto found = free_.find(size);
      if (found != free_.end() && !found->second.empty()) {
        auto [p, since, taken] = found->second.back();
        found->second.pop_back();
        cached_ -= size;
        reused_++;
        t_reused++;
        hold(p, size, taken + 1);
        if (taken + 1 == kSettled && size >= 2 * kHuge) settle(p, size);
        return p;
      }
    }
    void* p = system_->raw_allocate(size);
    std::lock_guard<std::mutex> lock(mutex_);
    fresh_++;
    t_fresh++;
    hold(p, size, 0);
    return p;
  }
  void hold(void* p, size_t size, uint32_t taken) {
    live_[p] = {size, taken};
    live_bytes_ += size;
  }
  void settle(void* p, size_t size) {
    auto from = (reinterpret_cast<uintptr_t>(p) + kHuge - 1) / kHuge * kHuge;
    auto to = (reinterpret_cast<uintptr_t>(p) + size) / kHuge * kHuge;
    madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);  // the kernel may decline
    settled_++;
  }
  static void give(void* p);
  bool take_back(void* p) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = live_.find(p);
    if (found == live_.end()) return false;
    auto [size, taken] = found->second;
    live_.erase(found);
    live_bytes_ -= size;
    cached_ += size;
    free_[size].push_back({p, now_, taken});
    shrink(limit_);
    return true;
  }
  void release(void* p, size_t size) {
    cached_ -= size;
    raw_(p);
  }
  // Gives back blocks, the longest unused first, until at most this much is kept.
  void shrink(size_t bytes) {
    while (cached_ > bytes) {
      std::pair<const size_t, std::vector<Free>>* oldest = nullptr;
      for (auto& entry : free_)
        if (!entry.second.empty() && (!oldest || entry.second.front().since < oldest->second.front().since))
          oldest = &entry;
      if (!oldest) return;
      void* p = oldest->second.front().p;
      oldest->second.erase(oldest->second.begin());
      release(p, oldest->first);
    }
  }

  at::Allocator* system_;
  at::DeleterFnPtr raw_;
  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<Free>> free_;
  std::unordered_map<void*, Live> live_;
  size_t limit_ = 0, cached_ = 0, live_bytes_ = 0;
  uint64_t now_ = 0, reused_ = 0, fresh_ = 0, settled_ = 0;
};

Pool* g_pool = nullptr;  // never freed: tensors may outlive everything

void Pool::give(void* p) {
  if (p && !g_pool->take_back(p)) g_pool->raw_(p);
}
}  // namespace

void pool_lock(bool lock) {
  if (g_pool) g_pool->lock(lock);
}
}  // namespace ltc

using namespace ltc;

extern "C" {
int ltc_pool_limit(size_t bytes, LtcError* err) {
  return guarded(err, [&] {
    static std::mutex once;
    std::lock_guard<std::mutex> lock(once);
    if (!g_pool) {
      if (bytes == 0) return;
      auto* system = c10::GetCPUAllocator();
      if (!system->raw_deleter()) return;  // somebody's allocator that cannot be asked for plain memory
      g_pool = new Pool(system);
      c10::SetCPUAllocator(g_pool, 255);
    }
    g_pool->set_limit(bytes);
  });
}
void ltc_pool_enter(void) {
  if (g_pool && t_depth++ == 0) t_reused = t_fresh = 0;
}
void ltc_pool_leave(uint64_t* reused, uint64_t* fresh, size_t* cached) {
  *reused = t_reused, *fresh = t_fresh, *cached = 0;
  if (!g_pool || t_depth == 0) return;
  if (--t_depth == 0) *cached = g_pool->tick();
}
void ltc_pool_empty(void) {
  if (g_pool) g_pool->empty();
}
void ltc_pool_stats(LtcPoolStats* out) {
  *out = {};
  if (g_pool) g_pool->stats(out);
}
}
