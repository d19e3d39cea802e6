"""A queue that is full: producers wait for a while, then hear of it; nothing is dropped and nothing piles up."""

import asyncio

from holdfast import Holdfast, QueueFull

hf = Holdfast(":memory:")


@hf.task(queue="thumbnails")
async def make_thumbnail(number: int) -> int:
    await asyncio.sleep(0.001)
    return number


async def depth() -> int:
    [queue] = [queue for queue in await hf.queues.list() if queue.name == "thumbnails"]
    return queue.ready


async def main() -> None:
    async with hf:
        await hf.queues.set_watermarks("thumbnails", high=20, low=5)

        accepted = 0
        try:
            while True:  # no worker runs yet
                await make_thumbnail.options(wait=0).enqueue(accepted)
                accepted += 1
        except QueueFull as full:
            print(f"accepted {accepted}, then: full, try again in {full.retry_after:g} s")

        waiting = asyncio.create_task(make_thumbnail.options(wait=10).enqueue(accepted))
        async with hf.worker(concurrency=5):
            job = await waiting  # goes through once the queue has drained to its low watermark
            print("a producer that waited got through, result", await job.result(timeout=10))

            deepest = 0
            for number in range(200):  # a producer that is faster than the worker is slowed down to its pace
                await make_thumbnail.enqueue(number)
                deepest = max(deepest, await depth())
            print("200 more jobs accepted, the queue never held more than 20:", deepest <= 20)


if __name__ == "__main__":
    asyncio.run(main())
