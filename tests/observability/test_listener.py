"""The port for machines that watch: what it answers, and that nobody who connects can hurt it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator

import pytest
from tests.integration.scene import scene
from tests.observability.scraping import PATIENCE_S, Scraped, get, host_and_port, until

from holdfast import ConfigError, Holdfast
from holdfast.observability import listener as listening
from holdfast.observability import watched
from holdfast.observability.listener import Listener


@contextlib.asynccontextmanager
async def port() -> AsyncIterator[str]:
    hf = Holdfast(":memory:")
    async with hf, watched(hf, 0) as listener:
        await until(lambda: bool(listener.address))
        yield listener.address


@scene
async def test_metrics_and_health_over_http() -> None:
    async with port() as address:
        assert address.startswith("127.0.0.1:"), "nobody else, unless told so"
        answer = await get(address, "/metrics")
        assert answer.status == 200
        assert "text/plain; version=0.0.4" in answer.head
        assert Scraped(answer.body).value("holdfast_store_up") == 1
        assert (await get(address, "/health/live")).body == '{"status": "ok"}'
        ready = await get(address, "/health/ready?verbose=1")
        assert (ready.status, '"ready": true' in ready.body) == (200, True)
        head = await get(address, "/metrics", method="HEAD")
        assert (head.status, head.body) == (200, "")


@scene
async def test_unready_is_503_and_live_all_the_same() -> None:
    hf = Holdfast(":memory:")
    async with watched(hf, 0) as listener:
        await until(lambda: bool(listener.address))
        assert (await get(listener.address, "/health/ready")).status == 503
        assert (await get(listener.address, "/health/live")).status == 200


@scene
async def test_nothing_but_get_and_nothing_but_its_paths() -> None:
    async with port() as address:
        assert (await get(address, "/")).status == 404
        assert (await get(address, "/metrics/../secrets")).status == 404
        posted = await get(address, "/metrics", method="POST", head="Content-Length: 5\r\n")
        assert posted.status == 405
        assert "Allow: GET, HEAD" in posted.head
        assert (await get(address, "/metrics", head="X: " + "x" * 20_000 + "\r\n")).status == 431


@scene
async def test_clients_that_say_nothing_do_not_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_DEADLINE_S", 0.2)
    async with port() as address:
        silent = [await asyncio.open_connection(*host_and_port(address)) for _ in range(40)]
        for reader, writer in silent:
            async with asyncio.timeout(PATIENCE_S):
                assert await reader.read() == b"", "it was closed at its deadline, or at once as one too many"
            writer.close()
        assert (await get(address, "/health/live")).status == 200


@scene
async def test_one_too_many_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_DEADLINE_S", 3600.0)
    async with port() as address:
        silent = [await asyncio.open_connection(*host_and_port(address)) for _ in range(listening._MOST_CONNECTIONS)]
        for _, writer in silent:
            writer.write(b"GET ")
        reader, writer = await asyncio.open_connection(*host_and_port(address))
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()
        for _, writer in silent:
            writer.close()


@scene
async def test_what_breaks_is_a_500_and_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def breaks() -> listening.Answer:
        raise RuntimeError("a bug")

    listener = Listener({"/metrics": breaks}, host="127.0.0.1", port=0)
    listener.start()
    try:
        await until(lambda: bool(listener.address))
        answer = await get(listener.address, "/metrics")
        assert (answer.status, "bug" in answer.body) == (500, False)
        assert "a bug" in caplog.text
    finally:
        await listener.close()


@scene
async def test_a_port_that_is_taken_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = taken.getsockname()[1]
        hf = Holdfast(":memory:")
        with caplog.at_level(logging.INFO, logger="holdfast"):
            async with hf, watched(hf, place) as listener:
                await until(lambda: "cannot be served" in caplog.text)
                taken.close()
                await until(lambda: bool(listener.address))
                assert (await get(listener.address, "/health/live")).status == 200


def test_a_place_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="metrics_listen"):
        Holdfast(":memory:", metrics_listen="tcp://10.0.0.1:9464/x")
