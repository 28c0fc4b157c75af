"""What a compiled step reads without naming it: attributes by names that only C code sees, and objects that hold a
program's values behind a class that is not Python's. The next call has seen what became of it, or the step is recorded.
"""

import abc
import collections
import decimal
import enum
import functools
import gc
import inspect
import logging
import operator
import threading
import types
import weakref

import pytest
import torch
import torch_ltc
from torch.utils import _pytree
from torch_ltc import _step


class Inner:
    number = 1.0


class Outer:
    def __init__(self):
        self.number, self.inner = 1.0, Inner()


NAMES = ["number"]
SHOWS = "{.inner.number}"
PATH = "inner.number"
GET_NUMBER = operator.attrgetter("number")


def another(get, owner):
    return get(owner, NAMES[0])


class Class:
    number = 1.0
    inner = Inner


GLOBAL, GLOBAL_CLASS = Outer(), Class
MODULE = types.ModuleType("a_module_of_a_test")
MODULE.number, MODULE.numbers, MODULE.inner = 1.0, [1.0], Inner()


def in_itself(owner, number):
    owner.number = number


def in_inner(owner, number):
    owner.inner.number = number


BY_NAME = {
    "attrgetter": (lambda owner: operator.attrgetter("number")(owner), in_itself),
    "attrgetter, of a path": (lambda owner: operator.attrgetter(PATH)(owner), in_inner),
    "attrgetter, older": (lambda owner: GET_NUMBER(owner), in_itself),
    "reduce": (lambda owner: functools.reduce(getattr, PATH.split("."), owner), in_inner),
    "map": (lambda owner: next(map(getattr, [owner], NAMES)), in_itself),
    "partial": (lambda owner: functools.partial(getattr, owner)(NAMES[0]), in_itself),
    "another name for it": (lambda owner: another(getattr, owner), in_itself),
    "__getattribute__": (lambda owner: owner.__getattribute__(NAMES[0]), in_itself),
    "object.__getattribute__": (lambda owner: object.__getattribute__(owner, NAMES[0]), in_itself),
    "getattr_static": (lambda owner: inspect.getattr_static(owner, NAMES[0]), in_itself),
    "format": (lambda owner: float("{.number}".format(owner)), in_itself),  # noqa: UP032 - what is tested
    "format, of a path": (lambda owner: float(f"{{0.{PATH}}}".format(owner)), in_inner),
    "format_map": (lambda owner: float("{own.inner.number:.1f}".format_map({"own": owner})), in_inner),
}


def of_the_global(write):
    return lambda _, number: write(GLOBAL, number)


def of_the_class(_, number):
    Class.number = number


def of_the_module(_, number):
    MODULE.number = MODULE.inner.number = number
    MODULE.numbers[0] = number


#: The object is no variable of the code that reads it.
BY_NAME_OF_GLOBALS = {
    "global": (lambda _: getattr(GLOBAL, NAMES[0]), of_the_global(in_itself)),
    "within a global": (lambda _: getattr(GLOBAL.inner, NAMES[0]), of_the_global(in_inner)),
    "whether it is there": (
        lambda _: float(hasattr(GLOBAL, NAMES[0])),
        lambda _, number: in_itself(GLOBAL, number) if number % 2 else vars(GLOBAL).pop("number", None),
    ),
    "class": (lambda _: getattr(Class, NAMES[0]), of_the_class),
    "instance that is new": (lambda _: getattr(Class(), NAMES[0]), of_the_class),
    "class, by its dict": (lambda _: vars(Class)[NAMES[0]] + Class.__dict__[NAMES[0]], of_the_class),
    "module": (lambda _: getattr(MODULE, NAMES[0]), of_the_module),
    "module, by its dict": (lambda _: vars(MODULE)[NAMES[0]], of_the_module),
    "list of a module": (lambda _: getattr(MODULE, f"{NAMES[0]}s")[0], of_the_module),
    "within a module": (lambda _: getattr(MODULE.inner, NAMES[0]), of_the_module),
    "attrgetter": (lambda _: operator.attrgetter(NAMES[0])(GLOBAL), of_the_global(in_itself)),
    "reduce": (lambda _: functools.reduce(getattr, PATH.split("."), GLOBAL), of_the_global(in_inner)),
    "format": (lambda _: float(SHOWS.format(GLOBAL)), of_the_global(in_inner)),
}


