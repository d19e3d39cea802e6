"""Producers that wait for a full queue, in line: the first one looks, the others wait to be called.

If each looked by itself, thousands of waiting producers would keep the store busy with refusals, and those who could
empty the queue from doing so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.core.errors import NotOpen
from holdfast.runtime.clock import Clock
from holdfast.stores.base import Hint

T = TypeVar("T")

_LOOK_AGAIN_S = 0.25
_FOLLOWERS = 2


class _Place:
    """One producer's place in the line."""

    __slots__ = ("called", "stirred")

    def __init__(self) -> None:
        self.called = False
        self.stirred = asyncio.Event()


class WaitingLine:
    """The line before one queue.

    1. Only the first looks by itself, every quarter of a second and on every hint that the queue has opened.
    2. Whoever gets in calls the next two: a queue that has opened is filled quickly, and soon after it has closed
       nobody tries any more.
    3. Whoever is refused goes back to the front; whoever was called and leaves without trying calls the next.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._resting: OrderedDict[_Place, None] = OrderedDict()
        self._first: _Place | None = None
        self._closed = False

    async def wait(
        self, attempt: Callable[[], Awaitable[T]], *, refused: Callable[[T], bool], wait_s: float
    ) -> T | None:
        """Repeat `attempt` when it may succeed; its first answer that is not refused, or None at the deadline."""
        deadline_s = self._clock.monotonic() + wait_s
        me = _Place()
        self._rest(me)
        try:
            while (left_s := deadline_s - self._clock.monotonic()) > 0:
                if not await self._may_try(me, left_s):
                    continue
                answer = await attempt()
                me.called = False
                if not refused(answer):
                    self.call(_FOLLOWERS)
                    return answer
                self._rest(me, in_front=True)
            return None
        finally:
            self._leave(me)
            if me.called:
                self.call()

    def call(self, count: int = 1) -> None:
        """The queue may have opened: so many try."""
        for _ in range(min(count, len(self._resting))):
            place = next(iter(self._resting))
            place.called = True
            place.stirred.set()
            self._leave(place)

    def close(self) -> None:
        """Nobody can get in any more: all hear it."""
        self._closed = True
        for place in self._resting:
            place.stirred.set()

    async def _may_try(self, me: _Place, left_s: float) -> bool:
        """Rest until it is called, or is the first and it is time to look; leaves the line when it may try."""
        if not me.called:
            is_first = self._first is me
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, _LOOK_AGAIN_S) if is_first else left_s):
                    await me.stirred.wait()
            if self._closed:
                raise NotOpen("the app was closed while a full queue was waited for; nothing was enqueued")
            if not me.called and not me.stirred.is_set() and self._first is me:
                me.called = True
                self._leave(me)
        me.stirred.clear()
        return me.called

    def _rest(self, place: _Place, *, in_front: bool = False) -> None:
        self._resting[place] = None
        if in_front:
            self._resting.move_to_end(place, last=False)
        self._close_up()

    def _leave(self, place: _Place) -> None:
        self._resting.pop(place, None)
        self._close_up()

    def _close_up(self) -> None:
        """Stir whoever has become the first: it has to look for itself now."""
        first = next(iter(self._resting), None)
        if first is not self._first:
            self._first = first
            if first is not None:
                first.stirred.set()


class WaitingLines:
    """The lines before all queues; hears of queues that open while anybody waits: to listen costs all that is said."""

    def __init__(self, clock: Clock, *, subscribe: Callable[[Callable[[Hint], None]], Callable[[], None]]) -> None:
        self._clock = clock
        self._subscribe = subscribe
        self._lines: dict[str, WaitingLine] = {}
        self._waiting = 0
        self._leave: Callable[[], None] | None = None

    async def wait(
        self, queue: str, attempt: Callable[[], Awaitable[T]], *, refused: Callable[[T], bool], wait_s: float
    ) -> T | None:
        """As in one line, in that of the queue."""
        line = self._lines.setdefault(queue, WaitingLine(self._clock))
        self._waiting += 1
        if self._leave is None:
            self._leave = self._subscribe(self._on_hint)
        try:
            return await line.wait(attempt, refused=refused, wait_s=wait_s)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._stop_listening()

    def close(self) -> None:
        """All who wait hear that nobody can get in any more."""
        self._stop_listening()
        for line in self._lines.values():
            line.close()

    def _stop_listening(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    def _on_hint(self, hint: Hint) -> None:
        if hint & Hint.OPENED:
            for line in self._lines.values():
                line.call()
