"""Health, metrics and demand, as machines that watch ask for them."""

from __future__ import annotations

import httpx
from tests.http.served import make_app, served
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.proxies.postgres import PostgresProxy

from holdfast.http import asgi

ROOT = "http://api"


@scene
async def test_everybody_is_told_whether_it_lives_and_is_ready_and_nothing_else() -> None:
    async with served() as api, api.client() as client:
        await api.hf.enqueue("shop.mail", "bob")
        live, ready = await client.get(f"{ROOT}/health/live"), await client.get(f"{ROOT}/health/ready")
        assert (live.status_code, live.json()) == (200, {"status": "ok"})
        assert (ready.status_code, ready.json()["ready"]) == (200, True)
        assert set(ready.json()["checks"]) == {"store", "transport", "schema", "leader", "workers"}
        assert set(ready.json()["checks"].values()) <= {"ok", "degraded"}
        assert "mail" not in ready.text
        assert (await client.get("/health")).status_code == 401
    async with served() as api, api.client(await api.key("read")) as client:
        await api.hf.enqueue("shop.mail", "bob")
        told = (await client.get("/health")).json()
        assert told["checks"]["store"] == {"status": "ok", "reason": "answers"}
        assert told["queues"]["mail"]["status"] == "degraded"


@scene
async def test_while_the_app_is_not_open_it_is_not_ready() -> None:
    transport = httpx.ASGITransport(asgi(make_app(":memory:")))
    async with httpx.AsyncClient(transport=transport, base_url=ROOT) as client:
        assert (await client.get("/health/live")).status_code == 200
        assert (await client.get("/health/ready")).status_code == 503


def test_while_the_store_is_away_it_is_not_ready_and_comes_back(postgres_tables: PostgresSchema) -> None:
    @scene
    async def check() -> None:
        with PostgresProxy(postgres_tables.url) as proxy:
            settings = {"schema": postgres_tables.schema}
            async with served(proxy.url, settings=settings) as api, api.client() as client:
                assert (await client.get(f"{ROOT}/health/ready")).status_code == 200
                proxy.refuse()
                proxy.cut()
                while (away := await client.get(f"{ROOT}/health/ready")).status_code == 200:
                    pass  # what was seen a moment ago is told for a second
                assert (away.status_code, away.json()["checks"]["store"]) == (503, "failed")
                assert "127.0.0.1" not in away.text
                assert (await client.get(f"{ROOT}/health/live")).status_code == 200
                proxy.admit()
                while (await client.get(f"{ROOT}/health/ready")).status_code != 200:
                    pass

    check()


@scene
async def test_metrics_need_a_key_that_reads() -> None:
    async with served() as api:
        async with api.client() as client:
            assert (await client.get(f"{ROOT}/metrics")).status_code == 401
        async with api.client(await api.key("read")) as client:
            await api.hf.enqueue("shop.mail", "bob")
            answer = await client.get(f"{ROOT}/metrics")
            assert answer.status_code == 200
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
            assert 'holdfast_queue_jobs{queue="mail",state="ready"} 1.0' in answer.text


@scene
async def test_the_demand_of_a_queue_is_told_to_autoscalers() -> None:
    async with served() as api, api.client(await api.key("read", queues=["mail"])) as client:
        for _ in range(3):
            await api.hf.enqueue("shop.mail", "bob")
        demand = (await client.get("/autoscale/mail")).json()
        assert (demand["value"], demand["ready"], demand["workers"], demand["known"]) == (3, 3, 0, True)
        assert (await client.get("/autoscale/bank")).status_code == 403
