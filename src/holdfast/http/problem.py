"""What a client is told when a request is refused: problem details (RFC 9457), of kinds whose names are stable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

MEDIA_TYPE: Final = "application/problem+json"
_PREFIX: Final = "urn:holdfast:problem:"


class Kind(NamedTuple):
    """One way to be refused; programs tell them apart by name."""

    name: str
    status: int
    title: str
    remedy: str
    """What whoever sent the request can do about it."""

    @property
    def type(self) -> str:
        """What the member `type` of a problem says."""
        return _PREFIX + self.name


class Problem(Exception):
    """A request is refused; raised anywhere below a route, answered by it."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        field: str | None = None,
        more: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.detail = detail
        self.field = field
        """Which part of the request is at fault, as in `kwargs.to` or `items[3].task`."""
        self.more = dict(more or {})
        """Further members, by kind."""
        self.headers = dict(headers or {})
        super().__init__(detail)

    def body(self) -> dict[str, Any]:
        """The members of the answer."""
        members: dict[str, Any] = {
            "type": self.kind.type,
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
            "remedy": self.kind.remedy,
        }
        if self.field is not None:
            members["field"] = self.field
        return members | self.more

    def response(self) -> Response:
        """The answer."""
        text = json.dumps(self.body(), ensure_ascii=False).encode("utf-8", "replace")
        return Response(text, status_code=self.kind.status, headers=self.headers, media_type=MEDIA_TYPE)


class ProblemView(BaseModel):
    """A refused request, as RFC 9457 says it."""

    model_config = ConfigDict(extra="allow", title="Problem")

    type: str = Field(description="Which kind of problem; stable, as in `urn:holdfast:problem:queue-full`.")
    title: str = Field(description="The kind in a few words.")
    status: int = Field(description="The status of the answer.")
    detail: str = Field(description="What is wrong with this request.")
    remedy: str = Field(description="What to do about it.")
    field: str | None = Field(default=None, description="The part of the request that is at fault.")
