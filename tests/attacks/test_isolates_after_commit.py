"""An isolate that is killed at each moment of its own commit: the effect is there once if the job has succeeded."""

from __future__ import annotations

import psycopg
import pytest
from tests.integration.scene import PATIENCE_S, scene, until
from tests.isolation import app
from tests.isolation.app import hf
from tests.isolation.conftest import heard_by_nobody
from tests.isolation.test_transactions import payments

from holdfast.core.state import State

__all__ = ["heard_by_nobody", "payments"]

JOBS = 3


@scene
async def test_killed_with_the_commit_done_and_no_answer_out(
    payments: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of each isolate: this process has read its own settings long ago.
    monkeypatch.setenv("HOLDFAST_FAILPOINTS", "finish.committed=kill9")
    async with hf, hf.worker(isolates=2):
        jobs = [await app.pay.enqueue("return") for _ in range(JOBS)]
        for job in jobs:
            assert await job.result(timeout=PATIENCE_S) == "paid"
        assert await (await app.add.enqueue(1)).result(timeout=PATIENCE_S) == 2
        infos = [await job.info() for job in jobs]
    assert [info.attempts for info in infos] == [()] * JOBS, "nobody is blamed for a death after the success"
    assert sorted(payments.execute("SELECT job FROM payment").fetchall()) == sorted((str(job.id),) for job in jobs)


@scene
async def test_killed_with_the_effect_there_and_the_commit_not_sent(
    payments: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_FAILPOINTS", "finish.inside=kill9")
    async with hf, hf.worker(isolates=2):
        info = await until(await app.pay.enqueue("return"), State.DEAD)
    assert (info.reason, [run.cause for run in info.attempts]) == ("poison", ["worker_lost"] * 3)
    assert payments.execute("SELECT job FROM payment").fetchall() == []
