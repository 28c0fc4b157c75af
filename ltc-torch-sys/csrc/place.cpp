// Places: where the values of a lazy device are, on the CPU or on a GPU. Everything here goes through libtorch's
// interfaces for any device, so that nothing of CUDA is needed to build it, or to run it without a GPU.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <dlfcn.h>
#include <unistd.h>

#include <map>

#include "shim.h"

namespace ltc {
namespace {
using c10::impl::DeviceGuardImplInterface;

const DeviceGuardImplInterface* cuda() { return c10::impl::getDeviceGuardImpl(c10::kCUDA); }

// Included while something is put at a place: tests without a GPU have values of kernels computed under it.
DispatchKey g_key = DispatchKey::Undefined;

// CUDA's state does not come along into a forked child.
pid_t g_process = 0;
void check_process() {
  TORCH_CHECK(g_process == getpid(),
              "a GPU cannot be used in a forked process: start it by spawn, or make its tensors on the CPU");
}

// The two streams of ours on a device: the first is where programs, transfers and draws are put in the order of the
// program, the second where programs are taken down (graphs.cpp). The pool's streams are given in turn.
c10::Stream stream_of_pool(c10::Device device, bool second) {
  static std::mutex mutex;
  static auto* streams = new std::map<c10::DeviceIndex, std::pair<c10::Stream, c10::Stream>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = streams->find(device.index());
  if (found == streams->end()) {
    const auto a = cuda()->getStreamFromGlobalPool(device, false), b = cuda()->getStreamFromGlobalPool(device, false);
    found = streams->emplace(device.index(), std::pair(a, b)).first;
  }
  return second ? found->second.second : found->second.first;
}

thread_local std::optional<c10::Stream> t_stream;
c10::Stream stream_of(c10::Device device) {
  return t_stream && t_stream->device() == device ? *t_stream : stream_of_pool(device, false);
}

// Memory of the host that a device reads and writes by itself. A device that is lost does not take it back: that would
// be an error in a destructor.
struct Staging {
  Tensor memory;
  const int failing = std::uncaught_exceptions();
  explicit Staging(const Tensor& like)
      : memory(at::detail::empty_strided_generic(like.sizes(), like.strides(), at::getHostAllocator(c10::kCUDA),
                                                 DispatchKeySet(DispatchKey::CPU), like.scalar_type())) {}
  ~Staging() {
    if (std::uncaught_exceptions() > failing) new Tensor(std::move(memory));
  }
};

// Values up to this size are staged, so that nobody waits for their transfer; larger ones would keep as much memory of
// the host from the system as they have themselves.
constexpr size_t kStaged = size_t(16) << 20;
bool is_staged(const Tensor& t) { return t.numel() > 0 && t.numel() * t.itemsize() <= kStaged; }

// What was done to a tensor on the current stream comes before what is put on `stream`, which may read it later than
// its holder lets it go.
void wait_for(const Tensor& t, const c10::Stream& stream) {
  const auto current = cuda()->getStream(t.device());
  if (current == stream) return;
  c10::Event made(c10::kCUDA);
  made.record(current);
  made.block(stream);
  cuda()->recordDataPtrOnStream(t.storage().data_ptr(), stream);
}

const std::string& library_folder() {
  static const auto* folder = [] {
    Dl_info torch;
    const bool known = dladdr(reinterpret_cast<void*>(&at::globalContext), &torch) && torch.dli_fname;
    const std::string path = known ? torch.dli_fname : "";
    return new std::string(path.substr(0, path.rfind('/')));
  }();
  return *folder;
}

// The library that carries CUDA lies beside the one that carries the CPU; programs in Rust load only that one.
void load_library() {
  const std::string path = library_folder() + "/libtorch_cuda.so";
  TORCH_CHECK(dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL), "this libtorch has no CUDA: ", dlerror());
}
}  // namespace

c10::Device place_of(int32_t code) {
  return code < 0 ? c10::Device(c10::kCPU) : c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(code));
}
c10::Device place_of_device(c10::DeviceIndex lazy) { return place_of(V.places[lazy]); }

