"""Counters and timings (``torch._lazy.metrics``)."""

from torch_ltc import _ltc


def reset() -> None:
    """Sets all counters and timings to zero."""
    _ltc.reset_metrics()


def counter_names() -> list[str]:
    """Names of the counters that are not zero. Operators that ran eagerly are counted under their own name."""
    return list(_ltc.counters())


def counter_value(name: str) -> int | None:
    """Value of a counter; ``None`` when there is none of this name."""
    return _ltc.counters().get(name)


def executions() -> dict[str, int]:
    """What executions of programs did since the process began, by name: steps, kernels of ours, writes in place, graphs
    of a GPU's, and others. They run behind the program; :func:`torch_ltc.wait_device_ops` waits for them."""
    return _ltc.executions()


def metrics_report() -> str:
    """All counters and timings as text."""
    return _ltc.metrics_report()


def set_profiling(on: bool) -> None:
    """Starts or stops timing the steps of compiled programs."""
    _ltc.set_profiling(bool(on))


def profile_report() -> str:
    """The steps timed since the last call, those that took longest first: total time, runs, operators, first result."""
    rows = (f"{seconds * 1e3:>12.3f} ms {count:>8}x  {name}\n" for seconds, count, name in _ltc.take_profile())
    return "".join(rows)
