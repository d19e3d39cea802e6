"""Which web pages may ask: none but those of this server, and those that were named. Programs are no pages."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from fastapi import Request

from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown
from holdfast.http.problem import Problem
from holdfast.http.problems import CROSS_SITE

_OURS = ("same-origin", "none")


def check_origins(origins: Collection[str]) -> frozenset[str]:
    """Exact origins, as `https://shop.example`; never a pattern."""
    for each in origins:
        parts = urlsplit(each) if isinstance(each, str) else None
        if parts is None or parts.scheme not in ("http", "https") or f"{parts.scheme}://{parts.netloc}" != each:
            raise InvalidOptions(f"origins: {shown(each)} is no origin; write it as 'https://shop.example', exactly")
    return frozenset(origins)


def check_site(request: Request, origins: frozenset[str]) -> None:
    """Refuse a page of another site; what is not sent by a browser passes, and needs a key all the same."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if origin is not None and origin in origins:
        return
    if site is not None and site not in _OURS:
        raise Problem(CROSS_SITE, "the request comes from a page of another site")
    # As text: what a page of this server sends has one form, and to take it apart is to be led astray by others.
    host = request.headers.get("host", "")
    if site is None and origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        raise Problem(CROSS_SITE, "the request comes from a page of another site")
