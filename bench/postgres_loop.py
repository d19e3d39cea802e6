"""A hand-written loop on PostgreSQL: durable, fenced, three lanes by weight, and nothing else; what the server allows.

`python -m bench.postgres_loop fill <url> <jobs>` and `… drain <url>` are contenders (see `bench/race.py`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import asyncpg
import uvloop

from bench.race import Cost, Figures, Track, run

BATCH = 200
SLOTS = 400
BULK = 1000
QUEUE = "default"
#: Priority and weight: critical, high, normal.
LANES = {9: 60, 7: 30, 5: 10}

TABLES = """
CREATE SCHEMA loop;
CREATE TABLE loop.job (
    id uuid PRIMARY KEY, task text NOT NULL, queue text NOT NULL, priority int2 NOT NULL, payload bytea NOT NULL,
    max_attempts int2 NOT NULL, created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE loop.ready (
    queue text NOT NULL, priority int2 NOT NULL, tag int8 NOT NULL DEFAULT 0, seq int8 NOT NULL,
    job_id uuid NOT NULL UNIQUE, attempt int2 NOT NULL, losses int2 NOT NULL DEFAULT 0, crashes int2 NOT NULL DEFAULT 0,
    entered_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (queue, priority, tag, seq)
);
CREATE TABLE loop.active (
    job_id uuid PRIMARY KEY, token int8 NOT NULL, worker uuid NOT NULL, attempt int2 NOT NULL, queue text NOT NULL,
    priority int2 NOT NULL, tag int8 NOT NULL, seq int8 NOT NULL, losses int2 NOT NULL, crashes int2 NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE loop.done (
    job_id uuid PRIMARY KEY, state int2 NOT NULL, token int8 NOT NULL, attempt int2 NOT NULL, worker uuid NOT NULL,
    started_at timestamptz NOT NULL, ended_at timestamptz NOT NULL DEFAULT now(), result bytea
);
CREATE TABLE loop.worker (id uuid PRIMARY KEY, lease_until timestamptz NOT NULL);
CREATE SEQUENCE loop.seq CACHE 100;
CREATE SEQUENCE loop.token;
"""

INSERT = """
WITH body AS (
    INSERT INTO loop.job (id, task, queue, priority, payload, max_attempts)
    SELECT id, 'noop', $2, priority, payload, 5
    FROM unnest($1::uuid[], $3::int2[], $4::bytea[]) AS new (id, priority, payload)
    ON CONFLICT DO NOTHING RETURNING id, queue, priority
)
INSERT INTO loop.ready (queue, priority, seq, job_id, attempt)
SELECT queue, priority, nextval('loop.seq'), id, 0 FROM body
"""

# Under a valid lease only; per lane the head of the primary key, from a floor below which nothing is left.
CLAIM = """
WITH lease AS MATERIALIZED (
    SELECT id FROM loop.worker WHERE id = $5 AND lease_until > clock_timestamp() FOR KEY SHARE
), taken AS (
    DELETE FROM loop.ready WHERE ctid = ANY (ARRAY(
        SELECT head.ctid
        FROM lease, unnest($2::int2[], $3::int8[], $4::int4[]) AS lane (priority, floor, quota), LATERAL (
            SELECT ready.ctid FROM loop.ready
            WHERE queue = $1 AND ready.priority = lane.priority AND (tag, seq) >= (0, lane.floor)
            ORDER BY tag, seq LIMIT lane.quota FOR UPDATE SKIP LOCKED
        ) AS head
    )) RETURNING job_id, attempt, queue, priority, tag, seq, losses, crashes
), token AS (
    SELECT nextval('loop.token') AS token
), leased AS (
    INSERT INTO loop.active (job_id, token, worker, attempt, queue, priority, tag, seq, losses, crashes)
    SELECT job_id, token, $5, attempt + 1, queue, priority, tag, seq, losses, crashes FROM taken, token
    RETURNING job_id, token, priority, seq
)
SELECT leased.job_id, leased.token, leased.priority, leased.seq, body.task, body.payload
FROM leased LEFT JOIN LATERAL (SELECT task, payload FROM loop.job WHERE id = leased.job_id LIMIT 1) AS body ON true
"""

SETTLE = """
WITH ended AS (
    DELETE FROM loop.active USING unnest($2::uuid[], $3::int8[], $4::bytea[]) AS outcome (job_id, token, result)
    WHERE active.job_id = outcome.job_id AND active.token = outcome.token AND active.worker = $1
    RETURNING active.job_id, active.token, active.attempt, active.worker, active.started_at, outcome.result
)
INSERT INTO loop.done (job_id, state, token, attempt, worker, started_at, result)
SELECT job_id, 1, token, attempt, worker, started_at, result FROM ended RETURNING job_id
"""

# Statistics of tables that are empty most of the time would turn the plans.
PINS = {
    "enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
    "jit": "off", "plan_cache_mode": "force_generic_plan",
}  # fmt: skip


def insert_in_bulk(url: str, jobs: int, *, cost: Callable[[], Cost]) -> Figures:
    """A thousand to a statement."""
    asyncio.run(_make_tables(url))
    return run([[sys.executable, "-m", "bench.postgres_loop", "fill", url, str(jobs)]], cost=cost)


def claim_and_settle(url: str, jobs: int, *, processes: int, cost: Callable[[], Cost]) -> Figures:
    """From `ready` over `active` to `done`, one asyncio task a job."""
    insert_in_bulk(url, jobs, cost=lambda: Cost(0, 0))
    figures = run([[sys.executable, "-m", "bench.postgres_loop", "drain", url]] * processes, cost=cost)
    asyncio.run(_check_all_done(url, jobs))
    return figures


async def _noop(number: int) -> None:
    return None


TASKS: dict[str, Callable[..., Awaitable[object]]] = {"noop": _noop}


class Lanes:
    """How many to claim from where: by weight over the lanes that are not believed empty."""

    def __init__(self) -> None:
        self._floors = dict.fromkeys(LANES, 0)
        self._empty: set[int] = set()
        self._forget_at = 0.0

    def quotas(self, wanted: int) -> dict[int, int]:
        """Floors and beliefs last a second: commits come in another order than numbers."""
        if (now := time.monotonic()) >= self._forget_at:
            self._forget_at = now + 1.0
            self._floors = dict.fromkeys(LANES, 0)
            self._empty.clear()
        open_lanes = [lane for lane in LANES if lane not in self._empty] or list(LANES)
        total = sum(LANES[lane] for lane in open_lanes)
        shares = {lane: wanted * LANES[lane] // total for lane in open_lanes}
        shares[open_lanes[-1]] += wanted - sum(shares.values())
        return shares

    def floors(self, quotas: dict[int, int]) -> list[int]:
        return [self._floors[lane] for lane in quotas]

    def learn(self, quotas: dict[int, int], rows: list[Any]) -> None:
        """A lane that gave less than was asked for has no more, above its floor at least."""
        got = dict.fromkeys(quotas, 0)
        for row in rows:
            lane, seq = row["priority"], row["seq"]
            got[lane] += 1
            if seq >= self._floors[lane]:
                self._floors[lane] = seq + 1
        for lane, quota in quotas.items():
            if got[lane] < quota:
                self._floors[lane] = 0
                self._empty.add(lane)


class Drain:
    """One process: claims while slots are free, runs each job as a task, settles what has ended in batches."""

    def __init__(self, claiming: asyncpg.Connection[Any], settling: asyncpg.Connection[Any]) -> None:
        self.worker = uuid.uuid4()
        self.settled = 0
        self._claiming = claiming
        self._settling = settling
        self._running = 0
        self._outcomes: list[tuple[uuid.UUID, int, bytes]] = []
        self._ended = asyncio.Event()
        self._room = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def prepare(self) -> None:
        await self._claiming.execute("INSERT INTO loop.worker VALUES ($1, now() + interval '1 hour')", self.worker)
        self._claim = await self._claiming.prepare(CLAIM)
        self._settle = await self._settling.prepare(SETTLE)

    async def run(self) -> None:
        """Until nothing is ready and nothing runs."""
        settler = asyncio.create_task(self._settle_all())
        lanes = Lanes()
        misses = 0
        while misses < 2:  # the first may be a belief that has to be forgotten
            free = SLOTS - self._running - len(self._outcomes)
            if free < SLOTS // 4:
                self._room.clear()
                await self._room.wait()
                continue
            quotas = lanes.quotas(min(BATCH, free))
            rows = await self._claim.fetch(
                QUEUE, list(quotas), lanes.floors(quotas), list(quotas.values()), self.worker
            )
            lanes.learn(quotas, rows)
            misses = 0 if rows else misses + 1
            for row in rows:
                self._running += 1
                task = asyncio.create_task(self._run(row))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        while self._running or self._outcomes:
            self._room.clear()
            await self._room.wait()
        settler.cancel()

    async def _run(self, row: Any) -> None:
        call = json.loads(row["payload"])
        result = await TASKS[row["task"]](*call["args"], **call["kwargs"])
        self._outcomes.append((row["job_id"], row["token"], json.dumps(result).encode()))
        self._running -= 1
        self._ended.set()

    async def _settle_all(self) -> None:
        while True:
            await self._ended.wait()
            self._ended.clear()
            while batch := self._outcomes[:BATCH]:
                ids, tokens, results = zip(*batch, strict=True)
                self.settled += len(await self._settle.fetch(self.worker, ids, tokens, results))
                del self._outcomes[: len(batch)]
                self._room.set()


def _ids() -> Iterator[uuid.UUID]:
    """Version 7, growing."""
    for number in itertools.count(secrets.randbits(40)):
        milliseconds = time.time_ns() // 1_000_000
        yield uuid.UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | number)


async def _fill(url: str, jobs: int) -> None:
    connection = await asyncpg.connect(url)
    insert = await connection.prepare(INSERT)
    ids, lanes = _ids(), itertools.cycle(LANES)
    with Track() as track:
        for start in range(0, jobs, BULK):
            numbers = range(start, min(start + BULK, jobs))
            await insert.fetch(
                [next(ids) for _ in numbers],
                QUEUE,
                [next(lanes) for _ in numbers],
                [json.dumps({"args": [number], "kwargs": {}}).encode() for number in numbers],
            )
        track.jobs = jobs
    await connection.close()


async def _drain(url: str) -> None:
    claiming, settling = [await asyncpg.connect(url, server_settings=PINS) for _ in range(2)]
    drain = Drain(claiming, settling)
    await drain.prepare()
    with Track() as track:
        await drain.run()
        track.jobs = drain.settled
    await claiming.close()
    await settling.close()


async def _make_tables(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(TABLES)
    await connection.close()


async def _check_all_done(url: str, jobs: int) -> None:
    connection = await asyncpg.connect(url)
    done = await connection.fetchval("SELECT count(*) FROM loop.done")
    await connection.close()
    if done != jobs:
        raise SystemExit(f"the loop is wrong: {done:,} of {jobs:,} jobs are done")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fill", to, count]:
            uvloop.run(_fill(to, int(count)))
        case ["drain", of]:
            uvloop.run(_drain(of))
