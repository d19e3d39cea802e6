"""A TCP proxy in front of PostgreSQL that loses, holds and cuts what a test names; in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import socket
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

from tests.proxies.link import Link, Side
from tests.proxies.listening import stop_listening
from tests.proxies.traps import Fate, Trap
from tests.proxies.wire import error, read_startup

T = TypeVar("T")


class PostgresProxy:
    """`with PostgresProxy(url) as proxy:`, and clients connect to `proxy.url`. Its methods may be called anywhere."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._upstream = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._slow = asyncio.Event()
        self._turned_away_with: str | None = None
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._traps: list[Trap] = []
        self._server: asyncio.Server | None = None
        self._over = False
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        login = parts.netloc.rpartition("@")[0]
        netloc = f"{login}@127.0.0.1:{self.port}" if login else f"127.0.0.1:{self.port}"
        self.url = urlunsplit(parts._replace(netloc=netloc))

    def __enter__(self) -> Self:
        self._thread.start()
        self.admit()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self.refuse()
        for trap in self._traps:
            trap.release()
        self._do(self._end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def connections(self) -> int:
        """How many clients are connected through to the server."""
        return len(self._links)

    def arm(
        self,
        pattern: str,
        fate: Fate,
        *,
        times: int | None = None,
        probability: float = 1.0,
        seed: int = 0,
        skip: int = 0,
        delay_s: float | None = None,
        sqlstate: str = "",
    ) -> Trap:
        """For statements that the pattern (any case, across lines) is found in: all of them, unless limited."""
        compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
        trap = Trap(compiled, fate, times, probability, skip, delay_s, sqlstate, random.Random(seed), self._loop)
        self._traps.append(trap)
        return trap

    def remove(self, trap: Trap) -> None:
        """It catches nothing any more, and is not asked any more; what it holds goes on."""
        trap.disarm()
        trap.release()
        self._traps.remove(trap)

    def refuse(self) -> None:
        """New connections are refused; those that stand are left alone."""
        self._do(self._refuse())

    def admit(self) -> None:
        """New connections are let in (again)."""
        self._do(self._admit())

    def cut(self, *, reset: bool = True) -> None:
        """Ends every connection: abruptly, or with an orderly FIN."""
        self._call(lambda: [link.cut(reset=reset) for link in tuple(self._links)])

    def freeze(self) -> None:
        """Nothing passes any more in either direction, also on new connections, and nobody is told: half-open."""
        self._call(self._flowing.clear)

    def thaw(self) -> None:
        """What was held back by `freeze` goes on."""
        self._call(self._flowing.set)

    def turn_away(self, sqlstate: str | None) -> None:
        """New connections are answered with this error, as a server does that is full or starting; None: no longer."""
        self._turned_away_with = sqlstate

    def slow_down(self) -> None:
        """Answers come one byte at a time, from now on."""
        self._call(self._slow.set)

    async def _admit(self) -> None:
        if self._server is None and not self._over:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, reuse_address=True)

    async def _refuse(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await stop_listening(server)

    async def _end_all(self) -> None:
        await asyncio.sleep(0)  # in which whoever was just let in gets a task of its own
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.wait(others)
            for _ in range(3):  # in which closed transports let go of their sockets, and the last tasks begin
                await asyncio.sleep(0)

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._connect_through(Side(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _connect_through(self, client: Side) -> None:
        # Either end may go away at any time, and that is the other one's business.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            startup, is_cancel = await read_startup(client.reader, client.writer)
            await self._flowing.wait()
            if self._turned_away_with and not is_cancel:
                client.writer.write(error(self._turned_away_with, severity="FATAL"))
                return await client.writer.drain()
            server = Side(*await asyncio.open_connection(*self._upstream))
            try:
                server.writer.write(startup)
                if is_cancel:
                    await server.reader.read()
                else:
                    await self._link(client, server)
            finally:
                server.writer.transport.abort()

    async def _link(self, client: Side, server: Side) -> None:
        link = Link(client, server, flowing=self._flowing, slow=self._slow, caught=self._caught)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    def _caught(self, text: str) -> Trap | None:
        return next((trap for trap in tuple(self._traps) if trap.catches(text)), None)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _call(self, action: Callable[[], object]) -> None:
        async def act() -> None:
            action()

        self._do(act())
