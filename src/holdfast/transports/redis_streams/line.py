"""A connection for one purpose: opened when first needed, opened anew after it broke, one question at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from holdfast.transports.redis_streams.scripts import Script
from holdfast.transports.redis_streams.wire import Refusal, Wire

T = TypeVar("T")


class Way(Protocol):
    """How commands come to the server that has their keys: there is one, or in a cluster several."""

    async def ask(self, *words: bytes | str | int, key: str, within_s: float | None = None) -> Any:
        """The reply to one command, which touches this key. Unreachable, Refusal: as the wire says."""
        ...

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[bytes | str | int]) -> Any:
        """The answer of a script, which the server may have to be told first."""
        ...

    async def run_id(self, key: str) -> str:
        """The name of this run of the server that has the key."""
        ...

    def drop(self) -> None:
        """Whoever waits for an answer hears that there will be none."""
        ...


class Line:
    """The way to one server; belongs to one event loop."""

    def __init__(self, connect: Callable[[], Awaitable[Wire]], *, answer_s: float) -> None:
        self._connect = connect
        self._answer_s = answer_s
        self._wire: Wire | None = None
        self._lock = asyncio.Lock()

    async def ask(
        self, *words: bytes | str | int, key: str = "", within_s: float | None = None, asking: bool = False
    ) -> Any:
        """`asking`: the server has the keys not yet for everybody, but for whom the old owner has sent."""
        async with self._lock:
            wire = await self._opened()
            if asking:
                await wire.ask("ASKING", within_s=self._answer_s)
            return await wire.ask(*words, within_s=within_s or self._answer_s)

    async def run(
        self, script: Script, keys: Sequence[str], args: Sequence[bytes | str | int], *, asking: bool = False
    ) -> Any:
        try:
            return await self.ask("EVALSHA", script.sha, len(keys), *keys, *args, asking=asking)
        except Refusal as refusal:
            if refusal.code != "NOSCRIPT":
                raise
        return await self.ask("EVAL", script.text, len(keys), *keys, *args, asking=asking)

    async def run_id(self, key: str = "") -> str:
        async with self._lock:
            return (await self._opened()).run_id

    def drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    async def _opened(self) -> Wire:
        if self._wire is None or not self._wire.is_open:
            self._wire = await self._connect()
        return self._wire


async def all_of(calls: Iterable[Awaitable[T]]) -> list[T]:
    """All answers, asked for at once; else, when none is under way any more, the first thing that went wrong."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    return [_unless_raised(answer) for answer in answers]


def _unless_raised(answer: T | BaseException) -> T:
    if isinstance(answer, BaseException):
        raise answer
    return answer
