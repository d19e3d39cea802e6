"""The Python client says a certain no only where it is one: a try without an answer may yet be carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from tests.http.served import V1, Scene, listening, served
from tests.integration.scene import scene

from holdfast import (
    ApiRefused,
    Holdfast,
    IdempotencyConflict,
    JobNotFound,
    NotUnique,
    OutcomeUnknown,
    QueueFull,
    Unique,
)
from holdfast.client.http import HttpClient

FULL_AT_ONE = {"high_watermark": 1, "low_watermark": 0}


class _Late(httpx.AsyncBaseTransport):
    """A proxy that keeps the first request, tells the client something else of it, and delivers it when told to."""

    def __init__(self, instead: httpx.Response | Exception) -> None:
        self.deliver: Callable[[], Awaitable[int]] | None = None
        self._instead = instead
        self._server = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.deliver is not None:
            return await self._server.handle_async_request(request)
        kept = httpx.Request(request.method, request.url, headers=request.headers, content=await request.aread())

        async def deliver() -> int:
            answer = await self._server.handle_async_request(kept)
            await answer.aread()
            return answer.status_code

        self.deliver = deliver
        if isinstance(self._instead, Exception):
            raise self._instead
        return self._instead

    async def aclose(self) -> None:
        await self._server.aclose()


def _no_answer() -> httpx.Response | Exception:
    return httpx.ReadTimeout("no answer")


def _proxys_own() -> httpx.Response | Exception:
    return httpx.Response(504, text="<html>Gateway Time-out</html>", headers={"Retry-After": "0"})


def _nobody_knows() -> httpx.Response | Exception:
    said = {"type": "urn:holdfast:problem:outcome-unknown", "detail": "it may or may not have been done"}
    return httpx.Response(503, json=said, headers={"Retry-After": "0"})


@pytest.mark.parametrize("first", [_no_answer, _proxys_own, _nobody_knows])
@pytest.mark.parametrize("refusal", [NotUnique, QueueFull])
def test_a_refusal_after_a_try_without_an_answer_is_none(
    first: Callable[[], httpx.Response | Exception], refusal: type[Exception]
) -> None:
    @scene
    async def check() -> None:
        settings: dict[str, Any]
        options: dict[str, Any]
        settings, options = (FULL_AT_ONE, {}) if refusal is QueueFull else ({}, {"unique": Unique()})
        async with served(settings=settings) as api, listening(api) as (address, _):
            in_the_way = await api.hf.named("shop.add").options(**options).enqueue(1)
            late = _Late(first())
            async with HttpClient(f"{address}{V1}", await api.key(), transport=late, retries=1) as client:
                with pytest.raises(OutcomeUnknown, match=r"earlier try.*'mine'") as doubt:
                    await client.submit("shop.add", [1], key="mine", tags=["mine"], **options)
                assert isinstance(doubt.value.__cause__, refusal)
                await in_the_way.cancel()
                await _wait_for_room(api.hf)
                assert late.deliver is not None
                assert await late.deliver() == 202
                assert await api.hf.jobs.count(tag="mine") == 1, "it was carried out after all"
                again = await client.submit("shop.add", [1], key="mine", tags=["mine"], **options)
                assert again.existing, "the same key tells"

    check()


async def _wait_for_room(hf: Holdfast) -> None:
    while not all(queue.accepting for queue in await hf.queues.list()):
        await asyncio.sleep(0.01)


@scene
async def test_answers_that_are_lost_leave_it_open_with_the_key_that_finds_it_out() -> None:
    async with served() as api, listening(api) as (address, _), httpx.AsyncHTTPTransport() as server:
        keys: list[str] = []

        async def lose(request: httpx.Request) -> httpx.Response:
            keys.append(request.headers["Idempotency-Key"])
            await (await server.handle_async_request(request)).aread()
            raise httpx.ReadTimeout("lost")

        transport = httpx.MockTransport(lose)
        async with HttpClient(f"{address}{V1}", await api.key(), transport=transport, retries=1) as client:
            with pytest.raises(OutcomeUnknown) as doubt:
                await client.enqueue("shop.add", 1)
        assert len(keys) == 2
        assert repr(keys[0]) in str(doubt.value)
        [stored] = await api.hf.jobs.list()
        async with HttpClient(f"{address}{V1}", await api.key()) as client:
            assert (await client.submit("shop.add", [1], key=keys[0])).id == stored.id


async def _refused(api: Scene, address: str, error: Exception, *, full: bool) -> Any:
    key = await api.key() if full else "hf_revoked"
    late = _Late(error)
    async with HttpClient(f"{address}{V1}", key, transport=late, retries=1) as client:
        with pytest.raises((ApiRefused, QueueFull, OutcomeUnknown)) as refused:
            await client.enqueue("shop.add", 2)
    return type(refused.value)


@scene
async def test_a_connection_that_was_not_made_leaves_nothing_open() -> None:
    never_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
    async with served(settings=FULL_AT_ONE) as api, listening(api) as (address, _):
        await api.hf.enqueue("shop.add", 1)
        for kind in never_sent:
            assert await _refused(api, address, kind("no"), full=True) is QueueFull, kind
            assert await _refused(api, address, kind("no"), full=False) is ApiRefused, kind
        for kind in (httpx.WriteError, httpx.RemoteProtocolError):
            assert await _refused(api, address, kind("no"), full=False) is OutcomeUnknown, kind
        nowhere = HttpClient("http://127.0.0.1:9", "hf_x", retries=1)
        async with nowhere:
            with pytest.raises(ApiRefused, match="cannot be reached"):
                await nowhere.enqueue("shop.add", 1)


@scene
async def test_what_is_for_certain_is_said_as_before() -> None:
    """A key that is another call's is so for the first try too; and a question leaves nothing open."""
    async with served() as api, listening(api) as (address, _):
        await api.hf.named("shop.add").options(key="taken").enqueue(1)
        late = _Late(httpx.ReadTimeout("no answer"))
        async with HttpClient(f"{address}{V1}", await api.key(), transport=late, retries=1) as client:
            with pytest.raises(IdempotencyConflict):
                await client.submit("shop.add", [2], key="taken")
        late = _Late(httpx.ReadTimeout("no answer"))
        async with HttpClient(f"{address}{V1}", await api.key(), transport=late, retries=1) as client:
            with pytest.raises(JobNotFound):
                await client.get("01890a5d-ac96-774b-bcce-b302099a8057")
