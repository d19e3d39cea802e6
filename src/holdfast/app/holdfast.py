"""`Holdfast` joins settings, store, client and worker, and is all that users import."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, Unpack, overload

from holdfast.app import backends
from holdfast.app.app_tasks import AppTasks
from holdfast.app.births import birth_of
from holdfast.app.decorator import TaskDecorator
from holdfast.app.nouns import Nouns
from holdfast.app.working import work
from holdfast.client.arguments import Signature
from holdfast.client.client import Client, OnEnqueued
from holdfast.client.handle import JobHandle
from holdfast.client.place import Place
from holdfast.client.placing import NO_PATTERNS, Placement, Router, Routing
from holdfast.client.request import Request, placement_of
from holdfast.client.sync import Opened, Sync
from holdfast.client.task import AsyncTask, SyncTask, Task
from holdfast.config import Config
from holdfast.core.defaults import TaskDefaults, TaskFields, check_defaults, check_queue_defaults, resolve_options
from holdfast.core.error_class import ErrorClass
from holdfast.core.error_classes import check_classes
from holdfast.core.errors import NotOpen
from holdfast.core.names import check_name
from holdfast.core.provide import overridden
from holdfast.core.routing import Route, Rule, check_pattern
from holdfast.core.task import define
from holdfast.core.unset import UNSET, Unset
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.failpoints import arm_from_text
from holdfast.runtime.loop import run_loop
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.stores.status import StoreStatus
from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.logs import attach_logs
from holdfast.upkeep.crew import make_crew
from holdfast.worker.lifecycle import Hooks, Lifespan, check_hook, enter_lifespan
from holdfast.worker.middleware import as_middleware
from holdfast.worker.supervision.post import Post
from holdfast.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
RouterT = TypeVar("RouterT", bound=Router)


class Holdfast(Nouns):
    """An app: its settings, its tasks and, between `async with hf:` and its end, its open store.

    - `url`: the store, as `postgresql://user@host/database`, `sqlite:///file.db`, or `:memory:` for tests. Defaults to
      the setting `url` (`HOLDFAST_URL`), else `sqlite:///holdfast.db` in the current directory.
    - `redis`: a Redis beside a PostgreSQL store, as `redis://host:6379/0`, which wakes workers and shares out the work.
    - `defaults`: options for all tasks of this app; `queue_defaults`: for those of a queue, by its name.
    - `errors`: rows of the table of errors that are asked before the built-in ones; `hf.errors` is the whole table.
    - `lifespan`: an async generator (or context manager) function that gets the app; a worker runs it around its work.
    - Every setting of `Config` may be given by name, as in `Holdfast(concurrency=20)`.
    """

    sync: Sync
    """Everything from code without an event loop: `hf.sync.enqueue(…)`, `task.sync.enqueue(…)`, `hf.sync.jobs`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        defaults: TaskDefaults | None = None,
        queue_defaults: Mapping[str, TaskDefaults] | None = None,
        lifespan: Lifespan | None = None,
        errors: Sequence[ErrorClass] | None = None,
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        self.config = Config.load(url=url, **settings)
        self._defaults = check_defaults("defaults", defaults)
        self._queue_defaults = check_queue_defaults(queue_defaults)
        self.errors = check_classes(errors)
        self._hooks = Hooks(lifespan=None if lifespan is None else enter_lifespan(lifespan, self), errors=self.errors)
        self._given = () if lifespan is None else (lifespan,)
        self.tasks = AppTasks(lambda: self._open_client().tasks)
        self._signatures: dict[str, Signature] = {}  # by name: to compile one takes longer than an enqueue
        self._routing = Routing(self.config.rules)
        self.telemetry = Telemetry()
        attach_logs(self.telemetry)
        self._clock = clock or SystemClock()
        self._on_enqueued: OnEnqueued | None = None
        self._opened: Opened | None = None
        self._open_in: tuple[asyncio.AbstractEventLoop, int] | None = None
        self.loaded_as: str | None = None  # `module:attribute`, where it was found by that
        self.made_in = str(sys._getframe(1).f_globals.get("__name__"))
        self.sync = Sync(connect=self._connect, shared=self._open_place, named=self.named)
        if self.config.failpoints:
            arm_from_text(self.config.failpoints)

    def __repr__(self) -> str:
        return f"<Holdfast {self.config.masked()['url']}>"

    # ------------------------------------------------------------ tasks

    @overload
    def task(  # type: ignore[overload-overlap]  # a coroutine function is the more special of the two
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> SyncTask[P, R]: ...
    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        base: TaskDefaults | None = None,
        **options: Unpack[TaskFields],
    ) -> TaskDecorator: ...
    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        base: TaskDefaults | None = None,
        **options: Unpack[TaskFields],
    ) -> Any:
        """Make a task of a function (`async def`, or `def`, which runs in a thread): `@hf.task`, or `@hf.task(…)`.

        - `name`: defaults to `module.qualname`; workers find the task by it.
        - `queue`, `priority`: where its jobs wait.
        - `retry`: a `RetryPolicy`.
        - `timeout`: the hard limit of a run in seconds, 300 by default, None for no limit.
        - `soft_timeout`: raises `SoftTimeout` inside the task then, so that it can tidy up.
        - `isolate`: run it in a process of its own, so that it can be killed, or crash, without hurting other jobs.
        - `tenant`: on whose behalf, or a function of the call's arguments that says it: `lambda account, **_: account`.
        - `concurrency`: how many run at once: a number, a `Limit`, or several. `rate`: how many begin in a time: a text
          as `"100/m"`, a `Rate`, or several.
        - `breaker`: a `Breaker`, whose failures keep further runs from starting.
        - `unique`, `debounce`, `throttle`: a `Unique`, `Debounce` or `Throttle`: what becomes of a call too many.
        - `base`: options that it shares with other tasks. What neither says comes from the queue's defaults, then from
          the app's.
        """
        own = TaskDefaults(**options)
        decorate = functools.partial(self._add_task, name=name, own=own, base=check_defaults("base", base))
        return decorate if function is None else decorate(function)

    def _add_task(
        self, function: Callable[..., Any], *, name: str | None, own: TaskDefaults, base: TaskDefaults
    ) -> Task[..., Any]:
        options = resolve_options(
            own,
            base=base,
            queues=self._queue_defaults,
            app=self._defaults,
        )
        definition = define(function, name=name, options=options, given=self._given)
        self.tasks.add(definition)
        kind = AsyncTask if definition.is_async else SyncTask
        signature = self._signatures[definition.name] = Signature(definition)
        return kind(definition.name, self._open_client, sync=self.sync, signature=signature)

    def named(self, name: str) -> Task[..., Any]:
        """A task by its name, to enqueue it with options. One that this app knows has its calls checked; any
        other runs wherever it is known, in the queue that the call names."""
        signature = self._signatures.get(check_name("task", name))
        return Task(name, self._open_client, sync=self.sync, signature=signature)

    # ------------------------------------------------------------ where jobs go

    def route(self, pattern: str, *, queue: str | Unset = UNSET, priority: int | str | Unset = UNSET) -> None:
        """Send the jobs of all tasks whose names match, as in `hf.route("payments.*", queue="money")`.

        `*` stands for any characters. The most specific pattern wins; the same one in the settings goes before this,
        and before all of them go those that operators set by `hf.routes`.
        """
        rule = Rule(check_pattern(pattern), Route(queue=queue, priority=priority), "code")
        self._routing.add_rule(rule)

    def router(self, function: RouterT, /) -> RouterT:
        """Ask it at every enqueue where the job goes: `def by_tier(call)` gives a `Route`, or None to leave it.

        The first registered is asked first. It goes before patterns and the task's options, after those of the call.
        """
        self._routing.add_router(function)
        return function

    def placement(self, request: Request) -> Placement:
        """Where the job of a call (made by `task.request(…)`) would go, and who says so. Stores nothing.

        Of what operators have set it knows what the open app has heard last, with the latest enqueue or by
        `await hf.routes.look()`, or `hf.sync` where only that is open; of an app that is not open, nothing.
        """
        client = self.sync.opened or (self._opened and self._opened.client)
        operators = NO_PATTERNS if client is None else client.heard.patterns
        return placement_of(request, self.config, self._routing, operators)

    # ------------------------------------------------------------ around the work

    def on_startup(self, function: F, /) -> F:
        """Call it when a worker starts, before its first job; in the order of registration. An error stops the worker.

        `def` or `async def`, without parameters; a `def` runs in a thread.
        """
        self._hooks.startup.append(check_hook("on_startup", function))
        return function

    def on_shutdown(self, function: F, /) -> F:
        """Call it when a worker ends, after its last job, also when it failed to start; the last registered first."""
        self._hooks.shutdown.append(check_hook("on_shutdown", function))
        return function

    def middleware(self, function: F, /) -> F:
        """Put it around every run of a task: `async def mw(job, call_next)`, or a generator `def mw(job)`.

        The first registered is outermost. What it returns is the result, what it raises fails the attempt. Holds for
        workers that start later.
        """
        self._hooks.middleware.append(as_middleware(function))
        return function

    @contextlib.contextmanager
    def override(self, make: Callable[..., Any], replacement: Callable[..., Any], /) -> Iterator[None]:
        """Inside the `with`, `replacement` makes what `Provide(make)` asks for; for tests."""
        with overridden(self._hooks.overrides, make, replacement):
            yield

    # ------------------------------------------------------------ open and closed

    async def open(self) -> None:
        """Open the store; `async with hf:` does it for you."""
        if self._opened is not None:
            raise NotOpen("this app is open already; one `async with hf:` at a time")
        self._opened = await self._connect()
        self._open_in = (asyncio.get_running_loop(), os.getpid())

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return self._opened is not None

    async def close(self) -> None:
        """Flush what is under way and close the store."""
        opened = self._opened
        if opened is None:
            return
        await opened.client.close()
        self._opened = None
        await opened.dispatch.transport.close()
        await opened.store.close()

    @contextlib.contextmanager
    def replaced(self, *, clock: Clock, on_enqueued: OnEnqueued, **settings: Any) -> Iterator[None]:
        """For `holdfast.testing`: other settings and another clock, for as long as this lasts; then the old ones."""
        if self._opened is not None:
            raise NotOpen("this app is open already: it can be replaced only before `async with hf:`")
        before = self.config, self._clock, self._on_enqueued
        self.config, self._clock, self._on_enqueued = self.config.with_arguments(**settings), clock, on_enqueued
        try:
            yield
        finally:
            self.config, self._clock, self._on_enqueued = before

    async def _connect(self) -> Opened:
        config = self.config
        store = await backends.open_store(config, clock=self._clock)
        try:
            dispatch = await backends.open_dispatch(config, store, clock=self._clock, telemetry=self.telemetry)
        except BaseException:
            await store.close()
            raise
        client = Client(
            store,
            self.tasks,
            config,
            clock=self._clock,
            telemetry=self.telemetry,
            on_enqueued=self._on_enqueued,
            routing=self._routing,
        )
        await client.start()
        return Opened(store, client, dispatch)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def store_status(self) -> StoreStatus:
        """What is there of the store: its place, its schema, what opening it would apply. Changes nothing."""
        return await backends.status_of(self.config)

    async def migrate(self) -> None:
        """Make the store's tables, or bring them up to date. A SQLite store does it whenever it is opened."""
        await backends.migrate(self.config)

    # ------------------------------------------------------------ enqueue

    async def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Enqueue by name; `hf.named(task).options(…).enqueue(…)` does it with options."""
        return await self.named(task).enqueue(*args, **kwargs)

    async def enqueue_many(self, requests: Sequence[Request], *, connection: object = None) -> list[JobHandle[Any]]:
        """Enqueue all of them (made by `task.request(…)`) in one transaction, or none; handles in order.

        `connection`: yours to the store's PostgreSQL database; they go into its transaction.
        """
        return await self._open_client().enqueue_many(requests, connection=connection)

    # ------------------------------------------------------------ work

    def worker(self, **settings: Any) -> Worker:
        """A worker in this process, to be used as `async with hf.worker():` while the app is open.

        `settings` (concurrency=, queues=, lease_s=, …) hold for this worker only.
        """
        return self._make_worker(settings)

    def _make_worker(self, settings: Mapping[str, Any], *, post: Post | None = None) -> Worker:
        store = self._open_store()
        config = self.config.with_arguments(**settings) if settings else self.config
        health = StoreHealth(clock=self._clock, telemetry=self.telemetry)
        around: dict[str, Any] = {"clock": self._clock, "telemetry": self.telemetry, "health": health}
        around["dispatch"] = self._require_open().dispatch
        crew = make_crew(store, self.tasks, config, **around)
        shared = backends.for_another_process(config, store)
        around |= {"birth": functools.partial(birth_of, self, self.tasks, self._hooks, shared), "post": post}
        return Worker(store, self.tasks, config, upkeep=crew, hooks=self._hooks, **around)

    def run_worker(self, **settings: Any) -> None:
        """Open the app and work until SIGTERM or SIGINT: drain, then end; a second signal ends it now.

        One process, without a supervisor: `holdfast worker` has one, which hard limits and quick recovery need.
        """
        run_loop(work(self, settings))

    def _open_store(self) -> Store:
        return self._require_open().store

    def _open_client(self) -> Client:
        return self._require_open().client

    def _require_open(self) -> Opened:
        if self._opened is None:
            raise NotOpen("the app is not open: do this inside `async with hf:`")
        return self._opened

    def _open_place(self) -> Place | None:
        """Where this process has the app open, if it does."""
        if self._opened is None or self._open_in is None:
            return None
        loop, pid = self._open_in
        return Place.on_loop(self._opened.client, loop) if pid == os.getpid() and loop.is_running() else None
