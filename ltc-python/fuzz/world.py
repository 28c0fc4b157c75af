"""What a program runs in: its names on one device, what it observes, and what of it is not defined."""

import contextlib
import contextvars
import math
import random
import re
import types
import warnings

import torch
import torch_ltc
from torch.nn import functional as F

_INTS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
#: Whether a program has products: the last bits of libtorch's depend on where its operands begin in memory.
loose = contextvars.ContextVar("loose", default=False)
_NOT_EXACT = re.compile(r"rand|normal|uniform|exponential|dropout|prod\(|1e-3")
#: What shows the sign and the payload of NaN, which follow from the order of operands in an instruction.
_BITS = re.compile(r"signbit|copysign|\.view\(torch\.")
#: What reads memory in another order than that in which it is written.
_TURNS = re.compile(r"\.(t\(|mT|transpose|permute|flip|rot90)")
_QUOTIENTS = re.compile(r"/|div|reciprocal|sqrt|pow")
_PRODUCTS = re.compile(r"@|linear|dot|mm\(|mv\(|einsum|conv|cdist|attention|outer|norm")


def has_products(program):
    """Whether last bits of sums may differ: fused ones add in an order of their own, of which only numbers tell that
    are drawn or no multiples of a power of two, and gradients of a leaf that come by several results of a replay are
    added up in another order."""
    if any("leaf(" in s.text for s in program.statements) and any(
        _QUOTIENTS.search(s.text) for s in program.statements
    ):
        return True
    fused = program.environment.get("LTC_FUSION") != "exact"
    return any(_PRODUCTS.search(s.text) or (fused and _NOT_EXACT.search(s.text)) for s in program.statements)


#: More elements than this has no tensor of a program.
LARGEST = 3000


class Difference(Exception):
    """The device does not do what the CPU does."""


class Undefined(Exception):
    """What a statement does is not defined, so nothing can be compared."""


def values(dtype, shape, seed):
    """A CPU tensor of numbers that follow from the seed; floats have NaN, infinities and zeros of both signs among
    them."""
    r = random.Random(f"{dtype} {shape} {seed}")
    n = 1
    for size in shape:
        n *= size
    dtype = getattr(torch, dtype)
    odd = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0] if seed % 3 == 0 else [-0.0, 0.0]
    tame = [r.randint(-32, 32) / 8 for _ in range(n)]
    if dtype is torch.bool:
        data = [r.random() < 0.5 for _ in range(n)]
    elif dtype.is_complex:
        data = [complex(x, r.randint(-8, 8) / 4) for x in tame]
    elif dtype.is_floating_point:
        data = [r.choice(odd) if r.random() < 0.15 else x for x in tame]
    else:
        data = [r.randint(0 if dtype is torch.uint8 else -5, 6) for _ in range(n)]
    # Not a view: whether a leaf is one shows in its views.
    return torch.tensor(data, dtype=dtype).reshape(shape).clone()


def bits(t):
    """The bits of a CPU tensor as integers, all NaNs alike."""
    t = t.resolve_conj().resolve_neg()
    if t.is_complex():
        t = torch.view_as_real(t)
    if t.is_floating_point():
        t = torch.where(t.isnan(), torch.full_like(t, float("nan")), t)
        return t.contiguous().view(_INTS[t.element_size()])
    return t


def metadata(t):
    """All of a tensor that shows without its values, but for its version."""
    try:
        is_leaf = t.is_leaf
    except RuntimeError as e:
        # A view whose history was cut by a write to its base says so when asked.
        is_leaf = type(e).__name__
    return {
        "shape": tuple(t.shape),
        "dtype": str(t.dtype),
        "strides": tuple(t.stride()) if t.numel() else (),
        "offset": t.storage_offset(),
        "requires_grad": t.requires_grad,
        "is_leaf": is_leaf,
        "conj": t.is_conj(),
        "neg": t.is_neg(),
        "inference": t.is_inference(),
        "class": type(t).__name__,
    }


def _version(t):
    return -1 if t.is_inference() else t._version


def value(x):
    """What is kept of an observed value: metadata and a copy of the data of tensors, the rest as it is."""
    if isinstance(x, torch.Tensor):
        return metadata(x), x.detach().cpu().clone()
    if isinstance(x, (list, tuple)):
        return [value(y) for y in x]
    return x if isinstance(x, (bool, int, str, type(None))) else repr(x)


def same(expected, got, where):
    """Raises where two observations differ."""
    if isinstance(expected, tuple) and isinstance(got, tuple):
        for key, one in expected[0].items():
            if one != got[0][key]:
                raise Difference(f"{where}: {key} is {got[0][key]}, on the CPU {one}")
        if not torch.equal(bits(expected[1]), bits(got[1])) and not (loose.get() and _close(expected[1], got[1])):
            raise Difference(f"{where}: the value is {_short(got[1])}, on the CPU {_short(expected[1])}")
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for i, (a, b) in enumerate(zip(expected, got)):
            same(a, b, f"{where}[{i}]")
    elif (_sort(expected) is not _sort(got) or expected != got) and not (loose.get() and _near(expected, got)):
        raise Difference(f"{where}: {got!r}, on the CPU {expected!r}"[:600])


