"""A compiled step leaves what the recorded step leaves: gradients, versions, histories, the thread's state; or it says
why not."""

import collections
import contextlib
import copy
import functools
import importlib.machinery
import importlib.util
import itertools
import sys
import types

import pytest
import torch
import torch_ltc
from steps import Holder, Slotted, X, agree
from torch import nn
from torch_ltc import _step
from torch_ltc._survey import Survey

# ---- what the step changes ----


def counts(world):
    world.n = 0

    def step(x):
        world.n += 1
        return x + 1

    return step


def logs(world):
    world.log = []

    def step(x):
        world.log.append(1)
        return x + 1

    return step


def keeps(world):
    def step(x):
        world.last = x * 2
        return x + 1

    return step


def caches(world):
    world.cache = {}

    def step(x):
        world.cache["k"] = len(world.cache) + world.cache.get("k", 0)
        return x + 1

    return step


def sets_item(world):
    world.o = Slotted()
    world.o.value = 0

    def step(x):
        world.o.value = world.o.value + 1
        return x + 1

    return step


def draws(world):
    world.numbers = itertools.count()
    return lambda x: x + next(world.numbers)


@pytest.mark.parametrize("make", [counts, logs, keeps, caches, sets_item, draws])
def test_what_a_step_changes_is_changed(make):
    worlds = {}
    for device in ("cpu", "ltc"):
        world = worlds[device] = types.SimpleNamespace()
        step = make(world)
        call = torch_ltc.compile(step) if device == "ltc" else step
        world.out = [call(X.to(device)).cpu() for _ in range(8)]
    cpu, ltc = worlds["cpu"], worlds["ltc"]
    assert [t.tolist() for t in cpu.out] == [t.tolist() for t in ltc.out]
    for name in ("n", "log", "cache"):
        assert getattr(cpu, name, None) == getattr(ltc, name, None)
    if make is keeps:
        assert ltc.last.tolist() == (X * 2).tolist()
    assert (make is keeps) == bool(call.counts[0]) == ("test_step_effects.py" not in call.refusal), call.explain()


@pytest.mark.parametrize(
    "call",
    [
        lambda: __import__("time").time(),
        lambda: __import__("random").random(),
        lambda: __import__("os").getpid(),
        lambda: __import__("os").urandom(1)[0],
        lambda: __import__("numpy").random.rand(),
        lambda: print(end="") or 1.0,
        lambda: eval("1.0"),
        lambda: open(__file__).close() or 1.0,
    ],
)
def test_functions_that_depend_on_more_than_arguments_refuse_the_step_by_name_and_line(call):
    step = torch_ltc.compile(lambda x: (call(), x + 1)[1])
    for _ in range(5):
        assert step(X.to("ltc")).tolist() == (X + 1).tolist()
    assert step.counts[0] == 0 and "test_step_effects.py:" in step.refusal, step.explain()


# ---- models, optimisers, gradients ----


def trainer(world, kind=torch.optim.SGD, **settings):
    world.m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(world.device)
    world.o = kind(world.m.parameters(), lr=0.05, **settings)

    def step(x):
        world.o.zero_grad()
        loss = (world.m(x) - 1).pow(2).mean()
        loss.backward()
        world.o.step()
        return loss

    return step


def zero_gradient(p):
    p.grad.mul_(0)


def new_layer(world):
    torch.manual_seed(5)
    return nn.Linear(3, 4).to(world.device)


def load(world, **how):
    torch.manual_seed(7)
    source = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    world.m.load_state_dict({k: v.to(world.device) for k, v in source.state_dict().items()}, **how)


def reload_optimiser(world):
    world.o.load_state_dict(copy.deepcopy(world.o.state_dict()))


