"""Compares one entry of the database on ltc with the same calls on the CPU."""

import itertools
import warnings
from collections import Counter
from dataclasses import dataclass, field

import torch
import torch_ltc
from torch.utils._pytree import tree_leaves

from . import database, numbers
from .samples import describe, move

PHASES = ("forward", "backward", "inplace", "out", "error")
_SEED = 0


@dataclass
class Outcome:
    """What a call gave: a value (leaves of its result) or an exception, and whether that came only at the wait."""

    value: list | None = None
    error: Exception | None = None
    late: bool = False
    #: Operators that ran eagerly, and how often; none for a call that raises, whose operators gave no value.
    fallbacks: Counter = field(default_factory=Counter)


@dataclass
class Tally:
    """Counts over the comparisons of an entry."""

    checks: int = 0
    values: int = 0
    bitwise: int = 0
    #: Whether the device was lost, so that nothing more can be compared in this process.
    lost: bool = False
    fallbacks: Counter = field(default_factory=Counter)
    flags: dict = field(default_factory=dict)


def fallbacks():
    """Eager runs so far, by operator."""
    counts = Counter()
    for name, _, count, _ in torch_ltc.fallbacks():
        counts[name] += count
    return counts


def attempt(call):
    """Calls under the fixed seed and brings the result to the CPU. `Outcome.value` pairs each leaf with its host
    copy."""
    torch.manual_seed(_SEED)
    late = False
    before = fallbacks()
    try:
        leaves = tree_leaves(call())
        late = True
        value = [(x, x.detach().cpu() if isinstance(x, torch.Tensor) else x) for x in leaves]
        return Outcome(value=value, fallbacks=fallbacks() - before)
    except Exception as e:  # noqa: BLE001  (any class: it is what is compared)
        return Outcome(error=e, late=late)


