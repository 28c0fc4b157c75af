// What the text of kernels needs of CUDA, for the host: a block's threads are fibers, which switch where they meet, at
// barriers and shuffles. Warps run as far as they can, in an order that a seed picks, so that what a missing barrier
// would keep in order comes in another one. Shared memory begins as bits of NaN.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <climits>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
// One block runs at a time, so what is static is a block's.
#define __shared__ static __attribute__((section("twin_shared")))

struct Position { unsigned x; };
static Position threadIdx, blockIdx, blockDim, gridDim;

namespace twin {

constexpr unsigned kWarp = 32;
constexpr size_t kStack = 64 << 10;

extern "C" char __start_twin_shared[], __stop_twin_shared[];
// The section is there also without shared memory in the text.
static char always __attribute__((section("twin_shared"), used));

// Threads that meet: a warp, or the block.
struct Group { unsigned size, arrived = 0, round = 0; };

struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStack]};
  bool done;
};

static std::vector<Thread> threads;
static std::vector<Group> warps;
static Group block;
static ucontext_t scheduler;
static unsigned current;
static std::vector<unsigned long long> shown;  // What each thread shows its warp in a shuffle.
static std::function<void()> kernel;
static unsigned progress;
static const char* failure;

static void leave() { swapcontext(&threads[current].context, &scheduler); }

static void fail(const char* why) {
  failure = why;
  leave();
}

// Goes on when all of the group came.
static void meet(Group& group) {
  const unsigned round = group.round;
  progress++;
  if (++group.arrived == group.size) group.arrived = 0, group.round++;
  while (group.round == round) leave();
  progress++;
}

static void run_thread() {
  kernel();
  threads[current].done = true;
  progress++;
  leave();
}

static void start_block(unsigned count) {
  std::fill(__start_twin_shared, __stop_twin_shared, '\xff');
  if (threads.size() < count) threads = std::vector<Thread>(count);
  shown.assign(count, ~0ull);
  block = {count};
  warps.clear();
  for (unsigned first = 0; first < count; first += kWarp) warps.push_back({std::min(kWarp, count - first)});
  for (unsigned i = 0; i < count; i++) {
    Thread& thread = threads[i];
    thread.done = false;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStack;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, run_thread, 0);
  }
}

// Lets the warp's threads go on until none of them can; gives how many ended.
static unsigned run_warp(unsigned warp, unsigned flip) {
  unsigned ended = 0;
  for (unsigned before = progress - 1; before != progress && !failure;) {
    before = progress;
    for (unsigned lane = 0; lane < kWarp && !failure; lane++) {
      current = warp * kWarp + (lane ^ flip);
      if (current >= block.size || threads[current].done) continue;
      threadIdx.x = current;
      swapcontext(&scheduler, &threads[current].context);
      ended += threads[current].done;
    }
  }
  return ended;
}

static void run_block(unsigned count, std::mt19937& random, bool shuffled) {
  start_block(count);
  std::vector<unsigned> order(warps.size());
  for (unsigned i = 0; i < order.size(); i++) order[i] = i;
  const unsigned flip = shuffled ? random() % kWarp : 0;
  for (unsigned left = count, before = progress - 1; left && !failure;) {
    if (before == progress) failure = "threads wait for others that never come";
    before = progress;
    if (shuffled) std::shuffle(order.begin(), order.end(), random);
    for (unsigned warp : order) left -= run_warp(warp, flip);
  }
}

// Runs all blocks; the seed picks the order of blocks and warps, and zero leaves them in order. Says what went wrong.
static const char* launch(unsigned grid, unsigned count, unsigned seed, std::function<void()> run) {
  kernel = std::move(run);
  failure = nullptr;
  gridDim.x = grid, blockDim.x = count;
  std::mt19937 random(seed);
  std::vector<unsigned> blocks(grid);
  for (unsigned i = 0; i < grid; i++) blocks[i] = i;
  if (seed) std::shuffle(blocks.begin(), blocks.end(), random);
  for (unsigned i = 0; i < grid && !failure; i++) {
    blockIdx.x = blocks[i];
    run_block(count, random, seed != 0);
  }
  return failure;
}

template <class... A, size_t... I> void call(void (*f)(A...), void** args, std::index_sequence<I...>) {
  static_assert(((sizeof(A) == 8) && ...), "parameters have eight bytes");
  f(*(A*)args[I]...);
}
template <class... A> void call(void (*f)(A...), void** args) { call(f, args, std::index_sequence_for<A...>()); }

}  // namespace twin

static void __syncthreads() { twin::meet(twin::block); }

static void __syncwarp() { twin::meet(twin::warps[twin::current / twin::kWarp]); }

template <class T> T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  const unsigned me = twin::current;
  twin::Group& warp = twin::warps[me / twin::kWarp];
  if (mask != ~0u || warp.size != twin::kWarp) twin::fail("a shuffle of less than a warp");
  memcpy(&twin::shown[me], &value, sizeof value);
  twin::meet(warp);
  memcpy(&value, &twin::shown[me ^ lanes], sizeof value);
  // Nobody shows another value before all have read this one.
  twin::meet(warp);
  return value;
}

template <class To, class From> To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "equal sizes");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static long long __double_as_longlong(double x) { return bits_as<long long>(x); }
static double __longlong_as_double(long long x) { return bits_as<double>(x); }

// Where an integer cannot hold the number, GPUs give the nearest one it holds, and the loops that results are compared
// with the least: here it is theirs.
static int __double2int_rz(double x) { return x > -2147483649.0 && x < 2147483648.0 ? (int)x : INT_MIN; }
static int __float2int_rz(float x) { return __double2int_rz(x); }
static long long __double2ll_rz(double x) { return fabs(x) < 9223372036854775808.0 ? (long long)x : LLONG_MIN; }
static long long __float2ll_rz(float x) { return __double2ll_rz(x); }
