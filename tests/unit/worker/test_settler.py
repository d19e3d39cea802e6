from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.core.breaker import BreakerGate, BreakerMark, Phase
from holdfast.core.errors import StoreBroken, StoreDataError, StoreUnavailable
from holdfast.core.job import ErrorInfo
from holdfast.core.settlement import Bury, Retry, Settlement, Succeed, Verdict
from holdfast.core.state import State
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.failpoints import armed, disarm_all, release, wait_hit
from holdfast.stores.health import StoreHealth
from holdfast.stores.sqlite import SqliteStore
from holdfast.telemetry.hub import Telemetry
from holdfast.testing.contracts.arrange import a_job, claim, enlist, insert, states
from holdfast.worker.settler import MAX_BATCH, UNSTORABLE, Settled, Settler

ERROR = ErrorInfo("ValueError", "no")


class Picky(SqliteStore):
    """Refuses rows that are marked, as another store may refuse what SQLite takes."""

    marks: frozenset[bytes] = frozenset()
    batches: list[int]

    async def settle_jobs(
        self, worker: object, settlements: Sequence[Settlement], *, marks: Sequence[BreakerMark] = ()
    ) -> list[Verdict]:
        self.batches.append(len(settlements))
        if any(isinstance(each, Succeed) and each.result in self.marks for each in settlements):
            raise StoreDataError("a marked row")
        return await super().settle_jobs(worker, settlements, marks=marks)  # type: ignore[arg-type]


class Desk:
    """A settler over a real store, with runs to settle."""

    def __init__(self, store: Picky, runs: list[Settlement], worker: object, buffer: int) -> None:
        self.store, self.runs = store, runs
        self.heard: list[Settled] = []
        self.crashes: list[BaseException] = []
        self.lease_is_lost = False
        clock = SystemClock()
        self.settler = Settler(
            store,
            worker,  # type: ignore[arg-type]
            buffer=buffer,
            on_settled=self.heard.append,
            on_crash=self.crashes.append,
            lease_lost=lambda: self.lease_is_lost,
            clock=clock,
            health=StoreHealth(clock=clock, telemetry=Telemetry()),
        )


@asynccontextmanager
async def desk(*, jobs: int, buffer: int = 1000) -> AsyncIterator[Desk]:
    store = Picky(":memory:")
    store.batches = []
    await store.open()
    try:
        await insert(store, *(a_job() for _ in range(jobs)))
        worker = await enlist(store)
        claimed = await claim(store, worker, jobs)
        runs: list[Settlement] = [Succeed(job.id, job.token, b"%d" % n) for n, job in enumerate(claimed)]
        yield Desk(store, runs, worker, buffer)
    finally:
        disarm_all()
        await store.close()


def test_outcomes_are_written_together_and_each_verdict_is_told() -> None:
    async def run() -> None:
        async with desk(jobs=5) as it:
            for settlement in it.runs:
                await it.settler.hand_in(settlement)
            await it.settler.close()
            assert it.store.batches == [5]
            assert it.heard == [Settled(settlement, Verdict.APPLIED) for settlement in it.runs]

    asyncio.run(run())


def test_the_buffer_is_bounded_and_goes_on_when_it_has_been_written() -> None:
    async def run() -> None:
        async with desk(jobs=4, buffer=2) as it:
            with armed("settle_jobs.begin", "hang"):
                await it.settler.hand_in(it.runs[0])
                await wait_hit("settle_jobs.begin")
                await it.settler.hand_in(it.runs[1])
                third = asyncio.ensure_future(it.settler.hand_in(it.runs[2]))
                for _ in range(20):
                    await asyncio.sleep(0)
                assert not third.done(), "one in flight and one waiting: the buffer of two is full"
                release("settle_jobs.begin")
                await third
            await it.settler.hand_in(it.runs[3])
            await it.settler.close()
            assert [settled.verdict for settled in it.heard] == [Verdict.APPLIED] * 4

    asyncio.run(run())


def test_no_batch_is_larger_than_the_limit() -> None:
    async def run() -> None:
        async with desk(jobs=MAX_BATCH + 1, buffer=10 * MAX_BATCH) as it:
            for settlement in it.runs:
                it.settler.submit(settlement)
            await it.settler.close()
            assert it.store.batches == [MAX_BATCH, 1]

    asyncio.run(run())


