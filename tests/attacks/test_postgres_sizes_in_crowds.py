"""Limits whose sizes are told in several ways, and change, under several processes' worth of workers and an operator.

What ran at once, as every look shows it, must have begun one after the other, each while fewer ran than its own size.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

import asyncpg
import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.gates import SlotGate
from holdfast.core.job import JobId, WorkerId
from holdfast.core.settlement import HandBack, Retry, Settlement, Succeed
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import ERROR, LONG_S, PLENTY, Run, a_job, claim, enlist, insert

STORES = 4
JOBS = 120
SIZES = {"constant": (6,), "mixed": (6, 8, 20), "grows and shrinks": (30, 8)}
#: None: what the code says again.
WORDS = (None, None, 1, 3, 12)
RUNNING = """
    SELECT s.key, s.job_id, a.token, s.since, clock_timestamp() AS seen
    FROM {schema}.slot s JOIN {schema}.active a USING (job_id) WHERE s.kind = 'limit'
"""
#: A slot says when the statement was begun that took it; and what is not committed stays so for a moment.
AUDITED = """
    ALTER TABLE {schema}.slot ADD COLUMN since timestamptz DEFAULT statement_timestamp();
    CREATE FUNCTION {schema}.linger() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_sleep(random() * 0.006); RETURN NULL; END $$;
    CREATE TRIGGER linger AFTER INSERT ON {schema}.slot FOR EACH STATEMENT EXECUTE FUNCTION {schema}.linger()
