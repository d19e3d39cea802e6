"""How many of a queue's runs may be retries, in one process: what is above its share waits longer. Nothing is dropped.

Every run pays its share into the budget and every retry takes one out. A retry that finds it empty waits until the runs
that are to be expected, at the rate of about the last minute, have paid for it and for those before it. A few are free,
so that a queue in which little runs is not held up by its first failures.
"""

from __future__ import annotations

import math
from typing import Final

WINDOW_S: Final = 60.0
FREE: Final = 10
"""Retries that a queue may have in a window whatever else runs."""
LONGEST_S: Final = 600.0
"""A retry waits no longer than this because of a budget."""


class RetryBudget:
    """One queue's. Times are those of a clock that never goes back."""

    __slots__ = ("_as_of_s", "_balance", "_began_s", "_runs", "_share", "stretched")

    def __init__(self, share: float) -> None:
        self._share = share
        self._balance = float(FREE)
        self._runs = 0.0  # of the last window, older ones counting less and less
        self._began_s: float | None = None
        self._as_of_s = 0.0
        self.stretched = 0
        """Retries that wait longer since the budget was used up; 0 while it is not."""

    def ran(self, now_s: float) -> int:
        """A run has ended. How many retries had to wait longer, if that is over with this; else 0."""
        if self._began_s is None:
            self._began_s = self._as_of_s = now_s
        past_s, self._as_of_s = now_s - self._as_of_s, now_s
        self._runs = self._runs * math.exp(-past_s / WINDOW_S) + 1.0
        self._balance = min(float(FREE), self._balance + self._share + past_s * FREE / WINDOW_S)
        if not self.stretched or self._balance < FREE / 2:
            return 0
        over, self.stretched = self.stretched, 0
        return over

    def delay_s(self, delay_s: float) -> float:
        """How long a retry of the run that has just ended waits, which would wait so long by itself."""
        per_s = self._paid_per_s()
        self._balance = max(self._balance - 1.0, -LONGEST_S * per_s)
        earliest_s = -self._balance / per_s
        if earliest_s <= delay_s:
            return delay_s
        self.stretched += 1
        return earliest_s

    def _paid_per_s(self) -> float:
        """What comes in, in retries per second; as much of the window counts as has passed."""
        elapsed_s = self._as_of_s - (self._began_s or 0.0)
        counted_s = max(1.0, WINDOW_S * -math.expm1(-elapsed_s / WINDOW_S))
        return self._share * self._runs / counted_s + FREE / WINDOW_S
