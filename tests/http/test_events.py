"""Follow jobs over a real connection: every change, once; again after a break; many at once, slow and gone ones too."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx
from tests.http.served import V1, Scene, listening, served
from tests.integration.scene import scene

from holdfast import current_job
from holdfast.http import HttpLimits

PATIENCE_S = 20.0


class Event(NamedTuple):
    """One that came."""

    kind: str
    id: str | None
    data: dict[str, Any]


async def events(response: httpx.Response) -> AsyncIterator[Event]:
    """As a browser would read them; comments are left out."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
        elif not line:
            if "data" in fields:
                yield Event(fields.get("event", "message"), fields.get("id"), json.loads(fields["data"]))
            fields = {}


def _steps(api: Scene) -> tuple[asyncio.Event, asyncio.Event]:
    """A task that goes on when it is told to; the second event is set when it has begun."""
    go, began = asyncio.Event(), asyncio.Event()

    @api.hf.task(name="shop.steps")
    async def steps() -> str:
        began.set()
        await go.wait()
        await current_job().progress(1, 2, "halfway")
        return "done"

    return go, began


async def _client(api: Scene, address: str, **headers: str) -> httpx.AsyncClient:
    own = {"Authorization": f"Bearer {await api.key()}"} | headers
    return httpx.AsyncClient(base_url=f"{address}{V1}", headers=own, timeout=PATIENCE_S)


@scene
async def test_a_job_is_followed_from_its_beginning_to_its_end() -> None:
    async with served() as api, listening(api) as (address, _), await _client(api, address) as client:
        go, began = _steps(api)
        job = await api.hf.enqueue("shop.steps")
        async with client.stream("GET", f"/jobs/{job.id}/events") as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            assert response.headers["Cache-Control"] == "no-store"
            coming = events(response)
            first = await anext(coming)
            assert (first.kind, first.data["state"]) == ("changed", "ready")
            async with api.hf.worker():
                await began.wait()
                second = await anext(coming)
                assert (second.kind, second.data["state"]) == ("changed", "running")
                go.set()
                rest = [each async for each in coming]
        last = rest[-1]
        assert (last.kind, last.data["state"], last.data["payload"]["result"]) == ("ended", "succeeded", "done")
        assert last.data["stage"] == "halfway"
        assert len({each.id for each in (first, second, *rest)}) == 2 + len(rest), "nothing is told twice"


@scene
async def test_whoever_comes_again_is_told_what_is_new() -> None:
    async with served() as api, listening(api) as (address, _), await _client(api, address) as client:
        job = await api.hf.enqueue("shop.add", 1)
        path = f"/jobs/{job.id}/events"
        async with client.stream("GET", path) as response:
            seen = await anext(events(response))
        after = {"Last-Event-ID": seen.id or ""}
        async with client.stream("GET", path, headers=after) as response, api.hf.worker():
            [*_, last] = [each async for each in events(response)]
        assert (last.kind, last.data["state"]) == ("ended", "succeeded")
        again = await client.get(path, headers={"Last-Event-ID": seen.id or ""})
        assert "event: ended" in again.text
        over = await client.get(path, headers={"Last-Event-ID": last.id or ""})
        assert (over.status_code, over.content) == (204, b""), "a browser does not come again after this"


@scene
async def test_when_the_server_stops_everybody_is_told_to_come_again() -> None:
    async with served() as api, listening(api) as (address, signals), await _client(api, address) as client:
        job = await api.hf.enqueue("shop.add", 1)
        async with client.stream("GET", f"/jobs/{job.id}/events") as response:
            coming = events(response)
            await anext(coming)
            signals.note(signal.SIGTERM)
            assert [each.kind async for each in coming] == ["reconnect"]


@scene
async def test_a_stream_does_not_last_for_ever_and_says_so() -> None:
    limits = HttpLimits(stream_s=0.2, quiet_s=0.05)
    async with served(limits=limits) as api, listening(api) as (address, _), await _client(api, address) as client:
        job = await api.hf.enqueue("shop.add", 1)
        text = (await client.get(f"/jobs/{job.id}/events")).text
        assert text.startswith("retry: 1000\n\n")
        assert ": nothing new\n\n" in text
        assert text.endswith("event: reconnect\ndata: {}\n\n")


@scene
async def test_only_so_many_may_follow_at_once() -> None:
    few = HttpLimits(streams=2)
    async with served(limits=few) as api, listening(api) as (address, _), await _client(api, address) as client:
        job = await api.hf.enqueue("shop.add", 1)
        path = f"/jobs/{job.id}/events"
        async with client.stream("GET", path) as one, client.stream("GET", path) as two:
            first, second = events(one), events(two)  # kept: whoever lets go of them closes the connection
            await anext(first)
            await anext(second)
            refused = await client.get(path)
            assert (refused.status_code, refused.json()["type"]) == (503, "urn:holdfast:problem:too-many-streams")
            assert refused.headers["Retry-After"] == "5"
        await _until(lambda: api.app.server.streams.count == 0)
        async with client.stream("GET", path) as response:
            assert (await anext(events(response))).kind == "changed", "there is room again"


@scene
async def test_a_client_that_has_gone_or_reads_nothing_is_given_up() -> None:
    limits = HttpLimits(stalled_s=0.2, quiet_s=0.02)
    async with served(limits=limits) as api, listening(api) as (address, _):
        job = await api.hf.enqueue("shop.add", 1)
        host, _, port = address.removeprefix("http://").partition(":")
        _, gone = await asyncio.open_connection(host, int(port))
        request = (
            f"GET {V1}/jobs/{job.id}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {await api.key()}\r\n\r\n"
        )
        gone.write(request.encode())
        await _until(lambda: api.app.server.streams.count == 1)
        gone.close()
        await _until(lambda: api.app.server.streams.count == 0)


async def _until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


@scene
async def test_many_clients_share_one_question() -> None:
    async with served() as api, listening(api) as (address, _):
        asked: list[int] = []
        get_many = api.hf.jobs.get_many

        async def counted(ids: Any) -> Any:
            asked.append(len(ids))
            return await get_many(ids)

        jobs = [await api.hf.enqueue("shop.add", n) for n in range(100)]
        limits = httpx.Limits(max_connections=200)
        key = {"Authorization": f"Bearer {await api.key('read')}"}
        async with httpx.AsyncClient(
            base_url=f"{address}{V1}", headers=key, timeout=PATIENCE_S, limits=limits
        ) as client:
            begun = [asyncio.Event() for _ in jobs]

            async def follow(job: Any, event: asyncio.Event) -> str:
                async with client.stream("GET", f"/jobs/{job.id}/events") as response:
                    states = []
                    async for each in events(response):
                        states.append(each.data["state"])
                        event.set()
                    return str(states[-1])

            following = [asyncio.create_task(follow(*each)) for each in zip(jobs, begun, strict=True)]
            await asyncio.gather(*(each.wait() for each in begun))
            api.hf.jobs.get_many = counted  # type: ignore[method-assign]
            async with api.hf.worker():
                assert set(await asyncio.gather(*following)) == {"succeeded"}
        assert len(asked) < 100, "not one for each of them"
        assert max(asked) <= 200
