"""The app that producers, workers and operator share. Its tasks tell a recorder what they do; some of them fail."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.campaign.hazards import HAZARDS, add_hazards
from tests.campaign.telling import told
from tests.campaign.transactions import add_transactions
from tests.campaign.where import Where
from tests.history import RunRecorder

from holdfast import Holdfast, PermanentError, RetryLater, RetryPolicy
from holdfast.client.task import Task
from holdfast.stores.postgres import ended

SOON = RetryPolicy(max_attempts=3, base=0.02, cap=0.2)
#: What every worker serves; only those under a supervisor serve `HAZARDS`, too.
QUEUES = ("campaign", "errands")
_SETTINGS = "settings.json"
__all__ = ["HAZARDS", "QUEUES", "App", "Campaign", "make_app"]


class Campaign(NamedTuple):
    """Where everything is."""

    directory: Path

    @property
    def where(self) -> Where:
        return Where.of(self.directory)

    @property
    def client(self) -> Path:
        return self.directory / "client"

    @property
    def runs(self) -> Path:
        return self.directory / "runs"

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def counts(self) -> Path:
        """How often jobs ran that have to know."""
        return self.directory / "counts"

    @property
    def settings(self) -> dict[str, Any]:
        """Of every app here, where they were said."""
        said = self.directory / _SETTINGS
        return dict(json.loads(said.read_text())) if said.exists() else {}

    def say_settings(self, **settings: Any) -> None:
        (self.directory / _SETTINGS).write_text(json.dumps(settings))

    @property
    def prunes_early(self) -> bool:
        """Whether retention may be shorter than the hour that users get at least."""
        return "keep_succeeded_s" in self.settings

    def make(self) -> None:
        for each in (self.client, self.runs, self.logs, self.counts):
            each.mkdir(parents=True, exist_ok=True)


class App(NamedTuple):
    hf: Holdfast
    tasks: dict[str, Task[..., Any]]


def make_app(
    place: Campaign, *, lease_s: float, recorder: RunRecorder | None = None, url: str = "", **settings: Any
) -> App:
    """`recorder`: only workers have one, nobody else runs tasks. `url`: a way round to the same store."""
    hf = Holdfast(
        url or place.where.address,
        **place.where.settings,
        **{
            "lease_s": lease_s,
            "concurrency": 100 if place.where.is_postgres else 20,
            "threads": 8,
            "poll_s": 0.2,
            "wait_s": 1.0,
            # Producers are held up by it, or they would run far ahead of the workers.
            "high_watermark": 4_000 if place.where.is_postgres else 2_000,
            "low_watermark": 1_000 if place.where.is_postgres else 500,
        }
        | place.settings
        | settings,
    )
    if place.prunes_early:
        ended.KEPT_AT_LEAST_S = 0.0  # else nothing would be pruned within the first hour
    makers = [_swift, _slow, _flaky, _doomed, _snoozing, _reporting, _threaded]
    made = {make.__name__[1:]: make(hf, recorder) for make in makers}
    if place.where.is_postgres:
        made |= add_transactions(hf, recorder)
    add_hazards(hf, recorder, place.counts)
    return App(hf, made)


def _swift(hf: Holdfast, recorder: RunRecorder | None) -> Task[..., Any]:
    @hf.task(name="swift", queue=QUEUES[0])
    async def swift(n: int) -> int:
        with told(recorder) as (_, effect):
            effect()
            return n

    return swift


def _slow(hf: Holdfast, recorder: RunRecorder | None) -> Task[..., Any]:
    @hf.task(name="slow", queue=QUEUES[0], retry=SOON)
    async def slow(n: int) -> int:
        with told(recorder) as (_, effect):
            await asyncio.sleep(n % 20 * 0.01)
            effect()
            await asyncio.sleep(n % 7 * 0.01 if n % 50 else 2.5)  # a few outlast the lease
            return n

    return slow


def _flaky(hf: Holdfast, recorder: RunRecorder | None) -> Task[..., Any]:
    @hf.task(name="flaky", queue=QUEUES[0], retry=SOON)
    async def flaky(n: int) -> int:
        with told(recorder) as (job, effect):
            effect()
            if job.attempt <= n % 3:
                raise ValueError(f"attempt {job.attempt} fails")
            return n

    return flaky


def _doomed(hf: Holdfast, recorder: RunRecorder | None) -> Task[..., Any]:
    @hf.task(name="doomed", queue=QUEUES[1], retry=SOON)
    async def doomed(n: int) -> int:
        with told(recorder) as (job, effect):
            if job.token % 4:  # a replay has another token, so it may get through
                raise PermanentError("not under this token") if n % 2 else ValueError("not this time")
            effect()
            return n

    return doomed


def _snoozing(hf: Holdfast, recorder: RunRecorder | None) -> Task[..., Any]:
    @hf.task(name="snoozing", queue=QUEUES[1])
    async def snoozing(n: int) -> int:
        with told(recorder) as (job, effect):
            if job.token % 2:
                raise RetryLater(after=n % 5 * 0.02)
            effect()
            return n

    return snoozing


def _reporting(hf: Holdfast, recorder: RunRecorder | None) -> Task[..., Any]:
    @hf.task(name="reporting", queue=QUEUES[1])
    async def reporting(n: int) -> int:
        with told(recorder) as (job, effect):
            for step in range(3):
                await job.progress(step, 3, "counting")
                await asyncio.sleep(0.01)
            effect()
            return n

    return reporting


def _threaded(hf: Holdfast, recorder: RunRecorder | None) -> Task[..., Any]:
    @hf.task(name="threaded", queue=QUEUES[0])
    def threaded(n: int) -> int:
        with told(recorder) as (job, effect):
            time.sleep(n % 10 * 0.01)
            effect()
            if not n % 5:
                job.progress_from_thread(1, 1, "done")
            return n

    return threaded
