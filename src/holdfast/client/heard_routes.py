"""What operators have said about where jobs go, as this producer has last heard it.

Duties:
1. Whoever places a job knows what was in the store at most a second before: `due_at` says when somebody has to look.
   As long as nobody does, an idle producer asks nothing.
2. One small read for all who come while it is due: at most one a second.
3. A store that does not answer, or not soon, keeps nobody from trying: what was heard last holds, and the insert will
   tell.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from holdfast.client.placing import NO_PATTERNS, Patterns
from holdfast.core.errors import HoldfastError, StoreUnavailable
from holdfast.runtime.clock import Clock
from holdfast.stores.routes import RouteStore
from holdfast.telemetry.flow_events import RouteUnheard
from holdfast.telemetry.hub import Telemetry

FRESH_S: Final = 1.0
#: How long to wait for an answer: a store that is slower has worse troubles than an old route.
PATIENCE_S: Final = 1.0
#: After answers that did not come, at most this long nobody asks.
_SELDOM_S: Final = 10.0
_NEVER: Final = float("-inf")


class HeardRoutes:
    """Of one client; see the module's duties."""

    def __init__(self, store: RouteStore, *, clock: Clock, telemetry: Telemetry) -> None:
        self._store = store
        self._telemetry = telemetry
        self._said: str | None = None
        self._failures = 0
        self._clock = clock
        self.patterns = NO_PATTERNS
        """What was heard last."""
        self.due_at = _NEVER
        """From then on (by the monotonic clock), whoever places a job calls `look` before."""
        self._good_until = _NEVER
        self._look: _Look | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def look(self) -> bool:
        """Ask the store, unless that was within the last second; False: it has not answered, what was known holds."""
        came_at = self._clock.monotonic()
        while came_at >= self._good_until:
            if self._look is None:
                if came_at < self.due_at:
                    return False  # it has failed lately
                self._look = self._begin()
            look = self._look
            await look.over.wait()
            if not look.heard:
                return False
        return True

    def forget(self) -> None:
        """This process has changed it: whoever comes next looks, and believes no look that began before."""
        self.due_at = self._good_until = _NEVER
        self._look = None

    async def close(self) -> None:
        """Nobody waits for an answer any more."""
        for task in tuple(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _begin(self) -> _Look:
        look = _Look(self._clock.monotonic())
        task = asyncio.create_task(self._ask(look))  # of its own: whoever began it may be cancelled
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: look.over.set())  # also of one that was cancelled before it had begun
        return look

    async def _ask(self, look: _Look) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):  # the question ends with that: it is in the way of inserts
                rules = await self._store.routes()
            look.heard = True
            self._said = None
            if self._look is look:
                self._good_until = look.began_at + FRESH_S
                if frozenset(rules) != frozenset(self.patterns.rules):
                    self.patterns = Patterns(rules)
        except (TimeoutError, StoreUnavailable):
            pass
        except HoldfastError as error:
            self._tell(error)
        finally:
            if self._look is look:
                self._look = None
                self._failures = 0 if look.heard else self._failures + 1
                # The more seldom the longer it has not answered: whoever asks keeps inserts waiting meanwhile.
                later = min(_SELDOM_S, FRESH_S * 2 ** min(self._failures - 1, 8))
                self.due_at = self._good_until if look.heard else self._clock.monotonic() + later

    def _tell(self, error: HoldfastError) -> None:
        """What does not go away by itself is told, once; jobs go where it was known last."""
        if str(error) != self._said:
            self._said = str(error)
            self._telemetry.emit(RouteUnheard(self._said))


class _Look:
    """One question to the store, for all who wait for its answer."""

    __slots__ = ("began_at", "heard", "over")

    def __init__(self, began_at: float) -> None:
        self.began_at = began_at
        self.heard = False
        self.over = asyncio.Event()
        """It has been answered, or nobody waits for it any more."""
