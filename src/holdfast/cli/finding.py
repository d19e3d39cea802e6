"""What `doctor` says of one matter."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """One line of the report."""

    verdict: Literal["ok", "warn", "fail"]
    subject: str
    found: str
    remedy: str = ""
