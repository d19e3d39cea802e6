"""Where the time comes from, named by use; not for leases, which the store's own clock decides."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks that must not be mixed: what one says is never compared with the other."""

    def now(self) -> float:
        """Wall clock, seconds since the epoch: to be stored and shown. It may jump either way."""
        ...

    def monotonic(self) -> float:
        """Seconds since some unknown moment: for durations and deadlines only. It never goes back."""
        ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that a test moves by hand.

    1. Time stands still between two calls of `advance`.
    2. `jump_wall` moves the wall clock alone, as an administrator or NTP would.
    """

    __slots__ = ("_monotonic", "_wall")

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._wall = float(start)
        # Unlike any wall time, so that a mix-up of the two shows.
        self._monotonic = 1_000.0

    def now(self) -> float:
        return self._wall

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        if not seconds >= 0:
            raise ValueError(f"advance({seconds!r}): time passes forwards; use jump_wall() to set a clock back")
        self._wall += seconds
        self._monotonic += seconds

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock forwards or (negative) back; no time passes."""
        self._wall += seconds
