"""What a proxy shall do to which statements: armed by a test, sprung by the proxy, waited for by the test."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import random
import re
import threading
from dataclasses import dataclass, field


class Fate(enum.Enum):
    """What happens to a statement on its way."""

    LOSE_REQUEST = "the connection is cut before the server gets it"
    ABANDON = "the server gets it, and the client is cut off at once, while it may still be running"
    LOSE_ANSWER = "the server has done it and said so; the connection is cut before the client hears"
    HANG = "the server has done it; the client never hears anything again, nor that the connection is dead"
    FALL_SILENT = "the client gets this answer and nothing after it, nor that the connection is dead"
    HOLD_ANSWER = "the server has done it; the answer waits until the trap is released (or for `delay_s`)"
    REFUSE = "the server never gets it, and seems to answer with the error `sqlstate`"


@dataclass(slots=True, eq=False)
class Trap:
    """For statements that `pattern` is found in. `times` and `probability` choose among them."""

    pattern: re.Pattern[str]
    fate: Fate
    times: int | None
    probability: float
    skip: int
    delay_s: float | None
    sqlstate: str
    chance: random.Random
    loop: asyncio.AbstractEventLoop
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    _sprung: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def sprung(self) -> int:
        """How often it has struck; counted when it has."""
        with self._changed:
            return self._sprung

    def disarm(self) -> None:
        """No further statement is caught."""
        with self._changed:
            self.times = 0

    def release(self) -> None:
        """Lets held answers go, and those that come later."""
        self.loop.call_soon_threadsafe(self._released.set)

    def wait(self, count: int = 1, *, timeout_s: float = 60.0) -> None:
        """Until it has struck that often."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._sprung >= count, timeout_s):
                raise TimeoutError(f"{self.fate.name} for {self.pattern.pattern!r}: {self._sprung} of {count} times")

    def catches(self, text: str) -> bool:
        """Decides once per statement, and remembers that it did."""
        if self.pattern.search(text) is None:
            return False
        with self._changed:
            if self.skip > 0:
                self.skip -= 1
                return False
            if self.times == 0 or self.chance.random() >= self.probability:
                return False
            if self.times is not None:
                self.times -= 1
            return True

    async def hold(self) -> None:
        """In the proxy: until the answer may go."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.delay_s):
                await self._released.wait()

    def spring(self) -> None:
        """Says that it has struck."""
        with self._changed:
            self._sprung += 1
            self._changed.notify_all()
