"""Reports on jobs: one, many, and lists by filter with keyset paging; never used for decisions of the engine."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from holdfast.core.error_words import words_of
from holdfast.core.job import AttemptInfo, ErrorInfo, JobId, JobInfo, Progress
from holdfast.core.state import State
from holdfast.stores.base import Ended, JobFilter, JobPage
from holdfast.stores.job_reports import call_of, error_of, metadata_of, value_of
from holdfast.stores.sqlite.statements import load

SQL = load("inspect")

#: The only conditions there are; which of them apply is chosen, their values are bound.
_CONDITIONS = {
    "queue": "AND j.queue = :queue",
    "task": "AND j.task = :task",
    "tenant": "AND j.tenant = :tenant",
    "tag": "AND EXISTS (SELECT 1 FROM json_each(j.tags) WHERE value = :tag)",
    "created_after": "AND j.created_at >= :created_after",
    "created_before": "AND j.created_at < :created_before",
    "error_type": "AND j.id IN (SELECT job_id FROM dead WHERE error_type = :error_type)",
    "fingerprint": "AND j.id IN (SELECT job_id FROM dead WHERE fingerprint = :fingerprint)",
    "text": "AND j.id IN (SELECT job_id FROM dead WHERE NOT EXISTS ("
    "SELECT 1 FROM json_each(:text) WHERE NOT instr(words, ' ' || value || ' ')))",
    "reason": "AND j.id IN (SELECT job_id FROM dead WHERE reason = :reason UNION ALL "
    "SELECT job_id FROM parked WHERE reason = :reason UNION ALL SELECT job_id FROM done WHERE reason = :reason)",
    "before": "AND j.id < :before",
}


def job_infos(db: sqlite3.Connection, job_ids: Sequence[JobId]) -> list[JobInfo | None]:
    """Each job as one statement sees it; None where there is none."""
    return [_info(db, job_id.bytes) for job_id in job_ids]


def list_jobs(db: sqlite3.Connection, where: JobFilter, *, limit: int, before: JobId | None) -> JobPage:
    """Newest first. A job that moved between finding and reading is told as it is now."""
    statement, values = _finding(where, before=before)
    found = [row[0] for row in db.execute(statement, values | {"limit": limit})]
    infos = (_info(db, job_id) for job_id in found)
    more = UUID(bytes=found[-1]) if len(found) == limit else None
    return JobPage((info for info in infos if info is not None), cursor=more)


def count_jobs(db: sqlite3.Connection, where: JobFilter, *, most: int | None) -> int:
    """How many match."""
    statement, values = _finding(where, before=None)
    limit = -1 if most is None else most
    [count] = db.execute(f"SELECT count(*) FROM ({statement})", values | {"limit": limit}).fetchone()  # noqa: S608
    return int(count)


def endings(db: sqlite3.Connection, job_ids: Sequence[JobId]) -> dict[JobId, Ended | None]:
    """Those that have ended, None for those that are not there, nothing for those that live."""
    found: dict[JobId, Ended | None] = {}
    for job_id in job_ids:
        row = db.execute(SQL["ending"], (job_id.bytes,)).fetchone()
        if row is None:
            found[job_id] = None
        elif row[1] is not None:
            found[job_id] = Ended(job_id, State(row[1]), *row[2:])
    return found


def _finding(where: JobFilter, *, before: JobId | None) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {name: getattr(where, name) for name in _CONDITIONS if name != "before"}
    values["before"] = before.bytes if before else None
    values["text"] = None if where.text is None else json.dumps(words_of(where.text), ensure_ascii=False)
    filters = " ".join(text for name, text in _CONDITIONS.items() if values[name] is not None)
    return SQL[f"find_{where.state or 'any'}"].replace("{filters}", filters), values


def _info(db: sqlite3.Connection, job_id: bytes) -> JobInfo | None:
    row = db.execute(SQL["info"], (job_id,)).fetchone()
    if row is None or row[11] is None:
        return None
    (id_, task, queue, priority, tenant, payload, max_attempts, tags, metadata, expires_at, created_at, state,
     attempt, due_at, started_at, ended_at, worker, result, reason, error_type, error_message, cancel_requested,
     done, total, stage, at, waits_at) = row  # fmt: skip
    attempts = tuple(_attempt(each) for each in db.execute(SQL["attempts"], (job_id,)))
    args, kwargs = call_of(payload)
    return JobInfo(
        id=UUID(bytes=id_),
        task=task,
        queue=queue,
        priority=priority,
        tenant=tenant,
        state=State(state),
        attempt=attempt,
        max_attempts=max_attempts,
        created_at=_time(created_at),
        run_at=_maybe_time(due_at),
        started_at=_maybe_time(started_at),
        ended_at=_maybe_time(ended_at),
        expires_at=_maybe_time(expires_at),
        worker=None if worker is None else str(UUID(bytes=worker)),
        progress=None if at is None else Progress(done, total, _time(at)),
        stage=stage,
        result=value_of(result),
        error=error_of(error_type, error_message, attempts),
        attempts=attempts,
        tags=tuple(value_of(tags) or ()),
        metadata=metadata_of(metadata),
        reason=reason,
        waits_at=waits_at,
        cancel_requested=bool(cancel_requested),
        args=args,
        kwargs=kwargs,
    )


def _attempt(row: tuple[Any, ...]) -> AttemptInfo:
    token, number, cause, error_type, message, trace, worker, started_at, ended_at = row
    return AttemptInfo(
        number=number,
        token=token,
        cause=cause,
        error=None if message is None else ErrorInfo(error_type or "", message, trace or ""),
        worker=None if worker is None else str(UUID(bytes=worker)),
        started_at=_maybe_time(started_at),
        ended_at=_time(ended_at),
    )


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _maybe_time(at: float | None) -> datetime | None:
    return None if at is None else _time(at)
