"""Five hundred clients that follow jobs of one process: what each costs, and that those who do not read are let go."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.http.served import V1
from tests.integration.scene import scene

ROOT = Path(__file__).parents[2]
MANY, GONE, SLOW = 500, 25, 25
MOST_EACH = 64 * 1024
PATIENCE_S = 30.0


class Server:
    """Another process, and what it says of itself."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.address, self.key, self.jobs = json.loads(process.stdout.readline())

    async def do(self, command: str) -> dict[str, int]:
        return await asyncio.to_thread(self._do, command)

    def _do(self, command: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    async def until(self, **wanted: int) -> dict[str, int]:
        """What it says once it is so."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.do("look")
                if all(found[name] == value for name, value in wanted.items()):
                    return found


@contextmanager
def another_process() -> Iterator[Server]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    with subprocess.Popen(
        [sys.executable, "-m", "tests.http.crowd_server"], cwd=ROOT, env=os.environ | {"PYTHONPATH": paths},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield Server(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


class Follower:
    """One client, with as little room for what it has not read as it can have."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def of(cls, server: Server, job: str) -> Follower:
        host, _, port = server.address.removeprefix("http://").partition(":")
        place = socket.socket()
        place.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        place.setblocking(False)
        await asyncio.get_running_loop().sock_connect(place, (host, int(port)))
        made = cls(*await asyncio.open_connection(sock=place, limit=65_536))
        request = f"GET {V1}/jobs/{job}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n\r\n"
        made._writer.write(request.encode())
        return made

    async def until(self, said: str) -> None:
        """Read on, until this has come."""
        async with asyncio.timeout(PATIENCE_S):
            while said.encode() not in await self._reader.readline():
                assert not self._reader.at_eof()

    def stop_reading(self) -> None:
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is that of a socket

    def go(self) -> None:
        self._writer.transport.abort()


@scene
async def test_five_hundred_follow_and_each_costs_little_whatever_some_of_them_do() -> None:
    with another_process() as server:
        quiet = await server.do("look")
        for _ in range(2):  # what is made once, and what the allocator keeps, is nobody's
            await _all_go(await _many(server, MANY // 5))
            before = await server.until(streams=0, sockets=quiet["sockets"])
        crowd = await _many(server, MANY)
        there = await server.until(streams=MANY, sockets=quiet["sockets"] + MANY)
        assert (there["memory"] - before["memory"]) / MANY < MOST_EACH

        gone, slow, rest = crowd[:GONE], crowd[GONE : GONE + SLOW], crowd[GONE + SLOW :]
        await _all_go(gone)
        for each in slow:
            each.stop_reading()
        left, stirs = MANY, 0
        while left > len(rest):
            priority = 6 + stirs % 2
            await server.do(str(priority))
            await asyncio.gather(*(each.until(f'"priority":{priority}') for each in rest))
            left, stirs = (await server.do("look"))["streams"], stirs + 1
            assert stirs < 100, "those who do not read are given up"
        after = await server.until(streams=len(rest), sockets=quiet["sockets"] + len(rest))
        assert (after["memory"] - before["memory"]) / MANY < 2 * MOST_EACH

        await asyncio.gather(server.do("work"), *(each.until("event: ended") for each in rest))
        await _all_go(rest + slow)
        await server.until(streams=0, sockets=quiet["sockets"])


async def _many(server: Server, count: int) -> list[Follower]:
    """Those who follow, each of whom has been told of its job."""
    found = [await Follower.of(server, server.jobs[number % len(server.jobs)]) for number in range(count)]
    await asyncio.gather(*(each.until("event: changed") for each in found))
    return found


async def _all_go(followers: list[Follower]) -> None:
    for each in followers:
        each.go()
