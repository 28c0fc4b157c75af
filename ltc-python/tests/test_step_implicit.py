"""What Python does without the code of a step naming it, and what a step does that leaves no trace in what it reads."""

import atexit
import collections
import dataclasses
import functools
import importlib
import inspect
import operator
import sys
import threading
import types
import warnings
import weakref

import pytest
import torch
import torch_ltc


class Base:
    def __init__(self, k=2.0):
        self.k = k

    def g(self):
        return self.k


class Other:
    pass


class Kind(Base):
    def g(self):
        return super().g()


class Told(Base):
    def __lshift__(self, n):
        return self.k

    def __divmod__(self, n):
        return self.k, n

    def __complex__(self):
        return complex(self.k)

    def __bytes__(self):
        return b"ab"

    def __imod__(self, n):
        self.k = self.k
        return self

    def __delete__(self, owner):
        pass


class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {})) + 100


def shift(holder, x):
    return x * (holder << 1)


def divides(holder, x):
    return x * divmod(holder, 2)[0]


def is_complex(holder, x):
    return x * complex(holder).real


def has_bytes(holder, x):
    return x * len(bytes(holder))


def remainder(holder, x):
    holder %= 2
    return x * (holder.k if isinstance(holder, Told) else holder)


def replaced(name, value):
    def change(holder):
        setattr(Told, name, value)

    return change


SPECIAL_METHODS = {
    "lshift": (shift, replaced("__lshift__", lambda s, n: 5.0)),
    "divmod": (divides, replaced("__divmod__", lambda s, n: (5.0, n))),
    "complex": (is_complex, replaced("__complex__", lambda s: 5j + 5)),
    "bytes": (has_bytes, replaced("__bytes__", lambda s: b"abcde")),
    "imod": (remainder, replaced("__imod__", lambda s, n: 5.0)),
}


@pytest.mark.parametrize("name", SPECIAL_METHODS)
def test_special_methods(name):
    how, change = SPECIAL_METHODS[name]
    saved = dict(vars(Told))
    holder = Told()
    plain, step = functools.partial(how, holder), torch_ltc.compile(lambda x: how(holder, x))
    x = torch.ones(3, device="ltc")
    try:
        for _ in range(5):
            assert step(x).tolist() == plain(x).tolist() == [2.0] * 3
        assert step.counts[0] > 0, step.explain()
        change(holder)
        assert step(x).tolist() == plain(x).tolist() == [5.0] * 3
    finally:
        for method, value in saved.items():
            if callable(value) and method != "__dict__":
                setattr(Told, method, value)


def is_kind(holder, x):
    return x * (2.0 if isinstance(holder, Base) else 5.0)


def by_super(holder, x):
    return x * (holder.g() if hasattr(holder, "g") else 5.0)


def of_subclass(holder, x):
    return x * (2.0 if issubclass(type(holder), Base) else 5.0)


@pytest.mark.parametrize("how", [is_kind, by_super, of_subclass])
def test_bases_that_change(how):
    made = type("Made", (Kind,), {})
    holder = made()
    step = torch_ltc.compile(lambda x: how(holder, x))
    x = torch.ones(3, device="ltc")
    for _ in range(5):
        assert step(x).tolist() == [2.0] * 3
    assert step.counts[0] > 0, step.explain()
    made.__bases__ = (Other,)
    assert step(x).tolist() == how(holder, x).tolist() == [5.0] * 3


def test_a_tensor_that_becomes_one_of_another_class():
    held = torch.ones(3, device="ltc")
    step = torch_ltc.compile(lambda x: x + held)
    x = torch.ones(3, device="ltc")
    for _ in range(5):
        assert step(x).tolist() == [2.0] * 3
    assert step.counts[0] > 0, step.explain()
    held.__class__ = Sub
    assert step(x).tolist() == [102.0] * 3


def test_a_class_of_tensors_sees_the_calls_of_the_program_alone():
    held = torch.ones(3, device="ltc").as_subclass(Sub)
    step = torch_ltc.compile(lambda x: x + held * 2)
    for _ in range(4):
        assert step(torch.ones(3, device="ltc")).tolist() == [103.0] * 3


