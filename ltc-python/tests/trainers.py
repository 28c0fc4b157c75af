"""Steps that leave something where they find it again, as tests use them."""

import torch
import torch_ltc
from torch import nn


class Trainer:
    """What steps are methods of; each leaves something."""

    def __init__(self, device):
        torch.manual_seed(0)
        self.device = device
        self.net = nn.Linear(4, 3).to(device)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        self.loss = self.last = self.other = None
        self.hidden = torch.zeros(3, device=device)
        self.average = torch.zeros((), device=device)
        self.states = (torch.zeros(3, device=device), torch.zeros(3, device=device))
        self.calls = self.logged = self.limit = 0
        self.every, self.decay, self.rate = 5, 0.5, 1.0
        self.stats = {"loss": None, "norm": None}
        self.seen = []
        self.lists = {"loss": [], "norm": []}
        self.counted = {"calls": 0}

    def back(self, loss):
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()

    # ---- tensors ----

    def loss_with_used_up_history(self, x):
        self.loss = self.net(x).square().mean()
        self.opt.zero_grad()
        self.loss.backward()
        self.opt.step()
        return self.loss.detach() * 2

    def loss_detached(self, x):
        loss = self.net(x).square().mean()
        self.loss = loss.detach()
        return self.back(loss)

    def running_average(self, x):
        loss = self.net(x).square().mean()
        self.average = 0.9 * self.average + 0.1 * loss.detach()
        return self.back(loss)

    def recurrent(self, x):
        out = self.net(x) + self.hidden
        self.hidden = out.detach().mean(0)
        return self.back(out.square().mean())

    def recurrent_with_two_states(self, x):
        self.states = tuple(state.detach() for state in self.states)
        hidden, cell = self.states
        out = torch.tanh(self.net(x).mean(0) + hidden)
        self.states = out, cell * 0.5 + out
        return self.back(out.square().mean() + self.states[1].sum())

    def compares_with_the_last(self, x):
        loss = self.net(x).square().mean()
        better = loss.detach() * 0 if self.last is None else loss.detach() - self.last
        self.last = loss.detach()
        self.back(loss)
        return better

    def reads_the_last_loss_with_history(self, x):
        old = self.average if self.loss is None else self.loss.detach()
        self.loss = self.net(x).square().mean() + 0.1 * old
        return self.back(self.loss)

    def entries_of_a_dict(self, x):
        loss = self.net(x).square().mean()
        out = self.back(loss)
        self.stats["loss"] = out
        self.stats["norm"] = self.net.weight.detach().norm()
        return out

    def one_tensor_in_two_places(self, x):
        out = self.back(self.net(x).square().mean())
        self.last = self.other = out
        return self.last + self.other

    def swaps(self, x):
        if self.last is None:
            self.last, self.other = x.sum(), x.mean()
        self.last, self.other = self.other, self.last + x.sum()
        return self.last * 1

    def keeps_an_argument(self, x):
        before = x if self.last is None else self.last
        self.last = x
        return (before - x).sum()

    def writes_to_what_it_left(self, x):
        if self.last is not None:
            self.last.add_(1)
        kept, self.last = self.last, x.sum()
        return self.last if kept is None else kept + self.last

    def keeps_a_view(self, x):
        out = self.net(x).detach()
        self.last = out[0]
        return out

    def appends(self, x):
        loss = self.net(x).square().mean()
        self.seen.append(loss)
        return self.back(loss)

    def appends_several(self, x):
        out = self.back(self.net(x).square().mean())
        self.seen.append({"loss": out, "again": [out, x]})
        self.seen.append((1.5, "text"))
        return out

    def appends_to_lists_of_a_dict(self, x):
        out = self.back(self.net(x).square().mean())
        self.lists["loss"].append(out)
        self.lists["norm"].append(self.net.weight.detach().norm())
        return out

    def of_a_module(self, x):
        self.net.last = self.net(x).detach()
        return self.net.last.sum()

    # ---- numbers that are read off the device ----

    def returns_a_number(self, x):
        return self.back(self.net(x).square().mean()).item()

    def sums_up_losses(self, x):
        loss = self.back(self.net(x).square().mean())
        self.rate += loss.item() * x.shape[0]
        return loss

    def keeps_the_last_number(self, x):
        loss = self.back(self.net(x).square().mean())
        self.other = loss.item()
        return {"loss": loss.item(), "twice": 2 * loss.item() + 1}

    def appends_numbers(self, x):
        loss = self.back(self.net(x).square().mean())
        self.calls += 1
        self.seen.append((loss.item(), 1))
        self.lists["loss"].append(loss.item() / 2)
        return loss

    def averages(self, x):
        loss = self.back(self.net(x).square().mean())
        self.rate = self.rate * self.decay + (1 - self.decay) * loss.item()
        return self.rate

    # ---- numbers ----

    def counts(self, x):
        self.calls += 1
        return self.back(self.net(x).square().mean())

    def counts_by_sizes(self, x):
        self.calls = self.calls + x.shape[0]
        return self.back(self.net(x).square().mean())

    def every_few(self, x):
        self.calls += 1
        loss = self.back(self.net(x).square().mean())
        if self.calls % self.every == 0:
            self.logged += 1
            return loss * 100
        return loss

    def up_to_a_limit(self, x):
        if self.limit < 9:
            self.limit += 1
            return x.sum()
        return x.sum() * 2

    def starts_again(self, x):
        self.calls += 1
        if self.calls >= 6:
            self.calls = 0
        return x.sum()

    def counts_down(self, x):
        self.calls -= 2
        self.decay -= 0.5
        return x.sum()

    def warms_up(self, x):
        self.calls += 1
        share = min(0.9, (1 + self.calls) / (10 + self.calls))
        self.average = share * self.average + (1 - share) * self.net(x).detach().mean()
        return self.average * (1 / self.calls)

    def warms_up_in_a_dict(self, x):
        self.counted["calls"] += 1
        share = max(-(2 - 3 * self.counted["calls"]) / (9 + self.counted["calls"] * 2), 0.5)
        return self.net(x).detach() * share

    def decays(self, x):
        self.rate *= self.decay
        return self.rate * self.net(x).detach()

    def sets_its_rate(self, x):
        self.rate = self.rate * 0.5
        for group in self.opt.param_groups:
            group["lr"] = 0.1 * self.rate
        return self.back(self.net(x).square().mean())

    def sums_up(self, x):
        self.rate += x.shape[0] / 2
        return x.sum()


def refused(make, calls=12):
    """A step that is not replayed and agrees; why not."""
    found = {}
    for device in ("cpu", "ltc"):
        trainer = Trainer(device)
        step = make(trainer) if device == "cpu" else torch_ltc.compile(make(trainer))
        xs = [torch.full((2, 4), float(i)).to(device) for i in range(calls)]
        found[device] = [step(x).detach().cpu() for x in xs], trainer.calls, len(trainer.seen)
    for one, other in zip(found["cpu"][0], found["ltc"][0], strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)
    assert found["cpu"][1:] == found["ltc"][1:]
    assert step.counts[0] == 0, step.explain()
    return step.explain()
