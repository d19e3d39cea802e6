"""I3, I4, I11, I14, I15: how jobs moved, how they ended, and what is left when the work is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.history.joined import Joined
from tests.history.records import Answer, JobRecord, Op
from tests.history.report import Violation

from holdfast.core.state import LIVE, State
from holdfast.core.transition import allowed

#: A job that is due for longer than this when the work is over has been forgotten.
OVERDUE_S = 2.0
#: The reason under which jobs are parked that wait for a slot of their limit.
LIMIT = "limit"


def one_ending(joined: Joined) -> Iterator[Violation]:
    """I3: one terminal transition; only a replay opens a new chapter. Callers were told right."""
    for job_id, moves in joined.moves.items():
        ended: State | None = None
        for move in moves:
            if move.ends:
                if ended is not None:
                    yield Violation("I3", job_id, f"had ended as {ended}, and ended again as {move.target}")
                ended = move.target
            elif move.replays:
                ended = None
    for job_id, record in joined.store.jobs.items():
        states = [str(place.state) for place in record.places]
        if record.ending and len(states) > 1:
            yield Violation("I3", job_id, f"has ended, but is in several states: {', '.join(states)}")
        for call in joined.calls.get(job_id, ()):
            cancelled = call.op is Op.CANCEL and call.answer is Answer.OK and call.told == State.CANCELLED
            if cancelled and State.CANCELLED not in states:
                yield Violation("I3", job_id, f"is {', '.join(states)}, but a caller was told that it is cancelled")


def success_had_effect(joined: Joined) -> Iterator[Violation]:
    """I4: what succeeded had an effect, and the run that is on record as its end did return."""
    for job_id, record in joined.store.jobs.items():
        for place in record.places:
            if place.state is not State.SUCCEEDED:
                continue
            if job_id not in joined.with_effect:
                yield Violation("I4", job_id, "succeeded, but no run of it had an effect")
            ends = joined.ends.get((job_id, place.token), ()) if place.token is not None else ()
            if not any(line.outcome == "ok" for line in ends):
                yield Violation("I4", job_id, f"succeeded under token {place.token}, but that run never returned")


def allowed_moves(joined: Joined) -> Iterator[Violation]:
    """I11: only along the state machine; in one state at a time; and the trail leads to where the job is."""
    for job_id, moves in joined.moves.items():
        for move in moves:
            if not allowed(move.source, move.target):
                yield Violation("I11", job_id, f"moved {move}, which no verb does (audit row {move.n})")
        record = joined.store.jobs.get(job_id)
        now = record.places[0].state if record and record.places else None
        if moves and moves[-1].target is not now:
            yield Violation("I11", job_id, f"is {now or 'nowhere'}, but its last move was {moves[-1]}")
    for job_id, record in joined.store.jobs.items():
        if len(record.places) > 1 and not record.ending:
            states = ", ".join(place.state for place in record.places)
            yield Violation("I11", job_id, f"is in several states: {states}")


def convergence(joined: Joined) -> Iterator[Violation]:
    """I14: when the work is over, what lives waits for a time, for a person, or for a job that does."""
    if not joined.rules.quiescent:
        return
    for job_id, record in joined.store.jobs.items():
        if why := _stuck(joined, record):
            yield Violation("I14", job_id, why)


def counters(joined: Joined) -> Iterator[Violation]:
    """I15: the counted depth of every queue is its recounted depth."""
    recount = Counter(
        record.queue for record in joined.store.jobs.values() for place in record.places if place.state is State.READY
    )
    for queue in sorted(recount.keys() | joined.store.depth.keys()):
        counted = joined.store.depth.get(queue, 0)
        if counted != recount[queue]:
            yield Violation("I15", "", f"queue {queue!r}: the counter says {counted}, {recount[queue]} are ready")


def _stuck(joined: Joined, record: JobRecord) -> str | None:
    for place in record.places:
        match place.state:
            case State.READY | State.RUNNING:
                return f"is still {place.state} when the work is over"
            case State.SCHEDULED if place.due_at is not None and place.due_at < joined.store.as_of - OVERDUE_S:
                return f"is scheduled, but has been due for {joined.store.as_of - place.due_at:.1f} s"
            case State.PARKED if place.reason == LIMIT:
                return "is parked for a limit, though nothing runs that could hold it"
            case State.PARKED if not place.reason:
                return "is parked without a reason"
            case State.BLOCKED if not _waits_for_something(joined, record, seen=set()):
                return "is blocked, though nothing that could release it is alive"
            case _:
                pass
    return None


def _waits_for_something(joined: Joined, record: JobRecord, seen: set[str]) -> bool:
    """Whether a chain of blocked jobs ends at one that lives and is not blocked; a circle never does.

    One at the end that is stuck is reported for itself: to report all behind it as well would only hide it.
    """
    seen.add(record.job_id)
    for job_id in record.waits_for:
        other = joined.store.jobs.get(job_id)
        states = {place.state for place in other.places} if other else set()
        if states & (LIVE - {State.BLOCKED}):
            return True
        if other and State.BLOCKED in states and job_id not in seen and _waits_for_something(joined, other, seen):
            return True
    return False
