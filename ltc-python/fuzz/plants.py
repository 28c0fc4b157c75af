"""Mistakes put in on purpose, by which the harness is tested: it has to find each, and say which statement it takes."""

import contextlib
import os
import signal
import time
from unittest import mock

import torch
import torch_ltc
from torch.overrides import TorchFunctionMode
from torch_ltc._results import LeftResult


def _on_ltc(args):
    return any(isinstance(a, torch.Tensor) and a.device.type == "ltc" for a in args)


class _Wrong(TorchFunctionMode):
    """Calls of one name on ltc do something else."""

    def __init__(self, name, instead):
        super().__init__()
        self.name, self.instead = name, instead

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") == self.name and _on_ltc(args):
            return self.instead(func, *args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _raise(func, *args, **kwargs):
    raise ValueError("planted")


def _loop(func, *args, **kwargs):
    end = time.process_time() + 5
    while time.process_time() < end:
        pass
    return func(*args, **kwargs)


def _stale(function):
    """A step that is called four times, then gives what it gave."""
    given = []

    def call(*inputs):
        if len(given) < 4:
            given.append(function(*inputs))
        return given[-1]

    call.counts, call.refusal, call.explain = (1, 1), "", lambda: "planted"
    return call


PLANTS = {
    "value": lambda: _Wrong("relu", lambda f, *a, **k: f(*a, **k) + 1),
    "dtype": lambda: _Wrong("abs", lambda f, *a, **k: f(*a, **k).to(torch.float64)),
    "strides": lambda: _Wrong("transpose", lambda f, *a, **k: f(*a, **k).contiguous()),
    "version": lambda: _Wrong("mul_", lambda f, x, *a, **k: (f(x.data, *a, **k), x)[1]),
    "error": lambda: _Wrong("neg", _raise),
    "hang": lambda: _Wrong("tanh", lambda f, *a, **k: time.sleep(3600)),
    "loop": lambda: _Wrong("tanh", _loop),
    "lost": lambda: mock.patch.object(LeftResult, "put", lambda *_: None),
    "crash": lambda: _Wrong("sigmoid", lambda f, *a, **k: os.kill(os.getpid(), signal.SIGSEGV)),
}


@contextlib.contextmanager
def planted(plant):
    """The compiler of steps to use, while a mistake (or none) is in force."""
    if plant == "stale":
        yield _stale
    elif plant:
        with PLANTS[plant]():
            yield torch_ltc.compile
    else:
        yield torch_ltc.compile
