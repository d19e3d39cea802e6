"""Submit jobs: one, many, once, and wait for the ending."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.http.served import V1, served
from tests.integration.scene import scene

from holdfast import Route, Unique

ADD = {"task": "shop.add", "args": [1], "kwargs": {"b": 2}}


@scene
async def test_a_job_is_stored_when_the_answer_comes() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        answer = await client.post("/jobs", json=ADD)
        assert answer.status_code == 202
        job = await api.hf.jobs.get(answer.json()["id"])
        assert answer.headers["Location"] == answer.json()["location"] == f"{V1}/jobs/{job.id}"
        assert (job.task, job.args, job.kwargs, answer.json()["replayed"]) == ("shop.add", (1,), {"b": 2}, False)


@scene
async def test_a_call_may_say_where_when_and_how() -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    said = {
        "queue": "slow", "priority": "high", "tenant": "acme", "run_at": soon.isoformat(), "tags": ["red"],
        "expires_in_s": 7200, "metadata": {"order": 7}, "timeout_s": 60, "soft_timeout_s": 30,
    }  # fmt: skip
    async with served() as api, api.client(await api.key("submit")) as client:
        await api.hf.queues.resume("slow")  # from then on it is known
        job = await api.hf.jobs.get((await client.post("/jobs", json=ADD | said)).json()["id"])
        assert (job.queue, job.priority, job.tenant, job.tags) == ("slow", 7, "acme", ("red",))
        assert (job.run_at, job.metadata) == (soon, {"order": 7})
        assert job.expires_at is not None
        later = await api.hf.jobs.get((await client.post("/jobs", json=ADD | {"delay_s": 60})).json()["id"])
        assert later.state == "scheduled"


@pytest.mark.parametrize(
    ("body", "kind", "field"),
    [
        ({"task": "shop.ad"}, "unknown-task", "task"),
        ({"task": "shop.add"}, "invalid-arguments", "kwargs.a"),
        ({"task": "shop.add", "args": ["one"]}, "invalid-arguments", "args[0]"),
        ({"task": "shop.add", "kwargs": {"a": 1, "c": 3}}, "invalid-arguments", "kwargs.c"),
        ({"task": "no such name!"}, "invalid-request", "task"),
        ({"task": "shop.add", "args": [1], "prioritty": 3}, "invalid-request", "prioritty"),
        ({"task": "shop.add", "args": [1], "priority": 10}, "invalid-request", "priority"),
        ({"task": "shop.add", "args": [1], "delay_s": -1}, "invalid-request", "delay_s"),
        ({"task": "shop.add", "args": [1], "delay_s": 1, "run_at": "2030-01-01T00:00:00Z"}, "invalid-request", None),
        ({"task": "shop.add", "args": [1], "run_at": "2030-01-01T00:00:00"}, "invalid-request", "run_at"),
        ({"args": [1]}, "invalid-request", "task"),
        ([], "invalid-request", "body"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_by_the_field(body: Any, kind: str, field: str | None) -> None:
    @scene
    async def check() -> None:
        async with served() as api, api.client(await api.key("submit")) as client:
            answer = await client.post("/jobs", json=body)
            said = answer.json()
            assert answer.status_code == said["status"] == 422
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert said["type"] == f"urn:holdfast:problem:{kind}"
            assert said.get("field") == field, said
            assert said["detail"]
            assert said["remedy"]
            assert await api.hf.jobs.list() == [], "nothing is stored"

    check()


@scene
async def test_an_unknown_task_is_answered_with_the_nearest_names() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        said = (await client.post("/jobs", json={"task": "shop.maill"})).json()
        assert said["known"][0] == "shop.mail"
    async with served(unknown_tasks=True) as api, api.client(await api.key("submit")) as client:
        assert (await client.post("/jobs", json={"task": "elsewhere.known"})).status_code == 202


@scene
async def test_one_key_is_one_job_however_often_and_whoever_asks_at_once() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        once = {"Idempotency-Key": "order-17"}
        answers = await asyncio.gather(*(client.post("/jobs", json=ADD, headers=once) for _ in range(20)))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.json()["id"] for answer in answers}) == 1
        replayed = [answer.headers.get("Idempotency-Replayed") for answer in answers]
        assert sorted(replayed, key=str) == [None] + ["true"] * 19
        assert [answer.json()["replayed"] for answer in answers] == [each == "true" for each in replayed]
        other = await client.post("/jobs", json={"task": "shop.add", "args": [2]}, headers=once)
        assert (other.status_code, other.json()["type"]) == (409, "urn:holdfast:problem:idempotency-conflict")
        assert other.json()["job_id"] == answers[0].json()["id"]
        assert len(await api.hf.jobs.list()) == 1


@scene
async def test_a_full_queue_says_when_to_come_again() -> None:
    narrow = {"high_watermark": 2, "low_watermark": 1}
    async with served(settings=narrow) as api, api.client(await api.key("submit")) as client:
        codes = [(await client.post("/jobs", json=ADD)).status_code for _ in range(3)]
        full = await client.post("/jobs", json=ADD)
        assert codes[:2] == [202, 202]
        assert (full.status_code, full.json()["type"]) == (503, "urn:holdfast:problem:queue-full")
        assert int(full.headers["Retry-After"]) >= 1
        assert full.json()["queue"] == "default"
        await api.hf.queues.drain("mail")
        drained = await client.post("/jobs", json={"task": "shop.mail", "args": ["a"]})
        assert (drained.status_code, drained.json()["draining"]) == (503, True)


@scene
async def test_whoever_prefers_to_wait_gets_the_ending() -> None:
    async with served() as api, api.client(await api.key(), Prefer="respond-async, wait=20") as client:
        async with api.hf.worker():
            done = await client.post("/jobs", json=ADD)
            dead = await client.post("/jobs", json={"task": "shop.charge", "args": ["ada"]})
        assert (done.status_code, done.json()["state"], done.json()["payload"]["result"]) == (200, "succeeded", 3)
        assert done.headers["Preference-Applied"] == "wait=20"
        assert done.headers["Location"] == f"{V1}/jobs/{done.json()['id']}"
        assert (dead.status_code, dead.json()["state"]) == (200, "dead")


@scene
async def test_a_wait_that_passes_or_is_not_allowed_is_answered_as_ever() -> None:
    async with served() as api:
        async with api.client(await api.key(), Prefer="wait=1") as client:
            answer = await client.post("/jobs", json=ADD)
            assert (answer.status_code, answer.headers["Preference-Applied"]) == (202, "wait=1")
        async with api.client(await api.key("submit"), Prefer="wait=20") as client:
            answer = await client.post("/jobs", json=ADD)
            assert (answer.status_code, answer.headers.get("Preference-Applied")) == (202, None)
        async with api.client(await api.key(), Prefer="wait=soon") as client:
            assert (await client.post("/jobs", json=ADD)).status_code == 202


# ---------------------------------------------------------------- many


@scene
async def test_each_of_many_has_its_own_answer() -> None:
    items = [ADD, {"task": "shop.ad"}, ADD | {"args": ["x"]}, ADD | {"queue": "other"}]
    async with served() as api, api.client(await api.key("submit", "read", queues=["default"])) as client:
        answer = await client.post("/jobs/batch", json={"items": items})
        said = answer.json()
        assert (answer.status_code, said["accepted"], said["refused"]) == (207, 1, 3)
        assert [item["status"] for item in said["items"]] == [202, 422, 422, 403]
        assert [item["index"] for item in said["items"]] == [0, 1, 2, 3]
        assert said["items"][2]["problem"]["field"] == "items[2].args[0]"
        assert said["items"][3]["problem"]["type"] == "urn:holdfast:problem:forbidden"
        [job] = await api.hf.jobs.list()
        assert str(job.id) == said["items"][0]["job"]["id"]
        status = (await client.get(f"/batches/{said['batch']}")).json()
        assert (status["total"], status["by_state"]["ready"], status["ended"]) == (1, 1, False)
        listed = (await client.get(f"/batches/{said['batch']}/jobs")).json()
        assert [each["id"] for each in listed["jobs"]] == [str(job.id)]
        assert answer.headers["Location"] == said["location"] == f"{V1}/batches/{said['batch']}"


@scene
async def test_a_batch_with_a_key_may_be_sent_again() -> None:
    async with served() as api, api.client(await api.key("submit", "read"), **{"Idempotency-Key": "all"}) as client:
        body = {"items": [ADD | {"args": [n]} for n in range(50)]}
        first, second = [(await client.post("/jobs/batch", json=body)).json() for _ in range(2)]
        assert [item["job"]["id"] for item in first["items"]] == [item["job"]["id"] for item in second["items"]]
        assert {item["job"]["replayed"] for item in second["items"]} == {True}
        assert first["batch"] == second["batch"]
        assert (await client.get(f"/batches/{first['batch']}")).json()["total"] == 50
        changed = body | {"items": [ADD | {"args": [99]}, *body["items"][1:]]}
        third = (await client.post("/jobs/batch", json=changed)).json()
        assert [item["status"] for item in third["items"]] == [409] + [202] * 49


@scene
async def test_a_batch_holds_a_thousand_and_no_more() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        most = await client.post("/jobs/batch", json={"items": [ADD] * 1000})
        assert (most.json()["accepted"], most.json()["refused"]) == (1000, 0)
        more = await client.post("/jobs/batch", json={"items": [ADD] * 1001})
        assert (more.status_code, more.json()["field"]) == (422, "items")
        none = await client.post("/jobs/batch", json={"items": []})
        assert none.status_code == 422


@scene
async def test_where_a_call_would_go_is_explained() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        api.hf.router(lambda call: Route(queue="vip") if call.arguments.get("a") == 7 else None)
        vip = (await client.post("/routing/explain", json={"task": "shop.add", "args": [7]})).json()
        plain = (await client.post("/routing/explain", json={"task": "shop.add", "args": [1]})).json()
        assert (vip["queue"]["value"], plain["queue"]["value"]) == ("vip", "default")
        assert "router" in vip["queue"]["by"]
        assert await api.hf.jobs.list() == []


@scene
async def test_a_router_that_fails_is_no_failure_of_the_server() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        api.hf.router(lambda call: 1 / 0)  # type: ignore[arg-type,return-value]
        answer = await client.post("/jobs", json=ADD)
        assert (answer.status_code, answer.json()["type"]) == (422, "urn:holdfast:problem:not-routed")


@scene
async def test_a_unique_job_that_is_there_already_is_named() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:

        @api.hf.task(name="shop.nightly", unique=Unique(when_taken="reject"))
        async def nightly() -> None: ...

        first = await client.post("/jobs", json={"task": "shop.nightly"})
        again = await client.post("/jobs", json={"task": "shop.nightly"})
        assert (again.status_code, again.json()["type"]) == (409, "urn:holdfast:problem:not-unique")
        assert again.json()["job_id"] == first.json()["id"]


@scene
async def test_only_who_may_operate_makes_a_queue_by_naming_it() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        refused = await client.post("/jobs", json=ADD | {"queue": "defualt"})
        assert (refused.status_code, refused.json()["field"]) == (422, "queue")
        assert "there is no queue 'defualt'" in refused.json()["detail"]
        many = {"items": [ADD | {"queue": f"queue-{number}"} for number in range(100)]}
        batch = (await client.post("/jobs/batch", json=many)).json()
        assert (batch["accepted"], batch["items"][7]["problem"]["field"]) == (0, "items[7].queue")
        assert await api.hf.queues.list() == [], "no name of a stranger is kept"
        for known in ("default", "bank", "mail"):
            assert (await client.post("/jobs", json=ADD | {"queue": known})).status_code == 202
        async with api.client(await api.key("submit", "operate")) as operator:
            assert (await operator.post("/jobs", json=ADD | {"queue": "new"})).status_code == 202
        assert (await client.post("/jobs", json=ADD | {"queue": "new"})).status_code == 202, "from then on it is known"
        async with api.client(await api.key("submit", queues=["promised"])) as bound:
            assert (await bound.post("/jobs", json=ADD | {"queue": "promised"})).status_code == 202


@scene
async def test_what_nobody_expected_of_one_is_told_of_that_one_alone(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        words = "-".join(["the", "secret"])

        known = api.hf.named

        def named(task: str) -> Any:
            if task == "shop.mail":
                raise RuntimeError(words)
            return known(task)

        api.hf.named = named  # type: ignore[method-assign]
        answer = await client.post("/jobs/batch", json={"items": [ADD, {"task": "shop.mail", "args": ["ada"]}]})
        assert [each["status"] for each in answer.json()["items"]] == [202, 500]
        assert answer.json()["items"][1]["problem"]["type"] == "urn:holdfast:problem:unexpected"
        assert answer.headers["X-Request-Id"] in caplog.text
        assert words not in answer.text + caplog.text


@scene
async def test_of_two_idempotency_keys_none_is_believed() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        twice = [("Idempotency-Key", "one"), ("Idempotency-Key", "two")]
        for path, body in (("/jobs", ADD), ("/jobs/batch", {"items": [ADD]})):
            refused = await client.post(path, json=body, headers=[*client.headers.items(), *twice])
            assert (refused.status_code, refused.json()["field"]) == (422, "Idempotency-Key")
        assert await api.hf.jobs.list() == []
