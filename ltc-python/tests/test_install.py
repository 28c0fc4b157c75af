"""`pip install` into a clean environment, and what an environment with the wrong torch is told."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
import torch
import torch_ltc
from torch_ltc import _built_for

ROOT = Path(__file__).parent.parent

TRAIN = """
import torch, torch_ltc
x = torch.ones(4, 3, device="ltc")
model = torch.nn.Linear(3, 1).to("ltc")
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    loss = (model(x) - 1).square().mean()
    loss.backward()
    opt.step()
assert loss.item() < 1 and torch_ltc.fallback_count() == 0
print(torch_ltc.__file__)
"""


#: Code and what it needs are 7 MB; debug information would make it 37.
LARGEST = 10_000_000


def run(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)


@pytest.mark.timeout(1200)
def test_a_clean_environment_gets_one_wheel_that_works(tmp_path):
    env = tmp_path / "env"
    venv.create(env, with_pip=True)
    # Python 3.11 puts a setuptools there that is older than torch wants.
    run(env / "bin" / "pip", "uninstall", "--yes", "setuptools")
    site = Path(sysconfig.get_path("purelib", vars={"base": str(env)}))
    # torch and maturin are borrowed, so that nothing is downloaded.
    borrowed = {Path(torch.__file__).parent.parent, Path(sysconfig.get_path("purelib"))}
    (site / "borrowed.pth").write_text("\n".join(map(str, borrowed)))
    path = os.pathsep.join([str(env / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    surroundings = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(env)}
    pip = run(env / "bin" / "pip", "install", "--no-index", "--no-build-isolation", ".", cwd=ROOT, env=surroundings)
    assert pip.returncode == 0, pip.stdout[-2000:] + pip.stderr[-4000:]
    installed = site / "torch_ltc"
    assert all((installed / name).exists() for name in ("__init__.py", "_ltc.abi3.so", "_ltc.pyi", "py.typed"))
    assert (installed / "_ltc.abi3.so").stat().st_size < LARGEST
    (info,) = site.glob("torch_ltc-*.dist-info")
    assert "Tag: cp311-abi3-" in (info / "WHEEL").read_text() and "torch>=2.11,<2.16" in (info / "METADATA").read_text()
    assert _built_for.TORCH in (installed / "_built_for.py").read_text()
    used = run(env / "bin" / "python", "-c", TRAIN, cwd=tmp_path)
    assert used.returncode == 0 and Path(used.stdout.strip()).parent == installed, used.stdout + used.stderr
    assert info.name == f"torch_ltc-{torch_ltc.__version__}.dist-info"


LOADED = """
import sys, torch
before = set(sys.modules)
import torch_ltc
new = {name for name in set(sys.modules) - before if name.partition(".")[0] not in sys.stdlib_module_names}
print(*sorted(new))
assert {"compile", "CompiledStep", "StaleStep"} <= set(dir(torch_ltc)) and not hasattr(torch_ltc, "compiled")
torch_ltc.compile(abs)
print("torch_ltc._step" in sys.modules, *sorted(set(torch_ltc.__all__) - set(vars(torch_ltc))))
"""


def test_importing_loads_little():
    """What torch loads by itself, the standard library, and of ours what every program needs."""
    done = run(sys.executable, "-c", LOADED)
    assert done.returncode == 0, done.stderr
    new, then = done.stdout.splitlines()
    of_others = [name for name in new.split() if name != "torch.ltc" and name.partition(".")[0] != "torch_ltc"]
    assert not of_others, "a program that imports torch_ltc would wait for these"
    for_steps = {"_step", "_run", "_survey", "_host", "_arguments", "_history", "_dynamo", "_host_graph", "lightning"}
    assert not for_steps & {name.removeprefix("torch_ltc.") for name in new.split()}
    assert then == "True", "what is loaded on demand is there when it is asked for"


EXTENSION = """
import ctypes, importlib.util, sys
ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL)
spec = importlib.util.spec_from_file_location("_ltc", sys.argv[1])
extension = importlib.util.module_from_spec(spec)
spec.loader.exec_module(extension)
extension.init()
extension.manual_seed(7)
extension.mark_step(True)
print(extension.initial_seed(0), extension.device_count(), sys.version_info[1])
"""


def pythons():
    found = [sys.executable, *filter(None, (shutil.which(f"python3.{minor}") for minor in range(11, 20)))]
    return [p for p in found if run(p, "-c", "").returncode == 0]


def test_the_extension_loads_in_every_python_there_is():
    library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    seen = set()
    for python in pythons():
        done = run(python, "-c", EXTENSION, torch_ltc._ltc.__file__, library)
        assert done.returncode == 0, (python, done.stderr[-2000:])
        seed, devices, minor = done.stdout.split()
        assert seed == "7" and int(devices) >= 1
        seen.add(int(minor))
    assert sys.version_info[1] in seen


def imports(path, *flags):
    script = f"import sys; sys.path[:0] = {[str(p) for p in path]!r}; import torch_ltc"
    return run(sys.executable, *flags, "-c", script).stderr


@pytest.mark.parametrize("version", ["2.10.0+cpu", "2.12.0", f"{_built_for.TORCH}a0+git1234567"])
def test_another_torch_is_refused_by_name(tmp_path, version):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    said = imports([tmp_path, ROOT / "python"])
    assert "ImportError" in said and f"has torch {version} from {tmp_path / 'torch'}" in said
    assert f"built for torch {_built_for.TORCH}" in said and f"pip install torch=={_built_for.TORCH}" in said


def test_no_torch_is_told_what_to_install():
    said = imports([ROOT / "python"], "-S", "-I")
    assert (
        f"ImportError: torch_ltc needs torch {_built_for.TORCH}" in said
        and f"pip install torch=={_built_for.TORCH}" in said
    )
