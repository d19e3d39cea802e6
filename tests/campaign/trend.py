"""Whether a figure that was sampled over time grows and does not stop: the rule by which a soak fails.

The first quarter is warming up. The rest is cut into three windows, of which the medians count: it grows if the second
is above the first and the third above the second, each by more than half of what is tolerated; if the line through all
points (Theil and Sen's, which no outlier bends) rises by more than that as well; and if chance alone would hardly ever
order the points so (Mann and Kendall's test). So a single step, as a table makes that has found its size, is no growth;
noise and spikes are none; and what only goes up and down is none.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

_WINDOWS = 3
_FEWEST = 12
#: Slopes between so many points at most: all pairs of an hour's samples would take as long as the soak.
_POINTS = 120
#: In deviations of what chance does.
_SURPRISE = 3.5


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a figure may gain over a whole soak: so much, or this share of where it began, whichever is more."""

    absolute: float
    share: float = 0.1


@dataclass(frozen=True, slots=True)
class Trend:
    """What came of a figure."""

    name: str
    medians: tuple[float, ...]
    """Of the three windows; none if there were too few samples."""
    rise: float
    """Of the line through all points, over the time that counts."""
    tolerated: float
    grows: bool

    def __str__(self) -> str:
        shown = " → ".join(f"{median:,.4g}" for median in self.medians) or "too few samples"
        return f"{self.name}: {shown} (line {self.rise:+,.3g}, tolerated {self.tolerated:,.3g})"


def trend(name: str, values: Sequence[float], tolerance: Tolerance) -> Trend:
    """Judge samples that were taken at even distances."""
    settled = values[len(values) // 4 :]
    if len(settled) < _FEWEST:
        return Trend(name, (), 0.0, tolerance.absolute, grows=False)
    size = len(settled) / _WINDOWS
    windows = [settled[round(n * size) : round((n + 1) * size)] for n in range(_WINDOWS)]
    first, second, third = (statistics.median(window) for window in windows)
    tolerated = max(tolerance.absolute, tolerance.share * first)
    slope, surprise = _line(settled)
    rise = slope * (len(settled) - 1)
    grows = min(second - first, third - second) > tolerated / 2 and rise > tolerated and surprise > _SURPRISE
    return Trend(name, (first, second, third), rise, tolerated, grows)


def _line(values: Sequence[float]) -> tuple[float, float]:
    """The slope, and by how many deviations more pairs rise than fall."""
    step = max(1, len(values) // _POINTS)
    points = list(enumerate(values))[::step]
    slopes = [(later - earlier) / (b - a) for (a, earlier), (b, later) in combinations(points, 2)]
    more = sum(slope > 0 for slope in slopes) - sum(slope < 0 for slope in slopes)
    count = len(points)
    return statistics.median(slopes), more / math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
