"""``torch_ltc.compile``: a step captured once and replayed without recording."""

import contextlib
import functools
import operator
import struct
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

import torch
from torch.utils import _pytree as pytree

from torch_ltc import _ltc
from torch_ltc._host import HostProgram, HostTape, Traced
from torch_ltc._runtime import on_device

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
#: Types met so far, and whether their values are plain.
_plain_types: dict[type, bool] = {}
#: Whether this thread captures a step: others within it are part of it.
_capturing = threading.local()
_P = ParamSpec("_P")
_R = TypeVar("_R")
_Guard = Callable[[], tuple[Any, ...]]


def _bits(numbers: Sequence[float]) -> tuple[int, ...]:
    return struct.unpack(f"<{len(numbers)}q", struct.pack(f"<{len(numbers)}d", *numbers))


def _is_plain(x: Any) -> bool:
    kind = type(x)
    known = _plain_types.get(kind)
    if known is None:
        known = _plain_types[kind] = issubclass(kind, _PLAIN)
    return known


def _reachable(fn: Any) -> list[Any]:
    """Objects a function uses by name: its closure, defaults, ``self`` and the globals it mentions."""
    if isinstance(fn, torch.nn.Module):
        return [fn]
    found: list[Any] = []
    if isinstance(fn, types.MethodType):
        found.append(fn.__self__)
        fn = fn.__func__
    if isinstance(fn, functools.partial):
        return _reachable(fn.func) + list(fn.args) + list(fn.keywords.values())
    code = getattr(fn, "__code__", None)
    if code is None:
        return found
    for cell in fn.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    found += fn.__defaults__ or ()
    found += (fn.__kwdefaults__ or {}).values()
    found += [fn.__globals__[name] for name in code.co_names if name in fn.__globals__]
    return found


def _guards(objects: Iterable[Any], depth: int = 0) -> list[_Guard]:
    """Functions that tell what a replay depends on besides tensors: numbers, optimiser settings, training flags."""
    found: list[_Guard] = []
    for x in objects:
        if isinstance(x, torch.optim.Optimizer):
            found.append(_Settings(x))
        elif isinstance(x, torch.nn.Module):
            found.append(functools.partial(_training_flags, tuple(x.modules())))
        elif isinstance(x, (list, tuple)) and depth < 2 and len(x) <= 64:
            # May change its members: looked at each time.
            found.append(functools.partial(_values, x, depth))
        elif isinstance(x, dict) and depth < 2 and len(x) <= 64:
            found.append(functools.partial(_values, x.values(), depth))
        elif isinstance(x, CompiledStep):
            found += x._guards
        elif isinstance(x, types.FunctionType) and depth < 1:
            found += _guards(_reachable(x), depth + 1)
    return found


def _training_flags(modules: tuple[torch.nn.Module, ...]) -> tuple[bool, ...]:
    return tuple([m.training for m in modules])


#: How often an optimiser's state was replaced by `load_state_dict`, in a list of one: it has other tensors then.
_replacements: weakref.WeakKeyDictionary[torch.optim.Optimizer, list[int]] = weakref.WeakKeyDictionary()


def _count_replacement(optimiser: torch.optim.Optimizer) -> None:
    _replacements[optimiser][0] += 1


class _Settings:
    """Reads what a replay depends on of an optimiser: at each call, so with as little Python as can be."""

    def __init__(self, optimiser: torch.optim.Optimizer) -> None:
        if optimiser not in _replacements:
            _replacements[optimiser] = [0]
            optimiser.register_load_state_dict_post_hook(_count_replacement)
        self._optimiser, self._replaced = optimiser, _replacements[optimiser]
        self._sizes: list[int] = []
        self._readers: list[Callable[[dict[str, Any]], Any]] = []
        #: How often there were other settings; equal ones of other names are not the same.
        self._looks = 0

    def __call__(self) -> tuple[Any, ...]:
        groups = self._optimiser.param_groups
        if [len(group) for group in groups] != self._sizes:
            self._look(groups)
        try:
            found = [(len(group["params"]), read(group)) for group, read in zip(groups, self._readers)]
        except KeyError:  # as many as before, but others
            self._look(groups)
            found = [(len(group["params"]), read(group)) for group, read in zip(groups, self._readers)]
        return (self._replaced[0], self._looks, *found)

    def _look(self, groups: list[dict[str, Any]]) -> None:
        self._looks += 1
        self._sizes = [len(group) for group in groups]
        self._readers = [_reader(group) for group in groups]


