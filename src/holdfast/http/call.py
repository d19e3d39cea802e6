"""What a route has in hand while it serves one request: the app, whoever asks, and what this server shares."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Request, Security
from fastapi.openapi.models import HTTPBearer as HTTPBearerModel
from fastapi.security.base import SecurityBase
from starlette.datastructures import Headers

from holdfast.app import Holdfast
from holdfast.core.job import JobInfo
from holdfast.http.caller import Caller
from holdfast.http.http_limits import HttpLimits
from holdfast.http.known_queues import KnownQueues
from holdfast.http.streams import Streams
from holdfast.http.waits import Waits


@dataclass(frozen=True, slots=True)
class Api:
    """What all requests of one server share."""

    hf: Holdfast
    limits: HttpLimits
    streams: Streams
    waits: Waits
    queues: KnownQueues
    unknown_tasks: bool
    """Whether jobs of tasks that the app does not know are taken: some worker may know them."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request that was let in."""

    api: Api
    caller: Caller
    request: Request
    base: str
    """Where the API is, as the client sees it: for `Location`."""
    opens: Callable[[], Awaitable[bool]]
    """Whether the caller would be let in now, too: for what lasts longer than a key may."""
    id: str
    """Under which the log tells of it."""

    @property
    def hf(self) -> Holdfast:
        """The app."""
        return self.api.hf

    @property
    def headers(self) -> Headers:
        """Of the request."""
        return self.request.headers

    async def gone(self) -> None:
        """Returns when the client has gone; once the body was read."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass

    async def job(self, job_id: str) -> JobInfo:
        """A job that is the caller's; JobNotFound where there is none, or it is somebody else's."""
        [job] = await self.hf.jobs.get_many([job_id])
        return self.caller.his(job, job_id)

    async def record(self, what: str, name: str, **said: Any) -> None:
        """Put on record what the caller is about to do. Before it is done: nothing is done that is not on record."""
        words = {key: value for key, value in said.items() if value is not None}
        await self.hf.keys.record_act(what, name, words, by=self.caller.name)


class _Bearer(SecurityBase):
    """Says in the document how to come with a key; the door has looked at it by then."""

    def __init__(self) -> None:
        self.model = HTTPBearerModel(bearerFormat="hf_…", description="A key, as `holdfast keys create` makes it.")
        self.scheme_name = "key"

    async def __call__(self, request: Request) -> Call:
        call: Call = request.state.holdfast
        return call


Called = Annotated[Call, Security(_Bearer())]
