"""The HTTP API: `from holdfast.http import asgi, router`; it needs the extra `holdfast[http]`."""

from __future__ import annotations

try:
    import fastapi  # noqa: F401  # asked for by name, so that whoever lacks it is told what to install
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"holdfast.http needs {missing.name}, which is not installed: pip install 'holdfast[http]'", name=missing.name
    ) from None

from holdfast.http.application import Application, asgi, router
from holdfast.http.http_limits import HttpLimits
from holdfast.http.problem import Problem

__all__ = ["Application", "HttpLimits", "Problem", "asgi", "router"]
