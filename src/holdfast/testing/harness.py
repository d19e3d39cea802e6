"""`harness(hf)`: an app on `:memory:` under a clock moved by hand, for users' own tests; no worker, no sleeping.

Time limits of tasks and `result(timeout=…)` are real time all the same: they guard the test, not the job.
"""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from holdfast.app import Holdfast
from holdfast.core.errors import NotOpen, RetryLater
from holdfast.core.job import JobId, JobInfo, NewJob
from holdfast.runtime.clock import ManualClock
from holdfast.runtime.threads import LoopThread
from holdfast.testing.enqueued import EnqueuedJobs
from holdfast.testing.runner import Runner

T = TypeVar("T")


class Harness(EnqueuedJobs):
    """What `async with harness(hf) as t:` gives. `with harness(hf) as t:` gives a `SyncHarness`."""

    def __init__(self, hf: Holdfast, *, inline: bool, max_runs: int) -> None:
        super().__init__(hf.tasks)
        self.hf = hf
        self.clock = ManualClock()
        """Stands still until it is moved: `t.clock.advance(3600)`."""
        self._inline = inline
        self._max_runs = max_runs
        self._runner: Runner | None = None
        self._leaving = contextlib.ExitStack()
        self._sync: SyncHarness | None = None

    async def run_due(self) -> list[JobInfo]:
        """Run everything that is ready now, and what becomes ready by it; the jobs as they stand afterwards."""
        return await self._infos(await self._open_runner().run_due())

    async def run_until_idle(self) -> list[JobInfo]:
        """`run_due`, then move the clock to the next due job, until nothing is scheduled any more."""
        runner = self._open_runner()
        ran = await runner.run_due()
        while (wait_s := await runner.next_due_in_s()) is not None:
            self.clock.advance(max(0.001, wait_s))
            ran += await runner.run_due()
        return await self._infos(ran)

    async def __aenter__(self) -> Self:
        self._leaving.enter_context(self.hf.replaced(clock=self.clock, on_enqueued=self._on_enqueued, url=":memory:"))
        try:
            await self.hf.open()
        except BaseException:
            self._leaving.close()
            raise
        self._runner = Runner(
            self.hf._open_store(),
            self.hf.tasks,
            self.hf.config,
            hooks=self.hf._hooks,
            telemetry=self.hf.telemetry,
            most=self._max_runs,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        runner, self._runner = self._runner, None
        with self._leaving:
            if runner is not None:
                await runner.close()
            await self.hf.close()

    def __enter__(self) -> SyncHarness:
        self._sync = SyncHarness(self)
        return self._sync

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sync is not None:
            self._sync._close()

    async def _infos(self, ids: Sequence[JobId]) -> list[JobInfo]:
        return [await self.hf.jobs.get(job_id) for job_id in dict.fromkeys(ids)]

    def _open_runner(self) -> Runner:
        if self._runner is None:
            raise NotOpen("the harness is not open: do this inside `async with harness(hf) as t:`")
        return self._runner

    async def _on_enqueued(self, jobs: Sequence[NewJob]) -> None:
        for job in jobs:
            self._record(job, self.clock.now())
        if not self._inline:
            return
        runner = self._open_runner()
        await runner.run_due()
        for job in jobs:
            if (running := runner.running.get(job.id)) is not None:
                await running
            error = runner.errors.pop(job.id, None)
            if error is not None and not isinstance(error, RetryLater):
                raise error


class SyncHarness(EnqueuedJobs):
    """The harness for tests without an event loop: the app is open in a thread, and `hf.sync` works on it."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness.hf.tasks)
        self.hf = harness.hf
        self.clock = harness.clock
        self.enqueued = harness.enqueued
        self._harness = harness
        self._thread = LoopThread("holdfast-test")
        self._thread.start()
        try:
            self._run(harness.__aenter__())
        except BaseException:
            self._thread.stop()
            raise

    def run_due(self) -> list[JobInfo]:
        """Run everything that is ready now, and what becomes ready by it; the jobs as they stand afterwards."""
        return self._run(self._harness.run_due())

    def run_until_idle(self) -> list[JobInfo]:
        """`run_due`, then move the clock to the next due job, until nothing is scheduled any more."""
        return self._run(self._harness.run_until_idle())

    def _close(self) -> None:
        try:
            self._run(self._harness.__aexit__(None, None, None))
        finally:
            self._thread.stop()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._thread.submit(coroutine).result()


def harness(hf: Holdfast, *, inline: bool = False, max_runs: int = 1000) -> Harness:
    """Put an app on a store and a clock of its own for one test: `async with harness(hf) as t:`, or `with …`.

    - `inline`: every enqueue runs the job at once and raises what it raises.
    - `max_runs`: runs after which a test that never becomes idle fails.
    """
    return Harness(hf, inline=inline, max_runs=max_runs)
