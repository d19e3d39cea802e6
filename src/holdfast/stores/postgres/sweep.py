"""The sweep, the net under everything; and gates, one by one, each in a transaction of its own (rule 7)."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.core.errors import StoreUnavailable
from holdfast.core.gates import NO_RULES, Barrier, Candidate, Place, Usage, Waits, admit, kept_slots
from holdfast.core.gates_text import read_gates
from holdfast.core.job import JobId
from holdfast.stores.base import Swept
from holdfast.stores.gate_rows import breaker_of, places_of_rows, seconds_of
from holdfast.stores.parking import LATE_S
from holdfast.stores.postgres.end import count_arrivals, release
from holdfast.stores.postgres.holding import hold, places_for, read_rules
from holdfast.stores.postgres.queues import Lanes, last_lanes
from holdfast.stores.postgres.serving import SERVED_AT_ONCE, columns_of, look_after, serve
from holdfast.stores.postgres.transaction import Tx

if TYPE_CHECKING:
    from asyncpg import Record

    from holdfast.stores.postgres.engine import Engine

#: Jobs of a queue, in one state, that the sweep counts to compare.
_COMPARED = 10_000
#: Gates that it looks at together; and, times its limit, those of which it forgets what nobody uses.
_PAGE, _FORGOTTEN_AT_ONCE = 500, 20


async def sweep(tx: Tx, *, limit: int) -> Swept:
    """Put right what nothing else did; every count but that of old keys is zero on a healthy store. Not the gates."""
    keys = await tx.fetch("sweep.drop_keys", tx.now, limit)
    keys += await tx.fetch("sweep.drop_unique_keys", tx.now, limit)
    await tx.fetch("sweep.step_forward", limit)
    arrived = Counter(row[0] for row in await tx.fetch("sweep.uncounted", limit))
    await count_arrivals(tx, arrived)
    released = await release(tx, [row[0] for row in await tx.fetch("sweep.releasable", limit)])
    return Swept(released, 0, 0, len(keys), await fix_depths(tx))


async def sweep_gates(engine: Engine, *, limit: int) -> tuple[int, int]:
    """Slots freed, waiters let go that were left behind. One gate at a time, and none that somebody has in hand: he may
    be frozen."""
    slots, let_go = 0, Counter[Place]()
    late = set(places_of_rows(await engine.query("serving.late", LATE_S, limit)))
    last = last_lanes(await engine.query("queues.weighed"))
    kept = await _kept_by_last(engine, last)
    in_vain = places_of_rows(await engine.query("serving.kept_in_vain", limit))
    for place in [*in_vain, *(kept.keys() - in_vain)][:limit]:
        dropping = partial(_drop_stale_slots, place=place, last=kept[place])
        freed = 0
        with contextlib.suppress(StoreUnavailable):  # held for longer than we wait: somebody comes again
            freed, _ = await engine.transact("sweep", engine.verbs, dropping)
        slots += freed
        if freed:
            late.add(place)
            await engine.query("serving.look_after", *columns_of([place]), False)
    neglected, astray = await _neglected(engine)
    if astray:
        await engine.query("serving.step_back", astray[:limit])
    for place in neglected[:limit]:
        await engine.query("serving.make_gates", *columns_of([place]))
        await engine.query("serving.look_after", *columns_of([place]), False)
    while True:
        count = await serve(engine, limit=SERVED_AT_ONCE, verb="sweep", together=1, patient=False, by_gate=let_go)
        if sum(count) < SERVED_AT_ONCE:  # behind very many that nobody serves there may be one that somebody does
            break
    await _forget(engine, limit * _FORGOTTEN_AT_ONCE)
    late.update(neglected)
    return slots, sum(count for place, count in let_go.items() if place in late)


async def _kept_by_last(engine: Engine, last: Lanes) -> defaultdict[Place, list[JobId]]:
    """Jobs that come last, by the limits of which they were given slots when they did not, and would not be now."""
    found: defaultdict[Place, list[JobId]] = defaultdict(list)
    for kind, key, job_id, gates in await engine.query("serving.kept_by_last", *last) if last[0] else ():
        for place in places_of_rows([(kind, key)]):
            if not kept_slots(Candidate("", "", "", read_gates(gates)), [place], comes_last=True):
                found[place].append(job_id)
    return found


async def _drop_stale_slots(tx: Tx, *, place: Place, last: Sequence[JobId]) -> int:
    if not await tx.fetch("serving.try_hold", *place):
        if await tx.fetch("serving.exist", *columns_of([place])):
            return 0
        await hold(tx, [place], [], NO_RULES)
    return len(await tx.fetch("serving.drop_kept_in_vain", *place, last))


async def hand_on(engine: Engine, gates: Collection[Record]) -> None:
    """Slots that were kept for jobs in a queue that is paused now, or comes last, are for others; whoever waits a
    moment does it."""
    if not gates:
        return
    places = places_of_rows(gates)
    kept = await _kept_by_last(engine, last_lanes(await engine.query("queues.weighed")))
    for place in places:
        with contextlib.suppress(StoreUnavailable):
            await engine.transact("sweep", engine.verbs, partial(_hand_on, place=place, last=kept[place]))
    await look_after(engine, places)


async def _hand_on(tx: Tx, *, place: Place, last: Sequence[JobId]) -> None:
    await hold(tx, [place], [], NO_RULES)
    await tx.fetch("serving.drop_kept_in_vain", *place, last)


async def _neglected(engine: Engine) -> tuple[list[Place], list[JobId]]:
    """Gates that somebody waits at who could go on, and that nothing has made due; and those who stand behind others
    for no reason. By a look without holding them."""
    found: list[Place] = []
    astray: list[JobId] = []
    for barrier in Barrier:
        after: str | None = ""
        while after is not None:
            rows, strays = await engine.snapshot(partial(_page, barrier=barrier, after=after))
            after = rows[-1]["key"] if len(rows) == _PAGE else None
            astray += strays
            found += await engine.snapshot(partial(_look, barrier=barrier, rows=rows))
    return found, astray


async def _page(tx: Tx, *, barrier: Barrier, after: str) -> tuple[Sequence[Record], list[JobId]]:
    """Some of the gates that somebody waits at, with the first of each line; and who is astray there."""
    rows = await tx.fetch("serving.waited_at", barrier, after, _PAGE)
    keys = [row["key"] for row in rows]
    return rows, [row[0] for row in await tx.fetch("serving.astray", barrier, keys, _COMPARED)] if rows else []


async def _look(tx: Tx, *, barrier: Barrier, rows: Sequence[Record]) -> list[Place]:
    """Those of a page where the first could go on."""
    rows = [row for row in rows if row["due_at"] is None]
    if not rows:
        return []
    rules = await read_rules(tx)
    candidates = [Candidate(row["task"], row["queue"], row["tenant"], read_gates(row["gates"])) for row in rows]
    known = [candidate for candidate in candidates if candidate.task is not None]
    usage = Usage(tx.now.timestamp(), rules=rules)
    for kind, key, held, full_at, recent, open_until, is_held, _ in await tx.fetch(
        "serving.usage", *columns_of(places_for(known, rules)), 0
    ):
        usage.held[Place(Barrier(kind), key)] = held
        if (full_s := seconds_of(full_at)) is not None:
            usage.full_at[key] = full_s
        if recent is not None:
            usage.breakers[key] = breaker_of(recent, open_until, is_held)
    places = [Place(barrier, row["key"]) for row in rows]
    return [
        place
        for place, candidate in zip(places, candidates, strict=True)
        if candidate.task is None or not _has_to_stay(candidate, place, usage)
    ]


def _has_to_stay(candidate: Candidate, place: Place, usage: Usage) -> bool:
    [verdict] = admit([candidate], usage, letting_go=True)
    return isinstance(verdict, Waits) and verdict.at == place and verdict.until is None


async def _forget(engine: Engine, many: int) -> None:
    async def forget(tx: Tx) -> None:
        held = await tx.fetch("serving.hold_some", await tx.value("serving.somewhere"), many)
        if held:
            await tx.fetch("serving.forget", [row[0] for row in held])
        await tx.fetch("serving.forget_empty_lanes", many)

    await engine.transact("sweep", engine.verbs, forget)


async def fix_depths(tx: Tx) -> int:
    """Compare with what is there, in a single look; what this verb itself has moved is written first.

    A deep queue is compared up to a bound, so that this costs the same however deep it is; when it has drained below,
    it is compared exactly. One sweep at a time: two would correct the same mistake twice.
    """
    await tx.close_verb()
    if not await tx.value("sweep.alone"):
        return 0
    wrong: list[tuple[str, int, int]] = []
    for queue, *changes in await tx.fetch("sweep.wrong_counts", _COMPARED):
        if None in changes:
            [(queue, *changes)] = await tx.fetch("sweep.count_again", queue)
        wrong.append((queue, *changes))
    await tx.many("transaction.change_depths", wrong)
    return len(wrong)
