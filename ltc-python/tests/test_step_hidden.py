"""What a compiled step reads by C code, or by Python code that is not looked at: parts of slices, generic aliases and
properties, attributes by getters and formats of what calls return, and state that C functions keep. Each case runs
recorded and compiled, is changed from outside now and then, and has to show the same after each call."""

import abc
import builtins
import codecs
import datetime
import enum
import functools
import inspect
import logging
import operator
import random
import re
import threading
import types
import typing
import weakref
from operator import attrgetter as made_getter

import numpy
import pytest
import torch
import torch_ltc
from steps import Held

CASES = {}
GET_RATE = operator.attrgetter("rate")
GETTERS = [GET_RATE]
BY_NAME = {"rate": GET_RATE}
SHOWS = "{0.rate}"
G, V = getattr, vars
GLOBAL = Held(rate=1)
LIST, DICT = [GLOBAL], {"a": GLOBAL}
FIELD = ["rate"]
NAMESPACE = globals()
COUNT = 1


class Text(str):
    """A string of another class."""


class Zone(datetime.tzinfo):
    rate = 1


class Bound:
    rate = 1


class Base:
    rate = 1


class Derived(Base):
    rate = 5


class Point:
    __match_args__ = ("rate",)


class Generic(typing.Generic[typing.TypeVar("Parameter")]):
    rate = 1


ALIAS = Generic[Bound]


def found():
    return GLOBAL


def given():
    """A function with attributes."""


def both():
    return Held(thing=GLOBAL, get=GET_RATE)


def faster(held):
    """The change that most cases see."""
    held.thing.rate += 1


def case(least=None, change=faster):
    """A case: a function that is given an object for the state and returns the step. `least`: how many of the calls
    have to be replayed; without it, the step may also be refused. `change` is called after every seventh call."""

    def add(function):
        CASES[function.__name__] = (function, least, change)
        return function

    return add


def reads(name, function, thing=None, least=None, change=faster):
    """A case whose step multiplies by what the function returns. It is given the state, where `thing` is."""

    def make(held):
        held.thing = GLOBAL if thing is None else thing() if isinstance(thing, types.FunctionType) else thing
        held.thing.rate = 1
        return lambda x: x * function(held)

    CASES[name] = (make, least, change)


# ---- what immutable objects hold ----

PART_OF_SLICE = slice(GLOBAL, None)
WHEN = datetime.datetime(2020, 1, 1, tzinfo=Zone())
PROPERTY, STATIC, CLASS_METHOD = property(given), staticmethod(given), classmethod(given)
PROPERTY_OF_GETTER, STATIC_GETTER = property(GET_RATE), staticmethod(GET_RATE)
TYPE = typing.TypeVar("TYPE", bound=Bound)
CONSTRAINED = list[Bound]
UNION = Bound | None

reads("a slice", lambda held: PART_OF_SLICE.start.rate)
reads("an alias", lambda held: CONSTRAINED.__args__[0].rate, Bound)
reads("a union", lambda held: UNION.__args__[0].rate, Bound)
reads("a bound", lambda held: TYPE.__bound__.rate, Bound)
reads("a time zone", lambda held: WHEN.tzinfo.rate, WHEN.tzinfo)
reads("a static method's own", lambda held: STATIC.rate, STATIC)
reads("a static method's function", lambda held: STATIC.__func__.rate, lambda: given)
reads("what a static method wraps", lambda held: STATIC.__wrapped__.rate, lambda: given)
reads("a class method's function", lambda held: CLASS_METHOD.__func__.rate, lambda: given)
reads("a property's function", lambda held: PROPERTY.fget.rate, lambda: given)
reads("a property of a getter", lambda held: PROPERTY_OF_GETTER.__get__(held.thing))
reads("a getter as a static method", lambda held: STATIC_GETTER(held.thing))


def raises(thing):
    raise ValueError(thing)


def variable_of(error):
    return error.__traceback__.tb_next.tb_frame.f_locals["thing"].rate


