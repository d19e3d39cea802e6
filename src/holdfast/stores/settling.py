"""How settlements are found again on record, when the answer to the first try was lost; the same in every store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from holdfast.core.cause import Cause
from holdfast.core.settlement import Bury, Cancel, Crashed, HandBack, Park, Retry, Settlement, Snooze, Succeed, Verdict

SUCCEEDED = "succeeded"


def counting(settlements: Sequence[Settlement], verdicts: Sequence[Verdict]) -> set[int]:
    """The runs (tokens) whose marks count: those that are applied, and successes that are on record already. A run
    that finished in its own transaction is on record before it can say anything; to close a breaker twice is harmless,
    to count a failure twice is not."""
    return {
        each.token
        for each, verdict in zip(settlements, verdicts, strict=True)
        if verdict is Verdict.APPLIED or (verdict is Verdict.ALREADY and isinstance(each, Succeed))
    }


def causes(settlement: Settlement) -> tuple[str, ...]:
    """The words under which a settlement is on record; another end of the same run is not it."""
    match settlement:
        case Succeed():
            return (SUCCEEDED,)
        case Retry():
            return (Cause.RETRY,)
        case Snooze():
            return (Cause.SNOOZE,)
        case HandBack(cause=cause):
            return (cause,)
        case Crashed():
            return (Cause.WORKER_LOST, Cause.REPLAY)
        case Park():
            return (Cause.HANDED_BACK,)
        case Bury():
            return (Cause.DEAD, Cause.REPLAY)
        case Cancel():
            return (Cause.CANCELLED,)
        case _:
            assert_never(settlement)
