"""Every route of the OpenAPI document: without a key, with every other scope, from another tenant, and rightly."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import httpx
import pytest
from tests.http.served import V1, Scene, make_app, served
from tests.integration.scene import scene

from holdfast import Scope
from holdfast.http import asgi

METHODS = ("get", "put", "post", "patch", "delete")


class Operation(NamedTuple):
    """One line of the document."""

    method: str
    path: str
    scope: Scope
    prefix: str

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"


def _operations() -> list[Operation]:
    document = asgi(make_app(":memory:")).openapi()
    return [
        Operation(method, path.removeprefix(V1), _scope(told), V1 if path.startswith(V1) else "")
        for path, item in document["paths"].items()
        for method, told in item.items()
        if method in METHODS
    ]


def _scope(told: dict[str, Any]) -> Scope:
    return Scope(told["description"].rpartition("Scope: `")[2].rstrip("`."))


OPERATIONS = _operations()

ADD = {"task": "shop.add", "args": [1]}
BODIES: dict[str, Any] = {
    "POST /jobs": ADD,
    "POST /jobs/batch": {"items": [ADD]},
    "POST /routing/explain": ADD,
    "POST /dead/replay": {"everything": True},
    "POST /dead/purge": {"everything": True},
    "PATCH /queues/{queue}/weights": {"weight": 2},
    "PATCH /queues/{queue}/watermarks": {"high": 10, "low": 5},
    "PATCH /queues/{queue}/options": {"concurrency": 2},
    "PUT /limits/{name}": {"size": 2},
    "PATCH /breakers/{name}/figures": {"failures": 2},
    "PUT /routes": {"pattern": "shop.*", "queue": "elsewhere"},
    "PUT /tenants/{name}/weight": {"weight": 2},
}
QUERIES: dict[str, Any] = {"DELETE /routes": {"pattern": "shop.mail"}}
#: What another tenant's key is answered with; of all others: that it may not, or that nothing is there.
ALLOWED_TO_ANOTHER_TENANT = {
    "POST /jobs": 202,
    "POST /jobs/batch": 207,
    "POST /routing/explain": 200,
    "GET /jobs": 200,
    "GET /batches/{batch}/jobs": 200,
    "GET /dead": 200,
    "POST /dead/replay": 200,
    "POST /dead/purge": 200,
    "GET /tasks": 200,
    "GET /tasks/{task}": 200,
}
#: What the right key is answered with where it is not 200.
RIGHT = {
    "POST /jobs": 202,
    "POST /jobs/batch": 207,
    "POST /jobs/{job_id}/retry": 202,
    "POST /dead/{job_id}/replay": 202,
}


class Target(NamedTuple):
    """What the paths name; all of it is tenant `acme`'s."""

    job: str
    dead: str
    done: str
    batch: str

    def path(self, operation: Operation) -> str:
        job = self.done if operation.path.endswith("/result") else self.job
        if operation.path.startswith("/dead/") or operation.path.endswith("/retry"):
            job = self.dead
        if operation.path.endswith("/events"):
            job = self.done
        name = "task:shop.add" if "limits" in operation.path else "acme"
        return operation.path.format(job_id=job, batch=self.batch, queue="bank", name=name, task="shop.add")


async def _target(api: Scene) -> Target:
    async with api.client(await api.key(tenant="acme")) as client:
        batch = (await client.post("/jobs/batch", json={"items": [ADD]})).json()
        now = {"tenant": "acme", "queue": "now"}
        dead = await api.hf.named("shop.charge").options(**now).enqueue("ada")
        done = await api.hf.named("shop.add").options(**now).enqueue(1)
        async with api.hf.worker(queues=["now"]):
            await done.result(10)
            async for _ in dead.events():
                pass
        await api.hf.limits.set("task:shop.add", size=3)
        await api.hf.breakers.set("acme", failures=3)
        await api.hf.routes.set("shop.mail", priority=3)
        await api.hf.queues.pause("bank")
        return Target(batch["items"][0]["job"]["id"], str(dead.id), str(done.id), batch["batch"])


async def _ask(api: Scene, operation: Operation, target: Target, key: str | None, **headers: str) -> httpx.Response:
    async with api.client(key, **headers) as client:
        body = BODIES.get(str(operation))
        url = f"http://api{operation.prefix}{target.path(operation)}"
        return await client.request(operation.method, url, json=body, params=QUERIES.get(str(operation)))


async def _everything(api: Scene) -> Any:
    """All that a request could have changed: the jobs, and the settings."""
    jobs = sorted((str(job.id), job.state, job.reason, job.args) for job in await api.hf.jobs.list(limit=1000))
    return jobs, [each for each in await api.hf.audit.list() if each.what not in ("key", "replay", "purge")]


def test_the_table_names_every_operation_that_takes_a_body() -> None:
    taken = {str(each) for each in OPERATIONS}
    assert len(OPERATIONS) >= 40
    assert BODIES.keys() | QUERIES.keys() | ALLOWED_TO_ANOTHER_TENANT.keys() | RIGHT.keys() <= taken


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_route_is_closed_to_all_but_the_right_key(operation: Operation) -> None:
    @scene
    async def check() -> None:
        async with served() as api:
            target = await _target(api)
            before = await _everything(api)
            for key in (None, "hf_AAAAAAAAAAAA_" + "a" * 43, "nonsense"):
                _is_problem(await _ask(api, operation, target, key), 401)
            others = await api.key(*(set(Scope) - {operation.scope}))
            _is_problem(await _ask(api, operation, target, others), 403)
            bound = await api.key(queues=["elsewhere"])
            answer = await _ask(api, operation, target, bound)
            assert _tells_nothing(answer, target), answer.text
            assert await _everything(api) == before, "nothing has changed"
            await _check_other_tenant(api, operation, target)
            right = await _ask(api, operation, target, await api.key(operation.scope))
            assert right.status_code in (RIGHT.get(str(operation), 200), 204), right.text

    check()


async def _check_other_tenant(api: Scene, operation: Operation, target: Target) -> None:
    theirs = await _everything(api)
    answer = await _ask(api, operation, target, await api.key(tenant="zenith"))
    assert _tells_nothing(answer, target), answer.text
    allowed = ALLOWED_TO_ANOTHER_TENANT.get(str(operation))
    if allowed is None:
        assert answer.status_code in (403, 404), answer.text
    else:
        assert answer.status_code == allowed, answer.text
    jobs, _ = await _everything(api)
    assert [each for each in jobs if each in theirs[0]] == theirs[0], "acme's jobs are as they were"


def _tells_nothing(answer: httpx.Response, target: Target) -> bool:
    """Nobody's job is in the answer; a refusal may say again what was asked for."""
    if answer.status_code in (401, 403, 404):
        assert answer.json()["type"].startswith("urn:holdfast:problem:")
        return "acme" not in answer.text.replace("'acme'", "")
    return not [each for each in (target.job, target.dead, target.done, "acme") if each in answer.text]


def _is_problem(answer: httpx.Response, status: int) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert json.loads(answer.content)["status"] == status
    if status == 401:
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
