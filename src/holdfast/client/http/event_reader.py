"""Puts the bytes of a stream together to events. A line ends at LF or CRLF and nowhere else: what Python's `splitlines`
takes for an end besides, as U+2028, stands in JSON as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class StreamEvent(NamedTuple):
    """One event of a stream."""

    kind: str
    id: str
    data: bytes


class EventReader:
    """Of one stream."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        """The parts of a line that has not ended; joined once, since it may be as long as a job's result."""
        self._fields: dict[bytes, bytes] = {}

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """More of the stream, cut anywhere; the events that end with it."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            line = b"".join((*self._begun, part)).removesuffix(b"\r")
            self._begun.clear()
            if (event := self._take(line)) is not None:
                yield event
        if rest:
            self._begun.append(rest)

    def _take(self, line: bytes) -> StreamEvent | None:
        if line:
            name, _, value = line.partition(b": ")
            self._fields[name] = value
            return None
        fields, self._fields = self._fields, {}
        if b"data" not in fields:
            return None
        kind, revision = (fields.get(name, b"").decode("ascii", "replace") for name in (b"event", b"id"))
        return StreamEvent(kind or "message", revision, fields[b"data"])
