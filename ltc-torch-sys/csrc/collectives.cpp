// Collectives as operators of programs: `ltc_dist::*` on real tensors.
//
// What torch.distributed is asked to do with lazy tensors is recorded as these operators (process_group.cpp). They run
// where programs run, on the engine of the group (gloo) that their last but one argument names. Their last argument is
// the device's token, which each of them reads and writes: so programs keep their order, which is that of the user's
// calls and must be the same in all ranks, and keep them though nobody may need the result.
#include "collectives.h"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/library.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace ltc {
namespace {
using c10d::ReduceOp;
using std::string;
using std::vector;
using Work = c10::intrusive_ptr<c10d::Work>;

// Messages on their way to another rank, with nobody who waits for them here; oldest first.
struct Sent {
  std::mutex mutex;
  std::deque<Work> works;
  // Raises if one of them failed.
  void reap() {
    std::lock_guard<std::mutex> lock(mutex);
    while (!works.empty() && works.front()->isCompleted()) {
      Work work = std::move(works.front());
      works.pop_front();
      work->wait();
    }
  }
};

struct Open {
  Engine engine;
  std::shared_ptr<Sent> sent;
};

// Engines by the names of their groups. A program that is on its way finds its engine though the group is gone.
struct Groups {
  std::mutex mutex;
  std::unordered_map<string, Open> open;
  // Those of the parent, whose threads a forked child does not have.
  std::unordered_map<string, Open> inherited;
  pid_t process = getpid();
};
// Never destroyed: programs may run while statics are.
Groups& groups() {
  static auto* all = new Groups;
  std::lock_guard<std::mutex> lock(all->mutex);
  if (all->process != getpid()) {
    all->inherited.merge(all->open);
    all->open.clear();
    all->process = getpid();
  }
  return *all;
}
[[noreturn]] void refuse_inherited(const string& name) {
  TORCH_CHECK(false, "the process group ", name,
              " is its parent's, and a forked process has none of its threads: call init_process_group here, or start"
              " processes by spawning them");
}

Open find(const string& name) {
  auto& g = groups();
  std::lock_guard<std::mutex> lock(g.mutex);
  auto found = g.open.find(name);
  if (found != g.open.end()) return found->second;
  if (g.inherited.count(name)) refuse_inherited(name);
  TORCH_CHECK(false, "the process group ", name, " is gone");
}
Engine engine(const string& name) {
  Open open = find(name);
  open.sent->reap();
  return open.engine;
}

// What a receive that was begun will leave, by the number that its handle holds.
struct Arriving {
  Work work;
  Tensor into;
};
struct Arrivals {
  std::mutex mutex;
  int64_t next = 0;
  std::unordered_map<int64_t, Arriving> all;
};
Arrivals& arrivals() {
  static auto* all = new Arrivals;
  return *all;
}

// Gloo sums and leaves the division to others.
ReduceOp::RedOpType engine_op(int64_t op) {
  return op == ReduceOp::AVG ? ReduceOp::SUM : static_cast<ReduceOp::RedOpType>(op);
}
void average(Tensor& sum, int64_t op, const Engine& e) {
  if (op == ReduceOp::AVG) sum.div_(e->getSize());
}

// Has an engine change a tensor, which wants it in one piece.
template <class F> void in_one_piece(Tensor& x, F change) {
  if (x.is_contiguous()) return change(x);
  Tensor piece = x.contiguous();
  change(piece);
  x.copy_(piece);
}

Tensor& all_reduce(Tensor& x, int64_t op, const string& group, Tensor&) {
  auto e = engine(group);
  in_one_piece(x, [&](Tensor& t) {
    c10d::AllreduceOptions options;
    options.reduceOp = engine_op(op);
    vector<Tensor> v{t};
    e->allreduce(v, options)->wait();
    average(t, op, e);
  });
  return x;
}
Tensor& reduce(Tensor& x, int64_t op, int64_t root, const string& group, Tensor&) {
  auto e = engine(group);
  // Others than the root keep what they gave, of which gloo makes partial sums.
  Tensor out = e->getRank() == root ? x : x.clone();
  in_one_piece(out, [&](Tensor& t) {
    c10d::ReduceOptions options;
    options.reduceOp = engine_op(op);
    options.rootRank = root;
    vector<Tensor> v{t};
    e->reduce(v, options)->wait();
    average(t, op, e);
  });
  return x;
}
Tensor& broadcast(Tensor& x, int64_t root, const string& group, Tensor&) {
  auto e = engine(group);
  in_one_piece(x, [&](Tensor& t) {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    vector<Tensor> v{t};
    e->broadcast(v, options)->wait();
  });
  return x;
}
Tensor all_gather(const Tensor& x, IntArrayRef size, const string& group, Tensor&) {
  Tensor in = x.reshape(-1), out = at::empty(size, x.options()), flat = out.view(-1);
  engine(group)->_allgather_base(flat, in)->wait();
  return out;
}
Tensor reduce_scatter(const Tensor& x, IntArrayRef size, int64_t op, const string& group, Tensor&) {
  auto e = engine(group);
  Tensor in = x.reshape(-1), out = at::empty(size, x.options()), flat = out.view(-1);
  c10d::ReduceScatterOptions options;
  options.reduceOp = engine_op(op);
  e->_reduce_scatter_base(flat, in, options)->wait();
  average(out, op, e);
  return out;
}
Tensor all_to_all(const Tensor& x, IntArrayRef size, IntArrayRef outs, IntArrayRef ins, const string& group, Tensor&) {
  Tensor in = x.contiguous(), out = at::empty(size, x.options());
  vector<int64_t> o = outs.vec(), i = ins.vec();
  engine(group)->alltoall_base(out, in, o, i)->wait();
  return out;
}
Tensor gather(const Tensor& x, IntArrayRef size, int64_t root, const string& group, Tensor&) {
  auto e = engine(group);
  Tensor out = at::empty(size, x.options());
  vector<vector<Tensor>> parts;
  if (e->getRank() == root) parts.push_back(out.unbind(0));
  vector<Tensor> in{x.contiguous()};
  c10d::GatherOptions options;
  options.rootRank = root;
  e->gather(parts, in, options)->wait();
  return out;
}
Tensor scatter(const Tensor& x, IntArrayRef size, int64_t root, const string& group, Tensor&) {
  auto e = engine(group);
  vector<Tensor> out{at::empty(size, x.options())};
  vector<vector<Tensor>> parts;
  if (e->getRank() == root) parts.push_back(x.contiguous().unbind(0));
  c10d::ScatterOptions options;
  options.rootRank = root;
  e->scatter(out, parts, options)->wait();
  return out[0];
}
// Ends before the message is there: its receiver may be waiting for something that comes later.
void send(const Tensor& x, int64_t to, int64_t tag, const string& group, Tensor&) {
  Open open = find(group);
  open.sent->reap();
  vector<Tensor> v{x.clone(at::MemoryFormat::Contiguous)};
  Work work = open.engine->send(v, static_cast<int>(to), static_cast<int>(tag));
  std::lock_guard<std::mutex> lock(open.sent->mutex);
  open.sent->works.push_back(std::move(work));
}
// Begins, and leaves a handle: the sender may wait for something that comes later here.
Tensor receive(const Tensor& like, int64_t from, int64_t tag, const string& group, Tensor&) {
  vector<Tensor> v{at::empty(like.sizes(), like.options())};
  Work work = engine(group)->recv(v, static_cast<int>(from), static_cast<int>(tag));
  auto& a = arrivals();
  std::lock_guard<std::mutex> lock(a.mutex);
  a.all[a.next] = {std::move(work), std::move(v[0])};
  return at::scalar_tensor(a.next++, at::TensorOptions().dtype(at::kLong));
}
Tensor& received(Tensor& x, const Tensor& handle) {
  auto& a = arrivals();
  Arriving arriving;
  {
    std::lock_guard<std::mutex> lock(a.mutex);
    auto found = a.all.find(*handle.const_data_ptr<int64_t>());
    TORCH_CHECK(found != a.all.end(), "a message is waited for twice");
    arriving = std::move(found->second);
    a.all.erase(found);
  }
  arriving.work->wait();
  x.copy_(arriving.into);
  return x;
}

Tensor sized(const Tensor& x, IntArrayRef size) { return at::empty(size, x.options()); }

struct Token {
  std::mutex mutex;
  Tensor of;
};
Token& g_token() {
  static auto* token = new Token;
  return *token;
}
}  // namespace

