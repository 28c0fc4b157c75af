"""A compiled step is the recorded step: whatever value changes between calls, in whatever place the step reads it."""

import collections
import contextlib
import contextvars
import dataclasses
import functools
import threading
import types

import pytest
import torch
import torch_ltc
from steps import Holder, Slotted, X, agree
from torch import nn
from torch_ltc import _step

# ---- numbers and objects that the step reads, each in a place of its own ----


class Shared:
    value = 1.0


class Derived(Shared):
    pass


class Meta(type):
    @property
    def value(cls):
        return cls.hidden


class WithMeta(metaclass=Meta):
    hidden = 1.0


class Property(Holder):
    @property
    def half(self):
        return self.value / 2


class Lookup(Holder):
    def __getattr__(self, name):
        return self.__dict__["value"] if name == "other" else super().__getattribute__(name)


class Indexed(Holder):
    def __getitem__(self, key):
        return self.value * key


@dataclasses.dataclass
class Data:
    value: float = 1.0


@dataclasses.dataclass(slots=True)
class SlottedData:
    value: float = 1.0


class Enumerated(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = 1.0

    def forward(self, x):
        return x * self.value


GLOBAL = 1.0
THREAD = threading.local()
VARIABLE = contextvars.ContextVar("VARIABLE", default=1.0)


def set_global(value):
    global GLOBAL
    GLOBAL = value


def helper(x):
    return x * GLOBAL


def place(name):  # noqa: PLR0915, a table: an arm for each kind of place
    """A reader and a writer of one value, over a world of their own."""

    def of_object(kind, read=lambda o: o.value):
        def make(world):
            world.o = kind()
            world.o.value = 1.0
            return lambda x: x * read(world.o)

        return make, lambda world, v: setattr(world.o, "value", v)

    def container(empty, read, write):
        def make(world):
            world.c = empty()
            write(world.c, 1.0)
            return lambda x: x * read(world.c)

        return make, lambda world, v: write(world.c, v)

    def plain(make, write):
        return make, write

    def closure(world):
        value = 1.0

        def put(v):
            nonlocal value
            value = v

        world.put = put
        put(1.0)
        return lambda x: x * value

    def default(world):
        def inner(x, factor=1.0):
            return x * factor

        world.inner = inner
        inner.__defaults__ = (1.0,)
        return lambda x: inner(x)

    def keyword_default(world):
        def inner(x, *, factor=1.0):
            return x * factor

        world.inner = inner
        return lambda x: inner(x)

    def code(world):
        def inner(x):
            return x * 1.0

        world.inner = inner
        return lambda x: inner(x)

    def replace_code(world, v):
        scope = {}
        exec(f"def inner(x): return x * {v!r}", scope)
        world.inner.__code__ = scope["inner"].__code__

    def method(world):
        world.o = Holder(1.0)
        world.o.run = types.MethodType(lambda self, x: x * self.value, world.o)
        return lambda x: world.o.run(x)

    def patched_class(world):
        world.kind = type("Patched", (), {"run": lambda self, x: x * 1.0})
        world.o = world.kind()
        return lambda x: world.o.run(x)

    def shadowed(world):
        world.o = type("Shadowed", (), {"value": 1.0})()
        return lambda x: x * world.o.value

    def other_class(world):
        run = lambda v: lambda self, x: x * v
        world.kinds = {v: type(f"K{i}", (), {"run": run(v)}) for i, v in enumerate((1.0, 2.0, -3.5))}
        world.o = world.kinds[1.0]()
        return lambda x: world.o.run(x)

    def partial(world):
        world.o = Holder(1.0)
        return functools.partial(lambda o, x: x * o.value, world.o)

    def sorted_by(world):
        world.items = [Holder(1.0), Holder(10.0)]
        return lambda x: x * sorted(world.items, key=lambda o: -o.value)[0].value  # noqa: FURB192

    def in_context(world):
        world.value = 1.0

        @contextlib.contextmanager
        def scaled():
            yield world.value

        def step(x):
            with scaled() as v:
                return x * v

        return step

    def generator(world):
        world.values = [1.0, 1.0]

        def each():
            for v in world.values:  # noqa: UP028  (a generator with a variable)
                yield v

        return lambda x: x * sum(each())

    def kwargs(world):
        world.options = {"alpha": 1.0}
        return lambda x: torch.add(x, x, **world.options)

    def getattr_name(world):
        world.o, world.name = Holder(1.0), "value"
        return lambda x: x * getattr(world.o, world.name)

    def hasattr_name(world):
        world.o = types.SimpleNamespace(bonus=2.0)
        return lambda x: x * (world.o.factor if hasattr(world.o, "factor") else 1.0)

    class Own(Holder):
        def all_of_it(self):
            return [v if type(v) is float else v.value for v in self.__dict__.values()]

        def by_name(self, key):
            return self.__dict__[key].value

        def of_another(self, other):
            self = other  # noqa: PLW0642  (what the argument named first is not what is read)
            return self.__dict__["value"]

    def own_dict(world):
        world.o = Own(1.0)
        return lambda x: x * sum(world.o.all_of_it())

    def held_in_own_dict(world):
        world.o = Own(Holder(1.0))
        return lambda x: x * world.o.by_name("value")

    def another_s_dict(world):
        world.o, world.p = Own(5.0), Holder(1.0)
        return lambda x: x * world.o.of_another(world.p)

    def deep(world):
        world.cfg = {"a": [({"b": Holder(types.SimpleNamespace(value=1.0))},)]}
        return lambda x: x * world.cfg["a"][0][0]["b"].value.value

    def module_attribute(world):
        world.m = nn.Sequential(Enumerated(), nn.Identity())
        return lambda x: world.m(x)

    def counted(world):
        world.xs = [None]
        return lambda x: x * len(world.xs)

    def string(world):
        world.mode = "one"
        return lambda x: x * {"one": 1.0}.get(world.mode, 5.0)

    def sign_of_zero(world):
        world.z = 0.0
        return lambda x: (
            x / torch.tensor(world.z, device=x.device)
            if False
            else x * float.__truediv__(1.0, 1.0) * (-1 if str(world.z) == "-0.0" else 1)
        )

    def set_of_names(world):
        world.on = set()
        return lambda x: x * 3 if "scale" in world.on else x

    def wrapped(world):
        world.o = Holder(1.0)

        def decorate(f):
            @functools.wraps(f)
            def inner(*args):
                return f(*args) * world.o.value

            return inner

        return decorate(lambda x: x + 1)

    places = {
        "attribute": of_object(lambda: Holder(1.0)),
        "slot": of_object(Slotted),
        "namespace": of_object(types.SimpleNamespace),
        "data class": of_object(Data),
        "data class with slots": of_object(SlottedData),
        "property": of_object(lambda: Property(1.0), lambda o: o.half),
        "computed attribute": of_object(lambda: Lookup(1.0), lambda o: o.other),
        "indexed": of_object(lambda: Indexed(1.0), lambda o: o[2]),
        "module attribute": plain(module_attribute, lambda w, v: setattr(w.m[0], "value", v)),
        "dropout-like p": of_object(lambda: nn.Dropout(0.5), lambda o: o.value),
        "class attribute": plain(
            lambda w: (setattr(Shared, "value", 1.0), lambda x: x * Shared.value)[1],
            lambda w, v: setattr(Shared, "value", v),
        ),
        "inherited class attribute": plain(
            lambda w: (setattr(Shared, "value", 1.0), lambda x: x * Derived().value)[1],
            lambda w, v: setattr(Shared, "value", v),
        ),
        "property of a class": plain(
            lambda w: (setattr(WithMeta, "hidden", 1.0), lambda x: x * WithMeta.value)[1],
            lambda w, v: setattr(WithMeta, "hidden", v),
        ),
        "dict": container(dict, lambda c: c["k"], lambda c, v: c.__setitem__("k", v)),
        "large dict": container(
            lambda: {str(i): 0.0 for i in range(500)}, lambda c: c["7"], lambda c, v: c.__setitem__("7", v)
        ),
        "default dict": container(
            lambda: collections.defaultdict(float), lambda c: c["k"], lambda c, v: c.__setitem__("k", v)
        ),
        "ordered dict": container(collections.OrderedDict, lambda c: c["k"], lambda c, v: c.__setitem__("k", v)),
        "user dict": container(collections.UserDict, lambda c: c["k"], lambda c, v: c.__setitem__("k", v)),
        "list": container(lambda: [0.0], lambda c: c[0], lambda c, v: c.__setitem__(0, v)),
        "nested list": container(lambda: [[[0.0]]], lambda c: c[0][0][0], lambda c, v: c[0][0].__setitem__(0, v)),
        "deque": container(lambda: collections.deque([0.0]), lambda c: c[0], lambda c, v: c.__setitem__(0, v)),
        "tuple in a list": container(lambda: [(0.0,)], lambda c: c[0][0], lambda c, v: c.__setitem__(0, (v,))),
        "global": plain(lambda w: (set_global(1.0), lambda x: x * GLOBAL)[1], lambda w, v: set_global(v)),
        "global of a helper": plain(lambda w: (set_global(1.0), lambda x: helper(x))[1], lambda w, v: set_global(v)),
        "cell": plain(closure, lambda w, v: w.put(v)),
        "default": plain(default, lambda w, v: setattr(w.inner, "__defaults__", (v,))),
        "keyword default": plain(keyword_default, lambda w, v: w.inner.__kwdefaults__.__setitem__("factor", v)),
        "replaced keyword defaults": plain(
            keyword_default, lambda w, v: setattr(w.inner, "__kwdefaults__", {"factor": v})
        ),
        "code": plain(code, replace_code),
        "method of an instance": plain(
            method, lambda w, v: setattr(w.o, "run", types.MethodType(lambda self, x: x * v, w.o))
        ),
        "method of a class": plain(patched_class, lambda w, v: setattr(w.kind, "run", lambda self, x: x * v)),
        "method hidden by an attribute": plain(patched_class, lambda w, v: setattr(w.o, "run", lambda x: x * v)),
        "class attribute hidden by another": plain(shadowed, lambda w, v: setattr(w.o, "value", v)),
        "class of an instance": plain(other_class, lambda w, v: setattr(w.o, "__class__", w.kinds[v])),
        "namespace replaced": plain(
            lambda w: (setattr(w, "o", Holder(1.0)), lambda x: x * w.o.value)[1],
            lambda w, v: setattr(w.o, "__dict__", {"value": v}),
        ),
        "partial": plain(partial, lambda w, v: setattr(w.o, "value", v)),
        "key of a sort": plain(sorted_by, lambda w, v: setattr(w.items[1], "value", v * 7)),
        "context manager": plain(in_context, lambda w, v: setattr(w, "value", v)),
        "generator": plain(generator, lambda w, v: w.values.__setitem__(1, v)),
        "keyword arguments": plain(kwargs, lambda w, v: w.options.__setitem__("alpha", v)),
        "name in a variable": plain(getattr_name, lambda w, v: setattr(w.o, "value", v)),
        "own dict": plain(own_dict, lambda w, v: setattr(w.o, "value", v)),
        "own dict that grows": plain(own_dict, lambda w, v: setattr(w.o, "more", v)),
        "held in the own dict": plain(held_in_own_dict, lambda w, v: setattr(w.o.value, "value", v)),
        "another's dict": plain(another_s_dict, lambda w, v: setattr(w.p, "value", v)),
        "attribute that comes": plain(hasattr_name, lambda w, v: setattr(w.o, "factor", v)),
        "deep": plain(deep, lambda w, v: setattr(w.cfg["a"][0][0]["b"].value, "value", v)),
        "length": plain(counted, lambda w, v: w.xs.append(v)),
        "string": plain(string, lambda w, v: setattr(w, "mode", str(v))),
        "sign of zero": plain(sign_of_zero, lambda w, v: setattr(w, "z", -0.0 if v < 0 else 0.0)),
        "set": plain(set_of_names, lambda w, v: w.on.add("scale") if v > 0 else w.on.clear()),
        "wrapper": plain(wrapped, lambda w, v: setattr(w.o, "value", v)),
        "thread-local": plain(
            lambda w: (setattr(THREAD, "value", 1.0), lambda x: x * THREAD.value)[1],
            lambda w, v: setattr(THREAD, "value", v),
        ),
        "context variable": plain(
            lambda w: (VARIABLE.set(1.0), lambda x: x * VARIABLE.get())[1], lambda w, v: VARIABLE.set(v)
        ),
    }
    return places if name is None else places[name]


PLACES = sorted(place(None))


@pytest.mark.parametrize("values", [(2.0, -3.5), (2.0, 1.0, 2.0)], ids=["changes", "comes back"])
@pytest.mark.parametrize("name", PLACES)
def test_a_value_that_changes_is_noticed(name, values):
    make, write = place(name)
    if name == "class of an instance" and 1.0 not in values:
        values = (2.0, -3.5)
    agree(make, [functools.partial(lambda v, world: write(world, v), v) for v in values])


@pytest.mark.parametrize("through", ["function", "method", "module", "callable", "static", "partial", "inner step"])
@pytest.mark.parametrize("name", ["attribute", "dict", "global", "class attribute", "slot", "list"])
def test_a_value_that_changes_is_noticed_through(name, through):
    make, write = place(name)

    class Trainer:
        def __init__(self, f):
            self.f = f

        def run(self, x):
            return self.f(x)

        def __call__(self, x):
            return self.f(x)

    class Module(nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def forward(self, x):
            return self.f(x)

    ways = {
        "function": lambda f: lambda x: f(x),
        "method": lambda f: Trainer(f).run,
        "module": Module,
        "callable": Trainer,
        "static": lambda f: staticmethod(f).__func__,
        "partial": lambda f: functools.partial(Trainer.run, Trainer(f)),
        "inner step": lambda f: torch_ltc.compile(f),
    }
    agree(lambda world: ways[through](make(world)), [lambda world: write(world, 2.0), lambda world: write(world, 0.5)])


def test_a_number_that_changes_at_each_call_is_an_input_or_refused_by_name():
    holder = Holder(1.0)
    call = torch_ltc.compile(lambda x: x * holder.value)
    for k in range(12):
        holder.value = 1.0 + k
        assert call(X.to("ltc")).tolist() == (X * holder.value).tolist()
    assert call.counts[0] >= 6, call.explain()
    call = torch_ltc.compile(lambda x: x * int(holder.value))
    for k in range(80):
        holder.value = 1.0 + k
        assert call(X.to("ltc")).tolist() == (X * holder.value).tolist()
    assert call.counts[1] > 40 and call.refusal, call.explain()


def test_threads_have_their_own_values():
    THREAD.value = 1.0
    call = torch_ltc.compile(lambda x: x * THREAD.value)
    for _ in range(5):
        assert call(X.to("ltc")).tolist() == X.tolist()
    got = []

    def other():
        THREAD.value = 2.0
        got.extend(call(X.to("ltc")).tolist() for _ in range(5))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert got == [(X * 2).tolist()] * 5


def test_steps_of_several_threads_all_come_to_be_replayed():
    def train(on, seed):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(on)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)

        def step(x):
            optimiser.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimiser.step()
            return loss.detach()

        return step

    xs = [torch.randn(6, 4, generator=torch.Generator().manual_seed(s)) for s in range(3)]
    steps = [torch_ltc.compile(train("ltc", seed)) for seed in range(3)]
    losses = [[], [], []]

    def run(i):
        x = xs[i].to("ltc")
        while steps[i].counts[0] < 60 and len(losses[i]) < 2000:
            losses[i].append(steps[i](x))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for seed, (step, got) in enumerate(zip(steps, losses)):
        assert step.counts[0] == 60 and (_step._CHECK_EVERY or not step.refusal), step.explain()
        wanted = train("cpu", seed)
        for loss in got:
            torch.testing.assert_close(loss.cpu(), wanted(xs[seed]), rtol=1e-3, atol=1e-6)


def test_a_step_that_is_recorded_beside_a_capture_says_so():
    said = []

    def other():
        step = torch_ltc.compile(lambda x: x + 1)
        said.append([step(X.to("ltc")).tolist() for _ in range(2)] and step.explain())

    def outer(x):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x * 2

    assert torch_ltc.compile(outer)(X.to("ltc")).tolist() == (X * 2).tolist()
    assert said == ["0 calls replayed, 2 recorded; another thread was capturing a step"]


def test_a_view_is_of_its_own_tensor_not_of_one_with_equal_data():
    # A clone shares the data until one of both is written to, and the step reads the clone only.
    tensor = torch.tensor([1.0, 2.0, 3.0]).to("ltc")
    clone = tensor.clone()

    def step():
        view = tensor[:, None]
        torch.std_mean(clone)
        return view

    compiled = torch_ltc.compile(step)
    for i in range(6):
        view = compiled()
        assert view._base is tensor
        tensor.fill_(i)
        assert view.cpu().flatten().tolist() == [i] * 3
    assert clone.cpu().tolist() == [1.0, 2.0, 3.0]


class WithFallback:
    def __init__(self):
        self.values = {"value": 2.0}

    def __getattr__(self, name):
        if name == "value":
            return self.__dict__["values"][name]
        raise AttributeError(name)


class Layer(nn.Linear):
    pass


HIDDEN = {
    "an attribute": (lambda: Holder(2.0), lambda o, x: x * o.value, "value", lambda x: 9.0),
    "by a computed name": (
        lambda: Holder(2.0),
        lambda o, x: x * getattr(o, "eulav"[::-1]),
        "value",
        lambda x: 9.0,
    ),
    "of an object that the step makes": (lambda: Holder, lambda o, x: x * o(2.0).value, "value", lambda x: 9.0),
    "what __getattr__ gives": (WithFallback, lambda o, x: x * o.value, "value", lambda x: 9.0),
    "a number of a module": (lambda: Layer(2, 3), lambda o, x: x * o.in_features, "in_features", lambda x: 9.0),
    "a parameter": (
        lambda: Layer(2, 3).to("ltc"),
        lambda o, x: x * o.weight.detach().sum(),
        "weight",
        lambda x: X.to("ltc"),
    ),
}


@pytest.mark.parametrize("what", HIDDEN)
def test_a_property_that_a_class_gets_hides_what_an_instance_has(what, monkeypatch):
    make, read, name, now = HIDDEN[what]
    made = make()
    step = torch_ltc.compile(lambda x: read(made, x))
    for _ in range(6):
        before = step(X.to("ltc"))
    assert step.counts == (3, 3), step.explain()
    setter = None if isinstance(made, nn.Module) else lambda self, value: None
    monkeypatch.setattr(made if isinstance(made, type) else type(made), name, property(now, setter), raising=False)
    after = step(X.to("ltc"))
    assert torch.equal(after.cpu(), read(made, X.to("ltc")).cpu()) and not torch.equal(after.cpu(), before.cpu())
