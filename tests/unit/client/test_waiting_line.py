"""The line before a full queue: one looks, the others are called; nobody is forgotten and nobody leaves a hole."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast.client.waiting_line import WaitingLine, WaitingLines
from holdfast.core.errors import NotOpen
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Hint

PATIENCE_S = 30.0
NEVER_S = 3600.0


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), PATIENCE_S))

    return run


class Gate:
    """A queue with room for so many, and a note of everyone who tried; time stands still unless a try takes some."""

    def __init__(self, *, room: int = 0) -> None:
        self.clock = ManualClock()
        self.line = WaitingLine(self.clock)
        self.room = room
        self.tried: list[str] = []
        self._changed = asyncio.Event()

    def producer(self, name: str, *, wait_s: float = NEVER_S, takes_s: float = 0.0) -> asyncio.Task[str | None]:
        async def attempt() -> str:
            self.tried.append(name)
            self._changed.set()
            self.clock.advance(takes_s)
            if not self.room:
                return "refused"
            self.room -= 1
            return name

        waiting = self.line.wait(attempt, refused=lambda answer: answer == "refused", wait_s=wait_s)
        return asyncio.create_task(waiting, name=name)

    async def tries(self, count: int) -> list[str]:
        """Wait until there were so many."""
        while len(self.tried) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.tried[:count]


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.client.waiting_line._LOOK_AGAIN_S", 0.005)


@pytest.fixture
def never_look(monkeypatch: pytest.MonkeyPatch, look_often: None) -> None:
    """Only calls count."""
    monkeypatch.setattr("holdfast.client.waiting_line._LOOK_AGAIN_S", NEVER_S)


async def dismiss(*producers: asyncio.Task[str | None]) -> None:
    for each in producers:
        each.cancel()
    await asyncio.gather(*producers, return_exceptions=True)


async def come_to_rest() -> None:
    """Every task runs until it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)


@on_a_loop
async def test_the_first_looks_again_and_again_and_the_others_do_not() -> None:
    gate = Gate()
    producers = [gate.producer(name) for name in "abc"]
    assert await gate.tries(5) == ["a"] * 5
    await dismiss(*producers)


@on_a_loop
async def test_as_soon_as_there_is_room_all_get_in_in_their_order() -> None:
    gate = Gate()
    producers = [gate.producer(name) for name in "abcdefg"]
    await gate.tries(1)
    gate.room = len(producers)
    assert await asyncio.gather(*producers) == list("abcdefg")
    assert [name for name in gate.tried if name != "a"] == list("bcdefg")


@pytest.mark.usefixtures("never_look")
@on_a_loop
async def test_whoever_gets_in_calls_the_next_two() -> None:
    gate = Gate(room=1)
    producers = [gate.producer(name) for name in "abcd"]
    await come_to_rest()
    gate.line.call()
    assert await producers[0] == "a"
    await come_to_rest()
    assert gate.tried == ["a", "b", "c"]
    await dismiss(*producers)


@pytest.mark.usefixtures("never_look")
@on_a_loop
async def test_a_call_lets_one_try_and_no_more_when_it_is_refused() -> None:
    gate = Gate()
    producers = [gate.producer(name) for name in "abc"]
    await come_to_rest()
    for count in (1, 2, 3):
        gate.line.call()
        await come_to_rest()
        assert gate.tried == ["a"] * count, "refused, it is the first again"
    await dismiss(*producers)


@pytest.mark.usefixtures("never_look")
@on_a_loop
async def test_of_several_that_were_called_the_refused_go_back_before_the_others() -> None:
    gate = Gate(room=1)
    producers = [gate.producer(name) for name in "abcde"]
    await come_to_rest()
    gate.line.call()
    await come_to_rest()
    assert gate.tried == ["a", "b", "c"]
    gate.room = 4
    gate.line.call()
    await asyncio.gather(*producers)
    assert set(gate.tried[3:5]) == {"b", "c"}
    assert gate.tried[5:] == ["d", "e"]


@pytest.mark.parametrize("leaver", [0, 1, 2])
@on_a_loop
async def test_a_cancelled_waiter_leaves_no_hole(leaver: int) -> None:
    gate = Gate()
    producers = [gate.producer(name) for name in "abcd"]
    await gate.tries(1)
    gone = producers.pop(leaver)
    await dismiss(gone)
    gate.room = 3
    assert await asyncio.gather(*producers) == [name for name in "abcd" if name != gone.get_name()]


