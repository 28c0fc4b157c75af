"""Recurrent layers and cells give the CPU's bits: outputs, states and gradients."""

import copy

import pytest
import torch
import torch_ltc
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def on(tree, device):
    if isinstance(tree, tuple):
        return tuple(on(t, device) for t in tree)
    return tree.detach().to(device).requires_grad_(tree.requires_grad)


def compare(module, call, *inputs):
    """`call(module, *inputs)` gives tensors; they and all gradients are compared bit by bit, without an eager run, and
    so is what kind of tensors they are."""
    results, kinds, before = [], [], torch_ltc.fallback_count()
    for device in ("cpu", "ltc"):
        m, given = copy.deepcopy(module).to(device), [on(x, device) for x in inputs]
        torch.manual_seed(1)
        outs = call(m, *given)
        kinds.append([(o._is_view(), o.stride(), type(o.grad_fn)) for o in outs])
        sum((o * o.detach().cos()).sum() for o in outs).backward()
        grads = [t.grad for t in torch.utils._pytree.tree_leaves(given) if t.requires_grad]
        results.append([t.detach().cpu() for t in (*outs, *grads, *[p.grad for p in m.parameters()])])
    for k, (cpu, ltc) in enumerate(zip(*results, strict=True)):
        assert torch.equal(cpu, ltc), (k, (cpu - ltc).abs().max())
    assert kinds[0] == kinds[1]
    assert torch_ltc.fallback_count() == before


def flat(result):
    out, state = result
    return (out, *state) if isinstance(state, tuple) else (out, state)


OPTIONS = [
    {},
    {"num_layers": 2, "dropout": 0.3},
    {"bidirectional": True, "batch_first": True},
    {"bias": False, "num_layers": 2, "bidirectional": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_layers(kind, options, dtype):
    torch.manual_seed(0)
    module = kind(5, 7, **options, dtype=dtype)
    compare(module, lambda m, x: flat(m(x)), torch.randn(6, 3, 5, dtype=dtype, requires_grad=True))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_projections(options):
    torch.manual_seed(0)
    module = nn.LSTM(5, 9, proj_size=4, **options)
    compare(module, lambda m, x: flat(m(x)), torch.randn(6, 3, 5, requires_grad=True))
    layers = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    batch = 6 if options.get("batch_first") else 3
    state = (torch.randn(layers, batch, 4, requires_grad=True), torch.randn(layers, batch, 9, requires_grad=True))
    compare(module, lambda m, x, s: flat(m(x, s)), torch.randn(6, 3, 5), state)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        nn.LSTM,
        nn.GRU,
        nn.RNN,
        lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
        lambda *a, **k: nn.LSTM(*a, proj_size=3, **k),
    ],
    ids=["lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_projected"],
)
def test_packed_sequences(make, bidirectional):
    torch.manual_seed(0)

    def call(m, x):
        out, state = m(pack_padded_sequence(x, [6, 4, 4, 1]))
        return flat((pad_packed_sequence(out)[0], state))

    compare(make(5, 7, num_layers=2, bidirectional=bidirectional), call, torch.randn(6, 4, 5, requires_grad=True))


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
@pytest.mark.parametrize("bias", [True, False])
def test_cells(kind, bias):
    torch.manual_seed(0)

    def call(m, x):
        state = m(x)
        state = m(x * 2, state)
        return state if isinstance(state, tuple) else (state,)

    compare(kind(5, 7, bias=bias), call, torch.randn(3, 5, requires_grad=True))


def test_a_wrong_number_of_states_is_refused():
    for device in ("cpu", "ltc"):
        x, h = torch.randn(2, 3, 5, device=device), torch.randn(1, 3, 7, device=device)
        weights = [p.to(device) for p in nn.LSTM(5, 7).parameters()]
        with pytest.raises(RuntimeError, match="two hidden states"):
            torch.lstm(x, [h], weights, True, 1, 0.0, False, False, False)


def test_sizes_of_packed_sequences_are_on_the_host():
    m = nn.GRU(5, 7).to("ltc")
    x, h = torch.randn(3, 5, device="ltc"), torch.zeros(1, 2, 7, device="ltc")
    with pytest.raises(RuntimeError, match="batch_sizes of packed sequences must be a contiguous tensor on the CPU"):
        torch.gru(x, torch.tensor([2, 1]).to("ltc"), h, m._flat_weights, True, 1, 0.0, True, False)
