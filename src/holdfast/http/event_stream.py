"""One client that follows a job: server-sent events, each the whole job as it is, under an id that tells its revision.

Whoever comes again with `Last-Event-ID` is told what differs from that, and nothing twice. Steps may be skipped; the
last one, its ending, is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.core.errors import NotOpen, StoreError
from holdfast.core.job import JobInfo
from holdfast.http.http_limits import HttpLimits
from holdfast.http.problem import Problem
from holdfast.http.problems import TOO_MANY_STREAMS, retry_after
from holdfast.http.streams import Follower, Streams
from holdfast.http.views import job_view

_AGAIN_MS: Final = 1_000
_LATER_S: Final = 5.0
EVENT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "The revision of the job: for `Last-Event-ID`."},
        "event": {"enum": ["changed", "ended", "gone", "reconnect"]},
        "data": {"type": "string", "description": "The job, as JSON; `{}` where there is none to tell of."},
        "retry": {"type": "integer"},
    },
}


def revision_of(job: JobInfo) -> str:
    """The same for the same report of a job, whoever may see what of it."""
    text = f"{job_view(job, payloads=False).model_dump_json()}\n{job.stage}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def too_many_streams() -> Problem:
    """What one more is told."""
    return Problem(TOO_MANY_STREAMS, "this server takes no more of those who follow", headers=retry_after(_LATER_S))


class EventStream(Response):
    """The answer: it goes on until the job has ended, or the client is to come again."""

    media_type = "text/event-stream"

    def __init__(
        self,
        job: JobInfo,
        *,
        streams: Streams,
        limits: HttpLimits,
        payloads: bool,
        seen: str | None,
        opens: Callable[[], Awaitable[bool]],
        sees: Callable[[JobInfo], bool],
    ) -> None:
        super().__init__(status_code=200, headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._job = job
        self._streams = streams
        self._limits = limits
        self._payloads = payloads
        self._seen = seen
        self._opens = opens
        self._sees = sees

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._streams.full:  # asked here, where nobody else can come in between
            refused = too_many_streams().response()
            refused.raw_headers += [each for each in self.raw_headers if each[0] != b"content-type"]
            await refused(scope, receive, send)
            return
        with self._streams.following(self._job) as follower:
            await self._serve(follower, receive, send)

    async def _serve(self, follower: Follower, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_disconnected(receive), name="holdfast-stream-gone")
        telling = asyncio.create_task(self._tell(send, follower), name="holdfast-stream")
        try:
            await asyncio.wait([gone, telling], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, telling):
                task.cancel()
            ended = await asyncio.gather(gone, telling, return_exceptions=True)
        if telling.done() and isinstance(ended[1], Exception) and not isinstance(ended[1], TimeoutError | OSError):
            raise ended[1]

    async def _tell(self, send: Send, follower: Follower) -> None:
        await self._send(send, {"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await self._write(send, f"retry: {_AGAIN_MS}\n\n")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.stream_s):
                await self._follow(send, follower)
                await self._send(send, {"type": "http.response.body", "body": b"", "more_body": False})
                return
        await self._write(send, "event: reconnect\ndata: {}\n\n")
        await self._send(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(self, send: Send, follower: Follower) -> None:
        """Until it has ended; TimeoutError: it is time to come again."""
        while True:
            has_news = await self._news(follower)
            if not await self._may_go_on():
                continue
            if not has_news:
                await self._write(send, ": nothing new\n\n")
                continue
            job = follower.take()
            if job is None or not self._sees(job):  # it may have been moved to a queue that is not the caller's
                await self._write(send, "event: gone\ndata: {}\n\n")
                return
            revision = revision_of(job)
            if revision != self._seen:
                await self._write(send, self._event(job, revision))
                self._seen = revision
            if job.state.ended:
                return
            if self._streams.stopped:
                raise TimeoutError

    async def _may_go_on(self) -> bool:
        """Whether the key opens yet; TimeoutError: not any more. While nobody can say, nothing is told."""
        try:
            opens = await self._opens()
        except (StoreError, NotOpen):
            if self._streams.stopped:
                raise TimeoutError from None
            await asyncio.sleep(_AGAIN_MS / 1_000)
            return False
        if not opens:
            raise TimeoutError
        return True

    async def _news(self, follower: Follower) -> bool:
        """False: there was none for a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.quiet_s):
                await follower.news.wait()
        return follower.news.is_set()

    def _event(self, job: JobInfo, revision: str) -> str:
        kind = "ended" if job.state.ended else "changed"
        return f"id: {revision}\nevent: {kind}\ndata: {job_view(job, payloads=self._payloads).model_dump_json()}\n\n"

    async def _write(self, send: Send, text: str) -> None:
        await self._send(send, {"type": "http.response.body", "body": text.encode(), "more_body": True})

    async def _send(self, send: Send, message: dict[str, object]) -> None:
        """A client that reads nothing for too long is given up: what waits for it would wait for ever."""
        try:
            async with asyncio.timeout(self._limits.stalled_s):
                await send(message)
        except TimeoutError:
            raise OSError("the client reads nothing") from None


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
