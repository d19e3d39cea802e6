"""`hf.sync`: everything that the client does, for code without an event loop. Nothing of the client is copied here:
its coroutines run on a loop in a thread, and these calls wait for them.

Duties:
1. Use the app where it is open (a `def` task in a worker's thread does), else open a store of its own on first use.
2. Any number of threads may call at the same time; they share one store and its group commits.
3. A fork takes nothing along: before it, the store is closed; parent and child open their own when they next call.
   (SQLite must not see a connection on both sides of a fork: the locks of a file belong to a process.)
4. At the end of the interpreter, close; never keep it from ending.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  # for its hook: see the end of this file
import contextlib
import functools
import inspect
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Self, TypeVar

from holdfast.client.audit import Audit
from holdfast.client.breakers import Breakers
from holdfast.client.dead import DeadLetters
from holdfast.client.dispatch import STORE_ALONE, Dispatch
from holdfast.client.enlisting import Enlistment, run_here
from holdfast.client.handle import JobHandle
from holdfast.client.jobs import Jobs
from holdfast.client.keys import Keys
from holdfast.client.limits import Limits
from holdfast.client.place import Place, refuse_on_a_loop
from holdfast.client.queues import Queues, Workers
from holdfast.client.routes import Routes
from holdfast.client.tasks import Tasks
from holdfast.client.tenants import Tenants
from holdfast.core.durations import Seconds
from holdfast.core.errors import NotOpen
from holdfast.core.job import JobId, JobInfo
from holdfast.runtime.threads import LoopThread
from holdfast.stores.base import CancelAnswer, Store

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.client.request import Request
    from holdfast.client.task import Task

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_CLOSE_AT_EXIT_S = 10.0


class Opened(NamedTuple):
    """A store that was opened, and the client on it."""

    store: Store
    client: Client
    dispatch: Dispatch = STORE_ALONE

    async def close(self) -> None:
        """Flush what is under way and close the store."""
        await self.client.close()
        await self.dispatch.transport.close()
        await self.store.close()


class Sync:
    """`hf.sync`: what the app does, for code without an event loop; each call waits in the calling thread.

    `with hf.sync:` opens at once and closes at its end; both may be left out.
    """

    def __init__(
        self,
        *,
        connect: Callable[[], Coroutine[Any, Any, Opened]],
        shared: Callable[[], Place | None],
        named: Callable[[str], Task[..., Any]],
    ) -> None:
        self._connect = connect
        self._shared = shared
        self._named = named
        self._own: _Own | None = None

    def open(self) -> None:
        """Open the store now, where the first call would do it otherwise."""
        refuse_on_a_loop()
        self._place()

    def close(self) -> None:
        """Flush and close; the next call opens it again."""
        refuse_on_a_loop()
        with _gate:
            self._close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------ what the client does

    def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> SyncJobHandle[Any]:
        """Enqueue by name; `hf.named(task).options(…).sync.enqueue(…)` does it with options."""
        return self._named(task).sync.enqueue(*args, **kwargs)

    def enqueue_many(self, requests: Sequence[Request], *, connection: object = None) -> list[SyncJobHandle[Any]]:
        """Enqueue all of them in one transaction, or none; handles in order.

        `connection`: yours to the store's PostgreSQL database, one that blocks; they go into its transaction.
        """
        if connection is None:
            handles = self.run(lambda client: client.enqueue_many(requests))
        else:
            handles = self.enlist(lambda client: client.enlist_many(requests, connection, blocking=True), requests)
        return [SyncJobHandle(self, handle) for handle in handles]

    def enlist(
        self, make: Callable[[Client], Coroutine[Any, Any, Enlistment]], requests: Sequence[Request]
    ) -> list[JobHandle[Any]]:
        """Bring jobs into the transaction of a connection that blocks, in this thread, which is its owner's."""

        async def prepare(client: Client) -> tuple[Client, Enlistment]:
            enlistment = await make(client)
            await enlistment.prepare()
            return client, enlistment

        client, enlistment = self.run(prepare)
        ids = run_here(enlistment.insert)
        with contextlib.suppress(NotOpen):  # it only saves the workers a wait
            self.run(lambda _: enlistment.follow())
        return client.handles(ids, requests, enlisted=True)

    @property
    def jobs(self) -> Blocking:
        """`hf.jobs`, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.jobs, Jobs)

    @property
    def dead(self) -> Blocking:
        """`hf.dead`, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.dead, DeadLetters)

    @property
    def queues(self) -> Blocking:
        """`hf.queues`, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.queues, Queues)

    @property
    def routes(self) -> Blocking:
        """`hf.routes`, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.routes, Routes)

    @property
    def tasks(self) -> Blocking:
        """What `hf.tasks` does while everything runs, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.tasks, Tasks)

    @property
    def limits(self) -> Blocking:
        """`hf.limits`, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.limits, Limits)

    @property
    def breakers(self) -> Blocking:
        """`hf.breakers`, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.breakers, Breakers)

    @property
    def audit(self) -> Blocking:
        """`hf.audit`, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.audit, Audit)

    @property
    def keys(self) -> Blocking:
        """`hf.keys`, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.keys, Keys)

    @property
    def tenants(self) -> Blocking:
        """`hf.tenants`, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.tenants, Tenants)

    @property
    def workers(self) -> Blocking:
        """`hf.workers`, its methods as ordinary functions."""
        return Blocking(self, lambda client: client.workers, Workers)

    def run(self, act: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Wait for a coroutine of the client, as in `hf.sync.run(lambda c: c.jobs.list(state="dead"))`.

        The same as `hf.sync.jobs.list(state="dead")`, but a type checker knows what it returns.
        """
        refuse_on_a_loop()
        while True:
            place = self._place()
            try:
                return place.run(act(place.client))
            except NotOpen:
                # A fork in another thread closed the store under this call: NotOpen means that nothing was done.
                if not (isinstance(place, _Own) and place.forked):
                    raise

    def iterate(self, start: Callable[[Client], AsyncIterator[T]]) -> Iterator[T]:
        """The items of an async iterator of the client, as they come."""
        refuse_on_a_loop()
        place = self._place()
        return place.iterate(start(place.client))

    # ------------------------------------------------------------ open and closed

    @property
    def opened(self) -> Client | None:
        """Whom the next call asks, if that is open by now; opens nothing."""
        place = self._shared() or self._own
        return None if place is None else place.client

    def _place(self) -> Place:
        shared = self._shared()
        if shared is not None:
            return shared
        own = self._own
        if own is not None:
            return own
        with _gate:
            if self._own is None:
                self._own = _Own.open(self._connect)
                _open.add(self)
            return self._own

    def _close(self, *, forking: bool = False, within_s: float | None = None) -> None:
        own, self._own = self._own, None
        _open.discard(self)
        if own is not None:
            own.forked = forking
            own.close(within_s)


class _Own(Place):
    """A store that is open for `hf.sync` alone, on a loop in a thread."""

    def __init__(self, opened: Opened, thread: LoopThread) -> None:
        super().__init__(opened.client, thread.submit, lambda: True)
        self.forked = False
        self._opened = opened
        self._thread = thread

    @classmethod
    def open(cls, connect: Callable[[], Coroutine[Any, Any, Opened]]) -> _Own:
        thread = LoopThread("holdfast-sync")
        thread.start()
        try:
            return cls(thread.submit(connect()).result(), thread)
        except BaseException:
            thread.stop()
            raise

    def close(self, within_s: float | None = None) -> None:
        if self._thread.is_current:
            return  # a fork from within: it cannot wait for itself
        try:
            self._thread.submit(self._opened.close()).result(within_s)
        finally:
            self._thread.stop()


class Blocking:
    """The methods of one of the client's nouns, each waiting for its answer."""

    def __init__(self, sync: Sync, noun: Callable[[Client], Any], kind: type) -> None:
        self._sync = sync
        self._noun = noun
        self._kind = kind

    def __repr__(self) -> str:
        return f"<hf.sync.{self._kind.__name__.lower()}>"

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._kind) if not name.startswith("_")]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = None if name.startswith("_") else getattr(self._kind, name, None)
        if method is None:
            raise AttributeError(
                f"hf.sync has no {self._kind.__name__.lower()}.{name}; there are {', '.join(dir(self))}",
                name=name,
                obj=self,
            )
        sync, noun = self._sync, self._noun

        def call(*args: Any, **kwargs: Any) -> Any:
            return sync.run(lambda client: method(noun(client), *args, **kwargs))

        def iterate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            return sync.iterate(lambda client: method(noun(client), *args, **kwargs))

        return functools.wraps(method)(iterate if inspect.isasyncgenfunction(method) else call)