def test_finalisers_that_come_later():
    gone = []
    holder = types.SimpleNamespace(last=None)

    def step(x):
        Made()
        holder.last = None
        return x * 2

    class Made:
        pass

    compiled = torch_ltc.compile(step)
    x = torch.ones(3, device="ltc")
    for _ in range(5):
        compiled(x)
    assert compiled.counts[0] > 0, compiled.explain()
    Made.__del__ = lambda self: gone.append(1)
    for _ in range(4):
        compiled(x)
    assert len(gone) == 4


GETTER = operator.attrgetter("scale")
SETTINGS = types.SimpleNamespace(scale=2.0)
PARTIAL = functools.partial(max, 1.0)
PARTIAL.scale = 2.0


@functools.lru_cache
def cached():
    return 0


cached.scale = 2.0


def wrapped():
    pass


wrapped.__wrapped__ = SETTINGS.__class__(scale=2.0)


def annotated(a: "2"):
    pass


Pair = collections.namedtuple("Pair", "scale other", defaults=(0.0,))


def closes_over():
    scale = 2.0

    def get():
        return scale

    def put(value):
        nonlocal scale
        scale = value

    return get, put


GET, PUT = closes_over()
THINGS = {
    "attrgetter": (lambda x: x * GETTER(SETTINGS), lambda v: setattr(SETTINGS, "scale", v)),
    "partial": (lambda x: x * PARTIAL.scale, lambda v: setattr(PARTIAL, "scale", v)),
    "cached": (lambda x: x * cached.scale, lambda v: setattr(cached, "scale", v)),
    "unwrap": (lambda x: x * inspect.unwrap(wrapped).scale, lambda v: setattr(wrapped.__wrapped__, "scale", v)),
    "unwrap another": (
        lambda x: x * inspect.unwrap(wrapped).scale,
        lambda v: setattr(wrapped, "__wrapped__", types.SimpleNamespace(scale=v)),
    ),
    "annotations": (
        lambda x: x * float(inspect.get_annotations(annotated)["a"]),
        lambda v: annotated.__annotations__.update(a=str(v)),
    ),
    "closure": (lambda x: x * inspect.getclosurevars(GET).nonlocals["scale"], PUT),
    "storage": (lambda x: x * STORAGE[0], lambda v: STORAGE.__setitem__(0, int(v))),
    "retained": (lambda x: x * RETAINED.grad, lambda v: setattr(RETAINED, "grad", RETAINED.grad * 0 + v)),
}


class Slots:
    __slots__ = ("scale",)


class Mapping:
    scale = 2.0

    def keys(self):
        return ["scale"]

    def __getitem__(self, name):
        return self.scale if name == "scale" else 5.0


SLOTS, SLOT, MAPPING = Slots(), Slots.scale, Mapping()
ASK, ASK_OBJECT = getattr, object.__getattribute__
FROZEN = torch.nn.Parameter(torch.ones(3, device="ltc"), requires_grad=False)


@dataclasses.dataclass
class Registered:
    scale: float


torch.utils._pytree.register_dataclass(Registered)
REGISTERED = types.SimpleNamespace(parts=Registered(2.0))
MORE = {
    "slot": (lambda x: x * SLOT.__get__(SLOTS), lambda v: setattr(SLOTS, "scale", v)),
    "slot of class": (lambda x: x * Slots.scale.__get__(SLOTS), lambda v: setattr(SLOTS, "scale", v)),
    "slots mapped": (lambda x: x * next(map(SLOT.__get__, [SLOTS])), lambda v: setattr(SLOTS, "scale", v)),
    "getattr": (lambda x: x * ASK(SETTINGS, "scale"), lambda v: setattr(SETTINGS, "scale", v)),
    "of object": (lambda x: x * ASK_OBJECT(SETTINGS, "scale"), lambda v: setattr(SETTINGS, "scale", v)),
    "frozen gradient": (lambda x: x * FROZEN.grad, lambda v: setattr(FROZEN, "grad", torch.full_like(FROZEN, v))),
    "pytree": (
        lambda x: x * torch.utils._pytree.tree_leaves(REGISTERED.parts)[0],
        lambda v: setattr(REGISTERED.parts, "scale", v),
    ),
    "mapping": (
        lambda x: x * next(iter(dict(MAPPING).values())),
        lambda v: setattr(Mapping, "keys", lambda self: ["scale"] if v == 2.0 else ["other"]),
    ),
}
STORAGE = torch.tensor([2, 2, 2], dtype=torch.uint8).untyped_storage()
LEAF = torch.ones(3, device="ltc", requires_grad=True)
RETAINED = LEAF * 1
RETAINED.retain_grad()
(RETAINED * 2).sum().backward()


