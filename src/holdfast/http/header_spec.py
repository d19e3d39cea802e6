"""A header that a route reads by itself: every submission comes this way, and FastAPI's own reading costs too much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.core.outcome import storable
from holdfast.http.problem import Problem
from holdfast.http.problems import INVALID_REQUEST


class HeaderSpec(NamedTuple):
    """What the document says of it, and what is refused."""

    name: str
    description: str
    most: int

    def read(self, headers: Mapping[str, str]) -> str | None:
        """Its value; None where it was not sent."""
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
