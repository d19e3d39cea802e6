"""Ways to enqueue: a task, with options, many in one transaction, by name; what is refused stores nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, by_hand, scene, url_of

from holdfast import Holdfast, InvalidArguments, JobFailed, NotOpen
from holdfast.core.state import State
from holdfast.telemetry.events import JobEnqueued

OTHER_TASK = "shop.tasks.send"


@scene
async def test_a_job_runs_and_its_result_comes_back() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def add(a: int, b: int = 1) -> int:
        return a + b

    async with hf, hf.worker():
        job = await add.enqueue(1, b=2)
        assert await job.result(timeout=PATIENCE_S) == 3
        info = await job.info()
    assert (info.state, info.result, info.attempt, info.attempts) == (State.SUCCEEDED, 3, 1, ())
    assert info.created_at <= info.started_at <= info.ended_at
    assert (info.args, info.kwargs) == ((1,), {"b": 2})


@scene
async def test_a_job_enqueued_before_there_is_a_worker_waits_for_one() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def double(n: int) -> int:
        return 2 * n

    async with hf:
        jobs = [await double.enqueue(n) for n in range(3)]
        assert [(await job.info()).state for job in jobs] == [State.READY] * 3
        async with hf.worker():
            assert [await job.result(timeout=PATIENCE_S) for job in jobs] == [0, 2, 4]


@scene
async def test_a_task_is_still_an_ordinary_function() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def one() -> int:
        """Docs stay."""
        return 1

    @hf.task(queue="mail")
    def two() -> int:
        return 2

    assert await one() == 1
    assert two() == 2
    assert one.__doc__ == "Docs stay."
    assert one.__name__ == "one"


@scene
async def test_options_hold_for_one_call_and_can_be_built_up() -> None:
    hf = Holdfast(":memory:")

    @hf.task(queue="mail", priority="high")
    async def send() -> None: ...

    async with hf:
        plain = await (await send.enqueue()).info()
        slow = send.options(priority="bulk", tenant="acme")
        changed = await (await slow.options(tags=["a"]).enqueue()).info()
        again = await (await send.enqueue()).info()
    assert (plain.queue, plain.priority, plain.tenant, plain.tags) == ("mail", 7, "", ())
    assert (changed.queue, changed.priority, changed.tenant, changed.tags) == ("mail", 0, "acme", ("a",))
    assert (again.priority, again.tenant) == (7, "")


@scene
async def test_many_are_stored_in_one_transaction_in_order() -> None:
    hf = Holdfast(":memory:")
    ran: list[int] = []

    @hf.task
    async def note(n: int) -> int:
        ran.append(n)
        return n

    async with hf:
        jobs = await hf.enqueue_many([note.request(n) for n in range(50)])
        assert {(await job.info()).created_at for job in jobs} == {(await jobs[0].info()).created_at}
        async with hf.worker(concurrency=1):
            assert [await job.result(timeout=PATIENCE_S) for job in jobs] == list(range(50))
    assert ran == list(range(50))


@scene
async def test_one_bad_item_is_named_by_its_index_and_nothing_is_stored() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def note(n: int) -> None: ...

    async with hf:
        with pytest.raises(InvalidArguments, match=r"^item 2: .*note: argument 'n': Input should be a valid integer"):
            await hf.enqueue_many([note.request(0), note.request(1), note.request("x"), note.request(3)])
        assert await hf.jobs.list() == []
        assert await hf.enqueue_many([]) == []


@scene
async def test_more_at_once_than_one_transaction_takes_is_refused() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def note() -> None: ...

    async with hf:
        with pytest.raises(InvalidArguments, match="10,001 requests were given, at most 10,000 go into one"):
            await hf.enqueue_many([note.request()] * 10_001)


@scene
async def test_a_known_task_by_its_name_is_checked_and_uses_its_defaults() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="shop.add", queue="sums", priority="low")
    async def add(a: int, b: int) -> int:
        return a + b

    async with hf, hf.worker():
        job = await hf.enqueue("shop.add", 1, b=2)
        assert await job.result(timeout=PATIENCE_S) == 3
        info = await (await hf.named("shop.add").options(priority=9).enqueue(1, 2)).info()
        assert (info.queue, info.priority) == ("sums", 9)
        with pytest.raises(InvalidArguments, match=r"shop\.add: argument 'b': Missing required argument"):
            await hf.enqueue("shop.add", 1)


@scene
async def test_a_task_of_another_program_runs_where_it_is_known(tmp_path: Path) -> None:
    url = url_of(tmp_path / "jobs.db")
    producer, consumer = Holdfast(url), Holdfast(url)

    @consumer.task(name=OTHER_TASK, queue="mail")
    async def send(to: str, *, subject: str) -> str:
        return f"{to}: {subject}"

    async with producer, consumer, consumer.worker():
        named = producer.named(OTHER_TASK).options(queue="mail")
        good = await named.enqueue("ann", subject="hi")
        bad = await named.enqueue("ann", subjekt="hi")  # not checked here, but there
        assert await good.result(timeout=PATIENCE_S) == "ann: hi"
        with pytest.raises(JobFailed, match="subject"):
            await bad.result(timeout=PATIENCE_S)


@scene
async def test_arguments_called_like_our_own_parameters_reach_the_task() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="awkward")
    async def awkward(task: str, job_id: int, name: str, self: int) -> list[object]:
        return [task, job_id, name, self]

    async with hf, hf.worker():
        call = {"task": "t", "job_id": 1, "name": "n", "self": 2}
        for job in (
            await hf.enqueue("awkward", **call),
            await awkward.enqueue(**call),
            *await hf.enqueue_many([awkward.request(**call)]),
        ):
            assert await job.result(timeout=PATIENCE_S) == ["t", 1, "n", 2]


@scene
async def test_concurrent_callers_share_commits_and_each_gets_its_own_job() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def square(n: int) -> int:
        return n * n

    async with hf, hf.worker():
        jobs = await asyncio.gather(*(square.enqueue(n) for n in range(200)))
        assert len({job.id for job in jobs}) == 200
        results = await asyncio.gather(*(job.result(timeout=PATIENCE_S) for job in jobs))
    assert results == [n * n for n in range(200)]


@scene
async def test_a_caller_that_goes_away_takes_nobody_with_it() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def square(n: int) -> int:
        return n * n

    async with hf, hf.worker():
        calls = [asyncio.create_task(square.enqueue(n)) for n in range(20)]
        await asyncio.sleep(0)
        calls[7].cancel()
        jobs = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(jobs.pop(7), asyncio.CancelledError)
        assert [await job.result(timeout=PATIENCE_S) for job in jobs] == [n * n for n in range(20) if n != 7]


@scene
async def test_what_was_answered_is_in_the_file(tmp_path: Path) -> None:
    hf = Holdfast(url_of(tmp_path / "jobs.db"))

    @hf.task
    async def note() -> None: ...

    async with hf:
        job = await note.enqueue()
        assert by_hand(tmp_path / "jobs.db", "SELECT job_id FROM ready") == [(job.id.bytes,)]


@scene
async def test_an_enqueue_is_told_as_an_event() -> None:
    hf = Holdfast(":memory:")
    heard: list[object] = []
    hf.telemetry.attach(heard.append, only=JobEnqueued)

    @hf.task(name="note", queue="mail")
    async def note() -> None: ...

    async with hf:
        now = await note.enqueue()
        [later] = await hf.enqueue_many([note.options(delay=60).request()])
    assert heard == [
        JobEnqueued(now.id, "note", "mail", 5, State.READY),
        JobEnqueued(later.id, "note", "mail", 5, State.SCHEDULED),
    ]


@scene
async def test_a_closed_app_says_so_and_can_be_opened_again() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def note() -> None: ...

    for use in (note.enqueue, lambda: hf.enqueue_many([]), lambda: hf.jobs.list(), lambda: hf.worker().start()):
        with pytest.raises(NotOpen, match="the app is not open: do this inside `async with hf:`"):
            await use()
    for _ in range(2):
        async with hf, hf.worker():
            await (await note.enqueue()).result(timeout=PATIENCE_S)
            with pytest.raises(NotOpen, match="this app is open already"):
                await hf.open()
    with pytest.raises(NotOpen):
        await note.enqueue()
    await hf.close()  # a second time does nothing
