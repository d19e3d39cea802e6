"""An app with a few tasks, keys for it, and a client that speaks to its API without a socket."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from holdfast import Holdfast, PermanentError, Scope
from holdfast.http import Application, asgi
from holdfast.http.serving import address_of, bind, serve
from holdfast.runtime.signals import StopSignals

V1 = "/api/v1"
ALL = tuple(Scope)


def make_app(url: str, **settings: Any) -> Holdfast:
    """The tasks that these tests submit."""
    hf = Holdfast(url, poll_s=0.05, **settings)

    @hf.task(name="shop.add")
    async def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @hf.task(name="shop.charge", queue="bank")
    async def charge(customer: str, cents: int = 0) -> str:
        raise PermanentError(f"{customer} cannot be charged {cents} cents")

    @hf.task(name="shop.mail", queue="mail")
    async def mail(to: str) -> None: ...

    return hf


class Scene:
    """An open app, its API, and whoever asks."""

    def __init__(self, hf: Holdfast, app: Application, address: str = "192.0.2.1") -> None:
        self.hf = hf
        self.app = app
        self.transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 1))

    async def key(self, *scopes: Scope | str, **bound: Any) -> str:
        """The text of a new key."""
        return (await self.hf.keys.create("tests", scopes=scopes or ALL, **bound)).text

    def client(self, key: str | None = None, **headers: str) -> httpx.AsyncClient:
        """One that sends this key."""
        own = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.AsyncClient(transport=self.transport, base_url=f"http://api{V1}", headers=own | headers)

    async def dead(self, **options: Any) -> str:
        """The id of a job that has died."""
        task = self.hf.named("shop.charge").options(**options)
        job = await task.enqueue("ada", cents=5)
        async with self.hf.worker(concurrency=1):
            async for _ in job.events():
                pass
        return str(job.id)


@asynccontextmanager
async def listening(
    api: Scene, *, grace_s: float = 10.0, unread: int | None = None
) -> AsyncIterator[tuple[str, StopSignals]]:
    """A real server on loopback: its address, and what stops it. `unread`: bytes that the kernel keeps for a client."""
    signals, started = StopSignals(), asyncio.Event()
    with bind("127.0.0.1", 0) as place:
        if unread is not None:
            place.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, unread)
        serving = asyncio.create_task(serve(api.app, place, signals, grace_s=grace_s, started=started.set))
        try:
            await asyncio.wait_for(started.wait(), 10)
            yield address_of(place), signals
        finally:
            signals.note(signal.SIGTERM)
            await serving


@asynccontextmanager
async def served(
    url: str = ":memory:", *, settings: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Scene]:
    """Everything open on a store; options are those of `asgi`."""
    hf = make_app(url, **(settings or {}))
    async with hf:
        app = asgi(hf, **options)
        try:
            yield Scene(hf, app)
        finally:
            await app.server.close()
