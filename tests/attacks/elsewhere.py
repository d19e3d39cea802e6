"""What has to happen in a process of its own: `python -m tests.attacks.elsewhere <role> <database> [<file>]`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

from tests.campaign.child import _PARENT as PARENT
from tests.campaign.child import die_with_parent
from tests.integration.scene import PATIENCE_S, url_of

from holdfast import Holdfast, NotOpen


def crew(database: Path) -> None:
    """One worker after the other, for as long as they are killed. One of its tasks kills its worker."""
    # So many slots that one claim takes all the jobs of a lane, whatever its share.
    hf = Holdfast(url_of(database), lease_s=0.5, poll_s=0.05, concurrency=100)

    @hf.task(name="poison")
    async def poison() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    @hf.task(name="innocent")
    async def innocent(n: int) -> int:
        return n

    os.environ[PARENT] = str(os.getpid())  # of the workers
    while True:
        if os.fork() == 0:
            die_with_parent()
            hf.run_worker()
            os._exit(0)
        _, status = os.wait()
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            return
        asyncio.run(_reap(hf))  # so that the next one finds all of its jobs at once


async def _reap(hf: Holdfast) -> None:
    async with hf:
        while await hf.workers.list():
            await hf._open_store().reap_workers(limit=1)
            await asyncio.sleep(0.01)


def fork(database: Path) -> None:
    """Fork while the app is open; ends with 0 if the child was told so by each kind of call."""
    hf = Holdfast(url_of(database))

    @hf.task(name="work")
    async def work() -> None: ...

    async def refused() -> bool:
        for call in (work.enqueue, hf.jobs.list, lambda: hf.queues.pause("default")):
            try:
                await call()
            except NotOpen:
                continue
            return False
        return True

    with asyncio.Runner() as runner:
        runner.run(hf.open())
        if os.fork() == 0:
            signal.alarm(int(PATIENCE_S) // 2)  # one that hangs is killed, which is not 0 either
            os._exit(0 if asyncio.run(refused()) else 1)
        _, status = os.wait()
        runner.run(hf.close())
    sys.exit(abs(os.waitstatus_to_exitcode(status)))


def stuck_thread(database: Path, begun: str) -> None:
    """A worker with a task that leaves a blocking call in `asyncio.to_thread`, where nothing can stop it."""
    hf = Holdfast(url_of(database), poll_s=0.05, grace_s=0.0)

    def block() -> None:
        Path(begun).touch()
        threading.Event().wait()

    @hf.task(name="stuck")
    async def stuck() -> None:
        await asyncio.to_thread(block)

    hf.run_worker()


if __name__ == "__main__":
    die_with_parent()
    role, database, *more = sys.argv[1:]
    {"crew": crew, "fork": fork, "stuck_thread": stuck_thread}[role](Path(database), *more)
