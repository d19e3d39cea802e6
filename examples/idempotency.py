"""One idempotency key, one job: however often and by however many callers the same request is made."""

import asyncio

from holdfast import Holdfast, IdempotencyConflict

hf = Holdfast(":memory:")
shipped: list[str] = []


@hf.task
async def ship(order: str) -> int:
    shipped.append(order)
    return len(shipped)


async def main() -> None:
    async with hf, hf.worker():
        once = ship.options(key="order-17")

        jobs = await asyncio.gather(*(once.enqueue("17") for _ in range(20)))
        print("20 callers,", len({job.id for job in jobs}), "job, result", await jobs[0].result(timeout=10))

        again = await once.enqueue("17")  # the job has ended, its key is still remembered
        print("asked again later: the same job:", again.id == jobs[0].id, "and its result:", await again.result())

        try:
            await once.enqueue("18")
        except IdempotencyConflict as conflict:
            print("another request under that key is refused:", conflict.key)

        # Keys belong to a tenant: the same one of another tenant is another key.
        other = await once.options(tenant="acme").enqueue("18")
        print("another tenant's key is another key, result", await other.result(timeout=10))
        print("shipped:", shipped)


if __name__ == "__main__":
    asyncio.run(main())
