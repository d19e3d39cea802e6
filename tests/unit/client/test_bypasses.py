"""Who goes past a full queue: as operators say, or else as it is configured; the store is asked seldom."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.client.bypasses import Bypasses
from holdfast.client.enqueuer import Enqueuer
from holdfast.config import Config
from holdfast.core.errors import QueueFull, StoreUnavailable
from holdfast.core.job import NewJob
from holdfast.core.queue import QueueSettings
from holdfast.core.queue_options import QueueOptions
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock, SystemClock
from holdfast.stores.base import Full, Inserted, InsertResult
from holdfast.telemetry.hub import Telemetry
from holdfast.testing.contracts.arrange import a_job


class Settings:
    """A store that has settings of queues, and answers a moment later."""

    def __init__(self) -> None:
        self.said: dict[str, QueueOptions] = {}
        self.asked = 0
        self.away = False

    async def queue_settings(self) -> dict[str, QueueSettings]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailable("it is away")
        return {name: QueueSettings(options=each) for name, each in self.said.items()}


URGENT, HIGH = a_job(queue="mail", priority=9), a_job(queue="mail", priority=7)


def test_operators_go_before_the_settings_and_are_asked_once_a_second() -> None:
    async def ask() -> None:
        store: Any = Settings()
        clock = ManualClock()
        bypasses = Bypasses(store, Config(queue={"mail": {"bypass_priority": 9}}), clock=clock)
        assert await asyncio.gather(*(bypasses.let_pass((job,)) for job in (URGENT, HIGH))) == [True, False]
        assert store.asked == 1, "all who are refused at once share an answer"
        store.said = {"mail": QueueOptions(bypass_priority="high"), "bank": QueueOptions(bypass_priority=0)}
        assert not await bypasses.let_pass((HIGH,)), "it is known from a moment ago"
        clock.advance(1.0)
        assert await bypasses.let_pass((HIGH, URGENT))
        assert await bypasses.let_pass((a_job(queue="bank", priority=0),))
        assert not await bypasses.let_pass((HIGH, a_job(queue="other", priority=9))), "all of them, or none"
        store.said = {"mail": QueueOptions(concurrency=1)}
        clock.advance(1.0)
        assert [await bypasses.let_pass((job,)) for job in (URGENT, HIGH)] == [True, False], "as configured again"
        assert store.asked == 3

    asyncio.run(ask())


class Roomy(Settings):
    """Takes everything, or drains."""

    def __init__(self, answer: Callable[[NewJob], InsertResult]) -> None:
        super().__init__()
        self._answer = answer

    def subscribe(self, callback: Callable[..., None]) -> Callable[[], None]:
        return lambda: None

    async def insert_jobs(self, jobs: Sequence[NewJob], *, whole: bool = False, admit: bool = True) -> Any:
        return [self._answer(job) for job in jobs]


def test_whoever_is_not_refused_for_want_of_room_asks_nothing() -> None:
    async def ask(store: Any) -> None:
        config = Config(queue={"mail": {"bypass_priority": 9}})
        enqueuer = Enqueuer(store, config, clock=SystemClock(), telemetry=Telemetry())
        with contextlib.suppress(QueueFull):
            await enqueuer.enqueue(URGENT, wait_s=0.0)
        with contextlib.suppress(QueueFull):
            await enqueuer.enqueue_many([URGENT, HIGH], wait_s=0.0)
        await enqueuer.close()
        assert not store.asked

    asyncio.run(ask(Roomy(lambda job: Inserted(job.id, State.READY))))
    asyncio.run(ask(Roomy(lambda job: Full(job.queue, depth=1, high=1, low=0, draining=True))))


def test_what_was_known_last_has_to_do_while_the_store_does_not_answer() -> None:
    async def ask() -> None:
        store: Any = Settings()
        clock = ManualClock()
        bypasses = Bypasses(store, Config(), clock=clock)
        store.said = {"mail": QueueOptions(bypass_priority=7)}
        assert await bypasses.let_pass((HIGH,))
        store.away = True
        clock.advance(1.0)
        assert [await bypasses.let_pass((HIGH,)) for _ in range(3)] == [True] * 3
        assert store.asked == 2, "it is not pressed"

    asyncio.run(ask())
