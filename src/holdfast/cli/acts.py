"""What somebody does to jobs from a shell, put on record before it is done, as the API does it with its keys."""

from __future__ import annotations

from typing import Any

from holdfast.app import Holdfast
from holdfast.client.operator import whoami


async def record(hf: Holdfast, what: str, name: str, **said: Any) -> None:
    """Before it is done: nothing is done that is not on record."""
    words = {key: value for key, value in said.items() if value}
    await hf.keys.record_act(what, name, words, by=whoami())
