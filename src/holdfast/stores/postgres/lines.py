"""Those who wait at a gate, as they were read: who may go, each in its turn, and what becomes of the others. Nothing is
written here."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.fairness import Lane
from holdfast.core.gates import (
    Admission,
    Barrier,
    Candidate,
    Passed,
    Place,
    Skipped,
    Usage,
    Waits,
    admit,
    comes_anew,
    kept_slots,
)
from holdfast.core.gates_text import read_gates
from holdfast.core.queue import QueueSettings, share_of
from holdfast.core.turns import InLine, Remembered, Turns, remembered_of
from holdfast.stores.postgres.holding import Held, places_for
from holdfast.stores.queue_rows import from_row

if TYPE_CHECKING:
    from asyncpg import Record

_SOON_S, _AGAIN_S = 0.001, 5.0


class LetGo(NamedTuple):
    """One who may pass."""

    row: Record
    slots: tuple[Place, ...] = ()
    """Those that it takes."""
    anew: bool = False
    """Whether it comes as if it came now."""


class Outcome:
    """What becomes of those who wait at some gates, to be written at once."""

    def __init__(self) -> None:
        self.let_go: list[LetGo] = []
        self.moved: list[tuple[Record, Waits]] = []
        self.skipped: list[tuple[Record, Skipped]] = []
        self.turns: list[tuple[Place, Lane, Remembered]] = []
        """What has to be known of lanes when others are let go there."""
        self.due: dict[Place, float | None] = {}
        """When to look at the gates again that were served."""
        self.over: set[Place] = set()
        """Those of them where nobody is left of all that we saw."""
        self.spent: set[str] = set()
        """Rates of which tokens are meant for those who were let go."""
        self.probed: set[Place] = set()
        """Breakers that are to be tried by one who was let go."""
        self.left_to_last = False
        """Whether somebody was let go to whom slots are left, and none is kept."""
        self.full_at: dict[str, float] = {}
        """Of rates whose pace was made quicker."""

    def untold(self, place: Place) -> bool:
        """Whether somebody was let go as a probe, or for what is left of a limit: he has nothing that he would free."""
        return place in self.probed or (self.left_to_last and place.barrier is Barrier.LIMIT)

    def __len__(self) -> int:
        return len(self.let_go) + len(self.moved) + len(self.skipped)


def candidate_of(row: Record) -> Candidate:
    return Candidate(row["task"], row["queue"], row["tenant"], read_gates(row["gates"]))


def judge(place: Place, waiters: Sequence[Record], held: Held, line: Outcome, *, limit: int) -> float | None:
    """Go along the lanes, each in its turn, up to the first who has to stay; when to come again."""
    lanes = _by_lane(waiters)
    turns = Turns(
        {lane: InLine(_share(rows[0]), rows[0]["seq"]) for lane, rows in lanes.items()},
        {lane: known for lane, rows in lanes.items() if (known := _remembered(rows[0])) != Remembered()},
    )
    until = _go_along(place, turns, lanes, held, line, limit=limit)
    line.turns += [(place, lane, known) for lane, known in turns.changes().items()]
    return until


def _by_lane(waiters: Sequence[Record]) -> dict[Lane, deque[Record]]:
    lanes: defaultdict[Lane, deque[Record]] = defaultdict(deque)
    for row in sorted(waiters, key=lambda row: (row["line"], row["seq"])):
        lanes[Lane(row["lane_queue"], row["lane_priority"])].append(row)
    return lanes


def _remembered(row: Record) -> Remembered:
    return remembered_of(row["need"], row["reached"])


def _share(row: Record) -> float | None:
    """That of its lane; None: nobody comes for it."""
    if not row["served"]:
        return None
    weights = row["weight"], row["weights"]
    settings = QueueSettings() if weights[0] is None else from_row(False, None, None, *weights)
    return share_of(settings, row["lane_priority"])


def _go_along(
    place: Place, turns: Turns, lanes: dict[Lane, deque[Record]], held: Held, line: Outcome, *, limit: int
) -> float | None:
    now, rules = held.usage.now, held.usage.rules
    full = {lane for lane, rows in lanes.items() if len(rows) == rows[0]["most"]}
    while (lane := turns.next()) is not None:
        if len(line) >= limit:
            return now
        if not lanes[lane]:
            if lane in full:
                return now  # we have not seen all of them
            turns.over(lane)
            continue
        row, share = lanes[lane].popleft(), turns.share(lane)
        if row["task"] is None:  # its claim will tell
            line.let_go.append(LetGo(row))
            continue
        candidate = candidate_of(row)
        if not places_for([candidate], rules) <= held.places:  # he came after we had looked
            return now
        verdict = _ask(candidate, held.usage, served=share is not None)
        if isinstance(verdict, Passed):
            slots = kept_slots(candidate, verdict.takes, comes_last=share == 0) if share is not None else ()
            anew = bool(row["tag"]) and comes_anew(candidate, place, verdict.takes, rules)
            line.let_go.append(LetGo(row, slots, anew))
            turns.took(lane, row["line"])
            line.left_to_last |= share == 0
            line.spent.update(verdict.spends)
            if share is not None:
                line.probed.update(each for each in verdict.takes if each.barrier is Barrier.BREAKER)
        elif isinstance(verdict, Skipped):
            line.skipped.append((row, verdict))
        elif verdict.at == place:
            if place.barrier is Barrier.RATE and place.key not in line.spent:
                # Its pace may be quicker now. What others have spent here is not spent before their claim.
                line.full_at[place.key] = held.usage.full_at[place.key]
            if verdict.until is None and line.untold(place):  # if he is never claimed, nobody would tell
                return now + _AGAIN_S
            return None if verdict.until is None else max(verdict.until, now + _SOON_S)
        else:
            if verdict.until is None and line.untold(verdict.at):  # the same for whoever goes on to that gate
                verdict = verdict._replace(until=now + _AGAIN_S)
            line.moved.append((row, verdict))
    line.over.add(place)
    return None


def _ask(candidate: Candidate, usage: Usage, *, served: bool) -> Admission:
    """Nothing is kept for one whom nobody claims: he takes what he needs at his claim, or waits again."""
    if not served:
        usage = replace(usage, held=dict(usage.held), full_at=dict(usage.full_at))
    [verdict] = admit([candidate], usage)
    return verdict
