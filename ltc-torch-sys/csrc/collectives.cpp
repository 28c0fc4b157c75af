// Collectives as operators of programs: `ltc_dist::*` on real tensors.
//
// Calls of torch.distributed on lazy tensors are recorded as these operators (process_group.cpp). They run where
// programs run, on the engine of the group that their last but one argument names. Their last argument is the device's
// token, which each operator reads and writes. So programs keep the operators in the order of the user's calls, which
// must be the same in all ranks, and keep an operator even if nobody needs its result.
//
// An operator begins a collective and returns a handle: the engine works on threads of its own, and `wait` makes the
// result a value. `wait` has no token, so a program runs on until a step needs the result. It takes the tensor that the
// engine reads as an operand, so that no step before `wait` writes to it.
//
// On a GPU the engine (NCCL) works on a stream of its own, behind what the place's stream holds when a collective
// begins, and `wait` puts the place's stream behind it: the host waits for neither. A failure there ends the process,
// by NCCL's watchdog, as it does for `cuda` tensors.
#include "collectives.h"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/library.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <thread>
#include <unordered_map>

#include "agreement.h"

namespace ltc {
namespace {
using c10d::ReduceOp;
using std::string;
using std::vector;
using Work = c10::intrusive_ptr<c10d::Work>;

// A collective or message that an engine has begun.
struct Begun {
  const char* name;
  Engine engine;
  Work work;
  // The tensor that the result comes to, if this rank has one, and the number that it is then divided by.
  Tensor into;
  int64_t divisor = 1;
  // Whether a `wait` will come. If not, the next collective reports a failure of this one.
  bool awaited = true;
  // Whether this is a message to another rank, of which the engine notes neither end nor failure by itself.
  bool is_sent = false;
  std::exception_ptr lost;

