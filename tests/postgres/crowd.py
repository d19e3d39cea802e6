"""A store with very many jobs, made by SQL in bulk, and the buffers that a page of each list touches on it.

`python -m tests.postgres.crowd 5000000` makes one on a server of its own and prints the worst of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg

from holdfast.core.state import State
from holdfast.local import LocalPostgres
from holdfast.stores.base import JobFilter
from holdfast.stores.postgres import PostgresStore, ended, listing, moving, queues, sweep
from holdfast.stores.postgres.statements import statements
from holdfast.stores.postgres.transaction import Tx

BIG = frozenset({"job", "done", "ready", "timer", "dead", "parked", "blocked", "active", "tagged"})

# One millisecond apart, the newest last. States are spread; `cold` and `old.task` are among the oldest only, and there
# is one job each of the rarest queue, task, tenant, tag and error.
_FILL = """
CREATE TEMP TABLE crowd AS
SELECT i, (lpad(to_hex($1::int8 + i), 12, '0') || '7' || lpad(to_hex(i % 4096), 3, '0') || '8'
           || lpad(to_hex(i), 15, '0'))::uuid AS id,
       to_timestamp(($1::int8 + i) / 1000.0) AS at,
       CASE WHEN i = 7 THEN 'rare' WHEN i < $2 / 50 THEN 'cold' ELSE 'q' || (i * 31 % 8) END AS queue,
       CASE WHEN i = 7 THEN 'rare.task' WHEN i < $2 / 10 THEN 'old.task' ELSE 'shop.task_' || (i * 17 % 40) END AS task,
       CASE WHEN i = 7 THEN 'solo' WHEN i % 3 = 0 THEN 'tenant-' || (i * 13 % 1000) ELSE '' END AS tenant,
       CASE WHEN i = 7 THEN ARRAY['once'] WHEN i % 10 = 0 THEN ARRAY['red', 'n' || (i % 700)] END AS tags,
       CASE WHEN i = 7 THEN 'dead' WHEN i % 5000 = 1 THEN 'running'
            WHEN i * 7919 % 1000 < 40 THEN 'cancelled' WHEN i * 7919 % 1000 < 60 THEN 'dead'
            WHEN i < $2 / 10 THEN 'succeeded'
            WHEN i * 7919 % 1000 < 80 THEN 'ready' WHEN i * 7919 % 1000 < 90 THEN 'scheduled'
            WHEN i * 7919 % 1000 < 94 THEN 'parked' WHEN i * 7919 % 1000 < 95 THEN 'blocked'
            ELSE 'succeeded' END AS state
FROM generate_series(1, $2::int8) AS i;
INSERT INTO {s}.job (id, created_at, priority, task, queue, tenant, payload, tags)
    SELECT id, at, 5, task, queue, tenant, '{{"args":[1],"kwargs":{{}}}}', tags FROM crowd ORDER BY i;
INSERT INTO {s}.done (token, started_at, ended_at, job_id, worker, attempt, cancelled, reason)
    SELECT i, at, at - interval '1 day', id, gen_random_uuid(), 1, state = 'cancelled',
           CASE WHEN state = 'cancelled' THEN CASE WHEN i % 100 = 0 THEN 'expired' ELSE 'by hand' END END
    FROM crowd WHERE state IN ('succeeded', 'cancelled') ORDER BY i;
INSERT INTO {s}.dead (token, ended_at, job_id, attempt, queue, task, tenant, reason, error_type, error_message,
                      fingerprint, words)
    SELECT i, at, id, 5, queue, task, tenant, CASE WHEN i = 7 THEN 'poison' ELSE 'exhausted' END,
           CASE WHEN i = 7 THEN 'OnceError' ELSE 'Error' || (i % 9) END, 'order ' || i || ' was refused by the bank',
           CASE WHEN i = 7 THEN 'f7' ELSE 'f-' || (i % 97) END,
           ARRAY['order', i::text, 'was', 'refused', 'by', 'the', 'bank', 'w' || (i % 3000)]
    FROM crowd WHERE state = 'dead' ORDER BY i;
