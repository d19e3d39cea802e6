"""The event loop that Holdfast's own processes run on: uvloop where it is installed, asyncio's else."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
with contextlib.suppress(ImportError):
    import uvloop

    new_loop = uvloop.new_event_loop

T = TypeVar("T")

#: Objects that may come to be, net, before the garbage collector looks at them. The default is less than a worker has
#: in hand at once, so that every look would come too early and find all of them alive.
_LOOK_AFTER = 5_000


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run a program to its end, as `asyncio.run` does.

    What was imported before stays for good, and is kept out of the garbage collector's way.
    """
    gc.collect()
    gc.freeze()
    often, *seldom = gc.get_threshold()
    if 0 < often < _LOOK_AFTER:  # 0: switched off by the program itself
        gc.set_threshold(_LOOK_AFTER, *seldom)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)
