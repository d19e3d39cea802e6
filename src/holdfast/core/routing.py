"""Where jobs go by the name of their task: patterns and what they say. What sees a call is in `client.placing`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from holdfast.core.errors import InvalidOptions
from holdfast.core.names import check_name
from holdfast.core.priority import parse_priority
from holdfast.core.unset import UNSET, Unset

_REFUSED: Final = re.compile(r"[^A-Za-z0-9_.<>:*-]")
_LONGEST: Final = 200

OPERATOR: Final = "operator"
"""The origin of rules that are set at run time."""
MOST_AT_RUN_TIME: Final = 1_000
"""So many patterns can be set at run time: every producer reads them, again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a job goes: its queue, its priority, or both. What is left out is for the next level to say."""

    queue: str | Unset = UNSET
    priority: int | str | Unset = UNSET

    def __post_init__(self) -> None:
        if isinstance(self.queue, Unset) and isinstance(self.priority, Unset):
            raise InvalidOptions("a Route says where to: give it queue=, priority= or both")
        if not isinstance(self.queue, Unset):
            object.__setattr__(self, "queue", check_name("queue", self.queue))
        if not isinstance(self.priority, Unset):
            object.__setattr__(self, "priority", parse_priority(self.priority))


class Rule(NamedTuple):
    """A pattern and where the jobs of tasks go whose names it matches."""

    pattern: str
    route: Route
    origin: str

    def matches(self, task: str) -> bool:
        """`*` stands for any characters, also none and also dots; everything else for itself."""
        first, *rest = self.pattern.split("*")
        if not rest:
            return task == first
        *middle, last = rest
        if not task.startswith(first):
            return False
        at = len(first)
        for part in middle:  # the earliest place leaves most room for what follows
            found = task.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return len(task) - at >= len(last) and task.endswith(last)

    @property
    def weight(self) -> tuple[bool, int, int]:
        """The more specific pattern weighs more: a whole name, then more characters, then more before the first `*`."""
        literal = len(self.pattern.replace("*", ""))
        return "*" not in self.pattern, literal, len(self.pattern.partition("*")[0])


def by_weight(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The most specific first; of equal ones the one that was given first."""
    return tuple(sorted(rules, key=lambda rule: rule.weight, reverse=True))


def check_pattern(pattern: object) -> str:
    """A pattern for names of tasks."""
    if not isinstance(pattern, str) or not pattern:
        raise InvalidOptions(f"route {pattern!r:.80}: needs a pattern for names of tasks, as in 'payments.*'")
    if len(pattern) > _LONGEST:
        raise InvalidOptions(f"route {pattern[:40]!r}…: has {len(pattern)} characters, at most {_LONGEST} are allowed")
    if found := _REFUSED.search(pattern):
        raise InvalidOptions(
            f"route {pattern!r}: {found.group()!r} is in no task's name; besides what names are made of, only * has a "
            "meaning: any characters"
        )
    return pattern


def parse_rule(pattern: object, origin: str, *, queue: object = None, priority: object = None) -> Rule:
    """One rule; None: nothing is said of it."""
    pattern = check_pattern(pattern)
    given = {name: said for name, said in (("queue", queue), ("priority", priority)) if said is not None}
    return Rule(pattern, _made(pattern, given), origin)


def parse_routes(table: object, origin: str) -> tuple[Rule, ...]:
    """The rules of a table: `"payments.*" = "money"`, or `{ queue = "money", priority = "high" }`."""
    if not isinstance(table, Mapping):
        raise InvalidOptions(f"{table!r:.80} is not a table from patterns to queues")
    return tuple(Rule(check_pattern(pattern), _route(pattern, said), origin) for pattern, said in table.items())


def _route(pattern: str, said: Any) -> Route:
    if isinstance(said, str):
        said = {"queue": said}
    if not isinstance(said, Mapping) or not said or said.keys() - {"queue", "priority"}:
        raise InvalidOptions(
            f"route {pattern!r}: {said!r:.80} is not a queue's name, nor a table with queue, priority or both"
        )
    return _made(pattern, said)


def _made(pattern: str, said: Mapping[str, Any]) -> Route:
    try:
        return Route(**said)
    except InvalidOptions as error:
        raise InvalidOptions(f"route {pattern!r}: {error}") from None