class Level(enum.Enum):
    LOW = 1.0


class Of(abc.ABC):
    pass


@functools.cache
def kept():
    return SOURCE.number


@functools.lru_cache(4)
def kept_for(_):
    return SOURCE.number


@functools.singledispatch
def dispatched(_):
    return 1.0


class Dispatches:
    @functools.singledispatchmethod
    def number(self, _):
        return 1.0


class Node:
    pass


class Scales(torch.nn.Module):
    factor: float

    def __init__(self):
        super().__init__()
        self.factor = 1.0

    def forward(self, x):
        return x * self.factor


SOURCE, OTHER = Outer(), Outer()
SHOWN = {"number": 1.0}
ADD = functools.partial(operator.add, 1.0)
DISPATCHES = Dispatches()
LOGGER = logging.getLogger("ltc.a_logger_of_a_test.below")
GENERATOR = torch.Generator()
TENSOR = torch.ones(2)
BY_KEY, BY_NUMBER = weakref.WeakKeyDictionary({SOURCE: 1.0}), weakref.WeakValueDictionary({1: SOURCE})
IN_SET = weakref.WeakSet([SOURCE])
PROXY, VIEW = weakref.proxy(SOURCE), types.MappingProxyType(SHOWN)


def _registers(kind, number):
    Of.register(type(f"Of{number}", (kind,), {}))
    Of.register(kind)


def _clears(function):
    def write(number):
        SOURCE.number = number
        function.cache_clear()

    return write


HIDDEN = {
    "mapping proxy": (lambda: VIEW["number"], lambda number: SHOWN.update(number=number)),
    "weak keys": (lambda: BY_KEY[SOURCE], lambda number: BY_KEY.update({SOURCE: number})),
    "weak values": (
        lambda: BY_NUMBER[1].number,
        lambda number: BY_NUMBER.update({1: [SOURCE, OTHER][int(number) % 2]}),
    ),
    "weak set": (
        lambda: float(OTHER in IN_SET),
        lambda number: IN_SET.discard(OTHER) if number % 2 else IN_SET.add(OTHER),
    ),
    "weak proxy": (lambda: PROXY.number, lambda number: setattr(SOURCE, "number", number)),
    "partial": (lambda: ADD(2.0), lambda number: ADD.__setstate__((operator.add, (number,), {}, {}))),
    "cache": (kept, _clears(kept)),
    "bounded cache": (lambda: kept_for(1), _clears(kept_for)),
    "enum": (lambda: Level.LOW.value, lambda number: setattr(Level.LOW, "_value_", number)),
    "decimal context": (
        lambda: float(decimal.Decimal(1) / decimal.Decimal(3)),
        lambda number: setattr(decimal.getcontext(), "prec", int(number)),
    ),
    "level of a logger": (
        lambda: float(LOGGER.isEnabledFor(logging.INFO)),
        lambda number: LOGGER.setLevel(logging.INFO if number % 2 else logging.ERROR),
    ),
    "level of one above": (
        lambda: float(LOGGER.getEffectiveLevel()),
        lambda number: (LOGGER.setLevel(logging.NOTSET), logging.getLogger("ltc").setLevel(int(number))),
    ),
    "virtual subclass": (lambda: float(isinstance(SOURCE, Of)), lambda number: _registers(Outer, number)),
    "dispatch": (
        lambda: dispatched(1),
        lambda number: dispatched.register(int, lambda _: number),
    ),
    "dispatch of a method": (
        lambda: DISPATCHES.number(1),
        lambda number: Dispatches.__dict__["number"].register(int, lambda *_: number),
    ),
    "registered node": (
        lambda: float(len(_pytree.tree_leaves([Node(), 1.0]))),
        lambda number: (
            Node not in _pytree.SUPPORTED_NODES
            and _pytree.register_pytree_node(Node, lambda _: ([], None), lambda *_: Node())
        ),
    ),
    "setting of a library": (
        lambda: float(torch.backends.cudnn.benchmark),
        lambda number: torch._C._set_cudnn_benchmark(bool(number % 2)),
    ),
    "seed": (lambda: float(GENERATOR.initial_seed() % 97), lambda number: GENERATOR.manual_seed(int(number))),
    "version of a tensor": (lambda: float(TENSOR._version), lambda _: TENSOR.add_(1)),
    "the collector": (lambda: float(gc.isenabled()), lambda number: gc.disable() if number % 2 else gc.enable()),
    "order of counts": (
        lambda: float(next(iter(COUNTS)) == "b"),
        lambda number: COUNTS.move_to_end("a" if number % 2 else "b"),
    ),
    "namespace that is shown": (lambda: float(len(repr(SPACE))), lambda number: setattr(SPACE, "it", 10**number)),
    "namespaces that are compared": (lambda: float(SPACE == LIKE), lambda number: setattr(SPACE, "it", number % 2)),
    "arguments of an error": (lambda: float(str(ERROR)), lambda number: setattr(ERROR, "args", (str(number),))),
}
SPACE, LIKE, ERROR = types.SimpleNamespace(it=1), types.SimpleNamespace(it=1), ValueError("1.0")
COUNTS = collections.OrderedDict(a=1, b=2)


