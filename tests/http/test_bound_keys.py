"""A key that is bound to a tenant, or to queues, sees and touches only theirs; also inside batches."""

from __future__ import annotations

import pytest
from tests.http.served import served
from tests.integration.scene import scene

ADD = {"task": "shop.add", "args": [1]}


@scene
async def test_what_a_tenants_key_submits_is_its_own() -> None:
    async with served() as api, api.client(await api.key(tenant="acme")) as client:
        own = (await client.post("/jobs", json=ADD)).json()["id"]
        assert (await api.hf.jobs.get(own)).tenant == "acme"
        said = (await client.post("/jobs", json=ADD | {"tenant": "acme"})).json()["id"]
        assert (await api.hf.jobs.get(said)).tenant == "acme"
        other = await client.post("/jobs", json=ADD | {"tenant": "zenith"})
        assert (other.status_code, other.json()["field"]) == (403, "tenant")
        items = [ADD, ADD | {"tenant": "zenith"}, ADD | {"tenant": "acme"}]
        many = (await client.post("/jobs/batch", json={"items": items})).json()
        assert [item["status"] for item in many["items"]] == [202, 403, 202]
        assert many["items"][1]["problem"]["field"] == "items[1].tenant"
        assert {job.tenant for job in await api.hf.jobs.list()} == {"acme"}


@scene
async def test_a_task_that_names_its_tenant_cannot_lead_out_of_a_bound_key() -> None:
    async with served() as api, api.client(await api.key(tenant="acme")) as client:

        @api.hf.task(name="shop.for", tenant=lambda who: who)
        async def of(who: str) -> None: ...

        job = (await client.post("/jobs", json={"task": "shop.for", "args": ["zenith"]})).json()["id"]
        assert (await api.hf.jobs.get(job)).tenant == "acme"


@scene
async def test_the_same_key_text_of_two_tenants_is_two_jobs() -> None:
    async with served() as api:
        ids = set()
        for tenant in ("acme", "zenith"):
            async with api.client(await api.key(tenant=tenant), **{"Idempotency-Key": "order-1"}) as client:
                ids.add((await client.post("/jobs", json=ADD)).json()["id"])
                many = (await client.post("/jobs/batch", json={"items": [ADD]})).json()
                ids |= {many["items"][0]["job"]["id"], many["batch"]}
        assert len(ids) == 6


@scene
async def test_bulk_acts_on_a_tenants_own_dead_jobs_only() -> None:
    async with served() as api, api.client(await api.key(tenant="acme")) as client:
        own, others, nobodys = await api.dead(tenant="acme"), await api.dead(tenant="zenith"), await api.dead()
        all_of_them = [own, others, nobodys]
        assert (await client.post("/dead/replay", json={"ids": all_of_them, "dry_run": True})).json()["count"] == 1
        for choice in ({"everything": True}, {"filter": {"queue": "bank"}}, {"filter": {"tenant": "zenith"}}):
            dry = (await client.post("/dead/purge", json=choice | {"dry_run": True})).json()["count"]
            assert dry == (0 if choice == {"filter": {"tenant": "zenith"}} else 1)
        assert (await client.post("/dead/purge", json={"filter": {"tenant": "zenith"}})).json()["count"] == 0
        assert (await client.post("/dead/purge", json={"ids": [others, nobodys]})).json()["count"] == 0
        assert (await client.post("/dead/purge", json={"everything": True})).json()["count"] == 1
        assert {str(job.id) for job in await api.hf.dead.list()} == {others, nobodys}
        for job in (others, nobodys):
            assert (await client.delete(f"/dead/{job}")).status_code == 404
            assert (await client.post(f"/dead/{job}/replay")).status_code == 404


@scene
async def test_a_key_for_queues_reaches_no_other() -> None:
    async with served() as api, api.client(await api.key(queues=["mail", "print"])) as client:
        assert (await client.post("/jobs", json={"task": "shop.mail", "args": ["bob"]})).status_code == 202
        for body in (ADD, {"task": "shop.mail", "args": ["bob"], "queue": "bank"}):
            refused = await client.post("/jobs", json=body)
            assert (refused.status_code, refused.json()["field"]) == (403, "queue")
        assert (await client.post("/routing/explain", json=ADD)).status_code == 403
        await api.hf.enqueue("shop.add", 1)
        assert [each["name"] for each in (await client.get("/queues")).json()["queues"]] == ["mail"]
        assert (await client.post("/queues/mail/pause")).status_code == 204
        assert (await client.post("/queues/default/pause")).status_code == 403
        dead = await api.dead()
        assert (await client.get(f"/jobs/{dead}")).status_code == 404
        assert (await client.post("/dead/purge", json={"everything": True})).json()["count"] == 0
        for path in ("/limits", "/routes", "/breakers", "/tenants", "/workers", "/settings", "/audit"):
            assert (await client.get(path)).status_code == 403, path


