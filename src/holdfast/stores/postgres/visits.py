"""Enqueue inside a user's transaction (P6): the job is there if and only if the user commits.

In that transaction only rows of our own are inserted, and nobody else waits for any of them but whoever wants the same
idempotency key. What others might wait for, such as a queue that nobody has met yet, is made before, on a connection
of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from holdfast.core.errors import HoldfastError, InvalidOptions
from holdfast.core.job import NewJob
from holdfast.core.state import State
from holdfast.core.unique import WhenTaken
from holdfast.stores.base import Full, Hint, Inserted, InsertResult
from holdfast.stores.postgres import insert
from holdfast.stores.postgres.errors import translate_guest
from holdfast.stores.postgres.gates import Gates
from holdfast.stores.postgres.guests import Guest, board, check_kind, savepoint
from holdfast.stores.postgres.outbox import Outbox
from holdfast.stores.postgres.transaction import Tx

if TYPE_CHECKING:
    from holdfast.stores.postgres.engine import Engine

_EPOCH = datetime.fromtimestamp(0, UTC)


class GuestVisit:
    """One call's jobs, one user's connection: admit, insert, follow, in this order."""

    def __init__(self, engine: Engine, gates: Gates, outbox: Outbox, connection: object, *, blocking: bool) -> None:
        check_kind(connection, blocking=blocking)
        self._engine = engine
        self._gates = gates
        self._outbox = outbox
        self._connection = connection
        self._shut: dict[str, Full] = {}
        self._home: tuple[object, ...] = ()
        self._inserted: NewJob | None = None
        self._hints = Hint.NOTHING

    async def admit(self, jobs: Sequence[NewJob]) -> None:
        if any(job.waits_for for job in jobs):  # it would have to mark the jobs it waits for, and others wait for these
            raise InvalidOptions("connection=: a job that waits for others cannot be enqueued inside your transaction")
        if any(job.unique is not None and job.unique.when_taken is WhenTaken.REPLACE for job in jobs):
            raise InvalidOptions(
                "connection=: a unique job that replaces another cannot be enqueued inside your transaction: whoever "
                "wants to run or to cancel the other one would wait for it; take another policy, or enqueue it after"
            )
        await self._gates.meet(jobs)
        self._shut = await self._gates.shut(jobs)
        [home] = await self._engine.query("visits.home")
        self._home = tuple(home)

    async def insert_jobs(self, jobs: Sequence[NewJob]) -> list[InsertResult]:
        try:
            guest = await board(self._connection)
            async with savepoint(guest):
                answers, self._hints = await self._insert(guest, jobs)
        except insert.Refused as refused:
            return refused.answers
        except HoldfastError:
            raise
        except Exception as error:
            ours = translate_guest(error, self._engine.place)
            if ours is error:
                raise
            raise ours from error
        fresh = (
            job for job, answer in zip(jobs, answers, strict=True) if isinstance(answer, Inserted) and answer.state
        )
        self._inserted = next(fresh, None)
        return answers

    def follow(self, on_committed: Callable[[], None]) -> None:
        if self._inserted is not None:  # all of them are there together, or none
            self._outbox.watch(self._inserted.id, self._hints, on_committed)

    async def _insert(self, guest: Guest, jobs: Sequence[NewJob]) -> tuple[list[InsertResult], Hint]:
        sql = self._engine.sql
        [(now_us, *here)] = await guest.fetch(sql["visits.arrive"])
        if tuple(here) != self._home:
            raise InvalidOptions(
                f"connection=: leads to database {here[-1]!r} of another server than the store's, or to another "
                f"database of it; it needs to be that of {self._engine.place}"
            )
        tenanted = self._engine.tenanted
        plain = insert.are_ordinary(jobs) and not any(job.gates for job in jobs)
        if plain and not self._shut and tenanted.isdisjoint(job.queue for job in jobs):
            # By the statement that does not fail for an id that is there: no error of ours in a user's transaction.
            await guest.fetch(sql["insert_jobs.ordinary"], *insert.ordinary_columns(jobs))
            return [Inserted(job.id, State.READY) for job in jobs], Hint.READY
        tx = Tx(guest, sql, _EPOCH + timedelta(microseconds=int(now_us)), tenanted, is_guest=True)
        answers = await insert.add_jobs(tx, jobs, whole=True, shut=self._shut)
        await tx.close_verb()
        return answers, tx.hints