def follows(read, write):
    step = torch_ltc.compile(lambda x: x + read())
    x = torch.ones(1, device="ltc")
    for _ in range(5):
        step(x)
    for round in range(3):
        write(7.0 + round)
        for _ in range(2):
            expected = 1 + read()
            assert step(x).item() == pytest.approx(expected), (round, step.explain())


@pytest.mark.parametrize("case", BY_NAME)
def test_an_attribute_that_is_named_elsewhere(case):
    read, write = BY_NAME[case]
    owner = Outer()
    follows(lambda: read(owner), lambda number: write(owner, number))


@pytest.mark.parametrize("case", BY_NAME_OF_GLOBALS)
def test_an_attribute_of_what_is_no_variable(case):
    read, write = BY_NAME_OF_GLOBALS[case]
    in_itself(GLOBAL, 1.0)
    follows(lambda: read(None), lambda number: write(None, number))


WRITES = {
    "setattr": lambda owner: setattr(owner, NAMES[0], 7.0),
    "partial": lambda owner: functools.partial(setattr, owner)(NAMES[0], 7.0),
    "map": lambda owner: list(map(setattr, [owner], NAMES, [7.0])),
    "object.__setattr__": lambda owner: object.__setattr__(owner, NAMES[0], 7.0),
    "its own": lambda owner: owner.__setattr__(NAMES[0], 7.0),
    "its class's": lambda owner: type(owner).__setattr__(owner, NAMES[0], 7.0),
    "methodcaller": lambda owner: operator.methodcaller("__setattr__", NAMES[0], 7.0)(owner),
    "vars": lambda owner: vars(owner).update({NAMES[0]: 7.0}),
    "setitem": lambda owner: operator.setitem(vars(owner), NAMES[0], 7.0),
    "class": lambda owner: (type.__setattr__(Class, NAMES[0], 7.0), in_itself(owner, Class.number)),
}


@pytest.mark.parametrize("case", WRITES)
def test_a_write_by_name_is_made_by_each_call(case):
    owner, write = Outer(), WRITES[case]

    def step(x):
        write(owner)
        return x * 2

    compiled, x = torch_ltc.compile(step), torch.ones(1, device="ltc")
    for _ in range(8):
        owner.number = Class.number = 1.0
        compiled(x)
        assert owner.number == 7.0, compiled.explain()


def test_attributes_that_tensors_are_given():
    def marks_result(x):
        y = x * 2
        y.mark = 3
        return y

    def marks_input(x):
        x.mark = getattr(x, "mark", 0) + 1
        return x * 2

    result, given = torch_ltc.compile(marks_result), torch_ltc.compile(marks_input)
    x = torch.ones(1, device="ltc")
    for i in range(6):
        assert result(x).mark == 3
        given(x)
        assert x.mark == i + 1


