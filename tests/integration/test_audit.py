"""Who changed what, and settings that make no sense: refused when they are set, told of when they are in the store."""

from __future__ import annotations

import asyncio
import getpass
import os
from pathlib import Path
from typing import Any

import pytest
from tests.integration.scene import Heard, by_hand, scene, until, url_of

from holdfast import Holdfast, InvalidOptions, RetryPolicy
from holdfast.core.state import State
from holdfast.telemetry.flow_events import QueueSettingsIgnored, SettingChanged


@scene
async def test_every_change_is_on_record_with_who_when_before_and_after() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="work")
    async def work() -> None: ...

    async with hf:
        heard = Heard(hf, SettingChanged)
        await hf.queues.set_weights("default", weight=3, by="ada")
        assert await heard.next(SettingChanged) == SettingChanged("queue", "default", "weight 3", "ada")
        await hf.limits.set("task:work", size=4, rate="5/s", by="ada")
        await hf.limits.set("task:work", size=5, by="bob")
        await hf.tenants.set_weight("acme", 2, by="ada")
        await hf.queues.pause("default")
        changes = await hf.audit.list()
        assert [(each.what, each.name) for each in changes] == [
            ("queue", "default"),
            ("tenant", "acme"),
            ("limit", "task:work"),
            ("limit", "task:work"),
            ("queue", "default"),
        ]
        assert changes[0].by.startswith(f"{getpass.getuser()}@")
        assert changes[0].by.endswith(f":{os.getpid()}")
        assert changes[0].before is not None
        assert changes[0].after is not None
        assert (changes[0].before["paused"], changes[0].after["paused"]) == (False, True)
        assert (changes[2].by, changes[2].before, changes[2].after) == (
            "bob",
            {"size": 4, "rate": "5/s", "burst": 5},
            {"size": 5, "rate": "5/s", "burst": 5},
        )
        assert changes[3].before is None
        numbers = [each.number for each in changes]
        assert numbers == sorted(numbers, reverse=True)
        assert [each.number for each in await hf.audit.list(limit=2, before=numbers[1])] == numbers[2:4]
        with pytest.raises(InvalidOptions, match=r"^before=0: needs the number of a change, from 1 on$"):
            await hf.audit.list(before=0)


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (
            lambda hf: hf.queues.set_weights("default"),
            "weights: none was given; give weight= or priorities=, or clear them",
        ),
        (lambda hf: hf.limits.set("x"), "limit 'x': nothing was given; give size= or rate=, or clear it"),
        (lambda hf: hf.limits.set("x", burst=3), "limit 'x': nothing was given; give size= or rate=, or clear it"),
        (lambda hf: hf.limits.set("x", size=2, burst=3), "limit 'x': burst=3 belongs to a rate; give rate=, too"),
        (
            lambda hf: hf.limits.set("x", size=0),
            "limit 'x': size=0 must be a whole number from 1 to 1,000,000",
        ),
        (lambda hf: hf.limits.set("x", rate="fast"), "rate='fast': needs a text as '100/m': runs per s, m, h or d"),
        (lambda hf: hf.limits.set("x", rate="5/s", burst=0), "burst=0: needs a whole number of runs from 1 to"),
        (lambda hf: hf.limits.set("", size=1), "a limit name must not be empty"),
        (lambda hf: hf.breakers.open(5), "a breaker name must be text, not int: 5"),
        (lambda hf: hf.tasks.pause("no name"), "task name 'no name' has ' ' at position 3"),
        (lambda hf: hf.tenants.pause(""), "a tenant must not be empty"),
        (lambda hf: hf.queues.drain("a", by=3), "by=3: needs a text that says who it was"),
        (lambda hf: hf.queues.set_weights("defualt", weight=1), "there is no queue 'defualt': none of its jobs was"),
        (lambda hf: hf.queues.purge("defualt"), "there is no queue 'defualt': none of its jobs was"),
        (lambda hf: hf.queues.set_weights("default", weight=-1), "weight=-1: needs a number from 0"),
        (
            lambda hf: hf.queues.set_weights("default", priorities=dict.fromkeys(PRIORITIES, 0)),
            "weights: all of them are 0; give at least one priority a positive weight",
        ),
        (lambda hf: hf.queues.set_weights("default", priorities={}), "priorities={}: names none; to go back"),
        (lambda hf: hf.queues.set_weights("default", priorities={"hihg": 1}), "weights: there is no priority 'hihg'"),
    ],
)
@scene
async def test_what_makes_no_sense_is_refused_in_a_sentence_and_nothing_is_on_record(act: Any, sentence: str) -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def work() -> None: ...

    async with hf:
        with pytest.raises(InvalidOptions) as caught:
            await act(hf)
        assert str(caught.value).startswith(sentence)
        assert await hf.audit.list() == []


