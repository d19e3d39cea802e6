"""Rules 7 to 9: the caller's transaction, unknown outcomes, group commit of callers who do not know each other."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults.pair import pair
from tests.faults.trial import PATIENCE_S, Trial

from holdfast import Holdfast, HoldfastError, InvalidOptions, JobFailed, OutcomeUnknown, StoreDataError, current_job
from holdfast.core.job import KeyClaim, NewJob
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.runtime.failpoints import FailpointHit, arm, disarm, hits, release, wait_hit
from holdfast.stores.base import Existing, Inserted
from holdfast.testing.contracts.arrange import a_job, claim, enlist, insert

# ---------------------------------------------------------------- 7: the caller's transaction needs PostgreSQL


def test_rule_7_a_users_transaction_is_refused_with_a_reason(tmp_path: Path) -> None:
    async def run() -> None:
        async with Trial(tmp_path) as trial:
            refusals: list[str] = []

            @trial.hf.task(name="in_transaction")
            async def in_transaction(n: int) -> None:
                try:
                    async with current_job().transaction():
                        pass
                except HoldfastError as error:
                    refusals.append(str(error))

            async with trial.hf.worker():
                await (await in_transaction.enqueue(1)).result(timeout=PATIENCE_S)
            assert "PostgreSQL" in refusals[0]
            assert "idempotent" in refusals[0]  # what to do instead
            with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(InvalidOptions, match="PostgreSQL"):
                await trial.work.options(connection=connection).enqueue(1)
            assert trial.glance.counts()["job"] == 1

    asyncio.run(run())


# ---------------------------------------------------------------- 8: an enqueue whose outcome is unknown


def test_rule_8_an_enqueue_that_is_never_answered_is_unknown_in_the_end(tmp_path: Path) -> None:
    async def run() -> None:
        clock = ManualClock()
        hf = Holdfast(f"sqlite:///{tmp_path}/unknown.db", clock=clock)

        @hf.task(name="work")
        async def work(n: int) -> int:
            return n

        def lose_the_answer() -> None:
            clock.advance(100)
            raise FailpointHit("lost")

        async with hf:
            arm("insert_jobs.committed", lose_the_answer, times=None)
            with pytest.raises(OutcomeUnknown, match="may or may not be there") as raised:
                await work.enqueue(1)
            assert hits("insert_jobs.committed") > 1  # it was repeated, with the same id
            disarm("insert_jobs.committed")
            [job] = await hf.jobs.list()
            assert str(job.id) in str(raised.value)
            assert job.state is State.READY

    asyncio.run(run())


def test_rule_8_repeated_ids_are_the_same_jobs_whatever_has_become_of_them(place: Path) -> None:
    async def run() -> None:
        async with pair(place) as (one, other, *_):
            jobs = [a_job(), a_job(delay_s=60.0), a_job()]
            await insert(one, *jobs)
            [first, *_] = await claim(one, await enlist(one), 1)
            answers = await other.insert_jobs([*jobs, new := a_job()])
            told = [(answer.job_id, answer.repeated) for answer in answers if isinstance(answer, Inserted)]
            assert told == [*((job.id, True) for job in jobs), (new.id, False)]
            assert first.id == jobs[0].id
            assert len(await claim(other, await enlist(other))) == 2  # jobs[2] and the new one

    asyncio.run(run())


KEY = KeyClaim("k", b"request", 60.0)


@pytest.mark.parametrize(
    ("job", "again"),
    [
        pytest.param(first := a_job(), first, id="ordinary"),
        pytest.param(first := a_job(delay_s=60.0), first, id="delayed"),
        pytest.param(first := a_job(key=KEY), first, id="keyed"),
        pytest.param(a_job(key=KEY), a_job(key=KEY), id="of another caller with the same key"),
    ],
)
def test_rule_8_a_repeat_that_finds_its_job_writes_all_the_same(
    job: NewJob, again: NewJob, postgres_place: Path
) -> None:
    """A commit that has written nothing waits for no standby, and what was found may not have arrived there yet."""
    written = (
        "SELECT backend_xid IS NOT NULL FROM pg_stat_activity WHERE datname = current_database() "
        "AND state = 'idle in transaction' AND application_name LIKE 'holdfast insert%%'"
    )

    async def run() -> None:
        async with pair(postgres_place) as stores:
            await insert(stores.one, job)
            arm("insert_jobs.inside", "hang")
            repeating = asyncio.ensure_future(stores.other.insert_jobs([again]))
            await wait_hit("insert_jobs.inside")
            assert stores.where.glance().query(written) == [(True,)]
            release("insert_jobs.inside")
            found = Existing(job.id) if again is not job else Inserted(job.id, None)
            assert await repeating == [found]

    asyncio.run(run())


# ---------------------------------------------------------------- 9: group commit


def test_rule_9_a_caller_who_is_cancelled_cancels_nobodys_write(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial:
            arm("insert_jobs.inside", "hang")
            callers = [asyncio.create_task(trial.work.enqueue(n)) for n in range(3)]
            await wait_hit("insert_jobs.inside")
            assert hits("insert_jobs.inside") == 1  # one write for all of them
            callers[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await callers[1]
            release("insert_jobs.inside")
            async with trial.hf.worker():
                assert [await (await callers[n]).result(timeout=PATIENCE_S) for n in (0, 2)] == [0, 2]
            assert trial.glance.counts()["job"] == 3  # what was asked is not taken back

    asyncio.run(run())


def _refuse(trial: Trial, table: str, when: str) -> None:
    """The store itself refuses certain rows."""
    if trial.where.is_postgres:
        trial.glance.query(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '23514'; END $$"
        )
        trial.glance.query(
            f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION refuse()"
        )
        return
    with closing(sqlite3.connect(trial.where.path)) as hand:
        hand.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
        hand.commit()


def test_rule_9_one_bad_row_fails_its_own_caller_only(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial:
            _refuse(trial, "job", "NEW.tenant = 'bad'")
            tasks = [trial.work.options(tenant="bad" if n == 5 else "good") for n in range(12)]
            answers = await asyncio.gather(*(task.enqueue(n) for n, task in enumerate(tasks)), return_exceptions=True)
            assert [n for n, answer in enumerate(answers) if isinstance(answer, BaseException)] == [5]
            assert isinstance(answers[5], StoreDataError)
            assert trial.glance.counts()["job"] == 11

    asyncio.run(run())


def test_rule_9_an_outcome_that_the_store_refuses_is_buried_and_its_neighbours_are_not(place: Path) -> None:
    async def run() -> None:
        async with Trial(place, concurrency=100) as trial:
            five = "'5'::bytea" if trial.where.is_postgres else "CAST('5' AS BLOB)"
            _refuse(trial, "done", f"NEW.result = {five}")
            handles = [await trial.enqueue(trial.work, n) for n in range(12)]
            async with trial.hf.worker():
                for n, handle in enumerate(handles):
                    if n == 5:
                        with pytest.raises(JobFailed, match="refused"):
                            await handle.result(timeout=PATIENCE_S)
                    else:
                        assert await handle.result(timeout=PATIENCE_S) == n
            info = await handles[5].info()
            assert (info.state, info.reason) == (State.DEAD, "unstorable")
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 12

    asyncio.run(run())
