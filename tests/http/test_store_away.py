"""While the store is away every request hears so; where it cannot be written it is still read; and all recovers."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import httpx
import pytest
from tests.http.served import served
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.proxies.postgres import PostgresProxy

from holdfast.http import HttpLimits
from holdfast.stores.sqlite import opening

ADD = {"task": "shop.add", "args": [1]}
UNKNOWN = (503, "urn:holdfast:problem:outcome-unknown")
AWAY = (503, "urn:holdfast:problem:store-unavailable")


def _said(answer: httpx.Response) -> tuple[int, str]:
    assert int(answer.headers["Retry-After"]) >= 1
    return answer.status_code, answer.json()["type"]


def test_a_server_that_is_away_is_told_of_and_comes_back(postgres_tables: PostgresSchema) -> None:
    @scene
    async def check() -> None:
        with PostgresProxy(postgres_tables.url) as proxy:
            settings = {"schema": postgres_tables.schema, "wait_s": 0.1, "unknown_after_s": 1.0}
            limits = HttpLimits(store_s=0.5)
            async with (
                served(proxy.url, settings=settings, limits=limits) as api,
                api.client(await api.key()) as client,
            ):
                assert (await client.post("/jobs", json=ADD)).status_code == 202
                assert (await client.get("/jobs")).status_code == 200
                proxy.refuse()
                proxy.cut()
                for _ in range(3):
                    assert _said(await client.post("/jobs", json=ADD)) in (AWAY, UNKNOWN)
                    assert _said(await client.get("/jobs")) == AWAY
                    assert _said(await client.post("/queues/mail/pause")) == AWAY
                answer = await client.get("/jobs")
                assert "127.0.0.1" not in answer.text, "where the store is, is nobody's business"
                proxy.admit()
                assert (await client.post("/jobs", json=ADD)).status_code == 202
                assert len((await client.get("/jobs")).json()["jobs"]) >= 2
                assert (await client.post("/queues/mail/pause")).status_code == 204

    check()


def test_queues_that_nobody_can_look_up_are_not_refused_for_good(postgres_tables: PostgresSchema) -> None:
    @scene
    async def check() -> None:
        with PostgresProxy(postgres_tables.url) as proxy:
            settings = {"schema": postgres_tables.schema, "wait_s": 0.1, "unknown_after_s": 1.0}
            limits = HttpLimits(store_s=0.5)
            async with (
                served(proxy.url, settings=settings, limits=limits) as api,
                api.client(await api.key("submit")) as client,
            ):
                await api.hf.named("shop.add").options(queue="there").enqueue(1)
                assert (await client.post("/jobs", json=ADD)).status_code == 202
                proxy.refuse()
                proxy.cut()
                posts = [client.post("/jobs", json=ADD | {"queue": "there"}) for _ in range(10)]
                assert {_said(each) for each in await asyncio.gather(*posts)} <= {AWAY, UNKNOWN}
                proxy.admit()
                assert (await client.post("/jobs", json=ADD | {"queue": "there"})).status_code == 202

    check()


def test_a_store_that_cannot_be_written_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_S", 0.1)
    path = tmp_path / "jobs.db"

    @scene
    async def check() -> None:
        async with served(f"sqlite:///{path}", settings={"wait_s": 0.1}) as api, api.client(await api.key()) as client:
            assert (await client.post("/jobs", json=ADD)).status_code == 202
            other = sqlite3.connect(path, isolation_level=None)
            try:
                other.execute("BEGIN IMMEDIATE")
                assert _said(await client.post("/jobs", json=ADD)) == AWAY
                many = (await client.post("/jobs/batch", json={"items": [ADD, ADD]})).json()
                assert [item["status"] for item in many["items"]] == [503, 503]
                assert len((await client.get("/jobs")).json()["jobs"]) == 1
                assert (await client.get("/queues")).status_code == 200
            finally:
                other.close()
            assert (await client.post("/jobs", json=ADD)).status_code == 202

    check()


def test_the_same_on_postgresql(postgres_tables: PostgresSchema) -> None:
    """A walk through the routes whose store differs."""

    @scene
    async def check() -> None:
        settings = {"schema": postgres_tables.schema}
        async with served(postgres_tables.url, settings=settings) as api, api.client(await api.key()) as client:
            once = {"Idempotency-Key": "one"}
            first = await client.post("/jobs", json=ADD, headers=once)
            again = await client.post("/jobs", json=ADD, headers=once)
            assert (first.json()["id"], again.json()["replayed"]) == (again.json()["id"], True)
            other = await client.post("/jobs", json=ADD | {"args": [2]}, headers=once)
            assert other.status_code == 409
            many = (await client.post("/jobs/batch", json={"items": [ADD] * 200})).json()
            assert many["accepted"] == 200
            assert (await client.get(f"/batches/{many['batch']}")).json()["by_state"]["ready"] == 200
            async with api.hf.worker():
                done = await client.post("/jobs", json=ADD, headers={"Prefer": "wait=20"})
            assert done.json()["payload"]["result"] == 2
            dead = await api.dead()
            assert (await client.post(f"/dead/{dead}/replay", json={"args": ["bob"]})).status_code == 202
            assert (await client.patch("/queues/bank/weights", json={"weight": 2})).json()["weight"] == 2.0
            assert (await client.get(f"/jobs/{dead}/explain")).status_code == 200
            for path in (
                "/jobs",
                "/dead",
                "/queues",
                "/limits",
                "/routes",
                "/breakers",
                "/tenants",
                "/workers",
                "/audit",
            ):
                assert (await client.get(path)).status_code == 200, path

    check()
