"""What is taken of gates, as the open transaction has it, and the slots that jobs take and free. Who may pass is for
`core.gates` to say."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.core.breaker import Phase
from holdfast.core.gates import (
    Barrier,
    Candidate,
    Passed,
    Place,
    Rules,
    Usage,
    fresh_turns,
    kept_slots,
    places_of,
    turns_used,
)
from holdfast.core.gates_text import read_gates
from holdfast.stores.base import Hint
from holdfast.stores.gate_rows import places_of_rows, seconds_of
from holdfast.stores.rule_rows import rules_of
from holdfast.stores.sqlite import breakers
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.transaction import Tx

SQL = load("gates")


def read_rules(db: sqlite3.Connection) -> Rules:
    """What operators have said; none of it in memory, because other processes change it."""
    return rules_of(db.execute(SQL["rules"]))


def read_usage(tx: Tx, usage: Usage, candidates: Iterable[Candidate]) -> None:
    """Add what is taken of the gates of these, where the usage does not know it yet."""
    counted: defaultdict[Barrier, list[str]] = defaultdict(list)
    for place in places_of(candidates, usage.rules):
        match place.barrier:
            case Barrier.RATE if place not in usage.held:
                full_at, turns, fresh = tx.db.execute(SQL["rate"], (place.key, *fresh_turns(tx.now))).fetchone()
                usage.held[place], usage.overdue[place] = fresh, turns - fresh
                if (full_s := seconds_of(full_at)) is not None:
                    usage.full_at[place.key] = full_s
            case Barrier.BREAKER if place.key not in usage.breakers:
                usage.breakers[place.key] = state = breakers.read(tx.db, place.key)
                if state.phase(tx.now) is not Phase.CLOSED:
                    counted[place.barrier].append(place.key)
            case Barrier.LIMIT if place not in usage.held:
                usage.held[place] = 0
                counted[place.barrier].append(place.key)
    for barrier, keys in counted.items():
        for key, count in tx.db.execute(SQL["held"], (barrier, json.dumps(keys))):
            usage.held[Place(barrier, key)] = count


def slots_of(tx: Tx, job_id: bytes) -> frozenset[Place]:
    """What a job holds."""
    return frozenset(places_of_rows(tx.db.execute(SQL["slots_of"], (job_id,))))


def take(tx: Tx, passed: Sequence[tuple[bytes, Candidate, Passed]], usage: Usage) -> None:
    """Slots and tokens of those who may run; the usage knows what is left of the tokens. Turns that were kept for them
    at rates are used, and those who wait there are looked at when the next token is there."""
    for job_id, _, admission in passed:
        take_slots(tx, job_id, admission.takes)
    spent = {key for *_, admission in passed for key in admission.spends}
    if spent:
        tx.db.executemany(SQL["spend"], [(key, usage.full_at[key]) for key in sorted(spent)])
    for job_id, candidate, _ in passed:
        for place, next_at in turns_used(candidate, usage) if candidate.has else ():
            tx.db.execute(SQL["free_one"], (job_id, *place))
            make_due(tx, place, next_at)


def take_slots(tx: Tx, job_id: bytes, places: Iterable[Place]) -> None:
    """They are this job's, until something frees them."""
    tx.db.executemany(SQL["take"], [(*place, job_id, tx.now) for place in places])


def free_slots(tx: Tx, job_ids: Sequence[bytes]) -> None:
    """Jobs that no longer run free their slots; those who wait for them are served at the end of the verb."""
    for job_id in job_ids:
        note_freed(tx, tx.db.execute(SQL["free"], (job_id,)).fetchall())


def forget_slots(tx: Tx, job_ids: Sequence[bytes]) -> None:
    """The same where nobody waits for any slot."""
    tx.db.executemany(SQL["forget"], [(job_id,) for job_id in job_ids])


def free_reserved(tx: Tx, queue: str) -> None:
    """Nobody claims from this queue any more: the slots that were given to jobs of it go to others."""
    note_freed(tx, tx.db.execute(SQL["free_reserved"], (queue,)).fetchall())


def free_left_to_last(tx: Tx, queue: str, priorities: Sequence[int]) -> None:
    """Jobs of these lanes come last now: so do slots that would not have been given to them."""
    for job_id, kind, key, gates in tx.db.execute(SQL["kept_in"], (queue, json.dumps(priorities))).fetchall():
        for place in places_of_rows([(kind, key)]):
            if not kept_slots(Candidate("", queue, "", read_gates(gates)), [place], comes_last=True):
                tx.db.execute(SQL["free_one"], (job_id, kind, key))
                tx.freed[place] = None


def note_freed(tx: Tx, rows: Iterable[tuple[str, str]]) -> None:
    """From rows of `slot` that are gone."""
    tx.freed.update(dict.fromkeys(places_of_rows(rows)))


def park(tx: Tx, row: tuple[Any, ...], queue: str) -> None:
    """(reason, key, tag, seq, job_id, attempt, losses, crashes, priority, tenant, line) of a job that has left where
    it was."""
    tx.db.execute(SQL["park"], (*row, tx.now, queue))
    tx.entered_parked(queue, 1)


def make_due(tx: Tx, place: Place, at: float) -> None:
    """Somebody is to look there by then, if anybody waits."""
    if tx.db.execute(SQL["make_due"], (*place, at)).rowcount:
        tx.hints |= Hint.TIMER


def make_all_due(tx: Tx) -> None:
    """What operators say has changed, so anybody may be free to go."""
    tx.db.execute(SQL["make_all_due"], (tx.now,))
    tx.hints |= Hint.TIMER
