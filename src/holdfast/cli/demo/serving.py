"""The HTTP API beside the demonstration, in the same process, with a key for whoever watches."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

from holdfast.app import Holdfast
from holdfast.cli.api import bind_place
from holdfast.cli.http_extra import PREFIX, http_module
from holdfast.core.api_key import Scope
from holdfast.runtime.signals import StopSignals

_LOOPBACK = "127.0.0.1"
_GRACE_S = 2.0


@contextlib.asynccontextmanager
async def serving(hf: Holdfast, port: int | None, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Serve for as long as the block lasts, and say where; None: nothing is served."""
    if port is None:
        yield
        return
    http, signals = http_module("serving"), StopSignals()
    key = await hf.keys.create("holdfast demo", scopes=Scope, expires=timedelta(days=1))
    with bind_place(_LOOPBACK, port, any_port=True) as place:
        app = http_module("application").asgi(hf)
        address = f"{http.address_of(place)}{PREFIX}"
        serve = asyncio.create_task(http.serve(app, place, signals, grace_s=_GRACE_S), name="holdfast-demo-api")
        say(f"api: {address} is open; in another terminal:")
        say(f"  curl -H 'Authorization: Bearer {key.text}' {address}/queues")
        try:
            yield
        finally:
            signals.note(signal.SIGTERM)
            await serve