  bool is_message() const { return is_sent || work->retrieveOpType() == c10d::OpType::RECV; }
  std::exception_ptr failure() const {
    if (is_message() || is_on_streams(engine)) return lost;
    return work->isCompleted() ? work->exception() : nullptr;
  }
  [[noreturn]] void raise(const std::exception_ptr& why) const {
    try {
      std::rethrow_exception(why);
    } catch (const c10::Error& e) {
      TORCH_CHECK(false, name, ": ", e.what_without_backtrace());
    } catch (const std::exception& e) {
      TORCH_CHECK(false, name, ": ", e.what());
    }
  }
};

// All that is on its way, by the numbers that handles hold.
struct UnderWay {
  std::mutex mutex;
  int64_t next = 0;
  std::map<int64_t, std::shared_ptr<Begun>> all;
  // Messages that nobody here waits for, oldest first, and the thread that does: until they have arrived, the engine
  // needs their memory.
  std::deque<int64_t> messages;
  std::condition_variable changed;
  bool has_thread = false;
  pid_t process = getpid();
};
// Never destroyed: programs may run while statics are.
UnderWay& under_way() {
  static auto* all = new UnderWay;
  if (all->process != getpid()) all = new UnderWay;  // a forked child has none of its parent's threads
  return *all;
}

void attend(UnderWay& u) {
  std::unique_lock<std::mutex> lock(u.mutex);
  for (;;) {
    u.changed.wait(lock, [&] { return !u.messages.empty(); });
    auto found = u.all.find(u.messages.front());
    if (found != u.all.end()) {
      auto message = found->second;
      lock.unlock();
      std::exception_ptr lost;
      try {
        message->work->wait();
      } catch (...) {
        lost = std::current_exception();
      }
      lock.lock();
      if (lost) message->lost = lost;
      else u.all.erase(u.messages.front());
    }
    u.messages.pop_front();
    u.changed.notify_all();
  }
}
// Has a message waited for; the caller holds the lock.
void leave_alone(UnderWay& u, int64_t message) {
  u.messages.push_back(message);
  if (!std::exchange(u.has_thread, true)) std::thread(attend, std::ref(u)).detach();
  u.changed.notify_all();
}

// Most collectives without a `wait` that may be under way at once, so that a rank does not run ahead of the others.
constexpr size_t kUnneeded = 8;

// Raises the first failure among the collectives of this engine, and forgets those that are over and have no `wait`.
void raise_failures(const Engine& e) {
  auto& u = under_way();
  std::unique_lock<std::mutex> lock(u.mutex);
  vector<std::shared_ptr<Begun>> unneeded;
  for (auto each = u.all.begin(); each != u.all.end();) {
    auto begun = each->second;
    const bool is_ours = begun->engine == e;
    if (const auto why = is_ours ? begun->failure() : nullptr) {
      lock.unlock();
      begun->raise(why);
    }
    const bool is_unneeded = is_ours && !begun->awaited && !begun->is_message();
    const bool is_over = is_unneeded && begun->work->isCompleted();
    if (is_unneeded && !is_over) unneeded.push_back(std::move(begun));
    each = is_over ? u.all.erase(each) : std::next(each);
  }
  lock.unlock();
  if (unneeded.size() < kUnneeded) return;
  try {
    unneeded[0]->work->wait();
  } catch (...) {
    unneeded[0]->raise(std::current_exception());
  }
}

// Nobody waits for this any more.
void forget(int64_t number) {
  auto& u = under_way();
  std::lock_guard<std::mutex> lock(u.mutex);
  auto found = u.all.find(number);
  if (found == u.all.end()) return;
  auto& begun = *found->second;
  begun.awaited = false;
  if (begun.is_message() && !begun.lost) leave_alone(u, number);
}

// An engine that is gone fails nobody any more.
void drop(const Engine& e) {
  auto& u = under_way();
  std::lock_guard<std::mutex> lock(u.mutex);
  for (auto each = u.all.begin(); each != u.all.end();)
    each = each->second->engine == e ? u.all.erase(each) : std::next(each);
}

int64_t note(std::shared_ptr<Begun> begun) {
  auto& u = under_way();
  std::lock_guard<std::mutex> lock(u.mutex);
  u.all[u.next] = std::move(begun);
  return u.next++;
}

// A number as a value, for as long as `wait` may come.
Tensor begin(const char* name, const Engine& e, Work work, Tensor into, int64_t divisor = 1) {
  auto begun = std::make_shared<Begun>();
  begun->name = name;
  begun->engine = e;
  begun->work = std::move(work);
  begun->into = std::move(into);
  begun->divisor = divisor;
  auto* number = new int64_t(note(std::move(begun)));
  auto let_go = [number](void*) {
    forget(*number);
    delete number;
  };
  return at::from_blob(number, {}, let_go, at::TensorOptions().dtype(at::kLong));
}

// Engines by the names of their groups. A program that is on its way finds its engine though the group is gone.
struct Groups {
  std::mutex mutex;
  std::unordered_map<string, Engine> open;
  // Those of the parent, whose threads a forked child does not have.
  std::unordered_map<string, Engine> inherited;
  pid_t process = getpid();
};
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

// The engine of a group on which nothing failed.
Engine engine(const string& group) {
  const string name = group_name(group);
  auto& g = groups();
  Engine own;
  {
    std::lock_guard<std::mutex> lock(g.mutex);
    auto found = g.open.find(name);
    if (found == g.open.end() && g.inherited.count(name)) refuse_inherited(name);
    TORCH_CHECK(found != g.open.end(), "the process group ", name, " is gone");
    own = found->second;
  }
  raise_failures(own);
  return own;
}
// The same, for a collective that all ranks take part in. What they do is the same in all.
template <class... What> Engine engine_of_all(const string& group, const char* name, const What&... what) {
  auto e = engine(group);
  if (asks_others()) agree(e, group, c10::str(name, "(", what..., ")"));
  return e;
}

// Gloo sums and leaves the division to others.
bool leaves_division(int64_t op, const Engine& e) { return op == ReduceOp::AVG && !is_on_streams(e); }
ReduceOp::RedOpType engine_op(int64_t op, const Engine& e) {
  return leaves_division(op, e) ? ReduceOp::SUM : static_cast<ReduceOp::RedOpType>(op);
}
int64_t divisor(int64_t op, const Engine& e) { return leaves_division(op, e) ? e->getSize() : 1; }

// Engines change tensors that are in one piece. `wait` copies what was not.
Tensor all_reduce(Tensor& x, int64_t op, const string& group, Tensor&) {
  auto e = engine_of_all(group, "ltc_dist::all_reduce", x.scalar_type(), x.sizes(), ", op ", op);
  c10d::AllreduceOptions options;
  options.reduceOp = engine_op(op, e);
  vector<Tensor> piece{x.contiguous()};
  return begin("ltc_dist::all_reduce", e, e->allreduce(piece, options), piece[0], divisor(op, e));
}
Tensor reduce(Tensor& x, int64_t op, int64_t root, const string& group, Tensor&) {
  auto e = engine_of_all(group, "ltc_dist::reduce", x.scalar_type(), x.sizes(), ", op ", op, ", root ", root);
  const bool is_root = e->getRank() == root;
  c10d::ReduceOptions options;
  options.reduceOp = engine_op(op, e);
  options.rootRank = root;
  // Gloo writes partial sums to the tensors of all ranks, so ranks other than the root give a copy.
  vector<Tensor> piece{is_root ? x.contiguous() : x.clone(at::MemoryFormat::Contiguous)};
  Work work = e->reduce(piece, options);
  return begin("ltc_dist::reduce", e, std::move(work), is_root ? piece[0] : Tensor(), divisor(op, e));
}
Tensor broadcast(Tensor& x, int64_t root, const string& group, Tensor&) {
  auto e = engine_of_all(group, "ltc_dist::broadcast", x.scalar_type(), x.sizes(), ", root ", root);
  c10d::BroadcastOptions options;
  options.rootRank = root;
  vector<Tensor> piece{x.contiguous()};
  return begin("ltc_dist::broadcast", e, e->broadcast(piece, options), piece[0]);
}

using Pair = std::tuple<Tensor, Tensor>;
Pair all_gather(const Tensor& x, IntArrayRef size, const string& group, Tensor&) {
  auto e = engine_of_all(group, "ltc_dist::all_gather", x.scalar_type(), x.sizes());
  Tensor in = x.reshape(-1), out = at::empty(size, x.options()), flat = out.view(-1);
  return {out, begin("ltc_dist::all_gather", e, e->_allgather_base(flat, in), out)};
}
Pair reduce_scatter(const Tensor& x, IntArrayRef size, int64_t op, const string& group, Tensor&) {
  auto e = engine_of_all(group, "ltc_dist::reduce_scatter", x.scalar_type(), x.sizes(), ", op ", op);
  Tensor in = x.reshape(-1), out = at::empty(size, x.options()), flat = out.view(-1);
  c10d::ReduceScatterOptions options;
  options.reduceOp = engine_op(op, e);
  Work work = e->_reduce_scatter_base(flat, in, options);
  return {out, begin("ltc_dist::reduce_scatter", e, std::move(work), out, divisor(op, e))};
}
Pair all_to_all(const Tensor& x, IntArrayRef size, IntArrayRef outs, IntArrayRef ins, const string& group, Tensor&) {
  auto e = engine_of_all(group, "ltc_dist::all_to_all", x.scalar_type());
  Tensor in = x.contiguous(), out = at::empty(size, x.options());
  vector<int64_t> o = outs.vec(), i = ins.vec();
  return {out, begin("ltc_dist::all_to_all", e, e->alltoall_base(out, in, o, i), out)};
}
Pair gather(const Tensor& x, IntArrayRef size, int64_t root, const string& group, Tensor&) {
  auto e = engine_of_all(group, "ltc_dist::gather", x.scalar_type(), x.sizes(), ", root ", root);
  Tensor out = at::empty(size, x.options());
  vector<vector<Tensor>> parts;
  if (e->getRank() == root) parts.push_back(out.unbind(0));
  vector<Tensor> in{x.contiguous()};
  c10d::GatherOptions options;
  options.rootRank = root;
  return {out, begin("ltc_dist::gather", e, e->gather(parts, in, options), out)};
}
Pair scatter(const Tensor& x, IntArrayRef size, int64_t root, const string& group, Tensor&) {
  auto e = engine_of_all(group, "ltc_dist::scatter", x.scalar_type(), size, ", root ", root);
  vector<Tensor> out{at::empty(size, x.options())};
  vector<vector<Tensor>> parts;
  if (e->getRank() == root) parts.push_back(x.contiguous().unbind(0));
  c10d::ScatterOptions options;
  options.rootRank = root;
  Work work = e->scatter(out, parts, options);
  return {out[0], begin("ltc_dist::scatter", e, std::move(work), out[0])};
}

// Nobody here waits for a message to be taken: its receiver may be waiting for something that comes later.
void send(const Tensor& x, int64_t to, int64_t tag, const string& group, Tensor&) {
  auto message = std::make_shared<Begun>();
  message->name = "ltc_dist::send";
  message->engine = engine(group);
  message->awaited = false;
  message->is_sent = true;
  vector<Tensor> v{x.clone(at::MemoryFormat::Contiguous)};
  message->work = message->engine->send(v, static_cast<int>(to), static_cast<int>(tag));
  const auto number = note(std::move(message));
  auto& u = under_way();
  std::lock_guard<std::mutex> lock(u.mutex);
  leave_alone(u, number);
}
// A message arrives in memory of its own, because the sender may wait for an operation that comes later here.
Tensor receive(const Tensor& like, int64_t from, int64_t tag, const string& group, Tensor&) {
  auto e = engine(group);
  vector<Tensor> v{at::empty(like.sizes(), like.options())};
  Work work = e->recv(v, static_cast<int>(from), static_cast<int>(tag));
  return begin("ltc_dist::receive", e, std::move(work), v[0]);
}

// Waits for the collective of this handle and gives its result in place of `x`; the engine may have written it to `x`
// already. The last operand is the tensor that the engine reads.
Tensor& wait(Tensor& x, const Tensor& handle, const std::optional<Tensor>&) {
  auto& u = under_way();
  std::shared_ptr<Begun> begun;
  {
    std::lock_guard<std::mutex> lock(u.mutex);
    auto found = u.all.find(*handle.const_data_ptr<int64_t>());
    TORCH_CHECK(found != u.all.end(), "what is waited for was there before, or its process group is gone");
    begun = found->second;
  }
  try {
    begun->work->wait();
  } catch (...) {
    // The collective stays noted with its failure, so that the next collective of this engine fails, too.
    const auto why = std::current_exception();
    {
      std::lock_guard<std::mutex> lock(u.mutex);
      begun->lost = why;
    }
    begun->raise(why);
  }
  {
    std::lock_guard<std::mutex> lock(u.mutex);
    u.all.erase(*handle.const_data_ptr<int64_t>());
  }
  Tensor& into = begun->into;
  if (!into.defined()) return x;
  if (begun->divisor > 1) into.div_(begun->divisor);
  if (into.data_ptr() != x.data_ptr() || into.strides() != x.strides()) x.copy_(into);
  return x;
}

Tensor handle_like(const Tensor& x) { return at::empty({}, x.options().dtype(at::kLong)); }
Pair sized(const Tensor& x, IntArrayRef size) { return {at::empty(size, x.options()), handle_like(x)}; }

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
  const auto of = group->getDeviceTypes();
  const auto serves = [&](c10::DeviceType type) {
    return std::any_of(of.begin(), of.end(), [=](c10::Device device) { return device.type() == type; });
  };
  Engine own;
  if (serves(kLazy)) own = group->getBackend(kLazy);
  const bool shared = own && serves(c10::kCPU) && group->getBackend(c10::kCPU) == own;
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
    if (inherited != g.inherited.end() && inherited->second == own) refuse_inherited(name);
    auto found = g.open.find(name);
    if (found != g.open.end() && found->second == own) return own;
    is_new = found == g.open.end();
    if (is_new) g.open[name] = own;
  }
  // A group whose only engine is this one is asked for it by its name, which libtorch took for gloo's (DDP's log does).
  if (!serves(c10::kCPU)) {
    const bool streams = is_on_streams(own);
    const auto type = streams ? c10d::ProcessGroup::BackendType::NCCL : c10d::ProcessGroup::BackendType::GLOO;
    group->setBackend(kLazy, type, own);
    if (streams) group->setDefaultBackend(type);
  }
  if (is_new) return own;
  // A group of that name was destroyed; its last programs run on its engine.
  wait_for_all();
  std::lock_guard<std::mutex> lock(g.mutex);
  drop(std::exchange(g.open[name], own));
  // Collectives are tried again, if one had failed.
  std::lock_guard<std::mutex> order(g_token().mutex);
  g_token().of = Tensor();
  return own;
}