OnPlace::OnPlace(c10::Device place) {
  if (place.is_cpu()) return;
  check_process();
  if (g_key != DispatchKey::Undefined) key.emplace(g_key);
  device = cuda()->exchangeDevice(place);
  stream = cuda()->exchangeStream(stream_of(place));
}
OnPlace::~OnPlace() {
  if (!device) return;
  cuda()->exchangeStream(*stream);
  cuda()->uncheckedSetDevice(*device);
}

OnStream::OnStream(c10::Device place) : stream(stream_of_pool(place, true)) { t_stream = stream; }
OnStream::~OnStream() { t_stream.reset(); }

at::Generator generator_at(c10::Device place, uint64_t seed) {
  if (place.is_cpu()) return at::detail::createCPUGenerator(seed);
  at::Generator made = at::detail::getCUDAHooks().getNewGenerator(place.index());
  made.set_current_seed(seed);
  return made;
}
at::Generator default_generator_at(c10::Device place) {
  return place.is_cpu() ? at::detail::getDefaultCPUGenerator()
                        : at::detail::getCUDAHooks().getDefaultGenerator(place.index());
}

namespace {
// Elements that lie upon each other are moved as the memory that they share.
template <class F> Tensor moved(const Tensor& t, F move) {
  if (t.is_non_overlapping_and_dense() || at::has_internal_overlap(t) == at::MemOverlap::No) return move(t);
  const Tensor memory = t.as_strided({storage_elements(t.sizes(), t.strides())}, {1}, t.storage_offset());
  return move(memory).as_strided(t.sizes(), t.strides(), 0);
}

Tensor to_cpu(const Tensor& t) {
  Tensor host = at::detail::empty_strided_cpu(t.sizes(), t.strides(), t.scalar_type());
  if (!is_staged(t)) return host.copy_(t);
  Staging staging(t);
  staging.memory.copy_(t, /*non_blocking=*/true);
  c10::Event there(c10::kCUDA);
  there.record(stream_of(t.device()));
  there.synchronize();
  return host.copy_(staging.memory);
}
}  // namespace

Tensor at_place(const Tensor& t, c10::Device place) {
  BelowAutograd guard;
  if (place.is_cpu()) {
    if (t.device().is_cpu()) return t;
    OnPlace on(t.device());
    return moved(t, to_cpu);
  }
  const bool is_host = t.device().is_cpu();
  TORCH_CHECK_NOT_IMPLEMENTED(is_host || t.is_cuda(), "ltc: values on ", t.device(), " cannot go to ", place);
  if (!is_host) wait_for(t, stream_of(place));
  if (t.device() == place) return t;
  OnPlace on(place);
  return moved(t, [&](const Tensor& t) {
    Tensor made = at::empty_strided(t.sizes(), t.strides(), t.options().device(place).pinned_memory(false));
    if (!is_host || !is_staged(t)) return made.copy_(t);
    Staging staging(t);
    return made.copy_(staging.memory.copy_(t), /*non_blocking=*/true);
  });
}
}  // namespace ltc

using namespace ltc;