def test_what_the_store_refuses_is_buried_alone() -> None:
    async def run() -> None:
        async with desk(jobs=6) as it:
            it.store.marks = frozenset({b"2"})
            for settlement in it.runs:
                it.settler.submit(settlement)
            await it.settler.close()
            ended = await states(it.store, *(each.job_id for each in it.runs))
            assert ended == [State.DEAD if n == 2 else State.SUCCEEDED for n in range(6)]
            [burial] = [settled.settlement for settled in it.heard if isinstance(settled.settlement, Bury)]
            assert (burial.reason, burial.job_id) == (UNSTORABLE, it.runs[2].job_id)
            assert not it.crashes

    asyncio.run(run())


def test_a_store_that_is_away_is_asked_again() -> None:
    async def run() -> None:
        async with desk(jobs=1) as it:
            with armed("settle_jobs.begin", StoreUnavailable("away"), times=2):
                it.settler.submit(it.runs[0])
                await it.settler.close()
            assert it.heard == [Settled(it.runs[0], Verdict.APPLIED)]
            assert len(it.store.batches) == 3

    asyncio.run(run())


def test_without_a_lease_an_outcome_that_cannot_be_written_is_lost() -> None:
    async def run() -> None:
        async with desk(jobs=1) as it:
            it.lease_is_lost = True
            with armed("settle_jobs.begin", StoreUnavailable("away"), times=None):
                it.settler.submit(it.runs[0])
                await it.settler.close()
            assert it.heard == [Settled(it.runs[0], Verdict.LOST)]

    asyncio.run(run())


@pytest.mark.parametrize("waiting", [0, 3])
def test_an_error_that_nobody_expects_is_told_and_holds_up_nobody(waiting: int) -> None:
    async def run() -> None:
        async with desk(jobs=5, buffer=2) as it:
            with armed("settle_jobs.begin", StoreBroken("a bug")):
                it.settler.submit(it.runs[0])
                waiters = [asyncio.ensure_future(it.settler.hand_in(each)) for each in it.runs[1 : 1 + waiting]]
                await it.settler.close()
                await asyncio.gather(*waiters)
            assert [str(error) for error in it.crashes] == ["a bug"]
            await it.settler.hand_in(Retry(it.runs[4].job_id, it.runs[4].token, 0.0, ERROR))
            await it.settler.close()
            assert it.heard[-1].verdict is Verdict.APPLIED, "it goes on, for as long as it is used"

    asyncio.run(run())


def test_what_runs_say_about_breakers_is_written_with_them_and_told() -> None:
    gate = BreakerGate("bank", 2, 60.0, 30.0)

    async def run() -> None:
        async with desk(jobs=3) as it:
            told: list[BreakerMark] = []
            it.settler._on_marked = told.extend
            marks = [BreakerMark(each.token, failed=True, breaker=gate) for each in it.runs[:2]]
            for each, mark in zip(it.runs, (*marks, None), strict=True):
                it.settler.submit(each, mark)
            await it.settler.close()
            assert told == marks
            [info] = await it.store.breakers()
            assert (info.name, info.phase) == ("bank", Phase.OPEN)

    asyncio.run(run())


def test_runs_grow_older_while_the_store_is_away() -> None:
    """A success from before the breaker opened is not taken for that of a probe because it was told late."""
    gate = BreakerGate("bank", 1, 60.0, 30.0)

    async def run() -> None:
        async with desk(jobs=1) as it:
            ages: list[float] = []
            settle_jobs, outage_s = it.store.settle_jobs, 0.05

            async def settling(*args: Any, marks: Sequence[BreakerMark]) -> list[Verdict]:
                ages.extend(mark.ran_s for mark in marks)
                if len(ages) == 1:
                    await asyncio.sleep(outage_s)
                    raise StoreUnavailable("away")
                return await settle_jobs(*args, marks=marks)

            it.store.settle_jobs = settling  # type: ignore[assignment,method-assign]
            it.settler.submit(it.runs[0], BreakerMark(it.runs[0].token, failed=False, breaker=gate, ran_s=7.0))
            await it.settler.close()
            assert ages[0] >= 7.0
            assert ages[1] >= ages[0] + outage_s

    asyncio.run(run())
