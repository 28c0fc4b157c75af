"""``torch_ltc.compile``: a step captured once and replayed without recording."""

import functools
import types
import weakref

import torch
from torch.utils import _pytree as pytree

from torch_ltc import _ltc
from torch_ltc._runtime import on_device, service

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def _reachable(fn):
    """Objects a function uses by name: its closure, defaults, ``self`` and the globals it mentions."""
    if isinstance(fn, torch.nn.Module):
        return [fn]
    found = []
    if isinstance(fn, types.MethodType):
        found.append(fn.__self__)
        fn = fn.__func__
    if isinstance(fn, functools.partial):
        return _reachable(fn.func) + list(fn.args) + list(fn.keywords.values())
    code = getattr(fn, "__code__", None)
    if code is None:
        return found
    for cell in fn.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    found += fn.__defaults__ or ()
    found += (fn.__kwdefaults__ or {}).values()
    found += [fn.__globals__[name] for name in code.co_names if name in fn.__globals__]
    return found


def _guards(objects, depth=0):
    """Functions that tell what a replay depends on besides tensors: numbers, optimiser settings, training flags."""
    found = []
    for x in objects:
        if isinstance(x, torch.optim.Optimizer):
            found.append(functools.partial(_settings, x))
        elif isinstance(x, torch.nn.Module):
            modules = tuple(x.modules())
            found.append(lambda modules=modules: tuple([m.training for m in modules]))
        elif isinstance(x, (list, tuple)) and depth < 2 and len(x) <= 64:
            # May change its members: looked at each time.
            found.append(lambda x=x, depth=depth: _values(x, depth))
        elif isinstance(x, dict) and depth < 2 and len(x) <= 64:
            found.append(lambda x=x, depth=depth: _values(x.values(), depth))
        elif isinstance(x, types.FunctionType) and depth < 1:
            found += _guards(_reachable(x), depth + 1)
    return found


def _settings(optimiser):
    return tuple(
        [
            (k, tuple(v) if isinstance(v, (list, tuple)) else v)
            for group in optimiser.param_groups
            for k, v in group.items()
            if k != "params" and (isinstance(v, _PLAIN) or isinstance(v, (list, tuple)))
        ]
    )


def _values(objects, depth):
    plain = tuple([(type(x), x) for x in objects if isinstance(x, _PLAIN)])
    return plain + tuple([g() for g in _guards([x for x in objects if not isinstance(x, _PLAIN)], depth + 1)])


def _plain_names(fn):
    """Reads the plain values a function uses by name, as they are at each call."""
    if isinstance(fn, types.MethodType):
        fn = fn.__func__
    code = getattr(fn, "__code__", None)
    if code is None:
        return lambda: ()
    cells, names, scope = fn.__closure__ or (), code.co_names, fn.__globals__
    names = [n for n in names if isinstance(scope.get(n), _PLAIN) and n in scope]

    def read():
        inside = [_content(cell) for cell in cells]
        return tuple(
            [(type(x), x) for x in inside if isinstance(x, _PLAIN)] + [(n, type(scope.get(n)), scope.get(n)) for n in names]
        )

    return read


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return None


class CompiledStep:
    """A step function that is replayed where that is safe; see :func:`compile`."""

    def __init__(self, fn):
        functools.update_wrapper(self, fn, updated=())
        self._fn = fn
        self._handle = service("step_new")[2][0]
        self._guards = [_plain_names(fn), *_guards(_reachable(fn))]
        self._keys = {}
        self._specs = {}
        weakref.finalize(self, service, "step_drop", (), "", (self._handle,))

    def __call__(self, *args, **kwargs):
        if not kwargs and all(map(on_device, args)):
            inputs, outside = args, (len(args),)
        else:
            flat, spec = pytree.tree_flatten((args, kwargs))
            inputs = [x for x in flat if on_device(x)]
            others = [x for x in flat if not on_device(x)]
            if not all(isinstance(x, _PLAIN) for x in others):
                # Whatever cannot be compared by value is recorded each time.
                return self._record(args, kwargs)
            outside = (str(spec), tuple([(type(x), x) for x in others]))
        key = (outside, torch.is_grad_enabled(), *[guard() for guard in self._guards])
        name = self._keys.get(key)
        if name is None:
            name = self._keys[key] = str(len(self._keys))
        results, _, (replayed,) = service("step_begin", inputs, name, (self._handle,))
        if replayed:
            return self._unflatten(name, results)
        try:
            out = self._fn(*args, **kwargs)
        except BaseException:
            service("step_abort", numbers=(self._handle,))
            raise
        flat_out, out_spec = pytree.tree_flatten(out)
        places = [i for i, x in enumerate(flat_out) if on_device(x)]
        plain = [None if i in places else x for i, x in enumerate(flat_out)]
        if all(isinstance(x, _PLAIN) for x in plain):
            single = places == [0] and out is flat_out[0]
            self._specs[name] = None if single else (out_spec, plain, places)
            service("step_end", [*inputs, *[flat_out[i] for i in places]], numbers=(self._handle, len(inputs)))
        else:
            service("step_abort", numbers=(self._handle,))
        _ltc.mark_step(False)
        return out

    def _record(self, args, kwargs):
        out = self._fn(*args, **kwargs)
        _ltc.mark_step(False)
        return out

    def _unflatten(self, name, results):
        if self._specs[name] is None:
            return results[0]
        spec, plain, places = self._specs[name]
        flat = list(plain)
        for place, result in zip(places, results):
            flat[place] = result
        return pytree.tree_unflatten(flat, spec)

    @property
    def counts(self):
        """``(replayed, recorded)`` calls so far."""
        return tuple(service("step_counts", numbers=[self._handle])[2])

    @property
    def refusal(self):
        """Why it is not replayed; an empty string when it is (or was not tried yet)."""
        return service("step_counts", numbers=[self._handle])[1]

    def explain(self):
        """One line about how the step runs."""
        replayed, recorded = self.counts
        why = f"; {self.refusal}" if self.refusal else ""
        return f"{replayed} calls replayed, {recorded} recorded{why}"


def compile(fn=None):
    """Makes a training step (forward, backward, optimiser) replay itself without being recorded again.

    ``fn`` must do the same to the same tensors each time, given its arguments: tensors on ``ltc`` (free to change from call
    to call), numbers and strings (captured apart for each value). The first call is recorded as usual, the next two are
    captured, and if both were the same the program is replayed from then on. Settings of optimisers, training flags of
    modules and plain values that ``fn`` uses by name are compared at each call; Python code in ``fn`` does not run in a
    replay. What cannot be replayed is recorded each time, which is always right: see :meth:`CompiledStep.explain`.
    Optimisers must keep their step count on the device (``Adam(..., capturable=True)``), or have none (``SGD``).
    """
    if fn is None:
        return compile
    return CompiledStep(fn)

