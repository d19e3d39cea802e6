"""Turns the words of a command line into the arguments of a call: JSON where it is JSON, else text."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from holdfast.cli.exits import Refused
from holdfast.core.errors import InvalidArguments
from holdfast.core.task import TaskDefinition

_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


@contextlib.contextmanager
def explaining_arguments(task: TaskDefinition | None) -> Iterator[None]:
    """A call that does not fit its task was, more often than not, a text that looks like a number."""
    try:
        yield
    except InvalidArguments as error:
        takes = "" if task is None else f"`{task.name}{_signature(task)}`; "
        hint = f"""{takes}values are read as JSON: the text 5 is written '"5"', a list '[1, 2]'"""
        raise Refused(str(error), hint=hint) from error


def _signature(task: TaskDefinition) -> inspect.Signature:
    """What callers pass, written as in the source."""
    passed = [
        each.replace(annotation=_Plain(each.annotation)) if isinstance(each.annotation, str) else each
        for name, each in inspect.signature(task.function).parameters.items()
        if name not in task.provided
    ]
    return inspect.Signature(passed)


class _Plain(str):
    """An annotation that was not evaluated, shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def parse_call(words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """`2 b=3 'c={"d": 1}' text` is `(2, "text", b=3, c={"d": 1})`."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in words:
        named = _NAMED.fullmatch(word)
        if named is None:
            args.append(_value(word, word))
        elif named[1] in kwargs:
            raise Refused(f"the argument {named[1]!r} was given twice", hint=f"leave out one of the `{named[1]}=…`")
        else:
            kwargs[named[1]] = _value(named[2], word)
    return args, kwargs


def _value(text: str, word: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        # What begins like JSON is meant as JSON: to take it as text would hide the slip.
        if text[:1] in ("{", "[", '"'):
            raise Refused(
                f"the argument {word[:60]!r} begins like JSON and is not: {error}",
                hint="""quote it for the shell, as in 'data={"a": 1}'; a text that begins so is written '"[…"'""",
            ) from None
        return text
    except RecursionError:
        raise Refused(f"the argument {word[:60]!r} is nested too deeply", hint="pass a reference instead") from None


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
