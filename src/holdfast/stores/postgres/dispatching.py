"""Dispatch by a transport: claims of announced jobs by their ids, and announcements of what has become ready."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.core.announcement import Announcement
from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.core.job import ClaimedJob, JobId, NewJob, WorkerId
from holdfast.core.loss import alone
from holdfast.core.settlement import Crashed, HandBack, Settlement
from holdfast.core.state import State
from holdfast.stores.base import Claim, Hint, Inserted, InsertResult
from holdfast.stores.dispatch import Announce
from holdfast.stores.postgres import claim
from holdfast.stores.postgres.floors import Floors
from holdfast.stores.postgres.flush import Flushed
from holdfast.stores.postgres.transaction import Place, Tx

if TYPE_CHECKING:
    from holdfast.stores.postgres.engine import Engine
    from holdfast.stores.postgres.wakeups import Wakeups

T = TypeVar("T")
_KIND = len(ClaimedJob._fields)


class Dispatching:
    """`stores.dispatch.DispatchStore` of one PostgreSQL store."""

    def __init__(
        self,
        engine: Engine,
        wakeups: Wakeups,
        floors: Floors,
        reopening: Callable[[None, Collection[str]], Awaitable[None]],
        claim_attached: Callable[[WorkerId, Sequence[JobId]], Awaitable[list[ClaimedJob]]],
    ) -> None:
        self._engine = engine
        self._wakeups = wakeups
        self._floors = floors
        self._reopening = reopening
        self._claim_attached = claim_attached
        self._announce: Announce | None = None
        self._news: Callable[[str], None] | None = None

    # ------------------------------------------------------------ claim

    async def claim_entries(
        self, worker: WorkerId, job_ids: Sequence[JobId], *, queues: Collection[str], deadline_s: float
    ) -> Claim:
        if deadline_s <= 0:
            raise StoreUnavailable("claim_jobs: dropped at its deadline")
        try:
            async with asyncio.timeout(deadline_s):
                return await self._claim(worker, job_ids, sorted(queues))
        except TimeoutError:
            raise StoreUnavailable(f"claim_jobs: no answer within {deadline_s:g} s", unknown=True) from None

    async def _claim(self, worker: WorkerId, job_ids: Sequence[JobId], queues: list[str]) -> Claim:
        engine, job_ids = self._engine, list(dict.fromkeys(job_ids))  # a job may be announced more than once
        rows = await engine.call("claim_jobs", engine.claims, "dispatch.claim_entries", worker, queues, job_ids)
        found = [row for row in rows if row[0] is not None]  # the others are news of the queues
        jobs = [ClaimedJob._make(row[:_KIND]) for row in found if row[_KIND] == "job"]
        if headless := [job for job in jobs if job.task is None]:
            ending = partial(claim.end_headless, worker=worker, jobs=headless)
            await engine.transact("settle_jobs", engine.settlements, ending)
            jobs = [job for job in jobs if job.task is not None]
        if attached := [row[0] for row in found if row[_KIND] != "job"]:
            jobs += await self._claim_attached(worker, attached)
        if jobs:
            self._wakeups.tell(Hint.RUNNING)
        await self._reopening(None, [row["queue"] for row in rows if row[_KIND] == "closed"])
        at = {job_id: place for place, job_id in enumerate(job_ids)}
        jobs.sort(key=lambda job: at[job.id])
        return Claim(jobs, dict(Counter(Lane(row["queue"], row["priority"]) for row in found)))

    # ------------------------------------------------------------ announce

    def announce_to(self, announce: Announce | None) -> None:
        self._announce = announce

    def news_to(self, tell: Callable[[str], None] | None) -> None:
        self._news = tell

    def set(self, queue: str) -> None:
        """Its settings are committed."""
        if self._news is not None:
            self._news(queue)

    def hint_ready(self) -> None:
        self._wakeups.tell(Hint.READY)

    def inserted(self, jobs: Sequence[NewJob], answers: Sequence[InsertResult]) -> Hint:
        """Hints of what an insert has made ready that nobody else tells of."""
        if self._announce is None:
            return Hint.READY
        fair = self._engine.tenanted
        told = self._announce(
            [
                Announcement(Lane(job.queue, job.priority), None if job.queue in fair else job.id)
                for job, answer in zip(jobs, answers, strict=True)
                if isinstance(answer, Inserted) and answer.state is State.READY
            ]
        )
        return Hint.NOTHING if told else Hint.READY

    def tell(self, done: Tx | Flushed) -> None:
        """Something is committed: announce what it has made ready, and give hints of everything else."""
        if done.returned:
            self._floors.fall()
        hints = self._unannounced(done.entered, done.hints) if isinstance(done, Tx) else done.hints
        self._wakeups.tell(hints, returned=done.returned)

    def _unannounced(self, places: Iterable[Place], hints: Hint) -> Hint:
        if self._announce is None or Hint.READY not in hints:
            return hints
        told = [_announcement(each.job_id, each.queue, each.priority, each.tag, each.losses) for each in places]
        return hints & ~Hint.READY if told and self._announce(told) else hints

    async def returned(self, settlements: Sequence[Settlement]) -> None:
        """Those of these that gave their jobs back."""
        await self.announce_ready([each.job_id for each in settlements if isinstance(each, HandBack | Crashed)])

    async def announce_ready(self, job_ids: Collection[JobId]) -> None:
        """Those of these that are ready. Where they are only the store knows."""
        if self._announce is None:
            return
        with contextlib.suppress(StoreError):  # it is committed; who looks for the jobs finds them
            rows = await self._engine.query("dispatch.places", list(job_ids))
            if rows:
                self._announce([_announcement(*row) for row in rows])

    async def ready_jobs(self, queue: str, *, limit: int) -> list[Announcement]:
        rows = await self._engine.query("dispatch.ready_jobs", queue, limit)
        return [_announcement(job_id, queue, *place) for job_id, *place in rows]

    async def installation(self) -> str:
        [(made,)] = await self._engine.query("dispatch.installation")
        return str(made)


def _announcement(job_id: Any, queue: str, priority: int, tag: int, losses: int) -> Announcement:
    """Where jobs have tags, their order decides: nobody is to have this one before others. And what must run alone is
    claimed by nobody who was told its id: he has to look into its lane to hear that there is such a job."""
    return Announcement(Lane(queue, priority), None if tag or alone(losses) else job_id)
