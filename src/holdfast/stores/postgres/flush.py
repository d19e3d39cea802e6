"""A flush of settlements by one statement, for jobs that nobody waits for; `settle` has the longer way for others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

from holdfast.core.breaker import BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.error_words import words_of
from holdfast.core.job import ErrorInfo, JobId, WorkerId
from holdfast.core.loss import MAX_CRASHES
from holdfast.core.settlement import (
    Bury,
    Cancel,
    Crashed,
    HandBack,
    Park,
    Retry,
    Settlement,
    Snooze,
    Succeed,
    Verdict,
)
from holdfast.core.state import State
from holdfast.stores.base import Hint
from holdfast.stores.postgres.breakers import lock_breakers, write_marks
from holdfast.stores.postgres.settle import ATTEMPTS_KEPT, settle_jobs
from holdfast.stores.postgres.transaction import Tx
from holdfast.stores.settling import counting

if TYPE_CHECKING:
    from asyncpg import Record

_HINTS = {State.READY: Hint.READY, State.SCHEDULED: Hint.TIMER, State.PARKED: Hint.NOTHING}


class Flushed(NamedTuple):
    """What the statement did."""

    tokens: set[int]
    """Of the runs that it settled; what was left has not been touched."""
    waited: bool = False
    """Somebody waits at a gate where a slot was freed."""
    hints: Hint = Hint.NOTHING
    returned: bool = False
    """Jobs came back to their old places."""


async def flush(
    call: Callable[..., Awaitable[list[Record]]],
    worker: WorkerId,
    settlements: Sequence[Settlement],
    breakers: Sequence[str] = (),
    *,
    attached: bool = False,
) -> Flushed:
    """Settle what can be settled at once; nothing of it unless all of these breakers are closed.

    `attached`: of most of them we expect that something hangs on them.
    """
    tokens = {each.token for each in settlements}
    if len(tokens) < len(settlements):  # a run that is settled twice: the first one counts, as the longer way knows
        return Flushed(set())
    successes = [(each.job_id, each.token, each.result) for each in settlements if type(each) is Succeed]
    if len(successes) == len(settlements):
        rows = await call("settle_jobs.successes", worker, *zip(*successes, strict=True), breakers, attached)
        return _flushed(rows, Hint.ENDED)
    columns = map(_given, zip(*map(_outcome, settlements), strict=True))
    rows = await call("settle_jobs.outcomes", worker, *columns, MAX_CRASHES, ATTEMPTS_KEPT, breakers)
    went = {State(row[1]) for row in rows if row[1] is not None}
    hints = Hint.NOTHING
    for state in went:
        hints |= _HINTS.get(state, Hint.ENDED)
    return _flushed(rows, hints, returned=State.READY in went)


async def flush_marked(
    tx: Tx, worker: WorkerId, settlements: Sequence[Settlement], marks: Sequence[BreakerMark]
) -> tuple[list[Verdict], bool]:
    """The same together with what runs say about their breakers, and with the longer way for whatever needs it; whether
    somebody waits where a slot was freed."""
    locked = await lock_breakers(tx, [mark.breaker.name for mark in marks])
    flushed = await flush(tx.fetch, worker, settlements)
    tx.hints |= flushed.hints
    tx.returned = tx.returned or flushed.returned
    left = [each for each in settlements if each.token not in flushed.tokens]
    found = iter(await settle_jobs(tx, worker, left) if left else ())
    verdicts = [Verdict.APPLIED if each.token in flushed.tokens else next(found) for each in settlements]
    heard = counting(settlements, verdicts)
    await write_marks(tx, locked, [mark for mark in marks if mark.token in heard])
    return verdicts, flushed.waited


def _flushed(rows: Sequence[Record], hints: Hint, *, returned: bool = False) -> Flushed:
    tokens = {row[0] for row in rows}
    waited = None in tokens  # in place of a token: somebody waits where a slot was freed
    tokens.discard(None)
    return Flushed(tokens, waited, hints, returned)


class _Outcome(NamedTuple):
    """A settlement as the function `settle_runs` is told of it, in the order of its arguments."""

    job_id: JobId
    token: int
    state: State
    cause: Cause | None = None
    result: bytes | None = None
    delay_s: float | None = None
    reason: str | None = None
    key: str | None = None
    crashed: bool | None = None
    error_type: str | None = None
    error_message: str | None = None
    traceback: str | None = None
    fingerprint: str | None = None
    words: str | None = None


def _outcome(settlement: Settlement) -> _Outcome:
    run = (settlement.job_id, settlement.token)
    match settlement:
        case Succeed(result=result):
            return _Outcome(*run, State.SUCCEEDED, result=result)
        case Bury(reason=reason, error=error):
            buried = _Outcome(*run, State.DEAD, Cause.DEAD, reason=reason, **_texts(error))
            return buried._replace(fingerprint=error.fingerprint, words=" ".join(words_of(error.message)))
        case Cancel(reason=reason):
            return _Outcome(*run, State.CANCELLED, Cause.CANCELLED, reason=reason)
        case Retry(delay_s=delay_s, error=error):
            return _Outcome(*run, State.SCHEDULED, Cause.RETRY, delay_s=delay_s, **_texts(error))
        case Snooze(delay_s=delay_s, error=error):
            return _Outcome(*run, State.SCHEDULED, Cause.SNOOZE, delay_s=delay_s, **_texts(error))
        case HandBack(why=why, cause=cause):
            return _Outcome(*run, State.READY, cause, error_message=why)
        case Crashed(why=why):
            return _Outcome(*run, State.READY, Cause.WORKER_LOST, crashed=True, error_message=why)
        case Park(reason=reason, key=key):
            text = f"parked: {reason}"
            return _Outcome(*run, State.PARKED, Cause.HANDED_BACK, reason=reason, key=key, error_message=text)
        case _:
            assert_never(settlement)


def _texts(error: ErrorInfo | None) -> dict[str, Any]:
    if error is None:
        return {}
    return {"error_type": error.type or None, "error_message": error.message, "traceback": error.traceback or None}


def _given(values: tuple[object, ...]) -> Sequence[object]:
    """Nothing where nobody has any: what is missing at the end of an array counts as NULL, and costs nothing."""
    return [] if values.count(None) == len(values) else values
