"""Announcements that come by themselves, one after the other, must not take the turns of lanes that nobody tells of."""

from __future__ import annotations

import asyncio

from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop, until

LOST = 1000
#: A lane that is believed empty is looked at once a second.
PATIENCE_S = 4.0
#: Shorter than the worker's own looks into the store: each time it is an arrival that wakes it.
APART_S = 0.1


@scene
async def test_a_lane_whose_announcement_was_lost_is_found_under_a_trickle_of_others(
    postgres_tables: PostgresSchema, redis_url: str
) -> None:
    """What came by itself was claimed by itself, and each time all other lanes that were due counted as asked."""
    here, producer = (Shop(postgres_tables, redis_url, poll_s=1.0) for _ in range(2))
    sold = 0
    loop = asyncio.get_running_loop()

    async def sell_for(seconds: float) -> None:
        nonlocal sold
        until_s = loop.time() + seconds
        while loop.time() < until_s and LOST not in here.ran:
            await until(lambda: _is_listening(here), "the worker to wait")
            await producer.enqueue(sold)
            sold += 1
            await here.until_ran(sold)
            await asyncio.sleep(APART_S)

    async with here.hf, producer.hf, here.hf.worker():
        await sell_for(PATIENCE_S / 2)  # every lane is believed empty, and Redis was told what there is
        dispatch = producer.hf._opened.dispatch
        assert dispatch.store is not None
        dispatch.store.announce_to(lambda announcements: True)  # taken, and never delivered
        await producer.enqueue(LOST, priority="low")
        dispatch.store.announce_to(dispatch.transport.publish)
        await sell_for(PATIENCE_S)
    assert LOST in here.ran, f"behind {sold} others in a worker that has room for all of them"


def _is_listening(here: Shop) -> bool:
    return any(ear._wanted for ear in here.ears())
