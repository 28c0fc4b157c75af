"""A program that fails, cut down to what it takes."""

import re
import time
from dataclasses import replace

from . import program
from .program import NAME, STEPS


def kind(answer):
    """What a failure is, so that a smaller program fails in the same way: the words without numbers and names."""
    if answer["outcome"] != "different":
        return answer["outcome"]
    what = answer["what"].split(", on the CPU")[0]
    told = re.search(
        r": (?:the )?(version|strides|offset|requires_grad|is_leaf|dtype|shape|value)\b|(Panic|did not fail)", what
    )
    return told.group(1) or told.group(2) if told else "error"


def shrink(text, answer, ask, seconds=60.0):
    """The smallest program found that fails like this one: ``ask`` runs a text and says what comes of it."""
    end = time.monotonic() + seconds
    wanted = kind(answer)
    best = program.parse(text)
    tried = set()

    def fails(candidate):
        nonlocal best
        if str(candidate) in tried or time.monotonic() > end:
            return False
        tried.add(str(candidate))
        got = ask(str(candidate))
        if got["outcome"] in ("same", "undefined") or kind(got) != wanted:
            return False
        best = candidate
        return True

    before = None
    while before != best and time.monotonic() < end:
        before = best
        _drop(lambda: best, fails)
        _simplify(lambda: best, fails)
    return str(best)


def _drop(current, fails):
    """Statements that are not needed, in parts of halving size."""
    size = max(len(current().statements) // 2, 1)
    while size:
        at = 0
        while at < len(current().statements):
            rows = current().statements
            if not fails(current().with_statements(rows[:at] + rows[at + size :])):
                at += size
        size //= 2


def _simplify(current, fails):
    """Simpler statements: what is made is another tensor as it is, data of one plain kind, fewer calls, a plainer
    style."""
    for i in range(len(current().statements)):
        if i >= len(current().statements):
            break
        s = current().statements[i]
        earlier = [x.made for x in current().statements[:i] if x.made]
        options = []
        if s.made and s.made[0] == "t" and NAME.search(s.text.partition("=")[2]):
            options += [
                f"{s.made} = {n}" for n in s.names if n != s.made and n in earlier and s.text != f"{s.made} = {n}"
            ]
        if s.made and s.made[0] == "t" and not s.text.startswith(f"{s.made} = new(") and s.part != "step":
            options += [f"{s.made} = new('float32', {shape}, 1)" for shape in ("(3,)", "(2, 3)")]
        options += [re.sub(r"new\('float32', \([^)]*\), \d+\)", "new('float32', (3,), 1)", s.text)]
        options += [s.text.replace("leaf(", "new(")]
        for text in options:
            if text == s.text:
                continue
            rows = list(current().statements)
            rows[i] = replace(s, text=text)
            if fails(current().with_statements(rows)):
                break
    if current().mode in STEPS:
        for calls in (5, 6, 8):
            if calls < current().calls and fails(replace(current(), calls=calls)):
                break
        if current().style != "globals":
            fails(replace(current(), style="globals"))
        if current().leaves != "returned":
            fails(replace(current(), leaves="returned"))
    if current().mode == "threads" and len({s.part for s in current().statements}) == 1:
        rows = [replace(s, part="setup") for s in current().statements]
        fails(replace(current(), mode="recorded", statements=tuple(rows)))
