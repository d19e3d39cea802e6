"""Failpoints are global to a process: whatever a test armed is gone after it. And: the stores that tests are about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.campaign.record import PostgresGlance
from tests.campaign.where import Where
from tests.history.postgres_audit import remove_postgres_audit
from tests.postgres.fixtures import PostgresSchema

from holdfast.runtime.failpoints import disarm_all


@pytest.fixture(autouse=True)
def no_failpoint_is_left_armed() -> Iterator[None]:
    yield
    disarm_all()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory whose store is empty: a file in it, and the same test again with tables of a PostgreSQL server."""
    return tmp_path if request.param == "sqlite" else request.getfixturevalue("postgres_place")


@pytest.fixture
def postgres_place(postgres_tables: PostgresSchema, tmp_path: Path) -> Iterator[Path]:
    """The same with PostgreSQL alone."""
    Where(url=postgres_tables.url, schema=postgres_tables.schema).say(tmp_path)
    yield tmp_path
    remove_postgres_audit(postgres_tables.url, postgres_tables.schema)
    PostgresGlance(postgres_tables.url, postgres_tables.schema).query("DROP FUNCTION IF EXISTS refuse CASCADE")
