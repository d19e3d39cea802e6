"""What operators say about a queue while everything runs: its bound, its retry budget, who goes past a full one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, Heard, by_hand, scene, until, url_of

from holdfast import Holdfast, InvalidOptions, QueueFull, RetryPolicy
from holdfast.core.queue_options import NO_QUEUE_OPTIONS, QueueOptions
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.telemetry.events import QueueRetriesEased, QueueRetriesStretched
from holdfast.telemetry.flow_events import QueueSettingsIgnored, SettingChanged


class Crowd:
    """Jobs that stay until they are let go, each by itself."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self._gate = asyncio.Semaphore(0)
        self._stirred = asyncio.Event()

    async def visit(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self._stirred.set()
        await self._gate.acquire()
        self.inside -= 1
        self._stirred.set()

    def let_go(self, count: int) -> None:
        for _ in range(count):
            self._gate.release()

    async def until(self, inside: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.inside != inside:
                self._stirred.clear()
                await self._stirred.wait()


@asynccontextmanager
async def at_work(**settings: Any) -> AsyncIterator[tuple[Holdfast, Crowd]]:
    """An app with a worker of ten slots, and a backlog of thirty jobs that stay."""
    hf, crowd = Holdfast(":memory:", concurrency=10, **settings), Crowd()

    @hf.task(name="visit", queue="slow")
    async def visit() -> None:
        await crowd.visit()

    @hf.task(name="ping")
    async def ping() -> str:
        return "pong"

    async with hf:
        await hf.enqueue_many([visit.request() for _ in range(30)])
        try:
            async with hf.worker(grace_s=0):
                yield hf, crowd
        finally:
            crowd.let_go(100)


async def taken_up(hf: Holdfast) -> None:
    """The worker has looked at the settings since: it serves a queue that it has not heard of before."""
    taken_up.count += 1  # type: ignore[attr-defined]
    queue = f"news-{taken_up.count}"  # type: ignore[attr-defined]
    await hf.queues.set_weights("default", weight=1)
    job = await hf.named("ping").options(queue=queue).enqueue()
    await job.result(timeout=PATIENCE_S)


taken_up.count = 0  # type: ignore[attr-defined]


@scene
async def test_a_bound_is_raised_lowered_and_lifted_while_jobs_run() -> None:
    async with at_work(queue={"slow": {"concurrency": 2}}) as (hf, crowd):
        await crowd.until(2)
        await hf.queues.set_options("slow", concurrency=6)
        await crowd.until(6)
        await hf.queues.set_options("slow", concurrency=3)
        await taken_up(hf)
        crowd.let_go(4)
        await crowd.until(2)  # below the bound only when more have ended than were too many
        await crowd.until(3)
        assert crowd.most == 6
        await hf.queues.set_options("slow", concurrency=None)
        await taken_up(hf)
        crowd.let_go(1)
        await crowd.until(2)
        await taken_up(hf)
        assert crowd.inside == 2, "as it is configured"
        await hf.queues.set_options("slow", concurrency=10)
        await crowd.until(10)


@scene
async def test_a_bound_where_none_was_counts_what_runs() -> None:
    async with at_work() as (hf, crowd):
        await crowd.until(10)
        await hf.queues.set_options("slow", concurrency=4)
        crowd.let_go(1)  # the worker has to have a free slot to look
        await taken_up(hf)
        before = crowd.inside
        assert before >= 9, "what runs goes on"
        crowd.let_go(before - 4)
        await taken_up(hf)
        assert crowd.inside == 4
        await hf.queues.clear_options("slow")
        await crowd.until(10)


@scene
async def test_a_retry_budget_is_set_and_lifted_while_jobs_fail() -> None:
    hf = Holdfast(":memory:")

    @hf.task(queue="bank", retry=RetryPolicy(max_attempts=100, base=0, backoff="fixed"))
    async def charge() -> None:
        raise ConnectionRefusedError

    async with hf:
        heard = Heard(hf, QueueRetriesStretched, QueueRetriesEased)
        await hf.enqueue_many([charge.request() for _ in range(20)])
        async with hf.worker():
            await hf.queues.set_options("bank", retry_budget=0.1)
            told = await heard.next(QueueRetriesStretched)
            assert (told.queue, told.percent) == ("bank", 10)
            await hf.queues.set_options("bank", retry_budget=None)
            assert (await heard.next(QueueRetriesEased)).queue == "bank"
            free = await charge.enqueue()
            await until(free, State.DEAD)


@scene
async def test_who_goes_past_a_full_queue_is_said_at_run_time() -> None:
    clock = ManualClock()
    hf = Holdfast(":memory:", high_watermark=3, low_watermark=1, clock=clock)

    @hf.task
    async def work() -> None: ...

    async def refused(**options: Any) -> bool:
        try:
            await work.options(wait=0, **options).enqueue()
        except QueueFull:
            return True
        return False

    async with hf:
        await hf.enqueue_many([work.request() for _ in range(3)])
        assert await refused(priority=9)
        await hf.queues.set_options("default", bypass_priority="high")
        clock.advance(1)
        assert [await refused(priority=priority) for priority in (9, 7, 6)] == [False, False, True]
        assert not await refused(priority=7, key="k")
        many = [work.options(wait=0, priority=7).request() for _ in range(2)]
        await hf.enqueue_many(many)
        with pytest.raises(QueueFull):  # all or none, and one of them may not
            await hf.enqueue_many([*many, work.options(wait=0).request()])
        await hf.queues.clear_options("default")
        clock.advance(1)
        assert await refused(priority=9)
        assert len(await hf.jobs.list()) == 8


@scene
async def test_options_are_shown_and_each_change_is_on_record() -> None:
    hf = Holdfast(":memory:")
    async with hf:
        heard = Heard(hf, SettingChanged)
        await hf.queues.set_options("mail", concurrency=5, retry_budget=0.2, bypass_priority="critical", by="ada")
        said = "concurrency 5, retry_budget 0.2, bypass_priority 9"
        assert await heard.next(SettingChanged) == SettingChanged("queue", "mail", said, "ada")
        await hf.queues.set_options("mail", concurrency=None, by="bob")
        assert (await heard.next(SettingChanged)).said == "concurrency as configured"
        [queue] = await hf.queues.list()
        assert queue.settings.options == QueueOptions(retry_budget=0.2, bypass_priority=9), "what is left out stays"
        await hf.queues.clear_options("mail")
        await hf.queues.clear_options("mail")
        [queue] = await hf.queues.list()
        assert queue.settings.options == NO_QUEUE_OPTIONS
        names = ("concurrency", "retry_budget", "bypass_priority")
        found = [each.after and tuple(each.after[name] for name in names) for each in await hf.audit.list()]
        assert found == [(None, None, None), (None, 0.2, 9), (5, 0.2, 9)], "the same again changes nothing"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"retry_budget": 1.0}, "queue 'mail': retry_budget = 1.0 is not a share above 0 and below 1"),
        ({"bypass_priority": 10}, "queue 'mail': priority=10: needs a whole number from 0 to 9"),
        ({"bypass_priority": "None"}, "queue 'mail': there is no priority 'None'"),
        ({}, "options: none was given; give concurrency=, retry_budget= or bypass_priority=, or clear them"),
        ({"concurrency": 0}, "queue 'mail': concurrency = 0 is not a whole number from 1 to 10,000; to start nothing"),
        ({"concurrency": True}, "queue 'mail': concurrency = True is not"),
        ({"retry_budget": float("nan")}, "queue 'mail': retry_budget = nan is not a share above 0 and below 1"),
        ({"bypass_priority": "urgnet"}, "queue 'mail': there is no priority 'urgnet'"),
    ],
)
@scene
async def test_nonsense_is_refused_and_nothing_is_written(options: dict[str, Any], sentence: str) -> None:
    hf = Holdfast(":memory:")
    async with hf:
        with pytest.raises(InvalidOptions) as refused:
            await hf.queues.set_options("mail", **options)
        assert str(refused.value).startswith(sentence)
        assert await hf.queues.list() == []
        assert await hf.audit.list() == []


