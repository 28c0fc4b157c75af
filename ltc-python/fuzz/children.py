"""Child processes that run programs, with a watchdog: they may crash and hang."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
_START = 120.0


class Child:
    """A child with an environment of its own; it is started when it is needed, and again when it is gone."""

    def __init__(self, environment, limit, worker="fuzz.worker"):
        self.environment, self.limit, self.worker = environment, limit, worker
        self.process = None
        #: Programs it has run since it was started.
        self.ran = []

    def _start(self):
        read, write = os.pipe()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        environment = {**os.environ, "RUST_BACKTRACE": "0", **self.environment}
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.worker, str(write)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            pass_fds=(write,),
            text=True,
        )
        os.close(write)
        self.read, self.rest, self.ran = read, b"", []
        if (self._row(_START) or {}).get("outcome") != "ready":
            raise RuntimeError(f"a child did not start: {self._said()}")

    def _said(self):
        """The end of what the child wrote to its standard error."""
        self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - 2000))
        return self.errors.read().decode(errors="replace").strip()

    def _computed(self):
        """Seconds of processor time that the child has had, and whether it wants more now."""
        fields = lambda file: file.read_text().rpartition(")")[2].split()
        process = Path(f"/proc/{self.process.pid}")
        try:
            seconds = sum(map(int, fields(process / "stat")[11:13])) / os.sysconf("SC_CLK_TCK")
            return seconds, any(fields(task / "stat")[0] == "R" for task in (process / "task").iterdir())
        except OSError:
            return 0.0, False

    def _row(self, limit):
        """The next row; None when the child is gone; raises `TimeoutError`. Who is kept from a processor by others has
        more time."""
        end, before = time.monotonic() + limit, self._computed()[0]
        while b"\n" not in self.rest:
            if not select.select([self.read], [], [], max(0.0, end - time.monotonic()))[0]:
                computed, wants_more = self._computed()
                if computed - before >= limit or not wants_more:
                    raise TimeoutError
                end = time.monotonic() + 1.0
                continue
            data = os.read(self.read, 1 << 16)
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def ask(self, request):
        """The program's text, and what came of it: ``same``, ``different``, ``undefined``, ``crash`` or ``hang``."""
        if self.process is None:
            self._start()
        text = request.get("program")
        try:
            try:
                print(json.dumps(request), file=self.process.stdin, flush=True)
            except BrokenPipeError:
                return text, self._gone()
            while True:
                row = self._row(self.limit)
                if row is None:
                    return text, self._gone()
                if "program" not in row:
                    break
                text = row["program"]
        except TimeoutError:
            where = self._stacks()
            self.process.kill()
            self.close()
            return text, {"outcome": "hang", "what": f"no answer in {self.limit:.0f} s", "where": where}
        self.ran.append(text)
        return text, row

    def _stacks(self):
        """Where the child's threads are: their Python lines, and what each waits for in the system."""
        self.process.send_signal(signal.SIGUSR1)
        said = b""
        while select.select([self.read], [], [], 1.0)[0] and (data := os.read(self.read, 1 << 16)):
            said += data
        lines = said.decode(errors="replace").splitlines()
        for task in sorted(Path(f"/proc/{self.process.pid}/task").glob("*")):
            try:
                name, waits = ((task / what).read_text().strip() for what in ("comm", "wchan"))
                lines.append(f"thread {task.name}: {name}, {waits}")
            except OSError:
                continue
        return "\n".join(lines)

    def _gone(self):
        code, said = self.process.wait(), self._said()
        self.close()
        what = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return {"outcome": "crash", "what": what, "where": said}

    def close(self):
        """Ends the process."""
        if self.process is None:
            return
        self.process.stdin.close() if not self.process.stdin.closed else None
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        self.errors.close()
        self.process = None
