"""Repeatable calls: calls within a step that a replay simply makes again.

These are `step()` of learning rate schedules, which change nothing but Python objects, and `train()` and `eval()` of
modules that are in the other mode when the step begins. While a captured step makes such a call, the survey looks away,
and the host part of the capture makes the call at the same place. So what a schedule reads and counts need not be
watched, and neither do the modes of these modules; the rates that a schedule sets are read after it. A replay that is
taken back restores what the call changed (:class:`SavedState`).
"""

import types
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim.lr_scheduler import ChainedScheduler, LRScheduler, ReduceLROnPlateau

from torch_ltc._changing_numbers import floats
from torch_ltc._effects import changes, is_iterator
from torch_ltc._names import PLAIN, by_value

#: Methods of a schedule that `step()` never calls.
_NEVER_IN_A_STEP = frozenset(("__init__", "state_dict", "load_state_dict"))
_SCHEDULES = (LRScheduler, ChainedScheduler, ReduceLROnPlateau)


def _sets_mode(frame: types.FrameType) -> tuple[types.FunctionType, list[Any]] | None:
    """The call of `train()` that a frame begins, if it does no more than set modes."""
    module, mode = frame.f_locals["self"], frame.f_locals["mode"]
    train: Any = torch.nn.Module.train
    return (train, [module, mode]) if type(mode) is bool and are_plain(module) else None


def are_plain(module: torch.nn.Module) -> bool:
    """Whether `train()` does no more to a module and its parts than to set their modes."""

    def is_plain(part: torch.nn.Module) -> bool:
        kind, parts = type(part), vars(part)
        own = kind.train is not torch.nn.Module.train or kind.__setattr__ is not torch.nn.Module.__setattr__
        return not own and "train" not in parts and "training" in parts and not hasattr(kind, "training")

    return all(map(is_plain, modes(module)))


def modes(module: torch.nn.Module) -> list[torch.nn.Module]:
    """The modules whose mode is set together with that of one."""
    return list(module.modules())


def modes_of(module: torch.nn.Module) -> bytes:
    """The modes of a module and its parts, as bytes to be compared."""
    return bytes([part.training for part in module.modules()])


def repeatable(frame: types.FrameType, sets_modes: bool) -> tuple[types.FunctionType, list[Any]] | None:
    """The call that a frame begins, as its function and arguments, if a replay can make it again; else `None`.
    `sets_modes`: the step is known to change the modes of modules."""
    code = frame.f_code
    if sets_modes and code is torch.nn.Module.train.__code__:
        return _sets_mode(frame)
    if code.co_name != "step" or not code.co_varnames:
        return None
    schedule = frame.f_locals.get(code.co_varnames[0])
    if not isinstance(schedule, _SCHEDULES):
        return None
    function = getattr(getattr(schedule, "step", None), "__func__", None)
    given = [frame.f_locals[name] for name in code.co_varnames[1 : code.co_argcount]]
    if type(function) is not types.FunctionType or function.__code__ is not code:
        return None
    # The last are `CO_VARARGS` and `CO_VARKEYWORDS`.
    if not all(type(x) in PLAIN for x in given) or code.co_kwonlyargcount or code.co_flags & 0x0C:
        return None
    if not all(isinstance(group.get("lr"), float) for group in _groups(schedule)):
        return None
    return function, [schedule, *given]


