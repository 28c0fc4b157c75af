"""Starts the ranks of a case of `rank_*.py`, each in a process of its own."""

import subprocess


def ended(command, world, env, seconds=150):
    """Each rank's exit code and output. A rank gets its number and how many there are; none outlives the call."""
    everything = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": env}
    running = [subprocess.Popen([*map(str, command), str(rank), str(world)], **everything) for rank in range(world)]
    try:
        outs = [process.communicate(timeout=seconds)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    return [(process.returncode, out) for process, out in zip(running, outs, strict=True)]


def are_content(results):
    for rank, (code, out) in enumerate(results):
        assert code == 0 and out.endswith("content\n"), f"rank {rank} ended with {code}:\n{out[-3000:]}"
