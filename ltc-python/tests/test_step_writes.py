"""Whatever way Python has to write what a compiled step read: the next call has seen it.

The interpreter tells of writes in its own ways (versions of dicts and classes, watchers), and each of its fast paths is
one that might not.
"""

import collections
import types

import pytest
import torch
import torch_ltc

MODULE = types.ModuleType("a_module_of_a_test")
MODULE.number = 0.0


class Plain:
    def __init__(self):
        self.number = 0.0


class Slots:
    __slots__ = ("number",)

    def __init__(self):
        self.number = 0.0


class Reads:
    number = 0.0


class Derived(Reads):
    pass


def attribute(owner):
    return owner.number


def item(owner):
    return owner["number"]


def members(owner):
    total = 0.0
    for value in owner:
        total = 2 * total + value
    return total


def values(owner):
    return members(owner.values())


def plainly(owner, number):
    owner.number = number


def often(owner, number):
    """A store that the interpreter has specialised by the time of the last one."""
    for i in range(200):
        owner.number = number - 200 + i
    owner.number = number


def as_new_namespace(owner, number):
    owner.__dict__ = {"number": number}


def without_and_with(owner, number):
    del owner.number
    owner.number = number


def by_exec(owner, number):
    exec("number = given", owner.__dict__, {"given": number})
    exec("global number\nnumber = given", vars(owner) | {"given": number})
    vars(owner)["number"] = number


ATTRIBUTES = [
    plainly,
    often,
    as_new_namespace,
    without_and_with,
    lambda owner, number: setattr(owner, "number", number),
    lambda owner, number: object.__setattr__(owner, "number", number),
    lambda owner, number: vars(owner).update(number=number),
    lambda owner, number: vars(owner).__setitem__("number", number),
    lambda owner, number: vars(owner).__ior__({"number": number}),
    lambda owner, number: (vars(owner).clear(), vars(owner).setdefault("number", number)),
    lambda owner, number: (vars(owner).pop("number"), vars(owner).__init__(number=number)),
    lambda owner, number: (vars(owner).popitem(), owner.__init__(), plainly(owner, number)),
]

ITEMS = [
    lambda owner, number: owner.__setitem__("number", number),
    lambda owner, number: dict.__setitem__(owner, "number", number),
    lambda owner, number: owner.update(number=number),
    lambda owner, number: owner.__init__(number=number),
    lambda owner, number: (owner.clear(), owner.update({"number": number})),
    lambda owner, number: (owner.pop("number"), owner.setdefault("number", number)),
    lambda owner, number: (owner.popitem(), owner.__ior__([("number", number)])),
]

OF_A_CLASS = [
    plainly,
    often,
    without_and_with,
    lambda owner, number: type.__setattr__(owner, "number", number),
    # More versions than Python 3.13 gives to one class.
    lambda owner, number: [(plainly(owner, number - 1), owner.number, plainly(owner, number)) for _ in range(1500)],
]

CASES = {
    "attribute": (Plain, attribute, ATTRIBUTES),
    "namespace": (types.SimpleNamespace, attribute, ATTRIBUTES[3:]),
    "module": (lambda: MODULE, attribute, [plainly, often, without_and_with, by_exec]),
    "slot": (Slots, attribute, [plainly, often, without_and_with]),
    "class": (lambda: Reads, attribute, OF_A_CLASS),
    "item": (dict, item, ITEMS),
    "item, by default": (lambda: collections.defaultdict(float), item, ITEMS),
    "item, in order": (collections.OrderedDict, item, ITEMS),
    "list": (
        lambda: [0.0, 1.0],
        members,
        [
            lambda owner, number: owner.__setitem__(0, number),
            lambda owner, number: owner.append(number),
            lambda owner, number: owner.insert(0, number),
            lambda owner, number: owner.reverse(),
            lambda owner, number: owner.sort(key=lambda x: x * (-1) ** int(number)),
            lambda owner, number: owner.__iadd__([number]),
            lambda owner, number: owner.__setitem__(slice(0, 1), [number, 2.0]),
        ],
    ),
    "deque": (
        lambda: collections.deque([0.0, 1.0, 5.0]),
        members,
        [
            lambda owner, number: owner.rotate(),
            lambda owner, number: owner.reverse(),
            lambda owner, number: owner.appendleft(number),
            lambda owner, number: owner.__setitem__(0, number),
        ],
    ),
    "order": (
        lambda: collections.OrderedDict(a=1.0, b=2.0, c=4.0),
        values,
        [
            lambda owner, number: owner.move_to_end("a"),
            lambda owner, number: owner.move_to_end("c", last=False),
            lambda owner, number: owner.move_to_end(next(iter(owner))),
            lambda owner, number: owner.update(a=number),
            lambda owner, number: owner.__setitem__(number, number),
            lambda owner, number: owner.popitem(last=False),
        ],
    ),
    "order of a plain dict": (
        lambda: {"a": 1.0, "b": 2.0, "c": 4.0},
        values,
        [
            lambda owner, number: owner.__setitem__("a", owner.pop("a")),
            lambda owner, number: owner.__setitem__("b", number),
            lambda owner, number: owner.__setitem__(number, number),
        ],
    ),
}