// At the end of the process, messages that nobody receives, and collectives that others do not join, are waited for
// this long and then given up.
constexpr std::chrono::seconds kPatience{10};

void close_groups() {
  {
    auto& g = groups();
    std::lock_guard<std::mutex> lock(g.mutex);
    g.open.clear();
  }
  auto& u = under_way();
  std::unique_lock<std::mutex> lock(u.mutex);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  // Other ranks may need the collectives that are still under way, although nobody here needs their results.
  auto begun = u.all;
  lock.unlock();
  for (auto& [number, each] : begun) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (each->is_message() || left.count() <= 0) continue;
    try {
      // With an engine on streams, `wait` would only order the streams, so completion is polled.
      while (is_on_streams(each->engine) && !each->work->isCompleted() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      each->work->wait(left);
    } catch (const std::exception&) {
      // Other ranks have the error, too, or this one had it.
    }
  }
  lock.lock();
  const bool taken = u.changed.wait_until(lock, end, [&] { return u.messages.empty(); });
  const auto lost = std::count_if(u.all.begin(), u.all.end(), [](auto& each) { return each.second->is_message(); });
  lock.unlock();
  if (lost)
    TORCH_WARN(lost, " messages between this rank and others ",
               taken ? "were lost" : "had not arrived when this process ended");
}

