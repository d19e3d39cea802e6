"""Which names are accepted for queues, tasks, tenants, tags, keys, limits, breakers, workers; not what they name."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown

NameKind: TypeAlias = Literal["queue", "task", "tenant", "tag", "key", "worker", "limit", "breaker"]


class _Rule(NamedTuple):
    label: str
    longest: int
    refused: re.Pattern[str]  # one character that may not occur
    allowed: str


# Not str.isprintable(): its answer depends on Python's Unicode version, so that a producer and a worker could
# disagree. Refused are control characters, line and paragraph separators, marks that reverse the text around
# them (a name must look like what it is), and lone surrogates (no store can encode them).
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_TEXT = "printable characters"

_RULES: Final[dict[str, _Rule]] = {
    "queue": _Rule("queue name", 64, re.compile(r"[^A-Za-z0-9_.-]"), "letters A-Z, digits, '_', '.' and '-'"),
    "task": _Rule(
        "task name",
        200,
        re.compile(r"[^A-Za-z0-9_.<>:-]"),
        "letters A-Z, digits and any of _ . < > : - (give the task another one with name=)",
    ),
    "tenant": _Rule("tenant", 200, _UNPRINTABLE, _TEXT),
    "tag": _Rule("tag", 200, _UNPRINTABLE, _TEXT),
    "key": _Rule("idempotency key", 255, _UNPRINTABLE, _TEXT),
    # After a slash comes the key: limit `a` with key `b/c` must not be what limit `a/b` with key `c` is.
    "limit": _Rule("limit name", 220, re.compile(f"{_UNPRINTABLE.pattern}|/"), f"{_TEXT} but '/'"),
    "breaker": _Rule("breaker name", 200, _UNPRINTABLE, _TEXT),
    "worker": _Rule("worker name", 200, re.compile(r"[^A-Za-z0-9_.:@-]"), "letters A-Z, digits and any of _ . : @ -"),
}


def is_printable(text: str) -> bool:
    """Whether it holds nothing but what can be seen, in one line, as it is."""
    return _UNPRINTABLE.search(text) is None


def check_name(kind: NameKind, value: object) -> str:
    """The name as a plain `str`, or `InvalidOptions` in a sentence."""
    rule = _RULES[kind]
    article = "an" if rule.label[0] in "aeiou" else "a"
    if not isinstance(value, str):
        raise InvalidOptions(f"{article} {rule.label} must be text, not {type(value).__name__}: {shown(value)}")
    if not value:
        raise InvalidOptions(f"{article} {rule.label} must not be empty; give 1 to {rule.longest} characters")
    if len(value) > rule.longest:
        raise InvalidOptions(
            f"{rule.label} {value[:40]!r}… has {len(value):,} characters; at most {rule.longest} are allowed"
        )
    if found := rule.refused.search(value):
        raise InvalidOptions(
            f"{rule.label} {value!r} has {found.group()!r} at position {found.start() + 1}; allowed are {rule.allowed}"
        )
    if kind in ("limit", "breaker") and value.isspace():
        raise InvalidOptions(f"{article} {rule.label} must not be blank: {value!r}")
    return str.__str__(value)  # a str enum becomes its value


def check_limit_name(value: object) -> str:
    """The name of a limit or a rate. A whole task or queue has to be one that there can be: for any other it would do
    nothing."""
    name = check_name("limit", value)
    kinds: tuple[NameKind, ...] = ("task", "queue")
    for kind in kinds:
        if name.startswith(f"{kind}:"):
            try:
                check_name(kind, name.removeprefix(f"{kind}:"))
            except InvalidOptions as error:
                raise InvalidOptions(f"limit {name!r}: {error}") from None
    return name
