"""One store under audit, an app with tasks that record what they do, and the judge: what the fault tests share.

Tasks that hold wait for a file, so that a test can let them go in whatever process they run.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.campaign.app import Campaign, told
from tests.campaign.child import until
from tests.history import (
    Answer,
    ClientRecorder,
    Report,
    RunRecorder,
    check,
    load_client,
    load_runs,
)
from tests.history.records import RunEvent, RunLine

from holdfast import Holdfast, JobHandle, RetryPolicy
from holdfast.client.task import Task
from holdfast.telemetry.events import Event

PATIENCE_S = 30.0
_LOOK_S = 0.01


class Trial:
    """`lease_s` and other settings go to the app; workers in other processes make a Trial of the same directory."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.place = Campaign(directory)
        self.place.make()
        self.where = self.place.where
        # A claim has a quarter of a lease: on a busy machine a server of its own takes longer than a file does.
        defaults = {"lease_s": 2.0 if self.where.is_postgres else 1.0, "concurrency": 4, "poll_s": 0.05}
        self.hf = Holdfast(self.address(), **(self.where.settings | defaults | settings))
        self.glance = self.where.glance()
        self.events: list[Event] = []
        self.hf.telemetry.attach(self.events.append)
        self._recorder = RunRecorder(self.place.runs)
        self._client = ClientRecorder(self.place.client)
        self._gate = directory / "released"
        self._add_tasks()

    def address(self) -> str:
        """Where the app looks for its store."""
        return self.where.address

    def _add_tasks(self) -> None:
        hf, recorder, gate = self.hf, self._recorder, self._gate

        @hf.task(name="work", retry=RetryPolicy(max_attempts=3, base=0.01))
        async def work(n: int) -> int:
            with told(recorder) as (_, effect):
                effect()
                return n

        @hf.task(name="fail_once", retry=RetryPolicy(max_attempts=3, base=0.01))
        async def fail_once(n: int) -> int:
            with told(recorder) as (job, effect):
                effect()
                if job.attempt == 1:
                    raise ValueError("the first attempt fails")
                return n

        @hf.task(name="hold")
        async def hold(n: int) -> int:
            with told(recorder) as (job, effect):
                while not gate.exists():
                    await asyncio.sleep(_LOOK_S)
                effect()
                await job.progress(1, 1, f"by {job.worker}")
                return n

        @hf.task(name="hold_in_thread")
        def hold_in_thread(n: int) -> int:
            with told(recorder) as (_, effect):
                while not gate.exists():
                    time.sleep(_LOOK_S)
                effect()
                return n

        self.work, self.fail_once, self.hold, self.hold_in_thread = work, fail_once, hold, hold_in_thread

    # ------------------------------------------------------------ doing

    async def __aenter__(self) -> Trial:
        await self.hf.open()
        self.where.install_audit()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.hf.close()
        self._recorder.close()
        self._client.close()

    async def enqueue(self, task: Task[[int], int], n: int = 1) -> JobHandle[int]:
        handle = await task.enqueue(n)
        self.accepted(handle)
        return handle

    def accepted(self, handle: JobHandle[Any]) -> None:
        self._client.enqueue(handle.id, answer=Answer.OK)

    def release(self) -> None:
        """Let all go that hold."""
        self._gate.touch()

    # ------------------------------------------------------------ seeing

    def runs(self, event: RunEvent = RunEvent.START) -> list[RunLine]:
        return [line for line in load_runs(self.place.runs).lines if line.event is event]

    async def started(self, count: int = 1) -> None:
        """Wait until so many runs are in user code, or have been."""
        await until(lambda: len(self.runs()) >= count, within_s=PATIENCE_S, what=f"{count} runs to start")

    async def heard(self, kind: type[Event], count: int = 1) -> None:
        """Wait for events of this app."""
        await until(lambda: len(self.of(kind)) >= count, within_s=PATIENCE_S, what=f"{count} × {kind.name}")

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if type(event) is kind]

    async def causes(self, job_id: UUID) -> list[str]:
        """Why runs of this job did not end it."""
        return [attempt.cause for attempt in (await self.hf.jobs.get(job_id)).attempts]

    def judged(self, *, quiescent: bool = True) -> Report:
        record = self.where.record()
        return check(load_client(self.place.client), load_runs(self.place.runs), record, quiescent=quiescent)
