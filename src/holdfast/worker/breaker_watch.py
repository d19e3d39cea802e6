"""Tells when breakers open and close, as far as runs of this worker have to do with it. Decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from holdfast.core.breaker import BreakerMark, Phase
from holdfast.core.errors import NotOpen, StoreError
from holdfast.stores.base import Store
from holdfast.telemetry.flow_events import BreakerClosed, BreakerOpened
from holdfast.telemetry.hub import Telemetry


class BreakerWatch:
    """Looks after a failure that counts, and after a success of a breaker that was seen open; one look at a time."""

    def __init__(self, store: Store, *, telemetry: Telemetry) -> None:
        self._store = store
        self._telemetry = telemetry
        self._open: set[str] = set()
        self._asked: set[str] = set()
        self._looking: asyncio.Task[None] | None = None

    def saw(self, marks: Sequence[BreakerMark]) -> None:
        """These are in the store."""
        self._asked |= {each.breaker.name for each in marks if each.failed or each.breaker.name in self._open}
        if self._asked and self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look(), name="breaker-watch")

    async def close(self) -> None:
        """Finish what is under way."""
        while self._looking is not None:
            await asyncio.wait({self._looking})

    async def _look(self) -> None:
        try:
            while self._asked:
                names, self._asked = self._asked, set()
                with contextlib.suppress(StoreError, NotOpen):  # nobody needs it but people who read logs
                    await self._compare(names)
        finally:
            self._looking = None

    async def _compare(self, names: set[str]) -> None:
        found = {each.name: each for each in await self._store.breakers() if each.name in names}
        now = await self._store.now()
        for name in sorted(names):
            info = found.get(name)
            if info is None or info.phase is Phase.CLOSED:
                if name in self._open:
                    self._open.discard(name)
                    self._telemetry.emit(BreakerClosed(name))
            elif name not in self._open and info.state.open_until is not None:
                self._open.add(name)
                self._telemetry.emit(BreakerOpened(name, max(0.0, info.state.open_until - now)))
