"""``torch_ltc.compile``: a step captured once and replayed without recording."""

import contextlib
import functools
import struct
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

import torch
from torch.utils import _pytree as pytree

from torch_ltc import _ltc
from torch_ltc._host import HostProgram, HostTape, Traced
from torch_ltc._runtime import on_device, service

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
_RECORDED, _REPLAYED, _CAPTURING = range(3)
_P = ParamSpec("_P")
_R = TypeVar("_R")
_Guard = Callable[[], tuple[Any, ...]]


def _bits(numbers: Sequence[float]) -> tuple[int, ...]:
    return struct.unpack(f"<{len(numbers)}q", struct.pack(f"<{len(numbers)}d", *numbers))


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
            found.append(functools.partial(_settings, x))
        elif isinstance(x, torch.nn.Module):
            found.append(functools.partial(_training_flags, tuple(x.modules())))
        elif isinstance(x, (list, tuple)) and depth < 2 and len(x) <= 64:
            # May change its members: looked at each time.
            found.append(functools.partial(_values, x, depth))
        elif isinstance(x, dict) and depth < 2 and len(x) <= 64:
            found.append(functools.partial(_values, x.values(), depth))
        elif isinstance(x, types.FunctionType) and depth < 1:
            found += _guards(_reachable(x), depth + 1)
    return found


def _training_flags(modules: tuple[torch.nn.Module, ...]) -> tuple[bool, ...]:
    return tuple([m.training for m in modules])


#: How often an optimiser's state was replaced by `load_state_dict`: it has other tensors then.
_replacements: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()


def _count_replacement(optimiser: torch.optim.Optimizer) -> None:
    _replacements[optimiser] += 1


def _state_version(optimiser: torch.optim.Optimizer) -> int:
    if optimiser not in _replacements:
        _replacements[optimiser] = 0
        optimiser.register_load_state_dict_post_hook(_count_replacement)
    return _replacements[optimiser]


def _settings(optimiser: torch.optim.Optimizer) -> tuple[Any, ...]:
    return (_state_version(optimiser), *[len(group["params"]) for group in optimiser.param_groups]) + tuple(
        [
            (k, tuple(v) if isinstance(v, (list, tuple)) else v)
            for group in optimiser.param_groups
            for k, v in group.items()
            if k != "params" and not _is_rate(k, v) and isinstance(v, (*_PLAIN, list, tuple))
        ]
    )


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
        elif isinstance(x, types.FunctionType) and depth < 1:
            yield from _rates(_reachable(x), depth + 1)


@contextlib.contextmanager
def _traced_rates(tape: HostTape | None, objects: Iterable[Any]) -> Iterator[None]:
    """While a step is captured, learning rates remember what becomes of them."""
    lent = [(group, group["lr"], tape.setting(group, "lr")) for group in _rates(objects)] if tape else []
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
        if isinstance(x, _PLAIN):
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
            if type(x) not in _TENSORS and isinstance(x, _PLAIN):
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
        self._handle = service("step_new")[2][0]
        self._objects = _reachable(fn)
        self._guards = [_plain_names(fn), *_guards(self._objects)]
        self._keys: dict[Any, str] = {}
        self._specs: dict[str, Any] = {}
        self._programs: dict[str, HostProgram] = {}
        #: Of the last capture: its identity is compared with the next one's.
        self._candidates: dict[str, HostProgram | None] = {}
        weakref.finalize(self, service, "step_drop", (), "", (self._handle,))

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Replays the step on these arguments, or records it."""
        inputs = [x for x in args if on_device(x)]
        outside: tuple[Any, ...] = (len(args),)
        if kwargs or len(inputs) < len(args):
            flat, spec = pytree.tree_flatten((args, kwargs))
            inputs = [x for x in flat if on_device(x)]
            others = [x for x in flat if not on_device(x)]
            if not all(isinstance(x, _PLAIN) for x in others):
                # Whatever cannot be compared by value is recorded each time.
                return self._record(*args, **kwargs)
            outside = (str(spec), tuple([(type(x), x) for x in others]))
        key = (outside, torch.is_grad_enabled(), *[guard() for guard in self._guards])
        name = self._keys.get(key)
        if name is None:
            name = self._keys[key] = str(len(self._keys))
        host = self._host_numbers(name)
        state, results = _RECORDED, list[torch.Tensor]()
        try:
            results, _, (state,) = service("step_begin", inputs, name, (self._handle, *host))
        finally:
            if state != _REPLAYED and name in self._programs:
                self._programs.pop(name).undo()
        if state == _REPLAYED:
            return self._unflatten(name, results)
        tape = HostTape() if state == _CAPTURING else None
        try:
            with _traced_rates(tape, self._objects), tape or contextlib.nullcontext():
                out = self._fn(*args, **kwargs)
        except BaseException:
            service("step_abort", numbers=(self._handle,))
            raise
        if tape:
            out = self._captured(name, inputs, out, tape)
        else:
            service("step_end", inputs, numbers=(self._handle, len(inputs)))
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
            service("step_forget", (), name, (self._handle,))
            return ()

    def _captured(self, name: str, inputs: list[torch.Tensor], out: Any, tape: HostTape) -> Any:
        """Ends a capture; returns the call's result."""
        flat, spec = pytree.tree_flatten(out)
        places = [i for i, x in enumerate(flat) if on_device(x)]
        plain = [None if i in places else x for i, x in enumerate(flat)]
        if any(type(x) is Traced for x in plain):
            service("step_refuse", (), "it returns a number that the host computes", (self._handle,))
            return pytree.tree_unflatten([float(x) if type(x) is Traced else x for x in flat], spec)
        if not all(isinstance(x, _PLAIN) for x in plain):
            service("step_refuse", (), "it returns what is neither a tensor on ltc nor a plain value", (self._handle,))
            return out
        self._specs[name] = None if places == [0] and out is flat[0] else (spec, plain, places)
        if tape.obstacle:
            service("step_refuse", (), tape.obstacle, (self._handle,))
            return out
        program = self._candidates[name] = tape.program()
        tensors = [*inputs, *[flat[i] for i in places]]
        numbers = (self._handle, len(inputs), *_bits(tape.handed))
        _, _, (ready,) = service("step_end", tensors, program.identity if program else "", numbers)
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
        replayed, recorded = service("step_counts", numbers=[self._handle])[2]
        return replayed, recorded

    @property
    def refusal(self) -> str:
        """Why it is not replayed; an empty string when it is (or was not tried yet)."""
        reason, (replayed, recorded) = service("step_counts", numbers=[self._handle])[1:]
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
    What ``fn`` does to CPU tensors and computes from them and from learning rates, is replayed on the host.
    """
    if fn is None:
        return compile
    return CompiledStep(fn)

