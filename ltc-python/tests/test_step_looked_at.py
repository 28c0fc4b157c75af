"""What a step reaches is looked at, whichever way leads there: through views and iterators, by computed names, through
dicts that change while the step runs, and by the exceptions that it catches."""

import contextlib
import functools
import itertools
import sys
import types
from collections import OrderedDict, deque
from contextvars import ContextVar

import pytest
import torch
import torch_ltc
from steps import Held, compare_with_state

#: The steps, by name, with how many calls have to be replayed at least (`None` for none at all).
CASES = {}


class Config:
    """What steps find somewhere, and what changes between their calls."""

    def __init__(self, n=2.0):
        self.n = n
        self.on = True
        self.seen = 0


class Phase:
    """What steps make, and what leads to a configuration."""

    config = None

    def __init__(self, config=None):
        if config is not None:
            self.config = config


class AttrDict(dict):
    def __init__(self, **entries):
        super().__init__(entries)
        self.__dict__ = self


class EasyDict(dict):
    __getattr__, __setattr__ = dict.__getitem__, dict.__setitem__


class Apart:
    """An object that keeps its attributes in a dict with a class of the program's."""

    def __init__(self, **entries):
        self.__dict__ = type("Entries", (dict,), {})(entries)


class Stack(list):
    push, take = list.append, list.pop


class Registry(dict):
    put = dict.__setitem__


class Stop(Exception):
    pass


def case(least=4):
    """A case: a function that is given the state, puts what changes it under `poke` there, and returns the step."""

    def note(function):
        CASES[function.__name__] = (function, least)
        return function

    return note


def of_each(**expressions):
    """Cases of steps that multiply by an expression with `od`, `dq` or `ms`, which hold three configurations."""
    for name, expression in expressions.items():

        def make(held, expression=expression):
            ms = [Config(2.0), Config(3.0), Config(4.0)]
            scope = {"od": OrderedDict(zip("abc", ms)), "dq": deque(ms), "ms": ms, "itertools": itertools}
            turns = itertools.count()

            def poke():
                at = next(turns)
                ms[at % 3].n += 1
                ms[at % 2].on ^= True

            held.poke = poke
            return eval(f"lambda x: x * {expression}", scope)

        CASES[name] = (make, 4)


of_each(
    values_of_an_ordered_dict="sum([m.n for m in od.values()])",
    items_of_an_ordered_dict="sum([m.n for _, m in od.items()])",
    a_deque="sum([m.n for m in dq])",
    a_list_backwards="sum([m.n for m in reversed(ms)])",
    a_slice_by_itertools="sum([m.n for m in itertools.islice(ms, 3)])",
    pairs="sum([a.n * b.n for a, b in itertools.pairwise(ms)])",
    products="sum([a.n * b.n for a, b in itertools.product(ms, ms)])",
    groups="sum([m.n for _, group in itertools.groupby(ms, bool) for m in group])",
    zipped_views="sum([w * m.n for w, m in zip((1, 2, 3), od.values())])",
    a_generator_over_a_deque="sum(m.n for m in dq if m.on)",
    the_first_of_a_deque="next((m.n for m in dq if m.on), 1.0)",
)


@case()
def a_helper_that_is_given_a_view(held):
    meters = OrderedDict(a=Config(), b=Config(), c=Config())

    def reset(them):
        for m in them:
            m.n = 0.0
            m.seen += 1

    def step(x):
        reset(meters.values())
        return x + 1

    def poke():
        held.found = [(m.n, m.seen) for m in meters.values()]
        for m in meters.values():
            m.n = 5.0

    held.poke = poke
    return step


@case(None)
def lists_that_a_helper_appends_to(held):
    meters = deque([Held(h=[]), Held(h=[]), Held(h=[])])
    held.h = [m.h for m in meters]

    def extend(them):
        for m in them:
            m.h.append(1.0)
        return len(meters[0].h)

    held.poke = lambda: None
    return lambda x: x * extend(iter(meters))


