"""Traced numbers: floats and whole numbers of the host that remember how they were computed.

While a step is captured, a number that may be another one at the next call is replaced by one of these. Its operators
give the usual value, wrapped again, and have the recorder (`_host_written.py`) note a line of Python that computes it
in a replay. A comparison, or anything else that depends on the value, has the recorder note a guard: a replay is right
only if that gives the same again. C code that reads such a number directly leaves no trace; other modules take care of
that (`_calls.py`, `_counters.py`). Programs should not notice any of this: a traced float is an instance of `float`.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from torch.utils._pytree import tree_map

from torch_ltc._known import takes_numbers

if TYPE_CHECKING:
    from torch_ltc._host_written import LineWriter

#: Classes of plain numbers whose arithmetic is traced.
NUMBERS = (bool, int, float)


def _are_apart(self: "TracedFloat | TracedInt", others: tuple[Any, ...]) -> bool:
    """Whether operands are numbers of different captures, as where two threads capture steps that share an optimiser.
    Then each is guarded, and the result is plain."""
    traced = [self, *[x for x in others if type(x) in (TracedFloat, TracedInt)]]
    if all(x._ltc_recorder is self._ltc_recorder for x in traced):
        return False
    for x in traced:
        x._ltc_recorder.expect(plain(x), "{}", x)
    return True


def _applied(function: Callable[..., Any], operands: Sequence[Any], numbers: Iterable[Any]) -> Any:
    """What a function gives for plain operands. Where it raises an exception by their values (a division by zero), the
    program may go on, so these numbers are guarded."""
    try:
        return function(*operands)
    except Exception:
        for x in numbers:
            _guarded(x)
        raise


def _symbolic(function: Callable[..., Any], text: str, reverse: bool = False) -> Callable[..., Any]:
    """A method that computes a number, which is traced: `text` is the line's expression, with the operands as fields.
    Beside an operand that is no number, that operand's class computes: where it may do so in C, the value is
    guarded."""

    def method(self: "TracedFloat | TracedInt", *others: Any) -> Any:
        operands = [plain(x) for x in (self, *others)]
        if len(others) > 1:  # a power modulo a number
            self._ltc_recorder.expect(plain(self), "{}", self)
            return pow(*operands)
        if _are_apart(self, others):
            return function(*reversed(operands)) if reverse else function(*operands)
        if not all(type(x) in NUMBERS for x in operands):
            if type(self) is TracedInt or any(
                type(x) is complex or takes_numbers(cast(Any, type(x))) for x in operands
            ):
                self._ltc_recorder.expect(plain(self), "{}", self)
            return NotImplemented
        value = _applied(function, operands[::-1] if reverse else operands, (self, *others))
        if type(value) in (int, float):
            return self._ltc_recorder.number(value, text, self, *others)
        for x in (self, *others):  # the result is a complex number, which is not traced
            if type(x) in (TracedFloat, TracedInt):
                self._ltc_recorder.expect(plain(x), "{}", x)
        # Beside a complex number, numbers are read in C.
        self._ltc_recorder.guard_held_numbers(ahead=True)
        return value

    return method


def _decision(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    """A method whose result is not traced but guarded: in a replay, the expression `text` has to give the same."""

    def method(self: "TracedFloat | TracedInt", *others: Any) -> Any:
        operands = [plain(x) for x in (self, *others)]
        if _are_apart(self, others):
            return function(*operands)
        if type(self) is TracedInt and not all(type(x) in (*NUMBERS, str) for x in operands):
            self._ltc_recorder.expect(plain(self), "{}", self)
            return NotImplemented
        value = _applied(function, operands, (self, *others))
        self._ltc_recorder.expect(value, text, self, *others)
        if type(value) is complex:
            self._ltc_recorder.guard_held_numbers(ahead=True)
        return value

    return method


def _guarded(x: Any) -> Any:
    """The plain number of a traced one, guarded; anything else as it is."""
    if type(x) in (TracedFloat, TracedInt):
        x._ltc_recorder.expect(plain(x), "{}", x)
    return plain(x)


class _TracedNumber:
    """What traced floats and traced whole numbers have in common. `_ltc_name` is the name of the variable that holds
    the number in the recorded lines."""

    # The attributes have names that no program asks for, as it may of `name`.
    __slots__ = ()
    if TYPE_CHECKING:
        _ltc_recorder: "LineWriter"
        _ltc_name: str

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
    __lt__ = _decision(operator.lt, "{} < {}")
    __le__ = _decision(operator.le, "{} <= {}")
    __gt__ = _decision(operator.gt, "{} > {}")
    __ge__ = _decision(operator.ge, "{} >= {}")
    __eq__ = _decision(operator.eq, "{} == {}")
    __ne__ = _decision(operator.ne, "{} != {}")
    __bool__ = _decision(bool, "bool({})")

    def __hash__(self) -> int:
        """The hash of the number, with a guard on its value: what asks for it (a dict) keeps the number, and -1.0 and
        -2.0 have one hash."""
        number = cast(Any, self)
        self._ltc_recorder.expect(plain(number), "{}", number)
        return hash(plain(number))


class _BesideNumPy:
    """NumPy's functions and operators get plain numbers, guarded: beside an array of 32 bits, a float that is of a
    subclass would make the result one of 64."""

    __slots__ = ()

    def __array_ufunc__(self, function: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return self.__array_function__(getattr(function, method), (), args, kwargs)

    def __array_function__(self, function: Any, _: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = tree_map(_guarded, (args, kwargs))
        return function(*args, **kwargs)


class ReleasedFloat(_BesideNumPy, float):
    """A float that was traced until its call ended: the base of those that are."""

    __slots__ = ("__weakref__", "_ltc_name", "_ltc_recorder")

    def __reduce_ex__(self, _: object) -> Any:
        return float, (float.__float__(self),)


class ReleasedInt(_BesideNumPy, int):
    """A whole number that was traced until its call ended: the base of those that are."""

    def __reduce_ex__(self, _: object) -> Any:
        return int, (int.__pos__(self),)


class TracedFloat(_TracedNumber, ReleasedFloat):
    """A float that remembers how it was computed."""

    __slots__ = ()

    def __new__(cls, value: Any, recorder: "LineWriter | None" = None, name: str = "") -> Any:
        """A traced float; or a plain one for a program that calls the class of a number (`type(x)(...)`)."""
        if recorder is None:
            return float(value)
        self = float.__new__(cls, value)
        self._ltc_recorder, self._ltc_name = recorder, name
        return self

    __abs__ = _symbolic(abs, "abs({})")
    __int__ = _decision(int, "int({})")
    __trunc__ = _decision(float.__trunc__, "float.__trunc__({})")
    __floor__ = _decision(float.__floor__, "float.__floor__({})")
    __ceil__ = _decision(float.__ceil__, "float.__ceil__({})")
    __float__ = _decision(float, "float({})")
    is_integer = _decision(float.is_integer, "float.is_integer({})")
    hex = _decision(float.hex, "float.hex({})")
    as_integer_ratio = _decision(float.as_integer_ratio, "float.as_integer_ratio({})")
    __complex__ = _decision(complex, "complex({})")
    __divmod__ = _decision(divmod, "divmod({}, {})")
    __rdivmod__ = _decision(lambda x, y: divmod(y, x), "divmod({1}, {0})")
    __str__ = _decision(float.__repr__, "repr({})")
    __repr__ = _decision(float.__repr__, "repr({})")
    __format__ = _decision(float.__format__, "format({}, {})")
    real = property(lambda self: self)
    imag = property(lambda self: 0.0)

    __getnewargs__ = _decision(float.__getnewargs__, "float.__getnewargs__({})")

    def __round__(self, *digits: Any) -> Any:
        """The rounded number, guarded."""
        value = round(plain(self), *map(plain, digits))
        self._ltc_recorder.expect(value, "round({}, {})" if digits else "round({})", self, *digits)
        return value

    def __reduce_ex__(self, _: object) -> Any:
        """Pickled as a plain float, with a guard on the value."""
        self._ltc_recorder.expect(plain(self), "{}", self)
        return float, (plain(self),)

    def conjugate(self) -> "TracedFloat":
        """The number itself."""
        return self

    def __copy__(self) -> "TracedFloat":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "TracedFloat":
        return self


TracedFloat.__doc__ = float.__doc__  # programs see the class as that of floats


class TracedInt(_TracedNumber, ReleasedInt):
    """A whole number that remembers how it was computed. It is lent only to code that does no more than count with it
    (`_counters.py`): C code uses whole numbers in many ways (an index, a range) that leave no trace."""

    def __new__(cls, value: Any, recorder: "LineWriter | None" = None, name: str = "") -> Any:
        """A traced number; or a plain one for a program that calls the class of a number."""
        if recorder is None:
            return int(value)
        self = int.__new__(cls, value)
        self._ltc_recorder, self._ltc_name = recorder, name
        return self

    __index__ = _decision(int.__index__, "{}")
    __int__ = _decision(int.__int__, "{}")
    __float__ = _decision(int.__float__, "float({})")
    __str__ = _decision(int.__repr__, "repr({})")
    __repr__ = _decision(int.__repr__, "repr({})")
    __format__ = _decision(int.__format__, "format({}, {})")

    def __reduce_ex__(self, _: object) -> Any:
        """Pickled as a plain number, with a guard on the value."""
        self._ltc_recorder.expect(plain(self), "{}", self)
        return int, (plain(self),)


def release(number: "TracedFloat | TracedInt") -> None:
    """Ends the tracing of a number whose call has ended, wherever it is held: a later capture could take it for one of
    its own."""
    del number._ltc_recorder, number._ltc_name
    cast(Any, number).__class__ = ReleasedInt if type(number) is TracedInt else ReleasedFloat


def plain(x: Any) -> Any:
    """The plain number of a traced or released one; anything else as it is."""
    if type(x) in (TracedInt, ReleasedInt):
        return int.__pos__(x)
    return float.__float__(x) if type(x) in (TracedFloat, ReleasedFloat) else x
