"""Counting free slots, and waiting for them."""

from __future__ import annotations

import asyncio

from holdfast.worker.slots import Slots


def taken(slots: Slots, count: int) -> Slots:
    for _ in range(count):
        slots.take()
    return slots


async def is_waiting(waiter: asyncio.Task[None]) -> bool:
    await asyncio.sleep(0)
    return not waiter.done()


def test_a_slot_is_free_until_it_is_taken_and_again_when_it_is_given_back() -> None:
    slots = taken(Slots(3), 2)
    assert (slots.free, slots.taken) == (1, 2)
    slots.give_back()
    assert (slots.free, slots.taken) == (2, 1)


def test_a_wait_ends_when_enough_are_free() -> None:
    async def main() -> None:
        slots = taken(Slots(4), 4)
        waiter = asyncio.create_task(slots.wait(2))
        assert await is_waiting(waiter)
        slots.give_back()
        assert await is_waiting(waiter)
        slots.give_back()
        await waiter

    asyncio.run(main())


def test_a_wait_for_what_is_free_does_not_wait() -> None:
    asyncio.run(Slots(2).wait(2))


def test_a_wait_for_more_than_there_are_ends_when_all_are_free() -> None:
    async def main() -> None:
        slots = taken(Slots(1), 1)
        waiter = asyncio.create_task(slots.wait(5))
        assert await is_waiting(waiter)
        slots.give_back()
        await waiter

    asyncio.run(main())


def test_a_wait_ends_at_its_time_or_when_it_is_interrupted() -> None:
    async def main() -> None:
        slots = taken(Slots(1), 1)
        await slots.wait(1, at_most_s=0.001)
        waiter = asyncio.create_task(slots.wait(1))
        assert await is_waiting(waiter)
        slots.interrupt()
        slots.interrupt()
        await waiter
        slots.give_back()
        assert slots.free == 1

    asyncio.run(main())


def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    async def main() -> None:
        slots = taken(Slots(1), 1)
        waiter = asyncio.create_task(slots.wait(1))
        assert await is_waiting(waiter)
        waiter.cancel()
        await asyncio.wait({waiter})
        slots.give_back()
        slots.interrupt()
        await slots.wait(1)

    asyncio.run(main())


def test_a_bounded_queue_tells_when_it_has_room_again() -> None:
    slots, told = Slots(5, {"mail": 2}), []
    slots.on_room = lambda: told.append(slots.rooms["mail"])
    for queue in ("mail", "other", "mail"):
        slots.take(queue)
    assert (slots.rooms, slots.free) == ({"mail": 0}, 2)
    slots.give_back("other")
    assert not told
    slots.give_back("mail")
    slots.give_back("mail")
    assert told == [1]
    assert (slots.rooms, slots.free) == ({"mail": 2}, 5)
