"""Steps that put something in the place of something else, use what they find there by then, and put it back: what they
found in between is watched like all they read, and what they did to it is done by replays."""

import contextlib
import operator
import textwrap
from collections import defaultdict, deque
from types import SimpleNamespace

import pytest
import torch
import torch_ltc


class Config:
    """What steps find: a number that changes, and a count of theirs."""

    def __init__(self, n):
        self.n = n
        self.seen = 0

    def make(self):
        return []


class Slotted:
    __slots__ = ("config",)
    __match_args__ = ("config",)


class Stack(list):
    def load(self, items):
        super().__init__(items)


CASES = {}


def case(make):
    """A case: `make(first, second)` returns a function that puts one or the other in its place, how code comes to what
    is there, as text, and the names in this text."""
    CASES[make.__name__] = make
    return make


@case
def a_class_attribute_by_a_computed_name(first, second):
    class Trainer:
        train, phase = first, "train"

    trainer = Trainer()

    def put(x):
        Trainer.train = x

    return put, "getattr(trainer, trainer.phase)", locals()


def slotted(first):
    holder = Slotted()

    def put(x):
        holder.config = x

    put(first)
    return holder, put


@case
def a_slot_by_a_computed_name(first, second):
    holder, put = slotted(first)
    return put, "getattr(holder, names[0])", {"holder": holder, "names": ["config"]}


@case
def a_slot_by_a_getter(first, second):
    holder, put = slotted(first)
    return put, "next(map(attrgetter('config'), [holder]))", {"holder": holder, "attrgetter": operator.attrgetter}


@case
def a_slot_by_its_position_in_a_pattern(first, second):
    holder, put = slotted(first)
    return put, "config", {"holder": holder, "Slotted": Slotted}


@case
def an_attribute_of_a_base_by_super(first, second):
    class Parent:
        config = first

    class Child(Parent):
        @property
        def config(self):
            return super().config.n

        @config.setter
        def config(self, _):
            super().config.seen += 1

    def put(x):
        Parent.config = x

    return put, "child.config", {"child": Child()}


@case
def a_list_that_begins_anew(first, second):
    stack = Stack([first])
    return lambda x: stack.load([x]), "stack[0]", locals()


@case
def a_deque_that_begins_anew(first, second):
    queue = deque([first])
    return lambda x: queue.__init__([x]), "queue[0]", locals()


@case
def a_namespace_that_begins_anew(first, second):
    space = SimpleNamespace(config=first)
    return lambda x: space.__init__(config=x), "space.config", locals()


@case
def defaults_of_a_function(first, second):
    def function(config=first):
        return config

    defaults = {id(first): (first,), id(second): (second,)}
    function.__defaults__ = defaults[id(first)]

    def put(x):
        function.__defaults__ = defaults[id(x)]

    return put, "function.__defaults__[0]", locals()


@case
def the_factory_of_a_dict(first, second):
    factories = {id(first): first.make, id(second): second.make}
    found = defaultdict(factories[id(first)])

    def put(x):
        found.default_factory = factories[id(x)]

    return put, "found.default_factory.__self__", locals()


@case
def the_class_of_an_object(first, second):
    class Closed:
        config = first

    class Open(Closed):
        config = second

    connection = Closed()

    def put(x):
        connection.__class__ = Closed if x is first else Open

    return put, "connection.config", locals()


@case
def the_bases_of_a_class(first, second):
    class One:
        config = first

    class Other:
        config = second

    class Middle(One):
        pass

    last = type("Last", (Middle,), {})()

    def put(x):
        Middle.__bases__ = (One,) if x is first else (Other,)

    return put, "last.config", locals()


@contextlib.contextmanager
def switched(enter, leave):
    enter()
    try:
        yield
    finally:
        leave()


#: How the step uses what it finds: its number, by a function or by itself, and its count.
USES = {
    "read": """
def used(x):
    {within}
        return x * {found}.n

def step(x):
    y = used(x)
    with switched(enter, leave):
        return y + used(x)
""",
    "read inline": """
def step(x):
    {within}
        y = x * {found}.n
    enter()
    {within}
        y = y + x * {found}.n
    leave()
    return y
""",
    "counted": """
def used(x):
    {within}
        {found}.seen += 1
        return x * {found}.n

def step(x):
    y = used(x)
    with switched(enter, leave):
        return y + used(x)
""",
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", CASES)
def test_what_is_there_for_a_while_is_watched(name, use):
    def run(compile):
        first, second = Config(1.0), Config(2.0)
        put, found, names = CASES[name](first, second)
        text = USES[use].format(
            found=found, within="if True:" if found != "config" else "match holder:\n      case Slotted(config):"
        )
        if "child" in names:  # its property says the number, and counts
            text = text.replace("child.config.n", "child.config").replace("child.config.seen += 1", "child.config = 0")
        # The step itself has neither at hand.
        names = {name: x for name, x in names.items() if x is not first and x is not second}
        names |= {"enter": lambda: put(second), "leave": lambda: put(first), "switched": switched}
        made = {}
        exec(f"def make({', '.join(names)}):\n{textwrap.indent(text, '    ')}\n    return step", made)
        step, seen = compile(made["make"](**names)), []
        for i in range(10):
            if i == 6:
                second.n = 5.0
            seen.append((step(torch.full((1,), float(i)).to("ltc")).item(), first.seen, second.seen))
        return seen

    assert run(torch_ltc.compile) == run(lambda step: step)
