"""`holdfast worker` on the app in `manned`, as a real supervisor with real processes; and what tests ask of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.processes import environment, parent_of

from holdfast import Holdfast, JobHandle

#: Long enough never to decide a test that works.
PATIENCE_S = 60.0
ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "holdfast")
#: The same with a supervisor that is less patient.
HURRIED = (sys.executable, "-m", "tests.supervision.hurried")


class Noted(NamedTuple):
    """A line that a task wrote."""

    job: str
    pid: int
    what: str
    at_s: float
    """By the monotonic clock, which all processes share."""


class Crew:
    """One supervisor. The test itself is a client on the same store."""

    def __init__(self, place: Path, settings: dict[str, Any]) -> None:
        self.place = place
        self.settings = settings
        self.hf = Holdfast(**settings | {"failpoints": ""})  # else they would strike in the test's own process
        self.process: subprocess.Popen[bytes] | None = None
        self.program: Sequence[str] = PROGRAM
        self.app = "manned"
        self.variables: dict[str, str] = {}

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self, *words: str) -> None:
        given = {"MANNED_PLACE": str(self.place), "MANNED_SETTINGS": json.dumps(self.settings)}
        command = [*self.program, "worker", f"tests.supervision.{self.app}:hf", *words]
        env = environment(**given, **self.variables)
        env["PYTHONPATH"] = f"{env['PYTHONPATH']}{os.pathsep}{ROOT}"
        with (self.place / "log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.place, env=env, stderr=log, stdin=subprocess.DEVNULL)

    @property
    def log(self) -> str:
        return (self.place / "log").read_text("utf-8")

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self, pid: int, number: signal.Signals = signal.SIGKILL) -> None:
        """One of its processes, and no other."""
        assert parent_of(pid) == self.pid
        os.kill(pid, number)

    async def enqueue(self, task: str, *args: object, **options: Any) -> JobHandle[Any]:
        return await self.hf.named(f"tests.supervision.manned.{task}").options(**options).enqueue(*args)

    def noted(self, what: str) -> list[Noted]:
        path = self.place / "runs"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [each for each in (Noted(**json.loads(line)) for line in lines) if each.what == what]

    def let_go(self, name: str) -> None:
        (self.place / name).touch()

    async def until(self, condition: Callable[[], Any]) -> Any:
        """What the condition answers, once that is true."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (answer := condition()):
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"it did not come; the log:\n{self.log}") from None
        return answer

    async def until_noted(self, what: str, times: int = 1) -> list[Noted]:
        return await self.until(lambda: len(found := self.noted(what)) >= times and found)

    async def until_logged(self, part: str, times: int = 1) -> str:
        """The line of its log that has this in it for the n-th time."""

        def line() -> str | None:
            found = [each for each in self.log.splitlines() if part in each]
            return found[times - 1] if len(found) >= times else None

        return await self.until(line)

    async def result(self, job: JobHandle[Any]) -> Any:
        try:
            return await job.result(timeout=PATIENCE_S)
        except TimeoutError:
            raise AssertionError(f"{await job.info()}\n{self.log}") from None

    async def ended(self) -> int:
        """Its exit code."""
        process = self.process
        assert process is not None
        await self.until(lambda: process.poll() is not None)
        return int(process.returncode)

    def children(self) -> list[int]:
        """The processes that it has now, also those that have ended and that it has not collected."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if entry.name.isdigit() and parent_of(int(entry.name)) == self.pid:
                    found.append(int(entry.name))
        return found


@contextlib.asynccontextmanager
async def manned(crew: Crew, *words: str) -> AsyncIterator[Crew]:
    """The crew at work; whatever becomes of the test, its processes end."""
    await crew.hf.migrate()
    async with crew.hf:
        crew.start(*words)
        try:
            yield crew
        finally:
            assert crew.process is not None
            if crew.process.poll() is None:
                crew.process.kill()
            crew.process.wait(PATIENCE_S)
