// Memory of the devices and pinned memory are mappings of the host. Fresh memory is all ones, which is NaN in every
// floating type and an invalid index: whoever reads what nobody wrote sees it.
#include <sys/mman.h>

#include <cstring>

#include "runtime.h"

namespace dry {
const Block* block_of(const void* p) {
  auto& blocks = state().blocks;
  auto next = blocks.upper_bound((char*)p);
  if (next == blocks.begin()) return nullptr;
  auto& [begin, block] = *--next;
  return (char*)p < begin + block.size ? &block : nullptr;
}

static bool is_device(const void* p) {
  const Block* block = block_of(p);
  return block && block->type == cudaMemoryTypeDevice;
}

static cudaError_t allocate(void** p, size_t n, cudaMemoryType type) {
  State& s = state();
  Device& device = s.devices[current.device];
  *p = nullptr;
  if (n == 0) return cudaSuccess;
  if (type == cudaMemoryTypeDevice) {
    count(Count::Allocations);
    const bool fails = s.failing_allocation && --s.failing_allocation == 0;
    if (fails || n > s.switches.memory - device.used) return cudaErrorMemoryAllocation;
  }
  void* at = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return cudaErrorMemoryAllocation;
  memset(at, 0xff, n);
  if (type == cudaMemoryTypeDevice) device.used += n;
  s.blocks[(char*)at] = {n, type, current.device};
  *p = at;
  return cudaSuccess;
}

// CUDA waits for all work that may use memory before it gives it back.
static cudaError_t release(void* p) {
  if (!p) return cudaSuccess;
  State& s = state();
  auto found = s.blocks.find((char*)p);
  if (found == s.blocks.end() || !found->second.ours) return cudaErrorInvalidValue;
  count(Count::Frees);
  const Block block = found->second;
  for (int i = 0; i < (int)s.devices.size(); i++)
    if (block.type == cudaMemoryTypeHost || block.device == i) drain_device(i);
  if (block.type == cudaMemoryTypeDevice) s.devices[block.device].used -= block.size;
  s.blocks.erase(found);
  munmap(p, block.size);
  return cudaSuccess;
}

// Pageable memory is staged before the call returns, or written before it does; pinned memory is read and written
// whenever the stream gets there.
cudaError_t copy(void* to, const void* from, size_t n, Stream& s) {
  const bool from_pageable = !block_of(from), to_pageable = !block_of(to);
  if (s.capture && (from_pageable || to_pageable)) return refuse(*s.capture);
  const bool from_device = is_device(from), to_device = is_device(to);
  if (to_device && !from_device) count(Count::BytesUp, n);
  if (from_device && !to_device) count(Count::BytesDown, n);
  if (from_pageable) {
    auto staged = std::make_shared<std::string>((const char*)from, n);
    push(s, [=] { memcpy(to, staged->data(), n); });
  } else push(s, [=] { memmove(to, from, n); });
  if (to_pageable) {
    count(Count::BlockingCopies);
    drain(s, s.pushed);
  }
  return cudaSuccess;
}

static cudaError_t copy_and_wait(void* to, const void* from, size_t n) {
  Stream& s = of(nullptr);
  const cudaError_t error = copy(to, from, n, s);
  if (block_of(to)) count(Count::BlockingCopies);
  drain(s, s.pushed);
  return error;
}
}  // namespace dry

using namespace dry;

extern "C" {
cudaError_t cudaMalloc(void** p, size_t n) {
  return unsafe_entry([&] { return allocate(p, n, cudaMemoryTypeDevice); });
}
cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t) { return cudaMalloc(p, n); }
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned) {
  return unsafe_entry([&] { return allocate(p, n, cudaMemoryTypeHost); });
}
cudaError_t cudaFree(void* p) {
  return unsafe_entry([&] { return release(p); });
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return cudaFree(p); }
cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }

cudaError_t cudaHostRegister(void* p, size_t n, unsigned) {
  return unsafe_entry([&] {
    if (block_of(p)) return cudaErrorHostMemoryAlreadyRegistered;
    state().blocks[(char*)p] = {n, cudaMemoryTypeHost, current.device, false};
    return cudaSuccess;
  });
}
cudaError_t cudaHostUnregister(void* p) {
  return unsafe_entry([&] {
    auto found = state().blocks.find((char*)p);
    if (found == state().blocks.end() || found->second.ours) return cudaErrorHostMemoryNotRegistered;
    drain_device(found->second.device);
    state().blocks.erase(found);
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return entry([&] {
    *total = state().switches.memory;
    *free = *total - state().devices[current.device].used;
    return cudaSuccess;
  });
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  return entry([&] {
    *attributes = {};
    const Block* block = block_of(p);
    attributes->type = block ? block->type : cudaMemoryTypeUnregistered;
    attributes->device = block ? block->device : cudaInvalidDeviceId;
    attributes->hostPointer = (void*)p;
    if (block) attributes->devicePointer = (void*)p;
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind, cudaStream_t stream) {
  return entry([&] { return copy(to, from, n, of(stream)); });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t n, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, n, cudaMemcpyDefault, stream);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream) {
  return entry([&] {
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < height && error == cudaSuccess; i++)
      error = copy((char*)to + i * to_pitch, (const char*)from + i * from_pitch, width, of(stream));
    return error;
  });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind) {
  return unsafe_entry([&] { return copy_and_wait(to, from, n); });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t stream) {
  return entry([&] {
    push(of(stream), [=] { memset(to, value, n); });
    return cudaSuccess;
  });
}
cudaError_t cudaMemset(void* to, int value, size_t n) { return cudaMemsetAsync(to, value, n, nullptr); }
}
