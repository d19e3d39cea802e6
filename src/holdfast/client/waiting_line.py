"""Producers that wait for a full queue, in line: the first one looks, the others wait to be called.

If each looked by itself, thousands of waiting producers would keep the store busy with refusals, and those who could
empty the queue from doing so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import TypeVar

from holdfast.runtime.clock import Clock

T = TypeVar("T")

_LOOK_AGAIN_S = 0.25


class _Place:
    """One producer's place in the line."""

    __slots__ = ("called", "gone")

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.gone = False


class WaitingLine:
    """The line before one queue."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._places: deque[_Place] = deque()

    async def wait(
        self, attempt: Callable[[], Awaitable[T]], *, refused: Callable[[T], bool], wait_s: float, room: int
    ) -> T | None:
        """Repeat `attempt` whenever it may succeed; its first answer that is not refused, or None at the deadline.

        `room`: how many may follow when the first one finds the queue open.
        """
        deadline_s = self._clock.monotonic() + wait_s
        me = _Place()
        self._places.append(me)
        try:
            while (left_s := deadline_s - self._clock.monotonic()) > 0:
                first = self._places[0] is me
                called = await _wait(me.called, min(left_s, _LOOK_AGAIN_S) if first else left_s)
                if not called and not first:
                    continue
                me.called.clear()
                answer = await attempt()
                if not refused(answer):
                    if first:
                        self.call(room)
                    return answer
            return None
        finally:
            me.gone = True
            while self._places and self._places[0].gone:
                self._places.popleft()
            if self._places:
                self._places[0].called.set()  # whoever is first now looks for itself

    def call(self, count: int = 1) -> None:
        """The queue may have opened: so many try, and those who are refused wait on."""
        for place in islice(self._places, count):
            place.called.set()


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