@pytest.mark.parametrize("name", [*THINGS, *MORE])
def test_what_is_read_by_the_way(name):
    how, put = {**THINGS, **MORE}[name]
    step = torch_ltc.compile(how)
    x = torch.ones(3, device="ltc")
    put(2.0)
    for value in (2.0, 2.0, 2.0, 2.0, 5.0, 5.0, 5.0, 5.0, 3.0, 2.0):
        put(value)
        assert step(x).tolist() == how(x).tolist()


MODULE = """
from torch import ones
def step(x):
    from .settings import scale
    from . import settings
    from .settings import get
    return x * scale * get() * settings.other
"""


def test_relative_imports():
    package = types.ModuleType("ltc_made_package")
    package.__path__ = []
    settings = types.ModuleType("ltc_made_package.settings")
    main = types.ModuleType("ltc_made_package.main")
    main.__package__ = "ltc_made_package"
    package.settings = settings
    made = {m.__name__: m for m in (package, settings, main)}
    sys.modules.update(made)
    try:
        settings.scale, settings.other, settings.get = 2.0, 1.0, lambda: 1.0
        exec(MODULE, vars(main))
        step = torch_ltc.compile(main.step)
        named = torch_ltc.compile(lambda x: x * importlib.import_module("ltc_made_package.settings").scale)
        x = torch.ones(3, device="ltc")
        for _ in range(5):
            assert step(x).tolist() == named(x).tolist() == [2.0] * 3
        assert step.counts[0] > 0, step.explain()
        settings.scale = 3.0
        assert step(x).tolist() == named(x).tolist() == [3.0] * 3
        settings.get = lambda: 2.0
        assert step(x).tolist() == [6.0] * 3
        settings.other = 2.0
        assert step(x).tolist() == [12.0] * 3
        other = types.ModuleType("ltc_made_package.settings")
        other.scale, other.other, other.get = 7.0, 1.0, lambda: 1.0
        package.settings = sys.modules["ltc_made_package.settings"] = other
        assert step(x).tolist() == named(x).tolist() == [7.0] * 3
    finally:
        for name in made:
            del sys.modules[name]


def starts_a_thread(seen):
    thread = threading.Thread(target=seen.append, args=(1,))
    thread.start()
    thread.join()


def registers(seen):
    atexit.register(seen.append, 1)
    atexit.unregister(seen.append)
    seen.append(1)


def filters(seen):
    warnings.simplefilter("ignore", category=type("W", (Warning,), {}))
    seen[:] = [1] * sum(isinstance(f[2], type) and f[2].__name__ == "W" for f in warnings.filters)


def references(seen):
    seen.append(1)
    assert weakref.getweakrefcount(SETTINGS) >= 0


@pytest.mark.parametrize("does", [starts_a_thread, registers, filters, references])
def test_what_a_step_does_beside(does):
    seen = []

    def step(x):
        does(seen)
        return x * 2

    with warnings.catch_warnings():
        compiled = torch_ltc.compile(step)
        for i in range(6):
            assert compiled(torch.ones(3, device="ltc")).tolist() == [2.0] * 3
            assert len(seen) == i + 1


