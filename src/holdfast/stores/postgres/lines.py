"""Those who wait at a gate, as they were read: who may go, each in its turn, and what becomes of the others. Nothing is
written here but tags of those who have left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
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
from holdfast.core.job import JobId
from holdfast.core.queue import QueueSettings
from holdfast.core.tenancy import FURTHEST_TAG
from holdfast.core.turns import CLOCK, InLine, Remembered, Turns, remembered_of
from holdfast.stores.postgres.holding import Held, places_for
from holdfast.stores.queue_rows import from_row, share_in_line

if TYPE_CHECKING:
    from asyncpg import Record

    from holdfast.stores.postgres.transaction import Tx

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
        self.tags: list[tuple[JobId, int]] = []
        """Those who stay, by another tag than the one that they brought."""
        self.spare: list[tuple[Place, Lane, str, int]] = []
        """Tags that nobody used, for those of their tenants who were not read."""
        self.due: dict[Place, float | None] = {}
        """When to look at the gates again that were served."""
        self.over: set[Place] = set()
        """Those of them where nobody is left of all that we saw."""
        self.spent: set[str] = set()
        """Rates of which tokens are left to those who were let go and come last."""
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


class _Lane:
    """Those of one lane who were read: its tenants take turns by the tags that their jobs have brought, each of them by
    the places of its jobs."""

    def __init__(self, rows: Sequence[Record]) -> None:
        heads = sorted((row for row in rows if row["most"] is not None), key=lambda row: (row["line"], row["seq"]))
        self.first = heads[0]
        self.remembered = remembered_of(self.first["due"], self.first["reached"])
        self.full = len(heads) >= self.first["most"]
        """Whether there may be others."""
        self._last = heads[-1]["line"]
        self._tenants: defaultdict[str | None, list[Record]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: row["seq"]):
            self._tenants[row["lane_tenant"] if row["line"] else None].append(row)
        self.spare: list[tuple[str, int]] = []
        """Tags of tenants that nobody has used, where others of them may wait."""
        self._tags = {tenant: sorted(row["line"] for row in rows) for tenant, rows in self._tenants.items()}

    def next(self) -> tuple[Record, int] | None:
        """Who is the next, and by which tag."""
        turns = ((self._tags[tenant][0], rows[0]["seq"], rows[0]) for tenant, rows in self._tenants.items())
        found = min(turns, key=lambda turn: turn[:2], default=None)
        if found is None or (self.full and found[0] > self._last):  # others may be before it
            return None
        return found[2], found[0]

    def went(self, row: Record, *, by_its_tag: bool) -> None:
        """The next one has left; without using a tag, there is one less to come."""
        tenant = row["lane_tenant"] if row["line"] else None
        self._tenants[tenant].pop(0)
        tag = self._tags[tenant].pop(0 if by_its_tag else -1)
        if tenant is not None and self.full and not by_its_tag:
            self.spare.append((tenant, tag))
        if not self._tenants[tenant]:
            del self._tenants[tenant]

    def given(self) -> list[tuple[JobId, int]]:
        """Those who have another tag now than the one that they brought."""
        pairs = [pair for tenant, rows in self._tenants.items() for pair in zip(rows, self._tags[tenant], strict=True)]
        return [(row["job_id"], tag) for row, tag in pairs if row["line"] != tag]


async def hand_down(tx: Tx, rows: Sequence[Record]) -> None:
    """These have left the lines where they waited, without using their tags: they are for others of their tenants."""
    columns = ("reason", "key", "queue", "priority", "tenant", "line")
    left = [tuple(row[each] for each in columns) for row in rows if 0 < (row.get("line") or 0) < FURTHEST_TAG]
    await tx.many("serving.hand_down_tags", left)


def judge(
    place: Place,
    waiters: Sequence[Record],
    clock: Remembered,
    held: Held,
    line: Outcome,
    *,
    limit: int,
    busy: Collection[Lane] = (),
) -> float | None:
    """Go along the lanes, each in its turn, up to the first who has to stay; when to come again.

    `busy`: lanes that have a turn already and do not use it; they get no other one meanwhile.
    """
    rows: defaultdict[Lane, list[Record]] = defaultdict(list)
    for row in waiters:
        rows[Lane(row["lane_queue"], row["lane_priority"])].append(row)
    lanes = {lane: _Lane(found) for lane, found in rows.items()}
    turns = Turns(
        {lane: InLine(_share(each.first), each.first["seq"]) for lane, each in lanes.items()},
        {CLOCK: clock, **{lane: each.remembered for lane, each in lanes.items()}},
    )
    passed_over = [lane for lane in busy if lane in lanes and turns.share(lane)]
    if passed_over:  # they wait, and so those of weight 0 have to
        passed_over += [lane for lane in lanes if turns.share(lane) == 0]
    for lane in passed_over:
        turns.leave(lane)
    until = _go_along(place, turns, lanes, held, line, limit=limit)
    if passed_over:
        line.over.discard(place)
        until = _earliest([until, held.usage.now + _AGAIN_S])
    line.turns += [(place, lane, known) for lane, known in turns.changes().items()]
    line.tags += [given for each in lanes.values() for given in each.given()]
    line.spare += [(place, lane, *spare) for lane, each in lanes.items() for spare in each.spare]
    return until


def _share(row: Record) -> float | None:
    """That of its lane; None: nobody comes for it."""
    if not row["served"]:
        return None
    weights = row["weight"], row["weights"]
    settings = QueueSettings() if weights[0] is None else from_row(False, None, None, *weights)
    return share_in_line(settings, row["lane_priority"])


def _go_along(
    place: Place, turns: Turns, lanes: dict[Lane, _Lane], held: Held, line: Outcome, *, limit: int
) -> float | None:
    now, rules, before = held.usage.now, held.usage.rules, len(line)
    stay: list[float | None] = []
    while (lane := turns.next()) is not None:
        if len(line) >= limit:
            return now
        found, share = lanes[lane].next(), turns.share(lane)
        if found is None:
            if lanes[lane].full:
                return now  # we have not seen all of them
            turns.over(lane)
            continue
        row, tag = found
        if row["task"] is None:  # its claim will tell
            lanes[lane].went(row, by_its_tag=False)
            line.let_go.append(LetGo(row))
            continue
        candidate = candidate_of(row)
        if not places_for([candidate], rules) <= held.places:  # he came after we had looked
            return now
        verdict = _ask(candidate, held.usage, share)
        if isinstance(verdict, Waits) and verdict.at == place:
            stay.append(_again_at(place, verdict, held, line))
            if share is not None:
                return _earliest(stay)
            turns.leave(lane)  # others may pass: it may be of a smaller size, and nobody comes for it
            continue
        lanes[lane].went(row, by_its_tag=isinstance(verdict, Passed))
        if isinstance(verdict, Passed):
            turns.took(lane, tag)
            slots = kept_slots(candidate, verdict.takes, comes_last=share == 0) if share is not None else ()
            anew = bool(row["tag"]) and comes_anew(candidate, place, verdict.takes, rules)
            line.let_go.append(LetGo(row, slots, anew))
            line.left_to_last |= share == 0
            line.spent.update(verdict.spends)
            if share is not None:
                line.probed.update(each for each in verdict.takes if each.barrier is Barrier.BREAKER)
        elif isinstance(verdict, Skipped):
            line.skipped.append((row, verdict))
        else:
            if verdict.until is None and line.untold(verdict.at):  # the same for whoever goes on to that gate
                verdict = verdict._replace(until=now + _AGAIN_S)
            line.moved.append((row, verdict))
    if len(line) > before and any(each.first["cut"] for each in lanes.values()):
        return now  # there are others; not where all had to stay: nobody else may go then
    if not stay:
        line.over.add(place)
    return _earliest(stay)


def _again_at(place: Place, verdict: Waits, held: Held, line: Outcome) -> float | None:
    """Of one who has to stay: when to come again."""
    now = held.usage.now
    if place.barrier is Barrier.RATE and place.key in held.usage.full_at and place.key not in line.spent:
        line.full_at[place.key] = held.usage.full_at[place.key]  # its pace may be quicker now
    if verdict.until is None:  # if whoever was let go is never claimed, nobody would tell
        return now + _AGAIN_S if line.untold(place) else None
    return max(verdict.until, now + _SOON_S)


def _earliest(times: Sequence[float | None]) -> float | None:
    return min((each for each in times if each is not None), default=None)


def _ask(candidate: Candidate, usage: Usage, share: float | None) -> Admission:
    """Nothing is kept for one whom nobody claims: he takes what he needs at his claim, or waits again. One who comes
    last is not given a turn at a rate, and counts as if he began now."""
    if share is None:
        usage = replace(usage, held=dict(usage.held), full_at=dict(usage.full_at))
    [verdict] = admit([candidate], usage, letting_go=bool(share))
    return verdict