MODEL_CHANGES = {
    "learning rate": lambda w: w.o.param_groups[0].__setitem__("lr", 0.001),
    "weight decay": lambda w: w.o.param_groups[0].__setitem__("weight_decay", 0.5),
    "maximize": lambda w: w.o.param_groups[0].__setitem__("maximize", True),
    "frozen": lambda w: w.m[0].requires_grad_(False),
    "frozen and free again": lambda w: (w.m[0].requires_grad_(False), w.m[0].requires_grad_(True)),
    "layer": lambda w: w.m.__setitem__(0, new_layer(w)),
    "parameter": lambda w: setattr(w.m[0], "weight", nn.Parameter(torch.full((4, 3), 0.1, device=w.device))),
    "parameter's data": lambda w: setattr(w.m[0].weight, "data", torch.full((4, 3), 0.3, device=w.device)),
    "parameter set_": lambda w: w.m[0].weight.data.set_(torch.full((4, 3), 0.2, device=w.device)),
    "parameter written": lambda w: w.m[0].weight.data.fill_(0.25),
    "loaded": load,
    "loaded by assignment": lambda w: load(w, assign=True),
    "double and back": lambda w: w.m.double().float(),
    "forward hook": lambda w: w.m[0].register_forward_hook(lambda m, a, o: o * 2),
    "forward pre-hook": lambda w: w.m[0].register_forward_pre_hook(lambda m, a: (a[0] * 2,)),
    "backward hook": lambda w: w.m[0].register_full_backward_hook(
        lambda m, gi, go: (gi[0],) if gi[0] is not None else None
    ),
    "gradient hook": lambda w: w.m[0].weight.register_hook(lambda g: g * 0),
    "two gradient hooks": lambda w: (
        w.m[0].weight.register_hook(lambda g: g * 2),
        w.m[0].weight.register_hook(lambda g: g + 1),
    ),
    "hook after accumulation": lambda w: w.m[0].weight.register_post_accumulate_grad_hook(zero_gradient),
    "optimiser's hook": lambda w: w.o.register_step_pre_hook(lambda o, a, k: o.param_groups[0].__setitem__("lr", 0.0)),
    "gradients gone": lambda w: [setattr(p, "grad", None) for p in w.m.parameters()],
    "gradients given": lambda w: [setattr(p, "grad", torch.ones_like(p)) for p in w.m.parameters()],
    "optimiser reloaded": reload_optimiser,
    "optimiser's state cleared": lambda w: w.o.state.clear(),
    "group added": lambda w: w.o.add_param_group({"params": [nn.Parameter(torch.ones(1, device=w.device))]}),
    "module to eval": lambda w: w.m.eval(),
    "forward replaced": lambda w: setattr(w.m[1], "forward", lambda x: x * 0.5),
    "layer's class": lambda w: setattr(w.m[1], "__class__", nn.Identity),
    "layer appended": lambda w: w.m.append(nn.Tanh()),
    "layers swapped": lambda w: w.m.__setitem__(1, nn.ReLU()),
}


@pytest.mark.parametrize("optimiser", [torch.optim.Adam, functools.partial(torch.optim.SGD, momentum=0.9)])
@pytest.mark.parametrize("name", MODEL_CHANGES)
def test_a_model_that_changes_between_steps(name, optimiser):
    agree(lambda world: trainer(world, optimiser), [MODEL_CHANGES[name]])


@pytest.mark.parametrize("where", ["neither", "zero_grad", "step"])
def test_gradients_are_left_and_found(where):
    results = {}
    for device in ("cpu", "ltc"):
        torch.manual_seed(0)
        m = nn.Linear(3, 2).to(device)
        o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.5)

        def step(x):
            if where == "zero_grad":
                o.zero_grad()
            loss = (m(x) - 1).pow(2).mean()
            loss.backward()
            if where == "step":
                o.step()
            return loss.detach()

        call = torch_ltc.compile(step) if device == "ltc" else step
        out, kept = [], []
        for k in range(24):
            out.append(call(X.to(device) + k / 8).item())
            kept.append(m.weight.grad)
            out.append(m.weight.grad.sum().item())
            if where != "step":
                o.step()
            if where == "neither" and k % 3 == 2:
                o.zero_grad()
        results[device] = out + [g.sum().item() for g in kept]
    assert results["ltc"] == pytest.approx(results["cpu"], rel=1e-5)
    # Where gradients are added up their memory has another layout each time, which is recorded.
    assert where == "neither" or call.counts[0] >= 4, call.explain()


