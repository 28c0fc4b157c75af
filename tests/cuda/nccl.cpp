// A stand-in of NCCL for ranks that are processes of one machine without a GPU. What a collective does is put on the
// stream it is given, as NCCL's kernels are: when the stream gets there, a rank leaves its part in a folder that the
// communicator's ranks share, waits for the parts of the others, and combines them in the order of ranks.
//
// Parts are files that appear whole. Each collective of a communicator has a number, the same in all ranks.
// NCCL's header names halves' headers, which need a package that torch does not bring, and uses nothing of them.
#define __CUDA_FP16_H__
#define __CUDA_BF16_H__
#define __CUDA_FP8_H__
#include <nccl.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dry_cuda.h"

namespace fs = std::filesystem;
using Bytes = std::vector<char>;

struct ncclComm {
  int rank = 0, size = 1;
  fs::path folder;
  uint64_t next = 0;                  // the number of the next collective
  std::map<int, int> sent, received;  // messages, by the other rank, which may be this one
  std::atomic<bool> aborted = false;
};

namespace {
using Comm = std::shared_ptr<ncclComm>;

std::mutex g_mutex;
std::map<ncclComm_t, Comm>& comms() {
  static auto* all = new std::map<ncclComm_t, Comm>;
  return *all;
}
Comm held(ncclComm_t comm) {
  std::lock_guard<std::mutex> lock(g_mutex);
  auto found = comms().find(comm);
  return found == comms().end() ? nullptr : found->second;
}

// ---- parts ----
// Nobody waits longer for another rank: work runs under the stand-in's lock, so that nothing else could go on.
constexpr std::chrono::seconds patience{60};
// Parts of this many collectives are kept: within one group, ranks are that far apart at most.
constexpr uint64_t kept = 64;
constexpr int launch_timed_out = 702;

void leave(const fs::path& name, const Bytes& part) {
  const fs::path whole = name, beginning = name.string() + ".part";
  std::ofstream(beginning, std::ios::binary).write(part.data(), (std::streamsize)part.size());
  fs::rename(beginning, whole);
}
// What another rank leaves; none where this rank gave up waiting, which ends the device as a hung kernel would.
bool take(const ncclComm& comm, const fs::path& name, Bytes& part) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!fs::exists(name)) {
    if (comm.aborted) return false;
    if (std::chrono::steady_clock::now() > end) return dry_cuda_lose(launch_timed_out), false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  std::ifstream file(name, std::ios::binary);
  part.assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

// ---- numbers ----
size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    default: return 8;
  }
}
bool has_arithmetic(ncclDataType_t type) { return type != ncclFloat8e4m3 && type != ncclFloat8e5m2; }

// Halves are combined as single precision and rounded after each rank, as gloo does.
template <class T> struct Number {
  using In = T;
  static In get(T v) { return v; }
  static T put(In v) { return v; }
};
template <> struct Number<_Float16> {
  using In = float;
  static In get(_Float16 v) { return static_cast<float>(v); }
  static _Float16 put(float v) { return static_cast<_Float16>(v); }
};
struct BFloat16 {
  uint16_t bits;
};
template <> struct Number<BFloat16> {
  using In = float;
  static In get(BFloat16 v) { return std::bit_cast<float>(uint32_t(v.bits) << 16); }
  // To the nearest, of two the even one.
  static BFloat16 put(float v) {
    const auto bits = std::bit_cast<uint32_t>(v);
    if (v != v) return {uint16_t(bits >> 16 | 0x40)};
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  }
};

// Calls `f` with a value of the type that elements have.
template <class F> void with_type(ncclDataType_t type, F f) {
  switch (type) {
    case ncclInt8: return f(int8_t());
    case ncclUint8: return f(uint8_t());
    case ncclInt32: return f(int32_t());
    case ncclUint32: return f(uint32_t());
    case ncclInt64: return f(int64_t());
    case ncclUint64: return f(uint64_t());
    case ncclFloat16: return f(_Float16());
    case ncclBfloat16: return f(BFloat16());
    case ncclFloat32: return f(float());
    default: return f(double());
  }
}

// An operation, and by what each rank's part is multiplied before it.
struct Op {
  ncclRedOp_t kind = ncclSum;
  double factor = 1;
};
std::map<int, double>& factors() {
  static auto* all = new std::map<int, double>;
  return *all;
}
Op op_of(ncclRedOp_t op) {
  if (op < ncclNumOps) return {op, 1};
  std::lock_guard<std::mutex> lock(g_mutex);
  return {ncclSum, factors()[op]};
}

