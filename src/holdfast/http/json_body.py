"""A request's body on its way in: how long it is and of which kind before it is read, how deep and wide before it is
used. Nothing of it is stored or logged here."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from fastapi import Request

from holdfast.core.errors import InvalidArguments
from holdfast.core.json_text import MAX_DEPTH, check_json, is_ordinary_json
from holdfast.http.http_limits import HttpLimits
from holdfast.http.problem import Problem
from holdfast.http.problems import BODY_TOO_LARGE, BODY_TOO_SLOW, INVALID_JSON, UNSUPPORTED_MEDIA_TYPE

_JSON: Final = "application/json"
_WHAT: Final = "the body"
_POWER: Final = re.compile(rb"\d[eE]")
# Terminated or not, it matches from its quote on: that keeps the scan linear on any input.
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)


class ReadRequest(Request):
    """A request whose body was read and checked already."""

    def __init__(self, request: Request, text: bytes, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._text = text
        self._value = value

    async def body(self) -> bytes:
        """As it came."""
        return self._text

    async def json(self) -> Any:
        """As it was checked."""
        return self._value


async def read_json(request: Request, limits: HttpLimits, *, most: int, optional: bool) -> ReadRequest:
    """The request with its body; a Problem where that is too large, too slow, of another kind, or not what it says."""
    _check_length(request, most)
    text = await _read(request, most=most, within_s=limits.body_s)
    if not text and optional:
        return ReadRequest(request, text, None)
    _check_kind(request)
    return ReadRequest(request, text, parse(text, limits))


async def refuse_body(request: Request) -> None:
    """Of a request that needs none: what nobody reads must not be sent."""
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise Problem(BODY_TOO_LARGE, "this takes no body")


def parse(text: bytes, limits: HttpLimits) -> Any:
    """The value of a text that came from outside."""
    try:
        _check_parts(text, limits.parts)
        # What is so short and plain holds none of what is refused, but perhaps a number too large for a float.
        if limits.depth < MAX_DEPTH or not is_ordinary_json(text) or _POWER.search(text):
            check_json(text, limit=len(text), what=_WHAT, max_depth=limits.depth, strict=True)
        value = json.loads(text, object_pairs_hook=_Objects(limits.keys).make)
        if len(text) > limits.string:
            _check_texts(value, limits.string)
        return value
    except InvalidArguments as error:
        raise Problem(INVALID_JSON, str(error), field="body") from None
    except (ValueError, RecursionError):  # what `check_json` has let pass can be read
        raise Problem(INVALID_JSON, f"{_WHAT}: is not JSON", field="body") from None


def _check_parts(text: bytes, most: int) -> None:
    """Before it is parsed: a list within a list takes three bytes of a body, and forty times as many of memory."""
    if _parts(text) + text.count(b'"') // 2 > most:
        bare, strings = _STRING.subn(b"", text)
        if _parts(bare) + strings > most:
            raise InvalidArguments(f"{_WHAT}: has more than {most:,} parts (texts, commas and brackets); send less")


def _parts(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _check_texts(value: Any, most: int) -> None:
    unseen = [value]
    while unseen:
        match unseen.pop():
            case str() as text if len(text) > most:
                raise InvalidArguments(f"{_WHAT}: a text has {len(text):,} characters, {most:,} are allowed")
            case list() as items:
                unseen.extend(items)
            case dict() as members:
                unseen.extend(members)
                unseen.extend(members.values())


class _Objects:
    """Makes objects, and counts what they hold; two members of one name would be one, unseen."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def make(self, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        self._left -= len(pairs)
        if self._left < 0:
            raise InvalidArguments(f"{_WHAT}: holds more than {self._most:,} members; send it in several requests")
        made = dict(pairs)
        if len(made) < len(pairs):
            times = Counter(name for name, _ in pairs)
            twice = next(name for name, count in times.items() if count > 1)
            raise InvalidArguments(f"{_WHAT}: an object has two members {twice[:80]!r}; give one of them")
        return made


def _check_length(request: Request, most: int) -> None:
    said = request.headers.get("content-length")
    if said is not None and (not said.isdecimal() or len(said) > 18 or int(said) > most):
        raise _too_large(most)


def _too_large(most: int) -> Problem:
    return Problem(
        BODY_TOO_LARGE,
        f"the body has more than {most:,} bytes; nothing of it was read",
        more={"limit": most},
        headers={"Connection": "close"},  # the rest of it is not waited for
    )


def _check_kind(request: Request) -> None:
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    name, _, charset = rest.strip().partition("=")
    is_utf8 = name.strip().lower() != "charset" or charset.strip(" \"'").lower() in ("utf-8", "utf8")
    if kind.strip().lower() != _JSON or not is_utf8:
        raise Problem(UNSUPPORTED_MEDIA_TYPE, f"the body has to be {_JSON}, in UTF-8", headers={"Accept": _JSON})
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(UNSUPPORTED_MEDIA_TYPE, "the body is compressed", headers={"Accept-Encoding": "identity"})


async def _read(request: Request, *, most: int, within_s: float) -> bytes:
    parts: list[bytes] = []
    length = 0
    try:
        async with asyncio.timeout(within_s):
            async for part in request.stream():
                length += len(part)
                if length > most:
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError:
        raise Problem(
            BODY_TOO_SLOW, f"the body was not complete after {within_s:g} s", headers={"Connection": "close"}
        ) from None
    return b"".join(parts)
