// Groups of processes for programs without Python (the feature `dist`): a store where processes find each other, and
// c10d's process group with two engines of gloo, as `init_process_group("cpu:gloo,ltc:ltc")` makes it.
//
// Collectives are called through c10d's operators: those on ltc tensors are recorded by process_group.cpp, those on
// CPU tensors run at once and are waited for.
#define USE_C10D_GLOO
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cstdlib>
#include <set>
#include <sstream>

#include "collectives.h"

struct LtcStore {
  c10::intrusive_ptr<c10d::Store> store;
  uint16_t port = 0;
};

namespace ltc {
namespace {
using c10d::ReduceOp;
using std::string;
using std::vector;
using Milliseconds = std::chrono::milliseconds;

// The numbers of ReduceOp in src/dist.rs.
static_assert(ReduceOp::SUM == 0 && ReduceOp::AVG == 1 && ReduceOp::PRODUCT == 2 && ReduceOp::MIN == 3);
static_assert(ReduceOp::MAX == 4 && ReduceOp::BAND == 5 && ReduceOp::BOR == 6 && ReduceOp::BXOR == 7);

// A group's name, which no other group of this process has. The least number that is free: the first collective of a
// group that takes the name of one that is gone finds a new engine, and is tried although an earlier one had failed
// (open_group).
struct Name {
  static std::mutex& mutex() {
    static auto* m = new std::mutex;
    return *m;
  }
  static std::set<int>& taken() {
    static auto* numbers = new std::set<int>;
    return *numbers;
  }
  int number = 0;
  Name() {
    std::lock_guard<std::mutex> lock(mutex());
    while (taken().count(number)) number++;
    taken().insert(number);
  }
  Name(const Name&) = delete;
  ~Name() {
    std::lock_guard<std::mutex> lock(mutex());
    taken().erase(number);
  }
  string text() const { return "ltc_dist/" + std::to_string(number); }
};

// One engine of gloo. Others find it in the store, under `prefix`. It listens on the interfaces that GLOO_SOCKET_IFNAME
// names, or where this machine's name leads to, as torch.distributed's engines do.
Engine gloo_engine(const c10::intrusive_ptr<c10d::Store>& store, const char* prefix, int rank, int world,
                   Milliseconds timeout) {
  using Gloo = c10d::ProcessGroupGloo;
  auto options = Gloo::Options::create(timeout);
  const bool lazily = c10d::getDefaultGlooLazyInit();
  if (const char* interfaces = std::getenv("GLOO_SOCKET_IFNAME")) {
    std::stringstream names(interfaces);
    for (string name; std::getline(names, name, ',');)
      options->devices.push_back(Gloo::createDeviceForInterface(name, lazily));
  }
  if (options->devices.empty()) options->devices.push_back(Gloo::createDefaultDevice(lazily));
  options->threads = static_cast<int>(options->devices.size()) * 2;
  return c10::make_intrusive<Gloo>(c10::make_intrusive<c10d::PrefixStore>(prefix, store), rank, world, options);
}

const Tensor& tensor(const void* t) { return *static_cast<const Tensor*>(t); }

void check_place(const Tensor& x) {
  TORCH_CHECK_TYPE(x.defined(), "a collective of a tensor that is not defined");
  TORCH_CHECK_TYPE((is_lazy(x) || x.device().is_cpu()) && x.layout() == c10::kStrided, "a collective of a ", x.layout(),
                   " tensor on ", x.device(), ": dense tensors on the CPU or on ltc take part");
}

// Has a collective change a tensor. Gloo wants one on the CPU in one piece, with its elements as they are in memory.
template <class F> void change(const Tensor& x, F collective) {
  check_place(x);
  const bool as_it_is = is_lazy(x) || (x.is_contiguous() && !x.is_neg() && !x.is_conj());
  vector<Tensor> one{as_it_is ? x : x.clone(at::MemoryFormat::Contiguous)};
  collective(one);
  if (!as_it_is) x.copy_(one[0]);
}

// Elements in a row, as gloo wants what is gathered and scattered.
Tensor in_a_row(const Tensor& x) {
  check_place(x);
  return x.detach().resolve_neg().resolve_conj().reshape(-1).contiguous();
}

// On the CPU, the average is gloo's sum divided here, as it is on ltc (collectives.cpp): equal bits.
bool divides(const Tensor& x, int32_t op) { return op == ReduceOp::AVG && !is_lazy(x); }
ReduceOp reduction(const Tensor& x, int32_t op) {
  return divides(x, op) ? ReduceOp::SUM : static_cast<ReduceOp::RedOpType>(op);
}
}  // namespace
}  // namespace ltc

