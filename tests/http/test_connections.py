"""Connections of whoever sends slowly, without end, or nothing at all: each is given up, and others are served."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import NamedTuple

import httpx
import pytest
from tests.http.served import V1, Scene, listening, served
from tests.integration.scene import scene

from holdfast.http.connections import Connection, most_connections
from holdfast.http.serving import bind

PATIENCE_S = 20.0


async def _open(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """All that comes until it is closed."""
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    except ConnectionResetError:
        return b""


async def _is_served(api: Scene, address: str) -> bool:
    headers = {"Authorization": f"Bearer {await api.key()}"}
    async with httpx.AsyncClient(base_url=f"{address}{V1}", headers=headers, timeout=PATIENCE_S) as client:
        try:
            return (await client.get("/tasks")).is_success
        except httpx.TransportError:
            return False


@scene
async def test_a_head_without_end_is_not_kept() -> None:
    async with served() as api, listening(api) as (address, _):
        reader, writer = await _open(address)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Much: ")
        sent = 0
        try:
            while sent < 50_000_000:
                writer.write(b"a" * 100_000)
                await writer.drain()
                sent += 100_000
        except ConnectionError:
            pass
        writer.close()
        assert sent < 50_000_000
        assert (await _rest(reader)).partition(b"\r\n")[0] in (b"HTTP/1.1 400 Bad Request", b"")
        assert await _is_served(api, address)


CHUNKED = "Host: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begun", "more"),
    [(b"0\r\n", b"a:b\r\n" * 20_000), (b"0\r\na:", b"a" * 100_000), (b"1;", b"a" * 100_000)],
    ids=["trailers", "one_trailer", "extension_of_a_chunk"],
)
def test_what_comes_in_a_body_and_is_none_of_it_is_not_kept_without_end(begun: bytes, more: bytes) -> None:
    @scene
    async def check() -> None:
        async with served() as api, listening(api) as (address, _):
            _, writer = await _open(address)
            writer.write(f"POST {V1}/jobs HTTP/1.1\r\n{CHUNKED}".encode() + begun)
            sent = 0
            try:
                while sent < 50_000_000:
                    writer.write(more)
                    await writer.drain()
                    sent += len(more)
            except ConnectionError:
                pass
            writer.close()
            assert sent < 50_000_000
            assert await _is_served(api, address)

    check()


@scene
async def test_a_body_in_very_many_chunks_is_taken_however_long_their_lengths_are_together() -> None:
    async with served() as api, listening(api) as (address, _):
        reader, writer = await _open(address)
        key = f"Authorization: Bearer {await api.key()}\r\n"
        writer.write(f"POST {V1}/jobs HTTP/1.1\r\n{key}Connection: close\r\n{CHUNKED}".encode())
        for each in b'{"task": "shop.add", "args": [1]}':
            writer.write(b"1;" + b"e" * 10_000)
            await writer.drain()
            writer.write(b"\r\n%c\r\n" % each)
        writer.write(b"0\r\nX-Sum: 1\r\n\r\n")
        assert (await _rest(reader)).startswith(b"HTTP/1.1 202")
        writer.close()


@scene
async def test_a_key_that_comes_behind_the_body_opens_nothing() -> None:
    """What looks at heads before us has not seen it; and so it is with whatever else a head says."""
    async with served() as api, listening(api) as (address, _):
        reader, writer = await _open(address)
        late = f"0\r\nAuthorization: Bearer {await api.key()}\r\n\r\n"
        writer.write(f"GET {V1}/tasks HTTP/1.1\r\nConnection: close\r\n{CHUNKED}{late}".encode())
        assert (await _rest(reader)).startswith(b"HTTP/1.1 401")
        writer.close()


@pytest.mark.parametrize("begun", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_head_that_does_not_come_is_not_waited_for(begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "slowest_s", 0.1)

    @scene
    async def check() -> None:
        async with served() as api, listening(api) as (address, _):
            reader, writer = await _open(address)
            writer.write(begun)
            assert await _rest(reader) == b""
            writer.close()

    check()


@pytest.mark.parametrize("more", [b"\r\n", b"GET /health/live HTTP/1.1\r\n"])
def test_neither_is_that_of_a_second_request(more: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "slowest_s", 0.1)

    @scene
    async def check() -> None:
        async with served() as api, listening(api) as (address, _):
            reader, writer = await _open(address)
            writer.write(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"}")
            writer.write(more)
            assert await _rest(reader) == b""
            writer.close()

    check()


def test_nor_what_is_left_of_a_body_that_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "slowest_s", 0.1)

    @scene
    async def check() -> None:
        async with served() as api, listening(api) as (address, _):
            reader, writer = await _open(address)
            writer.write(f"POST {V1}/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n[".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 401")
            writer.write(b"1,")
            assert b"unauthenticated" in await _rest(reader)
            writer.close()

    check()


def test_whoever_sends_the_next_request_too_soon_has_the_answer_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "slowest_s", 0.05)

    @scene
    async def check() -> None:
        async with served() as api, listening(api) as (address, _):
            key = await api.key()  # before the connection is there: it would not be waited for
            reader, writer = await _open(address)
            body = b'{"task": "shop.add", "args": [1]}'
            writer.write(
                f"POST {V1}/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nPrefer: wait=1\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
                + b"GET /"
            )
            assert (await _rest(reader)).startswith(b"HTTP/1.1 202")
            writer.close()

    check()


def test_only_so_many_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "most", 5)
    assert 1 <= most_connections() <= 10_000

    @scene
    async def check() -> None:
        async with served() as api, listening(api) as (address, _):
            idle = [await _open(address) for _ in range(5)]
            for _, writer in idle:
                writer.write(b"GET")
            more, beyond = await _open(address)
            assert await _rest(more) == b""
            for writer in (beyond, *(writer for _, writer in idle)):
                writer.close()
                await writer.wait_closed()
            async with asyncio.timeout(PATIENCE_S):
                while not await _is_served(api, address):  # until the server has heard of it
                    pass

    check()


# ---------------------------------------------------------------- those who do not read

LONG = "x" * 900_000
CLOSE, KEEP = "Connection: close\r\n", ""


async def _ask_for_much(
    api: Scene, address: str, text: str = LONG, then: str = CLOSE
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Somebody who has asked for a long answer, and has hardly any room for it."""
    job, key = await api.hf.enqueue("shop.mail", text), await api.key()
    host, _, port = address.removeprefix("http://").partition(":")
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    place.setblocking(False)
    await asyncio.get_running_loop().sock_connect(place, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=place, limit=1024)
    head = f"GET {V1}/jobs/{job.id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    writer.write(f"{head}{then}\r\n".encode())
    return reader, writer