def test_inputs_that_require_gradients_get_theirs():
    w = torch.ones(3, device="ltc")
    call = torch_ltc.compile(lambda x: (x * w).pow(2).sum().backward())
    for k in range(8):
        x = (X + k).to("ltc").requires_grad_()
        call(x)
        assert x.grad.tolist() == (2 * (X + k)).tolist()
    assert call.counts[0] >= 4, call.explain()


def test_a_result_with_history_has_it():
    enc, head = nn.Linear(3, 2).to("ltc"), nn.Linear(2, 1).to("ltc")
    call = torch_ltc.compile(enc)
    for _ in range(6):
        enc.zero_grad(), head.zero_grad()
        out = call(X.to("ltc"))
        assert out.requires_grad
        head(out).sum().backward()
        assert enc.weight.grad.abs().sum() > 0
    assert call.counts[0] == 3


def test_a_loss_whose_graph_is_used_up_says_so():
    def messages(device):
        world = types.SimpleNamespace(device=device)
        step = trainer(world)
        call = torch_ltc.compile(step) if device == "ltc" else step
        said = []
        for _ in range(6):
            loss = call(X.to(device))
            assert loss.requires_grad and not loss.is_leaf
            with pytest.raises(RuntimeError) as e:
                loss.backward()
            said.append((loss.grad_fn.name(), str(e.value).splitlines()[0]))
        return said, call

    said, call = messages("ltc")
    assert said == messages("cpu")[0]
    assert call.counts[0] >= 2, call.explain()


def test_replays_count_as_writes():
    w = torch.ones(3, device="ltc")
    call = torch_ltc.compile(lambda x: (w.add_(x), None)[1])
    versions = []
    for _ in range(6):
        before = w._version
        call(X.to("ltc"))
        versions.append(w._version - before)
    assert call.counts[0] >= 3 and set(versions) == {1}, (versions, call.explain())
    a = torch.ones(3, device="ltc", requires_grad=True)
    loss = (a * w).sum()
    call(X.to("ltc"))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_writes_to_inputs_are_replayed():
    call = torch_ltc.compile(lambda x: x.add_(1).mul_(2))
    for k in range(8):
        x = (X + k).to("ltc")
        version = x._version
        out = call(x)
        assert x.tolist() == ((X + k + 1) * 2).tolist() and out is x and x._version == version + 2
    assert call.counts[0] >= 4, call.explain()


def test_results_that_are_inputs_or_kept_tensors_are_these():
    w = torch.ones(3, device="ltc")
    call = torch_ltc.compile(lambda x: (x, w, x + w))
    for _ in range(6):
        x = X.to("ltc")
        a, b, c = call(x)
        assert a is x and b is w and c.tolist() == (X + 1).tolist()
    assert call.counts[0] >= 3, call.explain()


def test_conjugated_and_negated_views_are_recorded():
    for f in (torch.conj, lambda z: torch.imag(z.conj())):
        call = torch_ltc.compile(f)
        for k in range(6):
            z = torch.tensor([1 + 2j, 3 - 1j * k])
            assert (
                call(z.to("ltc")).cpu().resolve_conj().resolve_neg().tolist()
                == f(z).resolve_conj().resolve_neg().tolist()
            )


# ---- the thread's state ----

