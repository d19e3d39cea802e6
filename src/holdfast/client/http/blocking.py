"""The client of the HTTP API for code without an event loop. The work is done by the other one, on a loop in a thread;
nothing of it is copied here."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from holdfast.client.http.asynchronous import HttpClient, HttpJobHandle
from holdfast.core.durations import Seconds
from holdfast.core.job import JobId, JobInfo
from holdfast.core.queue import QueueInfo, QueueRates
from holdfast.runtime.threads import LoopThread
from holdfast.stores.base import CancelAnswer

T = TypeVar("T")


class SyncHttpJobHandle:
    """A job somewhere else, and questions about it that wait for their answers; as `SyncJobHandle` in process."""

    __slots__ = ("_client", "_handle")

    def __init__(self, handle: HttpJobHandle, client: SyncHttpClient) -> None:
        self._handle = handle
        self._client = client

    @property
    def id(self) -> JobId:
        """The job's id."""
        return self._handle.id

    @property
    def existing(self) -> bool:
        """It was there before the call, which a key, or what makes it unique, has led to it."""
        return self._handle.existing

    def __repr__(self) -> str:
        return f"<SyncHttpJobHandle {self.id}>"

    def info(self) -> JobInfo:
        """All that the key may see of the job now."""
        return self._client.run(self._handle.info())

    def result(self, timeout: Seconds | None = None) -> Any:
        """Wait for the job to end and return its result; raises what `HttpJobHandle.result` raises."""
        return self._client.run(self._handle.result(timeout))

    def cancel(self, reason: str = "") -> CancelAnswer:
        """End the job if it waits, ask it to stop if it runs."""
        return self._client.run(self._handle.cancel(reason))

    def events(self) -> Iterator[JobInfo]:
        """The job's changes as they happen, until it has ended."""
        coming = self._handle.events()
        while True:
            try:
                yield self._client.run(anext(coming))  # type: ignore[arg-type]  # it is a coroutine of a generator
            except StopAsyncIteration:
                return


class SyncHttpClient:
    """`with SyncHttpClient("https://jobs.example/api/v1", key="hf_…") as client:`; any number of threads may use it."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._thread = LoopThread("holdfast-http-client")
        self._thread.start()
        self._client = HttpClient(url, key, timeout=timeout, retries=retries, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and end the thread."""
        self.run(self._client.close())
        self._thread.stop()

    def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> SyncHttpJobHandle:
        """Submit a call by the name of its task; `submit` does it with options."""
        return self.submit(task, args, kwargs)

    def submit(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        **options: Any,
    ) -> SyncHttpJobHandle:
        """Submit a call, as `HttpClient.submit` does."""
        return SyncHttpJobHandle(self.run(self._client.submit(task, args, kwargs, key=key, **options)), self)

    def get(self, job_id: JobId | str) -> JobInfo:
        """One job; JobNotFound when there is none that the key may see."""
        return self.run(self._client.get(job_id))

    def list(self, **filters: Any) -> list[JobInfo]:
        """Jobs that match all of these, newest first."""
        return self.run(self._client.list(**filters))

    def cancel(self, job_id: JobId | str, *, reason: str = "") -> CancelAnswer:
        """End the job if it waits, ask it to stop if it runs."""
        return self.run(self._client.cancel(job_id, reason=reason))

    def queues(self) -> Sequence[QueueInfo]:
        """Every queue that the key may see, with its depths and settings."""
        return self.run(self._client.queues())

    def rates(self) -> dict[str, QueueRates]:
        """How quickly jobs came, began and ended lately, by queue."""
        return self.run(self._client.rates())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine of the client."""
        return self._thread.submit(coroutine).result()
