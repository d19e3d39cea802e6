"""What a call may say in place of its task: once, not too often, and how it is retried; the same as in process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.http.served import V1, Scene, served
from tests.integration.scene import scene

from holdfast import Debounce, InvalidOptions, NotUnique, RetryPolicy, State, Throttle, Unique
from holdfast.client.http import HttpClient

MAIL = {"task": "shop.mail", "args": ["ada"]}
BOB = {"task": "shop.mail", "args": ["bob"]}


@scene
async def test_a_unique_call_is_refused_answered_with_the_other_or_goes_instead_of_it() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        first = await client.post("/jobs", json=MAIL | {"unique": {}})
        again = await client.post("/jobs", json=MAIL | {"unique": {"when_taken": "reject"}})
        assert (first.status_code, again.status_code) == (202, 409)
        assert again.json()["type"] == "urn:holdfast:problem:not-unique"
        assert again.json()["job_id"] == first.json()["id"]
        same = await client.post("/jobs", json=MAIL | {"unique": {"when_taken": "existing"}})
        assert (same.json()["id"], same.json()["replayed"]) == (first.json()["id"], True)
        other = await client.post("/jobs", json=BOB | {"unique": {}})
        assert other.status_code == 202
        instead = await client.post("/jobs", json=MAIL | {"unique": {"when_taken": "replace"}})
        assert instead.json()["replayed"] is False
        states = [(await api.hf.jobs.get(each.json()["id"])).state for each in (first, other, instead)]
        assert states == [State.CANCELLED, State.READY, State.READY]


@scene
async def test_a_call_in_process_and_one_over_http_are_one_too_many_for_each_other() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        there = await api.hf.named("shop.mail").options(unique=Unique(by="to", for_=60)).enqueue("ada")
        here = await client.post("/jobs", json=MAIL | {"unique": {"by": ["to"], "for_s": 60}})
        assert here.json()["job_id"] == str(there.id)


@scene
async def test_the_last_of_debounced_calls_counts_and_the_first_of_throttled_ones() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        calls = [await client.post("/jobs", json=MAIL | {"debounce": each}) for each in (3600, {"wait_s": 3600})]
        first, last = [await api.hf.jobs.get(each.json()["id"]) for each in calls]
        assert (first.state, last.state) == (State.CANCELLED, State.SCHEDULED)
        assert last.run_at is not None
        assert last.run_at - last.created_at == timedelta(hours=1)
        once = [await client.post("/jobs", json=BOB | {"throttle": each}) for each in (3600, {"every_s": 3600})]
        assert [each.json()["replayed"] for each in once] == [False, True]
        assert once[0].json()["id"] == once[1].json()["id"]


@scene
async def test_null_says_that_what_the_task_says_is_not_for_this_call() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:

        @api.hf.task(name="shop.nightly", unique=Unique())
        async def nightly() -> None: ...

        task = {"task": "shop.nightly"}
        codes = [(await client.post("/jobs", json=task | more)).status_code for more in ({}, {}, {"unique": None})]
        assert codes == [202, 409, 202]


@scene
async def test_a_call_has_its_own_retries() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:

        @api.hf.task(name="shop.flaky")
        async def flaky() -> None:
            raise ValueError("not yet")

        retry = {"max_attempts": 3, "backoff": [0], "jitter": "none"}
        thrice = (await client.post("/jobs", json={"task": "shop.flaky", "retry": retry})).json()["id"]
        gone = (await client.post("/jobs", json={"task": "shop.flaky", "retry": {"give_up_on": ["ValueError"]}})).json()
        async with api.hf.worker():
            for each in (thrice, gone["id"]):
                async for _ in api.hf.jobs.watch(each):
                    pass
        found = [await api.hf.jobs.get(each) for each in (thrice, gone["id"])]
        assert [(job.state, job.attempt, job.max_attempts) for job in found] == [
            (State.DEAD, 3, 3),
            (State.DEAD, 1, 5),
        ]


@pytest.mark.parametrize(
    ("said", "status", "field"),
    [
        ({"unique": {"when_taken": "maybe"}}, 422, "unique.when_taken"),
        ({"unique": {"for": 3}}, 422, "unique.for"),
        ({"unique": {"for_s": 0}}, 422, "unique.for_s"),
        ({"unique": {"states": ["nowhere"]}}, 422, "unique.states[0]"),
        ({"unique": {"by": ["whom"]}}, 422, "unique.by[0]"),
        ({"unique": {"by": []}}, 422, "unique.by"),
        ({"unique": True}, 422, "unique"),
        ({"unique": {}, "throttle": 3}, 422, "throttle"),
        ({"debounce": 3, "throttle": 3}, 422, "throttle"),
        ({"debounce": 3, "delay_s": 3}, 422, "debounce"),
        ({"debounce": -1}, 422, "debounce.wait_s"),
        ({"debounce": True}, 422, "debounce"),
        ({"debounce": {"wait_s": 5, "longest_s": 1}}, 422, "debounce"),
        ({"debounce": {}}, 422, "debounce.wait_s"),
        ({"throttle": {"every_s": "soon"}}, 422, "throttle.every_s"),
        ({"retry": {"max_attempts": 0}}, 422, "retry.max_attempts"),
        ({"retry": {"max_attempts": 101, "base": 0}}, 422, "retry.max_attempts"),
        ({"retry": {"base": 100}}, 422, "retry"),
        ({"retry": {"attempts": 3}}, 422, "retry.attempts"),
        ({"retry": {"delays": {"ValueError": -1}}}, 422, "retry.delays.ValueError"),
    ],
)
def test_what_makes_no_sense_is_refused_by_the_field(said: dict[str, Any], status: int, field: str) -> None:
    @scene
    async def check() -> None:
        async with served() as api, api.client(await api.key("submit")) as client:
            answer = await client.post("/jobs", json=MAIL | said)
            assert (answer.status_code, answer.json()["type"]) == (status, "urn:holdfast:problem:invalid-request")
            assert answer.json().get("field") == field, answer.json()
            batch = (await client.post("/jobs/batch", json={"items": [MAIL, MAIL | said]})).json()
            problem = batch["items"][1]["problem"] if "items" in batch else batch
            assert problem["field"] == f"items[1].{field}"
            assert len(await api.hf.jobs.list()) == (1 if "items" in batch else 0), "what is refused is not stored"

    check()


@pytest.mark.parametrize("said", [{"unique": {"by": ["a"]}}, {"throttle": {"every_s": 5, "by": ["a"]}}, {}])
def test_arguments_that_do_not_fit_are_named_also_where_they_are_to_be_compared(said: dict[str, Any]) -> None:
    @scene
    async def check() -> None:
        wrong = {"task": "shop.add", "args": ["x"]} | said
        async with served() as api, api.client(await api.key("submit")) as client:
            alone = await client.post("/jobs", json=wrong)
            assert (alone.status_code, alone.json()["field"]) == (422, "args[0]")
            assert alone.json()["type"] == "urn:holdfast:problem:invalid-arguments"
            many = await client.post("/jobs/batch", json={"items": [MAIL, wrong]})
            assert [each["status"] for each in many.json()["items"]] == [202, 422]
            assert many.json()["items"][1]["problem"]["field"] == "items[1].args[0]"

    check()


@scene
async def test_each_of_many_may_have_its_own() -> None:
    async with served() as api, api.client(await api.key("submit")) as client:
        items = [MAIL | {"unique": {}}, BOB | {"throttle": 60, "retry": {"max_attempts": 1}}, MAIL | {"unique": {}}]
        answers = (await client.post("/jobs/batch", json={"items": items})).json()["items"]
        assert sorted(each["status"] for each in answers) == [202, 202, 409]
        assert (await api.hf.jobs.get(answers[1]["job"]["id"])).max_attempts == 1


@scene
async def test_a_key_for_some_queues_replaces_nothing_that_may_be_in_another() -> None:
    async with served() as api, api.client(await api.key("submit", queues=["mail"])) as client:
        there = await api.hf.named("shop.mail").options(queue="other", unique=Unique()).enqueue("ada")
        for said, field in (
            ({"unique": {"when_taken": "replace"}}, "unique.when_taken"),
            ({"debounce": 3}, "debounce"),
        ):
            answer = await client.post("/jobs", json=MAIL | said)
            assert (answer.status_code, answer.json()["field"]) == (403, field)
        assert (await api.hf.jobs.get(there.id)).state is State.READY
        for policy in ("existing", "reject"):
            told = await client.post("/jobs", json=MAIL | {"unique": {"when_taken": policy}})
            assert (told.status_code, "job_id" in told.json()) == (409, False), "ids of others are not told"
            assert told.json()["type"] == "urn:holdfast:problem:not-unique"
            assert str(there.id) not in told.text
        assert (await client.post("/jobs", json=BOB | {"throttle": 3})).status_code == 202


@scene
async def test_nor_by_way_of_a_task_that_replaces() -> None:
    async with served() as api, api.client(await api.key("submit", queues=["b"])) as client:

        @api.hf.task(name="shop.settle", queue="a", debounce=30)
        async def settle(customer: int) -> None: ...

        @api.hf.task(name="shop.latest", queue="a", unique=Unique(when_taken="replace"))
        async def latest(customer: int) -> None: ...

        for task, null in ((settle, {"debounce": None}), (latest, {"unique": None})):
            there = await task.enqueue(1)
            body = {"task": task.name, "args": [1], "queue": "b"}
            refused = await client.post("/jobs", json=body)
            assert (refused.status_code, refused.json()["field"]) == (403, "task")
            [item] = (await client.post("/jobs/batch", json={"items": [body]})).json()["items"]
            assert item["status"] == 403
            assert not (await there.info()).state.ended
            assert (await client.post("/jobs", json=body | null)).status_code == 202
            assert not (await there.info()).state.ended


# ---------------------------------------------------------------- from Python


async def _client(api: Scene) -> HttpClient:
    return HttpClient(f"http://api{V1}", await api.key("submit"), transport=api.transport)


@scene
async def test_the_client_takes_the_options_of_a_call_in_process() -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    async with served() as api, await _client(api) as client:
        job = await client.submit(
            "shop.mail",
            ["ada"],
            delay=timedelta(seconds=60),
            expires=soon,
            tags=("red",),
            retry=RetryPolicy(max_attempts=7),
            unique=Unique(by="to", for_=timedelta(hours=1), states=[*State]),
        )
        info = await api.hf.jobs.get(job.id)
        assert (info.state, info.expires_at, info.tags, info.max_attempts) == (State.SCHEDULED, soon, ("red",), 7)
        with pytest.raises(NotUnique):
            await client.submit("shop.mail", ["ada"], unique=Unique(by=("to",)))
        assert not (await client.submit("shop.mail", ["ada"], unique=None)).existing
        first = await client.submit("shop.mail", ["bob"], throttle=Throttle(60))
        assert (await client.submit("shop.mail", ["bob"], throttle=60)).id == first.id
        late = await client.submit("shop.mail", ["eve"], debounce=Debounce(60, longest=120))
        assert (await api.hf.jobs.get(late.id)).state is State.SCHEDULED


@scene
async def test_what_the_client_cannot_send_is_refused_before_anything_is_sent() -> None:
    async with served() as api, await _client(api) as client:
        for wrong in (
            {"unique": Unique(by=lambda to: to)},
            {"unique": 3},
            {"timeout": None},
            {"delay": "soon"},
            {"nonsense": 3},
        ):
            with pytest.raises(InvalidOptions):
                await client.submit("shop.mail", ["ada"], **wrong)
        assert await api.hf.jobs.list() == []
