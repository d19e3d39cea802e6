"""What does not end at its hard limit is killed with its process; it alone is charged, its neighbours run again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.scene import scene
from tests.supervision.crew import Crew, manned

from holdfast import Breaker, JobFailed, RetryPolicy
from holdfast.core.breaker import Phase
from holdfast.core.state import State

MakeCrew = Callable[..., Crew]


@pytest.mark.parametrize("culprit", ["blocks", "swallows", "keeps_the_gil", "sticks"])
@scene
async def test_whatever_does_not_end_is_ended(make_crew: MakeCrew, culprit: str) -> None:
    async with manned(make_crew(spares=1)) as crew:
        neighbour = await crew.enqueue("hold", "go")
        await crew.until_noted("holds go")
        job = await crew.enqueue(culprit)
        await crew.until_noted(culprit, 2)
        crew.let_go("go")
        with pytest.raises(JobFailed, match="HardTimeout"):
            await crew.result(job)
        guilty = await job.info()
        assert (guilty.state, guilty.reason, guilty.attempt) == (State.DEAD, "exhausted", 2), "charged each time"
        assert [each.cause for each in guilty.attempts] == ["retry", "dead"]
        assert "did not end at its hard limit of 0.2 s" in str(guilty.error)
        await crew.result(neighbour)
        innocent = await neighbour.info()
        assert innocent.attempt == 1, "not charged"
        assert all("did not end at its hard limit" in str(each.error) for each in innocent.attempts)
        assert {each.cause for each in innocent.attempts} == {"worker_lost"}


@scene
async def test_a_neighbour_is_not_suspected_where_the_culprit_is_known(make_crew_on_both: MakeCrew) -> None:
    """However often: it never has to run alone."""
    async with manned(make_crew_on_both(spares=1)) as crew:
        neighbour = await crew.enqueue("hold", "go")
        for times in (1, 3):
            await crew.until_noted("holds go", times)
            job = await crew.enqueue("swallows")
            with pytest.raises(JobFailed):
                await crew.result(job)
        [*_, last] = await crew.until_noted("holds go", 5)
        assert last.pid in crew.children()
        other = await crew.enqueue("hold", "go")
        crew.let_go("go")
        assert await crew.result(other) == await crew.result(neighbour) == last.pid, "in one process with others"


@scene
async def test_who_blocks_the_event_loop_is_named(make_crew: MakeCrew) -> None:
    async with manned(make_crew()) as crew:
        job = await crew.enqueue("blocks_until", "go")
        line = await crew.until_logged("the event loop has been blocked for")
        assert f"by job {job.id} tests.supervision.manned.blocks_until at " in line
        assert "manned.py:" in line
        crew.let_go("go")
        await crew.result(job)


@pytest.mark.parametrize(
    ("task", "phases"),
    [
        ("waits_for_the_bank", [Phase.OPEN]),
        ("waits_for_the_bank_in_a_thread", [Phase.OPEN]),
        ("dies_at_the_bank", []),
    ],
)
@scene
async def test_a_run_that_is_killed_at_its_limit_counts_against_its_breaker(
    make_crew_on_both: MakeCrew, task: str, phases: list[Phase]
) -> None:
    """A service that does not answer is what a breaker is for; a process that dies is not the service's doing."""
    async with manned(make_crew_on_both(spares=1)) as crew:
        bank = Breaker("bank", failures=1, window=60, open_for=3600)

        @crew.hf.task(name=f"tests.supervision.manned.{task}", breaker=bank, retry=RetryPolicy(max_attempts=1))
        async def stands_for_it() -> None: ...

        job = await stands_for_it.enqueue()
        with pytest.raises(JobFailed):
            await crew.result(job)
        assert [each.phase for each in await crew.hf.breakers.list() if each.state.open_until] == phases
