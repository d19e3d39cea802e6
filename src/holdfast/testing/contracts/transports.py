"""What every transport keeps to: it may lose or repeat announcements, but it never invents, blocks or fails anybody.

A check gets two transports on the same place, as two processes have them. One that is never up has nothing to show for
most of them: `publish` has said so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple
from uuid import uuid4

from holdfast.core.announcement import Announcement
from holdfast.core.fairness import Lane
from holdfast.transports.base import Consumer, Entry, Transport

PATIENCE_S = 10.0
URGENT, CALM, ELSEWHERE = Lane("mail", 9), Lane("mail", 5), Lane("reports", 5)
LANES = (URGENT, CALM, ELSEWHERE)


class Two(NamedTuple):
    """Of the same installation, in two processes."""

    here: Transport
    there: Transport


TransportCheck = Callable[[Two], Awaitable[None]]


def some(lane: Lane, count: int) -> list[Announcement]:
    return [Announcement(lane, uuid4()) for _ in range(count)]


async def gathered(consumer: Consumer, wanted: int, *, quota: int = 100) -> list[Entry]:
    """Read until so many have come; announcements take a moment."""
    found: list[Entry] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < wanted:
            found += (await consumer.read(dict.fromkeys(LANES, quota))).entries
            await asyncio.sleep(0.002)
    return found


async def emptied(consumers: Collection[Consumer]) -> list[Entry]:
    """What can still be read, and is acknowledged."""
    found: list[Entry] = []
    for consumer in consumers:
        while entries := (await consumer.read(dict.fromkeys(LANES, 100))).entries:
            consumer.ack(entries)
            found += entries
    return found


def _ids(entries: Collection[Entry | Announcement]) -> list[object]:
    return [(each.lane, each.job_id) for each in entries]


async def check_what_is_announced_is_read_in_order_by_one(two: Two) -> None:
    first, second = (each.consumer(f"worker-{n}", wake=lambda: None) for n, each in enumerate(two))
    said = [*some(URGENT, 20), *some(CALM, 20)]
    if two.there.publish(said):
        entries = await gathered(first, 40)
        assert _ids(entries) == _ids(said)
        assert await emptied([second]) == []
    await first.close()
    await second.close()


async def check_a_lane_gives_no_more_than_its_quota(two: Two) -> None:
    consumer = two.here.consumer("worker", wake=lambda: None)
    said = some(URGENT, 20)
    if two.there.publish([*said, *some(CALM, 20)]):
        await gathered(consumer, 10, quota=5)
        reading = await consumer.read({URGENT: 3, CALM: 0})
        assert _ids(reading.entries) == _ids(said[5:8])
        assert {URGENT, CALM} <= reading.more, "lanes that were asked for little, or nothing, have more"
    await consumer.close()


async def check_what_is_acknowledged_never_comes_again(two: Two) -> None:
    consumer = two.here.consumer("worker", wake=lambda: None)
    if two.there.publish(some(URGENT, 50)):
        consumer.ack(await gathered(consumer, 50))
    await consumer.close()
    another = two.there.consumer("another", wake=lambda: None)
    assert await emptied([another]) == []
    await another.close()


async def check_what_a_consumer_leaves_is_read_by_another(two: Two) -> None:
    consumer, another = two.here.consumer("worker", wake=lambda: None), two.there.consumer("other", wake=lambda: None)
    said = some(URGENT, 10)
    if two.there.publish(said):
        entries = await gathered(consumer, 10)
        consumer.ack(entries[:4])
        await consumer.close()
        assert sorted(_ids(await gathered(another, 6)), key=str) == sorted(_ids(said[4:]), key=str)
    await consumer.close()
    await another.close()


async def check_what_a_dead_consumer_had_read_comes_back(two: Two) -> None:
    """The transports of the suite are told to take a consumer for dead at once."""
    dead, another = two.here.consumer("dead", wake=lambda: None), two.there.consumer("other", wake=lambda: None)
    said = some(URGENT, 10)
    if two.there.publish(said):
        await gathered(dead, 10)
        recovered = 0
        async with asyncio.timeout(PATIENCE_S):
            while recovered < 10:
                recovered += (await two.there.tend([lane.queue for lane in LANES])).recovered
        assert sorted(_ids(await gathered(another, 10)), key=str) == sorted(_ids(said), key=str)
    await another.close()
    await dead.close()


async def check_a_wake_up_names_no_job(two: Two) -> None:
    consumer = two.here.consumer("worker", wake=lambda: None)
    if two.there.publish([Announcement(CALM, None)] * 3):
        entries = await gathered(consumer, 1)
        assert {(entry.lane, entry.job_id) for entry in entries} == {(CALM, None)}
    await consumer.close()


async def check_whoever_listens_is_woken(two: Two) -> None:
    woken = asyncio.Event()
    consumer = two.here.consumer("worker", wake=woken.set)
    arrived: list[Entry] = []
    consumer.listen(LANES, most=5)
    said = some(CALM, 1)
    if two.there.publish(said):
        async with asyncio.timeout(PATIENCE_S):
            while not (arrived := consumer.arrived()):
                await woken.wait()
                woken.clear()
        assert _ids(arrived) == _ids(said)
        consumer.ack(arrived)
    await consumer.close()


async def check_what_is_handed_on_is_read_by_somebody(two: Two) -> None:
    consumer = two.here.consumer("worker", wake=lambda: None)
    another = two.there.consumer("another", wake=lambda: None)
    said = some(CALM, 3)
    if two.there.publish(said):
        consumer.hand_on(await gathered(consumer, 3))
        assert sorted(_ids(await gathered(another, 3)), key=str) == sorted(_ids(said), key=str)
    await consumer.close()
    await another.close()


async def check_a_new_one_is_filled_once(two: Two) -> None:
    consumer = two.here.consumer("worker", wake=lambda: None)
    said = some(CALM, 3)
    if two.here.is_up:
        assert (await two.here.tend(["mail"])).unfilled == ("mail",)
        assert (await two.there.tend(["mail"])).unfilled == ("mail",), "nobody has filled it yet"
        await two.there.fill("mail", said)
        await two.here.fill("mail", [*said, *(more := some(CALM, 2))])
        assert _ids(await gathered(consumer, 5)) == _ids([*said, *more]), "each once"
        assert (await consumer.read(dict.fromkeys(LANES, 100))).entries == []
    assert (await two.here.tend(["mail"])).unfilled == ()
    assert (await two.there.tend(["mail"])).unfilled == ()
    await consumer.close()


async def check_news_of_settings_is_heard_by_who_reads_and_by_who_waits(two: Two) -> None:
    heard = [asyncio.Event(), asyncio.Event()]
    reader, waiter = (two.here.consumer(f"worker-{n}", wake=lambda: None, on_news=heard[n].set) for n in range(2))
    await gathered(reader, 0)
    await waiter.read({CALM: 1})
    if two.there.is_up:
        for event in heard:
            event.clear()
        waiter.listen([CALM], most=1)
        two.there.tell_news(CALM.queue)
        async with asyncio.timeout(PATIENCE_S):
            while not heard[1].is_set():
                waiter.ack(waiter.arrived())
                await asyncio.sleep(0.002)
            while not heard[0].is_set():
                await reader.read({CALM: 0})
        heard[0].clear()
        await reader.read({CALM: 0})
        assert not heard[0].is_set(), "once for each change"
    await reader.close()
    await waiter.close()


async def check_what_is_closed_takes_nothing_and_fails_nobody(two: Two) -> None:
    consumer = two.here.consumer("worker", wake=lambda: None)
    await consumer.close()
    await consumer.close()
    await two.here.close()
    await two.here.close()
    assert not two.here.is_up
    assert not two.here.publish(some(CALM, 1))
    assert (await consumer.read({CALM: 1})).entries == []
    consumer.ack([Entry(CALM, b"0-1", None)])
    consumer.listen(LANES, most=1)
    assert consumer.arrived() == []


#: Every check by its name.
TRANSPORT_CHECKS: dict[str, TransportCheck] = {
    name.removeprefix("check_"): check for name, check in list(vars().items()) if name.startswith("check_")
}
