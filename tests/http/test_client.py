"""The Python client: the same handles and the same errors as in process, through breaks and restarts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import httpx
import pytest
from tests.http.served import V1, Scene, listening, served
from tests.integration.scene import scene

from holdfast import (
    ApiRefused,
    CancelAnswer,
    IdempotencyConflict,
    InvalidArguments,
    InvalidOptions,
    JobCancelled,
    JobFailed,
    JobNotFound,
    QueueFull,
    UnknownTask,
)
from holdfast.client.http import HttpClient, SyncHttpClient


async def _client(api: Scene, *scopes: str, **options: Any) -> HttpClient:
    return HttpClient(f"http://api{V1}", await api.key(*scopes), transport=api.transport, **options)


async def _real(api: Scene, address: str) -> HttpClient:
    return HttpClient(f"{address}{V1}", await api.key())


@scene
async def test_a_job_is_submitted_followed_and_its_result_returned() -> None:
    async with served() as api, listening(api) as (address, _), await _real(api, address) as client:
        job = await client.enqueue("shop.add", 1, b=2)
        async with api.hf.worker():
            assert await job.result(timeout=10) == 3
        there, here = await job.info(), await api.hf.jobs.get(job.id)
        assert there == here, "nothing is lost on the way"
        assert [each.id for each in await client.list(task="shop.add", limit=5)] == [job.id]
        dead = await client.submit("shop.charge", ["ada"], {"cents": 5}, queue="bank")
        async with api.hf.worker():
            with pytest.raises(JobFailed, match="cannot be charged 5 cents"):
                await dead.result(timeout=10)


@scene
async def test_errors_are_those_of_a_call_in_process() -> None:
    async with served(settings={"high_watermark": 1, "low_watermark": 0}) as api:
        async with await _client(api, retries=0) as client:
            with pytest.raises(InvalidArguments, match="argument 'a'") as wrong:
                await client.enqueue("shop.add", "one")
            assert wrong.value.field == "args[0]"
            with pytest.raises(UnknownTask, match=r"did you mean 'shop\.add'"):
                await client.enqueue("shop.ad")
            with pytest.raises(InvalidOptions, match="prioritty"):
                await client.submit("shop.add", [1], prioritty=3)
            missing = "01890a5d-ac96-774b-bcce-b302099a8057"
            with pytest.raises(JobNotFound, match=missing):
                await client.get(missing)
            job = await client.submit("shop.add", [1], key="one")
            assert (await client.submit("shop.add", [1], key="one")).existing
            with pytest.raises(IdempotencyConflict):
                await client.submit("shop.add", [2], key="one")
            with pytest.raises(QueueFull) as full:
                await client.enqueue("shop.add", 2)
            assert (full.value.queue, full.value.retry_after >= 1) == ("default", True)
            assert await job.cancel("enough") is CancelAnswer.CANCELLED
            with pytest.raises(JobCancelled, match="enough"):
                await job.result(timeout=10)
        async with await _client(api, "read", retries=0) as client:
            with pytest.raises(ApiRefused, match="scope submit") as refused:
                await client.enqueue("shop.add", 1)
            assert (refused.value.status, refused.value.kind) == (403, "forbidden")


@scene
async def test_what_was_not_answered_is_sent_again_and_done_once() -> None:
    async with served() as api:
        lost = 0

        class Losing(httpx.AsyncBaseTransport):
            """Delivers every request, and loses the first two answers."""

            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                nonlocal lost
                answer = await api.transport.handle_async_request(request)
                if lost < 2:
                    lost += 1
                    raise httpx.ReadError("lost")
                return answer

        async with HttpClient(f"http://api{V1}", await api.key(), transport=Losing()) as client:
            job = await client.enqueue("shop.add", 1)
            assert [each.id for each in await api.hf.jobs.list()] == [job.id]
            assert job.existing
        async with HttpClient("http://127.0.0.1:9", "hf_x", retries=0) as client:
            with pytest.raises(ApiRefused, match="cannot be reached"):
                await client.enqueue("shop.add", 1)


@scene
async def test_a_wait_ends_at_its_time_and_touches_nothing() -> None:
    async with served() as api, listening(api) as (address, _), await _real(api, address) as client:
        job = await client.enqueue("shop.add", 1)
        with pytest.raises(TimeoutError, match=r"has not ended within 0\.2 s"):
            await job.result(timeout=0.2)
        assert (await job.info()).state == "ready"


@scene
async def test_without_an_event_loop() -> None:
    async with served() as api, listening(api) as (address, _):
        key = await api.key()

        def use() -> tuple[Any, list[str]]:
            with SyncHttpClient(f"{address}{V1}", key) as client:
                job = client.enqueue("shop.add", 1, b=2)
                assert client.get(job.id).args == job.info().args == (1,)
                assert [each.id for each in client.list()] == [job.id]
                states = [str(each.state) for each in job.events()]
                other = client.submit("shop.add", [1], delay_s=3600)
                assert client.cancel(other.id, reason="no") is CancelAnswer.CANCELLED
                return job.result(timeout=10), states

        async with api.hf.worker():
            result, states = await asyncio.to_thread(use)
        assert (result, states[-1]) == (3, "succeeded")


def test_without_the_extra_it_is_named() -> None:
    script = "import sys; sys.modules['httpx'] = None; import holdfast.client.http"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "needs httpx, which is not installed: pip install 'holdfast[client]'" in ended.stderr


@pytest.mark.parametrize("key", ["hf_s3cret\nX-Evil: 1", "hf_s3crét", "", "hf s3cret", None])
def test_a_key_that_can_be_none_is_refused_and_not_shown(key: Any) -> None:
    with pytest.raises(InvalidOptions) as refused:
        HttpClient("http://127.0.0.1:1", key)
    assert "s3cr" not in str(refused.value)


@scene
async def test_a_key_may_come_out_of_a_file_with_its_newline() -> None:
    async with (
        served() as api,
        HttpClient(f"http://api{V1}", await api.key() + "\n", transport=api.transport) as client,
    ):
        assert await client.list() == []


@pytest.mark.parametrize("text", ["../queues/mail/purge?", "..%2fqueues", "x", "", "01890a5d/../.."])
def test_what_is_no_id_leads_nowhere(text: str) -> None:
    @scene
    async def check() -> None:
        async with served() as api, await _client(api) as client:
            await api.hf.enqueue("shop.mail", "bob")
            for ask in (client.cancel, client.get):
                with pytest.raises(InvalidArguments, match="is not a job id"):
                    await ask(text)
            with pytest.raises(InvalidArguments, match="is not a job id"):
                await anext(client.events(text))
            assert [job.state for job in await api.hf.jobs.list()] == ["ready"]

    check()


@scene
async def test_an_answer_that_is_not_the_apis_is_an_error_of_the_librarys() -> None:
    page = httpx.MockTransport(lambda request: httpx.Response(200, text="<html>welcome</html>"))
    async with HttpClient("http://proxy", "hf_x", transport=page) as client:
        with pytest.raises(ApiRefused, match="not as the API does"):
            await client.list()


@scene
async def test_whoever_follows_goes_on_when_the_server_is_replaced() -> None:
    """A proxy answers for it with 503 meanwhile."""
    async with served() as api:
        job = await api.hf.enqueue("shop.add", 1)
        refusals = 2

        async def replaced(request: httpx.Request) -> httpx.Response:
            nonlocal refusals
            if refusals:
                refusals -= 1
                return httpx.Response(503, headers={"Retry-After": "0"})
            return await api.transport.handle_async_request(request)

        transport = httpx.MockTransport(replaced)
        async with HttpClient(f"http://api{V1}", await api.key(), transport=transport) as client, api.hf.worker():
            [*_, last] = [each async for each in client.events(job.id)]
        assert last.state == "succeeded"
