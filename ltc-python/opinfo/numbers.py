"""Samples once more, with other numbers in the places of theirs: what no sample of the database has."""

from torch.utils._pytree import tree_flatten, tree_unflatten

_NAN, _INFINITE = float("nan"), float("inf")

#: Beyond single precision (and the halves), beyond double's smallest normal, signs, zeros, one, and none at all.
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 1e39, -1e39, 70000.0, 1e-46, _NAN, _INFINITE, -_INFINITE)

#: Whole ones, which may be sizes and dimensions as well.
INTEGERS = (0, 1, -1, 2, 300, -(2**31) - 1, 2**62)


def others(x):
    """The numbers to stand in the place of `x`, which may be anything."""
    if type(x) is float:
        return [v for v in FLOATS if repr(v) != repr(x)]
    if type(x) is int:
        return [v for v in INTEGERS if v != x] + [2.5, _NAN]
    return []


def variants(sample):
    """Samples that differ from `sample` by one number of its arguments each."""
    from torch.testing._internal.opinfo.core import SampleInput

    leaves, tree = tree_flatten((tuple(sample.args), dict(sample.kwargs)))
    for place, x in enumerate(leaves):
        for number in others(x):
            args, kwargs = tree_unflatten([*leaves[:place], number, *leaves[place + 1 :]], tree)
            changed = SampleInput(sample.input, args=args, kwargs=kwargs)
            changed.output_process_fn_grad = sample.output_process_fn_grad
            changed.broadcasts_input = sample.broadcasts_input
            yield changed
