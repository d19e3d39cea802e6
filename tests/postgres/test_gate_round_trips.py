"""How often the server is asked for jobs with gates, verb by verb: counted on the way, whatever the size of a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import pytest
from tests.postgres.fixtures import PostgresSchema
from tests.proxies.postgres import PostgresProxy
from tests.proxies.traps import Fate

from holdfast.core.breaker import BreakerFigures, BreakerGate, BreakerMark
from holdfast.core.gates import Gate, RateGate, SlotGate
from holdfast.core.job import ClaimedJob, WorkerId
from holdfast.core.rate import Pace
from holdfast.core.settlement import Retry, Settlement, Succeed, Verdict
from holdfast.runtime.clock import ManualClock
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import ERROR, LANE, LONG_S, a_job, enlist, insert

MANY = 40
WIDE = RateGate("wide", Pace(1000, 1.0, 1000))
BANK = BreakerGate("bank", 5, 60.0, 30.0)


@pytest.fixture
def proxy(postgres_tables: PostgresSchema) -> Iterator[PostgresProxy]:
    with PostgresProxy(postgres_tables.url) as proxy:
        yield proxy


@dataclass
class Desk:
    """A store whose questions are counted, but for those that wake others."""

    proxy: PostgresProxy
    store: PostgresStore
    worker: WorkerId

    async def count(self, act: Callable[[], Awaitable[object]]) -> int:
        apart = self.proxy.arm("notify", Fate.HOLD_ANSWER)
        trap = self.proxy.arm("", Fate.HOLD_ANSWER)
        for each in (apart, trap):
            each.release()
        await act()
        trap.disarm()
        apart.disarm()
        return trap.sprung

    async def claim(self) -> list[ClaimedJob]:
        return (await self.store.claim_jobs(self.worker, {LANE: MANY}, deadline_s=60)).jobs


def _at_a_desk(proxy: PostgresProxy, schema: str, play: Callable[[Desk], Awaitable[None]]) -> None:
    async def scenario() -> None:
        store = PostgresStore(proxy.url, schema=schema, clock=ManualClock())  # what is known of queues stays known
        await store.open()
        try:
            await play(Desk(proxy, store, await enlist(store)))
        finally:
            await store.close()

    asyncio.run(scenario())


def _own_keys(number: int) -> tuple[Gate, ...]:
    return (SlotGate(f"key {number}", 1),)


def _several(number: int) -> tuple[Gate, ...]:
    return (SlotGate(f"key {number}", 1), WIDE, BANK)


async def _lives(desk: Desk, gates: Callable[[int], tuple[Gate, ...]]) -> tuple[int, int, int]:
    """Of a batch: its insertion, its claim, its settlement. What is prepared once is prepared by a batch before."""
    told: list[int] = []
    for _ in range(2):
        jobs = [a_job(gates=gates(number)) for number in range(MANY)]
        found: list[ClaimedJob] = []

        async def claim(found: list[ClaimedJob] = found) -> None:
            found += await desk.claim()

        async def settle(found: list[ClaimedJob] = found) -> None:
            settlements: list[Settlement] = [Succeed(job.id, job.token, None) for job in found]
            assert await desk.store.settle_jobs(desk.worker, settlements) == [Verdict.APPLIED] * MANY

        told = [await desk.count(lambda jobs=jobs: insert(desk.store, *jobs))]  # type: ignore[misc]
        told.append(await desk.count(claim))
        assert len(found) == MANY
        told.append(await desk.count(settle))
    inserted, claimed, settled = told
    return inserted, claimed, settled


def test_a_limit_on_every_job_costs_no_question_more_once_it_is_expected(
    proxy: PostgresProxy, postgres_tables: PostgresSchema
) -> None:
    async def play(desk: Desk) -> None:
        assert await _lives(desk, lambda _: ()) == (1, 1, 1)
        assert await _lives(desk, _own_keys) == (1, 1, 1)

    _at_a_desk(proxy, postgres_tables.schema, play)


def test_several_gates_are_judged_in_a_transaction_of_a_few_questions(
    proxy: PostgresProxy, postgres_tables: PostgresSchema
) -> None:
    async def play(desk: Desk) -> None:
        # The ordinary claim, the short way; BEGIN, pick, hold, claim, COMMIT.
        assert await _lives(desk, _several) == (1, 7, 1)

    _at_a_desk(proxy, postgres_tables.schema, play)


@pytest.mark.parametrize("said", [None, BreakerFigures(failures=900)])
def test_what_a_run_says_about_its_breaker_costs_nothing_until_that_fails(
    said: BreakerFigures | None, proxy: PostgresProxy, postgres_tables: PostgresSchema
) -> None:
    async def play(desk: Desk) -> None:
        if said is not None:  # what operators say comes with what is read anyway
            await desk.store.set_breaker_figures(BANK.name, said, by="me")
        for number, (failed, asked) in enumerate(((False, 1), (True, 7), (False, 1), (True, 7))):
            await insert(desk.store, a_job(gates=(BANK,)))
            [job] = await desk.claim()
            outcome: Settlement = Succeed(job.id, job.token, None)
            if failed:
                outcome = Retry(job.id, job.token, LONG_S, ERROR)
            settling = desk.store.settle_jobs
            marks = [BreakerMark(job.token, failed, BANK)]
            count = await desk.count(lambda: settling(desk.worker, [outcome], marks=marks))  # noqa: B023
            if number > 1:  # what is prepared once has been prepared
                assert count == asked, f"failed: {failed}"

    _at_a_desk(proxy, postgres_tables.schema, play)


def test_a_freed_slot_is_handed_on_in_one_transaction(proxy: PostgresProxy, postgres_tables: PostgresSchema) -> None:
    async def play(desk: Desk) -> None:
        one = (SlotGate("one", 1),)
        told = 0
        for _ in range(2):
            await insert(desk.store, a_job(gates=one), a_job(gates=one))
            [job] = await desk.claim()
            success = Succeed(job.id, job.token, None)
            told = await desk.count(lambda success=success: desk.store.settle_jobs(desk.worker, [success]))  # type: ignore[misc]
            [job] = await desk.claim()
            await desk.store.settle_jobs(desk.worker, [Succeed(job.id, job.token, None)])
        assert told <= 18, "the settlement, what is due, a transaction, what else is due"

    _at_a_desk(proxy, postgres_tables.schema, play)
