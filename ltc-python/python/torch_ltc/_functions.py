"""The functions of a step: those whose frames ran, with their code, defaults and cells, are watched."""

import gc
import types
from collections import deque

from torch_ltc import _ltc
from torch_ltc._collector import all_shown
from torch_ltc._reached import Reached
from torch_ltc._untracked import Untracked


class Functions(Reached):
    """The part of a survey that deals with the functions whose frames ran."""

    #: Knows which objects there were when the step began.
    _older: _ltc.Older | None = None
    #: Identities of arguments and gradients; those that something older holds, and what, in words; and objects of which
    #: the collector does not tell their age.
    _given: set[int]
    elsewhere: dict[int, str]
    untracked: Untracked

    def __init__(self) -> None:
        super().__init__()
        #: The code of the frames that ran, and the functions among them that are older than the step.
        self._codes: set[types.CodeType] = set()
        self._functions: dict[int, types.FunctionType] = {}

    def expect_collection(self) -> None:
        """Notes that the collector may be about to change what it knows."""
        raise NotImplementedError

    def note_function(self, frame: types.FrameType) -> None:
        """Notes the function that a frame runs, if it is older than the step."""
        self._codes.add(frame.f_code)
        function = _ltc.function_of_frame(frame)
        if function is not None and id(function) not in self._functions and self.is_older(function):
            self._functions[id(function)] = function

    def is_of_older(self, frame: types.FrameType) -> bool:
        """Whether a frame runs a function that is older than the step, so that its cells are older, too."""
        if _ltc.KNOWS_FRAMES:
            return self.is_older(_ltc.function_of_frame(frame))
        return any(f.__code__ is frame.f_code for f in self.all_functions())

    def all_functions(self) -> list[types.FunctionType]:
        """The functions that there are and that are older than the step, where frames do not tell theirs."""
        self.expect_collection()
        with all_shown():
            functions = [x for x in gc.get_objects() if type(x) is types.FunctionType]
        return [f for f in functions if self.is_older(f)]

    def look_at_functions(self) -> None:
        """Watches the functions whose frames ran: their code, defaults and cells."""
        if self._older is None:
            return
        # Where a frame does not tell which function it ran, it may have been any function with this code.
        for function in list(self._functions.values()) if _ltc.KNOWS_FRAMES else self.all_functions():
            if type(function) is types.FunctionType and function.__code__ in self._codes:
                code = function.__code__
                self.note_place("function", function)
                for name, cell in zip(code.co_freevars, function.__closure__ or ()):
                    self.note_place("cell", cell, name, code)
                    self.untracked.held.update(map(id, gc.get_referents(cell)))
                if function.__kwdefaults__:
                    self.note_place("dict", function.__kwdefaults__)
                    self.untracked.held.update(map(id, function.__kwdefaults__.values()))
                for value in function.__defaults__ or ():
                    self.untracked.held.add(id(value))
                    if id(value) in self._given:
                        self.elsewhere.setdefault(id(value), f"a default of {code.co_qualname}")
                    if isinstance(value, (list, set, deque)):
                        self.note_place("members", value)
                    elif isinstance(value, dict):
                        self.note_place("dict", value)
