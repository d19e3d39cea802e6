"""`hf.jobs`: look at jobs, list them, cancel them, run dead ones again, explain why one waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from holdfast.core.errors import InvalidArguments, InvalidOptions, JobNotFound, JobStateError
from holdfast.core.ids import parse_job_id
from holdfast.core.job import JobId, JobInfo
from holdfast.core.names import check_name
from holdfast.core.outcome import storable
from holdfast.core.shown import shown
from holdfast.core.state import State
from holdfast.core.task import Registry
from holdfast.stores.base import CancelAnswer, Hint, JobFilter, JobPage, Store

MOST_LISTED = 1000
_LOOKS = 40
_REASON_LIMIT = 1000
_LOOK_AT_MOST_EVERY_S = 0.02


class Jobs:
    """Operations on jobs by id or by filter."""

    def __init__(self, store: Store, registry: Registry, *, poll_s: float) -> None:
        self._store = store
        self._registry = registry
        self._poll_s = poll_s

    async def get(self, job_id: JobId | str) -> JobInfo:
        """One job; JobNotFound when there is none."""
        job_id = parse_job_id(job_id)
        [info] = await self._store.job_infos([job_id])
        if info is None:
            raise JobNotFound(job_id)
        return info

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

        Why, and by whom, is kept with the job as its `reason`.
        """
        job_id = parse_job_id(job_id)
        why = check_reason(reason) or "cancelled"
        [answer] = await self._store.cancel_jobs([job_id], reason=check_reason(f"{why} (by {by})") if by else why)
        if answer is CancelAnswer.MISSING:
            raise JobNotFound(job_id)
        return answer

    async def retry(self, job_id: JobId | str) -> None:
        """Run a dead job again, with the same id and its whole history."""
        info = await self.get(job_id)
        if info.state is not State.DEAD or not await self._store.replay_jobs([info.id]):
            raise JobStateError(f"job {info.id} is {info.state}; only a dead job can be run again")

    async def explain(self, job_id: JobId | str) -> str:
        """Why a job is where it is, in a sentence."""
        info = await self.get(job_id)
        match info.state:
            case State.READY:
                return await self._explain_ready(info)
            case State.SCHEDULED:
                why = "its next attempt" if info.attempts else "its time"
                return f"job {info.id} waits for {why}, at {info.run_at:%Y-%m-%d %H:%M:%S} UTC"
            case State.BLOCKED:
                return f"job {info.id} waits for other jobs to end"
            case State.PARKED:
                return f"job {info.id} is parked: {_PARKED.get(info.reason or '', info.reason)}"
            case State.RUNNING:
                asked = "; it was asked to stop" if info.cancel_requested else ""
                return f"job {info.id} runs on worker {info.worker}, attempt {info.attempt}{asked}"
            case _:
                return f"job {info.id} ended {info.state}" + (f": {info.reason}" if info.reason else "")

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

    async def _explain_ready(self, info: JobInfo) -> str:
        queues = {queue.name: queue for queue in await self._store.list_queues()}
        workers = await self._store.list_workers()
        queue = queues.get(info.queue)
        if queue is not None and queue.settings.paused:
            return f"job {info.id} is ready, but queue {info.queue!r} is paused"
        if not any(not worker.queues or info.queue in worker.queues for worker in workers):
            return f"job {info.id} is ready, but no running worker serves queue {info.queue!r}"
        ahead = 0 if queue is None else queue.by_priority.get(info.priority, 1) - 1
        return f"job {info.id} is ready; up to {ahead} others of its queue and priority may come first"


_PARKED = {
    "unknown_task": "no worker that has seen it knows its task; it runs when one that does appears",
    "limit": "as many jobs with its limit's key run as may at once",
}


async def list_page(store: Store, where: JobFilter, *, limit: int, before: JobId | str | None) -> JobPage:
    """A page, put together from several looks where one finds too few; each look is short, and so is their number."""
    wanted = check_limit(limit)
    page = JobPage(cursor=None if before is None else parse_job_id(before))
    for _ in range(_LOOKS):
        found = await store.list_jobs(where, limit=wanted - len(page), before=page.next)
        page = JobPage([*page, *found], cursor=found.next)
        if found.next is None or len(page) == wanted:
            break
    return page


def job_filter(
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
) -> JobFilter:
    """A filter from what a user gave."""
    return JobFilter(
        state=None if state is None else _state(state),
        queue=None if queue is None else check_name("queue", queue),
        task=_text("task", task),
        tenant=_text("tenant", tenant),
        tag=_text("tag", tag),
        error_type=_text("error_type", error_type),
        fingerprint=_text("fingerprint", fingerprint),
        text=_text("text", text),
        reason=_text("reason", reason),
        created_after=_moment("created_after", created_after),
        created_before=_moment("created_before", created_before),
    )


def check_limit(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_LISTED:
        raise InvalidOptions(f"limit={shown(limit)}: needs a whole number from 1 to {MOST_LISTED}")
    return limit


def parse_ids(job_ids: JobId | str | Sequence[JobId | str]) -> list[JobId]:
    """One id or several."""
    if isinstance(job_ids, (str, UUID)):
        return [parse_job_id(job_ids)]
    if not isinstance(job_ids, Iterable):
        raise InvalidArguments(f"{shown(job_ids)} is not a job id, nor a list of them")
    return [parse_job_id(job_id) for job_id in job_ids]


def check_reason(reason: str) -> str:
    """Why somebody ends a job, as it can be stored."""
    if not isinstance(reason, str):
        raise InvalidOptions(f"reason={shown(reason)}: needs a text")
    return storable(reason, _REASON_LIMIT)


def _text(name: str, value: str | None) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidOptions(f"{name}={shown(value)}: needs a text")
    if value is not None and storable(value, len(value)) != value:
        raise InvalidOptions(f"{name}={shown(value)}: holds a character that no store keeps, so no job has it")
    return value


def _state(state: State | str) -> State:
    try:
        return State(state)
    except ValueError:
        raise InvalidOptions(f"there is no state {state!r}; the states are {', '.join(State)}") from None


def _moment(name: str, value: datetime | None) -> float | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidOptions(f"{name}={shown(value)}: needs a datetime with a time zone")
    return value.timestamp()
