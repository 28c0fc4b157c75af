// torch.distributed over lazy tensors: `c10d::*`, which everything there ends in, recorded as operators of
// collectives.cpp.
//
// The kernels are boxed and ask for arguments by name, as releases of libtorch add some. A collective's work is done as
// soon as it is recorded, as its result is a value like others.
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
#include <torch/library.h>

#include <numeric>

#include "agreement.h"

namespace ltc {
namespace {
using c10d::ReduceOp;
using std::string;
using std::vector;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// Arguments of a call, by name.
struct Call {
  const c10::FunctionSchema& schema;
  const Stack& stack;

  const IValue& get(const char* name) const {
    auto index = schema.argumentIndexWithName(name);
    TORCH_CHECK(index, "this libtorch's ", schema.name(), " has no argument ", name);
    return stack[stack.size() - schema.arguments().size() + *index];
  }
  Group group() const { return get("process_group").toCustomClass<c10d::ProcessGroup>(); }
  Tensor tensor(const char* name) const { return get(name).toTensor(); }
  vector<Tensor> tensors(const char* name) const { return get(name).toTensorVector(); }
  // One list of tensors, of the lists that torch.distributed gives one of.
  vector<Tensor> only_list(const char* name) const {
    const auto lists = get(name).toListRef();
    TORCH_CHECK(lists.size() == 1, schema.name(), ": ", name, " holds ", lists.size(), " lists of tensors, not one");
    return lists[0].toTensorVector();
  }
  Tensor only_tensor(const char* name) const {
    auto all = tensors(name);
    TORCH_CHECK(all.size() == 1, schema.name(), ": ", name, " holds ", all.size(), " tensors, not one");
    return all[0];
  }
  int64_t number(const char* name) const { return get(name).toInt(); }
  vector<int64_t> numbers(const char* name) const { return get(name).toIntVector(); }
  // How values are combined.
  int64_t op(const Tensor& x) const {
    auto op = get("reduce_op").toCustomClass<ReduceOp>()->op_;
    TORCH_CHECK(op != ReduceOp::PREMUL_SUM, schema.name(), ": collectives of ltc tensors have no PREMUL_SUM");
    TORCH_CHECK(op != ReduceOp::AVG || x.is_floating_point(), schema.name(), " of ", x.scalar_type(), x.sizes(),
                ": the average of integers is not one");
    return op;
  }
};

void need(bool holds, const Call& call, const Tensor& out, const Tensor& in, const char* what) {
  TORCH_CHECK(holds, call.schema.name(), ": an output of ", out.scalar_type(), out.sizes(), " for an input of ",
              in.scalar_type(), in.sizes(), ": ", what);
}
void need_dtype(const Call& call, const Tensor& out, const Tensor& in) {
  need(out.scalar_type() == in.scalar_type(), call, out, in, "their dtypes differ");
}

// Records that something begins: an operator of collectives.cpp on `x`, and what else its schema says before group and
// token.
template <class... Args> Stack begin(const char* name, const Group& group, const Tensor& x, Args... args) {
  TORCH_CHECK(is_lazy(x), name, ": expected a tensor of an ltc device, got one of ", x.device());
  const auto device = x.device().index();
  const c10::Device place = place_of_device(device);
  TORCH_CHECK(is_on_streams(open_group(group)) == !place.is_cpu(), "the process group ", group->getGroupName(),
              " was made for an ltc device whose values are elsewhere than on ", place, ": call torch.ltc.set_device(",
              (int)device, ") before the group is made");
  const Tensor& order = token(device);
  Stack stack{x, IValue(args)..., group_argument(group->getGroupName()), order};
  auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  op.callBoxed(&stack);
  V.others_wait(V.ctx, device);
  return stack;
}
// Records that `x` becomes what was begun. An engine may read `source` until then.
void wait(const Tensor& x, IValue handle, IValue source = {}) {
  Stack stack{x, std::move(handle), std::move(source)};
  c10::Dispatcher::singleton().findSchemaOrThrow("ltc_dist::wait", "").callBoxed(&stack);
}
// Records a collective that changes `x`.
template <class... Args> void change(const char* name, const Group& group, const Tensor& x, Args... args) {
  wait(x, begin(name, group, x, args...)[0]);
}
// Records a collective that makes something of `x`.
template <class... Args> Tensor make(const char* name, const Group& group, const Tensor& x, Args... args) {
  Stack made = begin(name, group, x, args...);
  wait(made[0].toTensor(), made[1], x);
  return made[0].toTensor();
}

int64_t size_of(const Group& group) { return group->getSize(); }
vector<int64_t> stacked(int64_t count, const Tensor& x) {
  auto sizes = x.sizes().vec();
  sizes.insert(sizes.begin(), count);
  return sizes;
}
void copy_parts(const vector<Tensor>& outs, const Tensor& stack) {
  auto parts = stack.unbind(0);
  for (size_t i = 0; i < outs.size(); i++) outs[i].copy_(parts[i]);
}

// ---- what becomes of each operator of c10d ----
void all_reduce(const Call& call) {
  for (auto& t : call.tensors("tensors")) change("ltc_dist::all_reduce", call.group(), t, call.op(t));
}
void reduce(const Call& call) {
  for (auto& t : call.tensors("tensors"))
    change("ltc_dist::reduce", call.group(), t, call.op(t), call.number("root_rank"));
}
void broadcast(const Call& call) {
  for (auto& t : call.tensors("tensors")) change("ltc_dist::broadcast", call.group(), t, call.number("root_rank"));
}

void gather_all_into(const Call& call, const Tensor& out, const Tensor& in) {
  const auto group = call.group();
  need_dtype(call, out, in);
  need(out.numel() == in.numel() * size_of(group), call, out, in, "it must have as many elements of each rank");
  out.copy_(make("ltc_dist::all_gather", group, in, out.sizes().vec()));
}
void all_gather_into(const Call& call) {
  gather_all_into(call, call.tensor("output_tensor"), call.tensor("input_tensor"));
}
void all_gather_into_each(const Call& call) {
  auto outs = call.tensors("outputs"), ins = call.tensors("inputs");
  TORCH_CHECK(outs.size() == ins.size(), call.schema.name(), ": ", outs.size(), " outputs for ", ins.size(), " inputs");
  for (size_t i = 0; i < ins.size(); i++) gather_all_into(call, outs[i], ins[i]);
}
void gather_all(const Call& call, const vector<Tensor>& outs, const Tensor& in) {
  const auto group = call.group();
  TORCH_CHECK((int64_t)outs.size() == size_of(group), call.schema.name(), ": ", outs.size(), " outputs for ",
              size_of(group), " ranks");
  for (auto& out : outs) {
    need_dtype(call, out, in);
    need(out.numel() == in.numel(), call, out, in, "each must have as many elements as the input");
  }
  Tensor all = make("ltc_dist::all_gather", group, in, stacked(size_of(group), in));
  auto parts = all.unbind(0);
  for (size_t i = 0; i < outs.size(); i++) outs[i].copy_(parts[i].view(outs[i].sizes()));
}
void all_gather(const Call& call) {
  gather_all(call, call.only_list("output_tensors"), call.only_tensor("input_tensors"));
}
void all_gather_each(const Call& call) {
  const auto lists = call.get("output_lists").toListRef();
  auto ins = call.tensors("input_list");
  const auto ranks = static_cast<size_t>(size_of(call.group()));
  TORCH_CHECK(lists.size() == ranks, call.schema.name(), ": ", lists.size(), " lists of outputs for ", ranks, " ranks");
  for (size_t i = 0; i < ins.size(); i++) {
    vector<Tensor> outs;
    for (const IValue& list : lists) outs.push_back(list.toTensorVector().at(i));
    gather_all(call, outs, ins[i]);
  }
}

void scatter_sum(const Call& call, const Tensor& out, const Tensor& in) {
  const auto group = call.group();
  need_dtype(call, out, in);
  need(in.numel() == out.numel() * size_of(group), call, out, in, "the input must have as many elements for each rank");
  out.copy_(make("ltc_dist::reduce_scatter", group, in, out.sizes().vec(), call.op(in)));
}
void reduce_scatter_tensor(const Call& call) {
  scatter_sum(call, call.tensor("output_tensor"), call.tensor("input_tensor"));
}
void reduce_scatter_tensors(const Call& call) {
  auto outs = call.tensors("outputs"), ins = call.tensors("inputs");
  TORCH_CHECK(outs.size() == ins.size(), call.schema.name(), ": ", outs.size(), " outputs for ", ins.size(), " inputs");
  for (size_t i = 0; i < ins.size(); i++) scatter_sum(call, outs[i], ins[i]);
}
void reduce_scatter(const Call& call) {
  scatter_sum(call, call.only_tensor("output_tensors"), at::stack(call.only_list("input_tensors")));
}

void all_to_all_tensor(const Call& call) {
  Tensor out = call.tensor("output"), in = call.tensor("input");
  need_dtype(call, out, in);
  auto outs = call.numbers("output_split_sizes"), ins = call.numbers("input_split_sizes");
  const auto world = size_of(call.group());
  auto fits = [&](const vector<int64_t>& splits, const Tensor& t) {
    return t.dim() > 0 &&
        (splits.empty() ? t.size(0) % world == 0
                        : (int64_t)splits.size() == world &&
                 std::accumulate(splits.begin(), splits.end(), int64_t(0)) == t.size(0));
  };
  need(fits(outs, out) && fits(ins, in), call, out, in,
       "their first dimensions must be as the splits say, or divisible by the number of ranks");
  out.copy_(make("ltc_dist::all_to_all", call.group(), in, out.sizes().vec(), outs, ins));
}
void all_to_all(const Call& call) {
  auto outs = call.tensors("output_tensors"), ins = call.tensors("input_tensors");
  const auto world = static_cast<size_t>(size_of(call.group()));
  TORCH_CHECK(outs.size() == world && ins.size() == world, call.schema.name(), ": ", outs.size(), " outputs and ",
              ins.size(), " inputs for ", world, " ranks");
  vector<int64_t> from, to;
  vector<Tensor> flat;
  for (auto& t : ins) {
    need_dtype(call, outs[0], t);
    to.push_back(t.numel());
    flat.push_back(t.reshape(-1));
  }
  for (auto& t : outs) {
    need_dtype(call, t, ins[0]);
    from.push_back(t.numel());
  }
  const auto total = std::accumulate(from.begin(), from.end(), int64_t(0));
  Tensor all = make("ltc_dist::all_to_all", call.group(), at::cat(flat), vector<int64_t>{total}, from, to);
  auto parts = all.split_with_sizes(from);
  for (size_t i = 0; i < outs.size(); i++) outs[i].copy_(parts[i].view(outs[i].sizes()));
}

void gather_into(const Call& call) {
  const auto group = call.group();
  Tensor out = call.tensor("output_tensor"), in = call.tensor("input_tensor");
  const bool root = group->getRank() == call.number("root_rank");
  if (root) {
    need_dtype(call, out, in);
    need(out.numel() == in.numel() * size_of(group), call, out, in, "it must have as many elements of each rank");
  }
  Tensor all = make("ltc_dist::gather", group, in, root ? stacked(size_of(group), in) : vector<int64_t>{0},
                    call.number("root_rank"));
  if (root) out.copy_(all.view(out.sizes()));
}
void gather(const Call& call) {
  const auto group = call.group();
  const bool root = group->getRank() == call.number("root_rank");
  Tensor in = call.only_tensor("input_tensors");
  vector<Tensor> outs;
  if (root) {
    outs = call.only_list("output_tensors");
    TORCH_CHECK((int64_t)outs.size() == size_of(group), call.schema.name(), ": ", outs.size(), " outputs for ",
                size_of(group), " ranks");
    for (auto& out : outs) {
      need_dtype(call, out, in);
      need(out.sizes() == in.sizes(), call, out, in, "each must have the input's shape");
    }
  }
  Tensor all = make("ltc_dist::gather", group, in, root ? stacked(size_of(group), in) : vector<int64_t>{0},
                    call.number("root_rank"));
  if (root) copy_parts(outs, all);
}
void scatter(const Call& call) {
  const auto group = call.group();
  Tensor out = call.only_tensor("output_tensors"), in = at::empty({0}, out.options());
  if (group->getRank() == call.number("root_rank")) {
    auto ins = call.only_list("input_tensors");
    TORCH_CHECK((int64_t)ins.size() == size_of(group), call.schema.name(), ": ", ins.size(), " inputs for ",
                size_of(group), " ranks");
    for (auto& t : ins) {
      need_dtype(call, out, t);
      need(out.sizes() == t.sizes(), call, out, t, "each must have the output's shape");
    }
    in = at::stack(ins);
  }
  out.copy_(make("ltc_dist::scatter", group, in, out.sizes().vec(), call.number("root_rank")));
}
// NCCL starts operations between two ranks in the order of the calls on each of them. A rank that sends to a rank it
// also receives from would have to start both at once, which programs do not.
void need_host(const Call& call, const Tensor& t) {
  const c10::Device place = is_lazy(t) ? place_of_device(t.device().index()) : t.device();
  TORCH_CHECK_NOT_IMPLEMENTED(place.is_cpu(), call.schema.name(), ": messages of ltc tensors whose values are on ",
                              place, " are not supported: use collectives, or send what .cpu() gives");
}
void send(const Call& call) {
  for (auto& t : call.tensors("tensors")) need_host(call, t);
  for (auto& t : call.tensors("tensors"))
    begin("ltc_dist::send", call.group(), t, call.number("dst"), call.number("tag"));
}

// Done: recorded.
struct Done final : c10d::Work {
  vector<Tensor> results;
  explicit Done(vector<Tensor> r) : results(std::move(r)) {}
  bool wait(std::chrono::milliseconds) override { return true; }
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  void synchronize() override {}
  vector<Tensor> result() override { return results; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(IValue(results));
    return future;
  }
};
WorkPtr done(vector<Tensor> results) { return c10::make_intrusive<Done>(std::move(results)); }

// A message that has not arrived yet. The tensors it is received in have their values after a wait for this, not
// before.
struct Receiving : c10d::Work {
  vector<Tensor> into, handles;
  Receiving(vector<Tensor> t, vector<Tensor> h)
      : c10d::Work(-1, c10d::OpType::RECV), into(std::move(t)), handles(std::move(h)) {}
  void receive() {
    c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    auto there = std::exchange(handles, {});
    for (size_t i = 0; i < there.size(); i++) ltc::wait(into[i], there[i]);
  }
  bool wait(std::chrono::milliseconds) override {
    receive();
    return true;
  }
  bool isCompleted() override {
    receive();
    return true;
  }
  bool isSuccess() const override { return true; }
  void synchronize() override { receive(); }
  vector<Tensor> result() override {
    receive();
    return into;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    receive();
    return done(into)->getFuture();
  }
};
WorkPtr receive(const Call& call) {
  vector<Tensor> handles;
  auto into = call.tensors("tensors");
  for (auto& t : into) need_host(call, t);
  for (auto& t : into)
    handles.push_back(
        begin("ltc_dist::receive", call.group(), t.detach(), call.number("src"), call.number("tag"))[0].toTensor());
  return c10::make_intrusive<Receiving>(std::move(into), std::move(handles));
}

// Whose message it is only the engine knows: this one waits.
struct ReceivedFromAny : c10d::Work {
  WorkPtr work;
  Tensor into, host;
  ReceivedFromAny(WorkPtr w, Tensor t, Tensor h)
      : c10d::Work(-1, c10d::OpType::RECVANYSOURCE), work(std::move(w)), into(std::move(t)), host(std::move(h)) {}
  bool wait(std::chrono::milliseconds timeout) override {
    if (!host.defined()) return true;
    const bool there = work->wait(timeout);
    c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    write_value(into, std::exchange(host, Tensor()));
    return there;
  }
  bool isCompleted() override { return work->isCompleted() && wait(kNoTimeout); }
  bool isSuccess() const override { return work->isSuccess(); }
  int sourceRank() const override { return work->sourceRank(); }
};
WorkPtr receive_from_any(const Call& call) {
  Tensor into = call.only_tensor("tensors");
  need_host(call, into);
  Engine engine = open_group(call.group());
  wait_for_all();
  vector<Tensor> host{at::empty(into.sizes(), into.options().device(at::kCPU))};
  WorkPtr work = engine->recvAnysource(host, static_cast<int>(call.number("tag")));
  return c10::make_intrusive<ReceivedFromAny>(std::move(work), into, host[0]);
}

WorkPtr barrier(const Call& call) {
  Engine engine = open_group(call.group());
  wait_for_all();
  engine->barrier()->wait();
  return done({});
}
void monitored_barrier(const Call& call) {
  Engine engine = open_group(call.group());
  wait_for_all();
  c10d::BarrierOptions options;
  options.timeout = std::chrono::milliseconds(call.number("timeout"));
  engine->monitoredBarrier(options, call.get("wait_all_ranks").toBool());
}

void tensors_of(const IValue& v, vector<Tensor>& all) {
  if (v.isTensor()) all.push_back(v.toTensor());
  else
    for (const IValue& each : v.toListRef()) tensors_of(each, all);
}
vector<Tensor> tensors_of(const IValue& v) {
  vector<Tensor> all;
  tensors_of(v, all);
  return all;
}

// A boxed kernel of a handler. Of what c10d's operators give back, tensors are those of the first argument.
template <auto handler> void serve(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
  at::AutoDispatchBelowADInplaceOrView below;
  Call call{op.schema(), *stack};
  WorkPtr work;
  if constexpr (std::is_same_v<decltype(handler(call)), WorkPtr>) work = handler(call);
  else handler(call);
  const auto& arguments = op.schema().arguments();
  IValue first = (*stack)[stack->size() - arguments.size()];
  stack->resize(stack->size() - arguments.size());
  for (const auto& result : op.schema().returns()) {
    if (result.type()->kind() != c10::TypeKind::ClassType) stack->push_back(first);
    else stack->push_back(work ? work : done(tensors_of(first)));
  }
}

// What DDP's log measures, by the host's clock: when work was recorded.
struct Timer final : c10d::Timer {
  explicit Timer(c10::Device) {}
  std::optional<int64_t> measureDifference(Event from, Event to) override {
    auto start = getTimestamp(from), end = getTimestamp(to);
    if (!start || !end || *end < *start) return std::nullopt;
    return *end - *start;
  }
};

// Serves an operator, if this libtorch has it.
template <auto handler> void take(torch::Library& m, const char* name) {
  if (c10::Dispatcher::singleton().findSchema({string("c10d::") + name, ""}))
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&serve<handler>>());
}

struct Silence final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};
}  // namespace

