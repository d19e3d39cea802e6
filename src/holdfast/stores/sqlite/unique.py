"""Unique keys: who has one, who takes it, and who goes for it. Who may is for `stores.judging` to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from holdfast.core.job import JobId, NewJob
from holdfast.core.state import State
from holdfast.core.unique import Rekeyed
from holdfast.core.unique_text import read_unique, rekeyed_text
from holdfast.stores.judging import Dead, Taking, UniqueHolder, judge_replay, pruned
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.transaction import Tx
from holdfast.stores.sqlite.waiting import cancel_job

SQL = load("unique")

_LOOKED_AT_ONCE = 20  # times the limit of a sweep: it only looks at most of them


def holder_of(tx: Tx, key: str) -> UniqueHolder | None:
    """None: nobody, or a job that is there no more, and has left no open window."""
    row = tx.db.execute(SQL["holder"], (key,)).fetchone()
    if row is None:
        return None
    job_id, state, created_at, first_at, expires_at, has_run = row
    if created_at is None and expires_at is not None and tx.now < expires_at:
        return pruned(UUID(bytes=job_id), first_at, expires_at)
    if created_at is None or state is None:
        return None
    return UniqueHolder(UUID(bytes=job_id), State(state), created_at, first_at, bool(has_run))


def brought_forward(job: NewJob, taking: Taking | None, now: float) -> NewJob:
    """A job that replaces others again and again is due some time all the same."""
    due_at = job.run_at if job.delay_s is None else now + job.delay_s
    if taking is None or taking.due_by is None or due_at is None or due_at <= taking.due_by:
        return job
    return job._replace(delay_s=None, run_at=taking.due_by)


def take(tx: Tx, jobs: Sequence[NewJob], taking: Mapping[JobId, Taking]) -> None:
    """The keys of new jobs; one that another of the same batch replaces has had its key for a moment."""
    for job in jobs:
        if job.unique is not None and job.id in taking:
            expires_at = None if job.unique.for_s is None else tx.now + job.unique.for_s
            tx.db.execute(SQL["take"], (job.unique.key, job.id.bytes, taking[job.id].first_at, expires_at))


def replace(tx: Tx, taking: Mapping[JobId, Taking]) -> None:
    """Cancel those whom new jobs replace; all of them have their places by now."""
    for job_id, taken in taking.items():
        if taken.replaces is not None:
            cancel_job(tx, taken.replaces.bytes, reason=f"replaced by {job_id}")


def note_cancelled(tx: Tx, job_ids: Sequence[bytes]) -> None:
    """Jobs that were cancelled go; windows of theirs that are open stay."""
    tx.db.executemany(SQL["note_cancelled"], [(key, job_id, tx.now) for key, job_id in _keys_of(tx, job_ids)])


def drop_of(tx: Tx, job_ids: Sequence[bytes]) -> None:
    """Jobs go by a person's word, and with them what they held."""
    tx.db.executemany(SQL["give_up"], _keys_of(tx, job_ids))


def _keys_of(tx: Tx, job_ids: Sequence[bytes]) -> list[tuple[str, bytes]]:
    """What they said of being unique is with their bodies: there is no index of keys by job."""
    found = ((job_id, tx.db.execute(SQL["said"], (job_id,)).fetchone()) for job_id in job_ids)
    claims = [(read_unique(row[0]), job_id) for job_id, row in found if row is not None]
    return [(claim.key, job_id) for claim, job_id in claims if claim is not None]


def take_again(tx: Tx, job_ids: Sequence[JobId]) -> dict[JobId, JobId]:
    """The keys of dead jobs that are to run again, for those that may; who else stays dead, because of whom."""
    found: list[Dead] = []
    for job_id in dict.fromkeys(job_ids):
        row = tx.db.execute(SQL["dead"], (job_id.bytes,)).fetchone()
        claim = None if row is None else read_unique(row[0])
        if claim is not None:
            found.append(Dead(job_id, claim, row[1]))
    judged = judge_replay(found, now=tx.now, unique_holder_of=lambda key: holder_of(tx, key))
    for key, job in judged.taking.items():
        tx.db.execute(SQL["take"], (key, job.job_id.bytes, tx.now, job.expires_at))
    return judged.in_the_way


def give_up(tx: Tx, job_id: JobId, rekeyed: Rekeyed) -> None:
    """The key of a dead job whose arguments are others now; it takes the other one when it is replayed."""
    row = tx.db.execute(SQL["dead"], (job_id.bytes,)).fetchone()
    text = None if row is None else rekeyed_text(row[0], rekeyed)
    if text is not None:
        tx.db.execute(SQL["claim_anew"], (text, job_id.bytes))
        tx.db.execute(SQL["give_up"], (rekeyed.before, job_id.bytes))


class Dropping:
    """Keys that nobody has any more go, a bounded number of them per sweep; remembers where it was."""

    def __init__(self) -> None:
        self._after = ""

    def drop(self, tx: Tx, *, limit: int) -> int:
        """Those whose window has passed, and those without one whose jobs were pruned."""
        dropped: int = tx.db.execute(SQL["drop_passed"], (tx.now, limit)).rowcount
        most = limit * _LOOKED_AT_ONCE
        rows = tx.db.execute(SQL["some"], (self._after, most)).fetchall()
        gone = [(key,) for key, pruned in rows if pruned]
        tx.db.executemany(SQL["drop"], gone)
        self._after = rows[-1][0] if len(rows) == most else ""
        return dropped + len(gone)
