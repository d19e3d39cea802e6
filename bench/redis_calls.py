"""What the transport alone costs a client per job: to announce, and to read and acknowledge, in batches."""

from __future__ import annotations

import asyncio
import secrets
import time
from uuid import uuid4

from holdfast.core.announcement import Announcement
from holdfast.core.fairness import Lane
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.loop import run_loop
from holdfast.telemetry.hub import Telemetry
from holdfast.transports.redis_streams import RedisStreams, parse_address

_LANES = [Lane("bench", priority) for priority in (9, 7, 5)]
_ROUNDS = 30


def per_job(url: str, batch: int) -> tuple[float, float]:
    """Microseconds of this process's CPU per job: to publish it, and to fetch and acknowledge it."""
    found: list[tuple[float, float]] = []
    run_loop(_measure(url, batch, found))
    return found[0]


async def _measure(url: str, batch: int, found: list[tuple[float, float]]) -> None:
    prefix = f"holdfast-bench:{secrets.token_hex(4)}"
    transport = RedisStreams(parse_address(url), prefix=prefix, clock=SystemClock(), telemetry=Telemetry())
    await transport.open()
    consumer = transport.consumer("bench", wake=lambda: None)
    publishing_s = fetching_s = 0.0
    for _ in range(_ROUNDS):
        said = [Announcement(_LANES[n % 3], uuid4()) for n in range(batch)]
        began = time.process_time()
        transport.publish(said)
        while transport._publisher._task is not None:
            await asyncio.sleep(0.001)
        publishing_s += time.process_time() - began
        began, left = time.process_time(), batch
        while left:
            entries = (await consumer.read(dict.fromkeys(_LANES, 67))).entries  # 200 at once, as a worker would
            consumer.ack(entries)
            left -= len(entries)
        await consumer.read({})
        fetching_s += time.process_time() - began
    await consumer.close()
    await transport.close()
    found.append((1e6 * publishing_s / batch / _ROUNDS, 1e6 * fetching_s / batch / _ROUNDS))
