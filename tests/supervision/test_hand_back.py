"""A worker process that dies: its jobs run again at once, uncharged, at their old places, with the cause on record."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable

import pytest
from tests.integration.scene import scene
from tests.supervision.crew import HURRIED, Crew, manned

from holdfast import JobFailed
from holdfast.core.state import State

MakeCrew = Callable[..., Crew]


@scene
async def test_jobs_of_a_killed_process_run_again_in_the_spare(make_crew_on_both: MakeCrew) -> None:
    async with manned(make_crew_on_both(spares=1, concurrency=3)) as crew:
        jobs = [await crew.enqueue("hold", "go") for _ in range(3)]
        waiting = await crew.enqueue("add", 2, 3)
        first = await crew.until_noted("holds go", 3)
        await crew.until_logged("is ready", 2)
        [spare] = set(crew.children()) - {first[0].pid}
        crew.kill(first[0].pid)
        again = (await crew.until_noted("holds go", 6))[3:]
        assert {each.pid for each in again} == {spare}, "no import was needed"
        assert {each.job for each in again} == {str(job.id) for job in jobs}, "they are before what waited behind them"
        crew.let_go("go")
        assert [await crew.result(job) for job in jobs] == [spare] * 3
        assert await crew.result(waiting) == 5
        for job in jobs:
            info = await job.info()
            assert info.attempt == 1, "a death that nobody explained is not charged"
            assert [each.cause for each in info.attempts] == ["worker_lost"]
            assert info.attempts[0].error is not None
            assert "was killed by signal 9 (SIGKILL)" in info.attempts[0].error.message


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("exit", "exited with code 3"),
        ("segfault", "was killed by signal 11 (SIGSEGV)"),
        ("SIGABRT", "was killed by signal 6 (SIGABRT)"),
    ],
)
@scene
async def test_the_cause_of_a_death_is_on_record(make_crew: MakeCrew, how: str, words: str) -> None:
    async with manned(make_crew()) as crew:
        job = await crew.enqueue("die", how)
        assert await crew.result(job) is None
        info = await job.info()
        assert [(each.cause, words in str(each.error)) for each in info.attempts] == [("worker_lost", True)]
        assert words in await crew.until_logged("with 1 running jobs")


@scene
async def test_poison_ends_dead_and_its_neighbours_are_well(make_crew: MakeCrew) -> None:
    async with manned(make_crew(spares=1, concurrency=101)) as crew:
        innocents = [await crew.enqueue("innocent") for _ in range(100)]
        poison = await crew.enqueue("poison", 100)
        assert {await crew.result(job) for job in innocents} == {"well"}
        infos = [await job.info() for job in innocents]
        assert {info.attempt for info in infos} == {1}, "none of them is charged"
        assert {tuple(each.cause for each in info.attempts) for info in infos} == {("worker_lost",) * 2}
        with pytest.raises(JobFailed, match="Poison"):
            await crew.result(poison)
        dead = await poison.info()
        assert (dead.state, dead.reason, dead.attempt) == (State.DEAD, "poison", 1)
        assert len(dead.attempts) == 5, "twice among others, then three times alone"
        assert all("exited with code 1" in str(each.error) for each in dead.attempts), "with the causes"


@scene
async def test_a_lonely_job_does_not_wait_for_a_long_one(make_crew: MakeCrew) -> None:
    """One process is busy for ever; what must run alone gets a process of its own."""
    crew = make_crew(concurrency=4)
    crew.program = HURRIED
    async with manned(crew):
        suspect = await crew.enqueue("hold", "go")
        for times in (1, 2):
            [*_, seen] = await crew.until_noted("holds go", times)
            crew.kill(seen.pid)
        long = await crew.enqueue("hold", "never")
        await crew.until_noted("holds never")
        [*_, alone] = await crew.until_noted("holds go", 3)
        assert alone.pid != crew.noted("holds never")[-1].pid
        crew.let_go("go")
        assert await crew.result(suspect) == alone.pid
        assert (await long.info()).state is State.RUNNING
        await crew.until(lambda: alone.pid not in crew.children())


@scene
async def test_a_run_that_has_ended_is_not_suspected(make_crew: MakeCrew) -> None:
    """Its process died before its success was written, as often as you like: it need not run alone."""
    async with manned(make_crew(failpoints="settle_jobs.begin=kill9")) as crew:
        await crew.enqueue("add", 1, 2)
        await crew.until_noted("added", 4)
        await crew.until_logged("with 0 running jobs", 4)
        assert "started, 1 jobs at once" not in crew.log, "there was no process for lonely jobs"


@scene
async def test_children_end_with_their_supervisor(make_crew: MakeCrew) -> None:
    """Also one that hears nothing, because it does not let its threads run."""
    async with manned(make_crew(spares=1)) as crew:
        await crew.enqueue("keeps_the_gil_for_ever")
        await crew.until_noted("keeps_the_gil_for_ever")
        await crew.until_logged("is ready", 2)
        children = [os.pidfd_open(pid) for pid in crew.children()]
        assert len(children) == 2
        crew.send(signal.SIGKILL)
        try:
            for child in children:
                await crew.until(lambda fd=child: _has_ended(fd))
        finally:
            for child in children:
                os.close(child)


def _has_ended(pidfd: int) -> bool:
    return bool(select.select([pidfd], [], [], 0)[0])
