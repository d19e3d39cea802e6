"""The event loop of one simulated thread: asyncio's interface, as much of it as Holdfast uses, on the world's time.

Callbacks of one thread run in the order in which they were made ready, as asyncio promises; which thread goes on next
is the world's choice.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.process import Process


#: So often a coroutine may wait for something in its clean-up before it is given up.
_MOST_WAITS = 50


_current: list[ThreadLoop | None] = [None]


def go_on_in(thread: ThreadLoop | None) -> None:
    """What runs from now on runs in this thread. asyncio is told only of changes: it asks the kernel every time."""
    if _current[0] is not thread:
        _current[0] = thread
        events._set_running_loop(thread)


def running_loop_or_none() -> ThreadLoop | None:
    """`asyncio._get_running_loop` without asking the kernel which process this is."""
    return _current[0]


def running_loop() -> ThreadLoop:
    """`asyncio.get_running_loop`, likewise."""
    thread = _current[0]
    if thread is None:
        raise RuntimeError("no running event loop")
    return thread


class Turn:
    """A callback that waits for its turn, or for its time: what asyncio calls a handle."""

    __slots__ = ("_args", "_callback", "_context", "is_cancelled", "loop", "when_s")

    def __init__(
        self,
        loop: ThreadLoop,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
        when_s: float | None,
    ) -> None:
        self.loop = loop
        self.when_s = when_s
        """By the clock of its process; None: it waits for its turn only."""
        self.is_cancelled = False
        self._callback = callback
        self._args = args
        self._context = copy_context() if context is None else context

    def cancel(self) -> None:
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        assert self.when_s is not None
        return self.when_s

    def run(self) -> None:
        self._context.run(self._callback, *self._args)

    def come_due(self) -> None:
        self.loop.make_ready(self)


class ThreadLoop(asyncio.AbstractEventLoop):
    """See the module's sentence."""

    def __init__(self, process: Process, name: str) -> None:
        self.process = process
        self.name = name
        self.halted_until_s = 0.0
        """World time up to which this thread does not go on."""
        self._world = process.world
        self._ready: deque[Turn] = deque()
        self._queued = False
        self._tasks: list[asyncio.Task[Any]] = []

    # ------------------------------------------------------------ what asyncio asks for

    def time(self) -> float:
        return self._world.now_s + self.process.uptime_s

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
        turn = Turn(self, callback, args, context, None)
        self.make_ready(turn)
        return turn

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
        turn = Turn(self, callback, args, context, when)
        self._world.at(when - self.process.uptime_s, turn)
        return turn

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.process.is_dead:
            error = context.get("exception")
            self._world.object_to(self.process, f"{context['message']}: {error!r}")

    # ------------------------------------------------------------ what the world asks for

    def make_ready(self, turn: Turn) -> None:
        self._ready.append(turn)
        if not self._queued and not self.process.is_dead:
            self._queued = True
            self._world.runnable.append(self)

    def run_ready(self) -> None:
        """All callbacks that are ready now; those that they make ready come at the next turn."""
        self._queued = False
        ready = self._ready
        go_on_in(self)
        for _ in range(len(ready)):
            turn = ready.popleft()
            if not turn.is_cancelled:
                turn.run()
            if self.process.is_dead:
                return
        if ready and not self._queued:
            self._queued = True
            self._world.runnable.append(self)

    def answers_first(self) -> None:
        """After a halt: what came from outside before the timers, as an ordinary loop that looks at both would."""
        self._ready = deque(sorted(self._ready, key=lambda turn: turn.when_s is not None))

    def unfinished(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks if not task.done()]

    async def end(self) -> None:
        """Cancel what runs here and wait for it, as the end of a thread with a loop does. From another thread."""
        left = self.unfinished()
        caller = asyncio.get_running_loop()
        ended = caller.create_future()
        waiting = len(left)

        def note(_: asyncio.Task[Any]) -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                caller.call_soon_threadsafe(ended.set_result, None)

        def cancel_all() -> None:
            for task in left:
                if task.done():
                    note(task)
                else:
                    task.add_done_callback(note)
                    task.cancel()

        if left:
            self.call_soon_threadsafe(cancel_all)
            await ended

    def tear_down(self) -> None:
        """Let go of what never ended; its clean-up is not heard by anybody."""
        self._ready.clear()
        go_on_in(self)
        try:
            while tasks := self._tasks:  # clean-up may begin further ones
                self._tasks = []
                for task in tasks:
                    if not task.done():
                        task._log_destroy_pending = False  # type: ignore[attr-defined]
                        _close(task.get_coro())
        finally:
            go_on_in(None)
        self._ready.clear()


def _close(coroutine: Any) -> None:
    """Clean-up that waits for something has to be told again, at each of its waits."""
    for _ in range(_MOST_WAITS):
        try:
            coroutine.close()
            break
        except RuntimeError:
            continue
