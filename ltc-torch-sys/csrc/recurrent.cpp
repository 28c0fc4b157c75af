// Recurrent layers with the CPU's arithmetic: libtorch would pick the accelerators' fused cells, which only CUDA has.
// Bit for bit: gates are activated as chunks of their sum, because kernels treat rows apart and a whole tensor
// otherwise.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>

#include "shim.h"

namespace ltc {
namespace {
struct Weights {  // of one layer in one direction
  Tensor ih, hh, b_ih, b_hh, hr;
};
struct State {
  Tensor h, c;  // c: LSTM only
};
// One time step, given the input's share of the gates.
using Step = State (*)(const Tensor& gates, const State& s, const Weights& w);

State lstm_step(const Tensor& in, const State& s, const Weights& w) {
  auto gates = (at::linear(s.h, w.hh, w.b_hh) + in).unsafe_chunk(4, 1);
  Tensor c = gates[1].sigmoid() * s.c + gates[0].sigmoid() * gates[2].tanh();
  Tensor h = gates[3].sigmoid() * c.tanh();
  return {w.hr.defined() ? h.matmul(w.hr.t()) : h, c};
}
State gru_step(const Tensor& in, const State& s, const Weights& w) {
  Tensor hidden = at::linear(s.h, w.hh, w.b_hh);
  auto gates = (hidden + in).unsafe_chunk(3, 1);
  Tensor reset = gates[0].sigmoid(), update = gates[1].sigmoid();
  Tensor fresh = (in.unsafe_chunk(3, 1)[2] + hidden.unsafe_chunk(3, 1)[2] * reset).tanh();
  return {(s.h - fresh) * update + fresh, {}};
}
State tanh_step(const Tensor& in, const State& s, const Weights& w) {
  return {(at::linear(s.h, w.hh, w.b_hh) + in).tanh(), {}};
}
State relu_step(const Tensor& in, const State& s, const Weights& w) {
  return {(at::linear(s.h, w.hh, w.b_hh) + in).relu(), {}};
}

Tensor rows(const Tensor& t, int64_t from, int64_t to) { return t.defined() ? t.narrow(0, from, to - from) : t; }
State rows(const State& s, int64_t from, int64_t to) { return {rows(s.h, from, to), rows(s.c, from, to)}; }
State join(const std::vector<State>& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<Tensor> h, c;
  for (auto& p : parts) {
    h.push_back(p.h);
    if (p.c.defined()) c.push_back(p.c);
  }
  return {at::cat(h, 0), c.empty() ? Tensor() : at::cat(c, 0)};
}

// A layer in one direction. `gates`: rows of all time steps, `sizes[t]` of them for step t, never more than for the
// step before: sequences that have ended are not in the batch any more. Returns the outputs, as such rows if the data
// is packed, else time by batch by features; `s` is the last state.
Tensor run_layer(Step step, const Tensor& gates, IntArrayRef sizes, bool is_packed, State& s, const Weights& w,
                 bool backwards) {
  std::vector<Tensor> out(sizes.size());
  if (backwards) {
    const State first = s;
    int64_t from = gates.size(0), known = sizes.back();
    s = rows(first, 0, known);
    for (size_t t = sizes.size(); t-- > 0; from -= sizes[t]) {
      if (sizes[t] > known) s = join({s, rows(first, known, sizes[t])});
      known = sizes[t];
      s = step(rows(gates, from - sizes[t], from), s, w);
      out[t] = s.h;
    }
  } else {
    std::vector<State> ended;
    int64_t from = 0, alive = sizes[0];
    for (size_t t = 0; t < sizes.size(); from += sizes[t++]) {
      if (sizes[t] < alive) {
        ended.push_back(rows(s, sizes[t], alive));
        s = rows(s, 0, sizes[t]);
      }
      alive = sizes[t];
      s = step(rows(gates, from, from + sizes[t]), s, w);
      out[t] = s.h;
    }
    ended.push_back(s);
    std::reverse(ended.begin(), ended.end());
    s = join(ended);
  }
  return is_packed ? at::cat(out, 0) : at::stack(out, 0);
}

struct Layers {
  int64_t count;
  double dropout;
  bool biases, train, both_ways;

