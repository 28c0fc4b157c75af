// The state of the CUDA stand-in: devices whose memory is the host's, streams that are queues, events that are places
// in them, and captures that take down what is put on a stream. One lock guards all of it, and work is run under it.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dry {
using Work = std::function<void()>;

struct Capture;

struct Stream {
  int device = 0;
  int priority = 0;
  bool blocking = false;  // waits for the legacy stream of its device, and is waited for by it
  std::deque<Work> queue;
  uint64_t pushed = 0, done = 0;
  std::shared_ptr<Capture> capture;
};

// A place in the order of a stream.
struct Mark {
  Stream* stream = nullptr;
  uint64_t at = 0;
  std::shared_ptr<Capture> capture;  // of which it is a place, rather than of the stream
  double reached = -1;               // when, in milliseconds
};

struct Event {
  int device = 0;
  unsigned flags = 0;
  std::shared_ptr<Mark> mark;  // none before it is recorded
};

// Nodes are kept in the order in which they were put on the streams of the capture, which is one that every graph
// allows.
struct Graph {
  std::vector<Work> nodes;
};

struct Capture {
  uint64_t id = 0;
  Stream* origin = nullptr;
  std::thread::id thread;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool invalid = false;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::map<Stream*, bool> forked;  // streams that joined by an event, and whether the capture waits for their last node
};

struct Block {
  size_t size = 0;
  cudaMemoryType type = cudaMemoryTypeDevice;
  int device = 0;
  bool ours = true;  // rather than registered
};

struct Device {
  Stream legacy;
  size_t used = 0;
};

enum class Count {
  StreamWaits,
  EventWaits,
  DeviceWaits,
  BlockingCopies,
  Launches,
  BytesUp,
  BytesDown,
  Allocations,
  Frees,
  Number
};

// A mistake of a caller's, as the stand-in would see it: such a call does nothing, or another thing. With each of them,
// tests of ltc have to fail.
enum class Mistake {
  None,
  WaitEvent,          // a stream does not wait for an event of another one
  RecordEvent,        // an event is not recorded
  SynchronizeEvent,   // the host does not wait for an event
  QueryEvent,         // an event is taken to be reached: what it guards is reused too early
  SynchronizeStream,  // the host does not wait for a stream
  OtherStream,        // a kernel is put on a stream that nobody waits for
  HostPointer,        // a kernel is given memory of the host
  Barrier,            // a kernel has no barriers (nvrtc.cpp)
  Number
};

// Switches of the environment; docs/cuda.md lists them.
struct Switches {
  bool early = false;               // DRY_CUDA_ORDER
  int arch = 90;                    // DRY_CUDA_ARCH
  int devices = 2;                  // DRY_CUDA_DEVICES
  size_t memory = 0;                // DRY_CUDA_MEMORY, in bytes here
  bool log = false;                 // DRY_CUDA_LOG
  Mistake mistake = Mistake::None;  // DRY_CUDA_MISTAKE
};

struct State {
  std::recursive_mutex mutex;
  Switches switches;
  std::deque<Device> devices;
  std::deque<Stream> streams;  // all but the legacy ones; events and works may point at one that was destroyed
  std::map<char*, Block> blocks;
  std::vector<std::shared_ptr<Capture>> captures;  // that have not ended
  cudaError_t lost = cudaSuccess;
  uint64_t failing_allocation = 0, failing_launch = 0, refused_graph = 0;  // counted down to 0
  uint64_t counts[(int)Count::Number] = {};
  std::deque<std::string> launches;
};
State& state();

// Of the calling thread.
struct Thread {
  int device = 0;
  cudaError_t error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};
inline thread_local Thread current;

inline bool has(Mistake mistake) { return state().switches.mistake == mistake; }
inline void count(Count what, uint64_t n = 1) { state().counts[(int)what] += n; }

// ---- streams.cpp ----
Stream& of(cudaStream_t stream);
void push(Stream& s, Work work);
// Runs what is on a stream up to a place of it.
void drain(Stream& s, uint64_t to);
void drain_device(int device);

// ---- graphs.cpp ----
// Whether CUDA refuses calls that may wait or allocate, since a capture goes on. A call that is refused spoils the
// capture.
bool is_refused_by_captures();
cudaError_t refuse(Capture& capture, cudaError_t error = cudaErrorStreamCaptureUnsupported);

// ---- memory.cpp ----
const Block* block_of(const void* p);
cudaError_t copy(void* to, const void* from, size_t n, Stream& s);

// ---- kernels.cpp ----
struct Shape {
  dim3 grid, block;
};
// Puts a kernel on a stream; `run` is empty for those of which only the launch is noted.
cudaError_t launch(const std::string& name, const Shape& shape, Stream& s, Work run);

// How an entry point of the driver begins and ends: one thread at a time, and nothing after the device was lost.
template <class Body>
cudaError_t driver_entry(Body body) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  if (state().lost != cudaSuccess) return state().lost;
  const cudaError_t error = body();
  // What was waited for may have ended the device.
  return state().lost != cudaSuccess ? state().lost : error;
}

// The runtime keeps the last error besides.
template <class Body>
cudaError_t entry(Body body) {
  const cudaError_t error = driver_entry(body);
  if (error != cudaSuccess) current.error = error;
  return error;
}

// For what is known without the device, so that it is answered after the device was lost, too.
template <class Body>
cudaError_t host_entry(Body body) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  const cudaError_t error = body();
  if (error != cudaSuccess) current.error = error;
  return error;
}

// The same for calls that may wait or allocate.
template <class Body>
cudaError_t unsafe_entry(Body body) {
  return entry([&] { return is_refused_by_captures() ? cudaErrorStreamCaptureUnsupported : body(); });
}
}  // namespace dry