class SyncJobHandle(Generic[R]):
    """What `task.sync.enqueue` returns: a job's id, and questions about it that wait for their answers.

    It may be used in any thread, after a fork too, for as long as the job is kept.
    """

    __slots__ = ("_decode", "_enlisted", "_sync", "id")

    id: JobId
    """The job's id, a UUID that grows with time."""

    def __init__(self, sync: Sync, handle: JobHandle[R]) -> None:
        self.id = handle.id
        self._sync = sync
        self._decode = handle.decode
        self._enlisted = handle.enlisted

    def __repr__(self) -> str:
        return f"<SyncJobHandle {self.id}>"

    def _there(self, client: Client) -> JobHandle[R]:
        return JobHandle(self.id, client, self._decode, enlisted=self._enlisted)

    def info(self) -> JobInfo:
        """All that is known of the job now; JobNotFound once it has been pruned."""
        return self._sync.run(lambda client: self._there(client).info())

    def result(self, timeout: Seconds | None = None) -> R:
        """Wait for the job to end and return its result; raises what `JobHandle.result` raises."""
        return self._sync.run(lambda client: self._there(client).result(timeout))

    def cancel(self, reason: str = "") -> CancelAnswer:
        """End the job if it waits, ask it to stop if it runs."""
        return self._sync.run(lambda client: self._there(client).cancel(reason))

    def events(self) -> Iterator[JobInfo]:
        """The job's changes as they happen (state, attempt, progress), until it has ended."""
        return self._sync.iterate(lambda client: self._there(client).events())


