"""Steps that copy objects (`copy.copy`, `copy.deepcopy`), as models do with their configurations, are replayed as long
as what they copy stays as it is."""

import copy
import re

import pytest
import torch
import torch_ltc


class Part:
    def __init__(self):
        self.scale = 3.0


class Settings:
    def __init__(self):
        self.width, self.part, self.table, self.names = 2.0, Part(), {"a": [1.0]}, ("x", "y")


def both(body, x=None, calls=6):
    """Calls a step, beside the same on the CPU."""
    step = torch_ltc.compile(body)
    x = torch.ones(2) if x is None else x

    def call(count=calls):
        for _ in range(count):
            torch.testing.assert_close(step(x.to("ltc")).cpu(), body(x))
        return step

    return call


CHANGES = {
    "a number": lambda s: setattr(s, "width", 5.0),
    "a number of a part": lambda s: setattr(s.part, "scale", 7.0),
    "a member of a list": lambda s: s.table["a"].__setitem__(0, 2.0),
    "the length of a list": lambda s: s.table["a"].append(2.0),
    "an entry": lambda s: s.table.update(b=[4.0]),
    "a new attribute": lambda s: setattr(s, "more", 1),
    "one attribute less": lambda s: delattr(s, "names"),
    "a part": lambda s: setattr(s, "part", Part()),
    "the class": lambda s: setattr(s, "__class__", Other),
}


class Other(Settings):
    kind = 11.0


@pytest.mark.parametrize("change", CHANGES)
def test_copies_are_of_what_there_is(change):
    settings = Settings()

    def body(x):
        deep, flat = copy.deepcopy(settings), copy.copy(settings)
        deep.table["a"].append(1.0)
        deep.width *= flat.part.scale
        numbers = len(vars(flat)) + len(deep.table) + sum(flat.table["a"]) + getattr(type(deep), "kind", 0.0)
        return x * deep.width * deep.part.scale * numbers

    call = both(body)
    assert call().counts == (3, 3)
    CHANGES[change](settings)
    assert call().counts[0] >= 6, call().explain()


SAYS = {
    "__getstate__": lambda self: {"scale": 9.0},
    "__setstate__": lambda self, state: self.__dict__.update(scale=9.0),
    "__reduce__": lambda self: (Nine, ()),
    "__reduce_ex__": lambda self, protocol: (Nine, ()),
    "__copy__": lambda self: Nine(),
    "__deepcopy__": lambda self, memo: Nine(),
    "scale": property(lambda self: 9.0),
}


class Nine:
    def __init__(self):
        self.scale = 9.0


@pytest.mark.parametrize("name", SAYS)
def test_what_a_base_comes_to_say_of_copies_is_noticed(name):
    base = type("Base", (), {})
    part = type("Of", (base,), {})()
    part.scale = 3.0
    call = both(lambda x: x * copy.deepcopy(part).scale * copy.copy(part).scale)
    assert call().counts == (3, 3)
    setattr(base, name, SAYS[name])
    call()


def test_a_number_that_changes_at_each_call_may_be_copied():
    settings = Settings()
    call = both(lambda x: x * copy.deepcopy(settings).width)
    for i in range(12):
        settings.width = 1.0 + i
        step = call(1)
    assert step.counts[0] >= 6, step.explain()


ALIASES = {"size": "scale"}


class Asked(Part):
    """Answers for its attributes itself, as configurations of `transformers` do."""

    def __getattribute__(self, name):
        return super().__getattribute__(ALIASES.get(name, name))


def test_copies_of_what_answers_itself_are_replayed():
    part = Asked()
    call = both(lambda x: x * copy.deepcopy(part).size * copy.copy(part).scale)
    assert call().counts[0] == 3, call().explain()
    part.scale = 5.0
    call()
    part.other = 1.0
    step = call()
    assert step.counts[0] >= 9, step.explain()


class Slotted:
    __slots__ = ("scale",)

    def __init__(self):
        self.scale = 3.0


class Own(Part):
    def __getstate__(self):
        return {"scale": self.scale + 1}


class Made(Part):
    def __reduce__(self):
        return Made, ()


class Mapping(dict):
    scale = 3.0


@pytest.mark.parametrize("kind", [Slotted, Own, Made, Mapping])
def test_what_says_itself_how_it_is_copied_is_recorded(kind):
    part = kind()
    call = both(lambda x: x * copy.deepcopy(part).scale)
    step = call()
    assert step.counts[0] == 0 and re.search(rf"it copies a {kind.__name__}", step.refusal), step.explain()
    type.__setattr__(kind, "scale", 8.0) if kind is Mapping else setattr(part, "scale", 8.0)
    call()
