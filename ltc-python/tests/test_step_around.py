"""A compiled step and what is around it: patched functions, patterns, attributes that come later, bound methods, failed
compilations, methods of classes, copies."""

import copy
import gc
import pickle
import sys
import weakref

import pytest
import torch
import torch.nn.functional as F
import torch_ltc
from torch import nn

X = torch.ones(3)


class Config:
    __match_args__ = ("kind", "scale")

    def __init__(self):
        self.kind, self.scale, self.rate = "a", 1.0, 0.0


def by_position():
    config = Config()

    def step(x):
        match config:
            case Config("a", scale):
                return x * scale
        return -x

    def change(i):
        config.scale = float(i)
        config.kind = "a" if i < 9 else "b"

    return step, change


def by_other_match_args():
    class Own(Config):
        pass

    config = Own()

    def step(x):
        match config:
            case Own(first):
                return x * (2.0 if first == "a" else 3.0)

    return step, lambda i: setattr(Own, "__match_args__", ("scale",))


def attribute_of_a_tensor(device):
    t = torch.ones((), device=device)
    return (lambda x: x * getattr(t, "tag", 1.0)), lambda i: setattr(t, "tag", float(i))


def gradient_of_a_cpu_leaf():
    leaf = torch.ones(1, requires_grad=True)
    leaf.grad = torch.ones(1)
    return (lambda x: x * leaf.grad.item()), lambda i: setattr(leaf, "grad", torch.full((1,), float(i)))


def attribute_of_a_metaclass():
    class Meta(type):
        value = 1.0

    class A(metaclass=Meta):
        pass

    return (lambda x: x * A.value), lambda i: setattr(A, "value", float(i))


def what_a_metaclass_answers():
    class Meta(type):
        def __getattr__(cls, name):
            return 1.0

        @property
        def found(cls):
            return cls.__dict__.get("_found", 1.0)

    class A(metaclass=Meta):
        pass

    def change(i):
        A.value = float(i)
        A._found = 2.0

    return (lambda x: x * A.value * A.found), change


def behind_a_static_method():
    settings = {"scale": 1.0}

    class A:
        scale = staticmethod(settings.get)

        @staticmethod
        def f():
            return 1.0

    A.f.factor = 1.0

    def change(i):
        settings["scale"] = float(i)
        A.__dict__["f"].__func__.factor = 2.0

    return (lambda x: x * A.scale("scale") * A.f.factor), change


def a_bound_method():
    settings = {"scale": 1.0}
    config = Config()
    config.option = settings.get
    return (lambda x: x * config.option("scale")), lambda i: settings.update(scale=float(i))


def a_rate_that_alternates():
    config = Config()
    return (lambda x: x * 3 if config.rate > 0 else x * 2), lambda i: setattr(config, "rate", 0.5 * (i % 2))


def a_rate_of_zero_that_alternates():
    config = Config()
    return (lambda x: x * (config.rate or 3.0)), lambda i: setattr(config, "rate", (0.0, 0.25, 0.25, 0.0)[i % 4])


MAKE = [
    by_position,
    by_other_match_args,
    attribute_of_a_tensor,
    gradient_of_a_cpu_leaf,
    attribute_of_a_metaclass,
    what_a_metaclass_answers,
    behind_a_static_method,
    a_bound_method,
    a_rate_that_alternates,
    a_rate_of_zero_that_alternates,
]


@pytest.mark.parametrize("make", MAKE)
def test_what_changes_is_seen(make):
    outs = {}
    for device in ("cpu", "ltc"):
        step, change = make(device) if make.__code__.co_argcount else make()
        step = torch_ltc.compile(step) if device == "ltc" else step
        outs[device] = []
        for i in range(20):
            if i in (6, 9) or (make.__name__.endswith("alternates")):
                change(i)
            outs[device].append(step(X.to(device)).tolist())
    assert outs["cpu"] == outs["ltc"], step.explain()
    assert step.counts[0] >= 2, step.explain()


def test_what_a_bound_method_does_is_done():
    seen = []
    config = Config()
    config.log = seen.append

    def step(x):
        config.log(1)
        return x + 1

    step = torch_ltc.compile(step)
    for _ in range(9):
        step(X.to("ltc"))
    assert len(seen) == 9, step.explain()


