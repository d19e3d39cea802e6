"""The dead letters: all that is known of each, and every way to list, mend, replay and purge them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, scene, until, url_of

from holdfast import (
    Holdfast,
    InvalidArguments,
    InvalidOptions,
    JobFailed,
    JobHandle,
    JobNotFound,
    JobStateError,
    PermanentError,
    RetryPolicy,
)
from holdfast.client.operator import whoami
from holdfast.core.ids import new_job_id
from holdfast.core.state import State


class Shop:
    """An app with tasks that fail as they are told, until they are mended."""

    def __init__(self) -> None:
        self.hf = Holdfast(":memory:")
        self.mended = False

        @self.hf.task(name="charge", queue="money", retry=RetryPolicy(max_attempts=2, base=0))
        async def charge(amount: int) -> int:
            if amount < 0 and not self.mended:
                raise ValueError(f"negative amount {amount}")
            return amount

        @self.hf.task(name="mail", queue="mail")
        async def mail(to: str) -> str:
            if not self.mended:
                raise PermanentError(f"no such address: {to}")
            return to

        self.charge, self.mail = charge, mail

    async def fill(self) -> list[JobHandle[int] | JobHandle[str]]:
        """Four dead jobs: two charges, two mails; all dead when this returns."""
        jobs = [
            await self.charge.options(tenant="acme").enqueue(-1),
            await self.charge.enqueue(-2),
            await self.mail.options(tenant="acme").enqueue("ann"),
            await self.mail.enqueue("bob"),
        ]
        await asyncio.gather(*(until(job, State.DEAD) for job in jobs))
        return jobs


@scene
async def test_a_dead_letter_holds_the_request_the_error_and_every_attempt() -> None:
    shop = Shop()
    async with shop.hf, shop.hf.worker():
        [worker] = await shop.hf.workers.list()
        job = await shop.charge.options(tenant="acme", tags=["t"], metadata={"order": 1}).enqueue(amount=-5)
        await until(job, State.DEAD)
        info = await shop.hf.dead.get(job.id)
    assert (info.task, info.queue, info.priority, info.tenant) == ("charge", "money", 5, "acme")
    assert (info.args, info.kwargs, info.tags, info.metadata) == ((), {"amount": -5}, ("t",), {"order": 1})
    assert (info.state, info.reason, info.attempt, info.max_attempts) == (State.DEAD, "exhausted", 2, 2)
    assert info.error is not None
    assert (info.error.type, info.error.message) == ("ValueError", "negative amount -5")
    assert 'raise ValueError(f"negative amount {amount}")' in info.error.traceback
    assert info.worker == str(worker.id)
    assert [(run.number, run.cause, run.worker) for run in info.attempts] == [
        (1, "retry", str(worker.id)),
        (2, "dead", str(worker.id)),
    ]
    for run in info.attempts:
        assert run.error is not None
        assert "negative amount -5" in run.error.traceback
        assert info.created_at <= run.started_at <= run.ended_at <= info.ended_at


@scene
async def test_dead_letters_are_listed_newest_first_and_filtered() -> None:
    shop = Shop()
    async with shop.hf, shop.hf.worker():
        jobs = await shop.fill()
        ids = [job.id for job in jobs]
        dead = shop.hf.dead

        async def found(**filters: str) -> list[int]:
            assert await dead.count(**filters) == len(await dead.list(**filters))
            return [ids.index(info.id) for info in await dead.list(**filters)]

        assert await found() == [3, 2, 1, 0]
        assert await found(queue="money") == [1, 0]
        assert await found(task="mail") == [3, 2]
        assert await found(tenant="acme") == [2, 0]
        assert await found(error_type="ValueError") == [1, 0]
        assert await found(text="NEGATIVE amount") == [1, 0]
        assert await found(reason="permanent") == [3, 2]
        assert await found(reason="permanent", tenant="acme") == [2]
        assert await found(queue="money", task="mail") == []
        first = await dead.list(limit=3)
        rest = await dead.list(limit=3, before=first[-1].id)
        assert [info.id for info in first + rest] == ids[::-1]


@scene
async def test_one_some_or_all_matching_are_replayed_with_id_and_history() -> None:
    shop = Shop()
    async with shop.hf, shop.hf.worker():
        jobs = await shop.fill()
        shop.mended = True
        dead = shop.hf.dead
        assert await dead.replay(jobs[0].id) == 1
        assert await jobs[0].result(timeout=PATIENCE_S) == -1
        info = await jobs[0].info()
        assert (info.state, info.attempt) == (State.SUCCEEDED, 1)
        assert [run.cause for run in info.attempts] == ["retry", "replay"]
        assert await dead.replay([str(jobs[0].id), str(jobs[1].id)]) == 1  # the first is not dead any more
        assert await jobs[1].result(timeout=PATIENCE_S) == -2
        assert await dead.replay(task="mail", tenant="acme") == 1
        assert await jobs[2].result(timeout=PATIENCE_S) == "ann"
        assert [info.id for info in await dead.list()] == [jobs[3].id]
        assert await dead.replay(everything=True) == 1
        assert await jobs[3].result(timeout=PATIENCE_S) == "bob"
        assert await dead.replay(everything=True) == 0


@scene
async def test_more_than_one_batch_is_replayed_each_once() -> None:
    hf = Holdfast(":memory:")
    ran: dict[int, int] = {}

    @hf.task(retry=RetryPolicy(max_attempts=1))
    async def fail(n: int) -> None:
        ran[n] = ran.get(n, 0) + 1
        raise ValueError  # and so dies again while the replay goes on

    async with hf, hf.worker():
        jobs = await hf.enqueue_many([fail.request(n) for n in range(600)])
        await asyncio.gather(*(job.result() for job in jobs), return_exceptions=True)
        assert await hf.dead.replay(everything=True) == 600
        await asyncio.gather(*(until(job, lambda info: len(info.attempts) == 2) for job in jobs[::50]))
        await asyncio.gather(*(job.result() for job in jobs), return_exceptions=True)
    assert set(ran.values()) == {2}


@scene
async def test_arguments_are_mended_before_the_replay_and_checked() -> None:
    shop = Shop()
    async with shop.hf, shop.hf.worker():
        job, *_ = await shop.fill()
        dead = shop.hf.dead
        with pytest.raises(InvalidArguments, match=r"^charge: argument 'amount': Input should be a valid integer"):
            await dead.edit(job.id, "much")
        with pytest.raises(InvalidArguments, match=r"^charge: argument 'amount': Missing required argument"):
            await dead.edit(job.id)
        assert (await dead.get(job.id)).args == (-1,)
        assert await shop.hf.audit.list() == [], "what is refused is not on record"
        await dead.edit(str(job.id), amount=7)
        assert (await dead.get(job.id)).kwargs == {"amount": 7}
        [change] = await shop.hf.audit.list()
        assert (change.by, change.what, change.name, change.after) == (whoami(), "edit", str(job.id), {})
        await dead.replay(job.id)
        assert await job.result(timeout=PATIENCE_S) == 7
        with pytest.raises(JobStateError, match=f"^job {job.id} is not dead but succeeded$"):
            await dead.edit(job.id, 8)


@scene
async def test_a_dead_job_of_an_unknown_task_can_be_mended_unchecked(tmp_path: Path) -> None:
    url = url_of(tmp_path / "jobs.db")
    operator, shop = Holdfast(url), Holdfast(url)

    @shop.task(name="charge", retry=RetryPolicy(max_attempts=1))
    async def charge(amount: int, job_id: int = 0) -> int:
        return 100 // amount + job_id

    async with operator, shop, shop.worker():
        job = await charge.enqueue(0)
        with pytest.raises(JobFailed, match="ZeroDivisionError"):
            await job.result(timeout=PATIENCE_S)
        await operator.dead.edit(job.id, amount=4, job_id=1)
        await operator.dead.replay(job.id)
        await until(job, lambda info: info.state is not State.DEAD)
        assert await job.result(timeout=PATIENCE_S) == 26


@scene
async def test_purged_dead_letters_are_gone_for_good() -> None:
    shop = Shop()
    async with shop.hf, shop.hf.worker():
        jobs = await shop.fill()
        dead = shop.hf.dead
        assert await dead.purge(jobs[0].id) == 1
        with pytest.raises(JobNotFound):
            await jobs[0].info()
        assert await dead.purge(error_type="ValueError") == 1
        assert await dead.purge([job.id for job in jobs]) == 2
        assert await dead.count() == 0


@scene
async def test_replay_and_purge_never_guess_what_is_meant() -> None:
    shop = Shop()
    async with shop.hf:
        for act, verb in ((shop.hf.dead.replay, "replay"), (shop.hf.dead.purge, "purge")):
            for filters in ({}, {"queue": None}, {"task": ""}):
                with pytest.raises(InvalidOptions, match=f"^{verb}: say which: ids, filters .* or everything=True$"):
                    await act(**filters)  # type: ignore[arg-type]
            with pytest.raises(InvalidOptions, match=f"^{verb}: give ids, or filters, or everything=True; not two"):
                await act(new_job_id(), everything=True)
            with pytest.raises(
                InvalidOptions, match=r"^unknown filter 'que'; there are created_after, created_before, error_type, "
            ):
                await act(que="money")


@scene
async def test_a_job_that_is_not_dead_is_no_dead_letter() -> None:
    shop = Shop()
    async with shop.hf:
        job = await shop.charge.enqueue(1)
        with pytest.raises(JobStateError, match=f"^job {job.id} is not dead but ready$"):
            await shop.hf.dead.get(job.id)
        assert await shop.hf.dead.replay(job.id) == 0
        assert await shop.hf.dead.purge(job.id) == 0
        assert (await job.info()).state is State.READY
