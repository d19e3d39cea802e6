"""Who is let go from gates: the contract leaves the order of gates open, so the model checks what the store did.

Whoever left its gate may have gone, was the oldest of its lane and tenant there, and took the slots of its limits
along; and nobody is left who could pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import TypeVar

from tests.model.model import Job, Model

from holdfast.core.fairness import Lane
from holdfast.core.gates import Barrier, BreakerGate, Place, RateGate
from holdfast.core.job import JobId, JobInfo
from holdfast.core.state import State

K = TypeVar("K")
Infos = Mapping[JobId, JobInfo | None]


def follow(
    model: Model,
    infos: Infos,
    asked_to_stop: Callable[[], Mapping[JobId, str]],
    ahead: Callable[[JobId], int],
    *,
    will_look: bool,
) -> None:
    """Take over what the store did with those who waited at gates, if it may have done so.

    `ahead`: how many are before a ready job in its lane; `will_look`: the store has said when it will look at some gate
    again.
    """
    waiting = sorted((job for job in model.jobs.values() if job.at is not None), key=model.turn)
    stayed = {job.new.id: _stayed(job, infos[job.new.id]) for job in waiting}
    # One with several gates may have gone to another and come back, while others passed; or have ended there.
    simple = [job for job in waiting if len(model.flow.gates_of(job.new)) == 1 and not _ended(infos[job.new.id])]
    for place, line in _by(simple, _line_of).items():
        for older, younger in pairwise(line):
            assert not stayed[older.new.id] or stayed[younger.new.id], (place, "not the oldest", older, younger)
    for at, line in _by(simple, lambda job: job.at).items():
        if any(stayed[job.new.id] and model.keeps(job) and job.lane not in model.last for job in line):
            early = [job for job in line if job.lane in model.last and model.keeps(job) and not stayed[job.new.id]]
            assert not early, (at, "others wait who do not come last", early)
    places = {job.new.id: job.at for job in waiting}
    let_go = [job for job in waiting if _go_on(model, job, infos[job.new.id])]
    for job in let_go:
        assert model.flow.may_go(job.new, model.now), ("something holds it back", job)
    let_go.sort(key=lambda job: (job.lane, ahead(job.new.id)))  # who comes anew is at the tail, in this order
    model.let_go([(job, at) for job in let_go if (at := places[job.new.id]) is not None])
    _keep_slots(model, let_go)
    _replaced(model, infos, asked_to_stop)
    _nobody_waits_in_vain(model, will_look=will_look)


def _stayed(job: Job, info: JobInfo | None) -> bool:
    assert info is not None, job
    return info.state is State.PARKED and (info.reason, info.waits_at) == job.at


def _ended(info: JobInfo | None) -> bool:
    return info is not None and info.state.ended


def _go_on(model: Model, job: Job, info: JobInfo | None) -> bool:
    """Where a waiter is now; whether it was let go."""
    assert info is not None, job
    match info.state:
        case State.READY:
            return True
        case State.PARKED:
            job.reason, job.park_key = info.reason, info.waits_at
        case State.CANCELLED:
            words = info.reason or ""
            assert words.startswith(("replaced by ", "skipped: limit ")), (info, job)
            model.cancel(job.new.id, words)
        case _:
            raise AssertionError((info, job))
    return False


def _keep_slots(model: Model, let_go: list[Job]) -> None:
    """Slots go with them, but to nobody whose queue is paused or, but to replace, comes last; there were so many."""
    going = [job for job in let_go if model.keeps(job)]
    taken = [each for job in going for each in model.flow.keep(job.new, model.now, comes_last=job.lane in model.last)]
    held = model.flow.usage(model.now).held  # without turns that are overdue, beside which there are others
    for place, size in taken:
        assert held[place] <= size, ("more than there are", place, model.flow.slots[place])


def _replaced(model: Model, infos: Infos, asked_to_stop: Callable[[], Mapping[JobId, str]]) -> None:
    """Holders of slots, too, are replaced by whoever came to their limit from another gate."""
    holders = {job_id for holders in model.flow.slots.values() for job_id in holders}
    for job_id in holders:
        job, info = model.jobs[job_id], infos[job_id]
        assert info is not None, job
        if info.cancel_requested and job.cancel_reason is None:
            reason = asked_to_stop()[job_id]
        elif info.state is State.CANCELLED and job.state is State.READY:
            reason = info.reason or ""
        else:
            continue
        assert reason.startswith("replaced by "), (info, job)
        model.cancel(job_id, reason)


def _nobody_waits_in_vain(model: Model, *, will_look: bool) -> None:
    """A token, or the place of the probe, is not given to anybody, nor is a slot to those who come last: whoever was
    let go for it may have been cancelled since, and then the next one goes when somebody looks again."""
    ready = [job.new for job in model.jobs.values() if job.state is State.READY]
    about_to = {_spent(gate) for new in ready for gate in model.flow.gates_of(new)}
    waiting = sorted((job for job in model.jobs.values() if job.at is not None), key=model.turn)
    heads = [line[0] for line in _by(waiting, _line_of).values()]
    for place, firsts in _by(heads, lambda job: job.at).items():
        if place is None or place in about_to:
            continue  # somebody was let go for that token, or as the probe, and has not been claimed
        soon = will_look and place.barrier in (Barrier.RATE, Barrier.BREAKER)
        held = [
            (will_look and job.lane in model.last) or model.flow.held_at(job.new, place, model.now) for job in firsts
        ]
        assert soon or any(held), ("waits in vain", firsts)


def _by(jobs: Iterable[Job], kind: Callable[[Job], K]) -> dict[K, list[Job]]:
    found: dict[K, list[Job]] = {}
    for job in jobs:
        found.setdefault(kind(job), []).append(job)
    return found


def _line_of(job: Job) -> tuple[Place | None, Lane, str | None]:
    """Those of one tenant in one lane go in the order of their places; without tags, those of a lane."""
    return job.at, job.lane, job.new.tenant if job.tag else None


def _spent(gate: object) -> Place | None:
    if isinstance(gate, RateGate):
        return Place(Barrier.RATE, gate.key)
    return Place(Barrier.BREAKER, gate.name) if isinstance(gate, BreakerGate) else None