class Watched(NamedTuple):
    """What happens to connections from now on."""

    looks: asyncio.Queue[int]
    lost: asyncio.Event

    @classmethod
    def now(cls, patched: pytest.MonkeyPatch, *, every_s: float) -> Watched:
        made, look, lose = (
            cls(asyncio.Queue(), asyncio.Event()),
            Connection._look_whether_it_reads,
            Connection.connection_lost,
        )

        def looked(self: Connection, before: int | None = None) -> None:
            made.looks.put_nowait(self.transport.get_write_buffer_size())
            look(self, before)

        def lost(self: Connection, error: Exception | None) -> None:
            made.lost.set()
            lose(self, error)

        patched.setattr(Connection, "slowest_s", every_s)
        patched.setattr(Connection, "_look_whether_it_reads", looked)
        patched.setattr(Connection, "connection_lost", lost)
        return made


@scene
async def test_whoever_takes_nothing_of_a_long_answer_is_cut_off() -> None:
    with pytest.MonkeyPatch.context() as patched:
        async with served() as api, listening(api, unread=16_384) as (address, _):
            watched = Watched.now(patched, every_s=0.05)
            reader, writer = await _ask_for_much(api, address)
            await asyncio.wait_for(watched.lost.wait(), PATIENCE_S)
            assert len(await _rest(reader)) < len(LONG)
            writer.close()
            assert await _is_served(api, address)


@pytest.mark.parametrize("then", [KEEP, CLOSE])
def test_nor_is_whoever_leaves_only_little_of_it_kept(then: str) -> None:
    """Less than what a transport calls much: it is closed when it has been idle, which is when all has been taken."""

    @scene
    async def check() -> None:
        with pytest.MonkeyPatch.context() as patched:
            async with served() as api, listening(api, unread=16_384) as (address, _):
                watched = Watched.now(patched, every_s=0.05)
                reader, writer = await _ask_for_much(api, address, LONG[:75_000], then)
                await asyncio.wait_for(watched.lost.wait(), PATIENCE_S)
                assert 0 < watched.looks.get_nowait() < 64 * 1024
                assert len(await _rest(reader)) < 75_000
                writer.close()
                assert await _is_served(api, address)

    check()


@scene
async def test_whoever_reads_slowly_gets_all_of_it() -> None:
    with pytest.MonkeyPatch.context() as patched:
        async with served() as api, listening(api, unread=16_384) as (address, _):
            watched = Watched.now(patched, every_s=0.5)
            reader, writer = await _ask_for_much(api, address)
            left = [await asyncio.wait_for(watched.looks.get(), PATIENCE_S)]
            for _ in range(3):
                await reader.readexactly(100_000)
                left.append(await asyncio.wait_for(watched.looks.get(), PATIENCE_S))
            assert left == sorted(set(left), reverse=True), "each time it is looked, something has been taken"
            assert 300_000 + len(await _rest(reader)) > len(LONG)
            writer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what it keeps")
@scene
async def test_also_where_the_kernel_keeps_so_much_for_him_that_it_takes_no_more_for_long() -> None:
    with pytest.MonkeyPatch.context() as patched:
        async with served() as api, listening(api, unread=200_000) as (address, _):
            watched = Watched.now(patched, every_s=0.5)
            reader, writer = await _ask_for_much(api, address)
            left = [await asyncio.wait_for(watched.looks.get(), PATIENCE_S)]
            for _ in range(4):
                await reader.readexactly(10_000)
                left.append(await asyncio.wait_for(watched.looks.get(), PATIENCE_S))
            assert len(set(left[1:])) == 1, "nothing has been taken from us, each time it is looked"
            assert 40_000 + len(await _rest(reader)) > len(LONG)
            writer.close()


def test_an_answer_in_two_packets_does_not_wait_for_the_first_to_be_confirmed() -> None:
    """Which would take 40 ms of every request on a connection that is kept."""
    with bind("127.0.0.1", 0) as place, socket.create_connection(place.getsockname()[:2]):
        connection, _ = place.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
