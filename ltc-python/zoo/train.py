"""Trains an entry on the CPU and in each way of ltc, step by step in turn, and says what differs and what it took."""

import contextlib
import math
import time
import warnings

import torch
import torch_ltc

from . import models
from .task import moved

#: ``recorded``: the model is on ltc. ``compiled``: and its step is compiled. ``backend``: the model is on the CPU, and
#: compiled by ``torch.compile(backend="ltc")``.
WAYS = ("recorded", "compiled", "backend")
#: Steps that are compared; those after the first few have to find all programs made.
STEPS, SETTLED = 12, 3
#: How far losses may be from the CPU's, by the dtype of most parameters, and from the truth: twice as far as the CPU's
#: are, where those are not far.
_NEAR = {torch.float32: 1e-4, torch.bfloat16: 2e-2}
_FAR = 2e-2
#: Seconds that a block of eager's timed steps takes, about, and how many blocks each way has.
_BLOCK, _ROUNDS = 0.1, 3


class Runner:
    """An entry that is trained in one way; `eager` is on the CPU, `truth` in double precision."""

    def __init__(self, name, way, plant=None):
        torch.manual_seed(0)
        self.task, self.way = models.make(name), way
        self.device = torch.device("ltc" if way in ("recorded", "compiled") else "cpu")
        self.dtype = torch.float64 if way == "truth" else None
        model = self.task.model.to(self.device, self.dtype).train()
        if plant == "gradient":
            next(model.parameters()).register_hook(torch.zeros_like)
        self.plant = plant
        self.compiled, forward = None, model
        if way == "backend":
            forward = torch.compile(model, backend="ltc")
        self.forward, self.learn = forward, self.task.step(forward, self.device)
        if way == "compiled":
            self.learn = self.compiled = torch_ltc.compile(self.learn)
        #: What each step compiled and ran eagerly.
        self.programs, self.eager = [], []

    def step(self, number):
        """Runs a step; its loss, which nobody has read."""
        batch = moved(self.task.batch(number, self.forward, self.device), self.device, self.dtype)
        loss = self.learn(batch)
        if self.way == "recorded":
            torch_ltc.mark_step()
        return loss

    def checked(self, number):
        """Runs a step with draws of its own, and reads its loss."""
        torch.manual_seed(100 + number)
        programs, eager = _programs(), _eager()
        loss = self.step(number).item()
        self.wait()
        self.programs.append(_programs() - programs)
        self.eager.append({name: n - eager.get(name, 0) for name, n in _eager().items() if n > eager.get(name, 0)})
        return loss * 1.01 if self.plant == "loss" else loss

    def wait(self):
        """Waits until nothing is left to do."""
        if self.device.type == "ltc":
            torch_ltc.mark_step(wait=True)

    def block(self, first, steps):
        """Seconds that a step takes, of several."""
        self.wait()
        start = time.perf_counter()
        for number in range(first, first + steps):
            self.step(number)
        self.wait()
        return (time.perf_counter() - start) / steps


def _programs():
    return torch_ltc.metrics.counter_value("UncachedCompile") or 0


def _eager():
    return {name: count for name, _, count, _ in torch_ltc.fallbacks()}


def _words(error):
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0]}"[:400]


