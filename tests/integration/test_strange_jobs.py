"""Jobs that this code did not make: unknown tasks wait visibly, unreadable calls are dead at once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator
from tests.integration.scene import PATIENCE_S, Heard, scene, until, url_of

from holdfast import Holdfast, JobFailed, JobHandle
from holdfast.core.ids import new_job_id
from holdfast.core.job import NewJob
from holdfast.core.state import State
from holdfast.telemetry.events import JobParked


class Picky(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def _look_up(cls, value: int) -> int:
        return {1: 1}[value]  # a KeyError is not what Pydantic expects of a validator


async def put(hf: Holdfast, payload: bytes, *, task: str = "work", **more: Any) -> JobHandle[Any]:
    """A job as another program, or another version, may have stored it."""
    job_id = new_job_id()
    await hf._open_store().insert_jobs([NewJob(job_id, task, "default", 5, payload, **more)])
    return JobHandle(job_id, hf._open_client(), lambda result: json.loads(result or b"null"))


def call(*args: object, **kwargs: object) -> bytes:
    return json.dumps({"args": args, "kwargs": kwargs}).encode()


@scene
async def test_an_unknown_task_is_parked_and_runs_when_a_worker_that_knows_it_starts(tmp_path: Path) -> None:
    url = url_of(tmp_path / "jobs.db")
    old, new = Holdfast(url, poll_s=0.05), Holdfast(url, poll_s=0.05)

    @new.task(name="shop.new")
    async def new_task(n: int) -> int:
        return n + 1

    async with old, new:
        heard = Heard(old, JobParked)
        async with old.worker(queues=["default"]):
            job = await old.enqueue("shop.new", 1)
            parked = await heard.next(JobParked)
            assert (parked.job_id, parked.reason, parked.key) == (job.id, "unknown_task", "shop.new")
            info = await job.info()
            assert (info.state, info.reason, info.attempt) == (State.PARKED, "unknown_task", 0)
            assert [(run.cause, run.error.message) for run in info.attempts if run.error] == [
                ("handed_back", "parked: unknown_task")
            ]
            assert [queue.parked for queue in await old.queues.list()] == [1]
        async with new.worker():
            assert await job.result(timeout=PATIENCE_S) == 2
        assert (await job.info()).attempt == 1


@scene
async def test_a_job_parked_by_a_worker_that_cannot_run_it_comes_to_one_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.upkeep.unparker._EVERY_S", 0.05)
    url = url_of(tmp_path / "jobs.db")
    old, new = Holdfast(url, poll_s=0.05), Holdfast(url, poll_s=0.05)
    busy = asyncio.Event()

    @new.task(name="shop.busy")
    async def keep_busy() -> None:
        await busy.wait()

    @new.task(name="shop.new")
    async def new_task() -> str:
        return "done"

    async with old, new, new.worker(concurrency=1):
        await until(await keep_busy.enqueue(), State.RUNNING)
        heard = Heard(old, JobParked)
        async with old.worker(queues=["default"]):
            # Both are at work, and only the one that cannot run it has a free slot.
            job = await new_task.enqueue()
            assert (await heard.next(JobParked)).job_id == job.id
            busy.set()
            assert await job.result(timeout=PATIENCE_S) == "done"


@scene
async def test_a_parked_job_can_be_cancelled() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)
    async with hf, hf.worker(queues=["default"]):
        job = await hf.enqueue("nobody.knows")
        await until(job, State.PARKED)
        await job.cancel("a typo")
        assert (await until(job, State.CANCELLED)).reason == "a typo"


BAD_PAYLOADS: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"\x80\x04pickle", "the stored call is not readable: ValueError: "),
    "empty": (b"", "the stored call is not readable: ValueError: "),
    "not an object": (b"[1]", "the stored call is not readable: TypeError: "),
    "without arguments": (b"{}", "the stored call is not readable: KeyError: 'args'"),
    "arguments of the wrong kind": (b'{"args": {}, "kwargs": []}', "the stored call is not of the form "),
    "a missing argument": (call(), "work: argument 'n': Missing required argument"),
    "one too many": (call(1, None, 3), "work: argument 3: Unexpected positional argument"),
    "an unknown one": (call(1, m=2), "work: argument 'm': Unexpected keyword argument"),
    "the wrong type": (call("x"), "work: argument 'n': Input should be a valid integer"),
    "a validator that breaks": (call(1, picky={"n": 2}), "2"),
}


@pytest.mark.parametrize("name", BAD_PAYLOADS)
@scene
async def test_a_call_that_does_not_fit_is_dead_at_once_and_can_be_looked_at(name: str) -> None:
    hf = Holdfast(":memory:")
    ran: list[int] = []

    @hf.task(name="work")
    async def work(n: int, picky: Picky | None = None) -> None:
        ran.append(n)

    payload, message = BAD_PAYLOADS[name]
    async with hf, hf.worker():
        job = await put(hf, payload)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE_S)
        info = await hf.dead.get(job.id)
        assert [each.id for each in await hf.dead.list(reason="bad_payload")] == [job.id]
        await hf.dead.edit(job.id, n=1)
        await hf.dead.replay(job.id)
        await until(job, State.SUCCEEDED)
    assert (info.state, info.reason, info.attempt) == (State.DEAD, "bad_payload", 1)
    assert info.error is not None
    assert info.error.message.startswith(message)
    assert ran == [1]


BAD_OPTIONS = [
    b"garbage",
    b"[]",
    b'{"timeout": "soon"}',
    b'{"soft_timeout": -1}',
    b'{"retry": 5}',
    b'{"retry": {"base": "x"}}',
]


@pytest.mark.parametrize("options", BAD_OPTIONS)
@scene
async def test_options_that_cannot_be_read_are_dead_at_once(options: bytes) -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="work")
    async def work() -> None: ...

    async with hf, hf.worker():
        info = await until(await put(hf, call(), options=options), State.DEAD)
    assert (info.reason, info.attempt) == ("bad_payload", 1)
    assert info.error is not None
    assert info.error.type.startswith("holdfast.Invalid")


@scene
async def test_a_call_of_another_version_is_taken_in_the_types_of_this_one() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="work")
    async def work(n: int, *, text: str = "new in this version") -> list[object]:
        return [n, text]

    async with hf, hf.worker():
        assert await (await put(hf, call("5"))).result(timeout=PATIENCE_S) == [5, "new in this version"]
