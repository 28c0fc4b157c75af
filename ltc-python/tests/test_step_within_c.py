"""What a compiled step reads or does within C code that shows nothing of it: numbers on the CPU that bound a slice, how
an argument on the CPU is laid out, which object an argument is, tangents, locks, settings, states of generators. Each
case calls the step recorded and compiled with the same arguments, and both have to do the same, errors included."""

import codecs
import queue
import threading
import time

import pytest
import torch
import torch_ltc
from steps import Held
from torch.autograd import forward_ad

CASES = {}
#: Calls with the first argument until a step is replayed.
FIRST = 7


def case(least=None, words=""):
    """A case: a function that is given a :class:`Held` and returns the step and the arguments of its calls. `least`:
    how many of them have to be replayed, or `None` where none may be; `words`: what the refusal says."""

    def add(function):
        CASES[function.__name__] = (function, least, words)
        return function

    return add


def on(*numbers):
    return torch.tensor(numbers, device="ltc")


def shown(x):
    if isinstance(x, (tuple, list)):
        return [shown(y) for y in x]
    if not isinstance(x, torch.Tensor):
        return repr(x)
    tangent = forward_ad.unpack_dual(x).tangent if forward_ad._current_level >= 0 else None
    return [x.device.type, x.detach().tolist(), tangent if tangent is None else tangent.tolist()]


def outcome(step, given):
    try:
        return shown(step(*(x() if callable(x) else x for x in given)))
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, str(error).partition("\n")[0]


# ---- numbers on the CPU ----


@case(2)
def a_length_in_an_attribute(held):
    held.n = torch.tensor(2)

    def step(x, n):
        return x[: held.n]

    def calls():
        for n in [2] * FIRST + [1, 3, 2]:
            held.n.fill_(n)
            yield on(1.0, 2.0, 3.0, 4.0), n

    return step, calls()


@case(2)
def a_length_that_is_computed(held):
    held.n, held.buffer = torch.tensor(1), torch.arange(5.0)

    def step(x):
        return x * held.buffer[: held.n + 1].sum().item()

    def calls():
        for n in [1] * FIRST + [0, 3, 1]:
            held.n.fill_(n)
            yield (on(1.0, 2.0),)

    return step, calls()


@case(words="it uses a CPU tensor that it is given")
def a_length_as_an_argument(_):
    def step(x, n):
        y = x.clone()
        y[n:] = 0
        return y, x[:n].sum()

    return step, [(on(1.0, 2.0, 3.0, 4.0), torch.tensor(n)) for n in [2] * FIRST + [1, 3]]


@case()
def a_float_in_a_tensor_of_whole_numbers(_):
    def step(x, value):
        small = torch.zeros(2, dtype=torch.int8, device="ltc")
        small[0] = value
        return x * 2

    return step, [(on(1.0), value) for value in [*map(float, range(FIRST)), 300.0, 4.0]]


# ---- arguments on the CPU ----

WHOLE = torch.ones(2, 2, 3, 4)
PART = torch.arange(96.0).reshape(2, 2, 3, 8)[..., :4]
with torch.inference_mode():
    OF_INFERENCE = torch.ones(2, 2, 3, 4)


def layouts(*others):
    return [(x,) for x in [WHOLE] * FIRST + [*others, WHOLE]]


@case(4)
def a_view_that_there_is_not(_):
    return lambda x: x.view(2, -1).to("ltc") * 2, layouts(PART, PART)


@case(4)
def whether_it_is_contiguous(_):
    return lambda x: x.to("ltc") * (2 if x.is_contiguous() else 3), layouts(PART)


@case(4)
def its_strides(_):
    return lambda x: x.to("ltc") * x.stride()[0], layouts(PART)


@case(4)
def whether_it_is_of_inference_mode(_):
    return lambda x: x.to("ltc") * (2 if x.is_inference() else 3), layouts(OF_INFERENCE)


@case(6)
def made_in_inference_mode(_):
    return lambda x: x.to("ltc") * 2, [(OF_INFERENCE,)] * (FIRST + 3)


@case(words="looks at the memory")
def where_it_begins(_):
    return lambda x: x.to("ltc") * (1 + x.storage_offset()), layouts(torch.ones(2, 2, 2, 3, 4)[1])


@case(words="looks at the memory")
def whether_two_are_one(_):
    one = torch.ones(2)
    pairs = [(torch.ones(2), torch.ones(2)) for _ in range(FIRST)] + [(one, one[:])]
    return lambda x, y: x.to("ltc") * (2 if x.data_ptr() == y.data_ptr() else 3), pairs


@case(words="looks at the memory")
def where_one_on_the_device_begins(_):
    base = torch.arange(64.0).to("ltc")
    return lambda x: x * (2 if x.storage_offset() % 8 == 4 else 3), [(base[i : i + 4],) for i in [4] * FIRST + [8, 5]]


