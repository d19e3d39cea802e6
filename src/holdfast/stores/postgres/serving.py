"""Looks after those who wait at gates that are due: whoever may pass is let go, each in its turn (`core.turns`).

A slot goes with the one who is let go, so that nobody who comes later overtakes him (decision 0006), and a turn at a
rate (decision 0107); tokens and probes are taken at the claim. A few gates at a time, each time in a short transaction.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.errors import StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.core.gates import Barrier, Place, Rules, fresh_turns, size_of
from holdfast.core.state import State
from holdfast.core.turns import LANES_AT_ONCE, NOTHING, remembered_of
from holdfast.stores.base import Hint
from holdfast.stores.flow import Served
from holdfast.stores.gate_rows import places_of_rows
from holdfast.stores.postgres import transaction
from holdfast.stores.postgres.end import Ending, end_jobs
from holdfast.stores.postgres.holding import hold, keep_out, moment, places_for, read_rules
from holdfast.stores.postgres.lines import LetGo, Outcome, candidate_of, judge
from holdfast.stores.postgres.passing import place_of, replace_others
from holdfast.stores.postgres.transaction import Tx

if TYPE_CHECKING:
    from asyncpg import Record

    from holdfast.stores.postgres.engine import Engine

#: Gates served in one transaction, and waiters of each: so many keys are held at once, at most.
_GATES, _WAITERS = 10, 100
#: Gates in somebody's hand that one call waits for.
_AWAITED = 3
_PAGE = 500
SERVED_AT_ONCE = 1000
"""Waiters that are let go right after what has freed their slots; others follow."""


class Count(NamedTuple):
    """Waiters that were let go, and those who wait elsewhere now, or have ended."""

    unparked: int = 0
    moved: int = 0

    def plus(self, other: Count) -> Count:
        return Count(self.unparked + other.unparked, self.moved + other.moved)


async def serve_gates(engine: Engine, *, limit: int) -> Served:
    """All that is due, up to a number of waiters; and when to come again."""
    count = await serve(engine, limit=limit)
    rows = await engine.query("serving.next_due")
    return Served(*count, max(0.0, rows[0][0]) if rows else None)


async def serve(
    engine: Engine,
    *,
    limit: int,
    verb: str = "serve_gates",
    together: int = _GATES,
    patient: bool = True,
    by_gate: Counter[Place] | None = None,
) -> Count:
    """Those gates that nobody has in hand first; then, if we are patient, a few of the others. Each of them once, but
    for those where a great many wait. `by_gate`: how many were let go where, if not several are looked at together."""
    count, done = Count(), set[Place]()
    while (left := limit - sum(count)) > 0:
        due = _places(await engine.query("serving.due", together + len(done)))
        due = [place for place in due if place not in done][:together]
        if not due:
            break
        found, again = await _serve(engine, verb, due, left)
        count = count.plus(found)
        if by_gate is not None:
            by_gate[due[0]] += found.unparked
        done |= {place for place in due if place not in again or not any(found)}
    if not patient:
        return count
    for place in _places(await engine.query("serving.overdue", _AWAITED + len(done))):
        if (left := limit - sum(count)) > 0 and place not in done:
            with contextlib.suppress(StoreUnavailable):  # held for longer than we wait: somebody comes again
                found, _ = await _serve(engine, verb, [place], left)
                count = count.plus(found)
    return count


async def _serve(engine: Engine, verb: str, places: Sequence[Place], limit: int) -> tuple[Count, set[Place]]:
    """Also where more may be done at once."""
    serving = partial(_serve_some, places=places, limit=limit, tenanted=engine.tenanted)
    found, tx = await engine.transact(verb, engine.verbs, serving)
    await look_after(engine, tx.freed)
    return found


def _places(rows: Sequence[Record]) -> list[Place]:
    return places_of_rows(rows)


async def look_after(engine: Engine, places: Collection[Place]) -> None:
    """Slots of these were freed, and that is committed: whoever waits there is let go, as far as there is room."""
    if places and await make_due(engine, places):
        await serve_now(engine)


async def serve_now(engine: Engine) -> None:
    """Right after what has freed slots. Whatever goes wrong here takes nothing back: somebody comes again."""
    with contextlib.suppress(StoreUnavailable):
        await serve(engine, limit=SERVED_AT_ONCE)


async def make_due(engine: Engine, places: Collection[Place]) -> bool:
    """Who waits at these is to be looked after; whether there is anybody. What cannot be done is left to the sweep."""
    seen: list[Record] = []
    with contextlib.suppress(StoreUnavailable):
        seen += await engine.query("serving.look_after", *columns_of(places), False)
        passed = set(places) - {Place(Barrier(row["kind"]), row["key"]) for row in seen}
        there = _places(await engine.query("serving.exist", *columns_of(passed))) if passed else ()
        for place in there:  # in somebody's hand
            with contextlib.suppress(StoreUnavailable):  # for too long: that is no reason to forget the others
                seen += await engine.query("serving.look_after", *columns_of([place]), True)
    return any(row["waited"] for row in seen)


async def make_all_due(engine: Engine) -> None:
    """What operators say has changed: everybody who waits is to be looked after."""
    with contextlib.suppress(StoreUnavailable):
        while await engine.query("serving.all_due", _PAGE):
            pass
        while left := _places(await engine.query("serving.not_due", _PAGE)):
            await make_due(engine, left)
            if len(left) < _PAGE:
                break


def columns_of(places: Collection[Place]) -> tuple[list[Barrier], list[str]]:
    """As statements take them."""
    return [place.barrier for place in places], [place.key for place in places]


async def _serve_some(tx: Tx, places: Sequence[Place], limit: int, tenanted: set[str]) -> tuple[Count, set[Place]]:
    await tx.fetch("rules.still")  # else somebody is judged by what is not said any more, and nobody looks at him again
    rules = await read_rules(tx)
    many = min(limit, _WAITERS)
    busy = {place: await _busy_lanes(tx, place) for place in places if place.barrier is Barrier.RATE}
    lanes = LANES_AT_ONCE + max(map(len, busy.values()), default=0)  # those are looked at beside the others
    preview = [candidate_of(row) for row in await tx.fetch("serving.preview", *columns_of(places), many, lanes)]
    held = await hold(tx, places_for(preview, rules) | set(places), [], rules)
    line = Outcome()
    for place in places:
        waiters = await tx.fetch("serving.line", *place, many, lanes)
        tenanted.update(row["queue"] for row in waiters if row["tag"])
        clock = await tx.fetch("serving.clock", *place) if len({_lane_of(row) for row in waiters}) > 1 else ()
        known = remembered_of(*clock[0]) if clock else NOTHING
        line.due[place] = judge(place, waiters, known, held, line, limit=limit, busy=busy.get(place, ()))
    again = {place for place, at in line.due.items() if at == held.usage.now}
    await keep_out(tx, held, (verdict for _, verdict in line.moved))
    await _write(tx, line, again, rules)
    return Count(len(line.let_go), len(line) - len(line.let_go)), again


async def _busy_lanes(tx: Tx, place: Place) -> set[Lane]:
    """Nobody has come for whom was let go of them: all who would run his job are busy."""
    between = map(moment, fresh_turns(tx.now.timestamp()))
    return {Lane._make(row) for row in await tx.fetch("serving.overdue_lanes", place.key, *between)}


def _lane_of(row: Record) -> tuple[str, int]:
    return row["lane_queue"], row["lane_priority"]


async def _write(tx: Tx, line: Outcome, again: set[Place], rules: Rules) -> None:
    gone = [each.row for each in line.let_go] + [row for row, _ in line.skipped]
    if gone:
        await tx.fetch("serving.unpark", [row["job_id"] for row in gone])
    for row in gone:
        tx.parked(row["lane_queue"], -1)
    slots = [
        (row["job_id"], *place, size_of(place, candidate_of(row), rules))
        for row, places, _ in line.let_go
        for place in places
    ]
    await tx.many("serving.give_slots", slots)
    turns = [job_id for job_id, barrier, *_ in slots if barrier is Barrier.RATE]
    if turns:
        await tx.fetch("serving.note_turns", turns, tx.now)
    await tx.enter_ready([_place_of(each) for each in line.let_go])
    await end_jobs(
        tx,
        [
            Ending(row["job_id"], State.CANCELLED, row["attempt"], reason=f"skipped: limit {verdict.at.key} is full")
            for row, verdict in line.skipped
        ],
    )
    await tx.many("serving.move", [(row["job_id"], *verdict.at) for row, verdict in line.moved])
    await tx.many("serving.give_tags", line.tags)
    await tx.many("serving.hand_down_tags", [(*place, *lane, *spare) for place, lane, *spare in line.spare])
    await _keep_turns(tx, line)
    await tx.many("serving.fill", [(key, moment(full_at)) for key, full_at in line.full_at.items()])
    due = [
        (*place, None if at is None else moment(at), place in line.over, place in again)
        for place, at in line.due.items()
    ]
    await tx.many("serving.look_again", due)
    later: dict[Place, float] = {}
    for _, verdict in line.moved:
        if verdict.until is not None:
            later[verdict.at] = min(later.get(verdict.at, verdict.until), verdict.until)
    await tx.many("serving.due_by", [(*place, moment(at)) for place, at in later.items()])
    await replace_others(tx, [(row["job_id"], verdict) for row, verdict in line.moved])
    if later or any(at is not None for at in line.due.values()):
        tx.hints |= Hint.TIMER


def _place_of(let_go: LetGo) -> transaction.Place:
    place = place_of(let_go.row)._replace(attached=let_go.row["attached"] or bool(let_go.slots))
    return place._replace(tag=0, seq=None) if let_go.anew else place


async def _keep_turns(tx: Tx, line: Outcome) -> None:
    kept = [(*place, *lane, *known) for place, lane, known in line.turns if known != NOTHING]
    await tx.many("serving.keep_turns", kept)
    over = [(*place, *lane) for place, lane, known in line.turns if known == NOTHING]
    await tx.many("serving.forget_turns", over)
