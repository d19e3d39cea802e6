"""A task as its users hold it: call it, enqueue it, give a call options; typed by the function's own signature."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from holdfast.client.arguments import Signature
from holdfast.client.request import Request
from holdfast.client.sync import SyncCalls
from holdfast.core.durations import Seconds
from holdfast.core.once_options import Debounce, Throttle, Unique
from holdfast.core.options import NO_OPTIONS, CallOptions, call_options
from holdfast.core.retry import RetryPolicy
from holdfast.core.unset import UNSET, Unset

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.client.handle import JobHandle
    from holdfast.client.sync import Sync

P = ParamSpec("P")
R = TypeVar("R")


class Task(Generic[P, R]):
    """What `@hf.task` makes: a function that can be enqueued. Calling it runs it here and now, as any function."""

    name: str
    """`module.qualname`, or the name that it was given."""

    def __init__(
        self,
        name: str,
        client: Callable[[], Client],
        *,
        sync: Sync,
        signature: Signature | None,
        options: CallOptions = NO_OPTIONS,
    ) -> None:
        self.name = name
        self.signature = signature
        """None: the task is known by name only, and its calls are not checked here."""
        self._client = client
        self._sync = sync
        self._options = options
        if signature is not None:
            function = signature.task.function
            self.__doc__ = function.__doc__
            self.__name__ = function.__name__
            self.__module__ = function.__module__
            self.__wrapped__ = function

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def _check_by_hand(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if self.signature is not None and self.signature.task.provided:
            self.signature.check_by_hand(args, kwargs)

    def request(self, /, *args: P.args, **kwargs: P.kwargs) -> Request:
        """A call to be enqueued later, with others, by `hf.enqueue_many`."""
        return Request(self.name, args, kwargs, self._options, self.signature)

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Store a job for this call; returns after the commit, which is yours with `options(connection=…)`.

        Raises InvalidArguments (nothing was stored), QueueFull, IdempotencyConflict, NotUnique.
        """
        return await self._client().enqueue(Request(self.name, args, kwargs, self._options, self.signature))

    @property
    def sync(self) -> SyncCalls[P, R]:
        """For code without an event loop: `task.sync.enqueue(…)` waits for the commit, in this thread."""
        return SyncCalls(self, self._sync)

    def options(
        self,
        *,
        delay: Seconds | Unset | None = UNSET,
        run_at: datetime | Unset | None = UNSET,
        expires: Seconds | datetime | Unset | None = UNSET,
        priority: int | str | Unset = UNSET,
        queue: str | Unset = UNSET,
        tenant: str | Unset = UNSET,
        key: str | Unset | None = UNSET,
        key_window: Seconds | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        metadata: Mapping[str, Any] | Unset | None = UNSET,
        timeout: Seconds | Unset | None = UNSET,
        soft_timeout: Seconds | Unset | None = UNSET,
        retry: RetryPolicy | Unset = UNSET,
        wait: Seconds | Unset = UNSET,
        unique: Unique | Unset | None = UNSET,
        debounce: Debounce | Seconds | Unset | None = UNSET,
        throttle: Throttle | Seconds | Unset | None = UNSET,
        connection: object = UNSET,
    ) -> Task[P, R]:
        """The same task with options for its next calls; those given before stay unless given again.

        - `delay`, `run_at`: not before so long from now (seconds or `timedelta`), or this moment (an aware `datetime`).
        - `expires`: not started by then (from now, or a moment): cancelled.
        - `priority`, `queue`: 0 to 9 or a name; another queue than the task's own.
        - `key`, `key_window`: idempotency key, and for how long it is remembered; `tenant`: on whose behalf.
        - `tags`, `metadata`: kept with the job.
        - `timeout`, `soft_timeout`, `retry`: for this call instead of the task's.
        - `wait`: how long to wait on a full queue.
        - `unique`, `debounce`, `throttle`: what becomes of a call too many, whatever the task says; None: nothing.
        - `connection`: yours to the store's PostgreSQL database, in whose transaction the job is enqueued: it is there
          if and only if you commit.
        """
        fields = call_options(
            delay=delay,
            run_at=run_at,
            expires=expires,
            priority=priority,
            queue=queue,
            tenant=tenant,
            key=key,
            key_window=key_window,
            tags=tags,
            metadata=metadata,
            timeout=timeout,
            soft_timeout=soft_timeout,
            retry=retry,
            wait=wait,
            unique=unique,
            debounce=debounce,
            throttle=throttle,
            connection=connection,
        )
        changed = replace(self._options, **fields)
        return type(self)(self.name, self._client, sync=self._sync, signature=self.signature, options=changed)


class AsyncTask(Task[P, R]):
    """A task made from `async def`."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        self._check_by_hand(args, kwargs)
        result: Coroutine[Any, Any, R] = self.__wrapped__(*args, **kwargs)
        return result


class SyncTask(Task[P, R]):
    """A task made from `def`; a worker runs it in a thread."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._check_by_hand(args, kwargs)
        result: R = self.__wrapped__(*args, **kwargs)
        return result
