"""What is served at a port for machines that watch, by path."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus

from holdfast.app import Holdfast
from holdfast.core.urls import parse_listen
from holdfast.observability.exposition import CONTENT_TYPE
from holdfast.observability.health import Readiness, liveness, readiness
from holdfast.observability.listener import Answer, Listener, Routes
from holdfast.observability.metrics import metrics_of


def watching_routes(text: Callable[[], Awaitable[str]], ready: Callable[[], Awaitable[Readiness]]) -> Routes:
    """/metrics, /health/live and /health/ready."""

    async def metrics() -> Answer:
        return Answer(HTTPStatus.OK, await text(), CONTENT_TYPE)

    async def live() -> Answer:
        return Answer.json(await liveness())

    async def is_ready() -> Answer:
        found = await ready()
        return Answer.json(found.to_data(), HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE)

    return {"/metrics": metrics, "/health/live": live, "/health/ready": is_ready}


@contextlib.asynccontextmanager
async def watched(hf: Holdfast, listen: str | int) -> AsyncIterator[Listener]:
    """Serve an app's metrics and health for as long as this lasts: `async with watched(hf, 9464):`.

    For workers in your own program; `holdfast worker` does it by its setting `metrics_listen`.
    """
    host, port = parse_listen(str(listen))
    metrics = metrics_of(hf)
    metrics.watch_loop()
    listener = Listener(watching_routes(metrics.text, lambda: readiness(hf)), host=host, port=port)
    listener.start()
    try:
        yield listener
    finally:
        await listener.close()
