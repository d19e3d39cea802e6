"""What users want done around a worker's work: lifespan, hooks, providers; begun in order, ended in reverse.

Not around a single run: that is the middleware's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from holdfast.core.error_classes import BUILT_IN_CLASSES, ErrorClasses
from holdfast.core.errors import InvalidOptions, StartupFailed
from holdfast.core.provide import Maker, name_of
from holdfast.core.task import TaskDefinition
from holdfast.runtime.threads import ThreadPool
from holdfast.telemetry.events import ServiceCrashed
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.middleware import Middleware
from holdfast.worker.providers import Providers

Hook: TypeAlias = Callable[[], Any]
Lifespan: TypeAlias = Callable[[Any], Any]
"""An async generator function, or one that gives an async context manager; it gets the app."""


@dataclass(frozen=True, slots=True)
class EnterLifespan:
    """A lifespan with the app that it gets."""

    function: Lifespan
    enter: Callable[[], AbstractAsyncContextManager[Any]]


@dataclass(slots=True)
class Hooks:
    """What an app has registered; read by each worker when it starts, but for the overrides, which hold at once."""

    lifespan: EnterLifespan | None = None
    startup: list[Hook] = field(default_factory=list)
    shutdown: list[Hook] = field(default_factory=list)
    middleware: list[Middleware] = field(default_factory=list)
    overrides: dict[Maker, Maker] = field(default_factory=dict)
    errors: ErrorClasses = BUILT_IN_CLASSES


class Lifecycle:
    """One worker's way through its app's hooks.

    1. Lifespan, `on_startup` in order, then what its tasks are provided with: whatever raises stops the worker.
    2. The end is the reverse, always complete, also after a start that failed; errors are reported, none stops it.
    """

    def __init__(self, hooks: Hooks, *, threads: ThreadPool, telemetry: Telemetry) -> None:
        self._hooks = hooks
        self._threads = threads
        self._telemetry = telemetry
        self._lifespan: AbstractAsyncContextManager[Any] | None = None
        self.providers = Providers(threads, hooks.overrides)

    async def begin(self, tasks: Iterable[TaskDefinition]) -> None:
        """Everything before the first job."""
        if self._hooks.lifespan is not None:
            await self._begin_step("the lifespan", self._enter_lifespan)
        for hook in tuple(self._hooks.startup):
            await self._begin_step(f"on_startup {name_of(hook)}", partial(self._call, hook))
        for task in tasks:
            for name, need in task.provided.items():
                if need.scope == "worker":
                    what = f"{name_of(need.make)}, which provides {name!r} of task {task.name},"
                    await self._begin_step(what, partial(self.providers.get_alone, need))

    async def end(self) -> None:
        """Everything after the last job."""
        await self._end_step("a provider", partial(self.providers.close, None))
        for hook in reversed(self._hooks.shutdown):
            await self._end_step(f"on_shutdown {name_of(hook)}", partial(self._call, hook))
        if self._lifespan is not None:
            await self._end_step("the lifespan", partial(self._lifespan.__aexit__, None, None, None))

    async def _enter_lifespan(self) -> None:
        assert self._hooks.lifespan is not None
        lifespan = self._hooks.lifespan.enter()
        self.providers.give(self._hooks.lifespan.function, await lifespan.__aenter__())
        self._lifespan = lifespan

    async def _call(self, hook: Hook) -> None:
        await (hook() if inspect.iscoroutinefunction(hook) else self._threads.run(hook))

    async def _begin_step(self, what: str, step: Callable[[], Any]) -> None:
        try:
            await step()
        except Exception as error:
            raise StartupFailed(f"the worker did not start: {what} raised {type(error).__name__}: {error}") from error

    async def _end_step(self, what: str, step: Callable[[], Any]) -> None:
        try:
            await step()
        except Exception as error:
            self._telemetry.emit(ServiceCrashed(what, f"{type(error).__name__}: {error}"))


def check_hook(decorator: str, function: Callable[..., Any]) -> Hook:
    """A function that can be called without arguments."""
    if not callable(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidOptions(f"@{decorator}: {name_of(function)} is not a function (def or async def); see lifespan=")
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise InvalidOptions(f"@{decorator}: {name_of(function)} is called without arguments: {error}") from None
    return function


def enter_lifespan(function: Lifespan, app: object) -> EnterLifespan:
    """A lifespan bound to its app; InvalidOptions for what is none."""
    made: Any = asynccontextmanager(function) if inspect.isasyncgenfunction(function) else function

    def enter() -> AbstractAsyncContextManager[Any]:
        manager = made(app)
        if not isinstance(manager, AbstractAsyncContextManager):
            raise InvalidOptions(f"lifespan={name_of(function)}: gives no async context manager")
        return manager

    if not callable(function) or inspect.iscoroutinefunction(function):
        raise InvalidOptions(
            f"lifespan={name_of(function)}: needs an async generator function that takes the app: "
            "`async def lifespan(app): …; yield; …`"
        )
    return EnterLifespan(function, enter)