@scene
async def test_nonsense_in_the_store_is_told_and_does_not_stop_a_worker(tmp_path: Path) -> None:
    hf = Holdfast(url_of(tmp_path / "jobs.db"), queue={"default": {"concurrency": 1}})

    @hf.task
    async def work() -> str:
        return "done"

    async with hf:
        by_hand(tmp_path / "jobs.db", "INSERT INTO queue_option VALUES ('default', -1, 7, 'x')")
        heard = Heard(hf, QueueSettingsIgnored)
        async with hf.worker():
            assert await (await work.enqueue()).result(timeout=PATIENCE_S) == "done"
            told = await heard.next(QueueSettingsIgnored)
            assert (told.queue, told.settings) == ("default", ("concurrency", "retry_budget", "bypass_priority"))


@scene
async def test_an_explanation_knows_the_bound_that_operators_have_set() -> None:
    async with at_work() as (hf, crowd):
        await crowd.until(10)
        await hf.queues.set_options("slow", concurrency=2)
        crowd.let_go(8)
        await crowd.until(2)
        await taken_up(hf)
        waiting = (await hf.jobs.list(queue="slow", state="ready"))[0]
        why = await hf.jobs.explain(waiting.id)
        assert [reason.kind for reason in why.held_by] == ["workers_busy"]
        assert (why.held_by[0].data["queue_running"], why.held_by[0].data["bound"]) == (2, 2)


