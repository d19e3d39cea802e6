"""What somebody else has written into a stream, and nobody can read in time, goes away with the first who tried."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Ask, Shop, until

from holdfast.local import LocalRedis
from holdfast.telemetry.transport_events import TransportGarbage
from holdfast.transports.redis_streams.keys import lanes_of
from holdfast.transports.redis_streams.scripts import FETCH

LANES = lanes_of("default")
HUGE = b"x" * 4_000_000


async def _read_by_a_dead_one(here: Shop, ask: Ask) -> str:
    """A job's announcement and something huge: no answer with that in it came in time."""
    stream = await here.stream()
    await here.enqueue(0)
    await until(lambda: _has_entries(here), "the announcement")
    await ask("XADD", stream, "*", "j", HUGE)
    await ask("XREADGROUP", "GROUP", "workers", "dead", "COUNT", 10, "STREAMS", stream, ">")
    return stream


async def _has_entries(here: Shop) -> bool:
    return await here.length() > 0


async def _contents(ask: Ask, stream: str) -> list[int]:
    return [len(fields[1]) for _, fields in await ask("XRANGE", stream, "-", "+")]


@scene
async def test_what_a_dead_worker_could_not_read_is_not_given_to_the_next(
    postgres_tables: PostgresSchema, own_redis: LocalRedis
) -> None:
    """It was added again every few seconds, and each time took Redis away from whoever read it."""
    here = Shop(postgres_tables, own_redis.url)
    async with here.hf, here.line() as ask:
        transport: Any = here.hf._opened.dispatch.transport
        transport._abandoned_s = 0.0
        stream = await _read_by_a_dead_one(here, ask)
        assert (await transport.tend(["default"])).recovered == 1
        assert await _contents(ask, stream) == [16]


@scene
async def test_what_a_worker_could_not_read_is_not_left_to_others(
    postgres_tables: PostgresSchema, own_redis: LocalRedis
) -> None:
    here = Shop(postgres_tables, own_redis.url)
    async with here.hf, here.line() as ask:
        transport: Any = here.hf._opened.dispatch.transport
        stream = await _read_by_a_dead_one(here, ask)
        consumer = transport.consumer("dead", wake=lambda: None)
        await consumer.read(dict.fromkeys(LANES, 0))
        await consumer.close()
        assert await _contents(ask, stream) == [16]


@scene
async def test_what_is_not_ours_is_not_sent(
    postgres_tables: PostgresSchema, own_redis: LocalRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Shop(postgres_tables, own_redis.url)
    async with here.hf, here.line() as ask:
        transport: Any = here.hf._opened.dispatch.transport
        await here.enqueue(0)
        await until(lambda: _has_entries(here), "the announcement")
        await ask("XADD", await here.stream(), "*", "j", HUGE)
        consumer = transport.consumer("reader", wake=lambda: None)
        run, sizes = consumer._line.run, list[int]()

        async def counted(*args: Any) -> Any:
            answer = await run(*args)
            if args[0] is FETCH:
                sizes.extend(len(content) for content in answer[0][2::3])
            return answer

        monkeypatch.setattr(consumer._line, "run", counted)
        reading = await consumer.read(dict.fromkeys(LANES, 10))
        assert (len(reading.entries), sizes) == (1, [16, 1])
        assert [event.count for event in here.told(TransportGarbage)] == [1]
        await consumer.close()
