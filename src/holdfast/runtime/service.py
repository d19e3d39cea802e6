"""The one way to start and stop something that runs in the background; not for threads or processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Service:
    """Something with a main loop that is started once and stopped once.

    1. `start` returns when `on_start` has ended and `run` is about to begin; an error of `on_start` is
       raised to whoever started (then `on_stop` is not called: `on_start` tidies up after itself).
       A `start` that is cancelled asks the service to stop.
    2. `stop` asks, then waits for the end. Nothing is cancelled: `run` has to notice `stopping`, most
       easily by looping `while await self.pause(…)`. With `stop_timeout_s`, what has not ended by then
       is cancelled, and again after every further `stop_timeout_s` (so `on_stop` has as long as `run`).
    3. Any order and number of calls is fine: a second `start` waits for the first, every `stop` waits
       for the end, `stop` during `start` skips `run`. A service lives once: `start` after `stop`, or
       after `stop` without a start, does nothing.
    4. `on_stop` runs as soon as `run` has ended, whether by itself, by a crash or after `stop`.
    5. A crash is kept in `failure` and told once to `on_crash` (without one, to the loop's exception
       handler: it is never silent). `stop` does not raise it again.

    `on_start`, `run` and `on_stop` run in one task, so that what one enters the other can leave.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        stop_timeout_s: float | None = None,
        on_crash: Callable[[Service, BaseException], object] | None = None,
    ) -> None:
        self.name = name or type(self).__name__
        self.stopping = asyncio.Event()
        self.failure: BaseException | None = None
        self._stop_timeout_s = stop_timeout_s
        self._on_crash = on_crash
        self._life: asyncio.Task[None] | None = None
        self._start_error: BaseException | None = None
        self._up = asyncio.Event()
        self._ended = asyncio.Event()
        self._woken = asyncio.Event()
        self._cutter: asyncio.TimerHandle | None = None
        self._was_cut = False

    # What subclasses fill in.

    async def on_start(self) -> None:
        """Open what `run` needs."""

    async def run(self) -> None:
        """The main loop; returns soon after `stopping` is set."""
        await self.stopping.wait()

    async def on_stop(self) -> None:
        """Close what `on_start` opened."""

    # What users of the service call.

    @property
    def failed(self) -> bool:
        return self.failure is not None

    @property
    def running(self) -> bool:
        """Started, and not yet ended (it may be about to stop)."""
        return self._up.is_set() and not self._ended.is_set()

    async def start(self) -> None:
        is_first = self._life is None
        if is_first:
            if self.stopping.is_set():
                return
            self._life = asyncio.create_task(self._live(), name=self.name)
            self._life.add_done_callback(self._bury)
        try:
            await self._up.wait()
        except asyncio.CancelledError:
            if is_first:
                self.ask_stop()
            raise
        if self._start_error is not None:
            raise self._start_error

    def ask_stop(self) -> None:
        """The first half of `stop`: ask, and do not wait."""
        if self.stopping.is_set():
            return
        self.stopping.set()
        self._woken.set()
        if self._life is None:
            self._ended.set()
        elif not self._life.done():
            self._schedule_cut()

    async def stop(self) -> None:
        self.ask_stop()
        if self._life is not None and asyncio.current_task() is self._life:
            return  # `run` stops its own service: it cannot wait for itself
        await self._ended.wait()

    async def wait_ended(self) -> BaseException | None:
        """Wait until it has ended, for whatever reason; returns the crash, or None if there was none."""
        await self._ended.wait()
        return self.failure

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # What `run` uses.

    async def pause(self, seconds: float) -> bool:
        """Wait until the time has passed, `wake` was called or stop was asked; False when stopping."""
        if self.stopping.is_set():
            return False
        if self._woken.is_set():
            # A service that is woken all the time must still let others have the loop.
            await asyncio.sleep(0)
        else:
            try:
                async with asyncio.timeout(seconds):
                    await self._woken.wait()
            except TimeoutError:
                pass
        self._woken.clear()
        return not self.stopping.is_set()

    def wake(self) -> None:
        """End the current pause; without one, the next pause ends at once."""
        self._woken.set()

    # The life itself.

    async def _live(self) -> None:
        try:
            await self.on_start()
        except BaseException as exc:
            if self._is_cancellation(exc):
                raise
            self._start_error = self.failure = exc
            return
        finally:
            self._up.set()
        try:
            if not self.stopping.is_set():
                await self.run()
        except BaseException as exc:
            self._note_end(exc)
        finally:
            self.ask_stop()
            if self._was_cut:
                # The cancellation has done its work; `on_stop` starts with a clean slate.
                self._was_cut = False
                self._task.uncancel()
            try:
                await self.on_stop()
            except BaseException as exc:
                self._note_end(exc)

    @property
    def _task(self) -> asyncio.Task[None]:
        assert self._life is not None
        return self._life

    def _is_cancellation(self, exc: BaseException) -> bool:
        # A CancelledError that nobody asked for (say, from a future that someone else cancelled) is a crash.
        return isinstance(exc, asyncio.CancelledError) and self._task.cancelling() > 0

    def _note_end(self, exc: BaseException) -> None:
        if self._is_cancellation(exc):
            if not self._was_cut:
                raise exc  # from outside: the loop is being shut down
            return
        if self.failure is None:
            self.failure = exc
        self._tell(exc)
        if isinstance(exc, KeyboardInterrupt | SystemExit):
            raise exc

    def _tell(self, exc: BaseException) -> None:
        if self._on_crash is not None:
            try:
                self._on_crash(self, exc)
                return
            except Exception as broken:
                exc = broken
        # Without the task: from Python 3.12 on a handler is called in that one's context, in which we are already.
        context = {"message": f"service {self.name!r} crashed", "exception": exc}
        asyncio.get_running_loop().call_exception_handler(context)

    def _schedule_cut(self) -> None:
        if self._stop_timeout_s is not None:
            self._cutter = asyncio.get_running_loop().call_later(self._stop_timeout_s, self._cut_short)

    def _cut_short(self) -> None:
        self._was_cut = True
        self._task.cancel()
        self._schedule_cut()

    def _bury(self, life: asyncio.Task[None]) -> None:
        # Here, not in `_live`: a task that is cancelled before its first step never runs a line of it.
        if self._cutter is not None:
            self._cutter.cancel()
        if not life.cancelled():
            life.exception()  # already told; marks it as seen
        self.stopping.set()
        self._woken.set()
        self._up.set()
        self._ended.set()
