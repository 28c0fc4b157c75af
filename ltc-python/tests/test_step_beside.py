"""What a step does that leaves no trace in what it reads, and what a capture must not do to the program."""

import _thread
import atexit
import collections
import dataclasses
import functools
import itertools
import threading
import time
import types
import warnings
import weakref
from unittest import mock

import pytest
import torch
import torch_ltc


class Other:
    pass


HELD = Other()


Pair = collections.namedtuple("Pair", "scale other", defaults=(0.0,))


def compiled_six_times(step, before, after):
    """Calls a compiled step; nothing that it reads differs before and after a call."""
    compiled = torch_ltc.compile(step)
    for _ in range(6):
        before()
        compiled(torch.ones(3, device="ltc"))
        after()


def test_threads_that_a_step_starts():
    gate, ran, threads = threading.Event(), [], []

    def late():
        gate.wait()
        ran.append(1)

    def step(x):
        _thread.start_new_thread(late, ())
        return x * 2

    def after():
        gate.set()
        deadline = time.monotonic() + 5
        while len(ran) == len(threads) and time.monotonic() < deadline:
            time.sleep(0.001)
        threads.append(len(ran))

    compiled_six_times(step, gate.clear, after)
    assert threads == [1, 2, 3, 4, 5, 6]


def test_functions_that_a_step_registers_for_the_exit():
    def step(x):
        atexit.register(len, ())
        return x * 2

    counts = [atexit._ncallbacks()]
    compiled_six_times(step, lambda: None, lambda: counts.append(atexit._ncallbacks()))
    atexit.unregister(len)
    assert [after - before for before, after in itertools.pairwise(counts)] == [1] * 6


def test_filters_of_warnings_that_a_step_changes():
    def step(x):
        warnings.simplefilter("ignore", category=UnicodeWarning)
        return x * 2

    actions = []
    with warnings.catch_warnings():
        compiled_six_times(step, warnings.resetwarnings, lambda: actions.append([f[0] for f in warnings.filters]))
    assert actions == [["ignore"]] * 6


def test_counts_of_weak_references():
    step = torch_ltc.compile(lambda x: x * weakref.getweakrefcount(HELD))
    counts = [2, 2, 2, 2, 3, 4, 5]
    for count in counts:
        kept = [weakref.ref(HELD, lambda _: None) for _ in range(count)]
        assert step(torch.ones(3, device="ltc")).tolist() == [float(weakref.getweakrefcount(HELD))] * 3
        assert len(kept) == count


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


def test_what_is_appended_and_taken_is_no_obstacle():
    stack = collections.deque([1])

    def step(x):
        stack.append(2)
        return x * stack.pop()

    compiled = torch_ltc.compile(step)
    for _ in range(5):
        assert compiled(torch.ones(3, device="ltc")).tolist() == [2.0] * 3
    assert compiled.counts[0] > 0, compiled.explain()


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


@pytest.mark.parametrize("kind", [list, collections.deque])
def test_what_another_thread_takes_is_appended(kind):
    queue, taken, ends = kind(), [], threading.Event()

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


def test_variables_as_a_dict_stay_what_they_are():
    def settings():
        scale, shift = 2.0, 1.0  # noqa: F841
        return vars()

    def kept():
        scale = 2.0
        known = vars()
        yield known["scale"]
        yield known["scale"] + scale

    def step(x):
        found = settings()
        return x * found["scale"] * sum(kept()) + found["shift"]

    compiled = torch_ltc.compile(step)
    for _ in range(5):
        assert compiled(torch.ones(3, device="ltc")).tolist() == [13.0] * 3


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


class Counted:
    """Counts how often the program's own code is asked for what a container holds."""

    asked = 0

    def __iter__(self):
        Counted.asked += 1
        return super().__iter__()

    def __len__(self):
        Counted.asked += 1
        return super().__len__()

    def keys(self):
        Counted.asked += 1
        return super().keys()

    def values(self):
        Counted.asked += 1
        return super().values()


CONTAINERS = [
    type("Counted", (Counted, base), {})([(1, 2.0)]) for base in (list, dict, set, frozenset, tuple, collections.deque)
]


@pytest.mark.parametrize("held", CONTAINERS, ids=lambda x: type(x).__mro__[2].__name__)
def test_containers_of_the_program_are_not_asked(held):
    holder = types.SimpleNamespace(held=held)
    step = torch_ltc.compile(lambda x: x * (2.0 if holder.held is not None else 3.0))
    Counted.asked = 0
    for _ in range(5):
        step(torch.ones(3, device="ltc"))
    assert step.counts[0] > 0, step.explain()
    assert Counted.asked == 0


class Answers(dict):
    __getattr__ = dict.__getitem__


def test_results_that_answer_for_attributes_themselves():
    step = torch_ltc.compile(lambda x: Answers(loss=x * 2))
    for _ in range(5):
        assert step(torch.ones(3, device="ltc")).loss.tolist() == [2.0] * 3


class Closed:
    __slots__ = ("__scale",)

    def __init__(self, scale):
        self.__scale = scale

    def __getattr__(self, name):
        raise KeyError(name)

    def get(self):
        return self.__scale


def test_arguments_that_answer_for_attributes_themselves():
    step = torch_ltc.compile(lambda x, holder: x * holder.get())
    for scale in (2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 2.0):
        assert step(torch.ones(3, device="ltc"), Closed(scale)).tolist() == [scale] * 3
    changing = Closed(2.0)
    for scale in (2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 2.0):
        changing.__init__(scale)
        assert step(torch.ones(3, device="ltc"), changing).tolist() == [scale] * 3


class Proxy:
    __slots__ = ("_of",)

    def __init__(self, of):
        object.__setattr__(self, "_of", of)

    @property
    def __class__(self):
        return type(self._of)

    @property
    def __dict__(self):
        return vars(self._of)

    def __getattr__(self, name):
        return getattr(self._of, name)

    def __setattr__(self, name, value):
        setattr(self._of, name, value)


class Feigns(types.SimpleNamespace):
    says = torch.Size

    @property
    def __class__(self):
        return self.says


STAND_INS = {
    "mock": lambda: mock.Mock(spec=torch.Tensor),
    "magic": lambda: mock.MagicMock(spec=torch.Tensor),
    "proxy": lambda: Proxy(types.SimpleNamespace()),
    "a shape": Feigns,
    "a reference": lambda: type("Feigns", (Feigns,), {"says": weakref.ref})(),
}


@pytest.mark.parametrize("name", STAND_INS)
def test_what_only_says_that_it_is_something(name):
    stand_in = STAND_INS[name]()
    stand_in.scale = 2.0
    holder = types.SimpleNamespace(part=stand_in)
    reads = torch_ltc.compile(lambda x: x * holder.part.scale)
    given = torch_ltc.compile(lambda x, part: x * part.scale)
    returns = torch_ltc.compile(lambda x: (x * 2, holder.part))
    x = torch.ones(3, device="ltc")
    for scale in (2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 2.0):
        stand_in.scale = scale
        assert reads(x).tolist() == given(x, stand_in).tolist() == [scale] * 3
        assert returns(x)[1] is stand_in
