"""The lines before full queues: who stands in which, who looks, and who hears of the end."""

from __future__ import annotations

import asyncio

import pytest
from tests.campaign.child import until as until_true
from tests.integration.scene import PATIENCE_S, Heard, scene

from holdfast import Holdfast, NotOpen, QueueFull
from holdfast.client.waiting_line import WaitingLine
from holdfast.runtime.clock import ManualClock, SystemClock
from holdfast.telemetry.events import QueueOpened

HOUR_S = 3600.0


class Full:
    """An app with a task and queues that hold one job each."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.hf = Holdfast(":memory:", clock=clock)

        @self.hf.task(name="work")
        async def work() -> None: ...

        self.work = work

    async def fill(self, *queues: str) -> None:
        for queue in queues:
            await self.hf.queues.set_watermarks(queue, high=1, low=0)
            await self.work.options(queue=queue).enqueue()

    async def open(self, queue: str) -> None:
        await self.hf.queues.set_watermarks(queue, high=1000, low=500)

    async def in_line(self, queue: str, count: int) -> None:
        lines = self.hf._open_client()._enqueuer._lines._lines

        def is_there() -> bool:
            return queue in lines and len(lines[queue]._resting) == count

        await until_true(is_there, within_s=PATIENCE_S, what=f"{count} in line before {queue}")


async def _full() -> bool:
    return False


async def _open() -> bool:
    return True


def _stand(line: WaitingLine, attempt: object, wait_s: float) -> asyncio.Task[bool | None]:
    return asyncio.create_task(line.wait(attempt, refused=lambda let_in: not let_in, wait_s=wait_s))  # type: ignore[arg-type]


@scene
async def test_whoever_waits_for_two_queues_does_not_block_the_line_of_one() -> None:
    """It stood first in the line of an open queue, refused by another: nobody behind it got in."""
    full = Full()
    async with full.hf:
        await full.fill("a", "b")
        both = [full.work.options(queue=queue, wait=HOUR_S).request() for queue in "ab"]
        many = asyncio.create_task(full.hf.enqueue_many(both))
        await full.in_line("a", 1)
        behind = [asyncio.create_task(full.work.options(queue="a", wait=HOUR_S).enqueue()) for _ in range(5)]
        await full.in_line("a", 6)
        await full.open("a")
        await asyncio.wait_for(asyncio.gather(*behind), PATIENCE_S)
        assert not many.done()
        await full.open("b")
        assert len(await asyncio.wait_for(many, PATIENCE_S)) == 2


@scene
async def test_the_error_names_the_queue_that_is_full_at_the_end() -> None:
    """It named the queue that had been full at the beginning, which was open by then."""
    clock = ManualClock()
    full = Full(clock)
    async with full.hf:
        heard = Heard(full.hf, QueueOpened)
        await full.fill("a", "b")
        both = [full.work.options(queue=queue, wait=HOUR_S).request() for queue in "ab"]
        many = asyncio.create_task(full.hf.enqueue_many(both))
        await full.in_line("a", 1)
        await full.open("a")
        assert (await heard.next(QueueOpened)).queue == "a"
        clock.advance(2 * HOUR_S)
        with pytest.raises(QueueFull) as refusal:
            await asyncio.wait_for(many, PATIENCE_S)
        assert refusal.value.queue == "b"


@scene
async def test_all_who_wait_hear_at_once_that_the_app_is_closed() -> None:
    """Only the first of the line looked, so the others heard of the end one after the other, or never."""
    full = Full()
    await full.hf.open()
    await full.fill("a")
    waiting = [asyncio.create_task(full.work.options(queue="a", wait=HOUR_S).enqueue()) for _ in range(50)]
    await full.in_line("a", 50)
    await full.hf.close()
    answers = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), PATIENCE_S / 3)
    assert {type(answer) for answer in answers} == {NotOpen}


@scene
async def test_leavers_do_not_keep_the_first_from_looking() -> None:
    """Whoever left the line stirred the first, and its quarter of a second began anew: it never looked."""
    line = WaitingLine(SystemClock())
    first = _stand(line, _open, HOUR_S)
    async with asyncio.timeout(PATIENCE_S / 3):
        while not first.done():
            await _stand(line, _open, 0.05)
    assert first.result()


@scene
async def test_the_places_of_leavers_are_not_kept() -> None:
    """Behind a patient first one, the places of all who had given up stayed in the line's memory."""
    line = WaitingLine(SystemClock())
    first = _stand(line, _full, HOUR_S)
    leavers = [_stand(line, _full, 0.01) for _ in range(200)]
    cancelled = [_stand(line, _full, HOUR_S) for _ in range(200)]
    await asyncio.gather(*leavers)
    for each in cancelled:
        each.cancel()
    await asyncio.wait(cancelled)
    assert all(each.result() is None for each in leavers)
    assert len(line._resting) <= 1, "the first, unless it is just looking"
    first.cancel()
    await asyncio.wait({first})
    assert len(line._resting) == 0
