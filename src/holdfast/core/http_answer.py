"""What an exception of an HTTP client tells of the answer: its status, and when to come again. No client is imported.

Known are exceptions with a `response` that has a `status_code` (httpx, requests, and what is built on them), aiohttp's
`ClientResponseError` and the standard library's `HTTPError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

from holdfast.core.exception_names import qualified

_SECONDS: Final = re.compile(r"\d{1,15}(\.\d{1,15})?")
_LONGEST_TEXT: Final = 100
#: Class -> the attribute that holds the status; the headers are in `headers`.
_BY_CLASS: Final = {"aiohttp.client_exceptions.ClientResponseError": "status", "urllib.error.HTTPError": "code"}


class HttpAnswer(NamedTuple):
    """A refusal by HTTP."""

    status: int
    headers: Any


def http_answer(exc: BaseException) -> HttpAnswer | None:
    """The answer that an exception stands for; None for one of another kind."""
    try:
        response = getattr(exc, "response", None)
        status = getattr(response, "status_code", None)
        if isinstance(status, int):
            return HttpAnswer(int(status), getattr(response, "headers", None))
        for base in type(exc).__mro__:
            if attribute := _BY_CLASS.get(qualified(base)):
                status = getattr(exc, attribute, None)
                return HttpAnswer(int(status), getattr(exc, "headers", None)) if isinstance(status, int) else None
    except BaseException:  # others' code: it may do anything, even exit or cancel, and then tells nothing
        return None
    return None


def retry_after_s(answer: HttpAnswer, *, now: Callable[[], float]) -> float | None:
    """Seconds that the header `Retry-After` asks for, given as such or as a date; None without one that is readable.

    A date is taken against the answer's own `Date`, where it has one: then clocks need not agree.
    """
    text = _header(answer.headers, "Retry-After")
    if text is None:
        return None
    if _SECONDS.fullmatch(text):
        return float(text)
    until_s = _date_s(text)
    if until_s is None:
        return None
    sent_s = _date_s(_header(answer.headers, "Date"))
    return max(0.0, until_s - (now() if sent_s is None else sent_s))


def _header(headers: Any, name: str) -> str | None:
    try:
        value = headers.get(name) or headers.get(name.lower())
        text = bytes(value).decode("latin-1") if isinstance(value, bytes) else value
        return str.strip(text) if isinstance(text, str) and len(text) <= _LONGEST_TEXT else None
    except BaseException:  # no headers, or not what they should be; others' code, as above
        return None


def _date_s(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
