"""Which JSON may be stored: what every store accepts and Python decodes again. Encoding happens elsewhere.

An ordinary small text passes a handful of searches in C. Only one that looks suspicious is parsed, because
what is forbidden as a value (`NaN`, a NUL character) is harmless as text ("NaN", a backslash before u0000).
"""

from __future__ import annotations

import json
import math
import re
from typing import Final, NoReturn

from holdfast.core.errors import InvalidArguments

MAX_DEPTH: Final = 64
MAX_INT_DIGITS: Final = 4_000  # Python refuses to read integers of more than 4,300 digits

_UNUSUAL = re.compile(rb"[\\NI\x00]")  # of an escape, of NaN and Infinity, of a NUL
_SAMPLE_EVERY = 1_000
# More than 4,000 digits in a row cover at least four of every thousandth characters.
_LONG_NUMBER_SAMPLED = re.compile(rb"[0-9]{%d}" % (MAX_INT_DIGITS // _SAMPLE_EVERY))
# A string matches from its quote on, terminated or not: that keeps the scan linear on any input.
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


def is_ordinary_json(text: bytes) -> bool:
    """Short, plain, and without a character that anything forbidden would need; from a JSON encoder."""
    return len(text) <= 2 * MAX_DEPTH and text.isascii() and _UNUSUAL.search(text) is None


def check_json(text: bytes, *, limit: int, what: str, max_depth: int = MAX_DEPTH, strict: bool = False) -> None:
    """Raise `InvalidArguments` when the text may not be stored.

    It is taken to come from a JSON encoder; `strict=True` is for text from outside, which may be anything, and of which
    no words are repeated.
    """
    if len(text) > limit:
        raise InvalidArguments(
            f"{what}: takes {len(text):,} bytes as JSON, the limit is {limit:,}; "
            "keep large data elsewhere and pass a reference to it"
        )
    if not strict and max_depth == MAX_DEPTH and is_ordinary_json(text):
        return
    if not text.isascii():
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidArguments(
                f"{what}: byte {error.start + 1:,} is not UTF-8 ({error.reason}); "
                "encode the text as UTF-8, without lone surrogates"
            ) from None
    if text.count(b"[") + text.count(b"{") > max_depth:
        _check_depth(text, what, max_depth)
    if strict or _is_suspicious(text):
        _check_values(text, what, quoting=not strict)


def decode_json(text: bytes) -> object:
    """The value of a stored text."""
    try:
        return json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"cannot be decoded as JSON: {error}") from None


def _is_suspicious(text: bytes) -> bool:
    return (
        b"NaN" in text
        or b"Infinity" in text
        or b"\x00" in text
        or (b"\\u" in text and (b"\\u0000" in text or b"\\ud" in text or b"\\uD" in text))
        or (len(text) > MAX_INT_DIGITS and _LONG_NUMBER_SAMPLED.search(text[::_SAMPLE_EVERY]) is not None)
    )


def _check_depth(text: bytes, what: str, max_depth: int) -> None:
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        match text[token.start()]:
            case 0x5B | 0x7B:
                depth += 1
                if depth > max_depth:
                    raise InvalidArguments(
                        f"{what}: is nested more than {max_depth} levels deep at byte {token.start() + 1:,}; "
                        "flatten it, or pass it as text"
                    )
            case 0x5D | 0x7D:
                depth -= 1


def _check_values(text: bytes, what: str, *, quoting: bool) -> None:
    def refuse_constant(constant: str) -> NoReturn:
        raise InvalidArguments(f"{what}: {constant} is not JSON; use null or a text instead")

    def check_float(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise InvalidArguments(f"{what}: the number {digits[:40]} is too large for a float; pass it as text")
        return number

    def check_int(digits: str) -> int:
        if len(digits.lstrip("-")) > MAX_INT_DIGITS:
            raise InvalidArguments(
                f"{what}: an integer has {len(digits.lstrip('-')):,} digits, {MAX_INT_DIGITS:,} are allowed; "
                "pass it as text"
            )
        return 0

    try:
        # Objects as tuples of pairs: a dict would drop the first of two equal keys, unseen.
        value = json.loads(
            text.decode("utf-8"),
            parse_constant=refuse_constant,
            parse_float=check_float,
            parse_int=check_int,
            object_pairs_hook=tuple,
        )
    except json.JSONDecodeError as error:
        raise InvalidArguments(f"{what}: is not JSON: {error}") from None
    _check_strings(value, what, quoting=quoting)


def _check_strings(value: object, what: str, *, quoting: bool) -> None:
    unseen = [value]
    while unseen:
        match unseen.pop():
            case str() as string:
                if "\0" in string:
                    raise InvalidArguments(
                        f"{what}: {_text(string, string.index(chr(0)), quoting)} holds a NUL character, "
                        "which not every store can keep; remove it, or encode binary data as base64"
                    )
                if not string.isascii() and (found := _SURROGATE.search(string)):
                    raise InvalidArguments(
                        f"{what}: {_text(string, found.start(), quoting)} holds half a surrogate pair, "
                        "which is no character; decode the text rightly, or with errors='replace'"
                    )
            case list() | tuple() as parts:
                unseen.extend(parts)


def _text(string: str, position: int, quoting: bool) -> str:
    if not quoting:
        return f"a text of {len(string):,} characters"
    start = max(0, position - 20)
    return f"the text {string[start : position + 20]!r}"