"""
AS_BEFORE = "DROP FUNCTION {schema}.linger CASCADE; ALTER TABLE {schema}.slot DROP COLUMN since"
BEGIN, END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class Word(NamedTuple):
    """What an operator says of a limit: it holds from some time of its saying on, until some time of the next."""

    size: int | None
    since: datetime = BEGIN
    until: datetime = END


class Taken(NamedTuple):
    """A slot: its size was looked at after the one, and before the other it was committed and seen."""

    size: int
    since: datetime
    seen: datetime


class Ran(NamedTuple):
    key: str
    job_id: JobId
    token: int


def could_begin_one_by_one(taken: Iterable[Taken]) -> bool:
    """Whether there is an order in which each found fewer than its size; who was seen before another one looked came
    before him. Each must come before those who follow him, and else he who finds room for the shortest time."""
    latest: list[tuple[int, Taken]] = []
    for each in sorted(taken, key=lambda each: each.seen, reverse=True):
        followers = [place for place, other in latest if each.seen < other.since]
        latest.append((min([each.size, *(place - 1 for place in followers)]), each))
    return all(place > before for before, (place, _) in enumerate(sorted(latest, key=lambda pair: pair[0])))


def test_what_could_have_begun_one_by_one() -> None:
    times = [datetime(2026, 1, 1, second=second, tzinfo=UTC) for second in range(9)]
    large = [Taken(9, times[0], times[1])] * 3
    assert could_begin_one_by_one([*large, Taken(4, times[2], times[5])])
    assert not could_begin_one_by_one([*large, Taken(4, times[2], times[5]), Taken(4, times[2], times[5])])
    assert could_begin_one_by_one([*large, Taken(1, times[0], times[5])]), "it may have come before them"
    assert not could_begin_one_by_one([Taken(1, times[0], times[5])] * 2)


class Crowd:
    """Workers of several stores, an operator, and somebody who looks all the time."""

    def __init__(self, place: PostgresSchema, side: asyncpg.Connection[asyncpg.Record], seed: int) -> None:
        self._query = RUNNING.format(schema=place.schema)
        self._side = side
        self._turn = asyncio.Lock()
        self._chance = Random(seed)
        self._sizes: dict[JobId, Mapping[str, int]] = {}
        self._words = {key: [Word(None)] for key in SIZES}
        self._slots: dict[Ran, tuple[datetime, datetime]] = {}
        self._looks: set[frozenset[Ran]] = set()
        self.left = set[JobId]()

    async def fill(self, store: PostgresStore) -> None:
        """What grows and shrinks has another size in the code for each quarter of the jobs."""
        jobs = []
        for number in range(JOBS):
            keys = self._chance.sample(list(SIZES), self._chance.choice((1, 1, 1, 2)))
            sizes = {key: self._chance.choice(SIZES[key]) for key in keys}
            if "grows and shrinks" in sizes:
                sizes["grows and shrinks"] = SIZES["grows and shrinks"][4 * number // JOBS % 2]
            jobs.append(a_job(gates=tuple(SlotGate(key, size) for key, size in sizes.items())))
            self._sizes[jobs[-1].id] = sizes
        self.left = set(await insert(store, *jobs))

    async def work(self, store: PostgresStore) -> None:
        worker, runs = await enlist(store), list[Run]()
        while self.left:
            jobs = await claim(store, worker, self._chance.randint(1, 3))
            runs += [Run(worker, job) for job in jobs]
            if self._chance.random() < 0.05:
                await store.renew_worker(worker, lease_s=0, held_for_s=LONG_S)
                await store.reap_workers(limit=PLENTY)
                worker, runs = await enlist(store), []
            ended = len(runs) if not jobs else max(0, len(runs) - 3)
            some, runs = runs[:ended], runs[ended:]
            await self._settle(store, worker, some)
            await store.promote_jobs(limit=PLENTY)
            await store.serve_gates(limit=PLENTY)

    async def _settle(self, store: PostgresStore, worker: WorkerId, runs: Sequence[Run]) -> None:
        ends = [self._end(run) for run in runs]
        await store.settle_jobs(worker, ends)
        self.left.difference_update(end.job_id for end in ends if isinstance(end, Succeed))

    def _end(self, run: Run) -> Settlement:
        dice = self._chance.random()
        if dice < 0.1:
            return HandBack(run.id, run.token, "no time")
        if dice < 0.2 and run.job.attempt < 3:
            return Retry(run.id, run.token, 0.0, ERROR)
        return Succeed(run.id, run.token, None)

    async def operate(self, store: PostgresStore) -> None:
        while self.left:
            await self._say(store, self._chance.choice(list(SIZES)), self._chance.choice(WORDS))
        for key in SIZES:
            await self._say(store, key, None)

    async def _say(self, store: PostgresStore, key: str, size: int | None) -> None:
        since = await self._now()
        await store.set_limit(key, size=size, pace=None, by="me")
        *earlier, last = self._words[key]
        self._words[key] = [*earlier, last._replace(until=await self._now()), Word(size, since)]

    async def _now(self) -> datetime:
        async with self._turn:
            now: datetime = await self._side.fetchval("SELECT clock_timestamp()")
        return now

    async def watch(self) -> None:
        while self.left:
            async with self._turn:
                rows = await self._side.fetch(self._query)
            look = {Ran(*row[:3]): row[3:] for row in map(tuple, rows)}
            self._slots = look | self._slots
            self._looks.add(frozenset(look))

    def judge(self) -> None:
        for look in self._looks:
            at_once = defaultdict[str, list[Taken]](list)
            for ran in look:
                at_once[ran.key].append(self._taken(ran))
            for key, taken in at_once.items():
                assert could_begin_one_by_one(taken), f"{key}: {sorted(taken, key=lambda each: each.since)}"

    def _taken(self, ran: Ran) -> Taken:
        since, seen = self._slots[ran]
        said = [word.size for word in self._words[ran.key] if word.since <= seen and word.until >= since]
        return Taken(max(self._sizes[ran.job_id][ran.key] if size is None else size for size in said), since, seen)


@pytest.fixture
def audited_tables(postgres_tables: PostgresSchema) -> Iterator[PostgresSchema]:
    """Others use them afterwards."""
    with psycopg.connect(postgres_tables.url, autocommit=True) as side:
        side.execute(AUDITED.format(schema=postgres_tables.schema))  # type: ignore[call-overload]  # a schema's name is in it
        yield postgres_tables
        side.execute(AS_BEFORE.format(schema=postgres_tables.schema))  # type: ignore[call-overload]  # a schema's name is in it


@pytest.mark.parametrize("operated", [False, True], ids=["as the code says", "with an operator"])
@pytest.mark.parametrize("seed", range(3))
def test_limits_of_several_sizes_are_never_exceeded_and_drain_by_themselves(
    seed: int, operated: bool, audited_tables: PostgresSchema
) -> None:
    place = audited_tables

    async def scenario() -> None:
        stores = [PostgresStore(place.url, schema=place.schema) for _ in range(STORES)]
        for store in stores:
            await store.open()
        side = await asyncpg.connect(place.url)
        crowd = Crowd(place, side, seed)
        await crowd.fill(stores[0])
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(crowd.watch())
            if operated:
                group.create_task(crowd.operate(stores[0]))
            for store in stores:
                group.create_task(crowd.work(store))
        crowd.judge()
        assert await side.fetchval(f"SELECT count(*) FROM {place.schema}.slot") == 0
        await side.close()
        for store in stores:
            await store.close()

    asyncio.run(scenario())
