"""How isolates come to be, how many, and what happens where they cannot; in the worker, nothing spins meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until, url_of
from tests.isolation import app
from tests.isolation.app import hf
from tests.isolation.processes import gone

from holdfast import ConfigError, Holdfast
from holdfast.app.births import birth_of
from holdfast.core.state import State
from holdfast.telemetry.events import Event
from holdfast.telemetry.process_events import IsolateNotStarted
from holdfast.worker.isolation.isolate import Birth, CannotStart, Isolate
from holdfast.worker.isolation.pool import IsolatePool, NoIsolate
from holdfast.worker.isolation.wire import longest

LONGEST = longest(1024)


def pool_of(path: Path, *, most: int = 4, idle_s: float = PATIENCE_S) -> IsolatePool:
    config = hf.config.with_arguments(url=url_of(path / "jobs.db"))
    return IsolatePool(
        lambda: birth_of(hf, hf.tasks, hf._hooks, config),
        most=most,
        longest=LONGEST,
        telemetry=hf.telemetry,
        idle_s=idle_s,
    )


async def dead(isolate: Isolate) -> None:
    ended = asyncio.Event()
    isolate.when_dead(lambda _: ended.set())
    await asyncio.wait_for(ended.wait(), PATIENCE_S)


@scene
async def test_one_is_kept_warm_and_replaced(tmp_path: Path) -> None:
    pool = pool_of(tmp_path)
    pool.warm()
    first = await pool.lend()
    pool.take_back(first)
    assert pool.pids == [first.pid]
    first.kill()
    await dead(first)
    second = await pool.lend()
    assert pool.pids == [second.pid] != [first.pid]
    await pool.close()
    await gone(second.pid)


@scene
async def test_further_ones_are_started_when_needed_up_to_the_limit_and_end_when_idle(tmp_path: Path) -> None:
    pool = pool_of(tmp_path, most=2, idle_s=0.01)
    one, two = await asyncio.gather(pool.lend(), pool.lend())
    third = asyncio.create_task(pool.lend())
    pool.take_back(one)
    assert await third is one
    assert sorted(pool.pids) == sorted([one.pid, two.pid])
    pool.take_back(two)
    await dead(two)
    pool.take_back(one)
    assert await pool.lend() is one  # the last one is kept
    await pool.close()


@scene
async def test_one_that_was_lent_to_somebody_who_has_gone_is_lent_to_the_next(tmp_path: Path) -> None:
    pool = pool_of(tmp_path, most=1)
    one = await pool.lend()
    impatient, patient = asyncio.create_task(pool.lend()), asyncio.create_task(pool.lend())
    await asyncio.sleep(0)  # both are in line
    pool.take_back(one)
    impatient.cancel()
    assert await patient is one
    await pool.close()


@scene
async def test_whoever_waits_hears_of_every_reason() -> None:
    def birth() -> Birth:
        raise OSError("no descriptors left")

    pool = IsolatePool(birth, most=2, longest=LONGEST, telemetry=hf.telemetry)
    heard = Heard(hf, IsolateNotStarted)
    with pytest.raises(NoIsolate, match="no process could be started for it: OSError: no descriptors left"):
        await pool.lend()
    assert (await heard.next(IsolateNotStarted)).error == "OSError: no descriptors left"
    waiting = asyncio.create_task(pool.lend())
    await asyncio.sleep(0)  # it is in line
    await pool.close()
    for late in (waiting, pool.lend()):
        with pytest.raises(NoIsolate, match="the worker is stopping"):
            await late


@scene
async def test_it_ends_when_the_worker_hangs_up(tmp_path: Path) -> None:
    isolate = await Isolate.start(
        birth_of(hf, hf.tasks, hf._hooks, hf.config.with_arguments(url=url_of(tmp_path / "jobs.db"))), longest=LONGEST
    )
    isolate._writer.close()
    await gone(isolate.pid)
    await isolate.end(within_s=0)


@scene
async def test_what_waits_for_a_process_longer_than_it_may_run_is_given_back() -> None:
    async with hf, hf.worker(isolates=1):
        first = await app.wait.enqueue()
        await until(first, lambda info: info.stage is not None)
        second = await app.add.options(timeout=0.05).enqueue(1)
        given_back = await until(second, lambda info: bool(info.attempts))
        await first.cancel()
        assert await second.result(timeout=PATIENCE_S) == 2
    run = given_back.attempts[0]
    assert (run.cause, run.error and run.error.message) == ("handed_back", "no process came free for it in time")


@scene
async def test_where_none_can_be_started_jobs_are_given_back_and_nothing_spins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = tmp_path / "switch"
    monkeypatch.setenv("HOLDFAST_TEST_BROKEN_START", str(switch))
    async with hf:
        heard = Heard(hf, IsolateNotStarted)
        failed: list[Event] = []
        hf.telemetry.attach(failed.append, only=(IsolateNotStarted,))
        monkeypatch.setattr(hf._hooks, "startup", [])  # of the worker itself
        async with hf.worker():
            job = await app.add.enqueue(1)
            told = [await heard.next(IsolateNotStarted) for _ in range(3)]
            switch.touch()
            assert await job.result(timeout=PATIENCE_S) == 2
            info = await job.info()
    assert all("note_start raised FileNotFoundError" in event.error for event in told)
    assert all(event.pause_s > 0 for event in told)
    assert {run.cause for run in info.attempts} == {"handed_back"}
    assert 1 <= len(info.attempts) <= len(failed)
    assert info.attempts[0].error is not None
    assert info.attempts[0].error.message.startswith("no process could be started for it: StartupFailed: ")


@scene
async def test_a_worker_whose_app_cannot_be_found_by_others_does_not_start() -> None:
    local = Holdfast(":memory:")

    @local.task(isolate=True)
    async def work() -> None: ...

    async with local:
        with pytest.raises(ConfigError, match=r"Make it one at the top of a module, as in `hf = Holdfast\(…\)`"):
            await local.worker().start()
        assert await local.workers.list() == []


@scene
async def test_without_isolated_tasks_nothing_is_started_and_the_app_may_be_anywhere() -> None:
    local = Holdfast(":memory:")

    @local.task
    async def work() -> str:
        return "done"

    async with local, local.worker() as worker:
        assert await (await work.enqueue()).result(timeout=PATIENCE_S) == "done"
        assert worker._isolates.pids == []


@scene
async def test_a_task_that_only_the_worker_has_is_named(tmp_path: Path) -> None:
    config = hf.config.with_arguments(url=url_of(tmp_path / "jobs.db"))
    birth = birth_of(hf, hf.tasks, hf._hooks, config)
    with pytest.raises(
        CannotStart, match=r"tests\.isolation\.app:hf has no task made\.later when its modules are imported"
    ):
        await Isolate.start(birth._replace(first={**birth.first, "tasks": ["made.later"]}), longest=LONGEST)


@scene
async def test_a_module_that_cannot_be_imported_is_named_with_the_place(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import os\n\nos.nothing_like_that\n")
    birth = birth_of(hf, hf.tasks, hf._hooks, hf.config)
    with pytest.raises(CannotStart, match=r"AttributeError: .*nothing_like_that.*broken\.py, line 3\)"):
        await Isolate.start(birth._replace(first={**birth.first, "script": ["broken", str(broken)]}), longest=LONGEST)
    with pytest.raises(CannotStart, match="nowhere/python could not be started: "):
        await Isolate.start(birth._replace(command=["/nowhere/python"]), longest=LONGEST)
    with pytest.raises(CannotStart, match="it exited with code 7 before it was ready"):
        await Isolate.start(birth._replace(command=[birth.command[0], "-c", "exit(7)"]), longest=LONGEST)


@scene
async def test_an_isolated_job_dead_or_alive_is_settled_under_the_same_token() -> None:
    async with hf, hf.worker():
        job = await app.fail.enqueue("again")
        info = await until(job, State.DEAD)
    assert len({run.token for run in info.attempts}) == len(info.attempts) == 1