extern "C" {
int ltc_place_check(int32_t place, LtcError* err) {
  return guarded(err, [&] {
    const c10::Device device = place_of(place);
    if (device.is_cpu()) return;
    load_library();
    TORCH_CHECK(c10::impl::hasDeviceGuardImpl(c10::kCUDA), "this libtorch has no CUDA");
    const int count = cuda()->deviceCount();
    TORCH_CHECK(device.index() < count, "there is no ", device, ": CUDA has ", count, " device", count == 1 ? "" : "s",
                count ? "" : " here (a driver and a GPU are needed)");
    at::globalContext().lazyInitDevice(c10::kCUDA);
    g_process = getpid();
  });
}
int ltc_place_wait(int32_t place, LtcError* err) {
  return guarded(err, [&] {
    const c10::Device device = place_of(place);
    if (device.is_cpu()) return;
    check_process();
    stream_of(device).synchronize();
  });
}
struct LtcEntered {
  OnPlace on;
};
int ltc_place_enter(int32_t place, LtcEntered** out, LtcError* err) {
  return guarded(err, [&] { *out = new LtcEntered{OnPlace(place_of(place))}; });
}
void ltc_place_leave(LtcEntered* entered) { delete entered; }
void* ltc_place_stream(int32_t place) {
  try {
    const c10::Device device = place_of(place);
    return device.is_cpu() ? nullptr : stream_of(device).native_handle();
  } catch (...) {
    return nullptr;
  }
}
const char* ltc_library_folder(void) { return library_folder().empty() ? nullptr : library_folder().c_str(); }

// An event behind all that was put at a place so far.
struct LtcFence {
  c10::Event event;
};
int ltc_fence_new(int32_t place, LtcFence** out, LtcError* err) {
  return guarded(err, [&] {
    const c10::Device device = place_of(place);
    OnPlace on(device);
    auto fence = std::make_unique<LtcFence>(c10::Event(device.type(), c10::EventFlag::BACKEND_DEFAULT));
    fence->event.record(stream_of(device));
    *out = fence.release();
  });
}
void ltc_fence_free(LtcFence* fence) {
  if (!is_device_lost()) delete fence;
}
int ltc_fence_passed(const LtcFence* fence, int* passed, LtcError* err) {
  return guarded(err, [&] { *passed = fence->event.query(); });
}
int ltc_fence_wait(const LtcFence* fence, LtcError* err) {
  return guarded(err, [&] { fence->event.synchronize(); });
}
int ltc_fence_seconds(const LtcFence* from, const LtcFence* to, double* seconds, LtcError* err) {
  return guarded(err, [&] { *seconds = from->event.elapsedTime(to->event) * 1e-3; });
}
int ltc_place_memory(int32_t place, LtcPlaceMemory* out, LtcError* err) {
  return guarded(err, [&] {
    const c10::Device device = place_of(place);
    *out = {};
    if (device.is_cpu()) return;
    OnPlace on(device);
    auto* allocator = c10::getDeviceAllocator(c10::kCUDA);
    const auto stats = allocator->getDeviceStats(device.index());
    const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    out->cached = stats.reserved_bytes[all].current - stats.allocated_bytes[all].current;
    const auto [available, total] = allocator->getMemoryInfo(device.index());
    out->available = available;
    out->total = total;
  });
}
int ltc_place_release(int32_t place, LtcError* err) {
  return guarded(err, [&] {
    if (place_of(place).is_cpu()) return;
    c10::getDeviceAllocator(c10::kCUDA)->emptyCache();
    at::getHostAllocator(c10::kCUDA)->empty_cache();
  });
}
int ltc_place_key(const char* name, LtcError* err) {
  return guarded(err, [&] { g_key = c10::parseDispatchKey(name); });
}
int ltc_tensor_place(const void* t) {
  const c10::Device device = static_cast<const Tensor*>(t)->device();
  return device.is_cpu() ? -1 : device.is_cuda() ? device.index() : -2;
}
int ltc_tensor_at_place(const void* t, int32_t place, void** out, LtcError* err) {
  return guarded(err, [&] { *out = new Tensor(at_place(*static_cast<const Tensor*>(t), place_of(place))); });
}
int ltc_tensor_new_at(const LtcDims* d, int32_t place, void** out, LtcError* err) {
  return guarded(err, [&] {
    const IntArrayRef sizes{d->sizes, d->rank}, strides{d->strides, d->rank};
    const auto dtype = (ScalarType)d->dtype;
    const c10::Device device = place_of(place);
    OnPlace on(device);
    // What `at::empty_strided` ends in; a program's results are many, and the dispatcher would only find the way here.
    *out = new Tensor(device.is_cpu() ? Tensor(at::detail::empty_strided_cpu(sizes, strides, dtype))
                                      : at::empty_strided(sizes, strides, at::TensorOptions(dtype).device(device)));
  });
}
}
