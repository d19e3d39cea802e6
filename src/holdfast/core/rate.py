"""How often something may happen: a token bucket in one number, and the text that says it (`"100/m"`). Pure arithmetic.

A bucket is kept as the moment at which it would be full again (`full_at`); before the first run it is full. So a store
keeps one time per key, nothing has to be refilled, and another rate takes effect on the next look.
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown

_UNITS_S: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_TEXT: Final = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*/\s*([0-9]{0,6})\s*([smhd])\s*")
_MOST: Final = 1_000_000.0
_MOST_UNITS: Final = 999_999
_LONGEST_S: Final = 10 * 365 * 86_400.0
_LEAST_GAP_S: Final = 1e-9
_TINY_S: Final = 1e-6  # times come back from a store rounded to microseconds


class Pace(NamedTuple):
    """`count` runs per `per_s` seconds; after a rest up to `burst` of them at once."""

    count: float  # type: ignore[assignment]  # of a tuple nobody asks how often it holds something
    per_s: float
    burst: int

    @property
    def makes_sense(self) -> bool:
        """Whether anybody could have given it: whatever is read from where people write by hand may be anything."""
        numbers = (self.count, self.per_s)
        if not all(0 < number < math.inf for number in numbers) or not 1 <= self.burst <= _MOST:
            return False
        return self.count <= _MOST and self.gap_s >= _LEAST_GAP_S and self.burst * self.gap_s <= _LONGEST_S

    @property
    def gap_s(self) -> float:
        """Time in which one run is earned."""
        return self.per_s / self.count

    def __str__(self) -> str:
        """As it could be given, to the last digit: a change that could not be seen in it would not be on record."""
        count = f"{self.count:.6f}".rstrip("0").rstrip(".")
        for unit, seconds in _UNITS_S.items():
            if self.per_s == seconds:
                return f"{count}/{unit}"
        for unit in "sdhm":
            many = self.per_s / _UNITS_S[unit]
            if many == int(many) <= _MOST_UNITS:
                return f"{count}/{many:.0f}{unit}"
        return f"{count}/{self.per_s:g}s"


def parse_pace(text: object, *, burst: int | None = None) -> Pace:
    """A pace from `"100/m"`, `"5/s"` or `"10/30s"`; the burst is what one unit allows, unless it is given."""
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidOptions(
            f"rate={shown(text)}: needs a text as '100/m': runs per s, m, h or d, or per several, as '10/30s'"
        )
    count, many, unit = float(found[1]), float(found[2] or 1), found[3]
    if not 0 < count <= _MOST or many < 1:
        raise InvalidOptions(f"rate={shown(text)}: needs more than 0 and at most {_MOST:,.0f} runs per unit of time")
    if burst is None:
        burst = max(1, math.floor(count))
    elif isinstance(burst, bool) or not isinstance(burst, int) or not 1 <= burst <= _MOST:
        raise InvalidOptions(f"burst={shown(burst)}: needs a whole number of runs from 1 to {_MOST:,.0f}")
    pace = Pace(count, many * _UNITS_S[unit], burst)
    if pace.burst * pace.gap_s > _LONGEST_S:
        raise InvalidOptions(
            f"rate={shown(text)}: {burst:,} run{'s' * (burst > 1)} would be earned again after more than ten years; to "
            "start none at all, pause the task"
        )
    return pace


def tokens(full_at: float | None, now: float, pace: Pace) -> int:
    """Runs that may begin now."""
    missing_s = 0.0 if full_at is None else max(0.0, full_at - now)
    return min(pace.burst, max(0, math.floor(pace.burst - (missing_s - _TINY_S) / pace.gap_s)))


def spend(full_at: float | None, now: float, pace: Pace, runs: int = 1) -> float:
    """When the bucket will be full again after these runs, which there were tokens for."""
    return (now if full_at is None else max(full_at, now)) + runs * pace.gap_s


def no_emptier(full_at: float, now: float, pace: Pace) -> float:
    """The same bucket, but no emptier than empty: what a slower pace has left behind does not hold up a quicker one."""
    empty = now + pace.burst * pace.gap_s
    return empty if full_at > empty + _TINY_S else full_at


def next_token_at(full_at: float | None, now: float, pace: Pace) -> float:
    """When the next run may begin; `now` where one may."""
    return tokens_at(full_at, now, pace, 1)


def tokens_at(full_at: float | None, now: float, pace: Pace, runs: int) -> float:
    """When so many runs may begin at once, which are no more than the burst; `now` where they may."""
    return now if full_at is None else max(now, full_at - (pace.burst - runs) * pace.gap_s)
