"""When a queue stops and starts accepting jobs: watermarks and hysteresis. Who waits is not decided here."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown

MOST_JOBS: Final = 1_000_000_000
LONGEST_AGE_S: Final = 1_000_000_000
SOONEST_RETRY_S = 1.0
LATEST_RETRY_S = 60.0
_MEMORY_S, _APART_S, _SHORTEST_S = 30.0, 0.5, 1.0
_RETRY_UNKNOWN_S = 5.0  # nothing has been measured yet: neither hammer nor give up


@dataclass(frozen=True, slots=True)
class Watermarks:
    """A queue closes at `high` jobs that are ready or parked, and opens again once it has drained to `low`."""

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


@dataclass(frozen=True, slots=True)
class AgeMarks:
    """Beside its depth: a queue closes when the oldest of its ready and parked jobs has waited `high_s`, and opens
    again at `low_s`."""

    high_s: float
    low_s: float

    def __post_init__(self) -> None:
        for name, value in (("high_age_s", self.high_s), ("low_age_s", self.low_s)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= LONGEST_AGE_S:
                raise InvalidOptions(
                    f"watermarks: {name}={shown(value)} must be a number of seconds, at most {LONGEST_AGE_S:,}"
                )
        if not 0 <= self.low_s < self.high_s:
            raise InvalidOptions(
                f"watermarks: low_age_s={self.low_s:g} and high_age_s={self.high_s:g} need 0 <= low < high, "
                "so that the queue opens again when its oldest job is younger than the one it closed for"
            )


def gate(
    closed: bool, depth: int, marks: Watermarks, *, age_s: float | None = None, ages: AgeMarks | None = None
) -> bool:
    """Whether the queue is closed now: from a high mark on yes, once all are down to their low ones no, between them as
    before. `age_s`: how long the oldest of its ready and parked jobs has waited, None: there is none."""
    age_s = age_s or 0.0
    if depth >= marks.high or (ages is not None and age_s >= ages.high_s):
        return True
    if depth <= marks.low and (ages is None or age_s <= ages.low_s):
        return False
    return closed


class DrainWatch:
    """How quickly a closed queue drains, from the depths that were seen while it was closed.

    A few points of the last half minute are kept, however often it is looked; over less than a second nothing is said.
    """

    __slots__ = ("_last", "_points")

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()
        self._last: tuple[float, int] | None = None

    def saw(self, depth: int, at_s: float) -> None:
        """The depth at a moment of a clock that never goes back."""
        points, self._last = self._points, (at_s, depth)
        while points and at_s - points[0][0] > _MEMORY_S:
            points.popleft()
        if not points or at_s - points[-1][0] >= _APART_S:
            points.append(self._last)

    @property
    def per_s(self) -> float | None:
        """Jobs per second by which it became less, negative where it became more; None: not known yet."""
        if self._last is None:
            return None
        (began_s, before), (ended_s, after) = self._points[0], self._last
        return (before - after) / (ended_s - began_s) if ended_s - began_s >= _SHORTEST_S else None


def retry_after(depth: int, low: int, drain_per_s: float | None) -> float:
    """Seconds until the queue should have drained to `low`, from 1 to 60; `None`: the rate is not known."""
    if drain_per_s is None:
        return _RETRY_UNKNOWN_S
    if not drain_per_s > 0:  # also when it is NaN
        return LATEST_RETRY_S
    return min(LATEST_RETRY_S, max(SOONEST_RETRY_S, (depth - low) / drain_per_s))
