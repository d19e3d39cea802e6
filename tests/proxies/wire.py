"""As much of PostgreSQL's wire protocol as is needed to know which answer belongs to which statement."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

_TLS_REQUEST, _GSS_REQUEST, _CANCEL_REQUEST = 80877103, 80877104, 80877102


class Frames:
    """Cuts a stream of bytes into messages: one letter, a length that counts itself, a body."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Each message that is complete by now, whole."""
        self._rest += data
        at = 0
        while len(self._rest) >= at + 5:
            end = at + 1 + struct.unpack_from("!I", self._rest, at + 1)[0]
            if len(self._rest) < end:
                break
            yield self._rest[at:end]
            at = end
        self._rest = self._rest[at:]


async def read_startup(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[bytes, bool]:
    """A connection's first message, which has no letter, and whether it only asks to cancel another's statement.

    Wishes for encryption are declined on the way: a proxy that understands must be able to read.
    """
    while True:
        length = await reader.readexactly(4)
        body = await reader.readexactly(struct.unpack("!I", length)[0] - 4)
        (code,) = struct.unpack_from("!I", body)
        if code not in (_TLS_REQUEST, _GSS_REQUEST):
            return length + body, code == _CANCEL_REQUEST
        writer.write(b"N")


@dataclass(slots=True)
class Statements:
    """Follows one client's messages, to say what text is about to run: prepared statements go by their names."""

    _prepared: dict[bytes, str] = field(default_factory=dict)
    _portals: dict[bytes, str] = field(default_factory=dict)

    def text(self, message: bytes) -> str | None:
        """What this message makes the server run, if it does."""
        kind, body = message[:1], message[5:]
        match kind:
            case b"Q":
                return body.rstrip(b"\0").decode(errors="replace")
            case b"P":
                name, text, _ = body.split(b"\0", 2)
                self._prepared[name] = text.decode(errors="replace")
            case b"B":
                portal, name, _ = body.split(b"\0", 2)
                self._portals[portal] = self._prepared.get(name, "")
            case b"E":
                return self._portals.get(body.partition(b"\0")[0], "")
            case b"C" if body[:1] == b"S":
                self._prepared.pop(body[1:].rstrip(b"\0"), None)
        return None


def ends_a_round(message: bytes) -> bool:
    """Whether the server will answer this, and all before it, with a ReadyForQuery."""
    return message[:1] in (b"Q", b"S")


def is_ready(message: bytes) -> bool:
    """ReadyForQuery: the server has committed, or failed, or is inside a transaction; and waits for more."""
    return message[:1] == b"Z"


def error(sqlstate: str, *, severity: str = "ERROR") -> bytes:
    """ErrorResponse, with as much as drivers look at."""
    fields = {"S": severity, "V": severity, "C": sqlstate, "M": f"injected {sqlstate}"}
    return _message(b"E", b"".join(f"{name}{text}\0".encode() for name, text in fields.items()) + b"\0")


def refused(answer: list[bytes], sqlstate: str) -> list[bytes]:
    """The error in place of what the server has answered; a transaction that is open has failed now."""
    status = answer[-1][5:6]
    return [error(sqlstate), _message(b"Z", b"E" if status == b"T" else status)]


def instead(message: bytes) -> bytes:
    """What the server gets in place of a statement that it is not to run, and answers with no more than a 'Z'."""
    if message[:1] != b"Q":
        return b""  # its Sync is still to come
    ends = message[5:].lstrip().upper().startswith((b"COMMIT", b"END"))
    return _message(b"Q", b"ROLLBACK\0" if ends else b"\0")


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def asks_for_data(message: bytes) -> bool:
    """An answer in the middle of COPY, without which the client would not go on."""
    return message[:1] in (b"G", b"W")
