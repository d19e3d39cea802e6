"""How often a settler asks the server for one flush, and a producer for its jobs: counted on the way, as every answer
costs a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest
from tests.postgres.fixtures import PostgresSchema
from tests.proxies.postgres import PostgresProxy
from tests.proxies.traps import Fate

from holdfast import Holdfast
from holdfast.core.settlement import Bury, Cancel, Crashed, HandBack, Park, Retry, Settlement, Snooze, Succeed, Verdict
from holdfast.runtime.clock import ManualClock
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.postgres.settle import settle_jobs
from holdfast.testing.contracts.arrange import ERROR, LONG_S, Run, enlist, start

KINDS: dict[str, Callable[[Run], Settlement]] = {
    "succeed": lambda run: Succeed(run.id, run.token, b"1"),
    "retry": lambda run: Retry(run.id, run.token, LONG_S, ERROR),
    "snooze": lambda run: Snooze(run.id, run.token, LONG_S, ERROR),
    "hand back": lambda run: HandBack(run.id, run.token, "drained"),
    "crashed": lambda run: Crashed(run.id, run.token, "killed"),
    "park": lambda run: Park(run.id, run.token, "unknown_task", "t"),
    "bury": lambda run: Bury(run.id, run.token, "permanent", ERROR),
    "cancel": lambda run: Cancel(run.id, run.token, "asked"),
}


@pytest.fixture
def proxy(postgres_tables: PostgresSchema) -> Iterator[PostgresProxy]:
    with PostgresProxy(postgres_tables.url) as proxy:
        yield proxy


async def _asked(proxy: PostgresProxy, schema: str, kinds: Sequence[str], *, longer: bool = False) -> int:
    """Round trips of one flush of these kinds, all of which must be applied."""
    store = PostgresStore(proxy.url, schema=schema)
    await store.open()
    try:
        for counted in (False, True):  # the first time the statements are prepared
            worker = await enlist(store)
            settlements = [KINDS[kind](await start(store, worker=worker, queue=kind)) for kind in kinds]
            apart = proxy.arm("notify", Fate.HOLD_ANSWER)
            trap = proxy.arm("", Fate.HOLD_ANSWER)
            for each in (apart, trap):
                each.release()
            if longer:
                settling = partial(settle_jobs, worker=worker, settlements=settlements)
                verdicts, _ = await store._engine.transact("settle_jobs", store._engine.settlements, settling)
            else:
                verdicts = await store.settle_jobs(worker, settlements)
            trap.disarm()
            apart.disarm()
            assert verdicts == [Verdict.APPLIED] * len(settlements)
            if counted:
                return trap.sprung
            await store.purge_queue("hand back", reason="out of the way", limit=10)
            await store.purge_queue("crashed", reason="out of the way", limit=10)
        raise AssertionError
    finally:
        await store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_flush_of_any_one_kind_is_one_statement(
    kind: str, proxy: PostgresProxy, postgres_tables: PostgresSchema
) -> None:
    assert asyncio.run(_asked(proxy, postgres_tables.schema, [kind])) == 1


def test_a_flush_of_all_kinds_is_one_statement(proxy: PostgresProxy, postgres_tables: PostgresSchema) -> None:
    assert asyncio.run(_asked(proxy, postgres_tables.schema, list(KINDS))) == 1


def test_the_longer_way_asks_thirteen_times(proxy: PostgresProxy, postgres_tables: PostgresSchema) -> None:
    """What such a flush cost before, and still costs where something hangs on a job."""
    assert asyncio.run(_asked(proxy, postgres_tables.schema, list(KINDS), longer=True)) == 13


def test_a_producer_asks_once_for_a_job_and_once_a_second_where_jobs_go(
    proxy: PostgresProxy, postgres_tables: PostgresSchema
) -> None:
    """What operators say about routes is one question for a process, however many jobs it enqueues in that second."""

    async def scenario() -> None:
        hf = Holdfast(proxy.url, schema=postgres_tables.schema, clock=(clock := ManualClock()))
        async with hf:
            for _ in range(2):  # what is prepared once is prepared, and what is known of queues stays known
                await hf.enqueue("a.task")
            for jobs, routes, passed_s in ((3, 0, 0.9), (5, 1, 0.1), (1, 0, 0.5), (4, 1, 3600.0)):
                clock.advance(passed_s)
                asked = {
                    name: proxy.arm(pattern, Fate.HOLD_ANSWER)
                    for name, pattern in (("notify", "notify"), ("routes", r"\.route\b"), ("insert", "insert_"))
                }
                for trap in asked.values():
                    trap.release()
                for _ in range(jobs):
                    await hf.enqueue("a.task")
                for trap in asked.values():
                    trap.disarm()
                assert (asked["insert"].sprung, asked["routes"].sprung) == (jobs, routes)

    asyncio.run(scenario())
