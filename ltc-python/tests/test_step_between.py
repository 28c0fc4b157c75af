"""What a step puts somewhere and takes away again before it ends: the older objects that are found there meanwhile are
watched, and what is done to them is done by replays, or the step is recorded. Each case is changed from outside."""

import collections
import contextlib
import contextvars
import dataclasses
import threading

import pytest
import torch
import torch_ltc
from steps import Held, compare_with_state
from torch import nn
from torch_ltc import _survey

CASES = {}


class Config(Held):
    """What a step finds somewhere for a while."""


def case(function):
    """A case: a function that is given the state and returns the step. `held.config.n` is changed from outside."""
    CASES[function.__name__] = function
    return function


def used(held, x):
    return x * held.now_used.n


@case
def set_by_a_function_and_taken_away(held):
    def begin():
        held.cur = held.config

    def step(x):
        begin()
        y = x * held.cur.n
        held.cur = None
        return y

    return step


@case
def one_after_another(held):
    def step(x):
        y = 0
        for config in (Config(n=1.0), held.config):
            held.now_used = config
            y = y + used(held, x)
        held.now_used = None
        return y

    return step


@case
def effects_one_after_another(held):
    held.others = [Config(n=1.0, k=0, l=[]), held.config]

    def use(x):
        held.cur.k += 1
        held.cur.l.append(x.sum())
        return x * held.cur.n

    def step(x):
        y = 0
        for config in held.others:
            held.cur = config
            y = y + use(x)
        held.cur = None
        return y

    return step


@case
def a_stack(held):
    held.stack = []

    class Scope:
        def __enter__(self):
            held.stack.append(held.config)

        def __exit__(self, *_):
            held.stack.pop()

    scope = Scope()

    def step(x):
        with scope:
            return x * held.stack[-1].n

    return step


@case
def a_context_manager_of_a_generator(held):
    held.cur = None

    @contextlib.contextmanager
    def using(config):
        before, held.cur = held.cur, config
        try:
            yield
        finally:
            held.cur = before

    def step(x):
        with using(held.config):
            held.cur.k = held.cur.k + 1
            return x * held.cur.n

    return step


@case
def an_entry_and_a_deque(held):
    held.by_name, queue = {}, collections.deque()

    def begin():
        held.by_name["cur"] = held.config
        queue.append(held.config)

    def step(x):
        begin()
        return x * held.by_name.pop("cur").n + queue.pop().n

    return step


@case
def a_variable_of_a_context_and_of_a_thread(held):
    current, local = contextvars.ContextVar("current", default=None), threading.local()

    def begin():
        local.cur = held.config
        return current.set(held.config)

    def step(x):
        token = begin()
        y = x * current.get().n + local.cur.n
        current.reset(token)
        local.cur = None
        return y

    return step


@case
def attributes_of_classes_and_modules(held):
    class Current:
        cur = None

    net = nn.Identity()
    net.cur = None

    def begin():
        Current.cur = net.cur = held.config

    def step(x):
        begin()
        y = x * Current.cur.n + net.cur.n
        Current.cur = net.cur = None
        return y

    return step


@case
def a_variable_of_the_function_around(held):
    def step(x):
        cur = None

        def begin():
            nonlocal cur
            cur = held.config

        begin()
        y = x * cur.n
        cur = None
        return y

    return step


@case
def objects_without_a_variable(held):
    class Box:
        def __init__(self):
            self.config = held.config

    @dataclasses.dataclass
    class Made:
        config: object = dataclasses.field(default_factory=lambda: held.config)

    return lambda x: x * Box().config.n + Made().config.n


@case
def a_new_list_that_a_function_fills(held):
    def fill(found):
        found.extend([held.config, held.config])

    def step(x):
        found, y = [], x
        fill(found)
        while found:
            y = y + found.pop().n
        return y

    return step


@case
def an_exception(held):
    def fails():
        raise KeyError(held.config)

    def step(x):
        try:
            fails()
        except KeyError as error:
            return x * error.args[0].n

    return step


@case
def a_generator_to_which_something_is_sent(held):
    def using(x):
        while True:
            x = x * (yield x).n

    def step(x):
        steps = using(x)
        next(steps)
        return steps.send(held.config)

    return step


@case
def a_tensor_that_is_written(held):
    def begin():
        held.cur = held.config

    def step(x):
        begin()
        held.cur.w.add_(x)
        y = held.cur.w * held.cur.n
        held.cur = None
        return y

    return step


@case
def an_attribute_that_was_missing(held):
    def step(x):
        held.config.seen = 5
        return x * held.config.seen

    return step


@pytest.mark.parametrize("name", CASES)
def test_between(name):
    def make(held):
        held.config = Config(n=1.0, k=0, l=[], w=torch.zeros(3, device="ltc"))
        return CASES[name](held)

    def change(held):
        held.config.n += 1.0
        held.config.w = torch.ones(3, device="ltc")
        vars(held.config).pop("seen", None)

    compare_with_state(make, 0, change)


def test_a_step_with_a_scope_is_replayed():
    held = Held(cur=None, config=Config(n=2.0))

    @contextlib.contextmanager
    def using(config):
        before, held.cur = held.cur, config
        try:
            yield
        finally:
            held.cur = before

    @torch_ltc.compile
    def step(x):
        with using(held.config):
            return x * held.cur.n

    for _ in range(8):
        step(torch.ones(3, device="ltc"))
    assert step.counts[0] >= 4, step.explain()
    held.config.n = 3.0
    assert step(torch.ones(3, device="ltc")).tolist() == [3.0] * 3


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("where", [0, 1])
def test_a_mask_of_another_size_is_an_error(size, where):
    mask = torch.arange(size) % 2 == 0

    @torch_ltc.compile
    def step(x, mask):
        try:
            return x[(slice(None),) * where + (mask,)].sum()
        except IndexError:
            return x.sum() * 100

    x = torch.arange(12.0).reshape(4, 3)
    expected = x[(slice(None),) * where + (mask,)].sum() if size == x.shape[where] else x.sum() * 100
    for _ in range(6):
        assert step(x.to("ltc"), mask.to("ltc")).item() == expected.item()


def test_what_did_not_change_is_not_looked_at_again(monkeypatch):
    held = Held(now_used=None, configs=[Config(n=1.0) for _ in range(200)])
    looks = []
    reach = _survey.Survey._reach
    monkeypatch.setattr(_survey.Survey, "_reach", lambda self, x, *rest: looks.append(type(x)) or reach(self, x, *rest))

    @torch_ltc.compile
    def step(x):
        for config in held.configs:
            held.now_used = config
            x = used(held, x)
        held.now_used = None
        return x

    for _ in range(6):
        step(torch.ones(3, device="ltc"))
    assert step.counts[0] >= 3, step.explain()
    # Three captured calls, in which two functions look at 200 objects each.
    assert 1200 <= looks.count(Config) < 4000, len(looks)