def by_a_traceback(held):
    try:
        raises(held.thing)
    except ValueError as error:
        return variable_of(error)


def by_arguments_of_an_error(held):
    try:
        raises(held.thing)
    except ValueError as error:
        return argument_of(error)


def argument_of(error):
    return error.args[0].rate


def generates(thing):
    yield 1


def frame_of(generator):
    return generator.gi_frame.f_locals["thing"].rate


def by_a_generator(held):
    generator = generates(held.thing)
    next(generator)
    return frame_of(generator)


reads("a traceback", by_a_traceback)
reads("arguments of an error", by_arguments_of_an_error)
reads("a generator's frame", by_a_generator)


@case(change=lambda held: held.lock.release() if held.lock.locked() else held.lock.acquire())
def text_of_a_lock(held):
    held.lock = threading.Lock()
    return lambda x: x * len(repr(held.lock))


@case(change=lambda held: held.lock.release() if held.lock._is_owned() else held.lock.acquire())
def owner_of_a_lock(held):
    held.lock = threading.RLock()
    return lambda x: x * (2 if held.lock._is_owned() else 1)


@case(change=None)
def a_lock_that_is_taken(held):
    held.lock = threading.Lock()

    def step(x):
        with held.lock:
            return x * 2

    return step


@case(least=0, change=None)
def an_error_that_is_caught(held):
    def step(x):
        try:
            raises(3)
        except ValueError as error:
            logging.getLogger("a").debug("caught", exc_info=error.__traceback__)
            return x * error.args[0]

    return step


# ---- names that are given as strings, and getters ----

reads("a getter of a result", lambda held: GET_RATE(found()))
reads("a getter in a list", lambda held: GETTERS[0](found()))
reads("a getter in a dict", lambda held: BY_NAME["rate"](found()))
reads("a getter as a key", lambda held: max([found()], key=GET_RATE).rate)
reads("a getter that is mapped", lambda held: sum(map(GET_RATE, [found()])))
reads("a getter under another name", lambda held: made_getter("rate")(found()))
reads("a getter and what it is called with", lambda held: types.MethodType(GET_RATE, found())())
reads("both in a result", lambda held: both().get(both().thing))
reads("a getter of a dict", lambda held: operator.attrgetter("__dict__")(found())["rate"])
reads("a cached getter", functools.partial(lambda get, held: get(held.thing), functools.lru_cache(0)(GET_RATE)))
reads("a computed name of a result", lambda held: getattr(found(), FIELD[0]))
reads("a computed name in a dict", lambda held: getattr(DICT["a"], FIELD[0]))
reads("a computed name in a list", lambda held: getattr(LIST[0], FIELD[0]))
reads("a computed part of a name", lambda held: getattr(found(), "ra" + FIELD[0][2:]))
reads("another name for getattr", lambda held: G(found(), "rate"))
reads("another name for vars", lambda held: V(found())["rate"])
reads("a variable for vars", functools.partial(lambda get, held: get(found())["rate"], vars))
reads("a format of a result", lambda held: float(f"{0}{SHOWS.format(found())}"))
reads("a constant format of a result", lambda held: float(f"{found().rate}"))
reads("a format that is mapped", lambda held: float(next(map("{0.rate}".format, [held.thing]))))
reads("a format that is mapped to results", lambda held: float(next(map(SHOWS.format, [found()]))))
reads("a format of a class of one's own", lambda held: float(Text("{0.rate}").format(held.thing)))
reads("an item and an attribute", lambda held: float("{0[a:b].rate}".format({"a:b": held.thing})))  # noqa: F521
reads("a field within a field", lambda held: len("{0:{1.rate}}".format("a", held.thing)))
reads("the state by a method", lambda held: next(map(object.__getstate__, [held.thing]))["rate"])
reads("the dict by its descriptor", lambda held: Held.__dict__["__dict__"].__get__(found())["rate"])


