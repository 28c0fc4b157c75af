"""Numbers that libtorch refuses are refused at the call, as on the CPU, also where a kernel of ours would take them."""

import pytest
import torch
import torch.nn.functional as F
import torch_ltc

NUMBERS = [1e39, -1e39, 70000.0, float("nan"), float("inf"), 1e-46, -1.0, 0.0, 2.5, 300, 70000, -1, 2**62, True]
CALLS = {
    "fill_": lambda x, n: x.fill_(n),
    "fill": lambda x, n: torch.fill(x, n),
    "full": lambda x, n: torch.full((2,), n, dtype=x.dtype, device=x.device),
    "full_like": lambda x, n: torch.full_like(x, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "setitem": lambda x, n: x.__setitem__(0, n),
    "add": lambda x, n: x.add(x, alpha=n),
    "sub_": lambda x, n: x.sub_(x, alpha=n),
    "plus": lambda x, n: x + n,
    "times": lambda x, n: x * n,
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "addcdiv_": lambda x, n: x.addcdiv_(x, x, value=n),
    "lerp": lambda x, n: torch.lerp(x, x, n),
    "clamp": lambda x, n: x.clamp(max=n),
    "hardtanh": lambda x, n: F.hardtanh(x, -1.0, n),
    "threshold": lambda x, n: F.threshold(x, n, 0.5),
    "threshold value": lambda x, n: F.threshold(x, 0.5, n),
    "softplus": lambda x, n: F.softplus(x, n),
    "softshrink": lambda x, n: F.softshrink(x, n),
    "hardshrink": lambda x, n: F.hardshrink(x, n),
    "celu": lambda x, n: F.celu(x, n),
    "elu": lambda x, n: F.elu(x, n),
    "leaky_relu": lambda x, n: F.leaky_relu(x, n),
    "logit": lambda x, n: torch.logit(x, n),
    "foreach": lambda x, n: torch._foreach_add([x], [x], alpha=n)[0],
    "foreach scalar": lambda x, n: torch._foreach_add([x], n)[0],
    "foreach addcmul": lambda x, n: torch._foreach_addcmul([x], [x], [x], n)[0],
    "hinge": lambda x, n: F.hinge_embedding_loss(x, torch.ones_like(x), n),
}


def outcome(call, x, n):
    """The exception's class and first line, or the result's dtype and values as they round."""
    try:
        found = call(x, n)
        found = x if found is None else found
    except Exception as e:  # noqa: BLE001  (any class: it is what is compared)
        return type(e), str(e).split("\n")[0][:60]
    return found.dtype, str(found.cpu().float().mul(64).round().tolist())


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8], ids=str
)
@pytest.mark.parametrize("name", CALLS)
def test_what_libtorch_refuses_is_refused_at_the_call(name, dtype):
    call = CALLS[name]
    values = torch.tensor([0.0, 1.0, 2.0, 0.5]).to(dtype)
    for usual in (0.75, 2):
        # What is known of a call serves others with other numbers.
        outcome(call, values.to("ltc"), usual)
    for n in NUMBERS:
        assert outcome(call, values.to("ltc"), n) == outcome(call, values.clone(), n), n


def test_a_gradient_in_place_needs_the_slope_to_be_positive():
    for device in ("cpu", "ltc"):
        for make in (lambda x: F.leaky_relu(x * 1, -0.5, inplace=True), lambda x: F.elu(x * 1, -0.5, inplace=True)):
            for _ in range(2):
                x = torch.ones(3, device=device, requires_grad=True)
                with pytest.raises(RuntimeError, match="In-place"):
                    make(x).sum().backward()


def test_a_replay_hands_no_number_on_that_is_refused():
    @torch_ltc.compile
    def step(x, n):
        return x.add(x, alpha=n).relu()

    x = torch.ones(3, device="ltc")
    for i in range(8):
        step(x, float(i) + 0.5)
    assert step.counts[0] > 0, step.explain()
    with pytest.raises(RuntimeError, match="without overflow"):
        step(x, 1e39).cpu()
    assert step(x, 2.0).tolist() == [3.0, 3.0, 3.0]