void wait_for_all() {
  for (int32_t device = 0; device < V.device_count; device++) {
    LtcError err;
    const int rc = V.synchronize(V.ctx, device, &err);
    give_warnings();
    check(rc, err);
  }
}

Engine open_group(const Group& group) {
  const string& name = group->getGroupName();
  Engine own;
  if (group->hasBackendForDeviceType(kLazy)) own = group->getBackend(kLazy);
  const bool shared = own && group->hasBackendForDeviceType(c10::kCPU) && group->getBackend(c10::kCPU) == own;
  TORCH_CHECK(own && !shared, "the process group ", name,
              shared ? " shares one engine between cpu and " : " has no engine for ",
              "ltc tensors, whose collectives run on a thread of their own: make it with "
              "init_process_group(\"cpu:gloo,ltc:ltc\")"
              ", or with no backend named");
  auto& g = groups();
  bool is_new = false;
  {
    std::lock_guard<std::mutex> lock(g.mutex);
    auto inherited = g.inherited.find(name);
    if (inherited != g.inherited.end() && inherited->second.engine == own) refuse_inherited(name);
    auto found = g.open.find(name);
    if (found != g.open.end() && found->second.engine == own) return own;
    is_new = found == g.open.end();
    if (is_new) g.open[name] = {own, std::make_shared<Sent>()};
  }
  // A group whose only engine is called gloo is asked for it by that name (DDP's log does).
  if (!group->hasBackendForDeviceType(c10::kCPU)) group->setBackend(kLazy, c10d::ProcessGroup::BackendType::GLOO, own);
  if (is_new) return own;
  // A group of that name was destroyed; its last programs run on its engine.
  wait_for_all();
  std::lock_guard<std::mutex> lock(g.mutex);
  g.open[name] = {own, std::make_shared<Sent>()};
  // Collectives are tried again, if one had failed.
  std::lock_guard<std::mutex> order(g_token().mutex);
  g_token().of = Tensor();
  return own;
}