@scene
async def test_a_key_for_queues_follows_no_operator_into_another() -> None:
    async with served() as api, api.client(await api.key(queues=["mail", "print"])) as client:
        mail = {"task": "shop.mail", "args": ["bob"]}
        await api.hf.routes.set("shop.*", queue="print")
        taken = await client.post("/jobs", json=mail)
        assert (await api.hf.jobs.get(taken.json()["id"])).queue == "print"
        assert (await client.post("/routing/explain", json=mail)).json()["queue"] == {
            "value": "print",
            "by": "pattern 'shop.*' (operator)",
        }
        await api.hf.routes.set("shop.*", queue="bank")
        for path in ("/jobs", "/routing/explain"):
            refused = await client.post(path, json=mail)
            assert (refused.status_code, refused.json()["field"]) == (403, "queue")


@scene
async def test_an_operator_who_speaks_after_the_key_was_checked_sends_its_job_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with served() as api, api.client(await api.key(queues=["mail"])) as client:
        look = api.hf.routes.look

        async def look_just_before() -> bool:
            looked = await look()
            await api.hf.routes.set("shop.*", queue="bank")
            return looked

        monkeypatch.setattr(api.hf.routes, "look", look_just_before)
        taken = await client.post("/jobs", json={"task": "shop.mail", "args": ["bob"]})
        assert (await api.hf.jobs.get(taken.json()["id"])).queue == "mail"


@scene
async def test_a_batchs_status_counts_what_is_ones_own() -> None:
    async with served() as api:
        async with api.client(await api.key()) as client:
            items = [ADD | {"tenant": tenant} for tenant in ("acme", "acme", "zenith")]
            batch = (await client.post("/jobs/batch", json={"items": items})).json()["batch"]
            assert (await client.get(f"/batches/{batch}")).json()["total"] == 3
        for tenant, count in (("acme", 2), ("zenith", 1)):
            async with api.client(await api.key("read", tenant=tenant)) as client:
                assert (await client.get(f"/batches/{batch}")).json()["total"] == count
        async with api.client(await api.key("read", tenant="nobody")) as client:
            assert (await client.get(f"/batches/{batch}")).status_code == 404


@scene
async def test_a_batch_cannot_be_forged() -> None:
    """The id of a batch that was sent with a key can be guessed by whoever knows the key."""
    async with served() as api:
        async with api.client(await api.key(), **{"Idempotency-Key": "nightly"}) as client:
            batch = (await client.post("/jobs/batch", json={"items": [ADD]})).json()["batch"]
        async with api.client(await api.key(tenant="acme")) as client:
            forged = ADD | {"tags": [f"batch:{batch}"], "delay_s": 1_000}
            refused = await client.post("/jobs", json=forged)
            assert (refused.status_code, refused.json()["field"]) == (422, "tags")
            [item] = (await client.post("/jobs/batch", json={"items": [forged]})).json()["items"]
            assert (item["status"], item["problem"]["field"]) == (422, "items[0].tags")
        async with api.client(await api.key("read")) as client:
            assert (await client.get(f"/batches/{batch}")).json()["total"] == 1


@scene
async def test_an_idempotency_key_that_leads_to_another_queue_tells_nothing_of_it() -> None:
    mail = {"task": "shop.mail", "args": ["bob"]}
    async with served() as api:
        async with api.client(await api.key(queues=["mail"]), **{"Idempotency-Key": "1"}) as client:
            job = (await client.post("/jobs", json=mail)).json()["id"]
            assert (await client.post("/jobs", json=mail)).json()["id"] == job
            other = await client.post("/jobs", json=mail | {"args": ["eve"]})
            assert (other.status_code, other.json()["job_id"]) == (409, job), "of one's own it is told"
        async with api.client(await api.key(queues=["bank"]), **{"Idempotency-Key": "1"}) as client:
            for body in ({"task": "shop.charge", "args": ["bob"]}, mail | {"queue": "bank"}):
                refused = await client.post("/jobs", json=body)
                assert (refused.status_code, job in refused.text) == (409, False)
                many = await client.post("/jobs/batch", json={"items": [body | {"key": "1"}]})
                assert (many.json()["items"][0]["status"], job in many.text) == (409, False)
        assert len(await api.hf.jobs.list()) == 1


@scene
async def test_where_the_calls_of_others_would_go_is_not_explained() -> None:
    async with served() as api, api.client(await api.key(tenant="acme")) as client:
        assert (await client.post("/routing/explain", json=ADD)).json()["tenant"]["value"] == "acme"
        refused = await client.post("/routing/explain", json=ADD | {"tenant": "zenith"})
        assert (refused.status_code, refused.json()["field"]) == (403, "tenant")
