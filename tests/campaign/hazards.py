"""Tasks that are a danger to the process they run in: for workers under a supervisor only, which has to deal with them.

The nemesis enqueues them, so that there are as many as it wants and not more.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.campaign.telling import told
from tests.history import RunRecorder

from holdfast import Holdfast, RetryPolicy, current_job

HAZARDS = "hazards"
TWICE = RetryPolicy(max_attempts=2, base=0.05, cap=0.1)
DEATHS: tuple[Callable[[], object], ...] = (
    lambda: os._exit(3),
    lambda: ctypes.string_at(0),
    lambda: os.kill(os.getpid(), signal.SIGKILL),  # as the kernel does when memory is short
)


def add_hazards(hf: Holdfast, recorder: RunRecorder | None, counts: Path) -> None:
    """Make them known to the app, as `hazards.…`."""

    def runs() -> int:
        """How often this job has run by now; survives the process."""
        path = counts / str(current_job().id)
        with path.open("ab") as file:
            file.write(b".")
        return path.stat().st_size

    @hf.task(name="hazards.crashing", queue=HAZARDS)
    async def crashing(times: int, how: int) -> int:
        """Kills its process so many times, then works."""
        with told(recorder) as (_, effect):
            if runs() <= times:
                DEATHS[how % len(DEATHS)]()
            effect()
            return times

    @hf.task(name="hazards.blocking", queue=HAZARDS, timeout=0.5, retry=TWICE)
    async def blocking(times: int) -> int:
        """Blocks the event loop past its hard limit so many times, then works."""
        with told(recorder) as (_, effect):
            if runs() <= times:
                time.sleep(3600)
            effect()
            return times

    @hf.task(name="hazards.swallowing", queue=HAZARDS, timeout=0.5, retry=TWICE)
    async def swallowing(times: int) -> int:
        """Does not let itself be cancelled, so many times."""
        with told(recorder) as (_, effect):
            while runs() <= times:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(3600)
            effect()
            return times

    @hf.task(name="hazards.sticking", queue=HAZARDS, timeout=0.5, retry=TWICE)
    def sticking(times: int) -> int:
        """A thread in a call that nothing interrupts, so many times."""
        with told(recorder) as (_, effect):
            if runs() <= times:
                ctypes.CDLL(None).sleep(3600)
            effect()
            return times

    @hf.task(name="hazards.isolated", queue=HAZARDS, isolate=True, timeout=5.0, retry=TWICE)
    def isolated(times: int, how: int) -> int:
        """In a process of its own, which it kills so many times."""
        with told(recorder) as (_, effect):
            if runs() <= times:
                DEATHS[how % len(DEATHS)]()
            effect()
            return times