class SyncCalls(Generic[P, R]):
    """`task.sync`: enqueue from code without an event loop."""

    __slots__ = ("_sync", "_task")

    def __init__(self, task: Task[P, R], sync: Sync) -> None:
        self._task = task
        self._sync = sync

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> SyncJobHandle[R]:
        """Store a job for this call; returns after the commit. Raises what `task.enqueue` raises."""
        request = self._task.request(*args, **kwargs)
        if request.options.connection is not None:
            [handle] = self._sync.enlist(lambda client: client.enlist_one(request, blocking=True), [request])
            return SyncJobHandle(self._sync, handle)
        return SyncJobHandle(self._sync, self._sync.run(lambda client: client.enqueue(request)))


#: Held while any of them opens or closes, and across a fork: so none is half open when the process is copied.
_gate = threading.Lock()
_open: weakref.WeakSet[Sync] = weakref.WeakSet()


def _close_all(*, forking: bool = False, within_s: float | None = None) -> None:
    for sync in list(_open):
        with contextlib.suppress(Exception):  # what was accepted is on disk; the rest is tidying
            sync._close(forking=forking, within_s=within_s)


def _before_fork() -> None:
    _gate.acquire()
    _close_all(forking=True)


def _at_exit() -> None:
    if _gate.acquire(timeout=_CLOSE_AT_EXIT_S):  # else another thread hangs in an opening
        _close_all(within_s=_CLOSE_AT_EXIT_S)
        _gate.release()


# Hooks before a fork run in the reverse order of their registration. That of the executors takes a lock which closing
# needs, so theirs has to be registered first: by importing them.
os.register_at_fork(before=_before_fork, after_in_parent=_gate.release, after_in_child=_gate.release)
atexit.register(_at_exit)
