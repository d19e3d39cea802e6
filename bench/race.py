"""Processes that start together and say what they did: so every contender is measured alike, in a process of its own.

A contender prints a line when it is ready, waits for a line, works, and prints its `Lap` as JSON.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple


class Figures(NamedTuple):
    """What one measurement says of a job."""

    jobs_per_s: float
    client_us: float
    """CPU of our processes."""
    server_us: float
    """CPU of all of the server's processes."""
    wal_bytes: float


@dataclass(frozen=True, slots=True)
class Lap:
    """One contender's work. Monotonic times are comparable between processes on one machine."""

    jobs: int
    began: float
    ended: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a server has used so far."""

    cpu_s: float
    wal_bytes: int


def run(commands: Sequence[Sequence[str]], *, cost: Callable[[], Cost]) -> Figures:
    """All of them at once, from the first one's start to the last one's end."""
    contenders = [
        subprocess.Popen(list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for command in commands
    ]
    for contender in contenders:
        _line_of(contender)
    before = cost()
    for contender in contenders:
        _send_off(contender)
    laps = [Lap(**json.loads(_line_of(contender))) for contender in contenders]
    after = cost()
    for contender in contenders:
        contender.communicate()
    jobs = sum(lap.jobs for lap in laps)
    return Figures(
        jobs / (max(lap.ended for lap in laps) - min(lap.began for lap in laps)),
        1e6 * sum(lap.cpu_s for lap in laps) / jobs,
        1e6 * (after.cpu_s - before.cpu_s) / jobs,
        (after.wal_bytes - before.wal_bytes) / jobs,
    )


class Track:
    """In a contender: `with Track() as track: …; track.jobs = done`."""

    jobs: int = 0
    #: When the last of the work was done, if that was before the end of the block.
    ended: float | None = None

    def __enter__(self) -> Track:
        print("ready", flush=True)
        sys.stdin.readline()
        self._cpu_s = _cpu_s()
        self._began = time.monotonic()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            lap = Lap(self.jobs, self._began, self.ended or time.monotonic(), _cpu_s() - self._cpu_s)
            print(json.dumps(asdict(lap)), flush=True)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _line_of(contender: subprocess.Popen[str]) -> str:
    assert contender.stdout is not None
    if line := contender.stdout.readline():
        return line
    raise SystemExit(f"a contender ended early, with exit code {contender.wait()}; its own words are above")


def _send_off(contender: subprocess.Popen[str]) -> None:
    assert contender.stdin is not None
    contender.stdin.write("go\n")
    contender.stdin.flush()
