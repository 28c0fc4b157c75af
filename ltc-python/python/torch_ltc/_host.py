"""What a step computes on the host from CPU tensors (an optimiser's step count), as a program that a replay runs again.

While a step is captured, :class:`HostTape` sees each call on CPU tensors and writes it down as a line of Python. Numbers
read off them are :class:`Traced` floats, whose arithmetic is written down too. Where such a number is handed to an
operator of the device it is one of the program's results: a replay puts the number of then in its place. Control flow
that depends on one becomes a check, and a replay for which it fails is recorded instead.
"""

import operator
import re
from typing import Any, Callable, NamedTuple

import torch
from torch.overrides import TorchFunctionMode


class Changed(Exception):
    """The host would go another way than when the step was captured."""


_VALUES, _CONSTANTS = re.compile(r"\bv\d+\b"), re.compile(r"\bc\d+\b")


class _Line(NamedTuple):
    target: str
    text: str  # of names and operators only
    effect: bool


def _symbolic(function: Callable[..., Any], text: str, reverse: bool = False) -> Callable[..., Any]:
    def method(self: "Traced", *others: Any) -> Any:
        plain = [_plain(x) for x in (self, *others)]
        if not all(type(x) in (float, int) for x in plain):
            return NotImplemented
        value = function(*reversed(plain)) if reverse else function(*plain)
        return self.tape.number(value, text, self, *others) if type(value) is float else value

    return method


