"""A producer: `python -m tests.campaign.producer <directory> <seed> <jobs per second> [<url>]`, until SIGTERM.

It enqueues singly, in bulk, with keys that others use as well, with delays; and writes down every id before the
store can have heard of it, so that also a killed producer's history is complete.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.campaign.app import App, Campaign, make_app
from tests.campaign.child import die_with_parent
from tests.campaign.transactions import Orders
from tests.history import Answer, ClientRecorder
from tests.history.transactions import ORDERED

from holdfast import IdempotencyConflict, JobHandle, OutcomeUnknown, QueueFull, StoreUnavailable
from holdfast.client import request
from holdfast.core.ids import new_job_id
from holdfast.runtime.signals import stop_signals

KEYS = 200
CALLERS = 3


@dataclass(slots=True)
class Asked:
    """One call: the keys of its items, and the ids that were made for them, in order."""

    keys: list[tuple[str | None, str]]
    ids: list[UUID] = field(default_factory=list)


class Ledger:
    """Every id is written down at the moment it is made, and again with the answer."""

    def __init__(self, recorder: ClientRecorder) -> None:
        self._recorder = recorder
        self._call: contextvars.ContextVar[Asked] = contextvars.ContextVar("call")
        request.new_job_id = self._make

    def _make(self) -> UUID:
        job_id, call = new_job_id(), self._call.get(None)
        if call is None:  # somebody else's in the same process, who is none of the ledger's business
            return job_id
        key, fingerprint = call.keys[len(call.ids)]
        call.ids.append(job_id)
        self._recorder.enqueue(job_id, answer=Answer.ASKED, key=key, fingerprint=fingerprint)
        return job_id

    async def call(
        self, keys: list[tuple[str | None, str]], ask: Callable[[], Awaitable[list[JobHandle[Any]]]]
    ) -> None:
        """Ask, and write down what was told."""
        call = Asked(keys)
        self._call.set(call)
        told: list[UUID | None] = [None] * len(keys)
        try:
            told = [handle.id for handle in await ask()]
            answer = Answer.OK
        except OutcomeUnknown:
            answer = Answer.UNKNOWN
        except (QueueFull, IdempotencyConflict, StoreUnavailable):
            answer = Answer.FAIL
        for (key, fingerprint), job_id, other in zip(keys, call.ids, told, strict=False):  # it may have ended before
            self._recorder.enqueue(job_id, answer=answer, told=other, key=key, fingerprint=fingerprint)


class Producer:
    def __init__(self, app: App, ledger: Ledger, rng: random.Random, *, rate: float) -> None:
        self._app = app
        self._ledger = ledger
        self._rng = rng
        self._rate = rate
        on_postgres = app.hf.config.url.startswith("postgres")
        self._most = 800 if on_postgres else 30
        self._names = [name for name in app.tasks if name != ORDERED]
        self._orders = Orders(app.hf, app.tasks[ORDERED], rng) if on_postgres else None
        self._ordering = asyncio.Lock()

    async def work(self) -> None:
        await self._open()
        try:
            async with stop_signals() as signals, asyncio.TaskGroup() as callers:
                for _ in range(CALLERS):
                    callers.create_task(self._ask_until(signals.wait()))
        finally:
            await self._app.hf.close()
            if self._orders is not None:
                self._orders.close()

    async def _open(self) -> None:
        """The server may be starting again just now: whoever is no worker is told so, and tries again."""
        while True:
            try:
                return await self._app.hf.open()
            except StoreUnavailable:
                await asyncio.sleep(0.05)

    async def _ask_until(self, stop: Awaitable[None]) -> None:
        stopped = asyncio.ensure_future(stop)
        while not stopped.done():
            count = await self._ask()
            pause_s = self._rng.expovariate(self._rate / CALLERS / count)
            await asyncio.wait({stopped}, timeout=min(pause_s, 1.0))

    async def _ask(self) -> int:
        draw = self._rng.random()
        if draw < 0.1 and self._orders is not None:
            await self._order()
            return 1
        if draw < 0.6:
            await self._single(key=None)
            return 1
        if draw < 0.8:
            await self._single(key=self._rng.randrange(KEYS))
            return 1
        return await self._bulk()

    async def _order(self) -> None:
        """In a transaction of our own, one at a time: it has one connection."""
        assert self._orders is not None
        orders, n = self._orders, self._rng.randrange(1_000)
        async with self._ordering:
            await self._ledger.call([(None, f"{ORDERED}({n})")], lambda: orders.place(n))

    async def _single(self, key: int | None) -> None:
        n, options = self._rng.randrange(1_000), self._options()
        name = self._rng.choice(self._names)
        if key is not None:
            # Mostly what everybody asks for with this key; sometimes something else, which must be refused.
            name, n = "slow", key if self._rng.random() < 0.9 else n
            options["key"] = f"key-{key}"
        task = self._app.tasks[name].options(**options)

        async def ask() -> list[JobHandle[Any]]:
            return [await task.enqueue(n)]

        await self._ledger.call([(options.get("key"), f"{name}({n})")], ask)

    async def _bulk(self) -> int:
        count = self._rng.randrange(2, self._most)
        # Large ones are for the numbers: mostly of what takes no time.
        tasks = self._names if count < 30 else [*self._names, *["swift"] * (30 if count < 100 else 300)]
        names = [self._rng.choice(tasks) for _ in range(count)]
        calls = [self._app.tasks[name].options(**self._options()).request(n) for n, name in enumerate(names)]
        keys = [(None, f"{name}({n})") for n, name in enumerate(names)]
        await self._ledger.call(keys, lambda: self._app.hf.enqueue_many(calls))
        return count

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"priority": self._rng.randrange(10)}
        if self._rng.random() < 0.1:
            options["delay"] = self._rng.random()
        return options


def main(directory: str, seed: str, rate: str, url: str = "") -> None:
    die_with_parent()
    place = Campaign(Path(directory))
    app = make_app(place, lease_s=10.0, url=url)
    ledger = Ledger(ClientRecorder(place.client))
    asyncio.run(Producer(app, ledger, random.Random(seed), rate=float(rate)).work())


if __name__ == "__main__":
    main(*sys.argv[1:])
