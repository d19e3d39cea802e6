"""When a queue stops and starts accepting jobs: watermarks and hysteresis. Who waits is not decided here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from holdfast.core.errors import InvalidOptions

SOONEST_RETRY_S = 1.0
LATEST_RETRY_S = 60.0
_RETRY_UNKNOWN_S = 5.0  # nothing has been measured yet: neither hammer nor give up


@dataclass(frozen=True, slots=True)
class Watermarks:
    """A queue closes at `high` ready jobs and opens again once it has drained to `low`."""

    high: int = 10_000
    low: int = 2_000

    def __post_init__(self) -> None:
        for name, value in (("high", self.high), ("low", self.low)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidOptions(f"watermarks: {name}={value!r:.80} must be a whole number of jobs")
        if not 0 <= self.low < self.high:
            raise InvalidOptions(
                f"watermarks: low={self.low} and high={self.high} need 0 <= low < high, "
                "so that the queue opens again at a lower depth than it closed at"
            )


@dataclass(frozen=True, slots=True)
class AgeMarks:
    """Beside its depth: a queue closes when its oldest ready job has waited `high_s`, and opens again at `low_s`."""

    high_s: float
    low_s: float

    def __post_init__(self) -> None:
        for name, value in (("high_age_s", self.high_s), ("low_age_s", self.low_s)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise InvalidOptions(f"watermarks: {name}={value!r:.80} must be a number of seconds")
        if not 0 <= self.low_s < self.high_s:
            raise InvalidOptions(
                f"watermarks: low_age_s={self.low_s:g} and high_age_s={self.high_s:g} need 0 <= low < high, "
                "so that the queue opens again when its oldest job is younger than the one it closed for"
            )


def gate(
    closed: bool, depth: int, marks: Watermarks, *, age_s: float | None = None, ages: AgeMarks | None = None
) -> bool:
    """Whether the queue is closed now: from a high mark on yes, once all are down to their low ones no, between them as
    before. `age_s`: how long its oldest ready job has waited, None: there is none."""
    age_s = age_s or 0.0
    if depth >= marks.high or (ages is not None and age_s >= ages.high_s):
        return True
    if depth <= marks.low and (ages is None or age_s <= ages.low_s):
        return False
    return closed


def retry_after(depth: int, low: int, drain_per_s: float | None) -> float:
    """Seconds until the queue should have drained to `low`, from 1 to 60; `None`: the rate is not known."""
    if drain_per_s is None:
        return _RETRY_UNKNOWN_S
    if not drain_per_s > 0:  # also when it is NaN
        return LATEST_RETRY_S
    return min(LATEST_RETRY_S, max(SOONEST_RETRY_S, (depth - low) / drain_per_s))