def by_position(held):
    match LIST[0]:
        case Point(rate):
            return rate


def point():
    LIST[0] = Point()
    LIST[0].rate = 1
    return LIST[0]


reads("a pattern", by_position, point)


@case(change=lambda held: setattr(held.thing, "lr-max", getattr(held.thing, "lr-max") + 1))
def a_name_that_is_no_identifier(held):
    held.thing = Held(**{"lr-max": 1})
    return lambda x: x * getattr(held.thing, "lr-max")


@case(change=lambda held: vars(held.thing).pop("mark", None))
def an_attribute_that_is_set_by_a_computed_name(held):
    held.thing, name = Held(), ["mark"]

    def at():
        return held.thing

    def step(x):
        setattr(at(), name[0], 5)
        return x * 2

    return step


@case(least=15)
def a_constant_name(held):
    held.thing, held.other = Held(rate=1, other=object()), Held(rate=2)
    return lambda x: x * getattr(held.thing, "rate", held.other.rate)


# ---- descriptors ----


class Property(property):
    """A property of another class."""


def of_class(name, **attributes):
    """A case of an object of a class with these attributes, of which a step reads `value`."""

    def make(held):
        kind = type("Kind", (), dict(attributes))
        thing = kind()
        object.__setattr__(thing, "rate", 1)
        held.change = lambda: vars(thing).update(rate=thing.rate + 1)
        return lambda x: x * (thing["rate"] if "__getitem__" in attributes else thing.value)

    CASES[name] = (make, None, lambda held: held.change())


of_class("a property of another class", value=Property(GET_RATE))
of_class("an abstract property", value=abc.abstractproperty(GET_RATE))
of_class("a dynamic attribute", value=types.DynamicClassAttribute(GET_RATE))
of_class("an enum's property", value=enum.property(GET_RATE))
of_class("items by attributes", __getitem__=object.__getattribute__)
of_class("attributes by a getter", __getattr__=lambda self, name: GET_RATE(self))


@case(change=lambda held: held.change())
def a_function_of_a_dynamic_attribute(held):
    class Kind:
        value = types.DynamicClassAttribute(lambda self: 1)

    thing, number = Kind(), [1]

    def change():
        number[0] += 1
        result = number[0]
        vars(Kind)["value"].fget = lambda self: result

    held.change = change
    return lambda x: x * thing.value


@case()
def a_method_that_reads_attributes(held):
    class Kind:
        take = object.__getattribute__

    held.thing = thing = Kind()
    thing.rate = 1
    return lambda x: x * thing.take("rate")


@case(least=15)
def a_property_of_a_function(held):
    class Kind:
        value = Property(lambda self: self.rate)

    held.thing = Kind()
    held.thing.rate = 1
    return lambda x: x * held.thing.value


# ---- state of C functions ----


@case(change=lambda held: held.kinds.append(type("Other", (held.kinds[0],), {})))
def subclasses(held):
    held.kinds = [type("Kind", (torch.nn.Module,), {})]
    return lambda x: x * (1 + len(held.kinds[0].__subclasses__()))


@case(change=lambda held: setattr(held.thing, f"a{len(vars(held.thing))}", 1))
def a_directory(held):
    held.thing = Held()

    def at():
        return held.thing

    return lambda x: x * len(at().__dir__())


def answers(count):
    codecs.register_error("of_a_test", lambda error: ("a" * count, error.end))


@case(change=lambda held: (held.counts.append(1), answers(len(held.counts))))
def a_handler_of_errors(held):
    held.counts = [1]
    answers(1)
    return lambda x: x * len("\xe9".encode("ascii", "of_a_test"))


@case(least=25, change=None)
def text_as_bytes(held):
    return lambda x: x * len("abc".encode("ascii", "ignore").decode())


