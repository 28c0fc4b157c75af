"""The backend (``torch._lazy.ts_backend``)."""


def init() -> None:
    """Nothing to do: importing :mod:`torch_ltc` registers the device and its backend."""
