// Streams are queues. Work is run as late as CUDA allows, when somebody waits for it, or at once
// (DRY_CUDA_ORDER=early). A query that says "not ready" runs one work, so that polling comes to an end.
#include <chrono>

#include "dry_cuda.h"
#include "runtime.h"

namespace dry {
Stream& of(cudaStream_t stream) {
  // The handles of the legacy stream, and of that of a thread, which libtorch does not use.
  if ((uintptr_t)stream <= 2) return state().devices[current.device].legacy;
  return *(Stream*)stream;
}

void drain(Stream& s, uint64_t to) {
  while (s.done < to) {
    Work work = std::move(s.queue.front());
    s.queue.pop_front();
    s.done++;
    if (state().lost == cudaSuccess) work();
  }
}

void drain_device(int device) {
  drain(state().devices[device].legacy, state().devices[device].legacy.pushed);
  for (Stream& s : state().streams)
    if (s.device == device) drain(s, s.pushed);
}

static void enqueue(Stream& s, Work work) {
  s.queue.push_back(std::move(work));
  s.pushed++;
}

static void wait_within(Stream& s, Stream& other) {
  if (other.done == other.pushed) return;
  enqueue(s, [&other, at = other.pushed] { drain(other, at); });
}

static void order_with_legacy(Stream& s) {
  Stream& legacy = state().devices[s.device].legacy;
  if (s.blocking) wait_within(s, legacy);
  if (&s != &legacy) return;
  for (Stream& other : state().streams)
    if (other.blocking && other.device == s.device) wait_within(s, other);
}

void push(Stream& s, Work work) {
  if (s.capture) {
    s.capture->graph->nodes.push_back(std::move(work));
    if (auto fork = s.capture->forked.find(&s); fork != s.capture->forked.end()) fork->second = false;
    return;
  }
  order_with_legacy(s);
  enqueue(s, std::move(work));
  if (state().switches.early) drain(s, s.pushed);
}

static double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

static cudaError_t make_stream(cudaStream_t* out, unsigned flags, int priority) {
  Stream& s = state().streams.emplace_back();
  s.device = current.device;
  s.blocking = !(flags & cudaStreamNonBlocking);
  s.priority = priority;
  *out = (cudaStream_t)&s;
  return cudaSuccess;
}

static cudaError_t record(Event& event, Stream& s) {
  if (event.device != s.device) return cudaErrorInvalidResourceHandle;
  if (has(Mistake::RecordEvent)) return cudaSuccess;
  event.mark = std::make_shared<Mark>();
  event.mark->stream = &s;
  event.mark->capture = s.capture;
  if (s.capture) return cudaSuccess;
  push(s, [mark = event.mark] { mark->reached = now(); });
  event.mark->at = s.pushed;
  return cudaSuccess;
}

// A stream that waits for an event of a capture joins it.
static cudaError_t wait_in_capture(Stream& s, const Mark& mark) {
  if (!mark.capture) return refuse(*s.capture, cudaErrorStreamCaptureIsolation);
  if (mark.capture->graph == nullptr) return cudaErrorCapturedEvent;
  if (!s.capture) {
    s.capture = mark.capture;
    s.capture->forked[&s] = false;
  }
  if (s.capture != mark.capture) return refuse(*s.capture, cudaErrorStreamCaptureMerge);
  if (auto fork = s.capture->forked.find(mark.stream); fork != s.capture->forked.end() && mark.stream != &s)
    fork->second = true;
  return cudaSuccess;
}

static cudaError_t wait_for(Stream& s, const Event& event) {
  if (!event.mark || has(Mistake::WaitEvent)) return cudaSuccess;
  if (s.capture || event.mark->capture) return wait_in_capture(s, *event.mark);
  push(s, [mark = event.mark] { drain(*mark->stream, mark->at); });
  return cudaSuccess;
}

// Whether a stream got to a place; if not, it gets one work further.
static cudaError_t query(Stream& s, uint64_t at) {
  if (s.done >= at) return cudaSuccess;
  drain(s, s.done + 1);
  return cudaErrorNotReady;
}

static cudaError_t elapsed(float* ms, const Event& from, const Event& to) {
  if ((from.flags | to.flags) & cudaEventDisableTiming || !from.mark || !to.mark) return cudaErrorInvalidResourceHandle;
  if (from.mark->reached < 0 || to.mark->reached < 0) return cudaErrorNotReady;
  *ms = (float)(to.mark->reached - from.mark->reached);
  return cudaSuccess;
}
}  // namespace dry

using namespace dry;

extern "C" {
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned flags, int priority) {
  return entry([&] { return make_stream(s, flags, priority); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
  return cudaStreamCreateWithPriority(s, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* s) { return cudaStreamCreateWithPriority(s, cudaStreamDefault, 0); }
// What is on the stream is still run.
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return entry([] { return cudaSuccess; });
}
cudaError_t cudaStreamGetPriority(cudaStream_t s, int* priority) {
  return entry([&] { return *priority = of(s).priority, cudaSuccess; });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return entry([&] { return *least = 0, *greatest = -5, cudaSuccess; });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return unsafe_entry([&] {
    Stream& s = of(stream);
    if (s.capture) return refuse(*s.capture);
    if (has(Mistake::SynchronizeStream)) return cudaSuccess;
    count(Count::StreamWaits);
    order_with_legacy(s);
    drain(s, s.pushed);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return entry([&] {
    Stream& s = of(stream);
    return s.capture ? refuse(*s.capture) : query(s, s.pushed);
  });
}
cudaError_t cudaDeviceSynchronize() {
  return unsafe_entry([] {
    count(Count::DeviceWaits);
    drain_device(current.device);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned) {
  return entry([&] { return wait_for(of(s), *(Event*)event); });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* data) {
  return entry([&] {
    push(of(s), [=] { f(data); });
    return cudaSuccess;
  });
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void* data, unsigned) {
  return entry([&] {
    push(of(s), [=] { f(s, state().lost, data); });
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return entry([&] {
    *event = (cudaEvent_t) new Event{current.device, flags, nullptr};
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return entry([&] { return delete (Event*)event, cudaSuccess; });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t s) {
  return entry([&] { return record(*(Event*)event, of(s)); });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t s, unsigned flags) {
  return flags & cudaEventRecordExternal ? cudaErrorNotSupported : cudaEventRecord(event, s);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return unsafe_entry([&] {
    auto& mark = ((Event*)event)->mark;
    if (!mark || has(Mistake::QueryEvent)) return cudaSuccess;
    return mark->capture ? refuse(*mark->capture, cudaErrorCapturedEvent) : query(*mark->stream, mark->at);
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return unsafe_entry([&] {
    auto& mark = ((Event*)event)->mark;
    if (!mark || has(Mistake::SynchronizeEvent)) return cudaSuccess;
    if (mark->capture) return refuse(*mark->capture, cudaErrorCapturedEvent);
    count(Count::EventWaits);
    drain(*mark->stream, mark->at);
    return cudaSuccess;
  });
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  return entry([&] { return elapsed(ms, *(Event*)from, *(Event*)to); });
}

void dry_cuda_enqueue(void* stream, void (*run)(void*), void* data, void (*drop)(void*)) {
  std::shared_ptr<void> held(data, drop);
  entry([&] {
    push(of((cudaStream_t)stream), [=] { run(held.get()); });
    return cudaSuccess;
  });
}
}
