"""`transaction()` in an isolate: effect and success commit together, whatever becomes of the process after it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from tests.integration.scene import PATIENCE_S, scene, until
from tests.isolation import app
from tests.isolation.app import hf
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.state import State


@pytest.fixture
def payments(postgres_tables: PostgresSchema, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    place = postgres_tables
    monkeypatch.setattr(hf, "config", hf.config.with_arguments(url=place.url, schema=place.schema))
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE payment (job text)")
        yield connection
        connection.execute(sql.SQL("DROP TABLE payment"))


@pytest.mark.parametrize("then", ["return", "fail", "die"])
@scene
async def test_what_is_finished_inside_stays_so(payments: psycopg.Connection, then: str) -> None:
    async with hf, hf.worker():
        job = await app.pay.enqueue(then)
        assert await job.result(timeout=PATIENCE_S) == "paid"
        # Whoever comes next finds the worker well, and has waited for what came after the commit.
        assert await (await app.add.enqueue(1)).result(timeout=PATIENCE_S) == 2
        info = await until(job, State.SUCCEEDED)
    assert info.attempts == ()
    assert payments.execute("SELECT job FROM payment").fetchall() == [(str(job.id),)]
