"""serve_gates: whoever waits at a gate that may let it pass becomes ready, mostly at its old place; so it is with slots
that were freed, in the transaction that freed them (decision 0006)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from holdfast.core.fairness import Lane
from holdfast.core.gates import Admission, Barrier, Passed, Place, Usage, Waits, admit, comes_anew, kept_slots
from holdfast.core.queue import QueueSettings
from holdfast.stores.flow import Served
from holdfast.stores.parking import BEHIND, LATE_S
from holdfast.stores.queue_rows import share_in_line
from holdfast.stores.sqlite.admission import hold_back, unpark
from holdfast.stores.sqlite.end import bury_headless
from holdfast.stores.sqlite.gates import SQL as GATES
from holdfast.stores.sqlite.gates import make_due, note_freed, read_rules, read_usage, take_slots
from holdfast.stores.sqlite.lines import SQL as LINES
from holdfast.stores.sqlite.lines import Line, settings_of
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.tails import queue_up
from holdfast.stores.sqlite.transaction import Tx

SQL = load("serve")

#: Of one gate, in one transaction: everybody else waits for it.
SERVED_AT_ONCE: Final = 1000
_COMPARED = 10_000  # of those who stand behind others: so many does a sweep look at
_SOON_S = 0.001
_UNTOLD_S = 5.0  # whoever was let go without a slot, and is never claimed, frees nothing that would tell


class _Outcome(NamedTuple):
    unparked: int
    moved: int
    due_at: float | None
    """When to look again; None: whatever frees the next one says so, or nobody is left."""


def serve_gates(tx: Tx, *, limit: int) -> Served:
    """Look after gates that are due, up to a number of waiters."""
    unparked = moved = 0
    for row in tx.db.execute(SQL["due"], (tx.now, limit)).fetchall():
        if unparked + moved >= limit:
            break
        place = _place(row)
        found = _serve(tx, place, most=limit - unparked - moved)
        tx.db.execute(SQL["set_due"], (found.due_at, *place))
        unparked, moved = unparked + found.unparked, moved + found.moved
    unparked += serve_freed(tx)
    (next_due,) = tx.db.execute(SQL["next_due"]).fetchone() or (None,)
    return Served(unparked, moved, None if next_due is None else max(0.0, next_due - tx.now))


def serve_freed(tx: Tx) -> int:
    """Slots that this verb has freed go with the oldest waiters; also how many that were.

    They take the slots with them, so that nobody who comes later overtakes them between here and their claim. What is
    more than a transaction can bear is left to `serve_gates`, as are the probes of breakers.
    """
    unparked = 0
    while tx.freed:
        place, _ = tx.freed.popitem()
        if place.barrier is not Barrier.LIMIT:
            make_due(tx, place, tx.now)
            continue
        found = _serve(tx, place, most=SERVED_AT_ONCE)
        unparked += found.unparked
        if found.due_at is not None:
            make_due(tx, place, found.due_at)
    return unparked


def sweep_gates(tx: Tx, *, limit: int) -> tuple[int, bool]:
    """The net: waiters that nobody was told of, and those that nobody has come for; how many that were, and whether
    there may be more. Whoever's time has only just come was not left behind: whoever promotes was about to come."""
    _step_forward(tx, limit=limit)
    left = unparked = serve_freed(tx)
    late = set(tx.db.execute(SQL["due"], (tx.now - LATE_S, limit)).fetchall())
    overlooked = tx.db.execute(SQL["overlooked"], {"now": tx.now, "limit": limit}).fetchall()
    late.update(overlooked)
    for row in tx.db.execute(SQL["due"], (tx.now, limit)).fetchall() + overlooked:
        if unparked >= SERVED_AT_ONCE:
            break
        outcome = _serve(tx, _place(row), most=SERVED_AT_ONCE - unparked)
        tx.db.execute(SQL["set_due"], (outcome.due_at, *row))
        if outcome.due_at is not None:
            make_due(tx, _place(row), outcome.due_at)
        unparked += outcome.unparked
        left += outcome.unparked if row in late else 0
    freed = serve_freed(tx)
    return left + freed, unparked + freed >= SERVED_AT_ONCE


def _step_forward(tx: Tx, *, limit: int) -> None:
    """Who stands behind others for no reason, as programs of earlier versions leave them, has its place again."""
    tx.db.execute(SQL["step_forward_in_lanes"], (BEHIND, limit))
    for (job_id,) in tx.db.execute(SQL["astray"], (BEHIND, _COMPARED)).fetchall():
        tx.db.execute(SQL["step_back"], (BEHIND, job_id))