AMBIENT = {
    "autocast": lambda: torch.autocast("ltc", dtype=torch.bfloat16),
    "no_grad": torch.no_grad,
    "inference mode": torch.inference_mode,
    "default dtype": lambda: default_dtype(torch.float64),
}


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("name", AMBIENT)
def test_the_thread_s_state_is_part_of_the_key(name):
    w = torch.ones(3, 3, device="ltc")
    step = lambda x: (x @ w).detach() * torch.ones((), device=x.device)
    call = torch_ltc.compile(step)
    x = torch.ones(2, 3, device="ltc")
    for _ in range(2):
        for context in (contextlib.nullcontext, AMBIENT[name]):
            for _ in range(5):
                with context():
                    got, expected = call(x), step(x)
                assert got.dtype == expected.dtype and got.is_inference() == expected.is_inference()
    assert call.counts[0] >= 8, call.explain()


def test_a_step_that_changes_the_thread_s_state_is_recorded():
    def step(x):
        torch.set_grad_enabled(not torch.is_grad_enabled())
        return x + 1

    call = torch_ltc.compile(step)
    with torch.no_grad():
        for k in range(6):
            call(X.to("ltc"))
            assert torch.is_grad_enabled() == (k % 2 == 0)
    assert call.counts[0] == 0 and "grad or inference mode" in call.refusal


# ---- checks ----


def test_checked_steps_are_recorded_and_compared(monkeypatch):
    monkeypatch.setattr(_step, "_CHECK_EVERY", 2)
    holder = Holder(2.0)
    call = torch_ltc.compile(lambda x: x * holder.value + 1)
    for _ in range(10):
        assert call(X.to("ltc")).tolist() == (X * 2 + 1).tolist()
    assert call.counts == (7, 3) and "4 of them recorded and compared" in call.explain()
    # A planted mistake: what the step reads is not watched.
    note_place = Survey.note_place
    monkeypatch.setattr(
        Survey,
        "note_place",
        lambda self, kind, o, name=None, *a: None if name == "value" else note_place(self, kind, o, name, *a),
    )
    call = torch_ltc.compile(lambda x: x * holder.value + 1)
    for _ in range(10):
        call(X.to("ltc"))
    holder.value = 3.0
    with pytest.raises(torch_ltc.StaleStep, match="number"):
        for _ in range(4):
            call(X.to("ltc"))


@pytest.mark.parametrize("change", ["learning rate", "frozen", "parameter's data", "optimiser reloaded", "loaded"])
def test_every_replay_of_a_model_that_changes_is_checked(change, monkeypatch):
    monkeypatch.setattr(_step, "_CHECK_EVERY", 1)
    call = agree(trainer, [MODEL_CHANGES[change]], calls=6)
    assert f"{call.counts[0]} of them recorded and compared" in call.explain()


def test_what_a_replay_would_refuse_is_not_checked(monkeypatch):
    monkeypatch.setattr(_step, "_CHECK_EVERY", 1)
    a, b = torch.ones(1, device="ltc"), torch.ones(1, device="ltc")
    call = torch_ltc.compile(lambda x: a + 10 * b + x)
    for k in range(9):
        b.copy_(a) if k < 4 else b.fill_(k)  # they hold the same data, then not any more
        assert call(X.to("ltc")).tolist() == (1 + 10 * (k if k > 3 else 1) + X).tolist()
    assert call.counts[0] > 2, call.explain()


class Lister(nn.Module):
    """Puts lists and dicts of its buffers, and a plain value, into itself at each call, as DDP does."""

    def __init__(self, device):
        super().__init__()
        self.norm = nn.BatchNorm1d(3, device=device)
        self.register_buffer("scale", torch.ones(3, device=device))
        self.factor = 2.0

    def forward(self, x):
        named = [(b, n) for n, b in self.named_buffers() if b.is_floating_point()]
        self.all_buffers = [b for b, _ in named]
        self.by_name = {n: b for b, n in named}
        self.was_called = True
        y = self.norm(torch.stack((x, x * x))) * self.scale * self.factor
        return y.sum() + sum(b.sum() for b in self.all_buffers) + len(self.by_name)


