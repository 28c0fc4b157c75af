"""Whether the CPU, Meta and CUDA make results of the same dtype, sizes and strides: for the operators below autograd
that the calls of PyTorch's operator database, and their gradients, come to. CUDA's answer is its host code's, over the
stand-in.

python survey.py FILE: compares what differs with FILE; --write writes it. Operators that end the process are named,
and it goes on in another one.
"""

import argparse
import collections
import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import stand_in
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

TABLE = Path(__file__).parents[3] / "ltc-ir/ops.toml"
# Most calls looked at, of one operator within one entry of the database.
CALLS = 6
DTYPES = (torch.float32, torch.bfloat16)
OTHER_DTYPES = (torch.int64, torch.bool, torch.complex64)
# Of the processor, since others may keep it busy.
SECONDS = 30
# Libraries that ask the driver themselves, so that nothing is known of their operators here.
ABSENT = ("cusolver", "cufft", "cusparse", "cublas", "cudnn", "magma", "nvrtc", "cutlass")
# Operators of the table that no call of the database comes to, and images with channels last: as functions of
# `torch.ops.aten`.
EXTRA = """
_reshape_alias(x, [4, 3], [3, 1])   _reshape_alias_copy(x, [4, 3], [3, 1])   addcdiv_(x, y, y)   addcmul_(x, y, y)
bernoulli(p)   bernoulli.p(x, 0.5)   bernoulli_.Tensor(x, p)   bernoulli_.float(x, 0.5)   bitwise_and.Scalar(i, 1)
bitwise_or.Scalar(i, 1)   bitwise_xor.Scalar(i, 1)   cauchy(x)   contiguous(x.t())   copy(x, y)   detach_copy(x.t())
div.Scalar_mode(x, 2, rounding_mode="floor")   exponential(x)   fill.Tensor(x, n)   fill_.Tensor(x, n)
fmod.Scalar(x, 2)   geometric(x, 0.5)   lift(x)   lift_fresh_copy(x)   log_normal(x)   max_pool3d(image, [2, 2, 2])
narrow(x, 1, 1, 2)   native_dropout(x, 0.5, True)   native_dropout(x.t(), 0.5, False)   norm.Scalar(x)
norm.ScalarOpt_dim_dtype(x, 2, [1], dtype=f64)   normal_functional(x)   normal.float_Tensor(0.0, p)
normal.Tensor_float(x.t(), 1.0)   poisson(p)   positive(x)   rand_like(x.t())
randint.low(2, 9, [3, 4], device=x.device)   randint_like.low_dtype(x, 2, 9)   random(x)   random.from(x, 2, 9)
random.to(x, 9)   random_(x)   random_.from(x, 2, 9)   random_.to(x, 9)   randperm(9, device=x.device)
scatter.reduce(x, 1, i, y, reduce="add")   select_copy.int(x, 1, 0)   selu(x)   slice_copy.Tensor(x, 1, 1, 3)
split_copy.Tensor(x, 2, 1)   square(x)   squeeze_copy.dims(image, [0])   std.dim(x, [1])   uniform(x)
var.dim(x, [1])   zero(x.t())   inverse(x[:, :3])   logdet(x[:, :3])   slogdet(x[:, :3])   svd(x)
glu_jvp(x[:, :2], x, y)   convolution(c, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
native_batch_norm(c, v, v, v, v, True, 0.1, 1e-5)   max_pool2d_with_indices(c, [2, 2])   avg_pool2d(c, [2, 2])
_adaptive_avg_pool2d(c, [3, 3])   upsample_nearest2d(c, [9, 9])   native_group_norm(c, None, None, 2, 4, 64, 2, 1e-5)
cat([c, c], 1)   add.Tensor(c, n)   sum.dim_IntList(c, [1], True)   cumsum(c, 1)   sort(c, 1)   topk(c, 2, 1)
native_dropout(c, 0.5, True)   clone(c)   gelu(c)   _softmax(c, 1, False)   constant_pad_nd(c, [1, 1])
index_select(c, 1, v.long())   where.self(c > 0, c, n)   native_layer_norm(c, [8], None, None, 1e-5)
reflection_pad2d(c, [1, 1, 1, 1])   roll(c, [1], [1])   flip(c, [1])   std_mean.correction(c, [1])
"""
SHORT = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32"}
HEAD = """# Where the results of operators differ in dtype, sizes or strides between CUDA, by its host code, and the
# CPU's or Meta's kernels. `cargo xtask dry --layouts` writes it, `make test-dry` compares it. A line for the first call
# that differs: its arguments, then the results. Strides stand behind `:` where a result is not contiguous, and those of
# dimensions of one element do not count.
"""


