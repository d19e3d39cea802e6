"""A connection for one purpose: opened when first needed, opened anew after it broke, one question at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.transports.redis_streams.scripts import Script
from holdfast.transports.redis_streams.wire import Refusal, Wire


class Line:
    """See the module's sentence; belongs to one event loop."""

    def __init__(self, connect: Callable[[], Awaitable[Wire]], *, answer_s: float) -> None:
        self._connect = connect
        self._answer_s = answer_s
        self._wire: Wire | None = None
        self._lock = asyncio.Lock()

    async def ask(self, *words: bytes | str | int, within_s: float | None = None) -> Any:
        """The reply to one command. Unreachable, Refusal: as the wire says."""
        async with self._lock:
            if self._wire is None or not self._wire.is_open:
                self._wire = await self._connect()
            return await self._wire.ask(*words, within_s=within_s or self._answer_s)

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[bytes | str | int]) -> Any:
        """The answer of a script, which the server may have to be told first."""
        try:
            return await self.ask("EVALSHA", script.sha, len(keys), *keys, *args)
        except Refusal as refusal:
            if refusal.code != "NOSCRIPT":
                raise
        return await self.ask("EVAL", script.text, len(keys), *keys, *args)

    def drop(self) -> None:
        """Whoever waits for an answer hears that there will be none."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