INSERT INTO {s}.ready (seq, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
    SELECT nextval('{s}.place'), at, id, 5, 0, 0, 0, false, queue FROM crowd WHERE state = 'ready' ORDER BY i;
INSERT INTO {s}.timer (due_at, job_id, attempt, losses, crashes, attached, queue)
    SELECT at + interval '1 year', id, 0, 0, 0, false, queue FROM crowd WHERE state = 'scheduled' ORDER BY i;
INSERT INTO {s}.parked (seq, tag, parked_at, job_id, attempt, losses, crashes, attached, queue, reason, key)
    SELECT i, 0, at, id, 0, 0, 0, false, queue, 'unknown_task', task FROM crowd WHERE state = 'parked' ORDER BY i;
INSERT INTO {s}.blocked (job_id, remaining, attached, queue)
    SELECT id, 1, false, queue FROM crowd WHERE state = 'blocked' ORDER BY i;
INSERT INTO {s}.active (token, seq, tag, started_at, job_id, worker, attempt, priority, losses, crashes, attached,
                        queue)
    SELECT i, i, 0, at, id, gen_random_uuid(), 1, 5, 0, 0, false, queue FROM crowd WHERE state = 'running' ORDER BY i;
INSERT INTO {s}.depth (queue, ready) SELECT queue, count(*) FROM {s}.ready GROUP BY queue
    ON CONFLICT (queue) DO UPDATE SET ready = excluded.ready;
DROP TABLE crowd;
"""

FILTERS: tuple[dict[str, Any], ...] = (
    {},
    *({"queue": queue} for queue in ("q1", "cold", "rare", "nowhere")),
    *({"task": task} for task in ("shop.task_3", "old.task", "rare.task", "no.task")),
    *({"tenant": tenant} for tenant in ("", "tenant-9", "solo", "nobody")),
    *({"tag": tag} for tag in ("red", "n30", "once", "never")),
    *({"created_before": day} for day in ("early", "late")),
    {"created_after": "late"},
    *({"reason": reason} for reason in ("exhausted", "by hand", "expired", "unknown_task", "poison", "none")),
    *({"error_type": kind} for kind in ("Error3", "OnceError", "NoError")),
    *({"fingerprint": print_} for print_ in ("f-7", "f7", "f0")),
    *({"text": words} for words in ("refused", "bank w77", "7", "order nobody wrote")),
    {"queue": "q1", "task": "shop.task_3"},
    {"queue": "cold", "tenant": "tenant-9", "tag": "red"},
)


class Look(NamedTuple):
    """What one page cost."""

    where: JobFilter
    jobs: int
    more: bool
    buffers: int
    scanned: frozenset[str]
    """Big tables that were read from end to end."""


class Touched(NamedTuple):
    """What an operation answered and touched."""

    answer: Any
    buffers: int
    scanned: frozenset[str]


class Explaining:
    """A connection that has every statement explained while it runs."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection
        self.buffers = 0
        self.scanned: set[str] = set()

    async def fetch(self, statement: str, *args: object) -> list[Any]:
        if not statement.startswith("SELECT set_config"):
            text = await self._connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", *args)
            plan = json.loads(text)[0]["Plan"]
            self.buffers += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
            self.scanned |= {each["Relation Name"] for each in _nodes(plan) if each["Node Type"] == "Seq Scan"}
        return await self._connection.fetch(statement, *args)

    async def fetchval(self, statement: str, *args: object) -> Any:
        return (await self.fetch(statement, *args))[0][0]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from _nodes(each)


async def fill(url: str, schema: str, jobs: int) -> None:
    """Make the tables and that many jobs, one a millisecond until now."""
    store = PostgresStore(url, schema=schema)
    await store.migrate()
    await store.close()
    connection = await asyncpg.connect(url)
    try:
        base = int(_now().timestamp() * 1000) - jobs
        script = _FILL.format(s=schema).replace("$1", str(base)).replace("$2", str(jobs))
        await connection.execute(script, timeout=3600)
        await connection.execute("VACUUM ANALYZE", timeout=3600)
    finally:
        await connection.close()


def _now() -> datetime:
    return datetime.now(UTC)


def all_filters(jobs: int) -> Iterator[JobFilter]:
    """Every filter by itself and with every state; times are made to fit."""
    now_s = _now().timestamp()
    times = {"early": now_s - jobs / 1000 * 0.95, "late": now_s - jobs / 1000 * 0.05}
    for state in (None, *State):
        for each in FILTERS:
            given = {name: times.get(value, value) if "created" in name else value for name, value in each.items()}
            yield JobFilter(state=state, **given)


async def look(connection: asyncpg.Connection[Any], schema: str, where: JobFilter, *, limit: int = 50) -> Look:
    """A page as the store gives it, with what it touches."""
    listed = await touched(connection, schema, partial(listing.list_jobs, where=where, limit=limit, before=None))
    return Look(where, len(listed.answer), listed.answer.next is not None, listed.buffers, listed.scanned)


async def touched(
    connection: asyncpg.Connection[Any], schema: str, operation: Callable[[Tx], Awaitable[Any]]
) -> Touched:
    """What an operation touches; what it changes is undone."""
    spy = Explaining(connection)
    transaction = connection.transaction(isolation="repeatable_read")
    await transaction.start()
    try:
        answer = await operation(Tx(spy, statements(schema), _now()))  # type: ignore[arg-type]  # like a connection
    finally:
        await transaction.rollback()
    return Touched(answer, spy.buffers, frozenset(spy.scanned & BIG))


async def _explain(tx: Tx) -> Any:
    """What a report needs about a job that stands last in a long line, on the day on which all of them ended."""
    tx.now -= timedelta(days=1)
    last = "SELECT job_id FROM holdfast.parked WHERE reason = 'unknown_task' ORDER BY key DESC, seq DESC LIMIT 1"
    return await moving.circumstances(tx, await tx.connection.fetchval(last))


UPKEEP: dict[str, Callable[[Tx], Awaitable[Any]]] = {
    "list_queues": queues.list_queues,
    "queue_rates": queues.queue_rates,
    "circumstances": _explain,
    "sweep's recount": sweep.fix_depths,
    "prune_jobs": partial(ended.prune_jobs, keep_succeeded_s=0.0, keep_cancelled_s=0.0, limit=500),
}


async def _report(jobs: int) -> None:
    directory = Path(tempfile.mkdtemp(prefix="holdfast-crowd-"))
    settings = {"fsync": "off", "shared_buffers": "512MB", "max_wal_size": "8GB", "synchronous_commit": "off"}
    with LocalPostgres(directory, settings=settings, temporary=True) as server:
        await fill(server.url, "holdfast", jobs)
        connection = await asyncpg.connect(server.url)
        looks = [await look(connection, "holdfast", where) for where in all_filters(jobs)]
        for name, operation in UPKEEP.items():
            cost = await touched(connection, "holdfast", operation)
            print(f"{cost.buffers:6} buffers {name}", *cost.scanned)
        await connection.close()
    print(f"{jobs:,} jobs, {len(looks)} lists")
    for each in sorted(looks, key=lambda one: -one.buffers)[:25]:
        asked = {name: value for name in each.where.__slots__ if (value := getattr(each.where, name)) is not None}
        print(f"{each.buffers:6} buffers {each.jobs:3} jobs {'more' if each.more else 'all '} {asked}", *each.scanned)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=int)
    asyncio.run(_report(parser.parse_args().jobs))
