"""A task as a definition (name, function, defaults) and the registry of an app's tasks; how it runs is not here."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.asked import check_asked
from holdfast.core.errors import InvalidOptions, UnknownTask
from holdfast.core.names import check_name
from holdfast.core.namesakes import check_namesakes
from holdfast.core.options import TaskOptions
from holdfast.core.provide import Provide, check_needs, check_places, provided_parameters
from holdfast.core.shown import shown


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """What a worker needs to run a task, and a client to enqueue it."""

    name: str
    function: Callable[..., Any]
    options: TaskOptions
    is_async: bool
    provided: Mapping[str, Provide] = field(default_factory=dict)
    """Parameters that callers do not pass."""


def define(
    function: Callable[..., Any], *, name: str | None, options: TaskOptions, given: Collection[Callable[..., Any]] = ()
) -> TaskDefinition:
    """Check a decorated function and name it; `given` are providers that need not be called."""
    if not inspect.isroutine(function) or inspect.isclass(function):
        raise InvalidOptions(
            f"@task needs a function (def or async def), not {type(function).__name__} {shown(function)}"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidOptions(f"@task: {function.__qualname__} is a generator; a task returns one result")
    is_async = inspect.iscoroutinefunction(function)
    name = check_name("task", name if name is not None else default_name(function))
    provided = provided_parameters(function, what=f"task {name}")
    check_places(function, provided, what=f"task {name}")
    check_needs(provided, what=f"task {name}", given=given)
    _check_by(function, options, provided, what=f"task {name}")
    check_asked(function, options, provided, what=f"task {name}")
    return TaskDefinition(name=name, function=function, options=options, is_async=is_async, provided=provided)


def _check_by(
    function: Callable[..., Any], options: TaskOptions, provided: Mapping[str, Provide], *, what: str
) -> None:
    """What makes two calls the same is among what callers pass."""
    by = None if options.once is None else options.once.by
    if by is None or callable(by):
        return
    parameters = inspect.signature(function).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    passed = [name for name in parameters if name not in provided]
    for name in [by] if isinstance(by, str) else by:
        if name not in passed:
            near = difflib.get_close_matches(name, passed, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidOptions(f"{what}: by= names argument {name!r}, which its callers do not pass{hint}")


def default_name(function: Callable[..., Any]) -> str:
    """`module.qualname`; a script run as `__main__` gets the name under which others import its file.

    What `python -m package` runs, `package.__main__`, is `package` here, also where it is imported.
    """
    module = function.__module__
    if module == "__main__":
        main = sys.modules.get("__main__")
        spec = getattr(main, "__spec__", None)
        if spec is not None:
            module = spec.name
        elif file := getattr(main, "__file__", None):
            module = file.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    return f"{module.removesuffix('.__main__')}.{function.__qualname__}"


class Registry:
    """The tasks of one app, by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskDefinition] = {}

    def add(self, task: TaskDefinition) -> None:
        known = self._tasks.get(task.name)
        if known is not None and known.function is not task.function and not _same_source(known, task):
            raise InvalidOptions(
                f"two tasks are called {task.name!r}: {_where(known)} and {_where(task)}; give one of them a "
                "name of its own with @task(name=…)"
            )
        # One that replaces itself, as in a reloaded module, may change what it shares with others before these do.
        others = self._tasks.values() if known is None else ()
        check_namesakes(task.name, task.options, [(other.name, other.options) for other in others])
        self._tasks[task.name] = task

    def get(self, name: str) -> TaskDefinition | None:
        return self._tasks.get(name)

    def require(self, name: str) -> TaskDefinition:
        task = self._tasks.get(name)
        if task is None:
            near = difflib.get_close_matches(name, self._tasks, n=3)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise UnknownTask(f"no task {name!r} is registered in this app{hint}")
        return task

    def names(self) -> tuple[str, ...]:
        return tuple(self._tasks)

    def __iter__(self) -> Iterator[TaskDefinition]:
        return iter(self._tasks.values())


def _same_source(one: TaskDefinition, other: TaskDefinition) -> bool:
    # A module that is reloaded defines its tasks again: that replaces them.
    return _where(one) == _where(other)


def _where(task: TaskDefinition) -> str:
    code = getattr(task.function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(task.function)
