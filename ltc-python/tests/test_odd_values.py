"""Values that few programs have: booleans of any byte, quantiles outside of their range, bounds that are NaN,
and what tells whether two tensors are one. Each case says the same on the CPU and on ltc."""

import pytest
import torch
import torch.nn.functional as F
import torch_ltc  # noqa: F401  (registers the device)

DEVICES = ("cpu", "ltc")


def says(call):
    """What a call gives, or the class and words of its error."""
    try:
        result = call()
    except (RuntimeError, ValueError, IndexError) as e:
        return type(e).__name__, str(e).partition(" (raised")[0].partition("\n")[0]
    return result.tolist() if isinstance(result, torch.Tensor) else result


def masks(device, shape=(4,)):
    """A mask of 0 and 255, as images have it, seen as booleans."""
    bytes_ = torch.tensor([0, 1, 2, 255, 128, 0, 4, 254] * 64, dtype=torch.uint8)
    return bytes_[: torch.Size(shape).numel()].reshape(shape).to(device).view(torch.bool)


X = torch.linspace(-2, 2, 512)
USES = {
    "not": lambda m, x: ~m,
    "product": lambda m, x: x * m,
    "sum of two": lambda m, x: m + m,
    "and": lambda m, x: m & torch.ones_like(m),
    "xor": lambda m, x: m ^ torch.ones_like(m),
    "or": lambda m, x: m | torch.zeros_like(m),
    "equal": lambda m, x: m == True,
    "compared": lambda m, x: m < torch.ones_like(m),
    "float": lambda m, x: m.float() + 1,
    "half": lambda m, x: m.half() * 2,
    "double": lambda m, x: m.double() - 0.5,
    "int": lambda m, x: m.int() * 3,
    "byte": lambda m, x: m.to(torch.uint8) + 1,
    "where": lambda m, x: torch.where(m, x, -x),
    "masked fill": lambda m, x: x.masked_fill(~m, 9.0),
    "selected": lambda m, x: x[m],
    "count": lambda m, x: m.sum(),
    "means": lambda m, x: m.float().mean(-1),
    "any": lambda m, x: m.any(-1),
    "all": lambda m, x: m.all(-1),
    "largest": lambda m, x: m.float().amax(-1),
    "softmax": lambda m, x: torch.softmax(x.masked_fill(m, -1e9), -1),
    "layer norm": lambda m, x: F.layer_norm(x * m, x.shape[-1:]),
    "broadcast": lambda m, x: x * m[..., :1],
    "transposed": lambda m, x: m.mT.float() * 2 if m.dim() > 1 else m.float() * 2,
    "of one": lambda m, x: x * m.reshape(-1)[3],
    "argmax": lambda m, x: m.int().argmax(-1),
    "stacked": lambda m, x: torch.stack([m, ~m]).float(),
    "cumulative": lambda m, x: m.cumsum(-1),
    "scattered": lambda m, x: torch.zeros_like(x).index_add(
        0, torch.zeros(len(x), dtype=torch.int64).to(x.device), m * x
    ),
    "loss": lambda m, x: (x * m).sum() / m.sum(),
    "written": lambda m, x: x.clone().mul_(m).add_(m),
    "filled": lambda m, x: torch.zeros_like(m).logical_or_(m),
}


@pytest.mark.parametrize("shape", [(4,), (8, 8), (16, 32), (2, 8, 32)])
@pytest.mark.parametrize("name", USES)
def test_any_byte_but_zero_is_true(name, shape):
    x = X[: torch.Size(shape).numel()].reshape(shape)
    expected, found = (USES[name](masks(device, shape), x.to(device)).cpu() for device in DEVICES)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected)


def test_gradients_through_a_mask_of_any_bytes():
    def grads(device):
        x = torch.ones(4, device=device, requires_grad=True)
        keep = masks(device)
        ((x * keep).square().sum() / keep.sum()).backward()
        return x.grad.tolist()

    assert grads("ltc") == grads("cpu") == pytest.approx([0.0, 2 / 3, 2 / 3, 2 / 3])


