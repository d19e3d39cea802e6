"""Measures from another thread how long an event loop takes to answer, and finds out what keeps it from answering."""

from __future__ import annotations

import asyncio
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

#: A loop that has not answered for so long is reported: every job of its process waits.
BLOCKED_S: Final = 1.0
#: A lag of less is nobody's business.
WORTH_TELLING_S: Final = 0.1

_OURS: Final = str(Path(__file__).parents[1])
_STANDARD: Final = sysconfig.get_path("stdlib")


class LoopWatch:
    """Runs on a loop of its own, beside the one it watches.

    `on_pulse` gets the time and the lag at every look; `on_blocked`, once per blockage, the lag so far, the asyncio
    task that does not yield and the line at which it stands.
    """

    def __init__(
        self,
        *,
        every_s: float,
        on_pulse: Callable[[float, float], None],
        on_blocked: Callable[[float, asyncio.Task[object] | None, str], None],
    ) -> None:
        self._every_s = every_s
        self._on_pulse = on_pulse
        self._on_blocked = on_blocked
        self._worst_s = 0.0
        self._told_s = 0.0

    async def watch(self, loop: asyncio.AbstractEventLoop, *, thread: int) -> None:
        """Until it is cancelled, or the loop is closed. `thread`: the one that `loop` runs in."""
        self._on_pulse(time.monotonic(), 0.0)
        while True:
            asked_s = time.monotonic()
            answers: list[float] = []
            try:
                loop.call_soon_threadsafe(_answer, answers)
            except RuntimeError:
                return
            reported = False
            while True:
                await asyncio.sleep(self._every_s)
                now_s = time.monotonic()
                lag_s = (answers[0] if answers else now_s) - asked_s
                self._worst_s = max(self._worst_s, lag_s)
                self._on_pulse(now_s, lag_s)
                if answers:
                    break
                if lag_s >= BLOCKED_S and not reported:
                    reported = True
                    self._on_blocked(lag_s, asyncio.current_task(loop), where_in_thread(thread))

    def news(self) -> float | None:
        """The worst lag since it was last asked for; None when there is nothing worth telling."""
        worst_s, self._worst_s = self._worst_s, 0.0
        shown_s = worst_s if worst_s >= WORTH_TELLING_S else 0.0
        if shown_s == self._told_s:
            return None
        self._told_s = shown_s
        return shown_s


def _answer(answers: list[float]) -> None:
    answers.append(time.monotonic())


def where_in_thread(thread: int) -> str:
    """The line of users' code at which a thread stands, else the innermost one there is."""
    innermost = frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code.co_filename.startswith((_OURS, _STANDARD, "<frozen")):
        frame = frame.f_back
    return _shown(frame or innermost)


def _shown(frame: FrameType | None) -> str:
    if frame is None:
        return "nowhere: its thread has ended"
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
