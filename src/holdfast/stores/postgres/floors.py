"""Where each lane's next job is at the earliest, so that a claim does not search what others have taken.

Rows that were deleted stay in an index for as long as any transaction that is older may look at them, and every claim
from the head of a lane would have to pass all of them. So while a lane has more than was asked for, the next claim
begins behind the last job that was taken. That may be behind a job that was handed back, or whose insertion was
committed late: so the floors fall to the ground again and again, and a claim that came back short from above the ground
looks once more from there.

Where jobs have tags, a new one does not go behind all others but to where its lane has come: a little behind that, if
claims went on while it was being inserted. So there the floor stays at where the lane was a moment ago.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.fairness import Lane
from holdfast.runtime.clock import Clock

GROUND = (0, 0)
_LASTS_S = 1.0
SLACK_S = 0.05
"""How far the floors of lanes with tags stay behind: what an insertion may take without being passed by."""


class Floors:
    """What one process knows of its lanes; a guess, never a fact."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._floors: dict[Lane, tuple[int, int]] = {}
        self._next: dict[Lane, tuple[float, tuple[int, int]]] = {}
        self._since_s = clock.monotonic()

    def of(self, lane: Lane) -> tuple[int, int]:
        """(tag, seq) from which on to look."""
        return self._floors.get(lane, GROUND)

    def settle_down(self) -> None:
        """Called before each claim: no floor lasts for longer than a second."""
        now_s = self._clock.monotonic()
        if now_s - self._since_s >= _LASTS_S:
            self.fall()

    def fall(self) -> None:
        """Look from the ground everywhere: jobs may have come back to old places."""
        self._since_s = self._clock.monotonic()
        self._floors.clear()
        self._next.clear()

    def is_raised(self, lane: Lane) -> bool:
        return lane in self._floors

    def raise_to(self, lane: Lane, tag: int, seq: int) -> None:
        if not tag:
            self._floors[lane] = max(self.of(lane), (tag, seq))
            return
        now_s = self._clock.monotonic()
        since_s, place = self._next.get(lane, (now_s, (tag, seq)))
        if now_s - since_s >= SLACK_S:
            self._floors[lane] = max(self.of(lane), place)
            since_s, place = now_s, (tag, seq)
        self._next[lane] = (since_s, place)

    def drop(self, lanes: Iterable[Lane]) -> None:
        """Look from the ground next time."""
        for lane in lanes:
            self._floors.pop(lane, None)
            self._next.pop(lane, None)
