"""A real store under audit: its true history is sound, and a hand that reaches past it is seen."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from tests.history import (
    Answer,
    ClientRecorder,
    Report,
    RunRecorder,
    check,
    install_audit,
    load_client,
    load_runs,
    read_sqlite,
)

from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.core.job import ClaimedJob, ErrorInfo, KeyClaim, NewJob
from holdfast.core.settlement import Bury, HandBack, Park, Retry, Settlement, Succeed, Verdict
from holdfast.core.state import State
from holdfast.core.worker import NewWorker
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Existing, Inserted
from holdfast.stores.sqlite import SqliteStore

LANE = Lane("default", 5)
ERROR = ErrorInfo("builtins.ValueError", "no")
PLAIN, RETRIED, REAPED, DEAD, REPLAYED, CANCELLED, KEYED, PARKED, LIMITED, LATER, BLOCKED = (
    UUID(int=n) for n in range(1, 12)
)


class Scene:
    """A store, its recorders, and as many workers as it takes."""

    def __init__(self, directory: Path) -> None:
        self.database = directory / "holdfast.db"
        self.clients, self.runs = directory / "client", directory / "runs"
        for each in (self.clients, self.runs):
            each.mkdir()
        self.clock = ManualClock()
        self.store = SqliteStore(str(self.database), clock=self.clock)
        self.client, self.recorder = ClientRecorder(self.clients), RunRecorder(self.runs)
        self.workers = 0

    def report(self) -> Report:
        record = read_sqlite(self.database, as_of=self.clock.now())
        return check(load_client(self.clients), load_runs(self.runs), record)

    async def enqueue(self, job_id: UUID, **more: object) -> None:
        job = NewJob(job_id, "task", *LANE, b"[]", **more)  # type: ignore[arg-type]
        key = more.get("key")
        name = key.key if isinstance(key, KeyClaim) else None
        self.client.enqueue(job_id, answer=Answer.ASKED, key=name)
        [answer] = await self.store.insert_jobs([job])
        assert isinstance(answer, Inserted | Existing)
        self.client.enqueue(job_id, answer=Answer.OK, told=answer.job_id, key=name)

    async def worker(self) -> UUID:
        self.workers += 1
        worker = UUID(int=1000 + self.workers)
        await self.store.register_worker(NewWorker(worker, "host", 1, 10), lease_s=10)
        return worker

    async def claim(self, worker: UUID, *job_ids: UUID) -> list[ClaimedJob]:
        claim = await self.store.claim_jobs(worker, {LANE: 10}, deadline_s=5)
        assert [job.id for job in claim.jobs] == list(job_ids)
        return claim.jobs

    def run(self, job: ClaimedJob, worker: UUID, *, outcome: str | None = "ok") -> None:
        self.recorder.start(job.id, token=job.token, attempt=job.attempt, worker=worker)
        if outcome == "ok":
            self.recorder.effect(job.id, token=job.token, attempt=job.attempt, worker=worker)
        if outcome is not None:
            self.recorder.end(job.id, token=job.token, attempt=job.attempt, worker=worker, outcome=outcome)

    async def settle(self, worker: UUID, *settlements: Settlement) -> None:
        verdicts = await self.store.settle_jobs(worker, settlements)
        assert verdicts == [Verdict.APPLIED] * len(settlements)


async def _play(scene: Scene) -> None:
    await scene.store.open()
    install_audit(scene.database)
    first = await scene.worker()
    for job_id in (PLAIN, RETRIED, REAPED, DEAD, REPLAYED):
        await scene.enqueue(job_id)
    plain, retried, reaped, dead, replayed = await scene.claim(first, PLAIN, RETRIED, REAPED, DEAD, REPLAYED)
    scene.run(plain, first)
    scene.run(reaped, first, outcome=None)
    for job in (retried, dead, replayed):
        scene.run(job, first, outcome="failed")
    await scene.settle(
        first,
        Succeed(plain.id, plain.token, b"1"),
        Retry(retried.id, retried.token, 5, ERROR),
        Bury(dead.id, dead.token, "permanent", ERROR),
        Bury(replayed.id, replayed.token, "permanent", ERROR),
    )
    scene.clock.advance(11)
    assert (await scene.store.reap_workers(limit=10)).returned == 1
    assert (await scene.store.promote_jobs(limit=10)).promoted == 1
    scene.client.replay(REPLAYED, answer=Answer.OK)
    assert await scene.store.replay_jobs([REPLAYED]) == 1

    second = await scene.worker()
    again = await scene.claim(second, REAPED, RETRIED, REPLAYED)
    for job in again:
        scene.run(job, second)
    await scene.settle(second, *(Succeed(job.id, job.token, None) for job in again))

    await scene.enqueue(CANCELLED)
    assert [str(answer) for answer in await scene.store.cancel_jobs([CANCELLED], reason="test")] == ["cancelled"]
    scene.client.cancel(CANCELLED, answer=Answer.OK, told="cancelled")
    await scene.enqueue(KEYED, key=KeyClaim("k", b"f", 60))
    await scene.enqueue(UUID(int=99), key=KeyClaim("k", b"f", 60))
    await scene.enqueue(PARKED)
    await scene.enqueue(LIMITED, gates=(SlotGate("one", 1),))
    keyed, parked, limited = await scene.claim(second, KEYED, PARKED, LIMITED)
    for job in (keyed, limited):
        scene.run(job, second)
    await scene.settle(
        second,
        Park(parked.id, parked.token, "unknown_task", "task"),
        Succeed(keyed.id, keyed.token, None),
        HandBack(limited.id, limited.token, "draining"),
    )
    [limited] = await scene.claim(second, LIMITED)
    scene.run(limited, second)
    await scene.settle(second, Succeed(limited.id, limited.token, None))
    await scene.enqueue(LATER, delay_s=3600.0)
    await scene.enqueue(BLOCKED, waits_for=(LATER,))
    await scene.store.hand_back_worker(second, cause=Cause.HANDED_BACK, why="over")
    await scene.store.close()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    asyncio.run(_play(scene))
    scene.client.close()
    scene.recorder.close()
    return scene


def test_the_true_history_of_a_store_is_sound(scene: Scene) -> None:
    report = scene.report()
    assert report.sound, str(report)
    assert report.extra_runs == {"retry": 1, "lease_expired": 1, "replay": 1, "handed_back": 1}
    assert report.states == {
        State.SUCCEEDED: 6,
        State.DEAD: 1,
        State.CANCELLED: 1,
        State.PARKED: 1,
        State.SCHEDULED: 1,
        State.BLOCKED: 1,
    }


SABOTAGE = {
    "I1 an accepted job is gone": "DELETE FROM done WHERE job_id = :plain; DELETE FROM job WHERE id = :plain;"
    "DELETE FROM audit_trail WHERE job_id = :plain",
    "I1 a waiting job is gone": "DELETE FROM timer",
    "I2 a job from nowhere": "INSERT INTO done (job_id, state, attempt, ended_at)"
    "VALUES (zeroblob(16), 'cancelled', 0, 0)",
    "I3 an ending is changed": "UPDATE done SET state = 'cancelled' WHERE job_id = :plain",
    "I4 a dead job is said to have succeeded": "INSERT INTO done SELECT job_id, 'succeeded', token, attempt, worker,"
    "started_at, ended_at, NULL, NULL FROM dead; DELETE FROM dead",
    "I5 a cause is gone": "DELETE FROM attempt WHERE job_id = :retried",
    "I6 a lease is reaped too early": "UPDATE audit_worker SET lease_until = lease_until + 100",
    "I6 a lease is given twice": "DELETE FROM audit_trail WHERE job_id = :retried AND tbl = 'active' AND op = 'delete'",
    "I7 an older token ends a job": "UPDATE done SET token = 1 WHERE job_id = :retried",
    "I8 an attempt too many": "UPDATE attempt SET number = 6 WHERE job_id = :retried",
    "I9 a key changes hands": "UPDATE idempotency_key SET job_id = :plain",
    "I11 a success is made ready": "DELETE FROM done WHERE job_id = :plain;"
    "INSERT INTO ready SELECT 'default', 5, 0, 999, :plain, 0, 0, 0, 0",
    "I14 a due job is forgotten": "UPDATE timer SET due_at = 0",
    "I14 a blocked job is forgotten": "DELETE FROM member",
    "I15 a counter is wrong": "UPDATE depth SET ready = ready + 1",
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_a_hand_that_reaches_past_the_store_is_seen(scene: Scene, name: str) -> None:
    ids = {"plain": PLAIN.bytes, "retried": RETRIED.bytes}
    with closing(sqlite3.connect(scene.database, isolation_level=None)) as db:
        for statement in SABOTAGE[name].split(";"):
            db.execute(statement, {word: value for word, value in ids.items() if f":{word}" in statement})
    report = scene.report()
    assert name.split()[0] in report.broken, str(report)


def test_what_was_rolled_back_leaves_no_trail(scene: Scene) -> None:
    before = read_sqlite(scene.database).audit
    with closing(sqlite3.connect(scene.database, isolation_level=None)) as db:
        db.execute("BEGIN")
        db.execute("DELETE FROM done")
        db.execute("ROLLBACK")
    assert read_sqlite(scene.database).audit == before


def test_what_was_there_before_the_audit_is_no_move(tmp_path: Path) -> None:
    scene = Scene(tmp_path)

    async def play() -> None:
        await scene.store.open()
        await scene.enqueue(PLAIN)
        worker = await scene.worker()
        [job] = await scene.claim(worker, PLAIN)
        scene.run(job, worker)
        install_audit(scene.database)
        await scene.settle(worker, Succeed(job.id, job.token, None))
        await scene.store.close()

    asyncio.run(play())
    assert scene.report().sound, str(scene.report())


def test_a_missing_database_is_an_error_and_not_an_empty_record(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no database"):
        read_sqlite(tmp_path / "missing.db")
