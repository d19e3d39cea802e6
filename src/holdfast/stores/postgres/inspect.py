"""Reports on jobs by their ids; never used for decisions of the engine. Lists by filter are in `listing`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.core.job import AttemptInfo, ErrorInfo, JobId, JobInfo, Progress
from holdfast.core.state import State
from holdfast.stores.base import Ended
from holdfast.stores.job_reports import call_of, error_of, metadata_of, value_of
from holdfast.stores.postgres.transaction import Tx

if TYPE_CHECKING:
    from asyncpg import Record


async def job_infos(tx: Tx, job_ids: Sequence[JobId]) -> list[JobInfo | None]:
    """Each job as one statement sees it; None where there is none."""
    rows = {row["id"]: row for row in await tx.fetch("inspect.infos", job_ids)}
    attempts: defaultdict[JobId, list[AttemptInfo]] = defaultdict(list)
    for row in await tx.fetch("inspect.attempts", job_ids):
        attempts[row["job_id"]].append(_attempt(row))
    return [_info(rows.get(job_id), tuple(attempts[job_id])) for job_id in job_ids]


def endings(rows: Sequence[Record]) -> dict[JobId, Ended | None]:
    """Those that have ended, None for those that are not there, nothing for those that live."""
    found: dict[JobId, Ended | None] = {}
    for job_id, known, state, *ending in rows:
        if not known:
            found[job_id] = None
        elif state is not None:
            found[job_id] = Ended(job_id, State(state), *ending)
    return found


def _info(row: Record | None, attempts: tuple[AttemptInfo, ...]) -> JobInfo | None:
    if row is None or row["state"] is None:
        return None
    args, kwargs = call_of(row["payload"])
    return JobInfo(
        id=row["id"],
        task=row["task"],
        queue=row["queue"],
        priority=row["priority"],
        tenant=row["tenant"],
        state=State(row["state"]),
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        created_at=row["created_at"],
        run_at=row["due_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        expires_at=row["expires_at"],
        worker=None if row["worker"] is None else str(row["worker"]),
        progress=None if row["at"] is None else Progress(row["done"], row["total"], row["at"]),
        stage=row["stage"],
        result=value_of(row["result"]),
        error=error_of(row["error_type"], row["error_message"], attempts),
        attempts=attempts,
        tags=tuple(row["tags"] or ()),
        metadata=metadata_of(row["metadata"]),
        reason=row["reason"],
        waits_at=row.get("waits_at"),
        cancel_requested=row["cancel_requested"],
        args=args,
        kwargs=kwargs,
    )


def _attempt(row: Record) -> AttemptInfo:
    message = row["error_message"]
    return AttemptInfo(
        number=row["number"],
        token=row["token"],
        cause=row["cause"],
        error=None if message is None else ErrorInfo(row["error_type"] or "", message, row["traceback"] or ""),
        worker=None if row["worker"] is None else str(row["worker"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )
