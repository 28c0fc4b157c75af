"""What a step computes on the host from CPU tensors (an optimiser's step count), as a program that a replay runs again.

While a step is captured, :class:`HostRecorder` sees each call on CPU tensors and writes it down as a line of Python.
Numbers read off them are :class:`Traced` floats, whose arithmetic is written down too. Where such a number is handed to
an operator of the device it is one of the program's results: a replay puts the number of then in its place. Control
flow that depends on one becomes a check, and a replay for which it fails is recorded instead.
"""

import functools
import operator
import re
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch.overrides import TorchFunctionMode

from torch_ltc._again import Saved
from torch_ltc._compiling import seen_draws
from torch_ltc._masks import Masks
from torch_ltc._names import here
from torch_ltc._runtime import on_device

_NUMBERS = (bool, int, float)
#: Compared by what they print where captures are compared (a getter prints whose it is); all else by identity.
_BY_VALUE = (
    *(*_NUMBERS, complex, str, bytes, type(None), slice, types.EllipsisType, types.MethodWrapperType),
    *(torch.Size, torch.device, torch.dtype, torch.layout, torch.memory_format),
)

#: Methods that tell about a tensor without reading it.
_METADATA = frozenset(
    "size stride dim ndimension numel nelement element_size storage_offset is_contiguous is_floating_point is_complex"
    " is_conj is_neg is_signed is_pinned is_shared is_set_to is_inference is_same_size is_tensor _is_view data_ptr"
    " get_device untyped_storage __len__ __hash__".split()
)

#: What shows a tensor in another way, or as another type, or on another device.
_SHOWN = frozenset(
    "to ltc as_tensor view reshape flatten unflatten squeeze unsqueeze transpose permute contiguous t narrow expand"
    " detach clone float double half bfloat16 long int bool __getitem__".split()
)

#: Numbers in a list that a tensor is computed from rather than copied.
_MANY = 64

_VALUES, _CONSTANTS = re.compile(r"\bv\d+\b"), re.compile(r"\bc\d+\b")


class Changed(Exception):
    """The host would go another way than when the step was captured."""


class _Line(NamedTuple):
    target: str
    text: str  # of names and operators only
    effect: bool


def _symbolic(function: Callable[..., Any], text: str, reverse: bool = False) -> Callable[..., Any]:
    def method(self: "Traced", *others: Any) -> Any:
        plain = [_plain(x) for x in (self, *others)]
        if not all(type(x) in _NUMBERS for x in plain):
            return NotImplemented
        value = function(*reversed(plain)) if reverse else function(*plain)
        return self.recorder.number(value, text, self, *others) if type(value) is float else value

    return method


