"""Mistakes in ltc's host code make tests of it fail. They are planted in what the stand-in sees of it: a call that it
takes no notice of is a call that was left out (`DRY_CUDA_MISTAKE`, `tests/cuda/runtime.h`). ltc itself has no switch
for them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import stand_in

HERE = Path(__file__).parent
PLACES, KERNELS = "test_places.py::test_", "test_kernels.py::test_"

#: What is planted, and tests that have to see it.
MISTAKES = {
    # Work of the user's stream is not waited for when a tensor is taken over.
    "wait_event": [PLACES + "models_keep_their_values_from_place_to_place"],
    # A download's event is behind nothing.
    "record_event": [PLACES + "values_are_the_cpus[written_views]"],
    # The host reads what is to arrive before it has.
    "synchronize_event": [
        PLACES + "values_are_the_cpus[written_views]",
        PLACES + "a_loop_that_reads_nothing_waits_for_the_run_ahead_alone",
    ],
    # Memory for transfers is given away while they read it, and markers are passed too early.
    "query_event": [
        PLACES + "what_is_uploaded_stays_until_it_has_arrived",
        PLACES + "an_event_is_reached_when_the_gpu_has_passed_it",
    ],
    "synchronize_stream": [PLACES + "waiting_after_each_step_tells_which_failed"],
    "other_stream": [KERNELS + "pointwise_kernels_have_the_bits_of_the_cpus_and_others_are_close"],
    "host_pointer": [KERNELS + "pointwise_kernels_have_the_bits_of_the_cpus_and_others_are_close"],
    "barrier": [KERNELS + "pointwise_kernels_have_the_bits_of_the_cpus_and_others_are_close"],
}


def pytest_with(mistake, *tests):
    """How pytest ends, and what it says of each test."""
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "DRY_CUDA_MISTAKE": mistake}
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.skipif(not stand_in.LATE, reason="work that is done at once hides most of them, as a GPU does with luck")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_makes_tests_fail(mistake):
    status, said = pytest_with(mistake, *MISTAKES[mistake])
    failed = {line.split()[1].split("/")[-1] for line in said.splitlines() if line.startswith("FAILED ")}
    assert status == 1 and failed == set(MISTAKES[mistake]), said


def test_there_is_no_other_mistake():
    status, _ = pytest_with("nothing_like_that", "--co")
    assert status < 0, "the stand-in ends the process"