def of_names(kind, expression):
    """A case of a step that reads attributes of an object of a kind by names that it computes."""

    def make(held):
        module = types.ModuleType("operations")

        @functools.lru_cache
        def cached():
            pass

        def function():
            pass

        kinds = {"module": module, "partial": functools.partial(len), "cached": cached, "function": function}
        it = torch.ones(3, device="ltc") if kind == "tensor" else kinds[kind]
        if kind not in ("tensor", "function"):
            it.gain, it.act = 2.0, lambda x: x * 2
        scope = {"it": it}
        exec(f"class Trainer(Held):\n  def step(self, x): return {expression}", {"Held": Held}, scope)
        turns = itertools.count(5)

        def poke():
            it.gain = gain = next(turns)
            if kind not in ("tensor", "function"):
                it.act = lambda x: x * gain

        held.poke = poke
        if kind in ("tensor", "function"):
            return eval(f"lambda x: {expression}", {"it": it, "self": Held(name="gain")})
        return scope["Trainer"](it=it, name="gain", which="act").step

    CASES[f"{kind} by {expression}"] = (make, 4)


for which in ("module", "partial", "cached"):
    of_names(which, "x * getattr(self.it, self.name)")
of_names("module", "getattr(self.it, self.which)(x)")
of_names("module", "x * vars(self.it)[self.name]")
of_names("module", "x * self.it.__dict__[self.name]")
for which in ("tensor", "function"):
    of_names(which, "x * getattr(it, self.name, 1.0)")
    of_names(which, "x * sum(vars(it).values(), 1.0)")
    of_names(which, "x * (1 + len(it.__dict__))")


def of_a_place(name, begin, read, end="pass", make_holder=lambda: Held(cur=None), sets=True):
    """A case of a step in which a function puts a configuration somewhere (`holder`), the step reads it there, and
    another function takes it away."""

    def make(held):
        src, turns = [Config(2.0), Config(3.0)], itertools.count(1)
        scope = {"src": src, "Phase": Phase}
        exec(
            f"def make(holder, d):\n  def begin(i):\n    {begin}\n  def end():\n    {end}\n"
            f"  def step(x):\n    begin(0)\n    y = x * {read}.n\n    begin(1)\n    y = y * {read}.n\n"
            f"    {f'{read}.seen = {read}.n' if sets else ''}\n    end()\n    return y\n  return step",
            scope,
        )

        def poke():
            held.found = [m.seen for m in src]
            src[next(turns) % 2].n += 1

        held.poke = poke
        holder = make_holder()
        return scope["make"](holder, getattr(holder, "__dict__", None))

    CASES[name] = (make, 4)


of_a_place(
    "an entry of a dict", "holder.ctx['cur'] = src[i]", "holder.ctx['cur']", make_holder=lambda: Held(ctx={"cur": None})
)
of_a_place(
    "an entry of a module's dict",
    "holder.ctx['cur'] = src[i]",
    "holder.ctx['cur']",
    "holder.ctx['cur'] = None",
    lambda: vars(module := types.ModuleType("state")).update(ctx={"cur": None}) or module,
)
of_a_place(
    "a simple namespace", "holder.cur = src[i]", "holder.cur", make_holder=lambda: types.SimpleNamespace(cur=None)
)
for kind in (AttrDict, EasyDict, Apart):
    of_a_place(
        f"an {kind.__name__}", "holder.cur = src[i]", "holder.cur", "holder.cur = None", lambda k=kind: k(cur=None)
    )
of_a_place("a new object", "holder.cur = Phase(src[i])", "holder.cur.config", "holder.cur = None")
of_a_place(
    "a new object that is filled later",
    "holder.cur = Phase(); holder.cur.config = src[i]",
    "holder.cur.config",
    "holder.cur = None",
)
of_a_place("a tensor", "holder.cur = src[i]", "holder.cur", "del holder.cur", lambda: torch.ones(2, device="ltc"))
of_a_place("a function", "holder.cur = src[i]", "holder.cur", "del holder.cur", lambda: lambda: None, sets=False)
of_a_place("a namespace by its dict", "d['cur'] = src[i]", "holder.cur", "d['cur'] = None")
of_a_place("a dict by its namespace", "holder.cur = src[i]", "holder.__dict__['cur']", "holder.cur = None", sets=False)
of_a_place("a method of a class of lists", "holder.push(src[i])", "holder[-1]", "holder.take(); holder.take()", Stack)
of_a_place(
    "a method of dicts",
    "holder.put('cur', src[i])",
    "holder['cur']",
    "holder.put('cur', None)",
    lambda: Registry(cur=1),
)


