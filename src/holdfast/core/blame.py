"""What the end of one run says about its task's circuit breaker: the other side works, it does not, or nothing."""

from __future__ import annotations

from holdfast.core.error_classes import ErrorClasses
from holdfast.core.errors import HardTimeout
from holdfast.core.exception_names import listed
from holdfast.core.limit_options import Breaker
from holdfast.core.outcome import Failed, Outcome, Succeeded, TimedOut
from holdfast.core.stood_for import names_of


def failed(outcome: Outcome, breaker: Breaker, classes: ErrorClasses) -> bool | None:
    """Whether the breaker has failed in this run; None: the run says nothing about it, as one with a bug does not."""
    match outcome:
        case Succeeded():
            return False
        case Failed(exception):
            return _counts(exception, breaker, classes) or None
        case TimedOut():
            return _counts(HardTimeout(), breaker, classes) or None
        case _:
            return None


def _counts(exception: BaseException, breaker: Breaker, classes: ErrorClasses) -> bool:
    if breaker.names is not None:
        return listed(names_of(exception), breaker.names)
    row = classes.find(exception).row
    return row is not None and row.breaker
