"""What a program changes between calls, wherever a compiled step reads it: replays never give what was there before."""

import collections
import dataclasses
import functools
import inspect
import logging
import operator
import types

import pytest
import torch
import torch_ltc

LOG = logging.getLogger("a test of torch_ltc")
LOG.propagate = False


@dataclasses.dataclass(slots=True)
class Slotted:
    scale: float = 2.0
    shift: float = 0.0


class Bare:
    __slots__ = ("scale", "shift")

    def __init__(self):
        self.scale, self.shift = 2.0, 0.0


class Cached:
    k = 2.0

    @functools.lru_cache  # noqa: B019
    def settings(self):
        return [self.k]

    @functools.lru_cache  # noqa: B019
    def number(self):
        return self.k


def ten(a, b):
    "ten"


def set_scale(holder):
    holder.scale = 50.0


def clear_caches(holder):
    holder.k = 5.0
    Cached.settings.cache_clear()
    Cached.number.cache_clear()


def with_class():
    return type("C", (), {"a": 1.0})


def add_to_class(kind):
    kind.b = 10.0


def public(pairs):
    return sum(value for name, value in pairs if not name.startswith("_"))


NAME = "sca"
#: What is read: how a holder is made, how a step reads it as a number, and how the program changes it.
CASES = {
    "slots, computed names": (Slotted, lambda c: getattr(c, NAME + "le"), set_scale),
    "slots, all of them": (Slotted, lambda c: sum(getattr(c, name) for name in c.__slots__), set_scale),
    "slots, fields": (Slotted, lambda c: sum(getattr(c, f.name) for f in dataclasses.fields(c)), set_scale),
    "slots, asdict": (Slotted, lambda c: dataclasses.asdict(c)["scale"], set_scale),
    "slots, compared": (Slotted, lambda c: 1 + (c == Slotted()), set_scale),
    "slots, printed": (Slotted, lambda c: len(repr(c)), set_scale),
    "slots of a class, computed names": (Bare, lambda c: getattr(c, NAME + "le"), set_scale),
    "slots of a class, attrgetter": (Bare, lambda c: operator.attrgetter("scale")(c), set_scale),
    "class, dict": (with_class, lambda c: public(dict(vars(c)).items()), add_to_class),
    "class, unpacked": (with_class, lambda c: public({**vars(c)}.items()), add_to_class),
    "class, names": (with_class, lambda c: sum(getattr(c, n) for n in vars(c) if n[0] != "_"), add_to_class),
    "class, length": (with_class, lambda c: len(vars(c)), add_to_class),
    "class, union": (with_class, lambda c: public((vars(c) | {}).items()), add_to_class),
    "class, dir": (with_class, lambda c: len(dir(c)), add_to_class),
    "cache of a method, changed": (Cached, lambda c: c.settings()[0], lambda c: operator.setitem(c.settings(), 0, 5.0)),
    "cache of a method, cleared": (Cached, lambda c: c.settings()[0], clear_caches),
    "cache of a method, a number": (Cached, lambda c: c.number(), clear_caches),
    "handlers": (object, lambda c: 2 + LOG.hasHandlers(), lambda c: LOG.addHandler(logging.NullHandler())),
    "names of levels": (object, lambda c: len(logging.getLevelName(17)), lambda c: logging.addLevelName(17, "A")),
    "level of a logger": (object, lambda c: 2 + LOG.isEnabledFor(10), lambda c: LOG.setLevel(10)),
    "signature": (
        object,
        lambda c: len(inspect.signature(ten).parameters),
        lambda c: setattr(ten, "__signature__", inspect.Signature([])),
    ),
    "documentation": (object, lambda c: len(inspect.getdoc(ten)), lambda c: setattr(ten, "__doc__", "eleven")),
    "cause of an error": (
        lambda: ValueError("kept"),
        lambda c: 2 + (c.__cause__ is None),
        lambda c: setattr(c, "__cause__", KeyError()),
    ),
    "element of a storage": (lambda: torch.tensor([2.0, 3.0]), lambda t: t.untyped_storage()[3], lambda t: t.fill_(5)),
    "bytes of a storage": (
        lambda: torch.tensor([2.0, 3.0]),
        lambda t: sum(t.untyped_storage().tolist()),
        lambda t: t.fill_(5),
    ),
    "shared memory": (lambda: torch.tensor([2.0]), lambda t: 2 + t.is_shared(), lambda t: t.share_memory_()),
}