PRIORITIES = ("critical", "high", "normal", "low", "bulk")


@scene
async def test_weights_that_somebody_has_spoilt_in_the_store_are_told_of_and_the_defaults_hold(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    hf = Holdfast(url_of(path))

    @hf.task
    async def work() -> str:
        return "done"

    async with hf:
        await hf.queues.set_weights("default", weight=3, priorities={"high": 50})
        by_hand(path, "UPDATE queue_setting SET weights = '{', weight = -5")
        heard = Heard(hf, QueueSettingsIgnored)
        async with hf.worker():
            event = await heard.next(QueueSettingsIgnored)
            assert event == QueueSettingsIgnored("default", ("weight", "weights"))
            assert await (await work.enqueue()).result(timeout=30) == "done"
            [queue] = await hf.queues.list()
            assert (queue.settings.weight, queue.settings.weights) == (1.0, None)


@scene
async def test_of_two_operators_at_once_neither_takes_back_what_the_other_says() -> None:
    async with Holdfast(":memory:") as hf:
        for size in range(1, 6):
            await asyncio.gather(
                hf.limits.set("bank", size=size, by="ada"), hf.limits.set("bank", rate=f"{size}/s", by="eve")
            )
            [limit, rate] = await hf.limits.list()
            assert (limit.size, rate.rate) == (size, f"{size}/s")
        changes = await hf.audit.list()
        assert [each.before for each in changes[:-1]] == [each.after for each in changes[1:]]


@scene
async def test_a_limit_that_somebody_has_spoilt_in_the_store_is_cleared_away(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with Holdfast(url_of(path)) as hf:
        by_hand(path, "INSERT INTO rule VALUES ('limit', 'queue:default', -5, 9e999, 'x', NULL)")
        assert not await hf.limits.clear("queue:default"), "it counts as not set"
        assert await hf.audit.list() == []
        assert by_hand(path, "SELECT name FROM rule") == []


@scene
async def test_what_is_done_to_many_jobs_is_on_record_with_how_many_they_were() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="work", retry=RetryPolicy(max_attempts=1))
    async def work(*, fails: bool = False) -> None:
        if fails:
            raise ValueError("no")

    async with hf:
        jobs = [await work.options(tags=["slow"]).enqueue() for _ in range(3)]
        assert await hf.jobs.move({"queue": "default", "tag": "slow"}, queue="bulk", by="ada") == 3
        assert await hf.jobs.move(jobs[0].id, priority=9) == 1
        assert await hf.queues.purge("bulk", reason="wrong file", by="ada") == 3
        dead = [await work.enqueue(fails=True) for _ in range(3)]
        async with hf.worker():
            for job in dead:
                await until(job, State.DEAD)
        assert await hf.dead.replay(task="work", text="no", by="bob") == 3
        await hf.jobs.cancel(dead[0].id)
        await hf.jobs.cancel(dead[1].id, reason="twice", by="bob")
        assert await hf.dead.purge(everything=True, by="bob") == 0
        for refused in (hf.dead.purge(by="bob"), hf.jobs.move({"queue": "a"}, by="bob")):
            with pytest.raises(InvalidOptions):
                await refused
        changes = await hf.audit.list()
    me = f"{getpass.getuser()}@"
    found = [(each.by if each.by in ("ada", "bob") else each.by[: len(me)], each.what, each.after) for each in changes]
    assert found[::-1] == [
        ("ada", "move", {"filter": {"queue": "default", "tag": "slow"}, "queue": "bulk", "count": 3}),
        (me, "move", {"ids": [str(jobs[0].id)], "priority": 9, "count": 1}),
        ("ada", "purge", {"reason": "wrong file", "count": 3}),
        ("bob", "replay", {"filter": {"task": "work", "text": "…"}, "count": 3}),
        ("bob", "cancel", {"reason": "twice"}),
        ("bob", "purge", {"everything": True, "count": 0}),
    ]
