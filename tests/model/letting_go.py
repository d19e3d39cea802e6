"""Looking after gates as a store may do it: the gates in their order, of each the oldest who wait there. Lanes and
tenants take no turns here."""

from __future__ import annotations

from tests.model.model import Job, Model

from holdfast.core.gates import Barrier, Passed, Place, Skipped, Waits, admit
from holdfast.stores.flow import Served

#: Whoever was let go as a probe, or comes last, may never be claimed, and nothing tells.
AGAIN_S = 5.0


def let_go(model: Model, *, limit: int, only: frozenset[Barrier] = frozenset(Barrier)) -> Served:
    """Those who may pass now, or could wait elsewhere."""
    unparked = moved = 0
    due: list[float] = []
    for place in sorted({job.at for job in model.jobs.values() if job.at is not None}):
        if place.barrier not in only:
            continue
        gone, went_on, until = _let_go_from(model, place, limit - unparked - moved)
        unparked, moved = unparked + gone, moved + went_on
        due += [] if until is None else [until]
    return Served(unparked, moved, max(0.0, min(due) - model.now) if due else None)


def _let_go_from(model: Model, place: Place, most: int) -> tuple[int, int, float | None]:
    unparked = moved = 0
    untold = False
    usage = model.flow.usage(model.now)
    busy = model.busy_lanes(place)
    passed_over = any(job.lane in busy and model.keeps(job) for job in model.jobs.values() if job.at == place)
    again_at = model.now + AGAIN_S if passed_over else None
    for job in sorted((job for job in model.jobs.values() if job.at == place), key=model.turn):
        if passed_over and job.lane in busy | model.last and model.keeps(job):
            continue
        if unparked + moved >= most:
            return unparked, moved, model.now
        if job.at != place:
            continue  # it was replaced meanwhile
        [admission] = admit([model.flow.candidate(job.new)], usage, letting_go=job.lane not in model.last)
        match admission:
            case Waits(at=at, until=until) if at == place:
                if until is None and (untold or (unparked and place.barrier is Barrier.BREAKER)):
                    until = model.now + AGAIN_S
                if place.barrier is Barrier.RATE and place.key in usage.full_at:
                    model.flow.full_at[place.key] = usage.full_at[place.key]
                return unparked, moved, until if again_at is None else min(until or again_at, again_at)
            case Waits() | Skipped():
                moved += 1
                model.hold_back(job, admission)
            case Passed():
                unparked += 1
                untold |= job.lane in model.last
                _make_ready(model, job, place)
    return unparked, moved, again_at


def _make_ready(model: Model, job: Job, place: Place) -> None:
    model.let_go([(job, place)])
    if model.keeps(job):
        model.flow.keep(job.new, model.now, comes_last=job.lane in model.last)
