"""How many of a queue's runs may be retries, in one process: what is above its share waits longer. Nothing is dropped.

Every run that begins pays its share into the budget, and every retry takes one out before it begins. One that finds too
little is put off to a moment at which, by the rate of about the last minute, enough should have come in for it and for
those before it; then it is looked at again. So a wrong forecast costs a look, and lets nothing through. A few are
free, so that a queue in which little runs is not held up by its first failures.
"""

from __future__ import annotations

import math
from typing import Final

WINDOW_S: Final = 60.0
FREE: Final = 10
"""Retries that a queue may have at once, and again over every window, whatever else runs."""
LONGEST_S: Final = 600.0
"""A retry that waits because of a budget is looked at again after so long at the latest."""

_SOONEST_S: Final = 0.05
_ENOUGH: Final = 1.0 - 1e-9  # sums of shares are not exact


class RetryBudget:
    """One queue's. Times are those of a clock that never goes back."""

    __slots__ = ("_as_of_s", "_balance", "_began_s", "_last_s", "_next_s", "_runs", "_unplanned", "share", "stretched")

    def __init__(self, share: float) -> None:
        self.share = share
        """It may be changed at any time: what has come in so far stays."""
        self._balance = float(FREE)
        self._unplanned = float(FREE)  # what of it no failed run has been promised yet; a part of the forecast
        self._runs = 0.0  # of the last window, older ones counting less and less
        self._began_s: float | None = None
        self._as_of_s = 0.0
        self._next_s = -math.inf  # when, by the forecast, nobody has been promised what comes in
        self._last_s = -math.inf  # the latest moment that was given to anybody
        self.stretched = 0
        """Times that a retry was made to wait longer since the budget was used up; 0 while it is not."""

    def begin(self, now_s: float, *, again: bool) -> float:
        """A run is about to begin, `again` after a failure. 0.0: it may; else it must not, and is to be looked at again
        after so many seconds."""
        self._advance(now_s)
        if again and self._balance < _ENOUGH:
            self.stretched += 1
            return self._promise_s(now_s, self._balance) - now_s
        self._runs += 1.0
        self._balance = min(float(FREE), self._balance + self.share - again)
        self._unplanned = min(float(FREE), self._unplanned + self.share)
        return 0.0

    def delay_s(self, now_s: float, delay_s: float) -> float:
        """How long a retry is to wait that would wait so long by itself: by the forecast, and after those that wait. It
        saves a look that would be in vain, and decides nothing."""
        self._advance(now_s)
        if self._unplanned >= _ENOUGH and self._next_s <= now_s + delay_s:
            self._unplanned -= 1.0
            return delay_s
        promised_s = self._promise_s(now_s, self._unplanned) - now_s
        self.stretched += promised_s > delay_s
        return max(delay_s, promised_s)

    def eased(self, now_s: float) -> int:
        """How often a retry had to wait longer, if that is over with this; else 0."""
        if not self.stretched or self._balance < FREE / 2 or now_s < self._last_s:
            return 0
        over, self.stretched = self.stretched, 0
        return over

    def _advance(self, now_s: float) -> None:
        if self._began_s is None:
            self._began_s = self._as_of_s = now_s
        past_s, self._as_of_s = max(0.0, now_s - self._as_of_s), now_s
        self._runs *= math.exp(-past_s / WINDOW_S)
        self._balance = min(float(FREE), self._balance + past_s * FREE / WINDOW_S)
        self._unplanned = min(float(FREE), self._unplanned + past_s * FREE / WINDOW_S)

    def _promise_s(self, now_s: float, left: float) -> float:
        """The next moment that has not been promised to another retry. Those for whom that would be too late are looked
        at again in the second half of the longest wait, evenly spread: that many looks there are, and no more."""
        per_s = self._paid_per_s()
        moment = max(self._next_s, now_s + max(_SOONEST_S, (1.0 - left) / per_s))
        if moment > now_s + LONGEST_S:
            moment = now_s + LONGEST_S / 2
        self._next_s = moment + 1.0 / per_s
        self._last_s = max(self._last_s, moment)
        return moment

    def _paid_per_s(self) -> float:
        """What comes in, in retries per second; as much of the window counts as has passed."""
        elapsed_s = self._as_of_s - (self._began_s or 0.0)
        counted_s = max(1.0, WINDOW_S * -math.expm1(-elapsed_s / WINDOW_S))
        return self.share * self._runs / counted_s + FREE / WINDOW_S