def _has_nan(t):
    return isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex()) and bool(t.isnan().any())


def _address(x):
    """Where a tensor's memory begins; `None` of what has none that Python may ask for."""
    try:
        return x.untyped_storage().data_ptr() if isinstance(x, torch.Tensor) else None
    except RuntimeError:
        return None


def _share(a, b):
    return _address(a) is not None and _address(a) == _address(b)


def _sort(x):
    return str if isinstance(x, str) else type(x)


def _close(a, b):
    return a.dtype.is_floating_point and torch.allclose(a.double(), b.double(), rtol=1e-5, atol=1e-6, equal_nan=True)


def _near(a, b):
    try:
        return math.isclose(float(a), float(b), rel_tol=1e-5, abs_tol=1e-6)
    except (TypeError, ValueError):
        return False


def _short(t):
    return " ".join(str(t).split())[:260]


def overlaps_itself(t):
    """Whether elements of a view share memory, or might: writing it is not defined."""
    reach = 0
    for stride, size in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _span(t):
    last = sum((n - 1) * s for n, s in zip(t.shape, t.stride()) if n)
    return t.data_ptr(), t.data_ptr() + (last + 1) * t.element_size()


def clash(a, b):
    """Whether writing `a` while reading `b` depends on the order of elements."""
    if not a.numel() or not b.numel():
        return False
    (a0, a1), (b0, b1) = _span(a), _span(b)
    alike = a0 == b0 and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype
    return a0 < b1 and b0 < a1 and not alike


