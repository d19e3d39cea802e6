"""The event loop that Holdfast's own processes run on: uvloop where it is installed, asyncio's else."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
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
    """Run a program to its end, as `asyncio.run` does, but for one thing: another task's `sys.exit` does not end it.

    asyncio lets SystemExit and KeyboardInterrupt out of the whole loop, whichever task they were raised in. Users' code
    may have started that task, and other jobs run beside it.

    What was imported before stays for good, and is kept out of the garbage collector's way.
    """
    gc.collect()
    gc.freeze()
    often, *seldom = gc.get_threshold()
    if 0 < often < _LOOK_AFTER:  # 0: switched off by the program itself
        gc.set_threshold(_LOOK_AFTER, *seldom)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        loop = runner.get_loop()
        asyncio.set_event_loop(loop)  # as `Runner.run` does, for code that asks for it outside of a coroutine
        task = loop.create_task(main)
        while True:
            try:
                return loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt) as exit_:
                if task.done():
                    return task.result()  # which raises, if it was its own
                if isinstance(exit_, KeyboardInterrupt) and _ctrl_c_raises():
                    raise
                loop.call_exception_handler({"message": "a task tried to end the process", "exception": exit_})


def _ctrl_c_raises() -> bool:
    """Whether a KeyboardInterrupt may be meant: nobody has taken Ctrl-C over."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
