"""`python -m opinfo.modules`: PyTorch's databases of modules and of optimisers, on ltc and on the CPU, compared.

Every input of the databases (modules in training and in evaluation; optimisers in each implementation, but for those of
sparse gradients and those that call a closure) runs a few steps of training in each of three ways: recorded, as a
compiled module whose gradients are asked for outside, and as a compiled step. Losses, results, gradients, parameters,
buffers and the optimisers' states are compared with the CPU's after every step."""

import argparse
import copy
import sys
import warnings
from collections import Counter

import torch
import torch_ltc
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db
from torch.utils._pytree import tree_leaves, tree_map

from .samples import Mover

WAYS = ("recorded", "module", "step")
#: Calls of a step: it is captured at the third, and replayed from then on.
CALLS = 7


class Case:
    """A module of the database with one input, or an optimiser with one set of options."""

    def __init__(self, name, make):
        self.name, self.make = name, make

    def run(self, way):
        """What differs between the CPU and ltc, in words; None if nothing does. And how many calls were replayed."""
        trained, replays = [], 0
        for where in ("eager", way):
            values, replays = self._train(where)
            trained.append(values)
        truth = None
        for call, (cpu, ltc) in enumerate(zip(*trained)):
            difference = _difference(cpu, ltc)
            if difference:
                truth = truth or self._train("eager", torch.float64)[0]
                if not (call < len(truth) and _as_near(cpu, ltc, truth[call])):
                    return f"call {call}: {difference}", replays
        return None, replays

    def _train(self, way, dtype=None):
        """What each call of a training leaves, and how many calls were replayed."""
        torch.manual_seed(0)
        model, optimiser_of, batch = self.make()
        if way != "eager":
            model, batch = model.to("ltc"), Mover("ltc")(batch)
        if dtype:
            model, batch = model.to(dtype), tree_map(lambda x: _cast(x, dtype), batch)
        torch.manual_seed(1)
        *values, replays = _train(model, optimiser_of, batch, way)
        return values, replays


def _train(net, optimiser_of, inputs, way):
    """What each call left: its result, gradients, state; an exception ends it. Last, how many calls were replayed."""
    args, kwargs = inputs
    compiled, replays = None, 0
    try:
        leaves = [t for t in tree_leaves(inputs) if isinstance(t, torch.Tensor) and t.requires_grad and t.is_leaf]
        parameters = [p for p in net.parameters() if p.requires_grad]
        optimiser = optimiser_of(parameters) if parameters else None
        forward = torch_ltc.compile(net) if way == "module" else net

        def step():
            result = forward(*args, **kwargs)
            outs = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
            if outs:
                loss = sum((t.abs() ** 2).sum() if t.is_complex() else (t.float() ** 2).sum() for t in outs)
                loss.backward()
            if optimiser:
                optimiser.step()
            return result

        def clear():
            for t in [*leaves, *parameters]:
                t.grad = None

        call = torch_ltc.compile(step) if way == "step" else step
        compiled = forward if way == "module" else call
        for _ in range(CALLS):
            clear()
            result = call()
            state = [list(s.values()) for s in optimiser.state_dict()["state"].values()] if optimiser else []
            gradients = [t.grad for t in [*leaves, *parameters]]
            yield _host([result, gradients, list(net.state_dict().values()), state])
    except Exception as e:  # noqa: BLE001  (any class: it is what is compared)
        yield e
    if way in ("module", "step") and compiled is not None:
        replays = compiled.counts[0]
    yield replays


def _host(tree):
    copied = lambda t: t.detach().cpu().clone() if isinstance(t, torch.Tensor) else t
    return [copied(x) for x in tree_leaves(tree_map(copied, tree))]


