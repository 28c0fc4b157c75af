// Kernels of libtorch: their names are registered when its libraries are loaded, and their launches are checked and
// noted. They are not run: tests/cuda/shadow.cpp has their values.
#include <cstdio>
#include <unordered_map>

#include "runtime.h"

namespace dry {
static std::unordered_map<const void*, std::string>& names() {
  static auto* names = new std::unordered_map<const void*, std::string>;
  return *names;
}

struct Configuration {
  Shape shape;
  size_t shared;
  cudaStream_t stream;
};
static thread_local std::vector<Configuration> configurations;

static bool is_valid(const Shape& shape) {
  const auto& [grid, block] = shape;
  const uint64_t threads = (uint64_t)block.x * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.z > 64) return false;
  return grid.x > 0 && grid.x <= 2147483647u && grid.y > 0 && grid.y <= 65535 && grid.z > 0 && grid.z <= 65535;
}

static void note(const std::string& name) {
  State& s = state();
  count(Count::Launches);
  if (s.switches.log) fprintf(stderr, "launch %s\n", name.c_str());
  s.launches.push_back(name);
  if (s.launches.size() > 10000) s.launches.pop_front();
}

cudaError_t launch(const std::string& name, const Shape& shape, Stream& s, Work run) {
  if (!is_valid(shape)) return cudaErrorInvalidConfiguration;
  // Streams belong to a device, and kernels are started on the current one.
  if (s.device != current.device) return cudaErrorInvalidResourceHandle;
  note(name);
  if (state().failing_launch && --state().failing_launch == 0) run = [] { state().lost = cudaErrorIllegalAddress; };
  push(s, run ? std::move(run) : [] {});
  return cudaSuccess;
}
}  // namespace dry

using namespace dry;

extern "C" {
void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  names()[host] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  configurations.push_back({{grid, block}, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  const Configuration c = configurations.back();
  configurations.pop_back();
  *grid = c.shape.grid, *block = c.shape.block, *shared = c.shared, *(cudaStream_t*)stream = c.stream;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* f, dim3 grid, dim3 block, void**, size_t, cudaStream_t s) {
  return entry([&] { return launch(names()[f], {grid, block}, of(s), {}); });
}
// A kernel's handle is the host function that stands for it.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* f) { return *kernel = (cudaKernel_t)f, cudaSuccess; }
cudaError_t __cudaLaunchKernel(cudaKernel_t f, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t s) {
  return cudaLaunchKernel((const void*)f, grid, block, args, shared, s);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* f, void** args) {
  return cudaLaunchKernel(f, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  return entry([&] {
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->binaryVersion = attributes->ptxVersion = state().switches.arch;
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, const void*, int, size_t, unsigned) {
  return entry([&] { return *n = 2, cudaSuccess; });
}
// Variables of the device have memory of their own, which nobody reads.
cudaError_t cudaGetSymbolAddress(void** p, const void*) {
  static std::vector<char> memory(1 << 20, (char)0xff);
  return *p = memory.data(), cudaSuccess;
}
cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) { return cudaSuccess; }
}
