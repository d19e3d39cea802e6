"""A clock that a test moves by hand, and with it the clock of a store's schema, which alone decides there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from tests.postgres.fixtures import PostgresSchema

from holdfast.runtime.clock import ManualClock

_SET = "CREATE OR REPLACE FUNCTION {schema}.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT {now}'"


class ServerClock(ManualClock):
    """Each move is a statement on a connection of its own; `restore` lets the server's time run again."""

    __slots__ = ("_connection", "_schema")

    def __init__(self, connection: psycopg.Connection[Any], schema: str, start: float = 1_700_000_000.0) -> None:
        super().__init__(start)
        self._connection = connection
        self._schema = schema
        self._tell(f"to_timestamp({self.now()!r})")

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        if seconds:
            self._tell(f"to_timestamp({self.now()!r})")

    def jump_wall(self, seconds: float) -> None:
        super().jump_wall(seconds)
        self._tell(f"to_timestamp({self.now()!r})")

    def restore(self) -> None:
        self._tell("clock_timestamp()")

    def _tell(self, now: str) -> None:
        self._connection.execute(_SET.format(schema=self._schema, now=now))  # type: ignore[call-overload]


@contextmanager
def stopped_clock(place: PostgresSchema, start: float = 1_700_000_000.0) -> Iterator[ServerClock]:
    """For the length of a block; the tables are used by others afterwards."""
    with psycopg.connect(place.url, autocommit=True) as connection:
        clock = ServerClock(connection, place.schema, start)
        try:
            yield clock
        finally:
            clock.restore()
