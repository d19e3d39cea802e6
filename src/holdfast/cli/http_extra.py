"""Brings in the HTTP API where a command needs it: it is an extra, and its imports take longer than most commands."""

from __future__ import annotations

import importlib
from typing import Any, Final

from holdfast.cli.exits import Refused

PREFIX: Final = "/api/v1"


def http_module(name: str) -> Any:
    """A module of `holdfast.http`."""
    try:
        return importlib.import_module(f"holdfast.http.{name}")
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package == "holdfast":
            raise
        raise Refused(
            f"the HTTP API needs {package}, which is not installed", hint="pip install 'holdfast[http]'"
        ) from None