def layout(t):
    strides = [s for n, s in zip(t.shape, t.stride(), strict=True) if n != 1]
    dense, next_stride = True, 1
    for n, s in zip(reversed([n for n in t.shape if n != 1]), reversed(strides), strict=True):
        dense, next_stride = dense and s == next_stride, next_stride * n
    dtype = str(t.dtype)[6:]
    text = f"{SHORT.get(dtype, dtype)}[{','.join(map(str, t.shape))}"
    return text + ("]" if dense or t.numel() == 0 else f":{','.join(map(str, t.stride()))}]")


def layouts(out):
    return " ".join(layout(t) for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor))


def is_plain(t):
    return type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout == torch.strided and not t.is_quantized


def flat(t):
    """All elements between a tensor's first and last one."""
    n = 0 if t.numel() == 0 else 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    return t.detach().as_strided((n,), (1,), t.storage_offset()).clone()


class Calls(TorchDispatchMode):
    """Takes down calls below autograd: a few of each operator, with different arguments."""

    def __init__(self):
        super().__init__()
        self.calls, self.seen = [], collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        leaves, spec = pytree.tree_flatten((args, kwargs))
        name = str(func)
        text = " ".join(layout(x) if isinstance(x, torch.Tensor) else str(x) for x in leaves)
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        fits = all(is_plain(t) and t.device.type == "cpu" and t.numel() < 1 << 16 for t in tensors)
        if fits and self.seen[name] < CALLS and not self.seen[name, text]:
            self.seen[name] += 1
            self.seen[name, text] += 1
            held = [(flat(x), x.shape, x.stride()) if isinstance(x, torch.Tensor) else x for x in leaves]
            self.calls.append((func, held, spec, text))
        return func(*args, **kwargs)


def call_on(device, call):
    func, held, spec, _ = call

    def moved(x):
        if isinstance(x, tuple) and len(x) == 3 and isinstance(x[0], torch.Tensor):
            return x[0].clone().to(device).as_strided(x[1], x[2])
        return torch.device(device) if isinstance(x, torch.device) else x

    args, kwargs = pytree.tree_unflatten([moved(x) for x in held], spec)
    return layouts(func(*args, **kwargs))


class Extra:
    """An entry like those of the database, of the calls above."""

    name, variant_test_name = "extra", ""


def take_extra(dtype):
    calls = Calls()
    x, y, w = torch.rand(3, 4, dtype=dtype), torch.rand(3, 4, dtype=dtype), torch.rand(4, 4, 3, 3, dtype=dtype)
    c = torch.rand(2, 4, 8, 8, dtype=dtype).contiguous(memory_format=torch.channels_last)
    numbers = dict(p=torch.rand(3, 4), i=torch.ones(3, 4, dtype=torch.int64), f64=torch.float64)
    names = dict(
        x=x, y=y, w=w, c=c, v=w[:, 0, 0, 0].clone(), n=x[0, 0].clone(), image=torch.rand(1, 2, 4, 4, 4), **numbers
    )
    for text in re.split(r"   |\n", EXTRA.strip()):
        name, arguments = re.fullmatch(r"([\w.]+?)(\(.*\))", text).groups()
        # `from` is no name of Python's.
        function = torch.ops.aten
        for part in name.split("."):
            function = getattr(function, part)
        with contextlib.suppress(NotImplementedError, RuntimeError), calls:
            eval(f"function{arguments}", names, dict(function=function))
    return calls.calls


