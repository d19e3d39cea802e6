"""The app of the scenes: the tasks of a trial and some more, among them one that strikes its own process."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.campaign.app import told
from tests.campaign.where import Where
from tests.faults.trial import Trial
from tests.history import ClientRecorder, RunRecorder

from holdfast import RetryPolicy, current_job
from holdfast.stores.postgres import connections

#: Short, so that a cell is quick; long enough for a busy machine. A claim has half of it to be answered.
LEASE_S = {False: 1.0, True: 1.5}
#: So long a server bears a transaction in which nothing happens: less than a lease, as it is by default.
IDLE_MS = 700


class Cast(Trial):
    """`Trial` for one cell. Every process of the cell makes one of the same directory."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.marks = directory / "marks"
        self.marks.mkdir(exist_ok=True)
        super().__init__(directory, **{"keep_cancelled_s": 3600.0, "grace_s": 5.0, "wait_s": 30.0} | settings)
        self.release()

    @classmethod
    def at(cls, directory: Path, **settings: Any) -> Cast:
        """With the lease that fits its store."""
        return cls(directory, **{"lease_s": LEASE_S[Where.of(directory).is_postgres]} | settings)

    @property
    def lease_s(self) -> float:
        return self.hf.config.lease_s

    @property
    def sales(self) -> str:
        """The user's own table, where there is a server."""
        return f"public.{self.where.schema}_sale"

    def _add_tasks(self) -> None:
        super()._add_tasks()
        recorder, marks = self._recorder, self.marks

        @self.hf.task(name="report")
        async def report(n: int) -> int:
            with told(recorder) as (job, effect):
                effect()
                await job.progress(1, 2, "halfway")
                return n

        @self.hf.task(name="sell", retry=RetryPolicy(max_attempts=9, base=0.01, cap=0.1))
        async def sell(n: int) -> int:
            """What it did, it did when its transaction commits: it may be killed before it returns."""
            job = current_job()
            run: dict[str, Any] = {"token": job.token, "attempt": job.attempt, "worker": job.worker}
            recorder.start(job.id, **run)
            async with job.transaction() as connection:
                await connection.execute(f"INSERT INTO {self.sales} (job) VALUES ($1)", job.id)
                job.finish(n)
                recorder.effect(job.id, **run)
                recorder.end(job.id, **run)
            return n

        @self.hf.task(name="strike", retry=RetryPolicy(max_attempts=3, base=0.01), timeout=2 * self.lease_s)
        async def strike(how: str) -> int:
            """Strikes its own process, the first time: R1, in user code."""
            with told(recorder) as (job, effect):
                mark = marks / str(job.id)
                if not mark.exists():
                    mark.touch()
                    await _strike_oneself(how, self.lease_s)
                effect()
                return current_job().attempt

        self.report, self.sell, self.strike = report, sell, strike

    @property
    def client(self) -> ClientRecorder:
        return self._client

    @property
    def recorder(self) -> RunRecorder:
        return self._recorder


@contextmanager
def impatient_server() -> Iterator[None]:
    """For the connections that this process opens meanwhile."""
    usual, longest_s = dict(connections._OURS_ALONE), connections.LONGEST_S
    connections._OURS_ALONE["idle_in_transaction_session_timeout"] = f"{IDLE_MS}ms"
    connections.LONGEST_S = 2 * IDLE_MS / 1000
    try:
        yield
    finally:
        connections._OURS_ALONE.update(usual)
        connections.LONGEST_S = longest_s


async def _strike_oneself(how: str, lease_s: float) -> None:
    match how:
        case "fail":
            raise ValueError("as told")
        case "hang":
            await asyncio.Event().wait()
        case "kill9":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "memory":
            _take_all_memory()
        case "block":
            time.sleep(1.5 * lease_s)  # the event loop does not run meanwhile
        case _:
            raise AssertionError(how)


def _take_all_memory() -> None:
    """Where the system allows little more than there is."""
    usual = resource.getrlimit(resource.RLIMIT_AS)
    taken = 4096 * int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (taken + 64_000_000, usual[1]))
    try:
        bytearray(512_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)