def _decision(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    def method(self: "Traced", *others: Any) -> Any:
        value = function(*[_plain(x) for x in (self, *others)])
        self.recorder.expect(value, text, self, *others)
        return value

    return method


class Traced(float):
    """A float of the host that remembers how it was computed."""

    recorder: "HostRecorder"
    name: str

    __add__ = _symbolic(operator.add, "{} + {}")
    __radd__ = _symbolic(operator.add, "{1} + {0}", reverse=True)
    __sub__ = _symbolic(operator.sub, "{} - {}")
    __rsub__ = _symbolic(operator.sub, "{1} - {0}", reverse=True)
    __mul__ = _symbolic(operator.mul, "{} * {}")
    __rmul__ = _symbolic(operator.mul, "{1} * {0}", reverse=True)
    __truediv__ = _symbolic(operator.truediv, "{} / {}")
    __rtruediv__ = _symbolic(operator.truediv, "{1} / {0}", reverse=True)
    __floordiv__ = _symbolic(operator.floordiv, "{} // {}")
    __rfloordiv__ = _symbolic(operator.floordiv, "{1} // {0}", reverse=True)
    __mod__ = _symbolic(operator.mod, "{} % {}")
    __rmod__ = _symbolic(operator.mod, "{1} % {0}", reverse=True)
    __pow__ = _symbolic(operator.pow, "{} ** {}")
    __rpow__ = _symbolic(operator.pow, "{1} ** {0}", reverse=True)
    __neg__ = _symbolic(operator.neg, "-{}")
    __pos__ = _symbolic(operator.pos, "+{}")
    __abs__ = _symbolic(abs, "abs({})")
    __lt__ = _decision(operator.lt, "{} < {}")
    __le__ = _decision(operator.le, "{} <= {}")
    __gt__ = _decision(operator.gt, "{} > {}")
    __ge__ = _decision(operator.ge, "{} >= {}")
    __eq__ = _decision(operator.eq, "{} == {}")
    __ne__ = _decision(operator.ne, "{} != {}")
    __bool__ = _decision(bool, "bool({})")
    __int__ = _decision(int, "int({})")
    __trunc__ = _decision(float.__trunc__, "float.__trunc__({})")
    __floor__ = _decision(float.__floor__, "float.__floor__({})")
    __ceil__ = _decision(float.__ceil__, "float.__ceil__({})")
    __round__ = _decision(round, "round({})")
    __float__ = _decision(float, "float({})")
    is_integer = _decision(float.is_integer, "float.is_integer({})")

    def __copy__(self) -> "Traced":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Traced":
        return self

    __hash__ = _decision(hash, "hash({})")


def _plain(x: Any) -> Any:
    return float.__float__(x) if type(x) is Traced else x


@functools.lru_cache(256)
def _number(value: int, dtype: torch.dtype) -> torch.Tensor:
    """The one tensor for a number: captures are compared by it."""
    return torch.tensor(value, dtype=dtype)


def _with_tensor(func: Any, args: Any) -> Any:
    """``t += 1`` with a tensor for the number: libtorch makes one at each call, which takes twice as long as the
    sum."""
    if func is not torch.Tensor.add_ or len(args) != 2 or type(args[1]) is not int or abs(args[1]) >= 1 << 24:
        return args
    t, number = args
    # Exact in these, so that it is the same whenever it is converted.
    return (t, _number(number, t.dtype)) if t.dtype in (torch.float32, torch.float64) else args


def _computed(func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
    """A tensor of numbers that the program has in plain sight, computed on the device instead of copied there."""
    data: Any = args[0] if len(args) == 1 else None
    numbers: list[Any] = data if type(data) in (list, tuple) else [data]
    if not 0 < len(numbers) <= _MANY or not all(type(x) in (*_NUMBERS, complex) for x in numbers):
        return None
    out: torch.Tensor = func(*args, **kwargs)
    if out.device.type != "ltc" or out.requires_grad:
        return None
    filled = [torch.full((), x, dtype=out.dtype, device=out.device) for x in numbers]
    return filled[0] if numbers is not data else torch.stack(filled)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, torch.Tensor)


def _is_mask(x: Any) -> bool:
    return on_device(x) and x.dtype is torch.bool and x.dim() > 0


def _is_host(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.device.type == "cpu"


class HostProgram:
    """Lines that ran on the host, ready to run again. Undone, CPU tensors and schedules are as if it had not run."""

    def __init__(
        self, body: Sequence[str], constants: dict[str, Any], changed: list[torch.Tensor], schedules: list[Any]
    ) -> None:
        used = {name: constants[name] for name in _CONSTANTS.findall(" ".join(body))}
        source = f"def bind(Changed, {', '.join(used)}):\n  def run():\n    " + "\n    ".join(body) + "\n  return run"
        scope: dict[str, Any] = {}
        exec(compile(source, "<host part of a step>", "exec"), scope)  # noqa: S102  (names and operators only)
        self._run: Callable[[], list[float]] = scope["bind"](Changed, **used)
        self._changed, self._before = changed, [t.clone() for t in changed]
        self._saved = Saved(schedules) if schedules else None
        #: Equal for captures that do the same on the host to the same tensors; as long as both programs live.
        self.identity = source + repr([x if isinstance(x, _BY_VALUE) else id(x) for x in used.values()])

    def run(self) -> list[float]:
        """Runs; returns the numbers it hands to the device. Raises :class:`Changed`, which leaves it to be undone."""
        if self._changed:
            torch._foreach_copy_(self._before, self._changed)
        if self._saved is not None:
            self._saved.take()
        with torch.no_grad():
            return self._run()

    def undo(self) -> None:
        """Takes back what the last run did to CPU tensors."""
        if self._changed:
            torch._foreach_copy_(self._changed, self._before)
        if self._saved is not None:
            self._saved.restore()


class HostRecorder(TorchFunctionMode):
    """Writes down what a step does on the host; see the module."""

    def __init__(
        self, given: Sequence[tuple[torch.Tensor, torch.Tensor]] = (), lent: Sequence[tuple[dict[Any, Any], Any]] = ()
    ) -> None:
        super().__init__()
        #: CPU tensors that the step was given, and what follows from them, each with its copy on the device.
        self._given = {id(host): (host, copy) for host, copy in given}
        #: Numbers that may change from step to step, by dict and key; what stands there while they are lent.
        self._slots = lent
        self._lent: list[tuple[dict[Any, Any], Any, float, Traced]] = []
        self._schedules: list[Any] = []
        #: Settings that schedules set besides learning rates, by dict and key.
        self.moved: list[tuple[dict[Any, Any], Any]] = []
        #: Why what the host does cannot be written down; empty where it can.
        self.obstacle = ""
        self._lines: list[_Line] = []
        self._constants: dict[str, Any] = {}
        self._places: dict[int, str] = {}
        self._made: dict[int, tuple[str, torch.Tensor]] = {}
        #: Memory of tensors that are older than the step, and that of those it writes, by address.
        self._older: dict[int, torch.UntypedStorage] = {}
        self._changed: dict[int, torch.Tensor] = {}
        self._handed: list[tuple[str, float]] = []
        self._open = True
        #: What is known of masks, and whether a tensor is no result of the step's own.
        self.masks: Masks | None = None
        self.stays: Callable[[torch.Tensor], bool] = lambda _: False
        #: While a call runs that replays make again.
        self._paused = False

    def __enter__(self) -> Self:
        self._lend()
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._take_back()
        self._open = False

    def _lend(self) -> None:
        """Numbers that may change remember what becomes of them from here on."""
        for holder, name in self._slots:
            if type(holder.get(name)) is float:
                traced = self.setting(holder, name)
                self._lent.append((holder, name, holder[name], traced))
                holder[name] = traced

    def _take_back(self) -> None:
        """The numbers are plain ones again."""
        for holder, name, plain, traced in self._lent:
            now = holder.get(name)
            if now is not traced:
                what = "the learning rate" if name == "lr" else name
                self.obstacle = self.obstacle or f"it changes {what} itself"
                holder[name] = float(now) if type(now) is Traced else now
            else:
                holder[name] = plain
        self._lent = []

    def again(self, function: types.FunctionType, args: list[Any]) -> Callable[[], None]:
        """A call begins that replays make again; what is to be called when it returns."""
        self._take_back()
        self._schedules.append(args[0])
        saved = Saved(args[:1])
        self._line(f"{self._constant(function)}({', '.join(map(self._constant, args))})", effect=True)
        self._paused = True

        def returns() -> None:
            self._paused = False
            self.moved += saved.moved()
            self._lend()

        return returns

    def __torch_function__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = [x for a in (*args, *kwargs.values()) for x in (a if isinstance(a, (list, tuple)) else (a,))]
        if self._paused:
            if any(isinstance(x, torch.Tensor) and x.device.type == "ltc" for x in leaves):
                self.obstacle = self.obstacle or f"a schedule computes on the device{here()}"
            return func(*args, **kwargs)
        if any(hasattr(x, "_ltc_draws") for x in leaves):
            self.obstacle = self.obstacle or f"it looks at the state of a generator{here()}"
            return func(*map(seen_draws, args), **kwargs)
        if self._given and any(id(x) in self._given for x in leaves):
            return self._of_given(func, args, kwargs, leaves)
        if func is torch.tensor or func is torch.as_tensor:
            made = _computed(func, args, kwargs)
            if made is not None:
                return made
        if func is torch.Tensor.__getitem__ and self.masks is not None and _is_mask(args[1]):
            indices = self.masks.indices(args[1]) if self.stays(args[1]) else None
            return func(args[0], indices) if indices else func(*args)
        if any(isinstance(x, torch.Tensor) and x.device.type != "cpu" for x in leaves):
            self._hand_over(leaves)
            return func(*args, **kwargs)
        hosts = [x for x in leaves if _is_host(x)]
        if any(t.requires_grad or t.is_inference() for t in hosts):
            self.obstacle = (
                self.obstacle or "it uses CPU tensors that take part in differentiation, or inference tensors"
            )
            return func(*args, **kwargs)
        if any(t.layout is not torch.strided for t in hosts):
            word = getattr(func, "__name__", "")
            if word not in _METADATA and word not in ("__get__", "__set__"):
                self.obstacle = self.obstacle or f"it uses sparse CPU tensors in {word}{here()}"
            return func(*args, **kwargs)
        versions = [t._version for t in hosts]
        out = func(*args, **kwargs)
        changed = [t for t, v in zip(hosts, versions, strict=True) if t._version != v]
        return self._host_call(func, args, kwargs, hosts, changed, out)

    def _of_given(self, func: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """What becomes of a CPU tensor that the step was given: its copy is on the device already, and so is what is
        only another view or type of it. For anything else a replay would have to know it on the host."""
        copy = lambda x: self._given[id(x)][1] if id(x) in self._given else x
        word = getattr(func, "__name__", "")
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        if word == "copy_" and len(tensors) == 2 and on_device(args[0]):
            return func(*map(copy, args), **kwargs)
        versions = [t._version for t in tensors]
        out = func(*args, **kwargs)
        is_own = len(tensors) == 1 and versions == [t._version for t in tensors]
        if word in _METADATA or (is_own and (out is tensors[0] or word == "__get__" and not _is_tensor(out))):
            return out
        if is_own and _is_tensor(out) and word in _SHOWN and (on_device(out) or word not in ("as_tensor", "ltc")):
            shown = func(*map(copy, args), **kwargs)
            if on_device(out):
                # What is copied twice are two tensors.
                return shown.clone() if any(shown is x for _, x in self._given.values()) else shown
            self._given[id(out)] = (out, shown)
            return out
        self.obstacle = self.obstacle or (
            f"it uses a CPU tensor that it is given in {word}, on the host{here()}: move it to ltc before"
        )
        self._given = {}
        return out

    def _hand_over(self, leaves: list[Any]) -> None:
        for x in leaves:
            if type(x) is Traced:
                self._handed.append((x.name, _plain(x)))
            elif _is_host(x) and x.dim() == 0 and x.dtype.is_floating_point:
                self._handed.append((self._line(f"{self._name(x)}.item()"), x.item()))

    def _host_call(self, func: Any, args: Any, kwargs: Any, hosts: list[Any], changed: list[Any], out: Any) -> Any:
        for t in hosts:
            if id(t) not in self._made:
                memory = t.untyped_storage()
                self._older[memory._cdata] = memory
        for t in changed:
            memory = t.untyped_storage()
            if memory._cdata in self._older:
                self._changed[memory._cdata] = torch.empty(0, dtype=torch.uint8).set_(memory)
        texts = [self._text(a) for a in _with_tensor(func, args)] + [f"{k}={self._text(a)}" for k, a in kwargs.items()]
        call = f"{self._constant(func)}({', '.join(texts)})"
        results = list(out) if isinstance(out, (list, tuple)) else [out]
        if changed or any(map(_is_host, results)):
            name = self._line(call, effect=bool(changed))
            for i, t in enumerate(results):
                if _is_host(t) and id(t) not in self._made and not any(t is h for h in hosts):
                    self._made[id(t)] = (name if t is out else f"{name}[{i}]", t)
            return out
        word = getattr(func, "__name__", "")
        if (
            not hosts
            or any(isinstance(x, torch.Tensor) for x in results)
            or word in _METADATA
            or word in ("__get__", "__set__")
        ):
            return out
        if func is torch.Tensor.item and type(out) is float:
            return self._traced(out, self._line(call))
        if isinstance(out, _NUMBERS):
            self._check(call, out)
        else:
            self.obstacle = self.obstacle or f"it uses CPU tensors in {word}"
        return out

    def setting(self, group: dict[str, Any], name: str) -> Traced:
        """A number of an optimiser that may change from step to step, read where it is at each replay."""
        line = self._line(f"{self._constant(group)}[{self._constant(name)}]")
        # Handed over itself, so that a change is noticed even where nothing that follows from it is.
        self._handed.append((line, group[name]))
        return self._traced(group[name], line)

    def number(self, value: float, text: str, *operands: Any) -> float:
        """The number that ``text`` computes from its operands."""
        return self._traced(value, self._line(text.format(*map(self._text, operands)))) if self._open else value

    def expect(self, value: Any, text: str, *operands: Any) -> None:
        """A replay is right only if ``text`` gives this value again."""
        if self._open:
            self._check(text.format(*map(self._text, operands)), value)

    def _traced(self, value: float, name: str) -> Traced:
        number = Traced(value)
        number.recorder, number.name = self, name
        return number

    def _check(self, text: str, value: Any) -> None:
        self._lines.append(_Line("", f"if ({text}) != {self._constant(value)}: raise Changed", True))

    def _line(self, text: str, effect: bool = False) -> str:
        name = f"v{len(self._lines)}"
        self._lines.append(_Line(name, f"{name} = {text}", effect))
        return name

    def _constant(self, x: Any) -> str:
        if id(x) not in self._places:
            name = self._places[id(x)] = f"c{len(self._constants)}"
            self._constants[name] = x
        return self._places[id(x)]

    def _name(self, t: torch.Tensor) -> str:
        return self._made[id(t)][0] if id(t) in self._made else self._constant(t)

    def _text(self, x: Any) -> str:
        if type(x) is Traced:
            return x.name
        if isinstance(x, torch.Tensor):
            return self._name(x)
        if type(x) is list:
            return f"[{', '.join(map(self._text, x))}]"
        if type(x) is tuple:
            return f"({''.join(self._text(y) + ', ' for y in x)})"
        return self._constant(x)

    @property
    def handed(self) -> list[float]:
        """Numbers handed to the device, as they were."""
        return [value for _, value in self._handed]

    def program(self) -> HostProgram | None:
        """What a replay has to do on the host; ``None`` when that is nothing."""
        needed = {name for name, _ in self._handed}
        kept = []
        for line in reversed(self._lines):
            if line.effect or line.target in needed:
                needed.update(_VALUES.findall(line.text))
                kept.append(line.text)
        if not kept:
            return None
        body = [*reversed(kept), f"return [{', '.join(name for name, _ in self._handed)}]"]
        return HostProgram(body, self._constants, list(self._changed.values()), self._schedules)