@pytest.fixture
def as_before():
    benchmark, precision = torch.backends.cudnn.benchmark, decimal.getcontext().prec
    yield
    torch._C._set_cudnn_benchmark(benchmark)
    decimal.getcontext().prec = precision
    gc.enable()


@pytest.mark.parametrize("case", HIDDEN)
def test_a_value_that_an_object_hides(case, as_before):
    follows(*HIDDEN[case])


class Guarded(Outer):
    allowed = True

    def __getattribute__(self, name):
        if not super().__getattribute__("__dict__").get("allowed", True):
            return 0.0
        return super().__getattribute__(name)


@pytest.mark.parametrize("write", [in_itself, lambda owner, number: setattr(owner, "allowed", bool(number % 2))])
def test_what_an_object_asks_itself(write):
    owner = Guarded()
    follows(lambda: owner.number, lambda number: write(owner, number))


def test_attributes_of_a_scripted_module():
    scales = torch.jit.script(Scales())
    step, x = torch_ltc.compile(lambda x: scales(x) + 1), torch.ones(1, device="ltc")
    for factor in (1.0, 1.0, 1.0, 1.0, 5.0):
        scales.factor = factor
        assert step(x).item() == factor + 1


def test_which_thread_it_is():
    step, shown = torch_ltc.compile(lambda x: x + len(threading.current_thread().name)), []
    x = torch.ones(1, device="ltc")
    for _ in range(5):
        step(x)
    thread = threading.Thread(target=lambda: shown.append(step(x).item()), name="a thread of another name")
    thread.start()
    thread.join()
    assert shown == [1 + len(thread.name)]


def test_what_caches_keep_does_not_hinder_replays():
    """Entries that others add, and hits, are no change."""
    step = torch_ltc.compile(lambda x: x + kept_for(1))
    x = torch.ones(1, device="ltc")
    for i in range(8):
        step(x)
        kept_for(2 + i % 2)
    assert step.counts[0] >= 4, step.explain()


def test_classes_are_of_python_or_they_are_not():
    from torch_ltc._known import is_open

    class Slots:
        __slots__ = ("__weakref__", "more")

    class Whole(int):
        pass

    class Many(collections.OrderedDict):
        __slots__ = ("more",)

    ours = [Outer, Slots, Whole, Many, Level, Of, enum.IntEnum, weakref.WeakSet, logging.Logger, torch.nn.Linear]
    theirs = [functools.partial, type(kept), operator.attrgetter, decimal.Decimal, decimal.Context, weakref.ProxyType]
    assert [k for k in ours if not is_open(k)] == [] and [k for k in theirs if is_open(k)] == []


@pytest.mark.parametrize("room", [None, 1, 128])
def test_cached_tensors_are_replayed(room):
    @functools.lru_cache(room)
    def mask(n, device):
        return torch.tril(torch.ones(n, n)).to(device)

    step = torch_ltc.compile(lambda x: x @ mask(2, "ltc"))
    for _ in range(6):
        assert step(torch.tensor([1.0, 2.0], device="ltc")).tolist() == [3.0, 2.0]
    if not _step._CHECK_EVERY:  # what else the cache comes to hold counts as read
        mask(3, "ltc")
    for _ in range(6):
        assert step(torch.tensor([1.0, 2.0], device="ltc")).tolist() == [3.0, 2.0]
    mask(2, "ltc").zero_()
    assert step(torch.tensor([1.0, 2.0], device="ltc")).tolist() == [0.0, 0.0]
    assert step.counts[0] >= (6 if room == 1 else 10), step.explain()


def test_a_getter_among_the_variables_of_the_step():
    things, least = [types.SimpleNamespace(k=1.0, w=2.0), types.SimpleNamespace(k=2.0, w=3.0)], operator.attrgetter("k")
    step = torch_ltc.compile(lambda x: x * min(things, key=least).w)
    for i in range(10):
        if i == 6:
            things[0].k = 3.0
        assert step(torch.ones(1, device="ltc")).item() == (2.0 if i < 6 else 3.0)
    assert step.counts[0] >= 3, step.explain()