def _reader(group: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    plain = [k for k, v in group.items() if k != "params" and not _is_rate(k, v) and isinstance(v, (*_PLAIN, tuple))]
    lists = [k for k, v in group.items() if k != "params" and isinstance(v, list)]
    read = operator.itemgetter(*plain) if plain else lambda _: ()
    return (lambda group: (read(group), *[tuple(group[k]) for k in lists])) if lists else read


def _is_rate(name: str, value: Any) -> bool:
    """Whether this is the setting that schedules change: replays read it, all others are compared."""
    return name == "lr" and type(value) in (float, Traced)


def _rates(objects: Iterable[Any], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Parameter groups with a learning rate of the optimisers that :func:`_guards` finds."""
    for x in objects:
        if isinstance(x, torch.optim.Optimizer):
            yield from (group for group in x.param_groups if _is_rate("lr", group.get("lr")))
        elif isinstance(x, (list, tuple, dict)) and depth < 2 and len(x) <= 64:
            yield from _rates(x.values() if isinstance(x, dict) else x, depth + 1)
        elif isinstance(x, CompiledStep):
            yield from _rates(x._objects, depth)
        elif isinstance(x, types.FunctionType) and depth < 1:
            yield from _rates(_reachable(x), depth + 1)


@contextlib.contextmanager
def _traced_rates(tape: HostTape | None, objects: Iterable[Any]) -> Iterator[None]:
    """While a step is captured, learning rates remember what becomes of them."""
    groups = {id(group): group for group in _rates(objects)} if tape else {}
    lent = [(group, group["lr"], tape.setting(group, "lr")) for group in groups.values()] if tape else []
    for group, _, traced in lent:
        group["lr"] = traced
    try:
        yield
    finally:
        for group, plain, traced in lent:
            if group["lr"] is not traced and tape:
                tape.obstacle = tape.obstacle or "it changes the learning rate itself"
                plain = float(group["lr"])
            group["lr"] = plain


def _values(objects: Iterable[Any], depth: int) -> tuple[Any, ...]:
    found: list[Any] = []
    for x in objects:
        # At each call, and mostly tensors: these are nothing to compare, and this way they cost the least.
        if type(x) in _TENSORS:
            continue
        if _is_plain(x):
            found.append((type(x), x))
        else:
            found += [guard() for guard in _guards((x,), depth + 1)]
    return tuple(found)


def _plain_names(fn: Any) -> _Guard:
    """Reads the plain values a function uses by name, as they are at each call."""
    if isinstance(fn, types.MethodType):
        fn = fn.__func__
    code = getattr(fn, "__code__", None)
    if code is None:
        return lambda: ()
    cells, names, scope = fn.__closure__ or (), code.co_names, fn.__globals__
    names = [n for n in names if isinstance(scope.get(n), _PLAIN) and n in scope]

    def read() -> tuple[Any, ...]:
        found: list[Any] = []
        for cell in cells:
            try:
                x = cell.cell_contents
            except ValueError:
                x = None
            if _is_plain(x):
                found.append((type(x), x))
        for name in names:
            x = scope.get(name)
            found.append((name, type(x), x))
        return tuple(found)

    return read


class CompiledStep(Generic[_P, _R]):
    """A step function that is replayed where that is safe; see :func:`compile`."""

    def __init__(self, fn: Callable[_P, _R]) -> None:
        functools.update_wrapper(self, fn, updated=())
        self._fn = fn
        self._replays = _ltc.Replays()
        self._objects = _reachable(fn)
        self._guards = [_plain_names(fn), *_guards(self._objects)]
        self._keys: dict[Any, str] = {}
        self._specs: dict[str, Any] = {}
        self._programs: dict[str, HostProgram] = {}
        #: Of the last capture: its identity is compared with the next one's.
        self._candidates: dict[str, HostProgram | None] = {}

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Replays the step on these arguments, or records it. Within a step that is being captured it is part of that."""
        if getattr(_capturing, "now", False):
            return self._fn(*args, **kwargs)
        settings = (torch.is_grad_enabled(), *[guard() for guard in self._guards])
        try:
            name = self._keys.get((len(args), settings))
        except TypeError:  # a setting that cannot be compared
            return self._record(*args, **kwargs)
        # Mostly all arguments are tensors on the device, which the other side tells faster.
        if name is not None and not kwargs and name not in self._programs:
            results = self._replays.replay(args, name, ())
            if results is not None:
                return self._unflatten(name, results)
        return self._call(settings, *args, **kwargs)

    def _call(self, settings: tuple[Any, ...], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        inputs: tuple[Any, ...] = args
        outside: Any = len(args)
        if kwargs or not all(map(on_device, args)):
            flat, spec = pytree.tree_flatten((args, kwargs))
            inputs = tuple([x for x in flat if on_device(x)])
            others = [x for x in flat if not on_device(x)]
            if not all(map(_is_plain, others)):
                # Whatever cannot be compared by value is recorded each time.
                return self._record(*args, **kwargs)
            outside = (str(spec), tuple([(type(x), x) for x in others]))
        key = (outside, settings)
        name = self._keys.get(key)
        if name is None:
            name = self._keys[key] = str(len(self._keys))
        host = self._host_numbers(name)
        results = None
        try:
            results = self._replays.replay(inputs, name, host)
        finally:
            if results is None and name in self._programs:
                self._programs.pop(name).undo()
        if results is not None:
            return self._unflatten(name, results)
        tape = HostTape() if self._replays.begin(inputs, name) else None
        _capturing.now = tape is not None
        try:
            with _traced_rates(tape, self._objects), tape or contextlib.nullcontext():
                out = self._fn(*args, **kwargs)
        except BaseException:
            self._replays.abort()
            raise
        finally:
            _capturing.now = False
        if tape:
            out = self._captured(name, inputs, out, tape)
        else:
            self._replays.end(inputs, (), "", ())
        _ltc.mark_step(False)
        return out

    def _host_numbers(self, name: str) -> tuple[int, ...]:
        """What the host part of the captured step computes now, as bits."""
        program = self._programs.get(name)
        if program is None:
            return ()
        try:
            return _bits(program.run())
        except Exception:  # noqa: BLE001  (recorded instead: then the program itself raises)
            self._programs.pop(name).undo()
            self._replays.forget(name)
            return ()

    def _captured(self, name: str, inputs: tuple[Any, ...], out: Any, tape: HostTape) -> Any:
        """Ends a capture; returns the call's result."""
        flat, spec = pytree.tree_flatten(out)
        places = [i for i, x in enumerate(flat) if on_device(x)]
        plain = [None if i in places else x for i, x in enumerate(flat)]
        if any(type(x) is Traced for x in plain):
            self._replays.refuse("it returns a number that the host computes")
            return pytree.tree_unflatten([float(x) if type(x) is Traced else x for x in flat], spec)
        if not all(map(_is_plain, plain)):
            self._replays.refuse("it returns what is neither a tensor on ltc nor a plain value")
            return out
        self._specs[name] = None if places == [0] and out is flat[0] else (spec, plain, places)
        if tape.obstacle:
            self._replays.refuse(tape.obstacle)
            return out
        program = self._candidates[name] = tape.program()
        results = tuple([flat[i] for i in places])
        ready = self._replays.end(inputs, results, program.identity if program else "", _bits(tape.handed))
        if ready and program:
            self._programs[name] = program
        return out

    def _record(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        out = self._fn(*args, **kwargs)
        _ltc.mark_step(False)
        return out

    def _unflatten(self, name: str, results: list[torch.Tensor]) -> Any:
        if self._specs[name] is None:
            return results[0]
        spec, plain, places = self._specs[name]
        flat = list(plain)
        for place, result in zip(places, results):
            flat[place] = result
        return pytree.tree_unflatten(flat, spec)

    @property
    def counts(self) -> tuple[int, int]:
        """``(replayed, recorded)`` calls so far."""
        return self._replays.state()[:2]

    @property
    def refusal(self) -> str:
        """Why it is not replayed; an empty string when it is (or was not tried yet)."""
        replayed, recorded, reason = self._replays.state()
        if not reason and not replayed and len(self._keys) > max(4, recorded // 2):
            return "plain values it is given or uses by name change from call to call: hand in tensors instead"
        return reason

    def explain(self) -> str:
        """One line about how the step runs."""
        replayed, recorded = self.counts
        why = f"; {self.refusal}" if self.refusal else ""
        return f"{replayed} calls replayed, {recorded} recorded{why}"


@overload
def compile(fn: Callable[_P, _R]) -> CompiledStep[_P, _R]: ...
@overload
def compile(fn: None = None) -> Callable[[Callable[_P, _R]], CompiledStep[_P, _R]]: ...
def compile(fn: Any = None) -> Any:
    """Makes a training step (forward, backward, optimiser) replay itself without being recorded again.

    ``fn`` must do the same to the same tensors each time, given its arguments: tensors on ``ltc`` (free to change from call
    to call), numbers and strings (captured apart for each value). The first call is recorded as usual, the next two are
    captured, and if both were the same the program is replayed from then on. Settings of optimisers, training flags of
    modules and plain values that ``fn`` uses by name are compared at each call; Python code in ``fn`` does not run in a
    replay. What cannot be replayed is recorded each time, which is always right: see :meth:`CompiledStep.explain`.
    Steps within steps are captured as parts of the outer one. What ``fn`` does to CPU tensors and computes from them and from learning rates, is replayed on the host.
    """
    if fn is None:
        return compile
    return CompiledStep(fn)