def test_filters_that_are_put_back_are_no_obstacle():
    def step(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return x * 2

    compiled = torch_ltc.compile(step)
    for _ in range(5):
        compiled(torch.ones(3, device="ltc"))
    assert compiled.counts[0] > 0, compiled.explain()


def test_a_hook_that_the_step_takes_away():
    layer = torch.nn.Linear(2, 2).to("ltc")

    def step(x):
        out = layer(x)
        handle.remove()
        return out

    compiled = torch_ltc.compile(step)
    x = torch.ones(1, 2, device="ltc")
    seen = []
    for i in range(6):
        handle = layer.register_forward_hook(lambda m, a, out: seen.append(1))
        compiled(x)
        assert not layer._forward_hooks
        assert len(seen) == i + 1


class Words(str):
    pass


def test_values_with_attributes_are_made_anew():
    def step(x):
        out = Words("a")
        out.seen = 0
        return x * 2, out

    compiled = torch_ltc.compile(step)
    for _ in range(6):
        _, out = compiled(torch.ones(3, device="ltc"))
        assert out.seen == 0
        out.seen = 1


def test_what_another_thread_takes_is_appended():
    queue, taken, ends = [], [], threading.Event()

    def take():
        while not ends.is_set():
            while queue:
                taken.append(queue.pop())

    def step(x):
        queue.append(1)
        for _ in range(200):
            x = x * 1.0
        return x

    thread = threading.Thread(target=take)
    thread.start()
    try:
        compiled = torch_ltc.compile(step)
        for _ in range(8):
            compiled(torch.ones(3, device="ltc"))
    finally:
        ends.set()
        thread.join()
    assert len(taken) + len(queue) == 8


class Nested(tuple):
    pass


class Touchy(list):
    def __setitem__(self, *_):
        raise AssertionError

    def __iter__(self):
        raise AssertionError


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: float


PLACES = {
    "key": lambda v: {v: 1},
    "nested": lambda v: ((((((((v, 1), 2), 3), 4), 5), 6), 7), 8),
    "frozen set": lambda v: frozenset((v, -1.0)),
    "partial": lambda v: functools.partial(max, v),
    "named": lambda v: Pair(v, v),
    "two": lambda v: ((v, v), v),
    "frozen": lambda v: Frozen(v),
    "touchy": lambda v: Touchy([v]),
}


def floats_in(x):
    if isinstance(x, float):
        return [x]
    if isinstance(x, dict):
        return [y for k, v in x.items() for y in (*floats_in(k), *floats_in(v))]
    if isinstance(x, functools.partial):
        return floats_in(x.args)
    if isinstance(x, Frozen):
        return floats_in(x.value)
    if isinstance(x, Touchy):
        return [list.__getitem__(x, 0)]
    return [y for part in x for y in floats_in(part)] if isinstance(x, (tuple, frozenset)) else []


@pytest.mark.parametrize("name", PLACES)
def test_numbers_are_plain_wherever_they_are_put(name):
    holder = types.SimpleNamespace(last=None)

    def step(x, value):
        holder.last = PLACES[name](value)
        return x * value

    compiled = torch_ltc.compile(step)
    for value in (2.0, 3.0, 4.0, 5.0):
        assert compiled(torch.ones(3, device="ltc"), value).tolist() == [value] * 3
        assert all(type(y) is float for y in floats_in(holder.last)), floats_in(holder.last)
        assert value in floats_in(holder.last)


def test_attributes_of_tuples_that_are_made_anew_stay():
    holder = types.SimpleNamespace(last=None)

    def step(x, value):
        holder.last = Nested((value,))
        holder.last.name = "a name"
        return x * value

    compiled = torch_ltc.compile(step)
    for value in (2.0, 3.0, 4.0, 5.0):
        compiled(torch.ones(3, device="ltc"), value)
        assert holder.last == (value,) and holder.last.name == "a name"


def test_what_a_function_drops_is_gone_within_the_step():
    def drops(thing):
        ref = weakref.ref(thing)
        del thing
        return 2.0 if ref() is None else 5.0

    def parts():
        thing = Other()
        ref = weakref.ref(thing)
        yield 1.0
        del thing
        yield 2.0 if ref() is None else 5.0

    def step(x):
        return x * drops(Other()) * max(parts())

    compiled = torch_ltc.compile(step)
    for _ in range(5):
        assert compiled(torch.ones(3, device="ltc")).tolist() == step(torch.ones(3, device="ltc")).tolist()


def test_variables_that_other_threads_change_stay_changed():
    count, ends = 0, threading.Event()

    def counts():
        nonlocal count
        mine = 0
        while not ends.is_set():
            count += 1
            mine += 1
            assert count == mine

    def step(x):
        for _ in range(300):
            x = x * 1.0
        return x, count >= 0

    failed = []

    def runs():
        try:
            counts()
        except AssertionError:
            failed.append(count)

    thread = threading.Thread(target=runs)
    thread.start()
    try:
        compiled = torch_ltc.compile(step)
        for _ in range(4):
            compiled(torch.ones(3, device="ltc"))
    finally:
        ends.set()
        thread.join()
    assert not failed
