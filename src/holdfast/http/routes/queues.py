"""Queues: how full they are, whether they accept; weights, watermarks, options, pausing, draining, purging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from fastapi import Response
from pydantic import Field

from holdfast.core.api_key import Scope
from holdfast.core.priority import DEFAULT_WEIGHTS
from holdfast.core.queue import RATES_OVER_S, QueueInfo, QueueRates, QueueSettings
from holdfast.http.bodies import CancelBody, OptionsBody, QueuePath, WatermarksBody, WeightsBody
from holdfast.http.call import Call, Called
from holdfast.http.caller import Reach
from holdfast.http.problem import Problem
from holdfast.http.problems import QUEUE_NOT_FOUND
from holdfast.http.route_table import Routes, Takes
from holdfast.http.views import View

routes = Routes("queues")


class WeightsView(View):
    """A queue's share, and those of its priorities among themselves."""

    weight: float
    priorities: dict[str, float]
    is_default: bool = Field(description="Whether nothing was set.")


class RatesView(View):
    """How quickly its jobs came, began and ended lately, from the newest jobs that the store has."""

    enqueued_per_s: float
    started_per_s: float = Field(description="Of jobs that run yet, or have ended; of each, its last run.")
    ended_per_s: float
    over_s: float = Field(description="The time that this is about: a minute, or less where very much happened.")


class OptionsView(View):
    """What operators say of how processes treat a queue; null: as each process is configured, `none`: no bound."""

    concurrency: int | Literal["none"] | None
    retry_budget: float | Literal["none"] | None
    bypass_priority: int | Literal["none"] | None


class QueueView(View):
    """A queue. `ready` is exact; the other numbers may be counted up to 10,000 only."""

    name: str
    ready: int
    scheduled: int
    blocked: int
    parked: int
    running: int
    dead: int
    by_priority: dict[int, int]
    oldest_ready_s: float | None
    accepting: bool
    paused: bool
    draining: bool
    high_watermark: int
    low_watermark: int
    high_age_s: float | None
    low_age_s: float | None
    weights: WeightsView
    options: OptionsView
    rates: RatesView


class QueuesView(View):
    """All queues, by name."""

    queues: list[QueueView]


class PurgedView(View):
    """How many jobs were cancelled."""

    count: int


@routes.get("/queues", reach=Reach.QUEUE)
async def list_queues(call: Called) -> QueuesView:
    """Every queue that has, or has ever had, a job or a setting; of a key that is bound to queues, those."""
    bound = call.caller.queues
    found = [each for each in await call.hf.queues.list() if bound is None or each.name in bound]
    rates = await call.hf.queues.rates()
    return QueuesView(queues=[_view(call, each, rates) for each in sorted(found, key=lambda queue: queue.name)])


@routes.get("/queues/{queue}", reach=Reach.QUEUE, problems=(QUEUE_NOT_FOUND,))
async def get_queue(call: Called, queue: QueuePath) -> QueueView:
    """One queue."""
    return _view(call, await _queue(call, queue), await call.hf.queues.rates())


@routes.get("/queues/{queue}/weights", reach=Reach.QUEUE, problems=(QUEUE_NOT_FOUND,))
async def get_weights(call: Called, queue: QueuePath) -> WeightsView:
    """Its share against other queues, and those of its priorities among themselves."""
    return _weights((await _queue(call, queue)).settings)


@routes.add("PATCH", "/queues/{queue}/weights", scope=Scope.OPERATE, reach=Reach.QUEUE, takes=Takes.ONE)
async def patch_weights(call: Called, queue: QueuePath, body: WeightsBody) -> WeightsView:
    """Change shares; what is left out stays, also a priority's. Workers take them up within a second."""
    priorities = None if body.priorities is None else body.priorities.given()
    await call.hf.queues.set_weights(queue, weight=body.weight, priorities=priorities, by=call.caller.name)
    return _weights((await _queue(call, queue)).settings)


@routes.add("DELETE", "/queues/{queue}/weights", scope=Scope.OPERATE, reach=Reach.QUEUE)
async def delete_weights(call: Called, queue: QueuePath) -> WeightsView:
    """Back to the shares that are built in."""
    await call.hf.queues.clear_weights(queue, by=call.caller.name)
    return _weights((await _queue(call, queue)).settings)


@routes.add("PATCH", "/queues/{queue}/watermarks", scope=Scope.OPERATE, reach=Reach.QUEUE, takes=Takes.ONE)
async def patch_watermarks(call: Called, queue: QueuePath, body: WatermarksBody) -> QueueView:
    """Change the depths or ages at which it stops accepting, and accepts again; what is left out stays."""
    given: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    await call.hf.queues.set_watermarks(queue, **given, by=call.caller.name)
    return _view(call, await _queue(call, queue), await call.hf.queues.rates())


