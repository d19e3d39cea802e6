"""The scenes of the store verbs on PostgreSQL: the same tables for all of them, put back to the start for each.

The clock stands still and tokens and places are counted from one, so that what a scene leaves behind is always the
same. A verb that was rolled back has used up numbers all the same, so these are compared by their order alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from tests.faults.rows import Rows
from tests.faults.scenarios import BEGIN, LATER, SCENES, Play
from tests.history.postgres_audit import looking_into
from tests.postgres.clock import ServerClock, stopped_clock
from tests.postgres.emptied import empty
from tests.postgres.fixtures import PostgresSchema

from holdfast.stores.postgres import PostgresStore

_TIMELINE = "CREATE OR REPLACE FUNCTION timeline() RETURNS bigint LANGUAGE sql VOLATILE AS $$ {} $$"
#: Written by several verbs as they please: what counts is their sum.
_COUNTERS = ("depth", "depth_change")
_NUMBERED = ("token", "seq")


class PostgresStage:
    """One schema in which scenes are played and looked at."""

    def __init__(self, place: PostgresSchema, db: psycopg.Connection[Any], clock: ServerClock) -> None:
        self.place = place
        self._db = db
        self._clock = clock

    def set(self, verb: str) -> None:
        """What is there before the verb, and the time at which it is called."""
        empty(self._db, self.place.schema)
        self._db.execute("ALTER SEQUENCE run RESTART; ALTER SEQUENCE place RESTART")
        self._clock.jump_wall(BEGIN - self._clock.now())
        self.play(SCENES[verb].before)
        self._clock.jump_wall(LATER - BEGIN)

    def play(self, play: Play) -> None:
        async def run() -> None:
            store = PostgresStore(self.place.url, schema=self.place.schema, clock=self._clock)
            await store.open()
            try:
                await play(store)
            finally:
                await store.close()

        asyncio.run(run())

    def rows(self) -> Rows:
        """Every row of every table, sorted; numbers that only order things by their rank."""
        tables = [
            name
            for (name,) in self._db.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
            if name not in (*_COUNTERS, "migration")
        ]
        found = {table: self._db.execute(f"SELECT * FROM {table}") for table in sorted(tables)}  # type: ignore[call-overload]
        rows = {table: [dict(zip(_names(each), row, strict=True)) for row in each] for table, each in found.items()}
        for rank, row in enumerate(sorted(rows["setting_change"], key=lambda row: row["number"]), 1):
            row["number"] = rank
        for row in rows["slot"]:  # which of them one has is chance, and nobody's concern
            del row["number"]
        for number in _NUMBERED:
            used = sorted({row[number] for each in rows.values() for row in each if row.get(number) is not None})
            for each in rows.values():
                for row in each:
                    if row.get(number) is not None:
                        row[number] = used.index(row[number]) + 1
        depths = self._db.execute(
            "SELECT queue, sum(n)::int8, sum(p)::int8 FROM (SELECT queue, ready AS n, parked AS p FROM depth "
            "UNION ALL SELECT queue, change, parked FROM depth_change) d "
            "GROUP BY queue HAVING sum(n) != 0 OR sum(p) != 0 ORDER BY queue"
        ).fetchall()
        return {"depth": depths} | {
            table: sorted((tuple(row.items()) for row in each), key=repr) for table, each in rows.items()
        }


@contextmanager
def postgres_stage(place: PostgresSchema) -> Iterator[PostgresStage]:
    with looking_into(place.url, place.schema) as db, stopped_clock(place, BEGIN) as clock:
        [(timeline,)] = db.execute("SELECT prosrc FROM pg_proc WHERE oid = 'timeline'::regproc").fetchall()
        db.execute(_TIMELINE.format("SELECT 0::bigint"))  # type: ignore[call-overload]
        try:
            yield PostgresStage(place, db, clock)
        finally:
            db.execute(_TIMELINE.format(timeline))  # type: ignore[call-overload]


def _names(cursor: psycopg.Cursor[Any]) -> list[str]:
    return [column.name for column in cursor.description or ()]
