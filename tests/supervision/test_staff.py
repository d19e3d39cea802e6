"""How many processes there are: as many as wanted, replaced when worn out, more while jobs wait; never a hot loop."""

from __future__ import annotations

import resource
from collections.abc import Callable

from tests.integration.scene import scene
from tests.supervision.crew import HURRIED, Crew, manned

from holdfast.cli.exits import Exit

MakeCrew = Callable[..., Crew]


@scene
async def test_a_process_that_does_not_get_ready_is_tried_again_and_says_why(make_crew: MakeCrew) -> None:
    crew = make_crew()
    crew.let_go("broken")
    async with manned(crew):
        await crew.until_logged("it is broken")
        assert "exited with code 1 before it was ready" in await crew.until_logged("another one is started in", 2)
        (crew.place / "broken").unlink()
        assert await crew.result(await crew.enqueue("add", 1, 2)) == 3


@scene
async def test_an_app_that_does_not_exist_ends_it(make_crew: MakeCrew) -> None:
    async with manned(make_crew(), "-A", "two:apps") as crew:
        assert await crew.ended() == Exit.USAGE
        assert "two apps were named" in crew.log


@scene
async def test_a_process_is_replaced_after_so_many_jobs(make_crew: MakeCrew) -> None:
    async with manned(make_crew(max_jobs=3, concurrency=1)) as crew:
        job = await crew.enqueue("hold", "go")
        [first] = await crew.until_noted("holds go")
        crew.let_go("go")
        await crew.result(job)
        for number in range(2):
            await crew.result(await crew.enqueue("add", number, 1))
        await crew.until_logged("ends when its jobs have ended: it has done 3 jobs")
        await crew.until(lambda: first.pid not in crew.children())
        assert await crew.result(await crew.enqueue("hold", "go")) != first.pid
        assert "died" not in crew.log, "it ended in good order"


@scene
async def test_more_processes_while_jobs_wait_and_fewer_when_not(make_crew: MakeCrew) -> None:
    crew = make_crew(concurrency=1)
    crew.program = HURRIED
    async with manned(crew, "--min", "1", "--max", "2"):
        jobs = [await crew.enqueue("hold", "go") for _ in range(3)]
        seen = await crew.until_noted("holds go", 2)
        assert len({each.pid for each in seen}) == 2, "one more, and no more than that"
        crew.let_go("go")
        for job in jobs:
            await crew.result(job)
        await crew.until_logged("ends when its jobs have ended: there is less to do")
        await crew.until(lambda: len(crew.children()) == 1)


@scene
async def test_without_file_descriptors_it_goes_on_with_what_it_has(make_crew: MakeCrew) -> None:
    async with manned(make_crew(), "--processes", "2") as crew:
        job = await crew.enqueue("hold", "go")
        [busy] = await crew.until_noted("holds go")
        await crew.until_logged("started, ", 2)
        [other] = set(crew.children()) - {busy.pid}
        soft, hard = resource.prlimit(crew.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(crew.pid, resource.RLIMIT_NOFILE, (4, hard))
        crew.kill(other)
        assert "no process could be started" in await crew.until_logged("another one is started in", 2)
        assert await crew.result(await crew.enqueue("add", 1, 2)) == 3, "the other process works"
        resource.prlimit(crew.pid, resource.RLIMIT_NOFILE, (soft, hard))
        await crew.until(lambda: len(crew.children()) == 2)
        crew.let_go("go")
        assert await crew.result(job) == busy.pid