@pytest.fixture(autouse=True)
def restored():
    yield
    LOG.handlers.clear()
    LOG.setLevel(0)
    logging._levelToName.pop(17, None)
    vars(ten).pop("__signature__", None)
    ten.__doc__ = "ten"
    clear_caches(Cached())


@pytest.mark.parametrize("case", CASES)
def test_a_change_between_calls_is_seen(case):
    make, read, change = CASES[case]
    holder = make()
    step = torch_ltc.compile(lambda x: x * read(holder))
    x = torch.ones(()).to("ltc")
    for i in range(9):
        if i == 6:
            change(holder)
        assert step(x).item() == read(holder), (i, step.explain())


def test_a_partial_that_is_the_step():
    step = functools.partial(lambda settings, x, k: x * k + settings[0], [1.0], k=2.0)
    run, x = torch_ltc.compile(step), torch.ones(()).to("ltc")
    for i in range(18):
        if i == 6:
            step.keywords["k"] = 5.0
        if i == 12:
            step.args[0][0] = 3.0
        assert run(x).item() == (2.0 if i < 6 else 5.0) + (1.0 if i < 12 else 3.0)
    assert run.counts[0] > 5, run.explain()


def test_a_write_to_the_storage_of_a_cpu_tensor():
    t = torch.ones(2)

    def body(x):
        t.untyped_storage().fill_(0)
        return x * 2

    step = torch_ltc.compile(body)
    for _ in range(6):
        t.fill_(1.0)
        step(torch.ones(()).to("ltc"))
        assert t.tolist() == [0.0, 0.0]
    assert "the memory of a CPU tensor" in step.explain()


@pytest.mark.parametrize("is_argument", [True, False])
def test_an_older_tensor_that_becomes_a_gradient_is_that_tensor(is_argument):
    w, kept = torch.zeros(2).to("ltc").requires_grad_(), torch.ones(2).to("ltc")

    def body(g):
        w.grad = g if is_argument else kept
        return g.sum()

    step = torch_ltc.compile(body)
    for i in range(8):
        g = torch.full((2,), float(i)).to("ltc")
        step(g)
        assert w.grad is (g if is_argument else kept)


MATMUL, INVARIANTS = torch.backends.cuda.matmul, torch.sparse.check_sparse_tensor_invariants


@pytest.mark.parametrize(
    "read,turn",
    [
        (
            lambda: MATMUL.allow_bf16_reduced_precision_reduction,
            lambda on: setattr(MATMUL, "allow_bf16_reduced_precision_reduction", on),
        ),
        (INVARIANTS.is_enabled, lambda on: INVARIANTS.enable() if on else INVARIANTS.disable()),
    ],
    ids=["reduced precision", "sparse invariants"],
)
def test_settings_of_torch(read, turn):
    was = read()
    step, x = torch_ltc.compile(lambda x: x * (2 if read() else 3)), torch.ones(()).to("ltc")
    try:
        for i in range(16):
            turn(i // 6 == 1)
            assert step(x).item() == (2.0 if i // 6 == 1 else 3.0)
    finally:
        turn(was)
    assert step.counts[0] > 3, step.explain()


@pytest.mark.parametrize(
    "read",
    [torch.ltc.memory_allocated, lambda: torch.ltc.memory_stats()["allocated_bytes.all.current"]],
    ids=["allocated", "statistics"],
)
def test_what_the_device_holds(read):
    step, x, held = torch_ltc.compile(lambda x: x * (2 if read() > 50_000_000 else 1)), torch.ones(()).to("ltc"), []
    for i in range(9):
        if i == 6:
            held.append(torch.zeros(20_000_000).to("ltc"))
            torch_ltc.mark_step(wait=True)
        assert step(x).item() == (2.0 if i >= 6 else 1.0)
    assert "it calls _accelerator_getDeviceStats()" in step.explain()


def test_a_module_whose_name_begins_like_that_of_a_quiet_one():
    """Named tuples have a `__new__` in no module but `namedtuple_...`."""
    tools = types.ModuleType("namedtuple_tools")
    exec("K = 2.0\ndef scaled(x): return x * K", vars(tools))
    pair = collections.namedtuple("Pair", "a b")
    step, x = torch_ltc.compile(lambda x: tools.scaled(pair(x, 1).a)), torch.ones(()).to("ltc")
    for i in range(9):
        tools.K = 5.0 if i >= 6 else 2.0
        assert step(x).item() == tools.K
    assert step.counts[0] > 3, step.explain()