@case(change=lambda held: numpy.seterr(divide="warn" if held.flip.__next__() else "raise"))
def errors_of_numpy(held):
    numpy.seterr(divide="ignore")
    held.flip = iter([0, 1] * 20)
    held.zeros = numpy.zeros(1)

    def step(x):
        try:
            numpy.float64(1.0) / held.zeros[0]
        except FloatingPointError:
            return x * 2
        return x * 1

    return step


@case(change=None)
def a_cached_append(held):
    held.list = []
    append = functools.lru_cache(maxsize=0)(held.list.append)

    def step(x):
        append(1)
        return x * 2

    return step


@case(change=None)
def a_cached_generator_of_numbers(held):
    draw = functools.lru_cache(maxsize=0)(random.Random(0).random)
    return lambda x: x * draw()


@case(change=None)
def an_append_as_a_static_method(held):
    held.list = []
    append = staticmethod(held.list.append)

    def step(x):
        append(1)
        return x * 2

    return step


# ---- objects ----


class Reference(weakref.ref):
    pass


def of_a_module():
    """Is in another module at times."""
    of_a_module.__module__ = "torch"
    return of_a_module


def elsewhere(held):
    held.thing.__module__ = "operator" if held.thing.__module__ == "torch" else "torch"


REFERENCE = Reference(GLOBAL)
SUPER = super(Derived, Derived())

reads("a weak reference's own", lambda held: REFERENCE.rate, REFERENCE)
reads("super", lambda held: SUPER.rate, Base)
reads("a module by its object", lambda held: len(inspect.getmodule(held.thing).__name__), of_a_module, None, elsewhere)
reads("a base in order", lambda held: Derived.__mro__[1].rate, Base)
reads("a base of several", lambda held: Derived.__bases__[0].rate, Base)
reads("the base", lambda held: Derived.__base__.rate, Base)
reads("a class behind an alias", lambda held: ALIAS.rate, Generic)


def counted(held):
    global COUNT
    COUNT = COUNT % 5 + 1


@case(change=counted)
def globals_by_another_name(held):
    global COUNT
    COUNT, names = 1, ["COUNT"]
    return lambda x: x * NAMESPACE[names[0]]


@case()
def an_object_among_builtins(held):
    builtins.OF_A_TEST = held.thing = Held(rate=1)
    return lambda x: x * OF_A_TEST.rate  # noqa: F821


@case(change=lambda held: held.bound.arguments.update(a=held.bound.arguments["a"] + 1))
def bound_arguments(held):
    held.bound = inspect.signature(lambda a: 0).bind(1)
    return lambda x: x * held.bound.args[0]


@case(change=lambda held: held.scanner.lexicon.__setitem__(0, ("a", lambda scanner, token: 5)))
def a_scanner(held):
    held.scanner = re.Scanner([("a", lambda scanner, token: 1)])
    return lambda x: x * sum(held.scanner.scan("aa")[0])


@case(change=lambda held: held.kind._member_names_.append("A"))
def members_of_an_enum(held):
    held.kind = kind = enum.Enum("Kind", "A B")
    return lambda x: x * len(kind)


@case(change=lambda held: held.other(torch.ones(1, device="ltc")))
def counts_of_another_step(held):
    held.other = torch_ltc.compile(lambda x: x * 2)
    return lambda x: x * (1 + sum(held.other.counts))


def shows(make, change, compiled):
    """What a step returns and leaves in `held.list`, call by call; and the step."""
    held = Held(list=[])
    step = make(held)
    step = torch_ltc.compile(step) if compiled else step
    seen = []
    for i in range(30):
        seen.append((step(torch.full((2,), 1.0 + i, device="ltc")).tolist(), len(held.list)))
        if change and i % 7 == 6:
            change(held)
    return seen, step


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_unseen(name):
    make, least, change = CASES[name]
    with numpy.errstate():  # cases may change it
        expected, _ = shows(make, change, compiled=False)
        found, step = shows(make, change, compiled=True)
    assert found == expected, step.explain()
    assert step.counts[0] >= (least or 0), step.explain()
