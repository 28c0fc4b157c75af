"""`torch.distributed` on the device, in processes of this machine. What each rank does is in `rank_*.py`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from start_ranks import are_content, ended

HERE = Path(__file__).parent
CALLS = ["reductions", "shapes", "movements", "messages", "groups", "mistakes"]
TRAINING = ["ddp", "ddp_bits", "ddp_compiled", "ddp_more", "sharded", "drawing"]
OVERLAP = ["meets", "steps", "memory", "unneeded"]
RESUME = ["saved", "loaded"]
#: Where tensors go around, or ranks leave others out.
OF_THREE = ["movements", "groups", "cuts"]


def ranks(case, tmp_path, world=0, **settings):
    """Runs a case in fresh processes; each one's exit code and output."""
    # Two cores: a thread each.
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR", **settings}
    world = world or (3 if case in OF_THREE else 2)
    kinds = {"calls": CALLS, "training": TRAINING, "overlap": OVERLAP, "resume": RESUME}
    kind = next((kind for kind, cases in kinds.items() if case in cases), "order")
    command = [sys.executable, "-W", "ignore", HERE / f"rank_{kind}.py", case, tmp_path / f"store-{case}-{world}"]
    return ended(command, world, env)


@pytest.mark.parametrize(
    "case", [*CALLS, *TRAINING, *OVERLAP[:3], "cuts", "other_first", "late", "leaves", "destroys", "fails"]
)
@pytest.mark.timeout(200)
def test_ranks_agree_with_the_cpu(case, tmp_path):
    # The bits of the CPU's kernels, where they are what is compared.
    exact = {"LTC_FUSION": "exact", "LTC_OVERLAP": "0"} if case == "ddp_bits" else {}
    are_content(ranks(case, tmp_path, **exact))


@pytest.mark.timeout(200)
def test_torchrun_starts_programs_as_they_are(tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, HERE / "rank_training.py", "launched", tmp_path / "unused"]
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=150)
    assert ended.returncode == 0 and ended.stdout.count("content") == 2, ended.stdout + ended.stderr


@pytest.mark.parametrize("settings", [{"LTC_REWRITES": "branches"}, {"LTC_MEMORY_BUDGET": "1000"}], ids=str)
@pytest.mark.timeout(200)
def test_nothing_changes_the_order_of_collectives(settings, tmp_path):
    are_content(ranks("other_first", tmp_path, **settings))


@pytest.mark.timeout(200)
def test_checkpoints_are_loaded_by_other_numbers_of_ranks(tmp_path):
    are_content(ranks("saved", tmp_path))
    for world in (1, 3):
        are_content(ranks("loaded", tmp_path, world))


@pytest.mark.timeout(200)
def test_ranks_that_draw_what_they_do_agree():
    torchrun = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "-m", "fuzz.ranks", "--steps", "300", "--seed", "7"]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=150,
        cwd=HERE.parent,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0 and ended.stdout.count("values right") == 2, ended.stdout + ended.stderr[-3000:]


@pytest.mark.timeout(200)
def test_torchrun_starts_ranks_again_which_go_on_from_their_checkpoint(tmp_path):
    def losses(name, **settings):
        (tmp_path / name).mkdir()
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command = [*torchrun, "--max-restarts", "1", HERE / "rank_resume.py", "restarted", tmp_path / name / "unused"]
        # A store of its own for each attempt (docs/distributed.md), and losses of equal bits.
        store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        env = {**os.environ, **store, "LTC_FUSION": "exact", "LTC_OVERLAP": "0", "OMP_NUM_THREADS": "1", **settings}
        ended = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=90, env=env)
        told = [line for line in ended.stdout.splitlines() if line.startswith("attempt")]
        assert ended.returncode == 0 and len(told) == 1, ended.stdout + ended.stderr
        return told[0].split(": ")

    attempt, undisturbed = losses("undisturbed")
    assert attempt == "attempt 0"
    assert losses("disturbed", DIES_AT="3") == ["attempt 1", undisturbed]


@pytest.mark.parametrize("case", ["disagreed", "ddp", "movements"])
@pytest.mark.timeout(200)
def test_ranks_compare_what_they_call_when_told_so(case, tmp_path):
    are_content(ranks(case, tmp_path, TORCH_DISTRIBUTED_DEBUG="DETAIL"))


@pytest.mark.timeout(200)
def test_waits_stay_where_they_are_when_told_so(tmp_path):
    are_content(ranks("steps", tmp_path, LTC_REWRITES="-waits"))
    # Then ranks that need a program to run on wait for each other.
    for code, out in ranks("meets", tmp_path, LTC_REWRITES="-waits"):
        assert code == 1 and "RuntimeError" in out, out


@pytest.mark.timeout(200)
def test_an_order_of_its_own_for_each_collective_would_be_found_out(tmp_path):
    (code, out), (other, told) = ranks("planted", tmp_path)
    assert code == 1 and "AssertionError: 12.0" in out, out
    assert other == 1 and "RuntimeError" in told, told


@pytest.mark.timeout(200)
def test_a_rank_that_ends_by_an_error_keeps_nobody_waiting(tmp_path):
    (code, out), other = ranks("mistaken", tmp_path)
    assert code == 1 and out.rstrip().endswith("ValueError: a mistake"), out
    are_content([other])


@pytest.mark.parametrize("case", ["killed", "unneeded", "stopped"])
@pytest.mark.timeout(200)
def test_a_rank_that_is_gone_or_silent_is_an_error_of_the_others(case, tmp_path):
    (code, out), (killed, _) = ranks(case, tmp_path)
    assert killed == -signal.SIGKILL
    are_content([(code, out)])
