"""Counters and timings (``torch._lazy.metrics``)."""

from torch_ltc import _ltc


def reset():
    """Sets all counters and timings to zero."""
    _ltc.reset_metrics()


def counter_names():
    """Names of the counters that are not zero. Operators that ran eagerly are counted under their own name."""
    return list(_ltc.counters())


def counter_value(name: str):
    """Value of a counter; ``None`` when there is none of this name."""
    return _ltc.counters().get(name)


def metrics_report():
    """All counters and timings as text."""
    return _ltc.metrics_report()
