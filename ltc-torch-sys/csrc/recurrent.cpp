// Recurrent layers as on the CPU: libtorch would pick the accelerators' fused cells, which only CUDA has.
#include <ATen/ATen.h>
#include <ATen/ops/lstm_native.h>
#include <torch/library.h>

#include "shim.h"

namespace ltc {
namespace {
// Differentiable composites in place of the fused cells.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& ig, const Tensor& hg, const Tensor& cx, const std::optional<Tensor>& ib,
                                             const std::optional<Tensor>& hb) {
  Tensor g = ig + hg;
  if (ib && ib->defined()) g = g + *ib;
  if (hb && hb->defined()) g = g + *hb;
  auto c = g.chunk(4, 1);
  Tensor cy = c[1].sigmoid() * cx + c[0].sigmoid() * c[2].tanh();
  return {c[3].sigmoid() * cy.tanh(), cy, Tensor()};
}
std::tuple<Tensor, Tensor> gru_cell(const Tensor& ig0, const Tensor& hg0, const Tensor& hx, const std::optional<Tensor>& ib,
                                    const std::optional<Tensor>& hb) {
  Tensor ig = ib && ib->defined() ? ig0 + *ib : ig0, hg = hb && hb->defined() ? hg0 + *hb : hg0;
  auto i = ig.chunk(3, 1), h = hg.chunk(3, 1);
  Tensor r = (h[0] + i[0]).sigmoid(), z = (h[1] + i[1]).sigmoid(), n = (i[2] + h[2] * r).tanh();
  return {(hx - n) * z + n, Tensor()};
}
constexpr int64_t kLstm = 2;  // oneDNN's kind of recurrence

// What the CPU takes for a whole layer: oneDNN's kernel, which is several times faster than a cell per time step.
bool takes_fused_layer(const Tensor& input, at::TensorList hx, at::TensorList params, bool has_biases) {
  bool floats = input.scalar_type() == at::kFloat;
  for (auto& list : {hx, params})
    for (auto& t : list) floats &= is_lazy(t) && t.scalar_type() == at::kFloat;
  const bool projections = hx.size() == 2 && hx[0].size(2) != hx[1].size(2);
  return floats && at::globalContext().userEnabledMkldnn() && input.sym_numel() != 0 && hx.size() == 2 && !projections &&
      params.size() % (has_biases ? 4 : 2) == 0;
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, at::TensorList hx, at::TensorList params, bool has_biases, int64_t layers,
                                        double dropout, bool train, bool bidirectional, bool batch_first) {
  if (!takes_fused_layer(data, hx, params, has_biases))
    return at::native::lstm(data, hx, params, has_biases, layers, dropout, train, bidirectional, batch_first);
  const int64_t directions = bidirectional ? 2 : 1, per_layer = has_biases ? 4 : 2;
  TORCH_CHECK((int64_t)params.size() == layers * directions * per_layer, "lstm: expected ", layers * directions * per_layer,
              " weights, got ", params.size());
  Tensor input = (batch_first ? data.transpose(0, 1) : data).contiguous();
  Tensor h = hx[0].contiguous(), c = hx[1].contiguous();
  std::vector<Tensor> hy, cy;
  for (int64_t layer = 0; layer < layers; layer++) {
    std::vector<Tensor> out;
    for (int64_t d = 0; d < directions; d++) {
      const int64_t i = layer * directions + d;
      const Tensor* w = &params[i * per_layer];
      auto bias = [&](int64_t k) { return has_biases ? w[k] : at::zeros(w[k - 2].sizes(), w[k - 2].options()); };
      auto [o, hn, cn, workspace] = at::mkldnn_rnn_layer(input, w[0], w[1], bias(2), bias(3), h[i], c[i], d > 0, {}, kLstm, h.size(2),
                                                         layers, has_biases, bidirectional, batch_first, train);
      out.push_back(o);
      hy.push_back(hn);
      cy.push_back(cn);
    }
    input = directions == 1 ? out[0] : at::cat(out, -1);
    if (dropout != 0 && train && layer < layers - 1) input = at::dropout(input, dropout, true);
  }
  return {batch_first ? input.transpose(0, 1) : input, at::stack(hy, 0), at::stack(cy, 0)};
}
}  // namespace

void register_recurrent(torch::Library& device, torch::Library& autograd) {
  device.impl("lstm.input", lstm);
  autograd.impl("lstm.input", lstm);
  autograd.impl("_thnn_fused_lstm_cell", lstm_cell);
  autograd.impl("_thnn_fused_gru_cell", gru_cell);
}
}  // namespace ltc
