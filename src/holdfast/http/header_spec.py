"""A header that a route reads by itself: every submission comes this way, and FastAPI's own reading costs too much."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.datastructures import Headers

from holdfast.core.outcome import storable
from holdfast.http.problem import Problem
from holdfast.http.problems import INVALID_REQUEST


class HeaderSpec(NamedTuple):
    """What the document says of it, and what is refused."""

    name: str
    description: str
    most: int
    alone: bool = False
    """Whether it may be sent only once: of two, a proxy may have gone by the other one."""

    def read(self, headers: Headers) -> str | None:
        """Its value; None where it was not sent."""
        if self.alone and len(headers.getlist(self.name)) > 1:
            raise Problem(INVALID_REQUEST, f"{self.name}: was sent more than once", field=self.name)
        value = headers.get(self.name)
        if value is None:
            return None
        if not 1 <= len(value) <= self.most or storable(value, len(value)) != value:
            raise Problem(INVALID_REQUEST, f"{self.name}: needs 1 to {self.most} characters", field=self.name)
        return value

    def documented(self) -> dict[str, Any]:
        """As OpenAPI has it."""
        schema = {"type": "string", "minLength": 1, "maxLength": self.most}
        return {"name": self.name, "in": "header", "required": False, "description": self.description, "schema": schema}
