"""Jobs that were lost twice run alone, one at a time, and neither starve nor stop the others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

from tests.faults.trial import PATIENCE_S, Trial
from tests.history.records import RunEvent

from holdfast.core.fairness import Lane
from holdfast.testing.contracts.arrange import claim, enlist, lose


async def lose_twice(trial: Trial, job_ids: list[UUID]) -> None:
    """Two workers die with these jobs: from now on they run alone."""
    store = trial.where.store()
    await store.open()
    for _ in range(2):
        worker = await enlist(store)
        assert [job.id for job in await claim(store, worker, lane=Lane("default", 5))] == job_ids
        await lose(store, worker)
    await store.close()


def _runs_during(trial: Trial, token: int) -> list[int]:
    """The tokens of other runs that were in user code between the start and the end of this one."""
    begun = {line.token: line.at for line in trial.runs(RunEvent.START)}
    ended = {line.token: line.at for line in trial.runs(RunEvent.END)}
    return [
        other
        for other in begun
        if other != token and begun[other] < ended[token] and ended.get(other, float("inf")) > begun[token]
    ]


def test_a_job_that_must_run_alone_comes_to_run_under_load(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial:
            lonely = await trial.enqueue(trial.work, 7)
            await lose_twice(trial, [lonely.id])
            over = asyncio.Event()

            async def keep_busy() -> None:
                task = trial.work.options(queue="busy", priority=7)
                while not over.is_set():
                    handle = await task.enqueue(1)
                    trial.accepted(handle)
                    await handle.result(timeout=PATIENCE_S)

            async with trial.hf.worker(), asyncio.TaskGroup() as others:
                for _ in range(12):  # more than it can run at once
                    others.create_task(keep_busy())
                try:
                    assert await lonely.result(timeout=PATIENCE_S) == 7
                finally:
                    over.set()
            report = trial.judged()
            assert report.sound, report
            [run] = [line for line in trial.runs() if line.job_id == str(lonely.id)]
            assert not _runs_during(trial, run.token), "nothing runs beside it"

    asyncio.run(run())
