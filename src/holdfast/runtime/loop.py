"""The event loop that Holdfast's own processes run on: uvloop where it is installed, asyncio's else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

try:
    from uvloop import new_event_loop
except ImportError:
    from asyncio import new_event_loop

T = TypeVar("T")


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run a program to its end, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