  std::vector<Weights> weights(at::TensorList params, bool projections) const {
    const size_t each = 2 + 2 * biases + projections, n = count * (1 + both_ways);
    TORCH_CHECK(params.size() == n * each, "expected ", n * each, " weights for ", count, " layers, got ",
                params.size());
    std::vector<Weights> all;
    for (size_t i = 0; i < n; i++) {
      const Tensor* p = &params[i * each];
      all.push_back(
          {p[0], p[1], biases ? p[2] : Tensor(), biases ? p[3] : Tensor(), projections ? p[each - 1] : Tensor()});
    }
    return all;
  }
};

// Runs all layers over a sequence; returns outputs, last hidden states and last cell states. `data` is time by batch by
// features, or packed: rows of all time steps, of which step t has `sizes[t]`, as `run_layer` describes them.
std::tuple<Tensor, Tensor, Tensor> run(Step step, const Layers& layers, const Tensor& data, IntArrayRef sizes,
                                       const Tensor& h0, const Tensor& c0, at::TensorList params) {
  TORCH_CHECK(!sizes.empty(), "Expected sequence length to be larger than 0 in RNN");
  const bool cells = c0.defined(), is_packed = data.dim() == 2;
  auto weights = layers.weights(params, cells && h0.sym_size(2) != c0.sym_size(2));
  auto h = h0.unbind(0), c = cells ? c0.unbind(0) : std::vector<Tensor>();
  TORCH_CHECK(h.size() == weights.size(), "Expected ", weights.size(), " hidden states, got ", h.size());
  Tensor input = data;
  for (int64_t layer = 0; layer < layers.count; layer++) {
    std::vector<Tensor> out;
    for (int64_t back = 0; back <= layers.both_ways; back++) {
      const size_t i = layer * (1 + layers.both_ways) + back;
      State s{h[i], cells ? c[i] : Tensor()};
      Tensor gates = at::linear(input, weights[i].ih, weights[i].b_ih);
      if (!is_packed) gates = gates.flatten(0, 1);
      out.push_back(run_layer(step, gates, sizes, is_packed, s, weights[i], back));
      h[i] = s.h;
      if (cells) c[i] = s.c;
    }
    input = out.size() == 1 ? out[0] : at::cat(out, -1);
    if (layers.dropout != 0 && layers.train && layer < layers.count - 1)
      input = at::dropout(input, layers.dropout, true);
  }
  return {input, at::stack(h, 0), cells ? at::stack(c, 0) : Tensor()};
}

std::vector<int64_t> constant_sizes(const Tensor& input) { return std::vector<int64_t>(input.size(0), input.size(1)); }
// The host decides by them how many steps there are.
std::vector<int64_t> packed_sizes(const Tensor& batch_sizes) {
  TORCH_CHECK(batch_sizes.device().is_cpu() && batch_sizes.is_contiguous(),
              "batch_sizes of packed sequences must be a contiguous tensor on the CPU, got one on ",
              batch_sizes.device(), " with strides ", batch_sizes.strides());
  const int64_t* p = batch_sizes.const_data_ptr<int64_t>();
  return {p, p + batch_sizes.numel()};
}

constexpr int64_t kLstm = 2;  // oneDNN's kind of recurrence

// What the CPU takes for a whole layer: oneDNN's kernel, which is several times faster than a cell per time step.
bool takes_fused_layer(const Tensor& input, at::TensorList hx, at::TensorList params) {
  bool floats = input.scalar_type() == at::kFloat;
  for (auto& list : {hx, params})
    for (auto& t : list) floats &= is_lazy(t) && t.scalar_type() == at::kFloat;
  return floats && is_on_cpu(input) && at::globalContext().userEnabledMkldnn() && input.sym_numel() != 0 &&
      hx[0].sym_size(2) == hx[1].sym_size(2);
}

std::tuple<Tensor, Tensor, Tensor> fused_lstm(const Layers& layers, const Tensor& data, at::TensorList hx,
                                              at::TensorList params, bool batch_first) {
  auto weights = layers.weights(params, false);
  Tensor input = data.contiguous(), h = hx[0].contiguous(), c = hx[1].contiguous();
  std::vector<Tensor> hy, cy;
  for (int64_t layer = 0; layer < layers.count; layer++) {
    std::vector<Tensor> out;
    for (int64_t back = 0; back <= layers.both_ways; back++) {
      const size_t i = layer * (1 + layers.both_ways) + back;
      const Weights& w = weights[i];
      auto bias = [](const Tensor& b, const Tensor& of) {
        return b.defined() ? b : at::zeros(of.sizes(), of.options());
      };
      auto [o, hn, cn, workspace] = at::mkldnn_rnn_layer(input, w.ih, w.hh, bias(w.b_ih, w.ih), bias(w.b_hh, w.hh),
                                                         h[i], c[i], back > 0, {}, kLstm, h.size(2), layers.count,
                                                         layers.biases, layers.both_ways, batch_first, layers.train);
      out.push_back(o);
      hy.push_back(hn);
      cy.push_back(cn);
    }
    input = out.size() == 1 ? out[0] : at::cat(out, -1);
    if (layers.dropout != 0 && layers.train && layer < layers.count - 1)
      input = at::dropout(input, layers.dropout, true);
  }
  return {input, at::stack(hy, 0), at::stack(cy, 0)};
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, at::TensorList hx, at::TensorList params, bool has_biases,
                                        int64_t count, double dropout, bool train, bool bidirectional,
                                        bool batch_first) {
  TORCH_CHECK(hx.size() == 2, "lstm expects two hidden states");
  const Layers layers{count, dropout, has_biases, train, bidirectional};
  Tensor input = batch_first ? data.transpose(0, 1) : data;
  auto [out, h, c] = takes_fused_layer(data, hx, params)
      ? fused_lstm(layers, input, hx, params, batch_first)
      : run(lstm_step, layers, input, constant_sizes(input), hx[0], hx[1], params);
  return {batch_first ? out.transpose(0, 1) : out, h, c};
}
std::tuple<Tensor, Tensor, Tensor> lstm_packed(const Tensor& data, const Tensor& sizes, at::TensorList hx,
                                               at::TensorList params, bool has_biases, int64_t count, double dropout,
                                               bool train, bool bidirectional) {
  TORCH_CHECK(hx.size() == 2, "lstm expects two hidden states");
  return run(lstm_step, {count, dropout, has_biases, train, bidirectional}, data, packed_sizes(sizes), hx[0], hx[1],
             params);
}

template <Step step>
std::tuple<Tensor, Tensor> recurrent(const Tensor& data, const Tensor& hx, at::TensorList params, bool has_biases,
                                     int64_t count, double dropout, bool train, bool bidirectional, bool batch_first) {
  Tensor input = batch_first ? data.transpose(0, 1) : data;
  auto [out, h, c] =
      run(step, {count, dropout, has_biases, train, bidirectional}, input, constant_sizes(input), hx, {}, params);
  return {batch_first ? out.transpose_(0, 1) : out, h};
}
template <Step step>
std::tuple<Tensor, Tensor> recurrent_packed(const Tensor& data, const Tensor& sizes, const Tensor& hx,
                                            at::TensorList params, bool has_biases, int64_t count, double dropout,
                                            bool train, bool bidirectional) {
  auto [out, h, c] =
      run(step, {count, dropout, has_biases, train, bidirectional}, data, packed_sizes(sizes), hx, {}, params);
  return {out, h};
}

using OptTensor = std::optional<Tensor>;
std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, at::TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                                     const OptTensor& b_ih, const OptTensor& b_hh) {
  TORCH_CHECK(hx.size() == 2, "lstm_cell expects two hidden states");
  const Weights w{w_ih, w_hh, b_ih.value_or(Tensor()), b_hh.value_or(Tensor()), {}};
  State s = lstm_step(at::linear(input, w.ih, w.b_ih), {hx[0], hx[1]}, w);
  return {s.h, s.c};
}
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const OptTensor& b_ih,
                const OptTensor& b_hh) {
  const Weights w{w_ih, w_hh, b_ih.value_or(Tensor()), b_hh.value_or(Tensor()), {}};
  return gru_step(at::linear(input, w.ih, w.b_ih), {hx, {}}, w).h;
}
}  // namespace

void register_recurrent(torch::Library& device, torch::Library& autograd) {
  for (auto* m : {&device, &autograd}) {
    m->impl("lstm.input", lstm);
    m->impl("lstm.data", lstm_packed);
    m->impl("gru.input", recurrent<gru_step>);
    m->impl("gru.data", recurrent_packed<gru_step>);
    m->impl("rnn_tanh.input", recurrent<tanh_step>);
    m->impl("rnn_tanh.data", recurrent_packed<tanh_step>);
    m->impl("rnn_relu.input", recurrent<relu_step>);
    m->impl("rnn_relu.data", recurrent_packed<relu_step>);
    m->impl("lstm_cell", lstm_cell);
    m->impl("gru_cell", gru_cell);
  }
}
}  // namespace ltc
