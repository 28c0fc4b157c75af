// The one state, the switches of the environment, and what tests read and set.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dry_cuda.h"
#include "runtime.h"

namespace dry {
static const char* const count_names[] = {"stream_waits",    "event_waits", "device_waits",
                                          "blocking_copies", "launches",    "bytes_up",
                                          "bytes_down",      "allocations", "frees"};
static_assert(std::size(count_names) == (size_t)Count::Number);

static const char* const mistake_names[] = {"",
                                            "wait_event",
                                            "record_event",
                                            "synchronize_event",
                                            "query_event",
                                            "synchronize_stream",
                                            "other_stream",
                                            "host_pointer",
                                            "barrier"};
static_assert(std::size(mistake_names) == (size_t)Mistake::Number);

static Mistake read_mistake() {
  const char* name = getenv("DRY_CUDA_MISTAKE");
  if (!name) return Mistake::None;
  auto found =
      std::find_if(std::begin(mistake_names), std::end(mistake_names), [&](auto* x) { return !strcmp(x, name); });
  if (found == std::end(mistake_names)) {
    fprintf(stderr, "DRY_CUDA_MISTAKE=%s: no such mistake in tests/cuda/switches.cpp\n", name);
    abort();
  }
  return (Mistake)(found - mistake_names);
}

static int number(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text ? atoi(text) : otherwise;
}

static Switches read_switches() {
  const char* order = getenv("DRY_CUDA_ORDER");
  Switches s;
  s.early = order && !strcmp(order, "early");
  s.arch = number("DRY_CUDA_ARCH", s.arch);
  s.devices = number("DRY_CUDA_DEVICES", s.devices);
  s.memory = (size_t)number("DRY_CUDA_MEMORY", 8192) << 20;
  s.log = number("DRY_CUDA_LOG", 0);
  s.mistake = read_mistake();
  return s;
}

static State* make_state() {
  auto* s = new State;
  s->switches = read_switches();
  for (int i = 0; i < std::max(1, s->switches.devices); i++) {
    s->devices.emplace_back().legacy.device = i;
    s->devices.back().legacy.blocking = true;
  }
  return s;
}

// Never destroyed: libraries call until the process is gone.
State& state() {
  static State* state = make_state();
  return *state;
}
}  // namespace dry

using namespace dry;

extern "C" {
uint64_t dry_cuda_count(const char* name) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  auto found = std::find_if(std::begin(count_names), std::end(count_names), [&](auto* x) { return !strcmp(x, name); });
  return found == std::end(count_names) ? UINT64_MAX : state().counts[found - count_names];
}
const char* dry_cuda_launches() {
  static std::string text;
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  text.clear();
  for (auto& name : state().launches) text += name + '\n';
  return text.c_str();
}
void dry_cuda_reset() {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  std::fill(std::begin(state().counts), std::end(state().counts), 0);
  state().launches.clear();
}
void dry_cuda_fail_allocation(uint64_t n) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  state().failing_allocation = n;
}
void dry_cuda_fail_launch(uint64_t n) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  state().failing_launch = n;
}
void dry_cuda_refuse_graph(uint64_t n) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  state().refused_graph = n;
}
void dry_cuda_lose(int error) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  state().lost = (cudaError_t)error;
}
}