@scene
async def test_none_takes_back_a_bound_that_the_settings_give() -> None:
    async with at_work(queue={"slow": {"concurrency": 2}}) as (hf, crowd):
        await crowd.until(2)
        await hf.queues.set_options("slow", concurrency="none")
        await crowd.until(10)
        waiting = (await hf.jobs.list(queue="slow", state="ready"))[0]
        why = await hf.jobs.explain(waiting.id)
        assert "bound" not in why.held_by[0].data, "the slots are taken, and no bound of the queue is in the way"
        await hf.queues.set_options("slow", concurrency=None)
        crowd.let_go(1)  # the worker has to have a free slot to look
        await taken_up(hf)
        crowd.let_go(crowd.inside - 1)
        await crowd.until(1)
        await crowd.until(2)
        await taken_up(hf)
        assert crowd.inside == 2, "as it is configured"


@scene
async def test_none_takes_back_a_budget_that_the_settings_give() -> None:
    hf = Holdfast(":memory:", queue={"bank": {"retry_budget": 0.1}})

    @hf.task(queue="bank", retry=RetryPolicy(max_attempts=30, base=0, backoff="fixed"))
    async def charge() -> None:
        raise ConnectionRefusedError

    async with hf:
        heard = Heard(hf, QueueRetriesStretched, QueueRetriesEased)
        async with hf.worker():
            await hf.enqueue_many([charge.request() for _ in range(20)])
            await heard.next(QueueRetriesStretched)
            await hf.queues.set_options("bank", retry_budget="none")
            await heard.next(QueueRetriesEased)
            await until(await charge.enqueue(), State.DEAD)


@scene
async def test_none_closes_a_way_past_that_the_settings_leave_open() -> None:
    hf = Holdfast(
        ":memory:", high_watermark=1, low_watermark=0, queue={"default": {"bypass_priority": "critical"}},
        clock=(clock := ManualClock()),
    )  # fmt: skip

    @hf.task(priority="critical")
    async def work() -> None: ...

    async with hf:
        for _ in range(2):
            await work.options(wait=0).enqueue()
        await hf.queues.set_options("default", bypass_priority="none")
        clock.advance(1)
        with pytest.raises(QueueFull):
            await work.options(wait=0).enqueue()
        await hf.queues.set_options("default", bypass_priority=None)
        clock.advance(1)
        await work.options(wait=0).enqueue()


@scene
async def test_a_setting_may_say_none_and_operators_something() -> None:
    clock = ManualClock()
    none = {"concurrency": "none", "retry_budget": "none", "bypass_priority": "none"}
    hf = Holdfast(":memory:", high_watermark=1, low_watermark=0, queue={"default": none}, clock=clock)

    @hf.task(priority="critical")
    async def work() -> None: ...

    async with hf:
        await work.enqueue()
        with pytest.raises(QueueFull):
            await work.options(wait=0).enqueue()
        await hf.queues.set_options("default", bypass_priority=9)
        clock.advance(1)
        await work.options(wait=0).enqueue()


@scene
async def test_none_is_told_as_it_was_said(tmp_path: Path) -> None:
    async with Holdfast(url_of(tmp_path / "jobs.db")) as hf:
        heard = Heard(hf, SettingChanged)
        await hf.queues.set_options("mail", concurrency="none", retry_budget=0.2, bypass_priority="none")
        told = (await heard.next(SettingChanged)).said
        [queue] = await hf.queues.list()
        [change] = await hf.audit.list()
    assert told == "concurrency none, retry_budget 0.2, bypass_priority none"
    said = {"concurrency": "none", "retry_budget": 0.2, "bypass_priority": "none"}
    assert queue.settings.options.said == said
    assert change.after is not None
    assert {name: change.after[name] for name in said} == said


def test_a_program_of_an_earlier_version_that_still_runs_leaves_options_alone(tmp_path: Path) -> None:
    """On SQLite it replaces the whole row of a queue, of the columns that it knows."""

    async def run() -> None:
        file = tmp_path / "jobs.db"
        async with Holdfast(url_of(file)) as hf:
            await hf.queues.set_options("mail", concurrency=3, by="ada")
            by_hand(file, "INSERT OR REPLACE INTO queue_setting (queue, paused) VALUES ('mail', 1)")
            [mail] = await hf.queues.list()
            assert (mail.settings.paused, mail.settings.options) == (True, QueueOptions(concurrency=3))

    asyncio.run(run())


@scene
async def test_taking_back_what_nobody_has_said_makes_no_queue() -> None:
    async with Holdfast(":memory:") as hf:
        await hf.queues.set_options("full", concurrency=3)
        with pytest.raises(InvalidOptions, match="did you mean 'full'"):
            await hf.queues.clear_options("fulll")
        assert [queue.name for queue in await hf.queues.list()] == ["full"]
