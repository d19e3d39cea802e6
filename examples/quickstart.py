"""The example of the README: one task, one worker in the same process, one job."""

import asyncio

from holdfast import Holdfast

hf = Holdfast("sqlite:///holdfast.db")


@hf.task
async def add(a: int, b: int) -> int:
    return a + b


async def main() -> None:
    async with hf, hf.worker():
        job = await add.enqueue(2, b=3)
        print(await job.result(timeout=10))


if __name__ == "__main__":
    asyncio.run(main())
