"""Compiled steps notice what changes in places that are easily forgotten. Each case is a program that runs on both
devices and has to say the same; it changes something after the step was captured."""

import collections
import contextlib
import functools
import io
import math
import operator
import threading
import types
import typing
import warnings

import numpy
import pytest
import torch
import torch_ltc

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def value(device="ltc"):
    return torch.tensor([1.0, 2.0]).to(device)


def play(step, device, change=lambda: None, calls=8, given=lambda late: ()):
    """Calls a step, with a change before its seventh call; `given`: what it is called with, before or after that."""
    outs = []
    for i in range(calls):
        if i == 6:
            change()
        outs.append(step(value(device), *given(i >= 6)).tolist())
    return outs


# ---- compiled objects ----


@case
def attributes_of_a_step(device, compile):
    def f(x):
        step.calls += 1
        return x * step.scale

    step = compile(f)
    step.calls, step.scale = 0, 2.0
    return play(step, device, lambda: setattr(step, "scale", 5.0)), step.calls


@case
def attributes_of_a_compiled_module(device, compile):
    module = torch.nn.Identity()
    module.scale = 2.0
    net = compile(module)
    step = compile(lambda x: net(x) * net.scale * (1 if net.training else 10))
    return [*play(step, device, lambda: setattr(module, "scale", 5.0)), *play(step, device, net.eval)]


@case
def attributes_set_on_a_compiled_module(device, compile):
    class Scale(torch.nn.Module):
        k = 2.0

        def forward(self, x):
            return x * self.k

    module = Scale()
    step = compile(module)
    return play(step, device, lambda: setattr(step, "k", 5.0)), module.k


@case
def class_of_a_module_named_alike(device, compile):
    own = type("Own", (), {"__module__": "torch_ltc_helpers"})()
    own.k = 2.0
    return play(compile(lambda x: x * own.k), device, lambda: setattr(own, "k", 5.0))


# ---- arguments that are known from elsewhere ----


@case
def argument_is_a_known_tensor(device, compile):
    known = value(device)
    step = compile(lambda x, y: x * 2 if y is known else x * 3)
    return play(step, device, given=lambda late: (known if late else value(device),))


@case
def argument_is_a_key(device, compile):
    known = value(device)
    cache = {known: 1}
    step = compile(lambda x, y: x * 2 if y in cache else x * 3)
    return play(step, device, given=lambda late: (known if late else value(device),))


@case
def argument_shares_memory(device, compile):
    known = torch.tensor([1.0, 2.0, 3.0]).to(device)

    def step(x, y):
        known.add_(1)
        return x + y

    step = compile(step)
    return play(step, device, given=lambda late: (known[:2] if late else value(device),))


@case
def argument_is_a_known_object(device, compile):
    class Mode:
        pass

    train = Mode()
    step = compile(lambda x, mode: x * 2 if mode is train else x * 3)
    return play(step, device, given=lambda late: (train if late else Mode(),))


@case
def argument_is_one_of_a_tuple(device, compile):
    class Mode:
        pass

    modes = (Mode(), Mode())
    step = compile(lambda x, mode: x * 2 if mode is modes[0] else x * 3)
    return play(step, device, given=lambda late: (modes[0] if late else Mode(),))


@case
def argument_is_the_last_batch(device, compile):
    class Kept:
        pass

    Kept.last = {"k": 1.0}
    step = compile(lambda x, batch: x * 2 if batch is Kept.last else x * 3)
    return play(step, device, given=lambda late: (Kept.last if late else {"k": 1.0},))


# ---- what arguments are ----


class Name(str):
    pass


class Whole(int):
    pass


class Real(float):
    pass


class Frozen(frozenset):
    pass


class Bytes(bytes):
    pass


class Failure(Exception):
    pass


class Shown:
    def __init__(self, v):
        self.v = v

    def __repr__(self):
        return "Shown"


