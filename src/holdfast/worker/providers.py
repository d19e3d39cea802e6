"""Makes what tasks are provided with, once per worker or per run, and closes it again; what is needed is `core`'s."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias, assert_never

from holdfast.core.errors import HoldfastError
from holdfast.core.provide import Maker, MakerKind, Provide, recipe
from holdfast.runtime.threads import ThreadPool
from holdfast.worker.run import Run

Overrides: TypeAlias = Mapping[Maker, Maker]
_Close: TypeAlias = Callable[[BaseException | None], Awaitable[object]]

#: So long may the clean-up after one run take; then it is cancelled, and the attempt has failed.
CLEAN_UP_S = 30.0


class Scope:
    """Objects that live equally long: each made once, in the order of need, and closed in the reverse of it."""

    def __init__(self, threads: ThreadPool, overrides: Overrides) -> None:
        self._threads = threads
        self._overrides = overrides
        self._made: dict[Maker, Any] = {}
        self._closers: list[_Close] = []

    async def get(self, need: Provide) -> Any:
        """The object; also for what is being made and needs it."""
        make = self._overrides.get(need.make, need.make)
        if make not in self._made:
            self._made[make] = await self._make(make)
        return self._made[make]

    async def close(self, error: BaseException | None) -> None:
        """Clean up, telling every generator what ended its use; all are closed, then the first error is raised."""
        first: BaseException | None = None
        while self._closers:
            try:
                await self._closers.pop()(error)
            except BaseException as raised:
                first = first or raised
        if first is not None and error is None:
            raise first

    async def _make(self, make: Maker) -> Any:
        how = recipe(make)
        call = partial(make, **{name: await self.get(need) for name, need in how.needs.items()})
        match how.kind:
            case MakerKind.FUNCTION:
                return await self._threads.run(call)
            case MakerKind.COROUTINE:
                return await call()
            case MakerKind.GENERATOR:
                return await self._enter_in_thread(contextmanager(call)())
            case MakerKind.ASYNC_GENERATOR:
                return await self._enter(asynccontextmanager(call)())
            case _:
                assert_never(how.kind)

    async def _enter(self, manager: AbstractAsyncContextManager[Any]) -> Any:
        made = await manager.__aenter__()
        self._closers.append(lambda error: manager.__aexit__(*_raised(error)))
        return made

    async def _enter_in_thread(self, manager: AbstractContextManager[Any]) -> Any:
        entering = asyncio.ensure_future(self._threads.run(manager.__enter__))

        async def leave(error: BaseException | None) -> None:
            await asyncio.wait([entering])
            if entering.exception() is None:
                await self._threads.run(lambda: manager.__exit__(*_raised(error)))

        # A maker in a thread is not interrupted: what it makes for a run that has been cancelled is closed, too.
        self._closers.append(leave)
        return await asyncio.shield(entering)


class RunScope(Scope):
    """What is made for one run; what its worker has comes from there."""

    def __init__(self, providers: Providers, run: Run, threads: ThreadPool, overrides: Overrides) -> None:
        super().__init__(threads, overrides)
        self._providers = providers
        self._run = run

    async def get(self, need: Provide) -> Any:
        """The object, from where it lives."""
        if need.scope == "worker":
            return await self._providers.get_alone(need)
        return await super().get(need)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._closers or isinstance(error, GeneratorExit):  # the loop is gone, nothing can be awaited
            return
        with self._run.undisturbed():
            try:
                async with asyncio.timeout(CLEAN_UP_S):
                    await self.close(error)
            except TimeoutError as late:
                if error is None:
                    raise HoldfastError(f"the clean-up after the run took longer than {CLEAN_UP_S:g} s") from late


class Providers(Scope):
    """What one worker has, and the scopes of its runs. Only one thing is made at a time, so nothing is made twice."""

    def __init__(self, threads: ThreadPool, overrides: Overrides) -> None:
        super().__init__(threads, overrides)
        self._making = asyncio.Lock()

    def give(self, make: Maker, made: Any) -> None:
        """An object that somebody else made, and closes."""
        self._made[make] = made

    def for_run(self, run: Run) -> RunScope:
        return RunScope(self, run, self._threads, self._overrides)

    async def get_alone(self, need: Provide) -> Any:
        """`get` for whoever is not the only one to ask."""
        make = self._overrides.get(need.make, need.make)
        if make in self._made:
            return self._made[make]
        async with self._making:
            return await self.get(need)


def _raised(
    error: BaseException | None,
) -> tuple[type[BaseException] | None, BaseException | None, TracebackType | None]:
    return (None, None, None) if error is None else (type(error), error, error.__traceback__)