def examine(name, ways=WAYS, plant=None, timed=True, at=lambda text: None):
    """The row of an entry: what each way gave. `at` is told where it is."""
    rows, losses = ({way: made() for way in ("eager", *ways)} for made in (dict, list))
    runners = {}
    torch._dynamo.reset()

    def attempt(way, what, call, *args):
        """The result of a call; what fails ends its way, but eager's failure is the entry's."""
        at(f"{way}, {what}")
        try:
            return call(*args)
        except Exception as e:
            if way == "eager":
                raise
            rows[way]["error"] = f"{what}: {_words(e)}"
            runners[way] = None
            return None

    as_it_is = []
    with _told(as_it_is):
        runners["eager"] = attempt("eager", "making it", Runner, name, "eager")
        # Dynamo's work between their steps would be a change that compiled steps notice: it comes last.
        for turn in ([w for w in ways if w != "backend"], [w for w in ways if w == "backend"]):
            for way in turn:
                runners[way] = attempt(way, "making it", Runner, name, way, plant)
            _train(runners, losses, attempt)
            if timed:
                _time([way for way in turn if way in runners], runners, rows, attempt)
    truth = None
    for way in ways:
        losses[way] = [loss for loss in losses[way] if loss is not None]
        difference = _difference(losses["eager"], losses[way], _near(runners["eager"]), None)
        if difference and "error" not in rows[way]:
            truth = truth or _truth(name, at)
            difference = _difference(losses["eager"], losses[way], _near(runners["eager"]), truth)
        rows[way]["difference"] = difference
        if runners[way] is not None:
            rows[way] |= _counted(runners[way])
    if "backend" in rows:
        rows["backend"]["as it is"] = sorted(set(as_it_is))
    eager = losses["eager"]
    if not all(map(math.isfinite, eager)) or len(set(eager)) < STEPS // 2:
        raise RuntimeError(f"this entry trains nothing: its losses are {eager}")
    return {"ways": rows, "losses": losses}


def _train(runners, losses, attempt):
    """Trains those that were not yet, a step of each in turn."""
    for number in range(STEPS):
        for way, runner in list(runners.items()):
            if runner is not None and len(losses[way]) == number:
                losses[way].append(attempt(way, f"step {number}", runner.checked, number))


def _time(ways, runners, rows, attempt):
    """Times blocks of eager and of some ways in turn; a way's time is its fastest block's, and so is eager's beside
    them."""
    eager = runners["eager"]
    steps = max(2, min(20, int(_BLOCK / max(1e-6, attempt("eager", "timed", eager.block, STEPS, 2)))))
    beside = math.inf
    for turn in range(_ROUNDS):
        first = STEPS + 2 + turn * steps
        beside = min(beside, attempt("eager", "timed", eager.block, first, steps))
        for way in ways:
            if runners.get(way) is not None:
                seconds = attempt(way, "timed", runners[way].block, first, steps)
                if seconds is not None:
                    rows[way]["seconds"] = min(seconds, rows[way].get("seconds", math.inf))
    for way in ways:
        rows[way]["eager seconds"] = beside


def _counted(runner):
    """What a way took after it settled."""
    late = {}
    for eager in runner.eager[SETTLED:]:
        for operator, count in eager.items():
            late[operator] = late.get(operator, 0) + count / (STEPS - SETTLED)
    found = {"programs": runner.programs, "fallbacks": {k: round(n, 1) for k, n in late.items()}}
    if runner.compiled is not None:
        replayed, recorded = runner.compiled.counts
        found |= {"replayed": replayed, "calls": replayed + recorded, "explain": runner.compiled.explain()}
    return found


@contextlib.contextmanager
def _told(as_it_is):
    """Collects why graphs of the backend run as they are; other warnings say nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")

        def show(message, *where):
            if "runs as it is" in str(message):
                as_it_is.append(str(message).partition("on the CPU: ")[2].splitlines()[0][:300])

        warnings.showwarning = show
        yield


def _near(runner):
    return _NEAR[next(p.dtype for p in runner.task.model.parameters())]


def _truth(name, at):
    """Losses in double precision, or why there are none."""
    at("in double precision")
    try:
        runner = Runner(name, "truth")
        return [runner.checked(number) for number in range(STEPS)]
    except Exception as e:  # noqa: BLE001  (a model that cannot be of doubles has no truth)
        return _words(e)


def _difference(eager, ours, near, truth):
    """Where losses differ and may not, in words."""
    for number, (expected, got) in enumerate(zip(eager, ours)):
        allowed = near * max(abs(expected), 1e-2)
        if abs(got - expected) <= allowed:
            continue
        said = f"step {number}: the loss is {got:.8g}, the CPU's {expected:.8g}"
        if isinstance(truth, str):
            return f"{said}; no run in double precision: {truth}"
        if truth is None:
            return said
        cpu, own = abs(expected - truth[number]), abs(got - truth[number])
        if own > 2 * cpu or cpu > _FAR * max(abs(expected), 1e-2):
            return f"{said}, in double precision {truth[number]:.8g}"
    return None
