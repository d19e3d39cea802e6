"""What a transport needs of a store, and what it may do for one. Not every store has it: without, none can be used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from holdfast.core.announcement import Announcement
from holdfast.core.job import JobId, WorkerId
from holdfast.stores.base import Claim

Announce = Callable[[Sequence[Announcement]], bool]


class DispatchStore(Protocol):
    """Claims by announcement, and says what has become ready."""

    async def claim_entries(
        self, worker: WorkerId, job_ids: Sequence[JobId], *, queues: Collection[str], deadline_s: float
    ) -> Claim:
        """Lease these jobs; those that cannot be leased now are absent from the answer. As `claim_jobs` otherwise."""
        ...

    def announce_to(self, announce: Announce | None) -> None:
        """After each commit, tell it which jobs have become ready. True: it sees to it that somebody hears; else the
        store gives hints of them as ever."""
        ...

    def news_to(self, tell: Callable[[str], None] | None) -> None:
        """After each commit of a queue's settings, tell it the queue's name."""
        ...

    def hint_ready(self) -> None:
        """Give hints after all: what was announced has not arrived."""
        ...

    async def ready_jobs(self, queue: str, *, limit: int) -> list[Announcement]:
        """Announcements of the first jobs of each of the queue's lanes, in order."""
        ...

    async def installation(self) -> str:
        """A name that no other installation has, of letters and digits."""
        ...
