// What the CUDA stand-in offers tests besides CUDA's own entry points; found by `dlsym` or `ctypes`. No CUDA header is
// needed.
#pragma once

#include <cstdint>

extern "C" {
// How often something happened since the last reset: `stream_waits`, `event_waits`, `device_waits`, `blocking_copies`,
// `launches`, `bytes_up`, `bytes_down`, `allocations` or `frees`.
uint64_t dry_cuda_count(const char* name);
// The names of the kernels launched since the last reset, one a line, at most the last ten thousand. Valid until the
// next call.
const char* dry_cuda_launches();
void dry_cuda_reset();

// The n-th device allocation from now finds no memory; 0 takes that back.
void dry_cuda_fail_allocation(uint64_t n);
// The n-th launch from now ends the device with an illegal address; 0 takes that back.
void dry_cuda_fail_launch(uint64_t n);
// The n-th launch of a graph from now is refused for lack of memory; 0 takes that back.
void dry_cuda_refuse_graph(uint64_t n);
// From now on every call fails with this error, as after an assertion on the device.
void dry_cuda_lose(int error);

// Puts `run(data)` on a stream as a kernel would be, to be captured and replayed like one; `drop(data)` is called once,
// when no queue and no graph holds it any more.
void dry_cuda_enqueue(void* stream, void (*run)(void*), void* data, void (*drop)(void*));
}
