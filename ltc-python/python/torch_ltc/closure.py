"""Step closures: work for the end of a step, where values are at hand (``torch._lazy.closure``)."""

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch_ltc.device_context import DeviceContext, get_device_context

Closure = Callable[[], object]


class ClosureHandler:
    """Runs closures one after the other on the calling thread."""

    def run(self, closure: Closure) -> None:
        """Runs one closure."""
        closure()

    def __call__(self, closures: Iterable[Closure]) -> None:
        """Runs closures in order."""
        for closure in closures:
            self.run(closure)


class AsyncClosureHandler(ClosureHandler):
    """Runs closures in order on a thread of its own. An exception surfaces at the next closure that is handed in."""

    def __init__(self, max_queue_size: int = 100) -> None:
        self._closures: queue.Queue[Closure] = queue.Queue(max_queue_size)
        self._error: Exception | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def _work(self) -> None:
        while True:
            try:
                closure = self._closures.get(timeout=3)
            except queue.Empty:
                with self._lock:
                    if self._closures.empty():
                        self._thread = None
                        return
                continue
            try:
                closure()
            except Exception as error:  # noqa: BLE001  (handed to whoever comes next)
                self._error = error
            finally:
                self._closures.task_done()

    def run(self, closure: Closure) -> None:
        """Queues one closure; raises what an earlier one raised."""
        if self._error is not None:
            error, self._error = self._error, None
            raise RuntimeError("an asynchronous step closure failed") from error
        with self._lock:
            self._closures.put(closure)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="ltc-closures", daemon=True)
                self._thread.start()

    def join(self) -> None:
        """Waits until everything queued has run."""
        self._closures.join()


def add_step_closure(closure: Callable[..., object], args: Sequence[Any] = (), run_async: bool = False) -> None:
    """Calls ``closure(*args)`` at the end of the step (:func:`torch_ltc.mark_step`).

    With ``run_async`` it runs on another thread, in order, while the next step is recorded. Tensors in ``args`` are
    those of this step: pass ``loss.detach()``, not the graph.
    """
    context = get_device_context()
    closures = context.async_step_closures if run_async else context.step_closures
    closures.append(lambda: closure(*args))


def has_step_closures() -> bool:
    """Whether closures were added since the last step."""
    context = get_device_context()
    return bool(context.async_step_closures or context.step_closures)


def run_step_closures() -> DeviceContext:
    """Runs the closures added since the last step; returns the device's context."""
    context = get_device_context()
    if not has_step_closures():
        return context
    asynchronous, context.async_step_closures = context.async_step_closures, []
    if asynchronous:
        context.async_closure_handler = context.async_closure_handler or AsyncClosureHandler()
        context.async_closure_handler(asynchronous)
    closures, context.step_closures = context.step_closures, []
    if closures:
        context.closure_handler = context.closure_handler or ClosureHandler()
        context.closure_handler(closures)
    return context
