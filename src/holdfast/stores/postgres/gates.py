"""Backpressure: whether a queue accepts, by the depth that all its writers keep together (P8).

Reading the depth costs more than adding to it, so a queue that was far below its mark a moment ago is not asked again:
what this process has put into it since then is added to what it knew. Near the mark every batch is judged by a fresh
look. So the bound is soft by what the producers put in within that moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING

from holdfast.core.backpressure import Watermarks, gate
from holdfast.core.job import NewJob
from holdfast.runtime.clock import Clock
from holdfast.stores.base import Full
from holdfast.stores.queue_rows import from_row

if TYPE_CHECKING:
    from asyncpg import Record

Query = Callable[..., Awaitable["list[Record]"]]

_LASTS_S = 0.05
#: From this share of the high mark on, every batch is judged by a fresh look.
_NEAR = 0.5
_FOLD_FROM = 500
_FOLDED_AT_ONCE = 5000


class Gates:
    """The gates of all queues, as one process sees them."""

    def __init__(self, query: Query, tenanted: set[str], *, watermarks: Watermarks, clock: Clock) -> None:
        self._query = query
        self._tenanted = tenanted
        self._watermarks = watermarks
        self._clock = clock
        self._met: set[str] = set()
        self._room: dict[str, int] = {}
        self._seen_s: dict[str, float] = {}

    def forget(self) -> None:
        """Look afresh: marks may have changed."""
        self._room.clear()

    async def meet(self, jobs: Sequence[NewJob]) -> None:
        """Make the store know of the queues of these jobs, and of those in which they name a tenant."""
        new = {job.queue for job in jobs} - self._met
        if new:
            await self._query("queues.meet", sorted(new))
            self._met |= new
        named = {job.queue for job in jobs if job.tenant} - self._tenanted
        if named:
            await self._query("tenants.mark", sorted(named))
            self._tenanted |= named

    async def shut(self, jobs: Sequence[NewJob]) -> dict[str, Full]:
        """The queues among those of these jobs that do not accept now. Below its mark a queue takes a whole batch."""
        counts = Counter(job.queue for job in jobs)
        now_s = self._clock.monotonic()
        unsure = [queue for queue, count in counts.items() if not self._has_room(queue, count, now_s)]
        if not unsure:
            return {}
        shut = await self._look(unsure, now_s)
        for queue in unsure:
            self._room[queue] -= counts[queue]
        return shut

    async def reopen(self, queues: Collection[str]) -> bool:
        """Open those of these closed queues that have drained; whether there were any."""
        before = {row[0] for row in await self._query("queues.closed", list(queues))}
        if not before:
            return False
        shut = await self._look(sorted(before), self._clock.monotonic())
        return bool(before - shut.keys())

    def _has_room(self, queue: str, count: int, now_s: float) -> bool:
        room = self._room.get(queue)
        if room is None or room < count or now_s - self._seen_s[queue] >= _LASTS_S:
            return False
        self._room[queue] = room - count
        return True

    async def _look(self, queues: list[str], now_s: float) -> dict[str, Full]:
        shut: dict[str, Full] = {}
        changed: list[tuple[str, bool]] = []
        unfolded = 0
        for row in await self._query("queues.survey", queues):
            queue, depth, closed, high, low, changes, tenanted, draining, parked, *ages_s, age_s = row
            if tenanted:
                self._tenanted.add(queue)
            settings = from_row(False, high, low, 1.0, None, *ages_s)
            marks = settings.watermarks or self._watermarks
            unfolded += changes
            now_closed = gate(closed, depth, marks, age_s=age_s, ages=settings.ages)
            if now_closed != closed:
                changed.append((queue, now_closed))
            if now_closed or draining:
                shut[queue] = Full(queue, depth, marks.high, marks.low, age_s, draining, max(0, parked))
            # Age does not grow by what is put in, so that no number of jobs is known to be harmless.
            asked = now_closed or draining or settings.ages
            self._room[queue] = 0 if asked else int(marks.high * _NEAR) - depth
            self._seen_s[queue] = now_s
        if changed:
            await self._query("queues.set_gates", [queue for queue, _ in changed], [closed for _, closed in changed])
        if unfolded >= _FOLD_FROM:
            await self._query("queues.fold", _FOLDED_AT_ONCE)
        return shut
