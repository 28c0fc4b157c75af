"""The code of docs/python.md and of the package's README runs, block after block, as a reader would type it."""

import re
from pathlib import Path

import pytest
import torch_ltc

PACKAGE = Path(__file__).parent.parent
PAGE = PACKAGE.parent / "docs" / "python.md"


@pytest.mark.parametrize("page, count", [(PAGE, 11), (PACKAGE / "README.md", 1)], ids=["guide", "readme"])
def test_the_page_runs(page, count, tmp_path):
    text = page.read_text()
    names = {"path": tmp_path / "model.pt"}
    blocks = [(m.start(), m[1]) for m in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
    assert len(blocks) == count
    for start, code in blocks:
        # Lines of errors are those of the page.
        exec(compile("\n" * (text[:start].count("\n") + 1) + code, str(page), "exec"), names)


def test_every_module_and_function_is_mentioned():
    text = PAGE.read_text()
    missing = [n for n in torch_ltc.__all__ if not re.search(rf"\b{n}\b", text) and n != "CompiledStep"]
    assert not missing, missing
