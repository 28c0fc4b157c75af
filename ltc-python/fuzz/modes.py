"""How a program runs on both devices: recorded, compiled, in threads. Each raises `Difference` where they differ."""

import contextlib
import contextvars
import re
import threading
from collections import Counter

import torch
import torch_ltc

from . import plants
from . import world as worlds
from .world import Difference, Undefined, World, metadata, same, same_state, value


def run(program, plant=None):
    """Runs it on both; counts of what was done."""
    counts = Counter(statements=len(program.statements))
    worlds.loose.set(worlds.has_products(program))
    with plants.planted(plant) as compiler:
        if program.mode == "compiled":
            _compiled(program, compiler, counts)
        elif program.mode == "threads":
            _threads(program, counts)
        elif program.mode == "steps":
            _steps(program, compiler, counts)
        else:
            _recorded(program.of("setup"), counts)
    return counts


class _Trace:
    """What the CPU did, statement by statement."""

    def __init__(self, statements, draws=True):
        self.rows = []
        with World("cpu", draws=draws) as world:
            for s in statements:
                error = world.run(s)
                seen = {n: world.seen(n) for n in (s.made, *s.writes) if isinstance(world.names.get(n), torch.Tensor)}
                self.rows.append((s, error, seen, list(world.log), world.ambient()))
                world.log.clear()
            self.state = world.state()
            self.draw = world.draw() if draws else None


def _recorded(statements, counts, trace=None, draws=True):
    trace = trace or _Trace(statements, draws)
    with World("ltc", draws=draws) as world:
        whole = _follow(world, trace, counts)
        if whole:
            same_state(trace.state, world.state(), "at the end", world.versions)
            if draws:
                same(trace.draw, world.draw(), "the generator's next draw")


def _follow(world, trace, counts):
    """Does what the CPU did; whether that can be compared to the end."""
    for s, error, seen, log, ambient in trace.rows:
        got = world.run(s)
        if error is not None:
            counts["errors"] += 1
            if got is None:
                got = _late(world, s)
                counts["late"] += 1
            if got is None or got[0] != error[0]:
                raise Difference(f"{s}: {got and ': '.join(got)!r}, on the CPU {': '.join(error)!r}")
            world.log.clear()
            if s.writes and got is not None and not world.versions:
                return False
            continue
        if got is not None:
            raise Difference(f"{s}: {': '.join(got)}, on the CPU no error")
        for name, expected in seen.items():
            now = world.seen(name)
            for key in expected:
                if expected[key] != now[key] and (world.versions or key != "version"):
                    raise Difference(f"{s}: {key} of {name} is {now[key]}, on the CPU {expected[key]}")
        same(log, list(world.log), f"{s}: observed")
        world.log.clear()
        if ambient != world.ambient():
            raise Difference(f"{s}: the thread's state is {world.ambient()}, on the CPU {ambient}")
    return True


def _late(world, s):
    """The error of a statement that did not raise: it has to come when somebody waits."""
    try:
        torch_ltc.mark_step(wait=True)
    except Exception as e:  # noqa: BLE001  (any class: it is what is compared)
        world.versions = False
        if s is not None:
            world.names.pop(s.made, None)
        return type(e).__name__, str(e).splitlines()[0] if str(e) else ""
    return None


def _is_unread(program):
    """Whether the step makes something that nothing of it reads."""
    step = program.of("step")
    read = lambda s: any(re.search(rf"\b{s.made}\b", other.text) for other in step if other is not s)
    return any(s.made and s.made != "R" and not read(s) for s in step)


class _Holder:
    """What a step of the style ``object`` finds its tensors in."""


class _Left:
    """Where a step leaves its results, if it does not return them."""

    def __init__(self):
        self.all, self.each, self.some = (), [], {}


#: How the results leave a step: the last lines of its code, and how they are taken from what it returned or left.
LEAVES = {
    "returned": ("return tuple(R)", lambda out, left: out),
    "attribute": ("LEFT.all = tuple(R)", lambda out, left: left.all),
    "entry": ("LEFT.some = {'all': tuple(R)}", lambda out, left: left.some["all"]),
    "list": ("for each in R: LEFT.each.append(each)", lambda out, left: (tuple(left.each), left.each.clear())[0]),
    "both": ("LEFT.all = R = tuple(R)\n    return R", lambda out, left: out),
}