def test_booleans_that_are_written_as_bytes():
    def written(device):
        mask = torch.zeros(4, dtype=torch.bool, device=device)
        mask.view(torch.uint8).fill_(4)
        return mask.int().tolist(), (mask == True).tolist(), (~mask).tolist()

    assert written("ltc") == written("cpu") == ([1] * 4, [True] * 4, [False] * 4)


@pytest.mark.parametrize("function", [torch.quantile, torch.nanquantile])
@pytest.mark.parametrize("q", [-0.1, -1.0, 1.5, float("nan"), 0.25, 1.0])
def test_quantiles_outside_of_their_range_are_an_error_at_the_call(function, q):
    def call(device):
        x = torch.arange(5.0).to(device)
        return lambda: function(x, torch.tensor([0.5, q]).to(device))

    assert says(call("ltc")) == says(call("cpu"))


def test_quantiles_have_gradients_and_meta():
    def grads(device):
        x = torch.arange(6.0).to(device).requires_grad_()
        torch.quantile(x * 2, torch.tensor([0.25, 0.5]).to(device)).sum().backward()
        return x.grad.tolist()

    assert grads("ltc") == grads("cpu")
    with torch._subclasses.FakeTensorMode():
        x, q = torch.ones(5, device="ltc"), torch.ones(2, device="ltc")
        assert torch.quantile(x, q).shape == (2,)


@pytest.mark.parametrize("bounds", [(float("nan"), 1e10), (1e10, float("nan")), (float("nan"), 1.0), (0.0, 1e10)])
@pytest.mark.parametrize("function", [torch.clamp, F.hardtanh, torch.clip])
def test_bounds_of_halves_beside_nan(function, bounds):
    def call(device):
        return lambda: str(function(torch.ones(2, dtype=torch.half, device=device), *bounds).tolist())

    assert says(call("ltc")) == says(call("cpu"))


@pytest.mark.parametrize("delta", [1.0, 0.0, -1.0, float("nan")])
@pytest.mark.parametrize(
    "loss", [lambda x, y, d: F.huber_loss(x, y, delta=d), lambda x, y, d: F.smooth_l1_loss(x, y, beta=d)]
)
def test_lengths_of_losses_are_refused_at_the_call(loss, delta):
    def outcome(device):
        x = torch.arange(1.0, 4.0).to(device) * 1  # pending
        try:
            loss(x, x * 1.1, delta)
        except RuntimeError as e:
            return str(e).partition(" (raised")[0].partition("\n")[0]
        return "no error"

    assert outcome("ltc").startswith(outcome("cpu"))


def test_copies_are_not_set_to_what_they_are_copied_from():
    def answers(device):
        a = torch.zeros(6, device=device)
        b, view = a.clone(), a.view(2, 3)
        found = [
            a.is_set_to(b),
            a.is_set_to(a.clone()[:6]),
            a.is_set_to(a.detach()),
            a.is_set_to(view),
            view.view(6).is_set_to(a),
        ]
        a.cpu(), b.cpu()
        found += [a.is_set_to(b), a[1:].is_set_to(a[1:]), a[1:].is_set_to(a[:5])]
        b.add_(1)
        return [*found, a.is_set_to(b)]

    assert answers("ltc") == answers("cpu")


@pytest.mark.parametrize("function", ["addcmul", "addcdiv"])
def test_numbers_of_lists_as_a_tensor_on_the_host(function):
    def results(device):
        xs = [torch.full((3,), 2.0, device=device), torch.full((2,), 3.0, device=device)]
        numbers = torch.tensor([2.0, 3.0])
        new = getattr(torch, f"_foreach_{function}")(xs, xs, xs, numbers)
        getattr(torch, f"_foreach_{function}_")(xs, xs, xs, numbers)
        return [x.tolist() for x in (*new, *xs)]

    assert results("ltc") == results("cpu")
    xs = [torch.ones(3, device="ltc")] * 2
    with pytest.raises(RuntimeError, match="Expected length of scalars to match"):
        getattr(torch, f"_foreach_{function}")(xs, xs, xs, torch.ones(3))