def take_calls(op, dtype):
    torch.manual_seed(0)
    if op is Extra:
        return take_extra(dtype)
    calls = Calls()
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point))
    for sample in samples[:: max(1, len(samples) // CALLS)][:CALLS]:
        # Samples that the CPU refuses are no calls.
        with contextlib.suppress(Exception), calls:
            out = op.op(sample.input, *sample.args, **sample.kwargs)
            outs = [t for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor) and t.requires_grad]
            if outs:
                torch.autograd.backward(outs, [torch.ones_like(t) for t in outs])
    return calls.calls


def reason(e):
    text = str(e).splitlines()[0] if str(e) else ""
    absent = [name for name in ABSENT if name in text.lower()]
    if "Could not run" in text:
        return "has no CUDA kernel"
    text = re.sub(r"0x[0-9a-f]+|[\w/.-]+\.(cpp|cu|h|cuh)(:\d+)?", "", text)
    return f"needs {absent[0]}" if absent else f"{type(e).__name__}: {text[:90].strip()}"


def compare(call):
    """What is found about one call: `same`, `differs` with a line, `raises` with the reason, or nothing."""
    try:
        cpu = call_on("cpu", call)
    except Exception:  # noqa: BLE001
        return None
    try:
        cuda = call_on("cuda", call)
    except torch.AcceleratorError:
        raise
    except Exception as e:  # noqa: BLE001
        return "raises", reason(e)
    try:
        meta = call_on("meta", call)
    except Exception:  # noqa: BLE001
        meta = cuda
    others = "".join(f"  {name} {of}" for name, of in (("cpu", cpu), ("meta", meta)) if of != cuda)
    return ("differs", f"({call[3]})  cuda {cuda}{others}") if others else ("same", "")


def survey(op, dtype):
    found = {}
    for call in take_calls(op, dtype):
        kind = compare(call)
        if kind:
            found.setdefault(str(call[0]), {}).setdefault(*kind)
    return found


def entries():
    for op in op_db:
        supported = op.supported_dtypes("cpu")
        dtypes = [d for d in DTYPES if d in supported] or [d for d in OTHER_DTYPES if d in supported][:1]
        yield from ((op, dtype) for dtype in dtypes)
    yield from ((Extra, dtype) for dtype in DTYPES)


def worker(first, step, last):
    """Every `step`-th entry from `first` on; a line before each, so that it is known which one ended the process."""

    def too_long(*_):
        raise TimeoutError("too long")

    signal.signal(signal.SIGPROF, too_long)
    for at, (op, dtype) in list(enumerate(entries()))[first:last:step]:
        print(json.dumps([at, f"{op.name} {op.variant_test_name}".strip()]), flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        with stand_in.shadow(complete=False):
            try:
                found = survey(op, dtype)
            except torch.AcceleratorError:
                raise
            except Exception as e:  # noqa: BLE001
                found = {f"entry {op.name}": {"raises": reason(e)}}
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps([at, op.name, found]), flush=True)


class Findings:
    """Of each operator, the first of each kind by the order of the database, whichever process found it first."""

    def __init__(self):
        self.of, self.lock, self.done = {}, threading.Lock(), 0

    def add(self, at, found):
        with self.lock:
            self.done += 1
            for name, kinds in found.items():
                for kind, text in kinds.items():
                    mine = self.of.setdefault(name, {})
                    mine[kind] = min(mine.get(kind, (at, text)), (at, text))

    def lines(self, table):
        kinds = {name: {kind: text for kind, (_, text) in kinds.items()} for name, kinds in self.of.items()}
        yield from (f"{name} {of['differs']}" for name, of in sorted(kinds.items()) if "differs" in of)
        yield "\n# Refused on CUDA though not on the CPU, or not there without a driver"
        raising = ((name, of["raises"], of) for name, of in sorted(kinds.items()) if "raises" in of)
        yield from (f"{name}  {why}" for name, why, of in raising if len(of) == 1 or not why.startswith("needs"))
        yield "\n# Operators of ltc-ir/ops.toml that no call came to"
        met = {name.removeprefix("aten.").replace(".default", "") for name in kinds}
        met |= {name.split(".")[0] for name in met}
        yield from (name for name in sorted(table) if name not in met)


def follow(findings, first, step):
    """Has workers do every `step`-th entry, with a new one after one that ended."""
    total, at = len(list(entries())), first
    while at < total:
        command = [sys.executable, __file__, "--worker", str(at), str(step), str(total)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        begun = None
        for line in child.stdout:
            at, name, *found = json.loads(line)
            begun = None if found else name
            if found:
                findings.add(at, found[0])
        child.wait()
        if begun:
            findings.add(at, {f"entry {begun}": {"raises": "ends the process"}})
        elif child.returncode != 0:
            raise SystemExit("a worker of the survey does not start")
        at += step


def table_names():
    sections = tomllib.loads(TABLE.read_text())
    return {name for rows in sections.values() if isinstance(rows, dict) for name in rows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    findings, start = Findings(), time.time()
    threads = [threading.Thread(target=follow, args=(findings, first, 2), daemon=True) for first in range(2)]
    for thread in threads:
        thread.start()
    total = len(list(entries()))
    while any(thread.is_alive() for thread in threads):
        threads[0].join(10)
        threads[1].join(10)
        print(f"    layouts: {findings.done} of {total} entries, {time.time() - start:.0f} s", flush=True)
    found = HEAD + "\n".join(findings.lines(table_names())) + "\n"
    if options.write:
        options.file.write_text(found)
        return
    known = options.file.read_text()
    new, gone = (sorted(set(a.splitlines()) - set(b.splitlines())) for a, b in ((found, known), (known, found)))
    print("\n".join([*(f"+ {line}" for line in new), *(f"- {line}" for line in gone)]))
    if new or gone:
        raise SystemExit(f"{options.file} says otherwise (`cargo xtask dry --layouts` writes it)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(*map(int, sys.argv[2:]))
    else:
        main()
