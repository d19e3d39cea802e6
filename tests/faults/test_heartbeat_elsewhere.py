"""A heartbeat comes from a thread with an event loop of its own: it may use no connection of anybody else's."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.campaign.where import Where
from tests.faults.trial import PATIENCE_S

from holdfast.testing.contracts.arrange import LONG_S, enlist


def test_a_renewal_that_tells_of_a_blocked_loop_leaves_the_other_connections_alone(postgres_place: Path) -> None:
    async def run() -> None:
        store = Where.of(postgres_place).store()
        await store.open()
        try:
            worker = await enlist(store)

            async def renew() -> None:
                async with asyncio.timeout(PATIENCE_S / 3):
                    await store.renew_worker(worker, lease_s=LONG_S, held_for_s=LONG_S, lag_s=0.7)

            beating = asyncio.gather(*(asyncio.to_thread(asyncio.run, renew()) for _ in range(5)))
            while not beating.done():
                await store.now()  # by a connection of this loop
            await beating
            [seen] = await store.list_workers()
            assert seen.lag_s == 0.7
        finally:
            await store.close()

    asyncio.run(run())
