"""What happens in the demonstration: a producer, a worker, and a second one that is killed at its work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.cli.demo.tasks_file import LEASE_S, QUICK_QUEUES, SLOW_QUEUE, Demonstrated
from holdfast.core.job import JobInfo
from holdfast.core.shown import counted
from holdfast.worker.worker import Worker

_LOOK_S = 0.1
#: How far the second worker's jobs have come when it is killed: far enough to be seen, far from their end.
_MIDDLE = 0.6

Tell = Callable[[str, str], None]
"""Takes the name of what happened, and a sentence."""


class Show:
    """Started once, stopped once.

    1. A worker of this process serves the quick queues; a process of its own serves the slow one.
    2. The producer enqueues until it is stopped.
    3. That process is killed in the middle of its jobs, and another worker of this process takes over its queue.
    """

    def __init__(self, demonstrated: Demonstrated, tell: Tell) -> None:
        self._hf, self._produce = demonstrated
        self._tell = tell
        self._workers: list[Worker] = []
        self._acts: list[asyncio.Task[None]] = []
        self._second: Process | None = None

    async def start(self) -> None:
        """Begin; returns when the first worker is at work."""
        command = (sys.executable, "-P", "-m", "holdfast.cli.demo.second_worker", self._hf.config.url)
        # In a session of its own, so that Ctrl-C reaches it through `stop`, like every other ending.
        self._second = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
        self._tell("demo.second", f"a second worker, in process {self._second.pid}, will serve {SLOW_QUEUE}")
        await self._serve(QUICK_QUEUES)
        self._act(self._produce())
        self._act(self._kill(self._second))

    def check(self) -> None:
        """Raise what an act has failed with."""
        for act in self._acts:
            if act.done():
                act.result()

    async def stop(self) -> None:
        """Enqueue nothing more, let what runs end, and end the workers."""
        for act in self._acts:
            act.cancel()
        await asyncio.gather(*self._acts, return_exceptions=True)  # `check` has told of errors
        endings: list[Coroutine[Any, Any, object]] = [worker.stop() for worker in self._workers]
        if self._second is not None:
            self._terminate(self._second)
            endings.append(self._second.wait())
        await asyncio.gather(*endings)

    def stop_now(self) -> None:
        """Let `stop` wait no longer: what runs is handed back."""
        for worker in self._workers:
            worker.stop_now()
        if self._second is not None:
            self._terminate(self._second)  # its second signal, besides that of `stop`: it hands back, too

    def _terminate(self, second: Process) -> None:
        # Not by its own method, which looks first whether it has ended, and so takes that from asyncio, who says so.
        if second.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(second.pid, signal.SIGTERM)

    async def _serve(self, queues: tuple[str, ...], *, concurrency: int = 8) -> None:
        worker = self._hf.worker(queues=queues, concurrency=concurrency)
        self._workers.append(worker)
        await worker.start()

    def _act(self, act: Coroutine[Any, Any, None]) -> None:
        self._acts.append(asyncio.create_task(act))

    async def _kill(self, second: Process) -> None:
        ended = asyncio.create_task(second.wait())
        while not (jobs := await self._in_the_middle()) and not ended.done():
            await asyncio.wait({ended}, timeout=_LOOK_S)
        if not ended.done():
            second.kill()
            await ended
            lost = counted(len(jobs), "running job")
            self._tell("demo.killed", f"process {second.pid} was killed with {lost}; its lease ends in {LEASE_S:g} s")
        else:
            self._tell("demo.ended", f"process {second.pid} ended by itself, with code {second.returncode}")
        await self._serve((SLOW_QUEUE,), concurrency=4)

    async def _in_the_middle(self) -> list[JobInfo]:
        """The second worker's jobs, once one of them has come far enough to lose something."""
        jobs = await self._hf.jobs.list(state="running", queue=SLOW_QUEUE)
        halfway = [job for job in jobs if job.progress is not None and (job.progress.fraction or 0) >= _MIDDLE]
        return jobs if halfway else []
