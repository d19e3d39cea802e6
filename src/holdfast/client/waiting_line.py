"""Producers that wait for a full queue, in line: the first one looks, the others wait to be called.

If each looked by itself, thousands of waiting producers would keep the store busy with refusals, and those who could
empty the queue from doing so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.runtime.clock import Clock

T = TypeVar("T")

_LOOK_AGAIN_S = 0.25
_FOLLOWERS = 2


class _Place:
    """One producer's place in the line."""

    __slots__ = ("called", "gone", "stirred")

    def __init__(self) -> None:
        self.called = False
        self.gone = False
        self.stirred = asyncio.Event()


class WaitingLine:
    """The line before one queue.

    1. Only the first looks by itself, every quarter of a second and on every hint that the queue has opened.
    2. Whoever gets in calls the next two: a queue that has opened is filled quickly, and soon after it has closed
       nobody tries any more.
    3. Whoever is refused goes back to the front.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._resting: deque[_Place] = deque()

    async def wait(
        self, attempt: Callable[[], Awaitable[T]], *, refused: Callable[[T], bool], wait_s: float
    ) -> T | None:
        """Repeat `attempt` when it may succeed; its first answer that is not refused, or None at the deadline."""
        deadline_s = self._clock.monotonic() + wait_s
        me = _Place()
        self._resting.append(me)
        try:
            while (left_s := deadline_s - self._clock.monotonic()) > 0:
                if not await self._may_try(me, left_s):
                    continue
                answer = await attempt()
                if not refused(answer):
                    self.call(_FOLLOWERS)
                    return answer
                me.called = False
                self._resting.appendleft(me)
            return None
        finally:
            me.gone = True
            self._close_up()

    def call(self, count: int = 1) -> None:
        """The queue may have opened: so many try."""
        for _ in range(count):
            self._close_up()
            if self._resting:
                self._resting[0].called = True
                self._resting.popleft().stirred.set()
        self._close_up()

    async def _may_try(self, me: _Place, left_s: float) -> bool:
        """Rest until it is called, or is the first and it is time to look; leaves the line when it may try."""
        if not me.called:
            is_first = self._resting[0] is me
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, _LOOK_AGAIN_S) if is_first else left_s):
                    await me.stirred.wait()
            if not me.called and not me.stirred.is_set() and self._resting[0] is me:
                me.called = True
                self._resting.popleft()
                self._close_up()
        me.stirred.clear()
        return me.called

    def _close_up(self) -> None:
        """Forget who has gone, and stir whoever is first now: it has to look for itself."""
        while self._resting and self._resting[0].gone:
            self._resting.popleft()
        if self._resting:
            self._resting[0].stirred.set()
