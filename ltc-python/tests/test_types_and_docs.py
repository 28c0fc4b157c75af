"""The package is typed, its stub is the extension's interface, and everything public says what it does."""

import ast
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch_ltc

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "torch_ltc"


def mypy(program, *arguments):
    command = [sys.executable, "-m", program, *arguments]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "python")}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_the_package_is_typed(tmp_path):
    code, text = mypy("mypy", "--config-file", "pyproject.toml")
    assert code == 0, text
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import torch_ltc\ntorch_ltc.mark_step(wait='no')\nx: int = torch_ltc.lazy_repr\n")
    code, text = mypy("mypy", "--config-file", os.devnull, str(wrong))
    assert code == 1 and "wrong.py:2" in text and "wrong.py:3" in text, "users' mistakes are found"


@pytest.mark.timeout(600)
def test_the_stub_is_the_extension_s_interface():
    code, text = mypy("mypy.stubtest", "--mypy-config-file", "stubs.toml", "torch_ltc._ltc")
    assert code == 0, text


def modules():
    names = [m.name for m in pkgutil.iter_modules(torch_ltc.__path__) if m.name != "_ltc"]
    return [torch_ltc, *[importlib.import_module(f"torch_ltc.{name}") for name in names]]


@pytest.mark.parametrize("module", modules(), ids=lambda m: m.__name__)
def test_everything_public_has_a_docstring(module):
    tree = ast.parse(Path(module.__file__).read_text())
    bare = [] if ast.get_docstring(tree) else ["the module"]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bare += [f"{node.name}.{f.name}" for f in node.body if isinstance(f, ast.FunctionDef) and not said(f)]
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and node in tree.body):
            bare += [] if said(node) else [node.name]
    assert not bare, bare


def said(node):
    overloaded = any(isinstance(d, ast.Name) and d.id == "overload" for d in getattr(node, "decorator_list", []))
    return node.name.startswith("_") or overloaded or ast.get_docstring(node)


def test_the_extension_and_the_device_module_have_docstrings():
    import torch

    for owner in (torch_ltc._ltc, torch.ltc):
        names = [n for n in dir(owner) if not n.startswith("_") and callable(getattr(owner, n))]
        assert len(names) > 10
        bare = [n for n in names if not inspect.getdoc(getattr(owner, n))]
        assert not bare, bare


def test_what_is_exported_exists():
    assert sorted(set(torch_ltc.__all__)) == torch_ltc.__all__
    assert all(hasattr(torch_ltc, name) for name in torch_ltc.__all__)
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_ltc.pyi").exists()
