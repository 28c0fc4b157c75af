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
#: How far losses, and the gradients of the first step together, may be from the CPU's, by the dtype of most parameters,
#: and from the truth: twice as far as the CPU's are, where those are not far.
_NEAR = {torch.float32: 1e-4, torch.bfloat16: 2e-2}
_NEAR_GRADIENTS = {torch.float32: 1e-3, torch.bfloat16: 1e-1}
_FAR = 2e-2
#: Seconds that a block of eager's timed steps takes, about, and how many blocks each way has.
_BLOCK, _ROUNDS = 0.1, 5


class Runner:
    """An entry that is trained in one way; `eager` is on the CPU, `truth` in double precision, `aot_eager` compiled by
    the backend that does what `backend` does to the graph and then runs it as it is."""

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
        if way in ("backend", "aot_eager"):
            forward = torch.compile(model, backend="ltc" if way == "backend" else way)
        self.forward, self.learn = forward, self.task.step(forward, self.device)
        if way == "compiled":
            self.learn = self.compiled = torch_ltc.compile(self.learn)
        #: What each step compiled and ran eagerly, and its loss.
        self.programs, self.eager, self.losses = [], [], []
        #: All that the first step left in `grad`, as one vector; None where it left nothing.
        self.gradients = None

    def step(self, number):
        """Runs a step; its loss, which nobody has read."""
        batch = moved(self.task.batch(number, self.forward, self.device), self.device, self.dtype)
        loss = self.learn(batch)
        if self.way == "recorded":
            torch_ltc.mark_step()
        return loss

    def checked(self, number):
        """Runs a step with draws of its own, and reads its loss."""
        torch.manual_seed(100 + number + (self.plant == "draws"))
        programs, eager = _programs(), _eager()
        loss = self.step(number).item()
        self.wait()
        self.programs.append(_programs() - programs)
        self.eager.append({name: n - eager.get(name, 0) for name, n in _eager().items() if n > eager.get(name, 0)})
        self.losses.append(loss * 1.01 if self.plant == "loss" else loss)
        if number == 0:
            found = [p.grad.detach() for p in self.task.model.parameters() if p.grad is not None]
            self.gradients = torch.cat([g.cpu().double().flatten() for g in found]) if found else None

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
    rows, runners, errors = {way: {} for way in ("eager", *ways)}, {}, {}
    torch._dynamo.reset()

    def attempt(way, what, call, *args):
        """The result of a call; what fails ends its way, but eager's failure is the entry's."""
        at(f"{way}, {what}")
        try:
            return call(*args)
        except Exception as e:
            if way == "eager":
                raise
            errors[way] = f"{what}: {_words(e)}"
            return None

    def train(*these):
        """Trains them, a step of each in turn."""
        for way in these:
            runners[way] = attempt(way, "making it", Runner, name, way, plant if way in ways else None)
        for number in range(STEPS):
            for way in these:
                if way not in errors:
                    attempt(way, f"step {number}", runners[way].checked, number)

    as_it_is = []
    with _told(as_it_is):
        train("eager")
        # Dynamo's work between their steps would be a change that compiled steps notice: it comes last.
        for turn in ([w for w in ways if w != "backend"], [w for w in ways if w == "backend"]):
            train(*turn)
            if timed:
                _time([way for way in turn if way not in errors], runners, rows, attempt)
        for way in ways:
            rows[way] |= _judged(way, runners, errors, train)
            if way not in errors:
                rows[way] |= _counted(runners[way])
    if "backend" in rows:
        rows["backend"]["as it is"] = sorted(set(as_it_is))
    eager = runners["eager"].losses
    if not all(map(math.isfinite, eager)) or len(set(eager)) < STEPS // 2:
        raise RuntimeError(f"this entry trains nothing: its losses are {eager}")
    return {"ways": rows, "losses": {way: runners[way].losses if runners[way] else [] for way in rows}}


def _judged(way, runners, errors, train):
    """What is wrong with a way, in words: its `error`, or its `difference` from eager that is none of roundings.

    What is wrong with `backend` is looked for in `aot_eager` too: what PyTorch does to the graph is PyTorch's.
    """
    eager, runner = runners["eager"], runners[way]
    found = {"error": errors[way]} if way in errors else {"difference": _differ(eager, runner, None)}
    if found.get("difference"):
        if "truth" not in runners:
            train("truth")
        found["difference"] = _differ(eager, runner, errors.get("truth", runners["truth"]))
    if way != "backend" or not any(found.values()):
        return found
    torch._dynamo.reset()
    train("aot_eager")
    if "error" in found:
        alike = "aot_eager" in errors and f"aot_eager fails too, {errors['aot_eager']}"
    else:
        alike = "aot_eager" not in errors and not _differ(runners["aot_eager"], runner, None)
        alike = alike and f"aot_eager differs alike, {_differ(eager, runners['aot_eager'], None)}"
    return found | {"aot_eager": alike or None}


def _differ(expected, runner, truth):
    """Where a runner's gradients or losses differ from those of another and may not, in words."""
    dtype = next(p.dtype for p in expected.task.model.parameters())
    if isinstance(truth, Runner):
        true_losses, true_gradients = truth.losses, truth.gradients
    else:
        true_losses = true_gradients = truth
    return _gradients_differ(
        expected.gradients, runner.gradients, _NEAR_GRADIENTS[dtype], true_gradients
    ) or _difference(expected.losses, runner.losses, _NEAR[dtype], true_losses)


def _gradients_differ(eager, ours, near, truth):
    """Whether the first step's gradients differ and may not, in words."""
    if eager is None or ours is None:
        return None if eager is ours else "one leaves gradients, and the other does not"
    far = lambda a, b: (float((a - b).norm() / eager.norm().clamp(min=1e-12))) if len(a) == len(b) else math.inf
    apart = far(eager, ours)
    if apart <= near:
        return None
    said = f"step 0: the gradients are {apart:.2g} from the CPU's, as a part of their norm"
    if not isinstance(truth, torch.Tensor):
        return said
    cpu, own = far(eager, truth), far(ours, truth)
    if own > 2 * cpu or cpu > _FAR:
        return f"{said}; from those in double precision they are {own:.2g}, the CPU's {cpu:.2g}"
    return None


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


def _difference(eager, ours, near, truth):
    """Where losses differ and may not, in words. What roundings did in one step is there in the next ones."""
    worst = 0.0
    for number, (expected, got) in enumerate(zip(eager, ours)):
        if isinstance(truth, list):
            worst = max(worst, abs(expected - truth[number]))
        allowed = near * max(abs(expected), 1e-2)
        if abs(got - expected) <= allowed:
            continue
        said = f"step {number}: the loss is {got:.8g}, the CPU's {expected:.8g}"
        if isinstance(truth, str):
            return f"{said}; no run in double precision: {truth}"
        if truth is None:
            return said
        if abs(got - truth[number]) > 2 * worst or worst > _FAR * max(abs(expected), 1e-2):
            return f"{said}, in double precision {truth[number]:.8g}"
    return None
