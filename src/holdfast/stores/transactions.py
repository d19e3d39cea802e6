"""The part of the contract about transactions of users (P6): enqueue inside one, finish inside one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.core.job import JobId, NewJob, WorkerId

if TYPE_CHECKING:
    from holdfast.stores.base import InsertResult


class Visit(Protocol):
    """Enqueues inside a transaction of the caller's: admit, insert and follow, in this order. Commits nothing."""

    async def admit(self, jobs: Sequence[NewJob]) -> None:
        """On connections of the store's: look whether the queues accept, and make what others would wait for."""
        ...

    async def insert_jobs(self, jobs: Sequence[NewJob]) -> list[InsertResult]:
        """On the caller's connection, whole or not at all; if not, its transaction is as it was before.

        Where that connection blocks, this never waits on an event loop, and may be run without one.
        """
        ...

    def follow(self, on_committed: Callable[[], None]) -> None:
        """On the store's loop: see to it that hints are told once the caller has committed, if it does so soon."""
        ...


class GuestStore(Protocol):
    """What a store offers that can lie in one database with its users' own data; any other refuses."""

    def visit(self, connection: object, *, blocking: bool) -> Visit:
        """For one call of enqueue. InvalidOptions where this connection cannot be used, or none can."""
        ...

    def finishing(self) -> AbstractAsyncContextManager[Finish]:
        """Opens a transaction for a run; what has not been committed by its end is rolled back."""
        ...


class Finish(Protocol):
    """An open transaction in which a run has its effect, and in which it may succeed."""

    @property
    def connection(self) -> Any:
        """The store's own driver's, for the effect."""
        ...

    async def commit(
        self,
        worker: WorkerId,
        job_id: JobId,
        token: int,
        result: bytes | None,
        *,
        lease_lost: Callable[[], bool],
    ) -> None:
        """Record the success, fenced by job, token and worker, and commit it together with the effect.

        LeaseLost: nothing was committed, nor may be. StoreUnavailable: it is known that nothing was committed. Where
        the answer to the commit is missing, the store is asked until it is known, or `lease_lost`.
        """
        ...
