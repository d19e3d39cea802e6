"""Which jobs: ids, filters and pages as users give them, checked in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from holdfast.core.errors import InvalidArguments, InvalidOptions
from holdfast.core.ids import parse_job_id
from holdfast.core.job import JobId
from holdfast.core.names import check_name
from holdfast.core.outcome import storable
from holdfast.core.shown import shown
from holdfast.core.state import State
from holdfast.stores.base import JobFilter, JobPage, Store

MOST_LISTED: Final = 1000
_LOOKS: Final = 40
_REASON_LIMIT: Final = 1000


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
