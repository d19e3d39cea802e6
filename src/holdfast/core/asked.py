"""Functions of users that are asked about a call (`key=`, `by=`, `tenant=`): whether they can take its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from typing import Any

from holdfast.core.errors import InvalidOptions
from holdfast.core.options import OWN, TaskOptions
from holdfast.core.shown import shown


def check_asked(function: Callable[..., Any], options: TaskOptions, provided: Collection[str], *, what: str) -> None:
    """They get every argument by its name; refused is only one of which it is certain that it would always fail."""
    all_asked = list(_asked(options))
    if not all_asked:
        return
    passed = [each for each in inspect.signature(function).parameters.values() if each.name not in provided]
    names = [each.name for each in passed if each.kind is not inspect.Parameter.VAR_KEYWORD]
    any_others = len(names) < len(passed)  # callers may pass what is not named
    for option, asked in all_asked:
        try:
            signature = inspect.signature(asked)
        except (TypeError, ValueError):  # one that does not tell
            continue
        try:
            (signature.bind_partial if any_others else signature.bind)(**dict.fromkeys(names))
        except TypeError as error:
            said = f"({', '.join(names)})" if names else "no arguments"
            raise InvalidOptions(
                f"{what}: {option}{shown(asked)} is asked with the call's arguments by name, {said}, which it does not "
                f"take: {error}; name those that it needs, and end with **_ for the rest"
            ) from None


def _asked(options: TaskOptions) -> Iterator[tuple[str, Callable[..., Any]]]:
    for limit in options.limits:
        if limit.key is not None:
            yield "concurrency: key=", limit.key
    for rate in options.rates:
        if rate.key is not None:
            yield "rate: key=", rate.key
    if options.once is not None and callable(options.once.by):
        yield f"{type(options.once).__name__.lower()}: by=", options.once.by
    if callable(options.tenant) and options.said_by.get("tenant") == OWN:  # others do not know this task's arguments
        yield "tenant=", options.tenant
