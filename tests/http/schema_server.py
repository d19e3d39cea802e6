"""`python -m tests.http.schema_server`: an API for schemathesis; prints its address and a key, ends with its input."""

from __future__ import annotations

import asyncio
import sys

from tests.http.served import listening, served

from holdfast.http import HttpLimits


async def main() -> None:
    """Serve until whoever started us closes our input."""
    limits = HttpLimits(rate="100000/s", failed_rate="100000/s", wait_s=0.1, stream_s=0.1)
    async with served(limits=limits) as api, listening(api) as (address, _), api.hf.worker():
        await api.hf.enqueue("shop.mail", "bob")
        dead = await api.hf.enqueue("shop.charge", "ada")
        async for _ in dead.events():
            pass
        print(address, await api.key(), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
