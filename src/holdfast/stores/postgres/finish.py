"""Finish inside a transaction (P6): a run's effect and its success commit together, or neither does.

In that transaction the run's own lease is deleted and its success inserted, as the last thing before the commit; what
others might wait for (deadlines, slots, joins) follows after it, in a transaction of ours, with the sweep as the net.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg

from holdfast.core.errors import HoldfastError, LeaseLost, StoreError, StoreUnavailable
from holdfast.core.job import JobId, WorkerId
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.failpoints import FailpointHit, afailpoint
from holdfast.stores.base import Hint
from holdfast.stores.moments import FINISH_BEGIN, FINISH_COMMITTED, FINISH_INSIDE, answer_lost, struck
from holdfast.stores.postgres.connections import ANSWER_S
from holdfast.stores.postgres.end import count_arrivals, free_slots
from holdfast.stores.postgres.errors import translate
from holdfast.stores.postgres.serving import look_after
from holdfast.stores.postgres.transaction import Tx

if TYPE_CHECKING:
    from asyncpg import Connection
    from asyncpg.transaction import Transaction

    from holdfast.stores.postgres.engine import Engine

#: How long a run waits for one of the connections that are there for this.
_WAIT_S = 30.0
#: How long a connection is given to become fit for the next run; and to say that it has committed, before another one
#: is asked. The user's own statements may take as long as they like.
_TIDY_S = 5.0
_COMMIT_S = ANSWER_S


@contextlib.asynccontextmanager
async def finishing(engine: Engine, tell: Callable[[Hint], None]) -> AsyncIterator[FinishBlock]:
    """An open transaction; rolled back at the end unless it was committed."""
    engine.check_open()
    async with contextlib.AsyncExitStack() as stack:
        with engine.translated():
            connection = await _connection(engine, stack)
            transaction = connection.transaction(isolation="read_committed")
            await transaction.start()
        block = FinishBlock(engine, tell, connection, transaction)
        failure: BaseException | None = None
        try:
            yield block
        except GeneratorExit:  # the event loop ends around us, and waits for nothing any more
            connection.terminate()
            raise
        except BaseException as error:  # raised again below: it says nothing about the connection
            failure = error
        await _tidy_up(connection, transaction, pooled=engine.doorway.pooled, committed=block.committed)
        if failure is None:
            return
    raise failure


async def _connection(engine: Engine, stack: contextlib.AsyncExitStack) -> Connection[Any]:
    try:
        async with asyncio.timeout(_WAIT_S):
            return await stack.enter_async_context(engine.transactions.connection())
    except TimeoutError:
        raise StoreUnavailable(
            f"no connection for current_job().transaction() came free in {_WAIT_S:g} s: keep the blocks short, or run "
            "fewer such jobs at once in a process"
        ) from None


async def _tidy_up(connection: Connection[Any], transaction: Transaction, *, pooled: bool, committed: bool) -> None:
    """For the next one; a connection that cannot be tidied up is not used again."""
    try:
        async with asyncio.timeout(_TIDY_S):  # one that has fallen silent would keep its run for ever
            if not committed and connection.is_in_transaction():
                await transaction.rollback()
            if not pooled:
                await connection.reset()
    except Exception:
        connection.terminate()


class FinishBlock:
    """What a run holds between the begin of its transaction and its end."""

    def __init__(
        self, engine: Engine, tell: Callable[[Hint], None], connection: Connection[Any], transaction: Transaction
    ) -> None:
        self.connection = connection
        self.committed = False
        self._engine = engine
        self._tell = tell
        self._transaction = transaction

    async def commit(
        self,
        worker: WorkerId,
        job_id: JobId,
        token: int,
        result: bytes | None,
        *,
        lease_lost: Callable[[], bool],
    ) -> None:
        run = (job_id, token, worker)
        if not self.connection.is_in_transaction():
            raise HoldfastError(
                "the block of current_job().transaction() has ended its transaction by itself: leave COMMIT and "
                "ROLLBACK to the block, and use `async with connection.transaction():` for a part of it"
            )
        attached = await self._settle(*run, result)
        try:
            async with asyncio.timeout(_COMMIT_S):
                await self._transaction.commit()
            await _pass_committed()
        except Exception as error:
            doubt = error if isinstance(error, StoreUnavailable) else translate(error, self._engine.place)
            if not (isinstance(doubt, StoreUnavailable) and doubt.unknown):
                raise  # refused, as by a constraint that is checked at the end: nothing was kept
            self.connection.terminate()
            await self._find_out(*run, lease_lost=lease_lost)
        self.committed = True
        self._tell(Hint.ENDED)
        if attached:
            with contextlib.suppress(StoreError):  # the sweep does it later
                letting_go = partial(_let_go, job_id=job_id)
                _, tx = await self._engine.transact("settle_jobs", self._engine.verbs, letting_go)
                await look_after(self._engine, tx.freed)

    async def _settle(self, job_id: JobId, token: int, worker: WorkerId, result: bytes | None) -> bool:
        """The success, not committed; whether something hangs on the job."""
        sql, fetch = self._engine.sql, self.connection.fetch
        try:
            await afailpoint(FINISH_BEGIN)
            await fetch(sql["finish.prepare"])
            rows = await fetch(sql["finish.settle"], job_id, token, worker, result)
            if not rows:
                raise LeaseLost(f"job {job_id}: this run's lease has passed on, so that its effect was rolled back")
            if rows[0]["attached"]:
                await fetch(sql["finish.arrive"], job_id)
            await afailpoint(FINISH_INSIDE)
        except FailpointHit as hit:
            raise struck(hit) from hit
        except HoldfastError:
            raise
        except asyncpg.InFailedSQLTransactionError as error:
            raise HoldfastError(
                "a statement in the block of current_job().transaction() has failed, so that nothing of it can be "
                "committed: put what may fail into `async with connection.transaction():`"
            ) from error
        except Exception as error:
            raise translate(error, self._engine.place) from error
        return bool(rows[0]["attached"])

    async def _find_out(self, job_id: JobId, token: int, worker: WorkerId, *, lease_lost: Callable[[], bool]) -> None:
        """Whether a commit without an answer took place: returns if it did."""
        backoff = Backoff(0.02, 1.0)
        while not lease_lost():
            try:
                held, recorded = await self._ask(job_id, token, worker)
            except StoreUnavailable:
                await asyncio.sleep(backoff.next())
                continue
            if recorded:
                return
            if held:
                raise StoreUnavailable(
                    f"job {job_id}: the transaction of its run was not committed; it has to run again"
                )
            break
        raise LeaseLost(f"job {job_id}: this run's lease has passed on, and its transaction was not seen to commit")

    async def _ask(self, job_id: JobId, token: int, worker: WorkerId) -> tuple[bool, bool]:
        """Whether the run still holds its lease, and whether it is on record as a success."""
        sql = self._engine.sql
        with self._engine.translated():
            async with (
                self._engine.verbs.connection() as connection,
                connection.transaction(isolation="read_committed"),
            ):
                await connection.fetch(sql["insert_jobs.set_lock_timeout"])
                held = await connection.fetch(sql["finish.lease"], job_id, token, worker)
                [(_, _, cause)] = await connection.fetch(sql["settle_jobs.on_record"], [job_id], [token])
        return bool(held), cause == "succeeded"


async def _pass_committed() -> None:
    try:
        await afailpoint(FINISH_COMMITTED)
    except FailpointHit as hit:
        raise answer_lost(hit) from hit


async def _let_go(tx: Tx, job_id: JobId) -> None:
    """Deadline, slot and joins of a job that has ended in a transaction of its user's."""
    await tx.fetch("end_jobs.drop_expiry", [job_id])
    await free_slots(tx, [job_id])
    await count_arrivals(tx, Counter(row[0] for row in await tx.fetch("finish.count_arrivals", job_id)))
