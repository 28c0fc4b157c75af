"""What an entry of the zoo is: a model, batches, a loss, an optimiser; most need no more than the first three."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map


def adamw(parameters):
    """The optimiser of most entries."""
    return torch.optim.AdamW(parameters, lr=1e-3)


def sgd(parameters):
    """The optimiser of networks with batch norm, whose first steps with Adam magnify roundings."""
    return torch.optim.SGD(parameters, lr=1e-2, momentum=0.9)


@dataclass
class Task:
    """A training run, on the CPU; whoever trains moves it."""

    model: nn.Module
    #: Structures of tensors, one a step, in a circle.
    batches: list[Any]
    #: From the model (or what stands for it) and a batch to a number.
    loss: Callable[[Any, Any], torch.Tensor]
    optimiser: Callable[[Any], Any] = adamw
    #: Makes the step from the model, what is called in its place, and a batch's device, where one backward is not all.
    stepper: Callable[..., Callable[[Any], torch.Tensor]] | None = None
    #: Makes a batch by means of the model before the step, from the number of the step, the model, and its device.
    collect: Callable[[int, Any, torch.device], Any] | None = None

    def batch(self, number, forward, device):
        """The batch of a step on a device."""
        if self.collect is not None:
            return self.collect(number, forward, device)
        return moved(self.batches[number % len(self.batches)], device)

    def step(self, forward, device):
        """The training step: from a batch to its loss."""
        if self.stepper is not None:
            return self.stepper(self.model, forward, device)
        optimiser = self.optimiser([p for p in self.model.parameters() if p.requires_grad])

        def learn(batch):
            optimiser.zero_grad()
            value = self.loss(forward, batch)
            value.backward()
            optimiser.step()
            return value.detach()

        return learn


def moved(batch, device, dtype=None):
    """A batch on a device; what is of floats is of `dtype`."""

    def move(x):
        if not isinstance(x, torch.Tensor):
            return x
        return x.to(device, dtype if x.is_floating_point() else None)

    return tree_map(move, batch)
