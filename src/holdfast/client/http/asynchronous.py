"""The client of the HTTP API for code with an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import httpx

from holdfast.client.http.asking import Asking
from holdfast.client.http.following import follow
from holdfast.client.http.wire import (
    bearer,
    job_of,
    path_of,
    queue_of,
    rates_of,
    result_of,
    submission,
)
from holdfast.core.durations import Seconds, seconds
from holdfast.core.errors import JobNotFound
from holdfast.core.job import JobId, JobInfo
from holdfast.core.queue import QueueInfo, QueueRates
from holdfast.stores.base import CancelAnswer


class HttpJobHandle:
    """A job somewhere else: its result, its state, its cancellation; as `JobHandle` in process."""

    __slots__ = ("_client", "existing", "id")

    def __init__(self, job_id: JobId, client: HttpClient, *, existing: bool = False) -> None:
        self.id = job_id
        self._client = client
        self.existing = existing
        """It was there before the call, which a key, or what makes it unique, has led to it."""

    def __repr__(self) -> str:
        return f"<HttpJobHandle {self.id}>"

    async def info(self) -> JobInfo:
        """All that the key may see of the job now."""
        return await self._client.get(self.id)

    async def result(self, timeout: Seconds | None = None) -> Any:
        """Wait for the job to end and return its result, as plain JSON; it needs the scope read-payload.

        Raises JobFailed, JobCancelled, or TimeoutError after `timeout`; the job itself is not touched by any of these.
        """
        within_s = None if timeout is None else seconds("timeout", timeout)
        try:
            async with asyncio.timeout(within_s):
                async for job in self.events():
                    if job.state.ended:
                        return result_of(job)
        except TimeoutError:
            raise TimeoutError(f"job {self.id} has not ended within {within_s:g} s") from None
        raise JobNotFound(self.id)

    async def cancel(self, reason: str = "") -> CancelAnswer:
        """End the job if it waits, ask it to stop if it runs."""
        return await self._client.cancel(self.id, reason=reason)

    def events(self) -> AsyncIterator[JobInfo]:
        """The job's changes as they happen, until it has ended; goes on by itself where the connection breaks."""
        return self._client.events(self.id)


class HttpClient:
    """`async with HttpClient("https://jobs.example/api/v1", key="hf_…") as client:`"""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        own = {"Authorization": bearer(key)}
        self._http = httpx.AsyncClient(base_url=url, headers=own, timeout=timeout, transport=transport)
        self._retries = retries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> HttpJobHandle:
        """Submit a call by the name of its task; `submit` does it with options."""
        return await self.submit(task, args, kwargs)

    async def submit(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        **options: Any,
    ) -> HttpJobHandle:
        """Submit a call; `key` is its idempotency key, options are those of `task.options(…)` (`delay`, `unique`, …),
        or the fields of a submission (`delay_s`, …).

        It is sent again where no answer comes: also without a key of yours it has one, so that it is done once.
        Raises OutcomeUnknown, which names that key, where a try had no answer and none after it was accepted.
        """
        body, headers = submission(task, args, kwargs or {}, key, options)
        said = await Asking(self._http, self._retries).submit("/jobs", body, headers)
        return HttpJobHandle(UUID(said["id"]), self, existing=said["replayed"])

    async def get(self, job_id: JobId | str) -> JobInfo:
        """One job; JobNotFound when there is none that the key may see."""
        return job_of(await self._ask("GET", path_of(job_id)))

    async def list(self, **filters: Any) -> list[JobInfo]:
        """Jobs that match all of these, newest first; the filters and `limit`, `before` of `GET jobs`."""
        given = {name: str(value) for name, value in filters.items() if value is not None}
        return [job_of(each) for each in (await self._ask("GET", "/jobs", params=given))["jobs"]]

    async def cancel(self, job_id: JobId | str, *, reason: str = "") -> CancelAnswer:
        """End the job if it waits, ask it to stop if it runs."""
        said = await self._ask("POST", f"{path_of(job_id)}/cancel", json={"reason": reason} if reason else None)
        return CancelAnswer(said["answer"])

    async def queues(self) -> Sequence[QueueInfo]:
        """Every queue that the key may see, with its depths and settings."""
        return [queue_of(each) for each in await self._queues()]

    async def rates(self) -> dict[str, QueueRates]:
        """How quickly jobs came, began and ended lately, by queue."""
        return {each["name"]: rates_of(each["rates"]) for each in await self._queues()}

    async def _queues(self) -> Any:
        return (await self._ask("GET", "/queues"))["queues"]

    def events(self, job_id: JobId | str) -> AsyncIterator[JobInfo]:
        """Every change of a job that can be seen, the last one its ending."""
        return follow(self._http, job_id, retries=self._retries)

    async def _ask(self, method: str, path: str, **sent: Any) -> Any:
        return await Asking(self._http, self._retries).ask(method, path, **sent)
