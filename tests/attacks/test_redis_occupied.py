"""A worker that still waits for announcements when it has no time for any more: others are to have what comes to it."""

from __future__ import annotations

from typing import Any

import psycopg
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop, until

from holdfast.local import LocalRedis

LONG_S = 60.0


def _is_waiting(here: Shop) -> bool:
    return any(ear._task is not None for ear in here.ears())


async def _at_rest(here: Shop) -> None:
    """Redis was told what there is, which is nothing."""
    async with here.line() as ask:
        meta = f"{await here.prefix()}:{{default}}:meta"

        async def is_filled() -> bool:
            return bool(await ask("HEXISTS", meta, "filled"))

        await here.hf.queues.pause("default")
        await here.hf.queues.resume("default")  # a queue that nobody has used or set is none
        await until(is_filled, "the first filling")
    await until(lambda: _is_waiting(here), "the worker to wait")


async def _tell_nobody(producer: Shop, *numbers: int) -> None:
    dispatch = producer.hf._opened.dispatch
    assert dispatch.store is not None
    dispatch.store.announce_to(lambda announcements: True)  # taken, and never delivered
    await producer.enqueue(*numbers)
    dispatch.store.announce_to(dispatch.transport.publish)


async def _what_comes_goes_on(here: Shop, there: Shop, producer: Shop) -> None:
    """`here` runs a job for long, and its connection still waits: it is the first to be given the next announcement."""
    await until(lambda: _is_waiting(here), "the connection that waits")
    for shop in (here, there):
        transport: Any = shop.hf._opened.dispatch.transport
        transport._abandoned_s = LONG_S  # nobody else sees to it
    async with there.hf.worker():
        await until(lambda: _is_waiting(there), "the other's")
        await producer.enqueue(1)
        await there.until_ran(1)
    assert (here.ran, there.ran) == ([0], [1])


@scene
async def test_what_comes_to_a_full_worker_goes_on(postgres_tables: PostgresSchema, own_redis: LocalRedis) -> None:
    """It lay there until a job had ended, or for five seconds, while others had nothing to do."""
    here = Shop(postgres_tables, own_redis.url, concurrency=1, poll_s=LONG_S)
    there, producer = (Shop(postgres_tables, own_redis.url, poll_s=LONG_S, pooled=True) for _ in range(2))
    here.hold.clear()
    async with here.hf, there.hf, producer.hf, here.hf.worker():
        await _at_rest(here)
        await _tell_nobody(producer, 0)
        here.hint()
        await here.until_ran(1)
        await _what_comes_goes_on(here, there, producer)
        here.hold.set()


@scene
async def test_what_comes_to_a_worker_that_runs_a_job_alone_goes_on(
    postgres_tables: PostgresSchema, own_redis: LocalRedis
) -> None:
    here = Shop(postgres_tables, own_redis.url)
    there, producer = (Shop(postgres_tables, own_redis.url, poll_s=LONG_S, pooled=True) for _ in range(2))
    here.hold.clear()
    async with here.hf, there.hf, producer.hf, here.hf.worker():
        await _at_rest(here)
        await _tell_nobody(producer, 0)
        with psycopg.connect(postgres_tables.url) as side:
            side.execute(f"UPDATE {postgres_tables.schema}.ready SET losses = 2")  # type: ignore[call-overload]
        here.hint()
        await here.until_ran(1)
        await _what_comes_goes_on(here, there, producer)
        here.hold.set()
