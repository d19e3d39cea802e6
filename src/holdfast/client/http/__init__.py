"""A client of the HTTP API, for programs without a store of their own: `HttpClient`, and `SyncHttpClient` without an
event loop. It needs the extra `holdfast[client]`."""

from __future__ import annotations

try:
    import httpx  # noqa: F401  # asked for by name, so that whoever lacks it is told what to install
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"holdfast.client.http needs {missing.name}, which is not installed: pip install 'holdfast[client]'",
        name=missing.name,
    ) from None

from holdfast.client.http.asynchronous import HttpClient, HttpJobHandle
from holdfast.client.http.blocking import SyncHttpClient, SyncHttpJobHandle

__all__ = ["HttpClient", "HttpJobHandle", "SyncHttpClient", "SyncHttpJobHandle"]
