"""Requests that last: how many there may be, and when they end, though nothing has happened that they wait for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import Depends, FastAPI
from tests.http.served import V1, listening, make_app, served
from tests.http.test_events import events
from tests.integration.scene import scene

from holdfast import JobInfo, StoreUnavailable
from holdfast.client.jobs import Jobs
from holdfast.core.job import JobId
from holdfast.http import HttpLimits, keyring, router
from holdfast.http.connections import Connection

PATIENCE_S = 20.0
ADD = {"task": "shop.add", "args": [1]}


async def _until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


def _client(address: str, key: str, **headers: str) -> httpx.AsyncClient:
    own = {"Authorization": f"Bearer {key}"} | headers
    return httpx.AsyncClient(base_url=f"{address}{V1}", headers=own, timeout=PATIENCE_S)


async def _connections(address: str, many: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, _, port = address.removeprefix("http://").partition(":")
    return [await asyncio.open_connection(host, int(port)) for _ in range(many)]


# ---------------------------------------------------------------- those who follow


@scene
async def test_a_body_may_be_longer_than_a_head_also_when_both_come_at_once() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Connection, "longest_head", 1024)
        async with served() as api, listening(api) as (address, _):
            body = b'{"task": "' + b"x" * 4096 + b'"}'
            head = (
                f"POST {V1}/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {await api.key()}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            [(reader, writer)] = await _connections(address, 1)
            writer.write(head.encode() + body)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 422"), "the task's name is what is too long"
            writer.close()


@scene
async def test_only_so_many_may_follow_when_very_many_ask_at_the_same_time() -> None:
    async with served(limits=HttpLimits(streams=3)) as api, listening(api) as (address, _):
        key, job = await api.key(), await api.hf.enqueue("shop.add", 1)
        request = f"GET {V1}/jobs/{job.id}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
        connections = await _connections(address, 40)
        for _, writer in connections:
            writer.write(request.encode())
        heads = [await reader.readuntil(b"\r\n\r\n") for reader, _ in connections]
        followed = [head for head in heads if head.startswith(b"HTTP/1.1 200")]
        refused = [head for head in heads if head.startswith(b"HTTP/1.1 503")]
        assert (len(followed), len(refused)) == (3, 37)
        assert all(b"retry-after: 5\r\n" in head and b"x-content-type-options" in head for head in refused)
        assert api.app.server.streams.count == 3
        for _, writer in connections:
            writer.close()
        await _until(lambda: api.app.server.streams.count == 0)


@scene
async def test_nor_where_an_app_does_something_between_the_question_and_the_answer() -> None:
    async def slow() -> AsyncIterator[None]:
        yield
        await asyncio.sleep(0.05)

    hf = make_app(":memory:")
    app = FastAPI()
    app.include_router(router(hf, limits=HttpLimits(streams=3)), dependencies=[Depends(slow, scope="function")])
    async with hf:
        key = (await hf.keys.create("tests", scopes=["read"])).text
        job = await hf.enqueue("shop.add", 1)
        told: list[int] = []
        headers = [(b"authorization", f"Bearer {key}".encode())]
        request = {"type": "http", "method": "GET", "path": f"{V1}/jobs/{job.id}/events", "headers": headers}

        async def follow() -> None:
            async def send(message: Any) -> None:
                if message["type"] == "http.response.start":
                    told.append(message["status"])

            await app({"query_string": b"", "client": ("192.0.2.1", 1), **request}, asyncio.Event().wait, send)

        asking = [asyncio.create_task(follow()) for _ in range(20)]
        await _until(lambda: len(told) == 20)
        assert (told.count(200), told.count(503)) == (3, 17)
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


@scene
async def test_whoever_follows_with_a_key_that_is_revoked_is_told_nothing_more() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keyring, "FRESH_S", 0.0)
        async with served() as api, listening(api) as (address, _):
            made = await api.hf.keys.create("tests", scopes=["read", "read-payload"])
            job = await api.hf.enqueue("shop.add", 1)
            async with _client(address, made.text) as client:
                async with client.stream("GET", f"/jobs/{job.id}/events") as response:
                    coming = events(response)
                    assert (await anext(coming)).kind == "changed"
                    await api.hf.keys.revoke(made.key.id)
                    async with api.hf.worker():
                        assert [each.kind async for each in coming] == ["reconnect"]
                assert (await client.get(f"/jobs/{job.id}/events")).status_code == 401


@scene
async def test_whoever_follows_a_job_that_is_moved_away_from_his_queues_is_told_nothing_more() -> None:
    async with served() as api, listening(api) as (address, _):
        key = await api.key("read", "read-payload", queues=["mail"])
        job = await api.hf.enqueue("shop.mail", "ada")
        async with (
            _client(address, key) as client,
            client.stream("GET", f"/jobs/{job.id}/events") as response,
        ):
            coming = events(response)
            assert (await anext(coming)).kind == "changed"
            await api.hf.jobs.move([job.id], queue="bank")
            async with api.hf.worker():
                left = [(each.kind, each.data) async for each in coming]
            assert left == [("gone", {})]
            assert (await client.get(f"/jobs/{job.id}")).status_code == 404


@scene
async def test_a_key_that_is_revoked_while_nothing_happens_keeps_no_place() -> None:
    async with served(limits=HttpLimits(quiet_s=0.05)) as api, listening(api) as (address, _):
        made = await api.hf.keys.create("tests", scopes=["read"])
        job = await api.hf.enqueue("shop.add", 1)
        async with (
            _client(address, made.text) as client,
            client.stream("GET", f"/jobs/{job.id}/events") as response,
        ):
            coming = events(response)
            await anext(coming)
            await api.hf.keys.revoke(made.key.id)
            assert [each.kind async for each in coming] == ["reconnect"]


@pytest.mark.parametrize("end", ["expires", "is rotated"])
def test_a_key_that_opens_no_more_ends_its_streams_within_the_time_of_a_quiet_one(end: str) -> None:
    @scene
    async def check() -> None:
        async with served(limits=HttpLimits(quiet_s=0.05)) as api, listening(api) as (address, _):
            made = await api.hf.keys.create("tests", scopes=["read"], expires=2 if end == "expires" else None)
            job = await api.hf.enqueue("shop.add", 1)
            async with (
                _client(address, made.text) as client,
                client.stream("GET", f"/jobs/{job.id}/events") as response,
            ):
                coming = events(response)
                assert (await anext(coming)).kind == "changed"
                if end == "is rotated":
                    await api.hf.keys.rotate(made.key.id)
                assert [each.kind async for each in coming] == ["reconnect"]
            await _until(lambda: api.app.server.streams.count == 0)

    check()


# ---------------------------------------------------------------- those who wait


@scene
async def test_a_wait_ends_when_its_client_has_gone() -> None:
    async with served() as api, listening(api) as (address, _):
        body = b'{"task": "shop.add", "args": [1]}'
        head = (
            f"POST {V1}/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {await api.key()}\r\nPrefer: wait=60\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connections = await _connections(address, 10)
        for _, writer in connections:
            writer.write(head.encode() + body)
        await _until(lambda: api.app.server.waits.count == 10)
        for _, writer in connections:
            writer.close()
        await _until(lambda: api.app.server.waits.count == 0)
        assert len(await api.hf.jobs.list()) == 10


@scene
async def test_when_the_server_stops_whoever_waits_is_told_that_his_job_is_stored() -> None:
    async with served() as api, listening(api, grace_s=1.0) as (address, signals):
        async with _client(address, await api.key(), Prefer="wait=60") as client:
            waiting = asyncio.create_task(client.post("/jobs", json=ADD))
            await _until(lambda: api.app.server.waits.count == 1)
            signals.note(signal.SIGTERM)
            answer = await waiting
        assert (answer.status_code, answer.json()["replayed"]) == (202, False)


@scene
async def test_more_than_may_wait_are_answered_at_once() -> None:
    async with (
        served(limits=HttpLimits(waits=1)) as api,
        listening(api) as (address, _),
        _client(address, await api.key(), Prefer="wait=60") as client,
    ):
        waiting = asyncio.create_task(client.post("/jobs", json=ADD))
        await _until(lambda: api.app.server.waits.count == 1)
        assert (await client.post("/jobs", json=ADD)).status_code == 202
        async with api.hf.worker():
            assert (await waiting).status_code == 200


async def _dead_end(jobs: Jobs, job_ids: list[JobId | str]) -> list[JobInfo | None]:
    raise StoreUnavailable("it has just gone away")


@scene
async def test_a_job_that_is_stored_and_that_nobody_can_look_for_is_told_of_as_stored() -> None:
    """To answer with 503 would say that nothing was done, and it would be sent again."""
    with pytest.MonkeyPatch.context() as patched:
        async with served() as api, api.client(await api.key(), Prefer="wait=20") as client, api.hf.worker():
            patched.setattr(Jobs, "get_many", _dead_end)
            answer = await client.post("/jobs", json=ADD)
            assert answer.status_code == 202
            patched.undo()
            assert [str(job.id) for job in await api.hf.jobs.list()] == [answer.json()["id"]]