def source(program):
    """The step as Python text, after which its names are substituted."""
    inputs = [s.made for s in program.of("in")]
    outside = {s.made for s in program.of("setup")} | {s.made for s in program.statements if s.part.startswith("after")}
    find = re.compile("|".join(rf"\b{n}\b" for n in sorted(filter(None, outside)))) if any(outside) else None
    body = []
    for s in program.of("step"):
        text = s.text
        if find and program.style == "object":
            text = find.sub(lambda m: f"self.{m.group()}", text)
        elif find and program.style == "dict":
            text = find.sub(lambda m: f'held["{m.group()}"]', text)
        body.append("    " + text)
    takes = (["self"] if program.style == "object" else []) + inputs
    ends = LEAVES[program.leaves][0]
    return "\n".join([f"def step({', '.join(takes)}):", "    R = []", *body, f"    {ends}"]) + "\n"


def _step_of(program, world):
    """The step in a world, and what to do when a name has got another value."""
    names = world.names
    names["LEFT"] = _Left()
    text = source(program)
    if program.style == "object":
        holder = _Holder()
        exec(compile(text, "<step>", "exec"), names)
        function = names.pop("step").__get__(holder)
        settle = lambda: vars(holder).update(_held(world))
    elif program.style == "dict":
        names["held"] = held = {}
        exec(compile(text, "<step>", "exec"), names)
        function = names.pop("step")
        settle = lambda: held.update(_held(world))
    elif program.style == "closure":
        held = [n for n in _held(world)]
        lines = text.replace("\n", "\n    ")
        exec(compile(f"def make({', '.join(held)}):\n    {lines}\n    return step\n", "<step>", "exec"), names)
        function = names.pop("make")(*[names[n] for n in held])
        settle = lambda: None
    else:
        exec(compile(text, "<step>", "exec"), names)
        function = names.pop("step")
        settle = lambda: None
    world.hidden |= {"step", "held", "make", "LEFT"}
    settle()
    return function, settle


def _held(world):
    return {n: x for n, x in world.names.items() if n not in world.hidden and re.fullmatch(r"[tgo]\d+", n)}


def _calls(program, world, compiler=None):
    """What each call of the step gave, and how the world was in between; then the step."""
    for s in program.of("setup"):
        if error := world.run(s):
            raise Undefined(f"{s}: {error[1]}")
    function, settle = _step_of(program, world)
    call = compiler(function) if compiler else function
    inputs = program.of("in")
    seen, kept = [], []
    for i in range(program.calls):
        world.names["call"] = i
        for s in inputs:
            if error := world.run(s):
                raise Undefined(f"{s}: {error[1]}")
        try:
            given = [world.names[s.made] for s in inputs]
            out = LEAVES[program.leaves][1](call(*given), world.names["LEFT"])
            _go_back(world, out, i)
            # Copies, as a gradient may be a part of the one that was handed in, and is not where the way back is
            # replayed.
            out = (*out, *[x.grad.detach().clone() for x in given if x.is_leaf and x.grad is not None])
            kept.append(out)
            seen.append(value(out) if i % 2 else [metadata(t) if isinstance(t, torch.Tensor) else t for t in out])
        except (Undefined, Difference):
            raise
        except Exception as e:
            if "ZeroTensors are immutable" in str(e):
                raise Undefined("a gradient of zeros that the CPU cannot add to") from e
            # Of an error that nothing may raise, what it says.
            seen.append(f"SystemError: {e}" if isinstance(e, SystemError) else Raised(e))
        yield i, seen[-1]
        for s in program.of(f"after {i}"):
            if error := world.run(s):
                raise Undefined(f"{s}: {error[1]}")
        settle()
    world.kept = kept
    world.step = call


