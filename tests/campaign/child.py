"""A child process of a test: started, signalled and ended by its own pid; it never outlives whoever started it."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.campaign.zygote import Zygote

import holdfast

ROOT = Path(__file__).resolve().parents[2]
_PARENT = "HOLDFAST_TEST_PARENT"
_FAILPOINTS = "HOLDFAST_FAILPOINTS"
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """To be called first by every child: when its parent is gone, also by kill -9, the child is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(os.environ[_PARENT]):  # it was gone before we asked
        os._exit(1)


class Child:
    """One process that runs a module of the tests; what it writes goes to its log."""

    def __init__(self, module: str, *arguments: object, log: Path, failpoints: str = "") -> None:
        self.module = module
        self.failpoints = failpoints
        self.log = log
        self.expected_end = False
        self.hurried = False
        """It got a second SIGTERM."""
        log.touch()  # whoever looks for a line in it need not wait for the file
        self._zygote = _zygote()
        armed = environment(failpoints) | {_PARENT: str(self._zygote.pid)}
        self.pid = self._zygote.start(module, [*map(str, arguments)], log=log, environment=armed)
        self.started_at = time.monotonic()

    def __repr__(self) -> str:
        return f"<{self.module} {self.pid}>"

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it lives."""
        return self._zygote.code(self.pid)

    @property
    def alive(self) -> bool:
        return self.code is None

    @property
    def is_stopped(self) -> bool:
        """Whether the kernel has stopped it (SIGSTOP)."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except FileNotFoundError:
            return False
        return stat.rpartition(")")[2].split()[0] in "Tt"

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; to one that has ended, nothing happens."""
        self._zygote.send(self.pid, number)

    def kill(self) -> None:
        """kill -9, and collect it."""
        self.expected_end = True
        self._zygote.kill(self.pid)

    async def ended(self, *, within_s: float) -> int:
        """Wait for its end; an AssertionError with the end of its log when it does not come."""
        await until(lambda: not self.alive, within_s=within_s, what=f"the end of {self}", log=self.log)
        assert self.code is not None
        return self.code


@functools.cache
def _zygote() -> Zygote:
    """One per process that runs tests."""
    return Zygote(environment())


def end_all(children: Iterable[Child]) -> None:
    """No child outlives its test, whatever happened."""
    for child in children:
        child.kill()


async def until(condition: Callable[[], object], *, within_s: float, what: str, log: Path | None = None) -> None:
    """Wait for an event by looking again and again; fail loudly at the deadline."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            tail = "" if log is None else f"; the end of {log}:\n{tail_of(log)}"
            raise AssertionError(f"waited {within_s:g} s in vain for {what}{tail}")
        await asyncio.sleep(0.02)


def tail_of(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-lines:])


def environment(failpoints: str = "") -> dict[str, str]:
    """The environment without Holdfast's settings, with the code that this process runs itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    package = Path(holdfast.__file__).parents[1]
    armed = {_FAILPOINTS: failpoints} if failpoints else {}
    return {**kept, **armed, _PARENT: str(os.getpid()), "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}