def _meet(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() and a.numel() and b.numel()


def _host():
    """What a program has on the CPU, whatever its device: a count, a number, a row, and a generator."""
    return types.SimpleNamespace(
        count=torch.zeros((), dtype=torch.int64),
        real=torch.zeros(()),
        row=torch.zeros(3),
        draws=torch.Generator().manual_seed(5),
    )


class _Kept:
    """What a step finds, and leaves anew, at each call."""

    def __init__(self, device):
        self.t = torch.zeros((), device=device)
        self.pair = (torch.ones(2, device=device), torch.ones(3, device=device))
        self.stats = {"a": torch.ones(2, device=device)}
        self.n, self.last, self.f, self.seen = 0, 0, 1.0, []


class World:
    """A program's names on one device."""

    def __init__(self, device, plant=None, draws=True):
        #: Whether the world begins with the default generators seeded. All threads have the same ones, so worlds of
        # several threads leave them alone: a step that is captured in one would see the draws of another.
        self.draws = draws
        self.device, self.is_lazy = device, device != "cpu"
        self.log = []
        #: Whether version counters are compared, and whether views are leaves, which follows from them: not after a
        # failure that came late, as nothing takes back what it counted.
        self.versions = True
        #: The version of each tensor when it was made: how often an operator writes its own result is its affair.
        self.first = {}
        self.stack = contextlib.ExitStack()
        self.plant = plant if self.is_lazy else None
        self.names = {
            "torch": torch, "F": F, "dev": device, "new": self._new, "idx": self._index, "obs": self._observe,
            "bar": self._barrier, "fail": self._fail, "enter": self._enter, "leave": self._leave, "call": 0,
            "leaf": self._leaf, "math": __import__("math"), "H": _host(),
            "K": _Kept(device),
        }  # fmt: skip
        self.hidden = set(self.names) | {"__builtins__"}

    def __enter__(self):
        if self.draws:
            torch.manual_seed(7)
        return self

    def __exit__(self, *error):
        self.stack.close()
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        if self.is_lazy and error[0] is not None:
            for _ in range(8):
                with contextlib.suppress(Exception):
                    torch_ltc.mark_step(wait=True)
                    break

    def _new(self, dtype, shape, seed):
        return values(dtype, shape, seed).to(self.device)

    def _leaf(self, dtype, shape, seed):
        return self._new(dtype, shape, seed).requires_grad_()

    def _index(self, data):
        return torch.tensor(data, dtype=torch.int64).to(self.device)

    def _observe(self, x):
        self.log.append(value(x))

    def _barrier(self, wait=False):
        if self.is_lazy:
            torch_ltc.mark_step(wait=wait)

    def _enter(self, what):
        kinds = {
            "no_grad": torch.no_grad, "enable_grad": torch.enable_grad, "inference": torch.inference_mode,
            "autocast": lambda: torch.autocast(self.device, dtype=torch.bfloat16),
        }  # fmt: skip
        self.stack.enter_context(kinds[what]())

    def _leave(self):
        self.stack.close()
        self.stack = contextlib.ExitStack()

    def _fail(self, text, behind=None):
        """A call that fails on values. Lazily, `behind` is recorded after it: it has not happened either when the error
        comes."""
        made = None
        refused = False
        try:
            made = eval(text, self.names)  # programs are code
            if not self.is_lazy:
                raise Undefined(f"{text} does not fail")
            if behind:
                # It may be refused at the call, which the CPU does not come to, or be told of what failed before it.
                try:
                    exec(behind, self.names)
                except Exception:  # noqa: BLE001  (any class: only whether it fails is asked)
                    refused = True
            self.versions = False
            torch_ltc.mark_step(wait=True)
        except (Undefined, Difference):
            raise
        except Exception as e:  # noqa: BLE001  (any class: it is what is compared)
            self.log.append(type(e).__name__)
            return
        del made
        if refused:
            raise Undefined(f"{behind} raises, too")
        raise Difference(f"{text} did not fail")

    def run(self, statement):
        """Runs one statement: its error's class, or None."""
        if not self.is_lazy:
            self._check_writes(statement)
        try:
            exec(compile(statement.text, f"<{statement}>", "exec"), self.names)
        except (Undefined, Difference):
            raise
        except Exception as e:  # noqa: BLE001  (any class: it is what is compared)
            return type(e).__name__, str(e).splitlines()[0] if str(e) else ""
        made = self.names.get(statement.made)
        if isinstance(made, torch.Tensor) and made.numel() > LARGEST:
            del self.names[statement.made]
            raise Undefined("too large")
        if isinstance(made, torch.Tensor):
            self.first[statement.made] = _version(made)
        return None

    def seen(self, name):
        """Metadata and version of a tensor."""
        t = self.names[name]
        return {**metadata(t), "version": _version(t) - self.first.get(name, 0)}

    def _check_writes(self, statement):
        if ".view(torch." in statement.text and any(
            getattr(self.names.get(n), "dtype", None) is torch.bool for n in statement.names
        ):
            raise Undefined("bytes that are no bools")
        if _BITS.search(statement.text) and any(map(_has_nan, map(self.names.get, statement.names))):
            raise Undefined("bits of NaN")
        for name in statement.writes:
            target = self.names.get(name)
            if not isinstance(target, torch.Tensor):
                continue
            if overlaps_itself(target):
                raise Undefined(f"{name} overlaps itself")
            read = [n for n in re.findall(r"\b[a-z]\d+\b", statement.text)[1:] if _share(target, self.names.get(n))]
            if read and _TURNS.search(statement.text):
                raise Undefined(f"{name} is read in another order than it is written in")
            for other in statement.names:
                read = self.names.get(other)
                if (
                    not isinstance(read, torch.Tensor)
                    or other == name
                    and not re.search(rf"[=,]{name}\)*$", statement.text)
                ):
                    continue
                scatters = re.search(r"masked_scatter_|index_put_|\]=|cat\(|\.(set|data)", statement.text)
                # An empty result grows over what follows it in its memory.
                grows = (
                    other != name and f"out={name}" in statement.text and not target.numel() and _share(target, read)
                )
                if (other != name and clash(target, read)) or (scatters and _meet(target, read)) or grows:
                    raise Undefined(f"{other} shares memory with {name}")

    def tensors(self):
        """Name and tensor of all there are."""
        return [(n, t) for n, t in self.names.items() if n not in self.hidden and isinstance(t, torch.Tensor)]

    def state(self):
        """All tensors, their gradients, and what the generator gives next."""
        kept = {}
        for name, t in self.tensors():
            kept[name] = value(t)
            kept[name][0]["version"] = self.seen(name)["version"]
            if kept[name][0]["is_leaf"] is True and t.grad is not None:
                kept[f"{name}.grad"] = value(t.grad)
        return kept

    def left(self):
        """What steps left where they find it."""
        kept = vars(self.names["K"])
        return [value(x if not isinstance(x, dict) else [*x.values()]) for x in kept.values()]

    def ambient(self):
        """What the thread is set to."""
        return [str(torch.get_default_dtype()), torch.is_grad_enabled(), torch.is_inference_mode_enabled()]

    def draw(self):
        """What the default generator gives next."""
        return value(torch.rand(3, device=self.device, dtype=torch.float32))


def same_state(expected, got, where, versions=True):
    """Raises where two states differ."""
    for name in expected:
        if name not in got:
            raise Difference(f"{where}: there is no {name}")
        one, other = expected[name], got[name]
        if not versions:
            one, other = (({**x[0], "version": 0, "is_leaf": True}, x[1]) for x in (one, other))
        same(one, other, f"{where}: {name}")
    for name in got:
        if name not in expected:
            raise Difference(f"{where}: there is {name}, on the CPU there is not")


def quiet():
    """Warnings of random programs say nothing."""
    warnings.simplefilter("ignore")
