"""Signals to the supervisor: drain, now, load the code anew, tell; exit codes tell what became of the jobs."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tests.integration.scene import scene, until
from tests.supervision.crew import Crew, manned

from holdfast.cli.exits import Exit
from holdfast.core.state import State

MakeCrew = Callable[..., Crew]


@scene
async def test_the_first_signal_drains(make_crew_on_both: MakeCrew) -> None:
    async with manned(make_crew_on_both(concurrency=1), "--processes", "2") as crew:
        jobs = [await crew.enqueue("hold", "go") for _ in range(2)]
        seen = await crew.until_noted("holds go", 2)
        assert len({each.pid for each in seen}) == 2, "each process has one"
        crew.send(signal.SIGTERM)
        await crew.until_logged("claims nothing more", 2)
        waiting = await crew.enqueue("add", 1, 2)
        crew.let_go("go")
        assert await crew.ended() == Exit.OK
        assert [(await job.info()).state for job in (*jobs, waiting)] == [
            State.SUCCEEDED, State.SUCCEEDED, State.READY,
        ]  # fmt: skip
        assert await crew.hf.workers.list() == [], "they have signed off"


@scene
async def test_the_second_signal_hands_back(make_crew: MakeCrew) -> None:
    async with manned(make_crew()) as crew:
        job = await crew.enqueue("hold", "never")
        await crew.until_noted("holds never")
        crew.send(signal.SIGTERM)
        await crew.until_logged("claims nothing more")
        crew.send(signal.SIGTERM)
        assert await crew.ended() == Exit.HANDED_BACK
        info = await job.info()
        assert (info.state, info.attempt) == (State.READY, 0)
        assert [each.cause for each in info.attempts] == ["handed_back"]


@scene
async def test_what_does_not_end_within_the_grace_period_is_handed_back(make_crew: MakeCrew) -> None:
    async with manned(make_crew(grace_s=0.1)) as crew:
        job = await crew.enqueue("hold", "never")
        await crew.until_noted("holds never")
        crew.send(signal.SIGTERM)
        assert await crew.ended() == Exit.HANDED_BACK
        info = await job.info()
        assert (info.state, info.attempt) == (State.READY, 0)
        assert [each.cause for each in info.attempts] == ["handed_back"]


@scene
async def test_hup_loads_the_code_anew_and_nothing_is_cut_short(make_crew: MakeCrew) -> None:
    async with manned(make_crew(), "--processes", "2") as crew:
        job = await crew.enqueue("hold", "go")
        [old] = await crew.until_noted("holds go")
        await crew.until_logged("started, ", 2)
        before = set(crew.children())
        crew.send(signal.SIGHUP)
        await crew.until(lambda: len(now := set(crew.children()) - before) == 2 and before & set(crew.children()) == {
            old.pid
        } and now)  # fmt: skip
        assert "ends when its jobs have ended: the code is loaded anew" in crew.log
        crew.let_go("go")
        assert await crew.result(job) == old.pid
        await crew.until(lambda: not before & set(crew.children()))
        assert await crew.result(await crew.enqueue("add", 1, 2)) == 3


@scene
async def test_wrong_new_code_leaves_the_old_processes_at_work(make_crew: MakeCrew) -> None:
    async with manned(make_crew()) as crew:
        await crew.until_logged("started, ")
        before = set(crew.children())
        crew.let_go("broken")
        crew.send(signal.SIGHUP)
        assert "before it was ready" in await crew.until_logged("another one is started in", 2)
        assert before <= set(crew.children())
        assert await crew.result(await crew.enqueue("add", 1, 2)) == 3
        (crew.place / "broken").unlink()
        await crew.until(lambda: not before & set(crew.children()))


@scene
async def test_usr1_tells_what_every_process_is_doing(make_crew: MakeCrew) -> None:
    async with manned(make_crew()) as crew:
        job = await crew.enqueue("hold", "never")
        await crew.enqueue("hold_a_thread", "never")
        await crew.until_noted("holds never")
        await crew.until_noted("holds a thread")
        await until(job, State.RUNNING)
        crew.send(signal.SIGUSR1)
        assert "2 running, 0 done" in await crew.until_logged(", worker, ")
        await crew.until_logged(f"job {job.id} tests.supervision.manned.hold, for ")
        await crew.until_logged(f"job {job.id} tests.supervision.manned.hold: attempt 1, for ")
        assert "manned.py:" in await crew.until_logged(" in told: await asyncio.sleep"), "where it stands"
        await crew.until_logged(" in hold_a_thread: ")