def _difference(cpu, ltc):
    if isinstance(cpu, Exception) or isinstance(ltc, Exception):
        if type(cpu) is type(ltc):
            return None
        return f"cpu {_words(cpu)}, ltc {_words(ltc)}"
    if len(cpu) != len(ltc):
        return f"{len(cpu)} values on the CPU, {len(ltc)} on ltc"
    # What cancels is off by roundings of what it was made of: the largest number of the call is the measure of these.
    finite = [t[t.isfinite()].abs().max().item() for t in cpu if isinstance(t, torch.Tensor) and t.isfinite().any()]
    atol = 1e-5 + 2e-6 * max(finite, default=0.0)
    for i, (a, b) in enumerate(zip(cpu, ltc)):
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            if type(a) is not type(b) or not (a == b or (a != a and b != b)):
                return f"value {i}: cpu {a!r}, ltc {b!r}"
            continue
        try:
            torch.testing.assert_close(b, a, rtol=1e-4, atol=atol, equal_nan=True, check_stride=False)
        except AssertionError as e:
            return f"value {i}: " + " ".join(str(e).split("\n"))
    return None


def _as_near(cpu, ltc, truth):
    """Whether values on ltc are as near to those of double precision as the CPU's are."""
    if any(isinstance(outcome, Exception) for outcome in (cpu, ltc, truth)) or not len(cpu) == len(ltc) == len(truth):
        return False
    for a, b, t in zip(cpu, ltc, truth):
        if isinstance(a, torch.Tensor) and a.is_floating_point() and a.numel():
            far = [(x.double() - t).abs().nan_to_num().max().item() for x in (a, b)]
            if far[1] > 1e-5 + 2 * far[0] or not torch.equal(a.isnan(), b.isnan()):
                return False
    return True


def _cast(x, dtype):
    """A tensor of floats, in another dtype; it is a leaf as it was."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return x
    return x.detach().to(dtype).requires_grad_(x.requires_grad)


def _words(outcome):
    return f"{type(outcome).__name__}: {str(outcome).splitlines()[0]}" if isinstance(outcome, Exception) else "a value"


def _leaf(x):
    """What was computed can neither be copied nor gets a gradient: it is an input of its own."""
    return x if not isinstance(x, torch.Tensor) or x.is_leaf else x.detach().requires_grad_()


def modules():
    """The database of modules: one case for each input, in training and in evaluation."""
    for info in module_db:
        for training in (True, False):
            # The database draws them: whoever runs some of the cases gets the inputs that they have among all.
            torch.manual_seed(0)
            inputs = info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
            )
            for number, given in enumerate(inputs):

                def make(info=info, given=given, training=training):
                    made = given.constructor_input
                    net = info.module_cls(*made.args, **made.kwargs).train(training)
                    batch = tree_map(_leaf, (given.forward_input.args, given.forward_input.kwargs))
                    return net, lambda parameters: torch.optim.SGD(parameters, lr=1e-3), copy.deepcopy(batch)

                mode = "train" if training else "eval"
                yield Case(f"{info.name}/{mode}/{number} {given.desc}".strip(), make)


def optimisers():
    """The database of optimisers: one case for each set of options and implementation."""
    for info in optim_db:
        if info.only_supports_sparse_grads or info.step_requires_closure:
            continue
        for given in info.optim_inputs_func(device="cpu"):
            for way in ("forloop", *(w for w in info.supported_impls if w in ("foreach", "fused"))):
                flags = {} if way == "forloop" else {way: True}
                if way == "forloop":
                    flags = {"foreach": False}
                if "fused" in given.kwargs or "differentiable" in given.kwargs:
                    continue

                def make(info=info, given=given, flags=flags):
                    net = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
                    options = {**given.kwargs, **flags}
                    return net, lambda parameters: info.optim_cls(parameters, **options), ((torch.randn(4, 5),), {})

                yield Case(f"{info.name}/{way} {given.desc}", make)


def main(argv=None):
    """Runs the cases; 0 if none differs."""
    parser = argparse.ArgumentParser(prog="python -m opinfo.modules", description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of names (default: all)")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--every", type=int, default=1, help="only each n-th case")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    cases = [c for c in [*modules(), *optimisers()] if not options.names or c.name.startswith(tuple(options.names))]
    counts, wrong = Counter(), 0
    for case in cases[:: options.every]:
        for way in options.ways.split(","):
            try:
                difference, replays = case.run(way)
            except Exception as e:  # noqa: BLE001
                difference, replays = f"harness: {_words(e)}", 0
            counts[way] += 1
            counts[f"{way}, replayed"] += bool(replays)
            if difference:
                wrong += 1
                print(f"DIFFERS: {way} {case.name}: {difference[:300]}", flush=True)
    print(dict(counts), f"{wrong} differ")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
