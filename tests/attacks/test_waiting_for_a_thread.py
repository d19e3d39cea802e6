"""`def` jobs that wait for a thread: whoever has given them up must not have them started afterwards."""

from __future__ import annotations

import asyncio
import threading

from tests.campaign.child import until as until_true
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import Holdfast
from holdfast.core.state import State
from holdfast.telemetry.events import JobStarted


class Crowded:
    """An app with one thread, which is taken, and a job that waits for it."""

    def __init__(self) -> None:
        self.hf = Holdfast(":memory:", lease_s=5, poll_s=0.05)
        self.release = threading.Event()
        self.ran: list[str] = []

        @self.hf.task(name="hog")
        def hog() -> None:
            self.release.wait(2 * PATIENCE_S)

        @self.hf.task(name="say")
        def say(text: str) -> str:
            self.ran.append(text)
            return text

        self.hog, self.say = hog, say


@scene
async def test_what_was_handed_back_before_a_thread_came_is_not_started() -> None:
    """The worker signed off and gave the job back; then the thread came free and ran it, beside its next owner."""
    crowded = Crowded()
    hf = crowded.hf
    async with hf:
        heard = Heard(hf, JobStarted)
        worker = hf.worker(concurrency=4, threads=1)
        await worker.start()
        await crowded.hog.enqueue()
        late = await crowded.say.enqueue("late")
        for _ in range(2):
            await heard.next(JobStarted)
        try:
            worker.stop_now()
            stopping = asyncio.create_task(worker.stop())
            await until(late, State.READY)
        finally:
            crowded.release.set()
        await stopping
        await until_true(
            lambda: not any(thread.name.startswith("holdfast-task") for thread in threading.enumerate()),
            within_s=PATIENCE_S,
            what="the end of the thread, which takes what is left in its queue first",
        )
        assert crowded.ran == []
        assert [attempt.cause for attempt in (await late.info()).attempts] == ["handed_back"]


@scene
async def test_what_was_cancelled_before_a_thread_came_is_not_started() -> None:
    """A cancelled job that waited for a thread could only be told once it ran: so it ran, hours later."""
    crowded = Crowded()
    hf = crowded.hf
    async with hf:
        heard = Heard(hf, JobStarted)
        async with hf.worker(concurrency=4, threads=1):
            await crowded.hog.enqueue()
            late = await crowded.say.enqueue("late")
            for _ in range(2):
                await heard.next(JobStarted)
            try:
                await late.cancel("not wanted")
                await until(late, State.CANCELLED)
            finally:
                crowded.release.set()
            after = await crowded.say.enqueue("after")
            assert await after.result(timeout=PATIENCE_S) == "after"
    assert crowded.ran == ["after"]