class Raised(str):
    """The class of an error, which is what is compared; findings tell the rest."""

    __slots__ = ("error",)

    def __new__(cls, error):
        self = super().__new__(cls, type(error).__name__)
        self.error = f"{type(error).__name__}: {error}"[:300]
        return self

    def __repr__(self):
        return repr(self.error)


def _go_back(world, out, i):
    """Goes back through some of what a call returned. Where that fails, the CPU has come to some leaves and not to
    others."""
    ways = [t for t in out if isinstance(t, torch.Tensor) and t.grad_fn is not None and t.is_floating_point()]
    if ways and i % 4:
        chosen = ways if i % 2 else ways[: 1 + i % len(ways)]
        leaves = [t for t in world.names.values() if isinstance(t, torch.Tensor) and t.is_leaf]
        before = [(t.grad, None if t.grad is None else t.grad._version) for t in leaves]
        try:
            torch.autograd.backward(chosen, [torch.ones_like(t) * (1 + k) for k, t in enumerate(chosen)])
        except Exception as e:
            now = [(t.grad, None if t.grad is None else t.grad._version) for t in leaves]
            if not world.is_lazy and any(a is not c or b != d for (a, b), (c, d) in zip(before, now)):
                raise Undefined("going back fails when some leaves have their gradients") from e
            # Which leaves have theirs by then follows from the order in which nodes run.
            for t in leaves:
                t.grad = None
            raise


def _compiled(program, compiler, counts, draws=True):
    with World("cpu", draws=draws) as eager:
        _checked(program, eager)
    with World("cpu", draws=draws) as eager:
        expected = [seen for _, seen in _calls(program, eager)]
        state, draw, left = eager.state(), eager.draw() if draws else None, eager.left()
        kept, ambient, log = [value(out) for out in eager.kept], eager.ambient(), list(eager.log)
    with World("ltc", draws=draws) as world:
        late = False
        for i, seen in _calls(program, world, compiler):
            if isinstance(expected[i], str):
                counts["errors"] += 1
                if not isinstance(seen, str):
                    world.kept.pop() if hasattr(world, "kept") else None
                    seen, late = (_late(world, None) or ("no error",))[0], True
                    if seen == "no error" and _is_unread(program):
                        raise Undefined("what nobody reads is not run, so it does not fail")
                    if i % 4 and any("leaf(" in s.text for s in program.statements):
                        raise Undefined("a call has returned what can be gone back through, and failed late")
            if seen == "RuntimeError" and not isinstance(expected[i], str) and not world.versions:
                raise Undefined("a write behind a call that failed late has bumped a version that autograd saved")
            _same_call(expected[i], seen, f"call {i}")
            if late and any("masked_scatter_" in s.text for s in program.statements):
                raise Undefined("masked_scatter_ has written some elements by the time it finds too few")
            if late and any("K." in s.text for s in program.statements):
                raise Undefined("what a call that failed late has left is there")
            if late and any("optim" in s.text for s in program.statements):
                raise Undefined("optimisers have counted a step on the host that failed late")
        counts["replayed"] += world.step.counts[0]
        counts["calls"] += program.calls
        counts["refused"] += bool(world.step.refusal)
        told = f" ({world.step.explain()})"
        if not any(isinstance(e, str) for e in expected):
            for i, out in enumerate(world.kept):
                same(kept[i], value(out), f"result of call {i} in the end")
        same_state(state, world.state(), f"at the end{told}", world.versions)
        same(log, list(world.log), "observed")
        same(left, world.left(), f"what the step left{told}")
        if draws:
            same(draw, world.draw(), "the generator's next draw")
        if ambient != world.ambient():
            raise Difference(f"the thread's state is {world.ambient()}, on the CPU {ambient}")


def _same_call(expected, got, where):
    if isinstance(expected, str) and expected == got:
        return
    if isinstance(expected, str) or isinstance(got, str) or len(expected) != len(got):
        raise Difference(f"{where}: {got!r}, on the CPU {expected!r}"[:600])
    for k, (a, b) in enumerate(zip(expected, got)):
        if not (isinstance(a, dict) and isinstance(b, dict)):
            same(a, b, f"{where}, result {k}")
            continue
        for key in a:
            if a[key] != b[key]:
                raise Difference(f"{where}, result {k}: {key} is {b[key]}, on the CPU {a[key]}")


