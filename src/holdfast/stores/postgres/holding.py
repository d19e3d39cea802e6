"""Holds gates still, and reads what is taken of them, before anybody is judged there.

The order in which everything is locked, so that nobody waits in a circle: breakers by name; rows of jobs (`ready`,
`parked`, and, but for its own settlement, `active`) without waiting for any; gates by kind and key, all that one needs
at once; slots; joins; how far lanes have come, and the tags of tenants. Whoever has a gate in hand waits for no run and
for no breaker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from holdfast.core.gates import Barrier, Candidate, Place, Rules, Usage, Waits, places_of
from holdfast.core.job import JobId
from holdfast.stores.gate_rows import LAST_S, breaker_of, places_of_rows, seconds_of
from holdfast.stores.postgres.transaction import Tx
from holdfast.stores.rule_rows import rules_of

#: So many are taken of a limit of which a slot is meant for those who wait (`hold_gates`).
_FREED = 2**31 - 1
#: One turn at a rate that is overdue, in the number that tells of all; it has one of these more than there are.
_OVERDUE = 1 << 32
#: In the order in which the function `hold_gates` is told of them.
_KINDS = (Barrier.LIMIT, Barrier.RATE, Barrier.BREAKER, Barrier.PAUSED)


class Held(NamedTuple):
    """Gates that are in our hand until we commit."""

    usage: Usage
    slots: dict[JobId, frozenset[Place]]
    """Of the jobs that were asked for: what they have already."""
    places: frozenset[Place]
    counts: dict[str, int]
    """Slots of limits that were taken, by key."""


async def read_rules(tx: Tx) -> Rules:
    """What operators have said until now."""
    return rules_of(map(tuple, await tx.fetch("rules.all")))


def places_for(candidates: Sequence[Candidate], rules: Rules) -> set[Place]:
    """All the places at which these may have to be parked."""
    places = places_of(candidates, rules)
    if rules.paused_tasks:
        paused = rules.paused_tasks & {candidate.task for candidate in candidates}
        places |= {Place(Barrier.PAUSED, f"task:{task}") for task in paused}
    if rules.paused_tenants:
        paused = rules.paused_tenants & {candidate.tenant for candidate in candidates}
        places |= {Place(Barrier.PAUSED, f"tenant:{tenant}") for tenant in paused}
    return places


async def hold(
    tx: Tx,
    places: Collection[Place],
    job_ids: Sequence[JobId],
    rules: Rules,
    *,
    claiming: bool = False,
    said: str | None = None,
) -> Held:
    """Wait until nobody else has one of these in hand; from then on it is `tx.now`.

    `claiming`: a limit of which a slot was freed for those who wait there is full for whoever comes now, and it is told
    at which rates somebody waits; and if operators do not say any more what they have `said`, the transaction is to be
    repeated.
    """
    if not places:
        return Held(Usage(tx.now.timestamp(), rules=rules), {}, frozenset(), {})
    keys = ([place.key for place in places if place.barrier is barrier] for barrier in _KINDS)
    (*_, tx.now), *rows = map(tuple, await tx.fetch("passing.hold", *keys, job_ids, claiming, said))
    usage = Usage(tx.now.timestamp(), rules=rules)
    slots: defaultdict[JobId, set[Place]] = defaultdict(set)
    counts: dict[str, int] = {}
    for job_id, kind, key, held, full_at, recent, open_until, is_held, _ in rows:
        if job_id is not None:
            slots[job_id].update(places_of_rows([(kind, key)]))
            continue
        if held and kind == Barrier.RATE:
            overdue, fresh = divmod(held, _OVERDUE)
            place = Place(Barrier.RATE, key)
            usage.held[place], usage.overdue[place] = fresh, overdue - 1
        elif held:
            place = Place(Barrier(kind), key)
            usage.held[place] = max(held, usage.held.get(place, 0))
            if place.barrier is Barrier.LIMIT and held < _FREED:
                counts[key] = held
        if (full_s := seconds_of(full_at)) is not None:
            usage.full_at[key] = full_s
        if kind == Barrier.RATE and is_held:
            usage.lined.add(key)
        if recent is not None:
            usage.breakers[key] = breaker_of(recent, open_until, is_held)
    return Held(usage, {job_id: frozenset(held) for job_id, held in slots.items()}, frozenset(places), counts)


async def keep_out(tx: Tx, held: Held, waits: Iterable[Waits]) -> None:
    """Before anybody begins to wait for slots: hold those that keep him out, so that whoever frees one sees him."""
    keys = {verdict.at.key for verdict in waits if verdict.at.barrier is Barrier.LIMIT}
    if keys:
        await tx.fetch("passing.keep_out", list(keys), [held.counts.get(key, 0) for key in keys])


def moment(seconds: float) -> datetime:
    """A time as the driver takes it."""
    return datetime.fromtimestamp(min(seconds, LAST_S), UTC)
