"""How the Python client follows a job: whatever its result holds, and whatever becomes of the streams."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.http.served import V1, Scene, listening, served
from tests.integration.scene import scene

from holdfast import ApiRefused, JobInfo
from holdfast.client.http import HttpClient, SyncHttpClient
from holdfast.client.http.event_reader import EventReader, StreamEvent

#: Where Python's `str.splitlines` ends a line; a stream of events does so at the first two alone.
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def _with_echo(api: Scene) -> None:
    @api.hf.task(name="shop.echo")
    async def echo(text: str) -> str:
        return text


@scene
async def test_a_result_may_hold_whatever_ends_a_line_elsewhere() -> None:
    async with served() as api, listening(api) as (address, _):
        _with_echo(api)
        key = await api.key()
        said = [f"a{end}b" for end in LINE_ENDS]

        def wait_for_all() -> list[Any]:
            with SyncHttpClient(f"{address}{V1}", key) as client:
                return [client.enqueue("shop.echo", each).result(timeout=10) for each in said]

        async with api.hf.worker(), HttpClient(f"{address}{V1}", key) as client:
            jobs = [await client.enqueue("shop.echo", each) for each in said]
            assert [await job.result(timeout=10) for job in jobs] == said
            assert await asyncio.to_thread(wait_for_all) == said


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_events_are_read_however_they_are_cut(end: bytes, size: int) -> None:
    lines = ["retry: 1000", "", ": nothing new", "", "id: a1", "event: ended", 'data: {"x": "é\u2028"}', "", "id: b"]
    stream = end.join(line.encode() for line in lines)
    reader = EventReader()
    chunks = (stream[at : at + size] for at in range(0, len(stream), size))
    read = [event for chunk in chunks for event in reader.feed(chunk)]
    assert read == [StreamEvent("ended", "a1", '{"x": "é\u2028"}'.encode())], "what has no end yet is no event"


@scene
async def test_a_stream_that_is_not_the_apis_is_an_error_of_the_librarys() -> None:
    page = httpx.MockTransport(lambda request: httpx.Response(200, content=b"data: \xff welcome\n\n"))
    async with HttpClient("http://proxy", "hf_x", transport=page) as client:
        with pytest.raises(ApiRefused, match="not as the API does"):
            await anext(client.events("01890a5d-ac96-774b-bcce-b302099a8057"))


class _CuttingOff(httpx.AsyncBaseTransport):
    """A proxy that ends the first streams at once, in one of two ways, and passes on the others."""

    def __init__(self, streams: int, *, repeating: bytes = b"", breaking: bool = False) -> None:
        self.asked_at: list[float] = []
        self._left = streams
        self._repeating = repeating
        self._breaking = breaking
        self._server = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked_at.append(asyncio.get_running_loop().time())
        self._left -= 1
        if self._left < 0:
            return await self._server.handle_async_request(request)
        return httpx.Response(200, stream=_Cut(self._repeating, self._breaking))

    async def aclose(self) -> None:
        await self._server.aclose()


class _Cut(httpx.AsyncByteStream):
    def __init__(self, told: bytes, breaking: bool) -> None:
        self._told = told
        self._breaking = breaking

    async def __aiter__(self) -> Any:
        yield self._told
        if self._breaking:
            raise httpx.ReadError("cut off")


@pytest.mark.parametrize("breaking", [False, True])
def test_streams_that_bring_nothing_new_are_asked_for_ever_more_rarely(breaking: bool) -> None:
    @scene
    async def check() -> None:
        async with served() as api, listening(api) as (address, _):
            proxy = _CuttingOff(3, breaking=breaking)
            job = await api.hf.enqueue("shop.add", 1)
            async with HttpClient(f"{address}{V1}", await api.key(), transport=proxy) as client, api.hf.worker():
                [*_, last] = [each async for each in client.events(job.id)]
            assert last.state == "succeeded"
            rests = [after - before for before, after in zip(proxy.asked_at, proxy.asked_at[1:], strict=False)]
            assert all(rest >= least for rest, least in zip(rests[:3], (0.2, 0.4, 0.8), strict=True)), rests

    check()


@scene
async def test_what_is_told_again_is_nothing_new() -> None:
    """As by a proxy that keeps answers."""
    async with served() as api, listening(api) as (address, _):
        key = await api.key()
        job = await api.hf.enqueue("shop.add", 1)
        told = await _first_event(address, key, str(job.id))
        proxy = _CuttingOff(3, repeating=told)
        async with HttpClient(f"{address}{V1}", key, transport=proxy) as client, api.hf.worker():
            seen: list[JobInfo] = [each async for each in client.events(job.id)]
        assert seen[-1].state == "succeeded"
        first, second, third = proxy.asked_at[1:4]
        assert (second - first >= 0.2, third - second >= 0.4) == (True, True), proxy.asked_at


async def _first_event(address: str, key: str, job_id: str) -> bytes:
    told = b""
    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http,
        http.stream("GET", f"{address}{V1}/jobs/{job_id}/events") as answer,
    ):
        async for chunk in answer.aiter_bytes():
            told += chunk
            if b"data: " in told and told.endswith(b"\n\n"):
                break
    return told
