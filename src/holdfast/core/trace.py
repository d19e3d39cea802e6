"""The trace that a job belongs to, as it travels from its call to its runs: W3C's `traceparent`. Makes no spans."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

NAME: Final = "traceparent"
_TEXT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_LONGEST: Final = 200


class TraceIds(NamedTuple):
    """A span, by the hexadecimal digits of its trace and of itself."""

    trace_id: str
    span_id: str


def parse_traceparent(text: object) -> TraceIds | None:
    """None for what is none; a version of the format that is not known yet is read as far as it is."""
    found = _TEXT.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if found is None or not int(found[1], 16) or not int(found[2], 16):
        return None
    return TraceIds(found[1], found[2])


def headers_of(metadata: Mapping[str, Any]) -> bytes | None:
    """What of a call's metadata goes to its runs: the trace that it names, if it does."""
    given = metadata.get(NAME)
    return None if parse_traceparent(given) is None else json.dumps({NAME: given}).encode()


def trace_of(headers: bytes | None) -> TraceIds | None:
    """The trace that a run's headers name; what is not of our making names none."""
    try:
        found = json.loads(headers or b"null")
    except (ValueError, RecursionError):
        return None
    return parse_traceparent(found.get(NAME)) if isinstance(found, dict) else None
