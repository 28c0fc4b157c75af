"""What code reaches through objects that hold others without being containers: slices, generic aliases, properties as
values, exceptions, tracebacks, locks, and getters made by :mod:`operator`."""

import datetime
import functools
import gc
import operator
import types
from collections.abc import Iterable
from typing import Any

from torch_ltc._classes import Classes
from torch_ltc._effects import instructions
from torch_ltc._known import HOLDERS, LOCKS, PARTS_OF_ERRORS, READ_ATTRIBUTES, WRAPPERS, namespace
from torch_ltc._names import CodeNames

#: Functions of `operator` whose results read attributes, or call methods, by name.
_GETTERS = (operator.attrgetter, operator.methodcaller)
#: Kinds of descriptors that are written in C.
DESCRIPTORS = (
    *(types.MemberDescriptorType, types.WrapperDescriptorType),
    *(types.MethodDescriptorType, types.GetSetDescriptorType),
)
#: Attributes that lead to a frame, whose variables nothing tells of.
_TO_FRAMES = frozenset("tb_frame gi_frame cr_frame ag_frame".split())
_ASKS_FOR_TEXT = frozenset("repr ascii __repr__ __str__".split())


@functools.lru_cache(4096)
def _has_with(code: types.CodeType) -> bool:
    """Whether code has a `with` statement."""
    return any(step.opname in ("BEFORE_WITH", "LOAD_SPECIAL") for step in instructions(code))


class Parts(Classes):
    """The part of a survey that goes on from such objects."""

    def __init__(self) -> None:
        super().__init__()
        #: The code that was seen to have a getter at hand, with the names that the getter reads.
        self._getting: dict[types.CodeType, frozenset[str]] = {}
        #: The code that may read any attribute of what it has at hand, though its instructions do not show that.
        self._opening: set[types.CodeType] = set()

    def widened(self, info: CodeNames, frame: types.FrameType) -> CodeNames:
        """What code can read by name, with what it reads by getters that it was seen to have at hand: it may call them
        with anything that it reaches from then on."""
        if frame.f_code in self._opening and not (info.quiet or info.is_shut):
            info = info.opening() if not info.all_attributes else info
        names = self._getting.get(frame.f_code)
        return info if names is None or names <= info.added else info.naming(names)

    def of_globals(self, info: CodeNames, frame: types.FrameType) -> CodeNames:
        """What code can read by name of what it finds under the names of globals."""
        is_opened = info.all_attributes or frame.f_code in self._opening
        return info.closing().shut() if is_opened else info.closing()

    def opens_all(self, frame: types.FrameType) -> None:
        """Notes that the code of a frame may read any attribute of what it has at hand."""
        self._opening.add(frame.f_code)

    def _getter(self, x: "operator.attrgetter[Any]", info: CodeNames, frame: types.FrameType) -> Iterable[Any]:
        """An `attrgetter`: what it will be called with is not known."""
        names = frozenset(name for path in x.__reduce__()[1] for name in path.split("."))
        if not names.isdisjoint(("__dict__", *READ_ATTRIBUTES)):
            self.by_name(frame, "attrgetter")
        if "__class__" in names:
            self.refuse("it reads the class of objects by an attrgetter", frame)
        # With those of the getters before: names that come together are looked for once, not in each combination.
        names |= self._getting.get(frame.f_code, frozenset())
        self._getting[frame.f_code] = names
        # Any variable may be it. (The getter may be one itself.)
        variables = (*frame.f_locals.values(), *map(frame.f_globals.get, info.globals))
        for value in variables if not names <= info.added else ():
            self.look(value, info.naming(names), frame)
        return ()

    def _is_getting(self, x: type, frame: types.FrameType) -> None:
        """Code has a class at hand: it may make getters by it, under whatever name it has it."""
        if x in _GETTERS and frame.f_code not in self._opening:
            self.by_name(frame, x.__name__)

    def _is_part(self, kind: type) -> bool:
        """Whether :meth:`_inside` knows this class."""
        return kind in HOLDERS or kind in LOCKS or kind is types.TracebackType or issubclass(kind, WRAPPERS)

    def _inside(self, x: Any, kind: type, info: CodeNames, frame: types.FrameType, old: bool) -> Iterable[Any]:
        """What an object holds that never comes to hold something else."""
        if kind in LOCKS:
            if not _ASKS_FOR_TEXT.isdisjoint((*info.globals, *info.attributes)):
                self.refuse("it asks for the state of a lock by its text", frame)
            if _has_with(frame.f_code):  # no event tells of it
                self.uses_lock(frame, x, "__enter__")
            return ()
        if kind is types.TracebackType:
            if info.all_attributes:
                self.refuse("it reads what a traceback holds", frame)
            self.to_frame(info, frame)
            return (x.tb_next,) if "tb_next" in info.attributes else ()
        if kind in (datetime.time, datetime.datetime):
            return (x.tzinfo,)
        space = namespace(x)
        if space is not None and old and issubclass(kind, WRAPPERS):
            self.note_place("dict", space, None, frame.f_code)
        return [y for y in gc.get_referents(x) if y is not kind]

    def to_frame(self, info: CodeNames, frame: types.FrameType) -> None:
        """Refuses the step where code reads the frame of a traceback or a generator, by which it reads variables."""
        if names := _TO_FRAMES & info.attributes:
            self.refuse(f"it reads variables of a frame (.{min(names)})", frame)

    def _error(self, x: BaseException, info: CodeNames) -> list[Any]:
        """What an exception holds."""
        parts = [getattr(x, name) for name in PARTS_OF_ERRORS if name == "args" or name in info.attributes]
        # A class written in C may hold more (`StopIteration.value`).
        return [*parts, *(y for y in gc.get_referents(x) if type(y) is not types.TracebackType and y is not type(x))]

    def _started(self, x: Any, kind: type, info: CodeNames, frame: types.FrameType) -> Iterable[Any]:
        """What an iterator of the step's own goes over."""
        if kind is types.GeneratorType:
            self.to_frame(info, frame)
            return ()
        return gc.get_referents(x)
