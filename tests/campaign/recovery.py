"""How long it takes until the jobs of a killed process run again: under a living supervisor, and after it died as well.

Figures, not tests: they are the machine's as much as ours. `python -m tests.campaign --recovery 50 [--store postgres]`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.supervision.crew import Crew, manned

from holdfast.core.state import State

JOBS = 100
LEASE_S = 10.0


class Recovered(NamedTuple):
    """Seconds from one kill to the first and to the last of its jobs running again."""

    first_s: float
    last_s: float


async def measure(
    kills: int, place: Path, settings: dict[str, Any], *, say: Callable[[str], None]
) -> tuple[list[Recovered], Recovered]:
    """So many kills of a process with a hundred jobs and a spare; then one of a supervisor with its process."""
    hour = settings | {"lease_s": 3600.0, "concurrency": JOBS, "spares": 1}
    recovered = []
    async with manned(Crew(place, hour)) as crew:
        for number in range(kills):
            recovered.append(await _one_kill(crew, f"go-{number}"))
            say(f"kill {number + 1}: {_shown([recovered[-1]])}")
    return recovered, await _whole_group(place, settings | {"lease_s": LEASE_S, "concurrency": JOBS, "spares": 0})


async def _one_kill(crew: Crew, name: str) -> Recovered:
    what = f"holds {name}"
    jobs = [await crew.enqueue("hold", name) for _ in range(JOBS)]
    before = await crew.until_noted(what, JOBS)
    await crew.until(lambda: _spare_is_ready(crew))
    killed_s = time.monotonic()
    crew.kill(before[0].pid)
    again = (await crew.until_noted(what, 2 * JOBS))[JOBS:]
    crew.let_go(name)
    for job in jobs:
        await crew.result(job)
    return _since(killed_s, [each.at_s for each in again])


def _spare_is_ready(crew: Crew) -> bool:
    """The process that works, and another one that has said that it is ready."""
    pids = crew.children()
    return len(pids) == 2 and all(f"process {pid} is ready" in crew.log for pid in pids)


async def _whole_group(place: Path, settings: dict[str, Any]) -> Recovered:
    """The supervisor and its process are killed together; a worker elsewhere takes over when the lease is over."""
    first, second = (Crew(place / name, settings) for name in ("first", "second"))
    for crew in (first, second):
        crew.place.mkdir()
    async with manned(first):
        for _ in range(JOBS):
            await first.enqueue("hold", "go")
        await first.until_noted("holds go", JOBS)
        async with manned(second):
            await second.until_logged("started, ")
            for pid in first.children():
                os.kill(pid, signal.SIGKILL)
            first.send(signal.SIGKILL)
            killed_s = time.monotonic()
            again = await second.until_noted("holds go", JOBS)
            second.let_go("go")
            while await second.hf.jobs.list(state=State.RUNNING, limit=1):
                await asyncio.sleep(0.1)
    return _since(killed_s, [each.at_s for each in again])


def _since(killed_s: float, begun_s: Sequence[float]) -> Recovered:
    return Recovered(min(begun_s) - killed_s, max(begun_s) - killed_s)


def report(recovered: Sequence[Recovered], group: Recovered) -> str:
    """Both figures in two lines."""
    return (
        f"{len(recovered)} kills of a process with {JOBS} running jobs and a spare: {_shown(recovered)}\n"
        f"kill -9 of the supervisor and its process, lease {LEASE_S:g} s: all run again on another worker after "
        f"{group.last_s:.1f} s"
    )


def _shown(recovered: Sequence[Recovered]) -> str:
    firsts, lasts = zip(*recovered, strict=True)
    return (
        f"first again after {1000 * statistics.median(firsts):.0f} ms (most {1000 * max(firsts):.0f}), "
        f"all after {1000 * statistics.median(lasts):.0f} ms (most {1000 * max(lasts):.0f})"
    )
