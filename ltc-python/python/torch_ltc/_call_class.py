"""What a compiled step knows of one class of its calls: captures that wait to be confirmed, and why it has none."""

from torch_ltc._history import DOUBLE_BACKWARD, DoubleBackward
from torch_ltc._reads import EarlierCapture, Reads

#: Which call after a refusal is captured again: the second after the first refusal, the eighth after the second, none
#: after the third. The first calls of a program may do what later ones do not (DDP arranges its buckets in the second).
_PAUSES = (8, 2)
#: How many captures a class may have before one is replayed, whatever the step's others cost.
_MAX_TRIES = 4


class CallClass:
    """What is known of calls that one capture might serve: those with the same key, inputs of the same shapes, dtypes
    and layouts, and the same state of the thread."""

    def __init__(self) -> None:
        #: Captures that wait to be confirmed by a later one, newest first.
        self.captures: list[EarlierCapture] = []
        #: Why calls of this class are recorded; empty where they may be captured.
        self.refusal = ""
        #: The last refusal, which stays when the refusal is lifted for another try.
        self.last_refusal = ""
        #: Which of the next calls tries a refused class again (0: none), and how many more tries there will be.
        self.pause, self.retries = 0, len(_PAUSES)
        #: How many captures it took so far to have one that is replayed; `None` once there was one.
        self.tries: int | None = 0
        #: What the last call of this class read.
        self.reads: Reads | None = None
        #: Whether the results of the last call had an autograd history.
        self.has_history = False
        #: Whether somebody differentiated a gradient of such a call again.
        self.double_backward = DoubleBackward()

    def refuse(self, why: str) -> str:
        """Has calls of this class recorded from here on: for a few calls while there are retries left, then for good.
        Returns the reason."""
        self.refusal = self.last_refusal = why
        self.retries -= 1
        self.pause = _PAUSES[self.retries] if self.retries >= 0 else 0
        return why

    def is_refused(self) -> bool:
        """Whether the next call is recorded without an attempt to capture it. Counts down the pause of a refusal."""
        if self.double_backward.found:
            self.refusal = DOUBLE_BACKWARD
            return True
        if self.refusal and self.pause:
            self.pause -= 1
            if not self.pause:
                self.refusal = ""
                return False
        return bool(self.refusal)

    def has_begun(self) -> bool:
        """Whether there are captures of this class, none of which is replayed yet: a few more may confirm one."""
        return self.tries is not None and 0 < self.tries < _MAX_TRIES
