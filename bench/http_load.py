"""Submissions through a real server: 64 connections against the API on PostgreSQL, and against an empty handler.

python -m bench.http_load api URL SCHEMA    serves the API; prints its address and a key
python -m bench.http_load bare              serves the same FastAPI, and a handler that does nothing
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from bench.race import Figures
from holdfast import Holdfast
from holdfast.http import HttpLimits, asgi
from holdfast.http.serving import address_of, bind, serve
from holdfast.runtime.loop import run_loop
from holdfast.runtime.signals import stop_signals

CONNECTIONS = 64
FOLLOWERS = 500
_TASK = "bench.noop"
_FREE = HttpLimits(rate="1000000/s", streams=2 * FOLLOWERS)


class Call(BaseModel):
    """What the empty handler takes: as much as a submission, so that both read and check a body."""

    task: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}


def bare() -> FastAPI:
    """The app to compare with."""
    app = FastAPI()

    @app.post("/api/v1/jobs", status_code=202)
    async def submit(body: Call) -> dict[str, str]:
        return {"id": "01890a5d-ac96-774b-bcce-b302099a8057", "location": body.task}

    return app


async def _serve_api(url: str) -> None:
    hf = Holdfast(url, high_watermark=1_000_000_000)

    @hf.task(name=_TASK)
    async def noop(number: int) -> None: ...

    await hf.migrate()
    async with stop_signals() as signals, hf:
        key = await hf.keys.create("bench", scopes=["submit", "read"])
        with bind("127.0.0.1", 0) as place:
            told = f"{address_of(place)} {key.text}"
            app = asgi(hf, limits=_FREE)
            await serve(app, place, signals, grace_s=5, started=lambda: print(told, flush=True))


async def _serve_bare() -> None:
    app: Any = bare()
    app.server = _Nothing()
    async with stop_signals() as signals:
        with bind("127.0.0.1", 0) as place:
            told = f"{address_of(place)} -"
            await serve(app, place, signals, grace_s=5, started=lambda: print(told, flush=True))


class _Nothing:
    def stop_streams(self) -> None: ...

    def stop_waits(self) -> None: ...


# ---------------------------------------------------------------- the load


@contextlib.contextmanager
def _running(*words: str) -> Iterator[tuple[subprocess.Popen[str], str, int, str]]:
    command = [sys.executable, "-m", "bench.http_load", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address, key = process.stdout.readline().split()
            host, _, port = address.removeprefix("http://").partition(":")
            yield process, host, int(port), key
        finally:
            process.terminate()
            process.wait()


def submissions(url: str | None, requests: int) -> Figures:
    """Answers per second, and milliseconds at the median and for the slowest hundredth."""
    with _running(*(["bare"] if url is None else ["api", url])) as (_, host, port, key):
        asyncio.run(_load(host, port, key, requests // 10))  # everything is warm then
        return asyncio.run(_load(host, port, key, requests))


async def _load(host: str, port: int, key: str, requests: int) -> Figures:
    body = json.dumps({"task": _TASK, "args": [7]}).encode()
    lines = ("POST /api/v1/jobs HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {key}")
    kind = ("Content-Type: application/json", f"Content-Length: {len(body)}", "", "")
    request = "\r\n".join((*lines, *kind)).encode() + body
    took: list[float] = []
    left = iter(range(requests))
    began = time.perf_counter()
    await asyncio.gather(*(_connection(host, port, request, left, took) for _ in range(CONNECTIONS)))
    passed = time.perf_counter() - began
    cuts = statistics.quantiles(took, n=100)
    return len(took) / passed, cuts[49] * 1000, cuts[98] * 1000


async def _connection(host: str, port: int, request: bytes, left: Iterator[int], took: list[float]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        for _ in left:
            asked = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 202"), head[:200]
            length = int(head.lower().partition(b"content-length:")[2].split(None, 1)[0])
            await reader.readexactly(length)
            took.append(time.perf_counter() - asked)
    finally:
        writer.close()


# ---------------------------------------------------------------- those who follow


def followers(url: str) -> Figures:
    """Megabytes of the server before, with 500 clients that follow a job each, and after they have gone."""
    with _running("api", url) as (process, host, port, key):
        return asyncio.run(_follow(process.pid, host, port, key))


async def _follow(pid: int, host: str, port: int, key: str) -> Figures:
    await _load(host, port, key, CONNECTIONS)
    own = f"Host: {host}\r\nAuthorization: Bearer {key}\r\n"
    ids = [await _submit(host, port, own) for _ in range(FOLLOWERS)]
    before = _megabytes(pid)
    streams = [await asyncio.open_connection(host, port) for _ in range(FOLLOWERS)]
    for job, (reader, writer) in zip(ids, streams, strict=True):
        writer.write(f"GET /api/v1/jobs/{job}/events HTTP/1.1\r\n{own}\r\n".encode())
        await reader.readuntil(b"event: changed")
    during = _megabytes(pid)
    for _, writer in streams:
        writer.close()
    await _load(host, port, key, CONNECTIONS)
    return before, during, _megabytes(pid)


async def _submit(host: str, port: int, own: str) -> str:
    reader, writer = await asyncio.open_connection(host, port)
    body = json.dumps({"task": _TASK, "args": [7]})
    head = f"POST /api/v1/jobs HTTP/1.1\r\n{own}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    length = int(answer.lower().partition(b"content-length:")[2].split(None, 1)[0])
    told = json.loads(await reader.readexactly(length))
    writer.close()
    return str(told["id"])


def _megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


if __name__ == "__main__":
    run_loop(_serve_bare() if sys.argv[1] == "bare" else _serve_api(sys.argv[2]))
