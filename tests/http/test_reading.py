"""Look at jobs: one, a list, page by page; with and without what is in them."""

from __future__ import annotations

from typing import Any

from tests.http.served import served
from tests.integration.scene import scene

from holdfast import current_job

READ = ("read",)
READ_ALL = ("read", "read-payload")
SECRETS = ("ada", "cannot be charged", "shh")


@scene
async def test_without_the_scope_nothing_of_a_payload_is_told() -> None:
    async with served() as api:
        dead = await api.dead(metadata={"token": "shh"})
        async with api.client(await api.key(*READ)) as client:
            for path in (f"/jobs/{dead}", "/jobs", f"/dead/{dead}", "/dead", f"/jobs/{dead}/events"):
                answer = await client.get(path)
                assert answer.status_code == 200, path
                assert not [secret for secret in SECRETS if secret in answer.text], path
            said = (await client.get(f"/jobs/{dead}")).json()
            assert said["payload"] is None
            assert said["error"]["type"] == "holdfast.PermanentError"
            assert (said["error"]["message"], said["error"]["traceback"]) == (None, None)
            assert said["error"]["fingerprint"]
            assert (await client.get(f"/jobs/{dead}/result")).status_code == 403
            searched = await client.get("/dead", params={"text": "ada"})
            assert (searched.status_code, searched.json()["field"]) == (403, "text")
        async with api.client(await api.key(*READ_ALL)) as client:
            said = (await client.get(f"/jobs/{dead}")).json()
            assert said["payload"]["args"] == ["ada"]
            assert said["payload"]["kwargs"] == {"cents": 5}
            assert said["payload"]["metadata"] == {"token": "shh"}
            assert "ada cannot be charged" in said["error"]["message"]
            assert len((await client.get("/dead", params={"text": "ada"})).json()["jobs"]) == 1


@scene
async def test_the_words_of_a_task_about_its_progress_are_its_payload() -> None:
    async with served() as api:

        @api.hf.task(name="shop.stages")
        async def stages(card: str) -> None:
            await current_job().progress(1, 2, f"charging {card}")

        job = await api.hf.enqueue("shop.stages", "4111")
        async with api.hf.worker():
            await job.result(20)
        for scopes, told in ((READ, None), (READ_ALL, "charging 4111")):
            async with api.client(await api.key(*scopes)) as client:
                said = (await client.get(f"/jobs/{job.id}")).json()
                assert (said["stage"], said["progress"]["done"]) == (told, 1)
                events = (await client.get(f"/jobs/{job.id}/events")).text
                assert ("4111" in events) is (told is not None)


@scene
async def test_jobs_are_listed_by_filters_page_by_page() -> None:
    async with served() as api, api.client(await api.key(*READ)) as client:
        add, mail = api.hf.named("shop.add"), api.hf.named("shop.mail")
        numbers = [str((await add.options(tags=["even" if n % 2 == 0 else "odd"]).enqueue(n)).id) for n in range(7)]
        letter = str((await mail.options(tenant="acme").enqueue("bob")).id)
        assert await _all(client, limit=3) == [letter, *reversed(numbers)]
        assert await _all(client, limit=3, tag="even") == list(reversed(numbers[::2]))
        assert await _all(client, tenant="acme") == await _all(client, queue="mail") == [letter]
        assert await _all(client, state="dead") == []
        assert await _all(client, task="shop.add", created_before="2000-01-01T00:00:00Z") == []


async def _all(client: Any, **params: Any) -> list[str]:
    found: list[str] = []
    while True:
        page = (await client.get("/jobs", params=params)).json()
        assert len(page["jobs"]) <= params.get("limit", 50)
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            return found
        params["before"] = page["next"]


@scene
async def test_a_key_for_two_queues_lists_both_as_one() -> None:
    async with served() as api, api.client(await api.key(*READ, queues=["default", "mail"])) as client:
        ids = []
        for n in range(9):
            task = ("shop.add", "shop.mail", "shop.charge")[n % 3]
            job = await api.hf.enqueue(task, 1 if n % 3 == 0 else "bob")
            ids += [str(job.id)] if n % 3 < 2 else []
        assert await _all(client, limit=2) == list(reversed(ids))
        assert await _all(client, limit=2, queue="bank") == []
        assert await _all(client, queue="mail") == list(reversed(ids[1::2]))


@scene
async def test_a_result_is_downloaded_as_it_is() -> None:
    async with served() as api, api.client(await api.key(*READ_ALL)) as client:
        job = await api.hf.enqueue("shop.add", 1, b=2)
        early = await client.get(f"/jobs/{job.id}/result")
        assert (early.status_code, early.headers["Retry-After"]) == (409, "1")
        async with api.hf.worker():
            await job.result(10)
        answer = await client.get(f"/jobs/{job.id}/result")
        assert (answer.status_code, answer.content) == (200, b"3")
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{job.id}.json"'
        dead = await client.get(f"/jobs/{await api.dead()}/result")
        assert (dead.status_code, "Retry-After" in dead.headers) == (409, False)


@scene
async def test_why_a_job_waits_is_explained() -> None:
    async with served() as api, api.client(await api.key(*READ)) as client:
        job = await api.hf.named("shop.add").options(delay=3600).enqueue(1)
        said = (await client.get(f"/jobs/{job.id}/explain")).json()
        assert (said["state"], said["held_by"][0]["kind"]) == ("scheduled", "scheduled")
        assert said["explanation"].startswith(f"job {job.id}")


@scene
async def test_a_job_that_is_not_there_is_a_problem() -> None:
    async with served() as api, api.client(await api.key()) as client:
        missing = "01890a5d-ac96-774b-bcce-b302099a8057"
        for path in ("", "/result", "/explain", "/events"):
            answer = await client.get(f"/jobs/{missing}{path}")
            assert (answer.status_code, answer.json()["type"]) == (404, "urn:holdfast:problem:job-not-found")
        assert (await client.get("/jobs/not-an-id")).json()["type"] == "urn:holdfast:problem:not-found"
        assert (await client.get(f"/batches/{missing}")).json()["type"] == "urn:holdfast:problem:batch-not-found"
        assert (await client.get("/queues/nowhere")).json()["type"] == "urn:holdfast:problem:queue-not-found"
        assert (await client.get("/tasks/nothing")).json()["type"] == "urn:holdfast:problem:task-not-found"


@scene
async def test_what_there_is() -> None:
    async with served() as api, api.client(await api.key()) as client:
        tasks = {task["name"]: task for task in (await client.get("/tasks")).json()["tasks"]}
        assert sorted(tasks) == ["shop.add", "shop.charge", "shop.mail"]
        add = (await client.get("/tasks/shop.add")).json()
        assert (add, add["doc"], add["queue"]) == (tasks["shop.add"], "Add two numbers.", "default")
        assert add["arguments"]["required"] == ["a"]
        assert add["arguments"]["properties"]["b"] == {"default": 1, "title": "B", "type": "integer"}
        async with api.hf.worker(concurrency=3):
            [worker] = (await client.get("/workers")).json()["workers"]
            assert (worker["concurrency"], worker["running"]) == (3, 0)
        settings = {each["name"]: each for each in (await client.get("/settings")).json()["settings"]}
        assert (settings["poll_s"]["value"], settings["poll_s"]["origin"]) == (0.05, "argument poll_s")