@routes.add("DELETE", "/queues/{queue}/watermarks", scope=Scope.OPERATE, reach=Reach.QUEUE)
async def delete_watermarks(call: Called, queue: QueuePath) -> QueueView:
    """Back to the depths that are configured, and none by age."""
    await call.hf.queues.clear_watermarks(queue, by=call.caller.name)
    return _view(call, await _queue(call, queue), await call.hf.queues.rates())


@routes.add("PATCH", "/queues/{queue}/options", scope=Scope.OPERATE, reach=Reach.QUEUE, takes=Takes.ONE)
async def patch_options(call: Called, queue: QueuePath, body: OptionsBody) -> QueueView:
    """Change what processes do about it; what is left out stays. Workers take it up within a second."""
    given: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    await call.hf.queues.set_options(queue, **given, by=call.caller.name)
    return _view(call, await _queue(call, queue), await call.hf.queues.rates())


@routes.add("DELETE", "/queues/{queue}/options", scope=Scope.OPERATE, reach=Reach.QUEUE)
async def delete_options(call: Called, queue: QueuePath) -> QueueView:
    """Back to what each process is configured with."""
    await call.hf.queues.clear_options(queue, by=call.caller.name)
    return _view(call, await _queue(call, queue), await call.hf.queues.rates())


@routes.post("/queues/{queue}/pause", reach=Reach.QUEUE, status=204)
async def pause_queue(call: Called, queue: QueuePath) -> Response:
    """Start nothing more of it, in any process; what runs goes on."""
    await call.hf.queues.pause(queue, by=call.caller.name)
    return Response(status_code=204)


@routes.post("/queues/{queue}/resume", reach=Reach.QUEUE, status=204)
async def resume_queue(call: Called, queue: QueuePath) -> Response:
    """Start its jobs again, and accept new ones."""
    await call.hf.queues.resume(queue, by=call.caller.name)
    return Response(status_code=204)


@routes.post("/queues/{queue}/drain", reach=Reach.QUEUE, status=204)
async def drain_queue(call: Called, queue: QueuePath) -> Response:
    """Accept nothing more, while what is there goes on; `resume` lifts it."""
    await call.hf.queues.drain(queue, by=call.caller.name)
    return Response(status_code=204)


@routes.post("/queues/{queue}/purge", reach=Reach.QUEUE, takes=Takes.PERHAPS, problems=(QUEUE_NOT_FOUND,))
async def purge_queue(call: Called, queue: QueuePath, body: CancelBody | None = None) -> PurgedView:
    """Cancel everything that waits in it; what runs goes on."""
    if said := await call.hf.queues.why_unknown(queue, among=call.caller.queues):
        raise Problem(QUEUE_NOT_FOUND, said)
    reason = (body and body.reason) or "purged"
    count = sum([each.waiting for each in await call.hf.queues.list() if each.name == queue])
    await call.record("purge", f"queue {queue}", reason=reason, count=count)
    return PurgedView(count=await call.hf.queues.purge(queue, reason=f"{reason} (by {call.caller.name})"))


async def _queue(call: Call, name: str) -> QueueInfo:
    found = next((each for each in await call.hf.queues.list() if each.name == name), None)
    if found is None:
        raise Problem(QUEUE_NOT_FOUND, f"queue {name!r} has never had a job or a setting")
    return found


def _weights(settings: QueueSettings) -> WeightsView:
    own = settings.weights or {}
    return WeightsView(
        weight=settings.weight,
        priorities={name: float(own.get(name, built_in)) for name, built_in in DEFAULT_WEIGHTS.items()},
        is_default=settings.weight == 1.0 and not own,
    )


def _view(call: Call, queue: QueueInfo, rates: Mapping[str, QueueRates]) -> QueueView:
    settings, config = queue.settings, call.hf.config
    marks, ages = settings.watermarks, settings.ages
    return QueueView(
        name=queue.name,
        ready=queue.ready,
        scheduled=queue.scheduled,
        blocked=queue.blocked,
        parked=queue.parked,
        running=queue.running,
        dead=queue.dead,
        by_priority=dict(queue.by_priority),
        oldest_ready_s=queue.oldest_ready_s,
        accepting=queue.accepting,
        paused=settings.paused,
        draining=settings.draining,
        high_watermark=config.high_watermark if marks is None else marks.high,
        low_watermark=config.low_watermark if marks is None else marks.low,
        high_age_s=None if ages is None else ages.high_s,
        low_age_s=None if ages is None else ages.low_s,
        weights=_weights(settings),
        options=OptionsView.model_validate(settings.options.said),
        rates=RatesView.model_validate(rates.get(queue.name) or _quiet(rates), from_attributes=True),
    )


def _quiet(rates: Mapping[str, QueueRates]) -> QueueRates:
    """Of a queue in which nothing happened, while something may have happened in others."""
    return QueueRates(over_s=next((each.over_s for each in rates.values()), RATES_OVER_S))
