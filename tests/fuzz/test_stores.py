"""From end to end on both stores: what was accepted arrives, and whatever bytes are stored, the worker goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given
from tests.fuzz.examples import fuzzed_slowly
from tests.fuzz.outside import ABYSS, any_text, any_value, good_value, near_json, raw_bytes
from tests.integration.scene import PATIENCE_S

from holdfast import Holdfast, InvalidArguments, InvalidOptions, JobFailed, JobHandle, JobInfo
from holdfast.client.arguments import plain_result
from holdfast.core.settlement import Succeed, Verdict
from holdfast.core.state import State
from holdfast.runtime.threads import LoopThread
from holdfast.telemetry.events import JobStarted
from holdfast.testing.contracts.arrange import LONG_S, a_job, claim, enlist, insert

DAY = timedelta(hours=23)
STORES = ("sqlite", "postgres")
#: Jobs of one example: a store's transaction is what costs.
SOME = {"min_size": 1, "max_size": 6}


class Place:
    """An app with a worker on one store, for all examples of a test."""

    def __init__(self, hf: Holdfast) -> None:
        self.hf = hf
        self.begun: list[str] = []
        hf.telemetry.attach(lambda event: self.begun.append(str(event.job_id)), only=(JobStarted,))
        self.echo = hf.task(name="echo")(echo)
        self.pick = hf.task(name="pick")(pick)

    async def send(self, values: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Each value that was accepted, and what came of it; `values` are passed to a task and by name only."""
        sent = []
        for value in values:
            for task in (self.echo, self.hf.named("echo")):
                try:
                    sent.append((value, await task.enqueue(value)))
                except InvalidArguments:
                    continue
        return [(value, await job.result(timeout=PATIENCE_S)) for value, job in sent]

    async def put(self, bodies: Sequence[tuple[bytes, bytes | None, bytes | None]]) -> list[JobInfo]:
        """Jobs as another program may have stored them, when they have ended."""
        jobs = [
            a_job(task="pick", queue="default", payload=payload, options=options, metadata=metadata)
            for payload, options, metadata in bodies
        ]
        ids = await insert(self.hf._open_store(), *jobs)
        for job_id in ids:
            try:
                await JobHandle(job_id, self.hf._open_client(), plain_result).result(timeout=PATIENCE_S)
            except JobFailed:
                continue
        return [await self.hf.jobs.get(job_id) for job_id in ids]

    async def settle(self, results: Sequence[bytes]) -> list[JobHandle[Any]]:
        """Jobs that have succeeded with these results, whatever they are."""
        store = self.hf._open_store()
        worker = await enlist(store, lease_s=LONG_S)
        ids = await insert(store, *[a_job() for _ in results])
        runs = {run.id: run.token for run in await claim(store, worker)}
        settled = [Succeed(job_id, runs[job_id], result) for job_id, result in zip(ids, results, strict=True)]
        assert await store.settle_jobs(worker, settled) == [Verdict.APPLIED] * len(ids)
        return [JobHandle(job_id, self.hf._open_client(), plain_result) for job_id in ids]


async def echo(value: Any) -> Any:
    return value


async def pick(n: int, text: str = "", *, flags: list[bool] | None = None) -> int:
    return n


@pytest.fixture(params=STORES)
def loop(request: pytest.FixtureRequest) -> Iterator[LoopThread]:
    thread = LoopThread("fuzz")
    thread.start()
    yield thread
    thread.stop()


@pytest.fixture
def place(loop: LoopThread, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.node.callspec.params["loop"] == "sqlite":
        hf = Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}", poll_s=0.05)
    else:
        tables = request.getfixturevalue("postgres_tables")
        hf = Holdfast(tables.url, schema=tables.schema, poll_s=0.05)
    made = Place(hf)

    async def open_up() -> Any:
        await hf.open()
        worker = hf.worker(queues=["default"])
        await worker.__aenter__()
        return worker

    async def close(worker: Any) -> None:
        await worker.__aexit__(None, None, None)
        await hf.close()

    worker = loop.submit(open_up()).result(PATIENCE_S)
    yield made
    loop.submit(close(worker)).result(PATIENCE_S)


@fuzzed_slowly
@given(values=st.lists(any_value, **SOME))
@example(values=["\0", "\ud800", float("nan"), float("inf"), 10**4_000, 10**4_001, 10**5_000, -0.0, 1e-320])
@example(values=[json.loads("[" * depth + "]" * depth) for depth in (61, 62, 63, 64, 65)])
@example(values=["x" * 1_048_000, "x" * 1_049_000, "é" * 524_000, "\\" * 520_000])
@example(values=[{"": 1, " ": 2, "\u2028": "\u2029", "a\\u0000": "\\u0000", "NaN": "Infinity"}])
def test_what_enqueue_accepted_arrives_as_it_was(values: list[Any], place: Place, loop: LoopThread) -> None:
    for value, result in loop.submit(place.send(values)).result(2 * PATIENCE_S):
        assert result == json.loads(json.dumps(value))


