"""Counting free slots, and waiting for them."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast.worker.slots import Slots

QUEUES = ("mail", "bank", "other")


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


def test_a_bound_that_comes_while_jobs_run_counts_them() -> None:
    slots = Slots(5)
    for queue in ("mail", "other", "mail", "mail"):
        slots.take(queue)
    slots.set_caps({"mail": 2}, ["mail", "other", "mail", "mail"])
    assert slots.rooms == {"mail": 0}, "more run than may begin"
    slots.give_back("mail")
    assert slots.rooms == {"mail": 0}
    slots.give_back("mail")
    assert slots.rooms == {"mail": 1}


def test_a_bound_that_is_raised_or_lifted_tells_that_there_is_room() -> None:
    slots, told = Slots(9, {"mail": 1, "bank": 1}), list[dict[str, int]]()
    slots.on_room = lambda: told.append(slots.rooms)
    running = ["mail", "bank"]
    for queue in running:
        slots.take(queue)
    slots.set_caps({"mail": 1, "bank": 1, "other": 1}, running)
    assert not told, "there is no more room than before"
    slots.set_caps({"mail": 2, "bank": 1, "other": 1}, running)
    assert told.pop() == {"mail": 1, "bank": 0, "other": 1}
    slots.set_caps({"mail": 1}, running)
    assert told.pop() == {"mail": 0}, "the bank's is lifted"
    slots.set_caps({}, running)
    assert told.pop() == {}


steps = st.lists(
    st.tuples(st.just("take"), st.sampled_from(QUEUES))
    | st.tuples(st.just("give back"), st.integers(0, 9))
    | st.tuples(st.just("bound"), st.dictionaries(st.sampled_from(QUEUES), st.integers(1, 4))),
    max_size=40,
)


@given(steps)
def test_rooms_are_right_whatever_begins_ends_and_is_bounded(steps: list[tuple[str, object]]) -> None:
    slots, running, rooms_told = Slots(6), list[str](), list[bool]()
    slots.on_room = lambda: rooms_told.append(True)
    for step, what in steps:
        full = {queue for queue, room in slots.rooms.items() if not room}
        rooms_told.clear()
        if step == "take" and slots.free:
            assert isinstance(what, str)
            running.append(what)
            slots.take(what)
        elif step == "give back" and running:
            assert isinstance(what, int)
            slots.give_back(running.pop(what % len(running)))
        elif step == "bound":
            assert isinstance(what, dict)
            slots.set_caps(what, list(running))
        count = Counter(running)
        assert slots.taken == len(running)
        assert slots.rooms == {queue: max(0, cap - count[queue]) for queue, cap in slots.caps.items()}
        assert bool(rooms_told) == any(slots.rooms.get(queue) != 0 for queue in full)