# ---- which object it is ----


@case(words="it asks which object")
def the_identity_of_an_argument(held):
    first, second = on(1.0, 1.0), on(2.0, 2.0)
    held.known = {id(first): 5.0}

    def step(x):
        return x * held.known.get(id(x), 100.0)

    return step, [(x,) for x in [first] * FIRST + [second, first]]


@case(words="it asks which object")
def the_hash_of_an_argument(held):
    first, second = on(1.0, 1.0), on(2.0, 2.0)
    held.known = {hash(first)}
    return lambda x: x * (2 if hash(x) in held.known else 3), [(x,) for x in [first] * FIRST + [second, first]]


@case(4)
def the_identity_of_what_is_older(held):
    held.weights = [on(2.0), on(3.0)]
    known = {id(held.weights[1])}

    def step(x):
        for w in held.weights:
            x = x * w if id(w) in known else x + w
        return x * (hash("words") % 2 + 1)

    return step, [(on(float(i)),) for i in range(FIRST)]


# ---- tangents ----


@case(4)
def a_tangent(_):
    def with_tangent():
        return forward_ad.make_dual(on(1.0, 2.0), on(1.0, 1.0))

    return lambda x: x * x, [(on(1.0, 2.0),)] * FIRST + [(with_tangent,)] * 6


# ---- locks, settings, generators ----


@pytest.mark.parametrize("kind", [threading.Lock, threading.RLock, threading.Condition, queue.Queue])
def test_a_lock_is_taken_each_time(kind):
    """A step that takes a lock waits for it, and what waits for its queue is woken."""
    lock, w = kind(), torch.zeros(2, device="ltc")

    def step(x):
        if kind is queue.Queue:
            lock.put(1)
        else:
            with lock:
                w.add_(x)
        return w * 1

    compiled = torch_ltc.compile(step)
    for _ in range(FIRST):
        compiled(on(1.0, 1.0))
    if kind is queue.Queue:
        for _ in range(FIRST):
            lock.get()
        got = []
        waits = threading.Thread(target=lambda: got.append(lock.get(timeout=60)))
        waits.start()
        time.sleep(0.2)
        compiled(on(1.0, 1.0))
        waits.join()
        assert got == [1]
    else:
        seen = []

        def look():
            with lock:
                begun.set()
                first = w.tolist()
                time.sleep(0.3)
                seen.extend((first, w.tolist()))

        begun = threading.Event()
        thread = threading.Thread(target=look)
        thread.start()
        begun.wait()
        compiled(on(1.0, 1.0))
        thread.join()
        assert seen[0] == seen[1]
    assert compiled.counts[0] == 0 and "it takes a lock" in compiled.explain()