void serve_process_groups() {
  c10d::TimerRegistry()->Register(
      kLazy, [](c10::Device d) -> std::unique_ptr<c10d::Timer> { return std::make_unique<Timer>(d); });
  static torch::Library m(torch::Library::IMPL, "c10d", DispatchKey::PrivateUse1, __FILE__, __LINE__);
  // libtorch has kernels for such devices, which these take the place of; it warns of that.
  Silence silence;
  c10::WarningUtils::WarningHandlerGuard quiet(&silence);
  take<&all_reduce>(m, "allreduce_");
  take<&all_reduce>(m, "allreduce_coalesced_");
  take<&reduce>(m, "reduce_");
  take<&broadcast>(m, "broadcast_");
  take<&all_gather>(m, "allgather_");
  take<&all_gather_into>(m, "_allgather_base_");
  take<&all_gather_each>(m, "allgather_coalesced_");
  take<&all_gather_into_each>(m, "allgather_into_tensor_coalesced_");
  take<&reduce_scatter>(m, "reduce_scatter_");
  take<&reduce_scatter_tensor>(m, "_reduce_scatter_base_");
  take<&reduce_scatter_tensors>(m, "reduce_scatter_tensor_coalesced_");
  take<&all_to_all>(m, "alltoall_");
  take<&all_to_all_tensor>(m, "alltoall_base_");
  take<&gather>(m, "gather_");
  take<&gather_into>(m, "gather_into_tensor_");
  take<&scatter>(m, "scatter_");
  take<&send>(m, "send");
  take<&receive>(m, "recv_");
  take<&receive_from_any>(m, "recv_any_source_");
  take<&barrier>(m, "barrier");
  take<&monitored_barrier>(m, "monitored_barrier_");
}
}  // namespace ltc
