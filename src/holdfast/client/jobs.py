"""`hf.jobs`: look at jobs, list them, cancel them, run dead ones again, explain why one waits."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.client.acts import Acts
from holdfast.client.explaining import explain
from holdfast.client.filters import check_reason, job_filter, list_page
from holdfast.client.moving import move
from holdfast.core.errors import JobNotFound, JobStateError, NotUnique
from holdfast.core.explanation import Explanation
from holdfast.core.ids import parse_job_id
from holdfast.core.job import JobId, JobInfo
from holdfast.core.state import State
from holdfast.core.task import Registry
from holdfast.stores.base import CancelAnswer, Hint, JobPage, Store
from holdfast.stores.dead import Replayed

MOST_LISTED = 1000
_LOOKS = 40
_REASON_LIMIT = 1000
_LOOK_AT_MOST_EVERY_S = 0.02


class Jobs:
    """Operations on jobs by id or by filter."""

    def __init__(
        self, store: Store, registry: Registry, acts: Acts, *, poll_s: float, bounds: Mapping[str, int] | None = None
    ) -> None:
        """`bounds`: how many jobs of a queue a worker runs at once, as far as the settings say it."""
        self._store = store
        self._registry = registry
        self._acts = acts
        self._poll_s = poll_s
        self._bounds = bounds or {}

    async def get(self, job_id: JobId | str) -> JobInfo:
        """One job; JobNotFound when there is none."""
        job_id = parse_job_id(job_id)
        [info] = await self._store.job_infos([job_id])
        if info is None:
            raise JobNotFound(job_id)
        return info

    async def get_many(self, job_ids: Sequence[JobId | str]) -> builtins.list[JobInfo | None]:
        """Several at once, in order; None where there is no such job."""
        return await self._store.job_infos([parse_job_id(job_id) for job_id in job_ids])

    async def list(
        self,
        *,
        state: State | str | None = None,
        queue: str | None = None,
        task: str | None = None,
        tenant: str | None = None,
        tag: str | None = None,
        error_type: str | None = None,
        fingerprint: str | None = None,
        text: str | None = None,
        reason: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        limit: int = 100,
        before: JobId | str | None = None,
    ) -> JobPage:
        """Jobs that match all of these, newest first; `before` is `next` of the page before.

        A page that is short and still has a `next` was given up on after some thousands of jobs that do not match.
        """
        where = job_filter(
            state=state,
            queue=queue,
            task=task,
            tenant=tenant,
            tag=tag,
            error_type=error_type,
            fingerprint=fingerprint,
            text=text,
            reason=reason,
            created_after=created_after,
            created_before=created_before,
        )
        return await list_page(self._store, where, limit=limit, before=before)

    async def cancel(self, job_id: JobId | str, *, reason: str = "", by: str = "") -> CancelAnswer:
        """End the job if it waits, ask it to stop if it runs; JobNotFound when there is none.

        Why, and by whom, is kept with the job as its `reason`. With `by`, it is an operator's act, and on record as the
        changes of settings are.
        """
        job_id = parse_job_id(job_id)
        why = check_reason(reason) or "cancelled"
        if by:
            await self._acts.record("cancel", str(job_id), by=by, reason=reason)
        [answer] = await self._store.cancel_jobs([job_id], reason=check_reason(f"{why} (by {by})") if by else why)
        if answer is CancelAnswer.MISSING:
            raise JobNotFound(job_id)
        return answer

    async def retry(self, job_id: JobId | str, *, by: str = "") -> None:
        """Run a dead job again, with the same id and its whole history; NotUnique while another stands in its way.
        With `by`, on record as in `cancel`."""
        info = await self.get(job_id)
        if by and info.state is State.DEAD:
            await self._acts.record("retry", str(info.id), by=by)
        replayed = await self._store.replay_jobs([info.id]) if info.state is State.DEAD else Replayed()
        if info.id in replayed.in_the_way:
            raise NotUnique(replayed.in_the_way[info.id], task=info.task, replaying=info.id)
        if not replayed:
            raise JobStateError(f"job {info.id} is {info.state}; only a dead job can be run again")

    async def explain(self, job_id: JobId | str) -> Explanation:
        """Why a job is where it is: what keeps it, its place, an estimate of its start; as text, in a line."""
        return await explain(self._store, await self.get(job_id), bounds=self._bounds)

    async def move(
        self,
        which: JobId | str | Sequence[JobId | str] | Mapping[str, Any],
        *,
        queue: str | None = None,
        priority: int | str | None = None,
        by: str = "",
    ) -> int:
        """Give jobs that wait another queue, another priority, or both; returns how many.

        `which` is an id, several, or the filters of `list` as a mapping, as in `{"queue": "mail", "tag": "x"}`.
        What is ready goes to the tail there, the oldest first; what runs or has ended stays as it is. It is on record,
        with how many there were, as changes of settings are: `by` says who it was, or else the user of this process.
        """
        return await move(self._store, which, self._acts, queue=queue, priority=priority, by=by)

    async def count(self, *, most: int | None = None, **filters: Any) -> int:
        """How many match, filters as for `list`; with `most`, it stops counting there."""
        return await self._store.count_jobs(job_filter(**filters), most=most)

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Be called, on this loop, when jobs may have changed; for nothing at times. Returns the way out."""
        return self._store.subscribe(lambda hint: callback() if hint is not Hint.NOTHING else None)

    async def watch(self, job_id: JobId | str) -> AsyncIterator[JobInfo]:
        """Every change of a job that can be seen, the first report at once, the last one its ending."""
        job_id = parse_job_id(job_id)
        changed = asyncio.Event()
        leave = self._store.subscribe(lambda hint: changed.set() if hint is not Hint.NOTHING else None)
        last: JobInfo | None = None
        try:
            while True:
                changed.clear()
                info = await self.get(job_id)
                if info != last:
                    yield info
                    last = info
                if info.state.ended:
                    return
                # A hint tells of any commit in the store: looking again at once would follow all of them.
                await asyncio.sleep(_LOOK_AT_MOST_EVERY_S)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._poll_s):
                        await changed.wait()
        finally:
            leave()
