"""What the garbage collector and reference counts show of the objects that there are."""

import contextlib
import gc
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def all_shown() -> Iterator[None]:
    """Lets `gc.get_objects` and `gc.get_referrers` show those objects, too, that the program keeps from collections
    (`gc.freeze`). Where there are such, everything is kept from collections afterwards."""
    is_frozen = gc.get_freeze_count() > 0
    if is_frozen:
        gc.unfreeze()
    try:
        yield
    finally:
        if is_frozen:
            gc.freeze()


def calls_keep_references() -> bool:
    """Whether calls keep references to their arguments that no object shows, as after a `torch.compile` that failed."""
    return _others_count() > _counts()


def _counts(**given: Any) -> int:
    """The reference count of an object that an ordinary call was given."""
    return sys.getrefcount(given)


def _others_count(given: Any = None) -> int:
    """The same, which is higher where calls keep references to their arguments."""
    return sys.getrefcount(given) if given is not None else _others_count({})
