"""One example of every event, made from its field types."""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from uuid import UUID

from holdfast.telemetry.events import Event

WORKER = UUID(int=7)

FIELD_VALUES: dict[str, Any] = {
    "JobId": UUID(int=1),
    "WorkerId": WORKER,
    "str": "text",
    "int": 3,
    "float": 1.5,
    "tuple[str, ...]": ("mail", "images"),
    "tuple[WorkerId, ...]": (WORKER,),
    "Mapping[str, int]": {"orphans": 2},
}


def sample(kind: type[Event], **changes: Any) -> Event:
    """An event of this type; fields that are not given get a value of their type."""
    made = {f.name: FIELD_VALUES[str(f.type)] for f in fields(kind)}
    return kind(**(made | changes))
