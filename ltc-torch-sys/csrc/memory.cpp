// The lazy device's allocator: addresses that stand for memory, and what libtorch asks of a device's allocator besides.
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <map>

#include "shim.h"

namespace ltc {
namespace {
using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatType;

// Unique addresses so that data_ptr() identity works. They lie in a part of the address space the kernel does not hand
// out by itself; nothing is mapped there, so touching one faults instead of corrupting.
constexpr uint64_t kFakeBase = 0x400000000000ull, kFakeSpan = 1ull << 44;
std::atomic<uint64_t> g_next{0};

LtcMemory memory_of(c10::DeviceIndex device) {
  LtcMemory memory{};
  LtcError err;
  check(V.memory(V.ctx, device, &memory, &err), err);
  return memory;
}

// Memory belongs to programs, which take and keep it off this allocator; its numbers are told here.
struct LazyAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t n) override { return fake_data(n, current_device()); }
  c10::DeleterFnPtr raw_deleter() const override {
    return [](void*) {};
  }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK(false, "ltc: memory of a lazy tensor cannot be copied by address");
  }
  bool initialized() override { return V.ctx != nullptr; }
  // A value's memory is let go when the last program that reads it has run.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  void emptyCache(c10::MempoolId_t) override {
    LtcError err;
    check(V.memory_release(V.ctx, &err), err);
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const LtcMemory memory = memory_of(device);
    c10::CachingDeviceAllocator::DeviceStats stats;
    const auto all = static_cast<size_t>(StatType::AGGREGATE);
    Stat& used = stats.allocated_bytes[all];
    used.current = (int64_t)memory.used;
    used.peak = (int64_t)memory.peak;
    used.allocated = (int64_t)memory.taken;
    used.freed = (int64_t)memory.freed;
    stats.active_bytes = stats.requested_bytes = stats.allocated_bytes;
    stats.reserved_bytes[all].current = (int64_t)memory.reserved;
    stats.reserved_bytes[all].peak = (int64_t)memory.reserved_peak;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    LtcError err;
    check(V.memory_reset_sums(V.ctx, device, &err), err);
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    LtcError err;
    check(V.memory_reset_peaks(V.ctx, device, &err), err);
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const LtcMemory memory = memory_of(device);
    TORCH_CHECK_NOT_IMPLEMENTED(memory.total, "ltc: this device does not tell how much memory it has");
    return {memory.available, memory.total};
  }
};

std::mutex g_pinned;

// Pinned memory is plain: copies from it are as fast as from any other. It is told apart from that, as programs insist
// on what they asked for (DDP's bookkeeping of unused parameters does).
struct PinnedAllocator final : c10::Allocator {
  // Ends of what is allocated, by its beginning; under `g_pinned`.
  static std::map<const char*, const char*>& pieces() {
    static auto* all = new std::map<const char*, const char*>;
    return *all;
  }
  static void free(void* context) {
    std::unique_ptr<c10::DataPtr> memory(static_cast<c10::DataPtr*>(context));
    std::lock_guard<std::mutex> lock(g_pinned);
    pieces().erase(static_cast<const char*>(memory->get()));
  }
  c10::DataPtr allocate(size_t n) override {
    auto memory = std::make_unique<c10::DataPtr>(c10::GetAllocator(c10::kCPU)->allocate(n));
    auto* begin = static_cast<char*>(memory->get());
    if (begin) {
      std::lock_guard<std::mutex> lock(g_pinned);
      pieces()[begin] = begin + n;
    }
    return {begin, memory.release(), &free, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, std::size_t n) const override { default_copy_data(to, from, n); }
};
}  // namespace

c10::Allocator* pinned_allocator() {
  static auto* a = new PinnedAllocator;
  return a;
}
std::mutex& pinned_mutex() { return g_pinned; }
bool is_pinned(const void* p) {
  auto* at = static_cast<const char*>(p);
  {
    std::lock_guard<std::mutex> lock(g_pinned);
    auto after = PinnedAllocator::pieces().upper_bound(at);
    if (after != PinnedAllocator::pieces().begin() && at < std::prev(after)->second) return true;
  }
  // Where there is a GPU, libtorch has CUDA pin what is asked for without a device's name.
  return at::globalContext().hasCUDA() && at::detail::getCUDAHooks().isPinnedPtr(p);
}
c10::Allocator* lazy_allocator() {
  static LazyAllocator a;
  return &a;
}
c10::DataPtr fake_data(size_t n, c10::DeviceIndex device) {
  void* p = nullptr;
  if (n)
    p = (void*)(kFakeBase + (g_next.fetch_add((n + 63) & ~size_t(63), std::memory_order_relaxed) & (kFakeSpan - 1)));
  return {p, c10::Device(kLazy, device)};
}
}  // namespace ltc
