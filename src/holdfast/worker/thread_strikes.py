"""Interrupts a run whose function is in a thread: with a cancellation, and with `SoftTimeout` at its soft limit."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

from holdfast.core.errors import SoftTimeout
from holdfast.runtime.thread_interrupts import ThreadCall
from holdfast.worker.run import Run
from holdfast.worker.soft_limit import message_of

_TRY_AGAIN_S = 0.01


class ThreadStrikes:
    """All but `start_from_thread` is for the loop's thread. Where the function may not be hit, it is tried again."""

    __slots__ = ("_again", "_call", "_loop", "_run", "_soft")

    def __init__(self, run: Run, call: ThreadCall[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._run = run
        self._call = call
        self._loop = loop
        self._soft: asyncio.TimerHandle | None = None
        self._again: asyncio.TimerHandle | None = None
        run.strike = self.cancel

    def start_from_thread(self, soft_s: float | None) -> None:
        """The function begins: its soft limit counts from now."""
        if soft_s is not None:
            self._loop.call_soon_threadsafe(self._start, soft_s)

    def cancel(self) -> None:
        """Raise a cancellation in it."""
        self._strike(asyncio.CancelledError)

    def close(self) -> None:
        """The function has ended, or nobody waits for it any more."""
        self._run.strike = None
        for timer in (self._soft, self._again):
            if timer is not None:
                timer.cancel()

    def _start(self, soft_s: float) -> None:
        if self._run.strike is not None:  # else the run has ended meanwhile
            self._soft = self._loop.call_later(soft_s, self._reach_soft_limit, soft_s)

    def _reach_soft_limit(self, soft_s: float) -> None:
        if self._run.interruption is None:  # a cancellation that is on its way counts for more
            self._strike(soft_timeout_of(soft_s))

    def _strike(self, error: type[BaseException]) -> None:
        if self._again is not None:
            self._again.cancel()  # what came last is what counts: a cancellation, after the soft limit
        self._again = None
        if not self._call.interrupt(error):
            self._again = self._loop.call_later(_TRY_AGAIN_S, self._strike, error)


@lru_cache(maxsize=256)
def soft_timeout_of(limit_s: float) -> type[SoftTimeout]:
    """A class to be raised, since a thread can be given no instance; users know it as `SoftTimeout`."""

    class Reached(SoftTimeout):
        def __init__(self, *_: object) -> None:
            super().__init__(message_of(limit_s))

        def __reduce__(self) -> tuple[Any, ...]:
            return SoftTimeout, self.args

    Reached.__module__, Reached.__doc__ = SoftTimeout.__module__, SoftTimeout.__doc__
    Reached.__qualname__ = Reached.__name__ = SoftTimeout.__name__
    return Reached