LISTER_CHANGES = {
    "value in it": lambda m: m.scale.fill_(3.0),
    "buffer replaced": lambda m: setattr(m, "scale", torch.full((3,), 0.5, device=m.scale.device)),
    "buffer taken away": lambda m: (delattr(m, "scale"), setattr(m, "scale", 1.5)),
    "buffer added": lambda m: m.register_buffer("bias", torch.ones(3, device=m.scale.device)),
    "plain value": lambda m: setattr(m, "factor", -1.0),
    "list changed": lambda m: m.all_buffers.append(7),
    "list gone": lambda m: delattr(m, "all_buffers"),
    "list of another class": lambda m: setattr(m, "all_buffers", collections.deque(m.all_buffers)),
    "flag set back": lambda m: setattr(m, "was_called", False),
    "descriptor of the class": lambda m: setattr(type(m), "by_name", Reversed()),
}


class Reversed:
    """Keeps another thing than it is given."""

    def __get__(self, x, kind=None):
        return () if x is None else x.kept

    def __set__(self, x, value):
        x.kept = [*value, None]


@pytest.mark.parametrize("change", LISTER_CHANGES)
def test_a_module_that_makes_containers_anew_in_itself_is_replayed_until_something_changes(change):
    def make(world):
        world.m = type("Own", (Lister,), {})(world.device)
        return lambda x: world.m(x).detach()

    worlds = []
    call = agree(make, [lambda w: (LISTER_CHANGES[change](w.m), worlds.append(w))], calls=8, least=4)
    cpu, ltc = (w.m for w in worlds)
    assert list(cpu.__dict__) == list(ltc.__dict__) and cpu.was_called is ltc.was_called is True
    assert len(cpu.all_buffers) == len(ltc.all_buffers) and type(cpu.all_buffers) is type(ltc.all_buffers) is list
    # Replayed before the change, and after; not where what is put in place of another is held elsewhere, too.
    assert call.counts[0] >= (6 if change == "descriptor of the class" else 8), call.explain()


def absent(where):
    """Asks for a module that is not there, by each way to ask."""
    if where == "import":
        try:
            import ltc_is_not_there

            return ltc_is_not_there.FACTOR
        except ImportError:
            return 1.0
    spec = importlib.util.find_spec("ltc_is_not_there")
    return 1.0 if spec is None else 3.0


@pytest.mark.parametrize("how", ["file", "module"])
@pytest.mark.parametrize("where", ["import", "find_spec"])
def test_a_step_that_looks_for_a_missing_package_is_replayed_until_that_comes(where, how, tmp_path, monkeypatch):
    """Whether packages are there is asked at each step by accelerate."""
    (tmp_path / "ltc_is_not_there.py").write_text("FACTOR = 3.0\n")

    def comes(world):
        if world.device == "ltc" and how == "file":
            monkeypatch.syspath_prepend(tmp_path)
        elif how == "module":
            module = types.ModuleType("ltc_is_not_there")
            module.FACTOR, module.__spec__ = 3.0, importlib.machinery.ModuleSpec("ltc_is_not_there", None)
            monkeypatch.setitem(sys.modules, "ltc_is_not_there", module)

    def make(world):
        sys.modules.pop("ltc_is_not_there", None)
        if world.device == "cpu":
            world.calls = 0

            def step(x):
                world.calls += 1
                return x * (1.0 if world.calls <= 6 else 3.0)

            return step
        return lambda x: x * absent(where)

    call = agree(make, [comes], calls=6, least=4)
    assert call.counts[0] >= 4, call.explain()


def test_a_module_that_counts_its_calls_is_replayed():
    class Counting(nn.Linear):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return super().forward(x)

    model = Counting(3, 2, device="ltc")
    call = torch_ltc.compile(lambda x: model(x).sum())
    for _ in range(12):
        call(X.to("ltc"))
    assert model.calls == 12 and Counting.calls == 0
    assert call.counts[0] >= 4, call.explain()
