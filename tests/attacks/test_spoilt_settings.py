"""What somebody wrote into the store by hand and makes no sense counts as not set: it stops no worker, no promoter and
no report, and an operator mends it by the ordinary setters."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.breaker import BreakerFigures, BreakerGate, BreakerMark, Phase
from holdfast.core.gates import Barrier, Place, RateGate, SlotGate
from holdfast.core.queue import QueueSettings
from holdfast.core.queue_options import NO_QUEUE_OPTIONS, OPTION_NAMES
from holdfast.core.rate import Pace
from holdfast.core.settlement import Retry, Succeed
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import (
    ERROR,
    PLENTY,
    QUEUE,
    a_job,
    apply,
    claim,
    due,
    enlist,
    insert,
    state,
    states,
)

LIMIT, RATE, BREAKER = SlotGate("L", 2, "L"), RateGate("R", Pace(5, 1, 5), "R"), BreakerGate("b", 1, 60, 60)
HUGE = "9" * 400


class _Place(NamedTuple):
    make: Callable[[], Store]
    write: Callable[[str], None]


@pytest.fixture
def in_file(tmp_path: Path) -> _Place:
    path = tmp_path / "jobs.db"

    def write(statement: str) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(statement)

    return _Place(lambda: SqliteStore(str(path)), write)


@pytest.fixture
def in_tables(postgres_tables: PostgresSchema) -> _Place:
    def write(statement: str) -> None:
        with psycopg.connect(postgres_tables.url, autocommit=True) as connection:
            connection.execute(f"SET search_path TO {postgres_tables.schema}")  # type: ignore[call-overload]  # a schema's name is in it
            connection.execute(statement)  # type: ignore[call-overload]  # it is a parameter

    return _Place(lambda: PostgresStore(postgres_tables.url, schema=postgres_tables.schema), write)


#: Text that is none, as whoever types bytes by hand may leave it.
UNREADABLE = "CAST(x'ff' AS TEXT)"
ONLY_SQLITE = (
    *(f"INSERT OR REPLACE INTO breaker VALUES ('b', {recent}, NULL, 0)" for recent in (
        "'garbage'", "'5'", "'[\"a\",null]'", "'[1e999]'", f"'[{HUGE}]'", "x'ff00'", "'[true]'")),
    *(f"INSERT OR REPLACE INTO breaker VALUES ('b', '[]', {until}, 0)" for until in (
        "'soon'", "9e999", "-9e999", "1e300", "x'ff'")),
    "INSERT OR REPLACE INTO breaker VALUES ('b', '[]', NULL, 'no')",
    "INSERT OR REPLACE INTO breaker VALUES (x'ff00', '[]', NULL, 0)",
    *(f"INSERT OR REPLACE INTO tenant_setting VALUES ('acme', {weight})" for weight in (
        "'3 of them'", "x'ff'", "9e999", "-1", "1e300")),
    "INSERT OR REPLACE INTO tenant_setting VALUES (x'ff', 1)",
    *(f"INSERT OR REPLACE INTO rule VALUES ('limit', '{name}', NULL, {pace})"
      for name in ("R", "queue:contract", "task:t")
      for pace in ("9e999, 1, 5", "1, 9e999, 5", "1e-300, 1e300, 1", "1e300, 1e-300, 1", "'x', 'y', 'z'")),
    "INSERT OR REPLACE INTO rule VALUES ('limit', 'R', NULL, 1, 1, 9223372036854775807)",
    *(f"INSERT OR REPLACE INTO rule VALUES ('limit', 'L', {size}, NULL, NULL, NULL)" for size in (
        "'x'", "-1", "9223372036854775807", "1.5", "x'ff'")),
    *(f"INSERT OR REPLACE INTO rule VALUES ('{what}', x'ff00', 3, NULL, NULL, NULL)" for what in (
        "limit", "task", "tenant")),
    *(f"INSERT OR REPLACE INTO gate VALUES ('rate', 'R', {full_at}, NULL)" for full_at in (
        "'later'", "9e999", "-9e999", "1e300")),
    *(f"INSERT OR REPLACE INTO gate VALUES ('rate', 'R', NULL, {due_at})" for due_at in ("'later'", "9e999")),
    "INSERT OR REPLACE INTO gate VALUES ('nonsense', 'R', NULL, 1)",
    "INSERT OR REPLACE INTO slot (kind, key, job_id) VALUES ('nonsense', 'L', x'00112233445566778899aabbccddeeff')",
    "INSERT OR REPLACE INTO queue_setting (queue, weight) VALUES (x'ff00', 2)",
    "INSERT OR REPLACE INTO queue_setting (queue, weight) VALUES ('contract', 'x')",
    "INSERT OR REPLACE INTO queue_setting (queue, high, low) VALUES ('contract', 9223372036854775807, 1)",
    *(f"INSERT OR REPLACE INTO queue_option (queue, {option}) VALUES ('contract', {value})"
      for option in ("concurrency", "retry_budget", "bypass_priority")
      for value in ("'x'", "-1", "9223372036854775807", "9e999", "x'ff'", UNREADABLE)),
    *(f"INSERT OR REPLACE INTO queue_option VALUES ({name}, 1, 0.5, 9)" for name in ("x'ff00'", UNREADABLE)),
    *(f"INSERT OR REPLACE INTO queue_setting (queue, {column}) VALUES ({row})" for column, row in (
        ("weight", f"{UNREADABLE}, 2"), ("weights", f"'contract', {UNREADABLE}"))),
    *(f"INSERT OR REPLACE INTO breaker VALUES ({row})" for row in (
        f"{UNREADABLE}, '[]', NULL, 0", f"'b', {UNREADABLE}, NULL, 0", f"'b', '[]', {UNREADABLE}, 0",
        f"'b', '[]', NULL, {UNREADABLE}")),
    f"INSERT OR REPLACE INTO breaker_setting VALUES ({UNREADABLE}, 1, 1, 1)",
    *(f"INSERT OR REPLACE INTO breaker_setting (name, {figure}) VALUES ('b', {value})"
      for figure in ("failures", "window_s", "open_for_s") for value in (
          "'x'", "-1", "0", "9e999", "1e300", "x'ff'", UNREADABLE)),
    "INSERT OR REPLACE INTO breaker_setting VALUES (x'ff00', 1, 1, 1)",
    "INSERT INTO setting_change (at, by, what, name, before, after) VALUES ('x', 'y', 'z', 'w', '{', '[]')",
    *(f"INSERT INTO route VALUES ({row})" for row in (
        "'a b', 'x', 1", "'*', 'no such', 77", "'*', x'ff', 'soon'", "CAST(x'ff' AS TEXT), 'x', 1", "x'ff00', 'x', 1",
        "'*', CAST(x'ff' AS TEXT), 9e999")),
    """INSERT INTO worker (id, host, pid, concurrency, queues, started_at, lease_until)
    VALUES (x'00112233445566778899aabbccddeeff', 'h', 1, 1, 'garbage', 1, 9e9)""",
)  # fmt: skip
ONLY_POSTGRES = (
    *(f"INSERT INTO breaker (name, recent) VALUES ('b', '{recent}')" for recent in (
        "{NULL,1}", "{{1,2},{3,4}}", "{NaN}", "{Infinity}")),
    *(f"INSERT INTO breaker (name, open_until) VALUES ('b', '{until}')" for until in (
        "infinity", "-infinity", "20000-01-01", "4000-01-01 BC")),
    *(f"INSERT INTO tenant_setting (tenant, weight) VALUES ('acme', '{weight}')" for weight in (
        "NaN", "Infinity", "-1", "1e300")),
    *(f"INSERT INTO rule (what, name, count, per_s, burst) VALUES ('limit', '{name}', {pace})"
      for name in ("R", "queue:contract", "task:t")
      for pace in ("'Infinity', 1, 5", "1, 'Infinity', 5", "'NaN', 'NaN', 5", "1e-300, 1e300, 1", "1e300, 1e-300, 1")),
    "INSERT INTO rule (what, name, size) VALUES ('limit', 'L', -1)",
    "INSERT INTO rule (what, name, size) VALUES ('limit', 'L', 2147483647)",
    "INSERT INTO rule (what, name, size) VALUES ('nonsense', 'L', 1)",
    *(f"INSERT INTO gate (kind, key, full_at) VALUES ('rate', 'R', '{full_at}')" for full_at in (
        "infinity", "-infinity", "20000-01-01", "4000-01-01 BC")),
    *(f"INSERT INTO gate (kind, key, due_at) VALUES ('rate', 'R', '{due_at}')" for due_at in (
        "infinity", "-infinity", "20000-01-01")),
    "INSERT INTO gate (kind, key, due_at) VALUES ('nonsense', 'R', '2000-01-01')",
    "INSERT INTO slot (kind, key, job_id, number) VALUES ('nonsense', 'L', '00112233-4455-6677-8899-aabbccddeeff', 1)",
    "INSERT INTO queue_setting (queue, weight) VALUES ('contract', 'NaN')",
    *(f"INSERT INTO queue_setting (queue, {option}) VALUES ('contract', '{value}')"
      for option, value in (("concurrency", 0), ("concurrency", 2147483647), ("retry_budget", "NaN"),
                            ("retry_budget", 1), ("bypass_priority", 42))),
    *(f"INSERT INTO breaker_setting (name, {figure}) VALUES ('b', '{value}')"
      for figure, value in (("failures", -1), ("failures", 2147483647), ("window_s", "NaN"), ("window_s", 0),
                            ("open_for_s", "Infinity"), ("open_for_s", -1))),
    "INSERT INTO setting_change (at, by, what, name, before, after) VALUES ('20000-01-01', 'y', 'z', 'w', '{', '[]')",
    *(f"INSERT INTO route VALUES ({row})" for row in (
        "'a b', 'x', 1", "'*', 'no such', 77", "'*', repeat('x', 1000000), -1", "repeat('*', 2000), 'x', 1")),
)  # fmt: skip


@pytest.mark.parametrize("statement", ONLY_SQLITE)
def test_nobody_stumbles_over_it_in_sqlite(in_file: _Place, statement: str) -> None:
    _run(in_file, _go_on, statement)


@pytest.mark.parametrize("statement", ONLY_POSTGRES)
def test_nobody_stumbles_over_it_in_postgres(in_tables: _Place, statement: str) -> None:
    _run(in_tables, _go_on, statement)


MENDED_IN_SQLITE = (
    "INSERT INTO breaker VALUES ('b', 'garbage', 'soon', 0)",
    "INSERT INTO tenant_setting VALUES ('acme', '3 of them')",
    "INSERT INTO rule VALUES ('limit', 'L', 'many', 9e999, 1, 5)",
    "INSERT OR REPLACE INTO queue_setting (queue, weight, weights, high, low) VALUES ('contract', 'x', '{', 'a', 'b')",
    "INSERT OR REPLACE INTO queue_option VALUES ('contract', 0, 'x', 42)",
    "INSERT OR REPLACE INTO breaker_setting VALUES ('b', 'x', 0, 9e999)",
)
MENDED_IN_POSTGRES = (
    "INSERT INTO breaker (name, recent, open_until) VALUES ('b', '{NULL,1}', '20000-01-01')",
    "INSERT INTO tenant_setting (tenant, weight) VALUES ('acme', 'NaN')",
    "INSERT INTO rule (what, name, size, count, per_s, burst) VALUES ('limit', 'L', -1, 'Infinity', 1, 5)",
    """INSERT INTO queue_setting
    (queue, weight, weights, high, low, concurrency, retry_budget, bypass_priority)
    VALUES ('contract', 'NaN', '{', -10, -20, 0, 'NaN', 42)""",
    "INSERT INTO breaker_setting VALUES ('b', -1, 0, 'Infinity')",
)


def test_an_operator_mends_it_in_sqlite(in_file: _Place) -> None:
    _run(in_file, _mend, *MENDED_IN_SQLITE)


def test_an_operator_mends_it_in_postgres(in_tables: _Place) -> None:
    _run(in_tables, _mend, *MENDED_IN_POSTGRES)


def _run(place: _Place, scenario: Callable[..., Awaitable[None]], *statements: str) -> None:
    async def run() -> None:
        store = place.make()
        await store.open()
        for statement in statements:
            place.write(statement)
        await scenario(store)
        await store.close()

    asyncio.run(asyncio.wait_for(run(), 60))


async def _go_on(store: Store) -> None:
    """Jobs of every kind are claimed, fail, come back and end; every report answers."""
    worker = await enlist(store)
    ordinary: list[dict[str, Any]] = [
        {},
        {"gates": (LIMIT,)},
        {"gates": (RATE,)},
        {"tenant": "acme"},
        {"tenant": "other"},
    ]
    jobs = await insert(store, a_job(task="t"), *(a_job(**each) for each in ordinary))
    [probe] = await insert(store, a_job(gates=(BREAKER,)))
    first = await claim(store, worker)
    assert {job.id for job in first} == {*jobs, probe}
    failed = next(BreakerMark(job.token, True, BREAKER) for job in first if job.id == probe)
    await store.settle_jobs(worker, [Retry(job.id, job.token, 0.0, ERROR) for job in first], marks=[failed])
    assert await due(store) == len(first), "the promoter goes on"
    await store.serve_gates(limit=PLENTY)
    again = await claim(store, worker)
    assert {job.id for job in again} == set(jobs)
    assert await state(store, probe) is State.PARKED, "its breaker is open, as any other would be"
    await store.sweep(limit=PLENTY)
    await _reports(store)
    await store.set_breaker("b", closed=True, by="me")
    await store.serve_gates(limit=PLENTY)
    again += await claim(store, worker)
    await apply(store, worker, *(Succeed(job.id, job.token, None) for job in again))
    assert set(await states(store, *jobs, probe)) == {State.SUCCEEDED}


async def _reports(store: Store) -> None:
    assert [each.phase for each in await store.breakers() if each.name == "b"] == [Phase.OPEN]
    await store.gates([Place(Barrier.RATE, "R"), Place(Barrier.BREAKER, "b")])
    rules = await store.rules()
    assert not rules.sizes
    assert not rules.paces
    assert await store.routes() == ()
    assert await store.tenant_weights() == {}
    assert QUEUE in {each.name for each in await store.list_queues()}
    assert all(isinstance(name, str) for name in await store.queue_settings())
    await store.list_workers()
    await store.gates()
    await store.setting_changes(limit=PLENTY)


async def _mend(store: Store) -> None:
    await store.set_breaker("b", closed=False, by="me")
    await store.set_tenant_weight("acme", 2.0, by="me")
    await store.set_limit("L", size=3, pace=None, only=["size"], by="me")
    assert {*OPTION_NAMES} <= {*(await store.queue_settings())[QUEUE].ignored}, "it is told, until somebody mends it"
    await store.set_queue(QUEUE, QueueSettings(weight=5.0), only=["weight"], by="me")
    await store.set_breaker_figures("b", BreakerFigures(failures=7), only=["failures"], by="me")
    assert [each.figures for each in await store.breakers() if each.name == "b"] == [BreakerFigures(failures=7)]
    assert await store.tenant_weights() == {"acme": 2.0}
    rules = await store.rules()
    assert (rules.sizes, rules.paces) == ({"L": 3}, {})
    settings = (await store.queue_settings())[QUEUE]
    assert (settings.weight, settings.weights, settings.watermarks, settings.ignored) == (5.0, None, None, ())
    assert settings.options == NO_QUEUE_OPTIONS
    changes = await store.setting_changes(limit=PLENTY)
    assert (changes[0].what, changes[0].before, changes[0].after) == ("breaker", None, {"failures": 7})
    told = {change.what: (change.before, change.after) for change in changes[1:]}
    assert told["tenant"] == (None, {"weight": 2.0}), "what made no sense was not set"
    assert told["limit"] == (None, {"size": 3})
    assert told["breaker"] == ({"phase": "closed", "held": False}, {"phase": "open", "held": True})
    before, _ = told["queue"]
    assert before is not None
    assert (before["weight"], before["weights"], before["watermarks"]) == (1.0, None, None)
