"""Ends a run at its hard limit, as far as it lets itself be ended; what is made of that is the executor's.

What does not let itself be ended is ended with its process: the limit is on the board, where the supervisor sees it.
"""

from __future__ import annotations

import asyncio

from holdfast.telemetry.events import JobOverdue
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.run import Interruption, Run
from holdfast.worker.supervision.watching import Watched

_ASK_AGAIN_S = 1.0


class HardLimit:
    """Ends a run at its hard limit; one that does not end is asked again and reported."""

    __slots__ = ("_limit_s", "_loop", "_reported", "_run", "_telemetry", "_timer", "_watched")

    def __init__(
        self,
        run: Run,
        limit_s: float | None,
        loop: asyncio.AbstractEventLoop,
        telemetry: Telemetry,
        watched: Watched | None = None,
    ) -> None:
        self._run = run
        self._limit_s = limit_s
        self._loop = loop
        self._telemetry = telemetry
        self._watched = watched
        self._reported = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if self._limit_s is not None:
            if self._watched is not None:
                self._watched.limit(self._limit_s)
            self._arm(self._limit_s)

    def start_from_thread(self) -> None:
        if self._limit_s is not None:
            if self._watched is not None:  # from here: the loop may be blocked for as long as the limit lasts
                self._watched.limit(self._limit_s)
            self._loop.call_soon_threadsafe(self._arm, self._limit_s)

    def _arm(self, limit_s: float) -> None:
        if self._run.user_code is not None:  # else the run has ended meanwhile
            self._timer = self._loop.call_later(limit_s, self._strike, 0.0)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _strike(self, over_s: float) -> None:
        self._run.interrupt(Interruption.TIMEOUT)
        if over_s and not self._reported:
            self._reported = True
            self._telemetry.emit(JobOverdue(self._run.job.id, self._run.job.task or "", over_s))
        self._timer = self._loop.call_later(_ASK_AGAIN_S, self._strike, over_s + _ASK_AGAIN_S)
