"""What was meant for one job and comes at the moment of its end never hits the next one in its thread or process."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.integration.scene import PATIENCE_S, scene
from tests.isolation import app
from tests.isolation.conftest import heard_by_nobody

from holdfast import Holdfast, JobCancelled, JobFailed, JobHandle, RetryPolicy, SoftTimeout, current_job
from holdfast.core.state import State

__all__ = ["heard_by_nobody"]

ROUNDS = 120
SOFT_S = 0.004


def be_busy(for_s: float) -> None:
    """A function of its own: CPython 3.12 and 3.13 leave the jump at the end of such a loop out of a `try` around it.

    That jump is where a strike arrives (`dis` shows it, and KeyboardInterrupt has the same hole).
    """
    until_s = time.monotonic() + for_s
    while time.monotonic() < until_s:
        pass


@pytest.fixture
def _quick_to_give_way() -> Iterator[None]:
    """A busy thread gives way to the one that strikes, every 5 ms by default: most runs here would be over by then."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0002)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_quick_to_give_way")
@scene
async def test_a_strike_that_comes_with_the_end_of_a_function_hits_nobody_else() -> None:
    """All in one thread, each other job about as long as until its strike, and some cancelled about then."""
    hf = Holdfast(":memory:", poll_s=0.05, threads=1, concurrency=4)
    seed = random.Random(6)

    @hf.task(name="racing", soft_timeout=SOFT_S, retry=RetryPolicy(max_attempts=1))
    def racing(for_s: float) -> str:
        try:
            be_busy(for_s)
        except SoftTimeout:
            return "struck"
        return "in time"

    @hf.task(name="innocent", retry=RetryPolicy(max_attempts=1))
    def innocent() -> str:
        be_busy(0.001)
        return "well" if current_job().task == "innocent" else "somebody else"

    async with hf, hf.worker():
        innocents: list[JobHandle[str]] = []
        endings: Counter[str] = Counter()
        for_s = SOFT_S
        for _ in range(ROUNDS):
            guilty = await racing.enqueue(for_s * seed.uniform(0.9, 1.1))
            innocents.append(await innocent.enqueue())
            if seed.random() < 0.3:
                await asyncio.sleep(for_s * seed.uniform(0.5, 1.5))
                await guilty.cancel()
            try:
                ending = await guilty.result(timeout=PATIENCE_S)
            except (JobFailed, JobCancelled) as error:  # struck outside of its own `try`, or cancelled
                ending = type(error).__name__
            endings[ending] += 1
            for_s *= 1.1 if ending == "in time" else 0.9  # ever closer to the moment of the strike
        for job in innocents:
            assert await job.result(timeout=PATIENCE_S) == "well"
            assert (await job.info()).attempts == ()
    assert min(endings["struck"], endings["in time"]) > ROUNDS // 10, f"it was close: {endings}"


@scene
async def test_a_cancellation_that_comes_with_the_end_of_an_isolated_run_hits_nobody_else() -> None:
    pause_s = 0.01
    async with app.hf, app.hf.worker(isolates=1):
        innocents: list[JobHandle[int]] = []
        states: list[State] = []
        for number in range(ROUNDS // 3):
            guilty = await app.nap.enqueue(0.005)
            innocents.append(await app.add.enqueue(number))
            await asyncio.sleep(pause_s)
            await guilty.cancel()
            with contextlib.suppress(JobCancelled):
                await guilty.result(timeout=PATIENCE_S)
            states.append((await guilty.info()).state)
            pause_s *= 1.3 if states[-1] is State.CANCELLED else 0.8  # ever closer to the moment of its end
        for number, job in enumerate(innocents):
            assert await job.result(timeout=PATIENCE_S) == number + 1
            assert (await job.info()).attempts == ()
    assert set(states) == {State.SUCCEEDED, State.CANCELLED}, "it was close"
