"""A handle to one enqueued job: its result, its state, its cancellation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from holdfast.core.durations import Seconds, seconds
from holdfast.core.errors import JobCancelled, JobFailed, JobNotFound
from holdfast.core.job import JobId, JobInfo
from holdfast.core.state import State
from holdfast.stores.base import CancelAnswer

if TYPE_CHECKING:
    from holdfast.client.client import Client

R = TypeVar("R")


class JobHandle(Generic[R]):
    """What `enqueue` returns. It holds nothing but the id; ask it while the app is open."""

    __slots__ = ("_client", "decode", "enlisted", "existing", "id")

    id: JobId
    """The job's id, a UUID that grows with time."""

    def __init__(
        self,
        job_id: JobId,
        client: Client,
        decode: Callable[[bytes | None], R],
        *,
        enlisted: bool = False,
        existing: bool = False,
    ) -> None:
        self.id = job_id
        self._client = client
        self.decode = decode
        """Reads a stored result, in the type that the task declares."""
        self.enlisted = enlisted
        """It was enqueued inside a transaction of yours: until that has committed, there is no such job."""
        self.existing = existing
        """It was there before the call, which an idempotency key, or what makes it unique, has led to it."""

    def __repr__(self) -> str:
        return f"<JobHandle {self.id}>"

    async def info(self) -> JobInfo:
        """All that is known of the job now; JobNotFound once it has been pruned."""
        with self._missing_explained():
            return await self._client.jobs.get(self.id)

    async def result(self, timeout: Seconds | None = None) -> R:
        """Wait for the job to end and return its result.

        Raises JobFailed (it is dead), JobCancelled, or TimeoutError after `timeout` (seconds or timedelta); the job
        itself is not touched by any of these.
        """
        timeout_s = None if timeout is None else seconds("timeout", timeout)
        with self._missing_explained():
            ended = await self._client.endings.wait(self.id, timeout=timeout_s)
        if ended.state is State.DEAD:
            raise JobFailed(self.id, error_type=ended.error_type or "", message=ended.error_message or "")
        if ended.state is State.CANCELLED:
            raise JobCancelled(self.id, reason=ended.reason)
        return self.decode(ended.result)

    async def cancel(self, reason: str = "", *, by: str = "") -> CancelAnswer:
        """End the job if it waits, ask it to stop if it runs; why, and by whom, is kept with it."""
        with self._missing_explained():
            return await self._client.jobs.cancel(self.id, reason=reason, by=by)

    def events(self) -> AsyncIterator[JobInfo]:
        """The job's changes as they happen (state, attempt, progress), until it has ended."""
        return self._client.jobs.watch(self.id)

    @contextmanager
    def _missing_explained(self) -> Iterator[None]:
        try:
            yield
        except JobNotFound:
            raise JobNotFound(self.id, enlisted=self.enlisted) from None
