"""`isolate=True`: whatever a task does to its process, it does to nobody else; and its limit holds for all of it."""

import asyncio
import os
import re
import signal

from holdfast import Holdfast, JobFailed, RetryPolicy

hf = Holdfast(":memory:")
ONCE = RetryPolicy(max_attempts=1)


@hf.task(isolate=True)
async def where() -> int:
    return os.getpid()


@hf.task(isolate=True, timeout=0.5, retry=ONCE)
def match(text: str) -> bool:
    return re.fullmatch(r"(a+)+b", text) is not None  # takes years, and nothing else in its process runs meanwhile


@hf.task(isolate=True)
def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


async def main() -> None:
    async with hf, hf.worker():
        print("in another process:", await (await where.enqueue()).result(timeout=30) != os.getpid())
        slow, poison = await match.enqueue("a" * 60), await crash.enqueue()
        print("meanwhile the event loop is free:", await (await where.enqueue()).result(timeout=30) > 0)
        for job in (slow, poison):
            try:
                await job.result(timeout=30)
            except JobFailed as failure:
                print(failure.error_type, "-", failure.error_message)
        print(
            [(run.cause, run.error.message) for run in (await poison.info()).attempts if run.error][:1], "three times"
        )


if __name__ == "__main__":
    asyncio.run(main())
