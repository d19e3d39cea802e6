"""The one routine of every ending, used by settle, reap, cancel, expire and claim alike (P2; joins; limits)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.core.error_words import words_of
from holdfast.core.job import ErrorInfo
from holdfast.core.options import DEFAULT_PRIORITY, DEFAULT_QUEUE
from holdfast.core.state import State
from holdfast.stores.base import Hint
from holdfast.stores.sqlite.gates import forget_slots, free_slots
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.tails import queue_up
from holdfast.stores.sqlite.transaction import Tx

SQL = load("end_jobs")

_MISSING = ErrorInfo("holdfast.BodyMissing", "the job's body is not in the store")
#: The lane of a job of which nobody knows where it was.
_SOMEWHERE = (DEFAULT_QUEUE, DEFAULT_PRIORITY)


class Ending(NamedTuple):
    """One job's end. Whoever makes it has removed the job's live row in the same transaction."""

    job_id: bytes
    state: State
    attempt: int
    token: int | None = None
    worker: bytes | None = None
    started_at: float | None = None
    result: bytes | None = None
    reason: str | None = None
    error: ErrorInfo | None = None


def end_jobs(tx: Tx, endings: Sequence[Ending]) -> None:
    """Write the endings and let go of all that hangs on them."""
    for ending in endings:
        if ending.state is State.DEAD:
            error = ending.error or ErrorInfo("", "")
            words = f" {' '.join(words_of(error.message))} "
            row = (*_run_of(ending), tx.now, ending.reason, error.type, error.message, error.fingerprint, words)
            tx.db.execute(SQL["dead"], row)
        else:
            job_id, *run = _run_of(ending)
            tx.db.execute(SQL["done"], (job_id, ending.state, *run, tx.now, ending.result, ending.reason))
    let_go(tx, [ending.job_id for ending in endings])


def bury_headless(tx: Tx, job_id: bytes, attempt: int, lane: tuple[str, int] = _SOMEWHERE) -> None:
    """A missing body is an ending, not silence. Whoever comes here has removed the job's live row."""
    tx.db.execute(SQL["stub_body"], (job_id, *lane, tx.now))
    end_jobs(tx, [Ending(job_id, State.DEAD, attempt, reason="body_missing", error=_MISSING)])


def _run_of(ending: Ending) -> tuple[object, ...]:
    return ending.job_id, ending.token, ending.attempt, ending.worker, ending.started_at


def let_go(tx: Tx, job_ids: Sequence[bytes]) -> None:
    """Deadlines, slots and joins of jobs that have ended; the fast path of settle comes here directly."""
    tx.hints |= Hint.ENDED
    expiries, slots, members, waiters = tx.db.execute(SQL["attached"]).fetchone()
    if expiries:
        tx.db.executemany(SQL["drop_expiry"], [(job_id,) for job_id in job_ids])
    if slots:
        (free_slots if waiters else forget_slots)(tx, job_ids)
    if members:
        _arrive(tx, job_ids)


def _arrive(tx: Tx, job_ids: Sequence[bytes]) -> None:
    """Arrivals at joins, counted per join; what reached zero is released."""
    arrivals: Counter[bytes] = Counter()
    for job_id in job_ids:
        for (join_id,) in tx.db.execute(SQL["joins"], (job_id,)).fetchall():
            arrivals[join_id] += tx.db.execute(SQL["arrive"], (join_id, job_id)).rowcount
    for join_id, count in sorted(arrivals.items()):
        row = tx.db.execute(SQL["subtract"], (count, join_id)).fetchone() if count else None
        if row is not None and row[0] <= 0:
            release(tx, join_id)
    for job_id in job_ids:  # one that ended while it was itself blocked waits for nobody any more
        _forget_join(tx, job_id)


def release(tx: Tx, join_id: bytes) -> None:
    """`blocked` → `ready`: all that the job waited for has ended; → `scheduled` when it has a time, too."""
    (due_at,) = tx.db.execute(SQL["unblock"], (join_id,)).fetchone()
    _forget_join(tx, join_id)
    if due_at is not None and due_at > tx.now:
        tx.db.execute(SQL["timer"], (due_at, join_id))
        tx.hints |= Hint.TIMER
        return
    lane = tx.db.execute(SQL["lane"], (join_id,)).fetchone()
    if lane is None:
        bury_headless(tx, join_id, 0)
        return
    queue_up(tx, [(*lane, join_id, 0, 0, 0)])


def _forget_join(tx: Tx, join_id: bytes) -> None:
    if tx.db.execute(SQL["forget_members"], (join_id,)).rowcount:
        tx.db.execute(SQL["forget_arrivals"], (join_id,))
