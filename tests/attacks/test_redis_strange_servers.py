"""Servers in place of a Redis that say what no Redis says, or say it late: waited for, never believed, never quoted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.proxies.redis import RedisProxy
from tests.redis.apps import Shop, until
from tests.redis.test_connection import Watched, refusal

from holdfast.local import LocalRedis
from holdfast.telemetry.transport_events import TransportDown, TransportUp
from holdfast.transports.redis_streams.keys import lanes_of

LANES = lanes_of("default")
PASSWORD = "hunter2-" + 30 * "correct horse "


@contextlib.asynccontextmanager
async def knows_no_auth(quoted: int) -> AsyncIterator[int]:
    """A server whose AUTH was renamed: it repeats so much of what it was sent, as Redis does."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while words := (await reader.read(65536)).split(b"\r\n")[2::2]:
            said = b"' '".join(word[:quoted] for word in words[1:])
            writer.write(b"-ERR unknown command 'AUTH', with args beginning with: '" + said + b"' \r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("quoted", [128, 10_000])
@pytest.mark.parametrize("login", ["{}", "somebody:{}"])
@scene
async def test_a_server_that_repeats_the_password_is_not_repeated(quoted: int, login: str) -> None:
    async with knows_no_auth(quoted) as port:
        transport = Watched(f"redis://{login.format(':' + PASSWORD).replace('::', ':')}@127.0.0.1:{port}/0")
        await transport.open()
        [down] = [event for event in transport.told if isinstance(event, TransportDown)]
        await transport.close()
    assert "unknown command" in down.error
    assert "hunter2" not in down.error


@scene
async def test_a_sentinel_that_repeats_the_password_is_not_repeated() -> None:
    async with knows_no_auth(128) as port:
        transport = Watched(f"redis+sentinel://127.0.0.1:{port}/main?sentinel_password={PASSWORD}")
        await transport.open()
        [down] = [event for event in transport.told if isinstance(event, TransportDown)]
        await transport.close()
    assert "unknown command" in down.error
    assert "hunter2" not in down.error


@pytest.mark.parametrize("answer", [":1", "$-1", "*0", "#t", "*1\r\n*1\r\n:1"])
@scene
async def test_answers_that_no_redis_gives_are_waited_out(
    postgres_tables: PostgresSchema, own_redis: LocalRedis, answer: str
) -> None:
    """The way back ended with the first of them: this process would never have used Redis again, nor closed well."""
    with RedisProxy(own_redis) as proxy:
        here = Shop(postgres_tables, proxy.url)
        async with here.hf, here.hf.worker():
            await here.enqueue(0)
            await here.until_ran(1)
            proxy.answer(answer)
            await here.enqueue(1)
            await here.until_ran(2)
            await until(lambda: bool(here.told(TransportDown)), "its loss")
            # One more attempt at least has met it when this one, which begins later, has.
            late = Watched(proxy.url)
            await late.open()
            assert "what answers is no Redis" in late.told[0].error  # type: ignore[attr-defined]
            await late.close()
            proxy.answer(None)
            await until(lambda: bool(here.told(TransportUp)), "Redis to be used again")


@scene
async def test_a_file_with_a_password_that_is_no_text_is_refused_and_not_shown(
    own_redis: LocalRedis, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"hunter2\xff\xfe")
    said = await refusal(f"redis://127.0.0.1:{own_redis.port}/0?passfile={file}")
    assert "is no text in UTF-8" in said
    assert "hunter2" not in said


@scene
async def test_a_server_that_becomes_slow_before_a_worker_comes_holds_it_up_for_a_moment_only(
    own_redis: LocalRedis,
) -> None:
    """Six answers, each of them in time by itself: a worker that began to read had to wait for all."""
    loop = asyncio.get_running_loop()
    with RedisProxy(own_redis) as proxy:
        transport = Watched(proxy.url)
        await transport.open()
        proxy.delay(0.9)
        consumer = transport.consumer("worker", wake=lambda: None)
        began_s = loop.time()
        assert (await consumer.read(dict.fromkeys(LANES, 1))).entries == []
        assert loop.time() - began_s < 3.0
        assert not transport.is_up
        await consumer.close()
        await transport.close()