def own_changes(schedule: Any, relied_on: list[tuple[str, Any, Any]]) -> str:
    """Why stepping a schedule cannot be taken back: it runs functions or methods of the user's that may change
    something besides the schedule, which would be changed twice if the call is made again. Empty where there are none;
    the places that this relies on are appended to `relied_on`, since a replay runs what stands there."""
    for part in _parts(schedule) if not isinstance(schedule, torch.nn.Module) else ():
        relied_on.append(("class", part, None))
        for owner in type(part).__mro__:
            own = owner.__module__.partition(".")[0] != "torch"
            for name, method in vars(owner).items() if own or owner in _SCHEDULES else ():
                if name in _NEVER_IN_A_STEP or type(method) is not types.FunctionType:
                    continue
                # Another method may be set on the schedule, or on its class, and takes the place of this one.
                relied_on += [("lookup", type(part), name), ("entry", vars(part), name)]
                if own and (why := changes(method, type(part), relied_on)):
                    return why
            if own and any(map(is_iterator, vars(part).values())):
                return f"a {type(part).__qualname__} holds an iterator"
        for name, held in vars(part).items():
            members = held if isinstance(held, (list, tuple)) else (held,)
            functions = [x for x in members if callable(x) and not isinstance(x, (torch.optim.Optimizer, *_SCHEDULES))]
            if functions:
                relied_on.append(("entry", vars(part), name))
                relied_on += [("members", held, None)] if isinstance(held, list) else []
            for x in functions:
                is_own = (getattr(x, "__module__", None) or "").partition(".")[0] != "torch"
                if is_own and (why := changes(x, None, relied_on)):
                    return why
    return ""


def _groups(schedule: Any) -> Iterator[dict[str, Any]]:
    """The parameter groups whose settings a schedule changes."""
    for part in _parts(schedule):
        yield from getattr(getattr(part, "optimizer", None), "param_groups", ())


def _parts(schedule: Any) -> Iterator[Any]:
    """A schedule, and the schedules that it is made of."""
    yield schedule
    for part in getattr(schedule, "_schedulers", ()):
        yield from _parts(part)


class KnownSchedules:
    """The schedules that calls of a step are known to step, with their attributes as they were when the call began: a
    replay steps them as they are then, so the step's own code may not set one before it."""

    def __init__(self, schedules: list[Any]) -> None:
        self._parts = {id(part): part for schedule in schedules for part in _parts(schedule)}
        self._before: dict[int, Any] = {}
        self.take()

    def take(self) -> None:
        """Notes the attributes as they are now."""
        self._before = {at: _attributes(part) for at, part in self._parts.items()}

    def has(self, schedule: Any) -> bool:
        """Whether a schedule, and all that it is made of, was known when the call began."""
        return all(id(part) in self._parts for part in _parts(schedule))

    def is_set(self, schedule: Any) -> bool:
        """Whether an attribute of a known schedule was set since they were noted last."""
        return any(_attributes(part) != self._before[id(part)] for part in _parts(schedule))


def _attributes(part: Any) -> dict[str, Any]:
    """The attributes of a schedule as values that can be compared: by identity, or by value where they are plain; of
    lists their members."""
    of = lambda x: by_value(x) if type(x) in PLAIN else id(x)
    return {k: [*map(of, x)] if type(x) in (list, tuple) else of(x) for k, x in vars(part).items()}


class SavedState:
    """What repeatable calls change, as it was before: attributes of schedules, settings of optimisers, modes of
    modules. `called`: the schedules and modules."""

    def __init__(self, called: list[Any]) -> None:
        self._modules = [part for x in called if isinstance(x, torch.nn.Module) for part in modes(x)]
        self._modes = [part.training for part in self._modules]
        schedules = [x for x in called if not isinstance(x, torch.nn.Module)]
        parts = [part for schedule in schedules for part in _parts(schedule)]
        dicts: list[dict[str, Any]] = [part.__dict__ for part in parts]
        dicts += [group for part in parts for group in _groups(part)]
        self._dicts = list({id(d): d for d in dicts}.values())
        self._before = [dict(d) for d in self._dicts]

    def moved(self) -> list[tuple[dict[str, Any], str]]:
        """The settings of optimisers, besides learning rates, that have other values now; as `(group, name)`."""
        pairs = [(now, before) for now, before in zip(self._dicts, self._before) if "params" in now]
        other = [(now, k) for now, before in pairs for k, v in now.items() if floats(v) and before.get(k) != v]
        return [(now, k) for now, k in other if k != "lr"]

    def take(self) -> None:
        """Saves the present state anew."""
        self._modes = [part.training for part in self._modules]
        self._before = [dict(d) for d in self._dicts]

    def restore(self) -> None:
        """Restores the state that was saved last."""
        for part, mode in zip(self._modules, self._modes):
            part.training = mode
        for now, before in zip(self._dicts, self._before):
            now.clear()
            now.update(before)