const Tensor& token(c10::DeviceIndex device) {
  auto& t = g_token();
  std::lock_guard<std::mutex> lock(t.mutex);
  if (!t.of.defined()) {
    t.of = from_value(at::zeros({}, at::kLong), device);
    // After a failure the token must keep the failure. If its last change were undone, later collectives would run and
    // meet collectives of other ranks that do not belong to them.
    V.storage_keep_failures(&storage_of(t.of.unsafeGetTensorImpl())->slot);
  }
  TORCH_CHECK(t.of.device().index() == device, "collectives of ", t.of.device(), " and of ", c10::Device(kLazy, device),
              " in one process: use one ltc device in each");
  return t.of;
}

void define_collectives() {
  static torch::Library schema(torch::Library::DEF, "ltc_dist", std::nullopt, __FILE__, __LINE__);
  schema.def("all_reduce(Tensor(a!) x, int op, str group, Tensor(b!) token) -> Tensor");
  schema.def("reduce(Tensor(a!) x, int op, int root, str group, Tensor(b!) token) -> Tensor");
  schema.def("broadcast(Tensor(a!) x, int root, str group, Tensor(b!) token) -> Tensor");
  schema.def("all_gather(Tensor x, int[] size, str group, Tensor(b!) token) -> (Tensor, Tensor)");
  schema.def("reduce_scatter(Tensor x, int[] size, int op, str group, Tensor(b!) token) -> (Tensor, Tensor)");
  schema.def(
      "all_to_all(Tensor x, int[] size, int[] outs, int[] ins, str group, Tensor(b!) token) -> (Tensor, Tensor)");
  schema.def("gather(Tensor x, int[] size, int root, str group, Tensor(b!) token) -> (Tensor, Tensor)");
  schema.def("scatter(Tensor x, int[] size, int root, str group, Tensor(b!) token) -> (Tensor, Tensor)");
  schema.def("send(Tensor x, int to, int tag, str group, Tensor(b!) token) -> ()");
  schema.def("receive(Tensor like, int sender, int tag, str group, Tensor(b!) token) -> Tensor");
  schema.def("wait(Tensor(a!) x, Tensor handle, Tensor? source) -> Tensor(a!)");
  schema.def("close() -> ()", close_groups);

  static torch::Library cpu(torch::Library::IMPL, "ltc_dist", DispatchKey::CPU, __FILE__, __LINE__);
  static torch::Library cuda(torch::Library::IMPL, "ltc_dist", DispatchKey::CUDA, __FILE__, __LINE__);
  for (auto* kernels : {&cpu, &cuda}) {
    kernels->impl("all_reduce", all_reduce);
    kernels->impl("reduce", reduce);
    kernels->impl("broadcast", broadcast);
    kernels->impl("all_gather", all_gather);
    kernels->impl("reduce_scatter", reduce_scatter);
    kernels->impl("all_to_all", all_to_all);
    kernels->impl("gather", gather);
    kernels->impl("scatter", scatter);
    kernels->impl("wait", wait);
  }
  cpu.impl("send", send);
  cpu.impl("receive", receive);

  // Shapes alone.
  using Name = const string&;
  using Size = IntArrayRef;
  static torch::Library meta(torch::Library::IMPL, "ltc_dist", DispatchKey::Meta, __FILE__, __LINE__);
  meta.impl("all_reduce", [](Tensor& x, int64_t, Name, Tensor&) { return handle_like(x); });
  meta.impl("reduce", [](Tensor& x, int64_t, int64_t, Name, Tensor&) { return handle_like(x); });
  meta.impl("broadcast", [](Tensor& x, int64_t, Name, Tensor&) { return handle_like(x); });
  meta.impl("all_gather", [](const Tensor& x, Size s, Name, Tensor&) { return sized(x, s); });
  meta.impl("reduce_scatter", [](const Tensor& x, Size s, int64_t, Name, Tensor&) { return sized(x, s); });
  meta.impl("all_to_all", [](const Tensor& x, Size s, Size, Size, Name, Tensor&) { return sized(x, s); });
  meta.impl("gather", [](const Tensor& x, Size s, int64_t, Name, Tensor&) { return sized(x, s); });
  meta.impl("scatter", [](const Tensor& x, Size s, int64_t, Name, Tensor&) { return sized(x, s); });
  meta.impl("send", [](const Tensor&, int64_t, int64_t, Name, Tensor&) {});
  meta.impl("receive", [](const Tensor& x, int64_t, int64_t, Name, Tensor&) { return handle_like(x); });
  meta.impl("wait", [](Tensor& x, const Tensor&, const std::optional<Tensor>&) -> Tensor& { return x; });
}
}  // namespace ltc
