"""What a connection may cost before anybody has come with a key, and beside what is asked: bytes, time, places.

Duties:
1. A head is short, and is there soon; so is what is left of a body that was answered without it. What comes in a body
   and is none of it (trailers, extensions of chunks) is as short, and says nothing: a proxy that looks at heads has not
   seen it.
2. Only so many connections are open: files are left for the store.
3. A client that takes nothing of its answer is cut off, however little is left of it: one that is merely closed would
   be kept until it has.
"""

from __future__ import annotations

import asyncio
import fcntl
import resource
import sys
import termios
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD: Final = 64 * 1024
SLOWEST_S: Final = 20.0
_MOST: Final = 10_000
_LEFT_FOR_OTHERS: Final = 64


def most_connections() -> int:
    """As many as this process may have files, without those that it needs itself."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return _MOST
    return max(1, min(_MOST, allowed - max(_LEFT_FOR_OTHERS, allowed // 8)))


def _kept_by_the_kernel(transport: asyncio.Transport) -> int:
    """Bytes of an answer that the client's machine has not confirmed. The kernel takes more from us only when much of
    its own has gone: to whoever reads slowly, that is after longer than we wait. Where it does not tell: 0."""
    if sys.platform != "linux":
        return 0
    told = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(told, sys.byteorder)


class Connection(HttpToolsProtocol):
    """One connection, as uvicorn serves it, with its bounds."""

    longest_head = LONGEST_HEAD
    slowest_s = SLOWEST_S
    most: int | None = None
    """None: as many as there are files for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._in_body = False
        self._heads = 0
        self._head_bytes = 0
        self._beside_body = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._has_read = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # pause_writing, and so the watch, as soon as anything waits
        most = most_connections() if self.most is None else self.most
        if len(self.connections) > most:
            transport.abort()
        else:
            self._expect_more()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._reading is None:
            self._look_whether_it_reads()

    def resume_writing(self) -> None:
        self._has_read = True
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        was_in_head, heads = self._in_head, self._heads
        self._beside_body += len(data)
        super().data_received(data)
        if self._in_body and self._beside_body > self.longest_head:
            self.transport.abort()
        if not (was_in_head and self._in_head):
            return
        if heads == self._heads:  # else a whole request came at once, and it was its body that was long
            self._head_bytes += len(data)
        if self._head_bytes > self.longest_head:
            self.send_400_response("The head of the request is too long.")
        elif self._deadline is None:
            self._expect_more()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:  # else it is a trailer, which uvicorn would add to the head
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._beside_body = 0
        super().on_body(body)

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body, self._heads = False, True, self._heads + 1
        self._beside_body = 0
        self._expect_nothing()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._in_body, self._head_bytes = True, False, 0
        self._expect_nothing()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in_body:
            self._expect_more()

    def _look_whether_it_reads(self, before: int | None = None) -> None:
        """Again and again, until nothing is left for it; cut off where it has taken nothing since the last time."""
        has_read, self._has_read = self._has_read, False
        self._reading, ours = None, self.transport.get_write_buffer_size()
        left = ours + _kept_by_the_kernel(self.transport)
        if before is not None and left >= before and not has_read:
            self.transport.abort()
        elif ours:
            self._reading = self.loop.call_later(self.slowest_s, self._look_whether_it_reads, left)

    def _expect_more(self) -> None:
        self._deadline = self.loop.call_later(self.slowest_s, self._give_up)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._expect_more()  # an answer is on its way to whoever sends the next request already
        else:
            self.transport.close()
