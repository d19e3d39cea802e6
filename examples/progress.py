"""A task that tells how far it has come, and somebody who watches it."""

import asyncio

from holdfast import Holdfast, current_job

hf = Holdfast(":memory:")


@hf.task
async def import_rows(rows: int) -> int:
    job = current_job()
    for done in range(rows):
        await job.progress(done, rows, stage="reading" if done < rows / 2 else "writing")
        await asyncio.sleep(0.05)  # stands for the work on one row
    await job.progress(rows, rows, stage="done")
    return rows


async def main() -> None:
    async with hf, hf.worker():
        job = await import_rows.enqueue(8)
        async for info in job.events():  # each change that can be seen, until the job has ended
            if info.progress is None or info.progress.fraction is None:
                print(f"{info.state:<10}")
            else:
                print(f"{info.state:<10} {info.progress.fraction:4.0%}  {info.stage}")
        print("result:", await job.result())


if __name__ == "__main__":
    asyncio.run(main())
