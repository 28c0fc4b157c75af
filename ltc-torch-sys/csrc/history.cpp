// The way back through a compiled step: the nodes that autograd made while it was captured, run again for each replay.
#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <typeinfo>
#include <unordered_set>

#include "nodes.h"
#include "shim.h"

namespace ltc {
namespace {
using namespace torch::autograd;

// Where going back through a step ends: it stands in for the history of a tensor that the step was given.
struct Entrance final : Node {
  std::string name() const override { return "CompiledStepInput"; }
  variable_list apply(variable_list&&) override { return {}; }
};

struct Start {
  Tensor tensor;
  Edge own;
  NodePtr entrance;  // none where the step does not lead to it
};

// An edge of one of the step's nodes that leads out of the step, or to the nodes of another result.
struct Way {
  NodePtr from;
  size_t index, start;
};

bool has_hooks(Node& node) {
  return !node.tensor_pre_hooks().empty() || !node.pre_hooks().empty() || !node.post_hooks().empty() ||
      !node.retains_grad_hooks().empty();
}

// A function that a Python class differentiates. The class is torch's Python bindings', which are not linked to.
bool is_python(Node& node) { return std::string(typeid(node).name()).find("6PyNodeE") != std::string::npos; }

// Nodes have a setter for their edges that also sees to their topological numbers, and refuses once they have a parent.
// An entrance has the lowest number there is, so the order of the numbers holds.
void lead(const Way& way, Edge to) { const_cast<edge_list&>(way.from->next_edges())[way.index] = std::move(to); }
}  // namespace
}  // namespace ltc

struct LtcHistory {
  // The tensors given to the step (`given` of them), then its results: the history of a tensor that was computed from a
  // result begins at that result.
  std::vector<ltc::Start> starts;
  size_t given = 0;
  std::vector<ltc::Way> out;
  torch::autograd::edge_list roots;
  uint64_t since = 0;
};

using namespace ltc;

extern "C" {
LtcHistory* ltc_history_begin(const void* const* tensors, size_t n, LtcError* err) {
  auto* history = new LtcHistory;
  const int failed = guarded(err, [&] {
    history->since = at::sequence_number::peek();
    for (size_t i = 0; i < n; i++) {
      const Tensor& t = *static_cast<const Tensor*>(tensors[i]);
      history->starts.push_back({t, t.requires_grad() ? impl::gradient_edge(t) : Edge(), nullptr});
    }
    history->given = n;
  });
  if (!failed) return history;
  delete history;
  return nullptr;
}
int ltc_history_take(LtcHistory* h, const void* const* results, size_t m, uint8_t* reached, LtcError* err) {
  return guarded(err, [&] {
    std::unordered_set<Node*> seen;
    std::vector<NodePtr> ahead;
    auto leads_to = [&](const Edge& edge) {
      size_t i = 0;
      while (i < h->starts.size() && !(h->starts[i].own == edge)) i++;
      return i;
    };
    for (size_t i = 0; i < m; i++) {
      const Tensor& t = *static_cast<const Tensor*>(results[i]);
      h->roots.push_back(impl::gradient_edge(t));
      const size_t known = leads_to(h->roots.back());
      TORCH_CHECK(known >= h->given, "it returns an input with history");
      ahead.push_back(h->roots.back().function);
      if (known == h->starts.size()) h->starts.push_back({t, h->roots.back(), nullptr});
    }
    while (!ahead.empty()) {
      auto node = std::move(ahead.back());
      ahead.pop_back();
      if (!seen.insert(node.get()).second) continue;
      TORCH_CHECK(!dynamic_cast<AccumulateGrad*>(node.get()), "it makes a tensor that gradients are gathered in");
      TORCH_CHECK(node->sequence_nr() >= h->since, "it differentiates through a tensor that was made outside");
      TORCH_CHECK(!has_hooks(*node), "it puts hooks on tensors that gradients flow through");
      TORCH_CHECK(!is_python(*node), "gradients flow through a function written in Python (", node->name(), ")");
      for (size_t k = 0; k < node->next_edges().size(); k++) {
        const Edge& edge = node->next_edge(k);
        if (!edge.is_valid()) continue;
        const size_t i = leads_to(edge);
        if (i == h->starts.size()) ahead.push_back(edge.function);
        else h->out.push_back({node, k, i});
      }
    }
    for (auto& way : h->out) {
      auto& start = h->starts[way.start];
      if (start.entrance) continue;
      start.entrance = new_node<Entrance>();
      start.entrance->add_input_metadata(start.tensor);
    }
    for (size_t i = 0; i < h->given; i++) reached[i] = h->starts[i].entrance != nullptr;
  });
}
void ltc_history_detach(LtcHistory* h) {
  for (auto& way : h->out) lead(way, {h->starts[way.start].entrance, 0});
}
void ltc_history_mend(LtcHistory* h) {
  for (auto& way : h->out) lead(way, h->starts[way.start].own);
}
void ltc_history_let_go(LtcHistory* h) {
  for (auto& start : h->starts) {
    start.tensor = Tensor();
    start.own = Edge();
  }
  h->out.clear();
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
    for (size_t i = 0; i < h->given; i++) {
      out[i] = nullptr;
      if (!h->starts[i].entrance) continue;
      ends.emplace_back(h->starts[i].entrance, 0);
      places.push_back(i);
    }
    auto results = Engine::get_default_engine().execute(roots, seeds, true, false, false, ends);
    for (size_t k = 0; k < places.size(); k++)
      if (results[k].defined()) out[places[k]] = new Tensor(std::move(results[k]));
  });
}
void ltc_history_free(LtcHistory* h) { delete h; }
}
