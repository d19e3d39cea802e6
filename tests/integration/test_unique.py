"""Unique calls, debounce and throttle: what becomes of a call too many."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, scene

from holdfast import (
    Debounce,
    Holdfast,
    InvalidArguments,
    InvalidOptions,
    JobFailed,
    NotUnique,
    RetryPolicy,
    Throttle,
    Unique,
)
from holdfast.client.request import build_job
from holdfast.core.state import LIVE, State
from holdfast.core.unique import EVER, WhenTaken
from holdfast.runtime.clock import ManualClock


@scene
async def test_a_call_too_many_is_refused_given_the_job_that_is_there_or_replaces_it() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="report", unique=Unique())
    async def report(day: str) -> str:
        return day

    async with hf:
        first = await report.enqueue("mon")
        other = await report.enqueue("tue")
        with pytest.raises(NotUnique, match=rf"^report has to be unique, and job {first.id} is there") as caught:
            await report.enqueue(day="mon")
        assert caught.value.job_id == first.id
        again = await report.options(unique=Unique(when_taken="existing")).enqueue("mon")
        assert again.id == first.id
        instead = await report.options(unique=Unique(when_taken="replace")).enqueue("mon")
        assert instead.id not in (first.id, other.id)
        info = await first.info()
        assert (info.state, info.reason) == (State.CANCELLED, f"replaced by {instead.id}")
        assert (await report.options(unique=None).enqueue("mon")).id != instead.id
        assert (await report.options(tenant="acme").enqueue("mon")).id != instead.id, "a tenant has its own"
        async with hf.worker():
            assert await instead.result(timeout=PATIENCE_S) == "mon"
            assert (await report.enqueue("mon")).id != instead.id, "it has ended"


@scene
async def test_of_many_at_once_the_first_counts_or_nothing_is_stored() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="report", unique=Unique(by="day"))
    async def report(day: str, note: str = "") -> None: ...

    same = Unique(by="day", when_taken="existing")
    async with hf:
        with pytest.raises(NotUnique, match=r"^item 1: report has to be unique"):
            await hf.enqueue_many([report.request("mon"), report.request("mon", "x")])
        assert not await hf.jobs.list()
        task = report.options(unique=same)
        one, two, three = await hf.enqueue_many([task.request("mon"), task.request("mon", "x"), task.request("tue")])
        assert one.id == two.id != three.id


@scene
async def test_debounce_runs_the_last_call_only_and_at_the_latest_after_the_longest() -> None:
    clock = ManualClock()
    hf = Holdfast(":memory:", clock=clock)

    @hf.task(debounce=Debounce(10, by=("user",), longest=25))
    async def index(user: str, text: str) -> str:
        return text

    async with hf:
        store = hf._open_store()
        jobs = []
        for text in ("a", "ab", "abc", "abcd"):
            jobs.append(await index.enqueue("ada", text))
            clock.advance(8)
        assert [(await job.info()).state for job in jobs] == [State.CANCELLED] * 3 + [State.SCHEDULED]
        assert (await jobs[0].info()).reason == f"replaced by {jobs[1].id}"
        assert (await store.promote_jobs(limit=10)).promoted == 1, "25 s after the first, whatever came since"
        await index.enqueue("ada", "anew")
        assert (await jobs[3].info()).state is State.READY


@scene
async def test_throttle_gives_the_first_job_of_a_window() -> None:
    clock = ManualClock()
    hf = Holdfast(":memory:", clock=clock)

    @hf.task
    async def refresh(what: str) -> None: ...

    task = refresh.options(throttle=60)
    async with hf:
        first = await task.enqueue("prices")
        clock.advance(30)
        assert (await task.enqueue("prices")).id == first.id
        assert (await task.enqueue("names")).id != first.id
        await first.cancel()
        assert (await task.enqueue("prices")).id == first.id, "also when it has ended"
        clock.advance(31)
        assert (await task.enqueue("prices")).id != first.id


def test_what_the_store_is_asked_for() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="t")
    async def task(a: int, b: int = 2) -> None: ...

    def claim(**options: Any) -> Any:
        return build_job(task.options(**options).request(1), hf.config).unique

    assert claim() is None
    plain = claim(unique=Unique())
    assert plain.key.startswith("t:")
    assert (plain.states, plain.for_s, plain.when_taken) == (LIVE, None, WhenTaken.REJECT)
    assert claim(unique=Unique(for_=60)).states == LIVE | {State.SUCCEEDED}
    assert claim(unique=Unique(states=[*LIVE, "dead"])).states == LIVE | {State.DEAD}
    assert claim(unique=Unique(by="a")).key == claim(unique=Unique(by=("a",))).key != plain.key
    assert claim(unique=Unique(by=lambda a, b: {"a": a})).key == claim(unique=Unique(by="a")).key
    assert claim(unique=Unique(by=("b", "a"))).key == claim(unique=Unique(by=("a", "b"))).key
    assert build_job(task.options(unique=Unique()).request(b=2, a=1), hf.config).unique.key == plain.key
    assert claim(throttle=5)[1:4] == (EVER, 5.0, WhenTaken.EXISTING)
    debounced = build_job(task.options(debounce=Debounce(3, longest=9)).request(1), hf.config)
    assert debounced.delay_s == 3.0
    assert debounced.unique is not None
    assert debounced.unique[1:] == ({State.SCHEDULED}, None, WhenTaken.REPLACE, 9.0)


@scene
async def test_what_excludes_each_other_is_refused_wherever_it_is_said() -> None:
    hf = Holdfast(":memory:")

    @hf.task(debounce=5)
    async def task(a: int) -> None: ...

    async with hf:
        with pytest.raises(InvalidOptions, match=r"^debounce= and delay= say two different times; give one of them$"):
            await task.options(delay=5).enqueue(1)
        with pytest.raises(InvalidOptions, match="by= of unique= names argument 'nobody', and the call has 'a'"):
            await task.options(unique=Unique(by="nobody")).enqueue(1)
        assert (await (await task.options(delay=5, debounce=None).enqueue(1)).info()).state is State.SCHEDULED
    with pytest.raises(InvalidOptions, match=r"^unique= and throttle= exclude each other"):
        task.options(unique=Unique(), throttle=Throttle(5))
    with pytest.raises(InvalidOptions, match=r"names argument 'dya', which its callers do not pass; did you mean"):

        @hf.task(unique=Unique(by="dya"))
        async def other(day: str) -> None: ...


@scene
async def test_the_same_value_of_another_argument_is_another_call() -> None:
    async with Holdfast(":memory:") as hf:

        @hf.task(name="t")
        async def task(a: int, b: int) -> None: ...

        by_a = await task.options(unique=Unique(by="a")).enqueue(1, 5)
        by_b = await task.options(unique=Unique(by="b", when_taken="existing")).enqueue(9, 1)
        assert by_b.id != by_a.id
        assert (await task.options(unique=Unique(by="b", when_taken="existing")).enqueue(8, 1)).id == by_b.id


@scene
async def test_a_dead_job_is_not_replayed_beside_another_and_the_sentence_names_it() -> None:
    hf = Holdfast(":memory:")
    is_down = True

    @hf.task(name="report", unique=Unique(by="day"), retry=RetryPolicy(max_attempts=1))
    async def report(day: str, note: str = "") -> str:
        if is_down:
            raise ValueError
        return note

    async with hf:
        async with hf.worker():
            dead = [await report.enqueue(day, "old") for day in ("mon", "tue")]
            for job in dead:
                with pytest.raises(JobFailed):
                    await job.result(timeout=PATIENCE_S)
        newer = await report.enqueue("mon", "new")
        for act in (hf.dead.replay, hf.jobs.retry):
            said = rf"^job {dead[0].id} stays dead: report .* job {newer.id} is there"
            with pytest.raises(NotUnique, match=said) as caught:
                await act(dead[0].id)
            assert caught.value.job_id == newer.id
        replayed = await hf.dead.replay(everything=True)
        assert (replayed, replayed.kept_back, replayed.in_the_way) == (1, 1, {dead[0].id: newer.id})
        is_down = False
        async with hf.worker():
            assert await newer.result(timeout=PATIENCE_S) == "new"
            assert await hf.dead.replay(dead[0].id) == 1
            assert [await job.result(timeout=PATIENCE_S) for job in dead] == ["old", "old"]


@scene
async def test_edited_arguments_say_what_is_unique_then() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="report", unique=Unique(by="day"), retry=RetryPolicy(max_attempts=1))
    async def report(day: str, note: str = "") -> None:
        raise ValueError

    async with hf:
        async with hf.worker():
            dead = await report.enqueue("mon")
            with pytest.raises(JobFailed):
                await dead.result(timeout=PATIENCE_S)
        tuesday = await report.enqueue("tue")
        await hf.dead.edit(dead.id, "tue", note="mended")
        with pytest.raises(NotUnique):
            await hf.dead.replay(dead.id)
        await hf.dead.edit(dead.id, "wed")
        monday = await report.enqueue("mon")
        assert await hf.dead.replay(dead.id) == 1
        with pytest.raises(NotUnique) as caught:
            await report.enqueue("wed")
        assert caught.value.job_id == dead.id
        assert {each.id for each in await hf.jobs.list()} == {dead.id, tuesday.id, monday.id}


@scene
async def test_an_edit_keeps_what_only_the_call_has_said_to_be_unique() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="report", unique=Unique(by="day"), retry=RetryPolicy(max_attempts=1))
    async def report(day: str, note: str = "") -> None:
        raise ValueError

    by_note = report.options(unique=Unique(by="note"))
    async with hf:
        async with hf.worker():
            dead = await by_note.enqueue("mon", "n")
            with pytest.raises(JobFailed):
                await dead.result(timeout=PATIENCE_S)
        await hf.dead.edit(dead.id, "tue", note="n")
        newer = await by_note.enqueue("wed", "n")
        with pytest.raises(NotUnique) as caught:
            await hf.dead.replay(dead.id)
        assert caught.value.job_id == newer.id


@scene
async def test_a_function_that_cannot_tell_which_calls_are_the_same_refuses_them() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="report", unique=Unique(by=lambda day: {"mon": "x"}.get(day)))
    async def report(day: str) -> None: ...

    async with hf:
        await report.enqueue("mon")
        with pytest.raises(
            InvalidArguments, match=r"^report: by= of unique= said None: which calls are the same has to"
        ):
            await report.enqueue("tue")
        assert len(await hf.jobs.list()) == 1
