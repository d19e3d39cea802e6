"""A dozen checks on the older PostgreSQL of the wheel; HOLDFAST_TEST_POSTGRES_BINARIES runs everything on another."""

from __future__ import annotations

import asyncio

import psycopg
from tests.postgres.emptied import empty
from tests.postgres.fixtures import StartPostgres

from holdfast.local.binaries import wheel_binaries
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts import CHECKS

#: One of each way through the SQL.
SMOKE = (
    "insert.new_jobs_are_ready_and_answered_in_order",
    "keys.many_callers_with_one_key_make_one_job",
    "order.a_reaped_job_gets_its_place_back",
    "fencing.a_worker_that_lost_its_leases_changes_nothing",
    "attempts.every_lost_or_failed_run_has_its_cause",
    "reap.a_job_that_keeps_killing_its_worker_ends_as_poison",
    "races.a_crowd_ends_every_job_once",
    "joins.the_last_two_may_end_at_the_same_time",
    "limits.no_more_than_the_limit_run_at_once",
    "lines.tenants_take_turns_at_a_limit",
    "upkeep.upkeep_may_run_anywhere_at_any_time",
    "leader.of_many_who_ask_at_once_one_leads",
)


def test_the_contract_holds_on_postgresql_16(start_postgres: StartPostgres) -> None:
    server = start_postgres(binaries=wheel_binaries(16))

    async def run() -> None:
        store = PostgresStore(server.url)
        await store.open(migrate=True)
        try:
            assert (await store.status()).engine.startswith("PostgreSQL 16")
            for name in SMOKE:
                with psycopg.connect(server.url, autocommit=True) as connection:
                    empty(connection, store.schema)
                await CHECKS[name](store)
        finally:
            await store.close()

    asyncio.run(run())
