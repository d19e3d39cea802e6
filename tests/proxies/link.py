"""One client's connection through the proxy: passes messages on, or does to them what a trap says."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from tests.proxies import wire
from tests.proxies.traps import Fate, Trap


class Cut(Exception):
    """This connection is over, on purpose."""


@dataclass(frozen=True, slots=True)
class Side:
    """One end of the way."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def close(self) -> None:
        """With FIN, behind all that was written."""
        self.writer.close()

    def reset(self) -> None:
        """With RST, as after a crash of the machine in between."""
        connection: socket.socket | None = self.writer.get_extra_info("socket")
        if connection is not None:
            with contextlib.suppress(OSError):  # closed already
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Link:
    """Rounds are what the client sends up to a Sync or in a simple query; the server answers each with one 'Z'."""

    def __init__(
        self,
        client: Side,
        server: Side,
        *,
        flowing: asyncio.Event,
        slow: asyncio.Event,
        caught: Callable[[str], Trap | None],
    ) -> None:
        self._client = client
        self._server = server
        self._flowing = flowing
        self._slow = slow
        self._caught = caught
        self._statements = wire.Statements()
        self._open_round: Trap | None = None
        self._rounds: deque[Trap | None] = deque()
        self._abandoned = False
        self._mute = False

    async def run(self) -> None:
        """Until either end is gone, or a trap has cut it."""
        pumps = [asyncio.create_task(self._forward()), asyncio.create_task(self._return())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            if self._abandoned:
                await asyncio.wait(pumps)  # the server may take its time with what nobody waits for
        finally:
            for pump in pumps:
                pump.cancel()
            ends = await asyncio.gather(*pumps, return_exceptions=True)
        self.cut(reset=any(isinstance(end, Cut) for end in ends))
        await self._client.writer.wait_closed()

    def cut(self, *, reset: bool) -> None:
        """Both ends; the server cannot tell how the client went."""
        if reset:
            self._client.reset()
        else:
            self._client.close()
        self._server.close()

    async def _forward(self) -> None:
        frames = wire.Frames()
        while data := await self._client.reader.read(65536):
            await self._flowing.wait()
            for message in frames.feed(data):
                self._server.writer.write(self._note(message))
                if wire.ends_a_round(message):
                    self._rounds.append(self._open_round)
                    if self._open_round is not None and self._open_round.fate is Fate.ABANDON:
                        await self._server.writer.drain()
                        self._abandoned = True
                        self._client.reset()
                        return
                    self._open_round = None
            await self._server.writer.drain()
        await self._flowing.wait()

    def _note(self, message: bytes) -> bytes:
        """What the server gets of it."""
        text = self._statements.text(message)
        if text is None or self._open_round is not None:
            return message
        trap = self._caught(text)
        if trap is not None and trap.fate is Fate.LOSE_REQUEST:
            trap.spring()
            raise Cut
        self._open_round = trap
        return wire.instead(message) if trap is not None and trap.fate is Fate.REFUSE else message

    async def _return(self) -> None:
        frames = wire.Frames()
        held: list[bytes] = []
        while data := await self._server.reader.read(65536):
            await self._flowing.wait()
            passed: list[bytes] = []
            for message in frames.feed(data):
                trap = self._rounds[0] if self._rounds else None
                (passed if trap is None else held).append(message)
                if trap is not None and wire.asks_for_data(message):
                    passed, held = passed + held, []
                if wire.is_ready(message) and self._rounds:
                    self._rounds.popleft()
                    if trap is not None:
                        await self._pass(passed)
                        answer = held
                        passed, held = [], []
                        await self._finish(trap, answer)
            await self._pass(passed)
            await self._client.writer.drain()
        await self._flowing.wait()

    async def _finish(self, trap: Trap, answer: list[bytes]) -> None:
        """The server has answered a caught round completely."""
        match trap.fate:
            case Fate.LOSE_ANSWER | Fate.ABANDON:
                trap.spring()
                raise Cut
            case Fate.HANG:
                self._mute = True
                trap.spring()
            case Fate.FALL_SILENT:
                await self._pass(answer)
                self._mute = True
                trap.spring()
            case Fate.HOLD_ANSWER:
                trap.spring()
                await trap.hold()
                await self._pass(answer)
            case Fate.REFUSE:
                trap.spring()
                await self._pass(wire.refused(answer, trap.sqlstate))
            case Fate.LOSE_REQUEST:
                raise AssertionError("never sent")
            case _:
                assert_never(trap.fate)

    async def _pass(self, messages: list[bytes]) -> None:
        if not messages or self._mute:
            return
        answer = b"".join(messages)
        if not self._slow.is_set():
            self._client.writer.write(answer)
            return
        for byte in answer:  # each in a packet of its own
            self._client.writer.write(bytes([byte]))
            await self._client.writer.drain()
            await asyncio.sleep(0)
