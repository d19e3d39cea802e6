"""When a queue stops and starts accepting jobs: watermarks and hysteresis. Who waits is not decided here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown

MOST_JOBS: Final = 1_000_000_000
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
                raise InvalidOptions(f"watermarks: {name}={shown(value)} must be a whole number of jobs")
        if self.high > MOST_JOBS:
            raise InvalidOptions(f"watermarks: high={shown(self.high)} must not be above {MOST_JOBS:,}")
        if not 0 <= self.low < self.high:
            raise InvalidOptions(
                f"watermarks: low={shown(self.low)} and high={shown(self.high)} need 0 <= low < high, "
                "so that the queue opens again at a lower depth than it closed at"
            )


def gate(closed: bool, depth: int, marks: Watermarks) -> bool:
    """Whether the queue is closed now: from `high` on yes, down to `low` no, between them as before."""
    if depth >= marks.high:
        return True
    if depth <= marks.low:
        return False
    return closed


def retry_after(depth: int, low: int, drain_per_s: float | None) -> float:
    """Seconds until the queue should have drained to `low`, from 1 to 60; `None`: the rate is not known."""
    if drain_per_s is None:
        return _RETRY_UNKNOWN_S
    if not drain_per_s > 0:  # also when it is NaN
        return LATEST_RETRY_S
    return min(LATEST_RETRY_S, max(SOONEST_RETRY_S, (depth - low) / drain_per_s))
