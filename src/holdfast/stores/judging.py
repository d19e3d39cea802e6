"""Which jobs of a batch are refused, and why: keys first, then full queues; the same rule in every store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.job import JobId, NewJob
from holdfast.stores.base import Conflict, Existing, Full, InsertResult


class Holder(NamedTuple):
    """Who has an idempotency key."""

    job_id: JobId
    fingerprint: bytes


def judge(
    jobs: Sequence[NewJob],
    *,
    shut: Mapping[str, Full],
    holder_of: Callable[[str, str], Holder | None],
    exists: Callable[[JobId], bool],
) -> dict[int, InsertResult]:
    """The refused by their index; decides and writes nothing. The first of a batch to name a key has it.

    `holder_of` is asked with tenant and key, `exists` with a job's id: a repeated call must hear of its job, whoever
    has the key and however full the queue is by now.
    """
    refused: dict[int, InsertResult] = {}
    if not shut and all(job.key is None for job in jobs):
        return refused  # the ordinary batch
    taken: dict[tuple[str, str], Holder] = {}
    for index, job in enumerate(jobs):
        if job.key is not None:
            scope = (job.tenant, job.key.key)
            holder = taken.get(scope) or holder_of(*scope)
            if holder is not None:
                if holder.job_id != job.id and not exists(job.id):
                    same = holder.fingerprint == job.key.fingerprint
                    refused[index] = Existing(holder.job_id) if same else Conflict(holder.job_id)
                continue
        if job.queue in shut and not exists(job.id):
            refused[index] = shut[job.queue]
        elif job.key is not None:
            taken[scope] = Holder(job.id, job.key.fingerprint)
    return refused
