// Nodes of autograd graphs, whose holders are counted by `std::shared_ptr` in libtorch 2.11 and by the nodes themselves
// in later ones.
#pragma once
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <type_traits>

namespace ltc {
using NodePtr = decltype(torch::autograd::Edge::function);

template <class T, class... Args> NodePtr new_node(Args&&... args) {
  if constexpr (std::is_same_v<NodePtr, std::shared_ptr<torch::autograd::Node>>)
    // Found by the argument's namespace, where this libtorch has it.
    return NodePtr(new T(std::forward<Args>(args)...), [](auto* node) { deleteNode(node); });
  else return c10::make_intrusive<T>(std::forward<Args>(args)...);
}
}  // namespace ltc