def _checked(program, world):
    """Runs setup, inputs and step statement by statement once: nothing of it may be undefined."""
    world.names["R"] = []
    for part in ("setup", "in", "step"):
        for s in program.of(part):
            error = world.run(s)
            if error and part != "step":
                raise Undefined(f"{s}: {error[1]}")
            if error and error[0] in ("NameError", "UnboundLocalError"):
                raise Undefined(f"{s}: {error[1]}")


def _threads(program, counts):
    parts = sorted({s.part for s in program.statements})
    traces = [_Trace(program.of(part), draws=False) for part in parts]
    for _ in range(3):
        _at_once(
            [
                (part, lambda p=p, t=t: _recorded(program.of(p), Counter(), t, draws=False))
                for part, p, t in zip(parts, parts, traces)
            ]
        )
    counts["threads"] += len(parts)


def _at_once(works):
    """Does all of these, ``(name, function)``, in a thread each, at the same time."""
    ready, found = threading.Barrier(len(works)), []

    def work(name, function):
        ready.wait()
        try:
            function()
        except Exception as e:  # noqa: BLE001  (it is told below)
            found.append((name, e))

    # Threads begin with the caller's context.
    threads = [threading.Thread(target=contextvars.copy_context().run, args=(work, *w), daemon=True) for w in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if found:
        name, error = found[0]
        for _ in range(8):
            with contextlib.suppress(Exception):
                torch_ltc.mark_step(wait=True)
                break
        if isinstance(error, (Difference, Undefined)):
            raise type(error)(f"{name}: {error}")
        raise error


def _steps(program, compiler, counts):
    """Compiled steps of several threads: of its own tensors each; then one that all of them call, if it writes nothing
    that lasts."""
    with World("cpu") as eager:
        if any(isinstance(seen, str) for _, seen in _calls(program, eager)):
            raise Undefined("an error that comes late is told to whichever thread waits first")
    each = [Counter() for _ in range(3)]
    _at_once([(f"step {k}", lambda c=c: _compiled(program, compiler, c, draws=False)) for k, c in enumerate(each)])
    # Threads cut each other's captures short, so fewer of these calls are replayed.
    apart = {"calls": "calls at once", "replayed": "replayed at once"}
    counts.update({apart.get(k, k): n for k, n in sum(each, Counter()).items()})
    try:
        with World("cpu") as eager:
            run = _shared(program, eager)
            # After one call, too: two may undo each other.
            for numbers in (range(1), range(program.calls)):
                results = run(numbers)
                same_state(eager.before, eager.state(), "it writes")
    except Difference:
        return
    with World("ltc") as world:
        run = _shared(program, world, compiler)

        def calls():
            for i, got in zip(range(program.calls), run(range(program.calls))):
                _same_call(results[i], got, f"call {i} of the shared step")

        _at_once([(f"thread {k}", calls) for k in range(3)])
        counts["replayed at once"] += world.step.counts[0]
        counts["calls at once"] += 3 * program.calls
    counts["threads"] += 3
    counts["shared"] += 1


def _shared(program, world, compiler=None):
    """A function from numbers of calls to what they give, which any thread may run."""
    for s in program.of("setup"):
        if error := world.run(s):
            raise Undefined(f"{s}: {error[1]}")
    world.before = world.state()
    function, _ = _step_of(program, world)
    call = world.step = compiler(function) if compiler else function
    given = compile("\n".join(s.text for s in program.of("in")), "<in>", "exec")

    def run(numbers):
        seen = []
        for i in numbers:
            names = {**world.names, "call": i}
            exec(given, names)
            try:
                out = value(call(*[names[s.made] for s in program.of("in")]))
            except Exception as e:  # noqa: BLE001  (any class: it is what is compared)
                out = Raised(e)
            seen.append(out)
        return seen

    return run
