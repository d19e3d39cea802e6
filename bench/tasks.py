"""The app that the measurements use; worker processes import it, too."""

from __future__ import annotations

import os
import time

from holdfast import Holdfast, Limit

hf = Holdfast(os.environ.get("BENCH_URL", ":memory:"), high_watermark=10_000_000, low_watermark=1_000)

#: Monotonic times are comparable between processes on one machine.
started: dict[int, float] = {}


@hf.task
async def noop(number: int) -> None:
    """Does nothing."""


@hf.task(concurrency=Limit(1, key=lambda number: number))
async def distinct(number: int) -> None:
    """The same under a limit, each with a key of its own."""


@hf.task(concurrency=Limit(100, key=lambda number: number % 1000))
async def shared(number: int) -> None:
    """The same under a limit of a hundred for each of a thousand keys."""


@hf.task(concurrency=Limit(5000, key=lambda number: number % 3))
async def hot(number: int) -> None:
    """The same under a limit of five thousand for each of three keys: some slots of each are taken all the time."""


@hf.task
async def note_start(number: int, path: str | None = None) -> None:
    """Says when it started: in memory, or in a file for another process."""
    now = time.monotonic()
    if path is None:
        started[number] = now
    else:
        with open(path, "a") as file:  # noqa: PTH123  # the shortest way is the point here
            file.write(f"{number} {now}\n")


if __name__ == "__main__":
    hf.run_worker()


@hf.task
async def say_when() -> float:
    """When it was run; monotonic times are comparable between processes on one machine."""
    return time.monotonic()
