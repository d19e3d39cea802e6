"""The event loop that Holdfast's own processes run on: uvloop where it is installed, asyncio's else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
with contextlib.suppress(ImportError):
    import uvloop

    new_loop = uvloop.new_event_loop

T = TypeVar("T")


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run a program to its end, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)
