"""The very first process dies before it has said anything: an accident, and no reason to wait for ever."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.scene import scene
from tests.supervision.crew import Crew, manned

MakeCrew = Callable[..., Crew]


@scene
async def test_a_first_process_that_dies_at_once_is_started_again(make_crew: MakeCrew) -> None:
    async with manned(make_crew()) as crew:
        [first] = await crew.until(crew.children)
        crew.kill(first)
        await crew.until_logged(f"process {first} was killed by signal 9 (SIGKILL) before it was ready")
        assert await crew.result(await crew.enqueue("add", 1, 2)) == 3
