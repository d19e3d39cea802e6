"""Puts together why a job is where it is, out of reports of the store. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from holdfast.client.capacity import Capacity, counted
from holdfast.client.hindrances import Hindrances, date_of, moment
from holdfast.core.cause import Cause
from holdfast.core.explanation import Explanation, Reason
from holdfast.core.job import JobInfo
from holdfast.core.queue import MOST_COUNTED, QueueInfo
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.stores.flow import Circumstances, Position

_MOST_NAMED: Final = 5
_NONE: Final = Circumstances()
_NO_BOUNDS: Final[Mapping[str, int]] = {}


async def explain(store: Store, info: JobInfo, *, bounds: Mapping[str, int] = _NO_BOUNDS) -> Explanation:
    """One job, as the store has it now; it may have moved on meanwhile.

    `bounds`: by queue, how many of its jobs a worker runs at once, as far as the settings of this process say it; what
    operators say goes before.
    """
    if info.state.ended:
        why = f": {info.reason}" if info.reason else ""
        reason = Reason("ended", f"ended {info.state}{why}", {"reason": info.reason})
        return Explanation(info.id, info.state, (reason,))
    if info.state is State.RUNNING:
        return Explanation(info.id, info.state, (_running(info),))
    found = await store.circumstances(info.id) or _NONE
    queues = {queue.name: queue for queue in await store.list_queues()}
    hindrances = await Hindrances.look(store, info, found, queues.get(info.queue))
    explanation = Explanation(info.id, info.state, tuple(hindrances.reasons()), tuple(_notes(info, found, queues)))
    match info.state:
        case State.SCHEDULED:
            first = _scheduled(info)
            starts_at = None if info.run_at is None else hindrances.not_before(info.run_at)
            return replace(explanation, held_by=(first, *explanation.held_by), starts_at=starts_at)
        case State.BLOCKED:
            return replace(explanation, held_by=(_blocked(found), *explanation.held_by))
        case State.PARKED:
            return replace(explanation, held_by=hindrances.parked_first(), starts_at=hindrances.ends_at())
        case _:
            position = await store.position(info.id)
            if position is None:
                return explanation
            capacity = Capacity(
                info,
                workers=hindrances.workers,
                queues=queues,
                bound=_bound(info, queues, bounds),
                alone=found.alone,
                waited_s=hindrances.now - position.entered_at.timestamp(),
                lately=found.lately,
            )
            return _ready(info, found, position, capacity, explanation, now=hindrances.now)


def _bound(info: JobInfo, queues: Mapping[str, QueueInfo], bounds: Mapping[str, int]) -> int | None:
    queue = queues.get(info.queue)
    if queue is None or queue.settings.options.concurrency is None:
        return bounds.get(info.queue)
    return queue.settings.options.bound


def _running(info: JobInfo) -> Reason:
    asked = "; it was asked to stop" if info.cancel_requested else ""
    data = {"worker": info.worker, "attempt": info.attempt, "cancel_requested": info.cancel_requested}
    return Reason("running", f"runs on worker {info.worker}, attempt {info.attempt}{asked}", data)


def _scheduled(info: JobInfo) -> Reason:
    last = info.attempts[-1] if info.attempts else None
    waits = last is not None and last.cause in (Cause.RETRY, Cause.SNOOZE)
    put_off = last.error.put_off if waits and last is not None and last.error is not None else ""
    sentence = f"waits for {'its time' if last is None else 'its next attempt'}, at {info.run_at:%Y-%m-%d %H:%M:%S} UTC"
    data = {"run_at": info.run_at}
    if not put_off:
        return Reason("scheduled", sentence, data)
    sentence += f", which the retry budget of its queue has put off by {put_off}"
    return Reason("scheduled", sentence, {**data, "put_off_by": put_off})


def _blocked(found: Circumstances) -> Reason:
    ids = [str(each) for each in found.waits_for]
    more = ", …" if len(ids) > _MOST_NAMED else ""
    named = f": {', '.join(ids[:_MOST_NAMED])}{more}" if ids else ""
    return Reason("blocked", f"waits for other jobs to end{named}", {"waits_for": ids})


def _notes(info: JobInfo, found: Circumstances, queues: dict[str, QueueInfo]) -> Iterator[Reason]:
    queue = queues.get(info.queue)
    if queue is not None and queue.settings.draining:
        sentence = f"queue {info.queue!r} is being drained: it accepts nothing new, and this one goes on"
        yield Reason("draining", sentence)
    if found.alone:
        sentence = "it runs alone, since two processes died while it ran, so it waits for an idle one"
        yield Reason("alone", sentence)
    if info.expires_at is not None:
        sentence = f"it is cancelled if it has not started by {moment(info.expires_at)}"
        yield Reason("expires", sentence, {"expires_at": info.expires_at})


def _ready(
    info: JobInfo,
    found: Circumstances,
    position: Position,
    capacity: Capacity,
    explanation: Explanation,
    *,
    now: float,
) -> Explanation:
    """What workers make of it; its place, its lane's share, and an estimate from how many of the lane ended lately."""
    held_by = (*explanation.held_by, *capacity.hindrances())
    ahead, share = position.ahead, capacity.share()
    first = f"{counted(ahead, 'job of its lane comes', 'jobs of its lane come')} first"
    sentence = first if ahead else "it is the next of its lane"
    sentence += f" (queue {info.queue!r}, priority {info.priority}{_share_in_words(share)})"
    starts_in_s = _starts_in_s(found, ahead, capacity, held_by)
    if starts_in_s:
        sentence += f"; as lately, it starts in about {starts_in_s:.0f} s"
    rounded = None if share is None else round(share, 4)
    lane = Reason("lane", sentence, {"ahead": ahead, "share": rounded, "entered_at": position.entered_at})
    return replace(
        explanation,
        held_by=held_by,
        notes=(lane, *explanation.notes),
        starts_at=None if starts_in_s is None else date_of(now + starts_in_s, now),
    )


def _share_in_words(share: float | None) -> str:
    """Nothing where nothing is shared out: of a paused queue, of a lane of weight 0 beside others."""
    if not share:
        return ""
    return ", less than 1% of the starts" if share < 0.01 else f", {share:.0%} of the starts"


def _starts_in_s(found: Circumstances, ahead: int, capacity: Capacity, held_by: tuple[Reason, ...]) -> float | None:
    """At the pace at which runs of its lane have ended lately; None where that, or what keeps it, tells nothing."""
    if any(each.kind != "workers_busy" for each in held_by) or ahead >= MOST_COUNTED:
        return None
    if not held_by and not ahead and capacity.may_start_now:
        return 0.0
    return (ahead + 1) * found.lately.over_s / found.lately.of_lane if found.lately.of_lane else None