def _decision(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    def method(self: "Traced", *others: Any) -> Any:
        value = function(*[_plain(x) for x in (self, *others)])
        self.tape.expect(value, text, self, *others)
        return value

    return method


class Traced(float):
    """A float of the host that remembers how it was computed."""

    tape: "HostTape"
    name: str

    __add__ = _symbolic(operator.add, "{} + {}")
    __radd__ = _symbolic(operator.add, "{1} + {0}", reverse=True)
    __sub__ = _symbolic(operator.sub, "{} - {}")
    __rsub__ = _symbolic(operator.sub, "{1} - {0}", reverse=True)
    __mul__ = _symbolic(operator.mul, "{} * {}")
    __rmul__ = _symbolic(operator.mul, "{1} * {0}", reverse=True)
    __truediv__ = _symbolic(operator.truediv, "{} / {}")
    __rtruediv__ = _symbolic(operator.truediv, "{1} / {0}", reverse=True)
    __pow__ = _symbolic(operator.pow, "{} ** {}")
    __rpow__ = _symbolic(operator.pow, "{1} ** {0}", reverse=True)
    __neg__ = _symbolic(operator.neg, "-{}")
    __abs__ = _symbolic(abs, "abs({})")
    __lt__ = _decision(operator.lt, "{} < {}")
    __le__ = _decision(operator.le, "{} <= {}")
    __gt__ = _decision(operator.gt, "{} > {}")
    __ge__ = _decision(operator.ge, "{} >= {}")
    __eq__ = _decision(operator.eq, "{} == {}")
    __ne__ = _decision(operator.ne, "{} != {}")
    __bool__ = _decision(bool, "bool({})")
    __int__ = _decision(int, "int({})")
    __hash__ = _decision(hash, "hash({})")


def _plain(x: Any) -> Any:
    return float.__float__(x) if isinstance(x, Traced) else x


def _is_host(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.device.type == "cpu"


class HostProgram:
    """Lines that ran on the host, ready to run again. Undone, its effects on CPU tensors are as if it had not run."""

    def __init__(self, body: list[str], constants: dict[str, Any], changed: list[torch.Tensor]) -> None:
        used = {name: constants[name] for name in _CONSTANTS.findall(" ".join(body))}
        source = f"def bind(Changed, {', '.join(used)}):\n  def run():\n    " + "\n    ".join(body) + "\n  return run"
        scope: dict[str, Any] = {}
        exec(compile(source, "<host part of a step>", "exec"), scope)  # noqa: S102  (names and operators only)
        self._run: Callable[[], list[float]] = scope["bind"](Changed, **used)
        self._changed, self._before = changed, [t.clone() for t in changed]
        #: Equal for captures that do the same on the host to the same tensors.
        self.identity = source + repr([id(x) if callable(x) or _is_host(x) else x for x in used.values()])

    def run(self) -> list[float]:
        """Runs; returns the numbers it hands to the device. Raises :class:`Changed`, which leaves it to be undone."""
        if self._changed:
            torch._foreach_copy_(self._before, self._changed)
        return self._run()

    def undo(self) -> None:
        """Takes back what the last run did to CPU tensors."""
        if self._changed:
            torch._foreach_copy_(self._changed, self._before)


class HostTape(TorchFunctionMode):
    """Writes down what a step does on the host; see the module."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[_Line] = []
        self._constants: dict[str, Any] = {}
        self._places: dict[int, str] = {}
        self._made: dict[int, tuple[str, torch.Tensor]] = {}
        self._changed: dict[int, torch.Tensor] = {}
        self._handed: list[tuple[str, float]] = []
        self._open = True

    def __exit__(self, *exception: Any) -> None:
        self._open = False
        super().__exit__(*exception)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in ("__get__", "__set__"):
            return func(*args, **kwargs)
        leaves = [x for a in (*args, *kwargs.values()) for x in (a if isinstance(a, (list, tuple)) else (a,))]
        if any(isinstance(x, torch.Tensor) and x.device.type != "cpu" for x in leaves):
            self._hand_over(leaves)
            return func(*args, **kwargs)
        hosts = [x for x in leaves if _is_host(x)]
        versions = [t._version for t in hosts]
        out = func(*args, **kwargs)
        return self._host_call(func, args, kwargs, hosts, versions, out)

    def _hand_over(self, leaves: list[Any]) -> None:
        for x in leaves:
            if isinstance(x, Traced):
                self._handed.append((x.name, float(x)))
            elif _is_host(x) and x.dim() == 0 and x.dtype.is_floating_point:
                name = self._name(x)
                self._handed.append((self._line(f"{name}.item()"), x.item()))

    def _host_call(self, func: Any, args: Any, kwargs: Any, hosts: list[torch.Tensor], versions: list[int], out: Any) -> Any:
        changed = [t for t, v in zip(hosts, versions) if t._version != v]
        texts = [self._text(a) for a in args] + [f"{k}={self._text(a)}" for k, a in kwargs.items()]
        call = f"{self._constant(func)}({', '.join(texts)})"
        if _is_host(out) or changed:
            for t in changed:
                if id(t) not in self._made:
                    self._changed[id(t)] = t
            name = self._line(call, effect=bool(changed))
            if _is_host(out) and id(out) not in self._made and not any(out is t for t in hosts):
                self._made[id(out)] = (name, out)
        elif func is torch.Tensor.item and type(out) is float:
            return self._traced(out, self._line(call))
        elif hosts and isinstance(out, (bool, int, float)) and not _is_metadata(func):
            self._check(call, out)
        return out

    def number(self, value: float, text: str, *operands: Any) -> float:
        """The number that ``text`` computes from its operands."""
        if not self._open:
            return value
        return self._traced(value, self._line(text.format(*map(self._text, operands))))

    def expect(self, value: Any, text: str, *operands: Any) -> None:
        """A replay is right only if ``text`` gives this value again."""
        if not self._open:
            return
        self._check(text.format(*map(self._text, operands)), value)

    def _traced(self, value: float, name: str) -> Traced:
        number = Traced(value)
        number.tape, number.name = self, name
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
        if isinstance(x, Traced):
            return x.name
        if isinstance(x, torch.Tensor):
            return self._name(x)
        if isinstance(x, (list, tuple)):
            return "[" + ", ".join(map(self._text, x)) + "]"
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
        return HostProgram(body, self._constants, list(self._changed.values()))


def _is_metadata(func: Any) -> bool:
    """Whether a method tells about a tensor without reading it."""
    return getattr(func, "__name__", "") in _METADATA


_METADATA = frozenset(
    "size stride dim ndimension numel nelement element_size storage_offset is_contiguous is_floating_point is_complex"
    " is_pinned is_shared is_set_to is_inference is_same_size is_conj is_neg is_signed data_ptr get_device __len__"
    " _is_view is_storage is_tensor".split()
)
