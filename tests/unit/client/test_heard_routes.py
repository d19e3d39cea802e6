"""When a producer looks what operators say about where jobs go, and what it does without an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast.client import heard_routes
from holdfast.client.heard_routes import HeardRoutes
from holdfast.core.errors import StoreBroken, StoreUnavailable
from holdfast.core.routing import OPERATOR, Rule, parse_rule
from holdfast.runtime.clock import ManualClock
from holdfast.telemetry.events import Event
from holdfast.telemetry.flow_events import RouteUnheard
from holdfast.telemetry.hub import Telemetry

SLOW = (parse_rule("a.*", OPERATOR, queue="slow"),)
FAST = (parse_rule("a.*", OPERATOR, queue="fast"),)


class Desk:
    """A store that answers when it is told to, and a producer."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.questions: list[asyncio.Future[tuple[Rule, ...]]] = []
        self.asked = asyncio.Event()
        self.told: list[Event] = []
        telemetry = Telemetry()
        telemetry.attach(self.told.append)
        self.heard = HeardRoutes(self, clock=self.clock, telemetry=telemetry)  # type: ignore[arg-type]  # no more is asked

    async def routes(self) -> tuple[Rule, ...]:
        question: asyncio.Future[tuple[Rule, ...]] = asyncio.get_running_loop().create_future()
        self.questions.append(question)
        self.asked.set()
        return await question

    @property
    def is_due(self) -> bool:
        return self.clock.monotonic() >= self.heard.due_at

    @property
    def queues(self) -> list[object]:
        return [rule.route.queue for rule in self.heard.patterns.rules]

    async def begin(self) -> asyncio.Task[bool]:
        """Somebody looks, and the store has been asked."""
        self.asked.clear()
        task = asyncio.create_task(self.heard.look())
        await self.asked.wait()
        return task

    async def look(self, answer: tuple[Rule, ...] | Exception) -> bool:
        task = await self.begin()
        self.answer(answer)
        return await task

    def answer(self, answer: tuple[Rule, ...] | Exception) -> None:
        if isinstance(answer, Exception):
            self.questions[-1].set_exception(answer)
        else:
            self.questions[-1].set_result(answer)


def at_a_desk(play: Callable[[Desk], Coroutine[Any, Any, None]]) -> None:
    async def scenario() -> None:
        desk = Desk()
        await play(desk)
        await desk.heard.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_the_first_job_is_placed_after_a_look_and_others_only_when_that_is_a_second_old() -> None:
    async def play(desk: Desk) -> None:
        assert desk.is_due
        assert await desk.look(SLOW)
        assert desk.queues == ["slow"]
        desk.clock.advance(0.999)
        assert not desk.is_due
        assert await desk.heard.look()
        assert len(desk.questions) == 1
        desk.clock.advance(0.001)
        assert desk.is_due
        assert await desk.look(FAST)
        assert desk.queues == ["fast"]

    at_a_desk(play)


@pytest.mark.parametrize("idle_s", [1.0, 3600.0])
def test_whoever_was_idle_looks_before_the_next_job(idle_s: float) -> None:
    async def play(desk: Desk) -> None:
        await desk.look(())
        desk.clock.advance(idle_s)
        assert desk.is_due
        assert await desk.look(SLOW)
        assert desk.queues == ["slow"]

    at_a_desk(play)


def test_a_thousand_callers_ask_once() -> None:
    async def play(desk: Desk) -> None:
        callers = [await desk.begin(), *(asyncio.create_task(desk.heard.look()) for _ in range(999))]
        await asyncio.sleep(0)
        desk.answer(SLOW)
        assert all(await asyncio.gather(*callers))
        assert len(desk.questions) == 1

    at_a_desk(play)


def test_whoever_gives_up_takes_the_answer_from_nobody() -> None:
    async def play(desk: Desk) -> None:
        first = await desk.begin()
        second = asyncio.create_task(desk.heard.look())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        desk.answer(SLOW)
        assert await second
        assert len(desk.questions) == 1

    at_a_desk(play)


