"""How quickly jobs come and go, as a client is told it: by queue, and never at the price of looking at all jobs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
from tests.http.served import V1, listening, served
from tests.integration.scene import scene

from holdfast.client.http import HttpClient, SyncHttpClient
from holdfast.core.queue import MOST_SAMPLED
from holdfast.core.queue_options import QueueOptions


def _counts(rates: dict[str, Any]) -> list[float]:
    return [round(rates[name] * rates["over_s"], 3) for name in ("enqueued_per_s", "started_per_s", "ended_per_s")]


@scene
async def test_rates_tell_what_came_began_and_ended_in_the_last_minute() -> None:
    async with served() as api, api.client(await api.key("read")) as client:
        jobs = [await api.hf.enqueue("shop.mail", "bob") for _ in range(4)]
        await api.hf.queues.pause("bank")
        async with api.hf.worker():
            await asyncio.gather(*(job.result(timeout=10) for job in jobs))
        await api.hf.named("shop.mail").options(delay=60).enqueue("ada")
        bank, mail = (await client.get("/queues")).json()["queues"]
        assert _counts(mail["rates"]) == [5, 4, 4]
        assert mail["rates"]["over_s"] == 60
        assert bank["rates"] == {"enqueued_per_s": 0, "started_per_s": 0, "ended_per_s": 0, "over_s": 60}
        alone = (await client.get("/queues/mail")).json()["rates"]
        assert _counts(alone) == [5, 4, 4]


@scene
async def test_after_a_burst_rates_are_of_a_shorter_time() -> None:
    async with served(settings={"high_watermark": 100_000}) as api, api.client(await api.key("read")) as client:
        mail = api.hf.named("shop.mail")
        await api.hf.enqueue_many([mail.request("bob") for _ in range(MOST_SAMPLED + 500)])
        rates = (await client.get("/queues/mail")).json()["rates"]
        assert _counts(rates) == [MOST_SAMPLED, 0, 0]
        assert 1 <= rates["over_s"] < 60


@scene
async def test_the_python_client_has_queues_and_rates_as_in_process() -> None:
    async with served() as api, listening(api) as (address, _):
        key = await api.key("read")
        await api.hf.enqueue("shop.mail", "bob")
        await api.hf.queues.set_watermarks("mail", high=10, low=5, high_age_s=60, low_age_s=1)
        await api.hf.queues.set_weights("mail", weight=2)
        await api.hf.queues.set_options("mail", concurrency=4, bypass_priority=0)
        [here], rates_here = await api.hf.queues.list(), await api.hf.queues.rates()
        async with HttpClient(f"{address}{V1}", key) as client:
            [there], rates = await client.queues(), await client.rates()
        assert (there.name, there.ready, there.by_priority, there.accepting) == ("mail", 1, {5: 1}, True)
        assert (there.settings.watermarks, there.settings.ages) == (here.settings.watermarks, here.settings.ages)
        assert there.settings.weight == 2
        assert there.settings.options == here.settings.options == QueueOptions(concurrency=4, bypass_priority=0)
        assert rates == rates_here

        def ask() -> tuple[str, float]:
            with SyncHttpClient(f"{address}{V1}", key) as blocking:
                [found] = blocking.queues()
                return found.name, blocking.rates()["mail"].enqueued_per_s

        assert await asyncio.to_thread(ask) == ("mail", rates["mail"].enqueued_per_s)


@scene
async def test_the_python_client_reads_what_a_newer_server_tells() -> None:
    """More members everywhere: they are left out, not stumbled over."""
    async with served() as api, listening(api) as (address, _), httpx.AsyncHTTPTransport() as server:
        job = await api.hf.enqueue("shop.mail", "bob")

        async def tell_more(request: httpx.Request) -> httpx.Response:
            answer = await server.handle_async_request(request)
            return httpx.Response(answer.status_code, json=_with_more(json.loads(await answer.aread())))

        async with HttpClient(f"{address}{V1}", await api.key(), transport=httpx.MockTransport(tell_more)) as client:
            assert await client.rates() == await api.hf.queues.rates()
            assert [queue.name for queue in await client.queues()] == ["mail"]
            assert await client.get(job.id) == await api.hf.jobs.get(job.id)
            assert [each.id for each in await client.list()] == [job.id]
            assert (await client.enqueue("shop.mail", "ada")).id != job.id


def _with_more(said: Any) -> Any:
    if isinstance(said, list):
        return [_with_more(each) for each in said]
    if not isinstance(said, dict):
        return said
    named = said.keys() <= {"5"}  # numbers by priority, which have no names of ours
    more = {} if named else {"since_the_next_version": 1}
    return {name: _with_more(each) for name, each in said.items()} | more