using namespace ltc;

struct LtcGroup {
  Name name;
  Group group;
};

extern "C" {
int ltc_store_tcp(const char* host, uint16_t port, int serves, int32_t world, int64_t timeout_ms, LtcStore** out,
                  LtcError* err) {
  return guarded(err, [&] {
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = serves;
    options.numWorkers = world;
    options.timeout = Milliseconds(timeout_ms);
    auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
    const auto bound = store->getPort();
    *out = new LtcStore{std::move(store), bound};
  });
}
int ltc_store_part(const LtcStore* whole, const char* prefix, LtcStore** out, LtcError* err) {
  return guarded(
      err, [&] { *out = new LtcStore{c10::make_intrusive<c10d::PrefixStore>(prefix, whole->store), whole->port}; });
}
uint16_t ltc_store_port(const LtcStore* store) { return store->port; }
void ltc_store_free(LtcStore* store) { delete store; }

int ltc_group_gloo(const LtcStore* at, int32_t rank, int32_t world, int64_t timeout_ms, LtcGroup** out, LtcError* err) {
  return guarded(err, [&] {
    using Type = c10d::ProcessGroup::BackendType;
    auto made = std::make_unique<LtcGroup>();
    const Milliseconds timeout(timeout_ms);
    auto group = c10::make_intrusive<c10d::ProcessGroup>(at->store, rank, world);
    group->setBackend(c10::kCPU, Type::GLOO, gloo_engine(at->store, "cpu", rank, world, timeout));
    group->setBackend(kLazy, Type::CUSTOM, gloo_engine(at->store, "ltc", rank, world, timeout));
    group->setDefaultBackend(Type::GLOO);
    group->setGroupName(made->name.text());
    c10d::register_process_group(made->name.text(), group);
    made->group = std::move(group);
    *out = made.release();
  });
}
void ltc_group_free(LtcGroup* g) {
  LtcError ignored;
  guarded(&ignored, [&] { c10d::unregister_process_group(g->name.text()); });
  delete g;
}
int ltc_group_wait(LtcError* err) { return guarded(err, wait_for_all); }

int ltc_group_all_reduce(const LtcGroup* g, const void* t, int32_t op, LtcError* err) {
  return guarded(err, [&] {
    c10::NoGradGuard no_grad;
    change(tensor(t), [&](vector<Tensor>& one) {
      c10d::AllreduceOptions options;
      options.reduceOp = reduction(one[0], op);
      g->group->allreduce(one, options)->wait();
      if (divides(one[0], op)) one[0].div_(g->group->getSize());
    });
  });
}
int ltc_group_broadcast(const LtcGroup* g, const void* t, int32_t root, LtcError* err) {
  return guarded(err, [&] {
    c10::NoGradGuard no_grad;
    change(tensor(t), [&](vector<Tensor>& one) {
      c10d::BroadcastOptions options;
      options.rootRank = root;
      g->group->broadcast(one, options)->wait();
    });
  });
}
int ltc_group_all_gather(const LtcGroup* g, const void* t, void** out, LtcError* err) {
  return guarded(err, [&] {
    c10::NoGradGuard no_grad;
    Tensor in = in_a_row(tensor(t));
    auto sizes = tensor(t).sizes().vec();
    sizes.insert(sizes.begin(), g->group->getSize());
    Tensor all = at::empty({in.numel() * g->group->getSize()}, in.options());
    g->group->all_gather_single(all, in)->wait();
    *out = new Tensor(all.view(sizes));
  });
}
int ltc_group_reduce_scatter(const LtcGroup* g, const void* t, int32_t op, void** out, LtcError* err) {
  return guarded(err, [&] {
    c10::NoGradGuard no_grad;
    const auto world = g->group->getSize();
    Tensor in = in_a_row(tensor(t));
    TORCH_CHECK_VALUE(tensor(t).dim() > 0 && tensor(t).size(0) % world == 0, "reduce_scatter of sizes ",
                      tensor(t).sizes(), " among ", world, " ranks: the first is not divisible by them");
    auto sizes = tensor(t).sizes().vec();
    sizes[0] /= world;
    Tensor part = at::empty({in.numel() / world}, in.options());
    c10d::ReduceScatterOptions options;
    options.reduceOp = reduction(in, op);
    g->group->reduce_scatter_single(part, in, options)->wait();
    if (divides(in, op)) part.div_(world);
    *out = new Tensor(part.view(sizes));
  });
}
int ltc_group_barrier(const LtcGroup* g, LtcError* err) {
  return guarded(err, [&] {
    wait_for_all();
    g->group->getBackend(c10::kCPU)->barrier()->wait();
  });
}
}
