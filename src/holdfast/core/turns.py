"""Whose turn it is at a gate: from which of the lanes that wait there the next job is let go.

Lanes take turns by their weights, as they do where jobs are claimed. A clock of the gate's own goes on to the moment at
which the lane is due whose job is let go, and that lane is due again after its price, which is the smaller the more it
weighs. So whoever is let go pays for its lane alone, nobody waits for more than his price, and what operators say of
weights holds for those who wait already. In which order those of one lane go is told by their tags
(`core.tenancy.line_tag`) and places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from holdfast.core.fairness import Lane
from holdfast.core.tenancy import FURTHEST_TAG

LANES_AT_ONCE: Final = 50
"""So many lanes of a gate are looked at together; of more, those that have just come and those that are due first."""
_LIGHTEST: Final = 1e-6  # lighter lanes count as this, so that prices are numbers
_LATEST: Final = 1e12  # from here on the clock is not exact enough: it begins anew


class Remembered(NamedTuple):
    """What is known of a lane from one look to the next. It need not be there: then the lane begins anew."""

    due: float | None = None
    """When it is its turn, by the clock: from when it was first seen beside another, its whole price later."""
    reached: int = 0
    """The largest tag that was let go of it."""


NOTHING: Final = Remembered()
CLOCK: Final = Lane("", -1)
"""Under this, as if it were a lane that is due now, the clock is remembered."""


def looked_at(share: float | None, due: object) -> tuple[int, float]:
    """The order in which lanes are looked at where there are more than can be: those that have just come and those that
    are due first, before those of weight 0, before those that nobody comes for."""
    known = remembered_of(due, 0).due
    return (2 if share is None else 0 if share else 1), -1.0 if known is None else known


def remembered_of(due: object, reached: object) -> Remembered:
    """From a store; what makes no sense counts as not there."""
    return Remembered(
        float(due) if isinstance(due, (int, float)) and 0 <= due < _LATEST else None,
        reached if type(reached) is int and 0 < reached < FURTHEST_TAG else 0,
    )


class InLine(NamedTuple):
    """A lane of which somebody waits."""

    share: float | None
    """Its weight; 0 where jobs go only when nobody else waits. None where nobody comes for whoever is let go: he takes
    nothing and keeps nobody waiting, and so goes first."""
    first: int
    """The place of its first; of lanes that are due together it is the turn of the oldest."""


class Turns:
    """The lanes of which somebody waits at one gate, while some of these are let go."""

    def __init__(self, lanes: Mapping[Lane, InLine], remembered: Mapping[Lane, Remembered]) -> None:
        self._lanes = dict(lanes)
        self._before = {lane: known for lane, known in remembered.items() if known != NOTHING}
        self._clock = remembered.get(CLOCK, NOTHING).due or 0.0
        self._now = {lane: remembered.get(lane, NOTHING) for lane in lanes}
        self._price = _prices(self._lanes)
        if len(self._price) > 1:
            self._now |= {lane: self._now[lane]._replace(due=self._due(lane)) for lane in self._price}

    def next(self) -> Lane | None:
        """None: nobody is left."""
        unserved = [lane for lane, (share, _) in self._lanes.items() if share is None]
        if unserved:
            return min(unserved, key=lambda lane: self._lanes[lane].first)
        return min(self._price, key=lambda lane: (self._due(lane), self._lanes[lane].first), default=None)

    def share(self, lane: Lane) -> float | None:
        return self._lanes[lane].share

    def took(self, lane: Lane, tag: int) -> None:
        """Somebody was let go of it, by this tag."""
        if tag > self._now[lane].reached:
            self._now[lane] = self._now[lane]._replace(reached=tag)
        if self._lanes[lane].share is None:
            return
        if len(self._price) == 1:  # whoever comes while nobody else waits begins anew beside it
            self._now[lane] = self._now[lane]._replace(due=None)
            return
        self._clock = max(self._clock, self._due(lane))
        self._now[lane] = self._now[lane]._replace(due=self._clock + self._price[lane])

    def over(self, lane: Lane) -> None:
        """Nobody of it is left."""
        self.leave(lane)
        del self._now[lane]

    def leave(self, lane: Lane) -> None:
        """It has no more turns now."""
        del self._lanes[lane]
        self._price = _prices(self._lanes)

    def changes(self) -> dict[Lane, Remembered]:
        """What has to be written down; where nothing is to be remembered any more, that."""
        now = {lane: self._now.get(lane, NOTHING) for lane in (*self._before, *self._now)}
        if any(known.due is not None for known in now.values()):
            now[CLOCK] = Remembered(self._clock)
        return {lane: known for lane, known in now.items() if known != self._before.get(lane, NOTHING)}

    def _due(self, lane: Lane) -> float:
        due, begins = self._now[lane].due, self._clock + self._price[lane]
        return begins if due is None else min(begins, due)


def _prices(lanes: Mapping[Lane, InLine]) -> dict[Lane, float]:
    """Of lanes that keep others waiting. Those of weight 0 do when there are no others, and then one as the next."""
    first = {lane: 1.0 / max(share, _LIGHTEST) for lane, (share, _) in lanes.items() if share}
    return first or {lane: 1.0 for lane, (share, _) in lanes.items() if share is not None}
