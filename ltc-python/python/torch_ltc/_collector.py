"""What the garbage collector shows of the objects that there are."""

import contextlib
import gc
from collections.abc import Iterator


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
