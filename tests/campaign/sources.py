"""The running judge's way into a store that is in use, and sometimes away: it asks again until it is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar
from uuid import UUID

import psycopg
from tests.campaign.record import LIVE
from tests.campaign.where import Where
from tests.history import StoreRecord

T = TypeVar("T")
_PATIENCE_S = 60.0
_FIRST = str(UUID(int=0))


class StoreSource:
    """`tests.history.running.Source` of either store."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._glance = where.glance()

    def ids_between(self, after: str, before: str, limit: int) -> list[str]:
        bounds = UUID(after or _FIRST), UUID(before)
        rows = self._glance.query("SELECT id FROM job WHERE id > ? AND id < ? ORDER BY id LIMIT ?", *bounds, limit)
        return [_text(job_id) for (job_id,) in rows]

    def ended(self, ids: Collection[str]) -> set[str]:
        if not self._where.is_postgres:
            rows = self._glance.query("SELECT job_id FROM done UNION ALL SELECT job_id FROM dead")
            return {_text(job_id) for (job_id,) in rows} & set(ids)
        some = "job_id = ANY (?::uuid[])"
        query = f"SELECT job_id FROM done WHERE {some} UNION ALL SELECT job_id FROM dead WHERE {some}"
        return {_text(job_id) for (job_id,) in self._glance.query(query, list(ids), list(ids))}

    def record(self, ids: Sequence[str]) -> StoreRecord:
        return _patiently(lambda: self._where.record(ids=ids))

    def all_ids(self) -> set[str]:
        return {_text(job_id) for (job_id,) in self._glance.query("SELECT id FROM job")}

    def count_after(self, watermark: str) -> int:
        """Jobs that were made later."""
        [(count,)] = self._glance.query("SELECT count(*) FROM job WHERE id > ?", UUID(watermark or _FIRST))
        return int(count)

    def states(self) -> dict[str, int]:
        """How many jobs are in each."""
        state = "CASE WHEN cancelled THEN 'cancelled' ELSE 'succeeded' END" if self._where.is_postgres else "state"
        ended = f"SELECT {state} AS state FROM done UNION ALL SELECT 'dead' FROM dead"
        live = "".join(f" UNION ALL SELECT '{table}' FROM {table}" for table in LIVE)
        return self.grouped(f"SELECT state, count(*) FROM ({ended}{live}) jobs GROUP BY state")

    def grouped(self, query: str) -> dict[str, int]:
        """The answer to a query for names and counts."""
        return {str(name): int(count) for name, count in self._glance.query(query)}


def _patiently(read: Callable[[], T]) -> T:
    deadline: float | None = None  # from the first failure: what is asked here takes its time
    while True:
        try:
            return read()
        except psycopg.OperationalError:
            deadline = deadline or time.monotonic() + _PATIENCE_S
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _text(stored: object) -> str:
    return str(UUID(bytes=stored)) if isinstance(stored, bytes) else str(stored)