@pytest.mark.parametrize(
    ("owner", "name", "use"),
    [
        (F, "softmax", lambda x: F.softmax(x, 0)),
        (F, "dropout", lambda x: F.dropout(x, 0.0)),
        (F, "layer_norm", lambda x: F.layer_norm(x, (3,))),
        (F, "mse_loss", lambda x: F.mse_loss(x, 2 * x)),
        (torch.Tensor, "relu", lambda x: x.relu()),
        (torch.Tensor, "sum", lambda x: x.sum()),
        (torch.Tensor, "__getitem__", lambda x: x[1:]),
        (torch.Tensor, "mul", lambda x: x.mul(3)),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_patched_function_is_called_once_and_calls_torchs_own(owner, name, use, monkeypatch):
    original, calls = getattr(owner, name), [0]

    def patched(*args, **kwargs):
        calls[0] += 1
        return original(*args, **kwargs) * 2

    x = torch.tensor([1.0, 2.0, 4.0])
    expected = use(x) * 2
    x = x.to("ltc")
    monkeypatch.setattr(owner, name, patched)
    step = torch_ltc.compile(use)
    for i in range(6):
        calls[0] = 0
        found = step(x)
        assert calls[0] == (i < step.counts[1]), step.explain()
        with monkeypatch.context() as undone:
            undone.setattr(owner, name, original)
            torch.testing.assert_close(found.cpu(), expected)


def test_a_patch_that_comes_and_goes_is_seen(monkeypatch):
    original = F.softmax
    x = torch.tensor([1.0, 2.0, 4.0], device="ltc")
    step = torch_ltc.compile(lambda x: F.softmax(x, 0))
    for _ in range(6):
        plain = step(x)
    with monkeypatch.context() as patch:
        patch.setattr(F, "softmax", lambda *args, **kwargs: original(*args, **kwargs) * 2)
        for _ in range(6):
            torch.testing.assert_close(step(x), plain * 2)
    torch.testing.assert_close(step(x), plain)
    assert step.counts[0] >= 4, step.explain()


def test_a_setting_of_torch_that_a_step_sets_is_set():
    before = torch.backends.cudnn.benchmark

    def step(x):
        torch.backends.cudnn.benchmark = False
        return x + 1

    step = torch_ltc.compile(step)
    # Torch's own test helpers freeze such settings, where another test has imported them.
    with torch.backends.__allow_nonbracketed_mutation():
        try:
            for i in range(12):
                torch.backends.cudnn.benchmark = i % 2 == 0
                step(X.to("ltc"))
                assert not torch.backends.cudnn.benchmark, step.explain()
        finally:
            torch.backends.cudnn.benchmark = before


def test_a_compilation_that_fails_does_not_end_replays():
    def fails(graph, inputs):
        raise RuntimeError("no")

    with pytest.raises(Exception, match="no"):
        torch.compile(nn.Linear(3, 2), backend=fails)(torch.ones(1, 3))

    class Holder:
        def put(self, found):
            self.found = found

        def drop(self):
            if self.found is not None:
                self.found = None

    model, holder = nn.Linear(3, 2).to("ltc"), Holder()

    def step(x):
        found = {name: [] for name in ()}
        holder.put(found)  # an empty dict of the step's own, which an older object holds for a while
        result = model(x).detach()
        holder.drop()
        for _ in found:
            result = result + 1
        return result

    step = torch_ltc.compile(step)
    for _ in range(8):
        step(X.to("ltc"))
    assert step.counts[0] >= 4, step.explain()


def test_models_that_are_replaced_go():
    """As far as there are newer captures."""
    holder, gone = Config(), []

    def step(x):
        return holder.model(x).detach()

    step = torch_ltc.compile(step)
    for _ in range(20):
        holder.model = nn.Linear(3, 2).to("ltc")
        gone.append(weakref.ref(holder.model))
        for _ in range(5):
            step(X.to("ltc"))
    gc.collect()
    assert sum(ref() is not None for ref in gone) <= 10


# ---- methods and copies ----


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        self.net = nn.Linear(3, 2).to("ltc")
        self.calls = 0

    @torch_ltc.compile
    def step(self, x):
        """Adds up."""
        self.calls += 1
        return self.net(x).sum().detach()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    @torch_ltc.compile
    def forward(self, x):
        return self.inner(x)


def test_a_method_is_compiled_in_the_body_of_its_class():
    one, other = Trainer(), Trainer()
    for _ in range(9):
        one.step(X.to("ltc"))
        assert one.step(X.to("ltc")).item() == other.step(X.to("ltc")).item()
    assert (one.calls, other.calls) == (18, 9)
    assert one.step.counts[0] >= 9, one.step.explain()
    assert other.step.counts[0] >= 3, other.step.explain()
    assert Trainer.step.counts == (0, 0)
    assert one.step.__doc__ == "Adds up."
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None


def test_a_forward_is_compiled_in_the_body_of_its_class():
    model = Model().to("ltc")
    expected = model.inner(X.to("ltc"))
    for _ in range(9):
        torch.testing.assert_close(model(X.to("ltc")), expected)
    assert model.forward.counts[0] >= 3, model.forward.explain()
    assert [*model.state_dict()] == ["inner.weight", "inner.bias"]


def scaled(x):
    return x * 2


def test_copies_and_pickles_start_afresh():
    one = Trainer()
    for _ in range(9):
        one.step(X.to("ltc"))
    other = copy.deepcopy(one)
    other.net.weight.data.zero_()
    for _ in range(9):
        assert other.step(X.to("ltc")).item() == other.net.bias.sum().item()
    assert (one.calls, other.calls) == (9, 18)
    step = torch_ltc.compile(scaled)
    step(X.to("ltc"))
    again = copy.copy(step)
    assert again.counts == (0, 0)
    assert again(X.to("ltc")).tolist() == [2.0, 2.0, 2.0]
    assert pickle.loads(pickle.dumps(Model())).inner.weight.shape == (2, 3)


class Overrides:
    """Methods that come to names which their code computes."""

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        object.__setattr__(self, name + "_raw", value)


class Answers:
    def __getattribute__(self, name):
        if name == "value":
            return object.__getattribute__(self, "raw_" + name)
        return object.__getattribute__(self, name)


def test_a_class_method_is_compiled_once_for_each_class():
    class Scaled:
        scale = 2.0

        @classmethod
        @torch_ltc.compile
        def step(cls, x):
            return x * cls.scale

    class Other(Scaled):
        pass

    x = torch.ones(3, device="ltc")
    for i in range(12):
        Scaled.scale = 2.0 if i < 6 else 3.0
        if i == 8:
            Other.scale = 5.0
        assert Scaled.step(x).tolist() == [Scaled.scale] * 3
        assert Other.step(x).tolist() == [Other.scale] * 3
    if sys.version_info < (3, 13):  # from there on, the class is an argument of one step
        assert Scaled.step is Scaled.step is not Other.step
        assert Scaled.step.counts[0] > 4, Scaled.step.explain()


def test_computed_names_in_methods_that_are_told_names():
    outs = {}
    for device in ("cpu", "ltc"):
        one, other = Overrides(), Answers()
        other.raw_value = 1.0

        def body(x, one=one, other=other):
            one.last = x.sum()
            return x * other.value

        step = torch_ltc.compile(body) if device == "ltc" else body
        outs[device] = []
        for i in range(14):
            if i == 9:
                other.raw_value = 7.0
            out = step(X.to(device) * i)
            outs[device].append((out.tolist(), one.last.item(), one.last_raw.item()))
    assert outs["cpu"] == outs["ltc"], step.explain()


def test_a_step_that_ends_itself():
    """Programs for `torch._lazy` send each step themselves."""
    w = torch.ones(3).to("ltc").requires_grad_()
    optimiser, told = torch.optim.SGD([w], 0.1), []

    def body(x):
        optimiser.zero_grad()
        loss = (w * x).square().sum()
        loss.backward()
        torch_ltc.mark_step()
        optimiser.step()
        torch_ltc.mark_step()
        return loss.detach()

    step, x = torch_ltc.compile(body), torch.ones(3).to("ltc")
    losses = []
    for i in range(12):
        if i == 8:
            torch_ltc.add_step_closure(told.append, (i,))
        losses.append(step(x).item())
        assert told == ([8] if i >= 8 else [])
    torch.testing.assert_close(losses, [3 * 0.8 ** (2 * i) for i in range(12)])
    assert step.counts[0] >= 5, step.explain()


@pytest.mark.parametrize("waits", [torch.ltc.synchronize, lambda: torch_ltc.mark_step(wait=True)])
def test_a_step_that_waits_for_the_device_says_so(waits):
    def body(x):
        waits()
        return x * 2

    step = torch_ltc.compile(body)
    for _ in range(6):
        assert step(torch.ones(2).to("ltc")).tolist() == [2.0, 2.0]
    assert "by mark_step(): do so after the step" in step.explain()


def test_a_step_that_is_never_captured_says_why():
    def raises(x):
        raise KeyError("always")

    state: dict[int, float] = {}
    raising, growing = torch_ltc.compile(raises), torch_ltc.compile(lambda x: x * len(state))
    for i in range(8):
        state[i] = 1.0
        growing(torch.ones(2).to("ltc"))
        with pytest.raises(KeyError):
            raising(torch.ones(2).to("ltc"))
    assert "each call raised an exception" in raising.explain()
    assert "the contents of a dict" in growing.explain() and "changes from call to call" in growing.explain()
