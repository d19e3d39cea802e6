"""Pausing tasks, tenants and queues; draining a queue."""

from __future__ import annotations

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import Holdfast, QueueFull
from holdfast.core.state import State
from holdfast.telemetry.flow_events import SettingChanged


@scene
async def test_a_paused_task_waits_in_all_queues_and_others_go_on() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="charge")
    async def charge(number: int) -> int:
        return number

    @hf.task(name="ping")
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker():
        heard = Heard(hf, SettingChanged)
        await hf.tasks.pause("charge", by="ada")
        assert await heard.next(SettingChanged) == SettingChanged("task", "charge", "paused", "ada")
        jobs = [await charge.options(queue=queue).enqueue(n) for n, queue in enumerate(("default", "other"))]
        for job in jobs:
            info = await until(job, State.PARKED)
            assert (info.reason, info.waits_at) == ("paused", "task:charge")
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"
        assert [(each.name, each.queue, each.paused) for each in await hf.tasks.list()] == [
            ("charge", "default", True),
            ("ping", "default", False),
        ]
        await hf.tasks.resume("charge")
        assert [await job.result(timeout=PATIENCE_S) for job in jobs] == [0, 1]


@scene
async def test_a_paused_tenant_waits_and_another_goes_on() -> None:
    hf = Holdfast(":memory:")

    @hf.task(tenant=lambda who: who)
    async def work(who: str) -> str:
        return who

    async with hf, hf.worker():
        await hf.tenants.pause("acme")
        assert await hf.tenants.paused() == ["acme"]
        theirs, others = await work.enqueue("acme"), await work.enqueue("initech")
        assert await others.result(timeout=PATIENCE_S) == "initech"
        assert (await until(theirs, State.PARKED)).waits_at == "tenant:acme"
        await hf.tenants.resume("acme")
        assert await theirs.result(timeout=PATIENCE_S) == "acme"
        assert await hf.tenants.paused() == []


@scene
async def test_a_queue_that_is_drained_refuses_at_once_and_works_off_what_it_has() -> None:
    hf = Holdfast(":memory:", queue={"default": {"bypass_priority": 9}})

    @hf.task
    async def work() -> str:
        return "done"

    async with hf:
        there = await work.enqueue()
        await hf.queues.drain("default")
        for urgent in (work, work.options(priority=9), work.options(key="k")):
            with pytest.raises(QueueFull, match=r"^queue 'default' is being drained: it accepts nothing") as caught:
                await urgent.options(wait=3600).enqueue()
            assert caught.value.draining
        with pytest.raises(QueueFull, match="is being drained"):
            await hf.enqueue_many([work.options(wait=3600).request()])
        [queue] = await hf.queues.list()
        assert (queue.settings.draining, queue.accepting) == (True, False)
        async with hf.worker():
            assert await there.result(timeout=PATIENCE_S) == "done"
            await hf.queues.undrain("default")
            assert await (await work.enqueue()).result(timeout=PATIENCE_S) == "done"
            await hf.queues.drain("default")
            await hf.queues.pause("default")
            await hf.queues.resume("default")  # lifts both
            assert await (await work.enqueue()).result(timeout=PATIENCE_S) == "done"


def test_the_same_from_code_without_an_event_loop() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="work")
    async def work() -> None: ...

    with hf.sync:
        hf.sync.tasks.pause("work")
        assert [each.paused for each in hf.sync.tasks.list()] == [True]
        hf.sync.tenants.pause("acme")
        hf.sync.breakers.open("bank", by="ada")
        hf.sync.queues.drain("default")
        assert [(each.what, each.name) for each in hf.sync.audit.list()] == [
            ("queue", "default"),
            ("breaker", "bank"),
            ("pause", "tenant:acme"),
            ("pause", "task:work"),
        ]
