"""What Python does without the code of a step naming it."""

import collections
import dataclasses
import enum
import functools
import importlib
import inspect
import operator
import sys
import types

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
SETTINGS = Base()
SETTINGS.scale = 2.0
PARTIAL = functools.partial(max, 1.0)
PARTIAL.scale = 2.0


@functools.lru_cache
def cached():
    return 0


cached.scale = 2.0


def wrapped():
    pass


wrapped.__wrapped__ = types.SimpleNamespace(scale=2.0)


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


class Choice(enum.Enum):
    TWO = 2
    THREE = 3
    FOUR = 4


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
    "defaults of a named tuple": (
        lambda x: x * Pair(1).other,
        lambda v: setattr(Pair.__new__, "__defaults__", (v,)),
    ),
    "enum": (
        lambda x: x * Choice(5).value,
        lambda v: setattr(Choice, "_missing_", classmethod(lambda cls, _: cls(int(v)))),
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
    before = 2.0
    for value in (2.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0, 4.0, 3.0, 2.0):
        if value != before:
            put(value)
            before = value
        assert step(x).tolist() == how(x).tolist()


MODULE = """
from torch import ones
def step(x):
    from .settings import scale
    return x * scale * whole(x)
def whole(x):
    from .settings import get
    return get() * other()
def other():
    from . import settings
    return settings.other
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
