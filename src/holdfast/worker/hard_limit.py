"""Ends runs at their hard limits, as far as they let themselves be ended; what is made of that is the executor's.

What does not let itself be ended is ended with its process: the limit is on the board, where the supervisor sees it.
"""

from __future__ import annotations

import asyncio
import math

from holdfast.telemetry.events import JobOverdue
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.run import Interruption, Run

_ASK_AGAIN_S = 1.0


class HardLimits:
    """The limits of all runs of a worker; a run that does not end at its own is asked again and reported.

    One timer serves them all: one for each would cost as much as a short run itself. It is set for the limit that is
    the next to pass, and stays set when that run has ended: then it finds nothing to do but to be set for the next.
    Belongs to one event loop.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._due_s: dict[Run, float] = {}
        self._asked: dict[Run, int] = {}
        self._looks_at_s = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def start(self, run: Run, limit_s: float | None) -> None:
        """From now on, unless the run has ended meanwhile."""
        if limit_s is not None and run.user_code is not None:
            loop = asyncio.get_running_loop()
            due_s = self._due_s[run] = loop.time() + limit_s
            if due_s < self._looks_at_s:
                self._look_at(due_s, loop)

    def end(self, run: Run) -> None:
        """The run has ended."""
        self._due_s.pop(run, None)
        if self._asked:
            self._asked.pop(run, None)

    def _look_at(self, when_s: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._looks_at_s = when_s
        self._timer = loop.call_at(when_s, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now_s = max(loop.time(), self._looks_at_s)  # a timer may be early by less than the clock can tell
        self._timer, self._looks_at_s = None, math.inf
        for run in [run for run, due_s in self._due_s.items() if due_s <= now_s]:
            self._due_s[run] = now_s + _ASK_AGAIN_S
            self._strike(run)
        if self._due_s:
            self._look_at(min(self._due_s.values()), loop)

    def _strike(self, run: Run) -> None:
        times = self._asked[run] = self._asked.get(run, 0) + 1
        run.interrupt(Interruption.TIMEOUT)
        if times == 2:
            self._telemetry.emit(JobOverdue(run.job.id, run.job.task or "", _ASK_AGAIN_S))
