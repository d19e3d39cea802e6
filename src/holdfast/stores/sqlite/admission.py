"""Jobs before their gates: who may run, and where those go who may not; in the claim, and when waiters are looked
after."""

from __future__ import annotations

from typing import assert_never
from uuid import UUID

from holdfast.core.gates import Admission, Passed, Place, Skipped, Waits
from holdfast.core.state import State
from holdfast.stores.sqlite.end import Ending, end_jobs
from holdfast.stores.sqlite.gates import SQL, free_slots, make_due, park
from holdfast.stores.sqlite.lines import Standing, tag_in_line
from holdfast.stores.sqlite.transaction import Tx
from holdfast.stores.sqlite.waiting import cancel_job


def hold_back(tx: Tx, job: Standing, admission: Admission) -> None:
    """Where somebody goes who may not run now; uncharged, and without the slots that it had."""
    match admission:
        case Waits(at=at, until=until, replaces=replaces):
            if job.candidate.has:
                free_slots(tx, [job.job_id])
            tenant = job.candidate.tenant
            line = tag_in_line(tx, at, job.lane, tag=job.tag, tenant=tenant)
            if job.parked:
                tx.db.execute(SQL["park_elsewhere"], (*at, job.seq, *job.lane[1:], tenant, line, job.job_id))
            else:
                park(tx, (*at, job.tag, job.seq, *job.again, job.priority, tenant, line), job.queue)
            if until is not None:
                make_due(tx, at, until)
            if replaces:
                _replace(tx, job.job_id, at)
        case Skipped(at=at):
            if job.parked:
                unpark(tx, job)
            reason = f"skipped: limit {at.key} is full"
            end_jobs(tx, [Ending(job.job_id, State.CANCELLED, job.attempt, reason=reason)])
        case Passed():
            raise AssertionError("whoever passed is not held back")
        case _:
            assert_never(admission)


def unpark(tx: Tx, job: Standing) -> None:
    """It leaves `parked` for somewhere else."""
    tx.db.execute(SQL["unpark"], (job.job_id,))
    tx.left_parked(job.queue, 1)


def _replace(tx: Tx, job_id: bytes, at: Place) -> None:
    """Only the newest of a limit is to run: those who do are asked to stop, those who would are cancelled. One that is
    older than another there, as after a retry, is replaced by that."""
    others = {"kind": at.barrier, "key": at.key, "job": job_id}
    newer = tx.db.execute(SQL["newer_at"], others).fetchone()
    if newer is not None:
        cancel_job(tx, job_id, reason=_replaced_by(newer[0]))
        return
    for (other,) in tx.db.execute(SQL["others_at"], others).fetchall():
        cancel_job(tx, other, reason=_replaced_by(job_id))


def _replaced_by(job_id: bytes) -> str:
    return f"replaced by {UUID(bytes=job_id)}"
