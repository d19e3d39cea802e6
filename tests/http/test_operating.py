"""Change what becomes of jobs, queues and limits; every change is on record, with the key that made it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.http.served import V1, Scene, served
from tests.integration.scene import scene

from holdfast import InvalidOptions, State, Unique
from holdfast.client.http import HttpClient

OPERATE = ("operate", "read", "read-payload")


async def _record(api: Scene) -> list[tuple[str, str, Any]]:
    """What was done by a key since the keys were made: what, to what, and how."""
    found = [each for each in await api.hf.audit.list() if each.what != "key"]
    assert {each.by.split()[0] for each in found} <= {"key"}, "by whom"
    return [(each.what, each.name, each.after) for each in reversed(found)]


@scene
async def test_a_job_is_cancelled_by_somebody_for_a_reason() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        job = await api.hf.enqueue("shop.add", 1)
        answer = await client.post(f"/jobs/{job.id}/cancel", json={"reason": "no longer wanted"})
        assert answer.json() == {"id": str(job.id), "answer": "cancelled"}
        again = await client.post(f"/jobs/{job.id}/cancel")
        assert again.json()["answer"] == "ended"
        info = await job.info()
        assert info.reason is not None
        assert info.reason.startswith("no longer wanted (by key ")
        assert await _record(api) == [
            ("cancel", str(job.id), {"reason": "no longer wanted"}),
            ("cancel", str(job.id), {}),
        ]


@scene
async def test_a_dead_job_is_run_again() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        one, two = await api.dead(), await api.dead()
        answer = await client.post(f"/jobs/{one}/retry")
        assert (answer.status_code, answer.json()["state"]) == (202, "ready")
        twice = await client.post(f"/jobs/{one}/retry")
        assert (twice.status_code, twice.json()["type"]) == (409, "urn:holdfast:problem:job-state")
        wrong = await client.post(f"/dead/{two}/replay", json={"args": ["bob"], "kwargs": {"cents": "many"}})
        assert (wrong.status_code, wrong.json()["field"]) == (422, "kwargs.cents")
        assert (await client.get(f"/dead/{two}")).json()["payload"]["args"] == ["ada"]
        edited = await client.post(f"/dead/{two}/replay", json={"args": ["bob"], "kwargs": {"cents": 1}})
        assert (edited.status_code, edited.json()["payload"]["args"]) == (202, ["bob"])
        assert (await client.get(f"/dead/{two}")).status_code == 409
        assert [each[:2] for each in await _record(api)] == [("retry", one), ("replay", two)]


@scene
async def test_a_dead_job_is_not_put_beside_another_that_has_what_has_to_be_unique() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        one, two, other = await api.dead(unique=Unique()), await api.dead(unique=Unique()), await api.dead()
        newer = await api.hf.named("shop.charge").options(unique=Unique()).enqueue("ada", cents=5)
        for path in (f"/jobs/{one}/retry", f"/dead/{one}/replay"):
            refused = await client.post(path)
            assert (refused.status_code, refused.json()["type"]) == (409, "urn:holdfast:problem:not-unique")
            assert refused.json()["job_id"] == str(newer.id)
            assert refused.json()["detail"].startswith(f"job {one} stays dead: shop.charge has to be unique")
        many = (await client.post("/dead/replay", json={"everything": True})).json()
        in_the_way = {one: str(newer.id), two: str(newer.id)}
        assert many == {"count": 1, "dry_run": False, "kept_back": 2, "in_the_way": in_the_way}
        assert (await client.get(f"/jobs/{other}")).json()["state"] == "ready"


@scene
async def test_a_job_in_the_way_that_is_not_the_keys_to_see_is_not_named() -> None:
    async with served() as api, api.client(await api.key(*OPERATE, queues=["bank"])) as client:
        one = await api.dead(unique=Unique())
        newer = await api.hf.named("shop.charge").options(unique=Unique(), queue="other").enqueue("ada", cents=5)
        refused = await client.post(f"/dead/{one}/replay")
        assert refused.status_code == 409
        assert str(newer.id) not in refused.text
        many = (await client.post("/dead/replay", json={"ids": [one]})).json()
        assert many == {"count": 0, "dry_run": False, "kept_back": 1, "in_the_way": {one: None}}


@scene
async def test_dead_jobs_are_counted_replayed_and_purged_in_bulk() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        ids = [await api.dead(tags=["odd"] if n % 2 else ["even"]) for n in range(4)]

        async def bulk(verb: str, **body: Any) -> httpx.Response:
            return await client.post(f"/dead/{verb}", json=body)

        none_kept = {"kept_back": 0, "in_the_way": {}}
        counted = {"count": 2, "dry_run": True} | none_kept
        assert (await bulk("replay", filter={"tag": "odd"}, dry_run=True)).json() == counted
        assert (await bulk("purge", everything=True, dry_run=True)).json()["count"] == 4
        assert (await bulk("purge", ids=ids[:1], dry_run=True)).json()["count"] == 1
        assert await _record(api) == [], "to count is no change"
        assert len((await client.get("/dead")).json()["jobs"]) == 4
        assert (await bulk("replay", filter={"tag": "odd"})).json() == {"count": 2, "dry_run": False} | none_kept
        assert (await bulk("purge", ids=[ids[0], ids[1]])).json()["count"] == 1, "of these one is not dead any more"
        assert (await client.delete(f"/dead/{ids[2]}")).json()["count"] == 1
        assert (await bulk("purge", everything=True)).json()["count"] == 0
        for body in ({}, {"everything": True, "ids": ids}, {"filter": {}}, {"filter": {"state": "ready"}}):
            assert (await bulk("purge", **body)).status_code == 422
        assert [each[::2] for each in await _record(api)] == [
            ("replay", {"filter": {"tag": "odd"}, "count": 2}),
            ("purge", {"ids": [ids[0]], "count": 1}),
            ("purge", {}),
            ("purge", {"everything": True, "count": 0}),
        ]
        assert [(await api.hf.jobs.get(each)).state for each in (ids[1], ids[3])] == [State.READY, State.READY]


@scene
async def test_whoever_is_bound_to_queues_has_only_his_own_dead_on_record() -> None:
    async with served() as api, api.client(await api.key(*OPERATE, queues=["bank", "mail"])) as client:
        for queue in ("bank", "mail", "other"):
            await api.dead(queue=queue)
        assert (await client.post("/dead/purge", json={"everything": True})).json()["count"] == 2
        assert await _record(api) == [("purge", "dead letters", {"everything": True, "count": 2})]


@scene
async def test_a_queue_is_paused_drained_weighed_and_purged() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        for _ in range(3):
            await api.hf.enqueue("shop.mail", "bob")
        [queue] = (await client.get("/queues")).json()["queues"]
        assert (queue["name"], queue["ready"], queue["accepting"], queue["high_watermark"]) == ("mail", 3, True, 10_000)
        assert queue["oldest_ready_s"] >= 0
        assert (await client.post("/queues/mail/pause")).status_code == 204
        assert (await client.post("/queues/mail/drain")).status_code == 204
        assert (await client.get("/queues/mail")).json()["paused"]
        assert not (await client.get("/queues/mail")).json()["accepting"]
        assert (await client.post("/queues/mail/resume")).status_code == 204
        weights = (await client.get("/queues/mail/weights")).json()
        assert (weights["weight"], weights["priorities"]["critical"], weights["is_default"]) == (1.0, 60.0, True)
        patched = await client.patch("/queues/mail/weights", json={"weight": 3, "priorities": {"low": 7}})
        assert patched.json()["weight"] == 3.0
        assert patched.json()["priorities"] | {"low": 7.0} == patched.json()["priorities"]
        other = await client.patch("/queues/mail/weights", json={"priorities": {"bulk": 0}})
        assert (other.json()["priorities"]["bulk"], other.json()["priorities"]["low"]) == (0.0, 7.0), (
            "what is left out stays"
        )
        rest = {"critical": 0, "high": 0, "normal": 0, "low": 0}
        assert (await client.patch("/queues/mail/weights", json={"priorities": rest})).status_code == 422
        assert (await client.patch("/queues/mail/weights", json={"priorities": {}})).status_code == 422
        assert (await client.get("/queues/mail/weights")).json() == other.json()
        assert (await client.delete("/queues/mail/weights")).json() == weights
        marked = await client.patch(
            "/queues/mail/watermarks", json={"high": 10, "low": 5, "high_age_s": 60, "low_age_s": 1}
        )
        assert (marked.json()["high_watermark"], marked.json()["high_age_s"]) == (10, 60.0)
        assert (await client.patch("/queues/mail/watermarks", json={"high": 10})).status_code == 422
        cleared = (await client.delete("/queues/mail/watermarks")).json()
        assert (cleared["high_watermark"], cleared["low_watermark"], cleared["high_age_s"]) == (10_000, 2_000, None)
        slip = await client.patch("/queues/maill/weights", json={"weight": 3})
        assert (slip.status_code, "did you mean 'mail'" in slip.json()["detail"]) == (422, True)
        assert (await client.post("/queues/mail/purge", json={"reason": "a mistake"})).json() == {"count": 3}
        assert len(await _record(api)) == 9


@scene
async def test_options_of_a_queue_are_changed_one_by_one() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        await api.hf.enqueue("shop.mail", "bob")
        nothing = {"concurrency": None, "retry_budget": None, "bypass_priority": None}
        assert (await client.get("/queues/mail")).json()["options"] == nothing
        said = {"concurrency": 5, "bypass_priority": "critical"}
        answer = await client.patch("/queues/mail/options", json=said)
        assert answer.json()["options"] == {"concurrency": 5, "retry_budget": None, "bypass_priority": 9}
        answer = await client.patch("/queues/mail/options", json={"retry_budget": 0.2, "concurrency": None})
        assert answer.json()["options"] == {"concurrency": None, "retry_budget": 0.2, "bypass_priority": 9}
        for nonsense in ({}, {"concurrency": 0}, {"concurrency": True}, {"retry_budget": 1}, {"bypass_priority": 10}):
            assert (await client.patch("/queues/mail/options", json=nonsense)).status_code == 422, nonsense
        assert (await client.delete("/queues/mail/options")).json()["options"] == nothing
        none = dict.fromkeys(nothing, "none")
        assert (await client.patch("/queues/mail/options", json=none)).json()["options"] == none
        record = await _record(api)
        assert (len(record), {name: record[-1][2][name] for name in none}) == (4, none)
        async with HttpClient(f"http://api{V1}", await api.key(*OPERATE), transport=api.transport) as remote:
            [queue] = await remote.queues()
            assert queue.settings.options.said == none


@scene
async def test_a_refusal_is_a_sentence_of_ours_without_words_of_the_checker() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        refused = (await client.patch("/queues/mail/options", json={"bypass_priority": 10})).json()
        assert refused["detail"].startswith("bypass_priority: priority=10: needs a whole number from 0 to 9")
        assert refused["errors"][0]["message"].startswith("priority=10: needs")


@scene
async def test_figures_of_a_breaker_are_changed_one_by_one() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:

        async def found() -> tuple[object, ...]:
            [bank] = [each for each in (await client.get("/breakers")).json()["breakers"] if each["name"] == "bank"]
            return bank["failures"], bank["window_s"], bank["open_for_s"], bank["said_by"]

        assert (await client.delete("/breakers/bank/figures")).status_code == 404
        assert (await client.patch("/breakers/bank/figures", json={"failures": 3, "window_s": 9})).status_code == 204
        assert await found() == (3, 9.0, None, "operator")
        answer = await client.patch("/breakers/bank/figures", json={"failures": None, "open_for_s": 0.5})
        assert answer.status_code == 204
        assert await found() == (None, 9.0, 0.5, "operator")
        for nonsense in ({}, {"failures": 0}, {"window_s": 0}, {"open_for_s": "5"}, {"failures": 1001}):
            assert (await client.patch("/breakers/bank/figures", json=nonsense)).status_code == 422, nonsense
        assert (await client.delete("/breakers/bank/figures")).status_code == 204
        assert (await client.get("/breakers")).json()["breakers"] == []
        assert [each[0] for each in await _record(api)] == ["breaker"] * 3


@scene
async def test_whoever_purges_a_queue_that_is_none_is_told_so() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        await api.hf.enqueue("shop.mail", "bob")
        slip = await client.post("/queues/maill/purge")
        assert (slip.status_code, slip.json()["type"]) == (404, "urn:holdfast:problem:queue-not-found")
        assert slip.json()["detail"].endswith("; did you mean 'mail'?")
        async with api.client(await api.key(*OPERATE, queues=["maill"])) as bound:
            told = (await bound.post("/queues/maill/purge")).json()
            assert (told["status"], "'mail'" in told["detail"]) == (404, False), "others' queues are not named"
        assert await _record(api) == []


@scene
async def test_a_rate_is_a_text_as_everywhere_else() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        for said, is_then in (("0.5/s", "0.5/s"), (" 10 / 30 s ", "10/30s"), ("007/m", "7/m")):
            assert (await client.put("/limits/bank", json={"rate": said, "burst": 1})).status_code == 204
            [limit] = (await client.get("/limits")).json()["limits"]
            assert limit["rate"] == is_then
        for nonsense in ("often", "0/s", "5/w", "10/0s", "2000000/s", "0.000001/d"):
            answer = await client.put("/limits/bank", json={"rate": nonsense, "burst": 1})
            with pytest.raises(InvalidOptions) as told:
                await api.hf.limits.set("bank", rate=nonsense, burst=1)
            assert (answer.status_code, answer.json()["field"]) == (422, "rate")
            assert answer.json()["detail"] == str(told.value)
        assert (await client.put("/limits/bank", json={"rate": "1" * 100})).status_code == 422


@scene
async def test_limits_breakers_tenants_and_tasks_are_operated() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        assert (await client.put("/limits/task:shop.add", json={"size": 2, "rate": "10/m"})).status_code == 204
        found = (await client.get("/limits")).json()["limits"]
        assert {(each["kind"], each["size"], each["rate"]) for each in found} == {
            ("concurrency", 2, None),
            ("rate", None, "10/m"),
        }
        assert (await client.delete("/limits/task:shop.add")).status_code == 204
        assert (await client.delete("/limits/task:shop.add")).json()["type"] == "urn:holdfast:problem:not-set"
        assert (await client.put("/limits/x", json={})).status_code == 422
        assert (await client.post("/breakers/bank/open")).status_code == 204
        [breaker] = (await client.get("/breakers")).json()["breakers"]
        assert (breaker["name"], breaker["phase"], breaker["held"]) == ("bank", "open", True)
        assert (await client.post("/breakers/bank/close")).status_code == 204
        assert (await client.put("/tenants/acme/weight", json={"weight": 2})).status_code == 204
        assert (await client.post("/tenants/acme/pause")).status_code == 204
        assert (await client.get("/tenants")).json() == {"tenants": [{"name": "acme", "weight": 2.0, "paused": True}]}
        assert (await client.post("/tenants/acme/resume")).status_code == 204
        assert (await client.delete("/tenants/acme/weight")).status_code == 204
        assert (await client.post("/tasks/shop.add/pause")).status_code == 204
        assert (await client.get("/tasks/shop.add")).json()["paused"]
        assert (await client.post("/tasks/shop.add/resume")).status_code == 204
        assert len(await _record(api)) == 10


@scene
async def test_routes_are_set_and_cleared_whatever_signs_they_have() -> None:
    async with served() as api, api.client(await api.key(*OPERATE)) as client:
        for pattern in ("shop.*", "..", ".", "a:b<c>-d_*", "*"):
            assert (await client.put("/routes", json={"pattern": pattern, "queue": "slow"})).status_code == 204
            assert (await client.put("/routes", json={"pattern": pattern, "priority": "bulk"})).status_code == 204
            [route] = (await client.get("/routes")).json()["routes"]
            matches = {"shop.*": 3, "*": 3}.get(pattern, 0)
            assert route == {
                "pattern": pattern, "queue": "slow", "priority": 0, "said_by": "operator", "matches": matches,
            }  # fmt: skip
            assert (await client.delete("/routes", params={"pattern": pattern})).status_code == 204
            again = await client.delete("/routes", params={"pattern": pattern})
            assert (again.status_code, again.json()["type"]) == (404, "urn:holdfast:problem:not-set")
        for nonsense in (
            {},
            {"pattern": "shop.*"},
            {"pattern": "a b", "queue": "slow"},
            {"pattern": "a", "queue": "no such"},
            {"pattern": "a", "priority": 10},
            {"pattern": "a" * 201, "queue": "slow"},
        ):
            assert (await client.put("/routes", json=nonsense)).status_code == 422, nonsense
        assert (await client.delete("/routes")).status_code == 422
        both = await client.delete("/routes?pattern=a&pattern=b")
        assert (both.status_code, both.json()["field"]) == (422, "pattern")
        assert both.json()["detail"] == "pattern: was given more than once; clear one at a time"
        assert len(await _record(api)) == 15


@scene
async def test_the_record_is_read_page_by_page_by_an_admin() -> None:
    async with served() as api:
        async with api.client(await api.key(*OPERATE)) as client:
            for _ in range(3):
                await client.post("/queues/mail/pause")
                await client.post("/queues/mail/resume")
            assert (await client.get("/audit")).status_code == 403
        async with api.client(await api.key("admin")) as client:
            first = (await client.get("/audit", params={"limit": 4})).json()
            rest = (await client.get("/audit", params={"limit": 100, "before": first["next"]})).json()
            numbers = [each["number"] for each in [*first["changes"], *rest["changes"]]]
            assert (len(first["changes"]), rest["next"], numbers) == (4, None, list(range(8, 0, -1)))
            assert first["changes"][1]["what"] == "queue"
            assert first["changes"][1]["by"].startswith("key ")


@scene
async def test_arguments_of_a_dead_job_that_are_not_given_stay() -> None:
    async with served() as api, api.client(await api.key()) as client:
        job = await api.dead()
        changed = (await client.post(f"/dead/{job}/replay", json={"kwargs": {"cents": 9}})).json()["payload"]
        assert (changed["args"], changed["kwargs"]) == (["ada"], {"cents": 9})
        async with api.hf.worker():
            async for _ in api.hf.jobs.watch(job):
                pass
        changed = (await client.post(f"/dead/{job}/replay", json={"args": ["eve"]})).json()["payload"]
        assert (changed["args"], changed["kwargs"]) == (["eve"], {"cents": 9})
