"""A port for machines that watch: GET a few paths, one answer per connection. No more of HTTP than that, on purpose.

Whoever connects costs bounded memory and time, whatever they send or do not read: at most so many connections, a short
head, a deadline. It runs beside what it reports on, so it must never be what breaks that.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from holdfast.runtime.backoff import Backoff

_MOST_CONNECTIONS: Final = 32
_LONGEST_HEAD: Final = 8 * 1024
_DEADLINE_S: Final = 10.0

_log = logging.getLogger("holdfast.metrics")


class Answer(NamedTuple):
    """What goes back."""

    status: HTTPStatus
    text: str
    content_type: str = "text/plain; charset=utf-8"

    @classmethod
    def json(cls, data: Any, status: HTTPStatus = HTTPStatus.OK) -> Answer:
        return cls(status, json.dumps(data), "application/json")


Routes = Mapping[str, Callable[[], Awaitable[Answer]]]


class Listener:
    """Serves `routes` at a place; where that is taken, it tries again for as long as it is open."""

    def __init__(self, routes: Routes, *, host: str, port: int) -> None:
        self._routes = routes
        self._host = host
        self._port = port
        self._at_once = 0
        self._opening: asyncio.Task[None] | None = None
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[Any]] = set()
        self.address = ""
        """As in a URL, once it listens."""

    def start(self) -> None:
        """Begin; what cannot be had now is tried again, and logged."""
        self._opening = asyncio.create_task(self._open(), name="metrics")

    async def close(self) -> None:
        """Listen no more; answers that are on their way are cut off."""
        if self._opening is not None:
            self._opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._opening
        if self._server is not None:
            self._server.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _open(self) -> None:
        pauses = Backoff(0.5, 30.0)
        while self._server is None:
            try:
                self._server = await asyncio.start_server(
                    self._connected, self._host, self._port, limit=_LONGEST_HEAD, backlog=_MOST_CONNECTIONS
                )
            except OSError as error:
                pause_s = pauses.next()
                place = _shown(self._host, self._port)
                _log.error(
                    "metrics cannot be served at %s, again in %.1f s: %s", place, pause_s, error.strerror or error
                )
                await asyncio.sleep(pause_s)
        self.address = _shown(*self._server.sockets[0].getsockname()[:2])
        _log.info("metrics are served at http://%s%s", self.address, next(iter(self._routes)))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            if len(self._serving) > _MOST_CONNECTIONS:
                return
            with contextlib.suppress(TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(_DEADLINE_S):
                    await self._serve(reader, writer)
        except asyncio.CancelledError:  # it is closing; as a task of a server's it must not pass that on
            pass
        finally:
            self._serving.discard(task)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            answer, with_body = Answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too much\n"), True
        else:
            method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
            answer = await self._answer(method, rest.partition(" ")[0].partition("?")[0])
            with_body = method != "HEAD"
        body = answer.text.encode()
        lines = [
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
            *(["Allow: GET, HEAD"] if answer.status is HTTPStatus.METHOD_NOT_ALLOWED else []),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + (body if with_body else b""))
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def _answer(self, method: str, path: str) -> Answer:
        route = self._routes.get(path)
        if route is None:
            return Answer(HTTPStatus.NOT_FOUND, "there are " + ", ".join(self._routes) + "\n")
        if method not in ("GET", "HEAD"):
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET\n")
        try:
            return await route()
        except Exception:
            _log.exception("%s could not be answered", path)
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "the log says why\n")


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
