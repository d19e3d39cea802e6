"""The type of what `@hf.task(…)` with arguments gives; nothing happens here."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from holdfast.client.task import AsyncTask, SyncTask

P = ParamSpec("P")
R = TypeVar("R")


class TaskDecorator(Protocol):
    """Makes a task of a function, of the kind that the function is."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a coroutine function is the more special of the two
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncTask[P, R]: ...