// One that is not a number stays.
template <class V> V combine(ncclRedOp_t op, V a, V b) {
  switch (op) {
    case ncclProd: return a * b;
    case ncclMax: return a != a || b < a ? a : b;
    case ncclMin: return a != a || a < b ? a : b;
    default: return a + b;
  }
}

Bytes reduced(const std::vector<Bytes>& parts, ncclDataType_t type, const Op& op) {
  Bytes out = parts[0];
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    using N = Number<T>;
    using V = typename N::In;
    T* to = reinterpret_cast<T*>(out.data());
    for (size_t i = 0; i < out.size() / sizeof(T); i++) {
      V sum{};
      for (size_t rank = 0; rank < parts.size(); rank++) {
        V v = N::get(reinterpret_cast<const T*>(parts[rank].data())[i]);
        if (op.factor != 1) v = V(v * op.factor);
        sum = rank ? N::get(N::put(combine(op.kind, sum, v))) : v;
      }
      if (op.kind == ncclAvg) sum = V(sum / V(parts.size()));
      to[i] = N::put(sum);
    }
  });
  return out;
}

// ---- collectives ----
// A collective in two halves: within a group, all parts are left before any is waited for.
struct Halves {
  cudaStream_t stream;
  std::function<void()> leave, take;
};
thread_local int t_depth = 0;
thread_local std::vector<Halves> t_group;

void enqueue(cudaStream_t stream, std::function<void()> work) {
  auto run = [](void* work) { (*static_cast<std::function<void()>*>(work))(); };
  auto drop = [](void* work) { delete static_cast<std::function<void()>*>(work); };
  dry_cuda_enqueue(stream, run, new std::function<void()>(std::move(work)), drop);
}

void end_group() {
  std::map<cudaStream_t, std::vector<Halves>> all;
  for (auto& each : t_group) all[each.stream].push_back(std::move(each));
  t_group.clear();
  for (auto& [stream, halves] : all)
    enqueue(stream, [halves = std::move(halves)] {
      for (auto& each : halves) each.leave();
      for (auto& each : halves) each.take();
    });
}

ncclResult_t begin(Halves halves) {
  t_group.push_back(std::move(halves));
  if (t_depth == 0) end_group();
  return ncclSuccess;
}

Bytes bytes_at(const void* at, size_t n) {
  const char* begin = static_cast<const char*>(at);
  return n ? Bytes(begin, begin + n) : Bytes();
}

// All ranks leave `n` bytes (or nothing); `use` gets the parts in the order of ranks.
ncclResult_t together(ncclComm_t handle, cudaStream_t stream, const void* from, size_t n,
                      std::function<void(const std::vector<Bytes>&)> use) {
  Comm comm = held(handle);
  if (!comm) return ncclInvalidArgument;
  const uint64_t number = comm->next++;
  const auto name = [comm](uint64_t number, int rank) {
    return comm->folder / (std::to_string(number) + "." + std::to_string(rank));
  };
  auto post = [=] { leave(name(number, comm->rank), bytes_at(from, n)); };
  auto collect = [=] {
    std::vector<Bytes> parts(comm->size);
    for (int rank = 0; rank < comm->size; rank++)
      if (!take(*comm, name(number, rank), parts[rank])) return;
    use(parts);
    std::error_code gone;
    if (number >= kept) fs::remove(name(number - kept, comm->rank), gone);
  };
  return begin({stream, post, collect});
}

void put(void* to, const Bytes& bytes, size_t from = 0, size_t n = SIZE_MAX) {
  n = std::min(n, bytes.size() - from);
  if (n) std::memcpy(to, bytes.data() + from, n);
}

ncclResult_t message(ncclComm_t handle, int from, int to, int number, cudaStream_t stream,
                     std::function<void(const fs::path&, const ncclComm&)> leave_it,
                     std::function<void(const fs::path&, const ncclComm&)> take_it) {
  Comm comm = held(handle);
  if (!comm) return ncclInvalidArgument;
  const fs::path name = comm->folder / (std::to_string(from) + "-" + std::to_string(to) + "." + std::to_string(number));
  return begin({stream, [=] { leave_it(name, *comm); }, [=] { take_it(name, *comm); }});
}
void nothing(const fs::path&, const ncclComm&) {}

std::string name_of(const ncclUniqueId& id) {
  return std::string(id.internal, strnlen(id.internal, sizeof id.internal));
}

