"""Programs as data: statements in parts, and the text they are kept as."""

import re
from dataclasses import dataclass, field, replace

#: Names that statements make: tensors, optimisers, generators, lists.
NAME = re.compile(r"\b[tgox]\d+\b")
_MADE = re.compile(r"^([tgox]\d+) = ")
_SETTING = re.compile(r"^# (\w+): (.*)$")


#: The modes in which a part is a step.
STEPS = ("compiled", "steps")
#: Those in which several threads run.
THREADS = ("threads", "steps")


@dataclass(frozen=True)
class Statement:
    """One Python statement, the part it is in, and the tensors that it writes in place."""

    text: str
    part: str = "setup"
    writes: tuple[str, ...] = ()

    @property
    def made(self):
        """The name it gives to what it makes, or None."""
        found = _MADE.match(self.text)
        return found and found.group(1)

    @property
    def names(self):
        """All names in it, in order."""
        return list(dict.fromkeys(NAME.findall(self.text)))

    def __str__(self):
        part = "" if self.part == "setup" else f"{self.part}: "
        return part + self.text + (f"  # writes {' '.join(self.writes)}" if self.writes else "")


@dataclass(frozen=True)
class Program:
    """Statements and how they run."""

    mode: str
    statements: tuple[Statement, ...]
    #: Settings of the process it runs in.
    environment: dict = field(default_factory=dict)
    #: Of a compiled one: calls of the step, and how the step finds what it uses.
    calls: int = 0
    style: str = "globals"
    #: Where its step puts its results: see `modes.LEAVES`.
    leaves: str = "returned"

    def of(self, part):
        """The statements of a part."""
        return [s for s in self.statements if s.part == part]

    def with_statements(self, statements):
        """The same with other statements."""
        return replace(self, statements=tuple(statements))

    def __str__(self):
        head = [f"# mode: {self.mode}"]
        head += [f"# {name}: {value}" for name, value in sorted(self.environment.items())]
        head += [f"# calls: {self.calls}", f"# style: {self.style}"] if self.mode in STEPS else []
        head += [f"# leaves: {self.leaves}"] if self.leaves != "returned" else []
        return "\n".join([*head, *map(str, self.statements)]) + "\n"


def parse(text):
    """The program of a text; lines that begin with ``##`` are remarks."""
    settings, statements = {}, []
    for line in filter(None, map(str.rstrip, text.splitlines())):
        if line.startswith("##"):
            continue
        setting = _SETTING.match(line)
        if setting and not statements:
            settings[setting.group(1)] = setting.group(2)
            continue
        line, _, writes = line.partition("  # writes ")
        part = re.match(r"^(in|step|after \d+|thread \d+): ", line)
        statements.append(
            Statement(line[part.end() :] if part else line, part.group(1) if part else "setup", tuple(writes.split()))
        )
    environment = {k: v for k, v in settings.items() if k.startswith("LTC_")}
    return Program(
        settings["mode"],
        tuple(statements),
        environment,
        int(settings.get("calls", 0)),
        settings.get("style", "globals"),
        settings.get("leaves", "returned"),
    )
