"""How settlements are found again on record, when the answer to the first try was lost; the same in every store."""

from __future__ import annotations

from typing import assert_never

from holdfast.core.cause import Cause
from holdfast.core.settlement import Bury, Cancel, Crashed, HandBack, Park, Retry, Settlement, Snooze, Succeed

SUCCEEDED = "succeeded"


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