def test_an_answer_counts_from_when_it_was_asked_for() -> None:
    """Whoever comes to a question that is under way for longer than a second waits for a newer one."""

    async def play(desk: Desk) -> None:
        first = await desk.begin()
        desk.clock.advance(1.5)
        second = asyncio.create_task(desk.heard.look())
        await asyncio.sleep(0)
        desk.asked.clear()
        desk.answer(SLOW)
        assert await first
        await desk.asked.wait()
        assert not second.done()
        desk.answer(FAST)
        assert await second
        assert (desk.queues, len(desk.questions)) == (["fast"], 2)

    at_a_desk(play)


@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreBroken("may not read it")])
def test_without_an_answer_what_was_heard_last_holds_and_nobody_asks_for_a_second(error: Exception) -> None:
    async def play(desk: Desk) -> None:
        await desk.look(SLOW)
        desk.clock.advance(5)
        assert not await desk.look(error)
        assert desk.queues == ["slow"]
        assert not desk.is_due
        assert not await desk.heard.look()
        assert len(desk.questions) == 2
        desk.clock.advance(1)
        assert desk.is_due
        assert await desk.look(FAST)
        assert desk.queues == ["fast"]

    at_a_desk(play)


def test_nobody_waits_for_a_store_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heard_routes, "PATIENCE_S", 0.0)

    async def play(desk: Desk) -> None:
        assert not await (await desk.begin())
        assert desk.questions[0].cancelled(), "the question would keep inserts waiting on its connection"
        assert not await desk.heard.look(), "nor does whoever comes next"
        assert len(desk.questions) == 1, "it has been asked"

    at_a_desk(play)


def test_a_store_that_goes_on_not_answering_is_asked_more_and_more_seldom() -> None:
    async def play(desk: Desk) -> None:
        pauses = []
        for _ in range(6):
            await desk.look(StoreUnavailable("away"))
            pauses.append(desk.heard.due_at - desk.clock.monotonic())
            desk.clock.advance(pauses[-1])
        assert pauses == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
        await desk.look(SLOW)
        desk.clock.advance(1)
        await desk.look(StoreUnavailable("away"))
        assert desk.heard.due_at - desk.clock.monotonic() == 1.0

    at_a_desk(play)


def test_what_does_not_go_away_by_itself_is_told_once() -> None:
    async def play(desk: Desk) -> None:
        for error in (StoreBroken("may not read it"), StoreBroken("may not read it"), StoreUnavailable("away")):
            await desk.look(error)
            desk.clock.advance(60)
        assert desk.told == [RouteUnheard("may not read it")]
        await desk.look(SLOW)
        desk.clock.advance(60)
        await desk.look(StoreBroken("may not read it"))
        assert len(desk.told) == 2, "it was mended, and is there again"

    at_a_desk(play)


def test_what_this_process_has_changed_itself_is_looked_up_by_a_new_question() -> None:
    async def play(desk: Desk) -> None:
        first = await desk.begin()
        desk.heard.forget()
        assert desk.is_due
        second = await desk.begin()
        older, newer = desk.questions
        newer.set_result(FAST)
        assert await second
        older.set_result(SLOW)
        assert await first
        assert desk.queues == ["fast"], "the older answer does not know of the change"
        assert not desk.is_due

    at_a_desk(play)


def test_closing_waits_for_no_answer_and_leaves_nobody_waiting() -> None:
    async def play(desk: Desk) -> None:
        caller = await desk.begin()
        await desk.heard.close()
        assert not await caller

    at_a_desk(play)


def test_so_does_closing_before_the_store_has_been_asked() -> None:
    async def play(desk: Desk) -> None:
        caller = asyncio.create_task(desk.heard.look())
        await asyncio.sleep(0)
        assert not desk.questions
        await desk.heard.close()
        assert not await caller

    at_a_desk(play)


def test_an_answer_like_the_last_one_forgets_nothing() -> None:
    async def play(desk: Desk) -> None:
        await desk.look((*SLOW, parse_rule("b", OPERATOR, priority=9)))
        patterns = desk.heard.patterns
        desk.clock.advance(1)
        await desk.look((parse_rule("b", OPERATOR, priority=9), *SLOW))
        assert desk.heard.patterns is patterns

    at_a_desk(play)