class Checker:
    """Runs the phases for one entry; `fail(phase, dtype, sample, kind, message, repro)` and `at(text)` tell the
    parent."""

    def __init__(self, op, options, at, fail):
        self.op, self.options, self.at, self.fail = op, options, at, fail
        self.name = database.name(op)
        self.tally = Tally()
        self.host_arguments = op.name in database.HOST_ARGUMENTS
        self.device = getattr(options, "device", "ltc")

    def run(self):
        """All dtypes, all phases."""
        for dtype in database.dtypes(self.op, self.options.dtypes):
            self.dtype, self.word = dtype, str(dtype).removeprefix("torch.")
            self.tolerance = database.tolerance(self.op, dtype)
            self._dtype()
        if "error" in self.options.phases:
            self.word = "-"
            self._errors()
        return self.tally

    def _dtype(self):
        op = self.op
        grad = op.supports_autograd and self.dtype in op.supported_backward_dtypes("cpu")
        torch.manual_seed(_SEED)
        samples = op.sample_inputs("cpu", self.dtype, requires_grad=grad)
        samples = itertools.islice(samples, self.options.samples)
        if getattr(self.options, "numbers", False):
            samples = itertools.chain.from_iterable(map(numbers.variants, samples))
        for self.number, sample in enumerate(samples):
            self.repro = describe(self.name, sample)
            state = torch.get_rng_state()  # the generator of samples draws between them
            self._sample(sample, grad)
            torch.set_rng_state(state)

    def _sample(self, sample, grad):
        phases, op = self.options.phases, self.op
        self._phase("forward")
        cpu, ltc = self._both(sample, op)
        pair = attempt(cpu.call), attempt(ltc.call)
        good = self._compare(*pair, cpu, ltc)
        if grad and good and pair[0].error is None and "backward" in phases:
            self._phase("backward")
            self._backward(sample, pair, cpu, ltc)
        plain = _without_grad(sample)
        inplace = op.get_inplace()
        if "inplace" in phases and inplace is not None and not sample.broadcasts_input:
            self._phase("inplace")
            self._inplace(plain, inplace, strided=False)
            self._inplace(plain, inplace, strided=True)
        if "out" in phases and op.supports_out and pair[0].error is None:
            self._phase("out")
            for form in ("whole", "strided", "resized"):
                self._out(plain, pair[0], form)

    def _phase(self, phase):
        self.phase = phase
        self.at(f"{phase} {self.word} sample {self.number}: {self.repro}")

    def _both(self, sample, function):
        cpu, ltc = (Call(function, sample, device, self.host_arguments) for device in ("cpu", self.device))
        self.home = ltc.home()
        return cpu, ltc

    def _backward(self, sample, pair, cpu, ltc):
        results = []
        for call, outcome in zip((cpu, ltc), pair):
            outs = sample.output_process_fn_grad(call.result) if sample.output_process_fn_grad else call.result
            outs = [t for t in tree_leaves(outs) if isinstance(t, torch.Tensor) and t.requires_grad]
            leaves = [t for t in tree_leaves(call.arguments) if isinstance(t, torch.Tensor) and t.requires_grad]
            if not outs or not leaves:
                return
            torch.manual_seed(_SEED + 1)
            seeds = [torch.randn(t.shape, dtype=t.dtype).to(t.device) for t in outs]
            results.append(attempt(lambda: torch.autograd.grad(outs, leaves, seeds, allow_unused=True)))
        self._compare(*results)

    def _inplace(self, sample, function, strided):
        calls = self._both(sample, function)
        inputs = []
        for call in calls:
            x = call.arguments[0]
            first = x if isinstance(x, torch.Tensor) else None
            if strided:
                if first is None or first.layout != torch.strided:
                    return
                first = torch.stack([x, x], -1)
                call.arguments = (first.select(-1, 1), *call.arguments[1:])
            inputs.append(first)
        outcomes = [attempt(lambda: (call.call(), x)) for call, x in zip(calls, inputs)]
        self._compare(*outcomes, note="into a strided view" if strided else "")

    def _out(self, sample, forward, form):
        results = [h for x, h in forward.value if isinstance(x, torch.Tensor)]
        if not results or len(results) != len(forward.value) or any(h.layout != torch.strided for h in results):
            return
        outcomes = []
        calls = self._both(sample, self.op)
        self.home = torch.device(self.device).type
        for call in calls:
            outs = [_buffer(h, form).to(call.device) for h in results]
            if form == "strided":
                outs = [o.select(-1, 1) for o in outs]
            given = outs[0] if len(outs) == 1 else tuple(outs)
            call.arguments = (*call.arguments[:2], {**call.arguments[2], "out": given})
            outcomes.append(attempt(lambda: (call.call(), given)))
        self._compare(*outcomes, note=f"{form} out=")

    def _errors(self):
        if not self.op.error_inputs_func:
            return
        self.phase = "error"
        for self.number, e in enumerate(self.op.error_inputs("cpu")):  # noqa: B020
            self.repro = describe(self.name, e.sample_input)
            self._phase("error")
            cpu, ltc = self._both(e.sample_input, self.op)
            a, b = attempt(cpu.call), attempt(ltc.call)
            if a.error is not None:
                self._compare(a, b)
            if self.tally.lost:
                return

    def _compare(self, cpu, ltc, cpu_call=None, ltc_call=None, note=""):
        """Whether both outcomes agree; tells about each difference."""
        self.tally.checks += 1
        self.tally.fallbacks += ltc.fallbacks
        if cpu.error is not None or ltc.error is not None:
            return self._compare_errors(cpu, ltc, note)
        if len(cpu.value) != len(ltc.value):
            return self._wrong("results", f"{len(cpu.value)} on cpu, {len(ltc.value)} on ltc", note)
        good = True
        for (a, ha), (b, hb) in zip(cpu.value, ltc.value):
            difference = self._difference(a, ha, b, hb)
            if difference:
                good = self._wrong(*difference, note)
        if good and cpu_call is not None:
            aliases = [call.aliases([x for x, _ in o.value]) for call, o in ((cpu_call, cpu), (ltc_call, ltc))]
            if aliases[0] != aliases[1]:
                self._flag("alias", f"shares memory with argument: cpu {aliases[0]}, ltc {aliases[1]}")
        return good

    def _compare_errors(self, cpu, ltc, note):
        a, b = cpu.error, ltc.error
        self.tally.lost |= isinstance(b, torch.AcceleratorError)
        if a is None:
            return self._wrong("raises", f"{type(b).__name__}: {_line(b)}", note)
        if b is None:
            return self._wrong("accepts", f"cpu raises {type(a).__name__}: {_line(a)}", note)
        if type(a) is not type(b):
            text = f"cpu {type(a).__name__}: {_line(a)[:120]} | ltc {type(b).__name__}: {_line(b)[:160]}"
            return self._wrong("class", text, note)
        if ltc.late and not cpu.late:
            self._flag("late", f"{type(b).__name__} only at the wait: {_line(b)[:160]}")
        if not _line(b).startswith(_line(a)):
            self._flag("message", f"cpu: {_line(a)[:120]} | ltc: {_line(b)[:120]}")
        return True

    def _difference(self, a, ha, b, hb):
        """(kind, message) of the first difference of two leaves, or None."""
        if not isinstance(ha, torch.Tensor) or not isinstance(hb, torch.Tensor):
            same = type(ha) is type(hb) and (ha == hb or (ha != ha and hb != hb))
            return None if same or isinstance(ha, torch.device) else ("value", f"cpu {ha!r}, ltc {hb!r}")
        for kind in ("shape", "dtype", "layout", "requires_grad"):
            x, y = getattr(a, kind), getattr(b, kind)
            if x != y:
                return kind, f"cpu {x}, ltc {y}"
        if b.device.type != self.home:
            return "device", f"the result is on {b.device}, not on {self.home}"
        if a.layout == torch.strided and a.numel():
            x, y = ([s for s, n in zip(t.stride(), t.shape) if n > 1] for t in (a, b))
            if x != y:
                self._flag("strides", f"cpu {tuple(a.stride())}, ltc {tuple(b.stride())} of {tuple(a.shape)}")
        if self.op.name in database.UNINITIALISED:
            return None
        return self._values(ha, hb)

    def _values(self, a, b):
        self.tally.values += 1
        if a.layout != torch.strided:
            a, b = a.to_dense(), b.to_dense()
        if a.is_quantized:
            a, b = a.dequantize(), b.dequantize()
        if a.dtype == torch.complex32:
            a, b = a.to(torch.complex64), b.to(torch.complex64)
        if torch.equal(a, b):
            self.tally.bitwise += 1
            return None
        rtol, atol = self.tolerance or (None, None)
        try:
            torch.testing.assert_close(b, a, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
        except AssertionError as e:
            text = " ".join(str(e).split("\n")[1:]).strip() or str(e)
            return "value", text.replace("Mismatched elements", "differ")
        return None

    def _wrong(self, kind, message, note):
        self.fail(self.phase, self.word, self.number, kind, f"{message} [{note}]" if note else message, self.repro)
        return False

    def _flag(self, kind, message):
        """Notes what is not a failure: a late error, other words, other strides, other aliasing; the first of each
        kind."""
        self.tally.flags.setdefault(kind, f"{self.phase} {self.word} {self.repro}: {message}")


class Call:
    """A function and its arguments on a device."""

    def __init__(self, function, sample, device, host_arguments):
        self.function, self.device = function, device
        self.kind = torch.device(device).type
        self.arguments = move(sample, device, host_arguments)
        self.result = None

    def call(self):
        """Calls; the result is kept for the backward pass."""
        x, args, kwargs = self.arguments
        self.result = self.function(x, *args, **kwargs)
        return self.result

    def home(self):
        """Where results belong: on the device, unless no argument names it or lies there (a factory without
        `device=`)."""
        leaves = tree_leaves(self.arguments)
        at_home = any(isinstance(t, torch.Tensor) and t.device.type == self.kind for t in leaves)
        return self.kind if at_home or self.arguments[2].get("device") is not None else "cpu"

    def aliases(self, results):
        """For each result the position of the argument whose memory it shares, or None."""
        owners = {}
        for i, t in enumerate(tree_leaves(self.arguments)):
            if isinstance(t, torch.Tensor) and t.layout == torch.strided:
                owners.setdefault(t.untyped_storage()._cdata, i)
        strided = (t for t in results if isinstance(t, torch.Tensor) and t.layout == torch.strided)
        return [owners.get(t.untyped_storage()._cdata) for t in strided]


def _without_grad(sample):
    from torch.testing._internal.opinfo.core import SampleInput
    from torch.utils._pytree import tree_map

    detach = lambda x: x.detach() if isinstance(x, torch.Tensor) else x
    plain = SampleInput(tree_map(detach, sample.input), args=tree_map(detach, tuple(sample.args)))
    plain.kwargs = tree_map(detach, dict(sample.kwargs))
    return plain


def _buffer(like, form):
    """Memory for an `out=` argument; what it holds before must not matter."""
    if form == "resized":
        return torch.empty(0, dtype=like.dtype)
    whole = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype) if form == "whole" else like
    if form == "strided":
        whole = torch.stack([like, like], -1)
    return whole.fill_(1)


def _line(error):
    return str(error).strip().split("\n")[0]


warnings.simplefilter("ignore")
