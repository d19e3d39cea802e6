"""Who is let go from gates: the contract leaves the order of gates open, so the model checks what the store did.

Whoever left its gate may have gone, was the oldest there, and took the slots of its limits along; and nobody is left
who could pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from tests.model.model import Job, Model

from holdfast.core.gates import Barrier, BreakerGate, Place, RateGate
from holdfast.core.job import JobId, JobInfo
from holdfast.core.state import State

Infos = Mapping[JobId, JobInfo | None]


def follow(model: Model, infos: Infos, asked_to_stop: Callable[[], Mapping[JobId, str]], *, will_look: bool) -> None:
    """Take over what the store did with those who waited at gates, if it may have done so.

    `will_look`: it has said when it will look at some gate again.
    """
    waiting = sorted((job for job in model.jobs.values() if job.at is not None), key=model.turn)
    lines: dict[Place, list[Job]] = {}
    for job in waiting:
        assert job.at is not None
        lines.setdefault(job.at, []).append(job)
    stayed = {job.new.id: _stayed(job, infos[job.new.id]) for job in waiting}
    for place, line in lines.items():
        # One with several gates may have gone to another and come back, while others passed; or have ended there.
        simple = [job for job in line if len(model.flow.gates_of(job.new)) == 1 and not _ended(infos[job.new.id])]
        for older, younger in pairwise(simple):
            assert not stayed[older.new.id] or stayed[younger.new.id], (place, "not the oldest", older, younger)
    let_go = [job for job in waiting if _go_on(model, job, infos[job.new.id])]
    for job in let_go:
        assert model.flow.may_go(job.new, model.now), ("something holds it back", job)
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
            job.state = State.READY  # at its old place
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
    taken = [each for job in going for each in model.flow.keep(job.new, comes_last=job.lane in model.last)]
    for place, size in taken:
        assert len(model.flow.slots[place]) <= size, ("more than there are", place, model.flow.slots[place])


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
    heads: dict[Place, Job] = {}
    for job in sorted((job for job in model.jobs.values() if job.at is not None), key=model.turn):
        assert job.at is not None
        heads.setdefault(job.at, job)
    for place, job in heads.items():
        if place in about_to:
            continue  # somebody was let go for that token, or as the probe, and has not been claimed
        by_and_by = will_look and (place.barrier in (Barrier.RATE, Barrier.BREAKER) or job.lane in model.last)
        assert by_and_by or model.flow.held_at(job.new, place, model.now), ("waits in vain", job)


def _spent(gate: object) -> Place | None:
    if isinstance(gate, RateGate):
        return Place(Barrier.RATE, gate.key)
    return Place(Barrier.BREAKER, gate.name) if isinstance(gate, BreakerGate) else None