@fuzzed_slowly
@given(values=st.lists(good_value, **SOME))
def test_plain_values_are_all_accepted(values: list[Any], place: Place, loop: LoopThread) -> None:
    assert len(loop.submit(place.send(values)).result(2 * PATIENCE_S)) == 2 * len(values)


calls = near_json(st.fixed_dictionaries({"args": st.lists(any_value, max_size=2), "kwargs": st.just({})})) | raw_bytes
options = st.none() | near_json(st.fixed_dictionaries({}, optional={"timeout": any_value, "retry": any_value}))
GOOD = b'{"args":[1],"kwargs":{}}'


@fuzzed_slowly
@given(bodies=st.lists(st.tuples(calls | st.just(GOOD), options | raw_bytes, st.none() | raw_bytes), **SOME))
@example(
    bodies=[(b"", None, None), (b"[" * ABYSS, None, b"[" * ABYSS), (GOOD, b"[" * ABYSS, b"{"), (GOOD, b"", b"\xff")]
)
@example(
    bodies=[
        (b'{"args":[' + b"9" * 5_000 + b'],"kwargs":{}}', None, None),
        (GOOD, b'{"timeout":' + b"9" * 400 + b"}", None),
    ]
)
@example(bodies=[(GOOD, b'{"retry":{"max_attempts":0}}', b"[1]"), (GOOD, b'{"timeout":null,"retry":[]}', b"null")])
def test_whatever_is_stored_is_run_once_and_dead_where_it_cannot_be_read(
    bodies: list[tuple[bytes, bytes | None, bytes | None]], place: Place, loop: LoopThread
) -> None:
    for info in loop.submit(place.put(bodies)).result(2 * PATIENCE_S):
        assert (info.state, info.reason) in ((State.SUCCEEDED, None), (State.DEAD, "bad_payload"))
        assert place.begun.count(str(info.id)) == 1, "once, and not again and again"
        assert info.metadata is None or isinstance(info.metadata, dict)
    assert loop.submit(place.hf.jobs.list(limit=20)).result(PATIENCE_S)


@fuzzed_slowly
@given(results=st.lists(raw_bytes, **SOME))
@example(results=[b"[" * ABYSS, b"\xff", b"", b"NaN"])
def test_a_result_that_cannot_be_read_hides_nothing_else(results: list[bytes], place: Place, loop: LoopThread) -> None:
    handles = loop.submit(place.settle(results)).result(PATIENCE_S)
    page = loop.submit(place.hf.jobs.list(limit=len(results))).result(PATIENCE_S)
    assert {info.id for info in page} == {handle.id for handle in handles}
    for handle in handles:
        try:
            loop.submit(handle.result(timeout=PATIENCE_S)).result(PATIENCE_S)
        except InvalidArguments:
            continue


moments = st.datetimes(timezones=st.just(UTC) | st.builds(timezone, st.timedeltas(-DAY, DAY)))
filters = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("queue", "task", "tenant", "tag", "error_type", "fingerprint", "text", "reason"), any_text)
    | {"state": st.sampled_from(State) | any_text, "created_after": moments, "created_before": moments},
)


@fuzzed_slowly
@given(where=filters, limit=st.integers(1, 1000), before=st.none() | st.uuids() | any_text)
@example(where={"tag": "\ud800"}, limit=1, before=None)
@example(where={"text": "a\0b", "state": "dead"}, limit=1, before=None)
@example(where={"created_after": datetime(1, 1, 1, tzinfo=timezone(DAY))}, limit=1, before=None)
@example(where={"created_before": datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-DAY))}, limit=1, before=None)
def test_a_filter_of_any_kind_finds_something_or_is_refused(
    where: dict[str, Any], limit: int, before: Any, place: Place, loop: LoopThread
) -> None:
    dead = {name: value for name, value in where.items() if name != "state"}
    for ask in (
        lambda: place.hf.jobs.list(**where, limit=limit, before=before),
        lambda: place.hf.dead.list(**dead, limit=limit, before=before),
        lambda: place.hf.dead.count(**dead),
        lambda: place.hf.dead.purge(**dead),
    ):
        try:
            loop.submit(ask()).result(PATIENCE_S)
        except (InvalidArguments, InvalidOptions):
            continue


@fuzzed_slowly
@given(reason=any_text, by=any_text)
def test_a_reason_of_any_text_is_kept(reason: str, by: str, place: Place, loop: LoopThread) -> None:
    async def cancel() -> JobInfo:
        job = await place.echo.options(delay=3600).enqueue(1)
        await job.cancel(reason, by=by)
        return await job.info()

    assert loop.submit(cancel()).result(PATIENCE_S).state is State.CANCELLED