// A message that nobody takes is given up when the process ends.
constexpr std::chrono::seconds kPatience{10};

void close_groups() {
  std::unordered_map<string, Open> open;
  {
    auto& g = groups();
    std::lock_guard<std::mutex> lock(g.mutex);
    open.swap(g.open);
  }
  for (auto& [name, group] : open) {
    std::lock_guard<std::mutex> lock(group.sent->mutex);
    for (auto& work : group.sent->works) {
      try {
        work->wait(kPatience);
      } catch (const std::exception& e) {
        TORCH_WARN("a message to another rank of the process group ", name, " was lost: ", e.what());
      }
    }
  }
}

const Tensor& token(c10::DeviceIndex device) {
  auto& t = g_token();
  std::lock_guard<std::mutex> lock(t.mutex);
  if (!t.of.defined()) {
    t.of = from_host(at::zeros({}, at::kLong), device);
    // Undoing its last change after a failure would let collectives behind the failed one meet those of other ranks
    // that are not theirs.
    V.storage_keep_failures(&storage_of(t.of.unsafeGetTensorImpl())->slot);
  }
  TORCH_CHECK(t.of.device().index() == device, "collectives of ", t.of.device(), " and of ", c10::Device(kLazy, device),
              " in one process: use one ltc device in each");
  return t.of;
}

