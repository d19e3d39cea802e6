"""Work on PostgreSQL and Redis: announced, shared out, found without an announcement, and nothing left behind."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop, until
from tests.redis.test_connection import Watched

from holdfast.core.announcement import Announcement
from holdfast.core.errors import StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.local import LocalRedis
from holdfast.telemetry.transport_events import TransportDown, TransportFilled, TransportGarbage, TransportUp

LONG_S = 60.0


@pytest.fixture
def shop(postgres_tables: PostgresSchema, redis_url: str) -> Any:
    return lambda **settings: Shop(postgres_tables, redis_url, **settings)


@scene
async def test_an_idle_worker_is_woken_by_redis_alone(shop: Any) -> None:
    here = shop(poll_s=LONG_S, pooled=True)  # neither a look of its own nor a NOTIFY would come in time
    async with here.hf, here.hf.worker():
        await here.enqueue(0)
        await here.until_ran(1)
        for n in range(1, 20):
            await here.enqueue(n)
            await here.until_ran(n + 1)
    assert here.ran == list(range(20))


@scene
async def test_two_workers_share_the_work_and_nothing_is_left_in_redis(shop: Any) -> None:
    here = shop(concurrency=10)
    async with here.hf, here.hf.worker(), here.hf.worker():
        await until(lambda: here.hf._opened.dispatch.transport.is_up, "Redis")
        await here.enqueue(*range(1000))
        await here.enqueue(*range(1000, 1200), priority=9)
        await here.until_ran(1200)
        await until(lambda: _is_empty(here), "empty streams")
        await until(lambda: _is_marked(here), "the leader's mark")
    assert sorted(here.ran) == list(range(1200)), "each once"
    assert [key.rpartition(":")[2] for key in await here.keys()] == [*map(str, range(10)), "meta"]


async def _is_marked(here: Shop) -> bool:
    return any(key.endswith(":meta") for key in await here.keys())


async def _is_empty(here: Shop) -> bool:
    return not any([await here.length(priority=n) or await here.pending(priority=n) for n in range(10)])


@scene
async def test_a_priority_has_its_share_and_a_lane_its_order(shop: Any) -> None:
    here = shop(concurrency=1)
    async with here.hf:
        await here.enqueue(*range(100))
        await here.enqueue(*range(1000, 1100), priority=9)
        async with here.hf.worker():
            await here.until_ran(200)
    calm, urgent = [n for n in here.ran if n < 1000], [n for n in here.ran if n >= 1000]
    assert (calm, urgent) == (sorted(calm), sorted(urgent))
    first = here.ran[:70]
    assert 55 <= sum(n >= 1000 for n in first) <= 65, "six of seven are urgent"


@scene
async def test_what_was_never_announced_is_found_also_in_a_backlog(shop: Any) -> None:
    """As after a crash between commit and announcement: in the store, oldest first, at a tenth of the pace."""
    here = shop(concurrency=10)
    async with here.hf:
        dispatch = here.hf._opened.dispatch
        dispatch.store.announce_to(lambda announcements: True)  # taken, and never delivered
        await here.enqueue(*range(1000, 1010))
        dispatch.store.announce_to(dispatch.transport.publish)
        await here.enqueue(*range(900))
        async with here.hf.worker():
            await here.until_ran(910)
    found = [place for place, n in enumerate(here.ran) if n >= 1000]
    assert len(found) == 10
    assert max(found) < 250, f"behind {max(found)} others, in a backlog of 900"


@scene
async def test_what_was_never_announced_to_an_idle_worker_is_found_by_its_own_look(shop: Any) -> None:
    here = shop(pooled=True)
    async with here.hf, here.hf.worker():
        await here.enqueue(0)
        await here.until_ran(1)
        here.hf._opened.dispatch.store.announce_to(lambda announcements: True)
        await here.enqueue(1)
        await here.until_ran(2)


@scene
async def test_scheduled_work_is_announced_when_it_is_due(shop: Any) -> None:
    here = shop(poll_s=LONG_S)
    async with here.hf, here.hf.worker():
        await here.enqueue(0)
        await here.until_ran(1)
        await here.enqueue(1, delay=0.05)
        await here.until_ran(2)


@scene
async def test_tenants_take_turns_and_only_wake_ups_are_announced(shop: Any) -> None:
    here = shop(concurrency=1)
    async with here.hf:
        await here.enqueue(*range(50), tenant="big")
        await here.enqueue(*range(1000, 1010), tenant="small")
        async with here.line() as ask:
            await until(lambda: _has_entries(here), "wake-ups")
            entries = await ask("XRANGE", await here.stream(), "-", "+")
            assert 1 <= len(entries) <= 16, "bounded: one that wakes up takes what it can"
            assert {tuple(fields) for _, fields in entries} == {(b"j", b"")}
        async with here.hf.worker():
            await here.until_ran(60)
    small = [place for place, n in enumerate(here.ran) if n >= 1000]
    assert max(small) <= 22, f"ten of each tenant by turns, and not {here.ran}"


async def _has_entries(here: Shop) -> bool:
    return await here.length() > 0


@scene
async def test_a_wake_up_is_as_quick_as_an_announcement(shop: Any) -> None:
    here = shop(poll_s=LONG_S, pooled=True)
    async with here.hf, here.hf.worker():
        for n in range(10):
            await here.enqueue(n, tenant="acme")
            await here.until_ran(n + 1)


@scene
async def test_what_was_enqueued_in_a_users_transaction_wakes_a_worker_when_that_commits(
    postgres_tables: PostgresSchema, redis_url: str
) -> None:
    here, producer = (Shop(postgres_tables, redis_url, poll_s=LONG_S, pooled=True) for _ in range(2))
    async with here.hf, producer.hf, here.hf.worker():
        await producer.enqueue(0)
        await here.until_ran(1)
        connection = await asyncpg.connect(postgres_tables.url)
        try:
            async with connection.transaction():
                await producer.sell.options(connection=connection).enqueue(1)
            await here.until_ran(2)
        finally:
            await connection.close()


@scene
async def test_a_paused_queue_goes_on_when_it_is_resumed(shop: Any) -> None:
    here = shop(poll_s=LONG_S)
    async with here.hf, here.hf.worker():
        await here.enqueue(0)
        await here.until_ran(1)
        await here.hf.queues.pause("default")
        await here.enqueue(1)
        await until(lambda: _is_empty(here), "the announcement to be dealt with")
        assert here.ran == [0]
        await here.hf.queues.resume("default")
        await here.until_ran(2)


@scene
async def test_a_queue_at_its_bound_leaves_the_rest_to_others(postgres_tables: PostgresSchema, redis_url: str) -> None:
    bounded = {"concurrency": 10, "queue": {"default": {"concurrency": 2}}}
    here, there = (Shop(postgres_tables, redis_url, **settings) for settings in (bounded, {"concurrency": 10}))
    here.hold.clear()
    async with here.hf, there.hf, here.hf.worker():
        await here.enqueue(0, 1)
        await here.until_ran(2)
        async with there.hf.worker():
            await here.enqueue(2, 3, 4)
            await there.until_ran(3)
            here.hold.set()
    assert (sorted(here.ran), sorted(there.ran)) == ([0, 1], [2, 3, 4])


@scene
async def test_a_full_worker_leaves_the_rest_to_others(postgres_tables: PostgresSchema, redis_url: str) -> None:
    here, there = (Shop(postgres_tables, redis_url, concurrency=n) for n in (1, 10))
    here.hold.clear()
    async with here.hf, there.hf, here.hf.worker():
        await here.enqueue(0)
        await here.until_ran(1)
        async with there.hf.worker():
            await here.enqueue(*range(1, 50))
            await there.until_ran(49)
            here.hold.set()
    assert here.ran == [0]


@scene
async def test_a_stream_never_grows_past_its_bound(shop: Any) -> None:
    here = shop(high_watermark=1_000_000)
    async with here.hf:
        here.hf._opened.dispatch.transport._publisher._bound = 100
        for first in range(0, 500, 50):
            await here.enqueue(*range(first, first + 50))
        await until(lambda: _is_full(here), "a full stream")
        async with here.hf.worker():
            await here.until_ran(500)
    assert sorted(here.ran) == list(range(500))


async def _is_full(here: Shop) -> bool:
    assert await here.length() <= 100
    return await here.length() == 100


@scene
async def test_two_installations_in_one_redis_do_not_meet(
    postgres_schema: PostgresSchema, postgres_tables: PostgresSchema, redis_url: str
) -> None:
    here, there = Shop(postgres_tables, redis_url), Shop(postgres_schema, redis_url)
    await there.hf.migrate()
    async with here.hf, there.hf, here.hf.worker(), there.hf.worker():
        for n in range(20):
            await (here if n % 2 else there).enqueue(n)
        await here.until_ran(10)
        await there.until_ran(10)
    assert {n % 2 for n in here.ran} == {1}
    assert {n % 2 for n in there.ran} == {0}
    assert await here.prefix() != await there.prefix()


@scene
async def test_two_installations_that_share_their_keys_take_announcements_from_each_other_and_nothing_else(
    postgres_schema: PostgresSchema, postgres_tables: PostgresSchema, redis_url: str
) -> None:
    """As when a database was copied, and both copies were given the same Redis."""
    here, there = Shop(postgres_tables, redis_url), Shop(postgres_schema, redis_url)
    await there.hf.migrate()
    async with here.hf, there.hf:
        there.hf._opened.dispatch.transport._keys.prefix = await here.prefix()
        async with here.hf.worker(), there.hf.worker():
            for n in range(100):
                await (here if n % 2 else there).enqueue(n)
            await here.until_ran(50)
            await there.until_ran(50)
    assert sorted(here.ran) == list(range(1, 100, 2))
    assert sorted(there.ran) == list(range(0, 100, 2))


@scene
async def test_garbage_is_dropped_and_said(shop: Any) -> None:
    here = shop(poll_s=LONG_S)
    async with here.hf, here.hf.worker(), here.line() as ask:
        await here.enqueue(0)
        await here.until_ran(1)
        stream = await here.stream()
        await ask("XADD", stream, "*", "j", "not an id")
        await ask("XADD", stream, "*", "some", "thing", "else", "")
        await ask("XADD", stream, "*", "j", b"0123456789abcdef")  # of no job that there is
        await here.enqueue(1)
        await here.until_ran(2)
        await until(lambda: _is_empty(here), "garbage to be dropped")
    assert sum(event.count for event in here.told(TransportGarbage)) == 2


@scene
async def test_a_foreign_key_in_place_of_a_stream_is_said_and_work_comes_from_the_store(shop: Any) -> None:
    here = shop()
    async with here.hf, here.line() as ask:
        await ask("SET", await here.stream(), "somebody else's")
        async with here.hf.worker():
            await here.enqueue(*range(20))
            await here.until_ran(20)
        await ask("DEL", await here.stream())
    assert "WRONGTYPE" in here.told(TransportDown)[0].error


@scene
async def test_entries_that_a_dead_worker_had_read_run_elsewhere_and_it_is_forgotten(shop: Any) -> None:
    here = shop(pooled=True)
    async with here.hf:
        transport = here.hf._opened.dispatch.transport
        transport._abandoned_s, transport._dead_s = 0.2, 0.2
        await here.enqueue(0)
        async with here.line() as ask:
            await until(lambda: _has_entries(here), "the announcement")
            await ask("XREADGROUP", "GROUP", "workers", "dead", "COUNT", 10, "STREAMS", await here.stream(), ">")
            async with here.hf.worker():
                await here.until_ran(1)
                await until(lambda: _is_empty(here), "the end of what the dead one had read")

                async def is_forgotten() -> bool:
                    found = await ask("XINFO", "CONSUMERS", await here.stream(), "workers")
                    return b"dead" not in [each[1] for each in found]

                await until(is_forgotten, "the dead one to be forgotten")


@scene
async def test_workers_that_come_and_go_leave_no_consumer(shop: Any) -> None:
    here = shop()
    async with here.hf:
        for n in range(5):
            async with here.hf.worker():
                await here.enqueue(n)
                await here.until_ran(n + 1)
        async with here.line() as ask:
            found = await ask("XINFO", "CONSUMERS", await here.stream(), "workers")
    assert [each[1] for each in found if each[1] != b"recovery"] == []


@scene
async def test_an_emptied_redis_is_told_anew_by_the_leader_in_order(
    postgres_tables: PostgresSchema, own_redis: LocalRedis
) -> None:
    here = Shop(postgres_tables, own_redis.url, concurrency=1)
    async with here.hf:
        here.hold.clear()
        async with here.hf.worker():
            await here.enqueue(*range(50))
            await here.until_ran(1)
            await until(lambda: _is_filled(here), "the first filling")
            here.events.clear()
            own_redis.ask("FLUSHALL")
            await until(lambda: bool(here.told(TransportFilled)), "another one")
            assert await here.length() >= 48
            here.hold.set()
            await here.until_ran(50)
    assert here.ran == sorted(here.ran), "in order"


async def _is_filled(here: Shop) -> bool:
    async with here.line() as ask:
        return bool(await ask("HEXISTS", f"{await here.prefix()}:{{default}}:meta", "filled"))


@scene
async def test_memory_and_keys_are_as_before_after_many_jobs(
    postgres_tables: PostgresSchema, own_redis: LocalRedis
) -> None:
    here = Shop(postgres_tables, own_redis.url, high_watermark=1_000_000, concurrency=200)
    async with here.hf, here.hf.worker(), here.line() as ask:
        await here.enqueue(0)
        await here.until_ran(1)
        await until(lambda: _is_filled(here), "all keys")
        await until(lambda: _is_empty(here), "rest")
        before, keys = await _used(ask), await here.keys()
        for first in range(1, 20_001, 1000):
            await here.enqueue(*range(first, first + 1000))
        await here.until_ran(20_001)
        await until(lambda: _is_empty(here), "empty streams")
        assert await here.keys() == keys

        async def is_back() -> bool:
            await ask("MEMORY", "PURGE")
            return await _used(ask) < before + 300_000

        await until(is_back, "the memory of 20,000 jobs")


async def _used(ask: Any) -> int:
    """What data takes, without the buffers of connections and of the log."""
    said = dict(line.split(":") for line in (await ask("INFO", "memory")).decode().split() if ":" in line)
    return int(said["used_memory_dataset"])


@scene
async def test_the_store_going_away_loses_no_announced_job(shop: Any) -> None:
    """What was read and could not be claimed is claimed when the store answers again."""
    here = shop(poll_s=0.05)
    failing = True

    async with here.hf:
        dispatch = here.hf._opened.dispatch
        claim = dispatch.store.claim_entries

        async def claim_entries(*args: Any, **kwargs: Any) -> Any:
            if failing:
                raise StoreUnavailable("away")
            return await claim(*args, **kwargs)

        dispatch.store.claim_entries = claim_entries
        await here.enqueue(*range(10))
        async with here.hf.worker():
            await asyncio.sleep(0.3)
            failing = False
            await here.until_ran(10)
            await until(lambda: _is_empty(here), "acknowledgements")
    assert sorted(here.ran) == list(range(10))


@scene
async def test_redis_goes_and_comes_back_and_each_is_said_once(
    postgres_tables: PostgresSchema, own_redis: LocalRedis
) -> None:
    here = Shop(postgres_tables, own_redis.url)
    async with here.hf, here.hf.worker():
        await here.enqueue(0)
        await here.until_ran(1)
        for n in range(3):
            own_redis.kill()
            await here.enqueue(*range(100 * n + 1, 100 * n + 50))
            await here.until_ran(49 * (n + 1) + n + 1)
            await asyncio.to_thread(own_redis.start)
            await until(lambda n=n: len(here.told(TransportUp)) == n + 1, "Redis to be used again")  # type: ignore[misc]
            await here.enqueue(100 * n + 99)
            await here.until_ran(50 * (n + 1) + 1)
    told = [type(event) for event in here.told(TransportDown, TransportUp)]
    assert told == [TransportDown, TransportUp] * 3


@scene
async def test_what_could_not_be_announced_is_hinted_of(postgres_tables: PostgresSchema, own_redis: LocalRedis) -> None:
    """A producer that believes Redis to be there finds out when it has committed; workers hear of it by the store."""
    here, producer = (Shop(postgres_tables, own_redis.url, poll_s=LONG_S) for _ in range(2))
    async with here.hf, producer.hf, here.hf.worker():
        await producer.enqueue(0)
        await here.until_ran(1)
        # A worker that has just begun may have found the job in the store, before it was announced.
        publisher = producer.hf._opened.dispatch.transport._publisher
        await until(lambda: publisher._task is None, "the end of the announcement")
        own_redis.kill()
        await until(lambda: bool(here.told(TransportDown)), "the worker to do without")
        assert producer.told(TransportDown) == [], "nobody has asked it for anything"
        await producer.enqueue(1)
        await here.until_ran(2)
        await until(lambda: publisher._task is None, "the end of the announcement")
        assert len(producer.told(TransportDown)) == 1


@scene
async def test_moved_jobs_are_heard_of_in_their_new_lane(shop: Any) -> None:
    here, there = (shop(poll_s=LONG_S, pooled=True, queues=["default"]) for _ in range(2))
    async with here.hf, here.hf.worker(), there.hf:
        await there.enqueue(0)
        await here.until_ran(1)
        waiting = [await there.sell.options(queue="elsewhere").enqueue(n) for n in (1, 2)]
        await there.hf.jobs.move([job.id for job in waiting], queue="default")
        await here.until_ran(3)


@scene
async def test_a_job_that_must_run_alone_is_heard_of(shop: Any) -> None:
    here = shop(poll_s=LONG_S, pooled=True)
    async with here.hf:
        job = await here.sell.enqueue(1)
        here.query("UPDATE ready SET losses = 2, queue = 'elsewhere' RETURNING 1")
        async with here.hf.worker():
            await here.enqueue(0)
            await here.until_ran(1)
            here.query("UPDATE ready SET queue = 'default' RETURNING 1")
            store: Any = here.hf._require_open().store
            await store.dispatch.announce_ready([job.id])
            await here.until_ran(2)


@pytest.mark.parametrize("began", ["0", "$"])
@scene
async def test_what_is_left_to_read_does_not_depend_on_a_group_of_somebody_elses(
    own_redis: LocalRedis, began: str
) -> None:
    lane = Lane("mail", 5)
    transport = Watched(own_redis.url)
    await transport.open()
    await transport._publisher.send([Announcement(lane, uuid4()) for _ in range(2)])
    own_redis.ask("XGROUP", "CREATE", transport._keys.stream(lane), "audit", began)
    consumer = transport.consumer("somebody", wake=lambda: None)
    first, second = [await consumer.read({lane: 1}) for _ in range(2)]
    assert (len(first.entries), first.more) == (1, {lane})
    assert (len(second.entries), second.more) == (1, frozenset())
    await transport.close()


@scene
async def test_what_comes_to_an_idle_worker_begins_before_more_is_asked_for(shop: Any) -> None:
    here = shop(poll_s=LONG_S, pooled=True)
    ran_at_read: list[int] = []
    async with here.hf:
        transport: Any = here.hf._require_open().dispatch.transport
        make = transport.consumer

        def watched(name: str, **calls: Any) -> Any:
            consumer = make(name, **calls)
            read = consumer.read

            async def noting(quotas: Any) -> Any:
                if quotas:
                    ran_at_read.append(len(here.ran))
                return await read(quotas)

            consumer.read = noting
            return consumer

        transport.consumer = watched
        async with here.hf.worker():
            await here.enqueue(0)
            await until(lambda: bool(ran_at_read) and ran_at_read[-1] == 1, "the look after the first")
            await until(
                lambda: "holdfast-listener" in {task.get_name() for task in asyncio.all_tasks()}, "it to be idle"
            )
            ran_at_read.clear()
            await here.enqueue(1)
            await until(lambda: bool(ran_at_read), "the next look")
    assert ran_at_read[0] == 2
