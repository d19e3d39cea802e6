"""Nobody hangs: neither who is left in a fork, nor a worker with a call that never ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.campaign.child import Child
from tests.campaign.child import until as until_true
from tests.integration.scene import PATIENCE_S, scene, url_of

from holdfast import Holdfast

MODULE = "tests.attacks.elsewhere"


@contextmanager
def child(*arguments: object, log: Path) -> Iterator[Child]:
    process = Child(MODULE, *arguments, log=log)
    try:
        yield process
    finally:
        process.kill()


@scene
async def test_a_fork_of_an_open_app_is_told_to_open_its_own(tmp_path: Path) -> None:
    """A forked child has the app but not its threads: its request lay in a queue that nobody served, for ever."""
    with child("fork", tmp_path / "jobs.db", log=tmp_path / "log") as process:
        assert await process.ended(within_s=PATIENCE_S) == 0


@scene
async def test_a_call_stuck_in_to_thread_does_not_keep_a_worker_from_ending(tmp_path: Path) -> None:
    """SIGTERM drained and closed everything, and then the process waited for its default executor, for ever."""
    database, begun = tmp_path / "jobs.db", tmp_path / "begun"
    hf = Holdfast(url_of(database))
    async with hf:
        await hf.enqueue("stuck")
    with child("stuck_thread", database, begun, log=tmp_path / "log") as process:
        await until_true(begun.exists, within_s=PATIENCE_S, what="the stuck call", log=process.log)
        process.signal(signal.SIGTERM)
        assert await process.ended(within_s=PATIENCE_S) == 0
