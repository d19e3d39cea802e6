"""A TCP proxy in front of Redis that freezes, delays, cuts, or answers in its place; in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Self

from tests.proxies.listening import stop_listening

from holdfast.local import LocalRedis
from holdfast.runtime.threads import LoopThread


class RedisProxy:
    """`with RedisProxy(server) as proxy:`, and clients connect to `proxy.url`. Its methods may be called anywhere."""

    def __init__(self, server: LocalRedis) -> None:
        self.server = server
        self._thread = LoopThread("redis-proxy")
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._delay_s = 0.0
        self._answer: bytes | None = None
        self._rewritten = (b"", b"")
        self._listening: asyncio.Server | None = None
        self._port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self.admit()
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self._thread.submit(self._end_all()).result()
        self._thread.stop()

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"redis://:{self.server.password}@127.0.0.1:{self._port}/0"

    def admit(self) -> None:
        """New connections are let in (again)."""
        self._thread.submit(self._admit()).result()

    def refuse(self) -> None:
        """Those that stand are reset, new ones are refused."""
        self._thread.submit(self._refuse()).result()

    def cut(self) -> None:
        """Those that stand are reset."""
        self._do(self._cut)

    def freeze(self) -> None:
        """Nothing passes any more in either direction, also on new connections, and nobody is told: half-open."""
        self._do(self._flowing.clear)

    def thaw(self) -> None:
        self._do(self._flowing.set)

    def delay(self, seconds: float) -> None:
        """Every piece of an answer comes so much later."""
        self._delay_s = seconds

    def answer(self, line: str | None) -> None:
        """Whatever is asked is answered with this line, by the proxy; None: by the server again."""
        self._answer = None if line is None else f"{line}\r\n".encode()
        self.cut()

    def rewrite(self, old: bytes, new: bytes) -> None:
        """In every answer, from now on; of the same length."""
        assert len(old) == len(new)
        self._rewritten = (old, new)

    def lead_to(self, server: LocalRedis) -> None:
        """As after a fail-over, from now on; the password is the first server's."""
        server.ask("CONFIG", "SET", "requirepass", self.server.password)
        self.server = server
        self.cut()

    async def _admit(self) -> None:
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", self._port, reuse_address=True)
        self._port = self._listening.sockets[0].getsockname()[1]

    async def _refuse(self) -> None:
        listening, self._listening = self._listening, None
        if listening is not None:
            await stop_listening(listening)
        self._cut()

    async def _end_all(self) -> None:
        await asyncio.sleep(0)  # in which whoever was just let in gets a task of its own
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.wait(others)
            for _ in range(3):  # in which closed transports let go of their sockets, and the last tasks begin
                await asyncio.sleep(0)

    def _cut(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()

    def _do(self, act: Callable[[], None]) -> None:
        async def there() -> None:
            act()

        self._thread.submit(there()).result()

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.create_task(self._connect_through(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._writers.discard(writer))
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _connect_through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            if self._answer is not None:
                while await reader.read(65536) and self._answer is not None:
                    writer.write(self._answer)
                return
            back, forth = await asyncio.open_connection("127.0.0.1", self.server.port)
            self._writers.add(forth)
            pumps = [
                asyncio.create_task(self._pump(reader, forth, 0)),
                asyncio.create_task(self._pump(back, writer, 1)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
                self._writers.discard(forth)
                forth.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_answer: int) -> None:
        while data := await reader.read(65536):
            await self._flowing.wait()
            if is_answer and self._delay_s:
                await asyncio.sleep(self._delay_s)
            writer.write(data.replace(*self._rewritten) if is_answer and self._rewritten[0] else data)
            await writer.drain()
