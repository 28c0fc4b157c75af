// The driver's entry points: the stand-in is loaded as libcuda.so.1 too.
//
// Kernels that are not libtorch's have host versions, and those are run. A module is a shared object of the host: the
// image that `cuModuleLoadData` takes is its path, as text that begins with `/`. For a kernel `f` it has
//     extern "C" const unsigned f_parameters;  // all of eight bytes, as CUDA copies them when the kernel is launched
//     extern "C" const bool f_pointers[];      // which of them are addresses; a GPU has to reach each
//     extern "C" void f_run(const unsigned grid[3], const unsigned block[3], unsigned shared_bytes, void** parameters);
// Images that are no path, such as machine code that libtorch made, are accepted, and launches of their kernels noted.
#include <dlfcn.h>

#include <cstring>

#include "runtime.h"

namespace dry {
using Run = void(const unsigned*, const unsigned*, unsigned, void**);

struct Module {
  void* library = nullptr;  // none of images that are no path
};
struct Function {
  std::string name;
  Run* run = nullptr;
  unsigned parameters = 0;
  const bool* pointers = nullptr;
};

static CUresult load(CUmodule* out, const void* image) {
  Module module;
  if (*(const char*)image == '/') {
    module.library = dlopen((const char*)image, RTLD_NOW | RTLD_LOCAL);
    if (!module.library) return CUDA_ERROR_INVALID_IMAGE;
  }
  *out = (CUmodule) new Module(module);
  return CUDA_SUCCESS;
}

// Functions are kept: queues and graphs may hold them.
static CUresult find(CUfunction* out, const Module& module, const std::string& name) {
  Function f{name};
  if (module.library) {
    f.run = (Run*)dlsym(module.library, (name + "_run").c_str());
    auto* parameters = (const unsigned*)dlsym(module.library, (name + "_parameters").c_str());
    f.pointers = (const bool*)dlsym(module.library, (name + "_pointers").c_str());
    if (!f.run || !parameters || !f.pointers) return CUDA_ERROR_NOT_FOUND;
    f.parameters = *parameters;
  }
  *out = (CUfunction) new Function(f);
  return CUDA_SUCCESS;
}

// Memory of the GPU itself, or pinned memory of the host. Who has no elements may say so by a null.
static bool is_reached(const Function& f, const std::vector<uint64_t>& parameters, int device) {
  for (unsigned i = 0; i < f.parameters; i++) {
    if (!f.pointers[i] || parameters[i] == 0) continue;
    const Block* block = block_of((void*)parameters[i]);
    if (!block || (block->type == cudaMemoryTypeDevice && block->device != device)) return false;
  }
  return true;
}

// The planted mistakes of whoever launches.
static cudaStream_t mistaken(std::vector<uint64_t>& parameters, const Function& f, cudaStream_t stream) {
  static uint64_t memory_of_the_host[1024] = {};
  if (has(Mistake::HostPointer) && f.parameters && f.pointers[0]) parameters[0] = (uint64_t)memory_of_the_host;
  if (!has(Mistake::OtherStream)) return stream;
  static std::map<int, cudaStream_t> others;
  auto [other, is_new] = others.try_emplace(of(stream).device);
  if (is_new) cudaStreamCreateWithFlags(&other->second, cudaStreamNonBlocking);
  return other->second;
}

static Work work_of(const Function& f, const Shape& shape, unsigned shared, int device,
                    std::shared_ptr<std::vector<uint64_t>> held) {
  if (!is_reached(f, *held, device)) return [] { state().lost = cudaErrorIllegalAddress; };
  return [run = f.run, shape, shared, held] {
    std::vector<void*> parameters;
    for (uint64_t& word : *held) parameters.push_back(&word);
    const unsigned grid[] = {shape.grid.x, shape.grid.y, shape.grid.z};
    const unsigned block[] = {shape.block.x, shape.block.y, shape.block.z};
    run(grid, block, shared, parameters.data());
  };
}

static cudaError_t launch(const Function& f, const Shape& shape, unsigned shared, cudaStream_t stream, void** given) {
  if (!f.run) return launch(f.name, shape, of(stream), {});
  auto held = std::make_shared<std::vector<uint64_t>>(f.parameters);
  for (unsigned i = 0; i < f.parameters; i++) memcpy(&(*held)[i], given[i], 8);
  stream = mistaken(*held, f, stream);
  return launch(f.name, shape, of(stream), work_of(f, shape, shared, of(stream).device, held));
}

// A launch in a graph gets other parameters. Names of nodes are their numbers, from 1 on.
static CUresult set(Graph& graph, size_t node, const CUDA_KERNEL_NODE_PARAMS_v1& given) {
  const auto& f = *(const Function*)given.func;
  if (!f.run || node == 0 || node > graph.nodes.size()) return CUDA_ERROR_INVALID_VALUE;
  const Shape shape = {{given.gridDimX, given.gridDimY, given.gridDimZ},
                       {given.blockDimX, given.blockDimY, given.blockDimZ}};
  auto held = std::make_shared<std::vector<uint64_t>>(f.parameters);
  for (unsigned i = 0; i < f.parameters; i++) memcpy(&(*held)[i], given.kernelParams[i], 8);
  graph.nodes[node - 1] = work_of(f, shape, given.sharedMemBytes, current.device, held);
  return CUDA_SUCCESS;
}
}  // namespace dry

using namespace dry;

extern "C" {
CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return *version = CUDA_VERSION, CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int* n) { return (CUresult)cudaGetDeviceCount(n); }
CUresult cuDeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  return (CUresult)cudaDeviceGetAttribute(value, (cudaDeviceAttr)which, device);
}
CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  cudaDeviceProp p;
  const cudaError_t error = cudaGetDeviceProperties(&p, device);
  if (error == cudaSuccess) snprintf(name, size, "%s", p.name);
  return (CUresult)error;
}

// A context is the device's number and 1, since 0 says that there is none.
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return *context = (CUcontext)(uintptr_t)(device + 1), CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  return *flags = 0, *active = 1, CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) { return cuDevicePrimaryCtxRetain(context, current.device); }
CUresult cuCtxSetCurrent(CUcontext context) { return (CUresult)cudaSetDevice((int)(uintptr_t)context - 1); }

CUresult cuGetErrorString(CUresult error, const char** text) {
  return *text = cudaGetErrorString((cudaError_t)error), CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  return *name = cudaGetErrorName((cudaError_t)error), CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) { return load(module, image); }
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return load(module, image);
}
// Queued work may need it.
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction* f, CUmodule module, const char* name) {
  return find(f, *(Module*)module, name);
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute, CUfunction) { return *value = 0, CUDA_SUCCESS; }
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, CUfunction, int, size_t) { return *n = 2, CUDA_SUCCESS; }

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream s, void** parameters, void** extra) {
  if (extra) return CUDA_ERROR_NOT_SUPPORTED;
  return (CUresult)driver_entry(
      [&] { return dry::launch(*(Function*)f, {{gx, gy, gz}, {bx, by, bz}}, shared, s, parameters); });
}

// CUDA's headers rename it for callers of a later version; ltc asks for that of CUDA 12 by name.
#undef cuGraphExecKernelNodeSetParams
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return (CUresult)driver_entry([&] { return (cudaError_t)set(*(Graph*)executable, (size_t)node, *parameters); });
}

// libtorch finds the driver's functions by name.
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** f, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *f = dlsym(RTLD_DEFAULT, name);
  if (result) *result = *f ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
}
