// The devices that are pretended, their properties, and the words for errors.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime.h"

namespace dry {
// What host code asks of a chip when it chooses kernels and sizes of launches.
struct Chip {
  int arch, processors, threads, blocks;  // multiprocessors, and the most threads and blocks of one
  size_t shared, shared_of_block, l2;     // bytes of one multiprocessor, the most a block may ask for, of the chip
};
constexpr size_t Ki = 1 << 10, Mi = 1 << 20;
static const Chip chips[] = {
    {75, 40, 1024, 16, 64 * Ki, 64 * Ki, 4 * Mi},     {80, 108, 2048, 32, 164 * Ki, 163 * Ki, 40 * Mi},
    {86, 84, 1536, 16, 100 * Ki, 99 * Ki, 6 * Mi},    {89, 128, 1536, 24, 100 * Ki, 99 * Ki, 72 * Mi},
    {90, 132, 2048, 32, 228 * Ki, 227 * Ki, 50 * Mi}, {100, 148, 2048, 32, 228 * Ki, 227 * Ki, 126 * Mi},
    {120, 170, 1536, 24, 100 * Ki, 99 * Ki, 96 * Mi},
};

static const Chip& chip() {
  static const Chip* found =
      std::find_if(std::begin(chips), std::end(chips), [](const Chip& c) { return c.arch == state().switches.arch; });
  if (found == std::end(chips)) {
    fprintf(stderr, "DRY_CUDA_ARCH=%d: no such chip in tests/cuda/devices.cpp\n", state().switches.arch);
    abort();
  }
  return *found;
}

static cudaDeviceProp properties(int device) {
  const Chip& c = chip();
  cudaDeviceProp p = {};
  snprintf(p.name, sizeof p.name, "stand-in for sm_%d", c.arch);
  memcpy(p.uuid.bytes, "stand-in", 8);
  p.uuid.bytes[15] = (char)device;
  p.major = c.arch / 10, p.minor = c.arch % 10;
  p.totalGlobalMem = state().switches.memory;
  p.multiProcessorCount = c.processors;
  p.maxThreadsPerMultiProcessor = c.threads;
  p.maxBlocksPerMultiProcessor = c.blocks;
  p.sharedMemPerMultiprocessor = c.shared;
  p.sharedMemPerBlockOptin = c.shared_of_block;
  p.sharedMemPerBlock = 48 * Ki, p.reservedSharedMemPerBlock = Ki;
  p.l2CacheSize = (int)c.l2;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.maxThreadsPerBlock = 1024;
  const int threads[] = {1024, 1024, 64}, grid[] = {2147483647, 65535, 65535};
  std::copy_n(threads, 3, p.maxThreadsDim), std::copy_n(grid, 3, p.maxGridSize);
  p.pciBusID = device + 1;
  p.totalConstMem = 64 * Ki;
  p.textureAlignment = 512;
  p.asyncEngineCount = 3;
  p.concurrentKernels = p.unifiedAddressing = p.canMapHostMemory = p.cooperativeLaunch = 1;
  p.memoryBusWidth = 5120;
  return p;
}

// Attributes that libtorch asks for one by one; all others are 0.
static int attribute(cudaDeviceAttr which, int device) {
  const cudaDeviceProp p = properties(device);
  switch (which) {
    case cudaDevAttrComputeCapabilityMajor: return p.major;
    case cudaDevAttrComputeCapabilityMinor: return p.minor;
    case cudaDevAttrMultiProcessorCount: return p.multiProcessorCount;
    case cudaDevAttrWarpSize: return p.warpSize;
    case cudaDevAttrMaxThreadsPerBlock: return p.maxThreadsPerBlock;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return p.maxThreadsPerMultiProcessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return p.maxBlocksPerMultiProcessor;
    case cudaDevAttrMaxSharedMemoryPerBlock: return (int)p.sharedMemPerBlock;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return (int)p.sharedMemPerBlockOptin;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return (int)p.sharedMemPerMultiprocessor;
    case cudaDevAttrReservedSharedMemoryPerBlock: return (int)p.reservedSharedMemPerBlock;
    case cudaDevAttrMaxRegistersPerBlock: return p.regsPerBlock;
    case cudaDevAttrMaxRegistersPerMultiprocessor: return p.regsPerMultiprocessor;
    case cudaDevAttrMaxBlockDimX: return p.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY: return p.maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ: return p.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX: return p.maxGridSize[0];
    case cudaDevAttrMaxGridDimY: return p.maxGridSize[1];
    case cudaDevAttrMaxGridDimZ: return p.maxGridSize[2];
    case cudaDevAttrL2CacheSize: return p.l2CacheSize;
    case cudaDevAttrCooperativeLaunch: return p.cooperativeLaunch;
    case cudaDevAttrUnifiedAddressing: return p.unifiedAddressing;
    case cudaDevAttrPciBusId: return p.pciBusID;
    default: return 0;
  }
}

static bool exists(int device) { return 0 <= device && device < state().switches.devices; }

struct Words {
  cudaError_t error;
  const char *name, *text;
};
#define WORDS(error, text) {error, #error, text}
static const Words words[] = {
    WORDS(cudaSuccess, "no error"),
    WORDS(cudaErrorInvalidValue, "invalid argument"),
    WORDS(cudaErrorMemoryAllocation, "out of memory"),
    WORDS(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    WORDS(cudaErrorInvalidDevice, "invalid device ordinal"),
    WORDS(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    WORDS(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    WORDS(cudaErrorNotReady, "device not ready"),
    WORDS(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    WORDS(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    WORDS(cudaErrorAssert, "device-side assert triggered"),
    WORDS(cudaErrorNotSupported, "operation not supported"),
    WORDS(cudaErrorHostMemoryAlreadyRegistered, "part or all of the memory is registered already"),
    WORDS(cudaErrorHostMemoryNotRegistered, "the memory is not registered"),
    WORDS(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    WORDS(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    WORDS(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    WORDS(cudaErrorStreamCaptureMerge, "operation would merge two captures"),
    WORDS(cudaErrorStreamCaptureUnmatched, "capture was not begun in this stream"),
    WORDS(cudaErrorStreamCaptureUnjoined, "a forked stream was not joined to the capture's first"),
    WORDS(cudaErrorStreamCaptureIsolation, "dependency on uncaptured work in another stream"),
    WORDS(cudaErrorCapturedEvent, "operation not permitted on an event of a capturing stream"),
    WORDS(cudaErrorStreamCaptureWrongThread, "capture was begun by another thread"),
};

static const Words& words_of(cudaError_t error) {
  static const Words unknown = {cudaErrorUnknown, "cudaErrorUnknown",
                                "an error without words in tests/cuda/devices.cpp"};
  for (const Words& w : words)
    if (w.error == error) return w;
  return unknown;
}
}  // namespace dry

using namespace dry;

extern "C" {
cudaError_t cudaGetDeviceCount(int* n) {
  return host_entry([&] { return *n = state().switches.devices, cudaSuccess; });
}
cudaError_t cudaGetDevice(int* device) {
  return host_entry([&] { return *device = current.device, cudaSuccess; });
}
cudaError_t cudaSetDevice(int device) {
  return host_entry([&] { return exists(device) ? (current.device = device, cudaSuccess) : cudaErrorInvalidDevice; });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  return host_entry([&] { return exists(device) ? (*p = properties(device), cudaSuccess) : cudaErrorInvalidDevice; });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  return host_entry(
      [&] { return exists(device) ? (*value = attribute(which, device), cudaSuccess) : cudaErrorInvalidDevice; });
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device) {
  return host_entry([&] { return snprintf(id, size, "0000:%02x:00.0", device + 1), cudaSuccess; });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  return host_entry([&] { return *can = 0, cudaSuccess; });
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return host_entry([] { return cudaErrorPeerAccessUnsupported; });
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

// A lost device stays lost.
cudaError_t cudaGetLastError() {
  if (state().lost != cudaSuccess) return state().lost;
  return std::exchange(current.error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() { return state().lost != cudaSuccess ? state().lost : current.error; }
const char* cudaGetErrorName(cudaError_t error) { return words_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return words_of(error).text; }
}
