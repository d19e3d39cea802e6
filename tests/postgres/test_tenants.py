"""Tenants on PostgreSQL: a million waiting jobs of one cost another nothing, and producers do not wait in circles."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import product
from typing import Any

import asyncpg
import pytest
from tests.postgres.fixtures import PostgresSchema
from tests.postgres.test_claim_plan import QUOTA, ClaimStatement, Connection, buffers, db, nodes, scans
from tests.postgres.test_claim_plan import fill as fill_plain

from holdfast.core.fairness import Lane
from holdfast.core.tenancy import COST, cost_of, next_tag
from holdfast.runtime.clock import ManualClock
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.postgres.insert import fair_columns
from holdfast.stores.postgres.statements import migrations
from holdfast.testing.contracts.arrange import a_job, claim, enlist, insert

__all__ = ["db"]  # a fixture

_FILL = """
INSERT INTO {schema}.ready (seq, tag, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
SELECT nextval('{schema}.place'), 1 + (n - 1) * {cost}, now(), gen_random_uuid(), 5, 0, 0, 0, false, 'plan'
FROM generate_series(%s::int8, %s::int8) AS n
"""
_TENANT = """
INSERT INTO {schema}.depth (queue, tenanted) VALUES ('plan', true) ON CONFLICT (queue) DO NOTHING;
INSERT INTO {schema}.job (id, created_at, priority, task, queue, tenant, payload)
SELECT job_id, now(), 5, 't', 'plan', 'big', '' FROM {schema}.ready ORDER BY tag LIMIT 2000; -- which will be claimed
INSERT INTO {schema}.tenant_tag (tag, job_id, priority, queue, tenant)
SELECT tag, job_id, 5, 'plan', 'big' FROM {schema}.ready ORDER BY tag DESC LIMIT 1
"""


def fill(db: Connection, schema: str, first: int, last: int) -> None:
    db.execute(_FILL.format(schema=schema, cost=COST), (first, last))  # type: ignore[call-overload]


def test_a_million_jobs_of_one_tenant_cost_a_claim_and_another_tenant_nothing(
    db: Connection, postgres_tables: PostgresSchema
) -> None:
    statement = ClaimStatement(db, postgres_tables.schema)
    db.execute("ANALYZE ready")  # while it is empty: the worst advice that statistics can give
    fill(db, postgres_tables.schema, 1, 1_000)
    statement.claim()
    few = statement.claim(tag=1)
    fill(db, postgres_tables.schema, 1_001, 1_000_000)
    many = statement.claim(tag=1)
    assert {kind for kind, _ in scans(many)} <= {"Index Scan", "Index Only Scan", "Tid Scan", "CTE Scan"}, scans(many)
    assert buffers(many) <= 1.5 * buffers(few), f"{buffers(many)} with a million, {buffers(few)} with a thousand"
    db.execute(_TENANT.format(schema=postgres_tables.schema))  # type: ignore[call-overload]
    asyncio.run(_second_tenant(postgres_tables))


async def _second_tenant(place: PostgresSchema) -> None:
    store = PostgresStore(place.url, schema=place.schema)
    await store.open()
    try:
        worker = await enlist(store)
        lane = Lane("plan", 5)
        await claim(store, worker, 200, lane=lane)
        small = await insert(store, a_job(queue="plan", tenant="small"))
        assert small[0] in {job.id for job in await claim(store, worker, 2, lane=lane)}
        for _ in range(20):  # also for a worker in the middle of them, with a floor
            await claim(store, worker, QUOTA, lane=lane)
            [one] = await insert(store, a_job(queue="plan", tenant="small"))
            assert one in {job.id for job in await claim(store, worker, 2, lane=lane)}
    finally:
        await store.close()


def test_without_tenants_a_claim_touches_what_it_did_before(db: Connection, postgres_tables: PostgresSchema) -> None:
    """Compared with the function of the version before, in turns, on one lane."""
    schema = postgres_tables.schema
    [script] = [text for number, _, text in migrations(schema) if number == 5]
    function = script[script.index("CREATE OR REPLACE FUNCTION") : script.index("-- How long")]
    db.execute(function.replace(f"{schema}.claim_jobs(", f"{schema}.claim_jobs_before(", 1))  # type: ignore[call-overload]
    try:
        fill_plain(db, schema, 1, 10_000)
        now = ClaimStatement(db, schema)
        before = ClaimStatement(db, schema, function="claim_jobs_before", name="before")
        touched = Counter[str]()
        written: dict[str, dict[str, int]] = {}
        for turn in range(22):
            statement = (before, now)[turn % 2]
            plan = statement.claim(floor=statement.next_seq())
            if turn < 2:
                continue  # the first time reads the catalogue, too
            touched[statement.name] += buffers(plan)
            written[statement.name] = _rows_written(plan)
            assert plan["Actual Rows"] == QUOTA
        assert written["claim"] == written["before"] | {"lane_reached": 0}
        assert touched["claim"] <= 1.05 * touched["before"], f"blocks that are touched: {touched}"
    finally:
        db.execute(f"DROP FUNCTION {schema}.claim_jobs_before")  # type: ignore[call-overload]


def _rows_written(plan: dict[str, Any]) -> dict[str, int]:
    """Rows that came from below each step that writes to a table."""
    return {
        node["Relation Name"]: sum(int(part["Actual Rows"]) for part in node["Plans"])
        for node in nodes(plan)
        if node["Node Type"] == "ModifyTable"
    }


class Recorded(dict[str, str]):
    """Statements by name, and which were asked for."""

    def __init__(self, statements: Any) -> None:
        super().__init__(statements)
        self.asked: list[str] = []

    def __getitem__(self, name: str) -> str:
        self.asked.append(name)
        return super().__getitem__(name)


def test_without_tenants_the_statements_are_those_of_before(postgres_tables: PostgresSchema) -> None:
    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema, clock=ManualClock())
        await store.open()
        store._engine.sql = recorded = Recorded(store._engine.sql)
        try:
            worker = await enlist(store)
            await insert(store, a_job())
            recorded.asked.clear()
            store._gates.forget()
            await insert(store, *(a_job() for _ in range(10)))
            await claim(store, worker, 10)
            await insert(store, a_job(run_at=1.0))
            await store.promote_jobs(limit=10)
            assert recorded.asked == [
                *("queues.survey", "insert_jobs.new"),
                "claim_jobs.ordinary",
                *(
                    "transaction.now",
                    "insert_jobs.set_lock_timeout",
                    "insert_jobs.existing",
                    "insert_jobs.write_bodies",
                ),
                *("transaction.enter_ready", "transaction.change_depths"),
                *("transaction.now", "waiting.promote", "waiting.next_due"),
            ]
        finally:
            await store.close()

    asyncio.run(scenario())


def test_producers_of_the_same_tenants_neither_wait_in_a_circle_nor_give_a_tag_twice(
    postgres_tables: PostgresSchema,
) -> None:
    async def scenario() -> None:
        stores = [PostgresStore(postgres_tables.url, schema=postgres_tables.schema) for _ in range(4)]
        for store in stores:
            await store.open()
        try:
            tenants = [f"t{n}" for n in range(12)]

            async def produce(number: int) -> None:
                for turn in range(12):
                    names = tenants[number * turn % 12 :] + tenants[: number * turn % 12]
                    await insert(stores[number], *(a_job(tenant=name) for name in names[:: 1 if number % 2 else -1]))

            async with asyncio.TaskGroup() as group:
                for number in range(len(stores)):
                    group.create_task(produce(number))
            worker = await enlist(stores[0])
            got = await claim(stores[0], worker, 1000)
            assert len(got) == 4 * 12 * 12
            for start in range(0, len(got), 12):
                turn = Counter(job.tenant for job in got[start : start + 12])
                assert set(turn.values()) == {1}, f"each tenant has one job in each round: {turn}"
            connection = await asyncpg.connect(postgres_tables.url)
            deadlocks = await connection.fetchval(
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            )
            await connection.close()
            assert deadlocks == 0
        finally:
            for store in stores:
                await store.close()

    asyncio.run(scenario())


def test_a_producer_waits_for_another_of_the_same_tenant_and_goes_on_behind_it(postgres_tables: PostgresSchema) -> None:
    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        connection = await asyncpg.connect(postgres_tables.url)
        try:
            await insert(store, a_job(tenant="a"), a_job(tenant="b"))
            held = connection.transaction()
            await held.start()
            mine = [a_job(tenant="a") for _ in range(3)]
            await connection.fetch(store._engine.sql["insert_jobs.fair"], *fair_columns(mine, store._engine.tenanted))
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(insert(store, *(a_job(tenant="a") for _ in range(3))))
                while not await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                    assert not waiting.done(), "it gives tags while others do for the same tenant"
                await insert_elsewhere(postgres_tables)
                await held.commit()
            await connection.execute(f"SET search_path = {postgres_tables.schema}")
            tags = await connection.fetch(
                "SELECT tag FROM ready JOIN job ON job.id = job_id WHERE tenant = 'a' ORDER BY tag"
            )
            assert [row[0] for row in tags] == [1 + n * COST for n in range(7)], "none is given twice"
        finally:
            await connection.close()
            await store.close()

    asyncio.run(scenario())


async def insert_elsewhere(place: PostgresSchema) -> None:
    """Other tenants need not wait."""
    store = PostgresStore(place.url, schema=place.schema)
    await store.open()
    await insert(store, a_job(tenant="b"), a_job(tenant="c"))
    await store.close()


@pytest.mark.parametrize("admit", [True, False], ids=["by enqueueing", "by going past the gate"])
def test_a_process_hears_that_another_has_named_a_tenant(admit: bool, postgres_tables: PostgresSchema) -> None:
    async def scenario() -> None:
        one, other = (PostgresStore(postgres_tables.url, schema=postgres_tables.schema) for _ in range(2))
        await one.open()
        await other.open()
        await insert(one, a_job(tenant="a", delay_s=3600))
        await other.insert_jobs([a_job() for _ in range(5)], admit=admit)
        await insert(one, a_job(tenant="b"))
        got = [job.tenant for job in await claim(one, await enlist(one), 2)]
        assert "b" in got, "the jobs without a tenant take turns with it, whoever enqueues them"
        await one.close()
        await other.close()

    asyncio.run(scenario())


def test_idle_tenants_are_forgotten_and_notes_are_folded(postgres_tables: PostgresSchema) -> None:
    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        connection = await asyncpg.connect(postgres_tables.url)

        async def count(table: str) -> int:
            return int(await connection.fetchval(f"SELECT count(*) FROM {postgres_tables.schema}.{table}"))

        try:
            await insert(store, *(a_job(tenant=f"t{n}") for n in range(3000)))
            async with connection.transaction():
                visit = store.visit(connection, blocking=False)
                jobs = [a_job(tenant="guest") for _ in range(5)]
                await visit.admit(jobs)
                await visit.insert_jobs(jobs)
            assert (await count("tenant_tag"), await count("tenant_note")) == (3000, 1)
            await store.sweep(limit=500)
            assert (await count("tenant_tag"), await count("tenant_note")) == (3001, 0), "all of them have jobs waiting"
            worker = await enlist(store)
            while await claim(store, worker, 1000):
                pass
            for _ in range(50):  # each looks at a part of them, from a place by chance
                await store.sweep(limit=500)
            assert await count("tenant_tag") == 0
        finally:
            await connection.close()
            await store.close()

    asyncio.run(scenario())


def test_the_arithmetic_of_the_schema_is_that_of_the_core(db: Connection) -> None:
    numbers = (1, 2, 9_999, 10_000, 10_001, 500_000)
    for weight in (None, 0.01, 0.3, 1.0, 3.0, 7.0, 99.0, 100.0, 0.0, -1.0, 1e9, float("nan")):
        assert db.execute("SELECT cost_of(%s::float8)", (weight,)).fetchone() == (cost_of(weight),), weight
    for reached, last, cost, waiting in product(numbers, (0, *numbers), (1, 3_333, 10_000), (False, True)):
        row = db.execute("SELECT next_tag(%s, %s, %s, %s)", (reached, last, cost, waiting)).fetchone()
        assert row == (next_tag(reached, last or None, cost, waiting=waiting),), (reached, last, cost, waiting)