@on_a_loop
async def test_when_the_first_leaves_the_next_looks() -> None:
    gate = Gate()
    first, second, third = (gate.producer(name) for name in "abc")
    await gate.tries(2)
    await dismiss(first)
    before = len(gate.tried)
    assert set((await gate.tries(before + 3))[before:]) == {"b"}
    await dismiss(second, third)


@pytest.mark.usefixtures("never_look")
@on_a_loop
async def test_a_place_that_has_gone_is_not_called() -> None:
    gate = Gate(room=1)
    first, second, third = (gate.producer(name) for name in "abc")
    await come_to_rest()
    await dismiss(first, second)
    gate.line.call()
    assert await third == "c"
    assert gate.tried == ["c"]


@pytest.mark.usefixtures("never_look")
@on_a_loop
async def test_one_that_is_cancelled_after_it_was_called_does_not_take_the_call_with_it() -> None:
    gate = Gate(room=2)
    producers = [gate.producer(name) for name in "abc"]
    await come_to_rest()
    gate.line.call(2)
    producers[0].cancel()
    assert await producers[1] == "b"
    assert await producers[2] == "c"
    await dismiss(producers[0])


@on_a_loop
async def test_at_the_deadline_there_is_no_answer() -> None:
    gate = Gate()
    assert await gate.producer("a", wait_s=10, takes_s=4) is None
    assert gate.tried == ["a"] * 3, "at 0 s, 4 s and 8 s"


@on_a_loop
async def test_one_that_waits_behind_others_hears_at_its_own_deadline() -> None:
    gate = Gate()
    first = gate.producer("a")
    await gate.tries(1)
    second = gate.producer("b", wait_s=0.01)
    await gate.tries(3)
    gate.clock.advance(0.01)
    assert await second is None
    assert set(gate.tried) == {"a"}
    await dismiss(first)


@on_a_loop
async def test_no_time_to_wait_is_no_try() -> None:
    gate = Gate(room=1)
    assert await gate.producer("a", wait_s=0) is None
    assert gate.tried == []


@on_a_loop
async def test_an_attempt_that_fails_is_its_own_trouble() -> None:
    gate = Gate()

    async def fail() -> str:
        raise OSError("away")

    first = asyncio.create_task(gate.line.wait(fail, refused=lambda _: True, wait_s=NEVER_S))
    second = gate.producer("b")
    with pytest.raises(OSError, match="away"):
        await first
    gate.room = 1
    assert await second == "b"


class Station:
    """Where hints come from, and how many listen."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[Hint], None]] = []

    def subscribe(self, callback: Callable[[Hint], None]) -> Callable[[], None]:
        self.listeners.append(callback)
        return lambda: self.listeners.remove(callback)


@pytest.mark.usefixtures("never_look")
@on_a_loop
async def test_hints_are_listened_to_while_anybody_waits_and_not_longer() -> None:
    station, full = Station(), {"a", "b"}
    lines = WaitingLines(ManualClock(), subscribe=station.subscribe)

    async def wait(queue: str) -> str | None:
        async def attempt() -> str:
            return "refused" if queue in full else queue

        return await lines.wait(queue, attempt, refused=lambda answer: answer == "refused", wait_s=NEVER_S)

    assert station.listeners == []
    waiting = [asyncio.create_task(wait(queue)) for queue in "ab"]
    await come_to_rest()
    [listener] = station.listeners
    for queue, task in zip("ab", waiting, strict=True):
        full.discard(queue)
        listener(Hint.READY)
        await come_to_rest()
        assert not task.done(), "that is about something else"
        listener(Hint.OPENED)
        assert await task == queue
    assert station.listeners == []


@on_a_loop
async def test_who_waits_when_all_lines_close_hears_it_and_nobody_listens_any_more() -> None:
    station = Station()
    lines = WaitingLines(ManualClock(), subscribe=station.subscribe)

    async def attempt() -> None:
        return None

    waiting = asyncio.create_task(lines.wait("a", attempt, refused=lambda _: True, wait_s=NEVER_S))
    await come_to_rest()
    lines.close()
    with pytest.raises(NotOpen):
        await waiting
    assert station.listeners == []
