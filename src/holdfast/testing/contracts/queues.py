"""Queues: settings shared by all, depths in one report, purging."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from holdfast.core.backpressure import AgeMarks, Watermarks
from holdfast.core.errors import InvalidOptions
from holdfast.core.queue import QueueInfo, QueueSettings
from holdfast.core.queue_options import OPTION_NAMES, QueueOptions
from holdfast.core.settlement import UNKNOWN_TASK, Bury, Park
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    QUEUE,
    TASK,
    a_job,
    apply,
    claim,
    enlist,
    finish,
    info,
    insert,
    start,
    states,
)


async def _queue(store: Store, name: str = QUEUE) -> QueueInfo:
    found = [queue for queue in await store.list_queues() if queue.name == name]
    assert len(found) == 1, f"queue {name!r} is listed once: {found}"
    return found[0]


async def check_settings_are_kept(store: Store) -> None:
    settings = QueueSettings(
        paused=True,
        watermarks=Watermarks(high=50, low=5),
        weight=2.5,
        weights={"high": 3.0, "bulk": 0.5},
        ages=AgeMarks(high_s=60.0, low_s=7.5),
        options=QueueOptions(concurrency=3, retry_budget=0.25, bypass_priority=7),
    )
    await store.set_queue("mail", settings)
    found = (await store.queue_settings())["mail"]
    assert found == settings, f"got {found}"
    assert (await _queue(store, "mail")).settings == settings, "the report tells them, too"
    await store.set_queue("mail", QueueSettings())
    assert (await store.queue_settings())["mail"] == QueueSettings(), "settings are replaced as a whole"


async def check_weights_of_priorities_are_said_one_by_one(store: Store) -> None:
    def share(**weights: float) -> Coroutine[None, None, None]:
        return store.set_queue("mail", QueueSettings(weights=weights), only=("weights",))

    await share(bulk=0)
    await asyncio.gather(share(low=7), share(high=20), share(low=7, critical=1))
    found = (await store.queue_settings())["mail"].weights
    assert found == {"critical": 1, "high": 20, "normal": 10, "low": 7, "bulk": 0}, f"nobody's word is lost: {found}"
    try:
        await share(critical=0, high=0, normal=0, low=0)
    except InvalidOptions:
        pass
    else:
        raise AssertionError("with what is stored, all of them would be 0")
    assert (await store.queue_settings())["mail"].weights == found, "nothing of it was taken"
    await store.set_queue("mail", QueueSettings(), only=("weights",))
    assert (await store.queue_settings())["mail"] == QueueSettings(), "as built in"


async def check_options_are_said_one_by_one(store: Store) -> None:
    def say(**said: Any) -> Coroutine[None, None, None]:
        return store.set_queue("mail", QueueSettings(options=QueueOptions(**said)), only=tuple(said), by="me")

    await store.set_queue("mail", QueueSettings(weight=2.5), by="me")
    await asyncio.gather(say(concurrency=5), say(retry_budget=0.2), say(bypass_priority=9))
    found = (await store.queue_settings())["mail"]
    assert found == QueueSettings(weight=2.5, options=QueueOptions(concurrency=5, retry_budget=0.2, bypass_priority=9))
    assert (await _queue(store, "mail")).settings == found, "the report tells them, too"
    await say(concurrency=None, bypass_priority=0)
    found = (await store.queue_settings())["mail"]
    assert found.options == QueueOptions(retry_budget=0.2, bypass_priority=0), f"0 is a priority: {found}"
    await store.set_queue("mail", QueueSettings(paused=True), only=("paused",), by="me")
    assert (await store.queue_settings())["mail"].options == found.options, "others are changed by themselves"
    await store.set_queue("mail", QueueSettings(), only=OPTION_NAMES, by="me")
    assert (await store.queue_settings())["mail"] == QueueSettings(paused=True, weight=2.5), "nothing is said any more"


async def check_a_queue_is_known_from_its_first_job_on(store: Store) -> None:
    assert await store.queue_settings() == {}, "a new store has no queues"
    run = await start(store, queue="fresh")
    assert await store.queue_settings() == {"fresh": QueueSettings()}, "it has had a job"
    await finish(store, run)
    assert "fresh" in await store.queue_settings(), "it stays known when it is empty"
    await insert(store, a_job(queue="later", delay_s=LONG_S))
    assert "later" in await store.queue_settings(), "also by a job that is not ready"


async def check_depths_are_told_by_state_and_priority(store: Store) -> None:
    worker = await enlist(store)
    parked = await start(store, worker=worker)
    await apply(store, worker, Park(parked.id, parked.token, UNKNOWN_TASK, TASK))
    dead = await start(store, worker=worker)
    await apply(store, worker, Bury(dead.id, dead.token, "permanent", ERROR))
    running = await start(store, worker=worker)
    await insert(store, a_job(priority=9), a_job(priority=9), a_job(), a_job(delay_s=LONG_S))
    await insert(store, a_job(waits_for=(running.id,)), a_job(queue="other"))
    queue = await _queue(store)
    depths = (queue.ready, queue.scheduled, queue.blocked, queue.parked, queue.running, queue.dead)
    assert depths == (3, 1, 1, 1, 1, 1), f"got {queue}"
    assert {p: n for p, n in queue.by_priority.items() if n} == {9: 2, 5: 1}, f"got {queue}"
    assert queue.accepting, f"got {queue}"
    assert queue.oldest_ready_s is not None, f"somebody waits: {queue}"
    assert queue.oldest_ready_s >= 0, f"got {queue}"
    assert (await _queue(store, "other")).ready == 1, "each queue by itself"


async def check_an_empty_queue_has_no_oldest_job(store: Store) -> None:
    await insert(store, a_job())
    await claim(store, await enlist(store))
    queue = await _queue(store)
    assert (queue.ready, queue.running, queue.oldest_ready_s) == (0, 1, None), f"got {queue}"


async def check_purging_cancels_what_waits(store: Store) -> None:
    worker = await enlist(store)
    parked = await start(store, worker=worker)
    await apply(store, worker, Park(parked.id, parked.token, UNKNOWN_TASK, TASK))
    running = await start(store, worker=worker)
    waiting = await insert(store, a_job(), a_job(priority=1), a_job(delay_s=LONG_S), a_job(waits_for=(running.id,)))
    [elsewhere] = await insert(store, a_job(queue="other"))
    count = await store.purge_queue(QUEUE, reason="emptied", limit=PLENTY)
    assert count == 5, f"got {count}"
    found = await states(store, parked.id, *waiting)
    assert found == [State.CANCELLED] * 5, f"got {found}"
    assert (await info(store, waiting[0])).reason == "emptied", "it says why"
    assert await states(store, running.id, elsewhere) == [State.RUNNING, State.READY], "others are left alone"


async def check_purging_is_bounded(store: Store) -> None:
    await insert(store, *(a_job() for _ in range(5)))
    counts = [await store.purge_queue(QUEUE, reason="emptied", limit=2) for _ in range(4)]
    assert counts == [2, 2, 1, 0], f"got {counts}"
    assert await store.purge_queue("never heard of", reason="emptied", limit=2) == 0, "nothing there"


async def check_rates_tell_what_came_began_and_ended(store: Store) -> None:
    assert await store.queue_rates() == {}, "nothing has happened yet"
    await insert(store, a_job(), a_job(delay_s=LONG_S), a_job(queue="other"))
    done, buried = [await start(store, queue="busy") for _ in range(2)]
    await start(store, queue="busy")
    await finish(store, done)
    await apply(store, buried.worker, Bury(buried.id, buried.token, "permanent", ERROR))
    [waiting] = await insert(store, a_job(queue="busy"))
    await store.cancel_jobs([waiting], reason="over")
    found = await store.queue_rates()
    counts = {
        name: tuple(round(each * of.over_s, 3) for each in (of.enqueued_per_s, of.started_per_s, of.ended_per_s))
        for name, of in found.items()
    }
    assert counts == {QUEUE: (2, 0, 0), "other": (1, 0, 0), "busy": (4, 3, 3)}, f"got {counts}"
    assert len({of.over_s for of in found.values()}) == 1, "of the same time, for all queues"
