"""The examples train on ltc as on the CPU; those of static shape never fall back."""

import importlib
import struct
import sys
from pathlib import Path

import pytest
import torch
import torch_ltc

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

STATIC = ["mnist", "gpt", "resnet", "lstm", "unet"]
STEPS = 4


@pytest.fixture(autouse=True)
def one_thread():
    """Two thread teams on few cores slow each other; the examples are small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [*STATIC, "augment"])
def test_losses_equal_the_cpus(name, record_property):
    example = importlib.import_module(name)
    cpu = example.main("cpu", STEPS)
    before = torch_ltc.fallback_count()
    ltc = example.main("ltc", STEPS)
    used = torch_ltc.fallback_count() - before
    record_property("bitwise", ltc == cpu)
    apart = [] if ltc == cpu else [abs(a - b) / abs(a) for a, b in zip(cpu, ltc)]
    print(f"{name}: {apart or 'bitwise equal'}, {used} fallbacks")
    assert ltc == pytest.approx(cpu, rel=1e-5, abs=0)
    assert name not in STATIC or used == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", STATIC)
def test_compiled_steps_replay_and_learn_the_same(name):
    def losses(compiled):
        torch.manual_seed(0)
        step = importlib.import_module(name).build(torch.device("ltc"), compiled=compiled)
        torch.manual_seed(1)
        taken = [step() for _ in range(7)]
        torch_ltc.mark_step()
        return [loss.item() for loss in taken]

    made = []

    def compiled(step):
        made.append(torch_ltc.compile(step))
        return made[-1]

    assert losses(compiled) == losses(lambda step: step)
    assert made[0].counts[0] >= 3, made[0].explain()


def test_mnist_reads_idx_files(tmp_path, monkeypatch):
    mnist = importlib.import_module("mnist")
    pixels = bytes(range(256)) * 4
    (tmp_path / "train-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, 4, 16, 16) + pixels)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, 4) + bytes([3, 1, 4, 1]))
    images, labels = mnist.idx_digits(tmp_path, 3)
    assert images.shape == (3, 1, 16, 16) and labels.tolist() == [3, 1, 4]
    assert images[0, 0, 0, 1].item() == pytest.approx(1 / 255)