def with_methods():
    stack = []
    return types.SimpleNamespace(stack=stack, push=stack.append, take=stack.pop)


of_a_place("a stored method", "holder.push(src[i])", "holder.stack[-1]", "holder.take(); holder.take()", with_methods)


@case()
def what_a_variable_of_a_context_holds(held):
    variable, src = ContextVar("variable", default=None), Config()
    holder = types.SimpleNamespace(put=variable.set, back=variable.reset, token=None)

    def begin():
        holder.token = holder.put(src)

    def end():
        holder.back(holder.token)
        holder.token = None

    def step(x):
        begin()
        y = x * variable.get().n
        end()
        return y

    held.poke = lambda: setattr(src, "n", src.n + 1)
    return step


@case(None)
def an_error_that_comes_to_a_context_manager(held):
    src = Config()

    @contextlib.contextmanager
    def falling_back(state):
        try:
            yield
        except Stop as e:
            state["n"] = e.args[0].n

    def forward(x):
        raise Stop(src)

    def step(x):
        state = {"n": 1.0}
        with falling_back(state):
            forward(x)
        return x * state["n"]

    held.poke = lambda: setattr(src, "n", src.n + 1)
    return step


class Numbers:
    """An iterator of the program's."""

    def __init__(self):
        self.left = 3

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left

    def __iter__(self):
        return self


def of_errors(body, least):
    """A case of a step that looks at an exception, in which others occur that no code of it sees, or this one."""

    def make(held):
        src = Config()

        def gen():
            yield 1
            raise Stop(src)

        class Properties:
            @property
            def raising(self):
                raise Stop(src)

            @property
            def missing(self):
                raise AttributeError("missing")

        scope = {"gen": gen, "Properties": Properties, "Stop": Stop, "Numbers": Numbers}
        exec(
            f"def step(x):\n  k = 1.0\n  g, p = gen(), Properties()\n  try:\n    {body}\n"
            "  except Stop as e:\n    k = e.args[0].n\n  return x * k",
            scope,
        )
        held.poke = lambda: setattr(src, "n", src.n + 1)
        return scope["step"]

    CASES[f"an error around {body}"] = (make, least)


for text in ("for _ in g: pass", "next(g); next(g)", "getattr(p, 'raising', None)", "hasattr(p, 'raising')"):
    of_errors(text, None)
for text in ("for i in Numbers(): k += i", "k += sum(Numbers())", "k += next(Numbers(), 0)"):
    of_errors(text, 4)
for text in ("k += getattr(p, 'missing', 2)", "k += hasattr(p, 'missing')"):
    of_errors(text, 4)


@pytest.mark.parametrize("name", CASES)
def test_what_a_step_comes_to_is_looked_at(name):
    make, least = CASES[name]
    compare_with_state(make, least, lambda held: held.poke())


def test_a_list_that_is_reached_only_by_its_method_is_left_as_it_should_be():
    def make(held):
        held.log = []
        append = functools.partial(held.log.append, 1.0)
        held.poke = lambda: None

        def step(x):
            append()
            return x + 1

        return step

    compare_with_state(make, 0, lambda held: held.poke())


def test_a_step_is_not_traced_afterwards():
    def failing():
        raise Stop(1.0)

    @torch_ltc.compile
    def step(x):
        try:
            failing()
        except Stop as e:
            return x * e.args[0]

    for _ in range(4):
        step(torch.ones(3, device="ltc"))
        assert sys.gettrace() is None
    assert "looks at an exception" in step.explain()
