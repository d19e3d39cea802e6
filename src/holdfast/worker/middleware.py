"""What surrounds every run of an app's tasks: functions around functions, the first registered outermost."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import Any, TypeAlias

from holdfast.core.errors import HoldfastError, InvalidOptions
from holdfast.core.provide import name_of
from holdfast.worker.context import CurrentJob

CallNext: TypeAlias = Callable[[], Awaitable[Any]]
"""Goes on with the run: the next middleware, or the task; gives its result or raises its error."""
Middleware: TypeAlias = Callable[[CurrentJob, CallNext], Awaitable[Any]]
GeneratorMiddleware: TypeAlias = Callable[[CurrentJob], Generator[None, Any, Any]]


def surrounded(middleware: Sequence[Middleware], job: CurrentJob, innermost: CallNext) -> Awaitable[Any]:
    """The run with everything around it, begun."""
    call = innermost
    for each in reversed(middleware):
        call = partial(each, job, call)
    return call()


def as_middleware(function: Callable[..., Any]) -> Middleware:
    """Either kind as the one that runs; InvalidOptions for what is neither."""
    if inspect.iscoroutinefunction(function):
        _check_parameters(function, ("job", "call_next"))
        return function
    if inspect.isgeneratorfunction(function):
        _check_parameters(function, ("job",))
        return _around(function)
    raise InvalidOptions(
        f"@middleware: {name_of(function)} is neither `async def {name_of(function)}(job, call_next)` nor a generator, "
        f"`def {name_of(function)}(job)` with one `yield` in the place of the run"
    )


def _check_parameters(function: Callable[..., Any], names: tuple[str, ...]) -> None:
    try:
        inspect.signature(function).bind(*names)
    except TypeError as error:
        raise InvalidOptions(
            f"@middleware: {name_of(function)} is called with ({', '.join(names)}), which it does not take: {error}"
        ) from None


def _around(function: GeneratorMiddleware) -> Middleware:
    """On the loop, not in a thread: so it shares the run's context variables, and so it must not block."""

    @functools.wraps(function)
    async def around(job: CurrentJob, call_next: CallNext) -> Any:
        steps = function(job)
        try:
            next(steps)
        except StopIteration:
            raise HoldfastError(
                f"middleware {name_of(function)} has no `yield` for the run; it did not start"
            ) from None
        try:
            result = await call_next()
        except BaseException as error:
            try:
                steps.throw(error)
            except StopIteration as stop:
                return stop.value
        else:
            try:
                steps.send(result)
            except StopIteration as stop:
                # Who only looks has no `return`, and does not mean to take the result away.
                return result if stop.value is None else stop.value
        steps.close()
        raise HoldfastError(f"middleware {name_of(function)} has a second `yield`; one stands for the run")

    return around