void define_collectives() {
  static torch::Library schema(torch::Library::DEF, "ltc_dist", std::nullopt, __FILE__, __LINE__);
  schema.def("all_reduce(Tensor(a!) x, int op, str group, Tensor(b!) token) -> Tensor(a!)");
  schema.def("reduce(Tensor(a!) x, int op, int root, str group, Tensor(b!) token) -> Tensor(a!)");
  schema.def("broadcast(Tensor(a!) x, int root, str group, Tensor(b!) token) -> Tensor(a!)");
  schema.def("all_gather(Tensor x, int[] size, str group, Tensor(b!) token) -> Tensor");
  schema.def("reduce_scatter(Tensor x, int[] size, int op, str group, Tensor(b!) token) -> Tensor");
  schema.def("all_to_all(Tensor x, int[] size, int[] outs, int[] ins, str group, Tensor(b!) token) -> Tensor");
  schema.def("gather(Tensor x, int[] size, int root, str group, Tensor(b!) token) -> Tensor");
  schema.def("scatter(Tensor x, int[] size, int root, str group, Tensor(b!) token) -> Tensor");
  schema.def("send(Tensor x, int to, int tag, str group, Tensor(b!) token) -> ()");
  schema.def("receive(Tensor like, int sender, int tag, str group, Tensor(b!) token) -> Tensor");
  schema.def("received(Tensor(a!) x, Tensor handle) -> Tensor(a!)");
  schema.def("close() -> ()", close_groups);

  static torch::Library cpu(torch::Library::IMPL, "ltc_dist", DispatchKey::CPU, __FILE__, __LINE__);
  cpu.impl("all_reduce", all_reduce);
  cpu.impl("reduce", reduce);
  cpu.impl("broadcast", broadcast);
  cpu.impl("all_gather", all_gather);
  cpu.impl("reduce_scatter", reduce_scatter);
  cpu.impl("all_to_all", all_to_all);
  cpu.impl("gather", gather);
  cpu.impl("scatter", scatter);
  cpu.impl("send", send);
  cpu.impl("receive", receive);
  cpu.impl("received", received);

  // Shapes alone.
  using Name = const string&;
  using Size = IntArrayRef;
  static torch::Library meta(torch::Library::IMPL, "ltc_dist", DispatchKey::Meta, __FILE__, __LINE__);
  meta.impl("all_reduce", [](Tensor& x, int64_t, Name, Tensor&) -> Tensor& { return x; });
  meta.impl("reduce", [](Tensor& x, int64_t, int64_t, Name, Tensor&) -> Tensor& { return x; });
  meta.impl("broadcast", [](Tensor& x, int64_t, Name, Tensor&) -> Tensor& { return x; });
  meta.impl("all_gather", [](const Tensor& x, Size s, Name, Tensor&) { return sized(x, s); });
  meta.impl("reduce_scatter", [](const Tensor& x, Size s, int64_t, Name, Tensor&) { return sized(x, s); });
  meta.impl("all_to_all", [](const Tensor& x, Size s, Size, Size, Name, Tensor&) { return sized(x, s); });
  meta.impl("gather", [](const Tensor& x, Size s, int64_t, Name, Tensor&) { return sized(x, s); });
  meta.impl("scatter", [](const Tensor& x, Size s, int64_t, Name, Tensor&) { return sized(x, s); });
  meta.impl("send", [](const Tensor&, int64_t, int64_t, Name, Tensor&) {});
  meta.impl("receive", [](const Tensor& x, int64_t, int64_t, Name, Tensor&) {
    return at::empty({}, x.options().dtype(at::kLong));
  });
  meta.impl("received", [](Tensor& x, const Tensor&) -> Tensor& { return x; });
}
}  // namespace ltc