SETTINGS = {
    "of another device": (
        lambda: torch.set_autocast_dtype("xpu", torch.float32),
        lambda: torch.get_autocast_dtype("xpu"),
        lambda: torch.set_autocast_dtype("xpu", torch.float16),
    ),
    "threads of autograd": (
        lambda: torch._C._set_multithreading_enabled(False),
        torch._C._is_multithreading_enabled,
        lambda: torch._C._set_multithreading_enabled(True),
    ),
    "checks of sparse tensors": (
        torch.sparse.check_sparse_tensor_invariants.enable,
        torch.sparse.check_sparse_tensor_invariants.is_enabled,
        torch.sparse.check_sparse_tensor_invariants.disable,
    ),
    "a backend of attention": (
        lambda: torch.backends.cuda.enable_math_sdp(False),
        torch.backends.cuda.math_sdp_enabled,
        lambda: torch.backends.cuda.enable_math_sdp(True),
    ),
    "operators that run eagerly": (
        lambda: torch_ltc.config.set_force_fallback("aten::sinh"),
        torch_ltc.config.get_force_fallback,
        lambda: torch_ltc.config.set_force_fallback(""),
    ),
    "handlers of errors in text": (
        lambda: codecs.register_error("ltc-test", lambda e: ("mine", e.end)),
        lambda: b"\xff".decode("ascii", "ltc-test"),
        lambda: codecs.register_error("ltc-test", lambda e: ("other", e.end)),
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_a_step_changes(name):
    """A step that sets something sets it at each call, whatever it was set to meanwhile."""
    sets, tells, undoes = SETTINGS[name]
    undoes()

    def step(x):
        sets()
        return x * 2

    compiled = torch_ltc.compile(step)
    try:
        sets()
        expected = tells()
        undoes()
        for i in range(12):
            compiled(on(1.0))
            assert tells() == expected, i
            if i > 5:
                undoes()
    finally:
        undoes()


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_a_step_reads(name):
    sets, tells, undoes = SETTINGS[name]
    undoes()
    compiled = torch_ltc.compile(lambda x: x * (1 + len(str(tells()))))
    try:
        for i in range(10):
            assert compiled(on(1.0)).item() == 1 + len(str(tells())), i
            if i == 6:
                sets()
    finally:
        undoes()


def test_a_generator_that_is_set_to_a_state_from_before():
    """The same draws at each call, on the device and, after the step, on the CPU."""
    state, of_host = torch.ltc.get_rng_state(), torch.get_rng_state()

    def step(x):
        torch.ltc.set_rng_state(state)
        return x + torch.rand(2, device="ltc")

    def sets_of_host(x):
        torch.set_rng_state(of_host)
        return x * 2

    drawn, quiet = torch_ltc.compile(step), torch_ltc.compile(sets_of_host)
    first = drawn(on(0.0, 0.0)).tolist()
    assert all(drawn(on(0.0, 0.0)).tolist() == first for _ in range(8))
    torch.set_rng_state(of_host)
    expected = torch.rand(1)
    for _ in range(6):
        torch.set_rng_state(of_host)
        quiet(on(1.0))
    for _ in range(3):
        quiet(on(1.0))
        assert torch.equal(torch.rand(1), expected)


def test_a_closure_that_a_step_adds_runs_each_time():
    seen = []

    def step(x):
        loss = (x * 2).sum()
        torch_ltc.add_step_closure(lambda value: seen.append(value.item()), args=(loss,))
        return loss

    compiled = torch_ltc.compile(step)
    for i in range(8):
        compiled(on(float(i), 1.0))
        torch_ltc.mark_step()
    assert seen == [2.0 * i + 2 for i in range(8)]


def test_going_back_under_no_grad_through_what_was_made_outside():
    """Gradients of leaves that the step does not reach itself are left at each call."""
    leaf = torch.ones(3, device="ltc", requires_grad=True)
    held = Held(y=leaf * 2)

    def step(x):
        held.y.backward(x, retain_graph=True)
        return x * 2

    compiled = torch_ltc.compile(step)
    with torch.no_grad():
        for i in range(10):
            leaf.grad = None
            compiled(on(1.0, 2.0, float(i)))
            assert leaf.grad.tolist() == [2.0, 4.0, 2.0 * i]
    assert compiled.counts[0] == 0 and "made outside" in compiled.explain()


def test_memory_that_a_step_frees():
    """A storage whose size a step changes has that size after each call, whatever it was before."""
    w, shard = on(1.0, 2.0), on(5.0, 6.0)

    def step(x):
        w.untyped_storage().resize_(8)
        w.copy_(shard)
        y = x * w
        w.untyped_storage().resize_(0)
        return y

    compiled = torch_ltc.compile(step)
    for i in range(9):
        assert compiled(on(1.0, 2.0)).tolist() == (on(1.0, 2.0) * shard).tolist(), i
        assert w.untyped_storage().nbytes() == 0, i
        shard.add_(1)
        if i > 4:
            w.untyped_storage().resize_(8)


def test_strides_of_gradients_that_are_added_up():
    """Within a captured step autograd adds gradients up as it does in any other: in place, where nobody holds them."""

    def step(x):
        t = x.mT
        return torch.autograd.grad((t * t).sum(), [x])[0]

    compiled = torch_ltc.compile(step)
    for shape in ((1, 3), (3, 1), (2, 3)):
        for _ in range(6):
            x = torch.ones(shape, dtype=torch.float64).to("ltc").requires_grad_()
            assert compiled(x).stride() == step(x).stride()
    assert compiled.counts[0] >= 6, compiled.explain()


def test_versions_of_gradients_that_several_ways_add_up_to():
    def versions(compiled):
        w, v = (torch.ones(shape, device="ltc", requires_grad=True) for shape in ((3, 3), (3, 1)))

        def step(x):
            w.grad = v.grad = None
            y = w * w + w.mT * 2 + w @ x + v.expand(3, 3) * w
            (y.sum() + (w * 3).relu().mean() + (v * v).sum()).backward()
            return y.detach()

        call = torch_ltc.compile(step) if compiled else step
        found = []
        for _ in range(8):
            call(torch.ones(3, 3, device="ltc"))
            found.append([(t.grad._version, t.grad.stride(), t.grad.tolist()) for t in (w, v)])
        return found, call

    (expected, _), (got, step) = versions(False), versions(True)
    assert got == expected
    assert step.counts[0] >= 4, step.explain()


@pytest.mark.parametrize("name", CASES)
def test_a_replay_does_what_the_step_does(name):
    make, least, words = CASES[name]

    def outcomes(compiled):
        fn, calls = make(Held())
        step = torch_ltc.compile(fn) if compiled else fn
        with forward_ad.dual_level() if "tangent" in name else torch.enable_grad():
            return [outcome(step, given) for given in calls], step

    (expected, _), (got, step) = outcomes(False), outcomes(True)
    assert got == expected
    replayed = step.counts[0]
    assert replayed == 0 if least is None else replayed >= least, step.explain()
    assert words in step.explain()
