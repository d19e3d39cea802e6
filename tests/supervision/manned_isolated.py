"""The app of `manned` with a task more, which runs in a process of its own."""

from __future__ import annotations

import os

from tests.supervision.manned import hf

__all__ = ["hf", "pid_of_isolate"]


@hf.task(name="tests.supervision.manned.pid_of_isolate", isolate=True)
async def pid_of_isolate() -> int:
    return os.getpid()
