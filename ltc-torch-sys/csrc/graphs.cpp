// CUDA graphs need two things of libtorch: a stream on which a program is captured rather than run, and memory that
// stays the graph's between replays. The stream is not the one that programs run on, because other threads put work
// there, which would be captured, too. Memory that is allocated during a capture comes from a pool of the allocator's
// that is kept for graphs. One pool for each GPU is enough: replays follow each other on one stream, and no graph
// expects to find in the pool what it left there.
#include <ATen/ATen.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <map>
#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
#include <c10/cuda/CUDACachingAllocator.h>
#define HAS_CUDA_ALLOCATOR 1
#endif

#include "shim.h"

namespace ltc {
#ifdef HAS_CUDA_ALLOCATOR
namespace {
using Allocator = c10::cuda::CUDACachingAllocator::CUDAAllocator;

// Numbers of the pools that libtorch makes count up from 1.
c10::MempoolId_t pool_of(c10::Device device) { return {0x4c54430000ull + device.index(), 0}; }

// CUDA's headers may be absent, and the functions are not linked; all the allocator needs to know is the stream.
struct TakingDown {
  const c10::Device device;
  const OnStream stream;
  const OnPlace on;
  Allocator* const allocator = static_cast<Allocator*>(c10::getDeviceAllocator(c10::kCUDA));
  explicit TakingDown(c10::Device place) : device(place), stream(place), on(place) {
    const auto handle = static_cast<cudaStream_t>(stream.stream.native_handle());
    allocator->beginAllocateToPool(device.index(), pool_of(device), [handle](cudaStream_t s) { return s == handle; });
#if TORCH_VERSION_MINOR >= 13
    allocator->markCaptureBegin(device.index());
#endif
  }
  ~TakingDown() {
#if TORCH_VERSION_MINOR >= 13
    allocator->markCaptureEnd(device.index());
#endif
    allocator->endAllocateToPool(device.index(), pool_of(device));
    // A call that was refused during the capture is still this thread's last CUDA error. It is cleared, lest libtorch
    // take it for an error of the next launch.
    using LastError = cudaError_t();
    if (auto* last_error = reinterpret_cast<LastError*>(dlsym(RTLD_DEFAULT, "cudaGetLastError"))) last_error();
  }
};
}  // namespace
#endif
}  // namespace ltc

using namespace ltc;

extern "C" {
#ifdef HAS_CUDA_ALLOCATOR
struct LtcTakingDown {
  TakingDown inner;
};
int ltc_graph_enter(int32_t place, LtcTakingDown** out, LtcError* err) {
  return guarded(err, [&] { *out = new LtcTakingDown{TakingDown(place_of(place))}; });
}
void ltc_graph_leave(LtcTakingDown* entered) { delete entered; }
#else
int ltc_graph_enter(int32_t, LtcTakingDown**, LtcError* err) {
  return guarded(err, [&] { TORCH_CHECK(false, "built beside a libtorch without CUDA's headers"); });
}
void ltc_graph_leave(LtcTakingDown*) {}
#endif
int ltc_tensor_over(void* memory, const LtcDims* d, int32_t place, void** out, LtcError* err) {
  return guarded(err, [&] {
    const IntArrayRef sizes{d->sizes, d->rank}, strides{d->strides, d->rank};
    const auto options = at::TensorOptions((ScalarType)d->dtype).device(place_of(place));
    *out = new Tensor(
        at::for_blob(memory, sizes).strides(strides).options(options).target_device(place_of(place)).make_tensor());
  });
}
int ltc_tensors_copy(int32_t place, const void* const* to, const void* const* from, size_t n, LtcError* err) {
  return guarded(err, [&] {
    BelowAutograd below;
    OnPlace on(place_of(place));
    // One kernel copies many of a dtype.
    std::map<ScalarType, std::pair<std::vector<Tensor>, std::vector<Tensor>>> lists;
    for (size_t i = 0; i < n; i++) {
      const auto &into = *static_cast<const Tensor*>(to[i]), &of = *static_cast<const Tensor*>(from[i]);
      auto& list = lists[into.scalar_type()];
      list.first.push_back(into);
      list.second.push_back(of);
    }
    for (auto& [dtype, list] : lists) at::_foreach_copy_(list.first, list.second, /*non_blocking=*/true);
  });
}
}
