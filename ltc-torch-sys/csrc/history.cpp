// The way back through a compiled step: the nodes that autograd made while it was captured, run again for each replay.
#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <typeinfo>
#include <unordered_set>

#include "shim.h"

namespace ltc {
namespace {
using namespace torch::autograd;

// Where the step begins: it stands between the nodes that the step makes and the history of a tensor that it was given.
// Gradients pass through it as they are; cut, it is where going back through the step ends.
struct Entrance final : Node {
  explicit Entrance(edge_list&& next) : Node(std::move(next)) {}
  std::string name() const override { return "CompiledStepInput"; }
  variable_list apply(variable_list&& grads) override { return std::move(grads); }
  void cut() { next_edges_.clear(); }
};

struct Given {
  Tensor tensor;
  Edge own;
  std::shared_ptr<Entrance> entrance;
};

bool has_hooks(Node& node) {
  return !node.tensor_pre_hooks().empty() || !node.pre_hooks().empty() || !node.post_hooks().empty() ||
      !node.retains_grad_hooks().empty();
}

// A function that a Python class differentiates. The class is torch's Python bindings', which are not linked to.
bool is_python(Node& node) { return std::string(typeid(node).name()).find("6PyNodeE") != std::string::npos; }
}  // namespace
}  // namespace ltc

struct LtcHistory {
  std::vector<ltc::Given> given;
  torch::autograd::edge_list roots;
  uint64_t since = 0;
  bool open = false;

  // The tensors have their own history again, unless the step gave them another one.
  void close() {
    if (!std::exchange(open, false)) return;
    for (auto& g : given) {
      auto* meta = torch::autograd::impl::get_autograd_meta(g.tensor);
      if (!meta) continue;
      if (meta->grad_fn_ == g.entrance) {
        // A hook that the step added stays where it was added.
        if (ltc::has_hooks(*g.entrance)) continue;
        meta->grad_fn_ = g.own.function;
        meta->output_nr_ = g.own.input_nr;
      } else if (!meta->grad_fn_ && meta->grad_accumulator_.lock() == g.entrance) {
        meta->grad_accumulator_ = g.own.function;
      }
    }
  }
  ~LtcHistory() { close(); }
};

using namespace ltc;

extern "C" {
LtcHistory* ltc_history_begin(const void* const* tensors, size_t n, LtcError* err) {
  auto* history = new LtcHistory;
  const int failed = guarded(err, [&] {
    history->since = at::sequence_number::peek();
    history->open = true;
    std::unordered_set<const void*> seen;
    for (size_t i = 0; i < n; i++) {
      const Tensor& t = *static_cast<const Tensor*>(tensors[i]);
      auto* meta = impl::get_autograd_meta(t);
      Edge own = t.requires_grad() && seen.insert(t.unsafeGetTensorImpl()).second ? impl::gradient_edge(t) : Edge();
      if (!own.function || !meta) {
        history->given.push_back({});
        continue;
      }
      auto entrance = std::shared_ptr<Entrance>(new Entrance({own}), deleteNode);
      entrance->add_input_metadata(t);
      if (meta->grad_fn_) {
        meta->grad_fn_ = entrance;
        meta->output_nr_ = 0;
      } else {
        meta->grad_accumulator_ = entrance;
      }
      history->given.push_back({t, std::move(own), std::move(entrance)});
    }
  });
  if (!failed) return history;
  delete history;
  return nullptr;
}
void ltc_history_close(LtcHistory* h) { h->close(); }
int ltc_history_take(LtcHistory* h, const void* const* results, size_t m, uint8_t* reached, LtcError* err) {
  return guarded(err, [&] {
    std::unordered_set<Node*> seen, entrances;
    for (auto& g : h->given)
      if (g.entrance) entrances.insert(g.entrance.get());
    edge_list roots;
    std::vector<Node*> ahead;
    for (size_t i = 0; i < m; i++) {
      roots.push_back(impl::gradient_edge(*static_cast<const Tensor*>(results[i])));
      ahead.push_back(roots.back().function.get());
    }
    while (!ahead.empty()) {
      Node* node = ahead.back();
      ahead.pop_back();
      if (!node || !seen.insert(node).second) continue;
      TORCH_CHECK(!has_hooks(*node), "it puts hooks on tensors that gradients flow through");
      if (entrances.count(node)) continue;
      TORCH_CHECK(!dynamic_cast<AccumulateGrad*>(node), "it makes a tensor that gradients are gathered in");
      TORCH_CHECK(!is_python(*node), "gradients flow through a function written in Python (", node->name(), ")");
      TORCH_CHECK(node->sequence_nr() >= h->since, "it differentiates through a tensor that was made outside");
      for (auto& edge : node->next_edges()) ahead.push_back(edge.function.get());
    }
    h->roots = std::move(roots);
    for (size_t i = 0; i < h->given.size(); i++) {
      reached[i] = h->given[i].entrance && seen.count(h->given[i].entrance.get());
    }
  });
}
void ltc_history_cut(LtcHistory* h) {
  h->close();
  for (auto& g : h->given) {
    if (g.entrance) g.entrance->cut();
    g.tensor = Tensor();
    g.own = Edge();
  }
}
int ltc_history_run(const LtcHistory* h, const void* const* grads, void** out, LtcError* err) {
  return guarded(err, [&] {
    edge_list roots, ends;
    variable_list seeds;
    for (size_t i = 0; i < h->roots.size(); i++) {
      if (!grads[i]) continue;
      roots.push_back(h->roots[i]);
      seeds.push_back(*static_cast<const Tensor*>(grads[i]));
    }
    std::vector<size_t> places;
    for (size_t i = 0; i < h->given.size(); i++) {
      out[i] = nullptr;
      if (!h->given[i].entrance) continue;
      ends.emplace_back(h->given[i].entrance, 0);
      places.push_back(i);
    }
    auto results = Engine::get_default_engine().execute(roots, seeds, true, false, false, ends);
    for (size_t k = 0; k < places.size(); k++)
      if (results[k].defined()) out[places[k]] = new Tensor(std::move(results[k]));
  });
}
void ltc_history_free(LtcHistory* h) { delete h; }
}
