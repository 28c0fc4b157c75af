"""Compiled steps that call what `torch.compile` made: it runs as it is written while a step is captured, as under
`torch.compiler.set_stance("force_eager")`, so that the step replays whatever the backend and `fullgraph` say."""

import threading

import pytest
import torch
import torch_ltc
from steps import Held, compare_with_state
from torch._dynamo import eval_frame


class Net(torch.nn.Module):
    """A linear layer and a scale, which programs change."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.linear = torch.nn.Linear(3, 3)
        self.drop = torch.nn.Dropout(0.0)
        self.scale = 2.0

    def forward(self, x):
        return self.drop(self.linear(x)) * self.scale


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    assert type(eval_frame._stance) is eval_frame.DynamoStance
    torch._dynamo.reset()


def training(backend, **options):
    """Makes steps that train a network, which is compiled unless `backend` is `None`."""

    def make(held):
        held.net = Net().to("ltc")
        net = torch.compile(held.net, backend=backend, **options) if backend else held.net
        held.compiled = lambda: net  # which shows nothing in comparisons
        optimiser = torch.optim.SGD(held.net.parameters(), lr=1e-4)

        def step(x):
            optimiser.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimiser.step()
            return loss.detach()

        return step

    return make


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "ltc"])
def test_a_step_that_trains_a_compiled_network_replays(backend, fullgraph):
    compare_with_state(training(backend, fullgraph=fullgraph), 20, calls=25)


def changes(held):
    held.net.scale = held.net.scale % 3 + 1.0


@pytest.mark.parametrize(
    "change",
    [
        changes,
        lambda held: held.net.train(not held.net.training),
        lambda held: setattr(held.net.drop, "p", 1.0 - held.net.drop.p),
        lambda held: setattr(held.compiled(), "scale", held.net.scale + 1.0),
        lambda held: setattr(held.net, "drop", torch.nn.Tanh()),
        lambda held: held.net.linear.weight.data.mul_(0.5),
        lambda held: held.net.linear.bias.requires_grad_(not held.net.linear.bias.requires_grad),
        lambda held: held.compiled().register_forward_hook(lambda m, a, out: out * 1.5),
        lambda held: setattr(held.compiled(), "forward", lambda x: held.net.linear(x)),
        lambda held: setattr(held.net, "forward", lambda x: held.net.linear(x)),
        lambda held: setattr(held.compiled(), "_orig_mod", held.net.linear),
    ],
    ids="attribute mode rate through layer data freeze outer forward own wrapped".split(),
)
@pytest.mark.parametrize("fullgraph", [False, True])
def test_what_is_changed_of_a_compiled_network_is_seen(change, fullgraph):
    compare_with_state(training("eager", fullgraph=fullgraph), 3, change, calls=25)


def test_hooks_that_graphs_leave_out_run():
    """Graphs leave out hooks that a layer gets after them: a step has them, as eager execution does."""
    compiled, plain = Held(), Held()
    step, eager = torch_ltc.compile(training("eager")(compiled)), training(None)(plain)
    for i in range(20):
        x = torch.tensor([1.0 + i, 2.0, 3.0], device="ltc")
        assert torch.equal(step(x).cpu(), eager(x).cpu()), i
        if i == 9:
            for held in (compiled, plain):
                held.net.linear.register_forward_hook(lambda m, a, out: out * 1.5)
    assert step.counts[0] >= 10, step.explain()


def test_a_compiled_function_reads_globals_and_variables_that_change():
    def make(held):
        held.rate = 0.5
        power = 2

        @torch.compile(backend="eager", fullgraph=True)
        def scaled(x):
            return x**power * held.rate

        def raise_power(held):
            nonlocal power
            power += 1
            held.rate *= 0.5

        held.change = lambda: None
        held.change.raise_power = raise_power
        return lambda x: scaled(x).sum()

    compare_with_state(make, 10, lambda held: held.change.raise_power(held), calls=25)


def test_other_threads_compile_meanwhile():
    net = torch.compile(torch.nn.Linear(3, 3), backend="eager", fullgraph=True)
    outer = torch.compile(torch.nn.Linear(3, 3).to("ltc"), backend="eager")
    seen = []

    class Tracks:
        """Asks a backend, in another thread, whether graphs are compiled there while this one captures."""

        def __call__(self):
            thread = threading.Thread(target=lambda: seen.append((eval_frame._stance.stance, net(torch.ones(3)))))
            thread.start()
            thread.join()

    tracks = Tracks()

    @torch_ltc.compile
    def step(x):
        tracks()
        return outer(x)

    for _ in range(3):
        step(torch.ones(3, device="ltc"))
    assert {stance for stance, _ in seen} == {"default"}


def test_the_stance_of_the_program_is_kept():
    net = torch.compile(torch.nn.Linear(3, 3).to("ltc"), backend="eager")
    step = torch_ltc.compile(lambda x: net(x))
    with torch.compiler.set_stance("fail_on_recompile"):
        for _ in range(4):
            step(torch.ones(2, 3, device="ltc"))
        assert eval_frame._stance.stance == "fail_on_recompile"
    assert step.counts[0] >= 1, step.explain()
    assert eval_frame._stance.stance == "default"


def test_states_are_loaded_within_a_step_after_something_was_compiled():
    torch.compile(torch.nn.Linear(3, 3), backend="eager")(torch.ones(3))

    def make(held):
        make_step = training("eager")(held)
        held.mean = Net().to("ltc")

        def step(x):
            loss = make_step(x)
            held.mean.load_state_dict(held.net.state_dict())
            return loss

        return step

    compare_with_state(make, 10, changes, calls=25)


def test_a_step_within_a_compiled_function_is_a_step():
    net = Held()
    step = training("eager")(net)
    compiled = torch_ltc.compile(step)

    @torch.compile(backend="eager")
    def outer(x):
        return compiled(x + 1)

    other = Held()
    plain = training("eager")(other)
    for i in range(6):
        x = torch.tensor([1.0 + i, 2.0, 3.0])
        assert torch.equal(outer(x.to("ltc")).cpu(), plain(x.to("ltc") + 1).cpu()), i