ARGUMENTS = {
    "a str's class": (lambda v: Name(v), lambda x, a: x * float(str(a))),
    "an int's class": (lambda v: Whole(v), lambda x, a: x * a),
    "a float's class": (lambda v: Real(v), lambda x, a: x * a),
    "a frozenset's class": (lambda v: Frozen({v}), lambda x, a: x * sum(a)),
    "an exception": (lambda v: Failure(v), lambda x, a: x * a.args[0]),
    "a bytes' class": (lambda v: Bytes([v]), lambda x, a: x * a[0]),
    "a deque's length": (lambda v: collections.deque([1.0], maxlen=v), lambda x, a: x * a.maxlen),
    "a unit of time": (
        lambda v: numpy.timedelta64(5, "s" if v == 2 else "m"),
        lambda x, a: x * float(a / numpy.timedelta64(1, "s")),
    ),
    "a matrix": (lambda v: numpy.matrix(numpy.zeros((v, 10 // v))), lambda x, a: x * a.shape[0]),
    "a slice": (lambda v: slice(Shown(float(v)), None), lambda x, a: x * a.start.v),
    "a parameter": (
        lambda v: value().requires_grad_() if v == 2 else torch.nn.Parameter(value()),
        lambda x, a: x * 2 if isinstance(a, torch.nn.Parameter) else x * 3,
    ),
    "a sign of no number": (
        lambda v: math.nan if v == 2 else -math.nan,
        lambda x, a: x * math.copysign(2.0, a),
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_that_differ_are_told_apart(name):
    make, step = ARGUMENTS[name]

    def given(late):
        return (make(5 if late else 2),)

    assert play(torch_ltc.compile(step), "ltc", given=given) == play(step, "ltc", given=given)


# ---- what is lacking ----


def attempt(get, x, *objects):
    for found in objects:
        try:
            x = x * get(found)
        except AttributeError:
            x = x + 1
    return x


def lacks(make):
    """An attribute is lacking at first, and is asked for in another function than the one that minds."""

    def run(device, compile):
        holder = make()
        step = compile(lambda x: attempt(lambda o: o.z, x, holder))
        return play(step, device, lambda: setattr(holder, "z", 5.0))

    return run


class Slotted:
    __slots__ = ("z",)


for label, make in {
    "attribute": lambda: types.SimpleNamespace(),
    "attribute of an instance": lambda: Shown(1),
    "slot": Slotted,
    "attribute of a class": lambda: type("Empty", (), {}),
    "attribute of a module": lambda: types.ModuleType("m"),
    "attribute of nn.Module": lambda: torch.nn.Identity(),
}.items():
    CASES[f"a lacking {label}"] = lacks(make)


@case
def module_that_answers(device, compile):
    module = types.ModuleType("m")
    module.__getattr__ = lambda name: 2.0
    return play(compile(lambda x: x * module.v), device, lambda: setattr(module, "v", 5.0))


@case
def class_of_a_module(device, compile):
    class Other(types.ModuleType):
        v = property(lambda self: 5.0)

    module = types.ModuleType("m")
    module.v = 2.0
    return play(compile(lambda x: x * module.v), device, lambda: setattr(module, "__class__", Other))


# ---- super ----


def family():
    class Parent:
        k = 2.0

        def f(self, x):
            return x

    class Child(Parent):
        k = 7.0

        def f(self, x):
            return super().f(x) * super().k

    return Parent, Child()


@case
def attribute_by_super(device, compile):
    parent, child = family()
    return play(compile(lambda x: child.f(x)), device, lambda: setattr(parent, "k", 5.0))


@case
def method_by_super(device, compile):
    parent, child = family()
    return play(compile(lambda x: child.f(x)), device, lambda: setattr(parent, "f", lambda self, x: x * 100))


# ---- functions ----


@case
def attributes_of_a_method(device, compile):
    class Owner:
        def f(self, x):
            return x * Owner.f.k

        f.k = 2.0

    owner = Owner()
    return play(compile(lambda x: owner.f(x)), device, lambda: setattr(Owner.f, "k", 5.0))


@case
def count_of_a_method(device, compile):
    class Owner:
        def f(self, x):
            Owner.f.calls += 1
            return x

        f.calls = 0

    owner = Owner()
    return play(compile(lambda x: owner.f(x)), device), Owner.f.calls


def functions(change):
    def run(device, compile):
        k = 2.0

        def h():
            "2.0"
            return k

        def closes(v):
            nonlocal k
            k = v

        h.__annotations__["q"] = 2.0
        step = compile(
            lambda x: x * h.__closure__[0].cell_contents + float(h.__doc__) + h.__annotations__["q"] + len(h.__name__)
        )
        return play(step, device, lambda: change(h, closes))

    return run


CASES["closure"] = functions(lambda h, closes: closes(5.0))
CASES["doc"] = functions(lambda h, closes: setattr(h, "__doc__", "100"))
CASES["annotations"] = functions(lambda h, closes: h.__annotations__.update(q=1000.0))
CASES["name of a function"] = functions(lambda h, closes: setattr(h, "__name__", "long"))

SCALE = 2.0


def helper():
    return SCALE


@case
def globals_of_a_function(device, compile):
    scope = {"SCALE": 2.0}  # all of them are looked at; those of this module lead to all of torch
    function = types.FunctionType(helper.__code__, scope)
    step = compile(lambda x: x * function.__globals__["SCALE"])
    return play(step, device, lambda: scope.update(SCALE=5.0))


# ---- functions written in C that nothing tells of ----


@case
def property_by_a_getter(device, compile):
    class Owner:
        scale = property(operator.attrgetter("hidden"))

    owner = Owner()
    owner.hidden = 2.0
    return play(compile(lambda x: x * owner.scale), device, lambda: setattr(owner, "hidden", 5.0))


@case
def getattr_that_is_c(device, compile):
    d = {"s": 2.0}
    owner = type("Owner", (), {"__getattr__": staticmethod(d.__getitem__)})()
    return play(compile(lambda x: x * owner.s), device, lambda: d.update(s=5.0))


@case
def call_that_is_c(device, compile):
    told = []
    owner = type("Owner", (), {"__call__": staticmethod(told.append)})()

    def step(x):
        owner(1)
        return x * 2

    return play(compile(step), device), len(told)


# ---- other ----


@case
def result_that_is_kept(device, compile):
    @functools.lru_cache
    def config(name):
        return [2.0]

    return play(compile(lambda x: x * config("a")[0]), device, lambda: operator.setitem(config("a"), 0, 5.0))


@case
def result_that_another_took_the_place_of(device, compile):
    @functools.lru_cache(1)
    def config(name):
        return [2.0]

    def change():
        config("b")
        config("a")[0] = 5.0

    return play(compile(lambda x: x * config("a")[0]), device, change)


@case
def shape_of_an_array(device, compile):
    a = numpy.zeros((2, 3))
    return play(compile(lambda x: x * a.shape[0]), device, lambda: setattr(a, "shape", (3, 2)))


@case
def default_factory(device, compile):
    d = collections.defaultdict(int)

    def step(x):
        v = d["k"]
        del d["k"]
        return x * float(v)

    return play(compile(step), device, lambda: setattr(d, "default_factory", lambda: 5))


@case
def printed_by_c(device, compile):
    told = io.StringIO()

    def step(x):
        list(map(print, ["hi"]))
        return x * 2

    with contextlib.redirect_stdout(told):
        play(compile(step), device)
    return told.getvalue()


@case
def lock(device, compile):
    held = threading.Lock()
    return play(compile(lambda x: x * 2 if held.locked() else x * 3), device, held.acquire)


@case
def protocol(device, compile):
    @typing.runtime_checkable
    class HasScale(typing.Protocol):
        scale: float

    owner = Shown(1)
    step = compile(lambda x: x * 2 if isinstance(owner, HasScale) else x * 3)
    return play(step, device, lambda: setattr(owner, "scale", 1.0))


@case
def type_hints(device, compile):
    class Owner:
        x: int = 2

    step = compile(lambda x: x * len(typing.get_type_hints(Owner)))
    return play(step, device, lambda: Owner.__annotations__.update(y=int))


@case
def subclasses(device, compile):
    class Base:
        pass

    made = []
    step = compile(lambda x: x * len(Base.__subclasses__()))
    return play(step, device, lambda: made.append(type("Other", (Base,), {})))


@case
def setting_of_a_device(device, compile):
    old = torch.get_autocast_dtype("cuda")
    torch.set_autocast_dtype("cuda", torch.float16)
    step = compile(lambda x: x * 2 if torch.get_autocast_dtype("cuda") is torch.bfloat16 else x * 3)
    try:
        return play(step, device, lambda: torch.set_autocast_dtype("cuda", torch.bfloat16))
    finally:
        torch.set_autocast_dtype("cuda", old)


@case
def warning(device, compile):
    def step(x):
        warnings.warn("careful", stacklevel=1)
        return x * 2

    step, told = compile(step), []
    for _ in range(8):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            step(value(device))
        told.append(sum("careful" in str(w.message) for w in seen))
    return told


@case
def container_that_is_held(device, compile):
    world, held = types.SimpleNamespace(outs=[]), []

    def step(x):
        world.outs = [1, 2]
        return x + 1

    step = compile(step)
    for i in range(10):
        step(value(device))
        if i >= 6:
            held.append(world.outs)
    held[0].append("mine")
    return held


@case
def name_of_a_class(device, compile):
    owner = type("A", (), {})()
    step = compile(lambda x: x * 2 if type(owner).__name__ == "A" else x * 3)
    return play(step, device, lambda: setattr(type(owner), "__name__", "B"))


@case
def class_of_tensors(device, compile):
    old = torch.Tensor.mul
    try:
        step = compile(lambda x: x.mul(2))
        return play(step, device, lambda: setattr(torch.Tensor, "mul", lambda s, o: s + o + 100))
    finally:
        torch.Tensor.mul = old


@pytest.mark.parametrize("name", CASES)
def test_changes_are_noticed(name):
    run = CASES[name]
    assert run("ltc", torch_ltc.compile) == run("cpu", lambda f: f)


# ---- what is ordinary is replayed ----


class Layer(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x)


def ordinary(call, *made):
    """A step that calls what is there before it."""
    return lambda x: call(x, *made)


ORDINARY = {
    "super": lambda: ordinary(lambda x, layer: layer(x), Layer(2, 2).to("ltc")),
    "a compiled module within": lambda: ordinary(
        lambda x, net: net(x) * net.in_features, torch_ltc.compile(Layer(2, 2).to("ltc"))
    ),
    "a compiled module": lambda: Layer(2, 2).to("ltc"),
    "what is lacking": lambda: ordinary(lambda x, holder: attempt(lambda o: o.z, x, holder), Shown(1)),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_steps_are_replayed(name):
    step = torch_ltc.compile(ORDINARY[name]())
    with torch.no_grad():
        for _ in range(6):
            step(value())
    assert step.counts[0] == 3, step.explain()


def test_a_known_tensor_is_replayed_as_an_argument():
    known = value()
    step = torch_ltc.compile(lambda x: x * 2 if x is known else x * 3)
    for _ in range(4):
        assert step(value()).tolist() == [3.0, 6.0]
    for _ in range(6):
        assert step(known).tolist() == [2.0, 4.0]
    assert step.counts[0] >= 3, step.explain()
    assert step(value()).tolist() == [3.0, 6.0]
