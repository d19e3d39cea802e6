"""Tasks and producers with transactions of their own (P6): a row beside a success, and a row beside an enqueue."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import asyncpg
from tests.campaign.telling import told
from tests.campaign.where import Where
from tests.history import RunRecorder
from tests.history.postgres_audit import looking_into
from tests.history.transactions import FINISHING, ORDERED

from holdfast import Holdfast, JobHandle, OutcomeUnknown, QueueFull, StoreUnavailable, current_job
from holdfast.client.task import Task

_TABLES = (
    "CREATE TABLE campaign_effect (job_id uuid NOT NULL, token int8 NOT NULL)",
    "CREATE TABLE campaign_order (job_id uuid NOT NULL)",
    "CREATE INDEX ON campaign_effect (job_id)",
    "CREATE INDEX ON campaign_order (job_id)",
)
#: A connection on which nothing came for so long is given up.
_PATIENCE_S = 10.0
#: The last one is what the driver says of a connection that broke in the middle of something.
_BROKEN = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


def make_tables(where: Where) -> None:
    """Of the users of this store."""
    with looking_into(where.url, where.schema) as db:
        for statement in _TABLES:
            db.execute(statement)  # type: ignore[call-overload]


def add_transactions(hf: Holdfast, recorder: RunRecorder | None) -> dict[str, Task[..., Any]]:
    """The tasks, by their names."""
    effect_row = f"INSERT INTO {hf.config.schema}.campaign_effect VALUES ($1, $2)"

    @hf.task(name=FINISHING, queue="campaign")
    async def transacting(n: int) -> None:
        assert recorder is not None
        job = current_job()
        run = {"token": job.token, "attempt": job.attempt, "worker": job.worker}
        recorder.start(job.id, **run)
        try:
            async with job.transaction() as connection:
                await connection.execute(effect_row, job.id, job.token)
                if n % 10 == 0:
                    await asyncio.sleep(n % 7 * 0.05)
                job.finish(n)
                recorder.effect(job.id, **run)
                recorder.end(job.id, **run)  # the process may be gone by the time that it has committed
        except BaseException as error:
            recorder.end(job.id, **run, outcome=type(error).__name__)
            raise

    @hf.task(name=ORDERED, queue="campaign")
    async def ordered(n: int) -> int:
        with told(recorder) as (_, effect):
            effect()
            return n

    return {FINISHING: transacting, ORDERED: ordered}


class Orders:
    """One caller with a connection of its own, which is opened again when it broke."""

    def __init__(self, hf: Holdfast, task: Task[..., Any], rng: random.Random) -> None:
        self._hf = hf
        self._task = task
        self._rng = rng
        self._connection: asyncpg.Connection | None = None
        self._row = f"INSERT INTO {hf.config.schema}.campaign_order VALUES ($1)"

    async def place(self, n: int) -> list[JobHandle[Any]]:
        """Enqueue in a transaction. `StoreUnavailable`: not committed; `OutcomeUnknown`: lost while committing."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self._place(n)
        except (*_BROKEN, TimeoutError, QueueFull, StoreUnavailable) as error:
            self.close()  # which rolls back
            raise StoreUnavailable(f"before the commit: {error}") from error
        except OutcomeUnknown:
            self.close()
            raise

    async def _place(self, n: int) -> list[JobHandle[Any]]:
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(self._hf.config.url)
        connection = self._connection
        await connection.execute("BEGIN")
        handle = await self._task.options(connection=connection).enqueue(n)
        await connection.execute(self._row, handle.id)
        if self._rng.random() < 0.3:
            await connection.execute("ROLLBACK")
            raise StoreUnavailable("the caller has changed his mind")
        try:
            await connection.execute("COMMIT")
        except (*_BROKEN, asyncio.CancelledError) as error:  # cancelled: by our own patience
            raise OutcomeUnknown(f"while committing: {error!r}") from error
        return [handle]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
