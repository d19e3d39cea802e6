"""Whatever goes through Redis, nothing of it stays: keys and memory are those of before."""

from __future__ import annotations

from uuid import uuid4

from tests.integration.scene import scene
from tests.redis.apps import Ask, until
from tests.redis.fixtures import StartRedis
from tests.redis.test_connection import Watched

from holdfast.core.announcement import Announcement
from holdfast.local import LocalRedis
from holdfast.transports.redis_streams import parse_address
from holdfast.transports.redis_streams.keys import lanes_of
from holdfast.transports.redis_streams.publisher import BOUND
from holdfast.transports.redis_streams.wire import connect

LANES = lanes_of("mail")
AT_ONCE = 1000
JOBS = 100_000
#: Of noise: what the server itself needs from one moment to the next.
SLACK_BYTES = 300_000


@scene
async def test_memory_and_keys_are_as_before_after_100_000_jobs_at_once(
    start_redis: StartRedis,
) -> None:
    own_redis = start_redis(settings={"appendonly": "no"})
    assert BOUND * len(LANES) == JOBS
    transport = Watched(own_redis.url)
    await transport.open()
    wire = await connect(parse_address(own_redis.url))

    async def ask(*words: str) -> bytes:
        return bytes(await wire.ask(*words, within_s=60.0))

    await _publish(transport, len(LANES))
    await _read(transport, len(LANES))
    before, keys = await _used(ask), sorted(own_redis.list_keys())
    await _publish(transport, JOBS)
    full = await _used(ask)
    assert full > before + 20 * JOBS, "this would show what stays"
    await _read(transport, JOBS)
    await _is_back(own_redis, ask, before, keys)
    assert transport.told == []
    wire.close()
    await transport.close()


async def _is_back(server: LocalRedis, ask: Ask, before: int, keys: list[str]) -> None:
    assert sorted(server.list_keys()) == keys

    async def is_back() -> bool:
        await ask("MEMORY", "PURGE")
        return await _used(ask) < before + SLACK_BYTES

    await until(is_back, "the memory of so many jobs")


async def _publish(transport: Watched, count: int) -> None:
    for first in range(0, count, AT_ONCE):
        batch = [Announcement(LANES[n % 10], uuid4()) for n in range(first, min(first + AT_ONCE, count))]
        assert await transport._publisher.send(batch) == len(batch)


async def _read(transport: Watched, count: int) -> None:
    """By a worker that comes and goes."""
    consumer = transport.consumer("worker", wake=lambda: None)
    seen = 0
    while seen < count:
        entries = (await consumer.read(dict.fromkeys(LANES, AT_ONCE // 10))).entries
        consumer.ack(entries)
        seen += len(entries)
    await consumer.close()
    assert seen == count


async def _used(ask: Ask) -> int:
    """What data takes, without the buffers of connections and of the log."""
    said = dict(line.split(":") for line in (await ask("INFO", "memory")).decode().split() if ":" in line)
    return int(said["used_memory_dataset"])
