"""What the tests of transactions share."""

from __future__ import annotations

import pytest
from tests.postgres.fixtures import PostgresSchema
from tests.transactions.bench import Bench


@pytest.fixture
def bench(postgres_tables: PostgresSchema) -> Bench:
    return Bench(postgres_tables)
