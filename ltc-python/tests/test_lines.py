"""Errors of programs name the line that recorded the operation, whatever was recorded before; each program in a process
of its own reads its own text, so the lines are those of comments `# here`."""

import os
import re
import subprocess
import sys

import pytest

HEAD = """\
import sys, threading
import torch, torch_ltc
from torch import nn
import torch.nn.functional as F
t = torch.zeros(3, 2).to("ltc")
good, bad = torch.tensor([1]).to("ltc"), torch.tensor([7]).to("ltc")
def fails(read):
    try:
        read()
    except (IndexError, RuntimeError) as e:
        print(e)
    else:
        print("no error")
"""

PROGRAMS = {
    "the same operators in two functions": """
def train():
    r = t.index_select(0, good)
    torch_ltc.mark_step()
    return r
def validate():
    return t.index_select(0, bad)  # here
train()
fails(lambda: validate().cpu())
""",
    "the same operators on two lines of a loop": """
for k in range(6):
    torch_ltc.mark_step()
    if k < 5:
        r = t.index_select(0, good)
    else:
        r = t.index_select(0, bad)  # here
fails(r.cpu)
""",
    "two calls on one line of several": """
r = (t.index_select(0, good),
     t.index_select(0, bad))[1]  # here
fails(r.cpu)
""",
    "after many operators": """
z = torch.ones(4).to("ltc")
for k in range(70_000):
    z = z + 1
r = t.index_select(0, bad)  # here
fails(r.cpu)
""",
    "a layer": """
net = nn.Sequential(nn.Sequential(nn.Embedding(3, 2)), nn.Linear(2, 2)).to("ltc")
net(good)
torch_ltc.mark_step()
r = net(bad)  # here
fails(r.cpu)
""",
    "a generator": """
def steps():
    yield t.index_select(0, good)
    yield t.index_select(0, bad)  # here
fails(lambda: [r.cpu() for r in steps()])
""",
    "a comprehension and a callback": """
def pick(i): return t.index_select(0, i)  # here
fails(lambda: sorted([bad], key=lambda i: float(pick(i).sum()))
)
""",
    "code that was made and dropped": """
import gc
for k in range(50):
    scope = {"t": t, "i": good}
    exec(compile(chr(10) * k + "r = t.index_select(0, i)", f"made{k}.py", "exec"), scope)
    torch_ltc.mark_step()
    del scope; gc.collect()
r = t.index_select(0, bad)  # here
fails(r.cpu)
""",
    "threads": """
def work(i, out):
    out.append(t.index_select(0, i))  # here
out = []
threads = [threading.Thread(target=work, args=(i, o)) for i, o in [(good, []), (good, []), (bad, out)]]
for thread in threads: thread.start()
for thread in threads: thread.join()
fails(out[0].cpu)
""",
    "a function of autograd": """
class Pick(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 1
    @staticmethod
    def backward(ctx, g):
        return g.index_select(0, bad).sum() + g  # here
x = t.clone().requires_grad_()
Pick.apply(x).sum().backward()
fails(x.grad.cpu)
""",
    "a compiled step": """
@torch_ltc.compile
def step(i):
    return t.index_select(0, i)  # here
for _ in range(6):
    step(good)
assert step.counts[0] > 0, step.explain()
fails(lambda: step(bad).cpu())
""",
}


def run(body, **env):
    """What the program says, and the line it marks."""
    program = HEAD + body
    options = {"capture_output": True, "text": True, "timeout": 300, "env": {**os.environ, **env}}
    done = subprocess.run([sys.executable, "-"], input=program, **options)
    assert done.returncode == 0, done.stderr
    (line,) = (n for n, text in enumerate(program.splitlines(), 1) if text.endswith("# here"))
    return done.stdout, line


@pytest.mark.parametrize("sites", ["1", "ask"])
@pytest.mark.parametrize("what", PROGRAMS)
def test_the_line_that_recorded_is_named(what, sites):
    said, line = run(PROGRAMS[what], LTC_SITES=sites)
    assert re.search(rf"recorded at <stdin>:{line} in [<\w]", said), (line, said)


def test_no_place_is_named_where_none_is_kept():
    said, _ = run(PROGRAMS["a layer"], LTC_SITES="0")
    assert "out of range" in said and "recorded at" not in said, said


@pytest.mark.parametrize("thread", [False, True])
def test_gradients_have_the_line_that_asks_for_them(thread):
    body = """
x = torch.ones(2, 2, device="ltc", requires_grad=True)
y, g = (x @ x).relu(), torch.ones(2, 2).to("ltc")
def nodes(value): return [node for node in torch_ltc.debug.dump_ir([value], "sites").splitlines() if " = " in node]
forward = len(nodes(y))
def ask():
    y.backward(g)  # here
%s
print(*nodes(x.grad)[forward:], sep=chr(10))
"""
    start = "thread = threading.Thread(target=ask); thread.start(); thread.join()" if thread else "ask()"
    said, line = run(body % start)
    nodes = said.splitlines()
    assert len(nodes) >= 4, said
    # A thread that recorded nothing before keeps its backward, too: on one of autograd's own no Python runs.
    assert all(f"<stdin>:{line} in ask" in node for node in nodes), said