def began(make, read):
    owner = make()
    if read is item:
        owner["number"] = 0.0
    elif read is attribute:
        owner.number = 0.0
    return owner


@pytest.mark.parametrize("case", CASES)
def test_a_write_is_seen_however_it_is_made(case):
    make, read, writes = CASES[case]
    x = torch.ones(1, device="ltc")
    for write in writes:
        owner = began(make, read)
        # Two steps: what one of them has looked at again the other has not. The second reads what a class inherits.
        shown = Derived if owner is Reads else owner
        first = torch_ltc.compile(lambda x, owner=owner: x + read(owner))
        second = torch_ltc.compile(lambda x, owner=shown: x + read(owner))
        for _ in range(4):
            first(x), second(x)
        assert first.counts[0] and second.counts[0], (first.explain(), second.explain())
        for round in range(2):
            write(owner, 7.0 + round)
            for step in (first, second, second, first):
                assert step(x).item() == 1 + read(owner), (writes.index(write), round)


# ---- writes that change nothing while a step is captured ----


def sync_after_a_write_to_a_part(device):
    a, b = torch.tensor([1.0, 2.0], device=device), torch.tensor([0.5, -1.0], device=device)
    view = a[1:]

    def step(_):
        a.copy_(b)

    return step, lambda i: view.mul_(0) if i >= 5 else None, a


def sync_a_model(device):
    online, target = (torch.nn.Linear(1, 1).to(device) for _ in range(2))

    def step(_):
        target.load_state_dict(online.state_dict())

    return step, lambda i: online.weight.data.fill_(i) if i >= 5 else None, target.weight


def reset_a_state(device):
    state, first = torch.zeros(2, device=device), torch.ones(2, device=device)

    def step(_):
        state.copy_(first)

    return step, lambda i: state.mul_(7) if i >= 5 else None, state


def copy_of_a_copy(device):
    state, first = torch.zeros(2, device=device), torch.ones(2, device=device)

    def step(_):
        state.copy_(first.clone())

    return step, lambda i: first.fill_(i) if i >= 5 else None, state


def one_argument_into_another(device):
    x, y = torch.zeros(2, device=device), torch.ones(2, device=device)
    return lambda both: both[0].copy_(both[1]) is None, lambda i: y.fill_(i) if i >= 5 else None, x, y


@pytest.mark.parametrize(
    "make", [sync_after_a_write_to_a_part, sync_a_model, reset_a_state, copy_of_a_copy, one_argument_into_another]
)
def test_a_write_of_what_is_there_already_is_one_when_it_no_longer_is(make):
    outs = []
    for device in ("cpu", "ltc"):
        torch.manual_seed(0)
        step, change, *tensors = make(device)
        if device == "ltc":
            step = torch_ltc.compile(step)
        outs.append([])
        for i in range(9):
            change(i)
            step(tensors)
            outs[-1].append(tensors[0].tolist())
    assert outs[0] == outs[1]
    assert step.counts[0] >= 2, step.explain()
