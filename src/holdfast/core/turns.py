"""Whose turn it is at a gate: from which of the lanes that wait there the next job is let go.

Lanes take turns by their weights, as they do where jobs are claimed. Each one needs a price, which is the smaller the
more the lane weighs; the one that needs least is next, and what it still needed is taken from what the others need. So
whoever is let go pays for its lane alone, nobody waits for more than his price, and what operators say of weights holds
for those who wait already. In which order those of one lane go is told by their tags (`core.tenancy.line_tag`) and
places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from holdfast.core.fairness import Lane
from holdfast.core.tenancy import FURTHEST_TAG

_LIGHTEST: Final = 1e-12  # lighter lanes count as this, so that prices are numbers


class Remembered(NamedTuple):
    """What is known of a lane from one look to the next. It need not be there: then the lane begins anew."""

    need: float | None = None
    """What it still has to wait for; None: its whole price."""
    reached: int = 0
    """The largest tag that was let go of it."""


def remembered_of(need: object, reached: object) -> Remembered:
    """From a store; what makes no sense counts as not there."""
    return Remembered(
        float(need) if type(need) in (int, float) and 0 <= need < math.inf else None,  # type: ignore[operator, arg-type]
        reached if type(reached) is int and 0 < reached < FURTHEST_TAG else 0,
    )


class InLine(NamedTuple):
    """A lane of which somebody waits."""

    share: float | None
    """Its weight; 0 where jobs go only when nobody else waits. None where nobody comes for whoever is let go: he takes
    nothing and keeps nobody waiting, and so goes first."""
    first: int
    """The place of its first; of lanes that need the same it is the turn of the oldest."""


class Turns:
    """The lanes of which somebody waits at one gate, while some of these are let go."""

    def __init__(self, lanes: Mapping[Lane, InLine], remembered: Mapping[Lane, Remembered]) -> None:
        self._lanes = dict(lanes)
        self._before = dict(remembered)
        self._now = {lane: remembered.get(lane, Remembered()) for lane in lanes}
        self._price = _prices(self._lanes)

    def next(self) -> Lane | None:
        """None: nobody is left."""
        unserved = [lane for lane, (share, _) in self._lanes.items() if share is None]
        if unserved:
            return min(unserved, key=lambda lane: self._lanes[lane].first)
        return min(self._price, key=lambda lane: (self._need(lane), self._lanes[lane].first), default=None)

    def share(self, lane: Lane) -> float | None:
        return self._lanes[lane].share

    def took(self, lane: Lane, tag: int) -> None:
        """Somebody with this tag was let go of it."""
        if tag > self._now[lane].reached:
            self._now[lane] = self._now[lane]._replace(reached=tag)
        if self._lanes[lane].share is None:
            return
        paid = self._need(lane)
        for other in self._price:
            self._now[other] = self._now[other]._replace(need=max(0.0, self._need(other) - paid))
        # Whoever comes while nobody else waits begins anew beside it.
        self._now[lane] = self._now[lane]._replace(need=None if len(self._price) == 1 else self._price[lane])

    def over(self, lane: Lane) -> None:
        """Nobody of it is left."""
        del self._lanes[lane], self._now[lane]
        self._price = _prices(self._lanes)

    def changes(self) -> dict[Lane, Remembered]:
        """What has to be written down; where nothing is to be remembered any more, that."""
        now = {lane: self._now.get(lane, Remembered()) for lane in (*self._before, *self._now)}
        return {lane: known for lane, known in now.items() if known != self._before.get(lane, Remembered())}

    def _need(self, lane: Lane) -> float:
        need, price = self._now[lane].need, self._price[lane]
        return price if need is None else min(price, need)


def _prices(lanes: Mapping[Lane, InLine]) -> dict[Lane, float]:
    """Of lanes that keep others waiting. Those of weight 0 do when there are no others, and then one as the next."""
    first = {lane: 1.0 / max(share, _LIGHTEST) for lane, (share, _) in lanes.items() if share}
    return first or {lane: 1.0 for lane, (share, _) in lanes.items() if share is not None}
