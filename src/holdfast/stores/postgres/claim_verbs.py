"""The verbs of claiming: ordinary jobs by one statement, those with gates or that must run alone by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from holdfast.core.errors import StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.core.job import ClaimedJob, JobId, WorkerId
from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.stores.base import Claim, Hint
from holdfast.stores.postgres import claim, passing
from holdfast.stores.postgres.floors import Floors
from holdfast.stores.postgres.flow_verbs import FlowVerbs
from holdfast.stores.postgres.serving import look_after
from holdfast.stores.postgres.transaction import Tx

#: Jobs with gates that are judged in one transaction.
_CLAIMED_AT_ONCE = 250
#: The share of a claim's time after which jobs that were leased are not kept waiting for those with gates.
_PATIENCE = 0.8


class ClaimVerbs(FlowVerbs):
    """A part of `PostgresStore`."""

    _floors: Floors
    _attached = False
    """Whether something hung on most of the jobs that were claimed last: a guess about what is settled next."""
    _limited = False
    """Whether all that was claimed last could go the short way of limited jobs: a guess about what is claimed next."""

    async def claim_jobs(
        self, worker: WorkerId, lanes: Mapping[Lane, int], *, deadline_s: float, alone: bool = False
    ) -> Claim:
        claiming = self._claim_alone(worker, lanes) if alone else self._claim(worker, lanes, deadline_s=deadline_s)
        return await self._by(deadline_s, claiming)

    async def claim_parked(
        self, worker: WorkerId, lanes: Collection[Lane], *, tasks: Sequence[str], deadline_s: float
    ) -> Claim:
        one = partial(claim.claim_parked, worker=worker, lanes=lanes, tasks=tasks)
        return await self._by(deadline_s, self._claim_parked(one, tasks))

    async def _claim_parked(self, one: Callable[[Tx], Awaitable[Claim]], tasks: Sequence[str]) -> Claim:
        found = await self._engine.query("claim_jobs.any_parked", UNKNOWN_TASK, tasks)
        return await self._claim_one(one) if found else Claim([], {})

    async def _by(self, deadline_s: float, claiming: Coroutine[Any, Any, Claim]) -> Claim:
        if deadline_s <= 0:
            claiming.close()
            raise StoreUnavailable("claim_jobs: dropped at its deadline")
        try:
            async with asyncio.timeout(deadline_s):
                return await claiming
        except TimeoutError:
            raise StoreUnavailable(f"claim_jobs: no answer within {deadline_s:g} s", unknown=True) from None

    async def _claim(self, worker: WorkerId, lanes: Mapping[Lane, int], *, deadline_s: float) -> Claim:
        patience = asyncio.timeout(deadline_s * _PATIENCE)
        self._floors.settle_down()
        raised = {lane for lane in lanes if self._floors.is_raised(lane)}
        taken = await self._take(worker, lanes)
        short = {lane: quota - taken.scanned[lane] for lane, quota in lanes.items() if lane in raised}
        short = {lane: left for lane, left in short.items() if left > 0}
        if short:  # from above the ground: only a look from there says that a lane is empty
            self._floors.drop(short)
            taken = taken.followed_by(await self._take(worker, short, seen=taken.attached))
        if taken.order:
            self._attached = 2 * (len(taken.attached) + taken.limited) > len(taken.order)
            self._limited = bool(taken.limited) and not taken.attached
        if taken.attached:
            claimed: list[ClaimedJob] = []
            try:
                async with patience:
                    await self._add_attached(worker, taken.attached, claimed)
            except (StoreUnavailable, TimeoutError):
                if not (taken.jobs or claimed):
                    raise
                # Gates may be in the hand of one who is slow; what is leased by now is ours to run, and nobody else's.
            taken = taken.joined_by(claimed)
        if taken.headless:
            ending = partial(claim.end_headless, worker=worker, jobs=taken.headless)
            await self._engine.transact("settle_jobs", self._engine.settlements, ending)
        if taken.jobs:
            self._wakeups.tell(Hint.RUNNING)
        await self._reopening(None, taken.closed)
        return Claim(taken.jobs, taken.scanned, taken.lonely)

    async def _take(self, worker: WorkerId, lanes: Mapping[Lane, int], *, seen: Collection[JobId] = ()) -> claim.Taken:
        columns = claim.columns(lanes, self._floors)
        statement = "claim_jobs.limited" if self._limited else "claim_jobs.ordinary"
        rows = await self._engine.call("claim_jobs", self._engine.claims, statement, worker, *columns)
        return claim.take_apart(rows, lanes, self._floors, seen)

    async def _claim_attached(self, worker: WorkerId, job_ids: Sequence[JobId]) -> list[ClaimedJob]:
        jobs: list[ClaimedJob] = []
        await self._add_attached(worker, job_ids, jobs)
        return jobs

    async def _add_attached(self, worker: WorkerId, job_ids: Sequence[JobId], jobs: list[ClaimedJob]) -> None:
        """Adds those that were leased. The short way, if all of them may run. In several transactions where there are
        many: each holds a bounded number of gates."""
        self._limited = True
        for start in range(0, len(job_ids), _CLAIMED_AT_ONCE):
            some = job_ids[start : start + _CLAIMED_AT_ONCE]
            rows = await self._engine.call("claim_jobs", self._engine.claims, "passing.limited", worker, some)
            if rows:
                jobs += map(ClaimedJob._make, rows)
                continue
            self._limited = False
            claiming = partial(passing.claim_attached, worker=worker, job_ids=some)
            claimed, tx = await self._engine.transact("claim_jobs", self._engine.claims, claiming, timed=False)
            jobs += claimed
            await look_after(self._engine, tx.freed)

    async def _claim_alone(self, worker: WorkerId, lanes: Mapping[Lane, int]) -> Claim:
        """Lane by lane, until there is one that may run."""
        scanned: dict[Lane, int] = {}
        order, behind = list(lanes), 0
        while True:
            left = {lane: lanes[lane] for lane in order[behind:]}
            found = await self._claim_one(partial(claim.claim_alone, worker=worker, lanes=left))
            scanned |= found.scanned
            seen = [lane for lane, count in found.scanned.items() if count]
            behind = order.index(seen[0]) + 1 if seen else len(order)
            if found.jobs or behind == len(order):
                return Claim(found.jobs, scanned)

    async def _claim_one(self, claiming: Callable[[Tx], Awaitable[Claim]]) -> Claim:
        return await self._after(*await self._engine.transact("claim_jobs", self._engine.claims, claiming))
