"""Puts together why a job is where it is, out of reports of the store. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from holdfast.client.hindrances import Hindrances, moment
from holdfast.core.explanation import Explanation, Reason
from holdfast.core.job import JobInfo
from holdfast.core.priority import DEFAULT_WEIGHTS, weight_of
from holdfast.core.queue import MOST_COUNTED, QueueInfo
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.stores.flow import LATELY_S, Circumstances

_MOST_NAMED: Final = 5
_NONE: Final = Circumstances()


async def explain(store: Store, info: JobInfo) -> Explanation:
    """One job, as the store has it now; it may have moved on meanwhile."""
    if info.state.ended:
        why = f": {info.reason}" if info.reason else ""
        return Explanation(info.id, info.state, (Reason("ended", f"ended {info.state}{why}", {"reason": info.reason}),))
    if info.state is State.RUNNING:
        return Explanation(info.id, info.state, (_running(info),))
    found = await store.circumstances(info.id) or _NONE
    queues = {queue.name: queue for queue in await store.list_queues()}
    hindrances = await Hindrances.look(store, info, found, queues.get(info.queue))
    explanation = Explanation(info.id, info.state, tuple(hindrances.reasons()), tuple(_notes(info, found, queues)))
    match info.state:
        case State.SCHEDULED:
            first = _scheduled(info)
            return replace(explanation, held_by=(first, *explanation.held_by), starts_at=info.run_at)
        case State.BLOCKED:
            return replace(explanation, held_by=(_blocked(found), *explanation.held_by))
        case State.PARKED:
            return replace(explanation, held_by=hindrances.parked_first(), starts_at=hindrances.ends_at())
        case _:
            return await _ready(store, info, found, queues, explanation, hindrances.now)


def _running(info: JobInfo) -> Reason:
    asked = "; it was asked to stop" if info.cancel_requested else ""
    data = {"worker": info.worker, "attempt": info.attempt, "cancel_requested": info.cancel_requested}
    return Reason("running", f"runs on worker {info.worker}, attempt {info.attempt}{asked}", data)


def _scheduled(info: JobInfo) -> Reason:
    why = "its next attempt" if info.attempts else "its time"
    return Reason("scheduled", f"waits for {why}, at {info.run_at:%Y-%m-%d %H:%M:%S} UTC", {"run_at": info.run_at})


def _blocked(found: Circumstances) -> Reason:
    ids = [str(each) for each in found.waits_for]
    more = ", …" if len(ids) > _MOST_NAMED else ""
    named = f": {', '.join(ids[:_MOST_NAMED])}{more}" if ids else ""
    return Reason("blocked", f"waits for other jobs to end{named}", {"waits_for": ids})


def _notes(info: JobInfo, found: Circumstances, queues: dict[str, QueueInfo]) -> Iterator[Reason]:
    queue = queues.get(info.queue)
    if queue is not None and queue.settings.draining:
        yield Reason("draining", f"queue {info.queue!r} is being drained: it accepts nothing new, and this one goes on")
    if found.alone:
        yield Reason("alone", "it runs alone, since two processes died while it ran, so it waits for an idle one")
    if info.expires_at is not None:
        sentence = f"it is cancelled if it has not started by {moment(info.expires_at)}"
        yield Reason("expires", sentence, {"expires_at": info.expires_at})


async def _ready(
    store: Store,
    info: JobInfo,
    found: Circumstances,
    queues: dict[str, QueueInfo],
    explanation: Explanation,
    now: float,
) -> Explanation:
    """Its place, its lane's share, and from how many of the lane ended lately an estimate."""
    position = await store.position(info.id)
    if position is None:
        return explanation
    ahead = position.ahead
    share = _share(info, queues)
    many = f"{ahead:,}{'+' if ahead >= MOST_COUNTED else ''}"
    first = "it is the next of its lane" if not ahead else f"{many} jobs of its lane come first"
    sentence = f"{first} (queue {info.queue!r}, priority {info.priority}, {share:.0%} of the starts)"
    data = {"ahead": ahead, "share": round(share, 4), "entered_at": position.entered_at}
    starts_s = None
    if not explanation.held_by and ahead < MOST_COUNTED:
        per_s = found.ended_lately / LATELY_S
        starts_s = 0.0 if not ahead else ahead / per_s if per_s else None
    if starts_s is not None and ahead:
        sentence += f"; as lately, it starts in about {starts_s:.0f} s"
    return replace(
        explanation,
        notes=(Reason("lane", sentence, data), *explanation.notes),
        starts_at=None if starts_s is None else datetime.fromtimestamp(now + starts_s, UTC),
    )


def _share(info: JobInfo, queues: dict[str, QueueInfo]) -> float:
    """The part of all starts that its lane gets while the same lanes have ready jobs; 0 with weight 0."""
    weights = {
        (queue.name, priority): queue.settings.weight * weight_of(priority, queue.settings.weights or DEFAULT_WEIGHTS)
        for queue in queues.values()
        for priority in queue.by_priority
        if not queue.settings.paused
    }
    own = weights.get((info.queue, info.priority), 0.0)
    total = sum(weights.values())
    return own / total if total else 0.0
