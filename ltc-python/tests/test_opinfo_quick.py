"""The short list of the operator database passes, and the runner notices what it should."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch_ltc  # noqa: F401

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from opinfo import check, database, modules, report


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fusion", ["0", "1"])
def test_the_short_list_passes(tmp_path, fusion):
    command = [sys.executable, "-m", "opinfo", "--quick", "--results", str(tmp_path / "quick.jsonl")]
    environment = {**os.environ, "LTC_FUSION": fusion}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert len(report.read(tmp_path / "quick.jsonl")) >= 60


def failures_of(entry, altered, phases=("forward", "backward")):
    """The kinds of failure the checker finds when ltc runs `altered` where the CPU runs the operator."""
    op = copy.copy(database.entries()[entry])
    right = op.op
    op.op = lambda x, *args, **kwargs: (altered if x.device.type == "ltc" else right)(x, *args, **kwargs)
    found = []
    options = SimpleNamespace(samples=1, phases=phases, dtypes=[torch.float32])
    checker = check.Checker(op, options, at=lambda text: None, fail=lambda *row: found.append((row[0], row[3])))
    tally = checker.run()
    return set(found), tally


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        return g * 2


@pytest.mark.parametrize(
    "altered,expected",
    [
        (torch.exp, set()),
        (lambda x: x.exp() * 1.001, {("forward", "value")}),
        (lambda x: x.exp().double(), {("forward", "dtype")}),
        (lambda x: x.exp()[:1], {("forward", "shape")}),
        (lambda x: x.exp().detach(), {("forward", "requires_grad")}),
        (lambda x: x.cpu().exp(), {("forward", "device")}),
        (lambda x: x.no_such_method(), {("forward", "raises")}),
        (WrongGradient.apply, {("backward", "value")}),
    ],
)
def test_a_wrong_operator_is_noticed(altered, expected):
    found, _ = failures_of("exp", altered)
    assert found == expected


def test_other_strides_and_aliasing_are_flagged():
    _, tally = failures_of("mm", lambda x, y: x.mm(y).t().contiguous().t())
    assert set(tally.flags) == {"strides"}
    _, tally = failures_of("contiguous", lambda x: x.clone())
    assert set(tally.flags) == {"alias"}


def row(entry, *failures):
    return {"entry": entry, "failures": list(failures), "fallbacks": {}, "harness": None}


COUNTS = {"category": "other", "checks": 1, "values": 1, "bitwise": 1, "flags": {}}


def test_exceptions_cover_their_failures_and_go_stale():
    failure = {"phase": "out", "dtype": "bool", "kind": "value", "message": "", "repro": ""}
    listed = [{"entry": "a*", "phases": ["out"], "reason": "r"}, {"entry": "b", "dtypes": ["int64"], "reason": "r"}]
    phases, dtypes = ["forward", "out"], ["bool"]
    verdict = report.judge([row("ab", failure), row("b")], listed, phases, dtypes)
    assert verdict.passed() and list(verdict.expected) == ["ab"]
    verdict = report.judge([row("ab"), row("b", failure)], listed, phases, ["bool", "int64"])
    assert not verdict.passed() and list(verdict.unexpected) == ["b"] and len(verdict.stale) == 2
    failure["message"] = "the driver is not there"
    for more, covers in (({"kind": "value"}, True), ({"kind": "raises"}, False), ({"says": "driver"}, True)):
        verdict = report.judge([row("a", failure)], [{"entry": "a", "reason": "r", **more}], phases, dtypes)
        assert verdict.passed() is covers and bool(verdict.stale) is not covers


def test_an_operator_that_runs_eagerly_must_be_listed_and_listed_ones_go_stale():
    rows = [{**row("a"), "fallbacks": {"aten::x": 2}}, row("b")]
    listed = [{"operator": "aten::y", "entry": "b", "reason": "r"}]
    verdict = report.judge(rows, [], check.PHASES, ["float32"], listed, samples=4)
    assert verdict.eager == {"aten::x": ["a"]} and len(verdict.stale) == 1 and not verdict.passed()
    assert "aten::x in a" in report.table([{**r, **COUNTS} for r in rows], verdict)
    listed = [{"operator": "aten::x", "entry": "a", "reason": "r"}]
    assert report.judge(rows, [], check.PHASES, ["float32"], listed, samples=4).passed()
    listed[0]["only"] = True
    assert report.judge(rows, [], check.PHASES, ["float32"], listed, samples=4).passed()
    rows[1]["fallbacks"] = {"aten::x": 1}
    assert report.judge(rows, [], check.PHASES, ["float32"], listed, samples=4).eager == {"aten::x": ["b"]}


def test_an_exception_that_needs_many_samples_is_due_only_with_them():
    row = {"entry": "a", "failures": [], "harness": None, "fallbacks": {}}
    listed = [{"entry": "a", "samples": 10, "reason": "r"}]
    eager = [{"operator": "aten::x", "entry": "a", "samples": 10, "reason": "r"}]
    assert report.judge([row], listed, check.PHASES, ["float32"], eager, samples=4).passed()
    assert len(report.judge([row], listed, check.PHASES, ["float32"], eager, samples=10).stale) == 2


def test_a_crash_is_a_failure_of_its_entry(tmp_path):
    from opinfo import run

    options = run.arguments(["--results", str(tmp_path / "r.jsonl"), "--samples", "1"])
    worker = run.Worker(options)
    worker.process.kill()
    worker.process.wait()
    found = worker.check("exp", 30.0)["failures"]
    worker.close()
    assert [f["kind"] for f in found] == ["crash"] and "SIGKILL" in found[0]["message"]


def test_a_hang_is_a_failure_of_its_entry(tmp_path):
    from opinfo import run

    worker = run.Worker(run.arguments(["--results", str(tmp_path / "r.jsonl")]))
    found = worker.check("exp", 0.0)["failures"]
    assert not worker.alive()
    worker.close()
    assert [f["kind"] for f in found] == ["hang"]


def test_exceptions_are_well_formed():
    names = database.entries()
    files = [ROOT / "opinfo" / name for name in ("expected_failures.toml", "expected_on_cuda.toml")]
    listed = [e for file in files for read in (report.expectations, report.eager_operators) for e in read(file)]
    assert all(any(report._names(e, n) for n in names) for e in listed), json.dumps(listed)


@pytest.mark.parametrize("way", modules.WAYS)
def test_modules_and_optimisers_train_as_on_the_cpu(way):
    names = (
        "nn.Linear/train/0",
        "nn.BatchNorm1d/train/0",
        "nn.GRUCell/train/0",
        "nn.Dropout/train/0",
        "nn.KLDivLoss/train/0",  # whose target is computed from a leaf
        "SGD/foreach mom",
        "Adam/",
    )
    cases = [c for c in [*modules.modules(), *modules.optimisers()] if c.name.startswith(names)]
    assert len(cases) >= 8
    ran = {c.name: c.run(way) for c in cases}
    assert not {name: difference for name, (difference, _) in ran.items() if difference}
    assert way == "recorded" or sum(replays > 0 for _, replays in ran.values()) > len(cases) / 2


def test_a_module_that_trains_otherwise_is_noticed():
    class Wrong(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) * (1.01 if x.device.type == "ltc" else 1.0)

    sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.1)
    case = modules.Case("wrong", lambda: (Wrong(3, 2), sgd, ((torch.ones(4, 3),), {})))
    assert all("call 0" in case.run(way)[0] for way in modules.WAYS)