def sweep_slots(tx: Tx, *, limit: int) -> int:
    """Slots of jobs that neither run nor are about to, and gates of which nothing has to be known any more."""
    tx.db.execute(SQL["forget_gates"], (tx.now, limit))
    tx.db.execute(LINES["forget_empty"], (limit,))
    freed = tx.db.execute(SQL["stale_slots"], (limit,)).fetchall()
    note_freed(tx, freed)
    return len(freed)


def _place(row: tuple[str, str]) -> Place:
    return Place(Barrier(row[0]), row[1])


def _share_of(tx: Tx) -> Callable[[Lane], float | None]:
    """The shares of lanes; None where nobody comes for their jobs."""
    settings: dict[str, QueueSettings | None] = {}

    def share(lane: Lane) -> float | None:
        if lane.queue not in settings:
            (served,) = tx.db.execute(SQL["is_served"], (lane.queue,)).fetchone()
            settings[lane.queue] = settings_of(tx, lane.queue) if served else None
        found = settings[lane.queue]
        return None if found is None else share_in_line(found, lane.priority)

    return share


def _serve(tx: Tx, place: Place, *, most: int) -> _Outcome:
    """Let those who wait here go, each in its turn, until one has to go on waiting. Tokens and probes are only counted,
    not taken: that is for the claim to do. So it is with slots for jobs of lanes that come last: they get what is left,
    and keep nothing from the others until they run (decision 0140)."""
    line = Line(tx, place, _share_of(tx))
    outcome = _go_along(tx, place, line, most=most)
    line.keep()
    return outcome


def _go_along(tx: Tx, place: Place, line: Line, *, most: int) -> _Outcome:
    unparked = moved = gone = 0
    kept_nothing = False
    again = [tx.now + _UNTOLD_S] if line.passed_over else []
    spent = set[str]()  # what is left to those who come last
    usage = Usage(tx.now, rules=read_rules(tx.db))
    while gone < most:  # those who stay do not count: each is of another lane
        waiter = line.next(partial(read_usage, tx, usage))
        if waiter is None:
            # There are others, in lanes that were not looked at; nobody may go there where all of these had to stay.
            return _Outcome(unparked, moved, tx.now if line.cut and gone else min(again, default=None))
        job, served = waiter.standing, waiter.share is not None
        if not job.candidate.task:
            unpark(tx, job)
            line.went(waiter)
            bury_headless(tx, job.job_id, job.attempt)
            gone += 1
            continue
        # Nobody waits for a job that nobody comes for: it takes what it needs when it is claimed, or waits again.
        at_gates = usage if served else replace(usage, held=dict(usage.held), full_at=dict(usage.full_at))
        # One who comes last is not given a turn at a rate, and counts as if it began now.
        [admission] = admit([job.candidate], at_gates, letting_go=bool(waiter.share))
        if isinstance(admission, Waits) and admission.at == place:
            if place.barrier is Barrier.RATE and place.key in usage.full_at and place.key not in spent:
                # Its pace may have been made quicker.
                tx.db.execute(GATES["spend"], (place.key, usage.full_at[place.key]))
            untold = kept_nothing or (bool(unparked) and place.barrier is Barrier.BREAKER)
            due_at = _again_at(tx, admission, untold=untold)
            again += [] if due_at is None else [due_at]
            if served:
                return _Outcome(unparked, moved, min(again, default=None))
            line.leave(waiter)  # others may pass: it may be of a smaller size, and nobody comes for it
            continue
        gone += 1
        if not isinstance(admission, Passed):
            hold_back(tx, job, _looked_after(tx, admission, untold=kept_nothing))
            line.went(waiter)
            moved += isinstance(admission, Waits)
            continue
        unpark(tx, job)
        line.took(waiter)
        slots = kept_slots(job.candidate, admission.takes, comes_last=waiter.share == 0) if served else ()
        take_slots(tx, job.job_id, slots)
        kept_nothing = kept_nothing or waiter.share == 0
        spent.update(admission.spends if served else ())
        if job.tag and comes_anew(job.candidate, place, admission.takes, usage.rules):
            queue_up(tx, [(*job.lane, *job.again)])
        else:
            tx.enter_ready([job.ready])
        unparked += 1
    return _Outcome(unparked, moved, tx.now)


def _looked_after(tx: Tx, admission: Admission, *, untold: bool) -> Admission:
    """Whoever goes on to a breaker may wait there for a probe that was only let go, which tells nothing either; or for
    a slot that was left to one who comes last."""
    if not isinstance(admission, Waits) or admission.until is not None:
        return admission
    probed = admission.at.barrier is Barrier.BREAKER
    return admission._replace(until=tx.now + _UNTOLD_S) if probed or untold else admission


def _again_at(tx: Tx, waits: Waits, *, untold: bool) -> float | None:
    if waits.until is not None:
        return max(waits.until, tx.now + _SOON_S)
    return tx.now + _UNTOLD_S if untold else None
