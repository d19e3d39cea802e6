"""One fault at one moment of an announcement's way, while enqueues go on: each of them has to be accepted at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.faults.scenes import market
from tests.faults.scenes.actors import PRODUCER, act
from tests.faults.scenes.cast import Cast
from tests.faults.scenes.struck import Scene, working
from tests.faults.table.redis import IDLE, POINTS
from tests.faults.trial import PATIENCE_S

from holdfast.runtime.failpoints import armed
from holdfast.telemetry.transport_events import TransportDown, TransportUp

#: What an app that is not hindered takes for an enqueue, many times over.
_PROMPT_S = 5.0

Deal = Callable[[asyncio.Event], Awaitable[None]]
"""Does it, says when it has struck, and returns when it is healed."""


async def _nothing() -> None:
    pass


class Blow:
    """Dealt once; it heals by itself after a while."""

    def __init__(self, deal: Deal, *, prepare: Callable[[], Awaitable[None]] = _nothing) -> None:
        """`prepare`: after some work has been done, and before the moment comes."""
        self._deal = deal
        self.prepare = prepare
        self._healing: asyncio.Task[None] | None = None

    async def deal(self) -> None:
        """Returns when it has struck; whoever came by here goes on into it."""
        if self._healing is None:
            struck = asyncio.Event()
            self._healing = asyncio.ensure_future(self._deal(struck))
            await struck.wait()

    async def healed(self) -> None:
        assert self._healing is not None, "nobody has come by the moment"
        await asyncio.wait_for(asyncio.shield(self._healing), PATIENCE_S)


async def suffer(scene: Scene, blow: Blow) -> None:
    cast = scene.cast
    async with working(cast):
        if scene.point == IDLE:
            await market.stock(cast)
            await blow.prepare()
            await scene.rest()
            await blow.deal()
            await _produce(cast)
        else:
            with armed(POINTS[scene.point], blow.deal, skip=1):
                await market.stock(cast)
                await blow.prepare()
                await _produce(cast)
                await _produce(cast)
                await scene.rest()
        await blow.healed()
        await _produce(cast)
        await scene.rest()


async def _produce(cast: Cast) -> None:
    async with asyncio.timeout(_PROMPT_S):
        await act(cast, PRODUCER, ())


def told_by_turns(cast: Cast) -> None:
    """One event per change, not a flood."""
    changes = [type(event) for event in cast.events if isinstance(event, TransportDown | TransportUp)]
    by_turns = [TransportDown, TransportUp] * (len(changes) // 2) + [TransportDown] * (len(changes) % 2)
    assert changes == by_turns, changes
