from __future__ import annotations

import asyncio
from contextvars import copy_context
from pathlib import Path
from uuid import uuid4

from holdfast.client.arguments import Signature
from holdfast.config import Config
from holdfast.core.ids import new_job_id
from holdfast.core.job import ClaimedJob
from holdfast.core.options import TaskOptions
from holdfast.core.settlement import HandBack
from holdfast.core.task import Registry, define
from holdfast.runtime.thread_interrupts import ThreadCall
from holdfast.stores.sqlite import SqliteStore
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.executor import Executor
from holdfast.worker.providers import Providers
from holdfast.worker.run import Interruption, Run


class LateThread:
    """A pool whose thread takes a call just before, and begins it just after, the run is interrupted."""

    def __init__(self) -> None:
        self.run_to_interrupt: Run | None = None

    async def run(self, call: ThreadCall[object], **_: object) -> object:
        assert self.run_to_interrupt is not None
        self.run_to_interrupt.interruption = Interruption.DRAIN
        result, error = call.carry_out(copy_context())
        if error is not None:
            raise error
        return result


def test_a_run_that_was_interrupted_while_it_waited_for_a_thread_never_begins(tmp_path: Path) -> None:
    called = []

    def work() -> None:
        called.append(1)

    async def scene() -> None:
        task = define(work, name="work", options=TaskOptions())
        registry = Registry()
        registry.add(task)
        threads = LateThread()
        payload = Signature(task).encode((), {}, limit=1000)
        job = ClaimedJob(new_job_id(), 7, 1, "work", "default", 5, payload, None, None, "", False)
        run = threads.run_to_interrupt = Run(job, uuid4())
        executor = Executor(
            registry,
            SqliteStore(str(tmp_path / "unopened.db")),
            Config(),
            threads=threads,  # type: ignore[arg-type]
            telemetry=Telemetry(),
            providers=Providers(threads, {}),  # type: ignore[arg-type]
        )
        run.task = asyncio.current_task()
        settlement = await executor.execute(run)
        assert isinstance(settlement, HandBack)

    asyncio.run(scene())
    assert called == []
