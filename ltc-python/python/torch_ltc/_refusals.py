"""The words in which a step is refused."""

from torch_ltc import _ltc

#: Why a step is refused that returns what only code of the program can go back through.
BY_HOOKS = (
    "functions of Python take what is saved for going back (torch.utils.checkpoint, save_on_cpu), and it is gone back "
    "through its results: call backward() within the step"
)
#: Why a step is refused whose backward pass leaves it; in the words of `ltc-torch-sys/csrc/history.cpp`.
OUTSIDE = "it differentiates through a tensor that was made outside"


def with_advice(why: str) -> str:
    """A refusal; where an operator ran eagerly, with the advice that there is for it."""
    name, eagerly, _ = why.partition(" runs eagerly")
    known = {op: advice for op, _, _, advice in _ltc.fallbacks()}
    advice = known.get(name) or known.get(name.rpartition(".")[0])
    return f"{why}: {advice}" if eagerly and advice else why