ncclResult_t join(ncclComm_t* out, int size, const ncclUniqueId& id, int rank) {
  auto comm = std::make_shared<ncclComm>();
  comm->rank = rank;
  comm->size = size;
  comm->folder = fs::temp_directory_path() / ("dry_nccl_" + name_of(id));
  std::error_code error;
  fs::create_directories(comm->folder, error);
  if (error) return ncclSystemError;
  std::lock_guard<std::mutex> lock(g_mutex);
  *out = comm.get();
  comms()[comm.get()] = comm;
  return ncclSuccess;
}
ncclResult_t end(ncclComm_t handle, bool abort) {
  Comm comm = held(handle);
  if (!comm) return ncclInvalidArgument;
  if (abort) comm->aborted = true;
  std::lock_guard<std::mutex> lock(g_mutex);
  comms().erase(handle);
  return ncclSuccess;
}
}  // namespace

extern "C" {
ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t) { return "an error of NCCL's stand-in"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device draw;
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "%08x%08x%08x", draw(), draw(), draw());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return join(comm, size, id, rank);
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  return join(comm, size, id, rank);
}
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int size, int rank, int, ncclUniqueId* ids, ncclConfig_t*) {
  return join(comm, size, ids[0], rank);
}
ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*) { return ncclInvalidUsage; }
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return end(comm, false); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return end(comm, true); }
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) { return *error = ncclSuccess; }
ncclResult_t ncclCommCount(ncclComm_t comm, int* count) { return *count = comm->size, ncclSuccess; }
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) { return *rank = comm->rank, ncclSuccess; }
ncclResult_t ncclCommRegister(ncclComm_t, void*, size_t, void** handle) { return *handle = nullptr, ncclSuccess; }
ncclResult_t ncclCommDeregister(ncclComm_t, void*) { return ncclSuccess; }

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t where,
                                      ncclComm_t) {
  if (where != ncclScalarHostImmediate || !has_arithmetic(type)) return ncclInvalidUsage;
  double factor = 1;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    factor = (double)Number<T>::get(*static_cast<const T*>(scalar));
  });
  std::lock_guard<std::mutex> lock(g_mutex);
  static int next = ncclNumOps;
  *op = static_cast<ncclRedOp_t>(next);
  factors()[next++] = factor;
  return ncclSuccess;
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclGroupStart() { return t_depth++, ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  if (t_depth == 0) return ncclInvalidUsage;
  if (--t_depth == 0) end_group();
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  if (!has_arithmetic(type)) return ncclInvalidArgument;
  return together(comm, stream, from, n * size_of(type),
                  [=, op = op_of(op)](auto& parts) { put(to, reduced(parts, type, op)); });
}
ncclResult_t ncclReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  if (!has_arithmetic(type)) return ncclInvalidArgument;
  const bool is_root = comm->rank == root;
  return together(comm, stream, from, n * size_of(type), [=, op = op_of(op)](auto& parts) {
    if (is_root) put(to, reduced(parts, type, op));
  });
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  if (!has_arithmetic(type)) return ncclInvalidArgument;
  const size_t part = n * size_of(type), at = part * comm->rank;
  return together(comm, stream, from, part * comm->size,
                  [=, op = op_of(op)](auto& parts) { put(to, reduced(parts, type, op), at, part); });
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  const size_t left = comm->rank == root ? n * size_of(type) : 0;
  return together(comm, stream, from, left, [=](auto& parts) { put(to, parts[root]); });
}
ncclResult_t ncclBcast(void* at, size_t n, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(at, at, n, type, root, comm, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t n, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const size_t part = n * size_of(type);
  return together(comm, stream, from, part, [=](auto& parts) {
    for (size_t rank = 0; rank < parts.size(); rank++) put(static_cast<char*>(to) + rank * part, parts[rank]);
  });
}
ncclResult_t ncclAlltoAll(const void* from, void* to, size_t n, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  const size_t part = n * size_of(type), at = part * comm->rank;
  return together(comm, stream, from, part * comm->size, [=](auto& parts) {
    for (size_t rank = 0; rank < parts.size(); rank++) put(static_cast<char*>(to) + rank * part, parts[rank], at, part);
  });
}
ncclResult_t ncclSend(const void* from, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  const size_t size = n * size_of(type);
  auto post = [=](const fs::path& name, const ncclComm&) { leave(name, bytes_at(from, size)); };
  return message(comm, comm->rank, peer, comm->sent[peer]++, stream, post, nothing);
}
ncclResult_t ncclRecv(void* to, size_t, ncclDataType_t, int peer, ncclComm_t comm, cudaStream_t stream) {
  auto collect = [=](const fs::path& name, const ncclComm& comm) {
    Bytes part;
    if (!take(comm, name, part)) return;
    put(to, part);
    fs::remove(name);
  };
  return message(comm, peer, comm->rank, comm->received[peer]++, stream, nothing, collect);
}
}
