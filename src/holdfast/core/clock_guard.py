"""Whether the store's clock may be believed when it says that a lease has expired; it reads no clock itself.

The store's clock alone decides leases. Were it set forward, every lease would look expired at once and every
running job would be started a second time. So whoever reaps compares the clock's advance with that of its own
monotonic clock and, when they disagree, reaps nothing for one lease: time enough for the living to renew.

A jump before the first observation cannot be told from none. The first sight is trusted all the same:
otherwise the jobs of a machine that died and came back would wait for a second lease, at every start, for the
sake of a jump that would have to fall into the moment of that start.
"""

from __future__ import annotations

import math


class ClockGuard:
    """Watches one store's clock from one process.

    Advances are measured from a point that moves on once per lease, not from one observation to the next:
    many small steps, each within the tolerance, must not pass unnoticed.
    """

    def __init__(self, *, tolerance_s: float = 1.0) -> None:
        self._tolerance_s = tolerance_s
        self._since: tuple[float, float] | None = None  # (store's clock, our monotonic clock)
        self._distrust_until_s = -math.inf
        self.difference_s = 0.0
        """By how much the store's clock had run ahead of ours (negative: behind) at the last observation."""

    def observe(self, store_now_s: float, monotonic_s: float, *, lease_s: float) -> bool:
        """Whether leases may be reaped now; `monotonic_s` is to be read when the store's answer arrives."""
        now = (store_now_s, monotonic_s)
        if self._since is None:
            self._since = now
            return True
        store_since_s, monotonic_since_s = self._since
        elapsed_s = monotonic_s - monotonic_since_s
        self.difference_s = (store_now_s - store_since_s) - elapsed_s
        if not abs(self.difference_s) <= self._tolerance_s:  # this way round, NaN is a disagreement
            self._distrust_until_s = monotonic_s + lease_s
            self._since = now
        elif elapsed_s >= lease_s:
            self._since = now
        return monotonic_s >= self._distrust_until_s
