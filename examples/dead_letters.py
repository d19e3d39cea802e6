"""What becomes of jobs that give up: look at them, mend one, run them again, drop the rest."""

import asyncio

from holdfast import Holdfast, JobFailed, JobHandle, PermanentError, RetryPolicy

hf = Holdfast(":memory:")
bank = {"open": False}


@hf.task(retry=RetryPolicy(max_attempts=2, base=0.01))
async def charge(customer: str, cents: int) -> str:
    if cents <= 0:
        raise PermanentError(f"{cents} cents cannot be charged")  # no second attempt would help
    if not bank["open"]:
        raise ConnectionError("the bank does not answer")  # worth a second attempt, and then given up
    return f"{customer} paid {cents} cents"


async def show(jobs: list[JobHandle[str]]) -> None:
    for job in jobs:
        try:
            print("  result:", await job.result(timeout=10))
        except JobFailed as failure:
            print("  dead:", failure.error_message)


async def main() -> None:
    async with hf, hf.worker():
        jobs = [await charge.enqueue("Ada", 700), await charge.enqueue("Bob", -700), await charge.enqueue("Cleo", 0)]
        print("Three charges:")
        await show(jobs)

        print("Among the dead letters, newest first:")
        for letter in await hf.dead.list():
            print(f"  {letter.args} after {letter.attempt} attempts: {letter.reason}")

        bank["open"] = True
        replayed = await hf.dead.replay(error_type="ConnectionError")
        print(f"The bank is open again; replayed by the type of its error: {replayed}")

        await hf.dead.edit(jobs[1].id, "Bob", 700)
        await hf.dead.replay(jobs[1].id)
        print("Bob's amount is mended and replayed; nobody can mend Cleo's, purged:", await hf.dead.purge(jobs[2].id))
        await show(jobs[:2])

        history = (await jobs[1].info()).attempts
        print("What Bob's job remembers:", [(run.cause, run.error.message) for run in history if run.error])


if __name__ == "__main__":
    asyncio.run(main())
