"""The zoo's short form: some entries train as on the CPU in every way, and what is wrong is found and told."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from zoo import models, report, run, train


@pytest.mark.timeout(300)
def test_entries_train_as_on_the_cpu_and_a_run_goes_on_where_it_was(tmp_path, capsys):
    results, known = tmp_path / "zoo.jsonl", tmp_path / "nothing is known.toml"
    names = ["small/regression", "small/ppo"]
    options = ["--untimed", "--threads", "1", "--results", str(results), "--known", str(known)]
    assert run.main([*names[:1], *options]) == 0, capsys.readouterr().err
    first = results.read_text()
    assert run.main([*names, *options, "--resume"]) == 0, capsys.readouterr().err
    assert results.read_text().startswith(first) and list(report.read(results)) == names
    said = capsys.readouterr().out
    assert "2 of 2 entries agree in all ways" in said and "| small/ppo | yes | 0 | 0 | 100% |" in said
    for row in report.read(results).values():
        ways = row["ways"]
        assert set(ways) == {"eager", *train.WAYS} and ways["compiled"]["replayed"] >= train.STEPS - 4
        assert all(sum(ways[way]["programs"]) > 0 for way in train.WAYS)
        assert all(len(set(losses)) == train.STEPS for losses in row["losses"].values())


@pytest.mark.timeout(120)
@pytest.mark.parametrize("entry", ["language/llama, padded", "language/t5", "perception/segformer"])
def test_a_model_of_transformers_trains_as_on_the_cpu(entry):
    pytest.importorskip("transformers", reason="this entry needs transformers (ltc-python/zoo/requirements.txt)")
    row = train.examine(entry, ways=("recorded", "compiled"), timed=False)
    assert report.problems({"entry": entry, **row}) == [] and row["ways"]["compiled"]["replayed"] == train.STEPS - 3


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("entry", "plant", "words"),
    [
        ("small/regression", "loss", "the loss is"),
        ("small/regression", "gradient", "the gradients are"),
        ("small/vae", "draws", "the gradients are"),
    ],
)
def test_a_mistake_in_training_is_found_in_every_way(entry, plant, words):
    row = train.examine(entry, plant=plant, timed=False)
    found = report.problems({"entry": entry, **row})
    assert [(way, kind) for way, kind, _ in found] == [(way, "differs") for way in train.WAYS]
    assert all(words in said for _, _, said in found)


@pytest.mark.timeout(120)
def test_what_pytorchs_own_compiler_cannot_do_either_is_told_apart():
    row = train.examine("small/heat equation", ways=("backend",), timed=False)
    assert report.problems({"entry": "small/heat equation", **row}) == []
    assert "aot_eager fails too" in report.alike(row) and "double backward" in report.alike(row)


def test_a_way_that_fails_is_told_and_others_go_on(monkeypatch):
    def refuse(*args, **kwargs):
        raise ValueError("not today")

    monkeypatch.setattr(train.torch_ltc, "compile", refuse)
    row = train.examine("small/regression", ways=("recorded", "compiled"), timed=False)
    assert report.problems(row) == [("compiled", "error", "making it: ValueError: not today")]
    assert len(row["losses"]["recorded"]) == train.STEPS


def test_an_entry_that_is_broken_is_an_error_of_its_row(tmp_path):
    child = run.Child({"OMP_NUM_THREADS": "1"}, 60.0, "zoo.worker")
    _, row = child.ask({"entry": "small/no such", "ways": ["recorded"]})
    child.close()
    assert report.problems(row) == [("all", "error", "KeyError: 'no such'")]


def test_losses_are_measured_by_those_of_double_precision_where_they_are_far_apart():
    near = train._NEAR[train.torch.float32]
    assert train._difference([1.0, 2.0], [1.00001, 2.0001], near, None) is None
    assert "step 1: the loss is 2.001, the CPU's 2" in train._difference([1.0, 2.0], [1.0, 2.001], near, None)
    assert train._difference([1.0, 2.0], [1.0, 2.001], near, [1.0, 2.0006]) is None
    assert "in double precision 1.99" in train._difference([1.0, 2.0], [1.0, 2.03], near, [1.0, 1.99])
    assert train._difference([1.0, 2.0, 3.0], [1.0, 2.0, 3.001], near, [1.0, 2.0006, 3.0]) is None
    assert train._difference([1.0, 2.0, 3.0], [1.0, 2.001, 3.0], near, [1.0, 2.0, 3.0006]) is not None
    # Where the CPU itself is far off, nothing is said by being as far.
    assert train._difference([1.0, 2.0], [1.0, 2.1], near, [1.0, 3.0]) is not None


def test_gradients_are_measured_as_one_vector_and_by_those_of_double_precision():
    differ, of = train._gradients_differ, lambda *values: train.torch.tensor(values, dtype=train.torch.float64)
    assert differ(None, None, 1e-3, None) is None and differ(of(1.0, 100.0), of(1.01, 100.0), 1e-3, None) is None
    assert "and the other does not" in differ(of(1.0), None, 1e-3, None)
    assert "inf from the CPU's" in differ(of(1.0), of(1.0, 2.0), 1e-3, None)
    assert "0.01 from the CPU's" in differ(of(1.0), of(1.01), 1e-3, None)
    assert differ(of(1.0), of(1.01), 1e-3, of(1.006)) is None
    assert "in double precision they are 0.0099" in differ(of(1.0), of(1.01), 1e-3, of(1.0001))


def test_what_is_known_is_listed_and_goes_stale(tmp_path):
    step = {"difference": None, "programs": [3, 1, 0, 0, 2], "fallbacks": {"aten::nonzero": 2.0}}
    compiled = {"difference": None, "programs": [1], "fallbacks": {}, "replayed": 1, "calls": 9, "explain": "words"}
    row = {"entry": "small/a", "ways": {"eager": {}, "recorded": step, "compiled": compiled}}
    kinds = [(way, kind) for way, kind, _ in report.problems(row)]
    assert kinds == [("recorded", "eager"), ("recorded", "programs"), ("compiled", "recorded")]
    file = tmp_path / "known.toml"
    listed = [{"entry": "small/*", "kind": kind, "way": way, "reason": f"{way} {kind}"} for way, kind in kinds]
    listed.append({"entry": "small/a", "kind": "differs", "reason": "once"})
    said = lambda one: "[[known]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in one.items())
    file.write_text("".join(map(said, listed)))
    assert report.judge([row], report.known(file), ["recorded", "compiled"]) == [
        "small/a: differs is listed as known and is not so any more: once"
    ]
    assert len(report.judge([row], [], ["recorded", "compiled"])) == 3
    assert "recorded eager" in report.table([row], report.known(file), "about")
    file.write_text('[[known]]\nentry = "small/a"\n')
    with pytest.raises(ValueError, match="each needs"):
        report.known(file)


def test_ratios_are_those_of_the_blocks_beside():
    row = {"ways": {"recorded": {"seconds": 2.0, "eager seconds": 3.0}, "compiled": {}}}
    assert report.ratio(row, "recorded") == 1.5 and report.ratio(row, "compiled") is None


def test_every_package_is_in_the_requirements():
    required = (ROOT / "zoo" / "requirements.txt").read_text()
    packages = {package for needed in models.FAMILIES.values() for package in needed}
    assert packages and all(f"\n{package}==" in required for package in packages)
    with pytest.raises(SystemExit, match="no such entry: small/x"):
        run.chosen(["small/x"])
