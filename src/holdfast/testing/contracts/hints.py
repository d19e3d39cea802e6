"""Hints: a subscriber hears, on its own loop, that something may have changed. Single hints may be lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.core.backpressure import Watermarks
from holdfast.core.job import NewJob
from holdfast.core.queue import QueueSettings
from holdfast.stores.base import Hint, Store
from holdfast.testing.contracts.arrange import LONG_S, QUEUE, a_job, finish, insert, start

TRIES = 20
PATIENCE_S = 2.0


async def _heard(store: Store, wanted: Hint, act: Callable[[], Awaitable[Any]]) -> None:
    """Do something until its hint comes: one may be lost, but not all of them."""
    heard = asyncio.Event()
    threads: set[int] = set()

    def listen(hint: Hint) -> None:
        threads.add(threading.get_ident())
        if wanted in hint:
            heard.set()

    leave = store.subscribe(listen)
    try:
        for _ in range(TRIES):
            await act()
            try:
                await asyncio.wait_for(heard.wait(), PATIENCE_S)
            except TimeoutError:
                continue
            assert threads == {threading.get_ident()}, "a hint comes on the loop that subscribed"
            return
    finally:
        leave()
    raise AssertionError(f"{TRIES} times something happened, and {wanted} was never heard")


def _insert(store: Store, **overrides: Any) -> Callable[[], Awaitable[Any]]:
    def act() -> Awaitable[Any]:
        job: NewJob = a_job(**overrides)
        return store.insert_jobs([job])

    return act


async def check_new_work_is_heard_of(store: Store) -> None:
    await _heard(store, Hint.READY, _insert(store))


async def check_new_timers_are_heard_of(store: Store) -> None:
    await _heard(store, Hint.TIMER, _insert(store, delay_s=LONG_S))


async def check_endings_are_heard_of(store: Store) -> None:
    async def end() -> None:
        await finish(store, await start(store))

    await _heard(store, Hint.ENDED, end)


async def check_cancel_requests_are_heard_of(store: Store) -> None:
    async def request() -> None:
        run = await start(store)
        await store.cancel_jobs([run.id], reason="not needed")

    await _heard(store, Hint.CANCEL, request)


async def check_changed_settings_are_heard_of(store: Store) -> None:
    await _heard(store, Hint.SETTINGS, lambda: store.set_queue(QUEUE, QueueSettings(paused=True)))


async def check_a_queue_that_opens_is_heard_of(store: Store) -> None:
    await store.set_queue(QUEUE, QueueSettings(watermarks=Watermarks(high=1, low=0)))

    async def fill_and_empty() -> None:
        await insert(store, a_job())
        await store.insert_jobs([a_job()])  # refused
        await store.purge_queue(QUEUE, reason="emptied", limit=1)

    await _heard(store, Hint.OPENED, fill_and_empty)


async def check_who_left_hears_nothing(store: Store) -> None:
    hints: list[Hint] = []
    leave = store.subscribe(hints.append)
    leave()
    leave()  # leaving twice is leaving
    await _heard(store, Hint.READY, _insert(store))
    assert hints == [], f"got {hints}"
