"""What one call's job has to pass, and what makes it one too many: the task's options with the call's arguments.

A limit's key is its name, or its name, a slash, and what `key=` said of the arguments as text. Two answers that read
the same are the same key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic_core import to_jsonable_python

from holdfast.client.arguments import ordered
from holdfast.core.errors import InvalidArguments, InvalidOptions
from holdfast.core.gates import Gate, RateGate, SlotGate
from holdfast.core.limit_options import Limit, Rate
from holdfast.core.once_options import By, Once
from holdfast.core.options import TaskOptions
from holdfast.core.outcome import storable
from holdfast.core.shown import shown
from holdfast.core.unique import UniqueClaim

if TYPE_CHECKING:
    from holdfast.client.request import Request

_LONGEST_KEY: Final = 200
_DIGITS: Final = 32


class Flow:
    """One call's arguments by name, worked out once and only where somebody asks for them."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._named: Mapping[str, Any] | None = None

    @property
    def arguments(self) -> Mapping[str, Any]:
        if self._named is None:
            request = self._request
            known = request.signature
            self._named = request.kwargs if known is None else known.by_name(request.args, request.kwargs)
        return self._named

    def gates(self, task: TaskOptions) -> tuple[Gate, ...]:
        """A breaker first: while it is open, nobody waits in the line of a limit for nothing."""
        own = f"task:{self._request.task}"
        gates: list[Gate] = [] if task.breaker is None else [task.breaker.gate]
        for limit in task.limits:
            name = limit.name or own
            gates.append(SlotGate(self._key("concurrency", name, limit), limit.size, name, limit.policy))
        for rate in task.rates:
            name = rate.name or own
            gates.append(RateGate(self._key("rate", name, rate), rate.parsed, name))
        return tuple(gates)

    def claim(self, once: Once, tenant: str) -> UniqueClaim:
        """Its key is that of the task, the tenant and what has to be unique, as a digest: arguments may be long."""
        task = self._request.task
        value = self._same(type(once).__name__.lower(), once.by)
        text = json.dumps([task, tenant, value], sort_keys=True)
        return once.claim._replace(key=f"{task}:{_digest(text)}")

    def _key(self, option: str, name: str, gate: Limit | Rate) -> str:
        if gate.key is None:
            return name
        what = f"key= of {option}={name!r}"
        value = self._asked(what, gate.key)
        if value is None:
            raise self._bad(f"{what} said None: which one it is has to be told")
        if type(value) is int and abs(value) < 2**63:  # as JSON has it, and quicker; most keys are
            text = str(value)
        else:
            text = value if isinstance(value, str) else self._text(what, value)
        if len(text) > _LONGEST_KEY or storable(text, len(text)) != text:
            text = f"{storable(text, 40)} {_digest(text)}"
        return f"{name}/{text}"

    def _same(self, option: str, by: By) -> Any:
        """What two calls are compared by, as plain JSON."""
        if callable(by):
            value = self._asked(f"by= of {option}=", by)
            if value is None:
                raise self._bad(f"by= of {option}= said None: which calls are the same has to be told")
        elif by is None:
            value = dict(self.arguments) if self._request.signature else [self._request.args, self._request.kwargs]
        else:
            # With their names: the same value of another argument is another call.
            value = {name: self._argument(option, name) for name in ([by] if isinstance(by, str) else by)}
        return self._plain(f"by= of {option}=", value)

    def _argument(self, option: str, name: str) -> Any:
        try:
            return self.arguments[name]
        except KeyError:
            there = ", ".join(map(repr, self.arguments)) or "none by name"
            raise InvalidOptions(
                f"{self._request.task}: by= of {option}= names argument {name!r}, and the call has {there}; nothing "
                "was enqueued"
            ) from None

    def _asked(self, what: str, function: Callable[..., object]) -> object:
        try:
            return function(**self.arguments)
        except Exception as error:  # the user's own code
            raise self._bad(f"{what} raised {type(error).__name__}: {error}") from error

    def _text(self, what: str, value: object) -> str:
        return json.dumps(self._plain(what, value), sort_keys=True, ensure_ascii=False)

    def _plain(self, what: str, value: object) -> Any:
        try:
            return to_jsonable_python(ordered(value))
        except Exception as error:  # whatever has no form in JSON
            raise self._bad(f"{what} said {shown(value)}, which cannot be written as JSON") from error

    def _bad(self, why: str) -> InvalidArguments:
        return InvalidArguments(f"{self._request.task}: {why}; nothing was enqueued")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


Declared: TypeAlias = "dict[str, list[Limit | Rate]]"


def names_of_gates(tasks: Sequence[tuple[str, TaskOptions]]) -> Declared:
    """What these tasks declare, by the names that operators use."""
    found: Declared = {}
    for task, options in tasks:
        declared: tuple[Limit | Rate, ...] = (*options.limits, *options.rates)
        for gate in declared:
            found.setdefault(gate.name or f"task:{task}", []).append(gate)
    return found
